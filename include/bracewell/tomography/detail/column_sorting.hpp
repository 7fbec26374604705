// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/memory.hpp>
#include <bracewell/tomography/detail/stripe_network.hpp>

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

/// Sorts columns of values, in place: a thread of a host sorts a column, a team of a GPU sorts a column by a network. Teams
/// sort long columns in parts, which are merged.
template <class Space, class T>
class ColumnSorting {
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  static constexpr int items = sizeof(T) == 4 ? 16 : 8; ///< that a thread of a GPU sorts
  using Network = SortColumnByTeam<T, items>;

public:
  ColumnSorting() = default;
  /// @param long_values  the most values of columns that are too long for a team
  ColumnSorting(const Space& space, std::int64_t long_values)
      : merged_(space, "Bracewell::StripeRemoval::merged", long_values) {}

  std::size_t memory_bytes() const { return merged_.memory_bytes(); }
  static std::size_t bytes_needed(std::int64_t long_values) {
    return std::size_t(long_values) * RankedVectors<Space, T>::value_bytes;
  }
  /// Of some columns.
  static std::int64_t long_values(std::int64_t columns, int length) {
    return !is_host<Space> && Network::part_of(length) < length ? columns * length : 0;
  }

  void sort(const Space& space, const RankedColumns<T>& ranked, std::int64_t columns, int length) const {
    if constexpr (is_host<Space>)
      Kokkos::parallel_for("Bracewell::StripeRemoval::sort", Range(space, 0, columns),
                           SortColumn<T>{ranked, length});
    else
      sort_by_networks(space, ranked, columns, length);
  }

private:
  /// By one team for each part.
  void launch_network(const Space& space, std::int64_t parts, const Network& network) const {
    using Teams = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<Network::most, 1>>;
    const int threads = Network::threads_for(network.part);
    Kokkos::parallel_for("Bracewell::StripeRemoval::sort",
                         Teams(space, static_cast<int>(parts), threads)
                             .set_scratch_size(0, Kokkos::PerTeam(Network::scratch_bytes(threads))),
                         network);
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
    launch_network(space, columns * parts, Network{ranked.values, from, length, part});
    for (int merge = 0; merge < merges; ++merge, std::swap(from, to))
      Kokkos::parallel_for("Bracewell::StripeRemoval::merge",
                           Range(space, 0, columns * ((length - 1) / items + 1)),
                           MergeSortedParts<T, items>{from, to, length, part << merge});
  }

  RankedVectors<Space, T> merged_;
};

} // namespace Bracewell::Impl
