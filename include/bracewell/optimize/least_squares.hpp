// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/compiled.hpp>
#include <bracewell/optimize/detail/least_squares_methods.hpp>
#include <bracewell/optimize/least_squares_options.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <vector>

namespace Bracewell {

/// Solves linear least squares with any pair of operators, for data b and images x, both of three axes:
///   minimise sum w (b - A x)^2,
/// pair.project(space, x, b) computes A. pair.backproject(space, b, x) computes its transpose, or a positive multiple of
/// it. Any plan of tomography is such a pair, in either unit of projections. Weights of angles go into w instead.
/// A pair may have normal(space, images, results), which computes backproject(project(images)) in one (FourierNormal).
/// Conjugate gradients and TotalVariation can then use it alone (LeastSquaresShape::normal).
/// The plan owns all memory that a run needs. Sums of inner products stay on the device and do not depend on the number
/// of threads.
/// @code
/// const FourierTomography<Space, float> pair(space, geometry, {.units = ProjectionUnits::LineIntegrals});
/// const LeastSquaresSolver<Space, float> solver(space, {{S, P, n}, {S, n, n}});
/// Kokkos::deep_copy(space, images, 0);
/// solver.solve(space, pair, sinograms, images, {.iterations = 15});
/// @endcode
/// A movable plan; calls use its workspace: those that can overlap need plans of their own.
template <class ExecutionSpace, class T>
class LeastSquaresSolver {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Values = Array<const T, MemorySpace>;
  using Run = Impl::LeastSquaresRun<ExecutionSpace, T>;
  using Operators = Impl::OperatorPair<typename Run::Buffer>;
  using Sizes = Impl::LeastSquaresSizes;
  using Method = LeastSquaresMethod;

public:
  /// @throws Error on sizes below 1, independent problems of different numbers of slices, and SIRT with a normal
  ///         operator
  LeastSquaresSolver(const ExecutionSpace& space, const LeastSquaresShape& shape);

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const { return memory_.bytes(); }

  /// What memory_bytes() of a plan of these arguments would be.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace&, const LeastSquaresShape& shape);

  /// @param pair     with project(space, images, data) and backproject(space, data, images)
  /// @param data     [...] of the shape's data
  /// @param images   of the shape's images: where the iterations begin, and their result
  /// @param weights  w, not negative: of the shape of the data; 1 by default. 0 leaves a value out, also one that is
  ///                 not finite
  /// @param mask     1 where images are solved for, 0 where they stay as they are: of the shape of the images or of one of
  ///                 them, [rows, columns]
  /// @return the number of iterations that were made
  /// @throws Error on shapes that do not fit, shared memory and options out of range
  template <class Pair>
  int solve(const ExecutionSpace& space, const Pair& pair, const Values& data,
            const Array<T, MemorySpace>& images, const LeastSquaresOptions& options = {},
            const Values& weights = {}, const Values& mask = {}) const {
    using Buffer = typename Run::Buffer;
    Operators operators{[&](const Buffer& from, const Buffer& to) { pair.project(space, from, to); },
                        [&](const Buffer& from, const Buffer& to) { pair.backproject(space, from, to); },
                        {}};
    if constexpr (requires(const Buffer& both) { pair.normal(space, both, both); })
      operators.normal = [&](const Buffer& from, const Buffer& to) { pair.normal(space, from, to); };
    return solve_by(space, operators, data, images, options, weights, mask);
  }

  /// The weighted sums of squares of the shape's problems at the result of solve(); 0 of problems that it was not called
  /// with. Waits for the space.
  std::vector<double> residuals(const ExecutionSpace& space) const;

private:
  int solve_by(const ExecutionSpace& space, const Operators& pair, const Values& data,
               const Array<T, MemorySpace>& images, const LeastSquaresOptions& options, const Values& weights,
               const Values& mask) const;

  static const LeastSquaresShape& checked(const LeastSquaresShape& shape) {
    constexpr Impl::Arguments arguments{"LeastSquaresSolver"};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      arguments.within("shape.data", shape.data[axis], std::int64_t(1), std::int64_t(1) << 30);
      arguments.within("shape.images", shape.images[axis], std::int64_t(1), std::int64_t(1) << 30);
    }
    arguments.require(
        !shape.independent || shape.data[0] == shape.images[0], "shape.images",
        [&] { return Impl::number(shape.data[0]) + " slices, as data"; },
        [&] { return Impl::number(shape.images[0]); });
    arguments.require(shape.method != Method::SIRT || !shape.normal, "shape.normal", "false with SIRT",
                      "true");
    return shape;
  }

  static Impl::Factors<T> factors(const Values& values) {
    return values ? Impl::Factors<T>{values.data, values.size()} : Impl::Factors<T>{};
  }

  /// The sizes of a call.
  Sizes check(const Impl::Arguments& arguments, const Values& data, const Array<T, MemorySpace>& images,
              const LeastSquaresOptions& options, const Values& weights, const Values& mask) const {
    Sizes sizes(shape_);
    if (shape_.independent && data && data.rank == 3)
      sizes.data[0] = sizes.images[0] = std::min<std::int64_t>(data.extents[0], shape_.data[0]);
    arguments.shape("data", data, {sizes.data[0], sizes.data[1], sizes.data[2]});
    arguments.shape("images", images, {sizes.images[0], sizes.images[1], sizes.images[2]});
    if (weights)
      arguments.same_shape("weights", weights, data);
    if (mask && mask.rank == 2)
      arguments.shape("mask", mask, {sizes.images[1], sizes.images[2]});
    else if (mask)
      arguments.same_shape("mask", mask, images);
    arguments.disjoint({{"images", images}}, {{"data", data}, {"weights", weights}, {"mask", mask}});
    arguments.at_least("options.iterations", options.iterations, 0);
    arguments.at_least("options.inner_iterations", options.inner_iterations, 1);
    arguments.not_negative("options.discrepancy", options.discrepancy);
    arguments.not_negative("options.total_variation", options.total_variation);
    arguments.within("options.relaxation", options.relaxation, 0., 2.);
    arguments.require(shape_.method == Method::TotalVariation || options.total_variation == 0,
                      "options.total_variation", "0 with another method than TotalVariation",
                      [&] { return Impl::number(options.total_variation); });
    arguments.require(shape_.method != Method::ConjugateGradients || !options.nonnegative,
                      "options.nonnegative", "false with conjugate gradients", "true");
    arguments.require(!shape_.normal || !weights, "weights", "none with a normal operator", "some");
    arguments.require(!shape_.normal || options.discrepancy == 0, "options.discrepancy",
                      "0 with a normal operator", [&] { return Impl::number(options.discrepancy); });
    return sizes;
  }

  LeastSquaresShape shape_;
  Impl::LeastSquaresMemory<ExecutionSpace, T> memory_;
};

template <class ExecutionSpace, class T>
LeastSquaresSolver<ExecutionSpace, T>::LeastSquaresSolver(const ExecutionSpace& space,
                                                          const LeastSquaresShape& shape)
    : shape_(checked(shape)), memory_(space, Sizes(shape)) {}

template <class ExecutionSpace, class T>
std::size_t LeastSquaresSolver<ExecutionSpace, T>::bytes_needed(const ExecutionSpace&,
                                                                const LeastSquaresShape& shape) {
  return decltype(memory_)::bytes_needed(Sizes(checked(shape)));
}

template <class ExecutionSpace, class T>
auto LeastSquaresSolver<ExecutionSpace, T>::residuals(const ExecutionSpace& space) const
    -> std::vector<double> {
  std::vector<double> values;
  for (const auto& state : memory_.states_on_host(space))
    values.push_back(state.residual);
  return values;
}

template <class ExecutionSpace, class T>
int LeastSquaresSolver<ExecutionSpace, T>::solve_by(const ExecutionSpace& space, const Operators& pair,
                                                    const Values& data, const Array<T, MemorySpace>& images,
                                                    const LeastSquaresOptions& options, const Values& weights,
                                                    const Values& mask) const {
  constexpr Impl::Arguments arguments{"LeastSquaresSolver::solve"};
  const Sizes sizes = check(arguments, data, images, options, weights, mask);
  arguments.require(!shape_.normal || pair.normal, "pair", "one with normal(), as shape.normal says",
                    "one without");
  if (data.size() == 0)
    return 0;
  Kokkos::Profiling::ScopedRegion region("Bracewell::LeastSquaresSolver::solve");
  Kokkos::deep_copy(space, memory_.states, Impl::ProblemState{});
  const Run run{space,
                memory_,
                sizes,
                options,
                data.data,
                Run::buffer(sizes.images, images.data),
                factors(weights),
                factors(mask)};
  if (shape_.normal)
    return shape_.method == Method::ConjugateGradients ? Impl::normal_conjugate_gradients(run, pair)
                                                       : Impl::normal_fast_gradient(run, pair);
  switch (shape_.method) {
  case Method::ConjugateGradients:
    return Impl::conjugate_gradients(run, pair);
  case Method::SIRT:
    return Impl::simultaneous_iterations(run, pair);
  case Method::TotalVariation:
    break;
  }
  return Impl::fast_gradient(run, pair);
}

#define BRACEWELL_INSTANCES_LEAST_SQUARES_SOLVER(Extern, Space, Real)                                        \
  Extern template class LeastSquaresSolver<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_LEAST_SQUARES_SOLVER)

} // namespace Bracewell
