// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <vector>

namespace Bracewell::Examples {

/// The middle value, of an even number of values the upper one.
/// @param values  one at least
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

} // namespace Bracewell::Examples
