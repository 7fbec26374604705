#include "../plans.hpp"

BRACEWELL_TEST_LOSS(, double)
