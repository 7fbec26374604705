// SPDX-License-Identifier: MIT
// Arrays of C as the library takes them, and execution space instances for queues.
#pragma once

#include "operators.hpp"

#include <bracewell/array.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace Bracewell::C {

template <Backend backend>
using SpaceOf = std::conditional_t<backend == Backend::Host, Kokkos::DefaultHostExecutionSpace,
                                   Kokkos::DefaultExecutionSpace>;

/// The device's instance for a stream: made once, as making one allocates.
Kokkos::DefaultExecutionSpace device_instance(void* stream);

template <Backend backend>
SpaceOf<backend> space_of(const bracewell_queue& queue) {
  if constexpr (backend == Backend::Host)
    return SpaceOf<backend>();
  else
    return device_instance(queue.stream);
}

template <class Value>
constexpr bracewell_type type_of = std::is_same_v<Value, float>                     ? BRACEWELL_FLOAT
                                   : std::is_same_v<Value, double>                  ? BRACEWELL_DOUBLE
                                   : std::is_same_v<Value, Kokkos::complex<float>>  ? BRACEWELL_COMPLEX_FLOAT
                                   : std::is_same_v<Value, Kokkos::complex<double>> ? BRACEWELL_COMPLEX_DOUBLE
                                                                                    : BRACEWELL_INT;

/// Checks what does not depend on the type of the values. Returns whether the array has gaps.
/// @throws Error on what is no array
bool check_array(const char* function, const char* argument, const bracewell_array& array,
                 bracewell_type expected, bool written);

/// The number of axes of an argument. @throws Error where it is not given
int rank_of(const char* function, const char* argument, const bracewell_array* array);

/// @throws Error where the array is not given, or has another number of axes
void expect_rank(const char* function, const char* argument, const bracewell_array* array, int rank,
                 const char* expected);
/// @throws Error where the ranks differ
void same_rank(const char* function, const char* argument, const bracewell_array* array,
               const bracewell_array* other);

template <class Value, int rank>
struct Starred {
  using type = typename Starred<Value, rank - 1>::type*;
};
template <class Value>
struct Starred<Value, 0> {
  using type = Value;
};

/// One element of an array with gaps to or from its place in a copy without.
template <class Value>
struct CopyElement {
  Value* strided;
  Value* packed;
  int rank;
  std::int64_t extents[6], strides[6];
  bool to_packed;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    std::int64_t rest = index, offset = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      offset += rest % extents[axis] * strides[axis];
      rest /= extents[axis];
    }
    if (to_packed)
      packed[index] = strided[offset];
    else
      strided[offset] = packed[index];
  }
};

/// What a call does with an array that it is given.
enum class Access { Overwrite, Update };

/// An argument of a call: the caller's memory, or a copy where that has gaps. A const Value is read.
template <class Value, class Space>
class Argument {
  using Mutable = std::remove_const_t<Value>;
  using Memory = typename Space::memory_space;
  static constexpr bool written = !std::is_const_v<Value>;

public:
  /// Not given where the pointer is null.
  Argument(const char* function, const char* name, const Space& space, const bracewell_array* given,
           Access access = Access::Overwrite)
      : space_(space) {
    if (!given)
      return;
    const bool gaps = check_array(function, name, *given, type_of<Mutable>, written);
    array_.data = static_cast<Mutable*>(given->data);
    array_.rank = given->rank;
    array_.given = true;
    for (int axis = 0; axis < given->rank; ++axis)
      array_.extents[axis] = given->extents[axis];
    array_.states_width = given->width > 0;
    array_.width =
        array_.states_width ? given->width : 2 * (given->extents[given->rank > 0 ? given->rank - 1 : 0] - 1);
    if (!gaps)
      return;
    strided_ = given;
    copy_ = Kokkos::View<Mutable*, Memory>(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::C::packed"),
        static_cast<std::size_t>(array_.size()));
    if (!written || access == Access::Update)
      copy(true);
    array_.data = copy_.data();
  }

  /// Copies what was written back, where the array has gaps, and waits for it.
  void finish() const {
    if (!strided_)
      return;
    if constexpr (written)
      copy(false);
    space_.fence("Bracewell::C: arrays with gaps are copied");
  }

  explicit operator bool() const { return array_.given; }
  const Array<Value, Memory>& array() const { return array_; }

  /// An unmanaged View of that rank, which was checked.
  template <int rank>
  auto view() const {
    using View = Kokkos::View<typename Starred<Value, rank>::type, Kokkos::LayoutRight, Memory,
                              Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    typename View::array_layout layout;
    for (int axis = 0; axis < rank; ++axis)
      layout.dimension[axis] = static_cast<std::size_t>(array_.extents[axis]);
    return View(array_.data, layout);
  }
  /// The same with its width.
  template <int rank>
  auto spectrum() const {
    return HalfSpectrum{view<rank>(), array_.width};
  }

private:
  void copy(bool to_packed) const {
    CopyElement<Mutable> element{
        static_cast<Mutable*>(strided_->data), copy_.data(), strided_->rank, {}, {}, to_packed};
    for (int axis = 0; axis < strided_->rank; ++axis) {
      element.extents[axis] = strided_->extents[axis];
      element.strides[axis] = strided_->strides[axis];
    }
    Kokkos::parallel_for(
        "Bracewell::C::copy",
        Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space_, 0, array_.size()), element);
  }

  Space space_;
  Array<std::conditional_t<written, Value, const Mutable>, Memory> array_;
  const bracewell_array* strided_ = nullptr;
  Kokkos::View<Mutable*, Memory> copy_;
};

/// What arguments have to do when a call ends.
template <class... Arguments>
void finish(const Arguments&... arguments) {
  (arguments.finish(), ...);
}

/// 0 is a default.
inline std::optional<double> unless_zero(double value) {
  return value == 0 ? std::nullopt : std::optional(value);
}

} // namespace Bracewell::C
