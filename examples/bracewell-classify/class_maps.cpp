// SPDX-License-Identifier: MIT
#include "bracewell-classify/class_maps.hpp"

#include "bracewell-classify/volumes.hpp"
#include "cryoem/map.hpp"
#include "cryoem/report.hpp"

#include <bracewell/geometry/symmetrise.hpp>
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
struct JoinHalves {
  HalfSpectrumLayout<3> layout;
  double most; ///< squared length
  Kokkos::complex<float>* data[2];
  float* weight[2];

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    int k[3];
    layout.frequency(i, k);
    if (double(k[0]) * k[0] + double(k[1]) * k[1] + double(k[2]) * k[2] > most)
      return;
    data[0][i] = data[1][i] = 0.5f * (data[0][i] + data[1][i]);
    weight[0][i] = weight[1][i] = 0.5f * (weight[0][i] + weight[1][i]);
  }
};

/// One of the volumes of all classes.
template <class Value>
Part<Value****> volume_of(const DeviceView<Value****>& all, std::size_t index) {
  return Part<Value****>(all.data() + index * (all.size() / all.extent(0)), 1, all.extent(1), all.extent(2),
                         all.extent(3));
}

} // namespace

ClassMaps::ClassMaps(const Space& space, int box, int padded, const ClassMapOptions& options)
    : space_(space), box_(box), padded_(padded), options_(options),
      equaliser_(space, {padded, padded, padded}, {padded / 2, padded / 2, padded / 2}),
      spectrum_(allocate<MapSpectrum>("spectrum", 1, padded, padded, padded / 2 + 1)),
      divisor_(allocate<MapWeight>("divisor", 1, padded, padded, padded / 2 + 1)),
      volume_(allocate<Map>("volume", 1, padded, padded, padded)) {}

/// Of the spectrum, in a box with the same field of view.
Map ClassMaps::cropped_map(int box) const {
  const int padded = class_sampling.padded(box);
  MapSpectrum spectrum = spectrum_;
  Map volume = volume_;
  if (padded != padded_) {
    spectrum = allocate<MapSpectrum>("spectrum", 1, padded, padded, padded / 2 + 1);
    volume = allocate<Map>("volume", 1, padded, padded, padded);
    resize_volume(space_, spectrum_.data(), padded_, spectrum.data(), padded);
  }
  FFT<Space, 3, Kokkos::complex<float>, float>(space_, {padded, padded, padded})
      .execute(space_, spectrum, volume);
  const auto map = allocate<Map>("map", 1, box, box, box);
  crop_centre(space_, volume, map, 1 / (static_cast<double>(padded) * padded * padded));
  correct_attenuation(space_, map, class_sampling, padded);
  space_.fence("Bracewell::examples::class_map");
  return map;
}

/// Of data over equalised weights.
Map ClassMaps::equalised_map(const Part<const Kokkos::complex<float>****>& data,
                             const Part<const float****>& weight, const DeviceView<double**>& prior) const {
  constexpr int steps = 20;
  constexpr double even = 0.02;
  const DeviceView<double**> averages("Bracewell::examples::averages", 1, prior.extent(1));
  equalise(space_, equaliser_, weight, divisor_, averages, spectrum_, volume_, prior, steps, even);
  normalise<Linear>(space_, data, divisor_, spectrum_, averages, {.edge = class_sampling.oversampling});
  return cropped_map(box_);
}

ClassMap ClassMaps::make(const std::array<HalfSums, 2>& sums, std::size_t class_index) {
  const std::array data{volume_of(sums[0].data, class_index), volume_of(sums[1].data, class_index)};
  const std::array weight{volume_of(sums[0].weight, class_index), volume_of(sums[1].weight, class_index)};
  const double energy = kernel_energy<Linear>();
  const auto measure = [&] {
    return powers_of_halves(space_, {data[0], data[1]}, {weight[0], weight[1]}, class_sampling.oversampling,
                            energy);
  };
  auto powers = measure(); // as inserted, for symmetry leaves neighbours alike
  if (const auto operators = symmetry_operators(options_.symmetry); operators.size() > 1) {
    const VolumeSymmetry<Space> symmetry(space_, operators);
    for (const std::size_t half : {0, 1})
      symmetry.apply<Linear>(space_, data[half], weight[half], Part<Kokkos::complex<float>****>(spectrum_),
                             Part<float****>(divisor_));
    auto noise = std::move(powers.noise);
    powers = measure();
    powers.noise = std::move(noise);
  }
  auto added = wiener_prior(powers, class_sampling.oversampling, options_.signal_part);
  for (double& value : added)
    value /= options_.tau;
  const auto prior = shell_curve(space_, added);
  const DeviceView<double**> averages("Bracewell::examples::averages", 1, prior.extent(1));
  ClassMap result;
  // Maps of the half sets, in the box of the sums.
  const int box = padded_ / 2;
  const double unit = double(box) / box_;
  std::array<Map, 2> halves;
  for (const std::size_t half : {0, 1}) {
    normalise<Linear>(space_, data[half], weight[half], spectrum_, averages, {}, prior);
    halves[half] =
        masked(space_, cropped_map(box),
               {.radius = unit * options_.mask.radius, .edge = std::max(2.0, unit * options_.mask.edge)});
  }
  result.correlation = correlation(space_, halves[0], halves[1]);
  for (double& value : result.correlation) // shells beyond the samples have none
    value = std::isfinite(value) ? value : 0;
  if (options_.join > 0) {
    const HalfSpectrumLayout<3> layout{{padded_, padded_, padded_}};
    const double most = class_sampling.oversampling * options_.join;
    for_each_element(
        space_, "Bracewell::examples::join_halves", layout.elements(),
        JoinHalves{
            layout, most * most, {data[0].data(), data[1].data()}, {weight[0].data(), weight[1].data()}});
    for (const std::size_t half : {0, 1})
      result.halves[half] = to_host(space_, equalised_map(data[half], weight[half], prior));
  }
  for_each_element(
      space_, "Bracewell::examples::add_halves", 2 * std::int64_t(data[0].size()),
      AddFloats{reinterpret_cast<float*>(data[0].data()), reinterpret_cast<const float*>(data[1].data())});
  for_each_element(space_, "Bracewell::examples::add_halves", std::int64_t(weight[0].size()),
                   AddFloats{weight[0].data(), weight[1].data()});
  result.values = to_host(space_, equalised_map(data[0], weight[0], prior));
  return result;
}

} // namespace Bracewell::Examples
