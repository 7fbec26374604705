// SPDX-License-Identifier: MIT
#include "bracewell-refine/refinement.hpp"
#include "common/command_line.hpp"
#include "common/output_family.hpp"
#include "cryoem/particle_provenance.hpp"

#include <bracewell/geometry/euler.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <numbers>

namespace {

using namespace Bracewell::Examples;
namespace fs = std::filesystem;

constexpr const char* program = "bracewell-refine";

struct Options {
  fs::path map, star, out;
  RefinementOptions refinement;
  std::optional<double> pixel_size;
  std::optional<std::int64_t> class_number;
};

/// Enters angles and origins, in the columns and units that the file has them in.
void set_columns(Particles& particles, const std::vector<RefinedPose>& refined) {
  auto& table = particles.particle_table();
  // RELION 3.1 and later: Angstrom; before, without a table of optics groups: pixels.
  const bool angstrom = table.find("rlnOriginXAngst") ||
                        (!table.find("rlnOriginX") && particles.document.find("optics") != nullptr &&
                         particles.pixel_size.present());
  std::vector<std::string> rot, tilt, psi, x, y;
  for (std::size_t row = 0; row < refined.size(); ++row) {
    const auto& pose = refined[row].after;
    const auto angles = Bracewell::euler_angles(Bracewell::transpose(pose.matrix));
    const double unit = angstrom ? particles.pixel_size[row] : 1;
    rot.push_back(fixed(angles.rot));
    tilt.push_back(fixed(angles.tilt));
    psi.push_back(fixed(angles.psi));
    x.push_back(fixed(-pose.shift[1] * unit));
    y.push_back(fixed(-pose.shift[0] * unit));
  }
  table.set_column("rlnAngleRot", std::move(rot));
  table.set_column("rlnAngleTilt", std::move(tilt));
  table.set_column("rlnAnglePsi", std::move(psi));
  table.set_column(angstrom ? "rlnOriginXAngst" : "rlnOriginX", std::move(x));
  table.set_column(angstrom ? "rlnOriginYAngst" : "rlnOriginY", std::move(y));
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Angle of the rotation between two orientations, degrees.
double angle_between(const Bracewell::Matrix3<double>& a, const Bracewell::Matrix3<double>& b) {
  const auto v = Bracewell::rotation_vector(Bracewell::transpose(a) * b);
  return std::hypot(v.x, v.y, v.z) * 180 / std::numbers::pi;
}

std::string summary(const std::vector<RefinedPose>& refined, double seconds) {
  std::vector<double> degrees, pixels;
  double before = 0, after = 0;
  for (const auto& pose : refined) {
    degrees.push_back(angle_between(pose.before.matrix, pose.after.matrix));
    pixels.push_back((pose.after.shift - pose.before.shift).norm());
    before += pose.loss_before / static_cast<double>(refined.size());
    after += pose.loss_after / static_cast<double>(refined.size());
  }
  char text[256];
  std::snprintf(text, sizeof text,
                "%zu particles, median change %.3g degrees and %.3g pixels, loss %.5f -> %.5f of the images' "
                "power, %.3g s",
                refined.size(), median(degrees), median(pixels), before, after, seconds);
  return text;
}

void refine(const Options& options, Provenance& provenance) {
  const auto start = std::chrono::steady_clock::now();
  options.refinement.sampling.check();
  OutputFamily outputs({options.out});
  const Space space;
  Particles particles =
      read_particles(options.star, {.pixel_size = options.pixel_size, .class_number = options.class_number});
  const CubicMap map = read_map(provenance, options.map);
  if (map.voxel_size && particles.pixel_size.present() &&
      std::abs(*map.voxel_size - particles.pixel_size[0]) > 0.01 * *map.voxel_size)
    particles.warnings.push_back(options.star.string() + ": has pixels of " +
                                 std::to_string(particles.pixel_size[0]) +
                                 " Angstrom, the map has voxels of " + std::to_string(*map.voxel_size) +
                                 ": pixels are taken as voxels");
  Refinement refinement(space, particles, make_reference(space, map, options.refinement.sampling),
                        options.refinement);
  note_particles(provenance, particles, refinement.uses_ctf());
  provenance.say();
  const auto refined = refinement.run();
  if (const auto inverted = std::ranges::count(refined, true, &RefinedPose::inverted);
      2 * static_cast<std::size_t>(inverted) > refined.size())
    provenance.assume(options.star.string() +
                      ": most images fit the map with inverted contrast: dark particles?");
  set_columns(particles, refined);
  if (options.pixel_size)
    set_pixel_size(particles, *options.pixel_size);
  move_image_names(particles, options.out);
  write_star(options.out, particles.document, provenance.lines());
  outputs.commit();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::cout << options.out.string() << ": " << summary(refined, elapsed.count()) << '\n';
}

} // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(
      Kokkos::InitializationSettings().set_disable_warnings(true)); // of unbound threads
  CLI::App app{
      "Refines angles and origins of particles against a map, each from where it is: the loss |scale CTF "
      "projection - image|^2 is minimised by BFGS with exact gradients, from coarse to fine frequencies.",
      program};
  Options options;
  auto& refinement = options.refinement;
  app.add_option("--map", options.map, "MRC map; its voxels are the images' pixels")
      ->required()
      ->type_name("FILE");
  app.add_option("--star", options.star, "particles with poses (RELION 3.1 or older)")
      ->required()
      ->type_name("FILE");
  app.add_option("--out", options.out, "STAR file to write: the same particles with refined poses")
      ->required()
      ->type_name("FILE");
  app.add_flag("--no-ctf", refinement.no_ctf,
               "compare with bare projections; without it they are multiplied by the contrast transfer where "
               "the STAR file has what it takes");
  add_sampling_options(
      app, refinement.sampling,
      "2 keeps the aliases of the kernel out of the box's inner half, where the molecule is");
  app.add_option("--radius", refinement.radius, "largest frequency compared, in periods per box (Nyquist)")
      ->check(CLI::PositiveNumber)
      ->type_name("FREQUENCY");
  app.add_option("--iterations", refinement.iterations, "evaluations of the loss per stage, at most")
      ->check(CLI::PositiveNumber)
      ->type_name("NUMBER")
      ->capture_default_str();
  app.add_option("--pixel-size", options.pixel_size, "Angstrom, instead of what the STAR file says")
      ->check(CLI::PositiveNumber)
      ->type_name("ANGSTROM");
  app.add_option("--class", options.class_number,
                 "only the particles of this rlnClassNumber, others are left out")
      ->type_name("NUMBER");
  app.add_option("--batch", refinement.batch, "images at a time, 0: chosen")
      ->type_name("NUMBER")
      ->capture_default_str();
  return run_driver(app, argc, argv, [&](Provenance& provenance) { refine(options, provenance); });
}
