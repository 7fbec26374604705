// SPDX-License-Identifier: MIT
#pragma once

#include "mrc.hpp"
#include "star.hpp"

#include <cstddef>
#include <optional>
#include <span>

namespace Bracewell::Examples {

/// Reads the images of particles by ranges of particles, whatever stacks they lie in: as few reads as the
/// order of the particles allows, one stack open at a time. For one thread at a time.
class ParticleImages {
public:
  /// `particles` has to outlive this.
  explicit ParticleImages(const Particles& particles) : particles_(particles) {}

  /// Reads the images of particles [first, first + count) into `out` [count, height, width]. Throws
  /// InputError as MrcReader::read_images.
  void read(std::size_t first, std::size_t count, std::span<float> out);

private:
  const Particles& particles_;
  std::size_t open_stack_ = 0;
  std::optional<MrcReader> reader_;
};

} // namespace Bracewell::Examples
