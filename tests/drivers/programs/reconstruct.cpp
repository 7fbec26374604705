// SPDX-License-Identifier: MIT
#include "pictures.hpp"
#include "support.hpp"

#include <cstdlib>
#include <numbers>
#include <random>
#include <sstream>
#include <tuple>

using namespace DriverTest;

namespace {

const std::string reconstruct = BRACEWELL_RECONSTRUCT;

/// Projections of Gaussians in closed form, and the map they come from.
struct Scene {
  TemporaryFolder folder;
  int box;
  std::vector<float> map;
  std::vector<Particle> particles;

  Scene(int size, int count, const std::vector<Gaussian>& gaussians, std::vector<Particle> poses = {})
      : box(size), map(gaussian_map(gaussians, box)),
        particles(poses.empty() ? random_particles(count, 2.5) : std::move(poses)) {
    write_map(folder / "truth.mrc", map, box);
    write_stack(folder / "images.mrcs", gaussian_projections(gaussians, particles, box), box, box);
    write_text(folder / "particles.star", star_text(particles, box, "images.mrcs"));
  }

  std::vector<float> reconstruction(const std::string& options, const std::string& out = "map.mrc") const {
    run_well(folder, reconstruct + " --star particles.star --no-ctf --out " + out + " " + options);
    return MrcReader(folder / out).read_volume();
  }
  double error(const std::string& options) const {
    return error_in_sphere(reconstruction(options), map, box);
  }
};

} // namespace

TEST_CASE("Gaussians are reconstructed from their line integrals, for even and odd boxes") {
  // The images are not padded: their samples lie 1.7 voxels of the spectrum apart, and data / weight
  // interpolates between them. In the map that is an error that grows as the square of the distance from the
  // centre and does not fall with the number of particles: 0.46 (R / box)^2 + 0.002 for R, the root mean
  // square distance weighted by the squared density, from box/10 to box/5 (400 and 6400 particles within a
  // tenth of each other).
  const double deviation = 2;
  const auto bound = [&](double spread, int box) {
    const double squared_distance = spread * spread + 1.5 * deviation * deviation;
    return 1.2 * (0.46 * squared_distance / (box * box) + 0.002);
  };
  for (const int box : {32, 33}) {
    CAPTURE(box);
    const Scene compact(box, 400, random_gaussians(12, box / 10.0, deviation));
    const std::string signed_weights = "--kernel catmull_rom --oversampling 1.7";
    CHECK(compact.error(signed_weights) < bound(box / 10.0, box));
    CHECK(compact.error("") < 0.04);
    const Scene scene(box, 400, random_gaussians(12, box / 5.0, deviation));
    CHECK(scene.error(signed_weights) < bound(box / 5.0, box));
    CHECK(scene.error("") < 0.06);
    CHECK(scene.error("--gridding-steps 0") < 0.06);
    CHECK(scene.error("--gridding-steps 0 --wiener 0 --correction radial") < 0.06);
    CHECK(scene.error("--kernel bspline3 --oversampling 2") < 0.06);
    CHECK(scene.error("--kernel bspline3 --correction none") > 0.05);
  }
}

TEST_CASE("a reconstruction writes its files and one line") {
  const Scene scene(32, 200, random_gaussians(12, 6, 2));
  const std::string line = run_well(
      scene.folder, reconstruct + " --star particles.star --no-ctf --reference truth.mrc --out map.mrc");
  CHECK(std::ranges::count(line, '\n') == 1);
  CHECK(line.find("200 particles") != std::string::npos);
  for (const char* name : {"map.mrc", "map_half1.mrc", "map_half2.mrc", "map_sharpened.mrc", "map_fsc.txt",
                           "map_fsc.png", "map_directions.txt", "map_directions.png", "map_slices.png",
                           "map_local_resolution.mrc", "map_summary.png"})
    CHECK(fs::file_size(scene.folder / name) > 0);
  const auto correlation = read_correlations(scene.folder / "map_fsc.txt", 1);
  REQUIRE(correlation.size() == 16);
  // From shell 8 on the Gaussians, of deviation 2, have less than 1 % of their amplitude at zero frequency
  // left, exp(-2 pi^2 4 (8/32)^2), which is less than the error of the map.
  for (std::size_t shell = 0; shell < 8; ++shell)
    CHECK(correlation[shell] > 0.99);
  CHECK(MrcReader(scene.folder / "map.mrc").header().voxel_size[0] == 3.0);
  const auto half = MrcReader(scene.folder / "map_half2.mrc").read_volume();
  CHECK(error_in_sphere(half, scene.map, 32) < 0.1);
}

TEST_CASE("a map does not depend on batches and threads") {
  const Scene scene(24, 50, random_gaussians(8, 5, 2));
  const auto map = scene.reconstruction("");
  CHECK(relative_error(scene.reconstruction("--batch 7"), map) < 1e-5);
  run_well(scene.folder,
           "OMP_NUM_THREADS=1 " + reconstruct + " --star particles.star --no-ctf --out one.mrc");
  CHECK(relative_error(MrcReader(scene.folder / "one.mrc").read_volume(), map) < 1e-5);
}

TEST_CASE("a map does not depend on how the images are stored, and in which stacks", "[hosts]") {
  Scene scene(24, 23, random_gaussians(8, 5, 2));
  auto images = read_stack(scene.folder / "images.mrcs").values;
  for (float& value : images)
    value = std::round(100 * value);
  write_stack(scene.folder / "images.mrcs", images, 24, 24);
  const auto map = scene.reconstruction("--normalise");
  for (const bool big_endian : {false, true}) {
    HandMadeMrc integers(big_endian), floats(big_endian);
    integers.size(24, 24, 23, 1);
    for (const float value : images)
      integers.append(static_cast<std::uint16_t>(static_cast<std::int16_t>(value)), 2);
    integers.write(scene.folder / "integers.mrcs");
    floats.size(24, 24, 23, 2).append_reals(images).write(scene.folder / "floats.mrcs");
    std::string all = star_text(scene.particles, 24, "integers.mrcs"), mixed = all;
    for (std::size_t at = 0; (at = mixed.find("2@integers", at)) != std::string::npos;) // 2, 12, 22
      mixed.replace(at, 10, "2@floats");
    for (const std::string& text : {all, mixed}) {
      write_text(scene.folder / "particles.star", text);
      CHECK(relative_error(scene.reconstruction("--normalise"), map) < 1e-6);
      CHECK(relative_error(scene.reconstruction("--normalise --batch 5"), map) < 1e-5);
    }
  }
}

TEST_CASE("--timings names the stages") {
  const Scene scene(24, 10, random_gaussians(8, 5, 2));
  const Outcome outcome =
      run(scene.folder, reconstruct + " --star particles.star --no-ctf --out map.mrc --timings");
  REQUIRE(outcome.code == 0);
  for (const char* const phase : {"timings: ", "; insert ", "(read ", " GB/s", "compute "})
    CHECK(outcome.err.find(phase) != std::string::npos);
}

TEST_CASE("symmetry makes few particles do") {
  std::vector<Gaussian> gaussians;
  for (const auto& g : random_gaussians(4, 6, 2)) // a four-fold axis along z
    for (int i = 0; i < 4; ++i)
      gaussians.push_back({i == 0   ? g.x
                           : i == 1 ? -g.y
                           : i == 2 ? -g.x
                                    : g.y,
                           i == 0   ? g.y
                           : i == 1 ? g.x
                           : i == 2 ? -g.y
                                    : -g.x,
                           g.z, g.deviation, g.amplitude});
  const Scene scene(32, 10, gaussians);
  const double error = scene.error("--symmetry c4");
  CHECK(error < 0.8 * scene.error(""));
  CHECK(error < 0.2);
  CHECK(scene.error("--symmetry c3") > 1.5 * error);
}

namespace {

/// Euler angles of a rotation, as relion_matrix takes them.
Particle with_rotation(Particle particle, const std::array<std::array<double, 3>, 3>& m) {
  constexpr double degree = std::numbers::pi / 180;
  particle.rot = std::atan2(m[2][1], m[2][0]) / degree;
  particle.tilt = std::acos(std::clamp(m[2][2], -1.0, 1.0)) / degree;
  particle.psi = std::atan2(m[1][2], -m[0][2]) / degree;
  return particle;
}

/// Every particle as often as there are rotations about z by 360 / n, and (dihedral) by 180 about x after them.
std::vector<Particle> repeated(const std::vector<Particle>& particles, int n, bool dihedral) {
  std::vector<Particle> result;
  for (int flip = 0; flip <= int(dihedral); ++flip)
    for (int i = 0; i < n; ++i)
      for (const Particle& particle : particles) {
        const auto a = relion_matrix(particle);
        const double angle = 2 * std::numbers::pi * i / n, c = std::cos(angle), s = std::sin(angle);
        const double sign = flip ? -1 : 1;
        auto product = a; // a times the rotation
        for (std::size_t r = 0; r < 3; ++r) {
          product[r][0] = a[r][0] * c + a[r][1] * s;
          product[r][1] = sign * (-a[r][0] * s + a[r][1] * c);
          product[r][2] = sign * a[r][2];
        }
        result.push_back(with_rotation(particle, product));
      }
  return result;
}

/// The shell, between shells, where a curve falls below a threshold; that of the last one if it never does.
double crossing(const std::vector<double>& curve, double threshold) {
  std::size_t s = 1;
  while (s < curve.size() && curve[s] >= threshold)
    ++s;
  return s == curve.size() ? double(s - 1)
                           : double(s - 1) + (curve[s - 1] - threshold) / (curve[s - 1] - curve[s]);
}

fs::path data(const std::string& name) {
  const char* const folder = std::getenv("BRACEWELL_TEST_DATA");
  return folder == nullptr ? fs::path() : fs::path(folder) / "cases/cryoem" / name;
}

} // namespace

TEST_CASE("symmetry after insertion equals the insertion of every operator") {
  const auto particles = random_particles(60, 2);
  const auto gaussians = random_gaussians(8, 5, 2);
  const Scene once(32, 0, gaussians, particles);
  for (const auto& [group, n, dihedral, bound] : std::vector<std::tuple<std::string, int, bool, double>>{
           {"C2", 2, false, 1e-4}, // of the lattice: exact
           {"D2", 2, true, 1e-4},
           {"C4", 4, false, 1e-4},
           {"C3", 3, false, 0.04}, // interpolated
           {"D5", 5, true, 0.04}}) {
    CAPTURE(group);
    const auto all = repeated(particles, n, dihedral);
    const TemporaryFolder folder;
    const auto images = gaussian_projections(gaussians, particles, 32);
    std::vector<float> stack;
    for (std::size_t i = 0; i < all.size(); i += particles.size())
      stack.insert(stack.end(), images.begin(), images.end());
    write_stack(folder / "images.mrcs", stack, 32, 32);
    write_text(folder / "particles.star", star_text(all, 32, "images.mrcs"));
    const std::string options = " --wiener 0 --gridding-steps 0";
    run_well(folder, reconstruct + " --star particles.star --no-ctf --out map.mrc" + options);
    CHECK(error_in_sphere(once.reconstruction("--symmetry " + group + options),
                          MrcReader(folder / "map.mrc").read_volume(), 32) < bound);
  }
}

TEST_CASE("a helix is turned and shifted onto itself", "[.turn-4]") {
  // Gaussians on a right-handed helix beyond the box: 2.2 pixels and 50 degrees from one to the next.
  const double rise = 2.2, twist = 50;
  std::vector<Gaussian> helix;
  for (int h = -14; h <= 14; ++h) {
    const double angle = twist * h * std::numbers::pi / 180;
    helix.push_back({6 * std::cos(angle), 6 * std::sin(angle), rise * h, 1.5, 1});
    helix.push_back({3 * std::cos(angle + 1), 3 * std::sin(angle + 1), rise * h + 0.7, 1.5, 0.5});
  }
  auto segments = random_particles(12, 2);
  for (auto& segment : segments)
    segment.tilt = 90;
  const Scene scene(32, 0, helix, segments);
  const auto error = [&](const std::string& options) { // in the middle, 8 to 23 along z
    const auto map = scene.reconstruction("--mask-diameter 96 " + options);
    std::vector<float> found, expected;
    for (int z = 10; z < 22; ++z)
      for (int y = 4; y < 28; ++y)
        for (int x = 4; x < 28; ++x) {
          found.push_back(map[static_cast<std::size_t>((z * 32 + y) * 32 + x)]);
          expected.push_back(scene.map[static_cast<std::size_t>((z * 32 + y) * 32 + x)]);
        }
    return relative_error(found, expected);
  };
  const std::string right = "--helical-rise 6.6 --helical-twist 50";
  const double with = error(right);
  CAPTURE(with);
  CHECK(with < 0.2);
  CHECK(with < 0.7 * error(""));
  CHECK(error("--helical-rise 6.6 --helical-twist -50") > 0.5);
  CHECK(error(right + " --helical-asu 3") < error(""));
  auto sharp = helix;
  for (auto& gaussian : sharp)
    gaussian.deviation = 1;
  auto many = random_particles(80, 2);
  for (auto& segment : many)
    segment.tilt = 90;
  const Scene searched(32, 0, sharp, many);
  const Outcome search = run(
      searched.folder, reconstruct + " --star particles.star --no-ctf --out map.mrc --helical-rise 6.9 "
                                     "--helical-twist 47 --helical-rise-range 0.6 --helical-twist-range 6");
  REQUIRE(search.code == 0);
  const std::size_t rise_at = search.err.find("a rise of "), twist_at = search.err.find("a twist of ");
  REQUIRE(rise_at != std::string::npos);
  CHECK(std::abs(std::stod(search.err.substr(rise_at + 10)) - 6.6) < 0.15);
  CHECK(std::abs(std::stod(search.err.substr(twist_at + 11)) - 50) < 1);
  const std::string good = reconstruct + " --star particles.star --no-ctf --out map.mrc ";
  expect_bad_input(scene.folder, good + "--helical-rise 6", {"--helical-twist"});
  expect_bad_input(scene.folder, good + "--helical-rise 6 --helical-twist 50 --helical-asu 99",
                   {"--helical-asu"});
  expect_bad_input(scene.folder, good + right + " --symmetry T", {"C<n> or D<n>"});
}

TEST_CASE("half sets of filaments are whole filaments") {
  auto particles = random_particles(12, 2);
  Scene scene(24, 0, random_gaussians(4, 5, 2), particles);
  // Three filaments of two micrographs, of 6, 4 and 2 segments, rows mixed.
  std::string rows;
  const std::string star = read_text(scene.folder / "particles.star");
  std::istringstream lines(star);
  int row = 0, column = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("_rlnRandomSubset"))
      line = "_rlnHelicalTubeID" + line.substr(16);
    if (line.starts_with("_rln"))
      column = std::max(column, 1);
    const std::size_t at = line.find("@images.mrcs");
    if (at != std::string::npos) {
      const char* const tubes[] = {"1", "2", "1", "2", "1", "2", "1", "2", "1", "3", "1", "3"};
      const std::size_t end = line.rfind(' ', at), begin = line.rfind(' ', end - 1);
      line = line.substr(0, begin) + " " + tubes[row++] + line.substr(end);
    }
    rows += line + "\n";
  }
  REQUIRE(row == 12);
  write_text(scene.folder / "tubes.star", rows);
  const Outcome outcome = run(scene.folder, reconstruct + " --star tubes.star --no-ctf --out map.mrc");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.find("3 filaments") != std::string::npos);
}

TEST_CASE("views from the top give a map without damped directions, and a warning") {
  if (data("top_views.star").empty() || !fs::exists(data("top_views.star")))
    SKIP("BRACEWELL_TEST_DATA has no cases/cryoem");
  const TemporaryFolder folder;
  const Outcome outcome = run(folder, reconstruct + " --star " + data("top_views.star").string() +
                                          " --no-ctf --mask-diameter 88 --out map.mrc --reference " +
                                          data("truth32.mrc").string());
  REQUIRE(outcome.code == 0);
  const auto truth = read_correlations(folder / "map_fsc.txt", 1);
  CHECK(truth[4] >= 0.998);
  CHECK(truth[6] >= 0.995);
  CHECK(truth[10] >= 0.98);
  CHECK(outcome.err.find("hold less than a tenth of the mean weight") != std::string::npos);
  const Outcome helical =
      run(folder, reconstruct + " --star " + data("57b_helical_nosub.star").string() + " --out helix.mrc");
  REQUIRE(helical.code == 0);
  CHECK(helical.err.find("filaments (rlnHelicalTubeID) are shared out") != std::string::npos);
}

TEST_CASE("half maps agree to 0.143 where map and truth agree to 0.5") {
  const int box = 32;
  const auto gaussians = random_gaussians(30, 5, 1.1);
  for (const bool from_top : {false, true}) {
    CAPTURE(from_top);
    auto particles = random_particles(600, 2);
    for (std::size_t i = 0; from_top && i < particles.size(); ++i)
      if (i % 10 > 1)
        particles[i].tilt *= 15 / 180.0;
    Scene scene(box, 0, gaussians, particles);
    auto images = read_stack(scene.folder / "images.mrcs").values;
    std::mt19937 engine(8);
    std::normal_distribution<float> noise(0, 2.5f);
    for (float& value : images)
      value += noise(engine);
    write_stack(scene.folder / "images.mrcs", images, box, box);
    scene.reconstruction("--reference truth.mrc");
    const auto halves = read_correlations(scene.folder / "map_fsc.txt", 0),
               truth = read_correlations(scene.folder / "map_fsc.txt", 1);
    CAPTURE(crossing(halves, 0.143), crossing(truth, 0.5));
    CHECK(crossing(truth, 0.5) > 6);
    CHECK(crossing(truth, 0.5) < 14.5);
    CHECK(std::abs(crossing(halves, 0.143) - crossing(truth, 0.5)) < 1);
  }
}

TEST_CASE("the resolution counts frequencies that no sample reached, and says how sure it is", "[.turn-4]") {
  const int box = 32;
  // With little noise half maps say too little of such views, with much they say too much.
  for (const auto& [deviation, count, off] : {std::tuple(0.5f, 200, -0.1), std::tuple(1.0f, 120, 0.1)}) {
    double halves_off = 0, calibrated_off = 0, within = 0;
    constexpr unsigned sets = 4;
    constexpr std::size_t first = 5, shells = 10;
    for (unsigned seed = 0; seed < sets; ++seed) {
      auto particles = random_particles(count, 2, 5 + seed);
      for (std::size_t i = 0; i < particles.size(); ++i)
        if (i % 10 > 0)
          particles[i].tilt *= 10 / 180.0;
      Scene scene(box, 0, random_gaussians(30, 5, 0.8, 3 + seed), particles);
      auto images = read_stack(scene.folder / "images.mrcs").values;
      std::mt19937 engine(8 + seed);
      std::normal_distribution<float> noise(0, deviation);
      for (float& value : images)
        value += noise(engine);
      write_stack(scene.folder / "images.mrcs", images, box, box);
      scene.reconstruction("--reference truth.mrc --local-resolution 0 --mask-diameter 48");
      const fs::path table = scene.folder / "map_fsc.txt";
      REQUIRE(read_text(table).find("corrected  calibrated") != std::string::npos);
      const auto halves = read_correlations(table, 0), truth = read_correlations(table, 1),
                 calibrated = read_correlations(table, 5), error = read_correlations(table, 6);
      for (std::size_t s = first; s < first + shells; ++s) {
        const double right = truth[s] * truth[s] / (2 - truth[s] * truth[s]);
        halves_off += (halves[s] - right) / (sets * shells);
        calibrated_off += (calibrated[s] - right) / (sets * shells);
        within += std::abs(calibrated[s] - right) < 2 * error[s] ? 1.0 / (sets * shells) : 0;
      }
    }
    CAPTURE(halves_off, calibrated_off, within);
    CHECK(halves_off / off > 0.7);
    CHECK(std::abs(calibrated_off) < 0.05);
    CHECK(within > 0.9);
  }
}

TEST_CASE("--local-resolution gives windows, or none") {
  const Scene scene(24, 60, random_gaussians(8, 5, 2));
  const std::string good = reconstruct + " --star particles.star --no-ctf --out map.mrc --local-resolution ";
  run_well(scene.folder, good + "0");
  CHECK(!fs::exists(scene.folder / "map_local_resolution.mrc"));
  CHECK(fs::exists(scene.folder / "map_summary.png"));
  run_well(scene.folder, good + "36");
  const MrcReader reader(scene.folder / "map_local_resolution.mrc");
  CHECK(reader.header().voxel_size[0] == pixel_size);
  const auto values = reader.read_volume();
  CHECK(std::ranges::max(values) <= 36);
  CHECK(values[(12 * 24 + 12) * 24 + 12] >= 2 * pixel_size);
  CHECK(values[0] == 0);
  expect_bad_input(scene.folder, good + "11", {"--local-resolution", "12 to 72 Angstrom", "found 11"});
  expect_bad_input(scene.folder, good + "73", {"--local-resolution", "found 73"});
}

TEST_CASE("the curvature of the Ewald sphere is corrected, for both hands", "[.turn-4]") {
  // Electrons of 1 kV, pixels of 1 Angstrom: at 12 of 16 periods in the box a sideband lies 0.87 of a period beside the plane.
  const int box = 32;
  const double volts = 1000, lambda = 12.2643247 / std::sqrt(volts * (1 + 0.978466e-6 * volts));
  const auto gaussians = random_gaussians(30, 6, 0.9);
  auto particles = random_particles(400, 1);
  for (std::size_t i = 0; i < particles.size(); ++i) {
    particles[i].defocus_u = 20 + 130 * double(i * 37 % particles.size()) / double(particles.size());
    particles[i].defocus_v = particles[i].defocus_u;
  }
  const TemporaryFolder folder;
  const auto truth = gaussian_map(gaussians, box);
  write_map(folder / "truth.mrc", truth, box, 1);
  std::string star = star_text(particles, box, "images.mrcs", 1);
  const std::string microscope = "300.0 2.7 0.1";
  star.replace(star.find(microscope), microscope.size(), "1.0 0 0.1");
  write_text(folder / "particles.star", star);
  using Complex = std::complex<double>;
  constexpr double pi = std::numbers::pi;
  std::vector<Complex> wave;
  for (int i = 0; i < box; ++i)
    wave.push_back(std::polar(1.0, 2 * pi * i / box));
  for (const int hand : {1, -1}) {
    CAPTURE(hand);
    std::vector<float> images;
    for (const auto& p : particles) {
      const auto a = relion_matrix(p);
      // Of the molecule at image frequency (x, y) and z along the beam, in periods per box, about the centre of the image.
      const auto molecule = [&](double x, double y, double z) {
        Complex sum = 0;
        for (const auto& g : gaussians) {
          double at[3]; // in the image's frame
          for (std::size_t r = 0; r < 3; ++r)
            at[r] = a[r][0] * g.x + a[r][1] * g.y + a[r][2] * g.z;
          const double d = g.deviation, k2 = (x * x + y * y + z * z) / (box * box);
          sum += g.amplitude * std::pow(2 * pi * d * d, 1.5) * std::exp(-2 * pi * pi * d * d * k2) *
                 std::polar(1.0, -2 * pi / box * (x * (at[0] - p.x) + y * (at[1] - p.y) + z * at[2]));
        }
        return sum;
      };
      std::vector<Complex> spectrum(box * box), rows(box * box);
      for (int y = -box / 2; y < box / 2; ++y)
        for (int x = -box / 2; x < box / 2; ++x) {
          const double k2 = double(x * x + y * y) / (box * box), z = hand * box * lambda * k2 / 2;
          const Complex e = std::polar(1.0, pi * lambda * p.defocus_u * k2 + std::asin(0.1));
          if (x > -box / 2 && y > -box / 2)
            spectrum[static_cast<std::size_t>((y + box) % box * box + (x + box) % box)] =
                (e * molecule(x, y, z) - std::conj(e) * molecule(x, y, -z)) / Complex(0, 2);
        }
      const auto at = [&](int y, int x) { return static_cast<std::size_t>(y * box + x); };
      for (int ky = 0; ky < box; ++ky)
        for (int x = 0; x < box; ++x)
          for (int kx = 0; kx < box; ++kx)
            rows[at(ky, x)] += spectrum[at(ky, kx)] * wave[at(0, (kx * (x + box / 2)) % box)];
      for (int y = 0; y < box; ++y)
        for (int x = 0; x < box; ++x) {
          Complex sum = 0;
          for (int ky = 0; ky < box; ++ky)
            sum += rows[at(ky, x)] * wave[at(0, (ky * (y + box / 2)) % box)];
          images.push_back(static_cast<float>(sum.real() / (box * box)));
        }
    }
    write_stack(folder / "images.mrcs", images, box, box);
    const auto correlations = [&](const std::string& options) {
      run_well(folder, reconstruct +
                           " --star particles.star --pixel-size 1 --mask-diameter 24 --out map.mrc "
                           "--reference truth.mrc --local-resolution 0 " +
                           options);
      return read_correlations(folder / "map_fsc.txt", 1);
    };
    const auto own = correlations(hand > 0 ? "--ewald" : "--ewald --reverse-curvature"),
               other = correlations(hand < 0 ? "--ewald" : "--ewald --reverse-curvature"),
               flat = correlations("");
    CAPTURE(own, other, flat);
    for (std::size_t shell = 1; shell <= 14; ++shell)
      CHECK(own[shell] > 0.98);
    CHECK(1 - own[14] < 0.5 * (1 - flat[14])); // what is missing
    CHECK(other[12] < 0.9);
  }
}

TEST_CASE("a sharpened map undoes the fall of amplitudes") {
  // A Gaussian of deviation s falls as exp(-2 pi^2 s^2 k^2), a B factor of 8 pi^2 s^2: 455 square Angstrom.
  const Scene scene(32, 300, random_gaussians(200, 5, 0.8));
  const std::string line =
      run_well(scene.folder, reconstruct + " --star particles.star --no-ctf --out map.mrc");
  const std::size_t at = line.find("B factor ");
  REQUIRE(at != std::string::npos);
  const double b = std::stod(line.substr(at + 9));
  CAPTURE(line);
  CHECK(std::abs(b + 455) < 115);
  run_well(scene.folder, reconstruct + " --star particles.star --no-ctf --out other.mrc --b-factor 0");
  const auto flat = MrcReader(scene.folder / "other_sharpened.mrc").read_volume();
  CHECK(error_in_sphere(flat, MrcReader(scene.folder / "map.mrc").read_volume(), 32) < 0.1);
}

TEST_CASE("the contrast transfer is corrected") {
  const Scene scene(32, 400, random_gaussians(12, 6, 2));
  run_well(scene.folder, std::string(BRACEWELL_PROJECT) +
                             " --map truth.mrc --star particles.star --ctf --out modulated.mrcs");
  const auto error = [&](const std::string& options) {
    run_well(scene.folder, reconstruct + " --star modulated.star --out map.mrc " + options);
    return error_in_sphere(MrcReader(scene.folder / "map.mrc").read_volume(), scene.map, 32);
  };
  CHECK(error("") < 0.06);
  CHECK(error("--ctf") < 0.06);
  CHECK(error("--no-ctf") > 0.3);
}

TEST_CASE("a mask leaves the middle and nothing else") {
  const Scene scene(32, 50, random_gaussians(8, 6, 2));
  const auto whole = scene.reconstruction("--reproducible --mask-diameter 200");
  const auto masked = scene.reconstruction("--reproducible --mask-diameter 48"); // a radius of 8 pixels
  CHECK(masked[(16 * 32 + 16) * 32 + 16] == whole[(16 * 32 + 16) * 32 + 16]);
  CHECK(masked[(16 * 32 + 16) * 32 + 16 + 14] == 0);
}

TEST_CASE("--demo simulates and reconstructs its own particles") {
  const TemporaryFolder folder;
  const std::string line = run_well(folder, reconstruct + " --demo results");
  CHECK(line.find("5000 particles") != std::string::npos);
  for (const char* name : {"truth.mrc", "particles.mrcs", "particles.star", "particles.png", "map.mrc",
                           "map_half1.mrc", "map_fsc.png", "map_slices.png"})
    CHECK(fs::file_size(folder / "results" / name) > 0);
  // The picture of the README has panels of both pictures, in 64 colours (docs/demo.py).
  for (int i = 0; i < 3; ++i) {
    const auto panel = [](int left) {
      return PictureFile(page_picture("docs/demo.png"), {left, 24, 176, 176});
    };
    const PictureFile particle(folder / "results/particles.png",
                               {8 + 200 * std::array{0, 2, 3}[std::size_t(i)], 8, 192, 192});
    const PictureFile sum(folder / "results/map_slices.png", {8 + 328 * i, 774, 320, 320});
    const int other = (i + 1) % 3;
    CHECK(difference(panel(182 * i), particle) < 4);
    CHECK(difference(panel(596 + 182 * i), sum) < 4);
    CHECK(difference(panel(182 * other), particle) > 10);
  }
  // Half maps agree beyond 80 % of Nyquist: shell 25.6 of 32.
  const auto halves = read_correlations(folder / "results/map_fsc.txt", 0);
  for (std::size_t shell = 0; shell <= 25; ++shell)
    CHECK(halves[shell] > 0.143);
  const auto truth = MrcReader(folder / "results/truth.mrc").read_volume();
  CHECK(error_in_sphere(MrcReader(folder / "results/map.mrc").read_volume(), truth, 64) < 0.35);
}

TEST_CASE("--help names every option", "[hosts]") {
  const TemporaryFolder folder;
  const std::string help = run_well(folder, reconstruct + " --help");
  for (const char* option : {"--star", "--out", "--reference", "--symmetry", "--ctf", "--no-ctf",
                             "--mask-diameter", "--kernel", "--oversampling", "--correction", "--wiener",
                             "--floor", "--pixel-size", "--batch", "--demo", "--version"})
    CHECK(help.find(option) != std::string::npos);
}

TEST_CASE("bad usage ends with one message, code 2 and no output", "[hosts]") {
  const Scene scene(24, 4, random_gaussians(3, 5, 2));
  const auto& folder = scene.folder;
  const std::string good = reconstruct + " --star particles.star --out map.mrc ";
  expect_bad_input(folder, reconstruct, {"--star", "--demo"});
  expect_bad_input(folder, reconstruct + " --star particles.star", {"--out"});
  expect_bad_input(folder, good + "--demo x", {"--demo"});
  expect_bad_input(folder, good + "--symmetry Q7", {"Q7"});
  expect_bad_input(folder, good + "--floor 2", {"--floor"});
  expect_bad_input(folder, good + "--ctf --no-ctf", {"--ctf"});
  expect_bad_input(folder, good + "--ewald --no-ctf", {"--ewald", "contrast transfer"});
  expect_bad_input(folder, good + "--reverse-curvature", {"--ewald"});
  expect_bad_input(folder, good + "--reference none.mrc", {"none.mrc"});
  expect_bad_input(folder, reconstruct + " --star none.star --out map.mrc", {"none.star"});
  expect_bad_input(folder, reconstruct + " --star particles.star --out nowhere/map.mrc", {"nowhere"});
  expect_bad_input(folder, reconstruct + " --star particles.star --out particles.star",
                   {"--out", "ends with .mrc, found particles.star"});
  write_map(folder / "small.mrc", std::vector<float>(8 * 8 * 8, 1.0f), 8);
  expect_bad_input(folder, good + "--reference small.mrc", {"small.mrc", "24", "8"});
}

TEST_CASE("bad particles end with one message, code 2 and no output", "[hosts]") {
  const Scene scene(24, 4, random_gaussians(3, 5, 2));
  const auto& folder = scene.folder;
  const std::string star = read_text(folder / "particles.star");
  const auto with_star = [&](const std::string& text, const std::string& options,
                             const std::vector<std::string>& words) {
    write_text(folder / "bad.star", text);
    expect_bad_input(folder, reconstruct + " --star bad.star --out map.mrc " + options, words);
  };
  const auto replaced = [&star](const std::string& what, const std::string& with) {
    std::string text = star;
    REQUIRE(text.find(what) != std::string::npos);
    return text.replace(text.find(what), what.size(), with);
  };
  with_star(replaced("rlnAngleRot", "rlnOther"), "", {"bad.star", "rlnAngleRot"});
  with_star(replaced("rlnImageName", "rlnOther"), "", {"bad.star", "rlnImageName"});
  with_star(replaced("rlnVoltage", "rlnOther"), "--ctf", {"bad.star", "rlnVoltage"});
  with_star(replaced("300.0", "-300.0"), "", {"bad.star"});
  with_star(replaced("rlnImagePixelSize", "rlnOther"), "", {"bad.star", "row 1"});
  with_star(replaced(" 3@images", " 5@images"), "", {"bad.star", "row 3", "images.mrcs"});
  with_star(replaced(" 3@images", " 0@images"), "", {"bad.star", "row 3"});
  with_star(replaced("3@images.mrcs", "3@none.mrcs"), "", {"bad.star", "row 3", "none.mrcs"});
  with_star(replaced(" 2 2@images", " 3 2@images"), "", {"bad.star", "row 2", "rlnRandomSubset"});
  with_star(replaced(" 2 2@images", " x 2@images"), "", {"bad.star", "row 2", "rlnRandomSubset"});
  with_star(star_text({}, 24, "images.mrcs"), "", {"bad.star", "no particles"});
  with_star(star + "1 2\n", "", {"bad.star", "row 5"});

  write_stack(folder / "small.mrcs", std::vector<float>(16 * 16, 1.0f), 16, 16);
  with_star(replaced("3@images.mrcs", "1@small.mrcs"), "", {"small.mrcs", "16 x 16", "24 x 24"});
  write_stack(folder / "flat.mrcs", std::vector<float>(4 * 24 * 16, 1.0f), 24, 16);
  with_star(star_text(scene.particles, 24, "flat.mrcs"), "", {"flat.mrcs", "square"});

  const Bytes stack = read_bytes(folder / "images.mrcs");
  const auto with_stack = [&](const Bytes& bytes, const std::vector<std::string>& words) {
    write_bytes(folder / "images.mrcs", bytes);
    expect_bad_input(folder, reconstruct + " --star particles.star --out map.mrc", words);
  };
  with_stack(Bytes(stack.begin(), stack.end() - 10), {"images.mrcs", "truncated"});
  with_stack(Bytes(stack.begin(), stack.begin() + 500), {"images.mrcs"});
  Bytes bad = stack;
  bad[12] = 3;
  with_stack(bad, {"images.mrcs", "mode 3"});
  bad = stack;
  const std::size_t third = 1024 + 4 * 24 * 24 * 2;
  for (std::size_t i = 0; i < 4; ++i)
    bad[third + i] = 0xff;
  with_stack(bad, {"images.mrcs", "image 3", "not finite", "column 1, row 1"});
  write_bytes(folder / "images.mrcs", stack);
  bad = stack;
  bad[third + 4 * 50 + 2] = 0x80; // infinity, in column 3 of row 3
  bad[third + 4 * 50 + 3] = 0x7f;
  write_bytes(folder / "second.mrcs", bad);
  for (const char* const batch : {"1", "2", "3", "4"})
    with_star(replaced(" 4@images.mrcs", " 3@second.mrcs"), std::string("--batch ") + batch,
              {"second.mrcs", "image 3 ", "not finite", "column 3, row 3"});
}
