// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/cost.hpp>
#include <bracewell/gridding/detail/bin_grid.hpp>
#include <bracewell/gridding/detail/bins.hpp>
#include <bracewell/gridding/detail/rays.hpp>
#include <bracewell/gridding/detail/reciprocal_transform.hpp>
#include <bracewell/gridding/detail/tile_lists.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/matrix_units.hpp>

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
  std::optional<KernelPolynomials> kernel;
  GridShape<Dim> grid;
  GriddingStrategy strategy;

  GriddingChoice(const Space& space, std::int64_t points, bool polar, const std::array<int, Dim>& shape,
                 const GriddingOptions& options, const Arguments& arguments)
      : strategy(options.strategy) {
    constexpr double epsilon = std::numeric_limits<T>::epsilon();
    double least = std::numeric_limits<double>::infinity();
    bool too_wide = false; // for bins
    for (const double oversampling :
         options.oversampling ? asked_oversamplings(*options.oversampling)
                              : unasked_oversamplings(options.tolerance, epsilon, is_host<Space>, Dim)) {
      if (options.oversampling && kernel)
        break;
      KernelPolynomials candidate =
          choose_kernel(options.tolerance, oversampling, Dim, double(std::numeric_limits<T>::epsilon()));
      const GridShape<Dim> candidate_grid = grid_of(shape, candidate.width, oversampling);
      const GriddingWork work{.points = double(points),
                              .slices = double(options.slices),
                              .cells = double(candidate_grid.elements()),
                              .width = candidate.width,
                              .dimensions = Dim,
                              .host = is_host<Space>,
                              .bins_fit = bins_fit(space, candidate_grid, candidate.width),
                              .order = options.order};
      const bool possible = candidate.width <= KernelShape::max_width &&
                            (work.bins_fit || options.strategy != GriddingStrategy::Bins);
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
  }

  int table_size() const { return (kernel->degree + 1) * TapWeights<T>::stride; }

private:
  static bool bins_fit(const Space& space, const GridShape<Dim>& grid, int width) {
    return bin_scratch_bytes(bin_grid<Space, T, Dim>(space, grid, width), sizeof(T)) <= most_scratch(space);
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
};

/// What a Gridding plan holds, and how it is made.
template <class Space, class T, int Dim>
struct GriddingPlan {
  using Choice = GriddingChoice<Space, T, Dim>;
  using Complex = Kokkos::complex<T>;
  template <class Value>
  using Vector = Kokkos::View<Value*, Space>;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  static constexpr bool has_tiles = Dim > 1 && !is_host<Space>;
  using Tiles = std::conditional_t<has_tiles, TileLists<Space, T, Dim>, NoTiles>;

  SpreadingProblem<T, Dim> problem = {};
  GriddingStrategy strategy;
  SampleOrder order;
  std::array<Vector<const T>, Dim> rolloff; ///< reciprocal transforms of the kernel, slowest axis first
  std::vector<T> table_values;              ///< the kernel's polynomials, and the same on the device
  Vector<T> table;
  Vector<Location<T, Dim>> locations;
  std::optional<Rays<Space>> rays; ///< PrunedGather
  Tiles tiles;                     ///< Tiles
  Bins<Space, T, Dim> bins;        ///< Bins: locations lie in their order
  Vector<Complex> partial;         ///< sums of several teams: Tiles, Bins

  /// A plan for points [points, Dim]; `polar` where they lie on rays.
  template <class Points>
  GriddingPlan(const Space& space, const Points& points, std::int64_t count,
               const std::array<int, Dim>& shape, const GriddingOptions& options, const Arguments& arguments,
               std::optional<Rays<Space>> polar = {})
      : order(options.order) {
    const Choice choice(space, count, polar.has_value(), shape, options, arguments);
    strategy = choice.strategy;
    problem.points = count;
    problem.slices = options.slices;
    problem.grid = choice.grid;
    store(space, choice, shape);
    set_points(space, points, arguments);
    if (strategy == GriddingStrategy::PrunedGather)
      rays = std::move(polar);
    space.fence("Bracewell::Gridding: the plan is complete");
  }

  /// Sorts as many points as the plan has. Memory is used again, or taken anew where other points need more.
  template <class Points>
  void set_points(const Space& space, const Points& points, const Arguments& arguments) {
    if (static_cast<std::int64_t>(locations.size()) != problem.points)
      locations = device_vector<Location<T, Dim>>(space, "Bracewell::Gridding::locations", problem.points);
    problem.locations = locations.data();
    std::int64_t not_finite = 0, sums = 0;
    if (strategy == GriddingStrategy::Bins) {
      bins.grid = bin_grid<Space, T, Dim>(space, problem.grid, problem.kernel.width);
      const PointLocations<Points, T, Dim> where{points, problem.grid, problem.kernel.width};
      not_finite = bins.sort(space, where, problem.points, locations.data());
      const std::int64_t tasks = std::max<std::int64_t>(1, bins.tasks.size());
      arguments.within<std::int64_t>("options.slices", problem.slices, 0,
                                     std::numeric_limits<int>::max() / tasks, " (of a launch of bins)");
      sums = bin_sums(bins.slots, problem.slices, bins.grid);
      const std::int64_t turns = bins.turn_count(bins.grid, problem.slices);
      if (static_cast<std::int64_t>(bins.turn_of_bins.size()) != turns)
        bins.turn_of_bins = device_vector<std::uint32_t>(space, "Bracewell::Gridding::turns", turns);
    } else {
      not_finite = locate(space, points);
    }
    arguments.require(not_finite == 0, "points", "finite frequencies",
                      [&] { return number(not_finite) + " that are not"; });
    if constexpr (has_tiles)
      if (strategy == GriddingStrategy::Tiles) {
        tiles = Tiles(space, problem);
        sums = partial_sums(tiles.slots, problem.slices);
      }
    if (static_cast<std::int64_t>(partial.size()) < sums)
      partial = device_vector<Complex>(space, "Bracewell::Gridding::partial_sums", sums);
    space.fence("Bracewell::Gridding: the points are sorted");
  }

  template <int MaxWidth>
  TapTable<T, MaxWidth> taps() const {
    return {problem.kernel, table_values};
  }

  /// The problem of a call with so many slices, at most those of the plan.
  SpreadingProblem<T, Dim> problem_of(std::int64_t slices) const {
    SpreadingProblem<T, Dim> result = problem;
    result.slices = slices;
    return result;
  }

  template <class Value>
  SampleArray<Value> samples(Value* data, std::int64_t slices) const {
    const bool last = order == SampleOrder::SlicesLast;
    return {data, last ? slices : 1, last ? 1 : problem.points};
  }

  /// Chunks of slices that teams of SpreadTilesGpu take.
  static int slice_chunks(std::int64_t slices) {
    constexpr int together = gpu_gridding_tuning.tile_slices;
    return static_cast<int>((slices + together - 1) / together);
  }

  std::size_t memory_bytes() const {
    std::size_t bytes =
        tiles.memory_bytes() + bytes_of(table, locations, bins.order, bins.first, bins.chunks.order,
                                        bins.tasks, bins.split, bins.turn_of_bins, partial);
    for (const auto& axis : rolloff)
      bytes += bytes_of(axis);
    if (rays)
      bytes += Rays<Space>::bytes_needed(rays->order.size());
    return bytes;
  }

  /// What memory_bytes() of a plan with these points would be, which lie on so many rays, or on none.
  template <class Points>
  static std::size_t bytes_needed(const Space& space, const Points& points, std::int64_t count,
                                  const std::array<int, Dim>& shape, const GriddingOptions& options,
                                  const Arguments& arguments, std::optional<std::size_t> rays = {}) {
    const Choice choice(space, count, rays.has_value(), shape, options, arguments);
    std::size_t reals = static_cast<std::size_t>(choice.table_size()); // and the roll-off
    for (const int size : shape)
      reals += static_cast<std::size_t>(size);
    const std::size_t bytes = reals * sizeof(T) + static_cast<std::size_t>(count) * sizeof(Location<T, Dim>);
    if (choice.strategy == GriddingStrategy::PrunedGather)
      return bytes + Rays<Space>::bytes_needed(*rays);
    const PointLocations<Points, T, Dim> where{points, choice.grid, choice.kernel->width};
    if (choice.strategy == GriddingStrategy::Bins) {
      const auto grid = bin_grid<Space, T, Dim>(space, choice.grid, choice.kernel->width);
      const auto tasks = Bins<Space, T, Dim>::tasks_of(space, where, count, grid);
      const std::int64_t numbers = count + SampleChunks<Space>::count(count) + grid.count() + 1 +
                                   Bins<Space, T, Dim>::turn_count(grid, options.slices);
      return bytes + static_cast<std::size_t>(numbers) * sizeof(std::uint32_t) + tasks.bytes() +
             static_cast<std::size_t>(bin_sums(tasks.slots, options.slices, grid)) * sizeof(Complex);
    }
    if constexpr (has_tiles)
      if (choice.strategy == GriddingStrategy::Tiles) {
        const TileTasks tasks = Tiles::tasks_of(space, where, count);
        return bytes + tasks.bytes() +
               static_cast<std::size_t>(partial_sums(tasks.slots, options.slices)) * sizeof(Complex);
      }
    return bytes;
  }

private:
  /// Elements of `partial`.
  static std::int64_t partial_sums(int slots, std::int64_t slices) {
    return std::int64_t(slots) * slice_chunks(slices) * TileEdges<Dim>::cells *
           gpu_gridding_tuning.tile_slices;
  }
  static std::int64_t bin_sums(int slots, std::int64_t slices, const BinGrid<Dim>& bins) {
    return slots * slices * bins.tile_cells();
  }

  /// The kernel's polynomials and the reciprocal of their transform.
  void store(const Space& space, const Choice& choice, const std::array<int, Dim>& shape) {
    const KernelPolynomials& kernel = *choice.kernel;
    constexpr int stride = TapWeights<T>::stride;
    table_values.assign(choice.table_size(), T(0));
    for (int power = 0; power <= kernel.degree; ++power)
      for (int tap = 0; tap < kernel.width; ++tap)
        table_values[power * stride + tap] = static_cast<T>(kernel.coefficients[power * kernel.width + tap]);
    table = device_copy(space, "Bracewell::Gridding::kernel", table_values);
    problem.kernel = {table.data(), kernel.width, kernel.degree};
    std::vector<T> values;
    for (int axis = 0; axis < Dim; ++axis) {
      const int size = shape[axis], grid = problem.grid.size[Dim - 1 - axis];
      if (axis == 0 || size != shape[axis - 1] || grid != problem.grid.size[Dim - axis]) {
        values.resize(size);
        const ReciprocalTransform reciprocal(kernel, std::max(size / 2, 1) / double(grid));
        for (int i = 0; i <= size / 2; ++i) { // it is even
          values[i] = static_cast<T>(reciprocal(double(i - size / 2) / grid));
          if (const int mirrored = size / 2 * 2 - i; mirrored < size)
            values[mirrored] = values[i];
        }
      }
      rolloff[axis] = device_copy(space, "Bracewell::Gridding::rolloff", values);
    }
  }

  /// How many are not finite.
  template <class Points>
  std::int64_t locate(const Space& space, const Points& points) {
    std::int64_t not_finite = 0;
    Kokkos::parallel_reduce(
        "Bracewell::Gridding::locate", Range(space, 0, problem.points),
        Locate<Points, T, Dim>{{points, problem.grid, problem.kernel.width}, locations.data()}, not_finite);
    return not_finite;
  }
};

} // namespace Bracewell::Impl
