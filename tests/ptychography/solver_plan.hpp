// The solver of small detectors, as in plans.hpp.
#pragma once

#include "plans.hpp"

#include <bracewell/ptychography/solver.hpp>

namespace Test {

using TestSolver = Bracewell::PtychographySolver<Kokkos::DefaultExecutionSpace, double,
                                                 Bracewell::Impl::CompiledWith<double, TestDetectors>>;

} // namespace Test

#define BRACEWELL_TEST_SOLVER(Extern)                                                                        \
  Extern template class Bracewell::PtychographySolver<                                                       \
      Kokkos::DefaultExecutionSpace, double, Bracewell::Impl::CompiledWith<double, Test::TestDetectors>>;
BRACEWELL_TEST_SOLVER(extern)
