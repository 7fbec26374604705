// SPDX-License-Identifier: MIT
#pragma once

#include "provenance.hpp"
#include "timings.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <optional>

namespace Bracewell::Examples {

/// Exit codes of all drivers.
enum ExitCode : int { Success = 0, Failure = 1, BadInput = 2 };

/// Help with its lines wrapped at spaces to so many columns; descriptions of options stay in their column.
std::string wrapped_help(const std::string& help, std::size_t columns);

/// Adds --memory-limit, which memory_limit takes.
void add_memory_limit(CLI::App& app, std::optional<double>& megabytes);

/// Parses the command line into `app`, whose name is the program's, and runs `body`, which gets a Provenance that
/// has the options given, and Timings that are printed on stderr with --timings; Kokkos is there meanwhile, and signals end it without a trace (remove_unfinished_on_signals). Adds --version, --strict and --timings to the --help of CLI11. Every exception ends as one line "program: message" on stderr: bad usage, InputError and
/// Bracewell::Error with BadInput, all others with Failure.
/// @code
/// int main(int argc, char** argv) {
///   CLI::App app{"Projects a map.", "bracewell-project"};
///   Options options;
///   app.add_option("--map", options.map, "the map")->required();
///   return run_driver(app, argc, argv, [&](Provenance& provenance, Timings&) { project(options, provenance); });
/// }
/// @endcode
int run_driver(CLI::App& app, int argc, const char* const* argv,
               const std::function<void(Provenance&, Timings&)>& body);

} // namespace Bracewell::Examples
