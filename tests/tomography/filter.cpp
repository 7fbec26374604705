// SPDX-License-Identifier: MIT
#include "phantom.hpp"

#include <bracewell/tomography/filter.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace TomographyTest;
using Bracewell::FilterOptions;
using Bracewell::ProjectionFilter;
using Bracewell::ProjectionPadding;
using Bracewell::TomographyFilter;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr double pi = std::numbers::pi;

template <class T = double>
Values filtered(const Values& rows, int width, const FilterOptions& options) {
  const Space space;
  const int count = static_cast<int>(rows.size()) / width;
  const auto in = to_device<T>(rows, count, width),
             out = to_device<T>(Values(rows.size(), NAN), count, width);
  ProjectionFilter<Space, T>(space, count, width, options).execute(space, in, out);
  CHECK(relative_error(to_host(in), rows) < rounding<T>); // kept
  return to_host(out);
}

} // namespace

TEMPLATE_TEST_CASE("the ramp is the convolution with its band-limited kernel", "", float, double) {
  for (const int width : {1, 2, 31, 64, 515}) { // the last one by lines on the chip where there are such
    const Values rows = random_values(static_cast<std::size_t>(3 * width));
    Values expected(rows.size());
    for (int row = 0; row < 3; ++row)
      for (int i = 0; i < width; ++i)
        for (int j = 0; j < width; ++j) {
          const int m = i - j;
          const double kernel = m == 0 ? 0.25 : (m % 2 != 0 ? -1 / (pi * pi * m * m) : 0);
          expected[static_cast<std::size_t>(row * width + i)] +=
              kernel * rows[static_cast<std::size_t>(row * width + j)];
        }
    CHECK(relative_error(filtered<TestType>(rows, width, {}), expected) < 10 * rounding<TestType>);
  }
}

TEST_CASE("the filtered projection of a disc is that of theory") {
  const int n = 400;
  const double radius = 80.5;
  const Values row = sinogram({{0, 0, radius, radius, 0, 1}}, n, {0.0}, n / 2);
  const Values result = filtered(row, n, {.filter = TomographyFilter::Hann}); // no ringing
  for (int i = 0; i < n; ++i) {
    const double s = std::abs(i - n / 2);
    if (std::abs(s - radius) < 10)
      continue; // the edge
    const double expected = s < radius ? 1 / pi : (1 - s / std::sqrt(s * s - radius * radius)) / pi;
    CHECK(std::abs(result[static_cast<std::size_t>(i)] - expected) < 3e-3);
  }
}

TEST_CASE("a shift moves the rows, by fractions of pixels too") {
  const int n = 101;
  const auto gaussian = [](double centre) {
    Values row;
    for (int i = 0; i < n; ++i)
      row.push_back(std::exp(-(i - centre) * (i - centre) / 18));
    return row;
  };
  for (const double shift : {0.0, 5.0, 3.25, -12.5})
    CHECK(relative_error(filtered(gaussian(50), n, {.filter = TomographyFilter::None, .shift = shift}),
                         gaussian(50 - shift)) < 1e-8);
}

TEST_CASE("rows come back with several values per pixel") {
  const Space space;
  const int n = 75, factor = 3;
  const auto gaussian = [](double step, int count) {
    Values row;
    for (int i = 0; i < count; ++i)
      row.push_back(std::exp(-std::pow(i * step - 33.3, 2) / 18));
    return row;
  };
  const auto fine = to_device<double>(Values(factor * n, NAN), 1, factor * n);
  ProjectionFilter<Space, double>(space, 1, n, {.filter = TomographyFilter::None, .upsampling = factor})
      .execute(space, to_device<double>(gaussian(1, n), 1, n), fine);
  CHECK(relative_error(to_host(fine), gaussian(1.0 / factor, factor * n)) < 1e-8);
  // Between the pixels, too, it is the ramp's: every third value is what is there without upsampling.
  const Values rows = random_values(n);
  ProjectionFilter<Space, double>(space, 1, n, {.upsampling = factor})
      .execute(space, to_device<double>(rows, 1, n), fine);
  Values third;
  for (int i = 0; i < n; ++i)
    third.push_back(to_host(fine)[static_cast<std::size_t>(factor * i)]);
  CHECK(relative_error(third, filtered(rows, n, {})) < 1e-13);
}

TEST_CASE("beyond the detector there is nothing, or the edge goes on") {
  const Values ones(64, 1.0);
  const Values zero = filtered(ones, 64, {}), edge = filtered(ones, 64, {.padding = ProjectionPadding::Edge});
  CHECK(zero[0] > 0.1);
  for (const double value : edge)
    CHECK(std::abs(value) < 2e-3); // the mean has no place in |t|
}

TEST_CASE("windows are those of their names and fall from 1") {
  const auto at = [](TomographyFilter filter, double tau) { return Bracewell::filter_window(filter, tau); };
  for (int filter = 0; filter <= int(TomographyFilter::Parzen); ++filter)
    CHECK(at(TomographyFilter(filter), 0) == 1);
  CHECK(std::abs(at(TomographyFilter::Shepp, 1) - 2 / pi) < 1e-15);
  CHECK(std::abs(at(TomographyFilter::Cosine, 0.5) - std::sqrt(0.5)) < 1e-15);
  CHECK(std::abs(at(TomographyFilter::Cosine2, 0.5) - 0.5) < 1e-15);
  CHECK(std::abs(at(TomographyFilter::Hamming, 1) - 0.08) < 1e-15);
  CHECK(std::abs(at(TomographyFilter::Hann, 0.5) - 0.5) < 1e-15);
  CHECK(at(TomographyFilter::Parzen, 0.5) == 0.125);
  const auto ramp = Bracewell::filter_multiplier(TomographyFilter::Ramp, 240);
  const auto hann = Bracewell::filter_multiplier(TomographyFilter::Hann, 240);
  for (std::size_t k = 0; k <= 120; ++k) {
    CHECK(std::abs(ramp[k] - double(k) / 240) < 1e-3); // |t|, but for the cut kernel
    CHECK(std::abs(hann[k] - ramp[k] * (0.5 + 0.5 * std::cos(pi * double(k) / 120))) < 1e-15);
  }
  CHECK(ramp[0] > 0); // what |t| sampled would lose
}

TEST_CASE("rows are filtered in place, in many blocks as in one") {
  const Space space;
  const int n = 64, rows = 5000; // more than fit one block on a host
  const Values values = random_values(static_cast<std::size_t>(n * rows));
  const auto view = to_device<double>(values, rows, n);
  const ProjectionFilter<Space, double> filter(space, rows, n, {.filter = TomographyFilter::Hann});
  filter.execute(space, view, view);
  const Values all = to_host(view);
  const auto one = to_device<double>(Values(values.end() - n, values.end()), 1, n);
  filter.execute(space, one, one); // fewer rows than planned
  CHECK(relative_error(to_host(one), Values(all.end() - n, all.end())) < 1e-14);
}

TEST_CASE("a pair of rows is filtered in three steps and back") {
  using Steps = Bracewell::Impl::LineSteps<16, 12, 8>;
  using Line = Bracewell::Impl::FilterLine<double, Steps>;
  struct OneLane {
    int line;
    KOKKOS_FUNCTION int rank() const { return 0; }
    KOKKOS_FUNCTION std::int64_t number() const { return line; }
    KOKKOS_FUNCTION void barrier() const {}
  };
  const int n = Steps::n, width = n / 2 - 3, rows = 3; // one and a half pairs
  const Values in = random_values(static_cast<std::size_t>(rows * width));
  Values out(in.size(), NAN), kernel(n);
  std::vector<Kokkos::complex<double>> factors;
  for (int k = 0; k <= n / 2; ++k)
    factors.push_back(Kokkos::complex<double>(1 + k % 7, 2 * k % n == 0 ? 0 : k % 5) / n);
  for (int x = 0; x < n; ++x)
    for (int k = 0; k <= n / 2; ++k) {
      const double angle = 2 * pi * (k * x % n) / n, sides = 2 * k % n == 0 ? 1 : 2;
      kernel[static_cast<std::size_t>(x)] +=
          sides * (factors[static_cast<std::size_t>(k)].real() * std::cos(angle) -
                   factors[static_cast<std::size_t>(k)].imag() * std::sin(angle));
    }
  const auto tables = Line::write_tables(factors);
  CHECK(tables.size() == Line::table_size);
  std::vector<Bracewell::Impl::PlainComplex<double>> scratch(Steps::place(n));
  for (const bool edge : {false, true}) {
    for (int line = 0; line < 2; ++line)
      Line{in.data(), out.data(), rows, width, edge, tables.data()}.run<1>(OneLane{line}, scratch.data());
    Values expected(in.size());
    for (int i = 0; i < rows * width; ++i)
      for (int x = 0; x < n; ++x) {
        const int from = x < width ? x : x < width + (n - width) / 2 ? width - 1 : 0;
        if (edge || x < width)
          expected[static_cast<std::size_t>(i)] += kernel[static_cast<std::size_t>((i % width - x + n) % n)] *
                                                   in[static_cast<std::size_t>(i / width * width + from)];
      }
    CHECK(relative_error(out, expected) < 1e-13);
  }
}

TEST_CASE("lines lie on the chip where they fit") {
  const auto choose = [](std::int64_t least, std::size_t chip) {
    return std::pair(Bracewell::Impl::choose_filter_line<float>(least, chip),
                     Bracewell::Impl::choose_filter_line<double>(least, chip));
  };
  CHECK(choose(5792, 0) == std::pair(0, 0));
  CHECK(choose(5792, 232448) == std::pair(6144, 6144));
  CHECK(choose(4096, 232448) == std::pair(4096, 4096));
  CHECK(choose(16384, 232448) == std::pair(16384, 0));
  CHECK(choose(16385, 232448) == std::pair(0, 0));
  CHECK(choose(511, 232448) == std::pair(0, 0));
}

TEST_CASE("wrong input to ProjectionFilter is named") {
  const Space space;
  using Filter = ProjectionFilter<Space, float>;
  const auto matches = [](const char* text) { return MessageMatches(ContainsSubstring(text)); };
  CHECK_THROWS_MATCHES(Filter(space, 0, 8), Bracewell::Error, matches("ProjectionFilter: rows: "));
  CHECK_THROWS_MATCHES(Filter(space, 1, 0), Bracewell::Error, matches("width: "));
  CHECK_THROWS_MATCHES(Filter(space, 1, 8, {.shift = NAN}), Bracewell::Error, matches("options.shift: "));
  CHECK_THROWS_MATCHES(Filter(space, 1, 8, {.upsampling = 0}), Bracewell::Error,
                       matches("options.upsampling: "));
  const Filter filter(space, 2, 8), fine(space, 2, 8, {.upsampling = 2});
  const auto rows = to_device<float>(Values(16), 2, 8), long_rows = to_device<float>(Values(18), 2, 9);
  CHECK_THROWS_MATCHES(filter.execute(space, long_rows, long_rows), Bracewell::Error,
                       matches("rows of 8 values"));
  CHECK_THROWS_MATCHES(fine.execute(space, rows, rows), Bracewell::Error, matches("2 rows of 16 values"));
  CHECK_THROWS_MATCHES(filter.execute(space, rows, long_rows), Bracewell::Error,
                       matches("filtered: expected 2 rows of 8 values"));
  const auto four = to_device<float>(Values(24), 3, 8);
  using Rows = Kokkos::View<float**, Kokkos::LayoutRight, Space>;
  CHECK_THROWS_MATCHES(filter.execute(space, Rows(four.data(), 2, 8), Rows(four.data() + 8, 2, 8)),
                       Bracewell::Error, matches("filtered: expected memory of its own"));
  CHECK_NOTHROW(filter.execute(space, Rows("none", 0, 8), Rows("none", 0, 8)));
  CHECK_NOTHROW(fine.execute(space, Rows("none", 0, 8), Rows("none", 0, 16)));
}
