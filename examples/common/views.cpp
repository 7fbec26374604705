// SPDX-License-Identifier: MIT
#include "views.hpp"

namespace Bracewell::Examples {
namespace {

template <class MemorySpace>
auto bytes_at(void* data, std::size_t bytes) {
  return Kokkos::View<char*, MemorySpace, Kokkos::MemoryUnmanaged>(static_cast<char*>(data), bytes);
}
template <class MemorySpace>
auto bytes_at(const void* data, std::size_t bytes) {
  return Kokkos::View<const char*, MemorySpace, Kokkos::MemoryUnmanaged>(static_cast<const char*>(data),
                                                                         bytes);
}

} // namespace

void copy_bytes(const Space& space, void* to, bool to_host, const void* from, bool from_host,
                std::size_t bytes) {
  using Host = Kokkos::HostSpace;
  if (to_host && from_host)
    return Kokkos::deep_copy(space, bytes_at<Host>(to, bytes), bytes_at<Host>(from, bytes));
  if constexpr (!kernels_run_on_host) {
    if (to_host)
      Kokkos::deep_copy(space, bytes_at<Host>(to, bytes), bytes_at<Memory>(from, bytes));
    else if (from_host)
      Kokkos::deep_copy(space, bytes_at<Memory>(to, bytes), bytes_at<Host>(from, bytes));
    else
      Kokkos::deep_copy(space, bytes_at<Memory>(to, bytes), bytes_at<Memory>(from, bytes));
  }
}

} // namespace Bracewell::Examples
