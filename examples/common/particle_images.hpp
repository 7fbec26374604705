// SPDX-License-Identifier: MIT
#pragma once

#include "image_stack.hpp"
#include "star.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

namespace Bracewell::Examples {

/// Reads the images of particles as they are stored, whatever stacks they lie in: as few reads as the order of the
/// particles in the stacks allows, with a bounded number of stacks open. For several threads at a time.
class ParticleImages {
public:
  /// `particles` has to outlive this.
  explicit ParticleImages(const Particles& particles);

  /// Bytes from one image to the next: those of an image of the widest type in any stack.
  std::size_t image_bytes() const { return image_bytes_; }
  StoredFormat format(std::size_t row) const { return particles_.stacks[particles_.stack[row]].format; }

  /// Reads the images of particles `rows`, in any order, the i-th to `out` + i * image_bytes(). Throws
  /// std::runtime_error where a stack was changed, or cannot be read.
  void read(std::span<const std::size_t> rows, std::span<std::byte> out);
  /// The message for a value that is not finite, `pixel` counted along the image of a particle.
  std::string not_finite(std::size_t row, std::int64_t pixel);

private:
  std::shared_ptr<const ImageStack> open(std::size_t stack);

  const Particles& particles_;
  std::size_t image_bytes_ = 0;
  std::mutex mutex_;
  std::deque<std::pair<std::size_t, std::shared_ptr<const ImageStack>>>
      open_; ///< the one opened last comes first
};

} // namespace Bracewell::Examples
