// SPDX-License-Identifier: MIT
#pragma once

#include "input_error.hpp"
#include "ranges.hpp"
#include "star.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace Bracewell::Examples {

/// One table being read as numbers.
class NumberReader {
public:
  NumberReader(const std::filesystem::path& file, const StarTable& table) : file_(file), table_(table) {}

  const StarTable& table() const { return table_; }

  [[noreturn]] void fail(std::size_t row, std::string_view column, const std::string& what) const {
    throw InputError(file_.string() + ": table data_" + table_.name + ", row " + std::to_string(row + 1) +
                     ", column " + std::string(column) + ": " + what);
  }

  double real(std::size_t row, std::size_t column) const {
    return number(table_.value(row, column), row, column);
  }

  /// "[1,2.5,-3]", or one number.
  std::vector<double> list(std::size_t row, std::size_t column) const {
    std::string text = table_.value(row, column);
    if (text.starts_with('[') && text.ends_with(']'))
      text = text.substr(1, text.size() - 2);
    std::vector<double> values;
    for (std::size_t begin = 0, end; begin < text.size(); begin = end + 1) {
      end = std::min(text.find(',', begin), text.size());
      values.push_back(number(text.substr(begin, end - begin), row, column));
    }
    return values;
  }

  std::string text(std::size_t row, std::size_t column) const { return table_.value(row, column); }

  std::int64_t integer(std::size_t row, std::size_t column) const {
    const double value = real(row, column); // RELION writes some whole numbers as 1.000000
    if (value != std::floor(value) || std::abs(value) > 1e15)
      fail(row, table_.columns[column], "expected a whole number, found '" + table_.value(row, column) + "'");
    return static_cast<std::int64_t>(value);
  }

private:
  double number(const std::string& text, std::size_t row, std::size_t column) const {
    // std::from_chars knows no plus sign.
    const char* begin = text.data() + (text.starts_with('+') && !text.starts_with("+-") ? 1 : 0);
    const char* end = text.data() + text.size();
    double value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (stop != end || error != std::errc() || !std::isfinite(value))
      fail(row, table_.columns[column], "expected a finite number, found '" + text + "'");
    if (const std::string expected = beyond_range(table_.columns[column], value); !expected.empty())
      fail(row, table_.columns[column], expected + ", found " + text);
    return value;
  }

  const std::filesystem::path& file_;
  const StarTable& table_;
};

} // namespace Bracewell::Examples
