// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>

namespace Bracewell {

/// The lens that forms a probe. One unit for all lengths.
struct ProbeOptics {
  double wavelength;
  double pixel_size;         ///< of object and probe
  double convergence_angle;  ///< half angle of the aperture, radians: k_max = angle / wavelength
  double cs_to_length = 1e6; ///< the unit of Cs in the unit of the other lengths (mm in nm)
};

/// The five parameters of an aberrated probe, in the order in which they are stored.
enum ProbeParameter : int {
  Defocus,             ///< length
  SphericalAberration, ///< Cs, in its own unit
  Astigmatism,         ///< magnitude, length
  AstigmatismAngle,    ///< radians, from the row axis
  ApertureSmoothness, ///< width of the aperture's edge, as a fraction of k_max; 0.01 is added to its absolute
                      ///< value
  probe_parameter_count
};

namespace Impl {

/// Wave in the aperture, A exp(i chi), and its derivatives, at one frequency.
template <class T>
struct Aperture {
  double wavelength, k_max, cs_to_length, step; ///< step: 1 / (n pixel_size)
  int n;

  struct Value {
    T amplitude, edge; ///< A, and dA/d(smoothness) for smoothness >= 0
    T cosine, sine;    ///< of chi
    T chi[4];          ///< derivatives of chi with respect to the first four parameters
  };

  KOKKOS_FUNCTION Value operator()(std::int64_t i, const T* parameters) const {
    const int row = static_cast<int>(i / n), column = static_cast<int>(i % n);
    // In double precision: chi reaches hundreds of radians, and there are only n^2 of them.
    const double k1 = step * (2 * row < n ? row : row - n),
                 k2 = step * (2 * column < n ? column : column - n);
    const double kk = k1 * k1 + k2 * k2, k = Kokkos::sqrt(kk), pi = Kokkos::numbers::pi;
    const double angle = parameters[AstigmatismAngle];
    const double c = Kokkos::cos(2 * angle), s = Kokkos::sin(2 * angle);
    // k^2 cos 2(theta - angle) and k^2 sin 2(theta - angle), theta from the row axis
    const double even = (k1 * k1 - k2 * k2) * c + 2 * k1 * k2 * s;
    const double odd = 2 * k1 * k2 * c - (k1 * k1 - k2 * k2) * s;
    const double defocus = pi * wavelength * kk;
    const double spherical = 0.5 * pi * wavelength * wavelength * wavelength * cs_to_length * kk * kk;
    const double chi = parameters[Defocus] * defocus + parameters[SphericalAberration] * spherical +
                       parameters[Astigmatism] * pi * wavelength * even;
    const double width = Kokkos::abs(double(parameters[ApertureSmoothness])) + 0.01;
    const double x = (k_max - k) / (k_max * width);
    const double amplitude = 1 / (1 + Kokkos::exp(-x));
    Value value;
    value.amplitude = static_cast<T>(amplitude);
    value.edge = static_cast<T>(-amplitude / (1 + Kokkos::exp(x)) * x / width);
    value.cosine = static_cast<T>(Kokkos::cos(chi));
    value.sine = static_cast<T>(Kokkos::sin(chi));
    value.chi[0] = static_cast<T>(defocus);
    value.chi[1] = static_cast<T>(spherical);
    value.chi[2] = static_cast<T>(pi * wavelength * even);
    value.chi[3] = static_cast<T>(2 * pi * wavelength * parameters[Astigmatism] * odd);
    return value;
  }
};

/// Sums over the aperture, added in the order that the reduction of the space fixes.
struct ApertureSums {
  double value[8] = {}; ///< A A, A g, A edge, g edge, and A Im(v) dchi for four parameters

  KOKKOS_FUNCTION ApertureSums& operator+=(const ApertureSums& other) {
    for (int i = 0; i < 8; ++i)
      value[i] += other.value[i];
    return *this;
  }
};

template <class T>
struct FillAperture {
  Aperture<T> aperture;
  const T* parameters;
  Kokkos::complex<T>* wave;

  KOKKOS_FUNCTION void operator()(std::int64_t i, double& energy) const {
    const auto value = aperture(i, parameters);
    wave[i] = Kokkos::complex<T>(value.amplitude * value.cosine, value.amplitude * value.sine);
    energy += double(value.amplitude) * value.amplitude;
  }
};

/// Copies the window of m x m pixels around the origin of a periodic n x n array, or puts it there.
template <class T>
struct ProbeWindow {
  const Kokkos::complex<T>* from;
  Kokkos::complex<T>* to;
  const double* energy;
  int n, m;

  KOKKOS_FUNCTION int wrapped(int r) const { return (r - m / 2 + n) % n; }

  KOKKOS_FUNCTION T scale() const { return static_cast<T>(1 / (n * Kokkos::sqrt(*energy))); }
};
template <class T>
struct CropProbe : ProbeWindow<T> {
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int row = this->wrapped(static_cast<int>(i / this->m)),
              column = this->wrapped(static_cast<int>(i % this->m));
    this->to[i] = this->scale() * this->from[std::int64_t(row) * this->n + column];
  }
};
template <class T>
struct EmbedProbe : ProbeWindow<T> {
  KOKKOS_FUNCTION int within(int r) const { return (r + this->m / 2) % this->n; }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int row = within(static_cast<int>(i / this->n)), column = within(static_cast<int>(i % this->n));
    const bool inside = row < this->m && column < this->m;
    this->to[i] = inside ? this->from[std::int64_t(row) * this->m + column] : Kokkos::complex<T>(0);
  }
};

/// Sums of the gradient of the loss with respect to the wave in the aperture.
template <class T>
struct ApertureGradient {
  Aperture<T> aperture;
  const T* parameters;
  const Kokkos::complex<T>* gradient; ///< unnormalised DFT of the embedded gradient

  KOKKOS_FUNCTION void operator()(std::int64_t i, ApertureSums& sums) const {
    const auto value = aperture(i, parameters);
    const double g = double(gradient[i].real()) * value.cosine + double(gradient[i].imag()) * value.sine;
    const double turned = double(gradient[i].imag()) * value.cosine - double(gradient[i].real()) * value.sine;
    sums.value[0] += double(value.amplitude) * value.amplitude;
    sums.value[1] += value.amplitude * g;
    sums.value[2] += double(value.amplitude) * value.edge;
    sums.value[3] += g * value.edge;
    for (int c = 0; c < 4; ++c)
      sums.value[4 + c] += value.amplitude * turned * value.chi[c];
  }
};

template <class T>
struct FinishProbeGradient {
  const ApertureSums* sums;
  const T* parameters;
  T* gradient;
  int n;

  KOKKOS_FUNCTION void operator()(int) const {
    const double* s = sums->value;
    const double norm = n * Kokkos::sqrt(s[0]); // n: the DFT was not scaled to be unitary
    for (int c = 0; c < 4; ++c)
      gradient[c] = static_cast<T>(s[4 + c] / norm);
    const T a = parameters[ApertureSmoothness];
    const int sign = (a > 0) - (a < 0);
    gradient[ApertureSmoothness] = static_cast<T>(sign * (s[3] - s[1] * s[2] / s[0]) / norm);
  }
};

} // namespace Impl

/// Probe of a lens with aberrations, normalised to unit energy on the n x n grid and cropped to m x m:
///   chi = pi lambda defocus k^2 + pi/2 lambda^3 Cs k^4 + pi lambda M k^2 cos 2(theta - angle),
///   A = 1 / (1 + exp(-(k_max - k) / (k_max (|smoothness| + 0.01)))),  P = A exp(i chi),
///   p = window of m x m pixels around the origin of the inverse DFT of P, whose 2-norm over n x n is 1.
/// k = fftfreq(n, pixel_size) per axis, theta from the row axis. Pixel (m/2, m/2) is the origin.
///
/// Holds an FFT plan and a workspace of n x n: movable, one call at a time. Calls are asynchronous.
template <class ExecutionSpace, class Real>
class AberratedProbe {
  using Complex = Kokkos::complex<Real>;
  using Memory = typename ExecutionSpace::memory_space;
  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;

public:
  /// @param probe  m <= n; @param detector  n
  /// @throws Error on sizes out of range and optics that are not positive
  AberratedProbe(const ExecutionSpace& space, int probe, int detector, const ProbeOptics& optics)
      : m(probe), n(check(probe, detector, optics)), aperture{optics.wavelength,
                                                              optics.convergence_angle / optics.wavelength,
                                                              optics.cs_to_length,
                                                              1 / (optics.pixel_size * detector), detector},
        wave(Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::AberratedProbe::wave"), n, n),
        energy(Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::AberratedProbe::energy")),
        sums(Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::AberratedProbe::sums")),
        forward(space, {n, n}, 1, {}), backward(space, {n, n}, 1, {.direction = FFTDirection::Backward}) {}

  std::size_t memory_bytes() const {
    return wave.size() * sizeof(Complex) + forward.workspace_bytes() + backward.workspace_bytes();
  }

  /// @param parameters  View of Real [5], see ProbeParameter
  /// @param probe       View of Kokkos::complex<Real> [m, m]; overwritten
  void evaluate(const ExecutionSpace& space, const Array<const Real, Memory>& parameters,
                const Array<Complex, Memory>& probe) const {
    check_arguments("probe", parameters, probe);
    Kokkos::Profiling::ScopedRegion region("Bracewell::AberratedProbe::evaluate");
    Kokkos::parallel_reduce("Bracewell::AberratedProbe::aperture", Range(space, 0, pixels()),
                            Impl::FillAperture<Real>{aperture, parameters.data, wave.data()}, energy);
    backward.execute(space, wave, wave);
    Kokkos::parallel_for("Bracewell::AberratedProbe::crop", Range(space, 0, std::int64_t(m) * m),
                         Impl::CropProbe<Real>{{wave.data(), probe.data, energy.data(), n, m}});
  }

  /// Gradient of a real loss L with respect to the parameters.
  /// @param probe_gradient      View [m, m]: dL/dRe p + i dL/dIm p
  /// @param parameter_gradient  View of Real [5]; overwritten. Zero for a smoothness of exactly zero
  void gradients(const ExecutionSpace& space, const Array<const Real, Memory>& parameters,
                 const Array<const Complex, Memory>& probe_gradient,
                 const Array<Real, Memory>& parameter_gradient) const {
    check_arguments("probe_gradient", parameters, probe_gradient);
    check_arguments("probe_gradient", parameter_gradient, probe_gradient);
    Kokkos::Profiling::ScopedRegion region("Bracewell::AberratedProbe::gradients");
    Kokkos::parallel_for("Bracewell::AberratedProbe::embed", Range(space, 0, pixels()),
                         Impl::EmbedProbe<Real>{{probe_gradient.data, wave.data(), nullptr, n, m}});
    forward.execute(space, wave, wave);
    Kokkos::parallel_reduce("Bracewell::AberratedProbe::aperture_gradient", Range(space, 0, pixels()),
                            Impl::ApertureGradient<Real>{aperture, parameters.data, wave.data()}, sums);
    Kokkos::parallel_for(
        "Bracewell::AberratedProbe::finish", Kokkos::RangePolicy<ExecutionSpace>(space, 0, 1),
        Impl::FinishProbeGradient<Real>{sums.data(), parameters.data, parameter_gradient.data, n});
  }

private:
  static int check(int probe, int detector, const ProbeOptics& optics) {
    const char* name = "AberratedProbe";
    if (detector < 1 || detector > 32768)
      Impl::fail(name, "detector", "a size of 1 to 32768", std::to_string(detector));
    if (probe < 1 || probe > detector)
      Impl::fail(name, "probe", "a size of 1 to " + std::to_string(detector), std::to_string(probe));
    Impl::require_positive(name, "optics.wavelength", optics.wavelength);
    Impl::require_positive(name, "optics.pixel_size", optics.pixel_size);
    Impl::require_positive(name, "optics.convergence_angle", optics.convergence_angle);
    Impl::require_positive(name, "optics.cs_to_length", optics.cs_to_length);
    return detector;
  }

  template <class P, class V>
  void check_arguments(const char* argument, const Array<P, Memory>& parameters,
                       const Array<V, Memory>& window) const {
    if (!parameters || parameters.size() != probe_parameter_count)
      Impl::fail("AberratedProbe", "parameters", "[5]", parameters.shape());
    if (!window || window.rank < 2 || window.size() != std::int64_t(m) * m ||
        window.extents[window.rank - 1] != m)
      Impl::fail("AberratedProbe", argument, "[" + std::to_string(m) + ", " + std::to_string(m) + "]",
                 window.shape());
  }

  std::int64_t pixels() const { return std::int64_t(n) * n; }

  int m, n;
  Impl::Aperture<Real> aperture;
  Kokkos::View<Complex**, Kokkos::LayoutRight, Memory> wave;
  Kokkos::View<double, Memory> energy;
  Kokkos::View<Impl::ApertureSums, Memory> sums;
  FFT<ExecutionSpace, 2, Complex, Complex> forward, backward;
};

} // namespace Bracewell

template <>
struct Kokkos::reduction_identity<Bracewell::Impl::ApertureSums> {
  KOKKOS_FORCEINLINE_FUNCTION static Bracewell::Impl::ApertureSums sum() { return {}; }
};
