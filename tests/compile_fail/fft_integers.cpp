// expect: Bracewell::FFT: values are float, double or Kokkos::complex of them.
#include <bracewell/fft/plan.hpp>

using Space = Kokkos::DefaultExecutionSpace;

Bracewell::FFT<Space, 2, int, Kokkos::complex<float>> plan(Space(), {4, 4});
