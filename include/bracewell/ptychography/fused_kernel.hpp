// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/ptychography/compare.hpp>
#include <bracewell/ptychography/fused_tile.hpp>

namespace Bracewell::Impl {

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
  using Parts = FusedTile<T, Storage, Sizes>;
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
    T enlargement; ///< of psi: a power of two that makes its energy about 1
    const Storage* targets;

    KOKKOS_FORCEINLINE_FUNCTION Number root(int s, int q) const { return Parts::root(roots, s, q); }
    KOKKOS_FORCEINLINE_FUNCTION Number fold(int j, int q) const { return Parts::fold(roots, j, q); }
  };

  KOKKOS_FORCEINLINE_FUNCTION Number exit_wave(const Context& at, int y, int x) const {
    const Kokkos::complex<T> o = object[at.corner + y * scan.columns + x], p = probe[y * scan.probe + x];
    return turn<false>(Number{o.real(), o.imag()}, Number{p.real(), p.imag()});
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
    const ColumnTerms<T> terms{to_model / (at.enlargement * at.enlargement),
                               1 / (T(n) * (loss == PatternLoss::LeastSquares ? mean : T(1))),
                               background,
                               loss,
                               targets.masked,
                               gradients,
                               Sizes::rows(m)};
    double sum = 0, moment = 0;
    for (int q = 0; q < lanes; ++q) {
      for (int element = rank; element < Sizes::rows(m) * length; element += threads)
        stage(at, q, element / length, element % length);
      team.team_barrier();
      for (int y = rank; y < m; y += threads)
        Parts::template transform_row<false, !host>(at.tile + y * Sizes::pitch);
      team.team_barrier();
      transform_columns(at, terms, q, rank, threads, sum);
      team.team_barrier();
      if (!gradients)
        continue;
      for (int y = rank; y < m; y += threads)
        Parts::template transform_row<true, !host>(at.tile + y * Sizes::pitch);
      team.team_barrier();
      for (int element = rank; element < m * length; element += threads)
        accumulate(at, q, element / length, element % length, moment);
      team.team_barrier();
    }
    finish(team, at, scaled, to_model, terms.unit, energy, sum, moment);
  }

  KOKKOS_INLINE_FUNCTION void skip(const Context& at, int rank, int threads) const {
    const int pixels = scan.probe * scan.probe;
    if (gradients)
      for (int pixel = rank; pixel < pixels; pixel += threads)
        Parts::put(waves[at.i * pixels + pixel], Number{0, 0});
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
    Parts::put(at.tile[y * Sizes::pitch + s], value);
  }

  /// All columns of round q.
  KOKKOS_FORCEINLINE_FUNCTION void transform_columns(const Context& at, const ColumnTerms<T>& terms, int q,
                                                     int rank, int threads, double& sum) const {
    const Storage* const measured = at.targets + std::int64_t(q) * length * Sizes::tasks;
    if constexpr (host)
      for (int column = 0; column < length; ++column)
        sum += double(Parts::transform_column(at.tile, at.roots, measured + column * lanes * Sizes::vector,
                                              column, terms));
    else // whole warps take part: the sum over the lanes needs them
      for (int task = rank; task < (Sizes::tasks + team_size - 1) / team_size * team_size; task += threads)
        sum += double(Parts::transform_column_by_lanes(
            at.tile, at.roots, measured + (task < Sizes::tasks ? task : 0) * Sizes::vector, task, terms.scale,
            terms.unit, terms.background, terms.loss, terms.masked, terms.gradients, terms.rows));
  }

  /// Adds element (y, s) of round q to B, and at the end to Re<psi, B>.
  KOKKOS_FORCEINLINE_FUNCTION void accumulate(const Context& at, int q, int y, int s, double& moment) const {
    const int m = scan.probe;
    Number value = turn<true>(Parts::get(at.tile[y * Sizes::pitch + s]), at.root(s, q));
    const T inverse = T(1) / n;
    value = {value.re * inverse, value.im * inverse};
    for (int j = 0; s + length * j < m; ++j) {
      const int x = s + length * j;
      Number term = turn<true>(value, at.fold(j, q));
      Tile& sum = waves[(at.i * m + y) * m + x];
      if (q > 0)
        term = term + Parts::get(sum);
      Parts::put(sum, term);
      if (q == lanes - 1) {
        const Number psi = exit_wave(at, y, x);
        moment += double(psi.re * term.re + psi.im * term.im);
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void finish(const Team& team, const Context& at, bool scaled, T to_model, T unit,
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
      const T f = 2 * norm * to_model * T(n) / (unit * at.enlargement);
      factors[2 * at.i] = f;
      factors[2 * at.i + 1] = scaled ? f * static_cast<T>(product / energy) : T(0);
    }
  }
};

} // namespace Bracewell::Impl
