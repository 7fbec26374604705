// Losses of small detectors: compiled once (plans/), for this folder's tests and the golden cases. Where the library is compiled for
// a GPU they are its own, which know every size: nvcc takes minutes for each.
#pragma once

#include <bracewell/ptychography/ptychography_loss.hpp>

namespace Test {

/// The fused kernel for two sizes, those of the golden data, is enough for most tests; storage.cpp and page.cpp have others.
using TestDetectors = Bracewell::Impl::FusedDetectors<40, 48>;

#ifdef BRACEWELL_COMPILED
inline constexpr bool library_knows_all = !Bracewell::Impl::is_host<Kokkos::DefaultExecutionSpace>;
#else
inline constexpr bool library_knows_all = false;
#endif

/// The last parameter of losses and solvers: `Storage` with the kernels for `Detectors`, where the library does not know all sizes.
template <class Storage, class Detectors = TestDetectors>
using TestStorage =
    std::conditional_t<library_knows_all, Storage, Bracewell::Impl::CompiledWith<Storage, Detectors>>;

template <class T>
using TestLoss = Bracewell::PtychographyLoss<Kokkos::DefaultExecutionSpace, T, TestStorage<T>>;

} // namespace Test

#define BRACEWELL_TEST_LOSS(Extern, T)                                                                       \
  Extern template class Bracewell::PtychographyLoss<Kokkos::DefaultExecutionSpace, T, Test::TestStorage<T>>; \
  Extern template void Test::TestLoss<T>::set(                                                               \
      const Kokkos::DefaultExecutionSpace&, std::int64_t,                                                    \
      const Bracewell::Array<const T, Kokkos::DefaultExecutionSpace::memory_space>&,                         \
      const Bracewell::Array<const T, Kokkos::DefaultExecutionSpace::memory_space>&);
#if !(defined(BRACEWELL_COMPILED) && (defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)))
#define BRACEWELL_TEST_PLANS
BRACEWELL_TEST_LOSS(extern, float)
BRACEWELL_TEST_LOSS(extern, double)
#endif
