// SPDX-License-Identifier: MIT
#include "particle_images.hpp"

#include "input_error.hpp"

#include <stdexcept>

namespace Bracewell::Examples {

void ParticleImages::read(std::size_t first, std::size_t count, std::span<float> out) {
  const auto pixels = static_cast<std::size_t>(particles_.image_width * particles_.image_height);
  const auto& stack = particles_.stack;
  const auto& image = particles_.image;
  if (first + count > stack.size() || out.size() != count * pixels)
    throw std::invalid_argument("ParticleImages::read: the range or the span does not fit the particles");

  for (std::size_t begin = first, end; begin < first + count; begin = end) {
    end = begin + 1;
    while (end < first + count && stack[end] == stack[begin] && image[end] == image[end - 1] + 1)
      ++end;
    if (!reader_ || open_stack_ != stack[begin]) {
      open_stack_ = stack[begin];
      const auto& path = particles_.stacks[open_stack_].path;
      try {
        reader_.emplace(path);
      } catch (const InputError& error) { // its header was read when the run began
        throw std::runtime_error(std::string(error.what()) + " (it was changed while it was in use)");
      }
      if (reader_->width() != particles_.image_width || reader_->height() != particles_.image_height)
        throw std::runtime_error(path.string() + ": was changed while it was in use");
    }
    reader_->read_images(image[begin], static_cast<std::int64_t>(end - begin),
                         out.subspan((begin - first) * pixels, (end - begin) * pixels));
  }
}

} // namespace Bracewell::Examples
