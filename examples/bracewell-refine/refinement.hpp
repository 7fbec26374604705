// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-refine/global_search.hpp"
#include "bracewell-refine/lens.hpp"
#include "bracewell-refine/match.hpp"
#include "bracewell-refine/pose_search.hpp"
#include "bracewell-refine/reference.hpp"
#include "common/handout.hpp"
#include "common/pipeline.hpp"
#include "common/progress.hpp"
#include "common/star.hpp"
#include "cryoem/contrast.hpp"
#include "cryoem/poses.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace Bracewell::Examples {

struct RefinementOptions {
  Sampling sampling;
  bool global = false;               ///< poses from nothing, in the first round
  std::optional<double> shift_range; ///< pixels; of --global
  std::string symmetry = "C1";       ///< of the references
  bool no_ctf = false;               ///< compare with bare projections, whatever the STAR file has
  int iterations = 20;               ///< evaluations of the loss per stage, at most
  std::size_t batch = 0;             ///< images at a time; 0: chosen
  bool reproducible = false;         ///< poses, and half maps, with the same bits in every run
  bool defocus = false;              ///< that of every particle, too, once its pose is found
  double defocus_range = 500;        ///< Angstrom: how far defoci are off, their standard deviation
  bool magnification = false;        ///< of every optics group, once the poses of a round are found
};

/// How well a particle fits a reference. Losses as fractions of the image's power, at the last stage's radius.
struct Fit {
  double loss_before, loss_after;
  bool inverted; ///< the projection fits with a negative scale
};

/// Refinement of the poses of particles against a map. Stages go from coarse to fine: their radius doubles, from an
/// eighth of the box on, where images two pixels off are a quarter period off, or from that of a global search on.
/// Of the poses that it found half are left after every stage.
class Refinement {
public:
  /// Throws InputError where the particles lack poses, which a global search does without; adds warnings to them.
  Refinement(const Space& space, Particles& particles, const RefinementOptions& options);

  /// Searches of a particle in all stages up to a radius.
  std::int64_t searches(double radius, bool global) const;
  /// How a reference of these levers is searched globally.
  GlobalSearch::Grid grid(const Eigen::Vector3d& levers, double radius) const;
  /// Bytes that it takes.
  double bytes_of_search(const GlobalSearch::Grid& grid) const;
  bool uses_ctf() const { return contrast_.present(); }
  /// Whether the first images that were searched globally fit better with inverted contrast.
  bool searched_dark() const { return searched_dark_; }
  /// For the magnification of optics groups, of what was refined since they were last made zero.
  std::vector<MagnificationSums>& magnification_sums() { return magnification_sums_; }
  /// How the poses of particles follow their magnification, of what was refined in this round.
  std::vector<Following>& following() { return following_; }
  const std::vector<Following>& following() const { return following_; }
  /// Changes the pose of a particle as it follows a change of its magnification.
  void follow(std::size_t row, const Eigen::Vector3d& change);
  /// Of a particle in magnification_sums.
  std::size_t optics_group(std::size_t row) const { return group_of_[row]; }
  /// The particles have other defoci or magnifications.
  void lens_changed();
  /// Images at a time, at most.
  std::int64_t batch() const { return static_cast<std::int64_t>(batch_); }

  /// Refines the poses of `rows` of the particles, which have to have the reference's box, in the parts that this
  /// process takes of them: after each the particles have the new poses, and done(rows of the part, their fits) is
  /// called.
  /// @param handout   of parts of a batch() at most
  /// @param radius    largest frequency compared, periods per box
  /// @param global    begins with a global search, not with the poses that the particles have
  /// @param progress  counts searches
  /// Throws InputError where images cannot be read.
  std::vector<StageTime>
  run(std::span<const std::size_t> rows, Handout& handout, const Reference& reference, double radius,
      bool global, Progress& progress,
      const std::function<void(std::span<const std::size_t>, std::span<const Fit>)>& done);

private:
  static constexpr double coarse_tolerance = 0.03, tolerance = 0.002; ///< pixels, of the last stage
  static constexpr std::size_t global_starts =
      8; ///< poses of an image that are refined after a global search

  static constexpr std::size_t tried_dark = 32; ///< images, in a global search

  /// A search for the pose of one of the images of a batch.
  struct ImageSearch {
    int image;
    PoseSearch search;
  };

  /// What it takes to refine magnifications: columns that the particles lack, optics groups, sums.
  void prepare_magnifications();
  void allocate_arrays();
  std::vector<Fit> refine_batch(const Part<float***>& images, std::span<const std::size_t> rows);
  void transform(const Part<float***>& images, std::span<const std::size_t> rows);
  std::vector<double> stages(double radius, bool global) const;
  /// Searches of the images, in their order, and of each the best start first.
  std::vector<ImageSearch> begin(std::span<const std::size_t> rows);
  void minimise(std::vector<ImageSearch>& searches, double radius);
  /// Evaluates and reports up to a batch of searches.
  void advance(std::vector<ImageSearch>& searches, std::span<const int> active, double radius);
  /// Of every image the `most` best, in their order.
  static void keep_best(std::vector<ImageSearch>& searches, std::size_t most);
  /// Losses of the best of every image over its power, at the radius of the refinement.
  std::vector<double> losses(std::vector<ImageSearch>& searches, std::size_t count);
  /// Losses of up to a batch of the searches `active` at their trial poses; leaves sums, and gradients where wanted.
  void evaluate(std::span<const ImageSearch> searches, std::span<const int> active, double radius,
                bool gradients);
  /// Takes to the device which images the searches `active` are of, and the poses that they try.
  void set_trial_poses(std::span<const ImageSearch> searches, std::span<const int> active);
  [[noreturn]] void fail_not_finite(int image) const;
  /// Projections of the particles of a batch at the poses that they have, with a change: of the magnification, of the i-th of xx,
  /// xy, yy, or of the rotation, of the (i - 3)th axis in radians; with their contrast, or without.
  void project_batch(const Spectra& projections, double radius, int i, double change, bool modulated);
  /// Of a batch whose poses were found.
  void refine_defoci(std::size_t count);
  /// Sums of 2 `side` + 1 trials of every image of a batch, complete. Trials are changes of the mean defocus, `step` apart
  /// around the best so far, in Angstrom.
  DeviceView<MatchSums**> sums_of_trials(std::span<const double> wavelengths, std::span<const double> best,
                                         int side, double step) const;
  void sum_magnifications(std::size_t count);
  template <class PreparedMap>
  void evaluate(const PreparedMap& map, std::span<const ImageSearch> searches, std::span<const int> active,
                double radius, bool gradients);

  Space space_;
  Particles& particles_;
  RefinementOptions options_;
  int box_;
  std::size_t batch_;
  const Reference* reference_ = nullptr; ///< of this run
  Progress* progress_ = nullptr;         ///< of this run
  std::optional<GlobalSearch> global_;   ///< of this run
  double radius_ = 0;
  std::span<const std::size_t> rows_; ///< of this batch
  bool magnified_ = false;            ///< images have a magnification other than 1
  bool contrast_tried_ = false, searched_dark_ = false;

  FFT<Space, 2, float, Kokkos::complex<float>> forward_;
  Contrast contrast_;
  Spectra modulated_;
  Weights weights_;
  Spectra projections_, cotangents_;
  DeviceView<int*> active_;
  DeviceView<MatchSums*> sums_;
  DeviceView<double*> powers_;
  ParticlePoses poses_;
  DeviceView<float**[3][3]> rotations_, magnifications_; ///< [1, batch, 3, 3], where there are magnifications
  DeviceView<float** [3][3]> matrix_gradients_;
  DeviceView<float** [3]> rotation_gradients_;
  DeviceView<float** [2]> shift_gradients_;
  // On the host:
  DeviceView<float**[3][3]>::host_mirror_type host_rotations_, host_magnifications_;
  DeviceView<int*>::host_mirror_type host_active_;
  DeviceView<MatchSums*>::host_mirror_type host_sums_;
  // With defoci or magnifications that are refined:
  std::array<Spectra, 6> changes_; ///< by magnifications and rotations
  std::vector<std::size_t> group_of_;
  std::vector<MagnificationSums> magnification_sums_;
  std::vector<Following> following_;
  DeviceView<float** [2]>::host_mirror_type host_shift_gradients_;
  DeviceView<float** [3]>::host_mirror_type host_rotation_gradients_;
};

} // namespace Bracewell::Examples
