// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/device_vector.hpp>
#include <bracewell/gridding/locations.hpp>
#include <bracewell/impl/tiles.hpp>

#include <cmath>
#include <numbers>

namespace Bracewell::Impl {

template <class T>
struct PolarSampleView {
  const Kokkos::complex<T>* factor; ///< [frequencies]
  const T *weight, *filter;         ///< [rays]; [frequencies] or null
  std::int64_t rays;
  int width, frequencies;

  KOKKOS_FUNCTION Kokkos::complex<T> at(std::int64_t ray, int k) const {
    return factor[k] * (filter ? weight[ray] * filter[k] : weight[ray]);
  }
  /// Point of frequency k >= 0 on a ray; that of -k lies 2 k before.
  KOKKOS_FUNCTION std::int64_t point(std::int64_t ray, int k) const {
    return ray * (width / 2 * 2 + 1) + width / 2 + k;
  }
};

/// What turns half spectra of projection rows into samples on rays: exp(2 pi i k centre / width) / width
/// times the weight of the ray.
template <class Space, class T>
struct PolarSampleLayout {
  int width;
  Kokkos::View<Kokkos::complex<T>*, Space> factor;
  Kokkos::View<T*, Space> weight;

  PolarSampleLayout(const Space& space, int width_, double centre, const std::vector<T>& weights)
      : width(width_) {
    std::vector<Kokkos::complex<T>> factors(frequencies());
    for (int k = 0; k < frequencies(); ++k) {
      const double angle = 2 * std::numbers::pi * std::remainder(k * (centre / width), 1.);
      const double scale = (2 * k == width ? 0.5 : 1.) / width; // Nyquist counts half at either end
      factors[k] = Kokkos::complex<T>(T(scale * std::cos(angle)), T(scale * std::sin(angle)));
    }
    factor = device_copy(space, "Bracewell::FourierTomography::factor", factors);
    weight = device_copy(space, "Bracewell::FourierTomography::weight", weights);
  }

  int frequencies() const { return width / 2 + 1; }
  PolarSampleView<T> view(const T* filter) const {
    return {factor.data(), weight.data(), filter, static_cast<std::int64_t>(weight.size()),
            width,         frequencies()};
  }
};

/// Half spectra of real slices A = 2 z and B = 2 z + 1 to samples of the complex slice A + i B, at k and -k.
/// A team transposes frequencies x slices: spectra have the slice as their slowest axis, samples as their
/// fastest.
template <class Space, class T>
struct SamplesFromSpectra {
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;
  using Complex = Kokkos::complex<T>;
  static constexpr int side = 32, team_size = is_host<Space> ? 1 : 256, stride = side + 1;

  PolarSampleView<T> polar;
  const Complex* spectra; ///< [slices, rays, frequencies]
  std::int64_t slices;    ///< real ones
  SampleArray<Complex> samples;
  int frequency_blocks, slice_blocks;

  static constexpr std::size_t scratch_bytes() { return 2 * side * stride * sizeof(Complex) + 16; }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int first_k = team.league_rank() % frequency_blocks * side;
    const std::int64_t rest = team.league_rank() / frequency_blocks;
    const std::int64_t first_pair = rest % slice_blocks * side, ray = rest / slice_blocks;
    const std::int64_t pairs = (slices + 1) / 2;
    auto* const block = static_cast<Complex*>(
        team.team_scratch(is_host<Space> ? 1 : 0).get_shmem_aligned(2 * side * stride * sizeof(Complex), 16));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 2 * side * side), [&](int i) {
      const int k = i % side, s = i / side;
      const std::int64_t slice = 2 * first_pair + s;
      if (slice < 2 * pairs && first_k + k < polar.frequencies)
        block[(s % 2 * side + s / 2) * stride + k] =
            slice < slices ? spectra[(slice * polar.rays + ray) * polar.frequencies + first_k + k]
                           : Complex(0);
    });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, side * side), [&](int i) {
      const int z = i % side, k = first_k + i / side;
      if (first_pair + z >= pairs || k >= polar.frequencies)
        return;
      const Complex a = block[z * stride + i / side], b = block[(side + z) * stride + i / side];
      const Complex factor = polar.at(ray, k);
      const std::int64_t point = polar.point(ray, k);
      samples(point, first_pair + z) = factor * Complex(a.real() - b.imag(), a.imag() + b.real());
      if (k > 0)
        samples(point - 2 * k, first_pair + z) =
            Complex(factor.real(), -factor.imag()) * Complex(a.real() + b.imag(), b.real() - a.imag());
    });
  }
};

/// The transpose, into what a half-spectrum-to-real FFT turns into the transpose of the projections.
template <class Space, class T>
struct SpectraFromSamples {
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;
  using Complex = Kokkos::complex<T>;
  static constexpr int side = 32, team_size = is_host<Space> ? 1 : 256, stride = side + 1;

  PolarSampleView<T> polar;
  SampleArray<const Complex> samples;
  std::int64_t slices;
  Complex* spectra;
  int frequency_blocks, slice_blocks;

  static constexpr std::size_t scratch_bytes() { return 2 * side * stride * sizeof(Complex) + 16; }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int first_k = team.league_rank() % frequency_blocks * side;
    const std::int64_t rest = team.league_rank() / frequency_blocks;
    const std::int64_t first_pair = rest % slice_blocks * side, ray = rest / slice_blocks;
    const std::int64_t pairs = (slices + 1) / 2;
    auto* const block = static_cast<Complex*>(
        team.team_scratch(is_host<Space> ? 1 : 0).get_shmem_aligned(2 * side * stride * sizeof(Complex), 16));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, side * side), [&](int i) {
      const int z = i % side, k = first_k + i / side;
      if (first_pair + z >= pairs || k >= polar.frequencies)
        return;
      Complex factor = polar.at(ray, k);
      factor.imag() = -factor.imag();
      const std::int64_t point = polar.point(ray, k);
      const Complex u = samples(point, first_pair + z), v = samples(point - 2 * k, first_pair + z);
      // The FFT counts 0 < k < width / 2 twice, k = 0 once. At k = 0, u = v; at Nyquist both halves meet in
      // one.
      factor *= 2 * k == polar.width ? T(1) : T(0.5);
      Complex a = factor * Complex(u.real() + v.real(), u.imag() - v.imag());
      Complex b = factor * Complex(u.imag() + v.imag(), v.real() - u.real());
      if (k == 0 || 2 * k == polar.width)
        a.imag() = b.imag() = 0;
      block[z * stride + i / side] = a;
      block[(side + z) * stride + i / side] = b;
    });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 2 * side * side), [&](int i) {
      const int k = i % side, s = i / side;
      const std::int64_t slice = 2 * first_pair + s;
      if (slice < slices && first_k + k < polar.frequencies)
        spectra[(slice * polar.rays + ray) * polar.frequencies + first_k + k] =
            block[(s % 2 * side + s / 2) * stride + k];
    });
  }
};

template <class Space, class Functor>
void launch_transposition(const char* label, const Space& space, Functor functor) {
  functor.frequency_blocks = (functor.polar.frequencies + functor.side - 1) / functor.side;
  functor.slice_blocks = static_cast<int>(((functor.slices + 1) / 2 + functor.side - 1) / functor.side);
  Kokkos::parallel_for(
      label,
      Kokkos::TeamPolicy<Space>(
          space, static_cast<int>(functor.polar.rays * functor.frequency_blocks * functor.slice_blocks),
          +Functor::team_size)
          .set_scratch_size(is_host<Space> ? 1 : 0, Kokkos::PerTeam(Functor::scratch_bytes())),
      functor);
}

template <class Space, class T>
void samples_from_spectra(const Space& space, const PolarSampleView<T>& polar,
                          const Kokkos::complex<T>* spectra, std::int64_t slices,
                          const SampleArray<Kokkos::complex<T>>& samples) {
  launch_transposition("Bracewell::FourierTomography::samples", space,
                       SamplesFromSpectra<Space, T>{polar, spectra, slices, samples, 0, 0});
}

template <class Space, class T>
void spectra_from_samples(const Space& space, const PolarSampleView<T>& polar,
                          const SampleArray<Kokkos::complex<T>>& samples, std::int64_t slices,
                          Kokkos::complex<T>* spectra) {
  launch_transposition(
      "Bracewell::FourierTomography::spectra", space,
      SpectraFromSamples<Space, T>{
          polar, {samples.data, samples.point_stride, samples.slice_stride}, slices, spectra, 0, 0});
}

} // namespace Bracewell::Impl
