// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

#include <bracewell/project/options.hpp>
#include <bracewell/rfft/layout.hpp>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

namespace Bracewell::Examples {

/// A Gaussian blob: amplitude exp(-|x - centre|^2 / (2 deviation^2)), lengths in pixels from the centre of
/// the box.
struct Blob {
  float centre[3]; ///< x, y, z
  float deviation;
  float amplitude;
};

/// A molecule of Gaussian blobs. Its Fourier transform, and so every projection, is known in closed form.
struct Molecule {
  DeviceView<Blob*> blobs;
  int box; ///< pixels

  /// The transform at frequency q (x, y, z; in 1 / box), of the molecule about the origin.
  KOKKOS_FUNCTION Kokkos::complex<float> transform(const float (&q)[3]) const {
    constexpr float pi = Kokkos::numbers::pi_v<float>;
    const float per_pixel = 1 / static_cast<float>(box);
    const float squared = (q[0] * q[0] + q[1] * q[1] + q[2] * q[2]) * per_pixel * per_pixel;
    Kokkos::complex<float> sum(0);
    for (std::size_t i = 0; i < blobs.extent(0); ++i) {
      const Blob& blob = blobs(i);
      const float variance = blob.deviation * blob.deviation;
      const float volume = 2 * pi * variance * Kokkos::sqrt(2 * pi * variance);
      const float angle =
          -2 * pi * per_pixel * (q[0] * blob.centre[0] + q[1] * blob.centre[1] + q[2] * blob.centre[2]);
      const float size = blob.amplitude * volume * Kokkos::exp(-2 * pi * pi * variance * squared);
      sum += Kokkos::complex<float>(size * Kokkos::cos(angle), size * Kokkos::sin(angle));
    }
    return sum;
  }
};

/// Fills half spectra of a molecule whose origin lies at pixel floor(box / 2), or at the shifts given; zero
/// beyond Nyquist.
template <int Dim>
struct FillMoleculeSpectra {
  Molecule molecule;
  Kokkos::complex<float>* spectra; ///< [count, height, width/2+1], or one volume [depth, height, width/2+1]
  float scale;
  Poses<float, Memory> poses = {}; ///< of images, as `project` takes them

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const HalfSpectrumLayout<Dim> layout = this->layout();
    const std::int64_t image = index / layout.elements();
    int k[Dim];
    layout.frequency(index % layout.elements(), k);
    int squared = 0;
    float turns = 0, q[3] = {0, 0, 0};
    for (int c = 0; c < Dim; ++c) {
      squared += k[c] * k[c];
      const auto frequency = static_cast<float>(k[c]);
      if constexpr (Dim == 2) {
        turns += frequency * poses.shifts.data[2 * image + 1 - c];
        for (int d = 0; d < 3; ++d)
          q[d] += poses.matrices.data[9 * image + 3 * d + c] * frequency;
      } else {
        turns += frequency * static_cast<float>(molecule.box / 2);
        q[c] = frequency;
      }
    }
    if (4 * squared > molecule.box * molecule.box) {
      spectra[index] = 0;
      return;
    }
    turns /= static_cast<float>(molecule.box);
    const float angle = -2 * Kokkos::numbers::pi_v<float> * (turns - Kokkos::floor(turns));
    spectra[index] =
        scale * molecule.transform(q) * Kokkos::complex<float>(Kokkos::cos(angle), Kokkos::sin(angle));
  }

  KOKKOS_FUNCTION HalfSpectrumLayout<Dim> layout() const {
    HalfSpectrumLayout<Dim> result;
    for (int& size : result.size)
      size = molecule.box;
    return result;
  }

  void run(const Space& space, std::int64_t count) const {
    Kokkos::parallel_for(
        "Bracewell::examples::molecule",
        Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, count * layout().elements()),
        *this);
  }
};

/// A molecule without symmetry that a picture is recognised by: a helix of `blobs` small blobs around an
/// axis, a globular domain at its side and a bar across its end. It fills about half of the box.
inline std::vector<Blob> helix_and_domain(int box) {
  constexpr double pi = std::numbers::pi;
  const double scale = box / 64.0;
  std::vector<Blob> blobs;
  const auto add = [&](double x, double y, double z, double deviation, double amplitude) {
    blobs.push_back(
        {{static_cast<float>(scale * x), static_cast<float>(scale * y), static_cast<float>(scale * z)},
         static_cast<float>(deviation),
         static_cast<float>(amplitude)});
  };
  for (int i = 0; i < 44; ++i) {
    const double turn = 2 * pi * i / 15;
    add(7 * std::cos(turn) - 4, 7 * std::sin(turn), 0.75 * i - 16, 1.0, 1);
  }
  std::mt19937 generator(7); // its numbers are the same everywhere, unlike those of the distributions
  const auto uniform = [&] { return static_cast<double>(generator()) / 4294967296.0; };
  for (int i = 0; i < 30; ++i) {
    const double height = 2 * uniform() - 1, turn = 2 * pi * uniform(), radius = 5.5 * std::cbrt(uniform());
    const double across = std::sqrt(1 - height * height);
    add(9 + radius * across * std::cos(turn), 3 + radius * across * std::sin(turn), 6 + radius * height, 0.9,
        1);
  }
  for (int i = 0; i < 10; ++i)
    add(-12 + 2.4 * i, -8 + 0.5 * i, -14 + 0.4 * i, 1.1, 1);
  return blobs;
}

} // namespace Bracewell::Examples
