// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/sampling.hpp"
#include "cryoem/views.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>
#include <bracewell/rfft/layout.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

/// What the expectation step and the maps of classes have in common.
namespace Bracewell::Examples {

/// How projections are sampled and sums are made: weights of other kernels may be negative.
inline constexpr Sampling class_sampling{.kernel = KernelChoice::Linear, .oversampling = 2};

/// Class averages: maps (D = 3) or images (D = 2), [count, (box,) box, box]; their spectra and weights.
template <int D>
using Averages = std::conditional_t<D == 3, DeviceView<float****>, DeviceView<float***>>;
template <int D>
using AverageSpectra =
    std::conditional_t<D == 3, DeviceView<Kokkos::complex<float>****>, DeviceView<Kokkos::complex<float>***>>;

template <class View>
View allocate_averages(const char* label, std::size_t count, int box, int columns) {
  if constexpr (View::rank() == 4)
    return allocate<View>(label, count, box, box, columns);
  else
    return allocate<View>(label, count, box, columns);
}

/// Those from `first` on.
template <class View>
auto some_averages(const View& all, std::size_t first, std::size_t count) {
  const std::pair part(first, first + count);
  if constexpr (View::rank() == 4)
    return Kokkos::subview(all, part, Kokkos::ALL, Kokkos::ALL, Kokkos::ALL);
  else
    return Kokkos::subview(all, part, Kokkos::ALL, Kokkos::ALL);
}

/// {box, box} or {box, box, box}.
template <int D>
std::array<int, D> edges_of(int box) {
  std::array<int, D> edges;
  edges.fill(box);
  return edges;
}

/// One average of the host.
template <int D>
Averages<D> average_on_device(const Space& space, const std::vector<float>& values, int box) {
  const auto result = allocate_averages<Averages<D>>("average", 1, box, box);
  copy_values(space, Part<float*>(result.data(), result.size()), host_view(values));
  space.fence("Bracewell::examples::average");
  return result;
}

template <class View>
std::vector<float> average_on_host(const Space& space, const View& average) {
  std::vector<float> values(average.size());
  copy_values(space, host_view(values), Part<const float*>(average.data(), average.size()));
  space.fence("Bracewell::examples::average");
  return values;
}

/// The spectrum of an average in a padded box, without the attenuation that its interpolation will bring. Overwrites the average.
template <int D>
AverageSpectra<D> padded_average(const Space& space, const Averages<D>& average) {
  const int padded = class_sampling.padded(static_cast<int>(average.extent(1)));
  correct_rolloff<Linear>(space, average, edges_of<D>(padded));
  const auto room = allocate_averages<Averages<D>>("padded_average", 1, padded, padded);
  pad_centre(space, average, room);
  const auto spectrum = allocate_averages<AverageSpectra<D>>("spectrum", 1, padded, padded / 2 + 1);
  FFT<Space, D, float, Kokkos::complex<float>>(space, edges_of<D>(padded)).execute(space, room, spectrum);
  space.fence("Bracewell::examples::padded_average"); // the padded one goes
  return spectrum;
}

/// The spectrum of an average in another box with the same field of view: frequencies that both have, the rest is zero.
template <int D>
struct ResizeAverage {
  HalfSpectrumLayout<D> from, to;
  const Kokkos::complex<float>* source;
  Kokkos::complex<float>* target;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    int k[D];
    to.frequency(i, k);
    target[i] = 0;
    for (int axis = 0; axis < D; ++axis)
      if (2 * Kokkos::abs(k[axis]) >= Kokkos::min(from.size[axis], to.size[axis]))
        return;
    std::int64_t row = 0;
    for (int axis = D - 1; axis > 0; --axis)
      row = row * from.size[axis] + from.wrap(k[axis], from.size[axis]);
    target[i] = source[row * from.columns() + k[0]];
  }
};

template <class Functor>
void for_each_element(const Space& space, const char* name, std::int64_t count, const Functor& functor) {
  Kokkos::parallel_for(name, Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, count),
                       functor);
}

/// Between boxes of equal edges.
template <int D>
void resize_average(const Space& space, const Kokkos::complex<float>* source, int from,
                    Kokkos::complex<float>* target, int to) {
  HalfSpectrumLayout<D> source_layout, layout;
  for (int axis = 0; axis < D; ++axis) {
    source_layout.size[axis] = from;
    layout.size[axis] = to;
  }
  for_each_element(space, "Bracewell::examples::resize_average", layout.elements(),
                   ResizeAverage<D>{source_layout, layout, source, target});
}

} // namespace Bracewell::Examples
