// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/demo.hpp"
#include "bracewell-ptychography/run.hpp"
#include "common/command_line.hpp"
#include "common/input_error.hpp"
#include "common/processes.hpp"

#include <iostream>

namespace {

using namespace Bracewell;
using namespace Bracewell::Examples;
namespace fs = std::filesystem;

/// Simulates a scan, and says how to reconstruct it: from a lens that is not quite the right one. Options
/// that were given stay.
void prepare_demo(const CLI::App& app, const fs::path& folder, Demo demo, RunOptions& run) {
  demo.modes = run.modes.value_or(1);
  simulate(Space(), demo, folder);
  run.margin = demo.margin(); // the same object, with and without refinement
  run.data = {folder / "scan.cxi"};
  run.out = folder / "scan.h5";
  run.reference = folder / "truth.h5";
  run.probe_size = demo.probe;
  run.convergence_angle = demo.optics.convergence_angle;
  run.aberrations = {10.5, 0.01, 0.5, 0.1, 0.05};
  if (app.count("--train") == 0 && demo.modes == 1)
    run.train = Train::Aberrations;
  if (app.count("--start") == 0)
    run.start = Start::Random;
}

void main_job(const CLI::App& app, const std::optional<fs::path>& folder, const Demo& demo, RunOptions& run,
              Provenance& provenance, Timings& timings) {
  for (const char* option : {"--defocus", "--cs", "--astigmatism", "--astigmatism-angle", "--smoothness"})
    if (app.count(option) > 0)
      run.lens_options.emplace_back(option);
  if (folder) {
    require_one_process();
    for (const std::string option :
         {"--data", "--out", "--reference", "--probe-size", "--convergence-angle", "--defocus", "--cs",
          "--astigmatism", "--astigmatism-angle", "--smoothness", "--resume", "--continue", "--try-axes",
          "--slices", "--relaxation-modes", "--find-factors", "--find-background"})
      if (app.count(option) > 0)
        throw InputError("--demo makes its own data: " + option + " does not go with it");
    prepare_demo(app, *folder, demo, run);
  }
  if (run.data.empty() || run.out.empty())
    throw InputError("--data and --out are required, or --demo (see --help)");
  std::cout << reconstruct(Space(), run, provenance, timings) << '\n';
}

void add_measurement_options(CLI::App& app, MeasurementOptions& measurement) {
  const std::string group = "The measurement";
  const auto add = [&](const char* name, auto& value, const char* description, const char* type) {
    return app.add_option(name, value, description)->type_name(type)->group(group);
  };
  add("--data-path", measurement.data, "dataset of the patterns", "NAME");
  add("--positions-path", measurement.positions,
      "dataset of the positions, or two datasets, rows and columns", "NAME")
      ->expected(1, 2);
  add("--scan-step", measurement.scan_step,
      "step of a raster scan without positions, stored as [rows, columns, ...]: down and across, or one for "
      "both",
      "METRES")
      ->expected(1, 2)
      ->check(CLI::PositiveNumber);
  add("--mask-path", measurement.mask, "dataset of the mask, 0 for good pixels", "NAME");
  app.add_flag("--invert-mask", measurement.invert_mask, "pixels of the mask that are not 0 are good")
      ->group(group);
  add("--probe-path", measurement.probe, "dataset of the first probe", "NAME");
  app.add_flag("--ignore-probe", measurement.ignore_probe, "estimate the first probe, whatever the file has")
      ->group(group);
  add("--wavelength", measurement.wavelength, "wavelength, instead of the file's", "METRES")
      ->check(CLI::PositiveNumber);
  add("--distance", measurement.distance, "distance from sample to detector, instead of the file's", "METRES")
      ->check(CLI::PositiveNumber);
  add("--detector-pixel", measurement.detector_pixel, "pixel of the detector, instead of the file's",
      "METRES")
      ->check(CLI::PositiveNumber);
  add("--object-pixel", measurement.object_pixel,
      "pixel of object and positions, instead of wavelength distance / (n detector pixel)", "METRES")
      ->check(CLI::PositiveNumber);
  add("--focus-distance", measurement.focus_distance,
      "near field: the beam diverges from a focus at this distance before the sample", "METRES")
      ->check(CLI::PositiveNumber);
  add("--centre", measurement.centre,
      "row and column of the zero frequency; by default the file's beam_center, or the middle", "ROW COLUMN")
      ->expected(2);
  add("--axes", measurement.axes,
      "coordinates along rows and columns of the object, as in yx, xy, y-x, --axes=-yx", "AXES")
      ->capture_default_str();
  add("--rotation", measurement.rotation, "rotation of the scan, from the row axis to the column axis",
      "DEGREES")
      ->capture_default_str();
  add("--detector", measurement.detector, "n: take only this many pixels around the centre", "PIXELS");
  app.add_flag_callback(
         "--positions-in-metres", [&measurement] { measurement.positions_in_metres = true; },
         "positions are in metres, as CXI has them; positions in /scan are in object pixels by default")
      ->group(group);
  app.add_flag_callback(
         "--positions-in-pixels", [&measurement] { measurement.positions_in_metres = false; },
         "positions are in pixels of the object, whatever the file says")
      ->group(group);
  add("--every", measurement.every, "take each n-th pattern only", "NUMBER")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
}

void add_model_options(CLI::App& app, RunOptions& run) {
  add_choice<std::optional<PatternLoss>>(
      app, "--loss", run.loss,
      "comparison of measured and modelled patterns; auto: poisson below 3 counts in a bright pixel, else "
      "amplitude",
      {{"auto", std::nullopt},
       {"amplitude", PatternLoss::Amplitude},
       {"least-squares", PatternLoss::LeastSquares},
       {"poisson", PatternLoss::Poisson}});
  add_choice<Train>(
      app, "--train", run.train, "parts of the probe to find with the object",
      {{"pixels", Train::Pixels}, {"aberrations", Train::Aberrations}, {"nothing", Train::Nothing}});
  add_choice<Start>(app, "--start", run.start,
                    "the first object: 1, or amplitude 0.9 + 0.1 N(0,1) and phase 0.1 N(0,1)",
                    {{"flat", Start::Flat}, {"random", Start::Random}});
  add_choice<StorageType>(app, "--storage", run.storage, "storage of the measured patterns",
                          {{"float", StorageType::Float}, {"half", StorageType::Half}});
  auto* const scale = app.add_flag_callback(
      "--scale-patterns", [&run] { run.scale_patterns = true; },
      "compare shapes alone: scale every pattern to the same mean. This is the default with least-squares "
      "and with aberrations");
  app.add_flag_callback(
         "--no-scale-patterns", [&run] { run.scale_patterns = false; },
         "compare patterns as they were counted")
      ->excludes(scale);
  app.add_flag_callback(
         "--scale-models", [&run] { run.scale_patterns = run.keep_counts = true; },
         "scale every modelled pattern to the counts of the measured one, so that bright patterns weigh more "
         "than dark ones")
      ->excludes(scale)
      ->excludes("--no-scale-patterns");
  app.add_flag("--reduced-grid", run.reduced_grid,
               "compare on the smallest grid that is exact (least-squares without mask)");
  app.add_flag("--subpixel", run.subpixel, "do not round positions to whole pixels");
  app.add_option("--probe-size", run.probe_size,
                 "m: width of the probe's window; by default the given probe's, or the detector's")
      ->check(CLI::Range(1, 8192))
      ->type_name("PIXELS");
  app.add_option("--modes", run.modes, "incoherent modes of the probe")
      ->check(CLI::Range(1, 64))
      ->type_name("NUMBER")
      ->default_str("1");
}

void add_constraints(CLI::App& app, RunOptions& run) {
  const std::string group = "What is known of object and probe";
  app.add_option("--amplitude-limits", run.amplitude_limits,
                 "the least and the largest amplitude of the object")
      ->expected(2)
      ->type_name("LOW HIGH")
      ->group(group);
  app.add_option("--probe-support", run.probe_support,
                 "radius of a disc in the middle of the window; the probe is zero beyond it")
      ->check(CLI::PositiveNumber)
      ->type_name("PIXELS")
      ->group(group);
  auto* const support =
      app.add_option(
             "--object-support", run.object_support,
             "HDF5 file whose dataset /support [rows, columns], as large as the object in OUT, is positive "
             "where the object is to be found")
          ->type_name("FILE")
          ->group(group);
  app.add_option("--beyond-support", run.beyond_support,
                 "amplitude of the object outside of --object-support: 1 for nothing in the beam")
      ->check(CLI::NonNegativeNumber)
      ->type_name("AMPLITUDE")
      ->capture_default_str()
      ->needs(support)
      ->group(group);
  app.add_option(
         "--smooth", run.total_variation,
         "weight of the object's total variation beside the patterns, 0.05 to 0.5: noise goes and edges stay")
      ->check(CLI::NonNegativeNumber)
      ->type_name("WEIGHT")
      ->group(group);
}

void add_thick_options(CLI::App& app, RunOptions& run) {
  const std::string group = "Beyond one probe on a thin object (in one process)";
  auto* const slices = app.add_option("--slices", run.slices, "slices of the object along the beam")
                           ->check(CLI::Range(1, 64))
                           ->type_name("NUMBER")
                           ->capture_default_str()
                           ->group(group);
  app.add_option("--slice-distance", run.slice_distance,
                 "distance from each slice to the next: one for all, or one for each")
      ->check(CLI::PositiveNumber)
      ->type_name("METRES")
      ->needs(slices)
      ->group(group);
  app.add_option("--specimen-tilt", run.specimen_tilt,
                 "tilt of the specimen: the beam moves by its tangent times --slice-distance to the next "
                 "slice, along rows and columns")
      ->expected(2)
      ->type_name("MRAD")
      ->needs(slices)
      ->group(group);
  app.add_option("--relaxation-modes", run.relaxation,
                 "modes by which the probe of a pattern differs from the mean probe")
      ->check(CLI::Range(0, 64))
      ->type_name("NUMBER")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--find-factors", run.find_factors, "find a factor of the intensity of each pattern")
      ->group(group);
  app.add_flag("--find-background", run.find_background,
               "find counts of each detector pixel that all patterns have beside the model's")
      ->group(group);
}

void add_position_options(CLI::App& app, RunOptions& run) {
  const std::string group = "Positions that are not quite known";
  auto* const refine = app.add_flag("--refine-positions", run.refine_positions,
                                    "find positions with the object; they are not rounded then")
                           ->group(group);
  const auto add = [&](const char* name, double& value, const char* description) {
    app.add_option(name, value, description)
        ->check(CLI::PositiveNumber)
        ->type_name("PIXELS")
        ->capture_default_str()
        ->needs(refine)
        ->group(group);
  };
  add_choice<PositionMoves>(
      app, "--positions", run.position_moves,
      "moves with --refine-positions: of each position by itself, by an affine map of the "
      "scan (scale, rotation and shear; the probe has to be known, --train nothing), or both",
      {{"single", PositionMoves::Single}, {"affine", PositionMoves::Affine}, {"both", PositionMoves::Both}});
  put_under(app, group, {"--positions"});
  add("--position-rate", run.position_rate, "learning rate");
  add("--position-limit", run.position_limit, "the largest move of a position on each axis");
}

void add_demo_options(CLI::App& app, Demo& demo, CLI::Option* folder) {
  const std::string group = "The demonstration (--modes is of its probe, too)";
  app.add_option("--position-errors", demo.position_errors,
                 "the largest error of the written positions on each axis")
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("PIXELS")
      ->capture_default_str()
      ->needs(folder)
      ->group(group);
  app.add_flag("--masked-detector", demo.masked, "give the detector two parts with a gap, and dead pixels")
      ->needs(folder)
      ->group(group);
}

void add_lens_options(CLI::App& app, RunOptions& run) {
  const std::string group = "A lens as the first probe";
  app.add_option("--convergence-angle", run.convergence_angle,
                 "half angle of the aperture, instead of the file's; a lens needs it")
      ->check(CLI::PositiveNumber)
      ->type_name("RADIANS")
      ->group(group);
  const auto add = [&](const char* name, ProbeParameter parameter, const char* unit,
                       const char* description) {
    const auto c = static_cast<std::size_t>(parameter);
    app.add_option(name, run.aberrations[c], description)
        ->type_name(unit)
        ->capture_default_str()
        ->group(group);
    app.add_option(std::string(name) + "-rate", run.aberration_rates[c], "learning rate")
        ->check(CLI::NonNegativeNumber)
        ->type_name(unit)
        ->capture_default_str()
        ->group(group);
  };
  add("--defocus", Defocus, "NM", "defocus");
  add("--cs", SphericalAberration, "MM", "spherical aberration");
  add("--astigmatism", Astigmatism, "NM", "magnitude of the astigmatism");
  add("--astigmatism-angle", AstigmatismAngle, "RADIANS", "direction of the astigmatism, from the row axis");
  add("--smoothness", ApertureSmoothness, "PART", "width of the aperture's edge, as a part of its radius");
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Reconstructs object and probe from a ptychographic measurement (CXI, NXcxi_ptycho or plain HDF5) by "
      "Adam on exact gradients, ePIE, rPIE or LSQ-ML. Writes OUT (HDF5: /object/amplitude, /object/phase, "
      "/probe, /positions, /loss, /settings) and its pictures (_phase.png, _amplitude.png, _probe.png, "
      "_loss.png). _patterns.png has measured and modelled patterns.",
      "bracewell-ptychography"};
  RunOptions run;
  std::optional<fs::path> folder;
  Demo demo;
  app.add_option("--data", run.data, "measurement, HDF5; several scans share one probe")->type_name("FILE");
  app.add_flag("--one-object", run.one_object,
               "the scans have one object, and positions that count from one place. Otherwise each scan has "
               "its own object, one below the other");
  app.add_option("--out", run.out, "reconstruction to write, HDF5")->type_name("FILE");
  app.add_option("--reference", run.reference, "reconstruction to compare with, after alignment")
      ->type_name("FILE");
  app.add_option("--continue", run.continued,
                 "begin with object, probe and positions of this reconstruction of the same patterns. "
                 "--modes, --refine-positions and all other options may differ")
      ->type_name("FILE");
  app.add_flag("--try-axes", run.try_axes,
               "first reconstruct 64 patterns from the middle with each of the eight --axes and both signs "
               "of the probe's curvature, and take the best");
  app.add_flag("--frc", run.correlate_halves,
               "reconstruct both halves of the patterns, too, and write their Fourier ring correlation "
               "(_frc.txt, _frc.png); this takes as long again");
  auto* const with_demo =
      app.add_option("--demo", folder, "simulate a scan in FOLDER and reconstruct it there")
          ->type_name("FOLDER");
  app.add_option("--passes", run.passes, "passes over all patterns")
      ->check(CLI::Range(1, 1000000))
      ->type_name("NUMBER")
      ->default_str("60, 200 by adam alone");
  app.add_option(
         "--batches", run.batches,
         "steps in a pass, each with its part of the patterns; by default about 16 patterns in a step")
      ->check(CLI::Range(1, 1000000))
      ->type_name("NUMBER");
  auto* const decay = app.add_flag_callback(
      "--decay", [&run] { run.decay = true; },
      "let all rates fall to 0 over the last half of the passes; this is the default with --batches and "
      "--refine-positions");
  app.add_flag_callback(
         "--no-decay", [&run] { run.decay = false; }, "keep the rates as they are")
      ->excludes(decay);
  add_reproducible(app, run.reproducible);
  add_memory_limit(app, run.memory_limit);
  app.add_option("--device-memory", run.device_memory,
                 "memory of the GPU that arrays may use; more patterns stay in the host's memory and come in "
                 "groups beside the work")
      ->check(CLI::PositiveNumber)
      ->type_name("MEGABYTES");
  add_picture_format(app, run.picture_ending);
  add_choice<Algorithm>(app, "--algorithm", run.algorithm,
                        "steps; automatic takes whole steps of rpie, then adam. epie, rpie and lsq-ml take "
                        "the amplitude loss, and want many --batches",
                        {{"automatic", Algorithm::Automatic},
                         {"adam", Algorithm::Adam},
                         {"epie", Algorithm::EPIE},
                         {"rpie", Algorithm::RPIE},
                         {"lsq-ml", Algorithm::LSQML}});
  app.add_option("--object-rate", run.object_rate,
                 "learning rate of amplitude and phase with adam (0.04), or the part of a step that the "
                 "other algorithms take (1)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("RATE");
  app.add_option("--probe-rate", run.probe_rate,
                 "learning rate of the probe's pixels with adam, over their root mean square (0.01), or the "
                 "part of a step that the other algorithms take (1)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("RATE");
  app.add_option("--regularisation", run.regularisation,
                 "for rpie and lsq-ml: near 0 pixels with little light move as far as others, with 1 as in "
                 "epie (0.1)")
      ->check(CLI::Range(1e-6, 1.0))
      ->type_name("ALPHA");
  app.add_option("--seed", run.seed, "seed of random numbers")->type_name("NUMBER")->capture_default_str();
  add_model_options(app, run);
  add_lens_options(app, run);
  add_constraints(app, run);
  add_thick_options(app, run);
  add_position_options(app, run);
  add_demo_options(app, demo, with_demo);
  add_measurement_options(app, run.measurement);
  add_checkpoint_options(app, run.checkpoint);
  put_under(app, "Where it begins", {"--continue", "--start", "--try-axes", "--seed"});
  put_under(app, "Steps",
            {"--passes", "--batches", "--algorithm", "--object-rate", "--probe-rate", "--regularisation",
             "--decay", "--no-decay"});
  put_under(app, "Comparison of patterns",
            {"--loss", "--train", "--scale-patterns", "--no-scale-patterns", "--scale-models",
             "--reduced-grid", "--subpixel", "--storage"});
  put_under(app, "The probe", {"--probe-size", "--modes"});
  return run_driver(app, argc, argv, [&](Provenance& provenance, Timings& timings) {
    run.checkpoint.identity =
        identity_of(app, {"--passes", "--memory-limit", "--device-memory", "--pictures"});
    main_job(app, folder, demo, run, provenance, timings);
  });
}
