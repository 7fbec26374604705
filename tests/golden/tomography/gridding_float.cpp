#include "gridding_of.hpp"

template Golden::TomographyErrors Golden::run_gridding<float>(const Golden::TomographyCase&, double);
