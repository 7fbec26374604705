// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/error.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#if defined(BRACEWELL_ENABLE_MPI)
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h> // whether it reads memory of devices
#endif
#endif

namespace Bracewell::Impl {

/// What this process sends to another and receives from it, in buffers of both.
struct Message {
  int rank;                   ///< of the other
  std::int64_t offset, bytes; ///< in either buffer
};

/// Messages and their buffers.
struct Messages {
  std::span<const Message> all = {};
  const char* sent = nullptr;
  char* received = nullptr;
};

#if defined(BRACEWELL_ENABLE_MPI)

/// A duplicate of an MPI communicator, and what is asked of it; failures are Errors of the function that the user called.
class Processes {
public:
  explicit Processes(MPI_Comm of) {
    constexpr const char* function = "Communicator";
    int initialised = 0;
    MPI_Initialized(&initialised);
    if (!initialised)
      fail(function, "communicator", "MPI that is initialised", "MPI before MPI_Init");
    if (of == MPI_COMM_NULL)
      fail(function, "communicator", "processes", "MPI_COMM_NULL");
    check(function, MPI_Comm_dup(of, &communicator_));
    check(function, MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN));
    check(function, MPI_Comm_rank(communicator_, &rank_));
    check(function, MPI_Comm_size(communicator_, &size_));
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    int finalised = 1;
    MPI_Finalized(&finalised);
    if (!finalised)
      MPI_Comm_free(&communicator_);
  }

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Whether MPI says that it reads memory of devices; where it says nothing, true.
  static bool may_read_devices() {
#if defined(KOKKOS_ENABLE_CUDA) && defined(MPIX_CUDA_AWARE_SUPPORT)
    return MPIX_Query_cuda_support() != 0;
#elif defined(KOKKOS_ENABLE_HIP) && defined(MPIX_ROCM_AWARE_SUPPORT)
    return MPIX_Query_rocm_support() != 0;
#else
    return true;
#endif
  }

  /// Replaces numbers of `bytes` bytes, at most 2^31 - 1, by their sums over processes.
  void add(const char* function, void* numbers, std::int64_t count, int bytes) const {
    check(function, MPI_Allreduce(MPI_IN_PLACE, numbers, int(count), bytes == 4 ? MPI_FLOAT : MPI_DOUBLE,
                                  MPI_SUM, communicator_));
  }

  /// The same along a tree: in round k = 1, 2, 4, ... rank r, a multiple of 2 k, adds what rank r + k has summed.
  template <class Real>
  void add_in_order(const char* function, Real* numbers, Real* received, std::int64_t count) const {
    const int bytes = int(count * std::int64_t(sizeof(Real)));
    for (int step = 1; step < size_; step *= 2) {
      if (rank_ % (2 * step) != 0) {
        check(function, MPI_Send(numbers, bytes, MPI_BYTE, rank_ - step, 0, communicator_));
        break;
      }
      if (rank_ + step < size_) {
        check(function,
              MPI_Recv(received, bytes, MPI_BYTE, rank_ + step, 0, communicator_, MPI_STATUS_IGNORE));
        for (std::int64_t i = 0; i < count; ++i)
          numbers[i] += received[i];
      }
    }
    broadcast(function, numbers, bytes, 0);
  }

  /// At most 2^31 - 1 bytes of one process for all.
  void broadcast(const char* function, void* data, std::int64_t bytes, int root) const {
    check(function, MPI_Bcast(data, int(bytes), MPI_BYTE, root, communicator_));
  }

  void barrier(const char* function) const { check(function, MPI_Barrier(communicator_)); }

  /// Sends and receives all messages at once.
  void exchange(const char* function, const Messages& messages) const {
    constexpr std::int64_t most = 1 << 30; // MPI 3 counts up to 2^31
    std::vector<MPI_Request> requests;
    for (const Message& message : messages.all)
      for (std::int64_t begin = 0; begin < message.bytes; begin += most) {
        const std::int64_t at = message.offset + begin;
        const int count = int(std::min(most, message.bytes - begin));
        check(function, MPI_Irecv(messages.received + at, count, MPI_BYTE, message.rank, 0, communicator_,
                                  &requests.emplace_back()));
        check(function, MPI_Isend(messages.sent + at, count, MPI_BYTE, message.rank, 0, communicator_,
                                  &requests.emplace_back()));
      }
    check(function, MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
  }

private:
  static void check(const char* function, int code) {
    if (code == MPI_SUCCESS)
      return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    fail(function, "MPI", "success", text);
  }

  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
};

#else

/// One process, which has what it would ask others for.
class Processes {
public:
  static int rank() { return 0; }
  static int size() { return 1; }
  static void add(const char*, void*, std::int64_t, int) {}
  template <class Real>
  static void add_in_order(const char*, Real*, Real*, std::int64_t) {}
  static void broadcast(const char*, void*, std::int64_t, int) {}
  static void barrier(const char*) {}
  static void exchange(const char*, const Messages&) {}
};

#endif

} // namespace Bracewell::Impl
