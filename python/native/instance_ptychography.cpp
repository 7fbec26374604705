// SPDX-License-Identifier: MIT
#include "kokkos_arrays.hpp"

#include <bracewell/optimize/adam.hpp>
#include <bracewell/ptychography/ptychography_loss.hpp>
#include <bracewell/ptychography/solver.hpp>

namespace Bracewell::Python {
namespace {

using Real = BRACEWELL_PYTHON_REAL;
constexpr Backend backend = Backend::BRACEWELL_PYTHON_BACKEND;
using Space = SpaceOf<backend>;
using Complex = Kokkos::complex<Real>;

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

  using Plan = PtychographyLoss<Space, Real>;
  Plan take() { return std::move(plan_); }

private:
  Plan plan_;
};

class Solver : public SolverPlan {
public:
  Solver(Queue queue, Loss::Plan loss, const PtychographySolverOptions& options)
      : Solver(queue, loss.sizes(), std::move(loss), options) {}

  std::size_t memory_bytes() const override { return solver_.memory_bytes(); }

  void set(Queue queue, const Tensor& amplitude, const Tensor& phase, const Tensor& probe) override {
    copy_in(queue, "amplitude", amplitude, solver_.amplitude());
    copy_in(queue, "phase", phase, solver_.phase());
    copy_in(queue, "probe", probe, solver_.probe());
  }
  void get(Queue queue, const Tensor& amplitude, const Tensor& phase, const Tensor& probe,
           const Tensor& displacements) const override {
    copy_out(queue, "amplitude", solver_.amplitude(), amplitude);
    copy_out(queue, "phase", solver_.phase(), phase);
    copy_out(queue, "probe", solver_.probe(), probe);
    copy_out(queue, "displacements", solver_.displacements(), displacements);
  }
  void step(Queue queue, const Tensor& subset) override {
    solver_.step(space_of<backend>(queue), array_of<const int, Space>(subset));
  }
  void move_windows(Queue queue) override { solver_.move_windows(space_of<backend>(queue)); }
  void set_rate_factor(double factor) override { solver_.set_rate_factor(factor); }
  std::vector<double> losses(Queue queue) const override { return solver_.losses(space_of<backend>(queue)); }

private:
  Solver(Queue queue, const PtychographyShape& shape, Loss::Plan&& loss,
         const PtychographySolverOptions& options)
      : solver_(space_of<backend>(queue), shape, std::move(loss), options) {}

  template <class Value, class View>
  static auto like(const char* name, const Tensor& tensor, const View& view) {
    bool same = tensor.rank == int(View::rank());
    for (std::size_t axis = 0; same && axis < View::rank(); ++axis)
      same = tensor.extents[axis] == std::int64_t(view.extent(axis));
    if (!same)
      Impl::fail("PtychographySolver", name, "the shape of what is sought", "another");
    return view_of<Value, int(View::rank()), Space>(tensor);
  }
  template <class View>
  static void copy_in(Queue queue, const char* name, const Tensor& tensor, const View& view) {
    if (tensor.given)
      Kokkos::deep_copy(space_of<backend>(queue), view,
                        like<const typename View::non_const_value_type>(name, tensor, view));
  }
  template <class View>
  static void copy_out(Queue queue, const char* name, const View& view, const Tensor& tensor) {
    if (tensor.given)
      Kokkos::deep_copy(space_of<backend>(queue),
                        like<typename View::non_const_value_type>(name, tensor, view), view);
  }

  PtychographySolver<Space, Real> solver_;
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
std::unique_ptr<SolverPlan> Ptychography<backend, Real>::solver(Queue queue, PtychographyPlan& loss,
                                                                const SolverSettings& settings) {
  PtychographySolverOptions options{.object_rate = settings.object_rate,
                                    .probe_rate = settings.probe_rate,
                                    .regularisation = settings.regularisation,
                                    .projections_first = settings.projections_first,
                                    .position_rate = settings.position_rate,
                                    .position_limit = settings.position_limit};
  options.steps = one_of<PtychographySteps>("PtychographySolver", "steps", settings.steps,
                                            {"adam", "projections", "least_squares"});
  return std::make_unique<Solver>(queue, static_cast<Loss&>(loss).take(), options);
}

template <>
std::unique_ptr<AdamPlan> Ptychography<backend, Real>::adam(Queue queue,
                                                            const std::vector<std::size_t>& sizes,
                                                            double beta1, double beta2, double epsilon) {
  return std::make_unique<Optimiser>(queue, sizes, AdamOptions{beta1, beta2, epsilon});
}

} // namespace Bracewell::Python
