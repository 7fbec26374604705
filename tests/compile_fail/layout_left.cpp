// expect: Bracewell: Views must be LayoutRight (row-major, last axis contiguous).
#include "arguments.hpp"

void wrong(const Kokkos::View<Complex****, Kokkos::LayoutLeft, Space>& columns_first) {
  project(space, columns_first, {.matrices = matrices}, images);
}
