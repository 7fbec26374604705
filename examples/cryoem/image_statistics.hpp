// SPDX-License-Identifier: MIT
#pragma once

#include "common/mrc.hpp"
#include "cryoem/views.hpp"

#include <cstdint>

namespace Bracewell::Examples {

/// What is looked at in every image before it is used.
struct ImageStatistics {
  double background;       ///< mean outside of the disc that fits the image; 0 where nothing is
  double deviation;        ///< standard deviation of all pixels
  std::int64_t not_finite; ///< the first pixel whose value is not; the number of pixels where all are
  double inside;           ///< mean within the disc
  double mixed,
      squares; ///< sums over all pixels, the first with factor_of: alike in images that are the same
  double hot;  ///< standard deviations of the others by which one pixel stands out alone; 0: none does
  std::int64_t hot_pixel; ///< that one
  double largest;         ///< magnitude
};

/// Computes them, one team per image; optionally subtracts the background.
struct LookAtImages {
  float* images; ///< [count, height, width]
  std::int64_t height, width;
  bool subtract_background;
  ImageStatistics* statistics; ///< [count]

  struct Sums {
    double all = 0, squares = 0, outside = 0, pixels_outside = 0, mixed = 0;
    float minimum = Kokkos::reduction_identity<float>::min(),
          maximum = Kokkos::reduction_identity<float>::max();

    KOKKOS_FUNCTION Sums& operator+=(const Sums& other) {
      minimum = Kokkos::min(minimum, other.minimum);
      maximum = Kokkos::max(maximum, other.maximum);
      all += other.all;
      mixed += other.mixed;
      squares += other.squares;
      outside += other.outside;
      pixels_outside += other.pixels_outside;
      return *this;
    }
  };

  /// By which a pixel is multiplied for a sum that images of whole numbers do not share, unless they are the same.
  KOKKOS_FUNCTION static double factor_of(std::int64_t pixel) {
    return (static_cast<std::uint32_t>(pixel) * 2654435761u) >> 16;
  }

  /// Standard deviations of the other pixels that a value is away from their mean; 0 unless they are many.
  KOKKOS_FUNCTION static double stands_out(const Sums& sums, double count, double value) {
    constexpr double many = 20;
    const double mean = (sums.all - value) / (count - 1),
                 variance = Kokkos::max(0.0, (sums.squares - value * value) / (count - 1) - mean * mean),
                 away = Kokkos::abs(value - mean), rounding = 1e-12 * (value * value + mean * mean);
    return away * away > many * many * (variance + rounding) ? away / Kokkos::sqrt(variance + rounding) : 0;
  }

  /// Whether all neighbours of a pixel are less than half as far from the mean.
  KOKKOS_FUNCTION bool is_alone(const float* image, std::int64_t pixel, double mean) const {
    const std::int64_t row = pixel / width, column = pixel % width;
    const double half = Kokkos::abs(image[pixel] - mean) / 2;
    for (std::int64_t y = Kokkos::max<std::int64_t>(0, row - 1); y < Kokkos::min(height, row + 2); ++y)
      for (std::int64_t x = Kokkos::max<std::int64_t>(0, column - 1); x < Kokkos::min(width, column + 2); ++x)
        if ((y != row || x != column) && Kokkos::abs(image[y * width + x] - mean) > half)
          return false;
    return true;
  }

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const;

  void run(const Space& space, std::size_t count) const {
    const int teams = static_cast<int>(count);
    const auto policy = kernels_run_on_host ? Kokkos::TeamPolicy<Space>(space, teams, 1)
                                            : Kokkos::TeamPolicy<Space>(space, teams, 8, 32);
    Kokkos::parallel_for("Bracewell::examples::look_at_images", policy, *this);
  }
};

/// Computes what the header of a stack says of its images, one team per image: deviations in a second pass, so that nothing
/// cancels for a large mean.
struct ImageMoments {
  const float* images; ///< [count, pixels]
  std::int64_t pixels;
  MrcWriter::Moments* moments; ///< [count]

  struct Values {
    double sum = 0;
    float minimum = Kokkos::reduction_identity<float>::min(),
          maximum = Kokkos::reduction_identity<float>::max();

    KOKKOS_FUNCTION Values& operator+=(const Values& other) {
      sum += other.sum;
      minimum = Kokkos::min(minimum, other.minimum);
      maximum = Kokkos::max(maximum, other.maximum);
      return *this;
    }
  };

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const;

  void run(const Space& space, std::size_t count) const {
    Kokkos::parallel_for(
        "Bracewell::examples::image_moments",
        Kokkos::TeamPolicy<Space>(space, static_cast<int>(count), kernels_run_on_host ? 1 : 256), *this);
  }
};

} // namespace Bracewell::Examples

template <>
struct Kokkos::reduction_identity<Bracewell::Examples::LookAtImages::Sums> {
  KOKKOS_FORCEINLINE_FUNCTION static Bracewell::Examples::LookAtImages::Sums sum() { return {}; }
};
template <>
struct Kokkos::reduction_identity<Bracewell::Examples::ImageMoments::Values> {
  KOKKOS_FORCEINLINE_FUNCTION static Bracewell::Examples::ImageMoments::Values sum() { return {}; }
};

namespace Bracewell::Examples {

template <class Team>
KOKKOS_FUNCTION void LookAtImages::operator()(const Team& team) const {
  float* const image = images + team.league_rank() * height * width;
  const std::int64_t pixels = height * width;
  Sums sums;
  Kokkos::parallel_reduce(
      Kokkos::TeamThreadRange(team, height),
      [&](std::int64_t y, Sums& part) {
        Sums row;
        const std::int64_t dy = 2 * (y - height / 2);
        Kokkos::parallel_reduce(
            Kokkos::ThreadVectorRange(team, width),
            [&](std::int64_t x, Sums& in_row) {
              const std::int64_t dx = 2 * (x - width / 2);
              const float stored = image[y * width + x];
              const double value = stored, outside = dx * dx + dy * dy > pixels ? 1 : 0;
              in_row.minimum = Kokkos::min(in_row.minimum, stored);
              in_row.maximum = Kokkos::max(in_row.maximum, stored);
              in_row.all += value;
              in_row.squares += value * value;
              in_row.mixed += value * factor_of(y * width + x);
              in_row.outside += outside * value;
              in_row.pixels_outside += outside;
            },
            Kokkos::Sum<Sums>(row));
        part += row;
      },
      Kokkos::Sum<Sums>(sums));
  const double count = static_cast<double>(pixels), mean = sums.all / count;
  const double background = sums.pixels_outside > 0 ? sums.outside / sums.pixels_outside : 0;
  std::int64_t not_finite = pixels;
  if (!Kokkos::isfinite(sums.all))
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, pixels),
        [&](std::int64_t i, std::int64_t& first) {
          if (!Kokkos::isfinite(image[i]) && i < first)
            first = i;
        },
        Kokkos::Min<std::int64_t>(not_finite));
  double hot = 0;
  std::int64_t hot_pixel = pixels;
  for (const float extreme : {sums.maximum, sums.minimum}) {
    const double here = stands_out(sums, count, extreme);
    if (!(here > hot)) // the same for the whole team
      continue;
    std::int64_t found = pixels;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, pixels),
        [&](std::int64_t i, std::int64_t& first) {
          if (image[i] == extreme && i < first)
            first = i;
        },
        Kokkos::Min<std::int64_t>(found));
    if (found < pixels && is_alone(image, found, (sums.all - extreme) / (count - 1))) {
      hot = here;
      hot_pixel = found;
    }
  }
  const double inside = (sums.all - sums.outside) / Kokkos::max(1.0, count - sums.pixels_outside);
  Kokkos::single(Kokkos::PerTeam(team), [&] {
    statistics[team.league_rank()] = {
        background,
        Kokkos::sqrt(Kokkos::max(0.0, sums.squares / count - mean * mean)),
        not_finite,
        inside,
        sums.mixed,
        sums.squares,
        hot,
        hot_pixel,
        Kokkos::max(Kokkos::abs(double(sums.minimum)), Kokkos::abs(double(sums.maximum)))};
  });
  team.team_barrier(); // pixels are looked at until here
  if (subtract_background)
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, pixels),
                         [&](std::int64_t i) { image[i] -= static_cast<float>(background); });
}

template <class Team>
KOKKOS_FUNCTION void ImageMoments::operator()(const Team& team) const {
  const float* const image = images + team.league_rank() * pixels;
  const auto all_pixels = Kokkos::TeamThreadRange(team, pixels);
  Values values;
  Kokkos::parallel_reduce(
      all_pixels,
      [&](std::int64_t i, Values& part) {
        part += Values{image[i], image[i], image[i]};
      },
      Kokkos::Sum<Values>(values));
  const double mean = values.sum / static_cast<double>(pixels);
  double squared_deviations = 0;
  Kokkos::parallel_reduce(
      all_pixels, [&](std::int64_t i, double& part) { part += (image[i] - mean) * (image[i] - mean); },
      squared_deviations);
  Kokkos::single(Kokkos::PerTeam(team), [&] {
    moments[team.league_rank()] = {values.minimum, values.maximum, mean, squared_deviations, true};
  });
}

} // namespace Bracewell::Examples
