// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/tiles.hpp>
#include <bracewell/interpolation/stencil.hpp>
#include <bracewell/project/samples.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace Bracewell::Impl {

/// N numbers that are computed with together: vectors of GCC and Clang.
template <class T, int N>
struct Lanes {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};

/// Windows of taps around neighbouring samples of a row. Every array has the samples as its last axis, and
/// loops over them are plain and of fixed length, so that compilers vectorise them.
template <class Kernel, class T, int M, int D, Mates mates>
struct WindowBlock {
  static constexpr int width = Kernel::width, size = 64 / sizeof(T); ///< the widest vectors of CPUs

  T side[size]; ///< -1 where the window is that of -q (TapWindow::mirrored)
  int first[D][size];
  T weight[D][width][size];

  /// Samples k, k + (1, 0), ... up to column `last`, which stands for those beyond it too.
  void place(const Pose<T, M, D>& pose, const int (&k)[M], int last) {
    T position[D][size];
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
    for (int i = 0; i < size; ++i)
      side[i] = position[0][i] < 0 ? T(-1) : T(1);
    for (int d = 0; d < D; ++d) {
      T fraction[size];
      for (int i = 0; i < size; ++i) { // Kokkos::floor is not vectorised: it may raise floating-point flags
        const T q = side[i] * position[d][i];
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

  /// Row after row of taps, as if all windows were direct: all columns of a row at once.
  template <class Stored, int parts>
  void gather_rows(const HalfSpectrumLayout<D>& layout, const Stored* volume, T (&sum)[parts][size]) const {
    constexpr int planes = D == 3 ? width : 1;
    std::int64_t plane[planes][size];
    int line[width][size];
    for (int z = 0; z < planes; ++z)
      for (int i = 0; i < size; ++i) {
        plane[z][i] = std::max(0, std::min(first[0][i], layout.columns() - width));
        if constexpr (D == 3)
          plane[z][i] += layout.wrap(first[2][i] + z, layout.size[2]) *
                         (std::int64_t(layout.size[1]) * layout.columns());
      }
    for (int y = 0; y < width; ++y)
      for (int i = 0; i < size; ++i)
        line[y][i] = layout.wrap(first[1][i] + y, layout.size[1]) * layout.columns();

    using Columns = typename Lanes<T, parts * width>::type;
    T columns[size][parts * width];
    for (int i = 0; i < size; ++i) {
      Columns sum_of_planes = {};
      for (int z = 0; z < planes; ++z) {
        Columns sum_of_lines = {};
        for (int y = 0; y < width; ++y) {
          Columns taps;
          load(volume + plane[z][i] + line[y][i], taps);
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

/// Gather on hosts, row by row of the projections, blocks of neighbouring samples at a time.
template <class Kernel, class T, int M, int D, Mates mates, class Gather>
struct GatherRows {
  using Block = WindowBlock<Kernel, T, M, D, mates>;

  Gather gather;
  int parts; ///< work items per pose

  void operator()(std::int64_t item) const {
    const auto& samples = gather.amplitudes.samples;
    const auto& layout = samples.projection;
    const std::int64_t flat = item / parts, part = item % parts;
    const std::int64_t batch = flat / samples.poses, index = flat % samples.poses;
    const auto pose = samples.pose(batch, index);
    const std::int64_t rows = layout.elements() / layout.columns();
    for (std::int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
      int k[M];
      layout.frequency(row * layout.columns(), k);
      if (pose.folds)
        for (; k[0] < layout.columns(); ++k[0])
          gather.sample(batch, index, pose, k, row * layout.columns() + k[0]);
      else
        add_row(batch, index, pose, k, row * layout.columns());
    }
  }

private:
  /// Columns of the row that begins at element `begin`.
  void add_row(std::int64_t batch, std::int64_t index, const Pose<T, M, D>& pose, int (&k)[M],
               std::int64_t begin) const {
    const auto& samples = gather.amplitudes.samples;
    int left = samples.squared_radius;
    for (int c = 1; c < M; ++c)
      left -= k[c] * k[c];
    const int columns = samples.projection.columns();
    const int last = left < 0 ? -1 : std::min(columns - 1, static_cast<int>(std::sqrt(double(left))));
    for (; k[0] <= last; k[0] += Block::size)
      add_block(batch, index, pose, k, last, begin + k[0]);
    const std::int64_t output = (batch * samples.poses + index) * samples.projection.elements() + begin;
    if (gather.values)
      std::fill(gather.values + output + last + 1, gather.values + output + columns, Kokkos::complex<T>(0));
    if (gather.weights)
      std::fill(gather.weights + output + last + 1, gather.weights + output + columns, T(0));
  }

  void add_block(std::int64_t batch, std::int64_t index, const Pose<T, M, D>& pose, const int (&k)[M],
                 int last, std::int64_t element) const {
    const auto& amplitudes = gather.amplitudes;
    const auto& samples = amplitudes.samples;
    const std::int64_t volume_begin = batch * gather.volume_batch_stride;
    const std::int64_t output = (batch * samples.poses + index) * samples.projection.elements() + element;
    const int count = std::min(int(Block::size), last + 1 - k[0]);
    Block block;
    block.place(pose, k, last);
    int own[Block::size][M];
    for (int i = 0; i < Block::size; ++i)
      for (int c = 0; c < M; ++c)
        own[i][c] = c == 0 ? std::min(k[0] + i, last) : k[c];
    if (gather.values) {
      T sum[2][Block::size], phase[2][Block::size];
      block.gather(samples.reconstruction, gather.volume + volume_begin, sum);
      for (int i = 0; i < Block::size; ++i) {
        const Kokkos::complex<T> one = pose.phase(own[i]);
        phase[0][i] = one.real();
        phase[1][i] = one.imag();
      }
      for (int i = 0; i < count; ++i)
        gather.values[output + i] = amplitudes.factor(batch, index, element + i, own[i]) *
                                    Kokkos::complex<T>(sum[0][i], sum[1][i]) *
                                    Kokkos::complex<T>(phase[0][i], phase[1][i]);
    }
    if (gather.weights) {
      if (gather.absolute)
        block.make_absolute();
      T sum[1][Block::size];
      block.gather(samples.reconstruction, gather.weight_volume + volume_begin, sum);
      for (int i = 0; i < count; ++i)
        gather.weights[output + i] = amplitudes.scale(own[i]) * sum[0][i];
    }
  }
};

/// Launches a gather of `poses` projections on a host, in a few work items per thread or more.
template <class Kernel, class T, int M, int D, Mates mates, class ExecutionSpace, class Gather>
void launch_gather_rows(const ExecutionSpace& space, const std::string& label, const Gather& gather,
                        std::int64_t poses) {
  const auto& layout = gather.amplitudes.samples.projection;
  const std::int64_t rows = layout.elements() / layout.columns();
  const int parts = static_cast<int>(std::clamp<std::int64_t>(8 * space.concurrency() / poses, 1, rows));
  using Policy =
      Kokkos::RangePolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(label, Policy(space, 0, poses * parts).set_chunk_size(1),
                       GatherRows<Kernel, T, M, D, mates, Gather>{gather, parts});
}

} // namespace Bracewell::Impl
