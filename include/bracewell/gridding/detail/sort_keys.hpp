// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>

#include <Kokkos_Core.hpp>
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
#include <Kokkos_Sort.hpp>
#endif

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace Bracewell::Impl {

/// Sorts keys and their numbers. Equal keys lie in an order that depends on the keys alone.
/// @param scratch  memory of hosts for as many keys and numbers
template <class Space>
void sort_keys(const Space& space, const Kokkos::View<std::uint32_t*, Space, Kokkos::MemoryUnmanaged>& keys,
               const Kokkos::View<std::uint32_t*, Space, Kokkos::MemoryUnmanaged>& order,
               [[maybe_unused]] std::uint32_t* scratch) {
  if constexpr (!is_host<Space>) {
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
    Kokkos::Experimental::sort_by_key(space, keys, order);
#endif
  } else {
    // By digits of twelve bits, the lowest first; a thread counts and moves a part of them.
    constexpr int bits = 12, digits = 1 << bits;
    const auto count = static_cast<std::int64_t>(keys.size());
    const std::int64_t parts = std::clamp<std::int64_t>(count / digits, 1, space.concurrency());
    std::uint32_t largest = 0;
    using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
    const std::uint32_t* const all = keys.data();
    Kokkos::parallel_reduce(
        "Bracewell::Gridding::largest_key", Range(space, 0, count),
        [=](std::int64_t i, std::uint32_t& most) { most = std::max(most, all[i]); },
        Kokkos::Max<std::uint32_t>(largest));
    auto from_keys = keys, from = order;
    using Scratch = Kokkos::View<std::uint32_t*, Space, Kokkos::MemoryUnmanaged>;
    Scratch to_keys(scratch, keys.size()), to(scratch + count, keys.size());
    std::vector<std::int64_t> counts(static_cast<std::size_t>(parts * digits));
    for (int shift = 0; shift < 32 && largest >> shift; shift += bits) {
      std::fill(counts.begin(), counts.end(), 0);
      const std::uint32_t *in_keys = from_keys.data(), *in = from.data();
      std::uint32_t *out_keys = to_keys.data(), *out = to.data();
      std::int64_t* const number = counts.data(); // [part, digit]
      const auto each_part = Range(space, 0, parts, Kokkos::ChunkSize(1));
      Kokkos::parallel_for("Bracewell::Gridding::count_digits", each_part, [=](std::int64_t part) {
        for (std::int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i)
          ++number[part * digits + (in_keys[i] >> shift & (digits - 1))];
      });
      std::int64_t sum = 0;
      for (int digit = 0; digit < digits; ++digit)
        for (std::int64_t part = 0; part < parts; ++part)
          sum += std::exchange(number[part * digits + digit], sum);
      Kokkos::parallel_for("Bracewell::Gridding::move_digits", each_part, [=](std::int64_t part) {
        for (std::int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
          const std::int64_t place = number[part * digits + (in_keys[i] >> shift & (digits - 1))]++;
          out_keys[place] = in_keys[i];
          out[place] = in[i];
        }
      });
      std::swap(from_keys, to_keys);
      std::swap(from, to);
    }
    if (from.data() != order.data()) {
      Kokkos::deep_copy(space, keys, from_keys);
      Kokkos::deep_copy(space, order, from);
    }
  }
}

} // namespace Bracewell::Impl
