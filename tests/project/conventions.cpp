// The worked examples of docs/conventions.md and docs/calls.md: what stands between "// [name" and "// name]" is shown there,
// word for word.

#include "../page_examples.hpp"

#include <bracewell/geometry/euler.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>

#include <catch2/catch_test_macros.hpp>

#include <fstream>

using namespace Bracewell;

namespace {

using Complex = Kokkos::complex<double>;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Kokkos::HostSpace>;

const double pi = Kokkos::numbers::pi;

/// exp(-2 pi i turns)
Complex turned(double turns) { return {std::cos(2 * pi * turns), -std::sin(2 * pi * turns)}; }
bool close(const Complex& a, const Complex& b) { return Kokkos::abs(a - b) < 1e-12; }
bool close(double a, double b) { return std::abs(a - b) < 1e-12; }

View<double****> identity(int d) {
  const View<double****> matrices("matrices", 1, 1, d, d);
  for (int i = 0; i < d; ++i)
    matrices(0, 0, i, i) = 1;
  return matrices;
}

} // namespace

TEST_CASE("half spectra") {
  // [half-spectrum
  const View<Complex***> spectrum("spectrum", 1, 6, 5); // of an image of 6 x 8, or of 6 x 9?
  const HalfSpectrumLayout<2> even{8, 6}, odd{9, 6};    // full sizes in the order (x, y[, z])
  CHECK(even.columns() == 5);
  CHECK(odd.columns() == 5);
  // A plain View means the even width; an odd one is stated. (Boxes whose other sides are all 2c - 1 have to.)
  CHECK(Array<Complex, Kokkos::HostSpace>(spectrum).width == 8);
  CHECK(Array<Complex, Kokkos::HostSpace>(HalfSpectrum{spectrum, 9}).width == 9);
  // half-spectrum]
}

TEST_CASE("frequencies") {
  // [frequencies
  const HalfSpectrumLayout<2> layout{9, 6}; // 5 columns, 6 rows
  int k[2];                                 // (x, y)
  layout.frequency(3 * 5 + 4, k);           // row 3, column 4
  CHECK(k[0] == 4);
  CHECK(k[1] == 3); // the Nyquist row of an even axis is +N/2
  layout.frequency(4 * 5 + 0, k);
  CHECK(k[1] == -2);
  // frequencies]
}

TEST_CASE("the origin") {
  const Kokkos::DefaultHostExecutionSpace space;
  // [centre
  const View<double***> image("image", 1, 5, 6), padded("padded", 1, 10, 12);
  image(0, 2, 3) = 1; // the centre, floor(n/2)
  image(0, 2, 4) = 7; // one pixel to the right of it
  pad_centre(space, image, padded);
  CHECK(padded(0, 0, 0) == 1); // the origin of a transform
  CHECK(padded(0, 0, 1) == 7);
  // centre]
}

TEST_CASE("positions") {
  const Kokkos::DefaultHostExecutionSpace space;
  // [position
  const View<Complex***> reconstruction("reconstruction", 1, 8, 5);
  reconstruction(0, 2, 0) = 5; // at frequency (x, y) = (0, 2)
  const View<double****> matrices("matrices", 1, 1, 2, 2);
  matrices(0, 0, 0, 1) = -1; // M (x, y) = (-y, x)
  matrices(0, 0, 1, 0) = 1;
  const View<Complex****> projections("projections", 1, 1, 4, 3);
  project(space, reconstruction, {.matrices = matrices}, projections, {.oversampling = 2});
  CHECK(projections(0, 0, 0, 1) == Complex(5)); // k = (1, 0) samples M (2, 0) = (0, 2)
  // position]
}

TEST_CASE("beyond the stored half") {
  const Kokkos::DefaultHostExecutionSpace space;
  // [edges
  const View<Complex***> reconstruction("reconstruction", 1, 8, 5);
  reconstruction(0, 1, 3) = Complex(2, 7); // at (3, 1)
  const View<double****> matrices("matrices", 1, 2, 2, 2);
  for (const int d : {0, 1}) {
    matrices(0, 0, d, d) = -1;
    matrices(0, 1, d, d) = 11;
  }
  const View<Complex****> projections("projections", 1, 2, 8, 5);
  project(space, reconstruction, {.matrices = matrices}, projections);
  CHECK(projections(0, 0, 1, 3) == Complex(2, -7)); // -(3, 1): the conjugate of the mate
  CHECK(projections(0, 1, 3, 1) == Complex(2, 7));  // 11 (1, 3) = (11, 33) = (3, 1) + 8 (1, 4)
  // edges]
}

TEST_CASE("RELION's angles") {
  const Kokkos::DefaultHostExecutionSpace space;
  // [relion
  const Matrix3<double> A = euler_matrix(EulerAngles<double>{.rot = 90, .tilt = 90, .psi = 0});
  const Matrix3<double> M = projection_matrix(EulerAngles<double>{.rot = 90, .tilt = 90, .psi = 0});
  const View<double****> matrices("matrices", 1, 1, 3, 3);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      matrices(0, 0, i, j) = M(i, j);
      CHECK(M(i, j) == A(j, i));
    }

  // A point at r = (x, y, z) from the origin of a volume is seen at (x, y) of A r in the image.
  const double r[3] = {1, -2, 2}, seen[2] = {-2, -1};
  const auto a = A * Vector3<double>{r[0], r[1], r[2]};
  CHECK(close(a[0], seen[0]));
  CHECK(close(a[1], seen[1]));

  const HalfSpectrumLayout<3> volume{8, 8, 8};
  const HalfSpectrumLayout<2> image{8, 8};
  const View<Complex****> reconstruction("reconstruction", 1, 8, 8, 5),
      projections("projections", 1, 1, 8, 5);
  for (int i = 0; i < volume.elements(); ++i) {
    int k[3];
    volume.frequency(i, k);
    reconstruction.data()[i] = turned((k[0] * r[0] + k[1] * r[1] + k[2] * r[2]) / 8);
  }
  project(space, reconstruction, {.matrices = matrices}, projections, {.radius = 3});
  for (int i = 0; i < image.elements(); ++i) {
    int k[2];
    image.frequency(i, k);
    if (k[0] * k[0] + k[1] * k[1] <= 3 * 3)
      CHECK(close(projections.data()[i], turned((k[0] * seen[0] + k[1] * seen[1]) / 8)));
  }
  // relion]
}

TEST_CASE("shifts") {
  const Kokkos::DefaultHostExecutionSpace space;
  const auto matrices = identity(2);
  // [shift
  const View<Complex***> reconstruction("reconstruction", 1, 8, 5);
  Kokkos::deep_copy(reconstruction, Complex(1)); // a point at the origin
  const View<double***> shifts("shifts", 1, 1, 2);
  shifts(0, 0, 0) = 1; // down by one row
  shifts(0, 0, 1) = 2; // right by two columns
  const View<Complex****> projections("projections", 1, 1, 8, 5);
  project(space, reconstruction, {.matrices = matrices, .shifts = shifts}, projections);
  for (int y = -3; y <= 3; ++y)
    for (int x = 0; x * x + y * y <= 4 * 4; ++x) // a point at row 1, column 2
      CHECK(close(projections(0, 0, (y + 8) % 8, x), turned((y * 1 + x * 2) / 8.)));
  // shift]
}

TEST_CASE("filters and the Ewald sphere") {
  const Kokkos::DefaultHostExecutionSpace space;
  const auto matrices = identity(3);
  // [lens
  const View<Complex****> reconstruction("reconstruction", 1, 8, 8, 5);
  reconstruction(0, 1, 0, 2) = 5; // at (x, y, z) = (2, 0, 1)
  const View<double****> filters("filters", 1, 1, 8, 5);
  filters(0, 0, 0, 2) = -0.5;
  const View<Complex****> projections("projections", 1, 1, 8, 5);
  project(space, reconstruction, {.matrices = matrices, .filters = filters}, projections,
          {.ewald_radius = 2});
  CHECK(projections(0, 0, 0, 2) == Complex(-2.5)); // z = (2^2 + 0^2) / (2 * 2) = 1
  // lens]
}

TEST_CASE("the inner product") {
  const Kokkos::DefaultHostExecutionSpace space;
  View<double****> matrices("matrices", 1, 1, 2, 2);
  matrices(0, 0, 0, 0) = matrices(0, 0, 1, 1) = 0.8;
  matrices(0, 0, 0, 1) = -0.6;
  matrices(0, 0, 1, 0) = 0.6;
  const View<Complex****> images("images", 1, 1, 7, 4);
  for (std::size_t i = 0; i < images.size(); ++i)
    images.data()[i] = turned(0.1 * double(i * i));
  // [inner-product
  const HalfSpectrumLayout<2> layout{8, 8}, image_layout{7, 7};
  const auto inner_product = [](const auto& of, const Complex* a, const Complex* b) {
    double sum =
        0; // over the full spectrum: once for column 0 and, of an even width, the last; twice for the others
    for (int i = 0; i < of.elements(); ++i)
      sum += of.multiplicity(i % of.columns()) * (a[i].real() * b[i].real() + a[i].imag() * b[i].imag());
    return sum;
  };
  const View<Complex***> reconstruction("reconstruction", 1, 8, 5), data("data", 1, 8, 5);
  Kokkos::deep_copy(reconstruction, Complex(1));
  const View<Complex****> projections("projections", 1, 1, 7, 4);
  const ProjectionOptions options{.oversampling = 8. / 7}; // stated where boxes differ
  project(space, reconstruction, {.matrices = matrices}, HalfSpectrum{projections, 7}, options);
  backproject(space, HalfSpectrum{images, 7}, {.matrices = matrices}, {.data = data}, options);
  CHECK(close(inner_product(image_layout, projections.data(), images.data()),
              inner_product(layout, reconstruction.data(), data.data())));
  // inner-product]
}

TEST_CASE("cotangents") {
  const Kokkos::DefaultHostExecutionSpace space;
  const auto matrices = identity(2);
  // [cotangent
  const View<Complex***> reconstruction("reconstruction", 1, 8, 5);
  Kokkos::deep_copy(reconstruction, Complex(1));
  const View<double***> shifts("shifts", 1, 1, 2), shift_gradients("gradients", 1, 1, 2);
  shifts(0, 0, 1) = 0.7;
  // L = Im P(k) at k = (1, 0): P = exp(-2 pi i s / 8), L = -sin(2 pi s / 8)
  const View<Complex****> cotangent("cotangent", 1, 1, 8, 5);
  cotangent(0, 0, 0, 1) = Complex(0, 1); // dL/dRe + i dL/dIm
  project_gradients(space, reconstruction, {.matrices = matrices, .shifts = shifts}, cotangent,
                    {.shifts = shift_gradients});
  CHECK(close(shift_gradients(0, 0, 1), -2 * pi / 8 * std::cos(2 * pi * 0.7 / 8)));
  CHECK(close(shift_gradients(0, 0, 0), 0));
  // cotangent]
}

TEST_CASE("losses on images") {
  const Kokkos::DefaultHostExecutionSpace space;
  const auto matrices = identity(2);
  // [image-loss
  const HalfSpectrumLayout<2> layout{8, 8};
  const View<Complex***> reconstruction("reconstruction", 1, 8, 5), gradient("gradient", 1, 8, 5);
  // L = p(3, 5), the pixel in row 3 and column 5 of the inverse transform of P, normalised by 1/64.
  const View<Complex****> cotangent("cotangent", 1, 1, 8, 5);
  for (int i = 0; i < layout.elements(); ++i) {
    int k[2];
    layout.frequency(i, k);
    cotangent.data()[i] = layout.multiplicity(k[0]) / 64. * turned((k[1] * 3 + k[0] * 5) / 8.);
  }
  project_gradients(space, reconstruction, {.matrices = matrices}, cotangent, {.reconstruction = gradient},
                    {.radius = 6});
  // With M = 1 and all frequencies, P is the reconstruction itself; that of a point there has p(3, 5) = 1.
  double pixel = 0;
  for (int i = 0; i < layout.elements(); ++i) {
    int k[2];
    layout.frequency(i, k);
    const Complex point = turned((k[1] * 3 + k[0] * 5) / 8.);
    pixel += gradient.data()[i].real() * point.real() + gradient.data()[i].imag() * point.imag();
  }
  CHECK(close(pixel, 1));
  // image-loss]
}

TEST_CASE("what is overwritten and what is added to") {
  const Kokkos::DefaultHostExecutionSpace space;
  const auto matrices = identity(2);
  // [accumulate
  const View<Complex***> reconstruction("reconstruction", 1, 8, 5), data("data", 1, 8, 5),
      gradient("gradient", 1, 8, 5);
  Kokkos::deep_copy(reconstruction, Complex(1));
  const View<Complex****> projections("projections", 1, 1, 8, 5);
  for (int call = 1; call <= 2; ++call) {
    project(space, reconstruction, {.matrices = matrices}, projections);
    backproject(space, projections, {.matrices = matrices}, {.data = data});
    project_gradients(space, reconstruction, {.matrices = matrices}, projections,
                      {.reconstruction = gradient});
    CHECK(data(0, 0, 0) == Complex(call));        // added to
    CHECK(projections(0, 0, 0, 0) == Complex(1)); // overwritten
    CHECK(gradient(0, 0, 0) == Complex(1));       // overwritten
  }
  // accumulate]
}

TEST_CASE("empty problems") {
  const Kokkos::DefaultHostExecutionSpace space;
  // [empty
  const View<Complex***> reconstruction("reconstruction", 1, 8, 5), data("data", 1, 8, 5);
  const View<Complex****> projections("projections", 1, 0, 8, 5); // no poses
  const View<double****> matrices("matrices", 1, 0, 2, 2);
  Kokkos::deep_copy(data, Complex(7));
  project(space, reconstruction, {.matrices = matrices}, projections);
  backproject(space, projections, {.matrices = matrices}, {.data = data});
  CHECK(data(0, 3, 2) == Complex(7));
  // empty]
}

TEST_CASE("shared arguments") {
  const Kokkos::DefaultHostExecutionSpace space;
  const View<Complex***> reconstruction("reconstruction", 1, 8, 5);
  for (std::size_t i = 0; i < reconstruction.size(); ++i)
    reconstruction.data()[i] = turned(0.07 * double(i * i));
  const View<Complex****> cotangent("cotangent", 1, 2, 8, 5);
  for (std::size_t i = 0; i < cotangent.size(); ++i)
    cotangent.data()[i] = turned(0.1 * double(i * i));
  // [shared
  const View<double****> one("matrix", 1, 1, 2, 2), two("matrices", 1, 2, 2, 2);
  const View<double****> gradient_of_one("gradient", 1, 1, 2, 2), gradients_of_two("gradients", 1, 2, 2, 2);
  for (const int row : {0, 1})
    for (const int column : {0, 1})
      one(0, 0, row, column) = two(0, 0, row, column) = two(0, 1, row, column) =
          0.9 - 0.6 * row - 0.3 * column;
  project_gradients(space, reconstruction, {.matrices = one}, cotangent, {.matrices = gradient_of_one});
  project_gradients(space, reconstruction, {.matrices = two}, cotangent, {.matrices = gradients_of_two});
  CHECK(close(gradient_of_one(0, 0, 1, 0), gradients_of_two(0, 0, 1, 0) + gradients_of_two(0, 1, 1, 0)));
  // shared]
}

TEST_CASE("weights") {
  const Kokkos::DefaultHostExecutionSpace space;
  // [weights
  const int poses = 400;
  const View<double****> matrices("matrices", 1, poses, 2, 2), weights("weights", 1, 1, 32, 17);
  for (int p = 0; p < poses; ++p) { // all directions
    matrices(0, p, 0, 0) = matrices(0, p, 1, 1) = std::cos(pi * p / poses);
    matrices(0, p, 0, 1) = -(matrices(0, p, 1, 0) = std::sin(pi * p / poses));
  }
  const View<Complex****> projections("projections", 1, poses, 32, 17);
  Kokkos::deep_copy(projections, Complex(1));
  Kokkos::deep_copy(weights, 1);
  double gain[2];
  for (const bool absolute : {false, true}) {
    const View<Complex***> data("data", 1, 32, 17);
    const View<double***> weight("weight", 1, 32, 17);
    backproject(space, projections, {.matrices = matrices},
                {.data = data, .weight = weight, .weights = weights},
                {.kernel_weights = absolute ? KernelWeights::Absolute : KernelWeights::Signed});
    gain[absolute] = data(0, 7, 6).real() / weight(0, 7, 6);
  }
  CHECK(std::abs(gain[0] - 1) < 1e-12);                // data / weight is what was inserted
  CHECK(std::abs(gain[1] - 6. / 7 * (6. / 7)) < 0.01); // on average 6/7 per axis, so 0.63 in three dimensions
  // weights]
}

TEST_CASE("the page shows this code") {
  const std::filesystem::path root(BRACEWELL_SOURCE_DIR);
  Test::check_page_examples(root / "tests/project/conventions.cpp",
                            {root / "docs/conventions.md", root / "docs/calls.md"});
}
