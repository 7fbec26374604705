// SPDX-License-Identifier: MIT
#include "jobs.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>

namespace {

using namespace ProgramBench;
namespace fs = std::filesystem;

/// The run in the middle by wall clock.
Usage median(std::vector<Usage> runs) {
  std::ranges::sort(runs, {}, &Usage::wall);
  return runs[runs.size() / 2];
}

void print(const std::vector<Job>& jobs, const std::vector<std::vector<Usage>>& runs) {
  std::puts("| program | wall clock, s | processor, s | memory, MB | thousands per second | GB/s |\n"
            "|---|---|---|---|---|---|");
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Usage usage = median(runs[i]);
    std::printf("| %s | %.3f | %.3f | %.0f | %.4g %s | %.3g |\n", jobs[i].name.c_str(), usage.wall,
                usage.processor, usage.megabytes, 1e-3 * jobs[i].items / usage.wall, jobs[i].unit.c_str(),
                1e-9 * jobs[i].bytes / usage.wall);
  }
  std::puts("");
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (const Usage usage = median(runs[i]); !usage.timings.empty())
      std::printf("%s: %s\n", jobs[i].name.c_str(), usage.timings.c_str());
}

/// Jobs of a field, of all fields where it is "". Makes their inputs.
std::vector<Job> make_jobs(const fs::path& folder, const Sizes& sizes, const std::string& field,
                           bool relion) {
  std::vector<Job> jobs;
  const auto add = [&](const std::string& name, const auto& make) {
    if (field.empty() || field == name)
      std::ranges::copy(make(), std::back_inserter(jobs));
  };
  add("cryo-em", [&] { return cryoem_jobs(folder, sizes, relion); });
  add("tomography", [&] { return tomography_jobs(folder, sizes); });
  add("ptychography", [&] { return ptychography_jobs(folder, sizes); });
  return jobs;
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Makes inputs, runs the programs on them and prints what they took: medians of interleaved runs.",
      "measure_programs"};
  fs::path folder = "programs";
  Sizes sizes;
  int repeat = 1;
  bool relion = false, cold = false;
  std::string field;
  std::vector<std::string> copy, launcher;
  app.add_option("--folder", folder, "of inputs and outputs, some gigabytes")->capture_default_str();
  app.add_option("--particles", sizes.particles)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--box", sizes.box, "of the particles, pixels")
      ->check(CLI::Range(4, 8192))
      ->capture_default_str();
  app.add_option("--rows", sizes.rows, "of the scan")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--angles", sizes.angles)->check(CLI::Range(32, 100000))->capture_default_str();
  app.add_option("--width", sizes.width)->check(CLI::Range(16, 32768))->capture_default_str();
  app.add_option("--patterns", sizes.patterns)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--detector", sizes.detector, "pixels of a pattern's edge")
      ->check(CLI::Range(16, 4096))
      ->capture_default_str();
  app.add_option("--field", field, "one of them alone")
      ->check(CLI::IsMember({"cryo-em", "tomography", "ptychography"}));
  app.add_option("--copy", copy, "SCAN SLICES: read and write, for the job of that name")->expected(2);
  app.add_option("--repeat", repeat)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--launcher", launcher, "that starts the programs, its words apart: mpirun -n 2")
      ->delimiter(' ');
  app.add_flag("--cold", cold, "files on a disk: none of them is in memory when a program starts");
  app.add_flag("--relion", relion, "relion_project and relion_reconstruct too");
  CLI11_PARSE(app, argc, argv);
  try {
    if (!copy.empty()) {
      copy_scan(copy[0], copy[1]);
      return 0;
    }
    fs::create_directories(folder);
    folder = fs::absolute(folder);
    std::vector<Job> jobs = make_jobs(folder, sizes, field, relion);
    for (Job& job : jobs)
      if (fs::path(job.command[0]).filename().string().starts_with("bracewell-"))
        job.command.insert(job.command.begin(), launcher.begin(), launcher.end());
    std::vector<std::vector<Usage>> runs(jobs.size());
    for (int i = 0; i < repeat; ++i)
      for (std::size_t job = 0; job < jobs.size(); ++job) {
        if (cold)
          forget_cached_files(folder);
        runs[job].push_back(run(folder, jobs[job]));
      }
    print(jobs, runs);
  } catch (const std::exception& error) {
    std::cerr << "measure_programs: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
