// SPDX-License-Identifier: MIT
#include "cryoem/subtomograms.hpp"

#include "common/input_error.hpp"
#include "common/mrc.hpp"
#include "common/provenance.hpp"
#include "cryoem/pixel_sizes.hpp"

#include <bracewell/geometry/euler.hpp>
#include <bracewell/rfft/layout.hpp>

#include <algorithm>
#include <cmath>
#include <future>
#include <numbers>
#include <string>

namespace Bracewell::Examples {
namespace {

template <class View>
struct MultiplyBy {
  View spectrum;
  Subtomograms::Weight factor;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { spectrum.data()[i] *= factor.data()[i]; }
};

bool premultiplied(const Particles& particles, std::size_t row) {
  return particles.premultiplied.present() && particles.premultiplied[row] != 0;
}

std::string shape(std::int64_t x, std::int64_t y, std::int64_t z) {
  return std::to_string(x) + " x " + std::to_string(y) + " x " + std::to_string(z);
}

/// A cube of frequencies about its centre, or the half spectrum of one.
void check_measured(const Particles& particles, std::size_t row, const MrcReader& reader) {
  const std::int64_t n = particles.image_width;
  const auto& [x, y, z] = reader.header().size;
  if (y == n && z == n && (x == n || x == n / 2 + 1))
    return;
  const std::string what = particles.file.string() + ": row " + std::to_string(row + 1) +
                           ": rlnCtfImage: " + reader.path().string();
  if (x == n / 2 + 1 && y == n && z == 2 * n)
    throw InputError(
        what + " has multiplicities of samples behind its weights, which are not read: extract stacks of "
               "tilts (relion_tomo_subtomo --stack2d)");
  throw InputError(what + ": expected " + shape(n, n, n) + " or " + shape(n / 2 + 1, n, n) +
                   " values, as the subtomograms have them, found " + shape(x, y, z));
}

std::vector<float> read_cubic(const std::filesystem::path& path) { return MrcReader(path).read_volume(); }

} // namespace

Subtomograms::Subtomograms(const Space& space, const Particles& particles,
                           const std::optional<std::array<double, 2>>& tilts, bool subtract_background)
    : space_(space), particles_(particles), box_(static_cast<int>(particles.image_width)), tilts_(tilts),
      subtract_background_(subtract_background), forward_(space, {box_, box_, box_}),
      seen_(particles.count, LookAtImage{.deviation = -1}) {
  const std::string file = particles.file.string();
  if (particles.measured.empty() != tilts.has_value())
    throw InputError(
        file + (tilts
                    ? ": has rlnCtfImage, which says what of the subtomograms was measured: --tilt-range "
                      "does not go with it"
                    : ": has no rlnCtfImage, which says what of the subtomograms was measured: expected it, "
                      "or --tilt-range LEAST MOST of the tilts (-90 90: all directions)"));
  if (tilts && !((*tilts)[0] < (*tilts)[1] && (*tilts)[0] >= -90 && (*tilts)[1] <= 90))
    throw InputError("--tilt-range: expected two rising angles of -90 to 90 degrees, found " +
                     shortest((*tilts)[0]) + " and " + shortest((*tilts)[1]));
  for (std::size_t row = 0; row < particles.count; ++row)
    if (relative_pixel_size(particles, row) != 1)
      throw InputError(file + ": row " + std::to_string(row + 1) + ": has voxels of " +
                       shortest(particles.pixel_size[row]) + " Angstrom, row 1 of " +
                       shortest(particles.pixel_size[0]) + ": subtomograms of one pixel size are averaged");
  for (const auto& column : particles.magnification)
    if (column.present())
      throw InputError(file + ": has " + std::string(column.name) +
                       ", which is of images, not of subtomograms");
  std::optional<std::filesystem::path> last;
  for (std::size_t row = 0; row < particles.measured.size(); ++row)
    if (last != particles.measured[row]) {
      last = particles.measured[row];
      check_measured(particles, row, MrcReader(*last));
    }
  const auto n = static_cast<std::size_t>(box_);
  volume_ = allocate<Map>("subtomogram", 1, n, n, n);
  spectrum_ = allocate<Volume>("spectrum", 1, 1, n, n, n / 2 + 1);
  factor_ = allocate<Weight>("factor", 1, 1, n, n, n / 2 + 1);
  weight_ = allocate<Weight>("weight", 1, 1, n, n, n / 2 + 1);
  host_factor_ = Kokkos::create_mirror_view(factor_);
  host_weight_ = Kokkos::create_mirror_view(weight_);
  matrix_ = DeviceView<float** [3][3]>("Bracewell::examples::matrix", 1, 1);
  shift_ = DeviceView<float** [3]>("Bracewell::examples::shift", 1, 1);
}

double Subtomograms::bytes_needed(int box) { return 6 * sizeof(float) * std::pow(box, 3); }

void Subtomograms::look_at(std::size_t row, std::vector<float>& values) {
  LookAtImage& seen = seen_[row];
  double inside = 0, outside = 0, count = 0;
  float least = values[0], most = values[0];
  std::size_t i = 0;
  for (int z = 0; z < box_; ++z)
    for (int y = 0; y < box_; ++y)
      for (int x = 0; x < box_; ++x, ++i) {
        const double dx = x - box_ / 2, dy = y - box_ / 2, dz = z - box_ / 2;
        const bool within = 4 * (dx * dx + dy * dy + dz * dz) < double(box_) * box_;
        (within ? inside : outside) += values[i];
        count += within;
        least = std::min(least, values[i]);
        most = std::max(most, values[i]);
        seen.mixed += values[i] * double(i % 1021 + 1);
        seen.squares += double(values[i]) * values[i];
      }
  if (const double largest = std::max(std::abs(double(least)), std::abs(double(most)));
      largest > largest_value)
    throw InputError(particles_.file.string() + ": row " + std::to_string(row + 1) +
                     ": its subtomogram has values of " + shortest(largest) + ", expected " +
                     shortest(largest_value) + " at most: damaged, or of another type than its header says?");
  const auto size = double(values.size());
  seen.background = outside / std::max(1.0, size - count);
  seen.inside = inside / std::max(1.0, count);
  const double mean = (inside + outside) / size;
  seen.deviation = least == most ? 0 : std::sqrt(std::max(0.0, seen.squares / size - mean * mean));
  if (subtract_background_)
    for (float& value : values)
      value -= static_cast<float>(seen.background);
}

/// Of rlnCtfImage: RELION has the frequency k of a whole cube at its centre minus k.
void Subtomograms::read_measured(std::size_t row) {
  const auto& path = particles_.measured[row];
  const std::vector<float> values = read_cubic(path);
  const int n = box_, columns = n / 2 + 1;
  const bool whole = values.size() == static_cast<std::size_t>(n) * n * n;
  const bool squared = premultiplied(particles_, row);
  std::size_t to = 0;
  for (int z = 0; z < n; ++z)
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < columns; ++x, ++to) {
        const auto at = [n](int k) { return static_cast<std::size_t>(((n / 2 - k) % n + n) % n); };
        const int kz = HalfSpectrumLayout<3>::frequency(z, n), ky = HalfSpectrumLayout<3>::frequency(y, n);
        const float value =
            values[whole
                       ? (at(kz) * static_cast<std::size_t>(n) + at(ky)) * static_cast<std::size_t>(n) + at(x)
                       : to];
        if (std::abs(double(value)) > 1e6 || (squared && value < 0))
          throw InputError(path.string() + ": expected " +
                           (squared ? "CTF^2 of subtomograms that were multiplied by their CTF, from 0 on"
                                    : "the CTF of subtomograms, or what of them was measured") +
                           ", found " + shortest(value));
        host_factor_.data()[to] = squared ? 1 : value;
        host_weight_.data()[to] = squared ? value : value * value;
      }
}

/// A projection after a turn by t about y has the frequencies (cos t, sin t) of x and z.
void Subtomograms::measure_tilts() {
  const int n = box_;
  std::size_t to = 0;
  for (int z = 0; z < n; ++z)
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n / 2 + 1; ++x, ++to) {
        const double kz = HalfSpectrumLayout<3>::frequency(z, n);
        const double tilt = std::atan2(kz, x) * 180 / std::numbers::pi; // x is 0 or more
        const auto within = [&](double angle) { return angle >= (*tilts_)[0] && angle <= (*tilts_)[1]; };
        const bool measured =
            (x == 0 && kz == 0) || within(tilt) || (x == 0 && within(-tilt)); // k and -k are one
        host_factor_.data()[to] = host_weight_.data()[to] = measured ? 1 : 0;
      }
}

void Subtomograms::set_measured(std::size_t row) {
  const std::filesystem::path wanted = particles_.measured.empty() ? "" : particles_.measured[row];
  if (measured_ && *measured_ == wanted &&
      (row == 0 || premultiplied(particles_, row) == premultiplied(particles_, row - 1)))
    return;
  particles_.measured.empty() ? measure_tilts() : read_measured(row);
  measured_ = wanted;
  copy_values(space_, factor_, host_factor_);
  copy_values(space_, weight_, host_weight_);
}

void Subtomograms::set_pose(std::size_t row) {
  const auto matrix =
      projection_matrix(EulerAngles<double>{particles_.rot[row], particles_.tilt[row], particles_.psi[row]});
  const auto host_matrix = Kokkos::create_mirror_view(matrix_);
  const auto host_shift = Kokkos::create_mirror_view(shift_);
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 3; ++c)
      host_matrix(0, 0, r, c) = static_cast<float>(matrix(r, c));
  int axis = 0;
  for (const auto* origin : {&particles_.origin_z, &particles_.origin_y, &particles_.origin_x})
    host_shift(0, 0, axis++) = static_cast<float>(box_ / 2 - (origin->present() ? (*origin)[row] : 0));
  copy_values(space_, matrix_, host_matrix);
  copy_values(space_, shift_, host_shift);
  space_.fence("Bracewell::examples::subtomogram_pose"); // the mirrors go
}

void Subtomograms::for_each(std::span<const std::size_t> rows, const Work& work) {
  const auto read = [&](std::size_t i) {
    return std::async(std::launch::async,
                      [&, i] { return read_cubic(particles_.stacks[particles_.stack[rows[i]]].path); });
  };
  std::future<std::vector<float>> next;
  if (!rows.empty())
    next = read(0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<float> values = next.get();
    if (i + 1 < rows.size())
      next = read(i + 1);
    const std::size_t row = rows[i];
    look_at(row, values);
    if (seen_[row].deviation == 0)
      continue;
    const auto n = static_cast<std::size_t>(box_);
    copy_values(
        space_, volume_,
        Kokkos::View<const float****, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
            values.data(), 1, n, n, n));
    set_measured(row);
    set_pose(row);
    const MapSpectrum spectrum(spectrum_.data(), 1, n, n, n / 2 + 1);
    forward_.execute(space_, volume_, spectrum);
    Kokkos::parallel_for("Bracewell::examples::measured",
                         Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                             space_, 0, static_cast<std::int64_t>(spectrum.size())),
                         MultiplyBy<MapSpectrum>{spectrum, factor_});
    work(row, spectrum_, weight_, {matrix_, shift_});
    space_.fence("Bracewell::examples::subtomogram");
  }
}

} // namespace Bracewell::Examples
