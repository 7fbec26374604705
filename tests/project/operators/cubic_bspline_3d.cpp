#include "operators_of.hpp"

template const Test::Operators<double>& Test::operators_of<Bracewell::CubicBSpline, double, 3>(int);
