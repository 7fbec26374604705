// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

// What the library Bracewell::Compiled has. A header lists its instances in macros at its end,
//   #define BRACEWELL_INSTANCES_<NAME>(Extern, Space, Real) Extern template class ...
//   BRACEWELL_DECLARE(BRACEWELL_INSTANCES_<NAME>)
// and the library has a source file for each of them, precision and execution space (src/CMakeLists.txt). For those who link
// it, whose compilers see the definition BRACEWELL_COMPILED, they are declared `extern`: functions that are not inline
// are not compiled again then. Without it the second line is nothing. A fourth parameter, Kernel, is every interpolation
// (BRACEWELL_DECLARE_KERNELS), Dim one to three dimensions (BRACEWELL_DECLARE_DIMENSIONS); lists whose names end in _HALF
// are of float alone, those with _DEVICE of GPUs. BRACEWELL_COMPILED_HOSTS=OFF leaves a GPU's library without the hosts'
// instances; its users see the definition BRACEWELL_COMPILED_WITHOUT_HOSTS.

#define BRACEWELL_DECLARE(INSTANCES, ...)                                                                    \
  BRACEWELL_DECLARE_FLOAT(INSTANCES __VA_OPT__(, ) __VA_ARGS__)                                              \
  BRACEWELL_DECLARE_DOUBLE(INSTANCES __VA_OPT__(, ) __VA_ARGS__)
#define BRACEWELL_DECLARE_DIMENSIONS(INSTANCES)                                                              \
  BRACEWELL_DECLARE(INSTANCES, 1)                                                                            \
  BRACEWELL_DECLARE(INSTANCES, 2)                                                                            \
  BRACEWELL_DECLARE(INSTANCES, 3)
#define BRACEWELL_DECLARE_KERNELS(DECLARE, INSTANCES)                                                        \
  DECLARE(INSTANCES, Linear)                                                                                 \
  DECLARE(INSTANCES, CatmullRom)                                                                             \
  DECLARE(INSTANCES, CubicBSpline)

#if !defined(BRACEWELL_COMPILED)
#define BRACEWELL_DECLARE_FLOAT(...)
#define BRACEWELL_DECLARE_DOUBLE(...)
#define BRACEWELL_DECLARE_DEVICE(...)
#define BRACEWELL_DECLARE_DEVICE_FLOAT(...)
#elif defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
#if defined(BRACEWELL_COMPILED_WITHOUT_HOSTS)
#define BRACEWELL_DECLARE_HOSTS(...)
#else
#define BRACEWELL_DECLARE_HOSTS(INSTANCES, ...)                                                              \
  INSTANCES(extern, Kokkos::DefaultHostExecutionSpace, __VA_ARGS__)
#endif
#define BRACEWELL_DECLARE_FLOAT(INSTANCES, ...)                                                              \
  INSTANCES(extern, Kokkos::DefaultExecutionSpace, float __VA_OPT__(, ) __VA_ARGS__)                         \
  BRACEWELL_DECLARE_HOSTS(INSTANCES, float __VA_OPT__(, ) __VA_ARGS__)
#define BRACEWELL_DECLARE_DOUBLE(INSTANCES, ...)                                                             \
  INSTANCES(extern, Kokkos::DefaultExecutionSpace, double __VA_OPT__(, ) __VA_ARGS__)                        \
  BRACEWELL_DECLARE_HOSTS(INSTANCES, double __VA_OPT__(, ) __VA_ARGS__)
#define BRACEWELL_DECLARE_DEVICE(INSTANCES, ...)                                                             \
  BRACEWELL_DECLARE_DEVICE_FLOAT(INSTANCES __VA_OPT__(, ) __VA_ARGS__)                                       \
  INSTANCES(extern, Kokkos::DefaultExecutionSpace, double __VA_OPT__(, ) __VA_ARGS__)
#define BRACEWELL_DECLARE_DEVICE_FLOAT(INSTANCES, ...)                                                       \
  INSTANCES(extern, Kokkos::DefaultExecutionSpace, float __VA_OPT__(, ) __VA_ARGS__)
#else
#define BRACEWELL_DECLARE_FLOAT(INSTANCES, ...)                                                              \
  INSTANCES(extern, Kokkos::DefaultExecutionSpace, float __VA_OPT__(, ) __VA_ARGS__)
#define BRACEWELL_DECLARE_DOUBLE(INSTANCES, ...)                                                             \
  INSTANCES(extern, Kokkos::DefaultExecutionSpace, double __VA_OPT__(, ) __VA_ARGS__)
#define BRACEWELL_DECLARE_DEVICE(...)
#define BRACEWELL_DECLARE_DEVICE_FLOAT(...)
#endif
