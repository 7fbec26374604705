// SPDX-License-Identifier: MIT
#include "ranges.hpp"

#include "input_error.hpp"
#include "provenance.hpp"

#include <algorithm>
#include <cmath>

namespace Bracewell::Examples {
namespace {

struct Range {
  std::string_view name;
  double least, most;
  const char* unit;
};

constexpr Range ranges[] = {
    {"rlnSphericalAberration", -1e5, 1e5, "mm"},
    {"rlnAmplitudeContrast", -1, 1, ""},
    {"rlnDefocusU", -1e7, 1e7, "Angstrom"},
    {"rlnDefocusV", -1e7, 1e7, "Angstrom"},
    {"rlnDefocusAngle", -1e6, 1e6, "degrees"},
    {"rlnPhaseShift", -1e6, 1e6, "degrees"},
    {"rlnCtfBfactor", -1e6, 1e6, "square Angstrom"},
    {"rlnCtfScalefactor", -1e6, 1e6, ""},
    {"rlnAngleRot", -1e6, 1e6, "degrees"},
    {"rlnAngleTilt", -1e6, 1e6, "degrees"},
    {"rlnAnglePsi", -1e6, 1e6, "degrees"},
    {"rlnOriginX", -1e6, 1e6, "pixels"},
    {"rlnOriginY", -1e6, 1e6, "pixels"},
    {"rlnOriginZ", -1e6, 1e6, "pixels"},
    {"rlnOriginXAngst", -1e6, 1e6, "Angstrom"},
    {"rlnOriginYAngst", -1e6, 1e6, "Angstrom"},
    {"rlnOriginZAngst", -1e6, 1e6, "Angstrom"},
    {"rlnBeamTiltX", -1e4, 1e4, "mrad"},
    {"rlnBeamTiltY", -1e4, 1e4, "mrad"},
    {"rlnOddZernike", -1e6, 1e6, "rad"},
    {"rlnEvenZernike", -1e6, 1e6, "rad"},
    {"rlnNormCorrection", 1e-6, 1e6, ""},
    {"bracewell-project --noise", 1e-9, 1e12, ""},
    {"bracewell-reconstruct --wiener", 0, 1e12, ""},
    {"bracewell-tomography --hardening", -1e3, 1e3, ""},
    {"bracewell-tomography --noise", 1e-9, 1e6, ""},
    {"bracewell-tomography --zingers", 1e-6, 1e6, ""},
    {"bracewell-tomography --energy", 1e-2, 1e5, "keV"},
    {"bracewell-tomography --distance", 1e-3, 1e8, "mm"},
    {"bracewell-tomography --pixel-size", 1e-4, 1e6, "micrometres"},
    {"bracewell-tomography --delta-beta", 1e-3, 1e8, ""},
    {"bracewell-tomography --regularisation", 1e-12, 1e6, ""},
    {"bracewell-tomography --first-angle", -1e6, 1e6, "degrees"},
    {"bracewell-match --defocus", -1e7, 1e7, "Angstrom"},
    {"bracewell-match --defocus-search", 0, 1e6, "Angstrom"},
    {"bracewell-match --cs", -1e5, 1e5, "mm"},
    {"bracewell-match --phase-shift", -1e6, 1e6, "degrees"},
    {"bracewell-match --pixel-size", 1e-2, 1e4, "Angstrom"},
    {"bracewell-match --voxel-size", 1e-2, 1e4, "Angstrom"},
    {"bracewell-match --resolution", 1e-1, 1e5, "Angstrom"},
    {"bracewell-match --false-positives", 1e-9, 1e12, ""},
    {"bracewell-match --distance", 0, 1e6, "Angstrom"},
    {"bracewell-ptychography --wavelength", 1e-14, 1e-3, "m"},
    {"bracewell-ptychography --distance", 1e-9, 1e6, "m"},
    {"bracewell-ptychography --detector-pixel", 1e-9, 1, "m"},
    {"bracewell-ptychography --defocus", -1e12, 1e12, "nm"},
};

} // namespace

std::string beyond_range(std::string_view name, double value) {
  const auto* const range = std::ranges::find(ranges, name, &Range::name);
  if (range == std::end(ranges) || (value >= range->least && value <= range->most))
    return {};
  return "expected " + shortest(range->least) + " to " + shortest(range->most) +
         (*range->unit != '\0' ? std::string(" ") + range->unit : std::string());
}

void require_sensible(const std::filesystem::path& output, double least, double most, bool finite,
                      const std::string& likeliest) {
  constexpr double largest = 1e15;
  std::string wrong;
  if (!finite)
    wrong = "values that are not finite";
  else if (std::max(std::abs(least), std::abs(most)) > largest)
    wrong = "values from " + shortest(least) + " to " + shortest(most);
  else if (least == most)
    wrong = "the value " + shortest(least) + " everywhere";
  if (!wrong.empty())
    throw InputError(output.string() + ": is not written, as it would have " + wrong + "; look at " +
                     likeliest);
}

} // namespace Bracewell::Examples
