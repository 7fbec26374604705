// SPDX-License-Identifier: MIT
#include "bracewell-refine/refinement.hpp"

#include "common/particle_images.hpp"
#include "common/progress.hpp"

#include <bracewell/geometry/pose_gradients.hpp>
#include <bracewell/project/project.hpp>

#include <algorithm>
#include <numbers>
#include <numeric>

namespace Bracewell::Examples {
namespace {

constexpr double pi = std::numbers::pi;

/// The box of the images, which has to be the reference's.
int checked_box(const Particles& particles, const Reference& reference) {
  if (particles.image_width != reference.box || particles.image_height != reference.box)
    throw InputError(particles.stacks[0].path.string() + ": expected images of " +
                     std::to_string(reference.box) + " x " + std::to_string(reference.box) +
                     " pixels as the map's box, found " + std::to_string(particles.image_width) + " x " +
                     std::to_string(particles.image_height));
  return reference.box;
}

double checked_radius(const RefinementOptions& options, int box) {
  const double radius = options.radius.value_or(box / 2.0);
  if (!(radius >= 1 && radius <= box / 2.0))
    throw InputError("--radius: expected 1 to " + std::to_string(box / 2) + " periods per box, found " +
                     std::to_string(radius));
  return radius;
}

/// Enough images that every thread has several.
std::size_t batch_size(std::size_t asked, std::size_t particles, int box) {
  constexpr std::size_t bytes = 16 << 20;
  const auto pixels = static_cast<std::size_t>(box) * static_cast<std::size_t>(box);
  return std::clamp<std::size_t>(
      asked > 0 ? asked : std::max<std::size_t>(32, bytes / (sizeof(float) * pixels)), 1, particles);
}

std::int64_t square(double radius) { return static_cast<std::int64_t>(radius * radius * (1 + 1e-12)); }

} // namespace

Refinement::Refinement(const Space& space, Particles& particles, Reference reference,
                       const RefinementOptions& options)
    : space_(space), particles_(particles), reference_(std::move(reference)), options_(options),
      batch_(batch_size(options.batch, particles.count, checked_box(particles, reference_))),
      radius_(checked_radius(options, reference_.box)),
      forward_(space, {reference_.box, reference_.box}, static_cast<std::int64_t>(batch_)), poses_(batch_) {
  require_poses(particles);
  require_one_pixel_size(particles);
  for (std::size_t row = 0; row < particles.count; ++row)
    if (const auto m = magnification(particles, row);
        m(0, 0) != 1 || m(0, 1) != 0 || m(1, 0) != 0 || m(1, 1) != 1) {
      particles.warnings.push_back(particles.file.string() +
                                   ": states an anisotropic magnification (rlnMagMat00 and so on): not used");
      for (auto& column : particles.magnification)
        column.values.clear();
      break;
    }
  const int box = reference_.box, columns = box / 2 + 1;
  if (!options.no_ctf && has_ctf(particles)) {
    contrast_ = Contrast(space, particles, box, batch_);
    weights_ = allocate<Weights>("weights", 1, batch_, box, columns);
  } else if (!options.no_ctf) {
    particles.warnings.push_back(
        particles.file.string() +
        ": has no contrast transfer (rlnDefocusU, rlnVoltage): the images are taken as projections");
  }
  images_ = allocate<Images>("images", batch_, box, box);
  modulated_ = allocate<Spectra>("modulated", 1, batch_, box, columns);
  projections_ = allocate<Spectra>("projections", 1, batch_, box, columns);
  cotangents_ = allocate<Spectra>("cotangents", 1, batch_, box, columns);
  active_ = allocate<Owned<int*>>("active", batch_);
  sums_ = allocate<Owned<MatchSums*>>("sums", batch_);
  powers_ = allocate<Owned<double*>>("powers", batch_);
  matrix_gradients_ = allocate<Owned<float** [3][3]>>("matrix_gradients", 1, batch_);
  rotation_gradients_ = allocate<Owned<float** [3]>>("rotation_gradients", 1, batch_);
  shift_gradients_ = allocate<Owned<float** [2]>>("shift_gradients", 1, batch_);
  host_active_ = Kokkos::create_mirror_view(active_);
  host_sums_ = Kokkos::create_mirror_view(sums_);
  host_matrices_ = Kokkos::create_mirror_view(poses_.matrices);
  host_shifts_ = Kokkos::create_mirror_view(poses_.shifts);
  host_rotation_gradients_ = Kokkos::create_mirror_view(rotation_gradients_);
  host_shift_gradients_ = Kokkos::create_mirror_view(shift_gradients_);
}

std::vector<RefinedPose> Refinement::run() {
  ParticleImages reader(particles_);
  const auto mirror = Kokkos::create_mirror_view(images_);
  const auto pixels = static_cast<std::size_t>(reference_.box) * static_cast<std::size_t>(reference_.box);
  std::vector<RefinedPose> refined;
  Progress progress("refining", "particles", static_cast<std::int64_t>(particles_.count));
  for (std::size_t first = 0; first < particles_.count; first += batch_) {
    const std::size_t count = std::min(batch_, particles_.count - first);
    reader.read(first, count, {mirror.data(), count * pixels});
    Kokkos::deep_copy(space_, images_, mirror);
    const auto part = refine_batch(first, count);
    refined.insert(refined.end(), part.begin(), part.end());
    progress.add(static_cast<std::int64_t>(count));
  }
  return refined;
}

/// Images to what Match takes: spectra times CTF, CTF^2, and the images' power.
void Refinement::transform(std::size_t first, std::size_t count) {
  forward_.execute(space_, images_, modulated_);
  ImagePower{{{reference_.box, reference_.box}}, square(radius_), modulated_.data(), powers_.data()}.run(
      space_, count);
  if (!contrast_.present())
    return;
  std::vector<std::size_t> rows(count);
  std::iota(rows.begin(), rows.end(), first);
  contrast_.demodulate(space_, rows, range(modulated_, 0, count), range(weights_, 0, count));
}

std::vector<RefinedPose> Refinement::refine_batch(std::size_t first, std::size_t count) {
  transform(first, count);
  const auto powers = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), powers_);
  const auto origin = [](const ParticleColumn<double>& column, std::size_t row) {
    return column.present() ? column[row] : 0;
  };
  std::vector<PoseSearch> searches;
  std::vector<RefinedPose> refined(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t row = first + i;
    refined[i].before = {projection_matrix(EulerAngles<double>{particles_.rot[row], particles_.tilt[row],
                                                               particles_.psi[row]}),
                         {-origin(particles_.origin_y, row), -origin(particles_.origin_x, row)}};
    searches.emplace_back(refined[i].before, reference_.levers);
  }
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  const auto loss = [&](std::size_t i) {
    const MatchSums& sum = host_sums_(i);
    const double explained = sum.power > 0 ? sum.overlap * sum.overlap / sum.power : 0;
    return powers(i) > 0 ? std::max(0.0, 1 - explained / powers(i)) : 1;
  };

  evaluate_with_kernel(searches, all, radius_, false);
  for (std::size_t i = 0; i < count; ++i)
    refined[i].loss_before = loss(i);
  for (double radius = std::min(radius_, reference_.box / 8.0);; radius = std::min(radius_, 2 * radius)) {
    minimise(searches, radius);
    if (radius == radius_)
      break;
  }
  for (auto& search : searches)
    search.start_stage({}); // tries the best pose
  evaluate_with_kernel(searches, all, radius_, false);
  for (std::size_t i = 0; i < count; ++i) {
    refined[i].after = searches[i].best();
    refined[i].loss_after = loss(i);
    refined[i].inverted = host_sums_(i).overlap < 0;
  }
  return refined;
}

/// One stage of all searches; those that have ended are left out.
void Refinement::minimise(std::vector<PoseSearch>& searches, double radius) {
  const double box = reference_.box;
  std::vector<int> active(searches.size());
  std::iota(active.begin(), active.end(), 0);
  for (auto& search : searches)
    search.start_stage({.largest_step = box / (4 * radius), // a quarter period
                        .tolerance = radius < radius_ ? coarse_tolerance : tolerance,
                        .evaluations = options_.iterations});
  while (!active.empty()) {
    evaluate_with_kernel(searches, active, radius, true);
    for (std::size_t i = 0; i < active.size(); ++i) {
      const MatchSums& sum = host_sums_(i);
      const double scale = sum.power > 0 ? sum.overlap / sum.power : 0;
      const auto& rotation = host_rotation_gradients_;
      const auto& shift = host_shift_gradients_;
      searches[static_cast<std::size_t>(active[i])].report(
          {.value = -scale * sum.overlap,
           .rotation_gradient = {rotation(0, i, 0), rotation(0, i, 1), rotation(0, i, 2)},
           .shift_gradient = {shift(0, i, 0), shift(0, i, 1)},
           // 2 sum |d(s CTF P)/dx|^2, the mean of both axes
           .shift_curvature = scale * scale * sum.slope * (2 * pi / box) * (2 * pi / box)});
    }
    std::erase_if(active, [&](int i) { return !searches[static_cast<std::size_t>(i)].active(); });
  }
}

void Refinement::evaluate_with_kernel(std::span<const PoseSearch> searches, std::span<const int> active,
                                      double radius, bool gradients) {
  with_kernel(options_.sampling.kernel,
              [&]<class Kernel>() { evaluate<Kernel>(searches, active, radius, gradients); });
}

template <class Kernel>
void Refinement::evaluate(std::span<const PoseSearch> searches, std::span<const int> active, double radius,
                          bool gradients) {
  const int box = reference_.box;
  const std::size_t count = active.size();
  for (std::size_t i = 0; i < count; ++i) {
    const PoseOfParticle& pose = searches[static_cast<std::size_t>(active[i])].trial();
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c)
        host_matrices_(0, i, r, c) = static_cast<float>(pose.matrix(r, c));
    for (int axis = 0; axis < 2; ++axis)
      host_shifts_(0, i, axis) = static_cast<float>(box / 2 + pose.shift[axis]);
    host_active_(i) = active[i];
  }
  Kokkos::deep_copy(space_, poses_.matrices, host_matrices_);
  Kokkos::deep_copy(space_, poses_.shifts, host_shifts_);
  Kokkos::deep_copy(space_, active_, host_active_);

  const ProjectionOptions projection{.oversampling = reference_.oversampling(), .radius = radius};
  const auto poses = poses_.part(0, count);
  const HalfSpectrum projections{range(projections_, 0, count), box};
  const HalfSpectrum cotangents{range(cotangents_, 0, count), box};
  project<Kernel>(space_, reference_.spectrum, poses, projections, projection);
  Match{.layout = {{box, box}},
        .squared_radius = square(radius),
        .images = active_.data(),
        .modulated = modulated_.data(),
        .weights = contrast_.present() ? weights_.data() : nullptr,
        .projections = projections_.data(),
        .cotangents = cotangents_.data(),
        .sums = sums_.data()}
      .run(space_, count);
  Kokkos::deep_copy(space_, host_sums_, sums_);
  if (gradients) {
    Kokkos::deep_copy(space_, matrix_gradients_, 0.0f);
    Kokkos::deep_copy(space_, shift_gradients_, 0.0f);
    project_gradients<Kernel>(
        space_, reference_.spectrum, poses, cotangents,
        {.matrices = range(matrix_gradients_, 0, count), .shifts = range(shift_gradients_, 0, count)},
        projection);
    rotation_vector_gradients(space_, range(poses_.matrices, 0, count), range(matrix_gradients_, 0, count),
                              range(rotation_gradients_, 0, count));
    Kokkos::deep_copy(space_, host_rotation_gradients_, rotation_gradients_);
    Kokkos::deep_copy(space_, host_shift_gradients_, shift_gradients_);
  }
  space_.fence("Bracewell::examples::refine");
}

} // namespace Bracewell::Examples
