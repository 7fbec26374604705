// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/options.hpp>
#include <bracewell/project/samples.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace Bracewell::Impl {

/// Checks the arguments that all projection operators share; every failure is an Error that names the
/// function and the argument.
struct Arguments {
  const char* function;

  void require(bool holds, const char* argument, const std::string& expected,
               const std::string& found) const {
    if (!holds)
      fail(function, argument, expected, found);
  }

  /// A half spectrum of Dim dimensions behind `leading` batch axes.
  template <int Dim, class Value, class MemorySpace>
  HalfSpectrumLayout<Dim> spectrum(const char* argument, const Array<Value, MemorySpace>& array, int leading,
                                   int least) const {
    require(bool(array), argument, "an allocated View", "an empty one");
    require(array.rank == leading + Dim, argument, std::to_string(leading + Dim) + " axes", array.shape());
    const std::int64_t columns = array.extents[array.rank - 1];
    require(array.width / 2 + 1 == columns, argument,
            std::to_string(array.width / 2 + 1) + " columns for width " + std::to_string(array.width),
            array.shape());
    HalfSpectrumLayout<Dim> layout;
    for (int d = 0; d < Dim; ++d) {
      const std::int64_t size = d == 0 ? array.width : array.extents[array.rank - 1 - d];
      require(size >= least && size <= 32768, argument,
              "axes of " + std::to_string(least) + " to 32768 elements", array.shape());
      layout.size[d] = static_cast<int>(size);
    }
    return layout;
  }

  /// Batch and pose axes that are 1 or those of the projections.
  template <class Value, class MemorySpace>
  void broadcasts(const char* argument, const Array<Value, MemorySpace>& array, std::int64_t batches,
                  std::int64_t poses, const std::string& rest, bool rest_fits) const {
    const bool fits = rest_fits && (array.extents[0] == 1 || array.extents[0] == batches) &&
                      (array.extents[1] == 1 || array.extents[1] == poses);
    require(fits, argument,
            "[1|" + std::to_string(batches) + ", 1|" + std::to_string(poses) + ", " + rest + "]",
            array.shape());
  }

  template <class A, class SpaceA, class B, class SpaceB>
  void same_shape(const char* argument, const Array<A, SpaceA>& array, const Array<B, SpaceB>& like) const {
    bool same = array.rank == like.rank && array.width == like.width;
    for (int axis = 0; same && axis < array.rank; ++axis)
      same = array.extents[axis] == like.extents[axis];
    require(same, argument, like.shape() + " (width " + std::to_string(like.width) + ")",
            array.shape() + " (width " + std::to_string(array.width) + ")");
  }

  /// An output must not share memory with any other argument.
  template <class A, class SpaceA, class B, class SpaceB>
  void disjoint(const char* argument, const Array<A, SpaceA>& output, const char* other_name,
                const Array<B, SpaceB>& other) const {
    const auto* a = reinterpret_cast<const char*>(output.data);
    const auto* b = reinterpret_cast<const char*>(other.data);
    const bool apart = !output || !other || a + output.size() * std::int64_t(sizeof(A)) <= b ||
                       b + other.size() * std::int64_t(sizeof(B)) <= a;
    require(apart, argument, std::string("memory of its own"),
            std::string("memory shared with ") + other_name);
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
    require(reconstruction.extents[0] == 1 || reconstruction.extents[0] == result.batches,
            reconstruction_name, "batch axis of 1 or " + std::to_string(result.batches),
            reconstruction.shape());

    const auto& matrices = poses.matrices;
    require(bool(matrices), "poses.matrices", "an allocated View", "an empty one");
    require(matrices.rank == 4, "poses.matrices", "4 axes", matrices.shape());
    broadcasts("poses.matrices", matrices, result.batches, result.poses,
               std::to_string(D) + ", " + std::to_string(D),
               matrices.extents[2] == D && matrices.extents[3] == D);
    result.matrices = matrices.data;
    result.matrix_pose_stride = matrices.extents[1] == 1 ? 0 : D * D;
    result.matrix_batch_stride = matrices.extents[0] == 1 ? 0 : matrices.extents[1] * D * D;

    const auto& shifts = poses.shifts;
    result.shifts = shifts.data;
    result.shift_pose_stride = result.shift_batch_stride = 0;
    if (shifts) {
      require(shifts.rank == 3, "poses.shifts", "3 axes", shifts.shape());
      broadcasts("poses.shifts", shifts, result.batches, result.poses, std::to_string(M),
                 shifts.extents[2] == M);
      result.shift_pose_stride = shifts.extents[1] == 1 ? 0 : M;
      result.shift_batch_stride = shifts.extents[0] == 1 ? 0 : shifts.extents[1] * M;
    }

    require_positive(function, "options.oversampling", options.oversampling);
    result.oversampling = static_cast<T>(options.oversampling);
    const double n = *std::min_element(result.projection.size, result.projection.size + M);
    const double N = *std::min_element(result.reconstruction.size, result.reconstruction.size + D);
    const double radius = options.radius.value_or(std::min(n / 2, N / (2 * options.oversampling)));
    require(radius >= 0 && radius <= 1e9, "options.radius", "a value in [0, 1e9]", std::to_string(radius));
    // |k|^2 is an integer, at most 3 * 16384^2: the limit is inclusive whatever the rounding of the radius.
    result.squared_radius = static_cast<int>(std::min(std::floor(radius * radius * (1 + 1e-12)), 1e9));
    result.radius = static_cast<T>(std::sqrt(static_cast<double>(result.squared_radius)));
    for (int c = 0; c < M; ++c)
      result.inverse_size[c] = T(1) / static_cast<T>(result.projection.size[c]);
    return result;
  }
};

} // namespace Bracewell::Impl
