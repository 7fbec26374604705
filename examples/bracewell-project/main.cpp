// SPDX-License-Identifier: MIT
#include "common/command_line.hpp"
#include "common/output_family.hpp"
#include "cryoem/image_output.hpp"
#include "cryoem/map.hpp"
#include "cryoem/padded_spectrum.hpp"
#include "cryoem/particle_provenance.hpp"
#include "cryoem/sampling.hpp"
#include "cryoem/scale_within.hpp"

#include <bracewell/project/project.hpp>

#include <chrono>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <limits>

namespace {

using namespace Bracewell::Examples;
namespace fs = std::filesystem;

constexpr const char* program = "bracewell-project";

struct Options {
  fs::path map, star, out;
  Sampling sampling;
  ImageOutputOptions images;
  std::optional<double> pixel_size, memory_limit;
  std::optional<std::int64_t> class_number;
  BFactorSign b_factor_sign = BFactorSign::Automatic;
};

/// What is sampled: the padded map's spectrum over the pixels of an image, which the inverse transforms of
/// the images do not divide by.
MapSpectrum sampled_spectrum(const Space& space, const CubicMap& map, const Sampling& sampling) {
  const MapSpectrum spectrum = padded_spectrum(space, map, sampling);
  // RELION leaves the corners of its padded spectrum out.
  const double radius = sampling.correction == Correction::Radial
                            ? std::round(map.box / 2 * double(spectrum.extent(1)) / map.box)
                            : std::numeric_limits<double>::max();
  scale_within(space, spectrum, radius, 1.0 / (map.box * map.box));
  return spectrum;
}

/// Without contrast transfer the images have nothing of what these columns say.
void remove_contrast(Particles& particles) {
  constexpr std::array<std::string_view, 14> columns{
      "rlnDefocusU",         "rlnDefocusV",         "rlnDefocusAngle",
      "rlnPhaseShift",       "rlnCtfBfactor",       "rlnCtfScalefactor",
      "rlnCtfMaxResolution", "rlnCtfFigureOfMerit", "rlnCtfDataAreCtfPremultiplied",
      "rlnBeamTiltX",        "rlnBeamTiltY",        "rlnOddZernike",
      "rlnEvenZernike",      "rlnMtfFileName"};
  for (auto& table : particles.document.tables)
    table.remove_columns(columns);
}

/// The STAR file of the images: that of the poses, with the images' names and size in it.
void write_image_star(const fs::path& path, Particles& particles, const std::string& stack, int box,
                      const Provenance& provenance) {
  std::vector<std::string> names(particles.count);
  for (std::size_t i = 0; i < names.size(); ++i) {
    char number[32];
    std::snprintf(number, sizeof number, "%06zu@", i + 1);
    names[i] = number + stack;
  }
  particles.particle_table().set_column("rlnImageName", std::move(names));
  if (auto* optics = particles.document.find("optics"))
    for (const auto& [column, value] :
         {std::pair("rlnImageSize", box), std::pair("rlnImageDimensionality", 2)})
      if (optics->find(column))
        optics->set_column(column, std::vector<std::string>(optics->rows(), std::to_string(value)));
  write_star(path, particles.document, provenance.lines());
}

void project_map(const Options& options, Provenance& provenance, Timings& timings) {
  const auto start = std::chrono::steady_clock::now();
  timings.phase("read");
  options.sampling.check();
  const fs::path star = fs::path(options.out).replace_extension(".star");
  OutputFamily outputs({options.out, star});

  const Space space;
  const double limit = memory_limit(options.memory_limit);
  const CubicMap map = read_map(provenance, options.map, limit);
  Particles particles = read_particles(options.star, {.images = false,
                                                      .pixel_size = options.pixel_size,
                                                      .class_number = options.class_number,
                                                      .b_factor_sign = options.b_factor_sign});
  require_poses(particles);
  require_one_pixel_size(particles);
  require_memory_for_spectrum(map, options.sampling,
                              ImageOutput::bytes_needed(options.images, particles.count, map.box), limit);
  ImageOutputOptions image_options = options.images;
  image_options.pixel_size =
      particles.pixel_size.present() ? particles.pixel_size[0] : map.voxel_size.value_or(0);
  if (map.voxel_size && std::abs(*map.voxel_size - image_options.pixel_size) > 0.01 * *map.voxel_size)
    provenance.assume(options.star.string() + ": has pixels of " + std::to_string(image_options.pixel_size) +
                      " Angstrom, the map has voxels of " + std::to_string(*map.voxel_size) +
                      ": pixels are taken as voxels");
  timings.phase("prepare");
  ImageOutput output(space, particles, map.box, image_options);
  note_particles(provenance, particles, options.images.ctf);
  provenance.say();
  output.open(options.out, provenance.lines());
  const PreparedMap reference =
      prepared(space, sampled_spectrum(space, map, options.sampling), map.box, options.sampling.kernel);
  // RELION's largest frequency is a whole number for odd boxes too.
  const bool as_relion = options.sampling.correction == Correction::Radial;
  const Bracewell::ProjectionOptions projection{.radius = as_relion ? map.box / 2 : map.box / 2.0};
  timings.phase("project");
  std::visit(
      [&](const auto& prepared_map) {
        timings.stages(output.write([&](const auto& poses, const auto& images) {
          Bracewell::project(space, prepared_map, poses, Bracewell::HalfSpectrum{images, map.box},
                             projection);
        }));
      },
      reference);
  if (!is_first_process())
    return;
  timings.phase("write poses");
  if (!options.images.ctf)
    remove_contrast(particles);
  if (image_options.pixel_size > 0 && (options.pixel_size || !particles.pixel_size.present()))
    set_pixel_size(particles, image_options.pixel_size);
  write_image_star(star, particles, options.out.filename().string(), map.box, provenance);
  outputs.commit();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::cout << options.out.string() << ": " << particles.count << " projections of " << map.box << " x "
            << map.box << " pixels in " << std::setprecision(3) << elapsed.count() << " s\n";
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Projects a map at the poses of a STAR file: an MRC stack, and a STAR file of the same name beside it.",
      program};
  Options options;
  app.add_option("--map", options.map, "MRC map; the images have pixels of the size of its voxels")
      ->required()
      ->type_name("FILE");
  app.add_option("--star", options.star,
                 "poses: a STAR file of RELION (1.4 to 5) or cisTEM, or cryoSPARC's .cs")
      ->required()
      ->type_name("FILE");
  app.add_option("--out", options.out, "image stack to write, .mrcs")
      ->required()
      ->check(not_ending({".star", ".cs", ".txt", ".png", ".pdf", ".svg"}, ".mrcs"))
      ->type_name("FILE");
  app.add_flag("--ctf", options.images.ctf,
               "multiply by the contrast transfer functions of the STAR file, with beam tilt and Zernike "
               "terms. Without it the STAR file of the images has none of these columns");
  app.add_option(
         "--noise", options.images.signal_to_noise,
         "add white noise: the variance of the signal (mean over images) over the variance of the noise")
      ->check(CLI::PositiveNumber)
      ->type_name("SNR");
  app.add_option("--seed", options.images.seed,
                 "seed of the noise; a seed gives the same noise on every machine")
      ->check(CLI::NonNegativeNumber)
      ->type_name("NUMBER")
      ->capture_default_str();
  add_sampling_options(
      app, options.sampling,
      "2 keeps the aliases of the kernel out of the inner half of the box, where the molecule is");
  add_b_factor_sign(app, options.b_factor_sign);
  app.add_option("--pixel-size", options.pixel_size, "pixel size, instead of the STAR file's")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option("--class", options.class_number, "take only the particles of this rlnClassNumber")
      ->type_name("NUMBER");
  app.add_option("--batch", options.images.batch, "images at a time; 0 chooses by their size")
      ->check(CLI::NonNegativeNumber)
      ->type_name("NUMBER")
      ->capture_default_str();
  add_memory_limit(app, options.memory_limit);
  app.footer("--kernel linear --oversampling 2 --correction radial agrees with RELION's relion_project.");
  put_under(app, "Images", {"--ctf", "--b-factor-sign", "--noise", "--seed", "--pixel-size", "--class"});
  put_under(app, "Interpolation", {"--kernel", "--oversampling", "--correction"});
  return run_driver(app, argc, argv, [&](Provenance& provenance, Timings& timings) {
    project_map(options, provenance, timings);
  });
}
