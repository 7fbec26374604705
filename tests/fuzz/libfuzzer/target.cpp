// SPDX-License-Identifier: MIT
// One target for libFuzzer: HEADER is its header, TARGET its function.
#include HEADER

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fuzz::TARGET({data, size});
  return 0;
}
