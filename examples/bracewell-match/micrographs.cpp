// SPDX-License-Identifier: MIT
#include "bracewell-match/micrographs.hpp"

#include "common/input_error.hpp"
#include "common/mrc.hpp"
#include "common/star.hpp"
#include "common/star_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

/// A STAR table of micrographs, beside that of its optics groups.
class MicrographTable {
public:
  MicrographTable(const fs::path& file, const StarDocument& document) : file_(file) {
    table_ = document.find("micrographs");
    if (table_ == nullptr && document.tables.size() == 1)
      table_ = &document.tables[0];
    if (table_ == nullptr || !table_->find("rlnMicrographName"))
      throw InputError(file.string() + ": expected a table of micrographs with the column rlnMicrographName");
    optics_ = document.find("optics");
    if (optics_ == nullptr)
      return;
    const auto group = optics_->find("rlnOpticsGroup");
    if (!group)
      throw InputError(file.string() + ": data_optics has no column rlnOpticsGroup");
    for (std::size_t row = 0; row < optics_->rows(); ++row)
      groups_[optics_->value(row, *group)] = row;
  }

  std::size_t rows() const { return table_->rows(); }
  std::string name(std::size_t row) const { return table_->value(row, *table_->find("rlnMicrographName")); }

  /// Of the micrograph, or else of its optics group.
  std::optional<double> number(std::size_t row, const char* column) const {
    if (const auto own = table_->find(column))
      return NumberReader(file_, *table_).real(row, *own);
    const auto group = table_->find("rlnOpticsGroup");
    if (optics_ == nullptr || !optics_->find(column) || !group)
      return {};
    const auto found = groups_.find(table_->value(row, *group));
    if (found == groups_.end())
      throw InputError(file_.string() + ": row " + std::to_string(row + 1) + " has the optics group " +
                       table_->value(row, *group) + ", which data_optics lacks");
    return NumberReader(file_, *optics_).real(found->second, *optics_->find(column));
  }

  /// What RELION before 3.1 wrote: the detector's pixels in micrometres over the magnification.
  std::optional<double> pixel_size(std::size_t row) const {
    if (const auto size = number(row, "rlnMicrographPixelSize"))
      return size;
    const auto detector = number(row, "rlnDetectorPixelSize"),
               magnification = number(row, "rlnMagnification");
    if (detector && magnification && *magnification > 0)
      return 1e4 * *detector / *magnification;
    return {};
  }

private:
  const fs::path& file_;
  const StarTable* table_;
  const StarTable* optics_;
  std::map<std::string, std::size_t> groups_;
};

/// Below the folder of the STAR file, or the current one.
fs::path located(const fs::path& star, const std::string& name) {
  const fs::path beside = star.parent_path() / name;
  return fs::exists(beside) ? beside : fs::path(name);
}

CTFParameters with_options(CTFParameters ctf, const OpticsOptions& options) {
  ctf.voltage = options.voltage.value_or(ctf.voltage);
  ctf.spherical_aberration = options.spherical_aberration.value_or(ctf.spherical_aberration);
  ctf.amplitude_contrast = options.amplitude_contrast.value_or(ctf.amplitude_contrast);
  ctf.phase_shift = options.phase_shift.value_or(ctf.phase_shift);
  ctf.b_factor = options.b_factor;
  if (!options.defocus.empty()) {
    ctf.defocus_u = options.defocus[0];
    ctf.defocus_v = options.defocus.size() > 1 ? options.defocus[1] : options.defocus[0];
    ctf.defocus_angle = options.defocus.size() > 2 ? options.defocus[2] : 0;
  }
  return ctf;
}

constexpr CTFParameters standard_optics{
    .defocus_u = 0, .defocus_v = 0, .voltage = 300, .spherical_aberration = 2.7, .amplitude_contrast = 0.07};

/// Counts pixels that `is` finds, and gives them the value.
template <class Is>
std::int64_t replace(std::vector<float>& pixels, float value, const Is& is) {
  std::int64_t count = 0;
  for (float& pixel : pixels)
    if (is(pixel)) {
      pixel = value;
      ++count;
    }
  return count;
}

/// Mean and standard deviation of those that are finite.
std::pair<double, double> moments(const std::vector<float>& pixels) {
  double count = 0, sum = 0, squares = 0;
  for (const float pixel : pixels)
    if (std::isfinite(pixel))
      sum += double(pixel), count += 1;
  const double mean = count > 0 ? sum / count : 0;
  for (const float pixel : pixels)
    if (std::isfinite(pixel))
      squares += (double(pixel) - mean) * (double(pixel) - mean);
  return {mean, count > 0 ? std::sqrt(squares / count) : 0};
}

/// The largest value of integers, where counts end.
std::optional<float> full_scale(const MrcHeader& header) {
  switch (header.mode) {
  case MrcMode::Int8:
    return header.unsigned_bytes ? 255.f : 127.f;
  case MrcMode::Int16:
    return 32767.f;
  case MrcMode::UInt16:
    return 65535.f;
  default:
    return {};
  }
}

} // namespace

std::vector<MicrographSource> list_micrographs(const std::vector<fs::path>& files,
                                               const std::optional<fs::path>& star,
                                               const OpticsOptions& options, Provenance& provenance) {
  std::vector<MicrographSource> sources;
  if (!star) {
    if (options.defocus.empty())
      throw InputError("--defocus is required without --star (see --help)");
    for (const fs::path& file : files)
      sources.push_back({file, file.string(), with_options(standard_optics, options), options.pixel_size});
    return sources;
  }
  const StarDocument document = read_star(*star);
  const MicrographTable table(*star, document);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    CTFParameters ctf = standard_optics;
    const auto u = table.number(row, "rlnDefocusU"), v = table.number(row, "rlnDefocusV");
    if (!u && options.defocus.empty())
      throw InputError(star->string() + ": column rlnDefocusU is missing; --defocus gives one for all");
    ctf.defocus_u = u.value_or(0);
    ctf.defocus_v = v.value_or(ctf.defocus_u);
    ctf.defocus_angle = table.number(row, "rlnDefocusAngle").value_or(0);
    ctf.phase_shift = table.number(row, "rlnPhaseShift").value_or(0);
    const auto take = [&](const char* column, const std::optional<double>& option, double& value) {
      if (const auto stated = table.number(row, column))
        value = *stated;
      else if (!option)
        provenance.assume(star->string() + ": has no column " + column + ": " + shortest(value) +
                          " is taken");
    };
    take("rlnVoltage", options.voltage, ctf.voltage);
    take("rlnSphericalAberration", options.spherical_aberration, ctf.spherical_aberration);
    take("rlnAmplitudeContrast", options.amplitude_contrast, ctf.amplitude_contrast);
    const std::string name = table.name(row);
    sources.push_back({located(*star, name), name, with_options(ctf, options),
                       options.pixel_size ? options.pixel_size : table.pixel_size(row)});
  }
  if (sources.empty())
    throw InputError(star->string() + ": has no micrographs");
  provenance.took(*star, std::to_string(sources.size()) + " micrographs");
  return sources;
}

std::vector<MicrographSource> list_tomograms(const std::vector<fs::path>& files,
                                             const OpticsOptions& options) {
  const bool flat = options.defocus.empty(); // sin(asin 1) = 1
  OpticsOptions optics = options;
  if (flat) {
    optics.amplitude_contrast = 1;
    optics.spherical_aberration = optics.phase_shift = 0;
  }
  std::vector<MicrographSource> sources;
  for (const fs::path& file : files)
    sources.push_back(
        {file, file.stem().string(), with_options(standard_optics, optics), options.pixel_size, true});
  return sources;
}

namespace {

Micrograph sizes_of(const MrcReader& reader, const MicrographSource& source) {
  const std::string file = source.path.string();
  const std::int64_t size[3] = {reader.width(), reader.height(), reader.images()};
  if (!source.tomogram && size[2] != 1)
    throw InputError(file + ": expected one image, found " + std::to_string(size[2]) +
                     ": align and sum the frames of a movie first (--tomogram takes volumes)");
  const auto sides = std::span(size).first(source.tomogram ? 3 : 2);
  if (std::ranges::min(sides) < 16 || std::ranges::max(sides) > 32768)
    throw InputError(
        file + ": expected a " +
        (source.tomogram ? "tomogram of 16 to 32768 voxels" : "micrograph of 16 to 32768 pixels") +
        " a side, found " + std::to_string(size[0]) + " x " + std::to_string(size[1]) +
        (source.tomogram ? " x " + std::to_string(size[2]) : ""));
  const auto stated = source.pixel_size ? source.pixel_size : reader.header().voxel_size[0];
  if (!stated || !(*stated > 0))
    throw InputError(file + ": states no pixel size; use --pixel-size");
  return {.depth = static_cast<int>(size[2]),
          .height = static_cast<int>(size[1]),
          .width = static_cast<int>(size[0]),
          .pixels = {},
          .pixel_size = *stated};
}

} // namespace

Micrograph sizes_of(const MicrographSource& source) { return sizes_of(MrcReader(source.path), source); }

Micrograph read_micrograph(const MicrographSource& source, Provenance& provenance) {
  const MrcReader reader(source.path);
  const std::string file = source.path.string();
  for (const auto& warning : reader.warnings())
    provenance.assume(file + ": " + warning);
  Micrograph result = sizes_of(reader, source);
  auto& pixels = result.pixels;
  pixels.resize(static_cast<std::size_t>(reader.images() * reader.height() * reader.width()));
  reader.read_images(0, reader.images(), pixels, NonFinite::Accept);

  const auto count = static_cast<std::int64_t>(pixels.size());
  const auto note = [&](std::int64_t found, const std::string& why) {
    provenance.unusable({.file = file,
                         .count = found,
                         .of = count,
                         .what = source.tomogram ? "voxels" : "pixels",
                         .why = why,
                         .done = "they get the mean of the others",
                         .remedy = ""});
  };
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  note(replace(pixels, nothing, [](float pixel) { return !std::isfinite(pixel) || std::abs(pixel) > 1e15f; }),
       "are not finite");
  if (const auto full = full_scale(reader.header()))
    note(replace(pixels, nothing, [&](float pixel) { return pixel >= *full; }), "are saturated");
  auto [mean, deviation] = moments(pixels);
  // An X-ray's pixels would be most of the power of all frequencies.
  constexpr double far = 12;
  note(replace(pixels, nothing,
               [&, m = mean, d = deviation](float pixel) { return std::abs(double(pixel) - m) > far * d; }),
       "are more than " + shortest(far) + " standard deviations from the mean");
  std::tie(mean, deviation) = moments(pixels);
  if (!(deviation > 0))
    throw InputError(file + ": has the same value everywhere");
  for (float& pixel : pixels)
    pixel = std::isfinite(pixel) ? static_cast<float>((double(pixel) - mean) / deviation) : 0.0f;
  provenance.took(source.path, (source.tomogram ? "a tomogram of " : "a micrograph of ") +
                                   std::to_string(result.width) + " x " + std::to_string(result.height) +
                                   (source.tomogram ? " x " + std::to_string(result.depth) + " voxels of "
                                                    : std::string(" pixels of ")) +
                                   shortest(result.pixel_size) + " Angstrom");
  return result;
}

} // namespace Bracewell::Examples
