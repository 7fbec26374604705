// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/sample_array.hpp>
#include <bracewell/tomography/detail/beam.hpp>
#include <bracewell/tomography/detail/tuning.hpp>

#include <cmath>
#include <numbers>

namespace Bracewell::Impl {

/// PolarSampleLayout as kernels see it.
template <class T>
struct PolarSampleView {
  const Kokkos::complex<T>* factor; ///< [frequencies], or [rays, frequencies]
  std::int64_t stride;              ///< of the rays' factors: 0, or frequencies
  const T *weight, *filter;         ///< [rays]; [frequencies] or null
  std::int64_t rays;
  int width, frequencies;

  KOKKOS_FUNCTION Kokkos::complex<T> at(std::int64_t ray, int k) const {
    return factor[ray * stride + k] * (filter ? weight[ray] * filter[k] : weight[ray]);
  }
  /// Point of frequency k >= 0 on a ray; that of -k lies 2 k before.
  KOKKOS_FUNCTION std::int64_t point(std::int64_t ray, int k) const {
    return ray * (width / 2 * 2 + 1) + width / 2 + k;
  }
};

/// What makes samples on rays of half spectra of projection rows: exp(2 pi i k centre / width) / width
/// times the weight of the ray; factors of their own where views are shifted.
template <class Space, class T>
struct PolarSampleLayout {
  template <class Value>
  using Vector = Kokkos::View<Value*, Space>;

  int width;
  Vector<Kokkos::complex<T>> factor;
  Vector<T> backprojected, projected; ///< factors of the rays, one View where they are the same

  PolarSampleLayout(const Space& space, const ParallelBeamGeometry& geometry, ProjectionUnits units)
      : width(geometry.width) {
    const std::size_t rays = shifted(geometry);
    std::vector<Kokkos::complex<T>> factors;
    factors.reserve(rays * static_cast<std::size_t>(frequencies()));
    for (std::size_t ray = 0; ray < rays; ++ray)
      for (int k = 0; k < frequencies(); ++k) {
        const double angle =
            2 * std::numbers::pi * std::remainder(k * (centre_of(geometry, ray) / width), 1.);
        const double scale = (2 * k == width ? 0.5 : 1.) / width; // Nyquist counts half at either end
        factors.emplace_back(T(scale * std::cos(angle)), T(scale * std::sin(angle)));
      }
    factor = device_copy(space, "Bracewell::FourierTomography::factor", factors);
    backprojected = weights(space, geometry, ProjectionUnits::Transpose);
    projected = units == ProjectionUnits::Transpose ? backprojected : weights(space, geometry, units);
  }

  int frequencies() const { return width / 2 + 1; }
  PolarSampleView<T> view(const Vector<T>& weight, const T* filter) const {
    const bool one = factor.size() == static_cast<std::size_t>(frequencies());
    return {factor.data(),
            one ? 0 : frequencies(),
            weight.data(),
            filter,
            static_cast<std::int64_t>(weight.size()),
            width,
            frequencies()};
  }

  static std::size_t bytes_needed(const ParallelBeamGeometry& geometry, ProjectionUnits units) {
    return shifted(geometry) * static_cast<std::size_t>(geometry.width / 2 + 1) * sizeof(Kokkos::complex<T>) +
           (units == ProjectionUnits::Transpose ? 1 : 2) * geometry.angles.size() * sizeof(T);
  }
  std::size_t memory_bytes() const {
    return bytes_of(factor, backprojected) +
           (projected.data() == backprojected.data() ? 0 : bytes_of(projected));
  }

private:
  /// Rays with factors of their own.
  static std::size_t shifted(const ParallelBeamGeometry& geometry) {
    return std::max<std::size_t>(1, geometry.shifts.size());
  }
  static Vector<T> weights(const Space& space, const ParallelBeamGeometry& geometry, ProjectionUnits units) {
    const std::vector<double> factors = angle_factors(geometry, units);
    return device_copy(space, "Bracewell::FourierTomography::weight",
                       std::vector<T>(factors.begin(), factors.end()));
  }
};

/// What the kernels between half spectra of real slices A = 2 z and B = 2 z + 1 and samples of the complex
/// slice A + i B, at k and -k, share: a team transposes frequencies x slices in scratch memory, as spectra
/// have the slice as their slowest axis, samples as their fastest.
template <class Space, class T>
struct SpectraAndSamples {
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;
  using Complex = Kokkos::complex<T>;
  static constexpr int side = 32, team_size = TomographyTuning<Space>::transposition_threads,
                       stride = side + 1;

  PolarSampleView<T> polar;
  std::int64_t slices; ///< real ones
  int frequency_blocks = 0, slice_blocks = 0;

  static constexpr std::size_t scratch_bytes() { return 2 * side * stride * sizeof(Complex) + 16; }

  struct Block {
    int first_k;
    std::int64_t first_pair, ray, pairs;
    Complex* values;
  };

  KOKKOS_FUNCTION Block block(const Team& team) const {
    const std::int64_t rest = team.league_rank() / frequency_blocks;
    return {team.league_rank() % frequency_blocks * side, rest % slice_blocks * side, rest / slice_blocks,
            (slices + 1) / 2,
            static_cast<Complex*>(team.team_scratch(is_host<Space> ? 1 : 0)
                                      .get_shmem_aligned(2 * side * stride * sizeof(Complex), 16))};
  }

  /// visit(slice, index in the spectra, value in scratch memory); of an odd number of slices the last pair
  /// has one slice too many.
  template <class Visit>
  KOKKOS_FUNCTION void for_each_frequency(const Team& team, const Block& at, const Visit& visit) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 2 * side * side), [&](int i) {
      const int k = i % side, s = i / side;
      const std::int64_t slice = 2 * at.first_pair + s;
      if (slice < 2 * at.pairs && at.first_k + k < polar.frequencies)
        visit(slice, (slice * polar.rays + at.ray) * polar.frequencies + at.first_k + k,
              at.values[(s % 2 * side + s / 2) * stride + k]);
    });
  }

  /// visit(k, pair, point of k, values of A and B in scratch memory).
  template <class Visit>
  KOKKOS_FUNCTION void for_each_sample(const Team& team, const Block& at, const Visit& visit) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, side * side), [&](int i) {
      const int z = i % side, k = at.first_k + i / side;
      if (at.first_pair + z < at.pairs && k < polar.frequencies)
        visit(k, at.first_pair + z, polar.point(at.ray, k), at.values[z * stride + i / side],
              at.values[(side + z) * stride + i / side]);
    });
  }
};

template <class Space, class T>
struct SamplesFromSpectra : SpectraAndSamples<Space, T> {
  using Base = SpectraAndSamples<Space, T>;
  using typename Base::Complex;

  const Complex* spectra; ///< [slices, rays, frequencies]
  SampleArray<Complex> samples;

  KOKKOS_FUNCTION void operator()(const typename Base::Team& team) const {
    const auto at = this->block(team);
    this->for_each_frequency(team, at, [&](std::int64_t slice, std::int64_t index, Complex& value) {
      value = slice < this->slices ? spectra[index] : Complex(0);
    });
    team.team_barrier();
    this->for_each_sample(
        team, at, [&](int k, std::int64_t pair, std::int64_t point, const Complex& a, const Complex& b) {
          const Complex factor = this->polar.at(at.ray, k);
          samples(point, pair) = factor * Complex(a.real() - b.imag(), a.imag() + b.real());
          if (k > 0)
            samples(point - 2 * k, pair) =
                Complex(factor.real(), -factor.imag()) * Complex(a.real() + b.imag(), b.real() - a.imag());
        });
  }
};

/// The transpose, into half spectra of which an FFT to real rows makes the transpose of the projections.
template <class Space, class T>
struct SpectraFromSamples : SpectraAndSamples<Space, T> {
  using Base = SpectraAndSamples<Space, T>;
  using typename Base::Complex;

  SampleArray<const Complex> samples;
  Complex* spectra;

  KOKKOS_FUNCTION void operator()(const typename Base::Team& team) const {
    const auto at = this->block(team);
    this->for_each_sample(team, at,
                          [&](int k, std::int64_t pair, std::int64_t point, Complex& a, Complex& b) {
                            Complex factor = this->polar.at(at.ray, k);
                            factor.imag() = -factor.imag();
                            const Complex u = samples(point, pair), v = samples(point - 2 * k, pair);
                            // The FFT counts 0 < k < width / 2 twice, k = 0 once. At k = 0, u = v; at Nyquist
                            // both halves meet in one.
                            const bool nyquist = 2 * k == this->polar.width;
                            factor *= nyquist ? T(1) : T(0.5);
                            a = factor * Complex(u.real() + v.real(), u.imag() - v.imag());
                            b = factor * Complex(u.imag() + v.imag(), v.real() - u.real());
                            if (k == 0 || nyquist)
                              a.imag() = b.imag() = 0;
                          });
    team.team_barrier();
    this->for_each_frequency(team, at, [&](std::int64_t slice, std::int64_t index, const Complex& value) {
      if (slice < this->slices)
        spectra[index] = value;
    });
  }
};

template <class Space, class Functor>
void launch_transposition(const char* label, const Space& space, Functor functor) {
  functor.frequency_blocks = (functor.polar.frequencies + functor.side - 1) / functor.side;
  functor.slice_blocks = static_cast<int>(((functor.slices + 1) / 2 + functor.side - 1) / functor.side);
  launch_kernel(label,
                Kokkos::TeamPolicy<Space>(
                    space,
                    static_cast<int>(functor.polar.rays * functor.frequency_blocks * functor.slice_blocks),
                    +Functor::team_size)
                    .set_scratch_size(is_host<Space> ? 1 : 0, Kokkos::PerTeam(Functor::scratch_bytes())),
                functor);
}

template <class Space, class T>
void samples_from_spectra(const Space& space, const PolarSampleView<T>& polar,
                          const Kokkos::complex<T>* spectra, std::int64_t slices,
                          const SampleArray<Kokkos::complex<T>>& samples) {
  launch_transposition("Bracewell::FourierTomography::samples", space,
                       SamplesFromSpectra<Space, T>{{polar, slices}, spectra, samples});
}

template <class Space, class T>
void spectra_from_samples(const Space& space, const PolarSampleView<T>& polar,
                          const SampleArray<Kokkos::complex<T>>& samples, std::int64_t slices,
                          Kokkos::complex<T>* spectra) {
  launch_transposition(
      "Bracewell::FourierTomography::spectra", space,
      SpectraFromSamples<Space, T>{
          {polar, slices}, {samples.data, samples.point_stride, samples.slice_stride}, spectra});
}

} // namespace Bracewell::Impl
