// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/gridding/gridding.hpp>
#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/image_on_grid.hpp>
#include <bracewell/tomography/detail/beam.hpp>
#include <bracewell/tomography/detail/polar_samples.hpp>
#include <bracewell/tomography/options.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace Bracewell {

/// Parallel-beam back-projection and projection through Fourier space. With X = column - floor(n/2),
/// Y = row - floor(n/2) and detector coordinate s = X cos(theta) + Y sin(theta) + centre,
///   backproject  image(X, Y) = (pi / P) sum_p w_p q_p(s)
/// q_p is the trigonometric interpolant of row p of the projections over its `width` pixels. It continues
/// periodically beyond the detector. After the ramp filter |frequency| the result is the attenuation per pixel.
/// `project` is the exact transpose, with weights and factor pi / P, or has the units of line integrals
/// (ProjectionUnits).
/// Fourier slice theorem: Bracewell, Aust. J. Phys. 9, 1956; gridding: O'Sullivan, IEEE Trans. Med. Imaging
/// 4(4), 1985.
///
/// Two real slices are transformed as one complex slice. Movable, not copyable; calls that can overlap need a
/// plan each, as it owns the memory of the grids. The steps are real FFTs along the detector, gridding, 2D
/// FFTs and cropping; a filter costs no extra pass.
template <class ExecutionSpace, class T>
class FourierTomography {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  using Gridding2D = Gridding<ExecutionSpace, 2, T>;
  using GridFFT = FFT<ExecutionSpace, 2, Complex, Complex>;

public:
  /// Plans the gridding and the FFTs, and waits for them.
  /// @throws Error on options out of range
  FourierTomography(const ExecutionSpace& space, const ParallelBeamGeometry& geometry,
                    const FourierTomographyOptions& options = {});

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return layout_.memory_bytes() + gridding_.memory_bytes() + Impl::bytes_of(samples_, grids_, workspace_);
  }

  /// What memory_bytes() of a plan of these arguments would be; see Gridding.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, const ParallelBeamGeometry& geometry,
                                  const FourierTomographyOptions& options = {});

  /// The gridding in it, for its strategy and sizes.
  const Gridding2D& plan() const { return gridding_; }

  /// @param projections  View of T [slices, angles, width], any number of slices
  /// @param images       View of T [slices, n, n], overwritten
  /// @param filter       View of T [width / 2 + 1]: factor of every frequency along the detector (k / width
  ///                     cycles per pixel); none by default
  /// @throws Error on shapes that do not fit and shared memory
  void backproject(const ExecutionSpace& space, const Array<const T, MemorySpace>& projections,
                   const Array<T, MemorySpace>& images, const Array<const T, MemorySpace>& filter = {}) const;

  /// The transpose of backproject with the same filter, in the units of the options.
  /// @param images       View of T [slices, n, n], any number of slices
  /// @param projections  View of T [slices, angles, width], overwritten
  /// @param filter       as in backproject
  /// @throws Error as backproject
  void project(const ExecutionSpace& space, const Array<const T, MemorySpace>& images,
               const Array<T, MemorySpace>& projections,
               const Array<const T, MemorySpace>& filter = {}) const;

private:
  /// Sizes of a pass.
  struct Sizes {
    std::int64_t slices, rays;
    int width, image;

    Sizes(const ParallelBeamGeometry& geometry, const FourierTomographyOptions& options)
        : slices(options.slices), rays(static_cast<std::int64_t>(geometry.angles.size())),
          width(geometry.width), image(options.image ? options.image : geometry.width) {}

    std::array<int, 2> shape() const { return {image, image}; }
    std::int64_t pairs() const { return (slices + 1) / 2; }
    std::int64_t rows() const { return slices * rays; }
    std::int64_t row_values() const { return rays * width; } ///< of a slice
    std::int64_t pixels() const { return std::int64_t(image) * image; }
    std::int64_t samples() const { return pairs() * rays * (width / 2 * 2 + 1); }
    std::int64_t grids(const std::array<int, 2>& shape) const {
      return std::max(pairs() * shape[0] * shape[1], rows() * (width / 2 + 1));
    }
  };

  /// What the gridding would refuse, too, which does not know that it works for this class.
  static const ParallelBeamGeometry& checked(const Impl::Arguments& arguments,
                                             const ParallelBeamGeometry& geometry,
                                             const FourierTomographyOptions& options) {
    const auto most =
        std::int64_t(std::numeric_limits<std::uint32_t>::max()) / std::max(1, geometry.width / 2 * 2 + 1);
    Impl::check_geometry(arguments, geometry, options.image, 1, 32768, 1, most);
    arguments.at_least("options.slices", options.slices, std::int64_t(1));
    if (!(options.tolerance >= (sizeof(T) == 4 ? 1e-7 : 1e-14) && options.tolerance < 1))
      arguments.refuse("options.tolerance", "at least %s, below 1, found %.6g",
                       sizeof(T) == 4 ? "1e-7" : "1e-14", options.tolerance);
    if (options.oversampling)
      arguments.within("options.oversampling", *options.oversampling, 1.2, 8.);
    return geometry;
  }

  /// Frequencies -width/2 .. width/2 of every ray. The Nyquist frequency of an even width counts half at
  /// either end, as the interpolant is real.
  static PolarPoints polar(const ParallelBeamGeometry& geometry) {
    return {.angles = geometry.angles, .samples = geometry.width / 2 * 2 + 1, .step = 1. / geometry.width};
  }

  static GriddingOptions gridding_options(const FourierTomographyOptions& options) {
    return {.slices = (options.slices + 1) / 2,
            .tolerance = options.tolerance,
            .oversampling = options.oversampling,
            .strategy = options.strategy,
            .order = SampleOrder::SlicesLast};
  }

  Impl::ImageOnGrid<T, 2> on_grid() const {
    return Impl::ImageOnGrid<T, 2>::make(gridding_, {sizes_.image, sizes_.image});
  }

  template <class Value>
  Array<Value, MemorySpace> rows(Value* data) const {
    return Impl::array_of<MemorySpace>(data, sizes_.rows(), sizes_.width);
  }
  /// Whether FFTs can take the rows of a pass where they lie: they transform all slices of one, and those of GPUs take real
  /// numbers from where complex ones could lie.
  bool fits_transforms(const T* values, std::int64_t count) const {
    return count == sizes_.slices &&
           (Impl::is_host<ExecutionSpace> || reinterpret_cast<std::uintptr_t>(values) % sizeof(Complex) == 0);
  }
  /// Rows of a whole pass lie where the samples do, which are not in use at the same time.
  T* all_rows() const { return reinterpret_cast<T*>(samples_.data()); }
  /// Half spectra lie where the grids do, likewise.
  Array<Complex, MemorySpace> spectra() const {
    return Impl::array_of<MemorySpace>(grids_.data(), sizes_.rows(), layout_.frequencies());
  }
  Array<Complex, MemorySpace> grid_array(std::int64_t pairs) const {
    const auto [rows, columns] = gridding_.grid_shape();
    return Impl::array_of<MemorySpace>(grids_.data(), pairs, rows, columns);
  }
  void transform_grids(const ExecutionSpace& space, const GridFFT& plan) const {
    const Array<Complex, MemorySpace> grids = grid_array(sizes_.pairs());
    plan.execute(space, grids, grids, workspace_);
  }
  Array<Complex, MemorySpace> samples(std::int64_t pairs) const {
    return Impl::array_of<MemorySpace>(samples_.data(), gridding_.points(), pairs);
  }
  Impl::SampleArray<Complex> sample_array(std::int64_t pairs) const { return {samples_.data(), pairs, 1}; }

  /// Zeros in the grids that a pass does not use.
  void clear_unused(const ExecutionSpace& space, std::int64_t pairs) const {
    const std::int64_t grid = std::int64_t(gridding_.grid_shape()[0]) * gridding_.grid_shape()[1];
    if (pairs < sizes_.pairs())
      Impl::fill(space, "Bracewell::FourierTomography::unused", grids_.data() + pairs * grid,
                 (sizes_.pairs() - pairs) * grid);
  }

  /// The number of slices.
  int check(const Impl::Arguments& arguments, const Array<const T, MemorySpace>& projections,
            const Array<const T, MemorySpace>& images, const Array<const T, MemorySpace>& filter) const {
    const std::int64_t frequencies = layout_.frequencies();
    if (filter)
      arguments.shape("filter", filter, {frequencies});
    return Impl::check_parallel_beam(arguments, sizes_.rays, sizes_.width, sizes_.image, projections, images);
  }

  Sizes sizes_;
  Impl::PolarSampleLayout<ExecutionSpace, T> layout_;
  Gridding2D gridding_;
  FFT<ExecutionSpace, 1, T, Complex> along_detector_;
  FFT<ExecutionSpace, 1, Complex, T> to_detector_;
  GridFFT backward_, forward_;
  Kokkos::View<Complex*, ExecutionSpace> samples_, grids_;
  Kokkos::View<char*, ExecutionSpace> workspace_;
};

template <class ExecutionSpace, class T>
FourierTomography<ExecutionSpace, T>::FourierTomography(const ExecutionSpace& space,
                                                        const ParallelBeamGeometry& geometry,
                                                        const FourierTomographyOptions& options)
    : sizes_(checked({"FourierTomography"}, geometry, options), options),
      layout_(space, geometry, options.units),
      gridding_(Impl::NamedPlans::make<Gridding2D>({"FourierTomography"}, space, polar(geometry),
                                                   sizes_.shape(), gridding_options(options))),
      // Plans without workspace of their own share one: they are never in use at the same time.
      along_detector_(space, {geometry.width}, sizes_.rows(), {.external_workspace = true}),
      to_detector_(space, {geometry.width}, sizes_.rows(), {.external_workspace = true}),
      backward_(space, gridding_.grid_shape(), sizes_.pairs(),
                {.direction = FFTDirection::Backward, .external_workspace = true}),
      forward_(space, gridding_.grid_shape(), sizes_.pairs(), {.external_workspace = true}),
      samples_(
          Impl::device_vector<Complex>(space, "Bracewell::FourierTomography::samples", sizes_.samples())),
      grids_(Impl::device_vector<Complex>(space, "Bracewell::FourierTomography::grids",
                                          sizes_.grids(gridding_.grid_shape()))),
      workspace_(Impl::device_vector<char>(
          space, "Bracewell::FourierTomography::workspace",
          std::int64_t(std::max({along_detector_.workspace_bytes(), to_detector_.workspace_bytes(),
                                 backward_.workspace_bytes(), forward_.workspace_bytes()})))) {}

template <class ExecutionSpace, class T>
std::size_t FourierTomography<ExecutionSpace, T>::bytes_needed(const ExecutionSpace& space,
                                                               const ParallelBeamGeometry& geometry,
                                                               const FourierTomographyOptions& options) {
  constexpr Impl::Arguments arguments{"FourierTomography::bytes_needed"};
  const Sizes sizes(checked(arguments, geometry, options), options);
  const GriddingOptions of_gridding = gridding_options(options);
  using Plans = Impl::NamedPlans;
  const auto grid =
      Plans::grid_shape<Gridding2D>(arguments, space, polar(geometry), sizes.shape(), of_gridding);
  const std::size_t workspace =
      std::max({FFT<ExecutionSpace, 1, T, Complex>::bytes_needed(space, {geometry.width}, sizes.rows()),
                FFT<ExecutionSpace, 1, Complex, T>::bytes_needed(space, {geometry.width}, sizes.rows()),
                GridFFT::bytes_needed(space, grid, sizes.pairs(), {.direction = FFTDirection::Backward}),
                GridFFT::bytes_needed(space, grid, sizes.pairs())});
  return Impl::PolarSampleLayout<ExecutionSpace, T>::bytes_needed(geometry, options.units) +
         Plans::bytes_needed<Gridding2D>(arguments, space, polar(geometry), sizes.shape(), of_gridding) +
         static_cast<std::size_t>(sizes.samples() + sizes.grids(grid)) * sizeof(Complex) + workspace;
}

template <class ExecutionSpace, class T>
void FourierTomography<ExecutionSpace, T>::backproject(const ExecutionSpace& space,
                                                       const Array<const T, MemorySpace>& projections,
                                                       const Array<T, MemorySpace>& images,
                                                       const Array<const T, MemorySpace>& filter) const {
  constexpr Impl::Arguments arguments{"FourierTomography::backproject"};
  const int slices = check(arguments, projections, images, filter);
  arguments.disjoint({{"images", images}}, {{"projections", projections}, {"filter", filter}});
  if (slices == 0)
    return;
  Kokkos::Profiling::ScopedRegion region("Bracewell::FourierTomography::backproject");
  for (std::int64_t first = 0; first < slices; first += sizes_.slices) {
    const std::int64_t count = std::min(sizes_.slices, slices - first), pairs = (count + 1) / 2;
    const T* values = projections.data + first * sizes_.row_values();
    if (!fits_transforms(values, count)) {
      Impl::copy_padded(space, "Bracewell::FourierTomography::fill", values, count * sizes_.row_values(),
                        all_rows(), sizes_.slices * sizes_.row_values());
      values = all_rows();
    }
    along_detector_.execute(space, rows(values), spectra(), workspace_);
    Impl::samples_from_spectra(space, layout_.view(layout_.backprojected, filter.data), grids_.data(), count,
                               sample_array(pairs));
    gridding_.spread(space, samples(pairs), grid_array(pairs));
    clear_unused(space, pairs);
    transform_grids(space, backward_);
    Impl::crop_grids(space, "Bracewell::FourierTomography::crop", on_grid(), grids_.data(), pairs,
                     Impl::PairsOfImages<T>{images.data + first * sizes_.pixels(), count});
  }
}

template <class ExecutionSpace, class T>
void FourierTomography<ExecutionSpace, T>::project(const ExecutionSpace& space,
                                                   const Array<const T, MemorySpace>& images,
                                                   const Array<T, MemorySpace>& projections,
                                                   const Array<const T, MemorySpace>& filter) const {
  constexpr Impl::Arguments arguments{"FourierTomography::project"};
  const int slices = check(arguments, projections, images, filter);
  arguments.disjoint({{"projections", projections}}, {{"images", images}, {"filter", filter}});
  if (slices == 0)
    return;
  Kokkos::Profiling::ScopedRegion region("Bracewell::FourierTomography::project");
  for (std::int64_t first = 0; first < slices; first += sizes_.slices) {
    const std::int64_t count = std::min(sizes_.slices, slices - first), pairs = (count + 1) / 2;
    Impl::pad_images(space, "Bracewell::FourierTomography::pad", on_grid(),
                     Impl::PairsOfImages<const T>{images.data + first * sizes_.pixels(), count}, pairs,
                     grids_.data());
    clear_unused(space, pairs);
    transform_grids(space, forward_);
    gridding_.interpolate(space, grid_array(pairs), samples(pairs));
    Impl::spectra_from_samples(space, layout_.view(layout_.projected, filter.data), sample_array(pairs),
                               count, grids_.data());
    T* const values = projections.data + first * sizes_.row_values();
    if (fits_transforms(values, count)) {
      to_detector_.execute(space, spectra(), rows(values), workspace_);
      continue;
    }
    const std::int64_t used = count * sizes_.rays * layout_.frequencies();
    Impl::fill(space, "Bracewell::FourierTomography::unused", grids_.data() + used,
               sizes_.rows() * layout_.frequencies() - used);
    to_detector_.execute(space, spectra(), rows(all_rows()), workspace_);
    Impl::copy_padded(space, "Bracewell::FourierTomography::take", static_cast<const T*>(all_rows()),
                      count * sizes_.row_values(), values, count * sizes_.row_values());
  }
}

#define BRACEWELL_INSTANCES_FOURIER_TOMOGRAPHY(Extern, Space, Real)                                          \
  Extern template class FourierTomography<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_FOURIER_TOMOGRAPHY)

} // namespace Bracewell
