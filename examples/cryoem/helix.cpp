// SPDX-License-Identifier: MIT
#include "cryoem/helix.hpp"

#include <algorithm>
#include <cmath>

namespace Bracewell::Examples {
namespace {

struct Products {
  double cross = 0, own = 0, moved = 0;
  KOKKOS_FUNCTION Products& operator+=(const Products& other) {
    cross += other.cross;
    own += other.own;
    moved += other.moved;
    return *this;
  }
};

/// A row of the map, and what lies where its motion takes it.
struct CompareMoved {
  Map map;
  double cosine, sine, rise, radius;
  int first; ///< plane

  KOKKOS_FUNCTION void operator()(std::int64_t row, Products& sum) const {
    const int n = static_cast<int>(map.extent(1)), centre = n / 2;
    const int z = first + static_cast<int>(row / n), y = static_cast<int>(row % n);
    for (int x = 0; x < n; ++x) {
      const double dx = x - centre, dy = y - centre;
      if (dx * dx + dy * dy > radius * radius)
        continue;
      const double qx = centre + cosine * dx - sine * dy, qy = centre + sine * dx + cosine * dy,
                   qz = z + rise;
      const int x0 = static_cast<int>(qx), y0 = static_cast<int>(qy),
                z0 = static_cast<int>(Kokkos::floor(qz));
      if (z0 < 0 || z0 + 1 >= n || x0 < 0 || x0 + 1 >= n || y0 < 0 || y0 + 1 >= n)
        continue;
      const double fx = qx - x0, fy = qy - y0, fz = qz - z0;
      double moved = 0;
      for (int c = 0; c < 2; ++c)
        for (int b = 0; b < 2; ++b)
          for (int a = 0; a < 2; ++a)
            moved +=
                (a ? fx : 1 - fx) * (b ? fy : 1 - fy) * (c ? fz : 1 - fz) * map(0, z0 + c, y0 + b, x0 + a);
      const double own = map(0, z, y, x);
      sum.cross += own * moved;
      sum.own += own * own;
      sum.moved += moved * moved;
    }
  }
};

} // namespace

double helical_agreement(const Space& space, const Map& map, double rise, double twist) {
  const int n = static_cast<int>(map.extent(1));
  const int first = n / 2 - static_cast<int>(0.15 * n), planes = 2 * static_cast<int>(0.15 * n) + 1;
  double sum = 0;
  for (int step = 1; step <= 3; ++step) {
    const double angle = step * twist * Kokkos::numbers::pi / 180;
    Products products;
    Kokkos::parallel_reduce("Bracewell::examples::helical_agreement",
                            Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                                space, 0, static_cast<std::int64_t>(planes) * n),
                            CompareMoved{map, std::cos(angle), std::sin(angle), step * rise, 0.45 * n, first},
                            products);
    const double norm = std::sqrt(products.own) * std::sqrt(products.moved);
    sum += norm > 0 ? products.cross / norm : 0;
  }
  return sum / 3;
}

Helix search_helix(const Space& space, const Map& map, Helix helix) {
  constexpr int steps = 5, rounds = 4; // on either side
  const Helix given = helix;
  double rise_step = helix.rise_range / steps, twist_step = helix.twist_range / steps;
  for (int round = 0; round < rounds; ++round) {
    const Helix centre = helix;
    double best = -2;
    for (int i = -steps; i <= steps; ++i)
      for (int j = -steps; j <= steps; ++j) {
        const double rise = std::clamp(centre.rise + i * rise_step, given.rise - given.rise_range,
                                       given.rise + given.rise_range);
        const double twist = std::clamp(centre.twist + j * twist_step, given.twist - given.twist_range,
                                        given.twist + given.twist_range);
        if (rise <= 0)
          continue;
        if (const double agreement = helical_agreement(space, map, rise, twist); agreement > best) {
          best = agreement;
          helix.rise = rise;
          helix.twist = twist;
        }
      }
    rise_step *= 0.3;
    twist_step *= 0.3;
  }
  return helix;
}

} // namespace Bracewell::Examples
