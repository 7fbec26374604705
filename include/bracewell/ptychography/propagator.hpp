// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/ptychography/detail/general/waves.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <optional>

namespace Bracewell {

/// From exit waves to the detector, in place on waves [..., n, n], and the adjoint (not the inverse).
/// Far field: Psi(k) = sum_r psi(r) exp(-2 pi i k r / n), zero frequency at [0, 0].
/// Near field (with a Fresnel number F of the window): Psi = IDFT(exp(-i pi |k|^2 / F) DFT(psi)), which keeps
/// the energy; F = window^2 / (wavelength distance), negative for distances upstream. PtychographyLoss moves the
/// waves of probes that stand between pixels back by their fraction f there, exp(2 pi i k.f / n): beam and
/// detector stand still while the object moves. A far field only has other phases.
/// Movable; one call at a time where the FFT library needs a workspace (GPUs).
template <class ExecutionSpace, class Real>
class Propagator {
  using Complex = Kokkos::complex<Real>;
  using Memory = typename ExecutionSpace::memory_space;

public:
  /// @param side   pixels per side; @param count  number of waves, of which there may be none
  /// @throws Error on sizes out of range, and a Fresnel number that is zero or not finite
  Propagator(const ExecutionSpace& space, int side, std::int64_t count,
             std::optional<double> fresnel_number = {})
      : n_(check(side, count, fresnel_number)), size_(count * side * side),
        inverse_fresnel_(fresnel_number ? 1 / *fresnel_number : 0),
        forward_(space, {side, side}, std::max<std::int64_t>(count, 1), {}),
        backward_(space, {side, side}, std::max<std::int64_t>(count, 1),
                  {.direction = FFTDirection::Backward}) {}

  /// Bytes that the plans hold.
  std::size_t memory_bytes() const { return forward_.memory_bytes() + backward_.memory_bytes(); }

  /// What memory_bytes() of a propagator of these arguments would be.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, int side, std::int64_t count,
                                  std::optional<double> fresnel_number = {}) {
    using Transform = FFT<ExecutionSpace, 2, Complex, Complex>;
    check(side, count, fresnel_number);
    const std::int64_t batch = std::max<std::int64_t>(count, 1);
    return Transform::bytes_needed(space, {side, side}, batch) +
           Transform::bytes_needed(space, {side, side}, batch, {.direction = FFTDirection::Backward});
  }

  /// @param waves  View of Kokkos::complex<Real> [..., n, n], as many as the plan was made for
  /// @throws Error on shapes that do not fit
  template <class WavesView>
  void propagate(const ExecutionSpace& space, const WavesView& waves) const {
    check_waves("Propagator::propagate", waves);
    if (size_ == 0)
      return;
    Kokkos::Profiling::ScopedRegion region("Bracewell::Propagator::propagate");
    forward_.execute(space, waves, waves);
    if (inverse_fresnel_ != 0)
      transfer(space, waves, false);
  }

  /// The adjoint of propagate, on the same arguments.
  template <class WavesView>
  void adjoint(const ExecutionSpace& space, const WavesView& waves) const {
    check_waves("Propagator::adjoint", waves);
    if (size_ == 0)
      return;
    Kokkos::Profiling::ScopedRegion region("Bracewell::Propagator::adjoint");
    if (inverse_fresnel_ != 0) {
      forward_.execute(space, waves, waves);
      transfer(space, waves, true);
    } else {
      backward_.execute(space, waves, waves);
    }
  }

private:
  static int check(int side, std::int64_t count, const std::optional<double>& fresnel_number) {
    const Impl::Arguments check{"Propagator"};
    check.within("side", side, 1, 32768);
    check.within<std::int64_t>("count", count, 0, std::int64_t(1) << 31);
    if (fresnel_number && !(*fresnel_number != 0 && std::abs(*fresnel_number) < 1e30))
      check.refuse("fresnel_number", "a finite number other than zero, found %.6g", *fresnel_number);
    return side;
  }

  void check_waves(const char* function, const Array<Complex, Memory>& waves) const {
    if (waves.rank < 2 || waves.size() != size_ || waves.extents[waves.rank - 1] != n_ ||
        waves.extents[waves.rank - 2] != n_)
      Impl::Arguments{function}.refuse("waves", "%lld waves [..., %d, %d], found %s",
                                       static_cast<long long>(size_ / n_ / n_), n_, n_,
                                       waves.shape_text().characters);
  }

  template <class WavesView>
  void transfer(const ExecutionSpace& space, const WavesView& waves, bool conjugate) const {
    Impl::for_waves(
        space, "Bracewell::Propagator::transfer", size_ / n_ / n_, 1, n_,
        Impl::FresnelTransfer<Real>{waves.data(), n_, inverse_fresnel_, Impl::ProbeShifts{}, conjugate});
    backward_.execute(space, waves, waves);
  }

  int n_;
  std::int64_t size_;
  double inverse_fresnel_;
  FFT<ExecutionSpace, 2, Complex, Complex> forward_, backward_;
};

} // namespace Bracewell
