// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

#include <algorithm>
#include <type_traits>

namespace Bracewell::Impl {

/// Detectors (pixels per side) for which the fused kernel is compiled, which takes a compiler a second or two each; and which
/// kernels over lines are compiled. FusedDetectors<> compiles no fused kernel.
template <int... sizes>
struct FusedDetectors {
  /// Whether PatternPath::Lines is compiled for an execution space: for GPUs; on hosts General is about as fast. Lists
  /// that derive from this one can say otherwise.
  template <class ExecutionSpace>
  static constexpr bool lines = !is_host<ExecutionSpace>;
  /// Whether a size is in the list.
  static constexpr bool contains(int size) { return ((size == sizes) || ...); }
  /// Whether PatternPath::KnownLines is compiled for this size, for GPUs. Lists that derive from this one can say otherwise, of
  /// sizes 64, 128, 192, 256 and 512 (in single precision).
  static constexpr bool knows_lines(int size) { return contains(size) && (size == 128 || size == 256); }

  static_assert(
      (std::ranges::count(PtychographyTuning::fused_sizes, sizes, &FusedSize::n) + ... + 0) ==
          sizeof...(sizes),
      "Bracewell::Impl::FusedDetectors: expected 40, 48, 64, 128, 160, 192, 256 or 512, found another size.");
};

/// All detectors that the fused kernel can be compiled for.
using EveryFusedDetector = FusedDetectors<40, 48, 64, 128, 160, 192, 256, 512>;

/// What users get: on GPUs all; on hosts those for which the fused kernel takes less time than General, with probes of at
/// most half the detector.
template <class ExecutionSpace>
using DefaultFusedDetectors =
    std::conditional_t<is_host<ExecutionSpace>, FusedDetectors<192, 256>, EveryFusedDetector>;

/// In place of a Storage: that Storage, with the machines of a list compiled instead of the default ones. Tests, benchmarks and
/// the Python package choose what they compile by it.
template <class Storage, class Detectors>
struct CompiledWith {};

/// What the parameter Storage of PtychographyLoss says.
template <class ExecutionSpace, class Storage>
struct Compiled {
  using Stored = Storage;
  using Detectors = DefaultFusedDetectors<ExecutionSpace>;
};
template <class ExecutionSpace, class Storage, class List>
struct Compiled<ExecutionSpace, CompiledWith<Storage, List>> {
  using Stored = Storage;
  using Detectors = List;
};

/// Whether PatternPath::KnownLines is compiled for windows of m pixels on detectors of n.
template <class Detectors, class Space, class T>
constexpr bool lines_are_known(int n, int m) {
  return !is_host<Space> && m == n && Detectors::knows_lines(n) && (n <= 256 || sizeof(T) <= 4) &&
         std::ranges::count(PtychographyTuning::line_sizes, n, &FusedSize::n) > 0;
}

} // namespace Bracewell::Impl
