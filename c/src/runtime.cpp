// SPDX-License-Identifier: MIT
#include "arguments.hpp"

#include <atomic>
#include <cstdlib>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>

namespace Bracewell::C {
namespace {

const char* name_of(int type) {
  switch (type) {
  case BRACEWELL_FLOAT:
    return "float";
  case BRACEWELL_DOUBLE:
    return "double";
  case BRACEWELL_COMPLEX_FLOAT:
    return "complex float";
  case BRACEWELL_COMPLEX_DOUBLE:
    return "complex double";
  case BRACEWELL_INT:
    return "int";
  default:
    return "no bracewell_type";
  }
}

#if defined(KOKKOS_ENABLE_CUDA)
using Stream = cudaStream_t;
#elif defined(KOKKOS_ENABLE_HIP)
using Stream = hipStream_t;
#endif

/// Instances of the streams that were used last.
struct Instances {
  static constexpr std::size_t most = 64;
  std::mutex mutex;
  std::deque<std::pair<void*, Kokkos::DefaultExecutionSpace>> latest;
};

Instances& instances() {
  static Instances all;
  return all;
}

std::atomic<bool> started = false;

void finish_kokkos() {
  instances().latest.clear();
  if (running())
    Kokkos::finalize();
}

} // namespace

void start() {
  if (started.load(std::memory_order_acquire) && running())
    return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (Kokkos::is_finalized())
    throw Error("bracewell: expected a process in which Kokkos runs, found one in which it has ended");
  if (!Kokkos::is_initialized()) {
    instances(); // is there when the process ends
    // OpenMP's threads stay where the application wants them: no warning that they are not bound.
    Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
    std::atexit(finish_kokkos);
  }
  started.store(true, std::memory_order_release);
}

bool running() { return Kokkos::is_initialized() && !Kokkos::is_finalized(); }

Kokkos::DefaultExecutionSpace device_instance([[maybe_unused]] void* stream) {
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
  Instances& all = instances();
  const std::lock_guard lock(all.mutex);
  for (const auto& [known, instance] : all.latest)
    if (known == stream)
      return instance;
  if (all.latest.size() == Instances::most)
    all.latest.pop_front();
  all.latest.emplace_back(stream, Kokkos::DefaultExecutionSpace(static_cast<Stream>(stream)));
  return all.latest.back().second;
#else
  return {};
#endif
}

bool check_array(const char* function, const char* argument, const bracewell_array& array,
                 bracewell_type expected, bool written) {
  if (array.type != expected)
    Impl::fail(function, argument, std::string("values of type ") + name_of(expected), name_of(array.type));
  if (array.rank < 0 || array.rank > 6)
    Impl::fail(function, argument, "a rank from 0 to 6", std::to_string(array.rank));
  std::int64_t size = 1;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 16;
  for (int axis = 0; axis < array.rank; ++axis) {
    const std::int64_t extent = array.extents[axis];
    if (extent < 0 || (extent > 0 && size > most / extent))
      Impl::fail(function, argument, "extents of an array that can be",
                 std::to_string(extent) + " along axis " + std::to_string(axis));
    size *= extent;
  }
  if (array.data == nullptr && size > 0)
    Impl::fail(function, argument, "memory", "NULL");
  if (array.width != 0 && (array.rank == 0 || array.width / 2 + 1 != array.extents[array.rank - 1]))
    Impl::fail(function, argument, "a width of a half spectrum of so many columns",
               std::to_string(array.width));
  bool stated = false, gaps = false;
  for (int axis = 0; axis < array.rank; ++axis)
    stated = stated || array.strides[axis] != 0;
  if (!stated || size == 0)
    return false;
  std::int64_t step = 1;
  for (int axis = array.rank - 1; axis >= 0; --axis) {
    const std::int64_t extent = array.extents[axis], stride = array.strides[axis];
    gaps = gaps || (extent > 1 && stride != step);
    if (written && extent > 1 && stride < 1)
      Impl::fail(function, argument, "strides above 0 where it is written to",
                 std::to_string(stride) + " along axis " + std::to_string(axis));
    step *= extent;
  }
  return gaps;
}

int rank_of(const char* function, const char* argument, const bracewell_array* array) {
  if (!array)
    Impl::fail(function, argument, "an array", "NULL");
  return array->rank;
}

void expect_rank(const char* function, const char* argument, const bracewell_array* array, int rank,
                 const char* expected) {
  if (rank_of(function, argument, array) != rank)
    Impl::fail(function, argument, expected, std::to_string(array->rank) + " axes");
}

void same_rank(const char* function, const char* argument, const bracewell_array* array,
               const bracewell_array* other) {
  const int rank = rank_of(function, argument, array);
  if (rank != other->rank)
    Impl::fail(function, argument, std::to_string(other->rank) + " axes", std::to_string(rank));
}

} // namespace Bracewell::C
