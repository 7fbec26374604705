// SPDX-License-Identifier: MIT
#include "output_family.hpp"

#include "input_error.hpp"

#include "processes.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/socket.h>
#include <sys/un.h>
#endif

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

/// A file itself, whatever its name.
using Identity = std::pair<dev_t, ino_t>;

std::optional<Identity> identity(const fs::path& path) {
  struct stat properties {};
  if (::stat(path.c_str(), &properties) != 0)
    return {};
  return Identity{properties.st_dev, properties.st_ino};
}

bool same_file(const fs::path& a, const fs::path& b) {
  const auto first = identity(a), second = identity(b);
  if (first || second)
    return first == second;
  std::error_code ignored;
  return fs::weakly_canonical(a, ignored) == fs::weakly_canonical(b, ignored);
}

struct Inputs {
  std::mutex mutex; // readers work in threads of their own
  std::map<Identity, fs::path> names;
};

Inputs& inputs() {
  static Inputs all;
  return all;
}

[[noreturn]] void refuse(const fs::path& output, const fs::path& input) {
  throw InputError(output.string() + ": this run would overwrite " +
                   (output == input ? "it" : input.string() + ", the same file") +
                   ", and reads it; give the output another name");
}

#ifdef __linux__
/// The name of a socket for a file, whatever the name of its folder; nothing where there is no such folder.
std::optional<sockaddr_un> address_of(const fs::path& path) {
  std::error_code error;
  const fs::path file = fs::is_symlink(path, error) ? fs::weakly_canonical(path, error) : path;
  const auto folder = identity(file.has_parent_path() ? file.parent_path() : fs::path("."));
  if (!folder)
    return {};
  const std::string name = file.filename().string();
  const std::string text = "bracewell-" + std::to_string(folder->first) + "-" +
                           std::to_string(folder->second) + "-" +
                           std::to_string(std::hash<std::string>()(name)) + "-" + std::to_string(name.size());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  text.copy(address.sun_path + 1, sizeof address.sun_path - 1); // a zero first: no file has this name
  return address;
}

/// The process that listens to a socket; 0 where it does not tell.
pid_t listener(const sockaddr_un& address) {
  const int other = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  struct ucred who {};
  socklen_t size = sizeof who;
  const bool known = ::connect(other, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     ::getsockopt(other, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0;
  if (other >= 0)
    ::close(other);
  return known ? who.pid : 0;
}
#endif

} // namespace

/// Keeps other runs on this machine from a file: a socket of its name, which leaves no trace whatever ends the process.
class OutputFamily::Lock {
public:
  explicit Lock(const fs::path& path) {
#ifdef __linux__
    const auto address = address_of(path);
    socket_ = address ? ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (socket_ < 0)
      return;
    if (::bind(socket_, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0) {
      constexpr int several = 64; // that ask who this is
      ::listen(socket_, several);
      return;
    }
    const bool taken = errno == EADDRINUSE;
    ::close(std::exchange(socket_, -1));
    if (!taken)
      return;
    const pid_t other = listener(*address);
    throw InputError(path.string() + ": another run" +
                     (other > 0 ? " (process " + std::to_string(other) + ")" : "") +
                     " is writing it: wait for its end, or give another name");
#else
    static_cast<void>(path);
#endif
  }
  Lock(Lock&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  Lock& operator=(Lock&&) = delete;
  ~Lock() {
    if (socket_ >= 0)
      ::close(socket_);
  }

private:
  int socket_ = -1;
};

fs::path beside(const fs::path& out, const std::string& ending) {
  return out.parent_path() / (out.stem().string() + ending);
}

OutputFamily* OutputFamily::current_ = nullptr;

OutputFamily::OutputFamily(std::vector<fs::path> paths, std::optional<fs::path> checkpoint,
                           std::optional<FolderNames> folder)
    : paths_(std::move(paths)), checkpoint_(std::move(checkpoint)), folder_(std::move(folder)) {
  if (current_ != nullptr)
    throw std::logic_error("OutputFamily: there is another one");
  if (is_first_process()) {
    for (const auto& path : paths_)
      locks_.emplace_back(path);
    if (checkpoint_)
      locks_.emplace_back(*checkpoint_);
  }
  for (const auto& path : paths_) {
    const AtomicFile writable(path);
    for (const auto& other : paths_)
      if (&other != &path && same_file(path, other))
        throw InputError(path.string() + ": two outputs would have this name");
  }
  if (checkpoint_) {
    let_replace(*checkpoint_); // Checkpoint looks whose it is
    const AtomicFile writable(*checkpoint_);
  }
  const std::lock_guard lock(inputs().mutex);
  for (const auto& path : paths_) {
    const auto output = identity(path);
    const auto input = output ? inputs().names.find(*output) : inputs().names.end();
    // A file that is gone may have left its number to another one.
    if (input != inputs().names.end() && identity(input->second) == output)
      refuse(path, input->second);
  }
  for (const auto& [file, name] : inputs().names)
    if (folder_ && folder_->has(name))
      refuse(name, name);
  current_ = this;
}

OutputFamily::~OutputFamily() { current_ = nullptr; }

void OutputFamily::commit() {
  const SignalsHeld wait;
  for (auto& file : finished_)
    file.close();
  for (auto& file : finished_)
    file.rename();
  finished_.clear();
  if (finished_folder_)
    finished_folder_->rename();
  finished_folder_.reset();
  current_ = nullptr;
}

void OutputFamily::remember_input(const fs::path& path) {
  const auto input = identity(path);
  if (!input)
    return; // opening it says what is wrong
  const std::lock_guard lock(inputs().mutex);
  inputs().names[*input] = path;
  if (current_ != nullptr)
    for (const auto& output : current_->paths_)
      if (identity(output) == input)
        refuse(output, path);
  if (current_ != nullptr && current_->folder_ && current_->folder_->has(path))
    refuse(path, path);
}

std::vector<fs::path> OutputFamily::files_read() {
  const std::lock_guard lock(inputs().mutex);
  std::vector<fs::path> files;
  for (const auto& [file, name] : inputs().names)
    files.push_back(name);
  return files;
}

bool OutputFamily::alone(const fs::path& path) {
  if (current_ == nullptr || std::ranges::find(current_->paths_, path) != current_->paths_.end())
    return false;
  if (path != current_->checkpoint_)
    throw std::logic_error(path.string() + ": was not announced to the OutputFamily");
  return true;
}

bool OutputFamily::take(AtomicFile& file) {
  if (current_ == nullptr)
    return false;
  static std::mutex mutex; // files may be written by threads of their own
  const std::lock_guard lock(mutex);
  current_->finished_.push_back(std::move(file));
  return true;
}

bool OutputFamily::take(OutputFolder& folder) {
  if (current_ == nullptr)
    return false;
  if (!current_->folder_ || current_->folder_->folder != folder.names_.folder)
    throw std::logic_error(folder.names_.folder.string() + ": was not announced to the OutputFamily");
  current_->finished_folder_.emplace(std::move(folder));
  return true;
}

} // namespace Bracewell::Examples
