// expect: Bracewell::FFT: input and output must have the same precision.
#include <bracewell/fft/plan.hpp>

using Space = Kokkos::DefaultExecutionSpace;

Bracewell::FFT<Space, 2, float, Kokkos::complex<double>> plan(Space(), {4, 4});
