// What operators refuse of arrays. (Not in one file with classes: compilers can leave functions out after an error in a class.)
#include <bracewell/geometry/pose_gradients.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>

using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight>;

// expect: Bracewell: images and volumes have two or three dimensions.
void image_without_batch_axis(const View<float**>& image) { Bracewell::pad_centre(Space(), image, image); }
// expect: Bracewell: expected a View of values that can be written, as outputs are, found const ones.
void const_matrices(const View<float***>& angles, const View<const float****>& wrong) {
  Bracewell::matrices_from_angles(Space(), angles, wrong);
}
