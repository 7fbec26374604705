// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/ptychography/detail/fused_sizes.hpp>
#include <bracewell/ptychography/detail/fused_transforms.hpp>
#include <bracewell/ptychography/detail/sums/exit_waves.hpp>

namespace Bracewell::Impl {

/// Targets of the frequencies k + per_lane g of a column, as a lane reads them.
template <class Storage, class Sizes>
struct FusedTargets {
  struct alignas(sizeof(Storage) * PatternLayout::group) Four {
    Storage value[PatternLayout::group];
  };
  Four fours[Sizes::lanes / PatternLayout::group];

  KOKKOS_FORCEINLINE_FUNCTION static FusedTargets read(const Storage* targets, int column, int k) {
    const Storage* const first = targets + (std::int64_t(column) * Sizes::n + k * PatternLayout::group);
    FusedTargets result;
    BRACEWELL_UNROLL_FOR (int g = 0; g < Sizes::lanes / PatternLayout::group; ++g)
      result.fours[g] = *reinterpret_cast<const Four*>(first + g * PatternLayout::group * Sizes::per_lane);
    return result;
  }

  KOKKOS_FORCEINLINE_FUNCTION Storage operator[](int g) const {
    return fours[g / PatternLayout::group].value[g % PatternLayout::group];
  }
};

/// Compares what a lane has of |Psi|^2 with the targets, and multiplies Psi by the derivative of the loss.
template <class T, class Storage, class Sizes>
struct FusedComparison {
  using Number = PlainComplex<T>;

  // References: copies would be made before the transform, and take registers that it needs.
  const PatternLoss& loss;
  const bool& masked;
  const T& background;
  const T& scale;       ///< of the intensity, to J
  const T& target_unit; ///< of counts in half precision
  const T& unit;        ///< of the derivative, so that half precision holds it

  /// Adds to sums.first the loss, and to sums.second the moment l'(J) I.
  template <class Sum>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(const FusedTargets<Storage, Sizes>& measured,
                                              Number (&psi)[Sizes::lanes], TeamSums<Sum>& sums) const {
    visit_loss_in_kernel(loss, [&](auto kind) {
      if (masked)
        compare<decltype(kind)::value, true>(measured, psi, sums);
      else
        compare<decltype(kind)::value, false>(measured, psi, sums);
    });
  }

private:
  template <PatternLoss kind, bool some_masked, class Sum>
  KOKKOS_FORCEINLINE_FUNCTION void compare(const FusedTargets<Storage, Sizes>& measured,
                                           Number (&psi)[Sizes::lanes], TeamSums<Sum>& sums) const {
    const PatternTerm<kind, T, Storage> term{background, target_unit};
    T sum = 0, moment = 0;
    BRACEWELL_UNROLL_FOR (int g = 0; g < Sizes::lanes; ++g) {
      const T t = static_cast<T>(measured[g]);
      Number& wave = psi[g];
      const T intensity = wave.re * wave.re + wave.im * wave.im;
      T value, slope;
      term(scale * intensity, t, value, slope);
      if constexpr (some_masked) {
        value = t >= 0 ? value : T(0);
        slope = t >= 0 ? slope : T(0);
      }
      sum += value;
      moment += slope * intensity;
      const T factor = slope * unit;
      wave = {wave.re * factor, wave.im * factor};
    }
    sums.first += sum;
    sums.second += moment;
  }
};

/// Patterns from the exit wave to its gradient, a team at a time, in three steps with the window of m rows
/// (its transforms along the rows) between them. The window lies in the memory of the chip (on_chip) or in a
/// workspace that stays in the cache: teams go through the patterns and keep theirs. Nothing of the
/// detector's size is written.
///   rows:     exit wave, transform
///   columns:  transform, comparison, adjoint of the transform
///   rows:     adjoint of the transform
/// Leaves the gradient G = f (B - c psi) with B = IDFT(l'(J) Psi) on the window; in half precision B - c psi,
/// in units that suit it, and f (WaveGradients).
///   m = sum |psi|^2 (Parseval: the mean of I), J = I C / m, c = Re<psi, B> / (n^2 m) = sum l' I / (n^2 m).
template <class Space, class T, class Storage, class Sizes, bool on_chip = false>
struct FusedKernel {
  static constexpr bool host = is_host<Space>;
  static constexpr int lanes = Sizes::lanes, per_lane = Sizes::per_lane, n = Sizes::n,
                       leading = Sizes::leading;
  static constexpr int outer_sums = Sizes::outer_sums;
  static constexpr int chip_teams = Sizes::template chip_teams<T>(),
                       chip_team_size = Sizes::template chip_team_size<T>();
  static constexpr int team_size = host ? 1 : on_chip ? chip_team_size : Sizes::template team_size<T>();
  static constexpr int groups = host ? 1 : team_size / lanes; ///< that do a transform each
  static constexpr int warps = host ? 1 : team_size / Sizes::warp;
  static constexpr int scratch_level = host ? 1 : 0;
  using Policy =
      Kokkos::TeamPolicy<Space,
                         Kokkos::LaunchBounds<Sizes::template team_size<T>(),
                                              resident_teams<Space>(PtychographyTuning::workspace_teams)>>;
  using Number = PlainComplex<T>;
  using Stored = complex_of<Storage>;
  using Line = FusedLine<host, T, Sizes>;
  using Measured = FusedTargets<Storage, Sizes>;
  using Scratch = Kokkos::View<Number*, typename Space::scratch_memory_space, Kokkos::MemoryUnmanaged>;

  Scan scan;
  Selection selection;
  const Kokkos::complex<T>*object, *probe;
  Targets<T, Storage> targets;
  PatternLoss loss;
  T background, norm;
  const Number* table; ///< see FusedSizes
  double* losses;
  Number* workspace; ///< [teams, window], where windows are not on the chip
  Stored* waves;     ///< [patterns, m, m]
  T* factors;        ///< [patterns], for half precision
  bool gradients;

  static std::size_t scratch_bytes() { return Scratch::shmem_size(warps * Sizes::exchange); }
  static std::size_t chip_bytes(int m) { return Sizes::template chip_bytes<T>(m, team_size); }
  /// Numbers that a team keeps between the steps.
  KOKKOS_INLINE_FUNCTION static std::int64_t window(int m) { return std::int64_t(m + m % 2) * n; }

  /// Sums of a lane over its part of a pattern, of l(J) and l'(J) I. On the chip these are few.
  using Sums = TeamSums<std::conditional_t<on_chip, T, double>>;

  /// A pattern and what a team has for it.
  struct Context : Line {
    using Line::Line;
    std::int64_t i, corner;
    Number* window;
    T scale;       ///< of the intensity, to J
    T target_unit; ///< of counts in half precision
    T unit;        ///< of the derivative, so that half precision holds B
    T b, psi;      ///< G = b B - psi psi
    const Storage* targets;
  };

  /// In a workspace pairs of columns side by side, and in each pair the rows: both directions of access are
  /// contiguous. On the chip row by row with an odd pitch: they run over different banks.
  KOKKOS_FORCEINLINE_FUNCTION Number& element(const Context& at, int row, int column) const {
    if constexpr (on_chip)
      return at.window[row * (n + 1) + column];
    else
      return at.window[(column / 2 * (scan.probe + scan.probe % 2) + row) * 2 + column % 2];
  }

  /// What a lane has of a row of the exit wave: pixels lane + lanes j, zero outside the window.
  struct Row {
    const Kokkos::complex<T>*object, *probe;
    int pixels; ///< from the lane on

    KOKKOS_FORCEINLINE_FUNCTION bool has(int j) const { return lanes * j < pixels; }
    KOKKOS_FORCEINLINE_FUNCTION Number operator()(int j) const {
      if (!has(j))
        return {0, 0};
      const Kokkos::complex<T> o = object[lanes * j], p = probe[lanes * j];
      return times<false>(Number{o.real(), o.imag()}, Number{p.real(), p.imag()});
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Row exit_wave(const Context& at, int y, int lane) const {
    return {object + (at.corner + y * scan.columns + lane), probe + (y * scan.probe + lane),
            y < scan.probe ? scan.probe - lane : 0};
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const Scratch scratch(member.team_scratch(+scratch_level), warps * Sizes::exchange);
    run(PolicyTeam<Member>{member}, scratch.data(), workspace + member.league_rank() * window(scan.probe),
        table);
  }

#if defined(KOKKOS_ENABLE_CUDA)
  /// As a team of launch_on_chip.
  KOKKOS_FUNCTION void run(ChipTeam team, void* memory) const {
    Number* const exchange = static_cast<Number*>(memory);
    Number* const partials = exchange + warps * Sizes::exchange;
    Number* const own_table = partials + 2 * warps;
    team.partials = partials;
    if constexpr (Line::own_factors) {
      run(team, exchange, own_table, table);
    } else {
      for (int f = team.rank(); f < Sizes::table; f += team_size)
        own_table[f] = table[f];
      team.barrier();
      run(team, exchange, own_table + Sizes::table, own_table);
    }
  }
#endif

  /// All patterns of a team.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Team& team, Number* exchange, Number* window,
                                       const Number* factor_table) const {
    Context at(team.rank(), exchange, factor_table, table);
    at.window = window;
    for (at.i = team.number(); at.i < selection.count; at.i += team.count())
      pattern(team, at);
  }

  /// On the chip the rows or columns of neighbouring groups run over different banks.
  template <class Step>
  KOKKOS_FORCEINLINE_FUNCTION static void for_lines(const Context& at, int count, const Step& step) {
    constexpr int side = on_chip && lanes < 16 ? 16 / lanes : 1;
    at.template for_lines<groups, side>(count, step);
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void pattern(const Team& team, Context& at) const {
    const int m = scan.probe;
    const std::int64_t j = selection(at.i);
    at.corner = scan.corner(j);
    at.targets = targets.values + targets.row(at.i, j) * n * n;
    at.target_unit = targets.units[j];
    Sums own{0, 0};
    for_lines(at, m, [&](int y) { own.first += transform_row(at, y); });
    const T energy = static_cast<T>(team.sum(own).first);
    const T mean = targets.means[j];
    if (!(mean > 0)) { // the whole team goes on
      skip(at, team.rank());
      return;
    }
    const bool scaled = targets.scaled;
    const T to_model = scaled ? scale_of(mean, energy) : T(1);
    at.unit = 1 / (T(n) * (loss == PatternLoss::LeastSquares ? mean : T(1)));
    if (sizeof(Storage) < sizeof(T) && energy > 0) // as if the energy of psi were about 1
      at.unit *= Kokkos::exp2(-Kokkos::floor(T(0.5) * Kokkos::log2(energy) + T(0.5)));
    at.scale = to_model;
    own = {0, 0};
    for_lines(at, n, [&](int column) { transform_column(at, column, own); });
    const Sums total = team.sum(own);
    const T f = T(2 * slope_unit(loss)) * norm * to_model * T(n) / at.unit;
    if (team.rank() == 0) {
      losses[at.i] = targets.loss(j, double(total.first), norm, double(n) * n);
      factors[at.i] = f;
    }
    const T f_here = sizeof(Storage) < sizeof(T) ? T(1) : f;
    const T product = static_cast<T>(total.second) * at.unit / T(n); // Re<psi, B>
    at.b = f_here / T(n);
    at.psi = scaled && energy > 0 ? f_here * product / energy : T(0);
    if (gradients)
      for_lines(at, m, [&](int y) { adjoint_row(at, y); });
  }

  KOKKOS_INLINE_FUNCTION void skip(const Context& at, int rank) const {
    const int pixels = scan.probe * scan.probe;
    if (gradients)
      for (int pixel = rank; pixel < pixels; pixel += team_size)
        waves[at.i * pixels + pixel] = Stored(Kokkos::complex<T>(0));
    if (rank == 0) {
      losses[at.i] = 0;
      factors[at.i] = 0;
    }
  }

  /// Energy of what a lane has of the row of the exit wave.
  KOKKOS_FORCEINLINE_FUNCTION T transform_row(const Context& at, int y) const {
    const int m = scan.probe;
    T energy = 0;
    at.for_lanes([&](int lane) {
      Number x[per_lane];
      const Row psi = exit_wave(at, y, lane);
      BRACEWELL_UNROLL_FOR (int j = 0; j < leading; ++j) {
        x[j] = psi(j);
        energy += x[j].re * x[j].re + x[j].im * x[j].im;
      }
      at.inner_forward(lane, x);
    });
    at.for_lanes([&](int lane) {
      BRACEWELL_UNROLL_FOR (int c = 0; c < outer_sums; ++c) {
        const int k = lane + lanes * c;
        if (k < per_lane && y < m) {
          Number values[lanes];
          at.outer_forward(k, values);
          BRACEWELL_UNROLL_FOR (int g = 0; g < lanes; ++g)
            element(at, y, k + per_lane * g) = values[g];
        }
      }
    });
    return energy;
  }

  KOKKOS_FORCEINLINE_FUNCTION void transform_column(const Context& at, int column, Sums& sums) const {
    const int m = scan.probe;
    const bool inside = column < n;
    const FusedComparison<T, Storage, Sizes> compare{loss,     targets.masked, background,
                                                     at.scale, at.target_unit, at.unit};
    // The targets of the column come from far away: they are on their way while it is transformed.
    constexpr bool ahead = !host && outer_sums * lanes <= PtychographyTuning::targets_ahead;
    Measured early[ahead ? outer_sums : 1];
    if constexpr (ahead) {
      BRACEWELL_UNROLL_FOR (int c = 0; c < outer_sums; ++c)
        if (inside && at.lane + lanes * c < per_lane)
          early[c] = Measured::read(at.targets, column, at.lane + lanes * c);
    }
    at.for_lanes([&](int lane) {
      Number x[per_lane];
      BRACEWELL_UNROLL_FOR (int j = 0; j < leading; ++j) {
        const int row = lane + lanes * j;
        x[j] = inside && row < m ? element(at, row, column) : Number{0, 0};
      }
      at.inner_forward(lane, x);
    });
    at.for_lanes([&](int lane) {
      BRACEWELL_UNROLL_FOR (int c = 0; c < outer_sums; ++c) {
        const int k = lane + lanes * c;
        if (k < per_lane && inside) {
          Number values[lanes];
          at.outer_forward(k, values);
          compare(ahead ? early[ahead ? c : 0] : Measured::read(at.targets, column, k), values, sums);
          at.outer_adjoint(k, values);
        }
      }
    });
    if (!gradients)
      return;
    at.for_lanes([&](int lane) {
      Number x[per_lane];
      at.inner_adjoint(lane, x);
      BRACEWELL_UNROLL_FOR (int j = 0; j < leading; ++j) {
        const int row = lane + lanes * j;
        if (inside && row < m)
          element(at, row, column) = x[j];
      }
    });
  }

  KOKKOS_FORCEINLINE_FUNCTION void adjoint_row(const Context& at, int y) const {
    const int m = scan.probe;
    const Row psi = exit_wave(at, y, at.lane);
    Number early[host ? 1 : leading] = {}; // exit waves that are on their way during the transform
    if (!host && at.psi != 0) {
      BRACEWELL_UNROLL_FOR (int j = 0; j < leading; ++j)
        early[host ? 0 : j] = psi(j);
    }
    at.for_lanes([&](int lane) {
      BRACEWELL_UNROLL_FOR (int c = 0; c < outer_sums; ++c) {
        const int k = lane + lanes * c;
        if (k < per_lane && y < m) {
          Number values[lanes];
          BRACEWELL_UNROLL_FOR (int g = 0; g < lanes; ++g)
            values[g] = element(at, y, k + per_lane * g);
          at.outer_adjoint(k, values);
        }
      }
    });
    at.for_lanes([&](int lane) {
      Number x[per_lane];
      at.inner_adjoint(lane, x);
      const Row own = exit_wave(at, y, lane);
      Stored* const to = waves + ((at.i * m + y) * m + lane);
      BRACEWELL_UNROLL_FOR (int j = 0; j < leading; ++j)
        if (own.has(j)) {
          const Number wave = host ? own(j) : early[host ? 0 : j];
          to[lanes * j] = Stored(
              Kokkos::complex<T>(at.b * x[j].re - at.psi * wave.re, at.b * x[j].im - at.psi * wave.im));
        }
    });
  }
};

} // namespace Bracewell::Impl
