// SPDX-License-Identifier: MIT
#pragma once

#include <fftw3.h>

#include <memory>
#include <mutex>
#include <new>

namespace Bracewell::Impl {

/// FFTW's names for one precision.
template <class T>
struct FFTW;
template <>
struct FFTW<double> {
  using Plan = fftw_plan;
  using Complex = fftw_complex;
  static constexpr auto plan_c2c = fftw_plan_dft;
  static constexpr auto plan_r2c = fftw_plan_dft_r2c;
  static constexpr auto plan_c2r = fftw_plan_dft_c2r;
  static constexpr auto plan_many = fftw_plan_many_dft;
  static constexpr auto execute_c2c = fftw_execute_dft;
  static constexpr auto execute_r2c = fftw_execute_dft_r2c;
  static constexpr auto execute_c2r = fftw_execute_dft_c2r;
  static constexpr auto destroy = fftw_destroy_plan;
  static constexpr auto allocate = fftw_malloc;
  static constexpr auto release = fftw_free;
};
template <>
struct FFTW<float> {
  using Plan = fftwf_plan;
  using Complex = fftwf_complex;
  static constexpr auto plan_c2c = fftwf_plan_dft;
  static constexpr auto plan_r2c = fftwf_plan_dft_r2c;
  static constexpr auto plan_c2r = fftwf_plan_dft_c2r;
  static constexpr auto plan_many = fftwf_plan_many_dft;
  static constexpr auto execute_c2c = fftwf_execute_dft;
  static constexpr auto execute_r2c = fftwf_execute_dft_r2c;
  static constexpr auto execute_c2r = fftwf_execute_dft_c2r;
  static constexpr auto destroy = fftwf_destroy_plan;
  static constexpr auto allocate = fftwf_malloc;
  static constexpr auto release = fftwf_free;
};

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

} // namespace Bracewell::Impl
