// SPDX-License-Identifier: MIT
#include "bitshuffle.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace Bracewell::Examples {
namespace {

using Bytes = std::span<const std::byte>;

/// Takes bytes from the front; what is asked for beyond the end is an error that is remembered.
class Input {
public:
  explicit Input(Bytes bytes) : bytes_(bytes) {}

  bool good() const { return good_; }
  bool empty() const { return bytes_.empty(); }
  Bytes take(std::size_t count) {
    good_ = good_ && count <= bytes_.size();
    const Bytes taken = bytes_.first(good_ ? count : 0);
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  std::size_t byte() {
    const Bytes taken = take(1);
    return taken.empty() ? 0 : std::to_integer<std::size_t>(taken[0]);
  }
  /// Big-endian.
  std::uint64_t integer(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value = value << 8 | byte();
    return value;
  }

private:
  Bytes bytes_;
  bool good_ = true;
};

/// A block of LZ4 (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md), of which the length of the values is
/// known: literal bytes and copies of earlier ones in turn.
bool unpack_lz4(Bytes packed, std::span<std::byte> values) {
  Input input(packed);
  const auto length = [&](std::size_t field) { // 15 and more go on in bytes of their own
    for (std::size_t more = field == 15 ? 255 : 0; more == 255 && input.good(); field += more)
      more = input.byte();
    return field;
  };
  std::size_t at = 0;
  while (!input.empty()) {
    const std::size_t token = input.byte();
    const Bytes literals = input.take(length(token >> 4));
    if (!input.good() || literals.size() > values.size() - at)
      return false;
    std::ranges::copy(literals, values.begin() + static_cast<std::ptrdiff_t>(at));
    at += literals.size();
    if (input.empty())
      break; // the last ones are copied by nothing
    const std::size_t low = input.byte(), back = low | input.byte() << 8, count = length(token & 15) + 4;
    if (!input.good() || back == 0 || back > at || count > values.size() - at)
      return false;
    std::byte* const to = values.data() + at;
    if (back >= count)
      std::memcpy(to, to - back, count);
    else // a pattern that repeats
      for (std::size_t i = 0; i < count; ++i)
        to[i] = to[static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(back)];
    at += count;
  }
  return at == values.size();
}

/// Rows and columns of 8 x 8 bits change places (Warren, Hacker's Delight, 2012, 7-3).
std::uint64_t transposed(std::uint64_t bits) {
  const auto exchange = [&bits](int distance, std::uint64_t mask) {
    const std::uint64_t change = (bits ^ bits >> distance) & mask;
    bits ^= change ^ change << distance;
  };
  exchange(7, 0x00aa00aa00aa00aau);
  exchange(14, 0x0000cccc0000ccccu);
  exchange(28, 0x00000000f0f0f0f0u);
  return bits;
}

/// Planes of bits [8 value_bytes, count / 8] to values.
void join_bits(Bytes planes, std::size_t value_bytes, std::span<std::byte> values) {
  const std::size_t plane = values.size() / value_bytes / 8;
  for (std::size_t byte = 0; byte < value_bytes; ++byte)
    for (std::size_t i = 0; i < plane; ++i) {
      std::uint64_t bits = 0;
      for (std::size_t bit = 0; bit < 8; ++bit)
        bits |= std::to_integer<std::uint64_t>(planes[(8 * byte + bit) * plane + i]) << 8 * bit;
      bits = transposed(bits);
      for (std::size_t value = 0; value < 8; ++value)
        values[(8 * i + value) * value_bytes + byte] = static_cast<std::byte>(bits >> 8 * value);
    }
}

} // namespace

bool unpack_bitshuffle(Bytes packed, std::size_t value_bytes, std::span<std::byte> values) {
  Input input(packed);
  const std::uint64_t size = input.integer(8), block = input.integer(4);
  const std::size_t eight = 8 * value_bytes; // values that a byte of a plane is of
  if (!input.good() || size != values.size() || block == 0 || block % eight != 0)
    return false;
  std::vector<std::byte> planes;
  while (values.size() >= eight) {
    const auto bytes = std::min<std::size_t>(block, values.size() / eight * eight);
    planes.resize(bytes);
    if (!unpack_lz4(input.take(input.integer(4)), planes) || !input.good())
      return false;
    join_bits(planes, value_bytes, values.first(bytes));
    values = values.subspan(bytes);
  }
  const Bytes rest = input.take(values.size()); // as it is
  std::ranges::copy(rest, values.begin());
  return input.good() && input.empty();
}

} // namespace Bracewell::Examples
