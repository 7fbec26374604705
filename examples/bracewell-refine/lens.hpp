// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-refine/match.hpp"
#include "cryoem/contrast.hpp"
#include "cryoem/views.hpp"

#include <Eigen/Core>

#include <cstddef>
#include <cstdint>

namespace Bracewell::Examples {

/// Overlap and power of images with their projections for other defoci, one team for an image and a trial.
struct DefocusTrials {
  HalfSpectrumLayout<2> layout;
  std::int64_t squared_radius;
  Contrast::OnDevice contrast;
  const Kokkos::complex<float>* images;      ///< [images, h, w/2+1], as they are
  const Kokkos::complex<float>* projections; ///< [images, h, w/2+1], without contrast
  const double*
      changes; ///< [images, trials] wavelength times the change of the mean defocus, square Angstrom
  int trials;
  MatchSums* sums; ///< [images, trials]

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t size = layout.elements(), index = team.league_rank() / trials;
    Contrast::Image own = contrast.images[index];
    own.ctf.xx += changes[team.league_rank()];
    own.ctf.yy += changes[team.league_rank()];
    MatchSums sum;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, size),
        [&](std::int64_t i, MatchSums& part) {
          int k[2];
          if (!counts(layout, i, squared_radius, k))
            return;
          Kokkos::complex<double> image(images[index * size + i]);
          const Kokkos::complex<double> projection(projections[index * size + i]);
          double even = 0, response = 1;
          if (own.lens >= 0) {
            const double* const lens = contrast.phases + 3 * (own.lens * size + i);
            image *= Kokkos::complex<double>(Kokkos::cos(lens[0]), -Kokkos::sin(lens[0]));
            even = lens[1];
            response = lens[2];
          }
          const double value = response * own.contrast(k[0] / (layout.size[0] * own.pixel_size),
                                                       k[1] / (layout.size[1] * own.pixel_size), even);
          const int multiplicity = layout.multiplicity(k[0]);
          part.overlap +=
              multiplicity * value * (projection.real() * image.real() + projection.imag() * image.imag());
          part.power += multiplicity * value * value *
                        (projection.real() * projection.real() + projection.imag() * projection.imag());
        },
        Kokkos::Sum<MatchSums>(sum));
    Kokkos::single(Kokkos::PerTeam(team), [&] { sums[team.league_rank()] = sum; });
  }

  void run(const Space& space, std::size_t count) const {
    Kokkos::parallel_for(
        "Bracewell::examples::defocus_trials",
        Kokkos::TeamPolicy<Space>(space, static_cast<int>(count) * trials, team_size_per_image), *this);
  }
};

/// Products of an image, its projection with contrast, and what that changes by with the three numbers of a symmetric
/// magnification: of every two of image, projection and changes, in the order of the upper triangle.
struct LensSums {
  static constexpr int spectra = 5, count = 15;
  double values[count] = {};

  KOKKOS_FUNCTION LensSums& operator+=(const LensSums& other) {
    for (int i = 0; i < count; ++i)
      values[i] += other.values[i];
    return *this;
  }
};

} // namespace Bracewell::Examples

template <>
struct Kokkos::reduction_identity<Bracewell::Examples::LensSums> {
  KOKKOS_FORCEINLINE_FUNCTION static Bracewell::Examples::LensSums sum() { return {}; }
};

namespace Bracewell::Examples {

/// LensSums over 0 < |k| <= radius, one team an image.
struct SumLens {
  HalfSpectrumLayout<2> layout;
  std::int64_t squared_radius;
  const Kokkos::complex<float>* spectra[LensSums::spectra]; ///< [images, h, w/2+1] each
  LensSums* sums;                                           ///< [images]

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t size = layout.elements(), index = team.league_rank();
    LensSums sum;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, size),
        [&](std::int64_t i, LensSums& part) {
          int k[2];
          if (!counts(layout, i, squared_radius, k))
            return;
          const int multiplicity = layout.multiplicity(k[0]);
          for (int a = 0, at = 0; a < LensSums::spectra; ++a)
            for (int b = a; b < LensSums::spectra; ++b, ++at) {
              const Kokkos::complex<double> one(spectra[a][index * size + i]),
                  other(spectra[b][index * size + i]);
              part.values[at] += multiplicity * (one.real() * other.real() + one.imag() * other.imag());
            }
        },
        Kokkos::Sum<LensSums>(sum));
    Kokkos::single(Kokkos::PerTeam(team), [&] { sums[index] = sum; });
  }

  void run(const Space& space, std::size_t count) const {
    Kokkos::parallel_for("Bracewell::examples::sum_lens",
                         Kokkos::TeamPolicy<Space>(space, static_cast<int>(count), team_size_per_image),
                         *this);
  }
};

/// Normal equations for the change (xx, xy, yy) of the magnification of an optics group: those of all its images, each
/// with a scale of its own, weighed by what its noise is.
struct MagnificationSums {
  Eigen::Matrix3d normal = Eigen::Matrix3d::Zero();
  Eigen::Vector3d right = Eigen::Vector3d::Zero();

  void add(const LensSums& image) {
    const auto product = [&](int a, int b) { // a <= b; image, projection, changes
      return image.values[a * LensSums::spectra - a * (a - 1) / 2 + b - a];
    };
    const double power = product(1, 1);
    if (!(power > 0))
      return;
    const double scale = product(0, 1) / power, rest = product(0, 0) - scale * product(0, 1);
    if (!(rest > 0))
      return;
    const double weight = 1 / rest;
    for (int i = 0; i < 3; ++i) {
      right(i) += weight * scale * (product(0, 2 + i) - scale * product(1, 2 + i));
      for (int j = 0; j < 3; ++j)
        normal(i, j) +=
            weight * scale * scale *
            (product(2 + std::min(i, j), 2 + std::max(i, j)) - product(1, 2 + i) * product(1, 2 + j) / power);
    }
  }
};

} // namespace Bracewell::Examples
