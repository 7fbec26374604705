// SPDX-License-Identifier: MIT
#include "checkpoint.hpp"

#include "input_error.hpp"
#include "output_family.hpp"

#include <bracewell/version.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <sstream>

#include <sys/stat.h>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

/// A file as the run found it: the name without its folders, which may have moved.
std::string description(const fs::path& path) {
  struct stat properties {};
  ::stat(path.c_str(), &properties);
  std::tm time{};
  ::gmtime_r(&properties.st_mtim.tv_sec, &time);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02d %02d:%02d:%02d.%09ld UTC", time.tm_year + 1900,
                time.tm_mon + 1, time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec,
                properties.st_mtim.tv_nsec);
  return path.filename().string() + " of " + std::to_string(properties.st_size) + " bytes, written " + text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

/// The first line of `lines` that others lack; empty where there is none.
std::string missing_in(const std::vector<std::string>& others, const std::vector<std::string>& lines) {
  const auto line = std::ranges::find_if(
      lines, [&](const auto& own) { return std::ranges::find(others, own) == others.end(); });
  return line == lines.end() ? "" : *line;
}

} // namespace

void add_checkpoint_options(CLI::App& app, CheckpointOptions& options) {
  app.add_flag("--resume", options.resume,
               "go on from the checkpoint (OUT_checkpoint.h5) of an interrupted run with the same inputs, "
               "options and OUT");
  app.add_option("--checkpoint-every", options.seconds, "the least time between two checkpoints")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SECONDS")
      ->capture_default_str();
}

std::vector<std::string> identity_of(const CLI::App& app, const std::vector<std::string>& others) {
  std::vector<std::string> identity{app.get_name() + " " BRACEWELL_VERSION};
  for (const auto* const option : app.get_options()) {
    const std::string name = option->get_name(), type = option->get_type_name();
    const bool elsewhere = type == "FILE" || type == "FOLDER" || name == "--strict" ||
                           name == "--overwrite" || name == "--timings" || name == "--resume" ||
                           name == "--checkpoint-every" || std::ranges::find(others, name) != others.end();
    if (option->count() == 0 || elsewhere)
      continue;
    identity.push_back(name);
    if (option->get_expected_max() > 0) // no flag
      for (const auto& value : option->results())
        identity.back() += " " + value;
  }
  return identity;
}

fs::path Checkpoint::path_of(const fs::path& out) { return beside(out, "_checkpoint.h5"); }

Checkpoint::Checkpoint(const fs::path& out, const CheckpointOptions& options)
    : path_(path_of(out)), interval_(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                               std::chrono::duration<double>(std::min(options.seconds, 1e9)))),
      next_(std::chrono::steady_clock::now() + interval_) {
  std::vector<std::string> files;
  for (const auto& file : OutputFamily::files_read())
    files.push_back(description(file));
  std::ranges::sort(files); // by name: the order of reading is no matter
  for (const auto* const lines : {&options.identity, &std::as_const(files)})
    for (const auto& line : *lines)
      fingerprint_ += line + '\n';
  if (options.resume) {
    if (!fs::exists(path_))
      throw InputError(path_.string() + ": is not there: --resume has nothing to go on from");
    resumed_.emplace(path_);
    check(*resumed_);
  } else if (fs::exists(path_)) {
    throw InputError(path_.string() +
                     ": is there, and an interrupted run left it: use --resume, or remove it to begin again");
  }
}

void Checkpoint::check(const Hdf5Reader& reader) const {
  if (!reader.has_dataset(fingerprint_name))
    throw InputError(path_.string() + ": is no checkpoint");
  const auto bytes = reader.read<std::uint8_t>(fingerprint_name);
  const auto own = lines_of(fingerprint_), others = lines_of({bytes.begin(), bytes.end()});
  const std::string only_there = missing_in(own, others), only_here = missing_in(others, own);
  if (!only_there.empty())
    throw InputError(path_.string() + ": --resume: was made with " + only_there +
                     (only_here.empty() ? "" : ", not " + only_here));
  if (!only_here.empty())
    throw InputError(path_.string() + ": --resume: was made without " + only_here);
}

void Checkpoint::remove() const {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

} // namespace Bracewell::Examples
