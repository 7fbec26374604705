// SPDX-License-Identifier: MIT
// What the files beside this folder do wrong is not here.

#include <bracewell/version.hpp>

#include <Eigen/Core>
#include <Kokkos_Core.hpp>
#include <fftw3.h>

Kokkos::View<double*> view;
