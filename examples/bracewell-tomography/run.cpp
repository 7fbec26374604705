// SPDX-License-Identifier: MIT
#include "bracewell-tomography/run.hpp"

#include "bracewell-tomography/output.hpp"
#include "bracewell-tomography/reconstructor.hpp"
#include "common/image.hpp"
#include "common/input_error.hpp"
#include "common/output_family.hpp"
#include "common/progress.hpp"

#include <bracewell/reconstruct/mask.hpp>
#include <bracewell/tomography/find_centre.hpp>
#include <bracewell/tomography/preprocess.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <future>
#include <memory>

#include <unistd.h>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;
constexpr double megabyte = 1e6;

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

/// The pixel of the rotation axis, from one slice.
double search_centre(const Space& space, const Scan& scan, const RunOptions& options, std::int64_t row) {
  RawSlices raw(scan, 1);
  raw.read(row, 1);
  const std::size_t angles = scan.angles().size(), width = size(scan.width());
  const auto sinogram = allocate<Owned<float**>>("sinogram", angles, width);
  const Sinograms slices(sinogram.data(), 1, angles, width);
  raw.normalise(space, slices, normalise_options(options));
  if (options.stripes)
    StripeRemoval<Space, float>(space, int(angles), int(width), *options.stripes).execute(space, slices);
  return find_centre(space, sinogram, scan.angles());
}

/// Bytes that the program has in memory now.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * double(::sysconf(_SC_PAGESIZE));
}

double half_of_memory() { return 0.5 * double(::sysconf(_SC_PHYS_PAGES)) * double(::sysconf(_SC_PAGESIZE)); }

std::string megabytes(double bytes) {
  return std::to_string(std::int64_t(std::ceil(bytes / megabyte))) + " MB";
}

/// How many slices at a time: as many as the limit allows and are of use.
std::int64_t chunk_size(const Scan& scan, const RunOptions& options, std::int64_t slices, double occupied,
                        const Reconstructor& plan) {
  const double limit = options.memory_limit ? *options.memory_limit * megabyte : half_of_memory();
  const double sinogram = 4.0 * double(scan.angles().size()) * double(scan.width());
  const double image = 4.0 * double(scan.width()) * double(scan.width());
  const bool host = std::is_same_v<Memory, Kokkos::HostSpace>;
  // Two slots to read into, the sinograms, the slices on the device and two slots to write from.
  const double per_slice =
      2 * RawSlices::bytes_per_slice(scan) + sinogram + (host ? 2 : 3) * image + double(plan.bytes_per_slice);
  // Beside these the picture, and what libraries take once they are used.
  const double fixed =
      occupied + double(plan.fixed_bytes) + (options.stripes ? 2.2 * sinogram : 0) + 3 * image + 12e6;
  const auto fits = [&](std::int64_t count) { return fixed + per_slice * double(count) <= limit; };
  const std::int64_t least = options.method == Method::Fourier ? std::min<std::int64_t>(2, slices) : 1;
  if (!fits(least))
    throw InputError("--memory-limit " + megabytes(limit) + ": reconstructing " + std::to_string(least) +
                     " slices at a time needs " + megabytes(fixed + per_slice * double(least)));
  // A few chunks, for reading and writing to go on beside the work.
  const std::int64_t wanted =
      std::clamp<std::int64_t>((slices + 3) / 4, std::min<std::int64_t>(8, slices), 64);
  std::int64_t chunk = least;
  while (chunk < wanted && fits(chunk + 1))
    ++chunk;
  return chunk > 2 ? chunk / 2 * 2 : chunk; // the Fourier method takes slices in pairs
}

fs::path picture_path(const fs::path& out) {
  return out.parent_path() / (out.stem().string() + "_middle.png");
}

/// A slice in grey by the values in its disc.
void write_picture(const fs::path& path, std::span<const float> slice, int width) {
  std::vector<float> inside;
  for (int y = 0; y < width; ++y)
    for (int x = 0; x < width; ++x)
      if (std::hypot(x - width / 2, y - width / 2) < 0.49 * width)
        inside.push_back(slice[size(y) * size(width) + size(x)]);
  const GreyRange range = percentile_range(inside, 0.002, 0.998);
  write_png(path, enlarged(grey_picture(slice, width, width, range), std::max(1, 400 / width)));
}

struct OutputSlot {
  Owned<float***> slices;
  Owned<float***>::host_mirror_type host;
};

} // namespace

RunResult reconstruct(const Space& space, const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  OutputFamily outputs({options.out, picture_path(options.out)});
  const Scan scan(options.scan);
  const IndexRange rows = options.rows.value_or(IndexRange{0, scan.rows()});
  if (rows.begin < 0 || rows.end <= rows.begin || rows.end > scan.rows())
    throw InputError(scan.path().string() + ": expected --rows within 0:" + std::to_string(scan.rows()) +
                     ", found " + std::to_string(rows.begin) + ":" + std::to_string(rows.end));
  if (scan.width() > 32768)
    throw InputError(scan.path().string() + ": is " + std::to_string(scan.width()) +
                     " pixels wide, expected at most 32768");
  const int width = static_cast<int>(scan.width());
  const std::int64_t slices = rows.end - rows.begin, middle = slices / 2;
  const std::size_t angles = scan.angles().size();
  if (options.air && (options.air->begin < 0 || options.air->end > width))
    throw InputError(scan.path().string() + ": expected --air within 0:" + std::to_string(width) +
                     ", found " + std::to_string(options.air->begin) + ":" +
                     std::to_string(options.air->end));
  SliceOutput output(options.out, slices, width);

  const double centre =
      options.centre ? *options.centre : search_centre(space, scan, options, rows.begin + middle);

  std::int64_t chunk = std::min<std::int64_t>(2, slices);
  {
    const double occupied = resident_bytes();
    chunk = chunk_size(scan, options, slices, occupied,
                       make_reconstructor(space, options, scan.angles(), width, centre, chunk));
  }
  const Reconstructor plan = make_reconstructor(space, options, scan.angles(), width, centre, chunk);
  const ProjectionFilter<Space, float> filter(
      space, chunk * std::int64_t(angles), width,
      {.filter = options.filter, .padding = options.padding, .upsampling = row_upsampling(options.method)});
  std::optional<StripeRemoval<Space, float>> stripes;
  if (options.stripes)
    stripes.emplace(space, int(angles), width, *options.stripes);
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
  const Sinograms all(filtered.data(), size(chunk), angles, fine_width);
  Kokkos::deep_copy(space, filtered, 0.f); // the last chunk may leave some unused

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
    const Sinograms filled(sinograms.data(), size(count), angles, size(width));
    input[slot]->normalise(space, filled, normalise_options(options));
    if (stripes)
      stripes->execute(space, filled);
    filter.execute(space, filled, Sinograms(filtered.data(), size(count), angles, fine_width));
    const OutputSlot& result = results[slot];
    plan.backproject(space, all, Slices(result.slices.data(), size(chunk), size(width), size(width)));
    if (!options.corners)
      apply_mask(space, result.slices, {.radius = width / 2.0});
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
  write_picture(picture_path(options.out), picture, width);
  output.commit();
  outputs.commit();

  char text[160];
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::snprintf(text, sizeof text,
                ": %lld slices of %d x %d pixels from %zu projections, centre %.2f, %.3g s",
                static_cast<long long>(slices), width, width, angles, centre, elapsed.count());
  return {options.out.string() + text, centre};
}

} // namespace Bracewell::Examples
