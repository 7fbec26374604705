// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/row_loop.hpp>
#include <bracewell/tomography/detail/line_project.hpp>
#include <bracewell/tomography/options.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>

namespace Bracewell {

/// Back-projection along lines, with linear interpolation on the detector, and its exact transpose:
///   f(X, Y) = (pi / P) sum_p w_p q_p(X cos theta_p + Y sin theta_p + centre),
/// X = column - floor(n/2), Y = row - floor(n/2), zero beyond the detector. Of projections filtered with the
/// ramp it is the attenuation per pixel (Kak and Slaney, Principles of Computerized Tomographic
/// Imaging, 3.3). The work is P n^2 per slice: the baseline for the Fourier and log-polar methods, and exact
/// for any angles.
///
/// A movable plan; calls are const. project() uses workspace of the plan: calls of it that can overlap need
/// plans of their own.
template <class ExecutionSpace, class T>
class LineTomography {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Backproject = Impl::LineBackproject<ExecutionSpace, T>;
  using Project = Impl::LineProject<ExecutionSpace, T>;
  using Policy = Kokkos::TeamPolicy<ExecutionSpace>;
  using Pack = typename Project::Pack;

public:
  /// Checks the options and copies the angles; waits for the copy.
  /// @throws Error on sizes below 1, and angles, weights or a centre that are not finite
  LineTomography(const ExecutionSpace& space, const LineTomographyOptions& options)
      : beam_(space, Impl::Arguments{"LineTomography"},
              {options.angles, options.width, options.centre, options.weights}) {
    if (options.projection)
      packs_ = Impl::device_vector<Pack>(space, "Bracewell::LineTomography::packs",
                                         2 * std::int64_t(options.width) * options.width);
  }

  /// @param projections  [S, P, n], any number of slices
  /// @param images       [S, n, n], overwritten
  /// @throws Error on shapes that do not fit and shared memory
  template <class Projections, class Images>
  void backproject(const ExecutionSpace& space, const Projections& projections, const Images& images) const {
    constexpr Impl::Arguments arguments{"LineTomography::backproject"};
    const Array<const T, MemorySpace> in(projections);
    const Array<T, MemorySpace> out(images);
    const int slices = beam_.check(arguments, in, out);
    arguments.disjoint({{"images", out}}, {{"projections", in}});
    if (slices == 0)
      return;
    Kokkos::Profiling::ScopedRegion region("Bracewell::LineTomography::backproject");
    const int across = (beam_.width() + Backproject::columns - 1) / Backproject::columns;
    const int down = (beam_.width() + Backproject::rows - 1) / Backproject::rows;
    const int groups = (slices + Backproject::slices - 1) / Backproject::slices;
    Kokkos::parallel_for("Bracewell::LineTomography::backproject",
                         Policy(space, across * down * groups, Backproject::threads)
                             .set_scratch_size(0, Kokkos::PerTeam(Backproject::scratch_bytes())),
                         Backproject{beam_.view(), in.data, out.data, slices, across});
  }

  /// The transpose of backproject: line integrals of the image times pi / P.
  /// @param images       [S, n, n], any number of slices
  /// @param projections  [S, P, n], overwritten
  /// @throws Error as backproject, and where the plan was made without projection
  template <class Images, class Projections>
  void project(const ExecutionSpace& space, const Images& images, const Projections& projections) const {
    constexpr Impl::Arguments arguments{"LineTomography::project"};
    const Array<const T, MemorySpace> in(images);
    const Array<T, MemorySpace> out(projections);
    const int slices = beam_.check(arguments, out, in), n = beam_.width();
    arguments.disjoint({{"projections", out}}, {{"images", in}});
    arguments.require(packs_.size() > 0, "plan", "one made with options.projection", "one without");
    if (slices == 0)
      return;
    Kokkos::Profiling::ScopedRegion region("Bracewell::LineTomography::project");
    const int bins_across = (n + Project::bins - 1) / Project::bins;
    const int teams =
        bins_across * ((beam_.angles() + Project::angles_per_team - 1) / Project::angles_per_team);
    for (int first = 0; first < slices; first += Project::slices) {
      const int count = std::min(+Project::slices, slices - first);
      Impl::for_each_row(
          space, "Bracewell::LineTomography::pack", n,
          Impl::LinePack<ExecutionSpace, T>{in.data + std::int64_t(first) * n * n, packs_.data(), n, count});
      Kokkos::parallel_for("Bracewell::LineTomography::project", Policy(space, teams, Project::threads),
                           Project{beam_.view(), packs_.data(),
                                   out.data + std::int64_t(first) * beam_.angles() * n, count, bins_across});
    }
  }

private:
  Impl::Beam<ExecutionSpace> beam_;
  Kokkos::View<Pack*, ExecutionSpace> packs_;
};

} // namespace Bracewell
