// expect: Bracewell::backproject: expected projections [B, P, h, w/2+1] of images [B, H, W/2+1].
#include "arguments.hpp"

void wrong(const View<Complex*****>& volume_projections, const View<Complex***>& image) {
  backproject(space, volume_projections, {.matrices = matrices}, {.data = image});
}
