// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

#include <cstdio>
#include <string>
#include <type_traits>

namespace Bracewell::Impl {

#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
static_assert(alignof(Kokkos::complex<float>) == sizeof(Kokkos::complex<float>),
              "Bracewell: GPUs load, store and add complex numbers whole: build Kokkos with "
              "Kokkos_ENABLE_COMPLEX_ALIGN=ON, its default.");
#endif

/// Whether a space works in the memory of the host.
template <class Space>
inline constexpr bool
    is_host = bool(Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Space::memory_space>::accessible);

/// Bytes of the memory of a GPU; 0 of other spaces.
template <class Space>
std::size_t device_bytes([[maybe_unused]] const Space& space) {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<Space, Kokkos::Cuda>)
    return space.cuda_device_prop().totalGlobalMem;
#endif
#if defined(KOKKOS_ENABLE_HIP)
  if constexpr (std::is_same_v<Space, Kokkos::HIP>)
    return space.hip_device_prop().totalGlobalMem;
#endif
  return 0;
}

/// Teams that a multiprocessor should hold at least, for Kokkos::LaunchBounds: counted in the registers of an
/// NVIDIA GPU, so elsewhere 1, with which a compiler allots registers as it likes.
template <class Space>
constexpr int resident_teams([[maybe_unused]] int on_cuda) {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<Space, Kokkos::Cuda>)
    return on_cuda;
#endif
  return 1;
}

/// The name of a kernel for tools, "Bracewell::project" + "::rows". The text is made where a kernel is launched: callers that
/// made strings, and destroyed them, would be twice as long.
struct Label {
  const char* function;
  const char* step;

  Label(const char* function_, const char* step_ = "") : function(function_), step(step_) {}
  Label(const std::string& name) : function(name.c_str()), step("") {}

  [[gnu::noinline]] operator std::string() const {
    char name[128];
    std::snprintf(name, sizeof name, "%s%s", function, step);
    return name;
  }
};

/// Sums of several numbers; Kokkos' default reduction calls the constructor and +=.
template <int Count>
struct Sums {
  static constexpr int count = Count;
  double values[Count] = {};
  KOKKOS_FUNCTION Sums& operator+=(const Sums& other) {
    for (int i = 0; i < Count; ++i)
      values[i] += other.values[i];
    return *this;
  }
};

} // namespace Bracewell::Impl
