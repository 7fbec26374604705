// SPDX-License-Identifier: MIT
#include "bracewell-tomography/prepare.hpp"

#include "common/input_error.hpp"
#include "common/memory_limit.hpp"
#include "common/progress.hpp"
#include "common/stored_values.hpp"

#include <bracewell/tomography/detector.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace Bracewell::Examples {
namespace {

DeviceView<float*> uploaded(const Space& space, const std::vector<float>& values) {
  const auto view = allocate<DeviceView<float*>>("means", values.size());
  copy_values(space, view, host_view(values));
  space.fence("Bracewell::examples::means");
  return view;
}

/// Values of one row that pass through the steps before normalisation, 0 where there is no such step.
struct RowValues {
  std::int64_t floats, binned, cut, uncleaned;

  explicit RowValues(const Job& job) {
    const RunOptions& options = job.options;
    const std::int64_t bin = options.binning, pixels = job.scan.width() * bin,
                       columns = job.scan.width() / bin;
    floats = job.scan.format().is_float() ? 0 : pixels * job.angles();
    binned = bin > 1 ? columns * job.angles() : 0;
    cut = job.width < columns ? job.width * job.angles() : 0;
    uncleaned = options.zingers ? job.width * job.angles() : 0;
  }
};

using Frames = Kokkos::View<float***, Kokkos::LayoutRight, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
using ConstFrames =
    Kokkos::View<const float***, Kokkos::LayoutRight, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// Values at the limit of their type are those of a detector that saw more than it can count: not a number from here on.
struct MarkSaturated {
  float* values;
  float limit;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (values[i] >= limit)
      values[i] = Kokkos::Experimental::quiet_NaN_v<float>;
  }
};

/// The share of the values of a row of all projections that are 0 or less.
double share_without_light(const Scan& scan, std::int64_t row) {
  const std::int64_t count = std::int64_t(scan.angles().size()) * scan.width();
  const Kokkos::View<std::byte*, Kokkos::HostSpace> host("Bracewell::examples::row",
                                                         size(count * bytes_of(scan.format().type)));
  scan.read(row, 1, {host.data(), host.size()});
  const auto stored = values_in<Memory>(host);
  const auto floats = allocate<DeviceView<float*>>("floats", count);
  const Space space;
  to_floats(space, scan.format(), stored.data(), floats.data(), count);
  space.fence("Bracewell::examples::share_without_light");
  const auto values = values_on_host(floats);
  return double(std::count_if(values.data(), values.data() + count, [](float value) { return value <= 0; })) /
         double(count);
}

/// Frames that are worked on at once.
std::int64_t frames_at_once(const Job& job, std::int64_t rows) {
  return std::clamp<std::int64_t>(
      std::int64_t((kernels_run_on_host ? 16e6 : 1e9) / (4.0 * double(rows) * job.width)), 1, job.angles());
}

} // namespace

Job::Job(const RunOptions& of_run, Provenance& provenance) : options(of_run), scan(of_run.scan, provenance) {
  const std::string file = scan.path().string();
  const auto within = [&](const char* option, IndexRange range, std::int64_t most) {
    if (range.begin < 0 || range.end <= range.begin || range.end > most)
      throw InputError(file + ": expected " + option + " within 0:" + std::to_string(most) + ", found " +
                       std::to_string(range.begin) + ":" + std::to_string(range.end));
  };
  if (scan.rows() < options.binning || scan.width() < options.binning)
    throw InputError(file + ": expected --binning of at most " +
                     std::to_string(std::min(scan.rows(), scan.width())) +
                     ", the smaller side of its frames, found " + std::to_string(options.binning));
  detector_rows = scan.rows() / options.binning;
  rows = options.rows.value_or(IndexRange{0, detector_rows});
  columns = options.columns.value_or(IndexRange{0, scan.width() / options.binning});
  within("--rows", rows, detector_rows);
  within("--columns", columns, scan.width() / options.binning);
  if (columns.end - columns.begin > 32768)
    throw InputError(file + ": is " + std::to_string(columns.end - columns.begin) +
                     " pixels wide, expected at most 32768");
  width = static_cast<int>(columns.end - columns.begin);
  slices = rows.end - rows.begin;
  middle = slices / 2;
  if (options.air)
    within("--air", *options.air, width);
  check_span();
  if (options.half_acquisition && options.centre && !(*options.centre >= 0 && *options.centre <= width - 1))
    throw InputError("--centre: expected a pixel of the detector with --half-acquisition, 0 to " +
                     std::to_string(width - 1) + ", found " + shortest(*options.centre));
  if (options.laminography && !options.centre)
    throw InputError("--laminography takes a --centre in pixels");
  const auto [first, last] = std::ranges::minmax(scan.angles());
  if (options.laminography &&
      (last - first) * double(scan.angles().size()) < 350 * degree * (double(scan.angles().size()) - 1))
    provenance.assume(file + ": --laminography takes angles over a whole turn, they span " +
                      shortest((last - first) / degree) + " degrees: what the others would see is missing");
  logarithm = options.logarithm.value_or(true);
  if (!options.logarithm && !scan.has_flat() && !options.air) {
    const double below = share_without_light(scan, options.binning * middle_row());
    logarithm = below < 0.05;
    provenance.assume(
        file + (logarithm ? ": has no frames without object: its values are taken as transmission; use "
                            "--flat, --air, or --no-log for attenuation"
                          : ": has no frames without object, and " + shortest(std::round(100 * below)) +
                                " % of the values of row " + std::to_string(middle_row()) +
                                " are 0 or less, which transmission is not: they are taken as "
                                "attenuation already (--no-log); --log takes their logarithm"));
  }
  if (options.phase) {
    const int reach = phase_reach(*options.phase);
    if (detector_rows <= reach)
      provenance.assume(file + ": the filter of --phase reaches " + std::to_string(reach) +
                        " pixels, more than the " + std::to_string(detector_rows) +
                        " rows of the frames: the outermost ones go on");
  }
}

void Job::check_span() const {
  const auto [first, last] = std::ranges::minmax(scan.angles());
  const double least = options.half_acquisition ? 350 : 170;
  double span = last - first;
  if (options.half_acquisition && scan.angles().size() > 1) // to the first angle of the next turn
    span *= double(scan.angles().size()) / double(scan.angles().size() - 1);
  const bool searched = !options.centre && !options.try_centres && !scan.is_tilt_series();
  if (searched || options.half_acquisition)
    if (span < least * degree)
      throw InputError(
          scan.path().string() +
          (options.half_acquisition ? ": --half-acquisition takes " : ": the rotation axis is found from ") +
          shortest(least) + " degrees or more, the angles span " + shortest(span / degree) +
          (options.half_acquisition ? "" : "; use --centre"));
}

std::optional<float> saturation(StoredType type) {
  switch (type) { // of 8 bits, which are often scaled, the largest value may be one
  case StoredType::Int16:
    return 32767.F;
  case StoredType::UInt16:
    return 65535.F;
  case StoredType::Int32:
    return 2147483647.F;
  case StoredType::UInt32:
    return 4294967295.F;
  default:
    return {};
  }
}

std::int64_t Job::frame_reach() const {
  double roll = std::abs(options.roll);
  if (options.try_tilts)
    roll = std::max({roll, std::abs(options.try_tilts->first), std::abs(options.try_tilts->last)});
  const std::int64_t rolled =
      roll > 0 ? std::int64_t(std::ceil(0.5 * width * std::sin(roll * degree) +
                                        0.5 * double(detector_rows) * (1 - std::cos(roll * degree)))) +
                     1
               : 0;
  return rolled + (options.phase ? phase_reach(*options.phase) : 0);
}

Means::Means(const Job& job, std::int64_t first, std::int64_t count) {
  const std::int64_t bin = job.options.binning, raw_width = job.scan.width();
  std::vector<float> raw(size(count * bin * raw_width));
  const auto append = [&](std::vector<float>& means) {
    for (std::int64_t row = 0; row < count; ++row)
      for (std::int64_t i = job.columns.begin; i < job.columns.end; ++i) {
        double sum = 0;
        for (std::int64_t y = row * bin; y < (row + 1) * bin; ++y)
          for (std::int64_t x = i * bin; x < (i + 1) * bin; ++x)
            sum += raw[size(y * raw_width + x)];
        means.push_back(float(sum / double(bin * bin)));
      }
  };
  if (job.scan.has_flat())
    for (std::int64_t set = 0; set < job.scan.flat_sets(); ++set) {
      job.scan.read_flat(set, first * bin, count * bin, raw);
      append(flat);
    }
  if (job.scan.has_dark()) {
    job.scan.read_dark(first * bin, count * bin, raw);
    append(dark);
  }
  for (std::size_t i = 0; job.lit && i < flat.size(); ++i)
    if (!job.sees(std::int64_t(i) % job.width))
      flat[i] = dark.empty() ? 0 : dark[i % dark.size()];
}

Normalise::Normalise(const Space& space, const Job& job, const Means& means, std::int64_t of_means,
                     std::int64_t rows)
    : job_(job), of_means_(of_means), flat_(uploaded(space, means.flat)), dark_(uploaded(space, means.dark)),
      places_(uploaded(space, job.scan.flat_places())) {
  const RowValues values(job);
  values_ = allocate<DeviceView<float*>>("values", values.floats * rows);
  binned_ = allocate<DeviceView<float*>>("binned", values.binned * rows);
  cut_ = allocate<DeviceView<float*>>("cut", values.cut * rows);
  uncleaned_ = allocate<DeviceView<float*>>("uncleaned", values.uncleaned * rows);
}

double Normalise::bytes_per_row(const Job& job) {
  const RowValues values(job);
  return 4.0 * double(values.floats + values.binned + values.cut + values.uncleaned);
}

void Normalise::operator()(const Space& space, std::int64_t first, const std::byte* rows,
                           const Sinograms& sinograms, const Sinograms& valid) const {
  const std::size_t count = sinograms.extent(0), angles = sinograms.extent(1), width = sinograms.extent(2),
                    bin = size(job_.options.binning), raw_width = size(job_.scan.width()),
                    columns = raw_width / bin;
  const float* values = reinterpret_cast<const float*>(rows);
  if (values_.size() > 0) {
    to_floats(space, job_.scan.format(), rows, values_.data(),
              std::int64_t(angles * count * bin * raw_width));
    if (const auto limit = saturation(job_.scan.format().type))
      Kokkos::parallel_for("Bracewell::examples::saturated",
                           Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                               space, 0, std::int64_t(angles * count * bin * raw_width)),
                           MarkSaturated{values_.data(), *limit});
    values = values_.data();
  }
  if (binned_.size() > 0) {
    bin_frames(space, ConstFrames(values, angles, count * bin, raw_width),
               Frames(binned_.data(), angles, count, columns), int(bin));
    values = binned_.data();
  }
  if (cut_.size() > 0) {
    const auto part = Kokkos::subview(
        ConstFrames(values, angles, count, columns), Kokkos::ALL, Kokkos::ALL,
        std::pair<std::size_t, std::size_t>(size(job_.columns.begin), size(job_.columns.end)));
    Kokkos::deep_copy(space, Frames(cut_.data(), angles, count, width), part);
    values = cut_.data();
  }
  const IndexRange air = job_.options.air.value_or(IndexRange{});
  const ProjectionNormalisation options{
      .logarithm = job_.logarithm, .air_begin = int(air.begin), .air_end = int(air.end)};
  const ConstFrames raw(values, angles, count, width);
  const Sinograms normalised =
      uncleaned_.size() > 0 ? Sinograms(uncleaned_.data(), count, angles, width) : sinograms;
  const Array<float, Memory> mask = valid.size() > 0 ? Array<float, Memory>(valid) : Array<float, Memory>();
  const auto part = [&](const DeviceView<float*>& mean) {
    return mean.size() > 0 ? Part<const float**>(mean.data() + size(first) * width, count, width)
                           : Part<const float**>();
  };
  if (places_.size() > 0) {
    // The sets of all rows lie behind each other: those of these rows are a part of each.
    const std::size_t sets = size(job_.scan.flat_sets());
    const ConstFrames all(flat_.data(), sets, size(of_means_), width);
    const auto flats = allocate<DeviceView<float***>>("flats", sets, count, width);
    Kokkos::deep_copy(space, flats,
                      Kokkos::subview(all, Kokkos::ALL,
                                      std::pair<std::size_t, std::size_t>(size(first), size(first) + count),
                                      Kokkos::ALL));
    normalise_projections(space, raw, part(dark_), flats, places_, normalised, options, mask);
    space.fence("Bracewell::examples::flats"); // which end here
  } else {
    normalise_projections(space, raw, part(dark_), part(flat_), normalised, options, mask);
  }
  if (uncleaned_.size() > 0)
    remove_outliers(space, normalised, sinograms, *job_.options.zingers);
}

double prepared_bytes(const Space& space, const Job& job, std::int64_t rows) {
  if (!job.has_frame_steps())
    return 0;
  const std::int64_t all = std::min(job.detector_rows, rows + 2 * job.frame_reach());
  const double frame = 4.0 * double(all) * job.width;
  double bytes = frame * double(job.angles()) + 3 * frame * double(frames_at_once(job, all));
  if (job.options.phase)
    bytes += double(PhaseRetrieval<Space, float>::bytes_needed(space, frames_at_once(job, all), int(all),
                                                               job.width, *job.options.phase));
  return bytes;
}

PreparedRows prepare_sinograms(const Space& space, const Job& job, IndexRange rows, const Stripes& stripes) {
  const auto [first, end] = job.with_neighbours(rows);
  PreparedRows result{.rows = {first, end}, .values = {}, .row_values = job.angles() * job.width};
  require_memory("preparing " + std::to_string(end - first) + " rows for steps on whole frames",
                 resident_bytes() + prepared_bytes(space, job, rows.end - rows.begin),
                 memory_limit(job.options.memory_limit));
  result.values.resize(size((end - first) * result.row_values));
  const std::int64_t chunk = std::min<std::int64_t>(kernels_run_on_host ? 4 : 16, end - first);
  const Normalise normalise(space, job, Means(job, first, end - first), end - first, chunk);
  const Kokkos::View<std::byte*, Kokkos::HostSpace> host("Bracewell::examples::rows",
                                                         size(chunk * job.bytes_per_row()));
  const auto device = Kokkos::create_mirror_view(Memory(), host);
  const auto sinograms = allocate<DeviceView<float***>>("sinograms", chunk, job.angles(), job.width);
  const bool masked = stripes && job.has_masks();
  const auto masks = allocate<Sinograms>("valid", masked ? chunk : 0, job.angles(), job.width);
  Progress progress("preparing", "rows", end - first);
  for (std::int64_t row = first; row < end; row += chunk) {
    const std::int64_t count = std::min(chunk, end - row);
    job.read(row, count, {host.data(), size(count * job.bytes_per_row())});
    copy_values(space, device, host);
    const Sinograms some(sinograms.data(), size(count), size(job.angles()), size(job.width));
    const Sinograms valid(masks.data(), masked ? size(count) : 0, size(job.angles()), size(job.width));
    normalise(space, row - first, device.data(), some, valid);
    if (stripes)
      stripes->execute(space, some, mask_of(valid));
    float* const values = result.values.data() + (row - first) * result.row_values;
    copy_values(space, host_view(std::span(values, some.size())), Part<float*>(some.data(), some.size()));
    space.fence("Bracewell::examples::prepare");
    progress.add(count);
  }
  return result;
}

void prepare_frames(const Space& space, const Job& job, double roll, PreparedRows& prepared) {
  const std::int64_t rows = prepared.rows.end - prepared.rows.begin, width = job.width,
                     at_once = frames_at_once(job, rows);
  const RollOptions options{.angle = roll * degree,
                            .row = 0.5 * double(job.detector_rows - 1) - double(prepared.rows.begin),
                            .column = 0.5 * double(width - 1)};
  std::optional<PhaseRetrieval<Space, float>> phase;
  if (job.options.phase)
    phase.emplace(space, at_once, int(rows), int(width), *job.options.phase);
  std::vector<float> staged(size(rows * at_once * width));
  const auto frames = allocate<DeviceView<float*>>("frames", staged.size()),
             rolled = allocate<DeviceView<float*>>("rolled", roll != 0 ? staged.size() : 0);
  Progress progress("preparing", "projections", job.angles());
  for (std::int64_t first = 0; first < job.angles(); first += at_once) {
    const std::int64_t count = std::min(at_once, job.angles() - first);
    const auto each_row = [&](const auto& copy) { // of these angles, here and in all
      for (std::int64_t row = 0; row < rows; ++row)
        copy(prepared.values.data() + row * prepared.row_values + first * width,
             staged.data() + row * count * width);
    };
    const auto host = host_view(std::span(staged).first(size(rows * count * width)));
    const Sinograms in(frames.data(), size(rows), size(count), size(width));
    each_row([&](const float* all, float* here) { std::copy(all, all + count * width, here); });
    copy_values(space, Part<float*>(in.data(), host.size()), host);
    Sinograms out = in;
    if (roll != 0) {
      out = Sinograms(rolled.data(), size(rows), size(count), size(width));
      turn_detector(space, in, out, options);
    }
    if (phase)
      phase->execute(space, out, out);
    copy_values(space, host, Part<float*>(out.data(), host.size()));
    space.fence("Bracewell::examples::frames");
    each_row([&](float* all, const float* here) { std::copy(here, here + count * width, all); });
    progress.add(count);
  }
}

} // namespace Bracewell::Examples
