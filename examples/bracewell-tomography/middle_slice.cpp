// SPDX-License-Identifier: MIT
// What is looked at before the work: some rows.
#include "bracewell-tomography/middle_slice.hpp"

#include "bracewell-tomography/align.hpp"
#include "bracewell-tomography/output.hpp"
#include "bracewell-tomography/placement.hpp"
#include "bracewell-tomography/seen_columns.hpp"
#include "bracewell-tomography/sinogram_checks.hpp"
#include "bracewell-tomography/wave_fit.hpp"
#include "common/input_error.hpp"
#include "common/memory_limit.hpp"
#include "common/output_family.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"
#include "common/stored_values.hpp"
#include "common/text_table.hpp"

#include <bracewell/tomography/find_centre.hpp>
#include <bracewell/tomography/half_acquisition.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace Bracewell::Examples {
namespace {

/// Sinogram [1, angles, width] of a row.
void read_sinogram(const Space& space, const Job& job, const Stripes& stripes,
                   const std::optional<PreparedRows>& prepared, std::int64_t row, const Sinograms& slices) {
  if (prepared) {
    copy_values(Part<float*>(slices.data(), slices.size()), host_view(prepared->row(row)));
  } else {
    const Kokkos::View<std::byte*, Kokkos::HostSpace> host("Bracewell::examples::rows",
                                                           size(job.bytes_per_row()));
    job.read(row, 1, {host.data(), host.size()});
    const auto rows = values_in<Memory>(host);
    const auto valid =
        allocate<Sinograms>("valid", stripes && job.has_masks() ? 1 : 0, slices.extent(1), slices.extent(2));
    Normalise(space, job, Means(job, row, 1), 1, 1)(space, 0, rows.data(), slices, valid);
    if (stripes)
      stripes->execute(space, slices, mask_of(valid));
    space.fence("Bracewell::examples::sinogram");
  }
  harden(space, job.options, slices);
}

/// Where the views are, found with some rows from all of the slices.
Views find_views(const Space& space, const Job& job, const Stripes& stripes,
                 const std::optional<PreparedRows>& prepared, double centre, Provenance& provenance) {
  const Views before{job.scan.angles()};
  const bool angles = job.options.align == AlignedViews::Angles;
  const std::int64_t rows = std::min(aligned_rows(job.width, job.angles(), angles), job.slices);
  require_memory("aligning " + std::to_string(rows) + " slices",
                 resident_bytes() + alignment_bytes(space, before, job.width, rows),
                 memory_limit(job.options.memory_limit));
  const auto sinograms = allocate<Sinograms>("sinograms", rows, job.angles(), job.width);
  for (std::int64_t i = 0; i < rows; ++i)
    read_sinogram(space, job, stripes, prepared, job.rows.begin + (2 * i + 1) * job.slices / (2 * rows),
                  Sinograms(sinograms.data() + i * job.angles() * job.width, 1, sinograms.extent(1),
                            sinograms.extent(2)));
  Progress progress("aligning", "iterations", alignment_steps(job.width, angles));
  const Alignment found = align_views(space, sinograms, before, centre, angles, progress);
  const Views& views = found.views;
  double rotated = 0, shifted = 0; // root mean squares
  for (std::size_t p = 0; p < views.angles.size(); ++p) {
    rotated += std::pow((views.angles[p] - before.angles[p]) / degree, 2) / double(views.angles.size());
    shifted += views.shifts.empty() ? 0 : std::pow(views.shifts[p], 2) / double(views.angles.size());
  }
  const std::string residuals = "the residual of " + std::to_string(found.rows) + " rows is " +
                                shortest(found.before) + " before and " + shortest(found.after) + " after";
  if (found.after < found.before)
    provenance.took(job.scan.path(), "views that are " + shortest(std::sqrt(rotated)) + " degrees and " +
                                         shortest(std::sqrt(shifted)) +
                                         " pixels off (root mean square): " + residuals);
  else
    provenance.assume(job.scan.path().string() +
                      ": --align found no views that fit the data better: they stay as they are (residual " +
                      shortest(found.before) + ")");
  return views;
}

/// Angles and shifts as a table, in the order in which the projections were taken.
void write_views(const std::filesystem::path& path, const Scan& scan, const Views& views) {
  std::vector<std::size_t> order(views.angles.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::ranges::sort(order, {}, [&](std::size_t p) { return scan.views()[p].time; });
  std::vector<double> degrees, shifts;
  for (const std::size_t p : order) {
    degrees.push_back(views.angles[p] / degree);
    shifts.push_back(views.shifts.empty() ? 0 : views.shifts[p]);
  }
  const std::vector<TextColumn> columns{{"angle_degrees", degrees}, {"shift_pixels", shifts}};
  write_text_table(path, columns);
}

/// Where the axis is by the centres of mass of the views, which go along with centre + a cos + b sin of the angle.
struct MassFit {
  double centre = 0;
  double error =
      0; ///< of the centre, pixels: by what the fit leaves of views, and by what air has of columns
  bool is_sound = false; ///< the detector saw all of the object: its mass is the same in every view
};

MassFit fit_mass(const HostSinogram& sinogram, const std::vector<double>& angles) {
  const std::size_t count = sinogram.count;
  const SeenColumns columns(sinogram);
  std::vector<double> masses(count), moments(count);
  double largest = 0;
  for (std::size_t p = 0; p < count; ++p)
    for (std::size_t x = columns.begin; x < columns.end; ++x) { // above air
      const double value = sinogram.row(p)[x] - columns.air(x);
      largest = std::max(largest, value);
      masses[p] += value, moments[p] += value * double(x);
    }
  const double edges = std::max(std::abs(columns.left), std::abs(columns.right));
  const double mass = std::accumulate(masses.begin(), masses.end(), 0.0) / double(count);
  double spread = 0, rest = 0, lever = 0;
  for (std::size_t p = 0; p < count; ++p) {
    moments[p] /= mass;
    spread += std::pow(masses[p] / mass - 1, 2) / double(count);
  }
  const WaveFit waves(angles, moments);
  for (std::size_t p = 0; p < count; ++p)
    rest += std::pow(moments[p] - waves.at(angles[p]), 2) / double(count);
  MassFit fit;
  fit.centre = waves.constant();
  for (std::size_t x = columns.begin; x < columns.end; ++x)
    lever += std::pow(double(x) - fit.centre, 2);
  // Half a turn tells the constant from the waves less well than a whole one does.
  fit.error = std::sqrt(rest * waves.variance_of_constant + columns.scatter * lever / (mass * mass));
  fit.is_sound = count > 8 && mass > 0 && std::sqrt(spread) < 0.05 && edges < 0.05 * largest &&
                 fit.error < 0.5 && fit.centre >= 0 && fit.centre <= double(sinogram.width - 1);
  return fit;
}

/// Where the axis is by the two views that are nearest to opposite ones, of which one is the mirror image of the other.
/// Off by half of what an object moves between them, so that it tells places that are pixels apart.
double fit_pair(const HostSinogram& sinogram, const std::vector<double>& angles) {
  const auto [first, last] = std::ranges::minmax_element(angles);
  const std::size_t p = std::size_t(first - angles.begin());
  std::size_t q = std::size_t(last - angles.begin());
  const auto off = [&, least = *first](std::size_t i) {
    return std::abs(angles[i] - least - std::numbers::pi);
  };
  for (std::size_t i = 0; i < angles.size(); ++i)
    if (off(i) < off(q))
      q = i;
  const auto width = std::ptrdiff_t(sinogram.width);
  double best = 0, least = std::numeric_limits<double>::infinity();
  for (std::ptrdiff_t twice = width / 4; twice < 2 * width - width / 4; ++twice) {
    double sum = 0;
    std::ptrdiff_t count = 0;
    for (std::ptrdiff_t x = std::max<std::ptrdiff_t>(0, twice - width + 1); x < std::min(width, twice + 1);
         ++x, ++count)
      sum += std::pow(double(sinogram.row(p)[x]) - sinogram.row(q)[twice - x], 2);
    // What the other view does not see is taken for air: else few columns at an end would fit best.
    for (std::ptrdiff_t x = 0; x < width; ++x)
      if (twice - x < 0 || twice - x >= width)
        sum += std::pow(double(sinogram.row(p)[x]), 2), ++count;
    if (sum / double(count) < least)
      least = sum / double(count), best = 0.5 * double(twice);
  }
  return best;
}

/// The columns of a sinogram that the beam reaches, and the number of the first of them.
struct LitColumns {
  DeviceView<float**> values;
  double first = 0;

  LitColumns(const Space& space, const Job& job, const DeviceView<float**>& sinogram) : values(sinogram) {
    if (!job.lit)
      return;
    std::size_t begin = 0, end = sinogram.extent(1);
    while (begin < end && !job.sees(std::int64_t(begin)))
      ++begin;
    while (begin < end && !job.sees(std::int64_t(end - 1)))
      --end;
    const auto part = Kokkos::subview(sinogram, Kokkos::ALL, std::pair<std::size_t, std::size_t>(begin, end));
    values = allocate<DeviceView<float**>>("lit", part.extent(0), part.extent(1));
    Kokkos::deep_copy(space, values, part);
    space.fence("Bracewell::examples::lit_columns");
    first = double(begin);
  }
};

/// Whether values are finite and differ, so that there may be an axis.
bool shows_something(const HostSinogram& sinogram) {
  const auto [low, high] = std::ranges::minmax_element(sinogram.values);
  return *high > *low && std::ranges::all_of(sinogram.values, [](float v) { return std::isfinite(v); });
}

/// Where the axis is, to a pixel or two, in a small part of the time that find_axis takes: for a first picture. Nothing where
/// nothing is seen.
std::optional<double> guess_axis(const Space& space, const Job& job, const LitColumns& lit) {
  const HostSinogram host(lit.values);
  if (!shows_something(host) || job.scan.is_tilt_series())
    return {};
  if (const MassFit mass = fit_mass(host, job.scan.angles()); mass.is_sound)
    return lit.first + mass.centre;
  constexpr std::size_t few = 256;
  const std::size_t bin = std::max<std::size_t>(1, host.width / few), columns = host.width / bin,
                    step = std::max<std::size_t>(1, host.count / few);
  if (bin == 1) // the search itself takes no time
    return {};
  std::vector<double> angles;
  std::vector<float> values;
  for (std::size_t p = 0; p < host.count; p += step) {
    angles.push_back(job.scan.angles()[p]);
    for (std::size_t x = 0; x < columns; ++x)
      values.push_back(std::accumulate(host.row(p) + x * bin, host.row(p) + (x + 1) * bin,
                                       0.F)); // sums, as any unit will do
  }
  const auto coarse = allocate<DeviceView<float**>>("coarse", angles.size(), columns);
  copy_values(Part<float*>(coarse.data(), coarse.size()), host_view(values));
  return lit.first + (find_centre(space, coarse, angles) + 0.5) * double(bin) - 0.5;
}

std::string in_hundredths(double value) { return shortest(std::round(100 * value) / 100); }

/// Says where the axis goes along the rows by their centres of mass, and how the detector is rolled then.
void check_roll(const Space& space, const Job& job, const LitColumns& lit, const RowReader& row_of,
                Provenance& provenance) {
  const std::int64_t reach = job.slices / 3;
  if (reach < 1 || !row_of || job.scan.is_tilt_series())
    return;
  const auto fit = [&](const LitColumns& columns) {
    MassFit result = fit_mass(HostSinogram(columns.values), job.scan.angles());
    result.centre += columns.first;
    return result;
  };
  const MassFit middle = fit(lit);
  if (!middle.is_sound)
    return;
  MassFit fits[2];
  for (const int side : {0, 1}) {
    fits[side] = fit(LitColumns(space, job, row_of(job.middle_row() + (side == 0 ? -reach : reach))));
    if (!fits[side].is_sound)
      return;
  }
  const double moved = fits[1].centre - fits[0].centre,
               bend = middle.centre - 0.5 * (fits[0].centre + fits[1].centre),
               error = std::hypot(fits[0].error, fits[1].error);
  const double roll = std::atan2(moved, double(2 * reach)) / degree;
  std::string text = "the axis by the centres of mass of rows " + std::to_string(job.middle_row() - reach) +
                     ", " + std::to_string(job.middle_row()) + " and " +
                     std::to_string(job.middle_row() + reach) + " at pixels " +
                     in_hundredths(fits[0].centre) + ", " + in_hundredths(middle.centre) + " and " +
                     in_hundredths(fits[1].centre);
  // One that the slices show, and that the rows agree about.
  if (std::abs(moved) > std::max(0.5, 6 * error) && std::abs(bend) < 0.25 * std::abs(moved) &&
      std::abs(roll) < 5)
    provenance.assume(job.scan.path().string() + ": " + text + ": the detector is rolled by " +
                      in_hundredths(roll) + " degrees (--roll " + in_hundredths(job.options.roll + roll) +
                      ")");
  else
    provenance.took(job.scan.path(), text);
}

/// The axis of a tilt series of less than half a turn: by the centre of mass, or in the middle of the images.
double axis_of_tilts(const Job& job, const MassFit& mass, Provenance& provenance) {
  if (mass.is_sound && mass.error < 0.25) {
    provenance.took(job.scan.path(), "the rotation axis at pixel " + shortest(mass.centre) +
                                         ", by the centre of mass, as the images see all of the object");
    return mass.centre;
  }
  const double middle = 0.5 * (job.width - 1);
  provenance.assume(job.scan.path().string() +
                    ": the axis is taken to be in the middle of the images, at pixel " + shortest(middle) +
                    ", as in tilt series; --centre says where it is");
  return middle;
}

/// Whether two witnesses of the axis agree.
bool agree(const Job& job, double a, double b) { return std::abs(a - b) < std::max(1., 0.002 * job.width); }

/// The axis by the wedge of the sinogram's spectrum: near the centre of mass where that is sound and the two agree, else in the
/// middle half of the detector, else in nearly all of it. Throws InputError where there is none.
double axis_by_spectrum(const Space& space, const Job& job, const LitColumns& lit, const MassFit& mass,
                        Progress& progress) {
  const auto width = static_cast<int>(lit.values.extent(1));
  const double first_pixel = lit.first, last_pixel = lit.first + width - 1;
  std::int64_t shown = 0;
  const auto wedge = [&](double first, double last) {
    return lit.first +
           find_centre(space, lit.values, job.scan.angles(),
                       {.first = std::max(first_pixel, first) - lit.first,
                        .last = std::min(last_pixel, last) - lit.first,
                        .progress = [&](double share) {
                          progress.add(std::max<std::int64_t>(0, std::int64_t(100 * share) - shown));
                          shown = std::max(shown, std::int64_t(100 * share));
                        }});
  };
  const auto ends_at = [&](double value, double first, double last) {
    return (value < first + 1 && first > first_pixel) || (value > last - 1 && last < last_pixel);
  };
  const double near = std::max(4., 0.01 * width), quarter = width / 4;
  if (mass.is_sound)
    if (const double spectrum = wedge(mass.centre - near, mass.centre + near);
        agree(job, spectrum, mass.centre))
      return spectrum;
  double first = lit.first + width / 2 - quarter, last = lit.first + width / 2 + quarter;
  double spectrum = wedge(first, last);
  if (!ends_at(spectrum, first, last))
    return spectrum;
  first = lit.first + 0.02 * (width - 1), last = lit.first + 0.98 * (width - 1);
  spectrum = wedge(first, last);
  if (ends_at(spectrum, first, last) && !mass.is_sound)
    throw InputError(job.scan.path().string() +
                     ": the axis is not found: the search ends at its limit, pixel " +
                     in_hundredths(spectrum) + "; use --centre, or --try-centres for pictures");
  return spectrum;
}

/// The axis by the witness that is taken, and what all of them say.
struct Axis {
  double centre;
  std::string text;
  std::vector<double> places;
  bool is_agreed = true;
};

/// Takes a witness, after a third one: opposite views of a whole turn, or the first and the last view where the spectrum and
/// the centre of mass do not agree.
Axis choose_axis(const Space& space, const Job& job, const LitColumns& lit, const HostSinogram& host,
                 const MassFit& mass, double spectrum, bool whole_turn) {
  Axis axis{.centre = spectrum,
            .text = "by the sinogram's spectrum at " + in_hundredths(spectrum),
            .places = {spectrum}};
  if (mass.is_sound)
    axis.text += ", by the centre of mass at " + in_hundredths(mass.centre);
  if (whole_turn) {
    // They see what turns about the axis, and nothing else: a drift of the brightness or the edge of the detector are none.
    const double opposite = lit.first + find_overlap(space, lit.values, job.scan.angles());
    axis.text += ", by opposite views at " + in_hundredths(opposite);
    const bool as_spectrum = agree(job, opposite, spectrum),
               as_mass = mass.is_sound && agree(job, opposite, mass.centre);
    axis.is_agreed = as_spectrum && (!mass.is_sound || as_mass);
    const bool alone = !as_spectrum && !as_mass;
    axis.centre = alone && mass.is_sound && agree(job, spectrum, mass.centre) ? spectrum : opposite;
    axis.places.push_back(opposite);
  } else if (mass.is_sound && !agree(job, spectrum, mass.centre)) {
    const double opposite = lit.first + fit_pair(host, job.scan.angles());
    axis.text += ", by the first and the last view at " + in_hundredths(opposite);
    axis.is_agreed = false;
    const double of_spectrum = std::abs(spectrum - opposite), of_mass = std::abs(mass.centre - opposite);
    // Where the detector sees all of the object, the fit has no other minima to fall into.
    axis.centre = of_mass < of_spectrum && mass.error < 0.25 ? mass.centre : spectrum;
  } else if (mass.is_sound) {
    // The spectrum has no clear least value of what is even about the axis; drifts shift the centre of mass.
    axis.is_agreed = std::abs(spectrum - mass.centre) < std::max(0.3, 5 * mass.error);
  }
  if (mass.is_sound)
    axis.places.push_back(mass.centre);
  return axis;
}

/// The axis by three witnesses: the wedge of the sinogram's spectrum, near the centre of mass where the detector saw all of
/// the object; this centre of mass; and opposite views, over a whole turn all of them. Says how well they agree. Throws
/// InputError where there is none.
double find_axis(const Space& space, const Job& job, const LitColumns& lit, Provenance& provenance,
                 std::vector<double>& places) {
  const std::vector<double>& angles = job.scan.angles();
  const std::string file = job.scan.path().string();
  const HostSinogram host(lit.values);
  if (!shows_something(host)) {
    const auto [low, high] = std::ranges::minmax_element(host.values);
    throw InputError(file + ": the axis is not found, as row " + std::to_string(job.middle_row()) +
                     (*high > *low ? " has values that are not finite" : " has the same value everywhere") +
                     "; use --centre");
  }
  MassFit mass = fit_mass(host, angles);
  mass.centre += lit.first;
  const auto [least, most] = std::ranges::minmax(angles);
  if (job.scan.is_tilt_series() && most - least < 170 * degree)
    return axis_of_tilts(job, mass, provenance);
  Progress progress("searching the axis", "parts", 100);
  const double spectrum = axis_by_spectrum(space, job, lit, mass, progress);
  const bool whole_turn = most - least > 350 * degree && angles.size() >= 16;
  Axis axis = choose_axis(space, job, lit, host, mass, spectrum, whole_turn);
  if (!axis.is_agreed) {
    provenance.assume(file + ": the axis is " + axis.text + ", of which " + in_hundredths(axis.centre) +
                      " is taken: look at the picture of these (_axis), or at --try-centres");
    places = std::move(axis.places);
  } else if (!mass.is_sound && !whole_turn) {
    provenance.assume(
        file + ": the axis, pixel " + in_hundredths(axis.centre) +
        ", is found by the sinogram's spectrum alone, as the object goes on beyond the detector "
        "or its mass changes: look at --try-centres");
  }
  provenance.took(job.scan.path(), "the rotation axis at pixel " + shortest(axis.centre) + ", " + axis.text);
  return axis.centre;
}

} // namespace

std::optional<PreparedRows> prepare_middle(const Space& space, const Job& job, const Stripes& stripes) {
  if (!job.has_frame_steps())
    return {};
  auto prepared = prepare_sinograms(space, job, {job.middle_row(), job.middle_row() + 1}, stripes);
  if (!job.options.try_tilts)
    prepare_frames(space, job, job.options.roll, prepared);
  return prepared;
}

DeviceView<float**> sinogram_of(const Space& space, const Job& job, const Stripes& stripes,
                                const std::optional<PreparedRows>& prepared, std::int64_t row) {
  const auto sinogram = allocate<DeviceView<float**>>("sinogram", job.angles(), job.width);
  read_sinogram(space, job, stripes, prepared, row,
                Sinograms(sinogram.data(), 1, sinogram.extent(0), sinogram.extent(1)));
  return sinogram;
}

double mean_attenuation(const DeviceView<float**>& sinogram) {
  const auto values = values_on_host(sinogram);
  const double squares =
      std::transform_reduce(values.data(), values.data() + values.size(), 0.0, std::plus<>(),
                            [](float value) { return double(value) * value; });
  return std::sqrt(squares / double(values.size())) / double(values.extent(1));
}

MiddleSlice look_at_middle(const Space& space, const Job& job, const DeviceView<float**>& sinogram,
                           const RowReader& row_of, const ShowSlice& show, Provenance& provenance,
                           Timings& timings) {
  const RunOptions& options = job.options;
  const LitColumns lit(space, job, sinogram);
  if (!options.half_acquisition && !options.laminography)
    check_sinogram(job, lit.values, std::size_t(lit.first), provenance);
  check_size(options, place_of(job, axis_or_widest(job)), provenance);
  if (options.centre && !(*options.centre >= 0 && *options.centre <= job.width - 1))
    provenance.assume("--centre " + shortest(*options.centre) + ": lies outside of the detector's " +
                      std::to_string(job.width) + " columns: what is about the axis was not seen");
  provenance.say();
  MiddleSlice found{.centre = options.centre.value_or(0), .attenuation = mean_attenuation(sinogram)};
  if (!options.centre)
    timings.phase("search the axis");
  const bool by_witnesses = !options.centre && !options.half_acquisition;
  if (!options.centre && options.half_acquisition)
    found.centre = lit.first + find_overlap(space, lit.values, job.scan.angles());
  else if (by_witnesses) {
    if (const std::optional<double> guess = guess_axis(space, job, lit))
      show({.centre = *guess, .attenuation = found.attenuation});
    found.centre = find_axis(space, job, lit, provenance, found.places);
  }
  // Whatever the others compute on.
  found.centre = sum_over_processes(is_first_process() ? found.centre : 0);
  found.attenuation = sum_over_processes(is_first_process() ? found.attenuation : 0);
  show(found);
  if (by_witnesses)
    check_roll(space, job, lit, row_of, provenance);
  if (!options.centre && options.half_acquisition)
    provenance.took(job.scan.path(), "the rotation axis at pixel " + shortest(found.centre));
  if (!options.density_weights && !angle_weights(options, job.scan.angles()).empty())
    provenance.took(job.scan.path(), "angles that are not evenly spread, by which projections are weighed");
  if (options.half_acquisition)
    provenance.took(job.scan.path(),
                    "half acquisition: " +
                        shortest(std::round(1 + 2 * std::min(found.centre, job.width - 1 - found.centre))) +
                        " columns are seen twice");
  return found;
}

void check_size(const RunOptions& options, const Place& place, Provenance& provenance) {
  if (options.solver && place.image < place.seen)
    provenance.assume("--size " + std::to_string(place.image) +
                      ": --solver takes what lies beyond the slices for air; the detector sees " +
                      std::to_string(place.seen) + " pixels");
}

namespace {

/// A detector row of all views as it is stored, [angles, width], and what of it is no data.
struct StoredRow {
  std::int64_t row, width, count;
  std::vector<float> values, dark, light,
      faint;                   ///< the last three [width]: no light, all of it above that, and 1 % of it
  float limit;                 ///< of the type
  std::int64_t dark_flats = 0; ///< columns whose flat frames are not above the dark ones

  StoredRow(const Space& space, const Job& job, std::int64_t row_)
      : row(row_), width(job.scan.width()), count(job.angles() * width), values(size(count)),
        dark(size(width), 0.F),
        limit(saturation(job.scan.format().type).value_or(std::numeric_limits<float>::infinity())) {
    const StoredFormat format = job.scan.format();
    const Kokkos::View<std::byte*, Kokkos::HostSpace> host("Bracewell::examples::row",
                                                           size(count * bytes_of(format.type)));
    job.scan.read(row, 1, {host.data(), host.size()});
    const auto stored = values_in<Memory>(host);
    const auto floats = allocate<DeviceView<float*>>("floats", count);
    to_floats(space, format, stored.data(), floats.data(), count);
    space.fence("Bracewell::examples::stored_row");
    copy_values(host_view(values), Part<const float*>(floats.data(), floats.size()));
    if (job.scan.has_dark())
      job.scan.read_dark(row, 1, dark);
    light.assign(size(width), 0.F);
    if (job.scan.has_flat()) {
      job.scan.read_flat(0, row, 1, light);
      for (std::size_t x = 0; x < light.size(); ++x)
        dark_flats += light[x] <= dark[x] ? 1 : 0, light[x] -= dark[x];
    } else {
      light.assign(light.size(), usual_brightness());
    }
    constexpr float hardly_any = 0.01F;
    for (std::size_t x = 0; x < light.size(); ++x)
      faint.push_back(dark[x] + hardly_any * std::max(0.F, light[x]));
  }

  /// Flat frames that are not above dark ones in most columns say nothing about the light.
  bool has_swapped_flats() const { return 2 * dark_flats > width; }
  bool is_saturated(std::int64_t i) const { return values[size(i)] >= limit; }
  std::span<const float> view(std::size_t p) const {
    return std::span(values).subspan(p * dark.size(), dark.size());
  }
  bool is_finite(std::int64_t i) const { return std::isfinite(values[size(i)]); }
  bool has_light(std::int64_t i) const { return values[size(i)] > faint[size(i % width)]; }
  /// What one column in ten is above, of those whose flat frames are finite.
  float usual_light() const {
    std::vector<float> sorted;
    std::ranges::copy_if(light, std::back_inserter(sorted), [](float value) { return std::isfinite(value); });
    if (sorted.empty())
      return 0;
    const auto place = sorted.begin() + std::ptrdiff_t(sorted.size() * 9 / 10);
    std::ranges::nth_element(sorted, place);
    return *place;
  }
  /// Values of a column that are not above dark.
  std::int64_t dark_values(std::int64_t x) const {
    std::int64_t number = 0;
    for (std::int64_t i = x; i < count; i += width)
      number += values[size(i)] <= dark[size(x)];
    return number;
  }

private:
  /// The median over the views of what one pixel in twenty is above: the light where there are no flat frames.
  float usual_brightness() const {
    std::vector<float> of_views, above;
    for (std::size_t p = 0; p < values.size() / dark.size(); ++p) {
      above.clear();
      for (std::size_t x = 0; x < dark.size(); ++x)
        if (std::isfinite(view(p)[x]))
          above.push_back(view(p)[x] - dark[x]);
      if (above.empty())
        continue;
      const auto place = above.begin() + std::ptrdiff_t(above.size() * 19 / 20);
      std::ranges::nth_element(above, place);
      of_views.push_back(*place);
    }
    if (of_views.empty())
      return 0;
    const auto middle = of_views.begin() + std::ptrdiff_t(of_views.size() / 2);
    std::ranges::nth_element(of_views, middle);
    return *middle;
  }
};

/// Values of the row of a view that are no data: lost, as they are not finite or saturated, and without light, as they have 1 %
/// of it at most.
struct NoData {
  std::int64_t lost = 0, without_light = 0;

  NoData(const StoredRow& row, std::int64_t view, bool is_light) {
    for (std::int64_t i = view * row.width; i < (view + 1) * row.width; ++i)
      if (!row.is_finite(i) || row.is_saturated(i))
        ++lost;
      else
        without_light += is_light && !row.has_light(i);
  }
  std::int64_t all() const { return lost + without_light; }
  /// Whether the frame says nothing: half of the row is lost, or nine tenths of it are no data.
  bool is_frame(std::int64_t width) const { return 2 * lost > width || 10 * all() > 9 * width; }
};

/// Values that are no data, in columns that the beam reaches.
struct InvalidValues {
  std::int64_t not_finite = 0, saturated = 0, without_light = 0;
  std::vector<std::int64_t> of_columns;

  InvalidValues(const Job& job, const StoredRow& row) : of_columns(row.dark.size()) {
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      const std::size_t x = i % of_columns.size();
      const auto at = static_cast<std::int64_t>(i);
      if (!job.is_lit(std::int64_t(x)))
        continue;
      const bool is_saturated = row.is_saturated(at), is_finite = row.is_finite(at),
                 is_dark = job.logarithm && row.values[i] <= row.dark[x];
      not_finite += !is_finite, saturated += is_finite && is_saturated, without_light += is_finite && is_dark;
      of_columns[x] += !is_finite || is_saturated || is_dark;
    }
  }
  std::int64_t all() const { return not_finite + saturated + without_light; }
};

/// "3, 7, 8 and others"
std::string first_of(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(8, numbers.size()); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(numbers[i]);
  return text + (numbers.size() > 8 ? " and others" : "");
}

/// Goes on without the frames whose middle row is no data where those of others are: dropped, taken with the shutter shut,
/// saturated. Returns whether there were any. Throws InputError where too many are, and where no frame has light.
bool drop_frames(const StoredRow& seen, Job& job, Provenance& provenance) {
  std::vector<NoData> views;
  for (std::int64_t p = 0; p < job.angles(); ++p)
    views.emplace_back(seen, p, job.logarithm);
  std::vector<NoData> sorted = views;
  const auto middle = sorted.begin() + std::ptrdiff_t(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle, {}, &NoData::all);
  const bool is_most = 10 * middle->all() > 9 * seen.width;
  const std::string row = "row " + std::to_string(seen.row);
  if (is_most && seen.has_swapped_flats())
    throw InputError(job.scan.path().string() + ": flat frames are not above dark ones in " +
                     std::to_string(seen.dark_flats) + " of " + std::to_string(seen.width) + " pixels of " +
                     row + ", and no projection has light: are --flat and --dark swapped?");
  if (is_most)
    throw InputError(job.scan.path().string() + ": " + row + " of most projections has no data" +
                     (job.logarithm ? ", less than 1 % of the light or saturated: was the shutter shut?"
                                    : ": it is saturated or not finite"));
  if (2 * middle->all() > seen.width)
    return false; // frames of this kind are not told from the others
  std::vector<bool> bad;
  std::vector<std::int64_t> numbers;
  for (std::size_t p = 0; p < views.size(); ++p) {
    bad.push_back(views[p].is_frame(seen.width));
    if (bad[p])
      numbers.push_back(std::int64_t(job.scan.views()[p].time));
  }
  if (numbers.empty())
    return false;
  std::ranges::sort(numbers);
  provenance.unusable(
      {.file = job.scan.path().string(),
       .count = std::int64_t(numbers.size()),
       .of = job.angles(),
       .what = "frames",
       .why = "have no light or are saturated (" + row + " of projections " + first_of(numbers) + ")",
       .done = "they are left out",
       .remedy = "--leave-out goes on without them"});
  job.scan.drop(bad);
  job.check_span();
  return true;
}

/// Finds the columns at the ends that the beam does not reach; they say nothing from here on. The flat frames have no light
/// there. Or they have less than a twentieth of the usual light, and one view of a hundred is not above dark.
void find_lit_columns(const StoredRow& row, Job& job, Provenance& provenance) {
  if (!job.scan.has_flat() || row.has_swapped_flats())
    return;
  const float little = row.usual_light() / 20;
  const auto is_unlit = [&](std::int64_t x) {
    return !(row.light[size(x)] > 0) || // or not a number
           (row.light[size(x)] < little && 100 * row.dark_values(x) > job.angles());
  };
  const std::int64_t bin = job.options.binning;
  const IndexRange all{bin * job.columns.begin, bin * job.columns.end};
  const auto last_unlit = [&](std::int64_t from, std::int64_t step) { // over hot columns among them
    constexpr std::int64_t gap = 2;
    std::int64_t found = from - step;
    for (std::int64_t x = from; x >= all.begin && x < all.end && std::abs(x - found) <= gap + 1; x += step)
      found = is_unlit(x) ? x : found;
    return found;
  };
  std::int64_t begin = last_unlit(all.begin, 1) + 1, end = last_unlit(all.end - 1, -1);
  // Nor the half-shade beside them, whose noise would stand for all of them.
  while (begin > all.begin && begin < end && row.light[size(begin)] < little)
    ++begin;
  while (end < all.end && begin < end && row.light[size(end - 1)] < little)
    --end;
  const std::int64_t unlit = begin - all.begin + all.end - std::max(begin, end);
  if (unlit == 0)
    return;
  job.lit = {begin, std::max(begin, end)};
  const std::string remedy = begin < end ? "--columns " + std::to_string((begin + bin - 1) / bin) + ":" +
                                               std::to_string(end / bin) + " goes on without them"
                                         : "are --flat and --dark right?";
  provenance.unusable(
      {.file = job.scan.path().string(),
       .count = unlit,
       .of = all.end - all.begin,
       .what = "columns",
       .why = "at the ends of row " + std::to_string(row.row) + " have no light in the flat frames",
       .done = "the next column that has some stands for them; " + remedy,
       .remedy = remedy});
}

/// Least and largest value of a row that are finite.
std::pair<float, float> range_of(const StoredRow& row) {
  float least = std::numeric_limits<float>::infinity(), most = -least;
  for (const float value : row.values)
    if (std::isfinite(value))
      least = std::min(least, value), most = std::max(most, value);
  return {least, most};
}

/// Throws InputError for values that no detector counts, and where all are alike: no object is there.
void require_contrast(const Space& space, const Job& job, const StoredRow& middle) {
  const auto [least, most] = range_of(middle);
  const std::string file = job.scan.path().string(), row = "row " + std::to_string(middle.row) + " has ";
  constexpr float largest = 1e15F;
  if (least <= most && std::max(-least, most) > largest)
    throw InputError(file + ": " + row + "values of " + shortest(-least > most ? least : most) +
                     ", expected 1e+15 at most: damaged, or of another type than the file says?");
  bool is_alike = least == most && middle.count > middle.width;
  constexpr std::int64_t more = 4; // rows, as the middle one may be air
  for (std::int64_t part = 0; is_alike && part < more; ++part) {
    const std::int64_t other = job.rows.begin + (2 * part + 1) * job.slices / (2 * more);
    is_alike = range_of(StoredRow(space, job, job.options.binning * other)) == std::pair(least, most);
  }
  if (is_alike)
    throw InputError(file + ": " + row + "the value " + shortest(least) +
                     " everywhere: is it the right dataset (--data), and was it written?");
}

} // namespace

void check_values(const Space& space, Job& job, std::int64_t more, Provenance& provenance) {
  const std::int64_t row = job.options.binning * job.middle_row();
  const std::string file = job.scan.path().string();
  StoredRow stored(space, job, row);
  if (drop_frames(stored, job, provenance))
    stored = StoredRow(space, job, row);
  require_contrast(space, job, stored);
  find_lit_columns(stored, job, provenance);
  const InvalidValues invalid(job, stored);
  job.has_invalid = invalid.all() > 0 || job.lit;
  for (std::int64_t part = 0; !job.has_invalid && part < more; ++part) {
    const std::int64_t other = job.rows.begin + (2 * part + 1) * job.slices / (2 * more);
    job.has_invalid = InvalidValues(job, StoredRow(space, job, job.options.binning * other)).all() > 0;
  }
  if (invalid.all() == 0)
    return;
  std::vector<std::int64_t> dead;
  for (std::size_t x = 0; x < invalid.of_columns.size(); ++x)
    if (2 * invalid.of_columns[x] > job.angles())
      dead.push_back(std::int64_t(x));
  std::string text = "are no data in row " + std::to_string(row) + " (" + std::to_string(invalid.saturated) +
                     " saturated, " + std::to_string(invalid.without_light) + " without light, " +
                     std::to_string(invalid.not_finite) + " not finite)";
  if (!dead.empty())
    text += ", with " + std::to_string(dead.size()) +
            (dead.size() > 1 ? " dead columns (" : " dead column (") + first_of(dead) + ")";
  const bool iterates = job.options.solver && !job.has_frame_steps();
  const std::string done = !iterates ? "they are interpolated"
                           : job.options.solver->method == LeastSquaresMethod::TotalVariation
                               ? "iterations leave them out"
                               : "they are interpolated, and iterations weigh them less";
  if (dead.empty() && 1000 * invalid.all() < stored.count)
    provenance.took(file, std::to_string(invalid.all()) + " of " + std::to_string(stored.count) + " values " +
                              text + ": " + done);
  else
    provenance.unusable({.file = file,
                         .count = invalid.all(),
                         .of = stored.count,
                         .what = "values",
                         .why = text,
                         .done = done,
                         .remedy = "--columns and --leave-out take the others"});
}

void check_flats(const Job& job, Provenance& provenance) {
  if (job.scan.has_flat() && !job.scan.has_dark() && !job.options.scan.dark.empty())
    provenance.assume(
        job.scan.path().string() +
        ": has flat frames but no dark ones: without beam the detector is taken to show 0; --dark "
        "says where they are, --dark \"\" that there are none");
  if (!job.scan.has_dark())
    return;
  const Means means(job, job.middle_row(), 1);
  std::size_t below = 0;
  for (std::size_t i = 0; i < means.dark.size(); ++i)
    below += job.sees(std::int64_t(i)) && !(means.flat[i] > means.dark[i]);
  if (20 * below > means.dark.size())
    provenance.assume(job.scan.path().string() + ": flat frames are not above dark ones in " +
                      std::to_string(below) + " of " + std::to_string(means.dark.size()) + " pixels of row " +
                      std::to_string(job.middle_row()) +
                      ", which are interpolated; are --flat and --dark right?");
}

Views views_of(const Space& space, const Job& job, const Stripes& stripes,
               const std::optional<PreparedRows>& prepared, double centre, Provenance& provenance,
               Timings& timings) {
  const RunOptions& options = job.options;
  if (options.laminography || options.align != AlignedViews::None)
    require_one_process();
  if (options.align == AlignedViews::None)
    return {job.scan.angles()};
  timings.phase("align the views");
  Views views = find_views(space, job, stripes, prepared, centre, provenance);
  if (!is_null_output(options.out))
    write_views(views_path(options), job.scan, views);
  return views;
}

std::filesystem::path views_path(const RunOptions& options) {
  return beside_slices(options.out, "_views.txt");
}

} // namespace Bracewell::Examples
