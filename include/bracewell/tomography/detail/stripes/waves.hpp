// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/unroll.hpp>
#include <bracewell/tomography/detail/stripes/columns.hpp>
#include <bracewell/tomography/detail/tuning.hpp>

namespace Bracewell::Impl {

/// Frequencies along the angles 0 ... most, of columns: rows 0 (the sum), 2 k - 1 (cosine) and 2 k (sine).
template <class T>
struct AngleWaves {
  const Kokkos::complex<T>* roots; ///< [angles], of whole turns: cosines and sines
  int angles, most;

  KOKKOS_FUNCTION int rows() const { return 2 * most + 1; }
  KOKKOS_FUNCTION int place(int frequency, int angle) const {
    return static_cast<int>(std::int64_t(frequency) * angle % angles);
  }
  KOKKOS_FUNCTION T at(int row, int angle) const {
    const Kokkos::complex<T> root = roots[place((row + 1) / 2, angle)];
    return row % 2 == 0 && row > 0 ? root.imag() : root.real();
  }
};

/// Sums over the angles of columns times waves. A team has some frequencies of some columns of a slice, a thread part of
/// the angles: it keeps its sums in registers, so that every value is read once for all of them.
template <class Space, class T>
struct SumWaves {
  using Tuning = StripeTuning<Space, T>;
  static constexpr int frequencies = Tuning::wave_frequencies, columns = Tuning::wave_columns,
                       lanes = Tuning::wave_lanes, parts = Tuning::wave_parts, block = lanes * columns;
  using Policy =
      Kokkos::TeamPolicy<Space,
                         Kokkos::LaunchBounds<lanes * parts, resident_teams<Space>(Tuning::wave_teams)>>;
  using Member = typename Policy::member_type;

  SinogramOf<T> first;
  AngleWaves<T> waves;
  T* sums; ///< [slices, rows, padded]
  int padded;

  static void launch(const Space& space, const SumWaves& sum, std::int64_t slices) {
    launch_kernel("Bracewell::StripeRemoval::sum_waves",
                  Policy(space, static_cast<int>(slices * sum.blocks() * sum.groups()), lanes * parts), sum);
  }

  KOKKOS_FUNCTION int blocks() const { return (first.width + block - 1) / block; }
  KOKKOS_FUNCTION int groups() const { return waves.most / frequencies + 1; }

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int k = member.league_rank() % groups() * frequencies, rest = member.league_rank() / groups();
    const int column = rest % blocks() * block + member.team_rank() % lanes, slice = rest / blocks();
    const int part = member.team_rank() / lanes, each = (first.angles + parts - 1) / parts;
    const int begin = part * each, end = Kokkos::min(first.angles, begin + each);
    const int own =
        (first.width - column + lanes - 1) / lanes; // columns, some beyond `columns` or fewer than 1
    const T* values = &first.next(slice)(begin, column);
    int place[frequencies];
    BRACEWELL_UNROLL_FOR (int f = 0; f < frequencies; ++f)
      place[f] = waves.place(Kokkos::min(k + f, waves.most), begin);
    T cosines[frequencies][columns] = {}, sines[frequencies][columns] = {};
    for (int p = begin; p < end; ++p, values += first.width) {
      T x[columns] = {};
      BRACEWELL_UNROLL_FOR (int c = 0; c < columns; ++c)
        if (c < own)
          x[c] = values[c * lanes];
      BRACEWELL_UNROLL_FOR (int f = 0; f < frequencies; ++f) {
        const Kokkos::complex<T> root = waves.roots[place[f]];
        place[f] += Kokkos::min(k + f, waves.most); // a remainder at every angle would take longer
        place[f] -= place[f] >= first.angles ? first.angles : 0;
        BRACEWELL_UNROLL_FOR (int c = 0; c < columns; ++c) {
          cosines[f][c] += root.real() * x[c];
          sines[f][c] += root.imag() * x[c];
        }
      }
    }
    // One part after the other, so that sums are the same every time.
    for (int next = 0; next < parts; ++next) {
      if (part == next)
        for_each_sum(k, own, [&](int f, int c, int row, bool sine) {
          T& sum = sums[(std::int64_t(slice) * waves.rows() + row) * padded + column + c * lanes];
          sum = (next == 0 ? T(0) : sum) + (sine ? sines[f][c] : cosines[f][c]);
        });
      member.team_barrier();
    }
  }

private:
  template <class Action>
  KOKKOS_FORCEINLINE_FUNCTION void for_each_sum(int k, int own, const Action& action) const {
    BRACEWELL_UNROLL_FOR (int f = 0; f < frequencies; ++f) {
      BRACEWELL_UNROLL_FOR (int c = 0; c < columns; ++c)
        if (c < own && k + f <= waves.most) {
          action(f, c, Kokkos::max(0, 2 * (k + f) - 1), false);
          if (k + f > 0)
            action(f, c, 2 * (k + f), true);
        }
    }
  }
};

/// Takes damped waves from a sinogram. A team has all columns of some angles of a slice, which a thread keeps in
/// registers: every sum is read once for all of them.
template <class Space, class T>
struct SubtractWaves {
  static constexpr bool host = is_host<Space>;
  using Tuning = StripeTuning<Space, T>;
  static constexpr int angles = 8; ///< whose factors are 16-byte words
  static constexpr int columns = Tuning::subtracted_columns, rows_at_once = Tuning::subtracted_rows,
                       threads = Tuning::subtract_threads;
  using Policy = Kokkos::TeamPolicy<Space>;
  using Member = typename Policy::member_type;

  SinogramOf<T> first;
  AngleWaves<T> waves;
  const T* sums;   ///< [slices, rows, padded]
  const T* shares; ///< [rows]
  int padded;

  static void launch(const Space& space, const SubtractWaves& subtract, std::int64_t slices) {
    launch_kernel("Bracewell::StripeRemoval::subtract_waves",
                  Policy(space, static_cast<int>(slices * subtract.blocks()), +threads)
                      .set_scratch_size(0, Kokkos::PerTeam(scratch_bytes + 16)),
                  subtract);
  }

  KOKKOS_FUNCTION int blocks() const { return (first.angles + angles - 1) / angles; }

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int slice = member.league_rank() / blocks(), begin = member.league_rank() % blocks() * angles;
    const int own = Kokkos::min(+angles, first.angles - begin);
    auto* const factors = static_cast<Factors*>(member.team_scratch(0).get_shmem_aligned(+scratch_bytes, 16));
    T* const values = &first.next(slice)(begin, 0);
    for (int row = 0; row < waves.rows(); row += rows_at_once) {
      const int rows = Kokkos::min(+rows_at_once, waves.rows() - row);
      Kokkos::parallel_for(Kokkos::TeamThreadRange(member, rows * angles), [&](int i) {
        factors[i / angles].of[i % angles] =
            shares[row + i / angles] * waves.at(row + i / angles, begin + i % angles);
      });
      member.team_barrier();
      const T* const of_rows = sums + (std::int64_t(slice) * waves.rows() + row) * padded;
      const int blocks_of_row = (first.width + columns - 1) / columns;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(member, blocks_of_row), [&](int b) {
        const int i = b * columns, count = host ? Kokkos::min(+columns, first.width - i) : 1;
        T x[angles][columns] = {};
        BRACEWELL_UNROLL_FOR (int p = 0; p < angles; ++p)
          if (p < own)
            for (int c = 0; c < count; ++c)
              x[p][c] = values[std::int64_t(p) * first.width + i + c];
        for (int r = 0; r < rows; ++r) {
          const T* const sum = of_rows + std::int64_t(r) * padded + i;
          const Factors factor = factors[r];
          BRACEWELL_UNROLL_FOR (int p = 0; p < angles; ++p)
            for (int c = 0; c < count; ++c)
              x[p][c] -= factor.of[p] * sum[c];
        }
        BRACEWELL_UNROLL_FOR (int p = 0; p < angles; ++p)
          if (p < own)
            for (int c = 0; c < count; ++c)
              values[std::int64_t(p) * first.width + i + c] = x[p][c];
      });
      member.team_barrier();
    }
  }

private:
  /// Of a row.
  struct alignas(16) Factors {
    T of[angles];
  };
  static constexpr std::size_t scratch_bytes = rows_at_once * sizeof(Factors);
};

} // namespace Bracewell::Impl
