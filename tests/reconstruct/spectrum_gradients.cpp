// Chain rules between pixels and half spectra, against sums that are written out and differences of losses.

#include "support.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>
#include <bracewell/reconstruct/rolloff.hpp>
#include <bracewell/reconstruct/spectrum_gradients.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

using namespace Bracewell;
using namespace ReconstructTest;

namespace {

using C = Kokkos::complex<double>;
constexpr double pi = Kokkos::numbers::pi;

/// k.x / n in turns, of element k of a half spectrum and element x of its box.
double turns(const Shape& k, const Shape& x, const Shape& shape) {
  double sum = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    sum += double(frequency(k[axis], shape[axis])) * x[axis] / shape[axis];
  return sum;
}

/// L = sum over stored elements of Re(conj G V): its slope along voxel x of a map of `shape` whose spectrum V is
/// that of `padded`.
double slope_by_sums(const std::vector<C>& G, Shape x, const Shape& shape, const Shape& padded) {
  double rolloff = 1, sum = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    x[axis] -= shape[axis] / 2;
    rolloff *= CatmullRom::transform(double(x[axis]) / padded[axis]);
  }
  for (std::size_t i = 0; i < G.size(); ++i) {
    const double angle = -2 * pi * turns(indices(std::int64_t(i), stored(padded)), x, padded);
    sum += G[i].real() * std::cos(angle) + G[i].imag() * std::sin(angle);
  }
  return sum / rolloff;
}

template <int Dim>
void check_voxel_gradient(const Shape& shape, const Shape& padded) {
  CAPTURE(Dim, shape[0], padded[0]);
  const Space space;
  const auto gradient = make<C, Dim>(2, stored(padded));
  const auto pixels = make<double, Dim>(2, padded), map = make<double, Dim>(2, shape);
  fill_random(gradient, 4);
  const auto G = to_host(gradient);
  std::array<int, Dim> sizes;
  std::copy(padded.begin(), padded.end(), sizes.begin());
  divide_by_multiplicity(space, HalfSpectrum{gradient, padded.back()});
  FFT<Space, Dim, C, double>(space, sizes, 2).execute(space, gradient, pixels);
  crop_centre(space, pixels, map);
  correct_rolloff(space, map, sizes);
  const auto found = to_host(map);
  double error = 0;
  for (std::int64_t i = 0; i < std::int64_t(found.size()); ++i) {
    const std::int64_t batch = i / elements(shape), size = elements(stored(padded));
    const std::vector<C> own(G.begin() + batch * size, G.begin() + (batch + 1) * size);
    error = std::max(error, std::abs(found[std::size_t(i)] -
                                     slope_by_sums(own, indices(i % elements(shape), shape), shape, padded)));
  }
  CHECK(error < 1e-12 * double(elements(padded)));
}

/// Pixels [B, P, ...] and their half spectra, by sums.
std::vector<C> transform(const std::vector<double>& pixels, const Shape& shape) {
  std::vector<C> result;
  for (std::int64_t begin = 0; begin < std::int64_t(pixels.size()); begin += elements(shape))
    for (std::int64_t i = 0; i < elements(stored(shape)); ++i) {
      C sum = 0;
      for (std::int64_t j = 0; j < elements(shape); ++j) {
        const double angle = -2 * pi * turns(indices(i, stored(shape)), indices(j, shape), shape);
        sum += pixels[std::size_t(begin + j)] * C(std::cos(angle), std::sin(angle));
      }
      result.push_back(sum);
    }
  return result;
}

std::vector<double> random_values(std::size_t count, int seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values(count);
  for (double& value : values)
    value = uniform(engine);
  return values;
}

} // namespace

TEST_CASE("from the gradient of a spectrum to that of the voxels", "[reconstruct]") {
  check_voxel_gradient<2>({4, 5}, {6, 8});
  check_voxel_gradient<2>({5, 5}, {9, 7});
  check_voxel_gradient<3>({4, 3, 4}, {6, 5, 6});
  check_voxel_gradient<3>({3, 3, 3}, {3, 4, 5});
}

TEST_CASE("from the gradient of pixels to that of the spectrum that they are the inverse transform of",
          "[reconstruct]") {
  const Space space;
  for (const Shape& shape : {Shape{6, 8}, {5, 7}, {1, 4}}) {
    // L = sum of a(x) p(x), p(x) = sum over the full spectrum of P exp(+2 pi i k.x / n).
    const auto a = random_values(std::size_t(elements(shape)), 1);
    const auto cotangent = make<C, 2>(1, stored(shape));
    from_host(cotangent, transform(a, shape));
    multiply_by_multiplicity(space, HalfSpectrum{cotangent, shape.back()});
    const auto found = to_host(cotangent);
    for (std::int64_t i = 0; i < std::int64_t(found.size()); ++i) {
      const Shape k = indices(i, stored(shape));
      const bool alone = k[1] == 0 || 2 * k[1] == shape[1]; // the mate, if another element, is stored, too
      double re = 0, im = 0;
      for (std::int64_t x = 0; x < elements(shape); ++x) {
        const double angle = 2 * pi * turns(k, indices(x, shape), shape);
        re += (alone ? 1 : 2) * a[std::size_t(x)] * std::cos(angle);
        im -= (alone ? 1 : 2) * a[std::size_t(x)] * std::sin(angle);
      }
      CHECK(std::abs(found[std::size_t(i)].real() - re) < 1e-12);
      CHECK(std::abs(found[std::size_t(i)].imag() - im) < 1e-12);
    }
  }
}

TEMPLATE_TEST_CASE(
    "the squared error over the full spectrum is that of the pixels; its cotangent, its slopes",
    "[reconstruct]", float, double) {
  using T = TestType;
  using Complex = Kokkos::complex<T>;
  using Images = Kokkos::View<Complex****, Kokkos::LayoutRight, Space>;
  using Weights = Kokkos::View<T****, Kokkos::LayoutRight, Space>;
  const Space space;
  const double tolerance = 100 * epsilon<T>;
  for (const Shape& shape : {Shape{6, 8}, {5, 7}, {9, 9}}) {
    CAPTURE(shape[0], shape[1]);
    const std::size_t rows = shape[0], columns = shape[1] / 2 + 1, pixels = elements(shape),
                      size = rows * columns;
    const auto p = random_values(6 * pixels, 1), d = random_values(6 * pixels, 2);
    const Images projections("projections", 2, 3, rows, columns), images("images", 2, 3, rows, columns),
        cotangent("cotangent", 2, 3, rows, columns);
    const Kokkos::View<double**, Kokkos::LayoutRight, Space> losses("losses", 2, 3);
    const auto P = transform(p, shape), D = transform(d, shape);
    const auto convert = [](const std::vector<C>& values) {
      return std::vector<Complex>(values.begin(), values.end());
    };
    from_host(projections, convert(P));
    from_host(images, convert(D));
    const int w = shape.back();
    squared_error(space, HalfSpectrum{projections, w}, HalfSpectrum{images, w}, {.losses = losses});
    const auto of_pixels = to_host(losses);
    for (std::size_t i = 0; i < 6; ++i) {
      double sum = 0;
      for (std::size_t x = i * pixels; x < (i + 1) * pixels; ++x)
        sum += std::pow(p[x] - d[x], 2);
      CHECK(std::abs(of_pixels[i] - double(pixels) * sum) < tolerance * of_pixels[i]);
    }

    for (const auto& [own_batches, own_poses] : {std::pair{1, 1}, {1, 3}, {2, 1}, {2, 3}}) {
      const Weights weights("weights", own_batches, own_poses, rows, columns);
      fill_random(weights, 3, 0, 2);
      const auto W = to_host(weights);
      squared_error(space, HalfSpectrum{projections, w}, HalfSpectrum{images, w},
                    {.losses = losses, .cotangent = HalfSpectrum{cotangent, w}}, HalfSpectrum{weights, w});
      const auto g = to_host(cotangent);
      const auto found = to_host(losses);
      for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t q = 0; q < 3; ++q) {
          double loss = 0, error = 0;
          for (std::size_t i = 0; i < size; ++i) {
            const std::size_t at = (b * 3 + q) * size + i, x = i % columns;
            const double m = x == 0 || 2 * int(x) == w ? 1 : 2;
            const double weight =
                W[((own_batches == 2 ? b : 0) * std::size_t(own_poses) + (own_poses == 3 ? q : 0)) * size +
                  i];
            const auto term = [&](const C& value) {
              const C difference = value - D[at];
              return m * weight *
                     (difference.real() * difference.real() + difference.imag() * difference.imag());
            };
            loss += term(P[at]);
            const double re = (term(P[at] + C(0.5, 0)) - term(P[at] - C(0.5, 0))), // exact: it is quadratic
                im = (term(P[at] + C(0, 0.5)) - term(P[at] - C(0, 0.5)));
            error = std::max({error, std::abs(g[at].real() - re), std::abs(g[at].imag() - im)});
          }
          CHECK(std::abs(found[b * 3 + q] - loss) < tolerance * loss);
          CHECK(error < tolerance * 100);
        }
    }
  }
}

TEST_CASE("wrong arguments of spectra's gradients are named; nothing is no work", "[reconstruct]") {
  const Space space;
  using Images = Kokkos::View<C****, Kokkos::LayoutRight, Space>;
  const Images images("images", 1, 2, 8, 5), others("others", 1, 2, 8, 4), none("none", 1, 0, 8, 5);
  const Kokkos::View<double**, Kokkos::LayoutRight, Space> losses("losses", 1, 2), no_losses("losses", 1, 0);
  CHECK_THROWS_WITH(squared_error(space, images, others, {}),
                    "Bracewell::squared_error: images: expected [1, 2, 8, 5] (width 8), found [1, 2, 8, 4] "
                    "(width 6)");
  CHECK_THROWS_WITH(squared_error(space, images, images, {.losses = no_losses}),
                    "Bracewell::squared_error: outputs.losses: expected [1, 2], found [1, 0]");
  CHECK_THROWS_WITH(
      squared_error(space, images, images, {.cotangent = images}),
      "Bracewell::squared_error: outputs.cotangent: expected memory of its own, found memory shared "
      "with projections");
  CHECK_THROWS_AS(multiply_by_multiplicity(space, HalfSpectrum{images, 11}), Error);
  CHECK_THROWS_AS(divide_by_multiplicity(space, HalfSpectrum{images, 11}), Error);
  CHECK_NOTHROW(squared_error(space, none, none, {.losses = no_losses}));
  CHECK_NOTHROW(multiply_by_multiplicity(space, none));
  CHECK_NOTHROW(divide_by_multiplicity(space, make<C, 3>(0, {8, 8, 5})));
}
