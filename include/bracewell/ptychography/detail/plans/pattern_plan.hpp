// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/ptychography/detail/patterns/pattern_sums.hpp>
#include <bracewell/ptychography/detail/scan_store.hpp>
#include <bracewell/ptychography/detail/sums/gradient_sums.hpp>
#include <bracewell/ptychography/detail/sums/shifted_probes.hpp>
#include <bracewell/ptychography/detail/targets.hpp>
#include <bracewell/ptychography/inputs.hpp>
#include <bracewell/ptychography/options.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

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
  using View = Kokkos::View<Value*, Kokkos::LayoutRight, Memory>;
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
      return outputs.object_gradient || outputs.probe_gradient || spectra_gradients();
    }
  };
};

} // namespace Bracewell::Impl
