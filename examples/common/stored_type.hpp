// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

/// How files store values.
namespace Bracewell::Examples {

enum class StoredType { Int8, UInt8, Int16, UInt16, Int32, UInt32, Float16, Float32, Float64 };

constexpr std::int64_t bytes_of(StoredType type) {
  switch (type) {
  case StoredType::Int8:
  case StoredType::UInt8:
    return 1;
  case StoredType::Int16:
  case StoredType::UInt16:
  case StoredType::Float16:
    return 2;
  case StoredType::Float64:
    return 8;
  default:
    return 4;
  }
}

struct StoredFormat {
  StoredType type = StoredType::Float32;
  bool swapped = false; ///< the bytes are in the other order than the machine's

  bool operator==(const StoredFormat&) const = default;
  bool is_float() const { return type == StoredType::Float32 && !swapped; }
};

} // namespace Bracewell::Examples
