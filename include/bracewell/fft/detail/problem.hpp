// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>

#include <cstdint>
#include <type_traits>

namespace Bracewell::Impl {

/// What a plan transforms: `batch` arrays of the given shape (slowest axis first), Input to Output.
template <int Dim, class Input, class Output>
struct FFTProblem {
  using Real = typename RealOf<Input>::type;
  static constexpr bool from_real = std::is_same_v<Input, Real>, to_real = std::is_same_v<Output, Real>;
  static constexpr bool complex_to_complex = !from_real && !to_real;

  int shape[Dim];
  std::int64_t batch;
  bool forward;

  /// Length of an axis as it is stored, in the real or the complex array.
  std::int64_t stored(int axis, bool real) const {
    return axis == Dim - 1 && !real && !complex_to_complex ? shape[axis] / 2 + 1 : shape[axis];
  }

  /// Elements of the axes from `axis` on.
  std::int64_t elements(int axis, bool real) const {
    std::int64_t product = 1;
    for (int a = 0; a < Dim; ++a)
      if (a >= axis)
        product *= stored(a, real);
    return product;
  }
};

/// The class that does the transforms of an execution space: specialised where a library's names are.
template <class ExecutionSpace, int Dim, class Input, class Output>
struct FFTBackend {
  static_assert(std::is_void_v<ExecutionSpace>,
                "Bracewell::FFT: this execution space has no FFT library: host spaces need FFTW's header.");
};

} // namespace Bracewell::Impl
