// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>
#include <bracewell/ptychography/solver_options.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
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
      team_sums<Space>(
          team, count,
          [&](std::int64_t j, double& sum_rows, double& sum_columns) {
            sum_rows += moves[3 * j + k] * double(displacements[2 * j]);
            sum_columns += moves[3 * j + k] * double(displacements[2 * j + 1]);
          },
          rows, columns);
      Kokkos::single(Kokkos::PerTeam(team), [&] { sums[2 * k] = rows, sums[2 * k + 1] = columns; });
    }
  }
};

/// Keeps of the displacements what positions may do: that of each, that of all but for the common move, or both. Takes what goes
/// beyond the limit.
template <class T>
struct LimitDisplacements {
  T* displacements;    ///< [N, 2]
  const double* moves; ///< [N, 3]
  const double* sums;  ///< [3, 2], of SumCommonMoves
  T limit;
  PositionMoves kind;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t j = i / 2, axis = i % 2;
    const double all = sums[axis] * moves[3 * j];
    double affine = 0;
    for (int k = 1; k < 3; ++k)
      affine += sums[2 * k + axis] * moves[3 * j + k];
    double own = affine;
    if (kind != PositionMoves::Affine)
      own = double(displacements[i]) - all - (kind == PositionMoves::Single ? affine : 0);
    displacements[i] = Kokkos::min(limit, Kokkos::max(-limit, static_cast<T>(own)));
  }
};

/// Amplitudes between limits.
template <class T>
struct LimitAmplitudes {
  T* amplitude;
  T least, greatest;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    amplitude[i] = Kokkos::min(greatest, Kokkos::max(least, amplitude[i]));
  }
};

/// Modes of a probe [modes, m, m] that are zero beyond a disc in the middle.
template <class T>
struct LimitProbe {
  Kokkos::complex<T>* probe;
  std::int64_t m;
  double squared_radius;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto row = double(i / m % m - m / 2), column = double(i % m - m / 2);
    if (row * row + column * column > squared_radius)
      probe[i] = Kokkos::complex<T>(0);
  }
};

/// The object where its support is not: what is known of it there.
template <class T>
struct LimitObject {
  const T* support; ///< [rows, columns]
  std::int64_t size;
  T *amplitude, *phase; ///< [slices rows, columns]
  T beyond;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (support[i % size] > T(0))
      return;
    amplitude[i] = beyond;
    phase[i] = 0;
  }
};

/// squares = roots^2.
template <class T>
struct SquareRoots {
  const T* roots;
  T* squares;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { squares[i] = roots[i] * roots[i]; }
};

/// The gradient of squares becomes that of their roots.
template <class T>
struct RootGradients {
  const T* roots;
  T* gradients;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { gradients[i] *= 2 * roots[i]; }
};

/// Factors of patterns stay so large that they come back.
template <class T>
struct LimitFactors {
  T* factors;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    factors[i] = Kokkos::max(factors[i], static_cast<T>(0.01));
  }
};

/// The positions that a PtychographySolver moves, or none: where they were at first, by how much they are moved, the
/// gradient of that, and what all positions can do together, which is taken from it.
template <class Space, class Real>
class RefinedPositions {
  using Memory = typename Space::memory_space;
  template <class Value>
  using View = Kokkos::View<Value, Kokkos::LayoutRight, Memory>;

public:
  /// Replaces numbers by their sums over processes, which have parts of the positions; empty: there is one process.
  using Sum = std::function<void(const Space&, const View<double*>& numbers)>;

  RefinedPositions() = default;
  RefinedPositions(const Space& space, std::int64_t count)
      : first_(zeros<double**>(space, "first_positions", count, 2)),
        positions_(zeros<double**>(space, "positions", count, 2)),
        displacements_(zeros<Real**>(space, "displacements", count, 2)),
        gradient_(zeros<Real**>(space, "position_gradient", count, 2)),
        sums_(zeros<double*>(space, "position_sums", 6)) {}

  const View<double**>& first() const { return first_; }               ///< [N, 2], which its owner writes
  const View<double**>& positions() const { return positions_; }       ///< [N, 2], as move() left them
  const View<Real**>& displacements() const { return displacements_; } ///< [N, 2]
  const View<Real**>& gradient() const { return gradient_; }           ///< [N, 2], of the displacements

  std::size_t memory_bytes() const {
    return bytes_of(first_, positions_, displacements_, gradient_, common_moves_, sums_);
  }
  static std::size_t bytes_needed(std::size_t count) {
    return count * (7 * sizeof(double) + 4 * sizeof(Real)) + 6 * sizeof(double);
  }

  /// Of the positions that the displacements lead to: those written, with their errors, would take part of a true scale for one.
  /// Waits for the space.
  /// @param origin  row and column of the object of all processes where this one's begins
  void find_common_moves(const Space& space, const std::array<std::int64_t, 2>& origin, const Sum& sum) {
    move(space);
    std::vector<double> present(positions_.size());
    const auto to_host = [&](double* values, const double* from, std::size_t count) {
      copy_to_host(space, from, count, values);
      space.fence("Bracewell::PtychographySolver: positions are on the host");
    };
    to_host(present.data(), positions_.data(), present.size());
    for (std::size_t i = 0; sum && i < present.size(); ++i)
      present[i] += double(origin[i % 2]);
    const auto sum_on_host = [&](double* numbers, std::size_t count) {
      if (!sum)
        return;
      copy_to_device(space, numbers, count, sums_.data());
      sum(space, View<double*>(sums_.data(), count));
      to_host(numbers, sums_.data(), count);
    };
    common_moves_ =
        device_copy(space, "Bracewell::PtychographySolver::common_moves", common_moves(present, sum_on_host));
  }

  /// Where the displacements take the positions.
  void move(const Space& space) const {
    launch_kernel("Bracewell::PtychographySolver::move_positions",
                  Kokkos::RangePolicy<Space>(space, 0, positions_.size()),
                  MovePositions<Real>{first_.data(), displacements_.data(), positions_.data()});
  }

  /// Takes from the displacements what positions must not do, and what goes beyond a limit in pixels.
  void limit(const Space& space, double limit, PositionMoves kind, const Sum& sum) const {
    using Moves = SumCommonMoves<Space, Real>;
    launch_teams("Bracewell::PtychographySolver::sum_common_moves", space, 1,
                 Moves{displacements_.data(), common_moves_.data(), std::int64_t(displacements_.extent(0)),
                       sums_.data()});
    if (sum)
      sum(space, sums_);
    launch_kernel("Bracewell::PtychographySolver::limit_displacements",
                  Kokkos::RangePolicy<Space>(space, 0, std::int64_t(displacements_.size())),
                  LimitDisplacements<Real>{displacements_.data(), common_moves_.data(), sums_.data(),
                                           static_cast<Real>(limit), kind});
  }

private:
  template <class Value, class... Extents>
  static View<Value> zeros(const Space& space, const char* name, Extents... extents) {
    return device_zeros<Value>(space, {"Bracewell::PtychographySolver::", name}, extents...);
  }

  View<double**> first_, positions_;
  View<Real**> displacements_, gradient_;
  Kokkos::View<double*, Space> common_moves_;
  View<double*> sums_;
};

} // namespace Bracewell::Impl
