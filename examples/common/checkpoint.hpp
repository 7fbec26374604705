// SPDX-License-Identifier: MIT
#pragma once

#include "hdf5.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// When a run leaves checkpoints, and whether it goes on from one.
struct CheckpointOptions {
  bool resume = false;
  double seconds = 300;              ///< between two checkpoints, at least
  std::vector<std::string> identity; ///< see identity_of
};

/// Adds --resume and --checkpoint-every.
void add_checkpoint_options(CLI::App& app, CheckpointOptions& options);

/// What of the command line changes a result: the program with its version, and the options given, "--kernel
/// linear", but for names of files and folders, --strict, those of checkpoints and `others`.
std::vector<std::string> identity_of(const CLI::App& app, const std::vector<std::string>& others);

/// A dataset of so many values. Throws InputError for another number.
template <class Value>
std::vector<Value> read_exactly(const Hdf5Reader& file, const std::string& name, std::size_t size) {
  const auto values = file.read<Value>(name);
  if (values.size() != size)
    file.fail(name, "expected " + std::to_string(size) + " values, found " + std::to_string(values.size()));
  return values;
}

/// The state of an unfinished run in an HDF5 file beside its output, OUT_checkpoint.h5, which is replaced as the
/// run goes on and removed at its end. It knows the options of its run and the files that this read, by name,
/// size and time.
class Checkpoint {
public:
  /// `out_checkpoint.h5`; for OutputFamily.
  static std::filesystem::path path_of(const std::filesystem::path& out);

  /// To be made when all inputs were opened. Throws InputError where there is a checkpoint and it is not asked
  /// for, and where the one to resume from is missing, malformed or of another run.
  Checkpoint(const std::filesystem::path& out, const CheckpointOptions& options);

  /// The checkpoint to resume from; absent: the run begins.
  const std::optional<Hdf5Reader>& resumed() const { return resumed_; }
  /// Whether the time has come for a new one.
  bool due() const { return std::chrono::steady_clock::now() >= next_; }
  /// Replaces the checkpoint by what fill(Hdf5Writer&) writes.
  template <class Fill>
  void save(const Fill& fill) {
    Hdf5Writer file(path_);
    fill(file);
    file.write<std::uint8_t>(
        fingerprint_name, {static_cast<std::int64_t>(fingerprint_.size())},
        {reinterpret_cast<const std::uint8_t*>(fingerprint_.data()), fingerprint_.size()});
    file.commit();
    next_ = std::chrono::steady_clock::now() + interval_;
  }
  /// Removes it: the run is complete.
  void remove() const;

private:
  static constexpr const char* fingerprint_name = "/fingerprint";

  void check(const Hdf5Reader& reader) const;

  std::filesystem::path path_;
  std::string fingerprint_; ///< lines
  std::optional<Hdf5Reader> resumed_;
  std::chrono::steady_clock::duration interval_;
  std::chrono::steady_clock::time_point next_;
};

} // namespace Bracewell::Examples
