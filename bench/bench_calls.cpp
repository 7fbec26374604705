// SPDX-License-Identifier: MIT
// What a small call costs: 8 projections of 32^2 from 32^3, linear, float; 500 calls in a row up to a fence, as Python's
// doors are measured by bench/seeds/doors.py. bench_calls_c is the same through the C interface.

#include "calls.hpp"

#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/project.hpp>

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  return Bench::time_calls(argc, argv, "calls/cpp/project", [](const Bench::SmallCall& call) {
    Bracewell::project<Bracewell::Linear>(
        call.space, call.volume, {.matrices = call.matrices, .shifts = call.shifts}, call.images, {});
  });
}
