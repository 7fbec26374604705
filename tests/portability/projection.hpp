// Every projection operator of a kernel and precision, on the default execution space.
#pragma once

#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

template <class T>
struct Arguments {
  using Space = Kokkos::DefaultExecutionSpace;
  template <class DataType>
  using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;
  using Complex = Kokkos::complex<T>;

  Space space;
  View<Complex***> image;
  View<Complex****> volume, images;
  View<Bracewell::HalfComplex****> half_volume;
  View<Complex*****> volumes;
  Bracewell::Poses<T, Space::memory_space> poses;
  Bracewell::Backprojection<T, Space::memory_space, 2> image_target;
  Bracewell::Backprojection<T, Space::memory_space, 3> target;
  Bracewell::BackprojectGradients<T, Space::memory_space, 2> image_gradients;
  Bracewell::BackprojectGradients<T, Space::memory_space, 3> gradients;
};

template <class Kernel, class T>
void every_operator(const Arguments<T>& a) {
  using namespace Bracewell;
  const auto forward = [&](const auto& reconstruction, const auto& projections) {
    project<Kernel>(a.space, reconstruction, a.poses, projections);
    project_gradients<Kernel>(a.space, reconstruction, a.poses, projections,
                              {.reconstruction = reconstruction});
  };
  const auto backward = [&](const auto& projections, const auto& target, const auto& gradients) {
    backproject<Kernel>(a.space, projections, a.poses, target);
    backproject_gradients<Kernel>(a.space, projections, a.poses, gradients);
  };
  forward(a.image, a.images);
  forward(a.volume, a.images);
  forward(a.volume, a.volumes);
  backward(a.images, a.image_target, a.image_gradients);
  backward(a.images, a.target, a.gradients);
  backward(a.volumes, a.target, a.gradients);
}
