// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/memory.hpp>
#include <bracewell/tomography/detail/stripe_buckets.hpp>
#include <bracewell/tomography/detail/stripe_network.hpp>

#include <algorithm>
#include <utility>

namespace Bracewell::Impl {

/// Memory of RankedColumns.
template <class Space, class T>
struct RankedVectors {
  Kokkos::View<T*, Space> values;
  Kokkos::View<int*, Space> angles;

  RankedVectors() = default;
  RankedVectors(const Space& space, const std::string& label, std::int64_t size)
      : values(device_vector<T>(space, label, size)),
        angles(device_vector<int>(space, label + "_angles", size)) {}
  RankedColumns<T> columns() const { return {values.data(), angles.data()}; }
  std::size_t memory_bytes() const { return bytes_of(values, angles); }
  static constexpr std::size_t value_bytes = sizeof(T) + sizeof(int);
};

/// Sorts columns of values, in place: a thread a column on hosts, else by teams: by buckets where a team can have a column
/// on the chip, those left over and others by networks, long ones in parts that are merged.
template <class Space, class T>
class ColumnSorting {
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  static constexpr int items = sizeof(T) == 4 ? 16 : 8; ///< that a thread of a GPU sorts
  using Network = SortColumnByTeam<T, items>;

public:
  ColumnSorting() = default;
  /// For as many columns and, where they are too long for a team, values of all columns.
  ColumnSorting(const Space& space, std::int64_t columns, std::int64_t long_values)
      : merged_(space, "Bracewell::StripeRemoval::merged", long_values),
        crowded_(device_vector<int>(space, "Bracewell::StripeRemoval::crowded", listed(columns))) {}

  std::size_t memory_bytes() const { return merged_.memory_bytes() + bytes_of(crowded_); }
  static std::size_t bytes_needed(std::int64_t columns, std::int64_t long_values) {
    return std::size_t(long_values) * RankedVectors<Space, T>::value_bytes +
           std::size_t(listed(columns)) * sizeof(int);
  }
  /// Of some columns.
  static std::int64_t long_values(std::int64_t columns, int length) {
    return !is_host<Space> && Network::part_of(length) < length ? columns * length : 0;
  }

  void sort(const Space& space, const RankedColumns<T>& ranked, std::int64_t columns, int length) const {
    if constexpr (is_host<Space>)
      Kokkos::parallel_for("Bracewell::StripeRemoval::sort", Range(space, 0, columns),
                           SortColumn<T>{ranked, length});
    else if (!sort_by_buckets(space, ranked, columns, length))
      sort_by_networks(space, ranked, columns, length);
  }

private:
  static std::int64_t listed(std::int64_t columns) {
    return has_chip_memory<Space> && columns > 0 ? columns + 1 : 0;
  }

  /// By one team for each part, or as many as fill a GPU for the columns of a list.
  void launch_network(const Space& space, std::int64_t parts, const Network& network) const {
    using Teams = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<Network::most, 1>>;
    const int threads = Network::threads_for(network.part),
              teams = static_cast<int>(
                  network.crowded.count ? std::min<std::int64_t>(parts, most_lanes / threads) : parts);
    Kokkos::parallel_for(
        "Bracewell::StripeRemoval::sort",
        Teams(space, teams, threads).set_scratch_size(0, Kokkos::PerTeam(Network::scratch_bytes(threads))),
        network);
  }

  /// Whether that can be done.
  bool sort_by_buckets([[maybe_unused]] const Space& space, [[maybe_unused]] const RankedColumns<T>& ranked,
                       [[maybe_unused]] std::int64_t columns, [[maybe_unused]] int length) const {
    if constexpr (has_chip_memory<Space>) {
      return visit_bucket_sorts<T>(length, [&](auto sizes) {
        using Buckets = decltype(sizes);
        if (Buckets::bytes(length) > chip_memory(space))
          return false;
        const CrowdedColumns crowded{crowded_.data(), crowded_.data() + 1};
        fill(space, "Bracewell::StripeRemoval::zero", crowded.count, 1);
        launch_on_chip(space, "Bracewell::StripeRemoval::sort", static_cast<int>(columns),
                       Buckets::bytes(length), Buckets{ranked, length, crowded});
        launch_network(space, columns, Network{ranked.values, ranked, length, length, crowded});
        return true;
      });
    }
    return false;
  }

  void sort_by_networks(const Space& space, const RankedColumns<T>& ranked, std::int64_t columns,
                        int length) const {
    const int part = Network::part_of(length), parts = (length - 1) / part + 1;
    int merges = 0;
    while ((std::int64_t(part) << merges) < length)
      ++merges;
    // The last merge leaves the values where they shall be.
    RankedColumns<T> from = merges % 2 == 0 ? ranked : merged_.columns(),
                     to = merges % 2 == 0 ? merged_.columns() : ranked;
    launch_network(space, columns * parts, Network{ranked.values, from, length, part, {}});
    for (int merge = 0; merge < merges; ++merge, std::swap(from, to))
      Kokkos::parallel_for("Bracewell::StripeRemoval::merge",
                           Range(space, 0, columns * ((length - 1) / items + 1)),
                           MergeSortedParts<T, items>{from, to, length, part << merge});
  }

  static constexpr int most_lanes = 2 * 132 * 1024; ///< twice those of an NVIDIA H200 with 64 registers

  RankedVectors<Space, T> merged_;
  Kokkos::View<int*, Space> crowded_; ///< number and list
};

} // namespace Bracewell::Impl
