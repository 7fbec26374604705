// SPDX-License-Identifier: MIT
#pragma once

#include "atomic_file.hpp"
#include "output_folder.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// OUT's name with its extension replaced: scan.h5 gives scan_phase.png.
std::filesystem::path beside(const std::filesystem::path& out, const std::string& ending);

/// All files that a run writes, announced before it works: none of them is a file that it reads, under whatever
/// name, and they appear together at commit() or not at all.
class OutputFamily {
public:
  /// A checkpoint is no member: it appears whenever it is committed, and may be read.
  /// @param folder  numbered files, or a folder that is one output: an OutputFolder of these names
  /// Throws InputError where a path is a file that was read, where two are one file, where nothing can be written, and
  /// where another run on this machine writes one of them, until the family's end; std::logic_error where there is another family.
  explicit OutputFamily(std::vector<std::filesystem::path> paths,
                        std::optional<std::filesystem::path> checkpoint = {},
                        std::optional<FolderNames> folder = {});
  OutputFamily(const OutputFamily&) = delete;
  OutputFamily& operator=(const OutputFamily&) = delete;
  ~OutputFamily();

  /// Gives the files that were committed their names. Signals have no effect meanwhile.
  void commit();

  /// Remembers a file that the run reads; InputFile and Hdf5Reader do it. Throws InputError where the family
  /// would write to it.
  static void remember_input(const std::filesystem::path& path);
  /// All files that were read so far.
  static std::vector<std::filesystem::path> files_read();

private:
  friend class AtomicFile;
  friend class OutputFolder;

  /// Throws std::logic_error for a file that the family lacks; returns whether it is no member (the checkpoint).
  static bool alone(const std::filesystem::path& path);
  /// Keeps a file that was committed where there is a family.
  static bool take(AtomicFile& file);
  static bool take(OutputFolder& folder);

  static OutputFamily* current_;

  std::vector<std::filesystem::path> paths_;
  std::optional<std::filesystem::path> checkpoint_;
  std::optional<FolderNames> folder_;
  std::vector<AtomicFile> finished_;
  class Lock;
  std::vector<Lock> locks_;
  std::optional<OutputFolder> finished_folder_;
};

} // namespace Bracewell::Examples
