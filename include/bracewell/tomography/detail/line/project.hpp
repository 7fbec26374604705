// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/detail/line/backproject.hpp>

namespace Bracewell::Impl {

/// Some slices of images side by side: [y, x], and [x, y] behind it, rows of pixels with zeros at both ends.
template <class ExecutionSpace, class T>
struct LinePack {
  static constexpr int slices = TomographyTuning<ExecutionSpace>::line_slices;
  static constexpr int margin = 4; ///< zeros: four taps fall on them where none falls on a pixel
  using Pack = SlicePack<T, slices>;

  const T* image; ///< of the first slice
  Pack* packs;
  int n, count;

  static std::int64_t packs_for(int image) { return 2 * std::int64_t(image) * (image + 2 * margin); }

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t y, const Member& member) const {
    const std::int64_t pixels = std::int64_t(n) * n, stride = n + 2 * margin;
    Pack* const columns = packs + n * stride;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, n + 2 * margin), [&](int i) {
      const int x = i - margin;
      const bool inside = x >= 0 && x < n;
      Pack pack;
      for (int z = 0; z < slices; ++z)
        pack.values[z] = inside && z < count ? image[z * pixels + y * n + x] : T(0);
      packs[y * stride + i] = pack;
      if (inside)
        columns[x * stride + y + margin] = pack;
      else // the margin of the column y
        columns[y * stride + i] = pack;
    });
  }
};

/// The transpose, detector cell by detector cell: in every row of the image (or column, where that
/// crosses the rays less steeply) the strip of rays that a cell sees covers parts of three or four pixels.
template <class ExecutionSpace, class T>
struct LineProject {
  using Tuning = TomographyTuning<ExecutionSpace>;
  static constexpr bool host = is_host<ExecutionSpace>;
  static constexpr int slices = Tuning::line_slices;
  static constexpr int bins = Tuning::line_bins, angles_per_team = Tuning::line_angles_per_team,
                       bins_per_thread = host ? bins : 1;
  static constexpr int threads = host ? 1 : bins * angles_per_team;
  static constexpr int rows_at_once = 32; ///< positions are single precision within them
  using Pack = SlicePack<T, slices>;
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  BeamView<ExecutionSpace> beam;
  const Pack* packs;
  T* projections; ///< of the first slice
  int count, bins_across;

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int n = beam.image;
    const int first_bin = member.league_rank() % bins_across * bins + (host ? 0 : member.team_rank() % bins);
    const int p =
        member.league_rank() / bins_across * angles_per_team + (host ? 0 : member.team_rank() / bins);
    if (p >= beam.angles)
      return;
    const BeamAngle angle = beam.data[p];
    constexpr int margin = LinePack<ExecutionSpace, T>::margin;
    const bool steep = Kokkos::abs(angle.sine) > Kokkos::abs(angle.cosine);
    const Pack* const rows = packs + (steep ? n * std::int64_t(n + 2 * margin) : 0) + margin;
    // Along a row the detector coordinate rises by `along`, from row to row by `across`.
    const double along = steep ? angle.sine : angle.cosine, across = steep ? angle.cosine : angle.sine;
    // A strip one pixel wide, in a row one pixel high: how much of its cross-section is covered is a trapezoid.
    const double wide = 1 / Kokkos::abs(along), narrow = Kokkos::abs(across / along);
    const auto strip = Trapezoid<T>::make(wide, narrow, 1);
    T sums[bins_per_thread][slices] = {};
    if (wide + narrow <= 2)
      add_rows<3>(rows, first_bin - angle.centre, along, across, strip, sums);
    else
      add_rows<4>(rows, first_bin - angle.centre, along, across, strip, sums);
    for (int k = 0; k < bins_per_thread; ++k)
      for (int z = 0; z < slices; ++z)
        if (z < count && first_bin + k < beam.width)
          projections[(std::int64_t(z) * beam.angles + p) * beam.width + first_bin + k] =
              T(angle.weight) * sums[k][z];
  }

private:
  /// @param rows  from their first pixels on
  /// @param first_cell  pixels from the axis
  template <int taps>
  KOKKOS_FORCEINLINE_FUNCTION void add_rows(const Pack* rows, double first_cell, double along, double across,
                                            const Trapezoid<T>& strip,
                                            T (&sums)[bins_per_thread][slices]) const {
    const int n = beam.image;
    const std::int64_t stride = n + 2 * LinePack<ExecutionSpace, T>::margin;
    const T slope = T(across / along);
    for (int first = 0; first < n; first += rows_at_once) {
      const int end = Kokkos::min(n - first, +rows_at_once);
      for (int k = 0; k < bins_per_thread; ++k) {
        // Where the ray through the middle of this cell crosses the first of these rows.
        const double crossing = (first_cell + k - (first - n / 2) * across) / along + n / 2;
        const double base = Kokkos::floor(crossing);
        if (!(base > -2.0 * rows_at_once && base < n + 2.0 * rows_at_once))
          continue;
        const T offset = T(crossing - base);
        const Pack* values = rows + first * stride;
        for (int row = 0; row < end; ++row, values += stride) {
          // Of an even number of taps the middle is between two pixels.
          T rest, weights[taps];
          const int pixel =
              static_cast<int>(base) + nearest(offset - T(row) * slope - T(taps == 4 ? 0.5 : 0), rest);
          shares(strip, rest, weights);
          const Pack* const from = values + Kokkos::min(Kokkos::max(pixel, -3), n + 1) - 1;
          for (int j = 0; j < taps; ++j)
            if (host || weights[j] > T(0)) { // loads take longer than this
              const Pack pack = from[j];
              for (int z = 0; z < slices; ++z)
                sums[k][z] += weights[j] * pack.values[z];
            }
        }
      }
    }
  }

  /// What a strip covers of three pixels, its middle being `rest` right of the middle one's.
  KOKKOS_FORCEINLINE_FUNCTION static void shares(const Trapezoid<T>& strip, T rest, T (&weights)[3]) {
    weights[0] = strip.beyond_half_less(-rest);
    weights[2] = strip.beyond_half_less(rest);
    weights[1] = strip.area - weights[0] - weights[2];
  }

  /// Of four, its middle being `rest` right of the edge between the second and the third.
  KOKKOS_FORCEINLINE_FUNCTION static void shares(const Trapezoid<T>& strip, T rest, T (&weights)[4]) {
    weights[0] = strip.beyond_half_less(T(-0.5) - rest);
    weights[3] = strip.beyond_half_less(rest - T(0.5));
    const T less = strip.beyond_half_less(T(0.5) - Kokkos::abs(rest)), more = strip.area - less;
    weights[1] = (rest > T(0) ? less : more) - weights[0];
    weights[2] = (rest > T(0) ? more : less) - weights[3];
  }
};

} // namespace Bracewell::Impl
