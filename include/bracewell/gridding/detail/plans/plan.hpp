// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/cost.hpp>
#include <bracewell/gridding/detail/bins/bin_grid.hpp>
#include <bracewell/gridding/detail/bins/sorted_samples.hpp>
#include <bracewell/gridding/detail/kernel.hpp>
#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/detail/plans/plan_choice.hpp>
#include <bracewell/gridding/detail/rays.hpp>
#include <bracewell/gridding/detail/tiles/tile_lists.hpp>
#include <bracewell/gridding/options.hpp>
#include <bracewell/impl/checks.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <vector>

namespace Bracewell::Impl {

/// What a Gridding plan holds, and how it is made.
template <class Space, class T, int Dim>
struct GriddingPlan {
  using Choice = GriddingChoice<Space, T, Dim>;
  template <class Value>
  using Vector = Kokkos::View<Value*, Space>;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  using Sorted = SortedSamples<Space, T, Dim>;
  using Stored = typename StoredLocations<T, Dim>::Value;
  static constexpr bool has_tiles = Dim > 1 && !is_host<Space>;
  using Tiles = std::conditional_t<has_tiles, TileLists<Space, T, Dim>, NoTiles>;

  SpreadingProblem<T, Dim> problem = {};
  bool automatic; ///< the strategy was not asked for
  GriddingStrategy strategy;
  GriddingInterpolation interpolation;
  SampleOrder order;
  std::array<Vector<const T>, Dim> rolloff; ///< reciprocal transforms of the kernel, slowest axis first
  std::vector<T> table_values;              ///< the kernel's polynomials, and the same on the device
  Vector<T> table;
  Vector<Stored> locations;        ///< in the order of bins where samples are sorted into them
  std::optional<Rays<Space>> rays; ///< PrunedGather
  Tiles tiles;                     ///< Tiles
  Sorted sorted;                   ///< Bins, OwnedBoxes, MatrixBoxes

  /// A plan for points [points, Dim]; `polar` where they lie on rays.
  GriddingPlan(const Space& space, const PointArray& points, std::int64_t count,
               const std::array<int, Dim>& shape, const GriddingOptions& options, const Arguments& arguments,
               std::optional<Rays<Space>> polar = {})
      : automatic(options.strategy == GriddingStrategy::Automatic), order(options.order) {
    const Choice choice(space, count, polar.has_value(), shape, options, arguments);
    strategy = choice.strategy;
    problem.points = count;
    problem.slices = options.slices;
    problem.grid = choice.grid;
    store(space, choice, shape, options.kernel.has_value());
    set_points(space, points, arguments);
    if (strategy == GriddingStrategy::PrunedGather)
      rays = std::move(polar);
    space.fence("Bracewell::Gridding: the plan is complete");
  }

  /// Sorts as many points as the plan has, and decides what depends on how they lie. Memory is used again, or taken anew
  /// where other points need more.
  void set_points(const Space& space, const PointArray& points, const Arguments& arguments) {
    if (static_cast<std::int64_t>(locations.size()) != problem.points)
      locations = device_vector<Stored>(space, "Bracewell::Gridding::locations", problem.points);
    const PointLocations<T, Dim> where{points, problem.grid, problem.kernel.width};
    problem.locations = {locations.data(), where.least_offset()};
    std::int64_t not_finite = 0;
    if (sorts_into_bins(strategy)) {
      sorted.bins = bin_grid<Space, T, Dim>(space, problem.grid, problem.kernel.width);
      not_finite = sorted.sort(space, where, problem.points, problem.slices, problem.locations, arguments);
    } else {
      Kokkos::parallel_reduce("Bracewell::Gridding::locate", Range(space, 0, problem.points),
                              Locate<T, Dim>{where, problem.locations}, not_finite);
    }
    arguments.require(not_finite == 0, "points", "finite frequencies",
                      [&] { return number(not_finite) + " that are not"; });
    if constexpr (has_tiles)
      if (strategy == GriddingStrategy::Tiles)
        tiles.list_samples(space, problem);
    choose(space);
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

  std::size_t memory_bytes() const {
    std::size_t bytes = bytes_of(table, locations) + tiles.memory_bytes() + sorted.memory_bytes();
    for (const auto& axis : rolloff)
      bytes += bytes_of(axis);
    if (rays)
      bytes += Rays<Space>::bytes_needed(rays->order.size());
    return bytes;
  }

  /// What memory_bytes() of a plan with these points would be, which lie on so many rays, or on none.
  static std::size_t bytes_needed(const Space& space, const PointArray& points, std::int64_t count,
                                  const std::array<int, Dim>& shape, const GriddingOptions& options,
                                  const Arguments& arguments, std::optional<std::size_t> rays = {}) {
    const Choice choice(space, count, rays.has_value(), shape, options, arguments);
    std::size_t reals = static_cast<std::size_t>(choice.table_size()); // and the roll-off
    for (const int size : shape)
      reals += static_cast<std::size_t>(size);
    const std::size_t bytes = reals * sizeof(T) + static_cast<std::size_t>(count) * sizeof(Stored);
    const PointLocations<T, Dim> where{points, choice.grid, choice.kernel->width};
    if (choice.strategy == GriddingStrategy::PrunedGather)
      return bytes + Rays<Space>::bytes_needed(*rays);
    if (sorts_into_bins(choice.strategy))
      return bytes + Sorted::bytes_needed(space, where, count, options.slices,
                                          bin_grid<Space, T, Dim>(space, choice.grid, choice.kernel->width));
    if constexpr (has_tiles)
      if (choice.strategy == GriddingStrategy::Tiles)
        return bytes + Tiles::bytes_needed(space, where, count, options.slices);
    return bytes;
  }

private:
  /// What spreads sorted samples, where it was not asked for, and what interpolates.
  void choose(const Space& space) {
    const auto has = [&](GriddingStrategy boxes) {
      return Choice::has_boxes(space, boxes, problem.grid, problem.kernel.width, problem.slices);
    };
    if (automatic && sorts_into_bins(strategy))
      strategy = choose_sorted_strategy({.points = double(problem.points),
                                         .slices = double(problem.slices),
                                         .largest_bin = double(sorted.largest),
                                         .largest_box = sorted.box,
                                         .width = problem.kernel.width,
                                         .dimensions = Dim,
                                         .order = order,
                                         .value_bytes = sizeof(T),
                                         .lanes = double(space.concurrency()),
                                         .cells = double(problem.grid.elements()),
                                         .boxes = has(GriddingStrategy::OwnedBoxes),
                                         .matrices = has(GriddingStrategy::MatrixBoxes)});
    interpolation = choose_interpolation({.strategy = strategy,
                                          .order = order,
                                          .slices = problem.slices,
                                          .width = problem.kernel.width,
                                          .dimensions = Dim,
                                          .value_bytes = sizeof(T),
                                          .host = is_host<Space>,
                                          .points = double(problem.points),
                                          .tasks = double(sorted.tasks.size()),
                                          .bin_cells = double(sorted.bins.bin_cells())});
  }

  /// The kernel's polynomials and the reciprocal of their transform; whose zeros are not known for a kernel of the user's own.
  void store(const Space& space, const Choice& choice, const std::array<int, Dim>& shape, bool of_user) {
    const ChosenKernel& kernel = *choice.kernel;
    constexpr int stride = TapWeights<T>::stride;
    table_values.assign(static_cast<std::size_t>(choice.table_size()), T(0));
    for (int power = 0; power <= kernel.degree; ++power)
      for (int tap = 0; tap < kernel.width; ++tap)
        table_values[std::size_t(power * stride + tap)] =
            static_cast<T>(kernel.coefficients[std::size_t(power * kernel.width + tap)]);
    table = device_copy(space, "Bracewell::Gridding::kernel", table_values);
    problem.kernel = {table.data(), kernel.width, kernel.degree};
    std::vector<T> values;
    for (int axis = 0; axis < Dim; ++axis) {
      const int size = shape[std::size_t(axis)], grid = problem.grid.size[Dim - 1 - axis];
      if (axis == 0 || size != shape[std::size_t(axis - 1)] || grid != problem.grid.size[Dim - axis]) {
        const int middle = size / 2;
        std::vector<T> half(std::size_t(middle + 1)); // it is even
        if (!of_user)
          ReciprocalTransform::of(kernel, std::max(middle, 1) / double(grid))
              .fill(grid, middle + 1, half.data());
        else
          for (int i = 0; i <= middle; ++i)
            half[std::size_t(i)] = static_cast<T>(1 / kernel.transform(double(i) / grid));
        values.resize(std::size_t(size));
        std::reverse_copy(half.begin(), half.end(), values.begin());
        std::copy(half.begin() + 1, half.begin() + size - middle, values.begin() + middle + 1);
      }
      rolloff[std::size_t(axis)] = device_copy(space, "Bracewell::Gridding::rolloff", values);
    }
  }
};

/// Plans of Gridding and NonuniformFFT for other classes of the library, whose names errors have.
struct NamedPlans {
  template <class Plan, class... Others>
  static Plan make(const Arguments& arguments, const Others&... others) {
    return Plan(arguments, others...);
  }
  template <class Plan, class... Others>
  static auto grid_shape(const Arguments& arguments, const Others&... others) {
    return Plan::grid_shape(arguments, others...);
  }
  template <class Plan, class... Others>
  static std::size_t bytes_needed(const Arguments& arguments, const Others&... others) {
    return Plan::bytes_needed(arguments, others...);
  }
  template <class Plan, class Space, class Points>
  static void set_points(const Arguments& arguments, Plan& plan, const Space& space, const Points& points) {
    plan.set_points(arguments, space, points);
  }
};

} // namespace Bracewell::Impl
