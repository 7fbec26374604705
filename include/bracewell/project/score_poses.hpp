// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/compiled.hpp>
#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/detail/scoring/scoring_plan.hpp>
#include <bracewell/project/prepared_reference.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <type_traits>

namespace Bracewell {

/// What an image X and a projection P are compared by, with filter C, weight w and multiplicity m, summed over the
/// stored frequencies within the radius.
enum class PoseScore {
  SquaredDifference, ///< sum m w |X - C P|^2: low is good
  /// sum m w Re(conj(X) C P) / sqrt(sum m w |X|^2 sum m w |C P|^2), from -1 to 1: high is good. It does not depend
  /// on the scales of images and reference; 0 where either is zero.
  Correlation,
};

/// What a PoseScoring has room for.
struct PoseScoringSizes {
  std::int64_t images; ///< at most
  int shifts;          ///< of every image and pose, at most
  int height;          ///< of images
  int width;           ///< of images, the full one
  int best = 0;        ///< poses that are ranked for every image; 0: none
};

/// Images to score, and what belongs to them. Filters or weights whose first axis has extent 1 are shared.
template <class T, class MemorySpace>
struct ScoredImages {
  /// [N, h, w/2+1], zero frequency and real-space origin at index 0.
  Array<const Kokkos::complex<T>, MemorySpace> spectra;
  Array<const T, MemorySpace> filters =
      {}; ///< [N|1, h, w/2+1] multiply projections, for instance CTFs; optional
  Array<const T, MemorySpace> weights = {}; ///< [N|1, h, w/2+1] of frequencies, none negative; optional
};

/// Outputs of PoseScoring::score, overwritten: all, or best with poses and shifts, or both.
template <class T, class MemorySpace>
struct PoseScores {
  Array<T, MemorySpace> all = {}; ///< [N, P, S] of every image, pose and shift
  /// [N, best] scores of the best poses, each at its best shift, from the best on; of equal ones the first comes
  /// first. Scores that are not numbers are left out. Where poses are fewer, the rest are NaN.
  Array<T, MemorySpace> best = {};
  Array<int, MemorySpace> poses = {};  ///< [N, best] which poses those are; -1: none
  Array<int, MemorySpace> shifts = {}; ///< [N, best] their best shifts, of equal ones the first; -1: none
};

/// Scores images against projections of a reference at candidate poses, each moved by candidate shifts: the inner
/// loop of searches for orientations, and of template matching. Projections are compared as soon as they are
/// sampled: on hosts a few at a time, on GPUs up to 256 MiB of them. P is what `project` yields with the pose's matrix and the shift.
///
/// With A = m w C X exp(2 pi i k.s / n), the sums of Re(conj(A) P) are one product of matrices. It multiplies images and
/// shifts with poses, over the frequencies. The sums of m w C^2 |P|^2 are another product.
/// \code
/// PoseScoring<Space> scoring(space, {.images = 64, .shifts = 49, .height = n, .width = n, .best = 4});
/// scoring.set_images(space, {.spectra = images, .filters = ctf});
/// scoring.set_shifts(space, shifts);
/// scoring.score(space, reference, matrices, {.best = scores, .poses = poses, .shifts = best_shifts});
/// \endcode
/// Movable and copyable (a copy refers to the same memory); for one instance at a time. Gradients at the best
/// poses: `project_gradients`.
///
/// @tparam T  float or double, of images and of what the reference is computed in; sums over frequencies have it,
/// too: errors in float are some 1e-6 of an image's power
template <class ExecutionSpace, class T = float>
class PoseScoring {
  using Memory = typename ExecutionSpace::memory_space;

public:
  /// Allocates all that calls need, in proportion to images and shifts times frequencies.
  /// @param options  radius: frequencies compared, by default up to the images' Nyquist limit, min(h, w) / 2.
  /// oversampling and ewald_radius: as `project` takes them. The rest is not used.
  /// @throws Error on sizes or options out of range
  PoseScoring(const ExecutionSpace& space, const PoseScoringSizes& sizes,
              const ProjectionOptions& options = {}, PoseScore score = PoseScore::SquaredDifference);

  /// Takes images, which are not needed any more when the kernel has ended.
  /// @throws Error on shapes that do not fit
  void set_images(const ExecutionSpace& space, const ScoredImages<T, Memory>& images);

  /// @param shifts  [S, 2] in pixels (row, column), with the sign of Poses::shifts: positive ones move projections to higher
  /// index
  /// @throws Error on shapes that do not fit
  void set_shifts(const ExecutionSpace& space, const Array<const T, Memory>& shifts);

  /// Queues the scoring of all images at all poses and shifts; does not wait. The same bits in every run.
  /// @param reference  of one volume, or of one image for poses in the plane; its oversampling is taken where
  /// options left it out
  /// @param matrices   [P, d, d], see Poses::matrices
  /// @throws Error on shapes that do not fit, shared memory, and before images and shifts are set; nothing is
  /// written then. Scores of poses that are not finite are NaN.
  template <class Kernel, int D, class Stored>
  void score(const ExecutionSpace& space,
             const PreparedReference<Kernel, ExecutionSpace, D, Stored>& reference,
             const Array<const T, Memory>& matrices, const PoseScores<T, Memory>& scores) const {
    constexpr bool one_precision = std::is_same_v<Impl::real_of_stored<Stored>, T>;
    static_assert(one_precision,
                  "Bracewell::PoseScoring::score: reference: expected the precision of the plan, "
                  "found float beside double.");
    if constexpr (one_precision)
      queue(space, reference, matrices, scores);
  }

  /// Bytes of memory that it holds.
  std::size_t memory_bytes() const { return plan_.memory_bytes(); }

  /// What memory_bytes() of one of these arguments would be, but for a few numbers of each image and frequency.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, const PoseScoringSizes& sizes,
                                  const ProjectionOptions& options = {});

private:
  template <class Kernel, int D, class Stored>
  void queue(const ExecutionSpace& space,
             const PreparedReference<Kernel, ExecutionSpace, D, Stored>& reference,
             const Array<const T, Memory>& matrices, const PoseScores<T, Memory>& scores) const;

  static ProjectionOptions check(const PoseScoringSizes& sizes, ProjectionOptions options) {
    constexpr Impl::Arguments arguments{"PoseScoring"};
    Impl::check_scoring_sizes(arguments, sizes, 1 << 24, options);
    return options;
  }

  void check(const Impl::Arguments& arguments, std::int64_t poses,
             const PoseScores<T, Memory>& scores) const {
    arguments.require(scores.all || scores.best, "scores", "all or best", "neither");
    const std::int64_t images = plan_.images, shifts = plan_.shifts, ranks = plan_.ranks;
    if (scores.all)
      arguments.shape("scores.all", scores.all, {images, poses, shifts});
    if (scores.best || scores.poses || scores.shifts) {
      arguments.require(ranks > 0, "scores.best", "sizes.best > 0", "0");
      arguments.shape("scores.best", scores.best, {images, ranks});
      arguments.shape("scores.poses", scores.poses, {images, ranks});
      arguments.shape("scores.shifts", scores.shifts, {images, ranks});
    }
  }

  ProjectionOptions options_;
  Impl::ScoringPlan<ExecutionSpace, T> plan_;
};

template <class ExecutionSpace, class T>
PoseScoring<ExecutionSpace, T>::PoseScoring(const ExecutionSpace& space, const PoseScoringSizes& sizes,
                                            const ProjectionOptions& options, PoseScore score)
    : options_(check(sizes, options)),
      plan_(space, {{sizes.width, sizes.height}}, {score == PoseScore::Correlation}, sizes.images,
            sizes.shifts, sizes.best, *options_.radius) {}

template <class ExecutionSpace, class T>
void PoseScoring<ExecutionSpace, T>::set_images(const ExecutionSpace& space,
                                                const ScoredImages<T, Memory>& images) {
  const Impl::Arguments arguments{"PoseScoring::set_images"};
  arguments.given("images.spectra", images.spectra);
  const std::int64_t count = images.spectra.extents[0];
  arguments.same_spectrum("images.spectra", images.spectra, plan_.spectra({count}));
  arguments.require(
      count <= plan_.most_images, "images.spectra",
      [&] { return "at most " + Impl::number(plan_.most_images) + " images"; },
      [&] { return images.spectra.shape(); });
  const auto stride = [&](const char* name, const Array<const T, Memory>& array) -> std::int64_t {
    if (array && array.extents[0] != 1)
      arguments.same_spectrum(name, array, plan_.spectra({count}));
    else if (array)
      arguments.same_spectrum(name, array, plan_.spectra({1}));
    return array && array.extents[0] != 1 ? plan_.layout.elements() : 0;
  };
  const std::int64_t filter_stride = stride("images.filters", images.filters),
                     weight_stride = stride("images.weights", images.weights);
  plan_.set_images(space, count,
                   {.layout = plan_.layout,
                    .images = images.spectra.data,
                    .filters = images.filters.data,
                    .weights = images.weights.data,
                    .filter_stride = filter_stride,
                    .weight_stride = weight_stride});
}

template <class ExecutionSpace, class T>
void PoseScoring<ExecutionSpace, T>::set_shifts(const ExecutionSpace& space,
                                                const Array<const T, Memory>& shifts) {
  const Impl::Arguments arguments{"PoseScoring::set_shifts"};
  arguments.given("shifts", shifts);
  arguments.shape("shifts", shifts, {shifts.extents[0], 2});
  arguments.require(
      shifts.extents[0] <= plan_.most_shifts, "shifts",
      [&] { return "at most " + Impl::number(plan_.most_shifts) + " shifts"; },
      [&] { return shifts.shape(); });
  plan_.set_shifts(space, static_cast<int>(shifts.extents[0]), shifts.data);
}

template <class ExecutionSpace, class T>
template <class Kernel, int D, class Stored>
void PoseScoring<ExecutionSpace, T>::queue(
    const ExecutionSpace& space, const PreparedReference<Kernel, ExecutionSpace, D, Stored>& reference,
    const Array<const T, Memory>& matrices, const PoseScores<T, Memory>& scores) const {
  Kokkos::Profiling::ScopedRegion region("Bracewell::PoseScoring::score");
  const Impl::ProjectionArguments arguments{{"PoseScoring::score"}};
  const auto source = reference.reference(arguments.function, "reference");
  arguments.require(source.shape.extents[0] == 1, "reference", "one reconstruction",
                    [&] { return source.shape.shape(); });
  arguments.require(plan_.images >= 0, "images", "set_images before", "none");
  arguments.require(plan_.shifts >= 0, "shifts", "set_shifts before", "none");
  arguments.given("matrices", matrices);
  const std::int64_t poses = matrices.extents[0];
  arguments.shape("matrices", matrices, {poses, D, D});
  arguments.require(poses < std::int64_t(1) << 31, "matrices", "fewer than 2^31",
                    [&] { return Impl::number(poses); });
  check(arguments, poses, scores);
  arguments.disjoint({{"scores.all", scores.all},
                      {"scores.best", scores.best},
                      {"scores.poses", scores.poses},
                      {"scores.shifts", scores.shifts}},
                     {source.memory, {"matrices", matrices}});
  ProjectionOptions options = options_;
  if (!options.oversampling)
    options.oversampling = source.oversampling;
  plan_.template score<Kernel, D, Stored>(
      space,
      arguments.template samples<2, D, Kernel>("reference", source.shape, "images", plan_.spectra({1, poses}),
                                               plan_.template poses_at<D>(matrices.data, poses), options),
      source.spectra, {scores.all.data, scores.best.data, scores.poses.data, scores.shifts.data});
}

template <class ExecutionSpace, class T>
std::size_t PoseScoring<ExecutionSpace, T>::bytes_needed(const ExecutionSpace& space,
                                                         const PoseScoringSizes& sizes,
                                                         const ProjectionOptions& options) {
  using Plan = Impl::ScoringPlan<ExecutionSpace, T>;
  const HalfSpectrumLayout<2> layout{{sizes.width, sizes.height}};
  const double radius = *check(sizes, options).radius;
  return typename Plan::Sizes(space, layout, sizes.images, sizes.shifts, sizes.best,
                              typename Plan::Frequencies(layout, radius).values.size())
      .bytes();
}

#define BRACEWELL_INSTANCES_POSE_SCORING(Extern, Space, Real) Extern template class PoseScoring<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_POSE_SCORING)
#define BRACEWELL_POSE_SCORING_OF(Extern, Space, Real, Kernel, Stored)                                       \
  Extern template void PoseScoring<Space, Real>::queue(                                                      \
      const Space&, const PreparedReference<Kernel, Space, 2, Stored>&,                                      \
      const Array<const Real, Space::memory_space>&, const PoseScores<Real, Space::memory_space>&) const;    \
  Extern template void PoseScoring<Space, Real>::queue(                                                      \
      const Space&, const PreparedReference<Kernel, Space, 3, Stored>&,                                      \
      const Array<const Real, Space::memory_space>&, const PoseScores<Real, Space::memory_space>&) const;
#define BRACEWELL_INSTANCES_POSE_SCORING_OF(Extern, Space, Real, Kernel)                                     \
  BRACEWELL_POSE_SCORING_OF(Extern, Space, Real, Kernel, Kokkos::complex<Real>)
BRACEWELL_DECLARE_KERNELS(BRACEWELL_DECLARE, BRACEWELL_INSTANCES_POSE_SCORING_OF)
#define BRACEWELL_INSTANCES_POSE_SCORING_OF_HALF(Extern, Space, Real, Kernel)                                \
  BRACEWELL_POSE_SCORING_OF(Extern, Space, Real, Kernel, HalfComplex)
BRACEWELL_DECLARE_KERNELS(BRACEWELL_DECLARE_FLOAT, BRACEWELL_INSTANCES_POSE_SCORING_OF_HALF)

} // namespace Bracewell
