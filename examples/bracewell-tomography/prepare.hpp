// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/reconstructor.hpp"
#include "bracewell-tomography/run.hpp"

#include <bracewell/tomography/preprocess.hpp>

#include <optional>
#include <vector>

namespace Bracewell::Examples {

inline std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

/// What is to be reconstructed, its options checked. Rows and columns count pixels that --binning leaves, columns from
/// the first of --columns.
struct Job {
  const RunOptions& options;
  Scan scan;
  IndexRange columns;
  std::int64_t detector_rows;
  IndexRange rows;
  int width;
  std::int64_t slices, middle; ///< the middle one counts from the first of the rows
  bool logarithm;              ///< of transmission; false: values are attenuation already
  bool has_invalid =
      false; ///< some values of the rows that were looked at are no data: masks are kept of all
  std::optional<IndexRange> lit = {}; ///< columns of the stored rows that the beam reaches; none: all

  Job(const RunOptions& options, Provenance& provenance);

  /// Throws InputError where the angles span too little to find the axis.
  void check_span() const;

  /// Whether those who ask for masks get any: stripes and iterations.
  bool has_masks() const { return has_invalid && (options.stripes || options.solver); }
  /// Whether the beam reaches a column of the stored rows that --columns takes.
  bool is_lit(std::int64_t stored) const {
    const IndexRange range =
        lit.value_or(IndexRange{options.binning * columns.begin, options.binning * columns.end});
    return stored >= range.begin && stored < range.end;
  }
  /// Whether it reaches all of a column of the sinograms.
  bool sees(std::int64_t column) const {
    const std::int64_t first = options.binning * (columns.begin + column);
    return is_lit(first) && is_lit(first + options.binning - 1);
  }
  std::int64_t angles() const { return std::int64_t(scan.angles().size()); }
  std::int64_t middle_row() const { return rows.begin + middle; }
  /// Of all projections, as they are stored.
  std::int64_t bytes_per_row() const { return options.binning * scan.bytes_per_row(); }
  void read(std::int64_t first, std::int64_t count, std::span<std::byte> bytes) const {
    scan.read(options.binning * first, options.binning * count, bytes);
  }

  /// Whether a step works on whole frames: then all rows are prepared before the first slice.
  bool has_frame_steps() const { return options.phase || options.roll != 0 || options.try_tilts; }
  /// Rows on either side that a row depends on.
  std::int64_t frame_reach() const;
  /// Some rows, and those that they depend on.
  IndexRange with_neighbours(IndexRange some) const {
    const std::int64_t reach = has_frame_steps() ? frame_reach() : 0;
    return {std::max<std::int64_t>(0, some.begin - reach), std::min(detector_rows, some.end + reach)};
  }
};

/// The value from which on pixels of a type are saturated; none where that cannot be told.
std::optional<float> saturation(StoredType type);

/// Means of the frames without object, of every time of --flat-at, and of those without beam, [rows, width] each; empty
/// where there are none.
struct Means {
  std::vector<float> flat, dark;

  /// Of rows [first, first + count).
  Means(const Job& job, std::int64_t first, std::int64_t count);
};

/// Stored rows on the device to sinograms: binned, cut, normalised, without outliers.
class Normalise {
public:
  /// For up to `rows` at a time of the `of_means` rows that `means` are of.
  Normalise(const Space& space, const Job& job, const Means& means, std::int64_t of_means, std::int64_t rows);

  static double bytes_per_row(const Job& job);

  /// @param first      of the rows, counted from the first of `means`
  /// @param rows       of all projections, as they are stored
  /// @param sinograms  [count, angles, width]
  /// @param valid      likewise, as normalise_projections has it; or none
  void operator()(const Space& space, std::int64_t first, const std::byte* rows, const Sinograms& sinograms,
                  const Sinograms& valid = {}) const;

private:
  const Job& job_;
  std::int64_t of_means_;
  DeviceView<float*> flat_, dark_, places_, values_, binned_, cut_, uncleaned_;
};

using Stripes = std::optional<StripeRemoval<Space, float>>;

/// A mask or none, as the removal of stripes and iterations take it.
inline Array<const float, Memory> mask_of(const Sinograms& valid) {
  return valid.size() > 0 ? Array<const float, Memory>(valid) : Array<const float, Memory>();
}

/// Sinograms of some rows on the host, [rows, angles, width], after all steps on them and on frames.
struct PreparedRows {
  IndexRange rows;
  std::vector<float> values = {};
  std::int64_t row_values = 0; ///< of a row

  std::span<const float> row(std::int64_t number) const {
    return std::span(values).subspan(std::size_t((number - rows.begin) * row_values),
                                     std::size_t(row_values));
  }
};

/// Bytes that preparing so many rows takes, beside those of one chunk.
double prepared_bytes(const Space& space, const Job& job, std::int64_t rows);

/// The steps on sinograms, of rows and those that they depend on.
PreparedRows prepare_sinograms(const Space& space, const Job& job, IndexRange rows, const Stripes& stripes);

/// The steps on frames.
/// @param roll  of the detector, degrees
void prepare_frames(const Space& space, const Job& job, double roll, PreparedRows& prepared);

} // namespace Bracewell::Examples
