#include <bracewell/fft/fast_size.hpp>

#include <catch2/catch_test_macros.hpp>

using Bracewell::next_fast_size;

TEST_CASE("fast sizes have no prime factor above 7", "[fft]") {
  CHECK(next_fast_size(1) == 1);
  CHECK(next_fast_size(1, true) == 2);
  CHECK(next_fast_size(11) == 12);
  CHECK(next_fast_size(13) == 14);
  CHECK(next_fast_size(121) == 125);
  CHECK(next_fast_size(121, true) == 126);
  CHECK(next_fast_size(1025) == 1029); // 3 * 7^3
  CHECK(next_fast_size(1025, true) == 1050);
  for (std::int64_t n = 1; n < 500; ++n) {
    std::int64_t smooth = n; // by brute force over products
    for (bool found = false; !found; smooth += !found)
      for (std::int64_t a = 1; a <= smooth && !found; a *= 2)
        for (std::int64_t b = a; b <= smooth && !found; b *= 3)
          for (std::int64_t c = b; c <= smooth && !found; c *= 5)
            for (std::int64_t d = c; d <= smooth && !found; d *= 7)
              found = d == smooth;
    CHECK(next_fast_size(n) == smooth);
  }
  CHECK_THROWS_AS(next_fast_size(0), Bracewell::Error);
  CHECK_THROWS_AS(next_fast_size(-4), Bracewell::Error);
}
