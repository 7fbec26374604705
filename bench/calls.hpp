// SPDX-License-Identifier: MIT
// The small problem of bench_calls and bench_calls_c.
#pragma once

#include "run.hpp"

#include <Kokkos_Core.hpp>

#include <cmath>

namespace Bench {

struct SmallCall {
  using Space = Kokkos::DefaultExecutionSpace;
  template <class Data>
  using View = Kokkos::View<Data, Kokkos::LayoutRight, Space>;

  static constexpr int box = 32, poses = 8;

  Space space;
  View<Kokkos::complex<float>****> volume{"volume", 1, box, box, box / 2 + 1},
      images{"images", 1, poses, box, box / 2 + 1};
  View<float****> matrices{"matrices", 1, poses, 3, 3};
  View<float***> shifts{"shifts", 1, poses, 2};

  SmallCall() {
    const auto host = Kokkos::create_mirror_view(matrices);
    for (int p = 0; p < poses; ++p) {
      const float turn = 0.7f * float(p), c = std::cos(turn), s = std::sin(turn);
      const float matrix[9] = {c, 0, s, 0, 1, 0, -s, 0, c};
      for (int i = 0; i < 9; ++i)
        host.data()[p * 9 + i] = matrix[i];
    }
    Kokkos::deep_copy(matrices, host);
    Kokkos::deep_copy(volume, Kokkos::complex<float>(1, 0.5f));
    space.fence();
  }
};

/// Runs Google Benchmark with the time of a call, `us_per_call`.
template <class Call>
int time_calls(int argc, char* argv[], const char* name, const Call& call) {
  benchmark::RegisterBenchmark(name,
                               [&call](benchmark::State& state) {
                                 constexpr int repeats = 500;
                                 const SmallCall problem;
                                 for (auto _ : state) {
                                   for (int i = 0; i < repeats; ++i)
                                     call(problem);
                                   problem.space.fence();
                                 }
                                 state.counters["us_per_call"] = benchmark::Counter(
                                     1e-6 * repeats, benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  return run(argc, argv, {"us_per_call"});
}

} // namespace Bench
