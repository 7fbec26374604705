// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/error.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>

#include <Kokkos_Core.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace Bracewell::Impl {

/// Asks a host's system for large pages, as NumPy does for its arrays: Linux mostly gives them to those alone who ask. A
/// megabyte takes 256 page faults otherwise, half of the time of a plan of many points.
inline void ask_for_large_pages([[maybe_unused]] char* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::size_t least = 1 << 20, page = 1 << 16; // a multiple of small pages everywhere
  const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(memory) % page) % page;
  if (bytes >= least)
    (void)madvise(memory + before, (bytes - before) / page * page, MADV_HUGEPAGE);
#endif
}

/// Uninitialised bytes of an execution space. Views of all types share this function, because a compiler takes 0.1 s for the
/// allocation of each type.
template <class Space>
[[gnu::noinline]] Kokkos::View<char*, typename Space::memory_space>
device_memory(const Space& space, const Label& label, std::size_t bytes) {
  const Kokkos::View<char*, typename Space::memory_space> memory(
      Kokkos::view_alloc(space, Kokkos::WithoutInitializing, std::string(label)), bytes);
  if constexpr (is_host<Space>)
    ask_for_large_pages(memory.data(), bytes);
  return memory;
}

/// A View that owns such bytes. Its handle is made of the tracker of Kokkos' View (5.0.2 and 5.2.2 have both).
template <class View, class Space, class... Extents>
View allocate(const Space& space, const Label& label, Extents... extents) {
  using Value = typename View::value_type;
  static_assert(std::is_trivially_destructible_v<Value>);
  const auto memory = device_memory(space, label, (sizeof(Value) * ... * static_cast<std::size_t>(extents)));
  return View(typename View::data_handle_type(memory.impl_track(), reinterpret_cast<Value*>(memory.data())),
              typename View::array_layout(static_cast<std::size_t>(extents)...));
}

/// Uninitialised memory of an execution space.
template <class Value, class Space>
Kokkos::View<Value*, Space> device_vector(const Space& space, const Label& label, std::int64_t size) {
  return allocate<Kokkos::View<Value*, Space>>(space, label, size);
}

/// The same of any rank: device_view<float**>(space, label, rows, columns).
template <class DataType, class Space, class... Extents>
auto device_view(const Space& space, const Label& label, Extents... extents) {
  using View = Kokkos::View<DataType, Kokkos::LayoutRight, typename Space::memory_space>;
  return allocate<View>(space, label, extents...);
}

/// The same, full of zeros.
template <class DataType, class Space, class... Extents>
auto device_zeros(const Space& space, const Label& label, Extents... extents) {
  using View = Kokkos::View<DataType, Kokkos::LayoutRight, typename Space::memory_space>;
  return View(Kokkos::view_alloc(space, std::string(label)), static_cast<std::size_t>(extents)...);
}

/// Bytes that Views hold.
template <class... Views>
std::size_t bytes_of(const Views&... views) {
  return (std::size_t(0) + ... + (views.size() * sizeof(typename Views::value_type)));
}

/// values[i] = value.
template <class Value>
struct Fill {
  Value* values;
  Value value;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { values[i] = value; }
};

template <class Space, class Value>
void fill(const Space& space, const Label& label, Value* values, std::int64_t size, Value value = {}) {
  launch_kernel(label, Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, size),
                Fill<Value>{values, value});
}

/// Zeros. CUDA writes them faster than a kernel does whose threads have a number each.
template <class Space, class Value>
void clear(const Space& space, const Label& label, Value* values, std::int64_t size) {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<Space, Kokkos::Cuda>) {
    cudaError_t error = cudaSetDevice(space.cuda_device());
    if (error == cudaSuccess)
      error = cudaMemsetAsync(static_cast<void*>(values), 0, static_cast<std::size_t>(size) * sizeof(Value),
                              space.cuda_stream());
    if (error != cudaSuccess)
      throw Error(std::string(label) + ": " + cudaGetErrorString(error));
  } else
#endif
    fill(space, label, values, size);
}

/// Zeros in several arrays, one after the other.
template <class Value, std::size_t count>
struct SetZero {
  Kokkos::Array<Value*, count> values;
  Kokkos::Array<std::int64_t, count> sizes;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    for (std::size_t a = 0; a < count; i -= sizes[a++])
      if (i < sizes[a]) {
        values[a][i] = Value(0);
        return;
      }
  }
};

/// Sets arrays to zero in one launch, none where all are empty; on CUDA those of a megabyte or more before it, by `clear`.
template <class Space, class Value, std::size_t count>
void set_zero(const Space& space, const Label& label, const std::array<std::span<Value>, count>& arrays) {
  SetZero<Value, count> zeros;
  std::int64_t total = 0;
  for (std::size_t a = 0; a < count; ++a) {
    zeros.values[a] = arrays[a].data();
    zeros.sizes[a] = static_cast<std::int64_t>(arrays[a].size());
#if defined(KOKKOS_ENABLE_CUDA)
    if (std::is_same_v<Space, Kokkos::Cuda> && arrays[a].size_bytes() >= std::size_t(1) << 20) {
      clear(space, label, zeros.values[a], zeros.sizes[a]);
      zeros.sizes[a] = 0;
    }
#endif
    total += zeros.sizes[a];
  }
  if (total != 0)
    launch_kernel(label, Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, total), zeros);
}

/// The first values of an array, and zeros behind them.
template <class Value>
struct CopyPadded {
  const Value* from;
  Value* to;
  std::int64_t copied;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { to[i] = i < copied ? from[i] : Value(0); }
};

/// Copies values to memory for as many or more of them.
template <class Space, class Value>
void copy_padded(const Space& space, const Label& label, const Value* from, std::int64_t copied, Value* to,
                 std::int64_t size) {
  launch_kernel(label, Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, size),
                CopyPadded<Value>{from, to, copied});
}

/// Copies bytes between the host and the memory of an execution space, in the order of the instance: it does not wait. One
/// function for all types: deep_copy is instantiated once for GPUs and never for hosts.
template <class Space, bool to_host>
void copy_bytes(const Space& space, void* to, const void* from, std::size_t bytes) {
  if constexpr (is_host<Space>) {
    if (bytes != 0)
      std::memcpy(to, from, bytes);
  } else {
    using Host = Kokkos::HostSpace;
    using Device = typename Space::memory_space;
    using To = std::conditional_t<to_host, Host, Device>;
    using From = std::conditional_t<to_host, Device, Host>;
    Kokkos::deep_copy(
        space, Kokkos::View<char*, To, Kokkos::MemoryUnmanaged>(static_cast<char*>(to), bytes),
        Kokkos::View<const char*, From, Kokkos::MemoryUnmanaged>(static_cast<const char*>(from), bytes));
  }
}
template <class Space, class Value>
void copy_to_device(const Space& space, const Value* host, std::size_t count, Value* device) {
  static_assert(std::is_trivially_copyable_v<Value>);
  copy_bytes<Space, false>(space, device, host, count * sizeof(Value));
}
template <class Space, class Value>
void copy_to_host(const Space& space, const Value* device, std::size_t count, Value* host) {
  static_assert(std::is_trivially_copyable_v<Value>);
  copy_bytes<Space, true>(space, host, device, count * sizeof(Value));
}

/// A copy of host values in the memory of an execution space; waits for it.
template <class Space, class Value>
Kokkos::View<Value*, Space> device_copy(const Space& space, const Label& label,
                                        const std::vector<Value>& values) {
  const auto result = device_vector<Value>(space, label, static_cast<std::int64_t>(values.size()));
  copy_to_device(space, values.data(), values.size(), result.data());
  space.fence("Bracewell: host values are copied");
  return result;
}

} // namespace Bracewell::Impl
