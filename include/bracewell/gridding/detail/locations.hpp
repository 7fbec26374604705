// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/taps.hpp>
#include <bracewell/half.hpp>
#include <bracewell/impl/image_on_grid.hpp>
#include <bracewell/impl/sample_array.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

namespace Bracewell::Impl {

/// Where a sample reaches the grid: taps first .. first + width - 1 along every axis, modulo the grid, tap i
/// at distance offset - i.
template <class T, int Dim>
struct alignas(sizeof(T) == 4 && Dim < 3 ? 16 : sizeof(T)) Location {
  T offset[Dim];
  int first[Dim];
};

/// Locations in memory, in double a number per axis where that takes less of it: the first cell is its whole part, and the
/// offset the rest, counted from the least one.
template <class T, int Dim>
struct StoredLocations {
  struct Cells {
    double cell[Dim];
  };
  using Value = std::conditional_t<sizeof(T) == sizeof(double) && Dim != 1, Cells, Location<T, Dim>>;

  Value* values;
  double least; ///< offset

  KOKKOS_FORCEINLINE_FUNCTION Location<T, Dim> operator[](std::int64_t i) const {
    if constexpr (std::is_same_v<Value, Cells>)
      return of_cells(values[i].cell);
    else
      return values[i];
  }
  KOKKOS_FORCEINLINE_FUNCTION void set(std::int64_t i, const double (&cell)[Dim]) const {
    if constexpr (std::is_same_v<Value, Cells>)
      for (int d = 0; d < Dim; ++d)
        values[i].cell[d] = cell[d];
    else
      values[i] = of_cells(cell);
  }
  KOKKOS_FORCEINLINE_FUNCTION Location<T, Dim> of_cells(const double (&cell)[Dim]) const {
    Location<T, Dim> at;
    for (int d = 0; d < Dim; ++d) {
      at.first[d] = static_cast<int>(cell[d]);
      at.offset[d] = static_cast<T>(cell[d] - at.first[d] + least);
    }
    return at;
  }
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

  /// The first cell of a point along every axis, and how far it lies beyond the least offset. False where a frequency is
  /// not finite.
  KOKKOS_FORCEINLINE_FUNCTION bool locate(std::int64_t i, double (&cell)[Dim]) const {
    for (int d = 0; d < Dim; ++d) {
      double frequency = points(i, d);
      if (!is_finite(frequency))
        return false;
      if (Kokkos::abs(frequency) >= 2)
        frequency -= Kokkos::floor(frequency);
      // floor(frequency + 0.5) without a call, which rounds as PointBlock does.
      const int whole = static_cast<int>(frequency + 2.5) - 2;
      const double cells = grid.size[d], at = (frequency - whole) * cells + (cells - least_offset());
      cell[d] = at - (at >= cells ? cells : 0);
    }
    return true;
  }
  KOKKOS_FUNCTION Location<T, Dim> operator[](std::int64_t i) const {
    double cell[Dim] = {};
    locate(i, cell);
    return StoredLocations<T, Dim>{nullptr, least_offset()}.of_cells(cell);
  }
  KOKKOS_FORCEINLINE_FUNCTION double least_offset() const { return 0.5 * width - 1; }
};

/// Stores the locations of all points, and counts those that are not finite.
template <class T, int Dim>
struct Locate {
  PointLocations<T, Dim> where;
  StoredLocations<T, Dim> locations;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& not_finite) const {
    double cell[Dim];
    if (where.locate(i, cell))
      locations.set(i, cell);
    else
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
  StoredLocations<T, Dim> locations;
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
