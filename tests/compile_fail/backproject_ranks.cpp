// expect: Bracewell::backproject: expected projections [B, P, h, w/2+1] or [B, P, d, h, w/2+1].
#include "arguments.hpp"

void wrong(const View<Complex***>& stack) {
  backproject(space, stack, {.matrices = matrices}, {.data = volumes});
}
