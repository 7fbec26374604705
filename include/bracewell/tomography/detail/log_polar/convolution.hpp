// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/register_fft.hpp>
#include <bracewell/tomography/detail/log_polar/grid.hpp>
#include <bracewell/tomography/detail/log_polar/symbol.hpp>

namespace Bracewell::Impl {

/// Convolution over the angles, of period N, for every frequency k along rho: from the angles of a span to
/// the rows of its result, or the transpose. A team has a few frequencies of a span and a pair of slices in
/// scratch memory: three steps of the transform, the factors, three steps back. Angles and results are at
/// most N / 4 steps from the middle of the span: half of what is transformed is zero, and half of what comes
/// out not needed.
template <class ExecutionSpace, class T, int N, bool transposed>
struct LogPolarConvolve {
  using Steps = ConvolutionSteps<N>;
  using Number = PlainComplex<T>;
  using Tuning = TomographyTuning<ExecutionSpace>;
  static constexpr bool host = is_host<ExecutionSpace>;
  static constexpr int first = Steps::first, second = Steps::second, third = Steps::third;
  static constexpr int columns =
      Kokkos::clamp(Tuning::convolution_bytes / (N * int(sizeof(Number))), 1, +Tuning::convolution_columns);
  static constexpr int blocks_at_once = Tuning::blocks_at_once, level = host ? 1 : 0,
                       team_size = Tuning::convolution_threads;
  using Policy = Kokkos::TeamPolicy<
      ExecutionSpace, Kokkos::LaunchBounds<256, resident_teams<ExecutionSpace>(Tuning::convolution_teams)>>;
  using Member = typename Policy::member_type;

  LogPolarGrid grid;
  Kokkos::complex<T>*samples, *results; ///< [pairs, angles, k], [pairs, spans, result rows, k]
  const Number *roots, *symbol;         ///< exp(-2 pi i j / N); LogPolarSymbol
  int images;                           ///< spans of pairs

  KOKKOS_FUNCTION static constexpr std::size_t scratch_bytes() {
    return (N + N / 8) * columns * sizeof(Number);
  }

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
  /// Where a value lies: threads that take neighbouring ones meet in no memory bank.
  KOKKOS_FORCEINLINE_FUNCTION static int slot(int i, int column) { return (i + i / 8) * columns + column; }

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

  /// DFTs of `first`, of `second` and of `third` values, the factors, and the same DFTs back. (As five short
  /// functions: the same results, on an H200 in float 1 to 4 % slower.) NOLINTNEXTLINE(readability-function-size)
  KOKKOS_FORCEINLINE_FUNCTION void convolve(const Member& member, Number* values, const Number* in,
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
        values[slot(j + q * (N / first), column)] = x[q];
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns * first * third), [&](int thread) {
      const int column = thread % columns, i = thread / columns;
      const int j = i % third, begin = i / third * (second * third) + j;
      Number x[second];
      BRACEWELL_UNROLL
      for (int m = 0; m < second; ++m)
        x[m] = values[slot(begin + m * third, column)];
      RegisterFFT<second, false>::run(x);
      turn_all<false>(x, roots[j * first]);
      BRACEWELL_UNROLL
      for (int q = 0; q < second; ++q)
        values[slot(begin + q * third, column)] = x[q];
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns * first * second), [&](int thread) {
      const int column = thread % columns, group = thread / columns;
      Number x[third];
      BRACEWELL_UNROLL
      for (int m = 0; m < third; ++m)
        x[m] = values[slot(group * third + m, column)];
      RegisterFFT<third, false>::run(x);
      BRACEWELL_UNROLL
      for (int q = 0; q < third; ++q)
        x[q] = turn<transposed>(x[q], factors[column * N + q * (N / third) + group]);
      RegisterFFT<third, true>::run(x);
      BRACEWELL_UNROLL
      for (int m = 0; m < third; ++m)
        values[slot(group * third + m, column)] = x[m];
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns * first * third), [&](int thread) {
      const int column = thread % columns, i = thread / columns;
      const int j = i % third, begin = i / third * (second * third) + j;
      Number x[second];
      BRACEWELL_UNROLL
      for (int q = 0; q < second; ++q)
        x[q] = values[slot(begin + q * third, column)];
      turn_all<true>(x, roots[j * first]);
      RegisterFFT<second, true>::run(x);
      BRACEWELL_UNROLL
      for (int m = 0; m < second; ++m)
        values[slot(begin + m * third, column)] = x[m];
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns * second * third), [&](int thread) {
      const int column = thread % columns, j = thread / columns;
      Number x[first];
      BRACEWELL_UNROLL
      for (int q = 0; q < first; ++q)
        x[q] = values[slot(j + q * (N / first), column)];
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

} // namespace Bracewell::Impl
