#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

#if defined(FFTW_FORWARD) || defined(EIGEN_WORLD_VERSION)
#error "projection includes FFTW or Eigen"
#endif

int main(int argc, char* argv[]) { Kokkos::ScopeGuard kokkos(argc, argv); }
