// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/row_loop.hpp>
#include <bracewell/optimize/detail/least_squares_run.hpp>
#include <bracewell/optimize/detail/least_squares_steps.hpp>

#include <functional>
#include <utility>

namespace Bracewell::Impl {

/// A pair of operators of any type: the iterations are compiled once for all.
template <class Buffer>
struct OperatorPair {
  using Operator = std::function<void(const Buffer& from, const Buffer& to)>;
  Operator project, backproject, normal; ///< the last of pairs that have it
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
  pair.project(run.image, rest);
  run.residual(false);
  run.copy(rest, projected);
  run.multiply(projected, run.weights);
  run.fill(direction, 0);
  int iteration = 0;
  while (iteration < run.options.iterations && !run.finished()) {
    pair.backproject(projected, gradient);
    run.template sum<1>("Bracewell::LeastSquaresSolver::gradient", run.of_images,
                        MaskGradient<T>{gradient.data(), run.mask}, KeepGamma{run.states()});
    renew_direction(run, gradient, direction);
    pair.project(direction, projected);
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
  pair.project(run.image, rest);
  run.residual(false);
  pair.backproject(rest, gradient);
  run.template sum<1>("Bracewell::LeastSquaresSolver::gradient", run.of_images,
                      MaskGradient<T>{gradient.data(), run.mask}, KeepGamma{run.states()});
  run.copy(gradient, product);
  run.fill(direction, 0);
  int iteration = 0;
  while (iteration < run.options.iterations) {
    renew_direction(run, product, direction);
    pair.normal(direction, product);
    run.template sum<2>("Bracewell::LeastSquaresSolver::step", run.of_images,
                        Products<T>{direction.data(), product.data(), gradient.data(), {}},
                        KeepStep{run.states()});
    add_step(run, direction);
    run.template sum<1>("Bracewell::LeastSquaresSolver::gradient", run.of_images,
                        StepResidual<T>{run.states(), gradient.data(), product.data(), run.mask},
                        KeepGamma{run.states()});
    run.report(++iteration);
  }
  pair.project(run.image, rest);
  run.residual(false);
  return iteration;
}

/// The dual fields of total variation: differences of a pixel to the next one right and the next one below.
template <class T>
struct DualFields {
  T *right, *down;
};

/// What the rows of images have in common: where they lie, whose step they take, and the mask there.
template <class T>
struct ImageRows {
  const ProblemState* states;
  Factors<T> mask;
  std::int64_t size; ///< of a problem
  int rows, columns; ///< of images

  KOKKOS_FUNCTION std::int64_t begin(std::int64_t row) const { return row * columns; }
  KOKKOS_FUNCTION const ProblemState& state(std::int64_t row) const { return states[begin(row) / size]; }
  /// Of a row, or null: 1 everywhere.
  KOKKOS_FUNCTION const T* mask_of(std::int64_t row) const {
    return mask.values ? mask.values + begin(row) % mask.period : nullptr;
  }
};

/// z = y - step gradient where the mask is, y elsewhere, in place of the gradient: what is then smoothed. (The gradient
/// here is that of the data's misfit with its sign turned: back-projected residuals.)
template <class T>
struct GradientStep {
  ImageRows<T> image_rows;
  const T* point;
  T* gradient;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const T* const from = point + image_rows.begin(row);
    T* const own = gradient + image_rows.begin(row);
    const T* const mask = image_rows.mask_of(row);
    const T step = T(image_rows.state(row).step);
    const auto columns = Kokkos::ThreadVectorRange(member, image_rows.columns);
    if (mask == nullptr)
      Kokkos::parallel_for(columns, [&](int x) { own[x] = from[x] + step * own[x]; });
    else
      Kokkos::parallel_for(columns, [&](int x) { own[x] = from[x] + step * mask[x] * own[x]; });
  }
};

/// image = z - weight step (the transpose of differences of) the dual fields, not below zero where that is asked for.
/// Fields are 0 in the last column (right) and the last row (down), where there is no next pixel.
template <class T>
struct SmoothedImage {
  ImageRows<T> image_rows;
  const T* z;
  DualFields<const T> dual;
  T* image;
  double weight;
  bool nonnegative;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const std::int64_t begin = image_rows.begin(row);
    const int columns = image_rows.columns;
    const bool first = row % image_rows.rows == 0;
    const T *const from = z + begin, *const right = dual.right + begin, *const down = dual.down + begin,
                   *const above = first ? down : down - columns, *const mask = image_rows.mask_of(row);
    T* const own = image + begin;
    const T step = T(weight * image_rows.state(row).step), has_above = first ? T(0) : T(1),
            least = nonnegative ? T(0) : -Kokkos::Experimental::infinity_v<T>;
    const auto pixel = [&](int x, T left) {
      const T difference = left - right[x] - down[x] + has_above * above[x];
      own[x] = mask == nullptr || mask[x] > T(0) ? Kokkos::max(from[x] - step * difference, least) : from[x];
    };
    Kokkos::single(Kokkos::PerThread(member), [&] { pixel(0, T(0)); });
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, 1, columns),
                         [&](int x) { pixel(x, right[x - 1]); });
  }
};

/// A step of the dual fields along the differences of the image, back into the unit discs, with momentum (fast gradient
/// projection: Beck and Teboulle, IEEE Trans. Image Process. 18(11), 2009, section 4).
template <class T>
struct DualStep {
  ImageRows<T> image_rows;
  const T* image;
  DualFields<T> fields, ahead; ///< ahead: with momentum, where the image was taken
  double weight;
  T momentum;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const std::int64_t begin = image_rows.begin(row);
    const int last = image_rows.columns - 1;
    const bool is_last_row = row % image_rows.rows + 1 == image_rows.rows;
    const T *const own = image + begin, *const below = is_last_row ? own : own + image_rows.columns;
    T *const right = fields.right + begin, *const down = fields.down + begin,
             *const right_ahead = ahead.right + begin, *const down_ahead = ahead.down + begin;
    const double strength = 8 * weight * image_rows.state(row).step;
    const T rate = strength > 0 ? T(1 / strength) : T(0), own_momentum = momentum;
    const auto pixel = [&](int x, T next) {
      const T r = right_ahead[x] + rate * (next - own[x]), d = down_ahead[x] + rate * (below[x] - own[x]),
              scale = T(1) / Kokkos::sqrt(Kokkos::max(T(1), r * r + d * d)), new_right = scale * r,
              new_down = scale * d;
      right_ahead[x] = new_right + own_momentum * (new_right - right[x]);
      down_ahead[x] = new_down + own_momentum * (new_down - down[x]);
      right[x] = new_right;
      down[x] = new_down;
    };
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, last), [&](int x) { pixel(x, own[x + 1]); });
    Kokkos::single(Kokkos::PerThread(member), [&] { pixel(last, own[last]); });
  }
};

/// The next point: beyond the new image, by momentum; the new image takes the place of the old one.
template <class T>
struct NextPoint {
  ImageRows<T> image_rows;
  T *image, *point;
  const T* next;
  T momentum;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    if (image_rows.state(row).done)
      return;
    const std::int64_t begin = image_rows.begin(row);
    T *const own = image + begin, *const ahead = point + begin;
    const T* const from = next + begin;
    const T own_momentum = momentum;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, image_rows.columns), [&](int x) {
      ahead[x] = from[x] + own_momentum * (from[x] - own[x]);
      own[x] = from[x];
    });
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
  const ImageRows<T> rows{run.states(), run.mask, run.of_images.size, static_cast<int>(run.sizes.images[1]),
                          static_cast<int>(run.sizes.images[2])};
  const auto for_rows = [&](const char* label, const auto& body) {
    for_each_row(run.space, label, std::int64_t(point.size()) / rows.columns, body);
  };
  const LeastSquaresOptions& options = run.options;
  find_largest_eigenvalue(run, normal);
  run.copy(run.image, point);
  for (int k = 3; k < 7; ++k)
    run.fill(run.image_buffer(k), 0);
  Momentum momentum;
  int iteration = 0;
  while (iteration < options.iterations) {
    residual(point, z);
    if (run.finished())
      break;
    for_rows("Bracewell::LeastSquaresSolver::gradient_step", GradientStep<T>{rows, point.data(), z.data()});
    const auto smooth = [&](const DualFields<T>& dual) {
      for_rows("Bracewell::LeastSquaresSolver::smoothed", SmoothedImage<T>{rows,
                                                                           z.data(),
                                                                           {dual.right, dual.down},
                                                                           next.data(),
                                                                           options.total_variation,
                                                                           options.nonnegative});
    };
    Momentum inner;
    for (int k = 0; options.total_variation > 0 && k < options.inner_iterations; ++k) {
      smooth(ahead);
      for_rows("Bracewell::LeastSquaresSolver::dual",
               DualStep<T>{rows, next.data(), fields, ahead, options.total_variation, T(inner.next())});
    }
    smooth(fields);
    for_rows("Bracewell::LeastSquaresSolver::next",
             NextPoint<T>{rows, run.image.data(), point.data(), next.data(), T(momentum.next())});
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
    pair.project(image, projected);
    run.multiply(projected, run.weights);
    pair.backproject(projected, result);
  };
  const int made = fast_gradient(run, normal, [&](const Buffer& image, const Buffer& result) {
    pair.project(image, projected);
    run.residual(true);
    pair.backproject(projected, result);
  });
  if (made == run.options.iterations) { // of the last image, not of a point before it
    pair.project(run.image, projected);
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
  run.fill(rest, 0);
  run.residual(false); // the data
  pair.backproject(rest, backprojected);
  const int made = fast_gradient(run, pair.normal, [&](const Buffer& image, const Buffer& result) {
    pair.normal(image, result);
    run.for_each("Bracewell::LeastSquaresSolver::gradient", std::int64_t(result.size()),
                 SubtractFrom<T>{backprojected.data(), result.data()});
  });
  pair.project(run.image, rest);
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
  pair.project(change, rows);
  take_reciprocals(run, rows, run.weights);
  run.set_ones(rest, run.weights);
  pair.backproject(rest, columns);
  take_reciprocals(run, columns, {});
  int iteration = 0;
  while (iteration < run.options.iterations) {
    pair.project(run.image, rest);
    run.residual(false);
    if (run.finished())
      break;
    run.multiply(rest, {rows.data(), std::int64_t(rows.size())});
    pair.backproject(rest, change);
    run.for_each("Bracewell::LeastSquaresSolver::images", std::int64_t(change.size()),
                 SirtStep<T>{run.states(), run.image.data(), change.data(), columns.data(), run.mask,
                             run.of_images.size, T(run.options.relaxation), run.options.nonnegative});
    run.report(++iteration);
  }
  if (iteration ==
      run.options.iterations) { // what was left before the last step is not what is left after it
    pair.project(run.image, rest);
    run.residual(false);
  }
  return iteration;
}

} // namespace Bracewell::Impl
