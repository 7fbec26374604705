// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/ptychography/compare.hpp>
#include <bracewell/ptychography/register_fft.hpp>
#include <bracewell/ptychography/store_patterns.hpp>

namespace Bracewell::Impl {

/// Sizes of the fused kernel. A transform of n = lanes x numbers is done by `lanes` neighbouring lanes that
/// hold `numbers` (or more) numbers each in registers, with one exchange through scratch memory:
///   X(k + numbers g) = sum_t exp(-2 pi i g t / lanes) exp(-2 pi i k t / n)
///                      sum_j exp(-2 pi i k j / numbers) x(t + lanes j).
/// Lane t does the inner sum; lane u the outer one for k = u, u + lanes, ...; of the inputs, those with
/// j < leading are not zero.
template <int lanes_, int numbers_, int leading_>
struct FusedSizes {
  static constexpr int lanes = lanes_, numbers = numbers_, n = lanes * numbers, leading = leading_;
  static constexpr int turns = (numbers + lanes - 1) / lanes; ///< outer sums of a lane
  static constexpr int pitch = lanes + 1; ///< of the exchange: odd, so that it runs over different banks
  static constexpr int exchange = numbers * pitch;
  static_assert(lanes % PatternLayout::group == 0);

  /// Lanes of a team on GPUs: as many as their exchange fits into scratch memory.
  template <class T>
  static constexpr int team_size() {
    const int warps = 44000 / (32 / lanes * exchange * 2 * int(sizeof(T)));
    return 32 * (warps > 10 ? 10 : warps < 1 ? 1 : warps);
  }
};

/// Patterns from the exit wave to its gradient, a team at a time, in three steps with the window of m rows
/// (its transforms along the rows) between them in a workspace that stays in the cache: teams go through the
/// patterns and keep theirs. Nothing of the detector's size is written.
///   rows:     exit wave, transform
///   columns:  transform, comparison, adjoint of the transform
///   rows:     adjoint of the transform
/// Leaves B = IDFT(l'(J) Psi) on the window, in units that suit half precision, and two factors with which
/// G = f B - h psi (WaveGradients).
///   m = sum |psi|^2 (Parseval: the mean of I), J = I C / m, c = Re<psi, B> / (n^2 m).
template <class Space, class T, class Storage, class Sizes>
struct FusedPatterns {
  static constexpr bool host = is_host<Space>;
  static constexpr int lanes = Sizes::lanes, numbers = Sizes::numbers, n = Sizes::n, leading = Sizes::leading;
  static constexpr int turns = Sizes::turns;
  static constexpr int team_size = host ? 1 : Sizes::template team_size<T>();
  static constexpr int groups = host ? 1 : team_size / lanes; ///< that do a transform each
  static constexpr int scratch_level = host ? 1 : 0;
  using Policy = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<Sizes::template team_size<T>(), 2>>;
  using Team = typename Policy::member_type;
  using Number = Pair<T>;
  using Stored = StoredComplex<Storage>;
  using Scratch = Kokkos::View<Number*, typename Space::scratch_memory_space, Kokkos::MemoryUnmanaged>;

  Scan scan;
  Selection selection;
  const Kokkos::complex<T>*object, *probe;
  Targets<T, Storage> targets;
  PatternLoss loss;
  T background, norm;
  const Number* roots; ///< [numbers, lanes]: exp(-2 pi i k t / n)
  double* losses;
  Stored* workspace; ///< [teams, window]
  Stored* waves;     ///< [patterns, m, m]
  T* factors;        ///< [patterns, 2]
  bool gradients;

  static std::size_t scratch_bytes() { return Scratch::shmem_size(groups * Sizes::exchange + n); }
  /// Numbers that a team keeps between the steps.
  KOKKOS_INLINE_FUNCTION static std::int64_t window(int m) { return std::int64_t(m + m % 2) * n; }

  /// A pattern and what a team has for it.
  struct Context {
    std::int64_t i, corner;
    Stored* window;
    Number* exchange; ///< of the group of lanes
    const Number* roots;
    int lane, group;
    T enlargement; ///< of psi: a power of two that makes its energy about 1
    T scale;       ///< of the intensity of the enlarged psi, to J
    T target_unit; ///< of counts in half precision
    T unit;        ///< of the derivative, so that half precision holds it
    const Storage* targets;
  };

  /// Pairs of columns side by side, and in each pair the rows: both directions of access are contiguous.
  KOKKOS_FORCEINLINE_FUNCTION Stored& element(const Context& at, int row, int column) const {
    return at.window[(column / 2 * (scan.probe + scan.probe % 2) + row) * 2 + column % 2];
  }

  KOKKOS_FORCEINLINE_FUNCTION Number exit_wave(const Context& at, int y, int x) const {
    const Kokkos::complex<T> o = object[at.corner + y * scan.columns + x], p = probe[y * scan.probe + x];
    return turn<false>(Number{o.real(), o.imag()}, Number{p.real(), p.imag()});
  }

  KOKKOS_FORCEINLINE_FUNCTION static void put(Stored& to, const Number& value) {
    Stored stored;
    stored.re = static_cast<Storage>(value.re);
    stored.im = static_cast<Storage>(value.im);
    to = stored;
  }
  KOKKOS_FORCEINLINE_FUNCTION static Number get(const Stored& from) {
    const Stored stored = from;
    return {static_cast<T>(stored.re), static_cast<T>(stored.im)};
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
    at.exchange[lane] = x[0];
    BRACEWELL_UNROLL
    for (int k = 1; k < numbers; ++k)
      at.exchange[k * Sizes::pitch + lane] = turn<false>(x[k], at.roots[k * lanes + lane]);
  }
  /// Outer sums of a lane for one k.
  KOKKOS_FORCEINLINE_FUNCTION static void outer_forward(const Context& at, int k, Number (&y)[lanes]) {
    BRACEWELL_UNROLL
    for (int t = 0; t < lanes; ++t)
      y[t] = at.exchange[k * Sizes::pitch + t];
    RegisterFFT<lanes, false>::run(y);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void outer_adjoint(const Context& at, int k, Number (&y)[lanes]) {
    RegisterFFT<lanes, true>::run(y);
    BRACEWELL_UNROLL
    for (int t = 0; t < lanes; ++t)
      at.exchange[k * Sizes::pitch + t] = y[t];
  }
  KOKKOS_FORCEINLINE_FUNCTION static void inner_adjoint(const Context& at, int lane, Number (&x)[numbers]) {
    x[0] = at.exchange[lane];
    BRACEWELL_UNROLL
    for (int k = 1; k < numbers; ++k)
      x[k] = turn<true>(at.exchange[k * Sizes::pitch + lane], at.roots[k * lanes + lane]);
    RegisterFFT<numbers, true>::run(x);
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const Scratch scratch(team.team_scratch(+scratch_level), groups * Sizes::exchange + n);
    Context at;
    at.lane = team.team_rank() % lanes;
    at.group = host ? 0 : team.team_rank() / lanes;
    Number* const table = scratch.data() + groups * Sizes::exchange;
    at.exchange = scratch.data() + at.group * Sizes::exchange;
    at.roots = table;
    at.window = workspace + team.league_rank() * window(scan.probe);
    for (int k = team.team_rank(); k < n; k += team_size)
      table[k] = roots[k];
    for (at.i = team.league_rank(); at.i < selection.count; at.i += team.league_size())
      pattern(team, at);
  }

  KOKKOS_FORCEINLINE_FUNCTION void pattern(const Team& team, Context& at) const {
    const int m = scan.probe;
    const std::int64_t j = selection(at.i);
    at.corner = scan.corner(j);
    at.targets = targets.values + j * n * n;
    double energy = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, m),
        [&](int y, double& total) {
          T sum = 0;
          for (int x = 0; x < m; ++x) {
            const Number psi = exit_wave(at, y, x);
            sum += psi.re * psi.re + psi.im * psi.im;
          }
          total += double(sum);
        },
        energy);
    const T mean = targets.means[j];
    at.target_unit = targets.units[j];
    if (!(mean > 0 && energy > 0)) { // the whole team goes on
      skip(at, team.team_rank());
      return;
    }
    const bool scaled = targets.counts > 0;
    const T to_model = scaled ? static_cast<T>(targets.counts / energy) : T(1);
    at.enlargement = static_cast<T>(Kokkos::exp2(-Kokkos::floor(0.5 * Kokkos::log2(energy) + 0.5)));
    at.scale = to_model / (at.enlargement * at.enlargement);
    at.unit = 1 / (T(n) * (loss == PatternLoss::LeastSquares ? mean : T(1)));
    // Groups of a warp have the same number of turns: they meet at every exchange.
    for (int first = 0; first < m; first += groups)
      transform_row(at, first + at.group);
    team.team_barrier();
    double sum = 0, moment = 0;
    for (int first = 0; first < n; first += groups)
      transform_column(at, first + at.group, sum);
    team.team_barrier();
    if (gradients)
      for (int first = 0; first < m; first += groups)
        adjoint_row(at, first + at.group, moment);
    finish(team, at, scaled, to_model, energy, sum, moment);
  }

  KOKKOS_INLINE_FUNCTION void skip(const Context& at, int rank) const {
    const int pixels = scan.probe * scan.probe;
    if (gradients)
      for (int pixel = rank; pixel < pixels; pixel += team_size)
        put(waves[at.i * pixels + pixel], Number{0, 0});
    if (rank == 0) {
      losses[at.i] = 0;
      factors[2 * at.i] = factors[2 * at.i + 1] = 0;
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void transform_row(const Context& at, int y) const {
    const int m = scan.probe;
    for_lanes(at, [&](int lane) {
      Number x[numbers];
      BRACEWELL_UNROLL
      for (int j = 0; j < leading; ++j) {
        x[j] = {0, 0};
        if (y < m && lane + lanes * j < m) {
          x[j] = exit_wave(at, y, lane + lanes * j);
          x[j] = {x[j].re * at.enlargement, x[j].im * at.enlargement};
        }
      }
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
            put(element(at, y, k + numbers * g), values[g]);
        }
      }
    });
  }

  KOKKOS_FORCEINLINE_FUNCTION void transform_column(const Context& at, int column, double& sum) const {
    const int m = scan.probe;
    const bool inside = column < n;
    // The targets of the column come from far away: they are on their way while it is transformed.
    if (!host && inside && at.lane < numbers)
      for (int first = 0; first < lanes; first += PatternLayout::group)
        prefetch(at.targets + std::int64_t(column) * n + first * numbers + at.lane * PatternLayout::group);
    for_lanes(at, [&](int lane) {
      Number x[numbers];
      BRACEWELL_UNROLL
      for (int j = 0; j < leading; ++j) {
        const int row = lane + lanes * j;
        x[j] = inside && row < m ? get(element(at, row, column)) : Number{0, 0};
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
          sum +=
              double(compare(at, at.targets + (std::int64_t(column) * n + k * PatternLayout::group), values));
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
          put(element(at, row, column), x[j]);
      }
    });
  }

  KOKKOS_FORCEINLINE_FUNCTION void adjoint_row(const Context& at, int y, double& moment) const {
    const int m = scan.probe;
    for_lanes(at, [&](int lane) {
      BRACEWELL_UNROLL
      for (int c = 0; c < turns; ++c) {
        const int k = lane + lanes * c;
        if (k < numbers && y < m) {
          Number values[lanes];
          BRACEWELL_UNROLL
          for (int g = 0; g < lanes; ++g)
            values[g] = get(element(at, y, k + numbers * g));
          outer_adjoint(at, k, values);
        }
      }
    });
    for_lanes(at, [&](int lane) {
      Number x[numbers];
      inner_adjoint(at, lane, x);
      T along = 0;
      BRACEWELL_UNROLL
      for (int j = 0; j < leading; ++j) {
        const int column = lane + lanes * j;
        if (y < m && column < m) {
          const Number value{x[j].re * (T(1) / n), x[j].im * (T(1) / n)}, psi = exit_wave(at, y, column);
          put(waves[(at.i * m + y) * m + column], value);
          along += psi.re * value.re + psi.im * value.im;
        }
      }
      moment += double(along);
    });
  }

  /// Multiplies Psi by the derivative of the loss.
  KOKKOS_FORCEINLINE_FUNCTION T compare(const Context& at, const Storage* measured,
                                        Number (&psi)[lanes]) const {
    switch (loss) {
    case PatternLoss::LeastSquares:
      return compare_by<PatternLoss::LeastSquares>(at, measured, psi);
    case PatternLoss::Amplitude:
      return compare_by<PatternLoss::Amplitude>(at, measured, psi);
    case PatternLoss::Poisson:
      return compare_by<PatternLoss::Poisson>(at, measured, psi);
    }
    return 0;
  }

  struct alignas(sizeof(Storage) * PatternLayout::group) Group {
    Storage value[PatternLayout::group];
  };

  template <PatternLoss kind>
  KOKKOS_FORCEINLINE_FUNCTION T compare_by(const Context& at, const Storage* measured,
                                           Number (&psi)[lanes]) const {
    constexpr int group = PatternLayout::group;
    const PatternTerm<kind, T, Storage> term{background, at.target_unit};
    T sum = 0;
    BRACEWELL_UNROLL
    for (int first = 0; first < lanes; first += group) {
      const Group stored = *reinterpret_cast<const Group*>(measured + first * numbers);
      BRACEWELL_UNROLL
      for (int v = 0; v < group; ++v) {
        const T t = static_cast<T>(stored.value[v]);
        Number& wave = psi[first + v];
        T value, slope;
        term(at.scale * (wave.re * wave.re + wave.im * wave.im), t, value, slope);
        const bool counts = !targets.masked || t >= 0;
        sum += counts ? value : T(0);
        const T factor = counts ? slope * at.unit : T(0);
        wave = {wave.re * factor, wave.im * factor};
      }
    }
    return sum;
  }

  KOKKOS_INLINE_FUNCTION void finish(const Team& team, const Context& at, bool scaled, T to_model,
                                     double energy, double sum, double moment) const {
    double total = 0, product = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, +team_size),
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
