#include "projection.hpp"

#include <bracewell/interpolation/catmull_rom.hpp>

template void every_operator<Bracewell::CatmullRom>(const Arguments<double>&);
