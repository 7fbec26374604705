// What every function of the library keeps to, as the tools interface sees it.
#pragma once

#include "recorder.hpp"

#include <catch2/catch_test_macros.hpp>

namespace Test {

/// Labels carry the library's name; no fences, no copies, no allocations (the first call may let the backend
/// grow its scratch).
inline void check_labels(const Function& function) {
  INFO(function.name);
  const Space space;
  const Report first = report([&] { function.call(space); });
  for (const std::string& label : first.allocations)
    if (label.find("Kokkos") == std::string::npos) // the backend's own scratch
      CHECK(label.starts_with("Bracewell::"));
  const Report second = report([&] { function.call(space); });
  CHECK_FALSE(second.kernels.empty());
  for (const auto& kernel : second.kernels) {
    INFO(kernel.label);
    if (!function.transforms || !kernel.label.starts_with("Bracewell::FFT::"))
      CHECK(kernel.label.starts_with("Bracewell::" + function.name));
  }
  CHECK(second.allocations == std::vector<std::string>{});
  CHECK(second.fences == std::vector<std::string>{});
  CHECK(second.copies == std::vector<std::string>{});
}

/// Every kernel runs on the instance that the function is given. (OpenMP and Serial report one number for all
/// instances.)
inline void check_instances(const Function& function) {
  INFO(function.name);
  for (const Space& space : Kokkos::Experimental::partition_space(Space(), 1, 1)) {
    const Report seen = report([&] { function.call(space); });
    space.fence();
    CHECK_FALSE(seen.kernels.empty());
    for (const auto& kernel : seen.kernels) {
      INFO(kernel.label);
      CHECK(kernel.instance == space.impl_instance_id());
    }
  }
}

} // namespace Test
