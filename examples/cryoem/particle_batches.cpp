// SPDX-License-Identifier: MIT
#include "cryoem/particle_batches.hpp"

#include "common/input_error.hpp"
#include "common/processes.hpp"
#include "common/provenance.hpp"
#include "common/stored_values.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

namespace Bracewell::Examples {
namespace {

/// Slots of the host: one for each thread that reads, and those that are copied and worked on.
int slots_of_host(const Particles& particles, std::size_t batch) {
  const std::size_t batches = (particles.count + batch - 1) / std::max<std::size_t>(1, batch);
  return std::clamp(static_cast<int>(std::min<std::size_t>(batches, 100)), 1,
                    io_threads() + (kernels_run_on_host ? 1 : 2));
}

} // namespace

namespace {

/// Filaments of the particles, numbered as they appear; empty without rlnHelicalTubeID.
std::vector<std::size_t> filaments(const Particles& particles) {
  const StarTable& table = *particles.document.find(particles.table);
  const auto tube = table.find("rlnHelicalTubeID"), micrograph = table.find("rlnMicrographName");
  std::vector<std::size_t> result;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (std::size_t row = 0; tube && row < particles.count; ++row) {
    const std::pair name(micrograph ? table.value(row, *micrograph) : std::string(), table.value(row, *tube));
    result.push_back(known.emplace(name, known.size()).first->second);
  }
  return result;
}

/// Neighbours on a filament show the same subunits: each goes whole to the half set with fewer particles.
std::vector<int> halves_of_filaments(const std::vector<std::size_t>& filament) {
  std::vector<std::size_t> lengths(std::ranges::max(filament) + 1);
  for (const std::size_t one : filament)
    ++lengths[one];
  std::vector<int> of_filament;
  std::array<std::size_t, 2> size{};
  for (const std::size_t length : lengths) {
    const int half = size[0] <= size[1] ? 0 : 1;
    of_filament.push_back(half);
    size[static_cast<std::size_t>(half)] += length;
  }
  std::vector<int> halves;
  for (const std::size_t one : filament)
    halves.push_back(of_filament[one]);
  return halves;
}

} // namespace

std::vector<int> half_sets(Particles& particles) {
  const auto filament = filaments(particles);
  if (!particles.random_subset.present() && !filament.empty()) {
    const std::size_t count = std::ranges::max(filament) + 1;
    particles.warnings.push_back(particles.file.string() + ": has no half sets (rlnRandomSubset): its " +
                                 std::to_string(count) +
                                 " filaments (rlnHelicalTubeID) are shared out between two");
    const std::vector<int> halves = halves_of_filaments(filament);
    for (std::string& finding : findings_in_names(particles, halves))
      particles.warnings.push_back(std::move(finding));
    return halves;
  }
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
  std::map<std::size_t, int> half_of; // 2: in both
  for (std::size_t row = 0; row < filament.size(); ++row)
    if (int& half = half_of.emplace(filament[row], halves[row]).first->second; half != halves[row])
      half = 2;
  if (const auto both = std::ranges::count(half_of, 2, [](const auto& entry) { return entry.second; });
      both > 0)
    particles.warnings.push_back(particles.file.string() + ": has segments of " + std::to_string(both) +
                                 " of " + std::to_string(half_of.size()) +
                                 " filaments in both half sets, whose maps agree for that reason, too");
  for (std::string& finding : findings_in_names(particles, halves))
    particles.warnings.push_back(std::move(finding));
  return halves;
}

ParticleBatches::ParticleBatches(const Space& space, const Particles& particles, std::size_t batch,
                                 bool subtract_background)
    : space_(space), particles_(particles), reader_(particles), batch_(batch),
      subtract_background_(subtract_background),
      in_place_(std::ranges::all_of(particles.stacks,
                                    [&](const ParticleStack& stack) {
                                      return stack.format.is_float() && stack.width == particles.image_width;
                                    })),
      stored_(space, batch * reader_.image_bytes(), slots_of_host(particles, batch)),
      statistics_(allocate<DeviceView<ImageStatistics*>>("statistics", batch)),
      host_statistics_(allocate<OnHost<ImageStatistics*>>("statistics", batch)),
      seen_(particles.count, LookAtImage{.deviation = -1}) {
  if (!in_place_)
    images_ = allocate<Images>("images", batch, particles.image_height, particles.image_width);
  for (const ParticleStack& stack : particles.stacks)
    if (stack.width != particles.image_width &&
        std::ranges::find(boxes_, static_cast<int>(stack.width), &BoxChange::from) == boxes_.end())
      boxes_.emplace_back(space, static_cast<int>(stack.width), static_cast<int>(particles.image_width));
}

double ParticleBatches::bytes_needed(const Particles& particles, std::size_t batch) {
  std::int64_t pixels = 0;
  for (const ParticleStack& stack : particles.stacks)
    pixels = std::max(pixels, stack.width * stack.height);
  return double(slots_of_host(particles, batch)) * double(batch) * sizeof(float) * double(pixels);
}

Part<float***> ParticleBatches::to_images(std::span<const std::size_t> rows, std::byte* stored) const {
  const auto height = static_cast<std::size_t>(particles_.image_height),
             width = static_cast<std::size_t>(particles_.image_width);
  if (in_place_)
    return Part<float***>(reinterpret_cast<float*>(stored), batch_, height, width);
  const auto width_of = [&](std::size_t i) { return particles_.stacks[particles_.stack[rows[i]]].width; };
  for (std::size_t begin = 0, end; begin < rows.size(); begin = end) {
    const StoredFormat format = reader_.format(rows[begin]);
    const std::int64_t pixels = particles_.image_height * particles_.image_width, box = width_of(begin);
    if (box != particles_.image_width) {
      const auto change = std::ranges::find(boxes_, static_cast<int>(box), &BoxChange::from);
      to_floats(space_, format, stored + begin * reader_.image_bytes(), change->input(), box * box);
      change->run(space_, Part<float***>(images_.data() + static_cast<std::int64_t>(begin) * pixels, 1,
                                         height, width));
      end = begin + 1;
      continue;
    }
    const bool dense = static_cast<std::size_t>(pixels * bytes_of(format.type)) == reader_.image_bytes();
    for (end = begin + 1;
         dense && end < rows.size() && reader_.format(rows[end]) == format && width_of(end) == box;)
      ++end;
    to_floats(space_, format, stored + begin * reader_.image_bytes(),
              images_.data() + static_cast<std::int64_t>(begin) * pixels,
              static_cast<std::int64_t>(end - begin) * pixels);
  }
  return images_;
}

void ParticleBatches::look_at(std::span<const std::size_t> rows, const Part<float***>& images) {
  LookAtImages{.images = images.data(),
               .height = particles_.image_height,
               .width = particles_.image_width,
               .subtract_background = subtract_background_,
               .statistics = statistics_.data()}
      .run(space_, rows.size());
  copy_values(space_, host_statistics_, statistics_);
  space_.fence("Bracewell::examples::look_at_images");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ImageStatistics& image = host_statistics_(i);
    if (image.not_finite < particles_.image_height * particles_.image_width)
      throw InputError(reader_.not_finite(rows[i], image.not_finite));
    if (image.largest > largest_value)
      throw InputError(particles_.file.string() + ": row " + std::to_string(rows[i] + 1) +
                       ": its image has values of " + shortest(image.largest) + ", expected " +
                       shortest(largest_value) +
                       " at most: damaged, or of another type than its header says?");
    seen_[rows[i]] = {image.background,
                      image.inside,
                      image.deviation,
                      image.mixed,
                      image.squares,
                      image.hot,
                      static_cast<double>(image.hot_pixel)};
  }
}

std::vector<LookAtImage> ParticleBatches::seen() const {
  if (process_count() == 1)
    return seen_;
  const OnHost<double* [8]> all("Bracewell::examples::seen", seen_.size());
  for (std::size_t row = 0; row < seen_.size(); ++row)
    if (const LookAtImage& image = seen_[row]; image.deviation >= 0)
      std::ranges::copy(std::array{image.background, image.inside, image.deviation, image.mixed,
                                   image.squares, image.hot, image.hot_pixel, 1.0},
                        &all(row, 0));
  processes().sum(space_, all);
  std::vector<LookAtImage> result = seen_;
  for (std::size_t row = 0; row < seen_.size(); ++row)
    if (const double* const values = &all(row, 0); values[7] > 0)
      result[row] = {values[0], values[1], values[2], values[3], values[4], values[5], values[6]};
  return result;
}

std::vector<StageTime> ParticleBatches::for_each(std::span<const std::size_t> rows, Handout& handout,
                                                 const Work& work) {
  const auto rows_of = [&](std::int64_t item) {
    const Share part = handout.part(item);
    return rows.subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.size()));
  };
  const auto bytes_of_item = [&](std::int64_t item) {
    return static_cast<std::int64_t>(rows_of(item).size() * reader_.image_bytes());
  };
  Stage read{.name = "read", .threads = io_threads(), .slots = stored_.on_host()};
  read.work = [&](std::int64_t item) {
    reader_.read(rows_of(item), {stored_.host(item), static_cast<std::size_t>(bytes_of_item(item))});
  };
  Stage compute{.name = "compute", .threads = 0};
  compute.work = [&](std::int64_t item) {
    const Part<float***> batch = to_images(rows_of(item), stored_.device(item));
    look_at(rows_of(item), batch);
    work(batch, rows_of(item));
    space_.fence("Bracewell::examples::particle_batches"); // the slot is written to next
  };
  std::vector<Stage> stages{read};
  stored_.add_copy(stages, Slots::Direction::In, bytes_of_item);
  stages.push_back(compute);
  auto times = run_stages(static_cast<std::int64_t>(handout.parts().size()), stages,
                          [&](std::int64_t item) { return handout.take(item); });
  for (StageTime& time : times)
    time.bytes = handout.taken() * static_cast<std::int64_t>(reader_.image_bytes());
  return times;
}

} // namespace Bracewell::Examples
