// Kernels, accessors and functors of one's own: against sums over the full spectrum in long-hand.

#include "../page_examples.hpp"
#include "kernel_definitions.hpp"

#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <complex>
#include <random>
#include <vector>

namespace {

using namespace Test;
using Space = Kokkos::DefaultHostExecutionSpace;
template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Kokkos::HostSpace>;

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
  const View<Kokkos::complex<T>****> volume("volume", 1, 8, 8, 5);
  CHECK_THROWS_MATCHES((Sampler<Kernel, T, 3>(HalfSpectrum<const T, 3>(volume.data(), {{8, 8, 8}}))), Error,
                       Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(
                           "Bracewell::Sampler: Kernel: expected " + sentence)));
}

} // namespace

TEST_CASE("what only a run tells of a kernel is an error before anything is written") {
  refuse<WrongLanczos<Fault::Skewed>, float>("an even kernel");
  refuse<WrongLanczos<Fault::Slopes>, float>("derivatives that are the slopes");
  refuse<WrongLanczos<Fault::Edge>, double>("continuous weights that are zero at the edge");

  using Kernel = WrongLanczos<Fault::Edge>;
  const View<Kokkos::complex<float>****> volume("volume", 1, 8, 8, 5), images("images", 1, 1, 8, 5);
  const View<float****> matrices("matrices", 1, 1, 3, 3);
  const auto says = [](const std::string& function) {
    return Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(
        "Bracewell::" + function + ": Kernel: expected continuous weights that are zero at the edge"));
  };
  const Space space;
  CHECK_THROWS_MATCHES(project<Kernel>(space, volume, {.matrices = matrices}, images), Error,
                       says("project"));
  CHECK_THROWS_MATCHES(backproject<Kernel>(space, images, {.matrices = matrices}, {.data = volume}), Error,
                       says("backproject"));
  CHECK_THROWS_MATCHES(prepare<Kernel>(space, volume), Error, says("PreparedReference"));
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

TEST_CASE("the blocks of docs/building-blocks.md are those of this test") {
  const std::filesystem::path root(BRACEWELL_SOURCE_DIR);
  Test::check_page_examples(root / "tests/project/building_blocks.hpp", {root / "docs/building-blocks.md"});
}
