// Transforms of every kind against direct sums, in float and double, even and odd sizes, batched.

#include "../deep_copy.hpp"

#include <bracewell/fft/plan.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <complex>
#include <random>
#include <thread>
#include <vector>

using Space = Kokkos::DefaultExecutionSpace;
using Bracewell::FFT;
using Bracewell::FFTDirection;

namespace {

template <class Value>
using Values = Kokkos::View<Value*, Kokkos::LayoutRight, Space>;

template <class Value, std::size_t Dim>
auto shaped(const Values<Value>& flat, std::int64_t batch, const std::array<int, Dim>& shape) {
  if constexpr (Dim == 1)
    return Kokkos::View<Value**, Kokkos::LayoutRight, Space>(flat.data(), batch, shape[0]);
  else if constexpr (Dim == 2)
    return Kokkos::View<Value***, Kokkos::LayoutRight, Space>(flat.data(), batch, shape[0], shape[1]);
  else
    return Kokkos::View<Value****, Kokkos::LayoutRight, Space>(flat.data(), batch, shape[0], shape[1],
                                                               shape[2]);
}

template <class Value>
Values<Value> random_values(std::size_t count, int seed) {
  Values<Value> values("values", count);
  const auto host = Kokkos::create_mirror_view(values);
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (std::size_t i = 0; i < count; ++i)
    if constexpr (std::is_floating_point_v<Value>)
      host(i) = Value(uniform(engine));
    else
      host(i) = Value(uniform(engine), uniform(engine));
  Test::deep_copy(values, host);
  return values;
}

template <class Value>
std::vector<std::complex<double>> on_host(const Values<Value>& values) {
  const auto host = Test::on_host(values);
  std::vector<std::complex<double>> result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Kokkos::complex<double> value(host(i));
    result.emplace_back(value.real(), value.imag());
  }
  return result;
}

/// Sum over x of f(x) exp(sign 2 pi i k x / n) of a full array, at one frequency.
template <std::size_t Dim>
std::complex<double> direct_sum(const std::complex<double>* f, const std::array<int, Dim>& shape,
                                const std::array<int, Dim>& k, int sign) {
  std::int64_t size = 1;
  for (const int n : shape)
    size *= n;
  long double real = 0, imaginary = 0; // so that the reference's own rounding does not count
  for (std::int64_t i = 0; i < size; ++i) {
    long double phase = 0;
    std::int64_t rest = i;
    for (int d = int(Dim) - 1; d >= 0; --d) {
      phase += static_cast<long double>(rest % shape[d] * k[d] % shape[d]) / shape[d];
      rest /= shape[d];
    }
    const auto turns = double(phase - std::round(phase));
    const auto factor = std::polar(1.0, sign * 2 * Kokkos::numbers::pi * turns);
    real += f[i].real() * factor.real() - f[i].imag() * factor.imag();
    imaginary += f[i].real() * factor.imag() + f[i].imag() * factor.real();
  }
  return {double(real), double(imaginary)};
}

/// The full spectrum from its stored half.
template <std::size_t Dim>
std::vector<std::complex<double>> complete(const std::vector<std::complex<double>>& half, std::int64_t batch,
                                           const std::array<int, Dim>& shape) {
  std::int64_t size = 1;
  for (const int n : shape)
    size *= n;
  const int w = shape[Dim - 1], columns = w / 2 + 1;
  std::vector<std::complex<double>> full(batch * size);
  for (std::int64_t i = 0; i < batch * size; ++i) {
    const int x = int(i % w);
    if (x < columns) {
      full[i] = half[i / w * columns + x];
      continue;
    }
    std::int64_t rest = i / w, mate = 0, stride = columns;
    for (int d = int(Dim) - 2; d >= 0; --d) {
      mate += (shape[d] - rest % shape[d]) % shape[d] * stride;
      rest /= shape[d];
      stride *= shape[d];
    }
    full[i] = std::conj(half[rest * stride + mate + w - x]);
  }
  return full;
}

/// Relative L2 difference from direct sums at some of the output's elements.
template <class Problem, std::size_t Dim>
double difference(const std::vector<std::complex<double>>& full_input,
                  const std::vector<std::complex<double>>& output, const std::array<int, Dim>& shape,
                  std::int64_t batch, int sign) {
  std::array<int, Dim> stored = shape;
  if (Problem::from_real)
    stored[Dim - 1] = shape[Dim - 1] / 2 + 1;
  const std::int64_t elements = std::int64_t(output.size()) / batch,
                     size = std::int64_t(full_input.size()) / batch;
  const std::int64_t step = elements <= 100 ? 1 : elements / 10 | 1;
  double error = 0, norm = 0;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t e = 0; e < elements; e += step) {
      std::array<int, Dim> k;
      std::int64_t rest = e;
      for (int d = int(Dim) - 1; d >= 0; --d) {
        k[d] = int(rest % stored[d]);
        rest /= stored[d];
      }
      const auto expected = direct_sum(full_input.data() + b * size, shape, k, sign);
      error += std::norm(output[b * elements + e] - expected);
      norm += std::norm(expected);
    }
  return std::sqrt(error / norm);
}

template <class T>
constexpr double tolerance = std::is_same_v<T, float> ? 4e-7 : 1e-15;

template <class Input, class Output, std::size_t Dim>
void check(const std::array<int, Dim>& shape, std::int64_t batch, const Bracewell::FFTOptions& options = {},
           int offset = 0, bool padded = false) {
  using Problem = Bracewell::Impl::FFTProblem<int(Dim), Input, Output>;
  CAPTURE(Dim, shape[0], shape[Dim - 1], batch, offset, sizeof(Input), sizeof(Output));
  std::array<int, Dim> in_shape = shape, out_shape = shape;
  if (Problem::to_real)
    in_shape[Dim - 1] = shape[Dim - 1] / 2 + 1;
  if (Problem::from_real)
    out_shape[Dim - 1] = shape[Dim - 1] / 2 + 1;
  std::int64_t in_size = batch, out_size = batch;
  for (const int n : in_shape)
    in_size *= n;
  for (const int n : out_shape)
    out_size *= n;

  const Space space;
  const auto in_values = random_values<Input>(in_size + offset, 1);
  const Values<Output> out_values("output", out_size + offset);
  const Values<Input> in(in_values.data() + offset, in_size);
  const Values<Output> out(out_values.data() + offset, out_size);
  if constexpr (Problem::to_real) { // a Hermitian input: the transform of real values
    const FFT<Space, int(Dim), Output, Input> forward(space, shape, batch);
    const auto real = random_values<Output>(out_size, 2);
    forward.execute(space, shaped(real, batch, shape), shaped(in, batch, in_shape));
  }
  if (padded)
    Test::deep_copy(Kokkos::subview(in, std::pair(in_size / 4, 3 * in_size / 4)), Input(0));
  const auto before = on_host(in);

  const FFT<Space, int(Dim), Input, Output> plan(space, shape, batch, options);
  plan.execute(space, shaped(in, batch, in_shape), shaped(out, batch, out_shape));
  const auto after = on_host(out);
  const int sign = Problem::from_real                                                ? -1
                   : Problem::to_real || options.direction == FFTDirection::Backward ? 1
                                                                                     : -1;
  const auto full = Problem::to_real ? complete(before, batch, shape) : before;
  using T = typename Problem::Real;
  CHECK(difference<Problem>(full, after, shape, batch, sign) < tolerance<T> * 3);
  if (!Problem::to_real)
    CHECK(on_host(in) == before);
}

template <class T>
using C = Kokkos::complex<T>;

template <class T, std::size_t Dim>
void check_kinds(const std::array<int, Dim>& shape, std::int64_t batch,
                 const Bracewell::FFTOptions& options = {}, int offset = 0) {
  check<T, C<T>>(shape, batch, options, offset);
  check<C<T>, T>(shape, batch, options, offset);
  check<C<T>, C<T>>(shape, batch, options, offset);
}

} // namespace

TEMPLATE_TEST_CASE("transforms equal direct sums", "[fft]", float, double) {
  using T = TestType;
  const int lengths[] = {1, 2, 3, 8, 15, 64, 129};
  for (const int n : lengths)
    for (int batch = 1; batch <= 5; batch += 4)
      check_kinds<T>(std::array<int, 1>{n}, batch);
  const std::array<int, 2> images[] = {{1, 1}, {4, 6}, {5, 7}, {9, 4}, {1, 5}, {33, 64}};
  for (const auto& shape : images)
    for (int batch = 1; batch <= 3; batch += 2)
      check_kinds<T>(shape, batch);
  const std::array<int, 3> volumes[] = {{1, 1, 1}, {4, 4, 4}, {3, 5, 7}, {5, 4, 6}, {8, 1, 3}};
  for (const auto& shape : volumes)
    for (int batch = 1; batch <= 3; batch += 2)
      check_kinds<T>(shape, batch);
  check<C<T>, C<T>>(std::array<int, 3>{3, 5, 7}, 2, {.direction = FFTDirection::Backward});
}

TEMPLATE_TEST_CASE("arrays beyond the cache equal direct sums", "[fft]", float, double) {
  using T = TestType;
  check_kinds<T>(std::array<int, 2>{270, 257}, 1);
  check_kinds<T>(std::array<int, 3>{37, 40, 45}, 1);
  check_kinds<T>(std::array<int, 3>{21, 260, 131}, 1);
  check_kinds<T>(std::array<int, 3>{37, 41, 45}, 2);
}

TEMPLATE_TEST_CASE("zeros around a padded volume", "[fft]", float, double) {
  using T = TestType;
  check<T, C<T>>(std::array<int, 3>{38, 40, 45}, 1, {}, 0, true);
  check<C<T>, C<T>>(std::array<int, 3>{38, 40, 45}, 1, {}, 0, true);
  check<T, C<T>>(std::array<int, 1>{24}, 8, {}, 0, true);
}

TEMPLATE_TEST_CASE("measured plans and unaligned arrays", "[fft]", float, double) {
  using T = TestType;
  check_kinds<T>(std::array<int, 2>{15, 21}, 3, {.measure = true});
  check_kinds<T>(std::array<int, 3>{40, 45, 37}, 1, {.measure = true});
  if constexpr (Bracewell::Impl::is_host<Space>)
    for (int offset = 1; offset <= 3; ++offset)
      check_kinds<T>(std::array<int, 2>{15, 21}, 5, {}, offset);
}

TEST_CASE("in place, with a workspace of the caller, moved, from two threads", "[fft]") {
  const Space space;
  const std::array shape{12, 35};
  using Plan = FFT<Space, 2, C<double>, C<double>>;
  const auto before = random_values<C<double>>(4 * 12 * 35, 3);

  Plan first(space, shape, 4, {.external_workspace = true});
  Plan forward = std::move(first);
  const Plan backward(space, shape, 4, {.direction = FFTDirection::Backward});
  CHECK(forward.memory_bytes() == 0);
  CHECK(Plan::bytes_needed(space, shape, 4, {.external_workspace = true}) == 0);
  CHECK(backward.memory_bytes() == backward.workspace_bytes());
  CHECK(Plan::bytes_needed(space, shape, 4, {.direction = FFTDirection::Backward}) ==
        backward.memory_bytes());
  const auto round_trip = [&](const Values<C<double>>& values) {
    Test::deep_copy(space, values, before);
    const auto images = shaped(values, 4, shape);
    const Kokkos::View<char*, Space> workspace("workspace", forward.workspace_bytes());
    forward.execute(space, images, images, workspace);
    backward.execute(space, images, images);
  };
  const auto error = [&](const Values<C<double>>& values) {
    const auto host = on_host(values), expected = on_host(before);
    double largest = 0;
    for (std::size_t i = 0; i < host.size(); ++i)
      largest = std::max(largest, std::abs(host[i] / (12.0 * 35.0) - expected[i]));
    return largest;
  };

  const Values<C<double>> one("one", before.size()), other("other", before.size());
  round_trip(one);
  CHECK(error(one) < 1e-15);

  const std::array<Values<C<double>>, 2> arrays{one, other};
  std::vector<std::thread> threads;
  for (const auto& array : arrays)
    threads.emplace_back([&, array] {
      for (int repeat = 0; repeat < 20; ++repeat)
        forward.execute(space, shaped(before, 4, shape), shaped(array, 4, shape),
                        Kokkos::View<char*, Space>("workspace", forward.workspace_bytes()));
    });
  for (auto& thread : threads)
    thread.join();
  backward.execute(space, shaped(one, 4, shape), shaped(one, 4, shape));
  backward.execute(space, shaped(other, 4, shape), shaped(other, 4, shape));
  CHECK(error(one) < 1e-15);
  CHECK(error(other) < 1e-15);
}

TEST_CASE("wrong arguments of a plan are named", "[fft]") {
  const Space space;
  using Plan = FFT<Space, 2, float, C<float>>;
  CHECK_THROWS_AS(Plan(space, {0, 8}), Bracewell::Error);
  CHECK_THROWS_AS(Plan(space, {8, 8}, -1), Bracewell::Error);
  const Plan plan(space, {8, 7}, 2);
  const Kokkos::View<float***, Kokkos::LayoutRight, Space> in("in", 2, 8, 7), narrow("narrow", 2, 8, 6);
  const Kokkos::View<C<float>***, Kokkos::LayoutRight, Space> out("out", 2, 8, 4), wide("wide", 2, 8, 5);
  CHECK_THROWS_WITH(plan.execute(space, narrow, out),
                    "Bracewell::FFT::execute: input: expected [batches of 2, 8, 7], found [2, 8, 6]");
  CHECK_THROWS_AS(plan.execute(space, in, wide), Bracewell::Error);
  const Kokkos::View<float***, Kokkos::LayoutRight, Space> shared(reinterpret_cast<float*>(out.data()), 2, 8,
                                                                  7);
  CHECK_THROWS_WITH(
      plan.execute(space, shared, out),
      "Bracewell::FFT::execute: output: expected memory of its own, found memory shared with input");
  const Kokkos::View<char*, Space> bytes(reinterpret_cast<char*>(out.data()), 64);
  if (plan.workspace_bytes() == 0)
    CHECK_THROWS_WITH(
        plan.execute(space, in, out, bytes),
        "Bracewell::FFT::execute: workspace: expected memory of its own, found memory shared with "
        "output");
  plan.execute(space, in, Bracewell::HalfSpectrum{out, 7});
}

TEST_CASE("a plan of no arrays does nothing", "[fft]") {
  const Space space;
  const FFT<Space, 2, float, C<float>> plan(space, {8, 7}, 0);
  CHECK(plan.workspace_bytes() == 0);
  const Kokkos::View<float***, Kokkos::LayoutRight, Space> in("in", 0, 8, 7), one("one", 1, 8, 7);
  const Kokkos::View<C<float>***, Kokkos::LayoutRight, Space> out("out", 0, 8, 4);
  CHECK_NOTHROW(plan.execute(space, in, out));
  CHECK_THROWS_AS(plan.execute(space, one, out), Bracewell::Error);
}
