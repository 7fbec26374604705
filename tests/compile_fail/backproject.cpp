// What backproject and its gradients refuse.
#include "arguments.hpp"

// expect: Bracewell::backproject, backproject_gradients: expected projections [B, P, h, w/2+1] or [B, P, d, h, w/2+1], found another
void projections_without_batch_axis(const View<Complex***>& wrong) {
  backproject(instance, wrong, {.matrices = matrices}, {.data = volumes});
}
// expect: Bracewell::backproject, backproject_gradients: expected projections [B, P, h, w/2+1] of images [B, H, W/2+1], found another
void volumes_to_images(const View<Complex*****>& wrong, const View<Complex***>& image) {
  backproject(instance, wrong, {.matrices = matrices}, {.data = image});
}
// expect: Bracewell::backproject, backproject_gradients: expected projections [B, P, h, w/2+1] or [B, P, d, h, w/2+1], found
void gradients_without_batch_axis(const View<Complex***>& wrong) {
  backproject_gradients<Linear>(instance, wrong, {.matrices = matrices}, {.data = volumes});
}
// expect: Bracewell::backproject, backproject_gradients: projections: expected a View of Kokkos::complex, found another type of values.
void real_projections(const View<float****>& wrong) {
  backproject(instance, wrong, {.matrices = matrices}, {.data = volumes});
}
// expect: Bracewell::backproject, backproject_gradients: Kernel: expected Linear, CatmullRom or CubicBSpline, found another type
void precision_for_kernel() {
  backproject<float>(instance, images, {.matrices = matrices}, {.data = volumes});
}
// expect: Bracewell: expected data [B, H, W/2+1] of images or [B, D, H, W/2+1] of volumes
void data_of_two_axes(const View<Complex**>& wrong) {
  backproject(instance, images, {.matrices = matrices}, {.data = wrong});
}
// expect: Bracewell: expected one precision in all arguments, found float beside double.
void double_data(const View<Kokkos::complex<double>****>& wrong) {
  backproject(instance, images, {.matrices = matrices}, {.data = wrong});
}
// expect: Bracewell: expected a View of values that can be written, as outputs are, found const ones.
void const_data(const View<const Complex****>& wrong) {
  backproject(instance, images, {.matrices = matrices}, {.data = wrong});
}
