// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/error.hpp>
#include <bracewell/half.hpp>

#include <Kokkos_Core.hpp>

#include <complex>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <type_traits>

namespace Bracewell {

template <class View, int D = 0>
struct HalfSpectrum;

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
} // namespace Bracewell
