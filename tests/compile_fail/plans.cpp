// What FFT and layouts refuse.
#include <bracewell/fft/plan.hpp>
#include <bracewell/rfft/layout.hpp>

using Space = Kokkos::DefaultExecutionSpace;

// expect: Bracewell::FFT: Dim: expected 1, 2 or 3, found another.
using FourAxes = Bracewell::FFT<Space, 4, float, Kokkos::complex<float>>;
constexpr auto four_axes = sizeof(FourAxes);
// expect: Bracewell::FFT: Input: expected float, double or Kokkos::complex of them, found another type.
using Integers = Bracewell::FFT<Space, 2, int, Kokkos::complex<int>>;
constexpr auto integers = sizeof(Integers);
// expect: Bracewell::FFT: Output: expected the precision of Input, found another.
using Mixed = Bracewell::FFT<Space, 2, float, Kokkos::complex<double>>;
constexpr auto mixed = sizeof(Mixed);
// expect: Bracewell::FFT: expected complex input or output, found both real.
using Real = Bracewell::FFT<Space, 2, float, float>;
constexpr auto real = sizeof(Real);
// expect: Bracewell: spectra have two or three dimensions.
constexpr auto layout = sizeof(Bracewell::HalfSpectrumLayout<4>);
