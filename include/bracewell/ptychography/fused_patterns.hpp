// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/ptychography/fused_kernel.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace Bracewell::Impl {

/// Calls action(FusedSizes) for patterns of n x n pixels; false where the fused kernel does not know the
/// size.
template <class Action>
bool visit_fused_sizes(int n, const Action& action) {
  switch (n) {
  case 40:
    return action(FusedSizes<20, 2>()), true;
  case 48:
    return action(FusedSizes<12, 4>()), true;
  case 64:
    return action(FusedSizes<16, 4>()), true;
  case 128:
    return action(FusedSizes<32, 4>()), true;
  case 160:
    return action(FusedSizes<40, 4>()), true;
  case 256:
    return action(FusedSizes<64, 4>()), true;
  case 320:
    return action(FusedSizes<40, 8>()), true;
  case 512:
    return action(FusedSizes<64, 8>()), true;
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

  /// Whether the kernel's tile fits into the scratch memory of a team and n is one of its sizes.
  static bool fits(const PtychographyShape& shape) {
    bool enough = false;
    visit_fused_sizes(shape.detector, [&](auto sizes) {
      using Kernel = FusedPatterns<Space, T, Storage, decltype(sizes)>;
      // scratch_size_max keeps room for the reductions of 1024 threads; this team has fewer.
      const int spare = is_host<Space> ? 0 : (1024 - Kernel::team_size) * int(sizeof(double)) - 1024;
      const int most = Kokkos::TeamPolicy<Space>::scratch_size_max(+Kernel::scratch_level) + spare;
      enough = Kernel::scratch_bytes(shape.probe) <= static_cast<std::size_t>(most);
    });
    return enough;
  }

  FusedPlan(const Space& space, std::int64_t patterns, const PtychographyShape& shape,
            const PtychographyOptions& options)
      : n(shape.detector), m(shape.probe), group(group_size(patterns, shape, options)),
        waves(make<StoredComplex<Storage>>(space, "waves", group * m * m)),
        factors(make<T>(space, "factors", 2 * group)) {
    visit_fused_sizes(n, [&](auto sizes) { make_roots(space, sizes); });
  }

  std::int64_t group_size() const { return group; }

  std::size_t memory_bytes() const {
    return waves.size() * sizeof(StoredComplex<Storage>) + factors.size() * sizeof(T) +
           roots.size() * sizeof(Pair<T>);
  }

  /// The index of pixel (row, column) of pattern j among the targets, as a type to be called on the device.
  template <class Action>
  void visit_layout(const Action& action) const {
    visit_fused_sizes(n, [&](auto sizes) { action(FusedLayout<decltype(sizes)>()); });
  }

  WaveGradients<T, Storage> compute(const Space& space, const Scan& scan, const Kokkos::complex<T>* object,
                                    const Kokkos::complex<T>* probe, const Selection& selection,
                                    const Targets<T, Storage>& targets, const PtychographyOptions& options,
                                    T norm, double* losses, bool gradients) const {
    visit_fused_sizes(n, [&](auto sizes) {
      using Kernel = FusedPatterns<Space, T, Storage, decltype(sizes)>;
      typename Kernel::Policy policy(space, static_cast<int>(selection.count), +Kernel::team_size);
      policy.set_scratch_size(+Kernel::scratch_level,
                              Kokkos::PerTeam(static_cast<int>(Kernel::scratch_bytes(m))));
      Kokkos::parallel_for("Bracewell::PtychographyLoss::fused_patterns", policy,
                           Kernel{scan, selection, object, probe, targets, options.loss,
                                  static_cast<T>(options.background), norm, roots.data(), losses,
                                  waves.data(), factors.data(), gradients});
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
  void make_roots(const Space& space, Sizes) {
    constexpr int lanes = Sizes::lanes, length = Sizes::length;
    roots = make<Pair<T>>(space, "roots", FusedPatterns<Space, T, Storage, Sizes>::root_count);
    const auto host = Kokkos::create_mirror_view(roots);
    const auto root = [](int k, int of) {
      const double angle = -2 * Kokkos::numbers::pi * (k % of) / of;
      return Pair<T>{static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
    };
    for (int q = 0; q < lanes; ++q) {
      for (int s = 0; s < length; ++s)
        host(s * lanes + q) = root(q * s, +Sizes::n);
      for (int j = 0; j < lanes; ++j)
        host(Sizes::n + j * lanes + q) = root(q * j, lanes);
    }
    Kokkos::deep_copy(space, roots, host);
    space.fence("Bracewell::PtychographyLoss: the table on the host ends here");
  }

  int n, m;
  std::int64_t group;
  View<StoredComplex<Storage>> waves;
  View<T> factors;
  View<Pair<T>> roots;
};

} // namespace Bracewell::Impl
