// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace Bracewell::Impl {

/// "Bracewell::project" + "::rows". Not part of its callers, where it would be compiled once per kernel.
[[gnu::noinline]] inline std::string label_of(const char* function, const char* step) {
  return std::string(function).append(step);
}

} // namespace Bracewell::Impl
