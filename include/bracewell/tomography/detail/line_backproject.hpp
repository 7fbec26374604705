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
/// the three cells that the pixel's shadow meets, by their shares of the shadow. GPUs read four cells for two
/// neighbouring pixels: reading them is what takes the time.
template <class ExecutionSpace, class T, int Slices>
struct LineBackproject {
  using Tuning = TomographyTuning<ExecutionSpace>;
  static constexpr bool host = is_host<ExecutionSpace>;
  static constexpr int threads = Tuning::line_threads, slices = Slices;
  static constexpr int columns = Tuning::line_columns, rows = Tuning::line_rows,
                       pixels = columns * rows / threads;
  static constexpr int segment = host ? 22 : 49; ///< see the assertion
  static_assert((2 * segment - 9) * (2 * segment - 9) >=
                    4 * ((columns - 1) * (columns - 1) + (rows - 1) * (rows - 1)),
                "A segment has room for the tile's diagonal, a cell before it and two behind.");
  static_assert(host || (pixels == 4 && columns == 32 && threads % 32 == 0), "See block_of.");
  static constexpr int angles_at_once = Tuning::line_angles_at_once;
  /// Slices of a load. Packs of 16 bytes that follow each other are in different banks of scratch memory.
  static constexpr int packed = host ? slices : 16 / int(sizeof(T)), packs = slices / packed;
  static_assert(packed * packs == slices);
  static constexpr int stride = angles_at_once * segment; ///< between packs of a position
  using Pack = SlicePack<T, packed>;
  using Bounds = Kokkos::LaunchBounds<threads, resident_teams<ExecutionSpace>(Tuning::line_teams)>;
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace, Bounds>::member_type;

  /// Detector coordinate, from the segment's begin, of a tile's first pixel; its steps. Of the two steps the
  /// smaller one is not negative: where it is, the detector is seen from behind.
  struct Ray {
    T start, cosine, sine;
    Trapezoid<T> shadow;
    bool flat_columns; ///< |sine| is the smaller one
  };
  struct Offset { ///< of a thread's first pixel in the tile
    int column, row;
  };

  BeamView<ExecutionSpace> beam;
  const T* projections;
  T* image;
  int all_slices, tiles_across;

  static std::size_t scratch_bytes() {
    return packs * stride * sizeof(Pack) + angles_at_once * sizeof(Ray) + 64;
  }

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int n = beam.image, groups = (all_slices + slices - 1) / slices;
    const int tile = member.league_rank() / groups, first_slice = member.league_rank() % groups * slices;
    const int first_column = tile % tiles_across * columns, first_row = tile / tiles_across * rows;
    const int count = Kokkos::min(+slices, all_slices - first_slice);
    const auto& scratch = member.team_scratch(0);
    auto* const segments = static_cast<Pack*>(scratch.get_shmem_aligned(packs * stride * sizeof(Pack), 16));
    auto* const rays = static_cast<Ray*>(scratch.get_shmem_aligned(angles_at_once * sizeof(Ray), 16));
    const Offset offset = offset_of(member.team_rank());

    T sums[pixels][slices] = {};
    for (int first = 0; first < beam.angles; first += angles_at_once) {
      const int angles = Kokkos::min(+angles_at_once, beam.angles - first);
      load_segments(member, first, angles, first_column, first_row, first_slice, count, segments, rays);
      member.team_barrier();
      for (int a = 0; a < angles; ++a) {
        const Ray ray = rays[a];
        const Pack* const values = segments + a * segment;
        if constexpr (host) {
          for (int row = 0; row < rows; ++row)
            add_row(ray, row, values, sums + row * columns);
        } else {
          const T s = ray.start + T(offset.column) * ray.cosine + T(offset.row) * ray.sine;
          if (ray.flat_columns) {
            add_pair(ray.shadow, s, ray.sine, values, sums[0], sums[2]);
            add_pair(ray.shadow, s + ray.cosine, ray.sine, values, sums[1], sums[3]);
          } else {
            add_pair(ray.shadow, s, ray.cosine, values, sums[0], sums[1]);
            add_pair(ray.shadow, s + ray.sine, ray.cosine, values, sums[2], sums[3]);
          }
        }
      }
      member.team_barrier();
    }
    constexpr int across = host ? columns : 2;
    for (int k = 0; k < pixels; ++k) {
      const int x = first_column + offset.column + k % across, y = first_row + offset.row + k / across;
      for (int z = 0; z < slices; ++z)
        if (z < count && x < n && y < n)
          image[(std::int64_t(first_slice + z) * n + y) * n + x] = sums[k][z];
    }
  }

private:
  /// GPUs: a thread has 2 x 2 pixels. Eight neighbouring threads, whose loads go together, have 8 x 4, so that their
  /// values lie within eight cells whatever the angle: in different banks.
  KOKKOS_FORCEINLINE_FUNCTION static Offset offset_of(int thread) {
    if constexpr (host)
      return {0, 0};
    else
      return {2 * (thread % 4 + thread / 8 % 4 * 4), 2 * (thread / 4 % 2 + thread / 32 * 2)};
  }

  /// A pixel at s and one at s + step, 0 <= step < 1: their cells are four at most.
  KOKKOS_FORCEINLINE_FUNCTION static void add_pair(const Trapezoid<T>& shadow, T s, T step,
                                                   const Pack* values, T (&sums)[slices],
                                                   T (&next_sums)[slices]) {
    T rest, next_rest;
    const int i = nearest(s, rest);
    const bool moved = nearest(s + step, next_rest) > i;
    const T left = shadow.beyond_half_less(-rest), right = shadow.beyond_half_less(rest);
    const T next_left = shadow.beyond_half_less(-next_rest), next_right = shadow.beyond_half_less(next_rest);
    const T middle = T(1) - left - right, next_middle = T(1) - next_left - next_right;
    const T weights[4] = {moved ? T(0) : next_left, moved ? next_left : next_middle,
                          moved ? next_middle : next_right, moved ? next_right : T(0)};
    for (int g = 0; g < packs; ++g) {
      const Pack* const cells = values + g * stride + i - 1;
      const Pack a = cells[0], b = cells[1], c = cells[2], d = cells[3];
      for (int k = 0; k < packed; ++k) {
        sums[g * packed + k] += left * a.values[k] + middle * b.values[k] + right * c.values[k];
        next_sums[g * packed + k] += weights[0] * a.values[k] + weights[1] * b.values[k] +
                                     weights[2] * c.values[k] + weights[3] * d.values[k];
      }
    }
  }

  /// Hosts: a row of the tile, shares of all pixels first, pixels side by side, then the sums, slices side by side.
  KOKKOS_FORCEINLINE_FUNCTION static void add_row(const Ray& ray, int row, const Pack* values,
                                                  T (*sums)[slices]) {
    T left[columns], right[columns];
    int at[columns];
    const T start = ray.start + T(row) * ray.sine;
    for (int k = 0; k < columns; ++k) {
      T rest;
      at[k] = nearest(start + T(k) * ray.cosine, rest);
      left[k] = ray.shadow.beyond_half_less(-rest);
      right[k] = ray.shadow.beyond_half_less(rest);
    }
    for (int k = 0; k < columns; ++k) {
      const Pack* const here = values + at[k];
      const T middle = T(1) - left[k] - right[k];
      for (int z = 0; z < slices; ++z)
        sums[k][z] +=
            left[k] * here[-1].values[z] + middle * here[0].values[z] + right[k] * here[1].values[z];
    }
  }

  /// The segments of `angles` angles from the `first` on, and the rays of a tile's first pixel.
  KOKKOS_INLINE_FUNCTION void load_segments(const Member& member, int first, int angles, int first_column,
                                            int first_row, int first_slice, int count, Pack* segments,
                                            Ray* rays) const {
    const int n = beam.width, middle = beam.image / 2;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, angles * segment), [&](int item) {
      const int a = item / segment, i = item % segment;
      const BeamAngle angle = beam.data[first + a];
      const bool flat_columns = Kokkos::abs(angle.sine) < Kokkos::abs(angle.cosine);
      const double side = (flat_columns ? angle.sine : angle.cosine) < 0 ? -1 : 1;
      const double cosine = side * angle.cosine, sine = side * angle.sine;
      const double start =
          (first_column - middle) * cosine + (first_row - middle) * sine + side * angle.centre;
      const double least =
          start + Kokkos::min(0.0, (columns - 1) * cosine) + Kokkos::min(0.0, (rows - 1) * sine);
      const double begin = Kokkos::floor(least) - 1;
      if (i == 0) {
        const double wide = Kokkos::max(Kokkos::abs(cosine), Kokkos::abs(sine));
        const double narrow = Kokkos::min(Kokkos::abs(cosine), Kokkos::abs(sine));
        rays[a] = {T(start - begin), T(cosine), T(sine), Trapezoid<T>::make(wide, narrow, 1 / wide),
                   flat_columns};
      }
      const double cell = side * (begin + i);
      const bool inside = cell >= 0 && cell < n;
      for (int g = 0; g < packs; ++g) {
        Pack pack;
        for (int k = 0; k < packed; ++k) {
          const int z = g * packed + k;
          const std::int64_t row = std::int64_t(first_slice + z) * beam.angles + first + a;
          pack.values[k] = inside && z < count ? T(angle.weight) * projections[row * n + int(cell)] : T(0);
        }
        segments[g * stride + item] = pack;
      }
    });
  }
};

} // namespace Bracewell::Impl
