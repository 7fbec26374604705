// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/bin_grid.hpp>
#include <bracewell/gridding/detail/tuning.hpp>
#include <bracewell/impl/chip_teams.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace Bracewell::Impl {

/// A piece of work: samples begin .. end in the order of bins, which belong to one. Of bins with many samples
/// there are several, each with memory of its own (slot) for its tile; otherwise slot is negative.
struct BinTask {
  std::uint32_t begin, end, bin;
  std::int32_t slot;
};

/// A bin whose tiles lie in slots first .. first + count - 1.
struct SplitBin {
  std::uint32_t bin;
  std::int32_t first, count;
};

/// The pieces of work of all bins.
template <int Dim>
struct BinTasks {
  static constexpr int colours = BinGrid<Dim>::most_colours;

  std::vector<BinTask> tasks;                       ///< those with slots, then the others colour by colour
  std::vector<SplitBin> split;                      ///< colour by colour
  std::array<int, colours + 1> task_end, split_end; ///< of colour c at c + 1; before the first at 0
  int slots = 0;
  std::int64_t largest = 0; ///< samples of a bin, at most
  std::int64_t alone = 0;   ///< samples of a bin without slots, at most

  struct Limits {
    std::int64_t most;  ///< samples of a task
    std::int64_t alone; ///< samples of a bin that has no slot: a task of `most` would keep others waiting
    std::int64_t tasks; ///< of bins with slots: whole rounds of the teams at work, for which `most` may grow
  };

  /// No task takes more samples than a small share of what one of the teams that run at once does in all:
  /// points that crowd into few bins are shared by all teams.
  /// @param teams  at work at once
  template <class Space>
  static Limits limits(const Space& space, std::int64_t points, std::int64_t teams) {
    constexpr const GriddingTuning& tuning = tuning_of<Space>;
    const std::int64_t wanted = std::int64_t(space.concurrency()) * tuning.bin_tasks / tuning.bin_lanes;
    const std::int64_t tasks = std::max<std::int64_t>(wanted / teams, 1) * teams;
    const std::int64_t most =
        std::clamp<std::int64_t>(points / tasks, tuning.least_bin_task, tuning.most_bin_task);
    return {most, most / tuning.bin_share_alone, tasks};
  }

  /// @param begin  where the samples of every bin begin, and where the last ones end
  static BinTasks make(const BinGrid<Dim>& bins, const std::uint32_t* begin, Limits limits) {
    BinTasks result;
    result.alone = limits.alone;
    // Bins of a colour; below, where the next one of it belongs.
    std::array<int, colours> whole = {}, divided = {};
    std::vector<std::int64_t> large;
    for_each_filled(bins, begin, [&](std::uint32_t, std::int64_t samples, std::size_t colour) {
      result.largest = std::max(result.largest, samples);
      ++(samples <= limits.alone ? whole : divided)[colour];
      if (samples > limits.alone)
        large.push_back(samples);
    });
    const std::int64_t most = rounded(large, limits);
    for (const std::int64_t samples : large)
      result.slots += static_cast<int>((samples + most - 1) / most);
    result.task_end[0] = result.slots;
    result.split_end[0] = 0;
    for (std::size_t colour = 0; colour < colours; ++colour) {
      result.task_end[colour + 1] =
          result.task_end[colour] + std::exchange(whole[colour], result.task_end[colour]);
      result.split_end[colour + 1] =
          result.split_end[colour] + std::exchange(divided[colour], result.split_end[colour]);
    }
    result.tasks.resize(static_cast<std::size_t>(result.task_end[colours]));
    result.split.resize(static_cast<std::size_t>(result.split_end[colours]));
    int slot = 0;
    for_each_filled(bins, begin, [&](std::uint32_t bin, std::int64_t samples, std::size_t colour) {
      const std::int64_t first = begin[bin];
      if (samples <= limits.alone) {
        result.tasks[std::size_t(whole[colour]++)] = {begin[bin], begin[bin + 1], bin, -1};
        return;
      }
      const std::int64_t parts = (samples + most - 1) / most;
      result.split[std::size_t(divided[colour]++)] = {bin, slot, std::int32_t(parts)};
      for (std::int64_t i = 0; i < parts; ++i, ++slot)
        result.tasks[std::size_t(slot)] = {std::uint32_t(first + samples * i / parts),
                                           std::uint32_t(first + samples * (i + 1) / parts), bin, slot};
    });
    return result;
  }

  std::size_t bytes() const { return tasks.size() * sizeof(BinTask) + split.size() * sizeof(SplitBin); }

private:
  /// Calls visit(bin, samples, colour) for every bin that has samples. Colours are counted along: divisions would take
  /// most of the time that a host needs for tens of thousands of bins.
  template <class Visit>
  static void for_each_filled(const BinGrid<Dim>& bins, const std::uint32_t* begin, const Visit& visit) {
    const auto count = static_cast<std::uint32_t>(bins.count());
    int at[Dim] = {}, rest[Dim] = {};
    for (std::uint32_t bin = 0; bin < count; ++bin) {
      if (const std::int64_t samples = begin[bin + 1] - begin[bin]; samples > 0) {
        int colour = 0; // as BinGrid::colour
        for (int d = 0; d < Dim; ++d)
          colour = colour * bins.modulus + rest[d];
        visit(bin, samples, static_cast<std::size_t>(colour));
      }
      for (int d = 0; d < Dim; ++d) {
        rest[d] = rest[d] + 1 == bins.modulus ? 0 : rest[d] + 1;
        if (++at[d] < bins.number[d])
          break;
        at[d] = 0; // and so is the rest: numbers are multiples of the modulus
      }
    }
  }

  /// `most`, or as much more as bins with slots take to be no more tasks than wanted: a few more would be a round
  /// of their own, in which most teams have nothing to do.
  /// @param large  samples of the bins with slots
  static std::int64_t rounded(const std::vector<std::int64_t>& large, const Limits& limits) {
    for (std::int64_t most = limits.most; most < 2 * limits.most; most += limits.most / 64 + 1) {
      std::int64_t tasks = 0;
      for (const std::int64_t samples : large)
        tasks += (samples + most - 1) / most;
      if (tasks <= limits.tasks)
        return most;
    }
    return limits.most;
  }
};

/// Teams of SpreadBinsGpu that a GPU has at work at once; 1 elsewhere.
template <class Space, class T, int Dim>
std::int64_t bin_teams_at_once([[maybe_unused]] const Space& space,
                               [[maybe_unused]] const BinGrid<Dim>& bins) {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (has_chip_memory<Space>) {
    const auto& gpu = space.cuda_device_prop();
    const std::size_t bytes = bin_scratch_bytes(bins, sizeof(T)) + 64 + 1024; // 1 KB is the system's
    const auto fit = static_cast<std::int64_t>(gpu.sharedMemPerMultiprocessor / bytes);
    return gpu.multiProcessorCount * std::clamp<std::int64_t>(fit, 1, bin_teams(Dim, sizeof(T)));
  }
#endif
  return 1;
}

} // namespace Bracewell::Impl
