// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>

#include <limits>
#include <string>

namespace Bracewell::Impl {

/// The rows of an array [..., (d,) h, columns]: Dim trailing axes behind batch axes, the rows in one sequence.
template <int Dim>
struct Box {
  static_assert(Dim == 2 || Dim == 3, "Bracewell: images and volumes have two or three dimensions.");

  int size[Dim];        ///< full sizes (x, y[, z])
  int columns;          ///< stored along x: fewer than size[0] in a half spectrum
  std::int64_t batches; ///< product of the leading axes

  KOKKOS_FUNCTION std::int64_t rows() const {
    std::int64_t product = batches;
    for (int d = 1; d < Dim; ++d)
      product *= size[d];
    return product;
  }

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
template <int Dim, class Value, class MemorySpace>
Box<Dim> box(const Arguments& arguments, const char* argument, const Array<Value, MemorySpace>& array,
             bool half) {
  arguments.given(argument, array);
  const auto shape = [&] { return array.shape(); };
  arguments.require(
      array.rank >= Dim, argument, [] { return "at least " + std::to_string(Dim) + " axes"; }, shape);
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
    const auto expected = [&] {
      return half ? "a half spectrum of W/2+1 columns (width " + std::to_string(array.width) + ")"
                  : std::string("axes of at least one element");
    };
    arguments.require(fits, argument, expected, shape);
    result.size[d] = static_cast<int>(size);
  }
  result.columns = static_cast<int>(array.extents[array.rank - 1]);
  return result;
}

template <int Dim, class Value, class MemorySpace>
Box<Dim> spectrum_box(const Arguments& arguments, const char* argument,
                      const Array<Value, MemorySpace>& array) {
  return box<Dim>(arguments, argument, array, true);
}

template <int Dim, class Value, class MemorySpace>
Box<Dim> image_box(const Arguments& arguments, const char* argument, const Array<Value, MemorySpace>& array) {
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
