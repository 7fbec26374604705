// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/detail/detector_impl.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// How a detector is rolled about the beam.
struct RollOptions {
  /// Radians. An upright detector sees a ray at row s and column i, counted from its centre. A rolled detector sees this ray
  /// at row cos(angle) s - sin(angle) i and column sin(angle) s + cos(angle) i.
  double angle = 0;
  double row = 0;    ///< centre of the roll
  double column = 0; ///< likewise
};

/// Means over squares of pixels, before normalisation; rows and columns behind the last whole square are left out. The
/// middle of square i is at pixel bin i + (bin - 1) / 2.
/// @param frames  [P, S, n] counts
/// @param binned  [P, S / bin, n / bin], overwritten
/// @param bin     pixels, 1 to 64
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Frames, class Binned>
void bin_frames(const ExecutionSpace& space, const Frames& frames, const Binned& binned, int bin) {
  using T = typename Binned::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  constexpr Impl::Arguments arguments{"bin_frames"};
  const Array<const T, MemorySpace> in(frames);
  const Array<T, MemorySpace> out(binned);
  Impl::check_bins(arguments, in, out, bin);
  arguments.disjoint({{"binned", out}}, {{"frames", in}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::bin_frames");
  Impl::for_each_row(space, "Bracewell::bin_frames::mean", out.extents[0] * out.extents[1],
                     Impl::BinFrames<T>{in.data, out.data, int(in.extents[1]), int(in.extents[2]),
                                        int(out.extents[1]), int(out.extents[2]), bin});
}

/// The transpose of bin_frames.
/// @throws Error as bin_frames
template <class ExecutionSpace, class Binned, class Frames>
void bin_frames_transpose(const ExecutionSpace& space, const Binned& binned, const Frames& frames, int bin) {
  using T = typename Frames::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  constexpr Impl::Arguments arguments{"bin_frames_transpose"};
  const Array<const T, MemorySpace> in(binned);
  const Array<T, MemorySpace> out(frames);
  Impl::check_bins(arguments, out, in, bin);
  arguments.disjoint({{"frames", out}}, {{"binned", in}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::bin_frames_transpose");
  Impl::for_each_row(space, "Bracewell::bin_frames_transpose::spread", out.extents[0] * out.extents[1],
                     Impl::UnbinFrames<T>{in.data, out.data, int(out.extents[1]), int(out.extents[2]),
                                          int(in.extents[1]), int(in.extents[2]), bin});
}

/// Rolls frames back to what an upright detector would have seen, with bilinear interpolation. Beyond the edges the
/// outermost values go on.
/// @param sinograms  [S, P, n]: neighbouring rows of the detector
/// @param turned     [S, P, n], overwritten
/// @throws Error on shapes that do not fit, shared memory, options that are not finite
template <class ExecutionSpace, class Input, class Output>
void turn_detector(const ExecutionSpace& space, const Input& sinograms, const Output& turned,
                   const RollOptions& options) {
  Kokkos::Profiling::ScopedRegion region("Bracewell::turn_detector");
  Impl::roll_frames<false>(space, {"turn_detector"}, "Bracewell::turn_detector::interpolate", sinograms,
                           turned, options);
}

/// The transpose of turn_detector. By atomic additions: last bits vary from call to call.
/// @throws Error as turn_detector
template <class ExecutionSpace, class Input, class Output>
void turn_detector_transpose(const ExecutionSpace& space, const Input& sinograms, const Output& turned,
                             const RollOptions& options) {
  Kokkos::Profiling::ScopedRegion region("Bracewell::turn_detector_transpose");
  Impl::roll_frames<true>(space, {"turn_detector_transpose"}, "Bracewell::turn_detector_transpose::spread",
                          sinograms, turned, options);
}

/// Makes rows of a wider detector, which continue the values at both ends. Slices larger than the detector need this,
/// because back-projection takes rows as periodic.
/// @param sinograms  [S, P, n]
/// @param wider      [S, P, m], m >= n + offset, overwritten
/// @param offset     pixels before the first one, which the axis moves by
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Input, class Output>
void extend_detector(const ExecutionSpace& space, const Input& sinograms, const Output& wider, int offset) {
  using T = typename Output::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  constexpr Impl::Arguments arguments{"extend_detector"};
  const Array<const T, MemorySpace> in(sinograms);
  const Array<T, MemorySpace> out(wider);
  Impl::check_extension(arguments, in, out, offset);
  arguments.disjoint({{"wider", out}}, {{"sinograms", in}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::extend_detector");
  Impl::for_each_row(space, "Bracewell::extend_detector::extend", in.extents[0] * in.extents[1],
                     Impl::ExtendRows<T>{in.data, out.data, int(in.extents[2]), int(out.extents[2]), offset});
}

/// The transpose of extend_detector.
/// @throws Error as extend_detector
template <class ExecutionSpace, class Input, class Output>
void extend_detector_transpose(const ExecutionSpace& space, const Input& wider, const Output& sinograms,
                               int offset) {
  using T = typename Output::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  constexpr Impl::Arguments arguments{"extend_detector_transpose"};
  const Array<const T, MemorySpace> in(wider);
  const Array<T, MemorySpace> out(sinograms);
  Impl::check_extension(arguments, out, in, offset);
  arguments.disjoint({{"sinograms", out}}, {{"wider", in}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::extend_detector_transpose");
  Impl::for_each_row(
      space, "Bracewell::extend_detector_transpose::fold", in.extents[0] * in.extents[1],
      Impl::ExtendRowsTranspose<T>{in.data, out.data, int(out.extents[2]), int(in.extents[2]), offset});
}

} // namespace Bracewell
