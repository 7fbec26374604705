// What the tests of bracewell-match need:
//   match_check simulate FOLDER NOISE  map.mrc, micrograph.mrc (193 x 160 pixels, dark particles) and truth.star
//   match_check tomogram FOLDER NOISE  small.mrc, tomogram.mrc (64 x 50 x 42 voxels, views from -60 to 40 degrees, an X-ray),
//                                      views.tlt and tomogram.star; noise.mrc has the noise alone
//   match_check above SCORES THRESHOLD how many voxels are
//   match_check compare FOUND TRUTH PIXELS DEGREES
//   match_check grid                   of orientations: covers all rotations with every symmetry
// Molecules are Gaussian atoms. Their projections are drawn in closed form; the contrast transfer goes on by an FFT.
#include "bracewell-match/orientations.hpp"
#include "common/mrc.hpp"
#include "common/star.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/geometry/ctf.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <numbers>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace Bracewell;
using namespace Bracewell::Examples;
using Host = Kokkos::DefaultHostExecutionSpace;
using Matrix = std::array<double, 9>;
constexpr int height = 193, width = 160, box = 32;
constexpr double pixel = 2, sigma = 1.2, radians = std::numbers::pi / 180;

struct Atom {
  double x, y, z;
};

std::vector<Atom> molecule() {
  std::mt19937 engine(3);
  std::uniform_real_distribution<double> place(-12, 12);
  std::vector<Atom> atoms;
  while (atoms.size() < 40) {
    const Atom atom{place(engine), place(engine), place(engine)};
    if (std::hypot(atom.x, atom.y, atom.z) < 12)
      atoms.push_back(atom);
  }
  return atoms;
}

/// RELION's A = Rz(psi) Ry(tilt) Rz(rot), rows are the axes of the image: not by the library.
Matrix axes(double rot, double tilt, double psi) {
  const auto product = [](const Matrix& a, const Matrix& b) {
    Matrix c{};
    for (std::size_t i = 0; i < 9; ++i)
      for (std::size_t k = 0; k < 3; ++k)
        c[i] += a[i / 3 * 3 + k] * b[k * 3 + i % 3];
    return c;
  };
  const auto about_z = [](double angle) {
    const double c = std::cos(angle * radians), s = std::sin(angle * radians);
    return Matrix{c, s, 0, -s, c, 0, 0, 0, 1};
  };
  const double c = std::cos(tilt * radians), s = std::sin(tilt * radians);
  return product(about_z(psi), product({c, 0, -s, 0, 1, 0, s, 0, c}, about_z(rot)));
}

struct Particle {
  double x, y, rot, tilt, psi, z = 0;
};

void write_map(const std::string& path, const std::vector<Atom>& atoms, int size) {
  std::vector<float> map(std::size_t(size * size * size));
  for (int i = 0; i < size * size * size; ++i)
    for (const Atom& atom : atoms) {
      const double dx = i % size - size / 2 - atom.x, dy = i / size % size - size / 2 - atom.y,
                   dz = i / size / size - size / 2 - atom.z;
      map[std::size_t(i)] += float(std::exp(-(dx * dx + dy * dy + dz * dz) / (2 * sigma * sigma)));
    }
  write_volume(path, map, {size, size, size}, {.pixel_size = pixel});
}

void write_truth(const std::string& path, const std::vector<Particle>& particles) {
  StarTable table;
  table.name = "particles";
  table.columns = {"rlnCoordinateX", "rlnCoordinateY", "rlnCoordinateZ",
                   "rlnAngleRot",    "rlnAngleTilt",   "rlnAnglePsi"};
  for (const Particle& p : particles)
    for (const double value : {p.x, p.y, p.z, p.rot, p.tilt, p.psi})
      table.values.push_back(fixed(value));
  write_star(path, {{table}});
}

void simulate(const std::string& folder, double noise) {
  const auto atoms = molecule();
  write_map(folder + "/map.mrc", atoms, box);

  // Some degrees from orientations of a grid with steps of 18.
  const std::vector<Particle> particles{{40.0, 50.0, 20, 73, 128},
                                        {121.4, 60.7, 208, 37, 52},
                                        {50.2, 141.0, 108, 125, 307},
                                        {120.0, 150.5, 296.5, 56, 216},
                                        {88.3, 100.6, 0, 0, 2}};
  const Kokkos::View<double***, Kokkos::LayoutRight, Host> image("image", 1, height, width);
  for (const Particle& particle : particles) {
    const Matrix a = axes(particle.rot, particle.tilt, particle.psi);
    for (const Atom& atom : atoms) {
      const double x = particle.x + a[0] * atom.x + a[1] * atom.y + a[2] * atom.z,
                   y = particle.y + a[3] * atom.x + a[4] * atom.y + a[5] * atom.z;
      for (int row = 0; row < height; ++row)
        for (int column = 0; column < width; ++column)
          image(0, row, column) +=
              std::exp(-((column - x) * (column - x) + (row - y) * (row - y)) / (2 * sigma * sigma));
    }
  }
  const Host space;
  const Kokkos::View<Kokkos::complex<double>***, Kokkos::LayoutRight, Host> spectrum("spectrum", 1, height,
                                                                                     width / 2 + 1);
  FFT<Host, 2, double, Kokkos::complex<double>>(space, {height, width}).execute(space, image, spectrum);
  const CTF ctf({.defocus_u = 5000,
                 .defocus_v = 4600,
                 .defocus_angle = 25,
                 .voltage = 300,
                 .spherical_aberration = 2.7,
                 .amplitude_contrast = 0.1});
  for (int row = 0; row < height; ++row)
    for (int column = 0; column <= width / 2; ++column)
      spectrum(0, row, column) *=
          -ctf.value<double>(column / (width * pixel),
                             (row <= height / 2 ? row : row - height) / (height * pixel)) /
          (height * width);
  FFT<Host, 2, Kokkos::complex<double>, double>(space, {height, width}).execute(space, spectrum, image);
  space.fence();
  std::mt19937 engine(5);
  std::normal_distribution<double> normal;
  std::vector<float> pixels;
  for (int i = 0; i < height * width; ++i)
    pixels.push_back(float(100 + 10 * (image.data()[i] + noise * normal(engine))));
  pixels[7 * width + 9] = 1e7f; // an X-ray
  MrcWriter writer(folder + "/micrograph.mrc", MrcWriter::Kind::Stack, width, height, {.pixel_size = pixel});
  writer.write(pixels);
  writer.close();

  write_truth(folder + "/truth.star", particles);
}

void simulate_tomogram(const std::string& folder, double noise) {
  constexpr int size[3] = {64, 50, 42}; // x, y, z
  auto atoms = molecule();
  for (Atom& atom : atoms)
    atom = {atom.x / 2, atom.y / 2, atom.z / 2};
  write_map(folder + "/small.mrc", atoms, 16);
  const std::vector<Particle> particles{{15.4, 12.0, 20, 73, 128, 11.3},
                                        {41.0, 30.6, 208, 37, 52, 28.0},
                                        {30.2, 38.0, 108, 125, 307, 14.7},
                                        {52.0, 14.5, 296.5, 56, 216, 20.0}};
  write_truth(folder + "/tomogram.star", particles);
  using Values = Kokkos::View<double****, Kokkos::LayoutRight, Host>;
  const Host space;
  std::mt19937 engine(5);
  std::normal_distribution<double> normal;
  for (const bool molecules : {true, false}) {
    const Values values("values", 1, size[2], size[1], size[0]);
    for (const Particle& particle : particles) {
      const Matrix a = axes(particle.rot, particle.tilt, particle.psi);
      for (const Atom& atom : atoms)
        for (int i = 0; molecules && i < int(values.size()); ++i) {
          const double x = i % size[0] - particle.x - (a[0] * atom.x + a[1] * atom.y + a[2] * atom.z),
                       y = i / size[0] % size[1] - particle.y -
                           (a[3] * atom.x + a[4] * atom.y + a[5] * atom.z),
                       z = i / size[0] / size[1] - particle.z -
                           (a[6] * atom.x + a[7] * atom.y + a[8] * atom.z);
          values.data()[i] -= std::exp(-(x * x + y * y + z * z) / (2 * sigma * sigma)); // dark
        }
    }
    for (int i = 0; i < int(values.size()); ++i)
      values.data()[i] += noise * normal(engine);
    const Kokkos::View<Kokkos::complex<double>****, Kokkos::LayoutRight, Host> spectrum(
        "spectrum", 1, size[2], size[1], size[0] / 2 + 1);
    FFT<Host, 3, double, Kokkos::complex<double>>(space, {size[2], size[1], size[0]})
        .execute(space, values, spectrum);
    for (int z = 0; z < size[2]; ++z)
      for (int y = 0; y < size[1]; ++y)
        for (int x = 0; x <= size[0] / 2; ++x) { // a view shows x cos + z sin
          const double fz = double(z <= size[2] / 2 ? z : z - size[2]) / size[2], fx = double(x) / size[0];
          const double angle = std::atan(fz / fx) / radians;
          const bool seen = (x == 0 && z == 0) || (x > 0 && angle >= -60 && angle <= 40);
          spectrum(0, z, y, x) *= (seen ? 1.0 : 0.0) / double(values.size());
        }
    FFT<Host, 3, Kokkos::complex<double>, double>(space, {size[2], size[1], size[0]})
        .execute(space, spectrum, values);
    space.fence();
    std::vector<float> voxels(values.data(), values.data() + values.size());
    MrcWriter writer(folder + (molecules ? "/tomogram.mrc" : "/noise.mrc"), MrcWriter::Kind::Volume, size[0],
                     size[1], {.pixel_size = pixel});
    voxels[777] = 1e7f; // an X-ray
    writer.write(voxels);
    writer.close();
  }
  std::ofstream views(folder + "/views.tlt");
  for (int angle = -60; angle <= 40; angle += 2)
    views << angle << "\n";
}

std::vector<Particle> particles_of(const std::string& path) {
  const StarDocument document = read_star(path);
  const StarTable& table = document.tables.at(0);
  std::vector<Particle> particles;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto number = [&](const char* column) { return std::stod(table.value(row, *table.find(column))); };
    particles.push_back({number("rlnCoordinateX"), number("rlnCoordinateY"), number("rlnAngleRot"),
                         number("rlnAngleTilt"), number("rlnAnglePsi"),
                         table.find("rlnCoordinateZ") ? number("rlnCoordinateZ") : 0});
  }
  return particles;
}

/// The largest of distances, in degrees, of 200 rotations at random from the grid and what the symmetry makes of it.
double farthest(const std::string& symmetry, double step, std::size_t& count) {
  std::vector<Matrix> grid;
  const auto orientations = orientation_grid(step, step, symmetry);
  count = orientations.size();
  for (const auto& one : orientations)
    grid.push_back(axes(one.rot, one.tilt, one.psi));
  const auto operators = symmetry_operators(symmetry);
  std::mt19937 engine(2);
  std::uniform_real_distribution<double> turn(0, 360), height_of(-1, 1);
  double largest = 0;
  for (int i = 0; i < 200; ++i) {
    const Matrix a = axes(turn(engine), std::acos(height_of(engine)) / radians, turn(engine));
    double nearest = -1;              // trace
    for (const auto& s : operators) { // A S^T shows the same as A: directions in the map are rows
      Matrix turned{};
      for (std::size_t r = 0; r < 3; ++r)
        for (std::size_t c = 0; c < 3; ++c)
          for (std::size_t k = 0; k < 3; ++k)
            turned[3 * r + c] += a[3 * r + k] * s(int(c), int(k));
      for (const Matrix& b : grid) {
        double trace = 0;
        for (std::size_t e = 0; e < 9; ++e)
          trace += turned[e] * b[e];
        nearest = std::max(nearest, trace);
      }
    }
    largest = std::max(largest, std::acos(std::clamp((nearest - 1) / 2, -1.0, 1.0)) / radians);
  }
  return largest;
}

int check_grid() {
  constexpr double step = 12;
  std::size_t all = 0;
  bool right = true;
  for (const char* symmetry : {"C1", "C4", "D3", "T", "O", "I2"}) {
    std::size_t count = 0;
    const double distance = farthest(symmetry, step, count);
    all = all == 0 ? count : all;
    const double order = double(symmetry_operators(symmetry).size()),
                 share = double(count) * order / double(all);
    std::printf("%s: %zu orientations, %.2f times the sphere's share, none further than %.1f degrees\n",
                symmetry, count, share, distance);
    // A cell of the grid has sides of a step, half of its diagonal is step sqrt(3) / 2.
    right = right && distance < step && share < 4 && share > 0.95;
  }
  return right ? 0 : 1;
}

/// All of the truth and nothing else, each within the limits.
int compare(const std::string& found_path, const std::string& truth_path, double pixels, double degrees) {
  const auto found = particles_of(found_path), truth = particles_of(truth_path);
  bool right = found.size() == truth.size();
  for (const Particle& t : truth) {
    double nearest = 1e9, angle = 0;
    for (const Particle& f : found) {
      const double distance = std::hypot(f.x - t.x, f.y - t.y, f.z - t.z);
      if (distance >= nearest)
        continue;
      nearest = distance;
      const Matrix a = axes(f.rot, f.tilt, f.psi), b = axes(t.rot, t.tilt, t.psi);
      double trace = 0;
      for (std::size_t i = 0; i < 9; ++i)
        trace += a[i] * b[i];
      angle = std::acos(std::clamp((trace - 1) / 2, -1.0, 1.0)) / radians;
    }
    std::printf("(%.1f, %.1f, %.1f): %.2f pixels and %.1f degrees away\n", t.x, t.y, t.z, nearest, angle);
    right = right && nearest < pixels && angle < degrees;
  }
  std::printf("%zu found, %zu there: %s\n", found.size(), truth.size(), right ? "right" : "WRONG");
  return right ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard guard;
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 3 && words[0] == "simulate")
      return simulate(words[1], std::stod(words[2])), 0;
    if (words.size() == 3 && words[0] == "tomogram")
      return simulate_tomogram(words[1], std::stod(words[2])), 0;
    if (words.size() == 3 && words[0] == "above") {
      const auto scores = MrcReader(words[1]).read_volume();
      const double threshold = std::stod(words[2]);
      std::printf("%td\n",
                  std::ranges::count_if(scores, [&](float score) { return double(score) > threshold; }));
      return 0;
    }
    if (words.size() == 5 && words[0] == "compare")
      return compare(words[1], words[2], std::stod(words[3]), std::stod(words[4]));
    if (words.size() == 1 && words[0] == "grid")
      return check_grid();
    std::fprintf(stderr, "match_check grid | simulate FOLDER NOISE | tomogram FOLDER NOISE | above SCORES "
                         "THRESHOLD | compare FOUND "
                         "TRUTH PIXELS DEGREES\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "match_check: %s\n", error.what());
  }
  return 2;
}
