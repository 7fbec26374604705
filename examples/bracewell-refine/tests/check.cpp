// SPDX-License-Identifier: MIT
// What the tests of bracewell-refine need besides it: particles with known poses, poses off by a known
// amount, and the errors of poses.
#include "bracewell-reconstruct/demo.hpp"
#include "common/command_line.hpp"
#include "common/star.hpp"

#include <bracewell/geometry/euler.hpp>
#include <bracewell/geometry/rotation_vector.hpp>
#include <bracewell/geometry/rotations.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numbers>
#include <random>

namespace {

using namespace Bracewell;
using namespace Bracewell::Examples;
namespace fs = std::filesystem;

constexpr double pi = std::numbers::pi;

/// Turns every particle by an angle about a random axis and moves it by a distance in a random direction.
void perturb(const fs::path& in, const fs::path& out, double degrees, double pixels) {
  Particles particles = read_particles(in, {.images = false});
  std::mt19937_64 generator(4);
  std::vector<std::string> rot, tilt, psi, x, y;
  for (std::size_t row = 0; row < particles.count; ++row) {
    const Matrix3<double> axis = rotation_matrix(random_rotation<double>(generator));
    const double angle = degrees * pi / 180;
    const auto moved =
        rotation_matrix(RotationVector<double>{angle * axis(0, 0), angle * axis(1, 0), angle * axis(2, 0)}) *
        euler_matrix(EulerAngles<double>{particles.rot[row], particles.tilt[row], particles.psi[row]});
    const auto angles = euler_angles(moved);
    const double direction = 2 * pi * std::generate_canonical<double, 53>(generator);
    const double unit = particles.pixel_size[row];
    rot.push_back(fixed(angles.rot));
    tilt.push_back(fixed(angles.tilt));
    psi.push_back(fixed(angles.psi));
    x.push_back(fixed(unit * (particles.origin_x[row] + pixels * std::cos(direction))));
    y.push_back(fixed(unit * (particles.origin_y[row] + pixels * std::sin(direction))));
  }
  auto& table = particles.particle_table();
  table.set_column("rlnAngleRot", rot);
  table.set_column("rlnAngleTilt", tilt);
  table.set_column("rlnAnglePsi", psi);
  table.set_column("rlnOriginXAngst", x);
  table.set_column("rlnOriginYAngst", y);
  write_star(out, particles.document);
}

double quantile(std::vector<double> values, double fraction) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(fraction * static_cast<double>(values.size() - 1))];
}

/// Prints the errors of poses; throws where the medians are not below the limits or a column of the file was
/// lost.
void compare(const fs::path& star, const fs::path& truth, double degrees, double pixels) {
  const Particles found = read_particles(star, {.images = false});
  const Particles expected = read_particles(truth, {.images = false});
  auto columns = found.document.find(found.table)->columns;
  std::erase(columns, "rlnParticleFigureOfMerit"); // is added
  if (found.count != expected.count || columns != expected.document.find(expected.table)->columns)
    throw std::runtime_error(star.string() + ": rows or columns differ from " + truth.string());
  const auto matrix = [](const Particles& particles, std::size_t row) {
    return projection_matrix(
        EulerAngles<double>{particles.rot[row], particles.tilt[row], particles.psi[row]});
  };
  std::vector<double> angles, distances;
  for (std::size_t row = 0; row < found.count; ++row) {
    const auto v = rotation_vector(transpose(matrix(found, row)) * matrix(expected, row));
    angles.push_back(std::hypot(v.x, v.y, v.z) * 180 / pi);
    distances.push_back(std::hypot(found.origin_x[row] - expected.origin_x[row],
                                   found.origin_y[row] - expected.origin_y[row]));
  }
  std::cout << star.string() << ": errors (median, 90 %): " << quantile(angles, 0.5) << ", "
            << quantile(angles, 0.9) << " degrees; " << quantile(distances, 0.5) << ", "
            << quantile(distances, 0.9) << " pixels\n";
  if (!(quantile(angles, 0.5) < degrees && quantile(distances, 0.5) < pixels))
    throw std::runtime_error(star.string() + ": expected medians below " + std::to_string(degrees) +
                             " degrees and " + std::to_string(pixels) + " pixels");
}

} // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(Kokkos::InitializationSettings().set_disable_warnings(true));
  CLI::App app{"Tests of bracewell-refine.", "refine_check"};
  app.require_subcommand(1);
  fs::path folder, star, out;
  Demo demo;
  double degrees = 0, pixels = 0;
  auto* const make =
      app.add_subcommand("simulate", "particles of a molecule, as bracewell-reconstruct --demo");
  make->add_option("folder", folder)->required();
  make->add_option("--box", demo.box);
  make->add_option("--particles", demo.particles);
  make->add_option("--snr", demo.signal_to_noise);
  auto* const move = app.add_subcommand("perturb", "changes poses");
  auto* const check = app.add_subcommand("compare", "errors of poses and their limits");
  for (auto* const command : {move, check}) {
    command->add_option("star", star)->required();
    command->add_option("out", out, "or the truth")->required();
    command->add_option("degrees", degrees)->required();
    command->add_option("pixels", pixels)->required();
  }
  return run_driver(app, argc, argv, [&](Provenance&, Timings&) {
    if (make->parsed())
      simulate(Space(), demo, folder);
    else if (move->parsed())
      perturb(star, out, degrees, pixels);
    else
      compare(star, out, degrees, pixels);
  });
}
