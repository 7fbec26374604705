// SPDX-License-Identifier: MIT
// A small kernel on the default execution space: the first thing that must compile for every backend.

#include <Kokkos_Core.hpp>

namespace {
struct Scale {
  Kokkos::View<double*> values;
  double factor;
  KOKKOS_FUNCTION void operator()(int i) const { values(i) *= factor; }
};
} // namespace

void scale(const Kokkos::DefaultExecutionSpace& space, const Kokkos::View<double*>& values, double factor) {
  Kokkos::parallel_for("scale", Kokkos::RangePolicy(space, 0, values.extent_int(0)), Scale{values, factor});
}
