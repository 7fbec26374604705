// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <type_traits>

namespace Bracewell::Impl {

/// Views of one dimension of a vector, and of a View's values.
template <class Values>
auto host_list(Values& values) {
  return Kokkos::View<std::remove_reference_t<decltype(*values.data())>*, Kokkos::LayoutRight,
                      Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(values.data(), values.size());
}
template <class Values>
auto device_list(const Values& view) {
  return Kokkos::View<typename Values::non_const_value_type*, Kokkos::LayoutRight,
                      typename Values::memory_space, Kokkos::MemoryUnmanaged>(view.data(), view.size());
}

} // namespace Bracewell::Impl
