// SPDX-License-Identifier: MIT
#include "bracewell-tomography/run.hpp"

#include "bracewell-tomography/output.hpp"
#include "bracewell-tomography/reconstructor.hpp"
#include "common/input_error.hpp"
#include "common/memory_limit.hpp"
#include "common/output_family.hpp"
#include "common/picture.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"
#include "common/slots.hpp"
#include "common/stored_values.hpp"

#include <bracewell/reconstruct/mask.hpp>
#include <bracewell/tomography/find_centre.hpp>
#include <bracewell/tomography/preprocess.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <future>
#include <numbers>
#include <numeric>
#include <utility>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

int input_slots() { return io_threads() + 1; }
int output_slots() { return io_threads() + 1; }

/// Means of the frames without object and of those without beam, [rows, width] each; empty where there are none.
struct Means {
  std::vector<float> flat, dark;

  /// Of detector rows [first, first + count).
  Means(const Scan& scan, std::int64_t first, std::int64_t count)
      : flat(scan.has_flat() ? size(count * scan.width()) : 0),
        dark(scan.has_dark() ? size(count * scan.width()) : 0) {
    if (scan.has_flat())
      scan.read_flat(first, count, flat);
    if (scan.has_dark())
      scan.read_dark(first, count, dark);
  }
};

/// Raw rows on the device to sinograms.
class Normalise {
public:
  /// For up to `rows` at a time of those that `means` are of.
  Normalise(const Space& space, const Scan& scan, const Means& means, std::int64_t rows,
            const ProjectionNormalisation& options)
      : scan_(scan), options_(options), flat_(uploaded(space, means.flat)),
        dark_(uploaded(space, means.dark)),
        values_(allocate<Owned<float*>>("values", values_per_row(scan) * rows)) {}

  static double bytes_per_row(const Scan& scan) { return 4.0 * double(values_per_row(scan)); }

  /// @param first      of the rows, counted from the first of `means`
  /// @param rows       of all projections, [angles, count, width] as they are stored
  /// @param sinograms  [count, angles, width]
  void operator()(const Space& space, std::int64_t first, const std::byte* rows,
                  const Sinograms& sinograms) const {
    const std::size_t count = sinograms.extent(0), angles = sinograms.extent(1), width = sinograms.extent(2);
    const float* values = reinterpret_cast<const float*>(rows);
    if (values_.size() > 0) {
      to_floats(space, scan_.format(), rows, values_.data(), std::int64_t(sinograms.size()));
      values = values_.data();
    }
    const auto part = [&](const Owned<float*>& mean) {
      return mean.size() > 0 ? Part<const float**>(mean.data() + size(first) * width, count, width)
                             : Part<const float**>();
    };
    normalise_projections(space, Part<const float***>(values, angles, count, width), part(dark_), part(flat_),
                          sinograms, options_);
  }

private:
  /// None where the stored values are floats already.
  static std::int64_t values_per_row(const Scan& scan) {
    return scan.format().is_float() ? 0 : std::int64_t(scan.angles().size()) * scan.width();
  }

  static Owned<float*> uploaded(const Space& space, const std::vector<float>& values) {
    const auto view = allocate<Owned<float*>>("mean frame", values.size());
    Kokkos::deep_copy(space, view,
                      Kokkos::View<const float*, Kokkos::HostSpace>(values.data(), values.size()));
    space.fence("Bracewell::examples::means");
    return view;
  }

  const Scan& scan_;
  ProjectionNormalisation options_;
  Owned<float*> flat_, dark_, values_;
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

/// Projections that are compressed whole, or in parts of many rows, are decompressed once, where memory allows.
void unpack(Job& job, const RunOptions& options, IndexRange rows, Provenance& provenance) {
  constexpr std::int64_t few = 16; // as are read at a time
  if (job.scan.compressed_rows() <= few)
    return;
  const double needed = double(rows.end - rows.begin) * double(job.scan.bytes_per_row());
  if (resident_bytes() + needed < 0.75 * memory_limit(options.memory_limit))
    job.scan.unpack(rows.begin, rows.end - rows.begin);
  else
    provenance.assume(job.scan.path().string() + ": its projections are compressed in parts of " +
                      std::to_string(job.scan.compressed_rows()) +
                      " rows: they are decompressed again for every few slices, as all of them take " +
                      shortest(std::ceil(needed / 1e6)) + " MB (--memory-limit)");
}

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
  const Kokkos::View<std::byte*, Kokkos::HostSpace> host("Bracewell::examples::rows",
                                                         size(job.scan.bytes_per_row()));
  job.scan.read(job.middle_row(), 1, {host.data(), host.size()});
  const auto rows = Kokkos::create_mirror_view_and_copy(Memory(), host);
  const auto sinogram = allocate<Owned<float**>>("sinogram", job.scan.angles().size(), job.width);
  const Sinograms slices(sinogram.data(), 1, sinogram.extent(0), sinogram.extent(1));
  Normalise(space, job.scan, Means(job.scan, job.middle_row(), 1), 1,
            normalise_options(options))(space, 0, rows.data(), slices);
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
  const double input = double(scan.bytes_per_row()),
               output = image / 4 * double(bytes_of(options.output_type));
  const bool converted = options.output_type != StoredType::Float32;
  // The slots of all stages, the sinograms, filtered ones, and the slices where they are stored as something else.
  const double per_slice = input_slots() * input + Normalise::bytes_per_row(scan) +
                           sinogram * (upsampling > 1 ? 1 + upsampling : 1) + output_slots() * output +
                           (converted ? image : 0) + (kernels_run_on_host ? 0 : 2 * (input + output));
  const double stripes =
      options.stripes
          ? double(StripeRemoval<Space, float>::bytes_needed(space, int(angles), job.width, *options.stripes))
          : 0;
  // Means of frames, on the host and the device, and of these the sums and a frame while they are read.
  const double means = double(job.slices) * job.width * (8.0 * (scan.has_flat() + scan.has_dark()) + 12);
  const auto needed = [&](std::int64_t count) {
    // Beside these the picture, and what libraries take once they are used.
    return occupied + stripes + means + 3 * image + 12e6 + per_slice * double(count) +
           double(ProjectionFilter<Space, float>::bytes_needed(space, count * angles, job.width,
                                                               filter_options(options))) +
           double(reconstructor_bytes(space, options, geometry, count));
  };
  const double limit = memory_limit(options.memory_limit);
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

/// A picture of the middle slice.
void write_middle(const fs::path& path, const std::vector<float>& slice, int width) {
  write_picture(path, grey_panel({.caption = "middle slice: attenuation per pixel",
                                  .values = slice,
                                  .width = width,
                                  .height = width,
                                  .range = range_in_disc(slice, width),
                                  .points = 400}));
}

/// The largest magnitude.
struct Largest {
  const float* values;
  KOKKOS_FUNCTION void operator()(std::int64_t i, float& largest) const {
    largest = Kokkos::max(largest, Kokkos::abs(values[i]));
  }
};

/// Slices to Float16. Throws InputError where a value is too large for it.
void store_as_halves(const Space& space, const Slices& slices, std::byte* stored) {
  const auto count = std::int64_t(slices.size());
  float largest = 0;
  Kokkos::parallel_reduce("Bracewell::examples::largest",
                          Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, count),
                          Largest{slices.data()}, Kokkos::Max<float>(largest));
  if (!(largest < 65520))
    throw InputError("--output-type float16: slices have values of " + shortest(largest) +
                     ", expected at most 65504");
  to_halves(space, slices.data(), reinterpret_cast<std::uint16_t*>(stored), count);
}

/// The slices of this process: whole pairs, as the Fourier method takes them, so that they are those of one process.
Share share_of(std::int64_t slices) {
  const Share pairs = processes().share((slices + 1) / 2);
  return {std::min(2 * pairs.begin, slices), std::min(2 * pairs.end, slices)};
}

/// The work on slices, some at a time: reading, copying, reconstructing, copying, writing, side by side.
class Pipeline {
public:
  Pipeline(const Space& space, const Job& job, const RunOptions& options, double centre, std::int64_t chunk,
           const std::optional<StripeRemoval<Space, float>>& stripes, SliceOutput& output)
      : space_(space), job_(job), options_(options), chunk_(chunk), stripes_(stripes), output_(output),
        means_(
            std::async(std::launch::async, [&job] { return Means(job.scan, job.rows.begin, job.slices); })),
        plan_(make_reconstructor(space, options, beam_geometry(options, job.scan.angles(), job.width, centre),
                                 chunk)),
        filter_(space, chunk * std::int64_t(job.scan.angles().size()), job.width, filter_options(options)),
        rows_(space, size(chunk * job.scan.bytes_per_row()), input_slots()),
        stored_(space, size(chunk * slice_bytes()), output_slots()), mine_(share_of(job.slices)),
        progress_("reconstructing", "slices", mine_.size()) {
    const std::size_t angles = job.scan.angles().size();
    sinograms_ = allocate<Owned<float***>>("sinograms", chunk, angles, job.width);
    const int fine_width = row_upsampling(options.method) * job.width;
    filtered_ = fine_width == job.width ? sinograms_
                                        : allocate<Owned<float***>>("filtered", chunk, angles, fine_width);
    if (options.output_type != StoredType::Float32)
      slices_ = allocate<Slices>("slices", chunk, job.width, job.width);
    normalise_.emplace(space, job.scan, means_.get(), chunk, normalise_options(options));
  }

  using Middle = std::function<void(std::vector<float> slice)>;
  /// Calls middle() with the middle slice once it is there.
  std::vector<StageTime> run(const Middle& middle) {
    const std::int64_t in = mine_.size() * job_.scan.bytes_per_row(), out = mine_.size() * slice_bytes();
    const auto rows_bytes = [&](std::int64_t item) { return count(item) * job_.scan.bytes_per_row(); };
    const auto stored_bytes = [&](std::int64_t item) { return count(item) * slice_bytes(); };
    Stage read{.name = "read", .threads = io_threads(), .slots = rows_.on_host(), .bytes = in};
    read.work = [&](std::int64_t item) {
      job_.scan.read(job_.rows.begin + first(item), count(item), {rows_.host(item), size(rows_bytes(item))});
    };
    Stage compute{.name = "compute", .threads = 0, .slots = stored_.on_device(), .bytes = out};
    compute.work = [&](std::int64_t item) { reconstruct(item, middle); };
    Stage write{.name = "write", .threads = output_.threads(io_threads()), .bytes = out};
    write.work = [&](std::int64_t item) {
      output_.write(first(item), {stored_.host(item), size(stored_bytes(item))});
      progress_.add(count(item));
    };
    std::vector<Stage> stages{read};
    rows_.add_copy(stages, Slots::Direction::In, rows_bytes);
    stages.push_back(compute);
    stored_.add_copy(stages, Slots::Direction::Out, stored_bytes);
    stages.push_back(write);
    return run_stages((mine_.size() + chunk_ - 1) / chunk_, stages);
  }

private:
  std::int64_t first(std::int64_t item) const { return mine_.begin + item * chunk_; }
  std::int64_t count(std::int64_t item) const { return std::min(chunk_, mine_.end - first(item)); }
  std::int64_t slice_bytes() const {
    return std::int64_t(job_.width) * job_.width * bytes_of(options_.output_type);
  }

  void reconstruct(std::int64_t item, const Middle& middle) {
    const auto first_of = [&](const Sinograms& all) {
      return Kokkos::subview(all, std::pair<std::size_t, std::size_t>(0, size(count(item))), Kokkos::ALL,
                             Kokkos::ALL);
    };
    const Sinograms sinograms = first_of(sinograms_), filtered = first_of(filtered_);
    (*normalise_)(space_, first(item), rows_.device(item), sinograms);
    if (stripes_)
      stripes_->execute(space_, sinograms);
    filter_.execute(space_, sinograms, filtered);
    std::byte* const stored = stored_.device(item);
    const std::size_t width = size(job_.width);
    const bool as_floats = options_.output_type == StoredType::Float32;
    const Slices slices(as_floats ? reinterpret_cast<float*>(stored) : slices_.data(), size(count(item)),
                        width, width);
    plan_(space_, filtered, slices);
    if (!options_.corners)
      apply_mask(space_, slices, {.radius = job_.width / 2.0});
    if (!as_floats)
      store_as_halves(space_, slices, stored);
    space_.fence("Bracewell::examples::tomography"); // the slots are read and written by other stages
    if (const std::int64_t place = job_.middle - first(item); place >= 0 && place < count(item)) {
      std::vector<float> slice(width * width);
      Kokkos::deep_copy(Kokkos::View<float*, Kokkos::HostSpace>(slice.data(), slice.size()),
                        Part<float*>(slices.data() + size(place) * slice.size(), slice.size()));
      middle(std::move(slice));
    }
  }

  Space space_;
  const Job& job_;
  const RunOptions& options_;
  std::int64_t chunk_;
  const std::optional<StripeRemoval<Space, float>>& stripes_;
  SliceOutput& output_;
  std::future<Means> means_; ///< read while the rest is planned
  Reconstructor plan_;
  ProjectionFilter<Space, float> filter_;
  Slots rows_, stored_;                ///< what was read, what is written
  std::optional<Normalise> normalise_; ///< made last
  Owned<float***> sinograms_, filtered_;
  Slices slices_; ///< where they are stored as something else
  Share mine_;    ///< the slices of this process
  Progress progress_;
};

} // namespace

RunResult reconstruct(const Space& space, const RunOptions& options, Provenance& provenance,
                      Timings& timings) {
  const auto start = std::chrono::steady_clock::now();
  const bool measuring = is_null_output(options.out);
  OutputFamily outputs(measuring ? std::vector<fs::path>()
                                 : std::vector<fs::path>{options.out, picture_path(options)});
  timings.phase("open");
  Job job(options, provenance);
  unpack(job, options, job.rows, provenance);
  const Scan& scan = job.scan;
  const int width = job.width;
  SliceOutput output(options.out, job.slices, width, options.output_type);
  std::optional<StripeRemoval<Space, float>> stripes;
  if (options.stripes)
    stripes.emplace(space, int(scan.angles().size()), width, *options.stripes);
  // What is wrong, and how much fits, is found before the axis is searched.
  const std::int64_t chunk = chunk_size(space, job, options, resident_bytes());
  check_flats(job, provenance);
  double centre = 0;
  {
    timings.phase("look at the middle slice");
    const auto sinogram = middle_sinogram(space, job, options, stripes);
    check_width(job, sinogram, provenance);
    provenance.say();
    if (options.centre) {
      centre = *options.centre;
    } else {
      timings.phase("search the axis");
      Progress progress("searching the axis", "parts", 100);
      std::int64_t shown = 0;
      centre = find_centre(space, sinogram, scan.angles(), {.progress = [&](double share) {
                             progress.add(std::int64_t(100 * share) -
                                          std::exchange(shown, std::int64_t(100 * share)));
                           }});
    }
  }
  centre = sum_over_processes(is_first_process() ? centre : 0); // the same in all, whatever they compute on
  if (!options.centre)
    provenance.took(scan.path(), "the rotation axis at pixel " + shortest(centre));
  output.write_provenance(provenance.text());

  std::future<void> picture; // drawn beside the work
  const auto draw = [&](std::vector<float> slice) {
    if (!measuring)
      picture = std::async(std::launch::async, write_middle, picture_path(options), std::move(slice), width);
  };
  std::vector<float> middle; // of several processes, in one of them
  const auto keep = [&](std::vector<float> slice) { middle = std::move(slice); };
  timings.phase("plan");
  Pipeline pipeline(space, job, options, centre, chunk, stripes, output);
  timings.phase("reconstruct");
  timings.stages(process_count() > 1 ? pipeline.run(keep) : pipeline.run(draw));
  timings.phase("finish");
  if (!measuring) {
    output.write_attribute("centre", centre);
    if (process_count() > 1) {
      middle.resize(size(width) * size(width));
      processes().sum(space, Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(middle.data(),
                                                                                              middle.size()));
      if (is_first_process())
        draw(std::move(middle));
    }
    output.commit();
    if (is_first_process()) {
      picture.get();
      outputs.commit();
    }
  }

  char text[160];
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::snprintf(
      text, sizeof text, ": %lld slices of %d x %d pixels from %zu projections, centre %.2f, %.3g s",
      static_cast<long long>(job.slices), width, width, scan.angles().size(), centre, elapsed.count());
  return {options.out.string() + text, centre};
}

std::string try_centres(const Space& space, const RunOptions& options, Provenance& provenance) {
  require_one_process();
  require_picture_name(options.out);
  OutputFamily outputs({options.out});
  Job job(options, provenance);
  unpack(job, options, {job.middle_row(), job.middle_row() + 1}, provenance);
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
