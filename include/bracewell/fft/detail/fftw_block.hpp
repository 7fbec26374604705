// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/error.hpp>
#include <bracewell/fft/detail/problem.hpp>

#ifdef BRACEWELL_HOST_FFT_POCKETFFT
#include <pocketfft_hdronly.h>
#else
#include <fftw3.h>
#endif

#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>

namespace Bracewell::Impl {

#ifdef BRACEWELL_HOST_FFT_POCKETFFT
/// A transform of pocketfft: sizes and strides in bytes. The library keeps the factors of the lengths that were used last
/// (POCKETFFT_CACHE_SIZE).
template <class T>
struct PocketFFTPlan {
  pocketfft::shape_t shape, axes;
  pocketfft::stride_t complex_strides, half_strides, real_strides;
  bool forward;

  /// Rows without gaps; all axes.
  PocketFFTPlan(int rank, const int* sizes, bool forward_)
      : shape(sizes, sizes + rank), complex_strides(shape.size()), half_strides(shape.size()),
        real_strides(shape.size()), forward(forward_) {
    std::ptrdiff_t elements = 1, stored = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      complex_strides[axis] = elements * std::ptrdiff_t(sizeof(std::complex<T>));
      real_strides[axis] = elements * std::ptrdiff_t(sizeof(T));
      half_strides[axis] = stored * std::ptrdiff_t(sizeof(std::complex<T>));
      elements *= std::ptrdiff_t(shape[axis]);
      stored *= std::ptrdiff_t(axis + 1 == shape.size() ? shape[axis] / 2 + 1 : shape[axis]);
    }
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      axes.push_back(axis);
  }
};

/// pocketfft behind the names that hosts' plans call FFTW by, where BRACEWELL_HOST_FFT is POCKETFFT.
template <class T>
struct FFTW {
  using Plan = const PocketFFTPlan<T>*;
  using Complex = std::complex<T>;
  static constexpr int forward = -1, backward = 1;
  static constexpr unsigned measure = 0, estimate = 0; ///< there is one code for a length

  static Plan plan_c2c(int rank, const int* sizes, Complex*, Complex*, int sign, unsigned) {
    return new PocketFFTPlan<T>(rank, sizes, sign == forward);
  }
  static Plan plan_r2c(int rank, const int* sizes, T*, Complex*, unsigned) {
    return new PocketFFTPlan<T>(rank, sizes, true);
  }
  static Plan plan_c2r(int rank, const int* sizes, Complex*, T*, unsigned) {
    return new PocketFFTPlan<T>(rank, sizes, false);
  }
  /// Of columns that lie side by side.
  static Plan plan_many(int, const int* size, int lanes, Complex*, const int*, int, int, Complex*, const int*,
                        int, int, int sign, unsigned) {
    const int sizes[2] = {*size, lanes};
    auto* const plan = new PocketFFTPlan<T>(2, sizes, sign == forward);
    plan->axes = {0};
    return plan;
  }
  static void execute_c2c(Plan plan, const Complex* in, Complex* out) {
    pocketfft::c2c(plan->shape, plan->complex_strides, plan->complex_strides, plan->axes, plan->forward, in,
                   out, T(1));
  }
  static void execute_r2c(Plan plan, const T* in, Complex* out) {
    pocketfft::r2c(plan->shape, plan->real_strides, plan->half_strides, plan->axes, true, in, out, T(1));
  }
  static void execute_c2r(Plan plan, const Complex* in, T* out) {
    pocketfft::c2r(plan->shape, plan->half_strides, plan->real_strides, plan->axes, false, in, out, T(1));
  }
  static void destroy(Plan plan) { delete plan; }
  static void* allocate(std::size_t bytes) { return std::malloc(bytes); }
  static void release(void* memory) { std::free(memory); }
};
#else
/// What both precisions have.
struct FFTWConstants {
  static constexpr int forward = FFTW_FORWARD, backward = FFTW_BACKWARD;
  static constexpr unsigned measure = FFTW_MEASURE, estimate = FFTW_ESTIMATE;
};

/// FFTW's names for one precision. MKL has them, too.
template <class T>
struct FFTW;
#define BRACEWELL_FFTW(T, name)                                                                              \
  template <>                                                                                                \
  struct FFTW<T> : FFTWConstants {                                                                           \
    using Plan = name##_plan;                                                                                \
    using Complex = name##_complex;                                                                          \
    static constexpr auto plan_c2c = name##_plan_dft;                                                        \
    static constexpr auto plan_r2c = name##_plan_dft_r2c;                                                    \
    static constexpr auto plan_c2r = name##_plan_dft_c2r;                                                    \
    static constexpr auto plan_many = name##_plan_many_dft;                                                  \
    static constexpr auto execute_c2c = name##_execute_dft;                                                  \
    static constexpr auto execute_r2c = name##_execute_dft_r2c;                                              \
    static constexpr auto execute_c2r = name##_execute_dft_c2r;                                              \
    static constexpr auto destroy = name##_destroy_plan;                                                     \
    static constexpr auto allocate = name##_malloc;                                                          \
    static constexpr auto release = name##_free;                                                             \
  };
BRACEWELL_FFTW(double, fftw)
BRACEWELL_FFTW(float, fftwf)
#undef BRACEWELL_FFTW
#endif

/// FFTW's planner keeps state for the whole process and is not thread-safe; executing is.
inline std::mutex& fftw_planner() {
  static std::mutex mutex;
  return mutex;
}

/// Memory aligned for FFTW's SIMD codes.
template <class T>
std::unique_ptr<void, void (*)(void*)> fftw_memory(std::size_t bytes) {
  std::unique_ptr<void, void (*)(void*)> memory(FFTW<T>::allocate(bytes), FFTW<T>::release);
  if (!memory)
    throw std::bad_alloc();
  return memory;
}

/// FFTW plans of one contiguous transform over the axes from `first_axis` on. FFTW picks its SIMD codes by
/// the alignment of the arrays, so there is one plan for every alignment (modulo 16 bytes) of input and
/// output, made when first needed.
template <int Dim, class Input, class Output>
class FFTWBlock {
  using Problem = FFTProblem<Dim, Input, Output>;
  using T = typename Problem::Real;
  using Library = FFTW<T>;
  using Plan = typename Library::Plan;
  using Complex = typename Library::Complex;
  static constexpr std::uintptr_t alignment = 16;

public:
  FFTWBlock(const Problem& problem, int first_axis, unsigned flags)
      : problem_(problem), first_axis_(first_axis), flags_(flags) {}

  ~FFTWBlock() {
    const std::lock_guard lock(fftw_planner());
    for (auto& by_input : plans_)
      for (auto& by_output : by_input)
        for (auto& plan : by_output)
          if (Plan p = plan.load())
            Library::destroy(p);
  }

  std::int64_t input_elements() const { return problem_.elements(first_axis_, Problem::from_real); }
  std::int64_t output_elements() const { return problem_.elements(first_axis_, Problem::to_real); }

  /// Makes the plans for `blocks` consecutive transforms, arrays beginning at these addresses.
  void prepare(std::uintptr_t input, std::uintptr_t output, std::int64_t blocks) {
    for (std::int64_t b = 0; b < blocks && b < std::int64_t(alignment / sizeof(T)); ++b) {
      const std::uintptr_t in = input + static_cast<std::size_t>(b * input_elements()) * sizeof(Input);
      const std::uintptr_t out = output + static_cast<std::size_t>(b * output_elements()) * sizeof(Output);
      std::atomic<Plan>& plan = find(in, out);
      if (plan.load(std::memory_order_acquire))
        continue;
      const std::lock_guard lock(fftw_planner());
      if (!plan.load())
        plan.store(make(in % alignment, out % alignment, in == out), std::memory_order_release);
    }
  }

  void execute(Input* in, Output* out) const {
    const Plan plan = find(reinterpret_cast<std::uintptr_t>(in), reinterpret_cast<std::uintptr_t>(out))
                          .load(std::memory_order_acquire);
    if constexpr (Problem::from_real)
      Library::execute_r2c(plan, in, reinterpret_cast<Complex*>(out));
    else if constexpr (Problem::to_real)
      Library::execute_c2r(plan, reinterpret_cast<Complex*>(in), out);
    else
      Library::execute_c2c(plan, reinterpret_cast<Complex*>(in), reinterpret_cast<Complex*>(out));
  }

private:
  std::atomic<Plan>& find(std::uintptr_t in, std::uintptr_t out) const {
    return plans_[in == out][in % alignment / sizeof(T)][out % alignment / sizeof(T)];
  }

  Plan make(std::uintptr_t in_offset, std::uintptr_t out_offset, bool in_place) const {
    // Planning by measurement writes to the arrays: never to the caller's.
    const auto in_memory =
        fftw_memory<T>(static_cast<std::size_t>(input_elements()) * sizeof(Input) + alignment);
    const auto out_memory =
        fftw_memory<T>(static_cast<std::size_t>(output_elements()) * sizeof(Output) + alignment);
    void* in = static_cast<char*>(in_memory.get()) + in_offset;
    void* out = in_place ? in : static_cast<char*>(out_memory.get()) + out_offset;
    const int* shape = problem_.shape + first_axis_;
    Plan plan;
    if constexpr (Problem::from_real)
      plan = Library::plan_r2c(Dim - first_axis_, shape, static_cast<T*>(in), static_cast<Complex*>(out),
                               flags_);
    else if constexpr (Problem::to_real)
      plan = Library::plan_c2r(Dim - first_axis_, shape, static_cast<Complex*>(in), static_cast<T*>(out),
                               flags_);
    else
      plan =
          Library::plan_c2c(Dim - first_axis_, shape, static_cast<Complex*>(in), static_cast<Complex*>(out),
                            problem_.forward ? Library::forward : Library::backward, flags_);
    if (!plan)
      throw Error("Bracewell::FFT: FFTW could not plan the transform");
    return plan;
  }

  Problem problem_;
  int first_axis_;
  unsigned flags_;
  mutable std::atomic<Plan> plans_[2][4][4] = {};
};

} // namespace Bracewell::Impl
