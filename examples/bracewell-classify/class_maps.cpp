// SPDX-License-Identifier: MIT
#include "bracewell-classify/class_maps.hpp"

#include <bracewell/geometry/symmetrise.hpp>
#include <bracewell/reconstruct/fourier_shell_correlation.hpp>
#include <bracewell/reconstruct/normalise.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>

#include <algorithm>
#include <cmath>

namespace Bracewell::Examples {
namespace {

struct AddFloats {
  float* target;
  const float* source;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { target[i] += source[i]; }
};

/// Low frequencies of both half sets become their mean.
template <int D>
struct JoinHalves {
  HalfSpectrumLayout<D> layout;
  double most; ///< squared length
  Kokkos::complex<float>* data[2];
  float* weight[2];

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    int k[D];
    layout.frequency(i, k);
    double squared = 0;
    for (int axis = 0; axis < D; ++axis)
      squared += double(k[axis]) * k[axis];
    if (squared > most)
      return;
    data[0][i] = data[1][i] = 0.5f * (data[0][i] + data[1][i]);
    weight[0][i] = weight[1][i] = 0.5f * (weight[0][i] + weight[1][i]);
  }
};

/// Correlation in the shells that images fill.
template <int D>
std::vector<double> correlation_of(const Space& space, const Averages<D>& first, const Averages<D>& second) {
  const auto box = static_cast<int>(first.extent(1));
  const FFT<Space, D, float, Kokkos::complex<float>> forward(space, edges_of<D>(box));
  const auto one = allocate_averages<AverageSpectra<D>>("spectrum", 1, box, box / 2 + 1);
  const auto other = allocate_averages<AverageSpectra<D>>("spectrum", 1, box, box / 2 + 1);
  forward.execute(space, first, one);
  forward.execute(space, second, other);
  const DeviceView<double**> shells("Bracewell::examples::correlation", 1,
                                    static_cast<std::size_t>((box + 1) / 2));
  fourier_shell_correlation(space, HalfSpectrum{one, box}, HalfSpectrum{other, box}, shells);
  const auto host = values_on_host(shells);
  return {host.data(), host.data() + host.size()};
}

} // namespace

template <int D>
ClassMaps<D>::ClassMaps(const Space& space, int box, int padded, const ClassMapOptions& options)
    : space_(space), box_(box), padded_(padded), options_(options),
      spectrum_(allocate_averages<AverageSpectra<D>>("spectrum", 1, padded, padded / 2 + 1)),
      divisor_(allocate_averages<Averages<D>>("divisor", 1, padded, padded / 2 + 1)),
      volume_(allocate_averages<Averages<D>>("volume", 1, padded, padded)) {
  if constexpr (D == 3)
    equaliser_.emplace(space, edges_of<3>(padded), edges_of<3>(padded / 2));
}

/// Of the spectrum, in a box with the same field of view.
template <int D>
Averages<D> ClassMaps<D>::cropped_map(int box) const {
  const int padded = class_sampling.padded(box);
  auto spectrum = spectrum_;
  auto volume = volume_;
  if (padded != padded_) {
    spectrum = allocate_averages<AverageSpectra<D>>("spectrum", 1, padded, padded / 2 + 1);
    volume = allocate_averages<Averages<D>>("volume", 1, padded, padded);
    resize_average<D>(space_, spectrum_.data(), padded_, spectrum.data(), padded);
  }
  FFT<Space, D, Kokkos::complex<float>, float>(space_, edges_of<D>(padded)).execute(space_, spectrum, volume);
  const auto map = allocate_averages<Averages<D>>("map", 1, box, box);
  crop_centre(space_, volume, map, 1 / std::pow(double(padded), D));
  correct_rolloff<Linear>(space_, map, edges_of<D>(padded));
  space_.fence("Bracewell::examples::class_map");
  return map;
}

/// Of data over equalised weights.
template <int D>
Averages<D> ClassMaps<D>::equalised_map(const AverageSpectra<D>& data, const Averages<D>& weight,
                                        const DeviceView<double**>& prior) const {
  constexpr int steps = 20;
  constexpr double even = 0.02;
  const DeviceView<double**> averages("Bracewell::examples::averages", 1, prior.extent(1));
  const NormaliseOptions rim{.edge = class_sampling.oversampling};
  if constexpr (D == 3) {
    equalise(space_, *equaliser_, weight, divisor_, averages, spectrum_, volume_, prior, steps, even);
    normalise<Linear>(space_, data, divisor_, spectrum_, averages, rim);
  } else {
    normalise<Linear>(space_, data, weight, spectrum_, averages, rim, prior);
  }
  return cropped_map(box_);
}

/// A product over axes.
template <int D>
double energy_of_kernel() {
  return std::pow(kernel_energy<Linear>(), D / 3.0);
}

template <int D>
SignalAndNoise ClassMaps<D>::powers(const std::array<HalfSums<D>, 2>& sums) const {
  return powers_of_halves(space_, std::array{sums[0].data, sums[1].data},
                          std::array{sums[0].weight, sums[1].weight}, class_sampling.oversampling,
                          energy_of_kernel<D>());
}

template <int D>
ClassMap ClassMaps<D>::make(const std::array<HalfSums<D>, 2>& sums, std::size_t class_index,
                            const SignalAndNoise* common) {
  const std::array data{AverageSpectra<D>(some_averages(sums[0].data, class_index, 1)),
                        AverageSpectra<D>(some_averages(sums[1].data, class_index, 1))};
  const std::array weight{Averages<D>(some_averages(sums[0].weight, class_index, 1)),
                          Averages<D>(some_averages(sums[1].weight, class_index, 1))};
  const auto measure = [&] {
    return powers_of_halves(space_, data, weight, class_sampling.oversampling, energy_of_kernel<D>());
  };
  auto powers = common ? *common : measure(); // as inserted, for symmetry leaves neighbours alike
  if constexpr (D == 3)
    if (const auto operators = symmetry_operators(options_.symmetry); operators.size() > 1) {
      const VolumeSymmetry<Space> symmetry(space_, operators);
      for (const std::size_t half : {0, 1})
        symmetry.apply<Linear>(space_, Part<Kokkos::complex<float>****>(data[half]),
                               Part<float****>(weight[half]), Part<Kokkos::complex<float>****>(spectrum_),
                               Part<float****>(divisor_));
      auto noise = std::move(powers.noise);
      powers = measure();
      powers.noise = std::move(noise);
    }
  auto added = wiener_prior(powers, class_sampling.oversampling, options_.signal_part);
  const double missing =
      std::pow(class_sampling.oversampling, 3 - D); // the prior is that of three dimensions
  for (double& value : added)
    value *= missing / options_.tau;
  const auto prior = shell_curve(space_, added);
  const DeviceView<double**> averages("Bracewell::examples::averages", 1, prior.extent(1));
  ClassMap result;
  // Maps of the half sets, in the box of the sums.
  const int box = padded_ / 2;
  const double unit = double(box) / box_;
  std::array<Averages<D>, 2> halves;
  for (const std::size_t half : {0, 1}) {
    normalise<Linear>(space_, data[half], weight[half], spectrum_, averages, {}, prior);
    halves[half] = cropped_map(box);
    apply_mask(space_, halves[half],
               {.radius = unit * options_.mask.radius, .edge = std::max(2.0, unit * options_.mask.edge)});
  }
  result.correlation = correlation_of<D>(space_, halves[0], halves[1]);
  for (double& value : result.correlation) // shells beyond the samples have none
    value = std::isfinite(value) ? value : 0;
  if (options_.join > 0) {
    HalfSpectrumLayout<D> layout;
    for (int axis = 0; axis < D; ++axis)
      layout.size[axis] = padded_;
    const double most = class_sampling.oversampling * options_.join;
    for_each_element(
        space_, "Bracewell::examples::join_halves", layout.elements(),
        JoinHalves<D>{
            layout, most * most, {data[0].data(), data[1].data()}, {weight[0].data(), weight[1].data()}});
    for (const std::size_t half : {0, 1})
      result.halves[half] = average_on_host(space_, equalised_map(data[half], weight[half], prior));
  }
  for_each_element(
      space_, "Bracewell::examples::add_halves", 2 * std::int64_t(data[0].size()),
      AddFloats{reinterpret_cast<float*>(data[0].data()), reinterpret_cast<const float*>(data[1].data())});
  for_each_element(space_, "Bracewell::examples::add_halves", std::int64_t(weight[0].size()),
                   AddFloats{weight[0].data(), weight[1].data()});
  result.values = average_on_host(space_, equalised_map(data[0], weight[0], prior));
  return result;
}

template class ClassMaps<2>;
template class ClassMaps<3>;

} // namespace Bracewell::Examples
