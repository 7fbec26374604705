// SPDX-License-Identifier: MIT
#include <decl/Kokkos_Declare_OPENMP.hpp>
// The order matters: the host backend first.
#include <decl/Kokkos_Declare_CUDA.hpp>
