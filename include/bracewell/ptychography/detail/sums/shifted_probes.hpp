// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/scan_store.hpp>
#include <bracewell/ptychography/detail/sums/exit_waves.hpp>
#include <bracewell/ptychography/detail/sums/probe_spectra.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>
#include <bracewell/ptychography/inputs.hpp>
#include <bracewell/ptychography/options.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace Bracewell::Impl {

/// What plans share where every pattern has a probe of its own, shifted or relaxed: where it stands, spectra of what it is
/// made of, and gradients from the spectra of conj(O) G. Empty where the probe is one for all.
template <class Space, class T>
class ShiftedProbes {
  using Complex = Kokkos::complex<T>;
  using Memory = typename Space::memory_space;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  using Transform = FFT<Space, 2, Complex, Complex>;
  using Inputs = PtychographyInputs<T, Memory>;
  using Outputs = PtychographyOutputs<T, Memory>;

public:
  /// Whether patterns have probes of their own.
  static bool needed(const ScanStore<Space>& positions, const PtychographyShape& shape,
                     const PtychographyOptions& options) {
    return positions.subpixel() || options.refine_positions || shape.relaxation > 0;
  }

  /// @param group  patterns at a time
  ShiftedProbes(const Space& space, const ScanStore<Space>& positions, const PtychographyShape& shape,
                const PtychographyOptions& options, std::int64_t group)
      : m_(shape.probe), modes_(shape.modes), relaxation_(shape.relaxation) {
    if (!needed(positions, shape, options))
      return;
    const int count = modes_ + relaxation_;
    spectra_ =
        device_vector<Complex>(space, "Bracewell::PtychographyLoss::spectra", std::int64_t(count) * m_ * m_);
    phases_ = device_vector<Complex>(space, "Bracewell::PtychographyLoss::phases", 2 * group * m_);
    if (options.refine_positions || !positions.subpixel())
      moved_ = device_vector<double>(space, "Bracewell::PtychographyLoss::fractions", 2 * positions.count());
    const std::array<int, 2> window{m_, m_};
    one_.emplace(space, window, count, FFTOptions{});
    one_back_.emplace(space, window, count, FFTOptions{.direction = FFTDirection::Backward});
  }

  explicit operator bool() const { return one_.has_value(); }

  std::size_t memory_bytes() const {
    return bytes_of(spectra_, phases_, moved_) +
           (one_ ? one_->memory_bytes() + one_back_->memory_bytes() : 0);
  }

  /// What memory_bytes() would be.
  static std::size_t bytes_needed(const Space& space, const ScanStore<Space>& positions,
                                  const PtychographyShape& shape, const PtychographyOptions& options,
                                  std::int64_t group) {
    if (!needed(positions, shape, options))
      return 0;
    const int m = shape.probe, spectra = shape.modes + shape.relaxation;
    const bool corners = options.refine_positions || !positions.subpixel();
    return sizeof(Complex) * static_cast<std::size_t>(std::int64_t(spectra) * m * m + 2 * group * m) +
           sizeof(double) * static_cast<std::size_t>(corners ? 2 * positions.count() : 0) +
           Transform::bytes_needed(space, {m, m}, spectra) +
           Transform::bytes_needed(space, {m, m}, spectra, {.direction = FFTDirection::Backward});
  }

  /// What all groups of a call need: where the probes stand.
  void begin(const Space& space, const ScanStore<Space>& positions, const Inputs& inputs) const {
    if (moved_.size() > 0)
      launch_kernel("Bracewell::PtychographyLoss::fractions", Range(space, 0, moved_.size()),
                    ProbeFractions{inputs.positions.data, positions.fractions(), positions.device().positions,
                                   moved_.data()});
  }

  /// [N, 2]; null where there are none.
  const double* fractions(const ScanStore<Space>& positions) const {
    return moved_.size() > 0 ? moved_.data() : positions.fractions();
  }

  /// Spectra of the probes of a selection.
  /// @param wrapped  shifts them by their windows' corners, too
  ShiftedSpectra<T> spectra(const Space& space, const ScanStore<Space>& positions, const Inputs& inputs,
                            const Selection& selection, bool wrapped = false) const {
    if (relaxation_ == 0) {
      one_->execute(space, array_of<Memory>(inputs.probe.data, modes_, m_, m_), spectra());
    } else {
      sum(space, inputs.probe.data, spectra_.data(), elements(), false);
      sum(space, inputs.relaxation.data, spectra_.data() + elements(),
          static_cast<std::int64_t>(spectra_.size()) - elements(), false);
      one_->execute(space, spectra(), spectra());
    }
    launch_kernel("Bracewell::PtychographyLoss::shift_phases", Range(space, 0, selection.count * 2 * m_),
                  ShiftPhases<T>{fractions(positions), wrapped ? positions.device().positions : nullptr,
                                 selection, phases_.data(), m_});
    return {{phases_.data(), selection, m_, modes_}, spectra_.data(), inputs.coefficients.data, relaxation_};
  }

  /// Factor of ShiftGradient for the spectra of probes.
  double position_factor() const { return 2 * Kokkos::numbers::pi / std::pow(m_, 3); }

  /// Gradients of what the probes of the selection are made of, but for positions; `spectra` go.
  /// @param terms  DFT(conj(O) G) [patterns, modes, m, m]
  void add_gradients(const Space& space, const ShiftedSpectra<T>& spectra, const Inputs& inputs,
                     const Outputs& outputs, const Complex* terms) const {
    const Selection& selection = spectra.ramp.selection;
    if (outputs.coefficient_gradient) {
      using Gradient = CoefficientGradient<Space, T>;
      launch_teams("Bracewell::PtychographyLoss::coefficient_gradient", space, selection.count,
                   Gradient{spectra, terms, outputs.coefficient_gradient.data});
    }
    if (!outputs.probe_gradient && !outputs.relaxation_gradient)
      return;
    launch_kernel(
        "Bracewell::PtychographyLoss::shift_back", Range(space, 0, spectra_.size()),
        SumShiftedBack<T>{spectra.ramp, terms, inputs.coefficients.data, relaxation_, spectra_.data()});
    add_sums(space, outputs, selection.first > 0);
  }

  /// The gradient of the probe, from sums of spectra [modes, m, m].
  Complex* sums() const { return spectra_.data(); }
  void add_sums(const Space& space, const Outputs& outputs, bool accumulate) const {
    one_back_->execute(space, spectra(), spectra());
    if (outputs.probe_gradient)
      sum(space, spectra_.data(), outputs.probe_gradient.data, elements(), accumulate);
    if (outputs.relaxation_gradient)
      sum(space, spectra_.data() + elements(), outputs.relaxation_gradient.data,
          static_cast<std::int64_t>(spectra_.size()) - elements(), accumulate);
  }

private:
  Array<Complex, Memory> spectra() const {
    return array_of<Memory>(spectra_.data(), modes_ + relaxation_, m_, m_);
  }
  std::int64_t elements() const { return std::int64_t(modes_) * m_ * m_; }

  /// to = from, or to += from.
  void sum(const Space& space, const Complex* from, Complex* to, std::int64_t size, bool accumulate) const {
    launch_kernel("Bracewell::PtychographyLoss::probe_gradient", Range(space, 0, size),
                  AddPortions<T>{from, to, size, 1, accumulate});
  }

  int m_, modes_, relaxation_;
  Kokkos::View<Complex*, Space> spectra_; ///< [modes + relaxation, m, m]
  Kokkos::View<Complex*, Space> phases_;  ///< ShiftPhases of a group
  Kokkos::View<double*, Space> moved_;    ///< fractions, where they are not those of the scan
  std::optional<Transform> one_, one_back_;
};

/// Sums of ShiftGradient of `count` patterns; returns how many blocks of a pattern left some.
/// @param sums  two numbers for each of up to `most` blocks of a pattern
template <class Space, class T, class Spectra>
int sum_shift_products(const Space& space, const char* label, std::int64_t count, int n, int modes,
                       const Spectra& moving, const Kokkos::complex<T>* gradients, double* sums, int most) {
  using Gradient = ShiftGradient<Space, T, Spectra>;
  const int blocks = std::min({most, n, PtychographyTuning::most_blocks});
  launch_teams(label, space, count * blocks,
               Gradient{n, modes, Divisor(static_cast<std::uint32_t>(blocks)),
                        Divisor(static_cast<std::uint32_t>(n)), moving, gradients, sums});
  return blocks;
}

/// Adds gradients of positions, factor times ShiftGradient, of a selection.
/// @param sums  as of sum_shift_products
template <class Space, class T, class Spectra>
void sum_position_gradient(const Space& space, const Selection& selection, int n, int modes,
                           const Spectra& moving, const Kokkos::complex<T>* gradients, double factor,
                           T* gradient, bool accumulate, double* sums, int most) {
  const int blocks = sum_shift_products(space, "Bracewell::PtychographyLoss::position_gradient",
                                        selection.count, n, modes, moving, gradients, sums, most);
  launch_kernel("Bracewell::PtychographyLoss::add_position_gradient",
                Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, 2 * selection.count),
                AddShiftGradients<T>{sums, blocks, selection, factor, gradient, accumulate});
}

} // namespace Bracewell::Impl
