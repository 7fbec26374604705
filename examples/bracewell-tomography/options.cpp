// SPDX-License-Identifier: MIT
#include "bracewell-tomography/options.hpp"

#include <cstdlib>
#include <map>

namespace Bracewell::Examples {
namespace {

const std::map<std::string, AngleUnit> angle_units{{"degrees", AngleUnit::Degrees},
                                                   {"radians", AngleUnit::Radians}};

const std::map<std::string, StoredType> output_types{{"float16", StoredType::Float16},
                                                     {"float32", StoredType::Float32}};

const std::map<std::string, Method> methods{
    {"fourier", Method::Fourier}, {"log-polar", Method::LogPolar}, {"line", Method::Line}};
/// Python's spelling, too.
const auto spelt_methods = [] {
  auto spelt = methods;
  spelt["log_polar"] = Method::LogPolar;
  return spelt;
}();
const std::map<std::string, LeastSquaresMethod> solvers{{"cgls", LeastSquaresMethod::ConjugateGradients},
                                                        {"sirt", LeastSquaresMethod::SIRT},
                                                        {"fista-tv", LeastSquaresMethod::TotalVariation}};
const std::map<std::string, ValueWeights> weights_of_values{{"none", ValueWeights::None},
                                                            {"transmission", ValueWeights::Transmission}};
const std::map<std::string, TomographyFilter> filters{
    {"none", TomographyFilter::None},       {"ramp", TomographyFilter::Ramp},
    {"shepp", TomographyFilter::Shepp},     {"cosine", TomographyFilter::Cosine},
    {"cosine2", TomographyFilter::Cosine2}, {"hamming", TomographyFilter::Hamming},
    {"hann", TomographyFilter::Hann},       {"parzen", TomographyFilter::Parzen}};
const std::map<std::string, ProjectionPadding> paddings{{"zero", ProjectionPadding::Zero},
                                                        {"edge", ProjectionPadding::Edge}};
const std::map<std::string, StripeChoice> stripe_methods{{"none", StripeChoice::None},
                                                         {"offset", StripeChoice::Offset},
                                                         {"sorting", StripeChoice::Sorting},
                                                         {"all", StripeChoice::All},
                                                         {"wavelet", StripeChoice::Wavelet}};
const std::map<std::string, PhaseChoice> phase_methods{
    {"none", PhaseChoice::None},
    {"paganin", PhaseChoice::Paganin},
    {"generalised-paganin", PhaseChoice::GeneralisedPaganin},
    {"weak-object", PhaseChoice::WeakObject}};
const std::map<std::string, BetweenFlats> flats_between{{"linear", BetweenFlats::Linear},
                                                        {"nearest", BetweenFlats::Nearest}};

/// "fourier|line|log-polar"
template <class Choice>
std::string names_of(const std::map<std::string, Choice>& choices) {
  std::string names;
  for (const auto& [name, choice] : choices)
    names += (names.empty() ? "" : "|") + name;
  return names;
}

/// What is read, and how it is taken.
void add_scan_options(CLI::App& app, TomographyOptions& options) {
  RunOptions& run = options.run;
  app.add_option(
         "--scan", run.scan.file,
         "HDF5 (Scientific Data Exchange, NXtomo); .tif with a page per projection, a folder or pattern "
         "(\"scan/p_*.tif\") of such files, or one sinogram [angles, width] as .tif; a tilt series as .mrc")
      ->type_name("FILE");
  app.add_option("--out", run.out,
                 "slices to write: .h5 (/exchange/data), .tif (pages), slice_%05d.tif (a file for each) or "
                 ".zarr (OME)")
      ->type_name("FILE");
  app.add_option("--output-type", run.output_type,
                 "type of the slices; float16 keeps 3 digits of values up to 65504")
      ->transform(CLI::CheckedTransformer(output_types).description(""))
      ->type_name(names_of(output_types))
      ->default_str("float32");
  app.add_option("--data", run.scan.data, "projections [angles, rows, width]")
      ->type_name("DATASET")
      ->capture_default_str();
  app.add_option("--flat", run.scan.flat,
                 "frames without object: a dataset of the scan, FILE:DATASET, or a .tif or .mrc. Without "
                 "them the program takes data for transmission")
      ->type_name("DATASET")
      ->capture_default_str();
  app.add_option("--dark", run.scan.dark,
                 "frames without beam: a dataset of the scan, FILE:DATASET, or a .tif or .mrc")
      ->type_name("DATASET")
      ->capture_default_str();
  app.add_option("--angles", run.scan.angles,
                 "angles in degrees: a dataset, FILE:DATASET, or a text (.txt, .tlt, .rawtlt, .mdoc). "
                 "Without them the program takes even angles over 180")
      ->type_name("DATASET")
      ->capture_default_str();
  auto* const span =
      app.add_option("--span", run.scan.span, "take even angles over this span, instead of the file's")
          ->type_name("DEGREES");
  app.add_option("--first-angle", run.scan.first_angle, "the first of the even angles; 0 by default")
      ->type_name("DEGREES");
  app.add_option("--angle-unit", run.scan.angle_unit,
                 "unit of the angles in the file, instead of what it says")
      ->transform(CLI::CheckedTransformer(angle_units).description(""))
      ->type_name(names_of(angle_units));
  app.add_flag("--both-ends", run.scan.both_ends, "the last even angle is at the end of the span")
      ->needs(span);
  app.add_option("--leave-out", options.leave_out,
                 "leave out projections by their numbers, from 0 in the order of the file: 7,30:40")
      ->delimiter(',')
      ->type_name("N,BEGIN:END");
  app.add_option("--leave-out-flats", options.leave_out_flats,
                 "leave out flat frames by their numbers, from 0 in the order of their file: 3,5:8")
      ->delimiter(',')
      ->type_name("N,BEGIN:END");
  auto* const no_log = app.add_flag("--no-log", options.no_log, "data are attenuation already");
  app.add_flag("--log", options.take_log,
               "data are transmission. This is the default, unless there are no frames without object and "
               "values are often 0 or less")
      ->excludes(no_log);
  app.add_option("--flat-at", run.scan.flat_at,
                 "the flat field drifts: numbers of the projections before which flat frames were taken, as "
                 "many each time (0,1500: before 0 and before 1500). Without it the program takes the mean "
                 "of all flat frames")
      ->delimiter(',')
      ->type_name("N,N");
  app.add_option("--flat-between", options.between, "the flat field between these times")
      ->transform(CLI::CheckedTransformer(flats_between).description(""))
      ->type_name(names_of(flats_between))
      ->default_str("linear");
  app.add_option("--binning", run.binning,
                 "average squares of this many pixels a side; other options count these larger pixels")
      ->check(CLI::IsMember({1, 2, 4, 8}))
      ->type_name("1|2|4|8")
      ->capture_default_str();
  app.add_option("--columns", options.columns,
                 "columns of the detector to take; by default all. Other options count pixels from BEGIN")
      ->type_name("BEGIN:END");
}

/// Of the steps before the slices.
void add_detector_options(CLI::App& app, TomographyOptions& options) {
  RunOptions& run = options.run;
  app.add_option("--zingers", options.zingers,
                 "replace values by the median around them if their attenuations differ by more than this")
      ->check(CLI::PositiveNumber)
      ->type_name("DIFFERENCE");
  app.add_option("--zinger-window", options.zinger_window, "angles and columns of the median of --zingers")
      ->check(CLI::IsMember({3, 5, 7, 9}))
      ->type_name("3|5|7|9")
      ->capture_default_str();
  app.add_option("--roll", run.roll,
                 "roll of the detector about its middle; the program rolls projections back, with linear "
                 "interpolation")
      ->check(CLI::Range(-45., 45.))
      ->type_name("DEGREES")
      ->capture_default_str();
  app.add_option("--phase", options.phase,
                 "retrieve phases from waves that have spread, for objects of one material. weak-object "
                 "takes the contrast transfer function")
      ->transform(CLI::CheckedTransformer(phase_methods).description(""))
      ->type_name(names_of(phase_methods))
      ->default_str("none");
  app.add_option("--energy", options.energy, "energy of the beam, for --phase")->type_name("KEV");
  app.add_option("--distance", options.distance, "distance from object to detector, for --phase")
      ->type_name("MILLIMETRES");
  app.add_option("--pixel-size", options.pixel_size, "pixel of the detector before --binning, for --phase")
      ->type_name("MICROMETRES");
  app.add_option("--delta-beta", options.delta_beta,
                 "ratio of the refractive index 1 - delta + i beta, for --phase")
      ->type_name("RATIO");
  app.add_option("--regularisation", options.regularisation,
                 "for weak-object: a larger number damps lost frequencies more")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--hardening", run.hardening,
                 "polynomial of beam hardening, C0,C1,...: attenuation a becomes C0 a + C1 a^2 + ...")
      ->delimiter(',')
      ->expected(1, 8)
      ->type_name("C,C");
  auto* const laminography =
      app.add_option("--laminography", run.laminography,
                     "tilt of the rotation axis out of the plane across the beam. All rows together give a "
                     "volume. It needs --centre, and angles over a whole turn")
          ->check(CLI::Range(-85., 85.))
          ->type_name("DEGREES");
  app.add_option("--depth", run.depth,
                 "slices of the volume of --laminography about its middle; by default as many as rows")
      ->check(CLI::Range(1, 16384))
      ->type_name("SLICES")
      ->needs(laminography);
  app.add_flag(
      "--half-acquisition", run.half_acquisition,
      "the scan is a whole turn with the axis near an end of the detector: slices are up to twice as wide");
  app.add_option("--size", run.size,
                 "width of the slices about the axis; by default all that the detector sees")
      ->check(CLI::Range(1, 65536))
      ->type_name("PIXELS");
  app.add_option(
         "--air", options.air,
         "columns without object: divide every row by its mean there, or subtract the mean with --no-log")
      ->type_name("BEGIN:END");
}

void add_stripe_options(CLI::App& app, TomographyOptions& options) {
  app.add_option("--stripes", options.stripes,
                 "remove stripes, which make rings; --demo takes sorting by default")
      ->transform(CLI::CheckedTransformer(stripe_methods, CLI::ignore_case).description(""))
      ->type_name(names_of(stripe_methods))
      ->default_str("none");
  app.add_option("--stripe-strength", options.stripe_options.strength,
                 "for offset: less removes wider stripes, and more of the object")
      ->check(CLI::PositiveNumber)
      ->type_name("STRENGTH")
      ->capture_default_str();
  app.add_option("--stripe-levels", options.stripe_options.levels,
                 "for wavelet: remove stripes up to half of 2^LEVELS columns wide")
      ->check(CLI::Range(1, 12))
      ->type_name("LEVELS")
      ->capture_default_str();
  app.add_option("--stripe-damping", options.stripe_options.damping,
                 "for wavelet: cycles per scan over which stripes may change")
      ->check(CLI::Range(0.1, 100.))
      ->type_name("CYCLES")
      ->capture_default_str();
  app.add_option("--stripe-ratio", options.stripe_options.ratio,
                 "for all: a stripe differs this many times more than all columns differ")
      ->check(CLI::PositiveNumber)
      ->type_name("RATIO")
      ->capture_default_str();
  app.add_option("--large-window", options.stripe_options.large_window,
                 "for all: columns of the median for large stripes, odd, twice the widest stripe")
      ->check(CLI::Range(1, 63))
      ->check([](const std::string& text) {
        return (text.back() - '0') % 2 == 1 ? std::string() : "expected an odd number, found " + text;
      })
      ->type_name("COLUMNS")
      ->capture_default_str();
  app.add_option("--stripe-window", options.stripe_options.window,
                 "for sorting and all: columns of the median, odd")
      ->check(CLI::Range(1, 63))
      ->check([](const std::string& text) {
        return (text.back() - '0') % 2 == 1 ? std::string() : "expected an odd number, found " + text;
      })
      ->type_name("COLUMNS")
      ->capture_default_str();
  app.add_option(
         "--dead", options.stripe_options.dead,
         "interpolate columns that change this many times more or less than the columns beside them; 0 "
         "interpolates none. --stripes all does not take it")
      ->check([](const std::string& text) {
        const double ratio = std::strtod(text.c_str(), nullptr);
        return ratio == 0 || (ratio > 1 && ratio < 1e6) ? std::string()
                                                        : "expected 0 or a ratio above 1, found " + text;
      })
      ->type_name("RATIO")
      ->capture_default_str();
}

/// Of the axis and of the method.
void add_method_options(CLI::App& app, TomographyOptions& options) {
  RunOptions& run = options.run;
  app.add_option("--centre", options.centre, "pixel of the rotation axis")
      ->type_name("PIXEL|auto")
      ->capture_default_str();
  auto* const align = app.add_flag_callback(
      "--align", [&run] { run.align = AlignedViews::Shifts; },
      "the scan drifts: find horizontal shifts of the projections first, and write them to _views.txt");
  app.add_flag_callback(
         "--align-angles", [&run] { run.align = AlignedViews::Angles; },
         "find horizontal shifts and angles of the projections first, which takes several times as long")
      ->excludes(align);
  app.add_option("--try-centres", options.try_centres,
                 "draw the middle slice at these centres in one picture; OUT ends with .png, .pdf or .svg")
      ->type_name("FIRST:LAST:STEP");
  app.add_option("--try-tilts", options.try_tilts,
                 "draw the middle slice at these rolls in one picture; it needs --centre")
      ->type_name("FIRST:LAST:STEP");
  app.add_option("--method", run.method,
                 "method of the back-projection; log-polar takes even angles over 180 degrees alone and is "
                 "never the fastest")
      ->transform(CLI::CheckedTransformer(spelt_methods, CLI::ignore_case).description(""))
      ->type_name(names_of(methods))
      ->default_str("fourier");
  app.add_option("--tolerance", run.tolerance, "relative error of the Fourier method")
      ->check(CLI::Range(1e-6, 1e-1))
      ->capture_default_str();
}

/// Of iterations, of filters, and of what is kept.
void add_solver_options(CLI::App& app, TomographyOptions& options) {
  RunOptions& run = options.run;
  auto* const solver =
      app.add_option("--solver", options.solver,
                     "iterate to least squares instead of filtering, for few or noisy views and limited "
                     "angles. All that the detector sees has to lie within the slices")
          ->transform(CLI::CheckedTransformer(solvers, CLI::ignore_case).description(""))
          ->type_name(names_of(solvers));
  app.add_option("--iterations", options.iterations,
                 "the most iterations; by default 20 of cgls, 100 of sirt, 200 of fista-tv")
      ->check(CLI::Range(1, 100000))
      ->needs(solver);
  app.add_option("--total-variation", options.total_variation,
                 "for fista-tv: factor of the total variation, 0.1 by default; a larger factor flattens more")
      ->check(CLI::Range(0., 1e6))
      ->type_name("FACTOR")
      ->needs(solver);
  app.add_flag("--nonnegative", options.of_solver.nonnegative,
               "for sirt and fista-tv: allow no attenuation below 0")
      ->needs(solver);
  app.add_option(
         "--noise", options.of_solver.noise,
         "standard deviation of attenuations in air; the iterations of a slice end when they reach it")
      ->check(CLI::PositiveNumber)
      ->type_name("DEVIATION")
      ->needs(solver);
  app.add_option("--weights", options.weights,
                 "transmission: weigh values by the noise of photons, so that dark values count less")
      ->transform(CLI::CheckedTransformer(weights_of_values, CLI::ignore_case).description(""))
      ->type_name(names_of(weights_of_values))
      ->default_str("none")
      ->needs(solver);
  auto* const filter = app.add_option("--filter", run.filter, "filter of the projections")
                           ->transform(CLI::CheckedTransformer(filters, CLI::ignore_case).description(""))
                           ->type_name(names_of(filters))
                           ->default_str("shepp");
  auto* const padding = app.add_option("--padding", run.padding,
                                       "values beyond the detector; edge continues the outermost ones")
                            ->transform(CLI::CheckedTransformer(paddings, CLI::ignore_case).description(""))
                            ->type_name(names_of(paddings))
                            ->default_str("edge");
  auto* const density = app.add_flag_callback(
      "--density-weights", [&run] { run.density_weights = true; },
      "weigh projections by the share of half a turn that is nearest to them; this is the default if angles "
      "are not evenly spread");
  auto* const even = app.add_flag_callback(
      "--even-weights", [&run] { run.density_weights = false; }, "give all projections the same weight");
  density->excludes(even);
  solver->excludes(filter)->excludes(padding)->excludes(density)->excludes(even);
  app.add_option("--y-axis", run.y_up,
                 "direction of y in the slices, whose rays are x cos + y sin. up (from row n/2 to row 0) is "
                 "ASTRA's, scikit-image's and algotom's; down, as before 0.2, is the mirror image")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, bool>{{"up", true}, {"down", false}}).description(""))
      ->type_name("down|up")
      ->default_str("up");
  app.add_flag("--corners", run.corners, "keep the corners, outside of the largest disc of the slice");
  app.add_option("--rows", options.rows, "rows of the detector; by default all")->type_name("BEGIN:END");
}

void add_demo_options(CLI::App& app, TomographyOptions& options) {
  auto* const demo =
      app.add_option("--demo", options.demo,
                     "simulate a scan in FOLDER, reconstruct it and compare it with the truth, truth.h5")
          ->type_name("FOLDER");
  app.add_option("--demo-angles", options.of_demo.angles, "angles of the demonstration's scan")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str()
      ->needs(demo);
  app.add_option("--demo-span", options.of_demo.span, "span of the demonstration's even angles")
      ->check(CLI::Range(1., 360.))
      ->type_name("DEGREES")
      ->capture_default_str()
      ->needs(demo);
}

} // namespace

void add_options(CLI::App& app, TomographyOptions& options) {
  // Under headings, in the order of the work.
  const auto add = [&](const char* heading, const auto& some) {
    const std::size_t before = app.get_options().size();
    some(app, options);
    const std::vector<CLI::Option*> all = app.get_options();
    for (std::size_t i = before; i < all.size(); ++i)
      all[i]->group(heading);
  };
  add("Scan", add_scan_options);
  add("Detector and beam", add_detector_options);
  add("Stripes", add_stripe_options);
  add("Axis and method", add_method_options);
  add("Iterations, filter and slices", add_solver_options);
  add_memory_limit(app, options.run.memory_limit);
  add_picture_format(app, options.run.picture_ending);
  add("Demonstration", add_demo_options);
  app.footer("Examples:\n"
             "  bracewell-tomography --scan scan.h5 --out slices.h5 --stripes sorting\n"
             "  bracewell-tomography --scan scan.nxs --try-centres 990:1010:2 --out c.png\n"
             "  bracewell-tomography --scan tilts.mrc --out slices.tif --solver sirt\n"
             "  bracewell-tomography --demo FOLDER");
}

} // namespace Bracewell::Examples
