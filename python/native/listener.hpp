// SPDX-License-Identifier: MIT
// What the module knows of the process while operators work: who wants to end a call early, and where Kokkos began.
#pragma once

#include <memory>

namespace Bracewell::Python {

/// Who hears whether the caller wants to end a call early.
struct Listener {
  virtual ~Listener() = default;
  /// By any thread.
  virtual bool asked() = 0;
  /// By the caller's: throws where that was so.
  virtual void leave() = 0;
};

/// Work on the host that this thread does meanwhile asks a listener; none: nullptr.
class Heard {
public:
  explicit Heard(Listener* listener);
  ~Heard();
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;

private:
  struct Ear;
  std::unique_ptr<Ear> ear_;
};

/// Whether Kokkos began in this process, or in one that it was forked from, where its threads have stayed.
enum class Life { None, Here, Forked };
Life life();

} // namespace Bracewell::Python
