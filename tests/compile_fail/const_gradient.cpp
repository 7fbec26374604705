// expect: Bracewell: an output must be a View of non-const values.
#include "arguments.hpp"

void wrong(const View<const float****>& const_gradient) {
  project_gradients(space, volumes, {.matrices = matrices}, images, {.matrices = const_gradient});
}
