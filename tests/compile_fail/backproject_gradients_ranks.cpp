// expect: Bracewell::backproject_gradients: expected projections [B, P, h, w/2+1] or [B, P, d, h, w/2+1].
#include "arguments.hpp"

void wrong(const View<Complex***>& stack) {
  backproject_gradients(space, stack, {.matrices = matrices}, {.data = volumes});
}
