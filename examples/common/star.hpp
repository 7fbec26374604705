// SPDX-License-Identifier: MIT
#pragma once

#include "stored_type.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// STAR files as RELION writes them: the tables as text, and the particles in them as numbers.
namespace Bracewell::Examples {

/// One table (data block) of a STAR file: rows of text values.
struct StarTable {
  std::string name;                 ///< "particles" for data_particles; may be empty
  int version = 0;                  ///< RELION's "# version" comment before the table; 0 where there is none
  bool loop = true;                 ///< false: one row, written as name-value pairs
  std::vector<std::string> columns; ///< names without the leading underscore
  std::vector<std::string> values;  ///< [rows, columns], quotes removed

  std::size_t rows() const { return columns.empty() ? 0 : values.size() / columns.size(); }
  /// Index of a column, absent where the table lacks it.
  std::optional<std::size_t> find(std::string_view column) const;
  const std::string& value(std::size_t row, std::size_t column) const {
    return values[row * columns.size() + column];
  }
  /// Replaces the values of a column, or adds it as the last one. `column_values` [rows].
  void set_column(std::string_view column, std::vector<std::string> column_values);
  /// Removes those of the columns that are there.
  void remove_columns(std::span<const std::string_view> names);
};

/// A whole STAR file, in the file's order. Comments other than RELION's version are not kept.
struct StarDocument {
  std::vector<StarTable> tables;

  StarTable* find(std::string_view name);
  const StarTable* find(std::string_view name) const;
};

/// Throws InputError where the file cannot be read or is not a STAR file, with the row where a row has the
/// wrong number of values. Rows are lines, as for RELION.
StarDocument read_star(const std::filesystem::path& path);

/// Writes all tables, in RELION's layout, after `comments`, one per line; the file appears whole or not at
/// all.
void write_star(const std::filesystem::path& path, const StarDocument& document,
                std::span<const std::string> comments = {});

/// A number as text with `decimals` digits after the point, for StarTable::set_column.
std::string fixed(double value, int decimals = 6);

/// One column of numbers, one per particle; it may be absent.
template <class Value>
struct ParticleColumn {
  std::string_view name;     ///< as in the STAR file
  std::vector<Value> values; ///< [particles]; empty: the column is absent

  bool present() const { return !values.empty(); }
  const Value& operator[](std::size_t particle) const { return values[particle]; }
};

/// An image stack that particles lie in.
struct ParticleStack {
  std::filesystem::path path;
  std::int64_t images = 0;
  std::optional<double> pixel_size; ///< Angstrom, from the header
  StoredFormat format;
  std::int64_t width = 0, height = 0; ///< pixels
};

/// What a detector keeps of the amplitude at a frequency (modulation transfer function).
struct DetectorResponse {
  std::filesystem::path file;
  std::vector<double> frequencies; ///< 1/Angstrom, rising
  std::vector<double> values;

  /// By linear interpolation; beyond the ends it is the value there.
  double at(double frequency) const;
};

/// The sign of B factors (rlnCtfBfactor): exp(-B k^2 / 4) as RELION has it, or exp(B k^2 / 4) as Warp and M do.
enum class BFactorSign { Automatic, Relion, Warp }; ///< Automatic: RELION's where any is above 0

/// The particles of a STAR file. A value missing from the particle table is taken from the optics table,
/// joined by rlnOpticsGroup.
struct Particles {
  std::filesystem::path file;
  StarDocument document;
  std::string table; ///< name of the particle table in `document`
  std::size_t count = 0;
  std::vector<std::string> warnings;               ///< sentences that begin with the file concerned
  std::vector<std::filesystem::path> passthroughs; ///< further files that columns were taken from
  std::size_t in_tilt_series =
      0; ///< particles whose tilts the images are; 0: every image has a particle of its own
  bool subtomograms = false;                   ///< images are cubic volumes, one in each stack
  std::vector<std::filesystem::path> measured; ///< [particles] with subtomograms: rlnCtfImage; empty: absent

  // Images; empty where they were not asked for.
  std::vector<ParticleStack> stacks;
  std::vector<std::size_t> stack;  ///< [particles] index into `stacks`
  std::vector<std::int64_t> image; ///< [particles] index in the stack, from 0
  /// Pixels, of the first image. Square ones of another box stand for images of this box with the same field of view: their
  /// pixel sizes and origins are those of such images.
  std::int64_t image_width = 0;
  std::int64_t image_height = 0;

  // Pose: degrees, and pixels (converted from Angstrom where the file has those).
  ParticleColumn<double> rot{"rlnAngleRot", {}};
  ParticleColumn<double> tilt{"rlnAngleTilt", {}};
  ParticleColumn<double> psi{"rlnAnglePsi", {}};
  ParticleColumn<double> origin_x{"rlnOriginXAngst", {}};
  ParticleColumn<double> origin_y{"rlnOriginYAngst", {}};
  ParticleColumn<double> origin_z{"rlnOriginZAngst", {}}; ///< of subtomograms
  // Contrast transfer: Angstrom, degrees, kV, mm, Angstrom^2.
  ParticleColumn<double> defocus_u{"rlnDefocusU", {}};
  ParticleColumn<double> defocus_v{"rlnDefocusV", {}};
  ParticleColumn<double> defocus_angle{"rlnDefocusAngle", {}};
  ParticleColumn<double> phase_shift{"rlnPhaseShift", {}};
  ParticleColumn<double> voltage{"rlnVoltage", {}};
  ParticleColumn<double> spherical_aberration{"rlnSphericalAberration", {}};
  ParticleColumn<double> amplitude_contrast{"rlnAmplitudeContrast", {}};
  ParticleColumn<double> ctf_b_factor{"rlnCtfBfactor", {}}; ///< in RELION's sign
  ParticleColumn<double> ctf_scale{"rlnCtfScalefactor", {}};
  ParticleColumn<double> exposure{"rlnMicrographPreExposure", {}}; ///< e/A^2 before the image was taken
  /// Angstrom; from rlnImagePixelSize, or 10^4 rlnDetectorPixelSize / rlnMagnification.
  ParticleColumn<double> pixel_size{"rlnImagePixelSize", {}};
  /// Not 0: the images were multiplied by their contrast transfer.
  ParticleColumn<std::int64_t> premultiplied{"rlnCtfDataAreCtfPremultiplied", {}};
  /// Milliradians.
  ParticleColumn<double> beam_tilt_x{"rlnBeamTiltX", {}};
  ParticleColumn<double> beam_tilt_y{"rlnBeamTiltY", {}};
  /// Coefficients of Zernike polynomials of the frequency in 1 / Angstrom, radians.
  ParticleColumn<std::vector<double>> odd_zernike{"rlnOddZernike", {}};
  ParticleColumn<std::vector<double>> even_zernike{"rlnEvenZernike", {}};
  /// Maps frequencies of the image to those of the undistorted one, (x, y): rows 0 and 1.
  std::array<ParticleColumn<double>, 4> magnification{
      {{"rlnMagMat00", {}}, {"rlnMagMat01", {}}, {"rlnMagMat10", {}}, {"rlnMagMat11", {}}}};
  std::vector<DetectorResponse> detectors;
  ParticleColumn<std::int64_t> detector{"rlnMtfFileName", {}}; ///< index in `detectors`; -1: none
  ParticleColumn<std::int64_t> class_number{"rlnClassNumber", {}};
  ParticleColumn<std::int64_t> random_subset{"rlnRandomSubset", {}};
  ParticleColumn<std::int64_t> optics_group{"rlnOpticsGroup", {}};

  /// The table of `document` that the particles are in, to replace columns before it is written again.
  StarTable& particle_table() { return *document.find(table); }
  /// The values of one of the columns above; throws InputError "FILE: column rlnVoltage is missing ..." where
  /// it is absent.
  template <class Value>
  const std::vector<Value>& require(const ParticleColumn<Value>& column) const {
    if (!column.present())
      fail_missing(column.name);
    return column.values;
  }

private:
  [[noreturn]] void fail_missing(std::string_view column) const;
};

struct ParticleOptions {
  bool images = true;                            ///< find the image stacks and open their headers
  std::optional<double> pixel_size = {};         ///< Angstrom; instead of what the file says
  std::optional<std::int64_t> class_number = {}; ///< only the particles of this class
  BFactorSign b_factor_sign = BFactorSign::Automatic;
  bool tilt_series =
      false; ///< read particles in tilt series as the images of their tilts, instead of refusing them
  /// Read subtomograms instead of refusing them: rlnImageDimensionality is 3, or there is rlnCtfImage and names are those of
  /// volumes.
  bool subtomograms = false;
};

/// The names of the images that lie relative to the folder of the particles' file become names relative to that
/// of another file, which the document is to be written to.
void move_image_names(Particles& particles, const std::filesystem::path& file);

/// Enters the pixel size of all particles, instead of all that the document says about it.
void set_pixel_size(Particles& particles, double pixel_size);

/// Reads the particles of cryoSPARC (.cs; see read_cryosparc), of RELION 3.1 and later (data_optics and data_particles, in any order), of older
/// files (one table), and those in tilt series (see read_tilt_series). Stacks are looked for relative to the folder of the STAR file, then to the current
/// folder. Throws InputError with file, row (of the table, from 1) and column for whatever is wrong: no
/// particles, a value that is not a finite number, an image outside its stack, a stack that is missing,
/// images of different sizes that are not square, no particle of the class, images that are no images. Absent columns are no error here: see Particles::require.
Particles read_particles(const std::filesystem::path& path, const ParticleOptions& options = {});

} // namespace Bracewell::Examples
