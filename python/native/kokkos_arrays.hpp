// SPDX-License-Identifier: MIT
// Tensors as the library takes them, and execution space instances for queues.
#pragma once

#include "operators.hpp"

#include <bracewell/array.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <type_traits>

namespace Bracewell::Python {

template <Backend backend>
using SpaceOf = std::conditional_t<backend == Backend::Host, Kokkos::DefaultHostExecutionSpace,
                                   Kokkos::DefaultExecutionSpace>;

/// The default device's instance for a stream: made once and kept until finalize(), as making one allocates.
Kokkos::DefaultExecutionSpace device_instance(Queue queue);

template <Backend backend>
SpaceOf<backend> space_of(Queue queue) {
  if constexpr (backend == Backend::Host)
    return SpaceOf<backend>();
  else
    return device_instance(queue);
}

/// An Array of what a tensor refers to; not given where the tensor is not.
template <class Value, class Space>
Array<Value, typename Space::memory_space> array_of(const Tensor& tensor) {
  Array<Value, typename Space::memory_space> array;
  if (!tensor.given)
    return array;
  array.data = static_cast<Value*>(tensor.data);
  array.rank = tensor.rank;
  array.given = true;
  for (int axis = 0; axis < tensor.rank; ++axis)
    array.extents[axis] = tensor.extents[axis];
  array.states_width = tensor.width > 0;
  array.width =
      array.states_width ? tensor.width : 2 * (tensor.extents[tensor.rank > 0 ? tensor.rank - 1 : 0] - 1);
  return array;
}

template <class Value, int rank>
struct Starred {
  using type = typename Starred<Value, rank - 1>::type*;
};
template <class Value>
struct Starred<Value, 0> {
  using type = Value;
};

/// An unmanaged View of a tensor of that rank.
template <class Value, int rank, class Space>
auto view_of(const Tensor& tensor) {
  using View = Kokkos::View<typename Starred<Value, rank>::type, Kokkos::LayoutRight,
                            typename Space::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  typename View::array_layout layout;
  for (int axis = 0; axis < rank; ++axis)
    layout.dimension[axis] = static_cast<std::size_t>(tensor.extents[axis]);
  return View(static_cast<Value*>(tensor.data), layout);
}

/// The same, with the width that it states.
template <class Value, int rank, class Space>
auto spectrum_of(const Tensor& tensor) {
  const std::int64_t even = 2 * (tensor.extents[rank - 1] - 1);
  return HalfSpectrum{view_of<Value, rank, Space>(tensor), tensor.width > 0 ? tensor.width : even};
}

inline void expect_rank(const char* function, const char* argument, const Tensor& tensor, int rank,
                        const char* expected) {
  if (tensor.rank != rank)
    Impl::fail(function, argument, expected, std::to_string(tensor.rank) + " axes");
}

/// The enumerator whose name stands at its place.
template <class Enum>
Enum one_of(const char* function, const char* argument, const std::string& name,
            std::initializer_list<const char*> names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end())
    return static_cast<Enum>(found - names.begin());
  std::string all;
  for (const char* one : names)
    all += (all.empty() ? "" : one == *(names.end() - 1) ? " or " : ", ") + std::string(one);
  Impl::fail(function, argument, all, name);
}

} // namespace Bracewell::Python
