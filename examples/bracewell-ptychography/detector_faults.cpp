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
  std::int32_t negative = 0, largest = 0,
               broken = 0; ///< values: below zero, at the end of the type, not whole
};

struct LookAtPixel {
  const float* frames; ///< [count, pixels]
  Seen* seen;          ///< [pixels]
  std::int64_t count, pixels;
  bool first;
  float end; ///< of the type: values from here on are no counts

  KOKKOS_FUNCTION void operator()(std::int64_t pixel) const {
    Seen all = seen[pixel];
    for (std::int64_t k = 0; k < count; ++k) {
      const float value = frames[k * pixels + pixel];
      const bool starts = first && k == 0;
      all.least = starts ? value : Kokkos::fmin(all.least, value);
      all.greatest = starts ? value : Kokkos::fmax(all.greatest, value);
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
    Kokkos::parallel_for(
        "Bracewell::examples::look_at_pixels",
        Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, pixels),
        LookAtPixel{values.data(), seen.data(), count, pixels, first == 0, end_of(format.type)});
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
  Changes(const std::vector<Seen>& seen, const std::vector<std::int64_t>& places, double count) {
    for (const std::int64_t at : places)
      if (at >= 0 && seen[std::size_t(at)].least < seen[std::size_t(at)].greatest) {
        const double mean = seen[std::size_t(at)].sum / count;
        means_and_variances_.emplace_back(mean, seen[std::size_t(at)].squares / count - mean * mean);
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

std::string percent(double part) { return shortest(std::round(1000 * part) / 10) + " %"; }

} // namespace

std::optional<double> mask_detector_faults(const Space& space, Measurement& measurement,
                                           Provenance& provenance) {
  constexpr std::int64_t most = 1024;
  const std::int64_t every = (measurement.count() + most - 1) / most;
  std::vector<std::int64_t> sample;
  for (std::int64_t pattern = 0; pattern < measurement.count(); pattern += every)
    sample.push_back(pattern);
  const std::vector<Seen> seen = look(space, measurement, sample);
  const StoredType type = measurement.format().type;
  const auto count = static_cast<double>(sample.size());
  const int n = measurement.detector();
  const std::vector<std::int64_t> places = measurement.places(); // -1: masked already
  const auto place = [&](int row, int column) {                  // of the window, which goes round
    const std::size_t pixel = std::size_t((row + n) % n) * std::size_t(n) + std::size_t((column + n) % n);
    return places[pixel];
  };
  const auto corrected = [&](std::int64_t at) {
    return measurement.corrected(at, seen[std::size_t(at)].sum / count);
  };
  const Changes changes(seen, places, count);
  enum Kind { Negative, Largest, Stuck, Dead, Hot, kinds };
  std::array<std::int64_t, kinds> found{};
  std::int64_t negative_values = 0;
  std::vector<std::uint8_t> bad(places.size(), 0);
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      const std::int64_t at = place(row, column);
      if (at < 0)
        continue;
      const Seen& own = seen[std::size_t(at)];
      double least = INFINITY, greatest = 0; // of its neighbours
      int neighbours = 0;
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
          if (const std::int64_t other = place(row + dy, column + dx); (dy != 0 || dx != 0) && other >= 0) {
            const double mean = corrected(other);
            least = std::min(least, mean), greatest = std::max(greatest, mean), ++neighbours;
          }
      const double mean = corrected(at);
      // The direct beam may be one pixel wide.
      const bool direct =
          !measurement.near_field() && std::min(row, n - row) < 2 && std::min(column, n - column) < 2;
      std::optional<Kind> kind;
      if (2 * own.negative > std::ssize(sample))
        kind = Negative;
      else if (own.largest > 0)
        kind = Largest;
      else if (count >= 16 && own.least == own.greatest && own.greatest > 0 &&
               std::abs(mean) > 1 && // dark counts may be the same always
               !(own.greatest == std::floor(own.greatest) && changes.are_quiet(own.greatest)))
        kind = Stuck;
      else if (count >= 16 && own.greatest == 0 && neighbours >= 3 && least * count >= 100)
        kind = Dead;
      else if (count >= 16 && neighbours >= 3 && !direct && mean > 50 * greatest && mean * count > 1000)
        kind = Hot;
      if (kind) {
        ++found[std::size_t(*kind)];
        bad[std::size_t(row) * std::size_t(n) + std::size_t(column)] = 1;
      } else {
        negative_values += own.negative;
      }
    }
  const std::string file = measurement.path().string();
  const std::array names{"are negative", "hold the greatest value of their type", "never change",
                         "never count among pixels that do", "count far more than their neighbours"};
  std::string list;
  for (std::size_t kind = 0; kind < kinds; ++kind)
    if (found[kind] > 0)
      list += (list.empty() ? "" : ", ") + std::to_string(found[kind]) + " " + names[kind];
  if (!list.empty()) {
    measurement.mask(bad);
    provenance.assume(file + ": of " + std::to_string(n * n) + " pixels of the detector " + list +
                      ": they are masked; a mask in the file that has them says so, and this stays unsaid");
  }
  if (negative_values > 0 && has_integers(type))
    provenance.assume(file + ": " + std::to_string(negative_values) + " counts of " +
                      std::to_string(sample.size()) +
                      " patterns are negative at pixels that count elsewhere, and are taken as 0");
  // The light on either side of the file's mask.
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
    provenance.assume(file + ": its mask leaves " + percent(share) + " of the pixels, which have " +
                      percent(good / (good + masked)) +
                      " of the counts: it looks inverted (0 has to be a good pixel); use --invert-mask");
  double sum = 0, squares = 0;
  for (const std::int64_t at : measurement.places())
    if (at >= 0) {
      const Seen& own = seen[std::size_t(at)];
      if (own.broken > 0)
        return {};
      const double mean = std::max(0.0, own.sum / count);
      sum += mean, squares += mean * mean;
    }
  return sum > 0 ? std::optional(squares / sum) : std::nullopt;
}

} // namespace Bracewell::Examples
