// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/optimize/detail/problem_sums.hpp>
#include <bracewell/optimize/detail/total_variation.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace Bracewell {

/// How LeastSquaresSolver finds images x whose projections A x are near to data b. B is the back-projection.
enum class LeastSquaresMethod {
  /// Conjugate gradients on the normal equations (Hestenes and Stiefel, 1952; CGLS): the least squares of fewest
  /// iterations. The number of iterations regularises.
  ConjugateGradients,
  /// x <- x + relaxation C B w R (b - A x), R and C the reciprocal sums of rows and columns, A 1 and B w (Gilbert, J.
  /// Theor. Biol. 36, 1972; Gregor and Benson, IEEE Trans. Med. Imaging 27, 2008).
  SIRT,
  /// Least squares, a multiple of the total variation of every image and, where it is asked for, no value below zero:
  /// FISTA (Beck and Teboulle, SIAM J. Imaging Sci. 2(1), 2009), its proximal map by their fast gradient projection.
  TotalVariation
};

/// What memory of a LeastSquaresSolver depends on.
struct LeastSquaresShape {
  std::array<std::int64_t, 3> data = {};   ///< of sinograms [slices, angles, width], for instance
  std::array<std::int64_t, 3> images = {}; ///< of images [slices, rows, columns]
  LeastSquaresMethod method = LeastSquaresMethod::ConjugateGradients; ///< that it solves by
  /// Every slice, of as many images as of data, is a problem of its own, with steps of its own: slices do not know of
  /// each other. false: all are one problem.
  bool independent = true;
};

/// A run of a LeastSquaresSolver.
struct LeastSquaresOptions {
  int iterations = 20; ///< at most
  /// Discrepancy principle: a problem ends with the first iterate whose sum of weight (b - A x)^2 is at most the square
  /// of it. Of noise of variance 1 / weight that is the root of the number of values. 0: none ends early, and the
  /// host waits for nothing.
  double discrepancy = 0;
  double relaxation = 1;      ///< of SIRT, from 0 to 2
  bool nonnegative = false;   ///< of SIRT and TotalVariation
  double total_variation = 0; ///< its factor, beside half of the squares whose gradient is B w (A x - b)
  int inner_iterations = 20;  ///< of the proximal map of total variation
};

/// Solves linear least squares with any pair of operators, for data b and images x, both of three axes:
///   minimise sum w (b - A x)^2,
/// pair.project(space, x, b) being A and pair.backproject(space, b, x) its transpose B, or that times a positive number:
/// any plan of tomography in either unit of projections, without weights of angles, which go into w.
/// The plan owns all memory that a run needs; sums of inner products stay on the device and do not depend on the number
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
  using Memory =
      Kokkos::View<T***, Kokkos::LayoutRight, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  using Method = LeastSquaresMethod;

public:
  /// @throws Error on sizes below 1, and independent problems of different numbers of slices
  LeastSquaresSolver(const ExecutionSpace& space, const LeastSquaresShape& shape)
      : shape_(checked(shape)), of_data_(parts(shape, shape.data)), of_images_(parts(shape, shape.images)),
        data_(Impl::device_vector<T>(space, "Bracewell::LeastSquaresSolver::data",
                                     data_buffers(shape) * elements(shape.data))),
        images_(Impl::device_vector<T>(space, "Bracewell::LeastSquaresSolver::images",
                                       image_buffers(shape) * elements(shape.images))),
        states_(Impl::device_vector<Impl::ProblemState>(space, "Bracewell::LeastSquaresSolver::states",
                                                        of_data_.problems)),
        partial_(Impl::device_vector<double>(space, "Bracewell::LeastSquaresSolver::sums",
                                             2 * std::max(of_data_.all(), of_images_.all()))) {}

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const { return Impl::bytes_of(data_, images_, states_, partial_); }

  /// What memory_bytes() of a plan of these arguments would be.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace&, const LeastSquaresShape& shape) {
    const auto data = parts(checked(shape), shape.data), images = parts(shape, shape.images);
    return std::size_t(data_buffers(shape) * elements(shape.data) +
                       image_buffers(shape) * elements(shape.images)) *
               sizeof(T) +
           std::size_t(data.problems) * sizeof(Impl::ProblemState) +
           2 * std::size_t(std::max(data.all(), images.all())) * sizeof(double);
  }

  /// @param pair     with project(space, images, data) and backproject(space, data, images)
  /// @param data     [...] of the shape's data
  /// @param images   of the shape's images: where the iterations begin, and their result
  /// @param weights  w, not negative: of the shape of the data; 1 by default. 0 leaves a value out
  /// @param mask     1 where images are solved for, 0 where they stay as they are: of the shape of the images or of one of
  ///                 them, [rows, columns]
  /// @return the number of iterations that were made
  /// @throws Error on shapes that do not fit, shared memory and options out of range
  template <class Pair, class Data, class Images>
  int solve(const ExecutionSpace& space, const Pair& pair, const Data& data, const Images& images,
            const LeastSquaresOptions& options = {}, const Values& weights = {},
            const Values& mask = {}) const {
    constexpr Impl::Arguments arguments{"LeastSquaresSolver::solve"};
    const Values in(data);
    const Array<T, MemorySpace> out(images);
    check(arguments, in, out, options, weights, mask);
    Kokkos::Profiling::ScopedRegion region("Bracewell::LeastSquaresSolver::solve");
    Kokkos::deep_copy(space, states_, Impl::ProblemState{});
    const Problem problem{in.data, memory(shape_.images, out.data), factors(weights), factors(mask), options};
    switch (shape_.method) {
    case Method::ConjugateGradients:
      return conjugate_gradients(space, pair, problem);
    case Method::SIRT:
      return sirt(space, pair, problem);
    case Method::TotalVariation:
      break;
    }
    return total_variation(space, problem, [&](const Memory& point, const Memory& gradient, bool normal) {
      pair.project(space, point, data_buffer(0));
      residual(space, normal ? nullptr : problem.data, problem, true);
      pair.backproject(space, data_buffer(0), gradient);
    });
  }

  /// The weighted sums of squares of the problems at the last residual that solve() computed: for conjugate gradients at
  /// the result, for SIRT and TotalVariation an iteration earlier. Waits for the space.
  std::vector<double> residuals(const ExecutionSpace& space) const {
    std::vector<Impl::ProblemState> states = on_host(space);
    std::vector<double> values;
    for (const auto& state : states)
      values.push_back(state.residual);
    return values;
  }

private:
  struct Problem {
    const T* data;
    Memory image;
    Impl::Factors<T> weights, mask;
    const LeastSquaresOptions& options;
  };

  static const LeastSquaresShape& checked(const LeastSquaresShape& shape) {
    constexpr Impl::Arguments arguments{"LeastSquaresSolver"};
    for (int axis = 0; axis < 3; ++axis) {
      arguments.within("shape.data", shape.data[axis], std::int64_t(1), std::int64_t(1) << 30);
      arguments.within("shape.images", shape.images[axis], std::int64_t(1), std::int64_t(1) << 30);
    }
    arguments.require(
        !shape.independent || shape.data[0] == shape.images[0], "shape.images",
        [&] { return Impl::number(shape.data[0]) + " slices, as data"; },
        [&] { return Impl::number(shape.images[0]); });
    return shape;
  }
  static std::int64_t elements(const std::array<std::int64_t, 3>& extents) {
    return extents[0] * extents[1] * extents[2];
  }
  static Impl::ProblemParts parts(const LeastSquaresShape& shape,
                                  const std::array<std::int64_t, 3>& extents) {
    const std::int64_t problems = shape.independent ? extents[0] : 1;
    return Impl::ProblemParts::make(problems, elements(extents) / problems);
  }
  static std::int64_t data_buffers(const LeastSquaresShape& shape) {
    return shape.method == Method::TotalVariation ? 1 : 2;
  }
  static std::int64_t image_buffers(const LeastSquaresShape& shape) {
    return shape.method == Method::TotalVariation ? 7 : 2;
  }

  static Memory memory(const std::array<std::int64_t, 3>& extents, T* data) {
    return Memory(data, extents[0], extents[1], extents[2]);
  }
  Memory data_buffer(int k) const { return memory(shape_.data, data_.data() + k * elements(shape_.data)); }
  Memory image_buffer(int k) const {
    return memory(shape_.images, images_.data() + k * elements(shape_.images));
  }
  static Impl::Factors<T> factors(const Values& values) {
    return values ? Impl::Factors<T>{values.data, values.size()} : Impl::Factors<T>{};
  }

  void check(const Impl::Arguments& arguments, const Values& data, const Array<T, MemorySpace>& images,
             const LeastSquaresOptions& options, const Values& weights, const Values& mask) const {
    arguments.shape("data", data, {shape_.data[0], shape_.data[1], shape_.data[2]});
    arguments.shape("images", images, {shape_.images[0], shape_.images[1], shape_.images[2]});
    if (weights)
      arguments.same_shape("weights", weights, data);
    if (mask && mask.rank == 2)
      arguments.shape("mask", mask, {shape_.images[1], shape_.images[2]});
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
  }

  template <class Body>
  void for_each(const ExecutionSpace& space, const char* label, std::int64_t count, const Body& body) const {
    Kokkos::parallel_for(label, Range(space, 0, count), body);
  }
  template <int Count, class Body, class Finish>
  void sum(const ExecutionSpace& space, const char* label, const Impl::ProblemParts& layout, const Body& body,
           const Finish& finish) const {
    Impl::sum_problems<Count>(space, label, layout, partial_.data(), body, finish);
  }

  std::vector<Impl::ProblemState> on_host(const ExecutionSpace& space) const {
    std::vector<Impl::ProblemState> states(states_.size());
    Kokkos::deep_copy(space,
                      Kokkos::View<Impl::ProblemState*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
                          states.data(), states.size()),
                      states_);
    space.fence("Bracewell::LeastSquaresSolver::states");
    return states;
  }
  /// Whether no problem is left, where that is asked for.
  bool finished(const ExecutionSpace& space, const LeastSquaresOptions& options) const {
    if (options.discrepancy == 0)
      return false;
    const auto states = on_host(space);
    return std::all_of(states.begin(), states.end(), [](const auto& state) { return state.done != 0; });
  }

  /// The residual in place of the projections in the first buffer; without data, the projections.
  void residual(const ExecutionSpace& space, const T* data, const Problem& problem, bool weighted) const {
    const double discrepancy = std::pow(problem.options.discrepancy, 2);
    sum<1>(space, "Bracewell::LeastSquaresSolver::residual", of_data_,
           Impl::TakeResidual<T>{data, data_buffer(0).data(), problem.weights, weighted},
           Impl::KeepResidual{states_.data(), data ? discrepancy : 0});
  }

  template <class Pair>
  int conjugate_gradients(const ExecutionSpace& space, const Pair& pair, const Problem& problem) const {
    const Memory rest = data_buffer(0), projected = data_buffer(1), gradient = image_buffer(0),
                 direction = image_buffer(1);
    auto* const states = states_.data();
    pair.project(space, problem.image, rest);
    residual(space, problem.data, problem, false);
    Kokkos::deep_copy(space, projected, rest);
    if (problem.weights.values)
      for_each(space, "Bracewell::LeastSquaresSolver::weigh", rest.size(),
               Impl::MultiplyFactors<T>{projected.data(), problem.weights});
    Kokkos::deep_copy(space, direction, T(0));
    int iteration = 0;
    for (; iteration < problem.options.iterations && !finished(space, problem.options); ++iteration) {
      pair.backproject(space, projected, gradient);
      sum<1>(space, "Bracewell::LeastSquaresSolver::gradient", of_images_,
             Impl::MaskGradient<T>{gradient.data(), problem.mask}, Impl::KeepGamma{states});
      for_each(space, "Bracewell::LeastSquaresSolver::direction", direction.size(),
               Impl::TurnDirection<T>{states, gradient.data(), direction.data(), of_images_.size});
      pair.project(space, direction, projected);
      sum<2>(space, "Bracewell::LeastSquaresSolver::step", of_data_,
             Impl::DirectionProducts<T>{projected.data(), rest.data(), problem.weights},
             Impl::KeepStep{states});
      for_each(space, "Bracewell::LeastSquaresSolver::images", direction.size(),
               Impl::AddStep<T>{states, problem.image.data(), direction.data(), of_images_.size});
      sum<1>(space, "Bracewell::LeastSquaresSolver::residual", of_data_,
             Impl::StepResidual<T>{states, rest.data(), projected.data(), problem.weights},
             Impl::KeepResidual{states, std::pow(problem.options.discrepancy, 2)});
    }
    return iteration;
  }

  /// Sums of rows or columns in a buffer to their reciprocals, times factors.
  void reciprocals(const ExecutionSpace& space, const Memory& sums, const Impl::Factors<T>& factors) const {
    const Kokkos::View<double, MemorySpace, Kokkos::MemoryUnmanaged> largest(partial_.data());
    Kokkos::parallel_reduce("Bracewell::LeastSquaresSolver::largest", Range(space, 0, sums.size()),
                            Impl::Largest<T>{sums.data()}, Kokkos::Max<double, MemorySpace>(largest));
    for_each(space, "Bracewell::LeastSquaresSolver::reciprocals", sums.size(),
             Impl::Reciprocals<T>{sums.data(), largest.data(), factors});
  }

  template <class Pair>
  int sirt(const ExecutionSpace& space, const Pair& pair, const Problem& problem) const {
    const Memory rest = data_buffer(0), rows = data_buffer(1), change = image_buffer(0),
                 columns = image_buffer(1);
    for_each(space, "Bracewell::LeastSquaresSolver::ones", change.size(),
             Impl::SetFactors<T>{change.data(), problem.mask});
    pair.project(space, change, rows);
    reciprocals(space, rows, problem.weights);
    for_each(space, "Bracewell::LeastSquaresSolver::ones", rest.size(),
             Impl::SetFactors<T>{rest.data(), problem.weights});
    pair.backproject(space, rest, columns);
    reciprocals(space, columns, {});
    const Impl::Factors<T> row_factors{rows.data(), std::int64_t(rows.size())};
    int iteration = 0;
    for (; iteration < problem.options.iterations; ++iteration) {
      pair.project(space, problem.image, rest);
      residual(space, problem.data, problem, false);
      if (finished(space, problem.options))
        break;
      for_each(space, "Bracewell::LeastSquaresSolver::weigh", rest.size(),
               Impl::MultiplyFactors<T>{rest.data(), row_factors});
      pair.backproject(space, rest, change);
      for_each(space, "Bracewell::LeastSquaresSolver::images", change.size(),
               Impl::SirtStep<T>{states_.data(), problem.image.data(), change.data(), columns.data(),
                                 problem.mask, of_images_.size, T(problem.options.relaxation),
                                 problem.options.nonnegative});
    }
    return iteration;
  }

  /// gradient(point, result, normal): back-projected residuals, or the normal operator's result.
  template <class Gradient>
  int total_variation(const ExecutionSpace& space, const Problem& problem, const Gradient& gradient) const {
    const Memory point = image_buffer(0), z = image_buffer(1), next = image_buffer(2);
    const Impl::DualFields<T> fields{image_buffer(3).data(), image_buffer(4).data()},
        ahead{image_buffer(5).data(), image_buffer(6).data()};
    const auto* const states = states_.data();
    const std::int64_t size = of_images_.size, count = std::int64_t(point.size());
    const int rows = static_cast<int>(shape_.images[1]), columns = static_cast<int>(shape_.images[2]);
    const LeastSquaresOptions& options = problem.options;
    largest_eigenvalue(space, problem, gradient);
    Kokkos::deep_copy(space, point, problem.image);
    Impl::fill(space, "Bracewell::LeastSquaresSolver::fields", fields.right, 4 * count);
    double momentum = 1;
    int iteration = 0;
    for (; iteration < options.iterations; ++iteration) {
      gradient(point, z, false);
      if (finished(space, options))
        break;
      for_each(space, "Bracewell::LeastSquaresSolver::gradient_step", count,
               Impl::GradientStep<T>{states, point.data(), z.data(), problem.mask, size});
      const auto smooth = [&](const Impl::DualFields<T>& dual) {
        for_each(space, "Bracewell::LeastSquaresSolver::smoothed", count,
                 Impl::SmoothedImage<T>{states,
                                        z.data(),
                                        {dual.right, dual.down},
                                        problem.mask,
                                        next.data(),
                                        size,
                                        rows,
                                        columns,
                                        options.total_variation,
                                        options.nonnegative});
      };
      double inner = 1;
      for (int k = 0; options.total_variation > 0 && k < options.inner_iterations; ++k) {
        smooth(ahead);
        const double following = (1 + std::sqrt(1 + 4 * inner * inner)) / 2;
        for_each(space, "Bracewell::LeastSquaresSolver::dual", count,
                 Impl::DualStep<T>{states, next.data(), fields, ahead, size, rows, columns,
                                   options.total_variation, T((inner - 1) / following)});
        inner = following;
      }
      smooth(fields);
      const double following = (1 + std::sqrt(1 + 4 * momentum * momentum)) / 2;
      for_each(space, "Bracewell::LeastSquaresSolver::next", count,
               Impl::NextPoint<T>{states, problem.image.data(), point.data(), next.data(), size,
                                  T((momentum - 1) / following)});
      momentum = following;
    }
    return iteration;
  }

  /// The steps of the problems: the reciprocal of the normal operator's largest eigenvalue, by the power method from a
  /// uniform image, which is near where no element is negative.
  template <class Gradient>
  void largest_eigenvalue(const ExecutionSpace& space, const Problem& problem,
                          const Gradient& gradient) const {
    constexpr int steps = 8;
    const Memory vector = image_buffer(0), product = image_buffer(1);
    for_each(space, "Bracewell::LeastSquaresSolver::ones", vector.size(),
             Impl::SetFactors<T>{vector.data(), problem.mask});
    for (int k = 0; k < steps; ++k) {
      gradient(vector, product, true);
      for_each(space, "Bracewell::LeastSquaresSolver::mask", vector.size(),
               Impl::MultiplyFactors<T>{product.data(), problem.mask});
      sum<2>(space, "Bracewell::LeastSquaresSolver::eigenvalue", of_images_,
             Impl::RayleighProducts<T>{vector.data(), product.data()}, Impl::KeepRayleigh{states_.data()});
      for_each(space, "Bracewell::LeastSquaresSolver::eigenvector", vector.size(),
               Impl::NextVector<T>{states_.data(), vector.data(), product.data(), of_images_.size});
    }
  }

  LeastSquaresShape shape_;
  Impl::ProblemParts of_data_, of_images_;
  Kokkos::View<T*, ExecutionSpace> data_, images_;
  Kokkos::View<Impl::ProblemState*, ExecutionSpace> states_;
  Kokkos::View<double*, ExecutionSpace> partial_;
};

} // namespace Bracewell
