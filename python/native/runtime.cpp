// SPDX-License-Identifier: MIT
#include "kokkos_arrays.hpp"
#include "listener.hpp"

#include <bracewell/error.hpp>
#include <bracewell/geometry/rotations.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/ptychography/solver_options.hpp>
#include <bracewell/tomography/angle_weights.hpp>
#include <bracewell/tomography/half_acquisition.hpp>
#include <bracewell/version.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string_view>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace Bracewell::Python {
namespace {

constexpr bool has_device = !std::is_same_v<Kokkos::DefaultExecutionSpace, Kokkos::DefaultHostExecutionSpace>;

#if defined(KOKKOS_ENABLE_CUDA)
using Stream = cudaStream_t;
#elif defined(KOKKOS_ENABLE_HIP)
using Stream = hipStream_t;
#endif

/// Instances of the streams that were used last.
struct Instances {
  static constexpr std::size_t most = 64;
  std::mutex mutex;
  std::deque<std::pair<std::uintptr_t, Kokkos::DefaultExecutionSpace>> latest;
};

Instances& instances() {
  static Instances& all = *new Instances; // a process that was forked ends without them
  return all;
}

bool owner = false; ///< Kokkos was initialised here
std::atomic<Life> state = Life::None;

/// What kernels do before they begin. Those of Kokkos itself, which fill memory, are not left.
void before_kernel(const char* name, std::uint32_t, std::uint64_t*) {
  if (std::string_view(name).substr(0, 8) != "Kokkos::")
    Impl::leave_if_asked();
}

/// Without this Kokkos would wait for the device before each kernel that is asked.
void never_wait(std::uint32_t, Kokkos_Tools_ToolSettings* settings) {
  settings->requires_global_fencing = false;
}

} // namespace

struct Heard::Ear : Impl::HostInterrupt {
  explicit Ear(Listener& whose) : listener(whose) {}
  bool asked() override { return listener.asked(); }
  void leave() override { listener.leave(); }
  Listener& listener;
};

Heard::Heard(Listener* listener) {
  if (listener == nullptr)
    return;
  ear_ = std::make_unique<Ear>(*listener);
  Impl::host_interrupt = ear_.get();
}

Heard::~Heard() {
  if (ear_)
    Impl::host_interrupt = nullptr;
}

Life life() { return state; }

Kokkos::DefaultExecutionSpace device_instance([[maybe_unused]] Queue queue) {
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
  if (queue.device != Kokkos::device_id())
    throw Error("bracewell: expected arrays on GPU " + std::to_string(Kokkos::device_id()) +
                ", the one of this process (KOKKOS_DEVICE_ID or CUDA_VISIBLE_DEVICES choose another), found "
                "arrays on GPU " +
                std::to_string(queue.device));
  Instances& all = instances();
  const std::lock_guard lock(all.mutex);
  for (const auto& [stream, instance] : all.latest)
    if (stream == queue.stream)
      return instance;
  if (all.latest.size() == Instances::most)
    all.latest.pop_front();
  all.latest.emplace_back(queue.stream,
                          Kokkos::DefaultExecutionSpace(reinterpret_cast<Stream>(queue.stream)));
  return all.latest.back().second;
#else
  return {};
#endif
}

void initialize() {
  if (state != Life::None)
    return;
#if defined(__unix__) || defined(__APPLE__)
  pthread_atfork(nullptr, nullptr, [] { state = Life::Forked; });
#endif
  if (!Kokkos::is_initialized()) {
    Kokkos::Tools::Experimental::set_request_tool_settings_callback(never_wait); // read by initialize()
    // OpenMP's threads stay where the application wants them: no warning that they are not bound.
    Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
    owner = true;
  }
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(before_kernel);
  Kokkos::Tools::Experimental::set_begin_parallel_reduce_callback(before_kernel);
  Kokkos::Tools::Experimental::set_begin_parallel_scan_callback(before_kernel);
  state = Life::Here;
}

void finalize() {
  if (state == Life::Forked)
    return;
  instances().latest.clear();
  if (owner && Kokkos::is_initialized() && !Kokkos::is_finalized())
    Kokkos::finalize();
  owner = false;
}

std::string device_backend() {
#if defined(KOKKOS_ENABLE_CUDA)
  return "cuda";
#elif defined(KOKKOS_ENABLE_HIP)
  return "hip";
#else
  static_assert(!has_device);
  return "";
#endif
}

std::string kokkos_version() {
  return std::to_string(KOKKOS_VERSION_MAJOR) + "." + std::to_string(KOKKOS_VERSION_MINOR) + "." +
         std::to_string(KOKKOS_VERSION_PATCH);
}

std::string bracewell_version() { return BRACEWELL_VERSION; }

std::vector<double> angular_density_weights(const std::vector<double>& angles) {
  return Bracewell::angular_density_weights(angles);
}

std::vector<double> ptychography_schedule(std::int64_t patterns, int passes, int batches) {
  const auto schedule = PtychographySchedule::of(patterns, passes, batches);
  std::vector<double> numbers{double(schedule.passes), double(schedule.batches),
                              double(schedule.projection_passes), schedule.object_rate, schedule.probe_rate};
  for (int pass = 0; pass < schedule.passes; ++pass)
    numbers.push_back(schedule.rate_factor(pass));
  return numbers;
}

std::vector<double> rotation_grid(double degrees) {
  const std::int64_t count = rotation_grid_size(degrees);
  std::vector<double> values;
  for (std::int64_t index = 0; index < count; ++index) {
    const Matrix3<double> matrix = rotation_matrix(rotation_of_grid<double>(index, count));
    for (int row = 0; row < 3; ++row)
      for (int column = 0; column < 3; ++column)
        values.push_back(matrix(row, column));
  }
  return values;
}

std::pair<int, double> half_acquisition(int width, double centre) {
  const HalfAcquisition place = Bracewell::half_acquisition(width, centre);
  return {place.width, place.centre};
}

} // namespace Bracewell::Python
