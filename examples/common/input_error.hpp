// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>

namespace Bracewell::Examples {

/// What the user gave cannot be used: a file that is missing or malformed, a value out of range. Drivers
/// print the message and end with exit code 2. The message is one sentence that begins with the name of the
/// file.
class InputError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace Bracewell::Examples
