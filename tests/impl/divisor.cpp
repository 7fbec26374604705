// Division by products: exact for every number below 2^31.

#include <bracewell/impl/division.hpp>

#include <catch2/catch_test_macros.hpp>

#include <random>
#include <vector>

using Bracewell::Impl::Divisor;

TEST_CASE("quotients and remainders are exact") {
  const std::uint32_t most = (1u << 31) - 1;
  std::mt19937 engine(3);
  std::vector<std::uint32_t> divisors{1,   2,    3,    5,    7,        9,    17,      65,
                                      641, 2047, 2048, 2049, most - 1, most, 1u << 31};
  for (int i = 0; i < 300; ++i)
    divisors.push_back(1 + (engine() % most >> engine() % 31));
  for (const std::uint32_t d : divisors) {
    const Divisor divisor(d);
    std::vector<std::uint32_t> numbers{0, 1, most, most - 1, d - 1, d, d + 1, most / d * d, most / d * d - 1};
    for (int i = 0; i < 300; ++i) {
      numbers.push_back(engine());
      numbers.push_back(engine() % (most / d + 1) * d); // multiples, and what is just below
      numbers.push_back(numbers.back() - 1);
    }
    bool exact = true;
    for (std::uint32_t number : numbers) {
      number &= most;
      std::uint32_t remainder = number;
      exact = exact && divisor.quotient(number) == number / d && divisor.divide(remainder) == number / d &&
              remainder == number % d;
    }
    CAPTURE(d);
    CHECK(exact);
  }
}
