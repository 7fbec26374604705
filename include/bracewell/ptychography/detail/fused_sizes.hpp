// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/line_steps.hpp>
#include <bracewell/impl/register_fft.hpp>
#include <bracewell/ptychography/detail/targets.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>

namespace Bracewell::Impl {

/// Detectors (pixels per side) for which the fused kernel is compiled, which takes a compiler a second or two each; and which
/// kernels over lines are compiled. FusedDetectors<> compiles no fused kernel.
template <int... sizes>
struct FusedDetectors {
  /// Whether PatternPath::Lines is compiled for an execution space: for GPUs; on hosts General is about as fast. Lists
  /// that derive from this one can say otherwise.
  template <class ExecutionSpace>
  static constexpr bool lines = !is_host<ExecutionSpace>;
  /// Whether a size is in the list.
  static constexpr bool contains(int size) { return ((size == sizes) || ...); }
  /// Whether PatternPath::KnownLines is compiled for this size, for GPUs. Lists that derive from this one can say otherwise, of
  /// sizes 64, 128, 192, 256 and 512 (in single precision).
  static constexpr bool knows_lines(int size) { return contains(size) && (size == 128 || size == 256); }
  /// Whether the fused kernel is compiled for probes of more than half the detector. Lists that derive from this one can say
  /// otherwise.
  static constexpr bool large_probes = true;

  static_assert(
      (std::ranges::count(PtychographyTuning::fused_sizes, sizes, &FusedSize::n) + ... + 0) ==
          sizeof...(sizes),
      "Bracewell::Impl::FusedDetectors: expected 40, 48, 64, 128, 160, 192, 256 or 512, found another size.");
};

/// All detectors that the fused kernel can be compiled for.
using EveryFusedDetector = FusedDetectors<40, 48, 64, 128, 160, 192, 256, 512>;

/// Detectors for which the fused kernel takes less time than General on hosts, with probes of at most half the detector.
struct HostFusedDetectors : FusedDetectors<192, 256> {
  static constexpr bool large_probes = false;
};

/// What users get.
template <class ExecutionSpace>
using DefaultFusedDetectors =
    std::conditional_t<is_host<ExecutionSpace>, HostFusedDetectors, EveryFusedDetector>;

/// In place of a Storage: that Storage, with the machines of a list compiled instead of the default ones. Tests, benchmarks and
/// the Python package choose what they compile by it.
template <class Storage, class Detectors>
struct CompiledWith {};

/// What the parameter Storage of PtychographyLoss says.
template <class ExecutionSpace, class Storage>
struct Compiled {
  using Stored = Storage;
  using Detectors = DefaultFusedDetectors<ExecutionSpace>;
};
template <class ExecutionSpace, class Storage, class List>
struct Compiled<ExecutionSpace, CompiledWith<Storage, List>> {
  using Stored = Storage;
  using Detectors = List;
};

/// Whether PatternPath::KnownLines is compiled for windows of m pixels on detectors of n.
template <class Detectors, class Space, class T>
constexpr bool lines_are_known(int n, int m) {
  return !is_host<Space> && m == n && Detectors::knows_lines(n) && (n <= 256 || sizeof(T) <= 4) &&
         std::ranges::count(PtychographyTuning::line_sizes, n, &FusedSize::n) > 0;
}

/// Sizes of the fused kernel. A transform of n = lanes x per_lane is done by `lanes` neighbouring lanes that
/// hold `per_lane` (or more) numbers each in registers, with one exchange through scratch memory:
///   X(k + per_lane g) = sum_t exp(-2 pi i (g + k / per_lane) t / lanes)
///                       sum_j exp(-2 pi i k j / per_lane) x(t + lanes j).
/// Lane t does the inner sum; lane u the outer one for k = u, u + lanes, ...; of the inputs, those with
/// j < leading are not zero. With lanes = 4, per_lane = 6 and leading = 3 (n = 24, a window of m <= 12):
///
///   inputs                             exchange                     outputs
///        lane t = 0   1   2   3               lane t = 0  1  2  3         lane u
///   j = 0         0   1   2   3  window       k = 0    .  .  .  .   ->    0:  0  6 12 18   first outer sum,
///       1         4   5   6   7               k = 1    .  .  .  .   ->    1:  1  7 13 19   k = u
///       2         8   9  10  11               k = 2    .  .  .  .   ->    2:  2  8 14 20
///      - - - - - - - - - - - -                k = 3    .  .  .  .   ->    3:  3  9 15 21
///       3        12  13  14  15  zeros,       k = 4    .  .  .  .   ->    0:  4 10 16 22   second outer sum,
///       4        16  17  18  19  not read     k = 5    .  .  .  .   ->    1:  5 11 17 23   k = u + lanes
///       5        20  21  22  23              written by columns,
///                                            read by rows           g =       0  1  2  3
///
/// The adjoint goes the other way, and there the inner sums are at shifted frequencies:
///   x(t + lanes j) = sum_k exp(2 pi i (j + t / lanes) k / per_lane)
///                    sum_g exp(2 pi i g t / lanes) X(k + per_lane g).
/// In the exchange (StepPasses) the numbers of a k lie `stride` apart, and those of the next k `pitch` further: it is odd,
/// so that it runs over different banks.
template <int lanes_, int per_lane_, int leading_, int stride_ = 1, int pitch_ = 33>
struct FusedSizes : StepRadices<per_lane_, lanes_> {
  using Tuning = PtychographyTuning;
  using StepRadices<per_lane_, lanes_>::n;
  static constexpr int lanes = lanes_, per_lane = per_lane_, leading = leading_;
  static constexpr int outer_sums = (per_lane + lanes - 1) / lanes; ///< of a lane
  static constexpr int warp = 32, groups = warp / lanes; ///< groups of lanes that exchange side by side
  static constexpr int stride = stride_, pitch = pitch_, exchange = per_lane * pitch;
  static_assert(lanes % PatternLayout::group == 0 && warp % lanes == 0);

  KOKKOS_FORCEINLINE_FUNCTION static constexpr int place(int i) {
    return i / lanes * pitch + i % lanes * stride;
  }
  template <int step>
  KOKKOS_FORCEINLINE_FUNCTION static int first_place(int b) {
    return b * (step == 0 ? stride : pitch);
  }

  /// Of the thread of a rank: its line and lane, and where lane 0 of the line begins in the exchange of the team. The lanes
  /// of a line are neighbours, so that only lanes of a warp exchange numbers.
  KOKKOS_FORCEINLINE_FUNCTION static int line(int rank) { return rank / lanes; }
  KOKKOS_FORCEINLINE_FUNCTION static int lane(int rank) { return rank % lanes; }
  KOKKOS_FORCEINLINE_FUNCTION static int begin(int rank) {
    return rank / warp * exchange + (rank % warp - rank % lanes);
  }

  /// Lanes of a team of a Kokkos policy on GPUs: as many as their exchange fits into scratch memory.
  template <class T>
  static constexpr int team_size() {
    const int warps = Tuning::exchange_bytes / (exchange * 2 * int(sizeof(T)));
    return warp * (warps > Tuning::most_warps ? Tuning::most_warps : warps < 1 ? 1 : warps);
  }

  /// Factors of the outer transforms for every k, then of the inner ones of the adjoint for every lane. A
  /// lane with one outer sum keeps its own in registers.
  static constexpr int outer_factors = RegisterFFT<lanes, false>::factors,
                       inner_factors = RegisterFFT<per_lane, true>::factors;
  static constexpr int table = per_lane * outer_factors + lanes * inner_factors;

  /// Bytes on the chip of a team that keeps a window of m rows there.
  template <class T>
  static constexpr std::size_t chip_bytes(int m, int size) {
    return (std::size_t(m) * (n + 1) + std::size_t(size / warp) * (exchange + 2) +
            (outer_sums > 1 ? table : 0)) *
           2 * sizeof(T);
  }
  /// Teams on a multiprocessor: two where two of the largest windows fit, none where not even one does.
  template <class T>
  static constexpr int chip_teams() {
    constexpr int m = leading < per_lane ? lanes * leading : n, all = Tuning::fused_threads;
    return 2 * (chip_bytes<T>(m, all / 2) + Tuning::system_bytes) <= Tuning::chip_bytes ? 2
           : chip_bytes<T>(m, all) + Tuning::system_bytes <= Tuning::chip_bytes         ? 1
                                                                                        : 0;
  }
  template <class T>
  static constexpr int chip_team_size() {
    return Tuning::fused_threads / (chip_teams<T>() == 2 ? 2 : 1);
  }
};

/// Where the teams of the fused kernel keep their windows.
enum class WindowMemory {
  Chip,     ///< all the memory of a multiprocessor, which CUDA grants and Kokkos does not
  Workspace ///< a View; it stays in the cache
};

/// The one place that chooses. `available`: bytes that a team may have on the chip (chip_memory).
template <class T, class Sizes>
constexpr WindowMemory choose_window_memory(Sizes, int m, std::size_t available) {
  const bool fits = Sizes::template chip_teams<T>() > 0 &&
                    Sizes::template chip_bytes<T>(m, Sizes::template chip_team_size<T>()) <= available;
  return fits ? WindowMemory::Chip : WindowMemory::Workspace;
}

/// Calls action(FusedSizes) for n = lanes x per_lane and the least count of leading numbers that holds m
/// pixels; without large_probes only where they are half of n at most, and with that count alone: hosts are as fast with it.
template <bool large_probes, int lanes, int per_lane, class Action>
void visit_leading(int m, const Action& action) {
  constexpr int few = (5 * per_lane + 15) / 16, half = (per_lane + 1) / 2;
  if constexpr (lanes * per_lane > 64) {
    if constexpr (large_probes) {
      if (m <= lanes * few)
        return action(FusedSizes<lanes, per_lane, few>());
    }
    if (m <= lanes * half)
      return action(FusedSizes<lanes, per_lane, half>());
  }
  if constexpr (large_probes || lanes * per_lane <= 64)
    action(FusedSizes<lanes, per_lane, per_lane>());
}

/// Calls action(FusedSizes) for patterns of n x n pixels and a window of m x m, if n is one of the detectors.
template <class Detectors, class Action>
void visit_fused_sizes(int n, int m, const Action& action) {
  const auto visit = [&](auto index) {
    constexpr FusedSize size = PtychographyTuning::fused_sizes[decltype(index)::value];
    if constexpr (Detectors::contains(size.n))
      if (n == size.n)
        visit_leading<Detectors::large_probes, size.lanes, size.n / size.lanes>(m, action);
  };
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (visit(std::integral_constant<std::size_t, index>()), ...);
  }
  (std::make_index_sequence<std::size(PtychographyTuning::fused_sizes)>());
}

/// Whether the fused kernel keeps its window in the memory of a multiprocessor; otherwise lines are faster.
template <class Detectors, class Space, class T>
bool window_on_chip([[maybe_unused]] int n, [[maybe_unused]] int m) {
  bool result = false;
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<Space, Kokkos::Cuda>)
    visit_fused_sizes<Detectors>(n, m, [&](auto sizes) {
      constexpr std::size_t available = PtychographyTuning::chip_bytes - PtychographyTuning::system_bytes;
      result = choose_window_memory<T>(sizes, m, available) == WindowMemory::Chip;
    });
#endif
  return result;
}

} // namespace Bracewell::Impl
