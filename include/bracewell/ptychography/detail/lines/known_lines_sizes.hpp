// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/ptychography/detail/fused_sizes.hpp>
#include <bracewell/ptychography/detail/line_teams.hpp>
#include <bracewell/ptychography/detail/lines/known_gradients.hpp>
#include <bracewell/ptychography/detail/lines/known_lines.hpp>
#include <bracewell/ptychography/detail/sums/shifted_probes.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>
#include <bracewell/ptychography/options.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

namespace Bracewell::Impl {

/// Numbers that a team has in scratch memory, for `together` modes or exchanges.
template <class Kernel>
constexpr int numbers_of_team(int together) {
  return Kernel::numbers + (together - 1) * Kernel::of_mode;
}

/// Teams that a multiprocessor should hold of a kernel: as many as their registers, and an exchange of each, let it.
template <class T, class Kernel>
constexpr int teams_on_chip(int together = 1) {
  using Tuning = PtychographyTuning;
  const std::size_t bytes =
      numbers_of_team<Kernel>(together) * sizeof(Kokkos::complex<T>) + 2 * Tuning::system_bytes;
  constexpr int registers = sizeof(T) * std::max(16, +Kernel::per_lane); // that numbers take
  constexpr int threads = Kernel::on_chip * 16 * sizeof(float) / registers;
  return std::clamp<int>(threads / Kernel::threads, 1, std::max<int>(1, Tuning::chip_bytes / bytes));
}

/// Modes whose sums leave a multiprocessor the teams that launch_known_lines() promises, without which Kokkos refuses to
/// launch.
template <class T, class Kernel>
constexpr int most_of_bundle() {
  int most = 1;
  while (most < Kernel::most_together && teams_on_chip<T, Kernel>(most + 1) == teams_on_chip<T, Kernel>())
    ++most;
  return most;
}

/// Portions of `count` patterns, for so many teams, about, and bundles of modes.
template <class Kernel>
std::int64_t portions_of_patterns(int teams, int bundles, std::int64_t count) {
  return std::clamp<std::int64_t>(teams / (bundles * Kernel::Sizes::blocks), 1, count);
}

/// Launches a kernel whose teams have scratch memory for `together` modes or exchanges.
template <class T, class Space, class Kernel>
void launch_known_lines(const Space& space, const char* label, std::int64_t teams, const Kernel& kernel,
                        int together = 1) {
  using Policy = Kokkos::TeamPolicy<
      Space, Kokkos::LaunchBounds<Kernel::threads, resident_teams<Space>(teams_on_chip<T, Kernel>())>>;
  Policy policy(space, static_cast<int>(teams), +Kernel::threads);
  policy.set_scratch_size(
      0, Kokkos::PerTeam(numbers_of_team<Kernel>(together) * static_cast<int>(sizeof(Kokkos::complex<T>))));
  launch_kernel(label, policy, kernel);
}

/// Calls action(RowSizes, ColumnSizes) for patterns of n x n pixels, if n is one of the detectors and of
/// PtychographyTuning::line_sizes; returns whether it is.
template <class Detectors, class Space, class T, class Action>
bool visit_line_sizes(int n, const Action& action) {
  const auto visit = [&](auto index) {
    constexpr FusedSize size = PtychographyTuning::line_sizes[decltype(index)::value];
    if constexpr (lines_are_known<Detectors, Space, T>(size.n, size.n))
      if (n == size.n) {
        action(RowSizes<size.lanes, size.n / size.lanes>(), ColumnSizes<size.lanes, size.n / size.lanes>());
        return true;
      }
    return false;
  };
  return [&]<std::size_t... index>(std::index_sequence<index...>) {
    return (visit(std::integral_constant<std::size_t, index>()) || ...);
  }
  (std::make_index_sequence<std::size(PtychographyTuning::line_sizes)>());
}

/// Numbers of elements that a KnownLinesPlan has; and the modes of a bundle, whose conj(p) G are summed.
template <class Space, class T, class Detectors>
struct KnownLinesSizes {
  std::int64_t group, waves, probes, held, portions, sums, table;
  int of_bundle;

  /// Bundles of modes.
  static int bundles(int modes, int of_bundle) { return (modes + of_bundle - 1) / of_bundle; }

  static KnownLinesSizes make(const Space& space, const ScanStore<Space>& positions,
                              const PtychographyShape& shape, const PtychographyOptions& options) {
    using Tuning = PtychographyTuning;
    const std::int64_t modes = shape.modes, n = shape.detector;
    const bool shifted = ShiftedProbes<Space, T>::needed(positions, shape, options);
    KnownLinesSizes result{};
    const std::int64_t group =
        line_group(space, options, positions.count(),
                   std::int64_t(sizeof(Kokkos::complex<T>)) * modes * n * n * (shifted ? 2 : 1));
    result.group = group;
    result.waves = group * modes * n * n;
    result.probes = shifted ? result.waves : 0;
    visit_line_sizes<Detectors, Space, T>(shape.detector, [&](auto rows, auto columns) {
      using Rows = decltype(rows);
      using Columns = decltype(columns);
      using Together = GradientColumns<Space, T, Columns, false, true>;
      const int most = shifted ? shape.modes : std::min(most_of_bundle<T, Together>(), shape.modes);
      result.of_bundle = bundles(shape.modes, bundles(shape.modes, most)); // all of about the same size
      const auto portions_of = [&](auto kernel, int of_pattern) {
        using Kernel = typename decltype(kernel)::type;
        return portions_of_patterns<Kernel>(
            Tuning::multiprocessors * teams_on_chip<T, Kernel>(result.of_bundle), of_pattern, group);
      };
      result.portions =
          shifted ? portions_of(std::type_identity<SumShiftedRows<Space, T, Rows>>(), shape.modes)
          : result.of_bundle > 1
              ? portions_of(std::type_identity<Together>(), bundles(shape.modes, result.of_bundle))
              : portions_of(std::type_identity<GradientColumns<Space, T, Columns, false>>(), shape.modes);
      result.held = shifted ? group * n : 0;
      result.sums = 2 * group *
                    std::max<std::int64_t>(modes * columns.blocks,
                                           (options.refine_positions ? modes : 1) * rows.blocks);
      result.table = rows.table;
    });
    return result;
  }
};

} // namespace Bracewell::Impl
