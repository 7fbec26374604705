// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

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

/// Orthonormal functions of positions [N, 2] that span 1, row and column, as [N, 3]: by their sums all positions
/// move together. Zero where positions on a line or a point leave none.
inline std::vector<double> common_moves(const std::vector<double>& positions) {
  const std::size_t size = positions.size() / 2, width = 3;
  std::vector<double> moves(size * width);
  for (std::size_t k = 0; k < width; ++k) {
    for (std::size_t j = 0; j < size; ++j)
      moves[j * width + k] = k == 0 ? 1 : positions[2 * j + k - 1];
    const auto product = [&](std::size_t other) {
      double sum = 0;
      for (std::size_t j = 0; j < size; ++j)
        sum += moves[j * width + k] * moves[j * width + other];
      return sum;
    };
    const double before = product(k);
    for (int twice = 0; twice < 2; ++twice)
      for (std::size_t other = 0; other < k; ++other) {
        const double part = product(other);
        for (std::size_t j = 0; j < size; ++j)
          moves[j * width + k] -= part * moves[j * width + other];
      }
    const double norm = product(k), factor = norm > 1e-12 * before ? 1 / std::sqrt(norm) : 0;
    for (std::size_t j = 0; j < size; ++j)
      moves[j * width + k] *= factor;
  }
  return moves;
}

/// Takes from the displacements what all positions do together, and what goes beyond the limit: one team.
template <class Space, class T>
struct LimitDisplacements {
  static constexpr int team_size = is_host<Space> ? 1 : PtychographyTuning::sum_threads;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  T* displacements;    ///< [N, 2]
  const double* moves; ///< [N, 3], see common_moves
  std::int64_t count;
  T limit;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto range = Kokkos::TeamThreadRange(team, count);
    for (int k = 0; k < 3; ++k) {
      double rows = 0, columns = 0;
      Kokkos::parallel_reduce(
          range,
          [&](std::int64_t j, double& sum_rows, double& sum_columns) {
            sum_rows += moves[3 * j + k] * double(displacements[2 * j]);
            sum_columns += moves[3 * j + k] * double(displacements[2 * j + 1]);
          },
          rows, columns);
      Kokkos::parallel_for(range, [&](std::int64_t j) {
        displacements[2 * j] -= static_cast<T>(rows * moves[3 * j + k]);
        displacements[2 * j + 1] -= static_cast<T>(columns * moves[3 * j + k]);
      });
      team.team_barrier();
    }
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 2 * count), [&](std::int64_t i) {
      displacements[i] = Kokkos::min(limit, Kokkos::max(-limit, displacements[i]));
    });
  }
};

} // namespace Bracewell::Impl
