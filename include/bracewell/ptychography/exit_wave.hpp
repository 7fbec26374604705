// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/ptychography/detail/check_loss.hpp>
#include <bracewell/ptychography/detail/general/waves.hpp>
#include <bracewell/ptychography/detail/scan_store.hpp>
#include <bracewell/ptychography/detail/sums/exit_waves.hpp>
#include <bracewell/ptychography/detail/sums/object_gradient.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace Bracewell {

/// Places of the probe: N windows of m x m pixels within the object. A position is the first (top left) pixel of a window, as
/// (row, column). Positions need not be whole numbers. The window is then the nearest window, which must lie within the
/// object (rows from -1/2 to below rows - m + 1/2). The rest, within half a pixel, is a shift of the probe. Checked and
/// sorted when made or moved; movable. There may be no positions.
template <class ExecutionSpace>
class ScanPositions {
  using Memory = typename ExecutionSpace::memory_space;

public:
  /// @param positions  View [N, 2] of any real or integer type, in any memory that can be copied to the host
  /// @param object     rows and columns of the object
  /// @param probe      m
  /// @throws Error when a window leaves the object or a position is not a number; names the first of them
  ScanPositions(const ExecutionSpace& space, const Impl::HostPositions& positions,
                const std::array<std::int64_t, 2>& object, int probe)
      : store_(space, positions, object, probe, {"ScanPositions"}) {}

  /// How many positions there are.
  std::int64_t count() const { return store_.count(); }
  /// True when a position is not a whole number.
  bool subpixel() const { return store_.subpixel(); }

  /// Writes the positions [N, 2].
  void write(const ExecutionSpace& space, const Array<double, Memory>& positions) const {
    store_.write(space, positions);
  }

  /// Takes other positions. A window from which its position is more than 3/4 of a pixel away on an axis
  /// becomes the nearest one within the object, the others stay. Waits.
  /// @param positions  as many as there are
  /// @throws Error when a position is not finite
  void move_windows(const ExecutionSpace& space, const Array<const double, Memory>& positions) {
    store_.move_windows(space, positions, {"ScanPositions::move_windows"});
  }

  /// First pixels of the windows, [N, 2]: of two scans at the same positions they differ where windows have moved. Waits.
  std::vector<int> windows(const ExecutionSpace& space) const { return store_.windows(space); }

  /// Takes other positions and windows for them, as windows() gave them. Waits.
  /// @param first      [N, 2]
  /// @param positions  as many as there are
  /// @throws Error on another number of windows, one that leaves the object, and a position that is not finite
  void set_windows(const ExecutionSpace& space, const std::vector<int>& first,
                   const Array<const double, Memory>& positions) {
    store_.set_windows(space, first, positions, {"ScanPositions::set_windows"});
  }

  /// Bytes that the positions take.
  std::size_t memory_bytes() const { return store_.memory_bytes(); }

  /// For kernels.
  const Impl::ScanStore<ExecutionSpace>& store() const { return store_; }

private:
  Impl::ScanStore<ExecutionSpace> store_;
};

/// Exit waves psi_jl(r) = O(y_j + r) p_l(r) of every position.
/// @param scan    positions, whole numbers
/// @param object  View of Kokkos::complex<T> [rows, columns]
/// @param probe   View [modes, m, m]
/// @param waves   View [N, modes, n, n], n >= m: zeros outside the corner of m x m; overwritten
/// @throws Error on shapes that do not fit, positions that are not whole numbers, and outputs that share memory
///   with an argument
template <class ExecutionSpace, class ObjectView, class ProbeView, class WavesView>
void exit_waves(const ExecutionSpace& space, const ScanPositions<ExecutionSpace>& scan,
                const ObjectView& object, const ProbeView& probe, const WavesView& waves) {
  using T = Impl::real_of<ObjectView>;
  using Memory = typename ExecutionSpace::memory_space;
  const Array<const Kokkos::complex<T>, Memory> o(object), p(probe);
  const Array<Kokkos::complex<T>, Memory> w(waves);
  const Impl::Arguments check{"exit_waves"};
  Impl::check_exit_waves(check, scan.store(), o, p, w);
  check.disjoint({{"waves", w}}, {{"object", o}, {"probe", p}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::exit_waves");
  const int modes = static_cast<int>(p.extents[0]);
  Impl::for_waves(space, "Bracewell::exit_waves::multiply", scan.count(), modes,
                  static_cast<int>(w.extents[3]),
                  Impl::ExitWaves<T>{
                      scan.store().device(), {nullptr, 0, scan.count()}, o.data, {p.data, 0, modes}, w.data});
}

/// Outputs of exit_wave_gradients; what is not given is not computed.
template <class T, class MemorySpace>
struct ExitWaveGradientOutputs {
  Array<Kokkos::complex<T>, MemorySpace> object = {}; ///< [rows, columns]
  Array<Kokkos::complex<T>, MemorySpace> probe = {};  ///< [modes, m, m]
};

/// Computes the adjoint of exit_waves. From G = dL/dRe psi + i dL/dIm psi it makes
///   dL/dO(y) = sum_j sum_l conj(p_l(y - y_j)) G_jl(y - y_j),  dL/dp_l(r) = sum_j conj(O(y_j + r)) G_jl(r),
/// in fixed order, without atomic additions.
/// @param waves    View [N, modes, n, n]: G, of which the corner of m x m counts
/// @param outputs  .object, .probe: overwritten
/// @throws Error on shapes that do not fit, positions that are not whole numbers, and outputs that share memory
///   with an argument
template <class ExecutionSpace, class ObjectView, class ProbeView, class WavesView>
void exit_wave_gradients(const ExecutionSpace& space, const ScanPositions<ExecutionSpace>& scan,
                         const ObjectView& object, const ProbeView& probe, const WavesView& waves,
                         const ExitWaveGradientOutputs<Impl::real_of<ObjectView>,
                                                       typename ExecutionSpace::memory_space>& outputs) {
  using T = Impl::real_of<ObjectView>;
  using Memory = typename ExecutionSpace::memory_space;
  const Array<const Kokkos::complex<T>, Memory> o(object), p(probe), w(waves);
  const Impl::Arguments check{"exit_wave_gradients"};
  Impl::check_exit_waves(check, scan.store(), o, p, w);
  if (outputs.object)
    check.same_shape("outputs.object", outputs.object, o);
  if (outputs.probe)
    check.same_shape("outputs.probe", outputs.probe, p);
  check.disjoint({{"outputs.object", outputs.object}, {"outputs.probe", outputs.probe}},
                 {{"object", o}, {"probe", p}, {"waves", w}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::exit_wave_gradients");
  const std::int64_t n = w.extents[3];
  const Impl::Selection all{nullptr, 0, scan.count()};
  const Impl::Probes<T> probes{p.data, 0, static_cast<int>(p.extents[0])};
  const Impl::WaveGradients<T, T> gradients{w.data, probes.modes * n * n, n * n, n, nullptr};
  using Gather = Impl::GatherObjectGradient<ExecutionSpace, T, T>;
  if (outputs.object)
    Impl::gather_object_gradient(space, "Bracewell::exit_wave_gradients::object",
                                 Gather{scan.store().device(), scan.store().tiles(), all, nullptr, probes,
                                        gradients, outputs.object.data, false, nullptr});
  if (outputs.probe)
    Impl::launch_kernel(
        "Bracewell::exit_wave_gradients::probe",
        Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, p.size()),
        Impl::SumProbeGradient<T, Impl::WaveGradients<T, T>>{scan.store().device(), all, o.data, probes,
                                                             gradients, outputs.probe.data, scan.count()});
}

} // namespace Bracewell
