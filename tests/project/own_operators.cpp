// Operators made of building blocks, and kernels of one's own in the library's operators.

#include "../deep_copy.hpp"
#include "kernel_definitions.hpp"

#include <bracewell/project/backproject.hpp>
#include <bracewell/project/prepare_map.hpp>
#include <bracewell/project/project.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <complex>
#include <random>
#include <vector>

namespace {

using namespace Test;
using Test::definition;
using Space = Kokkos::DefaultHostExecutionSpace;
using Device = Kokkos::DefaultExecutionSpace;
template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Kokkos::HostSpace>;

/// The same View where there is no other memory.
template <class AnyView>
auto on_device(const AnyView& view) {
  return Test::on_device(view);
}

/// A period of a raised cosine, of any width.
template <int taps>
struct Hann {
  static constexpr int width = taps;
  template <class T>
  KOKKOS_INLINE_FUNCTION static void weights(T f, T (&w)[width]) {
    for (int i = 0; i < taps; ++i)
      w[i] = (1 + Kokkos::cos(angle(f, i))) / taps;
  }
  template <class T>
  KOKKOS_INLINE_FUNCTION static void derivatives(T f, T (&d)[width]) {
    for (int i = 0; i < taps; ++i)
      d[i] = -Kokkos::sin(angle(f, i)) * angle(T(0), taps / 2 - 2) / taps;
  }
  template <class T>
  KOKKOS_INLINE_FUNCTION static T angle(T f, int i) {
    return 2 * Kokkos::numbers::pi_v<T> * (f + T(taps / 2 - 1 - i)) / taps;
  }
};
template <int taps>
double definition(Hann<taps>, double x) {
  return 2 * std::abs(x) < taps ? (1 + std::cos(2 * M_PI * x / taps)) / taps : 0;
}

template <class T>
struct Problem {
  using Complex = Kokkos::complex<T>;
  static constexpr int poses = 3;
  int N, n;
  double oversampling;
  View<Complex****> volume;
  View<Complex****> images, cotangent;
  View<T****> matrices;
  View<T***> shifts;

  Problem(int N_, int n_)
      : N(N_), n(n_), oversampling(double(N) / n), volume("volume", 1, N, N, N / 2 + 1),
        images("images", 1, poses, n, n / 2 + 1), cotangent("cotangent", 1, poses, n, n / 2 + 1),
        matrices("matrices", 1, poses, 3, 3), shifts("shifts", 1, poses, 2) {
    std::mt19937 engine(11);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (const auto& view : {volume, images, cotangent})
      for (std::size_t i = 0; i < view.size(); ++i)
        view.data()[i] = Complex(T(uniform(engine)), T(uniform(engine)));
    for (std::size_t i = 0; i < matrices.size(); ++i)
      matrices.data()[i] = T(0.55 * uniform(engine));
    for (std::size_t i = 0; i < shifts.size(); ++i)
      shifts.data()[i] = T(3 * uniform(engine));
  }

  Poses<T, Kokkos::HostSpace> pose_arrays() const { return {.matrices = matrices, .shifts = shifts}; }
  HalfSpectrumLayout<2> box() const { return {{n, n}}; }
};

template <class Kernel, class T>
void check_page(int N, int n) {
  CAPTURE(Kernel::width, sizeof(T), N, n);
  const Device space;
  using Complex = Kokkos::complex<T>;
  const Problem<T> p(N, n);
  using Images = Page::View<Complex**, Device>;
  const auto volume = on_device(p.volume);
  const auto images = on_device(p.images), cotangent = on_device(p.cotangent);
  const auto all_matrices = on_device(p.matrices);
  const auto all_shifts = on_device(p.shifts);
  const auto flat = [&](const auto& view) { return Images(view.data(), p.poses, view.size() / p.poses); };
  const Page::View<T***, Device> matrices(all_matrices.data(), p.poses, 3, 3);
  const Page::View<T**, Device> shifts(all_shifts.data(), p.poses, 2);
  const HalfSpectrum<T, 3> access(volume.data(), {{N, N, N}});
  const T oversampling = T(p.oversampling);
  const ProjectionOptions options{.oversampling = p.oversampling, .radius = n / 2.};
  const Poses<T, Device::memory_space> poses{.matrices = all_matrices, .shifts = all_shifts};
  const auto near = [](const auto& a, const auto& b, double tolerance) {
    const auto host_a = Test::on_host(a);
    const auto host_b = Test::on_host(b);
    double squares = 0, norm = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
      squares += std::pow(Kokkos::abs(host_a.data()[i] - host_b.data()[i]), 2);
      norm += std::pow(Kokkos::abs(host_b.data()[i]), 2);
    }
    CHECK(std::sqrt(squares / norm) < tolerance);
  };

  const Page::View<Complex****, Device> expected("expected", 1, p.poses, n, n / 2 + 1),
      own("own", 1, p.poses, n, n / 2 + 1);
  project<Kernel>(space, HalfSpectrum{volume, N}, poses, HalfSpectrum{expected, n}, options);
  Page::project<Kernel, Device, T>(space, access, oversampling, matrices, shifts, p.box(), flat(own));
  near(own, expected, 20 * rounding<T>);

  const Page::View<Complex****, Device> data("data", 1, N, N, N / 2 + 1), sum("sum", 1, N, N, N / 2 + 1);
  backproject<Kernel>(space, HalfSpectrum{images, n}, poses, {.data = HalfSpectrum{data, N}}, options);
  const int copies = Impl::is_host<Device> ? space.concurrency() : 1;
  const Page::View<Complex****, Device> all("copies", copies, N, N, N / 2 + 1);
  Page::backproject<Kernel, Device, T>(space, flat(images), p.box(), matrices, shifts, oversampling,
                                       HalfSpectrum<T, 3>(all.data(), access.layout));
  const auto of_threads = Test::on_host(all);
  const auto total = Kokkos::create_mirror_view(sum);
  Test::deep_copy(total, Complex(0));
  for (int c = 0; c < copies; ++c)
    for (std::size_t i = 0; i < total.size(); ++i)
      total.data()[i] += of_threads.data()[c * total.size() + i];
  near(total, data, 20 * rounding<T>);

  const Page::View<T****, Device> of_matrices("of_matrices", 1, p.poses, 3, 3),
      own_matrices("own", 1, p.poses, 3, 3);
  const Page::View<T***, Device> of_shifts("of_shifts", 1, p.poses, 2), own_shifts("own", 1, p.poses, 2);
  project_gradients<Kernel>(space, HalfSpectrum{volume, N}, poses, HalfSpectrum{cotangent, n},
                            {.matrices = of_matrices, .shifts = of_shifts}, options);
  Page::pose_gradients<Kernel, Device, T>(space, access, oversampling, matrices, shifts, p.box(),
                                          flat(cotangent),
                                          Page::View<T***, Device>(own_matrices.data(), p.poses, 3, 3),
                                          Page::View<T**, Device>(own_shifts.data(), p.poses, 2));
  near(own_matrices, of_matrices, 50 * rounding<T>);
  near(own_shifts, of_shifts, 50 * rounding<T>);
}

} // namespace

TEMPLATE_TEST_CASE("operators made of building blocks equal the library's", "", Linear, CatmullRom, Lanczos) {
  check_page<TestType, float>(24, 24);
  check_page<TestType, float>(27, 25);
  check_page<TestType, double>(17, 13);
}

namespace {

struct GaussianErrors {
  double of_transform; ///< relative, of the blob's transform
  double of_sums; ///< of direct sums over the elements of the map with its roll-off taken off, and over taps
};

/// Projections of a Gaussian blob through a map, its roll-off and a kernel.
template <class Kernel>
GaussianErrors gaussian_errors(int n) {
  const Device space;
  const double sigma = 1.6, x0[3] = {1.3, -2.1, 0.7}; // x, y, z
  const View<double****> map("map", 1, n, n, n);
  for (int z = 0; z < n; ++z)
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n; ++x)
        map(0, z, y, x) = std::exp(-(std::pow(x - n / 2 - x0[0], 2) + std::pow(y - n / 2 - x0[1], 2) +
                                     std::pow(z - n / 2 - x0[2], 2)) /
                                   (2 * sigma * sigma));
  const auto reference = prepare_map<Kernel>(space, on_device(map), 2 * n);
  const double a = 0.7, b = 0.4;
  const double R[3][3] = {{std::cos(a), -std::sin(a) * std::cos(b), std::sin(a) * std::sin(b)},
                          {std::sin(a), std::cos(a) * std::cos(b), -std::cos(a) * std::sin(b)},
                          {0, std::sin(b), std::cos(b)}};
  const View<double****> matrices("matrices", 1, 1, 3, 3);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      matrices(0, 0, i, j) = R[i][j];
  const View<Kokkos::complex<double>****> images("images", 1, 1, n, n / 2 + 1);
  const auto poses = on_device(matrices);
  const auto found = on_device(images);
  project(space, reference, {.matrices = poses}, found, {.radius = n / 2 - 1.});
  Test::deep_copy(images, found);
  // The blob is a product over axes, and so are its sums.
  const int N = 2 * n;
  std::vector<Double> spectrum[3];
  for (int d = 0; d < 3; ++d)
    for (int k = 0; k < N; ++k) {
      Double sum = 0;
      for (int x = -n / 2; x < n - n / 2; ++x)
        sum += std::exp(-std::pow(x - x0[d], 2) / (2 * sigma * sigma)) /
               transform_of_definition<Kernel>(double(x) / N) * std::polar(1., -2 * M_PI * x * k / N);
      spectrum[d].push_back(sum);
    }
  const auto sum_of_taps = [&](int d, double q) {
    Double sum = 0;
    for (int k = int(std::floor(q)) - 8; k <= int(std::floor(q)) + 8; ++k)
      sum += definition(Kernel{}, q - k) * spectrum[d][(k % N + N) % N];
    return sum;
  };
  double squares = 0, norm = 0, squares_of_sums = 0;
  for (int row = 0; row < n; ++row)
    for (int x = 0; x <= n / 2; ++x) {
      const int y = row <= n / 2 ? row : row - n;
      if (x * x + y * y > (n / 2 - 1) * (n / 2 - 1))
        continue;
      double turns = 0, squared = 0;
      Double sums = 1;
      for (int d = 0; d < 3; ++d) {
        const double q = (R[d][0] * x + R[d][1] * y) / n;
        turns += q * x0[d];
        squared += q * q;
        sums *= sum_of_taps(d, N * q);
      }
      squares_of_sums += std::norm(wide(images(0, 0, row, x)) - sums);
      const Double exact = std::pow(2 * M_PI * sigma * sigma, 1.5) *
                           std::exp(-2 * M_PI * M_PI * sigma * sigma * squared) *
                           std::polar(1., -2 * M_PI * turns);
      squares += std::norm(wide(images(0, 0, row, x)) - exact);
      norm += std::norm(exact);
    }
  return {std::sqrt(squares / norm), std::sqrt(squares_of_sums / norm)};
}

} // namespace

TEST_CASE("projections of a Gaussian blob by a kernel of one's own are direct sums") {
  const auto lanczos = gaussian_errors<Lanczos>(24), catmull_rom = gaussian_errors<CatmullRom>(24);
  CHECK(lanczos.of_sums < 1e-5); // its transform is a sum of 96 terms
  CHECK(catmull_rom.of_sums < 1e-9);
  CHECK(lanczos.of_transform < 0.006); // its transform is not zero at v = 1: aliases stay
  CHECK(catmull_rom.of_transform < 0.001);
}

TEST_CASE("kernels of 2 to 16 taps are adjoint, also where windows are as wide as the box") {
  const auto check = []<class Kernel>(Kernel, int N) {
    CAPTURE(Kernel::width, N);
    Problem<double> p(N, N);
    for (std::size_t i = 0; i < p.matrices.size(); ++i) // far out, where positions have to be brought back
      p.matrices.data()[i] *= 3;
    const Space space;
    const ProjectionOptions options{.oversampling = 1.};
    const View<Kokkos::complex<double>****> images("images", 1, p.poses, N, N / 2 + 1),
        gradient("gradient", 1, N, N, N / 2 + 1);
    project<Kernel>(space, HalfSpectrum{p.volume, N}, p.pose_arrays(), HalfSpectrum{images, N}, options);
    project_gradients<Kernel>(space, HalfSpectrum{p.volume, N}, p.pose_arrays(), HalfSpectrum{p.cotangent, N},
                              {.reconstruction = HalfSpectrum{gradient, N}}, options);
    double left = 0, right = 0, size = 0;
    for (std::size_t i = 0; i < images.size(); ++i) {
      const auto a = images.data()[i], b = p.cotangent.data()[i];
      left += a.real() * b.real() + a.imag() * b.imag();
      size += Kokkos::abs(a) * Kokkos::abs(b);
    }
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const auto a = gradient.data()[i], b = p.volume.data()[i];
      right += a.real() * b.real() + a.imag() * b.imag();
    }
    CHECK(std::abs(left - right) < 1e-13 * size);
    // And the value is the definition's.
    Spectrum<double, 3> spectrum({N, N, N}, 0);
    std::copy(p.volume.data(), p.volume.data() + p.volume.size(), spectrum.values.begin());
    const double* const A = p.matrices.data();
    const int k[2] = {2, 1};
    double q[3];
    for (int d = 0; d < 3; ++d)
      q[d] = A[3 * d] * k[0] + A[3 * d + 1] * k[1];
    const double turns = (k[0] * p.shifts(0, 0, 1) + k[1] * p.shifts(0, 0, 0)) / N;
    const Double expected =
        spectrum.template sample<Kernel>(q, Mates::Single) * std::polar(1., -2 * M_PI * turns);
    CHECK(std::abs(wide(images(0, 0, 1, 2)) - expected) < 1e-12);
  };
  check(Linear{}, 6);
  check(Lanczos{}, 6);
  check(Lanczos{}, 7);
  check(Lanczos{}, 12);
  check(Hann<16>{}, 16);
  check(Hann<16>{}, 17);
  check(Hann<8>{}, 9);
}
