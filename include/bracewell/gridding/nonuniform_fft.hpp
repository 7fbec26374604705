// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/gridding/gridding.hpp>
#include <bracewell/impl/image_on_grid.hpp>

#include <algorithm>

namespace Bracewell {

/// Discrete Fourier transforms between samples at any frequencies x_j (cycles per pixel) and images, 2D or
/// 3D:
///   adjoint  image(X) = sum_j sample_j exp(+2 pi i x_j . X)     ("type 1")
///   forward  sample_j = sum_X image(X) exp(-2 pi i x_j . X)     ("type 2")
/// with pixels X = index - size / 2 (rounded down) along every axis, exact transposes (complex conjugate) of
/// each other, to the tolerance of the options. Not scaled. Dutt and Rokhlin, SIAM J. Sci. Comput. 14(6),
/// 1993.
///
/// Movable, not copyable; owns the grids and the FFT's workspace, so calls that can overlap need a plan each.
/// Without points images are zero; without slices there is nothing to do.
template <class ExecutionSpace, int Dim, class T>
class NonuniformFFT {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  using GridView = Kokkos::View<std::conditional_t<Dim == 2, Complex***, Complex****>, Kokkos::LayoutRight,
                                ExecutionSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using Transform = FFT<ExecutionSpace, Dim, Complex, Complex>;

public:
  /// @param points  View [points, Dim] of double, or PolarPoints: see Gridding
  /// @param shape   image size {(depth,) height, width}
  /// @throws Error as Gridding does
  template <class Points>
  NonuniformFFT(const ExecutionSpace& space, const Points& points, const std::array<int, Dim>& shape,
                const GriddingOptions& options = {})
      : image(shape), gridding(space, points, shape, options, Impl::Arguments{"NonuniformFFT"}),
        backward(space, gridding.grid_shape(), batch(), {.direction = FFTDirection::Backward}),
        forward_transform(space, gridding.grid_shape(), batch(), {}),
        grids(Impl::device_vector<Complex>(space, "Bracewell::NonuniformFFT::grids",
                                           gridding.slices() * on_grid().grid.elements())) {}

  /// The plan that carries samples to the grids.
  const Gridding<ExecutionSpace, Dim, T>& plan() const { return gridding; }

  /// Samples to images.
  /// @param samples  View of complex [slices, points], or [points, slices] as options.order says
  /// @param images   View of complex [slices, (depth,) height, width], overwritten
  /// @throws Error on shapes that do not fit or memory that both use
  template <class Samples, class Images>
  void adjoint(const ExecutionSpace& space, const Samples& samples, const Images& images) const {
    const Array<const Complex, MemorySpace> in(samples);
    const Array<Complex, MemorySpace> out(images);
    const Impl::Arguments arguments{"NonuniformFFT::adjoint"};
    check(arguments, in, out);
    arguments.disjoint({{"images", out}}, {{"samples", in}});
    Kokkos::Profiling::ScopedRegion region("Bracewell::NonuniformFFT::adjoint");
    if (gridding.points() == 0 || gridding.slices() == 0)
      return Impl::fill(space, "Bracewell::NonuniformFFT::zero", out.data, out.size());
    gridding.spread(space, samples, grid_view());
    backward.execute(space, grid_view(), grid_view());
    Impl::crop_grids(space, "Bracewell::NonuniformFFT::crop", on_grid(), grids.data(), gridding.slices(),
                     Impl::ComplexImages<Complex>{out.data});
  }

  /// Images to samples.
  /// @param images   View of complex [slices, (depth,) height, width]
  /// @param samples  View of complex [slices, points], or [points, slices] as options.order says, overwritten
  /// @throws Error on shapes that do not fit or memory that both use
  template <class Images, class Samples>
  void forward(const ExecutionSpace& space, const Images& images, const Samples& samples) const {
    const Array<const Complex, MemorySpace> in(images);
    const Array<Complex, MemorySpace> out(samples);
    const Impl::Arguments arguments{"NonuniformFFT::forward"};
    check(arguments, out, in);
    arguments.disjoint({{"samples", out}}, {{"images", in}});
    Kokkos::Profiling::ScopedRegion region("Bracewell::NonuniformFFT::forward");
    if (gridding.points() == 0 || gridding.slices() == 0)
      return;
    Impl::pad_images(space, "Bracewell::NonuniformFFT::pad", on_grid(),
                     Impl::ComplexImages<const Complex>{in.data}, gridding.slices(), grids.data());
    forward_transform.execute(space, grid_view(), grid_view());
    gridding.interpolate(space, grid_view(), samples);
  }

private:
  /// Of FFTs, which have at least one array.
  std::int64_t batch() const { return std::max<std::int64_t>(gridding.slices(), 1); }

  Impl::ImageOnGrid<T, Dim> on_grid() const { return Impl::ImageOnGrid<T, Dim>::make(gridding, image); }

  GridView grid_view() const {
    const auto shape = gridding.grid_shape();
    if constexpr (Dim == 2)
      return GridView(grids.data(), gridding.slices(), shape[0], shape[1]);
    else
      return GridView(grids.data(), gridding.slices(), shape[0], shape[1], shape[2]);
  }

  void check(const Impl::Arguments& arguments, const Array<const Complex, MemorySpace>& samples,
             const Array<const Complex, MemorySpace>& images) const {
    Impl::check_samples(arguments, samples, gridding.order(), gridding.points(), gridding.slices());
    Impl::check_slices(arguments, "images", images, gridding.slices(), image);
  }

  std::array<int, Dim> image;
  Gridding<ExecutionSpace, Dim, T> gridding;
  Transform backward, forward_transform;
  Kokkos::View<Complex*, ExecutionSpace> grids;
};

} // namespace Bracewell
