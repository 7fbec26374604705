// SPDX-License-Identifier: MIT
#include "bracewell-reconstruct/run.hpp"

#include "common/memory_limit.hpp"
#include "common/mrc.hpp"
#include "common/output_family.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"
#include "cryoem/map.hpp"
#include "cryoem/particle_provenance.hpp"
#include "cryoem/report.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <future>
#include <utility>
#include <vector>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;
std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

Sampling sampling_for(const RunOptions& options, Particles& particles) {
  Sampling sampling = options.reconstruction.sampling;
  if (sampling.kernel == KernelChoice::Linear ||
      !few_for_signed_weights(particles, options.reconstruction.symmetry))
    return sampling;
  const std::string few = std::to_string(particles.count) + " particles are few for ";
  if (options.kernel_given) {
    particles.warnings.push_back("--kernel: " + few +
                                 "it, --kernel linear --oversampling 2 is more accurate");
    return sampling;
  }
  particles.warnings.push_back(options.star.string() + ": " + few + "the kernel: linear is taken");
  sampling.kernel = KernelChoice::Linear;
  if (!options.oversampling_given)
    sampling.oversampling = 2;
  return sampling;
}

} // namespace

std::string reconstruct(const Space& space, const RunOptions& options, Provenance& provenance,
                        Timings& timings) {
  const auto start = std::chrono::steady_clock::now();
  timings.phase("read poses");
  options.reconstruction.sampling.check();
  const std::array half_paths{beside(options.out, "_half1.mrc"), beside(options.out, "_half2.mrc")};
  const fs::path correlation_path = beside(options.out, "_fsc.txt"),
                 plot_path = beside(options.out, "_fsc" + options.picture_ending),
                 slices_path = beside(options.out, "_slices" + options.picture_ending);
  OutputFamily outputs({options.out, half_paths[0], half_paths[1], correlation_path, plot_path, slices_path});
  Particles particles =
      read_particles(options.star, {.pixel_size = options.pixel_size, .class_number = options.class_number});
  double pixel_size = particles.pixel_size.present() ? particles.pixel_size[0] : 0;
  if (pixel_size == 0 && particles.stacks[0].pixel_size)
    pixel_size = *particles.stacks[0].pixel_size;
  const std::optional<double>& stated = particles.stacks[0].pixel_size;
  if (stated && std::abs(*stated - pixel_size) > 0.01 * pixel_size)
    particles.warnings.push_back(options.star.string() + ": states pixels of " + number(pixel_size) +
                                 " Angstrom, its stack of " + number(*stated) + ": the former are taken");
  if (pixel_size == 0)
    particles.warnings.push_back(
        options.star.string() +
        ": neither the file nor its stacks state a pixel size: lengths are in pixels");
  const SoftSphere mask = mask_of(particles, options.mask_diameter, pixel_size);
  const double limit = memory_limit(options.memory_limit);
  ReconstructionOptions settings = options.reconstruction;
  settings.sampling = sampling_for(options, particles);
  require_memory_for_reconstruction(particles, settings, limit);
  std::optional<CubicMap> reference;
  if (options.reference) {
    reference = read_map(provenance, *options.reference, limit);
    if (reference->box != particles.image_width)
      throw InputError(options.reference->string() + ": expected a box of " +
                       std::to_string(particles.image_width) + " voxels as the images have, found " +
                       std::to_string(reference->box));
  }

  timings.phase("prepare");
  Reconstruction reconstruction(space, particles, settings);
  note_particles(provenance, particles, reconstruction.uses_ctf());
  const bool halves = reconstruction.count(0) > 0 && reconstruction.count(1) > 0;
  if (!halves)
    provenance.assume(options.star.string() + ": has no particles in one of the half sets: no half maps");
  provenance.say();
  timings.phase("insert");
  timings.stages(reconstruction.insert_all());
  if (constexpr double noticeable = 1;
      !settings.normalise && std::abs(reconstruction.background()) > noticeable)
    provenance.assume(options.star.string() + ": the background of its images is " +
                      number(reconstruction.background()) +
                      " times their standard deviation: taken as it is; --normalise subtracts it");

  if (!is_first_process())
    return "";
  timings.phase("make maps");
  const int box = reconstruction.box();
  Correlations correlations;
  std::array<Map, 2> half_maps;
  std::optional<Progress> progress(std::in_place, "making", "maps", halves ? 3 : 1);
  if (halves) {
    for (const int half : {0, 1}) {
      half_maps[static_cast<std::size_t>(half)] = reconstruction.half_map(half);
      progress->add(1);
    }
    correlations.halves =
        correlation(space, masked(space, half_maps[0], mask), masked(space, half_maps[1], mask));
  }
  const Map map = masked(space, reconstruction.whole_map(), mask);
  const std::vector<float> values = to_host(space, map);
  progress.reset();
  std::vector<SlicedMap> slices{{"map", values}};
  Difference difference{};
  if (reference) {
    const Map truth = masked(space, to_device(space, *reference), mask);
    reference->values = to_host(space, truth);
    correlations.reference = correlation(space, map, truth);
    difference = compare(values, reference->values, box);
    slices.push_back({"reference", reference->values});
  }

  timings.phase("write");
  const std::array<std::int64_t, 3> size{box, box, box};
  const MrcWriteOptions mrc{.pixel_size = pixel_size, .labels = provenance.lines()};
  // Large maps take as long to write as particles to insert: each on a thread.
  std::vector<std::future<void>> writing;
  const auto write = [&](const fs::path& path, std::vector<float> volume) {
    writing.push_back(std::async(std::launch::async, [&size, &mrc, path, own = std::move(volume)] {
      write_volume(path, own, size, mrc);
    }));
  };
  write(options.out, values);
  if (halves)
    for (const std::size_t half : {0, 1})
      write(half_paths[half], to_host(space, half_maps[half]));
  if (correlations.halves || correlations.reference)
    write_correlations(correlation_path, plot_path, correlations, box, pixel_size);
  write_slices(slices_path, slices, box, pixel_size);
  for (auto& one : writing)
    one.get();
  outputs.commit();

  std::string summary = options.out.string() + ": " + std::to_string(particles.count) + " particles of " +
                        std::to_string(box) + " x " + std::to_string(box) + " pixels" +
                        (reconstruction.uses_ctf() ? ", CTF corrected" : "");
  if (correlations.halves)
    summary += ", resolution " + resolution_text(*correlations.halves, 0.143, box, pixel_size) +
               " (FSC 0.143) and " + resolution_text(*correlations.halves, 0.5, box, pixel_size) + " (0.5)";
  if (correlations.reference)
    summary += ", against the reference " + resolution_text(*correlations.reference, 0.5, box, pixel_size) +
               " (FSC 0.5) and relative error " + number(difference.error) + " after scaling by " +
               number(difference.scale);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return summary + ", " + number(elapsed.count()) + " s";
}

} // namespace Bracewell::Examples
