#include "projection.hpp"

#include <bracewell/interpolation/linear.hpp>

template void every_operator<Bracewell::Linear>(const Arguments<float>&);

void project_half_precision(const Arguments<float>& a) {
  Bracewell::project<Bracewell::Linear>(a.space, a.half_volume, a.poses, a.images);
}
