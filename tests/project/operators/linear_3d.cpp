#include "operators_of.hpp"

template const Test::Operators<double>& Test::operators_of<Bracewell::Linear, double, 3>(int);
