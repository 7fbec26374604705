// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/error.hpp>
#include <bracewell/half.hpp>

#include <Kokkos_Core.hpp>

#include <complex>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <memory>
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

  /// @param width_  of any integer type
  HalfSpectrum(const View& view_, std::integral auto width_)
      : view(view_), width(static_cast<std::int64_t>(width_)) {}
};

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

template <class Value>
struct RealOf<std::complex<Value>> { // which doors refuse
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

/// The View of an argument that is a View or a HalfSpectrum of one.
template <class View>
const View& view_in(const View& view) {
  return view;
}
template <class View>
const View& view_in(const HalfSpectrum<View>& spectrum) {
  return spectrum.view;
}

/// Whether an argument is a View, or a HalfSpectrum of one, of complex numbers.
template <class Argument>
inline constexpr bool is_complex = false;
template <class View>
requires Kokkos::is_view_v<View>
inline constexpr bool is_complex<View> =
    std::is_same_v<typename View::non_const_value_type, Kokkos::complex<real_of<View>>>;
template <class View>
inline constexpr bool is_complex<HalfSpectrum<View>> = is_complex<View>;

/// The same, or of HalfComplex.
template <class Argument>
inline constexpr bool is_spectrum =
    is_complex<Argument> || std::is_same_v<typename view_of<Argument>::non_const_value_type, HalfComplex>;

/// What an Array is without its values: checks that take it are compiled once for all of them.
struct ArrayShape {
  static constexpr int max_rank = 6;

  int rank = 0;
  std::int64_t extents[max_rank] = {};
  std::int64_t width = 0;    ///< full width of the last axis when the array is a half spectrum
  bool given = false;        ///< stands for a View, which may have no elements
  bool states_width = false; ///< by a HalfSpectrum

  /// Whether the argument is given.
  explicit operator bool() const { return given; }

  /// Number of elements.
  std::int64_t size() const {
    std::int64_t product = 1;
    for (int axis = 0; axis < rank; ++axis)
      product *= extents[axis];
    return product;
  }

  /// Keeps the shape alone.
  void forget_view() { keep_.view.reset(); }

  /// "[2, 3, 8, 5]", for messages.
  std::string shape() const { return list(extents).characters; }

  /// The same in memory of its own.
  struct Text {
    char characters[24 * max_rank];
  };
  Text shape_text() const { return list(extents); }

protected:
  /// A View without a name. Its end is no part of its callers', which have many arguments.
  struct Kept {
    std::shared_ptr<const void> view;

    Kept() = default;
    Kept(const Kept&) = default;
    Kept(Kept&&) = default;
    Kept& operator=(const Kept&) = default;
    Kept& operator=(Kept&&) = default;
    [[gnu::noinline]] ~Kept() {}
  };
  Kept keep_;

  /// What is left to do where extents are those of a View; whether the strides are those of rows without gaps.
  bool finish(const std::int64_t* strides) {
    std::int64_t step = 1;
    bool without_gaps = true;
    for (int axis = rank - 1; axis >= 0; --axis) {
      without_gaps = without_gaps && (extents[axis] <= 1 || strides[axis] == step);
      given = given || extents[axis] != 0;
      step *= extents[axis];
    }
    if (rank > 0)
      width = 2 * (extents[rank - 1] - 1);
    return without_gaps || step == 0;
  }

  [[noreturn, gnu::cold, gnu::noinline]] void refuse_gaps(const std::string& label,
                                                          const std::int64_t* strides) const {
    std::int64_t expected[max_rank], step = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      expected[axis] = step;
      step *= extents[axis];
    }
    throw Error(std::string("Bracewell: View '")
                    .append(label)
                    .append("' ")
                    .append(shape_text().characters)
                    .append(": expected rows without gaps, strides ")
                    .append(list(expected).characters)
                    .append(", found strides ")
                    .append(list(strides).characters));
  }

private:
  Text list(const std::int64_t* values) const {
    Text text = {"["};
    int length = 1;
    for (int axis = 0; axis < rank; ++axis)
      length += std::snprintf(text.characters + length, 23, axis ? ", %lld" : "%lld",
                              static_cast<long long>(values[axis]));
    text.characters[length] = ']';
    text.characters[length + 1] = '\0';
    return text;
  }
};

} // namespace Impl

/// Reference to a contiguous row-major array of any rank: what a Kokkos::View of static rank converts to
/// where the rank is only known at run time. Its layout is LayoutRight, LayoutStride with strides of rows without
/// gaps (a part of a View), or any where the View has one axis. False when default-constructed, or made from a
/// View that is: an optional argument that is not given. An array without elements is given where its View is
/// allocated or has an extent other than 0. Does not own a View that has a name; one that has none (a
/// temporary) lives as long as the Array.
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
        extents[axis] = static_cast<std::int64_t>(view.extent(axis));
        strides[axis] = static_cast<std::int64_t>(view.stride(axis));
      }
      given = view.data() != nullptr || view.use_count() > 0;
      if (!finish(strides))
        refuse_gaps(view.label(), strides);
    }
  }
};

} // namespace Bracewell
