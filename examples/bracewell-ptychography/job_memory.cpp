// SPDX-License-Identifier: MIT
// What a job needs of memory, on the device and on the host.
#include "bracewell-ptychography/job.hpp"
#include "bracewell-ptychography/pattern_groups.hpp"
#include "common/input_error.hpp"
#include "common/memory_limit.hpp"
#include "common/processes.hpp"

#include <algorithm>
#include <cmath>

namespace Bracewell::Examples {

double Job::solver_bytes(const std::optional<std::size_t>& target_bytes) const {
  PtychographyOptions of_loss = loss_options();
  of_loss.target_bytes = target_bytes;
  const auto bytes = [&]<class Storage>(Storage) {
    return double(PtychographySolver<Space, float, Storage>::bytes_needed(space_, shape_, positions_view(),
                                                                          of_loss, solver_options(1, 1)));
  };
  return options_.storage == StorageType::Half ? bytes(Bracewell::Half()) : bytes(float());
}

void Job::choose_target_bytes() {
  if (!device_memory_)
    return;
  const double values = shape_.slices * double(shape_.object[0]) * double(shape_.object[1]) +
                        (shape_.modes + shape_.relaxation) * std::pow(shape_.probe, 2) +
                        double(shape_.relaxation) * double(own_count());
  // Patterns that are read; the states before a pass and of the best.
  const auto left = [&] {
    return 1e6 * *device_memory_ - solver_bytes(0) - overlap_bytes() -
           bytes_for_groups(measurement_, own_count()) - 2 * 8 * values;
  };
  while (left() < 0) // of more memory the solver takes more
    device_memory_ = std::ceil(*device_memory_ - left() / 1e6);
  if (device_memory_ != options_.device_memory)
    throw InputError("--device-memory " + four_digits(*options_.device_memory) + ": expected at least " +
                     std::to_string(std::int64_t(*device_memory_)) +
                     " megabytes, which all but the patterns take");
  target_bytes_ = static_cast<std::size_t>(left());
}

void Job::check_memory() {
  choose_target_bytes();
  const double values = shape_.slices * double(shape_.object[0]) * double(shape_.object[1]) +
                        (shape_.modes + shape_.relaxation) * std::pow(shape_.probe, 2) +
                        double(shape_.relaxation) * double(own_count());
  const double solver = solver_bytes(std::nullopt); // patterns are in one memory or the other
  // Patterns on their way; the states before a pass and of the best; a checkpoint, which has moments, too, or at the end
  // pictures. Halves have a first state, two results and their spectra.
  const double pictured =
      is_first_process() ? double(object_[0]) * double(object_[1]) / std::pow(pixel_of_pictures(), 2) : 0;
  require_memory("reconstructing " + std::to_string(own_count()) + " patterns and an object of " +
                     std::to_string(shape_.object[0]) + " x " + std::to_string(shape_.object[1]) + " pixels",
                 resident_bytes() + solver + overlap_bytes() + bytes_for_groups(measurement_, own_count()) +
                     2 * 8 * values + std::max(24 * values, 40 * pictured) +
                     (options_.correlate_halves ? 72 * values : 0) + library_bytes,
                 memory_limit(options_.memory_limit));
}

double Job::overlap_bytes() const {
  double elements = 0;
  for (const Tile& other : tiles_)
    if (&other != &tile())
      elements += double(tile().object.common(other.object).size());
  return 2 * 8 * elements;
}

} // namespace Bracewell::Examples
