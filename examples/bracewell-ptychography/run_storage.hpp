// SPDX-License-Identifier: MIT
// A run with patterns that are stored in one way: each is compiled in a file of its own.
#pragma once

#include "bracewell-ptychography/host_copies.hpp"
#include "bracewell-ptychography/passes.hpp"
#include "bracewell-ptychography/pattern_groups.hpp"
#include "bracewell-ptychography/result.hpp"
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
  const auto middle = totals.pattern.begin() + n * n;
  totals.roots.assign(middle, totals.pattern.end());
  totals.pattern.erase(middle, totals.pattern.end());
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
  typename Solver::Loss::Inputs inputs{.object = object, .probe = found.probe};
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

template <class Storage>
std::string run_with(const Space& space, const Job& job, Checkpoint& checkpoint, Timings& timings) {
  const Measurement& measurement = job.measurement();
  Provenance& provenance = job.provenance();
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  timings.phase("plan");
  PtychographyLoss<Space, float, Storage> loss(space, job.shape(), job.positions_view(), job.loss_options());
  timings.phase("load");
  const Totals totals =
      load(space, measurement, job.tile().patterns, job.options().reproducible, loss, timings);
  timings.phase("start");
  if (!(totals.counts > 0))
    throw InputError(measurement.path().string() + ": all patterns are empty");
  provenance.unusable({.file = measurement.path().string(),
                       .count = std::int64_t(sum_over_processes(double(loss.empty_patterns()))),
                       .of = measurement.count(),
                       .what = "patterns",
                       .why = "have no counts",
                       .done = "they are left out",
                       .remedy = "was the shutter shut? copy the others to a file of their own"});
  job.check_centre(totals.pattern);
  provenance.say();
  const Probe probe = first_probe(space, job, totals);
  PtychographySolver<Space, float, Storage> solver(
      space, job.shape(), std::move(loss),
      job.solver_options(std::sqrt(energy(probe) / double(probe.size()))));
  set_start(space, job, SolverViews::of(solver), probe);
  const Overlaps<Space, Kokkos::complex<float>> overlaps(space, processes(), job.rectangles());
  if (process_count() > 1)
    solver.set_reduction(space, {.patterns = measurement.count(),
                                 .sum =
                                     [&](const Space& on, const auto& numbers, const auto& object_gradient,
                                         const auto& probe_gradient) {
                                       if (object_gradient.size() > 0)
                                         overlaps.sum(on, object_gradient);
                                       sum_over_processes(on, job.options().reproducible, numbers,
                                                          probe_gradient);
                                     },
                                 .origin = job.tile().object.begin});
  timings.phase("iterate");
  std::vector<double> losses = PassLoop(space, job, solver).iterate(checkpoint);
  judge(job, totals, losses);
  timings.phase("write");
  const std::chrono::duration<double> elapsed = Clock::now() - start;

  const auto found = SolverViews::of(solver);
  const std::vector<float> of_patterns = losses_of_patterns(space, job, solver);
  const Reconstruction result = collect(space, job, found, std::move(losses), of_patterns);
  write_result(space, job, found, result);
  if (!is_first_process())
    return "";
  return summary(job, result, totals, solver.memory_bytes() + overlaps.memory_bytes(), elapsed.count());
}

} // namespace Bracewell::Examples
