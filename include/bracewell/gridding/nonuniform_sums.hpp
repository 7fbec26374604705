// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/gridding/detail/kernel.hpp>
#include <bracewell/gridding/detail/plans/plan.hpp>
#include <bracewell/gridding/detail/point_boxes.hpp>
#include <bracewell/gridding/gridding.hpp>
#include <bracewell/gridding/nonuniform_fft.hpp>
#include <bracewell/gridding/options.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/image_on_grid.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/sample_array.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace Bracewell {

/// Sums between points x_j and targets s_k, both anywhere, 1D to 3D:
///   forward  sum_k = sum_j value_j exp(+2 pi i s_k . x_j)     ("type 3")
///   adjoint  value_j = sum_k sum_k exp(-2 pi i s_k . x_j)
/// (both exponents have the other sign where options.sign is -1), exact transposes (complex conjugate) of each
/// other, to the tolerance of the options. Not scaled. Units of x are pixels and of s cycles per pixel, or any
/// others whose product is cycles.
///
/// The plan spreads values to a grid that covers the points. The spacing of the grid follows from the largest target. A
/// NonuniformFFT takes the grid for its image and samples it at the targets (Lee and Greengard, J. Comput. Phys. 206, 2005;
/// Barnett, Magland, af Klinteberg, SIAM J. Sci. Comput. 41(5), 2019, section 3.3). Work and memory grow with the product
/// over the axes of the boxes' lengths.
///
/// Movable, not copyable; owns grids and scratch memory, so calls that can overlap need a plan each. Without points
/// sums are zero, and the reverse; without slices there is nothing to do.
template <class ExecutionSpace, int Dim, class T>
class NonuniformSums {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  using Shape = std::array<int, Dim>;
  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  using Plan = Gridding<ExecutionSpace, Dim, T>;
  using Transform = NonuniformFFT<ExecutionSpace, Dim, T>;
  using Boxes = Impl::NonuniformBoxes<Dim>;
  using Moved = Kokkos::View<double**, Kokkos::LayoutRight, MemorySpace>;
  using Points = Impl::GriddingPoints<ExecutionSpace, Dim>;

public:
  /// @param points   View [points, Dim] of double: finite, any; column 0 is x
  /// @param targets  View [targets, Dim] of double: finite, any
  /// @param options  as of NonuniformFFT; the tolerance is at least 2e-7 in float, 2e-14 in double; `slices` and
  ///                 `order` count for values and sums; oversampling is at least 1.25. By default it is 2 for the points'
  ///                 grid, on hosts 1.25 or 1.5 where that is faster, and 1.5 or 2 for the targets' grid
  /// @throws Error on options out of range, points or targets that are not finite, and boxes whose lengths' product
  ///         along an axis is beyond about 14,000 (in 1D 3 x 10^7) cycles
  NonuniformSums(const ExecutionSpace& space, const Points& points, const Points& targets,
                 const GriddingOptions& options = {});

  /// Other points and targets, as many as before or not. Grids and memory are used again where the boxes are no
  /// larger than those before and the numbers of points and targets are the same. Waits for the instance; calls
  /// that use the plan must have ended.
  /// @throws Error as the constructor
  void set_points(const ExecutionSpace& space, const Points& points, const Points& targets);

  std::int64_t points() const { return gridding_->points(); }          ///< Values of a slice.
  std::int64_t targets() const { return transform_->plan().points(); } ///< Sums of a slice.
  std::int64_t slices() const { return options_.slices; }              ///< Of one call, at most.
  Shape grid_shape() const { return gridding_->grid_shape(); } ///< Of the points' grid, slowest axis first.

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return gridding_->memory_bytes() + transform_->memory_bytes() +
           Impl::bytes_of(grids_, phases_, factors_, scratch_);
  }

  /// What memory_bytes() of a plan of these arguments would be; see Gridding. Looks at all points and waits.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, const Points& points, const Points& targets,
                                  const GriddingOptions& options = {});

  /// Values at the points to sums at the targets.
  /// @param values  View of complex [slices, points], or [points, slices] as options.order says; at most
  ///                options.slices slices
  /// @param sums    View of complex [slices, targets], or [targets, slices], overwritten
  /// @throws Error on shapes that do not fit or memory that both use
  void forward(const ExecutionSpace& space, const Array<const Complex, MemorySpace>& values,
               const Array<Complex, MemorySpace>& sums) const;

  /// Sums at the targets to values at the points.
  /// @param sums    View of complex [slices, targets], or [targets, slices] as options.order says
  /// @param values  View of complex [slices, points], or [points, slices], overwritten
  /// @throws Error on shapes that do not fit or memory that both use
  void adjoint(const ExecutionSpace& space, const Array<const Complex, MemorySpace>& sums,
               const Array<Complex, MemorySpace>& values) const;

private:
  /// Without points.
  explicit NonuniformSums(const GriddingOptions& options)
      : options_(checked(options)), oversampling_(reachable(options)),
        kernel_(kernel(options, oversampling_)),
        reciprocal_(Impl::ReciprocalTransform::of(kernel_, 0.5 / oversampling_)) {}

  static GriddingOptions checked(const GriddingOptions& options) {
    constexpr Impl::Arguments arguments{"NonuniformSums"};
    const double least = sizeof(T) == 4 ? 2e-7 : 2e-14;
    arguments.require(
        options.tolerance >= least && options.tolerance < 1, "options.tolerance",
        [&] { return "from " + Impl::number(least) + " to 1"; },
        [&] { return Impl::number(options.tolerance); });
    arguments.within("options.oversampling", options.oversampling.value_or(2), 1.25, 8.);
    arguments.require(options.strategy != GriddingStrategy::PrunedGather, "options.strategy",
                      "one that takes any points", "PrunedGather");
    arguments.require(!options.kernel, "options.kernel", "none: the sums choose their kernels", "one");
    return options;
  }

  static Impl::ChosenKernel kernel(const GriddingOptions& options, double oversampling) {
    return Impl::choose_kernel(options.tolerance / 2, oversampling, Dim,
                               double(std::numeric_limits<T>::epsilon()));
  }
  /// Of the points' grid: where it is too small for the tolerance, a larger one, as Gridding would take.
  static double reachable(const GriddingOptions& options) {
    const double asked = options.oversampling.value_or(2);
    for (const double tried : asked_oversamplings(asked))
      if (kernel(options, tried).width <= Impl::KernelShape::max_width)
        return tried;
    return asked;
  }

  /// Of the points' grid: on hosts, unasked, what is expected to be the fastest. The targets' grid grows with it, which in wide
  /// boxes is most of the work and of the memory.
  double chosen_oversampling(const Boxes& boxes, double points, double targets) const {
    constexpr double worthwhile =
        5e4; // nanoseconds: kernels that nobody asked for yet take longer to fit, once
    double best = reachable(options_);
    if (!Impl::is_host<ExecutionSpace> || options_.oversampling)
      return best;
    double least = expected_cost(boxes, points, targets, best);
    if (least > worthwhile)
      for (const double other : {1.5, 1.25})
        if (const double cost = expected_cost(boxes, points, targets, other); cost < least) {
          best = other;
          least = cost;
        }
    return best;
  }

  void take_oversampling(double oversampling) {
    if (oversampling == oversampling_)
      return;
    oversampling_ = oversampling;
    kernel_ = kernel(options_, oversampling);
    reciprocal_ = Impl::ReciprocalTransform::of(kernel_, 0.5 / oversampling);
  }

  /// Estimated time of a call.
  double expected_cost(const Boxes& boxes, double points, double targets, double oversampling) const {
    constexpr double epsilon = std::numeric_limits<T>::epsilon(),
                     none = std::numeric_limits<double>::infinity();
    const Impl::ChosenKernel kernel_there = kernel(options_, oversampling);
    const double tolerance = tolerance_of_targets(options_.tolerance, kernel_there);
    if (kernel_there.width > Impl::KernelShape::max_width || tolerance < (sizeof(T) == 4 ? 1e-7 : 1e-14))
      return none;
    const auto work = [&](double count, double times, const Impl::ChosenKernel& with) {
      GriddingWork result{.points = count,
                          .slices = double(options_.slices),
                          .cells = 1,
                          .width = with.width,
                          .dimensions = Dim,
                          .host = Impl::is_host<ExecutionSpace>};
      for (int d = 0; d < Dim; ++d)
        result.cells *= times * (oversampling * boxes.cycles(d) + room(kernel_there));
      return result;
    };
    double least = none;
    for (const double of_transform :
         unasked_oversamplings(tolerance, epsilon, Impl::is_host<ExecutionSpace>, Dim))
      if (const auto with = Impl::choose_kernel(tolerance, of_transform, Dim, epsilon);
          with.width <= Impl::KernelShape::max_width)
        least = std::min(least, gridding_and_fft_cost(work(targets, of_transform, with)));
    return least + gridding_cost(GriddingStrategy::Bins, work(points, 1, kernel_there));
  }

  /// Both plans and what values and sums are multiplied by. What is there is used again where it fits.
  void plan(const ExecutionSpace& space, const Points& points, const Points& targets,
            const Impl::Arguments& arguments) {
    using Plans = Impl::NamedPlans;
    Kokkos::Profiling::ScopedRegion region("Bracewell::NonuniformSums::plan");
    const Boxes boxes = Boxes::make(space, points, targets, arguments);
    const auto& [from, to] = boxes;
    bool fits = gridding_ && this->points() == points.count() && this->targets() == targets.count();
    for (int d = 0; fits && d < Dim; ++d)
      fits = oversampling_ * boxes.cycles(d) + room(kernel_) <= grid_shape()[std::size_t(Dim - 1 - d)];
    const double oversampling =
        fits ? oversampling_ : chosen_oversampling(boxes, double(points.count()), double(targets.count()));
    const Shape shape =
        Impl::shape_for_points(boxes, oversampling, room(kernel(options_, oversampling)), arguments);
    take_oversampling(oversampling);
    const Shape grid =
        fits ? grid_shape() : Plans::grid_shape<Plan>(arguments, space, points, shape, of_points());

    Impl::MovePoints<Dim> move{points.array, nullptr, {}, {}, {}};
    Impl::MovePoints<Dim> move_targets{targets.array, nullptr, {}, {}, {}};
    Kokkos::Array<double, Dim> to_middle, from_middle;
    for (int d = 0; d < Dim; ++d) {
      const int size = grid[std::size_t(Dim - 1 - d)];
      const double step = to.reach[d] > 0     ? 0.5 / (oversampling_ * to.reach[d])
                          : from.reach[d] > 0 ? 2 * from.reach[d] / (size - room(kernel_))
                                              : 1;
      move.middle[d] = from.middle[d];
      move.scale[d] = 1 / (step * size);
      move.shift[d] = double(size / 2) / size; // the grid's elements are pixels of the transform's images
      move_targets.middle[d] = to.middle[d];
      move_targets.scale[d] = step;
      to_middle[std::size_t(d)] = options_.sign * to.middle[d];
      from_middle[std::size_t(d)] = options_.sign * from.middle[d] / step;
    }
    const auto moved_points = moved(space, points.count(), move),
               moved_targets = moved(space, targets.count(), move_targets);
    if (fits) {
      Plans::set_points(arguments, *gridding_, space, moved_points);
      transform_->set_points(space, moved_targets);
    } else {
      gridding_.reset(); // and its memory, before there is other
      transform_.reset();
      gridding_ =
          std::make_unique<Plan>(Plans::make<Plan>(arguments, space, moved_points, shape, of_points()));
      transform_ = std::make_unique<Transform>(
          Plans::make<Transform>(arguments, space, moved_targets, grid, of_targets()));
      resize(space, grids_, "Bracewell::NonuniformSums::grids", slices() * Impl::product(grid_shape()));
      resize(space, factors_, "Bracewell::NonuniformSums::factors", this->targets());
      resize(space, scratch_, "Bracewell::NonuniformSums::scratch",
             slices() * std::max(this->points(), this->targets()));
    }
    resize(space, phases_, "Bracewell::NonuniformSums::phases", to.centred() ? 0 : this->points());
    Impl::launch_kernel("Bracewell::NonuniformSums::phases", Range(space, 0, phases_.size()),
                        Impl::PhasesOfPoints<T, Dim>{points.array, phases_.data(), to_middle});
    Impl::launch_kernel("Bracewell::NonuniformSums::factors", Range(space, 0, this->targets()),
                        Impl::FactorsOfTargets<T, Dim>{
                            {Points(moved_targets).array, factors_.data(), from_middle}, reciprocal_});
    space.fence("Bracewell::NonuniformSums: the plan is complete");
  }

  /// Cells that samples at the ends of a grid reach beyond it, and rounding.
  static double room(const Impl::ChosenKernel& kernel) { return kernel.width + 2; }

  /// The options of both plans: each is wrong by half of what may be, the sums by that of the second as the
  /// kernel's transform amplifies it.
  GriddingOptions of_points() const {
    GriddingOptions options = options_;
    options.tolerance = options_.tolerance / 2;
    options.oversampling = oversampling_;
    return options;
  }

  GriddingOptions of_targets() const {
    GriddingOptions options = options_;
    options.tolerance = tolerance_of_targets(options_.tolerance, kernel_);
    options.sign = -options_.sign;
    return options;
  }

  static double tolerance_of_targets(double tolerance, const Impl::ChosenKernel& kernel) {
    return tolerance / 2 / std::max(1., kernel.errors_there.rounding);
  }

  static Moved moved(const ExecutionSpace& space, std::int64_t size, Impl::MovePoints<Dim> move) {
    const Moved result = Impl::device_view<double**>(space, "Bracewell::NonuniformSums::moved", size, Dim);
    move.moved = result.data();
    Impl::launch_kernel("Bracewell::NonuniformSums::move", Range(space, 0, size), move);
    return result;
  }

  template <class View>
  static void resize(const ExecutionSpace& space, View& view, const char* label, std::int64_t size) {
    if (static_cast<std::int64_t>(view.size()) != size)
      view = Impl::device_vector<Complex>(space, label, size);
  }

  Array<Complex, MemorySpace> grids(std::int64_t slices_of_call) const {
    return Impl::slices_of<MemorySpace>(grids_.data(), slices_of_call, grid_shape());
  }

  bool slices_last() const { return options_.order == SampleOrder::SlicesLast; }

  /// The scratch memory as an argument of so many points.
  Array<Complex, MemorySpace> scratch(std::int64_t number, std::int64_t slices_of_call) const {
    const auto [first, second] =
        slices_last() ? std::pair(number, slices_of_call) : std::pair(slices_of_call, number);
    return Impl::slices_of<MemorySpace>(scratch_.data(), first, std::array{second});
  }
  template <class Value>
  Impl::SampleArray<Value> array(Value* data, std::int64_t number, std::int64_t slices_of_call) const {
    return {data, slices_last() ? slices_of_call : 1, slices_last() ? 1 : number};
  }

  void multiply(const ExecutionSpace& space, const Complex* from, Complex* to,
                const Kokkos::View<Complex*, ExecutionSpace>& factors, std::int64_t slices_of_call,
                bool conjugate) const {
    const auto number = static_cast<std::int64_t>(factors.size());
    Impl::launch_kernel("Bracewell::NonuniformSums::multiply", Range(space, 0, number * slices_of_call),
                        Impl::MultiplySamples<T>{array(from, number, slices_of_call),
                                                 array(to, number, slices_of_call), factors.data(), number,
                                                 conjugate});
  }

  /// The number of slices.
  std::int64_t check(const Impl::Arguments& arguments, const Array<const Complex, MemorySpace>& values,
                     const Array<const Complex, MemorySpace>& sums) const {
    const std::int64_t found =
        Impl::check_samples(arguments, "values", values, options_.order, points(), slices());
    arguments.shape("sums", sums, {slices_last() ? targets() : found, slices_last() ? found : targets()});
    return found;
  }

  GriddingOptions options_;
  double oversampling_;       ///< of the points' grid
  Impl::ChosenKernel kernel_; ///< likewise
  Impl::ReciprocalTransform reciprocal_;
  std::unique_ptr<Plan> gridding_;
  std::unique_ptr<Transform> transform_;
  Kokkos::View<Complex*, ExecutionSpace> grids_;
  Kokkos::View<Complex*, ExecutionSpace>
      phases_; ///< of points, for the middle of the targets; none where that is 0
  Kokkos::View<Complex*, ExecutionSpace>
      factors_; ///< of targets, for the middle of the points and the kernel
  Kokkos::View<Complex*, ExecutionSpace> scratch_; ///< values or sums of all slices
};

template <class ExecutionSpace, int Dim, class T>
NonuniformSums<ExecutionSpace, Dim, T>::NonuniformSums(const ExecutionSpace& space, const Points& points,
                                                       const Points& targets, const GriddingOptions& options)
    : NonuniformSums(options) {
  plan(space, points, targets, {"NonuniformSums"});
}

template <class ExecutionSpace, int Dim, class T>
void NonuniformSums<ExecutionSpace, Dim, T>::set_points(const ExecutionSpace& space, const Points& points,
                                                        const Points& targets) {
  plan(space, points, targets, {"NonuniformSums::set_points"});
}

template <class ExecutionSpace, int Dim, class T>
std::size_t NonuniformSums<ExecutionSpace, Dim, T>::bytes_needed(const ExecutionSpace& space,
                                                                 const Points& points, const Points& targets,
                                                                 const GriddingOptions& options) {
  constexpr Impl::Arguments arguments{"NonuniformSums::bytes_needed"};
  NonuniformSums sums(options);
  const auto boxes = Boxes::make(space, points, targets, arguments);
  sums.take_oversampling(sums.chosen_oversampling(boxes, double(points.count()), double(targets.count())));
  const Shape shape = Impl::shape_for_points(boxes, sums.oversampling_, room(sums.kernel_), arguments);
  using Plans = Impl::NamedPlans;
  const Shape grid = Plans::grid_shape<Plan>(arguments, space, points, shape, sums.of_points());
  const std::int64_t complex =
      sums.slices() * (Impl::product(grid) + std::max(points.count(), targets.count())) + targets.count() +
      (boxes.to.centred() ? 0 : points.count());
  return Plans::bytes_needed<Plan>(arguments, space, points, shape, sums.of_points()) +
         Transform::bytes_needed(space, targets, grid, sums.of_targets()) +
         static_cast<std::size_t>(complex) * sizeof(Complex);
}

template <class ExecutionSpace, int Dim, class T>
void NonuniformSums<ExecutionSpace, Dim, T>::forward(const ExecutionSpace& space,
                                                     const Array<const Complex, MemorySpace>& values,
                                                     const Array<Complex, MemorySpace>& sums) const {
  const Impl::Arguments arguments{"NonuniformSums::forward"};
  const std::int64_t number = check(arguments, values, sums);
  arguments.disjoint({{"sums", sums}}, {{"values", values}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::NonuniformSums::forward");
  if (points() == 0 || targets() == 0 || number == 0)
    return Impl::fill(space, "Bracewell::NonuniformSums::zero", sums.data, sums.size());
  if (phases_.size() > 0) {
    multiply(space, values.data, scratch_.data(), phases_, number, false);
    gridding_->spread(space, scratch(points(), number), grids(number));
  } else {
    gridding_->spread(space, values, grids(number));
  }
  transform_->forward(space, grids(number), sums);
  multiply(space, sums.data, sums.data, factors_, number, false);
}

template <class ExecutionSpace, int Dim, class T>
void NonuniformSums<ExecutionSpace, Dim, T>::adjoint(const ExecutionSpace& space,
                                                     const Array<const Complex, MemorySpace>& sums,
                                                     const Array<Complex, MemorySpace>& values) const {
  const Impl::Arguments arguments{"NonuniformSums::adjoint"};
  const std::int64_t number = check(arguments, values, sums);
  arguments.disjoint({{"values", values}}, {{"sums", sums}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::NonuniformSums::adjoint");
  if (points() == 0 || targets() == 0 || number == 0)
    return Impl::fill(space, "Bracewell::NonuniformSums::zero", values.data, values.size());
  multiply(space, sums.data, scratch_.data(), factors_, number, true);
  transform_->adjoint(space, scratch(targets(), number), grids(number));
  gridding_->interpolate(space, grids(number), values);
  if (phases_.size() > 0)
    multiply(space, values.data, values.data, phases_, number, true);
}

#define BRACEWELL_INSTANCES_NONUNIFORM_SUMS(Extern, Space, Real, Dim)                                        \
  Extern template class NonuniformSums<Space, Dim, Real>;
BRACEWELL_DECLARE_DIMENSIONS(BRACEWELL_INSTANCES_NONUNIFORM_SUMS)

} // namespace Bracewell
