// SPDX-License-Identifier: MIT
// bench_calls_c: the call of bench_calls through the C interface.

#include "calls.hpp"

#include "bracewell.h"

#include <stdexcept>
#include <type_traits>

namespace {

template <class View>
bracewell_array array_of(const View& view, bracewell_type type) {
  bracewell_array array = {};
  array.data = const_cast<void*>(static_cast<const void*>(view.data()));
  array.type = type;
  array.rank = int(View::rank());
  for (int axis = 0; axis < array.rank; ++axis)
    array.extents[axis] = std::int64_t(view.extent(axis));
  return array;
}

void project(const Bench::SmallCall& call) {
  constexpr bool on_host = std::is_same_v<Bench::SmallCall::Space::memory_space, Kokkos::HostSpace>;
  const bracewell_queue queue = {1, nullptr};
  const auto volume = array_of(call.volume, BRACEWELL_COMPLEX_FLOAT),
             images = array_of(call.images, BRACEWELL_COMPLEX_FLOAT),
             matrices = array_of(call.matrices, BRACEWELL_FLOAT),
             shifts = array_of(call.shifts, BRACEWELL_FLOAT);
  bracewell_poses poses = {};
  poses.size = sizeof poses, poses.matrices = &matrices, poses.shifts = &shifts;
  bracewell_projection_options options = {};
  options.size = sizeof options, options.kernel = BRACEWELL_LINEAR;
  if (bracewell_project(on_host ? nullptr : &queue, &volume, &poses, &images, &options) != BRACEWELL_SUCCESS)
    throw std::runtime_error(bracewell_error_message());
}

} // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  return Bench::time_calls(argc, argv, "calls/c/project", project);
}
