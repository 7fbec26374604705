// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// One column of a text table.
struct TextColumn {
  std::string name; ///< without blanks
  std::vector<double> values;
  int decimals = 6; ///< digits after the point
};

/// Writes columns of equal length as aligned text under a line of names that begins with '#', and before it
/// `comments`, one per line. NumPy and gnuplot read it as it is. Values that are not finite are written as
/// nan and inf. The file appears whole or not at all.
void write_text_table(const std::filesystem::path& path, std::span<const TextColumn> columns,
                      std::span<const std::string> comments = {});

} // namespace Bracewell::Examples
