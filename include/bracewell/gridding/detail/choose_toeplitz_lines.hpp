// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/toeplitz_columns.hpp>
#include <bracewell/impl/line_steps.hpp>

#include <array>
#include <cstddef>

namespace Bracewell::Impl {

/// Numbers of the longest lines that ToeplitzRows and ToeplitzColumns are compiled for.
inline constexpr int most_toeplitz_line = 8192;

/// Lines that they transform for images of a shape, and teams' columns; none: {}.
struct ToeplitzLineSizes {
  int rows = 0, columns = 0; ///< numbers of a row, and of a column
  int columns_of_team = 0;

  explicit operator bool() const { return rows > 0; }
};

/// @param shape  height and width
/// @param chip   bytes that a team may have: 0 on hosts
template <class T>
ToeplitzLineSizes choose_toeplitz_lines(const std::array<int, 2>& shape, std::size_t chip) {
  ToeplitzLineSizes result;
  const auto line = [&](int size, const auto& bytes) {
    int chosen = 0;
    // Smaller images would be padded too far.
    if (4 * size > line_sizes.front())
      for (const int n : line_sizes)
        if (chosen == 0 && n <= most_toeplitz_line && n >= 2 * size - 1)
          visit_line_steps(n, [&](auto steps) { chosen = bytes(steps) <= chip ? n : 0; });
    return chosen;
  };
  const int rows = line(shape[1], [](auto steps) { return decltype(steps)::template bytes<T>; }),
            columns = line(shape[0], [&](auto steps) {
              constexpr int of_team = toeplitz_columns<T, decltype(steps)>();
              result.columns_of_team = of_team;
              return ToeplitzColumnTeam<T, decltype(steps), of_team>::bytes;
            });
  if (rows == 0 || columns == 0)
    return {};
  result.rows = rows, result.columns = columns;
  return result;
}

} // namespace Bracewell::Impl
