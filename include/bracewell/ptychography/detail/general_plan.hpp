// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/compare_patterns.hpp>
#include <bracewell/ptychography/detail/gradient_sums.hpp>
#include <bracewell/ptychography/detail/shifted_probes.hpp>
#include <bracewell/ptychography/propagator.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace Bracewell::Impl {

/// Patterns and their gradients through the FFT library, a group of patterns at a time. Its plans transform a part of a
/// group, so that the last one, or a group of few patterns, has little that nobody asked for.
template <class Space, class T, class Storage>
class GeneralPlan {
  using Complex = Kokkos::complex<T>;
  using Memory = typename Space::memory_space;
  using Waves = Kokkos::View<Complex****, Kokkos::LayoutRight, Memory>;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  using Transform = FFT<Space, 2, Complex, Complex>;
  using Shifted = ShiftedProbes<Space, T>;
  using Inputs = PtychographyInputs<T, Memory>;
  using Outputs = PtychographyOutputs<T, Memory>;

public:
  static constexpr PatternPath path = PatternPath::General;

  GeneralPlan(const Space& space, const ScanPositions<Space>& positions, const PtychographyShape& sizes,
              const PtychographyOptions& options)
      : shape_(sizes), keeps_(options.refine_positions && options.fresnel_number),
        group_(group_size(positions.count(), Shifted::needed(positions.subpixel(), sizes, options), sizes,
                          options)),
        part_(part_size(group_, sizes)), shifted_(space, positions, sizes, options, group_),
        waves_(device_view<Complex****>(space, "Bracewell::PtychographyLoss::waves", group_, shape_.modes,
                                        shape_.detector, shape_.detector)),
        propagator_(space, shape_.detector, part_ * shape_.modes, options.fresnel_number) {
    Kokkos::deep_copy(space, waves_,
                      Complex(0)); // the last part may be smaller: what is beyond stays finite
    const std::array<int, 2> window{shape_.probe, shape_.probe};
    const FFTOptions back{.direction = FFTDirection::Backward};
    if (shifted_)
      probes_ = make_windows(space, "Bracewell::PtychographyLoss::probes");
    for (const double fresnel_number : options.slice_fresnel_numbers) {
      inverse_fresnel_.push_back(1 / fresnel_number);
      incident_.push_back(make_windows(space, "Bracewell::PtychographyLoss::incident_waves"));
    }
    if (shifted_ || shape_.slices > 1) {
      many_.emplace(space, window, part_ * shape_.modes, FFTOptions{});
      many_back_.emplace(space, window, part_ * shape_.modes, back);
    }
    if (keeps_) {
      kept_ = device_view<Complex****>(space, "Bracewell::PtychographyLoss::kept_spectra", group_,
                                       shape_.modes, shape_.detector, shape_.detector);
      Kokkos::deep_copy(space, kept_, Complex(0));
    }
    if (options.detector_background)
      slopes_ = device_vector<T>(space, "Bracewell::PtychographyLoss::slopes",
                                 group_ * shape_.detector * shape_.detector);
  }

  std::int64_t group_size() const { return group_; }

  std::size_t memory_bytes() const {
    std::size_t bytes =
        bytes_of(waves_, probes_, kept_, slopes_) + shifted_.memory_bytes() + propagator_.memory_bytes();
    for (const Waves& slice : incident_)
      bytes += bytes_of(slice);
    for (const auto* const transform : {&many_, &many_back_})
      bytes += *transform ? (*transform)->memory_bytes() : 0;
    return bytes;
  }

  static std::size_t bytes_needed(const Space& space, std::int64_t count, bool subpixel,
                                  const PtychographyShape& shape, const PtychographyOptions& options) {
    const bool shifts = Shifted::needed(subpixel, shape, options),
               keeps = options.refine_positions && options.fresnel_number;
    const std::int64_t group = group_size(count, shifts, shape, options), part = part_size(group, shape),
                       pixels = std::int64_t(shape.detector) * shape.detector,
                       window = std::int64_t(shape.probe) * shape.probe;
    std::size_t bytes =
        sizeof(Complex) * group * shape.modes *
            (pixels * (keeps ? 2 : 1) + window * (shape.slices - !shifts)) +
        Shifted::bytes_needed(space, count, subpixel, shape, options, group) +
        (options.detector_background ? sizeof(T) * group * pixels : 0) +
        Propagator<Space, T>::bytes_needed(space, shape.detector, part * shape.modes, options.fresnel_number);
    const auto transforms = [&](std::int64_t batch) {
      const std::array<int, 2> size{shape.probe, shape.probe};
      return Transform::bytes_needed(space, size, batch) +
             Transform::bytes_needed(space, size, batch, {.direction = FFTDirection::Backward});
    };
    return bytes + (shifts || shape.slices > 1 ? transforms(part * shape.modes) : 0);
  }

  /// What all groups of a call need: where the probes stand.
  void begin(const Space& space, const ScanPositions<Space>& positions, const Inputs& inputs) const {
    shifted_.begin(space, positions, inputs);
  }

  /// Losses of the patterns of a selection, which go to losses[0], ..., and what they add to the gradients.
  void evaluate(const Space& space, const ScanPositions<Space>& positions, const Inputs& inputs,
                const Outputs& outputs, const Selection& selection, const Targets<T, Storage>& targets,
                const PtychographyOptions& options, T norm, double* losses,
                const GradientSums<Space, T>& sums) const {
    const Scan& scan = positions.device();
    const int n = shape_.detector, m = shape_.probe, last = shape_.slices - 1;
    const std::int64_t pixels = std::int64_t(n) * n, slice_size = scan.rows * scan.columns;
    ShiftedSpectra<T> spectra{};
    Probes<T> first{inputs.probe.data, 0, shape_.modes};
    if (shifted_) {
      spectra = shifted_.spectra(space, positions, inputs, selection);
      Kokkos::parallel_for("Bracewell::PtychographyLoss::shift_probes",
                           Range(space, 0, selection.count * elements()),
                           ShiftProbes<T>{spectra, probes_.data()});
      transform(space, *many_back_, probes_, selection.count);
      first = {probes_.data(), elements(), shape_.modes};
    }
    for (int slice = 0; slice < last; ++slice) {
      Kokkos::parallel_for("Bracewell::PtychographyLoss::slice_waves",
                           Range(space, 0, selection.count * elements()),
                           ExitWaves<T>{scan, selection, inputs.object.data + slice * slice_size,
                                        light(first, slice), incident_[slice].data(), m});
      free_space(space, slice, selection.count, false);
    }
    Kokkos::parallel_for("Bracewell::PtychographyLoss::exit_waves",
                         Range(space, 0, selection.count * shape_.modes * pixels),
                         ExitWaves<T>{scan, selection, inputs.object.data + last * slice_size,
                                      light(first, last), waves_.data(), n});
    const auto moves = [&](const Selection& some) {
      return ProbeShifts{shifted_.fractions(positions), some, shape_.modes};
    };
    for_parts(selection, [&](const Selection& some, std::int64_t begin) {
      propagator_.propagate(space, part(waves_, begin), moves(some),
                            outputs.position_gradient && keeps_ ? part(kept_, begin).data() : nullptr);
    });
    const bool wave_gradients = outputs.object_gradient || outputs.probe_gradient ||
                                outputs.position_gradient || outputs.coefficient_gradient ||
                                outputs.relaxation_gradient;
    compare_waves<Storage>(space, "Bracewell::PtychographyLoss::compare", options.loss, waves_.data(),
                           selection, targets, static_cast<T>(options.background), shape_.modes, pixels, norm,
                           losses, wave_gradients || outputs.factor_gradient || outputs.background_gradient,
                           DetectorTerms<T>{inputs.factors.data, inputs.detector_background.data,
                                            outputs.factor_gradient.data,
                                            outputs.background_gradient ? slopes_.data() : nullptr});
    if (outputs.background_gradient)
      Kokkos::parallel_for("Bracewell::PtychographyLoss::background_gradient", Range(space, 0, pixels),
                           SumSlopes<T>{slopes_.data(), pixels, selection.count,
                                        outputs.background_gradient.data, selection.first > 0});
    if (!wave_gradients)
      return;
    for_parts(selection, [&](const Selection& some, std::int64_t begin) {
      const Waves waves = part(waves_, begin);
      propagator_.adjoint(space, waves, moves(some), [&]() {
        // Beam and detector stand still: the wave moves back by what the probe moves.
        if (outputs.position_gradient)
          sum_position_gradient(space, some, n, shape_.modes,
                                static_cast<const Complex*>(part(kept_, begin).data()), waves.data(),
                                -2 * Kokkos::numbers::pi / n, outputs.position_gradient.data, false);
      });
    });
    WaveGradients<T, T> gradients{waves_.data(), shape_.modes * pixels, pixels, n, nullptr};
    for (int slice = last; slice >= 0; --slice) {
      if (outputs.object_gradient)
        sums.add_object(space, scan, positions.tiles(), selection, light(first, slice), gradients,
                        outputs.object_gradient.data + slice * slice_size);
      if (slice > 0) {
        terms(space, scan, selection, inputs.object.data + slice * slice_size, gradients,
              incident_[slice - 1]);
        free_space(space, slice - 1, selection.count, true);
        gradients = {incident_[slice - 1].data(), elements(), std::int64_t(m) * m, m, nullptr};
      }
    }
    if (shifted_ && (outputs.probe_gradient || outputs.relaxation_gradient || outputs.position_gradient ||
                     outputs.coefficient_gradient)) {
      terms(space, scan, selection, inputs.object.data, gradients, probes_);
      transform(space, *many_, probes_, selection.count);
      if (outputs.position_gradient)
        sum_position_gradient(space, selection, m, shape_.modes, spectra, probes_.data(),
                              shifted_.position_factor(), outputs.position_gradient.data, keeps_);
      shifted_.add_gradients(space, spectra, inputs, outputs, probes_.data());
    } else if (!shifted_ && outputs.probe_gradient) // the probe is the same for all patterns
      sums.add_probe(space, scan, selection, inputs.object.data, first, gradients,
                     outputs.probe_gradient.data);
  }

private:
  /// Values of the probes of a pattern.
  std::int64_t elements() const { return std::int64_t(shape_.modes) * shape_.probe * shape_.probe; }

  Waves make_windows(const Space& space, const char* label) const {
    const Waves result =
        device_view<Complex****>(space, label, group_, shape_.modes, shape_.probe, shape_.probe);
    Kokkos::deep_copy(space, result, Complex(0));
    return result;
  }

  static std::int64_t group_size(std::int64_t count, bool shifts, const PtychographyShape& shape,
                                 const PtychographyOptions& options) {
    const bool keeps = options.refine_positions && options.fresnel_number;
    const std::int64_t pixels = std::int64_t(shape.detector) * shape.detector,
                       window = std::int64_t(shape.probe) * shape.probe;
    const std::int64_t per_pattern =
        std::int64_t(sizeof(Complex)) * shape.modes *
            (pixels * (keeps ? 2 : 1) + window * (shape.slices - (shifts ? 0 : 1))) +
        (options.detector_background ? std::int64_t(sizeof(T)) * pixels : 0);
    const std::int64_t group = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(options.workspace_bytes.value_or(PtychographyTuning::group_bytes)) /
            per_pattern,
        1, std::max<std::int64_t>(count, 1));
    const std::int64_t part = part_size(group, shape);
    return (group + part - 1) / part * part;
  }

  /// Patterns of a part of a group, of which all have as many. On hosts all: the threads share what is transformed.
  static std::int64_t part_size(std::int64_t group, const PtychographyShape& shape) {
    const std::int64_t bytes = std::int64_t(sizeof(Complex)) * shape.modes * shape.detector * shape.detector,
                       most = is_host<Space>
                                  ? group
                                  : std::max<std::int64_t>(1, PtychographyTuning::transform_bytes / bytes);
    const std::int64_t parts = (group + most - 1) / most;
    return (group + parts - 1) / parts;
  }

  Waves part(const Waves& all, std::int64_t begin) const {
    return Waves(all.data() + begin * all.stride(0), part_, all.extent(1), all.extent(2), all.extent(3));
  }

  /// action(patterns, number of the first in the selection) for the parts of a selection.
  template <class Action>
  void for_parts(const Selection& selection, const Action& action) const {
    for (std::int64_t begin = 0; begin < selection.count; begin += part_)
      action(Selection{selection.patterns, selection.first + begin, std::min(part_, selection.count - begin)},
             begin);
  }

  void transform(const Space& space, const Transform& plan, const Waves& windows, std::int64_t count) const {
    for_parts({nullptr, 0, count}, [&](const Selection&, std::int64_t begin) {
      const Waves some = part(windows, begin);
      plan.execute(space, some, some);
    });
  }

  /// What falls on a slice.
  Probes<T> light(const Probes<T>& first, int slice) const {
    return slice == 0 ? first : Probes<T>{incident_[slice - 1].data(), elements(), shape_.modes};
  }

  /// conj(O) G.
  void terms(const Space& space, const Scan& scan, const Selection& selection, const Complex* object,
             const WaveGradients<T, T>& gradients, const Waves& to) const {
    Kokkos::parallel_for("Bracewell::PtychographyLoss::probe_gradient_terms",
                         Range(space, 0, selection.count * elements()),
                         ProbeGradientTerms<T>{scan, selection, object, gradients, to.data(), shape_.modes});
  }

  /// From a slice to the next, or the adjoint, in place.
  void free_space(const Space& space, int slice, std::int64_t count, bool adjoint) const {
    const Waves& field = incident_[slice];
    transform(space, *many_, field, count);
    Kokkos::parallel_for(
        "Bracewell::PtychographyLoss::free_space", Range(space, 0, count * elements()),
        FresnelTransfer<T>{field.data(), shape_.probe, inverse_fresnel_[slice], ProbeShifts{}, adjoint});
    transform(space, *many_back_, field, count);
  }

  PtychographyShape shape_;
  bool keeps_; ///< spectra of waves in the near field, for the gradient of positions
  std::int64_t group_, part_;
  Shifted shifted_;
  Waves waves_, probes_, kept_;
  std::vector<Waves> incident_; ///< on the slices but the first
  std::vector<double> inverse_fresnel_;
  Kokkos::View<T*, Space> slopes_;
  Propagator<Space, T> propagator_;
  std::optional<Transform> many_, many_back_;
};

} // namespace Bracewell::Impl
