// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <thread>
#include <type_traits>

/// The arrays that the drivers work on, in the memory of the default execution space.
namespace Bracewell::Examples {

using Space = Kokkos::DefaultExecutionSpace;
using Memory = Space::memory_space;

template <class Data>
using DeviceView = Kokkos::View<Data, Kokkos::LayoutRight, Memory>;
template <class Data>
using Part = Kokkos::View<Data, Kokkos::LayoutRight, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// Of little that goes to and from the device often.
template <class Data>
using OnHost = Kokkos::View<Data, Kokkos::LayoutRight, Kokkos::SharedHostPinnedSpace>;

/// Values of the host, one after the other, as a View: of a vector, a string, a span.
template <class Values>
auto host_view(Values&& values) {
  using Value = std::remove_pointer_t<decltype(std::data(values))>;
  return Kokkos::View<Value*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(std::data(values),
                                                                          std::size(values));
}

/// Whether what the host writes is where the kernels read it: nothing is copied.
inline constexpr bool kernels_run_on_host = std::is_same_v<Memory, Kokkos::HostSpace>;

/// An instance whose copies go beside the work of another one.
inline Space instance_for_copies(const Space& space) {
  if constexpr (kernels_run_on_host)
    return space;
  else
    return Kokkos::Experimental::partition_space(space, 1, 1)[1];
}

/// Threads that read files, and as many that write them: enough to keep memory busy beside a GPU. Kernels on the host
/// need its threads.
inline int io_threads() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return kernels_run_on_host ? std::clamp(cores / 8, 1, 4) : std::clamp(cores / 3, 1, 5);
}

template <class View, class... Extents>
View allocate(const std::string& label, Extents... extents) {
  return View(Kokkos::view_alloc("Bracewell::examples::" + label, Kokkos::WithoutInitializing),
              static_cast<std::size_t>(extents)...);
}

} // namespace Bracewell::Examples
