// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/detail/gpu.hpp>

#ifdef KOKKOS_ENABLE_CUDA

#include <cufft.h>

namespace Bracewell::Impl {

/// cuFFT's names for GPUBackend.
struct CuFFT {
  static constexpr const char* name = "cuFFT";
  using Handle = cufftHandle;
  using Result = cufftResult;
  static constexpr Result success = CUFFT_SUCCESS;

  static Result create(Handle* handle) { return cufftCreate(handle); }
  static Result set_auto_allocation(Handle handle, int automatic) {
    return cufftSetAutoAllocation(handle, automatic);
  }
  static void destroy(Handle handle) { cufftDestroy(handle); }
  static Result set_stream(Handle handle, const Kokkos::Cuda& space) {
    return cufftSetStream(handle, space.cuda_stream());
  }
  static Result set_workspace(Handle handle, void* workspace) { return cufftSetWorkArea(handle, workspace); }

  static Result make_plan(Handle handle, int rank, long long* shape, cufftType type, long long batch,
                          std::size_t* bytes) {
    return cufftMakePlanMany64(handle, rank, shape, nullptr, 1, 0, nullptr, 1, 0, type, batch, bytes);
  }

  template <class Input, class Output>
  static constexpr cufftType type() {
    constexpr bool is_double = std::is_same_v<typename RealOf<Input>::type, double>;
    if constexpr (std::is_floating_point_v<Input>)
      return is_double ? CUFFT_D2Z : CUFFT_R2C;
    else if constexpr (std::is_floating_point_v<Output>)
      return is_double ? CUFFT_Z2D : CUFFT_C2R;
    else
      return is_double ? CUFFT_Z2Z : CUFFT_C2C;
  }

  static Result execute(Handle handle, float* in, Kokkos::complex<float>* out, bool) {
    return cufftExecR2C(handle, in, reinterpret_cast<cufftComplex*>(out));
  }
  static Result execute(Handle handle, double* in, Kokkos::complex<double>* out, bool) {
    return cufftExecD2Z(handle, in, reinterpret_cast<cufftDoubleComplex*>(out));
  }
  static Result execute(Handle handle, Kokkos::complex<float>* in, float* out, bool) {
    return cufftExecC2R(handle, reinterpret_cast<cufftComplex*>(in), out);
  }
  static Result execute(Handle handle, Kokkos::complex<double>* in, double* out, bool) {
    return cufftExecZ2D(handle, reinterpret_cast<cufftDoubleComplex*>(in), out);
  }
  static Result execute(Handle handle, Kokkos::complex<float>* in, Kokkos::complex<float>* out,
                        bool forward) {
    return cufftExecC2C(handle, reinterpret_cast<cufftComplex*>(in), reinterpret_cast<cufftComplex*>(out),
                        forward ? CUFFT_FORWARD : CUFFT_INVERSE);
  }
  static Result execute(Handle handle, Kokkos::complex<double>* in, Kokkos::complex<double>* out,
                        bool forward) {
    return cufftExecZ2Z(handle, reinterpret_cast<cufftDoubleComplex*>(in),
                        reinterpret_cast<cufftDoubleComplex*>(out), forward ? CUFFT_FORWARD : CUFFT_INVERSE);
  }
};

template <int Dim, class Input, class Output>
struct FFTBackend<Kokkos::Cuda, Dim, Input, Output> {
  using type = GPUBackend<CuFFT, Kokkos::Cuda, Dim, Input, Output>;
};

} // namespace Bracewell::Impl

#endif
