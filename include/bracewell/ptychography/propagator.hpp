// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/turns.hpp>

#include <optional>

namespace Bracewell {

namespace Impl {

/// waves *= H / n^2 or conj(H) / n^2 with H = exp(-i pi |k|^2 / F), in the order of the DFT.
template <class T>
struct FresnelTransfer {
  Kokkos::complex<T>* waves;
  int n;
  double inverse_fresnel;
  bool conjugate;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const int column = static_cast<int>(index % n), row = static_cast<int>(index / n % n);
    const double k1 = 2 * row < n ? row : row - n, k2 = 2 * column < n ? column : column - n;
    const double turns = (conjugate ? 0.5 : -0.5) * (k1 * k1 + k2 * k2) * inverse_fresnel;
    const auto phase = unit_phase(turns - Kokkos::floor(turns));
    waves[index] *= Kokkos::complex<T>(T(phase.real() / n / n), T(phase.imag() / n / n));
  }
};

} // namespace Impl

/// From exit waves to the detector, in place on waves [..., n, n], and the adjoint (not the inverse).
/// Far field: Psi(k) = sum_r psi(r) exp(-2 pi i k r / n), zero frequency at [0, 0].
/// Near field (with a Fresnel number F of the window): Psi = IDFT(exp(-i pi |k|^2 / F) DFT(psi)), which keeps
/// the energy; F = window^2 / (wavelength distance), negative for distances upstream.
/// Movable; one call at a time where the FFT library needs a workspace (GPUs).
template <class ExecutionSpace, class Real>
class Propagator {
  using Complex = Kokkos::complex<Real>;

public:
  /// @param side   pixels per side; @param count  number of waves
  /// @throws Error on sizes below 1 and a Fresnel number of zero
  Propagator(const ExecutionSpace& space, int side, std::int64_t count,
             std::optional<double> fresnel_number = {})
      : n(side), size(count * side * side), inverse_fresnel(check(fresnel_number)),
        forward(space, {side, side}, count, {}),
        backward(space, {side, side}, count, {.direction = FFTDirection::Backward}) {}

  std::size_t memory_bytes() const { return forward.workspace_bytes() + backward.workspace_bytes(); }

  template <class WavesView>
  void propagate(const ExecutionSpace& space, const WavesView& waves) const {
    forward.execute(space, waves, waves);
    if (inverse_fresnel != 0)
      transfer(space, waves, false);
  }

  template <class WavesView>
  void adjoint(const ExecutionSpace& space, const WavesView& waves) const {
    if (inverse_fresnel != 0) {
      forward.execute(space, waves, waves);
      transfer(space, waves, true);
    } else {
      backward.execute(space, waves, waves);
    }
  }

private:
  static double check(const std::optional<double>& fresnel_number) {
    if (!fresnel_number)
      return 0;
    if (!(*fresnel_number != 0 && *fresnel_number > -1e30 && *fresnel_number < 1e30))
      Impl::fail("Propagator", "fresnel_number", "a finite number other than zero",
                 std::to_string(*fresnel_number));
    return 1 / *fresnel_number;
  }

  template <class WavesView>
  void transfer(const ExecutionSpace& space, const WavesView& waves, bool conjugate) const {
    Kokkos::parallel_for("Bracewell::Propagator::transfer",
                         Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, size),
                         Impl::FresnelTransfer<Real>{waves.data(), n, inverse_fresnel, conjugate});
    backward.execute(space, waves, waves);
  }

  int n;
  std::int64_t size;
  double inverse_fresnel;
  FFT<ExecutionSpace, 2, Complex, Complex> forward, backward;
};

} // namespace Bracewell
