// SPDX-License-Identifier: MIT
#pragma once

/// Loops of constant length that GPU compilers must unroll, so that the arrays they index stay in registers.
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#define BRACEWELL_UNROLL _Pragma("unroll")
#define BRACEWELL_DO_NOT_UNROLL                                                                              \
  _Pragma("unroll 1") ///< loops of few, which instructions before and after would slow down
#else
#define BRACEWELL_UNROLL
#define BRACEWELL_DO_NOT_UNROLL
#endif
