// expect: Bracewell: Views have at most six axes.
#include "arguments.hpp"

void wrong(const View<float*******>& seven_axes) {
  project(space, volumes, {.matrices = seven_axes}, images);
}
