// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/distributed/communicator.hpp>
#include <bracewell/distributed/detail/exchanged_array.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <array>

namespace Bracewell {

/// A part of an array of two axes: from row and column `begin` on up to `end`, which is no part of it. Where an end is
/// not behind its begin, it is empty.
struct Rectangle {
  std::array<std::int64_t, 2> begin = {}; ///< row, column
  std::array<std::int64_t, 2> end = {};   ///< row, column

  /// How many rows there are.
  std::int64_t rows() const { return std::max<std::int64_t>(0, end[0] - begin[0]); }
  /// How many columns there are.
  std::int64_t columns() const { return std::max<std::int64_t>(0, end[1] - begin[1]); }
  /// Elements.
  std::int64_t size() const { return rows() * columns(); }
  /// Whether it has this element.
  bool has(std::int64_t row, std::int64_t column) const {
    return row >= begin[0] && row < end[0] && column >= begin[1] && column < end[1];
  }
  /// What this and another one have in common.
  Rectangle common(const Rectangle& other) const {
    return {{std::max(begin[0], other.begin[0]), std::max(begin[1], other.begin[1])},
            {std::min(end[0], other.end[0]), std::min(end[1], other.end[1])}};
  }
};

/// Sums an array of which each process holds one rectangle. Processes exchange the overlaps of their rectangles, and add
/// them. It owns the memory for this, and shares the communicator.
/// @code
/// const Overlaps<Space, Kokkos::complex<float>> overlaps(space, processes, rectangles); // one for each process
/// overlaps.sum(space, gradient);                                                        // of this process' rectangle
/// @endcode
/// @tparam Value  float, double, or a complex number of them
template <class ExecutionSpace, class Value>
class Overlaps {
  using Memory = typename ExecutionSpace::memory_space;

public:
  /// @param rectangles  of all processes in the order of ranks, the same list in each process; some may be empty
  /// @throws Error where there are not as many rectangles as processes
  Overlaps(const ExecutionSpace& space, const Communicator<ExecutionSpace>& processes,
           const std::vector<Rectangle>& rectangles)
      : processes_(processes) {
    Impl::Arguments{"Overlaps"}.require(
        std::ssize(rectangles) == processes.size(), "rectangles",
        [&] { return "one for each of " + Impl::number(processes.size()) + " processes"; },
        [&] { return Impl::number(rectangles.size()); });
    own_ = rectangles[static_cast<std::size_t>(processes.rank())];
    std::vector<Impl::Overlap> overlaps;
    std::int64_t elements = 0;
    for (int rank = 0; rank < processes.size(); ++rank) {
      if (rank == processes.rank())
        lower_ = static_cast<int>(overlaps.size());
      const Rectangle common = own_.common(rectangles[static_cast<std::size_t>(rank)]);
      if (rank == processes.rank() || common.size() == 0)
        continue;
      overlaps.push_back({common.begin[0] - own_.begin[0], common.begin[1] - own_.begin[1], common.rows(),
                          common.columns(), elements});
      messages_.push_back({rank, elements * bytes, common.size() * bytes});
      elements += common.size();
    }
    overlaps_ = Impl::device_copy(space, "Bracewell::Overlaps::overlaps", overlaps);
    sent_ = Impl::device_vector<Value>(space, "Bracewell::Overlaps::sent", elements);
    received_ = Impl::device_vector<Value>(space, "Bracewell::Overlaps::received", elements);
    if (!Impl::is_host<ExecutionSpace> && processes.transport() == Transport::Host) {
      const auto size = static_cast<std::size_t>(elements);
      staged_sent_ = Staged("Bracewell::Overlaps::staged_sent", size);
      staged_received_ = Staged("Bracewell::Overlaps::staged_received", size);
    }
  }

  /// Replaces every element that several processes have by the sum of theirs, in the order of ranks: with the same bits in
  /// each. Queued on the instance, for which it waits where MPI carries the messages. Collective.
  /// @param values  View [rows, columns] of this process' rectangle, rows without gaps
  /// @param others  Views that every process has whole, which are summed as Communicator::sum does. By Transport::Collectives
  ///   all travel together, which takes as long as the longest
  /// @throws Error on another shape, on what Communicator::sum throws, and where the transport fails
  template <class... Views>
  void sum(const ExecutionSpace& space, const Array<Value, Memory>& values, const Views&... others) const {
    constexpr const char* function = "Overlaps::sum";
    Impl::Arguments{function}.shape("values", values, {own_.rows(), own_.columns()});
    const Kokkos::Profiling::ScopedRegion region("Bracewell::Overlaps::sum");
    using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
    using Exchanged = Impl::ExchangedArray<ExecutionSpace>;
    Kokkos::parallel_for(
        "Bracewell::Overlaps::pack", Policy(space, 0, std::int64_t(sent_.size())),
        Impl::PackOverlaps<Value>{overlaps_.data(), values.data, own_.columns(), sent_.data()});
    const bool staged = staged_sent_.size() > 0;
    if (staged)
      Kokkos::deep_copy(space, staged_sent_, sent_);
    processes_.combine(function, space, processes_.transport(), false, {Exchanged::of_numbers(others)...},
                       {messages_, reinterpret_cast<const char*>(staged ? staged_sent_.data() : sent_.data()),
                        reinterpret_cast<char*>(staged ? staged_received_.data() : received_.data())});
    if (staged)
      Kokkos::deep_copy(space, received_, staged_received_);
    Kokkos::parallel_for("Bracewell::Overlaps::add", Policy(space, 0, messages_.empty() ? 0 : values.size()),
                         Impl::AddOverlaps<Value>{overlaps_.data(), static_cast<int>(messages_.size()),
                                                  lower_, received_.data(), own_.columns(), values.data});
  }

  /// Bytes that this process sends in a sum, and receives.
  std::int64_t exchanged_bytes() const { return std::int64_t(sent_.size()) * bytes; }

  /// Bytes that the overlaps take, without the host memory that devices copy from and to.
  std::size_t memory_bytes() const { return Impl::bytes_of(overlaps_, sent_, received_); }

private:
  static constexpr std::int64_t bytes = sizeof(Value);
  using Staged = Kokkos::View<Value*, typename Impl::ExchangedArray<ExecutionSpace>::Staging>;

  Communicator<ExecutionSpace> processes_;
  Rectangle own_;
  int lower_ = 0; ///< overlaps with processes of lower ranks
  std::vector<Impl::Message> messages_;
  Kokkos::View<Impl::Overlap*, ExecutionSpace> overlaps_;
  Kokkos::View<Value*, ExecutionSpace> sent_, received_;
  Staged staged_sent_, staged_received_; ///< where MPI does not read the memory of the space
};

} // namespace Bracewell
