// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/compiled.hpp>
#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/detail/expectation/expectation_plan.hpp>
#include <bracewell/project/prepared_reference.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <span>
#include <type_traits>

namespace Bracewell {

/// What an Expectation has room for.
struct ExpectationSizes {
  std::int64_t images; ///< at most
  int shifts;          ///< of every image and pose, at most
  int height;          ///< of images
  int width;           ///< of images, the full one
  int best = 1;        ///< candidates that are ranked for every image; 0: none
  /// Bytes for scores. If the scores of 32 or more images fit, they are computed once. Otherwise the sums compute them
  /// again.
  std::int64_t bytes = std::int64_t(256) << 20;
};

/// Images of an Expectation. Filters and noise whose first axis has extent 1 are shared.
template <class T, class MemorySpace>
struct ExpectationImages {
  /// [N, h, w/2+1], zero frequency and real-space origin at index 0.
  Array<const Kokkos::complex<T>, MemorySpace> spectra;
  /// [N|1, shells or more] variance of the real part of the noise, and of the imaginary part, in every shell of
  /// shell_averages; above zero.
  Array<const T, MemorySpace> noise;
  Array<const T, MemorySpace> filters =
      {}; ///< [N|1, h, w/2+1] multiply projections, for instance CTFs; optional
  Array<const T, MemorySpace> origins =
      {}; ///< [N, 2] shifts that the shifts of the plan are added to; optional
};

/// Poses of an Expectation, and priors: probabilities, or numbers in proportion to them. A candidate whose prior is zero is
/// left out.
template <class T, class MemorySpace>
struct ExpectationPoses {
  Array<const T, MemorySpace> matrices; ///< [P, d, d], each like the matrices of Poses
  /// N + 1 numbers on the host: image i has poses first[i] to first[i + 1] - 1. Empty: all images have all poses.
  std::span<const std::int64_t> first = {};
  Array<const T, MemorySpace> priors = {};       ///< [P], or [K, P] of every class; optional: 1
  Array<const T, MemorySpace> class_priors = {}; ///< [K]; optional: 1
};

/// What Expectation::run writes. It computes only the arrays that are given. It adds to volumes, and overwrites the rest.
template <class T, class MemorySpace, int D>
struct ExpectationResults {
  /// [N] log p(X), the logarithm of the sum of prior times likelihood over all candidates. Minus infinity: all priors are zero.
  /// NaN: a projection is not finite, and the image adds to nothing.
  Array<double, MemorySpace> log_evidence = {};
  Array<T, MemorySpace> class_shares = {}; ///< [N, K] posteriors of classes
  Array<T, MemorySpace> posteriors =
      {};                               ///< [N, best] the largest, in falling order; goes with the next three
  Array<int, MemorySpace> classes = {}; ///< [N, best] of these candidates; -1: there is none
  Array<int, MemorySpace> poses =
      {}; ///< [N, best] indices into the matrices; of equal ones the first comes first
  Array<int, MemorySpace> shifts = {}; ///< [N, best]

  /// [K, (D,) H, W/2+1] of the shape of the reference: backproject's data of posterior C X / variance, moved back.
  SpectraArray<Kokkos::complex<T>, MemorySpace, D> data = {};
  Array<T, MemorySpace> weight = {}; ///< like data: of posterior C^2 / variance; given together with data

  Array<T, MemorySpace> shares = {};       ///< [N] part of the posterior in the sums
  Array<int, MemorySpace> candidates = {}; ///< [N] number of candidates in the sums
  Array<double, MemorySpace> shift_sums =
      {}; ///< [N, 3] posterior times row, column and squared length of the shift
  /// [N, shells, 3] posterior sums over a shell of the full spectrum of |X|^2, Re(conj(X) C P) and |C P|^2. The residual
  /// |X - C P|^2 is the first - 2 the second + the third. The scale of images is the second over the third.
  Array<double, MemorySpace> shell_sums = {};
};

/// Poses that have the posterior of images, image by image: what a finer pass begins with.
struct ExpectationSupport {
  std::vector<std::int32_t> poses; ///< indices into the matrices, in rising order for every image
  std::vector<std::int64_t> first; ///< N + 1 numbers: image i has poses[first[i]] to poses[first[i + 1] - 1]
};

/// Poses about those of an ExpectationSupport: of an image, in order, each of its poses times each turn.
template <class T, class ExecutionSpace>
struct TurnedPoses {
  Kokkos::View<T***, Kokkos::LayoutRight, ExecutionSpace> matrices; ///< [P, d, d]
  std::vector<std::int64_t> first;                                  ///< as in ExpectationPoses
  Kokkos::View<T**, Kokkos::LayoutRight, ExecutionSpace> priors;    ///< [K|1, P]; empty without priors
};

/// The second of two passes of an Expectation.
template <class T, class MemorySpace>
struct ExpectationTurns {
  Array<const T, MemorySpace> matrices; ///< [Q, d, d]; the finer poses about M are M times each
  /// Poses of an image that the first pass hands on, at most; the likeliest stay.
  std::int64_t most = std::int64_t(1) << 31;
};

/// The expectation step of classification and refinement: images against projections of K references at many poses and
/// shifts, their posteriors, and sums with them. Image X, candidate z (class, pose and shift), projection P_z as `project`
/// yields it, filter C, noise of variance v (Scheres 2012, J Mol Biol 415, 406):
///   log p(X | z) = - sum over stored k of m (|X - C P_z|^2 / (2 v) + log(2 pi v)) / 2,   m: multiplicity
///   p(z | X) = prior(z) p(X | z) / p(X)
/// \code
/// Expectation<Space> step(space, {.images = N, .shifts = 29, .height = n, .width = n}, {.radius = 30});
/// step.set_images(space, {.spectra = images, .noise = variances, .filters = ctf});
/// step.set_shifts(space, shifts);
/// step.run(space, prepare<Linear>(space, references), {.matrices = matrices},
///          {.log_evidence = evidence, .data = data, .weight = weight});
/// \endcode
/// Memory is ExpectationSizes::bytes and a few megabytes for each sum, at any number of candidates. The sums leave out
/// candidates that together have at most 1 - share of the posterior. With Strategy::Owned the sums have the same bits in
/// every run. The other results always have the same bits. In float a log-likelihood has an error of about 1e-7 of sum m |C
/// P|^2 / v and of sum m |C P| |X| / v. So has the logarithm of a posterior. Movable; for one instance at a time.
///
/// @tparam T  float or double, of images, references and sums
template <class ExecutionSpace, class T = float>
class Expectation {
  using Memory = typename ExecutionSpace::memory_space;

public:
  /// @param options  radius: frequencies that are compared, by default up to the images' Nyquist limit, min(h, w) / 2.
  /// oversampling and ewald_radius: as `project` takes them. strategy and kernel_weights: as `backproject` takes them.
  /// @throws Error on sizes or options out of range, and on Strategy::Duplicated
  Expectation(const ExecutionSpace& space, const ExpectationSizes& sizes,
              const ProjectionOptions& options = {});

  /// Copies the images. Waits.
  /// @throws Error on shapes that do not fit, values that are not finite, and variances that are not above zero
  void set_images(const ExecutionSpace& space, const ExpectationImages<T, Memory>& images);

  /// @param shifts  [S, 2] in pixels (row, column), with the sign of Poses::shifts
  /// @param priors  [S]; optional: 1
  /// @throws Error on shapes that do not fit, and values that are not finite. Waits.
  void set_shifts(const ExecutionSpace& space, const Array<const T, Memory>& shifts,
                  const Array<const T, Memory>& priors = {});

  /// Takes the expectation of all images. Waits between groups of images.
  /// @param reference  of K volumes, or of K images for poses in the plane
  /// @param share      least part of the posterior that the sums include, from 0 to 1; 1: all candidates
  /// @throws Error on shapes that do not fit, values that are not finite, negative priors, shared memory, and before images
  /// and shifts are set; nothing is written then
  template <class Kernel, int D, class Stored>
  void run(const ExecutionSpace& space, const PreparedReference<Kernel, ExecutionSpace, D, Stored>& reference,
           const ExpectationPoses<T, Memory>& poses, const ExpectationResults<T, Memory, D>& results,
           double share = 0.999) {
    constexpr bool one_precision = std::is_same_v<Impl::real_of_stored<Stored>, T>;
    static_assert(one_precision,
                  "Bracewell::Expectation::run: reference: expected the precision of the plan, "
                  "found float beside double.");
    if constexpr (one_precision)
      take(space, reference, poses, results, share, nullptr);
  }

  /// The poses that together have a share of the posterior of each image, summed over classes and shifts.
  /// @param means  [N, 2] mean shift of the same candidates, less the origin; optional
  /// @param share  as in run
  /// @param most   poses of an image, at most; the likeliest stay, of equal ones the first
  /// @throws Error as run, and on most < 1. Waits.
  template <class Kernel, int D, class Stored>
  ExpectationSupport support(const ExecutionSpace& space,
                             const PreparedReference<Kernel, ExecutionSpace, D, Stored>& reference,
                             const ExpectationPoses<T, Memory>& poses, const Array<T, Memory>& means = {},
                             double share = 0.999, std::int64_t most = std::int64_t(1) << 31);

  /// The poses of a support times each turn, with the priors of the poses.
  /// @throws Error on shapes that do not fit. Waits.
  static TurnedPoses<T, ExecutionSpace> turned(const ExecutionSpace& space,
                                               const ExpectationPoses<T, Memory>& poses,
                                               const ExpectationSupport& support,
                                               const Array<const T, Memory>& turns);

  /// Two passes in one call (Scheres 2012, adaptive expectation). `coarse` takes the expectation at all poses and at its
  /// shifts. This one takes it where the posterior is: at the turns about each pose of support(), and at its own shifts about
  /// the mean shift. The results are those of the second pass; their poses are indices into what it returns.
  /// @param coarse  of boxes like these, with shifts set; usually of a smaller radius. It is set to the images.
  /// @param images  of both passes
  /// @throws Error as set_images, run and support
  template <class Kernel, int D, class Stored>
  TurnedPoses<T, ExecutionSpace>
  run_passes(const ExecutionSpace& space, Expectation& coarse, const ExpectationImages<T, Memory>& images,
             const PreparedReference<Kernel, ExecutionSpace, D, Stored>& reference,
             const ExpectationPoses<T, Memory>& poses, const ExpectationTurns<T, Memory>& turns,
             const ExpectationResults<T, Memory, D>& results, double share = 0.999);

  /// How many frequencies of the full spectrum are compared in each shell, from shell 0 on. The mean of a residual over
  /// images, divided by twice this number, is the variance of the noise.
  const std::vector<std::int64_t>& shell_sizes() const { return plan_.shell_sizes; }

  /// Bytes of memory that it holds.
  std::size_t memory_bytes() const { return plan_.memory_bytes(); }

private:
  static ProjectionOptions check(const ExpectationSizes& sizes, ProjectionOptions options) {
    constexpr Impl::Arguments arguments{"Expectation"};
    Impl::check_scoring_sizes(arguments, sizes, 1 << 20, options);
    arguments.within<std::int64_t>("sizes.bytes", sizes.bytes, 0, std::int64_t(1) << 32);
    arguments.require(options.strategy != Strategy::Duplicated, "options.strategy",
                      "Automatic, Atomic or Owned", "Duplicated");
    return options;
  }

  template <class Kernel, int D, class Stored>
  void take(const ExecutionSpace& space,
            const PreparedReference<Kernel, ExecutionSpace, D, Stored>& reference,
            const ExpectationPoses<T, Memory>& poses, const ExpectationResults<T, Memory, D>& results,
            double share, Impl::FoundPoses* found);

  /// Checks the shapes of results, and says where they are.
  template <int D>
  std::vector<Impl::NamedMemory> check(const Impl::ProjectionArguments& arguments, std::int64_t classes,
                                       const Impl::ArrayShape& reference,
                                       const ExpectationResults<T, Memory, D>& results) const {
    const std::int64_t images = plan_.scoring.images, ranks = plan_.ranks;
    std::vector<Impl::NamedMemory> memory{{"results.data", results.data}, {"results.weight", results.weight}};
    const auto shape = [&](const char* name, const auto& array, std::initializer_list<std::int64_t> extents,
                           bool needed = false) {
      if (array || needed)
        arguments.shape(name, array, extents);
      memory.emplace_back(name, array);
    };
    shape("results.log_evidence", results.log_evidence, {images});
    shape("results.class_shares", results.class_shares, {images, classes});
    const bool best = results.posteriors || results.classes || results.poses || results.shifts;
    arguments.require(ranks > 0 || !best, "results.posteriors", "sizes.best > 0", "0");
    shape("results.posteriors", results.posteriors, {images, ranks}, best);
    shape("results.classes", results.classes, {images, ranks}, best);
    shape("results.poses", results.poses, {images, ranks}, best);
    shape("results.shifts", results.shifts, {images, ranks}, best);
    arguments.require(bool(results.data) == bool(results.weight), "results.weight",
                      "data and weight together", "one without the other");
    if (results.data) {
      arguments.same_spectrum("results.data", results.data, reference);
      arguments.same_spectrum("results.weight", results.weight, reference);
    }
    shape("results.shares", results.shares, {images});
    shape("results.candidates", results.candidates, {images});
    shape("results.shift_sums", results.shift_sums, {images, 3});
    shape("results.shell_sums", results.shell_sums, {images, plan_.shells.count, 3});
    return memory;
  }

  void check_lists(const Impl::Arguments& arguments, std::span<const std::int64_t> first,
                   std::int64_t poses) const {
    if (first.empty())
      return;
    const std::size_t images = std::size_t(plan_.scoring.images);
    if (first.size() != images + 1)
      arguments.refuse("poses.first", "%lld numbers of %lld images, found %lld",
                       static_cast<long long>(images + 1), static_cast<long long>(images),
                       static_cast<long long>(first.size()));
    for (std::size_t i = 0; i < images; ++i)
      if (first[i] < 0 || first[i + 1] < first[i] || first[i + 1] > poses)
        arguments.refuse("poses.first", "ascending numbers from 0 to %lld, found %lld to %lld of image %lld",
                         static_cast<long long>(poses), static_cast<long long>(first[i]),
                         static_cast<long long>(first[i + 1]), static_cast<long long>(i));
  }

  std::int64_t most_images_;
  Impl::ExpectationPlan<ExecutionSpace, T> plan_;
};

template <class ExecutionSpace, class T>
Expectation<ExecutionSpace, T>::Expectation(const ExecutionSpace& space, const ExpectationSizes& sizes,
                                            const ProjectionOptions& options)
    : most_images_(sizes.images), plan_(space, {{sizes.width, sizes.height}}, sizes.images, sizes.shifts,
                                        sizes.best, sizes.bytes, check(sizes, options)) {}

template <class ExecutionSpace, class T>
void Expectation<ExecutionSpace, T>::set_images(const ExecutionSpace& space,
                                                const ExpectationImages<T, Memory>& images) {
  const Impl::Arguments arguments{"Expectation::set_images"};
  const auto& layout = plan_.scoring.layout;
  arguments.given("images.spectra", images.spectra);
  arguments.given("images.noise", images.noise);
  const std::int64_t count = images.spectra.extents[0], shells = plan_.shells.count;
  arguments.same_spectrum("images.spectra", images.spectra, plan_.scoring.spectra({count}));
  arguments.require(
      count <= most_images_, "images.spectra",
      [&] { return "at most " + Impl::number(most_images_) + " images"; },
      [&] { return images.spectra.shape(); });
  const auto of = [&](const auto& array) -> std::int64_t { return array.extents[0] == 1 ? 1 : count; };
  if (images.filters)
    arguments.same_spectrum("images.filters", images.filters, plan_.scoring.spectra({of(images.filters)}));
  const auto& noise = images.noise;
  arguments.require(
      noise.rank == 2 && noise.extents[0] == of(noise) && noise.extents[1] >= shells, "images.noise",
      [&] { return "[1|" + Impl::number(count) + ", " + Impl::number(shells) + " shells or more]"; },
      [&] { return noise.shape(); });
  if (images.origins)
    arguments.shape("images.origins", images.origins, {count, 2});
  const auto* const parts = reinterpret_cast<const T*>(images.spectra.data);
  Impl::check_values(space, arguments, "images.spectra", parts, 2 * images.spectra.size(),
                     Impl::Allowed::Finite);
  const auto values = [&](const char* name, const Array<const T, Memory>& array, Impl::Allowed allowed) {
    Impl::check_values(space, arguments, name, array.data, array ? array.size() : 0, allowed);
  };
  values("images.noise", noise, Impl::Allowed::Positive);
  values("images.filters", images.filters, Impl::Allowed::Finite);
  values("images.origins", images.origins, Impl::Allowed::Finite);
  plan_.set_images(space, count,
                   {.layout = layout,
                    .shells = {},
                    .spectra = images.spectra.data,
                    .filters = images.filters.data,
                    .variances = nullptr,
                    .origins = images.origins.data,
                    .filter_stride = images.filters && images.filters.extents[0] != 1 ? layout.elements() : 0,
                    .noise_stride = noise.extents[0] != 1 ? std::int64_t(1) : 0},
                   noise.data, noise.extents[1]);
}

template <class ExecutionSpace, class T>
void Expectation<ExecutionSpace, T>::set_shifts(const ExecutionSpace& space,
                                                const Array<const T, Memory>& shifts,
                                                const Array<const T, Memory>& priors) {
  const Impl::Arguments arguments{"Expectation::set_shifts"};
  arguments.given("shifts", shifts);
  const std::int64_t count = shifts.extents[0];
  arguments.shape("shifts", shifts, {count, 2});
  arguments.require(
      count <= plan_.scoring.most_shifts, "shifts",
      [&] { return "at most " + Impl::number(plan_.scoring.most_shifts) + " shifts"; },
      [&] { return shifts.shape(); });
  if (priors)
    arguments.shape("priors", priors, {count});
  Impl::check_values(space, arguments, "shifts", shifts.data, 2 * count, Impl::Allowed::Finite);
  Impl::check_values(space, arguments, "priors", priors.data, count, Impl::Allowed::NotNegative);
  plan_.set_shifts(space, static_cast<int>(count), shifts.data, priors.data);
}

template <class ExecutionSpace, class T>
template <class Kernel, int D, class Stored>
void Expectation<ExecutionSpace, T>::take(
    const ExecutionSpace& space, const PreparedReference<Kernel, ExecutionSpace, D, Stored>& reference,
    const ExpectationPoses<T, Memory>& poses, const ExpectationResults<T, Memory, D>& results, double share,
    Impl::FoundPoses* found) {
  Kokkos::Profiling::ScopedRegion region("Bracewell::Expectation::run");
  const Impl::ProjectionArguments arguments{{"Expectation::run"}};
  const auto source = reference.reference(arguments.function, "reference");
  const std::int64_t classes = source.shape.extents[0];
  arguments.require(classes >= 1, "reference", "one class or more", "none");
  arguments.require(plan_.scoring.images >= 0, "images", "set_images before", "none");
  arguments.require(plan_.scoring.shifts >= 0, "shifts", "set_shifts before", "none");
  arguments.within("share", share, 0., 1.);
  arguments.given("poses.matrices", poses.matrices);
  const std::int64_t count = poses.matrices.extents[0];
  arguments.shape("poses.matrices", poses.matrices, {count, D, D});
  arguments.require(count < std::int64_t(1) << 31, "poses.matrices", "fewer than 2^31",
                    [&] { return Impl::number(count); });
  const bool by_class = poses.priors.rank == 2;
  if (poses.priors && by_class)
    arguments.shape("poses.priors", poses.priors, {classes, count});
  else if (poses.priors)
    arguments.shape("poses.priors", poses.priors, {count});
  if (poses.class_priors)
    arguments.shape("poses.class_priors", poses.class_priors, {classes});
  check_lists(arguments, poses.first, count);
  const Impl::NamedMemory inputs[] = {source.memory,
                                      {"poses.matrices", poses.matrices},
                                      {"poses.priors", poses.priors},
                                      {"poses.class_priors", poses.class_priors}};
  arguments.disjoint(check(arguments, classes, source.shape, results), inputs);
  if (!plan_.options.oversampling)
    plan_.options.oversampling = source.oversampling;
  plan_.template check_boxes<Kernel, D>(arguments, source.shape);
  const auto values = [&](const char* name, const Array<const T, Memory>& array, Impl::Allowed allowed) {
    Impl::check_values(space, arguments, name, array.data, array ? array.size() : 0, allowed);
  };
  values("poses.matrices", poses.matrices, Impl::Allowed::Finite);
  values("poses.priors", poses.priors, Impl::Allowed::NotNegative);
  values("poses.class_priors", poses.class_priors, Impl::Allowed::NotNegative);

  const Impl::ExpectationList<T> list{
      .matrices = poses.matrices.data,
      .first = 0,
      .count = count,
      .logs =
          plan_.logs_of(space, plan_.pose_logs, poses.priors.data, poses.priors ? poses.priors.size() : 0),
      .log_stride = by_class ? count : 0,
      .class_logs = plan_.logs_of(space, plan_.class_logs, poses.class_priors.data, classes),
      .left_out = 1 - share,
      .found = found};
  if (poses.first.empty())
    plan_.template run<Kernel, D>(space, source, list, 0, plan_.scoring.images, results);
  else
    plan_.template run_lists<Kernel, D>(space, source, list, poses.first, results);
}

template <class ExecutionSpace, class T>
template <class Kernel, int D, class Stored>
ExpectationSupport
Expectation<ExecutionSpace, T>::support(const ExecutionSpace& space,
                                        const PreparedReference<Kernel, ExecutionSpace, D, Stored>& reference,
                                        const ExpectationPoses<T, Memory>& poses,
                                        const Array<T, Memory>& means, double share, std::int64_t most) {
  constexpr Impl::Arguments arguments{"Expectation::support"};
  arguments.within<std::int64_t>("most", most, 1, std::int64_t(1) << 31);
  const std::int64_t images = std::max<std::int64_t>(plan_.scoring.images, 0);
  if (means)
    arguments.shape("means", means, {images, 2});
  const auto sums = Impl::device_view<double**>(space, "Bracewell::Expectation::shift_sums", images, 3);
  const auto shares = Impl::device_vector<T>(space, "Bracewell::Expectation::shares", images);
  ExpectationResults<T, Memory, D> results;
  results.shift_sums = sums;
  results.shares = shares;
  Impl::FoundPoses found{.most = most, .poses = {}};
  take(space, reference, poses, results, share, &found);
  if (means)
    Kokkos::parallel_for(
        "Bracewell::Expectation::mean_shifts",
        Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, 2 * images),
        Impl::TakeMeanShifts<T>{sums.data(), shares.data(), means.data});
  space.fence("Bracewell::Expectation: the support is found");
  return {std::move(found.poses), std::move(found.first)};
}

template <class ExecutionSpace, class T>
TurnedPoses<T, ExecutionSpace>
Expectation<ExecutionSpace, T>::turned(const ExecutionSpace& space, const ExpectationPoses<T, Memory>& poses,
                                       const ExpectationSupport& support,
                                       const Array<const T, Memory>& turns) {
  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  constexpr Impl::Arguments arguments{"Expectation::turned"};
  arguments.given("poses.matrices", poses.matrices);
  arguments.given("turns", turns);
  const std::int64_t d = poses.matrices.rank == 3 ? poses.matrices.extents[2] : 0,
                     all = poses.matrices.extents[0], each = turns.extents[0],
                     count = static_cast<std::int64_t>(support.poses.size()) * each;
  arguments.require(d == 2 || d == 3, "poses.matrices", "[P, d, d] with d of 2 or 3",
                    [&] { return poses.matrices.shape(); });
  arguments.shape("poses.matrices", poses.matrices, {all, d, d});
  arguments.shape("turns", turns, {each, d, d});
  for (const std::int32_t pose : support.poses)
    arguments.within<std::int64_t>("support.poses", pose, 0, all - 1);
  const std::int64_t classes = poses.priors.rank == 2 ? poses.priors.extents[0] : 1;
  if (poses.priors && poses.priors.rank == 2)
    arguments.shape("poses.priors", poses.priors, {classes, all});
  else if (poses.priors)
    arguments.shape("poses.priors", poses.priors, {all});
  const auto listed = Impl::device_copy(space, "Bracewell::Expectation::support", support.poses);
  TurnedPoses<T, ExecutionSpace> result{
      Impl::device_view<T***>(space, "Bracewell::Expectation::turned", count, d, d), support.first, {}};
  for (std::int64_t& number : result.first)
    number *= each;
  Kokkos::parallel_for("Bracewell::Expectation::turn", Range(space, 0, count * d * d),
                       Impl::TurnPoses<T>{poses.matrices.data, turns.data, listed.data(), each,
                                          static_cast<int>(d), result.matrices.data()});
  if (poses.priors) {
    result.priors = Impl::device_view<T**>(space, "Bracewell::Expectation::turned_priors", classes, count);
    Kokkos::parallel_for(
        "Bracewell::Expectation::turned_priors", Range(space, 0, classes * count),
        Impl::RepeatPriors<T>{poses.priors.data, listed.data(), all, each, count, result.priors.data()});
  }
  space.fence("Bracewell::Expectation: poses are turned");
  return result;
}

template <class ExecutionSpace, class T>
template <class Kernel, int D, class Stored>
TurnedPoses<T, ExecutionSpace> Expectation<ExecutionSpace, T>::run_passes(
    const ExecutionSpace& space, Expectation& coarse, const ExpectationImages<T, Memory>& images,
    const PreparedReference<Kernel, ExecutionSpace, D, Stored>& reference,
    const ExpectationPoses<T, Memory>& poses, const ExpectationTurns<T, Memory>& turns,
    const ExpectationResults<T, Memory, D>& results, double share) {
  coarse.set_images(space, images);
  const std::int64_t count = images.spectra.extents[0];
  auto places = Impl::device_view<T**>(space, "Bracewell::Expectation::places", count, 2);
  const auto support = coarse.support(space, reference, poses, places, share, turns.most);
  auto result = turned(space, poses, support, turns.matrices);
  ExpectationImages<T, Memory> moved = images;
  if (images.origins)
    Kokkos::parallel_for(
        "Bracewell::Expectation::move",
        Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, 2 * count),
        Impl::AddValues<T>{images.origins.data, places.data()});
  moved.origins = places;
  set_images(space, moved);
  ExpectationPoses<T, Memory> finer{
      .matrices = result.matrices, .first = result.first, .class_priors = poses.class_priors};
  if (poses.priors && poses.priors.rank == 2)
    finer.priors = result.priors;
  else if (poses.priors)
    finer.priors = Kokkos::subview(result.priors, 0, Kokkos::ALL);
  run(space, reference, finer, results, share);
  return result;
}

#define BRACEWELL_INSTANCES_EXPECTATION(Extern, Space, Real) Extern template class Expectation<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_EXPECTATION)
#define BRACEWELL_EXPECTATION_OF(Extern, Space, Real, Kernel, Stored)                                        \
  Extern template void Expectation<Space, Real>::take(                                                       \
      const Space&, const PreparedReference<Kernel, Space, 2, Stored>&,                                      \
      const ExpectationPoses<Real, Space::memory_space>&,                                                    \
      const ExpectationResults<Real, Space::memory_space, 2>&, double, Impl::FoundPoses*);                   \
  Extern template void Expectation<Space, Real>::take(                                                       \
      const Space&, const PreparedReference<Kernel, Space, 3, Stored>&,                                      \
      const ExpectationPoses<Real, Space::memory_space>&,                                                    \
      const ExpectationResults<Real, Space::memory_space, 3>&, double, Impl::FoundPoses*);
#define BRACEWELL_INSTANCES_EXPECTATION_OF(Extern, Space, Real, Kernel)                                      \
  BRACEWELL_EXPECTATION_OF(Extern, Space, Real, Kernel, Kokkos::complex<Real>)
BRACEWELL_DECLARE_KERNELS(BRACEWELL_DECLARE, BRACEWELL_INSTANCES_EXPECTATION_OF)
#define BRACEWELL_INSTANCES_EXPECTATION_OF_HALF(Extern, Space, Real, Kernel)                                 \
  BRACEWELL_EXPECTATION_OF(Extern, Space, Real, Kernel, HalfComplex)
BRACEWELL_DECLARE_KERNELS(BRACEWELL_DECLARE_FLOAT, BRACEWELL_INSTANCES_EXPECTATION_OF_HALF)

} // namespace Bracewell
