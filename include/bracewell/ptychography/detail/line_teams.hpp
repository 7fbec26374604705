// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/quick_division.hpp>
#include <bracewell/impl/radix_passes.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>
#include <bracewell/ptychography/options.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace Bracewell::Impl {

/// How a team shares out the lines (rows or columns) of a wave whose transforms it does side by side.
struct LineTeams {
  QuickDivision lines;  ///< of a team
  QuickDivision blocks; ///< teams of a wave
  int threads;

  /// Of the memory between passes: hosts have little on level 0.
  template <class Space>
  KOKKOS_INLINE_FUNCTION static constexpr int scratch_level() {
    return is_host<Space> ? 1 : 0;
  }

  /// @param sums  of numbers of T that a team keeps for every element of its lines
  template <class Space, class T>
  static LineTeams choose(const RadixPasses<T>& passes, int lines_of_wave, int sums) {
    using Tuning = PtychographyTuning;
    const int butterflies = passes.most_butterflies();
    const std::size_t line = bytes<Space>(passes, 1, sums);
    int lines = std::min(Tuning::line_threads / butterflies, static_cast<int>(Tuning::line_bytes / line));
    if (lines >= 4)
      lines -= lines % 4;
    lines = std::clamp(lines, 1, lines_of_wave);
    return {QuickDivision(lines), QuickDivision((lines_of_wave + lines - 1) / lines),
            is_host<Space> ? 1 : (lines * butterflies + 31) / 32 * 32};
  }

  /// Of numbers that are kept for the elements of lines: lanes in neighbouring lines write to different banks.
  KOKKOS_INLINE_FUNCTION static constexpr int pitch(int n) { return n + 16; }

  template <class Space, class T>
  KOKKOS_INLINE_FUNCTION static constexpr std::size_t bytes(const RadixPasses<T>& passes, int lines,
                                                            int sums) {
    return std::size_t(lines) * (passes.length * sizeof(PlainComplex<T>) * (is_host<Space> ? 2 : 1) +
                                 sums * pitch(passes.n) * sizeof(T));
  }
};

/// See Bracewell::transforms_lines.
inline bool lines_fit_teams(int n) {
  const std::vector<int> radices = choose_radices(n, RadixPasses<float>::most);
  return radices.size() > 1 && n <= 1024 &&
         n / *std::ranges::min_element(radices) <= PtychographyTuning::line_threads;
}

/// Bytes of a group where options.workspace_bytes does not say.
template <class Space>
std::size_t line_group_bytes(const Space& space) {
  using Tuning = PtychographyTuning;
  return std::max(Tuning::group_bytes, device_bytes(space) / Tuning::line_group_part);
}

/// Patterns of a group in kernels over lines, of `count` that take so many bytes each.
template <class Space>
std::int64_t line_group(const Space& space, const PtychographyOptions& options, std::int64_t count,
                        std::int64_t bytes_of_pattern) {
  const auto allowed = static_cast<std::int64_t>(options.workspace_bytes.value_or(line_group_bytes(space)));
  return std::clamp<std::int64_t>(allowed / bytes_of_pattern, 1, std::max<std::int64_t>(count, 1));
}

} // namespace Bracewell::Impl
