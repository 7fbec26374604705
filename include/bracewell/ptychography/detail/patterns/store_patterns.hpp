// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/targets.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

namespace Bracewell::Impl {

/// Real patterns as complex ones.
template <class T>
struct ToComplex {
  const T* from;
  Kokkos::complex<T>* to;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { to[i] = Kokkos::complex<T>(from[i], T(0)); }
};

/// Lags |l| < m of autocorrelations on n x n, on the smaller grid of n2 x n2, divided by n^2.
template <class T>
struct CropLags {
  const Kokkos::complex<T>* from;
  Kokkos::complex<T>* to;
  int n, n2, m;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const int column = static_cast<int>(index % n2), row = static_cast<int>(index / n2 % n2);
    const std::int64_t j = index / n2 / n2;
    const int y = 2 * row < n2 ? row : row - n2, x = 2 * column < n2 ? column : column - n2;
    Kokkos::complex<T> value(0);
    if (Kokkos::abs(y) < m && Kokkos::abs(x) < m)
      value = from[(j * n + (y + n) % n) * n + (x + n) % n] / T(std::int64_t(n) * n);
    to[index] = value;
  }
};

/// Stores resampled targets and, per pattern, mean t^2 on the full grid minus mean t^2 on the reduced one.
template <class Space, class T, class Storage>
struct StoreReduced {
  static constexpr int team_size = is_host<Space> ? 1 : PtychographyTuning::pattern_threads;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  const T* full;
  const Kokkos::complex<T>* reduced;
  std::int64_t first, at; ///< constants from `first` on, values from pattern `at` on
  int n, n2;
  PatternLayout layout;
  Storage* values;
  double* constants;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t i = team.league_rank(), j = first + i, pixels = std::int64_t(n) * n;
    const std::int64_t pixels2 = std::int64_t(n2) * n2;
    double before = 0, after = 0;
    team_sums<Space>(
        team, pixels,
        [&](std::int64_t k, double& sum) { sum += double(full[i * pixels + k]) * full[i * pixels + k]; },
        before);
    team_sums<Space>(
        team, pixels2,
        [&](std::int64_t k, double& sum) {
          const T t = reduced[i * pixels2 + k].real();
          sum += double(t) * t;
          values[layout(at + i, static_cast<int>(k / n2), static_cast<int>(k % n2))] =
              TargetStorage<T, Storage>{sizeof(Storage) < sizeof(T)}(t);
        },
        after);
    Kokkos::single(Kokkos::PerTeam(team),
                   [&]() { constants[j] = before / double(pixels) - after / double(pixels2); });
  }
};

/// Resamples targets to the grid on which a least-squares loss needs no more pixels than |Psi|^2 has lags:
/// |Psi|^2 is the transform of an autocorrelation whose lags are below m, so other lags of the target add a
/// constant to the loss and nothing to any gradient.
template <class Space, class T>
class ReducedGrid {
  using Complex = Kokkos::complex<T>;
  using Memory = typename Space::memory_space;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  using Transform = FFT<Space, 2, Complex, Complex>;

public:
  ReducedGrid(const Space& space, int full, int reduced, int probe, std::int64_t group)
      : n_(full), n2_(reduced), m_(probe), group_(group),
        large_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::full", group_ * n_ * n_)),
        small_(device_vector<Complex>(space, "Bracewell::PtychographyLoss::reduced", group_ * n2_ * n2_)),
        targets_(device_vector<T>(space, "Bracewell::PtychographyLoss::resample", group_ * n_ * n_)),
        to_lags_(space, {n_, n_}, group_, {.direction = FFTDirection::Backward}),
        from_lags_(space, {n2_, n2_}, group_, {}) {}

  /// Targets [group, n, n], to be filled before store.
  T* full_targets() const { return targets_.data(); }

  template <class Storage>
  void store(const Space& space, std::int64_t first, std::int64_t at, std::int64_t count,
             const PatternLayout& layout, Storage* values, double* constants) const {
    const std::int64_t pixels = std::int64_t(n_) * n_, pixels2 = std::int64_t(n2_) * n2_;
    launch_kernel("Bracewell::PtychographyLoss::resample", Range(space, 0, group_ * pixels),
                  ToComplex<T>{targets_.data(), large_.data()});
    const auto large = array_of<Memory>(large_.data(), group_, n_, n_);
    to_lags_.execute(space, large, large);
    launch_kernel("Bracewell::PtychographyLoss::crop_lags", Range(space, 0, group_ * pixels2),
                  CropLags<T>{large_.data(), small_.data(), n_, n2_, m_});
    const auto small = array_of<Memory>(small_.data(), group_, n2_, n2_);
    from_lags_.execute(space, small, small);
    using Store = StoreReduced<Space, T, Storage>;
    launch_teams("Bracewell::PtychographyLoss::store_reduced", space, count,
                 Store{targets_.data(), small_.data(), first, at, n_, n2_, layout, values, constants});
  }

private:
  int n_, n2_, m_;
  std::int64_t group_;
  Kokkos::View<Complex*, Space> large_, small_;
  Kokkos::View<T*, Space> targets_;
  Transform to_lags_, from_lags_;
};

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
  T counts; ///< C; 0: patterns are stored as they were counted
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
    team_sums<Space>(
        team, pixels,
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
      means[j] = !(sum > 0) ? T(0) : counts > 0 ? counts : static_cast<T>(sum / sum_weights);
      if (invalid > 0)
        Kokkos::atomic_min(invalid_pattern, j);
    });
  }
};

} // namespace Bracewell::Impl
