// SPDX-License-Identifier: MIT
// Sums along lines in real space: against closed forms, sums in long-hand, transposes and finite differences.

#include "../deep_copy.hpp"
#include "../page_examples.hpp"

#include <bracewell/project/project_lines.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace Bracewell;
using Device = Kokkos::DefaultExecutionSpace;
template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Kokkos::HostSpace>;

template <class AnyView>
auto on_device(const AnyView& view) {
  return Test::on_device(view);
}

template <class AnyView>
void fill_random(const AnyView& view, unsigned seed, double scale = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(-scale, scale);
  for (std::size_t i = 0; i < view.size(); ++i)
    view.data()[i] = typename AnyView::value_type(uniform(engine));
}

using Rotation = std::array<double, 9>;

Rotation random_rotation(std::mt19937& engine) {
  std::normal_distribution<double> normal;
  double q[4], norm = 0;
  for (double& one : q)
    norm += std::pow(one = normal(engine), 2);
  for (double& one : q)
    one /= std::sqrt(norm);
  const auto [w, x, y, z] = q;
  return {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
          2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
          2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
}

/// Volumes, poses and images of any sizes: rotations, every fifth of them sheared.
template <class T>
struct Problem {
  View<T****> volume, images;
  View<T****> matrices;
  View<T***> shifts;

  Problem(const std::array<int, 4>& v, const std::array<int, 4>& i, bool shared_poses = false)
      : volume("volume", v[0], v[1], v[2], v[3]), images("images", i[0], i[1], i[2], i[3]),
        matrices("matrices", shared_poses ? 1 : i[0], i[1], 3, 3),
        shifts("shifts", i[0], shared_poses ? 1 : i[1], 2) {
    fill_random(volume, 1);
    fill_random(images, 2);
    fill_random(shifts, 3, 2.5);
    std::mt19937 engine(5);
    for (std::size_t pose = 0; pose < matrices.size() / 9; ++pose) {
      Rotation rotation = random_rotation(engine);
      if (pose % 5 == 4)
        for (double& one : rotation)
          one += 0.3 * std::uniform_real_distribution<double>(-1, 1)(engine);
      std::copy(rotation.begin(), rotation.end(), matrices.data() + 9 * pose);
    }
  }

  void project() {
    const auto from = on_device(volume), to = on_device(images), rotations = on_device(matrices);
    const auto moves = on_device(shifts);
    project_lines(Device(), from, {.matrices = rotations, .shifts = moves}, to);
    Test::deep_copy(images, to);
  }
  void backproject() {
    const auto from = on_device(images), to = on_device(volume), rotations = on_device(matrices);
    const auto moves = on_device(shifts);
    backproject_lines(Device(), from, {.matrices = rotations, .shifts = moves}, to);
    Test::deep_copy(volume, to);
  }
  const T* matrix(std::size_t batch, std::size_t pose) const {
    return &matrices(matrices.extent(0) == 1 ? 0 : batch, pose, 0, 0);
  }
  const T* shift(std::size_t batch, std::size_t pose) const {
    return &shifts(batch, shifts.extent(1) == 1 ? 0 : pose, 0);
  }

  /// The definition of a pixel, and the line's steepest axis.
  std::pair<double, int> definition(std::size_t batch, std::size_t pose, int y, int x) const {
    const T* const M = matrix(batch, pose);
    const T* const s = shift(batch, pose);
    const int size[3] = {int(volume.extent(3)), int(volume.extent(2)), int(volume.extent(1))};
    const double at[2] = {x - int(images.extent(3)) / 2 - double(s[1]),
                          y - int(images.extent(2)) / 2 - double(s[0])};
    int axis = 2;
    for (const int other : {0, 1})
      if (std::abs(M[3 * other + 2]) > std::abs(M[3 * axis + 2]))
        axis = other;
    double sum = 0;
    for (int plane = 0; plane < size[axis]; ++plane) {
      const double z =
          (plane - size[axis] / 2 - double(M[3 * axis]) * at[0] - double(M[3 * axis + 1]) * at[1]) /
          double(M[3 * axis + 2]);
      double q[3];
      for (int d = 0; d < 3; ++d)
        q[d] =
            double(M[3 * d]) * at[0] + double(M[3 * d + 1]) * at[1] + double(M[3 * d + 2]) * z + size[d] / 2;
      q[axis] = plane;
      for (int k = 0; k < size[2]; ++k)
        for (int j = 0; j < size[1]; ++j)
          for (int i = 0; i < size[0]; ++i)
            if (std::abs(q[0] - i) < 1 && std::abs(q[1] - j) < 1 && std::abs(q[2] - k) < 1)
              sum += (1 - std::abs(q[0] - i)) * (1 - std::abs(q[1] - j)) * (1 - std::abs(q[2] - k)) *
                     double(volume(volume.extent(0) == 1 ? 0 : batch, k, j, i));
    }
    return {sum / std::abs(double(M[3 * axis + 2])), axis};
  }
};

template <class A, class B>
double product(const A& a, const B& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += double(a.data()[i]) * double(b.data()[i]);
  return sum;
}

const std::vector<std::pair<std::array<int, 4>, std::array<int, 4>>> sizes{
    {{1, 8, 8, 8}, {1, 5, 8, 8}}, {{2, 7, 5, 6}, {2, 3, 9, 4}},  {{1, 3, 10, 4}, {2, 5, 6, 11}},
    {{1, 1, 1, 1}, {1, 5, 3, 2}}, {{1, 1, 12, 7}, {1, 6, 1, 9}}, {{1, 2, 2, 9}, {1, 5, 13, 1}}};

} // namespace

TEMPLATE_TEST_CASE("a pixel is the sum of its definition", "", float, double) {
  for (const auto& [of_volume, of_images] : sizes) {
    CAPTURE(of_volume, of_images);
    Problem<TestType> problem(of_volume, of_images);
    problem.project();
    for (int b = 0; b < of_images[0]; ++b)
      for (int p = 0; p < of_images[1]; ++p)
        for (int y = 0; y < of_images[2]; ++y)
          for (int x = 0; x < of_images[3]; ++x)
            CHECK(std::abs(double(problem.images(b, p, y, x)) -
                           problem.definition(std::size_t(b), std::size_t(p), y, x).first) <
                  (sizeof(TestType) == 4 ? 2e-5 : 1e-13));
  }
}

TEMPLATE_TEST_CASE("projection and backprojection along lines are transposes", "", float, double) {
  for (const auto& [of_volume, of_images] : sizes) {
    CAPTURE(of_volume, of_images);
    Problem<TestType> problem(of_volume, of_images, true);
    Problem<TestType> back = problem;
    back.volume = View<TestType****>("sum", of_volume[0], of_volume[1], of_volume[2], of_volume[3]);
    back.images = View<TestType****>("images", of_images[0], of_images[1], of_images[2], of_images[3]);
    fill_random(back.images, 7);
    fill_random(back.volume, 8);
    const double before = product(problem.volume, back.volume);
    back.backproject();
    problem.project();
    const double left = product(problem.images, back.images),
                 right = product(problem.volume, back.volume) - before;
    CHECK(std::abs(left - right) <
          (sizeof(TestType) == 4 ? 1e-5 : 1e-14) * double(problem.images.size() + problem.volume.size()));
  }
}

TEST_CASE("without a pose an image is the sum along z, whatever the sizes") {
  for (const auto& size : {std::array{4, 5, 6}, {7, 8, 3}, {1, 2, 2}}) {
    const View<float****> volume("volume", 1, size[0], size[1], size[2]),
        images("images", 1, 1, size[1], size[2]), matrices("matrices", 1, 1, 3, 3);
    fill_random(volume, 1);
    for (int d = 0; d < 3; ++d)
      matrices(0, 0, d, d) = 1;
    const auto from = on_device(volume), to = on_device(images), poses = on_device(matrices);
    project_lines(Device(), from, {.matrices = poses}, to);
    Test::deep_copy(images, to);
    for (int y = 0; y < size[1]; ++y)
      for (int x = 0; x < size[2]; ++x) {
        float sum = 0;
        for (int z = 0; z < size[0]; ++z)
          sum += volume(0, z, y, x);
        CHECK(std::abs(images(0, 0, y, x) - sum) < 1e-6f);
      }
  }
}

TEST_CASE("projections of a Gaussian blob converge to its line integrals, quadratically") {
  std::vector<double> errors;
  std::mt19937 engine(3);
  std::vector<Rotation> rotations;
  for (int i = 0; i < 6; ++i)
    rotations.push_back(random_rotation(engine));
  for (const int n : {24, 48}) { // the same blob, sampled twice as finely
    const double sigma = n / 12., centre[3] = {n / 20., -n / 10., n / 15.}, shift[2] = {-n / 30., n / 25.};
    const View<double****> volume("volume", 1, n, n, n), images("images", 1, 6, n, n),
        matrices("matrices", 1, 6, 3, 3);
    const View<double***> shifts("shifts", 1, 6, 2);
    for (int z = 0; z < n; ++z)
      for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x)
          volume(0, z, y, x) =
              std::exp(-(std::pow(x - n / 2 - centre[0], 2) + std::pow(y - n / 2 - centre[1], 2) +
                         std::pow(z - n / 2 - centre[2], 2)) /
                       (2 * sigma * sigma));
    for (std::size_t p = 0; p < 6; ++p) {
      std::copy(rotations[p].begin(), rotations[p].end(), &matrices(0, p, 0, 0));
      shifts(0, p, 0) = shift[1];
      shifts(0, p, 1) = shift[0];
    }
    const auto from = on_device(volume), to = on_device(images), poses = on_device(matrices);
    const auto moves = on_device(shifts);
    project_lines(Device(), from, {.matrices = poses, .shifts = moves}, to);
    Test::deep_copy(images, to);
    double squares = 0, norm = 0;
    for (std::size_t p = 0; p < 6; ++p) {
      double seen[2]; // where the centre is in the image: by the transposed rotation
      for (int d = 0; d < 2; ++d) {
        seen[d] = shift[d];
        for (int i = 0; i < 3; ++i)
          seen[d] += rotations[p][std::size_t(3 * i + d)] * centre[i];
      }
      for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x) {
          const double exact =
              std::sqrt(2 * M_PI) * sigma *
              std::exp(-(std::pow(x - n / 2 - seen[0], 2) + std::pow(y - n / 2 - seen[1], 2)) /
                       (2 * sigma * sigma));
          squares += std::pow(images(0, p, y, x) - exact, 2);
          norm += exact * exact;
        }
    }
    errors.push_back(std::sqrt(squares / norm));
  }
  CAPTURE(errors);
  CHECK(errors[0] < 0.05);
  CHECK(errors[0] / errors[1] > 3.5);
  CHECK(errors[0] / errors[1] < 4.5);
}

TEST_CASE("gradients of poses are finite differences of the definition") {
  for (const bool shared : {false, true})
    for (const auto& [of_volume, of_images] : sizes) {
      CAPTURE(of_volume, of_images, shared);
      Problem<double> problem(of_volume, of_images, shared);
      const View<double****> of_matrices("of_matrices", problem.matrices.layout()),
          sum("sum", problem.volume.layout());
      const View<double***> of_shifts("of_shifts", problem.shifts.layout());
      Test::deep_copy(sum, 7); // overwritten
      Test::deep_copy(of_matrices, 7);
      const auto volume = on_device(problem.volume), cotangent = on_device(problem.images);
      const auto matrices = on_device(problem.matrices), slopes = on_device(of_matrices);
      const auto gradient = on_device(sum);
      const auto shifts = on_device(problem.shifts), moves = on_device(of_shifts);
      project_lines_gradients(Device(), volume, {.matrices = matrices, .shifts = shifts}, cotangent,
                              {.volume = gradient, .matrices = slopes, .shifts = moves});
      Test::deep_copy(of_matrices, slopes);
      Test::deep_copy(of_shifts, moves);
      Test::deep_copy(sum, gradient);
      Problem<double> back = problem;
      back.volume = View<double****>("zero", problem.volume.layout());
      back.backproject();
      for (std::size_t i = 0; i < sum.size(); ++i)
        CHECK(sum.data()[i] == back.volume.data()[i]);

      // Bilinear interpolation has kinks at voxels: a few pixels may cross one.
      const auto loss = [&] {
        double result = 0;
        for (int b = 0; b < of_images[0]; ++b)
          for (int p = 0; p < of_images[1]; ++p)
            for (int y = 0; y < of_images[2]; ++y)
              for (int x = 0; x < of_images[3]; ++x)
                result += problem.images(b, p, y, x) *
                          problem.definition(std::size_t(b), std::size_t(p), y, x).first;
        return result;
      };
      const auto check = [&](double& number, double found) {
        const double kept = number, h = 1e-7;
        number = kept + h;
        const double above = loss();
        number = kept - h;
        const double below = loss();
        number = kept;
        CHECK(std::abs((above - below) / (2 * h) - found) < 1e-4 * (1 + std::abs(found)));
      };
      for (std::size_t i = 0; i<of_matrices.size(); i += of_matrices.size()> 90 ? 7 : 1)
        check(problem.matrices.data()[i], of_matrices.data()[i]);
      for (std::size_t i = 0; i < of_shifts.size(); ++i)
        check(problem.shifts.data()[i], of_shifts.data()[i]);
    }
}

TEMPLATE_TEST_CASE("poses without lines spoil their own images only, and add nothing", "", float, double) {
  constexpr auto infinity = std::numeric_limits<TestType>::infinity();
  constexpr auto huge = std::numeric_limits<TestType>::max();
  const Problem<TestType> good({1, 6, 5, 7}, {1, 3, 6, 8});
  Problem<TestType> expected = good;
  expected.project();
  struct Spoiling {
    TestType value;
    std::size_t rows, from, to; ///< columns
  };
  for (const auto& [wrong, rows, from, to] :
       {Spoiling{TestType(NAN), 3, 2, 3}, Spoiling{TestType(NAN), 1, 0, 1}, Spoiling{infinity, 3, 0, 3},
        Spoiling{-infinity, 1, 2, 3}, Spoiling{TestType(0), 3, 2, 3}, Spoiling{TestType(0), 3, 0, 3},
        Spoiling{huge, 1, 0, 1}, Spoiling{TestType(-1e15), 1, 1, 2}}) {
    CAPTURE(wrong, rows, from, to);
    Problem<TestType> spoiled = good;
    spoiled.matrices = View<TestType****>("matrices", 1, 3, 3, 3);
    Test::deep_copy(spoiled.matrices, good.matrices);
    spoiled.images = View<TestType****>("images", 1, 3, 6, 8);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = from; column < to; ++column)
        spoiled.matrices(0, 1, row, column) = wrong;
    spoiled.project();
    for (std::size_t i = 0; i < spoiled.images.size(); ++i)
      if (i / 48 == 1)
        CHECK(std::isnan(spoiled.images.data()[i]));
      else
        CHECK(spoiled.images.data()[i] == expected.images.data()[i]);
    Problem<TestType> sum = spoiled, without = good;
    sum.images = View<TestType****>("images", 1, 3, 6, 8);
    without.images = View<TestType****>("images", 1, 3, 6, 8);
    fill_random(sum.images, 4);
    Test::deep_copy(without.images, sum.images);
    for (std::size_t i = 48; i < 96; ++i)
      without.images.data()[i] = 0;
    sum.volume = View<TestType****>("volume", 1, 6, 5, 7);
    without.volume = View<TestType****>("volume", 1, 6, 5, 7);
    sum.backproject();
    without.backproject();
    for (std::size_t i = 0; i < sum.volume.size(); ++i)
      CHECK(sum.volume.data()[i] == without.volume.data()[i]);
    const View<TestType****> of_matrices("of_matrices", 1, 3, 3, 3);
    const auto volume = on_device(good.volume), cotangent = on_device(sum.images),
               matrices = on_device(spoiled.matrices), slopes = on_device(of_matrices);
    project_lines_gradients(Device(), volume, {.matrices = matrices}, cotangent, {.matrices = slopes});
    Test::deep_copy(of_matrices, slopes);
    for (std::size_t i = 0; i < 27; ++i)
      CHECK(std::isnan(of_matrices.data()[i]) == (i / 9 == 1));
  }
  for (const TestType wrong : {TestType(NAN), infinity, huge}) {
    Problem<TestType> spoiled = good;
    spoiled.shifts = View<TestType***>("shifts", 1, 3, 2);
    Test::deep_copy(spoiled.shifts, good.shifts);
    spoiled.shifts(0, 1, 1) = wrong;
    spoiled.images = View<TestType****>("images", 1, 3, 6, 8);
    spoiled.project();
    CHECK(std::isnan(spoiled.images(0, 1, 2, 3)));
    CHECK(spoiled.images(0, 2, 2, 3) == expected.images(0, 2, 2, 3));
  }
}

TEST_CASE("lines of absurd matrices and sizes touch nothing outside the arrays") {
  for (const double scale : {1e-12, 1e-3, 1e3, 1e6, 1e8})
    for (const double shift : {0., 1e4, -1e8}) {
      Problem<float> problem({1, 5, 4, 6}, {1, 5, 7, 6});
      for (std::size_t i = 0; i < problem.matrices.size(); ++i)
        problem.matrices.data()[i] *= float(scale);
      problem.shifts(0, 0, 0) = float(shift);
      problem.project(); // under sanitizers and memcheck
      problem.backproject();
      CHECK(std::isfinite(problem.images(0, 1, 0, 0)) == std::isfinite(problem.images(0, 1, 6, 5)));
    }
}

TEST_CASE("empty problems, and arguments that do not fit") {
  const Device space;
  const Kokkos::View<float****, Kokkos::LayoutRight, Device> volume("volume", 1, 4, 5, 6),
      images("images", 2, 3, 4, 4), matrices("matrices", 2, 3, 3, 3), none("none", 2, 0, 4, 4),
      no_matrices("no_matrices", 1, 0, 3, 3), three("three", 3, 4, 5, 6), filters("filters", 2, 3, 4, 3);
  const Kokkos::View<float***, Kokkos::LayoutRight, Device> shifts("shifts", 2, 3, 2), wide("wide", 2, 3, 3);
  project_lines(space, volume, {.matrices = no_matrices}, none);
  backproject_lines(space, none, {.matrices = no_matrices}, volume);
  Test::deep_copy(three, 7);
  project_lines_gradients(
      space, volume, {.matrices = no_matrices}, none,
      {.volume = Kokkos::subview(three, std::pair(0, 1), Kokkos::ALL, Kokkos::ALL, Kokkos::ALL)});
  const auto host = Test::on_host(three);
  CHECK((host(0, 3, 4, 5) == 0 && host(1, 0, 0, 0) == 7));

  using Catch::Matchers::ContainsSubstring;
  using Catch::Matchers::MessageMatches;
  const auto says = [](const char* sentence) { return MessageMatches(ContainsSubstring(sentence)); };
  CHECK_THROWS_MATCHES(
      project_lines(space, three, {.matrices = matrices}, images), Error,
      says("Bracewell::project_lines: volume: expected batch axis of 1 or 2, found [3, 4, 5, 6]"));
  CHECK_THROWS_MATCHES(project_lines(space, volume, {.matrices = volume}, images), Error,
                       says("project_lines: poses.matrices: expected [1|2, 1|3, 3, 3], found [1, 4, 5, 6]"));
  CHECK_THROWS_MATCHES(project_lines(space, volume, {.matrices = matrices, .shifts = wide}, images), Error,
                       says("project_lines: poses.shifts: expected [1|2, 1|3, 2], found [2, 3, 3]"));
  CHECK_THROWS_MATCHES(project_lines(space, volume, {.matrices = matrices, .filters = filters}, images),
                       Error, says("project_lines: poses.filters: expected none"));
  CHECK_THROWS_MATCHES(project_lines(space, images, {.matrices = matrices}, images), Error,
                       says("project_lines: images: expected memory of its own"));
  CHECK_THROWS_MATCHES(backproject_lines(space, images, {.matrices = matrices}, shifts), Error,
                       says("backproject_lines: volume: expected [B, D, H, W] of 1 to 32768 voxels"));
  CHECK_THROWS_MATCHES(backproject_lines(space, shifts, {.matrices = matrices}, volume), Error,
                       says("backproject_lines: images: expected [B, P, h, w]"));
  CHECK_THROWS_MATCHES(backproject_lines(space, images, {}, volume), Error,
                       says("backproject_lines: poses.matrices: expected an allocated View"));
  CHECK_THROWS_MATCHES(project_lines_gradients(space, volume, {.matrices = matrices}, images, {}), Error,
                       says("project_lines_gradients: gradients: expected at least one output, found none"));
  CHECK_THROWS_MATCHES(
      project_lines_gradients(space, volume, {.matrices = matrices}, images, {.shifts = shifts}), Error,
      says("project_lines_gradients: gradients.shifts: expected no gradient of an argument that is not "
           "given"));
  CHECK_THROWS_MATCHES(
      project_lines_gradients(space, volume, {.matrices = matrices}, images, {.volume = three}), Error,
      says("project_lines_gradients: gradients.volume"));
}

TEST_CASE("the page's example: a voxel at the centre is seen at the centre, moved by the shift") {
  const Kokkos::DefaultHostExecutionSpace space;
  const View<double****> volume("volume", 1, 6, 6, 7), sum("sum", 1, 6, 6, 7),
      of_volume("of_volume", 1, 6, 6, 7), images("images", 1, 1, 5, 8), cotangent("cotangent", 1, 1, 5, 8),
      matrices("matrices", 1, 1, 3, 3), of_matrices("of_matrices", 1, 1, 3, 3);
  const View<double***> shifts("shifts", 1, 1, 2), of_shifts("of_shifts", 1, 1, 2);
  volume(0, 3, 3, 3) = 2;
  matrices(0, 0, 0, 2) = 1; // along x
  matrices(0, 0, 1, 1) = 1;
  matrices(0, 0, 2, 0) = -1;
  shifts(0, 0, 0) = 1; // down
  shifts(0, 0, 1) = -2;
  cotangent(0, 0, 3, 2) = 5;
  // [lines
  project_lines(space, volume, {.matrices = matrices, .shifts = shifts}, images);
  backproject_lines(space, images, {.matrices = matrices, .shifts = shifts}, sum); // adds the exact transpose
  project_lines_gradients(space, volume, {.matrices = matrices, .shifts = shifts}, cotangent,
                          {.volume = of_volume, .matrices = of_matrices, .shifts = of_shifts});
  // lines]
  CHECK(images(0, 0, 3, 2) == 2);
  CHECK(images(0, 0, 2, 4) == 0);
  for (int x = 0; x < 7; ++x) {
    CHECK(sum(0, 3, 3, x) == 2);
    CHECK(of_volume(0, 3, 3, x) == 5);
  }
  const std::filesystem::path root(BRACEWELL_SOURCE_DIR);
  Test::check_page_examples(root / "tests/project/lines.cpp", {root / "docs/lines.md"});
}
