// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
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

template <class Value>
struct Fill {
  Value* values;
  Value value;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { values[i] = value; }
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

  /// Adds what window i has for pixels `from` to `to` of a row of the tile.
  KOKKOS_INLINE_FUNCTION void add_row(std::int64_t i, int row, int column, T (&re)[width], T (&im)[width],
                                      T (&energy)[width], int from, int to) const {
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
          add_row(i, row + y, column, re[y], im[y], energy[y], from, to);
      }
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
          if (top + y < scan.rows && left + x < scan.columns)
            store(top + y, left + x, re[y][x], im[y][x], energy[y][x]);
    } else {
      const int y = team.team_rank() / width, x = team.team_rank() % width;
      T re = 0, im = 0, energy = 0;
      const Windows windows(team.team_scratch(0), team_size);
      for (std::int64_t first = tiles.first[tile]; first < tiles.first[tile + 1]; first += team_size) {
        const int count =
            static_cast<int>(Kokkos::min<std::int64_t>(team_size, tiles.first[tile + 1] - first));
        windows(team.team_rank()) = window(first + team.team_rank(), team.team_rank() < count, top, left);
        team.team_barrier();
        for (int begin = 0; begin < count; begin += together)
          add(&windows(begin), y, x, re, im, energy);
        team.team_barrier();
      }
      if (top + y < scan.rows && left + x < scan.columns)
        store(top + y, left + x, re, im, energy);
    }
  }

  /// A window and where the tile lies in it; a window that does not count has factors of zero.
  struct Window {
    int i, row, column;
    T f, h;
  };
  using Windows =
      Kokkos::View<Window*, typename Space::scratch_memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  static constexpr int together = 4; ///< windows whose numbers are on their way at the same time
  static_assert(is_host<Space> || team_size % together == 0);
  static std::size_t scratch_bytes() { return is_host<Space> ? 0 : Windows::shmem_size(team_size); }

  KOKKOS_INLINE_FUNCTION Window window(std::int64_t entry, bool given, std::int64_t top,
                                       std::int64_t left) const {
    Window result{0, -scan.probe - height, 0, T(0), T(0)};
    std::int64_t j, i;
    if (given && slot(entry, j, i)) {
      result.i = static_cast<int>(i);
      result.row = static_cast<int>(top - scan.positions[2 * j]);
      result.column = static_cast<int>(left - scan.positions[2 * j + 1]);
      result.f = waves.factors ? waves.factors[2 * i] : T(1);
      result.h = waves.factors ? waves.factors[2 * i + 1] : T(0);
    }
    return result;
  }

  /// Adds what a few windows have for one pixel. Windows that do not reach it are read at their first pixel
  /// and multiplied by zero, so that nothing waits for a branch.
  KOKKOS_INLINE_FUNCTION void add(const Window* windows, int y, int x, T& re, T& im, T& energy) const {
    const int m = scan.probe;
    for (int mode = 0; mode < probes.modes; ++mode) {
      Kokkos::complex<T> probe[together], wave[together];
      T f[together], h[together];
      BRACEWELL_UNROLL
      for (int w = 0; w < together; ++w) {
        const Window window = windows[w];
        const int row = window.row + y, column = window.column + x;
        const bool reaches = row >= 0 && row < m && column >= 0 && column < m;
        const int at = reaches ? row * m + column : 0;
        f[w] = reaches ? window.f : T(0);
        h[w] = reaches ? window.h : T(0);
        probe[w] = probes.data[window.i * probes.stride + std::int64_t(mode) * m * m + at];
        wave[w] = waves(window.i, mode, reaches ? row : 0, reaches ? column : 0);
      }
      BRACEWELL_UNROLL
      for (int w = 0; w < together; ++w) {
        const Kokkos::complex<T> product = conjugate_product(probe[w], wave[w]);
        re += f[w] * product.real();
        im += f[w] * product.imag();
        energy += h[w] * (probe[w].real() * probe[w].real() + probe[w].imag() * probe[w].imag());
      }
    }
  }
};

/// Runs the gathering kernel with its scratch memory.
template <class Space, class Gather>
void launch_gather(const Space& space, const std::string& label, const Gather& gather) {
  Kokkos::TeamPolicy<Space> policy(space, static_cast<int>(gather.tiles.count), +Gather::team_size);
  policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(Gather::scratch_bytes())));
  Kokkos::parallel_for(label, policy, gather);
}

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

template <class Space, class O, class P, class W, class Memory>
void check_exit_waves(const char* function, const ScanPositions<Space>& scan, const Array<O, Memory>& object,
                      const Array<P, Memory>& probe, const Array<W, Memory>& waves) {
  const auto text = [](std::int64_t size) { return std::to_string(size); };
  const Scan& s = scan.device();
  if (object.rank != 2 || object.extents[0] != s.rows || object.extents[1] != s.columns)
    fail(function, "object", "[" + text(s.rows) + ", " + text(s.columns) + "]", object.shape());
  if (probe.rank != 3 || probe.extents[1] != s.probe || probe.extents[2] != s.probe)
    fail(function, "probe", "[modes, " + text(s.probe) + ", " + text(s.probe) + "]", probe.shape());
  if (waves.rank != 4 || waves.extents[0] != s.count || waves.extents[1] != probe.extents[0] ||
      waves.extents[2] != waves.extents[3] || waves.extents[2] < s.probe)
    fail(function, "waves",
         "[" + text(s.count) + ", " + text(probe.extents[0]) + ", n, n], n >= " + text(s.probe),
         waves.shape());
  if (scan.subpixel())
    fail(function, "scan", "whole positions (PtychographyLoss shifts the probe)", "others");
}

} // namespace Impl

/// Exit waves psi_jl(r) = O(y_j + r) p_l(r) of every position.
/// @param scan    positions, whole numbers
/// @param object  View of Kokkos::complex<T> [rows, columns]
/// @param probe   View [modes, m, m]
/// @param waves   View [N, modes, n, n], n >= m: zeros outside the corner of m x m; overwritten
/// @throws Error on shapes that do not fit, and positions that are not whole numbers
template <class ExecutionSpace, class ObjectView, class ProbeView, class WavesView>
void exit_waves(const ExecutionSpace& space, const ScanPositions<ExecutionSpace>& scan,
                const ObjectView& object, const ProbeView& probe, const WavesView& waves) {
  using T = Impl::real_of<ObjectView>;
  using Memory = typename ExecutionSpace::memory_space;
  const Array<const Kokkos::complex<T>, Memory> o(object), p(probe);
  const Array<Kokkos::complex<T>, Memory> w(waves);
  Impl::check_exit_waves("exit_waves", scan, o, p, w);
  Kokkos::parallel_for(
      "Bracewell::exit_waves::multiply",
      Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, w.size()),
      Impl::ExitWaves<T>{scan.device(),
                         {nullptr, 0, scan.count()},
                         o.data,
                         {p.data, 0, static_cast<int>(p.extents[0])},
                         w.data,
                         static_cast<int>(w.extents[3])});
}

/// Outputs of exit_wave_gradients; what is not given is not computed.
template <class T, class MemorySpace>
struct ExitWaveGradientOutputs {
  Array<Kokkos::complex<T>, MemorySpace> object = {}; ///< [rows, columns]
  Array<Kokkos::complex<T>, MemorySpace> probe = {};  ///< [modes, m, m]
};

/// The adjoint: from G = dL/dRe psi + i dL/dIm psi,
///   dL/dO(y) = sum_j sum_l conj(p_l(y - y_j)) G_jl(y - y_j),  dL/dp_l(r) = sum_j conj(O(y_j + r)) G_jl(r),
/// in fixed order, without atomic additions.
/// @param waves    View [N, modes, n, n]: G, of which the corner of m x m counts
/// @param outputs  .object, .probe: overwritten
/// @throws Error on shapes that do not fit, and positions that are not whole numbers
template <class ExecutionSpace, class ObjectView, class ProbeView, class WavesView>
void exit_wave_gradients(const ExecutionSpace& space, const ScanPositions<ExecutionSpace>& scan,
                         const ObjectView& object, const ProbeView& probe, const WavesView& waves,
                         const ExitWaveGradientOutputs<Impl::real_of<ObjectView>,
                                                       typename ExecutionSpace::memory_space>& outputs) {
  using T = Impl::real_of<ObjectView>;
  using Memory = typename ExecutionSpace::memory_space;
  const Array<const Kokkos::complex<T>, Memory> o(object), p(probe), w(waves);
  Impl::check_exit_waves("exit_wave_gradients", scan, o, p, w);
  const auto same = [](const auto& array, const auto& like, const char* argument) {
    bool fits = array.rank == like.rank;
    for (int axis = 0; fits && axis < array.rank; ++axis)
      fits = array.extents[axis] == like.extents[axis];
    if (array && !fits)
      Impl::fail("exit_wave_gradients", argument, like.shape(), array.shape());
  };
  same(outputs.object, o, "outputs.object");
  same(outputs.probe, p, "outputs.probe");
  const std::int64_t n = w.extents[3];
  const Impl::Selection all{nullptr, 0, scan.count()};
  const Impl::Probes<T> probes{p.data, 0, static_cast<int>(p.extents[0])};
  const Impl::WaveGradients<T, T> gradients{reinterpret_cast<const Impl::StoredComplex<T>*>(w.data),
                                            probes.modes * n * n, n * n, n, nullptr};
  using Gather = Impl::GatherObjectGradient<ExecutionSpace, T, T>;
  if (outputs.object)
    Impl::launch_gather(space, "Bracewell::exit_wave_gradients::object",
                        Gather{scan.device(), scan.tiles(), all, nullptr, o.data, probes, gradients,
                               outputs.object.data, false});
  if (outputs.probe)
    Kokkos::parallel_for(
        "Bracewell::exit_wave_gradients::probe",
        Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, p.size()),
        Impl::SliceProbeGradient<T, T>{scan.device(), all, o.data, probes, gradients, outputs.probe.data,
                                       scan.count()});
}

} // namespace Bracewell
