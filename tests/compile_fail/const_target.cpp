// expect: Bracewell: an output must be a View of non-const values.
#include "arguments.hpp"

void wrong(const View<const Complex****>& const_volumes) {
  backproject(space, images, {.matrices = matrices}, {.data = const_volumes});
}
