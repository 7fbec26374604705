// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/fused/fused_kernel.hpp>
#include <bracewell/ptychography/detail/plans/pattern_plan.hpp>

#include <algorithm>
#include <type_traits>

namespace Bracewell::Impl {

/// Launches the fused kernel and holds what it leaves: the gradients with respect to the exit waves of a
/// group of patterns.
template <class Space, class T, class Storage, class Detectors>
class FusedPlan : PatternPlan<Space, T, Storage> {
  using Types = PatternPlan<Space, T, Storage>;
  using typename Types::Positions, typename Types::Call;
  template <class Value>
  using View = typename Types::template View<Value>;
  using Stored = complex_of<Storage>;

public:
  /// @param shape  with the detector on which patterns are compared, one that the kernel is built for
  FusedPlan(const Space& space, const Positions& positions, const PtychographyShape& shape,
            const PtychographyOptions& options)
      : n_(shape.detector), m_(shape.probe), group_(group_size(positions.count(), shape, options)),
        chip_(chip_memory(space)),
        waves_(device_vector<Stored>(space, "Bracewell::PtychographyLoss::waves", group_ * m_ * m_)),
        factors_(device_vector<T>(space, "Bracewell::PtychographyLoss::factors", group_)) {
    visit_kernel(n_, m_, chip_, [&](auto kernel, auto sizes, auto on_chip) {
      using Kernel = typename decltype(kernel)::type;
      teams_ = count_teams<Kernel, on_chip>(space, group_);
      if constexpr (!on_chip)
        workspace_ = device_vector<PlainComplex<T>>(space, "Bracewell::PtychographyLoss::windows",
                                                    teams_ * Kernel::window(m_));
      table_ = make_fused_table<T>(space, sizes);
    });
  }

  std::int64_t group_size() const { return group_; }

  std::size_t memory_bytes() const { return bytes_of(waves_, factors_, workspace_, table_); }

  static std::size_t bytes_needed(const Space& space, const Positions& positions,
                                  const PtychographyShape& shape, const PtychographyOptions& options) {
    const std::int64_t group = group_size(positions.count(), shape, options);
    const auto window = static_cast<std::size_t>(shape.probe) * static_cast<std::size_t>(shape.probe);
    std::size_t bytes = static_cast<std::size_t>(group) * (sizeof(Stored) * window + sizeof(T));
    visit_kernel(shape.detector, shape.probe, chip_memory(space), [&](auto kernel, auto sizes, auto on_chip) {
      using Kernel = typename decltype(kernel)::type;
      std::size_t numbers = +decltype(sizes)::table;
      if constexpr (!on_chip)
        numbers += count_teams<Kernel, on_chip>(space, group) * Kernel::window(shape.probe);
      bytes += sizeof(PlainComplex<T>) * numbers;
    });
    return bytes;
  }

  PatternLayout layout() const {
    PatternLayout result{n_};
    visit_fused_sizes<Detectors>(n_, m_, [&](auto sizes) { result.per_lane = decltype(sizes)::per_lane; });
    return result;
  }

  void begin(const Call&) const {}

  void evaluate(const Call& call) const {
    compute(call);
    const Scan& scan = call.positions.device();
    const WaveGradients<T, Storage> waves{waves_.data(), std::int64_t(m_) * m_, 0, m_, factors_.data()};
    const Probes<T> probes{call.inputs.probe.data, 0, 1};
    if (call.outputs.object_gradient)
      call.sums.add_object(call.space, scan, call.positions.tiles(), call.selection, probes, waves,
                           call.outputs.object_gradient.data);
    if (call.outputs.probe_gradient)
      call.sums.add_probe(call.space, scan, call.selection, call.inputs.object.data, probes, waves,
                          call.outputs.probe_gradient.data);
  }

private:
  /// Losses and, if they are asked for, the gradients of exit waves.
  void compute(const Call& call) const {
    const int used = static_cast<int>(std::min(teams_, call.selection.count));
    const char* const label = "Bracewell::PtychographyLoss::fused_patterns";
    visit_kernel(n_, m_, chip_, [&](auto type, auto, auto on_chip) {
      using Kernel = typename decltype(type)::type;
      const Kernel kernel{call.positions.device(),
                          call.selection,
                          call.inputs.object.data,
                          call.inputs.probe.data,
                          call.targets,
                          call.options.loss,
                          static_cast<T>(call.options.background),
                          call.norm,
                          table_.data(),
                          call.losses,
                          workspace_.data(),
                          waves_.data(),
                          factors_.data(),
                          call.wave_gradients()};
      if constexpr (on_chip) {
        launch_on_chip(call.space, label, used, Kernel::chip_bytes(m_), kernel);
      } else {
        typename Kernel::Policy policy(call.space, used, +Kernel::team_size);
        policy.set_scratch_size(+Kernel::scratch_level,
                                Kokkos::PerTeam(static_cast<int>(Kernel::scratch_bytes())));
        launch_kernel(label, policy, kernel);
      }
    });
  }

  /// Calls action(type of the kernel, its FusedSizes, whether its windows lie on the chip).
  template <class Action>
  static void visit_kernel(int n, int m, [[maybe_unused]] std::size_t chip, const Action& action) {
    visit_fused_sizes<Detectors>(n, m, [&](auto sizes) {
      using Sizes = decltype(sizes);
      if constexpr (!is_host<Space> && Sizes::template chip_teams<T>() > 0)
        if (choose_window_memory<T>(sizes, m, chip) == WindowMemory::Chip)
          return action(std::type_identity<FusedKernel<Space, T, Storage, Sizes, true>>(), sizes,
                        std::true_type());
      action(std::type_identity<FusedKernel<Space, T, Storage, Sizes, false>>(), sizes, std::false_type());
    });
  }

  template <class Kernel, bool on_chip>
  static std::int64_t count_teams(const Space& space, std::int64_t group) {
    const int multiprocessors = is_host<Space>
                                    ? space.concurrency()
                                    : std::max(1, space.concurrency() / PtychographyTuning::chip_threads);
    int on_each = 1;
    if constexpr (!is_host<Space>)
      on_each = on_chip ? +Kernel::chip_teams : PtychographyTuning::workspace_teams;
    return std::min<std::int64_t>(multiprocessors * on_each, group);
  }

  static std::int64_t group_size(std::int64_t patterns, const PtychographyShape& shape,
                                 const PtychographyOptions& options) {
    if (patterns == 0)
      return 0;
    const std::int64_t bytes = patterns * shape.probe * shape.probe * std::int64_t(sizeof(Stored));
    const std::int64_t allowed = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(options.workspace_bytes.value_or(PtychographyTuning::group_bytes)));
    const std::int64_t groups = std::clamp<std::int64_t>((bytes + allowed - 1) / allowed, 1, patterns);
    return (patterns + groups - 1) / groups;
  }

  int n_, m_;
  std::int64_t group_;
  std::int64_t teams_ = 1;
  std::size_t chip_; ///< bytes that a team may have on the chip
  View<Stored> waves_;
  View<T> factors_;
  View<PlainComplex<T>> workspace_, table_;
};

} // namespace Bracewell::Impl
