// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/ptychography/detail/sums/exit_waves.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

namespace Bracewell::Impl {

/// Where a column of m numbers begins, if columns lie in blocks.
template <int block>
KOKKOS_FORCEINLINE_FUNCTION int in_blocks(int column, [[maybe_unused]] int m) {
  if constexpr (block > 0)
    return column / block * (m * block) + column % block;
  else
    return column;
}

/// Rows of a window whose sums a column of wrapped waves has (KnownColumns): those of the others are in later windows.
struct HeldRows {
  std::int16_t begin, end;
};

/// Object gradient sum_j conj(p(r - y_j)) G_j(r - y_j), by tiles of the object: a team owns a tile, goes
/// through the windows that reach it and stores each pixel once. On GPUs the lanes of a warp are neighbouring
/// columns and hold all rows; the warps take the windows in turn and add what they have at the end, in fixed
/// order. `slots` says which place in the selection a pattern has (none: its own number).
/// @tparam block  where not 0, `waves` are conj(p) G, to be summed as they are, in blocks of so many columns one after the
///   other; of `probes` only the modes count
template <class Space, class T, class Stored, int block = 0>
struct GatherObjectGradient {
  static constexpr int width = ScanTiles::width, height = ScanTiles::height;
  static constexpr int shares = is_host<Space> ? 1 : PtychographyTuning::object_shares; ///< of the windows
  static constexpr int team_size = is_host<Space> ? 1 : width * shares;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  Scan scan;
  ScanTiles tiles;
  Selection selection;
  const int* slots;
  Probes<T> probes;
  WaveGradients<T, Stored> waves;
  Kokkos::complex<T>* gradient;
  bool accumulate;
  const HeldRows*
      held; ///< [patterns, m] of waves that are wrapped, m being a multiple of the tile's sides; or null

  /// A window, where the tile lies in it, and where in its wave.
  struct Window {
    int i, row, column, wave_row, wave_column;
    T factor;
  };

  /// Known to the compiler to be false where waves are not in blocks.
  KOKKOS_INLINE_FUNCTION bool wrapped() const { return block > 0 && held; }

  /// False for windows of patterns that were not selected.
  KOKKOS_INLINE_FUNCTION bool window(std::int64_t entry, std::int64_t top, std::int64_t left,
                                     Window& result) const {
    const std::int64_t j = tiles.windows[entry], i = (slots ? slots[j] : j) - selection.first;
    if (i < 0 || i >= selection.count)
      return false;
    const int row = static_cast<int>(top - scan.positions[2 * j]),
              column = static_cast<int>(left - scan.positions[2 * j + 1]);
    result = {static_cast<int>(i),
              row,
              column,
              wrapped() ? static_cast<int>(top % scan.probe) : row,
              wrapped() ? static_cast<int>(left % scan.probe) : column,
              waves.factor(i)};
    return has_sums(result);
  }

  /// Whether a wave holds sums of the tile. Columns that hold other rows than most are the first ones of the window or the
  /// last, so that of the tile's columns the first and the last in the window tell.
  KOKKOS_INLINE_FUNCTION bool has_sums(const Window& window) const {
    if (!wrapped())
      return true;
    const HeldRows* const rows = held + (std::int64_t(window.i) * scan.probe + window.wave_column);
    const int first = Kokkos::max(0, -window.column),
              last = Kokkos::min(+width, scan.probe - window.column) - 1;
    const auto in_tile = [&](int x) {
      return Kokkos::max(0, rows[x].begin - window.row) < Kokkos::min(+height, rows[x].end - window.row);
    };
    return first <= last && (in_tile(first) || in_tile(last));
  }

  /// Adds what a window has for a column of the tile.
  KOKKOS_INLINE_FUNCTION void add(const Window& window, int x, T (&re)[height], T (&im)[height]) const {
    const int m = scan.probe, column = window.column + x, wave_column = window.wave_column + x;
    if (column < 0 || column >= m)
      return;
    const HeldRows rows = wrapped() ? held[std::int64_t(window.i) * m + wave_column]
                                    : HeldRows{0, static_cast<std::int16_t>(m)};
    const int from = Kokkos::max(0, rows.begin - window.row),
              to = Kokkos::min(+height, rows.end - window.row);
    if (from >= to)
      return;
    if (to - from == height)
      add_rows<true>(window, column, wave_column, from, to, re, im);
    else
      add_rows<false>(window, column, wave_column, from, to, re, im);
  }

  /// @tparam all  whether the window has all rows of the tile
  template <bool all>
  KOKKOS_INLINE_FUNCTION void add_rows(const Window& window, int column, int wave_column, int from, int to,
                                       T (&re)[height], T (&im)[height]) const {
    const int m = scan.probe, pitch = static_cast<int>(waves.row_stride);
    const Kokkos::complex<T>* p =
        block > 0 ? nullptr : probes.data + window.i * probes.stride + window.row * m + column;
    const complex_of<Stored>* w = waves.data + window.i * waves.pattern_stride + window.wave_row * pitch +
                                  in_blocks<block>(wave_column, m);
    for (int mode = 0; mode < probes.modes; ++mode) {
      Kokkos::complex<T> probe[height], wave[height];
      BRACEWELL_UNROLL_FOR (int y = 0; y < height; ++y) { // all on their way at the same time
        const bool inside = all || (y >= from && y < to);
        if constexpr (block == 0)
          probe[y] = inside ? p[y * m] : Kokkos::complex<T>(0);
        wave[y] = inside ? static_cast<Kokkos::complex<T>>(w[y * pitch]) : Kokkos::complex<T>(0);
      }
      BRACEWELL_UNROLL_FOR (int y = 0; y < height; ++y) {
        if constexpr (WaveGradients<T, Stored>::scaled)
          wave[y] *= window.factor;
        if constexpr (block > 0) {
          re[y] += wave[y].real();
          im[y] += wave[y].imag();
        } else {
          re[y] += probe[y].real() * wave[y].real() + probe[y].imag() * wave[y].imag();
          im[y] += probe[y].real() * wave[y].imag() - probe[y].imag() * wave[y].real();
        }
      }
      if constexpr (block == 0)
        p += m * m;
      w += waves.mode_stride;
    }
  }

  KOKKOS_INLINE_FUNCTION void store(std::int64_t row, std::int64_t column,
                                    const Kokkos::complex<T>& sum) const {
    if (row >= scan.rows || column >= scan.columns)
      return;
    const std::int64_t index = row * scan.columns + column;
    gradient[index] = accumulate ? gradient[index] + sum : sum;
  }

  using Scratch =
      Kokkos::View<Kokkos::complex<T>*, typename Space::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int scratch_size = is_host<Space> ? 0 : shares * height * width;
  static_assert(sizeof(Window) <= height * sizeof(Kokkos::complex<T>));
  static std::size_t scratch_bytes() { return Scratch::shmem_size(scratch_size); }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t tile = team.league_rank(), begin = tiles.first[tile], end = tiles.first[tile + 1];
    const std::int64_t top = tile / tiles.across * height, left = tile % tiles.across * width;
    if constexpr (is_host<Space>)
      sum_in_registers(begin, end, top, left);
    else
      sum_by_shares(team, begin, end, top, left);
  }

private:
  /// One thread has the tile.
  KOKKOS_INLINE_FUNCTION void sum_in_registers(std::int64_t begin, std::int64_t end, std::int64_t top,
                                               std::int64_t left) const {
    T re[width][height] = {}, im[width][height] = {};
    Window now;
    for (std::int64_t entry = begin; entry < end; ++entry)
      if (window(entry, top, left, now))
        for (int x = 0; x < width; ++x)
          add(now, x, re[x], im[x]);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        store(top + y, left + x, {re[x][y], im[x][y]});
  }

  /// Threads have a column of the tile and a share of the windows; the shares are added up at the end.
  KOKKOS_INLINE_FUNCTION void sum_by_shares(const Team& team, std::int64_t begin, std::int64_t end,
                                            std::int64_t top, std::int64_t left) const {
    const int rank = team.team_rank(), x = rank % width, share = rank / width;
    const Scratch scratch(team.team_scratch(0), +scratch_size);
    Window* const windows = reinterpret_cast<Window*>(scratch.data());
    T re[height] = {}, im[height] = {};
    for (std::int64_t first = begin; first < end; first += team_size) {
      Window own{};
      const bool selected = first + rank < end && window(first + rank, top, left, own);
      const int place = team.team_scan(selected ? 1 : 0); // in the order of the list
      if (selected)
        windows[place] = own;
      int count = place + selected;
      team.team_broadcast(count, team_size - 1);
      team.team_barrier();
      for (int w = share; w < count; w += shares)
        add(windows[w], x, re, im);
      team.team_barrier();
    }
    BRACEWELL_UNROLL_FOR (int y = 0; y < height; ++y)
      scratch((share * height + y) * width + x) = Kokkos::complex<T>(re[y], im[y]);
    team.team_barrier();
    for (int pixel = rank; pixel < width * height; pixel += team_size) {
      Kokkos::complex<T> sum(0);
      for (int s = 0; s < shares; ++s)
        sum += scratch(s * height * width + pixel);
      store(top + pixel / width, left + pixel % width, sum);
    }
  }
};

/// Runs the gathering kernel with its scratch memory.
template <class Space, class Gather>
void gather_object_gradient(const Space& space, const Label& label, const Gather& gather) {
  using Policy = Kokkos::TeamPolicy<
      Space, Kokkos::LaunchBounds<PtychographyTuning::tile_width * PtychographyTuning::object_shares,
                                  resident_teams<Space>(PtychographyTuning::object_teams)>>;
  Policy policy(space, static_cast<int>(gather.tiles.count), +Gather::team_size);
  policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<std::size_t>(Gather::scratch_bytes())));
  launch_kernel(label, policy, gather);
}

} // namespace Bracewell::Impl
