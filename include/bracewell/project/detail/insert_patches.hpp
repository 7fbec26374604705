// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/atomic.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/project/detail/insert_sample.hpp>

namespace Bracewell::Impl {

/// The elements of a reconstruction that a patch of samples of a flat projection reaches: columns, each
/// `deep` elements long. In 3D they stand on a rectangle, run along the axis most normal to the slice, and
/// start where the slice passes; in 2D they run along y, and all start at one height. Axes of a box are in
/// the order (across[, across], along).
template <class T, int D, int width>
struct PatchBox {
  static constexpr int columns_axes = D - 1, one = 1 << 16;

  T matrix[D][2];          ///< from frequencies to positions, by axes of the box
  int axis[D];             ///< of the reconstruction
  int first[columns_axes]; ///< where the columns begin
  int count[columns_axes];
  int deep, bottom;        ///< elements of a column; lowest element of the first, rounded down ...
  int rest;                ///< ... by so many parts of `one`: sums of integers are the same wherever computed
  int slope[columns_axes]; ///< change of the lowest element from column to column, parts of `one`

  /// For frequencies low ... high.
  KOKKOS_INLINE_FUNCTION PatchBox(const Pose<T, 2, D>& pose, const int (&low)[2], const int (&high)[2]) {
    const auto& m = pose.matrix;
    T normal[3] = {0, 1, 0};
    if constexpr (D == 3)
      for (int d = 0; d < 3; ++d)
        normal[d] = m[(d + 1) % 3][0] * m[(d + 2) % 3][1] - m[(d + 2) % 3][0] * m[(d + 1) % 3][1];
    axis[D - 1] = 0;
    T along = normal[0];
    for (int d = 1; d < D; ++d)
      if (Kokkos::abs(normal[d]) > Kokkos::abs(along)) {
        axis[D - 1] = d;
        along = normal[d];
      }
    axis[0] = axis[D - 1] == 0 ? 1 : 0;
    if constexpr (D == 3)
      axis[1] = axis[D - 1] == 2 ? 1 : 2;
    T lowest[D], highest[D], farthest = 0;
    BRACEWELL_UNROLL
    for (int b = 0; b < D; ++b) {
      lowest[b] = highest[b] = 0;
      BRACEWELL_UNROLL
      for (int c = 0; c < 2; ++c) {
        matrix[b][c] = of(m, axis[b], c);
        const T one_end = matrix[b][c] * T(low[c]), other = matrix[b][c] * T(high[c]);
        lowest[b] += Kokkos::min(one_end, other);
        highest[b] += Kokkos::max(one_end, other);
      }
      farthest = Kokkos::max(farthest, Kokkos::max(-lowest[b], highest[b]));
    }
    const T margin = T(2e-3) + T(1e-6) * farthest; // of rounding
    T start = 0, reach = margin;
    BRACEWELL_UNROLL
    for (int b = 0; b < columns_axes; ++b) {
      first[b] = floor(lowest[b] - margin) - (width / 2 - 1);
      count[b] = floor(highest[b] + margin) + width / 2 + 1 - first[b];
      T tilt = 0;
      if constexpr (D == 3)
        for (int d = 0; d < 3; ++d)
          tilt = axis[b] == d ? -normal[d] / along : tilt;
      slope[b] = floor(tilt * T(one) + T(0.5));
      start += tilt * T(first[b]);
      reach += Kokkos::abs(tilt) * (T(width) / 2);
    }
    if constexpr (D == 2) {
      start = (lowest[1] + highest[1]) / 2;
      reach = (highest[1] - lowest[1]) / 2 + margin;
    }
    bottom = floor(start - reach);
    rest = floor((start - reach - T(bottom)) * T(one));
    bottom -= width / 2 - 1;
    deep = floor(2 * reach) + 1 + width;
    if (width > 2)
      deep |= 1; // lanes with neighbouring columns reach all banks of scratch memory
  }

  KOKKOS_INLINE_FUNCTION int columns() const { return D == 3 ? count[0] * count[D - 2] : count[0]; }
  KOKKOS_INLINE_FUNCTION int elements() const { return columns() * deep; }

  /// Lowest element of a column; columns count from `first`.
  KOKKOS_INLINE_FUNCTION int lowest(const int (&column)[columns_axes]) const {
    int parts = rest;
    for (int b = 0; b < columns_axes; ++b)
      parts += slope[b] * column[b];
    return bottom + (parts >> 16);
  }

  KOKKOS_INLINE_FUNCTION int index(const int (&column)[columns_axes]) const {
    return D == 3 ? column[D - 2] * count[0] + column[0] : column[0];
  }

private:
  KOKKOS_INLINE_FUNCTION static int floor(T value) { return static_cast<int>(Kokkos::floor(value)); }

  /// m[d][c]; a sum, because compilers make choices of values in memory, not in registers.
  KOKKOS_INLINE_FUNCTION static T of(const T (&m)[D][2], int d, int c) {
    T result = 0;
    for (int e = 0; e < D; ++e)
      result += T(d == e) * m[e][c];
    return result;
  }
};

/// Strategy::Atomic on GPUs, for many samples. A warp takes a patch of a projection. Neighbouring samples
/// share most of their taps: it sums them in scratch memory and adds the sums to the reconstruction, a few
/// atomic additions for every sample instead of width^D. In scratch none are needed: lanes take samples whose
/// frequencies differ by multiples of two, which have no window in common, and add them tap by tap.
template <class Space, class Kernel, class T, int D, Mates mates, bool weighted>
struct ScatterPatches {
  static constexpr bool host = is_host<Space>; ///< for tests
  static constexpr int width = Kernel::width, scratch_level = host ? 1 : 0;
  static constexpr int lanes = host ? 1 : 32;
  static constexpr int columns = 8, rows = 16, per_lane = columns * rows / lanes; ///< samples of a patch
  /// Elements of a box; a patch that needs more is split. More of them mean fewer splits, but fewer teams on
  /// a multiprocessor. Rotations in 3D need 963 on average and at most 1,632 (linear), 2,477 and 4,446
  /// (Catmull-Rom).
  static constexpr int wanted =
      D == 2 ? (width == 2 ? 512 : 704) : (width == 2 ? (weighted ? 1088 : 1280) : 2560);
  static constexpr int capacity = Kokkos::min<int>(wanted, 40960 / ((weighted ? 3 : 2) * sizeof(T)));
  using Box = PatchBox<T, D, width>;
  using Policy =
      Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<128, width == 2 ? (D == 2 ? 7 : 5) : (D == 2 ? 5 : 4)>>;
  using Team = typename Policy::member_type;

  Amplitudes<T, 2, D, mates> amplitudes;
  ScatterTarget<T> target;
  int patches_per_team = 1;     ///< one below the other: the pose is loaded once
  int across, down;             ///< teams of a pose
  std::int64_t first_strip = 0; ///< strip: what a team takes; counted over all batches

  ScatterPatches(const Space& space, const Amplitudes<T, 2, D, mates>& amplitudes_,
                 const ScatterTarget<T>& target_)
      : amplitudes(amplitudes_), target(target_) {
    const auto& samples = amplitudes.samples;
    across = (samples.projection.columns() + columns - 1) / columns;
    const int patches = (samples.projection.size[1] + rows - 1) / rows;
    const std::int64_t threads = samples.batches * samples.poses * across * patches * lanes;
    while (patches_per_team < (D == 2 ? 4 : 2) && threads / patches_per_team >= 8 * space.concurrency())
      patches_per_team *= 2;
    down = (patches + patches_per_team - 1) / patches_per_team;
  }

  /// Elements of a box, and behind them places for what idle lanes add, so that all lanes do the same.
  struct Workspace {
    static constexpr int size = capacity + lanes + width;
    Kokkos::complex<T> values[size];
    T weights[weighted ? size : 1];
  };

  /// Teams that run at the same time take the same patch of different poses: what they reach is a part of the
  /// reconstruction that caches can hold. More teams than a league can count are launched one after another.
  void launch(const Space& space, const std::string& label) {
    const std::int64_t poses = amplitudes.samples.poses, strips = amplitudes.samples.batches * across * down;
    const std::int64_t most = std::numeric_limits<int>::max() / poses;
    for (; first_strip < strips; first_strip += most) {
      Policy policy(space, static_cast<int>(std::min(most, strips - first_strip) * poses), 1, +lanes);
      policy.set_scratch_size(+scratch_level,
                              Kokkos::PerTeam(static_cast<int>(sizeof(Workspace) + alignof(Workspace))));
      Kokkos::parallel_for(label, policy, *this);
    }
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& workspace = *static_cast<Workspace*>(
        team.team_scratch(+scratch_level).get_shmem_aligned(sizeof(Workspace), alignof(Workspace)));
    const int rank = team.league_rank();
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)),
                         [&](int lane) { add_patch(rank, lane, workspace); });
  }

private:
  /// Frequencies low ... high of one pose.
  struct Patch {
    std::int64_t batch, index;
    int low[2], high[2];

    /// Of a sample of a lane: first those with even distances from `low`; false beyond the patch.
    KOKKOS_INLINE_FUNCTION bool frequency(int lane, int i, int (&k)[2]) const {
      i = i * lanes + lane;
      const int parity = i / (columns * rows / 4);
      k[0] = low[0] + i % (columns / 2) * 2 + parity % 2;
      k[1] = low[1] + i / (columns / 2) % (rows / 2) * 2 + parity / 2;
      return k[0] <= high[0] && k[1] <= high[1];
    }
  };

  KOKKOS_INLINE_FUNCTION void add_patch(int rank, int lane, Workspace& workspace) const {
    const auto& samples = amplitudes.samples;
    const auto& layout = samples.projection;
    const int poses = static_cast<int>(samples.poses), local_strip = rank / poses;
    const std::int64_t strip = first_strip + local_strip;
    Patch patch;
    patch.index = rank - local_strip * poses;
    patch.batch = strip / (across * down);
    const int place = static_cast<int>(strip - patch.batch * (across * down));
    const int height = patches_per_team * rows, top = place / across * height - (layout.size[1] - 1) / 2;
    const int bottom = Kokkos::min(top + height - 1, layout.size[1] / 2);
    patch.low[0] = place % across * columns;
    patch.high[0] = Kokkos::min(patch.low[0] + columns, layout.columns()) - 1;
    const auto pose = samples.pose(patch.batch, patch.index);
    const bool boxed = !pose.folds && !pose.curved && sets_apart(pose);
    int step = boxed ? +rows : 0; // rows of a box
    for (patch.low[1] = top; patch.low[1] <= bottom; patch.low[1] = patch.high[1] + 1) {
      patch.high[1] = Kokkos::min(patch.low[1] + (step == 0 ? +rows : step) - 1, bottom);
      const int nearest[2] = {patch.low[0], Kokkos::max(0, Kokkos::max(patch.low[1], -patch.high[1]))};
      if (!samples.inside(nearest))
        continue;
      if (step == 0) {
        add_directly(patch, pose, lane);
        continue;
      }
      const Box box(pose, patch.low, patch.high);
      if (box.elements() > capacity) {
        step /= 2;
        patch.high[1] = patch.low[1] - 1; // again, with fewer rows
      } else {
        add_box(patch, pose, box, lane, workspace);
      }
    }
  }

  /// Samples two frequencies apart never have the same window: the smallest singular value of the matrix is
  /// large enough.
  KOKKOS_INLINE_FUNCTION static bool sets_apart(const Pose<T, 2, D>& pose) {
    const T least = T(0.25 * D + 0.01);
    T a = -least, b = -least, product = 0;
    for (int d = 0; d < D; ++d) {
      a += pose.matrix[d][0] * pose.matrix[d][0];
      b += pose.matrix[d][1] * pose.matrix[d][1];
      product += pose.matrix[d][0] * pose.matrix[d][1];
    }
    return a > 0 && a * b > product * product;
  }

  KOKKOS_INLINE_FUNCTION void add_directly(const Patch& patch, const Pose<T, 2, D>& pose, int lane) const {
    const std::int64_t volume = patch.batch * target.batch_stride;
    T* const weights = weighted ? target.weight + volume : nullptr;
    for (int i = 0; i < per_lane; ++i) {
      int k[2];
      if (patch.frequency(lane, i, k))
        scatter_sample<Kernel>(amplitudes, patch.batch, patch.index, pose, k,
                               amplitudes.samples.projection.row(k) + k[0], target.data + volume, weights,
                               target.absolute,
                               [](auto* address, const auto& run) { atomic_add_run(address, run); });
    }
  }

  KOKKOS_INLINE_FUNCTION void add_box(const Patch& patch, const Pose<T, 2, D>& pose, const Box& box, int lane,
                                      Workspace& workspace) const {
    const auto& samples = amplitudes.samples;
    Kokkos::complex<T> value[per_lane];
    T weight[per_lane];
    BRACEWELL_UNROLL
    for (int i = 0; i < per_lane; ++i) { // reads take long: all of them first
      int k[2];
      const bool inside = patch.frequency(lane, i, k) && samples.inside(k);
      const std::int64_t at = inside ? samples.projection.row(k) + k[0] : 0;
      value[i] = *amplitudes.address(patch.batch, patch.index, at);
      weight[i] = weighted ? amplitudes.weights(patch.batch, patch.index)[at] : T(0);
    }
    for (int i = lane; i < box.elements(); i += lanes) {
      workspace.values[i] = Kokkos::complex<T>(0);
      if constexpr (weighted)
        workspace.weights[i] = 0;
    }
    synchronise_lanes();
    for (int i = 0; i < per_lane; ++i) {
      int k[2];
      const bool inside = patch.frequency(lane, i, k) && samples.inside(k);
      const std::int64_t at = inside ? samples.projection.row(k) + k[0] : 0;
      add_sample(box, k, inside ? -1 : capacity + lane,
                 amplitudes.value(patch.batch, patch.index, at, k, samples.phase(pose, k), value[0]),
                 amplitudes.scale(k) * weight[0], workspace);
      BRACEWELL_UNROLL
      for (int next = 1; next < per_lane; ++next) { // in registers, which an index cannot choose from
        value[next - 1] = value[next];
        weight[next - 1] = weight[next];
      }
    }
    store(box, patch.batch * target.batch_stride, lane, workspace);
    synchronise_lanes();
  }

  /// idle: where a lane without a sample adds, else negative.
  BRACEWELL_REGISTER_FUNCTION void add_sample(const Box& box, const int (&k)[2], int idle,
                                              const Kokkos::complex<T>& value, T sample_weight,
                                              Workspace& workspace) const {
    T q[D], weight[D][width];
    int tap[D];
    multiply(box.matrix, k, q);
    for (int b = 0; b < D; ++b) {
      T fraction;
      split(q[b], tap[b], fraction);
      tap[b] -= width / 2 - 1 + (b < D - 1 ? box.first[b] : 0);
      Kernel::weights(fraction, weight[b]);
    }
    BRACEWELL_UNROLL
    for (int row = 0; row < (D == 3 ? width : 1); ++row) {
      BRACEWELL_UNROLL
      for (int i = 0; i < width; ++i) {
        int column[D - 1];
        column[0] = tap[0] + i;
        T across_weight = weight[0][i];
        if constexpr (D == 3) {
          column[1] = tap[1] + row;
          across_weight *= weight[1][row];
        }
        const int place = box.index(column) * box.deep + tap[D - 1] - box.lowest(column);
        const int start = idle < 0 ? place : idle;
        BRACEWELL_UNROLL
        for (int j = 0; j < width; ++j) {
          const T product = across_weight * weight[D - 1][j];
          workspace.values[start + j] += product * value;
          if constexpr (weighted)
            workspace.weights[start + j] +=
                (target.absolute ? Kokkos::abs(product) : product) * sample_weight;
          synchronise_lanes();
        }
      }
    }
  }

  /// Adds the sums of a box to the stored half of the reconstruction.
  KOKKOS_INLINE_FUNCTION void store(const Box& box, std::int64_t volume, int lane,
                                    const Workspace& workspace) const {
    const auto& layout = amplitudes.samples.reconstruction;
    if constexpr (D == 3)
      if (box.axis[2] == 0)
        return store_along_x(box, volume, lane, workspace);
    const bool along_y = D == 2 || box.axis[D - 1] == 1;
    const int period = along_y ? layout.size[1] : layout.size[D - 1];
    const unsigned stride = along_y ? layout.columns() : layout.size[1] * layout.columns();
    const T per_row = T(1) / T(box.count[0]);
    for (int flat = lane; flat < box.columns(); flat += lanes) {
      int column[D - 1];
      split_index(flat, box.count[0], per_row, column);
      const int lowest = box.lowest(column), element = flat * box.deep;
      int tap[D] = {}; // the row where a column begins, from 0 on the axis along
      if constexpr (D == 3)
        tap[along_y ? 2 : 1] = box.first[1] + column[1];
      const int x = layout.wrap(box.first[0] + column[0], layout.size[0]);
      const auto add_column = [&](bool mirrored, int stored) {
        const std::int64_t begin = volume + row(tap, mirrored) + stored;
        for (int i = 0; i < box.deep; ++i) {
          const unsigned step = layout.wrap(mirrored ? -(lowest + i) : lowest + i, period);
          add(workspace, element + i, mirrored,
              begin + static_cast<std::int64_t>(std::uint64_t(step) * stride));
        }
      };
      const bool beyond = x > layout.size[0] / 2;
      add_column(beyond, beyond ? layout.size[0] - x : x);
      if (mates == Mates::Both && layout.self_mated(x))
        add_column(true, x);
    }
  }

  /// The same where columns run along x: lanes side by side take elements of one column, for additions to
  /// neighbours in memory are made together.
  KOKKOS_INLINE_FUNCTION void store_along_x(const Box& box, std::int64_t volume, int lane,
                                            const Workspace& workspace) const {
    const auto& layout = amplitudes.samples.reconstruction;
    const T per_column = T(1) / T(box.deep), per_row = T(1) / T(box.count[0]);
    for (int element = lane; element < box.elements(); element += lanes) {
      int within[2], column[D - 1];
      split_index(element, box.deep, per_column, within);
      split_index(within[1], box.count[0], per_row, column);
      const int tap[3] = {0, box.first[0] + column[0], box.first[D - 2] + column[D - 2]};
      const int x = layout.wrap(box.lowest(column) + within[0], layout.size[0]);
      const bool mirrored = x > layout.size[0] / 2;
      add(workspace, element, mirrored, volume + row(tap, mirrored) + (mirrored ? layout.size[0] - x : x));
      if (mates == Mates::Both && layout.self_mated(x))
        add(workspace, element, true, volume + row(tap, true) + x);
    }
  }

  /// index as (index % count, index / count); per_one: 1 / count.
  template <int axes>
  KOKKOS_INLINE_FUNCTION static void split_index(int index, int count, T per_one, int (&result)[axes]) {
    result[0] = index;
    if constexpr (axes == 2) {
      result[1] = static_cast<int>((T(index) + T(0.5)) * per_one);
      result[0] -= result[1] * count;
    }
  }

  /// Where the row through a tap, or through its mate, begins.
  KOKKOS_INLINE_FUNCTION std::int64_t row(const int (&tap)[D], bool of_mate) const {
    int at[D];
    for (int d = 1; d < D; ++d)
      at[d] = of_mate ? -tap[d] : tap[d];
    return amplitudes.samples.reconstruction.row(at);
  }

  /// Adds a sum, or its conjugate, to an element.
  KOKKOS_INLINE_FUNCTION void add(const Workspace& workspace, int i, bool conjugated,
                                  std::int64_t element) const {
    const Kokkos::complex<T> value = workspace.values[i];
    const T weight = weighted ? workspace.weights[i] : T(0);
    const bool some = value.real() != 0 || value.imag() != 0 || weight != 0;
    atomic_add_if(some, target.data + element, conjugated ? conjugate(value) : value);
    if constexpr (weighted)
      atomic_add_if(some, target.weight + element, weight);
  }
};

} // namespace Bracewell::Impl
