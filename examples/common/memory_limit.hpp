// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

namespace Bracewell::Examples {

/// Bytes that the program has in memory now.
double resident_bytes();

/// Bytes of --memory-limit, which is in megabytes; half of the machine's memory by default.
double memory_limit(const std::optional<double>& megabytes);

/// Throws InputError where `work` ("reconstructing 2 slices at a time") needs more bytes than the limit.
void require_memory(const std::string& work, double needed, double limit);

} // namespace Bracewell::Examples
