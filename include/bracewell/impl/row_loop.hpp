// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>

#include <array>
#include <functional>
#include <limits>
#include <numeric>

namespace Bracewell::Impl {

/// The product of sizes, from axis `first` on.
template <int Dim>
KOKKOS_INLINE_FUNCTION std::int64_t product(const int (&sizes)[Dim], int first = 0) {
  std::int64_t result = 1;
  for (int d = first; d < Dim; ++d)
    result *= sizes[d];
  return result;
}
template <std::size_t Dim>
std::int64_t product(const std::array<int, Dim>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t(1), std::multiplies<>());
}

/// The rows of an array [..., (d,) h, columns]: Dim trailing axes behind batch axes, the rows in one sequence.
template <int Dim>
struct Box {
  static_assert(Dim == 2 || Dim == 3, "Bracewell: images and volumes have two or three dimensions.");

  int size[Dim];        ///< full sizes (x, y[, z])
  int columns;          ///< stored along x: fewer than size[0] in a half spectrum
  std::int64_t batches; ///< product of the leading axes

  KOKKOS_FUNCTION std::int64_t rows() const { return batches * product(size, 1); }

  /// Batch of a row; its indices (y[, z]) go to index[1 ...].
  KOKKOS_FUNCTION std::int64_t locate(std::int64_t row, int (&index)[Dim]) const {
    for (int d = 1; d < Dim; ++d) {
      index[d] = static_cast<int>(row % size[d]);
      row /= size[d];
    }
    return row;
  }
};

/// Checks that the array is given and that its axes are sizes an int can count; batch axes may be empty.
template <int Dim>
Box<Dim> box(const Arguments& arguments, const char* argument, const ArrayShape& array, bool half) {
  arguments.given(argument, array);
  if (array.rank < Dim)
    arguments.refuse(argument, "at least %d axes, found %s", Dim, array.shape_text().characters);
  if (half)
    arguments.clear_width(argument, array, Dim);
  Box<Dim> result;
  result.batches = 1;
  for (int axis = 0; axis < array.rank - Dim; ++axis)
    result.batches *= array.extents[axis];
  for (int d = 0; d < Dim; ++d) {
    const std::int64_t extent = array.extents[array.rank - 1 - d];
    const std::int64_t size = d == 0 && half ? array.width : extent;
    const bool fits = size >= 1 && size <= std::numeric_limits<int>::max() / 4 &&
                      (d != 0 || !half || size / 2 + 1 == extent);
    if (!fits && half)
      arguments.refuse(argument, "a half spectrum of W/2+1 columns (width %lld), found %s",
                       static_cast<long long>(array.width), array.shape_text().characters);
    if (!fits)
      arguments.refuse(argument, "axes of at least one element, found %s", array.shape_text().characters);
    result.size[d] = static_cast<int>(size);
  }
  result.columns = static_cast<int>(array.extents[array.rank - 1]);
  return result;
}

template <int Dim>
Box<Dim> spectrum_box(const Arguments& arguments, const char* argument, const ArrayShape& array) {
  return box<Dim>(arguments, argument, array, true);
}

template <int Dim>
Box<Dim> image_box(const Arguments& arguments, const char* argument, const ArrayShape& array) {
  return box<Dim>(arguments, argument, array, false);
}

/// Calls body(row, member) for rows in blocks of one team each; the body spreads the columns over the
/// member's vector lanes.
template <class ExecutionSpace, class Body>
struct RowLoop {
  static constexpr int rows_per_team = 16;
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  Body body;
  std::int64_t rows;

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const std::int64_t first = std::int64_t(member.league_rank()) * rows_per_team;
    const int count = static_cast<int>(Kokkos::min(std::int64_t(rows_per_team), rows - first));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, count), [&](int i) { body(first + i, member); });
  }
};

template <class ExecutionSpace, class Body>
void for_each_row(const ExecutionSpace& space, const char* label, std::int64_t rows, const Body& body) {
  using Loop = RowLoop<ExecutionSpace, Body>;
  if (rows == 0)
    return;
  const auto league = static_cast<int>((rows + Loop::rows_per_team - 1) / Loop::rows_per_team);
  const int threads = is_host<ExecutionSpace> ? 1 : 8, lanes = is_host<ExecutionSpace> ? 1 : 32;
  launch_kernel(label, Kokkos::TeamPolicy<ExecutionSpace>(space, league, threads, lanes), Loop{body, rows});
}

} // namespace Bracewell::Impl
