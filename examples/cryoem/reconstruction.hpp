// SPDX-License-Identifier: MIT
#pragma once

#include "common/pipeline.hpp"
#include "common/star.hpp"
#include "cryoem/contrast.hpp"
#include "cryoem/half_maps.hpp"
#include "cryoem/helix.hpp"
#include "cryoem/poses.hpp"
#include "cryoem/sampling.hpp"
#include "cryoem/subtomograms.hpp"
#include "cryoem/views.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/geometry/symmetry.hpp>
#include <bracewell/reconstruct/normalise.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace Bracewell::Examples {

struct ReconstructionOptions {
  Sampling sampling{.kernel = KernelChoice::Linear, .oversampling = 2};
  std::string symmetry = "C1";
  std::optional<Helix> helix;
  std::optional<bool> ctf;      ///< absent: where the STAR file has what it takes
  bool normalise = false;       ///< subtract the background of every image
  bool reproducible = false;    ///< sums in a fixed order
  std::optional<double> wiener; ///< added to every weight; absent: noise over signal, as the half sets say
  std::optional<double> floor;  ///< least weight, as a part of the mean of its shell; absent: normalise's
  int gridding_steps = 20;      ///< of WeightEqualiser, at most; 0: the quotient of data and weights
  double signal_part = 0.3;     ///< of the box's volume in which there is signal
  /// Whether samples lie on the Ewald sphere, bent as RELION's --ewald bends it (1) or as its --reverse_curvature (-1); 0: flat.
  int ewald = 0;
  double diameter = 0;                        ///< of the particle, pixels, with `ewald`
  std::size_t batch = 0;                      ///< particles at a time; 0: by size
  std::optional<std::array<double, 2>> tilts; ///< degrees, of subtomograms without rlnCtfImage
};

/// Whether linear interpolation is more accurate than signed weights, which need more samples: with fewer than
/// three particles, times the symmetry, per pixel of the box's edge (examples/README.md).
bool few_for_signed_weights(const Particles& particles, const std::string& symmetry);

/// Throws InputError where reconstructing two half sets of the particles passes the limit.
void require_memory_for_reconstruction(const Particles& particles, const ReconstructionOptions& options,
                                       double limit);

/// Direct Fourier reconstruction of two half sets: every particle's spectrum, times its CTF, is inserted into
/// the data volume of its half set, and CTF^2 into the weight volume; a map is their quotient, with pixels as
/// the first particle has them. Subtomograms are inserted likewise, as volumes.
class Reconstruction {
public:
  /// Throws InputError where poses or the contrast transfer are asked for and missing; adds warnings to
  /// `particles`.
  Reconstruction(const Space& space, Particles& particles, const ReconstructionOptions& options);

  /// Reads and inserts all particles. Throws InputError for images that cannot be read.
  std::vector<StageTime> insert_all();

  /// Background of the images inserted, in standard deviations of an image; the mean of all.
  double background() const { return background_; }
  /// Images that say nothing (LookAtImage): they are not inserted.
  std::size_t left_out() const { return left_out_; }
  /// What seldom is meant so in the images inserted (findings_in_images).
  const std::vector<std::string>& findings() const { return findings_; }

  /// Whether there are particles in both half sets.
  bool has_both_halves() const;
  int box() const { return box_; }
  bool uses_ctf() const { return contrast_.present(); }

  /// Powers per shell of the padded box; absent without two half sets, or by signed weights.
  const std::optional<SignalAndNoise>& powers() const { return powers_; }
  /// What is added to the weights of a shell of the padded box; empty: nothing.
  const std::vector<double>& prior() const { return prior_; }
  int padded() const { return padded_; }
  /// Operators of the symmetry or the helix.
  std::size_t copies() const { return operators_.size(); }
  /// As searched, where it was; after insert_all.
  const std::optional<Helix>& helix() const { return options_.helix; }
  /// The weights of all particles, from which insert_all and whole_map make what they have.
  const MapWeight& weight(int half) const { return halves_[static_cast<std::size_t>(half)].weight; }

  /// Map of one half set, 0 or 1: with little noise, as references should be, or (keep_power) with the power that
  /// the signal has in the whole map in every direction, so that the correlation of both counts what was hardly seen.
  Map half_map(int half, bool keep_power = false);
  /// Map of all particles; the half maps are gone after it.
  Map whole_map();

  /// A random molecule with the power of the signal, seen by the weights of the particles and with their noise: its half maps
  /// (with the power kept), its map and itself. They tell how the correlation of half maps differs from the one that the map's
  /// correlation with the truth stands for, where samples miss many frequencies.
  struct Trial {
    std::array<Map, 2> halves;
    Map whole, truth;
  };
  /// None where a half set misses less than a tenth of the frequencies; complete after half_map(0 and 1, true) and whole_map.
  const std::vector<Trial>& trials() const { return trials_; }
  /// Part of the frequencies that the half sets have no sample of, the larger one.
  double unseen() const { return unseen_; }

private:
  struct Half {
    MapSpectrum data;
    MapWeight weight;
  };

  void transform(const Part<float***>& images, std::span<const std::size_t> rows);
  template <class Kernel>
  void insert(std::span<const std::size_t> rows, std::size_t firsts);
  std::vector<StageTime> insert_subtomograms();
  void finish();
  SignalAndNoise measure(double energy);
  DeviceView<double*> weight_curve();
  /// `which`: 0 and 1 are half sets, 2 is all, for the trials; -1: without them.
  Map map_of(const Half& half, bool keep_power, int which = -1);
  NormaliseOptions division() const;
  void count_unseen();
  Map seen_by(const MapWeight& weight, std::uint64_t molecule, std::uint64_t noise, bool divide);

  Space space_;
  Particles& particles_;
  ReconstructionOptions options_;
  int box_, padded_;
  std::vector<int> halves_of_;
  std::vector<SymmetryOperator> operators_;
  Contrast contrast_;
  std::optional<PixelSizes> pixel_sizes_; ///< absent: there is one
  std::optional<Subtomograms> subtomograms_;
  double background_ = 0;
  std::vector<std::string> findings_;
  std::size_t left_out_ = 0;
  std::size_t batch_;
  ParticlePoses poses_;
  Spectra spectra_;
  Spectra others_;        ///< the other sidebands, with an Ewald sphere
  double wavelength_ = 0; ///< Angstrom, likewise
  Weights weights_;
  FFT<Space, 2, float, Kokkos::complex<float>> forward_;
  std::array<Half, 2> halves_;
  std::optional<SignalAndNoise> powers_;
  std::vector<double> prior_;
  double unseen_ = 0;
  std::vector<Trial> trials_;
  MapSpectrum spectrum_; ///< of the map that is made
  Map padded_map_;       ///< likewise
  MapWeight divisor_;    ///< likewise
  std::optional<WeightEqualiser<Space, float>> equaliser_;
};

} // namespace Bracewell::Examples
