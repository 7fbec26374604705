// The projection operators by their definition, in double precision, at a few outputs chosen at random: what
// the benchmarks compare the library's results with before they measure. Of the library only names and
// widths of kernels are used.
#pragma once

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/linear.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace Bench {

using Kokkos::complex;

KOKKOS_INLINE_FUNCTION double squared(double x) { return x * x; }
KOKKOS_INLINE_FUNCTION double squared(const complex<double>& x) {
  return x.real() * x.real() + x.imag() * x.imag();
}

/// The textbook piecewise polynomials as functions of the distance to a tap.
template <class Kernel>
KOKKOS_INLINE_FUNCTION double kernel_value(double x) {
  const double a = Kokkos::abs(x);
  if constexpr (std::is_same_v<Kernel, Bracewell::Linear>)
    return a < 1 ? 1 - a : 0;
  else if constexpr (std::is_same_v<Kernel, Bracewell::CatmullRom>)
    return a < 1 ? (1.5 * a - 2.5) * a * a + 1 : a < 2 ? ((-0.5 * a + 2.5) * a - 4) * a + 2 : 0;
  else
    return a < 1 ? 2. / 3 + (a / 2 - 1) * a * a : a < 2 ? (2 - a) * (2 - a) * (2 - a) / 6 : 0;
}

/// Their derivatives.
template <class Kernel>
KOKKOS_INLINE_FUNCTION double kernel_slope(double x) {
  const double a = Kokkos::abs(x), sign = x < 0 ? -1 : 1;
  if constexpr (std::is_same_v<Kernel, Bracewell::Linear>)
    return a < 1 ? -sign : 0;
  else if constexpr (std::is_same_v<Kernel, Bracewell::CatmullRom>)
    return sign * (a < 1 ? (4.5 * a - 5) * a : a < 2 ? (-1.5 * a + 5) * a - 4 : 0);
  else
    return sign * (a < 1 ? (1.5 * a - 2) * a : a < 2 ? -(2 - a) * (2 - a) / 2 : 0);
}

/// One batch of a problem of even box size: volume [box^(D-1), box/2+1], images [poses, box^(M-1), box/2+1],
/// matrices [poses, D, D], shifts [poses, M], all on the device.
template <class Kernel, class T, int M, int D>
struct Definition {
  int box;
  std::int64_t poses;
  const T *matrices, *shifts;

  KOKKOS_INLINE_FUNCTION int columns() const { return box / 2 + 1; }
  KOKKOS_INLINE_FUNCTION std::int64_t elements(int dimensions) const {
    std::int64_t product = columns();
    for (int d = 1; d < dimensions; ++d)
      product *= box;
    return product;
  }

  /// An element of a half spectrum as a frequency (x, y[, z]), and back.
  template <int N>
  KOKKOS_INLINE_FUNCTION void locate(std::int64_t element, int (&k)[N]) const {
    k[0] = static_cast<int>(element % columns());
    element /= columns();
    for (int d = 1; d < N; ++d, element /= box) {
      const auto i = static_cast<int>(element % box);
      k[d] = i <= box / 2 ? i : i - box;
    }
  }
  template <int N>
  KOKKOS_INLINE_FUNCTION std::int64_t element(const int (&k)[N]) const {
    std::int64_t result = 0;
    for (int d = N - 1; d > 0; --d)
      result = (result + (k[d] % box + box) % box) * (d > 1 ? box : columns());
    return result + (k[0] % box + box) % box;
  }
  /// Whether a frequency lies in the stored half.
  KOKKOS_INLINE_FUNCTION bool stored(const int (&k)[D]) const { return (k[0] % box + box) % box <= box / 2; }

  /// |k| <= box / 2, the default radius.
  KOKKOS_INLINE_FUNCTION bool inside(const int (&k)[M]) const {
    int squared = 0;
    for (int c = 0; c < M; ++c)
      squared += k[c] * k[c];
    return 4 * squared <= box * box;
  }
  KOKKOS_INLINE_FUNCTION void position(std::int64_t pose, const int (&k)[M], double (&q)[D]) const {
    for (int d = 0; d < D; ++d) {
      q[d] = 0;
      for (int c = 0; c < M; ++c)
        q[d] += double(matrices[(pose * D + d) * D + c]) * k[c];
    }
  }
  KOKKOS_INLINE_FUNCTION complex<double> phase(std::int64_t pose, const int (&k)[M]) const {
    double turns = 0;
    for (int c = 0; c < M; ++c)
      turns += k[c] * double(shifts[pose * M + M - 1 - c]) / box;
    const double angle = -2 * Kokkos::numbers::pi * turns;
    return {Kokkos::cos(angle), Kokkos::sin(angle)};
  }

  /// Sum over the taps t around q of the kernel's weight times value(t), or its derivative along an axis.
  template <class Result, class Value>
  KOKKOS_INLINE_FUNCTION Result interpolate(const double (&q)[D], const Value& value, int along = -1) const {
    constexpr int width = Kernel::width;
    int taps = 1, first[D];
    for (int d = 0; d < D; ++d) {
      taps *= width;
      first[d] = static_cast<int>(Kokkos::floor(q[d])) - width / 2 + 1;
    }
    Result sum(0);
    for (int i = 0; i < taps; ++i) {
      int tap[D];
      double weight = 1;
      for (int d = 0, rest = i; d < D; ++d, rest /= width) {
        tap[d] = first[d] + rest % width;
        weight *= d == along ? kernel_slope<Kernel>(q[d] - tap[d]) : kernel_value<Kernel>(q[d] - tap[d]);
      }
      sum += weight * value(tap);
    }
    return sum;
  }

  /// The spectrum between its elements, or its derivative along an axis.
  KOKKOS_INLINE_FUNCTION complex<double> spectrum(const complex<T>* volume, const double (&q)[D],
                                                  int along = -1) const {
    return interpolate<complex<double>>(
        q,
        [&](const int(&tap)[D]) {
          if (stored(tap))
            return complex<double>(volume[element(tap)]);
          int mate[D];
          for (int d = 0; d < D; ++d)
            mate[d] = -tap[d];
          return Kokkos::conj(complex<double>(volume[element(mate)]));
        },
        along);
  }

  /// How much of a sample and of its mate `backproject` adds.
  KOKKOS_INLINE_FUNCTION double share(const int (&k)[M]) const {
    return k[0] == 0 || 2 * k[0] == box ? 0.5 : 1;
  }

  /// Weight with which a tap falls on v, modulo the box.
  KOKKOS_INLINE_FUNCTION double weight_at(const double (&q)[D], const int (&v)[D], int sign) const {
    double weight = 1;
    for (int d = 0; d < D && weight != 0; ++d) {
      const double distance = sign * q[d] - v[d];
      weight *= kernel_value<Kernel>(distance - box * Kokkos::round(distance / box));
    }
    return weight;
  }
};

/// Well mixed bits of a number (the finaliser of SplitMix64).
KOKKOS_INLINE_FUNCTION std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The i-th of the samples that are looked at.
template <int M>
struct Sample {
  std::int64_t pose, element;
  int k[M];

  template <class Defined>
  KOKKOS_INLINE_FUNCTION Sample(const Defined& defined, std::int64_t i)
      : pose(static_cast<std::int64_t>(mixed(2 * i) % std::uint64_t(defined.poses))),
        element(static_cast<std::int64_t>(mixed(2 * i + 1) % std::uint64_t(defined.elements(M)))) {
    defined.locate(element, k);
    element += pose * defined.elements(M);
  }
};

/// Squared difference of what was found from what is expected, and squared expectation.
struct Squares {
  double difference = 0, norm = 0;

  template <class Value>
  KOKKOS_INLINE_FUNCTION void add(const Value& found, const Value& expected) {
    difference += squared(found - expected);
    norm += squared(expected);
  }
  KOKKOS_INLINE_FUNCTION Squares& operator+=(const Squares& other) {
    difference += other.difference;
    norm += other.norm;
    return *this;
  }
  double relative_error() const { return std::sqrt(difference / norm); }
};

/// `project`, at a sample.
template <class Kernel, class T, int M, int D>
struct CheckProjections {
  Definition<Kernel, T, M, D> defined;
  const complex<T>*volume, *found;

  KOKKOS_FUNCTION void operator()(std::int64_t i, Squares& squares) const {
    const Sample<M> sample(defined, i);
    complex<double> value = 0;
    if (defined.inside(sample.k)) {
      double q[D];
      defined.position(sample.pose, sample.k, q);
      value = defined.spectrum(volume, q) * defined.phase(sample.pose, sample.k);
    }
    squares.add(complex<double>(found[sample.element]), value);
  }
};

/// `backproject_gradients` with respect to projections and weights, at a sample.
template <class Kernel, class T, int M, int D>
struct CheckProjectionGradients {
  Definition<Kernel, T, M, D> defined;
  const complex<T>* data;
  const T* weight;
  const complex<T>* found;
  const T* found_weights;

  KOKKOS_FUNCTION void operator()(std::int64_t i, Squares& squares) const {
    const Sample<M> sample(defined, i);
    complex<double> value = 0;
    double value_weight = 0;
    if (defined.inside(sample.k)) {
      double q[D];
      defined.position(sample.pose, sample.k, q);
      value = defined.template interpolate<complex<double>>(q, Read{defined, data}) *
              defined.share(sample.k) * defined.phase(sample.pose, sample.k);
      value_weight =
          defined.template interpolate<double>(q, ReadWeight{defined, weight}) * defined.share(sample.k);
    }
    squares.add(complex<double>(found[sample.element]), value);
    squares.add(double(found_weights[sample.element]), value_weight);
  }

  /// What a sample at a tap, and its mate at the opposite one, meet in the stored half.
  struct Read {
    const Definition<Kernel, T, M, D>& defined;
    const complex<T>* data;
    KOKKOS_FUNCTION complex<double> operator()(const int (&tap)[D]) const {
      int mate[D];
      for (int d = 0; d < D; ++d)
        mate[d] = -tap[d];
      complex<double> sum = 0;
      if (defined.stored(tap))
        sum += complex<double>(data[defined.element(tap)]);
      if (defined.stored(mate))
        sum += Kokkos::conj(complex<double>(data[defined.element(mate)]));
      return sum;
    }
  };
  struct ReadWeight {
    const Definition<Kernel, T, M, D>& defined;
    const T* weight;
    KOKKOS_FUNCTION double operator()(const int (&tap)[D]) const {
      int mate[D];
      for (int d = 0; d < D; ++d)
        mate[d] = -tap[d];
      return (defined.stored(tap) ? double(weight[defined.element(tap)]) : 0) +
             (defined.stored(mate) ? double(weight[defined.element(mate)]) : 0);
    }
  };
};

/// `backproject` and, without weights, the gradient of `project` with respect to the reconstruction: what all
/// samples bring to the voxels next to some of them.
template <class Kernel, class T, int M, int D>
struct SumAtVoxels {
  static constexpr int voxels = 32;
  Definition<Kernel, T, M, D> defined;
  bool both; ///< every sample and its mate, as backproject
  const complex<T>* images;
  const T* weights;      ///< nullptr: none
  complex<double>* sums; ///< [voxels]
  double* weight_sums;   ///< [voxels]

  KOKKOS_INLINE_FUNCTION void voxel(int i, int (&v)[D]) const {
    Sample<M> sample(defined, i);
    for (std::int64_t j = i; !defined.inside(sample.k);)
      sample = Sample<M>(defined, j += voxels);
    double q[D];
    defined.position(sample.pose, sample.k, q);
    const int sign = q[0] < 0 ? -1 : 1;
    for (int d = 0; d < D; ++d)
      v[d] = static_cast<int>(Kokkos::floor(sign * q[d]));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t at) const {
    int k[M], v[D];
    defined.locate(at % defined.elements(M), k);
    if (!defined.inside(k))
      return;
    const std::int64_t pose = at / defined.elements(M);
    double q[D];
    defined.position(pose, k, q);
    const complex<double> value = complex<double>(images[at]) * Kokkos::conj(defined.phase(pose, k));
    const double share = both ? defined.share(k) : 1;
    for (int i = 0; i < voxels; ++i) {
      voxel(i, v);
      const bool self_mated = v[0] == 0 || 2 * v[0] == defined.box;
      const double here = share * defined.weight_at(q, v, 1),
                   mate = self_mated && !both ? 0 : share * defined.weight_at(q, v, -1);
      if (here == 0 && mate == 0)
        continue;
      Kokkos::atomic_add(&sums[i], here * value + mate * Kokkos::conj(value));
      if (weights)
        Kokkos::atomic_add(&weight_sums[i], (here + mate) * double(weights[at]));
    }
  }
};

/// Those sums, at a voxel.
template <class Kernel, class T, int M, int D>
struct CheckVoxels {
  SumAtVoxels<Kernel, T, M, D> sum;
  const complex<T>* found;
  const T* found_weight;

  KOKKOS_FUNCTION void operator()(std::int64_t i, Squares& squares) const {
    int v[D];
    sum.voxel(static_cast<int>(i), v);
    squares.add(complex<double>(found[sum.defined.element(v)]), sum.sums[i]);
    if (found_weight)
      squares.add(double(found_weight[sum.defined.element(v)]), sum.weight_sums[i]);
  }
};

/// Derivative of sum Re(conj(g) P) of a pose with respect to one of its entries: M columns of its matrix row
/// by row, then the shift.
template <class Kernel, class T, int M, int D>
struct PoseDerivative {
  Definition<Kernel, T, M, D> defined;
  const complex<T>*volume, *cotangent;
  std::int64_t pose;
  int entry;

  KOKKOS_FUNCTION void operator()(std::int64_t element, double& sum) const {
    int k[M];
    defined.locate(element, k);
    if (!defined.inside(k))
      return;
    double q[D];
    defined.position(pose, k, q);
    complex<double> change = defined.phase(pose, k);
    if (entry < D * M)
      change *= defined.spectrum(volume, q, entry / M) * double(k[entry % M]);
    else
      change *= defined.spectrum(volume, q) *
                complex<double>(0, -2 * Kokkos::numbers::pi * k[M - 1 - (entry - D * M)] / defined.box);
    const complex<double> g(cotangent[pose * defined.elements(M) + element]);
    sum += g.real() * change.real() + g.imag() * change.imag();
  }
};

} // namespace Bench

template <>
struct Kokkos::reduction_identity<Bench::Squares> {
  KOKKOS_FORCEINLINE_FUNCTION static Bench::Squares sum() { return {}; }
};
