// SPDX-License-Identifier: MIT
// The particles of a STAR file: its tables as numbers, and the stacks that it names.
#include "star.hpp"

#include "cistem.hpp"
#include "cryosparc.hpp"
#include "image_stack.hpp"
#include "input_error.hpp"
#include "input_file.hpp"
#include "output_family.hpp"
#include "provenance.hpp"
#include "star_numbers.hpp"
#include "tilt_series.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace Bracewell::Examples {
namespace {

/// The particle table, and for every particle its row in the optics table.
class JoinedTables {
public:
  JoinedTables(const std::filesystem::path& file, const StarTable& particles, const StarTable* optics)
      : particles_(file, particles) {
    if (optics == nullptr || optics->rows() == 0)
      return;
    optics_.emplace(file, *optics);
    const auto group = particles.find("rlnOpticsGroup");
    const auto optics_group = optics->find("rlnOpticsGroup");
    if (!group || !optics_group) {
      if (optics->rows() > 1)
        throw InputError(file.string() + ": column rlnOpticsGroup is missing from table data_" +
                         (group ? optics->name : particles.name) + ", which has to say which of " +
                         std::to_string(optics->rows()) + " optics groups");
      optics_row_.assign(particles.rows(), 0);
      return;
    }
    std::unordered_map<std::int64_t, std::size_t> row_of_group;
    for (std::size_t row = 0; row < optics->rows(); ++row)
      if (!row_of_group.emplace(optics_->integer(row, *optics_group), row).second)
        optics_->fail(row, "rlnOpticsGroup",
                      "group " + optics->value(row, *optics_group) + " is there twice");
    for (std::size_t row = 0; row < particles.rows(); ++row) {
      const auto found = row_of_group.find(particles_.integer(row, *group));
      if (found == row_of_group.end())
        particles_.fail(row, "rlnOpticsGroup",
                        "table data_optics has no group " + particles.value(row, *group));
      optics_row_.push_back(found->second);
    }
  }

  const NumberReader& particles() const { return particles_; }

  /// Numbers of a column by a member of NumberReader; empty where neither table has it.
  template <class Value>
  std::vector<Value> column(std::string_view name,
                            Value (NumberReader::*read)(std::size_t, std::size_t) const,
                            bool positive = false) const {
    std::vector<Value> values;
    const auto read_all = [&](const NumberReader& from, std::size_t column, std::size_t rows) {
      values.reserve(rows);
      for (std::size_t row = 0; row < rows; ++row) {
        values.push_back((from.*read)(row, column));
        if constexpr (std::is_arithmetic_v<Value>)
          if (positive && !(values.back() > 0))
            from.fail(row, name,
                      "expected a number above 0, found '" + from.table().value(row, column) + "'");
      }
    };
    if (const auto own = particles_.table().find(name)) {
      read_all(particles_, *own, particles_.table().rows());
    } else if (const auto shared = optics_ ? optics_->table().find(name) : std::nullopt) {
      read_all(*optics_, *shared, optics_->table().rows());
      std::vector<Value> spread;
      spread.reserve(optics_row_.size());
      for (const std::size_t row : optics_row_)
        spread.push_back(values[row]);
      values = std::move(spread);
    }
    return values;
  }

private:
  NumberReader particles_;
  std::optional<NumberReader> optics_;
  std::vector<std::size_t> optics_row_;
};

const StarTable& find_particle_table(const std::filesystem::path& file, const StarDocument& document) {
  if (const StarTable* named = document.find("particles"))
    return *named;
  const StarTable* only = nullptr;
  std::string names;
  std::size_t candidates = 0;
  for (const auto& table : document.tables) {
    if (table.name == "optics")
      continue;
    only = &table;
    ++candidates;
    names += (names.empty() ? "data_" : ", data_") + table.name;
  }
  if (candidates == 0)
    throw InputError(file.string() + ": has no table data_particles");
  if (candidates > 1)
    throw InputError(file.string() + ": has no table data_particles, but several others: " + names);
  return *only;
}

bool begins_as_cryosparc(const std::filesystem::path& path) {
  const InputFile file(path);
  std::string beginning(static_cast<std::size_t>(std::min<std::int64_t>(8, file.size())), ' ');
  file.read_at(0, std::as_writable_bytes(std::span(beginning)));
  return is_cryosparc(beginning);
}

/// Columns that are written on as they are, and have numbers that are none: nan, inf.
std::vector<std::string> findings_in_unread(const std::filesystem::path& file, const StarTable& table) {
  std::vector<std::string> findings;
  for (std::size_t column = 0; column < table.columns.size(); ++column)
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const std::string text = table.value(row, column);
      const std::size_t begin = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
      if (text.size() - begin != 3 || (text.substr(begin) != "nan" && text.substr(begin) != "inf"))
        continue;
      findings.push_back(file.string() + ": column " + table.columns[column] + " has no number in row " +
                         std::to_string(row + 1) + " (" + text + "): it is not used, and written as it is");
      break;
    }
  return findings;
}

/// Whether images are volumes. Images with rlnCtfImage, which then is a picture of their micrograph's spectrum, are not.
bool has_subtomograms(const StarDocument& document, const StarTable& table) {
  const auto any = [](const StarTable& in, std::string_view column, const auto& condition) {
    const auto found = in.find(column);
    for (std::size_t row = 0; found && row < in.rows(); ++row)
      if (condition(in.value(row, *found)))
        return true;
    return false;
  };
  const auto is_three = [](const std::string& text) { return text == "3"; };
  if (any(table, "rlnImageDimensionality", is_three))
    return true;
  if (const StarTable* const optics = document.find("optics");
      optics != nullptr && any(*optics, "rlnImageDimensionality", is_three))
    return true;
  return table.find("rlnCtfImage") && any(table, "rlnImageName", [](const std::string& text) {
           return text.find('@') == std::string::npos;
         });
}

/// Throws for tables that are no particles in images, with the way out.
void name_other_programs(const std::filesystem::path& path, const StarTable& table, bool subtomograms) {
  const auto fail = [&](const std::string& what) {
    throw InputError(path.string() + ": table data_" + table.name + " is " + what);
  };
  const auto any = [&](std::string_view beginning) {
    return std::ranges::any_of(table.columns,
                               [&](const std::string& column) { return column.starts_with(beginning); });
  };
  if (!subtomograms && (table.find("rlnTomoVisibleFrames") || table.find("rlnTomoParticleName")))
    fail("one of RELION's particles in tilt series, not extracted as stacks of tilts: do so "
         "(relion_tomo_subtomo "
         "--stack2d)");
  if (any("emdl") || any("xmipp") || table.find("image") || table.find("shiftX"))
    fail("one of Xmipp's: convert it with xmipp or Scipion to a RELION STAR file");
}

/// Columns that differ from those that are read in capitals alone, which nobody reads.
void name_misspelt(Particles& particles, const StarTable& table) {
  constexpr std::array<std::string_view, 31> read{"rlnImageName",
                                                  "rlnOpticsGroup",
                                                  "rlnAngleRot",
                                                  "rlnAngleTilt",
                                                  "rlnAnglePsi",
                                                  "rlnOriginXAngst",
                                                  "rlnOriginYAngst",
                                                  "rlnOriginX",
                                                  "rlnOriginY",
                                                  "rlnImagePixelSize",
                                                  "rlnMagnification",
                                                  "rlnDetectorPixelSize",
                                                  "rlnVoltage",
                                                  "rlnSphericalAberration",
                                                  "rlnAmplitudeContrast",
                                                  "rlnDefocusU",
                                                  "rlnDefocusV",
                                                  "rlnDefocusAngle",
                                                  "rlnPhaseShift",
                                                  "rlnCtfBfactor",
                                                  "rlnCtfScalefactor",
                                                  "rlnMicrographPreExposure",
                                                  "rlnCtfDataAreCtfPremultiplied",
                                                  "rlnBeamTiltX",
                                                  "rlnBeamTiltY",
                                                  "rlnOddZernike",
                                                  "rlnEvenZernike",
                                                  "rlnMtfFileName",
                                                  "rlnClassNumber",
                                                  "rlnRandomSubset",
                                                  "rlnHelicalTubeID"};
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  };
  for (const auto& column : table.columns)
    for (const auto name : read)
      if (column != name && std::ranges::equal(column, name, {}, lower, lower))
        particles.warnings.push_back(particles.file.string() + ": table data_" + table.name +
                                     " has a column " + column + ", which is not used: call it " +
                                     std::string(name));
}

/// Pixel sizes from the file, by either of RELION's ways of stating them.
std::vector<double> read_pixel_sizes(const JoinedTables& tables) {
  auto sizes = tables.column("rlnImagePixelSize", &NumberReader::real, true);
  if (!sizes.empty())
    return sizes;
  sizes = tables.column("rlnDetectorPixelSize", &NumberReader::real, true); // micrometres
  const auto magnifications = tables.column("rlnMagnification", &NumberReader::real, true);
  if (sizes.empty() || magnifications.empty())
    return {};
  constexpr double angstrom_per_micrometre = 1e4;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    sizes[i] = angstrom_per_micrometre * sizes[i] / magnifications[i];
  return sizes;
}

/// Origins in pixels, from the column in Angstrom or else from the one in pixels.
std::vector<double> read_origins(const JoinedTables& tables, const std::string& in_pixels,
                                 const std::vector<double>& pixel_sizes) {
  const std::string in_angstrom = in_pixels + "Angst";
  auto origins = tables.column(in_angstrom, &NumberReader::real);
  if (origins.empty())
    return tables.column(in_pixels, &NumberReader::real);
  for (std::size_t row = 0; row < origins.size(); ++row) {
    if (origins[row] == 0)
      continue; // no pixel size needed
    if (pixel_sizes.empty())
      tables.particles().fail(row, in_angstrom,
                              "is in Angstrom, but the file states no pixel size (rlnImagePixelSize)");
    origins[row] /= pixel_sizes[row];
  }
  return origins;
}

/// The numbers of a table of RELION's: frequencies in 1/pixel of the detector, and amplitudes.
DetectorResponse read_response(const std::filesystem::path& path, double pixel_size) {
  const StarDocument document = read_star(path);
  const StarTable& table = document.tables.front();
  const NumberReader numbers(path, table);
  const auto column = [&](const char* name) {
    if (const auto found = table.find(name))
      return *found;
    throw InputError(path.string() + ": column " + name + " is missing from table data_" + table.name);
  };
  const std::size_t frequency = column("rlnResolutionInversePixel"), value = column("rlnMtfValue");
  DetectorResponse response{path, {}, {}};
  for (std::size_t row = 0; row < table.rows(); ++row) {
    response.frequencies.push_back(numbers.real(row, frequency) / pixel_size);
    response.values.push_back(numbers.real(row, value));
    if (!(response.values.back() > 0))
      numbers.fail(row, "rlnMtfValue", "expected a number above 0, found " + table.value(row, value));
    if (row > 0 && !(response.frequencies[row] > response.frequencies[row - 1]))
      numbers.fail(row, "rlnResolutionInversePixel", "expected rising frequencies");
  }
  if (response.values.empty())
    throw InputError(path.string() + ": table data_" + table.name + " is empty");
  return response;
}

/// The responses of the detectors (rlnMtfFileName), which lie relative to the current folder, as RELION has it, or to that
/// of the particles' file. One that is not there is a warning.
void read_responses(Particles& particles, const JoinedTables& tables) {
  const auto names = tables.column(particles.detector.name, &NumberReader::text);
  const auto pixel_sizes = tables.column("rlnMicrographOriginalPixelSize", &NumberReader::real, true);
  const auto none = [](const std::string& name) { return name.empty() || name == "None" || name == "none"; };
  if (std::ranges::all_of(names, none))
    return;
  const auto warn = [&](const std::string& what) {
    particles.warnings.push_back(particles.file.string() + ": names the response of the detector " + what +
                                 ": not used");
  };
  if (pixel_sizes.empty())
    return warn("(rlnMtfFileName), but not the detector's pixels (rlnMicrographOriginalPixelSize)");
  std::map<std::pair<std::string, double>, std::int64_t> known;
  for (std::size_t row = 0; row < names.size(); ++row) {
    const auto [entry, is_new] = known.emplace(std::pair(names[row], pixel_sizes[row]), -1);
    if (is_new && !none(names[row])) {
      std::filesystem::path path = names[row];
      std::error_code ignored;
      if (!std::filesystem::exists(path, ignored))
        path = particles.file.parent_path() / path;
      if (std::filesystem::exists(path, ignored)) {
        particles.detectors.push_back(read_response(path, pixel_sizes[row]));
        entry->second = static_cast<std::int64_t>(particles.detectors.size()) - 1;
      } else {
        warn(names[row] + " (rlnMtfFileName), which is not there");
      }
    }
    particles.detector.values.push_back(entry->second);
  }
}

/// B factors in RELION's sign.
void read_b_factors(Particles& particles, BFactorSign sign) {
  auto& values = particles.ctf_b_factor.values;
  const auto negative = std::ranges::find_if(values, [](double b) { return b < 0; });
  if (negative == values.end() && sign != BFactorSign::Warp)
    return;
  const bool any_positive = std::ranges::any_of(values, [](double b) { return b > 0; });
  const bool flip = sign == BFactorSign::Warp || (sign == BFactorSign::Automatic && !any_positive);
  if (sign == BFactorSign::Automatic)
    particles.warnings.push_back(
        particles.file.string() + ": has B factors below 0 (rlnCtfBfactor, " +
        std::to_string(std::ranges::count_if(values, [](double b) { return b < 0; })) + " of " +
        std::to_string(values.size()) + " rows, the first is row " +
        std::to_string(negative - values.begin() + 1) + " with " + shortest(*negative) + ", the least is " +
        shortest(std::ranges::min(values)) + "): " +
        (flip ? "none is above 0, so they are taken as Warp and M write them, as decay; --b-factor-sign "
                "relion "
                "takes them as growth"
              : "taken as RELION does, as growth; --b-factor-sign warp turns the sign"));
  if (flip)
    for (double& b : values)
      b = b == 0 ? 0 : -b;
}

/// The file of an image's name: what follows INDEX@, without the format that RELION's names may end with ("stack.st:mrcs").
std::string stack_of(const std::string& image_name) {
  constexpr std::array<std::string_view, 10> formats{"mrc", "mrcs", "map", "ccp4", "st",
                                                     "rec", "ali",  "tif", "tiff", "spi"};
  std::string name = image_name.substr(image_name.find('@') + 1); // all of it where there is none
  const std::size_t colon = name.rfind(':');
  if (colon != std::string::npos &&
      std::ranges::find(formats, std::string_view(name).substr(colon + 1)) != formats.end())
    name.erase(colon);
  return name;
}

/// Finds the stacks of the particles, opens their headers, and checks that every image is there.
class ImageFinder {
public:
  ImageFinder(Particles& particles, const NumberReader& table) : particles_(particles), table_(table) {}

  /// Images that nobody opens are not for overwriting, either.
  void remember_all() const {
    const auto column = table_.table().find(name);
    std::unordered_set<std::string> names;
    for (std::size_t row = 0; column && row < particles_.count; ++row) {
      const std::string& text = table_.table().value(row, *column);
      const std::string stack_name = stack_of(text);
      if (names.insert(stack_name).second)
        for (const auto& path : candidates(stack_name))
          OutputFamily::remember_input(path);
    }
  }

  void find_all() {
    const auto column = table_.table().find(name);
    if (!column)
      throw InputError(particles_.file.string() + ": column rlnImageName is missing from table data_" +
                       table_.table().name);
    for (std::size_t row = 0; row < particles_.count; ++row) {
      const std::string& text = table_.table().value(row, *column);
      const std::size_t at = text.find('@');
      const std::string stack_name = stack_of(text);
      if (particles_.subtomograms) {
        find_volume(row, text, stack_name);
        continue;
      }
      const std::int64_t number = at == std::string::npos ? 1 : image_number(row, text, at);
      if (stack_name.empty())
        table_.fail(row, name, "expected INDEX@STACK, found '" + text + "'");
      const std::size_t stack = stack_at(row, stack_name);
      if (at == std::string::npos && particles_.stacks[stack].images > 1)
        table_.fail(row, name,
                    "expected INDEX@STACK for one of the " + std::to_string(particles_.stacks[stack].images) +
                        " images of the stack, found '" + text + "'");
      if (number > particles_.stacks[stack].images)
        table_.fail(row, name,
                    "there is no image " + std::to_string(number) + " in " +
                        particles_.stacks[stack].path.string() + ", which has " +
                        std::to_string(particles_.stacks[stack].images));
      particles_.stack.push_back(stack);
      particles_.image.push_back(number - 1);
    }
    for (const auto& [warning, where] : warnings_)
      particles_.warnings.push_back(
          where.first.string() + ": " + warning +
          (where.second > 1 ? " (and " + std::to_string(where.second - 1) + " more stacks)" : ""));
  }

private:
  /// A subtomogram, and the file that says what of it was measured.
  void find_volume(std::size_t row, const std::string& text, const std::string& volume) {
    if (text.find('@') != std::string::npos || volume.empty())
      table_.fail(row, name, "expected the file of a subtomogram, found '" + text + "'");
    const std::size_t stack = stack_at(row, volume);
    const ParticleStack& found = particles_.stacks[stack];
    const auto shape = [](std::int64_t x, std::int64_t y, std::int64_t z) {
      return std::to_string(x) + " x " + std::to_string(y) + " x " + std::to_string(z) + " voxels";
    };
    const std::int64_t box = particles_.image_width;
    if (found.width != found.height || found.width != found.images || found.width != box)
      table_.fail(row, name,
                  found.path.string() + ": expected a subtomogram of " + shape(box, box, box) + ", found " +
                      shape(found.width, found.height, found.images));
    particles_.stack.push_back(stack);
    particles_.image.push_back(0);
    constexpr std::string_view column = "rlnCtfImage";
    const auto measured = table_.table().find(column);
    if (!measured)
      return;
    const std::string& file = table_.table().value(row, *measured);
    auto& known = measured_[file];
    std::error_code ignored;
    for (const auto& path : candidates(stack_of(file)))
      if (known.empty() && std::filesystem::is_regular_file(path, ignored))
        known = path;
    if (known.empty())
      table_.fail(row, column, "there is no file " + candidates(file)[0].string());
    particles_.measured.push_back(known);
  }

  std::int64_t image_number(std::size_t row, const std::string& text, std::size_t at) const {
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + at, number);
    if (stop != text.data() + at || error != std::errc())
      table_.fail(row, name, "expected INDEX@STACK, found '" + text + "'");
    if (number < 1)
      table_.fail(row, name, "images are counted from 1, found '" + text + "'");
    return number;
  }

  std::size_t stack_at(std::size_t row, const std::string& stack_name) {
    if (const auto known = known_.find(stack_name); known != known_.end())
      return known->second;
    add_stack(row, *open(row, resolve(row, stack_name)));
    return known_[stack_name] = particles_.stacks.size() - 1;
  }

  std::unique_ptr<ImageStack> open(std::size_t row, const std::filesystem::path& path) const {
    try {
      return std::make_unique<ImageStack>(path);
    } catch (const InputError& error) {
      table_.fail(row, name, error.what());
    }
  }

  std::filesystem::path resolve(std::size_t row, const std::string& stack_name) const {
    const auto paths = candidates(stack_name);
    std::error_code ignored;
    for (const auto& path : paths)
      if (std::filesystem::exists(path, ignored))
        return path;
    const std::string also =
        paths[0] == paths[1] ? "" : " or " + std::filesystem::absolute(paths[1]).string();
    table_.fail(row, name, "there is no stack " + paths[0].string() + also);
  }

  /// Beside the STAR file, and from the current folder.
  std::array<std::filesystem::path, 2> candidates(const std::string& stack_name) const {
    return {particles_.file.parent_path() / stack_name, stack_name};
  }

  void add_stack(std::size_t row, const ImageStack& reader) {
    const auto& path = reader.path();
    if (particles_.stacks.empty()) {
      particles_.image_width = reader.width();
      particles_.image_height = reader.height();
    } else if ((reader.width() != particles_.image_width || reader.height() != particles_.image_height) &&
               (reader.width() != reader.height() || particles_.image_width != particles_.image_height)) {
      table_.fail(
          row, name,
          path.string() + " has images of " + std::to_string(reader.width()) + " x " +
              std::to_string(reader.height()) + " pixels, those before have " +
              std::to_string(particles_.image_width) + " x " + std::to_string(particles_.image_height) +
              "; only square ones are brought to one box: do it before (relion_image_handler --new_box)");
    }
    particles_.stacks.push_back(
        {path, reader.images(), reader.pixel_size(), reader.format(), reader.width(), reader.height()});
    for (const auto& warning : reader.warnings()) {
      auto& [first, stacks] = warnings_[warning];
      if (stacks++ == 0)
        first = path;
    }
  }

  static constexpr std::string_view name = "rlnImageName";
  Particles& particles_;
  const NumberReader& table_;
  std::unordered_map<std::string, std::size_t> known_;
  std::unordered_map<std::string, std::filesystem::path> measured_; ///< by rlnCtfImage
  std::map<std::string, std::pair<std::filesystem::path, std::size_t>>
      warnings_; // one per kind, however many stacks
};

/// What the file says about its images against what the stacks hold.
void check_images(Particles& particles, const JoinedTables& tables) {
  const auto dimensions = tables.column("rlnImageDimensionality", &NumberReader::integer);
  const std::int64_t expected = particles.subtomograms ? 3 : 2;
  for (std::size_t row = 0; row < dimensions.size(); ++row)
    if (dimensions[row] != expected)
      tables.particles().fail(row, "rlnImageDimensionality",
                              "expected " + std::to_string(expected) +
                                  (particles.subtomograms ? " (subtomograms)" : " (images)") + ", found " +
                                  std::to_string(dimensions[row]));
  const auto sizes = tables.column("rlnImageSize", &NumberReader::integer);
  for (std::size_t row = 0; row < sizes.size(); ++row)
    if (const ParticleStack& stack = particles.stacks[particles.stack[row]]; stack.width != sizes[row]) {
      const std::int64_t size = stack.width;
      if (size != particles.image_width)
        tables.particles().fail(row, "rlnImageName",
                                stack.path.string() + " has images of " + std::to_string(size) + " x " +
                                    std::to_string(size) + " pixels, those before have " +
                                    std::to_string(particles.image_width) + " x " +
                                    std::to_string(particles.image_width) + ", and the file states " +
                                    std::to_string(sizes[row]) +
                                    " (rlnImageSize): images of another box need an optics group of their "
                                    "own, with its size and pixel size");
      particles.warnings.push_back(particles.file.string() + ": states images of " +
                                   std::to_string(sizes[row]) + " pixels (rlnImageSize), the stacks have " +
                                   std::to_string(size) + ": the latter are taken");
      break;
    }
  if (!particles.subtomograms && tables.particles().table().find("rlnCtfImage"))
    particles.warnings.push_back(particles.file.string() +
                                 ": has rlnCtfImage beside images (INDEX@STACK): not used");
  const bool ctf = particles.defocus_u.present() && particles.voltage.present();
  const auto name_unused = [&](const auto& column) {
    if (column.present() && !ctf)
      particles.warnings.push_back(particles.file.string() + ": has " + std::string(column.name) +
                                   " but no contrast transfer (rlnDefocusU, rlnVoltage): not used");
  };
  name_unused(particles.exposure);
  name_unused(particles.premultiplied);
  name_unused(particles.beam_tilt_x);
  name_unused(particles.beam_tilt_y);
  name_unused(particles.odd_zernike);
  name_unused(particles.even_zernike);
  name_unused(particles.detector);
}

/// Pixel sizes and origins of images of other boxes than the first one's, as in that with the same field of view.
void unify_boxes(Particles& particles) {
  bool said = false;
  for (std::size_t row = 0; row < particles.stack.size(); ++row) {
    const ParticleStack& stack = particles.stacks[particles.stack[row]];
    if (stack.width == particles.image_width)
      continue;
    const auto box = [](std::int64_t size) { return std::to_string(size) + " x " + std::to_string(size); };
    const std::string found = particles.file.string() + ": has images of " + box(stack.width) +
                              " pixels (row " + std::to_string(row + 1) + ") and of " +
                              box(particles.image_width);
    if (!particles.pixel_size.present())
      throw InputError(found + ", but states no pixel sizes (rlnImagePixelSize) that say how these compare");
    double& pixel_size = particles.pixel_size.values[row];
    if (!std::exchange(said, true))
      particles.warnings.push_back(
          found + ", with pixels of " + shortest(pixel_size) + " and of " +
          shortest(particles.pixel_size[0]) +
          " Angstrom: all are brought to the latter by their spectra, their values being samples "
          "of the same function");
    const double part = double(stack.width) / double(particles.image_width);
    pixel_size *= part;
    for (auto* column : {&particles.origin_x, &particles.origin_y})
      if (column->present())
        column->values[row] /= part;
  }
}

/// Keeps the particles of a class; without one all are kept, and a mixture is a warning.
void select_class(Particles& particles, std::optional<std::int64_t> wanted) {
  const auto classes = particles.class_number.values;
  if (!wanted) {
    const std::set<std::int64_t> all(classes.begin(), classes.end());
    if (all.size() > 1)
      particles.warnings.push_back(particles.file.string() + ": has " + std::to_string(all.size()) +
                                   " classes (rlnClassNumber): taken together; --class selects one");
    return;
  }
  particles.require(particles.class_number);
  const auto keep = [&](auto& values, std::size_t columns = 1) {
    std::size_t at = 0;
    std::erase_if(values, [&](const auto&) { return classes[at++ / columns] != *wanted; });
  };
  StarTable& table = particles.particle_table();
  keep(table.values, table.columns.size());
  particles.count = table.rows();
  if (particles.count == 0)
    throw InputError(particles.file.string() + ": has no particles of class " + std::to_string(*wanted));
  const auto keep_all = [&](auto&... columns) {
    const auto keep_present = [&](auto& column) {
      if (column.present())
        keep(column.values);
    };
    (keep_present(columns), ...);
  };
  auto& p = particles;
  keep_all(p.rot, p.tilt, p.psi, p.origin_x, p.origin_y, p.origin_z, p.defocus_u, p.defocus_v,
           p.defocus_angle, p.phase_shift, p.voltage, p.spherical_aberration, p.amplitude_contrast,
           p.ctf_b_factor, p.ctf_scale, p.exposure, p.pixel_size, p.premultiplied, p.beam_tilt_x,
           p.beam_tilt_y, p.odd_zernike, p.even_zernike, p.magnification[0], p.magnification[1],
           p.magnification[2], p.magnification[3], p.detector, p.class_number, p.random_subset,
           p.optics_group);
  if (!p.stack.empty()) {
    keep(p.stack);
    keep(p.image);
  }
  if (!p.measured.empty())
    keep(p.measured);
}

/// The images of particles in tilt series instead.
void take_tilt_series(Particles& particles, const ParticleOptions& options) {
  const std::filesystem::path& path = particles.file;
  if (!options.tilt_series)
    throw InputError(
        path.string() +
        ": has particles in tilt series, which bracewell-reconstruct averages; bracewell-star makes of "
        "every tilt an image with a pose of its own, which all programs read");
  TiltSeriesParticles tilts = read_tilt_series(path, std::move(particles.document), options.images);
  particles.document = std::move(tilts.document);
  particles.file = std::move(tilts.particles_file);
  particles.passthroughs = {tilts.geometry.front()}; // and its tables of tilts
  particles.warnings = std::move(tilts.warnings);
  particles.in_tilt_series = tilts.count;
}

} // namespace

double DetectorResponse::at(double frequency) const {
  const auto above = std::ranges::lower_bound(frequencies, frequency);
  if (above == frequencies.begin())
    return values.front();
  if (above == frequencies.end())
    return values.back();
  const auto i = static_cast<std::size_t>(above - frequencies.begin());
  const double part = (frequency - frequencies[i - 1]) / (frequencies[i] - frequencies[i - 1]);
  return values[i - 1] + part * (values[i] - values[i - 1]);
}

void Particles::fail_missing(std::string_view column) const {
  std::string what(column);
  if (column == origin_x.name)
    what += " (or rlnOriginX)";
  if (column == origin_y.name)
    what += " (or rlnOriginY)";
  if (column == pixel_size.name)
    what += " (or rlnDetectorPixelSize and rlnMagnification)";
  throw InputError(file.string() + ": column " + what + " is missing from table data_" + table +
                   (document.find("optics") != nullptr ? " and from table data_optics" : ""));
}

Particles read_particles(const std::filesystem::path& given, const ParticleOptions& options) {
  Particles particles;
  particles.file = given;
  if (begins_as_cryosparc(given)) {
    CryosparcParticles converted = read_cryosparc(given);
    particles.document = std::move(converted.document);
    particles.passthroughs = std::move(converted.passthroughs);
    particles.warnings = std::move(converted.warnings);
  } else {
    particles.document = read_star(given);
    if (is_tilt_series(particles.document))
      take_tilt_series(particles, options);
    if (StarDocument& document = particles.document;
        document.tables.size() == 1 && is_cistem(document.tables[0]))
      document.tables[0] = read_cistem(given, document.tables[0], particles.warnings);
  }
  const std::filesystem::path& path = particles.file;
  const StarTable& table = find_particle_table(path, particles.document);
  particles.subtomograms = has_subtomograms(particles.document, table);
  if (particles.subtomograms && !options.subtomograms)
    throw InputError(path.string() + ": table data_" + table.name +
                     " is one of subtomograms, volumes with a missing wedge (rlnCtfImage), which "
                     "bracewell-reconstruct averages: for other programs extract stacks of tilts "
                     "(relion_tomo_subtomo --stack2d)");
  name_other_programs(path, table, particles.subtomograms);
  name_misspelt(particles, table);
  if (const StarTable* const optics = particles.document.find("optics"))
    name_misspelt(particles, *optics);
  particles.table = table.name;
  particles.count = table.rows();
  if (particles.count == 0)
    throw InputError(path.string() + ": has no particles: table data_" + table.name + " is empty");

  const JoinedTables tables(path, table, particles.document.find("optics"));
  for (auto* column :
       {&particles.rot, &particles.tilt, &particles.psi, &particles.defocus_u, &particles.defocus_v,
        &particles.defocus_angle, &particles.phase_shift, &particles.spherical_aberration,
        &particles.amplitude_contrast, &particles.ctf_b_factor, &particles.ctf_scale, &particles.exposure,
        &particles.beam_tilt_x, &particles.beam_tilt_y, &particles.magnification[0],
        &particles.magnification[1], &particles.magnification[2], &particles.magnification[3]})
    column->values = tables.column(column->name, &NumberReader::real);
  particles.voltage.values = tables.column(particles.voltage.name, &NumberReader::real, true);
  for (auto* column :
       {&particles.random_subset, &particles.optics_group, &particles.class_number, &particles.premultiplied})
    column->values = tables.column(column->name, &NumberReader::integer);
  for (auto* column : {&particles.odd_zernike, &particles.even_zernike})
    column->values = tables.column(column->name, &NumberReader::list);
  for (std::size_t row = 0; row < particles.exposure.values.size(); ++row)
    if (!(particles.exposure[row] >= 0))
      tables.particles().fail(row, particles.exposure.name,
                              "expected an exposure of 0 or more, found " +
                                  shortest(particles.exposure[row]));
  read_b_factors(particles, options.b_factor_sign);
  read_responses(particles, tables);
  if (options.pixel_size)
    particles.pixel_size.values.assign(particles.count, *options.pixel_size);
  else
    particles.pixel_size.values = read_pixel_sizes(tables);
  for (const double size : particles.pixel_size.values)
    if (!(size >= 1e-3 && size <= 1e6))
      throw InputError(path.string() + ": expected pixels of 0.001 to 1000000 Angstrom, found " +
                       shortest(size));
  particles.origin_x.values = read_origins(tables, "rlnOriginX", particles.pixel_size.values);
  particles.origin_y.values = read_origins(tables, "rlnOriginY", particles.pixel_size.values);
  if (particles.subtomograms)
    particles.origin_z.values = read_origins(tables, "rlnOriginZ", particles.pixel_size.values);
  ImageFinder images(particles, tables.particles());
  if (options.images)
    images.find_all();
  else
    images.remember_all();
  if (options.images) {
    check_images(particles, tables);
    unify_boxes(particles);
  }
  select_class(particles, options.class_number);
  for (std::string& finding : findings_in_unread(particles.file, *particles.document.find(particles.table)))
    particles.warnings.push_back(std::move(finding));
  return particles;
}

void move_image_names(Particles& particles, const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  const auto column = particles.particle_table().find("rlnImageName");
  const fs::path from = particles.file.parent_path(), to = fs::absolute(file).parent_path();
  std::error_code ignored;
  if (!column || particles.stack.empty() || fs::equivalent(from.empty() ? "." : from, to, ignored))
    return;
  std::vector<std::string> names;
  for (std::size_t row = 0; row < particles.count; ++row) {
    std::string name = particles.particle_table().value(row, *column);
    const std::size_t begin = name.find('@') + 1; // 0 where there is none
    const std::string file_name = stack_of(name), format = name.substr(begin + file_name.size());
    const fs::path stack = file_name;
    if (stack.is_relative() && particles.stacks[particles.stack[row]].path == from / stack)
      name = name.substr(0, begin) + fs::proximate(fs::absolute(from / stack), to).string() + format;
    names.push_back(std::move(name));
  }
  particles.particle_table().set_column("rlnImageName", std::move(names));
}

void set_pixel_size(Particles& particles, double pixel_size) {
  constexpr std::array<std::string_view, 3> stated{"rlnImagePixelSize", "rlnDetectorPixelSize",
                                                   "rlnMagnification"};
  auto* const optics = particles.document.find("optics");
  for (auto* const table : {&particles.particle_table(), optics})
    if (table != nullptr)
      table->remove_columns(stated);
  auto& table = optics != nullptr ? *optics : particles.particle_table();
  table.set_column("rlnImagePixelSize", std::vector<std::string>(table.rows(), fixed(pixel_size)));
}

} // namespace Bracewell::Examples
