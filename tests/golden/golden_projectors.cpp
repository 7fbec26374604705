// golden_projectors PREFIX: runs every case of PREFIX.json/.bin in double and float on the default execution
// space, with every strategy, prints a line per case with its largest relative errors, and ends with "N
// passed, N failed".

#include "projectors/case.hpp"

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>

#include <cstdio>
#include <exception>

namespace {

Golden::Errors run(const Golden::Case& golden, bool single_precision) {
  const std::string kernel = golden.json.at("kernel");
  if (kernel == Bracewell::Linear::name)
    return Golden::run_projectors<Bracewell::Linear>(golden, single_precision);
  if (kernel == Bracewell::CatmullRom::name)
    return Golden::run_projectors<Bracewell::CatmullRom>(golden, single_precision);
  if (kernel == Bracewell::CubicBSpline::name)
    return Golden::run_projectors<Bracewell::CubicBSpline>(golden, single_precision);
  throw std::runtime_error("no kernel named " + kernel);
}

int run_all(const std::string& prefix) {
  const Golden::File file(prefix);
  int passed = 0, failed = 0;
  for (const auto& json : file.index.at("cases"))
    for (const bool single_precision : {false, true}) {
      const Golden::Errors errors = run({file, json}, single_precision);
      const bool pass = single_precision ? errors.values < 3e-6 && errors.poses < 2e-4
                                         : errors.values < 1e-12 && errors.poses < 1e-11;
      (pass ? passed : failed) += 1;
      std::printf("%-6s %-22s %-6s values %.1e  poses %.1e\n", pass ? "pass" : "FAIL",
                  json.at("name").get<std::string>().c_str(), single_precision ? "float" : "double",
                  errors.values, errors.poses);
    }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char* argv[]) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: golden_projectors PREFIX\n");
    return 2;
  }
  Kokkos::ScopeGuard kokkos(argc, argv);
  try {
    return run_all(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "golden_projectors: %s\n", error.what());
    return 2;
  }
}
