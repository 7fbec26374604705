// SPDX-License-Identifier: MIT
#include "bracewell-tomography/run.hpp"

#include "bracewell-tomography/align.hpp"
#include "bracewell-tomography/iterations.hpp"
#include "bracewell-tomography/output.hpp"
#include "bracewell-tomography/prepare.hpp"
#include "common/handout.hpp"
#include "common/input_error.hpp"
#include "common/memory_limit.hpp"
#include "common/output_family.hpp"
#include "common/picture.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"
#include "common/slots.hpp"
#include "common/stored_values.hpp"
#include "common/text_table.hpp"

#include <bracewell/reconstruct/mask.hpp>
#include <bracewell/tomography/detector.hpp>
#include <bracewell/tomography/find_centre.hpp>
#include <bracewell/tomography/half_acquisition.hpp>

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

/// Of what is read and of what is written; laminography has all of it in one.
int slots_of(const Place& place) { return place.depth ? 1 : io_threads() + 1; }

/// @param axis  in rows of the detector
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
  if (job.options.laminography)
    place.depth = job.options.depth.value_or(int(job.slices));
  if (place.image > place.width)
    throw InputError("--size " + std::to_string(place.image) + ": expected at most " +
                     std::to_string(place.width) + ", which half acquisition sees");
  return place;
}

bool is_wider(const Place& place) { return place.width > place.seen; }

/// Of rows of the detector to those that are reconstructed. (Iterations weigh by themselves.)
void widen(const Space& space, const RunOptions& options, const Place& place, double axis,
           const Sinograms& rows, const Sinograms& wider) {
  if (options.half_acquisition && !options.solver)
    weigh_half_acquisition(space, rows, wider, axis);
  else
    extend_detector(space, rows, wider, place.offset);
}

/// Says what iterations take for granted.
void check_size(const RunOptions& options, const Place& place, Provenance& provenance) {
  if (options.solver && place.image < place.seen)
    provenance.assume("--size " + std::to_string(place.image) +
                      ": --solver takes what lies beyond the slices for air; the detector sees " +
                      std::to_string(place.seen) + " pixels");
}

/// Projections that are compressed whole, or in parts of many rows, are unpacked once, where memory allows.
void unpack(Job& job, const RunOptions& options, IndexRange rows, Provenance& provenance) {
  constexpr std::int64_t few = 16; // as are read at a time
  if (job.scan.packed_rows() <= few)
    return;
  const double needed = double(rows.end - rows.begin) * double(job.bytes_per_row());
  if (resident_bytes() + needed < 0.75 * memory_limit(options.memory_limit))
    job.scan.unpack(options.binning * rows.begin, options.binning * (rows.end - rows.begin));
  else
    provenance.assume(job.scan.path().string() + ": its projections are packed in parts of " +
                      std::to_string(job.scan.packed_rows()) +
                      " rows: they are unpacked again for every few slices, as all of them take " +
                      shortest(std::ceil(needed / 1e6)) + " MB (--memory-limit)");
}

/// Says where flat frames are no brighter than dark ones.
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

/// The last step on rows of the detector.
void harden(const Space& space, const RunOptions& options, const Sinograms& sinograms) {
  if (!options.hardening.empty())
    correct_beam_hardening(space, sinograms, options.hardening);
}

/// Sinogram [1, angles, width] of a row.
void read_sinogram(const Space& space, const Job& job, const Stripes& stripes,
                   const std::optional<PreparedRows>& prepared, std::int64_t row, const Sinograms& slices) {
  if (prepared) {
    Kokkos::deep_copy(
        Part<float*>(slices.data(), slices.size()),
        Kokkos::View<const float*, Kokkos::HostSpace>(prepared->row(row).data(), slices.size()));
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

/// Sinogram of the middle row.
Owned<float**> middle_sinogram(const Space& space, const Job& job, const Stripes& stripes,
                               const std::optional<PreparedRows>& prepared) {
  const auto sinogram = allocate<Owned<float**>>("sinogram", job.angles(), job.width);
  read_sinogram(space, job, stripes, prepared, job.middle_row(),
                Sinograms(sinogram.data(), 1, sinogram.extent(0), sinogram.extent(1)));
  return sinogram;
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
  double turned = 0, shifted = 0; // root mean squares
  for (std::size_t p = 0; p < found.angles.size(); ++p) {
    turned += std::pow((found.angles[p] - before.angles[p]) / degree, 2) / double(found.angles.size());
    shifted += std::pow(found.shifts[p], 2) / double(found.angles.size());
  }
  provenance.took(job.scan.path(), "views that are " + shortest(std::sqrt(turned)) + " degrees and " +
                                       shortest(std::sqrt(shifted)) + " pixels off (root mean square)");
  return found;
}

fs::path views_path(const RunOptions& options) { return beside(options.out, "_views.txt"); }

/// Angles and shifts as a table.
void write_views(const fs::path& path, const Views& views) {
  std::vector<double> degrees;
  for (const double angle : views.angles)
    degrees.push_back(angle / degree);
  const std::vector<TextColumn> columns{{"angle_degrees", degrees}, {"shift_pixels", views.shifts}};
  write_text_table(path, columns);
}

/// The attenuation per pixel that a sinogram's root mean square stands for, were it even over the detector.
double mean_attenuation(const Owned<float**>& sinogram) {
  const auto values = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sinogram);
  const double squares =
      std::transform_reduce(values.data(), values.data() + values.size(), 0.0, std::plus<>(),
                            [](float value) { return double(value) * value; });
  return std::sqrt(squares / double(values.size())) / double(values.extent(1));
}

/// The middle row, and what it depends on, prepared where there are steps on frames.
std::optional<PreparedRows> prepare_middle(const Space& space, const Job& job, const Stripes& stripes) {
  if (!job.has_frame_steps())
    return {};
  auto prepared = prepare_sinograms(space, job, {job.middle_row(), job.middle_row() + 1}, stripes);
  if (!job.options.try_tilts)
    prepare_frames(space, job, job.options.roll, prepared);
  return prepared;
}

/// The slices of this process, where steps on frames prepare them in a fixed share: whole pairs, as the Fourier method
/// takes them, so that they are those of one process.
Share share_of(std::int64_t slices) {
  const Share pairs = processes().share((slices + 1) / 2);
  return {std::min(2 * pairs.begin, slices), std::min(2 * pairs.end, slices)};
}

/// Chunks of slices that processes take: whole pairs, too.
Handout chunks_of(const Job& job, std::int64_t chunk) {
  if (job.options.laminography)
    return Handout(Share{0, job.slices}, job.slices, job.slices);
  return job.has_frame_steps() ? Handout(share_of(job.slices), chunk, 2) : Handout(job.slices, chunk, 2);
}

/// The axis before it is searched: that of the widest slices of half acquisition.
double axis_or_widest(const Job& job) {
  return job.options.centre.value_or(job.options.half_acquisition ? job.width - 1 : job.width / 2.0);
}

/// How many slices at a time: as many as the limit allows and are of use.
/// @param occupied  bytes before there are buffers and plans
std::int64_t chunk_size(const Space& space, const Job& job, const RunOptions& options, double occupied) {
  const Scan& scan = job.scan;
  const std::int64_t angles = job.angles();
  const Place place = place_of(job, axis_or_widest(job));
  check_method(options, scan.angles());
  Views views{scan.angles()};
  views.shifts.resize(options.align ? views.angles.size() : 0);
  const double sinogram = 4.0 * double(angles) * job.width, wide = 4.0 * double(angles) * place.width,
               image = 4.0 * place.image * double(place.image);
  const double input = job.has_frame_steps() ? sinogram : double(job.bytes_per_row()),
               output = image / 4 * double(bytes_of(options.output_type));
  const bool converted = options.output_type != StoredType::Float32;
  // The slots of all stages, the sinograms, wider ones, and the slices where they are stored as something else.
  const double per_row = slots_of(place) * input + Normalise::bytes_per_row(job) + sinogram +
                         (is_wider(place) ? wide : 0) + (kernels_run_on_host ? 0 : 2 * input),
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
    // Beside these the picture, and what libraries take once they are used.
    return occupied + stripes + means + prepared + 3 * image + 12e6 + per_row * double(count) +
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

/// The work on slices, some at a time: reading, copying, reconstructing, copying, writing, side by side.
class Pipeline {
public:
  /// @param prepared  rows after the steps on frames, where there are any
  /// @param attenuation  see make_reconstructor
  Pipeline(const Space& space, const Job& job, const RunOptions& options, const Views& views, double centre,
           double attenuation, std::int64_t chunk, const Stripes& stripes,
           const std::optional<PreparedRows>& prepared, SliceOutput& output)
      : space_(space), job_(job), options_(options), centre_(centre), place_(place_of(job, centre)),
        stripes_(stripes), prepared_(prepared), output_(output),
        means_(std::async(
            std::launch::async,
            [this] { return prepared_ ? Means(job_, 0, 0) : Means(job_, job_.rows.begin, job_.slices); })),
        plan_(make_reconstructor(
            space, options, views, place_, chunk, attenuation,
            [this](std::int64_t slices, std::optional<double> squares) {
              progress_.add(slices, squares ? "residual " + shortest(residual(*squares, slices)) : "");
            })),
        rows_(space, size(chunk * row_bytes()), slots_of(place_)),
        stored_(space, size(place_.slices(chunk) * slice_bytes()), slots_of(place_)),
        chunks_(chunks_of(job, chunk)),
        progress_("reconstructing", options.solver ? "iterations of a slice" : "slices",
                  chunks_.size() * steps_of_slice()) {
    const std::size_t angles = size(job.angles());
    sinograms_ = allocate<Owned<float***>>("sinograms", chunk, angles, job.width);
    wider_ = is_wider(place_) ? allocate<Owned<float***>>("wider", chunk, angles, place_.width) : sinograms_;
    if (options.output_type != StoredType::Float32)
      slices_ = allocate<Slices>("slices", place_.slices(chunk), place_.image, place_.image);
    normalise_.emplace(space, job, means_.get(), job.slices, prepared_ ? 0 : chunk);
  }

  using Middle = std::function<void(std::vector<float> slice)>;
  /// Calls middle() with the middle slice once it is there.
  std::vector<StageTime> run(const Middle& middle) {
    const auto rows_bytes = [&](std::int64_t item) { return count(item) * row_bytes(); };
    const auto stored_bytes = [&](std::int64_t item) { return place_.slices(count(item)) * slice_bytes(); };
    // Of every row; laminography has one item.
    const std::int64_t out = place_.slices(job_.slices) * slice_bytes() / job_.slices;
    Stage read{.name = "read", .threads = io_threads(), .slots = rows_.on_host(), .bytes = row_bytes()};
    read.work = [&](std::int64_t item) {
      const std::int64_t begin = job_.rows.begin + first(item);
      if (!prepared_)
        return job_.read(begin, count(item), {rows_.host(item), size(rows_bytes(item))});
      for (std::int64_t row = 0; row < count(item); ++row)
        std::ranges::copy(prepared_->row(begin + row),
                          reinterpret_cast<float*>(rows_.host(item)) + row * prepared_->row_values);
    };
    Stage compute{.name = "compute", .threads = 0, .slots = stored_.on_device(), .bytes = out};
    compute.work = [&](std::int64_t item) { reconstruct(item, middle); };
    Stage write{.name = "write", .threads = output_.threads(io_threads()), .bytes = out};
    write.work = [&](std::int64_t item) {
      output_.write(first(item), {stored_.host(item), size(stored_bytes(item))});
      progress_.add(steps_of_slice() * chunks_.passed_over(item));
      if (!options_.solver)
        progress_.add(count(item));
    };
    std::vector<Stage> stages{read};
    rows_.add_copy(stages, Slots::Direction::In, rows_bytes);
    stages.push_back(compute);
    stored_.add_copy(stages, Slots::Direction::Out, stored_bytes);
    stages.push_back(write);
    auto times = run_stages(std::int64_t(chunks_.parts().size()), stages,
                            [&](std::int64_t item) { return chunks_.take(item); });
    for (StageTime& time : times)
      time.bytes *= chunks_.taken();
    return times;
  }

  /// How many slices this process took.
  std::int64_t taken() const { return chunks_.taken(); }

  /// Of all slices of this process so far.
  const Iterations& iterations() const { return iterations_; }
  /// The root mean square of what is left of the values of some slices' sinograms.
  double residual(double squares, std::int64_t slices) const {
    return std::sqrt(squares / (double(slices) * double(job_.angles()) * job_.width));
  }

private:
  std::int64_t first(std::int64_t item) const { return chunks_.part(item).begin; }
  std::int64_t count(std::int64_t item) const { return chunks_.part(item).size(); }
  std::int64_t steps_of_slice() const { return options_.solver ? options_.solver->iterations : 1; }
  std::int64_t slice_bytes() const {
    return std::int64_t(place_.image) * place_.image * bytes_of(options_.output_type);
  }
  std::int64_t row_bytes() const {
    return prepared_ ? prepared_->row_values * std::int64_t(sizeof(float)) : job_.bytes_per_row();
  }

  void reconstruct(std::int64_t item, const Middle& middle) {
    const Sinograms sinograms = first_slices(sinograms_, size(count(item))),
                    wider = first_slices(wider_, size(count(item)));
    if (prepared_) {
      Kokkos::deep_copy(
          space_, Part<float*>(sinograms.data(), sinograms.size()),
          Part<const float*>(reinterpret_cast<const float*>(rows_.device(item)), sinograms.size()));
    } else {
      (*normalise_)(space_, first(item), rows_.device(item), sinograms);
      if (stripes_)
        stripes_->execute(space_, sinograms);
    }
    harden(space_, options_, sinograms);
    if (is_wider(place_))
      widen(space_, options_, place_, centre_, sinograms, wider);
    std::byte* const stored = stored_.device(item);
    const std::size_t width = size(place_.image);
    const bool as_floats = options_.output_type == StoredType::Float32;
    const Slices slices(as_floats ? reinterpret_cast<float*>(stored) : slices_.data(),
                        size(place_.slices(count(item))), width, width);
    const Iterations iterations = plan_(space_, wider, slices);
    iterations_.made = std::max(iterations_.made, iterations.made);
    iterations_.squares += iterations.squares;
    if (options_.solver) // those that ended early
      progress_.add(count(item) * (options_.solver->iterations - iterations.made));
    if (!options_.corners)
      apply_mask(space_, slices, {.radius = place_.image / 2.0});
    if (!as_floats)
      store_as_halves(space_, slices, stored);
    space_.fence("Bracewell::examples::tomography"); // the slots are read and written by other stages
    if (const std::int64_t place = (place_.depth ? place_.depth / 2 : job_.middle) - first(item);
        place >= 0 && place < place_.slices(count(item))) {
      std::vector<float> slice(width * width);
      Kokkos::deep_copy(Kokkos::View<float*, Kokkos::HostSpace>(slice.data(), slice.size()),
                        Part<float*>(slices.data() + size(place) * slice.size(), slice.size()));
      middle(std::move(slice));
    }
  }

  Space space_;
  const Job& job_;
  const RunOptions& options_;
  double centre_;
  Place place_;
  const Stripes& stripes_;
  const std::optional<PreparedRows>& prepared_;
  SliceOutput& output_;
  std::future<Means> means_; ///< read while the rest is planned
  Reconstructor plan_;
  Slots rows_, stored_;                ///< what was read, what is written
  std::optional<Normalise> normalise_; ///< made last
  Owned<float***> sinograms_, wider_;
  Slices slices_; ///< where they are stored as something else
  Handout chunks_;
  Progress progress_;
  Iterations iterations_;
};

} // namespace

RunResult reconstruct(const Space& space, const RunOptions& options, Provenance& provenance,
                      Timings& timings) {
  const auto start = std::chrono::steady_clock::now();
  const bool measuring = is_null_output(options.out);
  std::vector<fs::path> paths;
  if (!measuring)
    paths = {options.out, picture_path(options)};
  if (!measuring && options.align)
    paths.push_back(views_path(options));
  OutputFamily outputs(paths);
  timings.phase("open");
  Job job(options, provenance);
  unpack(job, options, job.with_neighbours(job.rows), provenance);
  const Scan& scan = job.scan;
  Stripes stripes;
  if (options.stripes)
    stripes.emplace(space, int(job.angles()), job.width, *options.stripes);
  std::optional<SliceOutput> output;
  const auto open_output = [&](double axis) {
    const Place place = place_of(job, axis);
    output.emplace(options.out, place.slices(job.slices), place.image, options.output_type);
  };
  const bool size_is_known = options.centre || options.size || !options.half_acquisition;
  if (size_is_known)
    open_output(axis_or_widest(job));
  // What is wrong, and how much fits, is found before the axis is searched.
  const std::int64_t chunk = chunk_size(space, job, options, resident_bytes());
  check_flats(job, provenance);
  double centre = 0, attenuation = 0;
  std::optional<PreparedRows> prepared;
  if (job.has_frame_steps()) {
    timings.phase("prepare frames");
    const Share mine = share_of(job.slices);
    prepared =
        prepare_sinograms(space, job, {job.rows.begin + mine.begin, job.rows.begin + mine.end}, stripes);
    prepare_frames(space, job, options.roll, *prepared);
  }
  {
    timings.phase("look at the middle slice");
    const auto sinogram =
        middle_sinogram(space, job, stripes,
                        prepared && process_count() == 1 ? prepared : prepare_middle(space, job, stripes));
    if (!options.half_acquisition && !options.laminography)
      check_width(job, sinogram, provenance);
    check_size(options, place_of(job, axis_or_widest(job)), provenance);
    if (options.centre && !(*options.centre >= 0 && *options.centre <= job.width - 1))
      provenance.assume("--centre " + shortest(*options.centre) + ": lies outside of the detector's " +
                        std::to_string(job.width) + " columns: what is about the axis was not seen");
    provenance.say();
    attenuation = mean_attenuation(sinogram);
    if (options.centre) {
      centre = *options.centre;
    } else if (options.half_acquisition) {
      timings.phase("search the axis");
      centre = find_overlap(space, sinogram, scan.angles());
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
  // The same in all, whatever they compute on.
  centre = sum_over_processes(is_first_process() ? centre : 0);
  attenuation = sum_over_processes(is_first_process() ? attenuation : 0);
  if (!options.centre)
    provenance.took(scan.path(), "the rotation axis at pixel " + shortest(centre));
  if (options.half_acquisition)
    provenance.took(scan.path(), "half acquisition: " +
                                     shortest(std::round(1 + 2 * std::min(centre, job.width - 1 - centre))) +
                                     " columns are seen twice");
  Views views{scan.angles()};
  if (options.laminography)
    require_one_process();
  if (options.align) {
    require_one_process();
    timings.phase("align the views");
    views = find_views(space, job, stripes, prepared, centre, provenance);
    if (!measuring)
      write_views(views_path(options), views);
  }
  if (!size_is_known)
    open_output(centre);
  const Place place = place_of(job, centre);
  const int width = place.image;
  output->write_provenance(provenance.text());

  std::future<void> picture; // drawn beside the work
  const auto draw = [&](std::vector<float> slice) {
    if (!measuring)
      picture = std::async(std::launch::async, write_middle, picture_path(options), std::move(slice), width);
  };
  std::vector<float> middle; // of several processes, in one of them
  const auto keep = [&](std::vector<float> slice) { middle = std::move(slice); };
  timings.phase("plan");
  Pipeline pipeline(space, job, options, views, centre, attenuation, chunk, stripes, prepared, *output);
  timings.phase("reconstruct");
  timings.stages(process_count() > 1 ? pipeline.run(keep) : pipeline.run(draw));
  timings.share("slices", pipeline.taken());
  timings.phase("finish");
  const double residual = pipeline.residual(sum_over_processes(pipeline.iterations().squares), job.slices);
  if (!measuring) {
    output->write_attribute("centre", centre);
    if (options.laminography)
      output->write_attribute("laminography", *options.laminography);
    if (options.solver) {
      output->write_attribute("iterations", options.solver->iterations);
      output->write_attribute("residual", residual);
      if (options.solver->total_variation > 0)
        output->write_attribute("total_variation", options.solver->total_variation * attenuation);
    }
    if (process_count() > 1) {
      middle.resize(size(width) * size(width));
      processes().sum(space, Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(middle.data(),
                                                                                              middle.size()));
      if (is_first_process())
        draw(std::move(middle));
    }
    output->commit();
    if (is_first_process()) {
      picture.get();
      outputs.commit();
    }
  }

  char text[160];
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::snprintf(text, sizeof text,
                ": %lld slices of %d x %d pixels from %zu projections, centre %.2f, %.3g s",
                static_cast<long long>(place.slices(job.slices)), width, width, scan.angles().size(), centre,
                elapsed.count());
  std::string summary = options.out.string() + text;
  if (options.solver)
    summary += ", residual " + shortest(residual) + " after " + std::to_string(pipeline.iterations().made) +
               " iterations";
  return {summary, centre};
}

std::string try_values(const Space& space, const RunOptions& options, Provenance& provenance) {
  require_one_process();
  require_picture_name(options.out);
  OutputFamily outputs({options.out});
  Job job(options, provenance);
  unpack(job, options, job.with_neighbours({job.middle_row(), job.middle_row() + 1}), provenance);
  const bool tilts = options.try_tilts.has_value();
  const TrialRange& range = tilts ? *options.try_tilts : *options.try_centres;
  const auto count = static_cast<std::int64_t>((range.last - range.first) / range.step + 1 + 1e-9);
  const auto trial = [&](std::int64_t i) { return range.first + double(i) * range.step; };
  check_method(options, job.scan.angles());
  check_flats(job, provenance);
  check_size(options, place_of(job, options.centre.value_or(trial(count / 2))), provenance);
  provenance.say();
  Stripes stripes;
  if (options.stripes)
    stripes.emplace(space, int(job.angles()), job.width, *options.stripes);
  const auto prepared = prepare_middle(space, job, stripes);
  Owned<float**> sinogram = middle_sinogram(space, job, stripes, prepared);
  const int image = place_of(job, tilts ? *options.centre : trial(count / 2)).image; // the same for all
  const auto slice = allocate<Owned<float***>>("slice", 1, image, image);
  std::vector<std::vector<float>> images;
  Progress progress("reconstructing", tilts ? "tilts" : "centres", count);
  for (std::int64_t i = 0; i < count; ++i) {
    if (tilts) {
      std::optional<PreparedRows> turned = prepared;
      prepare_frames(space, job, trial(i), *turned);
      sinogram = middle_sinogram(space, job, stripes, turned);
    }
    const double centre = tilts ? *options.centre : trial(i);
    Place place = place_of(job, centre);
    place.image = image;
    // Filters write over rows.
    const auto rows = allocate<Sinograms>("rows", 1, job.angles(), place.width);
    const Sinograms seen(sinogram.data(), 1, sinogram.extent(0), sinogram.extent(1));
    if (is_wider(place))
      widen(space, options, place, centre, seen, rows);
    else
      Kokkos::deep_copy(space, rows, seen);
    make_reconstructor(space, options, {job.scan.angles()}, place, 1, mean_attenuation(sinogram))(space, rows,
                                                                                                  slice);
    apply_mask(space, slice, {.radius = image / 2.0});
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), slice);
    images.emplace_back(host.data(), host.data() + host.size());
    progress.add(1);
  }
  const GreyRange grey = range_in_disc(images[images.size() / 2], image); // the same for all
  const auto columns = size(std::int64_t(std::ceil(std::sqrt(double(count)))));
  std::vector<Picture> rows, row;
  for (std::size_t i = 0; i < images.size(); ++i) {
    row.push_back(grey_panel({.caption = (tilts ? "roll " : "centre ") + shortest(trial(std::int64_t(i))),
                              .values = images[i],
                              .width = image,
                              .height = image,
                              .range = grey,
                              .points = 400}));
    if (row.size() == columns || i + 1 == images.size())
      rows.push_back(side_by_side(std::exchange(row, {})));
  }
  write_picture(options.out, stacked(rows));
  outputs.commit();
  return options.out.string() + ": slice " + std::to_string(job.middle_row()) + " at " +
         std::to_string(count) + (tilts ? " rolls" : " centres");
}

} // namespace Bracewell::Examples
