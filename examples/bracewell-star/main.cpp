// SPDX-License-Identifier: MIT
#include "common/command_line.hpp"
#include "common/output_family.hpp"
#include "cryoem/particle_provenance.hpp"

#include <iostream>

namespace {

using namespace Bracewell::Examples;
namespace fs = std::filesystem;

struct Options {
  fs::path particles, out;
  std::optional<double> pixel_size;
  std::optional<std::int64_t> class_number;
  bool no_images = false;
};

void convert(const Options& options, Provenance& provenance) {
  OutputFamily outputs({options.out});
  Particles particles = read_particles(options.particles, {.images = !options.no_images,
                                                           .pixel_size = options.pixel_size,
                                                           .class_number = options.class_number,
                                                           .tilt_series = true});
  note_particles(provenance, particles, particles.defocus_u.present() && particles.voltage.present());
  provenance.say();
  if (options.pixel_size)
    set_pixel_size(particles, *options.pixel_size);
  move_image_names(particles, options.out);
  write_star(options.out, particles.document, provenance.lines());
  outputs.commit();
  std::cout << options.out.string() << ": " << particles.count
            << (particles.count == 1 ? " particle\n" : " particles\n");
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Writes particles as a STAR file of RELION. Reads cryoSPARC's files (.cs, with its "
               "passthrough files beside it), RELION's tilt series (a row per tilt), cisTEM's STAR files and "
               "other STAR files. Warns of strange columns as the other programs do.",
               "bracewell-star"};
  Options options;
  app.add_option("--particles", options.particles,
                 "cryoSPARC's .cs, or a STAR file of RELION (1.4 to 5; the optimisation set of tilt series) "
                 "or cisTEM")
      ->required()
      ->type_name("FILE");
  app.add_option("--out", options.out, "STAR file to write; names of images become relative to its folder")
      ->required()
      ->check([](const std::string& name) {
        return name.ends_with(".star") ? std::string()
                                       : "expected a name that ends with .star, found " + name;
      })
      ->type_name("FILE");
  app.add_option("--pixel-size", options.pixel_size, "pixel size, instead of the file's")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option("--class", options.class_number, "take only the particles of this rlnClassNumber")
      ->type_name("NUMBER");
  app.add_flag("--no-images", options.no_images,
               "do not look for the images, and keep their names as they are");
  return run_driver(app, argc, argv, [&](Provenance& provenance, Timings&) { convert(options, provenance); });
}
