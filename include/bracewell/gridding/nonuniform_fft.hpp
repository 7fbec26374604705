// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/gridding/gridding.hpp>
#include <bracewell/impl/image_on_grid.hpp>

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
template <class ExecutionSpace, int Dim, class T>
class NonuniformFFT {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  using Grids = Kokkos::View<std::conditional_t<Dim == 2, Complex***, Complex****>, Kokkos::LayoutRight,
                             ExecutionSpace>;
  using Transform = FFT<ExecutionSpace, Dim, Complex, Complex>;

public:
  /// @param points  View [points, Dim] of double, or PolarPoints: see Gridding
  /// @throws Error as Gridding does
  template <class Points>
  NonuniformFFT(const ExecutionSpace& space, const Points& points, const std::array<int, Dim>& shape,
                const GriddingOptions& options = {})
      : image(shape), gridding(space, points, shape, options),
        backward(space, gridding.grid_shape(), options.slices, {.direction = FFTDirection::Backward}),
        forward_transform(space, gridding.grid_shape(), options.slices, {}), grids(allocate(space)) {}

  const Gridding<ExecutionSpace, Dim, T>& plan() const { return gridding; }

  /// @param samples  View of complex [slices, points], or [points, slices] as options.order says
  /// @param images   View of complex [slices, (depth,) height, width], overwritten
  template <class Samples, class Images>
  void adjoint(const ExecutionSpace& space, const Samples& samples, const Images& images) const {
    const Array<Complex, MemorySpace> out(images);
    check("adjoint", out);
    gridding.spread(space, samples, grids);
    backward.execute(space, grids, grids);
    Impl::crop_grids(space, "Bracewell::NonuniformFFT::crop",
                     Impl::ImageOnGrid<T, Dim>::make(gridding, image), grids.data(), gridding.slices(),
                     Impl::ComplexImages<Complex>{out.data});
  }

  /// @param images   View of complex [slices, (depth,) height, width]
  /// @param samples  View of complex [slices, points], or [points, slices] as options.order says, overwritten
  template <class Images, class Samples>
  void forward(const ExecutionSpace& space, const Images& images, const Samples& samples) const {
    const Array<const Complex, MemorySpace> in(images);
    check("forward", in);
    Impl::pad_images(space, "Bracewell::NonuniformFFT::pad", Impl::ImageOnGrid<T, Dim>::make(gridding, image),
                     Impl::ComplexImages<const Complex>{in.data}, gridding.slices(), grids.data());
    forward_transform.execute(space, grids, grids);
    gridding.interpolate(space, grids, samples);
  }

private:
  Grids allocate(const ExecutionSpace& space) const {
    const auto shape = gridding.grid_shape();
    const auto allocation =
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::NonuniformFFT::grids");
    if constexpr (Dim == 2)
      return Grids(allocation, gridding.slices(), shape[0], shape[1]);
    else
      return Grids(allocation, gridding.slices(), shape[0], shape[1], shape[2]);
  }

  template <class Value>
  void check(const char* function, const Array<Value, MemorySpace>& images) const {
    std::string expected = "[" + std::to_string(gridding.slices());
    bool fits = images && images.rank == Dim + 1 && images.extents[0] == gridding.slices();
    for (int axis = 0; axis < Dim; ++axis) {
      expected += ", " + std::to_string(image[axis]);
      fits = fits && images.extents[axis + 1] == image[axis];
    }
    if (!fits)
      Impl::fail((std::string("NonuniformFFT::") + function).c_str(), "images", expected + "]",
                 images.shape());
  }

  std::array<int, Dim> image;
  Gridding<ExecutionSpace, Dim, T> gridding;
  Transform backward, forward_transform;
  Grids grids;
};

} // namespace Bracewell
