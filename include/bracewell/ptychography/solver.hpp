// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/optimize/adam.hpp>
#include <bracewell/ptychography/object.hpp>
#include <bracewell/ptychography/probe.hpp>
#include <bracewell/ptychography/ptychography_loss.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <random>
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
  AdamOptions adam = {};
  std::int64_t history = 10000; ///< the losses of so many steps are kept
};

/// Fixed random division of N patterns into batches of equal size (to one pattern), for mini-batches: batch b
/// is `batches[b]`. The lists lie in the memory of the execution space.
template <class ExecutionSpace>
class PatternBatches {
  using Memory = typename ExecutionSpace::memory_space;

public:
  /// @throws Error on numbers of batches that are not between 1 and `patterns`
  PatternBatches(const ExecutionSpace& space, std::int64_t patterns, int batches, std::uint64_t seed = 0)
      : patterns_(patterns), batches_(batches) {
    if (batches < 1 || batches > patterns)
      Impl::fail("PatternBatches", "batches", "1 to " + std::to_string(patterns), std::to_string(batches));
    std::vector<int> numbers(static_cast<std::size_t>(patterns));
    std::iota(numbers.begin(), numbers.end(), 0);
    std::mt19937_64 generator(seed);
    for (std::size_t i = numbers.size(); i > 1; --i) // Fisher and Yates: the same on every machine
      std::swap(numbers[i - 1], numbers[generator() % i]);
    for (int batch = 0; batch < batches; ++batch)
      std::sort(numbers.begin() + begin(batch), numbers.begin() + begin(batch + 1));
    numbers_ = Kokkos::View<int*, Memory>(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::PatternBatches::numbers"),
        numbers.size());
    Kokkos::deep_copy(
        space, numbers_,
        Kokkos::View<const int*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(numbers.data(), numbers.size()));
    space.fence("Bracewell::PatternBatches: the list on the host ends here");
  }

  int size() const { return batches_; }
  /// Numbers of the patterns of a batch, rising.
  Array<const int, Memory> operator[](int batch) const {
    return Kokkos::View<const int*, Kokkos::LayoutRight, Memory>(
        numbers_.data() + begin(batch), static_cast<std::size_t>(begin(batch + 1) - begin(batch)));
  }

private:
  std::int64_t begin(int batch) const { return patterns_ * batch / batches_; }

  std::int64_t patterns_;
  int batches_;
  Kokkos::View<int*, Memory> numbers_;
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
template <class ExecutionSpace, class Real, class Storage = Real>
class PtychographySolver {
  using Memory = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<Real>;
  template <class Value>
  using View = Kokkos::View<Value, Kokkos::LayoutRight, Memory>;

public:
  using Loss = PtychographyLoss<ExecutionSpace, Real, Storage>;

  /// @param shape  as the loss was made with
  /// @param loss   with its patterns set
  /// @throws Error on rates that are negative or not finite, a history of no steps, and optics with several
  ///   modes
  PtychographySolver(const ExecutionSpace& space, const PtychographyShape& shape, Loss loss,
                     const PtychographySolverOptions& options = {})
      : options_(check(shape, options)), loss_(std::move(loss)),
        adam_(space, sizes(shape, options), options.adam),
        amplitude_(make<Real**>(space, "amplitude", shape.object[0], shape.object[1])),
        phase_(make<Real**>(space, "phase", shape.object[0], shape.object[1])),
        amplitude_gradient_(make<Real**>(space, "amplitude_gradient", shape.object[0], shape.object[1])),
        phase_gradient_(make<Real**>(space, "phase_gradient", shape.object[0], shape.object[1])),
        object_(make<Complex**>(space, "object", shape.object[0], shape.object[1])),
        object_gradient_(make<Complex**>(space, "object_gradient", shape.object[0], shape.object[1])),
        probe_(make<Complex***>(space, "probe", shape.modes, shape.probe, shape.probe)),
        aberrations_(make<Real*>(space, "aberrations", probe_parameter_count)),
        aberration_gradients_(make<Real*>(space, "aberration_gradients", probe_parameter_count)),
        history_(make<double*>(space, "losses", options.history)) {
    if (trains_probe())
      probe_gradient_ = make<Complex***>(space, "probe_gradient", shape.modes, shape.probe, shape.probe);
    if (options.optics)
      lens_.emplace(space, shape.probe, shape.detector, *options.optics);
  }

  const View<Real**>& amplitude() const { return amplitude_; } ///< [rows, columns]
  const View<Real**>& phase() const { return phase_; }         ///< [rows, columns], radians
  /// [modes, m, m]; with optics that of the parameters before the latest step.
  const View<Complex***>& probe() const { return probe_; }
  const View<Real*>& aberrations() const { return aberrations_; } ///< [5], see ProbeParameter
  const Loss& loss() const { return loss_; }

  /// One iteration: loss and gradients of all patterns or of a subset, then Adam.
  /// @param subset  numbers of patterns, each at most once, see PatternBatches and PtychographyLoss::evaluate
  void step(const ExecutionSpace& space, const Array<const int, Memory>& subset = {}) {
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
  void evaluate(const ExecutionSpace& space, const Array<double, Memory>& loss,
                const Array<const int, Memory>& subset = {}) {
    evaluate(space, PtychographyOutputs<Real, Memory>{.loss = loss}, subset);
  }

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
           bytes(amplitude_) + bytes(phase_) + bytes(amplitude_gradient_) + bytes(phase_gradient_) +
           bytes(object_) + bytes(object_gradient_) + bytes(probe_) + bytes(probe_gradient_) +
           bytes(aberrations_) + bytes(aberration_gradients_) + bytes(history_);
  }

private:
  static PtychographySolverOptions check(const PtychographyShape& shape,
                                         const PtychographySolverOptions& options) {
    const char* name = "PtychographySolver";
    std::vector<double> rates(options.aberration_rates.begin(), options.aberration_rates.end());
    rates.insert(rates.end(), {options.object_rate, options.probe_rate});
    for (const double rate : rates)
      if (!(rate >= 0 && rate <= 1e30))
        Impl::fail(name, "options", "learning rates that are finite and >= 0", std::to_string(rate));
    if (options.history < 1)
      Impl::fail(name, "options.history", "at least one step", std::to_string(options.history));
    if (options.optics && shape.modes != 1)
      Impl::fail(name, "options.optics", "one probe mode", std::to_string(shape.modes));
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
  static View<Value> make(const ExecutionSpace& space, const char* name, Extents... extents) {
    return View<Value>(Kokkos::view_alloc(space, std::string("Bracewell::PtychographySolver::") + name),
                       static_cast<std::size_t>(extents)...);
  }
  template <class Any>
  static std::size_t bytes(const Any& view) {
    return view.size() * sizeof(typename Any::value_type);
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
    std::vector<Parameters> all{{amplitude_, amplitude_gradient_, options_.object_rate},
                                {phase_, phase_gradient_, options_.object_rate}};
    const auto one = [](const View<Real*>& view, int c) { return View<Real*>(view.data() + c, 1); };
    if (options_.optics)
      for (int c = 0; c < probe_parameter_count; ++c)
        all.push_back({one(aberrations_, c), one(aberration_gradients_, c),
                       options_.aberration_rates[static_cast<std::size_t>(c)]});
    else if (trains_probe())
      all.push_back({probe_, probe_gradient_, options_.probe_rate});
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
};

} // namespace Bracewell
