// SPDX-License-Identifier: MIT
// Which kernel runs: the functions that decide, and that plans do as they say.
#include "../tools/recorder.hpp"
#include "support.hpp"

#include <bracewell/gridding/cost.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace GriddingTest;
using Bracewell::choose_interpolation;
using Bracewell::Gridding;
using Bracewell::GriddingInterpolation;

TEST_CASE(
    "the cost function prefers tiles where slices are many on GPUs, bins where they are few and on hosts, "
    "on GPUs atomics where samples are few") {
  using Bracewell::choose_gridding_strategy;
  const double n = 1448;
  CHECK(choose_gridding_strategy({2 * n * n, 32, 4 * n * n, 5, 2, false}) == GriddingStrategy::Tiles);
  CHECK(choose_gridding_strategy({2000, 1, 4 * n * n, 5, 2, false}) == GriddingStrategy::Atomic);
  CHECK(choose_gridding_strategy({2 * n * n, 32, 4 * n * n, 5, 2, true}) == GriddingStrategy::Bins);
  for (const int dimensions : {1, 2, 3})
    for (const bool host : {false, true})
      CHECK(choose_gridding_strategy({1e7, 1, 1e7, 8, dimensions, host}) == GriddingStrategy::Bins);
  CHECK(choose_gridding_strategy({2000, 1, 4 * n * n, 5, 2, true}) == GriddingStrategy::Bins);
}

TEST_CASE("on a GPU the strategies are chosen that were the fastest on an H200") {
  // docs/lab/gridding-and-tomography.md: times of both directions
  using enum GriddingStrategy;
  const auto polar = [](double n, double slices) {
    return Bracewell::choose_gridding_strategy({.points = 2 * n * n,
                                                .slices = slices,
                                                .cells = 2.25 * n * n,
                                                .width = 6,
                                                .dimensions = 2,
                                                .host = false,
                                                .order = SampleOrder::SlicesLast});
  };
  for (const double n : {724., 1448.}) {
    for (const double slices : {1, 2, 4})
      CHECK(polar(n, slices) == Bins);
    for (const double slices : {8, 16, 32, 64})
      CHECK(polar(n, slices) == Tiles);
  }
  const auto random = [](double points, double slices, double size, int width, int dimensions) {
    return Bracewell::choose_gridding_strategy(
        {points, slices, std::pow(size, dimensions), width, dimensions, false});
  };
  for (const int width : {4, 7, 8})
    for (const double points : {1e6, 1e7}) {
      CHECK(random(points, 1, 1024, width, 2) == Bins);
      CHECK(random(points, 1, 256, width, 3) == Bins);
    }
  for (const double slices : {1, 4, 8, 16}) {
    CHECK(random(1e6, slices, 1024, 8, 2) == Bins);
    CHECK(random(1e6, slices, 192, 8, 3) == (slices < 4 ? Bins : OwnedBoxes));
    CHECK((random(1e6, slices, 1024, 4, 2) == Bins) == (slices <= 4));
  }
  CHECK(random(3e4, 1, 1024, 4, 2) == Atomic);
  const auto volume = [](double points, double size, int width, bool matrices) {
    return Bracewell::choose_gridding_strategy({.points = points,
                                                .slices = 1,
                                                .cells = size * size * size,
                                                .width = width,
                                                .dimensions = 3,
                                                .host = false,
                                                .matrices = matrices});
  };
  for (const double points : {3e4, 1e5})
    for (const bool wide : {false, true})
      CHECK(volume(points, wide ? 256 : 192, wide ? 8 : 5, true) == MatrixBoxes); // 1.2 to 2.8 times as fast
  CHECK(volume(1e4, 96, 5, true) == MatrixBoxes);
  CHECK(volume(1e4, 256, 8, true) == MatrixBoxes);
  CHECK(volume(3e4, 256, 8, false) == Atomic);
  CHECK(volume(1e3, 192, 5, true) == Atomic);
  for (const double slices : {4, 16})
    CHECK(random(3e4, slices, 1024, 7, 2) == Tiles);
}

TEST_CASE("on a host bins are chosen for rays and random points, as was the fastest in both directions") {
  // docs/lab/gridding-and-tomography.md: rays in float with a kernel of 5 points, random points in double
  using enum GriddingStrategy;
  const double n = 362;
  for (const double slices : {1, 4, 8, 16, 32, 64})
    CHECK(Bracewell::choose_gridding_strategy(
              {2 * n * n, slices, 4 * n * n, 5, 2, true, true, SampleOrder::SlicesLast}) == Bins);
  for (const double slices : {1, 4, 16})
    CHECK(Bracewell::choose_gridding_strategy({3e5, slices, 4 * n * n, 8, 2, true}) == Bins);
}

TEST_CASE("on GPUs sorted samples are spread by teams that own boxes where that was faster on an H200") {
  // docs/lab/gridding-and-tomography.md
  using enum GriddingStrategy;
  const Bracewell::SortedWork eight{.points = 1e6,
                                    .slices = 8,
                                    .largest_bin = 480,
                                    .largest_box = 1400,
                                    .width = 6,
                                    .dimensions = 3,
                                    .order = SampleOrder::SlicesFirst,
                                    .value_bytes = 4,
                                    .lanes = 270336,
                                    .cells = 192. * 192 * 192,
                                    .boxes = true,
                                    .matrices = true};
  const auto choice = [&](const auto& change) {
    Bracewell::SortedWork work = eight;
    change(work);
    return choose_sorted_strategy(work);
  };
  for (const bool matrices : {false, true}) {
    CAPTURE(matrices);
    const auto with = [&](const auto& change) {
      return choice([&](auto& work) { work.matrices = matrices, change(work); });
    };
    for (const double slices : {4, 8, 16, 64})
      CHECK(with([&](auto& work) { work.slices = slices; }) == OwnedBoxes);
    CHECK(with([](auto& work) { work.slices = 2; }) == (matrices ? MatrixBoxes : Bins));
    CHECK(with([](auto& work) { work.largest_bin = 1e5, work.largest_box = 2e5; }) ==
          Bins); // a team would have 26 times another's share
    CHECK(with([](auto& work) { work.points = work.largest_bin = 500; }) == OwnedBoxes); // no time at all
    CHECK(with([](auto& work) { work.points = 1e7, work.largest_bin = 4600, work.largest_box = 14000; }) ==
          Bins);
    CHECK(with([](auto& work) {
            work.points = 1e7, work.largest_bin = 4600, work.order = SampleOrder::SlicesLast;
          }) == OwnedBoxes);
    CHECK(with([](auto& work) { work.boxes = work.matrices = false; }) == Bins);
    CHECK(with([](auto& work) { work.slices = 4, work.value_bytes = 8; }) ==
          (matrices ? MatrixBoxes : OwnedBoxes));
    CHECK(with([](auto& work) { work.value_bytes = 8, work.order = SampleOrder::SlicesLast; }) == OwnedBoxes);
    for (const int dimensions : {1, 2})
      CHECK(with([&](auto& work) { work.dimensions = dimensions; }) == Bins);
  }
  // A box with many more samples than the others holds up a team.
  const auto crowded = [&](int value_bytes, double largest_box) {
    return choice([&](auto& work) {
      work.slices = 1, work.points = 1e5, work.cells = 300. * 300 * 300, work.value_bytes = value_bytes,
      work.largest_box = largest_box;
    });
  };
  for (const int value_bytes : {4, 8}) {
    CHECK(crowded(value_bytes, 100) == MatrixBoxes);
    CHECK(crowded(value_bytes, 8e4) == Bins);
  }
}

TEST_CASE(
    "on GPUs points that crowd or have few boxes go to matrix units where they were faster on an H200") {
  // docs/lab/gridding-and-tomography.md, 2026-11-29: of whole adjoints, milliseconds by bins and by matrices
  struct Row {
    int value_bytes, width;
    double size, points, slices, largest_bin, largest_box, bins, matrices;
  };
  const Row rows[] = {{8, 11, 112, 1e5, 1, 161, 1321, 0.456, 0.223},
                      {4, 8, 96, 1e5, 1, 151, 1442, 0.285, 0.099},
                      {8, 11, 112, 1e5, 8, 161, 1321, 3.314, 1.418},
                      {8, 11, 112, 1e5, 1, 3561, 8880, 0.54, 0.694},
                      {4, 8, 96, 1e5, 1, 3134, 8752, 0.32, 0.352},
                      {8, 11, 112, 1e5, 8, 3561, 8880, 3.346, 2.048},
                      {8, 11, 112, 1e5, 1, 18962, 28592, 0.517, 1.99},
                      {4, 8, 96, 1e5, 1, 17330, 27438, 0.33, 1.032},
                      {8, 11, 112, 1e5, 8, 18962, 28592, 3.1, 3.681},
                      {8, 11, 112, 1e6, 1, 1485, 12779, 2.766, 1.653},
                      {4, 7, 112, 1e6, 1, 737, 7803, 0.682, 0.569},
                      {8, 11, 112, 1e6, 8, 1485, 12779, 20.421, 10.507},
                      {8, 11, 112, 1e6, 1, 36395, 90309, 2.371, 6.534},
                      {4, 7, 112, 1e6, 1, 22742, 62785, 0.699, 2.36},
                      {8, 11, 112, 1e6, 8, 36395, 90309, 17.677, 17.746},
                      {8, 11, 112, 1e6, 1, 189576, 284475, 2.073, 19.126},
                      {4, 7, 112, 1e6, 1, 146749, 228278, 0.781, 8.599},
                      {8, 11, 112, 1e6, 8, 189576, 284475, 14.719, 32.043},
                      {8, 13, 192, 1e5, 1, 15, 355, 4.578, 0.592},
                      {4, 8, 192, 1e5, 1, 31, 210, 0.542, 0.208},
                      {8, 13, 192, 1e5, 8, 15, 355, 35.922, 4.263},
                      {8, 9, 192, 1e5, 1, 1133, 3586, 1.312, 0.526},
                      {8, 13, 192, 1e5, 1, 600, 4814, 3.946, 1.001},
                      {8, 15, 224, 1e5, 1, 568, 4313, 5.324, 1.278},
                      {4, 8, 192, 1e5, 1, 1095, 3062, 0.607, 0.309},
                      {8, 9, 192, 1e5, 8, 1133, 3586, 9.524, 2.825},
                      {8, 13, 192, 1e5, 8, 600, 4814, 30.306, 4.895},
                      {8, 15, 224, 1e5, 8, 568, 4313, 41.335, 7.468},
                      {8, 13, 192, 1e5, 1, 7444, 20781, 2.957, 2.892},
                      {4, 8, 192, 1e5, 1, 10264, 16226, 0.576, 0.867},
                      {8, 13, 192, 1e5, 8, 7444, 20781, 19.443, 6.819},
                      {8, 11, 224, 1e6, 1, 215, 1682, 3.834, 1.692},
                      {4, 8, 192, 1e6, 1, 187, 1843, 0.855, 0.663},
                      {8, 11, 224, 1e6, 8, 215, 1682, 30.149, 13.304},
                      {8, 11, 224, 1e6, 1, 12608, 31777, 3.952, 3.518},
                      {4, 8, 192, 1e6, 1, 11095, 31154, 1.007, 1.606},
                      {8, 11, 224, 1e6, 8, 12608, 31777, 29.931, 16.223},
                      {8, 11, 224, 1e6, 1, 111153, 167975, 3.61, 12.146},
                      {4, 8, 192, 1e6, 1, 103403, 162752, 1.094, 7.263},
                      {8, 11, 224, 1e6, 8, 111153, 167975, 27.035, 28.35},
                      {8, 8, 32, 1e4, 1, 345, 3769, 0.152, 0.181},
                      {4, 7, 32, 1e4, 1, 341, 3282, 0.243, 0.113},
                      {8, 8, 32, 1e5, 1, 3208, 37265, 0.198, 1.517},
                      {4, 7, 32, 1e5, 1, 3221, 32629, 0.247, 0.891},
                      {8, 8, 32, 1e6, 1, 31651, 371799, 0.773, 16.061},
                      {4, 7, 32, 1e6, 1, 31596, 325500, 0.629, 9.261},
                      {8, 8, 32, 1e7, 1, 313483, 3714180, 5.899, 169.7},
                      {4, 7, 32, 1e7, 1, 313493, 3250730, 3.757, 103.556}};
  for (const Row& row : rows) {
    CAPTURE(row.value_bytes, row.width, row.size, row.points, row.slices, row.largest_box);
    const auto chosen = Bracewell::choose_sorted_strategy({.points = row.points,
                                                           .slices = row.slices,
                                                           .largest_bin = row.largest_bin,
                                                           .largest_box = row.largest_box,
                                                           .width = row.width,
                                                           .dimensions = 3,
                                                           .order = SampleOrder::SlicesFirst,
                                                           .value_bytes = row.value_bytes,
                                                           .lanes = 270336,
                                                           .cells = row.size * row.size * row.size,
                                                           .boxes = false,
                                                           .matrices = true});
    const double taken = chosen == GriddingStrategy::MatrixBoxes ? row.matrices : row.bins;
    CHECK(taken < 1.3 * std::min(row.bins, row.matrices));
  }
}

TEST_CASE("the largest box has the samples of the bins around it, as far as they reach it") {
  using Bracewell::Impl::BinGrid;
  // A sample at every cell: as many reach a box as it has cells in reach.
  for (const int width : {2, 5, 16}) {
    const auto bins = BinGrid<3>::make({{45, 64, 34}}, width, {16, 8, 8}, 2, 1);
    std::vector<std::uint32_t> begin{0};
    for (std::uint32_t bin = 0; bin < bins.count(); ++bin) {
      int origin[3], length[3];
      bins.box(bin, origin, length);
      begin.push_back(begin.back() + std::uint32_t(length[0] * length[1] * length[2]));
    }
    for (const int edge : {8, 16, 100}) {
      double cells = 1;
      for (const int size : bins.grid.size)
        cells *= std::min(edge + width - 1, size);
      CHECK(std::abs(largest_box(bins, begin.data(), edge) / cells - 1) < 1e-12);
    }
    // All samples in one bin reach the box that lies in it, or has a part of it.
    std::fill(begin.begin(), begin.end(), 0);
    begin.back() = 1000;
    CHECK(std::abs(largest_box(bins, begin.data(), 64) - 1000) < 1e-9);
  }
}

TEST_CASE("on GPUs one slice goes to matrix units where they were faster on an H200") {
  // docs/lab/smaller-house.md (whole transforms) and docs/lab/gridding-and-tomography.md (spreading): random points, what the grid and
  // the kernel were, and how many times as long as matrices bins took. A choice that takes 3 % longer is none.
  struct Row {
    int value_bytes, width;
    double points, size, ratio;
  };
  const Row rows[] = {
      {4, 5, 1e5, 96, 3.0},   {4, 5, 1e6, 96, 0.97},   {4, 7, 1e6, 112, 1.23}, {4, 7, 1e7, 112, 0.68},
      {4, 8, 1e5, 192, 2.9},  {4, 5, 1e6, 192, 1.11},  {4, 8, 1e6, 192, 1.37}, {4, 8, 1e5, 384, 2.9},
      {4, 5, 1e6, 384, 1.8},  {4, 8, 1e6, 384, 2.7},   {4, 8, 1e7, 384, 1.19}, {8, 11, 1e6, 112, 1.7},
      {8, 11, 1e6, 224, 2.4}, {8, 13, 1e6, 384, 10.8}, {4, 5, 1e7, 300, 0.74}, {4, 5, 2e6, 300, 1.64},
      {4, 5, 1e5, 96, 5.2},   {4, 8, 1e7, 400, 1.34},  {4, 8, 1e7, 350, 0.98}, {4, 8, 1e7, 256, 1.02},
      {4, 8, 1e6, 256, 2.7},  {4, 8, 1e5, 256, 7.7},   {8, 11, 5e6, 350, 2.3}, {8, 11, 2e7, 350, 1.84},
      {8, 11, 1e6, 224, 2.8}, {8, 11, 1e5, 224, 8.1}};
  for (const Row& row : rows) {
    CAPTURE(row.value_bytes, row.width, row.points, row.size, row.ratio);
    const double cells = row.size * row.size * row.size, mean = row.points * 16 * 8 * 8 / cells,
                 box = row.points * std::pow((15 + row.width) / row.size, 3);
    const auto chosen = Bracewell::choose_sorted_strategy({.points = row.points,
                                                           .slices = 1,
                                                           .largest_bin = mean + 5 * std::sqrt(mean),
                                                           .largest_box = box + 5 * std::sqrt(box),
                                                           .width = row.width,
                                                           .dimensions = 3,
                                                           .order = SampleOrder::SlicesFirst,
                                                           .value_bytes = row.value_bytes,
                                                           .lanes = 270336,
                                                           .cells = cells,
                                                           .boxes = true,
                                                           .matrices = true});
    const bool matrices = chosen == GriddingStrategy::MatrixBoxes;
    CHECK((matrices || chosen == GriddingStrategy::Bins));
    CHECK((matrices ? row.ratio : 1 / row.ratio) > 0.97);
    const auto expected = Bracewell::choose_gridding_strategy({.points = row.points,
                                                               .slices = 1,
                                                               .cells = cells,
                                                               .width = row.width,
                                                               .dimensions = 3,
                                                               .host = false,
                                                               .matrices = true,
                                                               .value_bytes = row.value_bytes});
    CHECK(Bracewell::Impl::sorts_into_bins(expected));
  }
}

TEST_CASE("sorted samples are interpolated by the machine for samples that lie as close") {
  Bracewell::InterpolationWork work{.strategy = GriddingStrategy::Bins,
                                    .order = SampleOrder::SlicesFirst,
                                    .slices = 1,
                                    .width = 5,
                                    .dimensions = 3,
                                    .value_bytes = 8,
                                    .host = false,
                                    .points = 1e5,
                                    .tasks = 100,
                                    .bin_cells = 1024};
  using enum GriddingInterpolation;
  for (const auto strategy :
       {GriddingStrategy::Bins, GriddingStrategy::OwnedBoxes, GriddingStrategy::MatrixBoxes}) {
    work.strategy = strategy;
    const auto choice = [&](double points, int dimensions, std::size_t value_bytes) {
      auto other = work;
      other.points = points, other.dimensions = dimensions, other.value_bytes = value_bytes;
      return choose_interpolation(other);
    };
    CHECK(choice(1e5, 3, 8) == DenseBins);
    CHECK(choice(5e4, 3, 8) == BinTiles);
    CHECK(choice(5e4, 3, 4) == Bins);
    CHECK(choice(5e4, 2, 8) == Bins);
    CHECK(choice(6e3, 3, 8) == Bins);
    CHECK(choice(6e3, 1, 8) == DenseBins);
  }
  work.host = true;
  CHECK(choose_interpolation(work) == Bins);
}

TEST_CASE("on GPUs grids may be smaller in 3D and in double") {
  using Bracewell::unasked_oversamplings;
  for (const int dimensions : {2, 3}) {
    CHECK(unasked_oversamplings(1e-9, 2.2e-16, false, dimensions) == std::vector{2., 1.75, 1.5});
    CHECK(unasked_oversamplings(1e-3, 1.2e-7, false, dimensions).size() == std::size_t(dimensions));
    for (const bool host : {false, true})
      CHECK(unasked_oversamplings(1e-6, 1.2e-7, host, dimensions).size() == 1);
  }
}

TEST_CASE("tiles without samples cost nothing") {
  using Bracewell::gridding_cost;
  const auto cost = [](GriddingStrategy strategy, double cells) {
    return gridding_cost(strategy, {100, 1, cells, 5, 3, false}) -
           gridding_cost(GriddingStrategy::Atomic, {100, 1, cells, 5, 3, false});
  };
  for (const auto strategy : {GriddingStrategy::Tiles, GriddingStrategy::Bins})
    CHECK(std::abs(cost(strategy, 1e9) - cost(strategy, 1e8)) < 1e-6 * std::abs(cost(strategy, 1e8)));
}

TEST_CASE("large grids on GPUs have factors 2 and 3 where one is near") {
  using Bracewell::gridding_size;
  CHECK(gridding_size(4344, false) == 4608);
  CHECK(gridding_size(4344, true) == 4374);
  CHECK(gridding_size(5792, false) == 5832);
  CHECK(gridding_size(1086, false) == 1120);
  for (const std::int64_t least : {2100, 3333, 7001, 40000})
    CHECK((gridding_size(least, false) >= least && gridding_size(least, false) <= least + least / 8));
}

TEST_CASE("a strategy that a space lacks costs infinitely much") {
  using Bracewell::gridding_cost;
  CHECK(std::isinf(gridding_cost(GriddingStrategy::Tiles, {100, 1, 1e4, 5, 2, true})));
  CHECK(std::isinf(gridding_cost(GriddingStrategy::Tiles, {100, 1, 1e4, 5, 1, false})));
  CHECK(std::isinf(gridding_cost(GriddingStrategy::Bins, {100, 1, 1e4, 16, 2, false, false})));
  for (const auto strategy :
       {GriddingStrategy::Atomic, GriddingStrategy::PrunedGather, GriddingStrategy::Bins})
    for (const bool host : {false, true})
      for (const double slices : {0., 1., 70.})
        CHECK(std::isfinite(gridding_cost(strategy, {0, slices, 1e4, 5, 2, host})));
}

TEST_CASE("where a kernel of 16 points does not suffice, the grid is larger than asked for") {
  CHECK(Bracewell::asked_oversamplings(1.2) == std::vector{1.2, 1.35, 1.5, 1.75, 2.});
  CHECK(Bracewell::asked_oversamplings(3) == std::vector{3.});
  const Space space;
  const auto points = Points<3>::random(5).device();
  for (const double oversampling : {1.2, 1.25, 1.5})
    for (double tolerance = 1e-1; tolerance >= 0.9e-12; tolerance /= 10) {
      CAPTURE(oversampling, tolerance);
      const Gridding<Space, 3, double> plan(space, points, {50, 50, 50},
                                            {.tolerance = tolerance, .oversampling = oversampling});
      CHECK(plan.width() <= 16);
      CHECK(plan.grid_shape()[0] >= 50 * oversampling);
      CHECK((plan.grid_shape()[0] <= 1.1 * 50 * oversampling || tolerance < 1e-7));
    }
}

TEST_CASE(
    "interpolation is from tiles where two thirds of the lanes have a slice and scratch memory suffices") {
  const auto choice = [](std::int64_t slices, int width, std::size_t value_bytes) {
    return choose_interpolation({.strategy = GriddingStrategy::Tiles,
                                 .order = SampleOrder::SlicesLast,
                                 .slices = slices,
                                 .width = width,
                                 .dimensions = 2,
                                 .value_bytes = value_bytes,
                                 .host = false});
  };
  using enum GriddingInterpolation;
  // float: 32 lanes, or 16
  for (const std::int64_t slices : {22, 32, 43, 64, 100})
    CHECK(choice(slices, 6, 4) == Tiles);
  for (const std::int64_t slices : {11, 16, 33, 42})
    CHECK(choice(slices, 6, 4) == NarrowTiles);
  for (const std::int64_t slices : {0, 1, 10, 17, 21})
    CHECK(choice(slices, 6, 4) == Samples);
  CHECK(choice(32, 7, 4) == NarrowTiles); // 14 x 10 cells of 33 slices are 36,960 bytes
  CHECK(choice(32, 8, 4) == NarrowTiles);
  CHECK(choice(32, 9, 4) == Samples);
  // double: 16 lanes, or 8
  CHECK(choice(16, 5, 8) == Tiles);
  CHECK(choice(16, 6, 8) == NarrowTiles); // 13 x 9 cells of 17 slices are 31,824 bytes, samples 9,216
  CHECK(choice(6, 5, 8) == NarrowTiles);
  CHECK(choice(5, 5, 8) == Samples);

  Bracewell::InterpolationWork work{.strategy = GriddingStrategy::Tiles,
                                    .order = SampleOrder::SlicesLast,
                                    .slices = 32,
                                    .width = 5,
                                    .dimensions = 2,
                                    .value_bytes = 4,
                                    .host = false};
  CHECK(choose_interpolation(work) == Tiles);
  for (const auto& change :
       {+[](Bracewell::InterpolationWork& other) { other.host = true; },
        +[](Bracewell::InterpolationWork& other) { other.dimensions = 3; },
        +[](Bracewell::InterpolationWork& other) { other.order = SampleOrder::SlicesFirst; },
        +[](Bracewell::InterpolationWork& other) { other.strategy = GriddingStrategy::Atomic; }}) {
    auto other = work;
    change(other);
    CHECK(choose_interpolation(other) == Samples);
  }
}

TEMPLATE_TEST_CASE("volumes of few slices are spread by products of matrices where a GPU has units for them",
                   "", float, double) {
  const Space space;
  const auto points = Points<3>::random(20000);
  for (const std::int64_t slices : {1, 3, 9}) {
    const Gridding<Space, 3, TestType> plan(space, points.device(), {60, 60, 60}, {.slices = slices});
    if (!Bracewell::Impl::sorts_into_bins(plan.strategy()))
      continue; // so few may be spread by atomics
    const View<Kokkos::complex<TestType>**> samples("samples", slices, plan.points());
    const auto grid = images<TestType, 3>(slices, plan.grid_shape());
    const auto spreads = Test::report([&] { plan.spread(space, samples, grid); });
    const bool matrices = Bracewell::Impl::matrix_units && !Bracewell::Impl::is_host<Space> &&
                          (slices < 4 || sizeof(TestType) == 8);
    CHECK(spreads.launches("Bracewell::Gridding::spread_bins_matrices") == matrices);
    CHECK((plan.strategy() == GriddingStrategy::MatrixBoxes) == matrices);
  }
}

TEMPLATE_TEST_CASE("plans run the kernels that the functions choose", "", float, double) {
  const Space space;
  const std::string prefix = "Bracewell::Gridding::";
  const auto label = [](GriddingStrategy strategy) {
    switch (strategy) {
    case GriddingStrategy::Atomic:
      return "spread_atomic";
    case GriddingStrategy::PrunedGather:
      return "spread_pruned";
    case GriddingStrategy::Bins:
      return "spread_bins";
    default:
      return "spread_tiles";
    }
  };
  const auto points = rays(12, 25);
  auto all = strategies(true);
  all.push_back(GriddingStrategy::Automatic);
  for (const auto strategy : all)
    for (const auto order : {SampleOrder::SlicesFirst, SampleOrder::SlicesLast})
      for (const std::int64_t slices : {1, 4, 6, 11, 16, 22, 33}) {
        CAPTURE(int(strategy), int(order), slices);
        const Gridding<Space, 2, TestType> plan(space, points, {24, 25},
                                                {.slices = slices, .strategy = strategy, .order = order});
        CHECK(plan.strategy() != GriddingStrategy::Automatic);
        const bool last = order == SampleOrder::SlicesLast;
        const View<Kokkos::complex<TestType>**> samples("samples", last ? plan.points() : slices,
                                                        last ? slices : plan.points());
        const auto grid = images<TestType, 2>(slices, plan.grid_shape());
        const auto spreads = Test::report([&] { plan.spread(space, samples, grid); });
        CHECK(spreads.launches(prefix + label(plan.strategy())));

        const GriddingInterpolation interpolation = plan.interpolation();
        if (!Bracewell::Impl::sorts_into_bins(plan.strategy()))
          CHECK(interpolation == choose_interpolation({plan.strategy(), order, slices, plan.width(), 2,
                                                       sizeof(TestType), Bracewell::Impl::is_host<Space>}));
        const auto interpolates = Test::report([&] { plan.interpolate(space, grid, samples); });
        REQUIRE(interpolates.kernels.size() == 1);
        CHECK(interpolates.kernels[0].label ==
              prefix + (interpolation == GriddingInterpolation::Samples     ? "interpolate_samples"
                        : interpolation == GriddingInterpolation::Bins      ? "interpolate_bins"
                        : interpolation == GriddingInterpolation::DenseBins ? "interpolate_dense_bins"
                        : interpolation == GriddingInterpolation::Tiles     ? "interpolate_tiles"
                                                                            : "interpolate_narrow_tiles"));
      }
}
