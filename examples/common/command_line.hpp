// SPDX-License-Identifier: MIT
#pragma once

#include "provenance.hpp"
#include "timings.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace Bracewell::Examples {

/// Exit codes of all drivers.
enum ExitCode : int { Success = 0, Failure = 1, BadInput = 2 };

/// Help with its lines wrapped at spaces to so many columns; descriptions of options stay in their column.
std::string wrapped_help(const std::string& help, std::size_t columns);

/// Adds --memory-limit, which memory_limit takes.
void add_memory_limit(CLI::App& app, std::optional<double>& megabytes);

/// Adds an option that takes one of the names.
template <class Value>
void add_choice(CLI::App& app, const std::string& option, Value& value, const std::string& text,
                const std::vector<std::pair<std::string, Value>>& names) {
  std::string all, standard;
  for (const auto& [name, choice] : names) {
    all += (all.empty() ? "" : "|") + name;
    if (choice == value)
      standard = name;
  }
  const auto check = [names, all](const std::string& text_given) {
    const bool known =
        std::any_of(names.begin(), names.end(), [&](const auto& name) { return name.first == text_given; });
    return known ? std::string() : "expected " + all + ", found " + text_given;
  };
  const auto assign = [names, &value](const std::string& text_given) {
    value = std::find_if(names.begin(), names.end(), [&](const auto& name) {
              return name.first == text_given;
            })->second;
  };
  app.add_option_function<std::string>(option, assign, text)
      ->check(check)
      ->type_name(all)
      ->default_str(standard);
}

/// Adds --reproducible.
void add_reproducible(CLI::App& app, bool& reproducible);

/// Adds --pictures, the format of pictures that are named after OUT: ".png", ".pdf" or ".svg".
void add_picture_format(CLI::App& app, std::string& ending);

/// Puts options that were added under a heading of --help.
void put_under(CLI::App& app, const std::string& heading, const std::vector<std::string>& options);

/// Parses the command line into `app`, whose name is the program's, and runs `body`, which gets a Provenance that
/// has the options given, and Timings that are printed on stderr with --timings; Kokkos is there meanwhile, and signals end it without a trace (remove_unfinished_on_signals). Adds --version, --strict, --overwrite and --timings to the --help of CLI11. Other files than those made by the program are replaced only where their names were given, and write-protected ones with --overwrite alone. Every exception ends as one line "program: message" on stderr: bad usage, InputError and
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
