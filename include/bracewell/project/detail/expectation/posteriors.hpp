// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/turns.hpp>
#include <bracewell/project/detail/scoring/score_outputs.hpp>
#include <bracewell/project/detail/scoring/scoring_tables.hpp>

#include <cstdint>
#include <type_traits>

namespace Bracewell::Impl {

/// What values of arguments may be.
enum class Allowed { Finite, NotNegative, Positive };

/// The first value that is not allowed; for Kokkos::Min.
template <class T>
struct FindRefused {
  const T* values;
  Allowed allowed;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& first) const {
    const T value = values[i];
    const bool good = is_finite(value) && (allowed == Allowed::Finite || value > 0 ||
                                           (allowed == Allowed::NotNegative && value == 0));
    if (!good && i < first)
      first = i;
  }
};

/// Logarithms that stand for numbers which are none: of a prior of zero, and of a score that is not finite.
template <class T>
struct LogWeight {
  static constexpr T none = T(-1e30), poison = T(1e30);

  KOKKOS_INLINE_FUNCTION static bool is_none(T value) { return value < none / 2; }
  KOKKOS_INLINE_FUNCTION static bool is_poison(T value) { return value > poison / 2; }
  KOKKOS_INLINE_FUNCTION static T of_prior(T prior) { return prior > 0 ? Kokkos::log(prior) : none; }
};

/// logs[i] = log(priors[i]).
template <class T>
struct TakeLogs {
  const T* priors;
  T* logs;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { logs[i] = LogWeight<T>::of_prior(priors[i]); }
};

/// Poses that images have of their own among those of a tile; null: they have all.
struct PoseRanges {
  const std::int64_t* first = nullptr; ///< [images + 1] the first one of each, and the end

  KOKKOS_INLINE_FUNCTION bool has(std::int64_t image, std::int64_t pose) const {
    return !first || (pose >= first[image] && pose < first[image + 1]);
  }
  KOKKOS_INLINE_FUNCTION bool meets(std::int64_t image, std::int64_t begin, std::int64_t end) const {
    return !first || (begin < first[image + 1] && end > first[image] && first[image] < first[image + 1]);
  }
};

/// Candidates of some images: all shifts at a tile of the poses of a class. A candidate's weight is its prior times
/// exp(-key / 2), where key is what ScoringPlan makes without the power of the image, which all candidates share.
template <class T>
struct CandidateTile {
  T* values; ///< [images, poses, shifts] keys, and later posteriors
  std::int64_t images;
  int poses, shifts;
  int class_index;
  std::int64_t first_pose;                              ///< of the tile, among all
  std::int64_t first_part;                              ///< of the tile, among the parts of all classes
  std::int64_t parts_of_image;                          ///< of all classes
  const T* pose_logs = nullptr;                         ///< [poses] of priors; null: none
  const T *shift_logs = nullptr, *class_logs = nullptr; ///< [shifts], [classes]
  PoseRanges ranges = {};
  const std::uint8_t* support =
      nullptr; ///< [images, parts of image] parts with candidates (MarkSupport); null: all

  KOKKOS_INLINE_FUNCTION int parts() const { return (poses + part_poses - 1) / part_poses; }
  KOKKOS_INLINE_FUNCTION std::int64_t part(std::int64_t image, int pose) const {
    return image * parts_of_image + first_part + pose / part_poses;
  }
  /// An image's own poses of the tile, as entries.
  KOKKOS_INLINE_FUNCTION int first_entry(std::int64_t image) const {
    return ranges.first ? within(ranges.first[image]) * shifts : 0;
  }
  KOKKOS_INLINE_FUNCTION int end_entry(std::int64_t image) const {
    return (ranges.first ? within(ranges.first[image + 1]) : poses) * shifts;
  }
  KOKKOS_INLINE_FUNCTION int within(std::int64_t pose) const {
    return static_cast<int>(Kokkos::clamp(pose - first_pose, std::int64_t(0), std::int64_t(poses)));
  }
  KOKKOS_INLINE_FUNCTION T& value(std::int64_t image, int entry) const {
    return values[image * poses * shifts + entry];
  }
  KOKKOS_INLINE_FUNCTION T log_weight(std::int64_t image, int entry) const {
    const int pose = entry / shifts;
    if (!ranges.has(image, first_pose + pose))
      return LogWeight<T>::none;
    T log = 0;
    if (pose_logs)
      log += pose_logs[pose];
    if (shift_logs)
      log += shift_logs[entry - pose * shifts];
    if (class_logs)
      log += class_logs[class_index];
    if (LogWeight<T>::is_none(log))
      return LogWeight<T>::none;
    const T key = value(image, entry);
    return is_finite(key) ? log - key / 2 : LogWeight<T>::poison;
  }
};

/// Tells of the parts of a tile, of every image, whether a pose there is the image's and has a prior above zero.
template <class T>
struct MarkSupport {
  CandidateTile<T> tile;
  std::uint8_t* support; ///< [images, parts of image]

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const int parts = tile.parts(), begin = static_cast<int>(index % parts) * part_poses,
              end = Kokkos::min(begin + part_poses, tile.poses);
    const std::int64_t image = index / parts;
    bool any = tile.ranges.meets(image, tile.first_pose + begin, tile.first_pose + end);
    if (any && tile.pose_logs) {
      any = false;
      for (int pose = begin; pose < end && !any; ++pose)
        any = tile.ranges.has(image, tile.first_pose + pose) && !LogWeight<T>::is_none(tile.pose_logs[pose]);
    }
    support[tile.part(image, begin)] = any;
  }
};

/// The sum of the weights of a part: sum exp(log weight - largest).
template <class T>
struct PartSum {
  T largest, sum;
};

/// Sums of the weights of the parts of a tile, a team each.
template <class T>
struct SumPosteriorParts {
  CandidateTile<T> tile;
  PartSum<T>* sums; ///< [images, parts of image]

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int parts = tile.parts(), first = static_cast<int>(team.league_rank() % parts) * part_poses;
    const std::int64_t image = team.league_rank() / parts;
    const int begin = first * tile.shifts, count = Kokkos::min(+part_poses, tile.poses - first) * tile.shifts;
    if (tile.support && !tile.support[tile.part(image, first)]) {
      Kokkos::single(Kokkos::PerTeam(team), [&] { sums[tile.part(image, first)] = {LogWeight<T>::none, 0}; });
      return;
    }
    T largest, sum;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, count),
        [&](int e, T& most) { most = Kokkos::max(most, tile.log_weight(image, begin + e)); },
        Kokkos::Max<T>(largest));
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, count),
        [&](int e, T& all) {
          const T log = tile.log_weight(image, begin + e);
          if (!LogWeight<T>::is_none(log))
            all += Kokkos::exp(log - largest);
        },
        sum);
    Kokkos::single(Kokkos::PerTeam(team), [&] { sums[tile.part(image, first)] = {largest, sum}; });
  }
};

/// A candidate among the best of its image.
template <class T>
struct RankedCandidate {
  T log_weight = LogWeight<T>::none;
  std::int32_t class_index = -1, shift = -1;
  std::int64_t pose = -1;
};

/// Takes a tile into the best candidates of images, a team each. Tiles have to come in order: of equal candidates the first
/// stays before. A team of several threads looks at every candidate once for each digit of a number of 11 bits, not once
/// for each rank: it finds the least candidate that it takes by counting digits (radix selection), and sorts what it takes.
template <class T>
struct RankCandidates {
  using Key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int digit_bits = 11, bins = 1 << digit_bits;

  /// How many candidates have each digit, and the digit of the least candidate that is taken.
  struct Choice {
    int counts[bins];
    int digit, before, inside, taken; ///< chosen; candidates of larger digits, of this one, and in all
  };

  /// The least candidate that is taken. Of equal keys the first entries are taken: their inverse is not below `entry`.
  struct Bound {
    Key key;
    std::uint32_t entry;
    bool none; ///< no candidate is above those of the tiles before
  };

  CandidateTile<T> tile;
  const PartSum<T>* sums;
  RankedCandidate<T>* ranked; ///< [images, ranks]
  int ranks;
  RankedCandidate<T>* fresh = nullptr; ///< [images, 2, ranks] memory of teams of several threads

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t image = team.league_rank();
    RankedCandidate<T>* const own = ranked + image * ranks;
    if (team.team_size() > 1)
      choose(team, image, own);
    else
      insert_all(image, own);
  }

  template <class Memory>
  using Scratch = Kokkos::View<Choice, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  template <class Space>
  static Kokkos::TeamPolicy<Space> policy(const Space& space, std::int64_t images, int team_size) {
    const auto bytes = team_size > 1 ? Scratch<typename Space::scratch_memory_space>::shmem_size() : 0;
    return Kokkos::TeamPolicy<Space>(space, static_cast<int>(images), team_size)
        .set_scratch_size(0, Kokkos::PerTeam(bytes));
  }

private:
  /// One pass, however many ranks there are.
  KOKKOS_FUNCTION void insert_all(std::int64_t image, RankedCandidate<T>* own) const {
    for (int e = tile.first_entry(image); e < tile.end_entry(image); ++e) {
      if (!(sums[tile.part(image, e / tile.shifts)].largest > own[ranks - 1].log_weight))
        continue;
      const T log = tile.log_weight(image, e);
      if (!(log > own[ranks - 1].log_weight))
        continue;
      int place = ranks - 1;
      for (; place > 0 && own[place - 1].log_weight < log; --place)
        own[place] = own[place - 1];
      own[place] = candidate(log, e);
    }
  }

  KOKKOS_FUNCTION RankedCandidate<T> candidate(T log, int entry) const {
    return {log, tile.class_index, entry % tile.shifts, tile.first_pose + entry / tile.shifts};
  }

  /// An integer that is larger where the number is.
  KOKKOS_FUNCTION static Key key_of(T value) {
    constexpr Key sign = Key(1) << (8 * sizeof(Key) - 1);
    const Key bits = Kokkos::bit_cast<Key>(value + T(0)); // one zero
    return bits & sign ? ~bits : bits | sign;
  }

  /// Bits behind a digit of a number of so many bits.
  KOKKOS_FUNCTION static constexpr int behind(int number_bits, int digit) {
    return Kokkos::max(0, number_bits - digit_bits * (digit + 1));
  }

  /// The digit, if the digits before it are those of `leading`; -1 if not.
  template <class Number>
  KOKKOS_FUNCTION static int digit_of(Number number, Number leading, int digit) {
    constexpr int number_bits = 8 * sizeof(Number);
    const int shift = behind(number_bits, digit);
    if (digit == 0)
      return static_cast<int>(number >> shift);
    const int before = behind(number_bits, digit - 1);
    if (number >> before != leading >> before)
      return -1;
    return static_cast<int>((number >> shift) & ((Number(1) << (before - shift)) - 1));
  }

  /// Calls with the candidates above `worst` in parts that reach `least`: key, entry, logarithm.
  template <class Team, class Call>
  KOKKOS_FUNCTION void for_candidates(const Team& team, std::int64_t image, T worst, Key least,
                                      const Call& call) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tile.first_entry(image), tile.end_entry(image)),
                         [&](int e) {
                           const T largest = sums[tile.part(image, e / tile.shifts)].largest;
                           if (!(largest > worst) || key_of(largest) < least)
                             return;
                           const T log = tile.log_weight(image, e);
                           if (log > worst)
                             call(key_of(log), static_cast<std::uint32_t>(e), log);
                         });
  }

  /// Takes the best of the tile's candidates, and merges them with those of the tiles before.
  template <class Team>
  KOKKOS_FUNCTION void choose(const Team& team, std::int64_t image, RankedCandidate<T>* own) const {
    const Scratch<typename Team::scratch_memory_space> scratch(team.team_scratch(0));
    Choice& choice = scratch();
    const T worst = own[ranks - 1].log_weight;
    const Bound bound = find_bound(team, image, worst, choice);
    if (bound.none)
      return; // as in most tiles after the first
    team.team_barrier();
    Kokkos::single(Kokkos::PerTeam(team), [&] { choice.taken = 0; });
    team.team_barrier();
    RankedCandidate<T>*const taken = fresh + 2 * image * ranks, *const merged = taken + ranks;
    for_candidates(team, image, worst, bound.key, [&](Key key, std::uint32_t entry, T log) {
      if (key > bound.key || (key == bound.key && std::uint32_t(~entry) >= bound.entry))
        taken[Kokkos::atomic_fetch_add(&choice.taken, 1)] = candidate(log, static_cast<int>(entry));
    });
    team.team_barrier();
    const int count = choice.taken;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, ranks + count), [&](int i) {
      const RankedCandidate<T> one = i < ranks ? own[i] : taken[i - ranks];
      int place = i < ranks ? i : 0;
      for (int k = 0; k < count; ++k)
        place += precedes(taken[k], one, i >= ranks);
      for (int k = 0; i >= ranks && k < ranks && own[k].log_weight >= one.log_weight; ++k)
        ++place;
      if (place < ranks)
        merged[place] = one;
    });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, ranks), [&](int i) { own[i] = merged[i]; });
  }

  /// The least candidate that is taken, digit by digit from the highest.
  template <class Team>
  KOKKOS_INLINE_FUNCTION Bound find_bound(const Team& team, std::int64_t image, T worst,
                                          Choice& choice) const {
    constexpr int key_digits = (8 * sizeof(Key) + digit_bits - 1) / digit_bits,
                  entry_digits = (32 + digit_bits - 1) / digit_bits;
    Bound bound = {0, 0, false};
    int missing = ranks;
    for (int digit = 0; digit < key_digits + entry_digits; ++digit) {
      const bool of_key = digit < key_digits;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, +bins), [&](int i) { choice.counts[i] = 0; });
      Kokkos::single(Kokkos::PerTeam(team), [&] { choice.digit = -1, choice.inside = 0; });
      team.team_barrier();
      for_candidates(team, image, worst, bound.key, [&](Key key, std::uint32_t entry, T) {
        const int found = of_key ? digit_of(key, bound.key, digit)
                          : key == bound.key
                              ? digit_of(std::uint32_t(~entry), bound.entry, digit - key_digits)
                              : -1;
        if (found >= 0)
          Kokkos::atomic_add(&choice.counts[found], 1);
      });
      team.team_barrier();
      Kokkos::parallel_scan(Kokkos::TeamThreadRange(team, +bins), [&](int i, int& sum, bool last) {
        const int count = choice.counts[bins - 1 - i];
        if (last && sum < missing && sum + count >= missing)
          choice.digit = bins - 1 - i, choice.before = sum, choice.inside = count;
        sum += count;
        if (last && i + 1 == bins)
          choice.taken = sum;
      });
      team.team_barrier();
      const int chosen = choice.digit, inside = choice.inside;
      bound.none = choice.taken == 0;
      if (chosen < 0) // there are fewer candidates than ranks: all are taken
        break;
      missing -= choice.before;
      if (of_key)
        bound.key |= Key(chosen) << behind(8 * sizeof(Key), digit);
      else
        bound.entry |= std::uint32_t(chosen) << behind(32, digit - key_digits);
      if (inside == missing)
        break;
      team.team_barrier(); // all have read the choice
    }
    return bound;
  }

  /// Whether a candidate of the tile stands before another one, of the tile or of those before it.
  KOKKOS_FUNCTION static bool precedes(const RankedCandidate<T>& a, const RankedCandidate<T>& b,
                                       bool of_tile) {
    if (a.log_weight != b.log_weight)
      return a.log_weight > b.log_weight;
    return of_tile && (a.pose != b.pose ? a.pose < b.pose : a.shift < b.shift);
  }
};

/// What turns the weights of an image into posteriors: exp(log weight - largest) inverse, where that is not below `least`.
template <class T>
struct ImageEvidence {
  T largest, inverse, least;
  bool usable; ///< there are weights, and all are numbers

  KOKKOS_INLINE_FUNCTION T posterior(T log_weight) const {
    return Kokkos::exp(log_weight - largest) * inverse;
  }
};

/// The evidence of images, a team each, from the sums of all parts. It leaves out parts and candidates: each kind has at
/// most half of `left_out` of the posterior, because all parts have a share below left_out / (2 parts), and all candidates
/// a posterior below left_out / (2 candidates).
template <class T>
struct TakeEvidence {
  const PartSum<T>* sums;
  int classes, parts, shifts; ///< parts of a class
  std::int64_t poses;
  double left_out;
  const double* constants; ///< [images] of the log-evidence
  ImageEvidence<T>* evidence;
  std::uint8_t* wanted; ///< [images, classes, parts]
  double* logs;         ///< [images]; null: not wanted
  T* class_shares;      ///< [images, classes]; null: not wanted

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t image = team.league_rank();
    const int all = classes * parts;
    const PartSum<T>* const own = sums + image * all;
    T largest;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, all), [&](int i, T& most) { most = Kokkos::max(most, own[i].largest); },
        Kokkos::Max<T>(largest));
    const bool none = all == 0 || LogWeight<T>::is_none(largest), poison = LogWeight<T>::is_poison(largest),
               usable = !none && !poison;
    const auto weight = [&](int i) {
      return usable ? double(own[i].sum) * Kokkos::exp(double(own[i].largest) - double(largest)) : 0.;
    };
    double total = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, all), [&](int i, double& sum) { sum += weight(i); }, total);
    const double scale = usable ? 1 / total : 0.;
    if (class_shares)
      for (int c = 0; c < classes; ++c) {
        double share = 0;
        Kokkos::parallel_reduce(
            Kokkos::TeamThreadRange(team, parts), [&](int i, double& sum) { sum += weight(c * parts + i); },
            share);
        Kokkos::single(Kokkos::PerTeam(team), [&] {
          class_shares[image * classes + c] =
              poison ? Kokkos::Experimental::quiet_NaN_v<T> : static_cast<T>(share * scale);
        });
      }
    const double least_part = left_out / (2. * Kokkos::max(all, 1));
    double candidates = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, all),
        [&](int i, double& sum) {
          const double share = weight(i) * scale;
          const bool kept = share > 0 && share >= least_part;
          wanted[image * all + i] = kept;
          if (kept)
            sum +=
                double(Kokkos::min(std::int64_t(part_poses), poses - std::int64_t(i % parts) * part_poses)) *
                shifts;
        },
        candidates);
    Kokkos::single(Kokkos::PerTeam(team), [&] {
      evidence[image] = {largest, static_cast<T>(scale),
                         static_cast<T>(left_out / (2 * Kokkos::max(candidates, 1.))), usable};
      if (logs)
        logs[image] = poison ? Kokkos::Experimental::quiet_NaN_v<double>
                      : none ? -Kokkos::Experimental::infinity_v<double>
                             : constants[image] + double(largest) + Kokkos::log(total);
    });
  }
};

/// Writes the best candidates of images.
template <class T>
struct StoreBest {
  const RankedCandidate<T>* ranked; ///< [images, ranks]
  const ImageEvidence<T>* evidence;
  int ranks;
  T* posteriors; ///< [images, ranks]
  int *classes, *poses, *shifts;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto& one = ranked[i];
    const auto& of = evidence[i / ranks];
    const bool there = one.pose >= 0 && of.usable;
    posteriors[i] = there ? of.posterior(one.log_weight) : T(0);
    classes[i] = there ? one.class_index : -1;
    poses[i] = there ? static_cast<int>(one.pose) : -1;
    shifts[i] = there ? one.shift : -1;
  }
};

/// Sums over the posteriors of an image: of 1, of candidates that are kept, of both components of the shift, and of its
/// square.
using PosteriorSums = Sums<5>;

/// Makes posteriors of the keys of a tile, a team for each image.
template <class T>
struct MakePosteriors {
  CandidateTile<T> tile;
  const ImageEvidence<T>* evidence;
  const std::uint8_t* wanted; ///< [images, parts of image]
  const T* shifts;            ///< [shifts, 2]
  T* totals;                  ///< [images, poses] sums over shifts
  PosteriorSums* sums;        ///< [images] added to

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t image = team.league_rank();
    const ImageEvidence<T> of = evidence[image];
    PosteriorSums found;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, tile.first_entry(image), tile.end_entry(image)),
        [&](int e, PosteriorSums& sum) {
          T posterior = 0;
          if (of.usable && wanted[tile.part(image, e / tile.shifts)]) {
            const T log = tile.log_weight(image, e);
            if (!LogWeight<T>::is_none(log))
              posterior = of.posterior(log);
            if (!(posterior >= of.least))
              posterior = 0;
          }
          tile.value(image, e) = posterior;
          if (posterior > 0) {
            const double p = double(posterior), y = double(shifts[e % tile.shifts * 2]),
                         x = double(shifts[e % tile.shifts * 2 + 1]);
            const double add[5] = {p, 1, p * y, p * x, p * (y * y + x * x)};
            for (int i = 0; i < 5; ++i)
              sum.values[i] += add[i];
          }
        },
        found);
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tile.poses), [&](int pose) {
      T total = 0;
      for (int shift = 0; shift < tile.shifts && tile.ranges.has(image, tile.first_pose + pose); ++shift)
        total += tile.value(image, pose * tile.shifts + shift);
      totals[image * tile.poses + pose] = total;
    });
    Kokkos::single(Kokkos::PerTeam(team), [&] { sums[image] += found; });
  }
};

/// Writes what of the sums is asked for.
template <class T>
struct StorePosteriorSums {
  const PosteriorSums* sums;
  T* shares;          ///< [images]; null: not wanted
  int* counts;        ///< [images]; null: not wanted
  double* shift_sums; ///< [images, 3]; null: not wanted

  KOKKOS_FUNCTION void operator()(std::int64_t image) const {
    const double* const of = sums[image].values;
    if (shares)
      shares[image] = static_cast<T>(of[0]);
    if (counts)
      counts[image] = static_cast<int>(Kokkos::min(of[1], 2147483647.));
    if (shift_sums)
      for (int i = 0; i < 3; ++i)
        shift_sums[3 * image + i] = of[2 + i];
  }
};

/// Adds the posteriors of the poses of a tile, summed over shifts, to the shares of all poses of the images.
template <class T>
struct AddPoseShares {
  const T* totals; ///< [images, poses of the tile]
  int poses;
  T* shares; ///< [images, stride], from the tile's first pose on
  std::int64_t stride;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    shares[i / poses * stride + i % poses] += totals[i];
  }
};

/// Clears all but the largest shares of an image, a team each; of equal ones the first stay.
template <class T>
struct KeepLargest {
  using Key =
      std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>; ///< rises with positive numbers

  T* shares; ///< [images, poses], none negative
  std::int64_t poses, most;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    T* const own = shares + std::int64_t(team.league_rank()) * poses;
    const auto above = [&](Key limit) {
      std::int64_t count = 0;
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, poses),
          [&](std::int64_t i, std::int64_t& sum) {
            sum += own[i] > 0 && Kokkos::bit_cast<Key>(own[i]) > limit;
          },
          count);
      return count;
    };
    if (above(0) <= most)
      return;
    constexpr T infinity = Kokkos::Experimental::infinity_v<T>; // a local one: device code has no other
    Key low = 0, limit = Kokkos::bit_cast<Key>(infinity);
    while (limit - low > 1) { // more than `most` lie above low, no more above the limit
      const Key middle = low + (limit - low) / 2;
      (above(middle) > most ? low : limit) = middle;
    }
    const std::int64_t room = most - above(limit);
    team.team_barrier();
    Kokkos::parallel_scan(Kokkos::TeamThreadRange(team, poses),
                          [&](std::int64_t i, std::int64_t& equal, bool last) {
                            const Key key = Kokkos::bit_cast<Key>(own[i] + T(0));
                            if (last && (key < limit || (key == limit && equal >= room)))
                              own[i] = 0;
                            equal += key == limit;
                          });
  }
};

/// Lists numbers that are above zero; for a scan.
template <class T>
struct ListPositive {
  const T* values;
  std::int64_t* listed; ///< null: they are counted

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& count, bool last) const {
    const bool positive = values[i] > 0;
    if (positive && last && listed)
      listed[count] = i;
    count += positive;
  }
};

/// to[i] += values[i].
template <class T>
struct AddValues {
  const T* values;
  T* to;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { to[i] += values[i]; }
};

/// Mean shifts of images.
template <class T>
struct TakeMeanShifts {
  const double* sums; ///< [images, 3] as in StorePosteriorSums
  const T* shares;    ///< [images]
  T* means;           ///< [images, 2]

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t image = i / 2;
    means[i] = shares[image] > 0 ? static_cast<T>(sums[3 * image + i % 2] / double(shares[image])) : T(0);
  }
};

/// Matrices of listed poses times each turn, and their priors.
template <class T>
struct TurnPoses {
  const T *matrices, *turns;
  const std::int32_t* listed;
  std::int64_t turn_count;
  int size; ///< of a matrix: size x size
  T* to;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int elements = size * size, row = static_cast<int>(i % elements) / size,
              column = static_cast<int>(i % size);
    const std::int64_t pose = i / elements;
    const T* const matrix = matrices + std::int64_t(listed[pose / turn_count]) * elements + row * size;
    const T* const turn = turns + pose % turn_count * elements + column;
    T sum = 0;
    for (int k = 0; k < size; ++k)
      sum += matrix[k] * turn[k * size];
    to[i] = sum;
  }
};

/// Priors of listed poses for each of their turns.
template <class T>
struct RepeatPriors {
  const T* priors; ///< [classes, poses]
  const std::int32_t* listed;
  std::int64_t poses, turn_count, count; ///< count: turned poses
  T* to;                                 ///< [classes, count]

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    to[i] = priors[i / count * poses + listed[i % count / turn_count]];
  }
};

/// Lists the poses of a tile that any image has a posterior at; for a scan.
template <class T>
struct ListPoses {
  const T* totals; ///< [images, poses]
  std::int64_t images;
  int poses;
  std::int32_t* listed;

  KOKKOS_FUNCTION void operator()(std::int64_t pose, std::int64_t& count, bool last) const {
    bool any = false;
    for (std::int64_t image = 0; image < images && !any; ++image)
      any = totals[image * poses + pose] > 0;
    if (any && last)
      listed[count] = static_cast<std::int32_t>(pose);
    count += any;
  }
};

} // namespace Bracewell::Impl
