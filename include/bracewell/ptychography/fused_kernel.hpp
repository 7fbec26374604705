// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/ptychography/compare.hpp>
#include <bracewell/ptychography/register_fft.hpp>

namespace Bracewell::Impl {

/// Factors and sizes of the fused kernel for patterns of n = lanes x length pixels per side.
///
/// The detector's columns are taken in `lanes` rounds of those with the same remainder: with x = s + length
/// j,
///   Psi(lanes c + q) = sum_s exp(-2 pi i c s / length) exp(-2 pi i q s / n) sum_j exp(-2 pi i q j / lanes)
///   psi(x),
/// so that a round needs a tile of m x length numbers only. Rows are split among `lanes` neighbouring lanes
/// in the same way, so that each holds `length` numbers in registers and nothing is exchanged before the sum
/// over the lanes at the end of the adjoint.
template <int length_, int lanes_>
struct FusedSizes {
  static constexpr int length = length_, lanes = lanes_, n = length * lanes;
  static constexpr int block = length % 8 == 0 ? 8 : length % 4 == 0 ? 4 : 2; ///< rows that are kept or not
  static_assert(block % lanes == 0);
  static constexpr int pitch =
      length | 1;                 ///< of a row of the tile: odd, so that columns lie in different banks
  static constexpr int tasks = n; ///< (column of a round, lane)
  static constexpr int vector = length % 4 == 0 ? 4 : 2; ///< targets that a thread reads at once
  static constexpr int team_size = n <= 192 ? (n + 31) / 32 * 32 : 128;

  static constexpr int rows(int m) { return (m + block - 1) / block * block; }
};

/// Where the fused kernel finds targets: the numbers of a task in groups, tasks side by side.
template <class Sizes>
struct FusedLayout {
  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t j, int row, int column) const {
    constexpr int lanes = Sizes::lanes, vector = Sizes::vector;
    const int task = column / lanes * lanes + row % lanes, k = row / lanes;
    return (((j * lanes + column % lanes) * (Sizes::length / vector) + k / vector) * Sizes::tasks + task) *
               vector +
           k % vector;
  }
};

template <class Storage, int count>
struct alignas(sizeof(Storage) * count) StoredVector {
  Storage value[count];
};

/// One team per pattern: exit wave, transform, comparison, adjoint, without anything of the detector's size
/// in memory. Leaves B = IDFT(l'(J) Psi) on the window, in units that suit half precision, and two factors
/// with which G = f B - h psi (WaveGradients).
///   m = sum |psi|^2 (Parseval: the mean of I), J = I C / m, c = Re<psi, B> / (n^2 m).
template <class Space, class T, class Storage, class Sizes>
struct FusedPatterns {
  static constexpr bool host = is_host<Space>;
  static constexpr int length = Sizes::length, lanes = Sizes::lanes, n = Sizes::n, block = Sizes::block;
  static constexpr int team_size = host ? 1 : Sizes::team_size;
  /// Registers bound how many teams a multiprocessor holds: about 2 length numbers of a thread stay in them.
  static constexpr int least_teams = sizeof(T) > 4 ? 1 : length > 48 ? 3 : length > 32 ? 3 : 4;
  static constexpr int scratch_level = host ? 1 : 0;
  using Policy = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<Sizes::team_size, least_teams>>;
  using Team = typename Policy::member_type;
  using Number = Pair<T>;
  using Tile = StoredComplex<Storage>;
  template <class Value>
  using Scratch = Kokkos::View<Value*, typename Space::scratch_memory_space, Kokkos::MemoryUnmanaged>;

  Scan scan;
  Selection selection;
  const Kokkos::complex<T>*object, *probe;
  Targets<T, Storage> targets;
  PatternLoss loss;
  T background, norm;
  const Number*
      roots; ///< [length, lanes]: exp(-2 pi i q s / n), then [lanes, lanes]: exp(-2 pi i q j / lanes)
  double* losses;
  Tile* waves; ///< [patterns, m, m]
  T* factors;  ///< [patterns, 2]
  bool gradients;

  static constexpr int root_count = n + lanes * lanes;
  static std::size_t scratch_bytes(int m) {
    return Scratch<Tile>::shmem_size(Sizes::rows(m) * Sizes::pitch) + Scratch<Number>::shmem_size(root_count);
  }

  struct Context {
    std::int64_t i, corner;
    Tile* tile;
    const Number* roots;
    T scale;       ///< of |psi|^2 of the scaled wave, to J
    T enlargement; ///< of psi: a power of two that makes its energy about 1
    T unit;        ///< of the derivative, so that half precision holds it
    const Storage* targets;

    KOKKOS_FORCEINLINE_FUNCTION Number root(int s, int q) const { return roots[s * lanes + q]; }
    KOKKOS_FORCEINLINE_FUNCTION Number fold(int j, int q) const { return roots[n + j * lanes + q]; }
  };

  KOKKOS_FORCEINLINE_FUNCTION Number exit_wave(const Context& at, int y, int x) const {
    const Kokkos::complex<T> o = object[at.corner + y * scan.columns + x], p = probe[y * scan.probe + x];
    return turn<false>(Number{o.real(), o.imag()}, Number{p.real(), p.imag()});
  }

  KOKKOS_FORCEINLINE_FUNCTION static void put(Tile& to, const Number& value) {
    to.re = static_cast<Storage>(value.re);
    to.im = static_cast<Storage>(value.im);
  }
  KOKKOS_FORCEINLINE_FUNCTION static Number get(const Tile& from) {
    return {static_cast<T>(from.re), static_cast<T>(from.im)};
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int m = scan.probe, rank = team.team_rank(), threads = team.team_size();
    Context at;
    at.i = team.league_rank();
    const std::int64_t j = selection(at.i);
    at.corner = scan.corner(j);
    at.targets = targets.values + j * n * n;
    const Scratch<Tile> tile(team.team_scratch(+scratch_level), Sizes::rows(m) * Sizes::pitch);
    const Scratch<Number> table(team.team_scratch(+scratch_level), +root_count);
    at.tile = tile.data();
    at.roots = table.data();
    for (int k = rank; k < root_count; k += threads)
      table(k) = roots[k];
    double energy = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, m * m),
        [&](int pixel, double& sum) {
          const Number psi = exit_wave(at, pixel / m, pixel % m);
          sum += double(psi.re * psi.re + psi.im * psi.im);
        },
        energy);
    const T mean = targets.means[j];
    if (!(mean > 0 && energy > 0)) { // the whole team leaves
      skip(at, rank, threads);
      return;
    }
    const bool scaled = targets.counts > 0;
    at.enlargement = static_cast<T>(Kokkos::exp2(-Kokkos::floor(0.5 * Kokkos::log2(energy) + 0.5)));
    const T to_model = scaled ? static_cast<T>(targets.counts / energy) : T(1);
    at.scale = to_model / (at.enlargement * at.enlargement);
    at.unit = 1 / (T(n) * (loss == PatternLoss::LeastSquares ? mean : T(1)));
    double sum = 0, moment = 0;
    for (int q = 0; q < lanes; ++q) {
      for (int element = rank; element < Sizes::rows(m) * length; element += threads)
        stage(at, q, element / length, element % length);
      team.team_barrier();
      for (int y = rank; y < m; y += threads)
        transform_row<false>(at, y);
      team.team_barrier();
      if constexpr (host)
        for (int column = 0; column < length; ++column)
          transform_column(at, q, column, sum);
      else // whole warps take part: the sum over the lanes needs them
        for (int task = rank; task < (Sizes::tasks + team_size - 1) / team_size * team_size; task += threads)
          transform_column_by_lanes(at, q, task, sum);
      team.team_barrier();
      if (!gradients)
        continue;
      for (int y = rank; y < m; y += threads)
        transform_row<true>(at, y);
      team.team_barrier();
      for (int element = rank; element < m * length; element += threads)
        accumulate(at, q, element / length, element % length, moment);
      team.team_barrier();
    }
    finish(team, at, scaled, to_model, energy, sum, moment);
  }

  KOKKOS_INLINE_FUNCTION void skip(const Context& at, int rank, int threads) const {
    const int pixels = scan.probe * scan.probe;
    if (gradients)
      for (int pixel = rank; pixel < pixels; pixel += threads)
        put(waves[at.i * pixels + pixel], Number{0, 0});
    if (rank == 0) {
      losses[at.i] = 0;
      factors[2 * at.i] = factors[2 * at.i + 1] = 0;
    }
  }

  /// Element (y, s) of the tile: what round q folds onto it.
  KOKKOS_FORCEINLINE_FUNCTION void stage(const Context& at, int q, int y, int s) const {
    const int m = scan.probe;
    Number value{0, 0};
    if (y < m) {
      for (int j = 0; s + length * j < m; ++j)
        value = value + turn<false>(exit_wave(at, y, s + length * j), at.fold(j, q));
      value = turn<false>(value, at.root(s, q));
      value = {value.re * at.enlargement, value.im * at.enlargement};
    }
    put(at.tile[y * Sizes::pitch + s], value);
  }

  template <bool inverse>
  KOKKOS_FORCEINLINE_FUNCTION void transform_row(const Context& at, int y) const {
    Tile* const row = at.tile + y * Sizes::pitch;
    Number x[length];
    BRACEWELL_UNROLL
    for (int s = 0; s < length; ++s)
      x[s] = get(row[s]);
    RegisterFFT<length, inverse>::run(x);
    BRACEWELL_UNROLL
    for (int s = 0; s < length; ++s)
      put(row[s], x[s]);
  }

  /// Lanes of a warp side by side: each holds its part of a column, the sums over them go between registers.
  KOKKOS_FORCEINLINE_FUNCTION void transform_column_by_lanes(const Context& at, int q, int task,
                                                             double& sum) const {
    const bool inside = task < Sizes::tasks;
    const int column = inside ? task / lanes : 0, lane = task % lanes, rows = Sizes::rows(scan.probe);
    Number x[length];
    T partial = 0;
    transform_part(at, q, column, lane, x, partial);
    if (inside)
      sum += double(partial);
    if (!gradients)
      return;
    BRACEWELL_UNROLL
    for (int j = 0; j < lanes; ++j) {
      const Number factor = at.fold(j, lane);
      BRACEWELL_UNROLL
      for (int first = 0; first < length; first += block)
        if (first + length * j < rows) {
          Number part[block];
          BRACEWELL_UNROLL
          for (int s = 0; s < block; ++s)
            part[s] = j == 0 ? x[first + s] : turn<true>(x[first + s], factor);
          int row = first + length * j;
          scatter_sum<block, lanes / 2>(part, lane, row);
          if (inside) {
            BRACEWELL_UNROLL
            for (int s = 0; s < block / lanes; ++s)
              put(at.tile[(row + s) * Sizes::pitch + column], part[s]);
          }
        }
    }
  }

  /// The same by one thread, lane after lane.
  KOKKOS_FORCEINLINE_FUNCTION void transform_column(const Context& at, int q, int column, double& sum) const {
    const int m = scan.probe;
    Number total[n] = {};
    for (int lane = 0; lane < lanes; ++lane) {
      Number x[length];
      T partial = 0;
      transform_part(at, q, column, lane, x, partial);
      sum += double(partial);
      for (int y = 0; gradients && y < m; ++y)
        total[y] = total[y] + turn<true>(x[y % length], at.fold(y / length, lane));
    }
    for (int y = 0; gradients && y < m; ++y)
      put(at.tile[y * Sizes::pitch + column], total[y]);
  }

  /// Forward, comparison and adjoint of the part of a column that one lane holds.
  KOKKOS_FORCEINLINE_FUNCTION void transform_part(const Context& at, int q, int column, int lane,
                                                  Number (&x)[length], T& sum) const {
    const int rows = Sizes::rows(scan.probe), task = column * lanes + lane;
    const Tile* const tile = at.tile + column;
    BRACEWELL_UNROLL
    for (int s = 0; s < length; ++s)
      x[s] = {0, 0};
    BRACEWELL_UNROLL
    for (int j = 0; j < lanes; ++j) {
      const Number factor = at.fold(j, lane);
      BRACEWELL_UNROLL
      for (int first = 0; first < length; first += block)
        if (first + length * j < rows) {
          BRACEWELL_UNROLL
          for (int s = first; s < first + block; ++s) {
            const Number value = get(tile[(s + length * j) * Sizes::pitch]);
            x[s] = j == 0 ? value : x[s] + turn<false>(value, factor);
          }
        }
    }
    BRACEWELL_UNROLL
    for (int s = 1; s < length; ++s)
      x[s] = turn<false>(x[s], at.root(s, lane));
    RegisterFFT<length, false>::run(x);
    const Storage* const measured =
        at.targets + (std::int64_t(q) * length * Sizes::tasks + task * Sizes::vector);
    switch (loss) {
    case PatternLoss::LeastSquares:
      compare<PatternLoss::LeastSquares>(at, measured, x, sum);
      break;
    case PatternLoss::Amplitude:
      compare<PatternLoss::Amplitude>(at, measured, x, sum);
      break;
    case PatternLoss::Poisson:
      compare<PatternLoss::Poisson>(at, measured, x, sum);
      break;
    }
    if (!gradients)
      return;
    RegisterFFT<length, true>::run(x);
    BRACEWELL_UNROLL
    for (int s = 1; s < length; ++s)
      x[s] = turn<true>(x[s], at.root(s, lane));
  }

  template <PatternLoss kind>
  KOKKOS_FORCEINLINE_FUNCTION void compare(const Context& at, const Storage* measured, Number (&x)[length],
                                           T& sum) const {
    constexpr int vector = Sizes::vector;
    const PatternTerm<kind, T, Storage> term{background};
    BRACEWELL_UNROLL
    for (int k = 0; k < length; k += vector) {
      const auto stored =
          *reinterpret_cast<const StoredVector<Storage, vector>*>(measured + std::int64_t(k) * Sizes::tasks);
      BRACEWELL_UNROLL
      for (int v = 0; v < vector; ++v) {
        const T t = static_cast<T>(stored.value[v]);
        Number& psi = x[k + v];
        T value, slope;
        term(at.scale * (psi.re * psi.re + psi.im * psi.im), t, value, slope);
        const bool counts = !targets.masked || t >= 0;
        sum += counts ? value : T(0);
        const T factor = counts ? slope * at.unit : T(0);
        psi = {psi.re * factor, psi.im * factor};
      }
    }
  }

  /// Each lane ends with the sums of its own `count / lanes` of `count` numbers, which begin at `row`.
  template <int count, int mask>
  KOKKOS_FORCEINLINE_FUNCTION static void scatter_sum(Number (&x)[block], int lane, int& row) {
    if constexpr (mask > 0) {
      const bool upper = (lane & mask) != 0;
      BRACEWELL_UNROLL
      for (int i = 0; i < count / 2; ++i) {
        const Number keep = upper ? x[i + count / 2] : x[i], send = upper ? x[i] : x[i + count / 2];
        x[i] = {keep.re + from_lane_xor(send.re, mask), keep.im + from_lane_xor(send.im, mask)};
      }
      row += upper ? count / 2 : 0;
      scatter_sum<count / 2, mask / 2>(x, lane, row);
    }
  }

  /// Adds element (y, s) of round q to B, and at the end to Re<psi, B>.
  KOKKOS_FORCEINLINE_FUNCTION void accumulate(const Context& at, int q, int y, int s, double& moment) const {
    const int m = scan.probe;
    Number value = turn<true>(get(at.tile[y * Sizes::pitch + s]), at.root(s, q));
    const T inverse = T(1) / n;
    value = {value.re * inverse, value.im * inverse};
    for (int j = 0; s + length * j < m; ++j) {
      const int x = s + length * j;
      Number term = turn<true>(value, at.fold(j, q));
      Tile& sum = waves[(at.i * m + y) * m + x];
      if (q > 0)
        term = term + get(sum);
      put(sum, term);
      if (q == lanes - 1) {
        const Number psi = exit_wave(at, y, x);
        moment += double(psi.re * term.re + psi.im * term.im);
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void finish(const Team& team, const Context& at, bool scaled, T to_model,
                                     double energy, double sum, double moment) const {
    const int threads = team.team_size();
    double total = 0, product = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, threads),
        [&](int, double& partial, double& partial_product) {
          partial += sum;
          partial_product += moment;
        },
        total, product);
    if (team.team_rank() == 0) {
      losses[at.i] = targets.loss(selection(at.i), total, norm, double(n) * n);
      const T f = 2 * norm * to_model * T(n) / (at.unit * at.enlargement);
      factors[2 * at.i] = f;
      factors[2 * at.i + 1] = scaled ? f * static_cast<T>(product / energy) : T(0);
    }
  }
};

} // namespace Bracewell::Impl
