// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/distributed/detail/processes.hpp>

#if defined(BRACEWELL_ENABLE_NCCL)
#if defined(KOKKOS_ENABLE_HIP)
#include <rccl/rccl.h>
#else
#include <nccl.h>
#endif

#include <memory>

namespace Bracewell::Impl {

/// A communicator of NCCL or RCCL: sums on the stream of an instance.
class Collectives {
public:
  /// Collective. Null where the library cannot be set up, as where two ranks share a GPU: on all processes or on none.
  static std::unique_ptr<Collectives> make(const Processes& processes) {
    ncclUniqueId id{};
    double ready = processes.rank() != 0 || ncclGetUniqueId(&id) == ncclSuccess ? 1 : 0;
    processes.broadcast("Communicator", &ready, sizeof ready, 0);
    if (ready == 0)
      return nullptr;
    processes.broadcast("Communicator", &id, sizeof id, 0);
    auto made = std::make_unique<Collectives>();
    if (ncclCommInitRank(&made->communicator_, processes.size(), id, processes.rank()) != ncclSuccess)
      ready = 0;
    processes.add("Communicator", &ready, 1, sizeof ready);
    return ready == processes.size() ? std::move(made) : nullptr;
  }
  Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;
  ~Collectives() {
    if (communicator_)
      ncclCommDestroy(communicator_);
  }

  /// Queues the sums of all arrays, and sending and receiving of all messages, on the instance's stream as one operation.
  template <class Space, class Arrays>
  void add(const char* function, const Space& space, const Arrays& arrays, const Messages& messages) const {
    check(function, ncclGroupStart());
    for (const auto& array : arrays)
      check(function,
            ncclAllReduce(array.data, array.data, static_cast<std::size_t>(array.size),
                          array.bytes == 4 ? ncclFloat : ncclDouble, ncclSum, communicator_, stream(space)));
    for (const Message& message : messages.all) {
      const auto bytes = static_cast<std::size_t>(message.bytes);
      check(function, ncclRecv(messages.received + message.offset, bytes, ncclChar, message.rank,
                               communicator_, stream(space)));
      check(function, ncclSend(messages.sent + message.offset, bytes, ncclChar, message.rank, communicator_,
                               stream(space)));
    }
    check(function, ncclGroupEnd());
  }

private:
#if defined(KOKKOS_ENABLE_HIP)
  static hipStream_t stream(const Kokkos::HIP& space) { return space.hip_stream(); }
#else
  static cudaStream_t stream(const Kokkos::Cuda& space) { return space.cuda_stream(); }
#endif

  static void check(const char* function, ncclResult_t code) {
    if (code != ncclSuccess)
      fail(function, "NCCL", "success", ncclGetErrorString(code));
  }

  ncclComm_t communicator_ = nullptr;
};

} // namespace Bracewell::Impl
#endif
