// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/vector.hpp>

#include <cstring>

namespace Bracewell::Impl {

/// Inner products of `rows` vectors with `columns` others, in the registers of a host: as many sums as leave room
/// for what they are made of.
template <class T>
struct ProductBlock {
#if defined(__AVX512F__)
  static constexpr int bytes = 64, rows = 4, columns = 6;
#elif defined(__AVX__)
  static constexpr int bytes = 32, rows = 4, columns = 3;
#else
  static constexpr int bytes = 16, rows = 4, columns = 3;
#endif
  static constexpr int lanes = bytes / sizeof(T);
  using Lanes = typename Vector<T, lanes>::type;

  /// sums[r * stride + c] += a_r . b_c, where a_r = a + r * length and b_c = b + c * length; length: a multiple of
  /// lanes.
  static void add(const T* a, const T* b, int length, T* sums, int stride) {
    Lanes sum[rows][columns] = {};
    for (int i = 0; i < length; i += lanes) {
      Lanes left[rows];
      for (int r = 0; r < rows; ++r)
        std::memcpy(&left[r], a + r * length + i, sizeof(Lanes));
      for (int c = 0; c < columns; ++c) {
        Lanes right;
        std::memcpy(&right, b + c * length + i, sizeof right);
        for (int r = 0; r < rows; ++r)
          sum[r][c] += left[r] * right;
      }
    }
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        sums[r * stride + c] += across(sum[r][c]);
  }

private:
  static T across(const Lanes& lanes_of_sum) {
    T part[lanes];
    std::memcpy(part, &lanes_of_sum, sizeof part);
    for (int half = lanes / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i)
        part[i] += part[i + half];
    return part[0];
  }
};

} // namespace Bracewell::Impl
