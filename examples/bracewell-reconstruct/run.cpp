// SPDX-License-Identifier: MIT
#include "bracewell-reconstruct/run.hpp"

#include "common/memory_limit.hpp"
#include "common/mrc.hpp"
#include "common/output_family.hpp"
#include "common/picture.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"
#include "cryoem/directions.hpp"
#include "cryoem/local_resolution.hpp"
#include "cryoem/map.hpp"
#include "cryoem/particle_provenance.hpp"
#include "cryoem/report.hpp"
#include "cryoem/sharpen.hpp"

#include <bracewell/reconstruct/fourier_shell_correlation.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <future>
#include <span>
#include <utility>
#include <vector>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

/// Signed weights need many samples.
void check_sampling(const RunOptions& options, Particles& particles) {
  if (options.reconstruction.sampling.kernel == KernelChoice::CatmullRom &&
      few_for_signed_weights(particles, options.reconstruction.symmetry))
    particles.warnings.push_back(
        "--kernel: " + std::to_string(particles.count) +
        " particles are few for it, --kernel linear --oversampling 2 is more accurate");
}

/// The helix, where one is asked for, in pixels.
std::optional<Helix> helix_of(const RunOptions& options, const Particles& particles, double pixel_size) {
  if (!options.helical_rise)
    return {};
  if (!(pixel_size > 0))
    throw InputError(options.star.string() +
                     ": states no pixel size, which --helical-rise needs; use --pixel-size");
  Helix helix{.rise = *options.helical_rise / pixel_size,
              .twist = *options.helical_twist,
              .rise_range = options.helical_rise_range / pixel_size,
              .twist_range = options.helical_twist_range};
  const double reach = 0.35 * static_cast<double>(particles.image_width);
  const double each_side = options.helical_asu ? *options.helical_asu / 2 : std::floor(reach / helix.rise);
  if (each_side * helix.rise > static_cast<double>(particles.image_width) / 2)
    throw InputError("--helical-asu: expected subunits that fit the box of " +
                     std::to_string(particles.image_width) + " pixels, found " +
                     std::to_string(2 * static_cast<int>(each_side) + 1) + " with a rise of " +
                     number(helix.rise) + " pixels");
  helix.subunits = 2 * static_cast<int>(std::min(each_side, 4000.0)) + 1;
  return helix;
}

/// Names of what is written.
struct Paths {
  fs::path map;
  std::array<fs::path, 2> halves;
  fs::path correlations, plot, slices, sharpened, directions, sphere, local, summary;

  explicit Paths(const RunOptions& options)
      : map(options.out), halves{beside(map, "_half1.mrc"), beside(map, "_half2.mrc")},
        correlations(beside(map, "_fsc.txt")), plot(beside(map, "_fsc" + options.picture_ending)),
        slices(beside(map, "_slices" + options.picture_ending)), sharpened(beside(map, "_sharpened.mrc")),
        directions(beside(map, "_directions.txt")),
        sphere(beside(map, "_directions" + options.picture_ending)),
        local(beside(map, "_local_resolution.mrc")),
        summary(beside(map, "_summary" + options.picture_ending)) {}

  std::vector<fs::path> all() const {
    return {map,       halves[0],  halves[1], correlations, plot,   slices,
            sharpened, directions, sphere,    local,        summary};
  }
};

/// Of the particles, or else of their stacks; 0: not known. Warns where they differ.
double pixel_size_of(const RunOptions& options, Particles& particles) {
  const std::optional<double>& stated = particles.stacks[0].pixel_size;
  const double pixel_size = particles.pixel_size.present() && particles.pixel_size[0] != 0
                                ? particles.pixel_size[0]
                                : stated.value_or(0);
  if (stated && std::abs(*stated - pixel_size) > 0.01 * pixel_size)
    particles.warnings.push_back(options.star.string() + ": states pixels of " + number(pixel_size) +
                                 " Angstrom, its stack of " + number(*stated) + ": the former are taken");
  if (pixel_size == 0)
    particles.warnings.push_back(
        options.star.string() +
        ": neither the file nor its stacks state a pixel size: lengths are in pixels");
  return pixel_size;
}

/// The map to compare with, where one is given, in the particles' box.
std::optional<CubicMap> read_reference(const RunOptions& options, const Particles& particles,
                                       Provenance& provenance) {
  if (!options.reference)
    return {};
  const CubicMap map = read_map(provenance, *options.reference, memory_limit(options.memory_limit));
  if (map.box != particles.image_width)
    throw InputError(options.reference->string() + ": expected a box of " +
                     std::to_string(particles.image_width) + " voxels as the images have, found " +
                     std::to_string(map.box));
  return map;
}

/// What is made of the particles.
struct Maps {
  MapOnHost whole;                    ///< masked
  std::array<MapOnHost, 2> halves;    ///< not masked; none where a half set has no particles
  std::optional<MapOnHost> reference; ///< masked
  MapOnHost sharpened;                ///< none without two half sets
  double b_factor = 0;
  bool b_factor_fitted = false;
  MapOnHost local;  ///< resolution; none without two half sets, or where none is asked for
  double width = 0; ///< of the windows that it was found in, Angstrom or pixels
  Directions directions;
  Correlations correlations;
  Difference difference{}; ///< from the reference

  bool has_halves() const { return !halves[0].values().empty(); }
};

/// Part of the signal's power that half maps have in common, by shells of the box.
std::vector<double> common_power(const Reconstruction& reconstruction) {
  std::vector<double> result;
  const auto& prior = reconstruction.prior();
  const auto& powers = reconstruction.powers();
  for (int s = 0; powers && s < (reconstruction.box() + 1) / 2; ++s) {
    const auto padded =
        static_cast<std::size_t>(std::lround(double(s) * reconstruction.padded() / reconstruction.box()));
    const double weight = 2 * powers->weight[padded], sum = weight + prior[padded];
    result.push_back(sum > 0 ? weight / sum : 1);
  }
  return result;
}

/// What the correlation of half maps is to be multiplied by: c^2 / (2 - c^2) of trials, c being the correlation of map and
/// truth, over that of their half maps, in neighbouring shells. Empty without trials.
std::vector<double> calibration(const Space& space, const Reconstruction& reconstruction,
                                const SoftSphere& mask) {
  std::vector<double> right, found, result;
  for (const auto& trial : reconstruction.trials()) {
    const auto under = [&](const Map& one, const Map& other) {
      return correlation(space, masked(space, one, mask), masked(space, other, mask));
    };
    const auto halves = under(trial.halves[0], trial.halves[1]), truth = under(trial.whole, trial.truth);
    right.resize(halves.size());
    found.resize(halves.size());
    for (std::size_t s = 0; s < halves.size(); ++s) {
      const double c = std::max(0.0, truth[s]);
      right[s] += c * c / (2 - c * c);
      found[s] += halves[s];
    }
  }
  for (std::size_t s = 0; s < right.size(); ++s) {
    const std::size_t reach = std::max<std::size_t>(1, s / 8);
    double above = 0, below = 0;
    for (std::size_t near = s - std::min(s, reach); near <= std::min(s + reach, right.size() - 1); ++near)
      above += right[near], below += found[near];
    result.push_back(below > 0 ? std::clamp(above / below, 0.0, 2.0) : 0);
  }
  return result;
}

/// Correlations of the half maps, and the local resolution where it is asked for.
void compare_halves(const Space& space, const Reconstruction& reconstruction, const SoftSphere& mask,
                    const std::array<Map, 2>& halves, bool local, const RunOptions& options,
                    double pixel_size, Maps& maps) {
  const MaskedCorrelations curves =
      masked_correlations(space, halves[0], halves[1], mask, reconstruction.copies());
  maps.correlations.error = curves.error;
  maps.correlations.halves = curves.masked;
  maps.correlations.unmasked = curves.unmasked;
  maps.correlations.randomised = curves.randomised;
  maps.correlations.corrected = curves.corrected;
  if (!local)
    return;
  const int box = reconstruction.box();
  const double unit = pixel_size > 0 ? pixel_size : 1;
  const double width = options.window ? *options.window / unit
                                      : window_width(resolution(curves.corrected, 0.143, box, 1), box);
  const LocalResolution found = local_resolution(space, halves[0], halves[1], mask, width, pixel_size);
  maps.local = MapOnHost(space, found.map);
  maps.width = found.width;
}

/// The correlation by which maps are sharpened: calibrated where trials say how.
std::vector<double> calibrated(const Space& space, const Reconstruction& reconstruction,
                               const SoftSphere& mask, Correlations& correlations) {
  std::vector<double> curve = *correlations.corrected;
  const auto factor = calibration(space, reconstruction, mask);
  if (factor.empty())
    return curve;
  correlations.calibrated = correlations.halves;
  for (std::size_t s = 0; s < factor.size(); ++s)
    for (auto* values : {&*correlations.calibrated, &curve})
      if ((*values)[s] > 0)
        (*values)[s] = std::min(1.0, factor[s] * (*values)[s]);
  return curve;
}

Maps make_maps(const Space& space, Reconstruction& reconstruction, const SoftSphere& mask,
               const std::optional<CubicMap>& reference, const RunOptions& options, double pixel_size) {
  Maps maps;
  maps.directions = weights_by_direction(space, reconstruction.weight(0), reconstruction.weight(1));
  const bool both = reconstruction.has_both_halves();
  const bool local = both && options.window.value_or(1) > 0;
  std::optional<Progress> progress(std::in_place, "making", "maps", both ? 3 + int(local) : 1);
  std::array<Map, 2> halves;
  if (both) {
    for (const int half : {0, 1}) {
      halves[static_cast<std::size_t>(half)] = reconstruction.half_map(half, true);
      maps.halves[static_cast<std::size_t>(half)] = MapOnHost(space, halves[static_cast<std::size_t>(half)]);
      progress->add(1);
    }
    compare_halves(space, reconstruction, mask, halves, local, options, pixel_size, maps);
    progress->add(int(local));
    for (Map& half : halves)
      half = masked(space, half, mask);
    add_resolutions(space, maps.directions, halves[0], halves[1], pixel_size);
  }
  const Map whole = masked(space, reconstruction.whole_map(), mask);
  maps.whole = MapOnHost(space, whole);
  if (both) {
    const std::vector<double> curve = calibrated(space, reconstruction, mask, maps.correlations);
    const SharpenedMap sharpened = sharpen(space, whole, halves[0], halves[1], curve,
                                           common_power(reconstruction), options.b_factor, pixel_size);
    maps.sharpened = MapOnHost(space, sharpened.map);
    maps.b_factor = sharpened.b_factor;
    maps.b_factor_fitted = sharpened.fitted;
  }
  progress.reset();
  if (reference) {
    const Map truth = masked(space, to_device(space, *reference), mask);
    maps.reference = MapOnHost(space, truth);
    maps.correlations.reference = correlation(space, whole, truth);
    maps.difference = compare(maps.whole.values(), maps.reference->values(), reconstruction.box());
  }
  return maps;
}

/// Slices of the map, correlations, what was measured by direction, and local resolution.
Picture summary(const Maps& maps, int box, double pixel_size) {
  std::vector<Picture> rows{central_slices({"map", maps.whole.values()}, box, pixel_size)};
  if (maps.correlations.halves || maps.correlations.reference)
    rows.push_back(picture_of(maps.correlations, box, pixel_size));
  rows.push_back(picture_of(maps.directions, pixel_size));
  if (const auto local = maps.local.values(); !local.empty()) {
    std::vector<float> frequency(local.size());
    std::ranges::transform(local, frequency.begin(),
                           [](float period) { return period > 0 ? 1 / period : 0; });
    const std::string caption = std::string("local resolution, 1/") + (pixel_size > 0 ? "\u00c5" : "px");
    rows.push_back(central_slices({caption, frequency}, box, pixel_size));
  }
  return stacked(rows);
}

/// Side by side: large maps and pictures take as long as the insertion of particles.
void write_all(const Paths& paths, const Maps& maps, int box, const MrcWriteOptions& mrc) {
  const auto write = [&](const fs::path& path, std::span<const float> volume) {
    write_volume(path, volume, {box, box, box}, mrc);
  };
  std::vector<std::future<void>> parts;
  const auto start = [&](auto part) { parts.push_back(std::async(std::launch::async, std::move(part))); };
  start([&] { write(paths.map, maps.whole.values()); });
  if (maps.has_halves())
    for (const std::size_t half : {0, 1})
      start([&, half] { write(paths.halves[half], maps.halves[half].values()); });
  if (!maps.sharpened.values().empty()) {
    MrcWriteOptions sharpened = mrc;
    sharpened.may_be_constant = true; // where half maps have nothing in common
    char label[64];
    std::snprintf(label, sizeof label, "B factor %.1f square Angstrom%s", maps.b_factor,
                  maps.b_factor_fitted ? " (fitted)" : "");
    sharpened.labels.insert(sharpened.labels.begin(), label);
    start([&, sharpened] {
      write_volume(paths.sharpened, maps.sharpened.values(), {box, box, box}, sharpened);
    });
  }
  if (!maps.local.values().empty()) {
    MrcWriteOptions local = mrc;
    local.may_be_constant = true;
    char label[80];
    std::snprintf(label, sizeof label, "local resolution (FSC %.1f) in windows of %.4g %s",
                  LocalResolution::threshold, maps.width, mrc.pixel_size > 0 ? "Angstrom" : "pixels");
    local.labels.insert(local.labels.begin(), label);
    start([&, local] { write_volume(paths.local, maps.local.values(), {box, box, box}, local); });
  }
  start([&] { write_picture(paths.summary, summary(maps, box, mrc.pixel_size)); });
  start([&] { write_directions(paths.directions, paths.sphere, maps.directions, mrc.pixel_size); });
  if (maps.correlations.halves || maps.correlations.reference)
    start(
        [&] { write_correlations(paths.correlations, paths.plot, maps.correlations, box, mrc.pixel_size); });
  std::vector<SlicedMap> slices{{"map", maps.whole.values()}};
  if (maps.reference)
    slices.push_back({"reference", maps.reference->values()});
  write_slices(paths.slices, slices, box, mrc.pixel_size);
  for (auto& part : parts)
    part.get();
}

/// Of the half maps, what is said of it.
const std::vector<double>& best(const Correlations& correlations) {
  return correlations.calibrated ? *correlations.calibrated : *correlations.halves;
}

/// "; 12.3 to 11.8 A within two standard errors", where the correlation reaches the threshold at all.
std::string uncertainty(const Correlations& correlations, int box, double pixel_size) {
  constexpr double threshold = 0.143;
  const auto& halves = best(correlations);
  const auto shells = uncertain_shells(halves, *correlations.error, threshold);
  if (!std::isfinite(resolution(halves, threshold, box, 1)))
    return "";
  const double width = box * (pixel_size > 0 ? pixel_size : 1);
  char text[96];
  std::snprintf(text, sizeof text, "; %.4g to %.4g %s within two standard errors",
                width / std::max(0.5, shells[0]), width / shells[1], pixel_size > 0 ? "A" : "px");
  return text;
}

/// What the line about the run says about its resolution.
std::string resolutions(const Maps& maps, int box, double pixel_size) {
  const auto where = [&](const std::vector<double>& correlation, double threshold) {
    return resolution_text(correlation, threshold, box, pixel_size);
  };
  std::string text;
  if (maps.correlations.halves)
    text += ", resolution " + where(best(maps.correlations), 0.143) + " (FSC 0.143" +
            uncertainty(maps.correlations, box, pixel_size) + ") and " + where(best(maps.correlations), 0.5) +
            " (0.5)";
  if (maps.b_factor != 0)
    text += ", B factor " + number(maps.b_factor) + " A^2" + (maps.b_factor_fitted ? " (fitted)" : "");
  if (const auto& reference = maps.correlations.reference)
    text += ", against the reference " + where(*reference, 0.5) + " (FSC 0.5) and relative error " +
            number(maps.difference.error) + " after scaling by " + number(maps.difference.scale);
  return text;
}

/// Throws InputError for a window of --local-resolution of less than four pixels or more than the box.
void check_window(const RunOptions& options, const Particles& particles, double pixel_size) {
  if (!options.window || *options.window <= 0)
    return;
  const double unit = pixel_size > 0 ? pixel_size : 1, most = unit * double(particles.image_width);
  if (!(*options.window >= 4 * unit && *options.window <= most))
    throw InputError("--local-resolution: expected 0, or " + shortest(4 * unit) + " to " + shortest(most) +
                     (pixel_size > 0 ? " Angstrom" : " pixels") + ", four pixels and the box, found " +
                     shortest(*options.window));
}

/// Says what the maps tell of the data.
void note_maps(const Maps& maps, const Reconstruction& reconstruction, const RunOptions& options,
               const std::filesystem::path& sharpened, Provenance& provenance) {
  if (maps.correlations.calibrated)
    provenance.took(
        options.star,
        "samples that miss " + std::to_string(std::lround(100 * reconstruction.unseen())) +
            " % of the frequencies in a half set: the resolution counts these (column calibrated)");
  if (const std::string warning = maps.directions.warning(); !warning.empty())
    provenance.assume(options.star.string() + ": " + warning);
  if (maps.reference && maps.difference.scale < 0)
    provenance.assume(options.star.string() + ": its map is the negative of " + options.reference->string() +
                      " (scale " + number(maps.difference.scale) +
                      "): dark particles? RELION's are bright (relion_preprocess --invert_contrast)");
  if (const auto values = maps.sharpened.values();
      !values.empty() && std::ranges::all_of(values, [&](float value) { return value == values.front(); }))
    provenance.took(sharpened, "the same everywhere, as the half maps have nothing in common");
}

} // namespace

std::string reconstruct(const Space& space, const RunOptions& options, Provenance& provenance,
                        Timings& timings) {
  const auto start = std::chrono::steady_clock::now();
  timings.phase("read poses");
  options.reconstruction.sampling.check();
  const Paths paths(options);
  OutputFamily outputs(paths.all());
  Particles particles = read_particles(options.star, {.pixel_size = options.pixel_size,
                                                      .class_number = options.class_number,
                                                      .b_factor_sign = options.b_factor_sign,
                                                      .tilt_series = true,
                                                      .subtomograms = true});
  const double pixel_size = pixel_size_of(options, particles);
  const SoftSphere mask = mask_of(particles, options.mask_diameter, pixel_size);
  ReconstructionOptions settings = options.reconstruction;
  check_sampling(options, particles);
  check_window(options, particles, pixel_size);
  settings.helix = helix_of(options, particles, pixel_size);
  settings.diameter = std::min(2 * mask.radius, double(particles.image_width));
  require_memory_for_reconstruction(particles, settings, memory_limit(options.memory_limit));
  const std::optional<CubicMap> reference = read_reference(options, particles, provenance);

  timings.phase("prepare");
  Reconstruction reconstruction(space, particles, settings);
  note_particles(provenance, particles, reconstruction.uses_ctf());
  if (!reconstruction.has_both_halves())
    provenance.assume(options.star.string() + ": has no particles in one of the half sets: no half maps");
  provenance.say();
  timings.phase("insert");
  timings.stages(reconstruction.insert_all());
  provenance.assume(reconstruction.findings());
  if (constexpr double noticeable = 1;
      !settings.normalise && std::abs(reconstruction.background()) > noticeable)
    provenance.assume(options.star.string() + ": the background of its images is " +
                      number(reconstruction.background()) +
                      " times their standard deviation: taken as it is; --normalise subtracts it");

  if (!is_first_process())
    return "";
  if (options.helical_rise_range > 0 || options.helical_twist_range > 0)
    provenance.took(options.star,
                    "a helix with a rise of " +
                        shortest(std::round(1000 * reconstruction.helix()->rise * pixel_size) / 1000) +
                        " Angstrom and a twist of " +
                        shortest(std::round(1000 * reconstruction.helix()->twist) / 1000) +
                        " degrees, as found");
  timings.phase("make maps");
  const Maps maps = make_maps(space, reconstruction, mask, reference, options, pixel_size);
  note_maps(maps, reconstruction, options, paths.sharpened, provenance);
  timings.phase("write");
  const int box = reconstruction.box();
  write_all(paths, maps, box,
            {.pixel_size = pixel_size,
             .labels = provenance.lines(),
             .likeliest = options.star.string() +
                          ": its images, poses and contrast transfer (defoci, Cs, Zernike terms)"});
  outputs.commit();

  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const std::size_t used = particles.count - reconstruction.left_out();
  const std::string counted =
      particles.in_tilt_series > 0
          ? std::to_string(used) + " tilts of " + std::to_string(particles.in_tilt_series) + " particles of "
          : std::to_string(used) + (particles.subtomograms ? " subtomogram" : " particle") +
                (used == 1 ? " of " : "s of ");
  const std::string edge = std::to_string(box),
                    size =
                        edge + " x " + edge + (particles.subtomograms ? " x " + edge + " voxels" : " pixels");
  return options.out.string() + ": " + counted + size + (reconstruction.uses_ctf() ? ", CTF corrected" : "") +
         resolutions(maps, box, pixel_size) + ", " + number(elapsed.count()) + " s";
}

} // namespace Bracewell::Examples
