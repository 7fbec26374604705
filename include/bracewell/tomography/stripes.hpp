// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/tomography/detail/stripes/columns.hpp>
#include <bracewell/tomography/detail/stripes/detection.hpp>
#include <bracewell/tomography/detail/stripes/medians.hpp>
#include <bracewell/tomography/detail/stripes/sorting.hpp>
#include <bracewell/tomography/detail/stripes/wavelet.hpp>
#include <bracewell/tomography/detail/tuning.hpp>
#include <bracewell/tomography/stripe_options.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>

namespace Bracewell {

/// Removes stripes along the angles from sinograms: they become rings in the reconstruction.
///
/// A plan. Its workspace is, for slices of P angles and n columns:
/// * Sorting: P n values and P n integers for a slice; on GPUs for up to 32 slices that are small,
/// * All: 2 P n values and P n integers for one slice,
/// * Wavelet: a row of values for each frequency that it damps, of 16 slices (GPUs: 32),
/// * all methods: statistics of the columns of as many slices.
/// GPUs sort columns of more than 16,384 angles (double: 8,192) in parts, which takes the memory of the sorted values again.
/// Movable; calls that can overlap need a plan each.
template <class ExecutionSpace, class T>
class StripeRemoval {
  using MemorySpace = typename ExecutionSpace::memory_space;

public:
  /// @param angles  P
  /// @param width   n, pixels of the detector
  /// @throws Error on sizes below 1 and options out of range
  StripeRemoval(const ExecutionSpace& space, int angles, int width, const StripeOptions& options = {});

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return Impl::bytes_of(columns_, medians_, ratios_) + ranked_.memory_bytes() +
           sorted_ratios_.memory_bytes() + sorting_.memory_bytes() + wavelet_.memory_bytes();
  }

  /// What memory_bytes() of a plan of these arguments would be.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace&, int angles, int width,
                                  const StripeOptions& options = {});

  /// @param sinograms  [S, P, n] attenuation, changed in place; any number of slices
  /// @param valid      [S, P, n], as normalise_projections writes it, or none: values where it is 0 are not read. Columns of
  ///                   which it leaves less than half are dead ones; the others' are taken from the straight line between
  ///                   their next valid neighbours in the row, before stripes are looked for and again behind that
  /// @throws Error on shapes that do not fit
  void execute(const ExecutionSpace& space, const Array<T, MemorySpace>& sinograms,
               const Array<const T, MemorySpace>& valid = {}) const;

  /// The transpose of execute by Wavelet without dead columns, which is linear.
  /// @param sinograms  as in execute
  /// @throws Error on shapes that do not fit, and with other options
  void transpose(const ExecutionSpace& space, const Array<T, MemorySpace>& sinograms) const;

private:
  static int check(const Impl::Arguments& arguments, int angles, int width, const StripeOptions& options) {
    arguments.at_least("angles", angles, 1);
    arguments.at_least("width", width, 1);
    const auto check_window = [&](const char* argument, int window) {
      if (window < 1 || window > Impl::largest_stripe_window || window % 2 == 0)
        arguments.refuse(argument, "an odd number up to %d, found %d", Impl::largest_stripe_window, window);
    };
    check_window("options.window", options.window);
    check_window("options.large_window", options.large_window);
    arguments.positive("options.ratio", options.ratio);
    arguments.positive("options.strength", options.strength);
    arguments.within("options.levels", options.levels, 1, 12);
    arguments.within("options.damping", options.damping, 0.1, 100.);
    if (options.dead != 0 && !(options.dead > 1 && options.dead < 1e6))
      arguments.refuse("options.dead", "0 or a ratio above 1, below 1e6, found %.6g", options.dead);
    return angles;
  }

  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  using Columns = Impl::StripeColumns<T>;
  using Wavelet = Impl::WaveletStripes<ExecutionSpace, T>;
  using Tuning = Impl::StripeTuning<ExecutionSpace, T>;
  static constexpr int slices_at_once = Tuning::slices_at_once, team_threads = Tuning::part_threads;

  using Ranked = Impl::RankedVectors<ExecutionSpace, T>;
  using Sorting = Impl::ColumnSorting<ExecutionSpace, T>;

  static bool sorts(const StripeOptions& options) {
    return options.method == StripeMethod::Sorting || options.method == StripeMethod::All;
  }

  /// Slices that are sorted in one launch. All looks at them one by one.
  static std::int64_t sorted_at_once(const StripeOptions& options, int angles, int width) {
    if (options.method == StripeMethod::All)
      return 1;
    return std::clamp<std::int64_t>(Impl::TomographyTuning<ExecutionSpace>::sorted_values /
                                        (std::int64_t(angles) * width),
                                    1, slices_at_once);
  }

  /// Columns of values, or of ratios, that are sorted in one launch.
  static std::int64_t sorted_columns(const StripeOptions& options, int angles, int width) {
    return std::max<std::int64_t>(sorts(options) ? sorted_at_once(options, angles, width) * width : 0,
                                  options.method == StripeMethod::All ? slices_at_once : 0);
  }
  static std::int64_t long_values(const StripeOptions& options, int angles, int width) {
    const bool all = options.method == StripeMethod::All;
    return std::max(Sorting::long_values(sorted_columns(options, angles, width), angles),
                    all ? Sorting::long_values(slices_at_once, width) : 0);
  }

  Columns columns() const { return {columns_.data(), angles_, width_}; }

  void apply(const ExecutionSpace& space, const Impl::Arguments& arguments,
             const Array<T, MemorySpace>& sinograms, const Array<const T, MemorySpace>& valid,
             bool transpose) const {
    if (sinograms.rank != 3 || sinograms.extents[1] != angles_ || sinograms.extents[2] != width_)
      arguments.refuse("sinograms", "[slices, %d, %d], found %s", angles_, width_,
                       sinograms.shape_text().characters);
    if (valid)
      arguments.same_shape("valid", valid, sinograms);
    if (sinograms.size() == 0)
      return;
    Kokkos::Profiling::ScopedRegion region("Bracewell::StripeRemoval::execute");
    for (std::int64_t slice = 0; slice < sinograms.extents[0]; slice += slices_at_once) {
      const Impl::SinogramOf<T> first{sinograms.data + slice * angles_ * width_, angles_, width_};
      const std::int64_t count = std::min<std::int64_t>(slices_at_once, sinograms.extents[0] - slice);
      if (transpose)
        wavelet_.execute(space, first, count, true);
      else
        execute_slices(space, first, count, valid ? valid.data + slice * angles_ * width_ : nullptr);
    }
  }

  /// @param valid  of these slices, or null
  void execute_slices(const ExecutionSpace& space, const Impl::SinogramOf<T>& first, std::int64_t slices,
                      const T* valid) const {
    const bool all = options_.method == StripeMethod::All, looks = all || options_.dead > 0,
               bridges = looks || valid != nullptr;
    bridge_invalid(space, first, slices, valid);
    if (all)
      mark_fluctuating(space, first, slices);
    else if (looks)
      mark_dead(space, first, slices);
    if (valid != nullptr)
      Impl::launch_kernel("Bracewell::StripeRemoval::mark_invalid", Range(space, 0, slices * width_),
                          Impl::MarkInvalidColumns<T>{valid, columns(), looks});
    if (!sorts(options_) && bridges)
      Impl::for_each_row(space, "Bracewell::StripeRemoval::bridge", slices * angles_,
                         Impl::BridgeDeadColumns<T>{first, columns()});
    if (options_.method == StripeMethod::Offset)
      subtract(space, first, slices);
    if (options_.method == StripeMethod::Wavelet)
      wavelet_.execute(space, first, slices, false);
    if (!sorts(options_))
      return bridge_invalid(space, first, slices, valid);
    const std::int64_t most = sorted_at_once(options_, angles_, width_);
    for (std::int64_t slice = 0; slice < slices; slice += most) {
      const std::int64_t count = std::min(most, slices - slice);
      const T* const dead = bridges ? columns().dead(slice) : nullptr;
      Impl::CopyColumns<ExecutionSpace, T>{first.next(slice), dead, columns().dead(1) - columns().dead(0),
                                           ranked_.values.data()}
          .launch(space, count);
      sorting_.sort(space, ranked_.columns(), count * width_, angles_);
      if (all)
        smooth_large(space, slice);
      smoothing_.execute(space, first.next(slice), ranked_.columns(), count);
    }
    bridge_invalid(space, first, slices, valid);
  }

  void bridge_invalid(const ExecutionSpace& space, const Impl::SinogramOf<T>& first, std::int64_t slices,
                      const T* valid) const {
    if (valid != nullptr)
      Impl::for_each_row(space, "Bracewell::StripeRemoval::bridge_invalid", slices * angles_,
                         Impl::BridgeInvalid<T>{first.values, valid, width_});
  }

  /// The first step of All.
  void mark_fluctuating(const ExecutionSpace& space, const Impl::SinogramOf<T>& first,
                        std::int64_t slices) const {
    using Teams = Kokkos::TeamPolicy<ExecutionSpace>;
    statistics(space, first, slices);
    Impl::launch_kernel("Bracewell::StripeRemoval::floor", Teams(space, int(slices), team_threads),
                        Impl::AddFloor<ExecutionSpace, T>{columns()});
    Impl::launch_kernel("Bracewell::StripeRemoval::ratios", Range(space, 0, slices * width_),
                        Impl::RatioOfChanges<T>{columns(), ratios_.data(), sorted_ratios_.values.data(),
                                                options_.large_window});
    sorting_.sort(space, sorted_ratios_.columns(), slices, width_);
    Impl::launch_kernel("Bracewell::StripeRemoval::mark", Teams(space, int(slices), team_threads),
                        Impl::MarkFluctuating<ExecutionSpace, T>{ratios_.data(), sorted_ratios_.values.data(),
                                                                 columns(), T(options_.ratio)});
  }

  /// The second step of All, with the sorted values of one slice.
  void smooth_large(const ExecutionSpace& space, std::int64_t slice) const {
    using Medians = Impl::MediansByRank<T>;
    using Teams = Kokkos::TeamPolicy<ExecutionSpace>;
    static_assert(slices_at_once >= 2, "ratios_ has a place for differences, and one for shares");
    T *const sorted = ranked_.values.data(), *const differences = ratios_.data(),
             *const shares = differences + width_, *const in_order = sorted_ratios_.values.data();
    Impl::RollingMedian<ExecutionSpace, T, Medians>{sorted, angles_, width_, options_.large_window,
                                                    Medians{medians_.data(), angles_}}
        .launch(space, "Bracewell::StripeRemoval::large_median");
    Impl::launch_kernel("Bracewell::StripeRemoval::differences", Teams(space, width_, team_threads),
                        Impl::DifferenceOfMeans<ExecutionSpace, T>{sorted, medians_.data(), differences,
                                                                   in_order, shares, angles_});
    sorting_.sort(space, sorted_ratios_.columns(), 1, width_);
    Impl::launch_kernel("Bracewell::StripeRemoval::mark", Teams(space, 1, team_threads),
                        Impl::MarkLarge<ExecutionSpace, T>{differences, in_order, shares, columns(), slice,
                                                           T(options_.ratio), options_.large_window});
    Impl::launch_kernel("Bracewell::StripeRemoval::take_medians",
                        Range(space, 0, std::int64_t(angles_) * width_),
                        Impl::TakeMedians<T>{sorted, medians_.data(), columns().dead(0), angles_});
  }

  void statistics(const ExecutionSpace& space, const Impl::SinogramOf<T>& first, std::int64_t slices) const {
    Impl::launch_kernel("Bracewell::StripeRemoval::sum",
                        Range(space, 0, slices * Columns::parts(angles_) * width_),
                        Impl::SumColumns<T>{first, columns()});
    Impl::launch_kernel("Bracewell::StripeRemoval::statistics", Range(space, 0, slices * width_),
                        Impl::ColumnStatistics<T>{columns()});
  }

  void mark_dead(const ExecutionSpace& space, const Impl::SinogramOf<T>& first, std::int64_t slices) const {
    statistics(space, first, slices);
    Impl::launch_kernel("Bracewell::StripeRemoval::mark", Range(space, 0, slices * width_),
                        Impl::MarkDeadColumns<T>{columns(), T(options_.dead)});
  }

  void subtract(const ExecutionSpace& space, const Impl::SinogramOf<T>& first, std::int64_t slices) const {
    statistics(space, first, slices);
    Impl::launch_kernel("Bracewell::StripeRemoval::solve", Range(space, 0, slices),
                        Impl::SolveOffsets<T>{columns(), T(options_.strength)});
    Impl::for_each_row(space, "Bracewell::StripeRemoval::subtract", slices * angles_,
                       Impl::SubtractOffsets<T>{first, columns()});
  }

  int angles_, width_;
  StripeOptions options_;
  Kokkos::View<T*, ExecutionSpace> columns_; ///< StripeColumns
  Ranked ranked_;
  Sorting sorting_;
  Wavelet wavelet_;
  Impl::ColumnMedians<ExecutionSpace, T> smoothing_;
  Kokkos::View<T*, ExecutionSpace> medians_, ratios_; ///< of All
  Ranked sorted_ratios_;
};

template <class ExecutionSpace, class T>
StripeRemoval<ExecutionSpace, T>::StripeRemoval(const ExecutionSpace& space, int angles, int width,
                                                const StripeOptions& options)
    : angles_(check({"StripeRemoval"}, angles, width, options)), width_(width), options_(options),
      smoothing_(space, options.window, angles) {
  columns_ = Impl::device_vector<T>(space, "Bracewell::StripeRemoval::columns",
                                    std::int64_t(slices_at_once * Columns::arrays(angles)) * width);
  if (options.method == StripeMethod::Wavelet)
    wavelet_ = {space, slices_at_once, angles, width, options.levels, options.damping};
  if (sorts(options)) {
    ranked_ = {space, "Bracewell::StripeRemoval::ranked",
               sorted_at_once(options, angles, width) * angles * width};
    sorting_ = {space, long_values(options, angles, width)};
  }
  if (options.method == StripeMethod::All) {
    medians_ =
        Impl::device_vector<T>(space, "Bracewell::StripeRemoval::medians", std::int64_t(angles) * width);
    ratios_ = Impl::device_vector<T>(space, "Bracewell::StripeRemoval::ratios",
                                     slices_at_once * std::int64_t(width));
    sorted_ratios_ = {space, "Bracewell::StripeRemoval::sorted_ratios", slices_at_once * std::int64_t(width)};
  }
}

template <class ExecutionSpace, class T>
std::size_t StripeRemoval<ExecutionSpace, T>::bytes_needed(const ExecutionSpace&, int angles, int width,
                                                           const StripeOptions& options) {
  check({"StripeRemoval::bytes_needed"}, angles, width, options);
  const bool all = options.method == StripeMethod::All;
  const std::size_t wavelet =
      options.method == StripeMethod::Wavelet
          ? Wavelet::bytes_needed(slices_at_once, angles, width, options.levels, options.damping)
          : 0;
  const std::size_t ranked = sorts(options)
                                 ? static_cast<std::size_t>(sorted_at_once(options, angles, width) * angles)
                                 : 0,
                    ratios = all ? slices_at_once : 0, medians = all ? std::size_t(angles) : 0;
  return wavelet + Sorting::bytes_needed(long_values(options, angles, width)) +
         std::size_t(width) *
             ((std::size_t(slices_at_once * Columns::arrays(angles)) + ratios + medians) * sizeof(T) +
              (ranked + ratios) * Ranked::value_bytes);
}

template <class ExecutionSpace, class T>
void StripeRemoval<ExecutionSpace, T>::execute(const ExecutionSpace& space,
                                               const Array<T, MemorySpace>& sinograms,
                                               const Array<const T, MemorySpace>& valid) const {
  apply(space, {"StripeRemoval::execute"}, sinograms, valid, false);
}

template <class ExecutionSpace, class T>
void StripeRemoval<ExecutionSpace, T>::transpose(const ExecutionSpace& space,
                                                 const Array<T, MemorySpace>& sinograms) const {
  constexpr Impl::Arguments arguments{"StripeRemoval::transpose"};
  arguments.require(options_.method == StripeMethod::Wavelet && options_.dead == 0, "options",
                    "Wavelet with dead = 0, which is linear", "others");
  apply(space, arguments, sinograms, {}, true);
}

#define BRACEWELL_INSTANCES_STRIPE_REMOVAL(Extern, Space, Real)                                              \
  Extern template class StripeRemoval<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_STRIPE_REMOVAL)

} // namespace Bracewell
