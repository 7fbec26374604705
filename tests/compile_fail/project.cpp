// What project and its gradients refuse.
#include "arguments.hpp"

#include <bracewell/project/project_lines.hpp>
#include <bracewell/project/score_poses.hpp>

#include <complex>
#include <vector>

// expect: Bracewell::project, project_gradients: reconstruction: expected a View of Kokkos::complex or HalfComplex, found another
void std_complex_volumes(const View<std::complex<float>****>& wrong) {
  project(instance, wrong, {.matrices = matrices}, images);
}
// expect: Bracewell: expected a View of Kokkos::complex, found std::complex
void std_complex_images(const View<std::complex<float>****>& wrong) {
  project(instance, volumes, {.matrices = matrices}, wrong);
}
// expect: Bracewell::project, project_gradients: expected a reconstruction [B, H, W/2+1] with projections
void two_axes_to_three(const View<Complex***>& wrong, const View<Complex*****>& deep) {
  project(instance, wrong, {.matrices = matrices}, deep);
}
// expect: Bracewell::project, project_gradients: expected a reconstruction [B, H, W/2+1] with projections
void projections_without_batch_axis(const View<Complex***>& wrong) {
  project(instance, volumes, {.matrices = matrices}, wrong);
}
// expect: Bracewell::project, project_gradients: expected a reconstruction [B, H, W/2+1] with projections
void cotangent_without_batch_axis(const View<Complex**>& wrong) {
  project_gradients(instance, volumes, {.matrices = matrices}, wrong, {});
}
// expect: Bracewell::project, project_gradients: Kernel: expected Linear, CatmullRom or CubicBSpline, found another type
void precision_for_kernel() { project<float>(instance, volumes, {.matrices = matrices}, images); }
// expect: Bracewell::project, project_gradients: Kernel: expected Linear, CatmullRom or CubicBSpline, found another type
void another_precision_for_kernel() {
  project_gradients<double>(instance, volumes, {.matrices = matrices}, images, {.matrices = matrices});
}
// expect: Bracewell: expected a View of values that can be written, as outputs are, found const ones.
void const_images(const View<const Complex****>& wrong) {
  project(instance, volumes, {.matrices = matrices}, wrong);
}
// expect: Bracewell: expected a View of values that can be written, as outputs are, found const ones.
void const_gradient(const View<const float****>& wrong) {
  project_gradients(instance, volumes, {.matrices = matrices}, images, {.matrices = wrong});
}
// expect: Bracewell: expected one precision in all arguments, found float beside double.
void double_matrices(const View<double****>& wrong) {
  project(instance, volumes, {.matrices = wrong}, images);
}
// expect: Bracewell: expected a View of Kokkos::complex (a spectrum or waves), found real values.
void real_images(const View<float****>& wrong) { project(instance, volumes, {.matrices = matrices}, wrong); }
// expect: Bracewell: expected a View of real values, found complex ones.
void complex_filters() { project(instance, volumes, {.matrices = matrices, .filters = images}, images); }
// expect: Bracewell: expected a View of Array's type of values, found another type.
void integer_matrices(const View<int****>& wrong) { project(instance, volumes, {.matrices = wrong}, images); }
// expect: Bracewell: expected a View in row-major order (LayoutRight), found LayoutLeft.
void columns_first(const Kokkos::View<Complex****, Kokkos::LayoutLeft, Space>& wrong) {
  project(instance, wrong, {.matrices = matrices}, images);
}
// expect: Bracewell: expected a View of at most six axes, found more.
void seven_axes(const View<float*******>& wrong) { project(instance, volumes, {.matrices = wrong}, images); }
// expect: Bracewell: expected a Kokkos::View (of memory of your own: an unmanaged one), found another type.
void no_view(const std::vector<float>& wrong) { project(instance, volumes, {.matrices = wrong}, images); }
// expect: Bracewell::PoseScoring::score: reference: expected the precision of the plan, found float beside double.
void double_reference(
    const Bracewell::PoseScoring<Space>& scoring, const View<float***>& candidates,
    const Bracewell::PreparedReference<Bracewell::CatmullRom, Space, 3, Kokkos::complex<double>>& wrong) {
  scoring.score(instance, wrong, candidates, {});
}
// expect: Bracewell::project_lines, backproject_lines: expected a volume and images of float or double, found another
void lines_through_spectra() { project_lines(instance, volumes, {.matrices = matrices}, images); }
