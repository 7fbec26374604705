// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/ptychography/detail/fused_kernel.hpp>

#include <algorithm>
#include <string>
#include <type_traits>

namespace Bracewell::Impl {

/// Calls action(FusedSizes) for n = lanes x numbers and the least count of leading numbers that holds m
/// pixels.
template <int lanes, int numbers, class Action>
void visit_leading(int m, const Action& action) {
  constexpr int few = (5 * numbers + 15) / 16, half = (numbers + 1) / 2;
  if constexpr (lanes * numbers > 64) {
    if (m <= lanes * few)
      return action(FusedSizes<lanes, numbers, few>());
    if (m <= lanes * half)
      return action(FusedSizes<lanes, numbers, half>());
  }
  action(FusedSizes<lanes, numbers, numbers>());
}

/// Calls action(FusedSizes) for patterns of n x n pixels; false where the fused kernel does not know the
/// size.
template <class Action>
bool visit_fused_sizes(int n, int m, const Action& action) {
  switch (n) {
  case 40:
    return visit_leading<4, 10>(m, action), true;
  case 48:
    return visit_leading<4, 12>(m, action), true;
  case 64:
    return visit_leading<8, 8>(m, action), true;
  case 128:
    return visit_leading<8, 16>(m, action), true;
  case 160:
    return visit_leading<8, 20>(m, action), true;
  case 192:
    return visit_leading<16, 12>(m, action), true;
  case 256:
    return visit_leading<16, 16>(m, action), true;
  case 512:
    return visit_leading<16, 32>(m, action), true;
  }
  return false;
}

/// Launches the fused kernel and holds what it leaves: the gradients with respect to the exit waves of a
/// group of patterns.
template <class Space, class T, class Storage>
class FusedPlan {
  using Memory = typename Space::memory_space;
  template <class Value>
  using View = Kokkos::View<Value*, Kokkos::LayoutRight, Memory>;

public:
  using Stored = Storage;

  static bool knows(const PtychographyShape& shape) {
    return visit_fused_sizes(shape.detector, shape.probe, [](auto) {});
  }

  FusedPlan(const Space& space, std::int64_t patterns, const PtychographyShape& shape,
            const PtychographyOptions& options)
      : n(shape.detector), m(shape.probe), group(group_size(patterns, shape, options)),
        waves(make<StoredComplex<Storage>>(space, "waves", group * m * m)),
        factors(make<T>(space, "factors", group)) {
    visit_fused_sizes(n, m, [&](auto sizes) {
      using Kernel = FusedPatterns<Space, T, Storage, decltype(sizes), true>;
      const int multiprocessors =
          is_host<Space> ? space.concurrency() : std::max(1, space.concurrency() / 2048);
      on_chip = Kernel::chip_teams > 0 && Kernel::chip_bytes(m) <= chip_memory(space);
      // Elsewhere two teams of a multiprocessor: their windows stay in its share of the cache.
      teams = multiprocessors * (is_host<Space> ? 1 : on_chip ? +Kernel::chip_teams : 2);
      teams = std::min(teams, group);
      if (!on_chip)
        workspace = make<Pair<T>>(space, "windows", teams * Kernel::window(m));
      make_table(space, sizes);
    });
  }

  std::int64_t group_size() const { return group; }

  std::size_t memory_bytes() const {
    return waves.size() * sizeof(StoredComplex<Storage>) + factors.size() * sizeof(T) +
           (workspace.size() + table.size()) * sizeof(Pair<T>);
  }

  PatternLayout layout() const {
    PatternLayout result{n};
    visit_fused_sizes(n, m, [&](auto sizes) { result.numbers = decltype(sizes)::numbers; });
    return result;
  }

  WaveGradients<T, Storage> compute(const Space& space, const Scan& scan, const Kokkos::complex<T>* object,
                                    const Kokkos::complex<T>* probe, const Selection& selection,
                                    const Targets<T, Storage>& targets, const PtychographyOptions& options,
                                    T norm, double* losses, bool gradients) const {
    const int used = static_cast<int>(std::min(teams, selection.count));
    const std::string label = "Bracewell::PtychographyLoss::fused_patterns";
    visit_fused_sizes(n, m, [&](auto sizes) {
      const auto run = [&](auto chip) {
        using Kernel = FusedPatterns<Space, T, Storage, decltype(sizes), decltype(chip)::value>;
        const Kernel kernel{scan,
                            selection,
                            object,
                            probe,
                            targets,
                            options.loss,
                            static_cast<T>(options.background),
                            norm,
                            table.data(),
                            losses,
                            workspace.data(),
                            waves.data(),
                            factors.data(),
                            gradients};
        if constexpr (decltype(chip)::value) {
          launch_on_chip(space, label, used, Kernel::chip_bytes(m), kernel);
        } else {
          typename Kernel::Policy policy(space, used, +Kernel::team_size);
          policy.set_scratch_size(+Kernel::scratch_level,
                                  Kokkos::PerTeam(static_cast<int>(Kernel::scratch_bytes())));
          Kokkos::parallel_for(label, policy, kernel);
        }
      };
      if constexpr (!is_host<Space> && decltype(sizes)::template chip_teams<T>() > 0)
        if (on_chip)
          return run(std::true_type());
      run(std::false_type());
    });
    return {waves.data(), std::int64_t(m) * m, 0, m, factors.data()};
  }

private:
  static std::int64_t group_size(std::int64_t patterns, const PtychographyShape& shape,
                                 const PtychographyOptions& options) {
    const std::int64_t bytes =
        patterns * shape.probe * shape.probe * std::int64_t(sizeof(StoredComplex<Storage>));
    const std::int64_t allowed =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(options.workspace_bytes));
    const std::int64_t groups = std::clamp<std::int64_t>((bytes + allowed - 1) / allowed, 1, patterns);
    return (patterns + groups - 1) / groups;
  }

  template <class Value>
  static View<Value> make(const Space& space, const std::string& name, std::int64_t size) {
    return View<Value>(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::PtychographyLoss::" + name), size);
  }

  template <class Sizes>
  void make_table(const Space& space, Sizes) {
    table = make<Pair<T>>(space, "table", +Sizes::table);
    const auto host = Kokkos::create_mirror_view(table);
    Pair<T>* next = host.data();
    for (int k = 0; k < Sizes::numbers; ++k, next += Sizes::outer_factors)
      RegisterFFT<Sizes::lanes, false>::write_factors(double(k) / Sizes::numbers, next);
    for (int t = 0; t < Sizes::lanes; ++t, next += Sizes::inner_factors)
      RegisterFFT<Sizes::numbers, true>::write_factors(double(t) / Sizes::lanes, next);
    Kokkos::deep_copy(space, table, host);
    space.fence("Bracewell::PtychographyLoss: the table on the host ends here");
  }

  int n, m;
  std::int64_t group;
  std::int64_t teams = 1;
  bool on_chip = false;
  View<StoredComplex<Storage>> waves;
  View<T> factors;
  View<Pair<T>> workspace, table;
};

} // namespace Bracewell::Impl
