// golden_ptychography PREFIX: runs the case PREFIX.json/.bin in double and float on the default execution
// space: the operators one by one, both paths and object gradients of the plan, half-precision storage and
// twenty steps of Adam. Prints a line each with its largest relative errors, and ends with "N passed, N
// failed".

#include "ptychography/case.hpp"

#include <cstdio>
#include <exception>

namespace {

using namespace Golden::Ptychography;

bool passes(const Errors& errors, bool half, double waves, double gradients, double parameters,
            double curve) {
  // Half-precision storage is judged by the norms of the first gradients and by the losses: single parameters
  // are small differences, and Adam moves pixels without signal as far as the others.
  return errors.waves < waves && errors.loss < curve && errors.gradients < gradients &&
         errors.curve < curve && (half || (errors.parameters < parameters && errors.final_state < gradients));
}

template <class T>
void report(const Golden::File& file, const char* precision, int& passed, int& failed) {
  for (const Result& result : run<T>(file)) {
    const Errors& e = result.errors;
    const bool pass = std::is_same_v<T, double> ? passes(e, false, 1e-10, 1e-10, 1e-10, 1e-10)
                      : result.half             ? passes(e, true, 2e-6, 1e-3, 0, 1e-3)
                                                : passes(e, false, 2e-6, 2e-5, 5e-5, 1e-5);
    (pass ? passed : failed) += 1;
    std::printf(
        "%-6s %-22s %-6s waves %.1e  loss %.1e  gradients %.1e  probe parameters %.1e  Adam: losses %.1e  "
        "state %.1e\n",
        pass ? "pass" : "FAIL", result.name.c_str(), precision, e.waves, e.loss, e.gradients, e.parameters,
        e.curve, e.final_state);
  }
}

} // namespace

int main(int argc, char* argv[]) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: golden_ptychography PREFIX\n");
    return 2;
  }
  Kokkos::ScopeGuard kokkos(argc, argv);
  try {
    const Golden::File file(argv[1]);
    int passed = 0, failed = 0;
    report<double>(file, "double", passed, failed);
    report<float>(file, "float", passed, failed);
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "golden_ptychography: %s\n", error.what());
    return 2;
  }
}
