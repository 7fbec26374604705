// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Whole turns: the rows of half a turn, then the same seen from behind, mirrored about a trial centre. Where
/// the mirrored row has nothing, the row that continues the sequence of angles stands in.
template <class T>
struct TurnSinogram {
  const T* half;            ///< [angles, width]
  T* whole;                 ///< [trials, 2 angles, width]
  int angles, width, first; ///< twice the centre of the first trial, one more in each of the next

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const int trial = static_cast<int>(row / (2 * angles)), p = static_cast<int>(row % (2 * angles));
    const T* same = half + std::int64_t(p % angles) * width;
    const T* flipped = half + std::int64_t(angles - 1 - p % angles) * width;
    const int twice = first + trial;
    T* out = whole + row * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      const int mirrored = twice - i;
      out[i] = p < angles ? same[i] : (mirrored >= 0 && mirrored < width ? same[mirrored] : flipped[i]);
    });
  }
};

/// Mean amplitude, per trial, where the spectrum of a turn has nothing: below the double wedge
/// |m| <= 2 pi R q of an object of radius R (m cycles per turn, q per pixel).
template <class ExecutionSpace, class T>
struct WedgeAmplitude {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  const Kokkos::complex<T>* spectra; ///< [trials, rows, columns]
  double* amplitudes;
  int rows, columns, drop;
  double slope;                       ///< m per column at the wedge's edge
  double row_damping, column_damping; ///< noise, which is everywhere, counts less at high frequencies

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const std::int64_t count = std::int64_t(rows) * columns;
    const Kokkos::complex<T>* spectrum = spectra + member.league_rank() * count;
    double sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, rows),
        [&](int row, double& partial) {
          const int m = row <= rows / 2 ? row : rows - row;
          if (m < drop)
            return;
          for (int k = 2; k < columns && k * slope < m; ++k)
            partial += Kokkos::abs(spectrum[std::int64_t(row) * columns + k]) *
                       Kokkos::exp(-row_damping * m * m - column_damping * k * k);
        },
        sum);
    Kokkos::single(Kokkos::PerTeam(member), [&] { amplitudes[member.league_rank()] = sum; });
  }
};

/// Half a turn, reduced by means over `bin` columns and `skip` rows.
template <class T>
struct ReduceSinogram {
  const T* sinogram;
  const int* rows; ///< of the half turn, in order
  T* reduced;
  int width, reduced_width, bin, skip;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    T* out = reduced + row * reduced_width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, reduced_width), [&](int i) {
      T sum = 0;
      for (int p = 0; p < skip; ++p) {
        const T* in = sinogram + std::int64_t(rows[row * skip + p]) * width;
        for (int k = 0; k < bin; ++k)
          sum += in[i * bin + k];
      }
      out[i] = sum / T(bin * skip);
    });
  }
};

/// Takes the mean over the angles from every column: detector pixels of wrong response, which make rings, are
/// no part of the object.
template <class T>
struct CentreColumns {
  T* half; ///< [angles, width]
  int angles, width;

  KOKKOS_FUNCTION void operator()(int i) const {
    double sum = 0;
    for (int p = 0; p < angles; ++p)
      sum += half[std::int64_t(p) * width + i];
    const T mean = T(sum / angles);
    for (int p = 0; p < angles; ++p)
      half[std::int64_t(p) * width + i] -= mean;
  }
};

} // namespace Bracewell::Impl
