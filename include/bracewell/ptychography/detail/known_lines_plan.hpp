// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/ptychography/choose_pattern_path.hpp>
#include <bracewell/ptychography/detail/compare_known_rows.hpp>
#include <bracewell/ptychography/detail/gradient_sums.hpp>
#include <bracewell/ptychography/detail/known_gradients.hpp>
#include <bracewell/ptychography/detail/line_groups.hpp>
#include <bracewell/ptychography/detail/shifted_probes.hpp>
#include <bracewell/ptychography/detail/sum_blocks.hpp>
#include <bracewell/ptychography/detail/window_gradients.hpp>

namespace Bracewell::Impl {

/// Calls action(RowSizes, ColumnSizes) for patterns of n x n pixels, if n is one of the detectors and of
/// PtychographyTuning::line_sizes; returns whether it is.
template <class Detectors, class Space, class T, class Action>
bool visit_line_sizes(int n, const Action& action) {
  const auto visit = [&](auto index) {
    constexpr FusedSize size = PtychographyTuning::line_sizes[decltype(index)::value];
    if constexpr (lines_are_known<Detectors, Space, T>(size.n, size.n))
      if (n == size.n) {
        action(RowSizes<size.lanes, size.n / size.lanes>(), ColumnSizes<size.lanes, size.n / size.lanes>());
        return true;
      }
    return false;
  };
  return [&]<std::size_t... index>(std::index_sequence<index...>) {
    return (visit(std::integral_constant<std::size_t, index>()) || ...);
  }
  (std::make_index_sequence<std::size(PtychographyTuning::line_sizes)>());
}

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
        sizes_(sizes(space, positions.count(), positions.subpixel(), shape, options)),
        shifted_(space, positions, shape, options, sizes_.group),
        waves_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::waves", sizes_.waves)),
        probes_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::probes", sizes_.probes)),
        slices_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::wave_slices",
                                       sizes_.all_slices() * modes_ * n_ * n_)),
        held_(device_vector<HeldRows>(space, "Bracewell::PtychographyLoss::held_rows", sizes_.held)),
        patterns_(
            device_vector<PatternSums<T>>(space, "Bracewell::PtychographyLoss::pattern_sums", sizes_.group)),
        sums_(device_vector<double>(space, "Bracewell::PtychographyLoss::sums", sizes_.sums)) {
    fill(space, "Bracewell::PtychographyLoss::unscaled", patterns_.data(), sizes_.group,
         PatternSums<T>{1, 0, 0});
    visit_line_sizes<Detectors, Space, T>(n_, [&](auto rows, auto columns) {
      table_ = make_fused_table<T>(space, typename decltype(rows)::Sizes());
      if (sizes_.rotations > 0)
        rotations_ = make_rotations<T>(space, columns);
    });
  }

  std::int64_t group_size() const { return sizes_.group; }

  std::size_t memory_bytes() const {
    return bytes_of(waves_, probes_, slices_, held_, patterns_, sums_, table_, rotations_) +
           shifted_.memory_bytes();
  }

  static std::size_t bytes_needed(const Space& space, std::int64_t count, bool subpixel,
                                  const PtychographyShape& shape, const PtychographyOptions& options) {
    const Sizes needed = sizes(space, count, subpixel, shape, options);
    const std::int64_t probe = std::int64_t(shape.modes) * shape.detector * shape.detector;
    return sizeof(Complex) * (needed.waves + needed.probes + needed.all_slices() * probe + needed.table +
                              needed.rotations) +
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
          outputs.object_gradient.data, shifted_ || by_windows(positions, selection) ? held_.data() : nullptr,
          bool(shifted_));
  }

private:
  /// Of modes whose conj(p) G are summed.
  int sets() const { return sets(modes_, sizes_.of_set); }
  static int sets(int modes, int of_set) { return (modes + of_set - 1) / of_set; }

  /// Numbers of elements; and the modes of a set.
  struct Sizes {
    std::int64_t group, waves, probes, held, slices, sums, table, rotations;
    std::int64_t windows, window_slices; ///< runs of WindowGradients and the sums that they leave, or 0
    int of_set;

    std::int64_t all_slices() const { return std::max(slices, window_slices); }
  };

  static Sizes sizes(const Space& space, std::int64_t count, bool subpixel, const PtychographyShape& shape,
                     const PtychographyOptions& options) {
    using Tuning = PtychographyTuning;
    const std::int64_t modes = shape.modes, n = shape.detector;
    const bool shifted = Shifted::needed(subpixel, shape, options);
    Sizes result{};
    const std::int64_t group =
        line_group(space, options, count, std::int64_t(sizeof(Complex)) * modes * n * n * (shifted ? 2 : 1));
    result.group = group;
    result.waves = group * modes * n * n;
    result.probes = shifted ? result.waves : 0;
    visit_line_sizes<Detectors, Space, T>(shape.detector, [&](auto rows, auto columns) {
      using Rows = decltype(rows);
      using Columns = decltype(columns);
      using Together = GradientColumns<Space, T, Columns, false, true>;
      const int most = shifted ? shape.modes : std::min(most_of_set<Together>(), shape.modes);
      result.of_set = sets(shape.modes, sets(shape.modes, most)); // all of about the same size
      const auto slices_of = [&](auto kernel, int of_pattern) {
        using Kernel = typename decltype(kernel)::type;
        return slices<Kernel>(Tuning::multiprocessors * teams_on_chip<Kernel>(result.of_set), of_pattern,
                              group);
      };
      result.slices =
          shifted ? slices_of(std::type_identity<SumShiftedRows<Space, T, Rows>>(), shape.modes)
          : result.of_set > 1
              ? slices_of(std::type_identity<Together>(), sets(shape.modes, result.of_set))
              : slices_of(std::type_identity<GradientColumns<Space, T, Columns, false>>(), shape.modes);
      if constexpr (knows_windows<Columns>) {
        constexpr std::int64_t blocks = WindowSizes<Columns>::blocks, runs = Tuning::multiprocessors / blocks;
        if (!shifted && modes == 1 && group >= least_run * runs &&
            chip_memory(space) >= Windows<Columns>::bytes) {
          result.windows = runs;
          result.window_slices = runs * blocks;
          result.rotations = n * Columns::inner_factors;
        }
      }
      result.held = shifted || result.windows > 0 ? group * n : 0;
      result.sums = 2 * group *
                    std::max<std::int64_t>(modes * columns.blocks,
                                           (options.refine_positions ? modes : 1) * rows.blocks);
      result.table = rows.table;
    });
    return result;
  }

  /// Columns for WindowGradients.
  template <class Columns>
  using WindowSizes = ColumnSizes<Columns::lanes, Columns::per_lane, PtychographyTuning::window_columns>;
  template <class Columns>
  using Windows = WindowGradients<Space, T, WindowSizes<Columns>>;
  template <class Columns>
  static constexpr bool
      knows_windows = has_chip_memory<Space> &&
                      sizeof(T) == sizeof(float) && Columns::n == PtychographyTuning::window_size;
  /// Patterns of a run that pay for the sums that it leaves.
  static constexpr int least_run = 4;

  /// Whether runs pay: those of a subset may have any order.
  bool by_windows(const ScanPositions<Space>& positions, const Selection& selection) const {
    return sizes_.windows > 0 && selection.count >= least_run * sizes_.windows && !selection.patterns &&
           positions.shared_with_next() >= PtychographyTuning::window_shared;
  }

  /// Numbers that a team has in scratch memory, for `together` modes or exchanges.
  template <class Kernel>
  static constexpr int scratch(int together) {
    return Kernel::numbers + (together - 1) * Kernel::of_mode;
  }

  /// Teams that a multiprocessor should hold of a kernel: as many as their registers, and an exchange of each, let it.
  template <class Kernel>
  static constexpr int teams_on_chip(int together = 1) {
    using Tuning = PtychographyTuning;
    const std::size_t bytes = scratch<Kernel>(together) * sizeof(Complex) + 2 * Tuning::system_bytes;
    constexpr int registers = sizeof(T) * std::max(16, +Kernel::per_lane); // that numbers take
    constexpr int threads = Kernel::on_chip * 16 * sizeof(float) / registers;
    return std::clamp<int>(threads / Kernel::threads, 1, std::max<int>(1, Tuning::chip_bytes / bytes));
  }

  /// Modes whose sums leave a multiprocessor the teams that launch() promises, without which Kokkos refuses to launch.
  template <class Kernel>
  static constexpr int most_of_set() {
    int most = 1;
    while (most < Kernel::most_together && teams_on_chip<Kernel>(most + 1) == teams_on_chip<Kernel>())
      ++most;
    return most;
  }

  /// Slices of `count` patterns, for so many teams, about, and sets of modes.
  template <class Kernel>
  static std::int64_t slices(int teams, int sets, std::int64_t count) {
    return std::clamp<std::int64_t>(teams / (sets * Kernel::Sizes::blocks), 1, count);
  }

  template <class Kernel>
  static void launch(const Space& space, const char* label, std::int64_t teams, const Kernel& kernel,
                     int together = 1) {
    using Policy = Kokkos::TeamPolicy<
        Space, Kokkos::LaunchBounds<Kernel::threads, resident_teams<Space>(teams_on_chip<Kernel>())>>;
    Policy policy(space, static_cast<int>(teams), +Kernel::threads);
    policy.set_scratch_size(0,
                            Kokkos::PerTeam(scratch<Kernel>(together) * static_cast<int>(sizeof(Complex))));
    Kokkos::parallel_for(label, policy, kernel);
  }

  template <class Rows>
  void shift_rows(const Space& space, const ShiftedSpectra<T>& spectra) const {
    using Kernel = ShiftRows<Space, T, Rows>;
    const std::int64_t count = spectra.ramp.selection.count,
                       used = slices<Kernel>(PtychographyTuning::slice_teams, modes_, count);
    launch(space, "Bracewell::PtychographyLoss::shift_rows", used * modes_ * Rows::blocks,
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
    const std::int64_t used = slices<Kernel>(PtychographyTuning::slice_teams, modes_, selection.count);
    launch(space, "Bracewell::PtychographyLoss::exit_waves", used * modes_ * Columns::blocks,
           Kernel{columns<Columns, shifted>(positions, inputs, selection, used),
                  energies ? sums_.data() : nullptr});
  }

  template <class Rows, class Columns>
  void compare_all(const Space& space, const Selection& selection, const Targets<T, Storage>& targets,
                   const PtychographyOptions& options, T norm, double* losses, bool gradients) const {
    using Of = typename Sum::Of;
    using Tuning = PtychographyTuning;
    using Some = CompareRows<Space, T, Storage, Rows, PatternLoss::Amplitude>;
    constexpr std::size_t bytes = Tuning::chip_bytes / teams_on_chip<Some>() - 2 * Tuning::system_bytes;
    constexpr int room = std::min(bytes, Tuning::line_bytes) / (Rows::exchange * sizeof(Complex));
    const int exchanges = std::clamp(room, 1, modes_);
    const auto add = [&](Of of, int blocks) {
      Sum::launch(space, Sum{of, sums_.data(), blocks, selection, targets, options.loss, norm,
                             double(n_) * n_, weighted_ ? 0.0 : 1.0, patterns_.data(), losses, nullptr});
    };
    const auto compare = [&](const char* label, CompareTask task, bool back) {
      visit_loss(options.loss, [&](auto kind) {
        launch(space, label, selection.count * Rows::blocks,
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
    if constexpr (!shifted && knows_windows<Columns>)
      if (by_windows(positions, selection)) {
        using Kernel = Windows<Columns>;
        using Wide = WindowSizes<Columns>;
        const auto teams = static_cast<int>(sizes_.windows * modes_ * Wide::blocks);
        launch_on_chip(space, "Bracewell::PtychographyLoss::window_gradients", teams, Kernel::bytes,
                       Kernel{columns<Wide, false>(positions, inputs, selection, sizes_.windows),
                              rotations_.data(), patterns_.data(), slices_.data(),
                              static_cast<int>(sizes_.windows), held_.data(), bool(outputs.object_gradient),
                              of_probes});
        if (of_probes)
          sum_slices(space, outputs.probe_gradient.data, sizes_.windows * Wide::blocks, selection.first > 0);
        return;
      }
    const std::int64_t used =
        shifted ? runs<Columns>(selection.count) : std::min(sizes_.slices, selection.count);
    const auto run = [&](auto together) {
      launch(space, "Bracewell::PtychographyLoss::wave_gradients", used * sets() * Columns::blocks,
             GradientColumns<Space, T, Columns, shifted, together>{
                 columns<Columns, shifted>(positions, inputs, selection, used), QuickDivision(sets()),
                 sizes_.of_set, patterns_.data(), slices_.data(), static_cast<int>(used), held_.data(),
                 bool(outputs.object_gradient), of_probes},
             together ? sizes_.of_set : 1);
    };
    constexpr bool several = !shifted && most_of_set<GradientColumns<Space, T, Columns, false, true>>() > 1;
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
    const std::int64_t teams = Tuning::run_turns * Tuning::multiprocessors * teams_on_chip<Kernel>();
    return modes_ > 1 ? count : std::clamp<std::int64_t>(teams / Columns::blocks, 1, count);
  }

  template <class Rows>
  void sum_shifted_rows(const Space& space, const ShiftedSpectra<T>& spectra, const Outputs& outputs) const {
    const Selection& selection = spectra.ramp.selection;
    const std::int64_t used = std::min(sizes_.slices, selection.count);
    launch(space, "Bracewell::PtychographyLoss::probe_rows", used * modes_ * Rows::blocks,
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
  View<PlainComplex<T>> table_, rotations_;
};

} // namespace Bracewell::Impl
