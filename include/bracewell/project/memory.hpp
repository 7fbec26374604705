// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/project/detail/padded_order.hpp>
#include <bracewell/strategy.hpp>

namespace Bracewell {

/// Values of the real type that `project` with the same kernel can use as scratch on GPUs,
/// ProjectOutputs::scratch, for reconstructions [B|1, (D,) H, W/2+1]: a copy of them, continued a little
/// beyond the stored half. In float, of 128 elements a side: 1.1 (linear) or 1.2 times the memory of volumes,
/// 2.2 to 2.4 times that of images. 0 on hosts, and beyond 2^32 elements, where `project` does not use any.
template <class Kernel = CatmullRom, class ExecutionSpace, class Reconstruction>
std::int64_t scratch_size(const ExecutionSpace&, const Reconstruction& reconstruction) {
  using T = Impl::real_of<Reconstruction>;
  using Stored = Impl::spectrum_value_of<Reconstruction>;
  constexpr int D = int(Impl::view_of<Reconstruction>::rank()) - 1;
  static_assert(D == 2 || D == 3, "Bracewell::scratch_size: expected a reconstruction [B, H, W/2+1] "
                                  "or [B, D, H, W/2+1].");
  if (Impl::is_host<ExecutionSpace>)
    return 0;
  const Array<const Stored, typename ExecutionSpace::memory_space> array(reconstruction);
  HalfSpectrumLayout<D> layout{static_cast<int>(array.width)};
  for (int d = 1; d < D; ++d)
    layout.size[d] = static_cast<int>(array.extents[D - d]);
  using Order = Impl::PaddedOrder<Stored, D, Kernel::width>;
  const std::int64_t bytes = Order(layout).usable_size() * std::int64_t(sizeof(typename Order::Entry));
  return array.extents[0] * bytes / std::int64_t(sizeof(T));
}

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
