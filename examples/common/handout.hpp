// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/distributed/communicator.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace Bracewell::Examples {

/// Numbered things that processes take in parts, in order and as they come free, so that each does as much as it can:
/// all have the same list of parts, and a counter in the first process' memory says which one is the next. Parts become
/// smaller to the end, where a slow process should not have much left.
///
/// From the first take() to the last nobody else in the process calls MPI.
///
/// The item k of a process is its k-th part; the first stage of a pipeline take()s it.
class Handout {
public:
  /// Of `count` things to all processes, up to `most` at a time, in groups of `group` that stay together. Collective, as
  /// is the end of its life. Throws std::runtime_error for an MPI that lets one thread alone call it.
  Handout(std::int64_t count, std::int64_t most, std::int64_t group = 1);
  /// Of things that are this process' own, for work that no other can do.
  Handout(Share own, std::int64_t most, std::int64_t group = 1);
  Handout(const Handout&) = delete;
  Handout& operator=(const Handout&) = delete;
  ~Handout();

  /// Of all parts; with things of its own of those of this process.
  std::int64_t size() const { return parts_.empty() ? 0 : parts_.back().end - parts_.front().begin; }
  /// All parts; with things of its own those of this process.
  const std::vector<Share>& parts() const { return parts_; }
  /// Takes parts up to the item-th of this process; false where there are not so many left. From any thread.
  bool take(std::int64_t item);
  /// An item that was taken.
  Share part(std::int64_t item) const;
  /// Things between an item and the one before it, which other processes took.
  std::int64_t passed_over(std::int64_t item) const;
  /// Things that this process took so far.
  std::int64_t taken() const;

  /// Hands no more parts out. In the first process.
  void stop();
  /// Things that were handed out, to whichever process: the first so many. Collective, when all have taken what they can.
  std::int64_t handed_out() const;

private:
  class Counter;

  void serve(const std::stop_token& end);

  std::vector<Share> parts_;
  std::unique_ptr<Counter> counter_;
  mutable std::mutex mutex_;
  std::vector<std::int64_t> taken_; ///< numbers of parts
  std::int64_t end_;                ///< the number at which stop() came
  std::jthread server_;             ///< in the first process, until the last part is taken
};

} // namespace Bracewell::Examples
