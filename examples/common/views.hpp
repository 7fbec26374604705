// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <stdexcept>
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

/// Bytes from one memory to another, each the host's or the default execution space's, in the order of the instance.
void copy_bytes(const Space& space, void* to, bool to_host, const void* from, bool from_host,
                std::size_t bytes);

/// Elements of a View without gaps to another one of the same shape, in the order of the instance. Kokkos::deep_copy is
/// compiled anew for every type and number of axes, with kernels for views with gaps: half a second each.
template <class To, class From>
void copy_values(const Space& space, const To& to, const From& from) {
  using Host = Kokkos::HostSpace;
  static_assert(std::is_same_v<typename To::value_type, typename From::non_const_value_type> &&
                To::rank() == From::rank());
  bool alike = to.span_is_contiguous() && from.span_is_contiguous();
  for (std::size_t axis = 0; axis < To::rank(); ++axis)
    alike = alike && to.extent(axis) == from.extent(axis) &&
            (to.extent(axis) < 2 || to.stride(axis) == from.stride(axis));
  if (!alike)
    throw std::logic_error("copy_values: expected views without gaps of one shape, found others");
  copy_bytes(space, to.data(), Kokkos::SpaceAccessibility<Host, typename To::memory_space>::accessible,
             from.data(), Kokkos::SpaceAccessibility<Host, typename From::memory_space>::accessible,
             to.size() * sizeof(typename To::value_type));
}

/// The same after all kernels; waits for its end.
template <class To, class From>
void copy_values(const To& to, const From& from) {
  Kokkos::fence("Bracewell::examples::copy_values");
  const Space space;
  copy_values(space, to, from);
  space.fence("Bracewell::examples::copy_values");
}

/// One value to all elements of a View without gaps.
template <class View>
void fill_values(const Space& space, const View& view, const typename View::value_type& value) {
  if (!view.span_is_contiguous())
    throw std::logic_error("fill_values: expected a view without gaps, found another one");
  Kokkos::deep_copy(
      space,
      Kokkos::View<typename View::value_type*, typename View::memory_space, Kokkos::MemoryUnmanaged>(
          view.data(), view.size()),
      value);
}

/// The view in another memory; itself where it is there, else a copy that is complete.
template <class To, class View>
auto values_in(const View& view) {
  const auto copy = Kokkos::create_mirror_view(Kokkos::view_alloc(Kokkos::WithoutInitializing, To()), view);
  if constexpr (!std::is_same_v<std::remove_const_t<decltype(copy)>, View>)
    copy_values(copy, view);
  return copy;
}
template <class View>
auto values_on_host(const View& view) {
  return values_in<Kokkos::HostSpace>(view);
}

template <class View, class... Extents>
View allocate(const std::string& label, Extents... extents) {
  return View(Kokkos::view_alloc("Bracewell::examples::" + label, Kokkos::WithoutInitializing),
              static_cast<std::size_t>(extents)...);
}

} // namespace Bracewell::Examples
