// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/division.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/line_fft.hpp>
#include <bracewell/impl/plain_complex.hpp>
#include <bracewell/impl/radix_passes.hpp>
#include <bracewell/impl/unroll.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>
#include <bracewell/ptychography/options.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>
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
    return std::size_t(lines) *
           (std::size_t(passes.length) * sizeof(PlainComplex<T>) * (is_host<Space> ? 2 : 1) +
            std::size_t(sums * pitch(passes.n)) * sizeof(T));
  }
};

/// The one thread of a team on a host.
struct OneThread {
  KOKKOS_FORCEINLINE_FUNCTION static int rank() { return 0; }
  KOKKOS_FORCEINLINE_FUNCTION static void barrier() {}
};

/// The transforms of the lines of a team: a thread of a GPU has a butterfly of every pass, that of a host all of them.
template <class Space, class Member, class T, bool adjacent>
struct TeamLines
    : LineFFT<T, std::conditional_t<is_host<Space>, OneThread, PolicyTeam<Member>>, ManyLines<adjacent>,
              is_host<Space> ? LineExchange::Buffers : LineExchange::Registers, 1> {
  using Base = typename TeamLines::LineFFT;
  KOKKOS_FORCEINLINE_FUNCTION TeamLines(const Member& member, const LineTeams& teams, int own,
                                        const RadixPasses<T>& passes, PlainComplex<T>* scratch)
      : Base{team_of(member),
             {teams.lines, own, passes.length},
             scratch,
             is_host<Space> ? scratch + teams.lines.by() * passes.length : scratch} {}

private:
  KOKKOS_FORCEINLINE_FUNCTION static auto team_of([[maybe_unused]] const Member& member) {
    if constexpr (is_host<Space>)
      return OneThread{};
    else
      return PolicyTeam<Member>{member};
  }
};

/// The spectrum of a line times what is transferred, or the conjugate of it.
template <class T>
struct TransferLine {
  const Kokkos::complex<T>* phases; ///< TransferPhases
  bool conjugate;

  template <int radix>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(const LineButterfly& at, int apart,
                                              PlainComplex<T> (&x)[radix]) const {
    BRACEWELL_UNROLL_FOR (int q = 0; q < radix; ++q) {
      const PlainComplex<T> phase = plain(phases[at.j + apart * q]);
      x[q] = times<false>(x[q], PlainComplex<T>{phase.re, conjugate ? -phase.im : phase.im});
    }
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
