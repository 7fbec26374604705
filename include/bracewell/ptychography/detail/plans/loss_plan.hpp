// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/patterns/target_store.hpp>
#include <bracewell/ptychography/detail/plans/fused_plan.hpp>
#include <bracewell/ptychography/detail/plans/general_plan.hpp>
#include <bracewell/ptychography/detail/plans/known_lines_plan.hpp>
#include <bracewell/ptychography/detail/plans/lines_plan.hpp>
#include <bracewell/ptychography/detail/plans/pattern_plan.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <type_traits>
#include <variant>

namespace Bracewell::Impl {

/// Sum of the losses of all patterns by one team, in fixed order.
template <class Space>
struct SumLosses {
  static constexpr int team_size = is_host<Space> ? 1 : PtychographyTuning::sum_threads;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  const double* losses;
  std::int64_t count;
  double* loss;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    double sum = 0;
    team_sums<Space>(
        team, count, [&](std::int64_t i, double& partial) { partial += losses[i]; }, sum);
    Kokkos::single(Kokkos::PerTeam(team), [&]() { *loss = sum; });
  }
};

/// What PtychographyLoss computes by, its arguments checked: the plan of a path, the measured patterns, and sums over groups.
template <class Space, class T, class Storage, class Detectors>
class LossPlan : PatternPlan<Space, T, Storage> {
  using Types = PatternPlan<Space, T, Storage>;
  using typename Types::Complex, typename Types::Memory, typename Types::Positions, typename Types::Call;
  using Inputs = PtychographyInputs<T, Memory>;
  using Outputs = PtychographyOutputs<T, Memory>;
  using Store = TargetStore<Space, T, Storage>;
  using Sums = GradientSums<Space, T>;

public:
  /// @param path      one that can do the problem
  /// @param measured  pixels per side of patterns; shape.detector: of the grid on which they are compared
  LossPlan(const Space& space, PatternPath path, const Positions& positions, const PtychographyShape& shape,
           int measured, const PtychographyOptions& options)
      : path_(path), pixels_(std::int64_t(shape.detector) * shape.detector),
        plan_(make_plan(space, path, positions, shape, options)),
        store_(space, positions.count(), std::visit([](const auto& own) { return own.group_size(); }, plan_),
               measured, shape.detector, shape.probe, options,
               path == PatternPath::Fused ? std::get<Fused>(plan_).layout() : PatternLayout{shape.detector}),
        sums_(space, positions.count(), shape),
        losses_(device_vector<double>(space, "Bracewell::PtychographyLoss::losses", positions.count())) {}

  PatternPath path() const { return path_; }
  Store& store() { return store_; }
  const Store& store() const { return store_; }

  std::size_t memory_bytes() const {
    return std::visit([](const auto& own) { return own.memory_bytes(); }, plan_) + store_.memory_bytes() +
           sums_.memory_bytes() + bytes_of(losses_);
  }

  static std::size_t bytes_needed(const Space& space, PatternPath path, const Positions& positions,
                                  const PtychographyShape& shape, const PtychographyOptions& options) {
    return Store::bytes_needed(positions.count(), shape.detector, options) +
           Sums::bytes_needed(positions.count(), shape) +
           sizeof(double) * static_cast<std::size_t>(positions.count()) + visit_path(path, [&](auto plan) {
             return decltype(plan)::type::bytes_needed(space, positions, shape, options);
           });
  }

  /// Of `used` patterns, those of a list where there is one.
  void evaluate(const Space& space, const Positions& positions, const PtychographyOptions& options,
                const Inputs& inputs, const Outputs& outputs, const int* patterns, std::int64_t used) const {
    if (patterns || used == 0) // patterns that are not used
      zero(space, outputs.position_gradient), zero(space, outputs.factor_gradient),
          zero(space, outputs.coefficient_gradient);
    if (used == 0) {
      zero(space, outputs.loss), zero(space, outputs.object_gradient), zero(space, outputs.probe_gradient);
      zero(space, outputs.background_gradient), zero(space, outputs.relaxation_gradient);
      zero(space, outputs.slice_shift_gradient);
      return;
    }
    if (outputs.object_gradient)
      sums_.begin_object(space, patterns, used);
    const std::int64_t mean_of = inputs.mean_of > 0 ? inputs.mean_of : used;
    double* const losses = outputs.pattern_losses ? outputs.pattern_losses.data : losses_.data();
    Call call{space, positions, options, inputs, outputs, sums_, T(1) / (T(mean_of) * T(pixels_))};
    std::visit([&](const auto& own) { evaluate_groups(own, call, patterns, used, losses); }, plan_);
    if (outputs.loss) {
      using AddLosses = SumLosses<Space>;
      launch_teams("Bracewell::PtychographyLoss::sum_losses", space, 1,
                   AddLosses{losses, used, outputs.loss.data});
    }
  }

  /// See PtychographyLoss::overlap.
  void overlap(const Space& space, const Positions& positions, int modes, const Complex* a, const Complex* b,
               Complex* sum, const int* patterns, std::int64_t used) const {
    const std::int64_t m = positions.device().probe;
    sums_.begin_object(space, patterns, used);
    sums_.add_object(space, positions.device(), positions.tiles(), {patterns, 0, used}, {a, 0, modes},
                     WaveGradients<T, T>{b, 0, m * m, m, nullptr}, sum);
  }

  /// See PtychographyLoss::transmission.
  void transmission(const Space& space, const Positions& positions, const Complex* object, Complex* sum,
                    const int* patterns, std::int64_t used) const {
    const Selection all{patterns, 0, used};
    sums_.add_probe(space, positions.device(), all, object, {nullptr, 0, 1},
                    ObjectWaves<T>{positions.device(), all, object}, sum);
  }

private:
  using Fused = FusedPlan<Space, T, Storage, Detectors>;
  using Lines = LinesPlan<Space, T, Storage>;
  using KnownLines = KnownLinesPlan<Space, T, Storage, Detectors>;
  using General = GeneralPlan<Space, T, Storage>;
  static constexpr bool has_lines = Detectors::template lines<Space>,
                        has_known_lines = has_lines && !is_host<Space>;
  using Plan = std::conditional_t<
      has_known_lines, std::variant<Fused, KnownLines, Lines, General>,
      std::conditional_t<has_lines, std::variant<Fused, Lines, General>, std::variant<Fused, General>>>;

  /// action(std::type_identity<the plan of a path>)
  template <class Action>
  static auto visit_path(PatternPath path, const Action& action) {
    if (path == PatternPath::Fused)
      return action(std::type_identity<Fused>());
    if constexpr (has_known_lines)
      if (path == PatternPath::KnownLines)
        return action(std::type_identity<KnownLines>());
    if constexpr (has_lines)
      if (path == PatternPath::Lines)
        return action(std::type_identity<Lines>());
    return action(std::type_identity<General>());
  }

  static Plan make_plan(const Space& space, PatternPath path, const Positions& positions,
                        const PtychographyShape& shape, const PtychographyOptions& options) {
    return visit_path(path, [&](auto plan) {
      return Plan(std::in_place_type<typename decltype(plan)::type>, space, positions, shape, options);
    });
  }

  /// A group of patterns at a time. Groups that are on the host come while the group before is worked on.
  template <class Own>
  void evaluate_groups(const Own& own, Call& call, const int* patterns, std::int64_t used,
                       double* losses) const {
    own.begin(call);
    const std::int64_t size = std::min(own.group_size(), store_.group_size());
    const GroupOrder order = store_.order(patterns, used, size);
    const auto group = [&](std::int64_t which) {
      const std::int64_t first = which * size;
      return Selection{patterns, first, std::clamp<std::int64_t>(used - first, 0, size)};
    };
    for (std::int64_t k = 0; k < order.groups; ++k) {
      call.selection = group(order.group(k));
      call.targets = store_.targets(call.space, call.selection, group(order.next(k)));
      call.losses = losses + call.selection.first;
      own.evaluate(call);
    }
  }

  template <class Value>
  static void zero(const Space& space, const Array<Value, Memory>& array) {
    if (array)
      fill(space, "Bracewell::PtychographyLoss::zero", array.data, array.size());
  }

  PatternPath path_;
  std::int64_t pixels_;
  Plan plan_;
  Store store_;
  Sums sums_;
  Kokkos::View<double*, Space> losses_;
};

} // namespace Bracewell::Impl
