// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/optimize/detail/least_squares_steps.hpp>
#include <bracewell/optimize/least_squares_options.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace Bracewell::Impl {

/// Problems side by side, as many values each, in parts that teams sum.
struct ProblemParts {
  static constexpr std::int64_t part = 8192; ///< values, at most
  int problems = 0, parts = 0;
  std::int64_t size = 0; ///< values of a problem

  static ProblemParts make(std::int64_t problems, std::int64_t size) {
    return {static_cast<int>(problems), static_cast<int>(std::max<std::int64_t>(1, (size + part - 1) / part)),
            size};
  }
  int all() const { return problems * parts; }
};

/// body(problem, index in the array) for all values, which returns what is summed; one sum per part, which does not
/// depend on the number of threads.
template <class ExecutionSpace, class Body, int Count>
struct SumParts {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  Body body;
  ProblemParts layout;
  Sums<Count>* partial; ///< [problems, parts]

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int problem = member.league_rank() / layout.parts, part = member.league_rank() % layout.parts;
    const std::int64_t begin = part * ProblemParts::part, first = problem * layout.size + begin;
    const int count = static_cast<int>(Kokkos::min(std::int64_t(ProblemParts::part), layout.size - begin));
    Sums<Count> sums;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, count),
        [&](int i, Sums<Count>& own) { own += body(problem, first + i); }, sums);
    Kokkos::single(Kokkos::PerTeam(member),
                   [&] { partial[std::int64_t(problem) * layout.parts + part] = sums; });
  }
};

/// The sums of a problem, handed to body(problem, sums) by one lane of its team.
template <class ExecutionSpace, int Count, class Body>
struct FinishSums {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  Body body;
  ProblemParts layout;
  const Sums<Count>* partial;

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int problem = member.league_rank();
    const Sums<Count>* const own_parts = partial + std::int64_t(problem) * layout.parts;
    Sums<Count> sums;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, layout.parts),
        [&](int part, Sums<Count>& own) { own += own_parts[part]; }, sums);
    Kokkos::single(Kokkos::PerTeam(member), [&] { body(problem, sums); });
  }
};

/// Runs `body` on all values and hands the sums of every problem to `finish`.
template <int Count, class ExecutionSpace, class Body, class Finish>
void sum_problems(const ExecutionSpace& space, const char* label, const ProblemParts& layout, void* partial,
                  const Body& body, const Finish& finish) {
  auto* const sums = static_cast<Sums<Count>*>(partial);
  const int threads = is_host<ExecutionSpace> ? 1 : 256;
  using Teams = Kokkos::TeamPolicy<ExecutionSpace>;
  launch_kernel(label, Teams(space, layout.all(), threads),
                SumParts<ExecutionSpace, Body, Count>{body, layout, sums});
  launch_kernel(label, Teams(space, layout.problems, threads),
                FinishSums<ExecutionSpace, Count, Finish>{finish, layout, sums});
}

/// How much memory a solver takes: buffers like the data, and like the images.
struct LeastSquaresSizes {
  std::array<std::int64_t, 3> data, images;
  bool independent;
  int data_buffers, image_buffers;

  explicit LeastSquaresSizes(const LeastSquaresShape& shape)
      : data(shape.data), images(shape.images), independent(shape.independent) {
    const bool smooth = shape.method == LeastSquaresMethod::TotalVariation;
    data_buffers = smooth || shape.normal ? 1 : 2;
    image_buffers = (smooth ? 7 : 2) + shape.normal;
  }

  static std::int64_t elements(const std::array<std::int64_t, 3>& extents) {
    return extents[0] * extents[1] * extents[2];
  }
  /// Of a buffer: the next one is aligned as FFTs want it.
  static std::int64_t stride(const std::array<std::int64_t, 3>& extents) {
    return (elements(extents) + 31) / 32 * 32;
  }
  std::int64_t data_elements() const { return data_buffers * stride(data); }
  std::int64_t image_elements() const { return image_buffers * stride(images); }
  ProblemParts parts(const std::array<std::int64_t, 3>& extents) const {
    const std::int64_t problems = independent ? extents[0] : 1;
    return ProblemParts::make(problems, elements(extents) / problems);
  }
  int problems() const { return parts(data).problems; }
  std::int64_t partial_sums() const {
    return 2 * std::int64_t(std::max(parts(data).all(), parts(images).all()));
  }
};

/// The memory of a solver.
template <class ExecutionSpace, class T>
struct LeastSquaresMemory {
  Kokkos::View<T*, ExecutionSpace> data, images;
  Kokkos::View<ProblemState*, ExecutionSpace> states;
  Kokkos::View<double*, ExecutionSpace> partial;

  LeastSquaresMemory(const ExecutionSpace& space, const LeastSquaresSizes& sizes)
      : data(device_vector<T>(space, "Bracewell::LeastSquaresSolver::data", sizes.data_elements())),
        images(device_vector<T>(space, "Bracewell::LeastSquaresSolver::images", sizes.image_elements())),
        states(device_vector<ProblemState>(space, "Bracewell::LeastSquaresSolver::states", sizes.problems())),
        partial(device_vector<double>(space, "Bracewell::LeastSquaresSolver::sums", sizes.partial_sums())) {}

  static std::size_t bytes_needed(const LeastSquaresSizes& sizes) {
    return std::size_t(sizes.data_elements() + sizes.image_elements()) * sizeof(T) +
           std::size_t(sizes.problems()) * sizeof(ProblemState) +
           std::size_t(sizes.partial_sums()) * sizeof(double);
  }
  std::size_t bytes() const { return bytes_of(data, images, states, partial); }

  std::vector<ProblemState> states_on_host(const ExecutionSpace& space) const {
    std::vector<ProblemState> values(states.size());
    copy_to_host(space, states.data(), states.size(), values.data());
    space.fence("Bracewell::LeastSquaresSolver::states");
    return values;
  }
};

/// A call of a solver: what its methods work on, and the steps that they share.
template <class ExecutionSpace, class T>
struct LeastSquaresRun {
  using Space = ExecutionSpace;
  using Value = T;
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Buffer =
      Kokkos::View<T***, Kokkos::LayoutRight, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;

  const ExecutionSpace& space;
  const LeastSquaresMemory<ExecutionSpace, T>& memory;
  LeastSquaresSizes sizes; ///< of this call
  const LeastSquaresOptions& options;
  const T* data;
  Buffer image;
  Factors<T> weights, mask;
  ProblemParts of_data = sizes.parts(sizes.data), of_images = sizes.parts(sizes.images);

  static Buffer buffer(const std::array<std::int64_t, 3>& extents, T* values) {
    return Buffer(values, extents[0], extents[1], extents[2]);
  }
  Buffer data_buffer(int k) const {
    return buffer(sizes.data, memory.data.data() + k * sizes.stride(sizes.data));
  }
  Buffer image_buffer(int k) const {
    return buffer(sizes.images, memory.images.data() + k * sizes.stride(sizes.images));
  }
  /// (Kokkos::deep_copy of three axes is compiled with kernels for gaps.)
  static auto row(const Buffer& values) {
    return Kokkos::View<T*, MemorySpace, Kokkos::MemoryUnmanaged>(values.data(), values.size());
  }
  void copy(const Buffer& from, const Buffer& to) const { Kokkos::deep_copy(space, row(to), row(from)); }
  void fill(const Buffer& values, T value) const { Kokkos::deep_copy(space, row(values), value); }
  ProblemState* states() const { return memory.states.data(); }

  template <class Body>
  void for_each(const char* label, std::int64_t count, const Body& body) const {
    launch_kernel(label, Range(space, 0, count), body);
  }
  template <int Count, class Body, class Finish>
  void sum(const char* label, const ProblemParts& layout, const Body& body, const Finish& finish) const {
    sum_problems<Count>(space, label, layout, memory.partial.data(), body, finish);
  }

  void multiply(const Buffer& values, const Factors<T>& factors) const {
    if (factors.values)
      for_each("Bracewell::LeastSquaresSolver::multiply", std::int64_t(values.size()),
               MultiplyFactors<T>{values.data(), factors});
  }
  void set_ones(const Buffer& values, const Factors<T>& factors) const {
    fill(values, 1);
    multiply(values, factors);
  }

  /// Whether no problem is left, where that is asked for.
  bool finished() const {
    if (options.discrepancy == 0)
      return false;
    const auto states = memory.states_on_host(space);
    return std::all_of(states.begin(), states.begin() + of_data.problems,
                       [](const auto& state) { return state.done != 0; });
  }
  void report(int made) const {
    if (options.progress)
      options.progress(made);
  }

  KeepResidual keep_residual() const { return {states(), std::pow(options.discrepancy, 2)}; }

  /// The residual in place of the projections in the first buffer.
  void residual(bool weighted) const {
    sum<1>("Bracewell::LeastSquaresSolver::residual", of_data,
           TakeResidual<T>{data, data_buffer(0).data(), weights, weighted}, keep_residual());
  }
};

} // namespace Bracewell::Impl
