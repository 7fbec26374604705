// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/detail/gpu.hpp>

#ifdef KOKKOS_ENABLE_HIP

#include <hipfft/hipfft.h>

namespace Bracewell::Impl {

/// hipFFT's names for GPUBackend.
struct HipFFT {
  static constexpr const char* name = "hipFFT";
  using Handle = hipfftHandle;
  using Result = hipfftResult;
  static constexpr Result success = HIPFFT_SUCCESS;

  static Result create(Handle* handle) { return hipfftCreate(handle); }
  static Result set_auto_allocation(Handle handle, int automatic) {
    return hipfftSetAutoAllocation(handle, automatic);
  }
  static void destroy(Handle handle) { hipfftDestroy(handle); }
  static Result set_stream(Handle handle, const Kokkos::HIP& space) {
    return hipfftSetStream(handle, space.hip_stream());
  }
  static Result set_workspace(Handle handle, void* workspace) { return hipfftSetWorkArea(handle, workspace); }

  static Result make_plan(Handle handle, int rank, long long* shape, hipfftType type, long long batch,
                          std::size_t* bytes) {
    return hipfftMakePlanMany64(handle, rank, shape, nullptr, 1, 0, nullptr, 1, 0, type, batch, bytes);
  }

  template <class Input, class Output>
  static constexpr hipfftType type() {
    constexpr bool is_double = std::is_same_v<typename RealOf<Input>::type, double>;
    if constexpr (std::is_floating_point_v<Input>)
      return is_double ? HIPFFT_D2Z : HIPFFT_R2C;
    else if constexpr (std::is_floating_point_v<Output>)
      return is_double ? HIPFFT_Z2D : HIPFFT_C2R;
    else
      return is_double ? HIPFFT_Z2Z : HIPFFT_C2C;
  }

  static Result execute(Handle handle, float* in, Kokkos::complex<float>* out, bool) {
    return hipfftExecR2C(handle, in, reinterpret_cast<hipfftComplex*>(out));
  }
  static Result execute(Handle handle, double* in, Kokkos::complex<double>* out, bool) {
    return hipfftExecD2Z(handle, in, reinterpret_cast<hipfftDoubleComplex*>(out));
  }
  static Result execute(Handle handle, Kokkos::complex<float>* in, float* out, bool) {
    return hipfftExecC2R(handle, reinterpret_cast<hipfftComplex*>(in), out);
  }
  static Result execute(Handle handle, Kokkos::complex<double>* in, double* out, bool) {
    return hipfftExecZ2D(handle, reinterpret_cast<hipfftDoubleComplex*>(in), out);
  }
  static Result execute(Handle handle, Kokkos::complex<float>* in, Kokkos::complex<float>* out,
                        bool forward) {
    return hipfftExecC2C(handle, reinterpret_cast<hipfftComplex*>(in), reinterpret_cast<hipfftComplex*>(out),
                         forward ? HIPFFT_FORWARD : HIPFFT_BACKWARD);
  }
  static Result execute(Handle handle, Kokkos::complex<double>* in, Kokkos::complex<double>* out,
                        bool forward) {
    return hipfftExecZ2Z(handle, reinterpret_cast<hipfftDoubleComplex*>(in),
                         reinterpret_cast<hipfftDoubleComplex*>(out),
                         forward ? HIPFFT_FORWARD : HIPFFT_BACKWARD);
  }
};

template <int Dim, class Input, class Output>
struct FFTBackend<Kokkos::HIP, Dim, Input, Output> {
  using type = GPUBackend<HipFFT, Kokkos::HIP, Dim, Input, Output>;
};

} // namespace Bracewell::Impl

#endif
