// Padded copies of spectra: every entry holds what periodicity and Hermitian symmetry give there, once.

#include "../deep_copy.hpp"

#include <bracewell/half.hpp>
#include <bracewell/project/detail/sampling/padded_copy.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <set>
#include <tuple>

using namespace Bracewell;
using namespace Bracewell::Impl;

namespace {

using Space = Kokkos::DefaultExecutionSpace;

Kokkos::complex<float> numbered(std::int64_t i) {
  return {static_cast<float>(i % 2039), static_cast<float>(1 + i / 2039)};
}

template <class Value>
bool same(const Value& a, const Value& b) {
  if constexpr (std::is_same_v<Value, HalfComplex>)
    return a.bits == b.bits;
  else
    return a == b;
}

/// What stands at frequency k of a full spectrum of which the half with 0 <= x <= n/2 is numbered: column n/2
/// of an even width is itself at x = -n/2, too.
template <class Value, int D>
Value expected(const HalfSpectrumLayout<D>& layout, std::int64_t first, const int (&k)[D]) {
  const auto remainder = [](int a, int n) { return (a % n + n) % n; };
  const int n = layout.size[0], x = remainder(k[0], n);
  const int sign = 2 * x > n ? -1 : 1;
  std::int64_t row = 0;
  for (int d = D - 1; d > 0; --d)
    row = row * layout.size[d] + remainder(sign * k[d], layout.size[d]);
  auto value = numbered(first + row * (n / 2 + 1) + (sign < 0 ? n - x : x));
  if (sign < 0)
    value.imag() = -value.imag();
  return Value(value);
}

template <class Value, int D, int width>
void check(const HalfSpectrumLayout<D>& layout) {
  const std::int64_t batches = 3, elements = layout.elements();
  using Order = PaddedOrder<Value, D, width>;
  const Order order(layout);
  CAPTURE(layout.size[0], layout.size[1], layout.size[D - 1]);
  CHECK(order.usable_size() == order.size);
  if (D == 3)
    CHECK(order.across * order.down * order.deep * sizeof(typename Order::Entry) == 128);

  const Kokkos::View<Value*, Space> stored("stored", batches * elements);
  const auto host = Kokkos::create_mirror_view(stored);
  for (std::int64_t i = 0; i < batches * elements; ++i)
    host(i) = Value(numbered(i));
  Test::deep_copy(stored, host);
  const Kokkos::View<typename Order::Entry*, Space> entries("entries", batches * order.size);
  copy_to_padded<Mates::Single>(Space(), "copy", layout, StoredSpectra<Value>{stored.data(), elements},
                                batches, PaddedSpectra<Value, D, width>{entries.data(), order, false});

  const auto copied = Test::on_host(entries);
  std::set<std::int64_t> places;
  bool equal = true, inside = true;
  std::int64_t count = 0;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    int high[D], k[D];
    for (int d = 0; d < D; ++d)
      high[d] = layout.size[d] / 2 + (d == 0 ? width : 1 + width / 2);
    std::copy(std::begin(order.low), std::end(order.low), k);
    for (int d = 0; d < D;) {
      std::int64_t place = order.offset_x(k[0]) + order.offset_y(k[1]);
      if constexpr (D == 3)
        place += order.offset_z(k[2]);
      inside = inside && place < order.size;
      place += batch * order.size;
      places.insert(place);
      ++count;
      for (int r = 0; inside && r < Order::together; ++r) {
        ++k[0];
        int tap[D];
        std::copy(std::begin(k), std::end(k), tap);
        tap[0] -= 1;
        equal = equal && same(copied(place).value[r], expected<Value>(layout, batch * elements, tap));
      }
      k[0] -= Order::together;
      for (d = 0; d < D && ++k[d] > high[d]; ++d) // the next frequency; beyond the last d is D
        k[d] = order.low[d];
    }
  }
  CHECK(inside);
  CHECK(equal);
  CHECK(std::int64_t(places.size()) == count);
}

} // namespace

TEMPLATE_TEST_CASE("padded copies hold the continued spectrum", "", HalfComplex, Kokkos::complex<float>,
                   Kokkos::complex<double>) {
  for (const auto& layout : {HalfSpectrumLayout<3>{{8, 8, 8}}, HalfSpectrumLayout<3>{{13, 7, 5}},
                             HalfSpectrumLayout<3>{{2, 3, 4}}, HalfSpectrumLayout<3>{{30, 9, 2}}}) {
    check<TestType, 3, 2>(layout);
    check<TestType, 3, 4>(layout);
  }
  for (const auto& layout : {HalfSpectrumLayout<2>{{8, 8}}, HalfSpectrumLayout<2>{{13, 7}},
                             HalfSpectrumLayout<2>{{2, 3}}, HalfSpectrumLayout<2>{{30, 9}}}) {
    check<TestType, 2, 2>(layout);
    check<TestType, 2, 4>(layout);
  }
}

TEST_CASE("neighbours share a block") {
  const PaddedOrder<Kokkos::complex<float>, 3, 2> order(HalfSpectrumLayout<3>{{8, 8, 8}});
  const auto block = [&](int x, int y, int z) {
    return (order.offset_x(order.low[0] + x) + order.offset_y(order.low[1] + y) +
            order.offset_z(order.low[2] + z)) /
           order.elements;
  };
  CHECK(block(0, 0, 0) == block(3, 1, 1));
  CHECK(block(0, 0, 0) != block(4, 0, 0));
  CHECK(block(0, 0, 0) != block(0, 2, 0));
  CHECK(block(0, 0, 0) != block(0, 0, 2));
}

TEST_CASE("rows of planes begin half a line of the cache apart") {
  for (const int n : {7, 8, 128, 255}) {
    CHECK(PaddedOrder<Kokkos::complex<float>, 2, 4>(HalfSpectrumLayout<2>{{n, n}}).stride[1] % 8 == 4);
    CHECK(PaddedOrder<Kokkos::complex<double>, 2, 2>(HalfSpectrumLayout<2>{{n, n}}).stride[1] % 8 == 4);
  }
}

TEST_CASE("spectra that 32 bits cannot index are not copied") {
  using Order = PaddedOrder<Kokkos::complex<float>, 3, 4>;
  CHECK(Order(HalfSpectrumLayout<3>{{2048, 2048, 2048}}).usable_size() == 0);
  CHECK(Order(HalfSpectrumLayout<3>{{1600, 1600, 1600}}).usable_size() == std::int64_t(808) * 1608 * 1606);
}
