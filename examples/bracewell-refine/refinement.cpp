// SPDX-License-Identifier: MIT
#include "bracewell-refine/refinement.hpp"

#include "common/input_error.hpp"
#include "cryoem/particle_batches.hpp"

#include <bracewell/geometry/pose_gradients.hpp>
#include <bracewell/project/project.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace Bracewell::Examples {
namespace {

constexpr double pi = std::numbers::pi;

/// Enough images that every thread has several; as many as keep a GPU busy.
std::size_t batch_size(std::size_t asked, std::size_t particles, int box) {
  constexpr std::size_t bytes = kernels_run_on_host ? 16 << 20 : 128 << 20;
  const auto pixels = static_cast<std::size_t>(box) * static_cast<std::size_t>(box);
  return std::clamp<std::size_t>(
      asked > 0 ? asked : std::max<std::size_t>(32, bytes / (sizeof(float) * pixels)), 1, particles);
}

/// Gradients with respect to rotations times magnifications M become those with respect to rotations: G M^T.
struct RotationGradients {
  DeviceView<float**[3][3]> magnifications, gradients; ///< [1, count, 3, 3]

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    for (int r = 0; r < 3; ++r) {
      float row[3];
      for (int c = 0; c < 3; ++c) {
        row[c] = 0;
        for (int k = 0; k < 3; ++k)
          row[c] += gradients(0, i, r, k) * magnifications(0, i, c, k);
      }
      for (int c = 0; c < 3; ++c)
        gradients(0, i, r, c) = row[c];
    }
  }
};

/// Differences of spectra, times a factor.
struct ImageDifference {
  Kokkos::complex<float>* values;
  const Kokkos::complex<float>* others;
  float factor;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { values[i] = factor * (values[i] - others[i]); }
};

std::int64_t square(double radius) { return static_cast<std::int64_t>(radius * radius * (1 + 1e-12)); }

/// How many frequencies the full spectrum has up to a radius, without 0.
double frequencies_within(double radius, int box) {
  double sum = 0;
  for (int y = -box / 2; y <= box / 2; ++y)
    for (int x = -box / 2; x <= box / 2; ++x)
      sum += x * x + y * y > 0 && x * x + y * y <= radius * radius;
  return sum;
}

/// The losses of the trials of an image over twice its noise. The noise is the least loss per frequency. An empty image has no
/// losses.
std::vector<double> losses_over_noise(std::span<const MatchSums> trials, double power, double frequencies) {
  std::vector<double> losses;
  double least = power;
  for (const MatchSums& sum : trials) {
    losses.push_back(power - (sum.power > 0 ? sum.overlap * sum.overlap / sum.power : 0));
    least = std::min(least, losses.back());
  }
  least = std::max(least, 1e-6 * power);
  if (!(least > 0))
    return {};
  for (double& loss : losses)
    loss = frequencies * loss / (2 * least);
  return losses;
}

/// Where the least of an odd number of values is, counted from the middle one; with a parabola also between them.
double place_of_least(const std::vector<double>& values, bool parabola) {
  const auto least = std::ranges::min_element(values);
  const auto at = least - values.begin(), last = std::ssize(values) - 1;
  auto place = static_cast<double>(at - last / 2);
  if (parabola && at > 0 && at < last) {
    const double bend = least[-1] - 2 * least[0] + least[1];
    place += bend > 0 ? std::clamp((least[-1] - least[1]) / (2 * bend), -0.5, 0.5) : 0;
  }
  return place;
}

} // namespace

Refinement::Refinement(const Space& space, Particles& particles, const RefinementOptions& options)
    : space_(space), particles_(particles), options_(options), box_(static_cast<int>(particles.image_width)),
      batch_(batch_size(options.batch, particles.count, box_)),
      forward_(space, {box_, box_}, static_cast<std::int64_t>(batch_)), poses_(batch_) {
  if (options.global)
    add_poses(particles);
  require_poses(particles);
  require_one_pixel_size(particles);
  for (auto* const origin : {&particles.origin_x, &particles.origin_y})
    origin->values.resize(particles.count); // those that are absent are 0
  if (options.magnification)
    prepare_magnifications();
  for (std::size_t row = 0; row < particles.count && !magnified_; ++row) {
    const auto m = magnification(particles, row);
    magnified_ = m(0, 0) != 1 || m(0, 1) != 0 || m(1, 0) != 0 || m(1, 1) != 1;
  }
  if (!options.no_ctf && has_ctf(particles)) {
    contrast_ = Contrast(space, particles, box_, batch_);
    weights_ = allocate<Weights>("weights", 1, batch_, box_, box_ / 2 + 1);
  } else if (!options.no_ctf) {
    particles.warnings.push_back(
        particles.file.string() +
        ": has no contrast transfer (rlnDefocusU, rlnVoltage): the images are taken as projections");
  }
  if (options.defocus) {
    if (!contrast_.present())
      throw InputError(particles.file.string() +
                       ": expected a contrast transfer, which --refine-defocus needs, found none");
    for (std::size_t row = 0; row < particles.count; ++row)
      if (particles.premultiplied.present() && particles.premultiplied[row] != 0)
        throw InputError(particles.file.string() + ": row " + std::to_string(row + 1) +
                         ": expected an image without its CTF, which --refine-defocus needs, found one that "
                         "was multiplied by it");
    if (!particles.defocus_v.present())
      particles.defocus_v.values = particles.defocus_u.values;
  }
  allocate_arrays();
}

void Refinement::prepare_magnifications() {
  magnified_ = true;
  for (std::size_t i = 0; i < 4; ++i)
    if (auto& column = particles_.magnification[i]; !column.present())
      column.values.assign(particles_.count, i == 0 || i == 3 ? 1 : 0);
  std::vector<std::int64_t> groups;
  for (std::size_t row = 0; row < particles_.count; ++row) {
    const std::int64_t group = particles_.optics_group.present() ? particles_.optics_group[row] : 1;
    const auto found = std::ranges::find(groups, group);
    group_of_.push_back(static_cast<std::size_t>(found - groups.begin()));
    if (found == groups.end())
      groups.push_back(group);
  }
  magnification_sums_.resize(groups.size());
  following_.assign(particles_.count, Following::Zero());
  for (auto& change : changes_)
    change = allocate<Spectra>("changes", 1, batch_, box_, box_ / 2 + 1);
}

void Refinement::allocate_arrays() {
  const int columns = box_ / 2 + 1;
  modulated_ = allocate<Spectra>("modulated", 1, batch_, box_, columns);
  projections_ = allocate<Spectra>("projections", 1, batch_, box_, columns);
  cotangents_ = allocate<Spectra>("cotangents", 1, batch_, box_, columns);
  active_ = allocate<DeviceView<int*>>("active", batch_);
  sums_ = allocate<DeviceView<MatchSums*>>("sums", batch_);
  powers_ = allocate<DeviceView<double*>>("powers", batch_);
  matrix_gradients_ = allocate<DeviceView<float** [3][3]>>("matrix_gradients", 1, batch_);
  rotation_gradients_ = allocate<DeviceView<float** [3]>>("rotation_gradients", 1, batch_);
  shift_gradients_ = allocate<DeviceView<float** [2]>>("shift_gradients", 1, batch_);
  if (magnified_) {
    rotations_ = allocate<DeviceView<float** [3][3]>>("rotations", 1, batch_);
    magnifications_ = allocate<DeviceView<float** [3][3]>>("magnifications", 1, batch_);
    host_rotations_ = Kokkos::create_mirror_view(rotations_);
    host_magnifications_ = Kokkos::create_mirror_view(magnifications_);
  }
  host_active_ = Kokkos::create_mirror_view(active_);
  host_sums_ = Kokkos::create_mirror_view(sums_);
  host_rotation_gradients_ = Kokkos::create_mirror_view(rotation_gradients_);
  host_shift_gradients_ = Kokkos::create_mirror_view(shift_gradients_);
}

std::vector<StageTime>
Refinement::run(std::span<const std::size_t> rows, Handout& handout, const Reference& reference,
                double radius, bool global, Progress& progress,
                const std::function<void(std::span<const std::size_t>, std::span<const Fit>)>& done) {
  reference_ = &reference;
  radius_ = radius;
  progress_ = &progress;
  global_.reset();
  if (global)
    global_.emplace(space_, reference, grid(reference.levers, radius), batch_);
  return ParticleBatches(space_, particles_, batch_, false)
      .for_each(rows, handout, [&](const Part<float***>& images, std::span<const std::size_t> part) {
        done(part, refine_batch(images, part));
      });
}

std::vector<double> Refinement::stages(double radius, bool global) const {
  std::vector<double> radii{std::min(radius, global ? GlobalSearch::most_radius : box_ / 8.0)};
  while (radii.back() < radius)
    radii.push_back(std::min(radius, 2 * radii.back()));
  return radii;
}

std::int64_t Refinement::searches(double radius, bool global) const {
  std::int64_t sum = global ? 1 : 0;
  std::size_t starts = global ? global_starts : 1;
  for ([[maybe_unused]] const double stage : stages(radius, global)) {
    sum += static_cast<std::int64_t>(starts);
    starts = std::max<std::size_t>(1, starts / 2);
  }
  return sum;
}

GlobalSearch::Grid Refinement::grid(const Eigen::Vector3d& levers, double radius) const {
  return {box_, levers, radius, options_.shift_range.value_or(box_ / 10.0), options_.symmetry};
}

double Refinement::bytes_of_search(const GlobalSearch::Grid& grid) const {
  return GlobalSearch::bytes_needed(space_, grid, box_, batch_);
}

/// Images to what Match takes: spectra times CTF, CTF^2, and the images' power.
void Refinement::transform(const Part<float***>& images, std::span<const std::size_t> rows) {
  forward_.execute(space_, images, modulated_);
  ImagePower{{{box_, box_}}, square(radius_), modulated_.data(), powers_.data()}.run(space_, rows.size());
  if (contrast_.present())
    contrast_.demodulate(space_, rows, range(modulated_, 0, rows.size()), range(weights_, 0, rows.size()));
}

std::vector<Refinement::ImageSearch> Refinement::begin(std::span<const std::size_t> rows) {
  std::vector<ImageSearch> searches;
  if (global_) {
    const auto found = global_->find(rows.size(), modulated_, weights_, global_starts);
    if (!contrast_tried_) {
      const std::size_t some = std::min(rows.size(), tried_dark);
      const double bright = global_->mean_score(some);
      global_->find(some, modulated_, weights_, 1, -1);
      searched_dark_ = global_->mean_score(some) > bright;
      contrast_tried_ = true;
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (const auto& start : found[i])
        searches.push_back({static_cast<int>(i), {start, reference_->levers}});
    progress_->add(static_cast<std::int64_t>(rows.size()));
  } else {
    for (std::size_t i = 0; i < rows.size(); ++i)
      searches.push_back({static_cast<int>(i), {pose_of(particles_, rows[i]), reference_->levers}});
  }
  return searches;
}

void Refinement::keep_best(std::vector<ImageSearch>& searches, std::size_t most) {
  std::ranges::stable_sort(searches, [](const ImageSearch& a, const ImageSearch& b) {
    return std::pair(a.image, a.search.value()) < std::pair(b.image, b.search.value());
  });
  std::size_t of_image = 0;
  int image = -1;
  std::erase_if(searches, [&](const ImageSearch& one) {
    of_image = one.image == image ? of_image + 1 : 0;
    image = one.image;
    return of_image >= most;
  });
}

std::vector<double> Refinement::losses(std::vector<ImageSearch>& searches, std::size_t count) {
  std::vector<int> first;
  for (std::size_t i = 0; i < searches.size(); ++i) {
    searches[i].search.start_stage({}); // tries the best pose
    if (i == 0 || searches[i].image != searches[i - 1].image)
      first.push_back(static_cast<int>(i));
  }
  evaluate(searches, first, radius_, false);
  const auto powers = values_on_host(powers_);
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const MatchSums& sum = host_sums_(i);
    const double explained = sum.power > 0 ? sum.overlap * sum.overlap / sum.power : 0;
    if (!std::isfinite(powers(i)))
      fail_not_finite(static_cast<int>(i));
    values[i] = powers(i) > 0 ? std::max(0.0, 1 - explained / powers(i)) : 1;
  }
  return values;
}

std::vector<Fit> Refinement::refine_batch(const Part<float***>& images, std::span<const std::size_t> rows) {
  const std::size_t count = rows.size();
  rows_ = rows;
  transform(images, rows);
  auto searches = begin(rows);
  std::vector<Fit> fits(count);
  const auto before = losses(searches, count);
  std::size_t starts = global_starts;
  for (const double radius : stages(radius_, global_.has_value())) {
    minimise(searches, radius);
    keep_best(searches, starts = std::max<std::size_t>(1, starts / 2));
  }
  keep_best(searches, 1);
  const auto after = losses(searches, count);
  for (std::size_t i = 0; i < count; ++i) {
    set_pose(particles_, rows[i], searches[i].search.best());
    fits[i] = {before[i], after[i], host_sums_(i).overlap < 0};
  }
  if (options_.defocus || options_.magnification)
    forward_.execute(space_, images, modulated_); // as they are
  if (options_.defocus)
    refine_defoci(count);
  if (options_.magnification)
    sum_magnifications(count);
  return fits;
}

void Refinement::project_batch(const Spectra& projections, double radius, int i, double change,
                               bool modulated) {
  set_poses(space_, poses_, particles_, rows_, box_);
  const std::size_t count = rows_.size();
  std::vector<std::array<double, 4>> stated;
  if (change != 0)
    for (std::size_t p = 0; p < count; ++p) {
      PoseOfParticle pose = pose_of(particles_, rows_[p]);
      auto m = magnification(particles_, rows_[p]);
      stated.push_back({m(0, 0), m(0, 1), m(1, 0), m(1, 1)});
      for (int r = 0; r < 2; ++r)
        for (int c = 0; c < 2; ++c)
          m(r, c) += r + c == i ? change : 0;
      if (i >= 3) {
        const auto about = [&](int axis) { return i - 3 == axis ? change : 0.0; };
        pose.matrix = pose.matrix * rotation_matrix(RotationVector<double>{about(0), about(1), about(2)});
      }
      if (contrast_.present())
        contrast_.set_magnification(rows_[p], {m(0, 0), m(0, 1), m(1, 0), m(1, 1)});
      const auto matrix = pose.matrix * m;
      for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c)
          poses_.host_matrices(0, p, r, c) = static_cast<float>(matrix(r, c));
    }
  copy_values(space_, poses_.matrices, poses_.host_matrices);
  std::visit(
      [&](const auto& map) {
        project(space_, map, poses_.part(0, count), HalfSpectrum{range(projections, 0, count), box_},
                {.radius = radius});
      },
      reference_->map);
  if (modulated && contrast_.present())
    contrast_.modulate(space_, rows_, range(projections, 0, count));
  space_.fence("Bracewell::examples::project_batch"); // what the host wrote is free
  for (std::size_t p = 0; p < stated.size() && contrast_.present(); ++p)
    contrast_.set_magnification(rows_[p], stated[p]);
}

/// The change of the mean defocus that fits best, by trials an eighth of a period apart at the largest frequency, then
/// finer ones around the best, then a parabola. A change counts as its square over the variance that is expected, the
/// loss as its quotient with the noise, half of what fits worst.
void Refinement::refine_defoci(std::size_t count) {
  constexpr int fine = 8;
  const double largest = radius_ / (box_ * particles_.pixel_size[0]), range = 3 * options_.defocus_range;
  project_batch(projections_, radius_, 0, 0, false);
  const double frequencies = frequencies_within(radius_, box_);
  const auto powers = values_on_host(powers_);
  std::vector<double> best(count, 0), wavelengths;
  double step = 0;
  for (std::size_t i = 0; i < count; ++i) {
    wavelengths.push_back(electron_wavelength(particles_.voltage[rows_[i]]));
    const double period = 2 / (wavelengths.back() * largest * largest);
    step = i == 0 ? period / 8 : std::min(step, period / 8);
  }
  int side = static_cast<int>(std::ceil(range / step)); // trials on each side
  step = range / side;
  for (const bool first : {true, false}) {
    if (!first)
      step /= fine, side = fine;
    const auto found = values_on_host(sums_of_trials(wavelengths, best, side, step));
    const std::size_t trials = found.extent(1);
    for (std::size_t i = 0; i < count; ++i) {
      auto values = losses_over_noise({&found(i, 0), trials}, powers(i), frequencies);
      if (values.empty())
        continue;
      for (std::size_t t = 0; t < trials; ++t) {
        const double change = (best[i] + (static_cast<int>(t) - side) * step) / options_.defocus_range;
        values[t] += change * change / 2;
      }
      best[i] += place_of_least(values, !first) * step;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (auto* const column : {&particles_.defocus_u, &particles_.defocus_v})
      column->values[rows_[i]] += best[i];
    contrast_.change_defocus(rows_[i], wavelengths[i] * best[i]);
  }
}

DeviceView<MatchSums**> Refinement::sums_of_trials(std::span<const double> wavelengths,
                                                   std::span<const double> best, int side,
                                                   double step) const {
  const std::size_t count = best.size();
  const int trials = 2 * side + 1;
  const auto changes = allocate<DeviceView<double**>>("changes", count, trials);
  const auto sums = allocate<DeviceView<MatchSums**>>("sums", count, trials);
  const auto host_changes = Kokkos::create_mirror_view(changes);
  for (std::size_t i = 0; i < count; ++i)
    for (int t = 0; t < trials; ++t)
      host_changes(i, t) = wavelengths[i] * (best[i] + (t - side) * step);
  copy_values(space_, changes, host_changes);
  DefocusTrials{.layout = {{box_, box_}},
                .squared_radius = square(radius_),
                .contrast = contrast_.on_device(space_, rows_),
                .images = modulated_.data(),
                .projections = projections_.data(),
                .changes = changes.data(),
                .trials = trials,
                .sums = sums.data()}
      .run(space_, count);
  space_.fence("Bracewell::examples::refine_defoci");
  return sums;
}

void Refinement::sum_magnifications(std::size_t count) {
  const double change = 0.1 / radius_; // a tenth of a period per box at the radius
  for (int i = 0; i < 6; ++i) {
    const auto& difference = changes_[static_cast<std::size_t>(i)];
    project_batch(difference, radius_, i, change, true);
    project_batch(projections_, radius_, i, -change, true);
    const auto elements = static_cast<std::int64_t>(count) * box_ * (box_ / 2 + 1);
    Kokkos::parallel_for(
        "Bracewell::examples::difference",
        Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space_, 0, elements),
        ImageDifference{difference.data(), projections_.data(), static_cast<float>(0.5 / change)});
  }
  project_batch(projections_, radius_, 0, 0, true);
  const auto sums = allocate<DeviceView<LensSums*>>("lens_sums", count);
  SumLens{.layout = {{box_, box_}},
          .squared_radius = square(radius_),
          .spectra = {modulated_.data(), projections_.data(), changes_[0].data(), changes_[1].data(),
                      changes_[2].data(), changes_[3].data(), changes_[4].data(), changes_[5].data()},
          .sums = sums.data()}
      .run(space_, count);
  space_.fence("Bracewell::examples::sum_magnifications");
  const auto found = values_on_host(sums);
  for (std::size_t i = 0; i < count; ++i)
    following_[rows_[i]] = magnification_sums_[group_of_[rows_[i]]].add(found(i));
}

void Refinement::follow(std::size_t row, const Eigen::Vector3d& change) {
  constexpr double most = 0.2; // of a radian and of a period
  const Eigen::Vector<double, 5> by = (following_[row] * change).cwiseMax(-most).cwiseMin(most);
  PoseOfParticle pose = pose_of(particles_, row);
  pose.matrix = pose.matrix * rotation_matrix(RotationVector<double>{by[0], by[1], by[2]});
  pose.shift -= box_ / (2 * pi) * Eigen::Vector2d(by[4], by[3]); // rows, columns
  set_pose(particles_, row, pose);
}

void Refinement::lens_changed() {
  if (!contrast_.present())
    return;
  const auto warnings = particles_.warnings; // given before
  contrast_ = Contrast(space_, particles_, box_, batch_);
  particles_.warnings = warnings;
}

/// One stage of all searches; those that have ended are left out.
void Refinement::minimise(std::vector<ImageSearch>& searches, double radius) {
  std::vector<int> active(searches.size());
  std::iota(active.begin(), active.end(), 0);
  for (auto& [image, search] : searches)
    search.start_stage({.largest_step = box_ / (4 * radius), // a quarter period
                        .tolerance = radius < radius_ ? coarse_tolerance : tolerance,
                        .evaluations = options_.iterations});
  while (!active.empty()) {
    for (std::size_t first = 0; first < active.size(); first += batch_)
      advance(searches, std::span(active).subspan(first, std::min(batch_, active.size() - first)), radius);
    progress_->add(static_cast<std::int64_t>(std::erase_if(
        active, [&](int i) { return !searches[static_cast<std::size_t>(i)].search.active(); })));
  }
}

void Refinement::advance(std::vector<ImageSearch>& searches, std::span<const int> active, double radius) {
  const double box = box_;
  evaluate(searches, active, radius, true);
  for (std::size_t i = 0; i < active.size(); ++i) {
    const MatchSums& sum = host_sums_(i);
    const double scale = sum.power > 0 ? sum.overlap / sum.power : 0;
    const auto& rotation = host_rotation_gradients_;
    const auto& shift = host_shift_gradients_;
    searches[static_cast<std::size_t>(active[i])].search.report(
        {.value = -scale * sum.overlap,
         .rotation_gradient = {rotation(0, i, 0), rotation(0, i, 1), rotation(0, i, 2)},
         .shift_gradient = {shift(0, i, 0), shift(0, i, 1)},
         // 2 sum |d(s CTF P)/dx|^2, the mean of both axes
         .shift_curvature = scale * scale * sum.slope * (2 * pi / box) * (2 * pi / box)});
  }
}

void Refinement::evaluate(std::span<const ImageSearch> searches, std::span<const int> active, double radius,
                          bool gradients) {
  std::visit([&](const auto& map) { evaluate(map, searches, active, radius, gradients); }, reference_->map);
}

void Refinement::set_trial_poses(std::span<const ImageSearch> searches, std::span<const int> active) {
  for (std::size_t i = 0; i < active.size(); ++i) {
    const auto& [image, search] = searches[static_cast<std::size_t>(active[i])];
    const PoseOfParticle& pose = search.trial();
    Matrix3<double> matrix = pose.matrix;
    if (magnified_) {
      const auto m = magnification(particles_, rows_[static_cast<std::size_t>(image)]);
      matrix = pose.matrix * m;
      for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c) {
          host_rotations_(0, i, r, c) = static_cast<float>(pose.matrix(r, c));
          host_magnifications_(0, i, r, c) = static_cast<float>(m(r, c));
        }
    }
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c)
        poses_.host_matrices(0, i, r, c) = static_cast<float>(matrix(r, c));
    for (int axis = 0; axis < 2; ++axis)
      poses_.host_shifts(0, i, axis) = static_cast<float>(box_ / 2 + pose.shift[axis]);
    host_active_(i) = image;
  }
  copy_values(space_, poses_.matrices, poses_.host_matrices);
  copy_values(space_, poses_.shifts, poses_.host_shifts);
  copy_values(space_, active_, host_active_);
}

template <class PreparedMap>
void Refinement::evaluate(const PreparedMap& map, std::span<const ImageSearch> searches,
                          std::span<const int> active, double radius, bool gradients) {
  const int box = box_;
  const std::size_t count = active.size();
  set_trial_poses(searches, active);
  const ProjectionOptions projection{
      .radius = radius, .strategy = options_.reproducible ? Strategy::Owned : Strategy::Automatic};
  const auto poses = poses_.part(0, count);
  const HalfSpectrum projections{range(projections_, 0, count), box};
  const HalfSpectrum cotangents{range(cotangents_, 0, count), box};
  project(space_, map, poses, projections, projection);
  Match{.layout = {{box, box}},
        .squared_radius = square(radius),
        .images = active_.data(),
        .modulated = modulated_.data(),
        .weights = contrast_.present() ? weights_.data() : nullptr,
        .projections = projections_.data(),
        .cotangents = cotangents_.data(),
        .sums = sums_.data()}
      .run(space_, count);
  copy_values(space_, host_sums_, sums_);
  if (gradients) {
    project_gradients(
        space_, map, poses, cotangents,
        {.matrices = range(matrix_gradients_, 0, count), .shifts = range(shift_gradients_, 0, count)},
        projection);
    if (magnified_) {
      copy_values(space_, rotations_, host_rotations_);
      copy_values(space_, magnifications_, host_magnifications_);
      Kokkos::parallel_for("Bracewell::examples::rotation_gradients",
                           Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                               space_, 0, static_cast<std::int64_t>(count)),
                           RotationGradients{magnifications_, matrix_gradients_});
    }
    rotation_vector_gradients(space_, range(magnified_ ? rotations_ : poses_.matrices, 0, count),
                              range(matrix_gradients_, 0, count), range(rotation_gradients_, 0, count));
    copy_values(space_, host_rotation_gradients_, rotation_gradients_);
    copy_values(space_, host_shift_gradients_, shift_gradients_);
  }
  space_.fence("Bracewell::examples::refine");
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(host_sums_(i).overlap) || !std::isfinite(host_sums_(i).power))
      fail_not_finite(searches[static_cast<std::size_t>(active[i])].image);
}

/// A loss, which no search mends.
void Refinement::fail_not_finite(int image) const {
  throw InputError(
      particles_.file.string() + ": row " + std::to_string(rows_[static_cast<std::size_t>(image)] + 1) +
      ": the loss is not a finite number: the image or the map has values beyond single precision");
}

} // namespace Bracewell::Examples
