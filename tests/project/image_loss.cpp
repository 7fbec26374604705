// A loss in image space, behind the inverse transform: gradients with respect to rotations and shifts against
// finite differences.

#include "molecule.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

using namespace Test;

namespace {

/// exp(2 pi i k x / n) for every product k x modulo n.
std::vector<complex<double>> roots(int n) {
  std::vector<complex<double>> result;
  for (int i = 0; i < n; ++i)
    result.emplace_back(std::cos(2 * M_PI * i / n), std::sin(2 * M_PI * i / n));
  return result;
}

/// Image of n x n from its half spectrum, by the defining sum: unnormalised, every stored element with its
/// multiplicity.
std::vector<double> inverse(const Tensor<complex<double>>& spectrum, int n) {
  const auto root = roots(n);
  const int columns = n / 2 + 1;
  std::vector<complex<double>> rows(n * columns);
  for (int y = 0; y < n; ++y)
    for (int kx = 0; kx < columns; ++kx)
      for (int ky = 0; ky < n; ++ky)
        rows[y * columns + kx] += spectrum[ky * columns + kx] * root[ky * y % n];
  std::vector<double> image(n * n);
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x)
      for (int kx = 0; kx < columns; ++kx)
        image[y * n + x] +=
            (kx == 0 || 2 * kx == n ? 1 : 2) * (rows[y * columns + kx] * root[kx * x % n]).real();
  return image;
}

/// The transpose of inverse: cotangents of the stored elements from those of the pixels.
Tensor<complex<double>> inverse_gradient(const std::vector<double>& image, int n) {
  const auto root = roots(n);
  const int columns = n / 2 + 1;
  std::vector<complex<double>> rows(n * columns);
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x)
      for (int kx = 0; kx < columns; ++kx)
        rows[y * columns + kx] +=
            (kx == 0 || 2 * kx == n ? 1 : 2) * image[y * n + x] * Kokkos::conj(root[kx * x % n]);
  auto result = spectra<complex<double>>({1, 1}, {n, n});
  for (int ky = 0; ky < n; ++ky)
    for (int kx = 0; kx < columns; ++kx)
      for (int y = 0; y < n; ++y)
        result[ky * columns + kx] += rows[y * columns + kx] * Kokkos::conj(root[ky * y % n]);
  return result;
}

Matrix3 product(const Matrix3& a, const Matrix3& b) {
  Matrix3 result{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 3; ++k)
        result[i][j] += a[i][k] * b[k][j];
  return result;
}

/// Rotation about axis 0, 1 or 2.
Matrix3 about(int axis, double angle) {
  Matrix3 result{};
  const int a = (axis + 1) % 3, b = (axis + 2) % 3;
  result[axis][axis] = 1;
  result[a][a] = result[b][b] = std::cos(angle);
  result[a][b] = -std::sin(angle);
  result[b][a] = std::sin(angle);
  return result;
}

HostPoses<double> poses_of(const Matrix3& rotation, const std::array<double, 2>& shift) {
  HostPoses<double> poses{Tensor<double>({1, 1, 3, 3}), Tensor<double>({1, 1, 2})};
  for (int i = 0; i < 9; ++i)
    poses.matrices[i] = rotation[i / 3][i % 3];
  std::copy(shift.begin(), shift.end(), poses.shifts.values.begin());
  return poses;
}

} // namespace

TEST_CASE("rotation and shift gradients of an image-space loss") {
  const auto kernel = GENERATE(from_range(kernels()));
  const int n = GENERATE(32, 33);
  const auto seed = GENERATE(range(20, 24));
  CAPTURE(kernel, n, seed);
  const auto& operators = Test::operators<double>(kernel, 2, 3);
  const auto volume =
      Molecule(3, {9, 9, 9}, 20, 13).corrected_volume<double>({n, n, n}, [](double) { return 1.; });
  Random random(seed);
  const Matrix3 rotation = random_rotation(3, random);
  const std::array<double, 2> shift{2 * random(), 2 * random()};
  std::vector<double> target(n * n);
  for (double& pixel : target)
    pixel = random();

  const auto project = [&](const HostPoses<double>& poses) {
    auto projection = spectra<complex<double>>({1, 1}, {n, n});
    operators.project(volume, poses, projection, {});
    return projection;
  };
  const auto residual = [&](const Tensor<complex<double>>& projection) {
    auto image = inverse(projection, n);
    for (std::size_t i = 0; i < image.size(); ++i)
      image[i] = image[i] / (n * n) - target[i];
    return image;
  };
  const auto loss = [&](const HostPoses<double>& poses) {
    double sum = 0;
    for (const double value : residual(project(poses)))
      sum += value * value / 2;
    return sum;
  };

  const auto poses = poses_of(rotation, shift);
  auto cotangent = inverse_gradient(residual(project(poses)), n);
  for (auto& value : cotangent.values)
    value /= n * n;
  Operators<double>::ProjectGradients gradients;
  gradients.matrices = zero_like(poses.matrices);
  gradients.shifts = zero_like(poses.shifts);
  operators.project_gradients(volume, poses, cotangent, gradients, {});

  Tensor<double> analytic({5}), differences({5});
  const double step = 2e-7;
  for (int axis = 0; axis < 3; ++axis) {
    differences[axis] = (loss(poses_of(product(about(axis, step), rotation), shift)) -
                         loss(poses_of(product(about(axis, -step), rotation), shift))) /
                        (2 * step);
    const Matrix3 ahead =
        product(about(axis, M_PI / 2), rotation); // derivative of the rotation, off the axis
    for (int i = 0; i < 9; ++i)
      if (i / 3 != axis)
        analytic[axis] += gradients.matrices[i] * ahead[i / 3][i % 3];
  }
  for (int axis = 0; axis < 2; ++axis) {
    auto ahead = shift, behind = shift;
    ahead[axis] += step;
    behind[axis] -= step;
    differences[3 + axis] = (loss(poses_of(rotation, ahead)) - loss(poses_of(rotation, behind))) / (2 * step);
    analytic[3 + axis] = gradients.shifts[axis];
  }
  for (int i = 0; i < 5; ++i) {
    CAPTURE(i);
    CHECK(std::abs(analytic[i] - differences[i]) < 1e-6 * norm(differences));
  }
}
