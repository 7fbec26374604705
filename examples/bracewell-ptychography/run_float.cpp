// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/run_storage.hpp"

template std::string Bracewell::Examples::run_with<float>(const Space&, const Job&, Checkpoint&, Timings&);
