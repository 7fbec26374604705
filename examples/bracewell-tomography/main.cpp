// SPDX-License-Identifier: MIT
#include "bracewell-tomography/demo.hpp"
#include "bracewell-tomography/run.hpp"
#include "common/command_line.hpp"
#include "common/input_error.hpp"
#include "common/processes.hpp"

#include <array>
#include <cstdio>
#include <iostream>
#include <map>

namespace {

using namespace Bracewell::Examples;
using Bracewell::ProjectionPadding;
using Bracewell::StripeMethod;
using Bracewell::TomographyFilter;
namespace fs = std::filesystem;

constexpr const char* program = "bracewell-tomography";

const std::map<std::string, AngleUnit> angle_units{{"degrees", AngleUnit::Degrees},
                                                   {"radians", AngleUnit::Radians}};

const std::map<std::string, StoredType> output_types{{"float16", StoredType::Float16},
                                                     {"float32", StoredType::Float32}};

enum class Stripes { None, Offset, Sorting };

const std::map<std::string, Method> methods{
    {"fourier", Method::Fourier}, {"log-polar", Method::LogPolar}, {"line", Method::Line}};
const std::map<std::string, TomographyFilter> filters{
    {"none", TomographyFilter::None},       {"ramp", TomographyFilter::Ramp},
    {"shepp", TomographyFilter::Shepp},     {"cosine", TomographyFilter::Cosine},
    {"cosine2", TomographyFilter::Cosine2}, {"hamming", TomographyFilter::Hamming},
    {"hann", TomographyFilter::Hann},       {"parzen", TomographyFilter::Parzen}};
const std::map<std::string, ProjectionPadding> paddings{{"zero", ProjectionPadding::Zero},
                                                        {"edge", ProjectionPadding::Edge}};
const std::map<std::string, Stripes> stripe_methods{
    {"none", Stripes::None}, {"offset", Stripes::Offset}, {"sorting", Stripes::Sorting}};

/// "fourier|line|log-polar"
template <class Choice>
std::string names_of(const std::map<std::string, Choice>& choices) {
  std::string names;
  for (const auto& [name, choice] : choices)
    names += (names.empty() ? "" : "|") + name;
  return names;
}

struct Options {
  RunOptions run;
  std::string centre = "auto", rows, air, try_centres;
  std::optional<Stripes> stripes;
  Bracewell::StripeOptions stripe_options;
  bool no_log = false;
  std::optional<fs::path> demo;
};

/// "10:20"
std::optional<IndexRange> index_range(const char* option, const std::string& text) {
  if (text.empty())
    return {};
  IndexRange range;
  int used = 0;
  long long begin = 0, end = 0;
  if (std::sscanf(text.c_str(), "%lld:%lld%n", &begin, &end, &used) != 2 || text.size() != std::size_t(used))
    throw InputError(std::string(option) + " " + text + ": expected BEGIN:END");
  range = {begin, end};
  return range;
}

std::optional<double> centre_of(const std::string& text) {
  if (text == "auto")
    return {};
  std::size_t used = 0;
  try {
    const double value = std::stod(text, &used);
    if (used == text.size() && std::isfinite(value))
      return value;
  } catch (const std::exception&) {
  }
  throw InputError("--centre " + text + ": expected a pixel or auto");
}

/// "120:140:0.5"
CentreRange centre_range(const std::string& text) {
  CentreRange range;
  int used = 0;
  if (std::sscanf(text.c_str(), "%lf:%lf:%lf%n", &range.first, &range.last, &range.step, &used) != 3 ||
      text.size() != std::size_t(used) || !(range.step > 0) || !(range.last >= range.first) ||
      !((range.last - range.first) / range.step < 100))
    throw InputError("--try-centres " + text + ": expected FIRST:LAST:STEP, at most 100 centres");
  return range;
}

std::string demonstrate(const Space& space, RunOptions run, const fs::path& folder, Provenance& provenance,
                        Timings& timings) {
  require_one_process();
  std::error_code error;
  fs::create_directories(folder, error);
  const TomographyDemo demo;
  run.scan = {.file = folder / "scan.h5"};
  run.out = folder / "slices.h5";
  simulate_scan(demo, run.scan.file);
  const RunResult result = reconstruct(space, run, provenance, timings);
  const auto slices = Hdf5Reader(run.out).read<float>("/exchange/data");
  char text[120];
  std::snprintf(text, sizeof text, "; true centre %.2f, relative error %.3g", demo.centre,
                error_of_slices(demo, slices, true_slices(demo)));
  return result.summary + text;
}

void main_job(Options& options, Provenance& provenance, Timings& timings) {
  const Space space;
  RunOptions& run = options.run;
  run.centre = centre_of(options.centre);
  run.rows = index_range("--rows", options.rows);
  run.air = index_range("--air", options.air);
  run.logarithm = !options.no_log;
  if (options.demo && !options.stripes)
    options.stripes = Stripes::Sorting; // the demonstration's detector has bad columns
  if (options.stripes.value_or(Stripes::None) != Stripes::None) {
    options.stripe_options.method =
        options.stripes == Stripes::Offset ? StripeMethod::Offset : StripeMethod::Sorting;
    run.stripes = options.stripe_options;
  }
  if (options.demo) {
    if (!run.scan.file.empty() || !run.out.empty() || run.rows)
      throw InputError("--demo makes its own scan: --scan, --out and --rows do not go with it");
    std::cout << demonstrate(space, run, *options.demo, provenance, timings) << '\n';
    return;
  }
  if (run.scan.file.empty() || run.out.empty())
    throw InputError("--scan and --out are required, or --demo (see --help)");
  if (!options.try_centres.empty()) {
    run.try_centres = centre_range(options.try_centres);
    std::cout << try_centres(space, run, provenance) << '\n';
    return;
  }
  std::cout << reconstruct(space, run, provenance, timings).summary << '\n';
}

/// What the library says of an argument, said of the option or the file that it comes from.
std::string of_options(const std::string& message, const std::string& scan) {
  const std::array<std::pair<std::string, std::string>, 6> names{{{"geometry.angles", scan + ": angles"},
                                                                  {"angles", scan + ": angles"},
                                                                  {"geometry.width", scan + ": width"},
                                                                  {"sinogram", scan + ": projections"},
                                                                  {"geometry.centre", "--centre"},
                                                                  {"options.tolerance", "--tolerance"}}};
  const std::size_t function = message.find(": ");
  for (const auto& [argument, name] : names)
    if (function != std::string::npos &&
        message.compare(function + 2, argument.size() + 2, argument + ": ") == 0)
      return name + message.substr(function + 2 + argument.size());
  return message;
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Reconstructs slices from a parallel-beam scan: attenuation per pixel. Writes OUT and a picture of the "
      "middle slice (_middle.png).",
      program};
  Options options;
  RunOptions& run = options.run;
  app.add_option("--scan", run.scan.file,
                 "HDF5 (Scientific Data Exchange); .tif with a page per projection, a folder or pattern "
                 "(\"scan/p_*.tif\") of such files, or one sinogram [angles, width] as .tif")
      ->type_name("FILE");
  app.add_option("--out", run.out, "slices to write, .h5 (/exchange/data) or .tif")->type_name("FILE");
  app.add_option("--output-type", run.output_type, "of the slices; float16 keeps 3 digits, to 65504")
      ->transform(CLI::CheckedTransformer(output_types).description(""))
      ->type_name(names_of(output_types))
      ->default_str("float32");
  app.add_option("--data", run.scan.data, "projections [angles, rows, width]")
      ->type_name("DATASET")
      ->capture_default_str();
  app.add_option("--flat", run.scan.flat,
                 "frames without object, as files where the scan is TIFF; without them data are transmission")
      ->type_name("DATASET")
      ->capture_default_str();
  app.add_option("--dark", run.scan.dark, "frames without beam")->type_name("DATASET")->capture_default_str();
  app.add_option("--angles", run.scan.angles, "degrees; without them even ones over 180")
      ->type_name("DATASET")
      ->capture_default_str();
  auto* const span =
      app.add_option("--span", run.scan.span, "even angles over so many degrees, instead of the file's")
          ->type_name("DEGREES");
  app.add_option("--first-angle", run.scan.first_angle, "where the even angles begin; 0 by default")
      ->type_name("DEGREES");
  app.add_option("--angle-unit", run.scan.angle_unit, "of the angles in the file, instead of what it says")
      ->transform(CLI::CheckedTransformer(angle_units).description(""))
      ->type_name(names_of(angle_units));
  app.add_flag("--both-ends", run.scan.both_ends, "the last of them is at the end of the span")->needs(span);
  app.add_flag("--no-log", options.no_log, "data are attenuation already");
  app.add_option("--air", options.air,
                 "columns without object: every row is divided by its mean there; with --no-log the mean is "
                 "subtracted")
      ->type_name("BEGIN:END");
  app.add_option("--stripes", options.stripes,
                 "removal of stripes, which make rings; sorting by default with --demo")
      ->transform(CLI::CheckedTransformer(stripe_methods, CLI::ignore_case).description(""))
      ->type_name(names_of(stripe_methods))
      ->default_str("none");
  app.add_option("--stripe-strength", options.stripe_options.strength,
                 "of offset: less removes wider stripes, and more of the object")
      ->check(CLI::PositiveNumber)
      ->type_name("STRENGTH")
      ->capture_default_str();
  app.add_option("--stripe-window", options.stripe_options.window, "of sorting: columns of the median, odd")
      ->check(CLI::Range(1, 63))
      ->check([](const std::string& text) {
        return (text.back() - '0') % 2 == 1 ? std::string() : "expected an odd number, found " + text;
      })
      ->type_name("COLUMNS")
      ->capture_default_str();
  app.add_option("--dead", options.stripe_options.dead,
                 "columns that change so many times more or less than those beside them are interpolated; 0: "
                 "none are")
      ->check([](const std::string& text) {
        const double ratio = std::strtod(text.c_str(), nullptr);
        return ratio == 0 || (ratio > 1 && ratio < 1e6) ? std::string()
                                                        : "expected 0 or a ratio above 1, found " + text;
      })
      ->type_name("RATIO")
      ->capture_default_str();
  app.add_option("--centre", options.centre, "of the rotation axis")
      ->type_name("PIXEL|auto")
      ->capture_default_str();
  app.add_option("--try-centres", options.try_centres,
                 "the middle slice at these centres, as one picture: OUT ends with .png, .pdf or .svg")
      ->type_name("FIRST:LAST:STEP");
  app.add_option("--method", run.method, "log-polar takes even angles over 180 degrees only")
      ->transform(CLI::CheckedTransformer(methods, CLI::ignore_case).description(""))
      ->type_name(names_of(methods))
      ->default_str("fourier");
  app.add_option("--tolerance", run.tolerance, "relative error of the Fourier method")
      ->check(CLI::Range(1e-6, 1e-1))
      ->capture_default_str();
  app.add_option("--filter", run.filter, "of the projections, before they are spread")
      ->transform(CLI::CheckedTransformer(filters, CLI::ignore_case).description(""))
      ->type_name(names_of(filters))
      ->default_str("shepp");
  app.add_option("--padding", run.padding, "beyond the detector; edge: the outermost values go on")
      ->transform(CLI::CheckedTransformer(paddings, CLI::ignore_case).description(""))
      ->type_name(names_of(paddings))
      ->default_str("edge");
  app.add_flag("--density-weights", run.density_weights, "for angles that are not evenly spread");
  app.add_flag("--corners", run.corners, "keep what lies outside of the disc that fits the slice");
  app.add_option("--rows", options.rows, "of the detector; all by default")->type_name("BEGIN:END");
  add_memory_limit(app, run.memory_limit);
  add_picture_format(app, run.picture_ending);
  app.add_option("--demo", options.demo, "simulate a scan in FOLDER, reconstruct it and compare")
      ->type_name("FOLDER");
  return run_driver(app, argc, argv, [&](Provenance& provenance, Timings& timings) {
    try {
      main_job(options, provenance, timings);
    } catch (const Bracewell::Error& error) {
      throw Bracewell::Error(of_options(error.what(), run.scan.file.string()));
    }
  });
}
