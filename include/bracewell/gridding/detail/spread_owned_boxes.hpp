// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/plan.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/lanes.hpp>

namespace Bracewell::Impl {

/// Boxes of cells that teams of SpreadOwnedBoxes own, and blocks of them that its warps own.
template <class Space, class T, int Dim>
struct OwnedBoxes {
  static_assert(Dim == 2 || Dim == 3);
  static constexpr int columns = Dim == 2 && sizeof(T) == 4 ? 8 : 4; ///< of a block: its edges
  static constexpr int rows = Dim == 3 && sizeof(T) == 8 ? 2 : 4, planes = Dim == 2 ? 1 : 2;
  static constexpr int block_cells = columns * rows * planes; ///< in 64 registers of a lane
  static constexpr int most_bins = 128;                       ///< around a box
  /// Bytes of scratch memory of a team: half of what a multiprocessor of an NVIDIA H200 has.
  static constexpr int team_scratch = 115584;

  /// Cells of a box along an axis.
  KOKKOS_FUNCTION static constexpr int edge(int axis) { return Dim == 3 ? 8 : axis < 2 ? 16 : 1; }
  KOKKOS_FUNCTION static constexpr int number(const GridShape<Dim>& grid, int axis) {
    return (grid.size[axis] + edge(axis) - 1) / edge(axis);
  }

  static std::int64_t teams(const GridShape<Dim>& grid, std::int64_t slices) {
    std::int64_t product = (slices + slices_of_box - 1) / slices_of_box;
    for (int d = 0; d < Dim; ++d)
      product *= number(grid, d);
    return product;
  }

  /// Whether to spread by them.
  static bool suit(const Space& space, const GriddingPlan<Space, T, Dim>& plan, std::int64_t slices) {
    const BinGrid<Dim>& bins = plan.bins.grid;
    std::int64_t around = 1;
    for (int d = 0; d < Dim; ++d)
      around *= (edge(d) + bins.width - 3) / (bins.grid.size[d] / bins.number[d]) + 2;
    return team_scratch <= most_scratch(space) && around <= most_bins &&
           teams(bins.grid, slices) <= std::numeric_limits<int>::max() &&
           spreads_owned_boxes({.points = double(plan.problem.points),
                                .slices = double(slices),
                                .largest_bin = double(plan.bins.largest),
                                .dimensions = Dim,
                                .order = plan.order,
                                .value_bytes = sizeof(T),
                                .host = is_host<Space>,
                                .lanes = double(space.concurrency())});
  }
};

/// GriddingStrategy::Bins on GPUs in 2D and 3D where OwnedBoxes suit: several slices of points that do not crowd.
/// A team owns a box of cells, of eight slices, and looks for the samples that reach it among the bins around; it
/// prepares each of them once for all slices and cells. Then its warps take blocks of the box: their lanes are eight
/// slices times four samples at a time, and keep the sums of all cells of the block in registers. Weights are laid
/// out along the box, zeros where a sample does not reach, so that registers are addressed by constants. Nothing is
/// added by two teams; sums have a fixed order.
template <class Space, int MaxWidth, class T, int Dim>
struct SpreadOwnedBoxes : OwnedBoxes<Space, T, Dim> {
  using Boxes = OwnedBoxes<Space, T, Dim>;
  using Boxes::columns, Boxes::rows, Boxes::planes, Boxes::block_cells, Boxes::most_bins, Boxes::edge,
      Boxes::team_scratch;
  using Plan = GriddingPlan<Space, T, Dim>;
  using Complex = Kokkos::complex<T>;
  static constexpr int slices_at_once = slices_of_box, groups = 32 / slices_at_once; ///< lanes of a warp
  static constexpr int chip_team_size = 256, warps = chip_team_size / 32;
  static constexpr int chip_teams = 2; ///< of a multiprocessor, by registers and scratch memory
  static constexpr int each = 4,
                       batch = each * chip_team_size; ///< samples of bins looked at together, of a lane
  static constexpr int box_cells = edge(0) * edge(1) * edge(2), passes = box_cells / block_cells / warps;
  /// Numbers that are loaded together, and weights of a sample: an odd number of such packs, which lanes write
  /// without bank conflicts.
  static constexpr int pack = 16 / sizeof(T), all_edges = edge(0) + edge(1) + (Dim == 3 ? edge(2) : 0);
  static constexpr int stride = all_edges / pack % 2 == 1 ? all_edges : all_edges + pack;
  static constexpr int tile_stride = block_cells + 1; ///< of slices of a block on their way to the grid
  static_assert(each * warps == 32 && passes * warps * block_cells == box_cells);

  SpreadingProblem<T, Dim> problem;
  TapTable<T, MaxWidth> taps;
  BinGrid<Dim> bins;
  const std::uint32_t *first_of_bins, *order;
  SampleArray<const Complex> samples;
  Complex* grid;
  int slice_chunks;

  static void launch(const Space& space, const Plan& plan, std::int64_t slices,
                     const SampleArray<const Complex>& samples, Complex* grid) {
    const SpreadOwnedBoxes functor{{},
                                   plan.problem_of(slices),
                                   plan.template taps<MaxWidth>(),
                                   plan.bins.grid,
                                   plan.bins.first.data(),
                                   plan.bins.order.data(),
                                   samples,
                                   grid,
                                   static_cast<int>((slices + slices_at_once - 1) / slices_at_once)};
    launch_teams(space, "Bracewell::Gridding::spread_bins_owned",
                 static_cast<int>(Boxes::teams(plan.problem.grid, slices)), team_scratch, functor);
  }

#if defined(KOKKOS_ENABLE_CUDA)
  KOKKOS_FUNCTION void operator()(void* scratch) const { run(ChipTeam<T>{nullptr}, scratch); }
#endif
  KOKKOS_FUNCTION void operator()(const typename Kokkos::TeamPolicy<Space>::member_type& member) const {
    run(PolicyTeam<typename Kokkos::TeamPolicy<Space>::member_type>{member},
        member.team_scratch(0).get_shmem_aligned(team_scratch - 64, 32));
  }

private:
  /// A sample that reaches the box: where it lies in the order of bins, and its number.
  struct Reaching {
    std::uint32_t place, sample;
  };
  struct alignas(16) Pack {
    T value[pack];
  };

  static constexpr std::size_t tiles_bytes = warps * slices_at_once * tile_stride * sizeof(Complex);
  static constexpr std::size_t bytes_of_bins =
      (32 + 2 * Dim) * sizeof(int) + 3 * (most_bins + 1) * sizeof(std::uint32_t);
  static constexpr std::size_t bytes_of_sample =
      stride * sizeof(T) + slices_at_once * sizeof(Complex) + sizeof(int) + warps * sizeof(std::uint16_t);
  static constexpr std::size_t other_bytes =
      tiles_bytes + batch * sizeof(Reaching) + bytes_of_bins + warps * 2 * groups * sizeof(std::uint16_t);
  /// Samples that are prepared together, at most.
  static constexpr int chunk = static_cast<int>((team_scratch - other_bytes) / bytes_of_sample / 16 * 16 - 1);
  static constexpr std::size_t weights_bytes = (chunk + 1) * stride * sizeof(T);

  struct Scratch {
    T* weights;           ///< [chunk + 1, stride], of the last one zeros
    Complex* values;      ///< [chunk + 1, slices], likewise
    Complex* tiles;       ///< [warps, slices, tile_stride]: blocks on their way to the grid
    Reaching* reaching;   ///< [batch]
    int* corners;         ///< [chunk]: see packed
    int* counts;          ///< [32]: samples that 32 lanes found
    int* around;          ///< [2, Dim]: the bins around, the first and how many along each axis
    std::uint32_t* first; ///< [most_bins]: where their samples begin
    std::uint32_t* size;  ///< [most_bins]: how many there are,
    std::uint32_t* begin; ///< [most_bins + 1]: and how many in the bins before
    std::uint16_t* lists; ///< [warps, chunk + 2 groups]: samples that reach the block of a warp

    KOKKOS_FUNCTION explicit Scratch(void* memory)
        : weights(static_cast<T*>(memory)),
          values(reinterpret_cast<Complex*>(static_cast<char*>(memory) + weights_bytes)),
          tiles(values + (chunk + 1) * slices_at_once),
          reaching(reinterpret_cast<Reaching*>(reinterpret_cast<char*>(tiles) + tiles_bytes)),
          corners(reinterpret_cast<int*>(reaching + batch)), counts(corners + chunk), around(counts + 32),
          first(reinterpret_cast<std::uint32_t*>(around + 2 * Dim)), size(first + most_bins + 1),
          begin(size + most_bins + 1), lists(reinterpret_cast<std::uint16_t*>(begin + most_bins + 1)) {}
  };

  template <class Team>
  KOKKOS_FUNCTION void run([[maybe_unused]] const Team& team, [[maybe_unused]] void* scratch) const {
    KOKKOS_IF_ON_DEVICE((run_on_device(team, Scratch(scratch));))
  }

#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  /// First cell of the box, and how many it has: less than others at the end of the grid.
  struct Box {
    int origin[Dim], length[Dim];
  };

  template <class Team>
  __device__ __forceinline__ void run_on_device(const Team& team, const Scratch& scratch) const {
    const int rank = team.rank();
    int number = static_cast<int>(team.number());
    const std::int64_t first_slice = std::int64_t(number % slice_chunks) * slices_at_once;
    number /= slice_chunks;
    const int bins_around = list_bins(team, number, scratch);
    const std::uint32_t candidates = scratch.begin[bins_around];
    Box box;
    BRACEWELL_UNROLL
    for (int d = 0; d < Dim; ++d) {
      box.origin[d] = number % Boxes::number(problem.grid, d) * edge(d);
      box.length[d] = Kokkos::min(edge(d), problem.grid.size[d] - box.origin[d]);
      number /= Boxes::number(problem.grid, d);
    }
    for (int i = rank; i < stride; i += chip_team_size)
      scratch.weights[chunk * stride + i] = 0;
    if (rank < slices_at_once)
      scratch.values[chunk * slices_at_once + rank] = Complex(0);

    bool written = false;
    for (std::uint32_t base = 0; base < candidates || !written; base += batch) {
      const int all = look(team, base, candidates, bins_around, box, scratch);
      if (all == 0 && (written || base + batch < candidates))
        continue;
      // In as many equal parts as there is room for. A box without samples has one of none.
      const int parts = Kokkos::max((all + chunk - 1) / chunk, 1);
      for (int part = 0; part < parts; ++part) {
        const int begin = all * part / parts, count = all * (part + 1) / parts - begin;
        prepare(rank, count, scratch.reaching + begin, box, first_slice, scratch);
        wait_for_copies();
        team.barrier();
        for (int pass = 0; pass < passes; ++pass)
          add_block(rank, pass, count, box, first_slice, written, scratch);
        written = true;
        team.barrier();
      }
    }
  }

  /// First cell of a sample counted from the box, whose last cells it can reach from the grid's other end.
  __device__ __forceinline__ int relative(int first, const Box& box, int axis) const {
    const int at = first - box.origin[axis];
    return at < box.length[axis] ? at : at - problem.grid.size[axis];
  }

  /// The bins with first cells of samples that may reach box `number`; returns how many.
  template <class Team>
  __device__ __forceinline__ int list_bins(const Team& team, int number, const Scratch& scratch) const {
    const int rank = team.rank();
    int* const lowest = scratch.around;
    int* const count = scratch.around + Dim;
    if (rank < Dim) {
      for (int d = 0; d < rank; ++d)
        number /= Boxes::number(problem.grid, d);
      const int size = problem.grid.size[rank];
      const int origin = number % Boxes::number(problem.grid, rank) * edge(rank);
      const int start = origin - (problem.kernel.width - 1),
                last = Kokkos::min(origin + edge(rank), size) - 1;
      const int bin = bins.index(start < 0 ? start + size : start, rank);
      int bins_here = bins.index(last, rank) - bin + 1;
      if (bins_here <= 0 || (bins_here == 1 && start < 0)) // around the end of the grid
        bins_here = Kokkos::min(bins_here + bins.number[rank], bins.number[rank]);
      lowest[rank] = bin;
      count[rank] = bins_here;
    }
    team.barrier();
    int all = 1;
    BRACEWELL_UNROLL
    for (int d = 0; d < Dim; ++d)
      all *= count[d];
    if (rank < all) {
      int rest = rank;
      std::int64_t bin = 0, bin_stride = 1;
      BRACEWELL_UNROLL
      for (int d = 0; d < Dim; ++d) {
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

  /// Lists the samples that reach the box among the candidates from `base` on; returns how many.
  template <class Team>
  __device__ __forceinline__ int look(const Team& team, std::uint32_t base, std::uint32_t candidates,
                                      int bins_around, const Box& box, const Scratch& scratch) const {
    const int rank = team.rank(), lane = rank % 32, warp = rank / 32;
    Reaching found[each];
    unsigned bits[each];
    BRACEWELL_UNROLL
    for (int u = 0; u < each; ++u) {
      const std::uint32_t candidate = base + u * chip_team_size + rank;
      bool reaches = candidate < candidates;
      if (reaches) {
        found[u].place = place_of(candidate, bins_around, scratch);
        found[u].sample = order[found[u].place];
        BRACEWELL_UNROLL
        for (int d = 0; d < Dim; ++d)
          reaches =
              relative(problem.locations[found[u].place].first[d], box, d) > -problem.kernel.width && reaches;
      }
      bits[u] = bits_of_lanes(reaches);
      if (lane == 0)
        scratch.counts[u * warps + warp] = Kokkos::Experimental::popcount_builtin(bits[u]);
    }
    team.barrier();
    int sum = scratch.counts[lane]; // and of all before
    BRACEWELL_UNROLL
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = from_lane<32>(sum, lane - distance);
      sum += lane >= distance ? other : 0;
    }
    BRACEWELL_UNROLL
    for (int u = 0; u < each; ++u) {
      const int before =
          from_lane<32>(sum, u * warps + warp) - Kokkos::Experimental::popcount_builtin(bits[u]);
      if (bits[u] >> lane & 1)
        scratch.reaching[before + Kokkos::Experimental::popcount_builtin(bits[u] & ((1u << lane) - 1))] =
            found[u];
    }
    const int all = from_lane<32>(sum, 31);
    team.barrier();
    return all;
  }

  /// First cells of a sample along all axes, counted from the first that reaches the box: a byte each.
  __device__ __forceinline__ static int packed(int x, int y, int z) { return x | y << 8 | z << 16; }

  /// Values of samples, of all slices, and their weights along the box. Slices that there are not repeat the last.
  __device__ __forceinline__ void prepare(int rank, int count, const Reaching* reaching, const Box& box,
                                          std::int64_t first_slice, const Scratch& scratch) const {
    const int slice = rank % slices_at_once;
    const Complex* const source = &samples(0, Kokkos::min(first_slice + slice, problem.slices - 1));
    for (int i = rank / slices_at_once; i < count; i += chip_team_size / slices_at_once)
      copy_ahead(scratch.values + i * slices_at_once + slice,
                 source + reaching[i].sample * samples.point_stride);
    for (int i = rank; i < count; i += chip_team_size) {
      const Location<T, Dim> at = problem.locations[reaching[i].place];
      T* target = scratch.weights + i * stride;
      int corner[3] = {};
      BRACEWELL_UNROLL
      for (int d = 0; d < Dim; ++d) {
        const int first = relative(at.first[d], box, d);
        corner[d] = first + problem.kernel.width - 1;
        T weights[MaxWidth];
        taps.evaluate(at.offset[d], weights);
        BRACEWELL_UNROLL
        for (int x = 0; x < edge(d); x += pack)
          *reinterpret_cast<Pack*>(target + x) = Pack{};
        BRACEWELL_UNROLL
        for (int tap = 0; tap < MaxWidth; ++tap)
          if (first + tap >= 0 && first + tap < edge(d))
            target[first + tap] = weights[tap];
        target += edge(d);
      }
      scratch.corners[i] = packed(corner[0], corner[1], corner[2]);
    }
  }

  template <int count>
  __device__ __forceinline__ static void load(const T* from, T (&to)[count]) {
    if constexpr (count % pack == 0) {
      BRACEWELL_UNROLL
      for (int i = 0; i < count; i += pack) {
        const Pack values = *reinterpret_cast<const Pack*>(from + i);
        BRACEWELL_UNROLL
        for (int j = 0; j < pack; ++j)
          to[i + j] = values.value[j];
      }
    } else {
      static_assert(count * sizeof(T) == 8);
      const Complex values = *reinterpret_cast<const Complex*>(from);
      to[0] = values.real(), to[1] = values.imag();
    }
  }

  /// Adds the samples that reach a block of the box, the warp's in a pass, and writes its cells, or adds to what
  /// is `written`.
  __device__ __forceinline__ void add_block(int rank, int pass, int count, const Box& box,
                                            std::int64_t first_slice, bool written,
                                            const Scratch& scratch) const {
    constexpr int across = edge(0) / columns, down = edge(1) / rows;
    const int lane = rank % 32, warp = rank / 32, number = pass * warps + warp;
    const int block[3] = {number % across * columns, number / across % down * rows,
                          number / across / down * planes};
    bool on_grid = block[0] < box.length[0] && block[1] < box.length[1];
    if constexpr (Dim == 3)
      on_grid = on_grid && block[2] < box.length[2];
    if (!on_grid)
      return;
    std::uint16_t* const list = scratch.lists + warp * (chunk + 2 * groups);
    const int found = select(lane, count, block, list, scratch.corners);
    Complex sums[block_cells];
    BRACEWELL_UNROLL
    for (int i = 0; i < block_cells; ++i)
      sums[i] = Complex(0);
    add(lane, found, block, list, scratch, sums);
    const int first = add_groups<slices_at_once, block_cells / 2>(lane, sums);
    Complex* const tile = scratch.tiles + warp * slices_at_once * tile_stride;
    BRACEWELL_UNROLL
    for (int c = 0; c < block_cells / groups; ++c)
      tile[lane % slices_at_once * tile_stride + first + c] = sums[c];
    synchronise_lanes();
    store(lane, block, box, first_slice, written, tile);
    synchronise_lanes(); // before list and tile are written again
  }

  /// Lists the prepared samples that reach a block, and a few of zeros behind them; returns how many reach it.
  __device__ __forceinline__ int select(int lane, int count, const int (&block)[3], std::uint16_t* list,
                                        const int* corners) const {
    // A byte of `at` is not below that of `low` where the difference leaves its highest bit, and so on.
    constexpr int highest = 0x808080;
    const int reach = problem.kernel.width - 1, depth = Dim == 3 ? reach : 0;
    const int low = packed(block[0], block[1], block[2]);
    const int high = low + packed(columns - 1 + reach, rows - 1 + reach, planes - 1 + depth);
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
    if (lane < 2 * groups)
      list[found + lane] = chunk;
    synchronise_lanes();
    return found;
  }

  /// Adds the listed samples, one of every group of lanes at a time, to its sums of a block.
  __device__ __forceinline__ void add(int lane, int found, const int (&block)[3], const std::uint16_t* list,
                                      const Scratch& scratch, Complex (&sums)[block_cells]) const {
    const int group = lane / slices_at_once;
    const Complex* const values = scratch.values + lane % slices_at_once;
    const T* const weights = scratch.weights + block[0];
    const int to_rows = edge(0) - block[0] + block[1], to_planes = edge(0) + edge(1) - block[0] + block[2];
    int next = list[group];
    for (int i = 0; i < found; i += groups) {
      const int sample = next;
      next = list[i + groups + group];
      const T* const from = weights + sample * stride;
      const Complex value = values[sample * slices_at_once];
      T x[columns], y[rows], z[2];
      load(from, x);
      load(from + to_rows, y);
      if constexpr (Dim == 3)
        load(from + to_planes, z);
      BRACEWELL_UNROLL
      for (int k = 0; k < planes; ++k) {
        const Complex of_plane = Dim == 2 ? value : Complex(z[k] * value.real(), z[k] * value.imag());
        BRACEWELL_UNROLL
        for (int j = 0; j < rows; ++j) {
          const T real = y[j] * of_plane.real(), imaginary = y[j] * of_plane.imag();
          BRACEWELL_UNROLL
          for (int c = 0; c < columns; ++c) {
            Complex& sum = sums[(k * rows + j) * columns + c];
            sum = Complex(sum.real() + x[c] * real, sum.imag() + x[c] * imaginary);
          }
        }
      }
    }
  }

  /// Adds the sums of the groups of lanes, which keep a part of the block each; returns where it begins.
  template <int bit, int half>
  __device__ __forceinline__ static int add_groups(int lane, Complex (&sums)[block_cells]) {
    if constexpr (bit == 32) {
      return 0;
    } else {
      const bool upper = lane & bit;
      BRACEWELL_UNROLL
      for (int c = 0; c < half; ++c) {
        const Complex kept = upper ? sums[c + half] : sums[c], sent = upper ? sums[c] : sums[c + half];
        sums[c] = Complex(kept.real() + from_opposite_lane(sent.real(), bit),
                          kept.imag() + from_opposite_lane(sent.imag(), bit));
      }
      return (upper ? half : 0) + add_groups<2 * bit, half / 2>(lane, sums);
    }
  }

  /// A block from scratch memory to the grid, lanes side by side on its rows.
  __device__ __forceinline__ void store(int lane, const int (&block)[3], const Box& box,
                                        std::int64_t first_slice, bool written, const Complex* tile) const {
    constexpr int together = 32 / block_cells; // slices
    const int cell = lane % block_cells;
    const int local[3] = {block[0] + cell % columns, block[1] + cell / columns % rows,
                          block[2] + cell / columns / rows};
    bool on_grid = true;
    std::int64_t index = 0;
    BRACEWELL_UNROLL
    for (int d = Dim - 1; d >= 0; --d) {
      on_grid = on_grid && local[d] < box.length[d];
      index = index * problem.grid.size[d] + box.origin[d] + local[d];
    }
    if (!on_grid)
      return;
    const int slices =
        static_cast<int>(Kokkos::min<std::int64_t>(slices_at_once, problem.slices - first_slice));
    const std::int64_t elements = problem.grid.elements();
    Complex* const target = grid + first_slice * elements + index;
    BRACEWELL_UNROLL
    for (int base = 0; base < slices_at_once; base += together) {
      const int slice = base + lane / block_cells;
      if (slice < slices) {
        Complex sum = tile[slice * tile_stride + cell];
        if (written)
          sum += target[slice * elements];
        target[slice * elements] = sum;
      }
    }
  }
#endif
};

} // namespace Bracewell::Impl
