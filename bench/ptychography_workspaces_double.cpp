// SPDX-License-Identifier: MIT
#include "ptychography_workspaces.hpp"

template void Tuning::workspaces<double, double>(const char* name);
