// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/memory.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/detail/expectation/posteriors.hpp>
#include <bracewell/project/detail/expectation/weighted_sums.hpp>
#include <bracewell/project/detail/scoring/scoring_plan.hpp>
#include <bracewell/project/project.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

namespace Bracewell::Impl {

/// The reference of one class.
template <class Stored>
StoredSpectra<Stored> spectra_of_class(const StoredSpectra<Stored>& all, std::int64_t index) {
  return {all.data + index * all.batch_stride, 0, all.gain};
}
template <class Stored, int D, int width>
PaddedSpectra<Stored, D, width> spectra_of_class(const PaddedSpectra<Stored, D, width>& all,
                                                 std::int64_t index) {
  return {all.entries + (all.one_for_all ? 0 : index * all.order.size), all.order, true, all.gain};
}

/// Throws where values are not allowed, with the first of them; waits.
template <class Space, class T>
[[gnu::cold]] void check_values(const Space& space, const Arguments& arguments, const char* argument,
                                const T* values, std::int64_t size, Allowed allowed) {
  if (values == nullptr || size == 0)
    return;
  std::int64_t first = size;
  Kokkos::parallel_reduce("Bracewell::Expectation::check",
                          Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, size),
                          FindRefused<T>{values, allowed}, Kokkos::Min<std::int64_t>(first));
  if (first >= size)
    return;
  T value;
  copy_to_host(space, values + first, 1, &value);
  space.fence("Bracewell::Expectation: a value is refused");
  constexpr const char* expected[] = {"finite values", "finite values, none negative",
                                      "finite values above zero"};
  arguments.refuse(argument, "%s, found %.6g at element %lld", expected[int(allowed)], double(value),
                   static_cast<long long>(first));
}

/// The first values of rows.
template <class T>
struct CopyRows {
  const T* from;
  std::int64_t stride;
  T* to;
  std::int64_t length;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { to[i] = from[i / length * stride + i % length]; }
};

/// Matrices of listed poses, side by side.
template <class T>
struct GatherMatrices {
  const T* matrices;
  const std::int32_t* listed;
  T* to;
  int size;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    to[i] = matrices[std::int64_t(listed[i / size]) * size + i % size];
  }
};

/// Poses that have the posterior of images.
struct FoundPoses {
  std::int64_t most;               ///< of an image
  std::vector<std::int32_t> poses; ///< in rising order, image by image
  std::vector<std::int64_t> first = {0};
};

/// Poses that images have in common, priors, and which part of the posterior the sums leave out.
template <class T>
struct ExpectationList {
  const T* matrices;
  std::int64_t first, count;
  const T* logs; ///< [classes|1, all poses]; null: none
  std::int64_t log_stride;
  const T* class_logs; ///< [classes]; null: none
  double left_out;
  FoundPoses* found;      ///< null: not wanted
  PoseRanges ranges = {}; ///< of all images
};

/// Memory of an Expectation, and what it launches; `tiles` as in ScoringPlan.
template <class Space, class T, bool tiles = !is_host<Space>>
struct ExpectationPlan {
  using Scoring = ScoringPlan<Space, T, tiles>;
  using Complex = Kokkos::complex<T>;
  using MemorySpace = typename Space::memory_space;
  template <class Value>
  using Memory = Kokkos::View<Value*, Space>;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  using Teams = Kokkos::TeamPolicy<Space>;
  using Tile = PosteriorTile<Space, T, Scoring::items_first>;
  static constexpr int team_size = Scoring::team_size;
  static constexpr std::int64_t few_images = 32;   ///< fewer would leave projections too dear
  static constexpr std::int64_t most_images = 256; ///< at once, where scores are not kept
  static constexpr std::int64_t list_images = 16;  ///< at once, of lists of their own
  static constexpr std::int64_t sum_bytes = std::int64_t(64) << 20;
  static constexpr std::int64_t sum_threads =
      1 << 18; ///< that SumOverPoses has at least on GPUs, if parts allow it

  Scoring scoring;
  ProjectionOptions options;
  int ranks;
  Memory<T> scores; ///< of tiles
  Memory<std::int32_t> shell, order, begin;
  FrequencyShells shells;
  std::vector<std::int64_t> shell_sizes; ///< of the full spectrum
  Memory<double> constants, image_powers;
  Memory<T> variances, shift_values, shift_logs, class_logs, pose_logs;
  std::int64_t noise_stride = 0;
  bool has_shift_logs = false;

  // Of a group of images; they grow.
  Memory<PartSum<T>> part_sums;
  Memory<ImageEvidence<T>> evidence;
  Memory<std::uint8_t> wanted, support;
  Memory<std::int64_t> ranges;
  Memory<RankedCandidate<T>> ranked, fresh;
  Memory<T> totals, pose_shares, matrices, overlaps, powers;
  Memory<PosteriorSums> posterior_sums;
  Memory<std::int32_t> listed;
  Memory<std::int64_t> found_poses;
  Memory<Complex> data, projections;
  Memory<T> weights;

  ExpectationPlan(const Space& space, const HalfSpectrumLayout<2>& layout, std::int64_t images,
                  int shift_count, int ranks_, std::int64_t bytes, const ProjectionOptions& options_)
      : scoring(space, layout, ScoreRule<T>(), images, shift_count, 0, *options_.radius), options(options_),
        ranks(ranks_) {
    const std::int64_t least = std::min(images, most_images) * shift_count * part_poses;
    scores = device_vector<T>(space, "Bracewell::Expectation::scores",
                              std::max(bytes / std::int64_t(sizeof(T)), least));
    make_shells(space, *options.radius);
    constants = device_vector<double>(space, "Bracewell::Expectation::constants", images);
    image_powers =
        device_vector<double>(space, "Bracewell::Expectation::image_powers", images * shells.count);
    variances = device_vector<T>(space, "Bracewell::Expectation::variances", images * shells.count);
    shift_values = device_vector<T>(space, "Bracewell::Expectation::shifts", 2 * std::int64_t(shift_count));
    shift_logs = device_vector<T>(space, "Bracewell::Expectation::shift_priors", shift_count);
  }

  std::size_t memory_bytes() const {
    return scoring.memory_bytes() + bytes_of(scores, shell, order, begin, constants, image_powers, variances,
                                             shift_values, shift_logs, class_logs, pose_logs, part_sums,
                                             evidence, wanted, support, ranges, ranked, fresh, totals,
                                             pose_shares, matrices, overlaps, powers, posterior_sums, listed,
                                             found_poses, data, projections, weights);
  }

  /// @param noise  [count|1, given] variances of shells, of which the first are taken
  void set_images(const Space& space, std::int64_t count, ImagesInNoise<T> input, const T* noise,
                  std::int64_t given) {
    const bool one_noise = input.noise_stride == 0;
    noise_stride = input.noise_stride = one_noise ? 0 : shells.count;
    const std::int64_t values = (one_noise ? std::min<std::int64_t>(count, 1) : count) * shells.count;
    Kokkos::parallel_for("Bracewell::Expectation::variances", Range(space, 0, values),
                         CopyRows<T>{noise, given, variances.data(), shells.count});
    input.layout = scoring.layout;
    input.shells = shells;
    input.variances = variances.data();
    scoring.images = count;
    scoring.one_filter = input.filter_stride == 0 && one_noise;
    auto& tables = scoring.tables;
    if constexpr (Scoring::items_first)
      tables.images.stride = count, tables.filters.stride = scoring.one_filter ? 1 : count;
    Kokkos::parallel_for("Bracewell::Expectation::set_images",
                         Teams(space, static_cast<int>(count), team_size),
                         WeighInNoise<T, Scoring::items_first>{tables, input, scoring.one_filter ? 1 : count,
                                                               constants.data()});
    Kokkos::parallel_for("Bracewell::Expectation::image_powers", Range(space, 0, count * shells.count),
                         SumImagePowers<T>{input, tables.frequencies, image_powers.data()});
  }

  void set_shifts(const Space& space, int count, const T* values, const T* priors) {
    scoring.set_shifts(space, count, values);
    Kokkos::parallel_for("Bracewell::Expectation::shifts", Range(space, 0, 2 * std::int64_t(count)),
                         CopyRows<T>{values, 2, shift_values.data(), 2});
    has_shift_logs = priors != nullptr;
    if (has_shift_logs)
      Kokkos::parallel_for("Bracewell::Expectation::shift_priors", Range(space, 0, count),
                           TakeLogs<T>{priors, shift_logs.data()});
  }

  /// Logarithms of priors in memory that grows; null: none.
  const T* logs_of(const Space& space, Memory<T>& memory, const T* priors, std::int64_t count) {
    if (priors == nullptr)
      return nullptr;
    grow(space, memory, "priors", count);
    Kokkos::parallel_for("Bracewell::Expectation::priors", Range(space, 0, count),
                         TakeLogs<T>{priors, memory.data()});
    return memory.data();
  }

  /// Images that have lists, first[i] to first[i + 1] of image i. Some are taken together, so that launches of kernels do not
  /// take most of the time; their scores have room for all poses of the group, most of which are not computed.
  template <class Kernel, int D, class Reference, class Results>
  void run_lists(const Space& space, const Reference& reference, ExpectationList<T> list,
                 std::span<const std::int64_t> first, const Results& results) {
    const auto count = static_cast<std::int64_t>(first.size());
    grow(space, ranges, "ranges", count);
    copy_to_device(space, first.data(), first.size(), ranges.data());
    list.ranges = {ranges.data()};
    const std::int64_t of_pose = reference.shape.extents[0] * scoring.shifts,
                       capacity = static_cast<std::int64_t>(scores.size());
    for (std::int64_t image = 0, end; image + 1 < count; image = end) {
      const auto at = [&](std::int64_t i) { return first[static_cast<std::size_t>(i)]; };
      end = image + 1;
      while (end + 1 < count && end - image < list_images &&
             (end + 1 - image) * (at(end + 1) - at(image)) * of_pose <= capacity)
        ++end;
      list.first = at(image);
      list.count = at(end) - at(image);
      run<Kernel, D>(space, reference, list, image, end - image, results);
    }
    space.fence("Bracewell::Expectation: lists are copied");
  }

  /// Whether projections of images fit a reference.
  template <class Kernel, int D>
  void check_boxes(const ProjectionArguments& arguments, ArrayShape reference) const {
    reference.extents[0] = 1;
    arguments.template samples<2, D, Kernel>("reference", reference, "images", scoring.spectra({1, 1}),
                                             Scoring::template poses_at<D>(nullptr, 1), options);
  }

  /// Images from `first` on at the poses of a list, in groups.
  template <class Kernel, int D, class Reference, class Results>
  void run(const Space& space, const Reference& reference, const ExpectationList<T>& list, std::int64_t first,
           std::int64_t images, const Results& results) {
    const std::int64_t shifts = scoring.shifts, classes = reference.shape.extents[0],
                       capacity = static_cast<std::int64_t>(scores.size()),
                       of_image = std::max<std::int64_t>(1, classes * list.count * shifts),
                       at_once = capacity / of_image;
    Group group;
    group.kept = at_once >= std::min(images, few_images);
    const std::int64_t at_most =
        list.found
            ? std::clamp<std::int64_t>(capacity / std::max<std::int64_t>(list.count, 1), 1, most_images)
            : most_images;
    const std::int64_t most = std::min(images, group.kept ? at_once : at_most),
                       groups = most > 0 ? (images + most - 1) / most : 0;
    for (std::int64_t g = 0; g < groups; ++g) {
      group.first = first + images * g / groups;
      group.images = first + images * (g + 1) / groups - group.first;
      group.tile = group.kept
                       ? list.count
                       : std::min(list.count,
                                  std::max<std::int64_t>(capacity / (group.images * shifts) / part_poses, 1) *
                                      part_poses);
      group.parts = (list.count + part_poses - 1) / part_poses;
      run_group<Kernel, D>(space, reference, list, group, results);
    }
  }

private:
  /// Images whose posteriors are taken together.
  struct Group {
    std::int64_t first, images;
    std::int64_t tile;  ///< poses whose scores are in memory, of every class where they are kept
    std::int64_t parts; ///< of the poses of a class
    bool kept;          ///< all scores are: none is computed twice

    /// Where an array of `stride` values of each image has those of these images; null: not wanted.
    template <class Values>
    auto of(const Values& values, std::int64_t stride) const {
      return values ? values.data + first * stride : nullptr;
    }
  };

  template <class Value>
  static void grow(const Space& space, Memory<Value>& memory, const char* label, std::int64_t size) {
    if (static_cast<std::int64_t>(memory.size()) < size) {
      memory = Memory<Value>();
      memory = device_vector<Value>(space, std::string("Bracewell::Expectation::") + label, size);
    }
  }

  /// The frequencies that are compared, shell by shell: as shell_averages counts shells.
  void make_shells(const Space& space, double radius) {
    const auto& layout = scoring.layout;
    const typename Scoring::Frequencies frequencies(layout, radius);
    const auto count = static_cast<std::size_t>(frequencies.count);
    std::vector<std::int32_t> own(count), sorted(count), starts;
    const double along = double(layout.size[0]) / layout.size[1];
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = frequencies.values[i];
      own[i] =
          static_cast<std::int32_t>(std::sqrt(double(at.x) * at.x + at.y * along * (at.y * along)) + 0.5);
    }
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](int a, int b) { return own[std::size_t(a)] < own[std::size_t(b)]; });
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = std::size_t(sorted[i]);
      while (starts.size() <= std::size_t(own[at])) {
        starts.push_back(static_cast<std::int32_t>(i));
        shell_sizes.push_back(0);
      }
      shell_sizes.back() += layout.multiplicity(frequencies.values[at].x);
    }
    const int shell_count = static_cast<int>(starts.size());
    starts.push_back(static_cast<std::int32_t>(count));
    shell = device_copy(space, "Bracewell::Expectation::shell", own);
    order = device_copy(space, "Bracewell::Expectation::order", sorted);
    begin = device_copy(space, "Bracewell::Expectation::begin", starts);
    shells = {shell.data(), order.data(), begin.data(), shell_count};
  }

  /// What knows the images of a group alone.
  Scoring scoring_of(const Group& group) const {
    Scoring part = scoring;
    const std::int64_t step = Scoring::items_first ? 1 : scoring.tables.padded;
    part.images = group.images;
    part.tables.images.data += group.first * step;
    part.tables.powers += group.first;
    if (!scoring.one_filter)
      part.tables.filters.data += group.first * step;
    return part;
  }

  template <class Value>
  Array<Value, MemorySpace> image_array(std::int64_t count, Value* values) const {
    Array<Value, MemorySpace> array;
    static_cast<ArrayShape&>(array) = scoring.spectra({1, count});
    array.data = values;
    return array;
  }

  /// The scores of a tile.
  template <class Kernel, int D, class Reference>
  void score(const Space& space, const Reference& reference, const T* values, std::int64_t count,
             const Scoring& part, T* to, const std::uint8_t* wanted_parts, std::int64_t wanted_stride,
             bool apart) const {
    const ProjectionArguments arguments{{"Expectation::run"}};
    const auto samples = arguments.template samples<2, D, Kernel>(
        "reference", reference.shape, "images", scoring.spectra({1, count}),
        Scoring::template poses_at<D>(values, count), options);
    part.template score<Kernel, D, typename Reference::Stored>(
        space, samples, reference.spectra,
        {to, nullptr, nullptr, nullptr, wanted_parts, wanted_stride, apart});
  }

  /// visit(class, its reference, candidates of a tile) of all tiles.
  template <class Reference, class Visit>
  void for_tiles(const Reference& reference, const ExpectationList<T>& list, const Group& group,
                 const Visit& visit) const {
    const std::int64_t classes = reference.shape.extents[0], shifts = scoring.shifts;
    if (shifts == 0)
      return;
    for (std::int64_t c = 0; c < classes; ++c) {
      Reference own = reference;
      own.shape.extents[0] = 1;
      own.spectra = spectra_of_class(reference.spectra, c);
      for (std::int64_t first = 0; first < list.count; first += group.tile)
        visit(own,
              CandidateTile<T>{
                  .values = scores.data() + (group.kept ? c * group.images * list.count * shifts : 0),
                  .images = group.images,
                  .poses = static_cast<int>(std::min(group.tile, list.count - first)),
                  .shifts = static_cast<int>(shifts),
                  .class_index = static_cast<int>(c),
                  .first_pose = list.first + first,
                  .first_part = c * group.parts + first / part_poses,
                  .parts_of_image = classes * group.parts,
                  .pose_logs = list.logs ? list.logs + c * list.log_stride + list.first + first : nullptr,
                  .shift_logs = has_shift_logs ? shift_logs.data() : nullptr,
                  .class_logs = list.class_logs,
                  .ranges = {list.ranges.first ? list.ranges.first + group.first : nullptr},
                  .support = list.logs || list.ranges.first ? support.data() : nullptr});
    }
  }

  template <class Kernel, int D, class Reference, class Results>
  void run_group(const Space& space, const Reference& reference, const ExpectationList<T>& list,
                 const Group& group, const Results& results) {
    const std::int64_t n = group.images, classes = reference.shape.extents[0],
                       parts = scoring.shifts > 0 ? classes * group.parts : 0;
    const Scoring part = scoring_of(group);
    const auto matrices_of = [&](const CandidateTile<T>& tile) {
      return list.matrices + tile.first_pose * D * D;
    };
    grow(space, part_sums, "part_sums", n * parts);
    grow(space, wanted, "wanted", n * parts);
    if (list.logs || list.ranges.first)
      grow(space, support, "support", n * parts);
    grow(space, evidence, "evidence", n);
    const Teams images(space, static_cast<int>(n), team_size);

    const bool ranks_wanted(results.posteriors);
    if (ranks_wanted) {
      grow(space, ranked, "ranked", n * ranks);
      if (team_size > 1)
        grow(space, fresh, "fresh", 2 * n * ranks);
      fill(space, "Bracewell::Expectation::no_best", ranked.data(), n * ranks, RankedCandidate<T>());
    }
    for_tiles(reference, list, group, [&](const Reference& own, const CandidateTile<T>& tile) {
      if (tile.support)
        Kokkos::parallel_for("Bracewell::Expectation::support", Range(space, 0, n * tile.parts()),
                             MarkSupport<T>{tile, support.data()});
      score<Kernel, D>(space, own, matrices_of(tile), tile.poses, part, tile.values,
                       tile.support ? tile.support + tile.first_part : nullptr, tile.parts_of_image,
                       tile.ranges.first != nullptr);
      Kokkos::parallel_for("Bracewell::Expectation::sum_parts",
                           Teams(space, static_cast<int>(n * tile.parts()), is_host<Space> ? 1 : 128),
                           SumPosteriorParts<T>{tile, part_sums.data()});
      if (ranks_wanted)
        Kokkos::parallel_for("Bracewell::Expectation::rank", RankCandidates<T>::policy(space, n, team_size),
                             RankCandidates<T>{tile, part_sums.data(), ranked.data(), ranks, fresh.data()});
    });
    Kokkos::parallel_for("Bracewell::Expectation::evidence", images,
                         TakeEvidence<T>{part_sums.data(), static_cast<int>(classes),
                                         static_cast<int>(parts / classes), scoring.shifts, list.count,
                                         list.left_out, constants.data() + group.first, evidence.data(),
                                         wanted.data(), group.of(results.log_evidence, 1),
                                         group.of(results.class_shares, classes)});
    if (ranks_wanted)
      Kokkos::parallel_for("Bracewell::Expectation::best", Range(space, 0, n * ranks),
                           StoreBest<T>{ranked.data(), evidence.data(), ranks,
                                        group.of(results.posteriors, ranks), group.of(results.classes, ranks),
                                        group.of(results.poses, ranks), group.of(results.shifts, ranks)});
    if (results.data || results.shell_sums || results.shares || results.candidates || results.shift_sums ||
        list.found)
      sum_group<Kernel, D>(space, reference, list, group, part, results);
  }

  /// The second sweep: sums with the posteriors.
  template <class Kernel, int D, class Reference, class Results>
  void sum_group(const Space& space, const Reference& reference, const ExpectationList<T>& list,
                 const Group& group, const Scoring& part, const Results& results) {
    const std::int64_t n = group.images, frequencies = scoring.tables.count,
                       for_threads = sum_threads / std::max<std::int64_t>(n * frequencies, 1);
    const int shell_parts = !results.shell_sums ? 0
                            : is_host<Space>    ? 1
                                             : static_cast<int>(std::clamp<std::int64_t>(for_threads, 1, 64));
    grow(space, posterior_sums, "posterior_sums", n);
    fill(space, "Bracewell::Expectation::no_sums", posterior_sums.data(), n, PosteriorSums());
    grow(space, totals, "totals", n * group.tile);
    if (list.found) {
      grow(space, pose_shares, "pose_shares", n * list.count);
      clear(space, "Bracewell::Expectation::zero", pose_shares.data(), n * list.count);
    }
    std::int64_t at_once = 0; // no sums over images or poses are wanted
    if (results.data || shell_parts > 0)
      at_once = make_room<D>(space, group, bool(results.data), shell_parts);
    for_tiles(reference, list, group, [&](const Reference& own, const CandidateTile<T>& tile) {
      const T* const all_matrices = list.matrices + tile.first_pose * D * D;
      if (!group.kept)
        score<Kernel, D>(space, own, all_matrices, tile.poses, part, tile.values,
                         wanted.data() + tile.first_part, tile.parts_of_image, tile.ranges.first != nullptr);
      Kokkos::parallel_for("Bracewell::Expectation::posteriors", Teams(space, static_cast<int>(n), team_size),
                           MakePosteriors<T>{tile, evidence.data(), wanted.data(), shift_values.data(),
                                             totals.data(), posterior_sums.data()});
      if (list.found)
        Kokkos::parallel_for("Bracewell::Expectation::pose_shares", Range(space, 0, n * tile.poses),
                             AddPoseShares<T>{totals.data(), tile.poses,
                                              pose_shares.data() + (tile.first_pose - list.first),
                                              list.count});
      if (at_once > 0)
        sum_tile<Kernel, D>(space, own, all_matrices, part, tile, at_once, shell_parts, results);
    });
    if (list.found)
      find_poses(space, list, n, *list.found);
    Kokkos::parallel_for("Bracewell::Expectation::store", Range(space, 0, n),
                         StorePosteriorSums<T>{posterior_sums.data(), group.of(results.shares, 1),
                                               group.of(results.candidates, 1),
                                               group.of(results.shift_sums, 3)});
    if (shell_parts > 0)
      Kokkos::parallel_for("Bracewell::Expectation::shells", Range(space, 0, n * shells.count),
                           SumShells<T>{shells, overlaps.data(), powers.data(), shell_parts, n, frequencies,
                                        image_powers.data() + group.first * shells.count,
                                        variances.data() + group.first * noise_stride, noise_stride,
                                        posterior_sums.data(),
                                        group.of(results.shell_sums, 3 * shells.count)});
  }

  /// Room for sums over images, which go into volumes, and over poses: returns how many poses are summed at once.
  template <int D>
  std::int64_t make_room(const Space& space, const Group& group, bool volumes, int shell_parts) {
    const std::int64_t elements = scoring.layout.elements(),
                       at_once = std::min(group.tile,
                                          std::max<std::int64_t>(part_poses, sum_bytes / (elements * 20)));
    grow(space, listed, "listed", group.tile);
    grow(space, matrices, "matrices", at_once * D * D);
    // Beyond the radius they stay zero.
    const auto grow_zeros = [&]<class Value>(Memory<Value>& memory, const char* label) {
      if (static_cast<std::int64_t>(memory.size()) < at_once * elements) {
        grow(space, memory, label, at_once * elements);
        clear(space, "Bracewell::Expectation::zero", memory.data(), at_once * elements);
      }
    };
    if (volumes) {
      grow_zeros(data, "data");
      grow_zeros(weights, "weights");
    }
    if (shell_parts > 0) {
      grow(space, projections, "projections", at_once * elements);
      const std::int64_t size = shell_parts * group.images * scoring.tables.count;
      grow(space, overlaps, "overlaps", size);
      grow(space, powers, "powers", size);
      clear(space, "Bracewell::Expectation::zero", overlaps.data(), size);
      clear(space, "Bracewell::Expectation::zero", powers.data(), size);
    }
    return at_once;
  }

  /// Sums of the poses of a tile that have shares. Waits.
  template <class Kernel, int D, class Reference, class Results>
  void sum_tile(const Space& space, const Reference& own, const T* all_matrices, const Scoring& part,
                const CandidateTile<T>& tile, std::int64_t at_once, int shell_parts, const Results& results) {
    std::int64_t found = 0;
    Kokkos::parallel_scan("Bracewell::Expectation::list", Range(space, 0, tile.poses),
                          ListPoses<T>{totals.data(), tile.images, tile.poses, listed.data()}, found);
    space.fence("Bracewell::Expectation: poses are listed");
    for (std::int64_t first = 0; first < found; first += at_once) {
      const std::int64_t some = std::min(at_once, found - first);
      const std::int32_t* const here = listed.data() + first;
      Kokkos::parallel_for("Bracewell::Expectation::matrices", Range(space, 0, some * D * D),
                           GatherMatrices<T>{all_matrices, here, matrices.data(), D * D});
      add_listed<Kernel, D>(space, own, tile.class_index,
                            Tile{part.tables, part.one_filter, scoring.layout, tile.values, totals.data(),
                                 tile.images, tile.poses, tile.shifts, here, some},
                            shell_parts, results);
    }
  }

  /// Appends the poses of a group of images that have shares. Waits.
  void find_poses(const Space& space, const ExpectationList<T>& list, std::int64_t images, FoundPoses& to) {
    const Range all(space, 0, images * list.count);
    if (list.count > to.most)
      Kokkos::parallel_for("Bracewell::Expectation::keep_largest",
                           Teams(space, static_cast<int>(images), team_size),
                           KeepLargest<T>{pose_shares.data(), list.count, to.most});
    std::int64_t count = 0;
    Kokkos::parallel_scan("Bracewell::Expectation::find", all, ListPositive<T>{pose_shares.data(), nullptr},
                          count);
    space.fence("Bracewell::Expectation: poses are counted");
    grow(space, found_poses, "found_poses", count);
    Kokkos::parallel_scan("Bracewell::Expectation::find", all,
                          ListPositive<T>{pose_shares.data(), found_poses.data()}, count);
    std::vector<std::int64_t> host(static_cast<std::size_t>(count));
    copy_to_host(space, found_poses.data(), host.size(), host.data());
    space.fence("Bracewell::Expectation: poses are found");
    for (std::int64_t image = 0, i = 0; image < images; ++image) {
      for (; i < count && host[std::size_t(i)] < (image + 1) * list.count; ++i)
        to.poses.push_back(static_cast<std::int32_t>(list.first + host[std::size_t(i)] - image * list.count));
      to.first.push_back(static_cast<std::int64_t>(to.poses.size()));
    }
  }

  /// The sums of listed poses; shell_parts: parts of the sums of shells, 0: these are not wanted.
  template <class Kernel, int D, class Reference, class Results>
  void add_listed(const Space& space, const Reference& own, int class_index, const Tile& tile,
                  int shell_parts, const Results& results) const {
    const std::int64_t count = tile.listed_count;
    const auto poses = Scoring::template poses_at<D>(matrices.data(), count);
    if (results.data) {
      Kokkos::parallel_for("Bracewell::Expectation::sum_images", Range(space, 0, count * tile.blocks()),
                           SumOverImages<Space, T, Scoring::items_first>{tile, data.data(), weights.data()});
      const auto of_class = [&](auto volume) {
        volume.data += class_index * (volume.size() / volume.extents[0]);
        volume.extents[0] = 1;
        return volume;
      };
      Impl::backproject<Kernel, 2, D>(
          space, image_array<const Complex>(count, data.data()), poses,
          Backprojection<T, MemorySpace, D>{.data = of_class(results.data),
                                            .weight = of_class(results.weight),
                                            .weights = image_array<const T>(count, weights.data())},
          options);
    }
    if (shell_parts > 0) {
      Impl::project<Kernel, 2, D>(space, own, poses, image_array<Complex>(count, projections.data()),
                                  options);
      Kokkos::parallel_for("Bracewell::Expectation::sum_poses",
                           Range(space, 0, shell_parts * tile.images * tile.blocks()),
                           SumOverPoses<Space, T, Scoring::items_first>{
                               tile, projections.data(), overlaps.data(), powers.data(), shell_parts});
    }
  }
};

} // namespace Bracewell::Impl
