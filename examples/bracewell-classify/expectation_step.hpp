// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-classify/search_plan.hpp"
#include "bracewell-classify/volumes.hpp"
#include "cryoem/contrast.hpp"
#include "cryoem/pose_columns.hpp"
#include "cryoem/views.hpp"

#include <bracewell/fft/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace Bracewell::Examples {

/// What the last pass found of a particle.
struct Found {
  PoseOfParticle pose;            ///< the most likely one of its class; the shift is where the particle lies
  std::vector<float> shares = {}; ///< [K] posteriors of classes
  int class_index = -1;           ///< the likeliest; -1: nothing was found
  double largest = 0;             ///< posterior of the most likely candidate
  double log_evidence = 0;        ///< natural logarithm
  double candidates = 0;          ///< that the sums are of
};

/// Sums of particles of one half set: what maps are made of.
template <int D>
struct HalfSums {
  AverageSpectra<D> data; ///< [K, (P,) P, P/2+1]
  Averages<D> weight;     ///< likewise
};

/// Sums over particles for shells: of |X|^2, Re(conj(X) C P) and |C P|^2 over the full spectrum.
struct ShellSums {
  std::vector<double> values;      ///< [shells, 3]
  std::vector<std::int64_t> sizes; ///< [shells] frequencies of the full spectrum
  double images = 0;

  void add(const ShellSums& other);
};

/// The expectation of batches of particles: posteriors of classes, poses and shifts, by passes from coarse to fine. References
/// are maps (D = 3), or images that are turned in the plane (D = 2).
template <int D>
class ExpectationStep {
public:
  /// @param contrast  of the particles; may be empty, then images are projections
  /// @param batch     particles at a time, at most
  ExpectationStep(const Space& space, const Contrast& contrast, int box, std::size_t batch, bool reproducible,
                  double share);
  ~ExpectationStep();

  /// Begins with other maps.
  /// @param references  of classes, of the images' box, with a mask applied
  /// @param noise       variance of the real part of the noise, in every shell up to the box's corner
  void begin(const SearchPlan& plan, std::span<const std::vector<float>> references,
             std::span<const double> noise);

  /// Padded box of the sums.
  int padded() const;
  /// Zeros for sums of so many classes.
  HalfSums<D> sums(std::size_t classes) const;

  /// @param images        [batch, box, box], the first rows.size() of which are particles `rows`
  /// @param origins       where the particles are thought to lie, pixels from the centre (row, column)
  /// @param class_priors  of all classes
  /// @param one_class     all of the images are taken to be of this class; -1: of any
  /// @param target        sums of their half set; null: not wanted
  std::vector<Found> run(const Part<float***>& images, std::span<const std::size_t> rows,
                         std::span<const Eigen::Vector2d> origins, std::span<const double> class_priors,
                         int one_class, const HalfSums<D>* target, ShellSums& shells);

  /// Mean of |X|^2 / 2 over images, by shells, is added to `sums`.
  void add_powers(const Part<float***>& images, std::span<const std::size_t> rows, std::vector<double>& sums);

  /// What images alone say of the particles, at low frequencies: each over its CTF, as if signal and noise were alike.
  std::vector<std::vector<float>> restored(const Part<float***>& images, std::span<const std::size_t> rows);

  std::int64_t batch() const { return static_cast<std::int64_t>(batch_); }

private:
  struct Pass;

  void transform(const Part<float***>& images, std::span<const std::size_t> rows);

  Space space_;
  const Contrast& contrast_;
  int box_;
  std::size_t batch_;
  bool reproducible_;
  double share_;
  FFT<Space, 2, float, Kokkos::complex<float>> forward_;
  Spectra spectra_;
  Weights squares_;
  std::vector<Matrix3<double>> orientations_; ///< of the first pass
  std::vector<std::unique_ptr<Pass>> passes_;
};

} // namespace Bracewell::Examples
