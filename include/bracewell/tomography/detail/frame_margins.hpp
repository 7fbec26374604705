// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <numbers>

namespace Bracewell::Impl {

/// Checks PhaseOptions.
template <class Options>
void check_phase(const Arguments& arguments, const Options& options) {
  arguments.positive("options.wavelength", options.wavelength);
  arguments.positive("options.distance", options.distance);
  arguments.positive("options.pixel_size", options.pixel_size);
  arguments.positive("options.delta_beta", options.delta_beta);
  arguments.positive("options.regularisation", options.regularisation);
  arguments.within("options.padding", options.padding.value_or(0), 0, 1 << 14, " pixels");
}

/// pi wavelength distance / pixel^2: the defocus.
template <class Options>
double phase_defocus(const Options& options) {
  return std::numbers::pi * options.wavelength * options.distance / (options.pixel_size * options.pixel_size);
}

/// What PhaseRetrieval does with values on their way to its filter, and behind it.
enum class FrameValues {
  Kept,                ///< nothing
  Zero,                ///< nothing, with zeros beyond the edges
  Contrast,            ///< transmission to its difference from 1
  Transmission,        ///< attenuation to transmission
  AttenuationContrast, ///< attenuation to the difference of the transmission from 1
  MinusLog,            ///< transmission to attenuation
  Minus                ///< differences of the transmission from 1 to attenuation
};

/// Index on an axis of `length` that value i of its continuation to `size` repeats: half of the margin continues the
/// last value, half the first one.
KOKKOS_INLINE_FUNCTION int repeated_index(int i, int length, int size) {
  return i < length ? i : (i < length + (size - length) / 2 ? length - 1 : 0);
}

/// Frames of some angles from sinograms, with margins.
template <class T>
struct PadFrames {
  const T* sinograms; ///< [rows, angles, width], those of the first angle
  T* padded;          ///< [frames, padded_rows, padded_width]
  int frames;         ///< that there are; those behind them are zero
  int angles, rows, width, padded_rows, padded_width;
  FrameValues change;

  KOKKOS_FUNCTION T changed(T value) const {
    switch (change) {
    case FrameValues::Contrast:
      return value - T(1);
    case FrameValues::Transmission:
      return Kokkos::exp(-value);
    case FrameValues::AttenuationContrast:
      return Kokkos::expm1(-value);
    default:
      return value;
    }
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t number, const Member& member) const {
    const auto frame = static_cast<int>(number / padded_rows), y = static_cast<int>(number % padded_rows);
    const bool zeros = change == FrameValues::Zero, there = frame < frames && (!zeros || y < rows);
    const T* in = sinograms +
                  (std::int64_t(repeated_index(y, rows, padded_rows)) * angles + (there ? frame : 0)) * width;
    T* out = padded + number * padded_width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, padded_width), [&](int x) {
      out[x] = there && (!zeros || x < width) ? changed(in[repeated_index(x, width, padded_width)]) : T(0);
    });
  }
};

/// Spectra times real factors, which all frames share.
template <class T>
struct MultiplyFrames {
  Kokkos::complex<T>* spectra; ///< [frames, rows, columns]
  const T* factors;            ///< [rows, columns]
  int rows, columns;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t number, const Member& member) const {
    Kokkos::complex<T>* values = spectra + number * columns;
    const T* factor = factors + number % rows * columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, columns), [&](int k) { values[k] *= factor[k]; });
  }
};

/// Frames back to sinograms, without their margins.
template <class T>
struct CropFrames {
  const T* padded; ///< as of PadFrames
  T* sinograms;
  int frames, angles, rows, width, padded_rows, padded_width;
  FrameValues change;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t number, const Member& member) const {
    const auto frame = static_cast<int>(number / rows), y = static_cast<int>(number % rows);
    const T* in = padded + (std::int64_t(frame) * padded_rows + y) * padded_width;
    T* out = sinograms + (std::int64_t(y) * angles + frame) * width;
    const T least = Kokkos::Experimental::epsilon_v<T>;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int x) {
      out[x] = change == FrameValues::MinusLog ? -Kokkos::log(Kokkos::max(in[x], least))
                                               : (change == FrameValues::Minus ? -in[x] : in[x]);
    });
  }
};

/// The transpose of repeating values beyond the edges: margins are added to what they repeat.
template <class T>
struct FoldFrames {
  const T* padded; ///< as of PadFrames
  T* sinograms;
  int frames, angles, rows, width, padded_rows, padded_width;

  /// The values of a continued axis that repeat value i: two ranges.
  struct Repeats {
    int begin, end, second, second_end;
  };
  KOKKOS_FUNCTION static Repeats repeats(int i, int length, int size) {
    const int middle = length + (size - length) / 2;
    return {i, i == length - 1 ? middle : i + 1, middle, i == 0 ? size : middle};
  }

  KOKKOS_FUNCTION T sum_of_row(const T* in, const Repeats& x) const {
    T sum = 0;
    for (int k = x.begin; k < x.end; ++k)
      sum += in[k];
    for (int k = x.second; k < x.second_end; ++k)
      sum += in[k];
    return sum;
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t number, const Member& member) const {
    const auto frame = static_cast<int>(number / rows), row = static_cast<int>(number % rows);
    const T* in = padded + std::int64_t(frame) * padded_rows * padded_width;
    T* out = sinograms + (std::int64_t(row) * angles + frame) * width;
    const Repeats y = repeats(row, rows, padded_rows);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int column) {
      const Repeats x = repeats(column, width, padded_width);
      T sum = 0;
      for (int k = y.begin; k < y.end; ++k)
        sum += sum_of_row(in + std::int64_t(k) * padded_width, x);
      for (int k = y.second; k < y.second_end; ++k)
        sum += sum_of_row(in + std::int64_t(k) * padded_width, x);
      out[column] = sum;
    });
  }
};

} // namespace Bracewell::Impl
