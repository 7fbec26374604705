// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/impl/memory.hpp>
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

/// Gradients with respect to the exit waves, wherever they lie: those of pattern i are factor(i) times what
/// is stored. Half precision needs factors for its range.
template <class T, class Stored>
struct WaveGradients {
  static constexpr bool scaled = sizeof(Stored) < sizeof(T);

  const StoredComplex<Stored>* data;
  std::int64_t pattern_stride, mode_stride, row_stride;
  const T* factors; ///< [patterns], where scaled

  KOKKOS_INLINE_FUNCTION T factor(std::int64_t i) const {
    if constexpr (scaled)
      return factors[i];
    else
      return T(1);
  }
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
/// through the windows that reach it and stores each pixel once. On GPUs the lanes of a warp are neighbouring
/// columns and hold all rows; the warps take the windows in turn and add what they have at the end, in fixed
/// order. `slots` says which place in the selection a pattern has (none: its own number).
template <class Space, class T, class Stored>
struct GatherObjectGradient {
  static constexpr int width = ScanTiles::width, height = ScanTiles::height;
  static constexpr int shares = is_host<Space> ? 1 : 8; ///< of the windows
  static constexpr int team_size = is_host<Space> ? 1 : width * shares;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  Scan scan;
  ScanTiles tiles;
  Selection selection;
  const int* slots;
  Probes<T> probes;
  WaveGradients<T, Stored> waves;
  Kokkos::complex<T>* gradient;
  bool accumulate;

  /// A window and where the tile lies in it.
  struct Window {
    int i, row, column;
    T factor;
  };

  /// False for windows of patterns that were not selected.
  KOKKOS_INLINE_FUNCTION bool window(std::int64_t entry, std::int64_t top, std::int64_t left,
                                     Window& result) const {
    const std::int64_t j = tiles.windows[entry], i = (slots ? slots[j] : j) - selection.first;
    if (i < 0 || i >= selection.count)
      return false;
    result = {static_cast<int>(i), static_cast<int>(top - scan.positions[2 * j]),
              static_cast<int>(left - scan.positions[2 * j + 1]), waves.factor(i)};
    return true;
  }

  /// Adds what a window has for a column of the tile.
  KOKKOS_INLINE_FUNCTION void add(const Window& window, int x, T (&re)[height], T (&im)[height]) const {
    const int m = scan.probe, column = window.column + x;
    const int from = Kokkos::max(0, -window.row), to = Kokkos::min(+height, m - window.row);
    if (from >= to || column < 0 || column >= m)
      return;
    for (int mode = 0; mode < probes.modes; ++mode) {
      const Kokkos::complex<T>* const p = probes.data + window.i * probes.stride + std::int64_t(mode) * m * m;
      Kokkos::complex<T> probe[height], wave[height];
      BRACEWELL_UNROLL
      for (int y = 0; y < height; ++y) { // all on their way at the same time
        const bool inside = y >= from && y < to;
        probe[y] = inside ? p[(window.row + y) * m + column] : Kokkos::complex<T>(0);
        wave[y] = inside ? waves(window.i, mode, window.row + y, column) : Kokkos::complex<T>(0);
      }
      BRACEWELL_UNROLL
      for (int y = 0; y < height; ++y) {
        if constexpr (WaveGradients<T, Stored>::scaled)
          wave[y] *= window.factor;
        re[y] += probe[y].real() * wave[y].real() + probe[y].imag() * wave[y].imag();
        im[y] += probe[y].real() * wave[y].imag() - probe[y].imag() * wave[y].real();
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void store(std::int64_t row, std::int64_t column,
                                    const Kokkos::complex<T>& sum) const {
    if (row >= scan.rows || column >= scan.columns)
      return;
    const std::int64_t index = row * scan.columns + column;
    gradient[index] = accumulate ? gradient[index] + sum : sum;
  }

  using Scratch =
      Kokkos::View<Kokkos::complex<T>*, typename Space::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int scratch_size = is_host<Space> ? 0 : shares * height * width;
  static_assert(sizeof(Window) <= height * sizeof(Kokkos::complex<T>));
  static std::size_t scratch_bytes() { return Scratch::shmem_size(scratch_size); }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t tile = team.league_rank(), begin = tiles.first[tile], end = tiles.first[tile + 1];
    const std::int64_t top = tile / tiles.across * height, left = tile % tiles.across * width;
    if constexpr (is_host<Space>) {
      T re[width][height] = {}, im[width][height] = {};
      Window now;
      for (std::int64_t entry = begin; entry < end; ++entry)
        if (window(entry, top, left, now))
          for (int x = 0; x < width; ++x)
            add(now, x, re[x], im[x]);
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
          store(top + y, left + x, {re[x][y], im[x][y]});
    } else {
      const int rank = team.team_rank(), x = rank % width, share = rank / width;
      const Scratch scratch(team.team_scratch(0), +scratch_size);
      Window* const windows = reinterpret_cast<Window*>(scratch.data());
      T re[height] = {}, im[height] = {};
      for (std::int64_t first = begin; first < end; first += team_size) {
        const int count = static_cast<int>(Kokkos::min<std::int64_t>(team_size, end - first));
        if (rank < count && !window(first + rank, top, left, windows[rank]))
          windows[rank] = {0, scan.probe, 0, T(0)}; // reaches nothing
        team.team_barrier();
        for (int w = share; w < count; w += shares)
          add(windows[w], x, re, im);
        team.team_barrier();
      }
      BRACEWELL_UNROLL
      for (int y = 0; y < height; ++y)
        scratch((share * height + y) * width + x) = Kokkos::complex<T>(re[y], im[y]);
      team.team_barrier();
      for (int pixel = rank; pixel < width * height; pixel += team_size) {
        Kokkos::complex<T> sum(0);
        for (int s = 0; s < shares; ++s)
          sum += scratch(s * height * width + pixel);
        store(top + pixel / width, left + pixel % width, sum);
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
  Probes<T> probes;
  WaveGradients<T, Stored> waves;
  Kokkos::complex<T>* gradient;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const int m = scan.probe, column = static_cast<int>(index % m), row = static_cast<int>(index / m % m);
    const std::int64_t i = index / m / m;
    const std::int64_t at = scan.corner(selection(i)) + row * scan.columns + column;
    Kokkos::complex<T> sum(0);
    for (int mode = 0; mode < probes.modes; ++mode)
      sum += conjugate_product(probes.data[i * probes.stride + (std::int64_t(mode) * m + row) * m + column],
                               waves(i, mode, row, column));
    sum *= waves.factor(i);
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
    Kokkos::complex<T> sum(0);
    std::int64_t i = slice * per_slice;
    for (; i + together <= end; i += together)
      add<together>(i, mode, row, column, sum);
    for (; i < end; ++i)
      add<1>(i, mode, row, column, sum);
    slices[index] = sum;
  }

  static constexpr int together = 4; ///< patterns whose numbers are on their way at the same time

  template <int count>
  KOKKOS_INLINE_FUNCTION void add(std::int64_t first, int mode, int row, int column,
                                  Kokkos::complex<T>& sum) const {
    Kokkos::complex<T> value[count], wave[count];
    BRACEWELL_UNROLL
    for (int c = 0; c < count; ++c) {
      value[c] = object[scan.corner(selection(first + c)) + row * scan.columns + column];
      wave[c] = waves(first + c, mode, row, column);
    }
    BRACEWELL_UNROLL
    for (int c = 0; c < count; ++c)
      sum += waves.factor(first + c) * conjugate_product(value[c], wave[c]);
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
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#pragma unroll 8
#endif
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
    Impl::launch_gather(
        space, "Bracewell::exit_wave_gradients::object",
        Gather{scan.device(), scan.tiles(), all, nullptr, probes, gradients, outputs.object.data, false});
  if (outputs.probe)
    Kokkos::parallel_for(
        "Bracewell::exit_wave_gradients::probe",
        Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, p.size()),
        Impl::SliceProbeGradient<T, T>{scan.device(), all, o.data, probes, gradients, outputs.probe.data,
                                       scan.count()});
}

} // namespace Bracewell
