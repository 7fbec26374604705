// Examples of a page that are code of a test: a block of the page after `<!-- example: NAME -->` shows the
// lines between `// [NAME` and `// NAME]` of the source.
#pragma once

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace Test {

/// Every example of the pages is its piece of the source without the indentation of a test's body, and every
/// piece of the source is on a page.
inline void check_page_examples(const std::filesystem::path& source_file,
                                const std::vector<std::filesystem::path>& page_files) {
  const auto read = [](const std::filesystem::path& path) {
    std::ifstream file(path);
    REQUIRE(file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
      lines.push_back(line);
    return lines;
  };
  const auto source = read(source_file);
  int blocks = 0;
  for (const auto& page_file : page_files) {
    const auto page = read(page_file);
    for (std::size_t i = 0; i < page.size(); ++i) {
      if (!page[i].starts_with("<!-- example: "))
        continue;
      ++blocks;
      const std::string name = page[i].substr(14, page[i].find(" -->") - 14);
      CAPTURE(page_file, name);
      REQUIRE(page.at(i + 1) == "```cpp");
      std::size_t shown = i + 2;
      auto line = std::find(source.begin(), source.end(), "  // [" + name);
      REQUIRE(line != source.end());
      for (++line; line != source.end() && *line != "  // " + name + "]"; ++line, ++shown)
        CHECK(page.at(shown) == (line->starts_with("  ") ? line->substr(2) : *line));
      CHECK(page.at(shown) == "```");
    }
  }
  const auto examples =
      std::count_if(source.begin(), source.end(), [](const auto& l) { return l.starts_with("  // ["); });
  CHECK(blocks == examples);
}

} // namespace Test
