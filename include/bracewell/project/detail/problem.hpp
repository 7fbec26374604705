// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/project/detail/samples.hpp>
#include <bracewell/project/options.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

namespace Bracewell::Impl {

/// The checks that all projection operators share.
struct ProjectionArguments : Arguments {
  /// A half spectrum of Dim dimensions behind `leading` batch axes.
  template <int Dim, class Value, class MemorySpace>
  HalfSpectrumLayout<Dim> spectrum(const char* argument, const Array<Value, MemorySpace>& array, int leading,
                                   int least) const {
    given(argument, array);
    const auto shape = [&] { return array.shape(); };
    require(
        array.rank == leading + Dim, argument, [&] { return std::to_string(leading + Dim) + " axes"; },
        shape);
    const std::int64_t columns = array.extents[array.rank - 1];
    require(
        array.width / 2 + 1 == columns, argument,
        [&] {
          return std::to_string(array.width / 2 + 1) + " columns for width " + std::to_string(array.width);
        },
        shape);
    HalfSpectrumLayout<Dim> layout;
    for (int d = 0; d < Dim; ++d) {
      const std::int64_t size = d == 0 ? array.width : array.extents[array.rank - 1 - d];
      require(
          size >= least && size <= 32768, argument,
          [&] { return "axes of " + std::to_string(least) + " to 32768 elements"; }, shape);
      layout.size[d] = static_cast<int>(size);
    }
    return layout;
  }

  /// An array [B|1, P|1, rest...].
  template <class T, class MemorySpace>
  PerPose<T> per_pose(const char* argument, const Array<const T, MemorySpace>& array, std::int64_t batches,
                      std::int64_t poses, std::span<const std::int64_t> rest) const {
    bool fits = array.rank == 2 + static_cast<int>(rest.size());
    std::int64_t elements = 1;
    for (std::size_t axis = 0; axis < rest.size(); ++axis) {
      fits = fits && array.extents[2 + axis] == rest[axis];
      elements *= rest[axis];
    }
    fits = fits && (array.extents[0] == 1 || array.extents[0] == batches) &&
           (array.extents[1] == 1 || array.extents[1] == poses);
    const auto expected = [&] {
      std::string text = "[1|" + std::to_string(batches) + ", 1|" + std::to_string(poses);
      for (const std::int64_t extent : rest)
        text += ", " + std::to_string(extent);
      return text + "]";
    };
    require(fits, argument, expected, [&] { return array.shape(); });
    return {array.data, array.extents[0] == 1 ? 0 : array.extents[1] * elements,
            array.extents[1] == 1 ? 0 : elements};
  }

  /// A real array [B|1, P|1, ...] like the projections.
  template <class T, class P, class MemorySpace>
  PerPose<T> per_projection(const char* argument, const Array<const T, MemorySpace>& array,
                            const Array<P, MemorySpace>& projections) const {
    require(
        array.width == projections.width, argument,
        [&] { return "width " + std::to_string(projections.width); },
        [&] { return "width " + std::to_string(array.width); });
    return per_pose(argument, array, projections.extents[0], projections.extents[1],
                    {projections.extents + 2, static_cast<std::size_t>(projections.rank - 2)});
  }

  template <int M, int D, class T, class MemorySpace, class R, class P>
  Samples<T, M, D> samples(const char* reconstruction_name, const Array<R, MemorySpace>& reconstruction,
                           const char* projections_name, const Array<P, MemorySpace>& projections,
                           const Poses<T, MemorySpace>& poses, const ProjectionOptions& options) const {
    Samples<T, M, D> result;
    result.reconstruction = spectrum<D>(reconstruction_name, reconstruction, 1, 4);
    result.projection = spectrum<M>(projections_name, projections, 2, 1);
    result.batches = projections.extents[0];
    result.poses = projections.extents[1];
    require(
        reconstruction.extents[0] == 1 || reconstruction.extents[0] == result.batches, reconstruction_name,
        [&] { return "batch axis of 1 or " + std::to_string(result.batches); },
        [&] { return reconstruction.shape(); });

    given("poses.matrices", poses.matrices);
    result.matrices = per_pose("poses.matrices", poses.matrices, result.batches, result.poses,
                               std::array<std::int64_t, 2>{D, D});
    if (poses.shifts)
      result.shifts = per_pose("poses.shifts", poses.shifts, result.batches, result.poses,
                               std::array<std::int64_t, 1>{M});
    if (poses.filters)
      result.filters = per_projection("poses.filters", poses.filters, projections);

    positive("options.oversampling", options.oversampling);
    result.oversampling = static_cast<T>(options.oversampling);
    const double n = *std::min_element(result.projection.size, result.projection.size + M);
    const double N = *std::min_element(result.reconstruction.size, result.reconstruction.size + D);
    const double radius = options.radius.value_or(std::min(n / 2, N / (2 * options.oversampling)));
    require(radius >= 0 && radius <= 1e9, "options.radius", "a value in [0, 1e9]",
            [&] { return number(radius); });
    result.curvature = 0;
    if (options.ewald_radius) {
      const double ewald = *options.ewald_radius;
      require(std::abs(ewald) >= 1, "options.ewald_radius", "|R| >= 1", [&] { return number(ewald); });
      require(Samples<T, M, D>::bends, "options.ewald_radius", "3D -> 2D where an Ewald sphere is given",
              [] { return std::to_string(D) + "D -> " + std::to_string(M) + "D"; });
      result.curvature = static_cast<T>(1 / (2 * ewald));
    }
    // |k|^2 is an integer, at most 3 * 16384^2: the limit is inclusive whatever the rounding of the radius.
    result.squared_radius = static_cast<int>(std::min(std::floor(radius * radius * (1 + 1e-12)), 1e9));
    result.radius = static_cast<T>(std::sqrt(static_cast<double>(result.squared_radius)));
    for (int c = 0; c < M; ++c)
      result.inverse_size[c] = T(1) / static_cast<T>(result.projection.size[c]);
    return result;
  }
};

} // namespace Bracewell::Impl
