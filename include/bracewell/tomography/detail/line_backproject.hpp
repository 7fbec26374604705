// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/detail/beam.hpp>
#include <bracewell/tomography/detail/line_footprint.hpp>
#include <bracewell/tomography/detail/tuning.hpp>

namespace Bracewell::Impl {

/// Values of neighbouring slices at one position, loaded at once.
template <class T, int N>
struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) SlicePack {
  T values[N];
};

/// Tiles of pixels, all of whose rays at an angle fall on a short segment of the detector: the segments of
/// some angles are loaded by the team, several slices side by side, then every thread adds to each of its pixels
/// the three cells that the pixel's shadow meets, by their shares of the shadow.
template <class ExecutionSpace, class T>
struct LineBackproject {
  using Tuning = TomographyTuning<ExecutionSpace>;
  static constexpr int threads = Tuning::line_threads, slices = Tuning::line_slices;
  static constexpr int columns = Tuning::line_columns, rows = Tuning::line_rows,
                       pixels = columns * rows / threads;
  static constexpr int segment = is_host<ExecutionSpace> ? 21 : 48; ///< see the assertion
  static_assert((2 * segment - 7) * (2 * segment - 7) >=
                    4 * ((columns - 1) * (columns - 1) + (rows - 1) * (rows - 1)),
                "A segment has room for the tile's diagonal and the cells on either side.");
  static constexpr int angles_at_once = Tuning::line_angles_at_once;
  using Pack = SlicePack<T, slices>;
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  struct Ray { ///< detector coordinate, from the segment's begin, of a tile's first pixel; its steps
    T start, cosine, sine;
    Trapezoid<T> shadow;
  };

  BeamView<ExecutionSpace> beam;
  const T* projections;
  T* image;
  int all_slices, tiles_across;

  static std::size_t scratch_bytes() { return angles_at_once * (segment * sizeof(Pack) + sizeof(Ray)) + 64; }

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int n = beam.image, groups = (all_slices + slices - 1) / slices;
    const int tile = member.league_rank() / groups, first_slice = member.league_rank() % groups * slices;
    const int first_column = tile % tiles_across * columns, first_row = tile / tiles_across * rows;
    const int count = Kokkos::min(+slices, all_slices - first_slice);
    const auto& scratch = member.team_scratch(0);
    auto* const segments =
        static_cast<Pack*>(scratch.get_shmem_aligned(angles_at_once * segment * sizeof(Pack), 16));
    auto* const rays = static_cast<Ray*>(scratch.get_shmem_aligned(angles_at_once * sizeof(Ray), 16));

    T sums[pixels][slices] = {};
    for (int first = 0; first < beam.angles; first += angles_at_once) {
      const int angles = Kokkos::min(+angles_at_once, beam.angles - first);
      load_segments(member, first, angles, first_column, first_row, first_slice, count, segments, rays);
      member.team_barrier();
      for (int a = 0; a < angles; ++a) {
        const Ray ray = rays[a];
        const Pack* const values = segments + a * segment;
        for (int k = 0; k < pixels; ++k) {
          const int pixel = member.team_rank() + k * threads;
          const T s = ray.start + T(pixel % columns) * ray.cosine + T(pixel / columns) * ray.sine;
          T offset;
          const int i = nearest(s, offset);
          const T right = ray.shadow.beyond_half_less(offset), left = ray.shadow.beyond_half_less(-offset);
          const T middle = T(1) - left - right;
          const Pack before = values[i - 1], here = values[i], after = values[i + 1];
          for (int z = 0; z < slices; ++z)
            sums[k][z] += left * before.values[z] + middle * here.values[z] + right * after.values[z];
        }
      }
      member.team_barrier();
    }
    for (int k = 0; k < pixels; ++k) {
      const int pixel = member.team_rank() + k * threads;
      const int x = first_column + pixel % columns, y = first_row + pixel / columns;
      if (x < n && y < n)
        for (int z = 0; z < count; ++z)
          image[(std::int64_t(first_slice + z) * n + y) * n + x] = sums[k][z];
    }
  }

private:
  /// The segments of `angles` angles from the `first` on, and the rays of a tile's first pixel.
  KOKKOS_INLINE_FUNCTION void load_segments(const Member& member, int first, int angles, int first_column,
                                            int first_row, int first_slice, int count, Pack* segments,
                                            Ray* rays) const {
    const int n = beam.width, middle = beam.image / 2;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, angles * segment), [&](int item) {
      const int a = item / segment, i = item % segment;
      const BeamAngle angle = beam.data[first + a];
      const double start =
          (first_column - middle) * angle.cosine + (first_row - middle) * angle.sine + beam.centre;
      const double least =
          start + Kokkos::min(0.0, (columns - 1) * angle.cosine) + Kokkos::min(0.0, (rows - 1) * angle.sine);
      const double begin = Kokkos::floor(least) - 1;
      if (i == 0) {
        const double wide = Kokkos::max(Kokkos::abs(angle.cosine), Kokkos::abs(angle.sine));
        const double narrow = Kokkos::min(Kokkos::abs(angle.cosine), Kokkos::abs(angle.sine));
        rays[a] = {T(start - begin), T(angle.cosine), T(angle.sine),
                   Trapezoid<T>::make(wide, narrow, 1 / wide)};
      }
      const bool inside = begin + i >= 0 && begin + i < n;
      Pack pack;
      for (int z = 0; z < slices; ++z) {
        const std::int64_t row = std::int64_t(first_slice + z) * beam.angles + first + a;
        pack.values[z] = inside && z < count ? T(angle.weight) * projections[row * n + int(begin) + i] : T(0);
      }
      segments[item] = pack;
    });
  }
};

} // namespace Bracewell::Impl
