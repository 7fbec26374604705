// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/rfft/layout.hpp>

#include <algorithm>
#include <cstdint>

namespace Bracewell::Examples {

/// Brings images of one box to another with the same field of view: frequencies that both have stay, others are 0, and pixel
/// floor(box / 2) of the one lies there in the other.
class BoxChange {
public:
  BoxChange(const Space& space, int from, int to)
      : from_(from), to_(to), image_(allocate<Images>("image", 1, from, from)),
        spectrum_(allocate<Spectra>("spectrum", 1, 1, from, from / 2 + 1)),
        changed_(allocate<Spectra>("changed", 1, 1, to, to / 2 + 1)), forward_(space, {from, from}),
        backward_(space, {to, to}) {}

  int from() const { return from_; }
  /// Where the image to be changed is put, [from, from].
  float* input() const { return image_.data(); }

  /// Copies what both spectra have.
  struct Copy {
    const Kokkos::complex<float>* source;
    Kokkos::complex<float>* target;
    int from, to;
    double shift; ///< pixels of the target
    double scale;

    KOKKOS_FUNCTION void operator()(std::int64_t index) const {
      const HalfSpectrumLayout<2> layout{{to, to}};
      int k[2];
      layout.frequency(index, k);
      const int half = Kokkos::min(from, to);
      if (2 * Kokkos::abs(k[0]) >= half || 2 * Kokkos::abs(k[1]) >= half) {
        target[index] = 0;
        return;
      }
      const double phase = -2 * Kokkos::numbers::pi * (k[0] + k[1]) * shift / to;
      const std::int64_t row = k[1] < 0 ? k[1] + from : k[1];
      target[index] = source[row * (from / 2 + 1) + k[0]] *
                      Kokkos::complex<float>(static_cast<float>(scale * Kokkos::cos(phase)),
                                             static_cast<float>(scale * Kokkos::sin(phase)));
    }
  };

  /// The image at input() changed, to `output` [1, to, to].
  void run(const Space& space, const Part<float***>& output) const {
    forward_.execute(space, image_, spectrum_);
    const Copy copy{
        spectrum_.data(),           changed_.data(), from_, to_, to_ / 2 - double(from_ / 2) * to_ / from_,
        1 / (double(from_) * from_)};
    Kokkos::parallel_for("Bracewell::examples::box_change",
                         Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                             space, 0, static_cast<std::int64_t>(changed_.size())),
                         copy);
    backward_.execute(space, changed_, output);
  }

private:
  int from_, to_;
  Images image_;
  Spectra spectrum_, changed_;
  FFT<Space, 2, float, Kokkos::complex<float>> forward_;
  FFT<Space, 2, Kokkos::complex<float>, float> backward_;
};

} // namespace Bracewell::Examples
