// SPDX-License-Identifier: MIT
// Least squares with dense matrices, against normal equations solved by Eigen in double.

#include "../deep_copy.hpp"

#include <bracewell/optimize/least_squares.hpp>

#define EIGEN_DONT_VECTORIZE // GCC 12 warns of what its transposes for AVX-512 leave uninitialised
#include <Eigen/Dense>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <random>

using namespace Bracewell;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Space = Kokkos::DefaultExecutionSpace;
using Method = LeastSquaresMethod;

namespace {

template <class T>
using View = Kokkos::View<T***, Kokkos::LayoutRight, Space>;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// out(slice, i) = scale sum_j matrix(i, j) in(slice, j).
template <class T>
struct Multiply {
  Kokkos::View<T**, Kokkos::LayoutRight, Space> matrix;
  const T* in;
  T* out;
  bool transposed;
  T scale;

  KOKKOS_FUNCTION void operator()(int index) const {
    const int rows = static_cast<int>(matrix.extent(transposed)),
              columns = static_cast<int>(matrix.extent(!transposed));
    const int slice = index / rows, i = index % rows;
    T sum = 0;
    for (int j = 0; j < columns; ++j)
      sum += (transposed ? matrix(j, i) : matrix(i, j)) * in[slice * columns + j];
    out[index] = scale * sum;
  }
};

/// A pair whose back-projection is the transpose times `scale`.
template <class T>
struct DensePair {
  Kokkos::View<T**, Kokkos::LayoutRight, Space> matrix;
  T scale;

  template <class In, class Out>
  void project(const Space& space, const In& in, const Out& out) const {
    run(space, {matrix, in.data(), out.data(), false, T(1)}, out.size());
  }
  template <class In, class Out>
  void backproject(const Space& space, const In& in, const Out& out) const {
    run(space, {matrix, in.data(), out.data(), true, scale}, out.size());
  }
  static void run(const Space& space, const Multiply<T>& multiply, std::size_t count) {
    Kokkos::parallel_for("dense", Kokkos::RangePolicy<Space>(space, 0, count), multiply);
  }
};

/// The same, whose normal operator is there, too.
template <class T>
struct NormalPair : DensePair<T> {
  Kokkos::View<T*, Space> projected;

  template <class In, class Out>
  void normal(const Space& space, const In& in, const Out& out) const {
    this->project(space, in, projected);
    DensePair<T>::run(space, {this->matrix, projected.data(), out.data(), true, this->scale}, out.size());
  }
};

constexpr int slices = 3, rows = 6, columns = 5, pixels = 30, angles = 8, width = 7, values = 56;

template <class T>
View<T> to_device(const Matrix& columns_of_slices, int second, int third) {
  const View<T> view("values", columns_of_slices.cols(), second, third);
  const auto host = Kokkos::create_mirror_view(view);
  for (Eigen::Index i = 0; i < columns_of_slices.size(); ++i)
    host.data()[i] = T(columns_of_slices.data()[i]);
  Test::deep_copy(view, host);
  return view;
}

template <class T>
Matrix to_host(const View<T>& view) {
  const auto host = Test::on_host(view);
  Matrix result(Eigen::Index(view.extent(1) * view.extent(2)), Eigen::Index(view.extent(0)));
  for (Eigen::Index i = 0; i < result.size(); ++i)
    result.data()[i] = double(host.data()[i]);
  return result;
}

Matrix random(int m, int n, double low, unsigned seed) {
  std::mt19937 generator(seed);
  Matrix result(m, n);
  for (Eigen::Index i = 0; i < result.size(); ++i)
    result.data()[i] = low + (1 - low) * generator() / 4294967296.0;
  return result;
}

template <class T>
struct Problem {
  Matrix a, b = random(values, slices, -1, 2), w = random(values, slices, 0.2, 3);
  DensePair<T> pair{Kokkos::View<T**, Kokkos::LayoutRight, Space>("matrix", values, pixels), T(0.37)};
  View<T> data = to_device<T>(b, angles, width), weights = to_device<T>(w, angles, width);

  /// @param low  of the matrix, to 1: of 0 it has one singular value far above the others
  explicit Problem(double low = 0) : a(random(values, pixels, low, 1)) {
    const auto host = Kokkos::create_mirror_view(pair.matrix);
    for (int i = 0; i < values; ++i)
      for (int j = 0; j < pixels; ++j)
        host(i, j) = T(a(i, j));
    Test::deep_copy(pair.matrix, host);
  }

  /// Weighted least squares of the pixels that `used` holds, the others being as they are in x.
  Matrix least_squares(Matrix x, const std::vector<int>& used) const {
    Matrix part(values, Eigen::Index(used.size()));
    for (std::size_t k = 0; k < used.size(); ++k)
      part.col(Eigen::Index(k)) = a.col(used[k]);
    for (int z = 0; z < slices; ++z) {
      Vector fixed = x.col(z);
      for (const int pixel : used)
        fixed(pixel) = 0;
      const Matrix weighted = w.col(z).asDiagonal() * part;
      const Vector right = weighted.transpose() * (b.col(z) - a * fixed);
      const Vector solution = (part.transpose() * weighted).ldlt().solve(right);
      for (std::size_t k = 0; k < used.size(); ++k)
        x(used[k], z) = solution(Eigen::Index(k));
    }
    return x;
  }
  Vector squares(const Matrix& x) const {
    return (w.array() * (b - a * x).array().square()).colwise().sum().transpose();
  }
};

LeastSquaresShape shape_of(Method method, bool independent = true) {
  return {{slices, angles, width}, {slices, rows, columns}, method, independent};
}

double error(const Matrix& x, const Matrix& expected) { return (x - expected).norm() / expected.norm(); }

} // namespace

TEMPLATE_TEST_CASE("conjugate gradients solve weighted least squares, whatever the scale of the transpose",
                   "", float, double) {
  const Space space;
  const Problem<TestType> problem;
  const double tolerance = sizeof(TestType) == 4 ? 2e-3 : 1e-9;
  std::vector<int> all(pixels), most;
  for (int i = 0; i < pixels; ++i)
    all[std::size_t(i)] = i;
  Matrix mask = Matrix::Zero(pixels, 1);
  for (int i = 0; i < pixels; ++i)
    if (i % 4 != 1) {
      most.push_back(i);
      mask(i) = 1;
    }
  const Matrix start = random(pixels, slices, -1, 5);
  for (const bool independent : {true, false}) {
    const LeastSquaresSolver<Space, TestType> solver(space,
                                                     shape_of(Method::ConjugateGradients, independent));
    CHECK(solver.memory_bytes() == LeastSquaresSolver<Space, TestType>::bytes_needed(
                                       space, shape_of(Method::ConjugateGradients, independent)));
    const int iterations = independent ? 45 : 110;
    const auto images = to_device<TestType>(start, rows, columns); // a warm start changes nothing in the end
    solver.solve(space, problem.pair, problem.data, images, {.iterations = iterations}, problem.weights);
    const Matrix expected = problem.least_squares(start, all);
    CHECK(error(to_host(images), expected) < tolerance);
    const auto residuals = solver.residuals(space);
    CHECK(residuals.size() == (independent ? slices : 1));
    double sum = 0;
    for (const double value : residuals)
      sum += value;
    CHECK(std::abs(sum / problem.squares(expected).sum() - 1) < tolerance);

    const auto masked = to_device<TestType>(start, rows, columns);
    const auto device_mask = to_device<TestType>(mask, rows, columns);
    solver.solve(space, problem.pair, problem.data, masked, {.iterations = iterations}, problem.weights,
                 Kokkos::View<TestType**, Kokkos::LayoutRight, Space>(device_mask.data(), rows, columns));
    CHECK(error(to_host(masked), problem.least_squares(start, most)) < tolerance);
  }
}

TEST_CASE("slices do not know of each other, and each ends at its own discrepancy") {
  const Space space;
  const Problem<double> problem;
  const LeastSquaresSolver<Space, double> solver(space, shape_of(Method::ConjugateGradients));
  const Vector least =
      problem.squares(to_host(to_device<double>(problem.least_squares(Matrix::Zero(pixels, slices),
                                                                      [] {
                                                                        std::vector<int> all;
                                                                        for (int i = 0; i < pixels; ++i)
                                                                          all.push_back(i);
                                                                        return all;
                                                                      }()),
                                                rows, columns)));
  const Vector first = problem.squares(Matrix::Zero(pixels, slices));
  const double limit = std::sqrt(0.5 * (least.maxCoeff() + first.minCoeff()));
  REQUIRE(limit * limit > least.maxCoeff());
  const View<double> images("images", slices, rows, columns);
  const int made = solver.solve(space, problem.pair, problem.data, images,
                                {.iterations = 60, .discrepancy = limit}, problem.weights);
  CHECK(made < 60);
  const Matrix together = to_host(images);
  const Vector squares = problem.squares(together);
  const auto residuals = solver.residuals(space);
  for (int z = 0; z < slices; ++z) {
    CHECK(squares(z) <= limit * limit * (1 + 1e-12));
    CHECK(std::abs(residuals[std::size_t(z)] / squares(z) - 1) < 1e-10);
    // Alone it is the same, and an iteration earlier above the limit.
    const LeastSquaresSolver<Space, double> one(space, {{1, angles, width}, {1, rows, columns}});
    const View<double> image("image", 1, rows, columns);
    const auto run = [&](const LeastSquaresOptions& options) {
      Test::deep_copy(image, 0);
      return one.solve(space, problem.pair, to_device<double>(problem.b.col(z), angles, width), image,
                       options, to_device<double>(problem.w.col(z), angles, width));
    };
    const int own = run({.iterations = 60, .discrepancy = limit});
    CHECK((to_host(image) - together.col(z)).norm() < 1e-12 * together.col(z).norm());
    if (own > 0) {
      run({.iterations = own - 1});
      CHECK(one.residuals(space)[0] > limit * limit);
    }
  }
}

TEST_CASE("SIRT is its formula") {
  const Space space;
  const Problem<double> problem;
  const LeastSquaresSolver<Space, double> solver(space, shape_of(Method::SIRT));
  const auto images = to_device<double>(random(pixels, slices, -1, 5), rows, columns);
  Matrix expected = to_host(images);
  solver.solve(space, problem.pair, problem.data, images,
               {.iterations = 7, .relaxation = 0.9, .nonnegative = true}, problem.weights);
  const Vector row_sums = problem.a.rowwise().sum();
  for (int z = 0; z < slices; ++z) {
    const Vector weights = problem.w.col(z), column_sums = problem.a.transpose() * weights;
    for (int k = 0; k < 7; ++k) {
      const Vector rest =
          weights.array() * (problem.b.col(z) - problem.a * expected.col(z)).array() / row_sums.array();
      const Vector change = (problem.a.transpose() * rest).array() / column_sums.array();
      expected.col(z) = (expected.col(z) + 0.9 * change).cwiseMax(0);
    }
  }
  CHECK(error(to_host(images), expected) < 1e-12);
}

TEST_CASE("total variation: least squares without it, and the conditions of a minimum with it") {
  const Space space;
  const Problem<double> problem;
  const LeastSquaresSolver<Space, double> solver(space, shape_of(Method::TotalVariation));
  const View<double> images("images", slices, rows, columns);
  std::vector<int> all;
  for (int i = 0; i < pixels; ++i)
    all.push_back(i);
  solver.solve(space, problem.pair, problem.data, images, {.iterations = 12000}, problem.weights);
  CHECK(error(to_host(images), problem.least_squares(Matrix::Zero(pixels, slices), all)) < 1e-4);

  const double factor = 0.05;
  const auto objective = [&](const Vector& x, int z) {
    double variation = 0;
    for (int i = 0; i < pixels; ++i) {
      const double right = i % columns + 1 < columns ? x(i + 1) - x(i) : 0;
      const double down = i / columns + 1 < rows ? x(i + columns) - x(i) : 0;
      variation += std::hypot(right, down);
    }
    const Vector rest = problem.b.col(z) - problem.a * x;
    return 0.37 / 2 * (problem.w.col(z).array() * rest.array().square()).sum() + factor * variation;
  };
  Test::deep_copy(images, 0);
  solver.solve(space, problem.pair, problem.data, images,
               {.iterations = 3000, .nonnegative = true, .total_variation = factor, .inner_iterations = 50},
               problem.weights);
  const Matrix found = to_host(images);
  CHECK(found.minCoeff() >= 0);
  // The objective is convex: what no small feasible step improves is the minimum.
  std::mt19937 generator(8);
  for (int z = 0; z < slices; ++z) {
    const double least = objective(found.col(z), z);
    for (int trial = 0; trial < 200; ++trial) {
      Vector other = found.col(z);
      for (int i = 0; i < pixels; ++i)
        if (trial % 3 == 0 || int(generator() % pixels) == i)
          other(i) += 1e-2 * (generator() / 4294967296.0 - 0.5);
      CHECK(objective(other.cwiseMax(0), z) > least - 1e-6 * least);
    }
  }
}

TEMPLATE_TEST_CASE("values of weight 0 are left out, whatever they are", "", float, double) {
  const Space space;
  Problem<TestType> problem;
  for (int z = 0; z < slices; ++z)
    for (const int k : {0, 3 + z, 20, 55})
      problem.w(k, z) = 0;
  const auto weights = to_device<TestType>(problem.w, angles, width);
  const auto solved = [&](Method method, double garbage) {
    Matrix b = problem.b;
    for (Eigen::Index i = 0; i < b.size(); ++i)
      b.data()[i] = problem.w.data()[i] == 0 ? garbage : b.data()[i];
    const LeastSquaresSolver<Space, TestType> solver(space, shape_of(method));
    const View<TestType> images("images", slices, rows, columns);
    solver.solve(space, problem.pair, to_device<TestType>(b, angles, width), images, {.iterations = 45},
                 weights);
    for (const double residual : solver.residuals(space))
      CHECK(std::isfinite(residual));
    return to_host(images);
  };
  for (const Method method : {Method::ConjugateGradients, Method::SIRT, Method::TotalVariation}) {
    const Matrix expected = solved(method, 0);
    CHECK(expected.norm() > 0);
    for (const double garbage : {double(NAN), double(INFINITY), 1e30})
      CHECK(solved(method, garbage) == expected);
  }
  std::vector<int> all(pixels);
  for (int i = 0; i < pixels; ++i)
    all[std::size_t(i)] = i;
  CHECK(error(solved(Method::ConjugateGradients, NAN),
              problem.least_squares(Matrix::Zero(pixels, slices), all)) <
        (sizeof(TestType) == 4 ? 2e-3 : 1e-9));
}

TEST_CASE("by the normal operator alone results are those of the pair; slabs may have fewer slices") {
  const Space space;
  // Without a singular value far above the others, after which conjugate gradients lose orthogonality: by then another
  // order of sums changes them by 1e-4.
  Problem<double> problem(-1);
  const NormalPair<double> pair{problem.pair, Kokkos::View<double*, Space>("projected", slices * values)};
  Matrix mask = Matrix::Ones(pixels, 1);
  for (int i = 0; i < pixels; i += 4)
    mask(i) = 0;
  const auto device_mask = to_device<double>(mask, rows, columns);
  const Kokkos::View<double**, Kokkos::LayoutRight, Space> of_slices(device_mask.data(), rows, columns);
  const Matrix start = random(pixels, slices, -1, 5);
  for (const Method method : {Method::ConjugateGradients, Method::TotalVariation}) {
    LeastSquaresOptions options{.iterations = 12};
    if (method == Method::TotalVariation)
      options.nonnegative = true, options.total_variation = 0.3;
    for (const int some : {slices, 2, 0}) {
      std::array<Matrix, 2> results;
      std::array<std::vector<double>, 2> residuals;
      for (const bool normal : {false, true}) {
        auto shape = shape_of(method);
        shape.normal = normal;
        const LeastSquaresSolver<Space, double> solver(space, shape);
        CHECK(solver.memory_bytes() == LeastSquaresSolver<Space, double>::bytes_needed(space, shape));
        int reported = 0;
        options.progress = [&](int made) { CHECK(made == ++reported); };
        const auto images = to_device<double>(start.leftCols(some), rows, columns);
        CHECK(solver.solve(space, pair, to_device<double>(problem.b.leftCols(some), angles, width), images,
                           options, {}, of_slices) == (some > 0 ? 12 : 0));
        CHECK(reported == (some > 0 ? 12 : 0));
        results[normal] = to_host(images);
        residuals[normal] = solver.residuals(space);
      }
      CHECK((results[1] - results[0]).norm() <= 1e-10 * results[0].norm());
      for (int z = 0; z < some; ++z) {
        const double squares = (problem.b.col(z) - problem.a * results[1].col(z)).squaredNorm();
        CHECK(std::abs(residuals[1][std::size_t(z)] / squares - 1) < 1e-10);
      }
    }
  }
}

TEST_CASE("wrong input to LeastSquaresSolver is named") {
  const Space space;
  using Solver = LeastSquaresSolver<Space, double>;
  CHECK_THROWS_MATCHES(Solver(space, {{2, 4, 4}, {3, 4, 4}}), Error,
                       MessageMatches(ContainsSubstring(
                           "LeastSquaresSolver: shape.images: expected 2 slices, as data, found 3")));
  CHECK_THROWS_MATCHES(Solver(space, {{2, 0, 4}, {2, 4, 4}}), Error,
                       MessageMatches(ContainsSubstring("shape.data")));
  const Problem<double> problem;
  const Solver solver(space, shape_of(Method::ConjugateGradients));
  const View<double> images("images", slices, rows, columns);
  CHECK_THROWS_MATCHES(solver.solve(space, problem.pair, images, images), Error,
                       MessageMatches(ContainsSubstring("solve: data: expected [3, 8, 7], found [3, 6, 5]")));
  CHECK_THROWS_MATCHES(solver.solve(space, problem.pair, problem.data, images, {.nonnegative = true}), Error,
                       MessageMatches(ContainsSubstring("options.nonnegative")));
  CHECK_THROWS_MATCHES(solver.solve(space, problem.pair, problem.data, images, {.total_variation = 1}), Error,
                       MessageMatches(ContainsSubstring("options.total_variation")));
  CHECK_THROWS_MATCHES(solver.solve(space, problem.pair, problem.data, images, {}, images), Error,
                       MessageMatches(ContainsSubstring("weights: expected [3, 8, 7], found [3, 6, 5]")));
  const LeastSquaresShape normal{
      {slices, angles, width}, {slices, rows, columns}, Method::ConjugateGradients, true, true};
  const Solver by_normal(space, normal);
  CHECK_THROWS_MATCHES(by_normal.solve(space, problem.pair, problem.data, images), Error,
                       MessageMatches(ContainsSubstring("solve: pair: expected one with normal()")));
  CHECK_THROWS_MATCHES(by_normal.solve(space, problem.pair, problem.data, images, {}, problem.weights), Error,
                       MessageMatches(ContainsSubstring("weights: expected none with a normal operator")));
  CHECK_THROWS_MATCHES(by_normal.solve(space, problem.pair, problem.data, images, {.discrepancy = 1}), Error,
                       MessageMatches(ContainsSubstring("options.discrepancy")));
  CHECK_THROWS_MATCHES(
      Solver(space, {{slices, angles, width}, {slices, rows, columns}, Method::SIRT, true, true}), Error,
      MessageMatches(ContainsSubstring("shape.normal")));
}
