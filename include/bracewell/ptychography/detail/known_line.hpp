// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/division.hpp>
#include <bracewell/impl/plain_complex.hpp>
#include <bracewell/ptychography/detail/fused_transforms.hpp>

/// Kernels over lines (rows or columns) of n = lanes x per_lane numbers, a length that the compiler knows, on GPUs: see
/// KnownLinesPlan. Waves and shifted probes, [patterns, modes, n, n], lie in blocks of wave_block columns, one after the
/// other, and each of these row by row: teams over columns go through memory from end to end, and rows of a team lie side
/// by side.

namespace Bracewell::Impl {

inline constexpr int wave_block = 8;

/// Rows: the lanes of a row are neighbours, so that only lanes of a warp exchange numbers.
template <int lanes_, int per_lane_>
struct RowSizes : FusedSizes<lanes_, per_lane_, per_lane_> {
  using Sizes = FusedSizes<lanes_, per_lane_, per_lane_>;
  static constexpr int threads = PtychographyTuning::row_threads; ///< of a team
  static constexpr int lines = threads / lanes_, blocks = Sizes::n / lines;
  static constexpr int exchange = threads / Sizes::warp * Sizes::exchange;
  static_assert(Sizes::n % lines == 0);
};

/// Columns: neighbouring threads have neighbouring columns, and a team exchanges numbers; even and odd k by other banks.
template <int lanes_, int per_lane_>
struct ColumnSizes
    : FusedSizes<lanes_, per_lane_, per_lane_, wave_block, lanes_ * wave_block + wave_block % 16> {
  using Sizes = typename ColumnSizes::FusedSizes;
  static constexpr int lines = wave_block, threads = lines * lanes_, blocks = Sizes::n / lines; ///< of a team
  static_assert(Sizes::n % lines == 0);

  KOKKOS_FORCEINLINE_FUNCTION static int line(int rank) { return rank % lines; }
  KOKKOS_FORCEINLINE_FUNCTION static int lane(int rank) { return rank / lines; }
  KOKKOS_FORCEINLINE_FUNCTION static int begin(int rank) { return rank % lines; }
};

/// What a thread has of a line, and its part of the transforms: before one numbers lane + lanes j, x[j]; after it numbers
/// k + per_lane g with k = lane + lanes c, y[g] of outer sum c (FusedLine). A thread writes to the exchange where it
/// has read at the end of the transform before, if that went the other way: between the two nobody has to wait.
template <class T, class Sizes>
struct KnownLine : FusedLine<false, T, Sizes> {
  using Base = FusedLine<false, T, Sizes>;
  using Number = PlainComplex<T>;
  static constexpr int lanes = Sizes::lanes, per_lane = Sizes::per_lane, outer_sums = Sizes::outer_sums;
  static_assert(per_lane % lanes == 0 && lanes % wave_block == 0);

  KOKKOS_FORCEINLINE_FUNCTION KnownLine(int rank, Number* scratch, const Number* factors)
      : Base(rank, scratch, factors, factors) {}

  /// Number of the line, from that of the lane on: outer sum c, g.
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int outer(int c, int g) { return lanes * c + per_lane * g; }

  KOKKOS_FORCEINLINE_FUNCTION void inner_forward(Number (&x)[per_lane]) const {
    Base::inner_forward(this->lane, x);
  }
  KOKKOS_FORCEINLINE_FUNCTION void inner_adjoint(Number (&x)[per_lane]) const {
    Base::inner_adjoint(this->lane, x);
  }
  /// The second half of a transform: use(c, y).
  template <class Use>
  KOKKOS_FORCEINLINE_FUNCTION void outer_forward(const Use& use) const {
    BRACEWELL_UNROLL_FOR (int c = 0; c < outer_sums; ++c) {
      Number y[lanes];
      Base::outer_forward(this->lane + lanes * c, y);
      use(c, y);
    }
  }
  /// The first half of an inverse transform.
  KOKKOS_FORCEINLINE_FUNCTION void outer_adjoint(Number (&y)[outer_sums][lanes]) const {
    BRACEWELL_UNROLL_FOR (int c = 0; c < outer_sums; ++c)
      Base::outer_adjoint(this->lane + lanes * c, y[c]);
  }

  /// use(c, g) for the numbers that a thread has after a transform.
  template <class Use>
  KOKKOS_FORCEINLINE_FUNCTION static void for_outer(const Use& use) {
    BRACEWELL_UNROLL_FOR (int c = 0; c < outer_sums; ++c) {
      BRACEWELL_UNROLL_FOR (int g = 0; g < lanes; ++g)
        use(c, g);
    }
  }

  /// Numbers of the line, the lane's of which is *from, before a transform and after it.
  template <int apart = 1>
  KOKKOS_FORCEINLINE_FUNCTION static void load_inner(const Kokkos::complex<T>* from, Number (&x)[per_lane]) {
    BRACEWELL_UNROLL_FOR (int j = 0; j < per_lane; ++j)
      x[j] = plain(from[lanes * j * apart]);
  }
  template <int apart = 1>
  KOKKOS_FORCEINLINE_FUNCTION static void store_inner(Kokkos::complex<T>* to, const Number (&x)[per_lane]) {
    BRACEWELL_UNROLL_FOR (int j = 0; j < per_lane; ++j)
      to[lanes * j * apart] = Kokkos::complex<T>(x[j].re, x[j].im);
  }
  template <int apart = 1>
  KOKKOS_FORCEINLINE_FUNCTION static void load_outer(const Kokkos::complex<T>* from,
                                                     Number (&y)[outer_sums][lanes]) {
    for_outer([&](int c, int g) { y[c][g] = plain(from[outer(c, g) * apart]); });
  }
  template <int apart = 1>
  KOKKOS_FORCEINLINE_FUNCTION static void store_outer(Kokkos::complex<T>* to, int c,
                                                      const Number (&y)[lanes]) {
    BRACEWELL_UNROLL_FOR (int g = 0; g < lanes; ++g)
      to[outer(c, g) * apart] = Kokkos::complex<T>(y[g].re, y[g].im);
  }
};

template <class Space, class T, class Sizes_>
struct KnownKernel {
  using Sizes = Sizes_;
  using Number = PlainComplex<T>;
  using Complex = Kokkos::complex<T>;
  using Line = KnownLine<T, Sizes>;
  using Member = typename Kokkos::TeamPolicy<Space>::member_type;
  using Scratch = Kokkos::View<Number*, typename Space::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int n = Sizes::n, lanes = Sizes::lanes, per_lane = Sizes::per_lane,
                       outer_sums = Sizes::outer_sums;
  static constexpr int threads = Sizes::threads;
  /// What every further mode may have in scratch memory.
  static constexpr int of_mode = 0;

  QuickDivision modes;
  const Number* table; ///< FusedSizes

  /// Where the lane's number of a row begins in a wave; the others follow n numbers for each column.
  KOKKOS_FORCEINLINE_FUNCTION static int in_row(const Line& at, int row) {
    return at.lane / wave_block * (n * wave_block) + row * wave_block + at.lane % wave_block;
  }

  /// Team ((slice modes + mode) blocks + block). Slice s of S has patterns s, s + S, ...: teams that run at the same time
  /// are at patterns that follow each other, and kernels take them in turn from the first and from the last on, so that
  /// they find what the one before has written last in the cache.
  struct Part {
    int slice, mode, first; ///< line of the team

    KOKKOS_FORCEINLINE_FUNCTION Part(const QuickDivision& modes, int team)
        : slice(modes.quotient(team / Sizes::blocks)), mode(team / Sizes::blocks - slice * modes.by()),
          first(team % Sizes::blocks * Sizes::lines) {}
  };
};

} // namespace Bracewell::Impl
