// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-refine/match.hpp"
#include "bracewell-refine/pose_search.hpp"
#include "bracewell-refine/reference.hpp"
#include "common/pipeline.hpp"
#include "common/progress.hpp"
#include "common/star.hpp"
#include "cryoem/contrast.hpp"
#include "cryoem/poses.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace Bracewell::Examples {

struct RefinementOptions {
  Sampling sampling;
  bool no_ctf = false;   ///< compare with bare projections, whatever the STAR file has
  int iterations = 20;   ///< evaluations of the loss per stage, at most
  std::size_t batch = 0; ///< images at a time; 0: chosen
};

/// How well a particle fits a reference. Losses as fractions of the image's power, at the last stage's radius.
struct Fit {
  double loss_before, loss_after;
  bool inverted; ///< the projection fits with a negative scale
};

/// The pose of a particle as its file has it.
PoseOfParticle pose_of(const Particles& particles, std::size_t row);

/// Local refinement of the poses of particles against a map. Stages go from coarse to fine: their radius
/// doubles from an eighth of the box on, where images two pixels off are a quarter period off.
class Refinement {
public:
  /// Throws InputError where the particles lack poses; adds warnings to them.
  Refinement(const Space& space, Particles& particles, const RefinementOptions& options);

  /// The radii of the stages up to one.
  std::vector<double> stages(double radius) const;
  bool uses_ctf() const { return contrast_.present(); }

  /// Refines the poses of `rows` of the particles, which have to have the reference's box, in batches: after
  /// each the particles have the new poses, and done(rows of the batch, their fits) is called.
  /// @param radius    largest frequency compared, periods per box
  /// @param progress  counts the stages of particles
  /// Throws InputError where images cannot be read.
  std::vector<StageTime>
  run(std::span<const std::size_t> rows, const Reference& reference, double radius, Progress& progress,
      const std::function<void(std::span<const std::size_t>, std::span<const Fit>)>& done);

private:
  static constexpr double coarse_tolerance = 0.03, tolerance = 0.002; ///< pixels, of the last stage

  std::vector<Fit> refine_batch(const Part<float***>& images, std::span<const std::size_t> rows);
  void transform(const Part<float***>& images, std::span<const std::size_t> rows);
  void minimise(std::vector<PoseSearch>& searches, double radius);
  /// Losses of the searches `active` at their trial poses; leaves sums, and gradients where wanted.
  void evaluate(std::span<const PoseSearch> searches, std::span<const int> active, double radius,
                bool gradients);
  template <class PreparedMap>
  void evaluate(const PreparedMap& map, std::span<const PoseSearch> searches, std::span<const int> active,
                double radius, bool gradients);

  Space space_;
  Particles& particles_;
  RefinementOptions options_;
  int box_;
  std::size_t batch_;
  const Reference* reference_ = nullptr; ///< of this run
  Progress* progress_ = nullptr;         ///< of this run
  double radius_ = 0;

  FFT<Space, 2, float, Kokkos::complex<float>> forward_;
  Contrast contrast_;
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
  Owned<float** [2]>::host_mirror_type host_shift_gradients_;
  Owned<float** [3]>::host_mirror_type host_rotation_gradients_;
};

} // namespace Bracewell::Examples
