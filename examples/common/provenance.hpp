// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace Bracewell::Examples {

/// A number as a reader wants it, six digits and no trailing zeros.
std::string shortest(double value);

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
};

} // namespace Bracewell::Examples
