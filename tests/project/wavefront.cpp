// Loops over tiles with as many lanes as a warp and as a wavefront have: the lanes are emulated one by one on hosts.

#include <bracewell/project/detail/tiles.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <vector>

namespace {

using Space = Kokkos::DefaultHostExecutionSpace;

/// Counts the visits of every element of every projection, and those with a wrong frequency.
template <int M>
struct CountVisits {
  struct OfPose {
    int* visits;
  };

  Bracewell::HalfSpectrumLayout<M> layout;
  int *visits, *wrong;

  KOKKOS_FUNCTION OfPose of_pose(std::int64_t pose) const { return {visits + pose * layout.elements()}; }

  template <class Index>
  KOKKOS_FUNCTION void sample(const OfPose& at, const int (&k)[M], Index element) const {
    int expected[M];
    layout.frequency(static_cast<std::int64_t>(element), expected);
    ++at.visits[element];
    for (int c = 0; c < M; ++c)
      *wrong += k[c] != expected[c];
  }
};

template <int lanes, int columns, int M>
void check(const Bracewell::HalfSpectrumLayout<M>& layout) {
  const std::int64_t poses = 3;
  const auto tiles = Bracewell::Impl::Tiles<M, columns>::make(Space(), layout, poses);
  std::vector<int> visits(poses * layout.elements());
  int wrong = 0;
  const Bracewell::Impl::TileLoop<CountVisits<M>, M, columns, lanes> loop{{layout, visits.data(), &wrong},
                                                                          tiles};
  for (std::int64_t i = 0; i < poses * tiles.per_pose * lanes; ++i)
    loop(i);
  CHECK(wrong == 0);
  CHECK(std::count(visits.begin(), visits.end(), 1) == std::int64_t(visits.size()));
}

} // namespace

TEST_CASE("warps of 32 and wavefronts of 64 lanes visit every sample once") {
  for (const int width : {1, 14, 15, 33})
    for (const int height : {1, 7, 64, 65}) {
      CAPTURE(width, height);
      const Bracewell::HalfSpectrumLayout<2> layout{width, height};
      check<32, 8>(layout);
      check<64, 8>(layout);
      check<32, 16>(layout);
      check<64, 16>(layout);
    }
  check<32, 8>(Bracewell::HalfSpectrumLayout<3>{9, 7, 12});
  check<64, 8>(Bracewell::HalfSpectrumLayout<3>{9, 7, 12});
}
