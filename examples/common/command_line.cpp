// SPDX-License-Identifier: MIT
#include "command_line.hpp"

#include "atomic_file.hpp"
#include "input_error.hpp"
#include "memory_limit.hpp"
#include "processes.hpp"
#include "ranges.hpp"
#include "signals.hpp"

#include <Kokkos_Core.hpp>
#include <bracewell/error.hpp>
#include <bracewell/version.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <iomanip>
#include <iostream>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#if defined(_OPENMP)
#include <omp.h>
#endif
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace Bracewell::Examples {
namespace {

/// Those of the terminal, or of COLUMNS; 100 where neither says.
std::size_t terminal_columns() {
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  const char* const columns = std::getenv("COLUMNS");
  const int number = columns != nullptr ? std::atoi(columns) : 0;
  return number > 0 ? static_cast<std::size_t>(number) : 100;
}

/// What an error of the library says, alone or behind the file and row that it is about, without the function that
/// says it: users of programs call none.
std::string without_function(std::string message) {
  const std::size_t begin = message.find("Bracewell::"), end = message.find(": ", begin);
  return begin == std::string::npos || end == std::string::npos ? message
                                                                : message.erase(begin, end + 2 - begin);
}

/// CLI11 writes the end of "any number above zero" with 309 digits, or as 1.79769e+308.
std::string without_largest_number(const std::string& message) {
  const std::size_t at = message.find(" not in range ");
  const bool ends = at == std::string::npos || (message.find(" 1797693", at) == std::string::npos &&
                                                message.find(" 1.79769e+308", at) == std::string::npos);
  return ends ? message : message.substr(0, at) + " is no finite positive number";
}

/// Defaults as TYPE=DEFAULT with every CLI11: 2.4 writes them in brackets.
class HelpFormatter : public CLI::Formatter {
public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    const std::string standard = option->get_default_str(), brackets = " [" + standard + "] ";
    if (const auto at = text.find(brackets); !standard.empty() && at != std::string::npos)
      text.replace(at, brackets.size(), "=" + standard);
    return text;
  }
};

bool is_beyond_64_bits(const std::string& text) {
  return text.find_first_not_of("+-0123456789") == std::string::npos &&
         std::abs(std::strtod(text.c_str(), nullptr)) >= 0x1p63;
}

std::string beyond_64_bits(const std::string& text) { return "expected a number below 2^63, found " + text; }

/// CLI11 2.4 does not convert whole numbers that 64 bits do not hold; older ones leave them to require_finite_numbers.
std::string without_conversion(const std::string& message) {
  const std::string begin = "Could not convert: ";
  const std::size_t at = message.find(" = ");
  if (!message.starts_with(begin) || at == std::string::npos || !is_beyond_64_bits(message.substr(at + 3)))
    return message;
  return message.substr(begin.size(), at - begin.size()) + ": " + beyond_64_bits(message.substr(at + 3));
}

/// The ranges of options let through what is no number at all, and whole numbers that 64 bits do not hold. Names of
/// files and datasets may be what they are.
void require_finite_numbers(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string kind = option->get_type_name();
    if (kind == "FILE" || kind == "FOLDER" || kind == "DATASET" || kind == "NAME")
      continue;
    for (const std::string& text : option->results()) {
      char* end = nullptr;
      const double value = std::strtod(text.c_str(), &end);
      if (end != text.c_str() && *end == '\0' && !std::isfinite(value))
        throw CLI::ValidationError(option->get_name(), "expected a finite number, found " + text);
      if (is_beyond_64_bits(text))
        throw CLI::ValidationError(option->get_name(), beyond_64_bits(text));
    }
  }
}

constexpr const char* asked_for_help = "expected --help or --version of all processes or of none";

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define BRACEWELL_WAITS_AS_IT_IS
#endif
#endif
#if !defined(BRACEWELL_WAITS_AS_IT_IS)
/// Threads sleep while they wait for each other, unless the user said how they wait: where other programs are at work, a
/// thread that spins keeps the one that it waits for from its processor. OpenMP's library reads the variable when it
/// is loaded, before main() and before the constructors of the program: only what stands in this section runs earlier.
void wait_quietly() {
  for (const char* const name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY"})
    if (std::getenv(name) != nullptr)
      return;
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)() = wait_quietly;
#endif
#endif

/// While this lives, files are replaced as an option says.
class ReplacingOf {
public:
  ReplacingOf(const CLI::App& app, bool all) {
    Replacing what{.creator = app.get_name() + " " BRACEWELL_VERSION, .given = {}, .all = all};
    for (const CLI::Option* option : app.get_options())
      if (option->get_type_name() == "FILE")
        for (const std::string& name : option->results())
          what.given.emplace_back(name);
    set_replacing(std::move(what));
  }
  ReplacingOf(const ReplacingOf&) = delete;
  ReplacingOf& operator=(const ReplacingOf&) = delete;
  ~ReplacingOf() { set_replacing({}); }
};

/// Throws for numbers of options that no measurement has (beyond_range).
void require_ranges(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& text : option->results()) {
      char* end = nullptr;
      const double value = std::strtod(text.c_str(), &end);
      if (end == text.c_str() || *end != '\0')
        continue;
      if (const std::string expected = beyond_range(app.get_name() + " " + option->get_name(), value);
          !expected.empty())
        throw CLI::ValidationError(option->get_name(), expected + ", found " + text);
    }
}

InputError wrong_variable(const std::string& name, const std::string& expected, const std::string& found) {
  return InputError("environment variable " + name + ": expected " + expected + ", found \"" + found + '"');
}

/// Kokkos ends with an abort where it cannot read a variable of its own.
void require_environment_of_kokkos() {
  for (const auto& [name, least] : {std::pair{"KOKKOS_NUM_THREADS", 1}, {"KOKKOS_DEVICE_ID", 0}}) {
    const char* const text = std::getenv(name);
    if (text == nullptr)
      continue;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end == text || *end != '\0')
      throw wrong_variable(name, "a number", text);
    if (value < least || value > std::numeric_limits<int>::max())
      throw wrong_variable(name, "a number from " + std::to_string(least), text);
  }
  const auto require_one_of = [](const char* name, std::initializer_list<const char*> values) {
    const char* const text = std::getenv(name);
    std::string all;
    for (const char* const value : values) {
      if (text == nullptr || ::strcasecmp(text, value) == 0)
        return;
      all += (all.empty() ? "" : "|") + std::string(value);
    }
    throw wrong_variable(name, all, text);
  };
  for (const char* const name :
       {"KOKKOS_DISABLE_WARNINGS", "KOKKOS_PRINT_CONFIGURATION", "KOKKOS_TUNE_INTERNALS"})
    require_one_of(name, {"yes", "true", "1", "no", "false", "0"});
  require_one_of("KOKKOS_MAP_DEVICE_ID_BY", {"mpi_rank", "random"});
  const char *const old = std::getenv("KOKKOS_PROFILE_LIBRARY"), *const libraries =
                                                                     std::getenv("KOKKOS_TOOLS_LIBS");
  if (old != nullptr && libraries != nullptr && std::string(old) != libraries)
    throw wrong_variable("KOKKOS_PROFILE_LIBRARY", "what KOKKOS_TOOLS_LIBS is", old);
}

/// Bytes that a variable of OpenMP's names, "64", "64k" or "1 M"; infinity where it is none that can be read.
double stack_bytes(const char* text) {
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  while (*end == ' ')
    ++end;
  const std::string units = "bkmg";
  const std::size_t unit =
      *end == '\0' ? 1 : units.find(char(std::tolower(static_cast<unsigned char>(*end))));
  return end == text || unit == units.npos ? std::numeric_limits<double>::infinity()
                                           : number * std::pow(1024, double(unit));
}

/// Kernels and readers have arrays on the stack of their thread, and end with a segmentation fault where these do not fit.
void require_stack() {
  constexpr double least = 256 << 10;
  const auto require = [&](const std::string& name, double bytes) {
    if (bytes < least)
      throw InputError(name + ": expected stacks of at least 256 kB, found " +
                       std::to_string(std::int64_t(bytes / 1024)) + " kB");
  };
  if (struct rlimit limit{}; ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    require("ulimit -s", double(limit.rlim_cur));
  for (const char* const name : {"OMP_STACKSIZE", "GOMP_STACKSIZE", "KMP_STACKSIZE"})
    if (const char* const text = std::getenv(name))
      require("environment variable " + std::string(name), stack_bytes(text));
}

/// What Kokkos says of memory that it did not get has a label of an array, and lines that users cannot read.
std::string without_allocation(const std::string& message) {
  const std::string words = "failed to allocate ";
  const std::size_t begin = message.find(words), end = message.find(" (", begin);
  if (begin == std::string::npos || end == std::string::npos)
    return message;
  return "out of memory: " + message.substr(begin + words.size(), end - begin - words.size()) +
         " could not be had; a lower --memory-limit lets programs take less at a time";
}

/// How many threads of all programs want each processor of the machine, in the mean of the last minute; 0 where that is not
/// known.
double load() {
  double wanted = 0;
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  return ::getloadavg(&wanted, 1) == 1 && processors > 0 ? wanted / double(processors) : 0;
}

/// From so many on, threads of one kernel wait long for each other: with 8 to 12 for each of two processors, programs with two
/// threads took 1.1 to 2 times as long as with one (docs/lab/hosts.md).
constexpr double busy = 1.5;

/// Kokkos has room for so many threads, and crashes or waits forever with more.
constexpr int most_threads = 512;

/// Threads of the host: those that were asked for, at most 512; unasked no more than control groups allow, and fewer where
/// others are at work. Returns a note about the latter, or nothing.
std::string set_threads([[maybe_unused]] Kokkos::InitializationSettings& settings) {
  std::string note;
#if defined(_OPENMP)
  int threads = ::omp_get_max_threads();
  const char* const kokkos = std::getenv("KOKKOS_NUM_THREADS");
  const bool asked = kokkos != nullptr || std::getenv("OMP_NUM_THREADS") != nullptr;
  if (!asked) {
    if (const double allowed = allowed_processors(); allowed < threads)
      threads = std::max(1, static_cast<int>(std::ceil(allowed)));
    if (const double wanted = load(); wanted > busy && threads > 1) {
      const int fewer = std::max(1, static_cast<int>(threads / (1 + wanted)));
      std::ostringstream text;
      text << std::fixed << std::setprecision(1) << "takes " << fewer << " of " << threads
           << " threads, as other programs want each processor " << wanted << " times (OMP_NUM_THREADS)";
      note = text.str();
      threads = fewer;
    }
  }
  threads = std::min(threads, most_threads);
  if (threads != ::omp_get_max_threads())
    ::omp_set_num_threads(threads);
  if (kokkos != nullptr && std::atoi(kokkos) > most_threads)
    settings.set_num_threads(most_threads);
#endif
  return note;
}

} // namespace

std::string wrapped_help(const std::string& help, std::size_t columns) {
  constexpr std::size_t description = 30; // CLI11's column
  std::string text;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t indent = line.starts_with("  ") ? description : 0;
    const std::size_t most = std::max(columns, indent + 20);
    while (line.size() > most) {
      const std::size_t space = line.rfind(' ', most);
      if (space == std::string::npos || line.find_first_not_of(' ') >= space || space <= indent)
        break; // a word that is longer
      text += line.substr(0, space) + '\n';
      line = std::string(indent, ' ') + line.substr(space + 1);
    }
    text += line + '\n';
  }
  return text;
}

void add_memory_limit(CLI::App& app, std::optional<double>& megabytes) {
  app.add_option("--memory-limit", megabytes,
                 "memory that this program may use; by default its processes share half of the machine's")
      ->check(CLI::PositiveNumber)
      ->type_name("MEGABYTES");
}

void add_picture_format(CLI::App& app, std::string& ending) {
  add_choice<std::string>(app, "--pictures", ending, "format of the pictures",
                          {{"png", ".png"}, {"pdf", ".pdf"}, {"svg", ".svg"}});
}

void add_reproducible(CLI::App& app, bool& reproducible) {
  app.add_flag(
      "--reproducible", reproducible,
      "add in a fixed order: runs with the same number of processes give the same bits, a little slower");
}

void put_under(CLI::App& app, const std::string& heading, const std::vector<std::string>& options) {
  for (const std::string& option : options)
    app.get_option(option)->group(heading);
}

int run_driver(CLI::App& app, int argc, const char* const* argv,
               const std::function<void(Provenance&, Timings&)>& body) {
  ProcessGroup group;
  const auto complain = [&](const std::string& message, ExitCode code) {
    group.fail(code, [&](std::ostream& stream) { stream << app.get_name() << ": " << message << '\n'; });
    return code;
  };
  try {
    app.formatter(std::make_shared<HelpFormatter>());
    app.set_version_flag("--version", app.get_name() + " " BRACEWELL_VERSION, "print the version and exit");
    Timings timings;
    bool strict = false, print_timings = false;
    app.add_flag("--strict", strict,
                 "stop with an error where the program would assume something with a warning");
    bool overwrite = false;
    app.add_flag("--overwrite", overwrite,
                 "replace outputs that are write-protected, and others' files that have derived names");
    app.add_flag("--timings", print_timings, "print a last line on stderr that says where the time went");
    app.parse(argc, argv);
    if (!group.agree(false))
      return complain(asked_for_help, BadInput);
    require_finite_numbers(app);
    require_ranges(app);
    const ReplacingOf replacing(app, overwrite);
    Provenance provenance(app.get_name(), strict);
    for (int i = 1; i < argc; ++i)
      provenance.option(argv[i]);
    require_stack();
    remove_unfinished_on_signals();
    timings.phase("start");
    std::optional<Kokkos::ScopeGuard> kokkos;
    if (!Kokkos::is_initialized()) { // the tests' program has it already
      require_environment_of_kokkos();
      auto settings = Kokkos::InitializationSettings().set_disable_warnings(true); // of unbound threads
      if (const std::string note = set_threads(settings); !note.empty() && is_first_process())
        std::cerr << app.get_name() << ": note: " << note << '\n';
      if (process_count() > 1)
        settings.set_map_device_id_by("mpi_rank"); // in the node
      kokkos.emplace(settings);
    }
    timings.phase("work");
    body(provenance, timings);
    // A full disk behind a redirected stdout must not pass for success.
    if (!std::cout.flush())
      return complain("standard output cannot be written", Failure);
    provenance.say();
    if (print_timings)
      std::cerr << timings.text() << '\n';
    return Success;
  } catch (const CLI::Success& request) { // --help, --version
    if (dynamic_cast<const CLI::CallForHelp*>(&request) != nullptr)
      std::cout << wrapped_help(app.help(), terminal_columns());
    else
      app.exit(request);
    if (!group.agree(true)) // the others would wait for this process, and it for them
      return complain(asked_for_help, BadInput);
    return std::cout.flush() ? Success : complain("standard output cannot be written", Failure);
  } catch (const CLI::ParseError& error) {
    return complain(without_conversion(without_largest_number(error.what())) + " (see --help)", BadInput);
  } catch (const InputError& error) {
    return complain(without_function(error.what()), BadInput);
  } catch (const Error& error) {
    return complain(without_function(error.what()), BadInput);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", Failure);
  } catch (const std::exception& error) {
    return complain(without_allocation(error.what()), Failure);
  } catch (...) {
    return complain("stopped by an exception of unknown type", Failure);
  }
}

} // namespace Bracewell::Examples
