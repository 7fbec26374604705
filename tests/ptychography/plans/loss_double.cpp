#include "../plans.hpp"

#ifdef BRACEWELL_TEST_PLANS
BRACEWELL_TEST_LOSS(, double)
#endif
