// SPDX-License-Identifier: MIT
// The normal operator against direct sums over samples.
#include "../tools/checks.hpp"
#include "support.hpp"

#include <bracewell/gridding/toeplitz_normal.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace GriddingTest;
using Bracewell::GriddingOptions;
using Bracewell::ToeplitzNormal;

namespace {

/// Weights of both signs.
template <class T>
std::pair<View<T*>, std::vector<double>> weights(std::size_t count) {
  const View<T*> view("weights", count);
  const auto host = Kokkos::create_mirror_view(view);
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = host(i) = static_cast<T>(std::sin(3. * double(i)) + 0.4);
  Kokkos::deep_copy(view, host);
  return {view, values};
}

/// adjoint(w forward(image))
template <int Dim>
Values normal(const Points<Dim>& points, const std::vector<double>& w, const Values& image,
              const std::array<int, Dim>& shape) {
  Values samples = direct_forward<Dim>(points, image, shape);
  for (std::size_t i = 0; i < samples.size(); ++i)
    samples[i] *= w[i % w.size()];
  return direct<Dim>(points, samples, shape);
}

Values real_parts(Values values) {
  for (auto& value : values)
    value = value.real();
  return values;
}

/// The operator of images on the device, in place or not.
template <class Value, int dimensions, std::size_t Dim>
Values execute(const ToeplitzNormal<Space, dimensions, Value>& plan, const Values& image, std::int64_t slices,
               const std::array<int, Dim>& shape, bool in_place = false) {
  using Images = std::conditional_t<Dim == 2, View<Value***>, View<Value****>>;
  const auto make = [&] {
    if constexpr (Dim == 2)
      return Images("images", slices, shape[0], shape[1]);
    else
      return Images("images", slices, shape[0], shape[1], shape[2]);
  };
  const Images from = make(), to = in_place ? from : make();
  const auto host = Kokkos::create_mirror_view(from);
  for (std::size_t i = 0; i < image.size(); ++i)
    if constexpr (Bracewell::Impl::is_complex<Images>)
      host.data()[i] = Value(image[i].real(), image[i].imag());
    else
      host.data()[i] = static_cast<Value>(image[i].real());
  Kokkos::deep_copy(from, host);
  plan.execute(Space(), from, to);
  const auto back = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), to);
  Values values(image.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if constexpr (Bracewell::Impl::is_complex<Images>)
      values[i] = {back.data()[i].real(), back.data()[i].imag()};
    else
      values[i] = back.data()[i];
  return values;
}

template <class Value, int Dim, class Where>
void check(const Where& where, const Points<Dim>& points, const std::array<int, Dim>& shape,
           const GriddingOptions& options) {
  using T = typename Bracewell::Impl::RealOf<Value>::type;
  CAPTURE(shape, options.tolerance);
  const auto [device, host] = weights<T>(points.list.size());
  const ToeplitzNormal<Space, Dim, Value> plan(Space(), where, device, shape, options);
  CHECK(plan.memory_bytes() == ToeplitzNormal<Space, Dim, Value>::bytes_needed(Space(), shape, options));
  std::size_t pixels = 1;
  for (std::size_t d = 0; d < Dim; ++d) {
    pixels *= static_cast<std::size_t>(shape[d]);
    CHECK(plan.grid_shape()[d] >= 2 * shape[d] - 1);
  }
  constexpr bool real = std::is_same_v<Value, T>;
  for (const std::int64_t slices : {1, 5}) {
    Values image = random_values(static_cast<std::size_t>(slices) * pixels, 4);
    if (real)
      image = real_parts(image);
    Values exact = normal<Dim>(points, host, image, shape);
    if (real)
      exact = real_parts(exact);
    const Values result = execute(plan, image, slices, shape);
    CHECK(relative_error(result, exact) <= options.tolerance);
    CHECK(execute(plan, image, slices, shape, true) == result);
    // <x, T y> = <T x, y>
    Values other = random_values(image.size(), 5);
    if (real)
      other = real_parts(other);
    const auto left = dot(execute(plan, other, slices, shape), image), right = dot(other, result);
    CHECK(std::abs(left - right) <=
          (sizeof(T) == 4 ? 1e-6 : 1e-14) *
              std::sqrt(std::abs(dot(other, other)) * std::abs(dot(result, result))));
  }
}

} // namespace

TEST_CASE("the normal operator is the sum over samples") {
  using Complex = Kokkos::complex<double>;
  const auto plane = Points<2>::random(150);
  for (const auto& shape : {std::array{9, 14}, std::array{1, 6}, std::array{7, 7}})
    check<Complex, 2>(plane.device(), plane, shape, {.slices = 2, .tolerance = 1e-10});
  const auto space = Points<3>::random(90);
  check<double, 3>(space.device(), space, {4, 7, 6}, {.slices = 2, .tolerance = 1e-8});
  const auto polar = rays(11, 12);
  check<float, 2>(polar, Points<2>::polar(polar), {12, 12}, {.slices = 3, .tolerance = 1e-5});
}

TEST_CASE("the sign of the exponent, weights of one and no points") {
  using Complex = Kokkos::complex<double>;
  const auto points = Points<2>::random(40);
  auto negative = points;
  for (auto& point : negative.list)
    for (double& x : point)
      x = -x;
  const std::array<int, 2> shape{5, 8};
  const Values image = random_values(40, 3);
  const ToeplitzNormal<Space, 2, Complex> plan(Space(), points.device(), {}, shape,
                                               {.tolerance = 1e-9, .sign = -1});
  CHECK(relative_error(execute(plan, image, 1, shape),
                       normal<2>(negative, std::vector<double>(40, 1.), image, shape)) <= 1e-9);
  const ToeplitzNormal<Space, 2, Complex> none(Space(), Points<2>{}.device(), {}, shape);
  CHECK(execute(none, image, 1, shape) == Values(40));
  CHECK(execute(plan, {}, 0, shape).empty());
}

TEST_CASE("what the normal operator refuses") {
  using Normal = ToeplitzNormal<Space, 2, double>;
  const Space space;
  const auto points = Points<2>::random(4).device();
  const auto refuses = [](const char* message, const auto& call) {
    try {
      call();
      FAIL("accepted");
    } catch (const Bracewell::Error& error) {
      CHECK(std::string(error.what()) == message);
    }
  };
  refuses("Bracewell::ToeplitzNormal: weights: expected [4], found [3]", [&] {
    Normal(space, points, View<double*>("weights", 3), {5, 5});
  });
  refuses("Bracewell::ToeplitzNormal: shape: expected from 1 to 16384, found 16385", [&] {
    Normal(space, points, {}, {5, 16385});
  });
  refuses("Bracewell::ToeplitzNormal: options.slices: expected at least 1, found 0", [&] {
    Normal(space, points, {}, {5, 5}, {.slices = 0});
  });
  refuses("Bracewell::ToeplitzNormal: options.sign: expected 1 or -1, found 0", [&] {
    Normal(space, points, {}, {5, 5}, {.sign = 0});
  });
  const Normal plan(space, points, {}, {5, 6});
  const View<double***> images("images", 3, 5, 6), wrong("wrong", 3, 6, 5);
  refuses("Bracewell::ToeplitzNormal::execute: images: expected [3, 5, 6], found [3, 6, 5]",
          [&] { plan.execute(space, wrong, images); });
  refuses("Bracewell::ToeplitzNormal::execute: results: expected [3, 5, 6], found [3, 6, 5]",
          [&] { plan.execute(space, images, wrong); });
  const auto part = [&](int first) {
    return Kokkos::subview(images, std::pair(first, first + 2), Kokkos::ALL, Kokkos::ALL);
  };
  refuses("Bracewell::ToeplitzNormal::execute: results: expected memory of its own, found memory shared with "
          "images",
          [&] { plan.execute(space, part(0), part(1)); });
  const Test::Function executes{"ToeplitzNormal::", [&](const Space& s) { plan.execute(s, images, images); },
                                true};
  Test::check_labels(executes);
  Test::check_instances(executes);
}
