// SPDX-License-Identifier: MIT
#include "bracewell-tomography/run.hpp"

#include "bracewell-tomography/output.hpp"
#include "bracewell-tomography/reconstructor.hpp"
#include "common/input_error.hpp"
#include "common/memory_limit.hpp"
#include "common/output_family.hpp"
#include "common/picture.hpp"
#include "common/progress.hpp"

#include <bracewell/reconstruct/mask.hpp>
#include <bracewell/tomography/find_centre.hpp>
#include <bracewell/tomography/preprocess.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <future>
#include <memory>
#include <numbers>
#include <numeric>
#include <utility>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

/// Slices of a scan in memory: as they were read, and on the device.
class RawSlices {
public:
  RawSlices(const Scan& scan, std::int64_t slices)
      : scan_(scan),
        frames_(allocate<Owned<float*>>("raw", size(slices) * scan.angles().size() * size(scan.width()))),
        flat_(allocate<Owned<float*>>("flat", slices * scan.width())),
        dark_(allocate<Owned<float*>>("dark", slices * scan.width())),
        host_frames_(Kokkos::create_mirror_view(frames_)), host_flat_(Kokkos::create_mirror_view(flat_)),
        host_dark_(Kokkos::create_mirror_view(dark_)) {}

  static double bytes_per_slice(const Scan& scan) {
    const double values = double(scan.angles().size() + 2) * double(scan.width());
    return 4 * values * (std::is_same_v<Memory, Kokkos::HostSpace> ? 1 : 2);
  }

  void read(std::int64_t first, std::int64_t count) {
    first_ = first;
    count_ = count;
    const std::size_t pixels = size(count * scan_.width());
    scan_.read(first, count, {host_frames_.data(), pixels * scan_.angles().size()});
    if (scan_.has_flat())
      scan_.read_flat(first, count, {host_flat_.data(), pixels});
    if (scan_.has_dark())
      scan_.read_dark(first, count, {host_dark_.data(), pixels});
  }

  /// Sinograms [count, angles, width] from what was read.
  void normalise(const Space& space, const Sinograms& sinograms,
                 const ProjectionNormalisation& options) const {
    Kokkos::deep_copy(space, frames_, host_frames_);
    Kokkos::deep_copy(space, flat_, host_flat_);
    Kokkos::deep_copy(space, dark_, host_dark_);
    const std::size_t rows = size(count_), width = size(scan_.width());
    const Part<float***> frames(frames_.data(), scan_.angles().size(), rows, width);
    const auto part = [&](bool there, const Owned<float*>& view) {
      return there ? Part<float**>(view.data(), rows, width) : Part<float**>();
    };
    normalise_projections(space, frames, part(scan_.has_dark(), dark_), part(scan_.has_flat(), flat_),
                          sinograms, options);
  }

  std::int64_t first() const { return first_; }
  std::int64_t count() const { return count_; }

private:
  const Scan& scan_;
  Owned<float*> frames_, flat_, dark_;
  Owned<float*>::host_mirror_type host_frames_, host_flat_, host_dark_;
  std::int64_t first_ = 0, count_ = 0;
};

ProjectionNormalisation normalise_options(const RunOptions& options) {
  const IndexRange air = options.air.value_or(IndexRange{});
  return {.logarithm = options.logarithm, .air_begin = int(air.begin), .air_end = int(air.end)};
}

/// What is to be reconstructed, its options checked.
struct Job {
  Scan scan;
  IndexRange rows;
  int width;
  std::int64_t slices, middle; ///< the middle one counts from the first of the rows

  Job(const RunOptions& options, Provenance& provenance)
      : scan(options.scan, provenance), rows(options.rows.value_or(IndexRange{0, scan.rows()})),
        width(static_cast<int>(scan.width())), slices(rows.end - rows.begin), middle(slices / 2) {
    const std::string file = scan.path().string();
    if (rows.begin < 0 || slices < 1 || rows.end > scan.rows())
      throw InputError(file + ": expected --rows within 0:" + std::to_string(scan.rows()) + ", found " +
                       std::to_string(rows.begin) + ":" + std::to_string(rows.end));
    if (scan.width() > 32768)
      throw InputError(file + ": is " + std::to_string(scan.width()) +
                       " pixels wide, expected at most 32768");
    if (options.air && (options.air->begin < 0 || options.air->end > width))
      throw InputError(file + ": expected --air within 0:" + std::to_string(width) + ", found " +
                       std::to_string(options.air->begin) + ":" + std::to_string(options.air->end));
    const auto [first, last] = std::ranges::minmax(scan.angles());
    if (!options.centre && !options.try_centres && last - first < 170 * std::numbers::pi / 180)
      throw InputError(file + ": the rotation axis is found from 170 degrees or more, the angles span " +
                       shortest((last - first) * 180 / std::numbers::pi) + "; use --centre");
    if (options.logarithm && !scan.has_flat() && !options.air)
      provenance.assume(file + ": has no frames without object: its values are taken as transmission; use "
                               "--flat, --air, or --no-log for attenuation");
  }

  std::int64_t middle_row() const { return rows.begin + middle; }
};

/// Says where flat frames are no brighter than dark ones.
void check_flats(const Job& job, Provenance& provenance) {
  if (!job.scan.has_dark())
    return;
  std::vector<float> flat(size(job.width)), dark(flat.size());
  job.scan.read_flat(job.middle_row(), 1, flat);
  job.scan.read_dark(job.middle_row(), 1, dark);
  std::size_t below = 0;
  for (std::size_t i = 0; i < flat.size(); ++i)
    below += flat[i] <= dark[i];
  if (20 * below > flat.size())
    provenance.assume(job.scan.path().string() + ": flat frames are not above dark ones in " +
                      std::to_string(below) + " of " + std::to_string(flat.size()) + " pixels of row " +
                      std::to_string(job.middle_row()) +
                      ", which are interpolated; are --flat and --dark right?");
}

/// Says where the object is wider than the detector: the outermost columns see it.
void check_width(const Job& job, const Owned<float**>& sinogram, Provenance& provenance) {
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

FilterOptions filter_options(const RunOptions& options) {
  return {.filter = options.filter, .padding = options.padding, .upsampling = row_upsampling(options.method)};
}

/// Sinogram of the middle row.
Owned<float**> middle_sinogram(const Space& space, const Job& job, const RunOptions& options,
                               const std::optional<StripeRemoval<Space, float>>& stripes) {
  RawSlices raw(job.scan, 1);
  raw.read(job.middle_row(), 1);
  const auto sinogram = allocate<Owned<float**>>("sinogram", job.scan.angles().size(), job.width);
  const Sinograms slices(sinogram.data(), 1, sinogram.extent(0), sinogram.extent(1));
  raw.normalise(space, slices, normalise_options(options));
  if (stripes)
    stripes->execute(space, slices);
  return sinogram;
}

/// How many slices at a time: as many as the limit allows and are of use.
/// @param occupied  bytes before there are buffers and plans
std::int64_t chunk_size(const Space& space, const Job& job, const RunOptions& options, double occupied) {
  const Scan& scan = job.scan;
  const auto angles = static_cast<std::int64_t>(scan.angles().size());
  const ParallelBeamGeometry geometry =
      beam_geometry(options, scan.angles(), job.width, options.centre.value_or(job.width / 2.0));
  const int upsampling = row_upsampling(options.method);
  const double sinogram = 4.0 * double(angles) * job.width, image = 4.0 * job.width * double(job.width);
  const bool host = std::is_same_v<Memory, Kokkos::HostSpace>;
  // Two slots to read into, the sinograms, filtered ones, the slices on the device and two slots to write from.
  const double per_slice = 2 * RawSlices::bytes_per_slice(scan) +
                           sinogram * (upsampling > 1 ? 1 + upsampling : 1) + (host ? 2 : 3) * image;
  const double stripes =
      options.stripes
          ? double(StripeRemoval<Space, float>::bytes_needed(space, int(angles), job.width, *options.stripes))
          : 0;
  const auto needed = [&](std::int64_t count) {
    // Beside these the picture, and what libraries take once they are used.
    return occupied + stripes + 3 * image + 12e6 + per_slice * double(count) +
           double(ProjectionFilter<Space, float>::bytes_needed(space, count * angles, job.width,
                                                               filter_options(options))) +
           double(reconstructor_bytes(space, options, geometry, count));
  };
  const double limit = memory_limit(options.memory_limit);
  const std::int64_t least = options.method == Method::Fourier ? std::min<std::int64_t>(2, job.slices) : 1;
  require_memory("reconstructing " + std::to_string(least) + " slices at a time", needed(least), limit);
  // A few chunks, for reading and writing to go on beside the work.
  std::int64_t chunk = least,
               beyond =
                   1 + std::max(least, std::clamp<std::int64_t>((job.slices + 3) / 4,
                                                                std::min<std::int64_t>(8, job.slices), 64));
  while (beyond - chunk > 1) {
    const std::int64_t middle = (chunk + beyond) / 2;
    (needed(middle) <= limit ? chunk : beyond) = middle;
  }
  return chunk > 2 ? chunk / 2 * 2 : chunk; // the Fourier method takes slices in pairs
}

fs::path picture_path(const RunOptions& options) {
  return beside(options.out, "_middle" + options.picture_ending);
}

/// Greys by the values in the disc of a slice.
GreyRange range_in_disc(std::span<const float> slice, int width) {
  std::vector<float> inside;
  for (int y = 0; y < width; ++y)
    for (int x = 0; x < width; ++x)
      if (std::hypot(x - width / 2, y - width / 2) < 0.49 * width)
        inside.push_back(slice[size(y) * size(width) + size(x)]);
  return percentile_range(inside, 0.002, 0.998);
}

struct OutputSlot {
  Owned<float***> slices;
  Owned<float***>::host_mirror_type host;
};

} // namespace

RunResult reconstruct(const Space& space, const RunOptions& options, Provenance& provenance) {
  const auto start = std::chrono::steady_clock::now();
  OutputFamily outputs({options.out, picture_path(options)});
  const Job job(options, provenance);
  const Scan& scan = job.scan;
  const IndexRange rows = job.rows;
  const int width = job.width;
  const std::int64_t slices = job.slices, middle = job.middle;
  const std::size_t angles = scan.angles().size();
  SliceOutput output(options.out, slices, width);
  std::optional<StripeRemoval<Space, float>> stripes;
  if (options.stripes)
    stripes.emplace(space, int(angles), width, *options.stripes);
  // What is wrong, and how much fits, is found before the axis is searched.
  const std::int64_t chunk = chunk_size(space, job, options, resident_bytes());
  check_flats(job, provenance);
  double centre = 0;
  {
    const auto sinogram = middle_sinogram(space, job, options, stripes);
    check_width(job, sinogram, provenance);
    provenance.say();
    if (options.centre) {
      centre = *options.centre;
    } else {
      Progress progress("searching the axis", "parts", 100);
      std::int64_t shown = 0;
      centre = find_centre(space, sinogram, scan.angles(), {.progress = [&](double share) {
                             progress.add(std::int64_t(100 * share) -
                                          std::exchange(shown, std::int64_t(100 * share)));
                           }});
    }
  }
  if (!options.centre)
    provenance.took(scan.path(), "the rotation axis at pixel " + shortest(centre));
  output.write_provenance(provenance.text());

  const Reconstructor plan =
      make_reconstructor(space, options, beam_geometry(options, scan.angles(), width, centre), chunk);
  const ProjectionFilter<Space, float> filter(space, chunk * std::int64_t(angles), width,
                                              filter_options(options));
  std::array<std::unique_ptr<RawSlices>, 2> input;
  std::array<OutputSlot, 2> results;
  for (const std::size_t slot : {0, 1}) {
    input[slot] = std::make_unique<RawSlices>(scan, chunk);
    const bool own_device_memory = slot == 0 || std::is_same_v<Memory, Kokkos::HostSpace>;
    results[slot].slices =
        own_device_memory ? allocate<Owned<float***>>("slices", chunk, width, width) : results[0].slices;
    results[slot].host = Kokkos::create_mirror_view(results[slot].slices);
  }
  const auto sinograms = allocate<Owned<float***>>("sinograms", chunk, angles, width);
  const std::size_t fine_width = size(row_upsampling(options.method) * width);
  const auto filtered = fine_width == size(width)
                            ? sinograms
                            : allocate<Owned<float***>>("filtered", chunk, angles, fine_width);

  std::vector<float> picture(size(width) * size(width));
  Progress progress("reconstructing", "slices", slices);
  const auto read = [&](std::int64_t first, std::size_t slot) {
    return std::async(std::launch::async, [&, first, slot] {
      input[slot]->read(rows.begin + first, std::min(chunk, slices - first));
    });
  };
  std::future<void> reading = read(0, 0), writing;
  std::size_t slot = 0;
  for (std::int64_t first = 0; first < slices; first += chunk, slot = 1 - slot) {
    const std::int64_t count = std::min(chunk, slices - first);
    reading.get();
    if (first + chunk < slices)
      reading = read(first + chunk, 1 - slot);
    const auto first_of = [&](const Sinograms& all) {
      return Kokkos::subview(all, std::pair<std::size_t, std::size_t>(0, size(count)), Kokkos::ALL,
                             Kokkos::ALL);
    };
    const Sinograms filled = first_of(sinograms);
    input[slot]->normalise(space, filled, normalise_options(options));
    if (stripes)
      stripes->execute(space, filled);
    const Sinograms ready = first_of(filtered);
    filter.execute(space, filled, ready);
    const OutputSlot& result = results[slot];
    const Slices done = first_of(result.slices);
    plan(space, ready, done);
    if (!options.corners)
      apply_mask(space, done, {.radius = width / 2.0});
    Kokkos::deep_copy(space, result.host, result.slices);
    space.fence("Bracewell::examples::tomography"); // before the slots are read and written
    if (writing.valid())
      writing.get();
    writing = std::async(std::launch::async, [&, first, count, host = result.host] {
      const std::size_t pixels = picture.size();
      output.write(first, {host.data(), size(count) * pixels});
      if (middle >= first && middle < first + count)
        std::copy_n(host.data() + size(middle - first) * pixels, pixels, picture.begin());
      progress.add(count);
    });
  }
  writing.get();
  output.write_attribute("centre", centre);
  write_picture(picture_path(options), grey_panel({.caption = "middle slice: attenuation per pixel",
                                                   .values = picture,
                                                   .width = width,
                                                   .height = width,
                                                   .range = range_in_disc(picture, width),
                                                   .points = 400}));
  output.commit();
  outputs.commit();

  char text[160];
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::snprintf(text, sizeof text,
                ": %lld slices of %d x %d pixels from %zu projections, centre %.2f, %.3g s",
                static_cast<long long>(slices), width, width, angles, centre, elapsed.count());
  return {options.out.string() + text, centre};
}

std::string try_centres(const Space& space, const RunOptions& options, Provenance& provenance) {
  require_picture_name(options.out);
  OutputFamily outputs({options.out});
  const Job job(options, provenance);
  const CentreRange& range = *options.try_centres;
  const auto count = static_cast<std::int64_t>((range.last - range.first) / range.step + 1 + 1e-9);
  check_flats(job, provenance);
  provenance.say();
  std::optional<StripeRemoval<Space, float>> stripes;
  if (options.stripes)
    stripes.emplace(space, int(job.scan.angles().size()), job.width, *options.stripes);
  const auto sinogram = middle_sinogram(space, job, options, stripes);
  const int fine_width = row_upsampling(options.method) * job.width;
  const auto filtered = allocate<Owned<float***>>("filtered", 1, sinogram.extent(0), fine_width);
  ProjectionFilter<Space, float>(space, std::int64_t(sinogram.extent(0)), job.width, filter_options(options))
      .execute(space, Sinograms(sinogram.data(), 1, sinogram.extent(0), sinogram.extent(1)), filtered);
  const auto slice = allocate<Owned<float***>>("slice", 1, job.width, job.width);
  std::vector<std::vector<float>> images;
  Progress progress("reconstructing", "centres", count);
  for (std::int64_t i = 0; i < count; ++i) {
    const ParallelBeamGeometry geometry =
        beam_geometry(options, job.scan.angles(), job.width, range.first + double(i) * range.step);
    make_reconstructor(space, options, geometry, 1)(space, filtered, slice);
    apply_mask(space, slice, {.radius = job.width / 2.0});
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), slice);
    images.emplace_back(host.data(), host.data() + host.size());
    progress.add(1);
  }
  const GreyRange grey = range_in_disc(images[images.size() / 2], job.width); // the same for all
  const auto columns = size(std::int64_t(std::ceil(std::sqrt(double(count)))));
  std::vector<Picture> rows, row;
  for (std::size_t i = 0; i < images.size(); ++i) {
    row.push_back(grey_panel({.caption = "centre " + shortest(range.first + double(i) * range.step),
                              .values = images[i],
                              .width = job.width,
                              .height = job.width,
                              .range = grey,
                              .points = 400}));
    if (row.size() == columns || i + 1 == images.size())
      rows.push_back(side_by_side(std::exchange(row, {})));
  }
  write_picture(options.out, stacked(rows));
  outputs.commit();
  return options.out.string() + ": slice " + std::to_string(job.middle_row()) + " at " +
         std::to_string(count) + " centres";
}

} // namespace Bracewell::Examples
