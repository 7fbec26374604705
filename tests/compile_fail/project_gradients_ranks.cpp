// expect: Bracewell::project_gradients: expected a reconstruction [B, H, W/2+1] with a cotangent
#include "arguments.hpp"

void wrong(const View<Complex**>& one_image) {
  project_gradients(space, volumes, {.matrices = matrices}, one_image, {});
}
