// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/toeplitz_normal.hpp>
#include <bracewell/impl/compiled.hpp>
#include <bracewell/tomography/fourier.hpp>

namespace Bracewell {

/// Whether iterations by FourierNormal::normal are expected to take less time than by `project` and `backproject`. Its
/// FFTs have four times the pixels of images, for any number of angles. The pair has FFTs of 2.25 to 4 times the pixels, and
/// grids angles x width samples twice. On hosts the pair is slower if it has a quarter as many samples as pixels, on
/// GPUs if it has as many. By lines on the chip the normal operator takes less time for any number of angles
/// (docs/lab/gridding-and-tomography.md).
/// @param width, image  pixels of the detector, and of images along both axes
/// @param host          the execution space works in the host's memory
/// @param on_chip       ToeplitzNormal::on_chip of {image, image}
constexpr bool normal_is_faster(std::int64_t angles, int width, int image, bool host, bool on_chip = false) {
  return on_chip || (host ? 4. : 1.) * double(angles) * width >= double(image) * image;
}

/// FourierTomography with its normal operator, for iterations: normal(image) is backproject(project(image)) as one
/// convolution (ToeplitzNormal), for any number of angles. With a_p the factors of back-projection and b_p the factors of
/// projection (pi w_p / P, or 1: ProjectionUnits),
///   normal  result(X) = sum_X' image(X') sum_p a_p b_p / width sum_k exp(2 pi i k (X - X') . (cos, sin) theta_p / width),
/// |k| < width / 2; the axis does not matter. If the width is even, the detector sees only a cosine of a row's Nyquist
/// frequency. This part depends on X + X', too, and is no convolution. Both operators of this pair leave it out.
/// A movable plan with workspace; calls that can overlap need a plan each.
template <class ExecutionSpace, class T>
class FourierNormal {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Tomography = FourierTomography<ExecutionSpace, T>;
  using Toeplitz = ToeplitzNormal<ExecutionSpace, 2, T>;

public:
  /// Plans both, and waits for them.
  /// @throws Error as FourierTomography, and on images of more than 16,384 pixels
  FourierNormal(const ExecutionSpace& space, const ParallelBeamGeometry& geometry,
                const FourierTomographyOptions& options = {});

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return tomography_.memory_bytes() + Impl::bytes_of(filter_) + normal_.memory_bytes();
  }

  /// What memory_bytes() of a plan of these arguments would be.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, const ParallelBeamGeometry& geometry,
                                  const FourierTomographyOptions& options = {});

  /// As FourierTomography::project, without the Nyquist frequency of even widths.
  void project(const ExecutionSpace& space, const Array<const T, MemorySpace>& images,
               const Array<T, MemorySpace>& projections) const {
    tomography_.project(space, images, projections, filter());
  }

  /// As FourierTomography::backproject, likewise.
  void backproject(const ExecutionSpace& space, const Array<const T, MemorySpace>& projections,
                   const Array<T, MemorySpace>& images) const {
    tomography_.backproject(space, projections, images, filter());
  }

  /// @param images   [S, n, n], any number of slices
  /// @param results  of the same shape, overwritten; they may be `images`
  /// @throws Error on shapes that do not fit and memory that both use in part
  void normal(const ExecutionSpace& space, const Array<const T, MemorySpace>& images,
              const Array<T, MemorySpace>& results) const {
    normal_.execute(space, images, results);
  }

private:
  static int filter_size(int width) { return width % 2 == 0 ? width / 2 + 1 : 0; }
  /// Ones, and 0 at Nyquist; none for odd widths.
  static Kokkos::View<T*, ExecutionSpace> filter(const ExecutionSpace& space, int width) {
    std::vector<T> factors(std::size_t(filter_size(width)), T(1));
    if (!factors.empty())
      factors.back() = T(0);
    return Impl::device_copy(space, "Bracewell::FourierNormal::filter", factors);
  }

  Array<const T, MemorySpace> filter() const {
    return filter_.size() > 0 ? Array<const T, MemorySpace>(filter_) : Array<const T, MemorySpace>();
  }

  /// The frequencies of every ray that are left.
  static PolarPoints polar(const ParallelBeamGeometry& geometry) {
    return {
        .angles = geometry.angles, .samples = (geometry.width - 1) / 2 * 2 + 1, .step = 1. / geometry.width};
  }
  static Kokkos::View<T*, ExecutionSpace> weights(const ExecutionSpace& space,
                                                  const ParallelBeamGeometry& geometry,
                                                  const FourierTomographyOptions& options) {
    const std::vector<double> back = Impl::angle_factors(geometry),
                              forth = Impl::angle_factors(geometry, options.units);
    const auto samples = std::size_t(polar(geometry).samples);
    std::vector<T> values;
    for (std::size_t p = 0; p < back.size(); ++p)
      values.insert(values.end(), samples, T(back[p] * forth[p] / geometry.width));
    return Impl::device_copy(space, "Bracewell::FourierNormal::weights", values);
  }

  static std::array<int, 2> shape(const ParallelBeamGeometry& geometry,
                                  const FourierTomographyOptions& options) {
    const int image = options.image ? options.image : geometry.width;
    return {image, image};
  }

  static GriddingOptions gridding(const FourierTomographyOptions& options) {
    return {.slices = options.slices, .tolerance = options.tolerance, .oversampling = options.oversampling};
  }

  Tomography tomography_;
  Kokkos::View<T*, ExecutionSpace> filter_;
  Toeplitz normal_;
};

template <class ExecutionSpace, class T>
FourierNormal<ExecutionSpace, T>::FourierNormal(const ExecutionSpace& space,
                                                const ParallelBeamGeometry& geometry,
                                                const FourierTomographyOptions& options)
    : tomography_(space, geometry, options), filter_(filter(space, geometry.width)),
      normal_(space, polar(geometry), Array<const T, MemorySpace>(weights(space, geometry, options)),
              shape(geometry, options), gridding(options)) {}

template <class ExecutionSpace, class T>
std::size_t FourierNormal<ExecutionSpace, T>::bytes_needed(const ExecutionSpace& space,
                                                           const ParallelBeamGeometry& geometry,
                                                           const FourierTomographyOptions& options) {
  return Tomography::bytes_needed(space, geometry, options) +
         std::size_t(filter_size(geometry.width)) * sizeof(T) +
         Toeplitz::bytes_needed(space, shape(geometry, options), gridding(options));
}

#define BRACEWELL_INSTANCES_FOURIER_NORMAL(Extern, Space, Real)                                              \
  Extern template class FourierNormal<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_FOURIER_NORMAL)

} // namespace Bracewell
