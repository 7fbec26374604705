// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/distributed/detail/collectives.hpp>
#include <bracewell/distributed/detail/exchanged_array.hpp>
#include <bracewell/distributed/detail/processes.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/memory.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace Bracewell {

/// What carries sums between processes.
enum class Transport {
  Automatic,  ///< Collectives where they were built in and each process has a GPU of its own, else Host
  Host,       ///< MPI, through memory of the host: any MPI will do
  Device,     ///< MPI that reads and writes memory of devices
  Collectives ///< NCCL or RCCL, queued on the instance (built in with BRACEWELL_ENABLE_NCCL)
};

/// A part of numbered things.
struct Share {
  std::int64_t begin; ///< the first number
  std::int64_t end;   ///< one behind the last

  /// How many there are.
  std::int64_t size() const { return end - begin; }
};

/// The processes that work on one problem, each on its part and on a device of its own. It tells the number of this process
/// and its part, and adds the parts up. Operators know nothing of it. Built without MPI, or without an MPI communicator, it
/// is one process.
///
/// Collective functions are called by every process, in the same order, with Views of the same sizes. A Communicator
/// duplicates the communicator of MPI that it is given, and frees the duplicate. It initialises, prints and aborts nothing.
/// Copies share the duplicate.
/// @code
/// const Communicator<Space> processes(space, MPI_COMM_WORLD);
/// const Share mine = processes.share(particles);
/// backproject(space, projections, {.matrices = matrices}, {.data = data, .weight = weight}); // of mine
/// processes.sum(space, data, weight);
/// @endcode
template <class ExecutionSpace>
class Communicator {
  using Exchanged = Impl::ExchangedArray<ExecutionSpace>;

public:
  /// Bytes that sums through the host take at a time. Two pieces fit a cache, where they are summed at twice the speed of
  /// memory (2026-11-23, two cores, Open MPI 4.1.4; bench/bench_distributed, docs/how/distributed.md).
  static constexpr std::int64_t piece_bytes = 4 << 20;

  /// One process.
  Communicator() = default;

#if defined(BRACEWELL_ENABLE_MPI)
  /// The processes of an MPI communicator. Collective.
  /// @param communicator  is duplicated
  /// @param transport     what carries sums
  /// @throws Error before MPI_Init, on MPI_COMM_NULL, on a transport that is not there or that does not sum known
  ///   numbers to what is known, and where MPI fails
  Communicator(const ExecutionSpace& space, MPI_Comm communicator, Transport transport = Transport::Automatic)
      : processes_(std::make_shared<const Impl::Processes>(communicator)) {
    staging_.allocate("Bracewell::Communicator::staging");
    received_ = Piece("Bracewell::Communicator::staging", piece_bytes);
    choose(transport);
    test(space);
  }
#endif

  /// The number of this process, from 0.
  int rank() const { return processes_ ? processes_->rank() : 0; }
  /// Processes.
  int size() const { return processes_ ? processes_->size() : 1; }
  /// What carries sums: not Automatic.
  Transport transport() const { return transport_; }

  /// Which of `count` things are this process': neighbours, as even as can be. Of fewer things than processes some
  /// have none.
  /// @throws Error on a negative count
  Share share(std::int64_t count) const {
    Impl::Arguments{"Communicator::share"}.at_least<std::int64_t>("count", count, 0);
    const std::int64_t least = count / size(), more = count % size();
    const std::int64_t begin = rank() * least + std::min<std::int64_t>(rank(), more);
    return {begin, begin + least + (rank() < more ? 1 : 0)};
  }

  /// Replaces every element of the Views by its sum over processes, after what the instance has to do before. By
  /// Transport::Collectives the sum is queued on the instance, else it is there at return. Collective.
  /// @param views  of float, double or complex numbers, any sizes, rows without gaps; in memory of the space or of the
  ///   host, for which Transport::Collectives is not used
  /// @throws Error on gaps, on Views that share memory, and where the transport fails
  template <class... Views>
  void sum(const ExecutionSpace& space, const Views&... views) const {
    combine("Communicator::sum", space, transport_, false, {Exchanged::of_numbers(views)...});
  }

  /// The same through the host, in the order of a fixed tree of ranks: for as many processes with equal Views equal
  /// bits. Collective.
  template <class... Views>
  void reduce_in_order(const ExecutionSpace& space, const Views&... views) const {
    combine("Communicator::reduce_in_order", space, Transport::Host, true, {Exchanged::of_numbers(views)...});
  }

  /// The elements of a View of one process for all. Waits for the instance. Collective.
  /// @param view  of any values that may be copied as bytes, rows without gaps; in memory as for sum()
  /// @param root  rank of that process
  /// @throws Error on a rank that there is not, on gaps, and where MPI fails
  template <class View>
  void broadcast(const ExecutionSpace& space, const View& view, int root = 0) const {
    constexpr const char* function = "Communicator::broadcast";
    Impl::Arguments{function}.within("root", root, 0, size() - 1);
    const Exchanged array = Exchanged::of_bytes(view);
    if (size() > 1)
      staging_.through(space, {array}, 1, [&](char* piece, std::int64_t count) {
        processes_->broadcast(function, piece, count, root);
      });
  }

  /// Returns when all processes have called it.
  void barrier() const {
    if (size() > 1)
      processes_->barrier("Communicator::barrier");
  }

  /// Bytes of the host that sums go through, in memory from which devices copy.
  std::size_t memory_bytes() const { return staging_.memory_bytes() + received_.size(); }

private:
  template <class Space, class Value>
  friend class Overlaps;

  using Staging = Impl::StagedPieces<ExecutionSpace, piece_bytes>;
  using Piece = typename Staging::Piece;

#if defined(BRACEWELL_ENABLE_MPI)
  void choose(Transport wanted) {
    const Impl::Arguments arguments{"Communicator"};
    transport_ = wanted == Transport::Automatic ? Transport::Host : wanted;
    arguments.require(wanted != Transport::Device || Impl::is_host<ExecutionSpace> ||
                          Impl::Processes::may_read_devices(),
                      "transport", "Host, as this MPI was built without support of devices", "Device");
#if defined(BRACEWELL_ENABLE_NCCL)
    if constexpr (!Impl::is_host<ExecutionSpace>)
      if ((wanted == Transport::Automatic || wanted == Transport::Collectives) && size() > 1)
        collectives_ = Impl::Collectives::make(*processes_);
    if (collectives_)
      transport_ = Transport::Collectives;
#endif
    arguments.require(transport_ != Transport::Collectives || collectives_ || size() == 1, "transport",
                      "Host or Device, as there is no NCCL or RCCL with a GPU for each process",
                      "Collectives");
  }

  /// Sums known numbers.
  void test(const ExecutionSpace& space) const {
    constexpr int count = 1000;
    const auto numbers = Impl::device_vector<double>(space, "Bracewell::Communicator::test", count);
    Kokkos::deep_copy(space, numbers, rank() + 1.0);
    sum(space, numbers);
    std::vector<double> found(count);
    Kokkos::deep_copy(space,
                      Kokkos::View<double*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(found.data(), count),
                      numbers);
    space.fence("Bracewell::Communicator: sums of known numbers are there");
    const double expected = 0.5 * size() * (size() + 1);
    for (const double value : found)
      Impl::Arguments{"Communicator"}.require(
          value == expected, "transport", [&] { return "the sum " + Impl::number(expected); },
          [&] { return Impl::number(value); });
  }
#endif

  /// Sums arrays, and sends and receives messages, after what the instance has to do before; by NCCL queued on it. Buffers of
  /// messages are in memory that the transport reads.
  void combine(const char* function, const ExecutionSpace& space, [[maybe_unused]] Transport transport,
               bool in_order, const std::vector<Exchanged>& arrays,
               const Impl::Messages& messages = {}) const {
    const Kokkos::Profiling::ScopedRegion region("Bracewell::" + std::string(function));
    std::vector<Impl::NamedMemory> memory;
    for (const Exchanged& array : arrays)
      memory.emplace_back("views", array.data, static_cast<std::size_t>(array.size * array.bytes));
    Impl::Arguments{function}.disjoint(memory, {});
    if (size() == 1)
      return;
    std::vector<Exchanged> through_host, direct;
    for (const Exchanged& array : arrays)
      (transport == Transport::Host || (transport == Transport::Collectives && array.on_host) ? through_host
                                                                                              : direct)
          .push_back(array);
    if (transport == Transport::Device && !direct.empty()) {
      space.fence("Bracewell::Communicator: MPI reads what was computed");
      for (const Exchanged& array : direct)
        for (std::int64_t begin = 0, next; begin < array.size; begin = next) {
          next = std::min(array.size, begin + (std::int64_t(1) << 28)); // MPI 3 counts up to 2^31
          processes_->add(function, array.data + begin * array.bytes, next - begin, array.bytes);
        }
    }
#if defined(BRACEWELL_ENABLE_NCCL)
    if (transport == Transport::Collectives && !(direct.empty() && messages.all.empty()))
      collectives_->add(function, space, direct, messages);
#endif
    if (transport != Transport::Collectives && !messages.all.empty()) {
      space.fence("Bracewell::Communicator: MPI reads what was computed");
      processes_->exchange(function, messages);
    }
    for (const int bytes : {4, 8})
      staging_.through(space, through_host, bytes, [&](char* piece, std::int64_t count) {
        if (!in_order)
          processes_->add(function, piece, count, bytes);
        else if (bytes == 4)
          add_in_order<float>(function, piece, count);
        else
          add_in_order<double>(function, piece, count);
      });
  }

  template <class Real>
  void add_in_order(const char* function, char* piece, std::int64_t count) const {
    processes_->add_in_order(function, reinterpret_cast<Real*>(piece),
                             reinterpret_cast<Real*>(received_.data()), count);
  }

  std::shared_ptr<const Impl::Processes> processes_; // none: one process
#if defined(BRACEWELL_ENABLE_NCCL)
  std::shared_ptr<const Impl::Collectives> collectives_;
#else
  static constexpr bool collectives_ = false;
#endif
  Transport transport_ = Transport::Host;
  Staging staging_;
  Piece received_; // of another process, for sums in order
};

} // namespace Bracewell
