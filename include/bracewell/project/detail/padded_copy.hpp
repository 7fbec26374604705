// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/impl/label.hpp>
#include <bracewell/project/detail/padded_order.hpp>
#include <bracewell/project/detail/samples.hpp>
#include <bracewell/project/detail/taps.hpp>

namespace Bracewell::Impl {

/// Copies of the spectra of a batch, or of one for all its members.
template <class Stored, int D, int width>
struct PaddedSpectra {
  using Order = PaddedOrder<Stored, D, width>;

  typename Order::Entry* entries = nullptr;
  Order order = {};
  bool one_for_all = true;
  Gain<Stored> gain = {};

  KOKKOS_FUNCTION explicit operator bool() const { return entries != nullptr; }
  KOKKOS_INLINE_FUNCTION const typename Order::Entry* operator()(std::int64_t batch) const {
    return computed_once<const typename Order::Entry>(entries, one_for_all ? 0 : batch * order.size);
  }
};

/// Fills copies from spectra [batches, (D,) H, W/2+1] of values From, as they are sampled with `mates`.
template <class From, class Stored, int D, int width, Mates mates>
struct CopyToPadded {
  static constexpr int lanes = 32;
  HalfSpectrumLayout<D> layout;
  StoredSpectra<From> from;
  PaddedSpectra<Stored, D, width> to;
  Gain<Stored> scale = {};

  /// `lanes` threads share a row of blocks.
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto& order = to.order;
    const std::int64_t batch = i / lanes / order.rows();
    const unsigned row = static_cast<unsigned>(i / lanes - batch * order.rows());
    const From* const source = from(batch);
    for (unsigned e = static_cast<unsigned>(i % lanes); e < order.row_entries(); e += lanes) {
      int k[D];
      auto& entry = to.entries[batch * order.size + order.find(row, e, k)];
      typename PaddedOrder<Stored, D, width>::Entry values;
      for (int r = 0; r < order.together; ++r, ++k[0])
        values.value[r] = Stored(scale.restored(element(source, k)));
      entry = values;
    }
  }

private:
  /// Of the spectrum continued by Hermitian symmetry and periodicity.
  KOKKOS_INLINE_FUNCTION computed_with<Stored> element(const From* source, const int (&k)[D]) const {
    using Value = computed_with<Stored>;
    int tap[D];
    for (int d = 0; d < D; ++d) {
      tap[d] = k[d];
      while (tap[d] < 0)
        tap[d] += layout.size[d];
      while (tap[d] >= layout.size[d])
        tap[d] -= layout.size[d];
    }
    const auto address = layout.resolve(tap);
    const Value value = source[address.index];
    if constexpr (mates == Mates::Both)
      if (layout.self_mated(tap[0])) {
        int mate[D] = {tap[0]};
        for (int d = 1; d < D; ++d)
          mate[d] = -tap[d];
        return value + conjugate(Value(source[layout.resolve(mate).index]));
      }
    return address.conjugate ? conjugate(value) : value;
  }
};

/// Copies stored spectra, element by element.
template <class From, class Stored>
struct CopyStored {
  const From* from;
  Stored* to;
  Gain<Stored> scale;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    to[i] = Stored(scale.restored(computed_with<Stored>(from[i])));
  }
};

/// The largest part of any element that is finite.
template <class From>
struct LargestPart {
  const From* values;

  KOKKOS_FUNCTION void operator()(std::int64_t i, float& largest) const {
    const Kokkos::complex<float> value(values[i]);
    const float real = Kokkos::abs(value.real()), imaginary = Kokkos::abs(value.imag());
    if (real <= Kokkos::Experimental::finite_max_v<float>)
      largest = Kokkos::max(largest, real);
    if (imaginary <= Kokkos::Experimental::finite_max_v<float>)
      largest = Kokkos::max(largest, imaginary);
  }
};

/// Launches the copy of `count` spectra to copies that have memory and an order.
template <Mates mates, class ExecutionSpace, class From, class Stored, int D, int width>
void copy_to_padded(const ExecutionSpace& space, const Label& label, const HalfSpectrumLayout<D>& layout,
                    const StoredSpectra<From>& from, std::int64_t count,
                    const PaddedSpectra<Stored, D, width>& to, const Gain<Stored>& scale = {}) {
  using Copy = CopyToPadded<From, Stored, D, width, mates>;
  Kokkos::parallel_for(label,
                       Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(
                           space, 0, count * to.order.rows() * Copy::lanes),
                       Copy{layout, from, to, scale});
}

} // namespace Bracewell::Impl
