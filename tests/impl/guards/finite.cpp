// SPDX-License-Identifier: MIT
// What -ffast-math and -Ofast must not take away: numbers that are not finite are told by their bits. Compiled with either,
// and without Catch2, whose headers know such numbers.
#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/project/detail/stencil.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string>

using namespace Bracewell::Impl;

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  failures += !holds;
  if (!holds)
    std::printf("failed: %s\n", what);
}

template <class Function>
bool throws(const Function& function) {
  try {
    function();
    return false;
  } catch (const std::exception& error) {
    return std::string(error.what()).find("expected") != std::string::npos;
  }
}

template <class T>
void check_type(const char* name) {
  // Read at run time, so that no compiler knows them.
  const T nan = static_cast<T>(std::strtod("nan", nullptr)),
          infinity = static_cast<T>(std::strtod("inf", nullptr)),
          least = static_cast<T>(std::strtod(sizeof(T) == 4 ? "1e-45" : "4e-324", nullptr)),
          most = std::numeric_limits<T>::max(), zero = static_cast<T>(std::strtod("-0", nullptr));
  for (const T value : {nan, -nan, infinity, -infinity})
    check(!is_finite(value), name);
  for (const T value : {least, -least, most, -most, zero, T(1)})
    check(is_finite(value) && !is_nan(value), name);
  check(is_nan(nan) && is_nan(-nan) && !is_nan(infinity) && !is_nan(-infinity), name);

  const Arguments arguments{"function"};
  for (const T value : {nan, infinity, -infinity}) {
    check(throws([&] { arguments.finite("a", value); }), "finite");
    check(throws([&] { arguments.positive("a", value); }), "positive");
    check(throws([&] { arguments.not_negative("a", value); }), "not_negative");
    check(throws([&] { arguments.within("a", value, T(-1), T(1)); }), "within");
  }
  check(throws([&] { arguments.at_least("a", nan, T(0)); }), "at_least");
  arguments.within("a", T(0.5), T(-1), T(1));
  arguments.positive("a", T(1));

  for (const T value : {nan, infinity, -infinity, T(1e30)}) { // the last is far out
    T position[2] = {T(1), value};
    check(!fold(Bracewell::HalfSpectrumLayout<2>{{16, 16}}, position), "fold");
  }
}

} // namespace

int main() {
  check_type<float>("float");
  check_type<double>("double");
  const double infinity = std::strtod("inf", nullptr);
  double points[] = {0.25, 0.5, std::strtod("nan", nullptr), 0.5, 0.25, infinity, -infinity, 0.5};
  PointLocations<double, 2> where{};
  where.points.data = points;
  where.points.strides[0] = 2, where.points.strides[1] = 1;
  where.grid.size[0] = where.grid.size[1] = 32;
  where.width = 4;
  double at[2];
  check(where.locate(0, at), "a finite point");
  for (int i = 1; i < 4; ++i)
    check(!where.locate(i, at), "a point that is not finite");
  return failures == 0 ? 0 : 1;
}
