// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/tomography/detail/stripe_columns.hpp>
#include <bracewell/tomography/detail/stripe_ranks.hpp>
#include <bracewell/tomography/detail/tuning.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>

namespace Bracewell {

/// How StripeRemoval finds stripes.
enum class StripeMethod {
  /// An offset per column, such that the mean over the angles becomes smooth:
  ///   min |D(m - z)|^2 + strength |z|^2
  /// with m the mean and D differences of neighbours (after Titarenko, Withers and Yagola, Appl. Math. Lett.
  /// 23, 2010). For detector pixels whose response is slightly wrong.
  Offset,
  /// The values of every column, sorted by size, are smoothed over `window` columns by a median, which keeps
  /// their order in time (Vo, Atwood and Drakopoulos, Opt. Express 26, 2018). For partial stripes as well.
  Sorting
};

/// Options of StripeRemoval.
struct StripeOptions {
  StripeMethod method = StripeMethod::Sorting; ///< see there
  double strength = 1; ///< of Offset: stripes wider than about 1 / sqrt(strength) columns stay
  int window = 5;      ///< of Sorting, odd, up to 63 columns: stripes wider than half of it stay
  double dead = 3;     ///< columns whose values change this many times more or less over the angles than
                       ///< those on either side are interpolated from their neighbours first; 0: none are
};

/// Removes stripes along the angles from sinograms: they become rings in the reconstruction.
/// A plan with workspace for one slice (2 P n values) and for the columns of sixteen. Movable; calls that can overlap
/// need a plan each.
template <class ExecutionSpace, class T>
class StripeRemoval {
  using MemorySpace = typename ExecutionSpace::memory_space;

public:
  /// @param angles  P
  /// @param width   n, pixels of the detector
  /// @throws Error on sizes below 1 and options out of range
  StripeRemoval(const ExecutionSpace& space, int angles, int width, const StripeOptions& options = {})
      : angles_(angles), width_(width), options_(options) {
    check({"StripeRemoval"}, angles, width, options);
    columns_ = Impl::device_vector<T>(space, "Bracewell::StripeRemoval::columns",
                                      std::int64_t(slices_at_once * Columns::arrays(angles)) * width);
    if (options.method == StripeMethod::Sorting)
      ranked_ = Impl::device_vector<Impl::RankedValue<T>>(space, "Bracewell::StripeRemoval::ranked",
                                                          std::int64_t(angles) * width);
  }

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const { return Impl::bytes_of(columns_, ranked_); }

  /// What memory_bytes() of a plan of these arguments would be.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace&, int angles, int width,
                                  const StripeOptions& options = {}) {
    check({"StripeRemoval::bytes_needed"}, angles, width, options);
    const std::size_t ranked = options.method == StripeMethod::Sorting ? std::size_t(angles) : 0;
    return std::size_t(width) * (std::size_t(slices_at_once * Columns::arrays(angles)) * sizeof(T) +
                                 ranked * sizeof(Impl::RankedValue<T>));
  }

  /// @param sinograms  [S, P, n] attenuation, changed in place; any number of slices
  /// @throws Error on shapes that do not fit
  template <class Sinograms>
  void execute(const ExecutionSpace& space, const Sinograms& sinograms) const {
    constexpr Impl::Arguments arguments{"StripeRemoval::execute"};
    const Array<T, MemorySpace> array(sinograms);
    arguments.require(
        array && array.rank == 3 && array.extents[1] == angles_ && array.extents[2] == width_, "sinograms",
        [&] { return "[slices, " + Impl::number(angles_) + ", " + Impl::number(width_) + "]"; },
        [&] { return array.shape(); });
    if (array.size() == 0)
      return;
    Kokkos::Profiling::ScopedRegion region("Bracewell::StripeRemoval::execute");
    for (std::int64_t slice = 0; slice < array.extents[0]; slice += slices_at_once)
      execute_slices(space, {array.data + slice * angles_ * width_, angles_, width_},
                     std::min<std::int64_t>(slices_at_once, array.extents[0] - slice));
  }

private:
  static void check(const Impl::Arguments& arguments, int angles, int width, const StripeOptions& options) {
    arguments.at_least("angles", angles, 1);
    arguments.at_least("width", width, 1);
    arguments.require(
        options.window >= 1 && options.window <= Impl::largest_stripe_window && options.window % 2 == 1,
        "options.window", [] { return "an odd number up to " + Impl::number(Impl::largest_stripe_window); },
        [&] { return Impl::number(options.window); });
    arguments.positive("options.strength", options.strength);
    arguments.require(options.dead == 0 || (options.dead > 1 && options.dead < 1e6), "options.dead",
                      "0 or a ratio above 1, below 1e6", [&] { return Impl::number(options.dead); });
  }

  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  using Columns = Impl::StripeColumns<T>;
  static constexpr int slices_at_once = 16; ///< whose columns there is workspace for

  Columns columns() const { return {columns_.data(), angles_, width_}; }

  void execute_slices(const ExecutionSpace& space, const Impl::SinogramOf<T>& first,
                      std::int64_t slices) const {
    if (options_.dead > 0)
      bridge(space, first, slices);
    if (options_.method == StripeMethod::Offset)
      subtract(space, first, slices);
    else
      for (std::int64_t slice = 0; slice < slices; ++slice)
        sort(space, first.next(slice));
  }

  void statistics(const ExecutionSpace& space, const Impl::SinogramOf<T>& first, std::int64_t slices) const {
    Kokkos::parallel_for("Bracewell::StripeRemoval::sum",
                         Range(space, 0, slices * Columns::parts(angles_) * width_),
                         Impl::SumColumns<T>{first, columns()});
    Kokkos::parallel_for("Bracewell::StripeRemoval::statistics", Range(space, 0, slices * width_),
                         Impl::ColumnStatistics<T>{columns()});
  }

  void bridge(const ExecutionSpace& space, const Impl::SinogramOf<T>& first, std::int64_t slices) const {
    statistics(space, first, slices);
    Kokkos::parallel_for("Bracewell::StripeRemoval::mark", Range(space, 0, slices * width_),
                         Impl::MarkDeadColumns<T>{columns(), T(options_.dead)});
    Impl::for_each_row(space, "Bracewell::StripeRemoval::bridge", slices * angles_,
                       Impl::BridgeDeadColumns<T>{first, columns()});
  }

  void subtract(const ExecutionSpace& space, const Impl::SinogramOf<T>& first, std::int64_t slices) const {
    statistics(space, first, slices);
    Kokkos::parallel_for("Bracewell::StripeRemoval::solve", Range(space, 0, slices),
                         Impl::SolveOffsets<T>{columns(), T(options_.strength)});
    Impl::for_each_row(space, "Bracewell::StripeRemoval::subtract", slices * angles_,
                       Impl::SubtractOffsets<T>{first, columns()});
  }

  /// Of one slice, which its workspace stays in caches for.
  void sort(const ExecutionSpace& space, const Impl::SinogramOf<T>& sinogram) const {
    if (!sort_by_teams(space, sinogram))
      Kokkos::parallel_for("Bracewell::StripeRemoval::sort", Range(space, 0, width_),
                           Impl::SortColumn<T>{sinogram, ranked_.data()});
    switch (options_.window) {
    case 3:
      return median<3>(space, sinogram);
    case 5:
      return median<5>(space, sinogram);
    case 7:
      return median<7>(space, sinogram);
    case 9:
      return median<9>(space, sinogram);
    default:
      return median<Impl::largest_stripe_window>(space, sinogram);
    }
  }

  /// Whether the device can: not hosts, nor devices whose scratch memory is smaller than a column.
  bool sort_by_teams(const ExecutionSpace& space, const Impl::SinogramOf<T>& sinogram) const {
    if constexpr (!Impl::is_host<ExecutionSpace>) {
      using Sort = Impl::SortColumnByTeam<T>;
      using Policy = Kokkos::TeamPolicy<ExecutionSpace>;
      const int padded = Sort::padded_size(angles_), bytes = static_cast<int>(Sort::scratch_bytes(padded));
      if (bytes > Policy::scratch_size_max(0))
        return false;
      const int threads = std::clamp(padded / 8, 32, Impl::TomographyTuning<ExecutionSpace>::sort_threads);
      Kokkos::parallel_for("Bracewell::StripeRemoval::sort",
                           Policy(space, width_, threads).set_scratch_size(0, Kokkos::PerTeam(bytes)),
                           Sort{sinogram, ranked_.data(), padded});
      return true;
    } else {
      return false;
    }
  }

  template <int Window>
  void median(const ExecutionSpace& space, const Impl::SinogramOf<T>& sinogram) const {
    Kokkos::parallel_for("Bracewell::StripeRemoval::median", Range(space, 0, std::int64_t(angles_) * width_),
                         Impl::MedianOfRanks<T, Window>{sinogram, ranked_.data(), options_.window});
  }

  int angles_, width_;
  StripeOptions options_;
  Kokkos::View<T*, ExecutionSpace> columns_; ///< StripeColumns
  Kokkos::View<Impl::RankedValue<T>*, ExecutionSpace> ranked_;
};

} // namespace Bracewell
