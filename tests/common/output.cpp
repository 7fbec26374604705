// SPDX-License-Identifier: MIT
#include "common/atomic_file.hpp"
#include "common/input_file.hpp"
#include "common/output_family.hpp"
#include "common/output_folder.hpp"
#include "common/progress.hpp"
#include "common/text_table.hpp"
#include "support.hpp"

#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace Bracewell::Examples;
using namespace IoTest;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Sends stderr elsewhere for as long as it lives.
class RedirectedStderr {
public:
  explicit RedirectedStderr(int target) : saved_(::dup(STDERR_FILENO)) { ::dup2(target, STDERR_FILENO); }
  RedirectedStderr(const RedirectedStderr&) = delete;
  RedirectedStderr& operator=(const RedirectedStderr&) = delete;
  ~RedirectedStderr() {
    std::fflush(stderr);
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
  }

private:
  int saved_;
};

/// A folder on a disk, and one in memory where there is one.
std::vector<fs::path> file_systems() {
  std::vector<fs::path> folders{fs::temp_directory_path()};
  if (const fs::path memory = "/dev/shm"; ::access(memory.c_str(), W_OK) == 0)
    folders.push_back(memory);
  return folders;
}

} // namespace

TEST_CASE("an atomic file appears on commit") {
  const TemporaryFolder folder;
  const fs::path path = folder / "table.txt";
  AtomicFile file(path);
  file.write("hello ");
  file.write("world");
  const auto capital = std::byte{'H'};
  file.write_at(0, std::span(&capital, 1));
  CHECK_FALSE(fs::exists(path));
  AtomicFile moved(std::move(file));
  moved.write("!");
  moved.commit();
  CHECK(read_text(path) == "Hello world!");
  CHECK(folder.files() == 1);
  CHECK_THROWS_AS(moved.write("more"), std::logic_error);
  CHECK_THROWS_AS(moved.commit(), std::logic_error);

  const auto mask = ::umask(0);
  ::umask(mask);
  CHECK((static_cast<unsigned>(fs::status(path).permissions()) & 0777u) == (0666u & ~mask));
}

TEST_CASE("an atomic file that is not committed leaves the old one") {
  const TemporaryFolder folder;
  const fs::path path = folder / "table.txt";
  write_text(path, "old");
  try {
    AtomicFile file(path);
    file.write("new");
    throw 1;
  } catch (int) {
  }
  CHECK(read_text(path) == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("two files for one target do not disturb each other") {
  const TemporaryFolder folder;
  AtomicFile first(folder / "a");
  AtomicFile second(folder / "a");
  first.write("1");
  second.write("2");
  second.commit();
  CHECK(read_text(folder / "a") == "2");
  first.commit();
  CHECK(read_text(folder / "a") == "1");
  CHECK(folder.files() == 1);
}

TEST_CASE("targets that cannot be files are refused") {
  const TemporaryFolder folder;
  const auto message = [](const fs::path& path) { return input_error([&] { AtomicFile file(path); }); };
  CHECK_THAT(message(folder / "none/a"),
             ContainsSubstring("none/a: cannot be written: no file can be made in folder"));
  CHECK_THAT(message(folder.path()), ContainsSubstring("is there and is not a regular file"));
  CHECK_THAT(message(folder / "new/"), ContainsSubstring("it names a folder"));
  CHECK_THAT(message("/dev/null"), ContainsSubstring("is there and is not a regular file"));
  CHECK_THAT(message(""), ContainsSubstring("empty name"));
  CHECK(folder.files() == 0);
}

TEST_CASE("a symbolic link is written through, a bare name goes to the current folder") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "real");
  write_text(folder / "real/a", "old");
  fs::create_symlink("real/a", folder / "link");
  AtomicFile file(folder / "link");
  file.write("new");
  file.commit();
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_text(folder / "real/a") == "new");

  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  AtomicFile bare("bare");
  bare.commit();
  fs::current_path(before);
  CHECK(read_text(folder / "bare").empty());
}

TEST_CASE("parts of any size and place are written by several threads, on disk and in memory") {
  const TemporaryFolder folder(GENERATE(from_range(file_systems())));
  constexpr std::size_t part = 1500007, parts = 4, before = 5;
  Bytes expected(before + parts * part);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] = static_cast<std::uint8_t>(i * 37 % 251);
  AtomicFile file(folder / "a");
  if (GENERATE(false, true))
    file.reserve(before, parts * part);
  {
    const auto write = [&](std::size_t begin, std::size_t size) {
      file.write_at(static_cast<std::int64_t>(begin),
                    std::as_bytes(std::span(expected).subspan(begin, size)));
    };
    std::vector<std::jthread> threads;
    threads.emplace_back(write, 0, before);
    for (std::size_t i = 0; i < parts; ++i)
      threads.emplace_back(write, before + i * part, part);
  }
  file.commit();
  CHECK((read_bytes(folder / "a") == expected));
}

TEST_CASE("a full disk is a failure and leaves nothing") {
  const TemporaryFolder folder(GENERATE(from_range(file_systems())));
  const std::size_t bytes = GENERATE(5000, 3000000);
  // A limit on the size of files stands in for the disk; without its signal the write fails.
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 1000, before.rlim_max };
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string what;
  try {
    AtomicFile file(folder / "a");
    if (GENERATE(false, true))
      file.reserve(0, static_cast<std::int64_t>(bytes));
    file.write(std::string(bytes, 'x'));
    file.commit();
  } catch (const std::runtime_error& error) {
    what = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(what, ContainsSubstring("a: cannot be written: File too large"));
  CHECK(folder.files() == 0);
}

TEST_CASE("a family of outputs appears together or not at all") {
  const TemporaryFolder folder;
  write_text(folder / "a", "old");
  const auto write = [&](const char* name) {
    AtomicFile file(folder / name);
    file.write("new");
    file.commit();
  };
  {
    OutputFamily family({folder / "a", folder / "b", folder / "c"});
    write("a");
    write("b");
    CHECK(read_text(folder / "a") == "old");
    CHECK(folder.files() == 1);
    CHECK_THROWS_AS(write("d"), std::logic_error); // not announced
  }
  CHECK(read_text(folder / "a") == "old"); // the family was not committed
  CHECK(folder.files() == 1);
  {
    OutputFamily family({folder / "a", folder / "b", folder / "c"});
    write("a");
    write("b");
    family.commit();
    CHECK(read_text(folder / "a") == "new");
    CHECK(read_text(folder / "b") == "new");
    CHECK(folder.files() == 2);
  }
  write("d"); // on its own again
  CHECK(folder.files() == 3);
}

TEST_CASE("a family refuses inputs, whatever their names and whenever they are read") {
  const TemporaryFolder folder;
  write_text(folder / "input", "precious");
  fs::create_symlink("input", folder / "symbolic");
  fs::create_hard_link(folder / "input", folder / "hard");
  const auto family = [&](std::vector<fs::path> paths) {
    return input_error([&] { OutputFamily outputs(std::move(paths)); });
  };
  {
    OutputFamily outputs({folder / "hard"});
    CHECK_THAT(input_error([&] { InputFile file(folder / "input"); }), ContainsSubstring("would overwrite"));
  }
  { InputFile file(folder / "input"); }
  for (const char* name : {"input", "symbolic", "hard"})
    CHECK_THAT(family({folder / "other", folder / name}), ContainsSubstring("would overwrite"));
  CHECK_THAT(family({folder / "other", folder / "none/../other"}), ContainsSubstring("two outputs"));
  CHECK(read_text(folder / "input") == "precious");
  CHECK(folder.files() == 3);
}

TEST_CASE("tables are aligned and read by NumPy as they are") {
  const TemporaryFolder folder;
  const std::vector<TextColumn> columns{
      {"shell", {0, 1, 10}, 0},
      {"fsc", {1, -0.25, std::nan("")}, 3},
      {"resolution", {std::numeric_limits<double>::infinity(), 325, 32.5}, 1}};
  const std::vector<std::string> comments{"Fourier shell correlation", "box 64"};
  write_text_table(folder / "fsc.txt", columns, comments);
  CHECK(read_text(folder / "fsc.txt") == "# Fourier shell correlation\n"
                                         "# box 64\n"
                                         "# shell     fsc  resolution\n"
                                         "      0   1.000         inf\n"
                                         "      1  -0.250       325.0\n"
                                         "     10     nan        32.5\n");
  CHECK(folder.files() == 1);
  const std::vector<TextColumn> uneven{{"a", {1}}, {"b", {1, 2}}};
  CHECK_THROWS_AS(write_text_table(folder / "fsc.txt", uneven), std::invalid_argument);
  CHECK_THROWS_AS(write_text_table(folder / "fsc.txt", {}), std::invalid_argument);
}

TEST_CASE("the progress line tells percentage, rate and time left") {
  CHECK(progress_line("inserting", "images", 0, 1000, 0) == "inserting 0 % of 1000 images");
  CHECK(progress_line("inserting", "images", 250, 1000, 5) ==
        "inserting 25 % of 1000 images, 50/s, 15 s left");
  CHECK(progress_line("inserting", "images", 999, 1000, 5) ==
        "inserting 99 % of 1000 images, 199.8/s, 1 s left");
  CHECK(progress_line("inserting", "images", 1000, 1000, 5) == "inserting 100 % of 1000 images, 200/s");
  CHECK(progress_line("a", "b", 1, 3, 50) == "a 33 % of 3 b, 0.02/s, 1 min 40 s left");
  CHECK(progress_line("a", "b", 1, 101, 100) == "a 0 % of 101 b, 0.01/s, 2 h 46 min left");
  CHECK(progress_line("a", "b", 0, 0, 1) == "a 100 % of 0 b");
}

TEST_CASE("progress is silent where stderr is not a terminal") {
  const TemporaryFolder folder;
  const int file = ::open((folder / "stderr").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(file >= 0);
  {
    const RedirectedStderr redirected(file);
    Progress progress("inserting", "images", 10);
    for (int i = 0; i < 10; ++i)
      progress.add(1);
  }
  ::close(file);
  CHECK(fs::file_size(folder / "stderr") == 0);
}

TEST_CASE("progress draws on a terminal and erases its line at the end") {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0)
    SKIP("no pseudo-terminal to be had");
  const int other_end = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  if (other_end < 0)
    SKIP("no pseudo-terminal to be had");
  {
    const RedirectedStderr redirected(other_end);
    Progress progress("inserting", "images", 4000);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&progress] {
        for (int k = 0; k < 1000; ++k)
          progress.add(1);
      });
  }
  ::fcntl(terminal, F_SETFL, O_NONBLOCK);
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = ::read(terminal, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  ::close(other_end);
  ::close(terminal);
  CHECK_THAT(text, ContainsSubstring("\rinserting ") && ContainsSubstring(" % of 4000 images"));
  CHECK(text.ends_with("\r\033[K"));
  CHECK(std::ranges::count(text, '\r') < 10); // not once per image
}

namespace {

/// Calls `work` in a process of its own, which has to end by SIGTERM within ten seconds.
template <class Work>
void expect_ended(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    remove_unfinished_on_signals();
    ::alarm(10); // where the signal is lost
    work();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM));
}

/// Four threads call `make` with their numbers again and again until SIGTERM comes, after a millisecond and `delay` microseconds.
/// (They do without Catch2, which knows one thread.)
template <class Make>
void end_makers(int delay, const Make& make) {
  std::vector<std::jthread> makers;
  for (int i = 0; i < 4; ++i)
    makers.emplace_back([&make, i] {
      for (;;)
        make(i);
    });
  ::usleep(static_cast<useconds_t>(1000 + delay));
  ::kill(::getpid(), SIGTERM);
  for (;;)
    ::pause();
}

} // namespace

TEST_CASE("a signal removes what other threads make meanwhile, and is not lost where they hold signals") {
  const TemporaryFolder folder;
  for (int delay = 0; delay < 2000; delay += 50) {
    expect_ended([&] {
      end_makers(delay, [&](int i) {
        const fs::path path = folder / std::to_string(i);
        std::optional<RemovedOnSignals> note;
        {
          const SignalsHeld wait;
          ::close(::open(path.c_str(), O_CREAT | O_WRONLY, 0600));
          note.emplace(path);
        }
        ::unlink(path.c_str());
      });
    });
    CHECK(fs::is_empty(folder.path()));
  }
}

TEST_CASE("a signal removes a folder into which other threads write, and waits for one of them at most") {
  const TemporaryFolder folder;
  for (int delay = 0; delay < 2000; delay += 50) {
    expect_ended([&] {
      const RemovedOnSignals made(folder / "series", RemovedOnSignals::What::EmptyFolder);
      fs::create_directory(folder / "series");
      const OutputFolder slices({.folder = folder / "series" / "slices.zarr"}, 0, ".zgroup");
      std::atomic<int> slice = 0;
      end_makers(delay, [&](int i) { // they hold signals nearly all the time
        slices.write("0/" + std::to_string(slice++ % 7) + "/" + std::to_string(i), [](const fs::path& path) {
          ::close(::open(path.c_str(), O_CREAT | O_WRONLY, 0600));
          ::usleep(20);
        });
      });
    });
    CHECK(fs::is_empty(folder.path()));
  }
}

TEST_CASE("a signal leaves a folder that it would remove if it were empty") {
  const TemporaryFolder folder;
  write_text(folder / "another's", "file");
  expect_ended([&] {
    const RemovedOnSignals made(folder.path(), RemovedOnSignals::What::EmptyFolder);
    std::raise(SIGTERM);
  });
  CHECK(fs::exists(folder / "another's"));
}

TEST_CASE("a signal that comes while a checkpoint gets its name has its effect afterwards") {
  const TemporaryFolder folder;
  expect_ended([&] {
    const SignalsHeld wait;
    std::raise(SIGTERM);
    write_text(folder / "after", "the signal"); // which would have ended the program
  });
  CHECK(fs::exists(folder / "after"));
}
