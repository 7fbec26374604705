// What every function of the library keeps to, as the tools interface sees it.
#pragma once

#include "recorder.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

/// bytes_needed() foretells what a plan of these arguments allocates, and memory_bytes() says it, to 5 %.
/// Planning takes no more than `planning` times of it.
template <class Plan, class... Arguments>
void check_memory(double planning, const Arguments&... arguments) {
  const Space space;
  const auto needed = static_cast<double>(Plan::bytes_needed(space, arguments...));
  std::optional<Plan> plan;
  const Memory memory = memory_of([&] { plan.emplace(space, arguments...); });
  const auto held = static_cast<double>(memory.held);
  CAPTURE(needed, held, memory.most, plan->memory_bytes());
  CHECK(held > 0);
  CHECK(std::abs(needed - held) <= 0.05 * held);
  CHECK(std::abs(static_cast<double>(plan->memory_bytes()) - held) <= 0.05 * held);
  CHECK(static_cast<double>(memory.most) <= planning * held);
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

/// The name of a class of plans, and how one is made.
struct NamedPlan {
  std::string name;
  std::function<std::shared_ptr<void>(const Space&)> make;
};

/// A plan that outlives Kokkos ends the program with a sentence that names it. As nothing comes after that, this program runs
/// `test` once more for each plan, which a variable names.
inline void check_outliving(const std::string& test, const std::vector<NamedPlan>& plans) {
  constexpr const char* variable = "BRACEWELL_TEST_OUTLIVING";
  const char* const wanted = std::getenv(variable);
  for (const NamedPlan& plan : plans) {
    if (wanted != nullptr && plan.name != wanted)
      continue;
    if (wanted != nullptr) {
      std::shared_ptr<void> kept = plan.make(Space());
      Kokkos::finalize();
      kept.reset();
      return;
    }
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string command =
        std::string(variable) + "=" + plan.name + " '" + program + "' '" + test + "' 2>&1";
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string text;
    std::array<char, 4096> part{};
    for (std::size_t count; (count = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
      text.append(part.data(), count);
    CHECK(::pclose(pipe) != 0);
    INFO(text);
    CHECK(text.find("Kokkos allocation \"Bracewell::" + plan.name + "::") != std::string::npos);
    CHECK(text.find("after Kokkos::finalize was called") != std::string::npos);
  }
}

} // namespace Test
