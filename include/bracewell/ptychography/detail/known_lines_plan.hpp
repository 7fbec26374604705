// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/plain_complex.hpp>
#include <bracewell/impl/quick_division.hpp>
#include <bracewell/ptychography/choose_pattern_path.hpp>
#include <bracewell/ptychography/detail/compare_known_rows.hpp>
#include <bracewell/ptychography/detail/gradient_sums.hpp>
#include <bracewell/ptychography/detail/known_gradients.hpp>
#include <bracewell/ptychography/detail/known_line_teams.hpp>
#include <bracewell/ptychography/detail/known_lines.hpp>
#include <bracewell/ptychography/detail/known_lines_sizes.hpp>
#include <bracewell/ptychography/detail/selection.hpp>
#include <bracewell/ptychography/detail/shifted_probes.hpp>
#include <bracewell/ptychography/detail/sum_blocks.hpp>
#include <bracewell/ptychography/detail/targets.hpp>
#include <bracewell/ptychography/inputs.hpp>
#include <bracewell/ptychography/options.hpp>
#include <bracewell/ptychography/scan_positions.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace Bracewell::Impl {

/// LinesPlan for the lengths of lines that the compiler knows, on GPUs. Kernels, and what they leave per wave:
///   ShiftRows        probes between pixels: their columns' spectra                       written
///   ExitWaveColumns  exit waves, transformed along the columns                           (read) written
///   CompareRows      the same of the derivatives at the detector                         read written
///   GradientColumns  conj(p) G for the object; sums of conj(O) G over slices of the      read written
///                    patterns, or between pixels conj(O) G along the columns             read written
///   SumShiftedRows   between pixels: sums of their spectra over slices                   read
/// and the sums for the object read conj(p) G.
template <class Space, class T, class Storage, class Detectors>
class KnownLinesPlan {
  using Complex = Kokkos::complex<T>;
  using Memory = typename Space::memory_space;
  template <class Value>
  using View = Kokkos::View<Value*, Kokkos::LayoutRight, Memory>;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  using Shifted = ShiftedProbes<Space, T>;
  using Inputs = PtychographyInputs<T, Memory>;
  using Outputs = PtychographyOutputs<T, Memory>;
  using Sum = SumBlocks<Space, T, Storage>;
  using Sizes = KnownLinesSizes<Space, T, Detectors>;

public:
  static constexpr PatternPath path = PatternPath::Lines;

  static bool takes(const PtychographyShape& shape, const PtychographyOptions& options) {
    return lines_are_known<Detectors, Space, T>(shape.detector, shape.probe) && shape.slices == 1 &&
           shape.relaxation == 0 && !options.fresnel_number && !options.pattern_factors &&
           !options.detector_background;
  }

  KnownLinesPlan(const Space& space, const ScanPositions<Space>& positions, const PtychographyShape& shape,
                 const PtychographyOptions& options)
      : n_(shape.detector), modes_(shape.modes), weighted_(options.weights != PixelWeights::None),
        sizes_(Sizes::make(space, positions.count(), positions.subpixel(), shape, options)),
        shifted_(space, positions, shape, options, sizes_.group),
        waves_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::waves", sizes_.waves)),
        probes_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::probes", sizes_.probes)),
        slices_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::wave_slices",
                                       sizes_.slices * modes_ * n_ * n_)),
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
    return bytes_of(waves_, probes_, slices_, held_, patterns_, sums_, table_) + shifted_.memory_bytes();
  }

  static std::size_t bytes_needed(const Space& space, std::int64_t count, bool subpixel,
                                  const PtychographyShape& shape, const PtychographyOptions& options) {
    const Sizes needed = Sizes::make(space, count, subpixel, shape, options);
    const std::int64_t probe = std::int64_t(shape.modes) * shape.detector * shape.detector;
    return sizeof(Complex) * (needed.waves + needed.probes + needed.slices * probe + needed.table) +
           needed.held * sizeof(HeldRows) + needed.group * sizeof(PatternSums<T>) +
           needed.sums * sizeof(double) +
           Shifted::bytes_needed(space, count, subpixel, shape, options, needed.group);
  }

  /// What all groups of a call need.
  void begin(const Space& space, const ScanPositions<Space>& positions, const Inputs& inputs) const {
    shifted_.begin(space, positions, inputs);
  }

  /// Losses of the patterns of a selection, which go to losses[0], ..., and what they add to the gradients.
  void evaluate(const Space& space, const ScanPositions<Space>& positions, const Inputs& inputs,
                const Outputs& outputs, const Selection& selection, const Targets<T, Storage>& targets,
                const PtychographyOptions& options, T norm, double* losses,
                const GradientSums<Space, T>& sums) const {
    const bool of_probes = outputs.probe_gradient || outputs.position_gradient,
               gradients = outputs.object_gradient || of_probes;
    visit_line_sizes<Detectors, Space, T>(n_, [&](auto rows, auto columns) {
      using Rows = decltype(rows);
      using Columns = decltype(columns);
      ShiftedSpectra<T> spectra{};
      if (shifted_) {
        spectra = shifted_.spectra(space, positions, inputs, selection, true);
        shift_rows<Rows>(space, spectra);
      }
      const auto run = [&](auto shifted) {
        exit_waves<Columns, shifted>(space, positions, inputs, selection, targets.counts > 0 && !weighted_);
        compare_all<Rows, Columns>(space, selection, targets, options, norm, losses, gradients);
        if (gradients)
          wave_gradients<Columns, shifted>(space, positions, inputs, outputs, selection, of_probes);
      };
      if (shifted_)
        run(std::true_type());
      else
        run(std::false_type());
      if (shifted_ && of_probes)
        sum_shifted_rows<Rows>(space, spectra, outputs);
    });
    if (outputs.object_gradient)
      sums.template add_object<wave_block>(
          space, positions.device(), positions.tiles(), selection, {nullptr, 0, sets()},
          WaveGradients<T, T>{waves_.data(), std::int64_t(modes_) * n_ * n_,
                              std::int64_t(sizes_.of_set) * n_ * n_, wave_block, nullptr},
          outputs.object_gradient.data, shifted_ ? held_.data() : nullptr);
  }

private:
  /// Of modes whose conj(p) G are summed.
  int sets() const { return Sizes::sets(modes_, sizes_.of_set); }

  template <class Rows>
  void shift_rows(const Space& space, const ShiftedSpectra<T>& spectra) const {
    using Kernel = ShiftRows<Space, T, Rows>;
    const std::int64_t count = spectra.ramp.selection.count,
                       used = slices_of_patterns<Kernel>(PtychographyTuning::slice_teams, modes_, count);
    launch_known_lines<T>(space, "Bracewell::PtychographyLoss::shift_rows", used * modes_ * Rows::blocks,
                          Kernel{{QuickDivision(modes_), table_.data()},
                                 spectra.spectra,
                                 spectra.ramp.phases,
                                 probes_.data(),
                                 static_cast<int>(count),
                                 static_cast<int>(used)});
  }

  /// What kernels over columns share, for so many slices of the patterns.
  template <class Columns, bool shifted>
  KnownColumns<Space, T, Columns, shifted> columns(const ScanPositions<Space>& positions,
                                                   const Inputs& inputs, const Selection& selection,
                                                   std::int64_t slices) const {
    return {{QuickDivision(modes_), table_.data()},
            positions.device(),
            selection,
            inputs.object.data,
            shifted ? probes_.data() : const_cast<Complex*>(inputs.probe.data),
            waves_.data(),
            static_cast<int>(slices)};
  }

  template <class Columns, bool shifted>
  void exit_waves(const Space& space, const ScanPositions<Space>& positions, const Inputs& inputs,
                  const Selection& selection, bool energies) const {
    using Kernel = ExitWaveColumns<Space, T, Columns, shifted>;
    const std::int64_t used =
        slices_of_patterns<Kernel>(PtychographyTuning::slice_teams, modes_, selection.count);
    launch_known_lines<T>(space, "Bracewell::PtychographyLoss::exit_waves", used * modes_ * Columns::blocks,
                          Kernel{columns<Columns, shifted>(positions, inputs, selection, used),
                                 energies ? sums_.data() : nullptr});
  }

  template <class Rows, class Columns>
  void compare_all(const Space& space, const Selection& selection, const Targets<T, Storage>& targets,
                   const PtychographyOptions& options, T norm, double* losses, bool gradients) const {
    using Of = typename Sum::Of;
    using Tuning = PtychographyTuning;
    using Some = CompareRows<Space, T, Storage, Rows, PatternLoss::Amplitude>;
    constexpr std::size_t bytes = Tuning::chip_bytes / teams_on_chip<T, Some>() - 2 * Tuning::system_bytes;
    constexpr int room = std::min(bytes, Tuning::line_bytes) / (Rows::exchange * sizeof(Complex));
    const int exchanges = std::clamp(room, 1, modes_);
    const auto add = [&](Of of, int blocks) {
      Sum::launch(space, Sum{of, sums_.data(), blocks, selection, targets, options.loss, norm,
                             double(n_) * n_, weighted_ ? 0.0 : 1.0, patterns_.data(), losses, nullptr});
    };
    const auto compare = [&](const char* label, CompareTask task, bool back) {
      visit_loss(options.loss, [&](auto kind) {
        launch_known_lines<T>(space, label, selection.count * Rows::blocks,
                              CompareRows<Space, T, Storage, Rows, decltype(kind)::value>{
                                  {QuickDivision(modes_), table_.data()},
                                  exchanges,
                                  selection,
                                  targets,
                                  static_cast<T>(options.background),
                                  norm,
                                  waves_.data(),
                                  patterns_.data(),
                                  sums_.data(),
                                  task,
                                  back,
                                  !shifted_},
                              exchanges);
      });
    };
    const bool scaled = targets.counts > 0;
    if (scaled && !weighted_)
      add(Of::Energies, modes_ * Columns::blocks);
    if (scaled && weighted_) {
      compare("Bracewell::PtychographyLoss::means", CompareTask::Mean, false);
      add(Of::Means, Rows::blocks);
      compare("Bracewell::PtychographyLoss::slopes", CompareTask::Slope, false);
      add(Of::Slopes, Rows::blocks);
    }
    compare("Bracewell::PtychographyLoss::compare", CompareTask::Compare, gradients);
    add(Of::Losses, Rows::blocks);
  }

  template <class Columns, bool shifted>
  void wave_gradients(const Space& space, const ScanPositions<Space>& positions, const Inputs& inputs,
                      const Outputs& outputs, const Selection& selection, bool of_probes) const {
    const std::int64_t used =
        shifted ? runs<Columns>(selection.count) : std::min(sizes_.slices, selection.count);
    const auto run = [&](auto together) {
      launch_known_lines<T>(
          space, "Bracewell::PtychographyLoss::wave_gradients", used * sets() * Columns::blocks,
          GradientColumns<Space, T, Columns, shifted, together>{
              columns<Columns, shifted>(positions, inputs, selection, used), QuickDivision(sets()),
              sizes_.of_set, patterns_.data(), slices_.data(), static_cast<int>(used), held_.data(),
              bool(outputs.object_gradient), of_probes},
          together ? sizes_.of_set : 1);
    };
    constexpr bool several =
        !shifted && most_of_set<T, GradientColumns<Space, T, Columns, false, true>>() > 1;
    if (several && sizes_.of_set > 1)
      run(std::bool_constant<several>());
    else
      run(std::false_type());
    if (!shifted && of_probes)
      sum_slices(space, outputs.probe_gradient.data, used, selection.first > 0);
  }

  /// Runs of the patterns of shifted probes: of one mode as many as keep a GPU busy for a few turns of their teams; of
  /// several, where conj(p) G is a small part of what is written, runs of one pattern take less time.
  template <class Columns>
  std::int64_t runs(std::int64_t count) const {
    using Tuning = PtychographyTuning;
    using Kernel = GradientColumns<Space, T, Columns, true>;
    const std::int64_t teams = Tuning::run_turns * Tuning::multiprocessors * teams_on_chip<T, Kernel>();
    return modes_ > 1 ? count : std::clamp<std::int64_t>(teams / Columns::blocks, 1, count);
  }

  template <class Rows>
  void sum_shifted_rows(const Space& space, const ShiftedSpectra<T>& spectra, const Outputs& outputs) const {
    const Selection& selection = spectra.ramp.selection;
    const std::int64_t used = std::min(sizes_.slices, selection.count);
    launch_known_lines<T>(space, "Bracewell::PtychographyLoss::probe_rows", used * modes_ * Rows::blocks,
                          SumShiftedRows<Space, T, Rows>{{QuickDivision(modes_), table_.data()},
                                                         probes_.data(),
                                                         spectra.ramp.phases,
                                                         spectra.spectra,
                                                         slices_.data(),
                                                         outputs.position_gradient ? sums_.data() : nullptr,
                                                         static_cast<int>(selection.count),
                                                         static_cast<int>(used)});
    if (outputs.position_gradient)
      Kokkos::parallel_for("Bracewell::PtychographyLoss::position_gradient",
                           Range(space, 0, 2 * selection.count),
                           SumPositionBlocks<T>{sums_.data(), modes_ * Rows::blocks, selection,
                                                shifted_.position_factor(), outputs.position_gradient.data});
    if (!outputs.probe_gradient)
      return;
    sum_slices(space, shifted_.sums(), used, false);
    shifted_.add_sums(space, outputs, selection.first > 0);
  }

  void sum_slices(const Space& space, Complex* to, std::int64_t count, bool accumulate) const {
    const std::int64_t elements = std::int64_t(modes_) * n_ * n_;
    Kokkos::parallel_for("Bracewell::PtychographyLoss::probe_gradient", Range(space, 0, elements),
                         SumSlices<T>{slices_.data(), to, elements, count, accumulate});
  }

  int n_, modes_;
  bool weighted_;
  Sizes sizes_;
  Shifted shifted_;
  View<Complex> waves_, probes_, slices_;
  View<HeldRows> held_;
  View<PatternSums<T>> patterns_;
  View<double> sums_;
  View<PlainComplex<T>> table_;
};

} // namespace Bracewell::Impl
