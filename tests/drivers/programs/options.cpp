// SPDX-License-Identifier: MIT
// What all programs have in common on their command lines.
#include "common/hdf5.hpp"
#include "support.hpp"

#include <catch2/generators/catch_generators.hpp>

#include <map>
#include <set>
#include <string_view>
#include <utility>

using namespace DriverTest;

namespace {

const std::string project = BRACEWELL_PROJECT, ptychography = BRACEWELL_PTYCHOGRAPHY,
                  reconstruct = BRACEWELL_RECONSTRUCT, refine = BRACEWELL_REFINE,
                  tomography = BRACEWELL_TOMOGRAPHY;
// All programs that compute; bracewell-star only writes other names.
const std::vector<std::string> computing{BRACEWELL_CLASSIFY, BRACEWELL_MATCH, project,   ptychography,
                                         reconstruct,        refine,          tomography};

std::vector<std::string> all_programs() {
  std::vector<std::string> all = computing;
  all.emplace_back(BRACEWELL_STAR);
  return all;
}

void write_small_problem(const TemporaryFolder& folder) {
  constexpr int box = 15;
  const auto gaussians = random_gaussians(3, 2, 1.5);
  const auto particles = random_particles(4, 0);
  write_map(folder / "map.mrc", gaussian_map(gaussians, box), box);
  write_stack(folder / "p.mrcs", gaussian_projections(gaussians, particles, box), box, box);
  write_text(folder / "p.star", star_text(particles, box, "p.mrcs"));
}

/// Words of a text that begin with two hyphens, and are more.
std::set<std::string> names_of_options(const std::string& text) {
  std::set<std::string> names;
  for (std::size_t at = 0; (at = text.find("--", at)) != std::string::npos;) {
    const std::size_t end =
        std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-", at), text.size());
    if (end > at + 2 && (at == 0 || std::string_view(" ,\n").find(text[at - 1]) != std::string_view::npos))
      names.insert(text.substr(at, end - at));
    at = end;
  }
  return names;
}

} // namespace

TEST_CASE("help shows choices and defaults", "[hosts]") {
  const TemporaryFolder folder;
  for (const auto& program : computing) {
    const std::string help = run_well(folder, program + " --help");
    INFO(help);
    for (const char* const nothing_said : {" ENUM", " TEXT", " FLOAT=", " INT="})
      CHECK(help.find(nothing_said) == std::string::npos);
    CHECK(help.find("--memory-limit MEGABYTES") != std::string::npos);
  }
  const std::string help = run_well(folder, tomography + " --help");
  for (const char* const choice :
       {"--method fourier|line|log-polar=fourier", "--padding edge|zero=edge",
        "--filter cosine|cosine2|hamming|hann|none|parzen|ramp|shepp=shepp",
        "--stripes all|none|offset|sorting|wavelet=none", "--angle-unit degrees|radians"})
    CHECK(help.find(choice) != std::string::npos);
}

TEST_CASE("help wraps at the width of the terminal", "[hosts]") {
  const TemporaryFolder folder;
  for (const auto& program : computing)
    for (const std::size_t columns : {80, 120}) {
      std::istringstream help(
          run_well(folder, "COLUMNS=" + std::to_string(columns) + " " + program + " --help"));
      std::size_t longest = 0;
      for (std::string line; std::getline(help, line);)
        longest = std::max(longest, line.size());
      CHECK(longest <= columns);
      CHECK(longest > columns - 10);
    }
}

TEST_CASE("help has plain sentences and short lists", "[hosts]") {
  const TemporaryFolder folder;
  for (const auto& program : all_programs()) {
    std::istringstream help(run_well(folder, "COLUMNS=10000 " + program + " --help"));
    int of_heading = 0;
    for (std::string line, description; std::getline(help, line);) {
      INFO(program << ": " << line);
      if (!line.starts_with(" ")) // a heading
        of_heading = 0;
      if (line.starts_with("  -"))
        CHECK(++of_heading <= 20);
      if (line.size() <= 30 || !line.starts_with("  "))
        continue;
      description = line.substr(std::min(line.find_first_not_of(' ', 30), line.size()));
      // A description says what it is about: no word for a noun of another option.
      for (const char* const begin :
           {"of ", "do not.", "likewise", "the same", "which ", "by which ", "them "})
        CHECK_FALSE((description + '.').starts_with(begin));
      CHECK(description.find("likewise") == std::string::npos);
      std::size_t words = 0;
      std::istringstream sentence(description);
      for (std::string word; sentence >> word;) {
        CHECK(++words <= 35);
        if (word.ends_with('.') || word.ends_with(';') || word.ends_with(':'))
          words = 0;
      }
    }
  }
}

TEST_CASE("options that pages name are options of the programs", "[hosts]") {
  const TemporaryFolder folder;
  std::map<std::string, std::set<std::string>> options; // of every program, and of all
  for (const std::string& program : all_programs()) {
    const std::string name = fs::path(program).filename().string(),
                      help = run_well(folder, program + " --help");
    for (const std::string& option : names_of_options(help)) {
      options[name].insert(option);
      options[""].insert(option);
    }
  }
  const fs::path root = BRACEWELL_SOURCE_DIR;
  std::vector<fs::path> pages{root / "README.md", root / "examples/README.md"};
  for (const char* part : {"docs", "docs/programs", "docs/how"})
    for (const auto& entry : fs::directory_iterator(root / part))
      if (entry.path().extension() == ".md")
        pages.push_back(entry.path());
  int commands = 0;
  for (const fs::path& page : pages) {
    std::string text = read_text(page);
    for (std::size_t at = 0; (at = text.find(" \\\n", at)) != std::string::npos;)
      text.replace(at, 3, " "); // a command goes on in the next line
    for (std::size_t at = 0; (at = text.find("bracewell-", at)) != std::string::npos;) {
      const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
      const auto known = options.find(text.substr(at, end - at));
      at = end;
      if (known == options.end() || end == std::string::npos || text[end] != ' ')
        continue;
      ++commands;
      for (const std::string& option :
           names_of_options(text.substr(end, text.find_first_of("`\n|", end) - end))) {
        INFO(page << ": " << known->first << ' ' << option);
        CHECK(known->second.contains(option));
      }
    }
    // What stands alone, on pages that speak of no other programs.
    const std::string name = page.filename().string();
    if (page.parent_path() == root / "docs/programs" || page.parent_path() == root / "examples" ||
        name == "refine.md" || name == "iterative.md" || name == "refine-optics.md" ||
        name == "look-at-the-data.md" || name == "what-is-read.md" || name == "tilt-series.md")
      for (std::size_t at = 0; (at = text.find("`--", at)) != std::string::npos; ++at)
        for (const std::string& option :
             names_of_options(text.substr(at + 1, text.find('`', at + 1) - at - 1))) {
          INFO(page << ": " << option);
          CHECK(options[""].contains(option));
        }
  }
  CHECK(commands > 60);
}

TEST_CASE("what does not fit the memory limit is refused with numbers") {
  const TemporaryFolder folder;
  write_small_problem(folder);
  const std::vector<std::string> words{"--memory-limit 1 MB", "needs", " MB"};
  const std::string limit = " --memory-limit 1";
  expect_bad_input(folder, project + " --map map.mrc --star p.star --out o.mrcs" + limit, words);
  expect_bad_input(folder, reconstruct + " --star p.star --out o.mrc" + limit, words);
  expect_bad_input(folder, refine + " --map map.mrc --star p.star --out o.star" + limit, words);
}

TEST_CASE("a line of voxels is not made a cube of terabytes", "[hosts]") {
  const TemporaryFolder folder;
  write_small_problem(folder);
  write_volume(folder / "line.mrc", std::vector<float>(8000, 1.0f), {8000, 1, 1}, {.pixel_size = 1});
  expect_bad_input(folder, project + " --map line.mrc --star p.star --out o.mrcs --memory-limit 4000",
                   {"line.mrc", "--memory-limit 4000 MB", "8000 voxels", "needs 2048"});
#if !defined(__SANITIZE_ADDRESS__) &&                                                                        \
    !defined(__SANITIZE_THREAD__) // which take more addresses than there is memory
  expect_bad_input(folder, "ulimit -v 4000000 && " + project + " --map line.mrc --star p.star --out o.mrcs",
                   {"line.mrc", "--memory-limit 2048 MB", "needs 2048"}); // half of what the shell allows
#endif
}

TEST_CASE("what control groups allow of memory and processors is heeded") {
  const TemporaryFolder folder;
  write_small_problem(folder);
  write_volume(folder / "line.mrc", std::vector<float>(8000, 1.0f), {8000, 1, 1}, {.pixel_size = 1});
  const fs::path memory = "/sys/fs/cgroup/memory/bracewell_test",
                 processors = "/sys/fs/cgroup/cpu/bracewell_test";
  struct Groups {
    std::vector<fs::path> all;
    ~Groups() {
      for (const fs::path& group : all)
        ::rmdir(group.c_str()); // the system's files in it go with it
    }
  } groups;
  for (const auto& [file, value] : {std::pair{memory / "memory.limit_in_bytes", "500000000"},
                                    {processors / "cpu.cfs_period_us", "100000"},
                                    {processors / "cpu.cfs_quota_us", "100000"}}) {
    std::error_code error;
    if (fs::create_directory(file.parent_path(), error))
      groups.all.push_back(file.parent_path());
    if (std::ofstream stream(file); error || !(stream << value << std::flush))
      SKIP("control groups of version 1 cannot be made here");
  }
  const auto within = [](const fs::path& group, const std::string& command) {
    return "sh -c 'echo $$ > " + (group / "cgroup.procs").string() + "; exec " + command + "'";
  };
  expect_bad_input(folder, within(memory, project + " --map line.mrc --star p.star --out o.mrcs"),
                   {"line.mrc", "--memory-limit 250 MB", "needs 2048"}); // half of what is allowed
  const Outcome outcome =
      run(folder, within(processors, "env -u OMP_NUM_THREADS KOKKOS_PRINT_CONFIGURATION=1 " + project +
                                         " --map map.mrc --star p.star --out o.mrcs"));
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
#if defined(KOKKOS_ENABLE_OPENMP)
  CHECK((outcome.out + outcome.err).find("thread_pool_topology[ 1 x 1 x 1 ]") != std::string::npos);
#endif
}

TEST_CASE("options are finite numbers", "[hosts]") {
  const TemporaryFolder folder;
  write_small_problem(folder);
  for (const char* const option : {"--oversampling nan", "--memory-limit nan", "--pixel-size -nan"})
    expect_bad_input(folder, project + " --map map.mrc --star p.star --out o.mrcs " + option,
                     {"expected", "found", "(see --help)"});
  run_well(folder, project + " --map map.mrc --star p.star --out nan"); // a name
}

TEST_CASE("numbers that no data have are refused: seeds beyond 64 bits, pixels of nothing, masks of a pixel",
          "[hosts]") {
  const TemporaryFolder folder;
  write_small_problem(folder);
  const std::string projection = project + " --map map.mrc --star p.star --out o.mrcs ";
  expect_bad_input(folder, projection + "--seed 99999999999999999999", {"--seed", "2^63", "(see --help)"});
  for (const char* const size : {"1e-300", "1e300"})
    expect_bad_input(folder, projection + "--pixel-size " + size,
                     {"p.star", "0.001 to 1000000 Angstrom", "found 1e"});
  expect_bad_input(folder, reconstruct + " --star p.star --out o.mrc --pixel-size 2 --mask-diameter 1",
                   {"--mask-diameter", "at least 8 Angstrom", "found 1"});
}

TEST_CASE("numbers far beyond what is measured are refused, by column and by option", "[hosts]") {
  const TemporaryFolder folder;
  write_small_problem(folder);
  const std::string star = read_text(folder / "p.star");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = star;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    write_text(folder / "q.star", changed.replace(at, from.size(), to));
    return reconstruct + " --star q.star --out o.mrc";
  };
  expect_bad_input(folder, with(" 2.7 0.1 ", " 1e308 0.1 "),
                   {"q.star", "rlnSphericalAberration", "expected -100000 to 100000 mm", "1e308"});
  expect_bad_input(folder, with(" 2.7 0.1 ", " 2.7 7 "), {"rlnAmplitudeContrast", "-1 to 1"});
  std::string zernike = star;
  zernike.replace(zernike.find("_rlnAmplitudeContrast"), 21, "_rlnAmplitudeContrast\n_rlnOddZernike");
  write_text(folder / "q.star", zernike.replace(zernike.find(" 2.7 0.1 "), 9, " 2.7 0.1 [0,0,1e300,0,0,0] "));
  expect_bad_input(folder, reconstruct + " --star q.star --out o.mrc",
                   {"rlnOddZernike", "-1e+06 to 1e+06 rad", "1e300"});
  std::vector<float> spike(15 * 15 * 15, 1.0f);
  spike[77] = 1e38f;
  write_volume(folder / "spike.mrc", spike, {15, 15, 15}, {.pixel_size = 3});
  expect_bad_input(folder, project + " --map spike.mrc --star p.star --out o.mrcs",
                   {"spike.mrc: has values of 1e+38"});
  // What is not read is written on, and said.
  std::string carried = star;
  carried.replace(carried.find("_rlnRandomSubset"), 16, "_rlnNormCorrection");
  std::string lines;
  std::istringstream text(carried);
  bool first = true;
  for (std::string line; std::getline(text, line); lines += line + '\n')
    if (const std::size_t at = line.find(" 1 1@"); at != std::string::npos && std::exchange(first, false))
      line.replace(at, 3, " nan ");
  write_text(folder / "q.star", lines);
  expect_bad_input(folder, reconstruct + " --strict --star q.star --out o.mrc",
                   {"rlnNormCorrection has no number in row 1 (nan)"});
  expect_bad_input(folder, project + " --map map.mrc --star p.star --out o.mrcs --noise 1e-30",
                   {"--noise", "1e-30"});
  const std::string slices = tomography + " --scan scan.h5 --out o.h5 --centre 16 ";
  Hdf5Writer scan(folder / "scan.h5");
  scan.write<float>("/exchange/data", {8, 1, 32}, std::vector<float>(256, 1.0f));
  scan.commit();
  expect_bad_input(folder, slices + "--hardening 1,1e30", {"--hardening", "-1000 to 1000"});
  expect_bad_input(folder, slices + "--no-log --solver sirt --noise 1e-30", {"--noise", "1e-30"});
  expect_bad_input(folder, slices + "--span 0", {"--span", "other than 0"});
}

TEST_CASE("an output that cannot be right is not written, and the likeliest input is named") {
  const TemporaryFolder folder;
  write_small_problem(folder);
  write_volume(folder / "zero.mrc", std::vector<float>(15 * 15 * 15, 0.0f), {15, 15, 15}, {.pixel_size = 3});
  expect_bad_input(folder, project + " --map zero.mrc --star p.star --out o.mrcs",
                   {"o.mrcs: is not written", "the value 0 everywhere", "look at"});
  Hdf5Writer scan(folder / "scan.h5");
  scan.write<float>("/exchange/data", {8, 1, 32}, std::vector<float>(256, 0.0f));
  scan.write<float>("/large/data", {8, 1, 32}, std::vector<float>(256, 3e37f));
  scan.write<float>("/half/data", {8, 1, 32}, std::vector<float>(256, 0.5f));
  std::vector<float> ramp(256);
  for (std::size_t i = 0; i < ramp.size(); ++i)
    ramp[i] = 9e14f * (float(i % 32) / 16 - 1);
  scan.write<float>("/ramp/data", {8, 1, 32}, ramp);
  scan.write<double>("/equal", {8}, std::vector<double>(8, 30.0));
  scan.write<double>("/units", {8}, std::vector<double>{0, 200, 400, 600, 800, 1000, 1200, 1400});
  scan.write_attribute("/units", "units", std::string("mrad"));
  scan.write<double>("/strange", {8}, std::vector<double>{0, 20, 40, 60, 80, 100, 120, 140});
  scan.write_attribute("/strange", "units", std::string("furlong"));
  scan.commit();
  const std::string slices = tomography + " --scan scan.h5 --out o.h5 --centre 16 --no-log ";
  expect_bad_input(folder, slices, {"scan.h5: row 0 has the value 0 everywhere", "--data"});
  expect_bad_input(folder, slices + "--data /large/data", {"scan.h5: row 0 has values of 3e+37"});
  expect_bad_input(folder, tomography + " --scan scan.h5 --out o.h5 --centre 16 --data /half/data",
                   {"scan.h5: row 0 has the value 0.5 everywhere"});
  expect_bad_input(folder, slices + "--data /ramp/data --hardening 0,1000",
                   {"o.h5: is not written", "scan.h5"});
  expect_bad_input(folder, slices + "--angles /equal", {"all 8 angles are 30"});
  expect_bad_input(folder, slices + "--angles /strange", {"degrees or radians", "furlong"});
  const Outcome outcome = run(folder, slices + "--data /ramp/data --angles /units");
  CHECK(outcome.err.find("8 angles from 0 to 1400 mrad") != std::string::npos);
}

TEST_CASE("no message names a function of the library", "[hosts]") {
  const TemporaryFolder folder;
  write_small_problem(folder);
  run_well(folder, tomography + " --demo .");
  for (const char* const option : {"--stripe-window 4", "--stripe-strength -1", "--dead 0.5",
                                   "--span 400 --method log-polar", "--centre 1e30"}) {
    const Outcome outcome =
        run(folder, tomography + " --scan scan.h5 --out o.h5 --rows 0:1 --stripes sorting " + option);
    INFO(option << '\n' << outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.err.find("Bracewell::") == std::string::npos);
  }
  // Nor behind a file and a row.
  std::string star = read_text(folder / "p.star");
  const std::size_t voltage = star.find("300.0 ");
  REQUIRE(voltage != std::string::npos);
  write_text(folder / "high.star", star.replace(voltage, 5, "30100"));
  expect_bad_input(folder, reconstruct + " --star high.star --out o.mrc",
                   {"high.star: row 1: voltage: expected from 1 to 10000 kV, found 30100"});
}
