// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/displacements.hpp>
#include <bracewell/ptychography/detail/host_lists.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace Bracewell::Impl {

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

  /// Of the first positions. Waits for the space.
  /// @param origin  row and column of the object of all processes where this one's begins
  void find_common_moves(const Space& space, const std::array<std::int64_t, 2>& origin, const Sum& sum) {
    std::vector<double> first(first_.size());
    const auto to_host = [&](auto& values, const auto& view) {
      Kokkos::deep_copy(space, host_list(values), device_list(view));
      space.fence("Bracewell::PtychographySolver: positions are on the host");
    };
    to_host(first, first_);
    for (std::size_t i = 0; sum && i < first.size(); ++i)
      first[i] += double(origin[i % 2]);
    const auto sum_on_host = [&](double* numbers, std::size_t count) {
      if (!sum)
        return;
      std::vector<double> values(numbers, numbers + count);
      const View<double*> on_device(sums_.data(), count);
      Kokkos::deep_copy(space, on_device, host_list(values));
      sum(space, on_device);
      to_host(values, on_device);
      std::ranges::copy(values, numbers);
    };
    common_moves_ =
        device_copy(space, "Bracewell::PtychographySolver::common_moves", common_moves(first, sum_on_host));
  }

  /// Where the displacements take the positions.
  void move(const Space& space) const {
    Kokkos::parallel_for("Bracewell::PtychographySolver::move_positions",
                         Kokkos::RangePolicy<Space>(space, 0, positions_.size()),
                         MovePositions<Real>{first_.data(), displacements_.data(), positions_.data()});
  }

  /// Takes from the displacements what positions do together, and what goes beyond a limit in pixels.
  void limit(const Space& space, double limit, const Sum& sum) const {
    using Moves = SumCommonMoves<Space, Real>;
    Kokkos::parallel_for("Bracewell::PtychographySolver::sum_common_moves",
                         Kokkos::TeamPolicy<Space>(space, 1, +Moves::team_size),
                         Moves{displacements_.data(), common_moves_.data(),
                               std::int64_t(displacements_.extent(0)), sums_.data()});
    if (sum)
      sum(space, sums_);
    Kokkos::parallel_for("Bracewell::PtychographySolver::limit_displacements",
                         Kokkos::RangePolicy<Space>(space, 0, std::int64_t(displacements_.size())),
                         LimitDisplacements<Real>{displacements_.data(), common_moves_.data(), sums_.data(),
                                                  static_cast<Real>(limit)});
  }

private:
  template <class Value, class... Extents>
  static View<Value> zeros(const Space& space, const char* name, Extents... extents) {
    return device_zeros<Value>(space, std::string("Bracewell::PtychographySolver::") + name, extents...);
  }

  View<double**> first_, positions_;
  View<Real**> displacements_, gradient_;
  Kokkos::View<double*, Space> common_moves_;
  View<double*> sums_;
};

} // namespace Bracewell::Impl
