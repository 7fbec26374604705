// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/tomography/detail/centre/search.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <functional>
#include <numbers>
#include <optional>
#include <vector>

namespace Bracewell {

/// Where find_centre searches.
struct CentreOptions {
  std::optional<double> first = {}; ///< pixel to search from; absent: a quarter of the width from the middle
  std::optional<double> last = {};  ///< pixel to search to; absent: likewise
  double object_radius =
      0.7; ///< of the half width: frequencies that an object of this radius lacks are looked at
  /// Called now and then with the share of the work that is done, from 0 to 1.
  std::function<void(double)> progress = {};
};

namespace Impl {
template <class ExecutionSpace, class T>
double find_centre(const ExecutionSpace& space,
                   const Array<const T, typename ExecutionSpace::memory_space>& sinogram,
                   const std::vector<double>& angles, const CentreOptions& options,
                   const Array<const T, typename ExecutionSpace::memory_space>& valid);
} // namespace Impl

/// Finds the detector pixel of the rotation axis from one sinogram. Half a turn and its mirror image make a whole
/// turn. If they fit together, the spectrum of the whole turn is empty outside a double wedge (Vo, Drakopoulos,
/// Atwood and Reinhard, Opt. Express 22, 2014). The search has three stages: a reduced sinogram over the whole range;
/// around its result, without the means of the columns; within a pixel, with these means. Steps are half a pixel, and
/// a parabola leads between them. It allocates what it needs, and waits for the result.
/// @param sinogram  [P, n] attenuation, not filtered
/// @param angles    P angles in radians, any order, at least half a turn; the first half turn is used
/// @param valid     [P, n] as normalise_projections writes it: values where it is 0 are not read, but interpolated in their
///                  row; or none
/// @throws Error on shapes that do not fit, angles that are not finite or span less than 170 degrees, an empty range,
///         and values that are not finite or the same everywhere
template <class ExecutionSpace, class Sinogram>
double find_centre(const ExecutionSpace& space, const Sinogram& sinogram, const std::vector<double>& angles,
                   const CentreOptions& options = {},
                   const Array<const typename Sinogram::non_const_value_type,
                               typename ExecutionSpace::memory_space>& valid = {}) {
  using T = typename Sinogram::non_const_value_type;
  return Impl::find_centre<ExecutionSpace, T>(
      space, Array<const T, typename ExecutionSpace::memory_space>(sinogram), angles, options, valid);
}

namespace Impl {

template <class ExecutionSpace, class T>
double find_centre(const ExecutionSpace& space,
                   const Array<const T, typename ExecutionSpace::memory_space>& sinogram,
                   const std::vector<double>& angles, const CentreOptions& options,
                   const Array<const T, typename ExecutionSpace::memory_space>& valid) {
  constexpr Arguments arguments{"find_centre"};
  const int n = check_searched_sinogram(arguments, sinogram, angles);
  const double first = options.first.value_or(n / 2 - n / 4), last = options.last.value_or(n / 2 + n / 4);
  if (!(first >= 0 && last >= first && last <= n - 1))
    arguments.refuse("options.first, options.last",
                     "pixels in order within the row of %d, found %.6g and %.6g", n, first, last);
  if (!(options.object_radius > 0 && options.object_radius <= 1))
    arguments.refuse("options.object_radius", "above 0, at most 1, found %.6g", options.object_radius);
  const std::vector<int> rows = first_half_turn(arguments, angles);
  Kokkos::Profiling::ScopedRegion region("Bracewell::find_centre");
  const SearchedSinogram<ExecutionSpace, T> searched(arguments, space, sinogram, valid, angles);
  const auto order = device_copy(space, "Bracewell::find_centre::rows", rows);
  const CentreSearch<ExecutionSpace, T> axis{
      searched.data(),       order.data(),    n, static_cast<int>(rows.size()),
      options.object_radius, options.progress};
  return axis.search(space, first, last);
}

} // namespace Impl

#define BRACEWELL_INSTANCES_FIND_CENTRE(Extern, Space, Real)                                                 \
  Extern template double Impl::find_centre<Space, Real>(                                                     \
      const Space&, const Array<const Real, Space::memory_space>&, const std::vector<double>&,               \
      const CentreOptions&, const Array<const Real, Space::memory_space>&);
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_FIND_CENTRE)

} // namespace Bracewell
