// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/register_fft.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/tomography/detail/log_polar_grid.hpp>

namespace Bracewell::Impl {

/// The kernel exp(2 pi i k ln(cos t) / period), angles t in the order of a transform, [k, t].
template <class T>
struct LogPolarKernel {
  Kokkos::complex<T>* kernel;
  int rows, columns;
  double angle_step, period;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t line, const Member& member) const {
    const double k = double(2 * line < columns ? line : line - columns);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, rows), [&](int j) {
      const double t = (j <= rows / 2 ? j : j - rows) * angle_step;
      const double cosine = Kokkos::cos(t), turns = k * Kokkos::log(Kokkos::max(cosine, 0.1)) / period;
      const double phase = 2 * Kokkos::numbers::pi_v<double> * (turns - Kokkos::floor(turns));
      // No angle of a span is so far from another; few steps can go around more than half a turn.
      const double weight = cosine > 0.1 && 2 * Kokkos::abs(t) < Kokkos::numbers::pi_v<double> ? 1 : 0;
      kernel[line * rows + j] =
          Kokkos::complex<T>(T(weight * Kokkos::cos(phase)), T(weight * Kokkos::sin(phase)));
    });
  }
};

/// Factors of a transform of N = first * second * third numbers in three steps.
template <int N>
struct ConvolutionSteps {
  static constexpr int third = 8, second = N == 2048 ? 16 : 8, first = N / (second * third);
  static_assert(first * second * third == N && first >= 2);

  /// Frequency at place `i` of a spectrum as the three steps leave it.
  KOKKOS_FUNCTION static int frequency(int i) {
    return i / (second * third) + first * (i / third % second) + first * second * (i % third);
  }
};

/// Symbols of the convolution that gives the results at the angles (step + b / refinement) * angle_step, in
/// the order that its kernel reads them, [b, k, third, N / third], with all factors: those of the sums and
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
  KOKKOS_FUNCTION void operator()(std::int64_t line, const Member& member) const {
    const int k = static_cast<int>(line % columns), b = static_cast<int>(line / columns),
              rows = N * refinement;
    // A real function has no shifted Nyquist frequency.
    const double factor = 2 * k == columns ? 0 : scale * prefilter(k, columns);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, +N), [&](int i) {
      const int coarse = Steps::frequency(i % (N / Steps::third) * Steps::third + i / (N / Steps::third));
      double re = 0, im = 0;
      // The spectrum of the data repeats itself on finer rows, of which these are every refinement-th.
      for (int l = coarse; l < rows; l += N) {
        const double turn = 2 * Kokkos::numbers::pi_v<double> * (std::int64_t(l) * b % rows) / rows;
        const double weight = factor * prefilter(l, rows), c = Kokkos::cos(turn), s = Kokkos::sin(turn);
        const Kokkos::complex<T> h = transformed[std::int64_t(k) * rows + l];
        re += weight * (c * double(h.real()) - s * double(h.imag()));
        im += weight * (c * double(h.imag()) + s * double(h.real()));
      }
      symbol[line * N + i] = Kokkos::complex<T>(T(re), T(im));
    });
  }
};

/// Convolution over the angles, of period N, for every frequency k along rho: from the angles of a span to
/// the rows of its result, or the transpose. A team has a few frequencies of a span and a pair of slices in
/// scratch memory: three steps of the transform, the factors, three steps back. Angles and results are at
/// most N / 4 steps from the middle of the span: half of what is transformed is zero, and half of what comes
/// out not needed.
template <class ExecutionSpace, class T, int N, bool transposed>
struct LogPolarConvolve {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Steps = ConvolutionSteps<N>;
  using Number = Pair<T>;
  static constexpr bool host = is_host<ExecutionSpace>;
  static constexpr int first = Steps::first, second = Steps::second, third = Steps::third;
  static constexpr int columns =
      host || 32768 / (N * int(sizeof(Number))) >= 8 ? 8 : Kokkos::max(1, 32768 / (N * int(sizeof(Number))));
  static constexpr int blocks_at_once = 8, level = host ? 1 : 0, team_size = host ? 1 : 256;
  using Policy = Kokkos::TeamPolicy<ExecutionSpace, Kokkos::LaunchBounds<256, 3>>;

  LogPolarGrid grid;
  Kokkos::complex<T>*samples, *results; ///< [pairs, angles, k], [pairs, spans, result rows, k]
  const Number *roots, *symbol;         ///< exp(-2 pi i j / N); LogPolarSymbol
  int images;                           ///< spans of pairs

  static constexpr std::size_t scratch_bytes() { return (N + N / 8) * columns * sizeof(Number); }

  void launch(const ExecutionSpace& space, const char* label) const {
    Kokkos::parallel_for(label,
                         Policy(space, images * (grid.columns / columns), +team_size)
                             .set_scratch_size(level, Kokkos::PerTeam(scratch_bytes() + 16)),
                         *this);
  }

  /// Eight blocks of columns, which share cache lines, of every image, then the next eight: images share the
  /// symbol.
  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int blocks = grid.columns / columns, rank = member.league_rank();
    const int set = rank / (images * blocks_at_once) * blocks_at_once;
    const int in_set = Kokkos::min(+blocks_at_once, blocks - set), rest = rank - set * images;
    const int image = rest / in_set, k = (set + rest % in_set) * columns;
    auto* const numbers =
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
        convolve(member, numbers, result, fine_row, -reach, reach, data, row, data_begin, data_end, factors,
                 b > 0);
      else
        convolve(member, numbers, data, row, data_begin, data_end, result, fine_row, -reach, reach, factors,
                 false);
    }
  }

private:
  /// Threads that take neighbouring numbers meet in no memory bank.
  KOKKOS_FORCEINLINE_FUNCTION static int place(int i, int column) { return (i + i / 8) * columns + column; }

  /// x[q] *= root^q, or its conjugate.
  template <bool conjugate, int R>
  KOKKOS_FORCEINLINE_FUNCTION static void turn_all(Number (&x)[R], const Number& root) {
    Number power[R];
    power[1] = root;
    x[1] = turn<conjugate>(x[1], root);
    BRACEWELL_UNROLL
    for (int q = 2; q < R; ++q) {
      power[q] = turn<false>(power[q / 2], power[q - q / 2]);
      x[q] = turn<conjugate>(x[q], power[q]);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void convolve(const Member& member, Number* numbers, const Number* in,
                                            std::int64_t in_row, int in_begin, int in_end, Number* out,
                                            std::int64_t out_row, int out_begin, int out_end,
                                            const Number* factors, bool add) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns * second * third), [&](int thread) {
      const int column = thread % columns, j = thread / columns;
      Number x[first] = {};
      BRACEWELL_UNROLL
      for (int m = 0; m < first / 2; ++m) {
        const int step = j + m * (N / first) - N / 4;
        if (step >= in_begin && step < in_end)
          x[m] = in[step * in_row + column];
      }
      if constexpr (first >= 8)
        RegisterFFT<first, false>::template run_leading<first / 2>(x);
      else
        RegisterFFT<first, false>::run(x);
      turn_all<false>(x, roots[j]);
      BRACEWELL_UNROLL
      for (int q = 0; q < first; ++q)
        numbers[place(j + q * (N / first), column)] = x[q];
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns * first * third), [&](int thread) {
      const int column = thread % columns, i = thread / columns;
      const int j = i % third, begin = i / third * (second * third) + j;
      Number x[second];
      BRACEWELL_UNROLL
      for (int m = 0; m < second; ++m)
        x[m] = numbers[place(begin + m * third, column)];
      RegisterFFT<second, false>::run(x);
      turn_all<false>(x, roots[j * first]);
      BRACEWELL_UNROLL
      for (int q = 0; q < second; ++q)
        numbers[place(begin + q * third, column)] = x[q];
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns * first * second), [&](int thread) {
      const int column = thread % columns, group = thread / columns;
      Number x[third];
      BRACEWELL_UNROLL
      for (int m = 0; m < third; ++m)
        x[m] = numbers[place(group * third + m, column)];
      RegisterFFT<third, false>::run(x);
      BRACEWELL_UNROLL
      for (int q = 0; q < third; ++q)
        x[q] = turn<transposed>(x[q], factors[column * N + q * (N / third) + group]);
      RegisterFFT<third, true>::run(x);
      BRACEWELL_UNROLL
      for (int m = 0; m < third; ++m)
        numbers[place(group * third + m, column)] = x[m];
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns * first * third), [&](int thread) {
      const int column = thread % columns, i = thread / columns;
      const int j = i % third, begin = i / third * (second * third) + j;
      Number x[second];
      BRACEWELL_UNROLL
      for (int q = 0; q < second; ++q)
        x[q] = numbers[place(begin + q * third, column)];
      turn_all<true>(x, roots[j * first]);
      RegisterFFT<second, true>::run(x);
      BRACEWELL_UNROLL
      for (int m = 0; m < second; ++m)
        numbers[place(begin + m * third, column)] = x[m];
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns * second * third), [&](int thread) {
      const int column = thread % columns, j = thread / columns;
      Number x[first];
      BRACEWELL_UNROLL
      for (int q = 0; q < first; ++q)
        x[q] = numbers[place(j + q * (N / first), column)];
      turn_all<true>(x, roots[j]);
      RegisterFFT<first, true>::run(x);
      BRACEWELL_UNROLL
      for (int m = 0; m < first / 2; ++m) {
        const int step = j + m * (N / first) - N / 4;
        if (step >= out_begin && step < out_end) {
          Number& value = out[step * out_row + column];
          value = add ? value + x[m] : x[m];
        }
      }
    });
    member.team_barrier();
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

} // namespace Bracewell::Impl
