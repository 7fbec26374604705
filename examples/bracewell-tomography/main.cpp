// SPDX-License-Identifier: MIT
#include "bracewell-tomography/options.hpp"
#include "common/input_error.hpp"
#include "common/processes.hpp"

#include <cstdio>
#include <iostream>
#include <map>
#include <string_view>

namespace {

using namespace Bracewell::Examples;
using Bracewell::LeastSquaresMethod;
using Bracewell::StripeMethod;
namespace fs = std::filesystem;

constexpr const char* program = "bracewell-tomography";

StripeMethod method_of(StripeChoice stripes) {
  switch (stripes) {
  case StripeChoice::Offset:
    return StripeMethod::Offset;
  case StripeChoice::All:
    return StripeMethod::All;
  case StripeChoice::Wavelet:
    return StripeMethod::Wavelet;
  default:
    return StripeMethod::Sorting;
  }
}

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

/// "7" or "30:40"
IndexRange left_out(const char* option, const std::string& text) {
  if (text.find(':') != std::string::npos)
    return *index_range(option, text);
  IndexRange range = *index_range(option, text + ":" + text);
  ++range.end;
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
TrialRange trial_range(const char* option, const std::string& text) {
  TrialRange range;
  int used = 0;
  if (std::sscanf(text.c_str(), "%lf:%lf:%lf%n", &range.first, &range.last, &range.step, &used) != 3 ||
      text.size() != std::size_t(used) || !(range.step > 0) || !(range.last >= range.first) ||
      !((range.last - range.first) / range.step < 100))
    throw InputError(std::string(option) + " " + text + ": expected FIRST:LAST:STEP, at most 100 of them");
  return range;
}

/// Throws InputError where a number is missing that phase retrieval takes.
Bracewell::PhaseOptions phase_options(const TomographyOptions& options) {
  using Bracewell::PhaseMethod;
  for (const auto& [name, value] : {std::pair{"--energy", options.energy},
                                    {"--distance", options.distance},
                                    {"--pixel-size", options.pixel_size},
                                    {"--delta-beta", options.delta_beta}})
    if (!(value > 0 && value < 1e12))
      throw InputError(std::string("--phase takes a ") + name + " above 0");
  const PhaseMethod method = options.phase == PhaseChoice::Paganin ? PhaseMethod::Paganin
                                                                   : (options.phase == PhaseChoice::WeakObject
                                                                          ? PhaseMethod::WeakObject
                                                                          : PhaseMethod::GeneralisedPaganin);
  return {.method = method,
          .wavelength = 1.23984198e-9 / options.energy, // metres
          .distance = 1e-3 * options.distance,
          .pixel_size = 1e-6 * options.pixel_size * options.run.binning,
          .delta_beta = options.delta_beta,
          .regularisation = options.regularisation};
}

/// Throws InputError for options that the solver does not take.
SolverOptions solver_options(const TomographyOptions& options) {
  SolverOptions result = options.of_solver;
  result.method = *options.solver;
  result.transmission_weights = options.weights == ValueWeights::Transmission;
  if (result.method == LeastSquaresMethod::ConjugateGradients && result.nonnegative)
    throw InputError("--nonnegative: --solver cgls knows no bounds; sirt and fista-tv do");
  if (result.method != LeastSquaresMethod::TotalVariation && options.total_variation)
    throw InputError("--total-variation: expected --solver fista-tv");
  switch (result.method) {
  case LeastSquaresMethod::ConjugateGradients:
    result.iterations = 20;
    break;
  case LeastSquaresMethod::SIRT:
    result.iterations = 100;
    break;
  case LeastSquaresMethod::TotalVariation:
    result.iterations = 200;
    result.total_variation = options.total_variation.value_or(0.1);
    break;
  }
  result.iterations = options.iterations.value_or(result.iterations);
  return result;
}

/// Throws InputError where the projections of --flat-at are not in order.
void check_flat_times(const std::vector<std::int64_t>& times) {
  for (std::size_t k = 0; k < times.size(); ++k)
    if (times[k] < (k > 0 ? times[k - 1] + 1 : 0))
      throw InputError("--flat-at: expected numbers of projections from 0 on, in order, found " +
                       std::to_string(times[k]));
}

std::string demonstrate(const Space& space, RunOptions run, const fs::path& folder,
                        const TomographyDemo& demo, Provenance& provenance, Timings& timings) {
  require_one_process();
  std::error_code error;
  fs::create_directories(folder, error);
  run.scan = {.file = folder / "scan.h5"};
  run.out = folder / "slices.h5";
  for (const char* const name : {"scan.h5", "slices.h5", "truth.h5"})
    const AtomicFile writable(folder / name); // before anything is
  simulate_scan(demo, run.scan.file);
  const RunResult result = reconstruct(space, run, provenance, timings);
  const std::vector<float> slices = Hdf5Reader(run.out).read<float>("/exchange/data"),
                           truth = true_slices(demo);
  Hdf5Writer writer(folder / "truth.h5");
  writer.write<float>("/exchange/data", {demo.rows, demo.width, demo.width}, truth);
  writer.commit();
  char text[120];
  std::snprintf(text, sizeof text, "; true centre %.2f, relative error %.3g", demo.centre,
                error_of_slices(demo, slices, truth));
  return result.summary + text;
}

void main_job(TomographyOptions& options, Provenance& provenance, Timings& timings) {
  const Space space;
  RunOptions& run = options.run;
  run.centre = centre_of(options.centre);
  run.rows = index_range("--rows", options.rows);
  run.air = index_range("--air", options.air);
  run.columns = index_range("--columns", options.columns);
  if (options.no_log || options.take_log)
    run.logarithm = options.take_log;
  if (options.solver)
    run.solver = solver_options(options);
  run.scan.nearest_flat = options.between == BetweenFlats::Nearest;
  check_flat_times(run.scan.flat_at);
  for (const std::string& text : options.leave_out)
    run.scan.leave_out.push_back(left_out("--leave-out", text));
  for (const std::string& text : options.leave_out_flats)
    run.scan.leave_out_flats.push_back(left_out("--leave-out-flats", text));
  if (options.phase != PhaseChoice::None)
    run.phase = phase_options(options);
  if (options.zingers)
    run.zingers = {.window = options.zinger_window, .threshold = *options.zingers};
  if (options.demo && !options.stripes)
    options.stripes = StripeChoice::Sorting; // the demonstration's detector has bad columns
  if (options.stripes.value_or(StripeChoice::None) != StripeChoice::None) {
    options.stripe_options.method = method_of(*options.stripes);
    run.stripes = options.stripe_options;
  }
  if (options.demo) {
    if (!run.scan.file.empty() || !run.out.empty() || run.rows || run.columns || run.size ||
        run.binning > 1 || !run.y_up)
      throw InputError("--demo makes its own scan: --scan, --out, --rows, --columns, --size, --y-axis and "
                       "--binning do not go "
                       "with it");
    std::cout << demonstrate(space, run, *options.demo, options.of_demo, provenance, timings) << '\n';
    return;
  }
  if (run.scan.file.empty() || run.out.empty())
    throw InputError("--scan and --out are required, or --demo (see --help)");
  if (!options.try_centres.empty() || !options.try_tilts.empty()) {
    if (!options.try_centres.empty())
      run.try_centres = trial_range("--try-centres", options.try_centres);
    if (!options.try_tilts.empty()) {
      run.try_tilts = trial_range("--try-tilts", options.try_tilts);
      if (run.try_centres || !run.centre)
        throw InputError("--try-tilts takes a --centre in pixels, without --try-centres");
    }
    std::cout << try_values(space, run, provenance) << '\n';
    return;
  }
  std::cout << reconstruct(space, run, provenance, timings).summary << '\n';
}

/// What the library says of an argument, said of the option or the file that it comes from.
std::string of_options(const Bracewell::Error& error, const std::string& scan) {
  const std::map<std::string_view, std::string> names{
      {"geometry.angles", scan + ": angles"}, {"angles", scan + ": angles"},
      {"geometry.width", scan + ": width"},   {"sinogram", scan + ": projections"},
      {"geometry.centre", "--centre"},        {"options.tolerance", "--tolerance"}};
  const auto named = names.find(error.argument());
  if (named == names.end())
    return error.what();
  return named->second + ": expected " + std::string(error.expected()) + ", found " +
         std::string(error.found());
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Reconstructs slices from a parallel-beam scan: attenuation per pixel. Writes OUT, a picture "
               "of the middle slice (_middle.png, and _first.png while it works) and a script that repeats "
               "the run (_run.sh).",
               program};
  TomographyOptions options;
  add_options(app, options);
  return run_driver(app, argc, argv, [&](Provenance& provenance, Timings& timings) {
    try {
      main_job(options, provenance, timings);
    } catch (const Bracewell::Error& error) {
      throw Bracewell::Error(of_options(error, options.run.scan.file.string()));
    }
  });
}
