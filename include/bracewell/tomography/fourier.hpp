// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/gridding/gridding.hpp>
#include <bracewell/impl/image_on_grid.hpp>
#include <bracewell/tomography/detail/polar_samples.hpp>

#include <numbers>
#include <vector>

namespace Bracewell {

struct FourierTomographyOptions {
  std::vector<double> angles = {}; ///< radians: any number, order and span
  int width = 0;                   ///< pixels of the detector
  std::int64_t slices = 1;         ///< how many a call reconstructs
  std::optional<double> centre =
      std::nullopt;                 ///< detector coordinate of the axis; floor(width / 2) by default
  double tolerance = 1e-4;          ///< relative error (L2)
  std::vector<double> weights = {}; ///< of the angles, 1 on average; empty: all are 1
  GriddingStrategy strategy = GriddingStrategy::Automatic;
  GriddingKernel kernel = GriddingKernel::KaiserBessel;
  std::optional<double> oversampling = std::nullopt; ///< of the grid, see GriddingOptions
  int image = 0; ///< pixels along both axes of images; 0: the detector's width
};

/// Parallel-beam back-projection and projection through Fourier space. With X = column - floor(n/2), Y = row
/// - floor(n/2) and detector coordinate s = X cos(theta) + Y sin(theta) + centre,
///   backproject  image(X, Y) = (pi / P) sum_p w_p q_p(s)
/// q_p the trigonometric interpolant of row p of the projections over its `width` pixels (which continues
/// periodically beyond the detector): the adjoint of the Radon transform in its own units, so that
/// projections filtered by the ramp |frequency| give the attenuation per pixel. `project` is the exact
/// transpose, weights and factor pi / P included. Fourier slice theorem: Bracewell, Aust. J. Phys. 9, 1956;
/// gridding: O'Sullivan, IEEE Trans. Med. Imaging 4(4), 1985.
///
/// Two real slices are transformed as one complex slice. Movable, not copyable; calls that can overlap need a
/// plan each, as it owns the memory of the grids. The steps are real FFTs along the detector, gridding, 2D
/// FFTs and cropping; a filter costs no extra pass.
template <class ExecutionSpace, class T>
class FourierTomography {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  template <class Value>
  using Unmanaged =
      Kokkos::View<Value, Kokkos::LayoutRight, ExecutionSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

public:
  /// @throws Error on options out of range
  FourierTomography(const ExecutionSpace& space, const FourierTomographyOptions& options)
      : slices(options.slices), rays(static_cast<std::int64_t>(options.angles.size())),
        layout(make_layout(space, checked(options))), image(options.image ? options.image : options.width),
        gridding(space, polar(options), {image, image}, gridding_options(options),
                 Impl::Arguments{"FourierTomography"}),
        // Plans without workspace of their own share one: they never run at the same time.
        along_detector(space, {options.width}, slices * rays, {.external_workspace = true}),
        to_detector(space, {options.width}, slices * rays, {.external_workspace = true}),
        backward(space, gridding.grid_shape(), pairs(),
                 {.direction = FFTDirection::Backward, .external_workspace = true}),
        forward(space, gridding.grid_shape(), pairs(), {.external_workspace = true}),
        samples(
            Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::FourierTomography::samples"),
            pairs() * gridding.points()),
        grids(Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::FourierTomography::grids"),
              std::max(pairs() * grid_elements(), slices * rays * layout.frequencies())),
        workspace(
            Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::FourierTomography::workspace"),
            std::max({along_detector.workspace_bytes(), to_detector.workspace_bytes(),
                      backward.workspace_bytes(), forward.workspace_bytes()})) {}

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return gridding.memory_bytes() + (samples.size() + grids.size()) * sizeof(Complex) + workspace.size();
  }

  const Gridding<ExecutionSpace, 2, T>& plan() const { return gridding; }

  /// @param projections  View of T [slices, angles, width]
  /// @param images       View of T [slices, n, n], overwritten
  /// @param filter       View of T [width / 2 + 1]: factor of every frequency along the detector (k / width
  /// cycles
  ///                     per pixel); none by default
  /// @throws Error on shapes that do not fit
  template <class Projections, class Images>
  void backproject(const ExecutionSpace& space, const Projections& projections, const Images& images,
                   const Array<const T, MemorySpace>& filter = {}) const {
    const Array<const T, MemorySpace> in(projections);
    const Array<T, MemorySpace> out(images);
    check("backproject", in, out, filter);
    Kokkos::Profiling::ScopedRegion region("Bracewell::FourierTomography::backproject");
    along_detector.execute(space, rows(in.data), spectra(), workspace);
    Impl::samples_from_spectra(space, layout.view(filter.data), spectra().data(), slices, sample_array());
    gridding.spread(space, sample_view(), grid_view());
    backward.execute(space, grid_view(), grid_view(), workspace);
    Impl::crop_grids(space, "Bracewell::FourierTomography::crop", on_grid(), grids.data(), pairs(),
                     Impl::PairsOfImages<T>{out.data, slices});
  }

  /// The exact transpose of backproject with the same filter.
  /// @param images       View of T [slices, n, n]
  /// @param projections  View of T [slices, angles, width], overwritten
  template <class Images, class Projections>
  void project(const ExecutionSpace& space, const Images& images, const Projections& projections,
               const Array<const T, MemorySpace>& filter = {}) const {
    const Array<const T, MemorySpace> in(images);
    const Array<T, MemorySpace> out(projections);
    check("project", out, in, filter);
    Kokkos::Profiling::ScopedRegion region("Bracewell::FourierTomography::project");
    Impl::pad_images(space, "Bracewell::FourierTomography::pad", on_grid(),
                     Impl::PairsOfImages<const T>{in.data, slices}, pairs(), grids.data());
    forward.execute(space, grid_view(), grid_view(), workspace);
    gridding.interpolate(space, grid_view(), sample_view());
    Impl::spectra_from_samples(space, layout.view(filter.data), sample_array(), slices, spectra().data());
    to_detector.execute(space, spectra(), rows(out.data), workspace);
  }

private:
  static const FourierTomographyOptions& checked(const FourierTomographyOptions& options) {
    const char* function = "FourierTomography";
    for (const auto& [name, size] :
         {std::pair{"width", options.width}, {"image", options.image ? options.image : 1}})
      if (size < 1 || size > 32768)
        Impl::fail(function, name, "from 1 to 32768 pixels", std::to_string(size));
    if (options.slices < 1)
      Impl::fail(function, "slices", "at least 1", std::to_string(options.slices));
    if (options.angles.empty())
      Impl::fail(function, "angles", "at least one", "none");
    if (!options.weights.empty() && options.weights.size() != options.angles.size())
      Impl::fail(function, "weights", "none or " + std::to_string(options.angles.size()) + ", one per angle",
                 std::to_string(options.weights.size()));
    for (const double weight : options.weights)
      if (!std::isfinite(weight))
        Impl::fail(function, "weights", "finite values", std::to_string(weight));
    if (!(std::abs(options.centre.value_or(0)) <= 1e6))
      Impl::fail(function, "centre", "a detector coordinate in pixels", std::to_string(*options.centre));
    return options;
  }

  static Impl::PolarSampleLayout<ExecutionSpace, T> make_layout(const ExecutionSpace& space,
                                                                const FourierTomographyOptions& options) {
    const double scale = std::numbers::pi / static_cast<double>(options.angles.size());
    std::vector<T> weights(options.angles.size(), static_cast<T>(scale));
    for (std::size_t p = 0; p < options.weights.size(); ++p)
      weights[p] = static_cast<T>(scale * options.weights[p]);
    return {space, options.width, options.centre.value_or(options.width / 2), weights};
  }

  /// Frequencies -width/2 .. width/2 of every ray. The Nyquist frequency of an even width counts half at
  /// either end, as the interpolant is real.
  static PolarPoints polar(const FourierTomographyOptions& options) {
    return {.angles = options.angles, .samples = options.width / 2 * 2 + 1, .step = 1. / options.width};
  }

  static GriddingOptions gridding_options(const FourierTomographyOptions& options) {
    return {.slices = (options.slices + 1) / 2,
            .tolerance = options.tolerance,
            .kernel = options.kernel,
            .oversampling = options.oversampling,
            .strategy = options.strategy,
            .order = SampleOrder::SlicesLast};
  }

  std::int64_t pairs() const { return (slices + 1) / 2; }
  std::int64_t grid_elements() const {
    return std::int64_t(gridding.grid_shape()[0]) * gridding.grid_shape()[1];
  }
  Impl::ImageOnGrid<T, 2> on_grid() const { return Impl::ImageOnGrid<T, 2>::make(gridding, {image, image}); }

  template <class Value>
  Unmanaged<Value**> rows(Value* data) const {
    return Unmanaged<Value**>(data, slices * rays, layout.width);
  }
  /// Half spectra lie where the grids do, which are not in use at the same time.
  Unmanaged<Complex**> spectra() const {
    return Unmanaged<Complex**>(grids.data(), slices * rays, layout.frequencies());
  }
  Unmanaged<Complex***> grid_view() const {
    return Unmanaged<Complex***>(grids.data(), pairs(), gridding.grid_shape()[0], gridding.grid_shape()[1]);
  }
  Unmanaged<Complex**> sample_view() const {
    return Unmanaged<Complex**>(samples.data(), gridding.points(), pairs());
  }
  Impl::SampleArray<Complex> sample_array() const { return {samples.data(), pairs(), 1}; }

  void check(const char* function, const Array<const T, MemorySpace>& projections,
             const Array<T, MemorySpace>& images, const Array<const T, MemorySpace>& filter) const {
    check(function, Array<const T, MemorySpace>(projections), constant(images), filter);
  }
  void check(const char* function, const Array<T, MemorySpace>& projections,
             const Array<const T, MemorySpace>& images, const Array<const T, MemorySpace>& filter) const {
    check(function, constant(projections), images, filter);
  }
  static Array<const T, MemorySpace> constant(const Array<T, MemorySpace>& array) { return array; }

  void check(const char* function, const Array<const T, MemorySpace>& projections,
             const Array<const T, MemorySpace>& images, const Array<const T, MemorySpace>& filter) const {
    const std::string name = std::string("FourierTomography::") + function;
    require_shape(name, "projections", projections, {slices, rays, layout.width});
    require_shape(name, "images", images, {slices, image, image});
    if (Impl::overlap(projections, images))
      Impl::fail(name.c_str(), "images", "memory of its own", "memory shared with projections");
    if (filter && (filter.rank != 1 || filter.extents[0] != layout.frequencies()))
      Impl::fail(name.c_str(), "filter", "[" + std::to_string(layout.frequencies()) + "]", filter.shape());
  }

  static void require_shape(const std::string& function, const char* argument,
                            const Array<const T, MemorySpace>& array,
                            const std::array<std::int64_t, 3>& shape) {
    bool fits = array && array.rank == 3;
    for (int axis = 0; fits && axis < 3; ++axis)
      fits = array.extents[axis] == shape[axis];
    if (!fits)
      Impl::fail(function.c_str(), argument,
                 "[" + std::to_string(shape[0]) + ", " + std::to_string(shape[1]) + ", " +
                     std::to_string(shape[2]) + "]",
                 array.shape());
  }

  std::int64_t slices, rays;
  Impl::PolarSampleLayout<ExecutionSpace, T> layout;
  int image;
  Gridding<ExecutionSpace, 2, T> gridding;
  FFT<ExecutionSpace, 1, T, Complex> along_detector;
  FFT<ExecutionSpace, 1, Complex, T> to_detector;
  FFT<ExecutionSpace, 2, Complex, Complex> backward, forward;
  Kokkos::View<Complex*, ExecutionSpace> samples, grids;
  Kokkos::View<char*, MemorySpace> workspace;
};

} // namespace Bracewell
