#pragma once

#include "../deep_copy.hpp"

#include <Kokkos_Core.hpp>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace ReconstructTest {

using Space = Kokkos::DefaultExecutionSpace;

/// View of Value with batch axis and Dim axes, row-major.
template <class Value, int Dim>
using Batch = Kokkos::View<std::conditional_t<Dim == 2, Value***, Value****>, Kokkos::LayoutRight, Space>;

/// {(depth,) height, width} of a box; width() etc. from the end.
using Shape = std::vector<int>;

template <class Value, int Dim>
Batch<Value, Dim> make(std::int64_t batch, const Shape& shape) {
  if constexpr (Dim == 2)
    return Batch<Value, Dim>("values", batch, shape[0], shape[1]);
  else
    return Batch<Value, Dim>("values", batch, shape[0], shape[1], shape[2]);
}

inline Shape stored(Shape shape) {
  shape.back() = shape.back() / 2 + 1;
  return shape;
}

template <class View>
auto to_host(const View& view) {
  std::vector<typename View::non_const_value_type> values(view.size());
  const Kokkos::View<typename View::non_const_value_type*, Kokkos::HostSpace> host(values.data(),
                                                                                   values.size());
  const Kokkos::View<typename View::value_type*, typename View::memory_space> flat(view.data(), view.size());
  Test::deep_copy(host, flat);
  return values;
}

template <class View, class Values>
void from_host(const View& view, const Values& values) {
  std::vector<typename View::value_type> converted(values.begin(), values.end());
  const Kokkos::View<typename View::value_type*, Kokkos::HostSpace> host(converted.data(), converted.size());
  const Kokkos::View<typename View::value_type*, typename View::memory_space> flat(view.data(), view.size());
  Test::deep_copy(flat, host);
}

template <class View>
void fill_random(const View& view, int seed, double low = -1, double high = 1) {
  using Value = typename View::value_type;
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<Value> values(view.size());
  for (auto& value : values)
    if constexpr (std::is_floating_point_v<Value>)
      value = Value(uniform(engine));
    else
      value = Value(uniform(engine), uniform(engine));
  from_host(view, values);
}

/// Indices of element i of a box, slowest axis first.
inline Shape indices(std::int64_t i, const Shape& shape) {
  Shape index(shape.size());
  for (int axis = int(shape.size()) - 1; axis >= 0; --axis) {
    index[axis] = int(i % shape[axis]);
    i /= shape[axis];
  }
  return index;
}

inline std::int64_t elements(const Shape& shape) {
  std::int64_t product = 1;
  for (const int n : shape)
    product *= n;
  return product;
}

inline int frequency(int i, int n) { return i <= n / 2 ? i : i - n; }

template <class T>
constexpr double epsilon = double(std::numeric_limits<T>::epsilon());

/// Shell, multiplicity and |k|^2 of every stored element, from their definitions on the full spectrum.
struct Place {
  int shell, multiplicity;
  double squared;
};
inline std::vector<Place> places(const Shape& shape) {
  std::vector<Place> result;
  for (std::int64_t i = 0; i < elements(stored(shape)); ++i) {
    const Shape index = indices(i, stored(shape));
    double squared = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      squared += std::pow(double(frequency(index[axis], shape[axis])) * shape.back() / shape[axis], 2);
    // An element stands for itself and, unless that is stored too, its mate.
    const int x = index.back();
    result.push_back({int(std::floor(std::sqrt(squared) + 0.5)),
                      (shape.back() - x) % shape.back() > shape.back() / 2 ? 2 : 1, squared});
  }
  return result;
}

} // namespace ReconstructTest
