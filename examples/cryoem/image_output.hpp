// SPDX-License-Identifier: MIT
#pragma once

#include "common/mrc.hpp"
#include "common/progress.hpp"
#include "cryoem/contrast.hpp"
#include "cryoem/noise.hpp"
#include "cryoem/poses.hpp"

#include <bracewell/fft/plan.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <future>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace Bracewell::Examples {

struct ImageOutputOptions {
  bool ctf = false;
  std::optional<double>
      signal_to_noise; ///< variance of the signal over that of white noise; absent: no noise
  std::uint64_t seed = 0;
  std::size_t batch = 0; ///< images at a time; 0: as many as fit the caches
  double pixel_size = 0; ///< Angstrom, for the header; 0: not known
};

/// Makes an image stack from spectra of projections: contrast transfer, inverse transform, noise, file. Works
/// in batches, one being written while the next is computed, so that memory does not grow with the number of
/// particles.
class ImageOutput {
public:
  /// Throws InputError where the contrast transfer is asked for and cannot be computed.
  ImageOutput(const Space& space, Particles& particles, int box, const ImageOutputOptions& options)
      : space_(space), particles_(particles), box_(box), options_(options),
        batch_(batch_size(options.batch, particles.count, box)), poses_(batch_),
        spectra_(allocate<Spectra>("spectra", 1, batch_, box, box / 2 + 1)),
        inverse_(space, {box, box}, static_cast<std::int64_t>(batch_)) {
    for (auto& images : images_)
      images = allocate<Images>("images", batch_, box, box);
    if (options.ctf)
      contrast_ = Contrast(space, particles, box, batch_);
  }

  /// Of images of which two batches are in memory, and of their spectra.
  static double bytes_needed(const ImageOutputOptions& options, std::size_t particles, int box) {
    return 4.0 * sizeof(float) * double(batch_size(options.batch, particles, box)) * box * box;
  }

  /// `labels` are for the header. `project(poses, spectra)` fills the spectra of a batch; the inverse transform does not scale.
  template <class Project>
  void write(const std::filesystem::path& path, const std::vector<std::string>& labels,
             const Project& project) {
    const double deviation = options_.signal_to_noise ? noise_deviation(project) : 0;
    MrcWriter writer(path, MrcWriter::Kind::Stack, box_, box_,
                     {.pixel_size = options_.pixel_size, .labels = labels});
    Progress progress("projecting", "images", static_cast<std::int64_t>(particles_.count));
    const std::array mirrors{Kokkos::create_mirror_view(images_[0]), Kokkos::create_mirror_view(images_[1])};
    std::vector<std::size_t> rows(particles_.count);
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    std::future<void> writing; // declared last: it is waited for before what it uses goes
    for (std::size_t first = 0, slot = 0; first < rows.size(); first += batch_, slot = 1 - slot) {
      const std::size_t count = std::min(batch_, rows.size() - first);
      fill(std::span(rows).subspan(first, count), project);
      inverse_.execute(space_, spectra_, images_[slot]);
      if (deviation > 0)
        add_noise(space_, images_[slot], {options_.seed}, first, deviation);
      Kokkos::deep_copy(space_, mirrors[slot], images_[slot]);
      space_.fence("Bracewell::examples::image_output");
      if (writing.valid())
        writing.get();
      writing = std::async(std::launch::async, [&, slot, count] {
        writer.write({mirrors[slot].data(), count * mirrors[slot].extent(1) * mirrors[slot].extent(2)});
        progress.add(static_cast<std::int64_t>(count));
      });
    }
    writing.get();
    writer.close();
  }

private:
  static std::size_t batch_size(std::size_t asked, std::size_t particles, int box) {
    constexpr std::size_t bytes = 4 << 20;
    const auto pixels = static_cast<std::size_t>(box) * static_cast<std::size_t>(box);
    return std::clamp<std::size_t>(asked > 0 ? asked : bytes / (sizeof(float) * pixels), 1, particles);
  }

  template <class Project>
  void fill(std::span<const std::size_t> rows, const Project& project) {
    set_poses(space_, poses_, particles_, rows, box_);
    const auto spectra = range(spectra_, 0, rows.size());
    project(poses_.part(0, rows.size()), spectra);
    if (contrast_.present())
      contrast_.modulate(space_, rows, spectra);
  }

  /// From the mean variance of images spread over the whole file: all images get the same noise, whatever the
  /// batches.
  template <class Project>
  double noise_deviation(const Project& project) {
    constexpr std::size_t most = 64;
    const std::size_t count = std::min(most, particles_.count);
    double variance = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t row = i * particles_.count / count;
      fill(std::span(&row, 1), project);
      variance += image_variance(space_, range(spectra_, 0, 1), box_) / static_cast<double>(count);
    }
    return std::sqrt(variance / *options_.signal_to_noise);
  }

  Space space_;
  const Particles& particles_;
  int box_;
  ImageOutputOptions options_;
  std::size_t batch_;
  ParticlePoses poses_;
  Spectra spectra_;
  std::array<Images, 2> images_;
  FFT<Space, 2, Kokkos::complex<float>, float> inverse_;
  Contrast contrast_;
};

} // namespace Bracewell::Examples
