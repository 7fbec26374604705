// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace Bracewell::Impl {

/// Patterns first .. first + count - 1 of a subset of the scan (all of it where there is no list).
struct Selection {
  const int* patterns;
  std::int64_t first, count;

  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t i) const {
    return patterns ? patterns[first + i] : first + i;
  }
  bool operator==(const Selection&) const = default;
};

/// Where in a subset a pattern stands.
struct FillSlots {
  const int* patterns;
  int* slots;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { slots[patterns[i]] = static_cast<int>(i); }
};

/// What kernels need to know of a scan.
struct Scan {
  const int* positions; ///< [N, 2]: row, column of the first pixel of every window
  std::int64_t count;
  int probe; ///< m
  std::int64_t rows, columns;

  /// Index within the object of pixel (0, 0) of window j.
  KOKKOS_INLINE_FUNCTION std::int64_t corner(std::int64_t j) const {
    return positions[2 * j] * columns + positions[2 * j + 1];
  }
};

/// Rectangles of the object with the windows that reach each.
struct ScanTiles {
  static constexpr int height = PtychographyTuning::tile_height, width = PtychographyTuning::tile_width;
  std::int64_t across, count;
  const std::int64_t* first; ///< [count + 1]: where the list of a tile begins
  const int* windows;        ///< indices of positions, rising within a tile
};

/// positions = corners + fractions.
struct JoinPositions {
  const int* corners;
  const double* fractions; ///< or null
  double* positions;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    positions[i] = corners[i] + (fractions ? fractions[i] : 0);
  }
};

/// Positions on the host: what a View [N, 2] of any real or integer type, in any memory, converts to.
struct HostPositions {
  std::vector<double> values; ///< [N, axes]
  std::int64_t count = 0;
  std::size_t axes = 0;

  template <class View>
  HostPositions(const View& positions) {
    constexpr bool fits = Kokkos::is_view_v<View> && rank_of<View>() == 2;
    static_assert(fits, "Bracewell: positions: expected a View [N, 2] of numbers, found another type.");
    if constexpr (fits) {
      if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename View::memory_space>::accessible)
        read(positions);
      else
        read(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), positions));
    }
  }

private:
  template <class View>
  static constexpr int rank_of() {
    if constexpr (Kokkos::is_view_v<View>)
      return static_cast<int>(View::rank());
    return 0;
  }
  template <class View>
  void read(const View& host) {
    count = static_cast<std::int64_t>(host.extent(0));
    axes = host.extent(1);
    values.resize(host.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(host(i / axes, i % axes));
  }
};

/// The windows of a scan, checked and sorted into tiles of the object: what ScanPositions and PtychographyLoss hold. `arguments`
/// names the function that errors are about.
template <class Space>
class ScanStore {
  using Memory = typename Space::memory_space;
  template <class Value>
  using View = Kokkos::View<Value, Space>;

public:
  ScanStore(const Space& space, const HostPositions& positions, const std::array<std::int64_t, 2>& object,
            int probe, const Arguments& arguments)
      : scan_{nullptr, positions.count, probe, object[0], object[1]} {
    check(arguments, positions.axes);
    place(arguments, positions.values);
    sort_into_tiles();
    copy(space);
  }

  std::int64_t count() const { return scan_.count; }
  bool subpixel() const { return fractional_; }
  const Scan& device() const { return scan_; }
  const ScanTiles& tiles() const { return tile_lists_; }
  /// [N, 2], positions minus the window's first pixel; null when all are whole.
  const double* fractions() const { return fractional_ ? fractions_view_.data() : nullptr; }

  void write(const Space& space, const Array<double, Memory>& positions) const {
    launch_kernel("Bracewell::ScanPositions::write", Kokkos::RangePolicy<Space>(space, 0, 2 * scan_.count),
                  JoinPositions{scan_.positions, fractions(), positions.data});
  }

  void move_windows(const Space& space, const Array<const double, Memory>& positions,
                    const Arguments& arguments) {
    const std::vector<double> all = finite(space, positions, arguments);
    corners_ = windows(space);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (std::abs(all[i] - corners_[i]) > farthest)
        corners_[i] = static_cast<int>(std::clamp(std::floor(all[i] + 0.5), 0.0, last(i)));
    place_in_windows(space, all);
  }

  std::vector<int> windows(const Space& space) const {
    std::vector<int> result(static_cast<std::size_t>(2 * scan_.count));
    download(space, result, scan_.positions);
    return result;
  }

  void set_windows(const Space& space, const std::vector<int>& first,
                   const Array<const double, Memory>& positions, const Arguments& arguments) {
    if (static_cast<std::int64_t>(first.size()) != 2 * scan_.count)
      arguments.refuse("windows", "%lld numbers, found %zu", static_cast<long long>(2 * scan_.count),
                       first.size());
    for (std::size_t i = 0; i < first.size(); ++i)
      if (first[i] < 0 || first[i] > last(i))
        arguments.refuse("windows", "windows within the object, found %d (window %zu)", first[i], i / 2);
    const std::vector<double> all = finite(space, positions, arguments);
    corners_ = first;
    place_in_windows(space, all);
  }

  std::size_t memory_bytes() const {
    return bytes_of(positions_view_, fractions_view_, first_view_, windows_view_);
  }

private:
  static constexpr double farthest = 0.75;

  void check(const Arguments& arguments, std::size_t axes) const {
    if (axes != 2)
      arguments.refuse("positions", "[N, 2], found [N, %zu]", axes);
    if (scan_.count > 1 << 30)
      arguments.refuse("positions", "at most 2^30 positions, found %lld",
                       static_cast<long long>(scan_.count));
    for (const std::int64_t size : {scan_.rows, scan_.columns})
      if (size < 1 || size > 1 << 20)
        arguments.refuse("object", "axes of 1 to 2^20 pixels, found %lld", static_cast<long long>(size));
    arguments.within<std::int64_t>("probe", scan_.probe, 1, std::min(scan_.rows, scan_.columns));
  }

  /// The greatest corner, of rows (i even) or columns.
  double last(std::size_t i) const {
    return static_cast<double>((i % 2 == 0 ? scan_.rows : scan_.columns) - scan_.probe);
  }

  void place(const Arguments& arguments, const std::vector<double>& all) {
    corners_.resize(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double whole = std::floor(all[i] + 0.5);
      if (!(whole >= 0 && whole <= last(i)))
        arguments.refuse("positions",
                         "%s from -0.5 to below %.6g, so that the nearest window lies within the object, "
                         "found %.6g (position %zu)",
                         i % 2 == 0 ? "rows" : "columns", last(i) + 0.5, all[i], i / 2);
      corners_[i] = static_cast<int>(whole);
      fractional_ = fractional_ || all[i] != whole;
    }
    if (fractional_)
      for (std::size_t i = 0; i < all.size(); ++i)
        fractions_host_.push_back(all[i] - corners_[i]);
  }

  template <class Value>
  static void download(const Space& space, std::vector<Value>& values, const Value* from) {
    copy_to_host(space, from, values.size(), values.data());
    space.fence("Bracewell::ScanPositions: positions are on the host");
  }

  /// Positions on the host, which are finite.
  std::vector<double> finite(const Space& space, const Array<const double, Memory>& positions,
                             const Arguments& arguments) const {
    std::vector<double> all(static_cast<std::size_t>(2 * scan_.count));
    download(space, all, positions.data);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!is_finite(all[i]))
        arguments.refuse("positions", "finite numbers, found %.6g (position %zu)", all[i], i / 2);
    return all;
  }

  /// Positions in windows that are on the host.
  void place_in_windows(const Space& space, const std::vector<double>& all) {
    fractions_host_.resize(all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      fractions_host_[i] = all[i] - corners_[i];
    fractional_ = true;
    sort_into_tiles();
    copy(space);
  }

  /// Calls action(tile) for every tile that window j reaches.
  template <class Action>
  void for_each_tile(std::int64_t j, const Action& action) const {
    const int height = ScanTiles::height, width = ScanTiles::width;
    const int* const corner = corners_.data() + 2 * j;
    for (int row = corner[0] / height; row <= (corner[0] + scan_.probe - 1) / height; ++row)
      for (int column = corner[1] / width; column <= (corner[1] + scan_.probe - 1) / width; ++column)
        action(row * tile_lists_.across + column);
  }

  void sort_into_tiles() {
    tile_lists_.across = (scan_.columns + ScanTiles::width - 1) / ScanTiles::width;
    tile_lists_.count = tile_lists_.across * ((scan_.rows + ScanTiles::height - 1) / ScanTiles::height);
    first_host_.assign(static_cast<std::size_t>(tile_lists_.count + 1), 0);
    auto* const first = first_host_.data();
    for (std::int64_t j = 0; j < scan_.count; ++j)
      for_each_tile(j, [&](std::int64_t tile) { ++first[tile + 1]; });
    for (std::int64_t tile = 0; tile < tile_lists_.count; ++tile)
      first[tile + 1] += first[tile];
    windows_host_.resize(static_cast<std::size_t>(first_host_.back()));
    std::vector<std::int64_t> next(first_host_.begin(), first_host_.end() - 1);
    for (std::int64_t j = 0; j < scan_.count; ++j)
      for_each_tile(j, [&](std::int64_t tile) {
        windows_host_[std::size_t(next[std::size_t(tile)]++)] = static_cast<int>(j);
      });
  }

  void copy(const Space& space) {
    const auto to_device = [&](const char* label, const auto& values) {
      using Value = typename std::remove_cvref_t<decltype(values)>::value_type;
      const auto view = device_vector<Value>(space, label, static_cast<std::int64_t>(values.size()));
      copy_to_device(space, values.data(), values.size(), view.data());
      return view;
    };
    positions_view_ = to_device("Bracewell::ScanPositions::positions", corners_);
    first_view_ = to_device("Bracewell::ScanPositions::first", first_host_);
    windows_view_ = to_device("Bracewell::ScanPositions::windows", windows_host_);
    fractions_view_ = to_device("Bracewell::ScanPositions::fractions", fractions_host_);
    space.fence("Bracewell::ScanPositions: the lists on the host end here");
    scan_.positions = positions_view_.data();
    tile_lists_.first = first_view_.data();
    tile_lists_.windows = windows_view_.data();
    corners_ = {}, first_host_ = {}, windows_host_ = {}, fractions_host_ = {};
  }

  Scan scan_;
  ScanTiles tile_lists_ = {};
  bool fractional_ = false;
  std::vector<int> corners_, windows_host_;
  std::vector<std::int64_t> first_host_;
  std::vector<double> fractions_host_;
  View<int*> positions_view_, windows_view_;
  View<std::int64_t*> first_view_;
  View<double*> fractions_view_;
};

} // namespace Bracewell::Impl
