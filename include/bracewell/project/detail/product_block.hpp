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
        keep(right);
        for (int r = 0; r < rows; ++r)
          sum[r][c] += left[r] * right;
      }
    }
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        sums[r * stride + c] += across<lanes>(sum[r][c]);
  }

private:
  /// In a register: compilers would rather read it again for every row.
  static void keep([[maybe_unused]] Lanes& numbers) {
#if defined(__AVX512F__)
    asm("" : "+v"(numbers));
#elif defined(__x86_64__)
    asm("" : "+x"(numbers));
#endif
  }

  /// The sum of the numbers of a vector.
  template <int count>
  static T across(const typename Vector<T, count>::type& numbers) {
    if constexpr (count == 1) {
      return numbers[0];
    } else {
      typename Vector<T, count / 2>::type lower, upper;
      std::memcpy(&lower, &numbers, sizeof lower);
      std::memcpy(&upper, reinterpret_cast<const char*>(&numbers) + sizeof lower, sizeof upper);
      return across<count / 2>(lower + upper);
    }
  }
};

} // namespace Bracewell::Impl
