// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/optimize/detail/least_squares_run.hpp>
#include <bracewell/optimize/detail/least_squares_steps.hpp>

#include <functional>
#include <utility>

namespace Bracewell::Impl {

/// A pair of operators of any type: the iterations are compiled once for all.
template <class Buffer>
struct OperatorPair {
  using Operator = std::function<void(const Buffer& from, const Buffer& to)>;
  Operator projection, backprojection, normal_of; ///< the last of pairs that have it

  template <class Space>
  void project(const Space&, const Buffer& from, const Buffer& to) const {
    projection(from, to);
  }
  template <class Space>
  void backproject(const Space&, const Buffer& from, const Buffer& to) const {
    backprojection(from, to);
  }
  template <class Space>
  void normal(const Space&, const Buffer& from, const Buffer& to) const {
    normal_of(from, to);
  }
};

/// direction = gradient + kept direction, after the square of the gradient.
template <class Run, class Buffer>
void renew_direction(const Run& run, const Buffer& gradient, const Buffer& direction) {
  run.for_each("Bracewell::LeastSquaresSolver::direction", std::int64_t(direction.size()),
               RenewDirection<typename Run::Value>{run.states(), gradient.data(), direction.data(),
                                                   run.of_images.size});
}

/// image += step direction.
template <class Run, class Buffer>
void add_step(const Run& run, const Buffer& direction) {
  run.for_each(
      "Bracewell::LeastSquaresSolver::images", std::int64_t(direction.size()),
      AddStep<typename Run::Value>{run.states(), run.image.data(), direction.data(), run.of_images.size});
}

/// CGLS: the residual in the space of the data is kept, so that no accuracy is lost to squares.
/// @return iterations that were made
template <class Run, class Pair>
int conjugate_gradients(const Run& run, const Pair& pair) {
  using T = typename Run::Value;
  const auto rest = run.data_buffer(0), projected = run.data_buffer(1), gradient = run.image_buffer(0),
             direction = run.image_buffer(1);
  pair.project(run.space, run.image, rest);
  run.residual(false);
  Kokkos::deep_copy(run.space, projected, rest);
  run.multiply(projected, run.weights);
  Kokkos::deep_copy(run.space, direction, T(0));
  int iteration = 0;
  while (iteration < run.options.iterations && !run.finished()) {
    pair.backproject(run.space, projected, gradient);
    run.template sum<1>("Bracewell::LeastSquaresSolver::gradient", run.of_images,
                        MaskGradient<T>{gradient.data(), run.mask}, KeepGamma{run.states()});
    renew_direction(run, gradient, direction);
    pair.project(run.space, direction, projected);
    run.template sum<2>("Bracewell::LeastSquaresSolver::step", run.of_data,
                        Products<T>{projected.data(), projected.data(), rest.data(), run.weights},
                        KeepStep{run.states()});
    add_step(run, direction);
    run.template sum<1>("Bracewell::LeastSquaresSolver::residual", run.of_data,
                        StepResidual<T>{run.states(), rest.data(), projected.data(), run.weights},
                        run.keep_residual());
    run.report(++iteration);
  }
  return iteration;
}

/// The same by the normal operator: the residual is kept in the space of the images, and computed at the end.
template <class Run, class Pair>
int normal_conjugate_gradients(const Run& run, const Pair& pair) {
  using T = typename Run::Value;
  const auto rest = run.data_buffer(0), gradient = run.image_buffer(0), direction = run.image_buffer(1),
             product = run.image_buffer(2);
  pair.project(run.space, run.image, rest);
  run.residual(false);
  pair.backproject(run.space, rest, gradient);
  run.template sum<1>("Bracewell::LeastSquaresSolver::gradient", run.of_images,
                      MaskGradient<T>{gradient.data(), run.mask}, KeepGamma{run.states()});
  Kokkos::deep_copy(run.space, product, gradient);
  Kokkos::deep_copy(run.space, direction, T(0));
  int iteration = 0;
  while (iteration < run.options.iterations) {
    renew_direction(run, product, direction);
    pair.normal(run.space, direction, product);
    run.template sum<2>("Bracewell::LeastSquaresSolver::step", run.of_images,
                        Products<T>{direction.data(), product.data(), gradient.data(), {}},
                        KeepStep{run.states()});
    add_step(run, direction);
    run.template sum<1>("Bracewell::LeastSquaresSolver::gradient", run.of_images,
                        StepResidual<T>{run.states(), gradient.data(), product.data(), run.mask},
                        KeepGamma{run.states()});
    run.report(++iteration);
  }
  pair.project(run.space, run.image, rest);
  run.residual(false);
  return iteration;
}

/// The dual fields of total variation: differences of a pixel to the next one right and the next one below.
template <class T>
struct DualFields {
  T *right, *down;
};

/// z = y - step gradient where the mask is, y elsewhere, in place of the gradient: what is then smoothed. (The gradient
/// here is that of the data's misfit with its sign turned: back-projected residuals.)
template <class T>
struct GradientStep {
  const ProblemState* states;
  const T* point;
  T* gradient;
  Factors<T> mask;
  std::int64_t size;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    gradient[i] = point[i] + T(states[i / size].step) * mask(i) * gradient[i];
  }
};

/// image = z - weight step (the transpose of differences of) the dual fields, not below zero where that is asked for.
template <class T>
struct SmoothedImage {
  const ProblemState* states;
  const T* z;
  DualFields<const T> dual;
  Factors<T> mask;
  T* image;
  std::int64_t size;
  int rows, columns; ///< of images
  double weight;
  bool nonnegative;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int pixel = static_cast<int>(i % (std::int64_t(rows) * columns));
    const int x = pixel % columns, y = pixel / columns;
    T difference = 0;
    if (x + 1 < columns)
      difference -= dual.right[i];
    if (x > 0)
      difference += dual.right[i - 1];
    if (y + 1 < rows)
      difference -= dual.down[i];
    if (y > 0)
      difference += dual.down[i - columns];
    const bool fixed = !(mask(i) > T(0));
    const T value = fixed ? z[i] : z[i] - T(weight * states[i / size].step) * difference;
    image[i] = nonnegative && !fixed && value < T(0) ? T(0) : value;
  }
};

/// A step of the dual fields along the differences of the image, back into the unit discs, with momentum (fast gradient
/// projection: Beck and Teboulle, IEEE Trans. Image Process. 18(11), 2009, section 4).
template <class T>
struct DualStep {
  const ProblemState* states;
  const T* image;
  DualFields<T> fields, ahead; ///< ahead: with momentum, where the image was taken
  std::int64_t size;
  int rows, columns;
  double weight;
  T momentum;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int pixel = static_cast<int>(i % (std::int64_t(rows) * columns));
    const double strength = 8 * weight * states[i / size].step;
    const T rate = strength > 0 ? T(1 / strength) : T(0);
    T right = ahead.right[i], down = ahead.down[i];
    if (pixel % columns + 1 < columns)
      right += rate * (image[i + 1] - image[i]);
    if (pixel / columns + 1 < rows)
      down += rate * (image[i + columns] - image[i]);
    const T length = Kokkos::sqrt(right * right + down * down);
    if (length > T(1)) {
      right /= length;
      down /= length;
    }
    ahead.right[i] = right + momentum * (right - fields.right[i]);
    ahead.down[i] = down + momentum * (down - fields.down[i]);
    fields.right[i] = right;
    fields.down[i] = down;
  }
};

/// The next point: beyond the new image, by momentum; the new image takes the place of the old one.
template <class T>
struct NextPoint {
  const ProblemState* states;
  T *image, *point;
  const T* next;
  std::int64_t size;
  T momentum;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (states[i / size].done)
      return;
    point[i] = next[i] + momentum * (next[i] - image[i]);
    image[i] = next[i];
  }
};

/// Momentum of Nesterov's sequence.
struct Momentum {
  double t = 1;

  /// Of the next point.
  double next() {
    const double before = std::exchange(t, (1 + std::sqrt(1 + 4 * t * t)) / 2);
    return (before - 1) / t;
  }
};

/// The steps of the problems: the reciprocal of the normal operator's largest eigenvalue, by the power method from a
/// uniform image, which is near where no element is negative.
template <class Run, class Normal>
void find_largest_eigenvalue(const Run& run, const Normal& normal) {
  using T = typename Run::Value;
  constexpr int steps = 8;
  const auto vector = run.image_buffer(0), product = run.image_buffer(1);
  run.set_ones(vector, run.mask);
  for (int k = 0; k < steps; ++k) {
    normal(vector, product);
    run.multiply(product, run.mask);
    run.template sum<2>("Bracewell::LeastSquaresSolver::eigenvalue", run.of_images,
                        Products<T>{vector.data(), vector.data(), product.data(), {}},
                        KeepRayleigh{run.states()});
    run.for_each("Bracewell::LeastSquaresSolver::eigenvector", std::int64_t(vector.size()),
                 NextVector<T>{run.states(), vector.data(), product.data(), run.of_images.size});
  }
}

/// FISTA with total variation.
/// @param normal    (image, result): B w A image
/// @param residual  (image, result): B w (b - A image)
/// @return iterations that were made
template <class Run, class Normal, class Residual>
int fast_gradient(const Run& run, const Normal& normal, const Residual& residual) {
  using T = typename Run::Value;
  const auto point = run.image_buffer(0), z = run.image_buffer(1), next = run.image_buffer(2);
  const DualFields<T> fields{run.image_buffer(3).data(), run.image_buffer(4).data()},
      ahead{run.image_buffer(5).data(), run.image_buffer(6).data()};
  const auto* const states = run.states();
  const std::int64_t size = run.of_images.size, count = std::int64_t(point.size());
  const int rows = static_cast<int>(run.sizes.images[1]), columns = static_cast<int>(run.sizes.images[2]);
  const LeastSquaresOptions& options = run.options;
  find_largest_eigenvalue(run, normal);
  Kokkos::deep_copy(run.space, point, run.image);
  for (int k = 3; k < 7; ++k)
    Kokkos::deep_copy(run.space, run.image_buffer(k), T(0));
  Momentum momentum;
  int iteration = 0;
  while (iteration < options.iterations) {
    residual(point, z);
    if (run.finished())
      break;
    run.for_each("Bracewell::LeastSquaresSolver::gradient_step", count,
                 GradientStep<T>{states, point.data(), z.data(), run.mask, size});
    const auto smooth = [&](const DualFields<T>& dual) {
      run.for_each("Bracewell::LeastSquaresSolver::smoothed", count,
                   SmoothedImage<T>{states,
                                    z.data(),
                                    {dual.right, dual.down},
                                    run.mask,
                                    next.data(),
                                    size,
                                    rows,
                                    columns,
                                    options.total_variation,
                                    options.nonnegative});
    };
    Momentum inner;
    for (int k = 0; options.total_variation > 0 && k < options.inner_iterations; ++k) {
      smooth(ahead);
      run.for_each("Bracewell::LeastSquaresSolver::dual", count,
                   DualStep<T>{states, next.data(), fields, ahead, size, rows, columns,
                               options.total_variation, T(inner.next())});
    }
    smooth(fields);
    run.for_each("Bracewell::LeastSquaresSolver::next", count,
                 NextPoint<T>{states, run.image.data(), point.data(), next.data(), size, T(momentum.next())});
    run.report(++iteration);
  }
  return iteration;
}

/// The same by both operators of a pair.
template <class Run, class Pair>
int fast_gradient(const Run& run, const Pair& pair) {
  using Buffer = typename Run::Buffer;
  const Buffer projected = run.data_buffer(0);
  const auto normal = [&](const Buffer& image, const Buffer& result) {
    pair.project(run.space, image, projected);
    run.multiply(projected, run.weights);
    pair.backproject(run.space, projected, result);
  };
  const int made = fast_gradient(run, normal, [&](const Buffer& image, const Buffer& result) {
    pair.project(run.space, image, projected);
    run.residual(true);
    pair.backproject(run.space, projected, result);
  });
  if (made == run.options.iterations) { // of the last image, not of a point before it
    pair.project(run.space, run.image, projected);
    run.residual(false);
  }
  return made;
}

/// By the normal operator: data are back-projected once; the residual is computed at the end.
template <class Run, class Pair>
int normal_fast_gradient(const Run& run, const Pair& pair) {
  using T = typename Run::Value;
  using Buffer = typename Run::Buffer;
  const Buffer rest = run.data_buffer(0), backprojected = run.image_buffer(7);
  Kokkos::deep_copy(run.space, rest, T(0));
  run.residual(false); // the data
  pair.backproject(run.space, rest, backprojected);
  const auto normal = [&](const Buffer& image, const Buffer& result) {
    pair.normal(run.space, image, result);
  };
  const int made = fast_gradient(run, normal, [&](const Buffer& image, const Buffer& result) {
    normal(image, result);
    run.for_each("Bracewell::LeastSquaresSolver::gradient", std::int64_t(result.size()),
                 SubtractFrom<T>{backprojected.data(), result.data()});
  });
  pair.project(run.space, run.image, rest);
  run.residual(false);
  return made;
}

/// Sums of rows or columns in a buffer to their reciprocals, times factors.
template <class Run, class Buffer>
void take_reciprocals(const Run& run, const Buffer& sums, const Factors<typename Run::Value>& factors) {
  using T = typename Run::Value;
  using MemorySpace = typename Run::MemorySpace;
  const Kokkos::View<double, MemorySpace, Kokkos::MemoryUnmanaged> largest(run.memory.partial.data());
  Kokkos::parallel_reduce("Bracewell::LeastSquaresSolver::largest",
                          typename Run::Range(run.space, 0, std::int64_t(sums.size())),
                          Largest<T>{sums.data()}, Kokkos::Max<double, MemorySpace>(largest));
  run.for_each("Bracewell::LeastSquaresSolver::reciprocals", std::int64_t(sums.size()),
               Reciprocals<T>{sums.data(), largest.data(), factors});
}

/// SIRT.
/// @return iterations that were made
template <class Run, class Pair>
int simultaneous_iterations(const Run& run, const Pair& pair) {
  using T = typename Run::Value;
  const auto rest = run.data_buffer(0), rows = run.data_buffer(1), change = run.image_buffer(0),
             columns = run.image_buffer(1);
  run.set_ones(change, run.mask);
  pair.project(run.space, change, rows);
  take_reciprocals(run, rows, run.weights);
  run.set_ones(rest, run.weights);
  pair.backproject(run.space, rest, columns);
  take_reciprocals(run, columns, {});
  int iteration = 0;
  while (iteration < run.options.iterations) {
    pair.project(run.space, run.image, rest);
    run.residual(false);
    if (run.finished())
      break;
    run.multiply(rest, {rows.data(), std::int64_t(rows.size())});
    pair.backproject(run.space, rest, change);
    run.for_each("Bracewell::LeastSquaresSolver::images", std::int64_t(change.size()),
                 SirtStep<T>{run.states(), run.image.data(), change.data(), columns.data(), run.mask,
                             run.of_images.size, T(run.options.relaxation), run.options.nonnegative});
    run.report(++iteration);
  }
  if (iteration ==
      run.options.iterations) { // what was left before the last step is not what is left after it
    pair.project(run.space, run.image, rest);
    run.residual(false);
  }
  return iteration;
}

} // namespace Bracewell::Impl
