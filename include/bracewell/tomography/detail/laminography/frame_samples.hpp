// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/tomography/detail/laminography/tilted_beam.hpp>
#include <bracewell/tomography/detail/polar_samples.hpp>

namespace Bracewell::Impl {

/// Samples of the spectra of frames: for every angle frequencies -rows/2 ... rows/2 along the detector's rows, and of
/// the columns 0 ... width/2; the others are their conjugates, as frames are real. The Nyquist frequency of an even
/// number of rows counts half at either end.
struct FrameSamples {
  int rows, columns; ///< rows of the detector; columns of a half spectrum

  KOKKOS_FUNCTION int frequencies() const { return rows / 2 * 2 + 1; } ///< of a column
  KOKKOS_FUNCTION std::int64_t of_view() const { return std::int64_t(frequencies()) * columns; }
  KOKKOS_FUNCTION std::int64_t at(std::int64_t view, int ky, int kx) const {
    return view * of_view() + std::int64_t(ky + rows / 2) * columns + kx;
  }
};

/// The points of these samples, cycles per voxel.
struct PointsOfFrames {
  FrameSamples samples;
  const double* axes; ///< [views, 2, 3]: DetectorAxes over width and rows
  double* points;     ///< [samples, 3]

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t view = i / samples.of_view(), within = i % samples.of_view();
    const double kx = double(within % samples.columns),
                 ky = double(within / samples.columns) - samples.rows / 2;
    for (int d = 0; d < 3; ++d)
      points[3 * i + d] = kx * axes[6 * view + d] + ky * axes[6 * view + 3 + d];
  }
};

/// The points of a geometry on the device; waits for them.
template <class Space>
auto points_of_frames(const Space& space, const TiltedBeamGeometry& geometry) {
  const FrameSamples samples{geometry.rows, geometry.beam.width / 2 + 1};
  std::vector<double> axes;
  for (const double angle : geometry.beam.angles) {
    const DetectorAxes of_view(angle, geometry.tilt);
    for (const double component : of_view.u)
      axes.push_back(component / geometry.beam.width);
    for (const double component : of_view.v)
      axes.push_back(component / geometry.rows);
  }
  const auto on_device = device_copy(space, "Bracewell::FourierLaminography::axes", axes);
  const std::int64_t count = samples.of_view() * std::int64_t(geometry.beam.angles.size());
  const auto points = device_view<double**>(space, "Bracewell::FourierLaminography::points", count, 3);
  launch_kernel("Bracewell::FourierLaminography::points",
                Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, count),
                PointsOfFrames{samples, on_device.data(), points.data()});
  space.fence("Bracewell::FourierLaminography::points");
  return points;
}

/// exp(2 pi i k centre / rows) / rows of the frequencies of a column, half at either end of an even number of rows.
template <class T>
std::vector<Kokkos::complex<T>> row_factors(const TiltedBeamGeometry& geometry) {
  const int rows = geometry.rows;
  std::vector<Kokkos::complex<T>> factors;
  for (int k = -(rows / 2); k <= rows / 2; ++k) {
    const double angle = 2 * std::numbers::pi * std::remainder(k * (row_centre_of(geometry) / rows), 1.);
    const double scale = (2 * std::abs(k) == rows ? 0.5 : 1.) / rows;
    factors.emplace_back(T(scale * std::cos(angle)), T(scale * std::sin(angle)));
  }
  return factors;
}

/// Half spectra of frames to samples, twice where they stand for their conjugates, too.
template <class T>
struct SamplesFromFrames {
  using Complex = Kokkos::complex<T>;
  FrameSamples samples;
  PolarSampleView<T> columns;
  const Complex* row_factor; ///< [frequencies]
  const Complex* spectra;    ///< [views, rows, columns]
  Complex* values;           ///< of the samples

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t view = i / samples.of_view(), within = i % samples.of_view();
    const int kx = int(within % samples.columns), row = int(within / samples.columns),
              ky = row - samples.rows / 2, y = ky < 0 ? ky + samples.rows : ky;
    values[i] = (kx > 0 ? T(2) : T(1)) * (columns.at(view, kx) * row_factor[row]) *
                spectra[(view * samples.rows + y) * samples.columns + kx];
  }
};

/// The transpose, into half spectra of which the FFT to frames makes its transpose: it counts columns twice but for the
/// first and that of the Nyquist frequency, which have to be those of something real.
template <class T>
struct FramesFromSamples {
  using Complex = Kokkos::complex<T>;
  FrameSamples samples;
  PolarSampleView<T> columns;
  const Complex* row_factor;
  const Complex* values;
  Complex* spectra;

  /// At row y of a column.
  KOKKOS_FUNCTION Complex sum(std::int64_t view, int y, int kx) const {
    const auto term = [&](int ky) {
      return Kokkos::conj(row_factor[ky + samples.rows / 2]) * values[samples.at(view, ky, kx)];
    };
    const Complex both =
        2 * y == samples.rows ? term(y) + term(-y) : term(y > samples.rows / 2 ? y - samples.rows : y);
    return Kokkos::conj(columns.at(view, kx)) * both;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t view = i / samples.columns / samples.rows;
    const int kx = int(i % samples.columns), y = int(i / samples.columns % samples.rows);
    const bool nyquist = 2 * kx == columns.width;
    Complex value = sum(view, y, kx);
    if (kx == 0 || nyquist)
      value =
          (nyquist ? T(1) : T(0.5)) * (value + Kokkos::conj(sum(view, y == 0 ? 0 : samples.rows - y, kx)));
    spectra[i] = value;
  }
};

} // namespace Bracewell::Impl
