// Molecules of Gaussians, whose spectra and projections are known in closed form.
#pragma once

#include "operators/operators.hpp"

#include <array>
#include <complex>
#include <functional>

namespace Test {

using Matrix3 = std::array<std::array<double, 3>, 3>;

/// A density sum_i a_i exp(-sum_d (x_d - p_id)^2 / (2 s_id^2)) of `dimensions` dimensions; components (x, y[,
/// z]), lengths in pixels.
struct Molecule {
  struct Blob {
    double amplitude, position[3], width[3];
  };
  int dimensions;
  std::vector<Blob> blobs;

  /// Blobs at random within a ball around the origin, squeezed to the semi-axes given.
  Molecule(int dimension, std::array<double, 3> semi_axes, int count, std::uint64_t seed)
      : dimensions(dimension) {
    Random random(seed);
    while (blobs.size() < std::size_t(count)) {
      Blob blob{1 + 0.5 * random(), {}, {}};
      double distance = 0;
      for (int d = 0; d < dimensions; ++d) {
        const double u = random();
        distance += u * u;
        blob.position[d] = semi_axes[d] * u;
        blob.width[d] = 2 + 0.4 * random();
      }
      if (distance <= 1)
        blobs.push_back(blob);
    }
  }

  /// The Fourier integral at a frequency in cycles per pixel.
  std::complex<double> spectrum(const std::array<double, 3>& frequency) const {
    std::complex<double> sum = 0;
    for (const Blob& blob : blobs) {
      double turns = 0, exponent = 0, scale = blob.amplitude;
      for (int d = 0; d < dimensions; ++d) {
        turns += frequency[d] * blob.position[d];
        exponent += std::pow(frequency[d] * blob.width[d], 2);
        scale *= std::sqrt(2 * M_PI) * blob.width[d];
      }
      sum += std::polar(scale * std::exp(-2 * M_PI * M_PI * exponent), -2 * M_PI * turns);
    }
    return sum;
  }

  /// The half spectrum of the density on a box of the given full sizes, divided in real space by the kernel's
  /// roll-off, which is separable as each blob is: products of one-dimensional sums.
  template <class T>
  Tensor<complex<T>> corrected_volume(const Sizes& sizes,
                                      const std::function<double(double)>& rolloff) const {
    auto result = spectra<complex<T>>({1}, sizes);
    std::vector<std::complex<double>> sum(result.size());
    for (const Blob& blob : blobs) {
      std::vector<std::complex<double>> axis[3];
      for (int d = 0; d < 3; ++d) {
        if (d >= dimensions) {
          axis[d] = {1};
          continue;
        }
        const int n = sizes[sizes.size() - 1 - d];
        std::vector<double> density(n);
        for (int i = 0; i < n; ++i) {
          const double x = 2 * i <= n ? i : i - n;
          density[i] = std::exp(-std::pow((x - blob.position[d]) / blob.width[d], 2) / 2) / rolloff(x / n);
        }
        axis[d].resize(d == 0 ? n / 2 + 1 : n);
        for (std::size_t k = 0; k < axis[d].size(); ++k)
          for (int i = 0; i < n; ++i)
            axis[d][k] += density[i] * std::polar(1., -2 * M_PI * double(k) * i / n);
      }
      for (std::size_t element = 0; element < sum.size(); ++element) {
        const std::size_t x = element % axis[0].size(), row = element / axis[0].size();
        sum[element] +=
            blob.amplitude * axis[0][x] * axis[1][row % axis[1].size()] * axis[2][row / axis[1].size()];
      }
    }
    for (std::size_t element = 0; element < sum.size(); ++element)
      result[element] = complex<T>(static_cast<T>(sum[element].real()), static_cast<T>(sum[element].imag()));
    return result;
  }
};

/// Rotations at random (uniform quaternions), or about z alone for two dimensions.
inline Matrix3 random_rotation(int dimensions, Random& random) {
  double q[4], norm;
  do {
    norm = 0;
    for (int i = 0; i < 4; ++i) {
      q[i] = dimensions == 2 && (i == 1 || i == 2) ? 0 : random();
      norm += q[i] * q[i];
    }
  } while (norm > 1 || norm < 0.01);
  const double s = 2 / norm, w = q[0], x = q[1], y = q[2], z = q[3];
  return {{{1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)},
           {s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)},
           {s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)}}};
}

} // namespace Test
