// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/ptychography/detail/fused_plan.hpp>
#include <bracewell/ptychography/detail/general_plan.hpp>
#include <bracewell/ptychography/detail/reduced_grid.hpp>
#include <bracewell/ptychography/detail/store_patterns.hpp>

#include <limits>
#include <optional>
#include <type_traits>

namespace Bracewell {

/// What PtychographyLoss::evaluate writes; what is not given is not computed. All are overwritten.
template <class Real, class MemorySpace>
struct PtychographyOutputs {
  Array<double, MemorySpace> loss = {};                           ///< one number, a View of rank 0 or [1]
  Array<double, MemorySpace> pattern_losses = {};                 ///< [patterns]: their sum is the loss
  Array<Kokkos::complex<Real>, MemorySpace> object_gradient = {}; ///< [rows, columns]
  Array<Kokkos::complex<Real>, MemorySpace> probe_gradient = {};  ///< [m, m] or [modes, m, m]
};

/// Plan of the loss of a ptychographic model against measured patterns, and of its exact gradients:
///   psi_jl(r) = O(y_j + r) p_l(r), Psi = far- or near-field propagation (Propagator), I_j = sum_l
///   |Psi_jl|^2, J_j = I_j C / mean(I_j) and t_j = measured C / mean(measured) (PatternScale::PerPattern) or
///   J = I, L = 1 / (N n^2) sum_j sum_k w_jk l(J_jk, t_jk)  (PatternLoss; means are weighted with w as well).
/// N: patterns of the call. Patterns without counts have weight 0. Gradients are dL/dRe + i dL/dIm.
///
/// Storage is the type in which targets (and, in the fused path, waves between its steps) are stored: Real,
/// or Kokkos::Experimental::half_t with Real = float, whose gradients are within 1e-3 of those in double.
///
/// Movable. evaluate is const, asynchronous, allocates nothing and uses the plan's workspace: one call at a
/// time. The same input gives the same bits, unless object_gradient is Strategy::Atomic.
template <class ExecutionSpace, class Real, class Storage = Real>
class PtychographyLoss {
  static_assert(std::is_same_v<Real, float> || std::is_same_v<Real, double>,
                "Bracewell::PtychographyLoss: Real is float or double.");
  static_assert(
      std::is_same_v<Storage, Real> ||
          (std::is_same_v<Storage, Kokkos::Experimental::half_t> && std::is_same_v<Real, float>),
      "Bracewell::PtychographyLoss: Storage is Real, or Kokkos::Experimental::half_t with Real = float.");
  using Complex = Kokkos::complex<Real>;
  using Memory = typename ExecutionSpace::memory_space;
  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  template <class Value>
  using View = Kokkos::View<Value, Kokkos::LayoutRight, Memory>;

public:
  using Outputs = PtychographyOutputs<Real, Memory>;

  /// @param positions  View [N, 2] of (row, column), see ScanPositions
  /// @throws Error on shapes and options out of range, windows that leave the object, and combinations that
  ///   do not exist: a reduced grid needs least squares per pattern without weights in the far field
  template <class PositionsView>
  PtychographyLoss(const ExecutionSpace& space, const PtychographyShape& sizes,
                   const PositionsView& positions, const PtychographyOptions& settings = {})
      : options(settings), measured(check(sizes, settings)), shape(compared(sizes, settings)),
        scan(space, positions, sizes.object, sizes.probe),
        values(make<Storage*>(space, "targets", scan.count() * pixels())),
        means(make<Real*>(space, "means", scan.count())), units(make<Real*>(space, "units", scan.count())),
        losses(make<double*>(space, "losses", scan.count())),
        slots(make<int*>(space, "slots", scan.count())) {
    if (use_fused())
      fused.emplace(space, scan.count(), shape, settings);
    else
      general.emplace(space, scan, shape, settings);
    if (settings.weights == PixelWeights::PerPixel)
      pixel_weights = make<Real*>(space, "pixel_weights", scan.count() * pixels());
    if (settings.reduced_grid)
      constants = make<double*>(space, "constants", scan.count());
    const std::int64_t window = std::int64_t(shape.probe) * shape.probe * shape.modes;
    slice_count = Impl::is_host<ExecutionSpace> ? 1 : std::clamp<std::int64_t>((1 << 18) / window, 1, 256);
    slices = make<Complex*>(space, "slices", slice_count * window);
    Kokkos::deep_copy(space, units, Real(0));
    Kokkos::deep_copy(space, means, Real(0)); // patterns that were not set do not count
  }

  /// Patterns of the plan.
  std::int64_t count() const { return scan.count(); }
  /// Whether one kernel holds a pattern on the chip from the exit wave to its gradient.
  bool is_fused() const { return bool(fused); }
  /// Pixels per side of the grid on which patterns are compared.
  int compared_detector() const { return shape.detector; }
  /// Patterns without counts among those that were set; they have weight 0.
  std::int64_t empty_patterns() const { return empty; }
  /// Bytes that the plan holds.
  std::size_t memory_bytes() const {
    return scan.memory_bytes() + (fused ? fused->memory_bytes() : general->memory_bytes()) +
           values.size() * sizeof(Storage) + (means.size() + units.size()) * sizeof(Real) +
           losses.size() * sizeof(double) + slots.size() * sizeof(int) + pixel_weights.size() * sizeof(Real) +
           constants.size() * sizeof(double) + slices.size() * sizeof(Complex);
  }

  /// Stores measured intensities of patterns first, first + 1, ...; waits until they are stored.
  /// @param patterns  View [K, n, n] of any real or integer type in any memory, zero frequency at [0, 0]
  /// @param weights   View of Real [n, n] or [K, n, n], >= 0, as options.weights says
  /// @throws Error on shapes that do not fit, weights that are not expected or missing, and where a pixel
  ///   that counts is negative or not finite (after storing)
  template <class PatternsView>
  void set_patterns(const ExecutionSpace& space, std::int64_t first, const PatternsView& patterns,
                    const Array<const Real, Memory>& weights = {}) {
    static_assert(PatternsView::rank() == 3,
                  "Bracewell::PtychographyLoss: patterns must be a View [K, n, n].");
    const std::int64_t given = static_cast<std::int64_t>(patterns.extent(0));
    check_patterns(first, given, patterns.extent(1), patterns.extent(2), weights);
    Kokkos::View<Impl::PatternCounts, Memory> found(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::PtychographyLoss::found"));
    Impl::PatternCounts host{std::numeric_limits<std::int64_t>::max(), 0};
    Kokkos::View<Impl::PatternCounts, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> host_view(&host);
    Kokkos::deep_copy(space, found, host_view);
    const std::int64_t group = std::clamp<std::int64_t>((std::int64_t(2) << 20) / measured_pixels(), 1,
                                                        std::max<std::int64_t>(given, 1));
    std::optional<Impl::GridReduction<ExecutionSpace, Real>> reduction;
    if (options.reduced_grid)
      reduction.emplace(space, measured.detector, shape.detector, shape.probe, group);
    for (std::int64_t begin = 0; begin < given; begin += group) {
      const auto part = Kokkos::subview(patterns, std::pair(begin, std::min(given, begin + group)),
                                        Kokkos::ALL, Kokkos::ALL);
      const auto device = Kokkos::create_mirror_view_and_copy(Memory(), part);
      const std::int64_t stride = weights.rank == 3 ? measured_pixels() : 0;
      const Real* const part_weights = weights ? weights.data + begin * stride : nullptr;
      if (options.reduced_grid)
        store_reduced(space, *reduction, first + begin, device, found.data());
      else
        store<Storage>(space, device, part_weights, stride, first + begin, first + begin, layout(),
                       values.data(), found.data());
      space.fence("Bracewell::PtychographyLoss::set_patterns");
    }
    Kokkos::deep_copy(space, host_view, found);
    space.fence("Bracewell::PtychographyLoss::set_patterns");
    empty += host.empty;
    if (host.invalid < std::numeric_limits<std::int64_t>::max())
      Impl::fail("PtychographyLoss", "patterns", "finite intensities and weights >= 0",
                 "others in pattern " + std::to_string(host.invalid));
  }

  /// Loss and gradients.
  /// @param object   View of Kokkos::complex<Real> [rows, columns]
  /// @param probe    View [m, m] or [modes, m, m]
  /// @param outputs  what to compute
  /// @param subset   View of int [K], numbers of the patterns to use, each at most once; all where not given.
  ///                 Not checked, as it lies on the device
  /// @throws Error on shapes that do not fit
  void evaluate(const ExecutionSpace& space, const Array<const Complex, Memory>& object,
                const Array<const Complex, Memory>& probe, const Outputs& outputs,
                const Array<const int, Memory>& subset = {}) const {
    const std::int64_t used = subset ? subset.size() : count();
    check_arguments(object, probe, outputs, subset);
    Kokkos::Profiling::ScopedRegion profile("Bracewell::PtychographyLoss::evaluate");
    if (used == 0) {
      zero(space, outputs.loss), zero(space, outputs.object_gradient), zero(space, outputs.probe_gradient);
      return;
    }
    Impl::visit(options.loss, [&](auto kind) {
      evaluate_groups<decltype(kind)::value>(space, object, probe, outputs, subset.data, used);
    });
  }

private:
  static PtychographyShape check(const PtychographyShape& shape, const PtychographyOptions& options) {
    const char* name = "PtychographyLoss";
    const auto require = [&](bool holds, const char* argument, const std::string& expected,
                             const std::string& found) {
      if (!holds)
        Impl::fail(name, argument, expected, found);
    };
    require(shape.detector >= 2 && shape.detector <= 8192, "shape.detector", "a size of 2 to 8192",
            std::to_string(shape.detector));
    require(shape.probe >= 1 && shape.probe <= shape.detector, "shape.probe",
            "a size of 1 to " + std::to_string(shape.detector), std::to_string(shape.probe));
    require(shape.modes >= 1 && shape.modes <= 64, "shape.modes", "1 to 64 modes",
            std::to_string(shape.modes));
    require(!options.fresnel_number || shape.probe == shape.detector, "shape.probe",
            "as many pixels as the detector in the near field (" + std::to_string(shape.detector) + ")",
            std::to_string(shape.probe));
    Impl::require_positive(name, "options.counts", options.counts);
    Impl::require_positive(name, "options.background", options.background);
    require(!options.reduced_grid ||
                (options.loss == PatternLoss::LeastSquares && options.scale == PatternScale::PerPattern &&
                 options.weights == PixelWeights::None && !options.fresnel_number),
            "options.reduced_grid", "least squares on patterns scaled one by one, far field, no weights",
            "other options");
    require(options.object_gradient == Strategy::Owned || options.object_gradient == Strategy::Atomic,
            "options.object_gradient", "Strategy::Owned or Strategy::Atomic", "another");
    return shape;
  }

  /// The shape with the detector on which patterns are compared.
  static PtychographyShape compared(PtychographyShape shape, const PtychographyOptions& options) {
    if (options.reduced_grid)
      shape.detector = std::min(shape.detector, static_cast<int>(next_fast_size(2 * shape.probe - 1, true)));
    return shape;
  }

  bool use_fused() const {
    const bool can = Impl::FusedPlan<ExecutionSpace, Real, Storage>::knows(shape) && shape.modes == 1 &&
                     !scan.subpixel() && !options.fresnel_number &&
                     options.weights != PixelWeights::PerPixel &&
                     !(options.weights == PixelWeights::Mask && options.scale == PatternScale::PerPattern);
    expect("options.path", can || options.path != PatternPath::Fused,
           "a problem that the fused kernel can do (one mode, whole positions, far field, unscaled where "
           "masked, a "
           "size that it knows) or another path",
           "PatternPath::Fused");
    return can && options.path != PatternPath::General;
  }

  template <class Value>
  static View<Value> make(const ExecutionSpace& space, const std::string& name, std::int64_t size) {
    return View<Value>(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::PtychographyLoss::" + name), size);
  }

  template <class Value>
  static void zero(const ExecutionSpace& space, const Array<Value, Memory>& array) {
    if (array)
      Kokkos::parallel_for("Bracewell::PtychographyLoss::zero", Range(space, 0, array.size()),
                           Impl::Fill<Value>{array.data, Value(0)});
  }

  std::int64_t pixels() const { return std::int64_t(shape.detector) * shape.detector; }
  std::int64_t measured_pixels() const { return std::int64_t(measured.detector) * measured.detector; }

  static std::string text(std::initializer_list<std::int64_t> axes) {
    std::string list;
    for (const std::int64_t size : axes)
      list += (list.empty() ? "[" : ", ") + std::to_string(size);
    return list + "]";
  }

  static void expect(const char* argument, bool holds, const std::string& expected,
                     const std::string& found) {
    if (!holds)
      Impl::fail("PtychographyLoss", argument, expected, found);
  }

  void check_patterns(std::int64_t first, std::int64_t given, std::int64_t rows, std::int64_t columns,
                      const Array<const Real, Memory>& weights) const {
    const std::int64_t n = measured.detector;
    expect("patterns", rows == n && columns == n, text({given, n, n}), text({given, rows, columns}));
    expect("first", first >= 0 && given <= count() - first,
           "patterns within the " + std::to_string(count()) + " of the plan",
           std::to_string(first) + " to " + std::to_string(first + given - 1));
    expect("weights", bool(weights) == (options.weights != PixelWeights::None),
           options.weights == PixelWeights::None ? "none, as options.weights says"
                                                 : "a View, as options.weights says",
           weights ? weights.shape() : "none");
    const bool shared = weights.rank == 2 && weights.extents[0] == n && weights.extents[1] == n;
    const bool each = weights.rank == 3 && weights.extents[0] == given && weights.extents[1] == n &&
                      weights.extents[2] == n;
    expect("weights", !weights || shared || each, text({n, n}) + " or " + text({given, n, n}),
           weights.shape());
  }

  void check_arguments(const Array<const Complex, Memory>& object, const Array<const Complex, Memory>& probe,
                       const Outputs& outputs, const Array<const int, Memory>& subset) const {
    const auto is_object = [&](const auto& array) {
      return array.rank == 2 && array.extents[0] == shape.object[0] && array.extents[1] == shape.object[1];
    };
    const auto is_probe = [&](const auto& array) {
      return (array.rank == 3 ? array.extents[0] == shape.modes : array.rank == 2 && shape.modes == 1) &&
             array.extents[array.rank - 1] == shape.probe && array.extents[array.rank - 2] == shape.probe;
    };
    const std::string objects = text({shape.object[0], shape.object[1]});
    const std::string probes = text({shape.modes, shape.probe, shape.probe});
    expect("object", object && is_object(object), objects, object.shape());
    expect("probe", probe && is_probe(probe), probes, probe.shape());
    expect("outputs.object_gradient", !outputs.object_gradient || is_object(outputs.object_gradient), objects,
           outputs.object_gradient.shape());
    expect("outputs.probe_gradient", !outputs.probe_gradient || is_probe(outputs.probe_gradient), probes,
           outputs.probe_gradient.shape());
    expect("subset", !subset || (subset.rank == 1 && subset.size() <= count()),
           "at most " + std::to_string(count()) + " patterns", subset.shape());
    const std::int64_t used = subset ? subset.size() : count();
    expect("outputs.loss", !outputs.loss || outputs.loss.size() == 1, "one number", outputs.loss.shape());
    expect("outputs.pattern_losses", !outputs.pattern_losses || outputs.pattern_losses.size() == used,
           text({used}), outputs.pattern_losses.shape());
    expect("outputs.object_gradient", outputs.object_gradient.data != object.data || !outputs.object_gradient,
           "memory of its own", "the object");
    expect("outputs.probe_gradient", outputs.probe_gradient.data != probe.data || !outputs.probe_gradient,
           "memory of its own", "the probe");
  }

  Impl::PatternLayout layout() const { return fused ? fused->layout() : Impl::PatternLayout{shape.detector}; }

  /// Patterns as targets `at`, at + 1 ... of `to`; their means as those of patterns first, first + 1 ...
  template <class Stored, class DeviceView>
  void store(const ExecutionSpace& space, const DeviceView& patterns, const Real* weights,
             std::int64_t weights_stride, std::int64_t first, std::int64_t at,
             const Impl::PatternLayout& where, Stored* to, Impl::PatternCounts* found) const {
    using Count = typename DeviceView::non_const_value_type;
    using Store = Impl::StorePatterns<ExecutionSpace, Real, Stored, Count>;
    const Impl::TargetStorage<Real, Stored> target{
        Impl::TargetStorage<Real, Stored>::holds_root(options.loss)};
    Kokkos::parallel_for(
        "Bracewell::PtychographyLoss::store",
        Kokkos::TeamPolicy<ExecutionSpace>(space, static_cast<int>(patterns.extent(0)), +Store::team_size),
        Store{patterns.data(), weights, weights_stride, first, at, measured.detector, scaled_counts(), where,
              target, to, means.data(), units.data(), pixel_weights.data(), found});
  }

  /// The same through the reduced grid, a group at a time.
  template <class DeviceView>
  void store_reduced(const ExecutionSpace& space, const Impl::GridReduction<ExecutionSpace, Real>& reduction,
                     std::int64_t first, const DeviceView& patterns, Impl::PatternCounts* found) const {
    store<Real>(space, patterns, nullptr, 0, first, 0, {measured.detector}, reduction.full_targets(), found);
    reduction.store(space, first, static_cast<std::int64_t>(patterns.extent(0)), layout(), values.data(),
                    constants.data());
  }

  /// C, or 0 where patterns are not scaled.
  Real scaled_counts() const {
    return options.scale == PatternScale::None ? Real(0) : static_cast<Real>(options.counts);
  }

  template <PatternLoss kind>
  void evaluate_groups(const ExecutionSpace& space, const Array<const Complex, Memory>& object,
                       const Array<const Complex, Memory>& probe, const Outputs& outputs, const int* subset,
                       std::int64_t used) const {
    const bool gradients = outputs.object_gradient || outputs.probe_gradient;
    const Real norm = Real(1) / (Real(used) * Real(pixels()));
    double* const per_pattern = outputs.pattern_losses ? outputs.pattern_losses.data : losses.data();
    const Impl::Targets<Real, Storage> targets{values.data(),
                                               means.data(),
                                               units.data(),
                                               pixel_weights.data(),
                                               constants.data(),
                                               scaled_counts(),
                                               options.weights == PixelWeights::Mask};
    const Real background = static_cast<Real>(options.background);
    const Impl::Probes<Real> given{probe.data, 0, shape.modes};
    if (subset && outputs.object_gradient) {
      Kokkos::parallel_for("Bracewell::PtychographyLoss::no_slots", Range(space, 0, count()),
                           Impl::Fill<int>{slots.data(), -1});
      Kokkos::parallel_for("Bracewell::PtychographyLoss::slots", Range(space, 0, used),
                           Impl::FillSlots{subset, slots.data()});
    }
    if (options.object_gradient == Strategy::Atomic)
      zero(space, outputs.object_gradient);
    const std::int64_t group = fused ? fused->group_size() : general->group_size();
    for (std::int64_t first = 0; first < used; first += group) {
      const Impl::Selection selection{subset, first, std::min(group, used - first)};
      const auto add = [&](const auto& probes, const auto& waves) {
        if (outputs.object_gradient)
          add_object_gradient(space, selection, probes, waves, outputs.object_gradient.data);
        if (outputs.probe_gradient)
          add_probe_gradient(space, selection, object.data, given, waves, outputs.probe_gradient.data);
      };
      if (fused) {
        add(given, fused->compute(space, scan.device(), object.data, probe.data, selection, targets, options,
                                  norm, per_pattern + first, gradients));
      } else {
        const auto probes = general->shifted_probes(space, scan, given, selection);
        add(probes,
            general->template compute<kind>(space, scan.device(), object.data, probes, selection, targets,
                                            background, norm, per_pattern + first, gradients));
      }
    }
    if (outputs.loss) {
      using Sum = Impl::SumLosses<ExecutionSpace>;
      Kokkos::parallel_for("Bracewell::PtychographyLoss::sum_losses",
                           Kokkos::TeamPolicy<ExecutionSpace>(space, 1, +Sum::team_size),
                           Sum{per_pattern, used, outputs.loss.data});
    }
  }

  template <class Stored>
  void add_object_gradient(const ExecutionSpace& space, const Impl::Selection& selection,
                           const Impl::Probes<Real>& probes, const Impl::WaveGradients<Real, Stored>& waves,
                           Complex* gradient) const {
    if (options.object_gradient == Strategy::Atomic) {
      Kokkos::parallel_for(
          "Bracewell::PtychographyLoss::scatter_object_gradient",
          Range(space, 0, selection.count * shape.probe * shape.probe),
          Impl::ScatterObjectGradient<Real, Stored>{scan.device(), selection, probes, waves, gradient});
      return;
    }
    using Gather = Impl::GatherObjectGradient<ExecutionSpace, Real, Stored>;
    Impl::launch_gather(space, "Bracewell::PtychographyLoss::gather_object_gradient",
                        Gather{scan.device(), scan.tiles(), selection,
                               selection.numbers ? slots.data() : nullptr, probes, waves, gradient,
                               selection.first > 0});
  }

  template <class Stored>
  void add_probe_gradient(const ExecutionSpace& space, const Impl::Selection& selection,
                          const Complex* object, const Impl::Probes<Real>& probes,
                          const Impl::WaveGradients<Real, Stored>& waves, Complex* gradient) const {
    const bool accumulate = selection.first > 0;
    if constexpr (std::is_same_v<Stored, Real>)
      if (general &&
          general->probe_gradient(space, scan, object, probes.modes, selection, waves, gradient, accumulate))
        return;
    const std::int64_t window = slices.size() / slice_count;
    const std::int64_t per_slice = (selection.count + slice_count - 1) / slice_count;
    const std::int64_t used_slices = (selection.count + per_slice - 1) / per_slice;
    Kokkos::parallel_for("Bracewell::PtychographyLoss::probe_gradient_slices",
                         Range(space, 0, used_slices * window),
                         Impl::SliceProbeGradient<Real, Stored>{scan.device(), selection, object, probes,
                                                                waves, slices.data(), per_slice});
    Kokkos::parallel_for("Bracewell::PtychographyLoss::probe_gradient", Range(space, 0, window),
                         Impl::SumSlices<Real>{slices.data(), gradient, window, used_slices, accumulate});
  }

  PtychographyOptions options;
  PtychographyShape measured, shape; ///< as given, and with the detector on which patterns are compared
  ScanPositions<ExecutionSpace> scan;
  std::optional<Impl::FusedPlan<ExecutionSpace, Real, Storage>> fused;
  std::optional<Impl::GeneralPatterns<ExecutionSpace, Real, Storage>> general;
  View<Storage*> values;
  View<Real*> means, units, pixel_weights;
  View<double*> constants, losses;
  View<int*> slots;
  std::int64_t slice_count = 1, empty = 0;
  View<Complex*> slices;
};

} // namespace Bracewell
