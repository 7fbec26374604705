// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/gridding/cost.hpp>
#include <bracewell/gridding/detail/bins/bin_grid.hpp>
#include <bracewell/gridding/detail/kernel.hpp>
#include <bracewell/gridding/detail/taps.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/image_on_grid.hpp>
#include <bracewell/impl/matrix_units.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace Bracewell::Impl {

/// Checks what a plan is asked for.
template <class T, int Dim>
void check_options(const Arguments& arguments, const std::array<int, Dim>& shape, std::int64_t points,
                   const GriddingOptions& options) {
  arguments.require(points < std::int64_t(1) << 32, "points", "at most 2^32 - 1 points",
                    [&] { return number(points); });
  constexpr int most = Dim == 1 ? 1 << 26 : 32768;
  for (const int size : shape)
    arguments.require(
        size >= 1 && size <= most, "shape", [] { return "sizes from 1 to " + number(most); },
        [&] { return number(size); });
  arguments.at_least<std::int64_t>("options.slices", options.slices, 0);
  const double least = sizeof(T) == 4 ? 1e-7 : 1e-14;
  arguments.require(
      options.tolerance >= least && options.tolerance < 1, "options.tolerance",
      [&] { return "from " + number(least) + " to 1"; }, [&] { return number(options.tolerance); });
  arguments.require(options.sign == 1 || options.sign == -1, "options.sign", "1 or -1",
                    [&] { return number(options.sign); });
  arguments.within("options.oversampling", options.oversampling.value_or(2), 1.2, 8.);
}

/// Checks the shape of samples; returns their number of slices, which is at most `slices`.
template <class Value, class MemorySpace>
std::int64_t check_samples(const Arguments& arguments, const char* argument,
                           const Array<Value, MemorySpace>& samples, SampleOrder order, std::int64_t points,
                           std::int64_t slices) {
  const bool last = order == SampleOrder::SlicesLast;
  if (samples && samples.rank == 2)
    slices = std::min(slices, samples.extents[last ? 1 : 0]);
  arguments.shape(argument, samples, {last ? points : slices, last ? slices : points});
  return slices;
}

/// Checks the shape of grids or images of all slices.
template <class Value, class MemorySpace, std::size_t Dim>
void check_slices(const Arguments& arguments, const char* argument, const Array<Value, MemorySpace>& array,
                  std::int64_t slices, const std::array<int, Dim>& shape) {
  if constexpr (Dim == 1)
    arguments.shape(argument, array, {slices, shape[0]});
  else if constexpr (Dim == 2)
    arguments.shape(argument, array, {slices, shape[0], shape[1]});
  else
    arguments.shape(argument, array, {slices, shape[0], shape[1], shape[2]});
}

/// Kernel, grid and strategy of a plan: by default those that are expected to take the least time.
template <class Space, class T, int Dim>
struct GriddingChoice {
  std::optional<ChosenKernel> kernel;
  GridShape<Dim> grid;
  GriddingStrategy strategy;

  GriddingChoice(const Space& space, std::int64_t points, bool polar, const std::array<int, Dim>& shape,
                 const GriddingOptions& options, const Arguments& arguments)
      : strategy(options.strategy) {
    constexpr double epsilon = std::numeric_limits<T>::epsilon();
    double least = std::numeric_limits<double>::infinity();
    bool too_wide = false; // for bins
    // Most errors lie at the edges of images, which a kernel's mean error takes for narrow. Of few pixels they are many.
    // (NonuniformSums asks for an oversampling, and knows its kernel by the tolerance alone.)
    const bool few = !options.oversampling && *std::min_element(shape.begin(), shape.end()) < 64;
    const double margin = few ? 0.7 : 1;
    for (const double oversampling :
         options.kernel         ? std::vector{options.oversampling.value_or(2)}
         : options.oversampling ? asked_oversamplings(*options.oversampling)
                                : unasked_oversamplings(options.tolerance, epsilon, is_host<Space>, Dim)) {
      if (options.oversampling && kernel)
        break;
      ChosenKernel candidate =
          options.kernel
              ? chosen_kernel(*options.kernel, arguments, options.tolerance, oversampling, Dim, epsilon)
              : choose_kernel(margin * options.tolerance, oversampling, Dim, margin * epsilon);
      const GridShape<Dim> candidate_grid =
          grid_of(shape, candidate.width, oversampling, options.oversampling.has_value());
      const GriddingWork work{.points = double(points),
                              .slices = double(options.slices),
                              .cells = double(candidate_grid.elements()),
                              .width = candidate.width,
                              .dimensions = Dim,
                              .host = is_host<Space>,
                              .bins_fit = bins_fit(space, candidate_grid, candidate.width),
                              .order = options.order,
                              .value_bytes = sizeof(T)};
      const bool possible =
          candidate.width <= KernelShape::max_width && (work.bins_fit || !sorts_into_bins(options.strategy));
      too_wide = too_wide || candidate.width <= KernelShape::max_width;
      if (!possible || !(gridding_and_fft_cost(work) < least))
        continue;
      least = gridding_and_fft_cost(work);
      kernel = std::move(candidate);
      grid = candidate_grid;
      if (options.strategy == GriddingStrategy::Automatic) {
        // Matrix units pay where a grid has few samples for its cells: that is no reason to take a larger one.
        GriddingWork with_matrices = work;
        with_matrices.matrices = !is_host<Space> && matrix_units;
        strategy = choose_gridding_strategy(with_matrices);
      }
    }
    // Images of few pixels have a larger grid than was asked for: narrower kernels are as good on it.
    if (is_host<Space> && kernel && !options.kernel && !options.oversampling)
      if (const double larger = oversampling_of(shape); larger >= 1.1 * kernel->needs.oversampling)
        kernel = choose_kernel(margin * options.tolerance, larger, Dim, margin * epsilon);
    arguments.require(kernel || !too_wide, "options.strategy",
                      "Bins for a kernel of at most 16 grid points whose tiles scratch memory has room for",
                      [&] { return "tolerance " + number(options.tolerance) + ", which needs a wider one"; });
    arguments.require(kernel.has_value(), "options.tolerance",
                      "one that a kernel of at most 16 grid points can reach",
                      [&] { return number(options.tolerance) + " (more oversampling helps)"; });
    arguments.require(Dim > 1 || strategy != GriddingStrategy::Tiles, "options.strategy",
                      "another one in one dimension", "Tiles");
    arguments.require(strategy != GriddingStrategy::PrunedGather || polar, "options.strategy",
                      "Atomic or Tiles for points that are not on rays in 2D", "PrunedGather");
    arguments.require(strategy != GriddingStrategy::Tiles || !is_host<Space>, "options.strategy",
                      "another one on hosts", "Tiles");
    if (options.strategy == GriddingStrategy::OwnedBoxes || options.strategy == GriddingStrategy::MatrixBoxes)
      arguments.require(has_boxes(space, strategy, grid, kernel->width, options.slices), "options.strategy",
                        "another one but in 3D on GPUs with room for boxes in scratch memory, and matrix "
                        "units for MatrixBoxes",
                        strategy == GriddingStrategy::OwnedBoxes ? "OwnedBoxes" : "MatrixBoxes");
  }

  int table_size() const { return (kernel->degree + 1) * TapWeights<T>::stride; }

  /// Whether there are teams for OwnedBoxes, or MatrixBoxes.
  static bool has_boxes(const Space& space, GriddingStrategy boxes, const GridShape<Dim>& grid, int width,
                        std::int64_t slices) {
    if constexpr (Dim == 3 && !is_host<Space>) {
      const bool owned = boxes == GriddingStrategy::OwnedBoxes;
      return (owned || matrix_units) && boxes_fit(space, bin_grid<Space, T, Dim>(space, grid, width),
                                                  owned ? BoxLimits::owned_edge : matrix_box_edge, slices);
    }
    return false;
  }

private:
  static bool bins_fit(const Space& space, const GridShape<Dim>& grid, int width) {
    return bin_scratch_bytes(bin_grid<Space, T, Dim>(space, grid, width), sizeof(T)) <= most_scratch(space);
  }

  /// Of the grid along all axes, in eighths: each has a kernel of its own, which takes milliseconds to fit once.
  double oversampling_of(const std::array<int, Dim>& shape) const {
    double least = 4;
    for (int d = 0; d < Dim; ++d)
      least = std::min(least, grid.size[d] / double(shape[std::size_t(Dim - 1 - d)]));
    return std::floor(8 * least) / 8;
  }

  static GridShape<Dim> grid_of(const std::array<int, Dim>& shape, int width, double oversampling,
                                bool asked) {
    GridShape<Dim> grid;
    for (int d = 0; d < Dim; ++d) {
      const auto padded =
          static_cast<std::int64_t>(std::ceil(oversampling * shape[std::size_t(Dim - 1 - d)]));
      // Images of few pixels are all edge, where a grid that is hardly larger has most of its errors.
      const std::int64_t small = !is_host<Space> ? 32
                                 : asked         ? 1
                                                 : std::min(2 * shape[std::size_t(Dim - 1 - d)], 32);
      const std::int64_t least = std::max<std::int64_t>({padded, 2 * width, small});
      grid.size[d] = static_cast<int>(gridding_size(least, is_host<Space>));
    }
    return grid;
  }
};

} // namespace Bracewell::Impl
