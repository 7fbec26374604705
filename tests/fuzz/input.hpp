// SPDX-License-Identifier: MIT
#pragma once

#include "common/input_error.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>

#include <unistd.h>

/// Targets of fuzzing: each takes any bytes, and a reader that meets them may end with InputError alone. libFuzzer runs
/// them (`./dev check fuzz`), and test_fuzz_seeds with all seeds and all that was ever found.
namespace Fuzz {

using Bytes = std::span<const std::uint8_t>;

/// A file of this process with these bytes, the same name for all of them.
inline const std::filesystem::path& as_file(Bytes bytes) {
  static const struct File {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("bracewell-fuzz-" + std::to_string(::getpid()));
    ~File() {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    }
  } file;
  std::ofstream(file.path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return file.path;
}

/// Runs `read`, which may throw InputError and nothing else.
template <class Read>
bool accepts(const Read& read) {
  try {
    read();
    return true;
  } catch (const Bracewell::Examples::InputError&) {
    return false;
  }
}

/// What has to be true whatever the bytes.
inline void require(bool holds) {
  if (!holds)
    std::abort();
}

} // namespace Fuzz
