// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/project/detail/padded_order.hpp>
#include <bracewell/project/detail/samples.hpp>
#include <bracewell/project/detail/taps.hpp>

#include <string>

namespace Bracewell::Impl {

/// Copies of the spectra of a batch, or of one for all its members.
template <class Stored, int D, int width>
struct PaddedSpectra {
  using Order = PaddedOrder<Stored, D, width>;

  typename Order::Entry* entries = nullptr;
  Order order = {};
  bool one_for_all = true;

  KOKKOS_INLINE_FUNCTION const typename Order::Entry* operator()(std::int64_t batch) const {
    return computed_once<const typename Order::Entry>(entries, one_for_all ? 0 : batch * order.size);
  }
};

/// Fills copies from spectra [batches, (D,) H, W/2+1].
template <class Stored, int D, int width>
struct CopyToPadded {
  static constexpr int lanes = 32;
  HalfSpectrumLayout<D> layout;
  StoredSpectra<Stored> from;
  PaddedSpectra<Stored, D, width> to;

  /// `lanes` threads share a row of blocks.
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto& order = to.order;
    const std::int64_t batch = i / lanes / order.rows();
    const unsigned row = static_cast<unsigned>(i / lanes - batch * order.rows());
    const Stored* const source = from(batch);
    for (unsigned e = static_cast<unsigned>(i % lanes); e < order.row_entries(); e += lanes) {
      int k[D];
      auto& entry = to.entries[batch * order.size + order.find(row, e, k)];
      typename PaddedOrder<Stored, D, width>::Entry values;
      for (int r = 0; r < order.run; ++r, ++k[0])
        values.value[r] = element(source, k);
      entry = values;
    }
  }

private:
  /// Of the spectrum continued by Hermitian symmetry and periodicity.
  KOKKOS_INLINE_FUNCTION Stored element(const Stored* source, const int (&k)[D]) const {
    int tap[D];
    for (int d = 0; d < D; ++d) {
      tap[d] = k[d];
      while (tap[d] < 0)
        tap[d] += layout.size[d];
      while (tap[d] >= layout.size[d])
        tap[d] -= layout.size[d];
    }
    const auto address = layout.resolve(tap);
    const Stored value = source[address.index];
    return address.conjugate ? Stored(conjugate(computed_with<Stored>(value))) : value;
  }
};

/// Launches the copy of `count` spectra to memory for as many of PaddedOrder.
template <int width, class ExecutionSpace, class Stored, int D>
PaddedSpectra<Stored, D, width>
copy_to_padded(const ExecutionSpace& space, const std::string& label, const HalfSpectrumLayout<D>& layout,
               const StoredSpectra<Stored>& stored, std::int64_t count, void* memory) {
  using Order = PaddedOrder<Stored, D, width>;
  const CopyToPadded<Stored, D, width> copy{
      layout, stored, {static_cast<typename Order::Entry*>(memory), Order(layout), stored.batch_stride == 0}};
  Kokkos::parallel_for(label,
                       Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(
                           space, 0, count * copy.to.order.rows() * copy.lanes),
                       copy);
  return copy.to;
}

} // namespace Bracewell::Impl
