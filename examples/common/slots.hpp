// SPDX-License-Identifier: MIT
#pragma once

#include "pipeline.hpp"
#include "views.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace Bracewell::Examples {

/// Memory of the host that copies to and from the device go through at full speed, beside other work; plain memory
/// where kernels run on the host. Its pages are there: it is as fast to get as to fill.
class CopyMemory {
public:
  /// Throws std::bad_alloc, and std::runtime_error where the device does not take it.
  explicit CopyMemory(std::size_t bytes);

  std::byte* data() const { return data_.get(); }

private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
};

/// What items pass through between the stages of a pipeline that read or write files and those that compute: a ring of
/// slots on the host and one on the device, where item k has slot k % slots. One ring serves both where kernels run on
/// the host.
class Slots {
public:
  /// Every slot is aligned to pages.
  Slots(const Space& space, std::size_t bytes_per_slot, int on_host);

  int on_host() const { return on_host_; }
  int on_device() const { return on_device_; }
  std::byte* host(std::int64_t item) const { return host_.data() + item % on_host_ * bytes_; }
  std::byte* device(std::int64_t item) const {
    return kernels_run_on_host ? host(item) : device_.data() + item % on_device_ * bytes_;
  }

  using BytesOf =
      std::function<std::int64_t(std::int64_t item)>; ///< an item may leave the end of its slot unused
  enum class Direction { In, Out };
  /// Puts the stage that copies items to the device, or from there, behind `stages`; none where kernels run on the
  /// host. This has to outlive it.
  void add_copy(std::vector<Stage>& stages, Direction direction, BytesOf bytes) const;

private:
  Space space_;        ///< of copies, which go beside those and kernels of other ones
  std::int64_t bytes_; ///< from one slot to the next
  int on_host_, on_device_;
  CopyMemory host_;
  DeviceView<std::byte*> device_; ///< none where kernels run on the host
};

} // namespace Bracewell::Examples
