// SPDX-License-Identifier: MIT
#include "command_line.hpp"

#include "input_error.hpp"
#include "signals.hpp"

#include <bracewell/error.hpp>
#include <bracewell/version.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <sstream>
#include <string>

#include <sys/ioctl.h>
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

int run_driver(CLI::App& app, int argc, const char* const* argv,
               const std::function<void(Provenance&)>& body) {
  const auto complain = [&app](const std::string& message, ExitCode code) {
    std::cerr << app.get_name() << ": " << message << '\n';
    return code;
  };
  try {
    app.set_version_flag("--version", app.get_name() + " " BRACEWELL_VERSION, "print the version and exit");
    bool strict = false;
    app.add_flag("--strict", strict, "what would be assumed, with a warning, is an error");
    app.parse(argc, argv);
    Provenance provenance(app.get_name(), strict);
    for (int i = 1; i < argc; ++i)
      provenance.option(argv[i]);
    remove_unfinished_on_signals();
    body(provenance);
    // A full disk behind a redirected stdout must not pass for success.
    if (!std::cout.flush())
      return complain("standard output cannot be written", Failure);
    provenance.say();
    return Success;
  } catch (const CLI::Success& request) { // --help, --version
    if (dynamic_cast<const CLI::CallForHelp*>(&request) != nullptr)
      std::cout << wrapped_help(app.help(), terminal_columns());
    else
      app.exit(request);
    return std::cout.flush() ? Success : complain("standard output cannot be written", Failure);
  } catch (const CLI::ParseError& error) {
    return complain(std::string(error.what()) + " (see --help)", BadInput);
  } catch (const InputError& error) {
    return complain(error.what(), BadInput);
  } catch (const Error& error) {
    return complain(error.what(), BadInput);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", Failure);
  } catch (const std::exception& error) {
    return complain(error.what(), Failure);
  } catch (...) {
    return complain("stopped by an exception of unknown type", Failure);
  }
}

} // namespace Bracewell::Examples
