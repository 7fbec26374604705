// Reconstructions stored in half precision: the conversions, and what rounding does to projections.

#include "../deep_copy.hpp"
#include "problems.hpp"

#include <bracewell/project/project.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstring>
#include <limits>

using namespace Test;
using Bracewell::Half;
using Bracewell::HalfComplex;
using Bracewell::Impl::narrow;
using Bracewell::Impl::widen;

namespace {

using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;
using Complex = Kokkos::complex<float>;

/// Value of a finite half-precision number by its definition: sign, 5 bits of exponent, 10 of fraction.
double defined(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

template <class Value, class DataType>
View<DataType> upload(const std::vector<Value>& values, const View<DataType>& view) {
  const auto host = Kokkos::create_mirror_view(view);
  REQUIRE(host.size() == values.size());
  std::copy(values.begin(), values.end(), host.data());
  Test::deep_copy(view, host);
  return view;
}

template <class DataType>
std::vector<Complex> download(const View<DataType>& view) {
  const auto host = Test::on_host(view);
  return {host.data(), host.data() + host.size()};
}

double relative(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  double difference = 0, sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference +=
        std::pow(double(a[i].real()) - b[i].real(), 2) + std::pow(double(a[i].imag()) - b[i].imag(), 2);
    sum += std::pow(double(b[i].real()), 2) + std::pow(double(b[i].imag()), 2);
  }
  return std::sqrt(difference / sum);
}

/// Projects a volume at random as it is, rounded, and stored in half precision.
template <class Volume, class Halves, class Images>
void check_projection(const View<Volume>& volume, const View<Halves>& halves, const View<Images>& images,
                      int dimensions, double oversampling) {
  Random random(5);
  std::vector<Complex> values(volume.size()), rounded;
  std::vector<HalfComplex> stored;
  for (Complex& value : values) {
    // Magnitudes over four orders, as in spectra.
    const double scale = std::pow(10., 2 * random());
    value = Complex(static_cast<float>(scale * random()), static_cast<float>(scale * random()));
    stored.push_back(HalfComplex(value));
    rounded.push_back(stored.back());
  }
  const std::size_t poses = images.extent(1);
  std::vector<float> matrices;
  for (std::size_t pose = 0; pose < poses; ++pose)
    for (int i = 0; i < dimensions * dimensions; ++i)
      matrices.push_back(static_cast<float>(0.7 * random()));
  const auto matrix_view = upload(matrices, View<float****>("matrices", 1, poses, dimensions, dimensions));
  const auto projected = [&](const auto& reconstruction) {
    const Space space;
    Bracewell::project(space, reconstruction, {.matrices = matrix_view}, images,
                       {.oversampling = oversampling});
    space.fence();
    return download(images);
  };
  const auto exact = projected(upload(values, volume));
  const auto of_rounded = projected(upload(rounded, volume));
  const auto of_halves = projected(upload(stored, halves));
  CHECK(relative(of_halves, of_rounded) < 1e-6); // the arithmetic is that of float
  // Rounding is relative, by up to 2^-11 of each part.
  CHECK(relative(of_halves, exact) < std::ldexp(1, -11));
  CHECK(relative(of_halves, exact) > 5e-5);
}

} // namespace

TEST_CASE("half-precision numbers widen to what they stand for and back") {
  static_assert(sizeof(Half) == 2 && sizeof(HalfComplex) == 4 && alignof(HalfComplex) == 4);
  CHECK(float(Half(1.0f + 0x1p-11f)) == 1.0f);            // of two, the even one
  CHECK(HalfComplex(Complex(1, -2)).bits == 0xc0003c00u); // the real part first in memory
  int wrong = 0;
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if ((bits & 0x7c00) == 0x7c00)
      continue;
    wrong += widen(half) != defined(half) || std::signbit(widen(half)) != (bits >= 0x8000);
    wrong += narrow(widen(half)) != half;
  }
  CHECK(wrong == 0);
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(widen(0x7c00) == infinity);
  CHECK(widen(0xfc00) == -infinity);
  CHECK(std::isnan(widen(0x7e00)));
  CHECK(narrow(-infinity) == 0xfc00);
  CHECK(narrow(65520.0f) == 0x7c00);
  CHECK(narrow(std::nextafter(65520.0f, 0.0f)) == 0x7bff);
  CHECK(std::isnan(widen(narrow(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("numbers between two of half precision go to the nearer, of two to the even one") {
  int wrong = 0;
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const auto below = static_cast<std::uint16_t>(bits), above = static_cast<std::uint16_t>(bits + 1);
    const auto middle = static_cast<float>((defined(below) + defined(above)) / 2); // exact in float
    wrong += narrow(middle) != (bits % 2 == 0 ? below : above);
    wrong += narrow(std::nextafter(middle, 0.0f)) != below;
    wrong += narrow(std::nextafter(middle, 1e9f)) != above;
  }
  CHECK(wrong == 0);
}

TEST_CASE("projections from half precision have its relative error and no other") {
  check_projection(View<Complex***>("v", 1, 33, 18), View<HalfComplex***>("h", 1, 33, 18),
                   View<Complex****>("i", 1, 5, 24, 13), 2, 1.3);
  check_projection(View<Complex****>("v", 1, 24, 31, 17), View<HalfComplex****>("h", 1, 24, 31, 17),
                   View<Complex****>("i", 1, 5, 15, 9), 3, 2.0);
  check_projection(View<Complex****>("v", 1, 12, 15, 9), View<HalfComplex****>("h", 1, 12, 15, 9),
                   View<Complex*****>("i", 1, 3, 10, 11, 7), 3, 1.0);
}

TEST_CASE("gradients of poses from half precision are those of what it holds") {
  using Double = Kokkos::complex<double>;
  const Space space;
  const std::size_t poses = 3;
  Random random(9);
  const View<HalfComplex****> halves("halves", 1, 12, 15, 9);
  const View<Double****> widened("widened", 1, 12, 15, 9);
  const View<Complex****> cotangent("cotangent", 1, poses, 10, 6), gradient("gradient", 1, 12, 15, 9);
  const View<Double****> projections("projections", 1, poses, 10, 6);
  const View<float****> matrices("matrices", 1, poses, 3, 3), found_view("gradients", 1, poses, 3, 3);
  std::vector<HalfComplex> stored(halves.size());
  std::vector<Double> values;
  for (HalfComplex& half : stored) {
    half = HalfComplex(Complex(static_cast<float>(random()), static_cast<float>(random())));
    values.push_back(Double(Complex(half).real(), Complex(half).imag()));
  }
  upload(stored, halves), upload(values, widened);
  std::vector<Complex> slopes(cotangent.size());
  for (Complex& slope : slopes)
    slope = Complex(static_cast<float>(random()), static_cast<float>(random()));
  upload(slopes, cotangent);
  std::vector<float> elements(matrices.size());
  for (float& element : elements)
    element = static_cast<float>(0.7 * random());
  upload(elements, matrices);
  const Bracewell::ProjectionOptions options{.oversampling = 1.2};
  Bracewell::project_gradients(space, halves, {.matrices = matrices}, cotangent,
                               {.reconstruction = gradient, .matrices = found_view}, options);
  space.fence();

  // The loss Re <cotangent, projections> in double.
  const auto loss = [&](const View<Double****>& reconstruction, const std::vector<double>& at) {
    const View<double****> changed("changed", 1, poses, 3, 3);
    Bracewell::project(space, reconstruction, {.matrices = upload(at, changed)}, projections, options);
    space.fence();
    const auto host = Test::on_host(projections);
    double sum = 0;
    for (std::size_t i = 0; i < slopes.size(); ++i)
      sum += slopes[i].real() * host.data()[i].real() + slopes[i].imag() * host.data()[i].imag();
    return sum;
  };
  const std::vector<double> here(elements.begin(), elements.end());
  const auto found = Test::on_host(found_view);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < here.size(); ++i) {
    auto above = here, below = here;
    above[i] += 2e-6, below[i] -= 2e-6;
    const double expected = (loss(widened, above) - loss(widened, below)) / 4e-6;
    difference += std::pow(found.data()[i] - expected, 2), size += std::pow(expected, 2);
  }
  CHECK(std::sqrt(difference / size) < 1e-5);

  // The loss is linear in the reconstruction, whose gradient is in float.
  const std::vector<Complex> slope = download(gradient);
  double along = 0;
  for (std::size_t i = 0; i < slope.size(); ++i)
    along += slope[i].real() * values[i].real() + slope[i].imag() * values[i].imag();
  CHECK(std::abs(along / loss(widened, here) - 1) < 1e-4);
}
