// SPDX-License-Identifier: MIT
#pragma once

#include "views.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace Bracewell::Examples {

/// Bytes of the host's memory that libraries, and a GPU's kernels, take once they are used: 41 MB for those of
/// bracewell-tomography on an H100 with CUDA 13 (2026-11-25).
inline constexpr double library_bytes = kernels_run_on_host ? 12e6 : 64e6;

/// Calls visit for the folder of every control group that this process is in, and those above it.
void for_each_control_group(const std::string& controller,
                            const std::function<void(const std::filesystem::path&)>& visit);

/// Processors that control groups allow this process to use; infinity without a limit.
double allowed_processors();

/// Bytes that the program has in memory now.
double resident_bytes();

/// Bytes of --memory-limit, which is in megabytes; by default half of the machine's memory, or of
/// what control groups (cgroups, of containers and batch systems) and `ulimit` allow.
double memory_limit(const std::optional<double>& megabytes);

/// Throws InputError where `work` ("reconstructing 2 slices at a time") needs more bytes than the limit.
void require_memory(const std::string& work, double needed, double limit);

} // namespace Bracewell::Examples
