// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/division.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/plain_complex.hpp>
#include <bracewell/ptychography/detail/lines/compare_known_rows.hpp>
#include <bracewell/ptychography/detail/lines/known_gradients.hpp>
#include <bracewell/ptychography/detail/lines/known_lines.hpp>
#include <bracewell/ptychography/detail/lines/known_lines_sizes.hpp>
#include <bracewell/ptychography/detail/plans/pattern_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace Bracewell::Impl {

/// LinesPlan for the lengths of lines that the compiler knows, on GPUs. Kernels, and what they leave per wave:
///   ShiftRows        probes between pixels: their columns' spectra                       written
///   ExitWaveColumns  exit waves, transformed along the columns                           (read) written
///   CompareRows      the same of the derivatives at the detector                         read written
///   GradientColumns  conj(p) G for the object; sums of conj(O) G over portions of the    read written
///                    patterns, or between pixels conj(O) G along the columns             read written
///   SumShiftedRows   between pixels: sums of their spectra over portions                 read
/// and the sums for the object read conj(p) G.
template <class Space, class T, class Storage, class Detectors>
class KnownLinesPlan : PatternPlan<Space, T, Storage> {
  using Types = PatternPlan<Space, T, Storage>;
  using typename Types::Complex, typename Types::Range, typename Types::Shifted, typename Types::Sum,
      typename Types::Positions, typename Types::Call;
  template <class Value>
  using View = typename Types::template View<Value>;
  using Sizes = KnownLinesSizes<Space, T, Detectors>;

public:
  KnownLinesPlan(const Space& space, const Positions& positions, const PtychographyShape& shape,
                 const PtychographyOptions& options)
      : n_(shape.detector), modes_(shape.modes), weighted_(options.weights != PixelWeights::None),
        sizes_(Sizes::make(space, positions, shape, options)),
        shifted_(space, positions, shape, options, sizes_.group),
        waves_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::waves", sizes_.waves)),
        probes_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::probes", sizes_.probes)),
        portions_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::wave_portions",
                                         sizes_.portions * modes_ * n_ * n_)),
        held_(device_vector<HeldRows>(space, "Bracewell::PtychographyLoss::held_rows", sizes_.held)),
        patterns_(
            device_vector<PatternSums<T>>(space, "Bracewell::PtychographyLoss::pattern_sums", sizes_.group)),
        sums_(device_vector<double>(space, "Bracewell::PtychographyLoss::sums", sizes_.sums)) {
    fill(space, "Bracewell::PtychographyLoss::unscaled", patterns_.data(), sizes_.group,
         PatternSums<T>{1, 0, 0});
    visit_line_sizes<Detectors, Space, T>(
        n_, [&](auto rows, auto) { table_ = make_fused_table<T>(space, typename decltype(rows)::Sizes()); });
  }

  std::int64_t group_size() const { return sizes_.group; }

  std::size_t memory_bytes() const {
    return bytes_of(waves_, probes_, portions_, held_, patterns_, sums_, table_) + shifted_.memory_bytes();
  }

  static std::size_t bytes_needed(const Space& space, const Positions& positions,
                                  const PtychographyShape& shape, const PtychographyOptions& options) {
    const Sizes needed = Sizes::make(space, positions, shape, options);
    const std::int64_t probe = std::int64_t(shape.modes) * shape.detector * shape.detector;
    return sizeof(Complex) * (needed.waves + needed.probes + needed.portions * probe + needed.table) +
           needed.held * sizeof(HeldRows) + needed.group * sizeof(PatternSums<T>) +
           needed.sums * sizeof(double) +
           Shifted::bytes_needed(space, positions, shape, options, needed.group);
  }

  void begin(const Call& call) const { shifted_.begin(call.space, call.positions, call.inputs); }

  void evaluate(const Call& call) const {
    visit_line_sizes<Detectors, Space, T>(n_, [&](auto rows, auto columns) {
      using Rows = decltype(rows);
      using Columns = decltype(columns);
      if (shifted_)
        compute<Rows, Columns, true>(call);
      else
        compute<Rows, Columns, false>(call);
    });
    if (call.outputs.object_gradient)
      call.sums.template add_object<wave_block>(
          call.space, call.positions.device(), call.positions.tiles(), call.selection,
          {nullptr, 0, bundles()},
          WaveGradients<T, T>{waves_.data(), std::int64_t(modes_) * n_ * n_,
                              std::int64_t(sizes_.of_bundle) * n_ * n_, wave_block, nullptr},
          call.outputs.object_gradient.data, shifted_ ? held_.data() : nullptr);
  }

private:
  /// Of modes whose conj(p) G are summed.
  int bundles() const { return Sizes::bundles(modes_, sizes_.of_bundle); }

  /// Losses, conj(p) G and the gradients with respect to probes.
  template <class Rows, class Columns, bool shifted>
  void compute(const Call& call) const {
    const bool of_probes = call.outputs.probe_gradient || call.outputs.position_gradient;
    ShiftedSpectra<T> spectra{};
    if constexpr (shifted) {
      spectra = shifted_.spectra(call.space, call.positions, call.inputs, call.selection, true);
      shift_rows<Rows>(call.space, spectra);
    }
    exit_waves<Columns, shifted>(call, call.targets.scaled && !weighted_);
    compare_all<Rows, Columns>(call);
    if (call.wave_gradients())
      wave_gradients<Columns, shifted>(call, of_probes);
    if constexpr (shifted)
      if (of_probes)
        sum_shifted_rows<Rows>(call, spectra);
  }

  template <class Rows>
  void shift_rows(const Space& space, const ShiftedSpectra<T>& spectra) const {
    using Kernel = ShiftRows<Space, T, Rows>;
    const std::int64_t count = spectra.ramp.selection.count,
                       used = portions_of_patterns<Kernel>(PtychographyTuning::portion_teams, modes_, count);
    launch_known_lines<T>(space, "Bracewell::PtychographyLoss::shift_rows", used * modes_ * Rows::blocks,
                          Kernel{{QuickDivision(modes_), table_.data()},
                                 spectra.spectra,
                                 spectra.ramp.phases,
                                 probes_.data(),
                                 static_cast<int>(count),
                                 static_cast<int>(used)});
  }

  /// What kernels over columns share, for so many portions of the patterns.
  template <class Columns, bool shifted>
  KnownColumns<Space, T, Columns, shifted> columns(const Call& call, std::int64_t portions) const {
    return {{QuickDivision(modes_), table_.data()},
            call.positions.device(),
            call.selection,
            call.inputs.object.data,
            shifted ? probes_.data() : const_cast<Complex*>(call.inputs.probe.data),
            waves_.data(),
            static_cast<int>(portions)};
  }

  template <class Columns, bool shifted>
  void exit_waves(const Call& call, bool energies) const {
    using Kernel = ExitWaveColumns<Space, T, Columns, shifted>;
    const std::int64_t used =
        portions_of_patterns<Kernel>(PtychographyTuning::portion_teams, modes_, call.selection.count);
    launch_known_lines<T>(call.space, "Bracewell::PtychographyLoss::exit_waves",
                          used * modes_ * Columns::blocks,
                          Kernel{columns<Columns, shifted>(call, used), energies ? sums_.data() : nullptr});
  }

  template <class Rows, class Columns>
  void compare_all(const Call& call) const {
    using Of = typename Sum::Of;
    using Tuning = PtychographyTuning;
    using Some = CompareRows<Space, T, Storage, Rows, PatternLoss::Amplitude>;
    constexpr std::size_t bytes = Tuning::chip_bytes / teams_on_chip<T, Some>() - 2 * Tuning::system_bytes;
    constexpr int room = std::min(bytes, Tuning::line_bytes) / (Rows::exchange * sizeof(Complex));
    const int exchanges = std::clamp(room, 1, modes_);
    const auto add = [&](Of of, int blocks) {
      Sum::launch(call.space,
                  Sum{of, sums_.data(), blocks, call.selection, call.targets, call.options.loss, call.norm,
                      double(n_) * n_, weighted_ ? 0.0 : 1.0, patterns_.data(), call.losses, nullptr});
    };
    const auto compare = [&](const char* label, CompareTask task, bool back) {
      visit_loss(call.options.loss, [&](auto kind) {
        launch_known_lines<T>(call.space, label, call.selection.count * Rows::blocks,
                              CompareRows<Space, T, Storage, Rows, decltype(kind)::value>{
                                  {QuickDivision(modes_), table_.data()},
                                  exchanges,
                                  call.selection,
                                  call.targets,
                                  static_cast<T>(call.options.background),
                                  call.norm,
                                  waves_.data(),
                                  patterns_.data(),
                                  sums_.data(),
                                  task,
                                  back,
                                  !shifted_},
                              exchanges);
      });
    };
    const bool scaled = call.targets.scaled;
    if (scaled && !weighted_)
      add(Of::Energies, modes_ * Columns::blocks);
    if (scaled && weighted_) {
      compare("Bracewell::PtychographyLoss::means", CompareTask::Mean, false);
      add(Of::Means, Rows::blocks);
      compare("Bracewell::PtychographyLoss::slopes", CompareTask::Slope, false);
      add(Of::Slopes, Rows::blocks);
    }
    compare("Bracewell::PtychographyLoss::compare", CompareTask::Compare, call.wave_gradients());
    add(Of::Losses, Rows::blocks);
  }

  template <class Columns, bool shifted>
  void wave_gradients(const Call& call, bool of_probes) const {
    const std::int64_t used =
        shifted ? stretches<Columns>(call.selection.count) : std::min(sizes_.portions, call.selection.count);
    const auto run = [&](auto together) {
      launch_known_lines<T>(call.space, "Bracewell::PtychographyLoss::wave_gradients",
                            used * bundles() * Columns::blocks,
                            GradientColumns<Space, T, Columns, shifted, together>{
                                columns<Columns, shifted>(call, used), QuickDivision(bundles()),
                                sizes_.of_bundle, patterns_.data(), portions_.data(), static_cast<int>(used),
                                held_.data(), bool(call.outputs.object_gradient), of_probes},
                            together ? sizes_.of_bundle : 1);
    };
    constexpr bool several =
        !shifted && most_of_bundle<T, GradientColumns<Space, T, Columns, false, true>>() > 1;
    if (several && sizes_.of_bundle > 1)
      run(std::bool_constant<several>());
    else
      run(std::false_type());
    if (!shifted && of_probes)
      sum_portions(call.space, call.outputs.probe_gradient.data, used, call.selection.first > 0);
  }

  /// Stretches of the patterns of shifted probes: of one mode as many as keep a GPU busy for a few rounds of their teams; of
  /// several, where conj(p) G is a small part of what is written, stretches of one pattern take less time.
  template <class Columns>
  std::int64_t stretches(std::int64_t count) const {
    using Tuning = PtychographyTuning;
    using Kernel = GradientColumns<Space, T, Columns, true>;
    const std::int64_t teams = Tuning::stretch_rounds * Tuning::multiprocessors * teams_on_chip<T, Kernel>();
    return modes_ > 1 ? count : std::clamp<std::int64_t>(teams / Columns::blocks, 1, count);
  }

  template <class Rows>
  void sum_shifted_rows(const Call& call, const ShiftedSpectra<T>& spectra) const {
    const Space& space = call.space;
    const auto& outputs = call.outputs;
    const Selection& selection = call.selection;
    const std::int64_t used = std::min(sizes_.portions, selection.count);
    launch_known_lines<T>(space, "Bracewell::PtychographyLoss::probe_rows", used * modes_ * Rows::blocks,
                          SumShiftedRows<Space, T, Rows>{{QuickDivision(modes_), table_.data()},
                                                         probes_.data(),
                                                         spectra.ramp.phases,
                                                         spectra.spectra,
                                                         portions_.data(),
                                                         outputs.position_gradient ? sums_.data() : nullptr,
                                                         static_cast<int>(selection.count),
                                                         static_cast<int>(used)});
    if (outputs.position_gradient)
      launch_kernel("Bracewell::PtychographyLoss::position_gradient", Range(space, 0, 2 * selection.count),
                    SumPositionBlocks<T>{sums_.data(), modes_ * Rows::blocks, selection,
                                         shifted_.position_factor(), outputs.position_gradient.data});
    if (!outputs.probe_gradient)
      return;
    sum_portions(space, shifted_.sums(), used, false);
    shifted_.add_sums(space, outputs, selection.first > 0);
  }

  void sum_portions(const Space& space, Complex* to, std::int64_t count, bool accumulate) const {
    const std::int64_t elements = std::int64_t(modes_) * n_ * n_;
    launch_kernel("Bracewell::PtychographyLoss::probe_gradient", Range(space, 0, elements),
                  AddPortions<T>{portions_.data(), to, elements, count, accumulate});
  }

  int n_, modes_;
  bool weighted_;
  Sizes sizes_;
  Shifted shifted_;
  View<Complex> waves_, probes_, portions_;
  View<HeldRows> held_;
  View<PatternSums<T>> patterns_;
  View<double> sums_;
  View<PlainComplex<T>> table_;
};

} // namespace Bracewell::Impl
