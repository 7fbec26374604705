// SPDX-License-Identifier: MIT
#include "common/command_line.hpp"

#include "common/input_error.hpp"
#include "support.hpp"

#include <bracewell/error.hpp>
#include <bracewell/version.hpp>

#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <iostream>
#include <new>
#include <sstream>

using namespace Bracewell::Examples;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

/// Runs a driver with one required option.
Outcome run(
    std::vector<const char*> arguments, const std::function<void()>& body = [] {},
    const char* assumption = nullptr) {
  const std::ostringstream out, err;
  auto* const cout_buffer = std::cout.rdbuf(out.rdbuf());
  auto* const cerr_buffer = std::cerr.rdbuf(err.rdbuf());
  arguments.insert(arguments.begin(), "/some/where/program");
  CLI::App app{"Does something.", "bracewell-something"};
  int size = 0;
  app.add_option("--size", size, "pixels")->required();
  std::optional<double> limit;
  add_memory_limit(app, limit);
  const int code = run_driver(app, static_cast<int>(arguments.size()), arguments.data(),
                              [&](Provenance& provenance, Timings&) {
                                body();
                                if (assumption)
                                  provenance.assume(assumption);
                              });
  std::cout.rdbuf(cout_buffer);
  std::cerr.rdbuf(cerr_buffer);
  return {code, out.str(), err.str()};
}

} // namespace

TEST_CASE("a driver that works ends with 0") {
  const Outcome outcome = run({"--size", "3"}, [] { std::cout << "done\n"; });
  CHECK(outcome.code == 0);
  CHECK(outcome.out == "done\n");
  CHECK(outcome.err == "bracewell-something: note: options: --size 3\n");
}

TEST_CASE("an assumption is a warning, and an error with --strict") {
  const Outcome lenient = run(
      {"--size", "3"}, [] {}, "p.star: has no origins: taken as 0");
  CHECK(lenient.code == 0);
  CHECK_THAT(lenient.err,
             ContainsSubstring("bracewell-something: warning: p.star: has no origins: taken as 0\n"));
  const Outcome strict = run(
      {"--size", "3", "--strict"}, [] {}, "p.star: has no origins: taken as 0");
  CHECK(strict.code == 2);
  CHECK(strict.err ==
        "bracewell-something: p.star: has no origins: taken as 0 (an error because of --strict)\n");
}

TEST_CASE("provenance is said once and has a line per file") {
  const std::ostringstream err;
  auto* const buffer = std::cerr.rdbuf(err.rdbuf());
  Provenance provenance("bracewell-something");
  provenance.option("--kernel linear");
  provenance.took("p.star", "12 particles");
  provenance.took("p.star", "half sets");
  provenance.assume("p.star: has no origins: taken as 0");
  provenance.say();
  provenance.say();
  provenance.assume("p.star: has no origins: taken as 0");
  provenance.assume("p.star: dark particles");
  std::cerr.rdbuf(buffer);
  CHECK(err.str() == "bracewell-something: note: options: --kernel linear\n"
                     "bracewell-something: note: p.star: 12 particles, half sets\n"
                     "bracewell-something: warning: p.star: has no origins: taken as 0\n"
                     "bracewell-something: warning: p.star: dark particles\n");
  CHECK(provenance.text() == "bracewell-something " BRACEWELL_VERSION "\noptions: --kernel linear\n"
                             "p.star: 12 particles, half sets\n"
                             "assumed: p.star: has no origins: taken as 0\nassumed: p.star: dark particles");
}

TEST_CASE("help and version go to stdout and end with 0, without running") {
  bool ran = false;
  const Outcome help = run({"--help"}, [&] { ran = true; });
  CHECK(help.code == 0);
  CHECK_THAT(help.out, ContainsSubstring("Does something.") && ContainsSubstring("--size") &&
                           ContainsSubstring("--version"));
  CHECK(help.err.empty());
  const Outcome version = run({"--version"}, [&] { ran = true; });
  CHECK(version.code == 0);
  CHECK(version.out == "bracewell-something " BRACEWELL_VERSION "\n");
  CHECK(version.err.empty());
  CHECK_FALSE(ran);
}

TEST_CASE("bad usage ends with 2 and one line on stderr") {
  const auto arguments = GENERATE(
      std::vector<const char*>{}, std::vector<const char*>{"--size", "x"}, std::vector<const char*>{"--size"},
      std::vector<const char*>{"--size", "1", "--other"}, std::vector<const char*>{"--size", "1", "more"});
  bool ran = false;
  const Outcome outcome = run(arguments, [&] { ran = true; });
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, StartsWith("bracewell-something: ") && ContainsSubstring("(see --help)\n"));
  CHECK(std::ranges::count(outcome.err, '\n') == 1);
  CHECK_FALSE(ran);
}

TEST_CASE("a range that ends nowhere is not printed") {
  for (const char* const number : {"-1", "inf", "nan"}) {
    const Outcome outcome = run({"--size", "1", "--memory-limit", number});
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, StartsWith("bracewell-something: --memory-limit: ") &&
                                ContainsSubstring("finite") && ContainsSubstring(number));
    CHECK(outcome.err.size() < 100);
  }
}

TEST_CASE("exceptions become exit codes and one line on stderr") {
  const auto thrown = [](const auto& exception) { return run({"--size", "1"}, [&] { throw exception; }); };
  const auto check = [](const Outcome& outcome, int code, const std::string& message) {
    CHECK(outcome.code == code);
    CHECK(outcome.err == "bracewell-something: " + message + "\n");
    CHECK(outcome.out.empty());
  };
  check(thrown(InputError("map.mrc: is truncated")), 2, "map.mrc: is truncated");
  check(thrown(Bracewell::Error("Bracewell::project: poses: expected 3, found 2")), 2,
        "poses: expected 3, found 2");
  check(thrown(std::bad_alloc()), 1, "out of memory");
  check(thrown(std::runtime_error("disk full")), 1, "disk full");
  check(thrown(42), 1, "stopped by an exception of unknown type");
}

TEST_CASE("output that cannot be written is a failure") {
  const Outcome outcome = run({"--size", "1"}, [] { std::cout.setstate(std::ios::badbit); });
  std::cout.clear();
  CHECK(outcome.code == 1);
  CHECK(outcome.err == "bracewell-something: standard output cannot be written\n");
}

TEST_CASE("help wraps at the terminal's width") {
  CLI::App app{"Does " + std::string(40, 'x') + " and then very many other things that take long to be said.",
               "program"};
  int value = 0;
  app.add_option("--size", value,
                 "of the box: it is padded, transformed, and what lies outside of it is left out");
  for (const std::size_t columns : {50, 60, 79, 200}) {
    const std::string help = app.help(), wrapped = wrapped_help(help, columns);
    std::istringstream lines(wrapped);
    for (std::string line; std::getline(lines, line);)
      CHECK(line.size() <= columns);
    // The same words in the same order.
    const auto words = [](const std::string& text) {
      std::istringstream stream(text);
      return std::vector<std::string>(std::istream_iterator<std::string>(stream), {});
    };
    CHECK(words(wrapped) == words(help));
    CHECK((wrapped == help) == (columns == 200));
    if (columns == 60)
      CHECK(wrapped.find("\n" + std::string(30, ' ') + "transformed,") != std::string::npos);
  }
  CHECK(wrapped_help(std::string(90, 'w') + " w\n", 20).starts_with(std::string(90, 'w')));
}
