// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/unroll.hpp>
#include <bracewell/project/detail/problem.hpp>
#include <bracewell/project/options.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

namespace Bracewell {

/// Outputs of project_lines_gradients, overwritten. It computes only the arrays that are given.
template <class T, class MemorySpace>
struct LineGradients {
  Array<T, MemorySpace> volume = {};   ///< like the volume
  Array<T, MemorySpace> matrices = {}; ///< like poses.matrices
  Array<T, MemorySpace> shifts = {};   ///< like poses.shifts
};

/// The LineGradients that fit a volume of a type, for operators that run on ExecutionSpace.
template <class ExecutionSpace, class Volume>
using LineGradientsFor = LineGradients<Impl::real_of<Volume>, typename ExecutionSpace::memory_space>;

/// Sums a volume along parallel lines, in real space:
///   image(x, y) = integral of volume(M (x - s_x, y - s_y, z)) dz
/// with positions in elements from the centres, element floor(n/2) of each axis. Poses mean what they mean for `project`: the
/// third column of M is the direction of view. A line runs mainly along one axis of the volume. In every plane across
/// this axis it takes one sample, interpolated between four voxels. The sum is multiplied by the line's length between two planes
/// (Joseph, IEEE Trans. Med. Imaging 1, 1982). The volume is zero outside. There are no periods, and no limits of frequency. M may be
/// any matrix; if it is a rotation, the unit of length is a voxel.
///
/// @param space   instance that the kernel is queued on; the call does not wait
/// @param volume  real [B|1, D, H, W]
/// @param poses   matrices and shifts, see Poses; no filters
/// @param images  real [B, P, h, w], overwritten. A pose has NaN where its numbers are not finite, where its third column is
///                zero, and where it is steeper or larger than 1e9 voxels a pixel.
/// @throws Error on shapes that do not fit, filters and shared memory; nothing is written then
template <class ExecutionSpace, class Volume, class Images>
void project_lines(const ExecutionSpace& space, const Volume& volume,
                   const PosesFor<ExecutionSpace, Volume>& poses, const Images& images);

/// The transpose of `project_lines`: adds images along their lines to a volume. Every voxel adds its pixels in one order, so
/// every run gives the same bits. Poses whose images would be NaN add nothing. On hosts each thread has a buffer of 4 D H
/// doubles, or of D W or H W if that is more.
/// @param images  real [B, P, h, w]
/// @param volume  real [B|1, D, H, W], added to; a shared one gets the sum over B
/// @throws Error as `project_lines`
template <class ExecutionSpace, class Images, class Volume>
void backproject_lines(const ExecutionSpace& space, const Images& images,
                       const PosesFor<ExecutionSpace, Images>& poses, const Volume& volume);

/// Exact derivatives of a loss with respect to what `project_lines` reads, from its cotangent g = dL/d image. (For a loss of
/// backproject_lines(images) exchange the roles: `volume` is its cotangent, and `cotangent` is the images.) A matrix, shift or
/// volume that batches or poses share gets the sum; sums over poses are added in any order. The derivative holds as long as
/// the main axis of the lines stays the same. Where it changes, images jump by the error of interpolation.
/// @param cotangent  real [B, P, h, w]
/// @throws Error as `project_lines`, and where nothing is asked for. Poses whose images are NaN have NaN gradients.
template <class ExecutionSpace, class Volume, class Images>
void project_lines_gradients(const ExecutionSpace& space, const Volume& volume,
                             const PosesFor<ExecutionSpace, Volume>& poses, const Images& cotangent,
                             const LineGradientsFor<ExecutionSpace, Volume>& gradients);

namespace Impl {

/// Lines of a pose through planes of voxels across `axis`: pixel (x, y) passes plane m at
/// origin + slope (x, y, m) along the other two axes, (axis + 1) % 3 and (axis + 2) % 3.
template <class T>
struct LineView {
  int axis; ///< 0: x, 1: y, 2: z; -1: there are no such lines
  T origin[2], slope[2][3];
  T inverse[2][2]; ///< [x or y][first or second axis]
  T reach[2];      ///< pixels that a voxel reaches along x and y
  T length;        ///< of a line between planes

  /// @param shift  (y, x), or null
  KOKKOS_FUNCTION static LineView make(const T* matrix, const T* shift, const int (&volume)[3],
                                       const int (&image)[2]) {
    LineView view = {};
    view.axis = -1;
    int axis = 2;
    for (const int other : {0, 1})
      if (Kokkos::abs(matrix[3 * other + 2]) > Kokkos::abs(matrix[3 * axis + 2]))
        axis = other;
    const double along = double(matrix[3 * axis + 2]);
    bool good = along != 0;
    for (int i = 0; i < 9; ++i)
      good = good && is_finite(matrix[i]);
    double corner[2]; // pixel (0, 0) from the centre of the image
    for (int d = 0; d < 2; ++d) {
      corner[d] = -(image[d] / 2) - (shift ? double(shift[1 - d]) : 0);
      good = good && is_finite(corner[d]);
    }
    if (!good)
      return view;
    double slope[2][3];
    for (int which = 0; which < 2; ++which) {
      const int other = (axis + 1 + which) % 3;
      slope[which][2] = double(matrix[3 * other + 2]) / along;
      for (int d = 0; d < 2; ++d)
        slope[which][d] = double(matrix[3 * other + d]) - slope[which][2] * double(matrix[3 * axis + d]);
      const double origin = volume[other] / 2 - slope[which][2] * (volume[axis] / 2) +
                            slope[which][0] * corner[0] + slope[which][1] * corner[1];
      view.origin[which] = T(origin);
      good = good && Kokkos::abs(origin) < 1e12; // false for what is no number
      for (int d = 0; d < 3; ++d) {
        view.slope[which][d] = T(slope[which][d]);
        good = good && Kokkos::abs(slope[which][d]) < 1e9;
      }
    }
    view.length = T(1 / Kokkos::abs(along));
    if (!good || !is_finite(view.length))
      return view;
    view.axis = axis;
    const double determinant = slope[0][0] * slope[1][1] - slope[0][1] * slope[1][0];
    if (Kokkos::abs(determinant) > 1e-9) {
      view.inverse[0][0] = T(slope[1][1] / determinant), view.inverse[0][1] = T(-slope[0][1] / determinant);
      view.inverse[1][0] = T(-slope[1][0] / determinant), view.inverse[1][1] = T(slope[0][0] / determinant);
      for (int d = 0; d < 2; ++d) // a little more than one voxel, for rounding
        view.reach[d] =
            T(1.01) * (Kokkos::abs(view.inverse[d][0]) + Kokkos::abs(view.inverse[d][1])) + T(0.01);
    } else {
      view.reach[0] = view.reach[1] = T(1e6); // all pixels are near
    }
    return view;
  }

  KOKKOS_FUNCTION T at(int which, int x, int y) const {
    return origin[which] + slope[which][0] * T(x) + slope[which][1] * T(y);
  }
};

/// Sizes and poses, and what all kernels do with them.
template <class Space, class T>
struct LineProblem {
  static constexpr int team_size = is_host<Space> ? 1 : 128;
  using Policy = Kokkos::TeamPolicy<Space, Kokkos::IndexType<std::int64_t>>;
  using Member = typename Policy::member_type;

  int volume[3], image[2]; ///< x, y[, z]
  std::int64_t batches, poses;
  bool shared_volume;
  PerPose<T> matrices, shifts;

  KOKKOS_FUNCTION std::int64_t voxels() const { return std::int64_t(volume[0]) * volume[1] * volume[2]; }
  KOKKOS_FUNCTION std::int64_t pixels() const { return std::int64_t(image[0]) * image[1]; }
  KOKKOS_FUNCTION std::int64_t stride(int axis) const {
    return axis == 0 ? 1 : (axis == 1 ? volume[0] : std::int64_t(volume[0]) * volume[1]);
  }
  KOKKOS_FUNCTION LineView<T> view(std::int64_t batch, std::int64_t pose) const {
    return LineView<T>::make(matrices(batch, pose), shifts ? shifts(batch, pose) : nullptr, volume, image);
  }

  /// The steps along d (0, 1: pixels along x, y; 2: planes) from `start` where lines lie between voxels along both axes, or where
  /// they may be within one voxel of them. The margin is more than rounding brings.
  KOKKOS_FUNCTION void steps(const LineView<T>& view, int d, const T (&start)[2], bool inside,
                             int (&range)[2]) const {
    const int count = d == 2 ? volume[view.axis] : image[d];
    T first = 0, last = T(count);
    for (int which = 0; which < 2; ++which) {
      const T step = view.slope[which][d], size = T(volume[(view.axis + 1 + which) % 3]);
      const T margin = T(0.01) + 16 * Kokkos::Experimental::epsilon_v<T> *
                                     (Kokkos::abs(start[which]) + Kokkos::abs(step) * T(count));
      const T low = inside ? margin : -1 - margin, high = inside ? size - 1 - margin : size + margin;
      if (Kokkos::abs(step) < T(1e-8)) { // less than the margin in 32768 steps
        if (!(start[which] >= low && start[which] <= high))
          last = 0;
        continue;
      }
      const T begin = (low - start[which]) / step, end = (high - start[which]) / step;
      if (!(low <= high))
        last = 0;
      first = Kokkos::max(first, Kokkos::ceil(Kokkos::min(begin, end)));
      last = Kokkos::min(last, Kokkos::floor(Kokkos::max(begin, end)) + 1);
    }
    range[0] = int(Kokkos::min(first, T(count)));
    range[1] = int(Kokkos::max(last, T(range[0])));
  }

  /// The steps within one voxel, and of these the ones between voxels.
  KOKKOS_FUNCTION void both_steps(const LineView<T>& view, int d, const T (&start)[2], int (&near)[2],
                                  int (&inside)[2]) const {
    steps(view, d, start, false, near);
    steps(view, d, start, true, inside);
    inside[0] = Kokkos::min(Kokkos::max(inside[0], near[0]), near[1]);
    inside[1] = Kokkos::max(inside[0], Kokkos::min(inside[1], near[1]));
  }

  /// Four voxels of a plane around a line, and how far it is from the first of them.
  struct Corners {
    T value[2][2]; ///< [second axis][first axis]
    T f[2];

    KOKKOS_FUNCTION T along(int row) const { return value[row][0] + f[0] * (value[row][1] - value[row][0]); }
    KOKKOS_FUNCTION T interpolated() const { return along(0) + f[1] * (along(1) - along(0)); }
    KOKKOS_FUNCTION T slope(int which) const {
      return which == 1 ? along(1) - along(0)
                        : (value[0][1] - value[0][0]) * (1 - f[1]) + (value[1][1] - value[1][0]) * f[1];
    }
  };

  /// Calls visit(plane, corners) for the planes where a line is near voxels.
  template <class Visit>
  KOKKOS_INLINE_FUNCTION void walk(const LineView<T>& view, const T* data, int x, int y,
                                   const Visit& visit) const {
    const T start[2] = {view.at(0, x, y), view.at(1, x, y)};
    int near[2], inside[2];
    both_steps(view, 2, start, near, inside);
    walk_some<false>(view, data, start, near[0], inside[0], visit);
    walk_some<true>(view, data, start, inside[0], inside[1], visit);
    walk_some<false>(view, data, start, inside[1], near[1], visit);
  }

private:
  template <bool inside, class Visit>
  KOKKOS_INLINE_FUNCTION void walk_some(const LineView<T>& view, const T* data, const T (&start)[2], int from,
                                        int to, const Visit& visit) const {
    const int a = (view.axis + 1) % 3, b = (view.axis + 2) % 3;
    const std::int64_t of_a = stride(a), of_b = stride(b), of_plane = stride(view.axis);
    for (int plane = from; plane < to; ++plane) {
      const T q[2] = {start[0] + view.slope[0][2] * T(plane), start[1] + view.slope[1][2] * T(plane)};
      Corners corners;
      int i[2];
      if constexpr (inside) {
        for (int which = 0; which < 2; ++which) {
          i[which] = int(q[which]);
          corners.f[which] = q[which] - T(i[which]);
        }
        const T* const first = data + plane * of_plane + i[0] * of_a + i[1] * of_b;
        for (int row = 0; row < 2; ++row)
          for (int column = 0; column < 2; ++column)
            corners.value[row][column] = first[column * of_a + row * of_b];
      } else {
        if (!(q[0] > -1 && q[1] > -1 && q[0] < T(volume[a]) && q[1] < T(volume[b])))
          continue;
        for (int which = 0; which < 2; ++which) {
          i[which] = int(Kokkos::floor(q[which]));
          corners.f[which] = q[which] - T(i[which]);
        }
        for (int row = 0; row < 2; ++row)
          for (int column = 0; column < 2; ++column) {
            const int ia = i[0] + column, ib = i[1] + row;
            corners.value[row][column] = ia >= 0 && ib >= 0 && ia < volume[a] && ib < volume[b]
                                             ? data[plane * of_plane + ia * of_a + ib * of_b]
                                             : T(0);
          }
      }
      visit(plane, corners);
    }
  }
};

/// Pixels of images, a team for so many of one image.
template <class Space, class T>
struct ProjectLines {
  using Problem = LineProblem<Space, T>;
  Problem problem;
  const T* data;
  T* images;
  std::int64_t first, blocks; ///< image, and blocks of an image
  int block;                  ///< pixels

  KOKKOS_FUNCTION void operator()(const typename Problem::Member& team) const {
    const std::int64_t image = first + team.league_rank() / blocks, batch = image / problem.poses;
    const std::int64_t begin = team.league_rank() % blocks * block;
    const int count = int(Kokkos::min<std::int64_t>(block, problem.pixels() - begin));
    const LineView<T> view = problem.view(batch, image % problem.poses);
    const T* const of_batch = data + (problem.shared_volume ? 0 : batch * problem.voxels());
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count), [&](int i) {
      const std::int64_t pixel = begin + i;
      T sum = Kokkos::Experimental::quiet_NaN_v<T>;
      if (view.axis >= 0) {
        sum = 0;
        problem.walk(view, of_batch, int(pixel % problem.image[0]), int(pixel / problem.image[0]),
                     [&](int, const auto& corners) { sum += corners.interpolated(); });
        sum *= view.length;
      }
      images[image * problem.pixels() + pixel] = sum;
    });
  }
};

/// On hosts: planes of voxels across an axis, a thread for so many of them. It scatters the rows of images whose lines are steepest
/// to this axis into sums in double precision. No other thread adds to its voxels.
template <class Space, class T>
struct ScatterLines {
  using Problem = LineProblem<Space, T>;
  static constexpr int planes_at_once = 4; ///< along x, whose voxels share cache lines

  Problem problem;
  const T* images;
  T* data;
  int axis, together; ///< planes
  std::int64_t blocks;

  int size(int which) const { return problem.volume[(axis + 1 + which) % 3]; }
  std::size_t bytes() const {
    return sizeof(double) * std::size_t(size(0)) * std::size_t(size(1)) * std::size_t(together);
  }

  void operator()(const typename Problem::Member& team) const {
    const std::int64_t target = team.league_rank() / blocks, voxels = std::int64_t(size(0)) * size(1);
    const int begin = int(team.league_rank() % blocks) * together,
              count = std::min(together, problem.volume[axis] - begin);
    const std::int64_t from = problem.shared_volume ? 0 : target * problem.poses,
                       to = problem.shared_volume ? problem.batches * problem.poses : from + problem.poses;
    auto* const sums = static_cast<double*>(team.team_scratch(1).get_shmem(bytes()));
    bool any = false;
    for (std::int64_t image = from; image < to; ++image) {
      const LineView<T> view = problem.view(image / problem.poses, image % problem.poses);
      if (view.axis != axis)
        continue;
      if (!any)
        std::fill_n(sums, voxels * count, 0.);
      any = true;
      for (int y = 0; y < problem.image[1]; ++y)
        for (int k = 0; k < count; ++k)
          add_row(view, y, begin + k, images + image * problem.pixels() + std::int64_t(y) * problem.image[0],
                  sums + voxels * k);
    }
    if (!any)
      return;
    const std::int64_t of_a = problem.stride((axis + 1) % 3), of_b = problem.stride((axis + 2) % 3),
                       of_plane = problem.stride(axis);
    T* const first = data + target * problem.voxels() + begin * of_plane;
    for (int b = 0; b < size(1); ++b)
      for (int a = 0; a < size(0); ++a)
        for (int k = 0; k < count; ++k)
          first[k * of_plane + a * of_a + b * of_b] += T(sums[voxels * k + std::int64_t(b) * size(0) + a]);
  }

private:
  void add_row(const LineView<T>& view, int y, int plane, const T* row, double* sums) const {
    T start[2];
    for (int which = 0; which < 2; ++which)
      start[which] = view.at(which, 0, y) + view.slope[which][2] * T(plane);
    int near[2], inside[2];
    problem.both_steps(view, 0, start, near, inside);
    add_pixels<false>(view, start, near[0], inside[0], row, sums);
    add_pixels<true>(view, start, inside[0], inside[1], row, sums);
    add_pixels<false>(view, start, inside[1], near[1], row, sums);
  }

  template <bool inside>
  void add_pixels(const LineView<T>& view, const T (&start)[2], int from, int to, const T* row,
                  double* sums) const {
    const int sizes[2] = {size(0), size(1)};
    for (int x = from; x < to; ++x) {
      const T q[2] = {start[0] + view.slope[0][0] * T(x), start[1] + view.slope[1][0] * T(x)};
      if (!inside && !(q[0] > -1 && q[1] > -1 && q[0] < T(sizes[0]) && q[1] < T(sizes[1])))
        continue;
      const int a = inside ? int(q[0]) : int(std::floor(q[0])),
                b = inside ? int(q[1]) : int(std::floor(q[1]));
      const double f = double(q[0] - T(a)), g = double(q[1] - T(b)),
                   value = double(row[x]) * double(view.length);
      double* const first = sums + std::int64_t(b) * sizes[0] + a;
      for (int row_of = 0; row_of < 2; ++row_of)
        for (int column = 0; column < 2; ++column)
          if (inside ||
              (a + column >= 0 && b + row_of >= 0 && a + column < sizes[0] && b + row_of < sizes[1]))
            first[std::int64_t(row_of) * sizes[0] + column] +=
                value * (row_of ? g : 1 - g) * (column ? f : 1 - f);
    }
  }
};

/// On GPUs: voxels, a team for so many of them, gather pixels whose lines pass a voxel's plane within one voxel along both axes.
template <class Space, class T>
struct BackprojectLines {
  using Problem = LineProblem<Space, T>;
  using Views = Kokkos::View<LineView<T>*, typename Space::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int views_at_once = 32;

  Problem problem;
  const T* images;
  T* data;
  std::int64_t blocks; ///< of a volume
  int block;           ///< voxels

  KOKKOS_FUNCTION void operator()(const typename Problem::Member& team) const {
    const std::int64_t target = team.league_rank() / blocks, begin = team.league_rank() % blocks * block;
    const int count = int(Kokkos::min<std::int64_t>(block, problem.voxels() - begin));
    const std::int64_t from = problem.shared_volume ? 0 : target * problem.poses,
                       to = problem.shared_volume ? problem.batches * problem.poses : from + problem.poses;
    const Views views(team.team_scratch(0), views_at_once);
    for (std::int64_t image = from; image < to; image += views_at_once) {
      const int together = int(Kokkos::min<std::int64_t>(views_at_once, to - image));
      team.team_barrier(); // the views before have been read
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, together), [&](int i) {
        views(i) = problem.view((image + i) / problem.poses, (image + i) % problem.poses);
      });
      team.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count), [&](int i) {
        const std::int64_t voxel = begin + i;
        const int index[3] = {int(voxel % problem.volume[0]),
                              int(voxel / problem.volume[0] % problem.volume[1]),
                              int(voxel / problem.volume[0] / problem.volume[1])};
        T sum = 0;
        for (int j = 0; j < together; ++j)
          if (views(j).axis >= 0)
            sum += views(j).length * gather(views(j), index, images + (image + j) * problem.pixels());
        data[target * problem.voxels() + voxel] += sum;
      });
    }
  }

private:
  KOKKOS_INLINE_FUNCTION T gather(const LineView<T>& view, const int (&index)[3], const T* pixels) const {
    const T plane = T(index[view.axis]);
    T away[2], seen[2]; // from the voxel to the line of pixel (0, 0), and the voxel's place in the image
    int first[2], last[2];
    for (int which = 0; which < 2; ++which)
      away[which] = view.origin[which] + view.slope[which][2] * plane - T(index[(view.axis + 1 + which) % 3]);
    for (int d = 0; d < 2; ++d) {
      seen[d] = -view.inverse[d][0] * away[0] - view.inverse[d][1] * away[1];
      first[d] =
          int(Kokkos::min(Kokkos::max(Kokkos::ceil(seen[d] - view.reach[d]), T(0)), T(problem.image[d])));
      last[d] = int(
          Kokkos::max(Kokkos::min(Kokkos::floor(seen[d] + view.reach[d]), T(problem.image[d] - 1)), T(-1)));
    }
    if (last[0] < first[0] || last[1] < first[1])
      return 0;
    T sum = 0;
    // Of a rotation at most three pixels along both axes: a fixed number of them, whose loops need no branches.
    if (view.reach[0] < T(1.5) && view.reach[1] < T(1.5) && first[0] + 2 < problem.image[0] &&
        first[1] + 2 < problem.image[1]) {
      const T* row = pixels + std::int64_t(first[1]) * problem.image[0] + first[0];
      for (int d = 0; d < 2; ++d)
        away[d] += view.slope[d][0] * T(first[0]) + view.slope[d][1] * T(first[1]);
      BRACEWELL_UNROLL_FOR (int y = 0; y < 3; ++y) {
        BRACEWELL_UNROLL_FOR (int x = 0; x < 3; ++x) {
          const T a = 1 - Kokkos::abs(away[0] + view.slope[0][0] * T(x) + view.slope[0][1] * T(y)),
                  b = 1 - Kokkos::abs(away[1] + view.slope[1][0] * T(x) + view.slope[1][1] * T(y));
          sum += Kokkos::max(a, T(0)) * Kokkos::max(b, T(0)) * row[x];
        }
        row += problem.image[0];
      }
      return sum;
    }
    for (int y = first[1]; y <= last[1]; ++y)
      for (int x = first[0]; x <= last[0]; ++x) {
        const T a = 1 - Kokkos::abs(away[0] + view.slope[0][0] * T(x) + view.slope[0][1] * T(y)),
                b = 1 - Kokkos::abs(away[1] + view.slope[1][0] * T(x) + view.slope[1][1] * T(y));
        sum += Kokkos::max(a, T(0)) * Kokkos::max(b, T(0)) * pixels[std::int64_t(y) * problem.image[0] + x];
      }
    return sum;
  }
};

/// Gradients of a pose, a team for so many rows of its image.
template <class Space, class T>
struct LinePoseGradients {
  using Problem = LineProblem<Space, T>;
  using Sum = Sums<12>; ///< of what a point of a line is moved by: times x, times y, times z, and alone
  Problem problem;
  const T* data;
  const T* cotangent;
  T* of_matrices; ///< null: not asked for
  T* of_shifts;
  std::int64_t first, blocks; ///< image, and blocks of an image
  int block;                  ///< pixels

  KOKKOS_FUNCTION void operator()(const typename Problem::Member& team) const {
    const std::int64_t image = first + team.league_rank() / blocks, batch = image / problem.poses,
                       pose = image % problem.poses;
    const std::int64_t begin = team.league_rank() % blocks * block;
    const int count = int(Kokkos::min<std::int64_t>(block, problem.pixels() - begin));
    const LineView<T> view = problem.view(batch, pose);
    const T* const matrix = problem.matrices(batch, pose);
    const T* const shift = problem.shifts ? problem.shifts(batch, pose) : nullptr;
    const T* const of_batch = data + (problem.shared_volume ? 0 : batch * problem.voxels());
    Sum total;
    if (view.axis >= 0)
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, count),
          [&](int i, Sum& sum) { add(view, matrix, shift, of_batch, image, begin + i, sum); }, total);
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      const T spoiled = view.axis >= 0 ? T(0) : Kokkos::Experimental::quiet_NaN_v<T>;
      if (of_matrices)
        for (int e = 0; e < 9; ++e)
          Kokkos::atomic_add(of_matrices + problem.matrices.offset(batch, pose) + e,
                             T(total.values[e % 3 * 3 + e / 3]) + spoiled);
      if (of_shifts)
        for (int d = 0; d < 2; ++d) {
          double moved = 0;
          for (int row = 0; row < 3; ++row)
            moved -= total.values[9 + row] * double(matrix[3 * row + d]);
          Kokkos::atomic_add(of_shifts + problem.shifts.offset(batch, pose) + 1 - d, T(moved) + spoiled);
        }
    });
  }

private:
  KOKKOS_INLINE_FUNCTION void add(const LineView<T>& view, const T* matrix, const T* shift, const T* of_batch,
                                  std::int64_t image, std::int64_t pixel, Sum& sum) const {
    const int x = int(pixel % problem.image[0]), y = int(pixel / problem.image[0]), m = view.axis;
    const double at[2] = {x - problem.image[0] / 2 - (shift ? double(shift[1]) : 0),
                          y - problem.image[1] / 2 - (shift ? double(shift[0]) : 0)};
    const double along = double(matrix[3 * m + 2]);
    // The line passes plane m at z = start + plane / along.
    const T step = T(1 / along), start = T((-(problem.volume[m] / 2) - double(matrix[3 * m]) * at[0] -
                                            double(matrix[3 * m + 1]) * at[1]) /
                                           along);
    T value = 0, slopes[2] = {}, times_z[2] = {};
    problem.walk(view, of_batch, x, y, [&](int plane, const auto& corners) {
      const T z = start + step * T(plane);
      value += corners.interpolated();
      for (int which = 0; which < 2; ++which) {
        const T slope = corners.slope(which);
        slopes[which] += slope;
        times_z[which] += slope * z;
      }
    });
    const double g = double(cotangent[image * problem.pixels() + pixel]) * double(view.length);
    // What the loss gains where the line's points are moved, alone and in proportion to z, along the three axes. A line that
    // is moved along its steepest axis passes the plane elsewhere.
    double force[3], moment[3];
    force[m] = moment[m] = 0;
    for (int which = 0; which < 2; ++which) {
      const int other = (m + 1 + which) % 3;
      const double lean = double(matrix[3 * other + 2]) / along;
      force[other] = g * double(slopes[which]);
      moment[other] = g * double(times_z[which]);
      force[m] -= lean * force[other];
      moment[m] -= lean * moment[other];
    }
    moment[m] -= g * double(value) / along; // of the length between planes
    for (int row = 0; row < 3; ++row) {
      sum.values[row] += at[0] * force[row];
      sum.values[3 + row] += at[1] * force[row];
      sum.values[6 + row] += moment[row];
      sum.values[9 + row] += force[row];
    }
  }
};

/// The arguments of a door.
template <class Space, class T>
[[gnu::cold]] LineProblem<Space, T>
line_problem(const ProjectionArguments& arguments, const ArrayShape& volume, const char* images_name,
             const ArrayShape& images, const Poses<T, typename Space::memory_space>& poses) {
  LineProblem<Space, T> problem;
  arguments.given("volume", volume);
  arguments.given(images_name, images);
  const auto fits = [](const ArrayShape& array, int axes) {
    bool good = array.rank == 4;
    for (int axis = 4 - axes; good && axis < 4; ++axis)
      good = array.extents[axis] >= 1 && array.extents[axis] <= 32768;
    return good;
  };
  if (!fits(volume, 3))
    arguments.refuse("volume", "[B, D, H, W] of 1 to 32768 voxels an axis, found %s",
                     volume.shape_text().characters);
  if (!fits(images, 2))
    arguments.refuse(images_name, "[B, P, h, w] of 1 to 32768 pixels an axis, found %s",
                     images.shape_text().characters);
  problem.batches = images.extents[0];
  problem.poses = images.extents[1];
  problem.shared_volume = volume.extents[0] == 1;
  if (!problem.shared_volume && volume.extents[0] != problem.batches)
    arguments.refuse("volume", "batch axis of 1 or %lld, found %s", static_cast<long long>(problem.batches),
                     volume.shape_text().characters);
  for (int d = 0; d < 3; ++d)
    problem.volume[d] = int(volume.extents[3 - d]);
  for (int d = 0; d < 2; ++d)
    problem.image[d] = int(images.extents[3 - d]);
  arguments.given("poses.matrices", poses.matrices);
  const std::int64_t matrix[] = {3, 3}, shift[] = {2};
  problem.matrices =
      arguments.per_pose("poses.matrices", poses.matrices, problem.batches, problem.poses, 2, matrix);
  if (poses.shifts)
    problem.shifts =
        arguments.per_pose("poses.shifts", poses.shifts, problem.batches, problem.poses, 1, shift);
  if (poses.filters)
    fail(arguments.function, "poses.filters", "none: images in real space have no spectra", "some");
  return problem;
}

/// Queues a kernel whose teams take a block of an image each; where there are too many of them, some images at a time.
template <class Functor, class Space, class T>
void launch_on_images(const Space& space, const char* label, const LineProblem<Space, T>& problem,
                      Functor functor) {
  using Problem = LineProblem<Space, T>;
  functor.block = int(
      std::min<std::int64_t>(is_host<Space> ? problem.image[0] : 2 * Problem::team_size, problem.pixels()));
  functor.blocks = (problem.pixels() + functor.block - 1) / functor.block;
  const std::int64_t images = problem.batches * problem.poses,
                     most = std::max<std::int64_t>(1, (std::int64_t(1) << 30) / functor.blocks);
  for (functor.first = 0; functor.first < images; functor.first += most)
    Kokkos::parallel_for(label,
                         typename Problem::Policy(
                             space, static_cast<int>(std::min(most, images - functor.first) * functor.blocks),
                             Problem::team_size),
                         functor);
}

template <class Space, class T>
void project_lines(const Space& space, const Array<const T, typename Space::memory_space>& volume,
                   const Poses<T, typename Space::memory_space>& poses,
                   const Array<T, typename Space::memory_space>& images) {
  const ProjectionArguments arguments{{"project_lines"}};
  const auto problem = line_problem<Space, T>(arguments, volume, "images", images, poses);
  arguments.disjoint(
      {{"images", images}},
      {{"volume", volume}, {"poses.matrices", poses.matrices}, {"poses.shifts", poses.shifts}});
  const Kokkos::Profiling::ScopedRegion region("Bracewell::project_lines");
  launch_on_images(space, "Bracewell::project_lines", problem,
                   ProjectLines<Space, T>{problem, volume.data, images.data, 0, 0, 0});
}

template <class Space, class T>
void add_lines(const Space& space, const char* label, const LineProblem<Space, T>& problem, const T* images,
               T* data) {
  using Problem = LineProblem<Space, T>;
  const std::int64_t targets = problem.shared_volume ? 1 : problem.batches;
  if (problem.batches * problem.poses == 0)
    return;
  if constexpr (is_host<Space>) {
    for (const int axis : {2, 1, 0}) {
      ScatterLines<Space, T> functor{
          problem, images, data, axis, axis == 0 ? ScatterLines<Space, T>::planes_at_once : 1, 0};
      functor.blocks = (problem.volume[axis] + functor.together - 1) / functor.together;
      Kokkos::parallel_for(label,
                           typename Problem::Policy(space, static_cast<int>(targets * functor.blocks), 1)
                               .set_scratch_size(1, Kokkos::PerTeam(functor.bytes() + 64)),
                           functor);
    }
  } else {
    using Functor = BackprojectLines<Space, T>;
    const int block = Problem::team_size;
    const std::int64_t blocks = (problem.voxels() + block - 1) / block;
    Kokkos::parallel_for(
        label,
        typename Problem::Policy(space, static_cast<int>(targets * blocks), block)
            .set_scratch_size(0, Kokkos::PerTeam(Functor::Views::shmem_size(Functor::views_at_once))),
        Functor{problem, images, data, blocks, block});
  }
}

template <class Space, class T>
void backproject_lines(const Space& space, const Array<const T, typename Space::memory_space>& images,
                       const Poses<T, typename Space::memory_space>& poses,
                       const Array<T, typename Space::memory_space>& volume) {
  const ProjectionArguments arguments{{"backproject_lines"}};
  const auto problem = line_problem<Space, T>(arguments, volume, "images", images, poses);
  arguments.disjoint(
      {{"volume", volume}},
      {{"images", images}, {"poses.matrices", poses.matrices}, {"poses.shifts", poses.shifts}});
  const Kokkos::Profiling::ScopedRegion region("Bracewell::backproject_lines");
  add_lines(space, "Bracewell::backproject_lines", problem, images.data, volume.data);
}

template <class Space, class T>
void project_lines_gradients(const Space& space, const Array<const T, typename Space::memory_space>& volume,
                             const Poses<T, typename Space::memory_space>& poses,
                             const Array<const T, typename Space::memory_space>& cotangent,
                             const LineGradients<T, typename Space::memory_space>& gradients) {
  const ProjectionArguments arguments{{"project_lines_gradients"}};
  const auto problem = line_problem<Space, T>(arguments, volume, "cotangent", cotangent, poses);
  arguments.require(gradients.volume || gradients.matrices || gradients.shifts, "gradients",
                    "at least one output", "none");
  arguments.same_if_given("gradients.volume", gradients.volume, volume);
  arguments.same_if_given("gradients.matrices", gradients.matrices, poses.matrices);
  arguments.same_if_given("gradients.shifts", gradients.shifts, poses.shifts);
  arguments.disjoint({{"gradients.volume", gradients.volume},
                      {"gradients.matrices", gradients.matrices},
                      {"gradients.shifts", gradients.shifts}},
                     {{"volume", volume},
                      {"cotangent", cotangent},
                      {"poses.matrices", poses.matrices},
                      {"poses.shifts", poses.shifts}});
  const Kokkos::Profiling::ScopedRegion region("Bracewell::project_lines_gradients");
  set_zero(space, "Bracewell::project_lines_gradients::zero",
           std::array{reals(gradients.volume), reals(gradients.matrices), reals(gradients.shifts)});
  if (gradients.matrices || gradients.shifts)
    launch_on_images(space, "Bracewell::project_lines_gradients::poses", problem,
                     LinePoseGradients<Space, T>{problem, volume.data, cotangent.data,
                                                 gradients.matrices.data, gradients.shifts.data, 0, 0, 0});
  if (gradients.volume)
    add_lines(space, "Bracewell::project_lines_gradients::volume", problem, cotangent.data,
              gradients.volume.data);
}

/// The types that the doors take.
template <class Volume, class Images>
constexpr bool check_line_types() {
  constexpr bool real = std::is_floating_point_v<typename view_of<Volume>::non_const_value_type> &&
                        std::is_floating_point_v<typename view_of<Images>::non_const_value_type>;
  static_assert(real, "Bracewell::project_lines, backproject_lines: expected a volume and images of float or "
                      "double, found another type of values.");
  return real;
}

} // namespace Impl

template <class ExecutionSpace, class Volume, class Images>
void project_lines(const ExecutionSpace& space, const Volume& volume,
                   const PosesFor<ExecutionSpace, Volume>& poses, const Images& images) {
  if constexpr (Impl::check_line_types<Volume, Images>())
    Impl::project_lines<ExecutionSpace, Impl::real_of<Volume>>(space, volume, poses, images);
}

template <class ExecutionSpace, class Images, class Volume>
void backproject_lines(const ExecutionSpace& space, const Images& images,
                       const PosesFor<ExecutionSpace, Images>& poses, const Volume& volume) {
  if constexpr (Impl::check_line_types<Volume, Images>())
    Impl::backproject_lines<ExecutionSpace, Impl::real_of<Images>>(space, images, poses, volume);
}

template <class ExecutionSpace, class Volume, class Images>
void project_lines_gradients(const ExecutionSpace& space, const Volume& volume,
                             const PosesFor<ExecutionSpace, Volume>& poses, const Images& cotangent,
                             const LineGradientsFor<ExecutionSpace, Volume>& gradients) {
  if constexpr (Impl::check_line_types<Volume, Images>())
    Impl::project_lines_gradients<ExecutionSpace, Impl::real_of<Volume>>(space, volume, poses, cotangent,
                                                                         gradients);
}

#define BRACEWELL_INSTANCES_PROJECT_LINES(Extern, Space, Real)                                               \
  Extern template void Impl::project_lines<Space, Real>(                                                     \
      const Space&, const Array<const Real, Space::memory_space>&, const Poses<Real, Space::memory_space>&,  \
      const Array<Real, Space::memory_space>&);                                                              \
  Extern template void Impl::backproject_lines<Space, Real>(                                                 \
      const Space&, const Array<const Real, Space::memory_space>&, const Poses<Real, Space::memory_space>&,  \
      const Array<Real, Space::memory_space>&);                                                              \
  Extern template void Impl::project_lines_gradients<Space, Real>(                                           \
      const Space&, const Array<const Real, Space::memory_space>&, const Poses<Real, Space::memory_space>&,  \
      const Array<const Real, Space::memory_space>&, const LineGradients<Real, Space::memory_space>&);
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_PROJECT_LINES)

} // namespace Bracewell
