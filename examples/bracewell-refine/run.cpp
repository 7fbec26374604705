// SPDX-License-Identifier: MIT
#include "bracewell-refine/run.hpp"

#include "bracewell-refine/map_mask.hpp"
#include "common/handout.hpp"
#include "common/median.hpp"
#include "common/memory_limit.hpp"
#include "common/output_family.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"
#include "cryoem/half_maps.hpp"
#include "cryoem/map.hpp"
#include "cryoem/particle_batches.hpp"
#include "cryoem/particle_provenance.hpp"
#include "cryoem/reconstruction.hpp"
#include "cryoem/report.hpp"

#include <Eigen/Cholesky>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numbers>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

/// The correlation of an image and the projection that fits it, less than 0 for inverted contrast.
double figure_of_merit(const Fit& fit) {
  return (fit.inverted ? -1 : 1) * std::sqrt(std::clamp(1 - fit.loss_after, 0.0, 1.0));
}

/// Enters angles, origins, half sets and figures of merit, in the columns and units that the file has them in.
void set_columns(Particles& particles, const std::vector<int>& halves, const std::vector<Fit>& fits) {
  set_pose_columns(particles);
  auto& table = particles.particle_table();
  std::vector<std::string> merits;
  for (const Fit& fit : fits)
    merits.push_back(fixed(figure_of_merit(fit)));
  table.set_column("rlnParticleFigureOfMerit", std::move(merits));
  if (!particles.random_subset.present()) {
    std::vector<std::string> subsets;
    subsets.reserve(halves.size());
    for (const int half : halves)
      subsets.push_back(std::to_string(half + 1));
    table.set_column("rlnRandomSubset", std::move(subsets));
  }
}

/// How well half maps agree: the mean of their correlation over all shells but the first.
double agreement(const std::vector<double>& correlation) {
  double sum = 0;
  for (std::size_t shell = 1; shell < correlation.size(); ++shell)
    sum += std::isfinite(correlation[shell]) ? correlation[shell] : 0;
  return sum / static_cast<double>(correlation.size() - 1);
}

/// A map of the particles, its centre as theirs.
CubicMap cubic(const Space& space, const Map& map) {
  return {static_cast<int>(map.extent(1)), to_host(space, map), {}};
}

class Job {
public:
  Job(const Space& space, const RunOptions& options, Provenance& provenance, Timings& timings)
      : space_(space), options_(options), provenance_(provenance), timings_(timings),
        particles_(read_particles(options.star, {.pixel_size = options.pixel_size,
                                                 .class_number = options.class_number,
                                                 .b_factor_sign = options.b_factor_sign})),
        refinement_(space, particles_, options.refinement), box_(static_cast<int>(particles_.image_width)),
        halves_(half_sets(particles_)) {
    if (particles_.image_width != particles_.image_height)
      throw InputError(particles_.stacks[0].path.string() + ": expected square images, found " +
                       std::to_string(particles_.image_width) + " x " +
                       std::to_string(particles_.image_height));
    if (options.radius && !(*options.radius >= 1 && *options.radius <= box_ / 2.0))
      throw InputError("--radius: expected 1 to " + std::to_string(box_ / 2) + " periods per box, found " +
                       shortest(*options.radius));
    if (particles_.pixel_size.present())
      pixel_size_ = particles_.pixel_size[0];
    if (options.mask)
      mask_ = MapMask::read(*options.mask, box_, provenance, memory_limit(options.memory_limit));
    else if (options.mask_diameter)
      mask_ = MapMask(box_, mask_of(particles_, options.mask_diameter, pixel_size_));
    for (std::size_t row = 0; row < particles_.count; ++row) {
      rows_[static_cast<std::size_t>(halves_[row])].push_back(row);
      start_.push_back(pose_of(particles_, row));
    }
    start_defocus_ = particles_.defocus_u.values;
    read_maps();
    if (options.refinement.global)
      check_global();
    check_halves();
    if (maps_.size() == 1)
      particles_.warnings.push_back(
          options.maps[0].string() +
          ": is the reference of both half sets, so their maps agree more than their data do; "
          "give two maps, or none");
    prepare_reconstruction();
    fits_.resize(particles_.count);
    rounds_ = !both_ || !options.maps.empty() ? 1 : most_rounds;
    if (options.rounds)
      rounds_ = *options.rounds;
  }

  void run(Checkpoint& checkpoint) {
    note_particles(provenance_, particles_, refinement_.uses_ctf());
    provenance_.say();
    if (checkpoint.resumed())
      resume(*checkpoint.resumed());
    else
      begin();
    for (;;) {
      refine_poses(checkpoint);
      if (options_.refinement.magnification)
        refine_magnification();
      ++round_;
      if (both_) {
        reconstruct(round_ < rounds_);
        compare_with_best();
      }
      if (round_ == rounds_ || (!options_.rounds && round_ > best_.round))
        break;
      done_ = 0;
      references_ = std::move(next_references_);
      radius_ = chosen_radius(correlation_);
    }
    if (both_)
      take_best();
  }

  void write(const fs::path& correlations, const fs::path& picture, const std::array<fs::path, 2>& halves) {
    name_strange_particles();
    set_columns(particles_, halves_, fits_);
    if (options_.refinement.defocus)
      set_defoci();
    if (options_.refinement.magnification)
      set_magnifications();
    if (options_.pixel_size)
      set_pixel_size(particles_, *options_.pixel_size);
    move_image_names(particles_, options_.out);
    write_star(options_.out, particles_.document, provenance_.lines());
    if (!both_)
      return;
    for (const std::size_t half : {0, 1})
      write_volume(halves[half], to_host(space_, half_maps_[half]), {box_, box_, box_},
                   {.pixel_size = pixel_size_, .labels = provenance_.lines()});
    Correlations of_halves;
    of_halves.halves = correlation_;
    write_correlations(correlations, picture, of_halves, box_, pixel_size_);
  }

  /// Into the table of particles.
  void set_defoci() {
    double squares = 0;
    for (std::size_t row = 0; row < particles_.count; ++row) {
      const double change = particles_.defocus_u[row] - start_defocus_[row];
      squares += change * change / double(particles_.count);
    }
    provenance_.took(options_.star, "defoci that changed by " + shortest(std::round(std::sqrt(squares))) +
                                        " Angstrom (root mean square)");
    auto& table = particles_.particle_table();
    for (const auto* const column : {&particles_.defocus_u, &particles_.defocus_v}) {
      std::vector<std::string> values;
      for (const double value : column->values)
        values.push_back(fixed(value, 2));
      table.set_column(column->name, std::move(values));
    }
  }

  /// Into the table of optics groups, where there is one that has the groups, or else into the particles'.
  void set_magnifications() {
    auto& table = particles_.particle_table();
    auto* const optics = particles_.document.find("optics");
    const auto group_column = optics ? optics->find("rlnOpticsGroup") : std::nullopt;
    const bool grouped = group_column && particles_.optics_group.present();
    for (std::size_t i = 0; i < 4; ++i) {
      const auto& column = particles_.magnification[i];
      if (!grouped) {
        std::vector<std::string> values;
        for (const double value : column.values)
          values.push_back(fixed(value));
        table.set_column(column.name, std::move(values));
        continue;
      }
      std::vector<std::string> values(optics->rows(), fixed(i == 0 || i == 3 ? 1 : 0));
      if (const auto stated = optics->find(column.name))
        for (std::size_t row = 0; row < values.size(); ++row)
          values[row] = optics->value(row, *stated);
      for (std::size_t row = 0; row < values.size(); ++row)
        for (std::size_t particle = 0; particle < particles_.count; ++particle)
          if (std::to_string(particles_.optics_group[particle]) == optics->value(row, *group_column)) {
            values[row] = fixed(column[particle]);
            break;
          }
      optics->set_column(column.name, std::move(values));
      table.remove_columns(std::array{column.name});
    }
    std::vector<bool> said(refinement_.magnification_sums().size());
    for (std::size_t row = 0; row < particles_.count; ++row)
      if (const std::size_t group = refinement_.optics_group(row); !said[group]) {
        char text[160];
        std::snprintf(text, sizeof text, "magnification of optics group %s: %.5f %.5f %.5f %.5f",
                      particles_.optics_group.present() ? std::to_string(particles_.optics_group[row]).c_str()
                                                        : "1",
                      particles_.magnification[0][row], particles_.magnification[1][row],
                      particles_.magnification[2][row], particles_.magnification[3][row]);
        provenance_.took(options_.star, text);
        said[group] = true;
      }
  }

  std::string summary(double seconds) const {
    std::vector<double> degrees, pixels;
    double before = 0, after = 0;
    for (std::size_t row = 0; row < particles_.count; ++row) {
      const PoseOfParticle pose = pose_of(particles_, row);
      degrees.push_back(angle_between(start_[row].matrix, pose.matrix, symmetry_));
      pixels.push_back((pose.shift - start_[row].shift).norm());
      before += fits_[row].loss_before / static_cast<double>(particles_.count);
      after += fits_[row].loss_after / static_cast<double>(particles_.count);
    }
    char change[64] = "", text[256];
    if (!options_.refinement.global) // then the first poses tell nothing
      std::snprintf(change, sizeof change, "median change %.3g degrees and %.3g pixels, ", median(degrees),
                    median(pixels));
    std::snprintf(text, sizeof text,
                  "%zu particle%s, %sloss %.5f -> %.5f of the images' power%s up to %.3g periods per box, ",
                  particles_.count, particles_.count == 1 ? "" : "s", change, before, after,
                  round_ > 1 ? " in the last round" : "", radius_);
    std::string resolution;
    if (both_)
      resolution =
          "half maps agree to " + resolution_text(correlation_, 0.143, box_, pixel_size_) + " (FSC 0.143), ";
    char time[32];
    std::snprintf(time, sizeof time, "%.3g s", seconds);
    return text + resolution + time;
  }

private:
  /// What refinement changes, by its names in checkpoints.
  template <class SomeParticles>
  auto columns(SomeParticles& particles) const {
    std::vector all{std::pair("/rot", &particles.rot), std::pair("/tilt", &particles.tilt),
                    std::pair("/psi", &particles.psi), std::pair("/origin_x", &particles.origin_x),
                    std::pair("/origin_y", &particles.origin_y)};
    if (options_.refinement.defocus)
      all.insert(all.end(), {std::pair("/defocus_u", &particles.defocus_u),
                             std::pair("/defocus_v", &particles.defocus_v)});
    if (options_.refinement.magnification)
      all.insert(all.end(), {std::pair("/magnification_00", &particles.magnification[0]),
                             std::pair("/magnification_01", &particles.magnification[1]),
                             std::pair("/magnification_10", &particles.magnification[2]),
                             std::pair("/magnification_11", &particles.magnification[3])});
    return all;
  }

  /// The magnification of every optics group, of what the poses of the round left, and poses that follow it; the same in all
  /// processes. Against maps of the particles themselves, whose size follows the images', all groups together stay as large as
  /// they were.
  void refine_magnification() {
    auto& sums = refinement_.magnification_sums();
    std::vector<double> counts(sums.size(), 0);
    std::vector<Eigen::Vector3d> changes(sums.size(), Eigen::Vector3d::Zero());
    for (std::size_t row = 0; row < particles_.count; ++row)
      ++counts[refinement_.optics_group(row)];
    double larger = 0;
    for (std::size_t group = 0; group < sums.size(); ++group) {
      if (process_count() > 1) // once a round, and few
        share(sums[group]);
      const Eigen::LDLT<Eigen::Matrix3d> solver(sums[group].normal);
      if (solver.info() == Eigen::Success && solver.isPositive() && solver.rcond() > 1e-9)
        changes[group] = solver.solve(sums[group].right).cwiseMax(-0.1).cwiseMin(0.1);
      larger += counts[group] * (changes[group][0] + changes[group][2]) / 2;
      sums[group] = {};
    }
    for (std::size_t row = 0; row < particles_.count; ++row) {
      auto change = changes[refinement_.optics_group(row)];
      if (options_.maps.empty() || round_ > 0)
        change -= larger / double(particles_.count) * Eigen::Vector3d(1, 0, 1);
      for (std::size_t i = 0; i < 4; ++i)
        particles_.magnification[i].values[row] += change[static_cast<Eigen::Index>(i / 2 + i % 2)];
      refinement_.follow(row, change);
    }
    refinement_.lens_changed();
  }

  /// What all processes have, in each.
  static void share(MagnificationSums& sums) {
    for (double& value : sums.normal.reshaped())
      value = sum_over_processes(value);
    for (double& value : sums.right)
      value = sum_over_processes(value);
  }

  CubicMap read(const fs::path& path) {
    return read_map_for(particles_, box_, pixel_size_, provenance_, path,
                        memory_limit(options_.memory_limit));
  }

  /// The maps that are given, masked.
  void read_maps() {
    for (const auto& path : options_.maps)
      maps_.push_back(read(path));
    if (maps_.size() == 2 && maps_[0].values == maps_[1].values) // the same, whatever its names
      maps_.pop_back();
    if (maps_.size() == 2)
      given_correlation_ = correlation_of(maps_);
    if (!maps_.empty())
      mask_maps(maps_);
  }

  /// Correlation of two maps under the sphere that fits the box, or that of --mask-diameter: the edge of a narrow mask,
  /// which both have in common, would count as agreement.
  std::vector<double> correlation_of(std::vector<CubicMap> maps) const {
    const MapMask sphere(box_, mask_of(particles_, options_.mask_diameter, pixel_size_));
    for (auto& map : maps)
      sphere.apply(map.values);
    return correlation(space_, to_device(space_, maps[0]), to_device(space_, maps[1]));
  }

  /// Multiplies maps by the mask, which is made of them where there is none.
  void mask_maps(std::vector<CubicMap>& maps) {
    if (mask_.values().empty() && !maps.empty()) {
      std::vector<float> sum = maps[0].values;
      for (std::size_t other = 1; other < maps.size(); ++other)
        for (std::size_t i = 0; i < sum.size(); ++i)
          sum[i] += maps[other].values[i];
      auto found = MapMask::around(sum, box_);
      const std::string of = options_.maps.empty() ? options_.star.string() : options_.maps[0].string();
      char text[160];
      std::snprintf(text, sizeof text, "a mask around the density, %.3g %% of the sphere that fits the box",
                    found ? 100 * found->part_of_sphere() : 100);
      if (found)
        provenance_.took(of, text);
      else
        provenance_.took(of, "no density that stands out: the mask is the sphere that fits the box");
      mask_ = found ? *std::move(found) : MapMask(box_, mask_of(particles_, {}, pixel_size_));
    }
    for (auto& map : maps)
      mask_.apply(map.values);
  }

  /// A global search needs maps, and memory.
  void check_global() const {
    if (maps_.empty())
      throw InputError("--global: expected a reference, --map, found none");
    if (const auto& range = options_.refinement.shift_range; range && *range > box_ / 2)
      throw InputError("--shift-range: expected 0 to " + std::to_string(box_ / 2) + " pixels, found " +
                       shortest(*range));
    const auto grid = refinement_.grid(levers_of(maps_[0]), options_.radius.value_or(box_ / 4.0));
    require_memory("searching " + std::to_string(grid.rotations) + " orientations",
                   resident_bytes() + refinement_.bytes_of_search(grid), memory_limit(options_.memory_limit));
    provenance_.took(options_.maps[0], std::to_string(grid.rotations) + " orientations and " +
                                           std::to_string(grid.shifts.size()) +
                                           " shifts, which particles are compared with up to " +
                                           period(grid.radius));
  }

  /// With one half set alone there are no half maps.
  void check_halves() {
    both_ = !rows_[0].empty() && !rows_[1].empty();
    if (both_)
      return;
    const std::string file = options_.star.string();
    if (maps_.empty() || options_.rounds.value_or(1) > 1 ||
        (maps_.size() == 1 && !options_.radius && !options_.refinement.global))
      throw InputError(file +
                       ": expected particles in both half sets (rlnRandomSubset), found one; --map and "
                       "--radius refine them in one round");
    particles_.warnings.push_back(file + ": has no particles in one of the half sets: no half maps");
  }

  /// How half maps are made; checks that there is memory for them.
  void prepare_reconstruction() {
    reconstruction_.symmetry = options_.refinement.symmetry;
    if (options_.helical_rise) {
      if (!(pixel_size_ > 0))
        throw InputError(options_.star.string() +
                         ": states no pixel size, which --helical-rise needs; use --pixel-size");
      const double rise = *options_.helical_rise / pixel_size_;
      const double each_side = std::floor(0.35 * box_ / rise); // as bracewell-reconstruct has them
      reconstruction_.helix = Helix{.rise = rise,
                                    .twist = *options_.helical_twist,
                                    .subunits = 2 * static_cast<int>(std::min(each_side, 4000.0)) + 1};
    }
    require_memory_for_reconstruction(particles_, reconstruction_, memory_limit(options_.memory_limit));
    reconstruction_.normalise = options_.normalise;
    reconstruction_.reproducible = options_.refinement.reproducible;
    reconstruction_.batch = options_.refinement.batch;
    reconstruction_.ctf = refinement_.uses_ctf();
  }

  /// What the first round begins with.
  void begin() {
    references_ = std::move(maps_);
    // Poses are judged by what half maps were before them.
    if (both_ && !options_.refinement.global) {
      reconstruct(references_.empty());
      compare_with_best();
    }
    if (references_.size() == 2) {
      correlation_ = given_correlation_;
    } else if (references_.empty()) {
      references_ = std::move(next_references_);
    }
    radius_ = chosen_radius(correlation_);
  }

  /// Of the option, or as far as half maps agree.
  double chosen_radius(const std::vector<double>& correlation) {
    if (options_.radius)
      return *options_.radius;
    if (correlation.empty()) // one map and no poses
      return box_ / 4.0;
    constexpr double least = 2;
    const double shell = last_shell(correlation);
    if (shell < least)
      provenance_.assume(options_.star.string() + ": the half maps do not agree: frequencies up to " +
                         shortest(least) + " periods per box are compared; --radius says otherwise");
    const double radius = std::max(least, shell);
    provenance_.took(options_.star, "frequencies up to " + period(radius) +
                                        ", where half maps agree, in round " + std::to_string(round_ + 1));
    return radius;
  }

  std::string period(double radius) const {
    return pixel_size_ > 0 ? shortest(box_ * pixel_size_ / radius) + " Angstrom"
                           : shortest(radius) + " periods per box";
  }

  /// The poses of all particles that are left in the round.
  void refine_poses(Checkpoint& checkpoint) {
    std::string round = rounds_ > 1 ? "round " + std::to_string(round_ + 1) : "";
    if (rounds_ > 1)
      round += (options_.rounds ? " of " + std::to_string(rounds_) : "") + ": ";
    const bool global = options_.refinement.global && round_ == 0;
    const std::int64_t searches = refinement_.searches(radius_, global);
    Progress progress(round + "refining", "stages of particles",
                      searches * static_cast<std::int64_t>(particles_.count));
    progress.add(searches * static_cast<std::int64_t>(done_));
    for (const std::size_t half : {0, 1}) {
      const std::size_t before = half == 0 ? 0 : rows_[0].size(), end = before + rows_[half].size();
      if (done_ >= end)
        continue;
      timings_.phase("make reference");
      const Reference reference = make_reference(space_, references_[references_.size() == 1 ? 0 : half],
                                                 options_.refinement.sampling);
      timings_.phase("refine");
      while (done_ < end)
        refine_some(std::span(rows_[half]).subspan(done_ - before), reference, global, progress, checkpoint);
    }
  }

  /// Those of some particles, or of the first of them where a checkpoint is due before.
  void refine_some(std::span<const std::size_t> rows, const Reference& reference, bool global,
                   Progress& progress, Checkpoint& checkpoint) {
    const std::int64_t searches = refinement_.searches(radius_, global);
    Handout handout(static_cast<std::int64_t>(rows.size()), refinement_.batch());
    const std::size_t done = done_;
    std::vector<std::size_t> refined; // by this process
    std::int64_t item = 0;
    timings_.stages(refinement_.run(rows, handout, reference, radius_, global, progress,
                                    [&](std::span<const std::size_t> part, std::span<const Fit> fits) {
                                      for (std::size_t i = 0; i < part.size(); ++i)
                                        fits_[part[i]] = fits[i];
                                      refined.insert(refined.end(), part.begin(), part.end());
                                      progress.add(searches * handout.passed_over(item++));
                                      if (!is_first_process() || !checkpoint.due())
                                        return;
                                      if (process_count() > 1)
                                        return handout.stop(); // the others' poses come when all have ended
                                      done_ = done + refined.size();
                                      checkpoint.save([&](Hdf5Writer& file) { save(file); });
                                    }));
    timings_.share("particles", handout.taken());
    done_ = done + static_cast<std::size_t>(handout.handed_out());
    if (process_count() == 1)
      return;
    exchange(refined);
    if (is_first_process() && checkpoint.due())
      checkpoint.save([&](Hdf5Writer& file) { save(file); });
  }

  /// Half maps of the present poses, and their correlation.
  /// @param references  whether particles will be compared with them
  void reconstruct(bool references) {
    timings_.phase("insert");
    Reconstruction reconstruction(space_, particles_, reconstruction_);
    timings_.stages(reconstruction.insert_all());
    provenance_.assume(reconstruction.findings());
    if (constexpr double noticeable = 1;
        !options_.normalise && std::abs(reconstruction.background()) > noticeable)
      provenance_.assume(options_.star.string() + ": the background of its images is " +
                         shortest(reconstruction.background()) +
                         " times their standard deviation: taken as it is; --normalise subtracts it");
    timings_.phase("make half maps");
    Progress progress("making", "half maps", 2);
    next_references_.clear();
    for (const int half : {0, 1}) {
      // What is compared with has little noise; what is written and correlated has all power.
      if (references)
        next_references_.push_back(cubic(space_, reconstruction.half_map(half)));
      half_maps_[static_cast<std::size_t>(half)] = reconstruction.half_map(half, true);
      progress.add(1);
    }
    mask_maps(next_references_);
    std::vector<CubicMap> halves{cubic(space_, half_maps_[0]), cubic(space_, half_maps_[1])};
    if (mask_.values().empty()) {
      auto masked = halves;
      mask_maps(masked);
    }
    correlation_ = correlation_of(std::move(halves));
  }

  /// Poses whose half maps agree better than all before are kept.
  void compare_with_best() {
    // One decision for all processes.
    const double now = sum_over_processes(is_first_process() ? agreement(correlation_) : 0.0);
    if (round_ == 0)
      start_agreement_ = now;
    else if (round_ == 1) {
      first_fits_ = fits_;
      if (start_agreement_ && now > *start_agreement_ - noticeable_loss && now <= best_.agreement)
        best_.agreement = -2; // as good
    }
    if (round_ > 0 && now > best_.agreement + least_gain)
      best_.round = round_; // worth another
    if (now <= best_.agreement)
      return;
    best_.agreement = now;
    best_.of = round_;
    best_.poses.clear();
    for (const auto& [name, column] : columns(particles_))
      best_.poses.push_back(column->values);
    best_.fits = fits_;
    best_.radius = radius_;
    best_.half_maps = half_maps_;
    best_.correlation = correlation_;
  }

  /// The best of all rounds, or what there was before them, in place of the last.
  void take_best() {
    char numbers[96];
    std::snprintf(numbers, sizeof numbers, "mean FSC %.4f, then %.4f", start_agreement_.value_or(0),
                  agreement(correlation_));
    if (best_.of == round_)
      return;
    if (best_.of == 0)
      provenance_.assume(
          options_.star.string() +
          ": the half maps of refined poses agree less than the half maps of the poses of the file (" +
          numbers + "): the poses are left as they were");
    else
      provenance_.took(options_.star, "the poses of round " + std::to_string(best_.of) +
                                          ", whose half maps agree best (" + shortest(best_.agreement) + ")");
    std::size_t i = 0;
    for (const auto& [name, column] : columns(particles_))
      column->values = best_.poses[i++];
    fits_ = best_.of == 0 ? first_fits_ : best_.fits;
    if (best_.of == 0)
      for (Fit& fit : fits_)
        fit.loss_after = fit.loss_before;
    else
      radius_ = best_.radius;
    half_maps_ = best_.half_maps;
    correlation_ = best_.correlation;
  }

  /// Says which particles fit with inverted contrast, and which went far.
  void name_strange_particles() const {
    std::vector<std::size_t> dark, away;
    const double far = std::max(4.0, box_ / 10.0), turned = 45;
    for (std::size_t row = 0; row < particles_.count; ++row) {
      if (fits_[row].inverted)
        dark.push_back(row);
      const PoseOfParticle pose = pose_of(particles_, row);
      if (!options_.refinement.global && ((pose.shift - start_[row].shift).norm() > far ||
                                          angle_between(start_[row].matrix, pose.matrix, symmetry_) > turned))
        away.push_back(row);
    }
    const std::string file = options_.star.string();
    if (2 * dark.size() > particles_.count || refinement_.searched_dark())
      provenance_.assume(file + ": most images fit the map with inverted contrast: dark particles?");
    else if (!dark.empty())
      provenance_.took(options_.star, std::to_string(dark.size()) +
                                          " particles that fit with inverted contrast, " + rows_text(dark));
    const std::string text = std::to_string(away.size()) + " particles that went further than " +
                             shortest(far) + " pixels or " + shortest(turned) + " degrees, " +
                             rows_text(away);
    if (100 * away.size() > particles_.count)
      provenance_.assume(file + ": " + text + ": poses that ran away?");
    else if (!away.empty())
      provenance_.took(options_.star, text);
  }

  /// What every process found of its particles, for all.
  void exchange(const std::vector<std::size_t>& refined) {
    const auto all = columns(particles_);
    auto& following = refinement_.following(); // of every particle, or none
    const std::size_t each = following.empty() ? 0 : Following::SizeAtCompileTime;
    const OnHost<double**> found("Bracewell::examples::found", particles_.count, all.size() + 4 + each);
    for (const std::size_t row : refined) {
      const Fit& fit = fits_[row];
      double* const values = &found(row, 0);
      for (std::size_t i = 0; i < all.size(); ++i)
        values[i] = all[i].second->values[row];
      std::ranges::copy(std::array{fit.loss_before, fit.loss_after, fit.inverted ? 1.0 : 0.0, 1.0},
                        values + all.size());
      if (each > 0)
        std::copy_n(following[row].data(), each, values + all.size() + 4);
    }
    processes().sum(space_, found);
    for (std::size_t row = 0; row < particles_.count; ++row) {
      const double* const values = &found(row, 0);
      if (values[all.size() + 3] == 0) // refined before
        continue;
      for (std::size_t i = 0; i < all.size(); ++i)
        all[i].second->values[row] = values[i];
      fits_[row] = {values[all.size()], values[all.size() + 1], values[all.size() + 2] != 0};
      if (each > 0)
        std::copy_n(values + all.size() + 4, each, following[row].data());
    }
    for (auto& sums : refinement_.magnification_sums()) { // the first one has them, for checkpoints
      share(sums);
      if (!is_first_process())
        sums = {};
    }
    if (options_.refinement.defocus)
      refinement_.lens_changed();
  }

  void save(Hdf5Writer& file, const std::string& name, const std::vector<Fit>& fits) const {
    std::vector<double> values;
    for (const auto& fit : fits)
      values.insert(values.end(), {fit.loss_before, fit.loss_after, fit.inverted ? 1.0 : 0.0});
    if (!fits.empty())
      file.write<double>(name, {static_cast<std::int64_t>(fits.size()), 3}, values);
  }

  std::vector<Fit> read_fits(const Hdf5Reader& file, const std::string& name) const {
    const auto values = read_exactly<double>(file, name, 3 * particles_.count);
    std::vector<Fit> fits(particles_.count);
    for (std::size_t row = 0; row < fits.size(); ++row)
      fits[row] = {values[3 * row], values[3 * row + 1], values[3 * row + 2] != 0};
    return fits;
  }

  /// A checkpoint: all that the rest of the run depends on.
  void save(Hdf5Writer& file) {
    file.write_scalar<std::int64_t>("/round", round_);
    file.write_scalar<std::int64_t>("/done", static_cast<std::int64_t>(done_));
    file.write_scalar<double>("/radius", radius_);
    const auto count = static_cast<std::int64_t>(particles_.count);
    for (const auto& [name, column] : columns(particles_))
      file.write<double>(name, {count}, column->values);
    save(file, "/fits", fits_);
    save(file, "/first_fits", first_fits_);
    if (const auto& sums = refinement_.magnification_sums(); !sums.empty()) {
      std::vector<double> values;
      for (const auto& group : sums) {
        values.insert(values.end(), group.normal.data(), group.normal.data() + 9);
        values.insert(values.end(), group.right.data(), group.right.data() + 3);
      }
      file.write<double>("/magnification", {static_cast<std::int64_t>(sums.size()), 12}, values);
      file.write<double>(
          "/following", {count, Following::SizeAtCompileTime},
          {refinement_.following().data()->data(), Following::SizeAtCompileTime * particles_.count});
    }
    file.write<float>("/mask", {box_, box_, box_}, mask_.values());
    file.write<double>("/agreement", {2}, std::array{start_agreement_.value_or(-2), best_.agreement});
    if (best_.agreement > -2) { // there is one
      file.write<std::int64_t>("/best/rounds", {2}, std::array<std::int64_t, 2>{best_.of, best_.round});
      file.write_scalar<double>("/best/radius", best_.radius);
      std::size_t i = 0;
      for (const auto& [name, column] : columns(particles_))
        file.write<double>("/best" + std::string(name), {count}, best_.poses[i++]);
      save(file, "/best/fits", best_.fits);
      for (const std::size_t half : {0, 1})
        file.write<float>("/best/half" + std::to_string(half + 1), {box_, box_, box_},
                          to_host(space_, best_.half_maps[half]));
      file.write<double>("/best/correlation", {static_cast<std::int64_t>(best_.correlation.size())},
                         best_.correlation);
    }
    for (std::size_t i = 0; i < references_.size(); ++i)
      file.write<float>("/reference" + std::to_string(i + 1), {box_, box_, box_}, references_[i].values);
  }

  void resume(const Hdf5Reader& file) {
    round_ = static_cast<int>(file.read_scalar<std::int64_t>("/round"));
    done_ = static_cast<std::size_t>(file.read_scalar<std::int64_t>("/done"));
    radius_ = file.read_scalar<double>("/radius");
    if (round_ < 0 || round_ >= rounds_ || done_ > particles_.count || !(radius_ >= 1) ||
        radius_ > box_ / 2.0)
      throw InputError(file.path().string() + ": is damaged: its round, particles or radius make no sense");
    for (const auto& [name, column] : columns(particles_))
      column->values = read_exactly<double>(file, name, particles_.count);
    const auto edge = static_cast<std::size_t>(box_), voxels = edge * edge * edge;
    fits_ = read_fits(file, "/fits");
    if (round_ > 0)
      first_fits_ = read_fits(file, "/first_fits");
    if (auto& sums = refinement_.magnification_sums(); !sums.empty() && is_first_process()) {
      const auto values = read_exactly<double>(file, "/magnification", 12 * sums.size());
      for (std::size_t group = 0; group < sums.size(); ++group) {
        std::copy_n(&values[12 * group], 9, sums[group].normal.data());
        std::copy_n(&values[12 * group + 9], 3, sums[group].right.data());
      }
    }
    if (auto& following = refinement_.following(); !following.empty()) {
      constexpr std::size_t each = Following::SizeAtCompileTime;
      const auto values = read_exactly<double>(file, "/following", each * particles_.count);
      std::ranges::copy(values, following.data()->data());
    }
    refinement_.lens_changed();
    mask_ = {box_, read_exactly<float>(file, "/mask", voxels)};
    const auto agreements = read_exactly<double>(file, "/agreement", 2);
    if (agreements[0] > -2)
      start_agreement_ = agreements[0];
    if ((best_.agreement = agreements[1]) > -2) {
      const auto rounds = read_exactly<std::int64_t>(file, "/best/rounds", 2);
      best_.of = static_cast<int>(rounds[0]);
      best_.round = static_cast<int>(rounds[1]);
      best_.radius = file.read_scalar<double>("/best/radius");
      for (const auto& [name, column] : columns(particles_))
        best_.poses.push_back(read_exactly<double>(file, "/best" + std::string(name), particles_.count));
      best_.fits = read_fits(file, "/best/fits");
      for (const std::size_t half : {0, 1})
        best_.half_maps[half] = to_device(
            space_, {box_, read_exactly<float>(file, "/best/half" + std::to_string(half + 1), voxels), {}});
      best_.correlation = read_exactly<double>(file, "/best/correlation", (edge + 1) / 2);
    }
    references_.resize(file.has_dataset("/reference2") ? 2 : 1);
    for (std::size_t i = 0; i < references_.size(); ++i)
      references_[i] = {box_, read_exactly<float>(file, "/reference" + std::to_string(i + 1), voxels), {}};
    provenance_.took(file.path(),
                     std::to_string(round_) + " rounds and " + std::to_string(done_) + " particles");
  }

  const Space& space_;
  const RunOptions& options_;
  Provenance& provenance_;
  Timings& timings_;
  Particles particles_;
  Refinement refinement_;
  int box_;
  std::vector<int> halves_;
  std::array<std::vector<std::size_t>, 2> rows_; ///< of the half sets
  bool both_ = false;                            ///< there are particles in both
  double pixel_size_ = 0;                        ///< Angstrom; 0: not known
  MapMask mask_;                                 ///< none before the first maps
  std::vector<CubicMap> maps_;                   ///< given, masked
  ReconstructionOptions reconstruction_;
  std::vector<PoseOfParticle> start_;
  std::vector<double> start_defocus_;

  static constexpr int most_rounds = 10;
  static constexpr double least_gain = 0.002, noticeable_loss = 0.002; ///< of agreement
  int rounds_ = 1;                                                     ///< at most
  int round_ = 0;                                                      ///< complete ones
  std::size_t done_ = 0;             ///< particles of the present one, those of the first half set first
  std::vector<CubicMap> references_; ///< of the present round, masked: of the half sets, or one for both
  double radius_ = 0;                ///< of the present round
  std::vector<Fit> fits_;
  std::array<Map, 2> half_maps_;          ///< the latest
  std::vector<CubicMap> next_references_; ///< of the same poses, masked
  std::vector<double> correlation_;
  std::vector<Matrix3<double>> symmetry_ = symmetry_operators(options_.refinement.symmetry);

  /// What agreed best.
  struct Best {
    double agreement = -2;
    int of = 0;                             ///< rounds that led to it
    int round = 0;                          ///< the last that was worth it
    std::vector<std::vector<double>> poses; ///< columns()
    std::vector<Fit> fits;
    double radius = 0;
    std::array<Map, 2> half_maps;
    std::vector<double> correlation;
  } best_;
  std::vector<double> given_correlation_; ///< of two maps that are given
  std::optional<double> start_agreement_; ///< of the poses as they were
  std::vector<Fit> first_fits_;           ///< of the first round
};

} // namespace

std::string refine(const Space& space, const RunOptions& options, Provenance& provenance, Timings& timings) {
  const auto start = std::chrono::steady_clock::now();
  timings.phase("read poses");
  options.refinement.sampling.check();
  const std::array halves{beside(options.out, "_half1.mrc"), beside(options.out, "_half2.mrc")};
  const fs::path correlations = beside(options.out, "_fsc.txt"),
                 picture = beside(options.out, "_fsc" + options.picture_ending);
  OutputFamily outputs({options.out, halves[0], halves[1], correlations, picture},
                       Checkpoint::path_of(options.out));
  Job job(space, options, provenance, timings);
  Checkpoint checkpoint(options.out, options.checkpoint);
  job.run(checkpoint);
  if (!is_first_process())
    return "";
  timings.phase("write");
  job.write(correlations, picture, halves);
  outputs.commit();
  checkpoint.remove();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return options.out.string() + ": " + job.summary(elapsed.count());
}

} // namespace Bracewell::Examples
