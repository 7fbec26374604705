// SPDX-License-Identifier: MIT
#include "cryoem/findings.hpp"

#include "common/input_error.hpp"
#include "common/median.hpp"
#include "common/provenance.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace Bracewell::Examples {
namespace {

std::string range_text(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return least == most ? shortest(least) : shortest(least) + " to " + shortest(most);
}

template <class Condition>
std::vector<std::size_t> rows_where(std::size_t count, const Condition& condition) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < count; ++row)
    if (condition(row))
      rows.push_back(row);
  return rows;
}

double magnification_entry(const Particles& particles, std::size_t i, std::size_t row) {
  const auto& column = particles.magnification[i];
  return column.present() ? column[row] : i == 0 || i == 3 ? 1 : 0;
}

/// "row 7 repeats row 2", of rows that are the same.
std::string pair_text(std::size_t first, std::size_t second) {
  return "row " + std::to_string(second + 1) + " repeats row " + std::to_string(first + 1);
}

/// Rows that repeat an earlier one, and of those the ones that are in the other half set.
struct Repeats {
  std::size_t count = 0, crossing = 0;
  std::pair<std::size_t, std::size_t> example{}, crossing_example{};

  void add(std::size_t first, std::size_t second, bool crosses) {
    if (count++ == 0)
      example = {first, second};
    if (crosses && crossing++ == 0)
      crossing_example = {first, second};
  }
  std::string text() const {
    const auto& [first, second] = crossing > 0 ? crossing_example : example;
    return std::to_string(count) + (count == 1 ? " image" : " images") + " twice, " +
           std::to_string(crossing) + " of them in both half sets (" + pair_text(first, second) + ")" +
           (crossing > 0
                ? ": half maps agree for that reason, too, and their resolution is too good; keep one "
                  "row of each"
                : ": they count twice; keep one row of each");
  }
};

/// The largest magnitudes of rot, tilt and psi; nothing where one is absent.
std::vector<double> largest_angles(const Particles& particles) {
  std::vector<double> result;
  for (const auto* column : {&particles.rot, &particles.tilt, &particles.psi}) {
    if (!column->present())
      return {};
    double most = 0;
    for (const double angle : column->values)
      most = std::max(most, std::abs(angle));
    result.push_back(most);
  }
  return result;
}

bool same_pose(const Particles& particles, std::size_t a, std::size_t b) {
  for (const auto* column : {&particles.rot, &particles.tilt, &particles.psi})
    if (column->present() && (*column)[a] != (*column)[b])
      return false;
  return true;
}

/// Those whose origin is more than half an image away from its middle.
std::vector<std::size_t> rows_beyond_images(const Particles& particles) {
  const auto is_beyond = [](const ParticleColumn<double>& origin, std::size_t row, std::int64_t side) {
    return origin.present() && 2 * std::abs(origin[row]) > double(side);
  };
  return rows_where(particles.count, [&](std::size_t row) {
    return is_beyond(particles.origin_x, row, particles.image_width) ||
           is_beyond(particles.origin_y, row, particles.image_height);
  });
}

/// Throws InputError for one that is singular, or far from 1.
void check_magnifications(const Particles& particles) {
  const std::string file = particles.file.string() + ": ";
  for (std::size_t row = 0; row < particles.count; ++row) {
    const auto m = [&](std::size_t i) { return magnification_entry(particles, i, row); };
    const double determinant = m(0) * m(3) - m(1) * m(2);
    constexpr double least = 0.1, most = 10;
    if (!(std::abs(determinant) >= least && std::abs(determinant) <= most))
      throw InputError(file + "row " + std::to_string(row + 1) +
                       ": expected a magnification (rlnMagMat00 and so on) near 1 0 0 1, found " +
                       shortest(m(0)) + " " + shortest(m(1)) + " " + shortest(m(2)) + " " + shortest(m(3)) +
                       (determinant == 0 ? ", which is singular" : ""));
  }
}

void add_findings_in_defoci(const Particles& particles, const std::string& file,
                            std::vector<std::string>& findings) {
  const auto& u = particles.defocus_u.values;
  const auto& v = particles.defocus_v.present() ? particles.defocus_v.values : u;
  const auto size = [&](std::size_t row) { return std::max(std::abs(u[row]), std::abs(v[row])); };
  constexpr double least_defocus = 100;
  const auto rows = [&](const auto& condition) { return rows_where(particles.count, condition); };
  const auto small = rows([&](std::size_t row) { return size(row) < least_defocus; });
  if (small.size() == particles.count)
    findings.push_back(file + "all defoci are below 100 Angstrom (rlnDefocusU " + range_text(u) +
                       "): micrometres? RELION's are in Angstrom; multiply them by 10000");
  else if (constexpr double focus = 3000;
           std::ranges::all_of(u, [](double value) { return std::abs(value) < focus; }))
    findings.push_back(file + "all defoci are below 3000 Angstrom (rlnDefocusU " + range_text(u) +
                       "): nanometres? RELION's are in Angstrom; multiply them by 10");
  else if (!small.empty())
    findings.push_back(file + std::to_string(small.size()) + " of " + std::to_string(particles.count) +
                       " defoci are below 100 Angstrom (" + rows_text(small) +
                       "): values that are missing, or in other units? leave these rows out");
  const auto over = rows([&](std::size_t row) { return u[row] + v[row] <= -2 * least_defocus; });
  if (2 * over.size() > particles.count)
    findings.push_back(file + "most defoci are below 0 (rlnDefocusU " + range_text(u) +
                       "), which is overfocus: another program's sign? RELION counts underfocus as positive");
  auto far = rows([&](std::size_t row) { return size(row) > 1e5; });
  const bool all_far = far.size() == particles.count;
  if (!all_far)
    std::erase_if(far, [&](std::size_t row) { return size(row) <= 2e5; });
  if (!far.empty())
    findings.push_back(file + (all_far ? "all" : std::to_string(far.size())) + " defoci are above " +
                       (all_far ? "100000" : "200000") + " Angstrom (" + rows_text(far) + ", rlnDefocusU " +
                       range_text(u) + "): a fit that failed, or other units? leave these rows out");
  if (particles.defocus_v.present()) {
    const auto astigmatic = rows([&](std::size_t row) {
      return std::abs(u[row] - v[row]) > std::abs(u[row] + v[row]) / 2 && size(row) >= least_defocus;
    });
    if (!astigmatic.empty())
      findings.push_back(
          file + std::to_string(astigmatic.size()) +
          " defoci differ by more than their mean along the two axes (" + rows_text(astigmatic) +
          "): a fit that failed, or a difference in the place of rlnDefocusV? leave these rows out");
  }
}

void add_findings_in_optics(const Particles& particles, const std::string& file,
                            std::vector<std::string>& findings) {
  const auto rows = [&](const auto& condition) { return rows_where(particles.count, condition); };
  const auto& cs = particles.spherical_aberration.values;
  if (std::ranges::any_of(cs, [](double value) { return std::abs(value) > 100; }))
    findings.push_back(file + "the spherical aberration is above 100 mm (rlnSphericalAberration " +
                       range_text(cs) + "): micrometres? RELION's is in mm; divide it by 1000");
  if (std::ranges::any_of(cs, [](double value) { return value < -0.1; })) // correctors leave little
    findings.push_back(file + "the spherical aberration is below 0 (rlnSphericalAberration " +
                       range_text(cs) + "): another program's sign? RELION's is positive, 0 to 2.7 mm");
  const auto& contrast = particles.amplitude_contrast.values;
  if (std::ranges::any_of(contrast, [](double value) { return value < 0; }))
    findings.push_back(file + "the amplitude contrast is below 0 (rlnAmplitudeContrast " +
                       range_text(contrast) + "): another program's sign? RELION's is positive, 0.07 to 0.1");
  const auto& scale = particles.ctf_scale.values;
  if (const auto none = rows([&](std::size_t row) { return !scale.empty() && scale[row] == 0; });
      !none.empty())
    findings.push_back(file + std::to_string(none.size()) + " scale factors are 0 (rlnCtfScalefactor, " +
                       rows_text(none) + "): these images count nothing");
  const auto& phase = particles.phase_shift.values;
  if (const auto most =
          phase.empty()
              ? 0
              : std::abs(*std::ranges::max_element(phase, {}, [](double value) { return std::abs(value); }));
      most > 0 && most < 3.2 && !std::ranges::all_of(phase, [](double value) { return value == 0; }))
    findings.push_back(file + "no phase shift is above 3.2 (rlnPhaseShift " + range_text(phase) +
                       "): radians? RELION's are in degrees");
}

void add_findings_in_b_factors(const Particles& particles, const std::string& file,
                               std::vector<std::string>& findings) {
  const auto rows = [&](const auto& condition) { return rows_where(particles.count, condition); };
  const auto& b = particles.ctf_b_factor.values;
  if (!b.empty() && particles.pixel_size.present()) {
    // The weight of the last frequency, that of the first being 1.
    const auto growth = [&](std::size_t row) {
      return -b[row] / 2 / std::pow(2 * particles.pixel_size[row], 2);
    };
    constexpr double much = 9.2; // 10^4
    if (const auto large = rows([&](std::size_t row) { return growth(row) > much; }); !large.empty())
      findings.push_back(
          file + std::to_string(large.size()) +
          " B factors make the weight of the last frequency more than 10000 times the weight of "
          "the first (rlnCtfBfactor, " +
          rows_text(large) + "): --b-factor-sign warp turns the sign");
  }
}

/// Those of images that were seen.
template <class Condition>
std::vector<std::size_t> rows_of(const std::vector<LookAtImage>& images, const Condition& condition) {
  return rows_where(images.size(),
                    [&](std::size_t row) { return images[row].deviation >= 0 && condition(images[row]); });
}

void add_findings_in_hot_pixels(const Particles& particles, const std::vector<LookAtImage>& images,
                                bool left_out, std::vector<std::string>& findings) {
  const std::string file = particles.file.string() + ": ";
  const auto pixels = std::int64_t(particles.image_width) * particles.image_height;
  for (const bool useless : {true, false}) {
    const auto hot = rows_of(images, [&](const auto& image) {
      return image.hot > 0 && (left_out && image.is_useless(pixels)) == useless;
    });
    if (hot.empty())
      continue;
    const auto& first = images[hot.front()];
    const auto pixel = static_cast<std::int64_t>(first.hot_pixel);
    findings.push_back(
        file + std::to_string(hot.size()) +
        (hot.size() == 1 ? " image has a hot pixel (" : " images have hot pixels (") + rows_text(hot) +
        (hot.size() == 1 ? ", pixel " : "; in the first pixel ") +
        std::to_string(pixel % particles.image_width + 1) + " of line " +
        std::to_string(pixel / particles.image_width + 1) + ", " + shortest(first.hot) +
        " standard deviations of the others)" +
        (useless ? " that outweighs all others: maps are made without " +
                       std::string(hot.size() == 1 ? "the image" : "these images") +
                       "; remove it (dust removal when particles are extracted)"
                 : ": it reaches all frequencies; remove it (dust removal when particles are extracted), or "
                   "leave these rows out"));
    if (useless && double(hot.size()) > most_unusable * double(images.size()))
      throw InputError(findings.back() + "; expected " + shortest(100 * most_unusable) +
                       " % of such images at most");
  }
}

void add_findings_in_contrast(const std::string& file, const std::vector<LookAtImage>& images,
                              std::vector<std::string>& findings) {
  double sum = 0, squares = 0, count = 0;
  for (const auto& image : images)
    if (image.deviation > 0 && image.hot == 0) {
      const double contrast = (image.inside - image.background) / image.deviation;
      sum += contrast;
      squares += contrast * contrast;
      ++count;
    }
  constexpr double enough = 20, least = 0.02, sure = 6;
  const double mean = sum / std::max(1.0, count),
               error = std::sqrt(std::max(0.0, squares / std::max(1.0, count) - mean * mean) /
                                 std::max(1.0, count));
  if (count >= enough && mean < -least && mean < -sure * error)
    findings.push_back(file + "particles are darker than their surrounding, by " + shortest(-mean) +
                       " standard deviations of an image (+- " + shortest(error) +
                       "): maps will be dark, too; RELION's particles are bright (relion_preprocess "
                       "--invert_contrast)");
}

/// The same pixels under different names.
void add_findings_in_repeats(const Particles& particles, const std::vector<int>& halves,
                             const std::vector<LookAtImage>& images, std::vector<std::string>& findings) {
  std::vector<std::size_t> order = rows_of(images, [](const auto& image) { return image.deviation > 0; });
  const auto content = [&](std::size_t row) { return std::pair(images[row].mixed, images[row].squares); };
  std::ranges::stable_sort(order, {}, content);
  Repeats repeats;
  for (std::size_t begin = 0, end; begin < order.size(); begin = end)
    for (end = begin + 1; end < order.size() && content(order[end]) == content(order[begin]); ++end)
      if (std::pair(particles.stack[order[end]], particles.image[order[end]]) !=
          std::pair(particles.stack[order[begin]], particles.image[order[begin]]))
        repeats.add(order[begin], order[end], halves[order[end]] != halves[order[begin]]);
  if (repeats.count > 0)
    findings.push_back(particles.file.string() + ": " + "has under different names " + repeats.text());
}

} // namespace

std::string rows_text(const std::vector<std::size_t>& rows) {
  constexpr std::size_t named = 3;
  std::string text = rows.size() == 1 ? "row" : "rows";
  for (std::size_t i = 0; i < std::min(named, rows.size()); ++i)
    text += (i > 0 ? ", " : " ") + std::to_string(rows[i] + 1);
  return text + (rows.size() > named ? " and " + std::to_string(rows.size() - named) + " more" : "");
}

std::vector<std::string> findings_in_columns(const Particles& particles, bool uses_ctf) {
  std::vector<std::string> findings;
  const std::string file = particles.file.string() + ": ";
  check_magnifications(particles);
  if (const auto angles = largest_angles(particles);
      particles.count >= 20 && angles.size() == 3 &&
      std::ranges::all_of(angles, [](double most) { return most > 1; }) &&
      std::ranges::all_of(angles, [](double most) { return most < 3.2; }))
    findings.push_back(file + "no angle is above 3.2 (rlnAngleTilt " + range_text(particles.tilt.values) +
                       "): radians? RELION's are in degrees; multiply them by 57.2958");
  if (const auto far = rows_beyond_images(particles); !far.empty())
    findings.push_back(file + std::to_string(far.size()) + " of " + std::to_string(particles.count) +
                       " origins are more than half an image away (" + rows_text(far) +
                       "): pixels in the place of Angstrom, or the other way round? images wrap around");
  if (!uses_ctf)
    return findings;
  add_findings_in_defoci(particles, file, findings);
  add_findings_in_optics(particles, file, findings);
  add_findings_in_b_factors(particles, file, findings);
  return findings;
}

std::vector<std::string> findings_in_names(const Particles& particles, const std::vector<int>& halves) {
  std::vector<std::size_t> order(particles.stack.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto image = [&](std::size_t row) { return std::pair(particles.stack[row], particles.image[row]); };
  std::ranges::stable_sort(order, {}, image);
  Repeats repeats;
  bool expansion = true;
  std::size_t times = 0;
  for (std::size_t begin = 0, end; begin < order.size(); begin = end) {
    for (end = begin + 1; end < order.size() && image(order[end]) == image(order[begin]); ++end) {
      const bool crosses = halves[order[end]] != halves[order[begin]];
      repeats.add(order[begin], order[end], crosses);
      expansion = expansion && !crosses && !same_pose(particles, order[begin], order[end]);
    }
    times = times == 0 ? end - begin : times;
    expansion = expansion && times == end - begin;
  }
  if (repeats.count == 0 || expansion)
    return {};
  return {particles.file.string() + ": names " + repeats.text()};
}

std::vector<std::string> findings_in_images(const Particles& particles, const std::vector<int>& halves,
                                            const std::vector<LookAtImage>& images, bool left_out) {
  std::vector<std::string> findings;
  const std::string file = particles.file.string() + ": ";
  const auto rows = [&](const auto& condition) { return rows_of(images, condition); };
  std::vector<double> deviations;
  for (const auto& image : images)
    if (image.deviation > 0)
      deviations.push_back(image.deviation);
  if (const auto blank = rows([](const auto& image) { return image.deviation == 0; }); !blank.empty())
    findings.push_back(account_of({.file = particles.file.string(),
                                   .count = static_cast<std::int64_t>(blank.size()),
                                   .of = static_cast<std::int64_t>(images.size()),
                                   .what = "images",
                                   .why = "are blank (" + rows_text(blank) + ", all pixels alike)",
                                   .done = left_out ? "maps are made without them; an extraction that failed?"
                                                    : "an extraction that failed? leave these rows out",
                                   .remedy = "an extraction that failed? leave these rows out"}));
  if (deviations.empty())
    return findings;

  add_findings_in_hot_pixels(particles, images, left_out, findings);
  const double usual = median(deviations);
  constexpr double far = 10;
  const auto strange = rows([&](const auto& image) {
    return image.deviation > 0 && image.hot == 0 &&
           (image.deviation > far * usual || far * image.deviation < usual);
  });
  if (!strange.empty())
    findings.push_back(file + std::to_string(strange.size()) + " of " + std::to_string(images.size()) +
                       " images have deviations of ten times the median or a tenth of it (" +
                       rows_text(strange) + "; row " + std::to_string(strange.front() + 1) + " has " +
                       shortest(images[strange.front()].deviation) + ", the median is " + shortest(usual) +
                       "): images of different programs, or not normalised? normalise them all alike");

  add_findings_in_contrast(file, images, findings);
  add_findings_in_repeats(particles, halves, images, findings);
  return findings;
}

std::vector<std::string> findings_in_map(const std::vector<float>& values, int box) {
  const auto [least, most] = std::ranges::minmax(values);
  if (least == most)
    return {"has the value " + shortest(least) + " in all voxels: a map of nothing"};
  double sum = 0, squares = 0, count = 0;
  std::size_t i = 0;
  for (int z = 0; z < box; ++z)
    for (int y = 0; y < box; ++y)
      for (int x = 0; x < box; ++x, ++i) {
        const double dx = x - box / 2, dy = y - box / 2, dz = z - box / 2;
        if (4 * (dx * dx + dy * dy + dz * dz) < double(box) * box)
          continue;
        sum += values[i];
        squares += double(values[i]) * values[i];
        ++count;
      }
  const double mean = sum / std::max(1.0, count),
               deviation = std::sqrt(std::max(0.0, squares / std::max(1.0, count) - mean * mean)),
               peak = std::max(std::abs(double(least)), std::abs(double(most)));
  constexpr double part = 0.02;
  if (count > 0 && std::abs(mean) > part * peak && std::abs(mean) > deviation)
    return {"has a pedestal: outside of the sphere that fits the box its voxels are " + shortest(mean) +
            " +- " + shortest(deviation) + ", the largest is " + shortest(peak) +
            ": taken as density; subtract it"};
  return {};
}

} // namespace Bracewell::Examples
