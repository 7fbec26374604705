// expect: Bracewell::project: expected a reconstruction [B, H, W/2+1] with projections
#include "arguments.hpp"

void wrong(const View<Complex***>& volume, const View<Complex***>& stack) {
  project(space, volume, {.matrices = matrices}, stack);
}
