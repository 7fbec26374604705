#include <setup/Kokkos_Setup_HIP.hpp>
