// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/general/compare_blocks.hpp>
#include <bracewell/ptychography/detail/general/waves.hpp>
#include <bracewell/ptychography/detail/lines/transform_lines.hpp>
#include <bracewell/ptychography/detail/plans/pattern_plan.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace Bracewell::Impl {

/// Patterns and their gradients through the FFT library, a group of patterns at a time, of which its plans transform a part
/// at a time. On GPUs patterns are compared in blocks, and probes are shifted by transforms over lines where
/// transforms_lines(m): fewer passes, and smaller errors in single precision, than by the library.
template <class Space, class T, class Storage>
class GeneralPlan : PatternPlan<Space, T, Storage> {
  using Types = PatternPlan<Space, T, Storage>;
  using typename Types::Complex, typename Types::Memory, typename Types::Range, typename Types::Shifted,
      typename Types::Positions, typename Types::Call;
  template <class Value>
  using View = typename Types::template View<Value>;
  using Waves = View<Complex>;
  using Transforms = WaveTransforms<Space, T>;
  static constexpr bool on_device = !is_host<Space>;

public:
  GeneralPlan(const Space& space, const Positions& positions, const PtychographyShape& sizes,
              const PtychographyOptions& options)
      : shape_(sizes), keeps_(options.refine_positions && options.fresnel_number),
        inverse_fresnel_detector_(options.fresnel_number ? 1 / *options.fresnel_number : 0),
        group_(group_size(positions, sizes, options)), shifted_(space, positions, sizes, options, group_),
        waves_(make_waves(space, "Bracewell::PtychographyLoss::waves", pixels())),
        transforms_(space, shape_.detector, shape_.modes, part_size(group_, sizes)) {
    if (shifted_)
      probes_ = make_windows(space, "Bracewell::PtychographyLoss::probes");
    for (const double fresnel_number : options.slice_fresnel_numbers) {
      inverse_fresnel_.push_back(1 / fresnel_number);
      incident_.push_back(make_windows(space, "Bracewell::PtychographyLoss::incident_waves"));
      if (options.refine_slice_shifts)
        spectra_.push_back(make_windows(space, "Bracewell::PtychographyLoss::slice_spectra"));
    }
    if (!options.slice_shifts.empty() || options.refine_slice_shifts) {
      std::vector<double> moves(2 * incident_.size());
      for (std::size_t i = 0; i < 2 * options.slice_shifts.size(); ++i)
        moves[i] = options.slice_shifts[i / 2][i % 2];
      moves_ = device_copy(space, "Bracewell::PtychographyLoss::slice_shifts", moves);
    }
    if (shifts_by_lines(bool(shifted_), shape_))
      lines_.emplace(space, "Bracewell::PtychographyLoss::table", shape_.probe);
    if (transforms_windows(bool(shifted_), shape_))
      windows_.emplace(space, shape_.probe, shape_.modes, part_size(group_, sizes));
    if (keeps_)
      kept_ = make_waves(space, "Bracewell::PtychographyLoss::kept_spectra", pixels());
    if (options.detector_background)
      slopes_ = device_vector<T>(space, "Bracewell::PtychographyLoss::slopes", group_ * pixels());
    sums_ = device_vector<double>(space, "Bracewell::PtychographyLoss::sums", 2 * group_ * blocks(pixels()));
    if (on_device) {
      patterns_ = device_vector<PatternSums<T>>(space, "Bracewell::PtychographyLoss::pattern_sums", group_);
      fill(space, "Bracewell::PtychographyLoss::unscaled", patterns_.data(), group_, PatternSums<T>{1, 0, 0});
    }
  }

  std::int64_t group_size() const { return group_; }

  std::size_t memory_bytes() const {
    std::size_t bytes = bytes_of(waves_, probes_, kept_, slopes_, patterns_, sums_, moves_) +
                        shifted_.memory_bytes() + transforms_.memory_bytes() +
                        (lines_ ? lines_->memory_bytes() : 0) + (windows_ ? windows_->memory_bytes() : 0);
    for (const auto* const windows : {&incident_, &spectra_})
      for (const Waves& slice : *windows)
        bytes += bytes_of(slice);
    return bytes;
  }

  static std::size_t bytes_needed(const Space& space, const Positions& positions,
                                  const PtychographyShape& shape, const PtychographyOptions& options) {
    const bool shifts = Shifted::needed(positions, shape, options),
               keeps = options.refine_positions && options.fresnel_number;
    const std::int64_t group = group_size(positions, shape, options), part = part_size(group, shape),
                       pixels = std::int64_t(shape.detector) * shape.detector,
                       window = std::int64_t(shape.probe) * shape.probe;
    const auto waves = static_cast<std::size_t>(
                   group * shape.modes *
                   (pixels * (keeps ? 2 : 1) + window * windows_of(shape, options, shifts))),
               background = static_cast<std::size_t>(options.detector_background ? group * pixels : 0),
               sums = static_cast<std::size_t>(group * 2 * blocks(pixels));
    std::size_t bytes = sizeof(Complex) * waves +
                        Shifted::bytes_needed(space, positions, shape, options, group) +
                        sizeof(T) * background + sizeof(double) * sums +
                        (on_device ? static_cast<std::size_t>(group) * sizeof(PatternSums<T>) : 0) +
                        Transforms::bytes_needed(space, shape.detector, shape.modes, part);
    if (shifts_by_lines(shifts, shape))
      bytes += RadixPlan<Space, T>(space, "Bracewell::PtychographyLoss::table", shape.probe).memory_bytes();
    if (transforms_windows(shifts, shape))
      bytes += Transforms::bytes_needed(space, shape.probe, shape.modes, part);
    return bytes;
  }

  void begin(const Call& call) const { shifted_.begin(call.space, call.positions, call.inputs); }

  void evaluate(const Call& call) const {
    const Space& space = call.space;
    const Positions& positions = call.positions;
    const auto& inputs = call.inputs;
    const auto& outputs = call.outputs;
    const Selection& selection = call.selection;
    const Scan& scan = positions.device();
    const int n = shape_.detector, m = shape_.probe, last = shape_.slices - 1;
    const std::int64_t slice_size = scan.rows * scan.columns;
    ShiftedSpectra<T> spectra{};
    Probes<T> first{inputs.probe.data, 0, shape_.modes};
    if (shifted_) {
      spectra = shifted_.spectra(space, positions, inputs, selection);
      first = shift(space, spectra);
    }
    for (int slice = 0; slice < last; ++slice) {
      for_waves(space, "Bracewell::PtychographyLoss::slice_waves", selection.count, shape_.modes, m,
                ExitWaves<T>{scan, selection, inputs.object.data + slice * slice_size, light(first, slice),
                             incident_[std::size_t(slice)].data()});
      free_space(space, slice, selection.count, moves(inputs, slice),
                 outputs.slice_shift_gradient ? spectra_[std::size_t(slice)].data() : nullptr);
    }
    for_waves(space, "Bracewell::PtychographyLoss::exit_waves", selection.count, shape_.modes, n,
              ExitWaves<T>{scan, selection, inputs.object.data + last * slice_size, light(first, last),
                           waves_.data()});
    const ProbeShifts moves{shifted_.fractions(positions), selection};
    const bool spectra_count = keeps_ && outputs.position_gradient;
    propagate(space, moves, spectra_count ? kept_.data() : nullptr);
    compare(call);
    if (outputs.background_gradient)
      launch_kernel("Bracewell::PtychographyLoss::background_gradient", Range(space, 0, pixels()),
                    SumSlopes<T>{slopes_.data(), pixels(), selection.count, outputs.background_gradient.data,
                                 selection.first > 0});
    if (!call.wave_gradients())
      return;
    propagate_back(space, moves, [&]() {
      // Beam and detector stand still: the wave moves back by what the probe moves.
      if (spectra_count)
        sum_position_gradient(space, selection, n, shape_.modes, static_cast<const Complex*>(kept_.data()),
                              waves_.data(), -2 * Kokkos::numbers::pi / n, outputs.position_gradient.data,
                              false, sums_.data(), blocks(pixels()));
    });
    WaveGradients<T, T> gradients{waves_.data(), shape_.modes * pixels(), pixels(), n, nullptr};
    for (int slice = last; slice >= 0; --slice) {
      if (outputs.object_gradient)
        call.sums.add_object(space, scan, positions.tiles(), selection, light(first, slice), gradients,
                             outputs.object_gradient.data + slice * slice_size);
      if (slice > 0) {
        terms(space, scan, selection, inputs.object.data + slice * slice_size, gradients,
              incident_[std::size_t(slice - 1)]);
        free_space_back(call, slice - 1);
        gradients = {incident_[std::size_t(slice - 1)].data(), elements(), std::int64_t(m) * m, m, nullptr};
      }
    }
    if (shifted_ && (outputs.probe_gradient || call.spectra_gradients())) {
      transform_probe_terms(space, scan, selection, inputs.object.data, gradients);
      if (outputs.position_gradient)
        sum_position_gradient(space, selection, m, shape_.modes, spectra, probes_.data(),
                              shifted_.position_factor(), outputs.position_gradient.data, keeps_,
                              sums_.data(), blocks(pixels()));
      shifted_.add_gradients(space, spectra, inputs, outputs, probes_.data());
    } else if (!shifted_ && outputs.probe_gradient) // the probe is the same for all patterns
      call.sums.add_probe(space, scan, selection, inputs.object.data, first, gradients,
                          outputs.probe_gradient.data);
  }

private:
  /// Values of the probes of a pattern.
  std::int64_t elements() const { return std::int64_t(shape_.modes) * shape_.probe * shape_.probe; }
  std::int64_t pixels() const { return std::int64_t(shape_.detector) * shape_.detector; }

  /// Of a pattern, which leave sums.
  static int blocks(std::int64_t pixels) {
    return CompareBlocks<Space, T, Storage, PatternLoss::LeastSquares>::count(pixels);
  }

  static bool shifts_by_lines(bool shifts, const PtychographyShape& shape) {
    return on_device && shifts && lines_fit_teams(shape.probe);
  }
  /// Whether the library transforms waves in the window of the probe.
  static bool transforms_windows(bool shifts, const PtychographyShape& shape) {
    return shape.slices > 1 || (shifts && !shifts_by_lines(shifts, shape));
  }

  /// Windows of the probe that a pattern takes, for each mode.
  static std::int64_t windows_of(const PtychographyShape& shape, const PtychographyOptions& options,
                                 bool shifts) {
    return shape.slices - !shifts + (options.refine_slice_shifts ? shape.slices - 1 : 0);
  }

  /// Zeros: what is transformed beyond the last pattern stays finite.
  Waves make_waves(const Space& space, const char* label, std::int64_t values) const {
    const std::int64_t size = group_ * shape_.modes * values;
    const Waves result = device_vector<Complex>(space, label, size);
    clear(space, "Bracewell::PtychographyLoss::waves", result.data(), size);
    return result;
  }
  Waves make_windows(const Space& space, const char* label) const {
    return make_waves(space, label, std::int64_t(shape_.probe) * shape_.probe);
  }

  static std::int64_t group_size(const Positions& positions, const PtychographyShape& shape,
                                 const PtychographyOptions& options) {
    const bool shifts = Shifted::needed(positions, shape, options);
    const bool keeps = options.refine_positions && options.fresnel_number;
    const std::int64_t pixels = std::int64_t(shape.detector) * shape.detector,
                       window = std::int64_t(shape.probe) * shape.probe;
    const std::int64_t per_pattern =
        std::int64_t(sizeof(Complex)) * shape.modes *
            (pixels * (keeps ? 2 : 1) + window * windows_of(shape, options, shifts)) +
        (options.detector_background ? std::int64_t(sizeof(T)) * pixels : 0);
    return std::clamp<std::int64_t>(
        static_cast<std::int64_t>(options.workspace_bytes.value_or(PtychographyTuning::group_bytes)) /
            per_pattern,
        1, std::max<std::int64_t>(positions.count(), 1));
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

  /// The probe of every pattern of the selection.
  Probes<T> shift(const Space& space, const ShiftedSpectra<T>& spectra) const {
    const std::int64_t count = spectra.ramp.selection.count;
    if constexpr (on_device)
      if (lines_)
        return shift_probes(space, *lines_, spectra, probes_.data());
    for_waves(space, "Bracewell::PtychographyLoss::shift_probes", count, shape_.modes, shape_.probe,
              ShiftProbes<T>{spectra, probes_.data()});
    windows_->execute(space, FFTDirection::Backward, probes_.data(), count, group_);
    return {probes_.data(), elements(), shape_.modes};
  }

  /// DFT(conj(O) G), where the probes were.
  void transform_probe_terms(const Space& space, const Scan& scan, const Selection& selection,
                             const Complex* object, const WaveGradients<T, T>& gradients) const {
    if constexpr (on_device)
      if (lines_)
        return transform_terms(space, *lines_,
                               LoadProbeTerms<T>{scan, selection, object, gradients, shape_.modes},
                               probes_.data());
    terms(space, scan, selection, object, gradients, probes_);
    windows_->execute(space, FFTDirection::Forward, probes_.data(), selection.count, group_);
  }

  /// From exit waves to the detector; in the near field DFT(Psi) / n^2 are kept, unless null.
  void propagate(const Space& space, const ProbeShifts& moves, Complex* kept) const {
    const std::int64_t count = moves.selection.count;
    transforms_.execute(space, FFTDirection::Forward, waves_.data(), count, group_);
    if (inverse_fresnel_detector_ != 0)
      transfer(space, moves, false, kept);
  }

  /// The adjoint. In the near field at_spectrum() is called where waves are DFT(G).
  template <class Action>
  void propagate_back(const Space& space, const ProbeShifts& moves, const Action& at_spectrum) const {
    const bool near = inverse_fresnel_detector_ != 0;
    transforms_.execute(space, near ? FFTDirection::Forward : FFTDirection::Backward, waves_.data(),
                        moves.selection.count, group_);
    if (near) {
      at_spectrum();
      transfer(space, moves, true, nullptr);
    }
  }

  void transfer(const Space& space, const ProbeShifts& moves, bool conjugate, Complex* kept) const {
    const std::int64_t count = moves.selection.count;
    for_waves(space, "Bracewell::PtychographyLoss::transfer", count, shape_.modes, shape_.detector,
              FresnelTransfer<T>{waves_.data(), shape_.detector, inverse_fresnel_detector_, moves, conjugate,
                                 kept});
    transforms_.execute(space, FFTDirection::Backward, waves_.data(), count, group_);
  }

  void compare(const Call& call) const {
    const DetectorTerms<T> detector{call.inputs.factors.data, call.inputs.detector_background.data,
                                    call.outputs.factor_gradient.data,
                                    call.outputs.background_gradient ? slopes_.data() : nullptr};
    if constexpr (on_device)
      compare_in_blocks<Storage>(call.space, call.options.loss, waves_.data(), call.selection, call.targets,
                                 static_cast<T>(call.options.background), shape_.modes, pixels(), call.norm,
                                 call.losses, call.wave_gradients(), detector,
                                 BlockSums<T>{patterns_.data(), sums_.data()});
    else
      compare_waves<Storage>(
          call.space, "Bracewell::PtychographyLoss::compare", call.options.loss, waves_.data(),
          call.selection, call.targets, static_cast<T>(call.options.background), shape_.modes, pixels(),
          call.norm, call.losses,
          call.wave_gradients() || call.outputs.factor_gradient || call.outputs.background_gradient,
          detector);
  }

  /// What falls on a slice.
  Probes<T> light(const Probes<T>& first, int slice) const {
    return slice == 0 ? first : Probes<T>{incident_[std::size_t(slice - 1)].data(), elements(), shape_.modes};
  }

  /// conj(O) G.
  void terms(const Space& space, const Scan& scan, const Selection& selection, const Complex* object,
             const WaveGradients<T, T>& gradients, const Waves& to) const {
    for_waves(space, "Bracewell::PtychographyLoss::probe_gradient_terms", selection.count, shape_.modes,
              shape_.probe, ProbeGradientTerms<T>{scan, selection, object, gradients, to.data()});
  }

  /// What a beam moves by on the way from a slice to the next; null: nothing.
  template <class Inputs>
  const double* moves(const Inputs& inputs, int slice) const {
    const double* const all = inputs.slice_shifts ? inputs.slice_shifts.data : moves_.data();
    return all ? all + 2 * slice : nullptr;
  }

  /// From a slice to the next, in place; the spectrum there over m^2 is kept, unless null.
  void free_space(const Space& space, int slice, std::int64_t count, const double* moves,
                  Complex* kept) const {
    Complex* const field = incident_[std::size_t(slice)].data();
    windows_->execute(space, FFTDirection::Forward, field, count, group_);
    for_waves(space, "Bracewell::PtychographyLoss::free_space", count, shape_.modes, shape_.probe,
              FresnelTransfer<T>{field, shape_.probe, inverse_fresnel_[std::size_t(slice)], ProbeShifts{},
                                 false, kept, moves});
    windows_->execute(space, FFTDirection::Backward, field, count, group_);
  }

  /// The adjoint, with the gradient of the moves.
  void free_space_back(const Call& call, int slice) const {
    const Space& space = call.space;
    const std::int64_t count = call.selection.count;
    const int m = shape_.probe;
    Complex* const field = incident_[std::size_t(slice)].data();
    windows_->execute(space, FFTDirection::Forward, field, count, group_);
    if (call.outputs.slice_shift_gradient) {
      const int parts =
          sum_shift_products(space, "Bracewell::PtychographyLoss::slice_shift_products", count, m,
                             shape_.modes, static_cast<const Complex*>(spectra_[std::size_t(slice)].data()),
                             field, sums_.data(), blocks(pixels()));
      using Add = SumShiftGradients<Space, T>;
      launch_teams("Bracewell::PtychographyLoss::slice_shift_gradient", space, 1,
                   Add{sums_.data(), count * parts, 2 * Kokkos::numbers::pi / m,
                       call.outputs.slice_shift_gradient.data + 2 * slice, call.selection.first > 0});
    }
    for_waves(space, "Bracewell::PtychographyLoss::free_space", count, shape_.modes, m,
              FresnelTransfer<T>{field, m, inverse_fresnel_[std::size_t(slice)], ProbeShifts{}, true, nullptr,
                                 moves(call.inputs, slice)});
    windows_->execute(space, FFTDirection::Backward, field, count, group_);
  }

  PtychographyShape shape_;
  bool keeps_;                      ///< spectra of waves in the near field, for the gradient of positions
  double inverse_fresnel_detector_; ///< 0: far field
  std::int64_t group_;
  Shifted shifted_;
  Waves waves_, probes_, kept_;         ///< [group, modes, n, n], the window of the probe, and spectra
  std::vector<double> inverse_fresnel_; ///< of the ways between slices
  View<double> moves_;                  ///< of beams on these, [slices - 1, 2], or none
  std::vector<Waves> incident_;         ///< what falls on the slices behind the first, or its gradient
  std::vector<Waves> spectra_;          ///< of what falls on them, over m^2, for the gradient of the moves
  Transforms transforms_;
  std::optional<Transforms> windows_;
  std::optional<RadixPlan<Space, T>> lines_; ///< of the window, where probes are shifted over lines
  View<T> slopes_;
  View<PatternSums<T>> patterns_;
  View<double> sums_; ///< [group, blocks, 2]
};

} // namespace Bracewell::Impl
