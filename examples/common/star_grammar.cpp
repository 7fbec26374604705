// SPDX-License-Identifier: MIT
// CMake compiles this file as C++17. gemmi 0.5 keeps a std::vector of a type that is not complete
// yet, which clang and nvcc reject in C++20, where the members of std::vector are constexpr. g++ accepts both.
#include "star_grammar.hpp"

#include "input_error.hpp"

#include <gemmi/cif.hpp>

#include <utility>

namespace Bracewell::Examples {
namespace {

StarItem to_item(gemmi::cif::Item& item) {
  if (item.type == gemmi::cif::ItemType::Pair)
    return {StarItem::Pair, {item.pair[0]}, {gemmi::cif::as_string(item.pair[1])}};
  if (item.type != gemmi::cif::ItemType::Loop)
    return {};
  StarItem loop{StarItem::Loop, std::move(item.loop.tags), std::move(item.loop.values)};
  for (auto& value : loop.values)
    if (!value.empty() && (value[0] == '"' || value[0] == '\'' || value[0] == ';'))
      value = gemmi::cif::as_string(value);
  return loop;
}

} // namespace

std::vector<StarBlock> parse_star(const std::string& text, const std::string& file) {
  gemmi::cif::Document document;
  try {
    document = gemmi::cif::read_memory(text.data(), text.size(), file.c_str());
  } catch (const std::exception& error) { // the library's kinds of error share nothing narrower
    std::string what = error.what();
    if (what.compare(0, file.size() + 1, file + ":") == 0)
      what.erase(0, file.size() + 1);
    throw InputError(file + ": is not a STAR file: " + what);
  }
  std::vector<StarBlock> blocks;
  for (auto& block : document.blocks) {
    blocks.push_back({block.name == "#" ? "" : block.name, {}}); // the library's stand-in for no name
    for (auto& item : block.items)
      blocks.back().items.push_back(to_item(item));
  }
  return blocks;
}

} // namespace Bracewell::Examples
