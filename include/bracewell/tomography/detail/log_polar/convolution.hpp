// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/line_fft.hpp>
#include <bracewell/impl/line_steps.hpp>
#include <bracewell/tomography/detail/log_polar/grid.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// The kernel exp(2 pi i k ln(cos t) / period), angles t in the order of a transform, [k, t].
template <class T>
struct LogPolarKernel {
  Kokkos::complex<T>* kernel;
  int rows, columns;
  double angle_step, period;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const double k = double(2 * row < columns ? row : row - columns);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, rows), [&](int j) {
      const double t = (j <= rows / 2 ? j : j - rows) * angle_step;
      const double cosine = Kokkos::cos(t), cycles = k * Kokkos::log(Kokkos::max(cosine, 0.1)) / period;
      const double phase = 2 * Kokkos::numbers::pi_v<double> * (cycles - Kokkos::floor(cycles));
      // No angle of a span is so far from another; few steps can go around more than half a turn.
      const double weight = cosine > 0.1 && 2 * Kokkos::abs(t) < Kokkos::numbers::pi_v<double> ? 1 : 0;
      kernel[row * rows + j] =
          Kokkos::complex<T>(T(weight * Kokkos::cos(phase)), T(weight * Kokkos::sin(phase)));
    });
  }
};

/// The steps of a transform of N values.
template <int N>
struct ConvolutionSteps : StepRadices<N / (N == 2048 ? 128 : 64), N == 2048 ? 16 : 8, 8> {};

/// Symbols of the convolution that gives the results at the angles (step + b / refinement) * angle_step, in
/// the order that its kernel reads them, [b, k, N / groups, groups], with all factors: those of the sums and
/// FFTs, and the prefilter of the B-splines that will be evaluated.
template <class T, int N>
struct LogPolarSymbol {
  using Steps = ConvolutionSteps<N>;

  const Kokkos::complex<T>* transformed; ///< the kernel in steps of angle_step / refinement, [k, l]
  Kokkos::complex<T>* symbol;
  int refinement, columns;
  double scale;

  KOKKOS_FUNCTION static double prefilter(int index, int size) {
    return 6 / (4 + 2 * Kokkos::cos(2 * Kokkos::numbers::pi_v<double> * index / size));
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const int k = static_cast<int>(row % columns), b = static_cast<int>(row / columns), rows = N * refinement;
    // A real function has no shifted Nyquist frequency.
    const double factor = 2 * k == columns ? 0 : scale * prefilter(k, columns);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, +N), [&](int i) {
      const int coarse = Steps::frequency(i % Steps::groups) + i / Steps::groups * Steps::groups;
      double re = 0, im = 0;
      // The spectrum of the data repeats itself on finer rows, of which these are every refinement-th.
      for (int l = coarse; l < rows; l += N) {
        const double phase = 2 * Kokkos::numbers::pi_v<double> * double(std::int64_t(l) * b % rows) / rows;
        const double weight = factor * prefilter(l, rows), c = Kokkos::cos(phase), s = Kokkos::sin(phase);
        const Kokkos::complex<T> h = transformed[std::int64_t(k) * rows + l];
        re += weight * (c * double(h.real()) - s * double(h.imag()));
        im += weight * (c * double(h.imag()) + s * double(h.real()));
      }
      symbol[row * N + i] = Kokkos::complex<T>(T(re), T(im));
    });
  }
};

/// Calls body.operator()<N>() with N = period.
template <class Body>
void with_log_polar_period(int period, const Body& body) {
  switch (period) {
  case 128:
    return body.template operator()<128>();
  case 256:
    return body.template operator()<256>();
  case 512:
    return body.template operator()<512>();
  case 1024:
    return body.template operator()<1024>();
  default:
    return body.template operator()<2048>();
  }
}

/// Convolution over the angles, of period N, for every frequency k along rho: from the angles of a span to
/// the rows of its result, or the transpose. A team has a few frequencies of a span and a pair of slices in
/// scratch memory: three steps of the transform, the factors, three steps back. Angles and results are at
/// most N / 4 steps from the middle of the span: half of what is transformed is zero, and half of what comes
/// out not needed.
template <class ExecutionSpace, class T, int N, bool transposed>
struct LogPolarConvolve {
  using Number = PlainComplex<T>;
  using Tuning = TomographyTuning<ExecutionSpace>;
  static constexpr bool host = is_host<ExecutionSpace>;
  static constexpr int columns =
      Kokkos::clamp(Tuning::convolution_bytes / (N * int(sizeof(Number))), 1, +Tuning::convolution_columns);
  static constexpr int blocks_at_once = Tuning::blocks_at_once, level = host ? 1 : 0,
                       team_size = Tuning::convolution_threads;
  using Policy = Kokkos::TeamPolicy<
      ExecutionSpace, Kokkos::LaunchBounds<256, resident_teams<ExecutionSpace>(Tuning::convolution_teams)>>;
  using Member = typename Policy::member_type;

  LogPolarGrid grid;
  Kokkos::complex<T>*samples, *results; ///< [pairs, angles, k], [pairs, spans, result rows, k]
  const Number *roots, *symbol;         ///< StepPasses; LogPolarSymbol
  int images;                           ///< spans of pairs

  KOKKOS_FUNCTION static constexpr std::size_t scratch_bytes() {
    return (N + N / 8) * columns * sizeof(Number);
  }

  void launch(const ExecutionSpace& space, const char* label) const {
    launch_kernel(label,
                  Policy(space, images * (grid.columns / columns), +team_size)
                      .set_scratch_size(level, Kokkos::PerTeam(scratch_bytes() + 16)),
                  *this);
  }

  /// Eight blocks of columns, which share cache lines, of every image, then the next eight: images share the
  /// symbol.
  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int blocks = grid.columns / columns, rank = member.league_rank();
    const int first_block = rank / (images * blocks_at_once) * blocks_at_once;
    const int in_group = Kokkos::min(+blocks_at_once, blocks - first_block),
              rest = rank - first_block * images;
    const int image = rest / in_group, k = (first_block + rest % in_group) * columns;
    auto* const values =
        static_cast<Number*>(member.team_scratch(+level).get_shmem_aligned(scratch_bytes(), 16));
    const int pair = image / grid.spans, span = image % grid.spans;
    const int middle = grid.span_middle(span);
    auto* const data =
        reinterpret_cast<Number*>(samples) + (std::int64_t(pair) * grid.angles + middle) * grid.columns + k;
    const int data_begin = grid.span_begin(span) - middle, data_end = grid.span_begin(span + 1) - middle;
    const int reach = grid.result_steps();
    for (int b = 0; b < grid.refinement; ++b) {
      auto* const result =
          reinterpret_cast<Number*>(results) +
          (std::int64_t(image) * grid.result_rows() + reach * grid.refinement + b) * grid.columns + k;
      const Number* const factors = symbol + (std::int64_t(b) * grid.columns + k) * N;
      const std::int64_t row = grid.columns, fine_row = row * grid.refinement;
      if constexpr (transposed)
        convolve(member, values, result, fine_row, -reach, reach, data, row, data_begin, data_end, factors,
                 b > 0);
      else
        convolve(member, values, data, row, data_begin, data_end, result, fine_row, -reach, reach, factors,
                 false);
    }
  }

private:
  /// Where the values of a column lie: threads that take neighbouring ones meet in no memory bank.
  struct Steps : ConvolutionSteps<N> {
    KOKKOS_FORCEINLINE_FUNCTION static constexpr int place(int i) { return (i + i / 8) * columns; }
    template <int step>
    KOKKOS_FORCEINLINE_FUNCTION static int first_place(int b) {
      return place(Steps::template first_number<step>(b));
    }
  };
  static constexpr int last_radix = Steps::radix(2);

  /// The DFT, the factors, and the DFT back.
  KOKKOS_FORCEINLINE_FUNCTION void convolve(const Member& member, Number* values, const Number* in,
                                            std::int64_t in_row, int in_begin, int in_end, Number* out,
                                            std::int64_t out_row, int out_begin, int out_end,
                                            const Number* factors, bool add) const {
    const StepPasses<T, Steps> passes{roots};
    const LineFFT<T, PolicyTeam<Member>, StepLines<columns, 1, true>, LineExchange::InPlace, team_size> lines{
        PolicyTeam<Member>{member}, {}, values, values};
    lines.template first<false, 2>(passes, [&](int column, int i) {
      const int step = i - N / 4;
      return step >= in_begin && step < in_end ? in[step * in_row + column] : Number{0, 0};
    });
    lines.template middle<false>(passes);
    lines.template use_transform<false>(
        passes, [&](const LineButterfly& at, int groups, Number(&x)[last_radix]) {
          BRACEWELL_UNROLL_FOR (int q = 0; q < last_radix; ++q)
            x[q] = times<transposed>(x[q], factors[at.line * N + q * groups + at.j]);
        });
    lines.template middle<true>(passes);
    lines.template last<true, 2>(passes, [&](int column, int i, const Number& x) {
      const int step = i - N / 4;
      if (step < out_begin || step >= out_end)
        return;
      Number& value = out[step * out_row + column];
      value = add ? value + x : x;
    });
    member.team_barrier();
  }
};

} // namespace Bracewell::Impl
