// expect: Bracewell: expected data [B, H, W/2+1] of images or [B, D, H, W/2+1] of volumes.
#include "arguments.hpp"

void wrong(const View<Complex**>& image) {
  backproject(space, images, {.matrices = matrices}, {.data = image});
}
