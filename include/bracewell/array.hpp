// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array/detail/shape.hpp>

#include <Kokkos_Core.hpp>

#include <complex>
#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace Bracewell {

/// A half spectrum whose full width along the last axis is stated, because a View of W/2+1 columns cannot
/// tell 2(W/2) from 2(W/2)+1. A plain View means the even width.
/// \code
/// project(space, HalfSpectrum{reconstruction, 65}, poses, HalfSpectrum{projections, 65});
/// \endcode
/// (HalfSpectrum<float, 3> is another: the accessor for kernels of your own, rfft/layout.hpp.)
template <class View, int D>
struct HalfSpectrum {
  View view;          ///< of W/2+1 columns
  std::int64_t width; ///< W

  /// @param width_  of any integer type
  HalfSpectrum(const View& view_, std::integral auto width_)
      : view(view_), width(static_cast<std::int64_t>(width_)) {}
};

/// Reference to a contiguous row-major array of any rank: what a Kokkos::View of static rank converts to
/// where the rank is only known at run time. Its layout is LayoutRight, LayoutStride with strides of rows without
/// gaps (a part of a View), or any where the View has one axis. False when default-constructed, or made from a
/// View that is: an optional argument that is not given. An array without elements is given where its View is
/// allocated or has an extent other than 0. An Array keeps a temporary View alive. It does not keep a named View alive.
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

  /// The elements of a View, or of a HalfSpectrum, whose width is stated.
  /// @throws Error on gaps between its rows
  template <class Argument, class Given = std::remove_cvref_t<Argument>>
  // Not a copy: those are excluded. NOLINTNEXTLINE(bugprone-forwarding-reference-overload)
  requires(!std::is_base_of_v<Impl::ArrayShape, Given>) Array(Argument&& argument) {
    using View = Impl::view_of<Argument>;
    constexpr bool is_view = Kokkos::is_view_v<View>;
    static_assert(is_view, "Bracewell: expected a Kokkos::View (of memory of your own: an unmanaged one), "
                           "found another type.");
    if constexpr (is_view) {
      const View& view = Impl::view_in(argument);
      refer(view);
      if constexpr (!Kokkos::is_view_v<Given>) {
        width = argument.width;
        states_width = true;
      }
      if constexpr (!std::is_lvalue_reference_v<Argument>)
        if (view.use_count() > 0)
          keep_.view = std::make_shared<View>(view);
    }
  }

private:
  template <class View>
  [[gnu::cold]] void refer(const View& view) {
    using Wanted = std::remove_const_t<Value>;
    using Found = typename View::non_const_value_type;
    using Real = typename Impl::RealOf<Wanted>::type;
    using FoundReal = typename Impl::RealOf<Found>::type;
    constexpr bool complex = !std::is_same_v<Wanted, Real>, found_complex = !std::is_same_v<Found, FoundReal>;
    constexpr bool same = std::is_same_v<Wanted, Found>;
    constexpr bool std_complex = std::is_same_v<Found, std::complex<FoundReal>>;
    constexpr bool precision = complex == found_complex && std::is_floating_point_v<Real> &&
                               std::is_floating_point_v<FoundReal> && !std::is_same_v<Real, FoundReal>;
    constexpr bool writable = std::is_const_v<Value> || !std::is_const_v<typename View::value_type>;
    constexpr bool rows =
        View::rank() <= 1 || !std::is_same_v<typename View::array_layout, Kokkos::LayoutLeft>;
    constexpr bool accessible =
        Kokkos::SpaceAccessibility<MemorySpace, typename View::memory_space>::accessible;
    static_assert(!std_complex, "Bracewell: expected a View of Kokkos::complex, found std::complex (whose "
                                "memory is the same: reinterpret_cast its pointer).");
    static_assert(!precision || std_complex,
                  "Bracewell: expected one precision in all arguments, found float beside double.");
    static_assert(same || std_complex || precision || !complex || found_complex,
                  "Bracewell: expected a View of Kokkos::complex (a spectrum or waves), found real values.");
    static_assert(same || std_complex || precision || complex || !found_complex,
                  "Bracewell: expected a View of real values, found complex ones.");
    static_assert(same || std_complex || precision || complex != found_complex,
                  "Bracewell: expected a View of Array's type of values, found another type.");
    static_assert(writable, "Bracewell: expected a View of values that can be written, as outputs are, found "
                            "const ones.");
    static_assert(rows, "Bracewell: expected a View in row-major order (LayoutRight), found LayoutLeft.");
    static_assert(accessible,
                  "Bracewell: expected a View in memory that the execution space can access, found "
                  "another memory space.");
    static_assert(View::rank() <= max_rank, "Bracewell: expected a View of at most six axes, found more.");
    if constexpr (same && writable && rows && accessible && View::rank() <= max_rank) {
      data = view.data();
      rank = View::rank();
      std::int64_t strides[max_rank] = {};
      for (int axis = 0; axis < rank; ++axis) {
        extents[axis] = static_cast<std::int64_t>(view.extent(static_cast<std::size_t>(axis)));
        strides[axis] = static_cast<std::int64_t>(view.stride(static_cast<std::size_t>(axis)));
      }
      given = view.data() != nullptr || view.use_count() > 0;
      if (!finish(strides))
        refuse_gaps(view.label(), strides);
    }
  }
};

namespace Impl {

/// An Array of memory that a plan holds. A View that becomes one takes a compiler longer.
template <class MemorySpace, class Value, class... Extents>
Array<Value, MemorySpace> array_of(Value* data, Extents... extents) {
  Array<Value, MemorySpace> result;
  result.data = data;
  result.given = true;
  ((result.extents[result.rank++] = static_cast<std::int64_t>(extents)), ...);
  return result;
}

} // namespace Impl
} // namespace Bracewell
