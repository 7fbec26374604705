// SPDX-License-Identifier: MIT
// A run with patterns that are stored in one way: each is compiled in a file of its own.
#pragma once

#include "bracewell-ptychography/host_copies.hpp"
#include "bracewell-ptychography/modelled_patterns.hpp"
#include "bracewell-ptychography/passes.hpp"
#include "bracewell-ptychography/pattern_groups.hpp"
#include "bracewell-ptychography/pictures.hpp"
#include "bracewell-ptychography/result.hpp"
#include "bracewell-ptychography/ring_correlation.hpp"
#include "bracewell-ptychography/start.hpp"

#include <bracewell/distributed/overlaps.hpp>
#include <bracewell/ptychography/solver.hpp>

#include <chrono>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace Bracewell::Examples {

/// Reads the patterns and returns their sums.
/// @param which  of the measurement
template <class Storage>
Totals load(const Space& space, const Measurement& measurement, std::span<const std::int64_t> which,
            bool in_order, PtychographyLoss<Space, float, Storage>& loss, Timings& timings) {
  const int n = measurement.detector();
  Totals totals;
  DeviceView<float**> weights;
  if (!measurement.weights().empty()) {
    weights = allocate<DeviceView<float**>>("weights", n, n);
    upload(space, weights, measurement.weights());
  }
  const auto store = [&](std::int64_t first, const PatternGroup& patterns) {
    if (weights.data())
      loss.set_patterns(space, first, patterns, weights);
    else
      loss.set_patterns(space, first, patterns);
  };
  timings.stages(for_each_group(space, measurement, which, store, totals.pattern));
  sum_over_processes(space, in_order, host_view(totals.pattern));
  const auto roots = totals.pattern.begin() + n * n, logs = roots + n * n;
  totals.roots.assign(roots, logs);
  totals.logs.assign(logs, totals.pattern.end());
  totals.pattern.erase(roots, totals.pattern.end());
  totals.counts = std::accumulate(totals.pattern.begin(), totals.pattern.end(), 0.0);
  return totals;
}

/// The loss of every pattern of this process, with what a solver has found.
template <class Solver>
std::vector<float> losses_of_patterns(const Space& space, const Job& job, const Solver& solver) {
  const SolverViews found = SolverViews::of(solver);
  const auto object = allocate<DeviceView<Kokkos::complex<float>**>>("object", found.amplitude.extent(0),
                                                                     found.amplitude.extent(1));
  complex_object(space, found.amplitude, found.phase, object);
  const auto losses = allocate<DeviceView<double*>>("losses of patterns", job.own_count());
  const PtychographyShape& shape = job.shape();
  typename Solver::Loss::Inputs inputs{.object = {}, .probe = found.probe};
  if (shape.slices == 1)
    inputs.object = object;
  else
    inputs.object =
        Part<const Kokkos::complex<float>***>(object.data(), shape.slices, shape.object[0], shape.object[1]);
  if (found.coefficients.size() > 0)
    inputs.coefficients = found.coefficients, inputs.relaxation = found.relaxation;
  if (found.factors.size() > 0)
    inputs.factors = found.factors;
  DeviceView<float**> background;
  if (found.background_roots.size() > 0) {
    std::vector<float> counts = download(space, found.background_roots);
    for (float& value : counts)
      value *= value;
    background = allocate<DeviceView<float**>>("background", shape.detector, shape.detector);
    upload(space, background, counts);
    inputs.detector_background = background;
  }
  DeviceView<double**> positions;
  if (found.displacements.size() > 0) {
    const std::vector<float> moves = download(space, found.displacements);
    std::vector<double> all(job.positions_view().data(), job.positions_view().data() + moves.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] += moves[i];
    positions = allocate<DeviceView<double**>>("positions", job.own_count(), 2);
    upload(space, positions, all);
    inputs.positions = positions;
  }
  solver.loss().evaluate(space, inputs, {.pattern_losses = losses});
  const std::vector<double> values = download(space, losses);
  std::vector<float> result; // of a mean over all patterns
  for (const double value : values)
    result.push_back(static_cast<float>(value * double(job.own_count())));
  return result;
}

/// Draws measured and modelled patterns: those that are explained best, as the median one, and worst.
inline void draw_patterns(const Space& space, const Job& job, const SolverViews& found,
                          const std::vector<float>& losses) {
  std::vector<std::int64_t> order(losses.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int64_t i) { return losses[std::size_t(i)]; });
  std::vector<std::int64_t> which{order.front()};
  for (const std::int64_t next : {order[order.size() / 2], order.back()})
    if (next != which.back())
      which.push_back(next);
  write_compared_patterns(picture_paths(job.options().out, job.options().picture_ending).back(),
                          compare_with_model(space, job, found, which));
}

/// Reconstructs both halves of the scan from the first state, writes their Fourier ring correlation, and returns what to say of it.
template <class Solver>
std::string correlate_halves(const Space& space, const Job& job, Solver& solver,
                             const typename Solver::State& first_state) {
  std::vector<Reconstruction> halves;
  for (const int half : {0, 1}) {
    solver.restore(space, first_state);
    solver.set_rate_factor(1);
    PassLoop(space, job, solver, half).iterate(nullptr);
    const SolverViews found = SolverViews::of(solver);
    const PtychographyShape& shape = job.shape();
    Reconstruction& result = halves.emplace_back();
    result.rows = shape.object[0], result.columns = shape.object[1], result.slices = shape.slices;
    result.amplitude = download(space, found.amplitude), result.phase = download(space, found.phase);
    result.modes = shape.modes, result.probe_size = shape.probe;
    result.probe = download(space, found.probe);
    result.positions = job.positions();
  }
  const RingCorrelation correlation =
      ring_correlation(space, halves[0], halves[1], job.options().train == Train::Pixels);
  const double pixel = job.measurement().object_pixel();
  write_ring_correlation(ring_correlation_paths(job.options().out, job.options().picture_ending), correlation,
                         pixel);
  const bool whole = correlation.resolution <= 2;
  return std::string(", halves agree to ") + (whole ? "the pixel's limit of " : "") +
         (pixel > 0 ? four_digits(1e9 * pixel * correlation.resolution) + " nm"
                    : four_digits(correlation.resolution) + " pixels") +
         " (half bit)";
}

/// Patterns of this process, and what all have together. Throws InputError where they are empty.
template <class Storage>
Totals load_patterns(const Space& space, const Job& job, PtychographyLoss<Space, float, Storage>& loss,
                     Timings& timings) {
  const Measurement& measurement = job.measurement();
  Provenance& provenance = job.provenance();
  timings.phase("load");
  const Totals totals =
      load(space, measurement, job.tile().patterns, job.options().reproducible, loss, timings);
  timings.phase("start");
  if (!(totals.counts > 0)) {
    provenance.say(); // of a mask that looks inverted
    throw InputError(measurement.path().string() + ": all patterns are empty where the mask lets them count");
  }
  provenance.unusable({.file = measurement.path().string(),
                       .count = std::int64_t(sum_over_processes(double(loss.empty_patterns()))),
                       .of = measurement.count(),
                       .what = "patterns",
                       .why = "have no counts or values that are not finite",
                       .done = "they are left out",
                       .remedy = "was the shutter shut? copy the others to a file of their own"});
  job.check_centre(totals.pattern);
  provenance.say();
  return totals;
}

/// Where there are several processes, the solver sums over them.
template <class Storage>
void sum_in_steps(const Space& space, const Job& job, const Overlaps<Space, Kokkos::complex<float>>& overlaps,
                  PtychographySolver<Space, float, Storage>& solver) {
  if (process_count() == 1)
    return;
  const auto sum = [&job, &overlaps](const Space& on, const auto& numbers, const auto& object_gradient,
                                     const auto& probe_gradient) {
    const bool in_order = job.options().reproducible;
    if (object_gradient.size() > 0 && !in_order)
      return overlaps.sum(on, object_gradient, numbers, probe_gradient);
    if (object_gradient.size() > 0)
      overlaps.sum(on, object_gradient);
    sum_over_processes(on, in_order, numbers, probe_gradient);
  };
  solver.set_reduction(
      space, {.patterns = job.measurement().count(), .sum = sum, .origin = job.tile().object.begin});
}

template <class Storage>
std::string run_with(const Space& space, const Job& job, Checkpoint& checkpoint, Timings& timings) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  timings.phase("plan");
  PtychographyLoss<Space, float, Storage> loss(space, job.shape(), job.positions_view(), job.loss_options());
  const Totals totals = load_patterns(space, job, loss, timings);
  const Probe probe = first_probe(space, job, totals);
  PtychographySolver<Space, float, Storage> solver(
      space, job.shape(), std::move(loss),
      job.solver_options(std::sqrt(energy(probe) / double(probe.size())), totals.root(job)));
  set_start(space, job, SolverViews::of(solver), probe, totals);
  if (job.options().object_support) {
    const auto support =
        allocate<DeviceView<float**>>("support", job.shape().object[0], job.shape().object[1]);
    upload(space, support, job.object_support());
    solver.set_object_support(space, support, job.options().beyond_support);
  }
  const Overlaps<Space, Kokkos::complex<float>> overlaps(space, processes(), job.rectangles());
  sum_in_steps(space, job, overlaps, solver);
  std::optional<typename PtychographySolver<Space, float, Storage>::State> first_state;
  if (job.options().correlate_halves)
    first_state = solver.state(space);
  timings.phase("iterate");
  std::vector<double> losses = PassLoop(space, job, solver).iterate(&checkpoint);
  judge(job, totals, losses);
  timings.phase("write");
  const std::chrono::duration<double> elapsed = Clock::now() - start;

  const auto found = SolverViews::of(solver);
  const std::vector<float> of_patterns = losses_of_patterns(space, job, solver);
  const Reconstruction result = collect(space, job, found, std::move(losses), of_patterns);
  write_result(space, job, found, result);
  if (is_first_process() && !of_patterns.empty()) // of its own ones
    draw_patterns(space, job, found, of_patterns);
  std::string halves;
  if (first_state) {
    timings.phase("halves");
    halves = correlate_halves(space, job, solver, *first_state);
  }
  if (!is_first_process())
    return "";
  return summary(job, result, totals, solver.memory_bytes() + overlaps.memory_bytes(), elapsed.count()) +
         halves;
}

} // namespace Bracewell::Examples
