// SPDX-License-Identifier: MIT
#pragma once

#include "signals.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace Bracewell::Examples {

class OutputFamily;

/// What the files of a program may replace.
struct Replacing {
  /// "bracewell-project 0.2.0": derived names replace files that have the name in their first or last 64 kB, or but for tables
  /// of particles that of another program of Bracewell. Empty: there is no program, and all may be replaced.
  std::string creator = {};
  std::vector<std::filesystem::path> given = {}; ///< names that the user typed: may be anyone's
  bool all = false;                              ///< write-protected ones and others' too
};
/// Holds from now on, for all files.
void set_replacing(Replacing replacing);
/// This one may be anyone's, too: who asks looks at it.
void let_replace(const std::filesystem::path& path);
/// What outputs say of their origin; empty where there is no program.
const std::string& creator();

/// An output file that appears whole or not at all. Until commit() it has no name, where the file system can do
/// that, and goes with the program whatever ends it; elsewhere it is a hidden file in the target's folder, named
/// after target, machine and process, which signals remove (remove_unfinished_on_signals).
class AtomicFile {
public:
  /// Who makes and writes a file: this process, or all together, each in its places. Then construction and commit() are
  /// collective, and the folder has to be one that all hosts see.
  enum class Writers { One, All };

  /// Throws InputError where the target's folder cannot be written to, or the target is there and is not a
  /// regular file, cannot be replaced (sticky folder, immutable, mounted) or may not be (Replacing); std::logic_error where there is an OutputFamily that lacks the target.
  explicit AtomicFile(std::filesystem::path path, Writers writers = Writers::One);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  const std::filesystem::path& path() const { return path_; }
  /// Where it is until commit(), for libraries that open files by name.
  const std::filesystem::path& temporary() const { return temporary_; }
  /// Appends. Throws std::runtime_error (disk full).
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Overwrites from byte `offset` on.
  void write_at(std::int64_t offset, std::span<const std::byte> bytes);
  /// Says that several threads will write `bytes` from byte `offset` on, all of them. Where the file system is in memory a
  /// thread takes the pages from now on, ahead of those that fill them; where there are too few, writing throws. Done
  /// once, for one process; otherwise those who write take the pages.
  void reserve(std::int64_t offset, std::int64_t bytes);
  /// The target is replaced by what was written: now, or where there is an OutputFamily, together with it.
  /// Nothing can be written after.
  void commit();

private:
  friend class OutputFamily;

  std::filesystem::path folder() const;
  bool open_nameless();
  void open_together();
  bool open_existing(const std::string& name);
  void open_named();
  std::filesystem::path hidden_name(int number) const;
  /// Closes the file, which has a hidden name then.
  void close();
  void rename();
  void write_mapped(std::int64_t offset, std::span<const std::byte> bytes);
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  bool named_ = false;  ///< `temporary_` is a name in the target's folder, to be removed
  bool closed_ = false; ///< commit() was called
  bool alone_ = false;  ///< it does not wait for the OutputFamily
  Writers writers_ = Writers::One;
  bool in_memory_ = false;   ///< its file system
  bool fills_pages_ = false; ///< as several threads write to memory
  struct Reservation;
  std::unique_ptr<Reservation> reservation_;
  std::unique_ptr<RemovedOnSignals> removed_on_signals_;
  std::int64_t size_ = 0;
};

} // namespace Bracewell::Examples
