#include "../deep_copy.hpp"

#include <bracewell/geometry/symmetrise.hpp>
#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <array>
#include <complex>
#include <random>

using namespace Bracewell;

namespace {

using Space = Kokkos::DefaultExecutionSpace;
template <class Value>
using Volume = Kokkos::View<Value****, Kokkos::LayoutRight, Space>;
using Complex = std::complex<double>;

int frequency(int i, int n) { return i <= n / 2 ? i : i - n; }
int wrapped(int k, int n) { return ((k % n) + n) % n; }

/// A full spectrum with the symmetry of real maps, or (real) of weights.
struct Full {
  int n;
  std::vector<Complex> values;

  Full(int size, int seed, bool real) : n(size), values(static_cast<std::size_t>(n * n * n)) {
    std::mt19937 engine(static_cast<unsigned>(seed));
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (auto& value : values)
      value = {uniform(engine), real ? 0 : uniform(engine)};
    const auto given = values;
    for (int z = 0; z < n; ++z)
      for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x)
          values[at(x, y, z)] = 0.5 * (given[at(x, y, z)] + std::conj(given[at(-x, -y, -z)]));
  }
  std::size_t at(int x, int y, int z) const {
    return static_cast<std::size_t>((wrapped(z, n) * n + wrapped(y, n)) * n + wrapped(x, n));
  }
  template <class Kernel>
  Complex interpolated(const Vector3<double>& q) const {
    Complex sum = 0;
    int first[3];
    for (std::size_t d = 0; d < 3; ++d)
      first[d] = int(std::floor(q[d])) - Kernel::width / 2 + 1;
    for (int z = 0; z < Kernel::width; ++z)
      for (int y = 0; y < Kernel::width; ++y)
        for (int x = 0; x < Kernel::width; ++x)
          sum += Kernel::value(q[0] - first[0] - x) * Kernel::value(q[1] - first[1] - y) *
                 Kernel::value(q[2] - first[2] - z) * values[at(first[0] + x, first[1] + y, first[2] + z)];
    return sum;
  }
};

template <class Value>
Volume<Value> stored(const Full& full) {
  const int n = full.n;
  const Volume<Value> volume("volume", 1, n, n, n / 2 + 1);
  const auto host = Kokkos::create_mirror_view(volume);
  for (int z = 0; z < n; ++z)
    for (int y = 0; y < n; ++y)
      for (int x = 0; x <= n / 2; ++x) {
        const Complex value = full.values[full.at(x, y, z)];
        if constexpr (std::is_floating_point_v<Value>)
          host(0, z, y, x) = Value(value.real());
        else
          host(0, z, y, x) = Value(value.real(), value.imag());
      }
  Test::deep_copy(volume, host);
  return volume;
}

/// Largest difference from the sum over all operators, each interpolated: within a radius where no operator of the lattice
/// meets the rim.
template <class Kernel, class Value>
double error(int n, const std::vector<SymmetryOperator>& operators, double radius, bool real) {
  const Space space;
  const Full full(n, 5, real);
  const auto volume = stored<Value>(full), scratch = Volume<Value>("scratch", 1, n, n, n / 2 + 1);
  const VolumeSymmetry<Space> symmetry(space, operators);
  symmetry.template apply<Kernel>(space, HalfSpectrum{volume, n}, HalfSpectrum{scratch, n}, radius);
  const auto host = Test::on_host(volume);
  double largest = 0;
  for (int z = 0; z < n; ++z)
    for (int y = 0; y < n; ++y)
      for (int x = 0; x <= n / 2; ++x) {
        const Vector3<double> k{double(x), double(frequency(y, n)), double(frequency(z, n))};
        Complex sum = 0;
        if (k[0] * k[0] + k[1] * k[1] + k[2] * k[2] <= radius * radius)
          for (const auto& one : operators) {
            const auto q = one.rotation * k;
            const double turns = (q[0] * one.shift[0] + q[1] * one.shift[1] + q[2] * one.shift[2]) / n;
            sum += full.template interpolated<Kernel>(q) *
                   (real ? Complex(1) : std::polar(1.0, 2 * Kokkos::numbers::pi * turns));
          }
        const auto found = host(0, z, y, x);
        if constexpr (std::is_floating_point_v<Value>)
          largest = std::max(largest, std::abs(found - sum.real()));
        else
          largest = std::max(largest, std::abs(Complex(found.real(), found.imag()) - sum));
      }
  return largest;
}

std::vector<SymmetryOperator> motions(const std::string& group) {
  std::vector<SymmetryOperator> result;
  for (const auto& rotation : symmetry_operators(group))
    result.push_back({rotation});
  return result;
}

} // namespace

TEMPLATE_TEST_CASE("groups that interpolate once equal the sum over all operators", "[geometry]", float,
                   double) {
  using T = TestType;
  const double tolerance = 400 * double(std::numeric_limits<T>::epsilon());
  // Of these each operator is exact, or no exact one follows an interpolated one.
  for (const char* group : {"C1", "C2", "C3", "C4", "C7", "D2", "D4", "O", "T"})
    for (const int n : {12, 13}) {
      CAPTURE(group, n);
      const auto operators = motions(group);
      CHECK(error<Linear, Kokkos::complex<T>>(n, operators, (n - 1) / 2.0, false) <
            tolerance * operators.size());
      CHECK(error<Linear, T>(n, operators, (n - 1) / 2.0, true) < tolerance * operators.size());
    }
  CHECK(error<CatmullRom, Kokkos::complex<T>>(12, motions("D3"), 5, false) < 6 * tolerance);
  CHECK(error<CubicBSpline, Kokkos::complex<T>>(13, motions("C5"), 5, false) < 6 * tolerance);
}

TEST_CASE("an icosahedron is five cosets of the operators that map the lattice", "[geometry]") {
  const Space space;
  for (const auto& [group, interpolated] : std::vector<std::pair<std::string, std::size_t>>{{"C1", 0},
                                                                                            {"C4", 0},
                                                                                            {"C7", 6},
                                                                                            {"D7", 6},
                                                                                            {"O", 0},
                                                                                            {"T", 11},
                                                                                            {"I1", 4},
                                                                                            {"I2", 4},
                                                                                            {"I3", 29},
                                                                                            {"I4", 29}}) {
    CAPTURE(group);
    const VolumeSymmetry<Space> symmetry(space, symmetry_operators(group));
    CHECK(symmetry.order() == symmetry_operators(group).size());
    CHECK(symmetry.interpolated() == interpolated);
  }
  // The order in which a coset is interpolated is no matter: the lattice's operators turn kernels onto themselves.
  CHECK(error<Linear, Kokkos::complex<double>>(13, motions("I1"), 6, false) < 1e-11);
  CHECK(error<Linear, Kokkos::complex<double>>(12, motions("D7"), 5.5, false) < 1e-11);
  CHECK(error<CatmullRom, double>(12, motions("I4"), 5, true) < 1e-11);
}

TEST_CASE("operators that are no group go one by one", "[geometry]") {
  // The half turns map the lattice onto itself, but not these sets.
  const auto d4 = motions("D4"), c3 = motions("C3");
  const SymmetryOperator first = d4[0], quarter = d4[1], turn = c3[1];
  CHECK(error<Linear, Kokkos::complex<double>>(12, {first, quarter}, 5.5, false) < 1e-12);
  CHECK(error<Linear, Kokkos::complex<double>>(13, {first, quarter, turn}, 6, false) < 1e-12);
  CHECK(error<Linear, double>(13, {quarter}, 6, true) < 1e-12);
  // From the left the half turns about z and x make a whole set, from the right they do not.
  std::vector<SymmetryOperator> left = motions("D2");
  for (std::size_t i = 0; i < 4; ++i)
    left.push_back({left[i].rotation * turn.rotation});
  CHECK(error<Linear, Kokkos::complex<double>>(12, left, 5.5, false) < 1e-12);
}

TEMPLATE_TEST_CASE("data and weights go together", "[geometry]", float, double) {
  using T = TestType;
  using Value = Kokkos::complex<T>;
  const Space space;
  const double tolerance = 4000 * double(std::numeric_limits<T>::epsilon());
  for (const char* group : {"C1", "C5", "D2", "D7", "O", "I1"})
    for (const int n : {12, 13}) {
      CAPTURE(group, n);
      const VolumeSymmetry<Space> symmetry(space, symmetry_operators(group));
      const auto columns = n / 2 + 1;
      const Volume<Value> scratch("scratch", 1, n, n, columns);
      const Volume<T> weight_scratch("weight_scratch", 1, n, n, columns);
      // Both at once, as quotients with a curve; and one after the other, divided by hand.
      const auto data = stored<Value>(Full(n, 6, false)), data_alone = stored<Value>(Full(n, 6, false));
      const auto weight = stored<T>(Full(n, 7, true)), weight_alone = stored<T>(Full(n, 7, true));
      const Kokkos::View<double*, Space> curve("curve", 5);
      const auto values = Kokkos::create_mirror_view(curve);
      for (int s = 0; s < 5; ++s)
        values(s) = 3 + std::cos(2 * s);
      Test::deep_copy(curve, values);
      const auto scaled = [&](bool divide) {
        const auto d = Test::on_host(data_alone);
        const auto w = Test::on_host(weight_alone);
        for (int z = 0; z < n; ++z)
          for (int y = 0; y < n; ++y)
            for (int x = 0; x < columns; ++x) {
              const double k = std::hypot(x, frequency(y, n), frequency(z, n));
              const int below = std::min(int(k), 4), above = std::min(below + 1, 4);
              const double own = values(below) + (k - int(k)) * (values(above) - values(below));
              d(0, z, y, x) *= T(divide ? 1 / own : own);
              w(0, z, y, x) *= T(divide ? 1 / own : own);
            }
        Test::deep_copy(data_alone, d);
        Test::deep_copy(weight_alone, w);
      };
      symmetry.apply(space, HalfSpectrum{data, n}, HalfSpectrum{weight, n}, HalfSpectrum{scratch, n},
                     HalfSpectrum{weight_scratch, n}, curve);
      scaled(true);
      symmetry.apply(space, HalfSpectrum{data_alone, n}, HalfSpectrum{scratch, n});
      symmetry.apply(space, HalfSpectrum{weight_alone, n}, HalfSpectrum{weight_scratch, n});
      scaled(false);
      const auto d = Test::on_host(data);
      const auto w = Test::on_host(weight);
      const auto d_alone = Test::on_host(data_alone);
      const auto w_alone = Test::on_host(weight_alone);
      double largest = 0;
      for (std::size_t i = 0; i < d.size(); ++i)
        largest = std::max({largest, double(Kokkos::abs(d.data()[i] - d_alone.data()[i])),
                            std::abs(double(w.data()[i] - w_alone.data()[i]))});
      CHECK(largest < tolerance);
    }
}

TEST_CASE("a helix turns and shifts", "[geometry]") {
  for (const char* group : {"C1", "C2", "D1", "C3"}) {
    CAPTURE(group);
    CHECK(error<Linear, Kokkos::complex<double>>(12, helical_operators(1.3, 33, 5, group), 5.5, false) <
          1e-11);
    CHECK(error<Linear, double>(13, helical_operators(1.3, -33, 3, group), 6, true) < 1e-11);
  }
  // A right-handed helix climbs as it turns from x to y.
  const auto operators = helical_operators(2, 90, 3);
  REQUIRE(operators.size() == 3);
  CHECK(std::abs(operators[1].rotation(1, 0) - 1) < 1e-12);
  CHECK(operators[1].shift[2] == 2);
  CHECK(operators[2].shift[2] == -2);
  CHECK_THROWS_AS(helical_operators(-1, 10, 3), Error);
  CHECK_THROWS_AS(helical_operators(1, 10, 2), Error);
  CHECK_THROWS_AS(helical_operators(1, std::nan(""), 3), Error);
  CHECK_THROWS_AS(helical_operators(1, 10, 3, "I1"), Error);
  CHECK_THROWS_AS(helical_operators(1, 10, 3, "X"), Error);
}

TEST_CASE("symmetry of volumes is checked", "[geometry]") {
  const Space space;
  CHECK_THROWS_AS(VolumeSymmetry<Space>(space, std::vector<SymmetryOperator>()), Error);
  const VolumeSymmetry<Space> symmetry(space, symmetry_operators("C3"));
  const Volume<float> cube("cube", 1, 8, 8, 5), other("other", 1, 8, 8, 5), flat("flat", 1, 6, 8, 5),
      flat_too("flat_too", 1, 6, 8, 5), empty("empty", 0, 8, 8, 5), empty_too("empty_too", 0, 8, 8, 5);
  CHECK_THROWS_AS(symmetry.apply(space, flat, flat_too), Error);
  CHECK_THROWS_AS(symmetry.apply(space, cube, flat), Error);
  CHECK_THROWS_AS(symmetry.apply(space, cube, cube), Error);
  CHECK_THROWS_AS(symmetry.apply(space, cube, other, 5), Error);
  CHECK_THROWS_AS(symmetry.apply(space, cube, other, std::nan("")), Error);
  for (const double element : {2., 1e30, 0., 1.01}) { // which lead out of the box
    const Matrix3<double> longer{{{element, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    CHECK_THROWS_AS(VolumeSymmetry<Space>(space, std::vector{longer}), Error);
  }
  CHECK_NOTHROW(symmetry.apply(space, empty, empty_too));
  const Volume<Kokkos::complex<float>> data("data", 1, 8, 8, 5), data_too("data_too", 1, 8, 8, 5);
  CHECK_NOTHROW(symmetry.apply(space, data, cube, data_too, other));
  CHECK_THROWS_AS(symmetry.apply(space, data, flat, data_too, other), Error);
  CHECK_THROWS_AS(symmetry.apply(space, data, cube, data, other), Error);
  CHECK_THROWS_AS(symmetry.apply(space, data, cube, data_too, cube), Error);
  CHECK_THROWS_AS(symmetry.apply(space, data, cube, data_too, other, Kokkos::View<double*, Space>("none", 0)),
                  Error);
  CHECK_THROWS_AS(symmetry.apply(space, data, cube, data_too, other, {}, 5), Error);
}
