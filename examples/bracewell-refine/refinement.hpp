// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-refine/match.hpp"
#include "bracewell-refine/pose_search.hpp"
#include "bracewell-refine/reference.hpp"
#include "common/star.hpp"
#include "cryoem/contrast.hpp"
#include "cryoem/poses.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace Bracewell::Examples {

struct RefinementOptions {
  Sampling sampling;
  bool no_ctf = false;          ///< compare with bare projections, whatever the STAR file has
  std::optional<double> radius; ///< largest frequency, periods per box; absent: Nyquist
  int iterations = 20;          ///< evaluations of the loss per stage, at most
  std::size_t batch = 0;        ///< images at a time; 0: chosen
};

/// Losses as fractions of the image's power, at the last stage's radius.
struct RefinedPose {
  PoseOfParticle before, after;
  double loss_before, loss_after;
  bool inverted; ///< the projection fits with a negative scale
};

/// Local refinement of the poses of particles against a map. Stages go from coarse to fine: their radius
/// doubles from an eighth of the box on, where images two pixels off are a quarter period off.
class Refinement {
public:
  /// Throws InputError where the particles lack poses or do not fit the reference; adds warnings to them.
  Refinement(const Space& space, Particles& particles, Reference reference, const RefinementOptions& options);

  bool uses_ctf() const { return contrast_.present(); }

  /// The poses of all particles, in the file's order. Throws InputError where images cannot be read.
  std::vector<RefinedPose> run();

private:
  static constexpr double coarse_tolerance = 0.03, tolerance = 0.002; ///< pixels, of the last stage

  std::vector<RefinedPose> refine_batch(std::size_t first, std::size_t count);
  void transform(std::size_t first, std::size_t count);
  void minimise(std::vector<PoseSearch>& searches, double radius);
  /// Losses of the searches `active` at their trial poses; leaves sums, and gradients where wanted.
  template <class Kernel>
  void evaluate(std::span<const PoseSearch> searches, std::span<const int> active, double radius,
                bool gradients);
  void evaluate_with_kernel(std::span<const PoseSearch> searches, std::span<const int> active, double radius,
                            bool gradients);

  Space space_;
  Particles& particles_;
  Reference reference_;
  RefinementOptions options_;
  std::size_t batch_;
  double radius_;

  FFT<Space, 2, float, Kokkos::complex<float>> forward_;
  Contrast contrast_;
  Images images_;
  Spectra modulated_;
  Weights weights_;
  Spectra projections_, cotangents_;
  Owned<int*> active_;
  Owned<MatchSums*> sums_;
  Owned<double*> powers_;
  ParticlePoses poses_;
  Owned<float** [3][3]> matrix_gradients_;
  Owned<float** [3]> rotation_gradients_;
  Owned<float** [2]> shift_gradients_;
  // On the host:
  Owned<int*>::host_mirror_type host_active_;
  Owned<MatchSums*>::host_mirror_type host_sums_;
  Owned<float** [3][3]>::host_mirror_type host_matrices_;
  Owned<float**[2]>::host_mirror_type host_shifts_, host_shift_gradients_;
  Owned<float** [3]>::host_mirror_type host_rotation_gradients_;
};

} // namespace Bracewell::Examples
