// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <vector>

namespace Bracewell::Examples {

/// Angles of a text file: of SerialEM's .mdoc the TiltAngle of every ZValue; else the first number of every line, empty
/// lines and those that begin with '#' left out. Throws InputError for what is missing or no number.
std::vector<double> read_angle_text(const std::filesystem::path& path);

} // namespace Bracewell::Examples
