// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/plain_complex.hpp>
#include <bracewell/impl/turns.hpp>
#include <bracewell/ptychography/detail/patterns/pattern_sums.hpp>
#include <bracewell/ptychography/detail/sums/exit_waves.hpp>
#include <bracewell/ptychography/detail/sums/probe_spectra.hpp>

namespace Bracewell::Impl {

/// Loads and stores of TransformLines, of(wave, first line) as seen by a team. Waves are numbered pattern by pattern, and
/// of a pattern mode by mode.

/// Columns of exit waves; rows y are those of the probe.
template <class T>
struct LoadExitWaves {
  Scan scan;
  Selection selection;
  const Kokkos::complex<T>* object;
  Probes<T> probes;

  struct Columns {
    const Kokkos::complex<T>*object, *probe;
    int columns, m;

    KOKKOS_FORCEINLINE_FUNCTION PlainComplex<T> operator()(int x, int y) const {
      if (y >= m)
        return {0, 0};
      return times<false>(plain(object[y * columns + x]), plain(probe[y * m + x]));
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Columns of(int wave, int x) const {
    const int i = wave / probes.modes, mode = wave - i * probes.modes, m = scan.probe;
    return {object + scan.corner(selection(i)) + x,
            probes.data + i * probes.stride + std::int64_t(mode) * m * m + x, static_cast<int>(scan.columns),
            m};
  }
};

/// Lines of waves [..., rows, columns] as they are.
template <class T, bool columns_are_lines>
struct WaveLines {
  Kokkos::complex<T>* waves;
  int rows, columns;

  struct Lines {
    Kokkos::complex<T>* wave;
    int pitch;

    KOKKOS_FORCEINLINE_FUNCTION Kokkos::complex<T>& at(int line, int index) const {
      return wave[columns_are_lines ? index * pitch + line : line * pitch + index];
    }
    KOKKOS_FORCEINLINE_FUNCTION PlainComplex<T> operator()(int line, int index) const {
      return plain(at(line, index));
    }
    KOKKOS_FORCEINLINE_FUNCTION void operator()(int line, int index, const PlainComplex<T>& value) const {
      at(line, index) = Kokkos::complex<T>(value.re, value.im);
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Lines of(int wave, int line) const {
    return {waves + std::int64_t(wave) * rows * columns + (columns_are_lines ? line : line * columns),
            columns};
  }
};

/// Columns of the gradients of exit waves, on rows of the probe.
template <class T>
struct StoreWaveGradients {
  WaveLines<T, true> waves;
  LoadExitWaves<T> exit_waves;
  const PatternSums<T>* patterns;

  struct Columns {
    typename WaveLines<T, true>::Lines wave;
    typename LoadExitWaves<T>::Columns exit_wave;
    T factor;

    KOKKOS_FORCEINLINE_FUNCTION void operator()(int x, int y, const PlainComplex<T>& value) const {
      if (y >= exit_wave.m)
        return;
      if (factor == 0)
        return wave(x, y, value);
      const PlainComplex<T> psi = exit_wave(x, y);
      wave(x, y, {value.re - factor * psi.re, value.im - factor * psi.im});
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Columns of(int wave, int x) const {
    return {waves.of(wave, x), exit_waves.of(wave, x), patterns[wave / exit_waves.probes.modes].wave_factor};
  }
};

/// Rows of the spectra of probes, shifted.
template <class T>
struct LoadShiftedSpectrum {
  ShiftedSpectra<T> spectra;

  struct Rows {
    const Kokkos::complex<T>*spectrum, *of_rows, *of_columns, *relaxation, *coefficients;
    int m, count; ///< of the relaxation, which the first mode has
    T scale;

    KOKKOS_FORCEINLINE_FUNCTION PlainComplex<T> operator()(int row, int column) const {
      const PlainComplex<T> both = times<false>(plain(of_rows[row]), plain(of_columns[column]));
      Kokkos::complex<T> value = spectrum[row * m + column];
      for (int c = 0; c < count; ++c)
        value += coefficients[c] * relaxation[(c * m + row) * m + column];
      return times<false>(plain(value), PlainComplex<T>{both.re * scale, both.im * scale});
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Rows of(int wave, int row) const {
    const int modes = spectra.ramp.modes, m = spectra.ramp.m, i = wave / modes, mode = wave - i * modes;
    const Kokkos::complex<T>* const phase = spectra.ramp.phases + std::int64_t(2) * i * m;
    const int count = mode == 0 ? spectra.relaxation : 0;
    return {spectra.spectra + (std::int64_t(mode) * m + row) * m,
            phase + row,
            phase + m,
            spectra.spectra + (std::int64_t(modes) * m + row) * m,
            count > 0 ? spectra.coefficients + spectra.ramp.selection(i) * count : nullptr,
            m,
            count,
            T(1) / T(m * m)};
  }
};

/// Columns of conj(O) G.
template <class T>
struct LoadProbeTerms {
  Scan scan;
  Selection selection;
  const Kokkos::complex<T>* object;
  WaveGradients<T, T> waves;
  int modes;

  struct Columns {
    const Kokkos::complex<T>*object, *gradient;
    int columns, pitch;

    KOKKOS_FORCEINLINE_FUNCTION PlainComplex<T> operator()(int x, int y) const {
      return plain(conjugate_product(object[y * columns + x], gradient[y * pitch + x]));
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Columns of(int wave, int x) const {
    const int i = wave / modes, mode = wave - i * modes;
    return {object + scan.corner(selection(i)) + x,
            waves.data + i * waves.pattern_stride + mode * waves.mode_stride + x,
            static_cast<int>(scan.columns), static_cast<int>(waves.row_stride)};
  }
};

/// What the near field is along one axis: exp(-i pi k^2 / F + 2 pi i k (f - s) / n) / n on spectra, for the fractions f by which
/// probes were moved, and the move s of a beam. [patterns, 2, n]: of the frequencies along rows, then columns.
template <class T>
struct TransferPhases {
  const double* fractions; ///< [N, 2], or null
  Selection selection;
  Kokkos::complex<T>* phases;
  int n;
  double inverse_fresnel;
  double moves[2] = {0, 0}; ///< s

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const int x = static_cast<int>(index % n), axis = static_cast<int>(index / n % 2);
    const double k = 2 * x < n ? x : x - n;
    const double f = fractions ? fractions[2 * selection(index / n / 2) + axis] : 0;
    const double turns = -0.5 * k * k * inverse_fresnel + k * (f - moves[axis]) / n;
    const auto phase = unit_phase(turns - Kokkos::floor(turns));
    phases[index] = Kokkos::complex<T>(static_cast<T>(phase.real() / n), static_cast<T>(phase.imag() / n));
  }
};

} // namespace Bracewell::Impl
