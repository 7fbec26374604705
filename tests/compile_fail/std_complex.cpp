// expect: Bracewell: the View's value type differs from the one expected here
#include "arguments.hpp"

#include <complex>

void wrong(const View<std::complex<float>****>& std_images) {
  project(space, volumes, {.matrices = matrices}, std_images);
}
