// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/detail/problem.hpp>
#include <bracewell/fft/options.hpp>

#include <mutex>
#include <string>
#include <type_traits>

#ifdef KOKKOS_ENABLE_CUDA
#include <cufft.h>
#endif
#ifdef KOKKOS_ENABLE_HIP
#include <hipfft/hipfft.h>
#endif

#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
namespace Bracewell::Impl {

#ifdef KOKKOS_ENABLE_CUDA
#define BRACEWELL_GPU_FFT(name) cufft##name
#define BRACEWELL_GPU_FFT_CONSTANT(name) CUFFT_##name
#else
#define BRACEWELL_GPU_FFT(name) hipfft##name
#define BRACEWELL_GPU_FFT_CONSTANT(name) HIPFFT_##name
#endif

/// Where the names of cuFFT and hipFFT differ not only in their beginnings.
struct GPULibrary {
#ifdef KOKKOS_ENABLE_CUDA
  using ExecutionSpace = Kokkos::Cuda;
  static constexpr const char* name = "cuFFT";
  static constexpr int forward = CUFFT_FORWARD, backward = CUFFT_INVERSE;
  static auto stream(const ExecutionSpace& space) { return space.cuda_stream(); }
#else
  using ExecutionSpace = Kokkos::HIP;
  static constexpr const char* name = "hipFFT";
  static constexpr int forward = HIPFFT_FORWARD, backward = HIPFFT_BACKWARD;
  static auto stream(const ExecutionSpace& space) { return space.hip_stream(); }
#endif
};

/// FFTs by a GPU library.
template <int Dim, class Input, class Output>
class GPUBackend {
  using Problem = FFTProblem<Dim, Input, Output>;
  using ExecutionSpace = GPULibrary::ExecutionSpace;

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
    check(BRACEWELL_GPU_FFT(SetStream)(handle_.value, GPULibrary::stream(space)), "set the stream");
    check(BRACEWELL_GPU_FFT(SetWorkArea)(handle_.value, external ? external : workspace_.data()),
          "set the workspace");
    check(transform(in, out), "execute the transform");
  }

private:
  using Complex = Kokkos::complex<typename Problem::Real>;
  using Workspace = Kokkos::View<char*, typename ExecutionSpace::memory_space>;
  using Result = BRACEWELL_GPU_FFT(Result);
  using Single = BRACEWELL_GPU_FFT(Complex);
  using Double = BRACEWELL_GPU_FFT(DoubleComplex);
  static constexpr bool is_double = std::is_same_v<typename Problem::Real, double>;
  static constexpr auto type =
      Problem::from_real ? (is_double ? BRACEWELL_GPU_FFT_CONSTANT(D2Z) : BRACEWELL_GPU_FFT_CONSTANT(R2C))
      : Problem::to_real ? (is_double ? BRACEWELL_GPU_FFT_CONSTANT(Z2D) : BRACEWELL_GPU_FFT_CONSTANT(C2R))
                         : (is_double ? BRACEWELL_GPU_FFT_CONSTANT(Z2Z) : BRACEWELL_GPU_FFT_CONSTANT(C2C));

  struct Handle {
    BRACEWELL_GPU_FFT(Handle) value = {};
    ~Handle() { BRACEWELL_GPU_FFT(Destroy)(value); }
  };

  /// Makes the plan; the bytes of workspace that it needs.
  static std::size_t make(Handle& handle, const Problem& problem) {
    long long shape[Dim];
    for (int axis = 0; axis < Dim; ++axis)
      shape[axis] = problem.shape[axis];
    std::size_t bytes = 0;
    check(BRACEWELL_GPU_FFT(Create)(&handle.value), "create a plan");
    check(BRACEWELL_GPU_FFT(SetAutoAllocation)(handle.value, 0), "leave the workspace to the caller");
    check(BRACEWELL_GPU_FFT(MakePlanMany64)(handle.value, Dim, shape, nullptr, 1, 0, nullptr, 1, 0, type,
                                            problem.batch, &bytes),
          "plan the transform");
    return bytes;
  }

  static void check(Result result, const char* action) {
    if (result != BRACEWELL_GPU_FFT_CONSTANT(SUCCESS))
      throw Error(std::string("Bracewell::FFT: ") + GPULibrary::name + " could not " + action + " (error " +
                  std::to_string(int(result)) + ")");
  }

  static float* of(float* values) { return values; }
  static double* of(double* values) { return values; }
  static Single* of(Kokkos::complex<float>* values) { return reinterpret_cast<Single*>(values); }
  static Double* of(Kokkos::complex<double>* values) { return reinterpret_cast<Double*>(values); }

  Result transform(Input* in, Output* out) const {
    const int direction = forward_ ? GPULibrary::forward : GPULibrary::backward;
    if constexpr (type == BRACEWELL_GPU_FFT_CONSTANT(R2C))
      return BRACEWELL_GPU_FFT(ExecR2C)(handle_.value, of(in), of(out));
    else if constexpr (type == BRACEWELL_GPU_FFT_CONSTANT(D2Z))
      return BRACEWELL_GPU_FFT(ExecD2Z)(handle_.value, of(in), of(out));
    else if constexpr (type == BRACEWELL_GPU_FFT_CONSTANT(C2R))
      return BRACEWELL_GPU_FFT(ExecC2R)(handle_.value, of(in), of(out));
    else if constexpr (type == BRACEWELL_GPU_FFT_CONSTANT(Z2D))
      return BRACEWELL_GPU_FFT(ExecZ2D)(handle_.value, of(in), of(out));
    else if constexpr (type == BRACEWELL_GPU_FFT_CONSTANT(C2C))
      return BRACEWELL_GPU_FFT(ExecC2C)(handle_.value, of(in), of(out), direction);
    else
      return BRACEWELL_GPU_FFT(ExecZ2Z)(handle_.value, of(in), of(out), direction);
  }

  bool forward_;
  Handle handle_;
  std::size_t bytes_;
  Workspace workspace_;
  mutable std::mutex mutex_;
};
#undef BRACEWELL_GPU_FFT
#undef BRACEWELL_GPU_FFT_CONSTANT

template <int Dim, class Input, class Output>
struct FFTBackend<GPULibrary::ExecutionSpace, Dim, Input, Output> {
  using type = GPUBackend<Dim, Input, Output>;
};

} // namespace Bracewell::Impl
#endif
