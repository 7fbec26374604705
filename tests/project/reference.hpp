// The projection operators by their definition: one loop over taps, integer arithmetic modulo the box, double
// precision.
#pragma once

#include "operators/operators.hpp"

#include <functional>
#include <optional>

namespace Test {

/// The textbook piecewise polynomials as functions of the distance to a tap.
inline double kernel_value(const std::string& kernel, double x) {
  const double a = std::abs(x);
  if (kernel == Bracewell::Linear::name)
    return a < 1 ? 1 - a : 0;
  if (kernel == Bracewell::CatmullRom::name)
    return a < 1 ? 1.5 * a * a * a - 2.5 * a * a + 1
                 : (a < 2 ? -0.5 * a * a * a + 2.5 * a * a - 4 * a + 2 : 0);
  return a < 1 ? 2. / 3 - a * a + a * a * a / 2 : (a < 2 ? (2 - a) * (2 - a) * (2 - a) / 6 : 0);
}

inline int modulo(long long i, int n) { return static_cast<int>(((i % n) + n) % n); }
inline int frequency(int i, int n) { return i <= n / 2 ? i : i - n; }

/// Where the spectrum at an integer frequency (x, y[, z]) is stored.
struct Stored {
  std::size_t index;
  bool conjugate;
};
inline Stored stored(const std::vector<long long>& tap, const Sizes& sizes) {
  const int dimensions = static_cast<int>(sizes.size());
  const bool conjugate = modulo(tap[0], sizes.back()) > sizes.back() / 2;
  std::size_t index = 0;
  for (int axis = 0; axis < dimensions; ++axis) {
    const long long t = tap[dimensions - 1 - axis];
    const int extent = axis == dimensions - 1 ? sizes[axis] / 2 + 1 : sizes[axis];
    index = index * extent + modulo(conjugate ? -t : t, sizes[axis]);
  }
  return {index, conjugate};
}

/// Calls visit(tap, weight) for the taps around a position.
inline void for_each_tap(const std::string& kernel, const std::vector<double>& q,
                         const std::function<void(const std::vector<long long>&, double)>& visit) {
  const int dimensions = static_cast<int>(q.size()), reach = kernel == Bracewell::Linear::name ? 1 : 2;
  const int width = 2 * reach;
  int taps = 1;
  for (int d = 0; d < dimensions; ++d)
    taps *= width;
  for (int i = 0; i < taps; ++i) {
    std::vector<long long> tap(dimensions);
    double weight = 1;
    for (int d = 0, rest = i; d < dimensions; ++d, rest /= width) {
      tap[d] = static_cast<long long>(std::floor(q[d])) - reach + 1 + rest % width;
      weight *= kernel_value(kernel, q[d] - static_cast<double>(tap[d]));
    }
    visit(tap, weight);
  }
}

struct Reference {
  std::string kernel;
  Sizes volume, image;
  double oversampling, radius;
  std::optional<double> ewald_radius = std::nullopt;

  std::size_t elements(const Sizes& sizes) const {
    std::size_t product = sizes.back() / 2 + 1;
    for (std::size_t axis = 0; axis + 1 < sizes.size(); ++axis)
      product *= sizes[axis];
    return product;
  }

  /// Frequency (x, y[, z]) of a stored element of the projection.
  std::vector<int> frequency_of(std::size_t element) const {
    std::vector<int> k;
    const std::size_t columns = image.back() / 2 + 1;
    k.push_back(static_cast<int>(element % columns));
    element /= columns;
    for (int axis = static_cast<int>(image.size()) - 2; axis >= 0; --axis) {
      k.push_back(frequency(static_cast<int>(element % image[axis]), image[axis]));
      element /= image[axis];
    }
    return k;
  }

  bool inside(const std::vector<int>& k) const {
    double sum = 0;
    for (const int component : k)
      sum += double(component) * component;
    return sum <= radius * radius * (1 + 1e-12);
  }

  std::vector<double> position(const std::vector<int>& k, const double* matrix) const {
    const std::size_t d = volume.size();
    std::vector<double> frequency(d, 0.), q(d, 0.);
    for (std::size_t c = 0; c < k.size(); ++c)
      frequency[c] = k[c];
    if (ewald_radius)
      frequency[2] = (k[0] * k[0] + k[1] * k[1]) / (2 * *ewald_radius);
    for (std::size_t row = 0; row < d; ++row)
      for (std::size_t c = 0; c < d; ++c)
        q[row] += matrix[row * d + c] * (oversampling * frequency[c]);
    return q;
  }

  /// exp(-2 pi i k.s/n); shift in the order of the array axes.
  complex<double> phase(const std::vector<int>& k, const double* shift) const {
    double turns = 0;
    const std::size_t m = image.size();
    for (std::size_t axis = 0; shift && axis < m; ++axis)
      turns += k[m - 1 - axis] * shift[axis] / image[axis];
    return {std::cos(2 * M_PI * turns), -std::sin(2 * M_PI * turns)};
  }

  void project(const complex<double>* spectrum, const double* matrix, const double* shift,
               complex<double>* output) const {
    for (std::size_t element = 0; element < elements(image); ++element) {
      const auto k = frequency_of(element);
      complex<double> sum = 0;
      if (inside(k))
        for_each_tap(kernel, position(k, matrix), [&](const auto& tap, double weight) {
          const Stored at = stored(tap, volume);
          sum += weight * (at.conjugate ? Kokkos::conj(spectrum[at.index]) : spectrum[at.index]);
        });
      output[element] = sum * phase(k, shift);
    }
  }

  /// Every stored sample goes in at +k and its conjugate at -k, with half its multiplicity; what falls on the
  /// stored half is kept.
  void backproject(const complex<double>* projection, const double* weights, const double* matrix,
                   const double* shift, bool absolute, complex<double>* data, double* weight_volume) const {
    for (std::size_t element = 0; element < elements(image); ++element) {
      const auto k = frequency_of(element);
      if (!inside(k))
        continue;
      const double half = k[0] == 0 || 2 * k[0] == image.back() ? 0.5 : 1;
      const complex<double> value = half * projection[element] * Kokkos::conj(phase(k, shift));
      for (const int sign : {1, -1})
        for_each_tap(kernel, position(k, matrix), [&](std::vector<long long> tap, double weight) {
          for (auto& component : tap)
            component *= sign;
          const Stored at = stored(tap, volume);
          if (at.conjugate)
            return;
          data[at.index] += weight * (sign > 0 ? value : Kokkos::conj(value));
          if (weight_volume)
            weight_volume[at.index] += half * weights[element] * (absolute ? std::abs(weight) : weight);
        });
    }
  }
};

} // namespace Test
