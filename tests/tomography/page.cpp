// SPDX-License-Identifier: MIT
// The worked examples of docs/tomography.md, docs/nonuniform.md, docs/tomography-tutorial.md and docs/finufft.md: what stands between "// [name"
// and "// name]" is shown there, word for word.

#include "../page_examples.hpp"

#include <bracewell/gridding/nonuniform_sums.hpp>
#include <bracewell/gridding/toeplitz_normal.hpp>
#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/find_centre.hpp>
#include <bracewell/tomography/fourier.hpp>
#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/log_polar.hpp>
#include <bracewell/tomography/preprocess.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <filesystem>
#include <numbers>
#include <utility>
#include <vector>

using namespace Bracewell;

namespace {

using Space = Kokkos::DefaultHostExecutionSpace;
using Complex = Kokkos::complex<double>;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Kokkos::HostSpace>;

} // namespace

// clang-format off
TEST_CASE("geometry") {
  const Space space;
  // [geometry
  const double quarter = std::numbers::pi / 2;
  const FourierTomography<Space, double> tomography(space, {.angles = {0, quarter}, .width = 9, .centre = 3.0}, {.tolerance = 1e-9});
  const View<double***> image("image", 1, 9, 9), projections("projections", 1, 2, 9);
  image(0, 4 + 1, 4 + 2) = 1; // Y = 1, X = 2
  tomography.project(space, image, projections);
  space.fence();
  CHECK(std::abs(projections(0, 0, 3 + 2) - std::numbers::pi / 2) < 1e-8); // s = X + centre; pi / P with P = 2
  CHECK(std::abs(projections(0, 1, 3 + 1) - std::numbers::pi / 2) < 1e-8); // s = Y + centre
  CHECK(std::abs(projections(0, 1, 3 + 2)) < 1e-8);
  // geometry]
}

TEST_CASE("reconstruction") {
  const Space space;
  // [reconstruction
  const int n = 64, P = 100;
  std::vector<double> angles;
  for (int p = 0; p < P; ++p)
    angles.push_back(std::numbers::pi * p / P);
  const View<double***> projections("projections", 1, P, n), image("image", 1, n, n);
  for (int p = 0; p < P; ++p)
    for (int i = 0; i < n; ++i) // a disc of radius 20 and attenuation 0.5 per pixel
      projections(0, p, i) = std::sqrt(std::max(0., 400. - (i - 32) * (i - 32)));
  const ProjectionFilter<Space, double> filter(space, P, n, {.filter = TomographyFilter::Hann});
  filter.execute(space, projections, projections);
  const FourierTomography<Space, double> tomography(space, {.angles = angles, .width = n});
  tomography.backproject(space, projections, image);
  space.fence();
  CHECK(std::abs(image(0, 32, 32) - 0.5) < 0.005);
  CHECK(std::abs(image(0, 32 + 9, 32 - 9) - 0.5) < 0.005);
  CHECK(std::abs(image(0, 32, 32 + 27)) < 0.005);
  // reconstruction]
}

TEST_CASE("scan") {
  const Space space;
  const int S = 2, P = 90, n = 48;
  const View<double***> raw("raw", P, S, n);
  const View<double**> dark("dark", S, n), flat("flat", S, n);
  std::vector<double> angles;
  for (int p = 0; p < P; ++p) { // attenuation 0.1 exp(-r^2 / 32) per pixel about a point 6 pixels from the axis, which is at 24.5
    angles.push_back(std::numbers::pi * p / P);
    for (int slice = 0; slice < S; ++slice)
      for (int i = 0; i < n; ++i) {
        const double s = i - 24.5 - 6 * std::cos(angles.back());
        dark(slice, i) = 3 + i % 5;
        flat(slice, i) = 1000 + 40 * (i % 7);
        const double transmission = std::exp(-0.4 * std::sqrt(2 * std::numbers::pi) * std::exp(-s * s / 32));
        raw(p, slice, i) = dark(slice, i) + (flat(slice, i) - dark(slice, i)) * transmission;
      }
  }
  const View<double***> sinograms("sinograms", S, P, n), slices("slices", S, n, n);
  // [scan
  normalise_projections(space, raw, dark, flat, sinograms); // [P, S, n] to [S, P, n]
  const View<double**> one(sinograms.data(), P, n);
  const double centre = find_centre(space, one, angles); // radians
  ProjectionFilter<Space, double>(space, S * P, n, {.filter = TomographyFilter::Shepp}).execute(space, sinograms, sinograms);
  const FourierTomography<Space, double> tomography(space, {.angles = angles, .width = n, .centre = centre}, {.slices = S});
  tomography.backproject(space, sinograms, slices); // [S, n, n], attenuation per pixel
  // scan]
  space.fence();
  CHECK(std::abs(centre - 24.5) < 0.1);
  for (int slice = 0; slice < S; ++slice) {
    CHECK(std::abs(slices(slice, 24, 24 + 6) - 0.1) < 0.002);
    CHECK(std::abs(slices(slice, 24 + 4, 24 + 3) - 0.1 * std::exp(-25. / 32)) < 0.002);
    CHECK(std::abs(slices(slice, 24, 24 - 10)) < 0.002);
  }
}

TEST_CASE("iterations") {
  const Space space;
  const int P = 60, n = 48;
  std::vector<double> angles;
  const View<double***> projections("projections", 1, P, n), truth("truth", 1, n, n);
  for (int p = 0; p < P; ++p) { // exp(-r^2 / 32) about (6, -3)
    angles.push_back(std::numbers::pi * p / P);
    for (int i = 0; i < n; ++i) {
      const double s = i - n / 2 - 6 * std::cos(angles.back()) + 3 * std::sin(angles.back());
      projections(0, p, i) = 4 * std::sqrt(2 * std::numbers::pi) * std::exp(-s * s / 32);
    }
  }
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column)
      truth(0, row, column) = std::exp(-(std::pow(column - n / 2 - 6, 2) + std::pow(row - n / 2 + 3, 2)) / 32);
  // [vectors
  using Values = View<double***>;
  const auto sum = [&](const Values& a, double scale, const Values& b, const Values& result) { // a + scale b
    Kokkos::parallel_for(Kokkos::RangePolicy(space, 0, a.size()), KOKKOS_LAMBDA(std::size_t i) {
      result.data()[i] = a.data()[i] + scale * b.data()[i];
    });
  };
  const auto dot = [&](const Values& a, const Values& b) {
    double total = 0;
    Kokkos::parallel_reduce(Kokkos::RangePolicy(space, 0, a.size()), KOKKOS_LAMBDA(std::size_t i, double& part) {
      part += a.data()[i] * b.data()[i];
    }, total);
    return total;
  };
  // What project() computes are line integrals times pi / P.
  const Values data("data", 1, P, n);
  sum(data, std::numbers::pi / P, projections, data);
  // vectors]
  // [cgls
  const auto cgls = [&](const auto& tomography, const Values& image, int iterations) { // from what is in image
    const Values residual("residual", 1, P, n), q("q", 1, P, n), s("s", 1, n, n), direction("direction", 1, n, n);
    tomography.project(space, image, residual);
    sum(data, -1, residual, residual);
    tomography.backproject(space, residual, s);
    Kokkos::deep_copy(space, direction, s);
    for (double gamma = dot(s, s); iterations > 0 && gamma > 0; --iterations) {
      tomography.project(space, direction, q);
      const double step = gamma / dot(q, q);
      sum(image, step, direction, image);
      sum(residual, -step, q, residual);
      tomography.backproject(space, residual, s);
      const double before = std::exchange(gamma, dot(s, s));
      sum(s, gamma / before, direction, direction);
    }
  };
  // cgls]
  // [sirt
  const auto divide = [&](const Values& a, const Values& sums) { // nothing where next to no ray or pixel is
    Kokkos::parallel_for(Kokkos::RangePolicy(space, 0, a.size()), KOKKOS_LAMBDA(std::size_t i) {
      a.data()[i] = sums.data()[i] > 0.1 ? a.data()[i] / sums.data()[i] : 0.0;
    });
  };
  const auto sirt = [&](const auto& tomography, const Values& image, int iterations) {
    const Values rows("rows", 1, P, n), columns("columns", 1, n, n), residual("residual", 1, P, n), change("change", 1, n, n);
    Kokkos::deep_copy(space, change, 1.0);
    Kokkos::deep_copy(space, residual, 1.0);
    tomography.project(space, change, rows);
    tomography.backproject(space, residual, columns);
    for (; iterations > 0; --iterations) {
      tomography.project(space, image, residual);
      sum(data, -1, residual, residual);
      divide(residual, rows);
      tomography.backproject(space, residual, change);
      divide(change, columns);
      sum(image, 1, change, image);
    }
  };
  // sirt]
  const auto check = [&](const auto& tomography, double of_cgls, double of_sirt) {
    const auto error = [&](const Values& image) {
      const Values difference("difference", 1, n, n);
      sum(image, -1, truth, difference);
      return std::sqrt(dot(difference, difference) / dot(truth, truth));
    };
    const Values first("image", 1, n, n), second("image", 1, n, n);
    cgls(tomography, first, 20);
    sirt(tomography, second, 100);
    CAPTURE(error(first), error(second));
    CHECK(error(first) < of_cgls);
    CHECK(error(second) < of_sirt);
  };
  // Data are the integrals themselves: what is left are the errors of each plan's own interpolation.
  check(FourierTomography<Space, double>(space, {.angles = angles, .width = n}), 0.002, 0.01);
  check(LineTomography<Space, double>(space, {.angles = angles, .width = n}), 0.1, 0.05);
  check(LogPolarTomography<Space, double>(space, {.angles = angles, .width = n}), 0.02, 0.01);
}

TEST_CASE("memory") {
  const Space space;
  std::vector<double> angles;
  for (int p = 0; p < 100; ++p)
    angles.push_back(std::numbers::pi * p / 100);
  // [memory
  using Plan = FourierTomography<Space, float>;
  const ParallelBeamGeometry geometry{.angles = angles, .width = 64};
  FourierTomographyOptions options{.slices = 64};
  while (options.slices > 2 && Plan::bytes_needed(space, geometry, options) > 3000000)
    options.slices -= 2;
  CHECK(Plan(space, geometry, options).memory_bytes() <= 3000000);
  // memory]
}

TEST_CASE("nonuniform") {
  const Space space;
  // [nonuniform
  const View<double**> points("points", 1, 2); // cycles per pixel; column 0 is x, the last axis of images
  points(0, 0) = 0.123;
  points(0, 1) = -0.31;
  const NonuniformFFT<Space, 2, double> transform(space, points, {10, 12}, {.slices = 1, .tolerance = 1e-9});
  const View<Complex**> samples("samples", 1, 1);
  const View<Complex***> image("image", 1, 10, 12);
  samples(0, 0) = 1;
  transform.adjoint(space, samples, image); // sum over samples of sample exp(+2 pi i x.X)
  space.fence();
  const double turns = 0.123 * (7 - 6) - 0.31 * (2 - 5); // X = column - 6, Y = row - 5
  CHECK(std::abs(image(0, 2, 7).real() - std::cos(2 * std::numbers::pi * turns)) < 1e-8);
  CHECK(std::abs(image(0, 2, 7).imag() - std::sin(2 * std::numbers::pi * turns)) < 1e-8);
  // nonuniform]
  // [normal
  const View<double*> weights("weights", 1); // of any sign; {} are ones
  weights(0) = 0.5;
  const ToeplitzNormal<Space, 2, Complex> normal(space, points, weights, {10, 12}, {.slices = 1, .tolerance = 1e-9});
  const View<Complex***> result("result", 1, 10, 12), same("same", 1, 10, 12);
  normal.execute(space, image, result);
  transform.forward(space, image, samples);
  samples(0, 0) *= weights(0);
  transform.adjoint(space, samples, same);
  CHECK(Kokkos::abs(result(0, 2, 7) - same(0, 2, 7)) < 1e-6 * Kokkos::abs(same(0, 2, 7)));
  // normal]
  // [normal-tomography
  const int P = 15, width = 9;
  std::vector<double> all_angles;
  for (int p = 0; p < P; ++p)
    all_angles.push_back(std::numbers::pi * p / P);
  const FourierTomography<Space, double> tomography(space, {.angles = all_angles, .width = width}, {.tolerance = 1e-9});
  const double weight = std::pow(std::numbers::pi / P, 2) / width; // times the square of an angle's weight
  const View<double*> of_samples("weights", P * width);
  Kokkos::deep_copy(space, of_samples, weight);
  const PolarPoints rays{.angles = all_angles, .samples = width};
  const ToeplitzNormal<Space, 2, double> of_tomography(space, rays, of_samples, {width, width}, {.tolerance = 1e-9});
  const View<double***> slice("slice", 1, width, width), twice("twice", 1, width, width), at_once("at once", 1, width, width);
  const View<double***> rows("rows", 1, P, width);
  slice(0, 2, 5) = 1;
  tomography.project(space, slice, rows);
  tomography.backproject(space, rows, twice);
  of_tomography.execute(space, slice, at_once);
  CHECK(std::abs(twice(0, 3, 4) - at_once(0, 3, 4)) < 1e-8 * at_once(0, 2, 5));
  // normal-tomography]
  // [sums
  const View<double**> targets("targets", 2, 2);
  targets(0, 0) = 40.5; // in units whose product with those of points is cycles
  targets(1, 1) = -3.25;
  const NonuniformSums<Space, 2, double> sums_of(space, points, targets, {.tolerance = 1e-9});
  const View<Complex**> sums("sums", 1, 2);
  samples(0, 0) = 1;
  sums_of.forward(space, samples, sums); // sum over points of sample exp(+2 pi i target.point)
  space.fence();
  CHECK(std::abs(sums(0, 0).real() - std::cos(2 * std::numbers::pi * 0.123 * 40.5)) < 1e-8);
  CHECK(std::abs(sums(0, 1).imag() - std::sin(2 * std::numbers::pi * 0.31 * 3.25)) < 1e-8);
  // sums]
}

TEST_CASE("FINUFFT's users") {
  const Space space;
  const View<double**> points("points", 3, 2), others("others", 3, 2);
  const View<Complex***> image("image", 1, 10, 12);
  const View<Complex**> samples("samples", 1, 3);
  for (int i = 0; i < 6; ++i)
    others(i / 2, i % 2) = (points(i / 2, i % 2) = 0.07 * i - 0.2) + (i % 2 == 0 ? 1e-6 : 0);
  for (int i = 0; i < 120; ++i)
    image(0, i / 12, i % 12) = Complex(std::sin(3 * i), std::cos(7 * i));
  // [finufft
  // plan = finufft.Plan(2, (10, 12), 1, 1e-9, isign=-1)
  // plan.setpts(2 * pi * points[:, 1], 2 * pi * points[:, 0])
  // samples = plan.execute(image)
  NonuniformFFT<Space, 2, double> plan(space, points, {10, 12}, {.slices = 2, .tolerance = 1e-9});
  plan.forward(space, image, samples);
  plan.set_points(space, others); // setpts again
  plan.forward(space, image, samples);
  // finufft]
  // [gradient
  // The loss is the real part of samples(0, 1): its cotangent is 1 there.
  const View<Complex**> cotangent("cotangent", 1, 3), scratch("scratch", 1, 3);
  const View<double**> gradients("gradients", 3, 2); // [point, axis]
  cotangent(0, 1) = 1;
  plan.point_gradients(space, image, cotangent, gradients, scratch);
  // gradient]
  space.fence();
  for (int j = 0; j < 3; ++j) {
    Complex sum = 0, slope[2] = {};
    for (int i = 0; i < 120; ++i) {
      const int x = i % 12 - 6, y = i / 12 - 5;
      const double phase = -2 * std::numbers::pi * (others(j, 0) * x + others(j, 1) * y);
      const Complex term = image(0, i / 12, i % 12) * Complex(std::cos(phase), std::sin(phase));
      sum += term;
      slope[0] += Complex(0, -2 * std::numbers::pi * x) * term;
      slope[1] += Complex(0, -2 * std::numbers::pi * y) * term;
    }
    CHECK(Kokkos::abs(samples(0, j) - sum) < 1e-7);
    for (int axis = 0; axis < 2; ++axis)
      CHECK(std::abs(gradients(j, axis) - (j == 1 ? slope[axis].real() : 0)) < 1e-5);
  }
}

// clang-format on
TEST_CASE("the page shows this code") {
  const std::filesystem::path here(__FILE__);
  const auto docs = here.parent_path() / "../../docs";
  Test::check_page_examples(here, {docs / "tomography.md", docs / "nonuniform.md",
                                   docs / "tomography-tutorial.md", docs / "finufft.md"});
}
