// What Kokkos reports through its tools interface while a function runs.
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace Test {

using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;

struct Report {
  struct Kernel {
    std::string label;
    std::uint32_t instance;
  };
  std::vector<Kernel> kernels;
  std::vector<std::string> regions, allocations, fences, copies;

  bool launches(const std::string& part) const {
    for (const auto& kernel : kernels)
      if (kernel.label.find(part) != std::string::npos)
        return true;
    return false;
  }
};

/// Runs `call` and reports its kernels, regions, allocations, fences and copies.
inline Report report(const std::function<void()>& call) {
  namespace Tools = Kokkos::Tools::Experimental;
  static Report current; // the callbacks are plain functions
  current = {};
  const auto kernel = [](const char* label, std::uint32_t device, std::uint64_t*) {
    current.kernels.push_back({label, Tools::identifier_from_devid(device).instance_id});
  };
  Tools::set_begin_parallel_for_callback(kernel);
  Tools::set_begin_parallel_reduce_callback(kernel);
  Tools::set_begin_parallel_scan_callback(kernel);
  Tools::set_push_region_callback([](const char* label) { current.regions.push_back(label); });
  Tools::set_begin_fence_callback([](const char* label, std::uint32_t, std::uint64_t*) {
    if (std::string(label).find("Profile Tool Fence") == std::string::npos) // one that these callbacks cause
      current.fences.push_back(label);
  });
  Tools::set_allocate_data_callback(
      [](Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t bytes) {
        if (bytes > 0) // CUDA teams without scratch in global memory report one of nothing at every launch
          current.allocations.push_back(label);
      });
  Tools::set_begin_deep_copy_callback(
      [](Kokkos::Tools::SpaceHandle, const char* to, const void*, Kokkos::Tools::SpaceHandle,
         const char* from, const void*,
         std::uint64_t) { current.copies.push_back(std::string(from) + " to " + to); });
  call();
  Tools::set_begin_parallel_for_callback(nullptr);
  Tools::set_begin_parallel_reduce_callback(nullptr);
  Tools::set_begin_parallel_scan_callback(nullptr);
  Tools::set_push_region_callback(nullptr);
  Tools::set_begin_fence_callback(nullptr);
  Tools::set_allocate_data_callback(nullptr);
  Tools::set_begin_deep_copy_callback(nullptr);
  Kokkos::fence();
  return current;
}

/// Bytes of the library's Views.
struct Memory {
  std::int64_t held = 0; ///< after a call, beyond what there was before
  std::int64_t most = 0; ///< at any time of it
};

/// What `call` leaves allocated, and what it takes.
inline Memory memory_of(const std::function<void()>& call) {
  namespace Tools = Kokkos::Tools::Experimental;
  static Memory current;
  current = {};
  const auto ours = [](const char* label) { return std::string(label).starts_with("Bracewell::"); };
  static bool (*const counts)(const char*) = ours;
  Tools::set_allocate_data_callback(
      [](Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t bytes) {
        current.held += counts(label) ? static_cast<std::int64_t>(bytes) : 0;
        current.most = std::max(current.most, current.held);
      });
  Tools::set_deallocate_data_callback(
      [](Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t bytes) {
        current.held -= counts(label) ? static_cast<std::int64_t>(bytes) : 0;
      });
  call();
  Tools::set_allocate_data_callback(nullptr);
  Tools::set_deallocate_data_callback(nullptr);
  return current;
}

/// A function of the library with arguments that fit, on a given instance.
struct Function {
  std::string name;
  std::function<void(const Space&)> call;
  bool transforms = false; ///< by FFTs, whose kernels have the FFT's name
};

} // namespace Test
