// Every gridding strategy and the tomography built on them, on the default execution space.
#include <bracewell/gridding/nonuniform_fft.hpp>
#include <bracewell/tomography/fourier.hpp>

using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;
using Complex = Kokkos::complex<float>;

void every_operator(const Space& space, const View<Complex**>& samples, const View<float***>& projections,
                    const View<float***>& images, const View<double**>& points,
                    const View<Complex****>& volumes) {
  const Bracewell::FourierTomography<Space, float> tomography(space, {.angles = {0, 1}, .width = 8});
  tomography.backproject(space, projections, images);
  tomography.project(space, images, projections);
  const Bracewell::NonuniformFFT<Space, 3, float> transform(space, points, {8, 8, 8});
  transform.adjoint(space, samples, volumes);
  transform.forward(space, volumes, samples);
}
