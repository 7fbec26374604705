// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/turns.hpp>
#include <bracewell/rfft/layout.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

namespace Bracewell::Impl {

/// The two products of scoring: sum filter |P|^2 of images and poses; scores, which end what that began.
enum class ScoringProduct { Powers, Scores };

/// ScoreTiles, for GPUs: by counting instructions, before measurements. A thread multiplies 8 rows (of an image and
/// a shift) by 8 poses, so that a team of 8 threads per 8 rows has as many rows as threads, and as many samples to
/// take for a chunk of 32 bytes of frequencies as float has threads.
struct ScoringTuning {
  static constexpr int side = 8, poses = 64;
  static constexpr int threads(std::size_t value_bytes) { return value_bytes == 4 ? 512 : 256; }
  static constexpr int resident = 1; ///< teams of a multiprocessor
  static constexpr int chunk(std::size_t value_bytes) { return 32 / static_cast<int>(value_bytes); }

  /// ScoreBlocks, for hosts: poses and rows of a block, and frequencies that are sampled at once, so that the
  /// samples of a block stay in the L2 cache (docs/lab/projection.md).
  static constexpr int block_poses = 48, block_rows = 4096, block_frequencies = 512;

  /// Memory for the best shift of every pose, and poses between two rankings.
  static constexpr std::size_t candidate_bytes = std::size_t(64) << 20;
  /// On GPUs, memory for projections of a pass: enough tiles for all multiprocessors.
  static constexpr std::size_t projection_bytes = std::size_t(256) << 20;
  static constexpr int pass_poses = 16384;
};

/// A stored frequency of images.
struct Frequency {
  std::int16_t x, y;
};

/// Projections at the poses of a pass, without shifts.
template <class T>
struct ProjectedPoses {
  const Kokkos::complex<T>* values; ///< [poses, h, w/2+1]
  HalfSpectrumLayout<2> layout;

  KOKKOS_INLINE_FUNCTION const Kokkos::complex<T>& operator()(std::int64_t pose, Frequency at) const {
    const int k[2] = {at.x, at.y};
    return values[pose * layout.elements() + layout.row(k) + k[0]];
  }
};

/// Numbers of items (images, shifts) at the frequencies within the radius. GPUs have neighbouring items side by
/// side, hosts neighbouring frequencies.
template <class Value, bool items_first>
struct ScoringTable {
  Value* data = nullptr;
  std::int64_t stride = 0; ///< items, or frequencies

  KOKKOS_INLINE_FUNCTION Value& operator()(std::int64_t item, std::int64_t frequency) const {
    return items_first ? data[frequency * stride + item] : data[item * stride + frequency];
  }
};

/// What is known of images and shifts before poses are. With multiplicity m, weight w, filter C and image X, at
/// frequency k and for shift s:
///   sum m w |X - C P exp(-2 pi i k.s/n)|^2 = power - 2 sum Re(conj(image phase) P) + sum filter |P|^2.
template <class T, bool items_first>
struct ScoringTables {
  using Complex = Kokkos::complex<T>;

  const Frequency* frequencies =
      nullptr;             ///< row by row; where items come first, the zero frequency behind the last
  std::int64_t count = 0;  ///< of frequencies
  std::int64_t padded = 0; ///< the same, with zeros in all tables behind the last
  ScoringTable<Complex, items_first> images; ///< m w C X
  ScoringTable<Complex, items_first> phases; ///< exp(2 pi i k.s/n), of shifts
  ScoringTable<T, items_first> filters;      ///< m w C^2, of images or of all of them
  T* powers = nullptr;                       ///< [images] sum m w |X|^2
};

/// Fills the tables of images, one team each.
template <class T, bool items_first>
struct WeighImages {
  ScoringTables<T, items_first> tables = {}; ///< the plan's, as filter_items
  HalfSpectrumLayout<2> layout;
  const Kokkos::complex<T>* images; ///< [images, h, w/2+1]
  const T *filters, *weights;       ///< [images|1, h, w/2+1]; null: 1
  std::int64_t filter_stride, weight_stride;
  std::int64_t filter_items = 1; ///< of the table

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t image = team.league_rank(), size = layout.elements();
    double power = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, tables.padded),
        [&](std::int64_t i, double& sum) {
          Kokkos::complex<T> value(0);
          T filtered(0);
          if (i < tables.count) {
            const int k[2] = {tables.frequencies[i].x, tables.frequencies[i].y};
            const std::int64_t element = layout.row(k) + k[0];
            const auto x = images[image * size + element];
            const T c = filters ? filters[image * filter_stride + element] : T(1),
                    w = static_cast<T>(layout.multiplicity(k[0])) *
                        (weights ? weights[image * weight_stride + element] : T(1));
            value = w * c * x;
            filtered = w * c * c;
            sum += double(w) * (double(x.real()) * double(x.real()) + double(x.imag()) * double(x.imag()));
          }
          tables.images(image, i) = value;
          if (image < filter_items)
            tables.filters(image, i) = filtered;
        },
        power);
    Kokkos::single(Kokkos::PerTeam(team), [&] { tables.powers[image] = static_cast<T>(power); });
  }
};

/// Fills the table of shifts.
template <class T, bool items_first>
struct ComputePhases {
  ScoringTables<T, items_first> tables;
  HalfSpectrumLayout<2> layout;
  const T* shifts; ///< [shifts, 2] (row, column)
  std::int64_t count;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t shift = items_first ? index % count : index / tables.padded,
                       i = items_first ? index / count : index % tables.padded;
    Kokkos::complex<T> phase(0);
    if (i < tables.count) {
      const auto k = tables.frequencies[i];
      const auto exact = unit_phase(double(k.x) * double(shifts[2 * shift + 1]) / layout.size[0] +
                                    double(k.y) * double(shifts[2 * shift]) / layout.size[1]);
      phase = Kokkos::complex<T>(static_cast<T>(exact.real()), static_cast<T>(exact.imag()));
    }
    tables.phases(shift, i) = phase;
  }
};

} // namespace Bracewell::Impl
