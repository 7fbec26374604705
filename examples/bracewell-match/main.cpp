// SPDX-License-Identifier: MIT
#include "bracewell-match/run.hpp"
#include "common/command_line.hpp"
#include "cryoem/sampling.hpp"

#include <iostream>

int main(int argc, char** argv) {
  using namespace Bracewell::Examples;
  CLI::App app{
      "Finds the molecule of a map in micrographs or tomograms, at every pixel or voxel and in all "
      "orientations. Writes OUT, a STAR file of the peaks with their orientations. Writes for every "
      "micrograph or tomogram the scores (_scores.mrc), the angles of the best orientations (_angles.mrcs: "
      "rot, tilt, psi) and a picture (_peaks.png).",
      "bracewell-match"};
  MatchOptions options;
  app.add_option("--map", options.map, "MRC map to look for, protein white")->required()->type_name("FILE");
  app.add_option("--micrograph", options.micrographs,
                 "micrographs, aligned and summed MRC images; they need --defocus")
      ->type_name("FILE...");
  auto* const tomogram =
      app.add_option("--tomogram", options.tomograms,
                     "tomograms, MRC volumes whose tilt axis is y; --defocus gives templates a CTF")
          ->type_name("FILE...");
  auto* const tilt_min = app.add_option("--tilt-min", options.tilt_min,
                                        "lowest tilt of the views of tomograms; -60 without --tilt-angles")
                             ->needs(tomogram)
                             ->check(CLI::Range(-90.0, 90.0))
                             ->type_name("DEGREES");
  auto* const tilt_max =
      app.add_option("--tilt-max", options.tilt_max, "highest tilt; 60 without --tilt-angles")
          ->needs(tomogram)
          ->check(CLI::Range(-90.0, 90.0))
          ->type_name("DEGREES");
  app.add_option("--tilt-angles", options.tilt_angles,
                 "tilts of all views, a text (.tlt, .rawtlt, .mdoc): only their planes of frequencies count")
      ->needs(tomogram)
      ->excludes(tilt_min)
      ->excludes(tilt_max)
      ->type_name("FILE");
  app.add_option("--block-size", options.block_size,
                 "largest side of the blocks that a tomogram is cut into; smaller ones need less memory")
      ->needs(tomogram)
      ->check(CLI::Range(16, 2048))
      ->type_name("VOXELS")
      ->capture_default_str();
  app.add_option(
         "--star", options.star,
         "micrographs and their contrast transfer: a STAR file with rlnMicrographName, of RELION (1.4 to "
         "5)")
      ->type_name("FILE");
  app.add_option("--out", options.out, "peaks to write, .star")
      ->required()
      ->check(not_ending({".mrc", ".mrcs", ".cs", ".txt", ".png", ".pdf", ".svg"}, ".star"))
      ->type_name("FILE");
  app.add_option(
         "--defocus", options.optics.defocus,
         "one defocus, or two defoci and the angle of the first in degrees, instead of the STAR file's")
      ->expected(1, 3)
      ->type_name("ANGSTROM");
  app.add_option("--voltage", options.optics.voltage, "voltage; 300 if the STAR file has none")
      ->check(CLI::Range(1.0, 10000.0))
      ->type_name("KILOVOLT");
  app.add_option("--cs", options.optics.spherical_aberration,
                 "spherical aberration; 2.7 if the STAR file has none")
      ->type_name("MILLIMETRE");
  app.add_option("--amplitude-contrast", options.optics.amplitude_contrast,
                 "amplitude contrast; 0.07 if the STAR file has none")
      ->check(CLI::Range(-1.0, 1.0))
      ->type_name("FRACTION");
  app.add_option("--phase-shift", options.optics.phase_shift, "phase shift of a phase plate")
      ->type_name("DEGREES");
  app.add_option("--b-factor", options.optics.b_factor,
                 "B factor of the templates, exp(-B k^2 / 4), where the map is sharper than the micrographs")
      ->check(CLI::Range(-10000.0, 10000.0))
      ->type_name("SQUARE_ANGSTROM")
      ->capture_default_str();
  add_choice<ParticleContrast>(
      app, "--contrast", options.contrast,
      "particles in micrographs and tomograms: dark as detectors record them, or white",
      {{"dark", ParticleContrast::Dark}, {"white", ParticleContrast::White}});
  app.add_option("--pixel-size", options.optics.pixel_size,
                 "pixel size of the micrographs or tomograms, instead of the files'")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option("--voxel-size", options.voxel_size, "voxel size of the map, instead of its header's")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option("--angular-step", options.angular_step, "step between viewing directions")
      ->check(CLI::Range(0.1, 180.0))
      ->type_name("DEGREES")
      ->capture_default_str();
  app.add_option("--in-plane-step", options.in_plane_step, "step between rotations in the plane")
      ->check(CLI::Range(0.1, 360.0))
      ->type_name("DEGREES")
      ->capture_default_str();
  add_symmetry(app, options.symmetry, "");
  app.add_option("--defocus-search", options.defocus_search,
                 "also try defoci up to RANGE from the given defocus, in steps of STEP")
      ->expected(2)
      ->type_name("RANGE STEP");
  app.add_option(
         "--resolution", options.resolution,
         "compare up to this resolution; by default the Nyquist limits of micrograph and map. Twice the "
         "period takes a quarter of the time, of tomograms an eighth")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  const auto score = [&](ScoreKind kind) { return [&options, kind](std::int64_t) { options.score = kind; }; };
  auto* const of_templates = app.add_flag_function(
      "--score-over-templates", score(ScoreKind::OfTemplates),
      "find peaks in (maximum - mean) / standard deviation over all templates at a pixel: for large maps and "
      "1000 templates or more");
  app.add_flag_function("--score-over-noise", score(ScoreKind::OfNoise),
                        "find peaks in the correlation, in standard deviations of the noise of the whole "
                        "micrograph. By default the program takes the noise within two boxes of a pixel")
      ->excludes(of_templates);
  app.add_option("--false-positives", options.false_positives,
                 "peaks that a micrograph of noise may have on average; this sets the threshold")
      ->check(CLI::PositiveNumber)
      ->type_name("NUMBER")
      ->capture_default_str();
  app.add_option("--distance", options.distance,
                 "least distance between peaks; by default a quarter of the map's box")
      ->check(CLI::NonNegativeNumber)
      ->type_name("ANGSTROM");
  add_memory_limit(app, options.memory_limit);
  add_picture_format(app, options.picture_ending);
  put_under(app, "Optics",
            {"--defocus", "--voltage", "--cs", "--amplitude-contrast", "--phase-shift", "--b-factor",
             "--contrast"});
  put_under(app, "Tomograms", {"--tomogram", "--tilt-min", "--tilt-max", "--tilt-angles", "--block-size"});
  put_under(app, "Search",
            {"--angular-step", "--in-plane-step", "--symmetry", "--defocus-search", "--resolution"});
  put_under(app, "Peaks",
            {"--score-over-templates", "--score-over-noise", "--false-positives", "--distance"});
  return run_driver(app, argc, argv, [&](Provenance& provenance, Timings& timings) {
    const Space space;
    std::cout << match(space, options, provenance, timings) << '\n';
  });
}
