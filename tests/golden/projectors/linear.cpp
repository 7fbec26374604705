#include "projectors.hpp"

#include <bracewell/interpolation/linear.hpp>

template Golden::Errors Golden::run_projectors<Bracewell::Linear>(const Golden::Case&, bool);
