// SPDX-License-Identifier: MIT
#include "ptychography_workspaces.hpp"

template void Tuning::workspaces<float, Bracewell::Half>(const char* name);
