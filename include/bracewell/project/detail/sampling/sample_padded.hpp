// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/division.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/project/detail/samples.hpp>
#include <bracewell/project/detail/sampling/padded_copy.hpp>
#include <bracewell/project/detail/sampling/padded_windows.hpp>
#include <bracewell/project/detail/stencil.hpp>
#include <bracewell/project/detail/tuning.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace Bracewell::Impl {

/// Projections sampled from padded copies of spectra, whose windows are all alike: for GPUs, where samples
/// are many. Each lane of a warp keeps to one column of a tile, and to rows of one sign, so that a sample is
/// little more than its position, its taps and its phase. Copies are made for the same `mates`.
template <class Kernel, class T, int M, int D, Mates mates, class Stored>
struct SamplePadded {
  using Complex = Kokkos::complex<T>;
  using Spectra = PaddedSpectra<Stored, D, Kernel::width>;
  using Order = typename Spectra::Order;

  static constexpr int lanes = 32, width = Kernel::width;
  /// Narrow windows leave the time for writing projections to show: warps then write whole sectors of 32
  /// bytes. For that the columns of a tile are shifted from row to row, which would cost wide windows more, in
  /// conflicts of banks, than it saves (measured on an H200: docs/lab/projection.md).
  static constexpr bool by_sectors = width == 2;
  static constexpr int columns = by_sectors || D == 3 ? 8 : 16, step = lanes / columns;
  static constexpr int most_rows = ProjectionTuning::padded_most_rows;
  static constexpr int sector = 32 / sizeof(Complex);
  static_assert(step % sector == 0 || !by_sectors);
  static constexpr int threads = Order::lanes_share ? 64 : 128;
  static constexpr int resident = ProjectionTuning::padded_warps(D, width, Order::lanes_share) * lanes /
                                  threads * 4 / int(sizeof(T)); ///< teams of a multiprocessor

  Samples<T, M, D> samples; ///< of fewer than 2^31 poses
  CopiedPositions<width, T, D> copied;
  Spectra spectra;
  Complex* values;
  Divisor poses, across, per_plane, per_pose; ///< poses of a batch; tiles of a row, a plane and a pose
  int rows = 0, upper = 0;                    ///< of a tile; tiles of frequencies >= 0 along y
  std::uint32_t first_pose = 0;               ///< of batch and pose axes in one sequence

  SamplePadded(const Samples<T, M, D>& samples_, const Spectra& spectra_, Complex* values_)
      : samples(samples_), copied(samples_.reconstruction), spectra(spectra_), values(values_),
        poses(samples_.poses) {}

  /// In as few launches as 2^31 tiles allow.
  template <class ExecutionSpace>
  void launch(const ExecutionSpace& space, const Label& label) {
    const auto& size = samples.projection.size;
    const std::int64_t all_poses = samples.batches * samples.poses, planes = M == 3 ? size[M - 1] : 1;
    across = Divisor((samples.projection.columns() + (by_sectors ? sector - 1 : 0) + columns - 1) / columns);
    const int positive = size[1] / 2 + 1;
    upper = (positive + most_rows - 1) / most_rows;
    while (positive > 8 * upper &&
           all_poses * planes * across.value * 4 * upper * lanes < 2 * space.concurrency())
      upper *= 2; // tiles enough for all threads
    rows = ((positive + upper - 1) / upper + step - 1) / step * step;
    upper = (positive + rows - 1) / rows;
    per_plane = Divisor(across.value * (upper + (size[1] - positive + rows - 1) / rows));
    per_pose = Divisor(per_plane.value * planes);
    using Policy =
        Kokkos::RangePolicy<ExecutionSpace,
                            Kokkos::LaunchBounds<threads, resident_teams<ExecutionSpace>(resident)>,
                            Kokkos::IndexType<std::int64_t>>;
    const std::int64_t most = std::numeric_limits<std::int32_t>::max() / per_pose.value;
    for (std::int64_t first = 0; first < all_poses; first += most) {
      first_pose = static_cast<std::uint32_t>(first);
      const std::int64_t tiles = std::min(most, all_poses - first) * per_pose.value;
      Kokkos::parallel_for(label, Policy(space, 0, tiles * lanes), *this);
    }
  }

  // In one piece: as two functions it takes eight instructions more. NOLINTNEXTLINE(readability-function-size)
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto& layout = samples.projection;
    const unsigned lane = static_cast<unsigned>(i) % lanes, eighth = lane / 8, length = layout.columns();
    std::uint32_t tile = static_cast<std::uint32_t>(i / lanes);
    const std::uint32_t flat = first_pose + per_pose.divide(tile),
                        plane = M == 3 ? per_plane.divide(tile) : 0, down = across.divide(tile);
    std::uint32_t index = flat;
    const std::uint32_t batch = poses.divide(index);

    // Eight lanes cover 4 columns of 2 rows, sixteen 8. In a tile, frequencies along y have one sign.
    const bool negative = down >= unsigned(upper);
    const int positive = layout.size[1] / 2 + 1;
    const int start = negative ? positive - layout.size[1] + (int(down) - upper) * rows : int(down) * rows;
    const int end = Kokkos::min(start + rows, negative ? 0 : positive);
    int y = start + int(lane / 4 % 2 + eighth / (columns / 4) * 2);
    unsigned element = unsigned(negative ? y + layout.size[1] : y) * length;
    const unsigned elements_of_plane = unsigned(layout.size[1]) * length;
    const std::uint64_t planes_before =
        M == 3 ? std::uint64_t(flat) * unsigned(layout.size[M - 1]) + plane : flat;
    Complex* const out = computed_once(values, planes_before * elements_of_plane);
    int k[M] = {int(tile * columns + lane % 4 + eighth % (columns / 4) * 4)};
    if constexpr (by_sectors)
      k[0] -= (reinterpret_cast<std::uintptr_t>(out) / sizeof(Complex) + element) % sector;
    const bool outside = static_cast<unsigned>(k[0]) >= length;
    if (!Order::lanes_share && outside)
      return;
    element += k[0];

    const auto pose = samples.pose(batch, index, true);
    const auto* const entries = spectra(batch);
    const T scale = Amplitudes<T, M, D, mates>{samples}.scale(k);
    const T* const filter =
        samples.filters ? samples.filters(batch, index) + std::uint64_t(plane) * elements_of_plane : nullptr;
    T origin[D], turns = pose.turns[0] * static_cast<T>(k[0]); // at y = 0
    int left = samples.squared_radius - k[0] * k[0];           // for y^2
    if constexpr (M == 3) {
      k[2] = layout.frequency(static_cast<int>(plane), layout.size[2]);
      turns += pose.turns[2] * static_cast<T>(k[2]);
      left -= k[2] * k[2];
    }
    multiply(pose.matrix, k, origin);
    const T squared = static_cast<T>(k[0] * k[0]);
    T along = static_cast<T>(y);
    const auto position = [&](T(&q)[D], bool straight = false) {
      for (int d = 0; d < D; ++d)
        q[d] = origin[d] + pose.matrix[d][1] * along;
      if (!straight && pose.curved)
        for (int d = 0; d < D; ++d)
          q[d] += pose.bend[d] * (squared + along * along);
    };
    if constexpr (Order::lanes_share) {
      // All lanes of a warp go through all rows, to sample together.
      const SharedWindows<Kernel, T, Stored> windows(spectra.order, entries, lane);
      for (int row = start; row < end; row += step, y += step, along += step, element += step * length) {
        const bool stored = !outside && y < end, inside = stored && y * y <= left;
        T q[D];
        position(q);
        bool mirrored = false;
        const bool usable = copied.bring_back(q, pose.folds, mirrored);
        const Complex sum = windows(q, inside && usable);
        Complex value(0);
        if (inside) {
          value = finish(sum, usable, mirrored, scale) * unit_phase(turns + pose.turns[1] * along);
          if (filter)
            value *= filter[element];
        }
        if (stored)
          store_streaming(out + element, value);
      }
    } else {
      // Plain: flat, nothing to bring back and no filter. In 3D such a loop is slower where elements take 8 bytes
      // or more (docs/lab/projection.md).
      const auto sample_rows = [&](auto known) {
        constexpr bool plain = decltype(known)::value;
        for (; y < end; y += step, along += step, element += step * length) {
          Complex value(0);
          if (y * y <= left) {
            T q[D];
            position(q, plain);
            bool mirrored = false;
            const bool usable = copied.bring_back(q, !plain && pose.folds, mirrored);
            const Complex sum = usable ? sum_of_window<Kernel>(spectra.order, entries, q) : Complex(0);
            value = finish(sum, usable, mirrored, scale) * unit_phase(turns + pose.turns[1] * along);
            if (!plain && filter)
              value *= filter[element];
          }
          store_streaming(out + element, value);
        }
      };
      if ((D == 2 || sizeof(Stored) == 4) && !pose.folds && !pose.curved && !filter)
        sample_rows(std::true_type());
      else
        sample_rows(std::false_type());
    }
  }

private:
  KOKKOS_INLINE_FUNCTION Complex finish(const Complex& sum, bool usable, bool mirrored, T scale) const {
    if (!usable)
      return {Kokkos::Experimental::quiet_NaN_v<T>, Kokkos::Experimental::quiet_NaN_v<T>};
    const Complex value = spectra.gain.restored(mates == Mates::Both ? scale * sum : sum);
    return mirrored ? conjugate(value) : value;
  }
};

} // namespace Bracewell::Impl
