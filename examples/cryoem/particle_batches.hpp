// SPDX-License-Identifier: MIT
#pragma once

#include "common/particle_images.hpp"
#include "common/progress.hpp"
#include "cryoem/views.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <future>
#include <span>
#include <vector>

namespace Bracewell::Examples {

/// Half sets of the particles, 0 or 1 each: rlnRandomSubset where it is there, else odd and even rows, which adds
/// a warning to them. Throws InputError for another subset than 1 and 2.
inline std::vector<int> half_sets(Particles& particles) {
  if (!particles.random_subset.present())
    particles.warnings.push_back(particles.file.string() +
                                 ": has no half sets (rlnRandomSubset): odd and even rows are taken");
  std::vector<int> halves(particles.count);
  for (std::size_t row = 0; row < halves.size(); ++row) {
    const std::int64_t subset = particles.random_subset.present() ? particles.random_subset[row]
                                                                  : 1 + static_cast<std::int64_t>(row % 2);
    if (subset != 1 && subset != 2)
      throw InputError(particles.file.string() + ": row " + std::to_string(row + 1) +
                       ": expected 1 or 2 for rlnRandomSubset, found " + std::to_string(subset));
    halves[row] = static_cast<int>(subset - 1);
  }
  return halves;
}

/// Particles in batches, in the file's order, the next one being read while one is worked on; within a batch
/// those of the first half set come first.
class ParticleBatches {
public:
  /// The first two arguments have to outlive this. Optionally every image has its background subtracted, its
  /// mean outside of the disc that fits it.
  ParticleBatches(const Particles& particles, const std::vector<int>& halves, std::size_t batch,
                  bool subtract_background)
      : particles_(particles), halves_(halves), batch_(batch), subtract_background_(subtract_background),
        images_(particles), pixels_(static_cast<std::size_t>(particles.image_width * particles.image_height)),
        unsorted_(batch * pixels_) {
    for (auto& slot : slots_) {
      slot.images = allocate<Images>("images", batch, particles.image_height, particles.image_width);
      slot.mirror = Kokkos::create_mirror_view(slot.images);
    }
  }

  /// Calls work(images, rows, firsts) for every batch: images [batch, height, width] on the device, of which
  /// the first rows.size() are those of `rows`, and of these the first `firsts` belong to the first half set.
  /// Throws InputError as ParticleImages::read.
  template <class Work>
  void for_each(const Space& space, const Work& work) {
    Progress progress("inserting", "particles", static_cast<std::int64_t>(particles_.count));
    std::future<void> reading = read_ahead(0, 0);
    for (std::size_t first = 0, current = 0; first < particles_.count;
         first += batch_, current = 1 - current) {
      reading.get();
      if (first + batch_ < particles_.count)
        reading = read_ahead(first + batch_, 1 - current);
      const Slot& slot = slots_[current];
      Kokkos::deep_copy(space, slot.images, slot.mirror);
      work(slot.images, std::span(slot.rows), slot.firsts);
      space.fence("Bracewell::examples::particle_batches"); // the slot is read into next
      progress.add(static_cast<std::int64_t>(slot.rows.size()));
    }
  }

  /// Background of the images read, over their standard deviation; the mean of all.
  double background() const { return backgrounds_ / static_cast<double>(particles_.count); }

private:
  struct Slot {
    Images images;
    Images::host_mirror_type mirror;
    std::vector<std::size_t> rows;
    std::size_t firsts = 0;
  };

  std::future<void> read_ahead(std::size_t first, std::size_t slot) {
    return std::async(std::launch::async, [this, first, slot] { read(first, slots_[slot]); });
  }

  void read(std::size_t first, Slot& slot) {
    const std::size_t count = std::min(batch_, particles_.count - first);
    images_.read(first, count, std::span(unsorted_).first(count * pixels_));
    for (std::size_t i = 0; i < count; ++i)
      look_at_background(std::span(unsorted_).subspan(i * pixels_, pixels_));
    slot.rows.clear();
    for (const int half : {0, 1}) {
      for (std::size_t i = 0; i < count; ++i) {
        if (halves_[first + i] != half)
          continue;
        std::copy_n(&unsorted_[i * pixels_], pixels_, slot.mirror.data() + slot.rows.size() * pixels_);
        slot.rows.push_back(first + i);
      }
      if (half == 0)
        slot.firsts = slot.rows.size();
    }
  }

  void look_at_background(std::span<float> image) {
    const std::int64_t width = particles_.image_width, height = particles_.image_height;
    double sum = 0, squares = 0, outside = 0, count = 0;
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) {
        const double value = image[static_cast<std::size_t>(y * width + x)];
        const std::int64_t dx = 2 * (x - width / 2), dy = 2 * (y - height / 2);
        const bool is_outside = dx * dx + dy * dy > width * height;
        sum += value;
        squares += value * value;
        outside += is_outside ? value : 0;
        count += is_outside;
      }
    const auto pixels = static_cast<double>(pixels_);
    const double background = count > 0 ? outside / count : 0;
    const double deviation = std::sqrt(std::max(0.0, squares / pixels - sum / pixels * (sum / pixels)));
    backgrounds_ += deviation > 0 ? background / deviation : 0;
    if (subtract_background_)
      for (float& value : image)
        value -= static_cast<float>(background);
  }

  const Particles& particles_;
  const std::vector<int>& halves_;
  std::size_t batch_;
  bool subtract_background_;
  double backgrounds_ = 0;
  ParticleImages images_;
  std::size_t pixels_;
  std::vector<float> unsorted_;
  std::array<Slot, 2> slots_;
};

} // namespace Bracewell::Examples
