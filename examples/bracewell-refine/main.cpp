// SPDX-License-Identifier: MIT
#include "bracewell-refine/run.hpp"
#include "common/command_line.hpp"

#include <iostream>

int main(int argc, char** argv) {
  using namespace Bracewell::Examples;
  CLI::App app{
      "Refines angles and origins of particles against maps, each from where it is, or from nothing "
      "(--global): the loss |scale CTF "
      "projection - image|^2 is minimised by BFGS with exact gradients, from coarse to fine frequencies. The "
      "half sets (rlnRandomSubset) are kept apart. Writes OUT, the half maps of the refined poses "
      "(_half1.mrc, "
      "_half2.mrc) and their correlation (_fsc.txt, _fsc.png).",
      "bracewell-refine"};
  RunOptions options;
  auto& refinement = options.refinement;
  app.add_option("--star", options.star,
                 "particles with poses: STAR file of RELION, 1.4 to 5, or cryoSPARC's .cs")
      ->required()
      ->type_name("FILE");
  app.add_option(
         "--map", options.maps,
         "MRC maps of both half sets, or one for both; their voxels are the images' pixels. By default "
         "half maps are reconstructed from the particles as they are")
      ->expected(1, 2)
      ->type_name("FILE");
  app.add_option("--out", options.out, "STAR file to write: the same particles with refined poses")
      ->check(not_ending({".mrc", ".mrcs", ".map", ".cs", ".txt", ".png", ".pdf", ".svg"}, ".star"))
      ->required()
      ->type_name("FILE");
  app.add_flag(
      "--global", refinement.global,
      "poses from nothing: particles are compared with the maps at all orientations, at low frequencies, and "
      "the best poses of each refined from coarse to fine. Needs --map; poses in the file are not looked at");
  app.add_option("--shift-range", refinement.shift_range,
                 "of --global: distance of particles from the middle of images, at most; by default a tenth "
                 "of the box")
      ->check(CLI::NonNegativeNumber)
      ->needs("--global")
      ->type_name("PIXELS");
  app.add_option(
         "--rounds", options.rounds,
         "of refining poses and reconstructing half maps from them; by default one with --map, and else "
         "as many as make the half maps agree better, 10 at most")
      ->check(CLI::Range(1, 1000))
      ->type_name("NUMBER");
  add_symmetry(app, refinement.symmetry, "point group of the half maps, which poses are compared with: ");
  add_helix(app, options.helical_rise, options.helical_twist);
  app.add_flag("--no-ctf", refinement.no_ctf,
               "compare with bare projections; without it they are multiplied by the contrast transfer where "
               "the STAR file has what it takes");
  add_sampling_options(
      app, refinement.sampling,
      "2 keeps the aliases of the kernel out of the box's inner half, where the molecule is");
  app.add_flag("--refine-defocus", refinement.defocus,
               "the defocus of every particle, too, once its pose is found in a round");
  app.add_option("--defocus-range", refinement.defocus_range,
                 "how far defoci are off, as a standard deviation; they are looked for within three of them")
      ->check(CLI::Range(1.0, 1e5))
      ->needs("--refine-defocus")
      ->type_name("ANGSTROM")
      ->capture_default_str();
  app.add_flag("--refine-magnification", refinement.magnification,
               "the magnification of every optics group along and across (rlnMagMat00 to 11), too, after the "
               "poses of a round");
  app.add_option("--radius", options.radius,
                 "largest frequency compared, in periods per box; by default the last one before the "
                 "correlation of the half maps falls below 0.143, anew in every round")
      ->check(CLI::PositiveNumber)
      ->type_name("FREQUENCY");
  app.add_option(
         "--mask-diameter", options.mask_diameter,
         "of a soft sphere around the maps, instead of a mask from the maps themselves; half maps are "
         "written without")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option(
         "--mask", options.mask,
         "MRC map of values from 0 to 1 that the maps are multiplied by, instead of one from the maps "
         "themselves")
      ->excludes("--mask-diameter")
      ->type_name("FILE");
  app.add_option("--iterations", refinement.iterations, "evaluations of the loss per stage, at most")
      ->check(CLI::PositiveNumber)
      ->type_name("NUMBER")
      ->capture_default_str();
  app.add_flag("--normalise", options.normalise,
               "subtract from images their mean outside of the disc that fits them before half maps are "
               "reconstructed");
  add_b_factor_sign(app, options.b_factor_sign);
  app.add_option("--pixel-size", options.pixel_size, "Angstrom, instead of what the STAR file says")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option("--class", options.class_number,
                 "only the particles of this rlnClassNumber, others are left out")
      ->type_name("NUMBER");
  app.add_option("--batch", refinement.batch, "images at a time, 0: chosen")
      ->check(CLI::NonNegativeNumber)
      ->type_name("NUMBER")
      ->capture_default_str();
  add_reproducible(app, refinement.reproducible);
  add_memory_limit(app, options.memory_limit);
  add_picture_format(app, options.picture_ending);
  add_checkpoint_options(app, options.checkpoint);
  return run_driver(app, argc, argv, [&](Provenance& provenance, Timings& timings) {
    options.checkpoint.identity = identity_of(
        app, {"--rounds", "--memory-limit", "--pictures"}); // more of them may follow, in more memory
    std::cout << refine(Space(), options, provenance, timings) << '\n';
  });
}
