// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/bin_grid.hpp>
#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/detail/taps.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/lanes.hpp>

namespace Bracewell::Impl {

/// Boxes of cells, `box_edge` along every axis, that teams on GPUs own, and how they find the samples that reach
/// theirs: among those of the bins around. Nothing is added by two teams, and sums have a fixed order.
///
/// A Kernel derives from it and has a Scratch, which begins at an address, and run_on_device(team, Scratch).
template <class Kernel, class Space, class T, int box_edge>
struct BoxSearch {
  static constexpr int dimensions = 3, edge = box_edge;
  static constexpr int chip_team_size = 256, warps = chip_team_size / 32;
  static constexpr int chip_teams = 2; ///< of a multiprocessor, by registers and scratch memory
  static constexpr int team_scratch = BoxLimits::team_scratch, most_bins = BoxLimits::most_bins;
  static_assert(most_bins == chip_team_size - 1); // a lane for each
  static constexpr int each = 4,
                       batch = each * chip_team_size; ///< samples of bins looked at together, of a lane
  static_assert(each * warps == 32);

  SpreadingProblem<T, dimensions> problem;
  BinGrid<dimensions> bins;
  const std::uint32_t *first_of_bins, *order;

  template <class Plan>
  BoxSearch(const Plan& plan, std::int64_t slices)
      : problem(plan.problem_of(slices)), bins(plan.sorted.bins), first_of_bins(plan.sorted.first.data()),
        order(plan.sorted.order.data()) {}

  static KOKKOS_FUNCTION int number(const GridShape<dimensions>& grid, int axis) {
    return (grid.size[axis] + edge - 1) / edge;
  }
  static std::int64_t boxes(const GridShape<dimensions>& grid) {
    std::int64_t product = 1;
    for (int d = 0; d < dimensions; ++d)
      product *= number(grid, d);
    return product;
  }

  template <class Team>
  KOKKOS_FUNCTION void run([[maybe_unused]] const Team& team, [[maybe_unused]] void* scratch) const {
    KOKKOS_IF_ON_DEVICE(
        (static_cast<const Kernel*>(this)->run_on_device(team, typename Kernel::Scratch(scratch));))
  }

protected:
  /// A sample that reaches the box: where it lies in the order of bins, and its number.
  struct Reaching {
    std::uint32_t place, sample;
  };

  /// What searching needs of scratch memory where at most `chunk` samples are worked upon at a time.
  template <int chunk>
  struct SearchScratch {
    Reaching* reaching;   ///< [batch + chunk]
    int* counts;          ///< [32]: samples that 32 lanes found
    int* around;          ///< [2, dimensions]: the bins around, the first and how many along each axis
    std::uint32_t* first; ///< [most_bins]: where their samples begin
    std::uint32_t* size;  ///< [most_bins]: how many there are,
    std::uint32_t* begin; ///< [most_bins + 1]: and how many in the bins before

    KOKKOS_FUNCTION explicit SearchScratch(void* memory)
        : reaching(static_cast<Reaching*>(memory)), counts(reinterpret_cast<int*>(reaching + batch + chunk)),
          around(counts + 32), first(reinterpret_cast<std::uint32_t*>(around + 2 * dimensions)),
          size(first + most_bins), begin(size + most_bins) {}
    KOKKOS_FUNCTION void* end() const { return begin + most_bins + 1; }
  };

  /// What a Kernel has of it: `values` and `stride` weights of a sample, `cells` of blocks on their way to the grid, and
  /// `padding` numbers behind the lists.
  template <int stride, int values_, int cells, int padding>
  struct Layout {
    using Complex = Kokkos::complex<T>;
    static constexpr std::size_t bytes_of_weights = stride * sizeof(T) + values_ * sizeof(Complex);
    static constexpr std::size_t bytes_of_sample =
        bytes_of_weights + sizeof(int) + warps * sizeof(std::uint16_t) + sizeof(Reaching);
    static constexpr std::size_t other_bytes =
        bytes_of_weights + cells * sizeof(Complex) + batch * sizeof(Reaching) +
        (32 + 2 * dimensions) * sizeof(int) + (3 * most_bins + 1) * sizeof(std::uint32_t) +
        warps * padding * sizeof(std::uint16_t) + 64;
    /// Samples that are prepared together, at most.
    static constexpr int room = static_cast<int>((team_scratch - other_bytes) / bytes_of_sample);

    template <int chunk>
    struct Scratch {
      T* weights;      ///< [chunk + 1, stride], of the last one zeros
      Complex* values; ///< [chunk + 1, values], likewise
      Complex* tiles;  ///< [cells]: blocks on their way to the grid
      SearchScratch<chunk> search;
      int* corners;         ///< [chunk]: see packed; an axis is a byte
      std::uint16_t* lists; ///< [warps, chunk + padding]: samples that reach the block of a warp

      KOKKOS_FUNCTION explicit Scratch(void* memory)
          : weights(static_cast<T*>(memory)),
            values(reinterpret_cast<Complex*>(weights + (chunk + 1) * stride)),
            tiles(values + (chunk + 1) * values_), search(tiles + cells),
            corners(static_cast<int*>(search.end())),
            lists(reinterpret_cast<std::uint16_t*>(corners + chunk)) {}
    };
  };

#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  /// First cell of the box, and how many it has: less than others at the end of the grid.
  struct Box {
    int origin[dimensions], length[dimensions];
  };

  __device__ __forceinline__ Box box(int number_) const {
    Box result;
    BRACEWELL_UNROLL_FOR (int d = 0; d < dimensions; ++d) {
      result.origin[d] = number_ % number(problem.grid, d) * edge;
      result.length[d] = Kokkos::min(+edge, problem.grid.size[d] - result.origin[d]);
      number_ /= number(problem.grid, d);
    }
    return result;
  }

  /// Calls work(samples, count) for the samples that reach box `number`, at most `chunk` at a time; where there are
  /// none, once if work is wanted `always`. All lanes of a team must call it, and work waits for all before it returns.
  template <int chunk, class Team, class Work>
  __device__ __forceinline__ void for_samples_of_box(const Team& team, int number, const Box& box,
                                                     const SearchScratch<chunk>& scratch, bool always,
                                                     const Work& work) const {
    const int bins_around = list_bins(team, number, scratch);
    const std::uint32_t candidates = scratch.begin[bins_around],
                        batches = Kokkos::max<std::uint32_t>((candidates + batch - 1) / batch, always);
    int held = 0; // found, not worked upon
    for (std::uint32_t i = 0; i < batches; ++i) {
      held += look(team, i, batches, candidates, bins_around, box, scratch, scratch.reaching + held);
      const bool last = i + 1 == batches;
      int begin = 0;
      while (held - begin >= (last ? 1 : chunk) || (last && always)) {
        const int rest = held - begin, parts = Kokkos::max((rest + chunk - 1) / chunk, 1);
        const int count = last ? rest / parts : chunk; // the last ones in equal parts
        work(scratch.reaching + begin, count);
        begin += count;
        always = false;
      }
      if (begin > 0 && !last) { // fewer are left than there were before them
        held -= begin;
        for (int j = team.rank(); j < held; j += chip_team_size)
          scratch.reaching[j] = scratch.reaching[begin + j];
      }
    }
  }

  /// First cell of a sample counted from the box, whose last cells it can reach from the grid's other end.
  __device__ __forceinline__ int relative(int first, const Box& box, int axis) const {
    const int at = first - box.origin[axis];
    return at < box.length[axis] ? at : at - problem.grid.size[axis];
  }

  /// First cells of a sample along all axes, counted from the first that reaches the box: a byte each.
  __device__ __forceinline__ static int packed(int x, int y, int z) { return x | y << 8 | z << 16; }

  /// Lists those of `count` samples (their packed `corners`) that reach a block of a box, and `padding` times
  /// `none` behind them; returns how many reach it.
  template <int columns, int rows, int planes>
  __device__ __forceinline__ int select(int lane, int count, const int (&block)[3], const int* corners,
                                        std::uint16_t* list, int padding, int none) const {
    // A byte of `at` is not below that of `low` where the difference leaves its highest bit, and so on.
    constexpr int highest = 0x808080;
    const int reach = problem.kernel.width - 1;
    const int low = packed(block[0], block[1], block[2]);
    const int high = low + packed(columns - 1 + reach, rows - 1 + reach, planes - 1 + reach);
    int found = 0;
    for (int base = 0; base < count; base += 32) {
      bool reaches = base + lane < count;
      if (reaches) {
        const int at = corners[base + lane];
        reaches = (((at | highest) - low) & ((high | highest) - at) & highest) == highest;
      }
      const unsigned bits = bits_of_lanes(reaches);
      if (reaches)
        list[found + Kokkos::Experimental::popcount_builtin(bits & ((1u << lane) - 1))] =
            static_cast<std::uint16_t>(base + lane);
      found += Kokkos::Experimental::popcount_builtin(bits);
    }
    if (lane < padding)
      list[found + lane] = static_cast<std::uint16_t>(none);
    synchronise_lanes();
    return found;
  }

private:
  /// The bins with first cells of samples that may reach box `number`; returns how many.
  template <class Team, class Scratch>
  __device__ __forceinline__ int list_bins(const Team& team, int number_, const Scratch& scratch) const {
    const int rank = team.rank();
    int* const lowest = scratch.around;
    int* const count = scratch.around + dimensions;
    if (rank < dimensions) {
      for (int d = 0; d < rank; ++d)
        number_ /= number(problem.grid, d);
      const int size = problem.grid.size[rank];
      const int origin = number_ % number(problem.grid, rank) * edge;
      const int start = origin - (problem.kernel.width - 1), last = Kokkos::min(origin + edge, size) - 1;
      const int bin = bins.index(start < 0 ? start + size : start, rank);
      int bins_here = bins.index(last, rank) - bin + 1;
      if (bins_here <= 0 || (bins_here == 1 && start < 0)) // around the end of the grid
        bins_here = Kokkos::min(bins_here + bins.number[rank], bins.number[rank]);
      lowest[rank] = bin;
      count[rank] = bins_here;
    }
    team.barrier();
    int all = 1;
    BRACEWELL_UNROLL_FOR (int d = 0; d < dimensions; ++d)
      all *= count[d];
    if (rank < all) {
      int rest = rank;
      std::int64_t bin = 0, bin_stride = 1;
      BRACEWELL_UNROLL_FOR (int d = 0; d < dimensions; ++d) {
        const int at = lowest[d] + rest % count[d];
        bin += bin_stride * (at < bins.number[d] ? at : at - bins.number[d]);
        bin_stride *= bins.number[d];
        rest /= count[d];
      }
      scratch.first[rank] = first_of_bins[bin];
      scratch.size[rank] = first_of_bins[bin + 1] - scratch.first[rank];
    }
    team.barrier();
    if (rank <= all) {
      std::uint32_t sum = 0;
      for (int i = 0; i < rank; ++i)
        sum += scratch.size[i];
      scratch.begin[rank] = sum;
    }
    team.barrier();
    return all;
  }

  /// Where candidate `candidate` of all bins around lies in the order of bins.
  template <class Scratch>
  __device__ __forceinline__ std::uint32_t place_of(std::uint32_t candidate, int around,
                                                    const Scratch& scratch) const {
    int low = 0, high = around; // begin[low] <= candidate < begin[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      const bool right = scratch.begin[middle] <= candidate;
      low = right ? middle : low;
      high = right ? high : middle;
    }
    return scratch.first[low] + (candidate - scratch.begin[low]);
  }

  /// Lists the samples that reach the box among a batch of the candidates; returns how many. Batches are made of
  /// pieces from all over the candidates, which lie bin by bin, so that samples reach all parts of the box.
  template <class Team, class Scratch>
  __device__ __forceinline__ int look(const Team& team, std::uint32_t number, std::uint32_t batches,
                                      std::uint32_t candidates, int bins_around, const Box& box,
                                      const Scratch& scratch, Reaching* reaching) const {
    const int rank = team.rank(), lane = rank % 32, warp = rank / 32;
    Reaching found[each];
    unsigned bits[each];
    BRACEWELL_UNROLL_FOR (int u = 0; u < each; ++u) {
      const std::uint32_t candidate = ((u * warps + warp) * batches + number) * 32 + lane;
      bool reaches = candidate < candidates;
      if (reaches) {
        found[u].place = place_of(candidate, bins_around, scratch);
        found[u].sample = order[found[u].place];
        BRACEWELL_UNROLL_FOR (int d = 0; d < dimensions; ++d)
          reaches =
              relative(problem.locations[found[u].place].first[d], box, d) > -problem.kernel.width && reaches;
      }
      bits[u] = bits_of_lanes(reaches);
      if (lane == 0)
        scratch.counts[u * warps + warp] = Kokkos::Experimental::popcount_builtin(bits[u]);
    }
    team.barrier();
    int sum = scratch.counts[lane]; // and of all before
    BRACEWELL_UNROLL_FOR (int distance = 1; distance < 32; distance *= 2) {
      const int other = from_lane<32>(sum, lane - distance);
      sum += lane >= distance ? other : 0;
    }
    BRACEWELL_UNROLL_FOR (int u = 0; u < each; ++u) {
      const int before =
          from_lane<32>(sum, u * warps + warp) - Kokkos::Experimental::popcount_builtin(bits[u]);
      if (bits[u] >> lane & 1)
        reaching[before + Kokkos::Experimental::popcount_builtin(bits[u] & ((1u << lane) - 1))] = found[u];
    }
    const int all = from_lane<32>(sum, 31);
    team.barrier();
    return all;
  }
#endif
};

/// Numbers that are loaded together, and how many weights of a sample lie along a box of `edges` cells: an odd
/// number of such packs, which lanes write without bank conflicts.
template <class T>
struct alignas(16) BoxPack {
  static constexpr int size = 16 / sizeof(T);
  T value[size];

  static constexpr int stride(int edges) { return edges / size % 2 == 1 ? edges : edges + size; }
};

/// Weights of a kernel along one axis of a box, zeros where it does not reach.
template <int edge, class T, int MaxWidth>
KOKKOS_FORCEINLINE_FUNCTION void write_weights_along_box(const TapTable<T, MaxWidth>& taps, T offset,
                                                         int first, T* target) {
  BRACEWELL_UNROLL_FOR (int x = 0; x < edge; x += BoxPack<T>::size)
    *reinterpret_cast<BoxPack<T>*>(target + x) = BoxPack<T>{};
  constexpr int together = 4; // registers are few
  BRACEWELL_UNROLL_FOR (int begin = 0; begin < MaxWidth; begin += together) {
    T weights[together];
    taps.evaluate_some(offset, begin, weights);
    BRACEWELL_UNROLL_FOR (int i = 0; i < together; ++i) {
      const int cell = first + begin + i;
      if (begin + i < MaxWidth && cell >= 0 && cell < edge)
        target[cell] = weights[i];
    }
  }
}

} // namespace Bracewell::Impl
