// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/taps.hpp>
#include <bracewell/half.hpp>
#include <bracewell/impl/image_on_grid.hpp>
#include <bracewell/impl/sample_array.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Where a sample reaches the grid: taps first .. first + width - 1 along every axis, modulo the grid, tap i
/// at distance offset - i.
template <class T, int Dim>
struct alignas(sizeof(T) == 4 && Dim < 3 ? 16 : sizeof(T)) Location {
  T offset[Dim];
  int first[Dim];
};

/// Points [points, axes] in memory of the device, of any layout, or on rays. One type for both: kernels that sort them are
/// compiled once.
struct PointArray {
  const double* data = nullptr; ///< none of points on rays
  std::int64_t strides[2] = {};
  const double *cosine = nullptr, *sine = nullptr; ///< of a ray
  int samples = 0;
  double step = 0;

  KOKKOS_FORCEINLINE_FUNCTION double operator()(std::int64_t i, int axis) const {
    if (data)
      return data[i * strides[0] + axis * strides[1]];
    const std::int64_t ray = i / samples;
    return (static_cast<int>(i - ray * samples) - samples / 2) * step * (axis == 0 ? cosine[ray] : sine[ray]);
  }
};

/// Points (double: in float positions on a large grid would be off by 1e-4) to locations.
template <class T, int Dim>
struct PointLocations {
  PointArray points; ///< [points, Dim], cycles per pixel
  GridShape<Dim> grid;
  int width;

  /// Before a point is read that lies anywhere in memory. Inline always: g++ 12 takes a function that only prefetches for one
  /// without effect, and leaves its calls out.
  KOKKOS_FORCEINLINE_FUNCTION void prefetch(std::int64_t i) const {
    KOKKOS_IF_ON_HOST((__builtin_prefetch(points.data + i * points.strides[0]);))
  }

  /// False where a frequency is not finite. `rounds`: the caller is compiled for processors with an instruction for floor.
  template <bool rounds = false>
  KOKKOS_FORCEINLINE_FUNCTION bool locate(std::int64_t i, Location<T, Dim>& at) const {
    for (int d = 0; d < Dim; ++d) {
      const double frequency = points(i, d);
      if (!is_finite(frequency))
        return false;
      const double x = (frequency - rounded_down<rounds>(frequency)) * grid.size[d];
      const double lower = -rounded_down<rounds>(0.5 * width - x);
      const int first = static_cast<int>(lower);
      at.offset[d] = static_cast<T>(x - lower);
      at.first[d] = first < 0 ? first + grid.size[d] : first >= grid.size[d] ? first - grid.size[d] : first;
    }
    return true;
  }
  KOKKOS_FUNCTION Location<T, Dim> operator[](std::int64_t i) const {
    Location<T, Dim> at = {};
    locate(i, at);
    return at;
  }

private:
  /// floor, which is a call on x86-64 without SSE4.1. Signs of frequencies are anyhow: a branch would be guessed wrongly.
  template <bool rounds>
  KOKKOS_FORCEINLINE_FUNCTION static double rounded_down(double x) {
    if constexpr (rounds)
      return __builtin_floor(x);
#if defined(__x86_64__) && !defined(__SSE4_1__)
    KOKKOS_IF_ON_HOST((if (x > -1e9 && x < 1e9) {
      const int whole = static_cast<int>(x);
      return whole - static_cast<int>(whole > x);
    }))
#endif
    return Kokkos::floor(x);
  }
};

/// Stores the locations of all points, and counts those that are not finite.
template <class T, int Dim>
struct Locate {
  PointLocations<T, Dim> where;
  Location<T, Dim>* locations;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& not_finite) const {
    if (!where.locate(i, locations[i]))
      ++not_finite;
  }
};

/// Calls visit(index on the grid, weight) for every tap of a sample.
template <int MaxWidth, class T, int Dim, class Visit>
KOKKOS_INLINE_FUNCTION void for_each_tap(const Location<T, Dim>& at, const GridShape<Dim>& grid,
                                         const TapWeights<T>& kernel, const T (&weights)[Dim][MaxWidth],
                                         const Visit& visit) {
  if constexpr (Dim == 3) {
    const Location<T, 2> plane{{at.offset[0], at.offset[1]}, {at.first[0], at.first[1]}};
    T in_plane[2][MaxWidth];
    for (int i = 0; i < MaxWidth; ++i)
      in_plane[0][i] = weights[0][i];
    const GridShape<2> plane_shape{{grid.size[0], grid.size[1]}};
    for (int k = 0; k < MaxWidth; ++k) {
      if (k >= kernel.width)
        continue;
      const std::int64_t above = grid.wrapped(at.first[2] + k, 2) * plane_shape.elements();
      for (int i = 0; i < MaxWidth; ++i)
        in_plane[1][i] = weights[1][i] * weights[2][k];
      for_each_tap(plane, plane_shape, kernel, in_plane,
                   [&](std::int64_t index, T weight) { visit(above + index, weight); });
    }
  } else {
    BRACEWELL_UNROLL_FOR (int j = 0; j < (Dim == 2 ? MaxWidth : 1); ++j) {
      if (Dim == 2 && j >= kernel.width)
        continue; // not break: loops of fixed length keep the weights in registers
      const int y = Dim == 2 ? grid.wrapped(at.first[Dim - 1] + j, Dim - 1) : 0;
      const std::int64_t row = std::int64_t(y) * grid.size[0];
      BRACEWELL_UNROLL_FOR (int i = 0; i < MaxWidth; ++i) {
        if (i >= kernel.width)
          continue;
        visit(row + grid.wrapped(at.first[0] + i, 0),
              Dim == 2 ? weights[Dim - 1][j] * weights[0][i] : weights[0][i]);
      }
    }
  }
}

template <class T, int Dim, int MaxWidth>
KOKKOS_INLINE_FUNCTION void evaluate_taps(const TapTable<T, MaxWidth>& taps, const Location<T, Dim>& at,
                                          T (&weights)[Dim][MaxWidth]) {
  BRACEWELL_UNROLL_FOR (int d = 0; d < Dim; ++d)
    taps.evaluate(at.offset[d], weights[d]);
}

/// What every spreading and interpolating kernel reads.
template <class T, int Dim>
struct SpreadingProblem {
  const Location<T, Dim>* locations;
  std::int64_t points, slices;
  GridShape<Dim> grid;
  TapWeights<T> kernel;
};

/// What spreading and interpolating sample by sample have in common: a thread has one sample of a few slices,
/// whose taps have the same weights.
template <int slices_per_thread, int MaxWidth, class T, int Dim>
struct PerSample {
  SpreadingProblem<T, Dim> problem;
  TapTable<T, MaxWidth> taps;

  std::int64_t threads() const {
    return problem.points * ((problem.slices + slices_per_thread - 1) / slices_per_thread);
  }

  /// visit(point, slice, for_each): for_each(tap) calls tap(index in a grid, weight).
  template <class Visit>
  KOKKOS_INLINE_FUNCTION void for_each_slice(std::int64_t thread, const Visit& visit) const {
    const std::int64_t point = thread % problem.points, first = thread / problem.points * slices_per_thread;
    const std::int64_t end = Kokkos::min(first + slices_per_thread, problem.slices);
    const Location<T, Dim> at = problem.locations[point];
    T weights[Dim][MaxWidth];
    evaluate_taps(taps, at, weights);
    for (std::int64_t slice = first; slice < end; ++slice)
      visit(point, slice,
            [&](const auto& tap) { for_each_tap(at, problem.grid, problem.kernel, weights, tap); });
  }
};

} // namespace Bracewell::Impl
