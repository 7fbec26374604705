// expect: Bracewell: an output must be a View of non-const values.
#include "arguments.hpp"

void wrong(const View<const Complex****>& const_images) {
  project(space, volumes, {.matrices = matrices}, const_images);
}
