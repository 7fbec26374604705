// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace Bracewell::Impl {

/// positions = first + displacements.
template <class T>
struct MovePositions {
  const double* first;
  const T* displacements;
  double* positions;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    positions[i] = first[i] + double(displacements[i]);
  }
};

/// Orthonormal functions of positions that span 1, row and column, at the positions [N, 2], as [N, 3]: by their sums all
/// positions move together. Zero where positions on a line or a point leave none.
/// @param sum  sum(numbers, count) replaces numbers by their sums over all processes, which have parts of the positions
template <class Sum>
std::vector<double> common_moves(const std::vector<double>& positions, const Sum& sum) {
  const std::size_t size = positions.size() / 2;
  double sums[3] = {double(size), 0, 0}; // of 1, row and column
  for (std::size_t i = 0; i < 2 * size; ++i)
    sums[1 + i % 2] += positions[i];
  sum(sums, 3);
  const double count = std::max(1.0, sums[0]), row = sums[1] / count, column = sums[2] / count;
  double products[3] = {0, 0, 0}; // of row and column from their means: squares, and with each other
  for (std::size_t j = 0; j < size; ++j) {
    const double y = positions[2 * j] - row, x = positions[2 * j + 1] - column;
    products[0] += y * y, products[1] += x * x, products[2] += y * x;
  }
  sum(products, 3);
  const auto factor = [&](double norm, double mean, double square) {
    return norm > 1e-12 * (square + count * mean * mean) ? 1 / std::sqrt(norm) : 0;
  };
  const double of_rows = factor(products[0], row, products[0]);
  const double slope = of_rows > 0 ? products[2] / products[0] : 0;
  const double of_columns = factor(products[1] - slope * products[2], column, products[1]);
  std::vector<double> moves;
  for (std::size_t j = 0; j < size; ++j) {
    const double y = positions[2 * j] - row, x = positions[2 * j + 1] - column;
    moves.insert(moves.end(), {1 / std::sqrt(count), of_rows * y, of_columns * (x - slope * y)});
  }
  return moves;
}

/// How far positions move together: one team.
template <class Space, class T>
struct SumCommonMoves {
  static constexpr int team_size = is_host<Space> ? 1 : PtychographyTuning::sum_threads;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  const T* displacements; ///< [N, 2]
  const double* moves;    ///< [N, 3], see common_moves
  std::int64_t count;
  double* sums; ///< [3, 2]

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    for (int k = 0; k < 3; ++k) {
      double rows = 0, columns = 0;
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, count),
          [&](std::int64_t j, double& sum_rows, double& sum_columns) {
            sum_rows += moves[3 * j + k] * double(displacements[2 * j]);
            sum_columns += moves[3 * j + k] * double(displacements[2 * j + 1]);
          },
          rows, columns);
      Kokkos::single(Kokkos::PerTeam(team), [&] { sums[2 * k] = rows, sums[2 * k + 1] = columns; });
    }
  }
};

/// Takes from the displacements what all positions do together, and what goes beyond the limit.
template <class T>
struct LimitDisplacements {
  T* displacements;    ///< [N, 2]
  const double* moves; ///< [N, 3]
  const double* sums;  ///< [3, 2], of SumCommonMoves
  T limit;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t j = i / 2, axis = i % 2;
    double common = 0;
    for (int k = 0; k < 3; ++k)
      common += sums[2 * k + axis] * moves[3 * j + k];
    const auto own = static_cast<T>(double(displacements[i]) - common);
    displacements[i] = Kokkos::min(limit, Kokkos::max(-limit, own));
  }
};

} // namespace Bracewell::Impl
