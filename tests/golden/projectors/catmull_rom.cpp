#include "projectors.hpp"

#include <bracewell/interpolation/catmull_rom.hpp>

template Golden::Errors Golden::run_projectors<Bracewell::CatmullRom>(const Golden::Case&, bool);
