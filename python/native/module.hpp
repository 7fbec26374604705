// SPDX-License-Identifier: MIT
#pragma once

#include "arrays.hpp"

namespace Bracewell::Python {

void define_projection(nb::module_& module);
void define_tensors(nb::module_& module);
void define_points(nb::module_& module);
void define_contrast(nb::module_& module);
void define_reconstruct(nb::module_& module);
void define_reference(nb::module_& module);
void define_scoring(nb::module_& module);
void define_expectation(nb::module_& module);
void define_nonuniform(nb::module_& module);
void define_toeplitz(nb::module_& module);
void define_sums(nb::module_& module);
void define_tomography(nb::module_& module);
void define_beamline(nb::module_& module);
void define_ptychography(nb::module_& module);

} // namespace Bracewell::Python
