// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/measurement.hpp"

#include "common/input_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>

namespace Bracewell::Examples {
namespace {

constexpr double planck_times_light = 1.98644586e-25; // J m

/// The same name under the entries that CXI and plain NeXus files have.
std::vector<std::string> in_entries(const std::vector<std::string>& names) {
  std::vector<std::string> places;
  for (const auto& name : names) {
    places.push_back("/entry_1/" + name);
    std::string nexus = "/entry/" + name; // data_1 and so on have no number there
    for (std::size_t at; (at = nexus.find("_1/")) != std::string::npos;)
      nexus.erase(at, 2);
    places.push_back(nexus);
  }
  return places;
}

std::vector<std::string> and_plain(std::vector<std::string> places, const std::string& plain) {
  places.push_back(plain);
  return places;
}

/// And /dp, and scans [rows, columns, rows, columns] two groups deep, as py4DSTEM has them.
std::vector<std::string> and_datacubes(const Hdf5Reader& file, std::vector<std::string> places) {
  places.push_back("/dp");
  places.push_back("/chunks/0/data");
  places.push_back("/4DSTEM_experiment/data/datacubes/datacube_0/data");
  if (std::ranges::any_of(places, [&](const auto& place) { return file.has_dataset(place); }))
    return places;
  for (const auto& top : file.list("/"))
    for (const auto& group : file.has("/" + top) && !file.has_dataset("/" + top) ? file.list("/" + top)
                                                                                 : std::vector<std::string>())
      if (const std::string place = "/" + top + "/" + group + "/data";
          file.has_dataset(place) && file.shape(place).size() == 4)
        places.push_back(place);
  return places;
}

/// Which coordinates (x, y) of a position rows and columns of the object are, and with which sign.
struct Axes {
  std::array<std::size_t, 2> coordinate{};
  std::array<double, 2> sign{1, 1};
};

/// Of --axes; throws InputError for what are no axes.
Axes axes_of(const std::string& option) {
  std::string rest = option;
  Axes axes;
  for (const std::size_t axis : {0, 1}) {
    if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
      axes.sign[axis] = rest[0] == '-' ? -1 : 1;
      rest.erase(0, 1);
    }
    if (rest.empty() || (rest[0] != 'x' && rest[0] != 'y'))
      throw InputError("--axes " + option + ": expected two of x and y, each with a sign or without");
    axes.coordinate[axis] = rest[0] == 'x' ? 0 : 1;
    rest.erase(0, 1);
  }
  if (!rest.empty() || axes.coordinate[0] == axes.coordinate[1])
    throw InputError("--axes " + option + ": expected x and y once each");
  return axes;
}

/// What a unit's name stands for, in metres, joules and radians; 1 where it has none or another one.
double unit_of(const std::string& name) {
  constexpr double ev = 1.602176634e-19;
  constexpr std::pair<const char*, double> known[] = {
      {"mm", 1e-3},  {"um", 1e-6},        {"µm", 1e-6},        {"micron", 1e-6},  {"nm", 1e-9},
      {"pm", 1e-12}, {"angstrom", 1e-10}, {"Angstrom", 1e-10}, {"A", 1e-10},      {"cm", 1e-2},
      {"eV", ev},    {"ev", ev},          {"keV", 1e3 * ev},   {"kev", 1e3 * ev}, {"mrad", 1e-3}};
  for (const auto& [unit, factor] : known)
    if (name == unit)
      return factor;
  return 1;
}

/// Frame's index of each of n rows (or columns), zero frequency first.
std::vector<std::int64_t> far_field_window(std::int64_t n, std::int64_t frame, std::int64_t centre) {
  std::vector<std::int64_t> indices;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t index = centre + (2 * k < n ? k : k - n);
    if (centre == 0 && n > frame) // wraps around, with what is not measured in the middle
      indices.push_back(std::abs(2 * (2 * k < n ? k : k - n) + 1) <= frame ? (index + frame) % frame : -1);
    else if (centre == 0)
      indices.push_back((index + frame) % frame);
    else
      indices.push_back(index >= 0 && index < frame ? index : -1);
  }
  return indices;
}

} // namespace

Measurement::Measurement(const std::filesystem::path& path, const MeasurementOptions& options,
                         Provenance& provenance)
    : file_(open(path)),
      data_(find(options.data,
                 and_datacubes(
                     file_, and_plain(in_entries({"data_1/data", "instrument_1/detector_1/data"}), "/data")),
                 "diffraction patterns")) {
  read_shape();
  if (is_ptyd() && file_.has("/chunks/1"))
    throw InputError(path.string() + ": expected patterns in one chunk of the file, found /chunks/1, too");
  blocks_.emplace(file_, data_);
  for (std::int64_t number = 0; number < shape_[0]; number += static_cast<std::int64_t>(options.every))
    numbers_.push_back(number);
  leave_out_unwritten(provenance);
  read_window(options);
  read_geometry(options, provenance);
  read_mask(options, provenance);
  read_corrections(provenance);
  read_positions(options, provenance);
  read_probe(options);
  provenance.took(path, std::to_string(shape_[0]) + " patterns of " + std::to_string(shape_[1]) + " x " +
                            std::to_string(shape_[2]) + " pixels" +
                            (wavelength_ > 0 ? ", wavelength " + shortest(wavelength_) + " m" : "") +
                            (object_pixel_ > 0 ? ", object pixel " + shortest(object_pixel_) + " m" : ""));
}

/// Leaves out patterns that the file has room for and no values: the scan stopped early.
void Measurement::leave_out_unwritten(Provenance& provenance) {
  const std::vector<std::int64_t> unwritten = file_.never_written(data_);
  const std::int64_t each = grid_[0] > 0 ? grid_[1] : 1; // patterns of a row of the scan
  const auto before = static_cast<std::int64_t>(numbers_.size());
  std::erase_if(numbers_,
                [&](std::int64_t number) { return std::ranges::binary_search(unwritten, number / each); });
  provenance.unusable(
      {.file = path().string() + ": " + data_,
       .count = before - static_cast<std::int64_t>(numbers_.size()),
       .of = before,
       .what = "patterns",
       .why = "were never written",
       .done = "they are left out",
       .remedy = "did the scan stop early? copy the written patterns to a file of their own"});
}

void Measurement::read_shape() {
  const Hdf5Shape stored = file_.shape(data_);
  shape_ = stored;
  if (stored.size() == 4) {
    grid_ = {stored[0], stored[1]};
    shape_ = {stored[0] * stored[1], stored[2], stored[3]};
  }
  if (shape_.size() != 3 || hdf5_elements(shape_) == 0 || shape_[1] < 4 || shape_[2] < 4 ||
      std::max(shape_[1], shape_[2]) > 16384)
    file_.fail(data_,
               "expected patterns [N, rows, columns] or [rows, columns of the scan, rows, columns] of 4 to "
               "16384 pixels, found shape " +
                   hdf5_text(stored));
}

std::array<double, 2> Measurement::read_axes() const {
  std::array<double, 2> result{};
  const std::string group = data_.substr(0, data_.rfind('/'));
  const int first = file_.has_dataset(group + "/dim0") ? 0 : 1; // as its versions before 0.13
  for (const auto& [axis, place] : {std::pair<std::size_t, std::string>{0, first == 0 ? "/dim2" : "/dim3"},
                                    {1, first == 0 ? "/dim0" : "/dim1"}}) {
    const std::string name = group + place;
    if (grid_[0] == 0 || !file_.has_dataset(name) || hdf5_elements(file_.shape(name)) < 2)
      continue;
    const auto values = file_.read<double>(name);
    const double step = std::abs(values[1] - values[0]);
    const std::string unit = file_.text_attribute(name, "units");
    if (!(step > 0 && std::isfinite(step)))
      file_.fail(name, "expected finite values that are not the same");
    if (axis == 1 && unit_of(unit) != 1)
      result[1] = step * unit_of(unit);
    else if (axis == 0 && unit == "A^-1")
      result[0] = 1e-10 / (step * detector());
    else if (axis == 0 && unit == "mrad" && wavelength_ > 0)
      result[0] = wavelength_ / (1e-3 * step * detector());
  }
  return result;
}

std::string Measurement::find(const std::string& asked, const std::vector<std::string>& places,
                              const char* what) const {
  if (!asked.empty()) {
    if (!file_.has_dataset(asked))
      file_.fail(asked, std::string("is not there (") + what + ")");
    return asked;
  }
  for (const auto& place : places)
    if (file_.has_dataset(place))
      return place;
  std::string known;
  for (const auto& place : places)
    known += (known.empty() ? "" : ", ") + place;
  throw InputError(path().string() + ": has no " + what + " (looked for " + known + ")");
}

std::optional<double> Measurement::scalar(const std::optional<double>& asked,
                                          const std::vector<std::string>& places) const {
  if (asked)
    return asked;
  for (const auto& place : places)
    if (file_.has_dataset(place)) {
      const auto value = file_.read_scalar<double>(place) * unit_of(file_.text_attribute(place, "units"));
      if (!(value > 0 && std::isfinite(value)))
        file_.fail(place, "expected one finite value > 0, found " + std::to_string(value));
      return value;
    }
  return std::nullopt;
}

void Measurement::read_window(const MeasurementOptions& options) {
  const bool empad = shape_[1] == 130 && shape_[2] == 128; // the last two rows are no pixels
  const std::int64_t rows = empad ? 128 : shape_[1], columns = shape_[2],

                     most = options.focus_distance ? std::min(rows, columns) : std::max(rows, columns),
                     n = options.detector.value_or(most);
  if (n < 4 || n > most)
    throw InputError(path().string() + ": expected a detector window of 4 to " + std::to_string(most) +
                     " pixels, found " + std::to_string(n));
  if (options.focus_distance && rows != columns && !options.detector)
    throw InputError(path().string() + ": expected square patterns in the near field, found " +
                     hdf5_text({rows, columns}) + "; --detector " + std::to_string(n) +
                     " takes their middle");
  if (options.focus_distance) {
    for (const auto& [indices, frame] : {std::pair{&rows_, rows}, std::pair{&columns_, columns}}) {
      indices->resize(static_cast<std::size_t>(n));
      std::iota(indices->begin(), indices->end(), (frame - n) / 2);
    }
    return;
  }
  std::array<double, 2> centre{0, 0};
  if (data_ != "/data")
    centre = {double(rows / 2), double(columns / 2)};
  const auto stated = [&](const char* name) {
    for (const auto& place : in_entries({std::string("instrument_1/detector_1/") + name}))
      if (file_.has_dataset(place))
        return std::optional(file_.read_scalar<double>(place));
    return std::optional<double>();
  };
  const auto x = stated("beam_center_x"), y = stated("beam_center_y");
  if (x && y)
    centre = {*y, *x};
  if (options.centre.size() == 2)
    centre = {options.centre[0], options.centre[1]};
  for (const std::size_t axis : {0, 1})
    if (!(centre[axis] >= 0 && centre[axis] < double(shape_[1 + axis])))
      throw InputError(path().string() + ": the zero frequency at row " + std::to_string(centre[0]) +
                       ", column " + std::to_string(centre[1]) + " lies outside the frame of " +
                       hdf5_text({rows, columns}));
  rows_ = far_field_window(n, rows, std::lround(centre[0]) % rows);
  columns_ = far_field_window(n, columns, std::lround(centre[1]) % columns);
}

std::optional<double> Measurement::any_sign(const std::vector<std::string>& places) const {
  for (const auto& place : places)
    if (file_.has_dataset(place)) {
      const auto value = file_.read_scalar<double>(place);
      if (!std::isfinite(value))
        file_.fail(place, "expected a finite number");
      return value;
    }
  return std::nullopt;
}

void Measurement::read_geometry(const MeasurementOptions& options, Provenance& provenance) {
  const auto in_source = [](const char* name) {
    return in_entries(
        {std::string("instrument_1/source_1/") + name, std::string("instrument_1/beam_1/") + name});
  };
  const auto in_detector = [](const char* name) {
    return in_entries({std::string("instrument_1/detector_1/") + name});
  };
  convergence_angle_ =
      scalar(std::nullopt, and_plain(in_entries({"instrument_1/source_1/convergence_semi_angle",
                                                 "instrument_1/source_1/convergence_angle"}),
                                     "/convergence_angle"));
  if (const auto metres = any_sign(and_plain(in_source("defocus"), "/defocus")))
    defocus_ = *metres * 1e9;
  wavelength_ = scalar(options.wavelength, and_plain(in_source("wavelength"), "/wavelength")).value_or(0);
  if (wavelength_ == 0)
    if (const auto energy = scalar(std::nullopt, and_plain(in_source("energy"), "/energy"))) {
      if (*energy > 1e-9)
        throw InputError(path().string() + ": expected an energy in joules, found " +
                         std::to_string(*energy) + "; use --wavelength");
      // Electrons are focused by a lens of known angle, and have more energy than photons that are.
      constexpr double electron = 8.18710578e-14, fifty_kev = 8e-15; // J
      const bool electrons = convergence_angle_ && *energy > fifty_kev;
      wavelength_ =
          planck_times_light / (electrons ? std::sqrt(*energy * (*energy + 2 * electron)) : *energy);
      if (*energy > fifty_kev)
        provenance.assume(path().string() + ": its energy of " + shortest(*energy / 1.602176634e-16) +
                          " keV is taken as the energy of " + (electrons ? "electrons" : "photons") +
                          "; --wavelength says otherwise");
    }
  if (const auto kev = wavelength_ == 0 && is_ptyd() ? scalar({}, {"/meta/energy"}) : std::nullopt)
    wavelength_ = planck_times_light / (*kev * 1.602176634e-16);
  const std::string of_ptyd = is_ptyd() ? "/meta/distance" : "/distance";
  distance_ = scalar(options.distance, and_plain(in_detector("distance"), of_ptyd)).value_or(0);
  auto x = scalar(options.detector_pixel, in_detector("x_pixel_size"));
  auto y = scalar(options.detector_pixel, in_detector("y_pixel_size"));
  if (!x && !y && is_ptyd() && file_.has_dataset("/meta/psize")) {
    const auto sizes = file_.read<double>("/meta/psize");
    if (sizes.empty() || sizes.size() > 2 || !(sizes.front() > 0 && sizes.back() > 0))
      file_.fail("/meta/psize", "expected one or two sizes > 0");
    y = sizes.front(), x = sizes.back();
  }
  if (x && y && std::abs(*x - *y) > 1e-3 * *x)
    throw InputError(path().string() + ": expected square detector pixels, found " +
                     std::to_string(*x * 1e6) + " x " + std::to_string(*y * 1e6) + " micrometres");
  detector_pixel_ = x ? *x : y.value_or(0);
  const bool known = wavelength_ > 0 && distance_ > 0 && detector_pixel_ > 0;
  if (options.focus_distance) {
    if (!known)
      throw InputError(path().string() + ": a near-field measurement needs wavelength, distance and detector "
                                         "pixel; use --wavelength, --distance, --detector-pixel");
    // A point source at distance f from the sample is equivalent to a plane wave and a distance z f / (z +
    // f).
    const double magnification = (distance_ + *options.focus_distance) / *options.focus_distance;
    object_pixel_ = detector_pixel_ / magnification;
    const double window = detector() * object_pixel_;
    fresnel_number_ = window * window / (wavelength_ * distance_ / magnification);
  } else if (known) {
    object_pixel_ = wavelength_ * distance_ / (detector() * detector_pixel_);
  }
  if (object_pixel_ == 0)
    object_pixel_ = read_axes()[0];
  object_pixel_ = options.object_pixel.value_or(object_pixel_);
}

std::string Measurement::mask_dataset(const MeasurementOptions& options) const {
  if (!options.mask.empty())
    return options.mask;
  for (const auto& place : and_plain(in_entries({"instrument_1/detector_1/mask", "data_1/mask"}), "/mask"))
    if (file_.has_dataset(place))
      return place;
  return "";
}

std::vector<std::uint32_t> Measurement::stored_mask(const MeasurementOptions& options,
                                                    Provenance& provenance) const {
  std::string name = mask_dataset(options);
  const bool weights = name.empty() && is_ptyd() && file_.has_dataset("/chunks/0/weights");
  if (weights)
    name = "/chunks/0/weights";
  if (name.empty()) {
    if (options.invert_mask)
      throw InputError(path().string() + ": --invert-mask: has no mask");
    return {};
  }
  Hdf5Shape shape = file_.shape(find(name, {}, "mask"));
  if (shape.size() == 2)
    shape.insert(shape.begin(), 1);
  if (shape != Hdf5Shape{1, shape_[1], shape_[2]} && shape != shape_)
    file_.fail(name, "expected a mask " + hdf5_text({shape_[1], shape_[2]}) +
                         " as the patterns, found shape " + hdf5_text(file_.shape(name)));
  // Weights are those of good pixels where they are not 0, and need not be whole numbers.
  const auto faults = [&](const Hdf5Slab& slab, std::vector<std::uint32_t>& one) {
    if (weights) {
      std::vector<double> values(one.size());
      file_.read(name, slab, std::span(values));
      std::ranges::transform(values, one.begin(), [](double value) { return value > 0 ? 0u : 1u; });
    } else {
      file_.read(name, slab, std::span(one));
    }
    if (options.invert_mask)
      for (auto& pixel : one)
        pixel = pixel == 0;
  };
  if (shape[0] == 1) {
    std::vector<std::uint32_t> mask(static_cast<std::size_t>(shape_[1] * shape_[2]));
    const Hdf5Shape whole = file_.shape(name);
    faults({Hdf5Shape(whole.size(), 0), whole}, mask);
    return mask;
  }
  const auto pixels = static_cast<std::size_t>(shape_[1] * shape_[2]);
  std::vector<std::uint32_t> all(pixels, 0), one(pixels);
  double bad = 0;
  for (const std::int64_t number : numbers_) {
    faults({{number, 0, 0}, {1, shape_[1], shape_[2]}}, one);
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      bad += one[pixel] != 0;
      all[pixel] |= one[pixel];
    }
  }
  const auto in_any = double(pixels - std::size_t(std::ranges::count(all, 0u)));
  if (in_any > 1.1 * bad / double(numbers_.size()) + 1)
    provenance.assume(path().string() + ": " + name + ": has a mask per pattern; " + shortest(in_any) +
                      " of " + std::to_string(pixels) +
                      " pixels are bad in one or more of them, and are left out of all");
  return all;
}

std::vector<float> Measurement::mean_frame(const std::vector<std::string>& names, std::string& found) const {
  const auto pixels = static_cast<std::size_t>(shape_[1] * shape_[2]);
  for (const auto& place : in_entries(names)) {
    if (!file_.has_dataset(place))
      continue;
    Hdf5Shape shape = file_.shape(place);
    if (shape.size() == 2)
      shape.insert(shape.begin(), 1);
    if (shape.size() != 3 || shape[0] < 1 || shape[1] != shape_[1] || shape[2] != shape_[2])
      file_.fail(place, "expected frames " + hdf5_text({shape_[1], shape_[2]}) +
                            " as the patterns, found shape " + hdf5_text(file_.shape(place)));
    const std::vector<float> frames = file_.read<float>(place);
    std::vector<float> mean(pixels, 0);
    for (std::size_t i = 0; i < frames.size(); ++i)
      mean[i % pixels] += frames[i] / float(shape[0]);
    found = place;
    return mean;
  }
  return {};
}

void Measurement::read_corrections(Provenance& provenance) {
  const auto pixels = static_cast<std::size_t>(shape_[1] * shape_[2]);
  std::string dark, white;
  dark_ = mean_frame(
      {"instrument_1/detector_1/data_dark", "instrument_1/detector_1/background", "data_1/data_dark"}, dark);
  std::vector<float> flat =
      mean_frame({"instrument_1/detector_1/data_white", "instrument_1/detector_1/flatfield"}, white);
  if (!dark.empty()) {
    for (const float value : dark_)
      if (!std::isfinite(value))
        file_.fail(dark, "expected finite values");
    provenance.took(path(), dark + ", which is subtracted from the patterns, " +
                                shortest(std::accumulate(dark_.begin(), dark_.end(), 0.0) / double(pixels)) +
                                " in the mean");
  }
  if (flat.empty())
    return;
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < pixels; ++i) {
    if (white.ends_with("data_white") && !dark_.empty())
      flat[i] -= dark_[i];
    if (flat[i] > 0 && std::isfinite(flat[i]))
      sum += flat[i], ++count;
  }
  if (count == 0)
    file_.fail(white, "expected values > 0, found none");
  std::vector<std::uint8_t> bad;
  for (const std::int64_t place : places_in_frame())
    bad.push_back(place >= 0 && !(flat[std::size_t(place)] > 0 && std::isfinite(flat[std::size_t(place)])));
  if (std::ranges::count(bad, 1) > 0)
    mask(bad);
  for (const float value : flat)
    gain_.push_back(value > 0 && std::isfinite(value) ? static_cast<float>(sum / count / value) : 0);
  provenance.took(path(), white + ", which the patterns are divided by");
}

void Measurement::mask(std::span<const std::uint8_t> bad) {
  if (weights_.empty())
    weights_.assign(bad.size(), 1);
  for (std::size_t pixel = 0; pixel < bad.size(); ++pixel)
    if (bad[pixel] != 0)
      weights_[pixel] = 0;
  if (std::ranges::count(weights_, 1.0f) == 0)
    file_.fail(data_, "expected good pixels, found none");
}

void Measurement::read_mask(const MeasurementOptions& options, Provenance& provenance) {
  const std::vector<std::uint32_t> mask = stored_mask(options, provenance);
  // Every bit of a CXI mask is a fault but this one.
  constexpr std::uint32_t signal_above_background = 0x800;
  bool all_good = true;
  const auto beyond = [](const std::vector<std::int64_t>& indices) {
    return std::ranges::count(indices, -1);
  };
  const std::int64_t n = detector(), outside = n * n - (n - beyond(rows_)) * (n - beyond(columns_));
  if (10 * outside > n * n)
    provenance.assume(
        path().string() + ": " + std::to_string(100 * outside / (n * n)) + " % of the detector window of " +
        std::to_string(n) +
        " pixels lie beyond the frame and do not count; use a smaller --detector or another --centre");
  for (const std::int64_t row : rows_)
    for (const std::int64_t column : columns_) {
      const bool inside = row >= 0 && column >= 0;
      const bool good = inside && (mask.empty() || (mask[static_cast<std::size_t>(row * shape_[2] + column)] &
                                                    ~signal_above_background) == 0);
      weights_.push_back(good ? 1.0f : 0.0f);
      all_good = all_good && good;
    }
  if (std::ranges::count(weights_, 1.0f) == 0)
    throw InputError(path().string() + ": its mask: expected good pixels, found none");
  if (all_good)
    weights_.clear();
}

void Measurement::leave_out_lone_positions(Provenance& provenance) {
  // Windows overlap whose corners are closer than a window on both axes: in one cell of a grid, or in one next to it.
  const double window = detector();
  const auto cell = [&](std::size_t i) {
    return std::array{std::floor(positions_[i][0] / window), std::floor(positions_[i][1] / window)};
  };
  std::map<std::array<double, 2>, std::vector<std::size_t>> cells;
  for (std::size_t i = 0; i < positions_.size(); ++i)
    cells[cell(i)].push_back(i);
  const auto alone = [&](std::size_t i) {
    const auto [row, column] = cell(i);
    for (const double down : {-1, 0, 1})
      for (const double right : {-1, 0, 1})
        if (const auto found = cells.find({row + down, column + right}); found != cells.end())
          for (const std::size_t other : found->second)
            if (other != i && std::abs(positions_[i][0] - positions_[other][0]) < window &&
                std::abs(positions_[i][1] - positions_[other][1]) < window)
              return false;
    return true;
  };
  std::vector<std::size_t> lone;
  for (std::size_t i = 0; i < positions_.size() && 20 * lone.size() <= positions_.size(); ++i)
    if (alone(i))
      lone.push_back(i);
  if (lone.empty() || 20 * lone.size() > positions_.size()) // else positions are in another unit
    return;
  provenance.assume(path().string() + ": " + std::to_string(lone.size()) + " of " +
                    std::to_string(positions_.size()) + " positions (the first is number " +
                    std::to_string(numbers_[lone[0]]) +
                    ") lie further than the detector's window from all others; their patterns are left out");
  for (auto i = lone.rbegin(); i != lone.rend(); ++i) {
    positions_.erase(positions_.begin() + std::ptrdiff_t(*i));
    numbers_.erase(numbers_.begin() + std::ptrdiff_t(*i));
  }
}

void Measurement::keep_middle(std::int64_t most) {
  std::array<double, 2> middle{};
  for (const std::size_t axis : {0, 1}) {
    const auto [least, greatest] =
        std::ranges::minmax(positions_, {}, [axis](const auto& position) { return position[axis]; });
    middle[axis] = (least[axis] + greatest[axis]) / 2;
  }
  std::vector<std::size_t> order(positions_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::hypot(positions_[i][0] - middle[0], positions_[i][1] - middle[1]);
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(most)));
  std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i)
    positions_[i] = positions_[order[i]], numbers_[i] = numbers_[order[i]];
  positions_.resize(order.size());
  numbers_.resize(order.size());
}

Measurement::Places Measurement::raster(const MeasurementOptions& options, Provenance& provenance) const {
  Places places{.name = data_, .values = {}, .row_first = true, .pixels = false};
  std::array<double, 2> step{};
  const double stated = read_axes()[1];
  if (!options.scan_step.empty())
    step = {options.scan_step.front(), options.scan_step.back()};
  else
    step = {stated, stated};
  for (std::int64_t i = 0; i < shape_[0]; ++i)
    places.values.push_back({double(i / grid_[1]) * step[0], double(i % grid_[1]) * step[1]});
  provenance.took(path(), "a raster scan of " + std::to_string(grid_[0]) + " x " + std::to_string(grid_[1]) +
                              " positions, " + shortest(step[0]) + " and " + shortest(step[1]) + " m apart");
  return places;
}

void Measurement::read_two_columns(const std::vector<std::string>& names,
                                   std::vector<std::array<double, 2>>& places) const {
  const std::size_t count = places.size();
  for (const std::size_t axis : {0, 1}) {
    const auto values = file_.read<double>(names[axis]);
    const bool of_grid = grid_[0] > 0 && values.size() == std::size_t(grid_[axis]); // of rows, or columns
    if (!of_grid && values.size() != count)
      file_.fail(
          names[axis],
          "expected " + std::to_string(count) + " positions as there are patterns" +
              (grid_[0] > 0 ? " or " + std::to_string(grid_[axis]) + " as on the axis of the scan" : "") +
              ", found shape " + hdf5_text(file_.shape(names[axis])));
    for (std::size_t i = 0; i < count; ++i)
      places[i][axis] = values[!of_grid    ? i
                               : axis == 0 ? i / std::size_t(grid_[1])
                                           : i % std::size_t(grid_[1])];
  }
}

void Measurement::read_one_table(const std::string& name, bool is_plain,
                                 std::vector<std::array<double, 2>>& places) const {
  const std::size_t count = places.size();
  const Hdf5Shape shape = file_.shape(name);
  const auto axes = shape.empty() ? 0 : hdf5_elements(shape) / shape_[0];
  const bool whole = (axes == 2 || axes == 3) && hdf5_elements(shape) == axes * shape_[0],
             behind = whole && shape.back() == axes,                // [N, 2] or [rows, columns, 2]
      before = whole && shape.size() == 2 && shape.front() == axes; // [2, N]
  if (!behind && !before)
    file_.fail(name, "expected positions [" + std::to_string(shape_[0]) +
                         ", 2 or 3] as there are patterns, or [2 or 3, " + std::to_string(shape_[0]) +
                         "], found shape " + hdf5_text(shape));
  if (is_plain && axes == 3)
    file_.fail(name, "expected row and column of every pattern, [" + std::to_string(shape_[0]) +
                         ", 2], found three columns: x, y and z? write y and x to two columns");
  const auto values = file_.read<double>(name);
  for (std::size_t i = 0; i < count; ++i)
    for (const std::size_t axis : {0, 1})
      places[i][axis] = values[behind ? i * std::size_t(axes) + axis : axis * count + i];
}

Measurement::Places Measurement::read_places(const MeasurementOptions& options) const {
  const std::string plain = "/scan";
  const auto count = static_cast<std::size_t>(shape_[0]);
  std::vector<std::string> names = options.positions;
  if (names.empty() && file_.has_dataset("/probe_position_y_m") && file_.has_dataset("/probe_position_x_m"))
    names = {"/probe_position_y_m", "/probe_position_x_m"};
  const bool of_ptyd = names.empty() && is_ptyd();
  if (of_ptyd)
    names = {"/chunks/0/positions"};
  if (names.empty())
    names = {
        find("",
             and_plain(in_entries({"data_1/translation", "sample_1/geometry_1/translation",
                                   "sample_1/transformations/vector", "instrument_1/detector_1/translation"}),
                       plain),
             "scan positions")};
  for (const auto& name : names)
    find(name, {}, "scan positions");
  Places places{.name = names[0],
                .values = std::vector<std::array<double, 2>>(count),
                .row_first = names.size() == 2 || names[0] == plain || of_ptyd,
                .pixels = names[0] == plain};
  if (names.size() == 2)
    read_two_columns(names, places.values);
  else if (names.size() == 1)
    read_one_table(names[0], names[0] == plain, places.values);
  const std::string unit = file_.text_attribute(names[0], "units");
  if (unit == "px" || unit == "pixel" || unit == "pixels")
    places.pixels = true;
  places.pixels = !options.positions_in_metres.value_or(!places.pixels);
  if (!places.pixels)
    for (auto& place : places.values)
      for (double& value : place)
        value *= unit_of(unit);
  return places;
}

std::vector<double> Measurement::basis_vectors() const {
  for (const auto& place : in_entries({"instrument_1/detector_1/basis_vectors"})) {
    if (!file_.has_dataset(place))
      continue;
    if (file_.shape(place) != Hdf5Shape{3, 2})
      file_.fail(place, "expected [3, 2], found shape " + hdf5_text(file_.shape(place)));
    std::vector<double> basis = file_.read<double>(place);
    for (const std::size_t axis : {0, 1}) {
      const double length = std::hypot(basis[axis], basis[2 + axis]);
      if (!(length > 0 && std::isfinite(length)))
        file_.fail(place, "expected directions across the beam");
      basis[axis] /= length, basis[2 + axis] /= length;
    }
    if (std::abs(basis[0] * basis[1] + basis[2] * basis[3]) > 0.1)
      file_.fail(place, "expected rows and columns at right angles");
    return basis;
  }
  return {};
}

void Measurement::read_positions(const MeasurementOptions& options, Provenance& provenance) {
  if (!options.scan_step.empty() && (grid_[0] == 0 || !options.positions.empty()))
    throw InputError("--scan-step is of patterns [rows, columns of the scan, ...] without --positions-path");
  const bool on_grid =
      grid_[0] > 0 && options.positions.empty() && (!options.scan_step.empty() || read_axes()[1] > 0);
  const Places places = on_grid ? raster(options, provenance) : read_places(options);
  const auto& [name, values, row_first, pixels] = places;
  if (!pixels && !(object_pixel_ > 0))
    throw InputError(path().string() +
                     ": its positions are in metres, and the object's pixel is not known: wavelength, "
                     "distance or detector pixel is missing; use --wavelength, --distance, "
                     "--detector-pixel or --object-pixel");
  auto [coordinate, sign] = axes_of(options.axes);
  if (row_first) // (row, column), not (x, y)
    coordinate = {1 - coordinate[0], 1 - coordinate[1]};
  // Directions of the frame's rows and columns, against which the wave moves.
  const std::vector<double> basis =
      !row_first && options.axes == "yx" ? basis_vectors() : std::vector<double>();
  const double scale = pixels ? 1 : 1 / object_pixel_;
  const double turn = options.rotation * std::numbers::pi / 180, c = std::cos(turn), s = std::sin(turn);
  for (const std::int64_t number : numbers_) {
    const auto& value = values[static_cast<std::size_t>(number)];
    double row = sign[0] * scale * value[coordinate[0]], column = sign[1] * scale * value[coordinate[1]];
    if (!basis.empty()) {
      row = -scale * (basis[0] * value[0] + basis[2] * value[1]);
      column = -scale * (basis[1] * value[0] + basis[3] * value[1]);
    }
    positions_.push_back({c * row - s * column, s * row + c * column});
    if (!std::isfinite(row) || !std::isfinite(column))
      file_.fail(name, "position " + std::to_string(number) + " is not a number");
  }
  leave_out_lone_positions(provenance);
  if (options.most)
    keep_middle(*options.most);
  for (const std::size_t axis : {0, 1}) {
    double least = positions_[0][axis];
    for (const auto& position : positions_)
      least = std::min(least, position[axis]);
    for (auto& position : positions_)
      position[axis] -= least;
    origin_[axis] = least;
    constexpr double most = 100000;
    for (const auto& position : positions_)
      if (position[axis] > most)
        file_.fail(name, "expected positions within 100000 object pixels, found a range of " +
                             shortest(position[axis]) + " (are they in metres?)");
  }
}

void Measurement::read_probe(const MeasurementOptions& options) {
  std::string name = options.probe;
  if (options.ignore_probe && !name.empty())
    throw InputError("--ignore-probe does not go with --probe-path");
  if (options.ignore_probe)
    return;
  if (name.empty())
    for (const auto& place : and_plain(
             in_entries({"instrument_1/source_1/illumination", "instrument_1/source_1/probe"}), "/probe"))
      if (name.empty() && file_.has_dataset(place))
        name = place;
  if (name.empty())
    return;
  Hdf5Shape shape = file_.shape(find(name, {}, "probe"));
  if (shape.size() == 2)
    shape.insert(shape.begin(), 1);
  if (shape.size() != 3 || shape[1] != shape[2] || shape[0] < 1 || shape[0] > 64 || shape[1] > detector())
    file_.fail(name, "expected a probe [(modes,) m, m] of at most " + std::to_string(detector()) +
                         " pixels, found shape " + hdf5_text(file_.shape(name)));
  if (file_.is_complex(name)) {
    probe_ = file_.read<std::complex<float>>(name);
  } else {
    for (const float value : file_.read<float>(name))
      probe_.push_back(value);
  }
  if (options.conjugate_probe)
    for (auto& value : probe_)
      value = std::conj(value);
  double energy = 0;
  for (const auto& value : probe_)
    energy += std::norm(std::complex<double>(value));
  if (!(energy > 0 && std::isfinite(energy)))
    file_.fail(name, "expected finite values that are not all zero");
  probe_modes_ = static_cast<int>(shape[0]);
  probe_size_ = static_cast<int>(shape[1]);
}

void Measurement::append(std::unique_ptr<Measurement> other, const std::optional<int>& gap,
                         Provenance& provenance) {
  const auto same = [&](bool equal, const char* what) {
    if (!equal)
      throw InputError(other->path().string() + ": expected the same " + what + " as in " + path().string());
  };
  const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-3 * std::abs(a); };
  same(rows_ == other->rows_ && columns_ == other->columns_ && shape_[1] == other->shape_[1] &&
           shape_[2] == other->shape_[2],
       "frames and window of the detector");
  same(format().type == other->format().type, "type of the patterns");
  same(close(wavelength_, other->wavelength_), "wavelength");
  same(close(object_pixel_, other->object_pixel_), "pixel of the object");
  same(fresnel_number_.has_value() == other->fresnel_number_.has_value() &&
           close(fresnel_number_.value_or(0), other->fresnel_number_.value_or(0)),
       "distances");
  if (weights_.empty())
    weights_ = other->weights_;
  else if (!other->weights_.empty())
    for (std::size_t i = 0; i < weights_.size(); ++i)
      weights_[i] *= other->weights_[i];
  std::array<double, 2> shift{};
  if (gap) {
    shift[0] = double(object_shape(detector())[0] + *gap);
    provenance.took(other->path(), "an object from row " + shortest(shift[0]) + " on");
  } else {
    for (const std::size_t axis : {0, 1}) { // the common place is the lesser one
      shift[axis] = std::max(0.0, other->origin_[axis] - origin_[axis]);
      const double own = std::max(0.0, origin_[axis] - other->origin_[axis]);
      origin_[axis] -= own;
      for (auto& position : positions_)
        position[axis] += own;
    }
  }
  for (const auto& [row, column] : other->positions_)
    positions_.push_back({row + shift[0], column + shift[1]});
  others_.push_back(std::move(other));
}

double Measurement::step() const {
  // Some of them will do.
  const std::size_t count = positions_.size(), stride = std::max<std::size_t>(1, count / 500);
  std::vector<double> distances;
  for (std::size_t i = 0; i < count && count > 1; i += stride) {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [row, column] : positions_) {
      const double distance = std::hypot(row - positions_[i][0], column - positions_[i][1]);
      if (distance > 0) // a place may be looked at twice
        least = std::min(least, distance);
    }
    if (std::isfinite(least))
      distances.push_back(least);
  }
  if (distances.empty())
    return 0;
  const auto middle = distances.begin() + std::ptrdiff_t(distances.size() / 2);
  std::ranges::nth_element(distances, middle);
  return *middle;
}

std::array<std::int64_t, 2> Measurement::object_shape(int probe) const {
  std::array<std::int64_t, 2> shape{probe, probe};
  for (const auto& position : positions_)
    for (const std::size_t axis : {0, 1})
      shape[axis] = std::max<std::int64_t>(shape[axis], std::lround(position[axis]) + probe);
  return shape;
}

std::pair<const Measurement*, std::int64_t> Measurement::stored(std::int64_t pattern) const {
  auto at = static_cast<std::size_t>(pattern);
  const Measurement* of = this;
  for (std::size_t next = 0; at >= of->numbers_.size(); of = others_[next++].get())
    at -= of->numbers_.size();
  return {of, of->numbers_[at]};
}

void Measurement::read(std::span<const std::int64_t> patterns, std::span<std::byte> frames) const {
  const auto bytes = static_cast<std::size_t>(frame_bytes());
  // Neighbours in a file are read at once.
  for (std::size_t i = 0, run = 1; i < patterns.size(); i += run, run = 1) {
    const auto [of, number] = stored(patterns[i]);
    while (i + run < patterns.size() &&
           stored(patterns[i + run]) == std::pair(of, number + std::int64_t(run)) &&
           (of->grid_[1] < 2 || (number + std::int64_t(run)) % of->grid_[1] != 0)) // in a row of the scan
      ++run;
    Hdf5Slab slab{{number, 0, 0}, {std::int64_t(run), shape_[1], shape_[2]}};
    if (of->grid_[0] > 0 && of->grid_[1] == 1) {
      slab = {{number, 0, 0, 0}, {std::int64_t(run), 1, shape_[1], shape_[2]}};
    } else if (of->grid_[0] > 0) {
      slab = {{number / of->grid_[1], number % of->grid_[1], 0, 0},
              {1, std::int64_t(run), shape_[1], shape_[2]}};
    }
    of->blocks_->read(slab, frames.subspan(i * bytes, run * bytes));
  }
}

std::vector<std::int64_t> Measurement::places_in_frame() const {
  std::vector<std::int64_t> places;
  for (const std::int64_t row : rows_)
    for (const std::int64_t column : columns_)
      places.push_back(row >= 0 && column >= 0 ? row * shape_[2] + column : -1);
  return places;
}

std::vector<std::int64_t> Measurement::places() const {
  std::vector<std::int64_t> places = places_in_frame();
  for (std::size_t pixel = 0; pixel < weights_.size(); ++pixel)
    if (weights_[pixel] == 0)
      places[pixel] = -1;
  return places;
}

MeasurementWriter::MeasurementWriter(const std::filesystem::path& path, int detector,
                                     std::span<const std::array<double, 2>> positions,
                                     const Geometry& geometry)
    : file_(path), detector_(detector) {
  const auto count = static_cast<std::int64_t>(positions.size());
  file_.write_scalar<std::int32_t>("/cxi_version", 160);
  file_.write_scalar<std::int32_t>("/number_of_entries", 1);
  file_.write_scalar("/entry_1/instrument_1/source_1/wavelength", geometry.wavelength);
  file_.write_scalar("/entry_1/instrument_1/source_1/energy", planck_times_light / geometry.wavelength);
  const std::string in_detector = "/entry_1/instrument_1/detector_1/";
  file_.write_scalar(in_detector + "distance", geometry.distance);
  file_.write_scalar(in_detector + "x_pixel_size", geometry.detector_pixel);
  file_.write_scalar(in_detector + "y_pixel_size", geometry.detector_pixel);
  std::vector<double> translation;
  for (const auto& [row, column] : positions)
    for (const double coordinate : {column, row, 0.0})
      translation.push_back(coordinate * geometry.object_pixel);
  file_.write<double>("/entry_1/sample_1/geometry_1/translation", {count, 3}, translation);
  file_.create_dataset<std::uint16_t>(in_detector + "data", {count, detector, detector});
  file_.soft_link(in_detector + "data", "/entry_1/data_1/data");
  file_.soft_link("/entry_1/sample_1/geometry_1/translation", "/entry_1/data_1/translation");
}

template <class Value>
std::vector<Value> MeasurementWriter::in_the_middle(std::span<const Value> patterns) const {
  const auto n = static_cast<std::size_t>(detector_);
  std::vector<Value> shifted(patterns.size());
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const std::size_t y = i / n % n, x = i % n;
    shifted[i - y * n - x + (y + n / 2) % n * n + (x + n / 2) % n] = patterns[i];
  }
  return shifted;
}

void MeasurementWriter::write(std::int64_t first, std::int64_t count,
                              std::span<const std::uint16_t> patterns) {
  file_.write<std::uint16_t>("/entry_1/instrument_1/detector_1/data",
                             {{first, 0, 0}, {count, detector_, detector_}}, in_the_middle(patterns));
}

void MeasurementWriter::write_mask(std::span<const std::uint32_t> mask) {
  file_.write<std::uint32_t>("/entry_1/instrument_1/detector_1/mask", Hdf5Shape{detector_, detector_},
                             in_the_middle(mask));
}

} // namespace Bracewell::Examples
