// SPDX-License-Identifier: MIT
#pragma once

#if !defined(__cpp_exceptions)
#error "Bracewell: expected a compiler with exceptions, which report wrong arguments, found -fno-exceptions."
#endif

#include <stdexcept>
#include <string>

namespace Bracewell {

/// Thrown for every wrong input, before anything is written. The message is one sentence naming function,
/// argument, what was expected and what was found.
class Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

namespace Impl {

/// Throws Error("Bracewell::function: argument: expected ..., found ...").
[[noreturn, gnu::cold]] inline void fail(const char* function, const char* argument,
                                         const std::string& expected, const std::string& found) {
  throw Error(std::string("Bracewell::") + function + ": " + argument + ": expected " + expected +
              ", found " + found);
}

} // namespace Impl
} // namespace Bracewell
