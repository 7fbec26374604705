// What FFT, layouts and images refuse.
#include <bracewell/fft/plan.hpp>
#include <bracewell/geometry/pose_gradients.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>
#include <bracewell/rfft/layout.hpp>

using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight>;

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
// expect: Bracewell: images and volumes have two or three dimensions.
void image_without_batch_axis(const View<float**>& image) { Bracewell::pad_centre(Space(), image, image); }
// expect: Bracewell: expected a View of values that can be written, as outputs are, found const ones.
void const_matrices(const View<float***>& angles, const View<const float****>& wrong) {
  Bracewell::matrices_from_angles(Space(), angles, wrong);
}
