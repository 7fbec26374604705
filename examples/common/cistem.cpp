// SPDX-License-Identifier: MIT
#include "cistem.hpp"

#include "input_error.hpp"
#include "star_numbers.hpp"

#include <algorithm>
#include <array>
#include <numbers>
#include <string_view>

namespace Bracewell::Examples {
namespace {

/// A column of numbers, and that of RELION which it becomes.
struct Conversion {
  std::string_view from, to;
  double factor = 1;
  bool required = false;
};

constexpr std::array<Conversion, 13> conversions{
    {{"cisTEMAnglePhi", "rlnAngleRot", 1, true},
     {"cisTEMAngleTheta", "rlnAngleTilt", 1, true},
     {"cisTEMAnglePsi", "rlnAnglePsi", 1, true},
     {"cisTEMXShift", "rlnOriginXAngst", -1},
     {"cisTEMYShift", "rlnOriginYAngst", -1},
     {"cisTEMDefocus1", "rlnDefocusU"},
     {"cisTEMDefocus2", "rlnDefocusV"},
     {"cisTEMDefocusAngle", "rlnDefocusAngle"},
     {"cisTEMPhaseShift", "rlnPhaseShift", 180 / std::numbers::pi},
     {"cisTEMMicroscopeVoltagekV", "rlnVoltage"},
     {"cisTEMMicroscopeCsMM", "rlnSphericalAberration"},
     {"cisTEMAmplitudeContrast", "rlnAmplitudeContrast"},
     {"cisTEMPixelSize", "rlnImagePixelSize"}}};

class CistemReader {
public:
  CistemReader(const std::filesystem::path& path, const StarTable& table, std::vector<std::string>& warnings)
      : path_(path), table_(table), numbers_(path, table), warnings_(warnings) {}

  StarTable read() {
    const std::size_t stack = required("cisTEMStackFilename"), position = required("cisTEMPositionInStack");
    select();
    result_.name = "particles";
    result_.version = 30001;
    result_.columns.emplace_back("rlnImageName");
    for (const std::size_t row : rows_)
      cells_.push_back({std::to_string(numbers_.integer(row, position)) + "@" + table_.value(row, stack)});
    for (const auto& one : conversions)
      if (const auto column = table_.find(one.from)) {
        add(one.to, [&](std::size_t row) {
          return one.factor == 1 ? checked(row, *column) : fixed(one.factor * numbers_.real(row, *column));
        });
      } else if (one.required) {
        required(one.from);
      }
    if (const auto image = table_.find("cisTEMOriginalImageFilename"))
      add("rlnMicrographName", [&](std::size_t row) { return table_.value(row, *image); });
    subsets();
    name_unused();
    for (auto& row : cells_)
      std::ranges::move(row, std::back_inserter(result_.values));
    return std::move(result_);
  }

private:
  std::size_t required(std::string_view name) const {
    if (const auto column = table_.find(name))
      return *column;
    throw InputError(path_.string() + ": column " + std::string(name) + " is missing from table data_" +
                     table_.name + " of cisTEM's");
  }

  std::string checked(std::size_t row, std::size_t column) const {
    numbers_.real(row, column);
    return table_.value(row, column);
  }

  void warn(const std::string& what) { warnings_.push_back(path_.string() + ": " + what); }

  template <class Value>
  void add(std::string_view name, const Value& value) {
    result_.columns.emplace_back(name);
    for (std::size_t i = 0; i < rows_.size(); ++i)
      cells_[i].push_back(value(rows_[i]));
  }

  /// The rows that cisTEM takes.
  void select() {
    const auto active = table_.find("cisTEMImageActivity"), occupancy = table_.find("cisTEMOccupancy");
    for (std::size_t row = 0; row < table_.rows(); ++row)
      if (!(active && numbers_.real(row, *active) < 0) && !(occupancy && numbers_.real(row, *occupancy) == 0))
        rows_.push_back(row);
    if (const std::size_t left_out = table_.rows() - rows_.size(); left_out > 0)
      warn(std::to_string(left_out) + " of " + std::to_string(table_.rows()) +
           " particles are not active or have occupancy 0 (cisTEMImageActivity, cisTEMOccupancy): left out, "
           "and rows are "
           "counted without them");
  }

  /// Half sets, where there are two.
  void subsets() {
    const auto column = table_.find("cisTEMAssignedSubset");
    if (!column)
      return;
    const auto count = [&](std::int64_t subset) {
      return static_cast<std::size_t>(std::ranges::count_if(
          rows_, [&](std::size_t row) { return numbers_.integer(row, *column) == subset; }));
    };
    const std::size_t first = count(1), second = count(2);
    if (first > 0 && second > 0 && first + second == rows_.size())
      add("rlnRandomSubset", [&](std::size_t row) { return std::to_string(numbers_.integer(row, *column)); });
  }

  void name_unused() {
    const auto any_but = [&](std::string_view name, double usual) {
      const auto column = table_.find(name);
      return column && std::ranges::any_of(
                           rows_, [&](std::size_t row) { return numbers_.real(row, *column) != usual; });
    };
    if (any_but("cisTEMOccupancy", 100))
      warn("has occupancies other than 100 (cisTEMOccupancy): not used, every particle counts alike");
    if (any_but("cisTEMBeamTiltX", 0) || any_but("cisTEMBeamTiltY", 0) || any_but("cisTEMImageShiftX", 0) ||
        any_but("cisTEMImageShiftY", 0))
      warn("has beam tilts or image shifts (cisTEMBeamTiltX, cisTEMImageShiftX): not used; RELION's "
           "CtfRefine finds the like");
  }

  const std::filesystem::path& path_;
  const StarTable& table_;
  NumberReader numbers_;
  std::vector<std::string>& warnings_;
  std::vector<std::size_t> rows_; ///< of the table, those that are taken
  StarTable result_;
  std::vector<std::vector<std::string>> cells_; ///< [rows][columns]
};

} // namespace

bool is_cistem(const StarTable& table) {
  return !table.find("rlnImageName") && std::ranges::any_of(table.columns, [](const std::string& column) {
    return column.starts_with("cisTEM");
  });
}

StarTable read_cistem(const std::filesystem::path& path, const StarTable& table,
                      std::vector<std::string>& warnings) {
  return CistemReader(path, table, warnings).read();
}

} // namespace Bracewell::Examples
