// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/strategy.hpp>

#include <cstdint>

namespace Bracewell {

/// Values of the real type that `backproject`, or the gradient of the reconstruction in `project_gradients`,
/// needs as scratch to accumulate with `strategy` into volumes of `elements` stored elements over all
/// batches. For Strategy::Duplicated a copy of data, and of weight if there is one, per thread, each an even
/// number, which keeps complex numbers aligned; 0 for the others: Owned, and Atomic on GPUs, sum in the
/// scratch memory of their teams, whose size does not depend on the data. `backproject_gradients` needs none.
template <class ExecutionSpace>
std::int64_t scratch_size(const ExecutionSpace& space, Strategy strategy, std::int64_t elements,
                          bool weight) {
  const bool duplicated = strategy == Strategy::Duplicated; // which Automatic never means
  return duplicated ? space.concurrency() * (((weight ? 3 : 2) * elements + 1) / 2 * 2) : 0;
}

} // namespace Bracewell
