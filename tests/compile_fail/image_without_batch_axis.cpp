// expect: Bracewell: images and volumes have two or three dimensions.
#include <bracewell/reconstruct/pad_crop.hpp>

void wrong(const Kokkos::View<float**, Kokkos::LayoutRight>& image) {
  Bracewell::pad_centre(Kokkos::DefaultExecutionSpace(), image, image);
}
