// Which kernel runs: plain functions of the problem, at and around their thresholds on an H200.

#include <bracewell/project/choose.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace Bracewell;

TEST_CASE("hosts sample by rows, whatever they are given") {
  CHECK(choose_sampling({.host = true}) == Sampling::Rows);
  CHECK(choose_sampling({.host = true, .prepared = true}) == Sampling::Rows);
}

TEST_CASE("gradients of poses are sums, everywhere") {
  for (const bool host : {false, true})
    for (const bool prepared : {false, true})
      CHECK(choose_sampling({.host = host, .prepared = prepared, .pose_gradients = true}) ==
            Sampling::PoseSums);
}

TEST_CASE("what is prepared is sampled from padded copies") {
  CHECK(choose_sampling({}) == Sampling::Tiles);
  CHECK(choose_sampling({.prepared = true}) == Sampling::PaddedCopies);
}

TEST_CASE("insertion is what was asked for, by the kernel for the space") {
  InsertionWork work{.dimensions = 3,
                     .projection_dimensions = 2,
                     .width = 4,
                     .batches = 1,
                     .poses = 128,
                     .projection_elements = 64 * 33,
                     .threads = 132 * 2048};
  CHECK(choose_insertion(work) == Insertion::Patches);
  SECTION("patches need samples enough, flat projections of two dimensions, and poses that an int counts") {
    work.poses = 15;
    CHECK(choose_insertion(work) == Insertion::Atomic);
    work.dimensions = 2; // four times as many additions meet
    CHECK(choose_insertion(work) == Insertion::Patches);
    work.poses = std::int64_t(1) << 31;
    CHECK(choose_insertion(work) == Insertion::Atomic);
    work.poses = 128, work.curved = true;
    CHECK(choose_insertion(work) == Insertion::Atomic);
    work.curved = false, work.projection_dimensions = 3;
    CHECK(choose_insertion(work) == Insertion::Atomic);
  }
  work.strategy = Strategy::Owned;
  CHECK(choose_insertion(work) == Insertion::OwnedGpu);
  work.strategy = Strategy::Duplicated;
  CHECK(choose_insertion(work) == Insertion::Duplicated);
  work.host = true;
  CHECK(choose_insertion(work) == Insertion::Duplicated);
  work.strategy = Strategy::Automatic;
  CHECK(choose_insertion(work) == Insertion::OwnedHost);
  work.strategy = Strategy::Atomic;
  CHECK(choose_insertion(work) == Insertion::AtomicHost);
}
