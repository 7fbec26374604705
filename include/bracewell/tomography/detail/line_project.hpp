// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/detail/line_backproject.hpp>

namespace Bracewell::Impl {

/// Some slices of images side by side: [y, x], and [x, y] behind it.
template <class ExecutionSpace, class T>
struct LinePack {
  static constexpr int slices = LineBackproject<ExecutionSpace, T>::slices;
  using Pack = SlicePack<T, slices>;

  const T* image; ///< of the first slice
  Pack* packs;
  int n, count;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t y, const Member& member) const {
    const std::int64_t pixels = std::int64_t(n) * n;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, n), [&](int x) {
      Pack pack;
      for (int z = 0; z < slices; ++z)
        pack.values[z] = z < count ? image[z * pixels + y * n + x] : T(0);
      packs[y * n + x] = packs[pixels + std::int64_t(x) * n + y] = pack;
    });
  }
};

/// The transpose, detector pixel by detector pixel: on every line of the image (a row or a column, whichever
/// crosses the rays less steeply) at most three pixels lie within one detector pixel.
template <class ExecutionSpace, class T>
struct LineProject {
  using Tuning = TomographyTuning<ExecutionSpace>;
  static constexpr bool host = is_host<ExecutionSpace>;
  static constexpr int slices = LineBackproject<ExecutionSpace, T>::slices;
  static constexpr int bins = Tuning::line_bins, angles_per_team = Tuning::line_angles_per_team,
                       bins_per_thread = host ? bins : 1;
  static constexpr int threads = host ? 1 : bins * angles_per_team;
  static constexpr int lines_at_once = 32; ///< positions are single precision within them
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
    const bool steep = Kokkos::abs(angle.sine) > Kokkos::abs(angle.cosine);
    const Pack* const lines = packs + (steep ? std::int64_t(n) * n : 0);
    // Along a line the detector coordinate rises by `along`, from line to line by `across`.
    const double along = steep ? angle.sine : angle.cosine, across = steep ? angle.cosine : angle.sine;
    const T slope = T(across / along), step = T(along), reach = T(1 / Kokkos::abs(along));

    T sums[bins_per_thread][slices] = {};
    for (int first = 0; first < n; first += lines_at_once) {
      const int end = Kokkos::min(n - first, +lines_at_once);
      for (int k = 0; k < bins_per_thread; ++k) {
        // Where the ray of this detector pixel crosses the first of these lines.
        const double crossing = (first_bin + k - beam.centre - (first - n / 2) * across) / along + n / 2;
        const double base = Kokkos::floor(crossing);
        if (!(base > -2.0 * lines_at_once && base < n + 2.0 * lines_at_once))
          continue;
        const T offset = T(crossing - base);
        for (int line = 0; line < end; ++line) {
          const T centre = offset - T(line) * slope;
          const T begin = Kokkos::ceil(centre - reach);
          const int pixel = static_cast<int>(base) + static_cast<int>(begin);
          const Pack* const values = lines + std::int64_t(first + line) * n + pixel;
          for (int j = 0; j < 3; ++j) {
            const T weight = T(1) - Kokkos::abs((begin + T(j) - centre) * step);
            if (weight > T(0) && pixel + j >= 0 && pixel + j < n) {
              const Pack pack = values[j];
              for (int z = 0; z < slices; ++z)
                sums[k][z] += weight * pack.values[z];
            }
          }
        }
      }
    }
    for (int k = 0; k < bins_per_thread; ++k)
      for (int z = 0; z < count; ++z)
        if (first_bin + k < beam.width)
          projections[(std::int64_t(z) * beam.angles + p) * beam.width + first_bin + k] =
              T(angle.weight) * sums[k][z];
  }
};

} // namespace Bracewell::Impl
