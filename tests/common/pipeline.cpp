// SPDX-License-Identifier: MIT
#include "common/pipeline.hpp"
#include "common/handout.hpp"
#include "common/slots.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace Bracewell::Examples;

TEST_CASE("stages hand their items on in slots that are not written while they are read") {
  constexpr std::int64_t items = 300;
  constexpr int slots = 3;
  std::array<std::atomic<std::int64_t>, slots> first{}, second{};
  std::vector<std::int64_t> order, computed(items);
  const auto slot = [](std::int64_t item) { return static_cast<std::size_t>(item % slots); };
  const auto times = run_stages(items, {{.name = "read",
                                         .threads = 2,
                                         .slots = slots,
                                         .work = [&](std::int64_t item) { first[slot(item)] = item; },
                                         .bytes = 7},
                                        {.name = "compute",
                                         .threads = 0,
                                         .slots = slots,
                                         .work =
                                             [&](std::int64_t item) {
                                               order.push_back(item);
                                               second[slot(item)] = 2 * first[slot(item)];
                                             }},
                                        {.name = "write", .threads = 2, .work = [&](std::int64_t item) {
                                           computed[static_cast<std::size_t>(item)] = second[slot(item)];
                                         }}});
  std::vector<std::int64_t> all(items);
  std::iota(all.begin(), all.end(), std::int64_t{0});
  CHECK(order == all);
  for (std::int64_t item = 0; item < items; ++item)
    REQUIRE(computed[static_cast<std::size_t>(item)] == 2 * item);
  REQUIRE(times.size() == 3);
  CHECK(times[0].name == "read");
  CHECK(times[0].threads == 2);
  CHECK(times[0].bytes == 7);
  CHECK(times[1].threads == 1);
}

TEST_CASE("a slow stage holds the stages before it back") {
  std::atomic<std::int64_t> made = 0;
  run_stages(20, {{.name = "make", .threads = 3, .slots = 4, .work = [&](std::int64_t) { ++made; }},
                  {.name = "use", .work = [&](std::int64_t item) {
                     std::this_thread::sleep_for(std::chrono::milliseconds(1));
                     if (made > item + 4)
                       throw std::runtime_error("ahead");
                   }}});
  CHECK(made == 20);
}

TEST_CASE("stages work at the same time") {
  // Each waits for the other one to be at work.
  std::atomic<int> at_work = 0;
  const auto meet = [&](std::int64_t) {
    ++at_work;
    while (at_work < 2)
      std::this_thread::yield();
  };
  run_stages(2, {{.name = "make",
                  .slots = 2,
                  .work =
                      [&](std::int64_t item) {
                        if (item == 1)
                          meet(item);
                      }},
                 {.name = "use", .threads = 0, .work = [&](std::int64_t item) {
                    if (item == 0)
                      meet(item);
                  }}});
  CHECK(at_work == 2);
}

TEST_CASE("the first exception ends all stages and is thrown again") {
  for (const std::size_t failing : {0, 1, 2})
    for (const int threads : {1, 3}) {
      std::atomic<std::int64_t> done = 0;
      const auto stage = [&](std::size_t index, int own_threads) {
        return Stage{.name = std::to_string(index),
                     .threads = own_threads,
                     .slots = 2,
                     .work = [&, index](std::int64_t item) {
                       if (index == failing && item == 5)
                         throw std::runtime_error("stage " + std::to_string(index));
                       ++done;
                     }};
      };
      std::string message;
      try {
        run_stages(1000000000, {stage(0, threads), stage(1, 0), stage(2, threads)});
      } catch (const std::runtime_error& error) {
        message = error.what();
      }
      CHECK(message == "stage " + std::to_string(failing));
      CHECK(done < 100);
    }
}

TEST_CASE("no items are no work, and two stages cannot have the same thread") {
  const Stage here{.name = "here", .threads = 0, .work = [](std::int64_t) { FAIL("there is no item"); }};
  CHECK(run_stages(0, {here}).size() == 1);
  CHECK(run_stages(0, {here, {.name = "there", .threads = 2, .work = here.work}}).size() == 2);
  CHECK_THROWS_AS(run_stages(1, {here, here}), std::logic_error);
}

TEST_CASE("the items of a run may be fewer than expected") {
  for (const int threads : {1, 3})
    for (const std::int64_t items : {0, 1, 7}) {
      std::vector<std::int64_t> used;
      std::atomic<std::int64_t> made = 0;
      run_stages(1000000000,
                 {{.name = "make", .threads = threads, .slots = 2, .work = [&](std::int64_t) { ++made; }},
                  {.name = "use", .threads = 0, .work = [&](std::int64_t item) { used.push_back(item); }},
                  {.name = "end", .threads = 2, .work = [](std::int64_t) {}}},
                 [&](std::int64_t item) { return item < items; });
      CHECK(made == items);
      CHECK(std::int64_t(used.size()) == items);
    }
}

TEST_CASE("one process is handed out everything, in order") {
  Handout all(10, 4), own(Bracewell::Share{6, 13}, 4, 2), none(0, 4);
  const auto taken = [](Handout& handout) {
    std::vector<std::int64_t> ends;
    for (std::int64_t item = 0; handout.take(item); ++item) {
      ends.push_back(handout.part(item).end);
      CHECK(handout.passed_over(item) == 0);
    }
    return ends;
  };
  CHECK(taken(all) == std::vector<std::int64_t>{4, 8, 10});
  CHECK(taken(own) == std::vector<std::int64_t>{10, 13});
  CHECK(own.parts().front().begin == 6);
  CHECK(own.taken() == 7);
  CHECK(taken(none).empty());
  CHECK(none.handed_out() == 0);
  CHECK(all.handed_out() == 10);
  Handout stopped(10, 4);
  CHECK(stopped.take(1));
  stopped.stop();
  stopped.stop();
  CHECK_FALSE(stopped.take(2));
  CHECK(stopped.handed_out() == 8);
  CHECK(stopped.taken() == 8);
}

TEST_CASE("slots are aligned, and items pass through them to the device") {
  constexpr std::int64_t items = 10;
  const Slots slots(Space(), 12, 3);
  for (std::int64_t item = 0; item < 3; ++item) {
    CHECK(reinterpret_cast<std::uintptr_t>(slots.host(item)) % 4096 == 0);
    CHECK(slots.host(item + 3) == slots.host(item));
  }
  CHECK(slots.host(1) != slots.host(0));
  CHECK(slots.device(slots.on_device()) == slots.device(0));
  using Numbers = Kokkos::View<std::int64_t*, Kokkos::HostSpace>;
  std::vector<std::int64_t> found;
  Stage write{.name = "write", .slots = slots.on_host()}, read{.name = "read", .threads = 0};
  write.work = [&](std::int64_t item) { std::memcpy(slots.host(item), &item, sizeof item); };
  read.work = [&](std::int64_t item) {
    const Numbers number("number", 1);
    Kokkos::deep_copy(number, Part<std::int64_t*>(reinterpret_cast<std::int64_t*>(slots.device(item)), 1));
    found.push_back(number(0));
  };
  std::vector<Stage> stages{write};
  slots.add_copy(stages, Slots::Direction::In,
                 [](std::int64_t) { return std::int64_t(sizeof(std::int64_t)); });
  stages.push_back(read);
  CHECK(stages.size() == (kernels_run_on_host ? 2 : 3));
  run_stages(items, stages);
  std::vector<std::int64_t> expected(items);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(found == expected);
}
