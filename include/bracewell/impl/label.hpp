// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <string>

namespace Bracewell::Impl {

/// The name of a kernel for tools, "Bracewell::project" + "::rows". The text is made where a kernel is launched: callers that
/// made strings, and destroyed them, would be twice as long.
struct Label {
  const char* function;
  const char* step;

  Label(const char* function_, const char* step_ = "") : function(function_), step(step_) {}

  [[gnu::noinline]] operator std::string() const {
    char name[128];
    std::snprintf(name, sizeof name, "%s%s", function, step);
    return name;
  }
};

} // namespace Bracewell::Impl
