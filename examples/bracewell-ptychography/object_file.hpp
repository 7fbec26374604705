// SPDX-License-Identifier: MIT
#pragma once

#include "common/hdf5.hpp"

#include <array>
#include <complex>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// A setting of a run, for the record.
struct Setting {
  std::string name;
  double value;
};

/// What a reconstruction finds, and what a simulation starts from.
struct Reconstruction {
  std::int64_t rows = 0, columns = 0;
  int slices = 1;
  std::vector<float> amplitude, phase; ///< [slices, rows, columns], phase in radians
  std::int64_t every = 1; ///< of which pixels of an object, of either axis, these are: less for a picture
  int modes = 0, probe_size = 0;
  std::vector<std::complex<float>> probe; ///< [modes, m, m]
  std::vector<double> powers = {};        ///< of orthogonal modes, their sum is 1; none of a single one
  std::vector<std::array<double, 2>> positions = {};     ///< [N, 2], object pixels
  std::vector<double> losses = {};                       ///< per pass over the patterns
  std::optional<std::array<double, 5>> aberrations = {}; ///< nm, mm, nm, rad, 1; see ProbeParameter
  double pixel_size = 0;                                 ///< metres; 0: not known
  std::vector<double> origin =
      {}; ///< row and column of the first pixel in the stage's frame, metres, or none
  /// Of orthogonal modes [C, m, m] of the probe's power, and coefficients [N, C] with means of zero; or none.
  std::vector<std::complex<float>> relaxation = {}, coefficients = {};
  std::vector<float> factors = {}; ///< [N], of intensities, or none
  std::vector<float> background =
      {}; ///< [n, n], counts, zero frequency at [0, 0], not a number where masked, or none
  std::vector<double> pattern_errors = {}; ///< [N], loss of each pattern at the end, or none
  std::vector<Setting> settings = {};
  std::string provenance = {};

  std::complex<double> object(std::size_t i) const { return std::polar<double>(amplitude[i], phase[i]); }
  /// The same with one of the slices alone, and with their product in place of them.
  Reconstruction slice(int which) const;
  Reconstruction projection() const;
};

/// HDF5: `/object/amplitude`, `/object/phase` (radians) [rows, columns], or of several slices [slices, rows, columns], `/probe` complex [modes, m, m], `/mode_powers` [modes],
/// `/positions` [N, 2] (row, column), `/loss` [passes], `/aberrations` [5], `/pixel_size` and `/origin` [2] (metres), `/pattern_errors` [N],
/// `/relaxation/modes` complex [C, m, m] and `/relaxation/coefficients` complex [N, C], `/factors` [N], `/background` [n, n], attributes of
/// `/settings`, attribute `provenance`. The file appears whole or not at all.
void write_reconstruction(const std::filesystem::path& path, const Reconstruction& result);
/// The same of all but the object.
void write_all_but_object(Hdf5Writer& file, const Reconstruction& result);

/// Object, probe, positions, relaxation, factors and background of such a file. Throws InputError for what is missing or malformed.
Reconstruction read_reconstruction(const std::filesystem::path& path);

/// sum_j |p(r - y_j)|^2 of all modes, at the pixels [rows, columns].
std::vector<double> illumination(const Reconstruction& result);

} // namespace Bracewell::Examples
