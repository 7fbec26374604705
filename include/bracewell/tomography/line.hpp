// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/tomography/detail/line/project.hpp>
#include <bracewell/tomography/options.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>

namespace Bracewell {

/// Back-projection and projection along strips of rays, exact for square pixels and detector cells:
///   backproject  f(X, Y) = (pi / P) sum_p w_p sum_i a_p(i - s) q_p(i),   s = X cos theta_p + Y sin theta_p + centre,
/// X = column - floor(n/2), Y = row - floor(n/2), zero beyond the detector. A detector cell at distance u sees a strip
/// of rays, one wide. a_p(u) is the area that a pixel has in common with it. `project` is the exact transpose, or has the
/// units of line integrals (ProjectionUnits): the mean over the cell of the integrals along its rays through an image
/// of square pixels. The areas of all cells add up to 1, and the areas of all pixels along a strip to its length. So a
/// uniform object has no ripple at any angle. Multiples of a quarter turn are linear interpolation. After the ramp
/// filter the back-projection is the attenuation per pixel (Kak and Slaney, Principles of Computerized Tomographic
/// Imaging, 3.3, 7.1). The work is P n^2 per slice. It is the baseline for the Fourier and log-polar methods, and exact
/// for any angles.
///
/// A movable plan; calls are const. project() uses workspace of the plan: calls of it that can overlap need
/// plans of their own.
template <class ExecutionSpace, class T>
class LineTomography {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Project = Impl::LineProject<ExecutionSpace, T>;
  using Policy = Kokkos::TeamPolicy<ExecutionSpace>;
  using Pack = typename Project::Pack;

public:
  /// Checks geometry and options and copies the angles; waits for the copy.
  /// @throws Error on sizes below 1, and angles, weights or a centre that are not finite
  LineTomography(const ExecutionSpace& space, const ParallelBeamGeometry& geometry,
                 const LineTomographyOptions& options = {});

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const { return beam_.memory_bytes() + Impl::bytes_of(packs_); }

  /// What memory_bytes() of a plan of these arguments would be.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace&, const ParallelBeamGeometry& geometry,
                                  const LineTomographyOptions& options = {});

  /// @param projections  [S, P, width], any number of slices
  /// @param images       [S, n, n], overwritten
  /// @throws Error on shapes that do not fit and shared memory
  void backproject(const ExecutionSpace& space, const Array<const T, MemorySpace>& projections,
                   const Array<T, MemorySpace>& images) const;

  /// The transpose of backproject, in the units of the options.
  /// @param images       [S, n, n], any number of slices
  /// @param projections  [S, P, width], overwritten
  /// @throws Error as backproject, and where the plan was made without projection
  void project(const ExecutionSpace& space, const Array<const T, MemorySpace>& images,
               const Array<T, MemorySpace>& projections) const;

private:
  static const ParallelBeamGeometry& checked(const Impl::Arguments& arguments,
                                             const ParallelBeamGeometry& geometry,
                                             const LineTomographyOptions& options) {
    Impl::check_geometry(arguments, geometry, options.image, 1, 1 << 20, 1, 1 << 24);
    return geometry;
  }

  static int image_of(const ParallelBeamGeometry& geometry, const LineTomographyOptions& options) {
    return options.image ? options.image : geometry.width;
  }
  static std::int64_t packs(int image) { return Impl::LinePack<ExecutionSpace, T>::packs_for(image); }

  /// Back-projection, so many slices at a time.
  template <int at_once>
  void launch(const ExecutionSpace& space, const T* projections, T* images, int slices) const {
    using Backproject = Impl::LineBackproject<ExecutionSpace, T, at_once>;
    const int n = beam_.image(), across = (n + Backproject::columns - 1) / Backproject::columns;
    const int down = (n + Backproject::rows - 1) / Backproject::rows;
    const int groups = (slices + Backproject::slices - 1) / Backproject::slices;
    Impl::launch_kernel("Bracewell::LineTomography::backproject",
                        Kokkos::TeamPolicy<ExecutionSpace, typename Backproject::Bounds>(
                            space, across * down * groups, Backproject::threads)
                            .set_scratch_size(0, Kokkos::PerTeam(Backproject::scratch_bytes())),
                        Backproject{beam_.backprojected(), projections, images, slices, across});
  }

  int check(const Impl::Arguments& arguments, const Array<const T, MemorySpace>& projections,
            const Array<const T, MemorySpace>& images) const {
    return Impl::check_parallel_beam(arguments, beam_.angles(), beam_.width(), beam_.image(), projections,
                                     images);
  }

  Impl::Beam<ExecutionSpace> beam_;
  Kokkos::View<Pack*, ExecutionSpace> packs_;
};

template <class ExecutionSpace, class T>
LineTomography<ExecutionSpace, T>::LineTomography(const ExecutionSpace& space,
                                                  const ParallelBeamGeometry& geometry,
                                                  const LineTomographyOptions& options)
    : beam_(space, checked({"LineTomography"}, geometry, options), image_of(geometry, options),
            options.units) {
  if (options.projection)
    packs_ = Impl::device_vector<Pack>(space, "Bracewell::LineTomography::packs", packs(beam_.image()));
}

template <class ExecutionSpace, class T>
std::size_t LineTomography<ExecutionSpace, T>::bytes_needed(const ExecutionSpace&,
                                                            const ParallelBeamGeometry& geometry,
                                                            const LineTomographyOptions& options) {
  checked({"LineTomography::bytes_needed"}, geometry, options);
  return Impl::Beam<ExecutionSpace>::bytes_needed(geometry, options.units) +
         (options.projection ? std::size_t(packs(image_of(geometry, options))) * sizeof(Pack) : 0);
}

template <class ExecutionSpace, class T>
void LineTomography<ExecutionSpace, T>::backproject(const ExecutionSpace& space,
                                                    const Array<const T, MemorySpace>& projections,
                                                    const Array<T, MemorySpace>& images) const {
  constexpr Impl::Arguments arguments{"LineTomography::backproject"};
  const int slices = check(arguments, projections, images);
  arguments.disjoint({{"images", images}}, {{"projections", projections}});
  if (slices == 0)
    return;
  Kokkos::Profiling::ScopedRegion region("Bracewell::LineTomography::backproject");
  constexpr int few = Impl::TomographyTuning<ExecutionSpace>::line_slices,
                many = few * (sizeof(T) == 4 ? 2 : 1);
  if constexpr (!Impl::is_host<ExecutionSpace> && few != many)
    if (slices > few)
      return launch<many>(space, projections.data, images.data, slices);
  launch<few>(space, projections.data, images.data, slices);
}

template <class ExecutionSpace, class T>
void LineTomography<ExecutionSpace, T>::project(const ExecutionSpace& space,
                                                const Array<const T, MemorySpace>& images,
                                                const Array<T, MemorySpace>& projections) const {
  constexpr Impl::Arguments arguments{"LineTomography::project"};
  const int slices = check(arguments, projections, images), n = beam_.image();
  arguments.disjoint({{"projections", projections}}, {{"images", images}});
  arguments.require(packs_.size() > 0, "plan", "one made with options.projection", "one without");
  if (slices == 0)
    return;
  Kokkos::Profiling::ScopedRegion region("Bracewell::LineTomography::project");
  const int bins_across = (beam_.width() + Project::bins - 1) / Project::bins;
  const int teams =
      bins_across * ((beam_.angles() + Project::angles_per_team - 1) / Project::angles_per_team);
  for (int first = 0; first < slices; first += Project::slices) {
    const int count = std::min(+Project::slices, slices - first);
    Impl::for_each_row(space, "Bracewell::LineTomography::pack", n,
                       Impl::LinePack<ExecutionSpace, T>{images.data + std::int64_t(first) * n * n,
                                                         packs_.data(), n, count});
    Impl::launch_kernel("Bracewell::LineTomography::project", Policy(space, teams, Project::threads),
                        Project{beam_.projected(), packs_.data(),
                                projections.data + std::int64_t(first) * beam_.angles() * beam_.width(),
                                count, bins_across});
  }
}

#define BRACEWELL_INSTANCES_LINE_TOMOGRAPHY(Extern, Space, Real)                                             \
  Extern template class LineTomography<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_LINE_TOMOGRAPHY)

} // namespace Bracewell
