// Rotations in all parametrisations: numbers worked out by hand, round trips, and finite differences.

#include <bracewell/geometry/eigen.hpp>
#include <bracewell/geometry/euler.hpp>
#include <bracewell/geometry/rotation_vector.hpp>
#include <bracewell/geometry/rotations.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <random>

using namespace Bracewell;

namespace {

template <class T>
constexpr T epsilon = std::numeric_limits<T>::epsilon();
constexpr double pi = Kokkos::numbers::pi;

template <class T>
double distance(const Matrix3<T>& a, const Matrix3<T>& b) {
  return (as_eigen(a) - as_eigen(b)).cwiseAbs().maxCoeff();
}

/// Rz(psi) Ry(tilt) Rz(rot) of passive rotations: Eigen's active ones by the negative angles.
Matrix3<double> by_eigen(double rot, double tilt, double psi) {
  using Eigen::AngleAxisd, Eigen::Vector3d;
  const Eigen::Matrix3d A =
      (AngleAxisd(-psi * pi / 180, Vector3d::UnitZ()) * AngleAxisd(-tilt * pi / 180, Vector3d::UnitY()) *
       AngleAxisd(-rot * pi / 180, Vector3d::UnitZ()))
          .toRotationMatrix();
  return matrix3(A);
}

/// Largest difference of derivatives(x) from central differences of function at x, relative to the largest
/// one.
template <std::size_t N, class Function, class Derivatives>
double finite_difference_error(std::array<double, N> x, double step, const Function& function,
                               const Derivatives& derivatives) {
  double error = 0, scale = 0;
  for (std::size_t p = 0; p < N; ++p) {
    auto low = x, high = x;
    low[p] -= step;
    high[p] += step;
    const Matrix3<double> before = function(low), after = function(high);
    const Eigen::Matrix3d expected = (as_eigen(after) - as_eigen(before)) / (2 * step);
    const Matrix3<double> derivative = derivatives(x)[p];
    error = std::max(error, (expected - as_eigen(derivative)).cwiseAbs().maxCoeff());
    scale = std::max(scale, expected.cwiseAbs().maxCoeff());
  }
  return error / scale;
}

} // namespace

TEST_CASE("Euler matrices follow RELION's formula", "[geometry]") {
  const Matrix3<double> a = euler_matrix(EulerAngles<double>{90, 0, 0});
  CHECK(distance(a, Matrix3<double>{{{0, 1, 0}, {-1, 0, 0}, {0, 0, 1}}}) < 1e-15);
  const Matrix3<double> b = euler_matrix(EulerAngles<double>{0, 90, 0});
  CHECK(distance(b, Matrix3<double>{{{0, 0, -1}, {0, 1, 0}, {1, 0, 0}}}) < 1e-15);
  const double angles[] = {-190, -90, -33.3, 0, 12.5, 90, 180, 271};
  for (const double rot : angles)
    for (const double tilt : angles)
      for (const double psi : angles) {
        const EulerAngles<double> e{rot, tilt, psi};
        CHECK(distance(euler_matrix(e), by_eigen(rot, tilt, psi)) < 1e-15);
        CHECK(distance(projection_matrix(e), transpose(by_eigen(rot, tilt, psi))) < 1e-15);
      }
}

TEMPLATE_TEST_CASE("Euler angles of any rotation, gimbal lock included", "[geometry]", float, double) {
  using T = TestType;
  for (const T tilt : {T(0), T(1e-30), T(1e-9), T(1e-5), T(1e-3), T(0.1), T(45), T(90), T(135), T(179.9),
                       T(179.999), T(180)})
    for (const T rot : {T(-179), T(-90), T(0), T(33), T(180)})
      for (const T psi : {T(-120), T(0), T(7), T(90)}) {
        CAPTURE(rot, tilt, psi);
        const auto A = euler_matrix(EulerAngles<T>{rot, tilt, psi});
        const auto angles = euler_angles(A);
        CHECK(distance(euler_matrix(angles), A) < 20 * epsilon<T>);
        CHECK((angles.tilt >= 0 && angles.tilt <= 180 && std::abs(angles.rot) <= T(180.001)));
        if (tilt > 1 && tilt < 179) {
          CHECK(std::abs(std::remainder(angles.rot - rot, T(360))) < 2e4 * epsilon<T>);
          CHECK(std::abs(angles.tilt - tilt) < 2e4 * epsilon<T>);
          CHECK(std::abs(std::remainder(angles.psi - psi, T(360))) < 2e4 * epsilon<T>);
        }
      }
  // RELION puts the whole in-plane rotation into psi where rot is not defined.
  const auto flat = euler_angles(euler_matrix(EulerAngles<T>{30, 0, 40}));
  CHECK(flat.rot == 0);
  CHECK(flat.tilt == 0);
  CHECK(std::abs(flat.psi - 70) < 1e3 * epsilon<T>);
  const auto flipped = euler_angles(euler_matrix(EulerAngles<T>{30, 180, 40}));
  CHECK(flipped.rot == 0);
  CHECK(flipped.tilt == 180);
  CHECK(std::abs(flipped.psi - 10) < 1e3 * epsilon<T>);
}

TEMPLATE_TEST_CASE("quaternions and rotation vectors agree with Eigen and go back", "[geometry]", float,
                   double) {
  using T = TestType;
  std::mt19937 engine(3);
  for (int i = 0; i < 300; ++i) {
    const Quaternion<T> q = random_rotation<T>(engine);
    const auto R = rotation_matrix(q);
    CHECK(distance(R, matrix3(as_eigen(q).normalized().toRotationMatrix())) < 4 * epsilon<T>);
    CHECK(distance(rotation_matrix(Quaternion<T>{3 * q.w, 3 * q.x, 3 * q.y, 3 * q.z}), R) < 4 * epsilon<T>);
    CHECK(distance(rotation_matrix(quaternion(R)), R) < 8 * epsilon<T>);
    const RotationVector<T> v = rotation_vector(R);
    CHECK(std::hypot(v.x, v.y, v.z) <= T(3.1415928));
    CHECK(distance(rotation_matrix(v), R) < 12 * epsilon<T>);
    const Eigen::Matrix<T, 3, 1> axis(v.x, v.y, v.z);
    const Eigen::AngleAxis<T> turn(axis.norm(), axis.normalized());
    CHECK(distance(matrix3(turn.toRotationMatrix()), R) < 12 * epsilon<T>);
  }
}

TEMPLATE_TEST_CASE("rotation vectors keep their digits near zero and near half turns", "[geometry]", float,
                   double) {
  using T = TestType;
  const T half_turn = Kokkos::numbers::pi_v<T>;
  for (const T angle : {T(0), T(1e-30), T(1e-20), T(1e-10), T(1e-5), T(0.02), T(0.5), T(1), T(3),
                        half_turn - T(1e-3), half_turn - T(1e-5), half_turn - T(1e-6)})
    for (const auto& axis : {Vector3<T>{1, 0, 0}, Vector3<T>{0, -1, 0}, Vector3<T>{0, 0, 1},
                             Vector3<T>{T(0.6), 0, T(-0.8)}, Vector3<T>{T(2) / 7, T(-3) / 7, T(6) / 7}}) {
      const RotationVector<T> v{axis[0] * angle, axis[1] * angle, axis[2] * angle};
      const RotationVector<T> back = rotation_vector(rotation_matrix(v));
      CAPTURE(angle, axis[0], axis[1], axis[2]);
      const T error = std::hypot(back.x - v.x, back.y - v.y, back.z - v.z);
      // Relative for small rotations: sin of them stands in the matrix itself.
      CHECK(error <= 8 * epsilon<T> * (angle < 1 ? angle : 3));
    }
  for (const auto& R :
       {Matrix3<T>{{{1, 0, 0}, {0, -1, 0}, {0, 0, -1}}}, Matrix3<T>{{{-1, 0, 0}, {0, 1, 0}, {0, 0, -1}}},
        Matrix3<T>{{{0, 1, 0}, {1, 0, 0}, {0, 0, -1}}}}) {
    const RotationVector<T> v = rotation_vector(R);
    CHECK(std::abs(std::hypot(v.x, v.y, v.z) - half_turn) < 4 * epsilon<T>);
    CHECK(distance(rotation_matrix(v), R) < 8 * epsilon<T>);
  }
}

TEST_CASE("derivatives of rotation matrices equal central differences", "[geometry]") {
  std::mt19937 engine(8);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto euler = [](const auto& x) { return projection_matrix(EulerAngles<double>{x[0], x[1], x[2]}); };
  const auto euler_derivatives = [](const auto& x) {
    return projection_matrix_derivatives(EulerAngles<double>{x[0], x[1], x[2]});
  };
  const auto by_quaternion = [](const auto& x) {
    return rotation_matrix(Quaternion<double>{x[0], x[1], x[2], x[3]});
  };
  const auto quaternion_derivatives = [](const auto& x) {
    return rotation_matrix_derivatives(Quaternion<double>{x[0], x[1], x[2], x[3]});
  };
  const auto by_vector = [](const auto& x) {
    return rotation_matrix(RotationVector<double>{x[0], x[1], x[2]});
  };
  const auto vector_derivatives = [](const auto& x) {
    return rotation_matrix_derivatives(RotationVector<double>{x[0], x[1], x[2]});
  };
  for (int i = 0; i < 40; ++i) {
    const double a = uniform(engine), b = uniform(engine), c = uniform(engine), d = uniform(engine);
    CHECK(finite_difference_error<3>({180 * a, 180 * b, 180 * c}, 1e-3, euler, euler_derivatives) < 1e-8);
    CHECK(finite_difference_error<4>({1.5 * a, b, c, d}, 1e-5, by_quaternion, quaternion_derivatives) < 1e-6);
    for (const double length : {1e-9, 1e-4, 0.1, 1 / std::hypot(a, b, c), 1.0, 3.0})
      CHECK(finite_difference_error<3>({length * a, length * b, length * c}, 1e-5, by_vector,
                                       vector_derivatives) < 1e-9);
    // The gradient with respect to a quaternion is tangential.
    const auto dR = quaternion_derivatives(std::array{a, b, c, d});
    const auto along =
        (a * as_eigen(dR[0]) + b * as_eigen(dR[1]) + c * as_eigen(dR[2]) + d * as_eigen(dR[3])).eval();
    CHECK(along.cwiseAbs().maxCoeff() < 1e-13);
  }
  CHECK(finite_difference_error<3>({0, 0, 0}, 1e-5, by_vector, vector_derivatives) < 1e-9);
  CHECK(finite_difference_error<3>({10, 0, 20}, 1e-3, euler, euler_derivatives) < 1e-8);
}

TEST_CASE("the derivatives of rotation vectors are the same by series and in closed form", "[geometry]") {
  for (const double t : {0.2, 0.7, 0.999999}) { // t^2 = 1 divides the two
    const Impl::RodriguesCoefficients<double> c(t * t);
    CHECK(std::abs(c.a - std::sin(t) / t) < 1e-15);
    CHECK(std::abs(c.b - (1 - std::cos(t)) / (t * t)) < 1e-14);
    CHECK(std::abs(c.da - (std::cos(t) - std::sin(t) / t) / (t * t)) < 1e-13);
    CHECK(std::abs(c.db - (std::sin(t) / t - 2 * (1 - std::cos(t)) / (t * t)) / (t * t)) < 1e-12);
  }
}

TEST_CASE("the chain rule contracts a cotangent with the derivatives", "[geometry]") {
  const RotationVector<double> v{0.3, -0.7, 0.4};
  const Matrix3<double> cotangent{{{1, -2, 3}, {0.5, 4, -1}, {2, 0, -3}}};
  const auto loss = [&](const RotationVector<double>& u) {
    const Matrix3<double> R = rotation_matrix(u);
    return as_eigen(cotangent).cwiseProduct(as_eigen(R)).sum();
  };
  const auto gradient = chain(cotangent, rotation_matrix_derivatives(v));
  const double h = 1e-6;
  CHECK(std::abs(gradient[0] - (loss({v.x + h, v.y, v.z}) - loss({v.x - h, v.y, v.z})) / (2 * h)) < 1e-8);
  CHECK(std::abs(gradient[1] - (loss({v.x, v.y + h, v.z}) - loss({v.x, v.y - h, v.z})) / (2 * h)) < 1e-8);
  CHECK(std::abs(gradient[2] - (loss({v.x, v.y, v.z + h}) - loss({v.x, v.y, v.z - h})) / (2 * h)) < 1e-8);
}

TEST_CASE("random rotations are uniformly distributed", "[geometry]") {
  // Haar measure: the matrix elements have mean 0, variance 1/3, and R(2, 2) is uniform in [-1, 1]; the angle
  // of rotation has the density (1 - cos t) / pi, whose mean is pi/2 + 2/pi.
  std::mt19937_64 engine(5);
  const int count = 40000;
  Eigen::Matrix3d mean = Eigen::Matrix3d::Zero(), square = mean;
  double angle = 0;
  std::array<int, 10> histogram = {};
  for (int i = 0; i < count; ++i) {
    const Matrix3<double> R = rotation_matrix(random_rotation<double>(engine));
    mean += as_eigen(R) / count;
    square += as_eigen(R).cwiseAbs2() / count;
    ++histogram[std::min(9, int((R(2, 2) + 1) * 5))];
    const auto v = rotation_vector(R);
    angle += std::hypot(v.x, v.y, v.z) / count;
  }
  CHECK(mean.cwiseAbs().maxCoeff() < 5 * std::sqrt(1.0 / 3 / count));
  CHECK((square.array() - 1.0 / 3).abs().maxCoeff() < 5 * std::sqrt(4.0 / 45 / count));
  CHECK(std::abs(angle - (pi / 2 + 2 / pi)) < 5 * 0.65 / std::sqrt(count));
  for (const int bin : histogram)
    CHECK(std::abs(bin - count / 10) < 5 * std::sqrt(count / 10));
}
