// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/sort_keys.hpp>
#include <bracewell/impl/memory.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

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
