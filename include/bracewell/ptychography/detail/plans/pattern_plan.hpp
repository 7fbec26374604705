// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/patterns/pattern_sums.hpp>
#include <bracewell/ptychography/detail/scan_store.hpp>
#include <bracewell/ptychography/detail/sums/exit_waves.hpp>
#include <bracewell/ptychography/detail/sums/object_gradient.hpp>
#include <bracewell/ptychography/detail/sums/shifted_probes.hpp>
#include <bracewell/ptychography/detail/targets.hpp>
#include <bracewell/ptychography/inputs.hpp>
#include <bracewell/ptychography/options.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>

namespace Bracewell::Impl {

/// Sums the gradients of object and probe over groups of patterns, and holds what this takes.
template <class Space, class T>
class GradientSums {
  using Complex = Kokkos::complex<T>;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;

public:
  GradientSums(const Space& space, std::int64_t count, const PtychographyShape& shape)
      : window_(std::int64_t(shape.probe) * shape.probe * shape.modes),
        portion_count_(count_portions(window_)),
        slots_(device_vector<int>(space, "Bracewell::PtychographyLoss::slots", count)),
        portions_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::portions",
                                         portion_count_ * window_)) {}

  std::size_t memory_bytes() const { return bytes_of(slots_, portions_); }

  static std::size_t bytes_needed(std::int64_t count, const PtychographyShape& shape) {
    const std::int64_t window = std::int64_t(shape.probe) * shape.probe * shape.modes;
    return sizeof(int) * static_cast<std::size_t>(count) +
           sizeof(Complex) * static_cast<std::size_t>(count_portions(window) * window);
  }

  /// What the gradient of the object needs before the first group. `subset`: null for all patterns.
  void begin_object(const Space& space, const int* subset, std::int64_t used) const {
    if (!subset)
      return;
    launch_kernel("Bracewell::PtychographyLoss::no_slots", Range(space, 0, slots_.size()),
                  Fill<int>{slots_.data(), -1});
    launch_kernel("Bracewell::PtychographyLoss::slots", Range(space, 0, used),
                  FillSlots{subset, slots_.data()});
  }

  /// @tparam block     see GatherObjectGradient
  /// @param probes     of the selection
  /// @param held       see GatherObjectGradient
  template <int block = 0, class Stored>
  void add_object(const Space& space, const Scan& scan, const ScanTiles& tiles, const Selection& selection,
                  const Probes<T>& probes, const WaveGradients<T, Stored>& waves, Complex* gradient,
                  const HeldRows* held = nullptr) const {
    gather_object_gradient(space, "Bracewell::PtychographyLoss::gather_object_gradient",
                           GatherObjectGradient<Space, T, Stored, block>{
                               scan, tiles, selection, selection.patterns ? slots_.data() : nullptr, probes,
                               waves, gradient, selection.first > 0, held});
  }

  /// @param probes  as given: the same for all patterns
  /// @param waves   WaveGradients, or ObjectWaves
  template <class Waves>
  void add_probe(const Space& space, const Scan& scan, const Selection& selection, const Complex* object,
                 const Probes<T>& probes, const Waves& waves, Complex* gradient) const {
    const std::int64_t window = std::int64_t(scan.probe) * scan.probe * probes.modes; // window_, or less
    const std::int64_t per_portion = (selection.count + portion_count_ - 1) / portion_count_;
    const std::int64_t used_portions = (selection.count + per_portion - 1) / per_portion;
    launch_kernel(
        "Bracewell::PtychographyLoss::probe_gradient_portions", Range(space, 0, used_portions * window),
        SumProbeGradient<T, Waves>{scan, selection, object, probes, waves, portions_.data(), per_portion});
    launch_kernel("Bracewell::PtychographyLoss::probe_gradient", Range(space, 0, window),
                  AddPortions<T>{portions_.data(), gradient, window, used_portions, selection.first > 0});
  }

private:
  static std::int64_t count_portions(std::int64_t window) {
    return is_host<Space> ? 1
                          : std::clamp<std::int64_t>(PtychographyTuning::portion_values / window, 1,
                                                     PtychographyTuning::most_portions);
  }

  std::int64_t window_, portion_count_;
  Kokkos::View<int*, Space> slots_; ///< [patterns]: where in the subset each stands
  Kokkos::View<Complex*, Space> portions_;
};

/// What the plans of all paths share: types, and a call of PtychographyLoss::evaluate, which goes to a plan a group of
/// patterns at a time. A plan has
///   Plan(space, positions, shape, options), group_size(), memory_bytes(), static bytes_needed(space, positions, shape, options),
///   begin(call)     what all groups of a call need
///   evaluate(call)  the losses of the patterns of call.selection, and what these add to the gradients
template <class Space, class T, class Storage>
struct PatternPlan {
  using Complex = Kokkos::complex<T>;
  using Memory = typename Space::memory_space;
  template <class Value>
  using View = Kokkos::View<Value*, Space>;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  using Positions = ScanStore<Space>;
  using Shifted = ShiftedProbes<Space, T>;
  using Sum = SumBlocks<Space, T, Storage>;

  struct Call {
    const Space& space;
    const Positions& positions;
    const PtychographyOptions& options;
    const PtychographyInputs<T, Memory>& inputs;
    const PtychographyOutputs<T, Memory>& outputs;
    const GradientSums<Space, T>& sums;
    T norm; ///< 1 / (patterns of the mean times pixels)
    Selection selection{};
    Targets<T, Storage> targets{}; ///< of the selection
    double* losses = nullptr;      ///< of the selection

    /// Whether gradients are asked for that come from the spectra of each pattern's own probe.
    bool spectra_gradients() const {
      return outputs.relaxation_gradient || outputs.coefficient_gradient || outputs.position_gradient;
    }
    /// Whether gradients are asked for that come from the gradients of exit waves.
    bool wave_gradients() const {
      return outputs.object_gradient || outputs.probe_gradient || outputs.slice_shift_gradient ||
             spectra_gradients();
    }
  };
};

} // namespace Bracewell::Impl
