// expect: Bracewell: the View's value type differs from the one expected here
#include "arguments.hpp"

void wrong(const View<float****>& real_images) {
  project(space, volumes, {.matrices = matrices}, real_images);
}
