// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/ptychography/choose_pattern_path.hpp>
#include <bracewell/ptychography/detail/check_loss.hpp>
#include <bracewell/ptychography/detail/fused_plan.hpp>
#include <bracewell/ptychography/detail/general_plan.hpp>
#include <bracewell/ptychography/detail/gradient_sums.hpp>
#include <bracewell/ptychography/detail/known_lines_plan.hpp>
#include <bracewell/ptychography/detail/lines_plan.hpp>
#include <bracewell/ptychography/detail/sum_losses.hpp>
#include <bracewell/ptychography/detail/target_store.hpp>
#include <bracewell/ptychography/inputs.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <limits>
#include <type_traits>
#include <variant>
#include <vector>

namespace Bracewell {

/// Plan of the loss of a ptychographic model against measured patterns, and of its exact gradients:
///   psi_jl(r) = O(y_j + r) p_l(r), Psi = far- or near-field propagation (Propagator), I_j = sum_l
///   |Psi_jl|^2, J_j = I_j C / mean(I_j) and t_j = measured C / mean(measured) (PatternScale::PerPattern) or
///   J = I, L = 1 / (N n^2) sum_j sum_k w_jk l(J_jk, t_jk)  (PatternLoss; means are weighted with w as well).
/// N: patterns of the call, or inputs.mean_of. Patterns without counts have weight 0. Gradients are dL/dRe + i dL/dIm. Models with
/// slices, relaxation, positions to find, factors and a background: docs/ptychography.md.
///
/// Storage is the type in which targets (and, in the fused path, gradients of exit waves) are stored: Real, or
/// Half with Real = float, whose gradients are within 1e-3 of those in double. Half takes two bytes on every
/// backend; hosts convert in a few instructions, so that there it saves memory rather than time.
///
/// Detectors are the sizes for which the fused kernel is compiled, FusedDetectors<256> for instance; the fewer,
/// the less there is to compile (docs/internals/compile-time.md). By default all on GPUs and 192 and 256 on hosts.
///
/// Movable. evaluate is const, asynchronous, allocates nothing and uses the plan's workspace: one call at a
/// time. The same input gives the same bits.
template <class ExecutionSpace, class Real, class Storage = Real,
          class Detectors = DefaultFusedDetectors<ExecutionSpace>>
class PtychographyLoss {
  static_assert(std::is_same_v<Real, float> || std::is_same_v<Real, double>,
                "Bracewell::PtychographyLoss: Real is float or double.");
  static_assert(std::is_same_v<Storage, Real> ||
                    (std::is_same_v<Storage, Half> && std::is_same_v<Real, float>),
                "Bracewell::PtychographyLoss: Storage is Real, or Bracewell::Half with Real = float.");
  using Complex = Kokkos::complex<Real>;
  using Memory = typename ExecutionSpace::memory_space;

public:
  /// What evaluate takes.
  using Inputs = PtychographyInputs<Real, Memory>;
  /// What evaluate can give.
  using Outputs = PtychographyOutputs<Real, Memory>;

  /// @param positions  View [N, 2] of (row, column), see ScanPositions
  /// @throws Error on shapes and options out of range, windows that leave the object, and combinations that
  ///   do not exist: a reduced grid needs least squares per pattern without weights in the far field
  template <class PositionsView>
  PtychographyLoss(const ExecutionSpace& space, const PtychographyShape& sizes,
                   const PositionsView& positions, const PtychographyOptions& settings = {})
      : options_(settings), measured_(check(sizes, settings)), shape_(compared(sizes, settings)),
        scan_(space, positions, sizes.object, sizes.probe, constructor), plan_(make_plan(space)),
        store_(space, scan_.count(), std::visit([](const auto& own) { return own.group_size(); }, plan_),
               measured_.detector, shape_.detector, shape_.probe, settings,
               is_fused() ? std::get<Fused>(plan_).layout() : Impl::PatternLayout{shape_.detector}),
        sums_(space, scan_.count(), shape_),
        losses_(Impl::device_vector<double>(space, "Bracewell::PtychographyLoss::losses", scan_.count())) {}

  /// As the plan was made with.
  const PtychographyShape& sizes() const { return measured_; }
  /// As the plan was made with.
  const PtychographyOptions& options() const { return options_; }
  /// Patterns of the plan.
  std::int64_t count() const { return scan_.count(); }
  /// Whether one kernel holds a pattern on the chip from the exit wave to its gradient (choose_pattern_path).
  bool is_fused() const { return path() == PatternPath::Fused; }
  /// The path that was chosen (choose_pattern_path).
  PatternPath path() const {
    return std::visit([](const auto& own) { return own.path; }, plan_);
  }
  /// Whether positions are inputs of evaluate (options.refine_positions).
  bool refines_positions() const { return options_.refine_positions; }
  /// Pixels per side of the grid on which patterns are compared.
  int compared_detector() const { return shape_.detector; }
  /// Patterns without counts among those that were set; they have weight 0.
  std::int64_t empty_patterns() const { return store_.empty_patterns(); }
  /// Bytes of the host that patterns take for which options.target_bytes leaves no room on the device.
  std::size_t host_bytes() const { return store_.host_bytes(); }
  /// Bytes that the plan holds, without host_bytes().
  std::size_t memory_bytes() const {
    return scan_.memory_bytes() + std::visit([](const auto& own) { return own.memory_bytes(); }, plan_) +
           store_.memory_bytes() + sums_.memory_bytes() + Impl::bytes_of(losses_);
  }

  /// What memory_bytes() of a plan of these arguments would be. Positions are sorted for it, as by a plan.
  /// @throws Error as the constructor
  template <class PositionsView>
  static std::size_t bytes_needed(const ExecutionSpace& space, const PtychographyShape& sizes,
                                  const PositionsView& positions, const PtychographyOptions& settings = {}) {
    const PtychographyShape shape = compared(check(sizes, settings), settings);
    const ScanPositions<ExecutionSpace> scan(space, positions, sizes.object, sizes.probe, constructor);
    const std::size_t bytes = scan.memory_bytes() +
                              Impl::TargetStore<ExecutionSpace, Real, Storage>::bytes_needed(
                                  scan.count(), shape.detector, settings) +
                              Impl::GradientSums<ExecutionSpace, Real>::bytes_needed(scan.count(), shape) +
                              sizeof(double) * static_cast<std::size_t>(scan.count());
    const PatternPath path = choose_path(sizes, settings, scan);
    if (path == PatternPath::Fused)
      return bytes + Fused::bytes_needed(space, scan.count(), shape, settings);
    if constexpr (has_known_lines)
      if (path == PatternPath::Lines && KnownLines::takes(shape, settings))
        return bytes + KnownLines::bytes_needed(space, scan.count(), scan.subpixel(), shape, settings);
    if constexpr (has_lines)
      if (path == PatternPath::Lines)
        return bytes + Lines::bytes_needed(space, scan.count(), scan.subpixel(), shape, settings);
    return bytes + General::bytes_needed(space, scan.count(), scan.subpixel(), shape, settings);
  }

  /// Stores measured intensities of patterns first, first + 1, ...; waits until they are stored.
  /// @param patterns  View [K, n, n] of any real or integer type in any memory, zero frequency at [0, 0]
  /// @param weights   View of Real [n, n] or [K, n, n], as options.weights says: 0 or 1 for a mask, or >= 0
  /// @throws Error on shapes that do not fit, weights that are not expected or missing, and where a pixel
  ///   that counts is negative or not finite (after storing)
  template <class PatternsView>
  void set_patterns(const ExecutionSpace& space, std::int64_t first, const PatternsView& patterns,
                    const Array<const Real, Memory>& weights = {}) {
    static_assert(PatternsView::rank() == 3,
                  "Bracewell::PtychographyLoss::set_patterns: patterns: expected a "
                  "View [K, n, n], found another number of axes.");
    if constexpr (PatternsView::rank() == 3) {
      using Count = typename PatternsView::non_const_value_type;
      using Given = Kokkos::View<const Count***, Kokkos::LayoutRight, typename PatternsView::memory_space,
                                 Kokkos::MemoryUnmanaged>;
      const Impl::Arguments arguments{"PtychographyLoss::set_patterns"};
      const Array<const Count, typename PatternsView::memory_space> array(patterns);
      const auto& extents = array.extents;
      Impl::check_patterns(arguments, measured_, options_.weights, count(), first, array, weights);
      if (extents[0] == 0)
        return;
      Kokkos::Profiling::ScopedRegion region("Bracewell::PtychographyLoss::set_patterns");
      const std::int64_t invalid =
          store_.set(space, first, Given(array.data, extents[0], extents[1], extents[2]), weights);
      arguments.require(invalid == std::numeric_limits<std::int64_t>::max(), "patterns",
                        options_.weights == PixelWeights::Mask ? "finite intensities >= 0 and weights 0 or 1"
                                                               : "finite intensities and weights >= 0",
                        [&] { return "others in pattern " + Impl::number(invalid); });
    }
  }

  /// Writes the positions of the plan: as given, or by move_windows.
  /// @param positions  View [N, 2] of double
  /// @throws Error on another shape
  void positions(const ExecutionSpace& space, const Array<double, Memory>& positions) const {
    Impl::Arguments{"PtychographyLoss::positions"}.shape("positions", positions, {count(), 2});
    scan_.write(space, positions);
  }

  /// Takes other positions for those of the plan, and moves the windows from which a position has gone too far:
  /// one that is more than 3/4 of a pixel away on an axis, farther than the 1/2 of a new plan so that none goes
  /// to and fro, becomes the nearest one within the object. The loss jumps a little where a window moves, as its
  /// first row is exchanged for a new last one. Waits.
  /// @param positions  View [N, 2] of double
  /// @throws Error on another shape, a position that is not finite, and plans without options.refine_positions
  void move_windows(const ExecutionSpace& space, const Array<const double, Memory>& positions) {
    const Impl::Arguments arguments{"PtychographyLoss::move_windows"};
    arguments.require(options_.refine_positions, "options.refine_positions", "true when the plan is made",
                      "false");
    arguments.shape("positions", positions, {count(), 2});
    scan_.move_windows(space, positions, arguments);
  }

  /// First pixels of the windows, [N, 2]. With move_windows they depend on where positions have been. Waits.
  std::vector<int> windows(const ExecutionSpace& space) const { return scan_.windows(space); }

  /// Takes other positions, and windows for them as windows() gave them: to go on another time. Waits.
  /// @param positions  View [N, 2] of double
  /// @throws Error on other shapes, a window that leaves the object, a position that is not finite, and plans without
  ///   options.refine_positions
  void set_windows(const ExecutionSpace& space, const std::vector<int>& first,
                   const Array<const double, Memory>& positions) {
    const Impl::Arguments arguments{"PtychographyLoss::set_windows"};
    arguments.require(options_.refine_positions, "options.refine_positions", "true when the plan is made",
                      "false");
    arguments.shape("positions", positions, {count(), 2});
    scan_.set_windows(space, first, positions, arguments);
  }

  /// Loss and gradients.
  /// @param object   View of Kokkos::complex<Real> [rows, columns]
  /// @param probe    View [m, m] or [modes, m, m]
  /// @param outputs  what to compute
  /// @param subset   View of int [K], indices of the patterns to use, each at most once; all where not given. Its
  ///   values are not checked, as they lie on the device. Of no patterns loss and gradients are zero
  /// @throws Error on shapes that do not fit, on more patterns than were set, and on outputs that share memory
  ///   with each other or an argument
  void evaluate(const ExecutionSpace& space, const Array<const Complex, Memory>& object,
                const Array<const Complex, Memory>& probe, const Outputs& outputs,
                const Array<const int, Memory>& subset = {}) const {
    evaluate(space, Inputs{.object = object, .probe = probe}, outputs, subset);
  }

  /// The same of models that have more than object and probe.
  /// @throws Error on inputs that the plan was not told of when it was made, and on those that are missing, too
  void evaluate(const ExecutionSpace& space, const Inputs& inputs, const Outputs& outputs,
                const Array<const int, Memory>& subset = {}) const {
    const std::int64_t used = subset ? subset.size() : count();
    const Impl::Arguments arguments{"PtychographyLoss::evaluate"};
    Impl::check_evaluate(arguments, measured_, options_, count(), inputs, outputs, subset);
    arguments.require(
        store_.set_patterns() >= used, "patterns",
        [&] { return Impl::number(used) + " that were set by set_patterns"; },
        [&] { return Impl::number(store_.set_patterns()); });
    Kokkos::Profiling::ScopedRegion profile("Bracewell::PtychographyLoss::evaluate");
    if (subset || used == 0) // patterns that are not used
      zero(space, outputs.position_gradient), zero(space, outputs.factor_gradient),
          zero(space, outputs.coefficient_gradient);
    if (used == 0) {
      zero(space, outputs.loss), zero(space, outputs.object_gradient), zero(space, outputs.probe_gradient);
      zero(space, outputs.background_gradient), zero(space, outputs.relaxation_gradient);
      return;
    }
    if (outputs.object_gradient)
      sums_.begin_object(space, subset.data, used);
    const std::int64_t mean_of = inputs.mean_of > 0 ? inputs.mean_of : used;
    const Real norm = Real(1) / (Real(mean_of) * Real(std::int64_t(shape_.detector) * shape_.detector));
    double* const per_pattern = outputs.pattern_losses ? outputs.pattern_losses.data : losses_.data();
    std::visit(
        [&](const auto& own) {
          if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(own)>, Fused>)
            own.begin(space, scan_, inputs);
          const std::int64_t group = std::min(own.group_size(), store_.group_size());
          const Impl::GroupOrder order = store_.order(subset.data, used, group);
          const auto patterns = [&](std::int64_t which) {
            const std::int64_t first = which * group;
            return Impl::Selection{subset.data, first, std::clamp<std::int64_t>(used - first, 0, group)};
          };
          for (std::int64_t k = 0; k < order.groups; ++k) {
            const Impl::Selection now = patterns(order.group(k));
            evaluate_group(own, space, inputs, outputs, now,
                           store_.targets(space, now, patterns(order.next(k))), norm,
                           per_pattern + now.first);
          }
        },
        plan_);
    if (outputs.loss) {
      using Sum = Impl::SumLosses<ExecutionSpace>;
      Kokkos::parallel_for("Bracewell::PtychographyLoss::sum_losses",
                           Kokkos::TeamPolicy<ExecutionSpace>(space, 1, +Sum::team_size),
                           Sum{per_pattern, used, outputs.loss.data});
    }
  }

  /// Lets the first patterns of a subset set out from the host while the device works (options.target_bytes), where
  /// the next call of evaluate is of them.
  /// @param subset  as for evaluate; not to be written to before that call, and waited for where it was written
  /// @throws Error on a subset of more patterns than there are
  void prefetch(const Array<const int, Memory>& subset = {}) const {
    Impl::check_subset(Impl::Arguments{"PtychographyLoss::prefetch"}, subset, count());
    store_.prefetch(subset.data, subset ? subset.size() : count());
  }

  /// What solvers divide gradients of the object by: sum_j sum_l conj(a_l(r - y_j)) b_l(r - y_j) over the windows of the
  /// patterns, a and b being where they stand for all of them, not shifted by fractions of a pixel.
  /// @param a, b    Views [m, m] or [modes, m, m]; of the illumination both are the probe
  /// @param sum     View [rows, columns], overwritten
  /// @param subset  as for evaluate
  /// @throws Error on shapes that do not fit, and a sum that shares memory with an argument
  void overlap(const ExecutionSpace& space, const Array<const Complex, Memory>& a,
               const Array<const Complex, Memory>& b, const Array<Complex, Memory>& sum,
               const Array<const int, Memory>& subset = {}) const {
    const Impl::Arguments arguments{"PtychographyLoss::overlap"};
    Impl::check_probe(arguments, "a", a, measured_);
    Impl::check_probe(arguments, "b", b, measured_);
    arguments.shape("sum", sum, {measured_.object[0], measured_.object[1]});
    Impl::check_subset(arguments, subset, count());
    arguments.disjoint({{"sum", sum}}, {{"a", a}, {"b", b}, {"subset", subset}});
    const std::int64_t used = subset ? subset.size() : count(), m = measured_.probe;
    if (used == 0)
      return zero(space, sum);
    sums_.begin_object(space, subset.data, used);
    sums_.add_object(space, scan_.device(), scan_.tiles(), {subset.data, 0, used},
                     {a.data, 0, measured_.modes},
                     Impl::WaveGradients<Real, Real>{b.data, 0, m * m, m, nullptr}, sum.data);
  }

  /// What solvers divide gradients of the probe by: sum_j |O(y_j + r)|^2, of one slice.
  /// @param object  View [rows, columns]
  /// @param sum     View [m, m], overwritten; real
  /// @param subset  as for evaluate
  /// @throws Error as overlap, and on several slices
  void transmission(const ExecutionSpace& space, const Array<const Complex, Memory>& object,
                    const Array<Complex, Memory>& sum, const Array<const int, Memory>& subset = {}) const {
    const Impl::Arguments arguments{"PtychographyLoss::transmission"};
    arguments.shape("object", object, {measured_.object[0], measured_.object[1]});
    arguments.shape("sum", sum, {measured_.probe, measured_.probe});
    Impl::check_subset(arguments, subset, count());
    arguments.disjoint({{"sum", sum}}, {{"object", object}, {"subset", subset}});
    const Impl::Selection all{subset.data, 0, subset ? subset.size() : count()};
    if (all.count == 0)
      return zero(space, sum);
    sums_.add_probe(space, scan_.device(), all, object.data, {nullptr, 0, 1},
                    Impl::ObjectWaves<Real>{scan_.device(), all, object.data}, sum.data);
  }

private:
  using Fused = Impl::FusedPlan<ExecutionSpace, Real, Storage, Detectors>;
  using Lines = Impl::LinesPlan<ExecutionSpace, Real, Storage>;
  using KnownLines = Impl::KnownLinesPlan<ExecutionSpace, Real, Storage, Detectors>;
  using General = Impl::GeneralPlan<ExecutionSpace, Real, Storage>;
  static constexpr bool has_lines = Detectors::template lines<ExecutionSpace>,
                        has_known_lines = has_lines && !Impl::is_host<ExecutionSpace>;
  using Plan = std::conditional_t<
      !has_lines, std::variant<Fused, General>,
      std::conditional_t<Impl::is_host<ExecutionSpace>, std::variant<Fused, Lines, General>,
                         std::variant<Fused, KnownLines, Lines, General>>>;
  static constexpr Impl::Arguments constructor{"PtychographyLoss"};

  static const PtychographyShape& check(const PtychographyShape& shape, const PtychographyOptions& options) {
    Impl::check_loss_plan(constructor, shape, options);
    return shape;
  }

  /// The shape with the detector on which patterns are compared.
  static PtychographyShape compared(PtychographyShape shape, const PtychographyOptions& options) {
    shape.detector = Bracewell::compared_detector(shape, options);
    return shape;
  }

  static PatternPath choose_path(const PtychographyShape& sizes, const PtychographyOptions& options,
                                 const ScanPositions<ExecutionSpace>& scan) {
    const PatternPath path =
        choose_pattern_path<Detectors, ExecutionSpace, Real>(sizes, options, !scan.subpixel());
    constructor.require(options.path == PatternPath::Automatic || options.path == path, "options.path",
                        "a path that can do the problem (choose_pattern_path)",
                        options.path == PatternPath::Fused ? "PatternPath::Fused" : "PatternPath::Lines");
    return path;
  }

  Plan make_plan(const ExecutionSpace& space) const {
    const PatternPath path = choose_path(measured_, options_, scan_);
    if (path == PatternPath::Fused)
      return Plan(std::in_place_type<Fused>, space, scan_.count(), shape_, options_);
    if constexpr (has_known_lines)
      if (path == PatternPath::Lines && KnownLines::takes(shape_, options_))
        return Plan(std::in_place_type<KnownLines>, space, scan_, shape_, options_);
    if constexpr (has_lines)
      if (path == PatternPath::Lines)
        return Plan(std::in_place_type<Lines>, space, scan_, shape_, options_);
    return Plan(std::in_place_type<General>, space, scan_, shape_, options_);
  }

  template <class Value>
  static void zero(const ExecutionSpace& space, const Array<Value, Memory>& array) {
    if (array)
      Impl::fill(space, "Bracewell::PtychographyLoss::zero", array.data, array.size());
  }

  static bool gradients(const Outputs& outputs) { return outputs.object_gradient || outputs.probe_gradient; }

  void evaluate_group(const Fused& own, const ExecutionSpace& space, const Inputs& inputs,
                      const Outputs& outputs, const Impl::Selection& selection,
                      const Impl::Targets<Real, Storage>& targets, Real norm, double* per_pattern) const {
    const Impl::Probes<Real> probes{inputs.probe.data, 0, shape_.modes};
    const auto waves = own.compute(space, scan_.device(), inputs.object.data, inputs.probe.data, selection,
                                   targets, options_, norm, per_pattern, gradients(outputs));
    if (outputs.object_gradient)
      sums_.add_object(space, scan_.device(), scan_.tiles(), selection, probes, waves,
                       outputs.object_gradient.data);
    if (outputs.probe_gradient)
      sums_.add_probe(space, scan_.device(), selection, inputs.object.data, probes, waves,
                      outputs.probe_gradient.data);
  }

  template <class Own>
  void evaluate_group(const Own& own, const ExecutionSpace& space, const Inputs& inputs,
                      const Outputs& outputs, const Impl::Selection& selection,
                      const Impl::Targets<Real, Storage>& targets, Real norm, double* per_pattern) const {
    own.evaluate(space, scan_, inputs, outputs, selection, targets, options_, norm, per_pattern, sums_);
  }

  PtychographyOptions options_;
  PtychographyShape measured_, shape_; ///< as given, and with the detector on which patterns are compared
  ScanPositions<ExecutionSpace> scan_;
  Plan plan_;
  Impl::TargetStore<ExecutionSpace, Real, Storage> store_;
  Impl::GradientSums<ExecutionSpace, Real> sums_;
  Kokkos::View<double*, Kokkos::LayoutRight, Memory> losses_;
};

} // namespace Bracewell
