#include "operators_of.hpp"

template const Test::Operators<float>& Test::operators_of<Bracewell::CatmullRom, float, 2>(int);
