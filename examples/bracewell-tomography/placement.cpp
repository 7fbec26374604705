// SPDX-License-Identifier: MIT
#include "bracewell-tomography/placement.hpp"

#include "common/input_error.hpp"
#include "common/memory_limit.hpp"

#include <bracewell/tomography/detector.hpp>
#include <bracewell/tomography/half_acquisition.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace Bracewell::Examples {

Place place_of(const Job& job, double axis) {
  Place place{.width = job.width, .centre = axis, .offset = 0, .seen = job.width, .image = 0};
  const std::optional<int> size_of_slice = job.options.size;
  if (job.options.half_acquisition) {
    const HalfAcquisition wider = half_acquisition(job.width, axis);
    place.width = wider.width, place.centre = wider.centre, place.offset = wider.offset;
  } else if (size_of_slice && *size_of_slice > job.width) {
    const double reach = 0.5 * *size_of_slice; // on either side of the axis
    place.offset = static_cast<int>(std::max(0., std::ceil(reach - axis)));
    place.centre += place.offset;
    place.width = std::max(job.width + place.offset, static_cast<int>(std::ceil(place.centre + reach)) + 1);
  }
  place.image = size_of_slice.value_or(place.width);
  place.masked = job.has_masks() && job.options.solver && !job.has_frame_steps();
  if (job.options.laminography)
    place.depth = job.options.depth.value_or(int(job.slices));
  if (place.image > place.width)
    throw InputError("--size " + std::to_string(place.image) + ": expected at most " +
                     std::to_string(place.width) + ", which half acquisition sees");
  return place;
}

void widen(const Space& space, const RunOptions& options, const Place& place, double axis,
           const Sinograms& rows, const Sinograms& wider) {
  if (options.half_acquisition && !options.solver)
    weigh_half_acquisition(space, rows, wider, axis);
  else
    extend_detector(space, rows, wider, place.offset);
}

void harden(const Space& space, const RunOptions& options, const Sinograms& sinograms) {
  if (!options.hardening.empty())
    correct_beam_hardening(space, sinograms, options.hardening);
}

Share share_of(std::int64_t slices) {
  const Share pairs = processes().share((slices + 1) / 2);
  return {std::min(2 * pairs.begin, slices), std::min(2 * pairs.end, slices)};
}

Handout chunks_of(const Job& job, std::int64_t chunk) {
  if (job.options.laminography)
    return Handout(Share{0, job.slices}, job.slices, job.slices);
  return job.has_frame_steps() ? Handout(share_of(job.slices), chunk, 2) : Handout(job.slices, chunk, 2);
}

double axis_or_widest(const Job& job) {
  return job.options.centre.value_or(job.options.half_acquisition ? job.width - 1 : job.width / 2.0);
}

std::int64_t chunk_size(const Space& space, const Job& job, const RunOptions& options, double occupied) {
  const Scan& scan = job.scan;
  const std::int64_t angles = job.angles();
  const Place place = place_of(job, axis_or_widest(job));
  check_method(options, scan.angles());
  Views views{scan.angles()};
  views.shifts.resize(options.align != AlignedViews::None ? views.angles.size() : 0);
  const double sinogram = 4.0 * double(angles) * job.width, wide = 4.0 * double(angles) * place.width,
               image = 4.0 * place.image * double(place.image);
  const double input = job.has_frame_steps() ? sinogram : double(job.bytes_per_row()),
               output = image / 4 * double(bytes_of(options.output_type));
  const bool converted = options.output_type != StoredType::Float32;
  // The slots of all stages, the sinograms, wider ones, and the slices where they are stored as something else.
  const double per_row = slots_of(place) * input + Normalise::bytes_per_row(job) + sinogram +
                         (job.has_masks() ? sinogram : 0) + (is_wider(place) ? wide : 0) +
                         (kernels_run_on_host ? 0 : 2 * input),
               per_slice = slots_of(place) * output + (converted ? image : 0) +
                           (kernels_run_on_host ? 0 : 2 * output);
  const double stripes =
      options.stripes
          ? double(StripeRemoval<Space, float>::bytes_needed(space, int(angles), job.width, *options.stripes))
          : 0;
  // Means of frames, on the host and the device, and of these the sums and a frame while they are read.
  const double bin = options.binning * options.binning,
               means = double(job.slices) * job.width *
                       (8.0 * double(scan.has_flat() * scan.flat_sets() + scan.has_dark()) + 12 * bin);
  const double prepared = prepared_bytes(space, job, share_of(job.slices).size());
  const auto needed = [&](std::int64_t count) {
    // Three images are the picture's.
    return occupied + stripes + means + prepared + 3 * image + library_bytes + per_row * double(count) +
           per_slice * double(place.slices(count)) +
           double(reconstructor_bytes(space, options, views, place, count));
  };
  const double limit = memory_limit(options.memory_limit);
  if (place.depth) {
    require_memory("reconstructing " + std::to_string(place.depth) + " slices from all rows at once",
                   needed(job.slices), limit);
    return job.slices;
  }
  const std::int64_t least = options.method == Method::Fourier ? std::min<std::int64_t>(2, job.slices) : 1;
  require_memory("reconstructing " + std::to_string(least) + " slices at a time", needed(least), limit);
  // Enough for the kernels, and chunks enough for the stages to work side by side: large slices go to a device in small
  // ones, so that it begins early.
  const std::int64_t enough =
      kernels_run_on_host ? 64 : std::clamp<std::int64_t>(std::int64_t(128e6 / image), 8, 64);
  const std::int64_t slices = (job.slices + process_count() - 1) / process_count();
  const std::int64_t most =
      std::clamp<std::int64_t>((slices + 3) / 4, std::min<std::int64_t>(8, slices), enough);
  std::int64_t chunk = least, beyond = 1 + std::max(least, most);
  while (beyond - chunk > 1) {
    const std::int64_t middle = (chunk + beyond) / 2;
    (needed(middle) <= limit ? chunk : beyond) = middle;
  }
  return chunk > 2 ? chunk / 2 * 2 : chunk; // the Fourier method takes slices in pairs
}

} // namespace Bracewell::Examples
