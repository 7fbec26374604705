// The solver of small detectors, as in plans.hpp.
#pragma once

#include "plans.hpp"

#include <bracewell/ptychography/solver.hpp>

namespace Test {

using TestSolver = Bracewell::PtychographySolver<Kokkos::DefaultExecutionSpace, double, TestStorage<double>>;

} // namespace Test

#define BRACEWELL_TEST_SOLVER(Extern)                                                                        \
  Extern template class Bracewell::PtychographySolver<Kokkos::DefaultExecutionSpace, double,                 \
                                                      Test::TestStorage<double>>;
#ifdef BRACEWELL_TEST_PLANS
BRACEWELL_TEST_SOLVER(extern)
#endif
