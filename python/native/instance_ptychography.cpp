// SPDX-License-Identifier: MIT
#include "kokkos_arrays.hpp"

#include <bracewell/optimize/adam.hpp>
#include <bracewell/ptychography/ptychography_loss.hpp>

namespace Bracewell::Python {
namespace {

using Real = BRACEWELL_PYTHON_REAL;
constexpr Backend backend = Backend::BRACEWELL_PYTHON_BACKEND;
using Space = SpaceOf<backend>;
using Complex = Kokkos::complex<Real>;

/// GPUs have a fused kernel for the usual detectors; hosts are about as fast without.
using Detectors =
    std::conditional_t<backend == Backend::Host, FusedDetectors<>, FusedDetectors<64, 128, 256>>;

class Loss : public PtychographyPlan {
public:
  Loss(Queue queue, const Tensor& positions, const PtychographyShape& shape,
       const PtychographyOptions& options)
      : plan_(space_of<backend>(queue), shape, view_of<const double, 2, Kokkos::HostSpace>(positions),
              options) {}

  std::size_t memory_bytes() const override { return plan_.memory_bytes(); }

  void set_patterns(Queue queue, std::int64_t first, const Tensor& patterns, const Tensor& weights) override {
    if (patterns.rank != 3)
      Impl::fail("PtychographyLoss::set_patterns", "patterns", "[patterns, n, n]",
                 std::to_string(patterns.rank) + " axes");
    plan_.set_patterns(space_of<backend>(queue), first, view_of<const Real, 3, Space>(patterns),
                       array_of<const Real, Space>(weights));
  }

  void evaluate(Queue queue, const PtychographyTensors& tensors) override {
    typename Plan::Inputs inputs;
    inputs.object = array_of<const Complex, Space>(tensors.object);
    inputs.probe = array_of<const Complex, Space>(tensors.probe);
    inputs.positions = array_of<const double, Space>(tensors.positions);
    typename Plan::Outputs outputs;
    outputs.loss = array_of<double, Space>(tensors.loss);
    outputs.pattern_losses = array_of<double, Space>(tensors.pattern_losses);
    outputs.object_gradient = array_of<Complex, Space>(tensors.object_gradient);
    outputs.probe_gradient = array_of<Complex, Space>(tensors.probe_gradient);
    outputs.position_gradient = array_of<Real, Space>(tensors.position_gradient);
    plan_.evaluate(space_of<backend>(queue), inputs, outputs, array_of<const int, Space>(tensors.subset));
  }

private:
  using Plan = PtychographyLoss<Space, Real, Real, Detectors>;
  Plan plan_;
};

class Optimiser : public AdamPlan {
public:
  Optimiser(Queue queue, const std::vector<std::size_t>& sizes, const AdamOptions& options)
      : adam_(space_of<backend>(queue), sizes, options) {}

  std::size_t memory_bytes() const override { return adam_.memory_bytes(); }

  void step(Queue queue, const std::vector<Group>& groups) override {
    std::vector<AdamParameters<Real, typename Space::memory_space>> parameters;
    const auto flat = [](Tensor tensor) {
      for (int axis = 1; axis < tensor.rank; ++axis)
        tensor.extents[0] *= tensor.extents[axis];
      return tensor;
    };
    for (const Group& group : groups)
      parameters.emplace_back(view_of<Real, 1, Space>(flat(group.values)),
                              view_of<const Real, 1, Space>(flat(group.gradients)), group.learning_rate);
    adam_.step(space_of<backend>(queue), parameters);
  }

private:
  Adam<Space, Real> adam_;
};

template <class Value>
Value named(const char* argument, const std::string& name,
            std::initializer_list<std::pair<const char*, Value>> values) {
  std::string names;
  for (const auto& [known, value] : values) {
    if (name == known)
      return value;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  Impl::fail("PtychographyLoss", argument, "one of " + names, name);
}

} // namespace

template <>
std::unique_ptr<PtychographyPlan> Ptychography<backend, Real>::loss(Queue queue, const Tensor& positions,
                                                                    const PtychographySettings& settings) {
  if (positions.rank != 2)
    Impl::fail("PtychographyLoss", "positions", "[N, 2]", std::to_string(positions.rank) + " axes");
  const PtychographyShape shape{.object = {settings.rows, settings.columns},
                                .probe = settings.probe,
                                .detector = settings.detector,
                                .modes = settings.modes};
  PtychographyOptions options;
  options.loss = named<PatternLoss>("loss", settings.loss,
                                    {{"least_squares", PatternLoss::LeastSquares},
                                     {"amplitude", PatternLoss::Amplitude},
                                     {"poisson", PatternLoss::Poisson}});
  options.weights = named<PixelWeights>(
      "weights", settings.weights,
      {{"none", PixelWeights::None}, {"mask", PixelWeights::Mask}, {"per_pixel", PixelWeights::PerPixel}});
  options.scale = settings.scale_per_pattern ? PatternScale::PerPattern : PatternScale::None;
  options.counts = settings.counts;
  options.background = settings.background;
  options.fresnel_number = settings.fresnel_number;
  options.refine_positions = settings.refine_positions;
  return std::make_unique<Loss>(queue, positions, shape, options);
}

template <>
std::unique_ptr<AdamPlan> Ptychography<backend, Real>::adam(Queue queue,
                                                            const std::vector<std::size_t>& sizes,
                                                            double beta1, double beta2, double epsilon) {
  return std::make_unique<Optimiser>(queue, sizes, AdamOptions{beta1, beta2, epsilon});
}

} // namespace Bracewell::Python
