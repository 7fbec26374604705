// SPDX-License-Identifier: MIT
// What is looked at before the work: some rows.
#include "bracewell-tomography/middle_slice.hpp"

#include "bracewell-tomography/align.hpp"
#include "bracewell-tomography/output.hpp"
#include "bracewell-tomography/placement.hpp"
#include "common/memory_limit.hpp"
#include "common/output_family.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"
#include "common/text_table.hpp"

#include <bracewell/tomography/find_centre.hpp>
#include <bracewell/tomography/half_acquisition.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace Bracewell::Examples {
namespace {

/// Says where the object is wider than the detector: the outermost columns see it.
void check_width(const Job& job, const DeviceView<float**>& sinogram, Provenance& provenance) {
  const auto values = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sinogram);
  std::vector<double> columns(size(job.width)); // means over the angles
  for (std::size_t p = 0; p < values.extent(0); ++p)
    for (std::size_t x = 0; x < columns.size(); ++x)
      columns[x] += values(p, x) / double(values.extent(0));
  const std::size_t some = std::max<std::size_t>(1, columns.size() / 50);
  const auto mean = [&](auto begin) {
    return std::accumulate(begin, begin + std::ptrdiff_t(some), 0.0) / double(some);
  };
  const double edge = std::max(mean(columns.begin()), mean(columns.end() - std::ptrdiff_t(some))),
               largest = *std::ranges::max_element(columns);
  if (edge > 0.2 * largest)
    provenance.assume(
        job.scan.path().string() + ": the object goes on beyond the detector, as the attenuation at " +
        "its edge is " + shortest(std::round(100 * edge / largest)) +
        " % of the largest: slices are wrong by a smooth background; where the edge sees air, use --air");
}

/// Sinogram [1, angles, width] of a row.
void read_sinogram(const Space& space, const Job& job, const Stripes& stripes,
                   const std::optional<PreparedRows>& prepared, std::int64_t row, const Sinograms& slices) {
  if (prepared) {
    Kokkos::deep_copy(Part<float*>(slices.data(), slices.size()), host_view(prepared->row(row)));
  } else {
    const Kokkos::View<std::byte*, Kokkos::HostSpace> host("Bracewell::examples::rows",
                                                           size(job.bytes_per_row()));
    job.read(row, 1, {host.data(), host.size()});
    const auto rows = Kokkos::create_mirror_view_and_copy(Memory(), host);
    Normalise(space, job, Means(job, row, 1), 1, 1)(space, 0, rows.data(), slices);
    if (stripes)
      stripes->execute(space, slices);
    space.fence("Bracewell::examples::sinogram");
  }
  harden(space, job.options, slices);
}

/// Where the views are, found with some rows from all of the slices.
Views find_views(const Space& space, const Job& job, const Stripes& stripes,
                 const std::optional<PreparedRows>& prepared, double centre, Provenance& provenance) {
  const Views before{job.scan.angles()};
  const std::int64_t rows = std::min(aligned_rows, job.slices);
  require_memory("aligning " + std::to_string(rows) + " slices",
                 resident_bytes() + alignment_bytes(space, before, job.width, rows),
                 memory_limit(job.options.memory_limit));
  const auto sinograms = allocate<Sinograms>("sinograms", rows, job.angles(), job.width);
  for (std::int64_t i = 0; i < rows; ++i)
    read_sinogram(space, job, stripes, prepared, job.rows.begin + (2 * i + 1) * job.slices / (2 * rows),
                  Sinograms(sinograms.data() + i * job.angles() * job.width, 1, sinograms.extent(1),
                            sinograms.extent(2)));
  Progress progress("aligning", "steps", alignment_steps(job.width));
  const Views found = align_views(space, sinograms, before, centre, progress);
  double rotated = 0, shifted = 0; // root mean squares
  for (std::size_t p = 0; p < found.angles.size(); ++p) {
    rotated += std::pow((found.angles[p] - before.angles[p]) / degree, 2) / double(found.angles.size());
    shifted += std::pow(found.shifts[p], 2) / double(found.angles.size());
  }
  provenance.took(job.scan.path(), "views that are " + shortest(std::sqrt(rotated)) + " degrees and " +
                                       shortest(std::sqrt(shifted)) + " pixels off (root mean square)");
  return found;
}

/// Angles and shifts as a table.
void write_views(const std::filesystem::path& path, const Views& views) {
  std::vector<double> degrees;
  for (const double angle : views.angles)
    degrees.push_back(angle / degree);
  const std::vector<TextColumn> columns{{"angle_degrees", degrees}, {"shift_pixels", views.shifts}};
  write_text_table(path, columns);
}

} // namespace

std::optional<PreparedRows> prepare_middle(const Space& space, const Job& job, const Stripes& stripes) {
  if (!job.has_frame_steps())
    return {};
  auto prepared = prepare_sinograms(space, job, {job.middle_row(), job.middle_row() + 1}, stripes);
  if (!job.options.try_tilts)
    prepare_frames(space, job, job.options.roll, prepared);
  return prepared;
}

DeviceView<float**> middle_sinogram(const Space& space, const Job& job, const Stripes& stripes,
                                    const std::optional<PreparedRows>& prepared) {
  const auto sinogram = allocate<DeviceView<float**>>("sinogram", job.angles(), job.width);
  read_sinogram(space, job, stripes, prepared, job.middle_row(),
                Sinograms(sinogram.data(), 1, sinogram.extent(0), sinogram.extent(1)));
  return sinogram;
}

double mean_attenuation(const DeviceView<float**>& sinogram) {
  const auto values = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sinogram);
  const double squares =
      std::transform_reduce(values.data(), values.data() + values.size(), 0.0, std::plus<>(),
                            [](float value) { return double(value) * value; });
  return std::sqrt(squares / double(values.size())) / double(values.extent(1));
}

MiddleSlice look_at_middle(const Space& space, const Job& job, const DeviceView<float**>& sinogram,
                           Provenance& provenance, Timings& timings) {
  const RunOptions& options = job.options;
  if (!options.half_acquisition && !options.laminography)
    check_width(job, sinogram, provenance);
  check_size(options, place_of(job, axis_or_widest(job)), provenance);
  if (options.centre && !(*options.centre >= 0 && *options.centre <= job.width - 1))
    provenance.assume("--centre " + shortest(*options.centre) + ": lies outside of the detector's " +
                      std::to_string(job.width) + " columns: what is about the axis was not seen");
  provenance.say();
  MiddleSlice found{.centre = options.centre.value_or(0), .attenuation = mean_attenuation(sinogram)};
  if (!options.centre)
    timings.phase("search the axis");
  if (!options.centre && options.half_acquisition) {
    found.centre = find_overlap(space, sinogram, job.scan.angles());
  } else if (!options.centre) {
    Progress progress("searching the axis", "parts", 100);
    std::int64_t shown = 0;
    found.centre = find_centre(space, sinogram, job.scan.angles(), {.progress = [&](double share) {
                                 progress.add(std::int64_t(100 * share) -
                                              std::exchange(shown, std::int64_t(100 * share)));
                               }});
  }
  // Whatever the others compute on.
  found.centre = sum_over_processes(is_first_process() ? found.centre : 0);
  found.attenuation = sum_over_processes(is_first_process() ? found.attenuation : 0);
  if (!options.centre)
    provenance.took(job.scan.path(), "the rotation axis at pixel " + shortest(found.centre));
  if (options.half_acquisition)
    provenance.took(job.scan.path(),
                    "half acquisition: " +
                        shortest(std::round(1 + 2 * std::min(found.centre, job.width - 1 - found.centre))) +
                        " columns are seen twice");
  return found;
}

void check_size(const RunOptions& options, const Place& place, Provenance& provenance) {
  if (options.solver && place.image < place.seen)
    provenance.assume("--size " + std::to_string(place.image) +
                      ": --solver takes what lies beyond the slices for air; the detector sees " +
                      std::to_string(place.seen) + " pixels");
}

void check_flats(const Job& job, Provenance& provenance) {
  if (!job.scan.has_dark())
    return;
  const Means means(job, job.middle_row(), 1);
  std::size_t below = 0;
  for (std::size_t i = 0; i < means.dark.size(); ++i)
    below += means.flat[i] <= means.dark[i];
  if (20 * below > means.dark.size())
    provenance.assume(job.scan.path().string() + ": flat frames are not above dark ones in " +
                      std::to_string(below) + " of " + std::to_string(means.dark.size()) + " pixels of row " +
                      std::to_string(job.middle_row()) +
                      ", which are interpolated; are --flat and --dark right?");
}

Views views_of(const Space& space, const Job& job, const Stripes& stripes,
               const std::optional<PreparedRows>& prepared, double centre, Provenance& provenance,
               Timings& timings) {
  const RunOptions& options = job.options;
  if (options.laminography || options.align)
    require_one_process();
  if (!options.align)
    return {job.scan.angles()};
  timings.phase("align the views");
  Views views = find_views(space, job, stripes, prepared, centre, provenance);
  if (!is_null_output(options.out))
    write_views(views_path(options), views);
  return views;
}

std::filesystem::path views_path(const RunOptions& options) { return beside(options.out, "_views.txt"); }

} // namespace Bracewell::Examples
