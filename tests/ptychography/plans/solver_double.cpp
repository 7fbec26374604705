#include "../solver_plan.hpp"

#ifdef BRACEWELL_TEST_PLANS
BRACEWELL_TEST_SOLVER()
#endif
