// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/demo.hpp"
#include "bracewell-tomography/run.hpp"
#include "common/command_line.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

enum class StripeChoice { None, Offset, Sorting, All, Wavelet };
enum class PhaseChoice { None, Paganin, GeneralisedPaganin, WeakObject };
enum class BetweenFlats { Linear, Nearest };
enum class ValueWeights { None, Transmission };

/// What the command line says, as it says it.
struct TomographyOptions {
  RunOptions run;
  std::string centre = "auto", rows, columns, air, try_centres, try_tilts;
  std::optional<LeastSquaresMethod> solver;
  std::optional<int> iterations;
  std::optional<double> total_variation;
  ValueWeights weights = ValueWeights::None;
  SolverOptions of_solver;
  std::vector<std::string> leave_out, leave_out_flats;
  std::optional<StripeChoice> stripes;
  PhaseChoice phase = PhaseChoice::None;
  double energy = 0, distance = 0, pixel_size = 0, delta_beta = 0; ///< keV, millimetres, micrometres
  double regularisation = PhaseOptions{}.regularisation;
  std::optional<double> zingers;
  int zinger_window = OutlierOptions{}.window;
  BetweenFlats between = BetweenFlats::Linear;
  StripeOptions stripe_options;
  bool no_log = false, take_log = false;
  std::optional<std::filesystem::path> demo;
  TomographyDemo of_demo;
};

/// The options of bracewell-tomography, which fill `options`.
void add_options(CLI::App& app, TomographyOptions& options);

} // namespace Bracewell::Examples
