// SPDX-License-Identifier: MIT
#include "provenance.hpp"

#include "input_error.hpp"

#include <bracewell/version.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <system_error>
#include <utility>

namespace Bracewell::Examples {

std::string shortest(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

void Provenance::option(const std::string& text) {
  options_ += (options_.empty() ? "" : " ") + text;
  words_.push_back(text);
}

void Provenance::took(const std::filesystem::path& file, const std::string& what) {
  const auto known = std::ranges::find(sources_, file.string(), &Source::file);
  if (known == sources_.end())
    sources_.push_back({file.string(), what});
  else
    known->what += ", " + what;
  if (said_)
    print("note", file.string() + ": " + what);
}

void Provenance::assume(const std::string& sentence) {
  if (strict_)
    throw InputError(sentence + " (an error because of --strict)");
  if (std::ranges::find(assumptions_, sentence) != assumptions_.end())
    return;
  assumptions_.push_back(sentence);
  if (said_)
    print("warning", sentence);
}

void Provenance::assume(const std::vector<std::string>& sentences) {
  for (const auto& sentence : sentences)
    assume(sentence);
}

std::string account_of(const Unusable& data) {
  const std::string found = data.file + ": " + std::to_string(data.count) + " of " + std::to_string(data.of) +
                            ' ' + data.what + ' ' + data.why;
  if (double(data.count) > most_unusable * double(data.of))
    throw InputError(found + ", expected " + shortest(100 * most_unusable) + " % at most" +
                     (data.remedy.empty() ? "" : "; " + data.remedy));
  return found + ": " + data.done;
}

void Provenance::unusable(const Unusable& data) {
  if (data.count == 0)
    return;
  assume(account_of(data));
  counts_["unused_" + data.what] += data.count;
}

void Provenance::say() {
  if (std::exchange(said_, true))
    return;
  for (const auto& note : notes())
    print("note", note);
  for (const auto& sentence : assumptions_)
    print("warning", sentence);
}

void Provenance::print(const std::string& kind, const std::string& sentence) const {
  std::cerr << program_ + ": " + kind + ": " + sentence + '\n';
}

std::vector<std::string> Provenance::notes() const {
  std::vector<std::string> notes;
  if (!options_.empty())
    notes.push_back("options: " + options_);
  for (const auto& source : sources_)
    notes.push_back(source.file + ": " + source.what);
  return notes;
}

std::vector<std::string> Provenance::lines() const {
  std::vector<std::string> lines{program_ + " " BRACEWELL_VERSION};
  std::ranges::copy(notes(), std::back_inserter(lines));
  for (const auto& sentence : assumptions_)
    lines.push_back("assumed: " + sentence);
  return lines;
}

std::string Provenance::script() const {
  const auto quoted = [](const std::string& word) {
    const bool plain =
        !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                "0123456789+-_./:,=%@") == std::string::npos;
    std::string text = plain ? word : "'";
    for (const char c : plain ? std::string() : word)
      text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return plain ? text : text + "'";
  };
  std::string script = "#!/bin/sh\n# Repeats the run of\n";
  for (const auto& line : lines()) {
    script += "#   ";
    for (const char c : line) // a name may have a line's end
      script += c == '\n' ? ' ' : c;
    script += '\n';
  }
  std::error_code ignored;
  script += "cd " + quoted(std::filesystem::current_path(ignored).string()) + " && " + program_;
  for (const auto& word : words_)
    script += " " + quoted(word);
  return script + '\n';
}

std::string Provenance::text() const {
  std::string text;
  for (const auto& line : lines())
    text += (text.empty() ? "" : "\n") + line;
  return text;
}

} // namespace Bracewell::Examples
