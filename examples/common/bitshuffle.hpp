// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>

namespace Bracewell::Examples {

/// Number of the filter among those of HDF5.
inline constexpr int bitshuffle_filter = 32008;

/// Undoes bitshuffle with LZ4 (Masui et al., Astronomy and Computing 12, 2015), as the HDF5 filter of that name stores a
/// chunk: blocks of some thousand values, of which first all lowest bits are stored, then all second ones and so on, each
/// compressed by itself. Values of `value_bytes` each. Returns false for bytes that are not such a chunk of this size.
bool unpack_bitshuffle(std::span<const std::byte> packed, std::size_t value_bytes,
                       std::span<std::byte> values);

} // namespace Bracewell::Examples
