// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/turns.hpp>
#include <bracewell/project/detail/expectation/posteriors.hpp>
#include <bracewell/project/detail/scoring/scoring_tables.hpp>
#include <bracewell/rfft/layout.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Frequencies of images shell by shell.
struct FrequencyShells {
  const std::int32_t* shell; ///< [frequencies] of each of them
  const std::int32_t* order; ///< frequencies, those of shell 0 first
  const std::int32_t* begin; ///< [count + 1] where shells begin in the order
  int count;
};

/// Images of an Expectation, and what belongs to them.
template <class T>
struct ImagesInNoise {
  HalfSpectrumLayout<2> layout;
  FrequencyShells shells;
  const Kokkos::complex<T>* spectra;        ///< [images, h, w/2+1]
  const T *filters, *variances, *origins;   ///< [images|1, ...]; filters and origins null: none
  std::int64_t filter_stride, noise_stride; ///< 0: shared

  KOKKOS_INLINE_FUNCTION std::int64_t element(Frequency at) const {
    const int k[2] = {at.x, at.y};
    return layout.row(k) + k[0];
  }
};

/// Fills the tables of images, a team each: with the multiplicity m and the weight w = m / (2 variance), the images
/// are w C X exp(2 pi i k.o / n), and the filters w C^2. Their powers are zeros: all candidates of an image share its
/// power, whose rounding would hide differences of candidates. The constants of the log-evidence have it instead.
template <class T, bool items_first>
struct WeighInNoise {
  ScoringTables<T, items_first> tables;
  ImagesInNoise<T> input;
  std::int64_t filter_items; ///< of the table
  double* constants;         ///< [images] - sum (w |X|^2 + m log(2 pi variance)) / 2

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t image = team.league_rank(), size = input.layout.elements();
    double constant = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, tables.padded),
        [&](std::int64_t i, double& sum) {
          Kokkos::complex<T> value(0);
          T filtered(0);
          if (i < tables.count) {
            const Frequency at = tables.frequencies[i];
            const std::int64_t element = input.element(at);
            const auto x = input.spectra[image * size + element];
            const T c = input.filters ? input.filters[image * input.filter_stride + element] : T(1);
            const double variance =
                             double(input.variances[image * input.noise_stride + input.shells.shell[i]]),
                         m = input.layout.multiplicity(at.x), w = m / (2 * variance);
            value = T(w * double(c)) * x;
            if (input.origins) {
              const auto phase =
                  unit_phase(double(at.x) * double(input.origins[2 * image + 1]) / input.layout.size[0] +
                             double(at.y) * double(input.origins[2 * image]) / input.layout.size[1]);
              value *= Kokkos::complex<T>(static_cast<T>(phase.real()), static_cast<T>(phase.imag()));
            }
            filtered = T(w * double(c) * double(c));
            sum -= (w * (double(x.real()) * double(x.real()) + double(x.imag()) * double(x.imag())) +
                    m * Kokkos::log(2 * Kokkos::numbers::pi_v<double> * variance)) /
                   2;
          }
          tables.images(image, i) = value;
          if (image < filter_items)
            tables.filters(image, i) = filtered;
        },
        constant);
    Kokkos::single(Kokkos::PerTeam(team), [&] {
      tables.powers[image] = 0;
      constants[image] = constant;
    });
  }
};

/// powers[image, shell] = sum m |X|^2.
template <class T>
struct SumImagePowers {
  ImagesInNoise<T> input;
  const Frequency* frequencies;
  double* powers;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t image = index / input.shells.count;
    const int shell = static_cast<int>(index - image * input.shells.count);
    double sum = 0;
    for (std::int32_t j = input.shells.begin[shell]; j < input.shells.begin[shell + 1]; ++j) {
      const Frequency at = frequencies[input.shells.order[j]];
      const auto x = input.spectra[image * input.layout.elements() + input.element(at)];
      sum += input.layout.multiplicity(at.x) *
             (double(x.real()) * double(x.real()) + double(x.imag()) * double(x.imag()));
    }
    powers[index] = sum;
  }
};

/// Posteriors of some images at the poses of a tile, the poses that are listed, and neighbouring frequencies
/// that a thread takes: on hosts as many as its vectors and caches like, on GPUs one.
template <class Space, class T, bool items_first>
struct PosteriorTile {
  static constexpr int block = is_host<Space> ? 64 : 1;
  using Complex = Kokkos::complex<T>;

  ScoringTables<T, items_first> tables; ///< from the first of the images on
  bool one_filter;
  HalfSpectrumLayout<2> layout;
  const T* posteriors; ///< [images, poses, shifts]
  const T* totals;     ///< [images, poses]
  std::int64_t images;
  int poses, shifts;
  const std::int32_t* listed; ///< [listed_count] of the poses
  std::int64_t listed_count;

  KOKKOS_INLINE_FUNCTION std::int64_t blocks() const { return (tables.count + block - 1) / block; }
  KOKKOS_INLINE_FUNCTION int length(std::int64_t first) const {
    return static_cast<int>(Kokkos::min(std::int64_t(block), tables.count - first));
  }
  KOKKOS_INLINE_FUNCTION std::int64_t element(std::int64_t frequency) const {
    const int k[2] = {tables.frequencies[frequency].x, tables.frequencies[frequency].y};
    return layout.row(k) + k[0];
  }

  /// The image w C X times the sum over shifts of posterior exp(2 pi i k.s / n): moved back by all of them.
  KOKKOS_INLINE_FUNCTION void move_back(std::int64_t image, int pose, std::int64_t first, int count,
                                        T (&real)[block], T (&imaginary)[block]) const {
    for (int f = 0; f < count; ++f)
      real[f] = imaginary[f] = 0;
    const T* const own = posteriors + (image * poses + pose) * shifts;
    for (int shift = 0; shift < shifts; ++shift) {
      const T posterior = own[shift];
      if (!(posterior > 0))
        continue;
      for (int f = 0; f < count; ++f) {
        const Complex phase = tables.phases(shift, first + f);
        real[f] += posterior * phase.real();
        imaginary[f] += posterior * phase.imag();
      }
    }
    for (int f = 0; f < count; ++f) {
      const Complex x = tables.images(image, first + f);
      const T a = real[f], b = imaginary[f];
      real[f] = x.real() * a - x.imag() * b;
      imaginary[f] = x.real() * b + x.imag() * a;
    }
  }
};

/// The sums of images, moved back, with their posteriors at listed poses: what is inserted once for all images.
template <class Space, class T, bool items_first>
struct SumOverImages {
  using Tile = PosteriorTile<Space, T, items_first>;
  static constexpr int block = Tile::block;

  Tile tile;
  Kokkos::complex<T>* data; ///< [listed, h, w/2+1] sums of C X / variance
  T* weights;               ///< the same, of C^2 / variance

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t blocks = tile.blocks(), place = index / blocks,
                       first = (index - place * blocks) * block;
    const int pose = tile.listed[place], count = tile.length(first);
    T real[block] = {}, imaginary[block] = {}, weight[block] = {};
    for (std::int64_t image = 0; image < tile.images; ++image) {
      const T total = tile.totals[image * tile.poses + pose];
      if (!(total > 0))
        continue;
      T a[block], b[block];
      tile.move_back(image, pose, first, count, a, b);
      for (int f = 0; f < count; ++f) {
        real[f] += a[f];
        imaginary[f] += b[f];
        weight[f] += total * tile.tables.filters(tile.one_filter ? 0 : image, first + f);
      }
    }
    for (int f = 0; f < count; ++f) {
      const T scale = T(2) / static_cast<T>(tile.layout.multiplicity(tile.tables.frequencies[first + f].x));
      const std::int64_t to = place * tile.layout.elements() + tile.element(first + f);
      data[to] = Kokkos::complex<T>(scale * real[f], scale * imaginary[f]);
      weights[to] = scale * weight[f];
    }
  }
};

/// The sums of projections at listed poses with the posteriors of images. Poses are taken in parts, each of which has sums of
/// its own: images and frequencies alone are too few threads for a GPU.
template <class Space, class T, bool items_first>
struct SumOverPoses {
  using Tile = PosteriorTile<Space, T, items_first>;
  static constexpr int block = Tile::block;

  Tile tile;
  const Kokkos::complex<T>* projections; ///< [listed, h, w/2+1]
  T *overlaps, *powers; ///< [parts, images, frequencies] added to: of w Re(conj(X) C P) and w |C P|^2
  int parts;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t blocks = tile.blocks(), row = index / blocks, part = row / tile.images,
                       image = row - part * tile.images, first = (index - row * blocks) * block,
                       end = tile.listed_count * (part + 1) / parts;
    const int count = tile.length(first);
    T overlap[block] = {}, power[block] = {};
    for (std::int64_t place = tile.listed_count * part / parts; place < end; ++place) {
      const int pose = tile.listed[place];
      const T total = tile.totals[image * tile.poses + pose];
      if (!(total > 0))
        continue;
      T a[block], b[block];
      tile.move_back(image, pose, first, count, a, b);
      for (int f = 0; f < count; ++f) {
        const auto p = projections[place * tile.layout.elements() + tile.element(first + f)];
        overlap[f] += a[f] * p.real() + b[f] * p.imag();
        power[f] += total * (p.real() * p.real() + p.imag() * p.imag());
      }
    }
    for (int f = 0; f < count; ++f) {
      const std::int64_t to = row * tile.tables.count + first + f;
      overlaps[to] += overlap[f];
      powers[to] += power[f] * tile.tables.filters(tile.one_filter ? 0 : image, first + f);
    }
  }
};

/// Sums over shells of what SumOverPoses has gathered, without the weights w.
template <class T>
struct SumShells {
  FrequencyShells shells;
  const T *overlaps, *powers; ///< [parts, images, frequencies]
  int parts;
  std::int64_t images, frequencies;
  const double* image_powers; ///< [images, shells]
  const T* variances;         ///< [images|1, shells]
  std::int64_t noise_stride;
  const PosteriorSums* posteriors; ///< [images]
  double* sums;                    ///< [images, shells, 3]

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t image = index / shells.count;
    const int shell = static_cast<int>(index - image * shells.count);
    double overlap = 0, power = 0;
    for (int part = 0; part < parts; ++part)
      for (std::int32_t j = shells.begin[shell]; j < shells.begin[shell + 1]; ++j) {
        const std::int64_t at = (part * images + image) * frequencies + shells.order[j];
        overlap += double(overlaps[at]);
        power += double(powers[at]);
      }
    const double variance = double(variances[image * noise_stride + shell]);
    sums[3 * index] = posteriors[image].values[0] * image_powers[index];
    sums[3 * index + 1] = 2 * variance * overlap;
    sums[3 * index + 2] = 2 * variance * power;
  }
};

} // namespace Bracewell::Impl
