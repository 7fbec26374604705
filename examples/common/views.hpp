// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <string>

/// The arrays that the drivers work on, in the memory of the default execution space.
namespace Bracewell::Examples {

using Space = Kokkos::DefaultExecutionSpace;
using Memory = Space::memory_space;

template <class Data>
using Owned = Kokkos::View<Data, Kokkos::LayoutRight, Memory>;
template <class Data>
using Part = Kokkos::View<Data, Kokkos::LayoutRight, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

template <class View, class... Extents>
View allocate(const std::string& label, Extents... extents) {
  return View(Kokkos::view_alloc("Bracewell::examples::" + label, Kokkos::WithoutInitializing),
              static_cast<std::size_t>(extents)...);
}

} // namespace Bracewell::Examples
