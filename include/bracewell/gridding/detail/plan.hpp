// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/cost.hpp>
#include <bracewell/gridding/detail/rays.hpp>
#include <bracewell/gridding/detail/tile_lists.hpp>
#include <bracewell/impl/checks.hpp>

#include <array>
#include <limits>
#include <optional>

namespace Bracewell::Impl {

/// Checks what a plan is asked for.
template <class T, int Dim>
void check_options(const Arguments& arguments, const std::array<int, Dim>& shape, std::int64_t points,
                   const GriddingOptions& options) {
  arguments.require(points < std::int64_t(1) << 32, "points", "at most 2^32 - 1 points",
                    [&] { return number(points); });
  for (const int size : shape)
    arguments.require(size >= 1 && size <= 32768, "shape", "sizes from 1 to 32768",
                      [&] { return number(size); });
  arguments.at_least<std::int64_t>("options.slices", options.slices, 0);
  const double least = sizeof(T) == 4 ? 1e-7 : 1e-14;
  arguments.require(
      options.tolerance >= least && options.tolerance < 1, "options.tolerance",
      [&] { return "from " + number(least) + " to 1"; }, [&] { return number(options.tolerance); });
  arguments.within("options.oversampling", options.oversampling.value_or(2), 1.2, 8.);
}

/// Checks the shape of samples.
template <class Value, class MemorySpace>
void check_samples(const Arguments& arguments, const Array<Value, MemorySpace>& samples, SampleOrder order,
                   std::int64_t points, std::int64_t slices) {
  const bool last = order == SampleOrder::SlicesLast;
  arguments.shape("samples", samples, {last ? points : slices, last ? slices : points});
}

/// Checks the shape of grids or images of all slices.
template <class Value, class MemorySpace, std::size_t Dim>
void check_slices(const Arguments& arguments, const char* argument, const Array<Value, MemorySpace>& array,
                  std::int64_t slices, const std::array<int, Dim>& shape) {
  if constexpr (Dim == 2)
    arguments.shape(argument, array, {slices, shape[0], shape[1]});
  else
    arguments.shape(argument, array, {slices, shape[0], shape[1], shape[2]});
}

/// What a Gridding plan holds, and how it is made.
template <class Space, class T, int Dim>
struct GriddingPlan {
  using Complex = Kokkos::complex<T>;
  template <class Value>
  using Vector = Kokkos::View<Value*, Space>;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;

  SpreadingProblem<T, Dim> problem = {};
  GriddingStrategy strategy;
  SampleOrder order;
  std::array<Vector<const T>, Dim> rolloff; ///< reciprocal transforms of the kernel, slowest axis first
  std::vector<T> table_values;              ///< the kernel's polynomials, and the same on the device
  Vector<T> table;
  Vector<Location<T, Dim>> locations;
  std::optional<Rays<Space>> rays; ///< PrunedGather
  TileLists<Space, T, Dim> tiles;  ///< Tiles
  Vector<Complex> partial;         ///< sums of several teams: Tiles on GPUs, Duplicated

  /// A plan for points [points, Dim]; `polar` where they lie on rays.
  template <class Points>
  GriddingPlan(const Space& space, const Points& points, std::int64_t count,
               const std::array<int, Dim>& shape, const GriddingOptions& options, const Arguments& arguments,
               std::optional<Rays<Space>> polar = {})
      : strategy(options.strategy), order(options.order) {
    problem.points = count;
    problem.slices = options.slices;
    const KernelPolynomials kernel = choose_kernel_and_grid(space, shape, options, arguments);
    arguments.require(strategy != GriddingStrategy::PrunedGather || polar, "options.strategy",
                      "Atomic or Tiles for points that are not on rays in 2D", "PrunedGather");
    arguments.require(strategy != GriddingStrategy::Duplicated || is_host<Space>, "options.strategy",
                      "Duplicated on hosts only", "it on a GPU");
    store(space, kernel, shape);
    locate(space, points, arguments);
    if (strategy == GriddingStrategy::PrunedGather)
      rays = std::move(polar);
    if (strategy == GriddingStrategy::Duplicated)
      partial = device_vector<Complex>(space, "Bracewell::Gridding::duplicates",
                                       problem.grid.elements() * space.concurrency());
    if (strategy == GriddingStrategy::Tiles) {
      tiles = TileLists<Space, T, Dim>(space, problem);
      partial = device_vector<Complex>(space, "Bracewell::Gridding::partial_sums",
                                       std::int64_t(tiles.slots) * slice_chunks() *
                                           TileEdges<Space, T, Dim>::cells * tuning_of<Space>.tile_slices);
    }
    space.fence("Bracewell::Gridding: the plan is complete");
  }

  template <int MaxWidth>
  TapTable<T, MaxWidth> taps() const {
    return {problem.kernel, table_values};
  }

  template <class Value>
  SampleArray<Value> samples(Value* data) const {
    const bool last = order == SampleOrder::SlicesLast;
    return {data, last ? problem.slices : 1, last ? 1 : problem.points};
  }

  /// Chunks of slices that teams of SpreadTilesGpu take.
  int slice_chunks() const {
    constexpr int slices = tuning_of<Space>.tile_slices;
    return static_cast<int>((problem.slices + slices - 1) / slices);
  }

  std::size_t memory_bytes() const {
    return locations.size() * sizeof(Location<T, Dim>) + tiles.list.size() * sizeof(std::uint32_t) +
           tiles.tasks.size() * sizeof(TileTask) + partial.size() * sizeof(Complex);
  }

private:
  /// Kernel, grid and strategy: by default those that are expected to take the least time.
  KernelPolynomials choose_kernel_and_grid(const Space& space, const std::array<int, Dim>& shape,
                                           const GriddingOptions& options, const Arguments& arguments) {
    std::optional<KernelPolynomials> kernel;
    double least = std::numeric_limits<double>::infinity();
    for (const double unasked :
         {2., least_oversampling(options.tolerance, double(std::numeric_limits<T>::epsilon()))}) {
      const double oversampling = options.oversampling.value_or(unasked);
      KernelPolynomials candidate = choose_kernel(options.kernel, options.tolerance, oversampling, Dim);
      const GridShape<Dim> grid = grid_of(shape, candidate.width, oversampling);
      const GriddingWork work{.points = double(problem.points),
                              .slices = double(problem.slices),
                              .cells = double(grid.elements()),
                              .width = candidate.width,
                              .dimensions = Dim,
                              .host = is_host<Space>,
                              .threads = double(space.concurrency())};
      if (candidate.width > KernelShape::max_width || !(gridding_and_fft_cost(work) < least))
        continue;
      least = gridding_and_fft_cost(work);
      kernel = std::move(candidate);
      problem.grid = grid;
      if (options.strategy == GriddingStrategy::Automatic)
        strategy = choose_gridding_strategy(work);
    }
    arguments.require(kernel.has_value(), "options.tolerance",
                      "one that a kernel of at most 32 grid points can reach",
                      [&] { return number(options.tolerance) + " (more oversampling helps)"; });
    return *std::move(kernel);
  }

  static GridShape<Dim> grid_of(const std::array<int, Dim>& shape, int width, double oversampling) {
    GridShape<Dim> grid;
    for (int d = 0; d < Dim; ++d) {
      const auto padded = static_cast<std::int64_t>(std::ceil(oversampling * shape[Dim - 1 - d]));
      const std::int64_t least = std::max<std::int64_t>({padded, 2 * width, 32});
      grid.size[d] = static_cast<int>(gridding_size(least, is_host<Space>));
    }
    return grid;
  }

  /// The kernel's polynomials and the reciprocal of their transform.
  void store(const Space& space, const KernelPolynomials& kernel, const std::array<int, Dim>& shape) {
    const int stride = kernel.width <= common_max_width<T> ? common_max_width<T> : KernelShape::max_width;
    table_values.assign((kernel.degree + 1) * stride, T(0));
    for (int power = 0; power <= kernel.degree; ++power)
      for (int tap = 0; tap < kernel.width; ++tap)
        table_values[power * stride + tap] = static_cast<T>(kernel.coefficients[power * kernel.width + tap]);
    table = device_copy(space, "Bracewell::Gridding::kernel", table_values);
    problem.kernel = {table.data(), kernel.width, kernel.degree, stride};
    for (int axis = 0; axis < Dim; ++axis) {
      std::vector<T> values(shape[axis]);
      for (int i = 0; i < shape[axis]; ++i)
        values[i] = static_cast<T>(
            1 / kernel.transform(double(i - shape[axis] / 2) / problem.grid.size[Dim - 1 - axis]));
      rolloff[axis] = device_copy(space, "Bracewell::Gridding::rolloff", values);
    }
  }

  template <class Points>
  void locate(const Space& space, const Points& points, const Arguments& arguments) {
    locations = device_vector<Location<T, Dim>>(space, "Bracewell::Gridding::locations", problem.points);
    problem.locations = locations.data();
    std::int64_t not_finite = 0;
    Kokkos::parallel_reduce(
        "Bracewell::Gridding::locate", Range(space, 0, problem.points),
        Locate<Points, T, Dim>{points, locations.data(), problem.grid, problem.kernel.width}, not_finite);
    arguments.require(not_finite == 0, "points", "finite frequencies",
                      [&] { return number(not_finite) + " that are not"; });
  }
};

} // namespace Bracewell::Impl
