// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/scan_store.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

#include <algorithm>
#include <string>

namespace Bracewell::Impl {

/// How rows, one for each pattern, are shared out: the first ones stay on the device, the others on the host, and two
/// groups are on their way or worked on.
struct RowShares {
  std::int64_t count, resident, group; ///< group: rows of one of two slots; 0 where all stay on the device

  /// @param allowed  rows that the device may have; at least two are taken
  /// @param group    rows that are worked on together, at most
  RowShares(std::int64_t count_, std::int64_t allowed, std::int64_t group_) : count(count_) {
    const std::int64_t capacity = std::max<std::int64_t>(2, allowed);
    group = capacity < count ? std::clamp<std::int64_t>(group_, 1, capacity / 2) : 0;
    resident = group > 0 ? capacity - 2 * group : count;
  }

  bool streams() const { return group > 0; }
  std::int64_t on_device() const { return resident + 2 * group; }
  std::int64_t on_host() const { return count - resident; }
  bool stay(const Selection& selection) const {
    return !streams() || (!selection.patterns && selection.first + selection.count <= resident);
  }
};

/// In which order groups are worked on: those that stay on the device, which are the first, are spread evenly among those that
/// come from the host, so that the bus is never idle. The first group is the first.
struct GroupOrder {
  std::int64_t groups, staying;

  std::int64_t group(std::int64_t k) const {
    const std::int64_t before = coming(k);
    return coming(k + 1) > before ? staying + before : k - before;
  }
  /// The next one from the host after the k-th; `groups` where there is none.
  std::int64_t next(std::int64_t k) const { return staying + coming(k + 1); }

private:
  /// Of the first k groups.
  std::int64_t coming(std::int64_t k) const { return k * (groups - staying) / groups; }
};

/// Rows of a selection in its order, a team for each; those on the host are read from there.
template <class Space, class Value>
struct GatherRows {
  static constexpr int team_size = is_host<Space> ? 1 : PtychographyTuning::pattern_threads;
  static constexpr int teams = 256; ///< so few that other kernels have room, enough to keep the bus busy
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  const Value *device, *host;
  std::int64_t resident, size;
  Selection selection;
  Value* slot;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    for (std::int64_t i = team.league_rank(); i < selection.count; i += team.league_size()) {
      const std::int64_t j = selection(i);
      const Value* const from = j < resident ? device + j * size : host + (j - resident) * size;
      Value* const to = slot + i * size;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, size), [&](std::int64_t k) { to[k] = from[k]; });
    }
  }
};

/// The rows, in memory of the device and of the host.
template <class Space, class Value>
class StreamedRows {
  using Memory = typename Space::memory_space;
  using HostMemory = Kokkos::SharedHostPinnedSpace;
  template <class M>
  using View = Kokkos::View<Value*, Kokkos::LayoutRight, M>;

public:
  StreamedRows() = default;
  StreamedRows(const Space& space, const std::string& name, const RowShares& shares, std::int64_t size)
      : shares_(shares), size_(size),
        device_(
            device_vector<Value>(space, "Bracewell::PtychographyLoss::" + name, shares.on_device() * size)),
        host_(Kokkos::view_alloc(Kokkos::WithoutInitializing,
                                 "Bracewell::PtychographyLoss::" + name + "_on_host"),
              static_cast<std::size_t>(shares.on_host() * size)) {}

  std::size_t memory_bytes() const { return bytes_of(device_); }
  std::size_t host_bytes() const { return bytes_of(host_); }

  /// Those that stay on the device, by pattern; null where there are none of this name.
  Value* resident() const { return device_.data(); }
  Value* slot(int which) const { return device_.data() + (shares_.resident + which * shares_.group) * size_; }

  /// Copies rows of a selection to a slot, as work of the instance.
  void fetch(const Space& space, const Selection& selection, int which) const {
    if (size_ == 0)
      return;
    if (selection.patterns) {
      using Gather = GatherRows<Space, Value>;
      launch_kernel("Bracewell::PtychographyLoss::fetch_patterns",
                    Kokkos::TeamPolicy<Space>(
                        space, static_cast<int>(std::min<std::int64_t>(Gather::teams, selection.count)),
                        +Gather::team_size),
                    Gather{device_.data(), host_.data(), shares_.resident, size_, selection, slot(which)});
      return;
    }
    copy(selection.first, selection.count, [&](const auto& rows, std::int64_t begin) {
      Kokkos::deep_copy(space, part(device_, shares_.resident + which * shares_.group + begin, rows.size()),
                        rows);
    });
  }

  /// The reverse, for rows first, first + 1, ...
  void put(const Space& space, std::int64_t first, std::int64_t count, int which) const {
    if (size_ == 0)
      return;
    copy(first, count, [&](const auto& rows, std::int64_t begin) {
      Kokkos::deep_copy(space, rows,
                        part(device_, shares_.resident + which * shares_.group + begin, rows.size()));
    });
  }

private:
  /// `values` of a View from a row on.
  template <class Of>
  auto part(const Of& view, std::int64_t row, std::size_t values) const {
    return Kokkos::View<Value*, Kokkos::LayoutRight, typename Of::memory_space, Kokkos::MemoryUnmanaged>(
        view.data() + row * size_, values);
  }
  /// action(rows on the device or on the host, how many of the others come before).
  template <class Action>
  void copy(std::int64_t first, std::int64_t count, const Action& action) const {
    const std::int64_t stay = std::clamp<std::int64_t>(shares_.resident - first, 0, count);
    if (stay > 0)
      action(part(device_, first, static_cast<std::size_t>(stay * size_)), 0);
    if (stay < count)
      action(part(host_, first + stay - shares_.resident, static_cast<std::size_t>((count - stay) * size_)),
             stay);
  }

  RowShares shares_{0, 0, 0};
  std::int64_t size_ = 0;
  View<Memory> device_;
  View<HostMemory> host_;
};

} // namespace Bracewell::Impl
