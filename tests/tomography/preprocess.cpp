// SPDX-License-Identifier: MIT
// From raw frames to sinograms: normalisation, stripes, the rotation axis.
#include "../deep_copy.hpp"
#include "phantom.hpp"

#include <bracewell/tomography/angle_weights.hpp>
#include <bracewell/tomography/find_centre.hpp>
#include <bracewell/tomography/half_acquisition.hpp>
#include <bracewell/tomography/preprocess.hpp>
#include <bracewell/tomography/stripes.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <numeric>

using namespace TomographyTest;
using namespace Bracewell;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

std::size_t at(int value) { return static_cast<std::size_t>(value); }

template <class T>
using Frames = Kokkos::View<T**, Kokkos::LayoutRight, Space>;

template <class T>
Frames<T> frames(const Values& values, int columns) {
  const auto volume = to_device<T>(values, static_cast<int>(values.size()) / columns, columns);
  const Frames<T> result("frames", volume.extent(1), volume.extent(2));
  Test::deep_copy(result, Kokkos::subview(volume, 0, Kokkos::ALL, Kokkos::ALL));
  return result;
}

/// A head with everything in the field of view, as one sinogram.
Values head(int n, const Values& angles, double centre) {
  return sinogram(shepp_logan(0.35 * n), n, angles, centre);
}

} // namespace

TEMPLATE_TEST_CASE("raw frames become sinograms of attenuation", "", float, double) {
  const Space space;
  const int P = 5, S = 3, n = 7;
  const Values attenuation = random_values(P * S * n, 0, 2), dark = random_values(S * n, 10, 20, 2),
               flat = random_values(S * n, 900, 1000, 3);
  Values raw, expected(attenuation.size());
  for (std::size_t p = 0; p < P; ++p)
    for (std::size_t z = 0; z < S; ++z)
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t pixel = z * n + i;
        raw.push_back(dark[pixel] + (flat[pixel] - dark[pixel]) * std::exp(-attenuation[p * S * n + pixel]));
        expected[(z * P + p) * n + i] = attenuation[p * S * n + pixel];
      }
  const auto out = to_device<TestType>(Values(expected.size(), NAN), P, n);
  const auto in = to_device<TestType>(raw, S, n);
  normalise_projections(space, in, frames<TestType>(dark, n), frames<TestType>(flat, n), out);
  CHECK(relative_error(to_host(out), expected) < 20 * rounding<TestType>);
  // Values that are attenuation already are only transposed.
  normalise_projections(space, to_device<TestType>(attenuation, S, n), Frames<TestType>(), Frames<TestType>(),
                        out, {.logarithm = false});
  CHECK(relative_error(to_host(out), expected) < rounding<TestType>);
}

TEST_CASE("values that say nothing lie on a line between those around them") {
  const Space space;
  const double e = std::exp(-1.0);
  const auto normalised = [&](const Values& row, ProjectionNormalisation options = {}) {
    const int n = static_cast<int>(row.size());
    const auto out = to_device<double>(Values(row.size()), 1, n);
    normalise_projections(space, to_device<double>(row, 1, n), Frames<double>(), Frames<double>(), out,
                          options);
    return to_host(out);
  };
  CHECK(relative_error(normalised({NAN, e, 0, -1, std::exp(-4.0), INFINITY}), {1, 1, 2, 3, 4, 4}) < 1e-15);
  CHECK(normalised({0, NAN, -2}) == Values{0, 0, 0});
  CHECK(normalised({0, -2, NAN, 4}, {.logarithm = false}) == Values{0, -2, 1, 4});
  // Air: 2 is no attenuation here.
  CHECK(relative_error(normalised({2 * e, NAN, 2, 2}, {.air_begin = 1, .air_end = 4}), {1, 0.5, 0, 0}) <
        1e-15);
  // Without logarithm it is taken off, whatever its sign.
  for (const double offset : {0.5, -7.0, 0.0})
    CHECK(normalised({offset + 3, NAN, offset, offset}, {.logarithm = false, .air_begin = 2, .air_end = 4}) ==
          Values{3, 1.5, 0, 0});
  // A pixel without light in the flat field.
  const auto out = to_device<double>(Values(3), 1, 3);
  normalise_projections(space, to_device<double>({1, 7, e}, 1, 3), frames<double>({0, 5, 0}, 3),
                        frames<double>({1, 5, 1}, 3), out);
  CHECK(relative_error(to_host(out), {0, 0.5, 1}) < 1e-15);
}

TEMPLATE_TEST_CASE("what is no data is marked, and is not read where stripes are removed", "", float,
                   double) {
  const Space space;
  const int n = 160, P = 130, S = 2;
  const double e = std::exp(-1.0);
  const auto out = to_device<TestType>(Values(5), 1, 5), valid = to_device<TestType>(Values(5, NAN), 1, 5);
  normalise_projections(space, to_device<TestType>({e, NAN, 0, e * e, INFINITY}, 1, 5), Frames<TestType>(),
                        Frames<TestType>(), out, {}, valid);
  CHECK(to_host(valid) == Values{1, 0, 0, 1, 0});
  CHECK(relative_error(to_host(out), {1, 4. / 3, 5. / 3, 2, 2}) < 20 * rounding<TestType>);
  normalise_projections(space, to_device<TestType>({1, NAN, 0, -1, 2}, 1, 5), Frames<TestType>(),
                        Frames<TestType>(), out, {.logarithm = false}, valid);
  CHECK(to_host(valid) == Values{1, 0, 1, 1, 1}); // attenuation of 0 and less is data
  CHECK_THROWS_MATCHES(normalise_projections(space, to_device<TestType>(Values(5), 1, 5), Frames<TestType>(),
                                             Frames<TestType>(), out, {},
                                             to_device<TestType>(Values(4), 1, 4)),
                       Error, MessageMatches(ContainsSubstring("valid: expected [1, 1, 5]")));

  // Three dead columns, one in the half of the views, values here and there, a whole view; two stripes that are data.
  Values marks(std::size_t(S * P * n), 1), values, garbage;
  for (int slice = 0; slice < S; ++slice)
    for (int p = 0; p < P; ++p)
      for (int i = 0; i < n; ++i)
        if ((i >= 30 && i < 33) || (i == 90 && p % 2 == slice) || (p * 7 + i * 13) % 97 == slice || p == 17)
          marks[at((slice * P + p) * n + i)] = 0;
  for (int slice = 0; slice < S; ++slice)
    for (const double value : head(n, even_angles(P), n / 2.0))
      values.push_back(value);
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] += k % n == 33 ? 3 : (k % n == 120 ? -2 : 0);
  garbage = values;
  for (std::size_t k = 0; k < values.size(); ++k)
    if (marks[k] == 0)
      values[k] = 1e6, garbage[k] = k / n % P == 17 ? 1e6 : NAN; // a row that is nowhere valid stays as it is
  const auto mask = to_device<TestType>(marks, P, n);
  for (const StripeMethod method :
       {StripeMethod::Offset, StripeMethod::Sorting, StripeMethod::All, StripeMethod::Wavelet})
    for (const double dead : {0., 3.}) {
      CAPTURE(int(method), dead);
      const StripeRemoval<Space, TestType> plan(space, P, n, {.method = method, .dead = dead});
      const auto removed = [&](const Values& from) {
        const auto view = to_device<TestType>(from, P, n);
        plan.execute(space, view, mask);
        return to_host(view);
      };
      const Values result = removed(values);
      CHECK(result == removed(garbage));
      double worst = 0;
      for (int row = 0; row < S * P; ++row) {
        if (row % P == 17)
          continue;
        for (int i = 0; i < n; ++i) {
          const auto valid_at = [&](int x) { return marks[at(row * n + x)] > 0; };
          if (valid_at(i))
            continue;
          int left = i, right = i;
          while (left >= 0 && !valid_at(left))
            --left;
          while (right < n && !valid_at(right))
            ++right;
          const double share = left < 0 ? 1 : (right >= n ? 0 : double(i - left) / (right - left)),
                       line = (left < 0 ? 0 : (1 - share) * result[at(row * n + left)]) +
                              (right >= n ? 0 : share * result[at(row * n + right)]);
          worst = std::max(worst, std::abs(result[at(row * n + i)] - line));
        }
      }
      CHECK(worst < 100 * rounding<TestType>);
    }
  const StripeRemoval<Space, TestType> plan(space, P, n);
  CHECK_THROWS_MATCHES(plan.execute(space, to_device<TestType>(values, P, n), to_device<TestType>({1}, 1, 1)),
                       Error, MessageMatches(ContainsSubstring("valid")));
}

TEST_CASE("stripes go and the object stays") {
  const Space space;
  const int n = 480, P = 400;
  const Values clean = head(n, even_angles(P), 240);
  const Values noise = random_values(clean.size(), -0.3, 0.3, 8);
  Values noisy(clean.size()), striped(clean.size());
  for (std::size_t k = 0; k < clean.size(); ++k) {
    const int i = static_cast<int>(k) % n, p = static_cast<int>(k) / n;
    noisy[k] = clean[k] + noise[k];
    striped[k] = noisy[k] + (i == 180 ? 9 : i == 303 ? -6 : i == 270 && p < 130 ? 7.5 : 0);
  }
  const auto error = [&](const Values& values, const StripeOptions& options, const Values& truth) {
    const auto view = to_device<float>(values, P, n);
    StripeRemoval<Space, float>(space, P, n, options).execute(space, view);
    return relative_error(to_host(view), truth);
  };
  const double before = relative_error(striped, noisy);
  const StripeOptions offset{.method = StripeMethod::Offset, .dead = 0}, sorting{.dead = 0};
  CHECK(error(striped, offset, noisy) < 0.8 * before);
  CHECK(error(striped, sorting, noisy) < 0.6 * before);
  CHECK(error(noisy, offset, noisy) < 0.3 * before);
  CHECK(error(noisy, sorting, noisy) < 0.6 * before);
  CHECK(error(clean, {.strength = 1e6, .window = 1}, clean) < 1e-6); // a good detector keeps all columns

  // A column that does not see anything, and one that flickers.
  Values broken = noisy;
  for (int p = 0; p < P; ++p) {
    broken[static_cast<std::size_t>(p * n + 210)] = 9;
    broken[static_cast<std::size_t>(p * n + 0)] = p % 2 ? 90 : -90;
  }
  const StripeOptions bridging{.method = StripeMethod::Offset};
  CHECK(error(broken, offset, noisy) > 0.05);
  CHECK(error(broken, bridging, noisy) < 0.02);
}

TEMPLATE_TEST_CASE("sorted columns are smoothed by medians, however many angles and slices", "", float,
                   double) {
  const Space space;
  const int n = 6, S = 20, window = 5;
  for (const int P : {1, 31, 700, 5000, 9000, 17000}) {
    CAPTURE(P);
    Values values = random_values(std::size_t(S) * P * n);
    for (double& value : values)
      value = std::round(64 * value) / 64; // equal ones keep the order of their angles
    const auto view = to_device<TestType>(values, P, n);
    const StripeOptions options{.window = window, .dead = 0};
    const StripeRemoval<Space, TestType> removal(space, P, n, options);
    CHECK(removal.memory_bytes() == StripeRemoval<Space, TestType>::bytes_needed(space, P, n, options));
    removal.execute(space, view);
    Values expected(values.size());
    for (std::size_t s = 0; s < S; ++s) {
      std::vector<std::pair<double, int>> columns[n];
      const auto at = [&](int p, int i) { return (s * P + std::size_t(p)) * n + std::size_t(i); };
      for (int i = 0; i < n; ++i) {
        for (int p = 0; p < P; ++p)
          columns[i].push_back({values[at(p, i)], p});
        std::ranges::sort(columns[i]);
      }
      for (int i = 0; i < n; ++i)
        for (std::size_t rank = 0; rank < std::size_t(P); ++rank) {
          std::vector<double> neighbours;
          for (int k = i - window / 2; k <= i + window / 2; ++k)
            neighbours.push_back(columns[k < 0 ? -k : k >= n ? 2 * (n - 1) - k : k][rank].first);
          std::ranges::nth_element(neighbours, neighbours.begin() + window / 2);
          expected[at(columns[i][rank].second, i)] = neighbours[window / 2];
        }
    }
    CHECK(to_host(view) == expected);
  }
}

namespace {

/// The columns of [angles, width], one by one; a value that is no number as infinity.
template <class T>
std::vector<std::vector<std::pair<T, int>>> sorted_columns(const std::vector<T>& values, int angles) {
  std::vector<std::vector<std::pair<T, int>>> result(values.size() / std::size_t(angles));
  for (std::size_t k = 0; k < values.size(); ++k)
    result[k / std::size_t(angles)].emplace_back(std::isnan(values[k]) ? T(INFINITY) : values[k],
                                                 static_cast<int>(k) % angles);
  for (auto& column : result)
    std::ranges::stable_sort(column, {}, &std::pair<T, int>::first);
  return result;
}

template <class T>
std::vector<std::vector<std::pair<T, int>>> pairs(const std::vector<T>& values,
                                                  const std::vector<int>& origins, int angles) {
  std::vector<std::vector<std::pair<T, int>>> result(values.size() / std::size_t(angles));
  for (std::size_t k = 0; k < values.size(); ++k)
    result[k / std::size_t(angles)].emplace_back(values[k], origins[k]);
  return result;
}

/// What a kernel asks of its team, of one lane.
struct OneLane {
  std::int64_t team;
  KOKKOS_FUNCTION int rank() const { return 0; }
  KOKKOS_FUNCTION std::int64_t number() const { return team; }
  KOKKOS_FUNCTION void barrier() const {}
};

} // namespace

TEMPLATE_TEST_CASE("columns that are too long for a team are sorted in parts, which are merged", "", float,
                   double) {
  using namespace Bracewell::Impl;
  using Host = Kokkos::DefaultHostExecutionSpace;
  using Teams = Kokkos::TeamPolicy<Host>;
  const Host space;
  constexpr int items = 8;
  using Sort = SortColumnByTeam<TestType, items>;
  const int columns = 6;
  for (const auto& [P, part] : {std::pair{1, 1}, {8, 8}, {9, 8}, {16, 8}, {61, 8}, {64, 8}, {129, 8}}) {
    CAPTURE(P);
    std::vector<TestType> values;
    for (const double value : random_values(std::size_t(columns) * P))
      values.push_back(TestType(std::round(8 * value) / 8)); // equal ones keep the order of their angles
    values[values.size() / 2] = TestType(NAN);
    const auto expected = sorted_columns(values, P);
    std::vector<TestType> from_values(values), to_values(values.size());
    std::vector<int> from_angles(values.size()), to_angles(values.size());
    RankedColumns<TestType> from{from_values.data(), from_angles.data()},
        to{to_values.data(), to_angles.data()};
    const auto found = [&, angles = P] { // clang 14 captures no structured binding
      return from.values == from_values.data() ? pairs(from_values, from_angles, angles)
                                               : pairs(to_values, to_angles, angles);
    };
    Kokkos::parallel_for("test",
                         Teams(space, columns * ((P - 1) / part + 1), 1)
                             .set_scratch_size(0, Kokkos::PerTeam(Sort::scratch_bytes(1))),
                         Sort{from.values, from, P, part}); // in place
    space.fence();
    for (int length = part; length < P; length *= 2, std::swap(from, to)) {
      const MergeSortedParts<TestType, items> merge{from, to, P, length};
      for (std::int64_t thread = 0; thread < columns * ((P - 1) / items + 1); ++thread)
        merge(thread);
    }
    CHECK(found() == expected);
  }
  CHECK(Sort::part_of(8192) == 8192);
  CHECK(Sort::part_of(8193) == 4104);
  CHECK(Sort::part_of(3 * 8192) == 8192);
}

TEMPLATE_TEST_CASE("medians on the chip are those of ranks", "", float, double) {
  using namespace Bracewell::Impl;
  const int S = 2;
  for (const auto& [P, n] : {std::pair{1, 1}, {7, 3}, {40, 9}, {33, 8}}) {
    CAPTURE(P, n);
    const auto random = random_values(std::size_t(S) * P * n);
    std::vector<TestType> sorted(random.begin(), random.end()), expected(random.size()), found(random.size());
    std::vector<int> angles(random.size());
    for (std::size_t column = 0; column < std::size_t(S) * n; ++column) {
      const auto begin = std::ptrdiff_t(column) * P;
      std::iota(angles.begin() + begin, angles.begin() + begin + P, 0);
      std::shuffle(angles.begin() + begin, angles.begin() + begin + P, std::mt19937(unsigned(column)));
      for (int rank = 0; rank < P; ++rank) {
        std::vector<TestType> around;
        for (int k = -2; k <= 2; ++k)
          around.push_back(
              sorted[(column / n * n + at(mirrored_column(int(column) % n + k, n))) * P + at(rank)]);
        std::ranges::nth_element(around, around.begin() + 2);
        expected[(column / n * P + at(angles[at(int(begin)) + at(rank)])) * n + column % n] = around[2];
      }
    }
    using Medians = MediansOnChip<TestType, 5, 4, 1, 1>;
    std::vector<TestType> scratch(Medians::bytes(P) / sizeof(TestType));
    const Medians medians{{found.data(), P, n}, {sorted.data(), angles.data()}};
    for (int team = 0; team < S * ((n - 1) / Medians::columns + 1); ++team)
      medians.run(OneLane{team}, scratch.data());
    CHECK(found == expected);
  }
}

TEST_CASE("medians of columns are taken on the chip where a team can have them there") {
  using namespace Bracewell::Impl;
  constexpr std::size_t chip = 232448; // of an NVIDIA H200
  CHECK(choose_stripe_medians<float>(5, 1447, chip) == StripeMedians::OnChip);
  CHECK(choose_stripe_medians<float>(5, 5790, chip) == StripeMedians::OnChipAlone);
  CHECK(choose_stripe_medians<float>(9, 9000, chip) == StripeMedians::ByRank);
  CHECK(choose_stripe_medians<double>(3, 1447, chip) == StripeMedians::OnChip);
  CHECK(choose_stripe_medians<float>(5, 1447, 0) == StripeMedians::ByRank); // hosts
  CHECK(choose_stripe_medians<float>(1, 1447, chip) == StripeMedians::Rolling);
  CHECK(choose_stripe_medians<float>(11, 1447, chip) == StripeMedians::Rolling);
}

TEST_CASE("offsets of detector columns are found by the equation they satisfy") {
  const Space space;
  const int n = 40, P = 6;
  const double strength = 0.1;
  const Values values = random_values(n * P);
  const auto view = to_device<double>(values, P, n);
  StripeRemoval<Space, double>(space, P, n, {.method = StripeMethod::Offset, .strength = strength, .dead = 0})
      .execute(space, view);
  const Values after = to_host(view);
  Values mean(n), offset(n);
  for (int k = 0; k < n * P; ++k)
    mean[static_cast<std::size_t>(k % n)] += values[static_cast<std::size_t>(k)] / P;
  for (std::size_t k = 0; k < after.size(); ++k) {
    const double here = values[k] - after[k];
    if (k < n)
      offset[k] = here;
    CHECK(std::abs(here - offset[k % n]) < 1e-14); // the same at every angle
  }
  for (std::size_t i = 0; i < n; ++i) { // D^T D (m - z) = strength z
    double left = 0;
    if (i > 0)
      left += mean[i] - offset[i] - mean[i - 1] + offset[i - 1];
    if (i + 1 < n)
      left += mean[i] - offset[i] - mean[i + 1] + offset[i + 1];
    CHECK(std::abs(left - strength * offset[i]) < 1e-13);
  }
}

TEST_CASE("the rotation axis is found where it is") {
  const Space space;
  for (const auto& [n, P, centre, first, span] : {std::tuple{256, 300, 120.3, 0.0, 180.0},
                                                  {255, 301, 140.75, -88.2, 180.0},
                                                  {700, 500, 352.5, 16740.0, 179.5},
                                                  {257, 400, 110.1, 10.0, 360.0}}) {
    CAPTURE(n, centre);
    const double degree = std::numbers::pi / 180;
    const Values angles = even_angles(P, span * degree, first * degree);
    const Values noise = random_values(static_cast<std::size_t>(n * P), -1, 1, 5);
    Values rows = head(n, angles, centre);
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] += noise[i];
    CHECK(std::abs(find_centre(space, frames<float>(rows, n), angles) - centre) < 0.25);
  }
}

TEMPLATE_TEST_CASE("an object that is round about the axis has its axis", "", float, double) {
  const Space space;
  for (const auto& [n, P, centre] :
       {std::tuple{121, 180, 60.0}, {121, 180, 57.25}, {101, 180, 50.3}, {400, 300, 205.6}})
    for (const double deviation : {0.0, 0.01, 0.5}) {
      CAPTURE(n, centre, deviation);
      const double radius = 0.3 * n;
      const Values angles = even_angles(P), noise = random_values(at(n * P), -1, 1, 7);
      Values rows(at(n * P));
      for (std::size_t k = 0; k < rows.size(); ++k) {
        const double x = double(k % at(n)) - centre;
        rows[k] = 2 * std::sqrt(std::max(radius * radius - x * x, 0.0)) + deviation * noise[k];
      }
      CHECK(std::abs(find_centre(space, frames<TestType>(rows, n), angles) - centre) < 0.25);
    }
}

TEST_CASE("angles in any order have the same axis") {
  const Space space;
  const int n = 200;
  Values angles = even_angles(240);
  std::shuffle(angles.begin(), angles.end(), std::mt19937(6));
  CHECK(std::abs(find_centre(space, frames<double>(head(n, angles, 96.5), n), angles) - 96.5) < 0.25);
}

TEMPLATE_TEST_CASE("values that are no data do not move the axis", "", float, double) {
  const Space space;
  const int n = 200, P = 240;
  for (const double span : {1., 2.}) { // half turns
    const Values angles = even_angles(P, span * std::numbers::pi);
    Values rows = head(n, angles, 96.5), marks(rows.size(), 1);
    for (int p = 0; p < P; ++p)
      for (int i = 0; i < n; ++i)
        if ((i >= 40 && i < 44) || i == 150 || (p * 7 + i * 13) % 41 == 0 || p == 17 || p == 18 || p == P - 1)
          marks[at(p * n + i)] = 0;
    const auto axis_of = [&](const Values& values, const Values& of_marks) {
      const auto sinogram = frames<TestType>(values, n), valid = frames<TestType>(of_marks, n);
      return span > 1 ? find_overlap(space, sinogram, angles, {}, valid)
                      : find_centre(space, sinogram, angles, {}, valid);
    };
    double found = 0;
    for (const double garbage : {1e4, double(NAN)}) {
      for (std::size_t k = 0; k < rows.size(); ++k)
        if (marks[k] == 0)
          rows[k] = garbage;
      const double axis = axis_of(rows, marks);
      CHECK(std::abs(axis - 96.5) < 0.25);
      if (found > 0)
        CHECK(axis == found);
      found = axis;
    }
    CHECK_THROWS_MATCHES(axis_of(rows, Values(rows.size())), Error,
                         MessageMatches(ContainsSubstring("valid: expected some values above 0")));
    CHECK_THROWS_MATCHES(axis_of(rows, Values(std::size_t(n))), Error,
                         MessageMatches(ContainsSubstring("valid: expected [240, 200]")));
  }
}

TEST_CASE("the search for the axis says how far it is") {
  const Space space;
  const int n = 150;
  const Values angles = even_angles(180);
  std::vector<double> shares;
  const CentreOptions options{.progress = [&](double share) { shares.push_back(share); }};
  const auto sinogram = frames<float>(head(n, angles, 71.5), n);
  CHECK(find_centre(space, sinogram, angles, options) == find_centre(space, sinogram, angles));
  REQUIRE(shares.size() >= 3); // one for each of three passes at least
  CHECK(std::ranges::is_sorted(shares));
  CHECK(shares.front() > 0);
  CHECK(shares.back() > 0.9);
  CHECK(shares.back() < 1 + 1e-9);
}

TEST_CASE("weights of angles are the shares of half a turn") {
  const double pi = std::numbers::pi;
  for (const double weight : angular_density_weights(even_angles(7, pi, 0.4)))
    CHECK(std::abs(weight - 1) < 1e-14);
  const Values weights = angular_density_weights({0, pi / 2, pi, 0.75 * pi}); // the first and third are one
  CHECK(std::abs(weights[1] - 1.5) < 1e-14);
  CHECK(std::abs(weights[3] - 1) < 1e-14);
  CHECK(std::abs(weights[0] + weights[2] - 1.5) < 1e-14);
  CHECK(angular_density_weights({3}) == Values{1});
}

TEST_CASE("wrong input to the preparation of sinograms is named") {
  const Space space;
  const auto matches = [](const char* text) { return MessageMatches(ContainsSubstring(text)); };
  const auto raw = to_device<float>(Values(24), 3, 4), out = to_device<float>(Values(24), 2, 4);
  const Frames<float> none, frame("frame", 3, 4), other("other", 2, 4);
  CHECK_THROWS_MATCHES(normalise_projections(space, raw, none, none, raw), Error,
                       matches("normalise_projections: sinograms: expected [3, 2, 4]"));
  CHECK_THROWS_MATCHES(normalise_projections(space, raw, none, other, out), Error,
                       matches("flat: expected [3, 4]"));
  CHECK_THROWS_MATCHES(normalise_projections(space, raw, frame, none, out), Error,
                       matches("flat: expected a View"));
  CHECK_THROWS_MATCHES(normalise_projections(space, raw, none, none, out, {.air_begin = 2, .air_end = 5}),
                       Error, matches("options.air_begin"));
  const Frames<float> part(out.data(), 3, 4);
  CHECK_THROWS_MATCHES(normalise_projections(space, raw, none, part, out), Error,
                       matches("sinograms: expected memory of its own, found memory shared with flat"));
  using Removal = StripeRemoval<Space, float>;
  CHECK_THROWS_MATCHES(Removal(space, 4, 4, {.window = 4}), Error, matches("options.window"));
  CHECK_THROWS_MATCHES(Removal(space, 4, 4, {.strength = 0}), Error, matches("options.strength"));
  CHECK_THROWS_MATCHES(Removal(space, 3, 4).execute(space, out), Error, matches("[slices, 3, 4]"));
  CHECK_THROWS_MATCHES(Removal(space, 0, 4), Error, matches("StripeRemoval: angles: expected at least 1"));
  const Frames<float> rows("rows", 20, 32);
  CHECK_THROWS_MATCHES(find_centre(space, rows, even_angles(19)), Error, matches("sinogram: expected [19"));
  CHECK_THROWS_MATCHES(find_centre(space, rows, even_angles(20, 2.0)), Error, matches("170 degrees"));
  CHECK_THROWS_MATCHES(find_centre(space, rows, even_angles(20), {.first = 20, .last = 10}), Error,
                       matches("options.first"));
  CHECK_THROWS_MATCHES(find_centre(space, rows, Values(20, NAN)), Error,
                       matches("find_centre: angles: expected a finite value, found nan"));
  CHECK_THROWS_MATCHES(find_centre(space, rows, even_angles(20), {.object_radius = NAN}), Error,
                       matches("options.object_radius"));
}

TEST_CASE("no slices and no angles are no work for the preparation of sinograms") {
  const Space space;
  const Frames<float> none, no_frame("no frame", 0, 4), frame("frame", 2, 4);
  using Slices = Kokkos::View<float***, Kokkos::LayoutRight, Space>;
  CHECK_NOTHROW(
      normalise_projections(space, Slices("raw", 3, 0, 4), no_frame, no_frame, Slices("out", 0, 3, 4)));
  CHECK_NOTHROW(normalise_projections(space, Slices("raw", 0, 2, 4), none, frame, Slices("out", 2, 0, 4)));
  CHECK_NOTHROW(StripeRemoval<Space, float>(space, 3, 4).execute(space, Slices("sinograms", 0, 3, 4)));
  CHECK(angular_density_weights({}).empty());
}
