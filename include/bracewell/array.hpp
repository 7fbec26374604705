// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/error.hpp>
#include <bracewell/half.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace Bracewell {

/// A half spectrum whose full width along the last axis is stated, because a View of W/2+1 columns cannot
/// tell 2(W/2) from 2(W/2)+1. A plain View means the even width.
/// \code
/// project(space, HalfSpectrum{reconstruction, 65}, poses, HalfSpectrum{projections, 65});
/// \endcode
template <class View>
struct HalfSpectrum {
  View view;          ///< of W/2+1 columns
  std::int64_t width; ///< W
};
/// Deduces the type of the View.
template <class View>
HalfSpectrum(View, int) -> HalfSpectrum<View>;

namespace Impl {

template <class Argument>
struct ViewOf {
  using type = Argument;
};
template <class View>
struct ViewOf<HalfSpectrum<View>> {
  using type = View;
};

template <class Value>
struct RealOf {
  using type = Value;
};
template <class Value>
struct RealOf<Kokkos::complex<Value>> {
  using type = Value;
};

template <>
struct RealOf<HalfComplex> {
  using type = float;
};

/// The View type of an argument that is a View or a HalfSpectrum of one.
template <class Argument>
using view_of = typename ViewOf<std::remove_cvref_t<Argument>>::type;

/// float for View<complex<float>...>, and so on.
template <class Argument>
using real_of = typename RealOf<typename view_of<Argument>::non_const_value_type>::type;

/// What a reconstruction is expected to be made of: HalfComplex where it is, else complex numbers.
template <class Argument>
using spectrum_value_of =
    std::conditional_t<std::is_same_v<typename view_of<Argument>::non_const_value_type, HalfComplex>,
                       HalfComplex, Kokkos::complex<real_of<Argument>>>;

/// What an Array is without its values: checks that take it are compiled once for all of them.
struct ArrayShape {
  static constexpr int max_rank = 6;

  int rank = 0;
  std::int64_t extents[max_rank] = {};
  std::int64_t width = 0; ///< full width of the last axis when the array is a half spectrum
  bool given = false;     ///< stands for a View, which may have no elements

  /// Whether the argument is given.
  explicit operator bool() const { return given; }

  /// Number of elements.
  std::int64_t size() const {
    std::int64_t product = 1;
    for (int axis = 0; axis < rank; ++axis)
      product *= extents[axis];
    return product;
  }

  /// "[2, 3, 8, 5]", for messages.
  std::string shape() const {
    std::string text = "[";
    for (int axis = 0; axis < rank; ++axis) {
      text += axis ? ", " : "";
      text += std::to_string(extents[axis]);
    }
    text += "]";
    return text;
  }
};

} // namespace Impl

/// Reference to a contiguous row-major array of any rank: what a Kokkos::View of static rank converts to
/// where the rank is only known at run time. False when default-constructed, or made from a View that is: an
/// optional argument that is not given. An array without elements is given where its View is allocated or has
/// an extent other than 0. Does not own.
template <class Value, class MemorySpace>
struct Array : Impl::ArrayShape {
  Value* data = nullptr; ///< the first element

  /// An argument that is not given.
  Array() = default;

  /// The same array, read only.
  template <class Mutable>
  requires(std::is_const_v<Value>&& std::is_same_v<Mutable, std::remove_const_t<Value>>)
      Array(const Array<Mutable, MemorySpace>& other)
      : Impl::ArrayShape(other), data(other.data) {}

  /// The elements of a View.
  /// @throws Error on gaps between its rows
  template <class View>
  requires Kokkos::is_view_v<View> Array(const View& view) : data(view.data()) {
    static_assert(std::is_same_v<typename View::array_layout, Kokkos::LayoutRight>,
                  "Bracewell: Views must be LayoutRight (row-major, last axis contiguous).");
    static_assert(
        std::is_same_v<typename View::non_const_value_type, std::remove_const_t<Value>>,
        "Bracewell: the View's value type differs from the one expected here: use the same precision for all "
        "arguments, Kokkos::complex for spectra, real values for weights, matrices and shifts.");
    static_assert(std::is_const_v<Value> || !std::is_const_v<typename View::value_type>,
                  "Bracewell: an output must be a View of non-const values.");
    static_assert(bool(Kokkos::SpaceAccessibility<MemorySpace, typename View::memory_space>::accessible),
                  "Bracewell: the View must lie in memory that the execution space can access.");
    static_assert(View::rank() <= max_rank, "Bracewell: Views have at most six axes.");
    rank = View::rank();
    given = view.data() != nullptr || view.use_count() > 0;
    for (int axis = 0; axis < rank; ++axis) {
      extents[axis] = static_cast<std::int64_t>(view.extent(axis));
      given = given || extents[axis] != 0;
    }
    if (rank > 0)
      width = 2 * (extents[rank - 1] - 1);
    if (!view.span_is_contiguous())
      throw Error("Bracewell: View '" + view.label() +
                  "': expected contiguous memory, found gaps between its rows");
  }

  /// The elements of a half spectrum whose width is stated.
  template <class View>
  Array(const HalfSpectrum<View>& spectrum) : Array(spectrum.view) {
    width = spectrum.width;
  }
};

} // namespace Bracewell
