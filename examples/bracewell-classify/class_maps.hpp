// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-classify/expectation_step.hpp"

#include "cryoem/half_maps.hpp"

#include <bracewell/reconstruct/mask.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// The map of a class.
struct ClassMap {
  std::vector<float> values;                     ///< [box, box, box]
  std::vector<double> correlation;               ///< of the maps of both half sets under the mask, by shells
  std::array<std::vector<float>, 2> halves = {}; ///< maps of the half sets, where they are kept apart
};

struct ClassMapOptions {
  std::string symmetry = "C1";
  SoftSphere mask;    ///< pixels
  double signal_part; ///< of the box's volume in which there is signal
  double tau;         ///< factor on the power of the signal
  double join = 0;    ///< half sets are kept apart beyond this frequency, periods per box; 0: they are not
};

/// Makes maps of what the expectation step summed: the sums of a class over both half sets, divided by weights to which each
/// shell adds noise over signal, as the half sets tell them (Scheres, J. Mol. Biol. 415 (2012) 406, equation 7).
class ClassMaps {
public:
  /// @param padded  box of the sums
  ClassMaps(const Space& space, int box, int padded, const ClassMapOptions& options);

  /// @param sums  of the half sets; the ones of the class are overwritten
  ClassMap make(const std::array<HalfSums, 2>& sums, std::size_t class_index);

private:
  Map cropped_map(int box) const;
  Map equalised_map(const Part<const Kokkos::complex<float>****>& data, const Part<const float****>& weight,
                    const DeviceView<double**>& prior) const;

  Space space_;
  int box_, padded_;
  ClassMapOptions options_;
  WeightEqualiser<Space, float> equaliser_;
  MapSpectrum spectrum_;
  MapWeight divisor_;
  Map volume_;
};

} // namespace Bracewell::Examples
