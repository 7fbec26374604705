// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <span>
#include <vector>

namespace Bracewell {

/// The constants of Adam, named as in its paper.
struct AdamOptions {
  double beta1 = 0.9;    ///< decay of the average of gradients
  double beta2 = 0.999;  ///< decay of the average of their squares
  double epsilon = 1e-8; ///< added to the square root, outside of it
};

/// Parameters of any rank that Adam changes, with their gradient and learning rate. Complex numbers count as
/// pairs of reals, their gradient being d/dRe + i d/dIm.
template <class T, class MemorySpace>
struct AdamParameters {
  T* values;            ///< the real numbers that a step changes
  const T* gradients;   ///< one for each value
  std::int64_t size;    ///< real numbers
  double learning_rate; ///< length of the first step

  /// @throws Error on gradients of another shape
  template <class Values, class Gradients>
  AdamParameters(const Values& values_view, const Gradients& gradients_view, double rate)
      : learning_rate(rate) {
    const Array<typename Values::non_const_value_type, MemorySpace> own(values_view);
    const Array<const typename Values::non_const_value_type, MemorySpace> other(gradients_view);
    const bool same =
        own.rank == other.rank && std::equal(own.extents, own.extents + own.rank, other.extents);
    Impl::Arguments{"AdamParameters"}.require(
        same, "gradients", [&] { return own.shape() + " as their parameters"; },
        [&] { return other.shape(); });
    static_assert(std::is_same_v<Impl::real_of<Values>, T>,
                  "Bracewell::Adam: parameters have the precision of the optimiser, real or complex.");
    values = reinterpret_cast<T*>(own.data);
    gradients = reinterpret_cast<const T*>(other.data);
    constexpr bool is_real = std::is_same_v<typename Values::non_const_value_type, T>;
    size = own.size() * (is_real ? 1 : 2);
  }
};

namespace Impl {
struct AdamCount;
} // namespace Impl

/// Adam (Kingma and Ba, arXiv:1412.6980, algorithm 1) with the update order of torch.optim.Adam:
///   mu <- beta1 mu + (1 - beta1) g,   nu <- beta2 nu + (1 - beta2) g^2,
///   theta <- theta - rate / (1 - beta1^t) mu / (sqrt(nu) / sqrt(1 - beta2^t) + epsilon).
/// One object holds the averages of several arrays and one step count, all in the memory of the execution
/// space. A step is two launches however many arrays there are, and needs nothing from the host.
/// @code
/// Adam<Space, float> adam(space, {object.size(), 2 * probe.size()});
/// adam.step(space, {{object, object_gradient, 0.01}, {probe, probe_gradient, 0.001}});
/// @endcode
template <class ExecutionSpace, class T>
class Adam {
  using MemorySpace = typename ExecutionSpace::memory_space;
  template <class Value>
  using Values = Kokkos::View<Value*, Kokkos::LayoutRight, MemorySpace>;

public:
  static constexpr int max_arrays = 8; ///< of one optimiser

  /// @param sizes  real numbers of each array, two per complex one
  /// @throws Error on more than max_arrays sizes, and on options out of range
  Adam(const ExecutionSpace& space, std::vector<std::size_t> sizes, const AdamOptions& options = {});

  /// Back to the state before the first step.
  void reset(const ExecutionSpace& space);

  /// One step of all arrays, which come in the order of the sizes that the constructor was given.
  /// @throws Error on arrays of other sizes, learning rates that are negative or not finite, and on values
  /// that are not in memory of their own
  void step(const ExecutionSpace& space, std::span<const AdamParameters<T, MemorySpace>> parameters);
  /// The same.
  void step(const ExecutionSpace& space, std::initializer_list<AdamParameters<T, MemorySpace>> parameters) {
    step(space, std::span(parameters.begin(), parameters.size()));
  }

  /// What further steps depend on besides the arrays, on the host: to go on another time.
  struct State {
    std::vector<T> means = {};   ///< averages of gradients, of all arrays in one sequence
    std::vector<T> squares = {}; ///< averages of their squares
    std::int64_t steps = 0;      ///< how many there were
  };
  /// The present state. Waits for the space.
  State state(const ExecutionSpace& space) const;
  /// Goes on from a state of an optimiser of the same sizes: the next step is the one that followed it. Waits
  /// for the space.
  /// @throws Error on a state of other sizes and a negative count of steps
  void restore(const ExecutionSpace& space, const State& state);

  /// Bytes that the averages and the step count take.
  std::size_t memory_bytes() const { return bytes_of(total_); }

  /// What memory_bytes() of an optimiser of these arguments would be.
  static std::size_t bytes_needed(const ExecutionSpace&, const std::vector<std::size_t>& sizes,
                                  const AdamOptions& = {}) {
    return bytes_of(std::accumulate(sizes.begin(), sizes.end(), std::size_t(0)));
  }

private:
  static std::size_t bytes_of(std::size_t values);

  static bool overlap(const AdamParameters<T, MemorySpace>& group, const T* other, std::int64_t size) {
    return group.values < other + size && other < group.values + group.size;
  }

  std::vector<std::size_t> sizes_;
  AdamOptions options_;
  std::size_t total_ = 0;
  Values<T> means_, squares_;
  Values<Impl::AdamCount> count_;
};

namespace Impl {

/// How many steps there were, and what the averages are divided by at this one.
struct AdamCount {
  std::int64_t steps;
  double mean_correction, root_correction; ///< 1 - beta1^t, sqrt(1 - beta2^t)
};

struct AdamAdvance {
  AdamCount* count;
  double beta1, beta2;

  KOKKOS_FUNCTION void operator()(int) const {
    const auto steps = static_cast<double>(++count->steps);
    count->mean_correction = 1 - Kokkos::pow(beta1, steps);
    count->root_correction = Kokkos::sqrt(1 - Kokkos::pow(beta2, steps));
  }
};

/// One real number of any of the arrays, which are taken in one sequence.
template <class T, int Groups>
struct AdamUpdate {
  struct Group {
    T* values;
    const T* gradients;
    std::int64_t end; ///< in the sequence
    double learning_rate;
  };
  Group groups[Groups];
  int used;
  const AdamCount* count;
  T* means;
  T* squares;
  T beta1, beta2, rest1, rest2, epsilon;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    int g = 0;
    while (g + 1 < used && i >= groups[g].end)
      ++g;
    const std::int64_t own = g == 0 ? i : i - groups[g - 1].end;
    const T gradient = groups[g].gradients[own];
    const T mean = means[i] = beta1 * means[i] + rest1 * gradient;
    const T square = squares[i] = beta2 * squares[i] + rest2 * gradient * gradient;
    const T rate = static_cast<T>(groups[g].learning_rate / count->mean_correction);
    groups[g].values[own] -=
        rate * mean / (Kokkos::sqrt(square) / static_cast<T>(count->root_correction) + epsilon);
  }
};

} // namespace Impl

template <class ExecutionSpace, class T>
Adam<ExecutionSpace, T>::Adam(const ExecutionSpace& space, std::vector<std::size_t> sizes,
                              const AdamOptions& options)
    : sizes_(std::move(sizes)), options_(options) {
  constexpr Impl::Arguments arguments{"Adam"};
  arguments.require(
      !sizes_.empty() && sizes_.size() <= max_arrays, "sizes",
      [] { return "1 to " + std::to_string(+max_arrays) + " arrays"; },
      [&] { return std::to_string(sizes_.size()); });
  for (const std::size_t size : sizes_)
    total_ += size;
  const auto decays = [&](const char* argument, double beta) {
    arguments.require(beta >= 0 && beta < 1, argument, "a value in [0, 1)",
                      [&] { return Impl::number(beta); });
  };
  decays("options.beta1", options.beta1);
  decays("options.beta2", options.beta2);
  arguments.positive("options.epsilon", options.epsilon);
  means_ = Values<T>(Kokkos::view_alloc(space, "Bracewell::Adam::means"), total_);
  squares_ = Values<T>(Kokkos::view_alloc(space, "Bracewell::Adam::squares"), total_);
  count_ = Values<Impl::AdamCount>(Kokkos::view_alloc(space, "Bracewell::Adam::count"), 1);
}

template <class ExecutionSpace, class T>
void Adam<ExecutionSpace, T>::reset(const ExecutionSpace& space) {
  Kokkos::deep_copy(space, means_, T(0));
  Kokkos::deep_copy(space, squares_, T(0));
  Kokkos::deep_copy(space, count_, Impl::AdamCount{});
}

template <class ExecutionSpace, class T>
void Adam<ExecutionSpace, T>::step(const ExecutionSpace& space,
                                   std::span<const AdamParameters<T, MemorySpace>> parameters) {
  constexpr Impl::Arguments arguments{"Adam::step"};
  arguments.require(
      parameters.size() == sizes_.size(), "parameters",
      [&] { return std::to_string(sizes_.size()) + " arrays"; },
      [&] { return std::to_string(parameters.size()); });
  Impl::AdamUpdate<T, max_arrays> update;
  std::int64_t end = 0;
  for (std::size_t g = 0; g < sizes_.size(); ++g) {
    const auto& group = parameters[g];
    arguments.require(
        static_cast<std::size_t>(group.size) == sizes_[g], "parameters",
        [&] { return std::to_string(sizes_[g]) + " real numbers"; },
        [&] { return std::to_string(group.size); });
    arguments.not_negative("learning_rate", group.learning_rate);
    for (std::size_t other = 0; other < sizes_.size(); ++other)
      arguments.require(!overlap(group, parameters[other].gradients, parameters[other].size) &&
                            (other == g || !overlap(group, parameters[other].values, parameters[other].size)),
                        "parameters", "memory of their own", "memory shared with another array");
    update.groups[g] = {group.values, group.gradients, end += group.size, group.learning_rate};
  }
  const Kokkos::Profiling::ScopedRegion region("Bracewell::Adam::step");
  update.used = static_cast<int>(sizes_.size());
  update.count = count_.data();
  update.means = means_.data();
  update.squares = squares_.data();
  update.beta1 = static_cast<T>(options_.beta1);
  update.beta2 = static_cast<T>(options_.beta2);
  update.rest1 = static_cast<T>(1 - options_.beta1);
  update.rest2 = static_cast<T>(1 - options_.beta2);
  update.epsilon = static_cast<T>(options_.epsilon);
  Impl::launch_kernel("Bracewell::Adam::count", Kokkos::RangePolicy<ExecutionSpace>(space, 0, 1),
                      Impl::AdamAdvance{count_.data(), options_.beta1, options_.beta2});
  Impl::launch_kernel("Bracewell::Adam::step",
                      Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, end),
                      update);
}

template <class ExecutionSpace, class T>
typename Adam<ExecutionSpace, T>::State Adam<ExecutionSpace, T>::state(const ExecutionSpace& space) const {
  State state{std::vector<T>(total_), std::vector<T>(total_)};
  Impl::AdamCount count{};
  Impl::copy_to_host(space, means_.data(), total_, state.means.data());
  Impl::copy_to_host(space, squares_.data(), total_, state.squares.data());
  Impl::copy_to_host(space, count_.data(), 1, &count);
  space.fence("Bracewell::Adam::state");
  state.steps = count.steps;
  return state;
}

template <class ExecutionSpace, class T>
void Adam<ExecutionSpace, T>::restore(const ExecutionSpace& space, const State& state) {
  constexpr Impl::Arguments arguments{"Adam::restore"};
  for (const auto* const values : {&state.means, &state.squares})
    arguments.require(
        values->size() == total_, "state", [&] { return std::to_string(total_) + " averages"; },
        [&] { return std::to_string(values->size()); });
  arguments.at_least<std::int64_t>("state.steps", state.steps, 0);
  const Impl::AdamCount count{state.steps, 0, 0};
  Impl::copy_to_device(space, state.means.data(), total_, means_.data());
  Impl::copy_to_device(space, state.squares.data(), total_, squares_.data());
  Impl::copy_to_device(space, &count, 1, count_.data());
  space.fence("Bracewell::Adam::restore"); // the host's copies may go
}

template <class ExecutionSpace, class T>
std::size_t Adam<ExecutionSpace, T>::bytes_of(std::size_t values) {
  return 2 * values * sizeof(T) + sizeof(Impl::AdamCount);
}

} // namespace Bracewell
