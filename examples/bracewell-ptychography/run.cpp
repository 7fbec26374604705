// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/run.hpp"

#include "bracewell-ptychography/job.hpp"
#include "bracewell-ptychography/pictures.hpp"
#include "bracewell-ptychography/ring_correlation.hpp"
#include "common/input_error.hpp"
#include "common/output_family.hpp"
#include "common/processes.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace Bracewell::Examples {

namespace {

/// The options with those --axes, and that sign of the probe's curvature, which explain some patterns best.
RunOptions with_best_axes(const Space& space, const RunOptions& given, Provenance& provenance,
                          Timings& timings) {
  if (process_count() > 1)
    throw InputError("--try-axes runs in one process, found " + std::to_string(process_count()));
  if (given.data.size() > 1 || given.continued)
    throw InputError("--try-axes goes with one scan, and without --continue");
  constexpr std::int64_t few = 64;
  struct Trial {
    std::string axes;
    bool conjugate;
    double loss;
    std::string text() const {
      return axes + (conjugate ? " with the other sign of the probe's curvature" : "");
    }
  };
  const bool lens = given.convergence_angle || !given.lens_options.empty();
  std::vector<Trial> trials;
  for (const bool conjugate : {false, true})
    for (const std::string axes : {"yx", "-yx", "y-x", "-y-x", "xy", "-xy", "x-y", "-x-y"}) {
      RunOptions options = given;
      options.measurement.axes = axes;
      options.measurement.most = few;
      options.measurement.conjugate_probe = conjugate && !lens;
      if (conjugate && lens)
        options.aberrations[Defocus] *= -1;
      if (conjugate && (given.measurement.focus_distance || (lens && options.aberrations[Defocus] == 0)))
        continue;
      options.reference.reset();
      options.object_support.reset(); // other axes have other objects
      options.refine_positions = options.try_axes = options.find_factors = options.find_background = false;
      options.slices = 1, options.relaxation = 0;
      options.passes = 24;
      options.batches.reset();
      options.margin.reset();
      Provenance unheard("bracewell-ptychography", false);
      trials.push_back({axes, conjugate, trial_loss(space, Job(space, options, unheard), timings)});
    }
  // Those given where others are hardly better: turned by 180 degrees, patterns are those of the other sign.
  const Trial* best = &*std::ranges::min_element(trials, {}, &Trial::loss);
  for (const Trial& trial : trials)
    if (!trial.conjugate && trial.loss < 1.1 * best->loss && best->conjugate)
      best = &trial;
  const Trial* own = nullptr;
  for (const Trial& trial : trials)
    if (!trial.conjugate && trial.axes == given.measurement.axes)
      own = &trial;
  if (own && own->loss < 1.1 * best->loss)
    best = own;
  std::vector<Trial> sorted = trials;
  std::ranges::sort(sorted, {}, &Trial::loss);
  std::string text = "--try-axes: " + best->text() + " leave a loss of " + four_digits(best->loss) + " on " +
                     std::to_string(few) + " patterns or all";
  for (const Trial& trial : sorted)
    if (trial.axes != best->axes || trial.conjugate != best->conjugate)
      text += ", " + trial.text() + " " + four_digits(trial.loss);
  RunOptions options = given;
  options.measurement.axes = best->axes;
  options.measurement.conjugate_probe = best->conjugate && !lens;
  if (best->conjugate && lens)
    options.aberrations[Defocus] *= -1;
  if (best == own)
    provenance.took(given.data[0], text + ": the given axes are kept");
  else
    provenance.assume(given.data[0].string() + ": " + text + ": the first are taken");
  return options;
}

} // namespace

std::string reconstruct(const Space& space, const RunOptions& given, Provenance& provenance,
                        Timings& timings) {
  std::vector<std::filesystem::path> paths{given.out};
  std::ranges::copy(picture_paths(given.out, given.picture_ending), std::back_inserter(paths));
  if (given.correlate_halves)
    std::ranges::copy(ring_correlation_paths(given.out, given.picture_ending), std::back_inserter(paths));
  OutputFamily outputs(paths, Checkpoint::path_of(given.out));
  const RunOptions options = given.try_axes ? with_best_axes(space, given, provenance, timings) : given;
  const Job job(space, options, provenance);
  Checkpoint checkpoint(options.out, options.checkpoint);
  const std::string summary = options.storage == StorageType::Half
                                  ? run_with<Half>(space, job, checkpoint, timings)
                                  : run_with<float>(space, job, checkpoint, timings);
  if (is_first_process()) {
    outputs.commit();
    checkpoint.remove();
  }
  return summary;
}

} // namespace Bracewell::Examples
