// SPDX-License-Identifier: MIT
#include "bracewell-refine/global_search.hpp"

#include <bracewell/geometry/rotations.hpp>
#include <bracewell/geometry/symmetry.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace Bracewell::Examples {
namespace {

/// CTF times image and CTF^2 to what is scored: quotient and weight, without the zero frequency.
struct SetScored {
  HalfSpectrumLayout<2> layout;
  const Kokkos::complex<float>* modulated;
  const float* squares; ///< null: 1
  Kokkos::complex<float>* images;
  float* weights;
  float contrast;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const float square = squares ? squares[i] : 1;
    const bool counts = square > 1e-12f && i % layout.elements() != 0;
    images[i] = counts ? modulated[i] * (contrast / square) : Kokkos::complex<float>(0);
    weights[i] = counts ? square : 0;
  }
};

Quaternion<double> rotation(std::int64_t index, std::int64_t count) {
  return rotation_of_grid<double>(index, count);
}

} // namespace

GlobalSearch::Grid::Grid(int box, const Eigen::Vector3d& levers, double refined_radius, double range,
                         const std::string& symmetry)
    : radius(std::min(refined_radius, most_radius)) {
  // No pose is further than about a quarter of a period from the nearest of the grid, as density moves.
  const double quarter = box / (4 * radius), degrees = quarter / levers.maxCoeff() * 180 / std::numbers::pi;
  whole = rotation_grid_size(std::clamp(degrees, 1.0, 50.0));
  const auto operators = symmetry_operators(symmetry);
  for (std::int64_t i = 0; i < whole; ++i)
    if (operators.size() == 1 || closest_to_identity(rotation_matrix(rotation(i, whole)), operators))
      orientations.push_back(i);
  rotations = static_cast<std::int64_t>(orientations.size());
  const int steps = static_cast<int>(std::ceil(range / quarter));
  for (int y = -steps; y <= steps; ++y)
    for (int x = -steps; x <= steps; ++x)
      if (const Eigen::Vector2d shift(y * quarter, x * quarter); shift.norm() <= range + quarter / 2)
        shifts.push_back(shift);
}

PoseScoringSizes GlobalSearch::sizes(const Grid& grid, int box, std::size_t batch) {
  return {.images = static_cast<std::int64_t>(batch),
          .shifts = static_cast<int>(grid.shifts.size()),
          .height = box,
          .width = box,
          .best = static_cast<int>(std::min<std::int64_t>(ranked, grid.rotations))};
}

double GlobalSearch::bytes_needed(const Space& space, const Grid& grid, int box, std::size_t batch) {
  const double images = double(batch) * box * (box / 2 + 1) * 3 * sizeof(float);
  return double(PoseScoring<Space>::bytes_needed(space, sizes(grid, box, batch), {.radius = grid.radius})) +
         double(grid.rotations) * 9 * sizeof(float) + images;
}

GlobalSearch::GlobalSearch(const Space& space, const Reference& reference, const Grid& grid,
                           std::size_t batch)
    : space_(space), reference_(reference), grid_(grid),
      scoring_(space, sizes(grid, reference.box, batch), {.radius = grid.radius}, PoseScore::Correlation),
      matrices_(allocate<DeviceView<float* [3][3]>>("grid", grid.rotations)),
      images_(allocate<DeviceView<Kokkos::complex<float>***>>("scored", batch, reference.box,
                                                              reference.box / 2 + 1)),
      weights_(allocate<DeviceView<float***>>("scored_weights", batch, reference.box, reference.box / 2 + 1)),
      best_(allocate<DeviceView<float**>>("best", batch, sizes(grid, reference.box, batch).best)),
      poses_(allocate<DeviceView<int**>>("best_poses", batch, best_.extent(1))),
      shifts_(allocate<DeviceView<int**>>("best_shifts", batch, best_.extent(1))) {
  const auto matrices = Kokkos::create_mirror_view(matrices_);
  for (std::int64_t i = 0; i < grid.rotations; ++i) {
    const auto matrix = rotation_matrix(rotation(grid.orientations[static_cast<std::size_t>(i)], grid.whole));
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c)
        matrices(i, r, c) = static_cast<float>(matrix(r, c));
  }
  copy_values(space, matrices_, matrices);
  const auto shifts = allocate<DeviceView<float* [2]>>("shifts", grid.shifts.size());
  const auto host_shifts = Kokkos::create_mirror_view(shifts);
  for (std::size_t i = 0; i < grid.shifts.size(); ++i)
    for (int axis = 0; axis < 2; ++axis)
      host_shifts(i, axis) = static_cast<float>(reference.box / 2 + grid.shifts[i][axis]);
  copy_values(space, shifts, host_shifts);
  scoring_.set_shifts(space, shifts);
  space.fence("Bracewell::examples::global_search"); // the mirrors and the shifts go
}

std::vector<std::vector<PoseOfParticle>> GlobalSearch::find(std::size_t count, const Spectra& modulated,
                                                            const Weights& weights, std::size_t most,
                                                            float contrast) {
  const SetScored set{{{reference_.box, reference_.box}},
                      modulated.data(),
                      weights.data(),
                      images_.data(),
                      weights_.data(),
                      contrast};
  Kokkos::parallel_for("Bracewell::examples::set_scored",
                       Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                           space_, 0, static_cast<std::int64_t>(count) * set.layout.elements()),
                       set);
  const auto of = [&](const auto& view) {
    if constexpr (std::decay_t<decltype(view)>::rank() == 3)
      return Kokkos::subview(view, std::pair<std::size_t, std::size_t>(0, count), Kokkos::ALL, Kokkos::ALL);
    else
      return Kokkos::subview(view, std::pair<std::size_t, std::size_t>(0, count), Kokkos::ALL);
  };
  scoring_.set_images(space_, {.spectra = HalfSpectrum{of(images_), reference_.box},
                               .weights = HalfSpectrum{of(weights_), reference_.box}});
  std::visit(
      [&](const auto& map) {
        scoring_.score(space_, map, matrices_,
                       {.best = of(best_), .poses = of(poses_), .shifts = of(shifts_)});
      },
      reference_.map);
  const auto poses = values_on_host(poses_), shifts = values_on_host(shifts_);

  // Neighbours lead to the same pose: rotations of a grid are closer than this to some of the next ones.
  const double apart = 2.5 * std::cbrt(std::numbers::pi * std::numbers::pi / double(grid_.whole));
  std::vector<std::vector<PoseOfParticle>> found(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Quaternion<double>> taken;
    for (std::size_t rank = 0; rank < poses.extent(1) && taken.size() < most; ++rank) {
      if (poses(i, rank) < 0)
        break;
      const auto q = rotation(grid_.orientations[static_cast<std::size_t>(poses(i, rank))], grid_.whole);
      const bool neighbour = std::ranges::any_of(taken, [&](const auto& p) {
        return std::abs(p.w * q.w + p.x * q.x + p.y * q.y + p.z * q.z) > std::cos(apart / 2);
      });
      if (neighbour)
        continue;
      taken.push_back(q);
      found[i].push_back({rotation_matrix(q), grid_.shifts[static_cast<std::size_t>(shifts(i, rank))]});
    }
    if (found[i].empty()) // an image of nothing
      found[i].push_back({Matrix3<double>::identity(), Eigen::Vector2d::Zero()});
  }
  return found;
}

double GlobalSearch::mean_score(std::size_t count) const {
  const auto best = values_on_host(best_);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    sum += std::max(0.0f, best(i, 0)) / static_cast<double>(count);
  return sum;
}

} // namespace Bracewell::Examples
