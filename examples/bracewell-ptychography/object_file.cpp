// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/object_file.hpp"

#include "common/checkpoint.hpp"

#include <algorithm>
#include <cmath>

namespace Bracewell::Examples {

void write_reconstruction(const std::filesystem::path& path, const Reconstruction& result) {
  Hdf5Writer file(path);
  Hdf5Shape shape{result.rows, result.columns};
  if (result.slices > 1)
    shape.insert(shape.begin(), result.slices);
  file.write<float>("/object/amplitude", shape, result.amplitude);
  file.write<float>("/object/phase", shape, result.phase);
  write_all_but_object(file, result);
  file.commit();
}

void write_all_but_object(Hdf5Writer& file, const Reconstruction& result) {
  file.write<std::complex<float>>("/probe", {result.modes, result.probe_size, result.probe_size},
                                  result.probe);
  std::vector<double> positions;
  for (const auto& position : result.positions)
    positions.insert(positions.end(), position.begin(), position.end());
  file.write<double>("/positions", {static_cast<std::int64_t>(result.positions.size()), 2}, positions);
  if (!result.powers.empty())
    file.write<double>("/mode_powers", {std::ssize(result.powers)}, result.powers);
  if (!result.losses.empty())
    file.write<double>("/loss", {static_cast<std::int64_t>(result.losses.size())}, result.losses);
  if (result.aberrations)
    file.write<double>("/aberrations", {5}, *result.aberrations);
  if (result.pixel_size > 0)
    file.write_scalar("/pixel_size", result.pixel_size);
  if (!result.origin.empty())
    file.write<double>("/origin", {2}, result.origin);
  if (const std::int64_t m = result.probe_size, count = std::ssize(result.positions);
      !result.relaxation.empty()) {
    const std::int64_t modes = std::ssize(result.relaxation) / (m * m);
    file.write<std::complex<float>>("/relaxation/modes", {modes, m, m}, result.relaxation);
    file.write<std::complex<float>>("/relaxation/coefficients", {count, modes}, result.coefficients);
  }
  if (!result.factors.empty())
    file.write<float>("/factors", {std::ssize(result.factors)}, result.factors);
  if (!result.background.empty()) {
    const auto n = std::lround(std::sqrt(double(result.background.size())));
    file.write<float>("/background", {n, n}, result.background);
  }
  if (!result.pattern_errors.empty())
    file.write<double>("/pattern_errors", {std::ssize(result.pattern_errors)}, result.pattern_errors);
  file.create_group("/settings");
  for (const auto& setting : result.settings)
    file.write_attribute("/settings", setting.name, setting.value);
  if (!result.provenance.empty())
    file.write_attribute("/", "provenance", result.provenance);
}

Reconstruction read_reconstruction(const std::filesystem::path& path) {
  const Hdf5Reader file(path);
  Reconstruction result;
  Hdf5Shape shape = file.shape("/object/amplitude");
  const Hdf5Shape probe = file.shape("/probe");
  if ((shape.size() != 2 && shape.size() != 3) || hdf5_elements(shape) == 0)
    file.fail("/object/amplitude",
              "expected [rows, columns] or [slices, rows, columns], found shape " + hdf5_text(shape));
  if (file.shape("/object/phase") != shape)
    file.fail("/object/phase", "expected shape " + hdf5_text(shape) + " as the amplitude, found " +
                                   hdf5_text(file.shape("/object/phase")));
  if (probe.size() != 3 || probe[1] != probe[2] || hdf5_elements(probe) == 0)
    file.fail("/probe", "expected [modes, m, m], found shape " + hdf5_text(probe));
  if (shape.size() == 3) {
    result.slices = static_cast<int>(shape[0]);
    shape.erase(shape.begin());
  }
  result.rows = shape[0], result.columns = shape[1];
  result.modes = static_cast<int>(probe[0]), result.probe_size = static_cast<int>(probe[1]);
  result.amplitude = file.read<float>("/object/amplitude");
  result.phase = file.read<float>("/object/phase");
  result.probe = file.read<std::complex<float>>("/probe");
  const Hdf5Shape scan = file.shape("/positions");
  if (scan.size() != 2 || scan[1] != 2)
    file.fail("/positions", "expected [N, 2], found shape " + hdf5_text(scan));
  const auto positions = file.read<double>("/positions");
  for (std::size_t i = 0; i < positions.size(); i += 2) {
    result.positions.push_back({positions[i], positions[i + 1]});
    if (!(positions[i] >= 0 && std::round(positions[i]) + double(probe[1]) <= double(shape[0]) &&
          positions[i + 1] >= 0 && std::round(positions[i + 1]) + double(probe[1]) <= double(shape[1])))
      file.fail("/positions", "position " + std::to_string(i / 2) + " lies outside the object");
  }
  const std::int64_t count = std::ssize(result.positions), m = result.probe_size;
  if (file.has_dataset("/relaxation/modes")) {
    const Hdf5Shape modes = file.shape("/relaxation/modes"), of = file.shape("/relaxation/coefficients");
    if (modes.size() != 3 || modes[1] != m || modes[2] != m || of != Hdf5Shape{count, modes[0]})
      file.fail("/relaxation/modes", "expected [C, " + std::to_string(m) + ", " + std::to_string(m) +
                                         "] with coefficients [" + std::to_string(count) +
                                         ", C], found shapes " + hdf5_text(modes) + " and " + hdf5_text(of));
    result.relaxation = file.read<std::complex<float>>("/relaxation/modes");
    result.coefficients = file.read<std::complex<float>>("/relaxation/coefficients");
  }
  if (file.has_dataset("/factors"))
    result.factors = read_exactly<float>(file, "/factors", result.positions.size());
  if (file.has_dataset("/background"))
    result.background = file.read<float>("/background");
  return result;
}

Reconstruction Reconstruction::slice(int which) const {
  Reconstruction result = *this;
  const auto pixels = std::ptrdiff_t(rows * columns);
  for (auto* const values : {&result.amplitude, &result.phase})
    *values = std::vector<float>(values->begin() + which * pixels, values->begin() + (which + 1) * pixels);
  result.slices = 1;
  return result;
}

Reconstruction Reconstruction::projection() const {
  Reconstruction result = slice(0);
  const auto pixels = static_cast<std::size_t>(rows * columns);
  for (std::size_t i = pixels; i < amplitude.size(); ++i) {
    result.amplitude[i % pixels] *= amplitude[i];
    result.phase[i % pixels] += phase[i];
  }
  return result;
}

std::vector<double> illumination(const Reconstruction& result) {
  const auto m = static_cast<std::size_t>(result.probe_size),
             columns = static_cast<std::size_t>(result.columns),
             every = static_cast<std::size_t>(result.every);
  std::vector<double> energy(m * m), sum(static_cast<std::size_t>(result.rows * result.columns));
  for (std::size_t i = 0; i < result.probe.size(); ++i)
    energy[i % (m * m)] += std::norm(result.probe[i]);
  for (const auto& [row, column] : result.positions) {
    const auto top = static_cast<std::size_t>(std::lround(row)),
               left = static_cast<std::size_t>(std::lround(column));
    for (std::size_t y = (top + every - 1) / every; y * every < top + m; ++y)
      for (std::size_t x = (left + every - 1) / every; x * every < left + m; ++x)
        sum[y * columns + x] += energy[(y * every - top) * m + x * every - left];
  }
  return sum;
}

} // namespace Bracewell::Examples
