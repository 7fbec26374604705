// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/detail/beam.hpp>
#include <bracewell/tomography/detail/line/footprint.hpp>
#include <bracewell/tomography/detail/tuning.hpp>

namespace Bracewell::Impl {

/// Values of neighbouring slices at one position, loaded at once.
template <class T, int N>
struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) SlicePack {
  T values[N];
};

/// Tiles of pixels, all of whose rays at an angle fall on a short segment of the detector: the segments of some angles
/// are loaded by the team, several slices side by side, then every thread adds to each of its pixels the cells that
/// the pixel's shadow meets, by their shares of the shadow. On GPUs a thread has 2 x 2 pixels, which read the same
/// four cells: reading them and computing the shares are what takes the time.
template <class ExecutionSpace, class T, int Slices>
struct LineBackproject {
  using Tuning = TomographyTuning<ExecutionSpace>;
  static constexpr bool host = is_host<ExecutionSpace>;
  static constexpr int threads = Tuning::line_threads, slices = Slices;
  static constexpr int columns = Tuning::line_columns, rows = Tuning::line_rows,
                       pixels = columns * rows / threads;
  static constexpr int segment = host ? 22 : 48; ///< see the assertion
  static_assert((2 * segment - 7) * (2 * segment - 7) >=
                    4 * ((columns - 1) * (columns - 1) + (rows - 1) * (rows - 1)),
                "A segment has room for the tile's diagonal, a cell before it and two behind.");
  static_assert(host || (pixels == 4 && columns == 32 && threads % 32 == 0), "See offset_of.");
  static constexpr int angles_at_once = Tuning::line_angles_at_once;
  /// Slices of a load. Packs of 16 bytes that follow each other are in different banks of scratch memory.
  static constexpr int packed = host ? slices : 16 / int(sizeof(T)), packs = slices / packed;
  static_assert(packed * packs == slices);
  static constexpr int stride = angles_at_once * segment; ///< between packs of a position
  static constexpr int loaders = host ? 1 : 16;           ///< threads that load a segment
  using Pack = SlicePack<T, packed>;
  using Bounds = Kokkos::LaunchBounds<threads, resident_teams<ExecutionSpace>(Tuning::line_teams)>;
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace, Bounds>::member_type;

  /// Detector coordinate, from the segment's begin, of a tile's first pixel (GPUs: of the first corner that 2 x 2
  /// pixels share, less half a cell); its steps. GPUs see the detector from behind where the sine is negative.
  struct alignas(16) Ray {
    T start, cosine, sine;
    int order; ///< of the four pixels along the detector, see reorder
    bool far;
    std::conditional_t<host, Trapezoid<T>, CornerShares<T>> shadow;
  };
  struct Offset { ///< of a thread's first pixel in the tile
    int column, row;
  };
  /// The same, kept in scratch memory: compilers would find it anew from the thread's number for every angle.
  struct alignas(2 * sizeof(T)) Place {
    T column, row;
  };

  BeamView<ExecutionSpace> beam;
  const T* projections;
  T* image;
  int all_slices, tiles_across;

  static std::size_t scratch_bytes() {
    return packs * stride * sizeof(Pack) + angles_at_once * sizeof(Ray) + threads * sizeof(Place) + 96;
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
    auto* const places = static_cast<Place*>(scratch.get_shmem_aligned(threads * sizeof(Place), 16));
    places[member.team_rank()] = {T(offset.column), T(offset.row)};

    T sums[pixels][slices] = {};
    [[maybe_unused]] int order = 0;
    for (int first = 0; first < beam.angles; first += angles_at_once) {
      const int angles = Kokkos::min(+angles_at_once, beam.angles - first);
      load_segments(member, first, angles, first_column, first_row, first_slice, count, segments, rays);
      member.team_barrier();
      [[maybe_unused]] const Place place = places[member.team_rank()];
      for (int a = 0; a < angles; ++a) {
        const Pack* const values = segments + a * segment;
        const Ray& ray = rays[a];
        if constexpr (host) {
          for (int row = 0; row < rows; ++row)
            add_row(ray, row, values, sums + row * columns);
        } else {
          const T corner = ray.start + place.column * ray.cosine + place.row * ray.sine;
          if (ray.order != order) {
            reorder(order, ray.order, sums);
            order = ray.order;
          }
          if (ray.far)
            add_block<true>(ray.shadow, corner, values, sums);
          else
            add_block<false>(ray.shadow, corner, values, sums);
        }
      }
      member.team_barrier();
    }
    if constexpr (!host)
      reorder(order, 0, sums);
    constexpr int across = host ? columns : 2;
    for (int k = 0; k < pixels; ++k) {
      const int x = first_column + offset.column + k % across, y = first_row + offset.row + k / across;
      for (int z = 0; z < slices; ++z)
        if (z < count && x < n && y < n)
          image[(std::int64_t(first_slice + z) * n + y) * n + x] = sums[k][z];
    }
  }

private:
  using Sums = T[pixels][slices];

  /// GPUs: a thread has 2 x 2 pixels. Eight neighbouring threads, whose loads go together, have 8 x 4, so that their
  /// values lie within eight cells whatever the angle: in different banks.
  KOKKOS_FORCEINLINE_FUNCTION static Offset offset_of(int thread) {
    if constexpr (host)
      return {0, 0};
    else
      return {2 * (thread % 4 + thread / 8 % 4 * 4), 2 * (thread / 4 % 2 + thread / 32 * 2)};
  }

  /// Bits of the order in which pixels (0, 0), (1, 0), (0, 1), (1, 1) lie along the detector: 1, the inner two are
  /// exchanged, as the columns' step is larger than the rows'; 2, columns go the other way.
  KOKKOS_FORCEINLINE_FUNCTION static void reorder(int from, int to, Sums& sums) {
    if (from & 1)
      exchange(sums[1], sums[2]);
    if ((from ^ to) & 2) {
      exchange(sums[0], sums[1]);
      exchange(sums[2], sums[3]);
    }
    if (to & 1)
      exchange(sums[1], sums[2]);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void exchange(T (&a)[slices], T (&b)[slices]) {
    for (int z = 0; z < slices; ++z) {
      const T value = a[z];
      a[z] = b[z];
      b[z] = value;
    }
  }

  /// A multiplication and addition at a time: one instruction each.
  template <int cells>
  KOKKOS_FORCEINLINE_FUNCTION static void add(T& sum, const T (&shares)[cells], T a, T b, T c) {
    sum += shares[0] * a;
    sum += shares[1] * b;
    sum += shares[2] * c;
  }

  /// Four pixels around the corner, by increasing detector coordinate, from the four cells next to it.
  template <bool far>
  KOKKOS_FORCEINLINE_FUNCTION static void add_block(const CornerShares<T>& shadow, T corner,
                                                    const Pack* values, Sums& sums) {
    T rest;
    const int i = nearest(corner, rest);
    const auto left = shadow.template at<far>(rest), right = shadow.template at<far>(-rest);
    for (int g = 0; g < packs; ++g) {
      const Pack* const cells = values + g * stride + i - 1;
      const Pack a = cells[0], b = cells[1], c = cells[2], d = cells[3];
      for (int k = 0; k < packed; ++k) {
        const int z = g * packed + k;
        add(sums[0][z], left.first, a.values[k], b.values[k], c.values[k]);
        add(sums[1][z], right.third, c.values[k], b.values[k], a.values[k]);
        add(sums[2][z], left.third, b.values[k], c.values[k], d.values[k]);
        add(sums[3][z], right.first, d.values[k], c.values[k], b.values[k]);
        if constexpr (far) {
          sums[1][z] += right.third[3] * d.values[k];
          sums[2][z] += left.third[3] * a.values[k];
        }
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
    for (int a = member.team_rank() / loaders; a < angles; a += threads / loaders) {
      const BeamAngle angle = beam.data[first + a];
      const double side = angle.sine < 0 ? -1 : 1, cosine = side * angle.cosine, sine = side * angle.sine;
      const double start =
          (first_column - middle) * cosine + (first_row - middle) * sine + side * angle.centre;
      const double least = start + Kokkos::min(0.0, (columns - 1) * cosine);
      const double begin = Kokkos::floor(least) - 1;
      if (member.team_rank() % loaders == 0) {
        const double wide = Kokkos::max(Kokkos::abs(cosine), sine),
                     narrow = Kokkos::min(Kokkos::abs(cosine), sine);
        Ray& ray = rays[a];
        ray.cosine = T(cosine), ray.sine = T(sine);
        if constexpr (host) {
          ray.start = T(start - begin);
          ray.shadow = Trapezoid<T>::make(wide, narrow, 1 / wide);
        } else {
          ray.start = T(start - begin + (cosine + sine - 1) / 2);
          ray.order = (Kokkos::abs(cosine) > sine ? 1 : 0) + (cosine < 0 ? 2 : 0);
          ray.far = narrow > 0.5;
          ray.shadow = CornerShares<T>::make(wide, narrow);
        }
      }
      for (int i = member.team_rank() % loaders; i < segment; i += loaders) {
        const double cell = side * (begin + i);
        const bool inside = cell >= 0 && cell < n;
        const T* const from = projections + (std::int64_t(first_slice) * beam.angles + first + a) * n +
                              (inside ? int(cell) : 0);
        for (int g = 0; g < packs; ++g) {
          Pack pack;
          for (int k = 0; k < packed; ++k) {
            const int z = g * packed + k;
            pack.values[k] =
                inside && z < count ? T(angle.weight) * from[std::int64_t(z) * beam.angles * n] : T(0);
          }
          segments[g * stride + a * segment + i] = pack;
        }
      }
    }
  }
};

} // namespace Bracewell::Impl
