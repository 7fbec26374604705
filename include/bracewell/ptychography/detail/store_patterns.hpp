// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/ptychography/detail/targets.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

namespace Bracewell::Impl {

/// Measured intensities as targets t: divided by their mean and multiplied by C where patterns are scaled.
/// A team per pattern.
template <class Space, class T, class Storage, class Count>
struct StorePatterns {
  static constexpr int team_size = is_host<Space> ? 1 : PtychographyTuning::pattern_threads;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  const Count* patterns;                  ///< [count, n, n]
  const T* weights;                       ///< [count | 1, n, n] or null
  std::int64_t weights_stride, first, at; ///< means from `first` on, values and weights from pattern `at` on
  int n;
  T counts;
  PatternLayout layout;
  TargetStorage<T, Storage> target;
  Storage* values;
  T* means;
  T* units;                      ///< [N]: of counts that half precision holds exactly
  T* pixel_weights;              ///< [N, n, n] or null: then a weight of 0 is a mask
  std::int64_t* invalid_pattern; ///< the first with a value that is not a finite number >= 0

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t i = team.league_rank(), j = first + i, pixels = std::int64_t(n) * n;
    const Count* const pattern = patterns + i * pixels;
    const T* const weight = weights ? weights + i * weights_stride : nullptr;
    double sum = 0, sum_weights = 0;
    std::int64_t invalid = 0, inexact = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, pixels),
        [&](std::int64_t k, double& partial, double& partial_weights, std::int64_t& bad,
            std::int64_t& not_exact) {
          const double w = weight ? double(weight[k]) : 1.0, value = static_cast<double>(pattern[k]);
          if (w > 0) {
            partial += w * value;
            partial_weights += w;
          }
          const bool usable = pixel_weights || !weight ? w >= 0 && w < 1e30 : w == 0 || w == 1;
          bad += !usable || (w > 0 && !(value >= 0 && value < 1e30));
          not_exact += w > 0 && !(value <= 2048 && value == Kokkos::floor(value));
        },
        sum, sum_weights, invalid, inexact);
    const T scale = counts == 0 || !(sum > 0) ? T(1) : static_cast<T>(counts * sum_weights / sum);
    const bool exact = sizeof(Storage) < sizeof(T) && inexact == 0;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, pixels), [&](std::int64_t k) {
      const T w = weight ? weight[k] : T(1), measured = static_cast<T>(pattern[k]);
      const Storage value = !(w > 0) ? static_cast<Storage>(T(-1))
                            : exact  ? static_cast<Storage>(measured)
                                     : target(scale * measured);
      values[layout(at + i, static_cast<int>(k / n), static_cast<int>(k % n))] = value;
      if (pixel_weights)
        pixel_weights[(at + i) * pixels + k] = w;
    });
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      units[j] = exact ? scale : T(0);
      means[j] = sum > 0 ? static_cast<T>(sum / sum_weights) * scale : T(0);
      if (invalid > 0)
        Kokkos::atomic_min(invalid_pattern, j);
    });
  }
};

} // namespace Bracewell::Impl
