// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/atomic.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/tomography/detail/stripe_ranks.hpp>

namespace Bracewell::Impl {

/// Sorts columns on NVIDIA GPUs, each by a team, by where their values lie between the lowest and the highest: counts what
/// falls into buckets of equal width, divides each bucket into as many as it has values, counts again, puts the values
/// there, and compares those that are in one bucket. Columns with more than `crowd` values in a bucket stay as they are, in
/// a list.
template <class T, int threads, int most_items>
struct SortColumnByBuckets {
  static constexpr int chip_team_size = threads, chip_teams = (sizeof(T) == 4 ? 1536 : 1024) / threads,
                       items = most_items;
  static constexpr int buckets = (threads > 1 ? 3 : items) * threads, crowd = 64, most = threads * items;
  static constexpr int warps = (threads + 31) / 32;
  static_assert(most < 1 << 16);
  /// The first of the places of a bucket, and how many they are.
  using Places = unsigned;
  KOKKOS_FUNCTION static Places places(unsigned first, unsigned count) { return first << 16 | count; }
  KOKKOS_FUNCTION static int first_of(Places places) { return static_cast<int>(places >> 16); }
  KOKKOS_FUNCTION static int count_of(Places places) { return static_cast<int>(places & 0xffff); }

  RankedColumns<T> ranked; ///< sorted in place
  int length;
  CrowdedColumns crowded;

  /// Memory on the chip.
  struct Scratch {
    T* sorted;              ///< [length], of which the first `buckets` are used before
    Places *wide, *narrow;  ///< [buckets], at the same place; [length]
    T* exchanged;           ///< [64], between lanes
    int* sums;              ///< [32], likewise
    unsigned* is_crowded;   ///< [1]
    unsigned short* angles; ///< [length]

    KOKKOS_FUNCTION static int shared_bytes(int length) {
      return Kokkos::max(length * int(sizeof(T)), buckets * int(sizeof(Places))) / 8 * 8 + 8;
    }
    KOKKOS_FUNCTION Scratch(void* begin, int length)
        : sorted(static_cast<T*>(begin)), wide(static_cast<Places*>(begin)),
          exchanged(reinterpret_cast<T*>(static_cast<char*>(begin) + shared_bytes(length))) {
      sums = reinterpret_cast<int*>(exchanged + 64);
      is_crowded = reinterpret_cast<unsigned*>(sums + 32);
      narrow = reinterpret_cast<Places*>(is_crowded + 1);
      angles = reinterpret_cast<unsigned short*>(narrow + length);
    }
  };
  static std::size_t bytes(int length) {
    return std::size_t(Scratch::shared_bytes(length)) + 64 * sizeof(T) + 33 * sizeof(int) +
           std::size_t(length) * (sizeof(Places) + sizeof(unsigned short));
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Team& team, void* scratch) const {
    const Scratch on_chip(scratch, length);
    const int thread = team.rank();
    const RankedColumns<T> column = ranked.from(team.number() * length);
    for (int i = thread; i < buckets; i += threads)
      on_chip.wide[i] = 0;
    for (int i = thread; i < length; i += threads)
      on_chip.narrow[i] = 0;
    if (thread == 0)
      *on_chip.is_crowded = 0;
    T own[items];
    BRACEWELL_UNROLL
    for (int k = 0; k < items; ++k) {
      const int p = k * threads + thread;
      own[k] =
          RankedValue<T>::of(p < length ? column.values[p] : Kokkos::Experimental::infinity_v<T>, p).value;
    }
    T low = Kokkos::Experimental::infinity_v<T>, high = -low;
    for_own(thread, [&](int k, int) {
      low = Kokkos::min(low, own[k]);
      high = Kokkos::max(high, own[k]);
    });
    find_extremes(team, low, high, on_chip.exchanged);

    Places own_places[items]; // of a narrow bucket, and a number among its values
    count(team, own, low, high, own_places, on_chip);
    const bool many_lowest = count_of(on_chip.narrow[0]) > crowd;
    if (many_lowest)
      order_lowest(team, own, low, own_places, on_chip);
    if (*on_chip.is_crowded != 0) {
      if (thread == 0)
        crowded.columns[Kokkos::atomic_fetch_add(crowded.count, 1)] = static_cast<int>(team.number());
      return;
    }
    for_own(thread, [&](int k, int p) {
      const int narrow = first_of(own_places[k]);
      const Places bucket = on_chip.narrow[narrow];
      const int there = first_of(bucket) + count_of(own_places[k]);
      put(on_chip, there, own[k], p);
      own_places[k] = many_lowest && narrow == 0 ? places(unsigned(there), 1) : bucket;
    });
    team.barrier();
    for_own(thread, [&](int k, int p) { own_places[k] = rank(own[k], p, own_places[k], on_chip); });
    team.barrier();
    for_own(thread, [&](int k, int p) {
      if (count_of(own_places[k]) > 1)
        put(on_chip, first_of(own_places[k]), own[k], p);
    });
    team.barrier();
    for (int i = thread; i < length; i += threads)
      column.set(i, {on_chip.sorted[i], on_chip.angles[i]});
  }

private:
  /// visit(k, p) for the values of a thread: number k, of angle p.
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void for_own(int thread, const Visit& visit) const {
    BRACEWELL_UNROLL
    for (int k = 0; k < items && k * threads < length; ++k)
      if (k * threads + thread < length)
        visit(k, k * threads + thread);
  }

  KOKKOS_FORCEINLINE_FUNCTION static void put(const Scratch& on_chip, int place, T value, int angle) {
    on_chip.sorted[place] = value;
    on_chip.angles[place] = static_cast<unsigned short>(angle);
  }

  /// Counts the values in both kinds of buckets, and finds where these begin.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void count(const Team& team, const T (&own)[items], T low, T high,
                                         Places (&own_places)[items], const Scratch& on_chip) const {
    // In order as the values are, whatever is rounded; 0 where nothing tells them apart.
    const T scale = T(buckets) / (high - low);
    const auto place = [&](T value) {
      return Kokkos::fmin(Kokkos::fmax((value - low) * scale, T(0)), T(buckets));
    };
    for_own(team.rank(),
            [&](int k, int) { count_up(on_chip.wide + Kokkos::min(int(place(own[k])), buckets - 1)); });
    team.barrier();
    find_places(team, on_chip.wide, buckets, on_chip);
    for_own(team.rank(), [&](int k, int) {
      const T where = place(own[k]);
      const int wide = Kokkos::min(int(where), buckets - 1);
      const Places bucket = on_chip.wide[wide];
      const int parts = count_of(bucket),
                narrow = first_of(bucket) + Kokkos::min(int((where - T(wide)) * T(parts)), parts - 1);
      own_places[k] = places(unsigned(narrow), count_up(on_chip.narrow + narrow));
    });
    team.barrier();
    find_places(team, on_chip.narrow, length, on_chip);
  }

  /// The rank of a value in a bucket, and how many are there.
  KOKKOS_FORCEINLINE_FUNCTION static Places rank(T value, int angle, Places bucket, const Scratch& on_chip) {
    const int begin = first_of(bucket), count = count_of(bucket);
    int result = begin, equal = 0;
    if (count == 1)
      return bucket;
    BRACEWELL_DO_NOT_UNROLL
    for (int i = begin; i < begin + count; ++i) {
      result += on_chip.sorted[i] < value;
      equal += on_chip.sorted[i] == value;
    }
    if (equal > 1) {
      BRACEWELL_DO_NOT_UNROLL
      for (int i = begin; i < begin + count; ++i)
        result += on_chip.sorted[i] == value && on_chip.angles[i] < angle;
    }
    return places(unsigned(result), unsigned(count));
  }

  /// The lowest and the highest value of all threads.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION static void find_extremes([[maybe_unused]] const Team& team,
                                                        [[maybe_unused]] T& low, [[maybe_unused]] T& high,
                                                        [[maybe_unused]] T* exchanged) {
#if defined(__CUDA_ARCH__)
    const auto among = [&](int lanes) {
      for (int distance = lanes / 2; distance > 0; distance /= 2) {
        low = Kokkos::min(low, from_opposite_lane(low, distance));
        high = Kokkos::max(high, from_opposite_lane(high, distance));
      }
    };
    among(32);
    if (team.rank() % 32 == 0) {
      exchanged[team.rank() / 32] = low;
      exchanged[32 + team.rank() / 32] = high;
    }
    team.barrier();
    low = exchanged[team.rank() % warps];
    high = exchanged[32 + team.rank() % warps];
    among(warps);
#endif
  }

  /// Makes places of the numbers of values in buckets, which are in order.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION static void find_places(const Team& team, Places* counts, int size,
                                                      const Scratch& on_chip) {
    const int each = ((size - 1) / threads + 1) | 1; // odd: in different banks
    const int begin = team.rank() * each, end = Kokkos::min(begin + each, size);
    int sum = 0;
    for (int i = begin; i < end; ++i)
      sum += static_cast<int>(counts[i]);
    int first = sum_before(team, sum, on_chip.sums), largest = 0;
    for (int i = begin; i < end; ++i) {
      const int count = static_cast<int>(counts[i]);
      counts[i] = places(unsigned(first), unsigned(count));
      first += count;
      largest = i == 0 ? 0 : Kokkos::max(largest, count); // many may be the lowest: order_lowest
    }
    if (counts == on_chip.narrow && largest > crowd)
      count_up(on_chip.is_crowded);
    team.barrier();
  }

  /// Numbers the values of the first narrow bucket in the order of their angles, if all of them are the lowest one, as
  /// where a scan has many zeros.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void order_lowest(const Team& team, const T (&own)[items], T low,
                                                Places (&own_places)[items], const Scratch& on_chip) const {
    const int lane = team.rank() % 32, warp = team.rank() / 32;
    unsigned lowest[items]; // bit i: lane i of the warp has such a value
    BRACEWELL_UNROLL
    for (int k = 0; k < items; ++k) {
      const bool here = k * threads + team.rank() < length && first_of(own_places[k]) == 0;
      if (here && own[k] != low)
        count_up(on_chip.is_crowded);
#if defined(__CUDA_ARCH__)
      lowest[k] = bits_of_lanes(here);
#else
      lowest[k] = here;
#endif
      if (lane == 0)
        on_chip.wide[k * warps + warp] = unsigned(Kokkos::popcount(lowest[k]));
    }
    team.barrier();
    find_places(team, on_chip.wide, items * warps, on_chip);
    BRACEWELL_UNROLL
    for (int k = 0; k < items; ++k)
      if (k * threads + team.rank() < length && first_of(own_places[k]) == 0)
        own_places[k] = places(0, unsigned(first_of(on_chip.wide[k * warps + warp]) +
                                           Kokkos::popcount(lowest[k] & ((1u << lane) - 1))));
    team.barrier(); // what was read is overwritten
  }

  /// The sum over the threads before this one.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION static int sum_before([[maybe_unused]] const Team& team,
                                                    [[maybe_unused]] int own, [[maybe_unused]] int* sums) {
#if defined(__CUDA_ARCH__)
    const int lane = team.rank() % 32, warp = team.rank() / 32;
    const auto up_to_here = [lane](int sum) {
      BRACEWELL_UNROLL
      for (int distance = 1; distance < 32; distance *= 2) {
        const int other = from_lane<32>(sum, Kokkos::max(lane - distance, 0));
        sum += lane >= distance ? other : 0;
      }
      return sum;
    };
    const int within = up_to_here(own);
    if (lane == 31)
      sums[warp] = within;
    team.barrier();
    const int of_warps = up_to_here(lane < warps ? sums[lane] : 0);
    const int before = from_lane<32>(of_warps, Kokkos::max(warp - 1, 0));
    return within - own + (warp > 0 ? before : 0);
#else
    return 0;
#endif
  }
};

/// Calls visitor(SortColumnByBuckets) with as few threads as a column needs; false where it is too long. Threads, their
/// values and resident teams were measured (NVIDIA H200, 2026-11-25).
template <class T, class Visitor>
bool visit_bucket_sorts(int length, const Visitor& visitor) {
  using Small = SortColumnByBuckets<T, 128, 12>;
  using Middle = SortColumnByBuckets<T, 256, 12>;
  using Large = SortColumnByBuckets<T, 512, 12>;
  using Largest = SortColumnByBuckets<T, 1024, sizeof(T) == 4 ? 16 : 8>;
  if (length <= Small::most)
    return visitor(Small{});
  if (length <= Middle::most)
    return visitor(Middle{});
  if (length <= Large::most)
    return visitor(Large{});
  return length <= Largest::most && visitor(Largest{});
}

} // namespace Bracewell::Impl
