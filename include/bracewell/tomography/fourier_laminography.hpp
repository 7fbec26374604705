// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/gridding/gridding.hpp>
#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/image_on_grid.hpp>
#include <bracewell/tomography/detail/frame_margins.hpp>
#include <bracewell/tomography/detail/laminography/frame_samples.hpp>
#include <bracewell/tomography/options.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>

namespace Bracewell {

/// Back-projection and projection about a tilted axis through Fourier space. The spectrum of a projection is a plane of
/// the volume's spectrum, through the origin and across the beam. A sample at (ku, kv) cycles per pixel lies at
/// ku e_u + kv e_v, with the detector's axes e_u, e_v of TiltedBeamGeometry. All planes together are one set of points of
/// a 3D gridding.
///   backproject  volume(X, Y, Z) = (pi cos(tilt) / P) sum_p w_p q_p(u, v)
/// q_p is the trigonometric interpolant of frame p, which continues periodically beyond the detector. After the ramp
/// filter |ku| (ProjectionFilter) `backproject` returns the attenuation per voxel, except at frequencies that no view
/// measures: cos(tilt) |ku| is the density of the planes. `project` is the exact transpose, or has the units of line
/// integrals (ProjectionUnits).
/// At tilt 0 both are FourierTomography for every slice. Laminography: Helfen et al., Appl. Phys. Lett. 86, 2005.
///
/// A movable plan. It has memory for a grid of 1.5 to 2 times the volume along every axis, and for the samples, width x rows
/// x P / 2. Calls that can overlap need a plan each.
template <class ExecutionSpace, class T>
class FourierLaminography {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  using Layout = Impl::PolarSampleLayout<ExecutionSpace, T>;
  using Gridding3D = Gridding<ExecutionSpace, 3, T>;
  using GridFFT = FFT<ExecutionSpace, 3, Complex, Complex>;
  using ToSpectra = FFT<ExecutionSpace, 2, T, Complex>;
  using ToFrames = FFT<ExecutionSpace, 2, Complex, T>;
  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;

public:
  /// Plans the gridding and the FFTs, and waits for them.
  /// @throws Error on sizes and options out of range, and angles, weights or centres that are not finite
  FourierLaminography(const ExecutionSpace& space, const TiltedBeamGeometry& geometry,
                      const FourierLaminographyOptions& options = {});

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return layout_.memory_bytes() + gridding_.memory_bytes() +
           Impl::bytes_of(row_factors_, samples_, grid_, workspace_);
  }

  /// What memory_bytes() of a plan of these arguments would be; it makes the points of the samples, 24 bytes each, and
  /// waits. (So does a plan while it is made.)
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, const TiltedBeamGeometry& geometry,
                                  const FourierLaminographyOptions& options = {});

  /// The gridding in it, for its strategy and sizes.
  const Gridding3D& plan() const { return gridding_; }

  /// @param projections  View of T [rows, angles, width]
  /// @param volume       View of T [depth, n, n], overwritten
  /// @throws Error on shapes that do not fit and shared memory
  void backproject(const ExecutionSpace& space, const Array<const T, MemorySpace>& projections,
                   const Array<T, MemorySpace>& volume) const;

  /// The transpose of backproject, in the units of the options.
  /// @param volume       View of T [depth, n, n]
  /// @param projections  View of T [rows, angles, width], overwritten
  /// @throws Error as backproject
  void project(const ExecutionSpace& space, const Array<const T, MemorySpace>& volume,
               const Array<T, MemorySpace>& projections) const;

private:
  struct Sizes : Impl::TiltedSizes {
    using Impl::TiltedSizes::TiltedSizes;
    Impl::FrameSamples of_frames() const { return {rows, width / 2 + 1}; }
    std::int64_t samples() const { return angles * of_frames().of_view(); }
    std::int64_t spectra() const { return std::int64_t(angles) * rows * (width / 2 + 1); }
    std::int64_t grid(const std::array<int, 3>& shape) const {
      return std::max(std::int64_t(shape[0]) * shape[1] * shape[2], spectra());
    }
  };

  static const TiltedBeamGeometry& checked(const Impl::Arguments& arguments,
                                           const TiltedBeamGeometry& geometry,
                                           const FourierLaminographyOptions& options) {
    return Impl::check_tilted(arguments, geometry, options);
  }
  static std::array<int, 3> shape(const Sizes& sizes) { return {sizes.depth, sizes.image, sizes.image}; }
  static GriddingOptions gridding_options(const FourierLaminographyOptions& options) {
    return {
        .tolerance = options.tolerance, .oversampling = options.oversampling, .strategy = options.strategy};
  }

  Impl::ImageOnGrid<T, 3> on_grid() const { return Impl::ImageOnGrid<T, 3>::make(gridding_, shape(sizes_)); }
  /// Frames lie where the samples do, half spectra where the grid does, which are not in use at the same time.
  Array<T, MemorySpace> frames() const {
    return Impl::array_of<MemorySpace>(reinterpret_cast<T*>(samples_.data()), sizes_.angles, sizes_.rows,
                                       sizes_.width);
  }
  Array<Complex, MemorySpace> spectra() const {
    return Impl::array_of<MemorySpace>(grid_.data(), sizes_.angles, sizes_.rows, sizes_.width / 2 + 1);
  }
  Array<Complex, MemorySpace> grid() const {
    const auto [depth, rows, columns] = gridding_.grid_shape();
    return Impl::array_of<MemorySpace>(grid_.data(), 1, depth, rows, columns);
  }
  Array<Complex, MemorySpace> samples() const {
    return Impl::array_of<MemorySpace>(samples_.data(), 1, sizes_.samples());
  }

  Sizes sizes_;
  Layout layout_;
  Kokkos::View<Complex*, ExecutionSpace> row_factors_;
  Gridding3D gridding_;
  ToSpectra to_spectra_;
  ToFrames to_frames_;
  GridFFT backward_, forward_;
  Kokkos::View<Complex*, ExecutionSpace> samples_, grid_;
  Kokkos::View<char*, ExecutionSpace> workspace_;
};

template <class ExecutionSpace, class T>
FourierLaminography<ExecutionSpace, T>::FourierLaminography(const ExecutionSpace& space,
                                                            const TiltedBeamGeometry& geometry,
                                                            const FourierLaminographyOptions& options)
    : sizes_(checked({"FourierLaminography"}, geometry, options), options),
      layout_(space, Impl::with_cosine(geometry), options.units),
      row_factors_(Impl::device_copy(space, "Bracewell::FourierLaminography::row_factors",
                                     Impl::row_factors<T>(geometry))),
      gridding_(Impl::NamedPlans::make<Gridding3D>({"FourierLaminography"}, space,
                                                   Impl::points_of_frames(space, geometry), shape(sizes_),
                                                   gridding_options(options))),
      // Plans without workspace of their own share one: they are never in use at the same time.
      to_spectra_(space, {sizes_.rows, sizes_.width}, sizes_.angles, {.external_workspace = true}),
      to_frames_(space, {sizes_.rows, sizes_.width}, sizes_.angles, {.external_workspace = true}),
      backward_(space, gridding_.grid_shape(), 1,
                {.direction = FFTDirection::Backward, .external_workspace = true}),
      forward_(space, gridding_.grid_shape(), 1, {.external_workspace = true}),
      samples_(
          Impl::device_vector<Complex>(space, "Bracewell::FourierLaminography::samples", sizes_.samples())),
      grid_(Impl::device_vector<Complex>(space, "Bracewell::FourierLaminography::grid",
                                         sizes_.grid(gridding_.grid_shape()))),
      workspace_(Impl::device_vector<char>(
          space, "Bracewell::FourierLaminography::workspace",
          std::int64_t(std::max({to_spectra_.workspace_bytes(), to_frames_.workspace_bytes(),
                                 backward_.workspace_bytes(), forward_.workspace_bytes()})))) {}

template <class ExecutionSpace, class T>
std::size_t FourierLaminography<ExecutionSpace, T>::bytes_needed(const ExecutionSpace& space,
                                                                 const TiltedBeamGeometry& geometry,
                                                                 const FourierLaminographyOptions& options) {
  constexpr Impl::Arguments arguments{"FourierLaminography::bytes_needed"};
  const Sizes sizes(checked(arguments, geometry, options), options);
  const auto points = Impl::points_of_frames(space, geometry);
  const GriddingOptions of_gridding = gridding_options(options);
  using Plans = Impl::NamedPlans;
  const auto grid = Plans::grid_shape<Gridding3D>(arguments, space, points, shape(sizes), of_gridding);
  const std::array<int, 2> frame{sizes.rows, sizes.width};
  const std::size_t workspace =
      std::max({ToSpectra::bytes_needed(space, frame, sizes.angles),
                ToFrames::bytes_needed(space, frame, sizes.angles),
                GridFFT::bytes_needed(space, grid, 1, {.direction = FFTDirection::Backward}),
                GridFFT::bytes_needed(space, grid, 1)});
  return Layout::bytes_needed(Impl::with_cosine(geometry), options.units) +
         Plans::bytes_needed<Gridding3D>(arguments, space, points, shape(sizes), of_gridding) +
         static_cast<std::size_t>(sizes.of_frames().frequencies() + sizes.samples() + sizes.grid(grid)) *
             sizeof(Complex) +
         workspace;
}

template <class ExecutionSpace, class T>
void FourierLaminography<ExecutionSpace, T>::backproject(const ExecutionSpace& space,
                                                         const Array<const T, MemorySpace>& projections,
                                                         const Array<T, MemorySpace>& volume) const {
  constexpr Impl::Arguments arguments{"FourierLaminography::backproject"};
  sizes_.check(arguments, projections, volume);
  arguments.disjoint({{"volume", volume}}, {{"projections", projections}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::FourierLaminography::backproject");
  Impl::for_each_row(
      space, "Bracewell::FourierLaminography::frames", std::int64_t(sizes_.angles) * sizes_.rows,
      Impl::PadFrames<T>{projections.data, frames().data, sizes_.angles, sizes_.angles, sizes_.rows,
                         sizes_.width, sizes_.rows, sizes_.width, Impl::FrameValues::Kept});
  to_spectra_.execute(space, frames(), spectra(), workspace_);
  Impl::launch_kernel("Bracewell::FourierLaminography::samples", Range(space, 0, sizes_.samples()),
                      Impl::SamplesFromFrames<T>{sizes_.of_frames(),
                                                 layout_.view(layout_.backprojected, nullptr),
                                                 row_factors_.data(), grid_.data(), samples_.data()});
  gridding_.spread(space, samples(), grid());
  backward_.execute(space, grid(), grid(), workspace_);
  Impl::crop_grids(space, "Bracewell::FourierLaminography::crop", on_grid(), grid_.data(), 1,
                   Impl::PairsOfImages<T>{volume.data, 1});
}

template <class ExecutionSpace, class T>
void FourierLaminography<ExecutionSpace, T>::project(const ExecutionSpace& space,
                                                     const Array<const T, MemorySpace>& volume,
                                                     const Array<T, MemorySpace>& projections) const {
  constexpr Impl::Arguments arguments{"FourierLaminography::project"};
  sizes_.check(arguments, projections, volume);
  arguments.disjoint({{"projections", projections}}, {{"volume", volume}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::FourierLaminography::project");
  Impl::pad_images(space, "Bracewell::FourierLaminography::pad", on_grid(),
                   Impl::PairsOfImages<const T>{volume.data, 1}, 1, grid_.data());
  forward_.execute(space, grid(), grid(), workspace_);
  gridding_.interpolate(space, grid(), samples());
  Impl::launch_kernel("Bracewell::FourierLaminography::spectra", Range(space, 0, sizes_.spectra()),
                      Impl::FramesFromSamples<T>{sizes_.of_frames(), layout_.view(layout_.projected, nullptr),
                                                 row_factors_.data(), samples_.data(), grid_.data()});
  to_frames_.execute(space, spectra(), frames(), workspace_);
  Impl::for_each_row(space, "Bracewell::FourierLaminography::rows", std::int64_t(sizes_.angles) * sizes_.rows,
                     Impl::CropFrames<T>{frames().data, projections.data, sizes_.angles, sizes_.angles,
                                         sizes_.rows, sizes_.width, sizes_.rows, sizes_.width,
                                         Impl::FrameValues::Kept});
}

#define BRACEWELL_INSTANCES_FOURIER_LAMINOGRAPHY(Extern, Space, Real)                                        \
  Extern template class FourierLaminography<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_FOURIER_LAMINOGRAPHY)

} // namespace Bracewell
