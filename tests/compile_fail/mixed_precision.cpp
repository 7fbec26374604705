// expect: Bracewell: the View's value type differs from the one expected here
#include "arguments.hpp"

void wrong(const View<double****>& double_matrices) {
  project(space, volumes, {.matrices = double_matrices}, images);
}
