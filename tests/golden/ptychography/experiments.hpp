// Cases of ptycho_D_experiments in one precision: modes, fractions of a pixel, masks and weights, near field, slices,
// relaxation, factors, background; the gradients of all of them.
#pragma once

#include "../../ptychography/plans.hpp"
#include "case.hpp"

#include <algorithm>
#include <optional>

namespace Golden::Ptychography {

using namespace Bracewell;

/// One case, by its entry in the index.
template <class T>
class Experiment {
  using Complex = Kokkos::complex<T>;
  template <class Value>
  using View = Kokkos::View<Value, Kokkos::LayoutRight, Space>;

public:
  Experiment(const File& file, const Json& entry) : file_(file), entry_(entry) {}

  /// Whether the case is at the windows next to its positions, with no more than object and probe to find.
  bool plain() const {
    return entry_.at("slices") == 1 && !has("coefficients") && !has("factors") && nearest_corners();
  }

  /// @param everything  also gradients of positions and of what else there is
  Result run(PatternPath path, bool everything) const {
    const PtychographyShape shape{{entry_.at("object_shape")[0], entry_.at("object_shape")[1]},
                                  entry_.at("probe"),
                                  entry_.at("detector"),
                                  entry_.at("modes"),
                                  entry_.at("slices"),
                                  entry_.at("relaxation")};
    PtychographyOptions settings = options(path);
    settings.refine_positions = everything;
    // The windows of the case; its positions may be farther from them than a plan's.
    PtychographyLoss<Space, T, Test::TestStorage<T>> plan(
        space_, shape, load<double**>(input(everything ? "corners" : "positions")), settings);
    const auto patterns = load<T***>(input("I_meas"));
    if (!has("weights"))
      plan.set_patterns(space_, 0, patterns);
    else if (input("weights").shape.size() == 2)
      plan.set_patterns(space_, 0, patterns, load<T**>(input("weights")));
    else
      plan.set_patterns(space_, 0, patterns, load<T***>(input("weights")));

    const View<double> loss("loss");
    const View<double*> pattern_losses("pattern losses", plan.count());
    const auto object = load<Complex***>(input("object")), probe = load<Complex***>(input("probe"));
    const View<Complex***> object_gradient("gradient", shape.slices, shape.object[0], shape.object[1]),
        probe_gradient("gradient", shape.modes, shape.probe, shape.probe);
    PtychographyInputs<T, Space::memory_space> inputs{.object = object, .probe = probe};
    PtychographyOutputs<T, Space::memory_space> outputs{.loss = loss,
                                                        .pattern_losses = pattern_losses,
                                                        .object_gradient = object_gradient,
                                                        .probe_gradient = probe_gradient};
    View<T**> position_gradient;
    View<T*> factor_gradient;
    View<T**> background_gradient;
    View<Complex**> coefficient_gradient;
    View<Complex***> relaxation_gradient;
    if (everything) {
      inputs.positions = load<double**>(input("positions"));
      outputs.position_gradient = position_gradient = View<T**>("position gradient", plan.count(), 2);
    }
    if (has("factors")) {
      inputs.factors = load<T*>(input("factors"));
      inputs.detector_background = load<T**>(input("detector_background"));
      outputs.factor_gradient = factor_gradient = View<T*>("gradient", plan.count());
      outputs.background_gradient = background_gradient =
          View<T**>("gradient", shape.detector, shape.detector);
    }
    if (has("coefficients")) {
      inputs.coefficients = load<Complex**>(input("coefficients"));
      inputs.relaxation = load<Complex***>(input("relaxation"));
      outputs.coefficient_gradient = coefficient_gradient =
          View<Complex**>("gradient", plan.count(), shape.relaxation);
      outputs.relaxation_gradient = relaxation_gradient =
          View<Complex***>("gradient", shape.relaxation, shape.probe, shape.probe);
    }
    plan.evaluate(space_, inputs, outputs);
    space_.fence();
    Errors errors;
    errors.loss = std::max(relative_error(loss, output("loss")),
                           relative_error(pattern_losses, output("pattern_losses")));
    const auto check = [&](const auto& gradient, const char* name) {
      if (gradient.size() > 0)
        errors.gradients = std::max(errors.gradients, relative_error(gradient, output(name)));
    };
    check(object_gradient, "grad_object");
    check(probe_gradient, "grad_probe");
    check(position_gradient, "grad_positions");
    check(factor_gradient, "grad_factors");
    check(background_gradient, "grad_detector_background");
    check(coefficient_gradient, "grad_coefficients");
    check(relaxation_gradient, "grad_relaxation");
    const std::string name = entry_.at("name");
    const char* const paths[] = {", automatic", ", fused", ", known lines", ", lines", ", general"};
    return {name + (everything ? ", everything" : paths[static_cast<int>(plan.path())]), errors, false};
  }

private:
  bool has(const char* name) const { return entry_.at("inputs").contains(name); }
  const Array& input(const char* name) const { return file_[entry_.at("inputs").at(name)]; }
  const Array& output(const char* name) const { return file_[entry_.at("outputs").at(name)]; }

  PtychographyOptions options(PatternPath path) const {
    const std::string loss = entry_.at("loss"), scale = entry_.at("scale"), weights = entry_.at("weights");
    PtychographyOptions result{
        .counts = entry_.at("counts"), .background = entry_.at("background"), .path = path};
    result.loss = loss == "LeastSquares" ? PatternLoss::LeastSquares
                  : loss == "Amplitude"  ? PatternLoss::Amplitude
                                         : PatternLoss::Poisson;
    result.scale = scale == "None" ? PatternScale::None : PatternScale::PerPattern;
    result.weights = weights == "None"   ? PixelWeights::None
                     : weights == "Mask" ? PixelWeights::Mask
                                         : PixelWeights::PerPixel;
    result.pattern_factors = has("factors");
    result.detector_background = has("detector_background");
    const double side = entry_.at("probe").get<double>() * entry_.at("pixel_size").get<double>();
    for (const double distance : entry_.at("slice_distances"))
      result.slice_fresnel_numbers.push_back(side * side /
                                             (entry_.at("wavelength").get<double>() * distance));
    if (!entry_.at("fresnel_number").is_null())
      result.fresnel_number = entry_.at("fresnel_number").get<double>();
    return result;
  }

  /// Whether corners are those of the nearest windows, which ScanPositions takes.
  bool nearest_corners() const {
    const auto &positions = input("positions").values, &corners = input("corners").values;
    return std::equal(positions.begin(), positions.end(), corners.begin(),
                      [](double y, double corner) { return std::floor(y + 0.5) == corner; });
  }

  const File& file_;
  const Json& entry_;
  Space space_;
};

template <class T>
std::vector<Result> run_experiments(const File& file) {
  std::vector<Result> results;
  for (const Json& entry : file.index.at("cases")) {
    const Experiment<T> experiment(file, entry);
    results.push_back(experiment.run(PatternPath::General, true));
    if (!experiment.plain())
      continue;
    results.push_back(experiment.run(PatternPath::General, false));
    if (const Result other = experiment.run(PatternPath::Automatic, false); other.name != results.back().name)
      results.push_back(other);
  }
  return results;
}

} // namespace Golden::Ptychography
