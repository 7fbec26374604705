// expect: Bracewell::FFT: transforms have one, two or three dimensions.
#include <bracewell/fft/plan.hpp>

using Space = Kokkos::DefaultExecutionSpace;

Bracewell::FFT<Space, 4, float, Kokkos::complex<float>> plan(Space(), {4, 4, 4, 4});
