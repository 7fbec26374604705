// SPDX-License-Identifier: MIT
#pragma once

#include "star.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// Whether a table of a STAR file is one of cisTEM's, not RELION's with further columns.
bool is_cistem(const StarTable& table);

/// The particles of a table of cisTEM's as a table of RELION 3.1; what becomes what is in docs/what-is-read.md. Adds sentences
/// that begin with the file to `warnings`. Throws InputError for what is missing or no number.
StarTable read_cistem(const std::filesystem::path& path, const StarTable& table,
                      std::vector<std::string>& warnings);

} // namespace Bracewell::Examples
