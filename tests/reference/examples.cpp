// SPDX-License-Identifier: MIT
// Examples of the C++ reference, for operators that no page has an example of: docs/api.py shows what stands between "// [name"
// and "// name]", word for word.

#include <bracewell/gridding/gridding.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/prepared_reference.hpp>
#include <bracewell/project/project.hpp>
#include <bracewell/ptychography/propagator.hpp>
#include <bracewell/tomography/fourier_laminography.hpp>
#include <bracewell/tomography/fourier_normal.hpp>
#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/line_laminography.hpp>
#include <bracewell/tomography/log_polar.hpp>
#include <bracewell/tomography/phase.hpp>
#include <bracewell/tomography/stripes.hpp>
#include <bracewell/tomography/view_slopes.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

using namespace Bracewell;

namespace {

using Space = Kokkos::DefaultHostExecutionSpace;
using Complex = Kokkos::complex<double>;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Kokkos::HostSpace>;

/// Angles over half a turn.
std::vector<double> half_turn(int P) {
  std::vector<double> angles;
  for (int p = 0; p < P; ++p)
    angles.push_back(std::numbers::pi * p / P);
  return angles;
}

} // namespace

// clang-format off
TEST_CASE("line tomography") {
  const Space space;
  const std::vector<double> angles = half_turn(40);
  // [line-tomography
  const LineTomography<Space, double> tomography(space, {.angles = angles, .width = 33}, {.units = ProjectionUnits::LineIntegrals});
  const View<double***> image("image", 1, 33, 33), projections("projections", 1, 40, 33);
  image(0, 16, 20) = 1; // a pixel of area 1: every view sees this area
  tomography.project(space, image, projections);
  space.fence();
  for (int p = 0; p < 40; ++p) {
    double area = 0;
    for (int i = 0; i < 33; ++i)
      area += projections(0, p, i);
    CHECK(std::abs(area - 1) < 1e-12);
  }
  // line-tomography]
}

TEST_CASE("log-polar tomography") {
  const Space space;
  const std::vector<double> angles = half_turn(101); // even, over half a turn
  // [log-polar-tomography
  const LogPolarTomography<Space, double> tomography(space, {.angles = angles, .width = 64});
  const View<double***> image("image", 1, 64, 64), back("back", 1, 64, 64), rows("rows", 1, 101, 64), seen("seen", 1, 101, 64);
  image(0, 30, 40) = 1;
  rows(0, 7, 35) = 1;
  tomography.project(space, image, seen);
  tomography.backproject(space, rows, back);
  space.fence();
  CHECK(std::abs(seen(0, 7, 35) - back(0, 30, 40)) < 1e-12); // exact transposes
  // log-polar-tomography]
}

TEST_CASE("normal operator") {
  const Space space;
  const std::vector<double> angles = half_turn(30);
  // [fourier-normal
  const FourierNormal<Space, double> pair(space, {.angles = angles, .width = 33}, {.tolerance = 1e-9});
  const View<double***> image("image", 1, 33, 33), once("once", 1, 33, 33), both("both", 1, 33, 33), rows("rows", 1, 30, 33);
  image(0, 14, 20) = 1;
  pair.normal(space, image, once); // one convolution
  pair.project(space, image, rows);
  pair.backproject(space, rows, both);
  space.fence();
  CHECK(std::abs(once(0, 14, 20) - both(0, 14, 20)) < 1e-6 * both(0, 14, 20));
  // fourier-normal]
}

TEST_CASE("slopes of views") {
  const Space space;
  const std::vector<double> angles = half_turn(10);
  // [view-slopes
  const auto plan = [&](double centre) {
    return ViewSlopes<Space, double>(space, {.angles = angles, .width = 33, .centre = centre}, {.tolerance = 1e-11});
  };
  const View<double***> image("image", 1, 33, 33), by_angle("by_angle", 1, 10, 33), by_shift("by_shift", 1, 10, 33);
  const View<double***> before("before", 1, 10, 33), after("after", 1, 10, 33);
  image(0, 14, 20) = 1;
  plan(16).slopes(space, image, by_angle, by_shift);
  plan(16 - 1e-4).project(space, image, before);
  plan(16 + 1e-4).project(space, image, after);
  space.fence();
  CHECK(std::abs(by_shift(0, 3, 18) - (after(0, 3, 18) - before(0, 3, 18)) / 2e-4) < 1e-5);
  // view-slopes]
}

TEST_CASE("laminography by Fourier transforms") {
  const Space space;
  const std::vector<double> angles = half_turn(12);
  // [fourier-laminography
  const FourierLaminography<Space, double> laminography(space, {.beam = {.angles = angles, .width = 25}, .rows = 21, .tilt = 0.5},
                                                        {.depth = 9, .units = ProjectionUnits::LineIntegrals});
  const View<double***> volume("volume", 9, 25, 25), projections("projections", 21, 12, 25); // [rows, angles, width]
  volume(4, 12, 12) = 1; // a voxel on the axis: every view sees it in the middle
  laminography.project(space, volume, projections);
  space.fence();
  double sum = 0;
  for (int row = 0; row < 21; ++row)
    for (int i = 0; i < 25; ++i)
      sum += projections(row, 5, i);
  CHECK(std::abs(sum - 1) < 1e-3);
  // fourier-laminography]
}

TEST_CASE("laminography along lines") {
  const Space space;
  const std::vector<double> angles = half_turn(12);
  // [line-laminography
  const LineLaminography<Space, double> laminography(space, {.beam = {.angles = angles, .width = 25}, .rows = 21, .tilt = 0.5}, {.depth = 9});
  const View<double***> volume("volume", 9, 25, 25), projections("projections", 21, 12, 25); // [rows, angles, width]
  const View<double***> rows("rows", 21, 12, 25), back("back", 9, 25, 25);
  volume(4, 12, 12) = 1;
  rows(10, 5, 12) = 1;
  laminography.project(space, volume, projections);
  laminography.backproject(space, rows, back);
  space.fence();
  CHECK(projections(10, 5, 12) > 0);                                          // the middle of the detector sees the middle voxel
  CHECK(std::abs(projections(10, 5, 12) - back(4, 12, 12)) < 1e-12); // exact transposes
  // line-laminography]
}

TEST_CASE("gridding") {
  const Space space;
  // [gridding
  const View<double**> points("points", 3, 2); // (x, y) in cycles per pixel
  points(1, 0) = 0.13, points(1, 1) = -0.4;
  points(2, 0) = 0.31, points(2, 1) = 0.22;
  const Gridding<Space, 2, double> gridding(space, points, {24, 20}, {.tolerance = 1e-6});
  const auto shape = gridding.grid_shape(); // {height, width}, larger than the image
  const View<Complex***> grid("grid", 1, shape[0], shape[1]), spread("spread", 1, shape[0], shape[1]);
  const View<Complex**> samples("samples", 1, 3), ones("ones", 1, 3);
  Kokkos::deep_copy(grid, Complex(1));
  Kokkos::deep_copy(ones, Complex(1));
  gridding.interpolate(space, grid, samples);
  gridding.spread(space, ones, spread);
  space.fence();
  Complex one = 0, other = 0; // <interpolate(grid), ones> and <grid, spread(ones)>
  for (int j = 0; j < 3; ++j)
    one += samples(0, j);
  for (std::size_t i = 0; i < spread.size(); ++i)
    other += spread.data()[i];
  CHECK(Kokkos::abs(one - other) < 1e-12 * Kokkos::abs(one));
  // gridding]
}

TEST_CASE("stripes") {
  const Space space;
  // [stripe-removal
  const View<double***> sinograms("sinograms", 1, 60, 40); // [rows, angles, width]
  for (int p = 0; p < 60; ++p)
    for (int i = 0; i < 40; ++i)
      sinograms(0, p, i) = 2 + (i == 17 ? 0.5 : 0.); // a pixel that answers too much
  const StripeRemoval<Space, double> removal(space, 60, 40, {.method = StripeMethod::Sorting, .window = 5});
  removal.execute(space, sinograms);
  space.fence();
  CHECK(std::abs(sinograms(0, 30, 17) - 2) < 1e-12);
  // stripe-removal]
}

TEST_CASE("phase retrieval") {
  const Space space;
  // [phase-retrieval
  const PhaseRetrieval<Space, double> phase(space, 4, 16, 24,
                                            {.wavelength = 5e-11, .distance = 0.1, .pixel_size = 1e-6, .delta_beta = 500});
  const View<double***> sinograms("sinograms", 16, 4, 24), attenuation("attenuation", 16, 4, 24); // [rows, angles, width]
  Kokkos::deep_copy(sinograms, 0.3); // minus the logarithm of the transmission of a flat object, which has no edges
  phase.execute(space, sinograms, attenuation);
  space.fence();
  CHECK(std::abs(attenuation(8, 2, 12) - 0.3) < 1e-12);
  // phase-retrieval]
}

TEST_CASE("prepared reference") {
  const Space space;
  const View<double****> matrices("matrices", 1, 1, 3, 3);
  for (int i = 0; i < 3; ++i)
    matrices(0, 0, i, i) = 1;
  // [prepared-reference
  const View<Complex****> volume("volume", 1, 16, 16, 9), projections("projections", 1, 1, 16, 9);
  volume(0, 0, 3, 4) = 5; // frequency (4, 3, 0)
  const PreparedReference<CatmullRom, Space, 3, Complex> reference = prepare(space, volume);
  project(space, reference, {.matrices = matrices}, projections); // as often as you like
  CHECK(projections(0, 0, 3, 4) == Complex(5));
  // prepared-reference]
}

TEST_CASE("gradients of backprojection") {
  const Space space;
  const View<double****> matrices("matrices", 1, 1, 2, 2);
  matrices(0, 0, 0, 0) = matrices(0, 0, 1, 1) = 1;
  // [backproject-gradients
  const View<Complex****> images("images", 1, 1, 8, 5), image_gradients("image_gradients", 1, 1, 8, 5);
  const View<Complex***> cotangent("cotangent", 1, 8, 5); // dL/ddata of a loss L
  images(0, 0, 2, 3) = 1;
  cotangent(0, 2, 3) = Complex(3, 4);
  backproject_gradients(space, images, {.matrices = matrices}, {.data = cotangent, .projections = image_gradients});
  CHECK(image_gradients(0, 0, 2, 3) == Complex(3, 4)); // the pose is no rotation: data(k) grows as images(k)
  // backproject-gradients]
}

TEST_CASE("propagator") {
  const Space space;
  // [propagator
  const Propagator<Space, double> near(space, 16, 2, 0.7); // two waves of 16 x 16 pixels, Fresnel number 0.7
  const View<Complex***> waves("waves", 2, 16, 16);
  waves(1, 5, 6) = Complex(1, 2);
  near.propagate(space, waves);
  near.adjoint(space, waves); // which keeps the energy: the adjoint is the inverse
  space.fence();
  CHECK(Kokkos::abs(waves(1, 5, 6) - Complex(1, 2)) < 1e-12);
  // propagator]
}
