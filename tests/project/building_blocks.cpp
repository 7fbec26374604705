// Kernels, accessors and functors of one's own: against sums over the full spectrum in long-hand, and against operators that
// have tests of their own.

#include "building_blocks.hpp"
#include "../page_examples.hpp"

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/points.hpp>
#include <bracewell/project/prepare_map.hpp>
#include <bracewell/project/project.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <complex>
#include <functional>
#include <random>
#include <vector>

namespace {

using Space = Kokkos::DefaultHostExecutionSpace;
using Device = Kokkos::DefaultExecutionSpace;
using Lanczos = Page::Lanczos;
using Double = std::complex<double>;
template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Kokkos::HostSpace>;

/// The same View where there is no other memory.
template <class AnyView>
auto on_device(const AnyView& view) {
  return Kokkos::create_mirror_view_and_copy(Device::memory_space(), view);
}

template <class T>
constexpr double rounding = sizeof(T) == 4 ? 1e-5 : 1e-12;

// Kernels by their textbook definitions.
double sinc(double x) { return x == 0 ? 1 : std::sin(M_PI * x) / (M_PI * x); }
double definition(Linear, double x) { return std::max(0., 1 - std::abs(x)); }
double definition(CatmullRom, double x) {
  const double a = std::abs(x);
  return a < 1 ? (1.5 * a - 2.5) * a * a + 1 : a < 2 ? ((-0.5 * a + 2.5) * a - 4) * a + 2 : 0;
}
double definition(CubicBSpline, double x) {
  const double a = std::abs(x);
  return a < 1 ? 2. / 3 + (a / 2 - 1) * a * a : a < 2 ? std::pow(2 - a, 3) / 6 : 0;
}
double definition(Lanczos, double x) { return std::abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0; }

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

/// A half spectrum of random numbers, and its elements at any frequency of the full one by the rules of conventions.md.
template <class T, int D>
struct Spectrum {
  HalfSpectrumLayout<D> layout;
  std::vector<Kokkos::complex<T>> values;

  Spectrum(const int (&size)[D], unsigned seed) {
    for (int d = 0; d < D; ++d)
      layout.size[d] = size[d];
    std::mt19937 engine(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    values.resize(layout.elements());
    for (auto& value : values)
      value = Kokkos::complex<T>(T(uniform(engine)), T(uniform(engine)));
  }

  HalfSpectrum<T, D> access() { return {values.data(), layout}; }
  HalfSpectrum<const T, D> access() const { return {values.data(), layout}; }

  /// Element and whether it is the mate's.
  std::pair<std::size_t, bool> place(const long (&k)[D]) const {
    const auto modulo = [](long a, long n) { return (a % n + n) % n; };
    const bool mate = modulo(k[0], layout.size[0]) > layout.size[0] / 2;
    std::size_t index = 0;
    for (int d = D - 1; d >= 0; --d)
      index = index * (d == 0 ? layout.size[0] / 2 + 1 : layout.size[d]) +
              modulo(mate ? -k[d] : k[d], layout.size[d]);
    return {index, mate};
  }
  Double at(const long (&k)[D]) const {
    const auto [index, mate] = place(k);
    const Double value(values[index].real(), values[index].imag());
    return mate ? std::conj(value) : value;
  }
  /// What a value at k and its conjugate at -k add to, transposed.
  Double at_both(const long (&k)[D]) const {
    long opposite[D];
    for (int d = 0; d < D; ++d)
      opposite[d] = -k[d];
    const auto [own, own_mate] = place(k);
    const auto [other, other_mate] = place(opposite);
    Double sum = 0;
    if (!own_mate)
      sum += Double(values[own].real(), values[own].imag());
    if (!other_mate)
      sum += std::conj(Double(values[other].real(), values[other].imag()));
    return sum;
  }

  template <class Kernel>
  Double sample(const double (&q)[D], Mates mates) const {
    constexpr int reach = Kernel::width / 2;
    int taps = 1;
    for (int d = 0; d < D; ++d)
      taps *= 2 * reach;
    Double sum = 0;
    for (int i = 0; i < taps; ++i) {
      long k[D];
      double weight = 1;
      for (int d = 0, rest = i; d < D; ++d, rest /= 2 * reach) {
        k[d] = long(std::floor(q[d])) - reach + 1 + rest % (2 * reach);
        weight *= definition(Kernel{}, q[d] - double(k[d]));
      }
      sum += weight * (mates == Mates::Single ? at(k) : at_both(k));
    }
    return sum;
  }
};

Double wide(const Kokkos::complex<float>& a) { return {a.real(), a.imag()}; }
Double wide(const Kokkos::complex<double>& a) { return {a.real(), a.imag()}; }

/// Positions of all kinds: within, on taps, at x = 0 and the Nyquist column, negative, periods out.
template <int D>
std::vector<std::array<double, D>> positions(const HalfSpectrumLayout<D>& layout, int count) {
  std::mt19937 engine(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<std::array<double, D>> result;
  for (int i = 0; i < count; ++i) {
    std::array<double, D> q;
    for (int d = 0; d < D; ++d) {
      const double n = layout.size[d], scale = i % 5 == 0 ? 3 * n : n / 2 + 1;
      q[d] = std::round(1024 * scale * uniform(engine)) / 1024; // the same in float
    }
    if (i % 7 == 1)
      q[0] = i % 2 ? 0 : -0.25;
    if (i % 7 == 2)
      q[0] = layout.size[0] / 2.;
    if (i % 7 == 3)
      for (double& one : q)
        one = std::round(one);
    result.push_back(q);
  }
  return result;
}

template <class T, int D, class Check>
void for_all_sizes(const Check& check) {
  if constexpr (D == 2) {
    check(std::to_array<int>({16, 12}));
    check(std::to_array<int>({15, 11}));
    check(std::to_array<int>({6, 7}));
  } else {
    check(std::to_array<int>({12, 10, 8}));
    check(std::to_array<int>({11, 9, 7}));
    check(std::to_array<int>({6, 6, 7}));
  }
}

template <int D>
HalfSpectrumLayout<D> layout_of(const std::array<int, D>& size) {
  HalfSpectrumLayout<D> layout;
  std::copy(size.begin(), size.end(), layout.size);
  return layout;
}

template <class T, int D>
Spectrum<T, D> spectrum_of(const std::array<int, D>& size, unsigned seed) {
  return Spectrum<T, D>(layout_of<D>(size).size, seed);
}

double real_product(const std::vector<Double>& a, const std::vector<Double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += a[i].real() * b[i].real() + a[i].imag() * b[i].imag();
  return sum;
}

template <class Kernel, class T, int D, Mates mates>
void check_functors(const std::array<int, D>& size) {
  CAPTURE(Kernel::width, sizeof(T), D, int(mates), size);
  const auto spectrum = spectrum_of<T, D>(size, 1);
  const Sampler<Kernel, T, D, mates> sample(spectrum.access());
  const auto points = positions<D>(spectrum.layout, 70);
  constexpr int block = 64 / sizeof(T);
  T many[D][block];
  Kokkos::complex<T> of_block[block];
  auto target = spectrum_of<T, D>(size, 2), blocks = target;
  const auto before = target;
  std::vector<T> weight(target.values.size(), T(0)), weight_of_blocks = weight;
  const Inserter<Kernel, T, D, mates> insert(target.access(), weight.data(), KernelWeights::Absolute);
  const Inserter<Kernel, T, D, mates> insert_blocks(blocks.access(), weight_of_blocks.data(),
                                                    KernelWeights::Absolute);
  std::vector<Double> sampled, inserted;
  std::mt19937 engine(5);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (std::size_t i = 0; i < points.size(); ++i) {
    double exact[D];
    T q[D];
    for (int d = 0; d < D; ++d)
      q[d] = T(exact[d] = points[i][d]);
    CAPTURE(points[i]);
    const Double expected = spectrum.template sample<Kernel>(exact, mates);
    const Double value = wide(sample(q));
    CHECK(std::abs(value - expected) < 20 * rounding<T>);
    Kokkos::complex<T> gradient[D];
    CHECK(std::abs(wide(sample(q, gradient)) - expected) < 20 * rounding<T>);
    for (int d = 0; d < D && i % 7 != 3; ++d) { // off the knots, where a kernel has no slope
      const double h = 1e-5;
      if (std::abs(exact[d] - std::round(exact[d])) < 0.01)
        continue;
      double above[D], below[D];
      std::copy(exact, exact + D, above);
      std::copy(exact, exact + D, below);
      above[d] += h;
      below[d] -= h;
      const Double slope =
          (spectrum.template sample<Kernel>(above, mates) - spectrum.template sample<Kernel>(below, mates)) /
          (2 * h);
      CHECK(std::abs(wide(gradient[d]) - slope) < 100 * rounding<T> + 1e-7);
    }
    const Kokkos::complex<T> amplitude(T(uniform(engine)), T(uniform(engine)));
    sampled.push_back(value);
    inserted.push_back(wide(amplitude));
    if (i % 2)
      CHECK(insert.add(q, amplitude, T(1)));
    else
      CHECK(insert.atomic_add(q, amplitude, T(1)));
    // The same by blocks.
    for (int d = 0; d < D; ++d)
      many[d][i % block] = q[d];
    of_block[i % block] = amplitude;
    if (i % block == block - 1 || i + 1 == points.size()) {
      const int count = int(i % block) + 1;
      for (int d = 0; d < D; ++d)
        for (int j = count; j < block; ++j)
          many[d][j] = 0;
      T ones[block];
      std::fill(ones, ones + block, T(1));
      CHECK(insert_blocks.add(many, of_block, ones, count) == count);
      Kokkos::complex<T> values[block];
      sample(many, values);
      for (int j = 0; j < count; ++j)
        CHECK(std::abs(wide(values[j]) - sampled[i + 1 - count + j]) < 20 * rounding<T>);
    }
  }
  // Transposes: <sample F, a> = <F, insert a>.
  std::vector<Double> difference, own;
  for (std::size_t i = 0; i < target.values.size(); ++i) {
    difference.push_back(wide(target.values[i]) - wide(before.values[i]));
    own.push_back(wide(spectrum.values[i]));
    CHECK(std::abs(wide(target.values[i]) - wide(blocks.values[i])) < 20 * rounding<T>);
    CHECK(std::abs(weight[i] - weight_of_blocks[i]) < 20 * rounding<T>);
    CHECK(weight[i] >= 0);
  }
  const double left = real_product(sampled, inserted), right = real_product(own, difference);
  CHECK(std::abs(left - right) < 20 * rounding<T> * double(points.size()));
}

template <class Kernel, class T, int D>
void check_functors() {
  for_all_sizes<T, D>([](const auto& size) {
    check_functors<Kernel, T, D, Mates::Single>(size);
    check_functors<Kernel, T, D, Mates::Both>(size);
  });
}

} // namespace

TEMPLATE_TEST_CASE("Sampler and Inserter are the sums of their definitions, and transposes", "", Linear,
                   CatmullRom, CubicBSpline, Lanczos) {
  check_functors<TestType, float, 2>();
  check_functors<TestType, double, 3>();
}

TEST_CASE("positions without a place give NaN and add nothing") {
  auto spectrum = spectrum_of<float, 3>({8, 8, 8}, 1);
  const auto before = spectrum.values;
  const Sampler<CatmullRom, float, 3> sample(spectrum.access());
  const Inserter<CatmullRom, float, 3> insert(spectrum.access());
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float many[3][16] = {};
  Kokkos::complex<float> values[16] = {};
  int at = 0;
  for (const float wrong : {float(NAN), infinity, -infinity, 3e6f, -1e30f}) {
    const float q[3] = {1, wrong, 0};
    Kokkos::complex<float> gradient[3];
    CHECK(std::isnan(sample(q).real()));
    CHECK(std::isnan(sample(q, gradient).imag()));
    CHECK(std::isnan(gradient[0].real()));
    CHECK_FALSE(insert.add(q, {1, 1}));
    CHECK_FALSE(insert.atomic_add(q, {1, 1}));
    many[at % 3][at] = wrong;
    ++at;
  }
  CHECK(insert.add(many, values, 16) == 11);
  sample(many, values);
  for (int i = 0; i < 16; ++i)
    CHECK(std::isnan(values[i].real()) == (i < 5));
  for (std::size_t i = 0; i < before.size(); ++i)
    CHECK(wide(before[i]) == wide(spectrum.values[i]));
}

TEMPLATE_TEST_CASE("HalfSpectrum reads and adds at any integer frequency", "", float, double) {
  const auto check = []<std::size_t axes>(const std::array<int, axes>& size) {
    constexpr int D = int(axes);
    CAPTURE(size);
    auto spectrum = spectrum_of<TestType, D>(size, 1);
    const HalfSpectrum<const TestType, D> read = spectrum.access();
    const int far = 3 * size[0] + 1;
    for (int i = 0; i < 200; ++i) {
      int k[D];
      long wide_k[D];
      for (int d = 0; d < D; ++d)
        wide_k[d] = k[d] = (i * (37 + 11 * d) + d) % (2 * far) - far;
      if (i % 4 == 0)
        wide_k[0] = k[0] = i % 8 ? 0 : size[0] / 2;
      CAPTURE(k[0], k[1]);
      CHECK(wide(read(k)) == spectrum.at(wide_k));
      CHECK(std::abs(wide(read.sum_with_mate(k)) - spectrum.at_both(wide_k)) < rounding<TestType>);
      // Adding is the transpose: <F(k), v> = <F, add(k, v)>.
      for (const bool both : {false, true})
        for (const bool atomic : {false, true}) {
          Spectrum<TestType, D> target(spectrum.layout.size, 2);
          for (auto& value : target.values)
            value = 0;
          const Kokkos::complex<TestType> v(0.5, -2);
          const auto add = target.access();
          if (both)
            atomic ? add.atomic_add_with_mate(k, v) : add.add_with_mate(k, v);
          else
            atomic ? add.atomic_add(k, v) : add.add(k, v);
          std::vector<Double> own, to;
          for (std::size_t j = 0; j < target.values.size(); ++j) {
            own.push_back(wide(spectrum.values[j]));
            to.push_back(wide(target.values[j]));
          }
          const Double expected = both ? spectrum.at_both(wide_k) : spectrum.at(wide_k);
          CHECK(std::abs(real_product(own, to) - real_product({expected}, {wide(v)})) <
                10 * rounding<TestType>);
        }
    }
    const auto next = spectrum.access().batch(1);
    CHECK(next.data == spectrum.values.data() + spectrum.layout.elements());
  };
  check(std::to_array<int>({8, 6}));
  check(std::to_array<int>({7, 5}));
  check(std::to_array<int>({4, 6, 8}));
  check(std::to_array<int>({5, 7, 3}));
}

TEST_CASE("HalfSpectrum takes Views and says what does not fit") {
  const View<Kokkos::complex<float>***> volume("volume", 6, 5, 4);
  CHECK(HalfSpectrum<float, 3>(volume).layout.size[0] == 6);
  CHECK(HalfSpectrum<const float, 3>(HalfSpectrum{volume, 7}).layout.size[0] == 7);
  CHECK(HalfSpectrum<float, 3>(volume).layout.size[2] == 6);
  using Catch::Matchers::ContainsSubstring;
  using Catch::Matchers::MessageMatches;
  CHECK_THROWS_MATCHES((HalfSpectrum<float, 3>(HalfSpectrum{volume, 9})), Error,
                       MessageMatches(ContainsSubstring("HalfSpectrum: spectrum: expected axes")));
  CHECK_THROWS_MATCHES((HalfSpectrum<float, 3>(View<Kokkos::complex<float>***>())), Error,
                       MessageMatches(ContainsSubstring("HalfSpectrum: spectrum: expected axes")));
  CHECK_THROWS_MATCHES((Sampler<Lanczos, float, 3>(HalfSpectrum<float, 3>(volume))), Error,
                       MessageMatches(ContainsSubstring("axes of 6 to 32768 elements, found one of 5")));
  CHECK_THROWS_MATCHES((Inserter<Lanczos, float, 3>(HalfSpectrum<float, 3>(volume))), Error,
                       MessageMatches(ContainsSubstring("Inserter: spectrum")));
}

namespace {

enum class Fault { Skewed, Edge, Slopes };

/// Lanczos' kernel with a fault that only a run tells, since sines are not constexpr.
template <Fault fault>
struct WrongLanczos : Lanczos {
  template <class T>
  KOKKOS_INLINE_FUNCTION static void weights(T f, T (&w)[6]) {
    Lanczos::weights(f, w);
    if (fault == Fault::Skewed)
      w[1] += T(0.01) * f * (1 - f) * Kokkos::sin(f);
    if (fault == Fault::Edge)
      for (T& one : w)
        one += T(0.001);
  }
  template <class T>
  KOKKOS_INLINE_FUNCTION static void derivatives(T f, T (&d)[6]) {
    Lanczos::derivatives(f, d);
    if (fault == Fault::Slopes)
      d[2] = -d[2];
  }
};

template <class Kernel, class T>
void refuse(const std::string& sentence) {
  using Catch::Matchers::ContainsSubstring;
  using Catch::Matchers::MessageMatches;
  const View<Kokkos::complex<T>****> volume("volume", 1, 8, 8, 5), images("images", 1, 1, 8, 5);
  const View<T****> matrices("matrices", 1, 1, 3, 3);
  const auto says = [&](const char* function) {
    return MessageMatches(
        ContainsSubstring("Bracewell::" + std::string(function) + ": Kernel: expected " + sentence));
  };
  const Space space;
  CHECK_THROWS_MATCHES(project<Kernel>(space, volume, {.matrices = matrices}, images), Error,
                       says("project"));
  CHECK_THROWS_MATCHES(backproject<Kernel>(space, images, {.matrices = matrices}, {.data = volume}), Error,
                       says("backproject"));
  CHECK_THROWS_MATCHES(prepare<Kernel>(space, volume), Error, says("PreparedReference"));
  CHECK_THROWS_MATCHES((Sampler<Kernel, T, 3>(HalfSpectrum<const T, 3>(volume.data(), {{8, 8, 8}}))), Error,
                       says("Sampler"));
}

} // namespace

TEST_CASE("what only a run tells of a kernel is an error before anything is written") {
  refuse<WrongLanczos<Fault::Skewed>, float>("an even kernel");
  refuse<WrongLanczos<Fault::Edge>, float>("continuous weights that are zero at the edge");
  refuse<WrongLanczos<Fault::Slopes>, float>("derivatives that are the slopes");
  refuse<WrongLanczos<Fault::Edge>, double>("continuous weights that are zero at the edge");
}

namespace {

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
    const auto host_a = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), a);
    const auto host_b = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), b);
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
  const auto of_threads = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), all);
  const auto total = Kokkos::create_mirror_view(sum);
  Kokkos::deep_copy(total, Complex(0));
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

TEST_CASE("phases of shifts have the derivatives of finite differences") {
  const HalfSpectrumLayout<3> box{{8, 9, 10}};
  const double shift[3] = {0.3, -1.7, 2.9}, h = 1e-6; // z, y, x
  const int k[3] = {3, -4, 5};
  Kokkos::complex<double> derivative[3];
  const auto value = ShiftPhase<double, 3>(shift, box)(k, derivative);
  const double angle = -2 * M_PI * (3 * 2.9 / 8 - 4 * -1.7 / 9 + 5 * 0.3 / 10);
  CHECK(std::abs(wide(value) - std::polar(1., angle)) < 1e-12);
  for (int axis = 0; axis < 3; ++axis) {
    double above[3], below[3];
    std::copy(shift, shift + 3, above);
    std::copy(shift, shift + 3, below);
    above[axis] += h;
    below[axis] -= h;
    const auto slope =
        (wide(ShiftPhase<double, 3>(above, box)(k)) - wide(ShiftPhase<double, 3>(below, box)(k))) / (2 * h);
    CHECK(std::abs(wide(derivative[axis]) - slope) < 1e-8);
  }
}

namespace {

/// The Fourier transform of a kernel by Simpson's rule.
template <class Kernel>
double transform_of_definition(double v) {
  const int steps = 500 * Kernel::width; // knots are among them
  const double h = Kernel::width / 2. / steps;
  double sum = 0;
  for (int i = 0; i <= steps; ++i)
    sum += (i == 0 || i == steps ? 1
            : i % 2              ? 4
                                 : 2) *
           definition(Kernel{}, i * h) * std::cos(2 * M_PI * v * i * h);
  return 2 * h / 3 * sum;
}

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
  Kokkos::deep_copy(images, found);
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

namespace {

/// An image or volume of random numbers that is zero outside.
template <class T, int D>
struct Image {
  std::array<int, D> size; // x, y[, z]
  std::vector<T> values;

  Image(const std::array<int, D>& size_, unsigned seed) : size(size_) {
    std::size_t count = 1;
    for (const int n : size)
      count *= n;
    std::mt19937 engine(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(T(uniform(engine)));
  }

  template <class Kernel>
  double sample(const double (&q)[D]) const {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      double weight = values[i];
      std::size_t rest = i;
      for (int d = 0; d < D; ++d) {
        weight *= definition(Kernel{}, q[d] - double(rest % size[d]));
        rest /= size[d];
      }
      sum += weight;
    }
    return sum;
  }
};

double real_product(double a, double b) { return a * b; }
double real_product(const Double& a, const Double& b) { return a.real() * b.real() + a.imag() * b.imag(); }
double wide(float a) { return a; }
double wide(double a) { return a; }

/// Grids [B|1, ...] with what they are at a point, for check_points.
template <class T, int D>
struct Spectra {
  using Value = Kokkos::complex<T>;
  std::vector<Spectrum<T, D>> each;
  template <class Kernel>
  auto sample(int batch, const double (&q)[D], Mates mates) const {
    return each[batch].template sample<Kernel>(q, mates);
  }
};
template <class T, int D>
struct Images {
  using Value = T;
  std::vector<Image<T, D>> each;
  template <class Kernel>
  auto sample(int batch, const double (&q)[D], Mates) const {
    return each[batch].template sample<Kernel>(q);
  }
};

template <class Kernel, class T, int D, class Grids, class View, class Argument>
void check_points(const Grids& grids, const View& grid, const View& target, const Argument& as_argument,
                  const HalfSpectrumLayout<D>& layout, int batches, bool shared_points, Mates mates) {
  using Value = typename Grids::Value;
  const bool shared_grid = grids.each.size() == 1;
  CAPTURE(Kernel::width, sizeof(T), D, batches, shared_points, shared_grid, int(mates), layout.size[0]);
  const Device space;
  const int count = 37;
  const Kokkos::View<T***, Kokkos::LayoutRight, Kokkos::HostSpace> points(
      "points", shared_points ? 1 : batches, count, D),
      of_points("of_points", shared_points ? 1 : batches, count, D);
  const auto wanted = positions<D>(layout, count * batches);
  for (std::size_t i = 0; i < points.size() / D; ++i)
    for (int d = 0; d < D; ++d)
      points.data()[i * D + d] = T(wanted[i][d]);
  const Kokkos::View<Value**, Kokkos::LayoutRight, Kokkos::HostSpace> values("values", batches, count),
      amplitudes("amplitudes", batches, count), same("same", batches, count);
  std::mt19937 engine(9);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (std::size_t i = 0; i < amplitudes.size(); ++i) {
    if constexpr (std::is_same_v<Value, T>)
      amplitudes.data()[i] = T(uniform(engine));
    else
      amplitudes.data()[i] = Value(T(uniform(engine)), T(uniform(engine)));
  }
  const PointOptions options{.mates = mates};
  const auto at = on_device(points), slopes = on_device(of_points);
  const auto factors = on_device(amplitudes), sampled = on_device(values);
  const auto from = on_device(grid);
  sample<Kernel>(space, as_argument(from), at, sampled, options);
  Kokkos::deep_copy(values, sampled);
  Kokkos::deep_copy(target, Value(0));
  const auto to = on_device(target);
  insert<Kernel>(space, factors, at, as_argument(to), options);
  Kokkos::deep_copy(target, to);
  double left = 0, right = 0;
  for (std::size_t i = 0; i < grid.size(); ++i)
    right += real_product(wide(grid.data()[i]), wide(target.data()[i]));
  const View of_grid("of_grid", grid.layout());
  const auto sums = on_device(of_grid);
  sample_gradients<Kernel>(space, as_argument(from), at, factors,
                           {.values = sampled, .grid = as_argument(sums), .points = slopes}, options);
  Kokkos::deep_copy(of_grid, sums);
  Kokkos::deep_copy(same, sampled);
  Kokkos::deep_copy(of_points, slopes);
  for (std::size_t i = 0; i < grid.size(); ++i)
    CHECK(std::abs(wide(of_grid.data()[i]) - wide(target.data()[i])) < 20 * rounding<T>);
  for (int b = 0; b < batches; ++b)
    for (int i = 0; i < count; ++i) {
      double q[D];
      for (int d = 0; d < D; ++d)
        q[d] = points(shared_points ? 0 : b, i, d);
      const auto expected = grids.template sample<Kernel>(shared_grid ? 0 : b, q, mates);
      CHECK(std::abs(wide(values(b, i)) - expected) < 20 * rounding<T>);
      CHECK(std::abs(wide(same(b, i)) - expected) < 20 * rounding<T>);
      left += real_product(wide(amplitudes(b, i)), wide(values(b, i)));
    }
  CHECK(std::abs(left - right) < 20 * rounding<T> * count * batches);
  // Finite differences of the definition; the cotangent of what is inserted gives the same as that of what is sampled.
  const Kokkos::View<T***, Kokkos::LayoutRight, Kokkos::HostSpace> again("again", points.layout());
  const auto slopes_again = on_device(again);
  insert_gradients<Kernel>(space, factors, at, as_argument(from), {.values = sampled, .points = slopes_again},
                           options);
  Kokkos::deep_copy(again, slopes_again);
  for (int set = 0; set < (shared_points ? 1 : batches); ++set)
    for (int i = 0; i < count; ++i)
      for (int d = 0; d < D; ++d) {
        double q[D], slope = 0;
        for (int e = 0; e < D; ++e)
          q[e] = points(set, i, e);
        if (std::abs(q[d] - std::round(q[d])) < 0.01)
          continue; // a knot
        for (int b = shared_points ? 0 : set; b < (shared_points ? batches : set + 1); ++b)
          for (const double h : {1e-5, -1e-5}) {
            double moved[D];
            std::copy(q, q + D, moved);
            moved[d] += h;
            slope += real_product(wide(amplitudes(b, i)),
                                  grids.template sample<Kernel>(shared_grid ? 0 : b, moved, mates)) /
                     (2 * h);
          }
        CHECK(std::abs(of_points(set, i, d) - slope) < 200 * rounding<T> + 1e-7);
        CHECK(again(set, i, d) == of_points(set, i, d));
      }
}

template <class Kernel, class T, int D>
void check_points_of_spectra(const std::array<int, D>& size, bool shared_grid, bool shared_points) {
  const int batches = 2;
  Spectra<T, D> grids;
  for (int b = 0; b < (shared_grid ? 1 : batches); ++b)
    grids.each.push_back(spectrum_of<T, D>(size, 20 + b));
  const auto layout = layout_of<D>(size);
  using Data = std::conditional_t<D == 2, Kokkos::complex<T>***, Kokkos::complex<T>****>;
  const auto make = [&] {
    if constexpr (D == 2)
      return View<Data>("grid", grids.each.size(), size[1], size[0] / 2 + 1);
    else
      return View<Data>("grid", grids.each.size(), size[2], size[1], size[0] / 2 + 1);
  };
  const auto grid = make(), target = make();
  for (std::size_t b = 0; b < grids.each.size(); ++b)
    std::copy(grids.each[b].values.begin(), grids.each[b].values.end(),
              grid.data() + b * grids.each[b].values.size());
  for (const Mates mates : {Mates::Single, Mates::Both})
    check_points<Kernel, T, D>(
        grids, grid, target,
        [&](const auto& view) {
          return HalfSpectrum{view, size[0]};
        },
        layout, batches, shared_points, mates);
}

template <class Kernel, class T, int D>
void check_points_of_images(const std::array<int, D>& size, bool shared_grid, bool shared_points) {
  const int batches = 2;
  Images<T, D> grids;
  for (int b = 0; b < (shared_grid ? 1 : batches); ++b)
    grids.each.emplace_back(size, 20 + b);
  using Data = std::conditional_t<D == 2, T***, T****>;
  const auto make = [&] {
    if constexpr (D == 2)
      return View<Data>("grid", grids.each.size(), size[1], size[0]);
    else
      return View<Data>("grid", grids.each.size(), size[2], size[1], size[0]);
  };
  const auto grid = make(), target = make();
  for (std::size_t b = 0; b < grids.each.size(); ++b)
    std::copy(grids.each[b].values.begin(), grids.each[b].values.end(),
              grid.data() + b * grids.each[b].values.size());
  check_points<Kernel, T, D>(
      grids, grid, target, [](const auto& view) { return view; }, layout_of<D>(size), batches, shared_points,
      Mates::Single);
}

} // namespace

TEMPLATE_TEST_CASE("sample and insert at points are sums of their definition, with exact gradients", "",
                   Linear, CubicBSpline, Lanczos) {
  check_points_of_spectra<TestType, double, 2>({12, 9}, false, false);
  check_points_of_spectra<TestType, float, 2>({11, 8}, true, false);
  check_points_of_spectra<TestType, double, 3>({9, 8, 7}, true, true);
  check_points_of_spectra<TestType, float, 3>({8, 6, 7}, false, true);
  check_points_of_images<TestType, double, 2>({5, 1}, false, true);
  check_points_of_images<TestType, float, 2>({9, 12}, true, false);
  check_points_of_images<TestType, double, 3>({4, 7, 3}, false, false);
}

TEST_CASE("points that are no numbers, empty lists, and arguments that do not fit") {
  const Space space;
  const View<Kokkos::complex<double>***> grid("grid", 1, 8, 5);
  const View<double***> image("image", 2, 8, 8);
  const View<double***> points("points", 2, 3, 2), none("none", 2, 0, 2), flat("flat", 2, 3, 3),
      of_points("of_points", 2, 3, 2);
  const View<Kokkos::complex<double>**> values("values", 2, 3), no_values("no_values", 2, 0);
  const View<double**> reals("reals", 2, 3), fewer("fewer", 2, 2);
  Kokkos::deep_copy(grid, Kokkos::complex<double>(1));
  Kokkos::deep_copy(image, 1);
  Kokkos::deep_copy(values, Kokkos::complex<double>(1));
  Kokkos::deep_copy(reals, 1);
  points(0, 1, 0) = NAN;
  points(1, 2, 1) = INFINITY;
  points(0, 2, 0) = 1e300;
  const auto sum = [](const auto& view) {
    double total = 0;
    for (std::size_t i = 0; i < view.size(); ++i)
      total += Kokkos::abs(view.data()[i]);
    return total;
  };
  insert(space, values, points, grid); // three of the six, all in element 0
  CHECK(grid(0, 0, 0).real() == 4);
  insert(space, reals, points, image);
  CHECK(image(0, 0, 0) + image(1, 0, 0) == 5);
  CHECK(sum(image) == 131);
  sample(space, grid, points, values);
  CHECK((std::isnan(values(0, 1).real()) && std::isnan(values(1, 2).imag()) &&
         std::isnan(values(0, 2).real())));
  CHECK(std::abs(values(1, 1).real() - 4) < 1e-14);
  sample(space, image, points, reals);
  CHECK((std::isnan(reals(0, 1)) && std::isnan(reals(1, 2)) && reals(0, 2) == 0));
  sample(space, grid, none, no_values);
  insert(space, no_values, none, grid);
  Kokkos::deep_copy(of_points, 7);
  const View<Kokkos::complex<double>***> of_grid("of_grid", 1, 8, 5);
  Kokkos::deep_copy(of_grid, Kokkos::complex<double>(7));
  sample_gradients(space, grid, none, no_values, {.grid = of_grid});
  CHECK(sum(of_grid) == 0);

  using Catch::Matchers::ContainsSubstring;
  using Catch::Matchers::MessageMatches;
  const auto says = [](const char* sentence) { return MessageMatches(ContainsSubstring(sentence)); };
  CHECK_THROWS_MATCHES(sample(space, grid, flat, values), Error,
                       says("Bracewell::sample: points: expected [1|2, 3, 2], found [2, 3, 3]"));
  CHECK_THROWS_MATCHES(sample(space, image, points, fewer), Error,
                       says("sample: points: expected [1|2, 2, 2]"));
  CHECK_THROWS_MATCHES(
      sample<Lanczos>(space, View<Kokkos::complex<double>***>("small", 1, 5, 4), points, values), Error,
      says("sample: grid: expected axes of 6 to 32768 elements, found [1, 5, 4]"));
  CHECK_THROWS_MATCHES(insert(space, values, points, View<Kokkos::complex<double>***>("three", 3, 8, 5)),
                       Error, says("insert: grid: expected batch axis of 1 or 2, found [3, 8, 5]"));
  CHECK_THROWS_MATCHES(sample(space, grid, points, View<Kokkos::complex<double>**>()), Error,
                       says("sample: values"));
  CHECK_THROWS_MATCHES(sample_gradients(space, grid, points, values, {}), Error,
                       says("sample_gradients: gradients: expected at least one output, found none"));
  CHECK_THROWS_MATCHES(sample_gradients(space, grid, points, values, {.points = points}), Error,
                       says("sample_gradients: gradients.points"));
  CHECK_THROWS_MATCHES(insert_gradients(space, values, points, grid, {.grid = of_grid}), Error,
                       says("insert_gradients: gradients.grid: expected none"));
  CHECK_THROWS_MATCHES(sample_gradients(space, grid, points, values, {.grid = grid}), Error,
                       says("gradients.grid"));
}

TEST_CASE("the blocks of docs/building-blocks.md are those of this test") {
  const std::filesystem::path root(BRACEWELL_SOURCE_DIR);
  Test::check_page_examples(root / "tests/project/building_blocks.hpp", {root / "docs/building-blocks.md"});
}
