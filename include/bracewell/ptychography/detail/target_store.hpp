// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/reduced_grid.hpp>
#include <bracewell/ptychography/detail/store_patterns.hpp>

#include <algorithm>
#include <limits>
#include <optional>

namespace Bracewell::Impl {

/// The measured patterns of a plan, as targets.
template <class Space, class T, class Storage>
class TargetStore {
  using Memory = typename Space::memory_space;
  template <class Value>
  using View = Kokkos::View<Value*, Kokkos::LayoutRight, Memory>;

public:
  /// @param measured_, compared_  pixels per side: of the patterns, and of the grid on which they are compared
  TargetStore(const Space& space, std::int64_t count, int measured_, int compared_, int probe_,
              const PtychographyOptions& options_, const PatternLayout& layout_)
      : measured(measured_), compared(compared_), probe(probe_), options(options_), layout(layout_),
        values(device_vector<Storage>(space, "Bracewell::PtychographyLoss::targets",
                                      count * compared * compared)),
        means(device_vector<T>(space, "Bracewell::PtychographyLoss::means", count)),
        units(device_vector<T>(space, "Bracewell::PtychographyLoss::units", count)) {
    if (options.weights == PixelWeights::PerPixel)
      pixel_weights = device_vector<T>(space, "Bracewell::PtychographyLoss::pixel_weights", values.size());
    if (options.reduced_grid)
      constants = device_vector<double>(space, "Bracewell::PtychographyLoss::constants", count);
    Kokkos::deep_copy(space, units, T(0));
    Kokkos::deep_copy(space, means, T(0)); // patterns that were not set do not count
  }

  std::size_t memory_bytes() const { return bytes_of(values, means, units, pixel_weights, constants); }

  Targets<T, Storage> targets() const {
    return {values.data(),
            means.data(),
            units.data(),
            pixel_weights.data(),
            constants.data(),
            scaled_counts(),
            options.weights == PixelWeights::Mask};
  }

  /// Stores patterns [K, n, n] from `first` on, a group at a time, and waits until they are stored.
  template <class PatternsView>
  PatternCounts set(const Space& space, std::int64_t first, const PatternsView& patterns,
                    const Array<const T, Memory>& weights) {
    const std::int64_t given = static_cast<std::int64_t>(patterns.extent(0));
    const std::int64_t pixels = std::int64_t(measured) * measured;
    PatternCounts host{std::numeric_limits<std::int64_t>::max(), 0};
    const Kokkos::View<PatternCounts, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> host_view(&host);
    const auto found = device_view<PatternCounts>(space, "Bracewell::PtychographyLoss::found");
    Kokkos::deep_copy(space, found, host_view);
    const std::int64_t group = std::clamp<std::int64_t>(PtychographyTuning::stored_pixels / pixels, 1, given);
    std::optional<ReducedGrid<Space, T>> reduction;
    if (options.reduced_grid)
      reduction.emplace(space, measured, compared, probe, group);
    for (std::int64_t begin = 0; begin < given; begin += group) {
      const auto part = Kokkos::subview(patterns, std::pair(begin, std::min(given, begin + group)),
                                        Kokkos::ALL, Kokkos::ALL);
      const auto device = Kokkos::create_mirror_view_and_copy(Memory(), part);
      const std::int64_t stride = weights.rank == 3 ? pixels : 0;
      const T* const part_weights = weights ? weights.data + begin * stride : nullptr;
      if (reduction)
        store_reduced(space, *reduction, first + begin, device, found.data());
      else
        store<Storage>(space, device, part_weights, stride, first + begin, first + begin, layout,
                       values.data(), found.data());
      space.fence("Bracewell::PtychographyLoss::set_patterns");
    }
    Kokkos::deep_copy(space, host_view, found);
    space.fence("Bracewell::PtychographyLoss::set_patterns");
    return host;
  }

private:
  /// Patterns as targets `at`, at + 1 ... of `to`; their means as those of patterns first, first + 1 ...
  template <class Stored, class DeviceView>
  void store(const Space& space, const DeviceView& patterns, const T* weights, std::int64_t weights_stride,
             std::int64_t first, std::int64_t at, const PatternLayout& where, Stored* to,
             PatternCounts* found) const {
    using Count = typename DeviceView::non_const_value_type;
    using Store = StorePatterns<Space, T, Stored, Count>;
    const TargetStorage<T, Stored> target{TargetStorage<T, Stored>::holds_root(options.loss)};
    Kokkos::parallel_for(
        "Bracewell::PtychographyLoss::store",
        Kokkos::TeamPolicy<Space>(space, static_cast<int>(patterns.extent(0)), +Store::team_size),
        Store{patterns.data(), weights, weights_stride, first, at, measured, scaled_counts(), where, target,
              to, means.data(), units.data(), pixel_weights.data(), found});
  }

  /// The same through the reduced grid.
  template <class DeviceView>
  void store_reduced(const Space& space, const ReducedGrid<Space, T>& reduction, std::int64_t first,
                     const DeviceView& patterns, PatternCounts* found) const {
    store<T>(space, patterns, nullptr, 0, first, 0, {measured}, reduction.full_targets(), found);
    reduction.store(space, first, static_cast<std::int64_t>(patterns.extent(0)), layout, values.data(),
                    constants.data());
  }

  /// C, or 0 where patterns are not scaled.
  T scaled_counts() const {
    return options.scale == PatternScale::None ? T(0) : static_cast<T>(options.counts);
  }

  int measured, compared, probe;
  PtychographyOptions options;
  PatternLayout layout;
  View<Storage> values;
  View<T> means, units, pixel_weights;
  View<double> constants;
};

} // namespace Bracewell::Impl
