// Volumes copied to blocked order: every element where the order says, blocks of 128 bytes.

#include <bracewell/half.hpp>
#include <bracewell/rfft/blocked.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <set>

using namespace Bracewell;
using namespace Bracewell::Impl;

namespace {

using Space = Kokkos::DefaultExecutionSpace;

template <class Value>
Value numbered(std::int64_t i) {
  const auto number = Kokkos::complex<float>(static_cast<float>(i % 2039), static_cast<float>(i / 2039));
  if constexpr (std::is_same_v<Value, float>)
    return static_cast<float>(i);
  else if constexpr (std::is_same_v<Value, HalfComplex>)
    return HalfComplex(number);
  else
    return Value(number);
}

template <class Value>
bool same(const Value& a, const Value& b) {
  if constexpr (std::is_same_v<Value, HalfComplex>)
    return a.real_bits == b.real_bits && a.imaginary_bits == b.imaginary_bits;
  else
    return a == b;
}

} // namespace

TEMPLATE_TEST_CASE("blocked order holds every element of every volume once", "", float, HalfComplex,
                   Kokkos::complex<float>, Kokkos::complex<double>) {
  const auto layout = GENERATE(HalfSpectrumLayout<3>{{8, 8, 8}}, HalfSpectrumLayout<3>{{13, 7, 5}},
                               HalfSpectrumLayout<3>{{1, 1, 1}}, HalfSpectrumLayout<3>{{30, 9, 2}});
  const std::int64_t volumes = 3, elements = layout.elements();
  const BlockedOrder<TestType> order(layout);
  CHECK(order.width * order.height * order.depth * sizeof(TestType) == 128);
  CHECK(order.usable_size() == order.size);

  const Kokkos::View<TestType*, Space> stored("stored", volumes * elements),
      blocks("blocks", volumes * order.size);
  const auto host = Kokkos::create_mirror_view(stored);
  for (std::int64_t i = 0; i < volumes * elements; ++i)
    host(i) = numbered<TestType>(i);
  Kokkos::deep_copy(stored, host);
  copy_to_blocks(Space(), "blocks", layout, StoredVolumes<TestType>{stored.data(), elements}, volumes,
                 blocks.data());

  const auto copied = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), blocks);
  std::set<std::int64_t> places;
  bool equal = true;
  for (std::int64_t i = 0; i < volumes * elements; ++i) {
    const std::int64_t within = i % elements, row = within / layout.columns();
    const std::int64_t place = i / elements * order.size +
                               order.column(static_cast<unsigned>(within % layout.columns())) +
                               order.line(static_cast<unsigned>(row % layout.size[1])) +
                               order.layer(static_cast<unsigned>(row / layout.size[1]));
    REQUIRE(place < volumes * order.size);
    places.insert(place);
    equal = equal && same(copied(place), numbered<TestType>(i));
  }
  CHECK(equal);
  CHECK(std::int64_t(places.size()) == volumes * elements);
}

TEST_CASE("neighbours share a block") {
  const BlockedOrder<Kokkos::complex<float>> order(HalfSpectrumLayout<3>{{8, 8, 8}});
  const auto block = [&](unsigned x, unsigned y, unsigned z) {
    return (order.column(x) + order.line(y) + order.layer(z)) / order.elements;
  };
  CHECK(block(0, 0, 0) == block(3, 1, 1));
  CHECK(block(0, 0, 0) != block(4, 0, 0));
  CHECK(block(0, 0, 0) != block(0, 2, 0));
  CHECK(block(0, 0, 0) != block(0, 0, 2));
}

TEST_CASE("volumes that 32 bits cannot index are not copied") {
  CHECK(BlockedOrder<Kokkos::complex<float>>(HalfSpectrumLayout<3>{{2048, 2048, 2048}}).usable_size() == 0);
  CHECK(BlockedOrder<Kokkos::complex<float>>(HalfSpectrumLayout<3>{{1600, 1600, 1600}}).usable_size() ==
        std::int64_t(804) * 1600 * 1600);
}
