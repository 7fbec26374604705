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
    for (int i = 0; i < size; ++i)
      windows.side[i] = sign < 0 || (sign == 0 && position[0][i] < 0) ? T(-1) : T(1);
    for (auto& axis : position)
      for (int i = 0; i < size; ++i)
        axis[i] *= windows.side[i];
    Windows::place_windows(position, windows.first, windows.weight);
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
      const Kokkos::complex<T> value = amplitudes.value(batch, index, element + i, own, one, values[i]);
      const T imaginary = windows.side[i] * value.imag();
      for (int x = 0; x < width; ++x) {
        data[i][2 * x] = windows.weight[0][x][i] * value.real();
        data[i][2 * x + 1] = windows.weight[0][x][i] * imaginary;
      }
      if (!weights)
        continue;
      const T sample_weight = amplitudes.scale(own) * weights[i];
      for (int x = 0; x < width; ++x)
        weight[i][x] =
            (absolute ? std::abs(windows.weight[0][x][i]) : windows.weight[0][x][i]) * sample_weight;
    }
    // g++ 12.2 -O3 loses track of where these stores go, takes this function for one without effect, and drops its calls.
    asm volatile("" ::: "memory");
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

  template <class Row>
  static void add_row(T* at, T factor, const T* values) {
    Row sum, row;
    std::memcpy(&sum, at, sizeof sum);
    std::memcpy(&row, values, sizeof row);
    sum += factor * row;
    std::memcpy(at, &sum, sizeof sum);
  }
};

} // namespace Bracewell::Impl
