// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// Whole programs, measured on inputs of any size.
namespace ProgramBench {

/// How large the inputs are.
struct Sizes {
  std::int64_t particles = 200;
  int box = 32;                                    ///< pixels
  std::int64_t rows = 12, angles = 60, width = 64; ///< of a scan
  std::int64_t patterns = 64, detector = 64;       ///< the latter pixels
};

/// One program with its options, run in the folder of the inputs.
struct Job {
  std::string name;
  std::vector<std::string> command;
  double items = 0, bytes = 0;           ///< that it reads or writes, for the rates
  std::string unit;                      ///< of the items
  std::vector<std::string> outputs = {}; ///< removed before it begins: replacing large files takes time, too
};

/// What one run took.
struct Usage {
  double wall = 0, processor = 0; ///< seconds; the latter of user and system
  double megabytes = 0;           ///< largest resident set
  std::string timings;            ///< what it says with --timings, where it does
};

/// Runs a job in a folder. Throws std::runtime_error where it does not end well, with what it said.
Usage run(const std::filesystem::path& folder, const Job& job);

/// What the system keeps in memory of the folder's files is written and let go: the next to read them waits for the disk.
void forget_cached_files(const std::filesystem::path& folder);

/// Makes a map, poses and images in the folder; projecting and reconstructing them, also with RELION where asked for.
std::vector<Job> cryoem_jobs(const std::filesystem::path& folder, const Sizes& sizes, bool relion);

/// Makes a scan in the folder; reconstructing it in several ways, and for comparison `copy_scan`.
std::vector<Job> tomography_jobs(const std::filesystem::path& folder, const Sizes& sizes);

/// What reading a scan and writing slices of it takes, without any work.
void copy_scan(const std::filesystem::path& scan, const std::filesystem::path& slices);

/// Makes patterns in the folder, plain and compressed; reading them for one pass.
std::vector<Job> ptychography_jobs(const std::filesystem::path& folder, const Sizes& sizes);

} // namespace ProgramBench
