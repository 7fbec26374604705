// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/optimize/detail/least_squares_run.hpp>

namespace Bracewell::Impl {

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

} // namespace Bracewell::Impl
