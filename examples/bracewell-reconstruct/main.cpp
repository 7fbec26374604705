// SPDX-License-Identifier: MIT
#include "bracewell-reconstruct/demo.hpp"
#include "bracewell-reconstruct/run.hpp"
#include "common/command_line.hpp"
#include "common/processes.hpp"

#include <iostream>
#include <vector>

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
  CLI::App app{"Reconstructs a map from particles whose poses are known. Writes OUT, its half maps "
               "(_half1.mrc, _half2.mrc), a sharpened map (_sharpened.mrc) and local resolution "
               "(_local_resolution.mrc). Writes the Fourier shell correlation (_fsc.txt, _fsc.png), weights "
               "and resolution by direction (_directions.txt, _directions.png), central slices (_slices.png) "
               "and all of it in one picture (_summary.png).",
               "bracewell-reconstruct"};
  Options options;
  auto& reconstruction = options.run.reconstruction;
  app.add_option("--star", options.run.star,
                 "particles with poses: a STAR file of RELION (1.4 to 5; the optimisation set of tilt "
                 "series) or cisTEM, or cryoSPARC's .cs; with images or subtomograms")
      ->type_name("FILE");
  app.add_option("--out", options.run.out, "map to write, .mrc")
      ->check(not_ending({".star", ".cs", ".mrcs", ".txt", ".png", ".pdf", ".svg"}, ".mrc"))
      ->type_name("FILE");
  app.add_option("--reference", options.run.reference,
                 "map to compare with, by correlation, error and slices")
      ->type_name("FILE");
  add_symmetry(app, reconstruction.symmetry, "");
  auto* const rise = add_helix(app, options.run.helical_rise, options.run.helical_twist);
  app.add_option("--helical-rise-range", options.run.helical_rise_range,
                 "search the rise within this distance, where the map agrees best with itself")
      ->check(CLI::NonNegativeNumber)
      ->type_name("ANGSTROM")
      ->needs(rise);
  app.add_option("--helical-twist-range", options.run.helical_twist_range,
                 "search the twist within this angle, where the map agrees best with itself")
      ->check(CLI::Range(0.0, 180.0))
      ->type_name("DEGREES")
      ->needs(rise);
  app.add_option("--helical-asu", options.run.helical_asu,
                 "subunits of the helix that a segment gives (made odd); by default as many as keep the "
                 "middle 30 % of the box in it")
      ->check(CLI::Range(1, 9999))
      ->type_name("NUMBER")
      ->needs(rise);
  bool ctf = false, no_ctf = false;
  auto* const ctf_flag =
      app.add_flag("--ctf", ctf,
                   "correct for the contrast transfer; this is the default if the STAR file has its columns");
  app.add_flag("--no-ctf", no_ctf, "do not correct for the contrast transfer")->excludes(ctf_flag);
  bool ewald = false, reverse = false;
  auto* const ewald_flag = app.add_flag(
      "--ewald", ewald, "correct for the curvature of the Ewald sphere, with the sign of RELION's --ewald");
  app.add_flag("--reverse-curvature", reverse, "bend the sphere the other way, for images of the other hand")
      ->needs(ewald_flag);
  app.add_option("--mask-diameter", options.run.mask_diameter,
                 "diameter of a soft sphere around the map, and around the half maps for their correlation. "
                 "Half maps are written without it. By default the sphere fits the box")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  add_sampling_options(app, reconstruction.sampling,
                       "linear and bspline3 like 2. catmull_rom is most accurate at 1.7: less lets aliases "
                       "in, more leaves too "
                       "few samples per voxel for its signed weights");
  app.add_flag("--normalise", reconstruction.normalise,
               "subtract from every image its mean outside of the largest disc");
  app.add_option("--wiener", reconstruction.wiener,
                 "add this noise over signal power to every weight (a sum of CTF^2). By default the half "
                 "sets tell it for every shell, and catmull_rom adds nothing")
      ->check(CLI::NonNegativeNumber)
      ->type_name("WEIGHT");
  app.add_option("--floor", reconstruction.floor,
                 "the least weight, as a part of the mean at its resolution. The default is 0.001, and 0.2 "
                 "with catmull_rom, whose signed weights can cancel")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("FRACTION");
  app.add_option("--gridding-steps", reconstruction.gridding_steps,
                 "the most steps of the iteration that weighs neighbouring samples as the map mixes them "
                 "(Pipe & Menon). 0 divides data by weights. catmull_rom does not take it")
      ->check(CLI::Range(0, 1000))
      ->type_name("NUMBER")
      ->capture_default_str();
  app.add_option("--b-factor", options.run.b_factor,
                 "B factor of the sharpened map, exp(-B k^2 / 4): a negative one sharpens. By default it is "
                 "fitted from 10 A to where half maps agree to 0.143")
      ->check(CLI::Range(-10000.0, 10000.0))
      ->type_name("SQUARE_ANGSTROM");
  app.add_option("--local-resolution", options.run.window,
                 "width of the windows in which the half maps are compared for the map of local resolution. "
                 "0 makes no such map. The default is seven times the resolution")
      ->check(CLI::NonNegativeNumber)
      ->type_name("ANGSTROM");
  app.add_option_function<std::vector<double>>(
         "--tilt-range",
         [&reconstruction](const std::vector<double>& range) {
           reconstruction.tilts = {range[0], range[1]};
         },
         "least and largest tilt about y of subtomograms without rlnCtfImage; the wedge beyond was not "
         "measured")
      ->expected(2)
      ->type_name("LEAST MOST");
  add_b_factor_sign(app, options.run.b_factor_sign);
  app.add_option("--pixel-size", options.run.pixel_size, "pixel size, instead of the STAR file's")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option("--class", options.run.class_number, "take only the particles of this rlnClassNumber")
      ->type_name("NUMBER");
  app.add_option("--batch", reconstruction.batch, "particles at a time; 0 chooses by their size")
      ->check(CLI::NonNegativeNumber)
      ->type_name("NUMBER")
      ->capture_default_str();
  add_reproducible(app, reconstruction.reproducible);
  add_memory_limit(app, options.run.memory_limit);
  add_picture_format(app, options.run.picture_ending);
  app.add_option("--demo", options.demo,
                 "simulate particles of a molecule of Gaussian blobs in FOLDER and reconstruct them there")
      ->type_name("FOLDER");
  put_under(app, "Particles", {"--pixel-size", "--class", "--normalise", "--b-factor-sign"});
  put_under(app, "Symmetry",
            {"--symmetry", "--helical-rise", "--helical-twist", "--helical-rise-range",
             "--helical-twist-range", "--helical-asu"});
  put_under(app, "Optics", {"--ctf", "--no-ctf", "--ewald", "--reverse-curvature"});
  put_under(app, "Interpolation and weights",
            {"--kernel", "--oversampling", "--correction", "--wiener", "--floor", "--gridding-steps"});
  put_under(app, "What comes with the map", {"--mask-diameter", "--b-factor", "--local-resolution"});
  return run_driver(app, argc, argv, [&](Provenance& provenance, Timings& timings) {
    if (ctf || no_ctf)
      reconstruction.ctf = ctf;
    reconstruction.ewald = ewald ? (reverse ? -1 : 1) : 0;
    if (reconstruction.sampling.kernel == KernelChoice::CatmullRom && app.count("--oversampling") == 0)
      reconstruction.sampling.oversampling = 1.7;
    main_job(options, provenance, timings);
  });
}
