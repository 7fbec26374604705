// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-refine/match.hpp"
#include "cryoem/contrast.hpp"
#include "cryoem/views.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include <algorithm>
#include <array>
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
/// magnification, with three rotations and with two shifts: of every two of these, in the order of the upper triangle.
struct LensSums {
  static constexpr int spectra = 8, shifts = 2, all = spectra + shifts, count = all * (all + 1) / 2;
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
  const Kokkos::complex<float>* spectra[LensSums::spectra]; ///< [images, h, w/2+1] each: all but shifts
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
          Kokkos::complex<double> own[LensSums::all];
          for (int a = 0; a < LensSums::spectra; ++a)
            own[a] = Kokkos::complex<double>(spectra[a][index * size + i]);
          for (int a = 0; a < LensSums::shifts; ++a) // of the projection, up to a factor
            own[LensSums::spectra + a] = Kokkos::complex<double>(-k[a] * own[1].imag(), k[a] * own[1].real());
          const int multiplicity = layout.multiplicity(k[0]);
          for (int a = 0, at = 0; a < LensSums::all; ++a)
            for (int b = a; b < LensSums::all; ++b, ++at)
              part.values[at] +=
                  multiplicity * (own[a].real() * own[b].real() + own[a].imag() * own[b].imag());
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

/// By how much the pose of an image follows a change (xx, xy, yy) of its magnification: three rotations of its orientation from
/// the right, in radians, and shifts along x and y, in periods of the box over 2 pi.
using Following = Eigen::Matrix<double, 5, 3>;

/// Normal equations for the change (xx, xy, yy) of the magnification of an optics group: those of all its images, each
/// with a scale and a pose of its own, weighed by what its noise is. Scales and poses are eliminated (the Schur complement): they
/// follow a change, and take up a part of it. Steps that kept them would be too short by that part.
struct MagnificationSums {
  Eigen::Matrix3d normal = Eigen::Matrix3d::Zero();
  Eigen::Vector3d right = Eigen::Vector3d::Zero();

  /// Returns how the pose of the image follows.
  Following add(const LensSums& image) {
    constexpr int all = LensSums::all, own = all - 4; // scale, rotations and shifts
    const auto product = [&](int a, int b) {
      const int first = std::min(a, b), second = std::max(a, b);
      return image.values[first * all - first * (first - 1) / 2 + second - first];
    };
    const double power = product(1, 1);
    if (!(power > 0))
      return Following::Zero();
    const double scale = product(0, 1) / power, rest = product(0, 0) - scale * product(0, 1);
    if (!(rest > 0) || scale == 0)
      return Following::Zero();
    const auto place = [](int i) { return i == 0 ? 1 : 4 + i; }; // of what is the image's own
    const auto residual = [&](int a) { return product(0, a) - scale * product(1, a); };
    Eigen::Matrix<double, own, own> square;
    Eigen::Matrix<double, own, 4> others; // magnifications, and the residual
    for (int i = 0; i < own; ++i) {
      for (int j = 0; j < own; ++j)
        square(i, j) = product(place(i), place(j));
      for (int j = 0; j < 3; ++j)
        others(i, j) = scale * product(place(i), 2 + j);
      others(i, 3) = residual(place(i));
    }
    Eigen::Matrix<double, own, 1> sizes = square.diagonal().cwiseSqrt();
    for (double& size : sizes)
      size = size > 0 ? 1 / size : 0; // a round object does not tell of a rotation
    square = sizes.asDiagonal() * square * sizes.asDiagonal();
    square.diagonal().array() += 1e-6;
    others = sizes.asDiagonal() * others;
    const Eigen::Matrix<double, own, 4> solved = square.ldlt().solve(others);
    const Eigen::Matrix<double, 3, 4> taken = others.leftCols<3>().transpose() * solved;
    const double weight = 1 / rest;
    for (int i = 0; i < 3; ++i) {
      right(i) += weight * (scale * residual(2 + i) - taken(i, 3));
      for (int j = 0; j < 3; ++j)
        normal(i, j) += weight * (scale * scale * product(2 + i, 2 + j) - taken(i, j));
    }
    return -1 / scale * (sizes.asDiagonal() * solved).bottomLeftCorner<5, 3>();
  }
};

} // namespace Bracewell::Examples
