// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/tomography/detail/view_slopes.hpp>
#include <bracewell/tomography/fourier.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// Derivatives of what FourierTomography projects, with respect to the places of its views. They are exact derivatives of
/// the rows, which are trigonometric polynomials in s = X cos(theta) + Y sin(theta) + centre + shift. With D the derivative
/// along the detector,
///   of_shifts(p, i) = d row(p, i) / d shift_p = - D row,
///   of_angles(p, i) = d row(p, i) / d theta_p = - D (cos(theta_p) row of Y image - sin(theta_p) row of X image).
/// That is three projections. (Strips of LineTomography have kinks, and would take kernels of their own.) A gradient with
/// respect to the centre is the sum of the gradients with respect to the shifts. If the width is even, rows do not hold
/// the derivative of the Nyquist frequency: project() leaves this frequency out, too.
/// A movable plan with workspace; calls that can overlap need a plan each.
template <class ExecutionSpace, class T>
class ViewSlopes {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;

public:
  /// @param options  of a FourierTomography; a pass works on `slices` at most
  /// @throws Error as FourierTomography
  ViewSlopes(const ExecutionSpace& space, const ParallelBeamGeometry& geometry,
             const FourierTomographyOptions& options = {});

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return tomography_.memory_bytes() + forward_.workspace_bytes() + backward_.workspace_bytes() +
           Impl::bytes_of(angles_, filter_, images_, rows_, spectra_);
  }

  /// What memory_bytes() of a plan of these arguments would be.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, const ParallelBeamGeometry& geometry,
                                  const FourierTomographyOptions& options = {});

  /// As FourierTomography::project, without the Nyquist frequency of even widths.
  void project(const ExecutionSpace& space, const Array<const T, MemorySpace>& images,
               const Array<T, MemorySpace>& projections) const {
    tomography_.project(space, images, projections, filter_);
  }

  /// The transpose of project, in the units that FourierTomography::backproject has.
  void backproject(const ExecutionSpace& space, const Array<const T, MemorySpace>& projections,
                   const Array<T, MemorySpace>& images) const {
    tomography_.backproject(space, projections, images, filter_);
  }

  /// @param images     View of T [slices, n, n], any number of slices
  /// @param of_angles  View of T [slices, angles, width], per radian, overwritten
  /// @param of_shifts  likewise, per pixel
  /// @throws Error on shapes that do not fit and shared memory
  void slopes(const ExecutionSpace& space, const Array<const T, MemorySpace>& images,
              const Array<T, MemorySpace>& of_angles, const Array<T, MemorySpace>& of_shifts) const;

private:
  static std::vector<T> filter(int width) {
    std::vector<T> factors(std::size_t(width / 2 + 1), T(1));
    if (width % 2 == 0)
      factors.back() = T(0);
    return factors;
  }

  static std::vector<Complex> directions(const ParallelBeamGeometry& geometry) {
    std::vector<Complex> values;
    for (const double angle : geometry.angles)
      values.emplace_back(T(std::cos(angle)), T(std::sin(angle)));
    return values;
  }

  std::int64_t pixels() const { return std::int64_t(image_) * image_; }
  std::int64_t sinogram() const { return views_ * width_; }
  std::int64_t frequencies() const { return width_ / 2 + 1; }
  Array<T, MemorySpace> rows() const {
    return Impl::array_of<MemorySpace>(rows_.data(), slices_ * views_, width_);
  }
  Array<Complex, MemorySpace> spectra(int k) const {
    return Impl::array_of<MemorySpace>(spectra_.data() + k * slices_ * views_ * frequencies(),
                                       slices_ * views_, frequencies());
  }

  /// Spectra of the rows of images times a coordinate.
  void project_times(const ExecutionSpace& space, const T* images, std::int64_t count,
                     Impl::Coordinate coordinate, int k) const {
    Impl::launch_kernel(
        "Bracewell::ViewSlopes::multiply",
        Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, count * pixels()),
        Impl::TimesCoordinate<T>{images, images_.data(), image_, coordinate});
    project(space, Impl::array_of<MemorySpace>(images_.data(), count, image_, image_),
            Impl::array_of<MemorySpace>(rows_.data(), count, views_, width_));
    forward_.execute(space, rows(), spectra(k));
  }

  /// Derivatives along the detector, of one kind of spectra or both with the factors of angles.
  void differentiate(const ExecutionSpace& space, int kinds, T* result, std::int64_t count) const {
    Impl::launch_kernel("Bracewell::ViewSlopes::differentiate",
                        Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(
                            space, 0, slices_ * views_ * frequencies()),
                        Impl::DifferentiateRows<T>{spectra(0).data, kinds == 2 ? spectra(1).data : nullptr,
                                                   angles_.data(), filter_.data(), views_, width_});
    backward_.execute(space, spectra(0), rows());
    Impl::copy_padded(space, "Bracewell::ViewSlopes::take", static_cast<const T*>(rows_.data()),
                      count * sinogram(), result, count * sinogram());
  }

  FourierTomography<ExecutionSpace, T> tomography_;
  std::int64_t views_, slices_;
  int width_, image_;
  Kokkos::View<Complex*, ExecutionSpace> angles_; ///< cosine and sine
  Kokkos::View<T*, ExecutionSpace> filter_;
  FFT<ExecutionSpace, 1, T, Complex> forward_;
  FFT<ExecutionSpace, 1, Complex, T> backward_;
  Kokkos::View<T*, ExecutionSpace> images_, rows_;
  Kokkos::View<Complex*, ExecutionSpace> spectra_;
};

template <class ExecutionSpace, class T>
ViewSlopes<ExecutionSpace, T>::ViewSlopes(const ExecutionSpace& space, const ParallelBeamGeometry& geometry,
                                          const FourierTomographyOptions& options)
    : tomography_(space, geometry, options), views_(static_cast<std::int64_t>(geometry.angles.size())),
      slices_(options.slices), width_(geometry.width), image_(options.image ? options.image : geometry.width),
      angles_(Impl::device_copy(space, "Bracewell::ViewSlopes::angles", directions(geometry))),
      filter_(Impl::device_copy(space, "Bracewell::ViewSlopes::filter", filter(width_))),
      forward_(space, {width_}, slices_ * views_), backward_(space, {width_}, slices_ * views_),
      images_(Impl::device_vector<T>(space, "Bracewell::ViewSlopes::images", slices_ * pixels())),
      rows_(Impl::device_vector<T>(space, "Bracewell::ViewSlopes::rows", slices_ * sinogram())),
      spectra_(Impl::device_vector<Complex>(space, "Bracewell::ViewSlopes::spectra",
                                            2 * slices_ * views_ * frequencies())) {}

template <class ExecutionSpace, class T>
std::size_t ViewSlopes<ExecutionSpace, T>::bytes_needed(const ExecutionSpace& space,
                                                        const ParallelBeamGeometry& geometry,
                                                        const FourierTomographyOptions& options) {
  const std::size_t tomography = FourierTomography<ExecutionSpace, T>::bytes_needed(space, geometry, options);
  const auto views = static_cast<std::int64_t>(geometry.angles.size()), rows = options.slices * views,
             frequencies = std::int64_t(geometry.width) / 2 + 1,
             image = std::int64_t(options.image ? options.image : geometry.width);
  return tomography + FFT<ExecutionSpace, 1, T, Complex>::bytes_needed(space, {geometry.width}, rows) +
         FFT<ExecutionSpace, 1, Complex, T>::bytes_needed(space, {geometry.width}, rows) +
         std::size_t(views + 2 * rows * frequencies) * sizeof(Complex) +
         std::size_t(frequencies + options.slices * image * image + rows * geometry.width) * sizeof(T);
}

template <class ExecutionSpace, class T>
void ViewSlopes<ExecutionSpace, T>::slopes(const ExecutionSpace& space,
                                           const Array<const T, MemorySpace>& images,
                                           const Array<T, MemorySpace>& of_angles,
                                           const Array<T, MemorySpace>& of_shifts) const {
  constexpr Impl::Arguments arguments{"ViewSlopes::slopes"};
  const std::int64_t slices = images && images.rank > 0 ? images.extents[0] : 0;
  arguments.shape("images", images, {slices, image_, image_});
  arguments.shape("of_angles", of_angles, {slices, views_, width_});
  arguments.shape("of_shifts", of_shifts, {slices, views_, width_});
  arguments.disjoint({{"of_angles", of_angles}, {"of_shifts", of_shifts}}, {{"images", images}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::ViewSlopes::slopes");
  for (std::int64_t first = 0; first < slices; first += slices_) {
    const std::int64_t count = std::min(slices_, slices - first);
    const T* const from = images.data + first * pixels();
    project_times(space, from, count, Impl::Coordinate::None, 0);
    differentiate(space, 1, of_shifts.data + first * sinogram(), count);
    project_times(space, from, count, Impl::Coordinate::X, 0);
    project_times(space, from, count, Impl::Coordinate::Y, 1);
    differentiate(space, 2, of_angles.data + first * sinogram(), count);
  }
}

/// Gradients of a loss with respect to angles or shifts, as sums over the rows of a view. `slopes` come from ViewSlopes.
/// `cotangents` are the derivatives of the loss with respect to the projections.
///   result(p) = sum_slice sum_i slopes(slice, p, i) cotangents(slice, p, i)
/// @param slopes      [slices, angles, width]
/// @param cotangents  of the same shape
/// @param result      View of double [angles], overwritten
/// @throws Error on shapes that do not fit
template <class ExecutionSpace, class Slopes, class Cotangents, class Result>
void sum_views(const ExecutionSpace& space, const Slopes& slopes, const Cotangents& cotangents,
               const Result& result) {
  using T = typename Slopes::non_const_value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  constexpr Impl::Arguments arguments{"sum_views"};
  const Array<const T, MemorySpace> a(slopes), b(cotangents);
  const Array<double, MemorySpace> out(result);
  if (!a || a.rank != 3)
    arguments.refuse("slopes", "[slices, angles, width], found %s", a.shape_text().characters);
  arguments.same_shape("cotangents", b, a);
  arguments.shape("result", out, {a.extents[1]});
  const Impl::SumViews<ExecutionSpace, T> sum{a.data,       b.data,       out.data,
                                              a.extents[0], a.extents[1], static_cast<int>(a.extents[2])};
  Impl::launch_kernel(
      "Bracewell::sum_views",
      Kokkos::TeamPolicy<ExecutionSpace>(space, static_cast<int>(a.extents[1]),
                                         +Impl::TomographyTuning<ExecutionSpace>::view_threads),
      sum);
}

#define BRACEWELL_INSTANCES_VIEW_SLOPES(Extern, Space, Real) Extern template class ViewSlopes<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_VIEW_SLOPES)

} // namespace Bracewell
