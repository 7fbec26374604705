// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/reduced_grid.hpp>
#include <bracewell/ptychography/detail/store_patterns.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace Bracewell::Impl {

/// The measured patterns of a plan, as targets.
template <class Space, class T, class Storage>
class TargetStore {
  using Memory = typename Space::memory_space;
  template <class Value>
  using View = Kokkos::View<Value*, Kokkos::LayoutRight, Memory>;

public:
  /// @param measured, compared  pixels per side: of the patterns, and of the grid on which they are compared
  TargetStore(const Space& space, std::int64_t count, int measured, int compared, int probe,
              const PtychographyOptions& options, const PatternLayout& layout)
      : measured_(measured), compared_(compared), probe_(probe), options_(options), layout_(layout),
        values_(device_vector<Storage>(space, "Bracewell::PtychographyLoss::targets",
                                       count * compared * compared)),
        means_(device_vector<T>(space, "Bracewell::PtychographyLoss::means", count)),
        units_(device_vector<T>(space, "Bracewell::PtychographyLoss::units", count)) {
    if (options_.weights == PixelWeights::PerPixel)
      pixel_weights_ = device_vector<T>(space, "Bracewell::PtychographyLoss::pixel_weights", values_.size());
    if (options_.reduced_grid)
      constants_ = device_vector<double>(space, "Bracewell::PtychographyLoss::constants", count);
    Kokkos::deep_copy(space, units_, T(0));
    Kokkos::deep_copy(space, means_, T(0)); // patterns that were not set do not count
    states_.resize(static_cast<std::size_t>(count), Pattern::NotSet);
  }

  std::size_t memory_bytes() const { return bytes_of(values_, means_, units_, pixel_weights_, constants_); }

  static std::size_t bytes_needed(std::int64_t count, int compared, const PtychographyOptions& options) {
    const std::size_t pixels = static_cast<std::size_t>(compared) * static_cast<std::size_t>(compared),
                      weights = options.weights == PixelWeights::PerPixel ? sizeof(T) * pixels : 0;
    return static_cast<std::size_t>(count) *
           (sizeof(Storage) * pixels + 2 * sizeof(T) + weights + (options.reduced_grid ? sizeof(double) : 0));
  }

  Targets<T, Storage> targets() const {
    return {values_.data(),
            means_.data(),
            units_.data(),
            pixel_weights_.data(),
            constants_.data(),
            scaled_counts(),
            options_.weights == PixelWeights::Mask};
  }

  /// Patterns that were set, and those among them that have no counts.
  std::int64_t set_patterns() const { return number_set_; }
  std::int64_t empty_patterns() const { return number_empty_; }

  /// Stores patterns [K, n, n] from `first` on, a group at a time, and waits until they are stored. The first
  /// with a value that is not a finite number >= 0; or a large number.
  template <class PatternsView>
  std::int64_t set(const Space& space, std::int64_t first, const PatternsView& patterns,
                   const Array<const T, Memory>& weights) {
    const std::int64_t given = static_cast<std::int64_t>(patterns.extent(0));
    const std::int64_t pixels = std::int64_t(measured_) * measured_;
    const auto invalid = device_view<std::int64_t>(space, "Bracewell::PtychographyLoss::invalid");
    Kokkos::deep_copy(space, invalid, std::numeric_limits<std::int64_t>::max());
    const std::int64_t group = std::clamp<std::int64_t>(PtychographyTuning::stored_pixels / pixels, 1, given);
    std::optional<ReducedGrid<Space, T>> reduction;
    if (options_.reduced_grid)
      reduction.emplace(space, measured_, compared_, probe_, group);
    for (std::int64_t begin = 0; begin < given; begin += group) {
      const auto part = Kokkos::subview(patterns, std::pair(begin, std::min(given, begin + group)),
                                        Kokkos::ALL, Kokkos::ALL);
      const auto device = Kokkos::create_mirror_view_and_copy(Memory(), part);
      const std::int64_t stride = weights.rank == 3 ? pixels : 0;
      const T* const part_weights = weights ? weights.data + begin * stride : nullptr;
      if (reduction)
        store_reduced(space, *reduction, first + begin, device, invalid.data());
      else
        store<Storage>(space, device, part_weights, stride, first + begin, first + begin, layout_,
                       values_.data(), invalid.data());
      space.fence("Bracewell::PtychographyLoss::set_patterns");
    }
    const auto set = std::pair(first, first + given);
    const auto host_means =
        Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), Kokkos::subview(means_, set));
    for (std::int64_t i = 0; i < given; ++i)
      note(states_[static_cast<std::size_t>(first + i)], host_means(i) > 0 ? Pattern::Set : Pattern::Empty);
    std::int64_t result;
    Kokkos::deep_copy(space, Kokkos::View<std::int64_t, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(&result),
                      invalid);
    space.fence("Bracewell::PtychographyLoss::set_patterns");
    return result;
  }

private:
  enum class Pattern : unsigned char { NotSet, Set, Empty };
  void note(Pattern& state, Pattern now) {
    number_set_ += state == Pattern::NotSet;
    number_empty_ += (now == Pattern::Empty) - (state == Pattern::Empty);
    state = now;
  }

  /// Patterns as targets `at`, at + 1 ... of `to`; their means as those of patterns first, first + 1 ...
  template <class Stored, class DeviceView>
  void store(const Space& space, const DeviceView& patterns, const T* weights, std::int64_t weights_stride,
             std::int64_t first, std::int64_t at, const PatternLayout& where, Stored* to,
             std::int64_t* invalid) const {
    using Count = typename DeviceView::non_const_value_type;
    using Store = StorePatterns<Space, T, Stored, Count>;
    const TargetStorage<T, Stored> target{TargetStorage<T, Stored>::holds_root(options_.loss)};
    Kokkos::parallel_for(
        "Bracewell::PtychographyLoss::store",
        Kokkos::TeamPolicy<Space>(space, static_cast<int>(patterns.extent(0)), +Store::team_size),
        Store{patterns.data(), weights, weights_stride, first, at, measured_, scaled_counts(), where, target,
              to, means_.data(), units_.data(), pixel_weights_.data(), invalid});
  }

  /// The same through the reduced grid.
  template <class DeviceView>
  void store_reduced(const Space& space, const ReducedGrid<Space, T>& reduction, std::int64_t first,
                     const DeviceView& patterns, std::int64_t* invalid) const {
    store<T>(space, patterns, nullptr, 0, first, 0, {measured_}, reduction.full_targets(), invalid);
    reduction.store(space, first, static_cast<std::int64_t>(patterns.extent(0)), layout_, values_.data(),
                    constants_.data());
  }

  /// C, or 0 where patterns are not scaled.
  T scaled_counts() const {
    return options_.scale == PatternScale::None ? T(0) : static_cast<T>(options_.counts);
  }

  int measured_, compared_, probe_;
  PtychographyOptions options_;
  PatternLayout layout_;
  View<Storage> values_;
  View<T> means_, units_, pixel_weights_;
  View<double> constants_;
  std::vector<Pattern> states_;
  std::int64_t number_set_ = 0, number_empty_ = 0; ///< of the states: every evaluation asks
};

} // namespace Bracewell::Impl
