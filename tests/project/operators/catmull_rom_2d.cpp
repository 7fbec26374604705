#include "operators_of.hpp"

template const Test::Operators<double>& Test::operators_of<Bracewell::CatmullRom, double, 2>(int);
