// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/turns.hpp>
#include <bracewell/ptychography/detail/compare_lines.hpp>
#include <bracewell/ptychography/detail/exit_waves.hpp>
#include <bracewell/ptychography/detail/probe_gradient.hpp>
#include <bracewell/ptychography/options.hpp>

#include <algorithm>
#include <optional>

namespace Bracewell::Impl {

/// Loads and stores of TransformLines, of(wave, first line) as seen by a team. Waves are numbered pattern by pattern, and
/// of a pattern mode by mode.

/// Columns of exit waves; rows y are those of the probe.
template <class T>
struct LoadExitWaves {
  Scan scan;
  Selection selection;
  const Kokkos::complex<T>* object;
  Probes<T> probes;

  struct Columns {
    const Kokkos::complex<T>*object, *probe;
    int columns, m;

    KOKKOS_FORCEINLINE_FUNCTION PlainComplex<T> operator()(int x, int y) const {
      if (y >= m)
        return {0, 0};
      return turn<false>(plain(object[y * columns + x]), plain(probe[y * m + x]));
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Columns of(int wave, int x) const {
    const int i = wave / probes.modes, mode = wave - i * probes.modes, m = scan.probe;
    return {object + scan.corner(selection(i)) + x,
            probes.data + i * probes.stride + std::int64_t(mode) * m * m + x, static_cast<int>(scan.columns),
            m};
  }
};

/// Lines of waves [..., rows, columns] as they are.
template <class T, bool columns_are_lines>
struct WaveLines {
  Kokkos::complex<T>* waves;
  int rows, columns;

  struct Lines {
    Kokkos::complex<T>* wave;
    int pitch;

    KOKKOS_FORCEINLINE_FUNCTION Kokkos::complex<T>& at(int line, int index) const {
      return wave[columns_are_lines ? index * pitch + line : line * pitch + index];
    }
    KOKKOS_FORCEINLINE_FUNCTION PlainComplex<T> operator()(int line, int index) const {
      return plain(at(line, index));
    }
    KOKKOS_FORCEINLINE_FUNCTION void operator()(int line, int index, const PlainComplex<T>& value) const {
      at(line, index) = Kokkos::complex<T>(value.re, value.im);
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Lines of(int wave, int line) const {
    return {waves + std::int64_t(wave) * rows * columns + (columns_are_lines ? line : line * columns),
            columns};
  }
};

/// Columns of the gradients of exit waves, on rows of the probe.
template <class T>
struct StoreWaveGradients {
  WaveLines<T, true> waves;
  LoadExitWaves<T> exit_waves;
  const PatternSums<T>* patterns;

  struct Columns {
    typename WaveLines<T, true>::Lines wave;
    typename LoadExitWaves<T>::Columns exit_wave;
    T factor;

    KOKKOS_FORCEINLINE_FUNCTION void operator()(int x, int y, const PlainComplex<T>& value) const {
      if (y >= exit_wave.m)
        return;
      if (factor == 0)
        return wave(x, y, value);
      const PlainComplex<T> psi = exit_wave(x, y);
      wave(x, y, {value.re - factor * psi.re, value.im - factor * psi.im});
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Columns of(int wave, int x) const {
    return {waves.of(wave, x), exit_waves.of(wave, x), patterns[wave / exit_waves.probes.modes].wave_factor};
  }
};

/// Phases exp(-2 pi i k f / m) of shifts by a fraction f of a pixel, [patterns, 2, m]: of the frequencies along rows,
/// then columns.
template <class T>
struct ShiftPhases {
  const double* fractions; ///< [N, 2]
  Selection selection;
  Kokkos::complex<T>* phases;
  int m;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const int k = static_cast<int>(index % m), axis = static_cast<int>(index / m % 2);
    const double f = fractions[2 * selection(index / m / 2) + axis];
    const auto phase = unit_phase(-double(2 * k < m ? k : k - m) * f / m);
    phases[index] = Kokkos::complex<T>(static_cast<T>(phase.real()), static_cast<T>(phase.imag()));
  }
};

/// Rows of the spectrum of the probe [modes, m, m], of which every pattern has its own shift.
template <class T>
struct LoadShiftedSpectrum {
  const Kokkos::complex<T>* spectrum;
  const Kokkos::complex<T>* phases;
  int m, modes;

  struct Rows {
    const Kokkos::complex<T>*spectrum, *of_rows, *of_columns;
    int m;
    T scale;

    KOKKOS_FORCEINLINE_FUNCTION PlainComplex<T> operator()(int row, int column) const {
      const PlainComplex<T> both = turn<false>(plain(of_rows[row]), plain(of_columns[column]));
      return turn<false>(plain(spectrum[row * m + column]),
                         PlainComplex<T>{both.re * scale, both.im * scale});
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Rows of(int wave, int row) const {
    const int i = wave / modes, mode = wave - i * modes;
    const Kokkos::complex<T>* const phase = phases + std::int64_t(2) * i * m;
    return {spectrum + (std::int64_t(mode) * m + row) * m, phase + row, phase + m, m, T(1) / T(m * m)};
  }
};

/// Columns of conj(O) G.
template <class T>
struct LoadProbeTerms {
  Scan scan;
  Selection selection;
  const Kokkos::complex<T>* object;
  WaveGradients<T, T> waves;
  int modes;

  struct Columns {
    const Kokkos::complex<T>*object, *gradient;
    int columns, pitch;

    KOKKOS_FORCEINLINE_FUNCTION PlainComplex<T> operator()(int x, int y) const {
      return plain(conjugate_product(object[y * columns + x], gradient[y * pitch + x]));
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Columns of(int wave, int x) const {
    const int i = wave / modes, mode = wave - i * modes;
    return {object + scan.corner(selection(i)) + x,
            waves.data + i * waves.pattern_stride + mode * waves.mode_stride + x,
            static_cast<int>(scan.columns), static_cast<int>(waves.row_stride)};
  }
};

/// Sums the spectra of what every pattern gives to the gradient of the probe, their shifts undone.
template <class T>
struct SumShiftedSpectra {
  const Kokkos::complex<T>* terms;  ///< [patterns, modes, m, m]
  const Kokkos::complex<T>* phases; ///< [patterns, 2, m]
  Kokkos::complex<T>* spectrum;     ///< [modes, m, m]
  std::int64_t patterns;
  int m, modes;

  KOKKOS_FUNCTION void operator()(std::int64_t element) const {
    const int column = static_cast<int>(element % m), row = static_cast<int>(element / m % m);
    const std::int64_t elements = std::int64_t(modes) * m * m;
    Kokkos::complex<T> sum(0);
    for (std::int64_t i = 0; i < patterns; ++i)
      sum += conjugate_product(phases[2 * i * m + row] * phases[(2 * i + 1) * m + column],
                               terms[i * elements + element]);
    spectrum[element] = sum / T(std::int64_t(m) * m);
  }
};

/// Adds what the blocks of every pattern left, and draws the consequence. A team per pattern.
template <class Space, class T, class Storage>
struct SumBlocks {
  enum class Of {
    Energies, ///< of exit waves: the scale of patterns without weights
    Means,    ///< the scale of patterns with weights
    Slopes,   ///< the mean slope of these
    Losses    ///< the losses, and the wave factor of scaled patterns without weights
  } of;
  const double* sums; ///< [patterns, blocks, 2]
  int blocks;
  Selection selection;
  Targets<T, Storage> targets;
  PatternLoss loss;
  T norm;
  double pixels;
  bool weighted;
  PatternSums<T>* patterns;
  double* losses;

  using Member = typename Kokkos::TeamPolicy<Space>::member_type;

  static void launch(const Space& space, const SumBlocks& kernel) {
    Kokkos::parallel_for(
        "Bracewell::PtychographyLoss::sum_blocks",
        Kokkos::TeamPolicy<Space>(space, static_cast<int>(kernel.selection.count), is_host<Space> ? 1 : 32),
        kernel);
  }

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const std::int64_t i = member.league_rank();
    double first = 0, second = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, blocks),
        [&](int block, double& a, double& b) {
          a += sums[2 * (i * blocks + block)];
          b += sums[2 * (i * blocks + block) + 1];
        },
        first, second);
    Kokkos::single(Kokkos::PerTeam(member), [&]() { finish(i, first, second); });
  }

private:
  KOKKOS_INLINE_FUNCTION void finish(std::int64_t i, double first, double second) const {
    PatternSums<T>& pattern = patterns[i];
    const double counts = targets.counts;
    switch (of) {
    case Of::Energies:
      pattern = {static_cast<T>(first > 0 ? counts / first : 0.0), 0, 0};
      return;
    case Of::Means:
      pattern = {static_cast<T>(first > 0 ? counts * second / first : 0.0), 0, 0};
      return;
    case Of::Slopes:
      pattern.mean_slope = static_cast<T>(second > 0 ? first / second : 0.0);
      return;
    case Of::Losses:
      losses[i] = targets.loss(selection(i), first, norm, pixels);
      if (counts > 0 && !weighted)
        pattern.wave_factor = static_cast<T>(2 * slope_unit(loss) * double(norm) * pattern.scale * second *
                                             pattern.scale / counts);
    }
  }
};

/// Patterns through kernels that transform the lines of all waves of a group, each joined with what comes before and
/// after it: exit waves and columns; rows, comparison and rows back; columns back and gradients of exit waves. Any
/// modes, fractions of a pixel, masks and weights, in the far field. Between the kernels are waves of n rows and m
/// columns.
template <class Space, class T, class Storage>
class LinesPlan {
  using Complex = Kokkos::complex<T>;
  using Memory = typename Space::memory_space;
  template <class Value>
  using View = Kokkos::View<Value*, Kokkos::LayoutRight, Memory>;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  using Transform = FFT<Space, 2, Complex, Complex>;
  using Waves = Kokkos::View<Complex****, Kokkos::LayoutRight, Memory>;
  using Compare = CompareLines<Space, T, Storage>;

public:
  static constexpr PatternPath path = PatternPath::Lines;

  LinesPlan(const Space& space, const ScanPositions<Space>& positions, const PtychographyShape& shape,
            const PtychographyOptions& options)
      : n_(shape.detector), m_(shape.probe), modes_(shape.modes),
        weighted_(options.weights != PixelWeights::None),
        group_(group_size(positions.count(), positions.subpixel(), shape, options)),
        detector_(space, "Bracewell::PtychographyLoss::table", n_),
        window_(space, "Bracewell::PtychographyLoss::table", positions.subpixel() ? m_ : n_),
        columns_(LineTeams::choose<Space>(detector_.forward(), m_, 0)),
        rows_(LineTeams::choose<Space>(detector_.forward(), n_, modes_ > 1 ? 1 : 0)),
        waves_(
            device_vector<Complex>(space, "Bracewell::PtychographyLoss::waves", group_ * modes_ * n_ * m_)),
        patterns_(device_vector<PatternSums<T>>(space, "Bracewell::PtychographyLoss::pattern_sums", group_)),
        sums_(
            device_vector<double>(space, "Bracewell::PtychographyLoss::sums",
                                  2 * group_ * std::max(modes_ * columns_.blocks.by(), rows_.blocks.by()))) {
    fill(space, "Bracewell::PtychographyLoss::unscaled", patterns_.data(), group_, PatternSums<T>{1, 0, 0});
    if (positions.subpixel()) {
      probes_ =
          device_view<Complex****>(space, "Bracewell::PtychographyLoss::probes", group_, modes_, m_, m_);
      spectrum_ = device_view<Complex****>(space, "Bracewell::PtychographyLoss::spectrum", 1, modes_, m_, m_);
      phases_ = device_vector<Complex>(space, "Bracewell::PtychographyLoss::phases", 2 * group_ * m_);
      const std::array<int, 2> size{m_, m_};
      one_.emplace(space, size, modes_, FFTOptions{});
      one_back_.emplace(space, size, modes_, FFTOptions{.direction = FFTDirection::Backward});
    }
  }

  std::int64_t group_size() const { return group_; }

  std::size_t memory_bytes() const {
    return bytes_of(waves_, patterns_, sums_, probes_, spectrum_, phases_) + detector_.memory_bytes() +
           window_.memory_bytes() + (one_ ? one_->memory_bytes() + one_back_->memory_bytes() : 0);
  }

  static std::size_t bytes_needed(const Space& space, std::int64_t count, bool subpixel,
                                  const PtychographyShape& shape, const PtychographyOptions& options) {
    const int n = shape.detector, m = shape.probe, modes = shape.modes;
    const std::int64_t group = group_size(count, subpixel, shape, options),
                       probe = std::int64_t(modes) * m * m;
    const RadixPlan<Space, T> detector(space, "Bracewell::PtychographyLoss::table", n),
        window(space, "Bracewell::PtychographyLoss::table", subpixel ? m : n);
    const LineTeams columns = LineTeams::choose<Space>(detector.forward(), m, 0),
                    rows = LineTeams::choose<Space>(detector.forward(), n, modes > 1 ? 1 : 0);
    std::size_t bytes =
        detector.memory_bytes() + window.memory_bytes() +
        group * (sizeof(Complex) * modes * n * m + sizeof(PatternSums<T>) +
                 2 * sizeof(double) * std::max(modes * columns.blocks.by(), rows.blocks.by()));
    if (subpixel)
      bytes += sizeof(Complex) * ((group + 1) * probe + 2 * group * m) +
               Transform::bytes_needed(space, {m, m}, modes) +
               Transform::bytes_needed(space, {m, m}, modes, {.direction = FFTDirection::Backward});
    return bytes;
  }

  /// The probe of every pattern of the selection.
  Probes<T> shifted_probes(const Space& space, const ScanPositions<Space>& positions, const Probes<T>& given,
                           const Selection& selection) const {
    if (!one_)
      return given;
    const Kokkos::View<const Complex****, Kokkos::LayoutRight, Memory> original(given.data, 1, modes_, m_,
                                                                                m_);
    one_->execute(space, original, spectrum_);
    Kokkos::parallel_for("Bracewell::PtychographyLoss::shift_phases",
                         Range(space, 0, selection.count * 2 * m_),
                         ShiftPhases<T>{positions.fractions(), selection, phases_.data(), m_});
    transform<false, true>(space, "Bracewell::PtychographyLoss::shift_rows", window_, m_, selection.count,
                           LoadShiftedSpectrum<T>{spectrum_.data(), phases_.data(), m_, modes_},
                           WaveLines<T, false>{probes_.data(), m_, m_});
    transform<true, true>(space, "Bracewell::PtychographyLoss::shift_columns", window_, m_, selection.count,
                          WaveLines<T, true>{probes_.data(), m_, m_},
                          WaveLines<T, true>{probes_.data(), m_, m_});
    return {probes_.data(), std::int64_t(modes_) * m_ * m_, modes_};
  }

  /// Leaves the gradients with respect to the exit waves of the selection, if asked for.
  WaveGradients<T, T> compute(const Space& space, const ScanPositions<Space>& positions,
                              const Complex* object, const Probes<T>& given, const Selection& selection,
                              const Targets<T, Storage>& targets, const PtychographyOptions& options, T norm,
                              double* losses, bool gradients) const {
    using Task = typename Compare::Task;
    using Sum = SumBlocks<Space, T, Storage>;
    using Of = typename Sum::Of;
    const bool scaled = targets.counts > 0;
    const LoadExitWaves<T> exit_waves{positions.device(), selection, object, given};
    const WaveLines<T, true> lines{waves_.data(), n_, m_};
    const auto add = [&](Of of, int blocks) {
      Sum::launch(space, Sum{of, sums_.data(), blocks, selection, targets, options.loss, norm,
                             double(n_) * n_, weighted_, patterns_.data(), losses});
    };
    const auto compare = [&](const char* label, Task task, bool back) {
      launch(space, label, rows_, selection.count,
             LineTeams::bytes<Space>(detector_.forward(), rows_.lines.by(), modes_ > 1 ? 1 : 0),
             Compare{detector_.forward(), detector_.inverse(), rows_, m_, modes_, selection, targets,
                     options.loss, static_cast<T>(options.background), norm, waves_.data(), patterns_.data(),
                     sums_.data(), task, back});
    };
    transform<true, false>(space, "Bracewell::PtychographyLoss::exit_waves", detector_, m_, selection.count,
                           exit_waves, lines, scaled && !weighted_ ? sums_.data() : nullptr);
    if (scaled && !weighted_)
      add(Of::Energies, modes_ * columns_.blocks.by());
    if (scaled && weighted_) {
      compare("Bracewell::PtychographyLoss::means", Task::Mean, false);
      add(Of::Means, rows_.blocks.by());
      compare("Bracewell::PtychographyLoss::slopes", Task::Slope, false);
      add(Of::Slopes, rows_.blocks.by());
    }
    compare("Bracewell::PtychographyLoss::compare", Task::Compare, gradients);
    add(Of::Losses, rows_.blocks.by());
    if (gradients)
      transform<true, true>(space, "Bracewell::PtychographyLoss::wave_gradients", detector_, m_,
                            selection.count, lines,
                            StoreWaveGradients<T>{lines, exit_waves, patterns_.data()});
    return {waves_.data(), std::int64_t(modes_) * n_ * m_, std::int64_t(n_) * m_, m_, nullptr};
  }

  /// Gradient of the probe from those of the shifted ones, after the object's: their memory is used.
  void probe_gradient(const Space& space, const ScanPositions<Space>& positions, const Complex* object,
                      const Selection& selection, const WaveGradients<T, T>& gradients,
                      Complex* gradient) const {
    transform<true, false>(space, "Bracewell::PtychographyLoss::probe_columns", window_, m_, selection.count,
                           LoadProbeTerms<T>{positions.device(), selection, object, gradients, modes_},
                           WaveLines<T, true>{probes_.data(), m_, m_});
    transform<false, false>(space, "Bracewell::PtychographyLoss::probe_rows", window_, m_, selection.count,
                            WaveLines<T, false>{probes_.data(), m_, m_},
                            WaveLines<T, false>{probes_.data(), m_, m_});
    const std::int64_t elements = std::int64_t(modes_) * m_ * m_;
    Kokkos::parallel_for(
        "Bracewell::PtychographyLoss::shift_back", Range(space, 0, elements),
        SumShiftedSpectra<T>{probes_.data(), phases_.data(), spectrum_.data(), selection.count, m_, modes_});
    one_back_->execute(space, spectrum_, spectrum_);
    Kokkos::parallel_for("Bracewell::PtychographyLoss::probe_gradient", Range(space, 0, elements),
                         SumSlices<T>{spectrum_.data(), gradient, elements, 1, selection.first > 0});
  }

private:
  /// Launches a kernel over the blocks of lines of `count` patterns or waves.
  template <class Kernel>
  static void launch(const Space& space, const char* label, const LineTeams& teams, std::int64_t count,
                     std::size_t bytes, const Kernel& kernel) {
    using Policy = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<PtychographyTuning::line_threads,
                                                                  resident_teams<Space>(Kernel::resident)>>;
    Policy policy(space, static_cast<int>(count * teams.blocks.by()), teams.threads);
    policy.set_scratch_size(LineTeams::scratch_level<Space>(), Kokkos::PerTeam(static_cast<int>(bytes)));
    Kokkos::parallel_for(label, policy, kernel);
  }

  /// All lines of the waves of `count` patterns, `lines` of a wave.
  template <bool adjacent, bool inverse, class Load, class Store>
  void transform(const Space& space, const char* label, const RadixPlan<Space, T>& plan, int lines,
                 std::int64_t count, const Load& load, const Store& store, double* energies = nullptr) const {
    const RadixPasses<T>& passes = inverse ? plan.inverse() : plan.forward();
    const LineTeams teams = LineTeams::choose<Space>(passes, lines, 0);
    launch(space, label, teams, count * modes_, LineTeams::bytes<Space>(passes, teams.lines.by(), 0),
           TransformLines<Space, T, adjacent, inverse, Load, Store>{passes, teams, lines, load, store,
                                                                    energies});
  }

  static std::int64_t group_size(std::int64_t count, bool subpixel, const PtychographyShape& shape,
                                 const PtychographyOptions& options) {
    const std::int64_t per_pattern = std::int64_t(sizeof(Complex)) * shape.modes * shape.probe *
                                     (shape.detector + (subpixel ? shape.probe : 0));
    return std::clamp<std::int64_t>(
        static_cast<std::int64_t>(options.workspace_bytes.value_or(PtychographyTuning::line_group_bytes)) /
            per_pattern,
        1, std::max<std::int64_t>(count, 1));
  }

  int n_, m_, modes_;
  bool weighted_;
  std::int64_t group_;
  RadixPlan<Space, T> detector_, window_;
  LineTeams columns_, rows_;
  View<Complex> waves_, phases_;
  View<PatternSums<T>> patterns_;
  View<double> sums_;
  Waves probes_, spectrum_;
  std::optional<Transform> one_, one_back_;
};

} // namespace Bracewell::Impl
