// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/interpolation/kernel.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/detail/samples.hpp>
#include <bracewell/project/options.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace Bracewell::Impl {

/// Axes of what is reconstructed, and of a projection.
template <class Reconstruction>
inline constexpr int dimensions_of = int(view_of<Reconstruction>::rank()) - 1;
template <class Projections>
inline constexpr int projected_dimensions_of = int(view_of<Projections>::rank()) - 2;

/// Of an image or a volume, and of what is projected from it.
constexpr bool are_dimensions(int D, int M) { return (D == 2 && M == 2) || (D == 3 && (M == 2 || M == 3)); }

// The types that doors take: false where they are others, after a sentence that says so.

template <class Kernel, class Reconstruction, class Projections>
constexpr bool check_project() {
  constexpr KernelFault fault = kernel_fault<Kernel, real_of<Reconstruction>>;
  constexpr bool spectrum = is_spectrum<Reconstruction>,
                 ranks = are_dimensions(dimensions_of<Reconstruction>, projected_dimensions_of<Projections>);
  BRACEWELL_EXPECTS_KERNEL(fault, "project, project_gradients");
  static_assert(spectrum, "Bracewell::project, project_gradients: reconstruction: expected a View of "
                          "Kokkos::complex or HalfComplex, found another type of values.");
  static_assert(ranks, "Bracewell::project, project_gradients: expected a reconstruction [B, H, W/2+1] with "
                       "projections [B, P, h, w/2+1], or [B, D, H, W/2+1] with [B, P, h, w/2+1] or "
                       "[B, P, d, h, w/2+1], found other numbers of axes.");
  return fault == KernelFault::None && spectrum && ranks;
}
template <int D, class Projections>
constexpr bool check_project_prepared() {
  constexpr bool ranks = are_dimensions(D, projected_dimensions_of<Projections>);
  static_assert(ranks, "Bracewell::project, project_gradients: expected images with projections "
                       "[B, P, h, w/2+1], or volumes with [B, P, h, w/2+1] or [B, P, d, h, w/2+1], found "
                       "other numbers of axes.");
  return ranks;
}
template <class Kernel, class Projections, int D>
constexpr bool check_backproject() {
  constexpr KernelFault fault = kernel_fault<Kernel, real_of<Projections>>;
  constexpr bool spectrum = is_complex<Projections>,
                 rank = are_dimensions(D, projected_dimensions_of<Projections>);
  BRACEWELL_EXPECTS_KERNEL(fault, "backproject, backproject_gradients");
  static_assert(spectrum, "Bracewell::backproject, backproject_gradients: projections: expected a View of "
                          "Kokkos::complex, found another type of values.");
  static_assert(rank || D == 2, "Bracewell::backproject, backproject_gradients: expected projections "
                                "[B, P, h, w/2+1] or [B, P, d, h, w/2+1], found another number of axes.");
  static_assert(rank || D == 3, "Bracewell::backproject, backproject_gradients: expected projections "
                                "[B, P, h, w/2+1] of images [B, H, W/2+1], found another number of axes.");
  return fault == KernelFault::None && spectrum && rank;
}

/// The real numbers of an output; none where it is not given.
template <class T, class MemorySpace>
std::span<T> reals(const Array<T, MemorySpace>& output) {
  return {output.data, output ? static_cast<std::size_t>(output.size()) : 0};
}
template <class T, class MemorySpace>
std::span<T> reals(const Array<Kokkos::complex<T>, MemorySpace>& output) {
  return {reinterpret_cast<T*>(output.data), output ? 2 * static_cast<std::size_t>(output.size()) : 0};
}

/// The checks that all projection operators share. What can be does without template parameters: a file
/// compiles it once.
struct ProjectionArguments : Arguments {
  /// An optional output with the shape of another array.
  void same_if_given(const char* argument, const ArrayShape& array, const ArrayShape& like) const {
    if (array && !like)
      refuse(argument, "no gradient of an argument that is not given, found %s",
             array.shape_text().characters);
    if (array)
      same_spectrum(argument, array, like);
  }

  /// A real array [B|1, P|1, ...] like the projections.
  template <class T, class MemorySpace>
  PerPose<T> per_projection(const char* argument, const Array<const T, MemorySpace>& array,
                            const ArrayShape& projections) const {
    if (array.width != projections.width)
      refuse(argument, "width %lld, found width %lld", static_cast<long long>(projections.width),
             static_cast<long long>(array.width));
    return per_pose(argument, array, projections.extents[0], projections.extents[1], projections.rank - 2,
                    projections.extents + 2);
  }

  /// The weights of a Backprojection, or of BackprojectGradients, which take them with a weight volume alone.
  template <class Volumes>
  auto weights(const Volumes& volumes, const ArrayShape& data, const ArrayShape& projections) const {
    if (bool(volumes.weight) != bool(volumes.weights))
      fail(function, "weight", "weight and weights together", "one without the other");
    if (!volumes.weight)
      return decltype(per_projection("weights", volumes.weights, projections))();
    same_spectrum("weight", volumes.weight, data);
    return per_projection("weights", volumes.weights, projections);
  }

  /// The sizes (x, y[, z]) of a reconstruction [B, (D,) H, W/2+1] that windows of `width` taps fit.
  template <int D>
  void reconstruction(const char* argument, const ArrayShape& array, int width, int (&sizes)[D]) const {
    spectrum(argument, array, 1, std::max(4, width), D, sizes);
  }

  template <int M, int D, class Kernel = Linear, class T, class MemorySpace>
  [[gnu::cold]] Samples<T, M, D> samples(const char* reconstruction_name, const ArrayShape& reconstruction,
                                         const char* projections_name, const ArrayShape& projections,
                                         const Poses<T, MemorySpace>& poses,
                                         const ProjectionOptions& options) const {
    check_kernel<Kernel, T>(function);
    Samples<T, M, D> result;
    this->reconstruction<D>(reconstruction_name, reconstruction, Kernel::width, result.reconstruction.size);
    result.reach = std::max(4, Kernel::width / 2);
    spectrum(projections_name, projections, 2, 1, M, result.projection.size);
    result.batches = projections.extents[0];
    result.poses = projections.extents[1];
    if (reconstruction.extents[0] != 1 && reconstruction.extents[0] != result.batches)
      refuse(reconstruction_name, "batch axis of 1 or %lld, found %s", static_cast<long long>(result.batches),
             reconstruction.shape_text().characters);

    given("poses.matrices", poses.matrices);
    const std::int64_t matrix[] = {D, D}, shift[] = {M};
    result.matrices = per_pose("poses.matrices", poses.matrices, result.batches, result.poses, 2, matrix);
    if (poses.shifts)
      result.shifts = per_pose("poses.shifts", poses.shifts, result.batches, result.poses, 1, shift);
    if (poses.filters)
      result.filters = per_projection("poses.filters", poses.filters, projections);

    const double n = *std::min_element(result.projection.size, result.projection.size + M);
    const double N = *std::min_element(result.reconstruction.size, result.reconstruction.size + D);
    if (!options.oversampling && n != N)
      refuse("options.oversampling",
             "a value where boxes differ, for instance %.6g for boxes padded from %.6g to %.6g, found none",
             N / n, n, N);
    const double oversampling = options.oversampling.value_or(1);
    double curvature = 0;
    result.squared_radius = limits(options, oversampling, n, N, M, D, curvature);
    result.oversampling = static_cast<T>(oversampling);
    result.curvature = static_cast<T>(curvature);
    result.radius = static_cast<T>(std::sqrt(static_cast<double>(result.squared_radius)));
    for (int c = 0; c < M; ++c)
      result.inverse_size[c] = T(1) / static_cast<T>(result.projection.size[c]);
    return result;
  }

  /// An array [B|1, P|1, rest...].
  template <class T, class MemorySpace>
  PerPose<T> per_pose(const char* argument, const Array<const T, MemorySpace>& array, std::int64_t batches,
                      std::int64_t poses, int axes, const std::int64_t* rest) const {
    check_per_pose(argument, array, batches, poses, axes, rest);
    std::int64_t elements = 1;
    for (int axis = 0; axis < axes; ++axis)
      elements *= rest[axis];
    return {array.data, array.extents[0] == 1 ? 0 : array.extents[1] * elements,
            array.extents[1] == 1 ? 0 : elements};
  }

private:
  /// The sizes of a half spectrum of `dimensions` axes behind `leading` batch axes.
  [[gnu::cold, gnu::noinline]] void spectrum(const char* argument, const ArrayShape& array, int leading,
                                             int least, int dimensions, int* sizes) const {
    given(argument, array);
    if (array.rank != leading + dimensions)
      refuse(argument, "%d axes, found %s", leading + dimensions, array.shape_text().characters);
    clear_width(argument, array, dimensions);
    const std::int64_t columns = array.width / 2 + 1;
    if (columns != array.extents[array.rank - 1])
      refuse(argument, "%lld columns for width %lld, found %s", static_cast<long long>(columns),
             static_cast<long long>(array.width), array.shape_text().characters);
    for (int d = 0; d < dimensions; ++d) {
      const std::int64_t size = d == 0 ? array.width : array.extents[array.rank - 1 - d];
      if (size < least || size > 32768)
        refuse(argument, "axes of %d to 32768 elements, found %s", least, array.shape_text().characters);
      sizes[d] = static_cast<int>(size);
    }
  }

  [[gnu::cold, gnu::noinline]] void check_per_pose(const char* argument, const ArrayShape& array,
                                                   std::int64_t batches, std::int64_t poses, int axes,
                                                   const std::int64_t* rest) const {
    bool fits = array.rank == 2 + axes && (array.extents[0] == 1 || array.extents[0] == batches) &&
                (array.extents[1] == 1 || array.extents[1] == poses);
    for (int axis = 0; fits && axis < axes; ++axis)
      fits = array.extents[2 + axis] == rest[axis];
    if (fits)
      return;
    char expected[64] = "";
    for (int axis = 0, length = 0; axis < axes; ++axis)
      length += std::snprintf(expected + length, 21, ", %d", static_cast<int>(rest[axis]));
    refuse(argument, "[1|%lld, 1|%lld%s], found %s", static_cast<long long>(batches),
           static_cast<long long>(poses), expected, array.shape_text().characters);
  }

  /// The largest |k|^2, an integer of at most 3 * 16384^2, and the curvature 1 / (2 Ewald radius).
  [[gnu::cold]] int limits(const ProjectionOptions& options, double oversampling, double n, double N, int M,
                           int D, double& curvature) const {
    positive("options.oversampling", oversampling);
    const double radius = options.radius.value_or(std::min(n / 2, N / (2 * oversampling)));
    if (!(radius >= 0 && radius <= 1e9))
      refuse("options.radius", "a value in [0, 1e9], found %.6g", radius);
    if (options.ewald_radius) {
      const double ewald = *options.ewald_radius;
      if (!(std::abs(ewald) >= 1))
        refuse("options.ewald_radius", "|R| >= 1, found %.6g", ewald);
      if (M != 2 || D != 3)
        refuse("options.ewald_radius", "3D -> 2D where an Ewald sphere is given, found %dD -> %dD", D, M);
      curvature = 1 / (2 * ewald);
    }
    // The limit is inclusive whatever the rounding of the radius.
    return static_cast<int>(std::min(std::floor(radius * radius * (1 + 1e-12)), 1e9));
  }
};

} // namespace Bracewell::Impl
