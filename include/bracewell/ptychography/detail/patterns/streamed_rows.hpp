// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/scan_store.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>
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
public:
  StreamedRows() = default;
  StreamedRows(const Space& space, const char* name, const RowShares& shares, std::int64_t size)
      : shares_(shares), size_(size),
        device_(
            device_vector<Value>(space, {"Bracewell::PtychographyLoss::", name}, shares.on_device() * size)),
        host_(Kokkos::view_alloc(Kokkos::WithoutInitializing,
                                 std::string(Label("Bracewell::PtychographyLoss::on_host::", name))),
              sizeof(Value) * static_cast<std::size_t>(shares.on_host() * size)) {}

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
      launch_teams(
          "Bracewell::PtychographyLoss::fetch_patterns", space,
          std::min<std::int64_t>(Gather::teams, selection.count),
          Gather{device_.data(), on_host(shares_.resident), shares_.resident, size_, selection, slot(which)});
      return;
    }
    const std::int64_t staying = values_staying(selection.first, selection.count);
    copy_on_device(space, device_.data() + selection.first * size_, staying, slot(which));
    copy_to_device(space, on_host(selection.first) + staying,
                   static_cast<std::size_t>(selection.count * size_ - staying), slot(which) + staying);
  }

  /// The reverse, for rows first, first + 1, ...
  void put(const Space& space, std::int64_t first, std::int64_t count, int which) const {
    if (size_ == 0)
      return;
    const std::int64_t staying = values_staying(first, count);
    copy_on_device(space, slot(which), staying, device_.data() + first * size_);
    copy_to_host(space, slot(which) + staying, static_cast<std::size_t>(count * size_ - staying),
                 on_host(first) + staying);
  }

private:
  /// Of the rows first, first + 1, ...: those on the device come before the others.
  std::int64_t values_staying(std::int64_t first, std::int64_t count) const {
    return std::clamp<std::int64_t>(shares_.resident - first, 0, count) * size_;
  }
  /// Where a row is on the host, or would be.
  Value* on_host(std::int64_t row) const {
    return reinterpret_cast<Value*>(host_.data()) + (row - shares_.resident) * size_;
  }
  static void copy_on_device(const Space& space, const Value* from, std::int64_t count, Value* to) {
    if (count > 0)
      copy_padded(space, "Bracewell::PtychographyLoss::copy_patterns", from, count, to, count);
  }

  RowShares shares_{0, 0, 0};
  std::int64_t size_ = 0;
  Kokkos::View<Value*, Space> device_;
  Kokkos::View<char*, Kokkos::SharedHostPinnedSpace> host_;
};

} // namespace Bracewell::Impl
