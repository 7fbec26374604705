// Which kernel runs: plain functions of the problem, at and around their thresholds on an H200.

#include <bracewell/project/choose.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace Bracewell;

namespace {

/// 64 poses of a batch of two volumes of 64^3 in float, by Catmull-Rom.
SamplingWork volumes() {
  return {.dimensions = 3,
          .projection_dimensions = 2,
          .width = 4,
          .value_bytes = 4,
          .batches = 2,
          .poses = 64,
          .projection_elements = 64 * 33,
          .elements = 64 * 64 * 33};
}

SamplingWork images() {
  SamplingWork work = volumes();
  work.dimensions = 2;
  work.elements = 64 * 33;
  work.batches = 1;
  return work;
}

template <class Change>
Sampling of(SamplingWork work, const Change& change) {
  change(work);
  return choose_sampling(work);
}

} // namespace

TEST_CASE("hosts sample by rows, whatever they are given") {
  CHECK(of(volumes(), [](auto& work) { work.host = true; }) == Sampling::Rows);
  CHECK(of(volumes(), [](auto& work) { work.host = work.prepared = true; }) == Sampling::Rows);
}

TEST_CASE("gradients of poses are sums, everywhere") {
  for (const bool host : {false, true})
    CHECK(of(volumes(), [&](auto& work) {
            work.pose_gradients = true;
            work.host = host;
          }) == Sampling::PoseSums);
}

TEST_CASE("what is prepared is sampled from padded copies") {
  const auto prepared = [](auto& work) { work.prepared = true; };
  CHECK(of(volumes(), [](auto&) {}) == Sampling::Tiles);
  CHECK(of(volumes(), prepared) == Sampling::PaddedCopies);
  CHECK(of(images(), prepared) == Sampling::PaddedCopies);
  CHECK(of(volumes(), [&](auto& work) { prepared(work), work.poses = 1024, work.batches = 32; }) ==
        Sampling::PaddedCopies);
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
