// Kokkos::deep_copy is compiled anew for every number of axes of every type, half a second each, kernels among it. These work on bytes
// and compile once. They wait for all kernels, and all Views are done when they return.
#pragma once

#include <Kokkos_Core.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace Test {

/// Where the elements of a View are.
struct Elements {
  std::byte* data;
  std::size_t bytes, span; ///< of an element, and elements from the first to behind the last
  bool on_host;
  std::array<std::size_t, 8> extents{1, 1, 1, 1, 1, 1, 1, 1}, strides{};

  std::size_t count() const {
    std::size_t product = 1;
    for (const std::size_t extent : extents)
      product *= extent;
    return product;
  }
};

template <class View>
Elements elements_of(const View& view) {
  Elements all{
      .data = reinterpret_cast<std::byte*>(const_cast<typename View::non_const_value_type*>(view.data())),
      .bytes = sizeof(typename View::value_type),
      .span = view.span(),
      .on_host = Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename View::memory_space>::accessible};
  for (int axis = 0; axis < int(View::rank()); ++axis) {
    all.extents[std::size_t(axis)] = view.extent(std::size_t(axis));
    all.strides[std::size_t(axis)] = view.stride(std::size_t(axis));
  }
  return all;
}

/// Bytes from one memory to another, each the host's or the default execution space's.
inline void move_bytes(std::byte* to, bool to_host, const std::byte* from, bool from_host,
                       std::size_t bytes) {
  using Host = Kokkos::HostSpace;
  using Device = Kokkos::DefaultExecutionSpace::memory_space;
  if (bytes == 0)
    return;
  if (to_host && from_host) {
    std::memmove(to, from, bytes);
  } else if constexpr (!Kokkos::SpaceAccessibility<Host, Device>::accessible) {
    const auto view = [&]<class Space>(Space, auto* data) {
      return Kokkos::View<std::remove_pointer_t<decltype(data)>*, Space, Kokkos::MemoryUnmanaged>(data,
                                                                                                  bytes);
    };
    const auto copy = [&](auto target, auto source) {
      Kokkos::deep_copy(view(target, to), view(source, from));
    };
    if (to_host)
      copy(Host(), Device()); // NOLINT(bugprone-branch-clone): one memory on hosts
    else if (from_host)
      copy(Device(), Host());
    else
      copy(Device(), Device());
  }
}

/// Calls for the offset of each element, the last axis the fastest.
template <class Call>
void for_each_offset(const Elements& all, const Call& call) {
  std::array<std::size_t, 8> at{};
  for (std::size_t left = all.count(); left > 0; --left) {
    std::size_t offset = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      offset += at[axis] * all.strides[axis];
    call(offset * all.bytes);
    for (std::size_t axis = at.size(); axis-- > 0 && ++at[axis] == all.extents[axis];)
      at[axis] = 0;
  }
}

/// All bytes of a View, gaps with them, on the host.
inline std::vector<std::byte> bytes_of(const Elements& all) {
  std::vector<std::byte> bytes(all.span * all.bytes);
  move_bytes(bytes.data(), true, all.data, all.on_host, bytes.size());
  return bytes;
}

inline void copy_elements(const Elements& to, const Elements& from) {
  if (to.extents != from.extents || to.bytes != from.bytes)
    throw std::invalid_argument("Test::deep_copy: expected Views of one shape, found others");
  Kokkos::fence("Test::deep_copy");
  if (to.strides == from.strides && to.span == to.count())
    return move_bytes(to.data, to.on_host, from.data, from.on_host, to.span * to.bytes);
  const std::vector<std::byte> source = bytes_of(from);
  std::vector<std::byte> target = bytes_of(to);
  std::vector<std::size_t> places;
  for_each_offset(from, [&](std::size_t offset) { places.push_back(offset); });
  const std::size_t* place = places.data();
  for_each_offset(to, [&](std::size_t offset) { std::memcpy(&target[offset], &source[*place++], to.bytes); });
  move_bytes(to.data, to.on_host, target.data(), true, target.size());
}

inline void fill_elements(const Elements& to, const void* value) {
  Kokkos::fence("Test::deep_copy");
  std::vector<std::byte> target =
      to.span == to.count() ? std::vector<std::byte>(to.span * to.bytes) : bytes_of(to);
  for_each_offset(to, [&](std::size_t offset) { std::memcpy(&target[offset], value, to.bytes); });
  move_bytes(to.data, to.on_host, target.data(), true, target.size());
}

/// Kokkos::deep_copy of a View, or of a value, to a View, whatever the order of their axes.
template <class To, class From>
void deep_copy(const To& to, const From& from) {
  using Value = typename To::value_type;
  if constexpr (Kokkos::is_view_v<From>) {
    static_assert(std::is_same_v<Value, typename From::non_const_value_type> && To::rank() == From::rank());
    copy_elements(elements_of(to), elements_of(from));
  } else {
    const Value value(from);
    fill_elements(elements_of(to), &value);
  }
}

/// The same, of any instance of an execution space.
template <class Space, class To, class From>
requires Kokkos::is_execution_space_v<Space>
void deep_copy(const Space&, const To& to, const From& from) { Test::deep_copy(to, from); }

/// The elements of a View without gaps.
template <class View>
auto row_of(const View& view) {
  if (!view.span_is_contiguous())
    throw std::invalid_argument("Test::row_of: expected a View without gaps, found " + view.label());
  return Kokkos::View<typename View::value_type*, typename View::memory_space, Kokkos::MemoryUnmanaged>(
      view.data(), view.size());
}

/// A copy of a View in another memory, or the View where it is there.
template <class Memory, class View>
auto copy_in(const View& view) {
  const auto copy =
      Kokkos::create_mirror_view(Kokkos::view_alloc(Kokkos::WithoutInitializing, Memory()), view);
  if constexpr (!std::is_same_v<std::decay_t<decltype(copy)>, View>)
    Test::deep_copy(copy, view);
  return copy;
}
template <class View>
auto on_host(const View& view) {
  return copy_in<Kokkos::HostSpace>(view);
}
template <class View>
auto on_device(const View& view) {
  return copy_in<Kokkos::DefaultExecutionSpace::memory_space>(view);
}

} // namespace Test
