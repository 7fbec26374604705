#include <bracewell/project/project.hpp>

#include <cstdio>

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  using Spectra = Kokkos::View<Kokkos::complex<float>****, Kokkos::LayoutRight>;
  Spectra point("point", 1, 32, 32, 17);            // [batch, D, H, W/2+1]: a 32^3 box
  Spectra projections("projections", 1, 1, 32, 17); // [batch, pose, h, w/2+1]
  Kokkos::View<float****, Kokkos::LayoutRight> matrices("matrices", 1, 1, 3, 3);
  auto identity = Kokkos::create_mirror_view(matrices);
  for (int axis = 0; axis < 3; ++axis)
    identity(0, 0, axis, axis) = 1;
  Kokkos::deep_copy(matrices, identity);
  Kokkos::deep_copy(point, 1); // the spectrum of a point at the origin
  Bracewell::project(Kokkos::DefaultExecutionSpace(), point, {.matrices = matrices}, projections);
  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), projections);
  std::printf("The projection of a point is a point: %g = 1\n", result(0, 0, 3, 4).real());
  return result(0, 0, 3, 4) == 1.0f ? 0 : 1;
}
