// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/half.hpp>

#include <cstdarg>
#include <cstdio>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace Bracewell::Impl {

/// A number as messages show it: six digits, or an exponent where it takes one (1e-07, not 0.000000).
struct Digits {
  char characters[32];

  template <class Number>
  [[gnu::cold]] explicit Digits(Number value) {
    if constexpr (std::is_integral_v<Number>)
      std::snprintf(characters, sizeof characters, "%lld", static_cast<long long>(value));
    else
      std::snprintf(characters, sizeof characters, "%.6g", static_cast<double>(value));
  }
};
template <class Number>
std::string number(Number value) {
  return Digits(value).characters;
}

/// A text by printf's rules. It takes compilers a fraction of the time that sums of strings take.
[[gnu::format(printf, 1, 2), gnu::cold]] inline std::string text(const char* format, ...) {
  char buffer[256];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

/// The memory of an argument; of one that is not given, none.
struct NamedMemory {
  const char* name;
  const char* begin;
  const char* end;

  template <class T, class MemorySpace>
  NamedMemory(const char* argument, const Array<T, MemorySpace>& array)
      : NamedMemory(argument, array, array.data, sizeof(T)) {}
  [[gnu::noinline]] NamedMemory(const char* argument, const ArrayShape& array, const void* data,
                                std::size_t bytes)
      : name(argument), begin(static_cast<const char*>(data)),
        end(begin + (begin ? array.size() * std::int64_t(bytes) : 0)) {}

  NamedMemory(const char* argument, const void* memory, std::size_t bytes)
      : name(argument), begin(static_cast<const char*>(memory)), end(begin + bytes) {}

  bool overlaps(const NamedMemory& other) const {
    return begin != end && other.begin != other.end && begin < other.end && other.begin < end;
  }
};

/// Checks the arguments of a function that the user called; every failure is an Error that names the function
/// and the argument. Texts are made only where there is an error: a dozen of them takes as long as a launch.
struct Arguments {
  const char* function; ///< without "Bracewell::"

  /// `expected` and `found`: texts, or functions that make them.
  template <class Expected, class Found>
  void require(bool holds, const char* argument, const Expected& expected, const Found& found) const {
    if (!holds)
      fail(function, argument, text_of(expected), text_of(found));
  }

  /// Throws that Error, its texts by printf's rules: refuse("poses", "%d axes, found %s", ...). Callers have no strings to
  /// destroy then, which takes compilers a fraction of the time.
  [[noreturn, gnu::cold, gnu::noinline, gnu::format(printf, 3, 4)]] void
  refuse(const char* argument, const char* expected_and_found, ...) const {
    char buffer[512];
    std::va_list values;
    va_start(values, expected_and_found);
    std::vsnprintf(buffer, sizeof buffer, expected_and_found, values);
    va_end(values);
    const std::string_view words = buffer, between = ", found ";
    const std::size_t end = words.find(between);
    const bool both = end != words.npos;
    throw Error(function, argument, std::string(words.substr(0, end)),
                both ? std::string(words.substr(end + between.size())) : "");
  }

  void given(const char* argument, const ArrayShape& array) const {
    if (!array)
      fail(function, argument, "an allocated View", "an empty one");
  }

  /// An array of this shape.
  void shape(const char* argument, const ArrayShape& array,
             std::initializer_list<std::int64_t> extents) const {
    ArrayShape wanted;
    for (const std::int64_t extent : extents)
      wanted.extents[wanted.rank++] = extent;
    same_shape(argument, array, wanted);
  }

  /// An array of the shape of another; of half spectra, of the same width, too.
  void same_shape(const char* argument, const ArrayShape& array, const ArrayShape& like) const {
    if (!same(array, like))
      refuse(argument, "%s, found %s", like.shape_text().characters, array.shape_text().characters);
  }
  void same_spectrum(const char* argument, const ArrayShape& array, const ArrayShape& like) const {
    if (!same(array, like) || array.width != like.width)
      refuse(argument, "%s (width %lld), found %s (width %lld)", like.shape_text().characters,
             static_cast<long long>(like.width), array.shape_text().characters,
             static_cast<long long>(array.width));
  }

  /// A half spectrum of `dimensions` axes says which of two widths it has: one whose other axes are all of the
  /// odd one means it, most likely, and has to state it.
  void clear_width(const char* argument, const ArrayShape& array, int dimensions) const {
    const std::int64_t odd = 2 * array.extents[array.rank - 1] - 1;
    bool asks = !array.states_width && array.width != odd && odd > 1;
    for (int axis = array.rank - dimensions; asks && axis < array.rank - 1; ++axis)
      asks = array.extents[axis] == odd;
    if (asks)
      refuse(argument,
             "a stated width, HalfSpectrum{view, %lld} or HalfSpectrum{view, %lld}, found a View %s alone",
             static_cast<long long>(odd), static_cast<long long>(odd - 1), array.shape_text().characters);
  }

  /// By the bits: comparisons with what is no number may be taken away (is_finite).
  template <class Number>
  static bool is_number(Number value) {
    if constexpr (std::is_floating_point_v<Number>)
      return !is_nan(double(value));
    else
      return true;
  }
  /// low <= value <= high; not a number is out of range.
  template <class Number>
  void within(const char* argument, Number value, Number low, Number high, const char* unit = "") const {
    if (!(is_number(value) && value >= low && value <= high))
      refuse(argument, "from %s to %s%s, found %s", Digits(low).characters, Digits(high).characters, unit,
             Digits(value).characters);
  }
  template <class Number>
  void at_least(const char* argument, Number value, Number low) const {
    if (!(is_number(value) && value >= low))
      refuse(argument, "at least %s, found %s", Digits(low).characters, Digits(value).characters);
  }
  template <class Number>
  void positive(const char* argument, Number value) const {
    if (!(is_number(value) && value > 0 && static_cast<double>(value) <= 1e30))
      refuse(argument, "a finite value > 0, found %s", Digits(value).characters);
  }
  template <class Number>
  void not_negative(const char* argument, Number value) const {
    if (!(is_number(value) && value >= 0 && static_cast<double>(value) <= 1e30))
      refuse(argument, "a finite value >= 0, found %s", Digits(value).characters);
  }
  template <class Number>
  void finite(const char* argument, Number value) const {
    if (!is_finite(double(value)))
      refuse(argument, "a finite value, found %s", Digits(value).characters);
  }

  /// Memory for `needed` values at a multiple of `alignment` bytes, by default that of complex numbers.
  template <class T, class MemorySpace>
  void scratch(const char* argument, const Array<T, MemorySpace>& array, std::int64_t needed,
               const char* purpose, std::size_t alignment = alignof(Kokkos::complex<T>)) const {
    const bool aligned = reinterpret_cast<std::uintptr_t>(array.data) % alignment == 0;
    if (needed > 0 && !(array && aligned && array.size() >= needed))
      refuse(argument, "%lld aligned values %s, found %lld", static_cast<long long>(needed), purpose,
             static_cast<long long>(array ? array.size() : 0));
  }

  /// Outputs must share memory neither with each other nor with an input.
  void disjoint(std::span<const NamedMemory> outputs, std::span<const NamedMemory> inputs) const {
    for (std::size_t output = 0; output < outputs.size(); ++output) {
      for (const NamedMemory& input : inputs)
        apart(outputs[output], input);
      for (std::size_t other = 0; other < output; ++other)
        apart(outputs[output], outputs[other]);
    }
  }
  void disjoint(std::initializer_list<NamedMemory> outputs, std::initializer_list<NamedMemory> inputs) const {
    disjoint(std::span(outputs.begin(), outputs.size()), std::span(inputs.begin(), inputs.size()));
  }

private:
  template <class Text>
  static std::string text_of(const Text& one) {
    if constexpr (std::is_invocable_v<Text>)
      return one();
    else
      return one;
  }

  static bool same(const ArrayShape& array, const ArrayShape& like) {
    bool equal = bool(array) && array.rank == like.rank;
    for (int axis = 0; equal && axis < array.rank; ++axis)
      equal = array.extents[axis] == like.extents[axis];
    return equal;
  }

  void apart(const NamedMemory& output, const NamedMemory& other) const {
    if (output.overlaps(other))
      refuse(output.name, "memory of its own, found memory shared with %s", other.name);
  }
};

} // namespace Bracewell::Impl
