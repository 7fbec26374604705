// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/run_storage.hpp"

namespace Bracewell::Examples {

double trial_loss(const Space& space, const Job& job, Timings& timings) {
  PtychographyLoss<Space, float> loss(space, job.shape(), job.positions_view(), job.loss_options());
  const Totals totals = load(space, job.measurement(), job.tile().patterns, true, loss, timings);
  const Probe probe = first_probe(space, job, totals);
  PtychographySolver<Space, float> solver(
      space, job.shape(), std::move(loss),
      job.solver_options(std::sqrt(energy(probe) / double(probe.size())), totals.root(job)));
  set_start(space, job, SolverViews::of(solver), probe, totals);
  const PatternBatches<Space> batches(space, job.own_count(), job.batches());
  for (int pass = 0; pass < job.passes(); ++pass) {
    solver.set_rate_factor(job.schedule().rate_factor(pass));
    for (int batch = 0; batch < job.batches(); ++batch)
      solver.step(space, batches[batch]);
  }
  const DeviceView<double> last("Bracewell::examples::loss");
  solver.evaluate(space, last);
  return download(space, last)[0];
}

} // namespace Bracewell::Examples

template std::string Bracewell::Examples::run_with<float>(const Space&, const Job&, Checkpoint&, Timings&);
