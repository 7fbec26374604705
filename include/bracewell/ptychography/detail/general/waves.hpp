// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/division.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/turns.hpp>
#include <bracewell/ptychography/detail/scan_store.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace Bracewell::Impl {

/// kernel(i, mode, row, column, number) for the numbers of waves [patterns, modes, n, n]; a team has some rows of a wave.
/// On GPUs 64-bit divisions of the number by n, n and the modes take longer than what simple kernels read and write.
template <class Space, class Kernel>
struct ForWaves {
  static constexpr int team_size = is_host<Space> ? 1 : PtychographyTuning::pattern_threads;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  Kernel kernel;
  Divisor modes, blocks, columns;
  int rows, n; ///< rows of a team

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    std::uint32_t block = static_cast<std::uint32_t>(team.league_rank());
    const std::uint32_t wave = blocks.divide(block);
    std::uint32_t mode = wave;
    const std::int64_t i = modes.divide(mode), first = std::int64_t(wave) * n * n;
    const int begin = static_cast<int>(block) * rows, end = Kokkos::min(begin + rows, n);
    if constexpr (is_host<Space>) {
      for (int row = begin; row < end; ++row)
        for (int column = 0; column < n; ++column)
          kernel(i, static_cast<int>(mode), row, column, first + std::int64_t(row) * n + column);
    } else {
      for (int k = team.team_rank(); k < (end - begin) * n; k += team.team_size()) {
        std::uint32_t column = static_cast<std::uint32_t>(k);
        const int row = begin + static_cast<int>(columns.divide(column));
        kernel(i, static_cast<int>(mode), row, static_cast<int>(column), first + std::int64_t(begin) * n + k);
      }
    }
  }
};

/// @param n  pixels per side of a wave
template <class Space, class Kernel>
void for_waves(const Space& space, const Label& label, std::int64_t patterns, int modes, int n,
               const Kernel& kernel) {
  using For = ForWaves<Space, Kernel>;
  const int rows = std::clamp(PtychographyTuning::team_pixels / n, 1, n), blocks = (n + rows - 1) / rows;
  launch_teams(label, space, patterns * modes * blocks,
               For{kernel, Divisor(static_cast<std::uint32_t>(modes)),
                   Divisor(static_cast<std::uint32_t>(blocks)), Divisor(static_cast<std::uint32_t>(n)), rows,
                   n});
}

/// Fractions of a pixel by which the probe was moved in its window, for every pattern of a selection.
struct ProbeShifts {
  const double* fractions = nullptr; ///< [N, 2], or none
  Selection selection = {};
};

/// waves *= H / n^2 or conj(H) / n^2 with H = exp(-i pi |k|^2 / F + 2 pi i k.(f - s) / n), in the order of the DFT.
template <class T>
struct FresnelTransfer {
  Kokkos::complex<T>* waves;
  int n;
  double inverse_fresnel;
  ProbeShifts shifts; ///< f
  bool conjugate;
  Kokkos::complex<T>* kept = nullptr; ///< a copy, or none
  const double* moves = nullptr;      ///< s, or none

  KOKKOS_FUNCTION void operator()(std::int64_t i, int, int row, int column, std::int64_t index) const {
    const double k1 = 2 * row < n ? row : row - n, k2 = 2 * column < n ? column : column - n;
    double turns = -0.5 * (k1 * k1 + k2 * k2) * inverse_fresnel;
    if (moves)
      turns -= (k1 * moves[0] + k2 * moves[1]) / n;
    if (shifts.fractions) {
      const double* const f = shifts.fractions + 2 * shifts.selection(i);
      turns += (k1 * f[0] + k2 * f[1]) / n;
    }
    turns = conjugate ? -turns : turns;
    const auto phase = unit_phase(turns - Kokkos::floor(turns));
    waves[index] *= Kokkos::complex<T>(T(phase.real() / n / n), T(phase.imag() / n / n));
    if (kept)
      kept[index] = waves[index];
  }
};

/// DFTs of waves [patterns, modes, n, n] by the FFT library, in place, forward and backward. A plan of the library
/// transforms as many as it was made for; there are plans of `most` patterns, half of them, and so on, so that calls of few
/// transform hardly more.
template <class Space, class T>
class WaveTransforms {
  using Complex = Kokkos::complex<T>;
  using Memory = typename Space::memory_space;
  using Transform = FFT<Space, 2, Complex, Complex>;
  static constexpr FFTOptions forward{.external_workspace = true},
      backward{.direction = FFTDirection::Backward, .external_workspace = true};

public:
  WaveTransforms(const Space& space, int side, int modes, std::int64_t most) : n_(side), modes_(modes) {
    std::size_t bytes = 0;
    for (const std::int64_t patterns : sizes(most)) {
      const std::array<int, 2> shape{n_, n_};
      plans_.push_back({patterns, Transform(space, shape, patterns * modes_, forward),
                        Transform(space, shape, patterns * modes_, backward)});
      bytes = std::max(
          {bytes, plans_.back().forward.workspace_bytes(), plans_.back().backward.workspace_bytes()});
    }
    workspace_ = device_vector<char>(space, "Bracewell::FFT::workspace", static_cast<std::int64_t>(bytes));
  }

  std::size_t memory_bytes() const { return workspace_.size(); }

  static std::size_t bytes_needed(const Space& space, int side, int modes, std::int64_t most) {
    std::size_t bytes = 0;
    for (const std::int64_t patterns : sizes(most))
      for (const FFTDirection direction : {FFTDirection::Forward, FFTDirection::Backward})
        bytes = std::max(
            bytes, Transform::bytes_needed(space, {side, side}, patterns * modes, {.direction = direction}));
    return bytes;
  }

  /// Transforms the waves of `count` patterns.
  /// @param room  patterns up to the end of the waves, which are finite: some behind the last may be transformed, too
  void execute(const Space& space, FFTDirection direction, Complex* waves, std::int64_t count,
               std::int64_t room) const {
    while (count > 0) {
      const Plan& plan = *std::ranges::find_if(
          plans_, [&](const Plan& p) { return p.patterns <= std::min(count + count / 4, room); });
      const Array<Complex, Memory> some = array_of<Memory>(waves, plan.patterns * modes_, n_, n_);
      (direction == FFTDirection::Forward ? plan.forward : plan.backward)
          .execute(space, some, some, workspace_);
      waves += some.size(), count -= plan.patterns, room -= plan.patterns;
    }
  }

private:
  struct Plan {
    std::int64_t patterns;
    Transform forward, backward;
  };

  /// Patterns of each plan, falling to 1.
  static std::vector<std::int64_t> sizes(std::int64_t most) {
    std::vector<std::int64_t> result{most};
    while (result.back() > 1)
      result.push_back((result.back() + 1) / 2);
    return result;
  }

  int n_, modes_;
  std::vector<Plan> plans_;
  Kokkos::View<char*, Memory> workspace_;
};

} // namespace Bracewell::Impl
