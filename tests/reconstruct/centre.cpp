#include "support.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

using namespace Bracewell;
using namespace ReconstructTest;

namespace {

template <class Value, int Dim>
void check_padding(const Shape& small, const Shape& large) {
  CAPTURE(Dim, small[0], large[0], small.back(), large.back());
  const Space space;
  const std::int64_t batch = 2;
  const auto centred = make<Value, Dim>(batch, small), back = make<Value, Dim>(batch, small);
  const auto padded = make<Value, Dim>(batch, large);
  fill_random(centred, 4);
  fill_random(padded, 5);
  pad_centre(space, centred, padded);
  const auto in = to_host(centred), out = to_host(padded);

  std::vector<Value> expected(out.size(), Value(0));
  for (std::int64_t i = 0; i < std::int64_t(in.size()); ++i) {
    const Shape index = indices(i % elements(small), small);
    std::int64_t target = i / elements(small);
    for (int axis = 0; axis < Dim; ++axis)
      target = target * large[axis] + (index[axis] - small[axis] / 2 + large[axis]) % large[axis];
    expected[target] = in[i];
  }
  CHECK(out == expected);

  crop_centre(space, padded, back);
  CHECK(to_host(back) == in);
  crop_centre(space, padded, back, 0.25);
  auto quarter = in;
  for (auto& value : quarter)
    value *= typename Impl::RealOf<Value>::type(0.25);
  CHECK(to_host(back) == quarter);
}

} // namespace

TEST_CASE("boxes are placed around element 0 and taken back", "[reconstruct]") {
  for (const auto& [n, N] : {std::pair{6, 6}, {7, 7}, {6, 9}, {7, 12}, {5, 13}, {1, 1}, {1, 4}, {2, 3}}) {
    check_padding<double, 2>({n, n}, {N, N});
    check_padding<float, 3>({n, n, n}, {N, N, N});
  }
  check_padding<float, 2>({5, 40}, {8, 77});
  check_padding<double, 3>({4, 7, 6}, {4, 9, 13});
  check_padding<Kokkos::complex<float>, 2>({5, 6}, {9, 8});
}

TEMPLATE_TEST_CASE("the transform of a centred Gaussian is real and known", "[reconstruct]", float, double) {
  using T = TestType;
  const Space space;
  const double sigma = 1.9, pi = Kokkos::numbers::pi;
  for (const auto& [n, N] : {std::pair{30, 36}, {31, 31}, {31, 40}}) {
    const Shape small{n, n - 1}, large{N, N - 1};
    const auto image = make<T, 2>(1, small), padded = make<T, 2>(1, large);
    const auto spectrum = make<Kokkos::complex<T>, 2>(1, stored(large));
    std::vector<double> values(image.size());
    for (std::int64_t i = 0; i < std::int64_t(values.size()); ++i) {
      const Shape index = indices(i, small);
      const double y = index[0] - n / 2, x = index[1] - (n - 1) / 2;
      values[i] = std::exp(-(x * x + y * y) / (2 * sigma * sigma)) / (2 * pi * sigma * sigma);
    }
    from_host(image, values);
    pad_centre(space, image, padded);
    const FFT<Space, 2, T, Kokkos::complex<T>> forward(space, {large[0], large[1]});
    forward.execute(space, padded, HalfSpectrum{spectrum, large[1]});
    double error = 0;
    const auto result = to_host(spectrum);
    for (std::int64_t i = 0; i < std::int64_t(result.size()); ++i) {
      const Shape index = indices(i, stored(large));
      const double y = double(frequency(index[0], large[0])) / large[0], x = double(index[1]) / large[1];
      const double expected = std::exp(-2 * pi * pi * sigma * sigma * (x * x + y * y));
      error = std::max(error, std::hypot(result[i].real() - expected, result[i].imag()));
    }
    CHECK(error < (std::is_same_v<T, float> ? 1e-6 : 1e-7)); // aliasing: exp(-2 pi^2 sigma^2 / 4)
  }
}

TEST_CASE("wrong boxes are named", "[reconstruct]") {
  const Space space;
  const auto small = make<float, 2>(2, {6, 6}), large = make<float, 2>(2, {8, 8}),
             other = make<float, 2>(1, {8, 8});
  CHECK_THROWS_AS(pad_centre(space, large, small), Error);
  CHECK_THROWS_AS(pad_centre(space, small, other), Error);
  CHECK_THROWS_WITH(
      pad_centre(space, small, small),
      "Bracewell::pad_centre: padded: expected memory of its own, found memory shared with centred");
  CHECK_THROWS_AS(pad_centre(space, small, Batch<float, 2>()), Error);
  CHECK_THROWS_AS(crop_centre(space, small, large), Error);
  CHECK_THROWS_AS(crop_centre(space, large, small, INFINITY), Error);
}

TEST_CASE("padding and cropping no images is no work", "[reconstruct]") {
  const auto small = make<float, 2>(0, {6, 6}), large = make<float, 2>(0, {8, 8});
  CHECK_NOTHROW(pad_centre(Space(), small, large));
  CHECK_NOTHROW(crop_centre(Space(), large, small));
}
