// SPDX-License-Identifier: MIT
#include "kokkos_arrays.hpp"

#include <bracewell/error.hpp>
#include <bracewell/geometry/rotations.hpp>
#include <bracewell/ptychography/solver_options.hpp>
#include <bracewell/tomography/angle_weights.hpp>
#include <bracewell/tomography/half_acquisition.hpp>
#include <bracewell/version.hpp>

#include <deque>
#include <mutex>
#include <utility>

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
  static Instances all;
  return all;
}

bool owner = false; ///< Kokkos was initialised here

} // namespace

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
  if (Kokkos::is_initialized())
    return;
  // OpenMP's threads stay where the application wants them: no warning that they are not bound.
  Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
  owner = true;
}

void finalize() {
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
