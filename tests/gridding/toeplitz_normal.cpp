// SPDX-License-Identifier: MIT
// The normal operator against direct sums over samples.
#include "../deep_copy.hpp"
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
  Test::deep_copy(view, host);
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
  Test::deep_copy(from, host);
  plan.execute(Space(), from, to);
  const auto back = Test::on_host(to);
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
  if (!Bracewell::Impl::is_host<Space>) { // by lines on the chip
    const auto few = Points<2>::random(40);
    check<double, 2>(few.device(), few, {260, 529}, {.slices = 3, .tolerance = 1e-11});
    check<float, 2>(few.device(), few, {513, 257}, {.slices = 4, .tolerance = 1e-5});
    check<Complex, 2>(few.device(), few, {300, 301}, {.slices = 4, .tolerance = 1e-11});
  }
}

namespace {

struct OneLane {
  std::int64_t team;
  KOKKOS_FUNCTION int rank() const { return 0; }
  KOKKOS_FUNCTION std::int64_t number() const { return team; }
  KOKKOS_FUNCTION void barrier() const {}
};

/// sum_y x(y, :) exp(-2 pi i k y / n) for all k, n rows of `columns` numbers.
Values transform_columns(const Values& x, int n, int columns) {
  Values result(x.size());
  for (int k = 0; k < n; ++k)
    for (int y = 0; y < n; ++y) {
      const auto turn = std::polar(1., -2 * std::numbers::pi * (k * y % n) / n);
      for (int c = 0; c < columns; ++c)
        result[static_cast<std::size_t>(k * columns + c)] +=
            turn * x[static_cast<std::size_t>(y * columns + c)];
    }
  return result;
}
Values transposed(const Values& x, int rows, int columns) {
  Values result(x.size());
  for (int y = 0; y < rows; ++y)
    for (int c = 0; c < columns; ++c)
      result[static_cast<std::size_t>(c * rows + y)] = x[static_cast<std::size_t>(y * columns + c)];
  return result;
}

/// Random numbers of which the number at -d is the conjugate of that at d, or which are even.
Values random_response(int rows, int columns, bool even) {
  Values response = random_values(static_cast<std::size_t>(rows * columns), 9);
  const Values other = response;
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x) {
      const auto mirrored =
          other[static_cast<std::size_t>((rows - y) % rows * columns + (columns - x) % columns)];
      auto& value = response[static_cast<std::size_t>(y * columns + x)];
      value = even ? value.real() + mirrored.real() : value + std::conj(mirrored);
    }
  return response;
}

/// What the kernels for GPUs do, by one lane on a host, against the convolution written out.
template <class Value, class RowSteps, class ColumnSteps, int columns>
void check_lines(int height, int width, std::int64_t slices) {
  using namespace Bracewell::Impl;
  using T = typename RealOf<Value>::type;
  using Number = PlainComplex<T>;
  using Team = ToeplitzColumnTeam<T, ColumnSteps, columns>;
  constexpr bool real = std::is_same_v<Value, T>;
  constexpr int nx = RowSteps::n, ny = ColumnSteps::n;
  CAPTURE(sizeof(T), real, nx, ny, height, width, slices);
  const Values response = random_response(ny, nx, real);
  const Values transform =
      transposed(transform_columns(transposed(transform_columns(response, ny, nx), ny, nx), nx, ny), nx, ny);
  std::vector<Kokkos::complex<T>> rounded;
  for (const auto& value : transform)
    rounded.emplace_back(T(value.real()), T(value.imag()));
  std::vector<T> factors(transform.size());
  for_each_row(Kokkos::DefaultHostExecutionSpace(), "test", nx,
               OrderedTransferFunction<T>{LineOrder::of(RowSteps()), LineOrder::of(ColumnSteps()), nx, ny,
                                          rounded.data(), factors.data(), real, T(1. / nx / ny)});
  Kokkos::fence();

  const std::int64_t images = real ? (slices + 1) / 2 : slices, pixels = height * width;
  Values exact = random_values(static_cast<std::size_t>(slices * pixels), 10);
  std::vector<Value> values;
  for (auto& value : exact) {
    if constexpr (real)
      values.push_back(T((value = value.real()).real()));
    else
      values.emplace_back(T(value.real()), T(value.imag()));
  }
  const ToeplitzBlocks blocks{nx, columns};
  std::vector<Number> spectra(static_cast<std::size_t>(images * blocks.size(height)), {NAN, NAN}),
      lines(std::max<std::size_t>(Team::bytes, RowSteps::template bytes<T>) / sizeof(Number));
  const auto row_roots = StepPasses<T, RowSteps>::write_roots(),
             column_roots = StepPasses<T, ColumnSteps>::write_roots();
  for (std::int64_t team = 0; team < images * height; ++team)
    ToeplitzRows<Value, RowSteps, false>{values.data(), spectra.data(), slices,          height,
                                         width,         blocks,         row_roots.data()}
        .template run<1>(OneLane{team}, lines.data());
  for (std::int64_t team = 0; team < images * nx / columns; ++team)
    ToeplitzColumns<T, ColumnSteps, columns>{spectra.data(), factors.data(), images,
                                             height,         blocks,         column_roots.data()}
        .template run<1>(OneLane{team}, lines.data());
  for (std::int64_t team = 0; team < images * height; ++team)
    ToeplitzRows<Value, RowSteps, true>{values.data(), spectra.data(), slices,          height,
                                        width,         blocks,         row_roots.data()}
        .template run<1>(OneLane{team}, lines.data());

  Values result, expected(exact.size());
  for (const Value& value : values)
    if constexpr (real)
      result.emplace_back(value);
    else
      result.emplace_back(value.real(), value.imag());
  for (std::int64_t s = 0; s < slices; ++s)
    for (int y = 0; y < height; ++y)
      for (int v = 0; v < height; ++v)
        for (int x = 0; x < width; ++x)
          for (int u = 0; u < width; ++u)
            expected[static_cast<std::size_t>(s * pixels + y * width + x)] +=
                response[static_cast<std::size_t>((y - v + ny) % ny * nx + (x - u + nx) % nx)] *
                exact[static_cast<std::size_t>(s * pixels + v * width + u)];
  CHECK(relative_error(result, expected) < (sizeof(T) == 4 ? 5e-7 : 1e-15 * 5));
}

} // namespace

TEST_CASE("rows, columns and rows back are one convolution") {
  using Bracewell::Impl::LineSteps;
  using Complex = Kokkos::complex<double>;
  using Short = LineSteps<4, 2, 8>;
  check_lines<double, Short, LineSteps<4, 4, 8>, 2>(13, 32, 3);
  check_lines<float, LineSteps<4, 6, 8>, LineSteps<2, 2, 16>, 4>(32, 17, 2);
  check_lines<float, Short, Short, 2>(1, 9, 1);
  check_lines<float, Short, Short, 1>(7, 6, 3);
  check_lines<Complex, LineSteps<4, 4, 8>, Short, 1>(21, 15, 2);
}

TEST_CASE("the lines of normal operators are those that a team can have") {
  using Bracewell::Impl::choose_toeplitz_lines;
  const auto chosen = [](const auto& sizes, int rows, int columns, int columns_of_team) {
    CHECK(sizes.rows == rows);
    CHECK(sizes.columns == columns);
    CHECK((!sizes || sizes.columns_of_team == columns_of_team));
  };
  const std::size_t chip = 232448;
  chosen(choose_toeplitz_lines<float>({2048, 2048}, chip), 4096, 4096, 4);
  chosen(choose_toeplitz_lines<float>({1448, 257}, chip), 1024, 3072, 4);
  chosen(choose_toeplitz_lines<double>({257, 4096}, chip), 8192, 1024, 2);
  chosen(choose_toeplitz_lines<float>({4096, 2049}, chip), 6144, 8192, 2);
  chosen(choose_toeplitz_lines<double>({4096, 2049}, chip), 6144, 8192, 1);
  chosen(choose_toeplitz_lines<float>({256, 2048}, chip), 0, 0, 0);
  chosen(choose_toeplitz_lines<float>({4097, 2048}, chip), 0, 0, 0);
  chosen(choose_toeplitz_lines<double>({4096, 2048}, 100000), 0, 0, 0);
  chosen(choose_toeplitz_lines<float>({2048, 2048}, 0), 0, 0, 0);
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
