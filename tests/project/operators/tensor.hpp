// Arrays on the host, and what the tests compute of them.
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace Test {

using Kokkos::complex;
using Kokkos::imag;
using Kokkos::real;
using Sizes = std::vector<int>; ///< full sizes of a spectrum, row-major: ((depth,) height, width)

/// Uniform numbers in [-1, 1), the same on every platform (splitmix64).
class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double operator()() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
  }

private:
  std::uint64_t state_;
};

/// A row-major array. Empty: an argument that is not given.
template <class Value>
struct Tensor {
  std::vector<std::size_t> extents;
  int width = 0; ///< full width of the last axis of a half spectrum
  std::vector<Value> values;

  Tensor() = default;
  Tensor(std::vector<std::size_t> shape) : extents(std::move(shape)) {
    std::size_t size = 1;
    for (const std::size_t extent : extents)
      size *= extent;
    values.resize(size);
  }

  std::size_t size() const { return values.size(); }
  Value& operator[](std::size_t i) { return values[i]; }
  const Value& operator[](std::size_t i) const { return values[i]; }
};

/// Half spectra of the given full sizes behind leading axes.
template <class Value>
Tensor<Value> spectra(std::vector<std::size_t> leading, const Sizes& sizes) {
  leading.insert(leading.end(), sizes.begin(), sizes.end());
  leading.back() = leading.back() / 2 + 1;
  Tensor<Value> result(leading);
  result.width = sizes.back();
  return result;
}

template <class T>
void fill(Tensor<T>& tensor, Random& random) {
  for (T& value : tensor.values)
    value = static_cast<T>(random());
}
template <class T>
void fill(Tensor<complex<T>>& tensor, Random& random) {
  for (auto& value : tensor.values) {
    const double re = random(), im = random();
    value = complex<T>(static_cast<T>(re), static_cast<T>(im));
  }
}
template <class Value>
Tensor<Value> random_like(const Tensor<Value>& like, Random& random) {
  Tensor<Value> result = like;
  fill(result, random);
  return result;
}
template <class Value>
Tensor<Value> zero_like(const Tensor<Value>& like) {
  Tensor<Value> result = like;
  std::fill(result.values.begin(), result.values.end(), Value(0));
  return result;
}

/// a + step * b.
template <class Value>
Tensor<Value> moved(Tensor<Value> a, double step, const Tensor<Value>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] += step * b[i];
  return a;
}

/// Sum of Re(conj(a) b) over the stored elements.
template <class Value>
double dot(const Tensor<Value>& a, const Tensor<Value>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += double(real(a[i])) * real(b[i]) + double(imag(a[i])) * imag(b[i]);
  return sum;
}

/// The same over the full Hermitian spectrum: columns whose mates are not stored count twice.
template <class Value>
double full_dot(const Tensor<Value>& a, const Tensor<Value>& b) {
  const std::size_t columns = a.extents.back();
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::size_t x = i % columns;
    const int multiplicity = x == 0 || 2 * x == std::size_t(a.width) ? 1 : 2;
    sum += multiplicity * (double(real(a[i])) * real(b[i]) + double(imag(a[i])) * imag(b[i]));
  }
  return sum;
}

template <class Value>
double norm(const Tensor<Value>& a) {
  return std::sqrt(dot(a, a));
}

/// ||a - b|| / ||b||, or ||a|| where b is zero; infinite when anything is not a number.
template <class Value>
double relative_error(const Tensor<Value>& a, const Tensor<Value>& b) {
  if (a.size() != b.size())
    return INFINITY;
  const double scale = norm(b), error = norm(moved(a, -1, b)) / (scale > 0 ? scale : 1);
  return std::isfinite(error) ? error : INFINITY;
}

} // namespace Test
