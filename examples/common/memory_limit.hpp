// SPDX-License-Identifier: MIT
#pragma once

#include "views.hpp"

#include <optional>
#include <string>

namespace Bracewell::Examples {

/// Bytes of the host's memory that libraries, and a GPU's kernels, take once they are used: 41 MB for those of
/// bracewell-tomography on an H100 with CUDA 13 (2026-11-25).
inline constexpr double library_bytes = kernels_run_on_host ? 12e6 : 64e6;

/// Bytes that the program has in memory now.
double resident_bytes();

/// Bytes of --memory-limit, which is in megabytes; half of the machine's memory by default.
double memory_limit(const std::optional<double>& megabytes);

/// Throws InputError where `work` ("reconstructing 2 slices at a time") needs more bytes than the limit.
void require_memory(const std::string& work, double needed, double limit);

} // namespace Bracewell::Examples
