#include "../solver_plan.hpp"

BRACEWELL_TEST_SOLVER()
