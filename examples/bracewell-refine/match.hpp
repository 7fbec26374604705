// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

#include <bracewell/rfft/layout.hpp>

namespace Bracewell::Examples {

/// Sums over the frequencies 0 < |k| <= radius of the full spectrum.
struct MatchSums {
  double overlap = 0; ///< sum of Re(conj(CTF image) projection)
  double power = 0;   ///< sum of |CTF projection|^2
  double slope = 0;   ///< sum of |k|^2 |CTF projection|^2

  KOKKOS_FUNCTION MatchSums& operator+=(const MatchSums& other) {
    overlap += other.overlap;
    power += other.power;
    slope += other.slope;
    return *this;
  }
};

} // namespace Bracewell::Examples

template <>
struct Kokkos::reduction_identity<Bracewell::Examples::MatchSums> {
  KOKKOS_FORCEINLINE_FUNCTION static Bracewell::Examples::MatchSums sum() { return {}; }
};

namespace Bracewell::Examples {

inline constexpr int team_size_per_image = std::is_same_v<Space::memory_space, Kokkos::HostSpace> ? 1 : 256;

/// The frequency of a stored element; returns whether it counts, 0 < |k| <= radius.
KOKKOS_INLINE_FUNCTION bool counts(const HalfSpectrumLayout<2>& layout, std::int64_t element,
                                   std::int64_t squared_radius, int (&k)[2]) {
  layout.frequency(element, k);
  const std::int64_t squared = std::int64_t(k[0]) * k[0] + std::int64_t(k[1]) * k[1];
  return squared > 0 && squared <= squared_radius;
}

/// The loss of images I given projections P, and its cotangent with respect to them, one team per image. With
/// the scale s that fits best,
///   min over s of sum |s CTF P - I|^2 = sum |I|^2 - overlap^2 / power,  s = overlap / power,
/// and the cotangent is that of sum |s CTF P - I|^2 at this s. The zero frequency is left out: an image's
/// mean tells nothing about its pose.
struct Match {
  HalfSpectrumLayout<2> layout;
  std::int64_t squared_radius;
  const int* images;                         ///< [projections] which image each projection is of
  const Kokkos::complex<float>* modulated;   ///< CTF times image [images, h, w/2+1]
  const float* weights;                      ///< CTF^2 [images, h, w/2+1]; null: 1
  const Kokkos::complex<float>* projections; ///< [projections, h, w/2+1]
  Kokkos::complex<float>* cotangents;        ///< like projections, set within the radius
  MatchSums* sums;                           ///< [projections]

  /// Whether a stored element counts, and |k|^2.
  KOKKOS_FUNCTION bool inside(std::int64_t element, std::int64_t& squared, int& multiplicity) const {
    int k[2];
    layout.frequency(element, k);
    squared = std::int64_t(k[0]) * k[0] + std::int64_t(k[1]) * k[1];
    multiplicity = layout.multiplicity(k[0]);
    return squared <= squared_radius;
  }

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t size = layout.elements(), index = team.league_rank();
    const auto* const projection = projections + index * size;
    const auto* const image = modulated + images[index] * size;
    const float* const weight = weights ? weights + images[index] * size : nullptr;
    MatchSums sum;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, size),
        [&](std::int64_t i, MatchSums& part) {
          std::int64_t squared;
          int multiplicity;
          if (!inside(i, squared, multiplicity) || squared == 0)
            return;
          const auto p = projection[i], m = image[i];
          const double power =
              multiplicity * double(weight ? weight[i] : 1) * (p.real() * p.real() + p.imag() * p.imag());
          part.overlap += multiplicity * double(p.real() * m.real() + p.imag() * m.imag());
          part.power += power;
          part.slope += power * double(squared);
        },
        Kokkos::Sum<MatchSums>(sum));
    Kokkos::single(Kokkos::PerTeam(team), [&] { sums[index] = sum; });
    const auto scale = static_cast<float>(sum.power > 0 ? sum.overlap / sum.power : 0);
    auto* const cotangent = cotangents + index * size;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, size), [&](std::int64_t i) {
      std::int64_t squared;
      int multiplicity;
      if (!inside(i, squared, multiplicity))
        return;
      const float factor = squared == 0 ? 0 : 2 * scale * static_cast<float>(multiplicity);
      cotangent[i] = factor * (scale * (weight ? weight[i] : 1) * projection[i] - image[i]);
    });
  }

  void run(const Space& space, std::size_t count) const {
    Kokkos::parallel_for("Bracewell::examples::match",
                         Kokkos::TeamPolicy<Space>(space, static_cast<int>(count), team_size_per_image),
                         *this);
  }
};

/// Power of images between zero frequency and a radius, one team each.
struct ImagePower {
  HalfSpectrumLayout<2> layout;
  std::int64_t squared_radius;
  const Kokkos::complex<float>* images; ///< [images, h, w/2+1]
  double* powers;                       ///< [images]

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto* const image = images + team.league_rank() * layout.elements();
    double sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, layout.elements()),
        [&](std::int64_t i, double& part) {
          int k[2];
          if (counts(layout, i, squared_radius, k))
            part += layout.multiplicity(k[0]) *
                    double(image[i].real() * image[i].real() + image[i].imag() * image[i].imag());
        },
        sum);
    Kokkos::single(Kokkos::PerTeam(team), [&] { powers[team.league_rank()] = sum; });
  }

  void run(const Space& space, std::size_t count) const {
    Kokkos::parallel_for("Bracewell::examples::image_power",
                         Kokkos::TeamPolicy<Space>(space, static_cast<int>(count), team_size_per_image),
                         *this);
  }
};

} // namespace Bracewell::Examples
