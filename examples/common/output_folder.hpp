// SPDX-License-Identifier: MIT
#pragma once

#include "signals.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// Names of numbered files in a folder, "slices/slice_%05d.tif", or a folder that is one output (prefix and suffix are
/// empty then).
struct FolderNames {
  std::filesystem::path folder;
  std::string prefix = {}, suffix = {};
  std::size_t digits = 0; ///< at least

  /// Whether a name has a place for a number: a % in its last part.
  static bool is_pattern(const std::filesystem::path& path);
  /// Throws InputError where what follows the % is no number of digits and a d.
  static FolderNames of_pattern(const std::filesystem::path& path);

  bool is_whole() const { return prefix.empty() && suffix.empty(); }
  std::string name(std::int64_t number) const;
  /// Whether a path is one of these files, or lies in the folder that is whole. Follows links of folders.
  bool has(const std::filesystem::path& path) const;
  /// The number in a name; -1 of other names.
  std::int64_t number_of(const std::string& name) const;
};

/// Files that appear together, in a folder that is there or as one: until commit() they are in a hidden folder beside their
/// place, which goes with this, and by signals.
class OutputFolder {
public:
  /// Throws InputError where no folder can be made, where a whole folder is there and is not one of `kind`, a file that
  /// such folders have, and where there are numbered files from number `count` on, of another run.
  OutputFolder(FolderNames names, std::int64_t count, const std::string& kind = {});
  OutputFolder(OutputFolder&&) noexcept = default;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

  /// Calls `file` with where it has to write one, while signals wait; folders in the name are made. From any thread.
  void write(const std::string& name, const std::function<void(const std::filesystem::path&)>& file) const;
  /// The files take their places: now, or where there is an OutputFamily, together with it.
  void commit();

private:
  friend class OutputFamily;

  void rename();

  FolderNames names_;
  std::filesystem::path hidden_; ///< empty: done
  std::unique_ptr<RemovedOnSignals> removed_on_signals_;
};

} // namespace Bracewell::Examples
