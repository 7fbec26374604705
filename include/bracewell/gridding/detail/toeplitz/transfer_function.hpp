// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/image_on_grid.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Transfer function of a convolution whose response is the complex conjugate of itself mirrored, so that it
/// is real: of the response's transform, by rows. For real images, to which the response's real part applies,
/// the even part, in half spectra.
template <class T, int Dim>
struct TransferFunction {
  GridShape<Dim> grid, stored; ///< sizes of the transform and of the transfer function
  const Kokkos::complex<T>* transform;
  T* values;
  bool even;
  T factor;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    std::int64_t rest = row, here = 0, opposite = 0, stride = 1;
    for (int d = 1; d < Dim; ++d) {
      const std::int64_t k = rest % grid.size[d];
      rest /= grid.size[d];
      here += stride * k;
      opposite += stride * (k == 0 ? 0 : grid.size[d] - k);
      stride *= grid.size[d];
    }
    const Kokkos::complex<T>*const source = transform + here * grid.size[0], *const mirrored =
                                                                                 transform +
                                                                                 opposite * grid.size[0];
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, stored.size[0]), [&](int k) {
      T value = source[k].real();
      if (even)
        value = T(0.5) * (value + mirrored[k == 0 ? 0 : grid.size[0] - k].real());
      values[row * stored.size[0] + k] = factor * value;
    });
  }
};

/// Spectra of slices, times a transfer function.
template <class T>
struct MultiplySpectra {
  const T* transfer;
  Kokkos::complex<T>* spectra;
  int columns;
  std::int64_t rows; ///< of a spectrum

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const T* const factors = transfer + row % rows * columns;
    Kokkos::complex<T>* const values = spectra + row * columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, columns), [&](int k) { values[k] *= factors[k]; });
  }
};

/// Real weights as samples; 1 without weights.
template <class T>
struct WeightsAsSamples {
  const T* weights;
  Kokkos::complex<T>* samples;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { samples[i] = weights ? weights[i] : T(1); }
};

/// The frequencies of a line in the order in which StepPasses leaves them where lanes of a team have neighbouring groups.
struct LineOrder {
  int first, second, groups;

  template <class Steps>
  static constexpr LineOrder of(Steps) {
    return {Steps::first, Steps::second, Steps::groups};
  }
  KOKKOS_FUNCTION int frequency(int position) const {
    const int group = position % groups;
    return group / second + first * (group % second) + position / groups * groups;
  }
};

/// The transfer function as ToeplitzColumns takes it (TransferFunction), by columns.
template <class T>
struct OrderedTransferFunction {
  LineOrder rows, columns; ///< of a line along the rows, and along the columns
  int row_length, column_length;
  const Kokkos::complex<T>* transform; ///< [column_length, row_length] of the response
  T* values;
  bool even;
  T factor;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t column, const Member& member) const {
    const int x = rows.frequency(static_cast<int>(column)), opposite = x == 0 ? 0 : row_length - x;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, column_length), [&](int position) {
      const int y = columns.frequency(position);
      T value = transform[std::int64_t(y) * row_length + x].real();
      if (even)
        value =
            T(0.5) *
            (value + transform[std::int64_t(y == 0 ? 0 : column_length - y) * row_length + opposite].real());
      values[column * column_length + position] = factor * value;
    });
  }
};

} // namespace Bracewell::Impl
