// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/quaternion.hpp>

#include <cmath>
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

} // namespace Bracewell
