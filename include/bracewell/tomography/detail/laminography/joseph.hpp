// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/detail/laminography/tilted_beam.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Rays of a view through planes of voxels across `axis`, that which the rays are steepest to: the detector
/// coordinates of a point (u, v) = origin + plane * step + (matrix of the other two axes), and back by `inverse`.
struct JosephView {
  int axis;             ///< 0: X, 1: Y, 2: Z; the other two are (axis + 1) % 3 and (axis + 2) % 3
  double origin[2];     ///< centres of the detector
  double step[2];       ///< per plane
  double matrix[2][2];  ///< [u or v][first or second axis]
  double inverse[2][2]; ///< [first or second axis][u or v]
  double projected,
      backprojected; ///< factors: the length of a ray between planes, times those of the operators

  static JosephView make(const DetectorAxes& detector, double centre, double row_centre, double of_projection,
                         double of_backprojection) {
    // Component of the rays, which is the determinant of the other two axes.
    const auto along = [&](int of) {
      const auto a = std::size_t((of + 1) % 3), b = std::size_t((of + 2) % 3);
      return detector.u[a] * detector.v[b] - detector.u[b] * detector.v[a];
    };
    JosephView view;
    view.axis = 0;
    for (const int other : {1, 2})
      if (std::abs(along(other)) > std::abs(along(view.axis)))
        view.axis = other;
    const auto m = std::size_t(view.axis), a = (m + 1) % 3, b = (m + 2) % 3;
    const double determinant = along(view.axis), length = 1 / std::abs(determinant);
    view.origin[0] = centre, view.origin[1] = row_centre;
    view.step[0] = detector.u[m], view.step[1] = detector.v[m];
    view.matrix[0][0] = detector.u[a], view.matrix[0][1] = detector.u[b];
    view.matrix[1][0] = detector.v[a], view.matrix[1][1] = detector.v[b];
    view.inverse[0][0] = detector.v[b] / determinant, view.inverse[0][1] = -detector.u[b] / determinant;
    view.inverse[1][0] = -detector.v[a] / determinant, view.inverse[1][1] = detector.u[a] / determinant;
    view.projected = length * of_projection, view.backprojected = length * of_backprojection;
    return view;
  }

  /// Of a plane the point that the ray to (u, v) less the plane's origin passes.
  KOKKOS_FUNCTION double across(int which, double u, double v) const {
    return inverse[which][0] * u + inverse[which][1] * v;
  }
};

/// A volume [depth, n, n] with (X, Y, Z) counted from its middle.
struct JosephVolume {
  int size[3]; ///< X, Y, Z

  KOKKOS_FUNCTION std::int64_t stride(int axis) const {
    return axis == 0 ? 1 : (axis == 1 ? size[0] : std::int64_t(size[0]) * size[1]);
  }
};

/// What is between 0 and 1 of a voxel at distance x along an axis.
KOKKOS_INLINE_FUNCTION double linear_weight(double x) { return Kokkos::fmax(0., 1 - Kokkos::abs(x)); }

/// A detector pixel: the sum over planes of the volume there, linearly interpolated between four voxels.
template <class T>
struct JosephProject {
  const JosephView* views;
  JosephVolume volume;
  const T* voxels;
  T* projections; ///< [rows, angles, width]
  int angles, width;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const JosephView& view = views[i / width % angles];
    const int a = (view.axis + 1) % 3, b = (view.axis + 2) % 3, planes = volume.size[view.axis];
    const std::int64_t of_plane = volume.stride(view.axis), of_a = volume.stride(a), of_b = volume.stride(b);
    const double u = double(i % width) - view.origin[0], v = double(i / width / angles) - view.origin[1];
    T sum = 0;
    for (int plane = 0; plane < planes; ++plane) {
      const double m = plane - planes / 2, x = u - m * view.step[0], y = v - m * view.step[1],
                   at_a = view.across(0, x, y) + volume.size[a] / 2,
                   at_b = view.across(1, x, y) + volume.size[b] / 2;
      if (!(at_a > -1 && at_b > -1 && at_a < volume.size[a] && at_b < volume.size[b]))
        continue;
      const int first_a = static_cast<int>(Kokkos::floor(at_a)),
                first_b = static_cast<int>(Kokkos::floor(at_b));
      for (int db = 0; db < 2; ++db)
        for (int da = 0; da < 2; ++da) {
          const int ia = first_a + da, ib = first_b + db;
          if (ia >= 0 && ia < volume.size[a] && ib >= 0 && ib < volume.size[b])
            sum += T(linear_weight(at_a - ia) * linear_weight(at_b - ib)) *
                   voxels[plane * of_plane + ia * of_a + ib * of_b];
        }
    }
    projections[i] = T(view.projected) * sum;
  }
};

/// The transpose, voxel by voxel: the rays that pass its plane within one voxel along both axes.
template <class T>
struct JosephBackproject {
  const JosephView* views;
  JosephVolume volume;
  const T* projections; ///< [rows, angles, width]
  T* voxels;
  int angles, width, rows;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int n = volume.size[0], index[3] = {int(i % n), int(i / n % n), int(i / n / n)};
    T sum = 0;
    for (int p = 0; p < angles; ++p) {
      const JosephView& view = views[p];
      const int a = (view.axis + 1) % 3, b = (view.axis + 2) % 3;
      const double at[3] = {double(index[view.axis] - volume.size[view.axis] / 2),
                            double(index[a] - volume.size[a] / 2), double(index[b] - volume.size[b] / 2)};
      double seen[2], reach[2];
      for (int d = 0; d < 2; ++d) {
        seen[d] =
            view.origin[d] + at[0] * view.step[d] + at[1] * view.matrix[d][0] + at[2] * view.matrix[d][1];
        reach[d] = Kokkos::abs(view.matrix[d][0]) + Kokkos::abs(view.matrix[d][1]);
      }
      const int first_x = first(seen[0] - reach[0], width), last_x = last(seen[0] + reach[0], width),
                first_y = first(seen[1] - reach[1], rows), last_y = last(seen[1] + reach[1], rows);
      T of_view = 0;
      for (int y = first_y; y <= last_y; ++y)
        for (int x = first_x; x <= last_x; ++x) {
          const double u = x - seen[0], v = y - seen[1];
          of_view += T(linear_weight(view.across(0, u, v)) * linear_weight(view.across(1, u, v))) *
                     projections[(std::int64_t(y) * angles + p) * width + x];
        }
      sum += T(view.backprojected) * of_view;
    }
    voxels[i] = sum;
  }

private:
  KOKKOS_FUNCTION static int first(double from, int size) {
    return static_cast<int>(Kokkos::fmin(Kokkos::fmax(Kokkos::ceil(from), 0.), double(size)));
  }
  KOKKOS_FUNCTION static int last(double to, int size) {
    return static_cast<int>(Kokkos::fmax(Kokkos::fmin(Kokkos::floor(to), double(size - 1)), -1.));
  }
};

} // namespace Bracewell::Impl
