// SPDX-License-Identifier: MIT
#pragma once

#include "common/handout.hpp"
#include "common/particle_images.hpp"
#include "common/slots.hpp"
#include "cryoem/boxes.hpp"
#include "cryoem/findings.hpp"
#include "cryoem/image_statistics.hpp"
#include "cryoem/views.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace Bracewell::Examples {

/// Half sets of the particles, 0 or 1 each: rlnRandomSubset where it is there, else whole filaments (rlnHelicalTubeID,
/// rlnMicrographName), else odd and even rows. Adds warnings to them, also of filaments in both half sets. Throws InputError
/// for another subset than 1 and 2. The warnings include findings_in_names.
std::vector<int> half_sets(Particles& particles);

/// Images of particles in batches. Threads read the next ones as they are stored, and copy them to the device, while
/// one is worked on; they become floats there, those of other boxes than the first one's by BoxChange.
class ParticleBatches {
public:
  /// Batches have up to `batch` particles, which have to outlive this. Optionally every image has its background
  /// subtracted, its mean outside of the disc that fits it.
  ParticleBatches(const Space& space, const Particles& particles, std::size_t batch,
                  bool subtract_background);

  /// Of the images that are in memory at once, on the host; on the device there are three batches at most.
  static double bytes_needed(const Particles& particles, std::size_t batch);

  /// What is done with the images [batch, height, width] of particles `rows`, of which the first rows.size() are
  /// theirs.
  using Work = std::function<void(const Part<float***>& images, std::span<const std::size_t> rows)>;

  /// Does it with the particles `rows`, the parts that this process takes of them one by one, in this thread, with a
  /// fence after each. Throws what ParticleImages::read throws, and InputError for values that are not finite, with the
  /// number of the image.
  std::vector<StageTime> for_each(std::span<const std::size_t> rows, Handout& handout, const Work& work);

  /// Whether an image that was read by this process says nothing (LookAtImage).
  bool is_useless(std::size_t row) const {
    return seen_[row].is_useless(std::int64_t(particles_.image_width) * particles_.image_height);
  }

  /// What was seen in every particle's image, in whatever process: for all of them, once all have read theirs.
  std::vector<LookAtImage> seen() const;

private:
  Part<float***> to_images(std::span<const std::size_t> rows, std::byte* stored) const;
  void look_at(std::span<const std::size_t> rows, const Part<float***>& images);

  Space space_;
  const Particles& particles_;
  ParticleImages reader_;
  std::size_t batch_;
  bool subtract_background_;
  bool in_place_; ///< stored values are floats as the machine has them
  Slots stored_;
  Images images_;                ///< unless in place
  std::vector<BoxChange> boxes_; ///< that are not the first image's
  DeviceView<ImageStatistics*> statistics_;
  OnHost<ImageStatistics*> host_statistics_;
  std::vector<LookAtImage> seen_; ///< [particles]
};

} // namespace Bracewell::Examples
