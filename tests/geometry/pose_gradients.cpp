// Chain rules from matrices to their parametrisations, on the execution space, against central differences.

#include "../deep_copy.hpp"

#include <bracewell/geometry/pose_gradients.hpp>
#include <bracewell/geometry/rotations.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <random>
#include <string>
#include <vector>

using namespace Bracewell;

namespace {

using Space = Kokkos::DefaultExecutionSpace;
template <class T, int N>
using Parameters = Kokkos::View<T** [N], Kokkos::LayoutRight, Space>;
template <class T>
using Matrices = Kokkos::View<T** [3][3], Kokkos::LayoutRight, Space>;

constexpr int batches = 2, poses = 7;

template <class View, class Fill>
View filled(const Fill& fill) {
  View view("test", batches, poses);
  const auto mirror = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < mirror.size(); ++i)
    mirror.data()[i] = static_cast<typename View::value_type>(fill(i));
  Test::deep_copy(view, mirror);
  return view;
}

template <class View>
std::vector<double> values(const View& view) {
  Space().fence();
  const auto mirror = Test::on_host(view);
  return {mirror.data(), mirror.data() + mirror.size()};
}

template <class View>
View random(unsigned seed, double low, double high) {
  std::mt19937_64 engine(seed);
  return filled<View>(
      [&](std::size_t) { return low + (high - low) * std::generate_canonical<double, 53>(engine); });
}

template <class T>
Matrices<T> random_rotations(unsigned seed) {
  std::mt19937_64 engine(seed);
  Matrix3<double> R;
  return filled<Matrices<T>>([&](std::size_t i) {
    if (i % 9 == 0)
      R = rotation_matrix(random_rotation<double>(engine));
    return R(static_cast<int>(i % 9 / 3), static_cast<int>(i % 3));
  });
}

/// Largest difference between a gradient [B, P, N] and the slopes of sum(cotangents * matrices(parameters)).
template <int N, class Make>
double difference_from_slopes(const Parameters<double, N>& at, const std::vector<double>& gradient,
                              const std::vector<double>& cotangents, double step, const Make& make) {
  double worst = 0;
  for (int parameter = 0; parameter < N; ++parameter) {
    std::vector<double> sides[2];
    for (const int side : {0, 1}) {
      const auto moved = filled<Parameters<double, N>>([&, start = values(at)](std::size_t i) {
        return start[i] + (int(i % N) == parameter ? (side == 0 ? -step : step) : 0);
      });
      const Matrices<double> matrices("test", batches, poses);
      make(moved, matrices);
      sides[side] = values(matrices);
    }
    for (std::size_t pose = 0; pose < batches * poses; ++pose) {
      double slope = 0;
      for (std::size_t i = 9 * pose; i < 9 * (pose + 1); ++i)
        slope += cotangents[i] * (sides[1][i] - sides[0][i]) / (2 * step);
      worst = std::max(worst, std::abs(slope - gradient[pose * N + static_cast<std::size_t>(parameter)]));
    }
  }
  return worst;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

std::string message_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

} // namespace

TEST_CASE("gradients with respect to RELION's angles", "[geometry]") {
  const Space space;
  const auto angles = random<Parameters<double, 3>>(1, -180, 180);
  const auto cotangents = random<Matrices<double>>(2, -1, 1);
  const Parameters<double, 3> gradients("test", batches, poses);
  angle_gradients(space, angles, cotangents, gradients);
  CHECK(difference_from_slopes<3>(angles, values(gradients), values(cotangents), 1e-3,
                                  [&](const auto& at, const auto& matrices) {
                                    matrices_from_angles(space, at, matrices);
                                  }) < 1e-10); // per degree

  const Matrices<double> matrices("test", batches, poses);
  matrices_from_angles(space, angles, matrices);
  const auto all = values(matrices), at = values(angles);
  for (std::size_t pose = 0; pose < batches * poses; ++pose) {
    const auto expected =
        projection_matrix(EulerAngles<double>{at[3 * pose], at[3 * pose + 1], at[3 * pose + 2]});
    for (std::size_t i = 0; i < 9; ++i)
      CHECK(std::abs(all[9 * pose + i] - expected(int(i / 3), int(i % 3))) < 1e-15);
  }
}

TEST_CASE("gradients with respect to quaternions", "[geometry]") {
  const Space space;
  const auto quaternions = random<Parameters<double, 4>>(3, 0.2, 1); // of any length
  const auto cotangents = random<Matrices<double>>(4, -1, 1);
  const Parameters<double, 4> gradients("test", batches, poses);
  quaternion_gradients(space, quaternions, cotangents, gradients);
  CHECK(difference_from_slopes<4>(quaternions, values(gradients), values(cotangents), 1e-5,
                                  [&](const auto& at, const auto& matrices) {
                                    matrices_from_quaternions(space, at, matrices);
                                  }) < 1e-8);
  const auto gradient = values(gradients), q = values(quaternions);
  for (std::size_t pose = 0; pose < batches * poses; ++pose) {
    double along = 0;
    for (std::size_t i = 4 * pose; i < 4 * pose + 4; ++i)
      along += gradient[i] * q[i];
    CHECK(std::abs(along) < 1e-13);
  }
}

TEST_CASE("gradients in the tangent space are the slopes of steps along it", "[geometry]") {
  const Space space;
  const auto matrices = random_rotations<double>(5);
  const auto cotangents = random<Matrices<double>>(6, -1, 1);
  const Parameters<double, 3> gradients("test", batches, poses), zero("test", batches, poses);
  rotation_vector_gradients(space, matrices, cotangents, gradients);
  const auto step = [&](const auto& at, const auto& moved) {
    matrices_from_rotation_vectors(space, at, matrices, moved);
  };
  CHECK(difference_from_slopes<3>(zero, values(gradients), values(cotangents), 1e-5, step) < 1e-9);

  // The z component turns the image in its plane, as psi does: M = A^T = exp(rot z) exp(tilt y) exp(psi z).
  const auto turned = filled<Parameters<double, 3>>([](std::size_t i) { return i % 3 == 2 ? 0.3 : 0; });
  const auto angles = random<Parameters<double, 3>>(7, 10, 170);
  const auto turned_angles =
      filled<Parameters<double, 3>>([degrees = 0.3 * 180 / Kokkos::numbers::pi, at = values(angles)](
                                        std::size_t i) { return at[i] + (i % 3 == 2 ? degrees : 0); });
  const Matrices<double> moved("test", batches, poses), expected("test", batches, poses);
  matrices_from_angles(space, angles, moved);
  matrices_from_angles(space, turned_angles, expected);
  matrices_from_rotation_vectors(space, turned, moved, moved); // in place
  CHECK(largest_difference(values(moved), values(expected)) < 1e-14);
}

TEST_CASE("gradients with respect to rotation vectors of any length about any rotation", "[geometry]") {
  const Space space;
  const auto base = random_rotations<double>(5);
  const auto cotangents = random<Matrices<double>>(6, -1, 1);
  const Parameters<double, 3> gradients("test", batches, poses), zero("test", batches, poses),
      tangent("test", batches, poses);
  for (const double largest : {1e-4, 1.0, 4.0}) {
    const auto vectors = random<Parameters<double, 3>>(7, -largest, largest);
    rotation_vector_gradients(space, vectors, base, cotangents, gradients);
    CHECK(difference_from_slopes<3>(vectors, values(gradients), values(cotangents), 1e-5,
                                    [&](const auto& at, const auto& matrices) {
                                      matrices_from_rotation_vectors(space, at, base, matrices);
                                    }) < 1e-9);
  }
  rotation_vector_gradients(space, zero, base, cotangents, gradients);
  rotation_vector_gradients(space, base, cotangents, tangent);
  CHECK(largest_difference(values(gradients), values(tangent)) < 1e-14);
  CHECK(message_of([&] { rotation_vector_gradients(space, zero, zero, cotangents, gradients); }) ==
        "Bracewell::rotation_vector_gradients: base: expected [2, 7, 3, 3], found [2, 7, 3]");
}

TEST_CASE("images are turned in their plane as psi turns them", "[geometry]") {
  const Space space;
  using Angles = Kokkos::View<double**, Kokkos::LayoutRight, Space>;
  using PlaneMatrices = Kokkos::View<double** [2][2], Kokkos::LayoutRight, Space>;
  const auto angles = random<Angles>(1, -400, 400);
  const PlaneMatrices matrices("test", batches, poses), low("test", batches, poses),
      high("test", batches, poses);
  matrices_from_plane_angles(space, angles, matrices);
  const auto at = values(angles), M = values(matrices);
  for (std::size_t pose = 0; pose < batches * poses; ++pose) {
    const auto expected = projection_matrix(EulerAngles<double>{0, 0, at[pose]});
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(std::abs(M[4 * pose + i] - expected(int(i / 2), int(i % 2))) < 1e-15);
  }
  const auto cotangents = random<PlaneMatrices>(2, -1, 1);
  const Angles gradients("test", batches, poses);
  plane_angle_gradients(space, angles, cotangents, gradients);
  constexpr double step = 1e-3;
  matrices_from_plane_angles(space, filled<Angles>([&](std::size_t i) { return at[i] - step; }), low);
  matrices_from_plane_angles(space, filled<Angles>([&](std::size_t i) { return at[i] + step; }), high);
  const auto g = values(gradients), c = values(cotangents), below = values(low), above = values(high);
  for (std::size_t pose = 0; pose < batches * poses; ++pose) {
    double slope = 0;
    for (std::size_t i = 4 * pose; i < 4 * pose + 4; ++i)
      slope += c[i] * (above[i] - below[i]) / (2 * step);
    CHECK(std::abs(g[pose] - slope) < 1e-10);
  }
  CHECK(message_of([&] { matrices_from_plane_angles(space, gradients, Matrices<double>("3", 2, 7)); }) ==
        "Bracewell::matrices_from_plane_angles: matrices: expected [2, 7, 2, 2], found [2, 7, 3, 3]");
}

TEST_CASE("gradients of matrices that are no rotations", "[geometry]") {
  const Space space;
  const auto matrices = random<Matrices<double>>(8, -2, 2); // anisotropic magnification
  const auto cotangents = random<Matrices<double>>(9, -1, 1);
  const Parameters<double, 3> gradients("test", batches, poses), zero("test", batches, poses);
  rotation_vector_gradients(space, matrices, cotangents, gradients);
  CHECK(difference_from_slopes<3>(zero, values(gradients), values(cotangents), 1e-5,
                                  [&](const auto& at, const auto& moved) {
                                    matrices_from_rotation_vectors(space, at, matrices, moved);
                                  }) < 1e-9);
}

TEST_CASE("float agrees with double", "[geometry]") {
  const auto run = []<class T>(T) {
    const Space space;
    std::vector<double> all;
    const auto append = [&](const auto& view) {
      const auto more = values(view);
      all.insert(all.end(), more.begin(), more.end());
    };
    const auto cotangents = random<Matrices<T>>(2, -1, 1);
    const auto angles = random<Parameters<T, 3>>(1, -180, 180);
    const auto quaternions = random<Parameters<T, 4>>(3, 0.2, 1);
    const auto vectors = random<Parameters<T, 3>>(4, -0.1, 0.1);
    const Matrices<T> matrices("test", batches, poses);
    const Parameters<T, 3> gradients("test", batches, poses);
    const Parameters<T, 4> quaternion("test", batches, poses);
    matrices_from_quaternions(space, quaternions, matrices);
    append(matrices);
    matrices_from_angles(space, angles, matrices);
    append(matrices);
    matrices_from_rotation_vectors(space, vectors, matrices, matrices);
    append(matrices);
    angle_gradients(space, angles, cotangents, gradients);
    append(gradients);
    rotation_vector_gradients(space, matrices, cotangents, gradients);
    append(gradients);
    quaternion_gradients(space, quaternions, cotangents, quaternion);
    append(quaternion);
    return all;
  };
  CHECK(largest_difference(run(1.0f), run(1.0)) < 3e-6);
}

TEST_CASE("wrong arguments of the pose gradients are named", "[geometry]") {
  const Space space;
  const Parameters<float, 3> vectors("test", batches, poses), fewer("test", batches, poses - 1);
  const Parameters<float, 4> quaternions("test", batches, poses);
  const Matrices<float> matrices("test", batches, poses);
  CHECK(message_of([&] { matrices_from_angles(space, fewer, matrices); }) ==
        "Bracewell::matrices_from_angles: matrices: expected [2, 6, 3, 3], found [2, 7, 3, 3]");
  CHECK(message_of([&] { matrices_from_angles(space, quaternions, matrices); }) ==
        "Bracewell::matrices_from_angles: angles: expected [2, 7, 3], found [2, 7, 4]");
  CHECK(message_of([&] { rotation_vector_gradients(space, matrices, matrices, quaternions); }) ==
        "Bracewell::rotation_vector_gradients: gradients: expected [2, 7, 3], found [2, 7, 4]");
  CHECK(message_of([&] { angle_gradients(space, vectors, matrices, vectors); }) ==
        "Bracewell::angle_gradients: gradients: expected memory of its own, found memory shared with angles");
}

TEST_CASE("no poses are no work", "[geometry]") {
  const Space space;
  const Parameters<float, 3> angles("test", 2, 0), gradients("test", 2, 0);
  const Parameters<float, 4> quaternions("test", 2, 0), quaternion("test", 2, 0);
  const Matrices<float> matrices("test", 2, 0), cotangents("test", 2, 0);
  CHECK_NOTHROW(matrices_from_angles(space, angles, matrices));
  CHECK_NOTHROW(matrices_from_quaternions(space, quaternions, matrices));
  CHECK_NOTHROW(matrices_from_rotation_vectors(space, angles, matrices, matrices));
  CHECK_NOTHROW(angle_gradients(space, angles, cotangents, gradients));
  CHECK_NOTHROW(quaternion_gradients(space, quaternions, cotangents, quaternion));
  CHECK_NOTHROW(rotation_vector_gradients(space, matrices, cotangents, gradients));
}
