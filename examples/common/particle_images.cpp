// SPDX-License-Identifier: MIT
#include "particle_images.hpp"

#include "input_error.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace Bracewell::Examples {

ParticleImages::ParticleImages(const Particles& particles) : particles_(particles) {
  for (const ParticleStack& stack : particles.stacks)
    image_bytes_ = std::max(
        image_bytes_, static_cast<std::size_t>(stack.width * stack.height * bytes_of(stack.format.type)));
}

std::shared_ptr<const ImageStack> ParticleImages::open(std::size_t stack) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(open_, stack, [](const auto& entry) { return entry.first; });
  if (known != open_.end())
    return known->second;
  const auto& [path, images, pixel_size, format, width, height] = particles_.stacks[stack];
  std::shared_ptr<const ImageStack> reader;
  try {
    reader = std::make_shared<const ImageStack>(path);
  } catch (const InputError& error) { // its header was read when the run began
    throw std::runtime_error(std::string(error.what()) + " (it was changed while it was in use)");
  }
  if (reader->width() != width || reader->height() != height || reader->images() < images ||
      reader->format() != format)
    throw std::runtime_error(path.string() + ": was changed while it was in use");
  open_.emplace_front(stack, reader);
  if (constexpr std::size_t most = 32; open_.size() > most)
    open_.pop_back();
  return reader;
}

void ParticleImages::read(std::span<const std::size_t> rows, std::span<std::byte> out) {
  if (out.size() < rows.size() * image_bytes_)
    throw std::invalid_argument("ParticleImages::read: the span does not fit the particles");
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto place = [&](std::size_t i) {
    return std::pair(particles_.stack[rows[i]], particles_.image[rows[i]]);
  };
  std::ranges::sort(order, {}, place);
  std::vector<std::byte*> targets;
  for (std::size_t begin = 0, end; begin < order.size(); begin = end) {
    const auto [stack, first] = place(order[begin]);
    targets.clear();
    for (end = begin; end < order.size() &&
                      place(order[end]) == std::pair(stack, first + static_cast<std::int64_t>(end - begin));
         ++end)
      targets.push_back(out.data() + order[end] * image_bytes_);
    open(stack)->read_stored(first, targets);
  }
}

std::string ParticleImages::not_finite(std::size_t row, std::int64_t pixel) {
  return open(particles_.stack[row])->not_finite(particles_.image[row], pixel);
}

} // namespace Bracewell::Examples
