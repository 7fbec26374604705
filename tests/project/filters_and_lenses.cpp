// What belongs to a lens: filters of every sample, the curvature of the Ewald sphere, anisotropic
// magnification.

#include "molecule.hpp"

#include <bracewell/project/filter_gradients.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace Test;

namespace {

constexpr int n = 24, N = 48, poses_count = 3;

HostPoses<double> random_poses(Random& random) {
  HostPoses<double> poses{Tensor<double>({1, poses_count, 3, 3}), Tensor<double>({1, poses_count, 2})};
  for (int pose = 0; pose < poses_count; ++pose) {
    const Matrix3 rotation = random_rotation(3, random);
    for (int i = 0; i < 9; ++i)
      poses.matrices[pose * 9 + i] = rotation[i / 3][i % 3];
  }
  fill(poses.shifts, random);
  return poses;
}

/// Projections in closed form: the molecule's spectrum at the rotated positions, `lens` having moved the
/// frequency (kx, ky, 0) before.
template <class Lens>
Tensor<complex<double>> closed_form(const Molecule& molecule, const HostPoses<double>& poses,
                                    const Lens& lens) {
  auto result = spectra<complex<double>>({1, poses_count}, {n, n});
  const int columns = n / 2 + 1;
  for (int pose = 0; pose < poses_count; ++pose)
    for (int i = 0; i < n * columns; ++i) {
      const int kx = i % columns, row = i / columns, ky = 2 * row <= n ? row : row - n;
      if (4 * (kx * kx + ky * ky) > n * n)
        continue;
      std::array<double, 3> k{double(kx), double(ky), 0.}, frequency{};
      lens(k);
      for (int d = 0; d < 3; ++d)
        for (int c = 0; c < 3; ++c)
          frequency[d] += poses.matrices[(pose * 3 + d) * 3 + c] * k[c] / n;
      const double turns = (ky * poses.shifts[pose * 2] + kx * poses.shifts[pose * 2 + 1]) / n;
      const auto value = molecule.spectrum(frequency) * std::polar(1., -2 * M_PI * turns);
      result[pose * n * columns + i] = complex<double>(value.real(), value.imag());
    }
  return result;
}

const Operators<double>& spline() { return operators<double>("bspline3", 2, 3); }

Molecule molecule() { return Molecule(3, {4, 4, 4}, 12, 5); }

Tensor<complex<double>> volume() {
  return molecule().corrected_volume<double>({N, N, N}, Bracewell::CubicBSpline::transform<double>);
}

double error(const Tensor<complex<double>>& result, const Tensor<complex<double>>& expected) {
  return norm(moved(result, -1, expected)) / norm(expected);
}

} // namespace

TEST_CASE("projections on the Ewald sphere are the closed form's") {
  Random random(3);
  const auto poses = random_poses(random);
  auto flat = spectra<complex<double>>({1, poses_count}, {n, n});
  spline().project(volume(), poses, flat, {.oversampling = 2});
  for (const double radius : {15., -40.}) {
    auto projections = flat;
    spline().project(volume(), poses, projections, {.oversampling = 2, .ewald_radius = radius});
    const auto expected = closed_form(molecule(), poses, [&](std::array<double, 3>& k) {
      k[2] = (k[0] * k[0] + k[1] * k[1]) / (2 * radius);
    });
    CHECK(error(projections, expected) < 1e-3);
    CHECK(error(flat, expected) > 1e-2); // the curvature is not a detail here
  }
}

TEST_CASE("anisotropic magnification is a factor of the matrix") {
  Random random(4);
  auto poses = random_poses(random);
  const double lens[3][3] = {{1.03, 0.02, 0}, {-0.01, 0.96, 0}, {0, 0, 1}};
  const auto expected = closed_form(molecule(), poses, [&](std::array<double, 3>& k) {
    k = {lens[0][0] * k[0] + lens[0][1] * k[1], lens[1][0] * k[0] + lens[1][1] * k[1], 0};
  });
  const auto rotations = poses.matrices;
  for (int i = 0; i < poses_count * 9; ++i) {
    poses.matrices[i] = 0;
    for (int c = 0; c < 3; ++c)
      poses.matrices[i] += rotations[i / 3 * 3 + c] * lens[c][i % 3];
  }
  auto projections = spectra<complex<double>>({1, poses_count}, {n, n});
  spline().project(volume(), poses, projections, {.oversampling = 2});
  CHECK(error(projections, expected) < 1e-3);
}

TEST_CASE("on the Ewald sphere back-projection is the adjoint, whatever the strategy") {
  Random random(5);
  const auto poses = random_poses(random);
  const auto reconstruction = volume();
  auto projections = spectra<complex<double>>({1, poses_count}, {n, n}), images = projections;
  fill(images, random);
  ProjectionOptions options{.oversampling = 1.5, .ewald_radius = 9};
  spline().project(reconstruction, poses, projections, options);
  for (const Strategy strategy : {Strategy::Atomic, Strategy::Owned}) {
    options.strategy = strategy;
    auto data = zero_like(reconstruction);
    Tensor<double> none;
    spline().backproject(images, poses, data, none, none, options);
    const double scale = std::sqrt(full_dot(projections, projections) * full_dot(images, images));
    CHECK(std::abs(full_dot(projections, images) - full_dot(reconstruction, data)) < 1e-12 * scale);
  }
}

TEST_CASE("the third column of the matrix has a gradient on the Ewald sphere") {
  Random random(6);
  auto poses = random_poses(random);
  const auto reconstruction = volume();
  auto projections = spectra<complex<double>>({1, poses_count}, {n, n});
  const auto cotangent = random_like(projections, random);
  const ProjectionOptions options{.oversampling = 1.5, .ewald_radius = 9};
  Operators<double>::ProjectGradients gradients;
  gradients.matrices = zero_like(poses.matrices);
  spline().project_gradients(reconstruction, poses, cotangent, gradients, options);
  const auto direction = random_like(poses.matrices, random);
  const double step = 1e-6;
  double loss[2];
  for (const int side : {0, 1}) {
    auto moved_poses = poses;
    moved_poses.matrices = moved(poses.matrices, side ? step : -step, direction);
    spline().project(reconstruction, moved_poses, projections, options);
    loss[side] = dot(projections, cotangent);
  }
  const double expected = dot(gradients.matrices, direction);
  CHECK(std::abs((loss[1] - loss[0]) / (2 * step) - expected) < 1e-6 * norm(gradients.matrices));
  CHECK(std::abs(gradients.matrices[2]) > 1e-3 * norm(gradients.matrices));
}

TEST_CASE("filters multiply every sample on its way out and in") {
  Random random(7);
  auto poses = random_poses(random), filtered = poses;
  const auto reconstruction = volume();
  const ProjectionOptions options{.oversampling = 1};
  filtered.filters = spectra<double>({1, 1}, {n, n}); // shared by the poses
  fill(filtered.filters, random);
  const auto filter = [&](Tensor<complex<double>> spectrum) {
    for (std::size_t i = 0; i < spectrum.size(); ++i)
      spectrum[i] *= filtered.filters[i % filtered.filters.size()];
    return spectrum;
  };
  auto plain = spectra<complex<double>>({1, poses_count}, {n, n}), projections = plain;
  spline().project(reconstruction, poses, plain, options);
  spline().project(reconstruction, filtered, projections, options);
  CHECK(error(projections, filter(plain)) < 1e-14);

  const auto images = random_like(plain, random);
  for (const Strategy strategy : {Strategy::Atomic, Strategy::Owned}) {
    auto data = zero_like(reconstruction), expected = data;
    Tensor<double> none;
    spline().backproject(images, filtered, data, none, none, {.oversampling = 1, .strategy = strategy});
    spline().backproject(filter(images), poses, expected, none, none,
                         {.oversampling = 1, .strategy = strategy});
    CHECK(error(data, expected) < 1e-14);
  }

  Operators<double>::ProjectGradients of_filtered, of_plain;
  of_filtered.projections = of_plain.projections = plain;
  of_filtered.reconstruction = of_plain.reconstruction = zero_like(reconstruction);
  of_filtered.matrices = of_plain.matrices = zero_like(poses.matrices);
  of_filtered.shifts = of_plain.shifts = zero_like(poses.shifts);
  spline().project_gradients(reconstruction, filtered, images, of_filtered, options);
  spline().project_gradients(reconstruction, poses, filter(images), of_plain, options);
  CHECK(error(of_filtered.projections, filter(plain)) < 1e-14);
  CHECK(error(of_filtered.reconstruction, of_plain.reconstruction) < 1e-13);
  CHECK(norm(moved(of_filtered.matrices, -1, of_plain.matrices)) < 1e-13 * norm(of_plain.matrices));
  CHECK(norm(moved(of_filtered.shifts, -1, of_plain.shifts)) < 1e-13 * norm(of_plain.shifts));
}

TEST_CASE("gradients of filters are the slopes of projections and back-projections, shared or not") {
  Random random(8);
  const auto poses = random_poses(random);
  const auto reconstruction = volume();
  auto projections = spectra<complex<double>>({1, poses_count}, {n, n});
  const auto cotangent = random_like(projections, random), images = random_like(projections, random);
  const auto data_cotangent = random_like(reconstruction, random);
  const ProjectionOptions options{.oversampling = 2};

  // U and g of project, then of backproject.
  auto plain = projections;
  spline().project(reconstruction, poses, plain, options);
  Operators<double>::BackprojectGradients of_images;
  of_images.data = data_cotangent;
  of_images.projections = projections;
  spline().backproject_gradients(images, poses, of_images, options);

  for (const std::size_t own : {std::size_t(1), std::size_t(poses_count)}) {
    auto filtered = poses;
    filtered.filters = spectra<double>({1, own}, {n, n});
    fill(filtered.filters, random);
    const auto direction = random_like(filtered.filters, random),
               start = random_like(filtered.filters, random);
    const auto gradient = [&](const auto& values, const auto& g) {
      auto result = start; // written over
      const auto view = [](auto& tensor) {
        using Value = std::remove_reference_t<decltype(tensor[0])>;
        return Kokkos::View<Value****, Kokkos::LayoutRight, Kokkos::HostSpace>(
            tensor.values.data(), tensor.extents[0], tensor.extents[1], tensor.extents[2], tensor.extents[3]);
      };
      Bracewell::filter_gradients(Kokkos::DefaultHostExecutionSpace(), view(values), view(g), view(result));
      return result;
    };
    double project_losses[2], backproject_losses[2];
    for (const int side : {0, 1}) {
      auto at = filtered;
      at.filters = moved(filtered.filters, side ? 0.5 : -0.5, direction); // both losses are linear
      spline().project(reconstruction, at, projections, options);
      project_losses[side] = dot(projections, cotangent);
      auto data = zero_like(reconstruction);
      Tensor<double> none;
      spline().backproject(images, at, data, none, none, options);
      backproject_losses[side] = dot(data, data_cotangent);
    }
    const auto of_project = gradient(plain, cotangent),
               of_backproject = gradient(images, of_images.projections);
    CHECK(std::abs(project_losses[1] - project_losses[0] - dot(of_project, direction)) <
          1e-12 * norm(of_project) * norm(direction));
    CHECK(std::abs(backproject_losses[1] - backproject_losses[0] - dot(of_backproject, direction)) <
          1e-12 * norm(of_backproject) * norm(direction));
  }
}
