#include <bracewell/geometry/symmetry.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace Bracewell;

namespace {

double distance(const Matrix3<double>& a, const Matrix3<double>& b) {
  double largest = 0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      largest = std::max(largest, std::abs(a(i, j) - b(i, j)));
  return largest;
}

/// Distance of a matrix from the nearest of a group.
double distance(const std::vector<Matrix3<double>>& group, const Matrix3<double>& matrix) {
  double nearest = 10;
  for (const auto& element : group)
    nearest = std::min(nearest, distance(element, matrix));
  return nearest;
}

double determinant(const Matrix3<double>& m) {
  return m(0, 0) * (m(1, 1) * m(2, 2) - m(1, 2) * m(2, 1)) -
         m(0, 1) * (m(1, 0) * m(2, 2) - m(1, 2) * m(2, 0)) +
         m(0, 2) * (m(1, 0) * m(2, 1) - m(1, 1) * m(2, 0));
}

} // namespace

TEST_CASE("symmetry operators form groups of the right order", "[geometry]") {
  const std::pair<const char*, std::size_t> groups[] = {
      {"C1", 1}, {"C2", 2}, {"c7", 7}, {"C130", 130}, {"D1", 2},  {"D2", 4},  {"D7", 14},
      {"T", 12}, {"O", 24}, {"I", 60}, {"I1", 60},    {"I2", 60}, {"i3", 60}, {"I4", 60}};
  for (const auto& [name, order] : groups) {
    CAPTURE(name);
    const auto group = symmetry_operators(name);
    REQUIRE(group.size() == order);
    CHECK(distance(group[0], Matrix3<double>::identity()) == 0);
    for (std::size_t i = 0; i < order; ++i) {
      CHECK(distance(group[i] * transpose(group[i]), Matrix3<double>::identity()) < 1e-14);
      CHECK(std::abs(determinant(group[i]) - 1) < 1e-14);
      double nearest_other = 10;
      for (std::size_t j = 0; j < order; ++j) {
        if (i != j)
          nearest_other = std::min(nearest_other, distance(group[i], group[j]));
        if (order <= 60)
          CHECK(distance(group, group[i] * group[j]) < 1e-14);
      }
      CHECK(nearest_other > 0.034); // 2 pi / 130 / sqrt(2)
    }
  }
}

TEST_CASE("symmetry axes lie where RELION's do", "[geometry]") {
  // Operators as RELION 3.1 prints them (relion_refine --sym NAME --print_symmetry_ops), to its digits.
  CHECK(distance(symmetry_operators("C3"), {{{-0.5, 0.86602539, 0}, {-0.86602539, -0.5, 0}, {0, 0, 1}}}) <
        1e-7);
  CHECK(distance(symmetry_operators("D3"), {{{1, 0, 0}, {0, -1, 0}, {0, 0, -1}}}) < 1e-14);
  CHECK(distance(symmetry_operators("T"), {{{-0.5, 0.86602539, 0}, {-0.86602539, -0.5, 0}, {0, 0, 1}}}) <
        1e-7);
  CHECK(distance(symmetry_operators("T"), {{{-1, 0, 0}, {0, 0.33333, 0.942809}, {0, 0.942809, -0.33333}}}) <
        1e-5);
  CHECK(distance(symmetry_operators("O"), {{{0, 1, 0}, {0, 0, 1}, {1, 0, 0}}}) < 1e-14);
  CHECK(distance(symmetry_operators("O"), {{{0, 1, 0}, {-1, 0, 0}, {0, 0, 1}}}) < 1e-14);
  const Matrix3<double> five_fold_in_xz{
      {{0.5, 0.80902, 0.30902}, {-0.80902, 0.30902, 0.5}, {0.30902, -0.5, 0.80902}}};
  CHECK(distance(symmetry_operators("I"), five_fold_in_xz) < 1e-5);
  CHECK(distance(symmetry_operators("I2"), five_fold_in_xz) < 1e-5);
  CHECK(distance(symmetry_operators("I1"), five_fold_in_xz) > 0.1);
  CHECK(distance(symmetry_operators("I1"),
                 {{{0.80902, -0.5, -0.30902}, {0.5, 0.30902, 0.80902}, {-0.30902, -0.80902, 0.5}}}) < 1e-5);
  CHECK(distance(symmetry_operators("I1"), {{{1, 0, 0}, {0, -1, 0}, {0, 0, -1}}}) < 1e-14);
  const Matrix3<double> two_fold_at_negative_x{{{-0.44721, 0, -0.89443}, {0, -1, 0}, {-0.89443, 0, 0.44721}}};
  CHECK(distance(symmetry_operators("I3"), two_fold_at_negative_x) < 1e-5);
  CHECK(distance(symmetry_operators("I4"), two_fold_at_negative_x) > 0.1);
  CHECK(distance(symmetry_operators("I3"),
                 {{{0.309017, 0.95105654, 0}, {-0.95105654, 0.309017, 0}, {0, 0, 1}}}) < 1e-6);
  CHECK(distance(symmetry_operators("I4"), {{{-0.44721, 0, 0.89443}, {0, -1, 0}, {0.89443, 0, 0.44721}}}) <
        1e-5);
}

TEST_CASE("unknown symmetries are refused by name", "[geometry]") {
  for (const char* name :
       {"", "C", "C0", "D0", "D", "C-1", "C1000", "C3h", "I5", "TT", "X4", "C 3", "99999999999"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(symmetry_operators(name), Error);
  }
  try {
    symmetry_operators("I5");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("symmetry_operators") != std::string::npos);
    CHECK(std::string(error.what()).find("'I5'") != std::string::npos);
  }
}
