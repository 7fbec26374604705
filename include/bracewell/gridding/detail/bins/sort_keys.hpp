// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/error.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>

#include <Kokkos_Core.hpp>
#if defined(KOKKOS_ENABLE_CUDA)
#include <cub/device/device_radix_sort.cuh>
#elif defined(KOKKOS_ENABLE_HIP)
#include <Kokkos_Sort.hpp>
#endif

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>

namespace Bracewell::Impl {

template <class Space>
using SortMemory = Kokkos::View<std::uint32_t*, Space, Kokkos::MemoryUnmanaged>;

/// numbers[i] = i.
struct NumberAll {
  std::uint32_t* numbers;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { numbers[i] = static_cast<std::uint32_t>(i); }
};

template <class Space>
void number_all(const Space& space, std::uint32_t* numbers, std::int64_t count) {
  launch_kernel("Bracewell::Gridding::number_keys",
                Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, count),
                NumberAll{numbers});
}

#if defined(KOKKOS_ENABLE_CUDA)

/// CUB's radix sort, by the bits that keys have, in the caller's memory: Kokkos' sort_by_key takes all 32 bits, and
/// allocates what it needs at every call.
inline const std::uint32_t* sort_keys_by_cub(const Kokkos::Cuda& space, const SortMemory<Kokkos::Cuda>& keys,
                                             const SortMemory<Kokkos::Cuda>& order, int bits,
                                             const SortMemory<Kokkos::Cuda>& memory) {
  const auto check = [](cudaError_t error) {
    if (error != cudaSuccess)
      throw Error(std::string("Bracewell::Gridding: keys were not sorted: ") + cudaGetErrorString(error));
  };
  check(cudaSetDevice(space.cuda_device()));
  const std::size_t count = keys.size();
  std::uint32_t* const other = memory.data() + count;
  cub::DoubleBuffer<std::uint32_t> of_keys(keys.data(), memory.data());
  cub::DoubleBuffer<std::uint32_t> numbers(order.data(), other);
  // Every pass, of eight bits, goes from one to the other: the last one ends in `order`.
  if ((bits + 7) / 8 % 2 == 1)
    std::swap(numbers.d_buffers[0], numbers.d_buffers[1]);
  number_all(space, numbers.Current(), static_cast<std::int64_t>(count));
  std::size_t bytes = 0;
  const auto sort = [&](void* scratch) {
    check(cub::DeviceRadixSort::SortPairs(scratch, bytes, of_keys, numbers, static_cast<std::uint32_t>(count),
                                          0, bits, space.cuda_stream()));
  };
  sort(nullptr); // says how many bytes
  Kokkos::View<char*, Kokkos::Cuda> more;
  if (bytes > (memory.size() - 2 * count) * sizeof(std::uint32_t)) // of very few keys, if ever
    more = device_vector<char>(space, "Bracewell::Gridding::sort", static_cast<std::int64_t>(bytes));
  sort(more.size() > 0 ? static_cast<void*>(more.data()) : other + count);
  if (numbers.Current() != order.data()) // so few keys that one pass takes them
    Kokkos::deep_copy(space, order, SortMemory<Kokkos::Cuda>(numbers.Current(), count));
  return of_keys.Current();
}

#endif

/// Sorts keys on GPUs; `order` becomes their numbers. Equal keys stay in order.
/// @param keys    overwritten
/// @param below   what all keys are smaller than
/// @param memory  for twice as many keys, and more
/// @return  the sorted keys: in `keys` or `memory`
template <class Space>
const std::uint32_t* sort_keys(const Space& space, const SortMemory<Space>& keys,
                               const SortMemory<Space>& order, [[maybe_unused]] std::uint32_t below,
                               [[maybe_unused]] const SortMemory<Space>& memory) {
  static_assert(!is_host<Space>);
  if (keys.size() == 0)
    return keys.data();
#if defined(KOKKOS_ENABLE_CUDA)
  return sort_keys_by_cub(space, keys, order, std::max<int>(1, std::bit_width(below - 1)), memory);
#else
  number_all(space, order.data(), static_cast<std::int64_t>(keys.size()));
#if defined(KOKKOS_ENABLE_HIP)
  Kokkos::Experimental::sort_by_key(space, keys, order);
#endif
  return keys.data();
#endif
}

/// Numbers chunks in the order of bins, finds the first sample of each, and adds up how far samples of a chunk
/// lie from each other.
struct FirstOfChunks {
  const std::uint32_t* order;
  std::int64_t points, size;
  std::uint32_t *chunks, *first;

  KOKKOS_FUNCTION void operator()(std::int64_t chunk, double& reach) const {
    const std::uint32_t begin = order[chunk * size];
    const std::uint32_t last = order[Kokkos::min((chunk + 1) * size, points) - 1];
    chunks[chunk] = static_cast<std::uint32_t>(chunk);
    first[chunk] = begin;
    reach += begin < last ? last - begin : begin - last;
  }
};

/// Samples in the order of bins by chunks, and the order in which interpolation on GPUs takes these: that of
/// bins, or that of their first samples where points crowd. There the samples of a chunk share a cell, so that
/// they lie in the order of input; chunks that are at work together then write to one part of the samples, whose
/// cache lines are complete before the second cache gives them up. Hosts have no chunks.
template <class Space>
struct SampleChunks {
  static constexpr int size = 128; ///< samples of a chunk

  Kokkos::View<std::uint32_t*, Space> order; ///< [count(points)]

  static std::int64_t count(std::int64_t points) { return is_host<Space> ? 0 : (points + size - 1) / size; }

  /// @param sample_order  numbers of the samples in the order of bins
  /// @param memory        for three times as many numbers as there are chunks, and more that sorting uses
  void sort([[maybe_unused]] const Space& space, [[maybe_unused]] const std::uint32_t* sample_order,
            std::int64_t points, [[maybe_unused]] const SortMemory<Space>& memory) {
    const std::int64_t chunks = count(points);
    if (chunks == 0)
      return;
    if (static_cast<std::int64_t>(order.size()) != chunks)
      order = device_vector<std::uint32_t>(space, "Bracewell::Gridding::chunks", chunks);
    const SortMemory<Space> first(memory.data(), static_cast<std::size_t>(chunks));
    double reach = 0;
    Kokkos::parallel_reduce("Bracewell::Gridding::first_of_chunks",
                            Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, chunks),
                            FirstOfChunks{sample_order, points, size, order.data(), first.data()}, reach);
    // Of points in any order it is a third of all samples.
    if (reach >= double(chunks) * double(points) / 8)
      return;
    const SortMemory<Space> beside(memory.data() + chunks, memory.size() - first.size());
    sort_keys<Space>(space, first, order, static_cast<std::uint32_t>(points), beside);
  }
};

} // namespace Bracewell::Impl
