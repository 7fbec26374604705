// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/error.hpp>

#include <cstdint>
#include <string>

namespace Bracewell {

/// The smallest size >= n whose prime factors are 2, 3, 5 and 7, for which every FFT library has fast codes.
/// @param even  also a multiple of 2
/// @throws Error when n < 1
inline std::int64_t next_fast_size(std::int64_t n, bool even = false) {
  if (n < 1)
    Impl::fail("next_fast_size", "n", "a size >= 1", std::to_string(n));
  for (;; ++n) {
    std::int64_t rest = n;
    for (const int prime : {2, 3, 5, 7})
      while (rest % prime == 0)
        rest /= prime;
    if (rest == 1 && !(even && n % 2 != 0))
      return n;
  }
}

} // namespace Bracewell
