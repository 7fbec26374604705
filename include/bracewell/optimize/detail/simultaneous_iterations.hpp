// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/optimize/detail/least_squares_run.hpp>

namespace Bracewell::Impl {

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
  return iteration;
}

} // namespace Bracewell::Impl
