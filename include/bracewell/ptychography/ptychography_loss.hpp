// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/compiled.hpp>
#include <bracewell/ptychography/choose_pattern_path.hpp>
#include <bracewell/ptychography/detail/check_loss.hpp>
#include <bracewell/ptychography/detail/plans/loss_plan.hpp>
#include <bracewell/ptychography/inputs.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <limits>
#include <type_traits>
#include <vector>

namespace Bracewell {

/// Plan of the loss of a ptychographic model against measured patterns, and of its exact gradients:
///   psi_jl(r) = O(y_j + r) p_l(r), Psi = far- or near-field propagation (Propagator), I_j = sum_l
///   |Psi_jl|^2, J_j = I_j C / mean(I_j) and t_j = measured C / mean(measured) (PatternScale::PerPattern) or
///   J = I, L = 1 / (N n^2) sum_j sum_k w_jk l(J_jk, t_jk)  (PatternLoss; means are weighted with w as well).
/// N: patterns of the call, or inputs.mean_of. Patterns without counts have weight 0. A model without light (I_j = 0) has J_j = 0, and
/// gradients of 0. An object or a probe that is not finite gives such a loss. Gradients are dL/dRe + i dL/dIm. Models with
/// slices, relaxation, positions to find, factors and a background: docs/ptychography-models.md.
///
/// Storage is the type in which targets (and, in the fused path, gradients of exit waves) are stored: Real, or
/// Half with Real = float, whose gradients are within 1e-3 of those in double. Half takes two bytes on every
/// backend; hosts convert in a few instructions, so that there it saves memory rather than time.
///
/// Movable. evaluate is const, asynchronous, allocates nothing and uses the plan's workspace: one call at a
/// time. The same input gives the same bits.
template <class ExecutionSpace, class Real, class Storage = Real>
class PtychographyLoss {
  using Compiled = Impl::Compiled<ExecutionSpace, Storage>;
  using Stored = typename Compiled::Stored;
  static_assert(std::is_same_v<Real, float> || std::is_same_v<Real, double>,
                "Bracewell::PtychographyLoss: Real is float or double.");
  static_assert(std::is_same_v<Stored, Real> || (std::is_same_v<Stored, Half> && std::is_same_v<Real, float>),
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
  PtychographyLoss(const ExecutionSpace& space, const PtychographyShape& sizes,
                   const Impl::HostPositions& positions, const PtychographyOptions& settings = {});

  /// As the plan was made with.
  const PtychographyShape& sizes() const { return measured_; }
  /// As the plan was made with.
  const PtychographyOptions& options() const { return options_; }
  /// Patterns of the plan.
  std::int64_t count() const { return scan_.count(); }
  /// Whether one kernel holds a pattern on the chip from the exit wave to its gradient (choose_pattern_path).
  bool is_fused() const { return path() == PatternPath::Fused; }
  /// The path that was chosen (choose_pattern_path).
  PatternPath path() const { return plan_.path(); }
  /// Whether positions are inputs of evaluate (options.refine_positions).
  bool refines_positions() const { return options_.refine_positions; }
  /// Pixels per side of the grid on which patterns are compared.
  int compared_detector() const { return Bracewell::compared_detector(measured_, options_); }
  /// Patterns without counts among those that were set; they have weight 0.
  std::int64_t empty_patterns() const { return plan_.store().empty_patterns(); }
  /// Bytes of the host that patterns take for which options.target_bytes leaves no room on the device.
  std::size_t host_bytes() const { return plan_.store().host_bytes(); }
  /// Bytes that the plan holds, without host_bytes().
  std::size_t memory_bytes() const { return scan_.memory_bytes() + plan_.memory_bytes(); }

  /// What memory_bytes() of a plan of these arguments would be. Positions are sorted for it, as by a plan.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, const PtychographyShape& sizes,
                                  const Impl::HostPositions& positions,
                                  const PtychographyOptions& settings = {});

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
    if constexpr (PatternsView::rank() == 3)
      set(space, first,
          Array<const typename PatternsView::non_const_value_type, typename PatternsView::memory_space>(
              patterns),
          weights);
  }

  /// Writes the positions of the plan: as given, or by move_windows.
  /// @param positions  View [N, 2] of double
  /// @throws Error on another shape
  void positions(const ExecutionSpace& space, const Array<double, Memory>& positions) const;

  /// Takes other positions in place of the plan's, and moves windows from which a position has gone too far. A window
  /// that is more than 3/4 of a pixel away on an axis becomes the nearest window within the object. (A new plan takes
  /// 1/2; with 3/4 no window goes to and fro.) The loss jumps a little where a window moves, because its first row is
  /// exchanged for a new last row. Waits.
  /// @param positions  View [N, 2] of double
  /// @throws Error on another shape, a position that is not finite, and plans without options.refine_positions
  void move_windows(const ExecutionSpace& space, const Array<const double, Memory>& positions);

  /// First pixels of the windows, [N, 2]. With move_windows they depend on where positions have been. Waits.
  std::vector<int> windows(const ExecutionSpace& space) const { return scan_.windows(space); }

  /// Takes other positions, and windows for them as windows() gave them: to go on another time. Waits.
  /// @param positions  View [N, 2] of double
  /// @throws Error on other shapes, a window that leaves the object, a position that is not finite, and plans without
  ///   options.refine_positions
  void set_windows(const ExecutionSpace& space, const std::vector<int>& first,
                   const Array<const double, Memory>& positions);

  /// Loss and gradients.
  /// @param object   View of Kokkos::complex<Real> [rows, columns]
  /// @param probe    View [m, m] or [modes, m, m]
  /// @param outputs  what to compute
  /// @param subset   View of int [K], indices of the patterns to use, each at most once; all where not given. Its
  ///   values are checked in host memory; on devices they are not, which would wait. Of no patterns loss and gradients are zero
  /// @throws Error on shapes that do not fit, indices out of range or repeated (in host memory), on more patterns than were set, and on outputs that share memory
  ///   with each other or an argument
  void evaluate(const ExecutionSpace& space, const Array<const Complex, Memory>& object,
                const Array<const Complex, Memory>& probe, const Outputs& outputs,
                const Array<const int, Memory>& subset = {}) const;

  /// The same of models that have more than object and probe.
  /// @throws Error on inputs that the plan was not told of when it was made, and on those that are missing, too
  void evaluate(const ExecutionSpace& space, const Inputs& inputs, const Outputs& outputs,
                const Array<const int, Memory>& subset = {}) const;

  /// Lets the first patterns of a subset set out from the host while the device works (options.target_bytes), where
  /// the next call of evaluate is of them.
  /// @param subset  as for evaluate; not to be written to before that call, and waited for where it was written
  /// @throws Error on a subset of more patterns than there are
  void prefetch(const Array<const int, Memory>& subset = {}) const;

  /// What solvers divide gradients of the object by: sum_j sum_l conj(a_l(r - y_j)) b_l(r - y_j) over the windows of the
  /// patterns. Fractions of a pixel do not shift a and b.
  /// @param a, b    Views [m, m] or [modes, m, m]; of the illumination both are the probe
  /// @param sum     View [rows, columns], overwritten
  /// @param subset  as for evaluate
  /// @throws Error on shapes that do not fit, and a sum that shares memory with an argument
  void overlap(const ExecutionSpace& space, const Array<const Complex, Memory>& a,
               const Array<const Complex, Memory>& b, const Array<Complex, Memory>& sum,
               const Array<const int, Memory>& subset = {}) const;

  /// What solvers divide gradients of the probe by: sum_j |O(y_j + r)|^2, of one slice.
  /// @param object  View [rows, columns]
  /// @param sum     View [m, m], overwritten; real
  /// @param subset  as for evaluate
  /// @throws Error as overlap, and on several slices
  void transmission(const ExecutionSpace& space, const Array<const Complex, Memory>& object,
                    const Array<Complex, Memory>& sum, const Array<const int, Memory>& subset = {}) const;

  PtychographyLoss(PtychographyLoss&&) noexcept; ///< The other can only be destroyed or assigned to.
  PtychographyLoss& operator=(PtychographyLoss&&) noexcept; ///< The same.
  ~PtychographyLoss();

private:
  using Scan = Impl::ScanStore<ExecutionSpace>;
  using Plan = Impl::LossPlan<ExecutionSpace, Real, Stored, typename Compiled::Detectors>;
  static constexpr Impl::Arguments constructor{"PtychographyLoss"};

  template <class Count, class From>
  void set(const ExecutionSpace& space, std::int64_t first, const Array<const Count, From>& patterns,
           const Array<const Real, Memory>& weights);

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
                                 const Scan& scan) {
    const PatternPath path =
        choose_pattern_path<ExecutionSpace, Real, Storage>(sizes, options, !scan.subpixel());
    constructor.require(options.path == PatternPath::Automatic || options.path == path, "options.path",
                        "a path that can do the problem (choose_pattern_path)",
                        options.path == PatternPath::Fused        ? "PatternPath::Fused"
                        : options.path == PatternPath::KnownLines ? "PatternPath::KnownLines"
                                                                  : "PatternPath::Lines");
    return path;
  }

  /// Patterns of a call.
  std::int64_t used(const Array<const int, Memory>& subset) const { return subset ? subset.size() : count(); }

  PtychographyOptions options_;
  PtychographyShape measured_; ///< as given
  Scan scan_;
  Plan plan_;
};

template <class ExecutionSpace, class Real, class Storage>
PtychographyLoss<ExecutionSpace, Real, Storage>::PtychographyLoss(PtychographyLoss&&) noexcept = default;

template <class ExecutionSpace, class Real, class Storage>
auto PtychographyLoss<ExecutionSpace, Real, Storage>::operator=(PtychographyLoss&&) noexcept
    -> PtychographyLoss& = default;

template <class ExecutionSpace, class Real, class Storage>
PtychographyLoss<ExecutionSpace, Real, Storage>::~PtychographyLoss() = default;

template <class ExecutionSpace, class Real, class Storage>
PtychographyLoss<ExecutionSpace, Real, Storage>::PtychographyLoss(const ExecutionSpace& space,
                                                                  const PtychographyShape& sizes,
                                                                  const Impl::HostPositions& positions,
                                                                  const PtychographyOptions& settings)
    : options_(settings), measured_(check(sizes, settings)),
      scan_(space, positions, sizes.object, sizes.probe, constructor),
      plan_(space, choose_path(sizes, settings, scan_), scan_, compared(sizes, settings), sizes.detector,
            settings) {}

template <class ExecutionSpace, class Real, class Storage>
std::size_t PtychographyLoss<ExecutionSpace, Real, Storage>::bytes_needed(
    const ExecutionSpace& space, const PtychographyShape& sizes, const Impl::HostPositions& positions,
    const PtychographyOptions& settings) {
  const PtychographyShape shape = compared(check(sizes, settings), settings);
  const Scan scan(space, positions, sizes.object, sizes.probe, constructor);
  return scan.memory_bytes() +
         Plan::bytes_needed(space, choose_path(sizes, settings, scan), scan, shape, settings);
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographyLoss<ExecutionSpace, Real, Storage>::positions(
    const ExecutionSpace& space, const Array<double, Memory>& positions) const {
  Impl::Arguments{"PtychographyLoss::positions"}.shape("positions", positions, {count(), 2});
  scan_.write(space, positions);
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographyLoss<ExecutionSpace, Real, Storage>::move_windows(
    const ExecutionSpace& space, const Array<const double, Memory>& positions) {
  const Impl::Arguments arguments{"PtychographyLoss::move_windows"};
  arguments.require(options_.refine_positions, "options.refine_positions", "true when the plan is made",
                    "false");
  arguments.shape("positions", positions, {count(), 2});
  scan_.move_windows(space, positions, arguments);
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographyLoss<ExecutionSpace, Real, Storage>::set_windows(
    const ExecutionSpace& space, const std::vector<int>& first,
    const Array<const double, Memory>& positions) {
  const Impl::Arguments arguments{"PtychographyLoss::set_windows"};
  arguments.require(options_.refine_positions, "options.refine_positions", "true when the plan is made",
                    "false");
  arguments.shape("positions", positions, {count(), 2});
  scan_.set_windows(space, first, positions, arguments);
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographyLoss<ExecutionSpace, Real, Storage>::evaluate(const ExecutionSpace& space,
                                                               const Array<const Complex, Memory>& object,
                                                               const Array<const Complex, Memory>& probe,
                                                               const Outputs& outputs,
                                                               const Array<const int, Memory>& subset) const {
  evaluate(space, Inputs{.object = object, .probe = probe}, outputs, subset);
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographyLoss<ExecutionSpace, Real, Storage>::evaluate(const ExecutionSpace& space,
                                                               const Inputs& inputs, const Outputs& outputs,
                                                               const Array<const int, Memory>& subset) const {
  Impl::check_evaluate({"PtychographyLoss::evaluate"}, measured_, options_, count(),
                       plan_.store().set_patterns(), inputs, outputs, subset);
  Kokkos::Profiling::ScopedRegion profile("Bracewell::PtychographyLoss::evaluate");
  plan_.evaluate(space, scan_, options_, inputs, outputs, subset.data, used(subset));
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographyLoss<ExecutionSpace, Real, Storage>::prefetch(const Array<const int, Memory>& subset) const {
  Impl::check_subset(Impl::Arguments{"PtychographyLoss::prefetch"}, subset, count());
  plan_.store().prefetch(subset.data, used(subset));
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographyLoss<ExecutionSpace, Real, Storage>::overlap(const ExecutionSpace& space,
                                                              const Array<const Complex, Memory>& a,
                                                              const Array<const Complex, Memory>& b,
                                                              const Array<Complex, Memory>& sum,
                                                              const Array<const int, Memory>& subset) const {
  const Impl::Arguments arguments{"PtychographyLoss::overlap"};
  Impl::check_probe(arguments, "a", a, measured_);
  Impl::check_probe(arguments, "b", b, measured_);
  arguments.shape("sum", sum, {measured_.object[0], measured_.object[1]});
  Impl::check_subset(arguments, subset, count());
  arguments.disjoint({{"sum", sum}}, {{"a", a}, {"b", b}, {"subset", subset}});
  if (used(subset) == 0)
    return Impl::fill(space, "Bracewell::PtychographyLoss::zero", sum.data, sum.size());
  plan_.overlap(space, scan_, measured_.modes, a.data, b.data, sum.data, subset.data, used(subset));
}

template <class ExecutionSpace, class Real, class Storage>
void PtychographyLoss<ExecutionSpace, Real, Storage>::transmission(
    const ExecutionSpace& space, const Array<const Complex, Memory>& object,
    const Array<Complex, Memory>& sum, const Array<const int, Memory>& subset) const {
  const Impl::Arguments arguments{"PtychographyLoss::transmission"};
  arguments.shape("object", object, {measured_.object[0], measured_.object[1]});
  arguments.shape("sum", sum, {measured_.probe, measured_.probe});
  Impl::check_subset(arguments, subset, count());
  arguments.disjoint({{"sum", sum}}, {{"object", object}, {"subset", subset}});
  if (used(subset) == 0)
    return Impl::fill(space, "Bracewell::PtychographyLoss::zero", sum.data, sum.size());
  plan_.transmission(space, scan_, object.data, sum.data, subset.data, used(subset));
}

template <class ExecutionSpace, class Real, class Storage>
template <class Count, class From>
void PtychographyLoss<ExecutionSpace, Real, Storage>::set(const ExecutionSpace& space, std::int64_t first,
                                                          const Array<const Count, From>& patterns,
                                                          const Array<const Real, Memory>& weights) {
  using Given = Kokkos::View<const Count***, Kokkos::LayoutRight, From, Kokkos::MemoryUnmanaged>;
  const Impl::Arguments arguments{"PtychographyLoss::set_patterns"};
  const auto& extents = patterns.extents;
  Impl::check_patterns(arguments, measured_, options_.weights, count(), first, patterns, weights);
  if (extents[0] == 0)
    return;
  Kokkos::Profiling::ScopedRegion region("Bracewell::PtychographyLoss::set_patterns");
  const std::int64_t invalid =
      plan_.store().set(space, first, Given(patterns.data, extents[0], extents[1], extents[2]), weights);
  if (invalid != std::numeric_limits<std::int64_t>::max())
    arguments.refuse("patterns", "finite intensities %s, found others in pattern %lld",
                     options_.weights == PixelWeights::Mask ? ">= 0 and weights 0 or 1" : "and weights >= 0",
                     static_cast<long long>(invalid));
}

#define BRACEWELL_PTYCHOGRAPHY_LOSS_OF(Extern, Space, Real, Storage, Count)                                  \
  Extern template void PtychographyLoss<Space, Real, Storage>::set(                                          \
      const Space&, std::int64_t, const Array<const Count, Space::memory_space>&,                            \
      const Array<const Real, Space::memory_space>&);
#define BRACEWELL_INSTANCES_PTYCHOGRAPHY_LOSS(Extern, Space, Real)                                           \
  Extern template class PtychographyLoss<Space, Real, Real>;                                                 \
  BRACEWELL_PTYCHOGRAPHY_LOSS_OF(Extern, Space, Real, Real, float)                                           \
  BRACEWELL_PTYCHOGRAPHY_LOSS_OF(Extern, Space, Real, Real, double)                                          \
  BRACEWELL_PTYCHOGRAPHY_LOSS_OF(Extern, Space, Real, Real, std::uint16_t)                                   \
  BRACEWELL_PTYCHOGRAPHY_LOSS_OF(Extern, Space, Real, Real, int)
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_PTYCHOGRAPHY_LOSS)
#define BRACEWELL_INSTANCES_PTYCHOGRAPHY_LOSS_HALF(Extern, Space, Real)                                      \
  Extern template class PtychographyLoss<Space, Real, Half>;                                                 \
  BRACEWELL_PTYCHOGRAPHY_LOSS_OF(Extern, Space, Real, Half, float)                                           \
  BRACEWELL_PTYCHOGRAPHY_LOSS_OF(Extern, Space, Real, Half, double)                                          \
  BRACEWELL_PTYCHOGRAPHY_LOSS_OF(Extern, Space, Real, Half, std::uint16_t)                                   \
  BRACEWELL_PTYCHOGRAPHY_LOSS_OF(Extern, Space, Real, Half, int)
BRACEWELL_DECLARE_FLOAT(BRACEWELL_INSTANCES_PTYCHOGRAPHY_LOSS_HALF)

} // namespace Bracewell
