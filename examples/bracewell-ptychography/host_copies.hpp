// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

#include <complex>
#include <vector>

namespace Bracewell::Examples {

/// std::complex<T> as Kokkos has it; other types as they are.
template <class Value>
struct HostValue {
  using type = Value;
};
template <class T>
struct HostValue<Kokkos::complex<T>> {
  using type = std::complex<T>;
};

/// Values in row-major order into a view of as many; waits until they are there.
template <class View, class Values>
void upload(const Space& space, const View& view, const Values& values) {
  using Value = typename View::non_const_value_type;
  const Part<Value*> flat(view.data(), view.size());
  const Kokkos::View<const Value*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> host(
      reinterpret_cast<const Value*>(values.data()), values.size());
  copy_values(space, flat, host);
  space.fence("Bracewell::examples::upload");
}

/// The reverse.
template <class View>
auto download(const Space& space, const View& view) {
  using Value = typename View::non_const_value_type;
  std::vector<typename HostValue<Value>::type> values(view.size());
  const Kokkos::View<Value*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> host(
      reinterpret_cast<Value*>(values.data()), values.size());
  copy_values(space, host, Part<const Value*>(view.data(), view.size()));
  space.fence("Bracewell::examples::download");
  return values;
}

} // namespace Bracewell::Examples
