// SPDX-License-Identifier: MIT
#pragma once

#include <iostream>
#include <string>
#include <vector>

namespace Bracewell::Examples {

inline void print_warning(const std::string& program, const std::string& sentence) {
  std::cerr << program << ": warning: " << sentence << '\n';
}

inline void print_warnings(const std::string& program, const std::vector<std::string>& sentences) {
  for (const auto& sentence : sentences)
    print_warning(program, sentence);
}

} // namespace Bracewell::Examples
