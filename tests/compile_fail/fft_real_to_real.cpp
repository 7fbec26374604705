// expect: Bracewell::FFT: input or output must be complex.
#include <bracewell/fft/plan.hpp>

using Space = Kokkos::DefaultExecutionSpace;

Bracewell::FFT<Space, 2, float, float> plan(Space(), {4, 4});
