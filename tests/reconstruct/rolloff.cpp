#include "support.hpp"

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/reconstruct/mask.hpp>
#include <bracewell/reconstruct/rolloff.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

using namespace Bracewell;
using namespace ReconstructTest;

namespace {

double sinc(double v) { return v == 0 ? 1 : std::sin(Kokkos::numbers::pi * v) / (Kokkos::numbers::pi * v); }
double linear(double v) { return std::pow(sinc(v), 2); }
double catmull_rom(double v) {
  return std::pow(sinc(v), 3) * (3 * sinc(v) - 2 * std::cos(Kokkos::numbers::pi * v));
}
double bspline(double v) { return std::pow(sinc(v), 4); }

/// Largest relative difference of apply(volume) from volume * factor(offsets from the centre).
template <class T, int Dim, class Apply, class Factor>
double error(const Shape& shape, const Apply& apply, const Factor& factor) {
  const auto volume = make<T, Dim>(2, shape);
  fill_random(volume, 6, 0.5, 1);
  const auto before = to_host(volume);
  apply(volume);
  const auto after = to_host(volume);
  double largest = 0;
  for (std::int64_t i = 0; i < std::int64_t(before.size()); ++i) {
    Shape offset = indices(i % elements(shape), shape);
    for (int axis = 0; axis < Dim; ++axis)
      offset[axis] -= shape[axis] / 2;
    const double expected = before[i] * factor(offset);
    largest = std::max(largest, std::abs(after[i] - expected) / (std::abs(expected) + 1e-3));
  }
  return largest;
}

/// Of dividing and of multiplying.
template <class Kernel, class T, int Dim>
double separable_error(const Shape& shape, const std::array<int, Dim>& padded, double (*transform)(double)) {
  const auto rolloff = [&](const Shape& x) {
    double factor = 1;
    for (int axis = 0; axis < Dim; ++axis)
      factor *= transform(double(x[axis]) / padded[axis]);
    return factor;
  };
  const double corrected = error<T, Dim>(
      shape, [&](const auto& volume) { correct_rolloff<Kernel>(Space(), volume, padded); },
      [&](const Shape& x) { return 1 / rolloff(x); });
  const double applied = error<T, Dim>(
      shape, [&](const auto& volume) { apply_rolloff<Kernel>(Space(), volume, padded); }, rolloff);
  return std::max(corrected, applied);
}

} // namespace

TEMPLATE_TEST_CASE("the roll-off is the kernel's transform about the centre, as a divisor and as a factor",
                   "[reconstruct]", float, double) {
  using T = TestType;
  const double tolerance = 16 * epsilon<T>;
  CHECK(separable_error<Linear, T, 3>({6, 7, 8}, {12, 14, 16}, linear) < tolerance);
  CHECK(separable_error<CatmullRom, T, 3>({7, 7, 7}, {7, 9, 20}, catmull_rom) < tolerance);
  CHECK(separable_error<CubicBSpline, T, 2>({130, 33}, {150, 40}, bspline) < tolerance);
  CHECK(separable_error<Linear, T, 2>({3, 1100}, {3, 2000}, linear) < tolerance); // more columns than a tile
}

TEMPLATE_TEST_CASE("radial roll-off correction divides by sinc^2 of the radius", "[reconstruct]", float,
                   double) {
  using T = TestType;
  const auto radial_error = [&]<int Dim>(const Shape& shape, const std::array<int, Dim>& padded) {
    return error<T, Dim>(
        shape, [&](const auto& volume) { correct_radial_rolloff(Space(), volume, padded); },
        [&](const Shape& x) {
          double squared = 0;
          for (int axis = 0; axis < Dim; ++axis)
            squared += std::pow(double(x[axis]) / padded[axis], 2);
          return 1 / linear(std::sqrt(squared));
        });
  };
  CHECK(radial_error.template operator()<3>({8, 8, 8}, {16, 16, 16}) < 16 * epsilon<T>);
  CHECK(radial_error.template operator()<3>({7, 9, 5}, {14, 18, 10}) < 16 * epsilon<T>);
  CHECK(radial_error.template operator()<2>({31, 31}, {62, 62}) < 16 * epsilon<T>);
}

TEMPLATE_TEST_CASE("soft masks fall off as a raised cosine", "[reconstruct]", float, double) {
  using T = TestType;
  const auto mask_error = [&]<int Dim>(const Shape& shape, const SoftSphere& mask) {
    return error<T, Dim>(
        shape, [&](const auto& volume) { apply_mask(Space(), volume, mask); },
        [&](const Shape& x) {
          double r = 0;
          for (const int component : x)
            r += double(component) * component;
          r = std::sqrt(r);
          if (r <= mask.radius)
            return 1.0;
          return r < mask.radius + mask.edge
                     ? 0.5 * (1 + std::cos(Kokkos::numbers::pi * (r - mask.radius) / mask.edge))
                     : 0.0;
        });
  };
  CHECK(mask_error.template operator()<3>({12, 12, 12}, {.radius = 3, .edge = 2.5}) < 600 * epsilon<T>);
  CHECK(mask_error.template operator()<3>({9, 10, 11}, {.radius = 4}) < 16 * epsilon<T>);
  CHECK(mask_error.template operator()<2>({15, 20}, {.radius = 0, .edge = 7}) < 600 * epsilon<T>);
  CHECK(SoftSphere{.radius = 5}(5.0) == 1);
  CHECK(SoftSphere{.radius = 5}(5.001) == 0);
  CHECK(std::abs(SoftSphere{.radius = 5, .edge = 2}(6.0) - 0.5) < 1e-15);
}

TEST_CASE("wrong arguments of roll-off corrections and masks are named", "[reconstruct]") {
  const Space space;
  const auto volume = make<float, 3>(1, {8, 8, 8});
  CHECK_THROWS_WITH((correct_rolloff<Linear>(space, volume, {16, 7, 16})),
                    "Bracewell::correct_rolloff: padded: expected at least 8 along y, found 7");
  CHECK_THROWS_WITH((apply_rolloff<Linear>(space, volume, {16, 16, 7})),
                    "Bracewell::apply_rolloff: padded: expected at least 8 along x, found 7");
  CHECK_THROWS_AS(correct_radial_rolloff(space, volume, {0, 16, 16}), Error);
  CHECK_THROWS_AS(correct_rolloff<Linear>(space, Batch<float, 3>(), {16, 16, 16}), Error);
  CHECK_THROWS_AS(apply_mask(space, volume, {.radius = -1}), Error);
  CHECK_THROWS_AS(apply_mask(space, volume, {.radius = 3, .edge = NAN}), Error);
}

TEST_CASE("correcting and masking no volumes is no work", "[reconstruct]") {
  const Space space;
  const auto none = make<float, 3>(0, {8, 8, 8});
  CHECK_NOTHROW(correct_rolloff<Linear>(space, none, {16, 16, 16}));
  CHECK_NOTHROW(correct_radial_rolloff(space, none, {16, 16, 16}));
  CHECK_NOTHROW(apply_mask(space, none, {.radius = 3}));
}
