// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/ptychography/detail/aperture.hpp>
#include <bracewell/ptychography/options.hpp>
#include <bracewell/ptychography/probe_optics.hpp>
#include <bracewell/ptychography/solver_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace Bracewell::Impl {

/// The options, where a solver of a loss can have them.
template <class Loss>
const PtychographySolverOptions& check_solver(const PtychographyShape& shape, const Loss& loss,
                                              const PtychographySolverOptions& options) {
  const Arguments check{"PtychographySolver"};
  check.require(shape == loss.sizes(), "shape", "the sizes that the loss was made with", "others");
  const auto rate = [&](const char* argument, double value) {
    if (!(value >= 0 && value <= 1e30))
      check.refuse(argument, "learning rates that are finite and >= 0, found %.6g", value);
  };
  rate("options.object_rate", options.object_rate);
  rate("options.probe_rate", options.probe_rate);
  rate("options.position_rate", options.position_rate);
  rate("options.coefficient_rate", options.coefficient_rate);
  rate("options.relaxation_rate", options.relaxation_rate);
  rate("options.factor_rate", options.factor_rate);
  rate("options.background_rate", options.background_rate);
  check.positive("options.position_limit", options.position_limit);
  if (options.position_rate != 0 && !loss.refines_positions())
    check.refuse("options.position_rate",
                 "0, as the loss was made without options.refine_positions, found %.6g",
                 options.position_rate);
  check.not_negative("options.total_variation", options.total_variation);
  const auto& limits = options.amplitude_limits;
  if (!(limits[0] <= limits[1]))
    check.refuse("options.amplitude_limits", "two numbers, the smaller one first, found %.6g and %.6g",
                 double(limits[0]), double(limits[1]));
  if (options.probe_support) {
    check.positive("options.probe_support", *options.probe_support);
    if (options.optics)
      check.refuse("options.probe_support", "none with optics, found %.6g", *options.probe_support);
  }
  for (const double value : options.aberration_rates)
    rate("options.aberration_rates", value);
  const auto decay = [&](const char* argument, double value) {
    if (!(value >= 0 && value < 1))
      check.refuse(argument, "a value in [0, 1), found %.6g", value);
  };
  decay("options.adam.beta1", options.adam.beta1);
  decay("options.adam.beta2", options.adam.beta2);
  check.positive("options.adam.epsilon", options.adam.epsilon);
  check.at_least<std::int64_t>("options.history", options.history, 1);
  if (!(options.regularisation > 0 && options.regularisation <= 1))
    check.refuse("options.regularisation", "a value in (0, 1], found %.6g", options.regularisation);
  check.at_least<std::int64_t>("options.projections_first", options.projections_first, 0);
  if (options.projections_first != 0 && options.steps != PtychographySteps::Adam)
    check.refuse("options.projections_first", "0 with steps other than Adam, found %lld",
                 static_cast<long long>(options.projections_first));
  check.require((options.steps == PtychographySteps::Adam && options.projections_first == 0) ||
                    (!options.optics && shape.slices == 1 && loss.options().loss == PatternLoss::Amplitude &&
                     loss.options().scale == PatternScale::None),
                "options.steps",
                "PtychographySteps::Adam alone, but for pixels of the probe, one slice and the amplitude "
                "loss without scale",
                "others");
  if (!options.optics)
    return options;
  if (shape.modes != 1)
    check.refuse("options.optics", "one probe mode, found %d", shape.modes);
  check.require(shape.relaxation == 0 && !loss.options().pattern_factors &&
                    !loss.options().detector_background,
                "options.optics", "a loss without relaxation, factors and background", "others");
  check_optics(check, *options.optics);
  return options;
}

/// Real numbers of what Adam changes, in the order in which a solver gives it them.
inline std::vector<std::size_t> solver_sizes(const PtychographyShape& shape,
                                             const PtychographyOptions& of_loss, std::int64_t count,
                                             const PtychographySolverOptions& options) {
  const auto object = static_cast<std::size_t>(shape.slices * shape.object[0] * shape.object[1]),
             window = static_cast<std::size_t>(shape.probe) * static_cast<std::size_t>(shape.probe),
             patterns = static_cast<std::size_t>(count);
  const bool adam = options.steps == PtychographySteps::Adam;
  std::vector<std::size_t> all;
  all.reserve(3 + probe_parameter_count); // without it GCC 12 warns of an array's end
  if (adam)
    all.assign(2, object);
  if (options.optics)
    all.insert(all.end(), probe_parameter_count, 1);
  else if (adam && options.probe_rate > 0)
    all.push_back(2 * window * static_cast<std::size_t>(shape.modes));
  if (options.position_rate > 0)
    all.push_back(2 * patterns);
  if (const auto modes = static_cast<std::size_t>(shape.relaxation); modes > 0)
    all.insert(all.end(), {2 * patterns * modes, 2 * window * modes});
  if (of_loss.pattern_factors)
    all.push_back(patterns);
  if (of_loss.detector_background)
    all.push_back(static_cast<std::size_t>(shape.detector) * static_cast<std::size_t>(shape.detector));
  return all;
}

/// Whether steps change the probe.
inline bool trains_probe(const PtychographySolverOptions& options) {
  return options.optics ? std::ranges::max(options.aberration_rates) > 0 : options.probe_rate > 0;
}

} // namespace Bracewell::Impl
