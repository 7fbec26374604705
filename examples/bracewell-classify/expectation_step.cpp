// SPDX-License-Identifier: MIT
#include "bracewell-classify/expectation_step.hpp"

#include <bracewell/project/expectation.hpp>
#include <bracewell/project/prepared_reference.hpp>
#include <bracewell/reconstruct/shells.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace Bracewell::Examples {
namespace {

/// Frequencies that a smaller box has. Of images times CTF and CTF^2 it makes images whose CTF is positive, and this CTF:
/// CTF X / |CTF| and |CTF|.
struct CropImages {
  HalfSpectrumLayout<2> from, to;
  const Kokkos::complex<float>* modulated;
  const float* squares; ///< null: 1
  Kokkos::complex<float>* images;
  float* filters;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t image = i / to.elements();
    int k[2];
    to.frequency(i % to.elements(), k);
    images[i] = 0;
    if (filters)
      filters[i] = 0;
    if (2 * k[0] >= to.size[0] || 2 * Kokkos::abs(k[1]) >= to.size[1])
      return;
    const std::int64_t source =
        image * from.elements() + std::int64_t(from.wrap(k[1], from.size[1])) * from.columns() + k[0];
    if (!squares) {
      images[i] = modulated[source];
      return;
    }
    const float filter = Kokkos::sqrt(squares[source]);
    if (filter > 1e-6f) {
      images[i] = modulated[source] / filter;
      filters[i] = filter;
    }
  }
};

/// |X|^2 / 2.
struct HalfPower {
  const Kokkos::complex<float>* spectra;
  float* powers;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const float re = spectra[i].real(), im = spectra[i].imag();
    powers[i] = 0.5f * (re * re + im * im);
  }
};

/// Images times CTF become images over it; low frequencies count.
struct RestoreImages {
  Kokkos::complex<float>* modulated;
  const float* squares; ///< null: 1

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    modulated[i] /= (squares ? squares[i] : 1.0f) + 1.0f;
  }
};

template <class View>
auto first(const View& view, std::size_t count) {
  const std::pair<std::size_t, std::size_t> part(0, count);
  if constexpr (View::rank() == 1)
    return Kokkos::subview(view, part);
  else if constexpr (View::rank() == 2)
    return Kokkos::subview(view, part, Kokkos::ALL);
  else
    return Kokkos::subview(view, part, Kokkos::ALL, Kokkos::ALL);
}

/// What the passes know of a batch.
struct Batch {
  std::vector<Eigen::Vector2d> places;    ///< of the particles, pixels from the centre
  std::span<const Matrix3<double>> poses; ///< of all particles, or their lists
  std::vector<Matrix3<double>> lists;     ///< of a pass after the first
  std::vector<std::int64_t> begins;       ///< of the lists; empty: all particles have all poses
};

/// The first candidate of a class, or, where none is, of any.
std::size_t rank_of(std::span<const int> classes, int wanted) {
  const auto found = std::ranges::find(classes, wanted);
  return found == classes.end() ? 0 : static_cast<std::size_t>(found - classes.begin());
}

} // namespace

void ShellSums::add(const ShellSums& other) {
  if (values.empty()) {
    values.resize(other.values.size());
    sizes = other.sizes;
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] += other.values[i];
  images += other.images;
}

/// Poses of a particle that a pass hands on to the next pass, at most: the likeliest.
constexpr std::int64_t most_poses = 96;

/// One pass: what is compared, and room for it.
template <int D>
struct ExpectationStep<D>::Pass {
  using Prepared = PreparedReference<Linear, Space, D>;

  SearchPlan::Pass plan;
  std::vector<Matrix3<double>> turns; ///< about poses of the pass before
  int padded;
  double unit;       ///< pixels of its box in a pixel of the images
  std::size_t ranks; ///< candidates that the last pass ranks; 0 in the passes before it
  Expectation<Space> step;
  DeviceView<Kokkos::complex<float>***> images;
  DeviceView<float***> filters;
  DeviceView<float**> noise; ///< [1, shells]
  DeviceView<float*[2]> origins, means;
  DeviceView<float* [2]>::host_mirror_type host_origins; ///< kept, as the copy does not wait
  DeviceView<float***> matrices;
  DeviceView<float**> posteriors;
  DeviceView<int**> classes, poses, shifts;
  std::vector<Prepared> references; ///< of all classes, then, where they are the same, of one

  Pass(const Space& space, const SearchPlan::Pass& pass, int box, std::size_t batch, bool filtered,
       std::size_t ranks_, bool reproducible)
      : plan(pass), padded(2 * pass.box), unit(double(pass.box) / box), ranks(ranks_),
        step(space,
             {.images = static_cast<std::int64_t>(batch),
              .shifts = static_cast<int>(pass.shifts.size()),
              .height = pass.box,
              .width = pass.box,
              .best = static_cast<int>(ranks_)},
             {.oversampling = 2,
              .radius = pass.radius,
              .strategy = reproducible ? Strategy::Owned : Strategy::Automatic}),
        images(allocate<DeviceView<Kokkos::complex<float>***>>("cropped", batch, pass.box, pass.box / 2 + 1)),
        origins(allocate<DeviceView<float* [2]>>("origins", batch)),
        means(allocate<DeviceView<float* [2]>>("means", batch)),
        host_origins(Kokkos::create_mirror_view(origins)),
        posteriors(allocate<DeviceView<float**>>("posteriors", batch, ranks_)),
        classes(allocate<DeviceView<int**>>("classes", batch, ranks_)),
        poses(allocate<DeviceView<int**>>("poses", batch, ranks_)),
        shifts(allocate<DeviceView<int**>>("shifts", batch, ranks_)) {
    if (filtered)
      filters = allocate<DeviceView<float***>>("filters", batch, pass.box, pass.box / 2 + 1);
    const auto grid = allocate<DeviceView<float* [2]>>("shifts", pass.shifts.size());
    const auto mirror = Kokkos::create_mirror_view(grid);
    for (std::size_t i = 0; i < pass.shifts.size(); ++i)
      for (int axis = 0; axis < 2; ++axis)
        mirror(i, axis) = static_cast<float>(unit * pass.shifts[i][axis]);
    copy_values(space, grid, mirror);
    step.set_shifts(space, grid);
  }

  /// Poses of all images, or lists of them.
  void set_poses(const Space& space, std::span<const Matrix3<double>> all) {
    if (matrices.extent(0) < all.size())
      matrices = allocate<DeviceView<float***>>("poses", all.size() + all.size() / 4, D, D);
    const auto part = first(matrices, all.size());
    const auto mirror = Kokkos::create_mirror_view(part);
    for (std::size_t i = 0; i < all.size(); ++i)
      for (int r = 0; r < D; ++r)
        for (int c = 0; c < D; ++c)
          mirror(i, r, c) = static_cast<float>(all[i](r, c));
    copy_values(space, part, mirror);
    space.fence("Bracewell::examples::poses"); // the mirror goes
  }

  /// Particles at their places, of spectra and squares of their CTFs of a larger box.
  void set_images(const Space& space, const Spectra& spectra, const Weights& squares, int box,
                  std::span<const Eigen::Vector2d> places) {
    const std::size_t count = places.size();
    const CropImages crop{{{box, box}},   {{plan.box, plan.box}}, spectra.data(),
                          squares.data(), images.data(),          filters.data()};
    for_each_element(space, "Bracewell::examples::crop_images",
                     static_cast<std::int64_t>(count) * crop.to.elements(), crop);
    for (std::size_t i = 0; i < count; ++i)
      for (int axis = 0; axis < 2; ++axis)
        host_origins(i, axis) = static_cast<float>(unit * (box / 2 + places[i][axis]));
    copy_values(space, origins, host_origins);
    step.set_images(space, {.spectra = HalfSpectrum{first(images, count), plan.box},
                            .noise = noise,
                            .filters = filters.size() > 0 ? Array<const float, Memory>(
                                                                HalfSpectrum{first(filters, count), plan.box})
                                                          : Array<const float, Memory>(),
                            .origins = first(origins, count)});
  }

  /// Lists for the next pass: its turns about the poses that have the posterior. Particles move to the mean of their shifts.
  void narrow(const Space& space, const ExpectationPoses<float, Memory>& all, double share,
              std::span<const Matrix3<double>> next_turns, Batch& batch) {
    const auto support =
        step.support(space, references[0], all, Array<float, Memory>(first(means, batch.places.size())),
                     share, most_poses);
    const auto host_means = values_on_host(means);
    std::vector<Matrix3<double>> next;
    for (const int index : support.poses)
      for (const auto& turn : next_turns)
        next.push_back(batch.poses[static_cast<std::size_t>(index)] * turn);
    batch.lists = std::move(next);
    batch.poses = batch.lists;
    batch.begins = support.first;
    for (auto& begin : batch.begins)
      begin *= std::ssize(next_turns);
    for (std::size_t i = 0; i < batch.places.size(); ++i)
      for (int axis = 0; axis < 2; ++axis)
        batch.places[i][axis] += host_means(i, axis) / unit;
  }

  /// What is likely, of particles and in sums. Of `class_count` classes one may be given.
  std::vector<Found> rank(const Space& space, const ExpectationPoses<float, Memory>& all, double share,
                          const Batch& batch, std::size_t class_count, int one_class,
                          const HalfSums<D>* target, ShellSums& shells) {
    const bool any = one_class < 0;
    const std::size_t count = batch.places.size(), from = any ? 0 : static_cast<std::size_t>(one_class),
                      compared = any ? class_count : 1, shell_count = step.shell_sizes().size();
    const DeviceView<float**> class_shares("Bracewell::examples::class_shares", count, compared);
    const DeviceView<double*> evidence("Bracewell::examples::evidence", count);
    const DeviceView<int*> candidates("Bracewell::examples::candidates", count);
    const DeviceView<double***> shell_sums("Bracewell::examples::shell_sums", count, shell_count, 3);
    ExpectationResults<float, Memory, D> results;
    results.posteriors = first(posteriors, count);
    results.classes = first(classes, count);
    results.poses = first(poses, count);
    results.shifts = first(shifts, count);
    results.class_shares = class_shares;
    results.log_evidence = evidence;
    results.shell_sums = shell_sums;
    if (target) {
      results.data = HalfSpectrum{some_averages(target->data, from, compared), padded};
      results.weight = HalfSpectrum{some_averages(target->weight, from, compared), padded};
      results.candidates = candidates;
    }
    step.run(space, references[0], all, results, share);
    const auto host_posteriors = values_on_host(posteriors);
    const auto host_classes = values_on_host(classes), host_poses = values_on_host(poses),
               host_shifts = values_on_host(shifts);
    const auto host_shares = values_on_host(class_shares);
    const auto host_evidence = values_on_host(evidence);
    const auto host_candidates = values_on_host(candidates);
    const auto host_shells = values_on_host(shell_sums);
    ShellSums own{std::vector<double>(3 * shell_count), step.shell_sizes(), 0};
    std::vector<Found> found(count);
    for (std::size_t i = 0; i < count; ++i) {
      Found& one = found[i];
      one.shares.assign(class_count, 0.0f);
      one.pose = {Matrix3<double>::identity(), batch.places[i]};
      one.log_evidence = host_evidence(i);
      one.candidates = host_candidates(i);
      if (!std::isfinite(one.log_evidence) || host_poses(i, 0) < 0)
        continue;
      for (std::size_t k = 0; k < compared; ++k)
        one.shares[from + k] = host_shares(i, k);
      one.class_index = static_cast<int>(std::ranges::max_element(one.shares) - one.shares.begin());
      one.largest = host_posteriors(i, 0);
      const std::size_t best = any ? rank_of({&host_classes(i, 0), ranks}, one.class_index) : 0;
      one.pose.matrix = batch.poses[static_cast<std::size_t>(host_poses(i, best))];
      one.pose.shift += plan.shifts[static_cast<std::size_t>(host_shifts(i, best))];
      for (std::size_t at = 0; at < 3 * shell_count; ++at)
        own.values[at] += host_shells.data()[i * 3 * shell_count + at];
      own.images += 1;
    }
    shells.add(own);
    return found;
  }
};

template <int D>
ExpectationStep<D>::ExpectationStep(const Space& space, const Contrast& contrast, int box, std::size_t batch,
                                    bool reproducible, double share)
    : space_(space), contrast_(contrast), box_(box), batch_(batch), reproducible_(reproducible),
      share_(share), forward_(space, {box, box}, static_cast<std::int64_t>(batch)),
      spectra_(allocate<Spectra>("spectra", 1, batch, box, box / 2 + 1)) {
  if (contrast.present())
    squares_ = allocate<Weights>("squares", 1, batch, box, box / 2 + 1);
}

template <int D>
ExpectationStep<D>::~ExpectationStep() = default;

template <int D>
void ExpectationStep<D>::begin(const SearchPlan& plan, std::span<const std::vector<float>> references,
                               std::span<const double> noise) {
  constexpr std::size_t last_ranks = 16;
  passes_.clear();
  for (const auto& pass : plan.passes) {
    const bool last = &pass == &plan.passes.back();
    passes_.push_back(std::make_unique<Pass>(space_, pass, box_, batch_, contrast_.present(),
                                             last ? last_ranks : 0, reproducible_));
    passes_.back()->turns = SearchPlan::turns_of(pass, D);
  }
  orientations_ = plan.orientations;
  passes_[0]->set_poses(space_, orientations_);
  std::vector<float> variances(noise.begin(), noise.end());
  const DeviceView<float**> on_device("Bracewell::examples::noise", 1, variances.size());
  copy_values(space_, Kokkos::subview(on_device, 0, Kokkos::ALL), host_view(variances));
  std::vector<AverageSpectra<D>> cropped;
  for (const auto& pass : passes_) {
    pass->noise = on_device;
    cropped.push_back(allocate_averages<AverageSpectra<D>>("references", references.size(), pass->padded,
                                                           pass->padded / 2 + 1));
  }
  for (std::size_t k = 0; k < references.size(); ++k) {
    const auto whole = padded_average<D>(space_, average_on_device<D>(space_, references[k], box_));
    const int n = static_cast<int>(whole.extent(1));
    for (std::size_t i = 0; i < passes_.size(); ++i)
      resize_average<D>(space_, whole.data(), n, cropped[i].data() + k * cropped[i].stride(0),
                        passes_[i]->padded);
    space_.fence("Bracewell::examples::references"); // the whole one goes
  }
  for (std::size_t i = 0; i < passes_.size(); ++i)
    passes_[i]->references.push_back(prepare<Linear>(space_, cropped[i]));
  space_.fence("Bracewell::examples::references");
}

template <int D>
int ExpectationStep<D>::padded() const {
  return passes_.back()->padded;
}

template <int D>
HalfSums<D> ExpectationStep<D>::sums(std::size_t classes) const {
  const HalfSums<D> sums{allocate_averages<AverageSpectra<D>>("data", classes, padded(), padded() / 2 + 1),
                         allocate_averages<Averages<D>>("weight", classes, padded(), padded() / 2 + 1)};
  fill_values(space_, sums.data, 0);
  fill_values(space_, sums.weight, 0);
  space_.fence("Bracewell::examples::sums");
  return sums;
}

template <int D>
void ExpectationStep<D>::transform(const Part<float***>& images, std::span<const std::size_t> rows) {
  forward_.execute(space_, images, spectra_);
  if (contrast_.present())
    contrast_.demodulate(space_, rows, range(spectra_, 0, rows.size()), range(squares_, 0, rows.size()));
}

template <int D>
void ExpectationStep<D>::add_powers(const Part<float***>& images, std::span<const std::size_t> rows,
                                    std::vector<double>& sums) {
  forward_.execute(space_, images, spectra_);
  const auto powers = allocate<DeviceView<float***>>("powers", rows.size(), box_, box_ / 2 + 1);
  for_each_element(space_, "Bracewell::examples::half_power", static_cast<std::int64_t>(powers.size()),
                   HalfPower{spectra_.data(), powers.data()});
  const DeviceView<double**> averages("Bracewell::examples::powers", rows.size(), sums.size());
  shell_averages(space_, HalfSpectrum{powers, box_}, averages);
  const auto host = values_on_host(averages);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t s = 0; s < sums.size(); ++s)
      sums[s] += host(i, s);
}

template <int D>
std::vector<std::vector<float>> ExpectationStep<D>::restored(const Part<float***>& images,
                                                             std::span<const std::size_t> rows) {
  transform(images, rows);
  for_each_element(space_, "Bracewell::examples::restore_images", static_cast<std::int64_t>(spectra_.size()),
                   RestoreImages{spectra_.data(), squares_.data()});
  const auto batch = static_cast<std::int64_t>(batch_);
  const auto back = allocate<Images>("restored", batch, box_, box_);
  FFT<Space, 2, Kokkos::complex<float>, float>(space_, {box_, box_}, batch).execute(space_, spectra_, back);
  const auto host = values_on_host(back);
  std::vector<std::vector<float>> result;
  const std::size_t pixels = back.size() / back.extent(0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    result.emplace_back(host.data() + i * pixels, host.data() + (i + 1) * pixels);
    for (float& value : result.back())
      value /= static_cast<float>(pixels);
  }
  return result;
}

template <int D>
std::vector<Found> ExpectationStep<D>::run(const Part<float***>& images, std::span<const std::size_t> rows,
                                           std::span<const Eigen::Vector2d> origins,
                                           std::span<const double> class_priors, int one_class,
                                           const HalfSums<D>* target, ShellSums& shells) {
  transform(images, rows);
  const DeviceView<float*> priors("Bracewell::examples::class_priors", class_priors.size());
  {
    const std::vector<float> values(class_priors.begin(), class_priors.end());
    copy_values(space_, priors, host_view(values));
    space_.fence("Bracewell::examples::class_priors"); // the host's go
  }
  Batch batch{.places{origins.begin(), origins.begin() + std::ssize(rows)},
              .poses = orientations_,
              .lists = {},
              .begins = {}};
  for (std::size_t level = 0;; ++level) {
    Pass& pass = *passes_[level];
    pass.set_images(space_, spectra_, squares_, box_, batch.places);
    if (level > 0)
      pass.set_poses(space_, batch.lists);
    ExpectationPoses<float, Memory> poses{.matrices = first(pass.matrices, batch.poses.size()),
                                          .first = batch.begins};
    if (one_class < 0)
      poses.class_priors = priors;
    if (level + 1 == passes_.size())
      return pass.rank(space_, poses, share_, batch, class_priors.size(), one_class, target, shells);
    pass.narrow(space_, poses, share_, passes_[level + 1]->turns, batch);
  }
}

template class ExpectationStep<2>;
template class ExpectationStep<3>;

} // namespace Bracewell::Examples
