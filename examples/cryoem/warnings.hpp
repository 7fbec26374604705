// SPDX-License-Identifier: MIT
#pragma once

#include <iostream>
#include <string>
#include <vector>

namespace Bracewell::Examples {

inline void print_warning(const std::string& program_name, const std::string& sentence) {
  std::cerr << program_name << ": warning: " << sentence << '\n';
}

inline void print_warnings(const std::string& program_name, const std::vector<std::string>& sentences) {
  for (const auto& sentence : sentences)
    print_warning(program_name, sentence);
}

} // namespace Bracewell::Examples
