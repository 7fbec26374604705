// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

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
