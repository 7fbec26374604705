// Windows of taps on half spectra: gather and scatter are transposes, the gradient is the derivative,
// positions beyond the box fold.

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/detail/stencil.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <limits>
#include <vector>

using namespace Bracewell;
using Impl::Mates;

namespace {

using Complex = Kokkos::complex<double>;

double number(std::size_t i) { return std::sin(1. + 12.9898 * double(i)); }

std::vector<Complex> spectrum(std::size_t elements, std::size_t seed) {
  std::vector<Complex> result(elements);
  for (std::size_t i = 0; i < elements; ++i)
    result[i] = Complex(number(2 * i + seed), number(2 * i + 1 + seed));
  return result;
}

double dot(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += a[i].real() * b[i].real() + a[i].imag() * b[i].imag();
  return sum;
}

/// Positions all over the box and its edges, on and off the grid.
template <int Dim, class Visit>
void for_each_position(const HalfSpectrumLayout<Dim>& layout, const Visit& visit) {
  for (std::size_t i = 0; i < 400; ++i) {
    double q[Dim];
    for (int d = 0; d < Dim; ++d) {
      q[d] = 0.5 * layout.size[d] * number(7 * i + d);
      if (i % 5 == 0)
        q[d] = std::rint(q[d]);
      if (i % 7 == std::size_t(d))
        q[d] = i % 2 ? -0.5 * layout.size[d] : 0.5 * layout.size[d];
      if (i % 11 == std::size_t(d))
        q[d] = i % 2 ? 0. : -0.;
    }
    visit(q);
  }
}

/// Adds numbers to neighbours in memory.
struct AddRun {
  template <std::size_t Count>
  KOKKOS_FUNCTION void operator()(Complex* address, const Complex (&run)[Count]) const {
    for (const Complex& one : run)
      *address++ += one;
  }
};

template <class Kernel, int Dim, Mates mates>
void check_transposes(const HalfSpectrumLayout<Dim>& layout) {
  const auto source = spectrum(layout.elements(), 3);
  double worst = 0;
  for_each_position(layout, [&](double(&q)[Dim]) {
    Impl::Stencil<Kernel, Dim, mates, double> stencil{};
    REQUIRE(stencil.place(layout, q, true));
    const Complex value(0.3, -1.7);
    std::vector<Complex> scattered(layout.elements());
    stencil.scatter(scattered.data(), value, AddRun());
    const Complex gathered = stencil.gather(source.data());
    Complex gradient[Dim];
    worst = std::max(worst, Kokkos::abs(stencil.gather(source.data(), gradient) - gathered));
    worst = std::max(worst, std::abs(gathered.real() * value.real() + gathered.imag() * value.imag() -
                                     dot(scattered, source)));
  });
  CHECK(worst < 1e-13);
}

template <class Kernel, int Dim>
void check_layouts(const std::vector<HalfSpectrumLayout<Dim>>& layouts) {
  for (const auto& layout : layouts) {
    check_transposes<Kernel, Dim, Mates::Single>(layout);
    check_transposes<Kernel, Dim, Mates::Both>(layout);
  }
}

} // namespace

TEMPLATE_TEST_CASE("scatter is the transpose of gather", "", Linear, CatmullRom, CubicBSpline) {
  check_layouts<TestType, 2>({{4, 4}, {5, 4}, {8, 7}, {13, 20}});
  check_layouts<TestType, 3>({{4, 4, 4}, {5, 4, 6}, {12, 9, 7}});
}

TEMPLATE_TEST_CASE("the gradient is the derivative with respect to the position", "", Linear, CatmullRom,
                   CubicBSpline) {
  const HalfSpectrumLayout<3> layout{9, 8, 7};
  const auto source = spectrum(layout.elements(), 5);
  std::vector<double> weights(layout.elements());
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = number(i);
  const double step = 1e-6;
  for (int i = 0; i < 200; ++i) {
    const double q[3] = {4.4 * number(3 * i), 3.9 * number(3 * i + 1), 3.4 * number(3 * i + 2)};
    Impl::Stencil<TestType, 3, Mates::Both, double> stencil{};
    const auto at = [&](int d, double distance, bool absolute, Complex& value, double& weight) {
      double moved[3] = {q[0], q[1], q[2]};
      moved[d] += distance;
      stencil.place(layout, moved, true);
      value = stencil.gather(source.data());
      if (absolute)
        stencil.make_absolute();
      weight = stencil.gather(weights.data());
    };
    for (const bool absolute : {false, true})
      for (int d = 0; d < 3; ++d) {
        Complex ahead, behind, gradient[3];
        double weight_ahead, weight_behind, weight_gradient[3];
        at(d, step, absolute, ahead, weight_ahead);
        at(d, -step, absolute, behind, weight_behind);
        double here[3] = {q[0], q[1], q[2]};
        stencil.place(layout, here, true);
        stencil.gather(source.data(), gradient);
        stencil.gather(weights.data(), weight_gradient, absolute);
        CHECK(Kokkos::abs(gradient[d] - (ahead - behind) / (2 * step)) < 1e-7);
        CHECK(std::abs(weight_gradient[d] - (weight_ahead - weight_behind) / (2 * step)) < 1e-7);
      }
  }
}

TEMPLATE_TEST_CASE("positions any number of periods away sample the same", "", Linear, CatmullRom,
                   CubicBSpline) {
  const HalfSpectrumLayout<2> layout{9, 8};
  auto source = spectrum(layout.elements(), 5);
  Impl::Stencil<TestType, 2, Mates::Single, double> stencil{};
  for (const int periods : {-1000000, -3, -1, 1, 2, 1000}) {
    double q[2] = {1.25, -2.75}, far[2] = {1.25 + 9. * periods, -2.75 - 8. * periods};
    REQUIRE(stencil.place(layout, q, true));
    const Complex near_value = stencil.gather(source.data());
    REQUIRE(stencil.place(layout, far, true));
    CHECK(Kokkos::abs(stencil.gather(source.data()) - near_value) < 1e-9);
  }
}

TEMPLATE_TEST_CASE("positions that cannot be placed are refused", "", float, double) {
  using T = TestType;
  const HalfSpectrumLayout<2> layout{9, 7};
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (const T wrong : {inf, -inf, nan})
    for (int d = 0; d < 2; ++d) {
      T q[2] = {1, 1};
      q[d] = wrong;
      Impl::Stencil<CatmullRom, 2, Mates::Single, T> stencil{};
      CHECK_FALSE(stencil.place(layout, q, true));
    }
  // However large: refused, or a window whose taps lie in the box.
  for (T large = 1; large < std::numeric_limits<T>::max() / 8; large *= 7) {
    T q[2] = {large, -large};
    Impl::Stencil<CatmullRom, 2, Mates::Single, T> stencil{};
    if (stencil.place(layout, q, true))
      for (int d = 0; d < 2; ++d) {
        CHECK(stencil.window.first[d] >= -layout.size[d]);
        CHECK(stencil.window.first[d] + CatmullRom::width - 1 <= layout.size[d]);
      }
  }
}
