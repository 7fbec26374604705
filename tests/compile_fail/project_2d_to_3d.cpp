// expect: Bracewell::project: expected a reconstruction [B, H, W/2+1] with projections
#include "arguments.hpp"

void wrong(const View<Complex***>& flat, const View<Complex*****>& deep) {
  project(space, flat, {.matrices = matrices}, deep);
}
