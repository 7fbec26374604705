// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/vector.hpp>
#include <bracewell/project/detail/insertion/insert_sample.hpp>
#include <bracewell/project/detail/window_block.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace Bracewell::Impl {

/// What neighbouring samples of a row add on hosts: the transpose of WindowBlock's sums.
template <class Kernel, class T, int M, int D, Mates mates>
struct alignas(64) InsertionBlock {
  using Windows = WindowBlock<Kernel, T, M, D, mates>;
  static constexpr int width = Windows::width, size = Windows::size;

  Windows windows;
  int count;        ///< of samples
  int usable[size]; ///< of them: the window has a place (fold)
  T phase[2][size];
  /// What a sample adds to a row of its window, but for the weights of the row: real and imaginary parts, and weights.
  T data[size][2 * width], weight[size][width];

  /// Samples k, k + (1, 0), ... up to column `last`. `folds`: positions are brought back by whole periods first. `sign`:
  /// windows are those of q (1), of the mates at -q (-1), or of whichever has x >= 0 (0). Not a part of its callers, which
  /// have it once for all of them.
  [[gnu::noinline]] void place(const Samples<T, M, D>& samples, const Pose<T, M, D>& any_pose, bool folds,
                               const int (&k)[M], int last, int sign) {
    const Pose<T, M, D> pose = any_pose; // which nothing that is written here can be a part of
    T position[D][size];
    Windows::find_positions(pose, k, last, position);
    count = std::min(size, last + 1 - k[0]);
    for (int& one : usable)
      one = 1;
    for (int i = 0; i < count && folds; ++i)
      fold_one(samples, i, position);
    windows.place_around(position, sign);
    for (int i = 0; i < size; ++i) {
      int own[M];
      column(k, i, own);
      const Kokkos::complex<T> one = pose.phase(own);
      phase[0][i] = one.real();
      phase[1][i] = one.imag();
    }
  }

  /// Sets data and weight of the usable samples of those at k; `element`: that of k in its projection.
  [[gnu::noinline]] void set(const Amplitudes<T, M, D, mates>& amplitudes, const InsertionTarget<T>& target,
                             std::int64_t batch, std::int64_t index, const int (&k)[M],
                             std::int64_t element) {
    const Kokkos::complex<T>* const values = amplitudes.address(batch, index, element);
    const T* const weights = target.weight ? amplitudes.weights(batch, index) + element : nullptr;
    const bool shifted = bool(amplitudes.samples.shifts), absolute = target.absolute;
    for (int i = 0; i < count; ++i) {
      if (!usable[i])
        continue;
      int own[M];
      column(k, i, own);
      const Kokkos::complex<T> one =
          shifted ? Kokkos::complex<T>(phase[0][i], phase[1][i]) : Kokkos::complex<T>(1);
      set_value(i, amplitudes.value(batch, index, element + i, own, one, values[i]));
      if (weights)
        set_weight(i, amplitudes.scale(own) * weights[i], absolute);
    }
    // g++ 12.2 -O3 loses track of where these stores go, takes this function for one without effect, and drops its calls.
    asm volatile("" ::: "memory");
  }

  KOKKOS_FORCEINLINE_FUNCTION void set_value(int i, const Kokkos::complex<T>& value) {
    const T imaginary = windows.side[i] * value.imag();
    for (int x = 0; x < width; ++x) {
      data[i][2 * x] = windows.weight[0][x][i] * value.real();
      data[i][2 * x + 1] = windows.weight[0][x][i] * imaginary;
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void set_weight(int i, T value, bool absolute) {
    for (int x = 0; x < width; ++x)
      weight[i][x] = (absolute ? std::abs(windows.weight[0][x][i]) : windows.weight[0][x][i]) * value;
  }

  /// Adds sample i to a half spectrum, and to weights of its layout (null: none).
  void add_to_spectrum(const HalfSpectrumLayout<D>& layout, int i, bool absolute, T* sums, T* weights) const {
    TapWindow<width, D, mates> window{.layout = layout, .first = {}, .mirrored = windows.side[i] < 0};
    for (int d = 0; d < D; ++d)
      window.first[d] = windows.first[d][i];
    if (window.direct())
      add(i, {0, 0, 0}, {1, width, D == 3 ? width : 1}, absolute, sums, weights,
          [&](int y, [[maybe_unused]] int z) {
            int tap[D] = {window.first[0], window.first[1] + y};
            if constexpr (D == 3)
              tap[2] = window.first[2] + z;
            return layout.row(tap) + window.first[0];
          });
    else
      add_at_edge(i, window, absolute, sums, weights);
  }

  /// Adds rows y, from[1] <= y < to[1], of planes z of the window of sample i; place(y, z): the element of the sums that its
  /// first tap belongs to. `weights`: null for none.
  template <class Place>
  void add(int i, const int (&from)[3], const int (&to)[3], bool absolute, T* sums, T* weights,
           const Place& place) const {
    using Pairs = typename Vector<T, 2 * width>::type;
    using Taps = typename Vector<T, width>::type;
    for (int z = from[2]; z < to[2]; ++z)
      for (int y = from[1]; y < to[1]; ++y) {
        const T across = row_weight(i, y, z);
        const std::int64_t at = place(y, z);
        add_row<Pairs>(sums + 2 * at, across, data[i]);
        if (weights)
          add_row<Taps>(weights + at, absolute ? std::abs(across) : across, weight[i]);
      }
  }

  /// The product of the weights of a row and its plane.
  T row_weight(int i, int y, [[maybe_unused]] int z) const {
    if constexpr (D == 3)
      return windows.weight[1][y][i] * windows.weight[2][z][i];
    else
      return windows.weight[1][y][i];
  }

private:
  static void column(const int (&k)[M], int i, int (&own)[M]) {
    for (int c = 0; c < M; ++c)
      own[c] = c == 0 ? k[0] + i : k[c];
  }

  void fold_one(const Samples<T, M, D>& samples, int i, T (&position)[D][size]) {
    T q[D];
    for (int d = 0; d < D; ++d)
      q[d] = position[d][i];
    usable[i] = fold(samples.reconstruction, q);
    for (int d = 0; d < D; ++d)
      position[d][i] = usable[i] ? q[d] : T(0);
  }

  /// Tap by tap, for windows that touch a self-mated column or leave the stored half.
  [[gnu::noinline]] void add_at_edge(int i, const TapWindow<width, D, mates>& window, bool absolute, T* sums,
                                     T* weights) const {
    for (int z = 0; z < (D == 3 ? width : 1); ++z)
      for (int y = 0; y < width; ++y) {
        int row[D - 1] = {y};
        if constexpr (D == 3)
          row[1] = z;
        const T across = row_weight(i, y, z);
        window.for_each_stored(row, [&](std::int64_t element, int x, bool mated) {
          sums[2 * element] += across * data[i][2 * x];
          sums[2 * element + 1] += (mated ? -across : across) * data[i][2 * x + 1];
          if (weights)
            weights[element] += (absolute ? std::abs(across) : across) * weight[i][x];
        });
      }
  }

  template <class Row>
  static void add_row(T* at, T factor, const T* values) {
    Row sum, row;
    std::memcpy(&sum, at, sizeof sum);
    std::memcpy(&row, values, sizeof row);
    sum += factor * row;
    std::memcpy(at, &sum, sizeof sum);
  }
};

template <class Kernel, Mates mates, class T, int D, int N>
int insert_block(const HalfSpectrum<T, D>& spectrum, T* weight, bool absolute, const T (&q)[D][N],
                 const Kokkos::complex<T> (&values)[N], const T (&weights)[N], int count) {
  InsertionBlock<Kernel, T, 2, D, mates> block;
  place_anywhere(spectrum.layout, q, block.windows, block.usable);
  int placed = 0;
  for (int i = 0; i < count; ++i) {
    if (!block.usable[i])
      continue;
    ++placed;
    block.set_value(i, values[i]);
    if (weight)
      block.set_weight(i, weights[i], absolute);
    block.add_to_spectrum(spectrum.layout, i, absolute, reinterpret_cast<T*>(spectrum.data), weight);
  }
  return placed;
}

} // namespace Bracewell::Impl
