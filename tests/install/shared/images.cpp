#include <bracewell/fft/plan.hpp>
#include <bracewell/project/project.hpp>

#include <cstdlib>

namespace {

/// The library may be the first in its process that uses Kokkos, or one of several.
void initialise() {
  if (Kokkos::is_initialized() || Kokkos::is_finalized())
    return;
  Kokkos::initialize();
  std::atexit([] {
    if (Kokkos::is_initialized())
      Kokkos::finalize();
  });
}

} // namespace

/// The sum of the image of a point, which is 1.
extern "C" float image_of_a_point() {
  initialise();
  using Space = Kokkos::DefaultExecutionSpace;
  using Complex = Kokkos::complex<float>;
  const Space space;
  const Kokkos::View<Complex****, Kokkos::LayoutRight> point("point", 1, 8, 8, 5),
      projection("projection", 1, 1, 8, 5);
  const Kokkos::View<float****, Kokkos::LayoutRight> matrices("matrices", 1, 1, 3, 3),
      image("image", 1, 1, 8, 8);
  const auto identity = Kokkos::create_mirror_view(matrices);
  for (int axis = 0; axis < 3; ++axis)
    identity(0, 0, axis, axis) = 1;
  Kokkos::deep_copy(matrices, identity);
  Kokkos::deep_copy(point, 1);
  Bracewell::project(space, point, {.matrices = matrices}, projection);
  Bracewell::FFT<Space, 2, Complex, float>(space, {8, 8}).execute(space, projection, image);
  const auto values = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), image);
  float sum = 0;
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 8; ++x)
      sum += values(0, 0, y, x);
  return sum / 64; // of an inverse transform that is not scaled
}
