// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/run_storage.hpp"

template std::string Bracewell::Examples::run_with<Bracewell::Half>(const Space&, const Job&, Checkpoint&,
                                                                    Timings&);
