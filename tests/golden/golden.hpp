// Golden data: PREFIX.json names arrays (name, dtype, shape, offset) in PREFIX.bin and lists cases.
#pragma once

#include "../deep_copy.hpp"

#include <Kokkos_Core.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace Golden {

using Json = nlohmann::json;
using Space = Kokkos::DefaultExecutionSpace;

/// An array of the golden file in double precision; complex arrays as (re, im) pairs.
struct Array {
  std::vector<std::size_t> shape;
  bool is_complex;
  std::vector<double> values;
};

class File {
public:
  explicit File(const std::string& prefix) {
    std::ifstream text(prefix + ".json");
    if (!text)
      throw std::runtime_error("cannot read " + prefix + ".json");
    index = Json::parse(text);
    std::ifstream blob(prefix + ".bin", std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(blob), {});
    for (const auto& entry : index.at("arrays")) {
      const std::string dtype = entry.at("dtype");
      const bool is_complex = dtype[0] == 'c';
      Array array{entry.at("shape"), is_complex, {}};
      const std::size_t offset = entry.at("offset"), length = entry.at("nbytes");
      if (offset + length > bytes.size())
        throw std::runtime_error(prefix + ".bin is shorter than its index says");
      const char* const begin = bytes.data() + offset;
      if (dtype == "f8" || dtype == "c16" || dtype == "f64" || dtype == "c128")
        array.values = numbers<double>(begin, length);
      else if (dtype == "f32" || dtype == "c64")
        array.values = numbers<float>(begin, length);
      else if (dtype == "i32")
        array.values = numbers<std::int32_t>(begin, length);
      else if (dtype == "u16")
        array.values = numbers<std::uint16_t>(begin, length);
      else
        continue;
      arrays_.emplace(entry.at("name"), std::move(array));
    }
  }

  const Array& operator[](const std::string& name) const { return arrays_.at(name); }

  Json index;

private:
  template <class Number>
  static std::vector<double> numbers(const char* begin, std::size_t length) {
    std::vector<Number> values(length / sizeof(Number));
    std::memcpy(values.data(), begin, length);
    return {values.begin(), values.end()};
  }

  std::map<std::string, Array> arrays_;
};

template <class Value>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<Kokkos::complex<T>> : std::true_type {};

/// A View of the given data type with the array's shape behind leading axes of extent 1.
template <class DataType>
auto view(const std::vector<std::size_t>& shape) {
  using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;
  std::size_t extents[8];
  for (std::size_t& extent : extents)
    extent = KOKKOS_INVALID_INDEX;
  const std::size_t leading = View::rank() - shape.size();
  for (std::size_t axis = 0; axis < View::rank(); ++axis)
    extents[axis] = axis < leading ? 1 : shape[axis - leading];
  return View("golden", extents[0], extents[1], extents[2], extents[3], extents[4], extents[5], extents[6],
              extents[7]);
}

/// A row of elements on the host.
template <class Value>
auto host_copy(const Kokkos::View<Value*, Space::memory_space, Kokkos::MemoryUnmanaged>& elements) {
  return Test::on_host(elements);
}

/// An array's values for all elements.
template <class Value>
void assign(const Kokkos::View<Value*, Space::memory_space, Kokkos::MemoryUnmanaged>& elements,
            const Array& array) {
  const auto host = Kokkos::create_mirror_view(elements);
  for (std::size_t i = 0; i < host.size(); ++i)
    if constexpr (IsComplex<Value>::value)
      host(i) =
          array.is_complex ? Value(array.values[2 * i], array.values[2 * i + 1]) : Value(array.values[i]);
    else
      host(i) = static_cast<Value>(array.values[i]);
  Test::deep_copy(elements, host);
}

template <class DataType>
auto load(const Array& array) {
  const auto result = view<DataType>(array.shape);
  assign(Test::row_of(result), array);
  return result;
}

template <class Value>
double error_of_elements(const Kokkos::View<Value*, Space::memory_space, Kokkos::MemoryUnmanaged>& elements,
                         const Array& expected) {
  const auto host = host_copy(elements);
  if (host.size() * (IsComplex<Value>::value ? 2 : 1) != expected.values.size())
    return INFINITY;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < host.size(); ++i) {
    if constexpr (IsComplex<Value>::value) {
      difference += std::pow(host(i).real() - expected.values[2 * i], 2) +
                    std::pow(host(i).imag() - expected.values[2 * i + 1], 2);
      norm += std::pow(expected.values[2 * i], 2) + std::pow(expected.values[2 * i + 1], 2);
    } else {
      difference += std::pow(host(i) - expected.values[i], 2);
      norm += std::pow(expected.values[i], 2);
    }
  }
  const double error = std::sqrt(difference / norm);
  return std::isfinite(error) ? error : INFINITY;
}

/// || result - expected || / || expected ||; not a number counts as infinite.
template <class View>
double relative_error(const View& result, const Array& expected) {
  return error_of_elements(Test::row_of(result), expected);
}

} // namespace Golden
