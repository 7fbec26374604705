// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/iterations.hpp"
#include "bracewell-tomography/output.hpp"
#include "bracewell-tomography/placement.hpp"
#include "common/handout.hpp"
#include "common/input_error.hpp"
#include "common/progress.hpp"
#include "common/ranges.hpp"
#include "common/slots.hpp"
#include "common/stored_values.hpp"

#include <bracewell/reconstruct/mask.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace Bracewell::Examples {

/// The largest magnitude.
struct Largest {
  const float* values;
  KOKKOS_FUNCTION void operator()(std::int64_t i, float& largest) const {
    largest = Kokkos::max(largest, Kokkos::abs(values[i]));
  }
};

/// Least and largest value, and whether there is one that is not finite.
struct LookAtSlices {
  const float* values;
  KOKKOS_FUNCTION void operator()(std::int64_t i, float& least, float& most, int& bad) const {
    const float value = values[i];
    const bool finite = Kokkos::isfinite(value);
    least = finite ? Kokkos::min(least, value) : least;
    most = finite ? Kokkos::max(most, value) : most;
    bad = finite ? bad : 1;
  }
};

/// Slices to Float16. Throws InputError where a value is too large for it.
inline void store_as_halves(const Space& space, const Slices& slices, std::byte* stored) {
  const auto count = std::int64_t(slices.size());
  float largest = 0;
  Kokkos::parallel_reduce("Bracewell::examples::largest",
                          Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, count),
                          Largest{slices.data()}, Kokkos::Max<float>(largest));
  if (!(largest < 65520))
    throw InputError("--output-type float16: slices have values of " + shortest(largest) +
                     ", expected at most 65504");
  to_halves(space, slices.data(), reinterpret_cast<std::uint16_t*>(stored), count);
}

/// The work on slices, some at a time: reading, copying, reconstructing, copying, writing, side by side.
class SlicePipeline {
public:
  /// @param prepared  rows after the steps on frames, where there are any
  /// @param attenuation  see make_reconstructor
  SlicePipeline(const Space& space, const Job& job, const RunOptions& options, const Views& views,
                double centre, double attenuation, std::int64_t chunk, const Stripes& stripes,
                const std::optional<PreparedRows>& prepared, SliceOutput& output)
      : space_(space), job_(job), options_(options), centre_(centre), place_(place_of(job, centre)),
        stripes_(stripes), prepared_(prepared), output_(output),
        means_(std::async(
            std::launch::async,
            [this] { return prepared_ ? Means(job_, 0, 0) : Means(job_, job_.rows.begin, job_.slices); })),
        plan_(make_reconstructor(
            space, options, views, place_, chunk, attenuation,
            [this](std::int64_t slices, std::optional<double> squares) {
              progress_.add(slices, squares ? "residual " + shortest(residual(*squares, slices)) : "");
            })),
        rows_(space, size(chunk * row_bytes()), slots_of(place_)),
        stored_(space, size(place_.slices(chunk) * slice_bytes()), slots_of(place_)),
        chunks_(chunks_of(job, chunk)),
        progress_("reconstructing", options.solver ? "iterations of a slice" : "slices",
                  chunks_.size() * steps_of_slice()) {
    const std::size_t angles = size(job.angles());
    sinograms_ = allocate<DeviceView<float***>>("sinograms", chunk, angles, job.width);
    valid_ = allocate<Sinograms>("valid", !prepared_ && job.has_masks() ? chunk : 0, angles, job.width);
    wider_ =
        is_wider(place_) ? allocate<DeviceView<float***>>("wider", chunk, angles, place_.width) : sinograms_;
    if (options.output_type != StoredType::Float32)
      slices_ = allocate<Slices>("slices", place_.slices(chunk), place_.image, place_.image);
    normalise_.emplace(space, job, means_.get(), job.slices, prepared_ ? 0 : chunk);
  }

  using Middle = std::function<void(std::vector<float> slice)>;
  /// Calls middle() with the middle slice once it is there.
  std::vector<StageTime> run(const Middle& middle) {
    const auto rows_bytes = [&](std::int64_t item) { return count(item) * row_bytes(); };
    const auto stored_bytes = [&](std::int64_t item) { return place_.slices(count(item)) * slice_bytes(); };
    // Of every row; laminography has one item.
    const std::int64_t out = place_.slices(job_.slices) * slice_bytes() / job_.slices;
    Stage read{.name = "read", .threads = io_threads(), .slots = rows_.on_host(), .bytes = row_bytes()};
    read.work = [&](std::int64_t item) {
      const std::int64_t begin = job_.rows.begin + first(item);
      if (!prepared_)
        return job_.read(begin, count(item), {rows_.host(item), size(rows_bytes(item))});
      for (std::int64_t row = 0; row < count(item); ++row)
        std::ranges::copy(prepared_->row(begin + row),
                          reinterpret_cast<float*>(rows_.host(item)) + row * prepared_->row_values);
    };
    Stage compute{.name = "compute", .threads = 0, .slots = stored_.on_device(), .bytes = out};
    compute.work = [&](std::int64_t item) { reconstruct(item, middle); };
    Stage write{.name = "write", .threads = output_.threads(io_threads()), .bytes = out};
    write.work = [&](std::int64_t item) {
      output_.write(first(item), {stored_.host(item), size(stored_bytes(item))});
      progress_.add(steps_of_slice() * chunks_.passed_over(item));
      if (!options_.solver)
        progress_.add(count(item));
    };
    std::vector<Stage> stages{read};
    rows_.add_copy(stages, Slots::Direction::In, rows_bytes);
    stages.push_back(compute);
    stored_.add_copy(stages, Slots::Direction::Out, stored_bytes);
    stages.push_back(write);
    auto times = run_stages(std::int64_t(chunks_.parts().size()), stages,
                            [&](std::int64_t item) { return chunks_.take(item); });
    for (StageTime& time : times)
      time.bytes *= chunks_.taken();
    return times;
  }

  /// Throws InputError where the slices of this process are no result.
  void require_result() const {
    if (chunks_.taken() > 0 && place_.image > 1)
      require_sensible(options_.out, least_, most_, true, likeliest());
  }

  /// How many slices this process took.
  std::int64_t taken() const { return chunks_.taken(); }

  /// Of all slices of this process so far.
  const Iterations& iterations() const { return iterations_; }
  /// The root mean square of what is left of the values of some slices' sinograms.
  double residual(double squares, std::int64_t slices) const {
    return std::sqrt(squares / (double(slices) * double(job_.angles()) * job_.width));
  }

private:
  std::int64_t first(std::int64_t item) const { return chunks_.part(item).begin; }
  std::int64_t count(std::int64_t item) const { return chunks_.part(item).size(); }
  std::int64_t steps_of_slice() const { return options_.solver ? options_.solver->iterations : 1; }
  std::int64_t slice_bytes() const {
    return std::int64_t(place_.image) * place_.image * bytes_of(options_.output_type);
  }
  std::int64_t row_bytes() const {
    return prepared_ ? prepared_->row_values * std::int64_t(sizeof(float)) : job_.bytes_per_row();
  }

  /// Where slices that are no result come from.
  std::string likeliest() const {
    return job_.scan.path().string() + " (its values, flat and dark frames)" +
           (options_.hardening.empty() ? "" : ", --hardening") +
           (options_.phase ? ", the options of --phase" : "") +
           (options_.solver ? ", the options of --solver" : "");
  }

  void reconstruct(std::int64_t item, const Middle& middle) {
    const Sinograms sinograms = first_slices(sinograms_, size(count(item))),
                    wider = first_slices(wider_, size(count(item))),
                    valid = first_slices(valid_, valid_.size() > 0 ? size(count(item)) : 0);
    if (prepared_) {
      copy_values(space_, Part<float*>(sinograms.data(), sinograms.size()),
                  Part<const float*>(reinterpret_cast<const float*>(rows_.device(item)), sinograms.size()));
    } else {
      (*normalise_)(space_, first(item), rows_.device(item), sinograms, valid);
      if (stripes_)
        stripes_->execute(space_, sinograms, mask_of(valid));
    }
    harden(space_, options_, sinograms);
    if (is_wider(place_))
      widen(space_, options_, place_, centre_, sinograms, wider);
    std::byte* const stored = stored_.device(item);
    const std::size_t width = size(place_.image);
    const bool as_floats = options_.output_type == StoredType::Float32;
    const Slices slices(as_floats ? reinterpret_cast<float*>(stored) : slices_.data(),
                        size(place_.slices(count(item))), width, width);
    const Iterations iterations = plan_(space_, wider, slices, place_.masked ? valid : Sinograms());
    iterations_.made = std::max(iterations_.made, iterations.made);
    iterations_.squares += iterations.squares;
    if (options_.solver) // those that ended early
      progress_.add(count(item) * (options_.solver->iterations - iterations.made));
    if (!options_.corners)
      apply_mask(space_, slices, {.radius = place_.image / 2.0});
    float least = 0, most = 0;
    int bad = 0;
    Kokkos::parallel_reduce(
        "Bracewell::examples::look_at_slices",
        Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space_, 0, std::int64_t(slices.size())),
        LookAtSlices{slices.data()}, Kokkos::Min<float>(least), Kokkos::Max<float>(most),
        Kokkos::Max<int>(bad));
    least_ = std::min(least_, double(least)), most_ = std::max(most_, double(most));
    if (bad > 0 ||
        (options_.solver && !std::isfinite(iterations_.squares))) // which nothing mends that follows
      require_sensible(options_.out, least, most, false, likeliest());
    if (!as_floats)
      store_as_halves(space_, slices, stored);
    space_.fence("Bracewell::examples::tomography"); // the slots are read and written by other stages
    if (const std::int64_t place = (place_.depth ? place_.depth / 2 : job_.middle) - first(item);
        place >= 0 && place < place_.slices(count(item))) {
      std::vector<float> slice(width * width);
      copy_values(host_view(slice), Part<float*>(slices.data() + size(place) * slice.size(), slice.size()));
      middle(std::move(slice));
    }
  }

  Space space_;
  const Job& job_;
  const RunOptions& options_;
  double centre_;
  Place place_;
  const Stripes& stripes_;
  const std::optional<PreparedRows>& prepared_;
  SliceOutput& output_;
  std::future<Means> means_; ///< read while the rest is planned
  Reconstructor plan_;
  Slots rows_, stored_;                ///< what was read, what is written
  std::optional<Normalise> normalise_; ///< made last
  Sinograms sinograms_, wider_, valid_;
  Slices slices_; ///< where they are stored as something else
  Handout chunks_;
  Progress progress_;
  Iterations iterations_;
  double least_ = std::numeric_limits<double>::infinity(), most_ = -least_; ///< values of slices
};

} // namespace Bracewell::Examples
