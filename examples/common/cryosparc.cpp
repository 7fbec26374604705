// SPDX-License-Identifier: MIT
#include "cryosparc.hpp"

#include "input_error.hpp"
#include "input_file.hpp"
#include "provenance.hpp"

#include <bracewell/geometry/euler.hpp>
#include <bracewell/geometry/rotation_vector.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <numbers>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view magic = "\x93NUMPY";

/// A field of the records, [count] values of one type.
struct RecordField {
  std::string name;
  char kind = 0; ///< f, i, u, b (a truth value), S (bytes) or U (letters of four bytes)
  std::size_t width = 0, count = 1, offset = 0; ///< bytes of a value, values, bytes from the record's begin
};

/// NumPy's array of records, format 1 to 3 (numpy.lib.format), of numbers and texts of fixed length.
class RecordFile {
public:
  explicit RecordFile(fs::path path) : path_(std::move(path)), text_(InputFile(path_).read_text()) {
    if (text_.starts_with("\x93"
                          "CSDAT"))
      fail("this is a dataset of cryoSPARC in its compressed format; save it as NumPy's (Dataset.save, "
           "format 1)");
    if (!is_cryosparc(text_) || text_.size() < 12)
      fail("is not a NumPy array (cryoSPARC's .cs)");
    const int major = text_[6];
    const std::size_t length_bytes = major == 1 ? 2 : 4, header = 8 + length_bytes;
    std::size_t length = 0;
    for (std::size_t i = length_bytes; i-- > 0;)
      length = 256 * length + static_cast<unsigned char>(text_[8 + i]);
    if (major < 1 || major > 3 || header + length > text_.size())
      fail("is damaged: its header passes the file's end");
    begin_ = header + length;
    parse(std::string_view(text_).substr(header, length));
    if (record_ == 0 || rows_ > (text_.size() - begin_) / record_)
      fail("is truncated: expected " + std::to_string(rows_) + " records of " + std::to_string(record_) +
           " bytes, found " + std::to_string(text_.size() - begin_) + " bytes");
  }

  const fs::path& path() const { return path_; }
  std::size_t rows() const { return rows_; }
  const std::vector<RecordField>& fields() const { return fields_; }
  const RecordField* find(std::string_view name) const {
    const auto found = std::ranges::find(fields_, name, &RecordField::name);
    return found == fields_.end() ? nullptr : &*found;
  }

  double number(const RecordField& field, std::size_t row, std::size_t i = 0) const {
    const char* const at = place(field, row) + i * field.width;
    double value = 0;
    if (field.kind == 'f')
      value = field.width == 4 ? double(read<float>(at)) : read<double>(at);
    else if (field.kind == 'i')
      value = double(signed_integer(field, at));
    else
      value = double(integer(field, row, i));
    if (!std::isfinite(value))
      fail("row " + std::to_string(row + 1) + ", field " + field.name + ": expected a finite number");
    return value;
  }
  std::uint64_t integer(const RecordField& field, std::size_t row, std::size_t i = 0) const {
    const char* const at = place(field, row) + i * field.width;
    std::uint64_t value = 0;
    for (std::size_t byte = field.width; byte-- > 0;)
      value = 256 * value + static_cast<unsigned char>(at[byte]);
    return value;
  }
  std::string text(const RecordField& field, std::size_t row) const {
    const char* const at = place(field, row);
    std::string value;
    if (field.kind == 'S')
      value.assign(at, strnlen(at, field.width));
    else
      for (std::size_t i = 0; i < field.width && read<std::uint32_t>(at + i) != 0; i += 4)
        append_utf8(value, read<std::uint32_t>(at + i));
    return value;
  }

  [[noreturn]] void fail(const std::string& what) const { throw InputError(path_.string() + ": " + what); }

private:
  template <class Value>
  static Value read(const char* at) {
    Value value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  static void append_utf8(std::string& text, std::uint32_t letter) {
    if (letter < 0x80) {
      text += static_cast<char>(letter);
    } else if (letter < 0x800) {
      text += static_cast<char>(0xc0 | letter >> 6);
      text += static_cast<char>(0x80 | (letter & 0x3f));
    } else {
      if (letter >= 0x10000) {
        text += static_cast<char>(0xf0 | letter >> 18);
        text += static_cast<char>(0x80 | (letter >> 12 & 0x3f));
      } else {
        text += static_cast<char>(0xe0 | letter >> 12);
      }
      text += static_cast<char>(0x80 | (letter >> 6 & 0x3f));
      text += static_cast<char>(0x80 | (letter & 0x3f));
    }
  }
  static std::int64_t signed_integer(const RecordField& field, const char* at) {
    switch (field.width) {
    case 1:
      return read<std::int8_t>(at);
    case 2:
      return read<std::int16_t>(at);
    case 4:
      return read<std::int32_t>(at);
    default:
      return read<std::int64_t>(at);
    }
  }
  const char* place(const RecordField& field, std::size_t row) const {
    return text_.data() + begin_ + row * record_ + field.offset;
  }

  /// {'descr': [('uid', '<u8'), ('blob/shape', '<u4', (2,)), ...], 'fortran_order': False, 'shape': (N,), }
  void parse(std::string_view header) {
    std::size_t at = 0;
    const auto skip = [&](std::string_view letters) {
      at = std::min(header.find_first_not_of(letters, at), header.size());
    };
    const auto next = [&] { return at < header.size() ? header[at] : '\0'; };
    const auto quoted = [&] {
      const char quote = next();
      if (quote != '\'' && quote != '"')
        fail("has a header that is not one of records");
      const std::size_t end = header.find(quote, at + 1);
      if (end == std::string_view::npos)
        fail("has a damaged header");
      const std::string text(header.substr(at + 1, end - at - 1));
      at = end + 1;
      return text;
    };
    const auto whole = [&] {
      std::size_t value = 0;
      const auto [stop, error] = std::from_chars(header.data() + at, header.data() + header.size(), value);
      if (error != std::errc())
        fail("has a damaged header");
      at = static_cast<std::size_t>(stop - header.data());
      return value;
    };
    constexpr std::string_view descriptor = "'descr':", shape = "'shape':";
    at = header.find(descriptor);
    if (at == std::string_view::npos || header.find("'fortran_order': True") != std::string_view::npos)
      fail("has a header that is not one of records");
    at += descriptor.size();
    skip(" ");
    if (next() != '[')
      fail("is an array of numbers, not of records: expected cryoSPARC's particles (.cs)");
    ++at;
    for (skip(" ,"); next() == '('; skip(" ,)")) {
      RecordField field;
      ++at;
      skip(" ");
      field.name = quoted();
      skip(" ,");
      const std::string type = quoted();
      skip(" ");
      if (next() == ',') {
        skip(" ,");
        if (next() == '(') {
          ++at;
          for (skip(" "); next() >= '0' && next() <= '9'; skip(" ,")) {
            field.count *= whole();
            if (field.count > 1 << 20)
              fail("has a damaged header");
          }
        }
      }
      add(std::move(field), type);
    }
    at = header.find(shape);
    if (at == std::string_view::npos)
      fail("has a damaged header");
    at = header.find('(', at);
    if (at == std::string_view::npos)
      fail("has a damaged header");
    ++at;
    rows_ = whole();
  }

  void add(RecordField field, const std::string& type) {
    if (type.size() < 3 || type[0] == '>')
      fail("field " + field.name + ": expected little-endian numbers or texts of fixed length, found type '" +
           type + "'");
    field.kind = type[1];
    std::from_chars(type.data() + 2, type.data() + type.size(), field.width);
    if (field.kind == 'U')
      field.width *= 4;
    const bool text = field.kind == 'S' || field.kind == 'U';
    const bool number =
        (field.kind == 'f' && (field.width == 4 || field.width == 8)) ||
        ((field.kind == 'i' || field.kind == 'u') && std::has_single_bit(field.width) && field.width <= 8) ||
        (field.kind == 'b' && field.width == 1);
    if (!number && !(text && field.width < 1 << 20))
      fail("field " + field.name + ": type '" + type + "' is not read");
    field.offset = record_;
    record_ += field.width * field.count;
    fields_.push_back(std::move(field));
  }

  fs::path path_;
  std::string text_;
  std::size_t begin_ = 0, rows_ = 0, record_ = 0;
  std::vector<RecordField> fields_;
};

/// A number as text, with all digits of single precision.
std::string precise(double value) {
  std::array<char, 40> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 9);
  return std::string(text.data(), end.ptr);
}

/// The particles' file, and fields that it lacks from others by uid.
class Dataset {
public:
  explicit Dataset(const fs::path& path) : main_(path) {
    if (main_.rows() == 0)
      main_.fail("has no particles");
    std::vector<fs::path> beside;
    std::error_code ignored;
    const fs::path folder = path.parent_path().empty() ? fs::path(".") : path.parent_path();
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".cs") && name.find("passthrough") != std::string::npos &&
          name != path.filename().string())
        beside.push_back(path.parent_path() / name);
    }
    std::ranges::sort(beside);
    for (const auto& other : beside)
      add(other);
  }

  /// A field's name and file, with what row of that has a particle.
  struct Place {
    const RecordFile* file = nullptr;
    const RecordField* field = nullptr;
    const std::vector<std::size_t>* rows = nullptr; ///< null: the same
    std::size_t index = 0;                          ///< of the passthrough, from 1; 0: the particles' file
    std::size_t first = 0; ///< value of the field, where it is one of several classes

    explicit operator bool() const { return field != nullptr; }
    std::size_t row(std::size_t particle) const { return rows ? (*rows)[particle] : particle; }
    double number(std::size_t particle, std::size_t i = 0) const {
      return file->number(*field, row(particle), first + i);
    }
    std::uint64_t integer(std::size_t particle) const { return file->integer(*field, row(particle), first); }
    std::string text(std::size_t particle) const { return file->text(*field, row(particle)); }
  };

  /// The field, of so many values, or (classes > 0) those of one of so many classes.
  Place find(const std::string& name, std::size_t count = 1, std::size_t classes = 0, std::size_t one = 0) {
    Place place{&main_, main_.find(name), nullptr, 0};
    for (std::size_t i = 0; !place && i < others_.size(); ++i)
      place = {&others_[i].file, others_[i].file.find(name), &others_[i].rows, i + 1};
    if (!place)
      return {};
    place.first = one * count;
    count *= std::max<std::size_t>(1, classes);
    if (place.field->count != count)
      place.file->fail("field " + name + ": expected " + std::to_string(count) + " values, found " +
                       std::to_string(place.field->count));
    if (place.index > 0)
      others_[place.index - 1].used = true;
    return place;
  }
  Place require(const std::string& name, std::size_t count = 1) {
    if (const Place place = find(name, count))
      return place;
    main_.fail("field " + name +
               " is missing, and no file *passthrough*.cs beside it with the same "
               "particles has it");
  }

  /// How many values the field has; 0: it is not there.
  std::size_t values(const std::string& name) const {
    const RecordField* field = main_.find(name);
    for (std::size_t i = 0; !field && i < others_.size(); ++i)
      field = others_[i].file.find(name);
    return field ? field->count : 0;
  }

  const RecordFile& main() const { return main_; }
  std::vector<fs::path> passthroughs() const {
    std::vector<fs::path> paths;
    for (const auto& other : others_)
      if (other.used)
        paths.push_back(other.file.path());
    return paths;
  }

private:
  struct Other {
    RecordFile file;
    std::vector<std::size_t> rows; ///< of the particles
    bool used = false;
  };

  /// Takes a file that has all of the particles.
  void add(const fs::path& path) {
    const RecordField* const uid = main_.find("uid");
    if (uid == nullptr)
      return;
    RecordFile file(path);
    const RecordField* const other = file.find("uid");
    if (other == nullptr)
      return;
    std::unordered_map<std::uint64_t, std::size_t> known;
    for (std::size_t row = 0; row < file.rows(); ++row)
      known.emplace(file.integer(*other, row), row);
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < main_.rows(); ++row) {
      const auto found = known.find(main_.integer(*uid, row));
      if (found == known.end())
        return;
      rows.push_back(found->second);
    }
    others_.push_back({std::move(file), std::move(rows)});
  }

  RecordFile main_;
  std::vector<Other> others_;
};

/// The group of fields with poses: of a refinement, or else of every particle's most probable class.
std::vector<std::string> pose_groups(Dataset& data) {
  if (data.find("alignments3D/pose", 3))
    return {"alignments3D"};
  std::vector<std::string> groups;
  for (int i = 0; i < 1000; ++i) {
    const std::string group = "alignments_class_" + std::to_string(i);
    if (!data.find(group + "/pose", 3))
      break;
    groups.push_back(group);
  }
  return groups;
}

class Converter {
public:
  explicit Converter(const fs::path& path) : path_(path), data_(path), count_(data_.main().rows()) {
    particles_.name = "particles";
    particles_.version = optics_.version = 30001;
    optics_.name = "optics";
  }

  CryosparcParticles convert() {
    images();
    poses();
    contrast();
    groups();
    join();
    CryosparcParticles result;
    result.document.tables = {std::move(optics_), std::move(particles_)};
    result.passthroughs = data_.passthroughs();
    result.warnings = std::move(warnings_);
    return result;
  }

private:
  using Place = Dataset::Place;

  void warn(const std::string& what) { warnings_.push_back(path_.string() + ": " + what); }

  template <class Value>
  void column(const char* name, const Value& value) {
    std::vector<std::string> values;
    values.reserve(count_);
    for (std::size_t i = 0; i < count_; ++i)
      values.push_back(value(i));
    particles_.columns.emplace_back(name);
    columns_.push_back(std::move(values));
  }
  /// The columns as a table.
  void join() {
    particles_.values.reserve(count_ * columns_.size());
    for (std::size_t row = 0; row < count_; ++row)
      for (auto& values : columns_)
        particles_.values.push_back(std::move(values[row]));
    columns_.clear();
  }
  void numbers(const char* name, const Place& place, double factor = 1, std::size_t i = 0) {
    if (place)
      column(name, [&](std::size_t row) { return precise(factor * place.number(row, i)); });
  }
  bool any(const Place& place) const {
    for (std::size_t row = 0; place && row < count_; ++row)
      for (std::size_t i = 0; i < place.field->count; ++i)
        if (place.number(row, i) != 0)
          return true;
    return false;
  }

  /// Paths lie relative to the project's folder, which has those of jobs.
  std::string located(std::string name) {
    if (name.starts_with('>'))
      name.erase(0, 1);
    const auto known = located_.find(name);
    if (known != located_.end())
      return known->second;
    std::error_code ignored;
    const fs::path folder = path_.parent_path(), above = fs::path("..") / name;
    const bool in_project = fs::path(name).is_relative() && !fs::exists(folder / name, ignored) &&
                            fs::exists(folder / above, ignored);
    return located_[name] = in_project ? above.string() : name;
  }

  void images() {
    const Place path = data_.require("blob/path"), index = data_.require("blob/idx");
    column("rlnImageName", [&](std::size_t row) {
      const std::string number = std::to_string(index.integer(row) + 1);
      return std::string(number.size() < 6 ? 6 - number.size() : 0, '0') + number + "@" +
             located(path.text(row));
    });
    if (const Place micrograph = data_.find("location/micrograph_path"))
      column("rlnMicrographName", [&](std::size_t row) { return micrograph.text(row); });
    if (const Place filament = data_.find("filament/filament_uid"))
      column("rlnHelicalTubeID", [&](std::size_t row) { return std::to_string(filament.integer(row)); });
  }

  void poses() {
    auto groups = pose_groups(data_);
    constexpr const char* several = "alignments3D_multi"; // from version 4.5 on, of all classes
    const std::size_t classes_there = groups.empty() ? data_.values(several + std::string("/pose")) / 3 : 0;
    groups.resize(std::max(groups.size(), classes_there), several);
    if (groups.empty()) {
      warn("has no poses (alignments3D/pose)");
      return;
    }
    std::vector<Place> poses, shifts, pixels, classes, posteriors, splits;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::string& group = groups[i];
      const auto find = [&](const char* field, std::size_t count) {
        // What is the same for all classes is there once.
        const bool shared = data_.values(group + field) == count;
        return shared ? data_.find(group + field, count) : data_.find(group + field, count, classes_there, i);
      };
      poses.push_back(find("/pose", 3));
      shifts.push_back(find("/shift", 2));
      pixels.push_back(find("/psize_A", 1));
      classes.push_back(find("/class", 1));
      posteriors.push_back(find("/class_posterior", 1));
      splits.push_back(find("/split", 1));
    }
    std::vector<std::size_t> best(count_, 0);
    for (std::size_t row = 0; groups.size() > 1 && row < count_; ++row)
      for (std::size_t i = 1; i < groups.size(); ++i)
        if (posteriors[i] && posteriors[best[row]] &&
            posteriors[i].number(row) > posteriors[best[row]].number(row))
          best[row] = i;
    // The pose turns the volume to the image by the transpose of its rotation.
    std::vector<EulerAngles<double>> angles;
    for (std::size_t row = 0; row < count_; ++row) {
      const Place& pose = poses[best[row]];
      const auto matrix = rotation_matrix(
          RotationVector<double>{pose.number(row, 0), pose.number(row, 1), pose.number(row, 2)});
      angles.push_back(euler_angles(transpose(matrix)));
    }
    column("rlnAngleRot", [&](std::size_t row) { return precise(angles[row].rot); });
    column("rlnAngleTilt", [&](std::size_t row) { return precise(angles[row].tilt); });
    column("rlnAnglePsi", [&](std::size_t row) { return precise(angles[row].psi); });
    const Place pixel = data_.find("blob/psize_A");
    const auto angstrom = [&](std::size_t row, std::size_t i) {
      const Place& own = pixels[best[row]];
      const double size = own ? own.number(row) : pixel ? pixel.number(row) : 0;
      if (!(size > 0))
        data_.main().fail("row " + std::to_string(row + 1) +
                          ": shifts are in pixels, and no pixel size is stated (alignments3D/psize_A)");
      return precise(size * shifts[best[row]].number(row, i));
    };
    if (std::ranges::all_of(shifts, [](const Place& place) { return bool(place); })) {
      column("rlnOriginXAngst", [&](std::size_t row) { return angstrom(row, 0); });
      column("rlnOriginYAngst", [&](std::size_t row) { return angstrom(row, 1); });
    }
    if (groups.size() > 1)
      column("rlnClassNumber", [&](std::size_t row) { return std::to_string(best[row] + 1); });
    else if (classes[0])
      column("rlnClassNumber", [&](std::size_t row) { return std::to_string(classes[0].integer(row) + 1); });
    bool both[2] = {false, false};
    for (std::size_t row = 0; splits[0] && row < count_; ++row)
      if (const auto split = splits[best[row]] ? splits[best[row]].integer(row) : 0; split < 2)
        both[split] = true;
      else
        data_.main().fail("row " + std::to_string(row + 1) + ": expected 0 or 1 for " + groups[0] +
                          "/split, found " + std::to_string(split));
    if (both[0] && both[1])
      column("rlnRandomSubset",
             [&](std::size_t row) { return std::to_string(splits[best[row]].integer(row) + 1); });
  }

  void contrast() {
    constexpr double degrees = 180 / std::numbers::pi;
    numbers("rlnDefocusU", data_.find("ctf/df1_A"));
    numbers("rlnDefocusV", data_.find("ctf/df2_A"));
    numbers("rlnDefocusAngle", data_.find("ctf/df_angle_rad"), degrees);
    numbers("rlnPhaseShift", data_.find("ctf/phase_shift_rad"), degrees);
    if (const Place b_factor = data_.find("ctf/bfactor"); any(b_factor))
      numbers("rlnCtfBfactor", b_factor);
    // Images of another sign are those of a contrast transfer of another sign.
    if (const Place sign = data_.find("blob/sign")) {
      bool negative = false;
      for (std::size_t row = 0; row < count_; ++row)
        negative = negative || sign.number(row) < 0;
      if (negative)
        column("rlnCtfScalefactor", [&](std::size_t row) { return sign.number(row) < 0 ? "-1" : "1"; });
      if (negative && !data_.find("ctf/df1_A"))
        warn("has images of dark particles (blob/sign is -1), but no contrast transfer: taken as they are");
    }
    for (const auto& [name, count] : {std::pair("ctf/anisomag", 4), std::pair("ctf/trefoil_A", 2),
                                      std::pair("ctf/tetra_A", 4), std::pair("ctf/shift_A", 2)})
      if (any(data_.find(name, static_cast<std::size_t>(count))))
        warn(std::string(name) + " is not 0, and not used; cryoSPARC's own export, or csparc2star.py with "
                                 "RELION's CtfRefine, finds the like for RELION");
  }

  /// What all particles of an optics group have in common.
  void groups() {
    const Place group = data_.find("ctf/exp_group_id"), voltage = data_.find("ctf/accel_kv"),
                cs = data_.find("ctf/cs_mm"), contrast = data_.find("ctf/amp_contrast"),
                pixel = data_.find("blob/psize_A"), size = data_.find("blob/shape", 2),
                tilt = data_.find("ctf/tilt_A", 2);
    const bool tilted = any(tilt);
    std::vector<std::string> names{"rlnOpticsGroupName", "rlnOpticsGroup"};
    const auto name = [&](bool there, const char* text) {
      if (there)
        names.emplace_back(text);
    };
    name(bool(voltage), "rlnVoltage");
    name(bool(cs), "rlnSphericalAberration");
    name(bool(contrast), "rlnAmplitudeContrast");
    name(bool(pixel), "rlnImagePixelSize");
    name(bool(size), "rlnImageSize");
    names.emplace_back("rlnImageDimensionality");
    name(tilted, "rlnBeamTiltX");
    name(tilted, "rlnBeamTiltY");
    optics_.columns = names;
    std::map<std::vector<double>, std::size_t> known;
    std::vector<std::size_t> group_of;
    for (std::size_t row = 0; row < count_; ++row) {
      std::vector<double> key{group ? group.number(row) : 0};
      for (const auto* place : {&voltage, &cs, &contrast, &pixel, &size})
        if (*place)
          key.push_back(place->number(row));
      for (const std::size_t i : {0, 1})
        if (tilted)
          key.push_back(beam_tilt(tilt.number(row, i), cs ? cs.number(row) : 0));
      const auto [entry, is_new] = known.emplace(key, known.size() + 1);
      group_of.push_back(entry->second);
      if (!is_new)
        continue;
      const std::string number = std::to_string(entry->second);
      auto& values = optics_.values;
      values.insert(values.end(), {"opticsGroup" + number, number});
      const std::size_t before_tilt = key.size() - (tilted ? 2 : 0);
      for (std::size_t i = 1; i < before_tilt; ++i)
        values.push_back(precise(key[i]));
      values.emplace_back("2");
      for (std::size_t i = before_tilt; i < key.size(); ++i)
        values.push_back(precise(key[i]));
    }
    column("rlnOpticsGroup", [&](std::size_t row) { return std::to_string(group_of[row]); });
  }

  /// Milliradians: cryoSPARC states Cs times the tilt in Angstrom.
  double beam_tilt(double angstrom, double cs) const {
    if (angstrom == 0)
      return 0;
    if (!(cs > 0))
      data_.main().fail("states a beam tilt (ctf/tilt_A), but no spherical aberration (ctf/cs_mm)");
    return 1e3 * std::asin(std::clamp(angstrom / (cs * 1e7), -1.0, 1.0));
  }

  fs::path path_;
  Dataset data_;
  std::size_t count_;
  StarTable optics_, particles_;
  std::vector<std::vector<std::string>> columns_; ///< of the particles, [particles] each
  std::vector<std::string> warnings_;
  std::unordered_map<std::string, std::string> located_;
};

} // namespace

bool is_cryosparc(std::string_view beginning) {
  return beginning.starts_with(magic) || beginning.starts_with("\x93"
                                                               "CSDAT");
}

CryosparcParticles read_cryosparc(const fs::path& path) { return Converter(path).convert(); }

} // namespace Bracewell::Examples
