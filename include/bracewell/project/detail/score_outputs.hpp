// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/detail/rank_poses.hpp>

#include <algorithm>
#include <cstdint>

namespace Bracewell::Impl {

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

/// Where scores of a pass of poses go.
template <class T>
struct ScoreOutputs {
  ScoreRule<T> rule;
  T* all = nullptr; ///< [images, all_poses, shifts]; null: not wanted
  std::int64_t all_poses = 0;
  std::int64_t first_pose = 0;  ///< of the pass
  BestShift<T>* best = nullptr; ///< [images, parts, best_stride]; null: not wanted
  std::int64_t best_stride = 0;

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
