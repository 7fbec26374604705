#include "gridding_of.hpp"

template Golden::TomographyErrors Golden::run_gridding<double>(const Golden::TomographyCase&, double);
