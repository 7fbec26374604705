// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/detail/centre/overlap.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace Bracewell {

/// A scan over a whole turn whose axis is near one end of the detector, so that it sees an object of up to twice its
/// width: what one end misses it sees half a turn later. Such rows are reconstructed as they are, with weights, in wider
/// rows: for angles of the whole turn, without interpolation.
struct HalfAcquisition {
  int width;     ///< pixels of the wider rows
  double centre; ///< of the axis in them
  int offset;    ///< pixels that are put before a row
};

/// Sizes of the wider rows that rows of `width` pixels with the axis at `centre` become.
/// @throws Error on a width below 1 and a centre that is not on the detector
inline HalfAcquisition half_acquisition(int width, double centre) {
  constexpr Impl::Arguments arguments{"half_acquisition"};
  arguments.at_least("width", width, 1);
  arguments.within("centre", centre, 0., double(width - 1), " pixels");
  const bool right = 2 * centre >= width - 1; // where the axis is
  const int wider = static_cast<int>(std::ceil(2 * (right ? centre : width - 1 - centre))) + 1;
  const int offset = right ? 0 : wider - width;
  return {wider, centre + offset, offset};
}

/// Where find_overlap searches.
struct OverlapOptions {
  int least = 0; ///< columns that overlap at least; 0: a fiftieth of the width, 8 at least
};

/// Finds the detector pixel of the rotation axis of a scan over a whole turn, also near an end of the detector. It
/// compares rows with the mirror images of rows half a turn later, where they overlap. The axis is where the correlation
/// of what changes over the angles is highest. The search goes in steps of half a pixel, and between them by a parabola.
/// It looks at 256 pairs of rows at most. It allocates what it needs, and waits for the result.
/// @param sinogram  [P, n] attenuation, not filtered
/// @param angles    P angles in radians, any order, over 350 degrees at least
/// @param valid     as find_centre has it, or none
/// @throws Error on shapes that do not fit, angles that are not finite or span less, and values that are not finite or the
///         same everywhere
template <class ExecutionSpace, class Sinogram>
double find_overlap(const ExecutionSpace& space, const Sinogram& sinogram, const std::vector<double>& angles,
                    const OverlapOptions& options = {},
                    const Array<const typename Sinogram::non_const_value_type,
                                typename ExecutionSpace::memory_space>& valid = {}) {
  using T = typename Sinogram::non_const_value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  constexpr Impl::Arguments arguments{"find_overlap"};
  const Array<const T, MemorySpace> in(sinogram);
  const int n = Impl::check_searched_sinogram(arguments, in, angles),
            least = options.least > 0 ? options.least : std::max(8, n / 50);
  arguments.within("options.least", least, 2, n, " columns");
  Kokkos::Profiling::ScopedRegion region("Bracewell::find_overlap");
  const auto pairs = Impl::opposite_rows(arguments, angles);
  const Impl::SearchedSinogram<ExecutionSpace, T> searched(arguments, space, in, valid, angles);
  return Impl::search_overlap(space, searched.data(), n, pairs, least);
}

/// Makes the wider rows of half acquisition. A method reconstructs them with the angles of the whole turn and the centre
/// of half_acquisition. Weights fall from 2 to 0 as a squared cosine over the columns that are seen twice. So both views
/// of a ray weigh 2, as in other scans over a whole turn. Columns beyond the detector are zero.
/// @param sinograms  [S, P, n] attenuation
/// @param wider      [S, P, half_acquisition(n, centre).width], overwritten
/// @param centre     of the axis in `sinograms`
/// @throws Error on shapes that do not fit, shared memory, a centre that is not on the detector
template <class ExecutionSpace, class Input, class Output>
void weigh_half_acquisition(const ExecutionSpace& space, const Input& sinograms, const Output& wider,
                            double centre) {
  using T = typename Output::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  constexpr Impl::Arguments arguments{"weigh_half_acquisition"};
  const Array<const T, MemorySpace> in(sinograms);
  const Array<T, MemorySpace> out(wider);
  Impl::check_half_acquisition(arguments, in, centre);
  const auto width = static_cast<int>(in.extents[2]);
  const HalfAcquisition place = half_acquisition(width, centre);
  arguments.shape("wider", out, {in.extents[0], in.extents[1], place.width});
  arguments.disjoint({{"wider", out}}, {{"sinograms", in}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::weigh_half_acquisition");
  Impl::for_each_row(space, "Bracewell::weigh_half_acquisition::weigh", in.extents[0] * in.extents[1],
                     Impl::WeighOverlap<T>{in.data, out.data, width, place.width, place.offset,
                                           Impl::OverlapWeight(width, centre)});
}

/// The transpose of weigh_half_acquisition.
/// @throws Error as weigh_half_acquisition
template <class ExecutionSpace, class Input, class Output>
void weigh_half_acquisition_transpose(const ExecutionSpace& space, const Input& wider,
                                      const Output& sinograms, double centre) {
  using T = typename Output::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  constexpr Impl::Arguments arguments{"weigh_half_acquisition_transpose"};
  const Array<const T, MemorySpace> in(wider);
  const Array<T, MemorySpace> out(sinograms);
  Impl::check_half_acquisition(arguments, out, centre);
  const auto width = static_cast<int>(out.extents[2]);
  const HalfAcquisition place = half_acquisition(width, centre);
  arguments.shape("wider", in, {out.extents[0], out.extents[1], place.width});
  arguments.disjoint({{"sinograms", out}}, {{"wider", in}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::weigh_half_acquisition_transpose");
  Impl::for_each_row(space, "Bracewell::weigh_half_acquisition_transpose::weigh",
                     out.extents[0] * out.extents[1],
                     Impl::WeighOverlapTranspose<T>{in.data, out.data, width, place.width, place.offset,
                                                    Impl::OverlapWeight(width, centre)});
}

} // namespace Bracewell
