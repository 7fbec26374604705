// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/tomography/detail/outliers_impl.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// What remove_outliers takes for an outlier.
struct OutlierOptions {
  int window = 3;         ///< angles and columns of the median, odd, 3 to 9
  double threshold = 0.5; ///< outliers are further than this from the median
};

/// Replaces values that are further than a threshold from the median over neighbouring angles and columns by it:
/// zingers, flashes of scattered radiation that one frame sees. Beyond the edges the outermost values go on. Angles are
/// in the order in which they were taken.
/// @param sinograms  [S, P, n]
/// @param cleaned    [S, P, n], overwritten
/// @throws Error on shapes that do not fit, shared memory, and options out of range
template <class ExecutionSpace, class Input, class Output>
void remove_outliers(const ExecutionSpace& space, const Input& sinograms, const Output& cleaned,
                     const OutlierOptions& options = {}) {
  using T = typename Output::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Replace = Impl::ReplaceOutliers<T>;
  constexpr Impl::Arguments arguments{"remove_outliers"};
  const Array<const T, MemorySpace> in(sinograms);
  const Array<T, MemorySpace> out(cleaned);
  arguments.require(in && in.rank == 3 && in.extents[1] < (1 << 30) && in.extents[2] < (1 << 30), "sinograms",
                    "[slices, angles, width]", [&] { return in.shape(); });
  arguments.same_shape("cleaned", out, in);
  arguments.disjoint({{"cleaned", out}}, {{"sinograms", in}});
  arguments.require(options.window % 2 == 1 && options.window >= 3 &&
                        options.window <= Replace::largest_window,
                    "options.window", "3, 5, 7 or 9", [&] { return Impl::number(options.window); });
  arguments.positive("options.threshold", options.threshold);
  Kokkos::Profiling::ScopedRegion region("Bracewell::remove_outliers");
  Impl::for_each_row(space, "Bracewell::remove_outliers::replace", in.extents[0] * in.extents[1],
                     Replace{in.data, out.data, int(in.extents[1]), int(in.extents[2]), options.window,
                             T(options.threshold)});
}

} // namespace Bracewell
