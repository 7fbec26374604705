// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/aperture.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

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
      : m_(probe),
        n_(check(probe, detector, optics)), aperture_{optics.wavelength,
                                                      optics.convergence_angle / optics.wavelength,
                                                      optics.cs_to_length, 1 / (optics.pixel_size * detector),
                                                      detector},
        wave_(Impl::device_view<Complex**>(space, "Bracewell::AberratedProbe::wave", n_, n_)),
        energy_(Impl::device_view<double>(space, "Bracewell::AberratedProbe::energy")),
        sums_(Impl::device_view<Impl::ApertureSums>(space, "Bracewell::AberratedProbe::sums")),
        forward_(space, {n_, n_}, 1, {}),
        backward_(space, {n_, n_}, 1, {.direction = FFTDirection::Backward}) {}

  /// Bytes that the object holds.
  std::size_t memory_bytes() const {
    return Impl::bytes_of(wave_, energy_, sums_) + forward_.memory_bytes() + backward_.memory_bytes();
  }

  /// What memory_bytes() of an object of these arguments would be.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, int probe, int detector,
                                  const ProbeOptics& optics) {
    using Transform = FFT<ExecutionSpace, 2, Complex, Complex>;
    const int n = check(probe, detector, optics);
    return sizeof(Complex) * static_cast<std::size_t>(n) * static_cast<std::size_t>(n) + sizeof(double) +
           sizeof(Impl::ApertureSums) + Transform::bytes_needed(space, {n, n}) +
           Transform::bytes_needed(space, {n, n}, 1, {.direction = FFTDirection::Backward});
  }

  /// @param parameters  View of Real [5], see ProbeParameter
  /// @param probe       View of Kokkos::complex<Real> [m, m]; overwritten
  /// @throws Error on shapes that do not fit, and a probe that shares memory with the parameters
  void evaluate(const ExecutionSpace& space, const Array<const Real, Memory>& parameters,
                const Array<Complex, Memory>& probe) const {
    const Impl::Arguments check{"AberratedProbe::evaluate"};
    check.shape("parameters", parameters, {probe_parameter_count});
    check_window(check, "probe", probe);
    check.disjoint({{"probe", probe}}, {{"parameters", parameters}});
    Kokkos::Profiling::ScopedRegion region("Bracewell::AberratedProbe::evaluate");
    Kokkos::parallel_reduce("Bracewell::AberratedProbe::aperture", Range(space, 0, pixels()),
                            Impl::FillAperture<Real>{aperture_, parameters.data, wave_.data()}, energy_);
    backward_.execute(space, wave_, wave_);
    Impl::launch_kernel("Bracewell::AberratedProbe::crop", Range(space, 0, std::int64_t(m_) * m_),
                        Impl::CropProbe<Real>{{wave_.data(), probe.data, energy_.data(), n_, m_}});
  }

  /// Gradient of a real loss L with respect to the parameters.
  /// @param probe_gradient      View [m, m]: dL/dRe p + i dL/dIm p
  /// @param parameter_gradient  View of Real [5]; overwritten. Zero for a smoothness of exactly zero
  /// @throws Error on shapes that do not fit, and an output that shares memory with an argument
  void gradients(const ExecutionSpace& space, const Array<const Real, Memory>& parameters,
                 const Array<const Complex, Memory>& probe_gradient,
                 const Array<Real, Memory>& parameter_gradient) const {
    const Impl::Arguments check{"AberratedProbe::gradients"};
    check.shape("parameters", parameters, {probe_parameter_count});
    check_window(check, "probe_gradient", probe_gradient);
    check.shape("parameter_gradient", parameter_gradient, {probe_parameter_count});
    check.disjoint({{"parameter_gradient", parameter_gradient}},
                   {{"parameters", parameters}, {"probe_gradient", probe_gradient}});
    Kokkos::Profiling::ScopedRegion region("Bracewell::AberratedProbe::gradients");
    Impl::launch_kernel("Bracewell::AberratedProbe::embed", Range(space, 0, pixels()),
                        Impl::EmbedProbe<Real>{{probe_gradient.data, wave_.data(), nullptr, n_, m_}});
    forward_.execute(space, wave_, wave_);
    Kokkos::parallel_reduce("Bracewell::AberratedProbe::aperture_gradient", Range(space, 0, pixels()),
                            Impl::ApertureGradient<Real>{aperture_, parameters.data, wave_.data()}, sums_);
    Impl::launch_kernel(
        "Bracewell::AberratedProbe::finish", Kokkos::RangePolicy<ExecutionSpace>(space, 0, 1),
        Impl::FinishProbeGradient<Real>{sums_.data(), parameters.data, parameter_gradient.data, n_});
  }

private:
  static int check(int probe, int detector, const ProbeOptics& optics) {
    const Impl::Arguments check{"AberratedProbe"};
    check.within("detector", detector, 1, 32768);
    check.within("probe", probe, 1, detector);
    Impl::check_optics(check, optics);
    return detector;
  }

  template <class Value>
  void check_window(const Impl::Arguments& check, const char* argument,
                    const Array<Value, Memory>& window) const {
    if (window.rank < 2 || window.size() != std::int64_t(m_) * m_ || window.extents[window.rank - 1] != m_)
      check.refuse(argument, "[%d, %d], found %s", m_, m_, window.shape_text().characters);
  }

  std::int64_t pixels() const { return std::int64_t(n_) * n_; }

  int m_, n_;
  Impl::Aperture<Real> aperture_;
  Kokkos::View<Complex**, Kokkos::LayoutRight, Memory> wave_;
  Kokkos::View<double, Memory> energy_;
  Kokkos::View<Impl::ApertureSums, Memory> sums_;
  FFT<ExecutionSpace, 2, Complex, Complex> forward_, backward_;
};

} // namespace Bracewell
