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
  Bracewell::Backprojection<T, Space::memory_space> target;
  Bracewell::BackprojectGradients<T, Space::memory_space> gradients;
};

template <class Kernel, class T>
void every_operator(const Arguments<T>& a) {
  using namespace Bracewell;
  const auto forward = [&](const auto& reconstruction, const auto& projections) {
    project<Kernel>(a.space, reconstruction, a.poses, projections);
    project_gradients<Kernel>(a.space, reconstruction, a.poses, projections,
                              {.reconstruction = reconstruction});
  };
  const auto backward = [&](const auto& projections) {
    backproject<Kernel>(a.space, projections, a.poses, a.target);
    backproject_gradients<Kernel>(a.space, projections, a.poses, a.gradients);
  };
  forward(a.image, a.images);
  forward(a.volume, a.images);
  forward(a.volume, a.volumes);
  backward(a.images); // into images and volumes: the rank of the target is known at run time only
  backward(a.volumes);
}
