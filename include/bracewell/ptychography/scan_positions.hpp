// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/ptychography/detail/scan_store.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace Bracewell {

/// Where the probe stood: N windows of m x m pixels within the object, by their first (top left) pixel, as
/// (row, column). Positions that are not whole numbers are allowed: the window is the nearest one, which must lie
/// within the object (rows from -1/2 to below rows - m + 1/2), and the rest, within half a pixel, is a shift of
/// the probe. Checked and sorted when made or moved; movable. There may be no positions.
template <class ExecutionSpace>
class ScanPositions {
  using Memory = typename ExecutionSpace::memory_space;

public:
  /// @param positions  View [N, 2] of any real or integer type, in any memory that can be copied to the host
  /// @param object     rows and columns of the object
  /// @param probe      m
  /// @throws Error when a window leaves the object or a position is not a number; names the first of them
  ScanPositions(const ExecutionSpace& space, const Impl::HostPositions& positions,
                const std::array<std::int64_t, 2>& object, int probe)
      : store_(space, positions, object, probe, {"ScanPositions"}) {}

  /// How many positions there are.
  std::int64_t count() const { return store_.count(); }
  /// True when a position is not a whole number.
  bool subpixel() const { return store_.subpixel(); }

  /// Writes the positions [N, 2].
  void write(const ExecutionSpace& space, const Array<double, Memory>& positions) const {
    store_.write(space, positions);
  }

  /// Takes other positions. A window from which its position is more than 3/4 of a pixel away on an axis
  /// becomes the nearest one within the object, the others stay. Waits.
  /// @param positions  as many as there are
  /// @throws Error when a position is not finite
  void move_windows(const ExecutionSpace& space, const Array<const double, Memory>& positions) {
    store_.move_windows(space, positions, {"ScanPositions::move_windows"});
  }

  /// First pixels of the windows, [N, 2]: of two scans at the same positions they differ where windows have moved. Waits.
  std::vector<int> windows(const ExecutionSpace& space) const { return store_.windows(space); }

  /// Takes other positions and windows for them, as windows() gave them. Waits.
  /// @param first      [N, 2]
  /// @param positions  as many as there are
  /// @throws Error on another number of windows, one that leaves the object, and a position that is not finite
  void set_windows(const ExecutionSpace& space, const std::vector<int>& first,
                   const Array<const double, Memory>& positions) {
    store_.set_windows(space, first, positions, {"ScanPositions::set_windows"});
  }

  /// Bytes that the positions take.
  std::size_t memory_bytes() const { return store_.memory_bytes(); }

  /// For kernels.
  const Impl::ScanStore<ExecutionSpace>& store() const { return store_; }

private:
  Impl::ScanStore<ExecutionSpace> store_;
};

} // namespace Bracewell
