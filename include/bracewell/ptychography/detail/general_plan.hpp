// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/compare_patterns.hpp>
#include <bracewell/ptychography/detail/exit_waves.hpp>
#include <bracewell/ptychography/detail/probe_gradient.hpp>
#include <bracewell/ptychography/propagator.hpp>

#include <algorithm>
#include <optional>

namespace Bracewell::Impl {

/// Phase of a probe shifted by (row, column) pixels, at one frequency of the m x m grid.
template <class T>
struct ShiftRamp {
  const double* fractions; ///< [N, 2]
  Selection selection;
  int m, modes;

  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> operator()(std::int64_t index) const {
    const int column = static_cast<int>(index % m), row = static_cast<int>(index / m % m);
    const std::int64_t j = selection(index / m / m / modes);
    const double k1 = 2 * row < m ? row : row - m, k2 = 2 * column < m ? column : column - m;
    const auto phase = unit_phase(-(k1 * fractions[2 * j] + k2 * fractions[2 * j + 1]) / m);
    return {static_cast<T>(phase.real()), static_cast<T>(phase.imag())};
  }
};

template <class T>
struct ShiftProbes {
  ShiftRamp<T> ramp;
  const Kokkos::complex<T>* spectrum; ///< [modes, m, m]
  Kokkos::complex<T>* shifted;        ///< [patterns, modes, m, m]
  std::int64_t elements;              ///< modes m m

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    shifted[index] = spectrum[index % elements] * ramp(index) / T(std::int64_t(ramp.m) * ramp.m);
  }
};

/// conj(O) G of every pattern by itself, where the fraction of a pixel has still to be undone.
template <class T>
struct ProbeGradientTerms {
  Scan scan;
  Selection selection;
  const Kokkos::complex<T>* object;
  WaveGradients<T, T> waves;
  Kokkos::complex<T>* terms; ///< [patterns, modes, m, m]
  int modes;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const int m = scan.probe, column = static_cast<int>(index % m), row = static_cast<int>(index / m % m);
    const std::int64_t wave = index / m / m, i = wave / modes;
    terms[index] = conjugate_product(object[scan.corner(selection(i)) + row * scan.columns + column],
                                     waves(i, static_cast<int>(wave % modes), row, column));
  }
};

template <class T>
struct SumShiftedBack {
  ShiftRamp<T> ramp;
  const Kokkos::complex<T>* terms;
  Kokkos::complex<T>* spectrum;
  std::int64_t elements;

  KOKKOS_FUNCTION void operator()(std::int64_t element) const {
    Kokkos::complex<T> sum(0);
    for (std::int64_t i = 0; i < ramp.selection.count; ++i)
      sum += conjugate_product(ramp(i * elements + element), terms[i * elements + element]);
    spectrum[element] = sum / T(std::int64_t(ramp.m) * ramp.m);
  }
};

/// Exit waves, propagation, comparison and adjoint through the FFT library, a group of patterns at a time.
template <class Space, class T, class Storage>
class GeneralPlan {
  using Complex = Kokkos::complex<T>;
  using Memory = typename Space::memory_space;
  using Waves = Kokkos::View<Complex****, Kokkos::LayoutRight, Memory>;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  using Transform = FFT<Space, 2, Complex, Complex>;

public:
  GeneralPlan(const Space& space, const ScanPositions<Space>& positions, const PtychographyShape& shape,
              const PtychographyOptions& options)
      : group(group_size(positions, shape, options)),
        waves(device_view<Complex****>(space, "Bracewell::PtychographyLoss::waves", group, shape.modes,
                                       shape.detector, shape.detector)),
        propagator(space, shape.detector, group * shape.modes, options.fresnel_number) {
    Kokkos::deep_copy(space, waves, Complex(0)); // the last group may be smaller: what is beyond stays finite
    if (positions.subpixel()) {
      probes = device_view<Complex****>(space, "Bracewell::PtychographyLoss::probes", group, shape.modes,
                                        shape.probe, shape.probe);
      spectrum = device_view<Complex****>(space, "Bracewell::PtychographyLoss::spectrum", 1, shape.modes,
                                          shape.probe, shape.probe);
      Kokkos::deep_copy(space, probes, Complex(0));
      const std::array<int, 2> window{shape.probe, shape.probe};
      one.emplace(space, window, shape.modes, FFTOptions{});
      one_back.emplace(space, window, shape.modes, FFTOptions{.direction = FFTDirection::Backward});
      many.emplace(space, window, group * shape.modes, FFTOptions{});
      many_back.emplace(space, window, group * shape.modes, FFTOptions{.direction = FFTDirection::Backward});
    }
  }

  std::int64_t group_size() const { return group; }

  std::size_t memory_bytes() const { return bytes_of(waves, probes, spectrum) + propagator.memory_bytes(); }

  /// The probe of every pattern of the selection.
  Probes<T> shifted_probes(const Space& space, const ScanPositions<Space>& positions, const Probes<T>& given,
                           const Selection& selection) const {
    if (!one)
      return given;
    const Kokkos::View<const Complex****, Kokkos::LayoutRight, Memory> original(
        given.data, 1, spectrum.extent(1), spectrum.extent(2), spectrum.extent(3));
    one->execute(space, original, spectrum);
    const std::int64_t elements = spectrum.size();
    Kokkos::parallel_for(
        "Bracewell::PtychographyLoss::shift_probes", Range(space, 0, selection.count * elements),
        ShiftProbes<T>{ramp(positions, selection), spectrum.data(), probes.data(), elements});
    many_back->execute(space, probes, probes);
    return {probes.data(), elements, given.modes};
  }

  /// Leaves the gradients with respect to the exit waves of the selection, if asked for.
  WaveGradients<T, T> compute(const Space& space, const ScanPositions<Space>& positions,
                              const Complex* object, const Probes<T>& given, const Selection& selection,
                              const Targets<T, Storage>& targets, const PtychographyOptions& options, T norm,
                              double* losses, bool gradients) const {
    const int n = static_cast<int>(waves.extent(3));
    const std::int64_t pixels = std::int64_t(n) * n;
    Kokkos::parallel_for("Bracewell::PtychographyLoss::exit_waves",
                         Range(space, 0, selection.count * given.modes * pixels),
                         ExitWaves<T>{positions.device(), selection, object, given, waves.data(), n});
    const ProbeShifts shifts{positions.subpixel() ? positions.fractions() : nullptr, selection, given.modes};
    propagator.propagate(space, waves, shifts);
    compare_waves<Storage>(space, "Bracewell::PtychographyLoss::compare", options.loss, waves.data(),
                           selection, targets, static_cast<T>(options.background), given.modes, pixels, norm,
                           losses, gradients);
    if (gradients)
      propagator.adjoint(space, waves, shifts);
    return {waves.data(), given.modes * pixels, pixels, n, nullptr};
  }

  /// Probe gradient of shifted probes; true when the probes are shifted.
  bool probe_gradient(const Space& space, const ScanPositions<Space>& positions, const Complex* object,
                      int modes, const Selection& selection, const WaveGradients<T, T>& gradients,
                      Complex* gradient, bool accumulate) const {
    if (!one)
      return false;
    const std::int64_t elements = spectrum.size();
    Kokkos::parallel_for(
        "Bracewell::PtychographyLoss::probe_gradient_terms", Range(space, 0, selection.count * elements),
        ProbeGradientTerms<T>{positions.device(), selection, object, gradients, probes.data(), modes});
    many->execute(space, probes, probes);
    Kokkos::parallel_for(
        "Bracewell::PtychographyLoss::shift_back", Range(space, 0, elements),
        SumShiftedBack<T>{ramp(positions, selection), probes.data(), spectrum.data(), elements});
    one_back->execute(space, spectrum, spectrum);
    Kokkos::parallel_for("Bracewell::PtychographyLoss::probe_gradient", Range(space, 0, elements),
                         SumSlices<T>{spectrum.data(), gradient, elements, 1, accumulate});
    return true;
  }

private:
  static std::int64_t group_size(const ScanPositions<Space>& positions, const PtychographyShape& shape,
                                 const PtychographyOptions& options) {
    const std::int64_t per_pattern = std::int64_t(sizeof(Complex)) * shape.modes *
                                     (std::int64_t(shape.detector) * shape.detector +
                                      (positions.subpixel() ? std::int64_t(shape.probe) * shape.probe : 0));
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(options.workspace_bytes) / per_pattern, 1,
                                    std::max<std::int64_t>(positions.count(), 1));
  }

  ShiftRamp<T> ramp(const ScanPositions<Space>& positions, const Selection& selection) const {
    return {positions.fractions(), selection, static_cast<int>(probes.extent(2)),
            static_cast<int>(probes.extent(1))};
  }

  std::int64_t group;
  Waves waves, probes, spectrum;
  Propagator<Space, T> propagator;
  std::optional<Transform> one, one_back, many, many_back;
};

} // namespace Bracewell::Impl
