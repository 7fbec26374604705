// SPDX-License-Identifier: MIT
#include "cryoem/report.hpp"

#include "common/input_error.hpp"
#include "common/line_plot.hpp"
#include "common/provenance.hpp"
#include "common/text_table.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/reconstruct/fourier_shell_correlation.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <future>
#include <limits>

namespace Bracewell::Examples {
namespace {

/// Pixels where the pixel size is not known.
double unit(double pixel_size) { return pixel_size > 0 ? pixel_size : 1; }

/// Sums a map along an axis (0: x) over the indices [begin, end): a central slice, or a projection.
std::vector<float> slab(std::span<const float> map, int box, std::size_t axis, std::size_t begin,
                        std::size_t end) {
  const auto n = static_cast<std::size_t>(box);
  std::array<std::size_t, 3> first{0, 0, 0}, last{n, n, n};
  first[axis] = begin, last[axis] = end;
  std::vector<float> values(n * n);
  for (std::size_t z = first[2]; z < last[2]; ++z) // in the order of memory
    for (std::size_t y = first[1]; y < last[1]; ++y)
      for (std::size_t x = first[0]; x < last[0]; ++x) {
        const std::size_t row = axis == 2 ? y : z, column = axis == 0 ? y : x;
        values[row * n + column] += map[(z * n + y) * n + x];
      }
  return values;
}

/// Three views of a map, along z, y and x, in one grey range.
Picture views(const std::string& caption, std::span<const float> map, int box, double pixel_size,
              std::size_t begin, std::size_t end) {
  std::optional<GreyRange> range; // of the first
  std::vector<Picture> panels;
  std::array<std::future<std::vector<float>>, 3> slabs;
  for (const std::size_t axis : {0, 1, 2})
    slabs[axis] = std::async(std::launch::async, slab, map, box, axis, begin, end);
  for (const std::size_t axis : {2, 1, 0}) {
    const std::vector<float> values = slabs[axis].get();
    if (!range)
      range = percentile_range(values, 0.005, 0.999);
    panels.push_back(grey_panel({.caption = caption + " " + "xyz"[axis],
                                 .values = values,
                                 .width = box,
                                 .height = box,
                                 .range = *range,
                                 .pixel_size = unit(pixel_size),
                                 .unit = pixel_size > 0 ? "\u00c5" : "px"}));
  }
  return side_by_side(panels);
}

} // namespace

SoftSphere mask_of(const Particles& particles, const std::optional<double>& diameter, double pixel_size) {
  constexpr double edge = 5; // pixels
  if (!diameter)
    return {.radius = double(particles.image_width) / 2, .edge = edge};
  if (!(pixel_size > 0))
    throw InputError(particles.file.string() +
                     ": states no pixel size, which --mask-diameter needs; use --pixel-size");
  if (*diameter < 4 * pixel_size)
    throw InputError("--mask-diameter: expected at least " + shortest(4 * pixel_size) +
                     " Angstrom, which are four pixels, found " + shortest(*diameter));
  return {.radius = *diameter / pixel_size / 2, .edge = edge};
}

Map masked(const Space& space, const Map& map, const SoftSphere& mask) {
  const auto copy = allocate<Map>("masked", 1, map.extent(1), map.extent(2), map.extent(3));
  copy_values(space, copy, map);
  apply_mask(space, copy, mask);
  return copy;
}

std::vector<double> correlation(const Space& space, const Map& first, const Map& second) {
  const auto box = static_cast<int>(first.extent(1));
  const FFT<Space, 3, float, Kokkos::complex<float>> forward(space, {box, box, box});
  const auto transformed = [&](const Map& map) {
    const auto spectrum = allocate<MapSpectrum>("spectrum", 1, box, box, box / 2 + 1);
    forward.execute(space, map, spectrum);
    return spectrum;
  };
  const auto one = transformed(first), other = transformed(second);
  const DeviceView<double**> shells("Bracewell::examples::correlation", 1,
                                    static_cast<std::size_t>((box + 1) / 2));
  fourier_shell_correlation(space, HalfSpectrum{one, box}, HalfSpectrum{other, box}, shells);
  const auto host = values_on_host(shells);
  return {host.data(), host.data() + host.size()};
}

Difference compare(std::span<const float> map, std::span<const float> reference, int box) {
  double map_norm = 0, product = 0, norm = 0;
  std::size_t i = 0;
  for (int z = 0; z < box; ++z)
    for (int y = 0; y < box; ++y)
      for (int x = 0; x < box; ++x, ++i) {
        const auto square = [box](int index) { return (index - box / 2) * (index - box / 2); };
        if (4 * (square(x) + square(y) + square(z)) >= box * box)
          continue;
        const double a = map[i], b = reference[i];
        map_norm += a * a;
        product += a * b;
        norm += b * b;
      }
  const double scale = map_norm > 0 ? product / map_norm : 0;
  return {scale, std::sqrt(std::max(0.0, 1 - scale * product / norm))};
}

std::string resolution_text(const std::vector<double>& correlation, double threshold, int box,
                            double pixel_size) {
  const double value = resolution(correlation, threshold, box, unit(pixel_size));
  if (!std::isfinite(value))
    return "none";
  char text[64];
  std::snprintf(text, sizeof text, "%.4g %s", value, pixel_size > 0 ? "A" : "px");
  return text;
}

std::array<double, 2> uncertain_shells(const std::vector<double>& correlation,
                                       const std::vector<double>& error, double threshold) {
  constexpr double errors = 2;
  const auto shell = [&](double sign) {
    const auto value = [&](std::size_t s) { return correlation[s] + sign * errors * error[s]; };
    for (std::size_t s = 1; s < correlation.size(); ++s)
      if (value(s) < threshold) {
        const double before = value(s - 1);
        return double(s) - (before > threshold ? (threshold - value(s)) / (before - value(s)) : 1);
      }
    return double(correlation.size() - 1);
  };
  return {shell(-1), shell(1)};
}

namespace {

/// Calls use(name, label, values) for the curves that there are.
template <class Use>
void each_curve(const Correlations& correlations, const Use& use) {
  const auto with = [&](const char* name, const char* label,
                        const std::optional<std::vector<double>>& values) {
    if (values)
      use(name, label, *values);
  };
  with("halves", "half maps", correlations.halves);
  with("reference", "map and reference", correlations.reference);
  with("unmasked", "half maps without a mask", correlations.unmasked);
  with("randomised", "with random phases", correlations.randomised);
  with("corrected", "corrected for the mask", correlations.corrected);
  with("calibrated", "counting what no sample reached", correlations.calibrated);
}

} // namespace

Picture picture_of(const Correlations& correlations, int box, double pixel_size) {
  LinePlot plot{.title = "Fourier shell correlation",
                .x_label = pixel_size > 0 ? "resolution (A)" : "resolution (pixels)",
                .y_label = "correlation",
                .x_as_period = true,
                .thresholds = {{0.143, "0.143"}, {0.5, "0.5"}},
                .y_range = PlotRange{-0.1, 1.05}};
  each_curve(correlations, [&](const char*, const char* label, const std::vector<double>& values) {
    Curve curve{.label = label, .x = {}, .y = values};
    for (std::size_t s = 0; s < values.size(); ++s)
      curve.x.push_back(static_cast<double>(s) / (box * unit(pixel_size)));
    plot.curves.push_back(std::move(curve));
  });
  return draw_line_plot(plot);
}

void write_correlations(const std::filesystem::path& text, const std::filesystem::path& picture,
                        const Correlations& correlations, int box, double pixel_size) {
  const std::size_t shells = (correlations.halves ? correlations.halves : correlations.reference)->size();
  TextColumn shell{"shell", {}, 0}, frequency{"1/A", {}, 6}, period{"A", {}, 3};
  if (!(pixel_size > 0))
    frequency.name = "1/px", period.name = "px";
  for (std::size_t s = 0; s < shells; ++s) {
    shell.values.push_back(static_cast<double>(s));
    frequency.values.push_back(static_cast<double>(s) / (box * unit(pixel_size)));
    period.values.push_back(s > 0 ? 1 / frequency.values[s] : std::numeric_limits<double>::infinity());
  }
  std::vector<TextColumn> columns{shell, frequency, period};
  each_curve(correlations, [&](const char* name, const char*, const std::vector<double>& values) {
    columns.push_back({name, values, 5});
  });
  if (correlations.error)
    columns.push_back({"error", *correlations.error, 5});
  write_text_table(text, columns);
  write_picture(picture, picture_of(correlations, box, pixel_size));
}

Picture central_slices(const SlicedMap& map, int box, double pixel_size) {
  const auto n = static_cast<std::size_t>(box);
  return views(map.caption + ", slice across", map.values, box, pixel_size, n / 2, n / 2 + 1);
}

void write_slices(const std::filesystem::path& path, std::span<const SlicedMap> maps, int box,
                  double pixel_size) {
  const auto n = static_cast<std::size_t>(box);
  std::vector<Picture> rows;
  for (const auto& map : maps)
    rows.push_back(central_slices(map, box, pixel_size));
  for (const auto& map : maps)
    rows.push_back(views(map.caption + ", sum along", map.values, box, pixel_size, 0, n));
  write_picture(path, stacked(rows));
}

} // namespace Bracewell::Examples
