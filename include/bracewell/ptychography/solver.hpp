// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/optimize/adam.hpp>
#include <bracewell/ptychography/object.hpp>
#include <bracewell/ptychography/pattern_batches.hpp>
#include <bracewell/ptychography/probe.hpp>
#include <bracewell/ptychography/ptychography_loss.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace Bracewell {

/// What a step changes, and by how much at most.
struct PtychographySolverOptions {
  double object_rate = 0.01; ///< learning rate of amplitude and phase; 0: they stay
  double probe_rate = 0.001; ///< of probe pixels (without optics); 0: they stay
  /// Given, the probe is that of a lens with five parameters (AberratedProbe), which are trained in place of
  /// its pixels.
  std::optional<ProbeOptics> optics = std::nullopt;
  /// Learning rates of the five parameters, each in its own unit, in the order of ProbeParameter; 0: it stays
  std::array<double, probe_parameter_count> aberration_rates = {1e-3, 1e-3, 1e-3, 1e-3, 1e-3};
  AdamOptions adam = {};        ///< constants of the optimiser
  std::int64_t history = 10000; ///< the losses of so many steps are kept
};

/// Reconstruction by Adam: steps along the exact gradients of PtychographyLoss with respect to the object's
/// amplitude and phase, and the probe's pixels or aberrations. What is sought lies in Views that the solver
/// owns and the caller may read and set between steps; all are zero at first.
/// @code
/// PtychographySolver<Space, float> solver(space, shape, std::move(loss), {.probe_rate = 0});
/// Kokkos::deep_copy(space, solver.amplitude(), 1.0f); Kokkos::deep_copy(space, solver.probe(), probe);
/// for (int i = 0; i < 100; ++i) solver.step(space);
/// @endcode
/// Movable; one call at a time. A step launches kernels on the instance that it is given and neither waits
/// nor allocates.
template <class ExecutionSpace, class Real, class Storage = Real, class Detectors = EveryFusedDetector>
class PtychographySolver {
  using Memory = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<Real>;
  template <class Value>
  using View = Kokkos::View<Value, Kokkos::LayoutRight, Memory>;

public:
  /// What is minimised.
  using Loss = PtychographyLoss<ExecutionSpace, Real, Storage, Detectors>;

  /// @param shape  as the loss was made with
  /// @param loss   with its patterns set
  /// @throws Error on another shape, rates that are negative or not finite, options of Adam out of range, a
  ///   history of no steps, optics that are not positive, and optics with several modes
  PtychographySolver(const ExecutionSpace& space, const PtychographyShape& shape, Loss loss,
                     const PtychographySolverOptions& options = {})
      : options_(check(shape, loss, options)), loss_(std::move(loss)),
        adam_(space, sizes(shape, options), options.adam),
        amplitude_(zeros<Real**>(space, "amplitude", shape.object[0], shape.object[1])),
        phase_(zeros<Real**>(space, "phase", shape.object[0], shape.object[1])),
        amplitude_gradient_(zeros<Real**>(space, "amplitude_gradient", shape.object[0], shape.object[1])),
        phase_gradient_(zeros<Real**>(space, "phase_gradient", shape.object[0], shape.object[1])),
        object_(zeros<Complex**>(space, "object", shape.object[0], shape.object[1])),
        object_gradient_(zeros<Complex**>(space, "object_gradient", shape.object[0], shape.object[1])),
        probe_(zeros<Complex***>(space, "probe", shape.modes, shape.probe, shape.probe)),
        aberrations_(zeros<Real*>(space, "aberrations", probe_parameter_count)),
        aberration_gradients_(zeros<Real*>(space, "aberration_gradients", probe_parameter_count)),
        history_(zeros<double*>(space, "losses", options.history)) {
    if (trains_probe())
      probe_gradient_ = zeros<Complex***>(space, "probe_gradient", shape.modes, shape.probe, shape.probe);
    if (options.optics)
      lens_.emplace(space, shape.probe, shape.detector, *options.optics);
  }

  const View<Real**>& amplitude() const { return amplitude_; } ///< [rows, columns]
  const View<Real**>& phase() const { return phase_; }         ///< [rows, columns], radians
  /// [modes, m, m]; with optics that of the parameters before the latest step.
  const View<Complex***>& probe() const { return probe_; }
  const View<Real*>& aberrations() const { return aberrations_; } ///< [5], see ProbeParameter
  /// What is minimised.
  const Loss& loss() const { return loss_; }

  /// One iteration: loss and gradients of all patterns or of a subset, then Adam.
  /// @param subset  indices of patterns, each at most once, see PatternBatches and PtychographyLoss::evaluate. Of
  ///   no patterns there is no step
  /// @throws Error on a subset of more patterns than there are
  void step(const ExecutionSpace& space, const Array<const int, Memory>& subset = {}) {
    Impl::check_subset(Impl::Arguments{"PtychographySolver::step"}, subset, loss_.count());
    if ((subset ? subset.size() : loss_.count()) == 0)
      return;
    Kokkos::Profiling::ScopedRegion region("Bracewell::PtychographySolver::step");
    PtychographyOutputs<Real, Memory> outputs{.loss = loss_of_step(steps_)};
    if (options_.object_rate > 0)
      outputs.object_gradient = object_gradient_;
    if (trains_probe())
      outputs.probe_gradient = probe_gradient_;
    evaluate(space, outputs, subset);
    if (options_.object_rate > 0)
      complex_object_gradients(space, amplitude_, phase_, object_gradient_,
                               {.amplitude = amplitude_gradient_, .phase = phase_gradient_});
    if (lens_ && trains_probe())
      lens_->gradients(space, aberrations_, probe_gradient_, aberration_gradients_);
    update(space);
    ++steps_;
  }

  /// Loss of the present object and probe, without a step.
  /// @param loss  View of double, one number; overwritten
  /// @throws Error on other shapes, and a loss that shares memory with the subset or what is sought
  void evaluate(const ExecutionSpace& space, const Array<double, Memory>& loss,
                const Array<const int, Memory>& subset = {}) {
    const Impl::Arguments check{"PtychographySolver::evaluate"};
    check.given("loss", loss);
    Impl::check_one_number(check, "loss", loss);
    Impl::check_subset(check, subset, loss_.count());
    using Reals = Array<Real, Memory>;
    check.disjoint({{"loss", loss}}, {{"subset", subset},
                                      {"amplitude()", Reals(amplitude_)},
                                      {"phase()", Reals(phase_)},
                                      {"probe()", Array<Complex, Memory>(probe_)},
                                      {"aberrations()", Reals(aberrations_)}});
    Kokkos::Profiling::ScopedRegion region("Bracewell::PtychographySolver::evaluate");
    evaluate(space, PtychographyOutputs<Real, Memory>{.loss = loss}, subset);
  }

  /// From now on steps take the learning rates times a factor, 1 at first.
  /// @throws Error on a factor that is negative or not finite
  void set_rate_factor(double factor) {
    const Impl::Arguments check{"PtychographySolver::set_rate_factor"};
    check.require(factor >= 0 && factor <= 1e30, "factor", "a finite number >= 0",
                  [&] { return Impl::number(factor); });
    rate_factor_ = factor;
  }

  /// Steps so far.
  std::int64_t steps() const { return steps_; }

  /// Losses before each of the latest steps, oldest first, as many as were kept. Waits for the space.
  std::vector<double> losses(const ExecutionSpace& space) const {
    const std::int64_t kept = std::min(steps_, options_.history);
    const auto host = Kokkos::create_mirror(Kokkos::HostSpace(), history_);
    Kokkos::deep_copy(space, host, history_);
    space.fence("Bracewell::PtychographySolver::losses");
    std::vector<double> losses;
    for (std::int64_t step = steps_ - kept; step < steps_; ++step)
      losses.push_back(host(step % options_.history));
    return losses;
  }

  /// Bytes that the solver holds, its loss and the measured patterns included.
  std::size_t memory_bytes() const {
    return loss_.memory_bytes() + adam_.memory_bytes() + (lens_ ? lens_->memory_bytes() : 0) +
           Impl::bytes_of(amplitude_, phase_, amplitude_gradient_, phase_gradient_, object_, object_gradient_,
                          probe_, probe_gradient_, aberrations_, aberration_gradients_, history_);
  }

private:
  static const PtychographySolverOptions& check(const PtychographyShape& shape, const Loss& loss,
                                                const PtychographySolverOptions& options) {
    const Impl::Arguments check{"PtychographySolver"};
    check.require(shape == loss.sizes(), "shape", "the sizes that the loss was made with", "others");
    const auto rate = [&](const char* argument, double value) {
      check.require(value >= 0 && value <= 1e30, argument, "learning rates that are finite and >= 0",
                    [&] { return Impl::number(value); });
    };
    rate("options.object_rate", options.object_rate);
    rate("options.probe_rate", options.probe_rate);
    for (const double value : options.aberration_rates)
      rate("options.aberration_rates", value);
    const auto decay = [&](const char* argument, double value) {
      check.require(value >= 0 && value < 1, argument, "a value in [0, 1)",
                    [&] { return Impl::number(value); });
    };
    decay("options.adam.beta1", options.adam.beta1);
    decay("options.adam.beta2", options.adam.beta2);
    check.positive("options.adam.epsilon", options.adam.epsilon);
    check.at_least<std::int64_t>("options.history", options.history, 1);
    if (!options.optics)
      return options;
    check.require(shape.modes == 1, "options.optics", "one probe mode",
                  [&] { return Impl::number(shape.modes); });
    Impl::check_optics(check, *options.optics);
    return options;
  }

  /// Real numbers of what Adam changes, in the order of update().
  static std::vector<std::size_t> sizes(const PtychographyShape& shape,
                                        const PtychographySolverOptions& options) {
    const auto object = static_cast<std::size_t>(shape.object[0] * shape.object[1]);
    if (options.optics)
      return {object, object, 1, 1, 1, 1, 1};
    if (options.probe_rate == 0)
      return {object, object};
    const auto window = static_cast<std::size_t>(shape.probe) * static_cast<std::size_t>(shape.probe);
    return {object, object, 2 * window * static_cast<std::size_t>(shape.modes)};
  }

  template <class Value, class... Extents>
  static View<Value> zeros(const ExecutionSpace& space, const char* name, Extents... extents) {
    return Impl::device_zeros<Value>(space, std::string("Bracewell::PtychographySolver::") + name,
                                     extents...);
  }

  bool trains_probe() const {
    return options_.optics ? std::ranges::max(options_.aberration_rates) > 0 : options_.probe_rate > 0;
  }

  View<double*> loss_of_step(std::int64_t step) const {
    return View<double*>(history_.data() + step % options_.history, 1);
  }

  void evaluate(const ExecutionSpace& space, const PtychographyOutputs<Real, Memory>& outputs,
                const Array<const int, Memory>& subset) {
    if (lens_)
      lens_->evaluate(space, aberrations_, probe_);
    complex_object(space, amplitude_, phase_, object_);
    loss_.evaluate(space, object_, probe_, outputs, subset);
  }

  void update(const ExecutionSpace& space) {
    using Parameters = AdamParameters<Real, Memory>;
    const double object_rate = rate_factor_ * options_.object_rate;
    std::vector<Parameters> all{{amplitude_, amplitude_gradient_, object_rate},
                                {phase_, phase_gradient_, object_rate}};
    const auto one = [](const View<Real*>& view, int c) { return View<Real*>(view.data() + c, 1); };
    if (options_.optics)
      for (int c = 0; c < probe_parameter_count; ++c)
        all.push_back({one(aberrations_, c), one(aberration_gradients_, c),
                       rate_factor_ * options_.aberration_rates[static_cast<std::size_t>(c)]});
    else if (trains_probe())
      all.push_back({probe_, probe_gradient_, rate_factor_ * options_.probe_rate});
    adam_.step(space, all);
  }

  PtychographySolverOptions options_;
  Loss loss_;
  Adam<ExecutionSpace, Real> adam_;
  std::optional<AberratedProbe<ExecutionSpace, Real>> lens_;
  View<Real**> amplitude_, phase_, amplitude_gradient_, phase_gradient_;
  View<Complex**> object_, object_gradient_;
  View<Complex***> probe_, probe_gradient_;
  View<Real*> aberrations_, aberration_gradients_;
  View<double*> history_;
  std::int64_t steps_ = 0;
  double rate_factor_ = 1;
};

} // namespace Bracewell
