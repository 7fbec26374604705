// What benchmarks of whole operators share: the time of a run, and arrays of given values.
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

namespace Bench {

/// The median of five runs, after one that is not counted.
inline double seconds_of(const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int turn = 0; turn < 6; ++turn) {
    Kokkos::fence();
    const auto start = Clock::now();
    run();
    Kokkos::fence();
    if (turn > 0)
      times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + 2, times.end());
  return times[2];
}

/// Element i becomes make(i).
template <class View, class Make>
void fill_with(const View& view, const Make& make) {
  const auto values = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < values.size(); ++i)
    values.data()[i] = make(i);
  Kokkos::deep_copy(view, values);
}

} // namespace Bench
