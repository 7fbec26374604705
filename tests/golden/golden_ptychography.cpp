// golden_ptychography PREFIX: runs the case PREFIX.json/.bin in double and float on the default execution
// space: the operators one by one, both paths and object gradients of the plan, half-precision storage and
// twenty steps of Adam; or, where it lists cases of experiments, those. Prints a line each with its largest
// relative errors, and ends with "N passed, N failed".

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
  const bool experiments = file.index.contains("cases");
  for (const Result& result : experiments ? run_experiments<T>(file) : run<T>(file)) {
    const Errors& e = result.errors;
    const bool pass = std::is_same_v<T, double> ? passes(e, false, 1e-10, 1e-10, 1e-10, 1e-10)
                      : result.half             ? passes(e, true, 2e-6, 1e-3, 0, 1e-3)
                                                : passes(e, false, 2e-6, 2e-5, 5e-5, 1e-5);
    (pass ? passed : failed) += 1;
    std::printf("%-6s %-42s %-6s loss %.1e  gradients %.1e", pass ? "pass" : "FAIL", result.name.c_str(),
                precision, e.loss, e.gradients);
    if (!experiments)
      std::printf("  waves %.1e  probe parameters %.1e  Adam: losses %.1e  state %.1e", e.waves, e.parameters,
                  e.curve, e.final_state);
    std::printf("\n");
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
