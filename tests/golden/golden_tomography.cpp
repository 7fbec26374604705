// golden_tomography PREFIX: runs every case of PREFIX.json/.bin in double and float on the default execution
// space, with every gridding kernel and strategy at several tolerances, prints a line per case with its
// largest relative errors, and ends with "N passed, N failed".

#include "tomography/gridding.hpp"
#include "tomography/log_polar.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

namespace {

int run_all(const std::string& prefix) {
  const Golden::File file(prefix);
  int passed = 0, failed = 0;
  for (const auto& json : file.index.at("cases"))
    for (const auto& [precision, tolerance] :
         {std::pair{"float", 1e-3}, {"float", 1e-4}, {"float", 1e-6}, {"double", 1e-6}, {"double", 1e-10}}) {
      const bool single_precision = precision == std::string("float");
      const Golden::TomographyCase golden{file, json};
      const auto errors = single_precision ? Golden::run_gridding<float>(golden, tolerance)
                                           : Golden::run_gridding<double>(golden, tolerance);
      const double worst = std::max({errors.type1, errors.type2, errors.backprojection, errors.projection});
      const bool pass = worst <= tolerance;
      (pass ? passed : failed) += 1;
      std::printf("%-6s %-8s %-6s %.0e  type1 %.1e  type2 %.1e  backprojection %.1e  projection %.1e\n",
                  pass ? "pass" : "FAIL", json.at("name").get<std::string>().c_str(), precision, tolerance,
                  errors.type1, errors.type2, errors.backprojection, errors.projection);
    }
  for (const auto& json : file.index.at("cases"))
    for (const bool single_precision : {true, false}) {
      const Golden::TomographyCase golden{file, json};
      if (!Golden::suits_log_polar(golden))
        continue;
      const auto errors = Golden::run_log_polar(golden, single_precision);
      const bool pass = errors.backprojection < 3e-3 && errors.projection < 3e-3;
      (pass ? passed : failed) += 1;
      std::printf("%-6s %-8s %-6s log-polar backprojection %.1e  projection %.1e\n", pass ? "pass" : "FAIL",
                  json.at("name").get<std::string>().c_str(), single_precision ? "float" : "double",
                  errors.backprojection, errors.projection);
    }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char* argv[]) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: golden_tomography PREFIX\n");
    return 2;
  }
  Kokkos::ScopeGuard kokkos(argc, argv);
  try {
    return run_all(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "golden_tomography: %s\n", error.what());
    return 2;
  }
}
