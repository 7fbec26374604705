#include <bracewell/gridding/nonuniform_fft.hpp>
#include <bracewell/project/project.hpp>

#include <cmath>
#include <cstdio>

#ifndef BRACEWELL_COMPILED
#error "Bracewell::Compiled was linked, and its headers do not know of it"
#endif

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  using Space = Kokkos::DefaultExecutionSpace;
  const Space space;
  // One sample of frequency 0 is an image of ones.
  using Complex = Kokkos::complex<float>;
  const Kokkos::View<double**, Kokkos::LayoutRight> points("points", 1, 2);
  const Kokkos::View<Complex**, Kokkos::LayoutRight> samples("samples", 1, 1);
  const Kokkos::View<Complex***, Kokkos::LayoutRight> images("images", 1, 12, 10);
  Kokkos::deep_copy(samples, 1);
  Bracewell::NonuniformFFT<Space, 2, float>(space, points, {12, 10}).adjoint(space, samples, images);
  const auto image = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), images);
  // The spectrum of a point is one everywhere, and so is that of its projection.
  const Kokkos::View<Complex****, Kokkos::LayoutRight> point("point", 1, 8, 8, 5),
      projections("p", 1, 1, 8, 5);
  const Kokkos::View<float****, Kokkos::LayoutRight> matrices("matrices", 1, 1, 3, 3);
  const auto identity = Kokkos::create_mirror_view(matrices);
  for (int axis = 0; axis < 3; ++axis)
    identity(0, 0, axis, axis) = 1;
  Kokkos::deep_copy(matrices, identity);
  Kokkos::deep_copy(point, 1);
  Bracewell::project(space, point, {.matrices = matrices}, projections);
  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), projections);
  std::printf("%g = 1, %g = 1\n", image(0, 3, 4).real(), result(0, 0, 3, 2).real());
  return std::abs(image(0, 3, 4).real() - 1) < 1e-4f && result(0, 0, 3, 2) == 1.0f ? 0 : 1;
}
