// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/reconstruct/shells.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <span>

namespace Bracewell {

/// Correlation of two spectra in every shell of the full spectrum,
///   sum Re(F1 conj F2) / sqrt(sum |F1|^2 sum |F2|^2)
/// (Harauz & van Heel, Optik 73 (1986) 146); of images it is the Fourier ring correlation. Shell s holds
/// s - 1/2 <= |k| < s + 1/2, |k| in periods per box width; shells without signal give 0.
/// @param first, second  complex [B, (D,) H, W/2+1]
/// @param correlation    double [B, S], S at will (W/2+1 up to Nyquist); overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class First, class Second, class Correlation>
void fourier_shell_correlation(const ExecutionSpace& space, const First& first, const Second& second,
                               const Correlation& correlation);

/// Resolution at which a correlation curve first falls below a threshold, interpolated linearly between
/// shells. A curve that never does has the resolution of the last shell, and a curve that begins below has infinity.
/// @param correlation  of shells 0 ... S-1, as fourier_shell_correlation gives it (on the host)
/// @param threshold    for instance 0.143 (half maps; Rosenthal & Henderson 2003) or 0.5
/// @param width        box width in pixels
/// @param pixel_size   in Angstrom
/// @returns Angstrom
/// @throws Error on fewer than two shells, a threshold that is not finite, and a width or pixel size that is
///         not positive
inline double resolution(std::span<const double> correlation, double threshold, std::int64_t width,
                         double pixel_size);

namespace Impl {

template <class T>
struct CorrelationOfShell {
  using Sum = Sums<3>;
  static constexpr int outputs = 1;
  const Kokkos::complex<T>* first;
  const Kokkos::complex<T>* second;

  KOKKOS_FUNCTION void add(std::int64_t index, int multiplicity, Sum& sum) const {
    const double a = first[index].real(), b = first[index].imag();
    const double c = second[index].real(), d = second[index].imag();
    sum.values[0] += multiplicity * (a * c + b * d);
    sum.values[1] += multiplicity * (a * a + b * b);
    sum.values[2] += multiplicity * (c * c + d * d);
  }
  KOKKOS_FUNCTION double result(const Sum& sum) const {
    const double norm = Kokkos::sqrt(sum.values[1]) * Kokkos::sqrt(sum.values[2]);
    return norm > 0 ? sum.values[0] / norm : 0;
  }
};

} // namespace Impl

template <class ExecutionSpace, class First, class Second, class Correlation>
void fourier_shell_correlation(const ExecutionSpace& space, const First& first, const Second& second,
                               const Correlation& correlation) {
  constexpr int Dim = int(Impl::view_of<First>::rank()) - 1;
  using T = Impl::real_of<First>;
  using Spectrum = Array<const Kokkos::complex<T>, typename ExecutionSpace::memory_space>;
  const Spectrum one(first), other(second);
  const Array<double, typename ExecutionSpace::memory_space> out(correlation);
  constexpr Impl::Arguments arguments{"fourier_shell_correlation"};
  const auto box = Impl::spectrum_box<Dim>(arguments, "first", one);
  arguments.same_spectrum("second", other, one);
  arguments.disjoint({{"correlation", out}}, {{"first", one}, {"second", other}});
  const Kokkos::Profiling::ScopedRegion region("Bracewell::fourier_shell_correlation");
  Impl::reduce_shells<Dim>(space, arguments, "correlation", "Bracewell::fourier_shell_correlation::sum", box,
                           out, Impl::CorrelationOfShell<T>{one.data, other.data});
}

inline double resolution(std::span<const double> correlation, double threshold, std::int64_t width,
                         double pixel_size) {
  constexpr Impl::Arguments arguments{"resolution"};
  arguments.require(correlation.size() >= 2, "correlation", "at least two shells",
                    [&] { return std::to_string(correlation.size()); });
  arguments.finite("threshold", threshold);
  arguments.positive("width", width);
  arguments.positive("pixel_size", pixel_size);
  std::size_t s = 1;
  while (s < correlation.size() && correlation[s] >= threshold)
    ++s;
  double shell = static_cast<double>(s) - 1;
  if (s < correlation.size() && correlation[s - 1] > threshold)
    shell += (correlation[s - 1] - threshold) / (correlation[s - 1] - correlation[s]);
  return static_cast<double>(width) * pixel_size / shell;
}

} // namespace Bracewell
