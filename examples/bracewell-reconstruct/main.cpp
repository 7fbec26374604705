// SPDX-License-Identifier: MIT
#include "bracewell-reconstruct/demo.hpp"
#include "bracewell-reconstruct/run.hpp"
#include "common/command_line.hpp"
#include "common/processes.hpp"

#include <iostream>

namespace {

using namespace Bracewell::Examples;
namespace fs = std::filesystem;

struct Options {
  RunOptions run;
  std::optional<fs::path> demo;
};

void main_job(const Options& options, Provenance& provenance, Timings& timings) {
  const Space space;
  if (!options.demo) {
    if (options.run.star.empty() || options.run.out.empty())
      throw InputError("--star and --out are required, or --demo (see --help)");
    std::cout << reconstruct(space, options.run, provenance, timings) << '\n';
    return;
  }
  if (!options.run.star.empty() || !options.run.out.empty() || options.run.reference)
    throw InputError("--demo makes its own particles: --star, --out and --reference do not go with it");
  if (options.run.pixel_size || options.run.class_number)
    throw InputError("--demo makes its own particles: --pixel-size and --class do not go with it");
  require_one_process();
  const fs::path folder = *options.demo;
  if (fs::exists(folder) && !fs::is_directory(folder))
    throw InputError("--demo: expected a folder, found the file " + folder.string());
  timings.phase("simulate");
  simulate(space, {.picture_ending = options.run.picture_ending}, folder);
  RunOptions run = options.run;
  run.star = folder / "particles.star";
  run.out = folder / "map.mrc";
  run.reference = folder / "truth.mrc";
  std::cout << reconstruct(space, run, provenance, timings) << '\n';
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Reconstructs a map from particles whose poses are known. Writes OUT, its half maps (_half1.mrc, "
      "_half2.mrc), a sharpened map (_sharpened.mrc), local resolution (_local_resolution.mrc), the Fourier "
      "shell correlation (_fsc.txt, _fsc.png), what was measured by direction (_directions.txt, "
      "_directions.png), central slices (_slices.png) and all of it in one picture (_summary.png).",
      "bracewell-reconstruct"};
  Options options;
  auto& reconstruction = options.run.reconstruction;
  app.add_option(
         "--star", options.run.star,
         "particles with poses: STAR file of RELION, 1.4 to 5 (of tilt series: the optimisation set), or of "
         "cisTEM, or cryoSPARC's .cs; images or subtomograms")
      ->type_name("FILE");
  app.add_option("--out", options.run.out, "map to write, .mrc")
      ->check(not_ending({".star", ".cs", ".mrcs", ".txt", ".png", ".pdf", ".svg"}, ".mrc"))
      ->type_name("FILE");
  app.add_option("--reference", options.run.reference, "map to compare with: correlation, error, slices")
      ->type_name("FILE");
  add_symmetry(app, reconstruction.symmetry, "");
  auto* const rise = add_helix(app, options.run.helical_rise, options.run.helical_twist);
  app.add_option("--helical-rise-range", options.run.helical_rise_range,
                 "look for the rise so far around the one given, where the map agrees best with itself")
      ->check(CLI::NonNegativeNumber)
      ->type_name("ANGSTROM")
      ->needs(rise);
  app.add_option("--helical-twist-range", options.run.helical_twist_range, "the same for the twist")
      ->check(CLI::Range(0.0, 180.0))
      ->type_name("DEGREES")
      ->needs(rise);
  app.add_option("--helical-asu", options.run.helical_asu,
                 "subunits of the helix that a segment gives (made odd); by default those that keep the "
                 "middle 30 % of "
                 "the box within it")
      ->check(CLI::Range(1, 9999))
      ->type_name("NUMBER")
      ->needs(rise);
  bool ctf = false, no_ctf = false;
  auto* const ctf_flag = app.add_flag(
      "--ctf", ctf, "correct for the contrast transfer; by default where the STAR file has what it takes");
  app.add_flag("--no-ctf", no_ctf, "do not")->excludes(ctf_flag);
  bool ewald = false, reverse = false;
  auto* const ewald_flag =
      app.add_flag("--ewald", ewald,
                   "correct for the curvature of the Ewald sphere, bent as RELION's option of this name "
                   "bends it");
  app.add_flag("--reverse-curvature", reverse, "bend it the other way, for images of the other hand")
      ->needs(ewald_flag);
  app.add_option("--mask-diameter", options.run.mask_diameter,
                 "of the soft sphere around the map and, for the correlation, the half maps, which are "
                 "written without; by default "
                 "that of the sphere that fits the box")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  add_sampling_options(
      app, reconstruction.sampling,
      "linear and bspline3 like 2; 1.7 is where Catmull-Rom insertion is most accurate: less lets "
      "aliases in, more leaves too few samples per voxel for its signed weights");
  app.add_flag("--normalise", reconstruction.normalise,
               "subtract from every image its mean outside of the disc that fits it");
  app.add_option(
         "--wiener", reconstruction.wiener,
         "added to every weight (a sum of CTF^2): noise over signal power; by default as the half sets "
         "have it in every shell, and nothing to the signed weights of catmull_rom")
      ->check(CLI::NonNegativeNumber)
      ->type_name("WEIGHT");
  app.add_option("--floor", reconstruction.floor,
                 "least weight, as a part of the mean at its resolution; by default 0.001, and 0.2 with "
                 "catmull_rom, whose "
                 "signed weights can be small by cancellation")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("FRACTION");
  app.add_option(
         "--gridding-steps", reconstruction.gridding_steps,
         "at most, of the iteration that weighs neighbouring samples as the map mixes them (Pipe & Menon); "
         "0: data are divided by weights; not with catmull_rom")
      ->check(CLI::Range(0, 1000))
      ->type_name("NUMBER")
      ->capture_default_str();
  app.add_option("--b-factor", options.run.b_factor,
                 "of the sharpened map, exp(-B k^2 / 4): negative sharpens; by default fitted from 10 A to "
                 "where half maps "
                 "agree to 0.143")
      ->check(CLI::Range(-10000.0, 10000.0))
      ->type_name("SQUARE_ANGSTROM");
  app.add_option("--local-resolution", options.run.window,
                 "width of the windows that the half maps are compared in, for the map of local resolution; "
                 "0: none is made; by default seven times the resolution")
      ->check(CLI::NonNegativeNumber)
      ->type_name("ANGSTROM");
  app.add_option(
         "--tilt-range", reconstruction.tilts,
         "of the tilts about y that subtomograms without rlnCtfImage were made from: what lies between "
         "was measured, the wedge beyond was not")
      ->type_name("LEAST MOST");
  add_b_factor_sign(app, options.run.b_factor_sign);
  app.add_option("--pixel-size", options.run.pixel_size, "instead of what the STAR file says")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option("--class", options.run.class_number, "only the particles of this rlnClassNumber")
      ->type_name("NUMBER");
  app.add_option("--batch", reconstruction.batch, "particles at a time, 0: by their size")
      ->check(CLI::NonNegativeNumber)
      ->type_name("NUMBER")
      ->capture_default_str();
  add_reproducible(app, reconstruction.reproducible);
  add_memory_limit(app, options.run.memory_limit);
  add_picture_format(app, options.run.picture_ending);
  app.add_option("--demo", options.demo,
                 "simulate particles of a molecule of Gaussian blobs in FOLDER and reconstruct them there")
      ->type_name("FOLDER");
  return run_driver(app, argc, argv, [&](Provenance& provenance, Timings& timings) {
    if (ctf || no_ctf)
      reconstruction.ctf = ctf;
    reconstruction.ewald = ewald ? (reverse ? -1 : 1) : 0;
    if (reconstruction.sampling.kernel == KernelChoice::CatmullRom && app.count("--oversampling") == 0)
      reconstruction.sampling.oversampling = 1.7;
    main_job(options, provenance, timings);
  });
}
