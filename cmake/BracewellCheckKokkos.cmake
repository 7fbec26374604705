# Refuses a Kokkos that kernels for GPUs would misread: they load and add a complex number in one instruction.

if((Kokkos_ENABLE_CUDA OR Kokkos_ENABLE_HIP) AND NOT Kokkos_ENABLE_COMPLEX_ALIGN)
  message(FATAL_ERROR
    "Bracewell: expected a Kokkos whose complex numbers are aligned to their size, found one that was built with "
    "-DKokkos_ENABLE_COMPLEX_ALIGN=OFF: build Kokkos without that option.")
endif()
