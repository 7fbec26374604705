// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cmath>

namespace Bracewell {

/// How a detector is turned about the beam.
struct RollOptions {
  /// Radians: what a detector that stands upright sees at row s and column i, a turned one sees at row
  /// cos(angle) s - sin(angle) i and column sin(angle) s + cos(angle) i, counted from its centre.
  double angle = 0;
  double row = 0;    ///< centre of the turn
  double column = 0; ///< likewise
};

namespace Impl {

/// Means over squares of pixels, one call per row of the result.
template <class T>
struct BinFrames {
  const T* frames; ///< [angles, rows, width]
  T* binned;       ///< [angles, binned_rows, binned_width]
  int rows, width, binned_rows, binned_width, bin;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t line, const Member& member) const {
    const T* in = frames + (line / binned_rows * rows + line % binned_rows * bin) * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, binned_width), [&](int i) {
      T sum = 0;
      for (int y = 0; y < bin; ++y)
        for (int x = 0; x < bin; ++x)
          sum += in[std::int64_t(y) * width + i * bin + x];
      binned[line * binned_width + i] = sum / T(bin * bin);
    });
  }
};

/// The transpose, one call per row of the frames.
template <class T>
struct UnbinFrames {
  const T* binned;
  T* frames;
  int rows, width, binned_rows, binned_width, bin;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t line, const Member& member) const {
    const std::int64_t angle = line / rows, row = line % rows / bin;
    const T* in = binned + (angle * binned_rows + row) * binned_width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      frames[line * width + i] =
          row < binned_rows && i / bin < binned_width ? in[i / bin] / T(bin * bin) : T(0);
    });
  }
};

/// Bilinear interpolation in turned frames, or its transpose.
template <class T, bool Transpose>
struct TurnFrames {
  const T* in; ///< [rows, angles, width]
  T* out;
  int rows, angles, width;
  double cosine, sine, row, column;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t line, const Member& member) const {
    const double s = double(line / angles) - row;
    const std::int64_t step = std::int64_t(angles) * width, start = line % angles * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      const double y = Kokkos::clamp(row + cosine * s - sine * (i - column), 0., double(rows - 1)),
                   x = Kokkos::clamp(column + sine * s + cosine * (i - column), 0., double(width - 1));
      const int top = Kokkos::min(static_cast<int>(y), Kokkos::max(rows - 2, 0)),
                left = Kokkos::min(static_cast<int>(x), Kokkos::max(width - 2, 0)),
                bottom = Kokkos::min(top + 1, rows - 1), right = Kokkos::min(left + 1, width - 1);
      const T v = T(y - top), u = T(x - left);
      const auto at = [&](int r, int c) { return start + r * step + c; };
      if constexpr (Transpose) {
        const T value = in[line * width + i];
        Kokkos::atomic_add(out + at(top, left), (T(1) - v) * (T(1) - u) * value);
        Kokkos::atomic_add(out + at(top, right), (T(1) - v) * u * value);
        Kokkos::atomic_add(out + at(bottom, left), v * (T(1) - u) * value);
        Kokkos::atomic_add(out + at(bottom, right), v * u * value);
      } else {
        out[line * width + i] = (T(1) - v) * ((T(1) - u) * in[at(top, left)] + u * in[at(top, right)]) +
                                v * ((T(1) - u) * in[at(bottom, left)] + u * in[at(bottom, right)]);
      }
    });
  }
};

/// Rows in longer ones, beyond which their ends go on.
template <class T>
struct ExtendRows {
  const T* rows;
  T* wider;
  int width, wider_width, offset;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t line, const Member& member) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, wider_width), [&](int j) {
      wider[line * wider_width + j] = rows[line * width + Kokkos::clamp(j - offset, 0, width - 1)];
    });
  }
};

/// The transpose: what lies beyond the ends is added to them.
template <class T>
struct ExtendRowsTranspose {
  const T* wider;
  T* rows;
  int width, wider_width, offset;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t line, const Member& member) const {
    const T* const in = wider + line * wider_width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      T sum = 0;
      const int begin = i == 0 ? 0 : i + offset, end = i == width - 1 ? wider_width : i + offset + 1;
      for (int j = begin; j < end; ++j)
        sum += in[j];
      rows[line * width + i] = sum;
    });
  }
};

/// Checks rows and longer ones.
inline void check_extension(const Arguments& arguments, const ArrayShape& rows, const ArrayShape& wider,
                            int offset) {
  arguments.require(rows && rows.rank == 3 && rows.extents[2] >= 1 && rows.extents[2] < (1 << 30),
                    "sinograms", "[slices, angles, width]", [&] { return rows.shape(); });
  const bool fits = wider && wider.rank == 3 && wider.extents[2] < (1 << 30) && offset >= 0;
  arguments.require(
      fits && wider.extents[2] >= rows.extents[2] + offset, "wider",
      [&] {
        return "rows of " + number(rows.extents[2]) + " values at least, and " + number(offset) +
               " before them";
      },
      [&] { return wider.shape(); });
  arguments.shape("wider", wider, {rows.extents[0], rows.extents[1], wider.extents[2]});
}

/// Checks frames and binned ones; their rows are the last but one axis.
inline void check_bins(const Arguments& arguments, const ArrayShape& frames, const ArrayShape& binned,
                       int bin) {
  arguments.within("bin", bin, 1, 64, " pixels");
  arguments.require(frames && frames.rank == 3 && frames.extents[1] < (1 << 30) &&
                        frames.extents[2] < (1 << 30),
                    "frames", "[angles, rows, width]", [&] { return frames.shape(); });
  arguments.shape("binned", binned, {frames.extents[0], frames.extents[1] / bin, frames.extents[2] / bin});
}

template <bool Transpose, class ExecutionSpace, class Input, class Output>
void turn_frames(const ExecutionSpace& space, const Arguments& arguments, const char* label,
                 const Input& sinograms, const Output& turned, const RollOptions& options) {
  using T = typename Output::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  const Array<const T, MemorySpace> in(sinograms);
  const Array<T, MemorySpace> out(turned);
  arguments.require(in && in.rank == 3 && in.extents[0] < (1 << 30) && in.extents[1] < (1 << 30) &&
                        in.extents[2] < (1 << 30),
                    "sinograms", "[slices, angles, width]", [&] { return in.shape(); });
  arguments.same_shape("turned", out, in);
  arguments.disjoint({{"turned", out}}, {{"sinograms", in}});
  arguments.finite("options.angle", options.angle);
  arguments.finite("options.row", options.row);
  arguments.finite("options.column", options.column);
  if (Transpose)
    fill(space, label, out.data, out.size());
  for_each_row(space, label, in.extents[0] * in.extents[1],
               TurnFrames<T, Transpose>{in.data, out.data, int(in.extents[0]), int(in.extents[1]),
                                        int(in.extents[2]), std::cos(options.angle), std::sin(options.angle),
                                        options.row, options.column});
}

} // namespace Impl

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

/// What a detector would have seen that stands upright: frames are turned, with bilinear interpolation. Beyond the
/// edges the outermost values go on.
/// @param sinograms  [S, P, n]: neighbouring rows of the detector
/// @param turned     [S, P, n], overwritten
/// @throws Error on shapes that do not fit, shared memory, options that are not finite
template <class ExecutionSpace, class Input, class Output>
void turn_detector(const ExecutionSpace& space, const Input& sinograms, const Output& turned,
                   const RollOptions& options) {
  Kokkos::Profiling::ScopedRegion region("Bracewell::turn_detector");
  Impl::turn_frames<false>(space, {"turn_detector"}, "Bracewell::turn_detector::interpolate", sinograms,
                           turned, options);
}

/// The transpose of turn_detector. By atomic additions: last bits vary from run to run.
/// @throws Error as turn_detector
template <class ExecutionSpace, class Input, class Output>
void turn_detector_transpose(const ExecutionSpace& space, const Input& sinograms, const Output& turned,
                             const RollOptions& options) {
  Kokkos::Profiling::ScopedRegion region("Bracewell::turn_detector_transpose");
  Impl::turn_frames<true>(space, {"turn_detector_transpose"}, "Bracewell::turn_detector_transpose::spread",
                          sinograms, turned, options);
}

/// Rows of a wider detector, on which the values at the ends go on: for slices that are larger than the detector, as
/// back-projection takes rows for periodic ones.
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
