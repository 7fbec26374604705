// No poses, or no batches: no work and no error. What is added to stays as it was.

#include "../deep_copy.hpp"

#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace Bracewell;

namespace {

using Space = Kokkos::DefaultExecutionSpace;
using Complex = Kokkos::complex<double>;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;

template <class Values>
bool holds(const Values& view, double expected) {
  const auto host = Test::on_host(view);
  bool same = true;
  for (std::size_t i = 0; i < host.size(); ++i)
    same = same && Kokkos::real(host.data()[i]) == expected;
  return same;
}

/// Volumes [volumes, 6, 7, 5], images and all that belongs to poses [batches, poses, ...].
void check(std::size_t volumes, std::size_t batches, std::size_t poses) {
  CAPTURE(volumes, batches, poses);
  const Space space;
  const View<Complex****> reconstruction("reconstruction", volumes, 6, 7, 5),
      gradient("gradient", volumes, 6, 7, 5), images("images", batches, poses, 5, 4),
      output("output", batches, poses, 5, 4);
  const View<double****> weight("weight", volumes, 6, 7, 5), weights("weights", batches, poses, 5, 4),
      weights_gradient("weights", batches, poses, 5, 4), matrices("matrices", batches, poses, 3, 3),
      matrix_gradient("matrices", batches, poses, 3, 3), filters("filters", batches, poses, 5, 4);
  const View<double***> shifts("shifts", batches, poses, 2), shift_gradient("shifts", batches, poses, 2);
  const Poses<double, Space::memory_space> all{.matrices = matrices, .shifts = shifts, .filters = filters};
  const ProjectionOptions same{.oversampling = 1};
  Test::deep_copy(gradient, Complex(7));
  Test::deep_copy(weight, 7);
  Test::deep_copy(matrix_gradient, 7);
  Test::deep_copy(shift_gradient, 7);

  CHECK_NOTHROW(project<Linear>(space, reconstruction, all, output, same));
  CHECK_NOTHROW(project_gradients<Linear>(space, reconstruction, all, images,
                                          {.projections = output,
                                           .reconstruction = gradient,
                                           .matrices = matrix_gradient,
                                           .shifts = shift_gradient},
                                          same));
  space.fence();
  CHECK(holds(gradient, 0));
  CHECK(holds(matrix_gradient, 0));
  CHECK(holds(shift_gradient, 0));
  Test::deep_copy(gradient, Complex(7));
  for (const Strategy strategy :
       {Strategy::Automatic, Strategy::Atomic, Strategy::Owned, Strategy::Duplicated})
    CHECK_NOTHROW(backproject<Linear>(space, images, all,
                                      {.data = gradient, .weight = weight, .weights = weights},
                                      {.oversampling = 1, .strategy = strategy}));
  CHECK_NOTHROW(backproject_gradients<Linear>(space, images, all,
                                              {.data = reconstruction,
                                               .weight = weight,
                                               .weights = weights,
                                               .projections = output,
                                               .projection_weights = weights_gradient,
                                               .matrices = matrix_gradient,
                                               .shifts = shift_gradient},
                                              same));
  space.fence();
  CHECK(holds(gradient, 7));
  CHECK(holds(weight, 7));
}

} // namespace

TEST_CASE("no poses") {
  check(1, 2, 0);
  check(2, 2, 0);
}

TEST_CASE("no batches") {
  check(1, 0, 3);
  check(0, 0, 3);
}

TEST_CASE("one pose for none of the projections") {
  const View<Complex***> image("image", 1, 8, 5);
  const View<Complex****> images("images", 1, 0, 8, 5);
  const View<double****> matrices("matrices", 1, 1, 2, 2);
  CHECK_NOTHROW(project(Space(), image, {.matrices = matrices}, images));
  CHECK_NOTHROW(backproject(Space(), images, {.matrices = matrices}, {.data = image}));
}
