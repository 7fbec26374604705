// SPDX-License-Identifier: MIT
#pragma once

#include "common/mrc.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"
#include "common/slots.hpp"
#include "cryoem/contrast.hpp"
#include "cryoem/image_statistics.hpp"
#include "cryoem/noise.hpp"
#include "cryoem/poses.hpp"

#include <bracewell/fft/plan.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace Bracewell::Examples {

struct ImageOutputOptions {
  bool ctf = false;
  std::optional<double>
      signal_to_noise; ///< variance of the signal over that of white noise; absent: no noise
  std::uint64_t seed = 0;
  std::size_t batch = 0; ///< images at a time; 0: by their size
  double pixel_size = 0; ///< Angstrom, for the header; 0: not known
};

/// Makes an image stack from spectra of projections: contrast transfer, inverse transform, noise, file. Works
/// in batches, some being copied to the host and written while the next is computed, so that memory does not grow with
/// the number of particles.
class ImageOutput {
public:
  /// Throws InputError where the contrast transfer is asked for and cannot be computed.
  ImageOutput(const Space& space, Particles& particles, int box, const ImageOutputOptions& options)
      : space_(space), particles_(particles), box_(box), options_(options),
        batch_(batch_size(options.batch, particles.count, box)), poses_(batch_),
        spectra_(allocate<Spectra>("spectra", 1, batch_, box, box / 2 + 1)),
        images_(space, batch_ * pixels() * sizeof(float), io_threads() + 1),
        moments_("Bracewell::examples::moments",
                 kernels_run_on_host ? 0 : std::size_t(images_.on_host() + images_.on_device()), batch_),
        inverse_(space, {box, box}, static_cast<std::int64_t>(batch_)) {
    if (options.ctf)
      contrast_ = Contrast(space, particles, box, batch_);
  }

  /// Of images, of which some batches are in memory, and of their spectra.
  static double bytes_needed(const ImageOutputOptions& options, std::size_t particles, int box) {
    const double slots = 2.0 + (kernels_run_on_host ? 0 : 2) + io_threads() + 1;
    return slots * sizeof(float) * double(batch_size(options.batch, particles, box)) * box * box;
  }

  /// Before the rest of the work, as memory for the stack is taken beside it. `labels` are for the header. Throws
  /// InputError where the stack cannot be written.
  void open(const std::filesystem::path& path, const std::vector<std::string>& labels) {
    writer_.emplace(path, MrcWriter::Kind::Stack, box_, box_,
                    MrcWriteOptions{.pixel_size = options_.pixel_size,
                                    .labels = labels,
                                    .shared_images = static_cast<std::int64_t>(particles_.count)});
  }

  /// Writes the stack that is open. `project(poses, spectra)` fills the spectra of a batch; the inverse transform does not scale.
  template <class Project>
  std::vector<StageTime> write(const Project& project) {
    const double deviation = options_.signal_to_noise ? noise_deviation(project) : 0;
    const Share mine = processes().share(static_cast<std::int64_t>(particles_.count));
    Progress progress("projecting", "images", mine.size());
    std::vector<std::size_t> rows(static_cast<std::size_t>(mine.size()));
    std::iota(rows.begin(), rows.end(), static_cast<std::size_t>(mine.begin));
    const auto rows_of = [&](std::int64_t item) {
      const std::size_t first = static_cast<std::size_t>(item) * batch_;
      return std::span(rows).subspan(first, std::min(batch_, rows.size() - first));
    };
    const auto bytes_of_item = [&](std::int64_t item) {
      return static_cast<std::int64_t>(rows_of(item).size() * pixels() * sizeof(float));
    };
    const auto bytes = static_cast<std::int64_t>(rows.size() * pixels() * sizeof(float));
    Stage compute{.name = "compute", .threads = 0, .slots = images_.on_device(), .bytes = bytes};
    compute.work = [&](std::int64_t item) {
      const Images images(reinterpret_cast<float*>(images_.device(item)), batch_, spectra_.extent(2),
                          spectra_.extent(2));
      fill(rows_of(item), project);
      inverse_.execute(space_, spectra_, images);
      if (deviation > 0)
        add_noise(space_, images, {options_.seed}, rows_of(item).front(), deviation);
      if constexpr (!kernels_run_on_host)
        ImageMoments{.images = images.data(),
                     .pixels = static_cast<std::int64_t>(pixels()),
                     .moments = moments_of(item)}
            .run(space_, rows_of(item).size());
      space_.fence("Bracewell::examples::image_output");
    };
    Stage write{.name = "write", .threads = io_threads(), .bytes = bytes};
    write.work = [&](std::int64_t item) {
      const std::span<const std::size_t> written = rows_of(item);
      const auto first = static_cast<std::int64_t>(written.front());
      const std::span images(reinterpret_cast<const float*>(images_.host(item)), written.size() * pixels());
      if constexpr (kernels_run_on_host)
        writer_->write_at(first, images);
      else
        writer_->write_at(first, images, {moments_of(item), written.size()});
      progress.add(static_cast<std::int64_t>(written.size()));
    };
    std::vector<Stage> stages{compute};
    images_.add_copy(stages, Slots::Direction::Out, bytes_of_item);
    stages.push_back(write);
    const auto items = static_cast<std::int64_t>((rows.size() + batch_ - 1) / batch_);
    const std::vector<StageTime> times = run_stages(items, stages);
    writer_->close();
    return times;
  }

private:
  /// As many as fit the caches of a host, and as keep a GPU busy.
  static std::size_t batch_size(std::size_t asked, std::size_t particles, int box) {
    constexpr std::size_t bytes = kernels_run_on_host ? 4 << 20 : 32 << 20;
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

  /// Of the images of a batch. An item is computed once the one as many before it as slots follow it is written.
  MrcWriter::Moments* moments_of(std::int64_t item) const {
    return &moments_(static_cast<std::size_t>(item) % moments_.extent(0), 0);
  }

  std::size_t pixels() const { return static_cast<std::size_t>(box_) * static_cast<std::size_t>(box_); }

  Space space_;
  const Particles& particles_;
  int box_;
  ImageOutputOptions options_;
  std::size_t batch_;
  ParticlePoses poses_;
  Spectra spectra_;
  Slots images_;
  OnHost<MrcWriter::Moments**> moments_; ///< [slots, batch], by the device where there is one
  FFT<Space, 2, Kokkos::complex<float>, float> inverse_;
  Contrast contrast_;
  std::optional<MrcWriter> writer_;
};

} // namespace Bracewell::Examples
