// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/fft/fast_size.hpp>
#include <bracewell/gridding/cost.hpp>
#include <bracewell/gridding/detail/interpolate_samples.hpp>
#include <bracewell/gridding/detail/interpolate_tiles.hpp>
#include <bracewell/gridding/detail/spread_atomic.hpp>
#include <bracewell/gridding/detail/spread_duplicated.hpp>
#include <bracewell/gridding/detail/spread_pruned.hpp>
#include <bracewell/gridding/detail/spread_tiles_gpu.hpp>
#include <bracewell/gridding/detail/spread_tiles_host.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <array>
#include <limits>
#include <optional>

namespace Bracewell {

/// Plan that carries samples at non-uniform frequencies to a periodic Cartesian grid, 2D or 3D, and back:
///   spread       grid(l) = sum_j sample_j phi(N x_j - l)
///   interpolate  sample_j = sum_l phi(N x_j - l) grid(l)
/// exact transposes of each other. x_j are the points in cycles per pixel, N the size of the grid, phi a
/// product of kernels with periodic continuation. A backward FFT of the grid, multiplied by rolloff(), gives
///   image(X) = sum_j sample_j exp(+2 pi i x_j . X)
/// at pixel X (stored at X modulo N), to the tolerance that was asked for, for |X| up to half the image size.
/// NonuniformFFT does all of it.
///
/// Movable, not copyable. The constructor sorts the points; spread and interpolate are const and run on the
/// instance that they are given without waiting. Calls of spread that can overlap need a plan each where the
/// strategy is Tiles on a GPU or Duplicated (they have memory for partial sums).
template <class ExecutionSpace, int Dim, class T>
class Gridding {
  static_assert(Dim == 2 || Dim == 3, "Bracewell::Gridding: grids have two or three dimensions.");
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "Bracewell::Gridding: values are complex numbers of float or double.");
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  using Shape = std::array<int, Dim>;
  template <class Value>
  using Vector = Kokkos::View<Value*, ExecutionSpace>;

public:
  /// @param points  View [points, Dim] of double: frequencies in cycles per pixel, finite, any (periodic with
  ///                period 1); axis 0 (x) is the last axis of images
  /// @param shape   image size {(depth,) height, width}
  /// @throws Error on sizes and options out of range and points that are not finite
  template <class Points>
  requires Kokkos::is_view_v<Points> Gridding(const ExecutionSpace& space, const Points& points,
                                              const Shape& shape, const GriddingOptions& options = {})
      : Gridding(space, shape, static_cast<std::int64_t>(points.extent(0)), options) {
    static_assert(Points::rank() == 2 && std::is_same_v<typename Points::non_const_value_type, double>,
                  "Bracewell::Gridding: points are a View [points, axes] of double.");
    if (points.extent(1) != Dim)
      Impl::fail("Gridding", "points", std::to_string(Dim) + " columns", std::to_string(points.extent(1)));
    plan(space, points);
  }

  /// Points on rays, for 2D grids; the only ones that PrunedGather knows.
  Gridding(const ExecutionSpace& space, const PolarPoints& polar, const Shape& shape,
           const GriddingOptions& options = {})
      : Gridding(space, shape, Impl::checked(polar, "Gridding").count(), options) {
    static_assert(Dim == 2, "Bracewell::Gridding: polar points lie in two dimensions.");
    rays.emplace(space, Impl::checked(polar, "Gridding"));
    plan(space, rays->points());
    if (chosen != GriddingStrategy::PrunedGather)
      rays.reset();
  }

  Gridding(Gridding&&) = default;
  Gridding& operator=(Gridding&&) = default;

  /// Grid size, slowest axis first: at least oversampling times the image, only factors 2, 3, 5 and 7.
  Shape grid_shape() const {
    Shape shape;
    for (int d = 0; d < Dim; ++d)
      shape[d] = problem.grid.size[Dim - 1 - d];
    return shape;
  }
  std::int64_t points() const { return problem.points; }
  std::int64_t slices() const { return problem.slices; }
  int width() const { return problem.kernel.width; } ///< of the kernel, in grid points
  GriddingStrategy strategy() const { return chosen; }
  SampleOrder order() const { return sample_order; }

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return locations.size() * sizeof(Impl::Location<T, Dim>) + tiles.list.size() * sizeof(std::uint32_t) +
           tiles.tasks.size() * sizeof(Impl::TileTask) + partial.size() * sizeof(Complex);
  }

  /// Reciprocal transform of the kernel along an axis of the View (0 slowest): View [size] for pixels X =
  /// index - size / 2. The product over the axes undoes the kernel.
  Vector<const T> rolloff(int axis) const { return reciprocal[axis]; }

  /// @param samples  View of complex, [slices, points] or [points, slices] as options.order says
  /// @param grid     View of complex [slices, grid_shape()], overwritten
  /// @throws Error on shapes that do not fit or shared memory
  template <class Samples, class Grid>
  void spread(const ExecutionSpace& space, const Samples& samples, const Grid& grid) const {
    const Array<const Complex, MemorySpace> in(samples);
    const Array<Complex, MemorySpace> out(grid);
    check("spread", in, out);
    Kokkos::Profiling::ScopedRegion region("Bracewell::Gridding::spread");
    const Impl::SampleArray<const Complex> values{in.data, point_stride(), slice_stride()};
    Impl::with_max_width<T>(problem.kernel.width, [&]<int MaxWidth>() {
      if (chosen == GriddingStrategy::Atomic)
        spread_atomic<MaxWidth>(space, values, out.data);
      else if constexpr (Impl::is_host<ExecutionSpace>) {
        if (chosen == GriddingStrategy::Duplicated)
          spread_duplicated<MaxWidth>(space, values, out.data);
        else if (chosen == GriddingStrategy::Tiles && problem.slices <= 4)
          spread_tiles_on_host<4, MaxWidth>(space, values, out.data);
        else if (chosen == GriddingStrategy::Tiles)
          spread_tiles_on_host<16, MaxWidth>(space, values, out.data);
      } else if (chosen == GriddingStrategy::Tiles)
        spread_tiles<MaxWidth>(space, values, out.data);
    });
    if constexpr (Dim == 2)
      if (chosen == GriddingStrategy::PrunedGather) {
        const Impl::GatherPruned<ExecutionSpace, T> functor{problem, *rays, values, out.data};
        Kokkos::parallel_for("Bracewell::Gridding::spread_pruned", Range(space, 0, functor.threads()),
                             functor);
      }
  }

  /// @param grid     View of complex [slices, grid_shape()]
  /// @param samples  View of complex, [slices, points] or [points, slices] as options.order says, overwritten
  /// @throws Error on shapes that do not fit or shared memory
  template <class Grid, class Samples>
  void interpolate(const ExecutionSpace& space, const Grid& grid, const Samples& samples) const {
    const Array<const Complex, MemorySpace> in(grid);
    const Array<Complex, MemorySpace> out(samples);
    check("interpolate", out, in);
    Kokkos::Profiling::ScopedRegion region("Bracewell::Gridding::interpolate");
    if constexpr (Dim == 2 && !Impl::is_host<ExecutionSpace>) {
      constexpr int line = 128 / sizeof(Complex); // lanes that share a cache line
      if (chosen == GriddingStrategy::Tiles && sample_order == SampleOrder::SlicesLast &&
          (interpolate_tiles<2 * line>(space, in.data, out.data) ||
           interpolate_tiles<line>(space, in.data, out.data)))
        return;
    }
    Impl::with_max_width<T>(problem.kernel.width, [&]<int MaxWidth>() {
      const Impl::GatherSamples<ExecutionSpace, MaxWidth, T, Dim> functor{
          {problem, taps<MaxWidth>()}, in.data, {out.data, point_stride(), slice_stride()}};
      Kokkos::parallel_for("Bracewell::Gridding::interpolate", Range(space, 0, functor.threads()), functor);
    });
  }

private:
  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;

  /// Kernel and grid, by default those that are expected to take the least time.
  Gridding(const ExecutionSpace& space, const Shape& shape, std::int64_t points,
           const GriddingOptions& options)
      : image(shape), chosen(options.strategy), sample_order(options.order) {
    check(points, options);
    problem.points = points;
    problem.slices = options.slices;
    double least = std::numeric_limits<double>::infinity();
    // A smaller grid has a stronger roll-off, which amplifies rounding.
    const double smallest = options.tolerance < 20 * double(std::numeric_limits<T>::epsilon()) ? 2 : 1.5;
    for (const double oversampling :
         {options.oversampling.value_or(2), options.oversampling.value_or(smallest)}) {
      Impl::KernelPolynomials candidate =
          Impl::choose_kernel(options.kernel, options.tolerance, oversampling, Dim);
      const auto grid = grid_of(candidate.width, oversampling);
      const GriddingWork work{double(points),
                              double(problem.slices),
                              double(grid.elements()),
                              candidate.width,
                              Dim,
                              Impl::is_host<ExecutionSpace>,
                              double(space.concurrency())};
      if (candidate.width > Impl::KernelShape::max_width || !(gridding_and_fft_cost(work) < least))
        continue;
      least = gridding_and_fft_cost(work);
      kernel = std::move(candidate);
      problem.grid = grid;
      if (options.strategy == GriddingStrategy::Automatic)
        chosen = choose_gridding_strategy(work);
    }
    if (least == std::numeric_limits<double>::infinity())
      Impl::fail("Gridding", "options.tolerance", "one that a kernel of at most 32 grid points can reach",
                 std::to_string(options.tolerance) + " (more oversampling helps)");
  }

  Impl::GridShape<Dim> grid_of(int width, double oversampling) const {
    Impl::GridShape<Dim> grid;
    for (int d = 0; d < Dim; ++d) {
      const std::int64_t padded = static_cast<std::int64_t>(std::ceil(oversampling * image[Dim - 1 - d]));
      grid.size[d] = static_cast<int>(
          gridding_size(std::max<std::int64_t>({padded, 2 * width, 32}), Impl::is_host<ExecutionSpace>));
    }
    return grid;
  }

  void check(std::int64_t points, const GriddingOptions& options) const {
    if (points < 1 || points >= std::int64_t(1) << 32)
      Impl::fail("Gridding", "points", "from 1 to 2^32 - 1 points", std::to_string(points));
    for (const int size : image)
      if (size < 1 || size > 32768)
        Impl::fail("Gridding", "shape", "sizes from 1 to 32768", std::to_string(size));
    const double least = sizeof(T) == 4 ? 1e-7 : 1e-14;
    if (!(options.tolerance >= least && options.tolerance < 1))
      Impl::fail("Gridding", "options.tolerance", sizeof(T) == 4 ? "from 1e-7 to 1" : "from 1e-14 to 1",
                 std::to_string(options.tolerance));
    const double oversampling = options.oversampling.value_or(2);
    if (!(oversampling >= 1.2 && oversampling <= 8))
      Impl::fail("Gridding", "options.oversampling", "from 1.2 to 8", std::to_string(oversampling));
    if (options.slices < 1)
      Impl::fail("Gridding", "options.slices", "at least 1", std::to_string(options.slices));
  }

  template <class Points>
  void plan(const ExecutionSpace& space, const Points& points) {
    if (chosen == GriddingStrategy::PrunedGather && !rays)
      Impl::fail("Gridding", "options.strategy", "Atomic or Tiles for points that are not on rays in 2D",
                 "PrunedGather");
    if (chosen == GriddingStrategy::Duplicated && !Impl::is_host<ExecutionSpace>)
      Impl::fail("Gridding", "options.strategy", "Duplicated on hosts only", "it on a GPU");
    make_kernel(space);
    locations =
        Impl::device_vector<Impl::Location<T, Dim>>(space, "Bracewell::Gridding::locations", problem.points);
    problem.locations = locations.data();
    std::int64_t not_finite = 0;
    Kokkos::parallel_reduce(
        "Bracewell::Gridding::locate", Range(space, 0, problem.points),
        Impl::Locate<Points, T, Dim>{points, locations.data(), problem.grid, kernel->width}, not_finite);
    if (not_finite > 0)
      Impl::fail("Gridding", "points", "finite frequencies", std::to_string(not_finite) + " that are not");
    if (chosen == GriddingStrategy::Duplicated)
      partial = Impl::device_vector<Complex>(space, "Bracewell::Gridding::duplicates",
                                             problem.grid.elements() * space.concurrency());
    if (chosen == GriddingStrategy::Tiles) {
      tiles = Impl::TileLists<ExecutionSpace, T, Dim>(space, problem);
      partial = Impl::device_vector<Complex>(space, "Bracewell::Gridding::partial_sums",
                                             std::int64_t(tiles.slots) * slice_chunks() *
                                                 Impl::TileEdges<ExecutionSpace, T, Dim>::cells * 32);
    }
    space.fence("Bracewell::Gridding: the plan is complete");
  }

  /// The kernel's polynomials and the reciprocal of their transform.
  void make_kernel(const ExecutionSpace& space) {
    const int stride =
        kernel->width <= Impl::common_max_width<T> ? Impl::common_max_width<T> : Impl::KernelShape::max_width;
    table_values.assign((kernel->degree + 1) * stride, T(0));
    for (int power = 0; power <= kernel->degree; ++power)
      for (int tap = 0; tap < kernel->width; ++tap)
        table_values[power * stride + tap] =
            static_cast<T>(kernel->coefficients[power * kernel->width + tap]);
    table = Impl::device_copy(space, "Bracewell::Gridding::kernel", table_values);
    problem.kernel = {table.data(), kernel->width, kernel->degree, stride};
    for (int axis = 0; axis < Dim; ++axis) {
      std::vector<T> values(image[axis]);
      for (int i = 0; i < image[axis]; ++i)
        values[i] = static_cast<T>(
            1 / kernel->transform(double(i - image[axis] / 2) / problem.grid.size[Dim - 1 - axis]));
      reciprocal[axis] = Impl::device_copy(space, "Bracewell::Gridding::rolloff", values);
    }
  }

  template <int MaxWidth>
  Impl::TapTable<T, MaxWidth> taps() const {
    return {problem.kernel, table_values};
  }

  std::int64_t point_stride() const { return sample_order == SampleOrder::SlicesLast ? problem.slices : 1; }
  std::int64_t slice_stride() const { return sample_order == SampleOrder::SlicesLast ? 1 : problem.points; }
  int slice_chunks() const { return static_cast<int>((problem.slices + 31) / 32); }

  template <int MaxWidth>
  void spread_atomic(const ExecutionSpace& space, const Impl::SampleArray<const Complex>& samples,
                     Complex* grid) const {
    Impl::fill(space, "Bracewell::Gridding::zero", grid, problem.slices * problem.grid.elements());
    const Impl::ScatterSamples<MaxWidth, T, Dim> functor{{problem, taps<MaxWidth>()}, samples, grid};
    Kokkos::parallel_for("Bracewell::Gridding::spread_atomic", Range(space, 0, functor.threads()), functor);
  }

  template <int MaxWidth>
  void spread_duplicated(const ExecutionSpace& space, const Impl::SampleArray<const Complex>& samples,
                         Complex* grid) const {
    const std::int64_t elements = problem.grid.elements();
    const int copies = static_cast<int>(std::int64_t(partial.size()) / elements);
    for (std::int64_t slice = 0; slice < problem.slices; ++slice) {
      Kokkos::parallel_for("Bracewell::Gridding::spread_duplicated",
                           Kokkos::RangePolicy<ExecutionSpace>(space, 0, copies, Kokkos::ChunkSize(1)),
                           Impl::ScatterCopies<MaxWidth, T, Dim>{problem, taps<MaxWidth>(), samples,
                                                                 partial.data(), slice, copies});
      Kokkos::parallel_for(
          "Bracewell::Gridding::join_duplicates", Range(space, 0, elements),
          Impl::JoinDuplicates<T>{partial.data(), grid + slice * elements, elements, copies});
    }
  }

  template <int Lanes, int MaxWidth>
  void spread_tiles_on_host(const ExecutionSpace& space, const Impl::SampleArray<const Complex>& samples,
                            Complex* grid) const {
    using Functor = Impl::ScatterTiles<ExecutionSpace, Lanes, MaxWidth, T, Dim>;
    using Policy = Kokkos::TeamPolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>>;
    Kokkos::parallel_for("Bracewell::Gridding::spread_tiles",
                         Policy(space, static_cast<int>(tiles.tasks.size()), 1)
                             .set_scratch_size(1, Kokkos::PerTeam(int(+Functor::scratch_bytes))),
                         Functor{problem, taps<MaxWidth>(), tiles.tiles, tiles.list.data(),
                                 tiles.tasks.data(), samples, grid});
  }

  template <int MaxWidth>
  void spread_tiles(const ExecutionSpace& space, const Impl::SampleArray<const Complex>& samples,
                    Complex* grid) const {
    using Functor = Impl::GatherTiles<ExecutionSpace, MaxWidth, T, Dim>;
    const Functor functor{
        problem,        taps<MaxWidth>(), tiles.tiles, tiles.list.data(), tiles.tasks.data(),
        slice_chunks(), samples,          grid,        partial.data()};
    Kokkos::parallel_for(
        "Bracewell::Gridding::spread_tiles",
        Kokkos::TeamPolicy<ExecutionSpace, Kokkos::LaunchBounds<32, +Functor::teams_per_multiprocessor>>(
            space, static_cast<int>(tiles.tasks.size()) * slice_chunks(), +Functor::lanes)
            .set_scratch_size(0, Kokkos::PerTeam(Functor::scratch_bytes())),
        functor);
    if (tiles.split.size() == 0)
      return;
    const Impl::JoinPartialSums<ExecutionSpace, T, Dim> join{
        problem, tiles.tiles, tiles.split.data(), slice_chunks(), partial.data(), grid};
    Kokkos::parallel_for("Bracewell::Gridding::join_partial_sums",
                         Range(space, 0, join.threads(static_cast<std::int64_t>(tiles.split.size()))), join);
  }

  /// False, without having done anything, where it does not pay with so many lanes.
  template <int lanes>
  bool interpolate_tiles(const ExecutionSpace& space, const Complex* grid, Complex* samples) const {
    using Functor = Impl::InterpolateTiles<ExecutionSpace, lanes, T>;
    if (!Functor::pays(problem.kernel.width, problem.slices))
      return false;
    Functor{problem,
            taps<Functor::most_width>(),
            tiles.tiles,
            tiles.list.data(),
            tiles.tasks.data(),
            grid,
            {samples, point_stride(), slice_stride()}}
        .launch(space, static_cast<int>(tiles.tasks.size()));
    return true;
  }

  template <class Samples, class Grid>
  void check(const char* function, const Samples& samples, const Grid& grid) const {
    const std::string name = std::string("Gridding::") + function;
    const bool last = sample_order == SampleOrder::SlicesLast;
    if (!samples || samples.rank != 2 || samples.extents[last ? 1 : 0] != problem.slices ||
        samples.extents[last ? 0 : 1] != problem.points)
      Impl::fail(name.c_str(), "samples",
                 "[" + std::to_string(last ? problem.points : problem.slices) + ", " +
                     std::to_string(last ? problem.slices : problem.points) + "]",
                 samples.shape());
    std::string expected = "[" + std::to_string(problem.slices);
    bool fits = grid && grid.rank == Dim + 1 && grid.extents[0] == problem.slices;
    for (int axis = 0; axis < Dim; ++axis) {
      expected += ", " + std::to_string(grid_shape()[axis]);
      fits = fits && grid.extents[axis + 1] == grid_shape()[axis];
    }
    if (!fits)
      Impl::fail(name.c_str(), "grid", expected + "]", grid.shape());
    const auto *a = reinterpret_cast<const char*>(samples.data),
               *b = reinterpret_cast<const char*>(grid.data);
    if (a < b + grid.size() * std::int64_t(sizeof(Complex)) &&
        b < a + samples.size() * std::int64_t(sizeof(Complex)))
      Impl::fail(name.c_str(), "grid", "memory of its own", "memory shared with samples");
  }

  Shape image;
  GriddingStrategy chosen;
  SampleOrder sample_order;
  std::optional<Impl::KernelPolynomials> kernel;
  Impl::SpreadingProblem<T, Dim> problem = {};
  std::optional<Impl::Rays<ExecutionSpace>> rays;
  Vector<Impl::Location<T, Dim>> locations;
  std::vector<T> table_values;
  Vector<T> table;
  std::array<Vector<const T>, Dim> reciprocal;
  Impl::TileLists<ExecutionSpace, T, Dim> tiles;
  Vector<Complex> partial;
};

} // namespace Bracewell
