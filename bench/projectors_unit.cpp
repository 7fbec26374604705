// What bench_projectors measures of one kernel, precision and pair of dimensions, which CMake names: they compile side by side.

#include "projectors.hpp"

namespace Bench {

void BENCH_UNIT() {
  using namespace Bracewell;
  register_operators<BENCH_KERNEL, BENCH_REAL, BENCH_IMAGES, BENCH_REFERENCES>(
      sizeof(BENCH_REAL) == 8 ? "_double" : "");
}

} // namespace Bench
