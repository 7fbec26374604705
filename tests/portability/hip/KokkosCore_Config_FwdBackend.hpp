// SPDX-License-Identifier: MIT
#include <fwd/Kokkos_Fwd_OPENMP.hpp>
// The order matters: the host backend first.
#include <fwd/Kokkos_Fwd_HIP.hpp>
