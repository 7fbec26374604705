// SPDX-License-Identifier: MIT
#include "types.hpp"

#include <bracewell/ptychography/ptychography_loss.hpp>

namespace Bracewell::C {
namespace {

class LossPlan : public bracewell_ptychography {
  using Loss = PtychographyLoss<Space, Real>;

public:
  template <class Positions>
  LossPlan(const Space& space, const PtychographyShape& shape, const Positions& positions,
           const PtychographyOptions& options)
      : plan_(space, shape, positions, options) {}

  void set_patterns(const bracewell_queue& queue, std::int64_t first, const bracewell_array* patterns,
                    const bracewell_array* weights) override {
    constexpr const char* name = "ptychography_set_patterns";
    const Space space = space_of<backend>(queue);
    expect_rank(name, "patterns", patterns, 3, "[patterns, n, n]");
    const Of<const Real> in(name, "patterns", space, patterns), worth(name, "weights", space, weights);
    plan_.set_patterns(space, first, in.view<3>(), worth.array());
    finish(in, worth);
  }

  void evaluate(const bracewell_queue& queue, const bracewell_ptychography_inputs& inputs,
                const bracewell_ptychography_outputs& outputs) const override {
    constexpr const char* name = "ptychography_evaluate";
    const Space space = space_of<backend>(queue);
    rank_of(name, "inputs.object", inputs.object);
    rank_of(name, "inputs.probe", inputs.probe);
    const Of<const Complex> object(name, "inputs.object", space, inputs.object),
        probe(name, "inputs.probe", space, inputs.probe);
    const Of<const double> positions(name, "inputs.positions", space, inputs.positions);
    const Of<const int> subset(name, "inputs.subset", space, inputs.subset);
    const Of<double> loss(name, "outputs.loss", space, outputs.loss),
        losses(name, "outputs.pattern_losses", space, outputs.pattern_losses);
    const Of<Complex> of_object(name, "outputs.object", space, outputs.object),
        of_probe(name, "outputs.probe", space, outputs.probe);
    const Of<Real> of_positions(name, "outputs.positions", space, outputs.positions);
    typename Loss::Inputs in;
    in.object = object.array();
    in.probe = probe.array();
    in.positions = positions.array();
    typename Loss::Outputs out;
    out.loss = loss.array();
    out.pattern_losses = losses.array();
    out.object_gradient = of_object.array();
    out.probe_gradient = of_probe.array();
    out.position_gradient = of_positions.array();
    plan_.evaluate(space, in, out, subset.array());
    finish(object, probe, positions, subset, loss, losses, of_object, of_probe, of_positions);
  }

private:
  Loss plan_;
};

template <class Enum>
Enum enum_of(const char* argument, const char* expected, int value, int last) {
  if (value < 0 || value > last)
    Impl::fail("ptychography_create", argument, expected, std::to_string(value));
  return static_cast<Enum>(value);
}

} // namespace

template <>
bracewell_ptychography* Ptychography<backend, Real>::plan(const bracewell_queue& queue,
                                                          const bracewell_array* positions,
                                                          const bracewell_ptychography_options& given) {
  constexpr const char* name = "ptychography_create";
  expect_rank(name, "positions", positions, 2, "[patterns, 2]");
  const Argument<const double, Kokkos::DefaultHostExecutionSpace> where(
      name, "positions", Kokkos::DefaultHostExecutionSpace(), positions);
  PtychographyOptions options;
  options.loss = enum_of<PatternLoss>("options.loss", "a bracewell_loss", given.loss, BRACEWELL_POISSON);
  options.weights = enum_of<PixelWeights>("options.weights", "a bracewell_pixel_weights", given.weights,
                                          BRACEWELL_PER_PIXEL);
  options.scale = given.absolute_counts ? PatternScale::None : PatternScale::PerPattern;
  if (given.counts != 0)
    options.counts = given.counts;
  if (given.background != 0)
    options.background = given.background;
  options.fresnel_number = unless_zero(given.fresnel_number);
  options.refine_positions = given.refine_positions != 0;
  const PtychographyShape shape{.object = {given.object[0], given.object[1]},
                                .probe = given.probe,
                                .detector = given.detector,
                                .modes = given.modes == 0 ? 1 : given.modes};
  return new LossPlan(space_of<backend>(queue), shape, where.view<2>(), options);
}

} // namespace Bracewell::C
