// Every kernel of tomography/ and every gridding strategy.

#include <bracewell/gridding/nonuniform_sums.hpp>
#include <bracewell/gridding/toeplitz_normal.hpp>
#include <bracewell/optimize/least_squares.hpp>
#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/find_centre.hpp>
#include <bracewell/tomography/fourier_laminography.hpp>
#include <bracewell/tomography/fourier_normal.hpp>
#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/line_laminography.hpp>
#include <bracewell/tomography/log_polar.hpp>
#include <bracewell/tomography/preprocess.hpp>
#include <bracewell/tomography/stripes.hpp>
#include <bracewell/tomography/view_slopes.hpp>

namespace Tomography {

using Space = Kokkos::DefaultExecutionSpace;
template <class Data>
using View = Kokkos::View<Data, Kokkos::LayoutRight, Space>;

template <class T>
double every_operator(const Space& space, const View<T***>& projections, const View<T***>& images,
                      const View<T**>& frame, const std::vector<double>& angles) {
  using namespace Bracewell;
  const int n = static_cast<int>(images.extent(1)), count = static_cast<int>(angles.size());
  normalise_projections(space, projections, frame, frame, projections);
  StripeRemoval<Space, T>(space, count, n).execute(space, projections);
  ProjectionFilter<Space, T>(space, count, n).execute(space, projections, projections);
  const FourierTomography<Space, T> fourier(space, {.angles = angles, .width = n});
  fourier.backproject(space, projections, images);
  fourier.project(space, images, projections);
  const LineTomography<Space, T> line(space, {.angles = angles, .width = n});
  line.backproject(space, projections, images);
  line.project(space, images, projections);
  const LogPolarTomography<Space, T> log_polar(space, {.angles = angles, .width = n});
  log_polar.backproject(space, projections, images);
  log_polar.project(space, images, projections);
  const TiltedBeamGeometry tilted{.beam = {.angles = angles, .width = n}, .rows = n, .tilt = 0.5};
  const FourierLaminography<Space, T> planes(space, tilted);
  planes.backproject(space, projections, images);
  planes.project(space, images, projections);
  const LineLaminography<Space, T> rays(space, tilted);
  rays.backproject(space, projections, images);
  rays.project(space, images, projections);
  const FourierNormal<Space, T> pair(space, {.angles = angles, .width = n});
  LeastSquaresSolver<Space, T>(space, {{1, count, n}, {1, n, n}}).solve(space, pair, projections, images);
  ViewSlopes<Space, T>(space, {.angles = angles, .width = n}).slopes(space, images, projections, projections);
  sum_views(space, projections, projections, View<double*>("sums", angles.size()));
  return find_centre(space, frame, angles);
}

template double every_operator<float>(const Space&, const View<float***>&, const View<float***>&,
                                      const View<float**>&, const std::vector<double>&);

void transform(const Space& space, const View<double**>& points,
               const View<Kokkos::complex<float>**>& samples,
               const View<Kokkos::complex<float>****>& volumes) {
  const Bracewell::NonuniformFFT<Space, 3, float> plan(space, points, {8, 8, 8});
  plan.adjoint(space, samples, volumes);
  plan.forward(space, volumes, samples);
  const Bracewell::ToeplitzNormal<Space, 3, Kokkos::complex<float>> normal(space, points, {}, {8, 8, 8});
  normal.execute(space, volumes, volumes);
}

void sum(const Space& space, const View<double**>& points, const View<Kokkos::complex<float>**>& values) {
  const Bracewell::NonuniformSums<Space, 1, float> sums(space, points, points);
  sums.forward(space, values, values);
  sums.adjoint(space, values, values);
}

} // namespace Tomography

// A module with a GPU's backend has hosts' kernels, too: nvcc reads them otherwise than g++ does.
template struct Bracewell::Impl::InterpolateBinsHost<Kokkos::DefaultHostExecutionSpace, 16, float, 1>;
template struct Bracewell::Impl::SpreadBinsHost<Kokkos::DefaultHostExecutionSpace, 16, float, 1>;
