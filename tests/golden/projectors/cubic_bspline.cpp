#include "projectors.hpp"

#include <bracewell/interpolation/cubic_bspline.hpp>

template Golden::Errors Golden::run_projectors<Bracewell::CubicBSpline>(const Golden::Case&, bool);
