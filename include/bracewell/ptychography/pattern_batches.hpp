// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/memory.hpp>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace Bracewell {

/// Fixed random division of N patterns into batches of equal size (to one pattern), for mini-batches: batch b
/// is `batches[b]`. The lists lie in the memory of the execution space.
template <class ExecutionSpace>
class PatternBatches {
  using Memory = typename ExecutionSpace::memory_space;

public:
  /// @throws Error on counts of batches that are not between 1 and `patterns` (1 where there are no patterns)
  PatternBatches(const ExecutionSpace& space, std::int64_t patterns, int batches, std::uint64_t seed = 0)
      : patterns_(patterns), batches_(batches) {
    const Impl::Arguments check{"PatternBatches"};
    check.within<std::int64_t>("patterns", patterns, 0, 1 << 30);
    check.within<std::int64_t>("batches", batches, 1, std::max<std::int64_t>(patterns, 1));
    std::vector<int> indices(static_cast<std::size_t>(patterns));
    std::iota(indices.begin(), indices.end(), 0);
    std::mt19937_64 generator(seed);
    for (std::size_t i = indices.size(); i > 1; --i) // Fisher and Yates: the same on every machine
      std::swap(indices[i - 1], indices[generator() % i]);
    for (int batch = 0; batch < batches; ++batch)
      std::sort(indices.begin() + begin(batch), indices.begin() + begin(batch + 1));
    list_ = Impl::device_copy(space, "Bracewell::PatternBatches::list", indices);
  }

  /// How many batches there are.
  int size() const { return batches_; }
  /// Indices of the patterns of a batch, rising.
  Array<const int, Memory> operator[](int batch) const {
    return Kokkos::View<const int*, Kokkos::LayoutRight, Memory>(
        list_.data() + begin(batch), static_cast<std::size_t>(begin(batch + 1) - begin(batch)));
  }

private:
  std::int64_t begin(int batch) const { return patterns_ * batch / batches_; }

  std::int64_t patterns_;
  int batches_;
  Kokkos::View<int*, ExecutionSpace> list_;
};

} // namespace Bracewell
