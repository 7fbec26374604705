// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/detail/problem.hpp>
#include <bracewell/fft/options.hpp>

#include <memory>
#include <mutex>
#include <string>

#ifdef KOKKOS_ENABLE_CUDA
#include <cufft.h>
#endif
#ifdef KOKKOS_ENABLE_HIP
#include <hipfft/hipfft.h>
#endif

namespace Bracewell::Impl {

/// FFTs by a GPU library. cuFFT and hipFFT differ in names only, which Library holds.
template <class Library, class ExecutionSpace, int Dim, class Input, class Output>
class GPUBackend {
  using Problem = FFTProblem<Dim, Input, Output>;

public:
  GPUBackend(const ExecutionSpace& space, const Problem& problem, const FFTOptions& options)
      : forward_(problem.forward), bytes_(make(handle_, problem)) {
    if (!options.external_workspace)
      workspace_ = Workspace(
          Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::FFT::workspace"), bytes_);
  }

  std::size_t workspace_bytes() const { return bytes_; }

  static std::size_t workspace_needed(const ExecutionSpace&, const Problem& problem) {
    Handle handle;
    return make(handle, problem);
  }

  void execute(const ExecutionSpace& space, Input* in, Output* out, void* external) const {
    if (reinterpret_cast<std::uintptr_t>(in) % sizeof(Complex) != 0 ||
        reinterpret_cast<std::uintptr_t>(out) % sizeof(Complex) != 0)
      fail("FFT::execute", "input or output",
           "arrays that begin at a multiple of " + std::to_string(sizeof(Complex)) + " bytes",
           "one that does not");
    // Stream and workspace are state of the handle: one thread at a time sets them and launches.
    const std::lock_guard lock(mutex_);
    check(Library::set_stream(handle_.value, space), "set the stream");
    check(Library::set_workspace(handle_.value, external ? external : workspace_.data()),
          "set the workspace");
    check(Library::execute(handle_.value, in, out, forward_), "execute the transform");
  }

private:
  using Complex = Kokkos::complex<typename Problem::Real>;
  using Workspace = Kokkos::View<char*, typename ExecutionSpace::memory_space>;

  struct Handle {
    typename Library::Handle value = {};
    ~Handle() { Library::destroy(value); }
  };

  /// Makes the plan; the bytes of workspace that it needs.
  static std::size_t make(Handle& handle, const Problem& problem) {
    long long shape[Dim];
    for (int axis = 0; axis < Dim; ++axis)
      shape[axis] = problem.shape[axis];
    std::size_t bytes = 0;
    check(Library::create(&handle.value), "create a plan");
    check(Library::set_auto_allocation(handle.value, 0), "leave the workspace to the caller");
    check(Library::make_plan(handle.value, Dim, shape, Library::template type<Input, Output>(), problem.batch,
                             &bytes),
          "plan the transform");
    return bytes;
  }

  static void check(typename Library::Result result, const char* action) {
    if (result != Library::success)
      throw Error(std::string("Bracewell::FFT: ") + Library::name + " could not " + action + " (error " +
                  std::to_string(int(result)) + ")");
  }

  bool forward_;
  Handle handle_;
  std::size_t bytes_;
  Workspace workspace_;
  mutable std::mutex mutex_;
};

#ifdef KOKKOS_ENABLE_CUDA

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
#endif

#ifdef KOKKOS_ENABLE_HIP

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
#endif

} // namespace Bracewell::Impl
