// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/options.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/vector.hpp>
#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstring>
#include <map>
#include <mutex>
#include <numbers>
#include <utility>
#include <vector>

namespace Bracewell::Impl {

/// The gridding kernel, that of Kaiser and Bessel, in units of grid points: I0(beta sqrt(1 - z^2)) / I0(beta),
/// z = 2 t / width, zero outside |z| <= 1. Fessler and Sutton, IEEE Trans. Signal Process. 51, 2003.
struct KernelShape {
  static constexpr int max_width = 16;

  int width;
  double beta;               ///< decay
  double middle = bessel(1); ///< I0(beta)

  /// The decay that leaves the least of the kernel's transform outside the image: the product with `width` in the
  /// source above, times a factor near 1 found by minimising KernelPolynomials::Errors::aliasing.
  static KernelShape make(int width, double oversampling) {
    return {width, std::acos(-1.) * width * (1 - 0.5 / oversampling) * (1 - 0.075 / width)};
  }

  double operator()(double t) const {
    const double z = 2 * t / width, square = 1 - z * z;
    return square < 0 ? 0 : bessel(square) / middle;
  }

private:
  /// I0(beta sqrt(square)) by its power series, whose terms are all positive.
  double bessel(double square) const {
    double sum = 1, term = 1;
    const double quarter = square * beta * beta / 4;
    for (int k = 1; term > 1e-17 * sum; ++k)
      sum += term *= quarter / (double(k) * k);
    return sum;
  }
};

/// Nodes and weights of Gauss and Legendre's quadrature on [-1, 1].
inline std::vector<std::pair<double, double>> quadrature(int order) {
  const double pi = std::acos(-1.);
  std::vector<std::pair<double, double>> rule;
  for (int i = 0; i < order; ++i) {
    double x = std::cos(pi * (i + 0.75) / (order + 0.5)), slope = 1;
    double step = 1;
    for (int iteration = 0; iteration < 20 && std::abs(step) > 1e-15; ++iteration) { // mostly four
      double previous = 1, value = x;
      for (int k = 2; k <= order; ++k)
        previous = std::exchange(value, ((2 * k - 1) * x * value - (k - 1) * previous) / k);
      slope = order * (previous - x * value) / (1 - x * x);
      step = value / slope;
      x -= step;
    }
    rule.emplace_back(x, 2 / ((1 - x * x) * slope * slope));
  }
  return rule;
}

/// The kernel as one polynomial per tap: of the taps i = 0 .. width - 1 of a sample, tap i lies at distance
/// offset - i, offset in (width/2 - 1, width/2]. Every strategy evaluates these polynomials, and the roll-off
/// is their transform, so that how well they fit the kernel hardly matters.
struct KernelPolynomials {
  int width, degree;
  std::vector<double> coefficients; ///< [degree + 1, width], highest power first, in 2 offset - width + 1

  /// Chebyshev series of the least degree that misses the kernel by a twentieth of the tolerance, at the edge
  /// of images, where the roll-off amplifies it.
  KernelPolynomials(const KernelShape& shape, double tolerance, double oversampling) : width(shape.width) {
    fit(tolerance, oversampling, [&](double f, std::vector<double>& weights) {
      for (int tap = 0; 2 * tap <= width - 1; ++tap) // the others are mirrored
        weights[std::size_t(tap)] = shape(f + 0.5 * width - 1 - tap);
    });
  }

  /// The same of a kernel of the user's own.
  KernelPolynomials(const OwnKernel& kernel, double tolerance, double oversampling) : width(kernel.width()) {
    fit(tolerance, oversampling,
        [&](double f, std::vector<double>& weights) { weights = kernel.weights(f); });
  }

  /// The largest difference of the polynomials from a kernel's weights, relative to the largest weight.
  double misfit(const OwnKernel& kernel) const {
    double difference = 0, largest = 0;
    for (int step = 0; step <= 64; ++step) {
      const double f = step / 64.;
      const auto weights = kernel.weights(f);
      for (int tap = 0; tap < width; ++tap) {
        difference = std::max(difference, std::abs(value(tap, 2 * f - 1) - weights[std::size_t(tap)]));
        largest = std::max(largest, std::abs(weights[std::size_t(tap)]));
      }
    }
    return difference / largest;
  }

  double value(int tap, double u) const {
    double result = 0;
    for (int power = 0; power <= degree; ++power)
      result = result * u + coefficients[std::size_t(power * width + tap)];
    return result;
  }

  /// Fourier transform at a frequency in cycles per grid point, by quadrature (real: the kernel is even).
  double transform(double frequency) const {
    static const double two_pi = 2 * std::acos(-1.);
    double sum = 0;
    for (const auto& [t, weight] : nodes_)
      sum += weight * std::cos(two_pi * frequency * t);
    return sum;
  }

  /// The errors of sums over many samples, relative, root mean square over the image.
  struct Errors {
    double aliasing; ///< what the transform lets through from the periods of the grid beside the image, over
                     ///< what it lets through there (Fessler and Sutton, section V)
    double rounding; ///< of the grid's values, in units of their precision, as the roll-off amplifies it
  };
  Errors errors(double oversampling, int dimensions) const {
    static const auto pixels = quadrature(24); // dense at the edge of the image, where most errors lie
    double aliasing = 0, amplified = 0, square = 0;
    for (const auto& [t, weight] : nodes_)
      square += weight * at(t);
    for (const auto& [x, weight] : pixels) {
      if (x < 0)
        continue;
      const double frequency = x / (2 * oversampling), inside = std::pow(transform(frequency), 2);
      double outside = 0;
      for (int period = -2; period <= 2; ++period)
        if (period != 0)
          outside += std::pow(transform(frequency + period), 2);
      aliasing += weight * outside / inside;
      amplified += weight * square / inside;
    }
    return {std::sqrt(dimensions * aliasing), std::pow(amplified, 0.5 * dimensions)};
  }

private:
  std::vector<std::pair<double, double>>
      nodes_; ///< distances >= 0, and weights of the quadrature times values

  double at(double t) const {
    const double offset = t + std::ceil(0.5 * width - 1 - t); // in (width / 2 - 1, width / 2]
    return value(static_cast<int>(offset - t + 0.5), 2 * offset - width + 1);
  }

  /// @param weights_at  of all taps, for f = q - floor(q)
  template <class WeightsAt>
  void fit(double tolerance, double oversampling, const WeightsAt& weights_at) {
    const int highest = width + 4, nodes = highest + 1;
    const double pi = std::acos(-1.);
    std::vector<double> series(static_cast<std::size_t>(nodes * width)); // [tap, k]
    std::vector<std::vector<double>> values(std::size_t(nodes), std::vector<double>(std::size_t(width), 0.));
    for (int m = 0; m < nodes; ++m)
      weights_at((std::cos(pi * (m + 0.5) / nodes) + 1) / 2, values[std::size_t(m)]);
    for (int tap = 0; 2 * tap <= width - 1; ++tap) {
      for (int k = 0; k < nodes; ++k) {
        double c = 0;
        for (int m = 0; m < nodes; ++m)
          c += values[std::size_t(m)][std::size_t(tap)] * std::cos(pi * k * (m + 0.5) / nodes);
        c *= (k == 0 ? 1. : 2.) / nodes;
        series[std::size_t((width - 1 - tap) * nodes + k)] = k % 2 == 0 ? c : -c; // the kernel is even
        series[std::size_t(tap * nodes + k)] = 2 * tap == width - 1 && k % 2 == 1 ? 0 : c;
      }
    }
    truncate(series, highest);
    const double amplified = transform(0) / std::abs(transform(0.5 / oversampling));
    std::vector<double> rest(static_cast<std::size_t>(width));
    int least = highest;
    for (bool enough = true; least > 3; --least) {
      for (int tap = 0; tap < width; ++tap)
        enough = enough &&
                 (rest[std::size_t(tap)] += std::abs(series[std::size_t(tap * nodes + least)])) * amplified <=
                     tolerance / 20;
      if (!enough)
        break;
    }
    truncate(series, std::min(least, highest));
  }

  /// Chebyshev series of all taps to polynomials of a degree.
  void truncate(const std::vector<double>& series, int degree_) {
    degree = degree_;
    const std::size_t n = std::size_t(degree) + 1, taps = std::size_t(width), stride = series.size() / taps;
    coefficients.assign(n * taps, 0);
    std::vector<double> previous(n, 0.), current(n, 0.); // Chebyshev polynomials, lowest power first
    current[0] = 1;
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t tap = 0; tap < taps; ++tap)
        for (std::size_t power = 0; power <= k; ++power)
          coefficients[(n - 1 - power) * taps + tap] += series[tap * stride + k] * current[power];
      std::vector<double> next(n, 0.);
      for (std::size_t power = 0; power < n; ++power)
        next[power] = (power > 0 ? (k == 0 ? 1 : 2) * current[power - 1] : 0) - previous[power];
      previous = std::exchange(current, next);
    }
    nodes_.clear();
    for (const auto& [u, weight] : quadrature(degree + 8))
      for (int tap = 0; tap < width; ++tap) {
        const double t = (u + width - 1) / 2 - tap;
        if (t > -1e-9)
          nodes_.emplace_back(t, (t > 1e-9 ? weight : weight / 2) * value(tap, u));
      }
  }
};

/// What was computed for a key, kept as long as the process lives: fitting a kernel takes milliseconds, more than many a
/// plan's transforms. Threads share it. It keeps a thousand results, so that strange users do not fill the memory.
template <class Key, class Compute>
auto remembered(const Key& key, const Compute& compute) {
  using Value = decltype(compute());
  static std::mutex mutex;
  static std::map<Key, Value> known;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(key); found != known.end())
      return found->second;
  }
  Value value = compute();
  const std::lock_guard lock(mutex);
  if (known.size() >= 1000)
    known.clear();
  known.try_emplace(key, value);
  return value;
}

/// What a kernel is chosen for.
struct KernelNeeds {
  double tolerance, oversampling;
  int dimensions;
  double epsilon; ///< precision of the numbers on the grid

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy's own fault
  auto operator<=>(const KernelNeeds&) const = default;
};

/// A kernel with what it was chosen for, and its errors there.
struct ChosenKernel : KernelPolynomials {
  KernelNeeds needs;
  Errors errors_there;
};

/// The narrowest kernel that meets the tolerance with numbers of precision `epsilon` (aliasing with a margin:
/// that of one sample is up to 1.5 times that of many); the search begins below exp(-pi width sqrt(1 - 1 /
/// oversampling)), the best decay that there is (Barnett et al., section 4). Its width is max_width + 1 when
/// there is none. Sums on the grid and its FFT are each wrong by about epsilon.
inline ChosenKernel choose_kernel(double tolerance, double oversampling, int dimensions, double epsilon) {
  const KernelNeeds needs{tolerance, oversampling, dimensions, epsilon};
  return remembered(needs, [&] {
    const double decay = std::acos(-1.) * std::sqrt(1 - 1 / oversampling);
    for (int width = std::max(2, static_cast<int>(-0.8 * std::log(tolerance) / decay));; ++width) {
      KernelPolynomials polynomials(KernelShape::make(width, oversampling), tolerance, oversampling);
      const auto errors = polynomials.errors(oversampling, dimensions);
      if (width > KernelShape::max_width ||
          (errors.aliasing <= 0.6 * tolerance && 2 * epsilon * errors.rounding <= 0.95 * tolerance))
        return ChosenKernel{std::move(polynomials), needs, errors};
    }
  });
}

/// A kernel of the user's own. Its transform has to be positive within images, whose edge lies at 0.5 / oversampling: the
/// roll-off is the reciprocal.
/// @throws Error
inline ChosenKernel chosen_kernel(const OwnKernel& kernel, const Arguments& arguments, double tolerance,
                                  double oversampling, int dimensions, double epsilon) {
  KernelPolynomials polynomials(kernel, tolerance, oversampling);
  const double misfit = polynomials.misfit(kernel);
  arguments.require(
      misfit <= tolerance, "options.kernel",
      [&] { return "weights that polynomials between taps fit to the tolerance"; },
      [&] { return "a difference of " + number(misfit); });
  double least = 1;
  for (int step = 0; step <= 64; ++step)
    least = std::min(least, polynomials.transform(step / 128. / oversampling) / polynomials.transform(0));
  arguments.require(
      least > 0.01, "options.kernel",
      "a transform within images of at least a hundredth of the largest (more oversampling helps)",
      [&] { return number(least); });
  const auto errors = polynomials.errors(oversampling, dimensions);
  return {std::move(polynomials), {tolerance, oversampling, dimensions, epsilon}, errors};
}

/// The reciprocal of a kernel's transform at frequencies up to `reach` in cycles per grid point. Its logarithm is a
/// Chebyshev series in the square of the frequency, to rounding: zeros of the transform lie at 1.4 times the edge of
/// images or beyond, where the oversampling is 1.2 or more. (Quadrature takes a hundred cosines and more.)
struct ReciprocalTransform {
  static constexpr int terms = 28;
  double series[terms];
  double reach;

  ReciprocalTransform(const KernelPolynomials& kernel, double reach_) : series{}, reach(reach_) {
    double values[terms];
    for (int m = 0; m < terms; ++m)
      values[m] = -std::log(kernel.transform(reach * std::sqrt((1 + node(m)) / 2)));
    for (int k = 0; k < terms; ++k) {
      for (int m = 0; m < terms; ++m)
        series[k] += values[m] * std::cos(std::numbers::pi * k * (m + 0.5) / terms);
      series[k] *= (k == 0 ? 1. : 2.) / terms;
    }
  }

  KOKKOS_FUNCTION double operator()(double frequency) const {
    const double x = 2 * (frequency / reach) * (frequency / reach) - 1;
    double next = 0, value = 0; // Clenshaw's recurrence
    for (int k = terms - 1; k > 0; --k) {
      const double now = 2 * x * value - next + series[k];
      next = value;
      value = now;
    }
    return Kokkos::exp(x * value - next + series[0]);
  }

  /// values[i] = (*this)(i / cells) for 0 <= i < count: several at once, as each term waits for the one before it.
  template <class T>
  void fill(double cells, int count, T* values) const {
    constexpr int lanes = vector_bytes / sizeof(double), vectors = 4, at_once = vectors * lanes;
    using Numbers = typename Vector<double, lanes>::type;
    for (int begin = 0; begin < count; begin += at_once) {
      double frequency[at_once], logarithm[at_once];
      for (int i = 0; i < at_once; ++i)
        frequency[i] = std::min((begin + i) / cells, reach);
      Numbers twice[vectors], next[vectors] = {}, value[vectors] = {};
      std::memcpy(twice, frequency, sizeof twice);
      for (auto& x : twice)
        x = 4 * (x / reach) * (x / reach) - 2;
      for (int k = terms - 1; k > 0; --k)
        for (int v = 0; v < vectors; ++v) {
          const Numbers now = twice[v] * value[v] - next[v] + series[k];
          next[v] = value[v];
          value[v] = now;
        }
      for (int v = 0; v < vectors; ++v)
        value[v] = 0.5 * twice[v] * value[v] - next[v] + series[0];
      std::memcpy(logarithm, value, sizeof logarithm);
      for (int i = 0; i < std::min(at_once, count - begin); ++i)
        values[begin + i] = static_cast<T>(std::exp(logarithm[i]));
    }
  }

  /// Of a kernel that was chosen, once.
  static ReciprocalTransform of(const ChosenKernel& kernel, double reach) {
    return remembered(std::pair(kernel.needs, reach), [&] { return ReciprocalTransform(kernel, reach); });
  }

private:
  static double node(int m) { return std::cos(std::numbers::pi * (m + 0.5) / terms); }
};

} // namespace Bracewell::Impl
