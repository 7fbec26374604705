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

ClassMap ClassMaps::make(const std::array<HalfSums, 2>& sums, std::size_t class_index) {
  constexpr int steps = 20;
  constexpr double even = 0.02;
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
    for (const std::size_t half : {0, 1}) {
      symmetry.apply<Linear>(space_, data[half], Part<Kokkos::complex<float>****>(spectrum_));
      symmetry.apply<Linear>(space_, weight[half], Part<float****>(divisor_));
    }
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
  for_each_element(
      space_, "Bracewell::examples::add_halves", 2 * std::int64_t(data[0].size()),
      AddFloats{reinterpret_cast<float*>(data[0].data()), reinterpret_cast<const float*>(data[1].data())});
  for_each_element(space_, "Bracewell::examples::add_halves", std::int64_t(weight[0].size()),
                   AddFloats{weight[0].data(), weight[1].data()});
  equalise(space_, equaliser_, weight[0], divisor_, averages, spectrum_, volume_, prior, steps, even);
  normalise<Linear>(space_, data[0], divisor_, spectrum_, averages, {.edge = class_sampling.oversampling});
  result.values = to_host(space_, cropped_map(box_));
  return result;
}

} // namespace Bracewell::Examples
