# The release of Kokkos that is downloaded where none is installed: by CMake for hosts, by ./dev for GPUs.

set(BRACEWELL_KOKKOS_URL https://github.com/kokkos/kokkos/releases/download/5.0.0/kokkos-5.0.0.tar.gz
  CACHE STRING "Archive of Kokkos' source, used where Kokkos is not installed")
set(BRACEWELL_KOKKOS_HASH SHA256=c45f3e19c3eb71fc8b7210cb04cac658015fc1839e7cc0571f7406588ff9bcef
  CACHE STRING "Hash of BRACEWELL_KOKKOS_URL")
