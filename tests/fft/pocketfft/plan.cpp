// SPDX-License-Identifier: MIT
// FFT plans by pocketfft (BRACEWELL_HOST_FFT): transforms of two points of an array, by their closed form.

#include <bracewell/fft/plan.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>

#ifndef BRACEWELL_HOST_FFT_POCKETFFT
#error "this test needs pocketfft"
#endif

using Space = Kokkos::DefaultHostExecutionSpace;
using Bracewell::FFT;
using Bracewell::FFTDirection;

namespace {

template <class Value>
using Row = Kokkos::View<Value*, Kokkos::LayoutRight, Kokkos::HostSpace>;

/// Two points with values, the transform of which is a sum of two waves.
template <std::size_t Dim>
struct Points {
  std::array<int, Dim> shape;
  std::array<std::array<int, Dim>, 2> places;
  std::array<std::complex<double>, 2> values;

  std::int64_t size() const {
    std::int64_t product = 1;
    for (const int n : shape)
      product *= n;
    return product;
  }
  std::int64_t element(const std::array<int, Dim>& place) const {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < Dim; ++d)
      index = index * shape[d] + place[d];
    return index;
  }
  std::complex<double> wave(const std::array<int, Dim>& k, int sign) const {
    std::complex<double> sum = 0;
    for (int p = 0; p < 2; ++p) {
      double turns = 0;
      for (std::size_t d = 0; d < Dim; ++d)
        turns += double(std::int64_t(k[d]) * places[p][d] % shape[d]) / shape[d];
      sum += values[p] * std::polar(1., sign * 2 * M_PI * turns);
    }
    return sum;
  }
  /// Calls body(element, k) for all frequencies, of which the last axis has `columns`.
  template <class Body>
  void for_each(int columns, const Body& body) const {
    std::array<int, Dim> k{};
    for (std::int64_t i = 0; i < size() / shape[Dim - 1] * columns; ++i) {
      std::int64_t rest = i;
      for (int d = int(Dim) - 1; d >= 0; --d) {
        const int n = d == int(Dim) - 1 ? columns : shape[d];
        k[d] = int(rest % n);
        rest /= n;
      }
      body(i, k);
    }
  }
};

template <class T, std::size_t Dim>
auto shaped(const Row<T>& row, const std::array<int, Dim>& shape, int columns) {
  if constexpr (Dim == 1)
    return Kokkos::View<T**, Kokkos::LayoutRight, Kokkos::HostSpace>(row.data(), 2, columns);
  else
    return Kokkos::View<T****, Kokkos::LayoutRight, Kokkos::HostSpace>(row.data(), 2, shape[0], shape[1],
                                                                       columns);
}

template <class T, std::size_t Dim>
void check(const std::array<int, Dim>& shape) {
  CAPTURE(shape, sizeof(T));
  using Complex = Kokkos::complex<T>;
  const Space space;
  Points<Dim> points{shape, {}, {std::complex(1.5, -0.5), std::complex(-0.25, 2.)}};
  for (std::size_t d = 0; d < Dim; ++d)
    points.places[0][d] = shape[d] / 3, points.places[1][d] = shape[d] - 1;
  const std::int64_t size = points.size();
  const int width = shape[Dim - 1], columns = width / 2 + 1;
  const std::int64_t half = size / width * columns;
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
  const auto near = [&](const Complex& found, const std::complex<double>& expected) {
    return std::abs(std::complex<double>(found.real(), found.imag()) - expected) < tolerance;
  };

  for (const auto direction : {FFTDirection::Forward, FFTDirection::Backward}) {
    const Row<Complex> from("from", 2 * size), to("to", 2 * size);
    for (int batch = 0; batch < 2; ++batch)
      for (int p = 0; p < 2; ++p)
        from(batch * size + points.element(points.places[p])) =
            Complex(T(points.values[p].real()), T(points.values[p].imag())) * T(batch + 1);
    FFT<Space, int(Dim), Complex, Complex>(space, shape, 2, {.direction = direction})
        .execute(space, shaped(from, shape, width), shaped(to, shape, width));
    int wrong = 0;
    points.for_each(width, [&](std::int64_t i, const auto& k) {
      const auto expected = points.wave(k, direction == FFTDirection::Forward ? -1 : 1);
      wrong += !near(to(i), expected) + !near(to(size + i) / T(2), expected);
    });
    CHECK(wrong == 0);
  }

  // Real points, and back.
  points.values = {1.5, -0.25};
  const Row<T> image("image", 2 * size), again("again", 2 * size);
  for (int batch = 0; batch < 2; ++batch)
    for (int p = 0; p < 2; ++p)
      image(batch * size + points.element(points.places[p])) = T(points.values[p].real() * (batch + 1));
  const Row<Complex> spectrum("spectrum", 2 * half);
  FFT<Space, int(Dim), T, Complex>(space, shape, 2)
      .execute(space, shaped(image, shape, width), shaped(spectrum, shape, columns));
  int wrong = 0;
  points.for_each(columns, [&](std::int64_t i, const auto& k) {
    const auto expected = points.wave(k, -1);
    wrong += !near(spectrum(i), expected) + !near(spectrum(half + i) / T(2), expected);
  });
  CHECK(wrong == 0);
  FFT<Space, int(Dim), Complex, T>(space, shape, 2)
      .execute(space, shaped(spectrum, shape, columns), shaped(again, shape, width));
  double worst = 0;
  for (std::int64_t i = 0; i < 2 * size; ++i)
    worst = std::max(worst, std::abs(double(again(i)) / double(size) - double(image(i))));
  CHECK(worst < tolerance);
}

} // namespace

TEST_CASE("transforms by pocketfft are those of their definition") {
  check<double, 1>({60});
  check<double, 1>({97});
  check<double, 3>({20, 18, 33}); // slow axes, column by column
  check<double, 3>({5, 6, 4});
  check<float, 3>({20, 18, 33});
  check<float, 3>({3, 31, 7});
}
