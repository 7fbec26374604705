// insert_samples beside Inserter::add one by one, which building_blocks.cpp compares with definitions.

#include "../deep_copy.hpp"
#include "building_blocks.hpp"

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/linear.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <random>

namespace {

using Device = Kokkos::DefaultExecutionSpace;
template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Kokkos::HostSpace>;
template <class AnyView>
auto on_device(const AnyView& view) {
  return Test::on_device(view);
}
template <class T>
constexpr double rounding = sizeof(T) == 4 ? 1e-5 : 1e-12;

/// The sums of insert_samples on the device, and the same by one Inserter::add after the other on the host.
template <class Kernel, class T, int M, Mates mates>
void insert_many(std::int64_t poses, int n, int N, bool shifted, KernelWeights kernel_weights,
                 std::optional<double> radius) {
  using Complex = Kokkos::complex<T>;
  HalfSpectrumLayout<M> box;
  HalfSpectrumLayout<3> volume;
  for (int c = 0; c < M; ++c)
    box.size[c] = c == 0 ? n : n - 1;
  for (int d = 0; d < 3; ++d)
    volume.size[d] = N + d % 2;
  const std::int64_t elements = box.elements();
  const View<Complex**> values("values", poses, elements);
  const View<T**> weights("weights", poses, elements);
  const View<T***> matrices("matrices", poses, 3, 3);
  const View<T**> shifts("shifts", poses, M);
  std::mt19937 engine(19);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values.data()[i] = Complex(T(uniform(engine)), T(uniform(engine)));
    weights.data()[i] = T(uniform(engine));
  }
  for (std::size_t i = 0; i < matrices.size(); ++i)
    matrices.data()[i] = T(0.7 * uniform(engine));
  for (std::size_t i = 0; i < shifts.size(); ++i)
    shifts.data()[i] = T(3 * uniform(engine));
  const T oversampling = T(1.25);
  const double limit = radius.value_or((n - 1) / 2.0);

  const std::int64_t size = volume.elements();
  const View<Complex*> data("data", size);
  const View<T*> weight("weight", size);
  const Inserter<Kernel, T, 3, mates> insert(HalfSpectrum<T, 3>(data.data(), volume), weight.data(),
                                             kernel_weights);
  for (std::int64_t p = 0; p < poses; ++p) {
    const Pose<T, M, 3> pose(&matrices(p, 0, 0), shifted ? &shifts(p, 0) : nullptr, oversampling, box);
    for (std::int64_t e = 0; e < elements; ++e) {
      int k[M];
      box.frequency(e, k);
      double squared = 0;
      for (const int one : k)
        squared += double(one) * one;
      T q[3];
      pose.position(k, q);
      if (squared <= limit * limit)
        insert.add(q, values(p, e) * Kokkos::conj(pose.phase(k)), weights(p, e));
    }
  }

  const Device space;
  const int copies = Impl::is_host<Device> ? space.concurrency() : 1;
  const Page::View<Complex**, Device> all_data("data", copies, size);
  const Page::View<T**, Device> all_weights("weights", copies, size);
  const auto values_there = on_device(values);
  const auto weights_there = on_device(weights);
  const auto matrices_there = on_device(matrices);
  const auto shifts_there = on_device(shifts);
  const HalfSpectrum<T, 3> first(all_data.data(), volume);
  const auto sum = [&](const auto& copied, auto total) {
    const auto here = Test::on_host(copied);
    Test::deep_copy(total, typename decltype(total)::value_type(0));
    for (int c = 0; c < copies; ++c)
      for (std::int64_t i = 0; i < size; ++i)
        total(i) += here(c, i);
    return total;
  };
  const auto close = [&](const auto& found, const auto& expected) {
    double off = 0, norm = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      off += std::pow(double(Kokkos::abs(found(i) - expected(i))), 2);
      norm += std::pow(double(Kokkos::abs(expected(i))), 2);
    }
    CHECK(norm > 0);
    CHECK(std::sqrt(off) < 5 * rounding<T> * std::sqrt(norm));
  };
  const T* const no_shifts = nullptr;
  insert_samples(
      space, "weighted", box, poses, matrices_there.data(), shifted ? shifts_there.data() : no_shifts,
      oversampling, Inserter<Kernel, T, 3, mates>(first, all_weights.data(), kernel_weights),
      KOKKOS_LAMBDA(std::int64_t p, const int(&)[M], std::int64_t e) {
        return WeightedValue<T>(values_there(p, e), weights_there(p, e));
      },
      radius);
  close(sum(all_data, View<Complex*>("sum", size)), data);
  close(sum(all_weights, View<T*>("sum", size)), weight);

  Test::deep_copy(all_data, Complex(0));
  insert_samples(
      space, "plain", box, poses, matrices_there.data(), shifted ? shifts_there.data() : no_shifts,
      oversampling, Inserter<Kernel, T, 3, mates>(first),
      KOKKOS_LAMBDA(std::int64_t p, const int(&)[M], std::int64_t e) { return values_there(p, e); }, radius);
  close(sum(all_data, View<Complex*>("sum", size)), data);
}

struct Ones {
  KOKKOS_FUNCTION Kokkos::complex<float> operator()(std::int64_t, const int (&)[2], std::int64_t) const {
    return 1;
  }
};

} // namespace

TEST_CASE("values and weights of many samples are inserted as one by one") {
  // Enough samples for patches on GPUs, and few.
  insert_many<CatmullRom, float, 2, Mates::Both>(300, 21, 30, true, KernelWeights::Absolute, 12.5);
  insert_many<CatmullRom, float, 2, Mates::Both>(1, 9, 12, false, KernelWeights::Signed, std::nullopt);
  insert_many<Linear, double, 2, Mates::Single>(400, 22, 27, true, KernelWeights::Signed, std::nullopt);
  insert_many<Linear, double, 3, Mates::Both>(5, 10, 14, true, KernelWeights::Absolute, std::nullopt);
}

TEST_CASE("insert_samples says what it cannot do") {
  const Device space;
  const Page::View<Kokkos::complex<float>*, Device> data("data", 8 * 8 * 5);
  const HalfSpectrum<float, 3> volume(data.data(), {{8, 8, 8}});
  const auto insert = [&](int side, std::int64_t poses, std::optional<double> radius) {
    const float* const none = nullptr;
    insert_samples(space, "label", HalfSpectrumLayout<2>{{side, 8}}, poses, none, none, 1.f,
                   Inserter<Linear, float, 3>(volume), Ones{}, radius);
  };
  const auto named = [](const char* what) {
    return Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(what));
  };
  CHECK_THROWS_MATCHES(insert(0, 1, {}), Error, named("box"));
  CHECK_THROWS_MATCHES(insert(40000, 1, {}), Error, named("box"));
  CHECK_THROWS_MATCHES(insert(8, -1, {}), Error, named("poses"));
  CHECK_THROWS_MATCHES(insert(8, 1, -1.0), Error, named("radius"));
  insert(8, 0, {}); // nothing
  const Page::View<float*, Device> weights("weights", 8 * 8 * 5);
  const float* const none = nullptr;
  CHECK_THROWS_MATCHES(insert_samples(space, "label", HalfSpectrumLayout<2>{{8, 8}}, 1, none, none, 1.f,
                                      Inserter<Linear, float, 3>(volume, weights.data()), Ones{}),
                       Error, named("target: expected no weights"));
}
