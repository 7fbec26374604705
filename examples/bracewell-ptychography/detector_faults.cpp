// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/detector_faults.hpp"

#include "bracewell-ptychography/host_copies.hpp"
#include "common/stored_values.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace Bracewell::Examples {
namespace {

/// What one pixel of the frames had in the patterns that were looked at.
struct Seen {
  double sum = 0, squares = 0;
  float least = 0, greatest = 0;
  std::int32_t counted = 0, negative = 0, largest = 0,
               broken = 0; ///< values: finite, below zero, at the end of the type, not whole

  double mean() const { return sum / std::max(1, counted); }
  /// Whether the negative values are a number that stands for none, and no noise about zero.
  bool is_marked(bool has_integers) const { return least == greatest || (has_integers && least >= -2); }
};

struct LookAtPixel {
  const float* frames; ///< [count, pixels]
  Seen* seen;          ///< [pixels]
  std::int64_t count, pixels;
  float end; ///< of the type: values from here on are no counts

  KOKKOS_FUNCTION void operator()(std::int64_t pixel) const {
    Seen all = seen[pixel];
    for (std::int64_t k = 0; k < count; ++k) {
      const float value = frames[k * pixels + pixel];
      if (!Kokkos::isfinite(value))
        continue;
      all.least = all.counted == 0 ? value : Kokkos::fmin(all.least, value);
      all.greatest = all.counted == 0 ? value : Kokkos::fmax(all.greatest, value);
      ++all.counted;
      all.sum += value;
      all.squares += double(value) * value;
      all.negative += value < 0;
      all.largest += value >= end;
      all.broken += value != Kokkos::floor(value);
    }
    seen[pixel] = all;
  }
};

/// From which value on a type says that a pixel did not count: detectors write its greatest value, and the one before.
float end_of(StoredType type) {
  switch (type) {
  case StoredType::Int8:
    return 127;
  case StoredType::UInt8:
    return 255;
  case StoredType::Int16:
    return 32767;
  case StoredType::UInt16:
    return 65534;
  case StoredType::Int32:
    return 2147483520.0f; // rounded to float
  case StoredType::UInt32:
    return 4294967040.0f;
  default:
    return std::numeric_limits<float>::infinity();
  }
}

bool has_integers(StoredType type) { return std::isfinite(end_of(type)); }

/// Of a sample of patterns, evenly over the scan.
std::vector<Seen> look(const Space& space, const Measurement& measurement,
                       const std::vector<std::int64_t>& sample) {
  const StoredFormat format = measurement.format();
  const std::int64_t frame_bytes = measurement.frame_bytes(), pixels = frame_bytes / bytes_of(format.type),
                     group =
                         std::clamp<std::int64_t>((std::int64_t(8) << 20) / pixels, 1, std::ssize(sample));
  std::vector<std::byte> stored(static_cast<std::size_t>(group * frame_bytes));
  const auto on_device = allocate<DeviceView<std::byte*>>("stored", group * frame_bytes);
  const auto values = allocate<DeviceView<float*>>("values", group * pixels);
  const DeviceView<Seen*> seen("Bracewell::examples::seen", static_cast<std::size_t>(pixels));
  for (std::int64_t first = 0; first < std::ssize(sample); first += group) {
    const std::int64_t count = std::min(group, std::ssize(sample) - first);
    measurement.read(std::span(sample).subspan(std::size_t(first), std::size_t(count)),
                     std::span(stored).first(std::size_t(count * frame_bytes)));
    upload(space, on_device, stored);
    to_floats(space, format, on_device.data(), values.data(), count * pixels);
    Kokkos::parallel_for("Bracewell::examples::look_at_pixels",
                         Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, pixels),
                         LookAtPixel{values.data(), seen.data(), count, pixels, end_of(format.type)});
  }
  std::vector<Seen> all(static_cast<std::size_t>(pixels));
  copy_values(space, host_view(all), seen);
  space.fence("Bracewell::examples::look");
  return all;
}

/// Mean and variance of the pixels that change, by which pixels that never change are judged. Rounded patterns without counting
/// noise hold the same number again and again where little light fell on a background.
class Changes {
public:
  Changes(const std::vector<Seen>& seen, const std::vector<std::int64_t>& places) {
    for (const std::int64_t at : places)
      if (at >= 0 && seen[std::size_t(at)].least < seen[std::size_t(at)].greatest) {
        const Seen& own = seen[std::size_t(at)];
        const double mean = own.mean();
        means_and_variances_.emplace_back(mean, own.squares / own.counted - mean * mean);
      }
    std::ranges::sort(means_and_variances_);
  }

  /// Whether pixels with about as many counts change by less than counts do.
  bool are_quiet(double mean) const {
    const auto& all = means_and_variances_;
    const auto mean_of = &std::pair<double, double>::first;
    const auto from = std::ranges::lower_bound(all, mean / 1.5, {}, mean_of),
               to = std::ranges::upper_bound(all, mean * 1.5, {}, mean_of);
    if (from >= to)
      return false;
    std::vector<double> ratios;
    const std::ptrdiff_t every = (to - from + 98) / 99;
    for (std::ptrdiff_t i = 0; i < to - from; i += every)
      ratios.push_back(from[i].second / from[i].first);
    const auto middle = ratios.begin() + std::ssize(ratios) / 2;
    std::ranges::nth_element(ratios, middle);
    return *middle < 0.5;
  }

private:
  std::vector<std::pair<double, double>> means_and_variances_; ///< in rising order
};

/// Pixels judged by what they had in the patterns that were looked at.
class Verdict {
public:
  enum Kind { NotFinite, Negative, Largest, Stuck, Dead, Hot, Kinds };

  std::array<std::int64_t, Kinds> found{};               ///< pixels
  std::vector<std::uint8_t> bad;                         ///< [n, n], of the window
  std::int64_t negative_values = 0, negative_pixels = 0; ///< of the others: all, and pixels that mostly are

  Verdict(const Measurement& measurement, const std::vector<Seen>& seen, std::int64_t count)
      : bad(measurement.places().size(), 0), measurement_(measurement), seen_(seen), count_(count),
        n_(measurement.detector()), places_(measurement.places()), changes_(seen, places_) {
    for (int row = 0; row < n_; ++row)
      for (int column = 0; column < n_; ++column)
        if (const std::int64_t at = place(row, column); at >= 0)
          judge(row, column, seen_[std::size_t(at)]);
  }

private:
  /// In the frame; the window goes round. -1: masked already.
  std::int64_t place(int row, int column) const {
    return places_[std::size_t((row + n_) % n_) * std::size_t(n_) + std::size_t((column + n_) % n_)];
  }
  double mean_of(std::int64_t at) const { return measurement_.corrected(at, seen_[std::size_t(at)].mean()); }
  bool is_mostly_negative(const Seen& own) const { return 2 * own.negative > count_; }

  void judge(int row, int column, const Seen& own) {
    if (const auto kind = kind_of(row, column, own)) {
      ++found[*kind];
      bad[std::size_t(row) * std::size_t(n_) + std::size_t(column)] = 1;
    } else {
      negative_values += own.negative, negative_pixels += is_mostly_negative(own);
    }
  }

  std::optional<Kind> kind_of(int row, int column, const Seen& own) const {
    if (2 * own.counted < count_)
      return NotFinite;
    if (is_mostly_negative(own) && own.is_marked(has_integers(measurement_.format().type)))
      return Negative;
    if (own.largest > 0)
      return Largest;
    constexpr std::int64_t enough = 16; // patterns
    if (count_ < enough)
      return {};
    const double mean = mean_of(place(row, column));
    if (own.least == own.greatest && own.greatest > 0 &&
        std::abs(mean) > 1 && // dark counts may be the same always
        !(own.greatest == std::floor(own.greatest) && changes_.are_quiet(own.greatest)))
      return Stuck;
    double least = INFINITY, greatest = 0; // of its neighbours
    int neighbours = 0;
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx)
        if (const std::int64_t other = place(row + dy, column + dx); (dy != 0 || dx != 0) && other >= 0)
          least = std::min(least, mean_of(other)), greatest = std::max(greatest, mean_of(other)),
          ++neighbours;
    const auto count = static_cast<double>(count_);
    if (own.greatest == 0 && neighbours >= 3 && least * count >= 100)
      return Dead;
    // The direct beam may be one pixel wide.
    const bool direct =
        !measurement_.near_field() && std::min(row, n_ - row) < 2 && std::min(column, n_ - column) < 2;
    if (neighbours >= 3 && !direct && mean > 50 * greatest && mean * count > 1000)
      return Hot;
    return {};
  }

  const Measurement& measurement_;
  const std::vector<Seen>& seen_;
  std::int64_t count_;
  int n_;
  std::vector<std::int64_t> places_;
  Changes changes_;
};

std::string percent(double part) { return shortest(std::round(1000 * part) / 10) + " %"; }

/// Masks the bad pixels, and says how many there are of each kind, and what becomes of negative values.
void mask_and_say(const Verdict& verdict, std::int64_t patterns, Measurement& measurement,
                  Provenance& provenance) {
  const std::string file = measurement.path().string(), of = std::to_string(verdict.bad.size());
  const std::array names{"are not finite",
                         "are negative",
                         "hold the greatest value of their type",
                         "never change",
                         "never count among pixels that do",
                         "count far more than their neighbours"};
  std::string list;
  for (std::size_t kind = 0; kind < names.size(); ++kind)
    if (verdict.found[kind] > 0)
      list += (list.empty() ? "" : ", ") + std::to_string(verdict.found[kind]) + " " + names[kind];
  if (!list.empty()) {
    measurement.mask(verdict.bad);
    provenance.assume(file + ": of " + of + " pixels of the detector " + list +
                      ": they are masked; a mask in the file that has them says so, and this stays unsaid");
  }
  if (verdict.negative_pixels > 0)
    provenance.assume(file + ": " + std::to_string(verdict.negative_pixels) + " of " + of +
                      " pixels are negative in most patterns, and not always the same: was too much "
                      "background subtracted? Negative values are taken as 0");
  else if (verdict.negative_values > 0 && has_integers(measurement.format().type))
    provenance.assume(file + ": " + std::to_string(verdict.negative_values) + " counts of " +
                      std::to_string(patterns) +
                      " patterns are negative at pixels that count elsewhere, and are taken as 0");
}

/// Says where the file's mask leaves few pixels, and most of the light is elsewhere.
/// @param places  that it leaves, as Measurement::places() has them
void check_mask(const std::vector<Seen>& seen, const Measurement& measurement,
                const std::vector<std::int64_t>& places, Provenance& provenance) {
  double good = 0, masked = 0, good_pixels = 0;
  const std::vector<std::int64_t> window = measurement.places_in_frame();
  for (std::size_t pixel = 0; pixel < places.size(); ++pixel) {
    if (window[pixel] < 0)
      continue;
    const Seen& own = seen[std::size_t(window[pixel])];
    const bool counts = own.largest == 0 && own.negative == 0 && std::isfinite(own.sum);
    const bool is_good = places[pixel] >= 0;
    good_pixels += is_good;
    (is_good ? good : masked) += counts ? own.sum : 0;
  }
  const double share = good_pixels / double(places.size());
  if (share < 0.5 && masked > good)
    provenance.assume(measurement.path().string() + ": its mask leaves " + percent(share) +
                      " of the pixels, which have " + percent(good / (good + masked)) +
                      " of the counts: it looks inverted (0 has to be a good pixel); use --invert-mask");
}

} // namespace

std::optional<double> mask_detector_faults(const Space& space, Measurement& measurement,
                                           Provenance& provenance) {
  constexpr std::int64_t most = 1024;
  const std::int64_t every = (measurement.count() + most - 1) / most;
  std::vector<std::int64_t> sample;
  for (std::int64_t pattern = 0; pattern < measurement.count(); pattern += every)
    sample.push_back(pattern);
  const std::vector<Seen> seen = look(space, measurement, sample);
  const std::vector<std::int64_t> before = measurement.places();
  mask_and_say(Verdict(measurement, seen, std::ssize(sample)), std::ssize(sample), measurement, provenance);
  check_mask(seen, measurement, before, provenance);
  double sum = 0, squares = 0;
  for (const std::int64_t at : measurement.places())
    if (at >= 0) {
      const Seen& own = seen[std::size_t(at)];
      if (own.broken > 0)
        return {};
      const double mean = std::max(0.0, own.mean());
      sum += mean, squares += mean * mean;
    }
  return sum > 0 ? std::optional(squares / sum) : std::nullopt;
}

} // namespace Bracewell::Examples
