// SPDX-License-Identifier: MIT
#include "tilt_series.hpp"

#include "image_stack.hpp"
#include "input_error.hpp"
#include "star_numbers.hpp"

#include <bracewell/geometry/euler.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;
using Matrix = Matrix3<double>;
using Vector = Vector3<double>;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Where a file lies whose name is relative to RELION's project: in the folder of `beside`, in the current one, or in one
/// that has that folder in it; `beside`'s folder where it is nowhere.
fs::path resolve(const fs::path& beside, const fs::path& name) {
  const fs::path folder = beside.parent_path();
  if (name.is_absolute() || is_there(folder / name))
    return folder / name;
  if (is_there(name))
    return name;
  std::error_code ignored;
  for (fs::path above = fs::absolute(folder, ignored).lexically_normal(); above.has_relative_path();
       above = above.parent_path())
    if (is_there(above.parent_path() / name))
      return above.parent_path() / name;
  return folder / name;
}

/// A table's column, which has to be there.
std::size_t column_of(const fs::path& file, const StarTable& table, std::string_view name) {
  if (const auto column = table.find(name))
    return *column;
  throw InputError(file.string() + ": column " + std::string(name) + " is missing from table data_" +
                   table.name);
}

/// Active rotation by degrees about x, y or z.
Matrix rotation(int axis, double degrees) {
  const double angle = degrees * std::numbers::pi / 180, c = std::cos(angle), s = std::sin(angle);
  const int i = (axis + 1) % 3, j = (axis + 2) % 3;
  Matrix matrix = Matrix::identity();
  matrix(i, i) = matrix(j, j) = c;
  matrix(i, j) = -s;
  matrix(j, i) = s;
  return matrix;
}

struct Tilt {
  Matrix rotation; ///< from the specimen to the image: rows are the image's axes, and the beam's
  Vector depth;    ///< how the specimen's axes change the depth
  double defocus_u = 0, defocus_v = 0, defocus_angle = 0, phase_shift = 0, scale = 1, exposure = 0;
};

struct TiltSeries {
  std::vector<Tilt> tilts;
  bool ctf = false;             ///< its tilts have defoci
  std::optional<Vector> centre; ///< pixels
  double pixel_size = 0;        ///< Angstrom, of the tilts as they were taken; 0: not stated
  double hand = 0, slope = 1;   ///< change of the defocus with depth; hand 0: not stated
  double b_per_exposure =
      0; ///< square Angstrom of B factor per e/A^2; 0: the exposure has a curve of its own
  std::array<std::string, 3>
      lens; ///< rlnVoltage, rlnSphericalAberration, rlnAmplitudeContrast; empty: not stated
};

constexpr std::array<std::string_view, 3> lens_columns{"rlnVoltage", "rlnSphericalAberration",
                                                       "rlnAmplitudeContrast"};

/// A tomograms.star of RELION 5, or of 4, which has the tables of the tilts in it.
class Tomograms {
public:
  explicit Tomograms(fs::path path) : path_(std::move(path)), document_(read_star(path_)) {
    global_ = document_.find("global");
    if (global_ == nullptr)
      throw InputError(path_.string() + ": has no table data_global: expected RELION's table of tomograms");
    const std::size_t name = column_of(path_, *global_, "rlnTomoName");
    for (std::size_t row = 0; row < global_->rows(); ++row)
      row_of_[global_->value(row, name)] = row;
    files_.push_back(path_);
  }

  const fs::path& path() const { return path_; }
  const std::vector<fs::path>& files() const { return files_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// Null: there is no such tomogram.
  const TiltSeries* find(const std::string& name) {
    if (const auto known = series_.find(name); known != series_.end())
      return &known->second;
    const auto row = row_of_.find(name);
    return row == row_of_.end() ? nullptr : &(series_[name] = read(name, row->second));
  }

private:
  TiltSeries read(const std::string& name, std::size_t row) {
    const NumberReader global(path_, *global_);
    const auto number = [&](std::string_view column, double otherwise) {
      const auto found = global_->find(column);
      return found ? global.real(row, *found) : otherwise;
    };
    TiltSeries series;
    series.pixel_size = number("rlnTomoTiltSeriesPixelSize", 0);
    series.hand = number("rlnTomoHand", 0);
    series.slope = number("rlnTomoDefocusSlope", 1);
    series.b_per_exposure = number("rlnCtfBfactorPerElectronDose", 0);
    if (global_->find("rlnTomoSizeX") && global_->find("rlnTomoSizeY") && global_->find("rlnTomoSizeZ"))
      series.centre =
          Vector{number("rlnTomoSizeX", 0) / 2, number("rlnTomoSizeY", 0) / 2, number("rlnTomoSizeZ", 0) / 2};
    for (std::size_t i = 0; i < lens_columns.size(); ++i)
      if (const auto column = global_->find(lens_columns[i]))
        series.lens[i] = global_->value(row, *column);
    if (const auto file = global_->find("rlnTomoTiltSeriesStarFile")) {
      const fs::path path = resolve(path_, global_->value(row, *file));
      const StarDocument document = read_star(path);
      files_.push_back(path);
      const StarTable* table = document.find(name);
      if (table == nullptr && document.tables.size() == 1)
        table = &document.tables.front();
      if (table == nullptr)
        throw InputError(path.string() + ": has no table data_" + name);
      read_tilts(path, *table, series);
    } else if (const StarTable* const table = document_.find(name)) {
      read_tilts(path_, *table, series);
    } else {
      throw InputError(path_.string() + ": has neither column rlnTomoTiltSeriesStarFile nor table data_" +
                       name);
    }
    return series;
  }

  void read_tilts(const fs::path& file, const StarTable& table, TiltSeries& series) {
    const NumberReader numbers(file, table);
    const auto value = [&](std::string_view column, std::size_t row, double otherwise) {
      const auto found = table.find(column);
      return found ? numbers.real(row, *found) : otherwise;
    };
    if (table.rows() == 0)
      throw InputError(file.string() + ": table data_" + table.name + " is empty");
    series.ctf = table.find("rlnDefocusU").has_value();
    const std::size_t exposure = column_of(file, table, "rlnMicrographPreExposure");
    bool b_factors = false;
    for (std::size_t row = 0; row < table.rows(); ++row) {
      Tilt tilt;
      if (table.find("rlnTomoProjX")) {
        read_matrix(numbers, row, tilt);
      } else {
        column_of(file, table, "rlnTomoYTilt");
        column_of(file, table, "rlnTomoZRot");
        tilt.rotation = rotation(2, value("rlnTomoZRot", row, 0)) *
                        rotation(1, value("rlnTomoYTilt", row, 0)) *
                        rotation(0, value("rlnTomoXTilt", row, 0));
        tilt.depth = {tilt.rotation(2, 0), tilt.rotation(2, 1), tilt.rotation(2, 2)};
      }
      tilt.exposure = numbers.real(row, exposure);
      if (!(tilt.exposure >= 0))
        numbers.fail(row, "rlnMicrographPreExposure",
                     "expected an exposure of 0 or more, found " + table.value(row, exposure));
      tilt.defocus_u = value("rlnDefocusU", row, 0);
      tilt.defocus_v = value("rlnDefocusV", row, tilt.defocus_u);
      tilt.defocus_angle = value("rlnDefocusAngle", row, 0);
      tilt.phase_shift = value("rlnPhaseShift", row, 0);
      tilt.scale = value("rlnCtfScalefactor", row, 1);
      b_factors = b_factors || value("rlnCtfBfactor", row, 0) != 0;
      series.tilts.push_back(tilt);
    }
    if (b_factors && !warned_) {
      warnings_.push_back(file.string() +
                          ": has B factors of tilts (rlnCtfBfactor): not used, as in RELION, for exposures "
                          "(rlnMicrographPreExposure) have their own decay");
      warned_ = true;
    }
  }

  /// RELION 4's rows of a matrix. The beam of the rotation follows from the image's axes, for matrices may mirror depths.
  static void read_matrix(const NumberReader& numbers, std::size_t row, Tilt& tilt) {
    constexpr std::array<std::string_view, 3> names{"rlnTomoProjX", "rlnTomoProjY", "rlnTomoProjZ"};
    for (int i = 0; i < 3; ++i) {
      const auto name = names[static_cast<std::size_t>(i)];
      const auto column = numbers.table().find(name);
      if (!column)
        numbers.fail(row, name, "is missing");
      const auto values = numbers.list(row, *column);
      if (values.size() != 4)
        numbers.fail(row, name, "expected 4 numbers, found '" + numbers.table().value(row, *column) + "'");
      for (int j = 0; j < 3; ++j)
        tilt.rotation(i, j) = values[static_cast<std::size_t>(j)];
    }
    Matrix& m = tilt.rotation;
    tilt.depth = {m(2, 0), m(2, 1), m(2, 2)};
    const auto dot = [&](int a, int b) { return m(a, 0) * m(b, 0) + m(a, 1) * m(b, 1) + m(a, 2) * m(b, 2); };
    constexpr double little = 1e-2;
    if (std::abs(dot(0, 0) - 1) > little || std::abs(dot(1, 1) - 1) > little || std::abs(dot(0, 1)) > little)
      numbers.fail(row, names[0],
                   "expected two axes of length 1 at right angles (rlnTomoProjX, rlnTomoProjY), found '" +
                       numbers.table().value(row, *numbers.table().find(names[0])) + "' and '" +
                       numbers.table().value(row, *numbers.table().find(names[1])) + "'");
    for (int j = 0; j < 3; ++j)
      m(2, j) = m(0, (j + 1) % 3) * m(1, (j + 2) % 3) - m(0, (j + 2) % 3) * m(1, (j + 1) % 3);
  }

  fs::path path_;
  StarDocument document_;
  const StarTable* global_ = nullptr;
  std::unordered_map<std::string, std::size_t> row_of_;
  std::map<std::string, TiltSeries> series_;
  std::vector<fs::path> files_;
  std::vector<std::string> warnings_;
  bool warned_ = false;
};

/// The table of an optimisation set, if it is one.
const StarTable* optimisation_set(const StarDocument& document) {
  for (const auto& table : document.tables)
    if (table.find("rlnTomoParticlesFile"))
      return &table;
  return nullptr;
}

/// What an optimisation set names.
fs::path named_by(const fs::path& file, const StarTable& set, std::string_view column) {
  const std::size_t at = column_of(file, set, column);
  if (set.rows() != 1)
    throw InputError(file.string() + ": table data_" + set.name + ": expected one row, found " +
                     std::to_string(set.rows()));
  const fs::path path = resolve(file, set.value(0, at));
  if (!is_there(path))
    throw InputError(file.string() + ": names " + set.value(0, at) + " (" + std::string(column) +
                     "), which is not there");
  return path;
}

/// The geometry for a file of particles that was given without one.
fs::path tomograms_beside(const fs::path& particles) {
  const fs::path folder = particles.parent_path();
  std::vector<fs::path> sets;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? fs::path(".") : folder, ignored))
    if (entry.path().filename().string().ends_with("optimisation_set.star"))
      sets.push_back(folder / entry.path().filename());
  std::ranges::sort(sets);
  std::vector<fs::path> found;
  for (const auto& path : sets)
    if (const StarDocument document = read_star(path);
        const StarTable* const set = optimisation_set(document))
      if (const fs::path tomograms = named_by(path, *set, "rlnTomoTomogramsFile");
          std::ranges::find(found, tomograms) == found.end())
        found.push_back(tomograms);
  if (found.empty() && is_there(folder / "tomograms.star"))
    found.push_back(folder / "tomograms.star");
  if (found.size() != 1)
    throw InputError(
        particles.string() + ": has particles in tilt series, whose geometry is in a file of its own, and " +
        (found.empty() ? std::string("neither an optimisation set nor tomograms.star lies beside it")
                       : std::to_string(found.size()) + " optimisation sets beside it differ") +
        ": give RELION's optimisation set instead");
  return found.front();
}

/// The relation of a stack's images to the frames of a tilt series.
enum class StackLayout { Visible, All };

class Expansion {
public:
  Expansion(fs::path file, StarDocument document, fs::path tomograms, bool images)
      : file_(std::move(file)), document_(std::move(document)), table_(*document_.find("particles")),
        numbers_(file_, table_), tomograms_(std::move(tomograms)), images_(images) {}

  TiltSeriesParticles run() {
    check_columns();
    look_at_series();
    name_columns();
    for (std::size_t row = 0; row < table_.rows(); ++row)
      add(row);
    StarTable optics = document_.find("optics") ? *document_.find("optics") : StarTable{};
    optics.name = "optics";
    drop_odd_aberrations(optics);
    TiltSeriesParticles result;
    if (!optics.columns.empty())
      result.document.tables.push_back(std::move(optics));
    result.document.tables.push_back(std::move(out_));
    result.particles_file = file_;
    result.geometry = tomograms_.files();
    result.count = table_.rows();
    result.warnings = std::move(warnings_);
    result.warnings.insert(result.warnings.end(), tomograms_.warnings().begin(), tomograms_.warnings().end());
    return result;
  }

private:
  using Column = std::optional<std::size_t>;

  void warn(const std::string& what) { warnings_.push_back(file_.string() + ": " + what); }

  void check_columns() {
    tomogram_ = column_of(file_, table_, "rlnTomoName");
    image_ = column_of(file_, table_, "rlnImageName");
    visible_ = table_.find("rlnTomoVisibleFrames");
    for (std::size_t i = 0; i < 3; ++i) {
      constexpr std::array<std::string_view, 3> angles{"Rot", "Tilt", "Psi"}, axes{"X", "Y", "Z"};
      const std::string axis(axes[i]);
      subtomogram_[i] = table_.find("rlnTomoSubtomogram" + std::string(angles[i]));
      angle_[i] = table_.find("rlnAngle" + std::string(angles[i]));
      origin_[i] = table_.find("rlnOrigin" + axis + "Angst");
      centred_[i] = table_.find("rlnCenteredCoordinate" + axis + "Angst");
      pixel_[i] = table_.find("rlnCoordinate" + axis);
    }
    const auto all_or_none = [&](const std::array<Column, 3>& columns, const char* name) {
      if (std::ranges::any_of(columns, [](const Column& c) { return c.has_value(); }) &&
          std::ranges::any_of(columns, [](const Column& c) { return !c; }))
        throw InputError(file_.string() + ": table data_particles has some of the three columns " + name +
                         ", not all");
    };
    all_or_none(subtomogram_, "rlnTomoSubtomogramRot, Tilt and Psi");
    all_or_none(angle_, "rlnAngleRot, Tilt and Psi");
    all_or_none(centred_, "rlnCenteredCoordinateXAngst, Y and Z");
    if (!angle_[0] && !subtomogram_[0])
      throw InputError(file_.string() + ": column rlnAngleRot is missing from table data_particles");
    if (!table_.find("rlnRandomSubset") && !table_.find("rlnHelicalTubeID")) {
      halves_ = true;
      warn(
          "has no half sets (rlnRandomSubset): odd and even particles are taken, each with all of its tilts");
    }
  }

  /// Every series, for what all of them have.
  void look_at_series() {
    for (std::size_t row = 0; row < table_.rows(); ++row) {
      const std::string& name = table_.value(row, tomogram_);
      if (row > 0 && name == table_.value(row - 1, tomogram_)) {
        series_.push_back(series_.back());
        continue;
      }
      const TiltSeries* const series = tomograms_.find(name);
      if (series == nullptr)
        numbers_.fail(row, "rlnTomoName", tomograms_.path().string() + " has no tomogram '" + name + "'");
      series_.push_back(series);
      if (row == 0)
        ctf_ = series->ctf;
      if (series->ctf != ctf_)
        numbers_.fail(row, "rlnTomoName",
                      "some tilt series have defoci (rlnDefocusU), and this one or an earlier one has none");
      if (ctf_ && series->hand == 0)
        throw InputError(tomograms_.path().string() +
                         ": column rlnTomoHand, which says how the defocus changes with depth, "
                         "is missing from table data_global, or 0");
      b_per_exposure_ = b_per_exposure_ || series->b_per_exposure > 0;
    }
    if (ctf_ && !centred_[0] && !(pixel_[0] && pixel_[1] && pixel_[2]))
      throw InputError(file_.string() + ": column rlnCenteredCoordinateXAngst, which the defocus needs, is "
                                        "missing from table data_particles");
  }

  void name_columns() {
    out_.name = "particles";
    out_.version = 30001;
    out_.columns = {"rlnImageName", "rlnGroupName",    "rlnAngleRot",     "rlnAngleTilt",
                    "rlnAnglePsi",  "rlnOriginXAngst", "rlnOriginYAngst", "rlnMicrographPreExposure"};
    if (ctf_)
      out_.columns.insert(out_.columns.end(), {"rlnDefocusU", "rlnDefocusV", "rlnDefocusAngle",
                                               "rlnPhaseShift", "rlnCtfScalefactor"});
    if (b_per_exposure_)
      out_.columns.emplace_back("rlnCtfBfactor");
    const StarTable* const optics = document_.find("optics");
    for (std::size_t i = 0; i < lens_columns.size(); ++i)
      if (ctf_ && !table_.find(lens_columns[i]) && !(optics && optics->find(lens_columns[i])) &&
          std::ranges::all_of(series_, [&](const TiltSeries* one) { return !one->lens[i].empty(); })) {
        lens_.push_back(i);
        out_.columns.emplace_back(lens_columns[i]);
      }
    out_.columns.emplace_back("rlnMicrographName");
    for (const char* const name : {"rlnOpticsGroup", "rlnRandomSubset", "rlnClassNumber", "rlnHelicalTubeID"})
      if (const auto column = table_.find(name)) {
        copied_.push_back(*column);
        out_.columns.emplace_back(name);
      }
    if (halves_)
      out_.columns.emplace_back("rlnRandomSubset");
  }

  double value(const Column& column, std::size_t row) const {
    return column ? numbers_.real(row, *column) : 0;
  }
  Vector values(const std::array<Column, 3>& columns, std::size_t row) const {
    return {value(columns[0], row), value(columns[1], row), value(columns[2], row)};
  }
  Matrix matrix(const std::array<Column, 3>& columns, std::size_t row) const {
    const Vector angles = values(columns, row);
    return euler_matrix(EulerAngles<double>{angles[0], angles[1], angles[2]});
  }

  /// Which frames of the series a particle's stack has.
  std::vector<std::size_t> frames(std::size_t row, const TiltSeries& series) {
    std::vector<std::size_t> result;
    if (!visible_) {
      for (std::size_t frame = 0; frame < series.tilts.size(); ++frame)
        result.push_back(frame);
      return result;
    }
    const auto flags = numbers_.list(row, *visible_);
    if (flags.size() != series.tilts.size())
      numbers_.fail(row, "rlnTomoVisibleFrames",
                    "expected a number for each of the " + std::to_string(series.tilts.size()) +
                        " tilts of the series, found " + std::to_string(flags.size()));
    for (std::size_t frame = 0; frame < flags.size(); ++frame)
      if (flags[frame] == 1)
        result.push_back(frame);
      else if (flags[frame] != 0)
        numbers_.fail(row, "rlnTomoVisibleFrames",
                      "expected 0 and 1, found '" + table_.value(row, *visible_) + "'");
    if (result.empty())
      numbers_.fail(row, "rlnTomoVisibleFrames", "none of the tilts is visible: leave this particle out");
    return result;
  }

  /// The stack's name, to be found from the particles' file.
  std::string located(const std::string& name) const {
    const fs::path path = resolve(file_, name);
    const fs::path folder = file_.parent_path();
    return path == folder / name || path == name ? name : path.string();
  }

  void add(std::size_t row) {
    const TiltSeries& series = *series_[row];
    const Matrix in_tomogram = matrix(subtomogram_, row), whole = in_tomogram * matrix(angle_, row);
    const Vector offset = in_tomogram * values(origin_, row); // as the tomogram has it
    Vector position{};                                        // Angstrom from the tomogram's centre
    if (ctf_) {
      if (centred_[0]) {
        position = values(centred_, row);
      } else {
        if (!series.centre || !(series.pixel_size > 0))
          numbers_.fail(row, "rlnCoordinateX",
                        "is in pixels, but " + tomograms_.path().string() +
                            " states no size of the tomogram or no pixel size (rlnTomoSizeX, "
                            "rlnTomoTiltSeriesPixelSize)");
        position = values(pixel_, row);
        for (std::size_t i = 0; i < 3; ++i)
          position[i] = series.pixel_size * (position[i] - (*series.centre)[i]);
      }
      for (std::size_t i = 0; i < 3; ++i)
        position[i] -= offset[i];
    }
    const std::string& image = table_.value(row, image_);
    if (image.find('@') != std::string::npos)
      numbers_.fail(row, "rlnImageName",
                    "expected the name of a stack of tilts, found '" + image + "', one image of a stack");
    const std::string stack = located(image);
    const auto seen = frames(row, series);
    const StackLayout layout = layout_of(row, stack, seen.size(), series.tilts.size());
    std::size_t number = 0;
    for (const std::size_t frame : seen) {
      ++number;
      const Tilt& tilt = series.tilts[frame];
      const Vector origin = tilt.rotation * offset;
      const auto angles = euler_angles(tilt.rotation * whole);
      auto& values = out_.values;
      values.push_back(std::to_string(layout == StackLayout::All ? frame + 1 : number) + "@" + stack);
      values.push_back(name_of(row));
      for (const double one : {angles.rot, angles.tilt, angles.psi, origin[0], origin[1],
                               series.b_per_exposure > 0 ? 0 : tilt.exposure})
        values.push_back(fixed(one));
      if (ctf_) {
        const double deeper =
            series.hand * series.slope *
            (tilt.depth[0] * position[0] + tilt.depth[1] * position[1] + tilt.depth[2] * position[2]);
        for (const double one : {tilt.defocus_u + deeper, tilt.defocus_v + deeper, tilt.defocus_angle,
                                 tilt.phase_shift, tilt.scale})
          values.push_back(fixed(one));
      }
      if (b_per_exposure_)
        values.push_back(fixed(series.b_per_exposure * tilt.exposure));
      for (const std::size_t i : lens_)
        values.push_back(series.lens[i]);
      values.push_back(table_.value(row, tomogram_));
      for (const std::size_t column : copied_)
        values.push_back(table_.value(row, column));
      if (halves_)
        values.emplace_back(row % 2 == 0 ? "1" : "2");
    }
  }

  std::string name_of(std::size_t row) const {
    const auto column = table_.find("rlnTomoParticleName");
    return column ? table_.value(row, *column) : table_.value(row, tomogram_) + "/" + std::to_string(row + 1);
  }

  /// RELION's stacks have the visible tilts alone, those of older versions of Warp all.
  StackLayout layout_of(std::size_t row, const std::string& stack, std::size_t visible, std::size_t all) {
    if (!images_)
      return StackLayout::Visible;
    const fs::path path =
        is_there(file_.parent_path() / stack) ? file_.parent_path() / stack : fs::path(stack);
    if (!is_there(path))
      numbers_.fail(row, "rlnImageName", "there is no stack " + stack);
    std::size_t images = 0;
    try {
      images = static_cast<std::size_t>(ImageStack(path).images());
    } catch (const InputError& error) {
      numbers_.fail(row, "rlnImageName", error.what());
    }
    if (images == visible)
      return StackLayout::Visible;
    if (images != all)
      numbers_.fail(row, "rlnImageName",
                    path.string() + " has " + std::to_string(images) + " images, expected " +
                        std::to_string(visible) +
                        " for the visible tilts of the particle (rlnTomoVisibleFrames)");
    if (!all_warned_)
      warn("row " + std::to_string(row + 1) + ": its stack has all " + std::to_string(all) +
           " tilts, of which " + std::to_string(visible) +
           " are visible (rlnTomoVisibleFrames): the others are left out, in other stacks, too; "
           "RELION would take the first " +
           std::to_string(visible));
    all_warned_ = true;
    return StackLayout::All;
  }

  /// Extraction undoes what turns phases, so that the stacks have none of it.
  void drop_odd_aberrations(StarTable& optics) {
    constexpr std::array<std::string_view, 3> names{"rlnBeamTiltX", "rlnBeamTiltY", "rlnOddZernike"};
    const NumberReader reader(file_, optics);
    bool any = false;
    for (const auto name : names)
      if (const auto column = optics.find(name))
        for (std::size_t row = 0; row < optics.rows(); ++row)
          any = any || std::ranges::any_of(reader.list(row, *column), [](double v) { return v != 0; });
    if (any)
      warn("has odd aberrations (rlnBeamTiltX, rlnOddZernike): taken as undone when the stacks were "
           "extracted, as RELION "
           "does");
    optics.remove_columns(names);
  }

  fs::path file_;
  StarDocument document_;
  const StarTable& table_;
  NumberReader numbers_;
  Tomograms tomograms_;
  bool images_, halves_ = false, ctf_ = false, b_per_exposure_ = false, all_warned_ = false;
  std::size_t tomogram_ = 0, image_ = 0;
  Column visible_;
  std::array<Column, 3> subtomogram_, angle_, origin_, centred_, pixel_;
  std::vector<const TiltSeries*> series_; ///< [particles]
  std::vector<std::size_t> lens_, copied_;
  StarTable out_;
  std::vector<std::string> warnings_;
};

} // namespace

bool is_tilt_series(const StarDocument& document) {
  if (optimisation_set(document))
    return true;
  const StarTable* const particles = document.find("particles");
  if (particles == nullptr || !particles->find("rlnTomoName") || particles->find("rlnCtfImage"))
    return false;
  const StarTable* const general = document.find("general");
  const auto stacks = general ? general->find("rlnTomoSubTomosAre2DStacks") : std::nullopt;
  return particles->find("rlnTomoVisibleFrames") ||
         (stacks && general->rows() > 0 && general->value(0, *stacks) == "1");
}

TiltSeriesParticles read_tilt_series(const fs::path& path, StarDocument document, bool images) {
  if (const StarTable* const set = optimisation_set(document)) {
    const fs::path particles = named_by(path, *set, "rlnTomoParticlesFile"),
                   tomograms = named_by(path, *set, "rlnTomoTomogramsFile");
    StarDocument named = read_star(particles);
    if (optimisation_set(named) || !is_tilt_series(named))
      throw InputError(particles.string() +
                       ": has no particles in stacks of tilts (rlnTomoName, rlnTomoVisibleFrames), "
                       "which " +
                       path.string() + " names it for");
    return Expansion(particles, std::move(named), tomograms, images).run();
  }
  return Expansion(path, std::move(document), tomograms_beside(path), images).run();
}

} // namespace Bracewell::Examples
