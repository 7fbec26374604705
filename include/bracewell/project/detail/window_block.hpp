// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/vector.hpp>
#include <bracewell/interpolation/kernel.hpp>
#include <bracewell/project/detail/samples.hpp>
#include <bracewell/project/detail/stencil.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace Bracewell::Impl {

/// Windows of taps around neighbouring samples of a row. Every array has the samples as its last axis, and
/// loops over them are plain and of fixed length, so that compilers vectorise them.
template <class Kernel, class T, int M, int D, Mates mates>
struct alignas(64) WindowBlock {
  static constexpr int width = Kernel::width, size = 64 / sizeof(T); ///< the widest vectors of CPUs

  T side[size]; ///< -1 where the window is that of -q (TapWindow::mirrored)
  int first[D][size];
  T weight[D][width][size];

  /// Samples k, k + (1, 0), ... up to column `last`, which stands for those beyond it too.
  void place(const Pose<T, M, D>& pose, const int (&k)[M], int last) {
    T position[D][size];
    find_positions(pose, k, last, position);
    place_around(position, 0);
  }

  /// `sign`: windows are those of positions (1), of the mates at -q (-1), or of whichever has x >= 0 (0).
  void place_around(T (&position)[D][size], int sign) {
    for (int i = 0; i < size; ++i)
      side[i] = sign < 0 || (sign == 0 && position[0][i] < 0) ? T(-1) : T(1);
    for (auto& axis : position)
      for (int i = 0; i < size; ++i)
        axis[i] *= side[i];
    place_windows(position, first, weight);
  }

  static void find_positions(const Pose<T, M, D>& pose, const int (&k)[M], int last, T (&position)[D][size]) {
    for (int d = 0; d < D; ++d) {
      T start = 0, across = 0;
      for (int c = 1; c < M; ++c) {
        start += pose.matrix[d][c] * static_cast<T>(k[c]);
        across += static_cast<T>(k[c]) * static_cast<T>(k[c]);
      }
      const T step = pose.matrix[d][0], bend = pose.bend[d];
      for (int i = 0; i < size; ++i) {
        const T x = static_cast<T>(std::min(k[0] + i, last));
        position[d][i] = start + step * x + bend * (across + x * x);
      }
    }
  }

  /// Lowest taps of the windows around positions, and their weights.
  static void place_windows(const T (&position)[D][size], int (&first)[D][size],
                            T (&weight)[D][width][size]) {
    for (int d = 0; d < D; ++d) {
      T fraction[size];
      for (int i = 0; i < size; ++i) { // Kokkos::floor is not vectorised: it may raise floating-point flags
        // As samples beyond int, which reach nothing, are placed too; not a number becomes the least.
        const T q = std::min(std::max(T(-1e9), position[d][i]), T(1e9));
        const int cut = static_cast<int>(q), lower = cut - (static_cast<T>(cut) > q ? 1 : 0);
        first[d][i] = lower - (width / 2 - 1);
        fraction[i] = q - static_cast<T>(lower);
      }
      for (int i = 0; i < size; ++i) {
        T one[width];
        Kernel::weights(fraction[i], one);
        for (int j = 0; j < width; ++j)
          weight[d][j][i] = one[j];
      }
    }
  }

  void make_absolute() {
    for (auto& axis : weight)
      for (auto& tap : axis)
        for (T& one : tap)
          one = std::abs(one);
  }

  /// Sums of weight times volume over the windows: complex (two parts) or real.
  template <class Stored, int parts>
  void gather(const HalfSpectrumLayout<D>& layout, const Stored* volume, T (&sum)[parts][size]) const {
    if (layout.columns() >= width)
      gather_rows(layout, volume, sum);
    for (int i = 0; i < size; ++i)
      if (layout.columns() < width || !direct(layout, i))
        gather_taps(layout, volume, i, sum);
  }

private:
  /// Every tap is stored as it is and stands for itself alone. Where only the stored element counts, that
  /// holds on the self-mated columns too, but not for their mates.
  bool direct(const HalfSpectrumLayout<D>& layout, int i) const {
    const int margin = mates == Mates::Both || side[i] < 0;
    return first[0][i] >= margin && 2 * (first[0][i] + width - 1) <= layout.size[0] - margin;
  }

  static constexpr int planes = D == 3 ? width : 1;

  /// Where the rows of taps begin: element plane[z][i] + row[y][i] of the volume.
  void place_rows(const HalfSpectrumLayout<D>& layout, std::int64_t (&plane)[planes][size],
                  int (&row)[width][size]) const {
    for (int z = 0; z < planes; ++z)
      for (int i = 0; i < size; ++i) {
        plane[z][i] = std::max(0, std::min(first[0][i], layout.columns() - width));
        if constexpr (D == 3)
          plane[z][i] += layout.wrap(first[2][i] + z, layout.size[2]) *
                         (std::int64_t(layout.size[1]) * layout.columns());
      }
    for (int y = 0; y < width; ++y)
      for (int i = 0; i < size; ++i)
        row[y][i] = layout.wrap(first[1][i] + y, layout.size[1]) * layout.columns();
  }

  /// Row after row of taps, as if all windows were direct: all columns of a row at once.
  template <class Stored, int parts>
  void gather_rows(const HalfSpectrumLayout<D>& layout, const Stored* volume, T (&sum)[parts][size]) const {
    std::int64_t plane[planes][size];
    int row[width][size];
    place_rows(layout, plane, row);
    using Columns = typename Vector<T, parts * width>::type;
    T columns[size][parts * width];
    for (int i = 0; i < size; ++i) {
      Columns sum_of_planes = {};
      for (int z = 0; z < planes; ++z) {
        Columns sum_of_lines = {};
        for (int y = 0; y < width; ++y) {
          Columns taps;
          load(volume + plane[z][i] + row[y][i], taps);
          sum_of_lines += weight[1][y][i] * taps;
        }
        if constexpr (D == 3)
          sum_of_planes += weight[2][z][i] * sum_of_lines;
        else
          sum_of_planes = sum_of_lines;
      }
      std::memcpy(columns[i], &sum_of_planes, sizeof sum_of_planes);
    }
    for (int p = 0; p < parts; ++p)
      for (int i = 0; i < size; ++i) {
        T total = weight[0][0][i] * columns[i][p];
        for (int x = 1; x < width; ++x)
          total += weight[0][x][i] * columns[i][parts * x + p];
        sum[p][i] = p == 0 ? total : side[i] * total;
      }
  }

  template <class Stored, class Columns>
  static void load(const Stored* taps, Columns& columns) {
    if constexpr (std::is_same_v<Stored, HalfComplex>) {
      std::uint16_t bits[2 * width];
      T parts[2 * width];
      std::memcpy(bits, taps, sizeof bits);
      for (int column = 0; column < 2 * width; ++column)
        parts[column] = widen(bits[column]);
      std::memcpy(&columns, parts, sizeof columns);
    } else {
      static_assert(sizeof columns == width * sizeof(Stored));
      std::memcpy(&columns, taps, sizeof columns);
    }
  }

  template <class Stored, int parts>
  void gather_taps(const HalfSpectrumLayout<D>& layout, const Stored* volume, int i,
                   T (&sum)[parts][size]) const {
    Stencil<Kernel, D, mates, T> stencil;
    stencil.window.layout = layout;
    stencil.window.mirrored = side[i] < 0;
    for (int d = 0; d < D; ++d) {
      stencil.window.first[d] = first[d][i];
      for (int j = 0; j < width; ++j)
        stencil.weight[d][j] = weight[d][j][i];
    }
    const auto value = stencil.gather(volume);
    sum[0][i] = Kokkos::real(value);
    if constexpr (parts == 2)
      sum[1][i] = Kokkos::imag(value);
  }
};

/// Whether N samples are a block of vectors here.
template <class T, int N>
inline constexpr bool is_block = N == 64 / sizeof(T);

template <class Kernel, class T, int D>
void check_blocks(const char* function, const HalfSpectrumLayout<D>& layout) {
  check_kernel<Kernel, T>(function);
  for (int d = 0; d < D; ++d)
    if (layout.size[d] < std::max(4, Kernel::width) || layout.size[d] > 32768)
      fail(function, "spectrum", "axes of " + number(std::max(4, Kernel::width)) + " to 32768 elements",
           "one of " + number(layout.size[d]));
}

/// Windows around positions anywhere; which of them have a place.
template <class Windows, class T, int D, int N>
void place_anywhere(const HalfSpectrumLayout<D>& layout, const T (&q)[D][N], Windows& windows,
                    int (&usable)[N]) {
  T position[D][N];
  int near = 1;
  for (int d = 0; d < D; ++d) {
    const T limit = static_cast<T>(std::max(0, layout.size[d] - std::max(4, Windows::width / 2)));
    for (int i = 0; i < N; ++i) {
      position[d][i] = q[d][i];
      near &= std::abs(q[d][i]) <= limit;
    }
  }
  for (int& one : usable)
    one = 1;
  if (!near)
    for (int i = 0; i < N; ++i) {
      T one[D];
      for (int d = 0; d < D; ++d)
        one[d] = q[d][i];
      usable[i] = fold(layout, one);
      for (int d = 0; d < D; ++d)
        position[d][i] = usable[i] ? one[d] : T(0);
    }
  windows.place_around(position, 0);
}

template <class Kernel, Mates mates, class T, int D, int N>
void sample_block(const HalfSpectrum<const T, D>& spectrum, const T (&q)[D][N],
                  Kokkos::complex<T> (&values)[N]) {
  WindowBlock<Kernel, T, 2, D, mates> block;
  int usable[N];
  place_anywhere(spectrum.layout, q, block, usable);
  T sum[2][N];
  block.gather(spectrum.layout, spectrum.data, sum);
  constexpr T nan = Kokkos::Experimental::quiet_NaN_v<T>;
  for (int i = 0; i < N; ++i)
    values[i] = usable[i] ? Kokkos::complex<T>(sum[0][i], sum[1][i]) : Kokkos::complex<T>(nan, nan);
}

} // namespace Bracewell::Impl
