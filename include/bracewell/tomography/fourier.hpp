// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/gridding/gridding.hpp>
#include <bracewell/impl/image_on_grid.hpp>
#include <bracewell/tomography/detail/beam.hpp>
#include <bracewell/tomography/detail/polar_samples.hpp>
#include <bracewell/tomography/options.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <limits>
#include <numbers>
#include <vector>

namespace Bracewell {

/// Parallel-beam back-projection and projection through Fourier space. With X = column - floor(n/2),
/// Y = row - floor(n/2) and detector coordinate s = X cos(theta) + Y sin(theta) + centre,
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
  /// Plans the gridding and the FFTs, and waits for them.
  /// @throws Error on options out of range
  FourierTomography(const ExecutionSpace& space, const FourierTomographyOptions& options)
      : slices_(options.slices), rays_(static_cast<std::int64_t>(options.angles.size())),
        layout_(make_layout(space, checked(options))), image_(options.image ? options.image : options.width),
        gridding_(space, polar(options), {image_, image_}, gridding_options(options),
                  Impl::Arguments{"FourierTomography"}),
        // Plans without workspace of their own share one: they never run at the same time.
        along_detector_(space, {options.width}, slices_ * rays_, {.external_workspace = true}),
        to_detector_(space, {options.width}, slices_ * rays_, {.external_workspace = true}),
        backward_(space, gridding_.grid_shape(), pairs(),
                  {.direction = FFTDirection::Backward, .external_workspace = true}),
        forward_(space, gridding_.grid_shape(), pairs(), {.external_workspace = true}),
        samples_(Impl::device_vector<Complex>(space, "Bracewell::FourierTomography::samples",
                                              pairs() * gridding_.points())),
        grids_(Impl::device_vector<Complex>(
            space, "Bracewell::FourierTomography::grids",
            std::max(pairs() * grid_elements(), slices_ * rays_ * layout_.frequencies()))),
        workspace_(Impl::device_vector<char>(
            space, "Bracewell::FourierTomography::workspace",
            std::int64_t(std::max({along_detector_.workspace_bytes(), to_detector_.workspace_bytes(),
                                   backward_.workspace_bytes(), forward_.workspace_bytes()})))) {}

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return gridding_.memory_bytes() + (samples_.size() + grids_.size()) * sizeof(Complex) + workspace_.size();
  }

  /// The gridding in it, for its strategy and sizes.
  const Gridding<ExecutionSpace, 2, T>& plan() const { return gridding_; }

  /// @param projections  View of T [slices, angles, width], or of no slices
  /// @param images       View of T [slices, n, n], overwritten
  /// @param filter       View of T [width / 2 + 1]: factor of every frequency along the detector (k / width
  ///                     cycles per pixel); none by default
  /// @throws Error on shapes that do not fit and shared memory
  template <class Projections, class Images>
  void backproject(const ExecutionSpace& space, const Projections& projections, const Images& images,
                   const Array<const T, MemorySpace>& filter = {}) const {
    constexpr Impl::Arguments arguments{"FourierTomography::backproject"};
    const Array<const T, MemorySpace> in(projections);
    const Array<T, MemorySpace> out(images);
    check(arguments, in, out, filter);
    arguments.disjoint({{"images", out}}, {{"projections", in}, {"filter", filter}});
    if (out.extents[0] == 0)
      return;
    Kokkos::Profiling::ScopedRegion region("Bracewell::FourierTomography::backproject");
    along_detector_.execute(space, rows(in.data), spectra(), workspace_);
    Impl::samples_from_spectra(space, layout_.view(filter.data), spectra().data(), slices_, sample_array());
    gridding_.spread(space, sample_view(), grid_view());
    backward_.execute(space, grid_view(), grid_view(), workspace_);
    Impl::crop_grids(space, "Bracewell::FourierTomography::crop", on_grid(), grids_.data(), pairs(),
                     Impl::PairsOfImages<T>{out.data, slices_});
  }

  /// The exact transpose of backproject with the same filter.
  /// @param images       View of T [slices, n, n], or of no slices
  /// @param projections  View of T [slices, angles, width], overwritten
  /// @param filter       as in backproject
  /// @throws Error as backproject
  template <class Images, class Projections>
  void project(const ExecutionSpace& space, const Images& images, const Projections& projections,
               const Array<const T, MemorySpace>& filter = {}) const {
    constexpr Impl::Arguments arguments{"FourierTomography::project"};
    const Array<const T, MemorySpace> in(images);
    const Array<T, MemorySpace> out(projections);
    check(arguments, out, in, filter);
    arguments.disjoint({{"projections", out}}, {{"images", in}, {"filter", filter}});
    if (out.extents[0] == 0)
      return;
    Kokkos::Profiling::ScopedRegion region("Bracewell::FourierTomography::project");
    Impl::pad_images(space, "Bracewell::FourierTomography::pad", on_grid(),
                     Impl::PairsOfImages<const T>{in.data, slices_}, pairs(), grids_.data());
    forward_.execute(space, grid_view(), grid_view(), workspace_);
    gridding_.interpolate(space, grid_view(), sample_view());
    Impl::spectra_from_samples(space, layout_.view(filter.data), sample_array(), slices_, spectra().data());
    to_detector_.execute(space, spectra(), rows(out.data), workspace_);
  }

private:
  /// What the gridding would refuse, too, which does not know that it works for this class.
  static const FourierTomographyOptions& checked(const FourierTomographyOptions& options) {
    constexpr Impl::Arguments arguments{"FourierTomography"};
    arguments.within("options.width", options.width, 1, 32768, " pixels");
    if (options.image != 0)
      arguments.within("options.image", options.image, 1, 32768, " pixels");
    arguments.at_least("options.slices", options.slices, std::int64_t(1));
    const auto most = std::int64_t(std::numeric_limits<std::uint32_t>::max()) / ray_samples(options);
    arguments.within("options.angles", std::int64_t(options.angles.size()), std::int64_t(1), most, " angles");
    Impl::check_angles(arguments, options.angles);
    Impl::check_weights(arguments, options.weights, options.angles.size());
    if (options.centre)
      arguments.within("options.centre", *options.centre, -1e6, 1e6, " pixels");
    arguments.require(options.tolerance >= (sizeof(T) == 4 ? 1e-7 : 1e-14) && options.tolerance < 1,
                      "options.tolerance",
                      sizeof(T) == 4 ? "at least 1e-7, below 1" : "at least 1e-14, below 1",
                      [&] { return Impl::number(options.tolerance); });
    if (options.oversampling)
      arguments.within("options.oversampling", *options.oversampling, 1.2, 8.);
    arguments.require(options.strategy != GriddingStrategy::Duplicated || Impl::is_host<ExecutionSpace>,
                      "options.strategy", "Duplicated on hosts only", "it on a GPU");
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
    return {.angles = options.angles, .samples = ray_samples(options), .step = 1. / options.width};
  }
  static int ray_samples(const FourierTomographyOptions& options) { return options.width / 2 * 2 + 1; }

  static GriddingOptions gridding_options(const FourierTomographyOptions& options) {
    return {.slices = (options.slices + 1) / 2,
            .tolerance = options.tolerance,
            .kernel = options.kernel,
            .oversampling = options.oversampling,
            .strategy = options.strategy,
            .order = SampleOrder::SlicesLast};
  }

  std::int64_t pairs() const { return (slices_ + 1) / 2; }
  std::int64_t grid_elements() const {
    return std::int64_t(gridding_.grid_shape()[0]) * gridding_.grid_shape()[1];
  }
  Impl::ImageOnGrid<T, 2> on_grid() const {
    return Impl::ImageOnGrid<T, 2>::make(gridding_, {image_, image_});
  }

  template <class Value>
  Unmanaged<Value**> rows(Value* data) const {
    return Unmanaged<Value**>(data, slices_ * rays_, layout_.width);
  }
  /// Half spectra lie where the grids do, which are not in use at the same time.
  Unmanaged<Complex**> spectra() const {
    return Unmanaged<Complex**>(grids_.data(), slices_ * rays_, layout_.frequencies());
  }
  Unmanaged<Complex***> grid_view() const {
    return Unmanaged<Complex***>(grids_.data(), pairs(), gridding_.grid_shape()[0],
                                 gridding_.grid_shape()[1]);
  }
  Unmanaged<Complex**> sample_view() const {
    return Unmanaged<Complex**>(samples_.data(), gridding_.points(), pairs());
  }
  Impl::SampleArray<Complex> sample_array() const { return {samples_.data(), pairs(), 1}; }

  /// Shapes of a call; of no slices, too, which are no work.
  void check(const Impl::Arguments& arguments, const Array<const T, MemorySpace>& projections,
             const Array<const T, MemorySpace>& images, const Array<const T, MemorySpace>& filter) const {
    const bool none = projections && projections.rank == 3 && projections.extents[0] == 0;
    // All of one type: nvcc loses the braces of a list with conversions.
    const std::int64_t slices = none ? 0 : slices_, width = layout_.width, size = image_,
                       frequencies = layout_.frequencies();
    arguments.shape("projections", projections, {slices, rays_, width});
    arguments.shape("images", images, {slices, size, size});
    if (filter)
      arguments.shape("filter", filter, {frequencies});
  }

  std::int64_t slices_, rays_;
  Impl::PolarSampleLayout<ExecutionSpace, T> layout_;
  int image_;
  Gridding<ExecutionSpace, 2, T> gridding_;
  FFT<ExecutionSpace, 1, T, Complex> along_detector_;
  FFT<ExecutionSpace, 1, Complex, T> to_detector_;
  FFT<ExecutionSpace, 2, Complex, Complex> backward_, forward_;
  Kokkos::View<Complex*, ExecutionSpace> samples_, grids_;
  Kokkos::View<char*, ExecutionSpace> workspace_;
};

} // namespace Bracewell
