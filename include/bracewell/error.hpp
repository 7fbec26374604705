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

/// Throws Error("Bracewell::function: argument: expected ..., found ..."). Most texts are literals: where callers made
/// strings of them, and destroyed these, compilers would spend more on checks than on what they guard.
[[noreturn, gnu::cold, gnu::noinline]] inline void fail(const char* function, const char* argument,
                                                        const char* expected, const char* found) {
  throw Error(std::string("Bracewell::")
                  .append(function)
                  .append(": ")
                  .append(argument)
                  .append(": expected ")
                  .append(expected)
                  .append(", found ")
                  .append(found));
}
[[noreturn, gnu::cold, gnu::noinline]] inline void
fail(const char* function, const char* argument, const std::string& expected, const std::string& found) {
  fail(function, argument, expected.c_str(), found.c_str());
}

} // namespace Impl
} // namespace Bracewell
