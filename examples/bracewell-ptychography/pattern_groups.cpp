// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/pattern_groups.hpp"

#include "bracewell-ptychography/host_copies.hpp"
#include "common/progress.hpp"
#include "common/slots.hpp"
#include "common/stored_values.hpp"

#include <algorithm>
#include <thread>

namespace Bracewell::Examples {
namespace {

/// One pixel of all patterns of a group, from their frames.
struct TakePixel {
  const float* frames;        ///< [count, frame]
  const std::int64_t* places; ///< [pixels]: in the frame; -1: not measured
  float* patterns;            ///< [count, pixels]
  double* sums;               ///< [3, pixels]: of counts t, of their square roots and of t log t
  const float *dark, *gain;   ///< [pixels], or null: subtracted, and multiplied by
  std::int32_t* broken;       ///< [count]: patterns with a value that is not finite
  std::int64_t count, frame, pixels;

  KOKKOS_FUNCTION void operator()(std::int64_t pixel) const {
    const std::int64_t place = places[pixel];
    double sum = 0, roots = 0, logs = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      float value = place < 0 ? 0.0f : frames[k * frame + place];
      if (dark)
        value -= dark[pixel];
      if (gain)
        value *= gain[pixel];
      const bool is_finite = Kokkos::isfinite(value);
      if (!is_finite)
        Kokkos::atomic_store(&broken[k], 1);
      const float counts = is_finite && value > 0 ? value : 0.0f;
      patterns[k * pixels + pixel] = counts;
      sum += counts;
      roots += Kokkos::sqrt(counts);
      logs += counts > 0 ? double(counts) * Kokkos::log(double(counts)) : 0.;
    }
    sums[pixel] += sum;
    sums[pixels + pixel] += roots;
    sums[2 * pixels + pixel] += logs;
  }
};

/// Takes patterns with a value that is not finite back, from one pixel: they are empty then.
struct ForgetPixel {
  const std::int32_t* broken; ///< [count]
  float* patterns;            ///< [count, pixels]
  double* sums;               ///< [3, pixels]
  std::int64_t count, pixels;

  KOKKOS_FUNCTION void operator()(std::int64_t pixel) const {
    for (std::int64_t k = 0; k < count; ++k) {
      if (broken[k] == 0)
        continue;
      const float counts = patterns[k * pixels + pixel];
      sums[pixel] -= counts;
      sums[pixels + pixel] -= Kokkos::sqrt(counts);
      sums[2 * pixels + pixel] -= counts > 0 ? double(counts) * Kokkos::log(double(counts)) : 0.;
      patterns[k * pixels + pixel] = 0;
    }
  }
};

/// How patterns are read.
struct Plan {
  std::int64_t pixels, frame_bytes,
      frame;                  ///< of a pattern; of a frame, which is as large or larger: bytes, values
  std::int64_t group, groups; ///< patterns at a time, at most
  int threads, slots;
  bool converted; ///< to floats

  Plan(const Measurement& measurement, std::int64_t count)
      : pixels(std::int64_t(measurement.detector()) * measurement.detector()),
        frame_bytes(measurement.frame_bytes()), frame(frame_bytes / bytes_of(measurement.format().type)),
        group(std::clamp<std::int64_t>((std::int64_t(32) << 20) / (4 * std::max(frame, pixels)), 1,
                                       std::max<std::int64_t>(1, count))),
        groups((count + group - 1) / group),
        // The kernels wait for what is read here: decompressing takes threads.
        threads(std::clamp(int(std::thread::hardware_concurrency()) / 2, 1, 8)),
        slots(int(std::min<std::int64_t>(groups, threads + 1))), converted(!measurement.format().is_float()) {
  }
};

} // namespace

double bytes_for_groups(const Measurement& measurement, std::int64_t count) {
  const Plan plan(measurement, count);
  const double stored = double(plan.slots + (kernels_run_on_host ? 0 : 2)) * double(plan.frame_bytes),
               values = 4.0 * double((plan.converted ? plan.frame : 0) + plan.pixels);
  return double(plan.group) * (stored + values) + 32.0 * double(plan.pixels);
}

std::vector<StageTime> for_each_group(const Space& space, const Measurement& measurement,
                                      std::span<const std::int64_t> which,
                                      const std::function<void(std::int64_t, const PatternGroup&)>& work,
                                      std::vector<double>& sums) {
  const std::int64_t all = std::ssize(which);
  const Plan plan(measurement, all);
  const std::int64_t pixels = plan.pixels, frame_bytes = plan.frame_bytes, frame = plan.frame,
                     group = plan.group;
  if (plan.groups == 0) {
    sums.assign(static_cast<std::size_t>(3 * pixels), 0);
    return {};
  }
  const auto n = static_cast<std::size_t>(measurement.detector());
  const Slots slots(space, static_cast<std::size_t>(group * frame_bytes), plan.slots);
  const auto values = allocate<DeviceView<float*>>("values", plan.converted ? group * frame : 0),
             patterns = allocate<DeviceView<float*>>("patterns", group * pixels);
  const auto places = allocate<DeviceView<std::int64_t*>>("places", pixels);
  upload(space, places, measurement.places());
  const auto of_pixels = [&](const std::vector<float>& of_frame) { // a device copy in the order of patterns
    std::vector<float> values_of;
    if (!of_frame.empty())
      for (const std::int64_t place : measurement.places())
        values_of.push_back(place < 0 ? 0.0f : of_frame[static_cast<std::size_t>(place)]);
    const auto view = allocate<DeviceView<float*>>("corrections", values_of.size());
    if (!values_of.empty())
      upload(space, view, values_of);
    return view;
  };
  const auto dark = of_pixels(measurement.dark()), gain = of_pixels(measurement.gain());
  const DeviceView<double*> sum("Bracewell::examples::sums", static_cast<std::size_t>(3 * pixels));
  const DeviceView<std::int32_t*> broken("Bracewell::examples::broken", static_cast<std::size_t>(group));

  Progress progress("reading", "patterns", all);
  const auto count = [&](std::int64_t item) { return std::min(group, all - item * group); };
  const auto bytes = [&](std::int64_t item) { return count(item) * frame_bytes; };
  Stage read{.name = "read", .threads = plan.threads, .slots = slots.on_host(), .bytes = all * frame_bytes};
  read.work = [&](std::int64_t item) {
    measurement.read(
        which.subspan(static_cast<std::size_t>(item * group), static_cast<std::size_t>(count(item))),
        {slots.host(item), static_cast<std::size_t>(bytes(item))});
  };
  Stage store{.name = "store", .threads = 0, .bytes = all * frame_bytes};
  store.work = [&](std::int64_t item) {
    const std::byte* const stored = slots.device(item);
    const float* floats = reinterpret_cast<const float*>(stored);
    if (plan.converted) {
      to_floats(space, measurement.format(), stored, values.data(), count(item) * frame);
      floats = values.data();
    }
    Kokkos::parallel_for(
        "Bracewell::examples::take_patterns",
        Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, pixels),
        TakePixel{floats, places.data(), patterns.data(), sum.data(), dark.size() > 0 ? dark.data() : nullptr,
                  gain.size() > 0 ? gain.data() : nullptr, broken.data(), count(item), frame, pixels});
    if (std::ranges::count(download(space, broken), 1) > 0) {
      Kokkos::parallel_for("Bracewell::examples::forget_patterns",
                           Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, pixels),
                           ForgetPixel{broken.data(), patterns.data(), sum.data(), count(item), pixels});
      fill_values(space, broken, std::int32_t(0));
    }
    work(item * group, PatternGroup(patterns.data(), static_cast<std::size_t>(count(item)), n, n));
    space.fence("Bracewell::examples::patterns"); // the slot is read into next
    progress.add(count(item));
  };
  std::vector<Stage> stages{read};
  slots.add_copy(stages, Slots::Direction::In, bytes);
  stages.push_back(store);
  const std::vector<StageTime> times = run_stages(plan.groups, stages);
  sums = download(space, sum);
  return times;
}

} // namespace Bracewell::Examples
