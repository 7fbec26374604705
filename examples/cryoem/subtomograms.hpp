// SPDX-License-Identifier: MIT
#pragma once

#include "common/star.hpp"
#include "cryoem/findings.hpp"
#include "cryoem/views.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/project/options.hpp>

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace Bracewell::Examples {

/// Particles that were cut from tomograms as volumes, and what of their spectra was measured: C(k), from rlnCtfImage or the
/// range of the tilts. Like images they are inserted as F C with the weight C^2; where they were multiplied by their contrast
/// transfer (rlnCtfDataAreCtfPremultiplied) rlnCtfImage has C^2, and they are inserted as they are.
class Subtomograms {
public:
  using Volume = DeviceView<Kokkos::complex<float>*****>; ///< [1, 1, box, box, box/2+1]
  using Weight = DeviceView<float*****>;                  ///< like Volume

  /// `tilts`: the least and the largest tilt about y, degrees; what lies between their planes was measured, in full. Throws
  /// InputError where rlnCtfImage and the range are both there or both missing, for files of other shapes, and for pixels of
  /// several sizes.
  Subtomograms(const Space& space, const Particles& particles,
               const std::optional<std::array<double, 2>>& tilts, bool subtract_background);

  /// Of the volumes of this class.
  static double bytes_needed(int box);

  /// Does something with the spectrum, the weight and the pose of every subtomogram of `rows` that is not blank. Throws
  /// InputError for values that are not finite, are too large, or are no C^2.
  using Work = std::function<void(std::size_t row, const Volume& spectrum, const Weight& weight,
                                  const Poses<float, Memory>& pose)>;
  void for_each(std::span<const std::size_t> rows, const Work& work);

  /// What was seen in every particle, [particles]; less than 0 where nobody looked.
  const std::vector<LookAtImage>& seen() const { return seen_; }

private:
  void look_at(std::size_t row, std::vector<float>& values);
  void set_measured(std::size_t row);
  void read_measured(std::size_t row);
  void measure_tilts();
  void set_pose(std::size_t row);

  Space space_;
  const Particles& particles_;
  int box_;
  std::optional<std::array<double, 2>> tilts_;
  bool subtract_background_;
  Map volume_;
  Volume spectrum_;
  Weight factor_, weight_; ///< C or 1, and C^2
  Weight::host_mirror_type host_factor_, host_weight_;
  std::optional<std::filesystem::path> measured_; ///< what factor_ and weight_ are from
  DeviceView<float** [3][3]> matrix_;
  DeviceView<float** [3]> shift_;
  FFT<Space, 3, float, Kokkos::complex<float>> forward_;
  std::vector<LookAtImage> seen_;
};

} // namespace Bracewell::Examples
