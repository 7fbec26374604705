// What golden_ptychography reports.
#pragma once

#include "../golden.hpp"

namespace Golden::Ptychography {

/// Largest relative errors.
struct Errors {
  double waves = 0; ///< probe, exit waves, intensities
  double loss = 0, gradients = 0;
  double parameters = 0;             ///< gradients of the five parameters of the probe
  double curve = 0, final_state = 0; ///< losses and state of twenty steps of Adam
};

struct Result {
  std::string name;
  Errors errors;
  bool half = false;
};

/// Defined by one translation unit per precision.
template <class T>
std::vector<Result> run(const File& file);

/// Losses and gradients of the cases of a file that lists them: what an experiment brings beside one coherent
/// probe at whole positions.
template <class T>
std::vector<Result> run_experiments(const File& file);

} // namespace Golden::Ptychography
