// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-classify/expectation_step.hpp"

#include "cryoem/half_maps.hpp"

#include <bracewell/reconstruct/mask.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// The map of a class, or its average in the plane.
struct ClassMap {
  std::vector<float> values;                     ///< [(box,) box, box]
  std::vector<double> correlation;               ///< of the maps of both half sets under the mask, by shells
  std::array<std::vector<float>, 2> halves = {}; ///< maps of the half sets, where they are kept apart
};

struct ClassMapOptions {
  std::string symmetry = "C1";
  SoftSphere mask;    ///< pixels
  double signal_part; ///< of the box in which there is signal
  double tau;         ///< factor on the power of the signal
  double join = 0;    ///< half sets are kept apart beyond this frequency, periods per box; 0: they are not
};

/// Makes maps of what the expectation step summed: the sums of a class over both half sets, divided by weights to which each
/// shell adds noise over signal, as the half sets tell them (Scheres, J. Mol. Biol. 415 (2012) 406, equation 7).
template <int D>
class ClassMaps {
public:
  /// @param padded  box of the sums
  ClassMaps(const Space& space, int box, int padded, const ClassMapOptions& options);

  /// Of all classes together, which a small class on its own does not tell.
  SignalAndNoise powers(const std::array<HalfSums<D>, 2>& sums) const;

  /// @param sums    of the half sets; the ones of the class are overwritten
  /// @param common  signal and noise of all classes; null: of this class
  ClassMap make(const std::array<HalfSums<D>, 2>& sums, std::size_t class_index,
                const SignalAndNoise* common = nullptr);

private:
  Averages<D> cropped_map(int box) const;
  Averages<D> equalised_map(const AverageSpectra<D>& data, const Averages<D>& weight,
                            const DeviceView<double**>& prior) const;

  Space space_;
  int box_, padded_;
  ClassMapOptions options_;
  std::optional<WeightEqualiser<Space, float>> equaliser_; ///< of maps: in the plane weights are even
  AverageSpectra<D> spectrum_;
  Averages<D> divisor_, volume_;
};

} // namespace Bracewell::Examples
