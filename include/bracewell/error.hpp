// SPDX-License-Identifier: MIT
#pragma once

#if !defined(__cpp_exceptions)
#error "Bracewell: expected a compiler with exceptions, which report wrong arguments, found -fno-exceptions."
#endif

#include <bracewell/version.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace Bracewell {

/// Thrown for every wrong input, before anything is written. The message is one sentence,
/// "Bracewell::function: argument: expected this, found that", and the four parts can be asked for.
class Error : public std::runtime_error {
public:
  /// A message without parts: what another library said, for example.
  using std::runtime_error::runtime_error;

  /// A wrong argument. `function` is its name without "Bracewell::".
  [[gnu::cold, gnu::noinline]] Error(std::string function, std::string argument, std::string expected,
                                     std::string found)
      : Error(Parts{std::move(function), std::move(argument), std::move(expected), std::move(found)}) {}

  // Texts live as long as this error or a copy of it; without parts they are empty.

  /// The function or class that was called, "project" for example.
  std::string_view function() const noexcept { return parts_ ? parts_->function : std::string_view(); }
  /// The argument that is wrong, "options.oversampling" for example.
  std::string_view argument() const noexcept { return parts_ ? parts_->argument : std::string_view(); }
  /// What it should have been.
  std::string_view expected() const noexcept { return parts_ ? parts_->expected : std::string_view(); }
  /// What it was.
  std::string_view found() const noexcept { return parts_ ? parts_->found : std::string_view(); }

private:
  struct Parts {
    std::string function, argument, expected, found;
  };

  explicit Error(Parts parts)
      : std::runtime_error("Bracewell::" + parts.function + ": " + parts.argument + ": expected " +
                           parts.expected + ", found " + parts.found),
        parts_(std::make_shared<const Parts>(std::move(parts))) {}

  std::shared_ptr<const Parts> parts_; // copies of exceptions must not throw
};

namespace Impl {

/// Throws the Error of a wrong argument. Most texts are literals: where callers made strings of them, and destroyed
/// these, compilers would spend more on checks than on what they guard.
[[noreturn, gnu::cold, gnu::noinline]] inline void fail(const char* function, const char* argument,
                                                        const char* expected, const char* found) {
  throw Error(function, argument, expected, found);
}
[[noreturn, gnu::cold, gnu::noinline]] inline void
fail(const char* function, const char* argument, const std::string& expected, const std::string& found) {
  throw Error(function, argument, expected, found);
}

} // namespace Impl
} // namespace Bracewell
