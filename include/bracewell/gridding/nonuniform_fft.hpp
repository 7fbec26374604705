// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/gridding/gridding.hpp>
#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/image_on_grid.hpp>
#include <bracewell/impl/sample_array.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <numbers>

namespace Bracewell {

namespace Impl {
template <class Value>
struct SlopedImages;
template <class T>
struct SumPointGradients;
} // namespace Impl

/// Discrete Fourier transforms between samples at any frequencies x_j (cycles per pixel) and images, 1D to
/// 3D:
///   adjoint  image(X) = sum_j sample_j exp(+2 pi i x_j . X)     ("type 1")
///   forward  sample_j = sum_X image(X) exp(-2 pi i x_j . X)     ("type 2")
/// (both exponents have the other sign where options.sign is -1)
/// with pixels X = index - size / 2 (rounded down) along every axis. Both are exact transposes (complex conjugate) of each
/// other. Their error is the tolerance of the options. Neither scales. Dutt and Rokhlin, SIAM J. Sci. Comput. 14(6), 1993.
///
/// Movable, not copyable; owns the grids and the FFT's workspace, so calls that can overlap need a plan each.
/// Without points images are zero; without slices there is nothing to do.
template <class ExecutionSpace, int Dim, class T>
class NonuniformFFT {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  using GridData =
      std::conditional_t<Dim == 1, Complex**, std::conditional_t<Dim == 2, Complex***, Complex****>>;
  using GridView =
      Kokkos::View<GridData, Kokkos::LayoutRight, ExecutionSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using Plan = Gridding<ExecutionSpace, Dim, T>;
  using Transform = FFT<ExecutionSpace, Dim, Complex, Complex>;
  using Points = Impl::GriddingPoints<ExecutionSpace, Dim>;

public:
  /// @param points  View [points, Dim] of double, or PolarPoints: see Gridding
  /// @param shape   image size {((depth,) height,) width}
  /// @throws Error as Gridding does
  NonuniformFFT(const ExecutionSpace& space, const Points& points, const std::array<int, Dim>& shape,
                const GriddingOptions& options = {});

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return gridding_.memory_bytes() + Impl::bytes_of(grids_) + adjoint_transform_.memory_bytes() +
           forward_transform_.memory_bytes();
  }

  /// What memory_bytes() of a plan of these arguments would be; see Gridding.
  /// @throws Error as Gridding::bytes_needed
  static std::size_t bytes_needed(const ExecutionSpace& space, const Points& points,
                                  const std::array<int, Dim>& shape, const GriddingOptions& options = {});

  /// Other points, as many, for the same grids and Fourier transforms; see Gridding.
  void set_points(const ExecutionSpace& space, const Points& points);

  /// The plan that carries samples to the grids.
  const Plan& plan() const { return gridding_; }

  /// Samples to images.
  /// @param samples  View of complex [slices, points], or [points, slices] as options.order says; at most
  ///                 options.slices slices
  /// @param images   View of complex [slices, ((depth,) height,) width], overwritten
  /// @throws Error on shapes that do not fit or memory that both use
  void adjoint(const ExecutionSpace& space, const Array<const Complex, MemorySpace>& samples,
               const Array<Complex, MemorySpace>& images) const;

  /// Images to samples.
  /// @param images   View of complex [slices, ((depth,) height,) width]
  /// @param samples  View of complex [slices, points], or [points, slices] as options.order says, overwritten
  /// @throws Error on shapes that do not fit or memory that both use
  void forward(const ExecutionSpace& space, const Array<const Complex, MemorySpace>& images,
               const Array<Complex, MemorySpace>& samples) const;

  /// Gradients with respect to the points of a real loss that is computed from either transform, to the
  /// tolerance of the options:
  ///   gradients(j, d) = Re sum over slices of conj(sample_j) sum_X (-2 pi i X_d) image(X) exp(-2 pi i x_j . X)
  /// (i has the other sign where options.sign is -1). For `forward` give its input as images, and the cotangent of its
  /// output as samples. For `adjoint` give its input as samples, and the cotangent of its output as images. The work is
  /// Dim transforms forward.
  /// @param images     View of complex [slices, ((depth,) height,) width]
  /// @param samples    View of complex [slices, points], or [points, slices] as options.order says
  /// @param gradients  View of T [points, Dim], per cycle per pixel, overwritten; column 0 is x
  /// @param scratch    View of the samples' type and shape, overwritten
  /// @throws Error on shapes that do not fit or memory that outputs share
  void point_gradients(const ExecutionSpace& space, const Array<const Complex, MemorySpace>& images,
                       const Array<const Complex, MemorySpace>& samples,
                       const Array<T, MemorySpace>& gradients,
                       const Array<Complex, MemorySpace>& scratch) const;

private:
  friend struct Impl::NamedPlans;

  NonuniformFFT(const Impl::Arguments& arguments, const ExecutionSpace& space, const Points& points,
                const std::array<int, Dim>& shape, const GriddingOptions& options);

  void set_points(const Impl::Arguments& arguments, const ExecutionSpace& space, const Points& points);

  /// Images of any type to samples.
  template <class Images>
  void transform_forward(const ExecutionSpace& space, const Images& images, std::int64_t count,
                         const Array<Complex, MemorySpace>& samples) const {
    for (std::int64_t first = 0; first < count; first += at_once_) {
      const std::int64_t number = std::min(at_once_, count - first);
      Images some = images;
      some.data += first * pixels();
      Impl::pad_images(space, "Bracewell::NonuniformFFT::pad", on_grid(), some, number, grids_.data());
      clear_unused(space, number);
      forward_transform_.execute(space, grid_view(batch()), grid_view(batch()));
      gridding_.interpolate(space, grid_view(number), some_samples(samples.data, first, number));
    }
  }

  /// Slices that a call transforms at once, all of them on GPUs. On hosts a step finds the grids of the step before in the
  /// caches: there are as many as threads, or as these have room for. Slices that lie side by side stay together.
  static std::int64_t slices_at_once(const ExecutionSpace& space, const std::array<int, Dim>& grid,
                                     const GriddingOptions& options) {
    if (!Impl::is_host<ExecutionSpace> || options.order == SampleOrder::SlicesLast || options.slices == 0)
      return options.slices;
    std::int64_t bytes = sizeof(Complex);
    for (const int size : grid)
      bytes *= size;
    const std::int64_t most = std::max<std::int64_t>(space.concurrency(), Impl::host_grid_bytes / bytes);
    const std::int64_t rounds = (options.slices + most - 1) / most;
    return (options.slices + rounds - 1) / rounds;
  }

  /// Samples of `number` slices from `first` on; of all slices where they lie side by side.
  template <class Value>
  using Samples =
      Kokkos::View<Value**, Kokkos::LayoutRight, ExecutionSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  template <class Value>
  Samples<Value> some_samples(Value* data, std::int64_t first, std::int64_t number) const {
    const bool last = gridding_.order() == SampleOrder::SlicesLast;
    const auto points = static_cast<std::size_t>(gridding_.points()),
               slices = static_cast<std::size_t>(number);
    return Samples<Value>(data + first * gridding_.points(), last ? points : slices, last ? slices : points);
  }

  std::int64_t pixels() const {
    std::int64_t product = 1;
    for (const int size : image_)
      product *= size;
    return product;
  }

  Impl::SampleArray<const Complex> sample_array(const Complex* data, std::int64_t count) const {
    const bool last = gridding_.order() == SampleOrder::SlicesLast;
    return {data, last ? count : 1, last ? 1 : gridding_.points()};
  }

  static FFTDirection direction(int sign) {
    return sign > 0 ? FFTDirection::Backward : FFTDirection::Forward;
  }

  /// Of FFTs, which have at least one array.
  std::int64_t batch() const { return std::max<std::int64_t>(at_once_, 1); }

  Impl::ImageOnGrid<T, Dim> on_grid() const { return Impl::ImageOnGrid<T, Dim>::make(gridding_, image_); }

  GridView grid_view(std::int64_t count) const {
    Kokkos::LayoutRight layout(static_cast<std::size_t>(count));
    for (int d = 0; d < Dim; ++d)
      layout.dimension[d + 1] = static_cast<std::size_t>(gridding_.grid_shape()[std::size_t(d)]);
    return GridView(grids_.data(), layout);
  }

  /// Zeros in the grids of slices that a call does not have: FFTs transform them all.
  void clear_unused(const ExecutionSpace& space, std::int64_t count) const {
    const std::int64_t elements = on_grid().grid.elements();
    if (count < at_once_)
      Impl::fill(space, "Bracewell::NonuniformFFT::unused", grids_.data() + count * elements,
                 (at_once_ - count) * elements);
  }

  /// The number of slices.
  std::int64_t check(const Impl::Arguments& arguments, const Array<const Complex, MemorySpace>& samples,
                     const Array<const Complex, MemorySpace>& images) const {
    const std::int64_t count = Impl::check_samples(arguments, "samples", samples, gridding_.order(),
                                                   gridding_.points(), gridding_.slices());
    Impl::check_slices(arguments, "images", images, count, image_);
    return count;
  }

  std::array<int, Dim> image_;
  int sign_; ///< of the adjoint's exponent
  Plan gridding_;
  std::int64_t at_once_; ///< slices whose grids there are
  Transform adjoint_transform_, forward_transform_;
  Kokkos::View<Complex*, ExecutionSpace> grids_;
};

template <class ExecutionSpace, int Dim, class T>
NonuniformFFT<ExecutionSpace, Dim, T>::NonuniformFFT(const ExecutionSpace& space, const Points& points,
                                                     const std::array<int, Dim>& shape,
                                                     const GriddingOptions& options)
    : NonuniformFFT(Impl::Arguments{"NonuniformFFT"}, space, points, shape, options) {}

template <class ExecutionSpace, int Dim, class T>
std::size_t NonuniformFFT<ExecutionSpace, Dim, T>::bytes_needed(const ExecutionSpace& space,
                                                                const Points& points,
                                                                const std::array<int, Dim>& shape,
                                                                const GriddingOptions& options) {
  constexpr Impl::Arguments arguments{"NonuniformFFT::bytes_needed"};
  using Plans = Impl::NamedPlans;
  const auto grid = Plans::grid_shape<Plan>(arguments, space, points, shape, options);
  const std::int64_t at_once = slices_at_once(space, grid, options);
  const std::int64_t batch = std::max<std::int64_t>(at_once, 1);
  auto elements = static_cast<std::size_t>(at_once);
  for (const int size : grid)
    elements *= static_cast<std::size_t>(size);
  return Plans::bytes_needed<Plan>(arguments, space, points, shape, options) + elements * sizeof(Complex) +
         Transform::bytes_needed(space, grid, batch, {.direction = FFTDirection::Backward}) +
         Transform::bytes_needed(space, grid, batch);
}

template <class ExecutionSpace, int Dim, class T>
void NonuniformFFT<ExecutionSpace, Dim, T>::set_points(const ExecutionSpace& space, const Points& points) {
  set_points(Impl::Arguments{"NonuniformFFT::set_points"}, space, points);
}

template <class ExecutionSpace, int Dim, class T>
void NonuniformFFT<ExecutionSpace, Dim, T>::adjoint(const ExecutionSpace& space,
                                                    const Array<const Complex, MemorySpace>& samples,
                                                    const Array<Complex, MemorySpace>& images) const {
  const Impl::Arguments arguments{"NonuniformFFT::adjoint"};
  const std::int64_t count = check(arguments, samples, images);
  arguments.disjoint({{"images", images}}, {{"samples", samples}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::NonuniformFFT::adjoint");
  if (gridding_.points() == 0 || count == 0)
    return Impl::fill(space, "Bracewell::NonuniformFFT::zero", images.data, images.size());
  for (std::int64_t first = 0; first < count; first += at_once_) {
    const std::int64_t number = std::min(at_once_, count - first);
    gridding_.spread(space, some_samples(samples.data, first, number), grid_view(number));
    clear_unused(space, number);
    adjoint_transform_.execute(space, grid_view(batch()), grid_view(batch()));
    Impl::crop_grids(space, "Bracewell::NonuniformFFT::crop", on_grid(), grids_.data(), number,
                     Impl::PlainImages<Complex>{images.data + first * pixels()});
  }
}

template <class ExecutionSpace, int Dim, class T>
void NonuniformFFT<ExecutionSpace, Dim, T>::forward(const ExecutionSpace& space,
                                                    const Array<const Complex, MemorySpace>& images,
                                                    const Array<Complex, MemorySpace>& samples) const {
  const Impl::Arguments arguments{"NonuniformFFT::forward"};
  const std::int64_t count = check(arguments, samples, images);
  arguments.disjoint({{"samples", samples}}, {{"images", images}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::NonuniformFFT::forward");
  if (gridding_.points() > 0 && count > 0)
    transform_forward(space, Impl::PlainImages<const Complex>{images.data}, count, samples);
}

template <class ExecutionSpace, int Dim, class T>
void NonuniformFFT<ExecutionSpace, Dim, T>::point_gradients(
    const ExecutionSpace& space, const Array<const Complex, MemorySpace>& images,
    const Array<const Complex, MemorySpace>& samples, const Array<T, MemorySpace>& gradients,
    const Array<Complex, MemorySpace>& scratch) const {
  const Impl::Arguments arguments{"NonuniformFFT::point_gradients"};
  const std::int64_t count = check(arguments, samples, images);
  arguments.shape("gradients", gradients, {gridding_.points(), Dim});
  arguments.same_shape("scratch", scratch, samples);
  arguments.disjoint({{"gradients", gradients}, {"scratch", scratch}},
                     {{"images", images}, {"samples", samples}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::NonuniformFFT::point_gradients");
  const auto layout = on_grid();
  const auto two_pi = static_cast<T>(2 * std::numbers::pi * sign_);
  std::int64_t stride = 1;
  for (int axis = 0; axis < Dim; ++axis) {
    if (gridding_.points() > 0 && count > 0)
      transform_forward(space, Impl::SlopedImages<const Complex>{images.data, layout.image[axis], stride},
                        count, scratch);
    stride *= layout.image[axis];
    Impl::launch_kernel(
        "Bracewell::NonuniformFFT::point_gradients",
        Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, gridding_.points()),
        Impl::SumPointGradients<T>{sample_array(samples.data, count), sample_array(scratch.data, count),
                                   count, two_pi, gradients.data + axis, Dim});
  }
}

template <class ExecutionSpace, int Dim, class T>
NonuniformFFT<ExecutionSpace, Dim, T>::NonuniformFFT(const Impl::Arguments& arguments,
                                                     const ExecutionSpace& space, const Points& points,
                                                     const std::array<int, Dim>& shape,
                                                     const GriddingOptions& options)
    : image_(shape), sign_(options.sign),
      gridding_(Impl::NamedPlans::make<Plan>(arguments, space, points, shape, options)),
      at_once_(slices_at_once(space, gridding_.grid_shape(), options)),
      adjoint_transform_(space, gridding_.grid_shape(), batch(), {.direction = direction(options.sign)}),
      forward_transform_(space, gridding_.grid_shape(), batch(), {.direction = direction(-options.sign)}),
      grids_(Impl::device_vector<Complex>(space, "Bracewell::NonuniformFFT::grids",
                                          at_once_ * on_grid().grid.elements())) {}

template <class ExecutionSpace, int Dim, class T>
void NonuniformFFT<ExecutionSpace, Dim, T>::set_points(const Impl::Arguments& arguments,
                                                       const ExecutionSpace& space, const Points& points) {
  Impl::NamedPlans::set_points(arguments, gridding_, space, points);
}

namespace Impl {

/// Images whose pixels are multiplied by their coordinate along an axis.
template <class Value>
struct SlopedImages {
  Value* data;
  int size;            ///< of the axis
  std::int64_t stride; ///< of its pixels

  KOKKOS_FUNCTION std::remove_const_t<Value> get(std::int64_t slice, std::int64_t pixel,
                                                 std::int64_t pixels) const {
    const int at = static_cast<int>(pixel / stride % size) - size / 2;
    return typename Value::value_type(at) * data[slice * pixels + pixel];
  }
};

/// gradients(j, axis) = factor sum_slices Im(conj(samples_j) slopes_j)
template <class T>
struct SumPointGradients {
  SampleArray<const Kokkos::complex<T>> samples, slopes;
  std::int64_t slices;
  T factor;
  T* gradients; ///< at the axis
  int axes;

  KOKKOS_FUNCTION void operator()(std::int64_t point) const {
    T sum = 0;
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      const Kokkos::complex<T> sample = samples(point, slice), slope = slopes(point, slice);
      sum += sample.real() * slope.imag() - sample.imag() * slope.real();
    }
    gradients[point * axes] = factor * sum;
  }
};

} // namespace Impl

#define BRACEWELL_INSTANCES_NONUNIFORM_FFT_1D(Extern, Space, Real)                                           \
  Extern template class NonuniformFFT<Space, 1, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_NONUNIFORM_FFT_1D)
#define BRACEWELL_INSTANCES_NONUNIFORM_FFT_2D(Extern, Space, Real)                                           \
  Extern template class NonuniformFFT<Space, 2, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_NONUNIFORM_FFT_2D)
#define BRACEWELL_INSTANCES_NONUNIFORM_FFT_3D(Extern, Space, Real)                                           \
  Extern template class NonuniformFFT<Space, 3, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_NONUNIFORM_FFT_3D)

} // namespace Bracewell
