// SPDX-License-Identifier: MIT
#include "bracewell-refine/run.hpp"
#include "common/command_line.hpp"

#include <iostream>

int main(int argc, char** argv) {
  using namespace Bracewell::Examples;
  CLI::App app{
      "Refines angles and origins of particles against maps, from the poses of the file or from nothing "
      "(--global). BFGS with exact gradients minimises the loss |scale CTF projection - image|^2, from "
      "coarse to fine frequencies. The half sets (rlnRandomSubset) stay apart. Writes OUT, the half maps of "
      "the refined poses (_half1.mrc, _half2.mrc) and their correlation (_fsc.txt, _fsc.png).",
      "bracewell-refine"};
  RunOptions options;
  auto& refinement = options.refinement;
  app.add_option("--star", options.star,
                 "particles with poses: a STAR file of RELION (1.4 to 5) or cisTEM, or cryoSPARC's .cs")
      ->required()
      ->type_name("FILE");
  app.add_option("--map", options.maps,
                 "MRC maps of both half sets, or one map for both; voxels have the size of the images' "
                 "pixels. By default the program reconstructs half maps from the particles as they are")
      ->expected(1, 2)
      ->type_name("FILE");
  app.add_option("--out", options.out, "STAR file to write: the same particles with refined poses")
      ->check(not_ending({".mrc", ".mrcs", ".map", ".cs", ".txt", ".png", ".pdf", ".svg"}, ".star"))
      ->required()
      ->type_name("FILE");
  app.add_flag(
      "--global", refinement.global,
      "find poses from nothing: compare particles with the maps at all orientations and low frequencies, "
      "then refine the best poses from coarse to fine. It needs --map and does not read poses of the file");
  app.add_option("--shift-range", refinement.shift_range,
                 "the largest distance of particles from the middle of images that --global tries; by "
                 "default a tenth of the box")
      ->check(CLI::NonNegativeNumber)
      ->needs("--global")
      ->type_name("PIXELS");
  app.add_option("--rounds", options.rounds,
                 "rounds of refining poses and reconstructing half maps. The default is one with --map, and "
                 "otherwise as many as make the half maps agree better, at most 10")
      ->check(CLI::Range(1, 1000))
      ->type_name("NUMBER");
  add_symmetry(app, refinement.symmetry, "point group of the half maps: ");
  add_helix(app, options.helical_rise, options.helical_twist);
  app.add_flag("--no-ctf", refinement.no_ctf,
               "compare with bare projections. Without it the program multiplies them by the contrast "
               "transfer if the STAR file has its columns");
  add_sampling_options(
      app, refinement.sampling,
      "2 keeps the aliases of the kernel out of the inner half of the box, where the molecule is");
  app.add_flag("--refine-defocus", refinement.defocus,
               "refine the defocus of every particle, too, after its pose in every round");
  app.add_option("--defocus-range", refinement.defocus_range,
                 "standard deviation of the errors of defoci; the search goes to three of them")
      ->check(CLI::Range(1.0, 1e5))
      ->needs("--refine-defocus")
      ->type_name("ANGSTROM")
      ->capture_default_str();
  app.add_flag("--refine-magnification", refinement.magnification,
               "refine the magnification of every optics group (rlnMagMat00 to 11), too, after the poses of "
               "every round");
  app.add_option("--radius", options.radius,
                 "the largest frequency to compare, in periods per box. By default every round takes the "
                 "last one before the correlation of the half maps falls below 0.143")
      ->check(CLI::PositiveNumber)
      ->type_name("FREQUENCY");
  app.add_option("--mask-diameter", options.mask_diameter,
                 "diameter of a soft sphere around the maps, instead of a mask from the maps themselves. "
                 "Half maps are written without it")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option(
         "--mask", options.mask,
         "MRC map of values from 0 to 1 to multiply the maps by, instead of a mask from the maps themselves")
      ->excludes("--mask-diameter")
      ->type_name("FILE");
  app.add_option("--iterations", refinement.iterations, "the most evaluations of the loss in a stage")
      ->check(CLI::PositiveNumber)
      ->type_name("NUMBER")
      ->capture_default_str();
  app.add_flag(
      "--normalise", options.normalise,
      "subtract from every image its mean outside of the largest disc before half maps are reconstructed");
  add_b_factor_sign(app, options.b_factor_sign);
  app.add_option("--pixel-size", options.pixel_size, "pixel size, instead of the STAR file's")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option("--class", options.class_number, "take only the particles of this rlnClassNumber")
      ->type_name("NUMBER");
  app.add_option("--batch", refinement.batch, "images at a time; 0 chooses by their size")
      ->check(CLI::NonNegativeNumber)
      ->type_name("NUMBER")
      ->capture_default_str();
  add_reproducible(app, refinement.reproducible);
  add_memory_limit(app, options.memory_limit);
  add_picture_format(app, options.picture_ending);
  add_checkpoint_options(app, options.checkpoint);
  put_under(app, "Search", {"--global", "--shift-range", "--rounds", "--radius", "--iterations"});
  put_under(app, "Optics",
            {"--no-ctf", "--b-factor-sign", "--refine-defocus", "--defocus-range", "--refine-magnification"});
  put_under(app, "Particles", {"--pixel-size", "--class", "--normalise"});
  put_under(app, "Symmetry", {"--symmetry", "--helical-rise", "--helical-twist"});
  put_under(app, "Masks", {"--mask", "--mask-diameter"});
  put_under(app, "Interpolation", {"--kernel", "--oversampling", "--correction"});
  return run_driver(app, argc, argv, [&](Provenance& provenance, Timings& timings) {
    options.checkpoint.identity = identity_of(
        app, {"--rounds", "--memory-limit", "--pictures"}); // more of them may follow, in more memory
    std::cout << refine(Space(), options, provenance, timings) << '\n';
  });
}
