// SPDX-License-Identifier: MIT
#include "bracewell-classify/run.hpp"

#include "bracewell-classify/class_maps.hpp"
#include "bracewell-classify/expectation_step.hpp"
#include "common/handout.hpp"
#include "common/line_plot.hpp"
#include "common/memory_limit.hpp"
#include "common/mrc.hpp"
#include "common/output_family.hpp"
#include "common/picture.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"
#include "cryoem/half_maps.hpp"
#include "cryoem/map.hpp"
#include "cryoem/noise.hpp"
#include "cryoem/particle_batches.hpp"
#include "cryoem/particle_provenance.hpp"
#include "cryoem/pose_columns.hpp"
#include "cryoem/reconstruction.hpp"
#include "cryoem/report.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

/// Enough that projections are shared by many images.
std::size_t batch_size(std::size_t asked, std::size_t particles, int box) {
  constexpr std::size_t bytes = kernels_run_on_host ? 32 << 20 : 256 << 20, most = 4096;
  const auto pixels = static_cast<std::size_t>(box) * static_cast<std::size_t>(box);
  return std::clamp<std::size_t>(
      asked > 0 ? asked : std::min(most, std::max<std::size_t>(64, bytes / (sizeof(float) * pixels))), 1,
      particles);
}

/// Diameter of the sphere that holds nearly all of the density's square, with a margin, pixels. Density below a tenth of the
/// largest does not count.
double diameter_of(const std::vector<float>& map, int box) {
  constexpr double part = 0.99, margin = 1.2, least = 0.3;
  const float limit = 0.1f * std::ranges::max(map);
  std::vector<double> squares(static_cast<std::size_t>(box) + 1, 0.0);
  std::size_t voxel = 0;
  for (int z = -(box / 2); z < box - box / 2; ++z)
    for (int y = -(box / 2); y < box - box / 2; ++y)
      for (int x = -(box / 2); x < box - box / 2; ++x, ++voxel)
        if (map[voxel] > limit)
          squares[static_cast<std::size_t>(std::min<double>(box, std::hypot(x, y, z)))] +=
              double(map[voxel]) * map[voxel];
  const double all = std::accumulate(squares.begin(), squares.end(), 0.0);
  double sum = 0;
  std::size_t radius = 0;
  while (radius < squares.size() && sum < part * all)
    sum += squares[radius++];
  return std::clamp(margin * 2 * double(radius), least * box, double(box));
}

/// Of a map, or of a stack of averages.
fs::path half_beside(const fs::path& path, std::size_t half) {
  return beside(path, "_half" + std::to_string(half + 1) + path.extension().string());
}

/// Classes have maps (D = 3), or averages in the plane (D = 2).
template <int D>
class Job {
public:
  Job(const Space& space, const ClassifyOptions& options, Provenance& provenance, Timings& timings)
      : space_(space), options_(options), provenance_(provenance), timings_(timings),
        particles_(read_particles(
            options.star, {.pixel_size = options.pixel_size, .b_factor_sign = options.b_factor_sign})),
        box_(static_cast<int>(particles_.image_width)), classes_(static_cast<std::size_t>(options.classes)),
        apart_(options.halves_apart || options.classes == 1) {
    if (particles_.image_width != particles_.image_height || box_ < 16)
      throw InputError(
          particles_.stacks[0].path.string() + ": expected square images of 16 pixels or more, found " +
          std::to_string(particles_.image_width) + " x " + std::to_string(particles_.image_height));
    if (D == 3 && options.references.size() > 1 && options.references.size() != classes_)
      throw InputError("--reference: expected one map or " + std::to_string(classes_) +
                       ", one for each class, found " + std::to_string(options.references.size()));
    require_one_pixel_size(particles_);
    if (particles_.pixel_size.present())
      pixel_size_ = particles_.pixel_size[0];
    for (const auto& [name, given] : {std::pair("--particle-diameter", options.particle_diameter),
                                      std::pair("--initial-low-pass", options.initial_low_pass)})
      if (given && !(pixel_size_ > 0))
        throw InputError(options.star.string() + ": states no pixel size, which " + name +
                         " needs; use --pixel-size");
    if (options.particle_diameter &&
        (*options.particle_diameter > box_ * pixel_size_ || *options.particle_diameter < 4 * pixel_size_))
      throw InputError("--particle-diameter: expected " + shortest(4 * pixel_size_) + " to " +
                       shortest(box_ * pixel_size_) + " Angstrom, found " +
                       shortest(*options.particle_diameter));
    const bool posed = particles_.rot.present() && particles_.tilt.present() && particles_.psi.present();
    if (D == 3 && options.references.empty() && !posed)
      throw InputError(options.star.string() +
                       ": has no angles (rlnAngleRot): expected a map to begin with, --reference");
    for (std::size_t row = 0; row < particles_.count; ++row)
      if (const auto m = magnification(particles_, row);
          std::abs(m(0, 0) - 1) + std::abs(m(0, 1)) + std::abs(m(1, 0)) + std::abs(m(1, 1) - 1) > 1e-6) {
        particles_.warnings.push_back(options.star.string() + ": row " + std::to_string(row + 1) +
                                      ": has a magnification (rlnMagMat00), which is taken as 1");
        break;
      }
    for (const auto& path : options.references)
      read(path);
    if (D == 2 && !maps_.empty() && maps_.size() != classes_)
      throw InputError("--reference: expected a stack of " + std::to_string(classes_) +
                       " images, one for each class, found " + std::to_string(maps_.size()));
    if (D == 3 && maps_.empty())
      reconstruct_reference();
    batch_ = batch_size(options.batch, particles_.count, box_);
    if (!options.no_ctf && has_ctf(particles_))
      contrast_ = Contrast(space, particles_, box_, batch_);
    else if (!options.no_ctf)
      particles_.warnings.push_back(
          particles_.file.string() +
          ": has no contrast transfer (rlnDefocusU, rlnVoltage): the images are taken as projections");
    share_out();
    choose_diameter();
    constexpr double periods = D == 3 ? 4 : 8; // across a particle, of the first iteration
    radius_ = options.initial_low_pass ? box_ * pixel_size_ / *options.initial_low_pass
                                       : std::min(most_radius(), periods * box_ / diameter_);
    if (!(radius_ >= 2 && radius_ <= most_radius()))
      throw InputError("--initial-low-pass: expected " + shortest(box_ * pixel_size_ / most_radius()) +
                       " to " + shortest(box_ * pixel_size_ / 2) + " Angstrom, found " +
                       shortest(*options.initial_low_pass));
    const double padded = 2.0 * box_, candidates = D == 2 ? 4 : 1;
    require_memory("classifying into " + std::to_string(classes_) + " classes in a box of " +
                       std::to_string(box_) + " pixels",
                   resident_bytes() +
                       sizeof(float) * std::pow(padded, D) * (3 + 5.0 * candidates * double(classes_)) +
                       ParticleBatches::bytes_needed(particles_, batch_),
                   memory_limit(options.memory_limit));
    first_radius_ = radius_;
    priors_.assign(classes_, 1.0 / double(classes_));
    found_.resize(particles_.count);
  }

  void run(Checkpoint& checkpoint) {
    note_particles(provenance_, particles_, contrast_.present());
    provenance_.say();
    add_poses(particles_);
    step_.emplace(space_, contrast_, box_, batch_, options_.reproducible, options_.share);
    if (checkpoint.resumed()) {
      resume(*checkpoint.resumed());
    } else {
      begin();
      if (D == 2 && maps_.empty())
        find_classes();
      else if (maps_.size() < classes_)
        choose_start();
    }
    const int most = options_.iterations.value_or(most_iterations);
    while (iteration_ < most && !(settled_ && !options_.iterations)) {
      iterate();
      if (is_first_process() && checkpoint.due() && iteration_ < most)
        checkpoint.save([&](Hdf5Writer& file) { save(file); });
    }
  }

  fs::path picture(int iteration) const {
    return beside(options_.out, "_iteration" + std::to_string(iteration) + options_.picture_ending);
  }

  void write(const std::vector<fs::path>& maps, const fs::path& model) {
    enter_columns();
    if (options_.pixel_size)
      set_pixel_size(particles_, *options_.pixel_size);
    move_image_names(particles_, options_.out);
    write_star(options_.out, particles_.document, provenance_.lines());
    const auto write_map = [&](const fs::path& path, const std::vector<float>& values) {
      write_volume(path, values, {box_, box_, box_},
                   {.pixel_size = pixel_size_, .labels = provenance_.lines(), .may_be_constant = true});
    };
    const auto write_stack = [&](const fs::path& path, const auto& values_of) {
      MrcWriter writer(path, MrcWriter::Kind::Stack, box_, box_,
                       {.pixel_size = pixel_size_, .labels = provenance_.lines(), .may_be_constant = true});
      for (const ClassMap& map : maps_)
        writer.write(values_of(map));
      writer.close();
    };
    for (std::size_t k = 0; k < maps.size(); ++k) {
      if constexpr (D == 3)
        write_map(maps[k], maps_[k].values);
      else
        write_stack(maps[k], [](const ClassMap& map) { return map.values; });
      for (const std::size_t half : {0, 1})
        if (apart_ && D == 3)
          write_map(half_beside(maps[k], half), maps_[k].halves[half]);
        else if (apart_)
          write_stack(half_beside(maps[k], half), [&](const ClassMap& map) { return map.halves[half]; });
    }
    write_model(model, maps);
  }

  std::string summary(double seconds) const {
    std::string text = std::to_string(particles_.count) + " particles in " + std::to_string(classes_) +
                       (classes_ == 1 ? " class:" : " classes:");
    for (std::size_t k = 0; k < classes_; ++k)
      text += std::string(k > 0 ? "," : "") + " " + caption(k);
    char end[96];
    std::snprintf(end, sizeof end, "; %d iterations, %.3g s", iteration_, seconds);
    return text + end;
  }

private:
  double most_radius() const { return box_ / 2 - 1; }

  /// A map to begin with, or a stack of images.
  void read(const fs::path& path) {
    if constexpr (D == 3) {
      CubicMap map =
          read_map_for(particles_, box_, pixel_size_, provenance_, path, memory_limit(options_.memory_limit));
      maps_.push_back({.values = std::move(map.values), .correlation = {}});
    } else {
      const MrcReader reader(path);
      const auto& size = reader.header().size;
      if (size[0] != box_ || size[1] != box_)
        throw InputError(path.string() + ": expected images of " + std::to_string(box_) + " x " +
                         std::to_string(box_) + " pixels, found " + std::to_string(size[0]) + " x " +
                         std::to_string(size[1]));
      const std::vector<float> stack = reader.read_volume();
      for (std::size_t begin = 0; begin < stack.size(); begin += std::size_t(box_) * std::size_t(box_))
        maps_.push_back({.values = {stack.begin() + std::ptrdiff_t(begin),
                                    stack.begin() + std::ptrdiff_t(begin) + std::ptrdiff_t(box_) * box_},
                         .correlation = {}});
      provenance_.took(path, std::to_string(maps_.size()) + " images to begin with");
    }
  }

  /// A map of all particles, by the poses that they have.
  void reconstruct_reference() {
    timings_.phase("make reference");
    ReconstructionOptions reconstruction;
    reconstruction.symmetry = options_.search.symmetry;
    if (options_.no_ctf)
      reconstruction.ctf = false;
    reconstruction.reproducible = options_.reproducible;
    require_memory_for_reconstruction(particles_, reconstruction, memory_limit(options_.memory_limit));
    Reconstruction all(space_, particles_, reconstruction);
    timings_.stages(all.insert_all());
    maps_.push_back({.values = to_host(space_, all.whole_map()), .correlation = {}});
    provenance_.took(options_.star, "a map of all particles by their poses, which the classes begin with");
  }

  /// Rows of the half sets.
  void share_out() {
    halves_ = half_sets(particles_);
    const auto firsts = std::ranges::count(halves_, 0);
    if (firsts == 0 || firsts == std::ssize(halves_)) { // one alone tells no noise
      particles_.warnings.push_back(
          options_.star.string() +
          ": has particles in one half set alone (rlnRandomSubset): odd and even rows "
          "are taken");
      for (std::size_t row = 0; row < halves_.size(); ++row)
        halves_[row] = static_cast<int>(row % 2);
    }
    if (particles_.count < 2 * classes_)
      throw InputError(options_.star.string() + ": expected " + std::to_string(2 * classes_) +
                       " particles or more for so many classes, found " + std::to_string(particles_.count));
  }

  /// Of a particle in a split by chance: a hash of its row.
  std::size_t first_class(std::size_t row, std::uint64_t start) const {
    return static_cast<std::size_t>(NormalDeviates::hash(row + (start + 1) * 0x9e3779b97f4a7c15u) >> 11) %
           classes_;
  }

  void choose_diameter() {
    if (options_.particle_diameter) {
      diameter_ = *options_.particle_diameter / pixel_size_;
    } else if (D == 2) {
      constexpr double part = 0.9; // of the box
      diameter_ = part * box_;
      provenance_.assume("particles of " + length(diameter_) +
                         " across, nine tenths of the box; say it with --particle-diameter");
    } else {
      for (const auto& map : maps_)
        diameter_ = std::max(diameter_, diameter_of(map.values, box_));
      provenance_.took(options_.references.empty() ? options_.star : options_.references[0],
                       "a particle of " + length(diameter_) + " across");
    }
  }

  std::string length(double pixels) const {
    return pixel_size_ > 0 ? shortest(pixels * pixel_size_) + " Angstrom" : shortest(pixels) + " pixels";
  }

  SoftSphere mask() const { return {.radius = std::min(diameter_ / 2, box_ / 2.0 - 1), .edge = 5}; }

  /// The maps that particles of a half set are compared with: under the mask.
  std::vector<std::vector<float>> masked_maps(std::size_t half = 0) const {
    std::vector<std::vector<float>> result;
    for (const auto& map : maps_) {
      const auto& values = map.halves[half].empty() ? map.values : map.halves[half];
      const auto average = average_on_device<D>(space_, values, box_);
      apply_mask(space_, average, mask());
      result.push_back(average_on_host(space_, average));
    }
    return result;
  }

  /// Noise as the power of images, and references on the scale of the images.
  void begin() {
    timings_.phase("noise");
    std::vector<std::size_t> all(particles_.count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    const Share mine = processes().share(static_cast<std::int64_t>(all.size()));
    Handout handout(mine, static_cast<std::int64_t>(batch_));
    ParticleBatches batches(space_, particles_, batch_, true);
    std::vector<double> powers(static_cast<std::size_t>(box_), 0.0);
    {
      Progress progress("measuring", "images", mine.size());
      timings_.stages(batches.for_each(all, handout,
                                       [&](const Part<float***>& images, std::span<const std::size_t> rows) {
                                         step_->add_powers(images, rows, powers);
                                         progress.add(std::ssize(rows));
                                       }));
    }
    add_over_processes(powers);
    for (double& value : powers)
      value /= double(particles_.count);
    provenance_.assume(findings_in_images(particles_, halves_, batches.seen()));
    // Shells in the corners may be empty.
    for (std::size_t s = 1; s < powers.size(); ++s)
      if (!(powers[s] > 0))
        powers[s] = powers[s - 1];
    if (!(powers[0] > 0))
      powers[0] = powers[1];
    if (!(std::ranges::min(powers) > 0))
      throw InputError(options_.star.string() +
                       ": expected images with something in them, found images of one "
                       "value or without fine detail");
    noise_ = powers;
    if (!maps_.empty())
      scale_references();
  }

  /// Brings references to the scale of images: by the likelihood of some images, from a scale at which they explain all of
  /// their power on.
  void scale_references() {
    constexpr std::size_t most = 128;
    constexpr int rounds = 4;
    timings_.phase("scale");
    std::vector<std::size_t> rows;
    const std::size_t count = std::min(most, particles_.count);
    for (std::size_t i = 0; i < count; ++i)
      rows.push_back(i * particles_.count / count);
    const std::vector<double> priors(maps_.size(), 1.0 / double(maps_.size()));
    SearchOptions coarse = options_.search;
    coarse.healpix_order = std::min(1, coarse.healpix_order);
    const SearchPlan search(box_, radius_, diameter_, coarse);
    double scale = 1;
    Progress progress("scaling", "rounds", rounds + 1);
    for (int round = 0; round <= rounds; ++round) {
      step_->begin(search, masked_maps(), noise_);
      ShellSums sums;
      Handout handout(Share{0, static_cast<std::int64_t>(count)}, static_cast<std::int64_t>(batch_));
      ParticleBatches batches(space_, particles_, batch_, true);
      batches.for_each(rows, handout, [&](const Part<float***>& images, std::span<const std::size_t> part) {
        step_->run(images, part, places(part), priors, -1, nullptr, sums);
      });
      double powers = 0, products = 0, squares = 0;
      for (std::size_t s = 1; s < sums.sizes.size(); ++s) {
        powers += sums.values[3 * s] / noise_[s];
        products += sums.values[3 * s + 1] / noise_[s];
        squares += sums.values[3 * s + 2] / noise_[s];
      }
      if (!(squares > 0))
        throw InputError("--reference: expected a map with something in it up to " + period(radius_) +
                         ", found none");
      const double factor = round == 0 ? std::sqrt(powers / squares) : products / squares;
      if (!(factor > 1e-6)) {
        provenance_.assume(options_.star.string() +
                           ": images do not fit the reference at any scale above 0: dark particles?");
        break;
      }
      scale *= factor;
      for (auto& map : maps_)
        for (float& value : map.values)
          value = static_cast<float>(factor * value);
      progress.add(1);
    }
    provenance_.took(options_.references.empty() ? options_.star : options_.references[0],
                     "density times " + shortest(scale) + ", the scale of the images");
  }

  std::vector<Eigen::Vector2d> places(std::span<const std::size_t> rows) const {
    std::vector<Eigen::Vector2d> result;
    for (const std::size_t row : rows)
      result.push_back({-particles_.origin_y[row], -particles_.origin_x[row]});
    return result;
  }

  std::string period(double radius) const { return length(box_ / radius); }

  /// Particles that classes are found with.
  std::vector<std::size_t> some_particles() const {
    constexpr std::size_t most_of_class = 500;
    std::vector<std::size_t> rows(particles_.count);
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    if (rows.size() > most_of_class * classes_) { // by chance, for rows may alternate between half sets
      std::ranges::sort(rows, {}, [](std::size_t row) { return NormalDeviates::hash(row); });
      rows.resize(most_of_class * classes_);
      std::ranges::sort(rows);
    }
    return rows;
  }

  /// Classes that begin with one map are found by expectation-maximisation at low frequencies, from several splits of some
  /// particles by chance. From each it cools down: with more noise than there is posteriors are flat, and particles change
  /// their class easily (deterministic annealing, Ueda and Nakano, Neural Networks 11 (1998) 271). Then it goes on until hardly
  /// a particle changes its class: on the way one class often holds nearly all particles for some iterations, and its
  /// likelihood is the largest then. The classes under which the images are likeliest in the end go on.
  void choose_start() {
    constexpr std::array temperatures{1.0, 3.0, 1.7};
    constexpr int most_rounds = 20, quiet_rounds = 2;
    constexpr double few = 0.01; // of the particles change their class in a quiet round
    const std::vector<std::size_t> rows = some_particles();
    SearchOptions coarse = options_.search;
    coarse.healpix_order = std::min(1, coarse.healpix_order); // at low frequencies further passes suffice
    const SearchPlan search(box_, radius_, diameter_, coarse);
    const auto first_maps = maps_;
    const auto first_noise = noise_;
    std::vector<ClassMap> best_maps;
    std::vector<double> best_noise, best_priors, evidences;
    for (int start = 0; start < options_.starts; ++start) {
      maps_ = first_maps;
      noise_ = first_noise;
      priors_.assign(classes_, 1.0 / double(classes_));
      std::optional<std::uint64_t> split = static_cast<std::uint64_t>(start);
      std::vector<int> before(particles_.count, -1);
      for (int round = 0, quiet = 0; round < most_rounds && quiet < quiet_rounds; ++round) {
        const auto at = static_cast<std::size_t>(round);
        maximise(search, rows, split, at < temperatures.size() ? temperatures[at] : 1,
                 "start " + std::to_string(start + 1));
        split.reset();
        double changed = 0;
        for (const std::size_t row : seen_)
          changed += std::exchange(before[row], found_[row].class_index) != found_[row].class_index ? 1 : 0;
        const bool same = sum_over_processes(changed) <= few * double(rows.size());
        quiet = same && at >= temperatures.size() ? quiet + 1 : 0;
      }
      double evidence = 0;
      for (const std::size_t row : seen_)
        evidence += std::isfinite(found_[row].log_evidence) ? found_[row].log_evidence : 0;
      evidence = sum_over_processes(evidence);
      if (evidences.empty() || evidence > std::ranges::max(evidences)) {
        best_maps = maps_;
        best_noise = noise_;
        best_priors = priors_;
      }
      evidences.push_back(evidence);
    }
    maps_ = std::move(best_maps);
    noise_ = std::move(best_noise);
    priors_ = std::move(best_priors);
    std::ranges::fill(found_, Found{});
    const auto best = std::ranges::max_element(evidences);
    char text[160];
    std::snprintf(text, sizeof text,
                  "start %td of %zu is the likeliest; the others have a log-likelihood smaller by up to %.4g",
                  best - evidences.begin() + 1, evidences.size(), *best - std::ranges::min(evidences));
    say(text);
  }

  /// Classes in the plane begin with the images of some particles. Each start takes other ones, three for each class, and lets them
  /// compete at low frequencies. Of its classes and those of the starts before, the ones stay that explain the images best
  /// together: a view is missing only if no start has found it. Later starts take particles that the classes so far explain
  /// worse than others.
  void find_classes() {
    constexpr std::size_t seeds_of_class = 3;
    constexpr std::array temperatures{1.0, 1.5, 1.0, 1.0};
    constexpr int most_rounds = 20, quiet_rounds = 2;
    constexpr double few = 0.01; // of the particles change their class in a quiet round
    const std::size_t wanted = classes_;
    const std::vector<std::size_t> rows = some_particles();
    SearchPlan search(box_, radius_, diameter_, options_.search);
    search.passes.resize(1); // enough to tell classes apart, and the cheapest where posteriors are broad
    const auto first_noise = noise_;
    std::vector<ClassMap> best_maps;
    std::vector<double> best_noise, best_priors,
        explained; // the last: [rows] log-evidence of the likeliest class
    double best_evidence = std::numeric_limits<double>::lowest();
    for (int start = 0; start < options_.starts; ++start) {
      const std::string name = "start " + std::to_string(start + 1);
      noise_ = first_noise;
      maps_ = images_of(seeds(rows, explained, std::min(seeds_of_class * wanted, rows.size()), start));
      classes_ = maps_.size();
      priors_.assign(classes_, 1.0 / double(classes_));
      for (const double temperature : temperatures)
        maximise(search, rows, {}, temperature, name);
      centre();
      maps_.insert(maps_.end(), best_maps.begin(), best_maps.end());
      const auto chosen = best_together(evidence_of_classes(search, rows), rows.size(), wanted, explained);
      std::vector<ClassMap> kept;
      for (const std::size_t k : chosen)
        kept.push_back(std::move(maps_[k]));
      classes_ = wanted;
      maps_ = std::move(kept);
      priors_.assign(classes_, 1.0 / double(classes_));
      std::vector<int> before(particles_.count, -1);
      for (int round = 0, quiet = 0; round < most_rounds && quiet < quiet_rounds; ++round) {
        maximise(search, rows, {}, 1, name);
        double changed = 0;
        for (const std::size_t row : seen_)
          changed += std::exchange(before[row], found_[row].class_index) != found_[row].class_index ? 1 : 0;
        quiet = sum_over_processes(changed) <= few * double(rows.size()) ? quiet + 1 : 0;
      }
      double evidence = 0;
      for (const std::size_t row : seen_)
        evidence += std::isfinite(found_[row].log_evidence) ? found_[row].log_evidence : 0;
      evidence = sum_over_processes(evidence);
      if (evidence > best_evidence) {
        best_evidence = evidence;
        best_maps = maps_;
        best_noise = noise_;
        best_priors = priors_;
      }
      char text[120];
      std::snprintf(text, sizeof text, "%s: log-likelihood %.8g, the best so far %.8g", name.c_str(),
                    evidence, best_evidence);
      say(text);
    }
    maps_ = std::move(best_maps);
    noise_ = std::move(best_noise);
    priors_ = std::move(best_priors);
    std::ranges::fill(found_, Found{});
  }

  /// Rows that a start begins with: by chance, of the half that is explained worst.
  std::vector<std::size_t> seeds(const std::vector<std::size_t>& rows, const std::vector<double>& explained,
                                 std::size_t count, int start) const {
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (!explained.empty()) {
      std::ranges::stable_sort(order, {}, [&](std::size_t i) { return explained[i]; });
      order.resize(std::max(count, order.size() / 2));
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t i) {
      return NormalDeviates::hash(rows[i] + (std::uint64_t(start) + 1) * 0x9e3779b97f4a7c15u);
    });
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < count; ++i)
      result.push_back(rows[order[i]]);
    std::ranges::sort(result);
    return result;
  }

  std::vector<ClassMap> images_of(const std::vector<std::size_t>& rows) {
    std::vector<ClassMap> result;
    Handout handout(Share{0, std::ssize(rows)}, static_cast<std::int64_t>(batch_));
    ParticleBatches batches(space_, particles_, batch_, true);
    batches.for_each(rows, handout, [&](const Part<float***>& images, std::span<const std::size_t> part) {
      for (auto& image : step_->restored(images, part))
        result.push_back({.values = std::move(image), .correlation = {}});
    });
    return result;
  }

  /// Moves averages by whole pixels, so that the middle of what is bright is in the middle of the box.
  void centre() {
    const SoftSphere sphere = mask();
    const int middle = box_ / 2;
    for (ClassMap& map : maps_) {
      const float limit = 0.3f * std::ranges::max(map.values);
      double sum = 0, rows = 0, columns = 0;
      for (int y = 0; y < box_; ++y)
        for (int x = 0; x < box_; ++x) {
          const double value =
              std::max(0.0f, map.values[std::size_t(y) * std::size_t(box_) + std::size_t(x)] - limit) *
              sphere(std::hypot(double(y - middle), double(x - middle)));
          sum += value;
          rows += value * (y - middle);
          columns += value * (x - middle);
        }
      if (!(sum > 0))
        continue;
      const int down = static_cast<int>(std::lround(rows / sum)),
                right = static_cast<int>(std::lround(columns / sum));
      const std::vector<float> old = map.values;
      for (int y = 0; y < box_; ++y)
        for (int x = 0; x < box_; ++x)
          map.values[std::size_t(y) * std::size_t(box_) + std::size_t(x)] =
              old[std::size_t((y + down + box_) % box_) * std::size_t(box_) +
                  std::size_t((x + right + box_) % box_)];
    }
  }

  /// [rows, classes] log-evidence of particles in each class alone.
  std::vector<double> evidence_of_classes(const SearchPlan& search, const std::vector<std::size_t>& rows) {
    const std::size_t count = maps_.size();
    std::vector<double> result(rows.size() * count, 0.0);
    const auto maps = masked_maps();
    const std::vector<double> one{1.0};
    std::vector<std::size_t> index(particles_.count);
    for (std::size_t i = 0; i < rows.size(); ++i)
      index[rows[i]] = i;
    for (std::size_t k = 0; k < count; ++k) {
      step_->begin(search, std::span(&maps[k], 1), noise_);
      ShellSums shells;
      Handout handout(processes().share(std::ssize(rows)), static_cast<std::int64_t>(batch_));
      ParticleBatches batches(space_, particles_, batch_, true);
      batches.for_each(rows, handout, [&](const Part<float***>& images, std::span<const std::size_t> part) {
        const auto found = step_->run(images, part, places(part), one, -1, nullptr, shells);
        for (std::size_t i = 0; i < part.size(); ++i)
          result[index[part[i]] * count + k] =
              std::isfinite(found[i].log_evidence) ? found[i].log_evidence : -1e30;
      });
    }
    add_over_processes(result);
    return result;
  }

  /// The classes that explain the particles best together, each particle by its likeliest class: one after the other, then by
  /// exchanges of one for another.
  static std::vector<std::size_t> best_together(const std::vector<double>& evidence, std::size_t particles,
                                                std::size_t wanted, std::vector<double>& explained) {
    const std::size_t count = evidence.size() / particles;
    std::vector<std::size_t> chosen;
    const auto explained_by = [&](std::span<const std::size_t> classes) {
      std::vector<double> best(particles, std::numeric_limits<double>::lowest());
      for (std::size_t i = 0; i < particles; ++i)
        for (const std::size_t k : classes)
          best[i] = std::max(best[i], evidence[i * count + k]);
      return best;
    };
    /// Adds the class that explains most beside the ones chosen; returns what they explain then.
    const auto add_best = [&] {
      const auto best = explained_by(chosen);
      std::size_t which = 0;
      double most = std::numeric_limits<double>::lowest();
      for (std::size_t k = 0; k < count; ++k) {
        if (std::ranges::find(chosen, k) != chosen.end())
          continue;
        double sum = 0;
        for (std::size_t i = 0; i < particles; ++i)
          sum += std::max(best[i], evidence[i * count + k]);
        if (sum > most) {
          most = sum;
          which = k;
        }
      }
      chosen.push_back(which);
      return most;
    };
    double most = 0;
    while (chosen.size() < wanted)
      most = add_best();
    constexpr std::size_t most_exchanges = 10;
    for (std::size_t unchanged = 0, turn = 0; unchanged < wanted && turn < most_exchanges * wanted; ++turn) {
      const auto before = chosen;
      chosen.erase(chosen.begin());
      const double now = add_best();
      unchanged = now > most ? 0 : unchanged + 1;
      most =
          std::max(most, now); // if nothing is better, the class that was taken out comes back, as the last
    }
    explained = explained_by(chosen);
    return chosen;
  }

  void say(const std::string& line) {
    history_.push_back(line);
    if (is_first_process())
      std::fprintf(stderr, "bracewell-classify: %s\n", line.c_str());
  }

  /// One iteration over some particles: expectation, noise, sizes of classes and maps. Returns the last shell that half maps
  /// of large classes resolve.
  /// @param split        each particle has the class of this split by chance; absent: any class
  /// @param temperature  factor on the noise
  double maximise(const SearchPlan& search, std::span<const std::size_t> particles,
                  std::optional<std::uint64_t> split, double temperature, const std::string& name) {
    timings_.phase("prepare");
    auto noise = noise_;
    for (double& value : noise)
      value *= temperature;
    const auto begin = [&](std::size_t half) {
      auto references = masked_maps(half);
      if (split)
        references.resize(1);
      step_->begin(search, references, noise);
    };
    begin(0);
    const std::array sums{step_->sums(classes_), step_->sums(classes_)};
    timings_.phase("expectation");
    ShellSums shells;
    seen_.clear();
    std::vector<double> shares(classes_, 0.0);
    {
      const std::int64_t mine = processes().share(std::ssize(particles)).size();
      Progress progress(name + ": comparing", "particles", mine);
      ParticleBatches batches(space_, particles_, batch_, true);
      for (const int half : {0, 1}) {
        if (half == 1 && !maps_[0].halves[1].empty())
          begin(1);
        for (int one = split ? 0 : -1; one < (split ? static_cast<int>(classes_) : 0); ++one) {
          std::vector<std::size_t> rows;
          for (const std::size_t row : particles)
            if (halves_[row] == half &&
                (one < 0 || first_class(row, *split) == static_cast<std::size_t>(one)))
              rows.push_back(row);
          if (rows.empty())
            continue;
          Handout handout(processes().share(static_cast<std::int64_t>(rows.size())),
                          static_cast<std::int64_t>(batch_)); // fixed: the order of a sum is its last bits
          timings_.stages(batches.for_each(
              rows, handout, [&](const Part<float***>& images, std::span<const std::size_t> part) {
                auto found = step_->run(images, part, places(part), priors_, one,
                                        &sums[static_cast<std::size_t>(half)], shells);
                for (std::size_t i = 0; i < part.size(); ++i) {
                  for (std::size_t k = 0; k < classes_; ++k)
                    shares[k] += found[i].shares[k];
                  found_[part[i]] = std::move(found[i]);
                }
                seen_.insert(seen_.end(), part.begin(), part.end());
                progress.add(std::ssize(part));
              }));
        }
      }
    }
    timings_.phase("exchange");
    exchange(sums, shells, shares);
    timings_.phase("maps");
    take_noise(shells);
    const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (std::size_t k = 0; k < classes_; ++k)
      priors_[k] = all > 0 ? shares[k] / all : 1.0 / double(classes_);
    ClassMaps<D> maker(
        space_, box_, step_->padded(),
        {.symmetry = options_.search.symmetry,
         .mask = mask(),
         .signal_part = std::min(0.5, std::numbers::pi / (D == 3 ? 6 : 4) * std::pow(diameter_ / box_, D)),
         .tau = options_.tau,
         .join = apart_ ? first_radius_ : 0});
    std::optional<SignalAndNoise> common;
    if (D == 2) // small classes would be told to be noise, and large ones would grow at their cost
      common = maker.powers(sums);
    double last = 0;
    {
      Progress progress(name + ": making", "maps", static_cast<std::int64_t>(classes_));
      maps_.resize(classes_);
      for (std::size_t k = 0; k < classes_; ++k) {
        maps_[k] = maker.make(sums, k, common ? &*common : nullptr);
        if (priors_[k] > 0.5 / double(classes_) || classes_ == 1)
          last = std::max(last, last_shell(maps_[k].correlation));
        progress.add(1);
      }
    }
    return last;
  }

  void iterate() {
    const SearchPlan search(box_, radius_, diameter_, options_.search);
    std::vector<std::size_t> all(particles_.count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::vector<int> before(particles_.count);
    for (std::size_t row = 0; row < particles_.count; ++row)
      before[row] = found_[row].class_index;
    const double last = maximise(search, all, {}, 1, "iteration " + std::to_string(iteration_ + 1));
    exchange_poses();
    ++iteration_;
    std::size_t changed = 0;
    for (std::size_t row = 0; row < particles_.count; ++row)
      changed += found_[row].class_index != before[row] ? 1 : 0;
    compared_ = radius_;
    const double wanted = std::clamp(last + std::max(2.0, 0.25 * last), 3.0, most_radius());
    const bool same = wanted <= farthest_ + 0.5;
    farthest_ = std::max(farthest_, wanted);
    radius_ = wanted;
    quiet_ = same && double(changed) <= 0.005 * double(particles_.count) ? quiet_ + 1 : 0;
    settled_ = quiet_ >= 2;
    char text[160];
    std::snprintf(text, sizeof text, "iteration %d: up to %s, %zu passes, %.3g %% changed class;", iteration_,
                  period(compared_).c_str(), search.passes.size(),
                  100 * double(changed) / double(particles_.count));
    std::string line = text;
    for (std::size_t k = 0; k < classes_; ++k)
      line += std::string(k > 0 ? "," : "") + " " + caption(k);
    say(line);
    if (is_first_process())
      draw();
  }

  std::string caption(std::size_t k) const {
    char text[64];
    std::snprintf(text, sizeof text, "%zu (%.1f %%, %s)", k + 1, 100 * priors_[k],
                  resolution_text(maps_[k].correlation, 0.143, box_, pixel_size_).c_str());
    return text;
  }

  /// Rows of averages, the largest class first.
  std::vector<Picture> averages_by_size() const {
    constexpr std::size_t across = 5;
    std::vector<std::size_t> order(classes_);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater(), [this](std::size_t k) { return priors_[k]; });
    std::vector<Picture> rows, row;
    for (const std::size_t k : order) {
      row.push_back(grey_panel({.caption = "class " + caption(k),
                                .values = maps_[k].values,
                                .width = box_,
                                .height = box_,
                                .range = percentile_range(maps_[k].values, 0.005, 0.999),
                                .pixel_size = pixel_size_ > 0 ? pixel_size_ : 1,
                                .unit = pixel_size_ > 0 ? "\u00c5" : "px",
                                .points = 240}));
      if (row.size() == across || k == order.back())
        rows.push_back(side_by_side(std::exchange(row, {})));
    }
    return rows;
  }

  void draw() const {
    std::vector<Picture> rows;
    LinePlot plot{.title = "correlation of half maps of each class",
                  .x_label = pixel_size_ > 0 ? "resolution (A)" : "resolution (pixels)",
                  .y_label = "correlation",
                  .x_as_period = true,
                  .thresholds = {{0.143, "0.143"}, {0.5, "0.5"}},
                  .y_range = PlotRange{-0.1, 1.05}};
    if constexpr (D == 2)
      rows = averages_by_size();
    for (std::size_t k = 0; k < classes_; ++k) {
      if constexpr (D == 3)
        rows.push_back(
            central_slices({.caption = "class " + caption(k), .values = maps_[k].values}, box_, pixel_size_));
      Curve curve{.label = "class " + std::to_string(k + 1), .x = {}, .y = maps_[k].correlation};
      for (std::size_t s = 0; s < curve.y.size(); ++s)
        curve.x.push_back(double(s) / (box_ * (pixel_size_ > 0 ? pixel_size_ : 1)));
      plot.curves.push_back(std::move(curve));
    }
    rows.push_back(draw_line_plot(plot));
    write_picture(picture(iteration_), stacked(rows));
  }

  /// The variance of noise, as residuals of the present maps have it.
  void take_noise(const ShellSums& shells) {
    for (std::size_t s = 0; s < shells.sizes.size() && s < noise_.size(); ++s) {
      if (shells.sizes[s] == 0 || !(shells.images > 0))
        continue;
      const double* const own = &shells.values[3 * s];
      const double count = 2 * double(shells.sizes[s]) * shells.images;
      constexpr double least = 1e-3; // of the power: noise-free images would leave none
      noise_[s] = std::max(own[0] - 2 * own[1] + own[2], least * own[0]) / count;
    }
  }

  /// Sums over processes.
  void add_over_processes(std::vector<double>& values) const {
    if (process_count() == 1)
      return;
    const OnHost<double*> all("Bracewell::examples::sums", values.size());
    std::ranges::copy(values, all.data());
    sum_over_processes(space_, true, all);
    std::copy_n(all.data(), values.size(), values.begin());
  }

  /// Sums of what every process found, for all.
  void exchange(const std::array<HalfSums<D>, 2>& sums, ShellSums& shells, std::vector<double>& shares) {
    if (process_count() == 1)
      return;
    sum_over_processes(space_, options_.reproducible, sums[0].data, sums[0].weight, sums[1].data,
                       sums[1].weight);
    std::vector<double> numbers = shells.values;
    numbers.insert(numbers.end(), shares.begin(), shares.end());
    numbers.push_back(shells.images);
    add_over_processes(numbers);
    std::copy_n(numbers.begin(), shells.values.size(), shells.values.begin());
    std::copy_n(numbers.begin() + std::ssize(shells.values), classes_, shares.begin());
    shells.images = numbers.back();
  }

  /// What every process found of its particles, for all.
  void exchange_poses() {
    for (const std::size_t row : seen_) {
      set_pose(particles_, row, found_[row].pose);
      if (D == 2) { // an angle in the plane is all in psi
        particles_.psi.values[row] += std::exchange(particles_.rot.values[row], 0);
        particles_.psi.values[row] = std::remainder(particles_.psi.values[row], 360);
        particles_.tilt.values[row] = 0;
      }
    }
    if (process_count() == 1)
      return;
    constexpr std::size_t width = 9;
    const OnHost<double**> all("Bracewell::examples::found", particles_.count, width);
    for (const std::size_t row : seen_) {
      const auto values = numbers_of(row);
      std::ranges::copy(values, &all(row, 0));
    }
    processes().sum(space_, all);
    for (std::size_t row = 0; row < particles_.count; ++row)
      set_numbers(row, &all(row, 0));
  }

  std::array<double, 9> numbers_of(std::size_t row) const {
    const Found& one = found_[row];
    return {particles_.rot[row],
            particles_.tilt[row],
            particles_.psi[row],
            particles_.origin_x[row],
            particles_.origin_y[row],
            double(one.class_index),
            one.largest,
            one.log_evidence,
            one.candidates};
  }

  void set_numbers(std::size_t row, const double* values) {
    std::size_t i = 0;
    for (auto* const column :
         {&particles_.rot, &particles_.tilt, &particles_.psi, &particles_.origin_x, &particles_.origin_y})
      column->values[row] = values[i++];
    found_[row].class_index = static_cast<int>(values[5]);
    found_[row].largest = values[6];
    found_[row].log_evidence = values[7];
    found_[row].candidates = values[8];
  }

  void enter_columns() {
    set_pose_columns(particles_);
    auto& table = particles_.particle_table();
    std::vector<std::string> classes, largest, evidence, candidates;
    std::vector<std::size_t> lost;
    for (std::size_t row = 0; row < particles_.count; ++row) {
      const Found& one = found_[row];
      if (one.class_index < 0)
        lost.push_back(row);
      classes.push_back(std::to_string(std::max(0, one.class_index) + 1));
      largest.push_back(fixed(one.largest));
      evidence.push_back(fixed(std::isfinite(one.log_evidence) ? one.log_evidence : 0, 3));
      candidates.push_back(std::to_string(static_cast<std::int64_t>(one.candidates)));
    }
    if (!lost.empty())
      provenance_.assume(options_.star.string() + ": " + std::to_string(lost.size()) +
                         " particles fit no class, " + rows_text(lost) + ": they are in class 1");
    if (apart_ && !particles_.random_subset.present()) {
      std::vector<std::string> subsets;
      for (const int half : halves_)
        subsets.push_back(std::to_string(half + 1));
      table.set_column("rlnRandomSubset", std::move(subsets));
    }
    table.set_column("rlnClassNumber", std::move(classes));
    table.set_column("rlnMaxValueProbDistribution", std::move(largest));
    table.set_column("rlnLogLikeliContribution", std::move(evidence));
    table.set_column("rlnNrOfSignificantSamples", std::move(candidates));
  }

  /// The tables that RELION's model files have, as far as there is such a thing here.
  void write_model(const fs::path& path, const std::vector<fs::path>& maps) const {
    StarDocument model;
    double likelihood = 0;
    for (const Found& one : found_)
      likelihood += std::isfinite(one.log_evidence) ? one.log_evidence : 0;
    const double unit = pixel_size_ > 0 ? pixel_size_ : 1;
    StarTable general{.name = "model_general", .version = 0, .loop = false, .columns = {}, .values = {}};
    const auto entry = [](StarTable& table, const char* column, const std::string& value) {
      table.columns.push_back(column);
      table.values.push_back(value);
    };
    entry(general, "rlnReferenceDimensionality", std::to_string(D));
    entry(general, "rlnDataDimensionality", "2");
    entry(general, "rlnOriginalImageSize", std::to_string(box_));
    entry(general, "rlnCurrentResolution", fixed(box_ * unit / compared_));
    entry(general, "rlnPixelSize", fixed(unit));
    entry(general, "rlnNrClasses", std::to_string(classes_));
    entry(general, "rlnTau2FudgeFactor", fixed(options_.tau));
    entry(general, "rlnLogLikelihood", fixed(likelihood, 3));
    model.tables.push_back(general);
    StarTable all{.name = "model_classes",
                  .version = 0,
                  .loop = true,
                  .columns = {"rlnReferenceImage", "rlnClassDistribution", "rlnEstimatedResolution"},
                  .values = {}};
    for (std::size_t k = 0; k < classes_; ++k) {
      const double shell = last_shell(maps_[k].correlation);
      std::string name = maps[D == 3 ? k : 0].filename().string();
      if (D == 2) {
        char number[32];
        std::snprintf(number, sizeof number, "%06zu@", k + 1);
        name = number + name;
      }
      all.values.insert(all.values.end(),
                        {name, fixed(priors_[k]), fixed(shell > 0 ? box_ * unit / shell : box_ * unit)});
    }
    model.tables.push_back(all);
    for (std::size_t k = 0; k < classes_; ++k) {
      StarTable shells{.name = "model_class_" + std::to_string(k + 1),
                       .version = 0,
                       .loop = true,
                       .columns = {"rlnSpectralIndex", "rlnResolution", "rlnAngstromResolution",
                                   "rlnFourierShellCorrelation"},
                       .values = {}};
      const auto& curve = maps_[k].correlation;
      for (std::size_t s = 0; s < curve.size(); ++s)
        shells.values.insert(shells.values.end(),
                             {std::to_string(s), fixed(double(s) / (box_ * unit)),
                              fixed(s > 0 ? box_ * unit / double(s) : 999), fixed(curve[s])});
      model.tables.push_back(shells);
    }
    StarTable noise{.name = "model_noise",
                    .version = 0,
                    .loop = true,
                    .columns = {"rlnSpectralIndex", "rlnResolution", "rlnSigma2Noise"},
                    .values = {}};
    const double pixels = double(box_) * box_; // RELION's transforms are divided by them
    for (std::size_t s = 0; s <= static_cast<std::size_t>(box_) / 2; ++s)
      noise.values.insert(noise.values.end(), {std::to_string(s), fixed(double(s) / (box_ * unit)),
                                               fixed(noise_[s] / (pixels * pixels), 12)});
    model.tables.push_back(noise);
    auto lines = provenance_.lines();
    lines.insert(lines.end(), history_.begin(), history_.end());
    write_star(path, model, lines);
  }

  /// All that the next iterations depend on.
  void save(Hdf5Writer& file) const {
    const auto count = static_cast<std::int64_t>(particles_.count);
    file.write_scalar<std::int64_t>("/iteration", iteration_);
    file.write_scalar<std::int64_t>("/quiet", quiet_);
    file.write<double>("/radius", {3}, std::array{radius_, compared_, farthest_});
    file.write<double>("/priors", {static_cast<std::int64_t>(classes_)}, priors_);
    file.write<double>("/noise", {static_cast<std::int64_t>(noise_.size())}, noise_);
    std::vector<double> numbers;
    for (std::size_t row = 0; row < particles_.count; ++row)
      for (const double value : numbers_of(row))
        numbers.push_back(value);
    file.write<double>("/particles", {count, 9}, numbers);
    const Hdf5Shape shape(D, box_);
    for (std::size_t k = 0; k < classes_; ++k) {
      const std::string name = "/class" + std::to_string(k + 1);
      file.write<float>(name, shape, maps_[k].values);
      for (const std::size_t half : {0, 1})
        if (apart_)
          file.write<float>(name + "_half" + std::to_string(half + 1), shape, maps_[k].halves[half]);
      file.write<double>(name + "_correlation", {static_cast<std::int64_t>(maps_[k].correlation.size())},
                         maps_[k].correlation);
    }
  }

  void resume(const Hdf5Reader& file) {
    iteration_ = static_cast<int>(file.read_scalar<std::int64_t>("/iteration"));
    quiet_ = static_cast<int>(file.read_scalar<std::int64_t>("/quiet"));
    const auto radii = read_exactly<double>(file, "/radius", 3);
    radius_ = radii[0];
    compared_ = radii[1];
    farthest_ = radii[2];
    if (iteration_ < 1 || !(radius_ >= 1 && radius_ <= most_radius()))
      throw InputError(file.path().string() + ": is damaged: its iteration or radius makes no sense");
    priors_ = read_exactly<double>(file, "/priors", classes_);
    noise_ = read_exactly<double>(file, "/noise", static_cast<std::size_t>(box_));
    const auto numbers = read_exactly<double>(file, "/particles", 9 * particles_.count);
    for (std::size_t row = 0; row < particles_.count; ++row)
      set_numbers(row, &numbers[9 * row]);
    const auto voxels = static_cast<std::size_t>(std::llround(std::pow(box_, D)));
    maps_.clear();
    for (std::size_t k = 0; k < classes_; ++k) {
      const std::string name = "/class" + std::to_string(k + 1);
      maps_.push_back({.values = read_exactly<float>(file, name, voxels),
                       .correlation = file.read<double>(name + "_correlation")});
      if (maps_.back().correlation.size() < 2)
        throw InputError(file.path().string() + ": is damaged: a class has no correlation");
      for (const std::size_t half : {0, 1})
        if (apart_)
          maps_.back().halves[half] =
              read_exactly<float>(file, name + "_half" + std::to_string(half + 1), voxels);
    }
    settled_ = quiet_ >= 2;
    provenance_.took(file.path(), std::to_string(iteration_) + " iterations");
  }

  const Space& space_;
  const ClassifyOptions& options_;
  Provenance& provenance_;
  Timings& timings_;
  Particles particles_;
  int box_;
  std::size_t classes_;
  bool apart_;            ///< half sets have maps of their own
  double pixel_size_ = 0; ///< Angstrom; 0: not known
  std::vector<int> halves_;
  Contrast contrast_;
  std::size_t batch_ = 1;
  double diameter_ = 0; ///< of the particle, pixels
  std::optional<ExpectationStep<D>> step_;

  int iteration_ = 0; ///< complete ones
  double radius_ = 0; ///< largest frequency of the next iteration, periods per box
  double first_radius_ = 0;
  double compared_ = 0; ///< of the last one
  double farthest_ = 0; ///< that was wanted so far
  int quiet_ = 0;       ///< iterations in a row that changed little
  bool settled_ = false;
  std::vector<double> priors_;    ///< [K] of classes
  std::vector<double> noise_;     ///< [shells] variance of the real part
  std::vector<ClassMap> maps_;    ///< [K]; before the first iteration perhaps one
  std::vector<Found> found_;      ///< [particles]
  std::vector<std::size_t> seen_; ///< rows of this process in the last iteration
  std::vector<std::string> history_;
};

} // namespace

std::string classify(const Space& space, const ClassifyOptions& options, Provenance& provenance,
                     Timings& timings) {
  const auto start = std::chrono::steady_clock::now();
  timings.phase("read");
  std::vector<fs::path> maps, outputs{options.out};
  const bool plane = options.search.dimensions == 2;
  if (plane)
    maps.push_back(beside(options.out, "_classes.mrcs"));
  for (int k = 1; k <= (plane ? 0 : options.classes); ++k)
    maps.push_back(beside(options.out, "_class" + std::to_string(k) + ".mrc"));
  const fs::path model = beside(options.out, "_model.star");
  outputs.insert(outputs.end(), maps.begin(), maps.end());
  outputs.push_back(model);
  if (options.halves_apart || options.classes == 1)
    for (const auto& map : maps)
      for (const std::size_t half : {0, 1})
        outputs.push_back(half_beside(map, half));
  for (int i = 1; i <= options.iterations.value_or(most_iterations); ++i)
    outputs.push_back(beside(options.out, "_iteration" + std::to_string(i) + options.picture_ending));
  OutputFamily family(outputs, Checkpoint::path_of(options.out));
  const auto run = [&]<int D>(std::integral_constant<int, D>) -> std::string {
    Job<D> job(space, options, provenance, timings);
    Checkpoint checkpoint(options.out, options.checkpoint);
    job.run(checkpoint);
    if (!is_first_process())
      return "";
    timings.phase("write");
    job.write(maps, model);
    family.commit();
    checkpoint.remove();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return options.out.string() + ": " + job.summary(elapsed.count());
  };
  return plane ? run(std::integral_constant<int, 2>()) : run(std::integral_constant<int, 3>());
}

} // namespace Bracewell::Examples
