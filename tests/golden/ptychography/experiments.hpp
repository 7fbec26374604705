// Cases of ptycho_D_experiments in one precision: modes, fractions of a pixel, masks and weights, near field.
#pragma once

#include "case.hpp"

#include <bracewell/ptychography/ptychography_loss.hpp>

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
  Experiment(const File& file_, const Json& entry_) : file(file_), entry(entry_) {}

  /// Whether PtychographyLoss has all that the case asks for.
  bool supported() const {
    const auto& inputs = entry.at("inputs");
    return entry.at("slices") == 1 && entry.at("relaxation") == 0 && !inputs.contains("factors") &&
           entry.at("frame") == "beam" && nearest_corners();
  }

  Result run(PatternPath path) const {
    const PtychographyShape shape{{entry.at("object_shape")[0], entry.at("object_shape")[1]},
                                  entry.at("probe"),
                                  entry.at("detector"),
                                  entry.at("modes")};
    PtychographyLoss<Space, T> plan(space, shape, load<double**>(input("positions")), options(path));
    const auto patterns = load<T***>(input("I_meas"));
    if (!has("weights"))
      plan.set_patterns(space, 0, patterns);
    else if (input("weights").shape.size() == 2)
      plan.set_patterns(space, 0, patterns, load<T**>(input("weights")));
    else
      plan.set_patterns(space, 0, patterns, load<T***>(input("weights")));

    const View<double> loss("loss");
    const View<double*> pattern_losses("pattern losses", plan.count());
    const View<Complex**> object_gradient("object gradient", shape.object[0], shape.object[1]);
    const View<Complex***> probe_gradient("probe gradient", shape.modes, shape.probe, shape.probe);
    plan.evaluate(space, load<Complex**>(input("object")), load<Complex***>(input("probe")),
                  {.loss = loss,
                   .pattern_losses = pattern_losses,
                   .object_gradient = object_gradient,
                   .probe_gradient = probe_gradient});
    space.fence();
    Errors errors;
    errors.loss = std::max(relative_error(loss, output("loss")),
                           relative_error(pattern_losses, output("pattern_losses")));
    errors.gradients = std::max(relative_error(object_gradient, output("grad_object")),
                                relative_error(probe_gradient, output("grad_probe")));
    const std::string name = entry.at("name");
    return {name + (plan.is_fused() ? ", fused" : ", general"), errors, false};
  }

private:
  bool has(const char* name) const { return entry.at("inputs").contains(name); }
  const Array& input(const char* name) const { return file[entry.at("inputs").at(name)]; }
  const Array& output(const char* name) const { return file[entry.at("outputs").at(name)]; }

  PtychographyOptions options(PatternPath path) const {
    const std::string loss = entry.at("loss"), scale = entry.at("scale"), weights = entry.at("weights");
    PtychographyOptions result{
        .counts = entry.at("counts"), .background = entry.at("background"), .path = path};
    result.loss = loss == "LeastSquares" ? PatternLoss::LeastSquares
                  : loss == "Amplitude"  ? PatternLoss::Amplitude
                                         : PatternLoss::Poisson;
    result.scale = scale == "None" ? PatternScale::None : PatternScale::PerPattern;
    result.weights = weights == "None"   ? PixelWeights::None
                     : weights == "Mask" ? PixelWeights::Mask
                                         : PixelWeights::PerPixel;
    if (!entry.at("fresnel_number").is_null())
      result.fresnel_number = entry.at("fresnel_number").get<double>();
    return result;
  }

  /// Whether corners are those of the nearest windows, which ScanPositions takes.
  bool nearest_corners() const {
    const auto &positions = input("positions").values, &corners = input("corners").values;
    return std::equal(positions.begin(), positions.end(), corners.begin(),
                      [](double y, double corner) { return std::floor(y + 0.5) == corner; });
  }

  const File& file;
  const Json& entry;
  Space space;
};

template <class T>
std::vector<Result> run_experiments(const File& file) {
  std::vector<Result> results;
  for (const Json& entry : file.index.at("cases")) {
    const Experiment<T> experiment(file, entry);
    if (!experiment.supported())
      continue;
    results.push_back(experiment.run(PatternPath::General));
    if (const Result other = experiment.run(PatternPath::Automatic); other.name != results.back().name)
      results.push_back(other);
  }
  return results;
}

} // namespace Golden::Ptychography
