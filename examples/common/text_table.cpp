// SPDX-License-Identifier: MIT
#include "text_table.hpp"

#include "atomic_file.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>

namespace Bracewell::Examples {

void write_text_table(const std::filesystem::path& path, std::span<const TextColumn> columns,
                      std::span<const std::string> comments) {
  if (columns.empty())
    throw std::invalid_argument("write_text_table: no columns");
  const std::size_t rows = columns[0].values.size();
  std::vector<std::string> lines(rows + 1);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const auto& column = columns[c];
    if (column.values.size() != rows)
      throw std::invalid_argument("write_text_table: columns of different lengths");
    std::vector<std::string> cells{column.name};
    for (const double value : column.values) {
      std::array<char, 400> text; // the largest double has 309 digits
      std::snprintf(text.data(), text.size(), "%.*f", std::clamp(column.decimals, 0, 20), value);
      cells.emplace_back(text.data());
    }
    const std::size_t widest = std::ranges::max(cells, {}, &std::string::size).size();
    for (std::size_t r = 0; r < cells.size(); ++r)
      lines[r] += std::string(widest - cells[r].size() + 2, ' ') + cells[r];
  }
  lines[0][0] = '#'; // one of the two blanks before every column
  std::string text;
  for (const auto& comment : comments)
    text += "# " + comment + "\n";
  for (const auto& line : lines)
    text += line + "\n";
  if (!creator().empty())
    text += "# " + creator() + "\n";
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

} // namespace Bracewell::Examples
