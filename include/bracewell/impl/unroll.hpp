// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
/// `for (...)` of constant length that GPU compilers must unroll, so that the arrays it indexes stay in registers. One macro with
/// its loop: the formatter sees a loop, and indents what is in it.
#define BRACEWELL_UNROLL_FOR(...) _Pragma("unroll") for (__VA_ARGS__)
#else
#define BRACEWELL_UNROLL_FOR(...) for (__VA_ARGS__)
#endif
