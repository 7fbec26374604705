// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/ptychography/detail/line_teams.hpp>
#include <bracewell/ptychography/detail/lines/compare_lines.hpp>
#include <bracewell/ptychography/detail/lines/transform_lines.hpp>
#include <bracewell/ptychography/detail/plans/pattern_plan.hpp>

#include <algorithm>

namespace Bracewell::Impl {

/// Patterns through kernels that transform the lines of all waves of a group, each joined with what comes before and
/// after it: exit waves and columns; rows, comparison and rows back; columns back and gradients of exit waves. Any
/// modes, slices, fractions of a pixel, relaxation, factors, a background, masks and weights. Between the kernels are waves
/// of n rows and m columns. The near field is a product of one along columns and one along rows, so that each kernel does
/// its axis: a transform, what is transferred, and the inverse. Free space between slices is two more of these kernels,
/// the first of which makes the wave behind a slice.
template <class Space, class T, class Storage>
class LinesPlan : PatternPlan<Space, T, Storage> {
  using Types = PatternPlan<Space, T, Storage>;
  using typename Types::Complex, typename Types::Range, typename Types::Shifted, typename Types::Sum,
      typename Types::Positions, typename Types::Call;
  template <class Value>
  using View = typename Types::template View<Value>;

public:
  LinesPlan(const Space& space, const Positions& positions, const PtychographyShape& shape,
            const PtychographyOptions& options)
      : n_(shape.detector), m_(shape.probe), modes_(shape.modes), last_(shape.slices - 1),
        means_are_energies_(options.weights == PixelWeights::None && !options.detector_background &&
                            !options.pattern_factors),
        inverse_fresnel_(options.fresnel_number ? 1 / *options.fresnel_number : 0),
        group_(group_size(space, positions, shape, options)),
        shifted_(space, positions, shape, options, group_),
        detector_(space, "Bracewell::PtychographyLoss::table", n_),
        window_(space, "Bracewell::PtychographyLoss::table", shifted_ || last_ > 0 ? m_ : n_),
        columns_(LineTeams::choose<Space>(detector_.forward(), m_, 0)),
        rows_(LineTeams::choose<Space>(detector_.forward(), n_, modes_ > 1 ? 1 : 0)),
        waves_(
            device_vector<Complex>(space, "Bracewell::PtychographyLoss::waves", group_ * modes_ * n_ * m_)),
        patterns_(device_vector<PatternSums<T>>(space, "Bracewell::PtychographyLoss::pattern_sums", group_)),
        sums_(device_vector<double>(space, "Bracewell::PtychographyLoss::sums", 2 * group_ * blocks())),
        incident_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::incident_waves",
                                         group_ * elements() * last_)),
        free_space_(
            device_vector<Complex>(space, "Bracewell::PtychographyLoss::free_space_phases", 2 * last_ * m_)) {
    fill(space, "Bracewell::PtychographyLoss::unscaled", patterns_.data(), group_, PatternSums<T>{1, 0, 0});
    if (shifted_)
      probes_ =
          device_vector<Complex>(space, "Bracewell::PtychographyLoss::probes", group_ * modes_ * m_ * m_);
    if (inverse_fresnel_ != 0)
      transfer_ = device_vector<Complex>(space, "Bracewell::PtychographyLoss::transfer", 2 * group_ * n_);
    if (options.detector_background)
      slopes_ = device_vector<T>(space, "Bracewell::PtychographyLoss::slopes", group_ * n_ * n_);
    for (int slice = 0; slice < last_; ++slice) {
      TransferPhases<T> phases{nullptr, Selection{}, free_space_.data() + 2 * slice * m_, m_,
                               1 / options.slice_fresnel_numbers[slice]};
      for (int axis = 0; axis < 2 && !options.slice_shifts.empty(); ++axis)
        phases.moves[axis] = options.slice_shifts[slice][axis];
      launch_kernel("Bracewell::PtychographyLoss::free_space_phases", Range(space, 0, 2 * m_), phases);
    }
  }

  std::int64_t group_size() const { return group_; }

  std::size_t memory_bytes() const {
    return bytes_of(waves_, patterns_, sums_, incident_, free_space_, probes_, transfer_, slopes_) +
           detector_.memory_bytes() + window_.memory_bytes() + shifted_.memory_bytes();
  }

  static std::size_t bytes_needed(const Space& space, const Positions& positions,
                                  const PtychographyShape& shape, const PtychographyOptions& options) {
    const int n = shape.detector, m = shape.probe, modes = shape.modes;
    const bool shifts = Shifted::needed(positions, shape, options);
    const std::int64_t group = group_size(space, positions, shape, options), pixels = std::int64_t(n) * n,
                       windows = (shape.slices - !shifts) * std::int64_t(modes) * m * m;
    const RadixPlan<Space, T> detector(space, "Bracewell::PtychographyLoss::table", n),
        window(space, "Bracewell::PtychographyLoss::table", shifts || shape.slices > 1 ? m : n);
    const LineTeams columns = LineTeams::choose<Space>(detector.forward(), m, 0),
                    rows = LineTeams::choose<Space>(detector.forward(), n, modes > 1 ? 1 : 0);
    return detector.memory_bytes() + window.memory_bytes() +
           Shifted::bytes_needed(space, positions, shape, options, group) +
           sizeof(Complex) * 2 * (shape.slices - 1) * m +
           group * (sizeof(Complex) * (std::int64_t(modes) * n * m + windows) + sizeof(PatternSums<T>) +
                    2 * sizeof(double) * std::max(modes * columns.blocks.by(), rows.blocks.by()) +
                    (options.fresnel_number ? 2 * n * sizeof(Complex) : 0) +
                    (options.detector_background ? pixels * sizeof(T) : 0));
  }

  void begin(const Call& call) const { shifted_.begin(call.space, call.positions, call.inputs); }

  void evaluate(const Call& call) const {
    const Space& space = call.space;
    const Positions& positions = call.positions;
    const auto& inputs = call.inputs;
    const auto& outputs = call.outputs;
    const Selection& selection = call.selection;
    const Scan& scan = positions.device();
    const auto object = [&](int slice) { return inputs.object.data + slice * scan.rows * scan.columns; };
    ShiftedSpectra<T> spectra{};
    Probes<T> probes{inputs.probe.data, 0, modes_};
    if (shifted_) {
      spectra = shifted_.spectra(space, positions, inputs, selection);
      probes = shift_probes(space, window_, spectra, probes_.data());
    }
    for (int slice = 0; slice < last_; ++slice)
      free_space(space, slice, selection.count,
                 LoadExitWaves<T>{scan, selection, object(slice), light(probes, slice)}, false);
    if (inverse_fresnel_ != 0)
      launch_kernel("Bracewell::PtychographyLoss::transfer_phases", Range(space, 0, selection.count * 2 * n_),
                    TransferPhases<T>{shifted_.fractions(positions), selection, transfer_.data(), n_,
                                      inverse_fresnel_});
    const LoadExitWaves<T> exit_waves{scan, selection, object(last_), light(probes, last_)};
    const WaveLines<T, true> columns{waves_.data(), n_, m_};
    const bool energies = call.targets.scaled && means_are_energies_;
    along_columns<false>(space, "Bracewell::PtychographyLoss::exit_waves", selection.count, exit_waves,
                         columns, energies ? sums_.data() : nullptr);
    compare(call);
    if (!call.wave_gradients())
      return;
    along_columns<true>(space, "Bracewell::PtychographyLoss::wave_gradients", selection.count, columns,
                        StoreWaveGradients<T>{columns, exit_waves, patterns_.data()});
    WaveGradients<T, T> gradients{waves_.data(), std::int64_t(modes_) * n_ * m_, std::int64_t(n_) * m_, m_,
                                  nullptr};
    for (int slice = last_; slice >= 0; --slice) {
      if (outputs.object_gradient)
        call.sums.add_object(space, scan, positions.tiles(), selection, light(probes, slice), gradients,
                             outputs.object_gradient.data + slice * scan.rows * scan.columns);
      if (slice == 0)
        break;
      free_space(space, slice - 1, selection.count,
                 LoadProbeTerms<T>{scan, selection, object(slice), gradients, modes_}, true);
      gradients = {incident(slice - 1), elements(), std::int64_t(m_) * m_, m_, nullptr};
    }
    if (shifted_ && (outputs.probe_gradient || call.spectra_gradients())) {
      transform_terms(space, window_,
                      LoadProbeTerms<T>{scan, selection, inputs.object.data, gradients, modes_},
                      probes_.data()); // where the probes were
      if (outputs.position_gradient)
        sum_position_gradient(space, selection, m_, modes_, spectra,
                              static_cast<const Complex*>(probes_.data()), shifted_.position_factor(),
                              outputs.position_gradient.data, false, sums_.data(), blocks());
      shifted_.add_gradients(space, spectra, inputs, outputs, probes_.data());
    } else if (outputs.probe_gradient) { // the probe is the same for all patterns
      call.sums.add_probe(space, scan, selection, inputs.object.data, probes, gradients,
                          outputs.probe_gradient.data);
    }
  }

private:
  using Transfer = LineTransfer<T>;

  /// Of a pattern, which leave sums.
  int blocks() const { return std::max(modes_ * columns_.blocks.by(), rows_.blocks.by()); }

  /// Values of the probes of a pattern.
  std::int64_t elements() const { return std::int64_t(modes_) * m_ * m_; }

  /// What falls on a slice behind the first, or the gradient with respect to it.
  Complex* incident(int slice) const { return incident_.data() + slice * group_ * elements(); }
  Probes<T> light(const Probes<T>& first, int slice) const {
    return slice == 0 ? first : Probes<T>{incident(slice - 1), elements(), modes_};
  }

  /// What `load` gives from a slice to the next, or the adjoint.
  template <class Load>
  void free_space(const Space& space, int slice, std::int64_t count, const Load& load, bool adjoint) const {
    const Complex* const phases = free_space_.data() + 2 * slice * m_; // of rows, then of columns
    const QuickDivision all(1 << 30);
    const WaveLines<T, true> columns{incident(slice), m_, m_};
    const WaveLines<T, false> rows{incident(slice), m_, m_};
    transform_lines<true, false, true>(space, "Bracewell::PtychographyLoss::free_space_columns", window_, m_,
                                       count * modes_, load, columns, nullptr,
                                       Transfer{phases, all, adjoint});
    transform_lines<false, false, true>(space, "Bracewell::PtychographyLoss::free_space_rows", window_, m_,
                                        count * modes_, rows, rows, nullptr,
                                        Transfer{phases + m_, all, adjoint});
  }

  /// What the way to the detector, or its adjoint, is along columns.
  template <bool adjoint, class Load, class Store>
  void along_columns(const Space& space, const char* label, std::int64_t count, const Load& load,
                     const Store& store, double* energies = nullptr) const {
    if (inverse_fresnel_ != 0)
      transform_lines<true, false, true>(space, label, detector_, m_, count * modes_, load, store, energies,
                                         Transfer{transfer_.data(), QuickDivision(modes_), adjoint});
    else
      transform_lines<true, adjoint>(space, label, detector_, m_, count * modes_, load, store, energies);
  }

  void compare(const Call& call) const {
    const double gain = inverse_fresnel_ != 0 ? 1 / (double(n_) * n_) : 1;
    const DetectorTerms<T> terms{call.inputs.factors.data, call.inputs.detector_background.data, nullptr,
                                 call.outputs.background_gradient ? slopes_.data() : nullptr};
    const auto add = [&](typename Sum::Of of, int blocks) {
      Sum::launch(call.space, Sum{of, sums_.data(), blocks, call.selection, call.targets, call.options.loss,
                                  call.norm, double(n_) * n_, means_are_energies_ ? gain : 0,
                                  patterns_.data(), call.losses, call.outputs.factor_gradient.data});
    };
    const auto run = [&](auto far, const char* label, CompareTask task) {
      launch_lines(call.space, label, rows_, call.selection.count,
                   LineTeams::bytes<Space>(detector_.forward(), rows_.lines.by(), modes_ > 1 ? 1 : 0),
                   CompareLines<Space, T, Storage, far>{
                       detector_.forward(), detector_.inverse(), rows_, m_, modes_, call.selection,
                       call.targets, call.options.loss, static_cast<T>(call.options.background), call.norm,
                       waves_.data(), patterns_.data(), sums_.data(), task,
                       call.wave_gradients() || call.outputs.background_gradient, terms,
                       inverse_fresnel_ != 0 ? transfer_.data() : nullptr});
    };
    const auto pass = [&](const char* label, CompareTask task) {
      if (inverse_fresnel_ != 0 || terms.factors || terms.background)
        run(std::false_type(), label, task);
      else
        run(std::true_type(), label, task);
    };
    const bool scaled = call.targets.scaled;
    if (scaled && means_are_energies_)
      add(Sum::Of::Energies, modes_ * columns_.blocks.by());
    if (scaled && !means_are_energies_) {
      pass("Bracewell::PtychographyLoss::means", CompareTask::Mean);
      add(Sum::Of::Means, rows_.blocks.by());
      pass("Bracewell::PtychographyLoss::slopes", CompareTask::Slope);
      add(Sum::Of::Slopes, rows_.blocks.by());
    }
    pass("Bracewell::PtychographyLoss::compare", CompareTask::Compare);
    add(Sum::Of::Losses, rows_.blocks.by());
    if (call.outputs.background_gradient)
      launch_kernel("Bracewell::PtychographyLoss::background_gradient",
                    Range(call.space, 0, std::int64_t(n_) * n_),
                    SumSlopes<T>{slopes_.data(), std::int64_t(n_) * n_, call.selection.count,
                                 call.outputs.background_gradient.data, call.selection.first > 0});
  }

  static std::int64_t group_size(const Space& space, const Positions& positions,
                                 const PtychographyShape& shape, const PtychographyOptions& options) {
    const std::int64_t per_pattern =
        std::int64_t(sizeof(Complex)) * shape.modes * shape.probe *
            (shape.detector +
             (shape.slices - !Shifted::needed(positions, shape, options)) * std::int64_t(shape.probe)) +
        (options.detector_background ? std::int64_t(sizeof(T)) * shape.detector * shape.detector : 0);
    return line_group(space, options, positions.count(), per_pattern);
  }

  int n_, m_, modes_, last_; ///< last slice
  bool means_are_energies_;
  double inverse_fresnel_; ///< 0: far field
  std::int64_t group_;
  Shifted shifted_;
  RadixPlan<Space, T> detector_, window_;
  LineTeams columns_, rows_;
  View<Complex> waves_, probes_, transfer_;
  View<PatternSums<T>> patterns_;
  View<double> sums_;
  View<Complex> incident_, free_space_; ///< of slices but the last: waves behind them, and TransferPhases
  View<T> slopes_;
};

} // namespace Bracewell::Impl
