// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

#include <bracewell/rfft/layout.hpp>

#include <cstdint>

namespace Bracewell::Examples {

/// Normal deviates numbered (image, pair), two each: the same whatever the batches, threads and machine. The
/// two uniform numbers of Box and Muller (1958) are hashes of the counter (Steele, Lea & Flood 2014, the
/// finaliser of SplitMix).
struct NormalDeviates {
  std::uint64_t seed = 0;

  KOKKOS_FUNCTION static std::uint64_t hash(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  KOKKOS_FUNCTION Kokkos::pair<float, float> operator()(std::uint64_t image, std::uint64_t pair) const {
    const std::uint64_t bits =
        hash(hash(hash(seed + 0x9e3779b97f4a7c15u) + image) + pair * 0x9e3779b97f4a7c15u);
    // 2^-24 times a number in [1, 2^24]: the logarithm is finite.
    const float radius = Kokkos::sqrt(-2 * Kokkos::log(static_cast<float>((bits >> 40) + 1) * 0x1p-24f));
    const float angle = 2 * Kokkos::numbers::pi_v<float> * static_cast<float>(bits & 0xffffffu) * 0x1p-24f;
    return {radius * Kokkos::cos(angle), radius * Kokkos::sin(angle)};
  }
};

/// Adds white Gaussian noise to images, two pixels per call.
struct AddNoise {
  Images images;
  NormalDeviates deviates;
  std::int64_t first_image; ///< number of the first image in the whole stack
  float deviation;

  KOKKOS_FUNCTION std::int64_t pixels() const {
    return static_cast<std::int64_t>(images.extent(1) * images.extent(2));
  }
  KOKKOS_FUNCTION std::int64_t pairs() const { return (pixels() + 1) / 2; }

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t image = index / pairs(), pair = index % pairs();
    const auto deviate =
        deviates(static_cast<std::uint64_t>(first_image + image), static_cast<std::uint64_t>(pair));
    float* const pixel = images.data() + image * pixels() + 2 * pair;
    pixel[0] += deviation * deviate.first;
    if (2 * pair + 1 < pixels())
      pixel[1] += deviation * deviate.second;
  }
};

inline void add_noise(const Space& space, const Images& images, NormalDeviates deviates,
                      std::size_t first_image, double deviation) {
  const AddNoise functor{images, deviates, static_cast<std::int64_t>(first_image),
                         static_cast<float>(deviation)};
  Kokkos::parallel_for("Bracewell::examples::add_noise",
                       Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                           space, 0, static_cast<std::int64_t>(images.extent(0)) * functor.pairs()),
                       functor);
}

/// Power of the full spectra that half spectra stand for, without their zero frequencies.
struct Power {
  const Kokkos::complex<float>* spectra;
  HalfSpectrumLayout<2> layout;

  KOKKOS_FUNCTION void operator()(std::int64_t index, double& sum) const {
    const std::int64_t element = index % layout.elements();
    const auto value = spectra[index];
    if (element != 0)
      sum += layout.multiplicity(static_cast<int>(element % layout.columns())) *
             static_cast<double>(value.real() * value.real() + value.imag() * value.imag());
  }
};

/// Mean variance of the images of width `box` that half spectra [1, count, box, box/2+1] become by the
/// inverse transform, which does not scale.
template <class View>
double image_variance(const Space& space, const View& spectra, int box) {
  const Power power{spectra.data(), {{box, box}}};
  const auto count = static_cast<std::int64_t>(spectra.extent(1));
  double sum = 0;
  Kokkos::parallel_reduce(
      "Bracewell::examples::image_variance",
      Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, count * power.layout.elements()),
      power, sum);
  return sum / static_cast<double>(count);
}

} // namespace Bracewell::Examples
