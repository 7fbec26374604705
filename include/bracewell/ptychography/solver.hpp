// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/optimize/adam.hpp>
#include <bracewell/optimize/total_variation.hpp>
#include <bracewell/ptychography/compare.hpp>
#include <bracewell/ptychography/detail/check_loss.hpp>
#include <bracewell/ptychography/detail/steps/check_solver.hpp>
#include <bracewell/ptychography/detail/steps/modulus_steps.hpp>
#include <bracewell/ptychography/detail/steps/refined_positions.hpp>
#include <bracewell/ptychography/inputs.hpp>
#include <bracewell/ptychography/object.hpp>
#include <bracewell/ptychography/options.hpp>
#include <bracewell/ptychography/pattern_batches.hpp>
#include <bracewell/ptychography/probe.hpp>
#include <bracewell/ptychography/ptychography_loss.hpp>
#include <bracewell/ptychography/solver_options.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace Bracewell {

/// Reconstruction by PtychographySteps: Adam or projections. Adam goes along the exact gradients of PtychographyLoss. It
/// moves the object's amplitude and phase, the probe's pixels or aberrations, the positions, and all other unknowns of the
/// loss. The solver owns the Views of the unknowns. The caller may read and set them between steps. All but the factors are
/// zero at first.
/// @code
/// PtychographySolver<Space, float> solver(space, shape, std::move(loss), {.probe_rate = 0});
/// Kokkos::deep_copy(space, solver.amplitude(), 1.0f); Kokkos::deep_copy(space, solver.probe(), probe);
/// for (int i = 0; i < 100; ++i) solver.step(space);
/// @endcode
/// Movable; one call at a time. A step launches kernels on the instance that it is given and neither waits
/// nor allocates.
template <class ExecutionSpace, class Real, class Storage = Real>
class PtychographySolver {
  using Memory = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<Real>;
  using Positions = Impl::RefinedPositions<ExecutionSpace, Real>;
  template <class Value>
  using View = Kokkos::View<Value, Kokkos::LayoutRight, Memory>;

public:
  /// What is minimised.
  using Loss = PtychographyLoss<ExecutionSpace, Real, Storage>;

  /// @param shape  as the loss was made with
  /// @param loss   with its patterns set
  /// @throws Error on another shape, rates that are negative or not finite, options of Adam or a regularisation out of
  ///   range, a history of no steps, optics that are not positive, and optics with several modes, relaxation, factors or a
  ///   background; with steps other than Adam also on optics, on several slices and on another loss than the amplitude's on
  ///   patterns as counted
  PtychographySolver(const ExecutionSpace& space, const PtychographyShape& shape, Loss loss,
                     const PtychographySolverOptions& options = {});

  /// The loss that suits patterns as counted, with them set: choose_pattern_loss says which. Hand it to the constructor.
  /// @param positions  as PtychographyLoss takes them
  /// @param patterns   View of Real [N, n, n] in the memory of the space
  /// @param weights    View of Real [n, n] or [N, n, n] of 0 and 1: a mask; empty: all pixels count
  /// @param options    of the loss; its loss, scale and weights are replaced
  /// @throws Error as PtychographyLoss
  template <class PositionsView, class PatternsView>
  static Loss loss_of_counts(const ExecutionSpace& space, const PtychographyShape& shape,
                             const PositionsView& positions, const PatternsView& patterns,
                             const Array<const Real, Memory>& weights = {},
                             PtychographyOptions options = {}) {
    options.loss = choose_pattern_loss(space, patterns, weights);
    options.scale = PatternScale::None;
    options.weights = weights ? PixelWeights::Mask : PixelWeights::None;
    Loss loss(space, shape, positions, options);
    loss.set_patterns(space, 0, patterns, weights);
    return loss;
  }

  PtychographySolver(PtychographySolver&&) noexcept; ///< The other can only be destroyed or assigned to.
  PtychographySolver& operator=(PtychographySolver&&) noexcept; ///< The same.
  ~PtychographySolver();

  /// [rows, columns]; of several slices [slices rows, columns], one below the other.
  const View<Real**>& amplitude() const { return amplitude_; }
  const View<Real**>& phase() const { return phase_; } ///< the same shape, radians
  /// [modes, m, m]. With optics it is the probe of the parameters before the latest step.
  const View<Complex***>& probe() const { return probe_; }
  const View<Real*>& aberrations() const { return aberrations_; } ///< [5], see ProbeParameter
  /// [N, 2], pixels that the positions were moved by; empty without options.position_rate. With PositionMoves::Single their affine
  /// part is zero. Patterns do not show a common shift of object and positions. They hardly show a scale, shear or rotation of
  /// the whole scan, because the probe's curvature and the object follow it. The affine part is a function of the positions
  /// at the latest move_windows, or of the first positions.
  const View<Real**>& displacements() const { return positions_.displacements(); }
  /// [N, C] and [C, m, m] of shape.relaxation; empty without it. The first mode of the probe of pattern j is the common first mode
  /// plus sum_c a_jc v_c. Set one of the two to values other than zero, or both stay zero: noise of the probe's size for the
  /// modes v, for instance, and zero for the coefficients a. The solver keeps neither the modes orthogonal nor the means of the
  /// coefficients at zero.
  const View<Complex**>& coefficients() const { return coefficients_; }
  const View<Complex***>& relaxation() const { return relaxation_; } ///< see coefficients()
  /// [N] factors of the intensities of patterns, with options.pattern_factors of the loss. They start at 1, and are at least 0.01.
  const View<Real*>& factors() const { return factors_; }
  /// [n, n], roots of the background per detector pixel, with options.detector_background of the loss. As squares, backgrounds are
  /// not negative. A root of zero stays zero, so set the others.
  const View<Real**>& background_roots() const { return background_roots_; }
  /// [2], step lengths of object and probe in the latest step, with PtychographySteps::LeastSquares; otherwise empty or 0.
  View<const double*> step_lengths() const;
  /// What is minimised.
  const Loss& loss() const { return loss_; }

  /// Sets what is known outside of a support: after every later step the object there is `beyond`, with a phase of zero.
  /// @param support  View of Real [rows, columns]: positive where the object is to be found. Copied
  /// @param beyond   amplitude outside: 1 for nothing in the beam, 0 for an object that stands alone
  /// @throws Error on another shape and an amplitude that is negative or not finite
  void set_object_support(const ExecutionSpace& space, const Array<const Real, Memory>& support,
                          double beyond = 1);

  /// How solvers in several processes, each with a part of the patterns, take the same steps. Loss and gradients of the
  /// parts are summed; what is sought starts and stays equal in all. A process has the whole object, or the part of it that
  /// its patterns reach, with positions in that part.
  struct Reduction {
    std::int64_t patterns; ///< of all processes
    /// Replaces the elements of the Views by their sums over processes, after what the instance has to do before:
    /// Communicator::sum, of parts of the object Overlaps::sum, or others of the kind. The numbers are the loss, or what
    /// positions of all have in common, which is summed alone, once more in a step. Gradients that are not needed have no
    /// elements.
    std::function<void(const ExecutionSpace&, const View<double*>& numbers,
                       const View<Complex**>& object_gradient, const View<Complex***>& probe_gradient)>
        sum;
    std::array<std::int64_t, 2> origin =
        {}; ///< row and column of the whole object where this process' begins
  };
  /// Makes all later steps and evaluations collective: every process makes the same calls. With options.position_rate > 0
  /// this call is collective, too. Every process moves the positions of its own patterns.
  /// @throws Error on fewer patterns than this process has, no sum, steps other than Adam, also before it, several slices,
  ///   relaxation, a background and options.total_variation
  void set_reduction(const ExecutionSpace& space, Reduction reduction);

  /// One iteration: loss and gradients of all patterns or of a subset, then the step.
  /// @param subset   indices of patterns, each at most once, see PatternBatches and PtychographyLoss::evaluate. Of
  ///   no patterns there is no step
  /// @param of_all  with a reduction, how many patterns the subsets of all processes have; 0: all patterns
  /// @throws Error on a subset of more patterns than there are, and on hosts on a loss that is not a finite number, before
  ///   anything moves. On devices, which a step does not wait for, losses() shows such a loss
  void step(const ExecutionSpace& space, const Array<const int, Memory>& subset = {},
            std::int64_t of_all = 0);

  /// Loss of the present object and probe, without a step.
  /// @param loss    View of double, one number; overwritten
  /// @param of_all  as for step()
  /// @throws Error on other shapes, and a loss that shares memory with the subset or what is sought
  void evaluate(const ExecutionSpace& space, const Array<double, Memory>& loss,
                const Array<const int, Memory>& subset = {}, std::int64_t of_all = 0);

  /// Moves the windows from which positions have gone too far (PtychographyLoss::move_windows); once in a pass over
  /// the patterns is enough. Waits. With a reduction all processes call it.
  void move_windows(const ExecutionSpace& space);

  /// Lets the first patterns of the next step set out from the host (PtychographyLoss::prefetch).
  void prefetch(const Array<const int, Memory>& subset = {}) const { loss_.prefetch(subset); }

  /// Multiplies the learning rates of later steps by a factor, which is 1 at first.
  /// @throws Error on a factor that is negative or not finite
  void set_rate_factor(double factor);

  /// All that further steps depend on besides loss and options, on the host: to go on another time.
  struct State {
    std::vector<Real> amplitude = {};        ///< [slices, rows, columns]
    std::vector<Real> phase = {};            ///< [slices, rows, columns]
    std::vector<Complex> probe = {};         ///< [modes, m, m]
    std::vector<Real> aberrations = {};      ///< [5]
    std::vector<Real> displacements = {};    ///< [N, 2], or none
    std::vector<Complex> coefficients = {};  ///< [N, C], or none
    std::vector<Complex> relaxation = {};    ///< [C, m, m], or none
    std::vector<Real> factors = {};          ///< [N], or none
    std::vector<Real> background_roots = {}; ///< [n, n], or none
    std::vector<int> windows = {};           ///< [N, 2] with displacements, see PtychographyLoss::windows
    typename Adam<ExecutionSpace, Real>::State adam = {}; ///< averages and count of steps
    std::vector<double> losses = {};                      ///< as losses() gives them
  };
  /// The present state. Waits for the space.
  State state(const ExecutionSpace& space) const;
  /// Goes on from a state of a solver of the same sizes and options: the next step is the one that followed
  /// it. The rate factor is no part of it. Waits for the space.
  /// @throws Error on a state of other sizes, with losses of more steps than there were, or with windows that leave the
  ///   object
  void restore(const ExecutionSpace& space, const State& state);

  /// Steps so far.
  std::int64_t steps() const { return steps_; }

  /// Losses before each of the latest steps, oldest first, as many as were kept. Waits for the space.
  std::vector<double> losses(const ExecutionSpace& space) const;

  /// Bytes that the solver holds, its loss and the measured patterns included.
  std::size_t memory_bytes() const;

  /// What memory_bytes() of a solver would be, of a loss of these positions and options.
  /// @throws Error as PtychographyLoss
  static std::size_t bytes_needed(const ExecutionSpace& space, const PtychographyShape& shape,
                                  const Impl::HostPositions& positions,
                                  const PtychographyOptions& of_loss = {},
                                  const PtychographySolverOptions& options = {});

private:
  template <class Value, class... Extents>
  static View<Value> zeros(const ExecutionSpace& space, const char* name, Extents... extents) {
    return Impl::device_zeros<Value>(space, {"Bracewell::PtychographySolver::", name}, extents...);
  }

  /// visit(values of a state, view of the same) for all that is sought.
  template <class SomeState, class Visit>
  void for_each_value(SomeState& state, const Visit& visit) const {
    visit(state.amplitude, amplitude_);
    visit(state.phase, phase_);
    visit(state.probe, probe_);
    visit(state.aberrations, aberrations_);
    visit(state.displacements, displacements());
    visit(state.coefficients, coefficients_);
    visit(state.relaxation, relaxation_);
    visit(state.factors, factors_);
    visit(state.background_roots, background_roots_);
  }

  bool refines_positions() const { return options_.position_rate > 0; }

  /// The slices of an object [slices rows, columns].
  template <class Value>
  Array<Value, Memory> slices(const View<Complex**>& object) const {
    const auto& shape = loss_.sizes();
    if (shape.slices == 1)
      return object;
    return Impl::array_of<Memory>(object.data(), shape.slices, shape.object[0], shape.object[1]);
  }

  /// Whether object and probe take a step that is not Adam's next.
  bool projects() const {
    return modulus_steps_ &&
           (options_.steps != PtychographySteps::Adam || steps_ < options_.projections_first);
  }

  /// Of the positions of all processes.
  void find_common_moves(const ExecutionSpace& space) {
    positions_.find_common_moves(space, reduction_ ? reduction_->origin : std::array<std::int64_t, 2>{},
                                 sum_of_numbers());
  }

  typename Positions::Sum sum_of_numbers() const {
    if (!reduction_)
      return {};
    return [this](const ExecutionSpace& space, const View<double*>& numbers) {
      reduction_->sum(space, numbers, View<Complex**>(), View<Complex***>());
    };
  }

  View<double*> loss_of_step(std::int64_t step) const {
    return View<double*>(history_.data() + step % options_.history, 1);
  }

  std::int64_t patterns_of(const Array<const int, Memory>& subset, std::int64_t of_all) const {
    if (reduction_)
      return of_all > 0 ? of_all : reduction_->patterns;
    return subset ? subset.size() : loss_.count();
  }

  void evaluate(const ExecutionSpace& space, const PtychographyOutputs<Real, Memory>& outputs,
                const Array<const int, Memory>& subset, std::int64_t mean_of) {
    if (lens_)
      lens_->evaluate(space, aberrations_, probe_);
    complex_object(space, amplitude_, phase_, object_);
    typename Loss::Inputs inputs{
        .object = slices<const Complex>(object_), .probe = probe_, .mean_of = mean_of};
    if (refines_positions()) {
      positions_.move(space);
      inputs.positions = positions_.positions();
    }
    if (coefficients_.size() > 0)
      inputs.coefficients = coefficients_, inputs.relaxation = relaxation_;
    if (factors_.size() > 0)
      inputs.factors = factors_;
    if (background_.size() > 0) {
      Impl::launch_kernel("Bracewell::PtychographySolver::background",
                          Kokkos::RangePolicy<ExecutionSpace>(space, 0, background_.size()),
                          Impl::SquareRoots<Real>{background_roots_.data(), background_.data()});
      inputs.detector_background = background_;
    }
    loss_.evaluate(space, inputs, outputs, subset);
    if (reduction_)
      reduction_->sum(space, View<double*>(outputs.loss.data, 1),
                      outputs.object_gradient ? object_gradient_ : View<Complex**>(),
                      outputs.probe_gradient ? probe_gradient_ : View<Complex***>());
  }

  /// The step of object and probe that is not Adam's.
  void take_modulus_step(const ExecutionSpace& space, const Array<const int, Memory>& subset,
                         std::int64_t used) {
    // The gradient of a modulus's square is twice the difference, and that of a mean; transforms of the far field are
    // not normalised, those of the near field are.
    const PtychographyShape& shape = loss_.sizes();
    const double near = loss_.options().fresnel_number ? double(shape.detector) * shape.detector : 1;
    // Rates of Adam are in other units: whole steps come before it.
    const bool first = options_.steps == PtychographySteps::Adam;
    const double object_rate = first ? double(options_.object_rate > 0) : options_.object_rate,
                 probe_rate = first ? double(options_.probe_rate > 0) : options_.probe_rate;
    modulus_steps_->move(
        space, 0.5 * double(used) * near, object_, object_gradient_, amplitude_, phase_,
        rate_factor_ * object_rate, probe_, probe_gradient_, rate_factor_ * probe_rate,
        [&](const auto& a, const auto& b, const auto& sum) { loss_.overlap(space, a, b, sum, subset); },
        [&](const auto& object, const auto& sum) { loss_.transmission(space, object, sum, subset); });
  }

  /// What goes by Adam.
  void update(const ExecutionSpace& space) {
    using Parameters = AdamParameters<Real, Memory>;
    const double object_rate = rate_factor_ * options_.object_rate;
    std::vector<Parameters> all;
    const bool adam = options_.steps == PtychographySteps::Adam;
    if (adam)
      all = {{amplitude_, amplitude_gradient_, object_rate}, {phase_, phase_gradient_, object_rate}};
    const auto one = [](const View<Real*>& view, int c) { return View<Real*>(view.data() + c, 1); };
    if (options_.optics)
      for (int c = 0; c < probe_parameter_count; ++c)
        all.push_back({one(aberrations_, c), one(aberration_gradients_, c),
                       rate_factor_ * options_.aberration_rates[static_cast<std::size_t>(c)]});
    else if (adam && Impl::trains_probe(options_))
      all.push_back({probe_, probe_gradient_, rate_factor_ * options_.probe_rate});
    if (refines_positions())
      all.push_back({displacements(), positions_.gradient(), rate_factor_ * options_.position_rate});
    if (coefficients_.size() > 0) {
      all.push_back({coefficients_, coefficient_gradient_, rate_factor_ * options_.coefficient_rate});
      all.push_back({relaxation_, relaxation_gradient_, rate_factor_ * options_.relaxation_rate});
    }
    if (factors_.size() > 0)
      all.push_back({factors_, factor_gradient_, rate_factor_ * options_.factor_rate});
    if (background_.size() > 0) {
      Impl::launch_kernel("Bracewell::PtychographySolver::background_gradient",
                          Kokkos::RangePolicy<ExecutionSpace>(space, 0, background_.size()),
                          Impl::RootGradients<Real>{background_roots_.data(), background_gradient_.data()});
      all.push_back({background_roots_, background_gradient_, rate_factor_ * options_.background_rate});
    }
    if (adam_)
      adam_->step(space, all);
    if (factors_.size() > 0)
      Impl::launch_kernel("Bracewell::PtychographySolver::limit_factors",
                          Kokkos::RangePolicy<ExecutionSpace>(space, 0, factors_.size()),
                          Impl::LimitFactors<Real>{factors_.data()});
    if (refines_positions())
      positions_.limit(space, options_.position_limit, options_.position_moves, sum_of_numbers());
  }

  /// What is known of object and probe.
  void constrain(const ExecutionSpace& space) {
    using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
    const auto size = static_cast<std::int64_t>(amplitude_.size());
    if (const double weight = options_.total_variation * options_.object_rate * rate_factor_; weight > 0)
      for (const auto& part : {amplitude_, phase_}) {
        constexpr int few = 5; // from zero: steps depend on what a state has, and on nothing else
        variation_->reset(space);
        variation_->smooth(space, part, weight, few);
      }
    const auto& limits = options_.amplitude_limits;
    if (Impl::is_finite(limits[0]) || Impl::is_finite(limits[1]))
      Impl::launch_kernel("Bracewell::PtychographySolver::limit_amplitudes", Range(space, 0, size),
                          Impl::LimitAmplitudes<Real>{amplitude_.data(), static_cast<Real>(limits[0]),
                                                      static_cast<Real>(limits[1])});
    if (support_.size() > 0)
      Impl::launch_kernel("Bracewell::PtychographySolver::limit_object", Range(space, 0, size),
                          Impl::LimitObject<Real>{support_.data(), std::int64_t(support_.size()),
                                                  amplitude_.data(), phase_.data(),
                                                  static_cast<Real>(beyond_support_)});
    if (!options_.probe_support)
      return;
    const double radius = *options_.probe_support;
    for (const auto& modes : {probe_, relaxation_})
      Impl::launch_kernel(
          "Bracewell::PtychographySolver::limit_probe", Range(space, 0, std::int64_t(modes.size())),
          Impl::LimitProbe<Real>{modes.data(), std::int64_t(loss_.sizes().probe), radius * radius});
  }

  PtychographySolverOptions options_;
  Loss loss_;
  std::optional<Adam<ExecutionSpace, Real>> adam_;
  std::optional<Impl::ModulusSteps<ExecutionSpace, Real>> modulus_steps_;
  std::optional<AberratedProbe<ExecutionSpace, Real>> lens_;
  View<Real**> amplitude_, phase_, amplitude_gradient_, phase_gradient_;
  View<Complex**> object_, object_gradient_;
  View<Complex***> probe_, probe_gradient_;
  View<Real*> aberrations_, aberration_gradients_;
  View<Complex**> coefficients_, coefficient_gradient_;
  View<Complex***> relaxation_, relaxation_gradient_;
  View<Real*> factors_, factor_gradient_;
  View<Real**> background_roots_, background_, background_gradient_;
  View<Real**> support_; ///< of the object, or none
  double beyond_support_ = 1;
  std::optional<TotalVariation<ExecutionSpace, Real>> variation_; ///< with options.total_variation
  View<double*> history_;
  Positions positions_; ///< with options.position_rate
  std::optional<Reduction> reduction_;
  std::int64_t steps_ = 0;
  double rate_factor_ = 1;
};

template <class ExecutionSpace, class Real, class Storage>
auto PtychographySolver<ExecutionSpace, Real, Storage>::step_lengths() const -> View<const double*> {
  return modulus_steps_ ? View<const double*>(modulus_steps_->lengths()) : View<const double*>();
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographySolver<ExecutionSpace, Real, Storage>::move_windows(const ExecutionSpace& space) {
  if (!refines_positions())
    return;
  find_common_moves(space); // which moves the positions
  loss_.move_windows(space, positions_.positions());
}

template <class ExecutionSpace, class Real, class Storage>
std::size_t PtychographySolver<ExecutionSpace, Real, Storage>::memory_bytes() const {
  return loss_.memory_bytes() + (adam_ ? adam_->memory_bytes() : 0) + (lens_ ? lens_->memory_bytes() : 0) +
         (modulus_steps_ ? modulus_steps_->memory_bytes() : 0) + positions_.memory_bytes() +
         (variation_ ? variation_->memory_bytes() : 0) + Impl::bytes_of(support_) +
         Impl::bytes_of(amplitude_, phase_, amplitude_gradient_, phase_gradient_, object_, object_gradient_,
                        probe_, probe_gradient_, aberrations_, aberration_gradients_, coefficients_,
                        coefficient_gradient_, relaxation_, relaxation_gradient_, factors_, factor_gradient_,
                        background_roots_, background_, background_gradient_, history_);
}

template <class ExecutionSpace, class Real, class Storage>
PtychographySolver<ExecutionSpace, Real, Storage>::PtychographySolver(PtychographySolver&&) noexcept =
    default;

template <class ExecutionSpace, class Real, class Storage>
auto PtychographySolver<ExecutionSpace, Real, Storage>::operator=(PtychographySolver&&) noexcept
    -> PtychographySolver& = default;

template <class ExecutionSpace, class Real, class Storage>
PtychographySolver<ExecutionSpace, Real, Storage>::~PtychographySolver() = default;

template <class ExecutionSpace, class Real, class Storage>
PtychographySolver<ExecutionSpace, Real, Storage>::PtychographySolver(
    const ExecutionSpace& space, const PtychographyShape& shape, Loss loss,
    const PtychographySolverOptions& options)
    : options_(Impl::check_solver(shape, loss, options)), loss_(std::move(loss)),
      amplitude_(zeros<Real**>(space, "amplitude", shape.slices * shape.object[0], shape.object[1])),
      phase_(zeros<Real**>(space, "phase", shape.slices * shape.object[0], shape.object[1])),
      object_(zeros<Complex**>(space, "object", shape.slices * shape.object[0], shape.object[1])),
      object_gradient_(
          zeros<Complex**>(space, "object_gradient", shape.slices * shape.object[0], shape.object[1])),
      probe_(zeros<Complex***>(space, "probe", shape.modes, shape.probe, shape.probe)),
      aberrations_(zeros<Real*>(space, "aberrations", probe_parameter_count)),
      aberration_gradients_(zeros<Real*>(space, "aberration_gradients", probe_parameter_count)),
      history_(zeros<double*>(space, "losses", options.history)) {
  if (const auto adams = Impl::solver_sizes(shape, loss_.options(), loss_.count(), options); !adams.empty())
    adam_.emplace(space, adams, options.adam);
  const bool adam = options.steps == PtychographySteps::Adam;
  if (adam) {
    const std::int64_t rows = shape.slices * shape.object[0];
    amplitude_gradient_ = zeros<Real**>(space, "amplitude_gradient", rows, shape.object[1]);
    phase_gradient_ = zeros<Real**>(space, "phase_gradient", rows, shape.object[1]);
  }
  if (!adam || options.projections_first > 0)
    modulus_steps_.emplace(space, shape, options.regularisation,
                           options.steps == PtychographySteps::LeastSquares);
  if (options.total_variation > 0)
    variation_.emplace(space, std::array<std::int64_t, 3>{shape.slices, shape.object[0], shape.object[1]});
  if (refines_positions()) {
    positions_ = Positions(space, loss_.count());
    loss_.positions(space, positions_.first());
    find_common_moves(space);
  }
  if (Impl::trains_probe(options_))
    probe_gradient_ = zeros<Complex***>(space, "probe_gradient", shape.modes, shape.probe, shape.probe);
  if (options.optics)
    lens_.emplace(space, shape.probe, shape.detector, *options.optics);
  if (const std::int64_t c = shape.relaxation, m = shape.probe; c > 0) {
    coefficients_ = zeros<Complex**>(space, "coefficients", loss_.count(), c);
    coefficient_gradient_ = zeros<Complex**>(space, "coefficient_gradient", loss_.count(), c);
    relaxation_ = zeros<Complex***>(space, "relaxation", c, m, m);
    relaxation_gradient_ = zeros<Complex***>(space, "relaxation_gradient", c, m, m);
  }
  if (loss_.options().pattern_factors) {
    factors_ = zeros<Real*>(space, "factors", loss_.count());
    factor_gradient_ = zeros<Real*>(space, "factor_gradient", loss_.count());
    Impl::fill(space, "Bracewell::PtychographySolver::first_factors", factors_.data(), loss_.count(),
               Real(1));
  }
  if (const std::int64_t n = shape.detector; loss_.options().detector_background) {
    background_roots_ = zeros<Real**>(space, "background_roots", n, n);
    background_ = zeros<Real**>(space, "background", n, n);
    background_gradient_ = zeros<Real**>(space, "background_gradient", n, n);
  }
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographySolver<ExecutionSpace, Real, Storage>::set_reduction(const ExecutionSpace& space,
                                                                      Reduction reduction) {
  const Impl::Arguments check{"PtychographySolver::set_reduction"};
  check.at_least("reduction.patterns", reduction.patterns, loss_.count());
  check.require(bool(reduction.sum), "reduction.sum", "a function", "none");
  check.require(!modulus_steps_, "options.steps",
                "PtychographySteps::Adam where patterns are in several processes", "others");
  const auto& shape = loss_.sizes();
  check.require(shape.slices == 1 && shape.relaxation == 0 && !loss_.options().detector_background, "loss",
                "one slice, no relaxation and no background where patterns are in several processes",
                "others");
  if (options_.total_variation != 0)
    check.refuse("options.total_variation", "0 where patterns are in several processes, found %.6g",
                 options_.total_variation);
  reduction_ = std::move(reduction);
  if (refines_positions())
    find_common_moves(space);
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographySolver<ExecutionSpace, Real, Storage>::step(const ExecutionSpace& space,
                                                             const Array<const int, Memory>& subset,
                                                             std::int64_t of_all) {
  const Impl::Arguments check{"PtychographySolver::step"};
  Impl::check_subset(check, subset, loss_.count());
  const std::int64_t used = patterns_of(subset, of_all);
  if (used == 0)
    return;
  Kokkos::Profiling::ScopedRegion region("Bracewell::PtychographySolver::step");
  PtychographyOutputs<Real, Memory> outputs{.loss = loss_of_step(steps_)};
  if (options_.object_rate > 0)
    outputs.object_gradient = slices<Complex>(object_gradient_);
  if (Impl::trains_probe(options_))
    outputs.probe_gradient = probe_gradient_;
  if (refines_positions())
    outputs.position_gradient = positions_.gradient();
  if (coefficients_.size() > 0) {
    outputs.coefficient_gradient = coefficient_gradient_;
    outputs.relaxation_gradient = relaxation_gradient_;
  }
  if (factors_.size() > 0)
    outputs.factor_gradient = factor_gradient_;
  if (background_.size() > 0)
    outputs.background_gradient = background_gradient_;
  evaluate(space, outputs, subset, used);
  if constexpr (Impl::is_host<ExecutionSpace>)
    if (!Impl::is_finite(*outputs.loss.data))
      check.refuse("loss",
                   "a finite number; values are beyond the precision, or rates are too high, found %.6g",
                   *outputs.loss.data);
  if (options_.object_rate > 0 && !projects())
    complex_object_gradients(space, amplitude_, phase_, object_gradient_,
                             {.amplitude = amplitude_gradient_, .phase = phase_gradient_});
  if (lens_ && Impl::trains_probe(options_))
    lens_->gradients(space, aberrations_, probe_gradient_, aberration_gradients_);
  if (projects())
    take_modulus_step(space, subset, used);
  if (steps_ >= options_.projections_first)
    update(space);
  constrain(space);
  ++steps_;
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographySolver<ExecutionSpace, Real, Storage>::set_object_support(
    const ExecutionSpace& space, const Array<const Real, Memory>& support, double beyond) {
  const Impl::Arguments check{"PtychographySolver::set_object_support"};
  const auto& [rows, columns] = loss_.sizes().object;
  check.shape("support", support, {rows, columns});
  check.not_negative("beyond", beyond);
  support_ = zeros<Real**>(space, "support", rows, columns);
  Impl::copy_padded(space, "Bracewell::PtychographySolver::support", support.data, support.size(),
                    support_.data(), support.size());
  beyond_support_ = beyond;
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographySolver<ExecutionSpace, Real, Storage>::evaluate(const ExecutionSpace& space,
                                                                 const Array<double, Memory>& loss,
                                                                 const Array<const int, Memory>& subset,
                                                                 std::int64_t of_all) {
  const Impl::Arguments check{"PtychographySolver::evaluate"};
  check.given("loss", loss);
  Impl::check_one_number(check, "loss", loss);
  Impl::check_subset(check, subset, loss_.count());
  using Reals = Array<Real, Memory>;
  check.disjoint({{"loss", loss}}, {{"subset", subset},
                                    {"amplitude()", Reals(amplitude_)},
                                    {"phase()", Reals(phase_)},
                                    {"probe()", Array<Complex, Memory>(probe_)},
                                    {"aberrations()", Reals(aberrations_)},
                                    {"displacements()", Reals(displacements())},
                                    {"coefficients()", Array<Complex, Memory>(coefficients_)},
                                    {"relaxation()", Array<Complex, Memory>(relaxation_)},
                                    {"factors()", Reals(factors_)},
                                    {"background_roots()", Reals(background_roots_)}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::PtychographySolver::evaluate");
  evaluate(space, PtychographyOutputs<Real, Memory>{.loss = loss}, subset, patterns_of(subset, of_all));
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographySolver<ExecutionSpace, Real, Storage>::set_rate_factor(double factor) {
  const Impl::Arguments check{"PtychographySolver::set_rate_factor"};
  if (!(factor >= 0 && factor <= 1e30))
    check.refuse("factor", "a finite number >= 0, found %.6g", factor);
  rate_factor_ = factor;
}

template <class ExecutionSpace, class Real, class Storage>
auto PtychographySolver<ExecutionSpace, Real, Storage>::state(const ExecutionSpace& space) const -> State {
  State state{.losses = losses(space)};
  if (adam_)
    state.adam = adam_->state(space);
  state.adam.steps = steps_;
  for_each_value(state, [&](auto& kept, const auto& view) {
    kept.resize(view.size());
    Impl::copy_to_host(space, view.data(), view.size(), kept.data());
  });
  space.fence("Bracewell::PtychographySolver::state");
  if (refines_positions())
    state.windows = loss_.windows(space);
  return state;
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographySolver<ExecutionSpace, Real, Storage>::restore(const ExecutionSpace& space,
                                                                const State& state) {
  const Impl::Arguments check{"PtychographySolver::restore"};
  for_each_value(state, [&](const auto& kept, const auto& view) {
    if (kept.size() != view.size())
      check.refuse("state", "%zu values, found %zu", view.size(), kept.size());
  });
  check.at_least<std::int64_t>("state.adam.steps", state.adam.steps, 0);
  const std::int64_t steps = state.adam.steps, kept_losses = std::min(steps, options_.history);
  if (static_cast<std::int64_t>(state.losses.size()) != kept_losses)
    check.refuse("state", "%lld losses, found %zu", static_cast<long long>(kept_losses), state.losses.size());
  if (adam_) {
    auto of_adam = state.adam;
    of_adam.steps = std::max<std::int64_t>(0, steps - options_.projections_first);
    adam_->restore(space, of_adam);
  }
  for_each_value(state, [&](const auto& kept, const auto& view) {
    Impl::copy_to_device(space, kept.data(), kept.size(), view.data());
  });
  std::vector<double> ring(history_.size());
  for (std::int64_t i = 0; i < kept_losses; ++i)
    ring[static_cast<std::size_t>((steps - kept_losses + i) % options_.history)] =
        state.losses[static_cast<std::size_t>(i)];
  Impl::copy_to_device(space, ring.data(), ring.size(), history_.data());
  space.fence("Bracewell::PtychographySolver::restore"); // the host's copies may go
  steps_ = steps;
  if (refines_positions()) {
    positions_.move(space);
    loss_.set_windows(space, state.windows, positions_.positions());
  }
}

template <class ExecutionSpace, class Real, class Storage>
std::vector<double>
PtychographySolver<ExecutionSpace, Real, Storage>::losses(const ExecutionSpace& space) const {
  const std::int64_t kept = std::min(steps_, options_.history);
  std::vector<double> ring(history_.size());
  Impl::copy_to_host(space, history_.data(), ring.size(), ring.data());
  space.fence("Bracewell::PtychographySolver::losses");
  std::vector<double> losses;
  for (std::int64_t step = steps_ - kept; step < steps_; ++step)
    losses.push_back(ring[static_cast<std::size_t>(step % options_.history)]);
  return losses;
}

template <class ExecutionSpace, class Real, class Storage>
std::size_t PtychographySolver<ExecutionSpace, Real, Storage>::bytes_needed(
    const ExecutionSpace& space, const PtychographyShape& shape, const Impl::HostPositions& positions,
    const PtychographyOptions& of_loss, const PtychographySolverOptions& options) {
  const auto count = static_cast<std::size_t>(positions.count),
             object = static_cast<std::size_t>(shape.slices) * static_cast<std::size_t>(shape.object[0]) *
                      static_cast<std::size_t>(shape.object[1]),
             probe = static_cast<std::size_t>(shape.modes) * static_cast<std::size_t>(shape.probe) *
                     static_cast<std::size_t>(shape.probe),
             probes = Impl::trains_probe(options) ? std::size_t(2) : std::size_t(1);
  const bool adam = options.steps == PtychographySteps::Adam;
  const auto adams = Impl::solver_sizes(shape, of_loss, static_cast<std::int64_t>(count), options);
  std::size_t bytes =
      Loss::bytes_needed(space, shape, positions, of_loss) +
      sizeof(Real) * ((adam ? 8 : 6) * object + 2 * probes * probe + 2 * probe_parameter_count) +
      sizeof(double) * static_cast<std::size_t>(options.history);
  const auto window = static_cast<std::size_t>(shape.probe) * static_cast<std::size_t>(shape.probe);
  bytes += 2 * sizeof(Complex) * static_cast<std::size_t>(shape.relaxation) * (count + window);
  if (of_loss.pattern_factors)
    bytes += 2 * sizeof(Real) * count;
  if (of_loss.detector_background)
    bytes += 3 * sizeof(Real) * static_cast<std::size_t>(shape.detector) *
             static_cast<std::size_t>(shape.detector);
  if (!adams.empty())
    bytes += Adam<ExecutionSpace, Real>::bytes_needed(space, adams);
  if (!adam || options.projections_first > 0)
    bytes += Impl::ModulusSteps<ExecutionSpace, Real>::bytes_needed(
        shape, options.steps == PtychographySteps::LeastSquares);
  if (options.position_rate > 0)
    bytes += Positions::bytes_needed(count);
  if (options.total_variation > 0)
    bytes +=
        TotalVariation<ExecutionSpace, Real>::bytes_needed({shape.slices, shape.object[0], shape.object[1]});
  if (options.optics)
    bytes += AberratedProbe<ExecutionSpace, Real>::bytes_needed(space, shape.probe, shape.detector,
                                                                *options.optics);
  return bytes;
}

#define BRACEWELL_INSTANCES_PTYCHOGRAPHY_SOLVER(Extern, Space, Real)                                         \
  Extern template class PtychographySolver<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_PTYCHOGRAPHY_SOLVER)
#define BRACEWELL_INSTANCES_PTYCHOGRAPHY_SOLVER_HALF(Extern, Space, Real)                                    \
  Extern template class PtychographySolver<Space, Real, Half>;
BRACEWELL_DECLARE_FLOAT(BRACEWELL_INSTANCES_PTYCHOGRAPHY_SOLVER_HALF)

} // namespace Bracewell
