// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/tiles.hpp>
#include <bracewell/ptychography/options.hpp>
#include <bracewell/ptychography/scan_positions.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

namespace Impl {

/// Patterns first .. first + count - 1 of a subset of the scan (all of it where there is no list).
struct Selection {
  const int* numbers;
  std::int64_t first, count;

  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t i) const {
    return numbers ? numbers[first + i] : first + i;
  }
};

/// Where in a selection a pattern stands.
struct FillSlots {
  const int* numbers;
  int* slots;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { slots[numbers[i]] = static_cast<int>(i); }
};

/// Probes [modes, m, m], the same for every pattern or (stride > 0) one set for each.
template <class T>
struct Probes {
  const Kokkos::complex<T>* data;
  std::int64_t stride;
  int modes;
};

/// Exit waves in the corner of windows of n x n, zeros around them: [patterns, modes, n, n].
template <class T>
struct ExitWaves {
  Scan scan;
  Selection selection;
  const Kokkos::complex<T>* object;
  Probes<T> probes;
  Kokkos::complex<T>* waves;
  int n;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const int m = scan.probe, column = static_cast<int>(index % n), row = static_cast<int>(index / n % n);
    const std::int64_t wave = index / n / n, i = wave / probes.modes, mode = wave - i * probes.modes;
    Kokkos::complex<T> value(0);
    if (row < m && column < m)
      value = object[scan.corner(selection(i)) + row * scan.columns + column] *
              probes.data[i * probes.stride + (mode * m + row) * m + column];
    waves[index] = value;
  }
};

/// Gradients with respect to the exit waves, wherever they lie. With factors, the gradient of pattern i is
/// factor[2 i] stored - factor[2 i + 1] (exit wave): what the fused kernel leaves to its reader.
template <class T, class Stored>
struct WaveGradients {
  const StoredComplex<Stored>* data;
  std::int64_t pattern_stride, mode_stride, row_stride;
  const T* factors;

  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> operator()(std::int64_t i, int mode, int row, int column) const {
    return data[i * pattern_stride + mode * mode_stride + row * row_stride + column].template load<T>();
  }
};

template <class T>
KOKKOS_INLINE_FUNCTION Kokkos::complex<T> conjugate_product(const Kokkos::complex<T>& a,
                                                            const Kokkos::complex<T>& b) {
  return {a.real() * b.real() + a.imag() * b.imag(), a.real() * b.imag() - a.imag() * b.real()};
}

/// Object gradient sum_j conj(p(r - y_j)) G_j(r - y_j), by tiles of the object: a team owns a tile, goes
/// through the windows that reach it in rising order and stores each pixel once. `slots` says which place in
/// the selection a pattern has (none: its own number).
template <class Space, class T, class Stored>
struct GatherObjectGradient {
  static constexpr int width = ScanTiles::width, height = ScanTiles::height;
  static constexpr int team_size = is_host<Space> ? 1 : width * height;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  Scan scan;
  ScanTiles tiles;
  Selection selection;
  const int* slots;
  const Kokkos::complex<T>* object;
  Probes<T> probes;
  WaveGradients<T, Stored> waves;
  Kokkos::complex<T>* gradient;
  bool accumulate;

  KOKKOS_INLINE_FUNCTION bool slot(std::int64_t entry, std::int64_t& j, std::int64_t& i) const {
    j = tiles.windows[entry];
    i = (slots ? slots[j] : j) - selection.first;
    return i >= 0 && i < selection.count;
  }

  /// Adds what window j has for `columns` neighbouring pixels of one row.
  template <int columns>
  KOKKOS_INLINE_FUNCTION void add(std::int64_t i, int row, int column, T (&re)[columns], T (&im)[columns],
                                  T (&energy)[columns], int from, int to) const {
    const int m = scan.probe;
    const T f = waves.factors ? waves.factors[2 * i] : T(1),
            h = waves.factors ? waves.factors[2 * i + 1] : T(0);
    for (int mode = 0; mode < probes.modes; ++mode) {
      const Kokkos::complex<T>* const p =
          probes.data + i * probes.stride + (std::int64_t(mode) * m + row) * m;
      for (int x = from; x < to; ++x) {
        const Kokkos::complex<T> probe = p[column + x];
        const Kokkos::complex<T> product = conjugate_product(probe, waves(i, mode, row, column + x));
        re[x] += f * product.real();
        im[x] += f * product.imag();
        energy[x] += h * (probe.real() * probe.real() + probe.imag() * probe.imag());
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void store(std::int64_t row, std::int64_t column, T re, T im, T energy) const {
    const std::int64_t index = row * scan.columns + column;
    Kokkos::complex<T> sum(re, im);
    if (waves.factors)
      sum -= energy * object[index];
    gradient[index] = accumulate ? gradient[index] + sum : sum;
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t tile = team.league_rank();
    const std::int64_t top = tile / tiles.across * height, left = tile % tiles.across * width;
    if constexpr (is_host<Space>) {
      T re[height][width] = {}, im[height][width] = {}, energy[height][width] = {};
      for (std::int64_t entry = tiles.first[tile]; entry < tiles.first[tile + 1]; ++entry) {
        std::int64_t j, i;
        if (!slot(entry, j, i))
          continue;
        const int row = static_cast<int>(top - scan.positions[2 * j]);
        const int column = static_cast<int>(left - scan.positions[2 * j + 1]);
        const int from = Kokkos::max(0, -column), to = Kokkos::min(width, scan.probe - column);
        for (int y = Kokkos::max(0, -row); y < Kokkos::min(height, scan.probe - row); ++y)
          add(i, row + y, column, re[y], im[y], energy[y], from, to);
      }
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
          if (top + y < scan.rows && left + x < scan.columns)
            store(top + y, left + x, re[y][x], im[y][x], energy[y][x]);
    } else {
      const std::int64_t y = top + team.team_rank() / width, x = left + team.team_rank() % width;
      T re[1] = {0}, im[1] = {0}, energy[1] = {0};
      for (std::int64_t entry = tiles.first[tile]; entry < tiles.first[tile + 1]; ++entry) {
        std::int64_t j, i;
        if (!slot(entry, j, i))
          continue;
        const int row = static_cast<int>(y) - scan.positions[2 * j];
        const int column = static_cast<int>(x) - scan.positions[2 * j + 1];
        if (row >= 0 && row < scan.probe && column >= 0 && column < scan.probe)
          add(i, row, column, re, im, energy, 0, 1);
      }
      if (y < scan.rows && x < scan.columns)
        store(y, x, re[0], im[0], energy[0]);
    }
  }
};

/// The same sum by atomic additions, one thread per pixel of a window.
template <class T, class Stored>
struct ScatterObjectGradient {
  Scan scan;
  Selection selection;
  const Kokkos::complex<T>* object;
  Probes<T> probes;
  WaveGradients<T, Stored> waves;
  Kokkos::complex<T>* gradient;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const int m = scan.probe, column = static_cast<int>(index % m), row = static_cast<int>(index / m % m);
    const std::int64_t i = index / m / m;
    const std::int64_t at = scan.corner(selection(i)) + row * scan.columns + column;
    const T f = waves.factors ? waves.factors[2 * i] : T(1),
            h = waves.factors ? waves.factors[2 * i + 1] : T(0);
    Kokkos::complex<T> sum(0);
    T energy = 0;
    for (int mode = 0; mode < probes.modes; ++mode) {
      const auto probe = probes.data[i * probes.stride + (std::int64_t(mode) * m + row) * m + column];
      sum += conjugate_product(probe, waves(i, mode, row, column));
      energy += probe.real() * probe.real() + probe.imag() * probe.imag();
    }
    sum *= f;
    if (waves.factors)
      sum -= h * energy * object[at];
    T* const target = reinterpret_cast<T*>(gradient + at);
    Kokkos::atomic_add(target, sum.real());
    Kokkos::atomic_add(target + 1, sum.imag());
  }
};

/// Probe gradient sum_j conj(O(y_j + r)) G_j(r) over slices of the patterns, each slice in rising order.
template <class T, class Stored>
struct SliceProbeGradient {
  Scan scan;
  Selection selection;
  const Kokkos::complex<T>* object;
  Probes<T> probes;
  WaveGradients<T, Stored> waves;
  Kokkos::complex<T>* slices; ///< [slices, modes, m, m]
  std::int64_t per_slice;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const int m = scan.probe;
    const std::int64_t pixels = std::int64_t(m) * m, slice = index / (pixels * probes.modes);
    const std::int64_t element = index - slice * pixels * probes.modes, pixel = element % pixels;
    const int mode = static_cast<int>(element / pixels);
    const int row = static_cast<int>(pixel / m), column = static_cast<int>(pixel % m);
    const std::int64_t end = Kokkos::min(selection.count, (slice + 1) * per_slice);
    T re = 0, im = 0, energy = 0;
    for (std::int64_t i = slice * per_slice; i < end; ++i) {
      const auto value = object[scan.corner(selection(i)) + row * scan.columns + column];
      const auto product = conjugate_product(value, waves(i, mode, row, column));
      const T f = waves.factors ? waves.factors[2 * i] : T(1);
      re += f * product.real();
      im += f * product.imag();
      if (waves.factors)
        energy += waves.factors[2 * i + 1] * (value.real() * value.real() + value.imag() * value.imag());
    }
    Kokkos::complex<T> sum(re, im);
    if (waves.factors)
      sum -= energy * probes.data[element];
    slices[index] = sum;
  }
};

template <class T>
struct SumSlices {
  const Kokkos::complex<T>* slices;
  Kokkos::complex<T>* gradient;
  std::int64_t elements, count;
  bool accumulate;

  KOKKOS_FUNCTION void operator()(std::int64_t element) const {
    Kokkos::complex<T> sum(0);
    for (std::int64_t slice = 0; slice < count; ++slice)
      sum += slices[slice * elements + element];
    gradient[element] = accumulate ? gradient[element] + sum : sum;
  }
};

} // namespace Impl

/// Exit waves psi_j(r) = O(y_j + r) p(r) of every position.
/// @param scan    positions, whole numbers
/// @param object  View of Kokkos::complex<T> [rows, columns]
/// @param probe   View [modes, m, m]
/// @param waves   View [N, modes, n, n], n >= m: zeros outside the corner of m x m; overwritten
/// @throws Error on shapes that do not fit
template <class ExecutionSpace, class ObjectView, class ProbeView, class WavesView>
void exit_waves(const ExecutionSpace& space, const ScanPositions<ExecutionSpace>& scan,
                const ObjectView& object, const ProbeView& probe, const WavesView& waves) {
  using T = Impl::real_of<ObjectView>;
  using Memory = typename ExecutionSpace::memory_space;
  const Array<const Kokkos::complex<T>, Memory> o(object), p(probe);
  const Array<Kokkos::complex<T>, Memory> w(waves);
  const Impl::Scan& s = scan.device();
  if (o.rank != 2 || o.extents[0] != s.rows || o.extents[1] != s.columns)
    Impl::fail("exit_waves", "object", "[" + std::to_string(s.rows) + ", " + std::to_string(s.columns) + "]",
               o.shape());
  if (p.rank != 3 || p.extents[1] != s.probe || p.extents[2] != s.probe)
    Impl::fail("exit_waves", "probe",
               "[modes, " + std::to_string(s.probe) + ", " + std::to_string(s.probe) + "]", p.shape());
  if (w.rank != 4 || w.extents[0] != s.count || w.extents[1] != p.extents[0] ||
      w.extents[2] != w.extents[3] || w.extents[2] < s.probe)
    Impl::fail("exit_waves", "waves",
               "[" + std::to_string(s.count) + ", " + std::to_string(p.extents[0]) +
                   ", n, n], n >= " + std::to_string(s.probe),
               w.shape());
  const Impl::Probes<T> probes{p.data, 0, static_cast<int>(p.extents[0])};
  Kokkos::parallel_for(
      "Bracewell::exit_waves::multiply",
      Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, w.size()),
      Impl::ExitWaves<T>{s, {nullptr, 0, s.count}, o.data, probes, w.data, static_cast<int>(w.extents[3])});
}

} // namespace Bracewell
