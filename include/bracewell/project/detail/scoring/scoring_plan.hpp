// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/project/detail/sampling/sample_padded.hpp>
#include <bracewell/project/detail/scoring/score_blocks.hpp>
#include <bracewell/project/detail/scoring/score_matrices.hpp>
#include <bracewell/project/detail/scoring/score_tiles.hpp>
#include <bracewell/project/options.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace Bracewell::Impl {

/// Checks what PoseScoring and Expectation have room for, and takes Nyquist's limit where there is no radius.
template <class Sizes>
void check_scoring_sizes(const Arguments& arguments, const Sizes& sizes, int most_shifts,
                         ProjectionOptions& options) {
  arguments.within<std::int64_t>("sizes.images", sizes.images, 0, std::int64_t(1) << 30);
  arguments.within("sizes.shifts", sizes.shifts, 0, most_shifts);
  arguments.within("sizes.height", sizes.height, 1, 32768);
  arguments.within("sizes.width", sizes.width, 1, 32768);
  arguments.within("sizes.best", sizes.best, 0, 1 << 16);
  options.radius = options.radius.value_or(std::min(sizes.height, sizes.width) / 2.);
  arguments.within("options.radius", *options.radius, 0., 1e9);
}

/// Where a call of PoseScoring::score writes; null: not wanted.
template <class T>
struct ScoreTargets {
  T *all, *best;
  std::int32_t *poses, *shifts;
  const std::uint8_t* wanted = nullptr; ///< as in ScoreOutputs
  std::int64_t wanted_stride = 0;
  bool apart = false;
};

/// Memory of PoseScoring, and what it launches: ScoreTiles, or ScoreBlocks on hosts.
template <class Space, class T, bool tiles = !is_host<Space>>
struct ScoringPlan {
  using Complex = Kokkos::complex<T>;
  template <class Value>
  using Memory = Kokkos::View<Value*, Space>;
  using BlockSizes = ScoringBlockSizes<T>;
  static constexpr int team_size = is_host<Space> ? 1 : 256;
  /// By ScoreMatrices, else by ScoreTiles.
  static constexpr bool matrices = matrix_units && !is_host<Space> && sizeof(T) == 4;
  template <ScoringProduct product>
  using Product = std::conditional_t<matrices, ScoreMatrices<Space, product>, ScoreTiles<Space, T, product>>;
  static constexpr int tile_rows = Product<ScoringProduct::Scores>::rows, tile_poses = ScoringTuning::poses;
  static constexpr bool items_first = tiles && !matrices; ///< in tables

  HalfSpectrumLayout<2> layout;
  ScoreRule<T> rule;
  std::int64_t most_images, images = -1; ///< -1: not set
  int most_shifts, ranks, shifts = -1;
  bool one_filter = true;  ///< of all images
  std::int64_t most_poses; ///< of a pass
  ScoringTables<T, items_first> tables;
  Memory<Frequency> frequencies;
  Memory<FrequencyRows> frequency_rows; ///< ScoreBlocks
  Memory<Complex> image_values, phases;
  Memory<T> filters, image_powers;
  Memory<T> work;              ///< of the tasks of ScoreBlocks, or powers of images and poses
  Memory<Complex> projections; ///< of a pass, for tiles
  Memory<BestShift<T>> found;
  Memory<RankedPose<T>> ranked;

  /// Those that are compared, row by row; for tiles as many as chunks hold.
  struct Frequencies {
    std::vector<Frequency> values;
    std::vector<FrequencyRows> rows;
    std::int64_t count;

    Frequencies(const HalfSpectrumLayout<2>& layout, double radius) {
      const double squared_radius = std::floor(radius * radius * (1 + 1e-12));
      for (int row = 0; row < layout.size[1]; ++row) {
        const int y = layout.frequency(row, layout.size[1]);
        const double left = squared_radius - double(y) * y;
        if (left < 0)
          continue;
        const int columns = 1 + static_cast<int>(std::min<double>(layout.columns() - 1, std::sqrt(left)));
        rows.push_back({static_cast<std::int64_t>(values.size()), y, columns});
        for (int x = 0; x < columns; ++x)
          values.push_back({static_cast<std::int16_t>(x), static_cast<std::int16_t>(y)});
      }
      count = static_cast<std::int64_t>(values.size());
      constexpr std::size_t chunk = tiles ? 64 / sizeof(T) : 1; // of ScoreMatrices and ScoreTiles
      values.resize((values.size() + chunk - 1) / chunk * chunk, Frequency{0, 0});
    }
  };

  ScoringPlan(const Space& space, const HalfSpectrumLayout<2>& layout_, const ScoreRule<T>& rule_,
              std::int64_t images_, int shifts_, int ranks_, double radius)
      : layout(layout_), rule(rule_), most_images(images_), most_shifts(shifts_), ranks(ranks_) {
    const Frequencies all(layout, radius);
    tables.count = all.count;
    tables.padded = static_cast<std::int64_t>(all.values.size());
    frequencies = device_copy(space, "Bracewell::PoseScoring::frequencies", all.values);
    if constexpr (!tiles)
      frequency_rows = device_copy(space, "Bracewell::PoseScoring::rows", all.rows);
    allocate(space);
  }

  void set_images(const Space& space, std::int64_t count, const WeighImages<T, items_first>& weigh) {
    images = count;
    one_filter = weigh.filter_stride == 0 && weigh.weight_stride == 0;
    if constexpr (items_first)
      tables.images.stride = images, tables.filters.stride = one_filter ? 1 : images;
    auto kernel = weigh;
    kernel.tables = tables;
    kernel.filter_items = one_filter ? 1 : images;
    Kokkos::parallel_for("Bracewell::PoseScoring::set_images",
                         Kokkos::TeamPolicy<Space>(space, static_cast<int>(images), team_size), kernel);
  }

  void set_shifts(const Space& space, int count, const T* values) {
    shifts = count;
    if constexpr (items_first)
      tables.phases.stride = shifts;
    Kokkos::parallel_for(
        "Bracewell::PoseScoring::set_shifts",
        Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, tables.padded * count),
        ComputePhases<T, items_first>{tables, layout, values, count});
  }

  /// Of all poses of the samples, in as many passes as memory for ranking asks for.
  template <class Kernel, int D, class Stored, class Spectra>
  void score(const Space& space, const Samples<T, 2, D>& samples, const Spectra& spectra,
             const ScoreTargets<T>& targets) const {
    if (images == 0)
      return;
    const std::int64_t poses = shifts > 0 ? samples.poses : 0,
                       passes = std::max<std::int64_t>(1, (poses + most_poses - 1) / most_poses);
    const ScoringRows rows(images, std::max(shifts, 1), tiles ? tile_rows : std::max(shifts, 1));
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      const std::int64_t first = poses * pass / passes, count = poses * (pass + 1) / passes - first;
      const ScoreOutputs<T> outputs{rule,
                                    targets.all,
                                    samples.poses,
                                    first,
                                    targets.best ? found.data() : nullptr,
                                    most_poses,
                                    targets.wanted,
                                    targets.wanted_stride,
                                    targets.apart};
      if (count > 0)
        score_pass<Kernel, D, Stored>(space, samples, spectra, rows, outputs, count);
      if (!targets.best)
        continue;
      const bool last = pass + 1 == passes;
      const std::int64_t places = images * ranks;
      Kokkos::parallel_for("Bracewell::PoseScoring::rank",
                           Kokkos::TeamPolicy<Space>(space, static_cast<int>(images), team_size),
                           RankPoses<T>{rule, found.data(), rows.parts, static_cast<int>(count),
                                        static_cast<int>(first), most_poses, ranks,
                                        pass > 0 ? ranked.data() + (pass - 1) % 2 * places : nullptr,
                                        ranked.data() + pass % 2 * places, last ? targets.best : nullptr,
                                        targets.poses, targets.shifts});
    }
  }

  /// The shape of spectra of the images' size.
  ArrayShape spectra(std::initializer_list<std::int64_t> leading) const {
    ArrayShape shape;
    for (const std::int64_t extent : leading)
      shape.extents[shape.rank++] = extent;
    shape.extents[shape.rank++] = layout.size[1];
    shape.extents[shape.rank++] = layout.columns();
    shape.width = layout.size[0];
    shape.given = shape.states_width = true;
    return shape;
  }

  /// Poses [1, count] of matrices alone.
  template <int D>
  static Poses<T, typename Space::memory_space> poses_at(const T* values, std::int64_t count) {
    Poses<T, typename Space::memory_space> poses;
    const std::int64_t extents[] = {1, count, D, D};
    poses.matrices.rank = 4;
    std::copy_n(extents, 4, poses.matrices.extents);
    poses.matrices.given = true;
    poses.matrices.data = values;
    return poses;
  }

  std::size_t memory_bytes() const {
    return bytes_of(frequencies, frequency_rows, image_values, phases, filters, image_powers, work,
                    projections, found, ranked);
  }

  /// Values of the arrays that depend on what there is room for.
  struct Sizes {
    std::int64_t image_values, phases, most_poses, work, projections, found, ranked;

    Sizes(const Space& space, const HalfSpectrumLayout<2>& layout, std::int64_t images, int shifts, int ranks,
          std::size_t frequencies)
        : image_values(images * std::int64_t(frequencies)), phases(shifts * std::int64_t(frequencies)) {
      // Rows of images in parts: no more than twice as many as shifts ask for, and two (ScoringRows).
      const std::int64_t parts = tiles ? 2 * ((shifts + tile_rows - 1) / tile_rows) + 2 : 1,
                         of_pose = images * std::int64_t((ranks > 0 ? parts * sizeof(BestShift<T>) : 0) +
                                                         (tiles ? sizeof(T) : 0));
      const std::int64_t for_candidates = std::int64_t(ScoringTuning::candidate_bytes) /
                                          std::max<std::int64_t>(of_pose, 1),
                         for_projections = std::int64_t(ScoringTuning::projection_bytes / sizeof(Complex)) /
                                           layout.elements();
      most_poses =
          std::clamp<std::int64_t>(tiles ? std::min(for_candidates, for_projections) : for_candidates,
                                   tile_poses, ScoringTuning::pass_poses) /
          tile_poses * tile_poses;
      projections = tiles ? most_poses * layout.elements() : 0;
      work = tiles ? images * most_poses
                   : space.concurrency() * BlockSizes(layout.columns(), images, shifts).numbers();
      found = ranks > 0 ? images * parts * most_poses : 0;
      ranked = 2 * images * ranks;
    }

    std::size_t bytes() const {
      return std::size_t(image_values + phases + projections) * sizeof(Complex) +
             std::size_t(image_values + work) * sizeof(T) + std::size_t(found) * sizeof(BestShift<T>) +
             std::size_t(ranked) * sizeof(RankedPose<T>);
    }
  };

private:
  void allocate(const Space& space) {
    const Sizes sizes(space, layout, most_images, most_shifts, ranks, frequencies.size());
    const auto make = [&]<class Value>(Memory<Value>& memory, const char* label, std::int64_t size) {
      memory = device_vector<Value>(space, std::string("Bracewell::PoseScoring::") + label, size);
    };
    make(image_values, "images", sizes.image_values);
    make(phases, "phases", sizes.phases);
    make(filters, "filters", sizes.image_values);
    make(image_powers, "powers", most_images);
    make(work, "work", sizes.work);
    make(projections, "projections", sizes.projections);
    make(found, "found", sizes.found);
    make(ranked, "ranked", sizes.ranked);
    most_poses = sizes.most_poses;
    tables.frequencies = frequencies.data();
    tables.images = {image_values.data(), tables.padded};
    tables.phases = {phases.data(), tables.padded};
    tables.filters = {filters.data(), tables.padded};
    tables.powers = image_powers.data();
  }

  template <class Kernel, int D, class Stored, class Spectra>
  void score_pass(const Space& space, const Samples<T, 2, D>& samples, const Spectra& spectra,
                  const ScoringRows& rows, const ScoreOutputs<T>& outputs, std::int64_t count) const {
    if constexpr (tiles) {
      using enum ScoringProduct;
      Samples<T, 2, D> pass = samples;
      pass.poses = count;
      pass.matrices.data += outputs.first_pose * pass.matrices.pose_stride;
      SamplePadded<Kernel, T, 2, D, Mates::Single, Stored>(pass, spectra, projections.data())
          .launch(space, "Bracewell::PoseScoring::projections");
      const ProjectedPoses<T> projected{projections.data(), layout};
      Product<Powers>{projected,  tables,    ScoringRows(one_filter ? 1 : images, 1, tile_rows),
                      outputs,    count,     work.data(),
                      most_poses, one_filter}
          .launch(space, "Bracewell::PoseScoring::powers");
      Product<Scores>{projected, tables, rows, outputs, count, work.data(), most_poses, one_filter}.launch(
          space, "Bracewell::PoseScoring::tiles");
    } else {
      ScoreBlocks<Kernel, T, D, Stored>{.samples = samples,
                                        .volume = spectra,
                                        .tables = tables,
                                        .frequency_rows = frequency_rows.data(),
                                        .frequency_row_count = static_cast<int>(frequency_rows.size()),
                                        .images = images,
                                        .shifts = shifts,
                                        .one_filter = one_filter,
                                        .outputs = outputs,
                                        .count = count,
                                        .sizes = BlockSizes(layout.columns(), most_images, most_shifts),
                                        .scratch = work.data()}
          .launch(space, "Bracewell::PoseScoring::blocks");
    }
  }
};

} // namespace Bracewell::Impl
