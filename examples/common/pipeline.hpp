// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// One stage of a pipeline: what is done with every item, and where.
struct Stage {
  std::string name; ///< one word, for --timings: "read"
  int threads = 1;  ///< of its own; 0: the thread that calls run_stages, which one stage at most may have
  /// Items that may wait for the next stage or be in it: the slots between both. Item k has slot k % slots.
  int slots = 1;
  std::function<void(std::int64_t item)> work = {};
  std::int64_t bytes = 0; ///< that pass through it in the whole run, for --timings; 0: not said
};

/// What a stage did in the time of a run.
struct StageTime {
  std::string name;
  int threads = 1;
  double busy = 0;              ///< seconds of work, the sum over threads
  double waited_for_before = 0; ///< for items, likewise
  double waited_for_after = 0;  ///< for slots
  std::int64_t bytes = 0;
  double elapsed = 0; ///< seconds of the whole run
};

/// Takes items 0 to items - 1 through all stages, which work side by side. Every stage begins the items in order;
/// one with a single thread also ends them in order. A stage begins item k once the stage before has ended all items
/// up to k and the stage after has ended item k - slots, so that no slot is written while it is read. The first
/// exception of a stage lets all others end their items, and is thrown again.
/// @param take  if given, is asked before the first stage begins an item, by its threads, whether there is such an item: the
///   first that there is not ends the run, and `items` says how many there are at most
std::vector<StageTime> run_stages(std::int64_t items, const std::vector<Stage>& stages,
                                  const std::function<bool(std::int64_t item)>& take = {});

} // namespace Bracewell::Examples
