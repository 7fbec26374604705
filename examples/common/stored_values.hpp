// SPDX-License-Identifier: MIT
#pragma once

#include "stored_type.hpp"
#include "views.hpp"

#include <cstddef>
#include <cstdint>

/// Values as files store them, which travel to the device as bytes and become floats there.
namespace Bracewell::Examples {

/// Queues the conversion of stored values to floats; both pointers are to memory of the device, `stored` aligned to a
/// value. Float64 is rounded to float.
void to_floats(const Space& space, StoredFormat format, const std::byte* stored, float* values,
               std::int64_t count);

/// Queues the conversion of floats to Float16, rounded to nearest even; values of 65520 and more become infinite.
void to_halves(const Space& space, const float* values, std::uint16_t* stored, std::int64_t count);

} // namespace Bracewell::Examples
