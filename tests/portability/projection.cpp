// Every projection operator with every kernel, on the default execution space.

#include "../project/building_blocks.hpp"

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/expectation.hpp>
#include <bracewell/project/points.hpp>
#include <bracewell/project/project.hpp>
#include <bracewell/project/project_lines.hpp>
#include <bracewell/project/score_poses.hpp>
#include <bracewell/project/template_matching.hpp>

template <class T, class ExecutionSpace = Kokkos::DefaultExecutionSpace>
struct Arguments {
  using Space = ExecutionSpace;
  using Memory = typename Space::memory_space;
  template <class DataType>
  using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;
  using Complex = Kokkos::complex<T>;

  Space space;
  View<Complex***> image;
  View<Complex****> volume, images;
  View<Bracewell::HalfComplex****> half_volume;
  View<Complex*****> volumes;
  Bracewell::Poses<T, Memory> poses;
  Bracewell::Backprojection<T, Memory, 2> image_target;
  Bracewell::Backprojection<T, Memory, 3> target;
  Bracewell::BackprojectGradients<T, Memory, 2> image_gradients;
  Bracewell::BackprojectGradients<T, Memory, 3> gradients;
};

template <class Kernel, class T, class Reconstruction, class Projections>
void forward(const Arguments<T>& a, const Reconstruction& reconstruction, const Projections& projections) {
  Bracewell::project<Kernel>(a.space, reconstruction, a.poses, projections);
  Bracewell::project_gradients<Kernel>(a.space, reconstruction, a.poses, projections,
                                       {.reconstruction = reconstruction});
}

template <class Kernel, class T, class Projections, int D>
void backward(
    const Arguments<T>& a, const Projections& projections,
    const Bracewell::Backprojection<T, typename Arguments<T>::Space::memory_space, D>& target,
    const Bracewell::BackprojectGradients<T, typename Arguments<T>::Space::memory_space, D>& gradients) {
  Bracewell::backproject<Kernel>(a.space, projections, a.poses, target);
  Bracewell::backproject_gradients<Kernel>(a.space, projections, a.poses, gradients);
}

template <class Kernel, class T>
void every_operator(const Arguments<T>& a) {
  forward<Kernel>(a, a.image, a.images);
  forward<Kernel>(a, a.volume, a.images);
  forward<Kernel>(a, a.volume, a.volumes);
  backward<Kernel>(a, a.images, a.image_target, a.image_gradients);
  backward<Kernel>(a, a.images, a.target, a.gradients);
  backward<Kernel>(a, a.volumes, a.target, a.gradients);
}

template void every_operator<Bracewell::Linear>(const Arguments<float>&);
template void every_operator<Bracewell::CatmullRom>(const Arguments<double>&);

// Builds for GPUs have operators of hosts, too. Visitors of their kernels are functions of hosts alone.
void on_host(const Arguments<float, Kokkos::DefaultHostExecutionSpace>& a) {
  Bracewell::backproject<Bracewell::Linear>(a.space, a.images, a.poses, a.target);
}

// Of four taps in float: only what reads a volume asks for both. Others have the taps (Catmull-Rom) or float (Lanczos).
void project_with_splines(const Arguments<float>& a) {
  forward<Bracewell::CubicBSpline>(a, a.volume, a.images);
  forward<Bracewell::CubicBSpline>(a, a.volume, a.volumes);
}

void project_half_precision(const Arguments<float>& a) {
  const auto prepared = Bracewell::prepare<Bracewell::Linear, Bracewell::HalfComplex>(a.space, a.volume);
  Bracewell::project(a.space, prepared, a.poses, a.images);
  Bracewell::project<Bracewell::Linear>(a.space, a.half_volume, a.poses, a.images);
}

template <class Kernel, class Stored, class T>
void score(const Arguments<T>& a, const typename Arguments<T>::template View<T***>& values,
           const typename Arguments<T>::template View<int**>& indices) {
  Bracewell::PoseScoring<typename Arguments<T>::Space, T> scoring(
      a.space, {.images = 1, .shifts = 1, .height = 8, .width = 8, .best = 1});
  scoring.set_images(a.space, {.spectra = a.image, .filters = values});
  scoring.set_shifts(a.space, Kokkos::subview(values, 0, Kokkos::ALL, Kokkos::ALL));
  scoring.score(
      a.space, Bracewell::prepare<Kernel, Stored>(a.space, a.volume), values,
      {.best = Kokkos::subview(values, 0, Kokkos::ALL, Kokkos::ALL), .poses = indices, .shifts = indices});
}

template void score<Bracewell::Linear, Bracewell::HalfComplex>(const Arguments<float>&,
                                                               const Arguments<float>::View<float***>&,
                                                               const Arguments<float>::View<int**>&);
template void score<Bracewell::CatmullRom, Kokkos::complex<double>>(const Arguments<double>&,
                                                                    const Arguments<double>::View<double***>&,
                                                                    const Arguments<double>::View<int**>&);

template <class Kernel, class Stored, class T>
void expect(const Arguments<T>& a, const typename Arguments<T>::template View<T***>& values,
            const typename Arguments<T>::template View<double*>& numbers) {
  using Space = typename Arguments<T>::Space;
  using Memory = typename Space::memory_space;
  Bracewell::Expectation<Space, T> step(a.space, {.images = 1, .shifts = 1, .height = 8, .width = 8});
  const auto plane = Kokkos::subview(values, 0, Kokkos::ALL, Kokkos::ALL);
  step.set_images(a.space, Bracewell::ExpectationImages<T, Memory>{
                               .spectra = a.image, .noise = plane, .filters = values});
  step.set_shifts(a.space, plane);
  step.run(a.space, Bracewell::prepare<Kernel, Stored>(a.space, a.volume),
           Bracewell::ExpectationPoses<T, Memory>{.matrices = values},
           Bracewell::ExpectationResults<T, Memory, 3>{.log_evidence = numbers, .data = a.volume});
}

template void expect<Bracewell::Linear, Bracewell::HalfComplex>(const Arguments<float>&,
                                                                const Arguments<float>::View<float***>&,
                                                                const Arguments<float>::View<double*>&);
template void
expect<Bracewell::CatmullRom, Kokkos::complex<double>>(const Arguments<double>&,
                                                       const Arguments<double>::View<double***>&,
                                                       const Arguments<double>::View<double*>&);

template class Bracewell::TemplateMatching<Kokkos::DefaultExecutionSpace, float>;
template class Bracewell::TemplateMatching<Kokkos::DefaultExecutionSpace, float, 3>;

// Building blocks in kernels of one's own.

template <class T>
struct PointArguments {
  template <class DataType>
  using View = typename Arguments<T>::template View<DataType>;
  View<T***> matrices;
  View<T**> shifts, reals;
  View<Kokkos::complex<T>**> images;
  View<T****> image;
};

template <class Kernel, class T>
void user_operators(const Arguments<T>& a) {
  using Space = typename Arguments<T>::Space;
  const PointArguments<T> views;
  const HalfSpectrum<T, 3> volume(a.volume.data(), {{8, 8, 8}});
  const HalfSpectrumLayout<2> box{{8, 8}};
  Page::project<Kernel, Space, T>(a.space, volume, 2, views.matrices, views.shifts, box, views.images);
  Page::backproject<Kernel, Space, T>(a.space, views.images, box, views.matrices, views.shifts, 2, volume);
  Page::pose_gradients<Kernel, Space, T>(a.space, volume, 2, views.matrices, views.shifts, box, views.images,
                                         views.matrices, views.shifts);
  sample<Kernel>(a.space, a.volume, views.matrices, views.images);
  sample_gradients<Kernel>(a.space, a.volume, views.matrices, views.images,
                           {.values = views.images, .grid = a.volume, .points = views.matrices});
  insert_gradients<Kernel>(a.space, views.reals, views.matrices, views.image, {.points = views.matrices});
  insert<Kernel>(a.space, views.reals, views.matrices, views.image);
}
template void user_operators<Page::Lanczos>(const Arguments<float>&);
template void user_operators<Bracewell::Linear>(const Arguments<double>&);
template void every_operator<Page::Lanczos>(const Arguments<float>&);

template <class T>
void lines(const Arguments<T>& a, const typename Arguments<T>::template View<T****>& values) {
  Bracewell::project_lines(a.space, values, {.matrices = values}, values);
  Bracewell::backproject_lines(a.space, values, {.matrices = values}, values);
  Bracewell::project_lines_gradients(a.space, values, {.matrices = values}, values, {.matrices = values});
}

template void lines(const Arguments<float>&, const Arguments<float>::View<float****>&);
template void lines(const Arguments<double>&, const Arguments<double>::View<double****>&);
