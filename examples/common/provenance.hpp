// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace Bracewell::Examples {

/// A number as a reader wants it, six digits and no trailing zeros.
std::string shortest(double value);

/// Data that a run cannot use, as they are counted in all programs.
struct Unusable {
  std::string file; ///< or another beginning of a sentence
  std::int64_t count = 0, of = 0;
  std::string what;   ///< "frames"; the attribute of outputs is unused_frames
  std::string why;    ///< "were never written"
  std::string done;   ///< "they are left out"
  std::string remedy; ///< "--leave-out 70:120 goes on without them"; for too many of them, may be empty
};

/// Share of data that a run goes on without; with more what is left is not what was measured.
inline constexpr double most_unusable = 0.25;

/// The sentence about them. Throws InputError where they are more than most_unusable.
std::string account_of(const Unusable& data);

/// Where the numbers of a run come from: its options, its files, and what was assumed for want of both. Said
/// once on stderr, and written into the outputs (lines(), text()).
class Provenance {
public:
  /// With `strict` assumptions are errors.
  explicit Provenance(std::string program_name, bool strict = false)
      : program_(std::move(program_name)), strict_(strict) {}

  /// An option as it was given, "--kernel linear"; run_driver enters all of them.
  void option(const std::string& text);
  /// What a file says and the run uses: "pixels of 1.2 Angstrom".
  void took(const std::filesystem::path& file, const std::string& what);
  /// What neither files nor options say, or say with doubt, and what was done in spite of that: one sentence
  /// that begins with the file or the option concerned. A warning, once per sentence. Throws InputError with
  /// --strict.
  void assume(const std::string& sentence);
  void assume(const std::vector<std::string>& sentences);

  /// Counts data that the run cannot use: an assumption (account_of), and a number that counts() has. None are fine.
  void unusable(const Unusable& data);
  /// By the names of attributes: unused_frames.
  const std::map<std::string, std::int64_t>& counts() const { return counts_; }

  /// Prints everything so far, before the work starts; what comes later is printed at once.
  void say();

  /// The program, then a line for the options, for each file, and for each assumption.
  std::vector<std::string> lines() const;
  /// The lines as one text, for an attribute.
  std::string text() const;
  /// A script that repeats the run: the lines as comments, then the command in the folder that this one runs in.
  std::string script() const;

private:
  void print(const std::string& kind, const std::string& sentence) const;
  std::vector<std::string> notes() const;

  struct Source {
    std::string file;
    std::string what;
  };

  std::string program_;
  bool strict_;
  bool said_ = false;
  std::string options_;
  std::vector<std::string> words_ = {}; ///< of the command line
  std::vector<Source> sources_;
  std::vector<std::string> assumptions_;
  std::map<std::string, std::int64_t> counts_ = {};
};

} // namespace Bracewell::Examples
