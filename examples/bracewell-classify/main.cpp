// SPDX-License-Identifier: MIT
#include "bracewell-classify/run.hpp"
#include "common/command_line.hpp"
#include "common/input_error.hpp"
#include "cryoem/sampling.hpp"

#include <iostream>

int main(int argc, char** argv) {
  using namespace Bracewell::Examples;
  CLI::App app{"Sorts particles into classes by likelihood, and makes a map of each class. Every particle "
               "counts at all orientations, "
               "shifts and classes by their posterior probability, from coarse to fine frequencies. Writes "
               "OUT, the maps "
               "(_class1.mrc, ...; or the averages in the plane, _classes.mrcs), a table of the classes "
               "(_model.star) and a picture of every iteration "
               "(_iteration1.png, ...).",
               "bracewell-classify"};
  ClassifyOptions options;
  app.add_option("--star", options.star,
                 "particles: a STAR file of RELION (1.4 to 5) or cisTEM, or cryoSPARC's .cs")
      ->required()
      ->type_name("FILE");
  app.add_option(
         "--reference", options.references,
         "MRC map that all classes begin with, or one for each class; voxels have the size of the "
         "images' pixels. By "
         "default the program makes one from the poses of the particles. With --dimensions 2: a stack of "
         "as many images as classes")
      ->expected(1, 100)
      ->type_name("FILE");
  app.add_option("--out", options.out, "STAR file to write: the same particles with classes and poses")
      ->check(not_ending({".mrc", ".mrcs", ".map", ".cs", ".txt", ".png", ".pdf", ".svg"}, ".star"))
      ->required()
      ->type_name("FILE");
  app.add_option("--classes", options.classes, "number of classes")
      ->check(CLI::Range(1, 100))
      ->required()
      ->type_name("NUMBER");
  app.add_option("--dimensions", options.search.dimensions,
                 "3: classes are maps. 2: classes are averages of images, turned and shifted in the plane; "
                 "they begin with the images of some particles, and need no reference")
      ->check(CLI::IsMember({2, 3}))
      ->type_name("NUMBER")
      ->capture_default_str();
  app.add_option("--starts", options.starts,
                 "where classes begin with one map: as many random splits of the particles are tried at low "
                 "frequencies, and the program goes on with the likeliest classes. In the plane: as many "
                 "times some particles are seeds of classes, and the best of all seeds go on together")
      ->check(CLI::Range(1, 100))
      ->type_name("NUMBER")
      ->capture_default_str();
  app.add_flag(
      "--half-sets-apart", options.halves_apart,
      "compare each half set with maps of its own, so that their correlation is a gold standard. One "
      "class is always refined so");
  app.add_option(
         "--iterations", options.iterations,
         "number of iterations. By default they end when classes and resolution no longer change, at most " +
             std::to_string(most_iterations))
      ->check(CLI::Range(1, 1000))
      ->type_name("NUMBER");
  add_symmetry(app, options.search.symmetry, "point group of the maps: ");
  app.add_option(
         "--healpix-order", options.search.healpix_order,
         "fineness of the first pass: 72 8^ORDER orientations, as many as RELION's grid of this "
         "order has (2: 15 degrees apart). Further passes halve the distance around the best candidates "
         "until it suits the resolution")
      ->check(CLI::Range(0, 5))
      ->type_name("ORDER")
      ->capture_default_str();
  auto* const angle_step =
      app.add_option("--angle-step", options.search.angle_step,
                     "distance of angles of the first pass with --dimensions 2; further passes halve it")
          ->check(CLI::Range(0.5, 90.0))
          ->type_name("DEGREES")
          ->capture_default_str();
  app.add_option("--offset-range", options.search.offset_range,
                 "the largest shift of the first pass from the last origin of a particle; by default a "
                 "twelfth of the box")
      ->check(CLI::NonNegativeNumber)
      ->type_name("PIXELS");
  app.add_option("--offset-step", options.search.offset_step,
                 "distance of shifts of the first pass, by default a quarter of its finest period; further "
                 "passes halve it")
      ->check(CLI::PositiveNumber)
      ->type_name("PIXELS");
  app.add_option(
         "--particle-diameter", options.particle_diameter,
         "diameter of the soft sphere that masks maps; by default from the reference. In the plane: of the "
         "disc, by default nine tenths of the box")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option("--initial-low-pass", options.initial_low_pass,
                 "finest period of the first iteration; by default a quarter of the particle's diameter")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option("--tau", options.tau,
                 "factor on the power of the signal that regularises maps; a larger factor leaves more "
                 "detail and noise")
      ->check(CLI::PositiveNumber)
      ->type_name("FACTOR")
      ->capture_default_str();
  app.add_option(
         "--share", options.share,
         "part of the posterior of an image that counts; the program leaves out less likely candidates")
      ->check(CLI::Range(0.5, 1.0))
      ->type_name("PART")
      ->capture_default_str();
  app.add_flag("--no-ctf", options.no_ctf,
               "compare with bare projections. Without it the program multiplies them by the contrast "
               "transfer if the STAR file has its columns");
  add_b_factor_sign(app, options.b_factor_sign);
  app.add_option("--pixel-size", options.pixel_size, "pixel size, instead of the STAR file's")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option("--batch", options.batch, "images at a time; 0 chooses by their size")
      ->check(CLI::NonNegativeNumber)
      ->type_name("NUMBER")
      ->capture_default_str();
  add_reproducible(app, options.reproducible);
  add_memory_limit(app, options.memory_limit);
  add_picture_format(app, options.picture_ending);
  add_checkpoint_options(app, options.checkpoint);
  put_under(app, "Search", {"--healpix-order", "--angle-step", "--offset-range", "--offset-step", "--share"});
  put_under(app, "Maps", {"--symmetry", "--particle-diameter", "--initial-low-pass", "--tau"});
  put_under(app, "Particles", {"--pixel-size", "--no-ctf", "--b-factor-sign"});
  return run_driver(app, argc, argv, [&](Provenance& provenance, Timings& timings) {
    const bool plane = options.search.dimensions == 2;
    for (const char* name : {"--healpix-order", "--symmetry"})
      if (plane && app.count(name) > 0)
        throw InputError(std::string(name) + ": expected --dimensions 3, found 2");
    if (!plane && angle_step->count() > 0)
      throw InputError("--angle-step: expected --dimensions 2, found 3");
    options.checkpoint.identity = identity_of(
        app, {"--iterations", "--memory-limit", "--pictures"}); // more of them may follow, in more memory
    std::cout << classify(Space(), options, provenance, timings) << '\n';
  });
}
