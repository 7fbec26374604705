// SPDX-License-Identifier: MIT
#include <setup/Kokkos_Setup_Cuda.hpp>
