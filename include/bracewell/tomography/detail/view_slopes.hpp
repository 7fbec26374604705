// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

enum class Coordinate { None, X, Y };

/// Images times X = column - floor(n/2), Y = row - floor(n/2), or 1.
template <class T>
struct TimesCoordinate {
  const T* images;
  T* result;
  int n;
  Coordinate coordinate;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int pixel = static_cast<int>(i % (std::int64_t(n) * n));
    const int x = pixel % n - n / 2, y = pixel / n - n / 2;
    result[i] = images[i] * T(coordinate == Coordinate::None ? 1 : (coordinate == Coordinate::X ? x : y));
  }
};

/// Half spectra of rows, or cosine times those of Y less sine times those of X, to those of minus their derivative, over
/// the width, in place of the first.
template <class T>
struct DifferentiateRows {
  Kokkos::complex<T>* spectra;                ///< [slices, views, frequencies]
  const Kokkos::complex<T>*of_y, *directions; ///< likewise, or null; [views]
  const T* filter;                            ///< [frequencies]
  std::int64_t views;
  int width;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int frequencies = width / 2 + 1, k = static_cast<int>(i % frequencies);
    Kokkos::complex<T> value = spectra[i];
    if (of_y) {
      const Kokkos::complex<T> direction = directions[i / frequencies % views];
      value = direction.real() * of_y[i] - direction.imag() * value;
    }
    const T frequency = filter[k] * T(-2 * Kokkos::numbers::pi * k / (double(width) * width));
    spectra[i] = Kokkos::complex<T>(-frequency * value.imag(), frequency * value.real()); // times i frequency
  }
};

/// A team sums a view.
template <class ExecutionSpace, class T>
struct SumViews {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  const T *a, *b; ///< [slices, views, width]
  double* result;
  std::int64_t slices, views;
  int width;

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const std::int64_t view = member.league_rank();
    double sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, static_cast<int>(slices * width)),
        [&](int i, double& own) {
          const std::int64_t at = (i / width * views + view) * width + i % width;
          own += double(a[at]) * b[at];
        },
        sum);
    Kokkos::single(Kokkos::PerTeam(member), [&] { result[view] = sum; });
  }
};

} // namespace Bracewell::Impl
