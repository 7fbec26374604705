// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/quaternion.hpp>
#include <bracewell/impl/checks.hpp>

#include <cmath>
#include <cstdint>
#include <random>

namespace Bracewell {

/// A rotation drawn from the uniform (Haar) distribution, by three numbers of a standard engine (Shoemake,
/// Graphics Gems III (1992) 124).
template <class T, class Engine>
Quaternion<T> random_rotation(Engine& engine) {
  const auto uniform = [&] { return std::generate_canonical<double, 53>(engine); };
  const double split = uniform();
  const double first = 2 * Kokkos::numbers::pi * uniform();
  const double second = 2 * Kokkos::numbers::pi * uniform();
  const double inner = std::sqrt(1 - split), outer = std::sqrt(split);
  return {static_cast<T>(outer * std::cos(second)), static_cast<T>(inner * std::sin(first)),
          static_cast<T>(inner * std::cos(first)), static_cast<T>(outer * std::sin(second))};
}

/// Rotation `index` of `count` that cover all rotations evenly: a super-Fibonacci spiral (Alexa, Proc. CVPR (2022)
/// 8291). Rotations that follow each other are not neighbours.
template <class T>
KOKKOS_FUNCTION Quaternion<T> rotation_of_grid(std::int64_t index, std::int64_t count) {
  constexpr double first = Kokkos::numbers::sqrt2, second = 1.533751168755204288118; // x^2 = 2; x^4 = x + 4
  const double place = double(index) + 0.5, split = place / double(count);
  const double inner = Kokkos::sqrt(split), outer = Kokkos::sqrt(1 - split);
  const double a = 2 * Kokkos::numbers::pi * (place / first - Kokkos::floor(place / first)),
               b = 2 * Kokkos::numbers::pi * (place / second - Kokkos::floor(place / second));
  return {static_cast<T>(inner * Kokkos::sin(a)), static_cast<T>(inner * Kokkos::cos(a)),
          static_cast<T>(outer * Kokkos::sin(b)), static_cast<T>(outer * Kokkos::cos(b))};
}

/// Number of rotations of a grid of which one lies within `degrees` of any rotation, and within about half of `degrees` of
/// half of all rotations. For 13.8 degrees it is 4,630. The constant was measured
/// (tests/geometry/rotation_grid.cpp).
/// @throws Error on degrees out of 0.1 to 50
inline std::int64_t rotation_grid_size(double degrees) {
  Impl::Arguments{"rotation_grid_size"}.within("degrees", degrees, 0.1, 50.);
  return static_cast<std::int64_t>(std::ceil(std::pow(230 / degrees, 3)));
}

} // namespace Bracewell
