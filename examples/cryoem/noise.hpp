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

  /// Natural logarithm of 2^-24 times a number in [1, 2^24], to 1e-7; like the sine below without branches and calls,
  /// so that compilers make vectors of it.
  KOKKOS_FUNCTION static float logarithm(std::uint32_t number) {
    const auto bits =
        Kokkos::bit_cast<std::uint32_t>(static_cast<float>(number)) - 0x3f3504f3u; // of sqrt(1/2)
    const auto exponent = static_cast<float>(static_cast<std::int32_t>(bits) >> 23) - 24;
    const float f =
        Kokkos::bit_cast<float>((bits & 0x007fffffu) + 0x3f3504f3u) - 1; // sqrt(1/2) - 1 to sqrt(2) - 1
    // log(1 + f) = 2 artanh(f / (2 + f))
    const float r = f / (2 + f), s = r * r;
    return exponent * 0.693147181f +
           2 * r * (1 + s * (1 / 3.0f + s * (1 / 5.0f + s * (1 / 7.0f + s * (1 / 9.0f + s / 11.0f)))));
  }

  /// sin(pi t) for t in [-1/2, 1/2], to rounding.
  KOKKOS_FUNCTION static float sine(float t) {
    const float s = t * t;
    return t *
           (3.14159265f +
            s * (-5.16771278f +
                 s * (2.55016404f + s * (-0.599264529f + s * (0.0821458866f + s * (-0.00737043095f +
                                                                                   s * 0.000466302806f))))));
  }

  /// Of an image, `seed_of_image` being image_seed(image).
  KOKKOS_FUNCTION Kokkos::pair<float, float> operator()(std::uint64_t seed_of_image,
                                                        std::uint64_t pair) const {
    const std::uint64_t bits = hash(seed_of_image + pair * 0x9e3779b97f4a7c15u);
    const float radius = Kokkos::sqrt(-2 * logarithm(static_cast<std::uint32_t>(bits >> 40) + 1));
    // An angle of 2 t half turns and its signs: cos = +-sin(pi/2 - |angle|), sin = +-sin(|angle|).
    const float t =
        static_cast<float>(static_cast<std::uint32_t>(bits) & 0xffffffu) * 0x1p-24f; // turns, [0, 1)
    const float turned = 2 * t - 1, size = Kokkos::abs(turned);                      // half turns
    const float across = size > 0.5f ? 1 - size : size;
    return {-radius * sine(0.5f - size), -radius * Kokkos::copysign(sine(across), turned)};
  }

  KOKKOS_FUNCTION std::uint64_t image_seed(std::uint64_t image) const {
    return hash(hash(seed + 0x9e3779b97f4a7c15u) + image);
  }
};

/// Adds white Gaussian noise to images, one team for some pairs of pixels of an image.
struct AddNoise {
  static constexpr std::int64_t pairs_per_team = 2048;

  float* images; ///< [count, pixels]
  std::int64_t pixels;
  NormalDeviates deviates;
  std::int64_t first_image; ///< number of the first image in the whole stack
  float deviation;

  KOKKOS_FUNCTION std::int64_t teams_per_image() const {
    return (pixels + 2 * pairs_per_team - 1) / (2 * pairs_per_team);
  }

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t index = team.league_rank() / teams_per_image();
    const std::int64_t begin = team.league_rank() % teams_per_image() * pairs_per_team;
    const std::int64_t end = Kokkos::min(begin + pairs_per_team, pixels / 2);
    const std::uint64_t seed = deviates.image_seed(static_cast<std::uint64_t>(first_image + index));
    float* const image = images + index * pixels;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, begin, end), [&](std::int64_t pair) {
      const auto deviate = deviates(seed, static_cast<std::uint64_t>(pair));
      image[2 * pair] += deviation * deviate.first;
      image[2 * pair + 1] += deviation * deviate.second;
    });
    if (pixels % 2 != 0 && begin <= pixels / 2 && pixels / 2 < begin + pairs_per_team)
      Kokkos::single(Kokkos::PerTeam(team), [&] {
        image[pixels - 1] += deviation * deviates(seed, static_cast<std::uint64_t>(pixels / 2)).first;
      });
  }
};

inline void add_noise(const Space& space, const Images& images, NormalDeviates deviates,
                      std::size_t first_image, double deviation) {
  const AddNoise functor{images.data(), static_cast<std::int64_t>(images.extent(1) * images.extent(2)),
                         deviates, static_cast<std::int64_t>(first_image), static_cast<float>(deviation)};
  const auto teams = static_cast<std::int64_t>(images.extent(0)) * functor.teams_per_image();
  Kokkos::parallel_for(
      "Bracewell::examples::add_noise",
      Kokkos::TeamPolicy<Space>(space, static_cast<int>(teams), kernels_run_on_host ? 1 : 256), functor);
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
