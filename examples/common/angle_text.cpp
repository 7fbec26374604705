// SPDX-License-Identifier: MIT
#include "angle_text.hpp"

#include "input_error.hpp"
#include "input_file.hpp"

#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <string>

namespace Bracewell::Examples {
namespace {

/// The number that a text begins with, behind blanks.
std::optional<double> leading_number(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos)
    return {};
  const char* const first = text.data() + begin + (text[begin] == '+' ? 1 : 0);
  double value = 0;
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), value);
  const bool alone =
      end == text.data() + text.size() || std::string(" \t\r,;").find(*end) != std::string::npos;
  return error == std::errc() && alone ? std::optional(value) : std::nullopt;
}

} // namespace

std::vector<double> read_angle_text(const std::filesystem::path& path) {
  std::istringstream lines(InputFile(path).read_text());
  const bool mdoc = path.extension() == ".mdoc";
  std::vector<double> angles;
  std::map<std::int64_t, double> of_images;
  std::optional<std::int64_t> image;
  std::string line;
  for (std::int64_t number = 1; std::getline(lines, line); ++number) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#')
      continue;
    const auto fail = [&](const char* expected) {
      throw InputError(path.string() + ": line " + std::to_string(number) + ": expected " + expected +
                       ", found " + line.substr(begin, 40));
    };
    const std::size_t equals = line.find('=');
    if (!mdoc) {
      const auto value = leading_number(line);
      if (!value)
        fail("an angle");
      angles.push_back(*value);
    } else if (line.substr(begin).starts_with("[ZValue") || line.substr(begin).starts_with("TiltAngle")) {
      const auto value = equals == std::string::npos
                             ? std::nullopt
                             : leading_number(line.substr(equals + 1, line.find(']') - equals - 1));
      if (!value)
        fail("a number");
      if (line[begin] == '[')
        image = std::int64_t(*value);
      else if (image)
        of_images[*image] = *value;
    }
  }
  for (const auto& [place, angle] : of_images)
    angles.push_back(angle);
  return angles;
}

} // namespace Bracewell::Examples
