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

/// FFTs by a GPU library. cuFFT and hipFFT differ in the beginnings of names only.
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

#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)

#ifdef KOKKOS_ENABLE_CUDA
#define BRACEWELL_GPU_FFT(name) cufft##name
#define BRACEWELL_GPU_FFT_CONSTANT(name) CUFFT_##name
#else
#define BRACEWELL_GPU_FFT(name) hipfft##name
#define BRACEWELL_GPU_FFT_CONSTANT(name) HIPFFT_##name
#endif

/// The library's names for GPUBackend.
struct GPULibrary {
  using Handle = BRACEWELL_GPU_FFT(Handle);
  using Result = BRACEWELL_GPU_FFT(Result);
  using Type = BRACEWELL_GPU_FFT(Type);
  using Single = BRACEWELL_GPU_FFT(Complex);
  using Double = BRACEWELL_GPU_FFT(DoubleComplex);
  static constexpr Result success = BRACEWELL_GPU_FFT_CONSTANT(SUCCESS);
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

  static Result create(Handle* handle) { return BRACEWELL_GPU_FFT(Create)(handle); }
  static Result set_auto_allocation(Handle handle, int automatic) {
    return BRACEWELL_GPU_FFT(SetAutoAllocation)(handle, automatic);
  }
  static void destroy(Handle handle) { BRACEWELL_GPU_FFT(Destroy)(handle); }
  static Result set_stream(Handle handle, const ExecutionSpace& space) {
    return BRACEWELL_GPU_FFT(SetStream)(handle, stream(space));
  }
  static Result set_workspace(Handle handle, void* workspace) {
    return BRACEWELL_GPU_FFT(SetWorkArea)(handle, workspace);
  }

  static Result make_plan(Handle handle, int rank, long long* shape, Type type, long long batch,
                          std::size_t* bytes) {
    return BRACEWELL_GPU_FFT(MakePlanMany64)(handle, rank, shape, nullptr, 1, 0, nullptr, 1, 0, type, batch,
                                             bytes);
  }

  template <class Input, class Output>
  static constexpr Type type() {
    constexpr bool is_double = std::is_same_v<typename RealOf<Input>::type, double>;
    if constexpr (std::is_floating_point_v<Input>)
      return is_double ? BRACEWELL_GPU_FFT_CONSTANT(D2Z) : BRACEWELL_GPU_FFT_CONSTANT(R2C);
    else if constexpr (std::is_floating_point_v<Output>)
      return is_double ? BRACEWELL_GPU_FFT_CONSTANT(Z2D) : BRACEWELL_GPU_FFT_CONSTANT(C2R);
    else
      return is_double ? BRACEWELL_GPU_FFT_CONSTANT(Z2Z) : BRACEWELL_GPU_FFT_CONSTANT(C2C);
  }

  static float* of(float* values) { return values; }
  static double* of(double* values) { return values; }
  static Single* of(Kokkos::complex<float>* values) { return reinterpret_cast<Single*>(values); }
  static Double* of(Kokkos::complex<double>* values) { return reinterpret_cast<Double*>(values); }

  template <class Input, class Output>
  static Result execute(Handle handle, Input* in, Output* out, bool is_forward) {
    constexpr Type kind = type<Input, Output>();
    if constexpr (kind == BRACEWELL_GPU_FFT_CONSTANT(R2C))
      return BRACEWELL_GPU_FFT(ExecR2C)(handle, of(in), of(out));
    else if constexpr (kind == BRACEWELL_GPU_FFT_CONSTANT(D2Z))
      return BRACEWELL_GPU_FFT(ExecD2Z)(handle, of(in), of(out));
    else if constexpr (kind == BRACEWELL_GPU_FFT_CONSTANT(C2R))
      return BRACEWELL_GPU_FFT(ExecC2R)(handle, of(in), of(out));
    else if constexpr (kind == BRACEWELL_GPU_FFT_CONSTANT(Z2D))
      return BRACEWELL_GPU_FFT(ExecZ2D)(handle, of(in), of(out));
    else if constexpr (kind == BRACEWELL_GPU_FFT_CONSTANT(C2C))
      return BRACEWELL_GPU_FFT(ExecC2C)(handle, of(in), of(out), is_forward ? forward : backward);
    else
      return BRACEWELL_GPU_FFT(ExecZ2Z)(handle, of(in), of(out), is_forward ? forward : backward);
  }
};
#undef BRACEWELL_GPU_FFT
#undef BRACEWELL_GPU_FFT_CONSTANT

template <int Dim, class Input, class Output>
struct FFTBackend<GPULibrary::ExecutionSpace, Dim, Input, Output> {
  using type = GPUBackend<GPULibrary, GPULibrary::ExecutionSpace, Dim, Input, Output>;
};

#endif

} // namespace Bracewell::Impl
