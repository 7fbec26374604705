// SPDX-License-Identifier: MIT
#pragma once

/// \file
/// The version of Bracewell. This is its one source: CMake reads the three numbers from here, ./dev the suffix, too. And what it
/// needs: all headers include this one before anything of Kokkos, so that a compiler that cannot read them says one sentence.

#if defined(__cplusplus) && __cplusplus < 202002L
#error "Bracewell: expected C++20, found an older standard: C and older C++ have bracewell.h, a C interface."
#include <the_compiler_stops_here>
#elif defined(__NVCC__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1202
#error "Bracewell: expected nvcc 12.2 or newer, found an older one: it can use bracewell.h, a C interface."
#include <the_compiler_stops_here>
#elif defined(__cplusplus) && __has_include(<Kokkos_Macros.hpp>)
#include <Kokkos_Macros.hpp>
#if KOKKOS_VERSION < 50000
#error "Bracewell: expected Kokkos 5.0 or newer, found an older one: bracewell.h, a C interface, needs none."
#include <the_compiler_stops_here>
#endif
#endif

/// Changes where users have to change their code.
#define BRACEWELL_VERSION_MAJOR 0
/// Changes where something is added.
#define BRACEWELL_VERSION_MINOR 2
/// Changes where something is mended.
#define BRACEWELL_VERSION_PATCH 0
/// "-dev" until the version is released, then "".
#define BRACEWELL_VERSION_SUFFIX "-dev"

/// \cond
#define BRACEWELL_STRINGIFY_TOKEN(token) #token
#define BRACEWELL_STRINGIFY(macro) BRACEWELL_STRINGIFY_TOKEN(macro)
/// \endcond

/// The version as a string literal, for example "0.1.0", or "0.2.0-dev" before the release of 0.2.0.
#define BRACEWELL_VERSION                                                                                    \
  BRACEWELL_STRINGIFY(BRACEWELL_VERSION_MAJOR)                                                               \
  "." BRACEWELL_STRINGIFY(BRACEWELL_VERSION_MINOR) "." BRACEWELL_STRINGIFY(BRACEWELL_VERSION_PATCH)          \
      BRACEWELL_VERSION_SUFFIX
