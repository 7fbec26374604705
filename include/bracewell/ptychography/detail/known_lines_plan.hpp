// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/ptychography/choose_pattern_path.hpp>
#include <bracewell/ptychography/detail/known_lines.hpp>
#include <bracewell/ptychography/detail/lines_plan.hpp>

namespace Bracewell::Impl {

/// Calls action(RowSizes, ColumnSizes) for patterns of n x n pixels, if n is one of the detectors and of
/// PtychographyTuning::line_sizes; returns whether it is.
template <class Detectors, class Action>
bool visit_line_sizes(int n, const Action& action) {
  const auto visit = [&](auto index) {
    constexpr FusedSize size = PtychographyTuning::line_sizes[decltype(index)::value];
    if constexpr (Detectors::knows_lines(size.n))
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
  using Transform = FFT<Space, 2, Complex, Complex>;
  using Spectrum = Kokkos::View<Complex****, Kokkos::LayoutRight, Memory>;

public:
  static constexpr PatternPath path = PatternPath::Lines;

  static bool takes(const PtychographyShape& shape) {
    return lines_are_known<Detectors, Space>(shape.detector, shape.probe);
  }

  KnownLinesPlan(const Space& space, const ScanPositions<Space>& positions, const PtychographyShape& shape,
                 const PtychographyOptions& options)
      : n_(shape.detector), modes_(shape.modes), weighted_(options.weights != PixelWeights::None),
        subpixel_(positions.subpixel()), sizes_(sizes(positions.count(), subpixel_, shape, options)),
        waves_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::waves", sizes_.waves)),
        probes_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::probes", sizes_.probes)),
        phases_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::phases", sizes_.phases)),
        slices_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::wave_slices",
                                       sizes_.slices * modes_ * n_ * n_)),
        patterns_(
            device_vector<PatternSums<T>>(space, "Bracewell::PtychographyLoss::pattern_sums", sizes_.group)),
        sums_(device_vector<double>(space, "Bracewell::PtychographyLoss::sums", sizes_.sums)) {
    fill(space, "Bracewell::PtychographyLoss::unscaled", patterns_.data(), sizes_.group,
         PatternSums<T>{1, 0, 0});
    visit_line_sizes<Detectors>(
        n_, [&](auto rows, auto) { table_ = make_fused_table<T>(space, typename decltype(rows)::Sizes()); });
    if (subpixel_) {
      spectrum_ = device_view<Complex****>(space, "Bracewell::PtychographyLoss::spectrum", 1, modes_, n_, n_);
      const std::array<int, 2> size{n_, n_};
      one_.emplace(space, size, modes_, FFTOptions{});
      one_back_.emplace(space, size, modes_, FFTOptions{.direction = FFTDirection::Backward});
    }
  }

  /// Products conj(p) G of a pattern that compute leaves, one for each mode or their sum.
  int products() const { return subpixel_ ? 1 : modes_; }

  std::int64_t group_size() const { return sizes_.group; }

  std::size_t memory_bytes() const {
    return bytes_of(waves_, probes_, phases_, slices_, patterns_, sums_, table_, spectrum_) +
           (one_ ? one_->memory_bytes() + one_back_->memory_bytes() : 0);
  }

  static std::size_t bytes_needed(const Space& space, std::int64_t count, bool subpixel,
                                  const PtychographyShape& shape, const PtychographyOptions& options) {
    const Sizes needed = sizes(count, subpixel, shape, options);
    const int n = shape.detector;
    const std::int64_t probe = std::int64_t(shape.modes) * n * n;
    std::size_t bytes = sizeof(Complex) * (needed.waves + needed.probes + needed.phases +
                                           needed.slices * probe + needed.table) +
                        needed.group * sizeof(PatternSums<T>) + needed.sums * sizeof(double);
    if (subpixel)
      bytes += sizeof(Complex) * probe + Transform::bytes_needed(space, {n, n}, shape.modes) +
               Transform::bytes_needed(space, {n, n}, shape.modes, {.direction = FFTDirection::Backward});
    return bytes;
  }

  /// Leaves conj(p) G of the selection for sums of the object's gradient, and adds to that of the probe.
  /// @param object_gradient  whether the former are asked for
  /// @param probe_gradient   [modes, m, m], or null
  WaveGradients<T, T> compute(const Space& space, const ScanPositions<Space>& positions,
                              const Complex* object, const Complex* probe, const Selection& selection,
                              const Targets<T, Storage>& targets, const PtychographyOptions& options, T norm,
                              double* losses, bool object_gradient, Complex* probe_gradient) const {
    visit_line_sizes<Detectors>(n_, [&](auto rows, auto columns) {
      using Rows = decltype(rows);
      using Columns = decltype(columns);
      if (subpixel_)
        shift_rows<Rows>(space, positions, probe, selection);
      const auto run = [&](auto shifted) {
        exit_waves<Columns, shifted>(space, positions, object, probe, selection,
                                     targets.counts > 0 && !weighted_);
        compare_all<Rows, Columns>(space, selection, targets, options, norm, losses,
                                   object_gradient || probe_gradient);
        if (object_gradient || probe_gradient)
          gradients<Columns, shifted>(space, positions, object, probe, selection, object_gradient,
                                      probe_gradient);
      };
      if (subpixel_)
        run(std::true_type());
      else
        run(std::false_type());
      if (subpixel_ && probe_gradient)
        sum_shifted_rows<Rows>(space, selection, probe_gradient);
    });
    return {waves_.data(), std::int64_t(modes_) * n_ * n_, std::int64_t(n_) * n_, wave_block, nullptr};
  }

private:
  /// Numbers of elements.
  struct Sizes {
    std::int64_t group, waves, probes, phases, slices, sums, table;
  };

  static Sizes sizes(std::int64_t count, bool subpixel, const PtychographyShape& shape,
                     const PtychographyOptions& options) {
    using Tuning = PtychographyTuning;
    const std::int64_t modes = shape.modes, n = shape.detector;
    const std::int64_t elements = modes * n * n * (subpixel ? 2 : 1),
                       allowed = options.workspace_bytes.value_or(Tuning::line_group_bytes);
    Sizes result{};
    const std::int64_t group = std::clamp<std::int64_t>(allowed / (std::int64_t(sizeof(Complex)) * elements),
                                                        1, std::max<std::int64_t>(count, 1));
    result.group = group;
    result.waves = group * modes * n * n;
    result.probes = subpixel ? result.waves : 0;
    result.phases = subpixel ? 2 * group * n : 0;
    visit_line_sizes<Detectors>(shape.detector, [&](auto rows, auto columns) {
      const std::int64_t blocks = subpixel ? rows.blocks : columns.blocks;
      result.slices = std::clamp<std::int64_t>(Tuning::slice_teams / (modes * blocks), 1, group);
      result.sums = 2 * group * std::max<std::int64_t>(modes * columns.blocks, rows.blocks);
      result.table = rows.table;
    });
    return result;
  }
  /// Patterns of a slice, where there are so many slices at most; and the slices.
  static std::pair<int, std::int64_t> slice(const Selection& selection, std::int64_t most) {
    const std::int64_t slices = std::clamp<std::int64_t>(most, 1, selection.count),
                       each = (selection.count + slices - 1) / slices;
    return {static_cast<int>(each), (selection.count + each - 1) / each};
  }

  /// Teams that a multiprocessor should hold of a kernel: as many as their registers, and an exchange of each, let it.
  template <class Kernel>
  static constexpr int teams_on_chip() {
    using Tuning = PtychographyTuning;
    constexpr std::size_t bytes = Kernel::numbers * sizeof(Complex) + 2 * Tuning::system_bytes;
    constexpr int threads = Kernel::on_chip * sizeof(float) / sizeof(T);
    return std::clamp<int>(threads / Kernel::threads, 1, std::max<int>(1, Tuning::chip_bytes / bytes));
  }

  template <class Kernel>
  static void launch(const Space& space, const char* label, std::int64_t teams, const Kernel& kernel,
                     int exchanges = 1) {
    using Policy = Kokkos::TeamPolicy<
        Space, Kokkos::LaunchBounds<Kernel::threads, resident_teams<Space>(teams_on_chip<Kernel>())>>;
    Policy policy(space, static_cast<int>(teams), +Kernel::threads);
    policy.set_scratch_size(0,
                            Kokkos::PerTeam(exchanges * Kernel::numbers * static_cast<int>(sizeof(Complex))));
    Kokkos::parallel_for(label, policy, kernel);
  }

  template <class Rows>
  void shift_rows(const Space& space, const ScanPositions<Space>& positions, const Complex* probe,
                  const Selection& selection) const {
    const Kokkos::View<const Complex****, Kokkos::LayoutRight, Memory> original(probe, 1, modes_, n_, n_);
    one_->execute(space, original, spectrum_);
    Kokkos::parallel_for("Bracewell::PtychographyLoss::shift_phases",
                         Range(space, 0, selection.count * 2 * n_),
                         ShiftPhases<T>{positions.fractions(), selection, phases_.data(), n_});
    const auto [per_slice, used] =
        slice(selection, PtychographyTuning::most_slice_teams / (modes_ * Rows::blocks));
    launch(space, "Bracewell::PtychographyLoss::shift_rows", used * modes_ * Rows::blocks,
           ShiftRows<Space, T, Rows>{{QuickDivision(modes_), table_.data()},
                                     spectrum_.data(),
                                     phases_.data(),
                                     probes_.data(),
                                     static_cast<int>(selection.count),
                                     per_slice});
  }

  /// What kernels over columns share, for slices of so many patterns.
  template <class Columns, bool shifted>
  KnownColumns<Space, T, Columns, shifted> columns(const ScanPositions<Space>& positions,
                                                   const Complex* object, const Complex* probe,
                                                   const Selection& selection, int per_slice) const {
    return {{QuickDivision(modes_), table_.data()},
            positions.device(),
            selection,
            object,
            shifted ? probes_.data() : const_cast<Complex*>(probe),
            waves_.data(),
            per_slice};
  }

  template <class Columns, bool shifted>
  void exit_waves(const Space& space, const ScanPositions<Space>& positions, const Complex* object,
                  const Complex* probe, const Selection& selection, bool energies) const {
    const auto [per_slice, used] =
        slice(selection, PtychographyTuning::most_slice_teams / (modes_ * Columns::blocks));
    launch(space, "Bracewell::PtychographyLoss::exit_waves", used * modes_ * Columns::blocks,
           ExitWaveColumns<Space, T, Columns, shifted>{
               columns<Columns, shifted>(positions, object, probe, selection, per_slice),
               energies ? sums_.data() : nullptr});
  }

  template <class Rows, class Columns>
  void compare_all(const Space& space, const Selection& selection, const Targets<T, Storage>& targets,
                   const PtychographyOptions& options, T norm, double* losses, bool gradients) const {
    using Sum = SumBlocks<Space, T, Storage>;
    using Of = typename Sum::Of;
    using Tuning = PtychographyTuning;
    using Some = CompareRows<Space, T, Storage, Rows, PatternLoss::Amplitude>;
    constexpr std::size_t bytes = Tuning::chip_bytes / teams_on_chip<Some>() - 2 * Tuning::system_bytes;
    constexpr int room = std::min(bytes, Tuning::line_bytes) / (Rows::exchange * sizeof(Complex));
    const int exchanges = std::clamp(room, 1, modes_);
    const auto add = [&](Of of, int blocks) {
      Sum::launch(space, Sum{of, sums_.data(), blocks, selection, targets, options.loss, norm,
                             double(n_) * n_, weighted_, patterns_.data(), losses});
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
                   back},
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
  void gradients(const Space& space, const ScanPositions<Space>& positions, const Complex* object,
                 const Complex* probe, const Selection& selection, bool object_gradient,
                 Complex* probe_gradient) const {
    const auto [per_slice, used] = slice(selection, shifted ? selection.count : sizes_.slices);
    launch(space, "Bracewell::PtychographyLoss::wave_gradients",
           used * (shifted ? 1 : modes_) * Columns::blocks,
           GradientColumns<Space, T, Columns, shifted>{
               columns<Columns, shifted>(positions, object, probe, selection, per_slice), patterns_.data(),
               slices_.data(), object_gradient, probe_gradient != nullptr});
    if (!shifted && probe_gradient)
      sum_slices(space, slices_.data(), probe_gradient, used, selection.first > 0);
  }

  template <class Rows>
  void sum_shifted_rows(const Space& space, const Selection& selection, Complex* probe_gradient) const {
    const auto [per_slice, used] = slice(selection, sizes_.slices);
    launch(space, "Bracewell::PtychographyLoss::probe_rows", used * modes_ * Rows::blocks,
           SumShiftedRows<Space, T, Rows>{{QuickDivision(modes_), table_.data()},
                                          probes_.data(),
                                          phases_.data(),
                                          slices_.data(),
                                          static_cast<int>(selection.count),
                                          per_slice});
    sum_slices(space, slices_.data(), spectrum_.data(), used, false);
    one_back_->execute(space, spectrum_, spectrum_);
    sum_slices(space, spectrum_.data(), probe_gradient, 1, selection.first > 0);
  }

  void sum_slices(const Space& space, const Complex* from, Complex* to, std::int64_t count,
                  bool accumulate) const {
    const std::int64_t elements = std::int64_t(modes_) * n_ * n_;
    Kokkos::parallel_for("Bracewell::PtychographyLoss::probe_gradient", Range(space, 0, elements),
                         SumSlices<T>{from, to, elements, count, accumulate});
  }

  int n_, modes_;
  bool weighted_, subpixel_;
  Sizes sizes_;
  View<Complex> waves_, probes_, phases_, slices_;
  View<PatternSums<T>> patterns_;
  View<double> sums_;
  View<PlainComplex<T>> table_;
  Spectrum spectrum_;
  std::optional<Transform> one_, one_back_;
};

} // namespace Bracewell::Impl
