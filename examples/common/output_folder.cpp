// SPDX-License-Identifier: MIT
#include "output_folder.hpp"

#include "input_error.hpp"
#include "output_family.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#endif

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::error_code& error) {
  throw std::runtime_error(path.string() + ": cannot be written: " + error.message());
}

/// Exchanges two names at once; false where the system cannot.
bool exchange(const fs::path& a, const fs::path& b) {
#if defined(__linux__) && defined(SYS_renameat2) && defined(RENAME_EXCHANGE)
  return ::syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
#else
  static_cast<void>(a), static_cast<void>(b);
  return false;
#endif
}

} // namespace

bool FolderNames::is_pattern(const fs::path& path) {
  return path.filename().string().find('%') != std::string::npos;
}

FolderNames FolderNames::of_pattern(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::size_t begin = name.find('%');
  std::size_t end = begin + 1;
  while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])))
    ++end;
  if (end >= name.size() || name[end] != 'd' || end - begin > 3 || name.find('%', end) != std::string::npos)
    throw InputError(path.string() + ": expected a number of digits behind the %, as in slice_%05d.tif");
  return {.folder = path.has_parent_path() ? path.parent_path() : fs::path("."),
          .prefix = name.substr(0, begin),
          .suffix = name.substr(end + 1),
          .digits = end - begin > 1 ? std::stoul(name.substr(begin + 1, end - begin - 1)) : 1};
}

std::string FolderNames::name(std::int64_t number) const {
  const std::string text = std::to_string(number);
  return prefix + std::string(text.size() < digits ? digits - text.size() : 0, '0') + text + suffix;
}

std::int64_t FolderNames::number_of(const std::string& name) const {
  if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) || !name.ends_with(suffix))
    return -1;
  const std::string number = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  const bool all_digits = std::ranges::all_of(number, [](unsigned char c) { return std::isdigit(c) != 0; });
  return all_digits && number.size() < 18 && number.size() >= digits ? std::stoll(number) : -1;
}

bool FolderNames::has(const fs::path& path) const {
  std::error_code ignored;
  const fs::path own = fs::weakly_canonical(folder, ignored);
  fs::path parent = fs::weakly_canonical(path, ignored).parent_path();
  if (!is_whole())
    return parent == own && number_of(path.filename().string()) >= 0;
  for (; parent.has_relative_path(); parent = parent.parent_path())
    if (parent == own)
      return true;
  return false;
}

OutputFolder::OutputFolder(FolderNames names, std::int64_t count, const std::string& kind)
    : names_(std::move(names)) {
  std::error_code error;
  const fs::path& folder = names_.folder;
  if (names_.is_whole()) {
    if (fs::exists(folder, error) && !fs::exists(folder / kind, error))
      throw InputError(folder.string() + ": cannot be written: it is there and has no " + kind);
  } else {
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (const std::string name = entry.path().filename().string(); names_.number_of(name) >= count)
        throw InputError(entry.path().string() + ": is of another run, of more than these " +
                         std::to_string(count) + " slices: remove it, or give the output another name");
  }
  const fs::path place = names_.is_whole() ? folder.parent_path() : folder;
  const std::string stem = names_.is_whole() ? folder.filename().string() : "slices";
  const SignalsHeld wait; // until they know of the folder
  for (int number = 0; hidden_.empty(); ++number) {
    const fs::path name = place / ("." + stem + "." + std::to_string(::getpid()) + "." +
                                   std::to_string(number) + ".unfinished");
    if (::mkdir(name.c_str(), 0777) == 0)
      hidden_ = name;
    else if (errno != EEXIST)
      throw InputError(folder.string() + ": cannot be written: no folder can be made in " +
                       (place.empty() ? std::string(".") : place.string()) + ": " +
                       std::generic_category().message(errno));
  }
  removed_on_signals_ = std::make_unique<RemovedOnSignals>(hidden_);
}

OutputFolder::~OutputFolder() {
  if (removed_on_signals_ == nullptr) // moved from, or done
    return;
  std::error_code ignored;
  fs::remove_all(hidden_, ignored);
}

void OutputFolder::write(const std::string& name, const std::function<void(const fs::path&)>& file) const {
  const SignalsHeld wait; // or what they remove would be made again
  const fs::path path = hidden_ / name;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error)
    fail(names_.folder, error);
  file(path);
}

void OutputFolder::commit() {
  if (OutputFamily::take(*this))
    return;
  const SignalsHeld wait;
  rename();
}

void OutputFolder::rename() {
  std::error_code error;
  const fs::path& folder = names_.folder;
  if (!names_.is_whole()) {
    for (const auto& entry : fs::directory_iterator(hidden_))
      if (fs::rename(entry.path(), folder / entry.path().filename(), error); error)
        fail(folder / entry.path().filename(), error);
  } else if (!fs::exists(folder, error)) {
    if (fs::rename(hidden_, folder, error); error)
      fail(folder, error);
  } else if (!exchange(hidden_, folder)) { // else what is hidden now is the old one
    fs::path old = hidden_;
    old += ".old";
    fs::rename(folder, old, error);
    if (!error)
      fs::rename(hidden_, folder, error);
    if (error)
      fail(folder, error);
    fs::remove_all(old, error);
  }
  fs::remove_all(hidden_, error);
  removed_on_signals_.reset();
}

} // namespace Bracewell::Examples
