#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>
#include <cstdio>

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  std::printf("Bracewell %s on %s\n", BRACEWELL_VERSION, Kokkos::DefaultExecutionSpace::name());
}
