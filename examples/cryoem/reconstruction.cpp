// SPDX-License-Identifier: MIT
#include "cryoem/reconstruction.hpp"

#include "common/memory_limit.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"
#include "cryoem/noise.hpp"
#include "cryoem/particle_batches.hpp"

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/geometry/symmetrise.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/reconstruct/normalise.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>
#include <bracewell/rfft/layout.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace Bracewell::Examples {
namespace {

int square_box(const Particles& particles) {
  if (particles.image_width != particles.image_height || particles.image_width < 4 ||
      particles.image_width > 8192)
    throw InputError(particles.stacks[0].path.string() +
                     ": expected square images of 4 to 8192 pixels, found " +
                     std::to_string(particles.image_width) + " x " + std::to_string(particles.image_height));
  return static_cast<int>(particles.image_width);
}

/// The padded box: the even size closest to the oversampling's that FFT libraries have fast codes for (one with a
/// prime factor of 109 takes four times as long).
int padded_box(int box, const Sampling& sampling) {
  const int wanted = sampling.padded(box);
  const auto fast = [](int size) { return next_fast_size(size, true) == size; };
  for (int distance = 0;; distance += 2)
    for (const int size : {wanted - distance, wanted + distance})
      if (size >= box && fast(size))
        return size;
}

/// Whether a kernel has no negative lobes, so that weights are sums of positive numbers.
bool positive(KernelChoice kernel) { return kernel != KernelChoice::CatmullRom; }

std::vector<SymmetryOperator> motions(const ReconstructionOptions& options) {
  if (options.helix)
    return helical_operators(options.helix->rise, options.helix->twist, options.helix->subunits,
                             options.symmetry);
  std::vector<SymmetryOperator> result;
  for (const auto& rotation : symmetry_operators(options.symmetry))
    result.push_back({rotation});
  return result;
}

/// Enough for the volumes to be passed over seldom, and little beside them.
std::size_t batch_size(std::size_t asked, std::size_t particles, int box) {
  constexpr std::size_t bytes = 64 << 20, most = 1024;
  const auto pixels = static_cast<std::size_t>(box) * static_cast<std::size_t>(box);
  return std::clamp<std::size_t>(asked > 0 ? asked : std::min(most, bytes / (sizeof(float) * pixels)), 1,
                                 particles);
}

/// Moves those images to the front that say something; returns their rows.
std::vector<std::size_t> without_useless(const Space& space, const ParticleBatches& particles,
                                         const Part<float***>& images, std::span<const std::size_t> rows) {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (particles.is_useless(rows[i]))
      continue;
    if (kept.size() < i)
      copy_values(space, Kokkos::subview(images, kept.size(), Kokkos::ALL, Kokkos::ALL),
                  Kokkos::subview(images, i, Kokkos::ALL, Kokkos::ALL));
    kept.push_back(rows[i]);
  }
  return kept;
}

template <class View>
struct AddTo {
  View target, source;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { target.data()[i] += source.data()[i]; }
};

template <class View>
void add_to(const Space& space, const View& target, const View& source) {
  Kokkos::parallel_for("Bracewell::examples::add_to",
                       Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                           space, 0, static_cast<std::int64_t>(target.size())),
                       AddTo<View>{target, source});
}

/// Part of the elements up to a radius without a weight, by rows of a half spectrum.
struct CountUnseen {
  MapWeight weight;

  KOKKOS_FUNCTION void operator()(std::int64_t row, double& unseen, double& all) const {
    const int n = static_cast<int>(weight.extent(1));
    const int z = static_cast<int>(row / n), y = static_cast<int>(row % n);
    const double kz = HalfSpectrumLayout<3>::frequency(z, n), ky = HalfSpectrumLayout<3>::frequency(y, n);
    for (int x = 0; x < n / 2; ++x) {
      if (4 * (kz * kz + ky * ky + double(x) * x) >= double(n) * n)
        continue;
      const int times = x == 0 ? 1 : 2;
      all += times;
      unseen += weight(0, z, y, x) > 0 ? 0 : times;
    }
  }
};

/// White noise in a ball about element 0.
struct RandomBall {
  Map map;
  double radius;
  NormalDeviates deviates;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    const int n = static_cast<int>(map.extent(1));
    const int z = static_cast<int>(row / n), y = static_cast<int>(row % n);
    const double dz = HalfSpectrumLayout<3>::frequency(z, n), dy = HalfSpectrumLayout<3>::frequency(y, n);
    const std::uint64_t seed = deviates.image_seed(static_cast<std::uint64_t>(row));
    for (int x = 0; x < n; ++x) {
      const double dx = HalfSpectrumLayout<3>::frequency(x, n);
      const bool within = dx * dx + dy * dy + dz * dz < radius * radius;
      map(0, z, y, x) = within ? deviates(seed, static_cast<std::uint64_t>(x)).first : 0;
    }
  }
};

/// V becomes W V + noise of the variance W N, V having the power of the signal; or V itself.
struct SeeMolecule {
  MapSpectrum spectrum;
  MapWeight weight;                  ///< empty: V itself
  DeviceView<double*> signal, noise; ///< per shell
  double scale;                      ///< V's power before
  NormalDeviates deviates;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    const int n = static_cast<int>(spectrum.extent(1)), shells = static_cast<int>(signal.extent(0));
    const int z = static_cast<int>(row / n), y = static_cast<int>(row % n);
    const double kz = HalfSpectrumLayout<3>::frequency(z, n), ky = HalfSpectrumLayout<3>::frequency(y, n);
    const std::uint64_t seed = deviates.image_seed(static_cast<std::uint64_t>(row));
    for (int x = 0; x <= n / 2; ++x) {
      auto& value = spectrum(0, z, y, x);
      const int shell = static_cast<int>(Kokkos::sqrt(kz * kz + ky * ky + double(x) * x) + 0.5);
      if (shell >= shells) {
        value = 0;
        continue;
      }
      value *= static_cast<float>(Kokkos::sqrt(signal(shell) / scale));
      if (weight.size() == 0)
        continue;
      const float own = weight(0, z, y, x);
      const auto pair = deviates(seed, static_cast<std::uint64_t>(x));
      const auto deviation = own > 0 ? static_cast<float>(Kokkos::sqrt(own * noise(shell) / 2)) : 0.0f;
      value = own * value + Kokkos::complex<float>(deviation * pair.first, deviation * pair.second);
    }
  }
};

DeviceView<double*> on_device(const Space& space, const std::vector<double>& values) {
  const DeviceView<double*> result("Bracewell::examples::curve", values.size());
  copy_values(space, result, host_view(values));
  space.fence("Bracewell::examples::curve"); // the host's go
  return result;
}

} // namespace

void require_memory_for_reconstruction(const Particles& particles, const ReconstructionOptions& options,
                                       double limit) {
  const int box = static_cast<int>(particles.image_width), padded = padded_box(box, options.sampling);
  const std::size_t batch = batch_size(options.batch, particles.count, box);
  // Two half sets, data and weights; then the data and a weight again, the padded map, and the transform's copy. On hosts
  // many particles at once are added to a half set by way of one more in float and one in double.
  constexpr std::size_t few = 256;
  const double volumes = kernels_run_on_host && batch > few && !particles.subtomograms ? 7.5 : 6.75;
  require_memory("a box of " + std::to_string(box) + " pixels padded to " + std::to_string(padded),
                 resident_bytes() + sizeof(float) * volumes * std::pow(padded, 3) +
                     (particles.subtomograms ? Subtomograms::bytes_needed(box)
                                             : ParticleBatches::bytes_needed(particles, batch)) +
                     (options.ewald == 0 ? 0.0 : sizeof(float) * std::pow(box, 2) * double(batch)),
                 limit);
}

bool few_for_signed_weights(const Particles& particles, const std::string& symmetry) {
  return double(particles.count) * double(symmetry_operators(symmetry).size()) <
         3 * double(particles.image_width);
}

Reconstruction::Reconstruction(const Space& space, Particles& particles, const ReconstructionOptions& options)
    : space_(space), particles_(particles), options_(options), box_(square_box(particles)),
      padded_(padded_box(box_, options.sampling)), halves_of_(half_sets(particles)),
      operators_(motions(options)),
      batch_(batch_size(particles.subtomograms ? 1 : options.batch, particles.count, box_)), poses_(batch_),
      spectra_(allocate<Spectra>("spectra", 1, batch_, box_, box_ / 2 + 1)),
      forward_(space, {box_, box_}, static_cast<std::int64_t>(batch_)) {
  require_poses(particles);
  for (auto& half : halves_) {
    half.data = MapSpectrum("Bracewell::examples::data", 1, padded_, padded_, padded_ / 2 + 1);
    half.weight = MapWeight("Bracewell::examples::weight", 1, padded_, padded_, padded_ / 2 + 1);
  }
  if (particles.subtomograms) {
    if (options.ewald != 0)
      throw InputError(particles.file.string() + ": has subtomograms, with which --ewald does not go");
    if (options.ctf)
      throw InputError(particles.file.string() +
                       ": has subtomograms: --ctf and --no-ctf are of images; rlnCtfImage or --tilt-range "
                       "says what was measured");
    require_one_process();
    subtomograms_.emplace(space, particles, options.tilts, options.normalise);
    return;
  }
  if (options.tilts)
    throw InputError(particles.file.string() + ": has images, with which --tilt-range does not go: expected "
                                               "subtomograms (rlnImageDimensionality 3)");
  for (std::size_t row = 0; row < particles.count && !pixel_sizes_; ++row)
    if (box_of(particles, row) != box_) {
      pixel_sizes_.emplace(particles, box_, batch_); // read_particles has said so
    } else if (relative_pixel_size(particles, row) != 1) {
      pixel_sizes_.emplace(particles, box_, batch_);
      particles.warnings.push_back(
          particles.file.string() + ": has images with pixels of " + shortest(particles.pixel_size[row]) +
          " Angstrom (row " + std::to_string(row + 1) + ") and of " + shortest(particles.pixel_size[0]) +
          ", which all are brought to: their values are taken as samples of the same function");
    }
  if (options.ctf.value_or(has_ctf(particles))) {
    contrast_ = Contrast(space, particles, box_, batch_);
    weights_ = allocate<Weights>("weights", 1, batch_, box_, box_ / 2 + 1);
  } else {
    if (!options.ctf)
      particles.warnings.push_back(
          particles.file.string() +
          ": has no contrast transfer (rlnDefocusU, rlnVoltage): the images are taken as "
          "projections");
    weights_ = allocate<Weights>("weights", 1, pixel_sizes_ ? batch_ : 1, box_, box_ / 2 + 1);
    fill_values(space, weights_, 1.0f);
  }
  if (options.ewald != 0) {
    if (!uses_ctf())
      throw InputError(particles.file.string() +
                       ": expected a contrast transfer, which --ewald needs, found none");
    wavelength_ = contrast_.require_sidebands(particles);
    others_ = allocate<Spectra>("others", 1, batch_, box_, box_ / 2 + 1);
  }
}

bool Reconstruction::has_both_halves() const {
  return std::ranges::find(halves_of_, 0) != halves_of_.end() &&
         std::ranges::find(halves_of_, 1) != halves_of_.end();
}

std::vector<StageTime> Reconstruction::insert_subtomograms() {
  std::vector<std::size_t> all(particles_.count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  Progress progress("inserting", "subtomograms", static_cast<std::int64_t>(all.size()));
  const ProjectionOptions options{.oversampling = static_cast<double>(padded_) / box_,
                                  .strategy = options_.reproducible ? Strategy::Owned : Strategy::Automatic};
  subtomograms_->for_each(all, [&](std::size_t row, const Subtomograms::Volume& spectrum,
                                   const Subtomograms::Weight& weight, const Poses<float, Memory>& pose) {
    Half& half = halves_[static_cast<std::size_t>(halves_of_[row])];
    with_kernel(options_.sampling.kernel, [&]<class Kernel>() {
      backproject<Kernel>(space_, HalfSpectrum{spectrum, box_}, pose,
                          {.data = half.data, .weight = half.weight, .weights = HalfSpectrum{weight, box_}},
                          options);
    });
    progress.add(1);
  });
  const auto& seen = subtomograms_->seen();
  left_out_ = static_cast<std::size_t>(std::ranges::count(seen, 0.0, &LookAtImage::deviation));
  for (const LookAtImage& image : seen)
    background_ += image.deviation > 0 ? image.background / image.deviation / double(seen.size()) : 0;
  findings_ = findings_in_images(particles_, halves_of_, seen, true);
  finish();
  return {};
}

std::vector<StageTime> Reconstruction::insert_all() {
  if (subtomograms_)
    return insert_subtomograms();
  // Shares are fixed: the order of a sum is its last bits.
  const Share mine = processes().share(static_cast<std::int64_t>(particles_.count));
  Handout handout(mine, static_cast<std::int64_t>(batch_));
  std::vector<std::size_t> all(particles_.count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto in_first = [&](std::size_t row) { return halves_of_[row] == 0; };
  for (const Share& part : handout.parts()) // in each those of the first half set come first
    std::stable_partition(all.begin() + part.begin, all.begin() + part.begin + part.size(), in_first);
  Progress progress("inserting", "particles", mine.size());
  ParticleBatches particles(space_, particles_, batch_, options_.normalise);
  const auto times =
      particles.for_each(all, handout, [&](const Part<float***>& images, std::span<const std::size_t> rows) {
        if (const auto kept = without_useless(space_, particles, images, rows); !kept.empty()) {
          transform(images, kept);
          const auto firsts = static_cast<std::size_t>(std::ranges::count_if(kept, in_first));
          with_kernel(options_.sampling.kernel, [&]<class Kernel>() { insert<Kernel>(kept, firsts); });
        }
        progress.add(static_cast<std::int64_t>(rows.size()));
      });
  sum_over_processes(space_, options_.reproducible, halves_[0].data, halves_[0].weight, halves_[1].data,
                     halves_[1].weight);
  const auto seen = particles.seen();
  const auto pixels = std::int64_t(particles_.image_width) * particles_.image_height;
  left_out_ = static_cast<std::size_t>(
      std::ranges::count_if(seen, [&](const LookAtImage& image) { return image.is_useless(pixels); }));
  for (const LookAtImage& image : seen)
    background_ += image.deviation > 0 ? image.background / image.deviation / double(seen.size()) : 0;
  findings_ = findings_in_images(particles_, halves_of_, seen, true);
  finish();
  return times;
}

/// Powers per shell of the two half sets as they are.
SignalAndNoise Reconstruction::measure(double energy) {
  return powers_of_halves(space_, std::array{halves_[0].data, halves_[1].data},
                          std::array{halves_[0].weight, halves_[1].weight}, double(padded_) / box_, energy);
}

/// Average weights of the shells of both half sets, none less than a millionth of the largest.
DeviceView<double*> Reconstruction::weight_curve() {
  const auto shells = static_cast<std::size_t>(padded_) / 2 + 1;
  std::vector<double> sum(shells, 0.0);
  const DeviceView<double**> averages("Bracewell::examples::averages", 1, shells);
  for (const auto& half : halves_) {
    shell_averages(space_, half.weight, averages);
    const auto host = values_on_host(averages);
    for (std::size_t s = 0; s < shells; ++s)
      sum[s] += std::abs(host(0, s));
  }
  const double largest = std::ranges::max(sum);
  for (double& value : sum)
    value = largest > 0 ? std::max(value, 1e-6 * largest) : 1;
  const DeviceView<double*> result("Bracewell::examples::weight_curve", shells);
  copy_values(space_, result, host_view(sum));
  space_.fence("Bracewell::examples::weight_curve"); // the host's copy goes
  return result;
}

/// Symmetry, and what the half sets say about the noise: as inserted, for symmetry leaves neighbours alike.
void Reconstruction::finish() {
  const auto columns = static_cast<std::size_t>(padded_) / 2 + 1;
  const bool measures = has_both_halves() && !options_.wiener && positive(options_.sampling.kernel);
  double energy = 1;
  with_kernel(options_.sampling.kernel, [&]<class Kernel>() { energy = kernel_energy<Kernel>(); });
  if (measures)
    powers_ = measure(energy);
  if (options_.helix && (options_.helix->rise_range > 0 || options_.helix->twist_range > 0)) {
    if (powers_)
      prior_ = wiener_prior(*powers_, double(padded_) / box_, options_.signal_part);
    const Map map = map_of(halves_[0], false);
    if (has_both_halves())
      add_to(space_, map, map_of(halves_[1], false));
    options_.helix = search_helix(space_, map, *options_.helix);
    operators_ = motions(options_);
  }
  if (operators_.size() > 1) {
    const VolumeSymmetry<Space> symmetry(space_, operators_);
    spectrum_ = allocate<MapSpectrum>("spectrum", 1, padded_, padded_, columns);
    divisor_ = allocate<MapWeight>("divisor", 1, padded_, padded_, columns);
    // Weights differ from shell to shell (by the CTF most at low frequencies): neighbours that are interpolated count as in
    // the shell they come to.
    const auto curve = weight_curve();
    Progress progress("symmetrising", "half maps", std::int64_t(halves_.size()));
    with_kernel(options_.sampling.kernel, [&]<class Kernel>() {
      for (auto& half : halves_) {
        symmetry.apply<Kernel>(space_, half.data, half.weight, spectrum_, divisor_, curve);
        space_.fence("Bracewell::examples::symmetry");
        progress.add(1);
      }
    });
    if (measures) {
      auto noise = std::move(powers_->noise);
      powers_ = measure(energy);
      powers_->noise = std::move(noise);
    }
  }
  if (powers_)
    prior_ = wiener_prior(*powers_, double(padded_) / box_, options_.signal_part);
  else if (options_.wiener && *options_.wiener > 0)
    prior_.assign(columns, *options_.wiener);
  if (has_both_halves())
    count_unseen();
}

void Reconstruction::count_unseen() {
  for (const auto& half : halves_) {
    double unseen = 0, all = 0;
    Kokkos::parallel_reduce("Bracewell::examples::unseen",
                            Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                                space_, 0, std::int64_t(padded_) * padded_),
                            CountUnseen{half.weight}, unseen, all);
    unseen_ = std::max(unseen_, unseen / all);
  }
  constexpr double much = 0.1, values = 200; // along an axis: a few small boxes tell as much as a large one
  if (powers_ && options_.gridding_steps > 0 && unseen_ > much)
    trials_.resize(static_cast<std::size_t>(std::clamp(values / box_, 1.0, 4.0)));
}

/// A random molecule, number `molecule`, as the weights see it; without weights, itself.
Map Reconstruction::seen_by(const MapWeight& weight, std::uint64_t molecule, std::uint64_t noise,
                            bool divide) {
  const std::array<int, 3> padded{padded_, padded_, padded_};
  const auto rows = std::int64_t(padded_) * padded_;
  const Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>> each_row(space_, 0, rows);
  const double most = box_ * std::cbrt(options_.signal_part * 3 / (4 * Kokkos::numbers::pi));
  const double radius = options_.diameter > 0 ? std::min(most, options_.diameter / 2) : most;
  Kokkos::parallel_for("Bracewell::examples::random_ball", each_row,
                       RandomBall{padded_map_, radius, {.seed = 2 * molecule}});
  FFT<Space, 3, float, Kokkos::complex<float>>(space_, padded).execute(space_, padded_map_, spectrum_);
  const double power = 4 * Kokkos::numbers::pi / 3 * std::pow(radius, 3);
  Kokkos::parallel_for("Bracewell::examples::see_molecule", each_row,
                       SeeMolecule{spectrum_,
                                   weight,
                                   on_device(space_, powers_->signal),
                                   on_device(space_, powers_->noise),
                                   power,
                                   {.seed = 2 * noise + 1}});
  if (divide) {
    const DeviceView<double**> averages("Bracewell::examples::averages", 1,
                                        static_cast<std::size_t>(padded_) / 2 + 1);
    with_kernel(options_.sampling.kernel, [&]<class Kernel>() {
      normalise<Kernel>(space_, spectrum_, divisor_, spectrum_, averages, division());
    });
  }
  FFT<Space, 3, Kokkos::complex<float>, float>(space_, padded).execute(space_, spectrum_, padded_map_);
  const auto map = allocate<Map>("map", 1, box_, box_, box_);
  crop_centre(space_, padded_map_, map, 1 / (static_cast<double>(padded_) * padded_ * padded_));
  space_.fence("Bracewell::examples::trial");
  return map;
}

NormaliseOptions Reconstruction::division() const {
  const bool noisy = powers_ && std::ranges::any_of(powers_->noise, [](double noise) { return noise > 0; });
  constexpr double edge = 0.8; // of a shell: half of the last whole one is left as it is
  return {.floor = options_.floor, .edge = noisy ? edge * padded_ / box_ : 0};
}

/// Spectra of a batch, times CTF, and CTF^2.
void Reconstruction::transform(const Part<float***>& images, std::span<const std::size_t> rows) {
  forward_.execute(space_, images, spectra_);
  if (options_.ewald != 0)
    contrast_.split_sidebands(space_, rows, spectra_, others_, weights_, wavelength_,
                              options_.diameter * particles_.pixel_size[0]);
  else if (uses_ctf())
    contrast_.demodulate(space_, rows, range(spectra_, 0, rows.size()), range(weights_, 0, rows.size()));
  else if (pixel_sizes_)
    fill_values(space_, weights_, 1.0f);
  if (pixel_sizes_)
    pixel_sizes_->apply(space_, rows, spectra_, weights_);
}

template <class Kernel>
void Reconstruction::insert(std::span<const std::size_t> rows, std::size_t firsts) {
  ProjectionOptions options{.oversampling = static_cast<double>(padded_) / box_,
                            .strategy = options_.reproducible ? Strategy::Owned : Strategy::Automatic};
  set_poses(space_, poses_, particles_, rows, box_);
  const bool own = uses_ctf() || pixel_sizes_;
  for (const int sideband : {1, -1}) {
    if (options_.ewald != 0)
      options.ewald_radius = sideband * options_.ewald * box_ * particles_.pixel_size[0] / wavelength_;
    else if (sideband < 0)
      break;
    for (const std::size_t half : {0, 1}) {
      const std::size_t first = half == 0 ? 0 : firsts, last = half == 0 ? firsts : rows.size();
      if (first == last)
        continue;
      const auto weights = own ? range(weights_, first, last) : range(weights_, 0, 1);
      backproject<Kernel>(space_, HalfSpectrum{range(sideband > 0 ? spectra_ : others_, first, last), box_},
                          poses_.part(first, last),
                          {.data = halves_[half].data,
                           .weight = halves_[half].weight,
                           .weights = HalfSpectrum{weights, box_}},
                          options);
    }
  }
  space_.fence("Bracewell::examples::insert"); // the poses are overwritten next
}

Map Reconstruction::half_map(int half, bool keep_power) {
  return map_of(halves_[static_cast<std::size_t>(half)], keep_power, keep_power ? half : -1);
}

Map Reconstruction::whole_map() {
  Half& sum = halves_[0];
  const Half& other = halves_[1];
  add_to(space_, sum.data, other.data);
  add_to(space_, sum.weight, other.weight);
  halves_[1] = {};
  return map_of(sum, false, 2);
}

Map Reconstruction::map_of(const Half& half, bool keep_power, int which) {
  const bool noisy = powers_ && std::ranges::any_of(powers_->noise, [](double noise) { return noise > 0; });
  // How far from one weights may stay: less where no noise hides it.
  const double even = noisy ? 0.02 : 0.007;
  const auto columns = static_cast<std::size_t>(padded_) / 2 + 1;
  const DeviceView<double**> averages("Bracewell::examples::shell_averages", 1, columns);
  if (padded_map_.size() == 0) { // hosts take as long to get their pages as for the rest
    if (spectrum_.size() == 0)
      spectrum_ = allocate<MapSpectrum>("spectrum", 1, padded_, padded_, columns);
    padded_map_ = allocate<Map>("padded_map", 1, padded_, padded_, padded_);
  }
  DeviceView<double**> prior;
  if (!prior_.empty())
    prior = shell_curve(space_, prior_);
  const std::array<int, 3> padded{padded_, padded_, padded_};
  const bool equalises = options_.gridding_steps > 0 && positive(options_.sampling.kernel);
  if (equalises) {
    if (divisor_.size() == 0)
      divisor_ = allocate<MapWeight>("divisor", 1, padded_, padded_, columns);
    if (!equaliser_)
      equaliser_.emplace(space_, padded, std::array<int, 3>{box_, box_, box_});
    equalise(space_, *equaliser_, half.weight, divisor_, averages, spectrum_, padded_map_, prior,
             options_.gridding_steps, even);
    if (keep_power && prior.size() > 0)
      equaliser_->keep_power(space_, half.weight, divisor_, spectrum_, padded_map_);
  }
  const NormaliseOptions divide = division();
  with_kernel(options_.sampling.kernel, [&]<class Kernel>() {
    if (equalises)
      normalise<Kernel>(space_, half.data, divisor_, spectrum_, averages, divide);
    else
      normalise<Kernel>(space_, half.data, half.weight, spectrum_, averages, divide, prior);
  });
  FFT<Space, 3, Kokkos::complex<float>, float>(space_, padded).execute(space_, spectrum_, padded_map_);
  const auto map = allocate<Map>("map", 1, box_, box_, box_);
  crop_centre(space_, padded_map_, map, 1 / (static_cast<double>(padded_) * padded_ * padded_));
  correct_attenuation(space_, map, options_.sampling, padded_);
  space_.fence("Bracewell::examples::map");
  for (std::uint64_t i = 0; equalises && which >= 0 && i < trials_.size(); ++i) {
    Trial& trial = trials_[i];
    if (which == 2 && (trial.halves[0].size() == 0 || trial.halves[1].size() == 0))
      continue; // nobody asks
    (which < 2 ? trial.halves[static_cast<std::size_t>(which)] : trial.whole) =
        seen_by(half.weight, i, 3 * i + static_cast<std::uint64_t>(which), true);
    if (which == 2)
      trial.truth = seen_by({}, i, 0, false);
  }
  return map;
}

} // namespace Bracewell::Examples
