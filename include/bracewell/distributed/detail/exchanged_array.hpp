// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/impl/execution.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace Bracewell::Impl {

/// Elements of a View that processes exchange: real numbers, or bytes.
template <class Space>
struct ExchangedArray {
  /// Memory of the host that a device copies from and to at full speed.
#if defined(KOKKOS_HAS_SHARED_HOST_PINNED_SPACE)
  using Staging = Kokkos::SharedHostPinnedSpace;
#else
  using Staging = Kokkos::HostSpace;
#endif
  template <class Memory>
  using Bytes = Kokkos::View<char*, Memory, Kokkos::MemoryUnmanaged>;

  char* data;
  std::int64_t size; ///< elements
  int bytes;         ///< of one
  bool on_host;
  void (*copy)(const Space&, char* data, char* host, std::int64_t bytes, bool to_host);

  template <class View>
  static ExchangedArray of_bytes(const View& view) {
    using Value = typename View::non_const_value_type;
    using Memory = typename View::memory_space;
    static_assert(
        std::is_trivially_copyable_v<Value>,
        "Bracewell::Communicator: expected a View of values that may be copied as bytes, found others.");
    const Array<Value, Memory> array(view);
    return {reinterpret_cast<char*>(array.data), array.size() * std::int64_t(sizeof(Value)), 1,
            is_host<Memory>, copy_bytes<Memory>};
  }

  template <class View>
  static ExchangedArray of_numbers(const View& view) {
    using Real = real_of<View>;
    static_assert(
        std::is_same_v<Real, float> || std::is_same_v<Real, double>,
        "Bracewell::Communicator: expected a View of float, double or complex numbers of them, found "
        "another type of values.");
    ExchangedArray array = of_bytes(view);
    array.size /= std::int64_t(sizeof(Real));
    array.bytes = sizeof(Real);
    return array;
  }

  /// In the order of the instance, except for memory of the host, which is copied at once.
  template <class Memory>
  static void copy_bytes(const Space& space, char* data, char* host, std::int64_t bytes, bool to_host) {
    const auto count = static_cast<std::size_t>(bytes);
    if constexpr (is_host<Memory>)
      std::memcpy(to_host ? host : data, to_host ? data : host, count);
    else if (to_host)
      Kokkos::deep_copy(space, Bytes<Staging>(host, count), Bytes<Memory>(data, count));
    else
      Kokkos::deep_copy(space, Bytes<Memory>(data, count), Bytes<Staging>(host, count));
  }
};

} // namespace Bracewell::Impl
