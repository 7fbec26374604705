// SPDX-License-Identifier: MIT
#include "kokkos_arrays.hpp"

#include <bracewell/optimize/adam.hpp>
#include <bracewell/ptychography/probe.hpp>
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
    inputs.factors = array_of<const Real, Space>(tensors.factors);
    inputs.detector_background = array_of<const Real, Space>(tensors.detector_background);
    inputs.coefficients = array_of<const Complex, Space>(tensors.coefficients);
    inputs.relaxation = array_of<const Complex, Space>(tensors.relaxation);
    inputs.slice_shifts = array_of<const double, Space>(tensors.slice_shifts);
    typename Plan::Outputs outputs;
    outputs.loss = array_of<double, Space>(tensors.loss);
    outputs.pattern_losses = array_of<double, Space>(tensors.pattern_losses);
    outputs.object_gradient = array_of<Complex, Space>(tensors.object_gradient);
    outputs.probe_gradient = array_of<Complex, Space>(tensors.probe_gradient);
    outputs.position_gradient = array_of<Real, Space>(tensors.position_gradient);
    outputs.factor_gradient = array_of<Real, Space>(tensors.factor_gradient);
    outputs.background_gradient = array_of<Real, Space>(tensors.background_gradient);
    outputs.coefficient_gradient = array_of<Complex, Space>(tensors.coefficient_gradient);
    outputs.relaxation_gradient = array_of<Complex, Space>(tensors.relaxation_gradient);
    outputs.slice_shift_gradient = array_of<Real, Space>(tensors.slice_shift_gradient);
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

  void set(Queue queue, Part part, const Tensor& tensor) override {
    visit(part, [&](const char* name, const auto& view) { copy_in(queue, name, tensor, view); });
  }
  void get(Queue queue, Part part, const Tensor& tensor) const override {
    visit(part, [&](const char* name, const auto& view) { copy_out(queue, name, view, tensor); });
  }
  void step(Queue queue, const Tensor& subset) override {
    solver_.step(space_of<backend>(queue), array_of<const int, Space>(subset));
  }
  void move_windows(Queue queue) override { solver_.move_windows(space_of<backend>(queue)); }
  void set_rate_factor(double factor) override { solver_.set_rate_factor(factor); }
  void set_object_support(Queue queue, const Tensor& support, double beyond) override {
    solver_.set_object_support(space_of<backend>(queue), array_of<const Real, Space>(support), beyond);
  }
  std::vector<double> losses(Queue queue) const override { return solver_.losses(space_of<backend>(queue)); }

private:
  Solver(Queue queue, const PtychographyShape& shape, Loss::Plan&& loss,
         const PtychographySolverOptions& options)
      : solver_(space_of<backend>(queue), shape, std::move(loss), options) {}

  /// action(its name, its View)
  template <class Action>
  void visit(Part part, const Action& action) const {
    switch (part) {
    case Amplitude:
      return action("amplitude", solver_.amplitude());
    case Phase:
      return action("phase", solver_.phase());
    case Probe:
      return action("probe", solver_.probe());
    case Displacements:
      return action("displacements", solver_.displacements());
    case Coefficients:
      return action("coefficients", solver_.coefficients());
    case Relaxation:
      return action("relaxation", solver_.relaxation());
    case Factors:
      return action("factors", solver_.factors());
    case BackgroundRoots:
      return action("background", solver_.background_roots());
    }
  }

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

class Lens : public AberratedProbePlan {
public:
  Lens(Queue queue, const LensSettings& settings)
      : probe_(space_of<backend>(queue), settings.probe, settings.detector,
               {.wavelength = settings.wavelength,
                .pixel_size = settings.pixel_size,
                .convergence_angle = settings.convergence_angle,
                .cs_to_length = settings.cs_to_length}) {}

  std::size_t memory_bytes() const override { return probe_.memory_bytes(); }

  void evaluate(Queue queue, const Tensor& parameters, const Tensor& probe) override {
    probe_.evaluate(space_of<backend>(queue), array_of<const Real, Space>(parameters),
                    array_of<Complex, Space>(probe));
  }
  void gradients(Queue queue, const Tensor& parameters, const Tensor& probe_gradient,
                 const Tensor& parameter_gradient) override {
    probe_.gradients(space_of<backend>(queue), array_of<const Real, Space>(parameters),
                     array_of<const Complex, Space>(probe_gradient),
                     array_of<Real, Space>(parameter_gradient));
  }

private:
  AberratedProbe<Space, Real> probe_;
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
                                .modes = settings.modes,
                                .slices = static_cast<int>(settings.slice_fresnel_numbers.size()) + 1,
                                .relaxation = settings.relaxation};
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
  options.slice_fresnel_numbers = settings.slice_fresnel_numbers;
  options.pattern_factors = settings.pattern_factors;
  options.detector_background = settings.detector_background;
  options.refine_slice_shifts = settings.refine_slice_shifts;
  options.reduced_grid = settings.reduced_grid;
  for (const auto& pair : settings.slice_shifts) {
    if (pair.size() != 2)
      Impl::fail("PtychographyLoss", "slice_shifts", "pairs of numbers",
                 std::to_string(pair.size()) + " numbers");
    options.slice_shifts.push_back({pair[0], pair[1]});
  }
  return std::make_unique<Loss>(queue, positions, shape, options);
}

template <>
bool Ptychography<backend, Real>::few_counts(Queue queue, const Tensor& patterns, const Tensor& weights) {
  return choose_pattern_loss(space_of<backend>(queue), view_of<const Real, 3, Space>(patterns),
                             array_of<const Real, Space>(weights)) == PatternLoss::Poisson;
}

template <>
std::unique_ptr<SolverPlan> Ptychography<backend, Real>::solver(Queue queue, PtychographyPlan& loss,
                                                                const SolverSettings& settings) {
  PtychographySolverOptions options{.object_rate = settings.object_rate,
                                    .probe_rate = settings.probe_rate,
                                    .regularisation = settings.regularisation,
                                    .projections_first = settings.projections_first,
                                    .position_rate = settings.position_rate,
                                    .position_limit = settings.position_limit,
                                    .coefficient_rate = settings.coefficient_rate,
                                    .relaxation_rate = settings.relaxation_rate,
                                    .factor_rate = settings.factor_rate,
                                    .background_rate = settings.background_rate};
  if (!settings.amplitude_limits.empty()) {
    if (settings.amplitude_limits.size() != 2)
      Impl::fail("PtychographySolver", "amplitude_limits", "two numbers",
                 std::to_string(settings.amplitude_limits.size()));
    options.amplitude_limits = {settings.amplitude_limits[0], settings.amplitude_limits[1]};
  }
  options.probe_support = settings.probe_support;
  options.total_variation = settings.total_variation;
  options.position_moves = one_of<PositionMoves>("PtychographySolver", "position_moves",
                                                 settings.position_moves, {"single", "affine", "both"});
  options.steps = one_of<PtychographySteps>("PtychographySolver", "steps", settings.steps,
                                            {"adam", "projections", "least_squares"});
  return std::make_unique<Solver>(queue, static_cast<Loss&>(loss).take(), options);
}

template <>
std::unique_ptr<AberratedProbePlan> Ptychography<backend, Real>::lens(Queue queue,
                                                                      const LensSettings& settings) {
  return std::make_unique<Lens>(queue, settings);
}

template <>
std::unique_ptr<AdamPlan> Ptychography<backend, Real>::adam(Queue queue,
                                                            const std::vector<std::size_t>& sizes,
                                                            double beta1, double beta2, double epsilon) {
  return std::make_unique<Optimiser>(queue, sizes, AdamOptions{beta1, beta2, epsilon});
}

} // namespace Bracewell::Python
