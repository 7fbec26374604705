// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/impl/register_fft.hpp>
#include <bracewell/ptychography/compare.hpp>
#include <bracewell/ptychography/detail/store_patterns.hpp>

namespace Bracewell::Impl {

/// Sizes of the fused kernel. A transform of n = lanes x numbers is done by `lanes` neighbouring lanes that
/// hold `numbers` (or more) numbers each in registers, with one exchange through scratch memory:
///   X(k + numbers g) = sum_t exp(-2 pi i (g + k / numbers) t / lanes)
///                      sum_j exp(-2 pi i k j / numbers) x(t + lanes j).
/// Lane t does the inner sum; lane u the outer one for k = u, u + lanes, ...; of the inputs, those with
/// j < leading are not zero. The adjoint goes the other way, and there the inner sums are at shifted
/// frequencies:
///   x(t + lanes j) = sum_k exp(2 pi i (j + t / lanes) k / numbers) sum_g exp(2 pi i g t / lanes) X(k +
///   numbers g).
template <int lanes_, int numbers_, int leading_>
struct FusedSizes {
  static constexpr int lanes = lanes_, numbers = numbers_, n = lanes * numbers, leading = leading_;
  static constexpr int turns = (numbers + lanes - 1) / lanes; ///< outer sums of a lane
  static constexpr int warp = 32, groups = warp / lanes;      ///< groups of lanes that exchange side by side
  static constexpr int pitch = warp + 1; ///< of the exchange: odd, so that it runs over different banks
  static constexpr int exchange = numbers * pitch;
  static_assert(lanes % PatternLayout::group == 0 && warp % lanes == 0);

  /// Lanes of a team of a Kokkos policy on GPUs: as many as their exchange fits into scratch memory.
  template <class T>
  static constexpr int team_size() {
    const int warps = 44000 / (exchange * 2 * int(sizeof(T)));
    return warp * (warps > 10 ? 10 : warps < 1 ? 1 : warps);
  }

  /// Factors of the outer transforms for every k, then of the inner ones of the adjoint for every lane. A
  /// lane with one outer sum keeps its own in registers.
  static constexpr int outer_factors = RegisterFFT<lanes, false>::factors,
                       inner_factors = RegisterFFT<numbers, true>::factors;
  static constexpr int table = numbers * outer_factors + lanes * inner_factors;

  /// Bytes on the chip of a team that keeps a window of m rows there.
  template <class T>
  static constexpr std::size_t chip_bytes(int m, int size) {
    return (std::size_t(m) * (n + 1) + std::size_t(size / warp) * (exchange + 2) + (turns > 1 ? table : 0)) *
           2 * sizeof(T);
  }
  /// Of 16 warps on a multiprocessor (228 KB, of which a team costs 1 more): two teams where two of the
  /// largest windows fit, none where not even one does.
  template <class T>
  static constexpr int chip_teams() {
    constexpr int m = leading < numbers ? lanes * leading : n;
    return 2 * (chip_bytes<T>(m, 256) + 1024) <= 228 * 1024 ? 2
           : chip_bytes<T>(m, 512) + 1024 <= 228 * 1024     ? 1
                                                            : 0;
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
struct FusedPatterns {
  static constexpr bool host = is_host<Space>;
  static constexpr int lanes = Sizes::lanes, numbers = Sizes::numbers, n = Sizes::n, leading = Sizes::leading;
  static constexpr int turns = Sizes::turns;
  static constexpr int chip_teams = Sizes::template chip_teams<T>(),
                       chip_team_size = chip_teams == 2 ? 256 : 512;
  static constexpr int team_size = host ? 1 : on_chip ? chip_team_size : Sizes::template team_size<T>();
  static constexpr int groups = host ? 1 : team_size / lanes; ///< that do a transform each
  static constexpr int warps = host ? 1 : team_size / Sizes::warp;
  static constexpr int scratch_level = host ? 1 : 0;
  using Policy = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<Sizes::template team_size<T>(), 2>>;
  using Number = Pair<T>;
  using Stored = StoredComplex<Storage>;
  using Scratch = Kokkos::View<Number*, typename Space::scratch_memory_space, Kokkos::MemoryUnmanaged>;

  static constexpr bool own_factors = !host && turns == 1, same_factors = lanes == numbers;

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

  /// Sums of a lane over its part of a pattern, of l(J) and l'(J) I. On the chip these are few numbers.
  using Sums = TeamSums<std::conditional_t<on_chip, T, double>>;

  /// A pattern and what a team has for it.
  struct Context {
    std::int64_t i, corner;
    Number* window;
    Number* exchange; ///< of the group of lanes
    const Number* table;
    int lane, group;
    T scale;       ///< of the intensity, to J
    T target_unit; ///< of counts in half precision
    T unit;        ///< of the derivative, so that half precision holds B
    T b, psi;      ///< G = b B - psi psi
    const Storage* targets;
    Number outer[own_factors ? Sizes::outer_factors : 1];
    Number inner[own_factors && !same_factors ? Sizes::inner_factors : 1];
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
      return turn<false>(Number{o.real(), o.imag()}, Number{p.real(), p.imag()});
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Row exit_wave(const Context& at, int y, int lane) const {
    return {object + (at.corner + y * scan.columns + lane), probe + (y * scan.probe + lane),
            y < scan.probe ? scan.probe - lane : 0};
  }

  /// step(lane): on GPUs side by side, on hosts one after the other. What it leaves in the exchange can be
  /// read by the next step.
  template <class Step>
  KOKKOS_FORCEINLINE_FUNCTION static void for_lanes(const Context& at, const Step& step) {
    if constexpr (host) {
      for (int lane = 0; lane < lanes; ++lane)
        step(lane);
    } else {
      step(at.lane);
      synchronise_lanes();
    }
  }

  /// Inner sums of a lane, into the exchange.
  KOKKOS_FORCEINLINE_FUNCTION static void inner_forward(const Context& at, int lane, Number (&x)[numbers]) {
    RegisterFFT<numbers, false>::template run_leading<leading>(x);
    BRACEWELL_UNROLL
    for (int k = 0; k < numbers; ++k)
      at.exchange[k * Sizes::pitch + lane] = x[k];
  }
  /// Outer sums of a lane for one k.
  KOKKOS_FORCEINLINE_FUNCTION void outer_forward(const Context& at, int k, Number (&y)[lanes]) const {
    BRACEWELL_UNROLL
    for (int t = 0; t < lanes; ++t)
      y[t] = at.exchange[k * Sizes::pitch + t];
    RegisterFFT<lanes, false>::run_shifted(y, own_factors ? at.outer : at.table + k * Sizes::outer_factors);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void outer_adjoint(const Context& at, int k, Number (&y)[lanes]) {
    RegisterFFT<lanes, true>::run(y);
    BRACEWELL_UNROLL
    for (int t = 0; t < lanes; ++t)
      at.exchange[k * Sizes::pitch + t] = y[t];
  }
  KOKKOS_FORCEINLINE_FUNCTION void inner_adjoint(const Context& at, int lane, Number (&x)[numbers]) const {
    BRACEWELL_UNROLL
    for (int k = 0; k < numbers; ++k)
      x[k] = at.exchange[k * Sizes::pitch + lane];
    const Number* const inner = at.table + numbers * Sizes::outer_factors + lane * Sizes::inner_factors;
    RegisterFFT<numbers, true>::run_shifted(x, !own_factors ? inner : same_factors ? at.outer : at.inner);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const Scratch scratch(member.team_scratch(+scratch_level), warps * Sizes::exchange);
    run(PolicyTeam<Member>{member}, scratch.data(), workspace + member.league_rank() * window(scan.probe),
        table);
  }

#if defined(KOKKOS_ENABLE_CUDA)
  /// As a team of launch_on_chip.
  KOKKOS_FUNCTION void operator()(double2* memory) const {
    Number* const exchange = reinterpret_cast<Number*>(memory);
    Number* const partials = exchange + warps * Sizes::exchange;
    Number* const own_table = partials + 2 * warps;
    const ChipTeam<T> team{reinterpret_cast<TeamSums<T>*>(partials)};
    if constexpr (own_factors) {
      run(team, exchange, own_table, table);
    } else { // the first sum of a pattern waits for it
      for (int f = team.rank(); f < Sizes::table; f += team_size)
        own_table[f] = table[f];
      run(team, exchange, own_table + Sizes::table, own_table);
    }
  }
#endif

  /// All patterns of a team.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Team& team, Number* exchange, Number* window,
                                       const Number* factor_table) const {
    const int rank = team.rank();
    Context at;
    at.lane = rank % lanes;
    at.group = host ? 0 : rank / lanes;
    at.exchange = exchange + rank / Sizes::warp * Sizes::exchange + (rank % Sizes::warp - at.lane);
    at.window = window;
    at.table = factor_table;
    if constexpr (own_factors) {
      BRACEWELL_UNROLL
      for (int f = 0; f < Sizes::outer_factors; ++f)
        at.outer[f] = table[(at.lane < numbers ? at.lane : 0) * Sizes::outer_factors + f];
      if constexpr (!same_factors) {
        BRACEWELL_UNROLL
        for (int f = 0; f < Sizes::inner_factors; ++f)
          at.inner[f] = table[numbers * Sizes::outer_factors + at.lane * Sizes::inner_factors + f];
      }
    }
    for (at.i = team.number(); at.i < selection.count; at.i += team.count())
      pattern(team, at);
  }

  /// step(line) for the rows or columns of a group. Groups of a warp do the same number of them, some maybe
  /// from `count` on: they meet at every exchange. On the chip the groups among 16 neighbouring lanes have
  /// lines that are `lanes` apart, so that the 16 lanes run over different banks.
  template <class Step>
  KOKKOS_FORCEINLINE_FUNCTION static void for_lines(const Context& at, int count, const Step& step) {
    constexpr int side = on_chip && lanes < 16 ? 16 / lanes : 1;
    for (int group = at.group; line<side>(host ? group : group - group % Sizes::groups) < count;
         group += groups)
      step(line<side>(group));
  }
  template <int side>
  KOKKOS_FORCEINLINE_FUNCTION static int line(int group) {
    const int first = group / side;
    return first / lanes * (side * lanes) + first % lanes + group % side * lanes;
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void pattern(const Team& team, Context& at) const {
    const int m = scan.probe;
    const std::int64_t j = selection(at.i);
    at.corner = scan.corner(j);
    at.targets = targets.values + j * n * n;
    at.target_unit = targets.units[j];
    Sums own{0, 0};
    for_lines(at, m, [&](int y) { for_lanes(at, [&](int lane) { own.first += form_row(at, y, lane); }); });
    const T energy = static_cast<T>(team.sum(own).first);
    const T mean = targets.means[j];
    if (!(mean > 0 && energy > 0)) { // the whole team goes on
      skip(at, team.rank());
      return;
    }
    const bool scaled = targets.counts > 0;
    const T to_model = scaled ? targets.counts / energy : T(1);
    at.unit = 1 / (T(n) * (loss == PatternLoss::LeastSquares ? mean : T(1)));
    if constexpr (sizeof(Storage) < sizeof(T)) // as if the energy of psi were about 1
      at.unit *= Kokkos::exp2(-Kokkos::floor(T(0.5) * Kokkos::log2(energy) + T(0.5)));
    at.scale = to_model;
    for_lines(at, m, [&](int y) { transform_row(at, y); });
    team.barrier();
    own = {0, 0};
    for_lines(at, n, [&](int column) { transform_column(at, column, own); });
    const Sums total = team.sum(own);
    const T f = 2 * slope_unit(loss) * norm * to_model * T(n) / at.unit;
    if (team.rank() == 0) {
      losses[at.i] = targets.loss(j, double(total.first), norm, double(n) * n);
      factors[at.i] = f;
    }
    const T f_here = sizeof(Storage) < sizeof(T) ? T(1) : f;
    const T product = static_cast<T>(total.second) * at.unit / T(n); // Re<psi, B>
    at.b = f_here / T(n);
    at.psi = scaled ? f_here * product / energy : T(0);
    if (gradients)
      for_lines(at, m, [&](int y) { adjoint_row(at, y); });
  }

  KOKKOS_INLINE_FUNCTION void skip(const Context& at, int rank) const {
    const int pixels = scan.probe * scan.probe;
    if (gradients)
      for (int pixel = rank; pixel < pixels; pixel += team_size)
        waves[at.i * pixels + pixel].store(Kokkos::complex<T>(0));
    if (rank == 0) {
      losses[at.i] = 0;
      factors[at.i] = 0;
    }
  }

  /// Energy of what a lane has of a row of the exit wave; a window on the chip keeps the row.
  KOKKOS_FORCEINLINE_FUNCTION T form_row(const Context& at, int y, int lane) const {
    const Row psi = exit_wave(at, y, lane);
    T energy = 0;
    BRACEWELL_UNROLL
    for (int j = 0; j < leading; ++j) {
      const Number value = psi(j);
      energy += value.re * value.re + value.im * value.im;
      if constexpr (on_chip)
        if (psi.has(j))
          element(at, y, lane + lanes * j) = value;
    }
    return energy;
  }

  KOKKOS_FORCEINLINE_FUNCTION void transform_row(const Context& at, int y) const {
    const int m = scan.probe;
    for_lanes(at, [&](int lane) {
      Number x[numbers];
      const Row psi = exit_wave(at, y, lane);
      BRACEWELL_UNROLL
      for (int j = 0; j < leading; ++j)
        if constexpr (on_chip)
          x[j] = psi.has(j) ? element(at, y, lane + lanes * j) : Number{0, 0};
        else
          x[j] = psi(j);
      inner_forward(at, lane, x);
    });
    for_lanes(at, [&](int lane) {
      BRACEWELL_UNROLL
      for (int c = 0; c < turns; ++c) {
        const int k = lane + lanes * c;
        if (k < numbers && y < m) {
          Number values[lanes];
          outer_forward(at, k, values);
          BRACEWELL_UNROLL
          for (int g = 0; g < lanes; ++g)
            element(at, y, k + numbers * g) = values[g];
        }
      }
    });
  }

  struct alignas(sizeof(Storage) * PatternLayout::group) Group {
    Storage value[PatternLayout::group];
  };
  /// Targets of the frequencies k + numbers g of a column.
  struct Measured {
    Group groups[lanes / PatternLayout::group];
  };
  KOKKOS_FORCEINLINE_FUNCTION static Measured measured(const Context& at, int column, int k) {
    const Storage* const first = at.targets + (std::int64_t(column) * n + k * PatternLayout::group);
    Measured result;
    BRACEWELL_UNROLL
    for (int g = 0; g < lanes / PatternLayout::group; ++g)
      result.groups[g] = *reinterpret_cast<const Group*>(first + g * PatternLayout::group * numbers);
    return result;
  }

  KOKKOS_FORCEINLINE_FUNCTION void transform_column(const Context& at, int column, Sums& sums) const {
    const int m = scan.probe;
    const bool inside = column < n;
    // The targets of the column come from far away: they are on their way while it is transformed.
    constexpr bool ahead = !host && turns * lanes <= 24;
    Measured early[ahead ? turns : 1];
    if constexpr (ahead) {
      BRACEWELL_UNROLL
      for (int c = 0; c < turns; ++c)
        if (inside && at.lane + lanes * c < numbers)
          early[c] = measured(at, column, at.lane + lanes * c);
    }
    for_lanes(at, [&](int lane) {
      Number x[numbers];
      BRACEWELL_UNROLL
      for (int j = 0; j < leading; ++j) {
        const int row = lane + lanes * j;
        x[j] = inside && row < m ? element(at, row, column) : Number{0, 0};
      }
      inner_forward(at, lane, x);
    });
    for_lanes(at, [&](int lane) {
      BRACEWELL_UNROLL
      for (int c = 0; c < turns; ++c) {
        const int k = lane + lanes * c;
        if (k < numbers && inside) {
          Number values[lanes];
          outer_forward(at, k, values);
          compare(at, ahead ? early[ahead ? c : 0] : measured(at, column, k), values, sums);
          outer_adjoint(at, k, values);
        }
      }
    });
    if (!gradients)
      return;
    for_lanes(at, [&](int lane) {
      Number x[numbers];
      inner_adjoint(at, lane, x);
      BRACEWELL_UNROLL
      for (int j = 0; j < leading; ++j) {
        const int row = lane + lanes * j;
        if (inside && row < m)
          element(at, row, column) = x[j];
      }
    });
  }

  KOKKOS_FORCEINLINE_FUNCTION void adjoint_row(const Context& at, int y) const {
    const int m = scan.probe;
    const Row psi = exit_wave(at, y, at.lane);
    Number early[host ? 1 : leading]; // exit waves that are on their way during the transform
    if constexpr (!host) {
      BRACEWELL_UNROLL
      for (int j = 0; j < leading; ++j)
        early[j] = psi(j);
    }
    for_lanes(at, [&](int lane) {
      BRACEWELL_UNROLL
      for (int c = 0; c < turns; ++c) {
        const int k = lane + lanes * c;
        if (k < numbers && y < m) {
          Number values[lanes];
          BRACEWELL_UNROLL
          for (int g = 0; g < lanes; ++g)
            values[g] = element(at, y, k + numbers * g);
          outer_adjoint(at, k, values);
        }
      }
    });
    for_lanes(at, [&](int lane) {
      Number x[numbers];
      inner_adjoint(at, lane, x);
      const Row own = exit_wave(at, y, lane);
      Stored* const to = waves + ((at.i * m + y) * m + lane);
      BRACEWELL_UNROLL
      for (int j = 0; j < leading; ++j)
        if (own.has(j)) {
          const Number wave = host ? own(j) : early[host ? 0 : j];
          to[lanes * j].store(
              Kokkos::complex<T>(at.b * x[j].re - at.psi * wave.re, at.b * x[j].im - at.psi * wave.im));
        }
    });
  }

  /// Multiplies Psi by the derivative of the loss.
  KOKKOS_FORCEINLINE_FUNCTION void compare(const Context& at, const Measured& measured, Number (&psi)[lanes],
                                           Sums& sums) const {
    switch (loss) {
    case PatternLoss::LeastSquares:
      return compare_by<PatternLoss::LeastSquares>(at, measured, psi, sums);
    case PatternLoss::Amplitude:
      return compare_by<PatternLoss::Amplitude>(at, measured, psi, sums);
    case PatternLoss::Poisson:
      return compare_by<PatternLoss::Poisson>(at, measured, psi, sums);
    }
  }
  template <PatternLoss kind>
  KOKKOS_FORCEINLINE_FUNCTION void compare_by(const Context& at, const Measured& measured,
                                              Number (&psi)[lanes], Sums& sums) const {
    if (targets.masked)
      compare_pixels<kind, true>(at, measured, psi, sums);
    else
      compare_pixels<kind, false>(at, measured, psi, sums);
  }
  template <PatternLoss kind, bool masked>
  KOKKOS_FORCEINLINE_FUNCTION void compare_pixels(const Context& at, const Measured& measured,
                                                  Number (&psi)[lanes], Sums& sums) const {
    const PatternTerm<kind, T, Storage> term{background, at.target_unit};
    T sum = 0, moment = 0;
    BRACEWELL_UNROLL
    for (int g = 0; g < lanes; ++g) {
      const T t = static_cast<T>(measured.groups[g / PatternLayout::group].value[g % PatternLayout::group]);
      Number& wave = psi[g];
      const T intensity = wave.re * wave.re + wave.im * wave.im;
      T value, slope;
      term(at.scale * intensity, t, value, slope);
      if constexpr (masked) {
        value = t >= 0 ? value : T(0);
        slope = t >= 0 ? slope : T(0);
      }
      sum += value;
      moment += slope * intensity;
      const T factor = slope * at.unit;
      wave = {wave.re * factor, wave.im * factor};
    }
    sums.first += sum;
    sums.second += moment;
  }
};

} // namespace Bracewell::Impl
