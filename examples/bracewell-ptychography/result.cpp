// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/result.hpp"

#include "bracewell-ptychography/alignment.hpp"
#include "bracewell-ptychography/pictures.hpp"
#include "bracewell-ptychography/tiled_arrays.hpp"
#include "common/processes.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace Bracewell::Examples {

Reconstruction collect(const Space& space, const Job& job, const SolverViews& found,
                       std::vector<double> losses) {
  const TiledArrays arrays(space, job);
  const RunOptions& options = job.options();
  const PtychographyShape& shape = job.shape();
  Reconstruction result;
  result.every = job.pixel_of_pictures();
  const auto whole = [&](std::int64_t pixels) { return (pixels + result.every - 1) / result.every; };
  result.rows = whole(job.object()[0]), result.columns = whole(job.object()[1]);
  const auto take = [&](std::vector<float>& values, const auto& view) {
    if (is_first_process())
      values.resize(static_cast<std::size_t>(result.rows * result.columns));
    arrays.gather(download(space, view), [&](const Hdf5Slab& box, std::span<const float> of_box) {
      for (std::int64_t i = 0; i < std::ssize(of_box); ++i) {
        const std::int64_t row = box.offset[0] + i / box.count[1], column = box.offset[1] + i % box.count[1];
        if (row % result.every == 0 && column % result.every == 0)
          values[static_cast<std::size_t>(row / result.every * result.columns + column / result.every)] =
              of_box[static_cast<std::size_t>(i)];
      }
    });
  };
  take(result.amplitude, found.amplitude);
  take(result.phase, found.phase);
  result.modes = shape.modes, result.probe_size = shape.probe;
  result.probe = download(space, found.probe);
  result.positions = job.positions();
  const std::vector<float> own_moves = download(space, found.displacements),
                           moves = arrays.of_all_patterns(std::span(own_moves));
  for (std::size_t i = 0; i < moves.size(); ++i)
    result.positions[i / 2][i % 2] += moves[i];
  result.losses = std::move(losses);
  if (options.train == Train::Aberrations) {
    const auto values = download(space, found.aberrations);
    result.aberrations.emplace();
    std::copy(values.begin(), values.end(), result.aberrations->begin());
  }
  result.pixel_size = job.measurement().object_pixel();
  result.settings = {{"patterns", double(job.measurement().count())},
                     {"detector", double(shape.detector)},
                     {"probe_size", double(shape.probe)},
                     {"modes", double(shape.modes)},
                     {"passes", double(options.passes)},
                     {"batches", double(options.batches)},
                     {"decay", double(job.decays())},
                     {"algorithm", double(static_cast<int>(options.algorithm))},
                     {"object_rate", job.object_rate()},
                     {"probe_rate", job.probe_rate()},
                     {"loss", double(static_cast<int>(options.loss))},
                     {"train", double(static_cast<int>(options.train))},
                     {"start", double(static_cast<int>(options.start))},
                     {"storage", double(static_cast<int>(options.storage))},
                     {"subpixel", double(options.subpixel)},
                     {"wavelength", job.measurement().wavelength()},
                     {"object_pixel", job.measurement().object_pixel()},
                     {"seed", double(options.seed)}};
  if (options.refine_positions) {
    result.settings.push_back({"position_rate", options.position_rate});
    result.settings.push_back({"position_limit", options.position_limit});
  }
  if (job.optics()) {
    const std::array names{"defocus", "cs", "astigmatism", "astigmatism_angle", "smoothness"};
    result.settings.push_back({"convergence_angle", job.optics()->convergence_angle});
    for (std::size_t c = 0; c < names.size(); ++c)
      result.settings.push_back({names[c], job.aberrations()[c]});
  }
  result.provenance = job.provenance().text();
  return result;
}

void write_result(const Space& space, const Job& job, const SolverViews& found,
                  const Reconstruction& result) {
  const RunOptions& options = job.options();
  std::optional<Hdf5Writer> file;
  if (is_first_process())
    file.emplace(options.out);
  for (const auto& [name, view] :
       {std::pair("/object/amplitude", found.amplitude), {"/object/phase", found.phase}}) {
    const auto values = download(space, view);
    TiledArrays(space, job).write(file ? &*file : nullptr, name, std::span(values), Of::Object);
  }
  if (!file)
    return;
  write_all_but_object(*file, result);
  file->commit();
  write_pictures(picture_paths(options.out, options.picture_ending), result);
}

namespace {

std::string in_tiles(const Job& job) {
  if (process_count() == 1)
    return "";
  std::int64_t rows = 0, columns = 0;
  for (const Rectangle& one : job.rectangles())
    rows = std::max(rows, one.rows()), columns = std::max(columns, one.columns());
  return " in tiles of at most " + std::to_string(rows) + " x " + std::to_string(columns) + " pixels";
}

} // namespace

std::string summary(const Job& job, const Reconstruction& result, const Totals& totals, std::size_t bytes,
                    double seconds) {
  const RunOptions& options = job.options();
  const PtychographyShape& shape = job.shape();
  std::string text = options.out.string() + ": " + std::to_string(job.measurement().count()) +
                     " patterns of " + std::to_string(shape.detector) + " x " +
                     std::to_string(shape.detector) + ", object " + std::to_string(job.object()[0]) + " x " +
                     std::to_string(job.object()[1]) + in_tiles(job) + ", loss " +
                     four_digits(result.losses.front()) + " to " + four_digits(result.losses.back());
  const double pixels = double(job.measurement().count()) * std::pow(shape.detector, 2);
  if (options.loss == PatternLoss::Amplitude && job.loss_options().scale == PatternScale::None)
    text += ", amplitude residual " + four_digits(result.losses.back() * pixels / totals.counts);
  if (result.aberrations)
    text += ", defocus " + four_digits((*result.aberrations)[Defocus]) + " nm";
  if (job.reference()) {
    text += ", error against the reference " +
            four_digits(align(result, *job.reference(), options.train == Train::Pixels).error);
    if (result.positions.size() == job.reference()->positions.size())
      if (const double error = position_error(result, *job.reference()); error > 0)
        text += ", positions off by " + four_digits(error) + " pixels (median)";
  }
  return text + ", " + four_digits(double(bytes) / 1e6) + " MB, " + four_digits(seconds) + " s";
}

} // namespace Bracewell::Examples
