// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/tomography/angle_weights.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// How LineTomography is planned.
struct LineTomographyOptions {
  std::vector<double> angles = {}; ///< radians: any number, order and span
  int width = 0;                   ///< pixels of the detector, and of images along both axes
  std::optional<double> centre =
      std::nullopt;                 ///< detector coordinate of the axis; floor(width / 2) by default
  std::vector<double> weights = {}; ///< of the angles, 1 on average; empty: all are 1
  bool projection = true; ///< project() will be called: it needs room for 2 width^2 pixels of 4 to 8 slices
};

namespace Impl {

/// Values of neighbouring slices at one place, loaded at once.
template <class T, int N>
struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) SlicePack {
  T values[N];
};

/// Tiles of pixels, all of whose rays at an angle fall on a short segment of the detector: the segments of
/// some angles are loaded by the team, several slices side by side, then every thread interpolates in them
/// for its pixels.
template <class ExecutionSpace, class T>
struct LineBackproject {
  static constexpr bool host = is_host<ExecutionSpace>;
  static constexpr int threads = host ? 1 : 256, slices = host ? 8 : 4;
  static constexpr int columns = host ? 16 : 32, rows = host ? 8 : 32, pixels = columns * rows / threads;
  static constexpr int segment = host ? 20 : 48; ///< >= the tile's diagonal + 3
  static constexpr int angles_at_once = 16;
  using Pack = SlicePack<T, slices>;
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  struct Ray { ///< detector coordinate, from the segment's begin, of a tile's first pixel; its steps
    T start, cosine, sine;
  };

  BeamView<ExecutionSpace> beam;
  const T* projections;
  T* image;
  int all_slices, tiles_across;

  static std::size_t scratch_bytes() { return angles_at_once * (segment * sizeof(Pack) + sizeof(Ray)) + 64; }

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int n = beam.width, groups = (all_slices + slices - 1) / slices;
    const int tile = member.league_rank() / groups, first_slice = member.league_rank() % groups * slices;
    const int first_column = tile % tiles_across * columns, first_row = tile / tiles_across * rows;
    const int count = Kokkos::min(+slices, all_slices - first_slice);
    const auto& scratch = member.team_scratch(0);
    auto* const segments =
        static_cast<Pack*>(scratch.get_shmem_aligned(angles_at_once * segment * sizeof(Pack), 16));
    auto* const rays = static_cast<Ray*>(scratch.get_shmem_aligned(angles_at_once * sizeof(Ray), 16));

    T sums[pixels][slices] = {};
    for (int first = 0; first < beam.angles; first += angles_at_once) {
      const int angles = Kokkos::min(+angles_at_once, beam.angles - first);
      Kokkos::parallel_for(Kokkos::TeamThreadRange(member, angles * segment), [&](int item) {
        const int a = item / segment, i = item % segment;
        const BeamAngle angle = beam.data[first + a];
        const double start =
            (first_column - n / 2) * angle.cosine + (first_row - n / 2) * angle.sine + beam.centre;
        const double least = start + Kokkos::min(0.0, (columns - 1) * angle.cosine) +
                             Kokkos::min(0.0, (rows - 1) * angle.sine);
        const double begin = Kokkos::floor(least);
        if (i == 0)
          rays[a] = {T(start - begin), T(angle.cosine), T(angle.sine)};
        const bool inside = begin + i >= 0 && begin + i < n;
        Pack pack;
        for (int z = 0; z < slices; ++z) {
          const std::int64_t row = std::int64_t(first_slice + z) * beam.angles + first + a;
          pack.values[z] =
              inside && z < count ? T(angle.weight) * projections[row * n + int(begin) + i] : T(0);
        }
        segments[item] = pack;
      });
      member.team_barrier();
      for (int a = 0; a < angles; ++a) {
        const Ray ray = rays[a];
        const Pack* const values = segments + a * segment;
        for (int k = 0; k < pixels; ++k) {
          const int pixel = member.team_rank() + k * threads;
          const T s = ray.start + T(pixel % columns) * ray.cosine + T(pixel / columns) * ray.sine;
          const int i = static_cast<int>(s);
          const T fraction = s - T(i);
          const Pack left = values[i], right = values[i + 1];
          for (int z = 0; z < slices; ++z)
            sums[k][z] += left.values[z] + fraction * (right.values[z] - left.values[z]);
        }
      }
      member.team_barrier();
    }
    for (int k = 0; k < pixels; ++k) {
      const int pixel = member.team_rank() + k * threads;
      const int x = first_column + pixel % columns, y = first_row + pixel / columns;
      if (x < n && y < n)
        for (int z = 0; z < count; ++z)
          image[(std::int64_t(first_slice + z) * n + y) * n + x] = sums[k][z];
    }
  }
};

/// Some slices of images side by side: [y, x], and [x, y] behind it.
template <class ExecutionSpace, class T>
struct LinePack {
  static constexpr int slices = LineBackproject<ExecutionSpace, T>::slices;
  using Pack = SlicePack<T, slices>;

  const T* image; ///< of the first slice
  Pack* packs;
  int n, count;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t y, const Member& member) const {
    const std::int64_t pixels = std::int64_t(n) * n;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, n), [&](int x) {
      Pack pack;
      for (int z = 0; z < slices; ++z)
        pack.values[z] = z < count ? image[z * pixels + y * n + x] : T(0);
      packs[y * n + x] = packs[pixels + std::int64_t(x) * n + y] = pack;
    });
  }
};

/// The transpose, detector pixel by detector pixel: on every line of the image (a row or a column, whichever
/// crosses the rays less steeply) at most three pixels lie within one detector pixel.
template <class ExecutionSpace, class T>
struct LineProject {
  static constexpr bool host = is_host<ExecutionSpace>;
  static constexpr int slices = LineBackproject<ExecutionSpace, T>::slices;
  static constexpr int bins = 32, angles_per_team = host ? 1 : 8, bins_per_thread = host ? bins : 1;
  static constexpr int threads = host ? 1 : bins * angles_per_team;
  static constexpr int lines_at_once = 32; ///< positions are single precision within them
  using Pack = SlicePack<T, slices>;
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  BeamView<ExecutionSpace> beam;
  const Pack* packs;
  T* projections; ///< of the first slice
  int count, bins_across;

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int n = beam.width;
    const int first_bin = member.league_rank() % bins_across * bins + (host ? 0 : member.team_rank() % bins);
    const int p =
        member.league_rank() / bins_across * angles_per_team + (host ? 0 : member.team_rank() / bins);
    if (p >= beam.angles)
      return;
    const BeamAngle angle = beam.data[p];
    const bool steep = Kokkos::abs(angle.sine) > Kokkos::abs(angle.cosine);
    const Pack* const lines = packs + (steep ? std::int64_t(n) * n : 0);
    // Along a line the detector coordinate rises by `along`, from line to line by `across`.
    const double along = steep ? angle.sine : angle.cosine, across = steep ? angle.cosine : angle.sine;
    const T slope = T(across / along), step = T(along), reach = T(1 / Kokkos::abs(along));

    T sums[bins_per_thread][slices] = {};
    for (int first = 0; first < n; first += lines_at_once) {
      const int end = Kokkos::min(n - first, +lines_at_once);
      for (int k = 0; k < bins_per_thread; ++k) {
        // Where the ray of this detector pixel crosses the first of these lines.
        const double crossing = (first_bin + k - beam.centre - (first - n / 2) * across) / along + n / 2;
        const double base = Kokkos::floor(crossing);
        if (!(base > -2.0 * lines_at_once && base < n + 2.0 * lines_at_once))
          continue;
        const T offset = T(crossing - base);
        for (int line = 0; line < end; ++line) {
          const T centre = offset - T(line) * slope;
          const T begin = Kokkos::ceil(centre - reach);
          const int pixel = static_cast<int>(base) + static_cast<int>(begin);
          const Pack* const values = lines + std::int64_t(first + line) * n + pixel;
          for (int j = 0; j < 3; ++j) {
            const T weight = T(1) - Kokkos::abs((begin + T(j) - centre) * step);
            if (weight > T(0) && pixel + j >= 0 && pixel + j < n) {
              const Pack pack = values[j];
              for (int z = 0; z < slices; ++z)
                sums[k][z] += weight * pack.values[z];
            }
          }
        }
      }
    }
    for (int k = 0; k < bins_per_thread; ++k)
      for (int z = 0; z < count; ++z)
        if (first_bin + k < n)
          projections[(std::int64_t(z) * beam.angles + p) * n + first_bin + k] = T(angle.weight) * sums[k][z];
  }
};

} // namespace Impl

/// Back-projection along lines, with linear interpolation on the detector, and its exact transpose:
///   f(X, Y) = (pi / P) sum_p w_p q_p(X cos theta_p + Y sin theta_p + centre),
/// X = column - floor(n/2), Y = row - floor(n/2), zero beyond the detector. Of projections filtered with the
/// ramp it is the attenuation per pixel (Kak and Slaney, Principles of Computerized Tomographic
/// Imaging, 3.3). The work is P n^2 per slice: the baseline for the Fourier and log-polar methods, and exact
/// for any angles.
///
/// A movable plan; calls are const. project() uses workspace of the plan: calls of it that can overlap need
/// plans of their own.
template <class ExecutionSpace, class T>
class LineTomography {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Backproject = Impl::LineBackproject<ExecutionSpace, T>;
  using Project = Impl::LineProject<ExecutionSpace, T>;
  using Policy = Kokkos::TeamPolicy<ExecutionSpace>;

public:
  /// @throws Error on sizes below 1, and angles, weights or a centre that are not finite
  LineTomography(const ExecutionSpace& space, const LineTomographyOptions& options)
      : beam_(space, "LineTomography", {options.angles, options.width, options.centre, options.weights}) {
    const auto n = static_cast<std::size_t>(options.width);
    if (options.projection)
      packs_ =
          Packs(Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::LineTomography::packs"),
                2 * n * n);
  }

  /// @param projections  [S, P, n]
  /// @param image        [S, n, n], overwritten
  /// @throws Error on shapes that do not fit and shared memory
  template <class Projections, class Image>
  void backproject(const ExecutionSpace& space, const Projections& projections, const Image& image) const {
    constexpr const char* function = "LineTomography::backproject";
    const Array<const T, MemorySpace> in(projections);
    const Array<T, MemorySpace> out(image);
    const int slices = beam_.check(function, in, out);
    Kokkos::Profiling::ScopedRegion region("Bracewell::LineTomography::backproject");
    const int across = (beam_.width() + Backproject::columns - 1) / Backproject::columns;
    const int down = (beam_.width() + Backproject::rows - 1) / Backproject::rows;
    const int groups = (slices + Backproject::slices - 1) / Backproject::slices;
    Kokkos::parallel_for("Bracewell::LineTomography::backproject",
                         Policy(space, across * down * groups, Backproject::threads)
                             .set_scratch_size(0, Kokkos::PerTeam(Backproject::scratch_bytes())),
                         Backproject{beam_.view(), in.data, out.data, slices, across});
  }

  /// The transpose of backproject: line integrals of the image times pi / P.
  /// @param image        [S, n, n]
  /// @param projections  [S, P, n], overwritten
  /// @throws Error as backproject, and where the plan was made without projection
  template <class Image, class Projections>
  void project(const ExecutionSpace& space, const Image& image, const Projections& projections) const {
    constexpr const char* function = "LineTomography::project";
    const Array<const T, MemorySpace> in(image);
    const Array<T, MemorySpace> out(projections);
    const int slices = beam_.check(function, out, in), n = beam_.width();
    if (packs_.size() == 0)
      Impl::fail(function, "plan", "one made with options.projection", "one without");
    Kokkos::Profiling::ScopedRegion region("Bracewell::LineTomography::project");
    const int bins_across = (n + Project::bins - 1) / Project::bins;
    const int teams =
        bins_across * ((beam_.angles() + Project::angles_per_team - 1) / Project::angles_per_team);
    for (int first = 0; first < slices; first += Project::slices) {
      const int count = std::min(+Project::slices, slices - first);
      const T* const images = in.data + std::int64_t(first) * n * n;
      Impl::for_each_row(space, "Bracewell::LineTomography::pack", n,
                         Impl::LinePack<ExecutionSpace, T>{images, packs_.data(), n, count});
      Kokkos::parallel_for("Bracewell::LineTomography::project", Policy(space, teams, Project::threads),
                           Project{beam_.view(), packs_.data(),
                                   out.data + std::int64_t(first) * beam_.angles() * n, count, bins_across});
    }
  }

private:
  using Packs = Kokkos::View<typename Project::Pack*, MemorySpace>;

  Impl::Beam<ExecutionSpace> beam_;
  Packs packs_;
};

} // namespace Bracewell
