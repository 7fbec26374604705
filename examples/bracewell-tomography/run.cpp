// SPDX-License-Identifier: MIT
#include "bracewell-tomography/run.hpp"

#include "bracewell-tomography/middle_slice.hpp"
#include "bracewell-tomography/output.hpp"
#include "bracewell-tomography/pictures.hpp"
#include "bracewell-tomography/placement.hpp"
#include "bracewell-tomography/prepare.hpp"
#include "bracewell-tomography/slice_pipeline.hpp"
#include "common/memory_limit.hpp"
#include "common/output_family.hpp"
#include "common/picture.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"
#include "common/signals.hpp"

#include <bracewell/reconstruct/mask.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

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

Stripes stripe_removal(const Space& space, const Job& job) {
  Stripes stripes;
  if (job.options.stripes)
    stripes.emplace(space, int(job.angles()), job.width, *job.options.stripes);
  return stripes;
}

/// A picture of the places that the axis may have.
fs::path axis_path(const RunOptions& options) {
  return beside_slices(options.out, "_axis" + options.picture_ending);
}

/// A script that repeats the run.
fs::path script_path(const RunOptions& options) { return beside_slices(options.out, "_run.sh"); }

void write_script(const RunOptions& options, const Provenance& provenance) {
  AtomicFile file(script_path(options));
  file.write(provenance.script());
  file.commit();
}

/// The folder of a series of slices, made where it is not there; an empty one that this made goes with it.
class SeriesFolder {
public:
  explicit SeriesFolder(const fs::path& out) {
    const auto names = output_folder(out);
    std::error_code error;
    const SignalsHeld wait; // until they know of the folder
    if (names && !names->is_whole() && fs::create_directory(names->folder, error)) {
      made_ = names->folder;
      removed_on_signals_.emplace(made_, RemovedOnSignals::What::EmptyFolder);
    }
  }
  SeriesFolder(const SeriesFolder&) = delete;
  ~SeriesFolder() {
    std::error_code ignored;
    if (!made_.empty())
      fs::remove(made_, ignored); // refuses where there are files
  }

private:
  fs::path made_;
  std::optional<RemovedOnSignals> removed_on_signals_;
};

/// What a run writes.
std::vector<fs::path> outputs_of(const RunOptions& options) {
  if (is_null_output(options.out))
    return {};
  std::vector<fs::path> paths;
  if (!output_folder(options.out))
    paths.push_back(options.out);
  paths.push_back(picture_path(options));
  paths.push_back(script_path(options));
  if (!options.centre)
    paths.push_back(axis_path(options));
  if (options.align != AlignedViews::None)
    paths.push_back(views_path(options));
  return paths;
}

std::string summary_of(const Job& job, double centre, double seconds, double residual, int iterations) {
  const Place place = place_of(job, centre);
  char text[160];
  std::snprintf(text, sizeof text,
                ": %lld slices of %d x %d pixels from %zu projections, centre %.2f, %.3g s",
                static_cast<long long>(place.slices(job.slices)), place.image, place.image,
                job.scan.angles().size(), centre, seconds);
  std::string summary = job.options.out.string() + text;
  if (job.options.solver)
    summary += ", residual " + shortest(residual) + " after " + std::to_string(iterations) + " iterations";
  return summary;
}

/// The rows of this process, after the steps on frames, where there are any.
std::optional<PreparedRows> prepare_share(const Space& space, const Job& job, const Stripes& stripes,
                                          Timings& timings) {
  if (!job.has_frame_steps())
    return {};
  timings.phase("prepare frames");
  const Share mine = share_of(job.slices);
  PreparedRows prepared =
      prepare_sinograms(space, job, {job.rows.begin + mine.begin, job.rows.begin + mine.end}, stripes);
  prepare_frames(space, job, job.options.roll, prepared);
  return prepared;
}

/// What was found, beside the slices.
void write_attributes(SliceOutput& output, const RunOptions& options, const MiddleSlice& middle,
                      double residual) {
  output.write_attribute("centre", middle.centre);
  output.write_attribute("y_axis", options.y_up ? "up" : "down");
  if (options.laminography)
    output.write_attribute("laminography", *options.laminography);
  if (!options.solver)
    return;
  output.write_attribute("iterations", options.solver->iterations);
  output.write_attribute("residual", residual);
  if (options.solver->total_variation > 0)
    output.write_attribute("total_variation", options.solver->total_variation * middle.attenuation);
}

/// Gives the slices, and what is beside them, their names, together and when all is written.
void commit(const Space& space, const RunOptions& options, const Provenance& provenance, SliceOutput& output,
            MiddlePicture& picture, OutputFamily& outputs) {
  picture.collect(space);
  output.commit();
  if (!is_first_process())
    return;
  picture.wait();
  write_script(options, provenance);
  outputs.commit();
}

/// The slice of a sinogram about an axis, `image` pixels wide.
std::vector<float> trial_slice(const Space& space, const Job& job, const RunOptions& options,
                               const DeviceView<float**>& sinogram, double centre, int image) {
  Place place = place_of(job, centre);
  place.image = image;
  place.masked = false; // values that are no data are interpolated
  // Filters write over rows.
  const auto rows = allocate<Sinograms>("rows", 1, job.angles(), place.width);
  const auto slice = allocate<DeviceView<float***>>("slice", 1, image, image);
  const Sinograms seen(sinogram.data(), 1, sinogram.extent(0), sinogram.extent(1));
  if (is_wider(place))
    widen(space, options, place, centre, seen, rows);
  else
    copy_values(space, rows, seen);
  make_reconstructor(space, options, {job.scan.angles()}, place, 1, mean_attenuation(sinogram))(space, rows,
                                                                                                slice, {});
  apply_mask(space, slice, {.radius = image / 2.0});
  const auto host = values_on_host(slice);
  return {host.data(), host.data() + host.size()};
}

/// Shows the middle slice early, by filtered back-projection, where all slices take so long that it is of use.
void show_first(std::optional<FirstPicture>& picture, const Space& space, const Job& job,
                const DeviceView<float**>& sinogram, double centre) {
  constexpr double much = 16e9;     // bytes, which a GPU takes a second or two for
  constexpr std::int64_t many = 32; // slices, beside which one more is no matter
  const bool takes_long =
      job.options.solver ||
      (kernels_run_on_host ? job.slices >= many : double(job.slices) * double(job.bytes_per_row()) > much);
  if (!takes_long || job.options.laminography)
    return;
  RunOptions options = job.options;
  options.solver.reset();
  options.method = Method::Fourier;
  const int image = place_of(job, centre).image;
  picture.emplace(job.options, trial_slice(space, job, options, sinogram, centre, image), image);
}

/// The middle slice about the places that witnesses of the axis do not agree about.
void write_places(const Space& space, const Job& job, const DeviceView<float**>& sinogram,
                  const std::vector<double>& places) {
  const int image = place_of(job, places.front()).image;
  RunOptions options = job.options;
  options.solver.reset(); // filtered back-projection shows the axis as well
  std::vector<std::vector<float>> images;
  std::vector<std::string> captions;
  for (const double centre : places) {
    images.push_back(trial_slice(space, job, options, sinogram, centre, image));
    captions.push_back("centre " + shortest(std::round(100 * centre) / 100));
  }
  write_panels(axis_path(job.options), images, captions, image);
}

/// Looks at the middle slice, and shows it meanwhile.
/// @param first  made where it is of use
MiddleSlice show_middle(const Space& space, const Job& job, const Stripes& stripes,
                        const std::optional<PreparedRows>& prepared, std::optional<FirstPicture>& first,
                        Provenance& provenance, Timings& timings) {
  timings.phase("look at the middle slice");
  const bool all_rows = !job.has_frame_steps() || process_count() == 1;
  const auto of_middle = all_rows ? std::nullopt : prepare_middle(space, job, stripes);
  const RowReader row_of = [&](std::int64_t row) {
    return sinogram_of(space, job, stripes, of_middle ? of_middle : prepared, row);
  };
  const DeviceView<float**> sinogram = row_of(job.middle_row());
  std::optional<double> shown;
  const auto show = [&](const MiddleSlice& found) {
    if (is_null_output(job.options.out) || !is_first_process())
      return;
    constexpr double close = 0.5; // to where the last picture has the axis
    if (!shown || std::abs(*shown - found.centre) > close)
      show_first(first, space, job, sinogram, found.centre);
    shown = found.centre;
    if (!found.places.empty())
      write_places(space, job, sinogram, found.places);
  };
  return look_at_middle(space, job, sinogram, all_rows ? row_of : RowReader(), show, provenance, timings);
}

} // namespace

RunResult reconstruct(const Space& space, const RunOptions& options, Provenance& provenance,
                      Timings& timings) {
  const auto start = std::chrono::steady_clock::now();
  const bool measuring = is_null_output(options.out);
  const SeriesFolder folder(options.out);
  std::optional<FirstPicture> first;
  OutputFamily outputs(outputs_of(options),
                       measuring ? std::optional<fs::path>() : FirstPicture::path(options),
                       output_folder(options.out));
  timings.phase("open");
  Job job(options, provenance);
  unpack(job, options, job.with_neighbours(job.rows), provenance);
  check_values(space, job, options.solver ? 4 : 0, provenance);
  const Stripes stripes = stripe_removal(space, job);
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
  const auto prepared = prepare_share(space, job, stripes, timings);
  const MiddleSlice middle = show_middle(space, job, stripes, prepared, first, provenance, timings);
  const double centre = middle.centre;
  const Views views = views_of(space, job, stripes, prepared, centre, provenance, timings);
  if (!size_is_known)
    open_output(centre);
  output->write_provenance(provenance.text());
  for (const auto& [name, count] : provenance.counts())
    output->write_attribute(name, double(count));

  MiddlePicture picture(measuring ? fs::path() : picture_path(options), place_of(job, centre).image);
  timings.phase("plan");
  SlicePipeline pipeline(space, job, options, views, centre, middle.attenuation, chunk, stripes, prepared,
                         *output);
  timings.phase("reconstruct");
  timings.stages(pipeline.run([&](std::vector<float> slice) { picture.take(std::move(slice)); }));
  timings.share("slices", pipeline.taken());
  pipeline.require_result();
  timings.phase("finish");
  const double residual = pipeline.residual(sum_over_processes(pipeline.iterations().squares), job.slices);
  if (!measuring) {
    write_attributes(*output, options, middle, residual);
    commit(space, options, provenance, *output, picture, outputs);
  }

  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return {summary_of(job, centre, elapsed.count(), residual, pipeline.iterations().made), centre};
}

std::string try_values(const Space& space, const RunOptions& options, Provenance& provenance) {
  require_one_process();
  require_picture_name(options.out);
  OutputFamily outputs({options.out});
  Job job(options, provenance);
  unpack(job, options, job.with_neighbours({job.middle_row(), job.middle_row() + 1}), provenance);
  check_values(space, job, 0, provenance);
  const bool tilts = options.try_tilts.has_value();
  const TrialRange& range = tilts ? *options.try_tilts : *options.try_centres;
  const auto count = static_cast<std::int64_t>((range.last - range.first) / range.step + 1 + 1e-9);
  const auto trial = [&](std::int64_t i) { return range.first + double(i) * range.step; };
  check_method(options, job.scan.angles());
  check_flats(job, provenance);
  check_size(options, place_of(job, options.centre.value_or(trial(count / 2))), provenance);
  provenance.say();
  const Stripes stripes = stripe_removal(space, job);
  const auto prepared = prepare_middle(space, job, stripes);
  DeviceView<float**> sinogram = sinogram_of(space, job, stripes, prepared, job.middle_row());
  const int image = place_of(job, tilts ? *options.centre : trial(count / 2)).image; // the same for all
  std::vector<std::vector<float>> images;
  std::vector<std::string> captions;
  Progress progress("reconstructing", tilts ? "tilts" : "centres", count);
  for (std::int64_t i = 0; i < count; ++i) {
    if (tilts) {
      std::optional<PreparedRows> rolled = prepared;
      prepare_frames(space, job, trial(i), *rolled);
      sinogram = sinogram_of(space, job, stripes, rolled, job.middle_row());
    }
    const double centre = tilts ? *options.centre : trial(i);
    images.push_back(trial_slice(space, job, options, sinogram, centre, image));
    captions.push_back((tilts ? "roll " : "centre ") + shortest(trial(i)));
    progress.add(1);
  }
  write_panels(options.out, images, captions, image);
  outputs.commit();
  return options.out.string() + ": slice " + std::to_string(job.middle_row()) + " at " +
         std::to_string(count) + (tilts ? " rolls" : " centres");
}

} // namespace Bracewell::Examples
