#include "projection.hpp"

#include <bracewell/interpolation/cubic_bspline.hpp>

template void every_operator<Bracewell::CubicBSpline>(const Arguments<float>&);
