// SPDX-License-Identifier: MIT
// What is known of the frames of a scan: orders of angles, kinds, times, and what is left out.
#include <bracewell/error.hpp>
#include <bracewell/tomography/scan.hpp>

#include <catch2/catch_test_macros.hpp>

#include <set>

using namespace Bracewell;

namespace {

constexpr double pi = std::numbers::pi, golden = 0.6180339887498949;

std::vector<double> angles_of(const std::vector<ScanFrame>& frames) {
  std::vector<double> angles;
  for (const ScanFrame& frame : frames)
    angles.push_back(frame.angle);
  return angles;
}

/// Every frame once, in rising order within a turn, each at its own angle modulo a turn.
void check_sorted(const std::vector<double>& given) {
  const std::vector<ScanFrame> sorted = TomographyScan::of(given).projections();
  REQUIRE(sorted.size() == given.size());
  std::set<std::int64_t> places;
  for (std::size_t p = 0; p < sorted.size(); ++p) {
    places.insert(sorted[p].place);
    CHECK((p == 0 || sorted[p].angle >= sorted[p - 1].angle));
    CHECK(sorted[p].angle - sorted[0].angle <= 2 * pi);
    CHECK(std::abs(std::remainder(sorted[p].angle - given[std::size_t(sorted[p].place)], 2 * pi)) < 1e-8);
  }
  CHECK(places.size() == given.size());
}

} // namespace

TEST_CASE("projections come in the order of their angles, those in order as they are") {
  std::vector<double> rising, falling, turns, golden_order, unwrapped, interlaced, encoder;
  for (int p = 0; p < 120; ++p) {
    rising.push_back(p * pi / 120), falling.push_back(1 - p * pi / 120), turns.push_back(p * pi / 40);
    unwrapped.push_back(p * pi * golden), golden_order.push_back(std::fmod(p * pi * golden, pi));
    interlaced.push_back((p % 24 * 5 + p / 24) * 2 * pi / 120), encoder.push_back(p * 1000.);
  }
  for (const auto& angles : {rising, falling, turns})
    CHECK(angles_of(TomographyScan::of(angles).projections()) == angles);
  for (const auto& angles : {golden_order, unwrapped, interlaced, encoder})
    check_sorted(angles);
  CHECK(TomographyScan().projections().empty());
  check_sorted({0.3});
  check_sorted({0.5, 0.2, 0.5, 0.2}); // twice the same
  // A wedge is missing across 0: the order begins behind it.
  const std::vector<ScanFrame> wedge = TomographyScan::of({1, 0.5, 4, 5, 6, 0}).projections();
  CHECK(wedge.front().place == 2);
  CHECK(wedge.back().place == 0);
}

TEST_CASE("frames of other kinds and invalid ones are no projections; flat frames have times") {
  // Flat, flat, dark; two projections; flat, something else; three projections; flat
  const std::vector<int> keys{1, 1, 2, 0, 0, 1, 3, 0, 0, 0, 1};
  TomographyScan scan = TomographyScan::of({0, 1, 2, 3, 4}, keys);
  CHECK(angles_of(scan.projections()) == std::vector<double>{0, 1, 2, 3, 4});
  CHECK(angles_of(TomographyScan::of({0, 0, 0, 5, 6, 0, 0, 5.5, 5.7, 5.9, 0}, keys).projections()) ==
        std::vector<double>{5, 5.5, 5.7, 5.9, 6});
  CHECK(scan.frames[6].kind == FrameKind::Other);
  REQUIRE(scan.flats().size() == 3);
  CHECK(scan.flats()[0].size() == 2);
  CHECK(scan.valid(FrameKind::Dark).size() == 1);
  // Times of flat frames: 0.5, 5 and 10. Projections: 3, 4, 7, 8 and 9.
  const std::vector<double> places = scan.flat_places(scan.projections());
  const std::vector<double> expected{2.5 / 4.5, 3.5 / 4.5, 1 + 2 / 5., 1 + 3 / 5., 1 + 4 / 5.};
  REQUIRE(places.size() == expected.size());
  for (std::size_t p = 0; p < places.size(); ++p)
    CHECK(std::abs(places[p] - expected[p]) < 1e-12);
  CHECK(scan.flat_places(scan.projections(), true) == std::vector<double>{1, 1, 1, 2, 2});

  scan.frames[3].valid = scan.frames[4].valid = scan.frames[0].valid = false;
  CHECK(angles_of(scan.projections()) == std::vector<double>{2, 3, 4});
  REQUIRE(scan.flats().size() == 3); // projections that are left out were taken, too
  CHECK(scan.flats()[0][0].place == 1);
  scan.frames[10].valid = false;
  CHECK(scan.flat_places(scan.projections()) == std::vector<double>{1, 1, 1}); // after the last time
  // Times that the file says
  const TomographyScan timed = TomographyScan::of({0, 1}, {1, 0, 0, 1}, {100, 110, 140, 200});
  CHECK(timed.flat_places(timed.projections()) == std::vector<double>{0.1, 0.4});
}

TEST_CASE("numbers of frames that do not fit are errors") {
  CHECK_THROWS_AS(TomographyScan::of({0, 1}, {0, 0, 0, 1}), Error);
  CHECK_THROWS_AS(TomographyScan::of({0, 1}, {}, {0}), Error);
  CHECK_THROWS_AS(TomographyScan::of({0, std::nan("")}), Error);
  CHECK(TomographyScan::of({std::nan(""), 1}, {1, 0}).projections().size() == 1); // none of the flat frame
}
