// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/error.hpp>

#include <concepts>
#include <type_traits>

namespace Bracewell {

/// An interpolation kernel w(x) that projection, sampling and insertion take: Linear, CatmullRom, CubicBSpline, or a type of
/// your own with the members below, all static. docs/building-blocks.md makes one.
///
/// | member | what it is |
/// |---|---|
/// | `width` | taps on an axis, an even number from 2 to 16: floor(q) - width/2 + 1 ... floor(q) + width/2 |
/// | `weights(T f, T (&w)[width])` | weights of the taps, f = q - floor(q): w[i] = w(f + width/2 - 1 - i) |
/// | `derivatives(T f, T (&d)[width])` | their derivatives with respect to q |
/// | `transform(T v)` | optional: the Fourier transform of w at v = x / N. correct_rolloff divides maps by it. Without one a map keeps the attenuation that the kernel brings, and correct_rolloff does not compile. |
///
/// A kernel is even, w(-x) = w(x), continuous, and zero at its edge, w(width/2) = 0. Without this the window of -q is not the mirrored
/// window of q, and operators that should be adjoint are not. The functions are KOKKOS_INLINE_FUNCTION. Operators check
/// symmetry, edge and slopes when they are compiled if `weights` and `derivatives` are constexpr, else once at run time
/// (an Error).
template <class Kernel, class T = float>
concept InterpolationKernel = requires {
  requires Kernel::width >= 2 && Kernel::width <= 16 && Kernel::width % 2 == 0;
}
&&requires(T fraction, T (&numbers)[Kernel::width]) {
  Kernel::weights(fraction, numbers);
  Kernel::derivatives(fraction, numbers);
};

namespace Impl {

/// What is wrong with a kernel.
enum class KernelFault { None, Type, Width, Members, Symmetry, Edge, Slopes };

template <class Kernel>
concept HasWidth = requires {
  { Kernel::width } -> std::convertible_to<int>;
};
template <class Kernel>
concept HasRightWidth = HasWidth<Kernel> && requires {
  requires Kernel::width >= 2 && Kernel::width <= 16 && Kernel::width % 2 == 0;
};
template <class Kernel, class T>
concept HasTransform = requires(T v) {
  { Kernel::transform(v) } -> std::convertible_to<T>;
};

/// Numbers of a kernel agree up to rounding, which tables and sines make larger.
template <class T>
constexpr bool agree(T a, T b, T largest) {
  const T difference = a < b ? b - a : a - b;
  return difference <= (sizeof(T) == 4 ? T(1e-5) : T(1e-12)) * largest; // not a number agrees with nothing
}

/// The fault of the numbers of a kernel that has the right members.
template <class Kernel, class T>
constexpr KernelFault fault_of_numbers() {
  constexpr int width = Kernel::width, steps = 16;
  T middle[width] = {}, last[width] = {};
  Kernel::weights(T(0), middle);
  Kernel::weights(T(1), last);
  T largest = 0;
  for (const T one : middle)
    largest = one > largest ? one : (-one > largest ? -one : largest);
  if (!(largest > 0 && largest < T(1e30)) || !agree(middle[width - 1], T(0), largest))
    return KernelFault::Edge;
  for (int i = 0; i < width; ++i) // the same weight seen from either side of a tap
    if (!agree(last[i], i == 0 ? T(0) : middle[i - 1], largest))
      return KernelFault::Edge;
  for (int step = 0; step <= steps; ++step) {
    const T f = T(step) / steps;
    T w[width] = {}, mirrored[width] = {};
    Kernel::weights(f, w);
    Kernel::weights(1 - f, mirrored);
    for (int i = 0; i < width; ++i)
      if (!agree(w[i], mirrored[width - 1 - i], largest))
        return KernelFault::Symmetry;
  }
  for (int step = 0; step < steps; ++step) {
    const T f = (T(step) + T(0.37)) / steps, h = T(1) / 256; // off the knots that a kernel may have
    T above[width] = {}, below[width] = {}, slope[width] = {};
    Kernel::weights(f + h, above);
    Kernel::weights(f - h, below);
    Kernel::derivatives(f, slope);
    for (int i = 0; i < width; ++i) {
      const T difference = (above[i] - below[i]) / (2 * h) - slope[i];
      if (!(difference <= T(0.02) * largest && difference >= T(-0.02) * largest))
        return KernelFault::Slopes;
    }
  }
  return KernelFault::None;
}

/// Whether compilers can say so.
template <class Kernel, class T>
concept ConstexprKernel = requires {
  typename std::integral_constant<KernelFault, fault_of_numbers<Kernel, T>()>;
};

template <class Kernel, class T_>
constexpr KernelFault find_fault() {
  using T = std::conditional_t<std::is_same_v<T_, double>, double, float>;
  if constexpr (!HasWidth<Kernel>)
    return KernelFault::Type;
  else if constexpr (!HasRightWidth<Kernel>)
    return KernelFault::Width;
  else if constexpr (!InterpolationKernel<Kernel, T>)
    return KernelFault::Members;
  else if constexpr (ConstexprKernel<Kernel, T>)
    return fault_of_numbers<Kernel, T>();
  else
    return KernelFault::None;
}

/// The fault of a kernel that compilers find. None: only a run can tell (check_kernel).
template <class Kernel, class T = float>
inline constexpr KernelFault kernel_fault = find_fault<Kernel, T>();

/// Whether a type is an interpolation kernel.
template <class Kernel, class T = float>
inline constexpr bool is_kernel = kernel_fault<Kernel, T> == KernelFault::None;

/// What compilers have not found, looked for once.
/// @throws Error
template <class Kernel, class T>
void check_kernel(const char* function) {
  if constexpr (!ConstexprKernel<Kernel, T>) {
    static const KernelFault fault = fault_of_numbers<Kernel, T>();
    if (fault == KernelFault::Symmetry)
      fail(function, "Kernel", "an even kernel, weights(f)[i] = weights(1 - f)[width - 1 - i]", "another");
    if (fault == KernelFault::Edge)
      fail(function, "Kernel", "continuous weights that are zero at the edge, |x| = width/2", "others");
    if (fault == KernelFault::Slopes)
      fail(function, "Kernel", "derivatives that are the slopes of the weights", "others");
  }
}

} // namespace Impl
} // namespace Bracewell

// The sentences of a door that takes a kernel: one at most.
#define BRACEWELL_EXPECTS_KERNEL(fault, door)                                                                \
  static_assert(                                                                                             \
      fault != Bracewell::Impl::KernelFault::Type,                                                           \
      "Bracewell::" door ": Kernel: expected Linear, CatmullRom or CubicBSpline, found another "             \
      "type (precision is that of the Views; interpolation/kernel.hpp says what makes a kernel).");          \
  static_assert(fault != Bracewell::Impl::KernelFault::Width,                                                \
                "Bracewell::" door ": Kernel::width: expected an even number of taps from 2 to 16, found "   \
                "another.");                                                                                 \
  static_assert(fault != Bracewell::Impl::KernelFault::Members,                                              \
                "Bracewell::" door ": Kernel: expected weights(T f, T (&w)[width]) and derivatives(T f, T "  \
                "(&d)[width]), found no such members.");                                                     \
  static_assert(fault != Bracewell::Impl::KernelFault::Symmetry,                                             \
                "Bracewell::" door ": Kernel: expected an even kernel, weights(f)[i] = weights(1 - "         \
                "f)[width - 1 - i], found another.");                                                        \
  static_assert(fault != Bracewell::Impl::KernelFault::Edge,                                                 \
                "Bracewell::" door                                                                           \
                ": Kernel: expected continuous weights that are zero at the edge, |x| = width/2, "           \
                "found others.");                                                                            \
  static_assert(fault != Bracewell::Impl::KernelFault::Slopes,                                               \
                "Bracewell::" door ": Kernel: expected derivatives that are the slopes of the weights, "     \
                "found others.")
