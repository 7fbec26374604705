// Kokkos::deep_copy is compiled anew for every number of axes of every type, half a second each. Here Views without gaps are rows.
#pragma once

#include <Kokkos_Core.hpp>

#include <stdexcept>
#include <type_traits>

namespace Test {

/// The elements of a View without gaps.
template <class View>
auto row_of(const View& view) {
  if (!view.span_is_contiguous())
    throw std::invalid_argument("Test::row_of: expected a View without gaps, found " + view.label());
  return Kokkos::View<typename View::value_type*, typename View::memory_space, Kokkos::MemoryUnmanaged>(
      view.data(), view.size());
}

/// Kokkos::deep_copy of a View, or of a value, to a View of the same order of axes.
template <class To, class From>
void deep_copy(const To& to, const From& from) {
  if constexpr (Kokkos::is_view_v<From>) {
    static_assert(To::rank() == From::rank() &&
                  (To::rank() < 2 || std::is_same_v<typename To::array_layout, typename From::array_layout>));
    if (to.size() != from.size())
      throw std::invalid_argument("Test::deep_copy: expected as many elements, found others");
    Kokkos::deep_copy(row_of(to), row_of(from));
  } else {
    Kokkos::deep_copy(row_of(to), typename To::value_type(from));
  }
}

} // namespace Test
