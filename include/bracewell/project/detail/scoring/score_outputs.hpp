// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>

namespace Bracewell::Impl {

/// Keys of an image and a pose, linear in the sum over Re(conj(image phase) P) of a shift. They are what is ranked: the
/// lower the better.
template <class T>
struct ScoreKeys {
  T offset, factor;

  KOKKOS_INLINE_FUNCTION T operator()(T overlap) const { return offset + factor * overlap; }
};

/// Sums to scores.
template <class T>
struct ScoreRule {
  bool correlation = false;

  KOKKOS_INLINE_FUNCTION ScoreKeys<T> keys(T projection_power, T image_power) const {
    if (!correlation)
      return {image_power + projection_power, T(-2)};
    const T norm = Kokkos::sqrt(image_power) * Kokkos::sqrt(projection_power);
    return {T(0), norm == 0 ? T(0) : -1 / norm};
  }
  KOKKOS_INLINE_FUNCTION T score(T key) const { return correlation ? -key : key; }
};

/// The best shift of an image and a pose.
template <class T>
struct BestShift {
  T key = Kokkos::Experimental::quiet_NaN_v<T>; ///< not a number: none
  std::int32_t shift = -1;

  KOKKOS_INLINE_FUNCTION static bool better(T one, T other) {
    return (one < other) | ((other != other) & (one == one));
  }

  /// Shifts have to come in their order: of equal ones the first stays.
  KOKKOS_INLINE_FUNCTION void offer(T other, std::int32_t shift_of_other) {
    if (better(other, key)) {
      key = other;
      shift = shift_of_other;
    }
  }
};

template <class T>
struct RankedPose {
  T key;
  std::int32_t pose, shift; ///< -1: none
};

/// The best poses of images, of those that are ranked already and of `poses` more, one team per image. Equal ones
/// keep their order; keys that are not numbers are left out.
template <class T>
struct RankPoses {
  ScoreRule<T> rule;
  const BestShift<T>* found; ///< [images, parts, stride]
  int parts, poses, first_pose;
  std::int64_t stride;
  int ranks;
  const RankedPose<T>* ranked; ///< [images, ranks]; null: none
  RankedPose<T>* result;       ///< [images, ranks]
  T* scores;                   ///< [images, ranks] and the next two; null: not wanted yet
  std::int32_t *best_poses, *best_shifts;

  KOKKOS_INLINE_FUNCTION RankedPose<T> entry(std::int64_t image, int i) const {
    const int before = ranked ? ranks : 0;
    if (i < before)
      return ranked[image * ranks + i];
    BestShift<T> best;
    for (int part = 0; part < parts; ++part) {
      const auto& of_part = found[(image * parts + part) * stride + (i - before)];
      best.offer(of_part.key, of_part.shift);
    }
    return {best.key, first_pose + i - before, best.shift};
  }

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    using Best = Kokkos::MinFirstLoc<T, int>;
    const std::int64_t image = team.league_rank();
    const int entries = (ranked ? ranks : 0) + poses;
    typename Best::value_type last;
    for (int rank = 0; rank < ranks; ++rank) {
      typename Best::value_type next;
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, entries),
          [&](int i, typename Best::value_type& best) {
            const T key = entry(image, i).key;
            const bool later = rank == 0 || key > last.val || (key == last.val && i > last.loc);
            if (later && (key < best.val || (key == best.val && i < best.loc)))
              best = {key, i};
          },
          Best(next));
      last = next;
      Kokkos::single(Kokkos::PerTeam(team), [&] {
        RankedPose<T> one{Kokkos::Experimental::quiet_NaN_v<T>, -1, -1};
        if (next.loc < entries)
          one = entry(image, next.loc);
        const std::int64_t place = image * ranks + rank;
        result[place] = one;
        if (scores) {
          scores[place] = rule.score(one.key);
          best_poses[place] = one.pose;
          best_shifts[place] = one.shift;
        }
      });
      if (next.loc >= entries)
        last = {Kokkos::Experimental::infinity_v<T>, entries}; // nothing comes after it
    }
  }
};

/// Rows of a product: shifts of images, in tiles of whole images, or of equal parts of the shifts of one.
struct ScoringRows {
  std::int64_t images;
  int shifts, parts, part_shifts; ///< of an image; of a part
  int tile_images;                ///< or one part of each of them

  /// As few tiles of `most` rows as there can be.
  ScoringRows(std::int64_t images_, int shifts_, int most) : images(images_), shifts(shifts_) {
    const auto of = [&](int count) {
      const int each = (shifts + count - 1) / count;
      return (images + most / each - 1) / (most / each) * count;
    };
    const int least = (shifts + most - 1) / most;
    parts = least;
    for (int count = least; count < std::min(2 * least + 2, shifts); ++count)
      if (of(count) < of(parts))
        parts = count;
    part_shifts = (shifts + parts - 1) / parts;
    tile_images = most / part_shifts;
  }

  KOKKOS_INLINE_FUNCTION std::int64_t tiles() const {
    return (images + tile_images - 1) / tile_images * parts;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t first_image(std::int64_t tile) const {
    return tile / parts * tile_images;
  }
  KOKKOS_INLINE_FUNCTION int first_shift(std::int64_t tile) const {
    return static_cast<int>(tile % parts) * part_shifts;
  }
  /// What of a tile there is.
  KOKKOS_INLINE_FUNCTION int images_of(std::int64_t tile) const {
    return static_cast<int>(Kokkos::min(std::int64_t(tile_images), images - first_image(tile)));
  }
  KOKKOS_INLINE_FUNCTION int shifts_of(std::int64_t tile) const {
    return Kokkos::min(part_shifts, shifts - first_shift(tile));
  }
};

/// Poses that an Expectation wants, or does not, together.
inline constexpr int part_poses = 64;

/// Where scores of a pass of poses go.
template <class T>
struct ScoreOutputs {
  ScoreRule<T> rule;
  T* all = nullptr; ///< [images, all_poses, shifts]; null: not wanted
  std::int64_t all_poses = 0;
  std::int64_t first_pose = 0;  ///< of the pass
  BestShift<T>* best = nullptr; ///< [images, parts, best_stride]; null: not wanted
  std::int64_t best_stride = 0;
  const std::uint8_t* wanted = nullptr; ///< [images, wanted_stride] of parts of the poses; null: all are
  std::int64_t wanted_stride = 0;
  bool apart = false; ///< hardly two images want the same poses

  /// Whether no image wants any of these poses: they are not scored, and nothing is stored for them.
  KOKKOS_INLINE_FUNCTION bool skips(std::int64_t image, int images, std::int64_t pose,
                                    std::int64_t poses) const {
    if (!wanted)
      return false;
    for (int i = 0; i < images; ++i)
      for (std::int64_t part = (first_pose + pose) / part_poses;
           part <= (first_pose + pose + poses - 1) / part_poses; ++part)
        if (wanted[(image + i) * wanted_stride + part])
          return false;
    return true;
  }

  KOKKOS_INLINE_FUNCTION void store(const ScoringRows& rows, std::int64_t image, std::int64_t pose, int shift,
                                    T key) const {
    if (all)
      all[(image * all_poses + first_pose + pose) * rows.shifts + shift] = rule.score(key);
  }
  KOKKOS_INLINE_FUNCTION void store(const ScoringRows& rows, std::int64_t image, int part, std::int64_t pose,
                                    const BestShift<T>& shift) const {
    best[(image * rows.parts + part) * best_stride + pose] = shift;
  }
};

} // namespace Bracewell::Impl
