// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/patterns/store_patterns.hpp>
#include <bracewell/ptychography/detail/patterns/streamed_rows.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace Bracewell::Impl {

/// The measured patterns of a plan, as targets: all on the device, or (options.target_bytes) some of them on the host,
/// from where groups come to one of two slots while the other is worked on.
template <class Space, class T, class Storage>
class TargetStore {
  using Memory = typename Space::memory_space;
  template <class Value>
  using View = Kokkos::View<Value*, Space>;

public:
  /// @param measured, compared  pixels per side: of the patterns, and of the grid on which they are compared
  /// @param group  patterns that are worked on together
  TargetStore(const Space& space, std::int64_t count, std::int64_t group, int measured, int compared,
              int probe, const PtychographyOptions& options, const PatternLayout& layout)
      : measured_(measured), compared_(compared), probe_(probe), options_(options), layout_(layout),
        shares_(shares(count, group, compared, options)),
        values_(space, "targets", shares_, std::int64_t(compared) * compared),
        means_(device_vector<T>(space, "Bracewell::PtychographyLoss::means", count)),
        units_(device_vector<T>(space, "Bracewell::PtychographyLoss::units", count)) {
    if (options_.weights == PixelWeights::PerPixel)
      pixel_weights_ = {space, "pixel_weights", shares_, std::int64_t(compared) * compared};
    if (shares_.streams())
      copies_ = is_host<Space> ? space : Kokkos::Experimental::partition_space(space, 1, 1)[1];
    if (options_.reduced_grid)
      constants_ = device_vector<double>(space, "Bracewell::PtychographyLoss::constants", count);
    clear(space, "Bracewell::PtychographyLoss::units", units_.data(), count);
    clear(space, "Bracewell::PtychographyLoss::means", means_.data(),
          count); // patterns that were not set do not count
    states_.resize(static_cast<std::size_t>(count), Pattern::NotSet);
  }

  std::size_t memory_bytes() const {
    return values_.memory_bytes() + pixel_weights_.memory_bytes() + bytes_of(means_, units_, constants_);
  }
  /// In memory of the host.
  std::size_t host_bytes() const { return values_.host_bytes() + pixel_weights_.host_bytes(); }

  static std::size_t bytes_needed(std::int64_t count, int compared, const PtychographyOptions& options) {
    return static_cast<std::size_t>(shares(count, 1, compared, options).on_device()) *
               row_bytes(compared, options) +
           static_cast<std::size_t>(count) * (2 * sizeof(T) + (options.reduced_grid ? sizeof(double) : 0));
  }

  /// Patterns that are worked on together, at most.
  std::int64_t group_size() const {
    return shares_.streams() ? shares_.group : std::numeric_limits<std::int64_t>::max();
  }

  /// The order of groups of `group` patterns of a call.
  GroupOrder order(const int* patterns, std::int64_t used, std::int64_t group) const {
    const std::int64_t groups = (used + group - 1) / group;
    return {groups, !shares_.streams() ? groups : patterns ? 0 : std::min(groups, shares_.resident / group)};
  }

  /// Targets of patterns for work on `space`, while those of the next ones that are on the host set out. Waits for their
  /// coming, and for the work before, where they come from the host.
  /// @param next  of no patterns where there are none
  Targets<T, Storage> targets(const Space& space, const Selection& now, const Selection& next) const {
    Targets<T, Storage> result{values_.resident(),
                               means_.data(),
                               units_.data(),
                               pixel_weights_.resident(),
                               constants_.data(),
                               scaled_counts(),
                               options_.scale == PatternScale::PerPattern,
                               options_.weights == PixelWeights::Mask};
    const bool comes = !shares_.stay(now), leaves = next.count > 0 && !shares_.stay(next);
    if (comes || (leaves && !(coming_ == next)))
      space.fence("Bracewell::PtychographyLoss::evaluate: a slot for patterns is free");
    if (comes) {
      if (!(coming_ == now))
        fetch(now);
      result.in_order = true;
      result.values = values_.slot(slot_);
      result.pixel_weights = pixel_weights_.resident() ? pixel_weights_.slot(slot_) : nullptr;
      copies_.fence("Bracewell::PtychographyLoss::evaluate: patterns have come");
      coming_ = {};
    }
    if (leaves && !(coming_ == next))
      fetch(next);
    return result;
  }

  /// Lets the first of the patterns that are asked for next set out.
  void prefetch(const int* patterns, std::int64_t used) const {
    if (!shares_.streams() || used == 0 || coming_.count > 0) // there is one free slot
      return;
    const GroupOrder groups = order(patterns, used, group_size());
    const std::int64_t first = groups.staying * group_size();
    fetch({patterns, first, std::min(used - first, group_size())});
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
    const auto invalid = device_vector<std::int64_t>(space, "Bracewell::PtychographyLoss::invalid", 1);
    fill(space, "Bracewell::PtychographyLoss::invalid", invalid.data(), 1,
         std::numeric_limits<std::int64_t>::max());
    const std::int64_t group = std::clamp<std::int64_t>(PtychographyTuning::stored_pixels / pixels, 1,
                                                        std::min(given, group_size()));
    const bool streams = shares_.streams();
    if (streams) {
      space.fence("Bracewell::PtychographyLoss::set_patterns: both slots for patterns are free");
      copies_.fence("Bracewell::PtychographyLoss::set_patterns: both slots for patterns are free");
      coming_ = {};
    }
    Storage* const values = streams ? values_.slot(0) : values_.resident();
    T* const kept_weights =
        streams && pixel_weights_.resident() ? pixel_weights_.slot(0) : pixel_weights_.resident();
    std::optional<ReducedGrid<Space, T>> reduction;
    if (options_.reduced_grid)
      reduction.emplace(space, measured_, compared_, probe_, group);
    for (std::int64_t begin = 0; begin < given; begin += group) {
      const auto part = Kokkos::subview(patterns, std::pair(begin, std::min(given, begin + group)),
                                        Kokkos::ALL, Kokkos::ALL);
      const auto device = Kokkos::create_mirror_view_and_copy(Memory(), part);
      const std::int64_t stride = weights.rank == 3 ? pixels : 0;
      const T* const part_weights = weights ? weights.data + begin * stride : nullptr;
      const std::int64_t at = streams ? 0 : first + begin;
      if (reduction)
        store_reduced(space, *reduction, first + begin, at, device, values, invalid.data());
      else
        store<Storage>(space, device, part_weights, stride, first + begin, at, layout_, values, kept_weights,
                       invalid.data());
      if (streams) {
        values_.put(space, first + begin, static_cast<std::int64_t>(part.extent(0)), 0);
        pixel_weights_.put(space, first + begin, static_cast<std::int64_t>(part.extent(0)), 0);
      }
      space.fence("Bracewell::PtychographyLoss::set_patterns");
    }
    std::vector<T> host_means(static_cast<std::size_t>(given));
    std::int64_t result;
    copy_to_host(space, means_.data() + first, host_means.size(), host_means.data());
    copy_to_host(space, invalid.data(), 1, &result);
    space.fence("Bracewell::PtychographyLoss::set_patterns");
    for (std::size_t i = 0; i < host_means.size(); ++i)
      note(states_[static_cast<std::size_t>(first) + i], host_means[i] > 0 ? Pattern::Set : Pattern::Empty);
    return result;
  }

private:
  static std::size_t row_bytes(int compared, const PtychographyOptions& options) {
    return (sizeof(Storage) + (options.weights == PixelWeights::PerPixel ? sizeof(T) : 0)) *
           static_cast<std::size_t>(compared) * static_cast<std::size_t>(compared);
  }
  static RowShares shares(std::int64_t count, std::int64_t group, int compared,
                          const PtychographyOptions& options) {
    const std::size_t bytes = row_bytes(compared, options);
    return {count, options.target_bytes ? static_cast<std::int64_t>(*options.target_bytes / bytes) : count,
            group};
  }

  /// Lets patterns set out for the slot that is not worked on.
  void fetch(const Selection& selection) const {
    slot_ = 1 - slot_;
    values_.fetch(copies_, selection, slot_);
    pixel_weights_.fetch(copies_, selection, slot_);
    coming_ = selection;
  }

  enum class Pattern : unsigned char { NotSet, Set, Empty };
  void note(Pattern& state, Pattern now) {
    number_set_ += state == Pattern::NotSet;
    number_empty_ += (now == Pattern::Empty) - (state == Pattern::Empty);
    state = now;
  }

  /// Patterns and their weights as `at`, at + 1 ... of `to` and `kept_weights`; means as of first, first + 1 ...
  template <class Stored, class DeviceView>
  void store(const Space& space, const DeviceView& patterns, const T* weights, std::int64_t weights_stride,
             std::int64_t first, std::int64_t at, const PatternLayout& where, Stored* to, T* kept_weights,
             std::int64_t* invalid) const {
    using Count = typename DeviceView::non_const_value_type;
    using Store = StorePatterns<Space, T, Stored, Count>;
    const TargetStorage<T, Stored> target{TargetStorage<T, Stored>::holds_root(options_.loss)};
    launch_teams("Bracewell::PtychographyLoss::store", space, static_cast<std::int64_t>(patterns.extent(0)),
                 Store{patterns.data(), weights, weights_stride, first, at, measured_, scaled_counts(), where,
                       target, to, means_.data(), units_.data(), kept_weights, invalid});
  }

  /// The same through the reduced grid.
  template <class DeviceView>
  void store_reduced(const Space& space, const ReducedGrid<Space, T>& reduction, std::int64_t first,
                     std::int64_t at, const DeviceView& patterns, Storage* to, std::int64_t* invalid) const {
    store<T>(space, patterns, nullptr, 0, first, 0, {measured_}, reduction.full_targets(), nullptr, invalid);
    reduction.store(space, first, at, static_cast<std::int64_t>(patterns.extent(0)), layout_, to,
                    constants_.data());
  }

  /// C, or 0 where patterns keep their counts.
  T scaled_counts() const {
    return options_.scale == PatternScale::None ? T(0) : static_cast<T>(options_.counts);
  }

  int measured_, compared_, probe_;
  PtychographyOptions options_;
  PatternLayout layout_;
  RowShares shares_;
  StreamedRows<Space, Storage> values_;
  StreamedRows<Space, T> pixel_weights_;
  View<T> means_, units_;
  Space copies_;               ///< goes beside the work
  mutable Selection coming_{}; ///< what the slot is for, or will be
  mutable int slot_ = 0;
  View<double> constants_;
  std::vector<Pattern> states_;
  std::int64_t number_set_ = 0, number_empty_ = 0; ///< of the states: every evaluation asks
};

} // namespace Bracewell::Impl
