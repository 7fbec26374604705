// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace Bracewell::Impl {

/// Means over squares of pixels, one call per row of the result.
template <class T>
struct BinFrames {
  const T* frames; ///< [angles, rows, width]
  T* binned;       ///< [angles, binned_rows, binned_width]
  int rows, width, binned_rows, binned_width, bin;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const T* in = frames + (row / binned_rows * rows + row % binned_rows * bin) * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, binned_width), [&](int i) {
      T sum = 0;
      for (int y = 0; y < bin; ++y)
        for (int x = 0; x < bin; ++x)
          sum += in[std::int64_t(y) * width + i * bin + x];
      binned[row * binned_width + i] = sum / T(bin * bin);
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
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const std::int64_t angle = row / rows, binned_row = row % rows / bin;
    const T* in = binned + (angle * binned_rows + binned_row) * binned_width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      frames[row * width + i] =
          binned_row < binned_rows && i / bin < binned_width ? in[i / bin] / T(bin * bin) : T(0);
    });
  }
};

/// Bilinear interpolation in rolled frames, or its transpose.
template <class T, bool Transpose>
struct RollFrames {
  const T* in; ///< [rows, angles, width]
  T* out;
  int rows, angles, width;
  double cosine, sine, row, column;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t number, const Member& member) const {
    const double s = double(number / angles) - row;
    const std::int64_t step = std::int64_t(angles) * width, start = number % angles * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      const double y = Kokkos::clamp(row + cosine * s - sine * (i - column), 0., double(rows - 1)),
                   x = Kokkos::clamp(column + sine * s + cosine * (i - column), 0., double(width - 1));
      const int top = Kokkos::min(static_cast<int>(y), Kokkos::max(rows - 2, 0)),
                left = Kokkos::min(static_cast<int>(x), Kokkos::max(width - 2, 0)),
                bottom = Kokkos::min(top + 1, rows - 1), right = Kokkos::min(left + 1, width - 1);
      const T v = T(y - top), u = T(x - left);
      const auto at = [&](int r, int c) { return start + r * step + c; };
      if constexpr (Transpose) {
        const T value = in[number * width + i];
        Kokkos::atomic_add(out + at(top, left), (T(1) - v) * (T(1) - u) * value);
        Kokkos::atomic_add(out + at(top, right), (T(1) - v) * u * value);
        Kokkos::atomic_add(out + at(bottom, left), v * (T(1) - u) * value);
        Kokkos::atomic_add(out + at(bottom, right), v * u * value);
      } else {
        out[number * width + i] = (T(1) - v) * ((T(1) - u) * in[at(top, left)] + u * in[at(top, right)]) +
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
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, wider_width), [&](int j) {
      wider[row * wider_width + j] = rows[row * width + Kokkos::clamp(j - offset, 0, width - 1)];
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
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const T* const in = wider + row * wider_width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      T sum = 0;
      const int begin = i == 0 ? 0 : i + offset, end = i == width - 1 ? wider_width : i + offset + 1;
      for (int j = begin; j < end; ++j)
        sum += in[j];
      rows[row * width + i] = sum;
    });
  }
};

/// Checks rows and longer ones.
inline void check_extension(const Arguments& arguments, const ArrayShape& rows, const ArrayShape& wider,
                            int offset) {
  if (rows.rank != 3 || rows.extents[2] < 1 || rows.extents[2] >= 1 << 30)
    arguments.refuse("sinograms", "[slices, angles, width], found %s", rows.shape_text().characters);
  if (wider.rank != 3 || wider.extents[2] >= 1 << 30 || offset < 0 ||
      wider.extents[2] < rows.extents[2] + offset)
    arguments.refuse("wider", "rows of %lld values at least, and %d before them, found %s",
                     static_cast<long long>(rows.extents[2]), offset, wider.shape_text().characters);
  arguments.shape("wider", wider, {rows.extents[0], rows.extents[1], wider.extents[2]});
}

/// Checks frames and binned ones; their rows are the last but one axis.
inline void check_bins(const Arguments& arguments, const ArrayShape& frames, const ArrayShape& binned,
                       int bin) {
  arguments.within("bin", bin, 1, 64, " pixels");
  if (!frames || frames.rank != 3 || frames.extents[1] >= 1 << 30 || frames.extents[2] >= 1 << 30)
    arguments.refuse("frames", "[angles, rows, width], found %s", frames.shape_text().characters);
  arguments.shape("binned", binned, {frames.extents[0], frames.extents[1] / bin, frames.extents[2] / bin});
}

/// @param options  RollOptions
template <bool Transpose, class ExecutionSpace, class Input, class Output, class Options>
void roll_frames(const ExecutionSpace& space, const Arguments& arguments, const char* label,
                 const Input& sinograms, const Output& turned, const Options& options) {
  using T = typename Output::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  const Array<const T, MemorySpace> in(sinograms);
  const Array<T, MemorySpace> out(turned);
  if (!in || in.rank != 3 || std::max({in.extents[0], in.extents[1], in.extents[2]}) >= 1 << 30)
    arguments.refuse("sinograms", "[slices, angles, width], found %s", in.shape_text().characters);
  arguments.same_shape("turned", out, in);
  arguments.disjoint({{"turned", out}}, {{"sinograms", in}});
  arguments.finite("options.angle", options.angle);
  arguments.finite("options.row", options.row);
  arguments.finite("options.column", options.column);
  if (Transpose)
    fill(space, label, out.data, out.size());
  for_each_row(space, label, in.extents[0] * in.extents[1],
               RollFrames<T, Transpose>{in.data, out.data, int(in.extents[0]), int(in.extents[1]),
                                        int(in.extents[2]), std::cos(options.angle), std::sin(options.angle),
                                        options.row, options.column});
}

} // namespace Bracewell::Impl
