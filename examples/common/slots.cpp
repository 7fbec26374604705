// SPDX-License-Identifier: MIT
#include "slots.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <sys/mman.h>

namespace Bracewell::Examples {
namespace {

constexpr std::size_t large_page = 2 << 20, small_page = 4096;

/// What the runtime of the device says to a call: empty where all is well.
#if defined(KOKKOS_ENABLE_CUDA)
std::string registered(std::byte* data, std::size_t bytes) {
  const cudaError_t error = cudaHostRegister(data, bytes, cudaHostRegisterPortable);
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}
void unregister(std::byte* data) { static_cast<void>(cudaHostUnregister(data)); }
#elif defined(KOKKOS_ENABLE_HIP)
std::string registered(std::byte* data, std::size_t bytes) {
  const hipError_t error = hipHostRegister(data, bytes, hipHostRegisterPortable);
  return error == hipSuccess ? "" : hipGetErrorString(error);
}
void unregister(std::byte* data) { static_cast<void>(hipHostUnregister(data)); }
#else
std::string registered(std::byte*, std::size_t) { return ""; }
void unregister(std::byte*) {}
#endif

/// Makes all pages be there: one thread takes twice as long. Not called where kernels run on the host.
[[maybe_unused]] void touch(std::byte* data, std::size_t bytes) {
  std::vector<std::jthread> threads;
  const auto parts = static_cast<std::size_t>(io_threads());
  for (std::size_t part = 0; part < parts; ++part)
    threads.emplace_back([=] {
      for (std::size_t at = part * large_page; at < bytes; at += parts * large_page)
        for (std::size_t i = 0; i < large_page; i += small_page) // where there are no large ones
          data[at + i] = std::byte(0);
    });
}

std::size_t whole_pages(std::size_t bytes, std::size_t page = large_page) {
  return (bytes + page - 1) / page * page;
}

} // namespace

// Large pages that threads touch side by side, registered afterwards, take an eighth of the time of pages that the
// device's library allocates.
CopyMemory::CopyMemory(std::size_t bytes)
    : data_(static_cast<std::byte*>(std::aligned_alloc(large_page, whole_pages(bytes)))) {
  if (!data_)
    throw std::bad_alloc();
  if constexpr (!kernels_run_on_host) {
    ::madvise(data_.get(), whole_pages(bytes), MADV_HUGEPAGE);
    touch(data_.get(), whole_pages(bytes));
  }
  if (const std::string error = registered(data_.get(), whole_pages(bytes)); !error.empty()) {
    std::free(data_.release());
    throw std::runtime_error("the device does not take memory of the host for copies: " + error);
  }
}

void CopyMemory::Free::operator()(std::byte* data) const {
  unregister(data);
  std::free(data);
}

// Slots begin at pages, as Fourier transforms and wide loads want their arrays aligned.
Slots::Slots(const Space& space, std::size_t bytes_per_slot, int on_host)
    : space_(instance_for_copies(space)),
      bytes_(static_cast<std::int64_t>(whole_pages(bytes_per_slot, small_page))), on_host_(on_host),
      on_device_(kernels_run_on_host ? on_host : std::min(on_host, 2)),
      host_(static_cast<std::size_t>(bytes_ * on_host)),
      device_(allocate<DeviceView<std::byte*>>("slots", kernels_run_on_host ? 0 : bytes_ * on_device_)) {}

void Slots::add_copy(std::vector<Stage>& stages, Direction direction, BytesOf bytes) const {
  if constexpr (kernels_run_on_host)
    return;
  const bool in = direction == Direction::In;
  Stage copy{
      .name = in ? "copy in" : "copy out", .slots = in ? on_device_ : on_host_, .bytes = stages.back().bytes};
  copy.work = [this, in, bytes = std::move(bytes)](std::int64_t item) {
    const auto size = static_cast<std::size_t>(bytes(item));
    const Part<std::byte*> of_device(device(item), size);
    const auto of_host = host_view(std::span(host(item), size));
    if (in)
      copy_values(space_, of_device, of_host);
    else
      copy_values(space_, of_host, of_device);
    space_.fence("Bracewell::examples::copy");
  };
  stages.push_back(std::move(copy));
}

} // namespace Bracewell::Examples
