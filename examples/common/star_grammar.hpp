// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

/// The grammar of STAR files, which is that of CIF files. This header and its source are C++17: see the source.
namespace Bracewell::Examples {

/// One item of a data block: a name and its value, a loop of several names, or what STAR tables do not have.
struct StarItem {
  enum Kind { Pair, Loop, Other } kind = Other;
  std::vector<std::string> tags;   ///< as in the file, with the leading underscore
  std::vector<std::string> values; ///< [rows, tags], quotes removed
};

struct StarBlock {
  std::string name; ///< "particles" for data_particles; may be empty
  std::vector<StarItem> items;
};

/// Throws InputError where the text is not in the grammar; `file` is its name in messages.
std::vector<StarBlock> parse_star(const std::string& text, const std::string& file);

} // namespace Bracewell::Examples
