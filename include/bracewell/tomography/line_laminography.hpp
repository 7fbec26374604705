// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/tomography/detail/laminography/joseph.hpp>
#include <bracewell/tomography/options.hpp>

namespace Bracewell {

/// Projection about a tilted axis (TiltedBeamGeometry) along rays, and its exact transpose (Joseph, IEEE Trans. Med.
/// Imaging 1(3), 1982). A ray goes through the middle of a detector pixel. It crosses planes of voxels across the axis
/// of the volume that it is steepest to. In each plane four voxels around it are interpolated linearly. Their sum over
/// planes is multiplied by the length of the ray between planes. Beyond the volume and the detector there are zeros.
///   project      p(u, v) = sum along the ray, LineIntegrals, or that times pi cos(tilt) w_p / P
///   backproject  the transpose of the latter: of rows filtered by the ramp the attenuation, as FourierLaminography's
/// The work is P n^2 d. Neither waits for the other nor allocates: calls may overlap. A movable plan.
template <class ExecutionSpace, class T>
class LineLaminography {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;

public:
  /// Checks geometry and options and copies the views; waits for the copy.
  /// @throws Error on sizes and options out of range, and angles, weights or centres that are not finite
  LineLaminography(const ExecutionSpace& space, const TiltedBeamGeometry& geometry,
                   const LineLaminographyOptions& options = {});

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const { return Impl::bytes_of(views_); }

  /// What memory_bytes() of a plan of these arguments would be.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace&, const TiltedBeamGeometry& geometry,
                                  const LineLaminographyOptions& options = {});

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
  static std::vector<Impl::JosephView> views(const TiltedBeamGeometry& geometry, ProjectionUnits units) {
    const ParallelBeamGeometry beam = Impl::with_cosine(geometry);
    const std::vector<double> back = Impl::angle_factors(beam), forth = Impl::angle_factors(beam, units);
    std::vector<Impl::JosephView> result;
    for (std::size_t p = 0; p < beam.angles.size(); ++p)
      result.push_back(Impl::JosephView::make(Impl::DetectorAxes(beam.angles[p], geometry.tilt),
                                              Impl::centre_of(beam, p), Impl::row_centre_of(geometry),
                                              forth[p], back[p]));
    return result;
  }

  Impl::JosephVolume of_volume() const { return {{sizes_.image, sizes_.image, sizes_.depth}}; }

  Impl::TiltedSizes sizes_;
  Kokkos::View<Impl::JosephView*, ExecutionSpace> views_;
};

template <class ExecutionSpace, class T>
LineLaminography<ExecutionSpace, T>::LineLaminography(const ExecutionSpace& space,
                                                      const TiltedBeamGeometry& geometry,
                                                      const LineLaminographyOptions& options)
    : sizes_(Impl::check_tilted({"LineLaminography"}, geometry, options), options),
      views_(Impl::device_copy(space, "Bracewell::LineLaminography::views", views(geometry, options.units))) {
}

template <class ExecutionSpace, class T>
std::size_t LineLaminography<ExecutionSpace, T>::bytes_needed(const ExecutionSpace&,
                                                              const TiltedBeamGeometry& geometry,
                                                              const LineLaminographyOptions& options) {
  Impl::check_tilted({"LineLaminography::bytes_needed"}, geometry, options);
  return geometry.beam.angles.size() * sizeof(Impl::JosephView);
}

template <class ExecutionSpace, class T>
void LineLaminography<ExecutionSpace, T>::backproject(const ExecutionSpace& space,
                                                      const Array<const T, MemorySpace>& projections,
                                                      const Array<T, MemorySpace>& volume) const {
  constexpr Impl::Arguments arguments{"LineLaminography::backproject"};
  sizes_.check(arguments, projections, volume);
  arguments.disjoint({{"volume", volume}}, {{"projections", projections}});
  Impl::launch_kernel("Bracewell::LineLaminography::backproject", Range(space, 0, volume.size()),
                      Impl::JosephBackproject<T>{views_.data(), of_volume(), projections.data, volume.data,
                                                 sizes_.angles, sizes_.width, sizes_.rows});
}

template <class ExecutionSpace, class T>
void LineLaminography<ExecutionSpace, T>::project(const ExecutionSpace& space,
                                                  const Array<const T, MemorySpace>& volume,
                                                  const Array<T, MemorySpace>& projections) const {
  constexpr Impl::Arguments arguments{"LineLaminography::project"};
  sizes_.check(arguments, projections, volume);
  arguments.disjoint({{"projections", projections}}, {{"volume", volume}});
  Impl::launch_kernel("Bracewell::LineLaminography::project", Range(space, 0, projections.size()),
                      Impl::JosephProject<T>{views_.data(), of_volume(), volume.data, projections.data,
                                             sizes_.angles, sizes_.width});
}

#define BRACEWELL_INSTANCES_LINE_LAMINOGRAPHY(Extern, Space, Real)                                           \
  Extern template class LineLaminography<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_LINE_LAMINOGRAPHY)

} // namespace Bracewell
