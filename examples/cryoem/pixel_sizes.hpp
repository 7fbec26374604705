// SPDX-License-Identifier: MIT
#pragma once

#include "common/input_error.hpp"
#include "common/provenance.hpp"
#include "common/star.hpp"
#include "cryoem/views.hpp"

#include <bracewell/rfft/layout.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace Bracewell::Examples {

/// Pixels of the first particle that a pixel of another one is wide; 1 where they differ by 1e-4 or less.
inline double relative_pixel_size(const Particles& particles, std::size_t row) {
  if (!particles.pixel_size.present())
    return 1;
  const double relative = particles.pixel_size[row] / particles.pixel_size[0];
  return std::abs(relative - 1) <= 1e-4 ? 1 : relative;
}

/// Pixels along an image as it is stored.
inline std::int64_t box_of(const Particles& particles, std::size_t row) {
  return particles.stack.empty() ? particles.image_width : particles.stacks[particles.stack[row]].width;
}

/// Throws InputError where particles have different pixel sizes or boxes.
inline void require_one_pixel_size(const Particles& particles) {
  for (std::size_t row = 0; row < particles.count; ++row)
    if (box_of(particles, row) != particles.image_width)
      throw InputError(
          particles.file.string() + ": row " + std::to_string(row + 1) + ": expected an image of " +
          std::to_string(particles.image_width) + " pixels as in row 1, found " +
          std::to_string(box_of(particles, row)) +
          "; bring all to one box and pixel size (relion_image_handler --rescale_angpix --new_box), or take "
          "the groups one by one");
  for (std::size_t row = 0; row < particles.count; ++row)
    if (relative_pixel_size(particles, row) != 1)
      throw InputError(particles.file.string() + ": row " + std::to_string(row + 1) +
                       ": expected pixel size " + shortest(particles.pixel_size[0]) + " as in row 1, found " +
                       shortest(particles.pixel_size[row]) +
                       "; resample the images of one optics group, or take the groups one by one");
}

/// Brings spectra of images to the grid of the first particle, their values being samples of one function
/// whatever the pixels: a spectrum is scaled by the area of a pixel, and what lies beyond the grid's Nyquist
/// frequency gets no weight. (Where its frequencies lie on the grid is in the poses: set_poses.)
class PixelSizes {
public:
  /// For batches of up to `batch` images of a box.
  PixelSizes(const Particles& particles, int box, std::size_t batch)
      : particles_(particles), box_(box), on_device_("Bracewell::examples::pixel_sizes", batch),
        on_host_(Kokkos::create_mirror_view(on_device_)) {}

  struct Image {
    double relative; ///< pixel size
    double limit;    ///< the frequencies that it has are below this
  };
  struct Apply {
    const Image* images;
    HalfSpectrumLayout<2> layout;
    Kokkos::complex<float>* spectra;
    float* weights;

    KOKKOS_FUNCTION void operator()(std::int64_t index) const {
      const auto [pixel, own_limit] = images[index / layout.elements()];
      if (pixel == 1 && own_limit > layout.size[0])
        return;
      int k[2];
      layout.frequency(index % layout.elements(), k);
      const double limit = pixel * layout.size[0] / 2;
      const double squared = double(k[0]) * k[0] + double(k[1]) * k[1];
      const bool inside = squared <= limit * limit && squared < own_limit * own_limit;
      spectra[index] *= inside ? static_cast<float>(pixel * pixel) : 0.0f;
      weights[index] *= inside ? 1.0f : 0.0f;
    }
  };

  /// Of `rows`: spectra and weights [1, rows, box, box/2+1]. A fence has to stand between two calls.
  void apply(const Space& space, std::span<const std::size_t> rows, const Spectra& spectra,
             const Weights& weights) const {
    for (std::size_t i = 0; i < rows.size(); ++i)
      on_host_(i) = {relative_pixel_size(particles_, rows[i]),
                     box_of(particles_, rows[i]) == box_
                         ? 2.0 * box_ // all of them
                         : double(std::min<std::int64_t>(box_of(particles_, rows[i]), box_)) / 2};
    copy_values(space, on_device_, on_host_);
    const Apply functor{on_device_.data(), {{box_, box_}}, spectra.data(), weights.data()};
    Kokkos::parallel_for("Bracewell::examples::pixel_sizes",
                         Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                             space, 0, static_cast<std::int64_t>(rows.size()) * functor.layout.elements()),
                         functor);
  }

private:
  const Particles& particles_;
  int box_;
  DeviceView<Image*> on_device_;
  DeviceView<Image*>::host_mirror_type on_host_;
};

} // namespace Bracewell::Examples
