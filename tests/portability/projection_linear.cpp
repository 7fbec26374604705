#include "projection.hpp"

#include <bracewell/interpolation/linear.hpp>

template void every_operator<Bracewell::Linear>(const Arguments<float>&);
