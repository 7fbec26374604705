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
};

/// Fills half spectra of a molecule whose origin lies at pixel floor(box / 2), or at the shifts given; zero
/// beyond Nyquist.
template <int Dim>
struct FillMoleculeSpectra {
  Molecule molecule;
  Kokkos::complex<float>* spectra; ///< [count, height, width/2+1], or one volume [depth, height, width/2+1]
  float scale;
  Poses<float, Memory> poses = {}; ///< of images, as `project` takes them

  /// A row: from column to column each blob changes by a factor.
  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    const HalfSpectrumLayout<Dim> layout = this->layout();
    const int columns = molecule.box / 2 + 1;
    const std::int64_t image = row * columns / layout.elements();
    int k[Dim]; // (x, y) or (x, y, z) of the first column, where x is 0
    layout.frequency(row * columns % layout.elements(), k);
    const float per_pixel = 1 / static_cast<float>(molecule.box);
    float start[3] = {0, 0, 0}, step[3] = {0, 0, 0}; // in the molecule's directions, cycles per pixel
    float origin_start = 0, origin_step = 0;         // turns
    int squared = 0;
    for (int c = 0; c < Dim; ++c) {
      const float frequency = static_cast<float>(k[c]) * per_pixel;
      squared += k[c] * k[c];
      float origin = static_cast<float>(molecule.box / 2);
      if constexpr (Dim == 2)
        origin = poses.shifts.data[2 * image + 1 - c];
      origin_start += frequency * origin;
      if (c == 0)
        origin_step = per_pixel * origin;
      for (int d = 0; d < 3; ++d) {
        float direction = c == d ? 1 : 0;
        if constexpr (Dim == 2)
          direction = poses.matrices.data[9 * image + 3 * d + c];
        start[d] += direction * frequency;
        if (c == 0)
          step[d] = direction * per_pixel;
      }
    }
    Kokkos::complex<float>* values = spectra + row * columns;
    int count = 0; // of columns up to Nyquist
    for (int column = 0; column < columns; ++column) {
      values[column] = 0;
      count += 4 * (squared + column * column) <= molecule.box * molecule.box;
    }
    constexpr float pi = Kokkos::numbers::pi_v<float>;
    for (std::size_t i = 0; i < molecule.blobs.extent(0); ++i) {
      const Blob& blob = molecule.blobs(i);
      const float variance = blob.deviation * blob.deviation;
      const float volume = 2 * pi * variance * Kokkos::sqrt(2 * pi * variance);
      const float decay = 2 * pi * pi * variance * per_pixel * per_pixel;
      float turns = origin_start, turns_step = origin_step;
      for (int d = 0; d < 3; ++d) {
        turns += start[d] * blob.centre[d];
        turns_step += step[d] * blob.centre[d];
      }
      Kokkos::complex<float> value =
          scale * blob.amplitude * volume * Kokkos::exp(-decay * static_cast<float>(squared)) * turned(turns);
      Kokkos::complex<float> factor = Kokkos::exp(-decay) * turned(turns_step); // exp(-decay (2 column + 1))
      const float factor_step = Kokkos::exp(-2 * decay);
      for (int column = 0; column < count; ++column) {
        values[column] += value;
        value *= factor;
        factor *= factor_step;
      }
    }
  }

  void run(const Space& space, std::int64_t count) const {
    const std::int64_t rows = count * layout().elements() / (molecule.box / 2 + 1);
    Kokkos::parallel_for("Bracewell::examples::molecule",
                         Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, rows), *this);
  }

private:
  KOKKOS_FUNCTION HalfSpectrumLayout<Dim> layout() const {
    HalfSpectrumLayout<Dim> result;
    for (int& size : result.size)
      size = molecule.box;
    return result;
  }

  /// exp(-2 pi i turns).
  KOKKOS_FUNCTION static Kokkos::complex<float> turned(float turns) {
    const float angle = -2 * Kokkos::numbers::pi_v<float> * (turns - Kokkos::floor(turns));
    return {Kokkos::cos(angle), Kokkos::sin(angle)};
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
