// Losses of small detectors: compiled once (plans/), for this folder's tests and the golden cases.
#pragma once

#include <bracewell/ptychography/ptychography_loss.hpp>

namespace Test {

/// The fused kernel for two sizes, those of the golden data, is enough for most tests; storage.cpp and page.cpp have others.
using TestDetectors = Bracewell::Impl::FusedDetectors<40, 48>;

template <class T>
using TestLoss = Bracewell::PtychographyLoss<Kokkos::DefaultExecutionSpace, T,
                                             Bracewell::Impl::CompiledWith<T, TestDetectors>>;

} // namespace Test

#define BRACEWELL_TEST_LOSS(Extern, T)                                                                       \
  Extern template class Bracewell::PtychographyLoss<Kokkos::DefaultExecutionSpace, T,                        \
                                                    Bracewell::Impl::CompiledWith<T, Test::TestDetectors>>;  \
  Extern template void Test::TestLoss<T>::set(                                                               \
      const Kokkos::DefaultExecutionSpace&, std::int64_t,                                                    \
      const Bracewell::Array<const T, Kokkos::DefaultExecutionSpace::memory_space>&,                         \
      const Bracewell::Array<const T, Kokkos::DefaultExecutionSpace::memory_space>&);
BRACEWELL_TEST_LOSS(extern, float)
BRACEWELL_TEST_LOSS(extern, double)
