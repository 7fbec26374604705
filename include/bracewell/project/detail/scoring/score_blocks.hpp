// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/vector.hpp>
#include <bracewell/project/detail/scoring/score_outputs.hpp>
#include <bracewell/project/detail/scoring/scoring_tables.hpp>
#include <bracewell/project/detail/window_block.hpp>

#include <algorithm>
#include <cstring>
#include <limits>

namespace Bracewell::Impl {

/// Inner products of `rows` vectors with `columns` others, in the registers of a host: as many sums as leave room
/// for what they are made of.
template <class T>
struct ProductBlock {
#if defined(__AVX512F__)
  static constexpr int bytes = 64, rows = 4, columns = 6;
#elif defined(__AVX__)
  static constexpr int bytes = 32, rows = 4, columns = 3;
#else
  static constexpr int bytes = 16, rows = 4, columns = 3;
#endif
  static constexpr int lanes = bytes / sizeof(T);
  using Lanes = typename Vector<T, lanes>::type;

  /// sums[r * stride + c] += a_r . b_c, where a_r = a + r * length and b_c = b + c * length; length: a multiple of
  /// lanes.
  static void add(const T* a, const T* b, int length, T* sums, int stride) {
    Lanes sum[rows][columns] = {};
    for (int i = 0; i < length; i += lanes) {
      Lanes left[rows];
      for (int r = 0; r < rows; ++r)
        std::memcpy(&left[r], a + r * length + i, sizeof(Lanes));
      for (int c = 0; c < columns; ++c) {
        Lanes right;
        std::memcpy(&right, b + c * length + i, sizeof right);
        keep(right);
        for (int r = 0; r < rows; ++r)
          sum[r][c] += left[r] * right;
      }
    }
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        sums[r * stride + c] += across<lanes>(sum[r][c]);
  }

private:
  /// In a register: compilers would rather read it again for every row.
  static void keep([[maybe_unused]] Lanes& numbers) {
#if defined(__AVX512F__)
    asm("" : "+v"(numbers));
#elif defined(__x86_64__)
    asm("" : "+x"(numbers));
#endif
  }

  /// The sum of the numbers of a vector.
  template <int count>
  static T across(const typename Vector<T, count>::type& numbers) {
    if constexpr (count == 1) {
      return numbers[0];
    } else {
      typename Vector<T, count / 2>::type lower, upper;
      std::memcpy(&lower, &numbers, sizeof lower);
      std::memcpy(&upper, reinterpret_cast<const char*>(&numbers) + sizeof lower, sizeof upper);
      return across<count / 2>(lower + upper);
    }
  }
};

/// Rows of frequencies that are sampled at once.
struct FrequencyRows {
  std::int64_t first; ///< frequency
  int y, columns;     ///< frequencies (0, y) to (columns - 1, y)
};

/// Sizes of the blocks of ScoreBlocks, and of the memory that a thread needs for one.
template <class T>
struct ScoringBlockSizes {
  using Product = ProductBlock<T>;
  static constexpr int poses = ScoringTuning::block_poses;
  static_assert(poses % Product::columns == 0);

  static int up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

  int frequencies; ///< at once: whole rows, and a multiple of vectors
  int rows, images;

  ScoringBlockSizes(int columns, std::int64_t images_, int shifts)
      : frequencies(up(std::max(ScoringTuning::block_frequencies, columns), Product::lanes)),
        images(static_cast<int>(std::clamp<std::int64_t>(
            images_, 1, std::max(1, ScoringTuning::block_rows / std::max(shifts, 1))))) {
    rows = up(images * std::max(shifts, 1), Product::rows);
    images = up(images, Product::rows);
  }

  // Parts of a thread's memory: samples and their squares, rows, and both products.
  std::int64_t squares() const { return std::int64_t(2) * poses * frequencies; }
  std::int64_t formed() const { return squares() + std::int64_t(poses) * frequencies; }
  std::int64_t overlaps() const { return formed() + std::int64_t(2) * Product::rows * frequencies; }
  std::int64_t powers() const { return overlaps() + std::int64_t(poses) * rows; }
  std::int64_t numbers() const { return powers() + std::int64_t(poses) * images; }
};

/// The products of ScoreTiles on hosts: a thread samples a few poses at the frequencies of a few rows, and multiplies
/// them with rows that it forms four at a time.
template <class Kernel, class T, int D, class Stored>
struct ScoreBlocks {
  using Block = WindowBlock<Kernel, T, 2, D, Mates::Single>;
  using Product = ProductBlock<T>;
  using Sizes = ScoringBlockSizes<T>;
  using Complex = Kokkos::complex<T>;

  Samples<T, 2, D> samples; ///< of all poses
  StoredSpectra<Stored> volume;
  ScoringTables<T, false> tables;
  const FrequencyRows* frequency_rows;
  int frequency_row_count;
  std::int64_t images;
  int shifts;
  bool one_filter; ///< of all images
  ScoreOutputs<T> outputs;
  std::int64_t count; ///< of poses of the pass
  Sizes sizes;
  T* scratch; ///< of every task
  std::int64_t tasks = 0;
  int tile_images = 0, tile_poses = 0;

  template <class Space>
  void launch(const Space& space, const Label& label) {
    // Tiles enough for all threads: of fewer images, or else of fewer poses.
    const auto ratio = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    tasks = space.concurrency();
    const std::int64_t wanted = ratio(2 * tasks, ratio(count, Sizes::poses)),
                       most = outputs.apart
                                  ? 1
                                  : std::min<std::int64_t>({sizes.rows / shifts, sizes.images, images});
    tile_images = static_cast<int>(std::max<std::int64_t>(1, std::min(most, ratio(images, wanted))));
    tile_poses = static_cast<int>(std::min<std::int64_t>(
        Sizes::poses,
        Sizes::up(static_cast<int>(ratio(count * ratio(images, tile_images), tasks)), Product::columns)));
    launch_host_tasks(space, label, tasks, *this);
  }

  void operator()(std::int64_t task) const {
    const std::int64_t blocks = (images + tile_images - 1) / tile_images,
                       tiles = blocks * ((count + tile_poses - 1) / tile_poses);
    for (std::int64_t tile = task; tile < tiles; tile += tasks)
      score(tile % blocks * tile_images, tile / blocks * tile_poses, scratch + task * sizes.numbers());
  }

private:
  void score(std::int64_t first_image, std::int64_t first_pose, T* memory) const {
    const int own_images = static_cast<int>(std::min<std::int64_t>(tile_images, images - first_image)),
              own_poses = static_cast<int>(std::min<std::int64_t>(tile_poses, count - first_pose)),
              rows = own_images * shifts, power_rows = one_filter ? 1 : own_images;
    if (outputs.skips(first_image, own_images, first_pose, own_poses))
      return;
    T *const overlaps = memory + sizes.overlaps(), *const powers = memory + sizes.powers(),
             *const formed = memory + sizes.formed(), *const squares = memory + sizes.squares();
    std::fill(overlaps, memory + sizes.numbers(), T(0));
    for (int row = 0; row < frequency_row_count;) {
      const std::int64_t begin = frequency_rows[row].first;
      const int first_row = row;
      int found = 0;
      for (; row < frequency_row_count &&
             (row == first_row || found + frequency_rows[row].columns <= sizes.frequencies);
           ++row)
        found += frequency_rows[row].columns;
      const int length = Sizes::up(found, Product::lanes);
      for (int pose = 0; pose < Sizes::up(own_poses, Product::columns); ++pose)
        sample(first_pose + std::min(pose, own_poses - 1), first_row, row, length,
               memory + std::int64_t(2) * pose * length, squares + std::int64_t(pose) * length);
      multiply(rows, 2 * length, memory, formed, overlaps, own_poses, [&](int r, T* to) {
        multiply(found, &tables.images(first_image + r / shifts, begin), &tables.phases(r % shifts, begin),
                 to, to + length);
        std::fill(to + found, to + length, T(0));
        std::fill(to + length + found, to + 2 * length, T(0));
      });
      multiply(power_rows, length, squares, formed, powers, own_poses, [&](int r, T* to) {
        std::copy_n(&tables.filters(one_filter ? 0 : first_image + r, begin), found, to);
        std::fill(to + found, to + length, T(0));
      });
    }
    store(first_image, own_images, first_pose, own_poses, overlaps, powers);
  }

  /// sums[row, pose] += of all rows, which form(row, to) makes, with all poses.
  template <class Form>
  static void multiply(int rows, int length, const T* poses, T* formed, T* sums, int pose_count,
                       const Form& form) {
    for (int row = 0; row < rows; row += Product::rows) {
      for (int r = 0; r < Product::rows; ++r)
        if (row + r < rows)
          form(row + r, formed + r * length);
        else
          std::fill_n(formed + r * length, length, T(0));
      for (int pose = 0; pose < pose_count; pose += Product::columns)
        Product::add(formed, poses + std::int64_t(pose) * length, length, sums + row * Sizes::poses + pose,
                     Sizes::poses);
    }
  }

  /// Products of complex numbers, parts apart.
  static void multiply(int count, const Complex* image, const Complex* phases, T* __restrict real,
                       T* __restrict imaginary) {
    const T *const a = reinterpret_cast<const T*>(image), *const b = reinterpret_cast<const T*>(phases);
    for (int i = 0; i < count; ++i) {
      real[i] = a[2 * i] * b[2 * i] - a[2 * i + 1] * b[2 * i + 1];
      imaginary[i] = a[2 * i] * b[2 * i + 1] + a[2 * i + 1] * b[2 * i];
    }
  }

  /// A pose at the frequencies of some rows: real parts, imaginary parts `length` behind them, and squares.
  void sample(std::int64_t index, int first_row, int end_row, int length, T* to, T* square) const {
    const auto pose = samples.pose(0, outputs.first_pose + index);
    int i = 0;
    for (int row = first_row; row < end_row; ++row) {
      const auto& here = frequency_rows[row];
      int k[2] = {0, here.y};
      for (; k[0] < here.columns; k[0] += Block::size) {
        T sum[2][Block::size];
        if (pose.folds)
          sample_one_by_one(pose, k, here.columns, sum);
        else {
          Block block;
          block.place(pose, k, here.columns - 1);
          block.gather(samples.reconstruction, volume(0), sum);
        }
        const int some = std::min(+Block::size, here.columns - k[0]);
        for (int s = 0; s < some; ++s, ++i) {
          to[i] = volume.gain.restored(sum[0][s]);
          to[length + i] = volume.gain.restored(sum[1][s]);
        }
      }
    }
    for (; i < length; ++i)
      to[i] = to[length + i] = 0;
    for (i = 0; i < length; ++i)
      square[i] = to[i] * to[i] + to[length + i] * to[length + i];
  }

  void sample_one_by_one(const Pose<T, 2, D>& pose, const int (&first)[2], int columns,
                         T (&sum)[2][Block::size]) const {
    for (int s = 0; s < Block::size && first[0] + s < columns; ++s) {
      const int k[2] = {first[0] + s, first[1]};
      T q[D];
      pose.position(k, q);
      Stencil<Kernel, D, Mates::Single, T> stencil;
      Complex value(std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::quiet_NaN());
      if (stencil.place(samples.reconstruction, q, true))
        value = stencil.gather(volume(0));
      sum[0][s] = value.real();
      sum[1][s] = value.imag();
    }
  }

  void store(std::int64_t first_image, int own_images, std::int64_t first_pose, int own_poses,
             const T* overlaps, const T* powers) const {
    const ScoringRows whole(images, shifts, std::max(shifts, 1)); // in one part
    for (int i = 0; i < own_images; ++i) {
      ScoreKeys<T> keys[Sizes::poses];
      BestShifts best;
      for (int pose = 0; pose < own_poses; ++pose)
        keys[pose] = outputs.rule.keys(powers[(one_filter ? 0 : i) * Sizes::poses + pose],
                                       tables.powers[first_image + i]);
      for (int shift = 0; shift < shifts; ++shift) {
        T key[Sizes::poses];
        const T* const row = overlaps + (i * shifts + shift) * Sizes::poses;
        for (int pose = 0; pose < own_poses; ++pose)
          key[pose] = keys[pose](row[pose]);
        if (outputs.all)
          for (int pose = 0; pose < own_poses; ++pose)
            outputs.store(whole, first_image + i, first_pose + pose, shift, key[pose]);
        if (outputs.best)
          best.offer(key, shift, own_poses);
      }
      if (outputs.best)
        for (int pose = 0; pose < own_poses; ++pose)
          outputs.store(whole, first_image + i, 0, first_pose + pose, {best.key[pose], best.shift[pose]});
    }
  }

  /// BestShift of the poses of a block, side by side.
  struct BestShifts {
    T key[Sizes::poses];
    std::int32_t shift[Sizes::poses];

    BestShifts() {
      std::fill(std::begin(key), std::end(key), BestShift<T>().key);
      std::fill(std::begin(shift), std::end(shift), BestShift<T>().shift);
    }
    void offer(const T* others, std::int32_t shift_of_others, int poses) {
      for (int pose = 0; pose < poses; ++pose) {
        const bool better = BestShift<T>::better(others[pose], key[pose]);
        key[pose] = better ? others[pose] : key[pose];
        shift[pose] = better ? shift_of_others : shift[pose];
      }
    }
  };
};

} // namespace Bracewell::Impl
