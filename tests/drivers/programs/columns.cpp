// SPDX-License-Identifier: MIT
// Columns of STAR files that change the physics are used, or named in a warning.
#include "support.hpp"

#include "common/tiff.hpp"

#include <fstream>
#include <functional>
#include <tuple>

using namespace DriverTest;

namespace {

const std::string project = BRACEWELL_PROJECT, reconstruct = BRACEWELL_RECONSTRUCT, refine = BRACEWELL_REFINE;

/// A map of Gaussians, its projections in images.mrcs, and particles.star.
struct Scene {
  TemporaryFolder folder;
  int box;
  std::vector<Gaussian> gaussians;
  std::vector<float> map;
  std::vector<Particle> particles;

  Scene(int size, int count)
      : box(size), gaussians(random_gaussians(8, size / 6.0, 2)), map(gaussian_map(gaussians, size)),
        particles(random_particles(count, 1)) {
    write_map(folder / "map.mrc", map, box);
    write_stack(folder / "images.mrcs", gaussian_projections(gaussians, particles, box), box, box);
    write_text(folder / "particles.star", star());
  }

  std::string star() const { return star_text(particles, box, "images.mrcs"); }

  /// star() with more columns in the table of optics.
  std::string with_optics(const std::vector<std::pair<std::string, std::string>>& columns) const {
    std::string text = star();
    const std::string names = "_rlnImageDimensionality #8\n";
    std::string added, values;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      added += "_" + columns[i].first + " #" + std::to_string(9 + i) + "\n";
      values += " " + columns[i].second;
    }
    text.insert(text.find(names) + names.size(), added);
    const std::string row =
        "opticsGroup1 300.0 2.7 0.1 " + std::to_string(pixel_size) + " " + std::to_string(box) + " 2";
    return text.insert(text.find(row) + row.size(), values);
  }

  double error(const std::string& star_file, const std::string& options = "") const {
    run_well(folder, reconstruct + " --star " + star_file + " --out result.mrc " + options);
    return error_in_sphere(MrcReader(folder / "result.mrc").read_volume(), map, box);
  }
};

std::string without(std::string text, const std::string& name) {
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name))
    text.replace(at, name.size(), "x" + name.substr(3));
  return text;
}

std::vector<float> image(const Stack& stack, int number) {
  const auto pixels = stack.width * stack.height;
  return {stack.values.begin() + number * pixels, stack.values.begin() + (number + 1) * pixels};
}

/// Aberrations strong enough to be seen at the pixels of these tests, by RELION's names.
const std::vector<std::pair<std::string, std::string>> aberrations{
    {"rlnBeamTiltX", "8"},
    {"rlnBeamTiltY", "-5"},
    {"rlnOddZernike", "[160,-120,150,80,-60,90]"},
    {"rlnEvenZernike", "[-0.03,9,0.02,7]"}};

/// Their phases, from the polynomials written out.
double odd(double x, double y) {
  const double r2 = x * x + y * y, tilt = 2 * std::numbers::pi * 2.7e7 * wavelength * wavelength * 1e-3;
  return -tilt * r2 * (8 * x - 5 * y) + 160 * y - 120 * x + 150 * (3 * x * x * y - y * y * y) +
         80 * (3 * r2 - 2) * y - 60 * (3 * r2 - 2) * x + 90 * (x * x * x - 3 * x * y * y);
}
double even(double x, double y) {
  return -0.03 + 9 * 2 * x * y + 0.02 * (2 * (x * x + y * y) - 1) + 7 * (x * x - y * y);
}

} // namespace

TEST_CASE("project without --ctf writes no CTF columns: its images reconstruct as they are") {
  const Scene scene(32, 400);
  run_well(scene.folder, project + " --map map.mrc --star particles.star --out plain.mrcs");
  for (const char* column : {"rlnDefocusU", "rlnDefocusV", "rlnDefocusAngle"})
    CHECK(read_text(scene.folder / "plain.star").find(column) == std::string::npos);
  CHECK(scene.error("plain.star") < 0.06);
}

TEST_CASE("--pixel-size reaches the STAR file", "[hosts]") {
  const Scene scene(16, 4);
  run_well(scene.folder, project + " --map map.mrc --star particles.star --pixel-size 4.25 --out out.mrcs");
  CHECK(read_text(scene.folder / "out.star").find(" 4.250000 ") != std::string::npos);
  CHECK(MrcReader(scene.folder / "out.mrcs").header().voxel_size[0] == 4.25);
  run_well(scene.folder, refine +
                             " --map map.mrc --star particles.star --no-ctf --iterations 1 --pixel-size 4.25 "
                             "--out refined.star");
  CHECK(read_text(scene.folder / "refined.star").find(" 4.250000 ") != std::string::npos);
}

TEST_CASE("the output of refine can be reconstructed from another folder", "[hosts]") {
  const Scene scene(16, 12);
  fs::create_directory(scene.folder / "elsewhere");
  const std::string here = scene.folder.path().string();
  run_well(scene.folder,
           refine +
               " --map map.mrc --star particles.star --no-ctf --iterations 1 --out elsewhere/refined.star");
  run_well(scene.folder, "cd / && " + reconstruct + " --no-ctf --star " + here +
                             "/elsewhere/refined.star --out " + here + "/map2.mrc");
  CHECK(fs::exists(scene.folder / "map2.mrc"));
}

TEST_CASE("a name without its image in a stack of many is an error", "[hosts]") {
  const Scene scene(16, 4);
  std::string star = scene.star();
  star.replace(star.find(" 3@"), 3, " ");
  write_text(scene.folder / "bad.star", star);
  expect_bad_input(scene.folder, reconstruct + " --star bad.star --out map2.mrc",
                   {"bad.star", "row 3", "INDEX@STACK", "4 images"});
}

TEST_CASE("optics groups of different pixel sizes are refused with the way out, but for a reconstruction",
          "[hosts]") {
  const Scene scene(16, 4);
  std::string star = scene.star();
  const std::string row = "1 opticsGroup1";
  star.insert(star.find(row), "2 opticsGroup2 300.0 2.7 0.1 3.5 16 2\n");
  star.replace(star.rfind("\n1 ") + 1, 1, "2");
  write_text(scene.folder / "bad.star", star);
  for (const std::string& command : {refine + " --no-ctf --map map.mrc --star bad.star --out out.star",
                                     project + " --map map.mrc --star bad.star --out out.mrcs"})
    expect_bad_input(scene.folder, command, {"row 4", "pixel size 3 ", "3.5", "optics group"});
}

TEST_CASE("optics groups of different pixel sizes are reconstructed on the grid of the first one") {
  // One molecule in pixels of 3 Angstrom, in larger and in smaller ones; its images are the same functions.
  const int box = 32;
  const auto gaussians = random_gaussians(8, box / 6.0, 2.2);
  const auto particles = random_particles(240, 1.5);
  const TemporaryFolder folder;
  std::vector<float> all, with_ctf;
  std::string star = star_text(particles, box, "images.mrcs");
  const std::vector<double> relative{1, 1.25, 0.8};
  for (std::size_t i = 0; i < particles.size(); ++i) {
    const double pixel = relative[i / 2 % 3];
    auto smaller = gaussians;
    for (auto& g : smaller)
      g = {g.x / pixel, g.y / pixel, g.z / pixel, g.deviation / pixel, g.amplitude * pixel};
    auto particle = particles[i];
    particle.x /= pixel, particle.y /= pixel;
    const auto image = gaussian_projections(smaller, {particle}, box);
    all.insert(all.end(), image.begin(), image.end());
    const auto seen =
        filtered(image, box, [&](double u, double v) { return relion_ctf(particle, u / pixel, v / pixel); });
    with_ctf.insert(with_ctf.end(), seen.begin(), seen.end());
    const std::string end = " " + std::to_string(i + 1) + "@images.mrcs\n";
    const std::size_t line = star.rfind('\n', star.find(end)) + 1;
    star[line] = static_cast<char>('1' + i / 2 % 3);
  }
  star.insert(star.find("1 opticsGroup1"), "3 opticsGroup3 300.0 2.7 0.1 2.4 32 2\n"
                                           "2 opticsGroup2 300.0 2.7 0.1 3.75 32 2\n");
  write_text(folder / "particles.star", star);
  const auto error = [&](const std::vector<float>& images, const std::string& options) {
    write_stack(folder / "images.mrcs", images, box, box);
    const Outcome outcome =
        run(folder,
            reconstruct + " --star particles.star --out map.mrc --kernel linear --oversampling 2 " + options);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    if (options.find("--pixel-size") == std::string::npos)
      CHECK(outcome.err.find("has images with pixels of 3.75 Angstrom (row 3) and of 3") !=
            std::string::npos);
    return error_in_sphere(MrcReader(folder / "map.mrc").read_volume(), gaussian_map(gaussians, box), box);
  };
  CHECK(error(all, "--no-ctf") < 0.06);
  CHECK(error(all, "--no-ctf --pixel-size 3") > 0.1); // as if all pixels were the same
  CHECK(error(with_ctf, "--ctf") < 0.06);
}

TEST_CASE("--class selects particles, without it a mixture is a warning", "[hosts]") {
  const Scene scene(24, 60);
  std::string star = scene.star(), alone = star;
  const auto add_class = [](std::string text, bool second) {
    text.insert(text.find("_rlnImageName"), "_rlnClassNumber #11\n");
    text.replace(text.find("_rlnImageName #11"), 17, "_rlnImageName #12");
    for (std::size_t i = 0; i < 60; ++i) {
      const std::string name = " " + std::to_string(i + 1) + "@";
      const auto at = text.find(name);
      text.insert(at, second && i >= 30 ? " 2" : " 1");
    }
    return text;
  };
  write_text(scene.folder / "mixed.star", add_class(star, true));
  alone.resize(alone.find(" 30@images.mrcs") + 16);
  write_text(scene.folder / "alone.star", alone);
  const std::string command = reconstruct + " --no-ctf --reproducible --star ";
  const Outcome mixture = run(scene.folder, command + "mixed.star --out mixture.mrc");
  CHECK(mixture.err.find("2 classes") != std::string::npos);
  const Outcome one = run(scene.folder, command + "mixed.star --class 1 --out one.mrc");
  CHECK(one.err.find("classes") == std::string::npos);
  run_well(scene.folder, command + "alone.star --out alone.mrc");
  CHECK(MrcReader(scene.folder / "one.mrc").read_volume() ==
        MrcReader(scene.folder / "alone.mrc").read_volume());
  expect_bad_input(scene.folder, command + "mixed.star --class 3 --out none.mrc", {"mixed.star", "class 3"});
  expect_bad_input(scene.folder, command + "particles.star --class 1 --out none.mrc", {"rlnClassNumber"});
  expect_bad_input(scene.folder, command + "mixed.star --strict --out none.mrc", {"2 classes", "--strict"});
}

TEST_CASE("another rlnImageSize is a warning, and images of three dimensions are an error", "[hosts]") {
  const Scene scene(16, 4);
  const auto with = [&](const std::string& size) {
    std::string star = scene.star();
    const std::string old = " 16 2\n";
    return star.replace(star.find(old), old.size(), size);
  };
  write_text(scene.folder / "size.star", with(" 32 2\n"));
  write_text(scene.folder / "volumes.star", with(" 16 3\n"));
  const std::string command = reconstruct + " --no-ctf --out out.mrc --star ";
  const Outcome outcome = run(scene.folder, command + "size.star");
  CHECK(outcome.code == 0);
  CHECK(outcome.err.find("rlnImageSize") != std::string::npos);
  const auto before = MrcReader(scene.folder / "out.mrc").header();
  CHECK(before.size[0] == 16);
  expect_bad_input(scene.folder, command + "size.star --strict", {"rlnImageSize", "--strict"});
  expect_bad_input(scene.folder, command + "volumes.star",
                   {"rlnImageName", "a subtomogram", "1@images.mrcs"});
}

TEST_CASE("beam tilt, odd and even Zernike terms are those of RELION") {
  const Scene scene(25, 3);
  write_text(scene.folder / "aberrated.star", scene.with_optics(aberrations));
  run_well(scene.folder, project + " --map map.mrc --star particles.star --out plain.mrcs");
  run_well(scene.folder, project + " --map map.mrc --star aberrated.star --ctf --out aberrated_images.mrcs");
  const Stack plain = read_stack(scene.folder / "plain.mrcs"),
              aberrated = read_stack(scene.folder / "aberrated_images.mrcs");
  for (int i = 0; i < 3; ++i) {
    const auto truth = filtered(image(plain, i), 25, [&](double u, double v) {
      return relion_ctf(scene.particles[static_cast<std::size_t>(i)], u, v, even(u, v)) *
             std::polar(1.0, odd(u, v));
    });
    CHECK(relative_error(image(aberrated, i), truth) < 2e-5);
  }
}

TEST_CASE("images that were multiplied by their CTF are reconstructed as such") {
  const Scene scene(32, 400);
  const std::pair<std::string, std::string> flag{"rlnCtfDataAreCtfPremultiplied", "1"};
  write_text(scene.folder / "twice.star", scene.with_optics({flag}));
  run_well(scene.folder, project + " --map map.mrc --star twice.star --ctf --out images2.mrcs");
  // What project makes are images times CTF:
  run_well(scene.folder, project + " --map map.mrc --star particles.star --out plain.mrcs");
  const auto truth = filtered(image(read_stack(scene.folder / "plain.mrcs"), 0), 32, [&](double u, double v) {
    return std::pow(relion_ctf(scene.particles[0], u, v), 2);
  });
  CHECK(relative_error(image(read_stack(scene.folder / "images2.mrcs"), 0), truth) < 2e-5);
  CHECK(scene.error("images2.star") < 0.06);
  write_text(scene.folder / "ignored.star", without(read_text(scene.folder / "images2.star"), flag.first));
  CHECK(scene.error("ignored.star") > 0.3);
}

TEST_CASE("aberrations are undone by reconstruct and do not mislead refine") {
  const Scene scene(32, 400);
  write_text(scene.folder / "aberrated.star", scene.with_optics(aberrations));
  run_well(scene.folder, project + " --map map.mrc --star aberrated.star --ctf --out images2.mrcs");
  CHECK(scene.error("images2.star") < 0.06);
  std::string ignored = read_text(scene.folder / "images2.star");
  for (const auto& [name, value] : aberrations)
    ignored = without(ignored, name);
  write_text(scene.folder / "ignored.star", ignored);
  CHECK(scene.error("ignored.star") > 0.12);

  const auto pixels_moved = [&](const std::string& star) {
    const std::string line =
        run_well(scene.folder, refine + " --map map.mrc --star " + star + " --out refined.star --batch 50");
    const std::string before = " degrees and ";
    return std::stod(line.substr(line.find(before) + before.size()));
  };
  CHECK(pixels_moved("images2.star") < 0.01);
  CHECK(pixels_moved("ignored.star") > 0.05);
}

TEST_CASE("a magnification matrix distorts projections and is undone by reconstruct") {
  const Scene scene(32, 400);
  // Frequencies of the image times M are those of the projection: the image at x is the projection at M^-T x,
  // over the determinant.
  const double m[2][2] = {{1.04, 0.02}, {-0.01, 0.97}}, determinant = m[0][0] * m[1][1] - m[0][1] * m[1][0];
  std::vector<std::pair<std::string, std::string>> columns;
  for (int i = 0; i < 4; ++i)
    columns.emplace_back("rlnMagMat" + std::to_string(i / 2) + std::to_string(i % 2),
                         std::to_string(m[i / 2][i % 2]));
  write_text(scene.folder / "distorted.star", scene.with_optics(columns));
  run_well(scene.folder, project + " --map map.mrc --star distorted.star --out images2.mrcs");
  const Particle& p = scene.particles[0];
  const auto A = relion_matrix(p);
  std::vector<float> truth;
  for (int y = 0; y < 32; ++y)
    for (int x = 0; x < 32; ++x) {
      const double dx = x - 16 + p.x, dy = y - 16 + p.y;
      const double u = (m[1][1] * dx - m[1][0] * dy) / determinant,
                   v = (-m[0][1] * dx + m[0][0] * dy) / determinant;
      double sum = 0;
      for (const auto& g : scene.gaussians) {
        const double gx = u - (A[0][0] * g.x + A[0][1] * g.y + A[0][2] * g.z);
        const double gy = v - (A[1][0] * g.x + A[1][1] * g.y + A[1][2] * g.z);
        sum += g.amplitude * g.deviation * std::sqrt(2 * std::numbers::pi) *
               std::exp(-(gx * gx + gy * gy) / (2 * g.deviation * g.deviation)) / determinant;
      }
      truth.push_back(static_cast<float>(sum));
    }
  CHECK(relative_error(image(read_stack(scene.folder / "images2.mrcs"), 0), truth) < 3e-3);
  CHECK(scene.error("images2.star") < 0.06);
  run_well(scene.folder, refine + " --map map.mrc --star images2.star --out refined.star");
  const Particles refined = read_particles(scene.folder / "refined.star");
  CHECK(share_of_close_poses(
            refined, [&](std::size_t i) { return scene.particles[i]; }, 0.3, 0.05) > 0.97);
}

TEST_CASE("images with an offset of 20 sigma are noticed, and --normalise subtracts it") {
  const Scene scene(32, 400);
  Stack stack = read_stack(scene.folder / "images.mrcs");
  double sum = 0, squares = 0;
  for (const float value : stack.values) {
    sum += value / double(stack.values.size());
    squares += double(value) * value / double(stack.values.size());
  }
  for (float& value : stack.values)
    value += static_cast<float>(20 * std::sqrt(squares - sum * sum));
  write_stack(scene.folder / "images.mrcs", stack.values, 32, 32);
  const std::string command = reconstruct + " --no-ctf --star particles.star --out noticed.mrc";
  const Outcome noticed = run(scene.folder, command);
  CHECK(noticed.code == 0);
  CHECK(noticed.err.find("--normalise") != std::string::npos);
  const Outcome strict = run(scene.folder, command + " --strict");
  CHECK(strict.code == 2);
  CHECK(run(scene.folder, command + " --normalise").err.find("background") == std::string::npos);
  CHECK(scene.error("particles.star", "--no-ctf") > 0.3);
  CHECK(scene.error("particles.star", "--no-ctf --normalise") < 0.06);
}

TEST_CASE("few particles get the kernel that is better for them") {
  const Scene scene(32, 60);
  const double best =
      scene.error("particles.star", "--no-ctf --reproducible --kernel linear --oversampling 2");
  CHECK(scene.error("particles.star", "--no-ctf --reproducible") == best);
  const Outcome chosen =
      run(scene.folder, reconstruct + " --star particles.star --no-ctf --kernel catmull_rom --out out.mrc");
  CHECK(chosen.err.find("60 particles are few") != std::string::npos);
  CHECK(scene.error("particles.star", "--no-ctf --kernel catmull_rom") > 1.1 * best);
  const Scene many(16, 60);
  CHECK(run(many.folder, reconstruct + " --star particles.star --no-ctf --out out.mrc").err.find("few") ==
        std::string::npos);
}

TEST_CASE("aberrations that no contrast transfer goes with are named in warnings", "[hosts]") {
  const Scene scene(16, 60);
  write_text(scene.folder / "bare.star", without(scene.with_optics(aberrations), "rlnDefocusU"));
  const Outcome outcome = run(scene.folder, reconstruct + " --star bare.star --out out.mrc");
  CHECK(outcome.code == 0);
  for (const auto& [name, value] : aberrations)
    CHECK(outcome.err.find("has " + name + " but no contrast transfer") != std::string::npos);
  expect_bad_input(scene.folder, reconstruct + " --star bare.star --strict --out out2.mrc",
                   {"rlnBeamTiltX", "--strict"});
}

// Columns against a forward model of their own: spectra of Gaussians, summed directly on the frequencies of a box of
// twice the size, in the conventions of ../shared/reference/cryoem_simulator.py.
namespace {

using Complex = std::complex<double>;
using Columns = std::vector<std::pair<std::string, std::string>>;

constexpr int model_box = 24;

/// What makes images of projections.
struct Model {
  std::array<double, 4> magnification{1, 0, 0, 1};
  double pixel = pixel_size;
  double voltage = 300, cs = 2.7, amplitude = 0.1, phase_degrees = 0, b_factor = 0, scale = 1;
  bool astigmatic = true, premultiplied = false;
  double tilt_x = 0, tilt_y = 0;                             ///< mrad
  std::function<double(double, double)> odd = {}, even = {}; ///< of M k, radians
  std::function<double(double)> response = {};               ///< of |k|

  /// At frequency (x, y) of an image, 1/Angstrom.
  Complex contrast(const Particle& p, double x, double y) const {
    constexpr double pi = std::numbers::pi;
    const auto& m = magnification;
    const double u = m[0] * x + m[1] * y, v = m[2] * x + m[3] * y, k2 = u * u + v * v;
    const double lambda = 12.2643247 / std::sqrt(voltage * 1e3 * (1 + 0.978466e-6 * voltage * 1e3));
    const double dv = astigmatic ? p.defocus_v : p.defocus_u;
    const double defocus = (p.defocus_u + dv) / 2 +
                           (p.defocus_u - dv) / 2 * std::cos(2 * (std::atan2(v, u) - p.angle * pi / 180));
    const double chi = pi * lambda * defocus * k2 - pi / 2 * cs * 1e7 * std::pow(lambda, 3) * k2 * k2 +
                       std::asin(amplitude) + phase_degrees * pi / 180 - (even ? even(u, v) : 0);
    const double ctf = scale * std::exp(-b_factor * k2 / 4) * std::sin(chi);
    const double turn =
        (odd ? odd(u, v) : 0) - 2 * pi * cs * 1e7 * lambda * lambda * 1e-3 * (tilt_x * u + tilt_y * v) * k2;
    return (premultiplied ? ctf * ctf : ctf) * (response ? response(std::hypot(x, y)) : 1) *
           std::polar(1.0, turn);
  }
};

std::vector<float> images_of(const Model& model, const std::vector<Gaussian>& gaussians,
                             const std::vector<Particle>& particles) {
  constexpr int n = model_box, half = n / 2;
  constexpr double pi = std::numbers::pi;
  std::vector<Complex> wave;
  for (int i = 0; i < n; ++i)
    wave.push_back(std::polar(1.0, 2 * pi * i / n));
  std::vector<float> images;
  std::vector<Complex> spectrum(n * (half + 1)), rows(n * (half + 1));
  for (const Particle& p : particles) {
    const auto A = relion_matrix(p);
    for (int j = 0; j < n; ++j)
      for (int i = 0; i <= half; ++i) {
        const double fx = double(i) / n, fy = double(j < half ? j : j - n) / n; // per pixel
        const auto& m = model.magnification;
        const double u = m[0] * fx + m[1] * fy, v = m[2] * fx + m[3] * fy;
        Complex sum = 0;
        for (const auto& g : gaussians) {
          // Lengths of Gaussians are pixels of pixel_size.
          const double unit = pixel_size / model.pixel, deviation = g.deviation * unit;
          const double qx = unit * (A[0][0] * g.x + A[0][1] * g.y + A[0][2] * g.z),
                       qy = unit * (A[1][0] * g.x + A[1][1] * g.y + A[1][2] * g.z);
          sum += g.amplitude * g.deviation * std::sqrt(2 * pi) * 2 * pi * deviation * deviation *
                 std::exp(-2 * pi * pi * deviation * deviation * (u * u + v * v)) *
                 std::polar(1.0, -2 * pi * (u * qx + v * qy));
        }
        const bool nyquist = i == half || j == half;
        spectrum[static_cast<std::size_t>(j * (half + 1) + i)] =
            nyquist ? 0
                    : sum * model.contrast(p, fx / model.pixel, fy / model.pixel) *
                          std::polar(1.0, -2 * pi *
                                              (fx * (half - p.x * pixel_size / model.pixel) +
                                               fy * (half - p.y * pixel_size / model.pixel)));
      }
    for (int y = 0; y < n; ++y)
      for (int i = 0; i <= half; ++i) {
        Complex sum = 0;
        for (int j = 0; j < n; ++j)
          sum += spectrum[static_cast<std::size_t>(j * (half + 1) + i)] *
                 wave[static_cast<std::size_t>(j * y % n)];
        rows[static_cast<std::size_t>(y * (half + 1) + i)] = sum;
      }
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n; ++x) {
        double sum = 0;
        for (int i = 0; i <= half; ++i)
          sum += (i == 0 ? 1 : 2) * (rows[static_cast<std::size_t>(y * (half + 1) + i)] *
                                     wave[static_cast<std::size_t>(i * x % n)])
                                        .real();
        images.push_back(static_cast<float>(sum / (n * n)));
      }
  }
  return images;
}

/// star_text with columns of optics changed, added, or (value empty) left out.
std::string optics_with(const std::string& star, const Columns& columns) {
  std::vector<std::string> names{"rlnOpticsGroup",         "rlnOpticsGroupName",    "rlnVoltage",
                                 "rlnSphericalAberration", "rlnAmplitudeContrast",  "rlnImagePixelSize",
                                 "rlnImageSize",           "rlnImageDimensionality"};
  std::vector<std::string> values{
      "1", "opticsGroup1", "300.0", "2.7", "0.1", std::to_string(pixel_size), std::to_string(model_box), "2"};
  for (const auto& [name, value] : columns) {
    const auto found = std::ranges::find(names, name);
    const auto at = found - names.begin();
    if (found == names.end()) {
      names.push_back(name);
      values.push_back(value);
    } else if (value.empty()) {
      names.erase(found);
      values.erase(values.begin() + at);
    } else {
      values[static_cast<std::size_t>(at)] = value;
    }
  }
  std::string table = "\n# version 30001\n\ndata_optics\n\nloop_\n";
  for (const auto& name : names)
    table += "_" + name + "\n";
  for (const auto& value : values)
    table += value + " ";
  return table + "\n\n" + star.substr(star.rfind("# version 30001"));
}

/// A column of the particles with other values.
std::string particles_with(const std::string& star, const std::string& name,
                           const std::function<std::string(std::size_t)>& value) {
  const TemporaryFolder folder;
  write_text(folder / "a.star", star);
  StarDocument document = read_star(folder / "a.star");
  StarTable& table = *document.find("particles");
  std::vector<std::string> values;
  for (std::size_t row = 0; row < table.rows(); ++row)
    values.push_back(value(row));
  table.set_column(name, std::move(values));
  write_star(folder / "b.star", document);
  return read_text(folder / "b.star");
}

/// Least correlation with the truth at shells 2 to three quarters of Nyquist, and the relative error in the sphere.
struct Judgement {
  double correlation, error;
};

struct ColumnScene {
  TemporaryFolder folder;
  std::vector<Gaussian> gaussians = random_gaussians(8, model_box / 6.0, 1.1);
  std::vector<Particle> particles = random_particles(160, 1.5);
  std::vector<float> map = gaussian_map(gaussians, model_box);
  std::string star = star_text(particles, model_box, "images.mrcs");

  ColumnScene() { write_map(folder / "map.mrc", map, model_box); }

  void make(const Model& model) const {
    write_stack(folder / "images.mrcs", images_of(model, gaussians, particles), model_box, model_box);
  }
  Judgement judge(const std::string& star_file, const std::string& options = "") const {
    write_text(folder / "p.star", star_file);
    run_well(folder, reconstruct + " --star p.star --out r.mrc --reference map.mrc " + options);
    const auto correlation = read_correlations(folder / "r_fsc.txt", 1);
    return {*std::min_element(correlation.begin() + 2, correlation.begin() + 3 * model_box / 8 + 1),
            error_in_sphere(MrcReader(folder / "r.mrc").read_volume(), map, model_box)};
  }
  /// Of bracewell-project's images with the columns of p.star.
  double projection_error() const {
    run_well(folder, project + " --map map.mrc --star p.star --ctf --out projected.mrcs");
    return relative_error(read_stack(folder / "projected.mrcs").values,
                          read_stack(folder / "images.mrcs").values);
  }
};

/// A column, what it means, the columns that state it, and whether the map is wrong without it.
struct ColumnCase {
  std::string name;
  Model model;
  Columns optics;
  bool matters; ///< images differ without it
};

std::vector<ColumnCase> column_cases() {
  const auto with = [](const auto& change) {
    Model model;
    change(model);
    return model;
  };
  const Columns magnification{
      {"rlnMagMat00", "1.04"}, {"rlnMagMat01", "0.02"}, {"rlnMagMat10", "-0.01"}, {"rlnMagMat11", "0.96"}};
  const auto magnify = [](Model& m) { m.magnification = {1.04, 0.02, -0.01, 0.96}; };
  const auto aberrate = [](Model& m) {
    m.tilt_x = 8, m.tilt_y = -5,
    m.odd = [](double x, double y) { return 160 * y - 120 * x + 150 * (3 * x * x * y - y * y * y); };
  };
  return {
      {"none", {}, {}, false},
      {"rlnVoltage", with([](Model& m) { m.voltage = 100; }), {{"rlnVoltage", "100"}}, true},
      {"rlnSphericalAberration", with([](Model& m) { m.cs = 40; }), {{"rlnSphericalAberration", "40"}}, true},
      {"rlnAmplitudeContrast",
       with([](Model& m) { m.amplitude = 0.6; }),
       {{"rlnAmplitudeContrast", "0.6"}},
       true},
      {"rlnPhaseShift", with([](Model& m) { m.phase_degrees = 70; }), {{"rlnPhaseShift", "70"}}, true},
      {"rlnCtfBfactor", with([](Model& m) { m.b_factor = 90; }), {{"rlnCtfBfactor", "90"}}, true},
      {"rlnCtfScalefactor", with([](Model& m) { m.scale = -0.5; }), {{"rlnCtfScalefactor", "-0.5"}}, true},
      {"rlnCtfDataAreCtfPremultiplied",
       with([](Model& m) { m.premultiplied = true; }),
       {{"rlnCtfDataAreCtfPremultiplied", "1"}},
       true},
      {"rlnBeamTiltX", with([](Model& m) { m.tilt_x = 9; }), {{"rlnBeamTiltX", "9"}}, true},
      {"rlnBeamTiltY", with([](Model& m) { m.tilt_y = 9; }), {{"rlnBeamTiltY", "9"}}, true},
      {"rlnOddZernike",
       with([](Model& m) {
         m.odd = [](double x, double y) { return 160 * y - 120 * x + 150 * (3 * x * x * y - y * y * y); };
       }),
       {{"rlnOddZernike", "[160,-120,150]"}},
       true},
      {"rlnEvenZernike",
       with([](Model& m) {
         m.even = [](double x, double y) { return -0.03 + 18 * x * y + 7 * (x * x - y * y); };
       }),
       {{"rlnEvenZernike", "[-0.03,9,0,7]"}},
       true},
      {"rlnMagMat", with(magnify), magnification, true},
      {"rlnMagMat and aberrations",
       with([&](Model& m) { magnify(m), aberrate(m); }),
       {magnification[0],
        magnification[1],
        magnification[2],
        magnification[3],
        {"rlnBeamTiltX", "8"},
        {"rlnBeamTiltY", "-5"},
        {"rlnOddZernike", "[160,-120,150]"}},
       true},
      {"rlnMtfFileName",
       with([](Model& m) { m.response = [](double k) { return 1 - 0.7 * std::min(1.0, k * 2 * 1.5); }; }),
       {{"rlnMtfFileName", "mtf.star"}, {"rlnMicrographOriginalPixelSize", "1.5"}},
       true},
      {"rlnDetectorPixelSize",
       {},
       {{"rlnImagePixelSize", ""}, {"rlnDetectorPixelSize", "6"}, {"rlnMagnification", "20000"}},
       false},
  };
}

} // namespace

TEST_CASE("every column of the optics means what an independent model has", "[hosts]") {
  const ColumnScene scene;
  write_text(scene.folder / "mtf.star", "\ndata_mtf\n\nloop_\n_rlnResolutionInversePixel\n_rlnMtfValue\n0 1\n"
                                        "0.1 0.86\n0.25 0.65\n0.5 0.3\n");
  for (const ColumnCase& one : column_cases()) {
    scene.make(one.model);
    const Judgement right = scene.judge(optics_with(scene.star, one.optics));
    const double projected = scene.projection_error();
    INFO(one.name << ": correlation " << right.correlation << ", error " << right.error << ", of projections "
                  << projected);
    CHECK(right.correlation > 0.99);
    CHECK(right.error < 0.07);
    CHECK(projected < 0.005);
    if (!one.matters)
      continue;
    write_text(scene.folder / "p.star", optics_with(scene.star, {}));
    const double projected_without = scene.projection_error();
    INFO("without it: error of projections " << projected_without);
    CHECK(projected_without > 0.04);
  }
}

TEST_CASE("columns of single particles mean what an independent model has", "[hosts]") {
  const ColumnScene scene;
  const auto number = [](double value) { return std::to_string(value); };
  scene.make({});
  const double best = scene.judge(scene.star).error;
  // Origins in pixels.
  std::string pixels =
      particles_with(scene.star, "rlnOriginX", [&](std::size_t i) { return number(scene.particles[i].x); });
  pixels = particles_with(pixels, "rlnOriginY", [&](std::size_t i) { return number(scene.particles[i].y); });
  CHECK(scene.judge(without(without(pixels, "rlnOriginXAngst"), "rlnOriginYAngst")).error < 1.01 * best);
  // A column of the particles counts before the optics.
  CHECK(scene
            .judge(particles_with(optics_with(scene.star, {{"rlnVoltage", "120"}}), "rlnVoltage",
                                  [](std::size_t) { return "300"; }))
            .error < 1.01 * best);
  // Without the second defocus it is the first.
  Model round;
  round.astigmatic = false;
  scene.make(round);
  CHECK(scene.judge(without(scene.star, "rlnDefocusV")).error < 1.05 * best);
  CHECK(scene.projection_error() < 0.005);
  write_text(scene.folder / "p.star", particles_with(scene.star, "rlnDefocusV", [&](std::size_t i) {
               return number(scene.particles[i].defocus_u - 1500);
             }));
  CHECK(scene.projection_error() > 0.03);
}

TEST_CASE("B factors below 0 are named with the row, and their sign can be chosen", "[hosts]") {
  const ColumnScene scene;
  Model decay;
  decay.b_factor = 90;
  scene.make(decay);
  const std::string warp = optics_with(scene.star, {{"rlnCtfBfactor", "-90"}});
  CHECK(scene.judge(warp).error < 0.06);
  const std::string command = reconstruct + " --star p.star --out r.mrc ";
  const Outcome said = run(scene.folder, command);
  CHECK(said.err.find("B factors below 0 (rlnCtfBfactor, 160 of 160 rows, the first is row 1 with -90") !=
        std::string::npos);
  CHECK(said.err.find("--b-factor-sign relion") != std::string::npos);
  expect_bad_input(scene.folder, command + "--strict", {"p.star", "B factors below 0", "--strict"});
  CHECK(run(scene.folder, command + "--strict --b-factor-sign warp").err.find("B factors") ==
        std::string::npos);
  CHECK(scene.judge(warp, "--b-factor-sign relion").error > 0.1);
  const std::string mixed =
      particles_with(scene.star, "rlnCtfBfactor", [](std::size_t i) { return i == 4 ? "-90" : "90"; });
  write_text(scene.folder / "p.star", mixed);
  const Outcome growth = run(scene.folder, command);
  CHECK(growth.err.find("the first is row 5 with -90") != std::string::npos);
  CHECK(growth.err.find("--b-factor-sign warp turns the sign") != std::string::npos);
}

TEST_CASE("project and refine have the contrast transfer at M k, too") {
  const ColumnScene scene;
  const auto cases = column_cases();
  const auto& one = *std::ranges::find(cases, "rlnMagMat and aberrations", &ColumnCase::name);
  scene.make(one.model);
  const std::string star = optics_with(scene.star, one.optics);
  write_text(scene.folder / "p.star", star);
  run_well(scene.folder, project + " --map map.mrc --star p.star --ctf --out projected.mrcs");
  CHECK(relative_error(read_stack(scene.folder / "projected.mrcs").values,
                       read_stack(scene.folder / "images.mrcs").values) < 0.03);
  // Poses that are a little off come back.
  std::string off = particles_with(star, "rlnAnglePsi",
                                   [&](std::size_t i) { return std::to_string(scene.particles[i].psi + 2); });
  off = particles_with(off, "rlnAngleTilt",
                       [&](std::size_t i) { return std::to_string(scene.particles[i].tilt - 2); });
  write_text(scene.folder / "off.star", off);
  run_well(scene.folder, refine + " --map map.mrc --star off.star --radius 10 --out refined.star");
  CHECK(share_of_close_poses(
            read_particles(scene.folder / "refined.star"), [&](std::size_t i) { return scene.particles[i]; },
            0.3, 0.05) > 0.95);
}

// ../shared/cases/cryoem: files that went wrong, with their right values.
namespace {

std::string shared_case(const std::string& name) {
  const fs::path path = shared_data("").parent_path().parent_path() / "cases" / "cryoem" / name;
  if (!fs::exists(path))
    SKIP("the cases are not there: " << path);
  return path.string();
}

} // namespace

TEST_CASE("marks of byte order, letters beyond ASCII and formats in names are read", "[hosts]") {
  const Particles plain = read_particles(shared_case("small.star"));
  for (const char* const name : {"11_bom.star", "38_utf8.star", "21_mrcs_suffix.star"}) {
    const Particles other = read_particles(shared_case(name));
    CHECK(other.rot.values == plain.rot.values);
    CHECK(other.defocus_u.values == plain.defocus_u.values);
    CHECK(other.image == plain.image);
    CHECK(other.stacks[0].path == plain.stacks[0].path);
    CHECK(other.warnings.empty());
  }
  const TemporaryFolder folder;
  Particles named = read_particles(shared_case("38_utf8.star"));
  write_star(folder / "again.star", named.document);
  const StarDocument again = read_star(folder / "again.star");
  const StarTable& table = *again.find("particles");
  CHECK(table.value(0, *table.find("rlnMicrographName")) == "Mikroskopie_\xC3\xBC"
                                                            "bung/x.mrc");
}

TEST_CASE("a distorted image has its contrast transfer at M k: FSC of the case") {
  const TemporaryFolder folder;
  run_well(folder, reconstruct + " --star " + shared_case("m_warped.star") + " --out map.mrc --reference " +
                       shared_case("truth2.mrc"));
  const auto correlation = read_correlations(folder / "map_fsc.txt", 1);
  CHECK(correlation[16] > 0.98);
  CHECK(correlation[24] > 0.9);
  CHECK(correlation[30] > 0.68);
}

TEST_CASE("what is strange in the cases is said, with rows and what to do", "[hosts]") {
  const TemporaryFolder folder;
  const auto strict = [&](const std::string& name, const std::vector<std::string>& words) {
    expect_bad_input(folder, reconstruct + " --strict --out o.mrc --star " + shared_case(name), words);
  };
  strict("28_defocus_um.star",
         {"all defoci are below 100 Angstrom", "micrometres", "multiply them by 10000"});
  strict("36_hot_pixel.star", {"1 image has a hot pixel (row 8, pixel 31 of line 31", "remove it"});
  strict("57b_helical_nosub.star", {"its 4 filaments (rlnHelicalTubeID) are shared out between two"});
  strict("noise_dup.star", {"300 images twice, 300 of them in both half sets (row 301 repeats row 1)"});
  expect_bad_input(folder, reconstruct + " --out o.mrc --star " + shared_case("63_magzero.star"),
                   {"row 1", "rlnMagMat00", "found 0 0 0 0, which is singular"});
  expect_bad_input(folder,
                   project + " --out o.mrcs --map " + shared_case("truth.mrc") + " --star " +
                       shared_case("63_magzero.star"),
                   {"row 1", "which is singular"});
  expect_bad_input(folder,
                   project + " --strict --out o.mrcs --map " + shared_case("off0.02.mrc") + " --star " +
                       shared_case("small.star"),
                   {"off0.02.mrc: has a pedestal", "subtract it"});
}

// A look at the data.

TEST_CASE("findings in columns have their numbers and what to do", "[hosts]") {
  const ColumnScene scene;
  scene.make({});
  const auto said = [&](const std::string& star, const std::vector<std::string>& words) {
    write_text(scene.folder / "p.star", star);
    expect_bad_input(scene.folder, reconstruct + " --strict --star p.star --out r.mrc", words);
  };
  const auto value = [](const std::string& text, std::size_t row = 1000) {
    return [text, row](std::size_t i) { return row == 1000 || i == row ? text : "15000"; };
  };
  said(particles_with(particles_with(scene.star, "rlnDefocusU", value("0", 6)), "rlnDefocusV", value("0", 6)),
       {"1 of 160 defoci are below 100 Angstrom (row 7)", "leave these rows out"});
  said(particles_with(scene.star, "rlnDefocusV", value("-9000")), {"differ by more than their mean"});
  for (const auto& [defocus, words] :
       {std::pair("1500", "all defoci are below 3000 Angstrom (rlnDefocusU 1500): nanometres"),
        std::pair("150000", "all defoci are above 100000 Angstrom (rows 1, 2, 3 and 157 more")})
    said(particles_with(particles_with(scene.star, "rlnDefocusU", value(defocus)), "rlnDefocusV",
                        value(defocus)),
         {words});
  said(particles_with(scene.star, "rlnPhaseshift", value("30")),
       {"table data_particles has a column rlnPhaseshift, which is not used: call it rlnPhaseShift"});
  said(particles_with(particles_with(scene.star, "rlnDefocusU", value("-9000")), "rlnDefocusV",
                      value("-9000")),
       {"most defoci are below 0", "-9000"});
  std::string radians = scene.star;
  for (const auto& [name, angle] :
       {std::pair("rlnAngleRot", &Particle::rot), std::pair("rlnAngleTilt", &Particle::tilt),
        std::pair("rlnAnglePsi", &Particle::psi)})
    radians = particles_with(radians, name, [&, of = angle](std::size_t i) {
      return std::to_string(scene.particles[i].*of * std::numbers::pi / 180);
    });
  said(radians, {"no angle is above 3.2", "degrees"});
  said(optics_with(scene.star, {{"rlnSphericalAberration", "-2.7"}}),
       {"the spherical aberration is below 0 (rlnSphericalAberration -2.7)"});
  said(optics_with(scene.star, {{"rlnSphericalAberration", "2700"}}),
       {"above 100 mm", "2700", "divide it by 1000"});
  said(optics_with(scene.star, {{"rlnAmplitudeContrast", "-0.1"}}), {"amplitude contrast is below 0"});
  said(particles_with(scene.star, "rlnPhaseShift", value("1.57")), {"rlnPhaseShift 1.57", "radians"});
  said(particles_with(scene.star, "rlnCtfScalefactor", [](std::size_t i) { return i == 2 ? "0" : "1"; }),
       {"1 scale factors are 0", "row 3"});
  const double half = 0.5 * model_box * pixel_size;
  for (const auto& [origin, is_far] : {std::pair(1.01 * half, true), std::pair(0.99 * half, false)}) {
    const std::string star = particles_with(scene.star, "rlnOriginYAngst", [&, size = origin](std::size_t i) {
      return i == 6 ? std::to_string(-size) : "0";
    });
    write_text(scene.folder / "p.star", star);
    const Outcome outcome = run(scene.folder, reconstruct + " --star p.star --out r.mrc");
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(
        (outcome.err.find("1 of 160 origins are more than half an image away (row 7): pixels in the place of "
                          "Angstrom, or the other way round?") != std::string::npos) == is_far);
  }
}

TEST_CASE("findings in images have their rows", "[hosts]") {
  const ColumnScene scene;
  const Model model;
  const auto images = images_of(model, scene.gaussians, scene.particles);
  const std::size_t pixels = model_box * model_box;
  const auto said = [&](const std::vector<float>& changed, const std::vector<std::string>& words) {
    write_stack(scene.folder / "images.mrcs", changed, model_box, model_box);
    write_text(scene.folder / "p.star", scene.star);
    expect_bad_input(scene.folder, reconstruct + " --strict --star p.star --out r.mrc", words);
  };
  write_stack(scene.folder / "images.mrcs", images, model_box, model_box);
  write_text(scene.folder / "p.star", scene.star);
  run_well(scene.folder, reconstruct + " --strict --star p.star --out r.mrc"); // nothing is found
  auto changed = images;
  std::fill_n(changed.begin() + 4 * pixels, pixels, 3.0f);
  said(changed, {"1 of 160 images are blank (row 5,"});
  changed = images;
  for (std::size_t i = 0; i < pixels; ++i)
    changed[9 * pixels + i] *= 1000;
  said(changed, {"1 of 160 images have deviations", "row 10"});
  changed = images;
  std::copy_n(images.begin() + 2 * pixels, pixels, changed.begin() + 5 * pixels);
  said(changed,
       {"has under different names 1 image twice, 1 of them in both half sets (row 6 repeats row 3)"});
  changed = images;
  for (float& pixel : changed)
    pixel = -pixel;
  said(changed, {"particles are darker than their surrounding", "invert_contrast"});
  changed = images;
  changed[7 * pixels + 30] = 3e38f;
  said(changed, {"p.star: row 8", "3e+38"});
  // A pixel that outweighs its image: the map is that without the image. One that does not: it stays.
  const auto map_of = [&](const std::vector<float>& of_images, const std::string& word) {
    write_stack(scene.folder / "images.mrcs", of_images, model_box, model_box);
    write_text(scene.folder / "p.star", scene.star);
    const Outcome outcome = run(scene.folder, reconstruct + " --star p.star --out r.mrc --reproducible");
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK((outcome.err + outcome.out).find(word) != std::string::npos);
    return MrcReader(scene.folder / "r.mrc").read_volume();
  };
  std::vector<float> blank = images, one = images, many = images;
  std::fill_n(blank.begin() + 7 * pixels, pixels, 0.0f);
  const auto without = map_of(blank, ": 159 particles");
  double squares = 0;
  for (std::size_t i = 0; i < pixels; ++i)
    squares += images[7 * pixels + i] * images[7 * pixels + i] / double(pixels);
  one[7 * pixels + 30] = float(1.2 * model_box * std::sqrt(squares));
  CHECK(map_of(one, "row 8, pixel 7 of line 2, ") == without);
  CHECK(map_of(one, "outweighs all others: maps are made without the image; remove it") == without);
  one[7 * pixels + 30] = float(0.92 * model_box * std::sqrt(squares));
  CHECK(relative_error(map_of(one, "it reaches all frequencies"), without) > 1e-3);
  CHECK(map_of(one, ": 160 particles").size() == without.size());
  for (std::size_t i = 0; i < 41; ++i)
    many[3 * i * pixels + 30] = 1e6f;
  write_stack(scene.folder / "images.mrcs", many, model_box, model_box);
  expect_bad_input(scene.folder, reconstruct + " --star p.star --out bad.mrc",
                   {"41 images have hot pixels (rows 1, 4, 7 and 38 more", "25 % of such images at most"});
  // A half of one image with another pose is a repeat, all images twice is symmetry expansion.
  std::string star = scene.star;
  const std::size_t begin = star.rfind(" #11\n") + 5;
  std::string rows = star.substr(begin), turned;
  std::istringstream lines(rows);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty())
      turned += "1 10" + line.substr(line.find(' ', 2)) + "\n";
  write_stack(scene.folder / "images.mrcs", images, model_box, model_box);
  write_text(scene.folder / "p.star", star + turned);
  run_well(scene.folder, reconstruct + " --strict --star p.star --out r.mrc");
  write_text(scene.folder / "p.star", star + turned.substr(0, turned.find('\n') + 1));
  expect_bad_input(scene.folder, reconstruct + " --strict --star p.star --out r.mrc",
                   {"names 1 image twice, 0 of them in both half sets (row 161 repeats row 1)"});
}

TEST_CASE("maps of nothing, formats of others and wrong names are told", "[hosts]") {
  const ColumnScene scene;
  scene.make({});
  write_text(scene.folder / "p.star", scene.star);
  write_map(scene.folder / "zero.mrc", std::vector<float>(scene.map.size()), model_box);
  const std::string projection = project + " --star p.star --out o.mrcs --map ";
  expect_bad_input(scene.folder, projection + "zero.mrc --strict",
                   {"zero.mrc: has the value 0 in all voxels"});
  write_map(scene.folder / "large.mrc", std::vector<float>(scene.map.size(), 3e38f), model_box);
  expect_bad_input(scene.folder, projection + "large.mrc", {"large.mrc: has values of 3e+38"});
  // A cell of a crystal: the third of the angles that follow the lengths.
  const auto with_angle = [&](float degrees) {
    write_map(scene.folder / "cell.mrc", scene.map, model_box);
    std::fstream file(scene.folder / "cell.mrc", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(60).write(reinterpret_cast<const char*>(&degrees), sizeof degrees);
  };
  for (const float degrees : {120.0f, 60.0f, 94.3f}) {
    with_angle(degrees);
    const bool hexagonal = degrees != 94.3f;
    expect_bad_input(scene.folder, projection + "cell.mrc" + (hexagonal ? "" : " --strict"),
                     {hexagonal ? "cell.mrc: expected a cell with right angles, found one of " +
                                      std::to_string(int(degrees)) + " degrees"
                                : "cell.mrc: its cell has an angle of 94.3"});
    expect_bad_input(scene.folder,
                     refine + " --star p.star --out r.star --map cell.mrc" + (hexagonal ? "" : " --strict"),
                     {"cell.mrc: ", "angle"});
  }
  const auto filled = [](std::string text) {
    text.resize(3000, '.');
    return text;
  };
  using namespace std::string_literals;
  for (const auto& [name, beginning, words] : std::initializer_list<std::array<std::string, 3>>{
           {"a.hdf", "\x89HDF\r\n\x1a\n", "this is an HDF5 file"},
           {"a.tif", "II*\0"s, "this is a TIFF file"},
           {"a.eer", "II+\0"s, "this is an EER movie: motion correction"},
           {"a.db", "SQLite format 3\0"s, "cisTEM"},
           {"a.mrc", "\x1f\x8b", "gzip"}}) {
    write_text(scene.folder / name, filled(beginning));
    expect_bad_input(scene.folder, projection + name, {name, words});
    expect_bad_input(scene.folder, reconstruct + " --out r.mrc --star " + name, {name, words});
  }
  for (const auto& [column, words] : std::initializer_list<std::array<std::string, 2>>{
           {"rlnTomoParticleName", "relion_tomo_subtomo --stack2d"}}) {
    write_text(scene.folder / "o.star", particles_with(scene.star, column, [](std::size_t) { return "1"; }));
    expect_bad_input(scene.folder, reconstruct + " --star o.star --out r.mrc", {"o.star", words});
  }
  // Of images it is the picture of a micrograph's spectrum.
  write_text(scene.folder / "o.star",
             particles_with(scene.star, "rlnCtfImage", [](std::size_t) { return "a.ctf:mrc"; }));
  const Outcome pictured = run(scene.folder, reconstruct + " --star o.star --out r.mrc");
  CHECK(pictured.code == 0);
  CHECK(pictured.err.find("has rlnCtfImage beside images") != std::string::npos);
  expect_bad_input(scene.folder, reconstruct + " --star p.star --out r.star", {"--out", "ends with .mrc"});
  expect_bad_input(scene.folder, refine + " --star p.star --out r.mrc", {"--out", "ends with .star"});
  for (const std::string& command : {reconstruct + " --out r.mrc", refine + " --out r.star"})
    expect_bad_input(scene.folder, command + " --star p.star --symmetry I5",
                     {"--symmetry: expected C<n>, D<n>, T, O, I, I1, I2, I3 or I4, found I5"});
}

// cryoSPARC's datasets: NumPy arrays of records, made here field by field.
namespace {

/// Records in NumPy's format 1.
class Records {
public:
  explicit Records(std::size_t count) : rows_(count) {}

  void field(const std::string& name, const std::string& type, std::size_t values = 1) {
    description_ +=
        "('" + name + "', '" + type + "'" + (values > 1 ? ", (" + std::to_string(values) + ",)" : "") + "), ";
  }
  template <class Value>
  void add(std::size_t row, const Value& value) {
    rows_[row].append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add_text(std::size_t row, std::string text, std::size_t width) {
    text.resize(width);
    rows_[row] += text;
  }
  void write(const fs::path& path) const {
    std::string header = "{'descr': [" + description_ + "], 'fortran_order': False, 'shape': (" +
                         std::to_string(rows_.size()) + ",), }";
    header.append(63 - (10 + header.size()) % 64, ' ') += '\n';
    std::string text = "\x93NUMPY\x01";
    text += '\0';
    text += static_cast<char>(header.size() % 256);
    text += static_cast<char>(header.size() / 256);
    text += header;
    for (const auto& row : rows_)
      text += row;
    write_text(path, text);
  }

private:
  std::vector<std::string> rows_;
  std::string description_;
};

/// The rotation vector whose matrix, transposed, is RELION's.
std::array<float, 3> rotation_vector_of(const Particle& p) {
  const auto a = relion_matrix(p); // the transpose of exp([v]x)
  const double angle = std::acos(std::clamp((a[0][0] + a[1][1] + a[2][2] - 1) / 2, -1.0, 1.0)),
               factor = angle / (2 * std::sin(angle));
  return {static_cast<float>(factor * (a[1][2] - a[2][1])), static_cast<float>(factor * (a[2][0] - a[0][2])),
          static_cast<float>(factor * (a[0][1] - a[1][0]))};
}

/// Poses in `folder`/J2/particles.cs; images and contrast in its passthrough file, in the opposite order. Images lie in
/// `folder`/J1.
void write_cryosparc(const fs::path& folder, const std::vector<Particle>& particles, int box, float sign) {
  const std::size_t count = particles.size();
  Records poses(count), rest(count);
  poses.field("uid", "<u8");
  poses.field("alignments3D/pose", "<f4", 3);
  poses.field("alignments3D/shift", "<f4", 2);
  poses.field("alignments3D/psize_A", "<f4");
  poses.field("alignments3D/split", "<u4");
  rest.field("uid", "<u8");
  rest.field("blob/path", "|S20");
  rest.field("blob/idx", "<u4");
  rest.field("blob/shape", "<u4", 2);
  rest.field("blob/psize_A", "<f4");
  rest.field("blob/sign", "<f4");
  for (const char* const name : {"ctf/accel_kv", "ctf/cs_mm", "ctf/amp_contrast", "ctf/df1_A", "ctf/df2_A",
                                 "ctf/df_angle_rad", "ctf/phase_shift_rad"})
    rest.field(name, "<f4");
  rest.field("ctf/tilt_A", "<f4", 2);
  rest.field("ctf/trefoil_A", "<f4", 2);
  rest.field("filament/filament_uid", "<u8");
  for (std::size_t i = 0; i < count; ++i) {
    const Particle& p = particles[i];
    poses.add(i, std::uint64_t(1) << 60 | i);
    poses.add(i, rotation_vector_of(p));
    poses.add(i, std::array{static_cast<float>(p.x), static_cast<float>(p.y)});
    poses.add(i, static_cast<float>(pixel_size));
    poses.add(i, static_cast<std::uint32_t>(i % 2));
    const std::size_t j = count - 1 - i;
    rest.add(j, std::uint64_t(1) << 60 | i);
    rest.add_text(j, ">J1/images.mrcs", 20);
    rest.add(j, static_cast<std::uint32_t>(i));
    rest.add(j, std::array{static_cast<std::uint32_t>(box), static_cast<std::uint32_t>(box)});
    rest.add(j, static_cast<float>(pixel_size));
    rest.add(j, sign);
    for (const double value :
         {300.0, 2.7, 0.1, p.defocus_u, p.defocus_v, p.angle * std::numbers::pi / 180, 0.0})
      rest.add(j, static_cast<float>(value));
    rest.add(j, std::array{0.0f, 0.0f});
    rest.add(j, std::array{0.0f, 0.0f});
    rest.add(j, std::uint64_t(1) << 40 | i / 7);
  }
  fs::create_directories(folder / "J1");
  fs::create_directories(folder / "J2");
  poses.write(folder / "J2/particles.cs");
  rest.write(folder / "J2/J2_passthrough_particles.cs");
}

} // namespace

TEST_CASE("of cryoSPARC's poses of several classes in one field the most probable is taken", "[hosts]") {
  const TemporaryFolder folder;
  const auto particles = random_particles(6, 1.5);
  write_stack(folder / "images.mrcs", std::vector<float>(6 * 64, 1), 8, 8);
  Records records(6);
  for (const auto& [name, type, values] :
       std::initializer_list<std::tuple<const char*, const char*, std::size_t>>{
           {"uid", "<u8", 1},
           {"blob/path", "|S20", 1},
           {"blob/idx", "<u4", 1},
           {"blob/psize_A", "<f4", 1},
           {"alignments3D_multi/pose", "<f4", 6},
           {"alignments3D_multi/shift", "<f4", 4},
           {"alignments3D_multi/psize_A", "<f4", 1},
           {"alignments3D_multi/class_posterior", "<f4", 2},
           {"alignments3D_multi/split", "<u4", 1}})
    records.field(name, type, values);
  for (std::size_t i = 0; i < 6; ++i) {
    const std::size_t best = i % 3 == 0 ? 0 : 1;
    records.add(i, std::uint64_t(i));
    records.add_text(i, "images.mrcs", 20);
    records.add(i, static_cast<std::uint32_t>(i));
    records.add(i, static_cast<float>(pixel_size));
    const std::array<float, 3> other{0.1f, 0.2f, 0.3f}, own = rotation_vector_of(particles[i]);
    const std::array<float, 2> far{9, 9},
        near{static_cast<float>(particles[i].x), static_cast<float>(particles[i].y)};
    for (const std::size_t one : {0, 1})
      records.add(i, one == best ? own : other);
    for (const std::size_t one : {0, 1})
      records.add(i, one == best ? near : far);
    records.add(i, static_cast<float>(pixel_size));
    records.add(i, std::array{best == 0 ? 0.9f : 0.2f, best == 1 ? 0.8f : 0.1f});
    records.add(i, static_cast<std::uint32_t>(i % 2));
  }
  records.write(folder / "p.cs");
  const Particles read = read_particles(folder / "p.cs");
  for (std::size_t i = 0; i < read.count; ++i) {
    CHECK(angle_between(pose_in(read, i), particles[i]) < 0.05);
    CHECK(std::abs(read.origin_x[i] - particles[i].x) < 1e-5);
    CHECK(read.class_number[i] == (i % 3 == 0 ? 1 : 2));
    CHECK(read.random_subset[i] == static_cast<std::int64_t>(1 + i % 2));
  }
}

TEST_CASE("a project of cryoSPARC has the particles of its STAR file", "[hosts]") {
  const ColumnScene scene;
  const float sign = 1;
  write_cryosparc(scene.folder.path(), scene.particles, model_box, sign);
  scene.make({});
  fs::rename(scene.folder / "images.mrcs", scene.folder / "J1/images.mrcs");
  const Particles read = read_particles(scene.folder / "J2/particles.cs");
  CHECK(read.count == scene.particles.size());
  CHECK(read.warnings.empty());
  CHECK(read.passthroughs == std::vector<fs::path>{scene.folder / "J2/J2_passthrough_particles.cs"});
  for (std::size_t i = 0; i < read.count; ++i) {
    const Particle& p = scene.particles[i];
    CHECK(read.image[i] == static_cast<std::int64_t>(i));
    CHECK(read.random_subset[i] == static_cast<std::int64_t>(1 + i % 2));
    CHECK(angle_between(pose_in(read, i), p) < 0.05); // of single precision
    CHECK(std::abs(read.origin_x[i] - p.x) < 1e-5);
    CHECK(std::abs(read.origin_y[i] - p.y) < 1e-5);
    CHECK(std::abs(read.defocus_u[i] - p.defocus_u) < 1e-2);
    CHECK(std::abs(read.defocus_v[i] - p.defocus_v) < 1e-2);
    CHECK(std::abs(read.defocus_angle[i] - p.angle) < 1e-4);
    CHECK(read.pixel_size[i] == pixel_size);
    CHECK(std::abs(read.spherical_aberration[i] - 2.7) < 1e-6);
  }
  const auto map_of = [&](const std::string& file) {
    run_well(scene.folder, reconstruct + " --reproducible --star " + file + " --out r.mrc");
    return MrcReader(scene.folder / "r.mrc").read_volume();
  };
  const auto from_records = map_of("J2/particles.cs");
  fs::copy(scene.folder / "J1/images.mrcs", scene.folder / "images.mrcs");
  write_text(scene.folder / "p.star", scene.star);
  CHECK(relative_error(from_records, map_of("p.star")) < 1e-4);

  // bracewell-star writes the same particles.
  run_well(scene.folder, std::string(BRACEWELL_STAR) + " --particles J2/particles.cs --out converted.star");
  CHECK(relative_error(map_of("converted.star"), from_records) < 1e-5);
  expect_bad_input(scene.folder, std::string(BRACEWELL_STAR) + " --particles J2/particles.cs --out c.mrc",
                   {"--out", "ends with .star"});

  // Images of the other sign.
  write_cryosparc(scene.folder.path(), scene.particles, model_box, -1);
  Stack stack = read_stack(scene.folder / "images.mrcs");
  for (float& pixel : stack.values)
    pixel = -pixel;
  write_stack(scene.folder / "J1/images.mrcs", stack.values, model_box, model_box);
  CHECK(relative_error(map_of("J2/particles.cs"), from_records) < 1e-4);

  // Without the passthrough file a field is missing; a damaged one is told.
  fs::remove(scene.folder / "J2/J2_passthrough_particles.cs");
  expect_bad_input(scene.folder, reconstruct + " --star J2/particles.cs --out r.mrc",
                   {"J2/particles.cs", "blob/path is missing", "*passthrough*.cs"});
  std::string text = read_text(scene.folder / "J2/particles.cs");
  write_text(scene.folder / "J2/short.cs", text.substr(0, text.size() - 10));
  expect_bad_input(scene.folder, reconstruct + " --star J2/short.cs --out r.mrc",
                   {"short.cs", "is truncated"});
}

// RELION 5's tilt series: tomograms, tilts, particles, and stacks of the tilts where they are visible.
namespace {

using Rows3 = std::array<std::array<double, 3>, 3>;

Rows3 product(const Rows3& a, const Rows3& b) {
  Rows3 c{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 3; ++k)
        c[i][j] += a[i][k] * b[k][j];
  return c;
}

std::array<double, 3> product(const Rows3& a, const std::array<double, 3>& v) {
  std::array<double, 3> w{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 3; ++k)
      w[i] += a[i][k] * v[k];
  return w;
}

/// Rz(z) Ry(y) Rx(x), each turning by the right hand.
Rows3 tilted(double x, double y, double z) {
  const auto turn = [](double degrees) { return degrees * std::numbers::pi / 180; };
  const double cx = std::cos(turn(x)), sx = std::sin(turn(x)), cy = std::cos(turn(y)), sy = std::sin(turn(y)),
               cz = std::cos(turn(z)), sz = std::sin(turn(z));
  return product(
      Rows3{{{cz, -sz, 0}, {sz, cz, 0}, {0, 0, 1}}},
      product(Rows3{{{cy, 0, sy}, {0, 1, 0}, {-sy, 0, cy}}}, Rows3{{{1, 0, 0}, {0, cx, -sx}, {0, sx, cx}}}));
}

/// RELION's angles of a matrix whose tilt is not 0 or 180.
Particle angles_of(const Rows3& a) {
  constexpr double degrees = 180 / std::numbers::pi;
  Particle p{};
  p.rot = degrees * std::atan2(a[2][1], a[2][0]);
  p.tilt = degrees * std::acos(a[2][2]);
  p.psi = degrees * std::atan2(a[1][2], -a[0][2]);
  return p;
}

/// Grant & Grigorieff's amplitude that is left at k in 1/Angstrom.
double left_after(double exposure, double k) {
  return k == 0 ? 1 : std::exp(-exposure / (2 * (0.245 * std::pow(k, -1.665) + 2.81)));
}

struct TiltImage {
  Particle particle;
  double exposure, scale;
  std::size_t of; ///< particle
};

/// Two series of 13 tilts, 30 particles of which some tilts are not visible.
struct TiltProject {
  TemporaryFolder folder;
  std::vector<Gaussian> gaussians = random_gaussians(8, model_box / 6.0, 1.1);
  std::vector<TiltImage> images;
  std::vector<std::vector<int>> visible;
  std::string particles_table;

  explicit TiltProject(bool matrices = false) {
    std::mt19937 generator(7);
    const auto uniform = [&](double low, double high) {
      return low + (high - low) * generator() / 4294967296.0;
    };
    const auto text = [](std::initializer_list<double> values) {
      std::string line;
      for (const double value : values)
        line += " " + fixed(value);
      return line;
    };
    fs::create_directories(folder / "tilts");
    fs::create_directories(folder / "Extract");
    struct Frame {
      Rows3 rotation;
      double u, v, angle, scale, exposure;
    };
    std::array<std::vector<Frame>, 2> series;
    std::string global = "\ndata_global\n\nloop_\n_rlnTomoName\n_rlnVoltage\n_rlnSphericalAberration\n"
                         "_rlnAmplitudeContrast\n_rlnTomoHand\n_rlnTomoTiltSeriesPixelSize\n_rlnTomoSizeX\n"
                         "_rlnTomoSizeY\n_rlnTomoSizeZ\n",
                all;
    if (!matrices)
      global += "_rlnTomoTiltSeriesStarFile\n";
    for (int s = 0; s < 2; ++s) {
      const std::string name = "TS_" + std::to_string(s + 1);
      global += name + " 300 2.7 0.1 " + (s == 0 ? "-1" : "1") + " 1.5 1000 900 401" +
                (matrices ? "" : " tilts/" + name + ".star") + "\n";
      std::string table = "\ndata_" + name + "\n\nloop_\n";
      for (const char* const column :
           matrices ? std::vector<const char*>{"rlnTomoProjX", "rlnTomoProjY", "rlnTomoProjZ", "rlnTomoProjW"}
                    : std::vector<const char*>{"rlnTomoXTilt", "rlnTomoYTilt", "rlnTomoZRot",
                                               "rlnTomoXShiftAngst", "rlnTomoYShiftAngst"})
        table += "_" + std::string(column) + "\n";
      table +=
          "_rlnDefocusU\n_rlnDefocusV\n_rlnDefocusAngle\n_rlnCtfScalefactor\n_rlnMicrographPreExposure\n";
      for (int f = 0; f < 13; ++f) {
        const double y = -60 + 10 * f, x = uniform(-2, 2), z = 85 + uniform(-1, 1);
        const Frame frame{tilted(x, y, z),
                          uniform(9000, 14000),
                          uniform(9000, 14000),
                          uniform(0, 180),
                          std::cos(y * std::numbers::pi / 180),
                          6.0 * std::abs(f - 6) + (f > 6 ? 3 : 0)};
        series[static_cast<std::size_t>(s)].push_back(frame);
        if (matrices)
          for (std::size_t i = 0; i < 4; ++i) {
            const std::string end = i == 3 ? "0,0,0,1" : "";
            table += " [";
            for (std::size_t j = 0; i < 3 && j < 3; ++j)
              table += fixed(frame.rotation[i][j], 9) + ",";
            table += (i < 3 ? fixed(uniform(100, 900)) : end) + "]";
          }
        else
          table += text({x, y, z, uniform(-20, 20), uniform(-20, 20)});
        table += text({frame.u, frame.v, frame.angle, frame.scale, frame.exposure}) + "\n";
      }
      if (matrices)
        all += table;
      else
        write_text(folder / ("tilts/" + name + ".star"), table);
    }
    write_text(folder / "tomograms.star", global + all);
    write_text(folder / "optimisation_set.star",
               "\ndata_\n\n_rlnTomoParticlesFile   Extract/particles.star\n_rlnTomoTomogramsFile   "
               "tomograms.star\n");
    particles_table = "\ndata_general\n\n_rlnTomoSubTomosAre2DStacks  "
                      "1\n\ndata_optics\n\nloop_\n_rlnOpticsGroup\n_rlnImagePixelSize\n"
                      "_rlnImageSize\n_rlnImageDimensionality\n_rlnVoltage\n_rlnSphericalAberration\n_"
                      "rlnAmplitudeContrast\n"
                      "_rlnTomoTiltSeriesPixelSize\n_rlnCtfDataAreCtfPremultiplied\n1 3 24 2 300 2.7 0.1 1.5 "
                      "1\n\ndata_particles\n\nloop_\n";
    for (const char* const column :
         {"rlnTomoName", "rlnTomoParticleName", "rlnTomoSubtomogramRot", "rlnTomoSubtomogramTilt",
          "rlnTomoSubtomogramPsi", "rlnAngleRot", "rlnAngleTilt", "rlnAnglePsi", "rlnOriginXAngst",
          "rlnOriginYAngst", "rlnOriginZAngst"})
      particles_table += "_" + std::string(column) + "\n";
    for (const char axis : {'X', 'Y', 'Z'})
      particles_table += matrices ? std::string("_rlnCoordinate") + axis + "\n"
                                  : std::string("_rlnCenteredCoordinate") + axis + "Angst\n";
    particles_table += "_rlnImageName\n_rlnTomoVisibleFrames\n_rlnOpticsGroup\n_rlnRandomSubset\n";
    for (std::size_t i = 0; i < 30; ++i) {
      const std::size_t s = i / 15;
      const auto sub = random_particles(1, 0, static_cast<unsigned>(100 + i))[0],
                 own = random_particles(1, 0, static_cast<unsigned>(200 + i))[0];
      const std::array<double, 3> position{uniform(-600, 600), uniform(-500, 500), uniform(-300, 300)},
          offset{uniform(-4, 4), uniform(-4, 4), uniform(-4, 4)};
      const Rows3 in_tomogram = relion_matrix(sub), whole = product(in_tomogram, relion_matrix(own));
      const auto moved = product(in_tomogram, offset);
      visible.emplace_back();
      std::string flags;
      for (const Frame& frame : series[s]) {
        visible.back().push_back(generator() % 5 != 0);
        flags += (flags.empty() ? "[" : ",") + std::to_string(visible.back().back());
        if (!visible.back().back())
          continue;
        Particle p = angles_of(product(frame.rotation, whole));
        const auto origin = product(frame.rotation, moved);
        p.x = origin[0] / pixel_size, p.y = origin[1] / pixel_size;
        double depth = 0;
        for (std::size_t k = 0; k < 3; ++k)
          depth += frame.rotation[2][k] * (position[k] - moved[k]);
        const double deeper = s == 0 ? -depth : depth;
        p.defocus_u = frame.u + deeper, p.defocus_v = frame.v + deeper, p.angle = frame.angle;
        images.push_back({p, frame.exposure, frame.scale, i});
      }
      auto stated = position;
      if (matrices)
        for (std::size_t k = 0; k < 3; ++k)
          stated[k] = position[k] / 1.5 + std::array{1000.0, 900.0, 401.0}[k] / 2;
      const std::string name = "TS_" + std::to_string(s + 1);
      particles_table += name + " " + name + "/" + std::to_string(i + 1) +
                         text({sub.rot, sub.tilt, sub.psi, own.rot, own.tilt, own.psi, offset[0], offset[1],
                               offset[2], stated[0], stated[1], stated[2]}) +
                         " Extract/" + std::to_string(i + 1) + "_stack2d.mrcs " + flags + "] 1 " +
                         std::to_string(1 + i % 2) + "\n";
    }
    write_text(folder / "Extract/particles.star", particles_table);
    // The stacks, and the same images one after the other.
    std::vector<float> plain;
    for (std::size_t begin = 0, end; begin < images.size(); begin = end) {
      std::vector<float> stack;
      for (end = begin; end < images.size() && images[end].of == images[begin].of; ++end) {
        Model model;
        model.premultiplied = true;
        model.scale = images[end].scale;
        const double exposure = images[end].exposure;
        model.response = [exposure](double k) { return left_after(exposure, k) * left_after(exposure, k); };
        const auto image = images_of(model, gaussians, {images[end].particle});
        stack.insert(stack.end(), image.begin(), image.end());
      }
      write_stack(folder / ("Extract/" + std::to_string(images[begin].of + 1) + "_stack2d.mrcs"), stack,
                  model_box, model_box);
      plain.insert(plain.end(), stack.begin(), stack.end());
    }
    write_stack(folder / "images.mrcs", plain, model_box, model_box);
    std::vector<Particle> particles;
    for (const auto& one : images)
      particles.push_back(one.particle);
    const std::string star =
        optics_with(star_text(particles, model_box, "images.mrcs"), {{"rlnCtfDataAreCtfPremultiplied", "1"}});
    std::string with =
        particles_with(star, "rlnCtfScalefactor", [&](std::size_t i) { return fixed(images[i].scale, 9); });
    with = particles_with(with, "rlnMicrographPreExposure",
                          [&](std::size_t i) { return fixed(images[i].exposure); });
    write_text(folder / "plain.star", particles_with(with, "rlnRandomSubset", [&](std::size_t i) {
                 return std::to_string(1 + images[i].of % 2);
               }));
    write_map(folder / "map.mrc", gaussian_map(gaussians, model_box), model_box);
  }
};

} // namespace

TEST_CASE(
    "particles in RELION 5's tilt series are reconstructed as the same images with poses of their own") {
  for (const bool matrices : {false, true}) {
    const TiltProject scene(matrices);
    const Particles read = read_particles(scene.folder / "optimisation_set.star", {.tilt_series = true});
    REQUIRE(read.count == scene.images.size());
    CHECK(read.in_tilt_series == 30);
    CHECK(read.warnings.empty());
    for (std::size_t i = 0; i < read.count; ++i) {
      const auto& [p, exposure, scale, of] = scene.images[i];
      CHECK(angle_between(pose_in(read, i), p) < 1e-4);
      CHECK(std::abs(read.origin_x[i] - p.x) < 1e-5);
      CHECK(std::abs(read.origin_y[i] - p.y) < 1e-5);
      CHECK(std::abs(read.defocus_u[i] - p.defocus_u) < 1e-2);
      CHECK(std::abs(read.defocus_v[i] - p.defocus_v) < 1e-2);
      CHECK(std::abs(read.ctf_scale[i] - scale) < 1e-5);
      CHECK(read.exposure[i] == exposure);
      CHECK(read.random_subset[i] == static_cast<std::int64_t>(1 + of % 2));
    }
    const auto curve = [&](const std::string& star) {
      run_well(scene.folder, reconstruct + " --reference map.mrc --out r.mrc --star " + star);
      return read_correlations(scene.folder / "r_fsc.txt", 1);
    };
    const auto tilts = curve("optimisation_set.star"), plain = curve("plain.star");
    CHECK(*std::min_element(plain.begin(), plain.begin() + model_box / 3) > 0.9);
    for (std::size_t shell = 0; shell < plain.size(); ++shell)
      CHECK(std::abs(tilts[shell] - plain[shell]) < 0.01);
    if (matrices)
      continue;
    // As plain images by bracewell-star, and without the exposures: not so good.
    run_well(scene.folder,
             std::string(BRACEWELL_STAR) + " --particles optimisation_set.star --out flat.star");
    const auto flat = curve("flat.star");
    for (std::size_t shell = 0; shell < plain.size(); ++shell)
      CHECK(std::abs(flat[shell] - plain[shell]) < 0.01);
  }
}

TEST_CASE("what is wrong with tilt series is told, and what only reconstruct reads", "[hosts]") {
  const TiltProject scene;
  const std::string command = reconstruct + " --out r.mrc --star ";
  expect_bad_input(
      scene.folder, refine + " --map map.mrc --out r.star --star optimisation_set.star",
      {"optimisation_set.star: has particles in tilt series", "bracewell-star makes of every tilt"});
  expect_bad_input(
      scene.folder, command + "Extract/particles.star",
      {"Extract/particles.star", "neither an optimisation set nor tomograms.star lies beside it"});
  fs::copy(scene.folder / "tomograms.star", scene.folder / "Extract/tomograms.star");
  run_well(scene.folder, command + "Extract/particles.star");
  fs::remove(scene.folder / "Extract/tomograms.star");
  const std::string particles = scene.particles_table, tomograms = read_text(scene.folder / "tomograms.star"),
                    tilts = read_text(scene.folder / "tilts/TS_1.star");
  const auto changed = [](std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  const auto says = [&](const std::string& file, const std::string& text,
                        const std::vector<std::string>& words) {
    const std::string before = read_text(scene.folder / file);
    write_text(scene.folder / file, text);
    expect_bad_input(scene.folder, command + "optimisation_set.star --strict", words);
    write_text(scene.folder / file, before);
  };
  const std::string table = "Extract/particles.star";
  says(table, changed(particles, "\nTS_1 ", "\nTS_9 "),
       {"row 1, column rlnTomoName", "has no tomogram 'TS_9'"});
  says(table, changed(particles, "[", "[1,"),
       {"row 1, column rlnTomoVisibleFrames", "each of the 13 tilts", "found 14"});
  says(table, changed(particles, " Extract/2_", " Extract/1_"),
       {"row 2, column rlnImageName", "images, expected", "visible tilts"});
  says(table, changed(particles, "Extract/3_", "Extract/no_"),
       {"row 3, column rlnImageName: there is no stack"});
  says(table, changed(particles, "_rlnRandomSubset", "_rlnRandom"), {"odd and even particles are taken"});
  says(table, changed(particles, "_rlnCenteredCoordinateXAngst", "_rlnX"), {"some of the three columns"});
  says("tomograms.star", changed(tomograms, "_rlnTomoHand", "_rlnHand"), {"column rlnTomoHand", "depth"});
  says("tomograms.star", changed(tomograms, "tilts/TS_1", "tilts/TS_7"), {"tilts/TS_7.star"});
  says("tilts/TS_1.star", changed(tilts, "_rlnTomoYTilt", "_rlnTilt"),
       {"tilts/TS_1.star: column rlnTomoYTilt is missing"});
  says("tilts/TS_1.star", changed(tilts, "_rlnMicrographPreExposure", "_rlnDose"),
       {"column rlnMicrographPreExposure is missing"});
  says("optimisation_set.star",
       "data_\n_rlnTomoParticlesFile none.star\n_rlnTomoTomogramsFile tomograms.star\n",
       {"names none.star (rlnTomoParticlesFile), which is not there"});
}

TEST_CASE("a table of cisTEM's has the particles of RELION's", "[hosts]") {
  const ColumnScene scene;
  Model model;
  model.phase_degrees = 70;
  scene.make(model);
  std::string text = "# Written by cisTEM\n \ndata_\n \nloop_\n";
  for (const char* const name :
       {"PositionInStack", "AnglePsi", "AngleTheta", "AnglePhi", "XShift", "YShift", "Defocus1", "Defocus2",
        "DefocusAngle", "PhaseShift", "ImageActivity", "Occupancy", "PixelSize", "MicroscopeVoltagekV",
        "MicroscopeCsMM", "AmplitudeContrast", "StackFilename", "AssignedSubset"})
    text += "_cisTEM" + std::string(name) + "\n";
  for (std::size_t i = 0; i < scene.particles.size(); ++i) {
    const Particle& p = scene.particles[i];
    text += std::to_string(i + 1);
    for (const double value : {p.psi, p.tilt, p.rot, -p.x * pixel_size, -p.y * pixel_size, p.defocus_u,
                               p.defocus_v, p.angle, 70 * std::numbers::pi / 180})
      text += " " + fixed(value);
    text += std::string(i == 5 ? " -1" : " 1") + " 100 " + fixed(pixel_size) + " 300 2.7 0.1 'images.mrcs' " +
            std::to_string(1 + i % 2) + "\n";
  }
  const Judgement right = scene.judge(text);
  CHECK(right.correlation > 0.99);
  CHECK(right.error < 0.07);
  const Particles read = read_particles(scene.folder / "p.star");
  CHECK(read.count == scene.particles.size() - 1);
  CHECK(read.random_subset[1] == 2);
  REQUIRE(read.warnings.size() == 1);
  CHECK(read.warnings[0].find("1 of 160 particles are not active") != std::string::npos);
  run_well(scene.folder, std::string(BRACEWELL_STAR) + " --particles p.star --out relion.star");
  std::string no_stack = text;
  no_stack.replace(no_stack.find("_cisTEMStackFilename"), 20, "_cisTEMReference3D__");
  write_text(scene.folder / "no.star", no_stack);
  expect_bad_input(scene.folder, reconstruct + " --star no.star --out o.mrc",
                   {"no.star: column cisTEMStackFilename is missing"});
  CHECK(scene.judge(read_text(scene.folder / "relion.star")).error < 1.01 * right.error);
}

TEST_CASE("images of other boxes are brought to the first one's field of view") {
  // The same field of view in 32 and 40 pixels, a larger one in 27.
  const auto gaussians = random_gaussians(8, 32 / 6.0, 2.6);
  const auto particles = random_particles(300, 1.5);
  const TemporaryFolder folder;
  struct Group {
    int box;
    double pixel;
    std::vector<float> images{};
  };
  std::vector<Group> groups{{32, 3}, {40, 2.4}, {27, 3.9}};
  std::string star = star_text(particles, 32, "images.mrcs");
  for (std::size_t i = 0; i < particles.size(); ++i) {
    Group& group = groups[i / 2 % 3];
    const double pixel = group.pixel / 3;
    auto smaller = gaussians;
    for (auto& g : smaller)
      g = {g.x / pixel, g.y / pixel, g.z / pixel, g.deviation / pixel, g.amplitude * pixel};
    auto particle = particles[i];
    particle.x /= pixel, particle.y /= pixel;
    const auto image =
        filtered(gaussian_projections(smaller, {particle}, group.box), group.box,
                 [&](double u, double v) { return relion_ctf(particle, u / pixel, v / pixel); });
    const std::string end = " " + std::to_string(i + 1) + "@images.mrcs\n",
                      name = std::to_string(1 + group.images.size() / image.size()) + "@box" +
                             std::to_string(group.box) + ".mrcs\n";
    group.images.insert(group.images.end(), image.begin(), image.end());
    const std::size_t at = star.find(end), line = star.rfind('\n', at) + 1;
    star.replace(at + 1, end.size() - 1, name);
    star[line] = static_cast<char>('1' + i / 2 % 3);
  }
  for (const Group& group : groups)
    write_stack(folder / ("box" + std::to_string(group.box) + ".mrcs"), group.images, group.box, group.box);
  star.insert(star.find("1 opticsGroup1"), "3 opticsGroup3 300.0 2.7 0.1 3.9 27 2\n"
                                           "2 opticsGroup2 300.0 2.7 0.1 2.4 40 2\n");
  write_text(folder / "particles.star", star);
  const Outcome outcome = run(folder, reconstruct + " --star particles.star --out map.mrc");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.find(
            "has images of 40 x 40 pixels (row 3) and of 32 x 32, with pixels of 2.4 and of 3 Angstrom") !=
        std::string::npos);
  CHECK(error_in_sphere(MrcReader(folder / "map.mrc").read_volume(), gaussian_map(gaussians, 32), 32) < 0.06);
  write_map(folder / "reference.mrc", gaussian_map(gaussians, 32), 32);
  expect_bad_input(folder, refine + " --map reference.mrc --star particles.star --out r.star",
                   {"row 3: expected an image of 32 pixels as in row 1, found 40", "--new_box"});
  write_text(folder / "particles.star", without(star, "rlnImagePixelSize"));
  expect_bad_input(folder, reconstruct + " --star particles.star --out map.mrc", {"rlnImagePixelSize"});
}

TEST_CASE("a TIFF stack is read as RELION reads it, with its last row first", "[hosts]") {
  const ColumnScene scene;
  scene.make({});
  const double best = scene.judge(scene.star).error;
  const Stack stack = read_stack(scene.folder / "images.mrcs");
  TiffWriter tiff(scene.folder / "images.tif", model_box, model_box,
                  static_cast<std::int64_t>(scene.particles.size()));
  for (std::size_t i = 0; i < scene.particles.size(); ++i) {
    const auto own = image(stack, static_cast<int>(i));
    std::vector<float> page;
    for (int row = model_box - 1; row >= 0; --row)
      page.insert(page.end(), own.begin() + row * model_box, own.begin() + (row + 1) * model_box);
    tiff.write(page);
  }
  tiff.commit();
  std::string star = scene.star;
  for (auto at = star.find("images.mrcs"); at != std::string::npos; at = star.find("images.mrcs"))
    star.replace(at, 11, "images.tif");
  CHECK(scene.judge(star).error == best);
  star.replace(star.rfind(" 160@"), 5, " 161@");
  write_text(scene.folder / "p.star", star);
  expect_bad_input(scene.folder, reconstruct + " --star p.star --out r.mrc",
                   {"row 160", "there is no image 161 in", "images.tif, which has 160"});
}

// Subtomograms: Gaussians in closed form, with noise, in the frame of the tomogram; what was measured of their spectra is
// multiplied by C(k) in sums over all voxels.
namespace {

constexpr int cube = 16;

/// C of what was measured: of frequencies in periods per box width.
using Measured = std::function<double(int, int, int)>;

/// The tilts of projections from `least` to `most` about y, degrees: the plane of one has the frequencies (cos t, sin t) of
/// x and z.
Measured wedge(
    double least, double most, const Measured& contrast = [](int, int, int) { return 1.0; }) {
  return [=](int x, int y, int z) {
    if (x == 0 && z == 0)
      return contrast(x, y, z);
    double angle = std::atan2(double(z), double(x)) * 180 / std::numbers::pi;
    angle += angle < -90 ? 180 : angle > 90 ? -180 : 0; // k and -k are one
    const bool within = (angle >= least && angle <= most) || (std::abs(angle) == 90 && most == 90);
    return within ? contrast(x, y, z) : 0.0;
  };
}

int frequency_of(int index) { return index <= cube / 2 ? index : index - cube; }

/// Values [cube, cube, cube] whose spectrum is multiplied by C, axis by axis.
std::vector<float> measured(const std::vector<double>& values, const Measured& c) {
  constexpr int n = cube;
  std::vector<Complex> field(values.begin(), values.end()), next(field.size());
  const auto turn = [&](double sign) {
    for (const int stride : {1, n, n * n}) {
      for (int i = 0; i < n * n * n; ++i) {
        const int own = i / stride % n, base = i - own * stride;
        Complex sum = 0;
        for (int k = 0; k < n; ++k)
          sum += field[static_cast<std::size_t>(base + k * stride)] *
                 std::polar(1.0, sign * 2 * std::numbers::pi * (k * own % n) / n);
        next[static_cast<std::size_t>(i)] = sum;
      }
      field.swap(next);
    }
  };
  turn(-1);
  for (int i = 0; i < n * n * n; ++i) {
    const int x = frequency_of(i % n), y = frequency_of(i / n % n), z = frequency_of(i / n / n);
    const bool nyquist = 2 * std::abs(x) == n || 2 * std::abs(y) == n || 2 * std::abs(z) == n;
    field[static_cast<std::size_t>(i)] *= nyquist ? 0 : c(x, y, z);
  }
  turn(1);
  std::vector<float> result;
  for (const Complex& value : field)
    result.push_back(static_cast<float>(value.real() / (n * n * n)));
  return result;
}

struct TomogramScene {
  TemporaryFolder folder;
  std::vector<Gaussian> gaussians = random_gaussians(8, cube / 6.0, 1.1);
  std::vector<Particle> particles = random_particles(30, 1.0);
  std::vector<float> map = gaussian_map(gaussians, cube);

  TomogramScene() { write_map(folder / "map.mrc", map, cube); }

  double depth(std::size_t i) const { return 0.7 * std::sin(double(i)); } ///< rlnOriginZ, pixels

  void make(const Measured& c) const {
    std::mt19937 engine(4);
    std::normal_distribution<double> noise(0, 0.005);
    for (std::size_t i = 0; i < particles.size(); ++i) {
      const auto A = relion_matrix(particles[i]);
      std::vector<double> values;
      for (int z = 0; z < cube; ++z)
        for (int y = 0; y < cube; ++y)
          for (int x = 0; x < cube; ++x) {
            double sum = noise(engine);
            const double place[] = {x - cube / 2 + particles[i].x, y - cube / 2 + particles[i].y,
                                    z - cube / 2 + depth(i)};
            for (const auto& g : gaussians) {
              double squares = 0;
              for (std::size_t r = 0; r < 3; ++r)
                squares += std::pow(place[r] - (A[r][0] * g.x + A[r][1] * g.y + A[r][2] * g.z), 2);
              sum += g.amplitude * std::exp(-squares / (2 * g.deviation * g.deviation));
            }
            values.push_back(sum);
          }
      write_map(folder / ("v" + std::to_string(i) + ".mrc"), measured(values, c), cube);
    }
  }
  /// C as RELION writes it: a cube with k at its centre minus k, or its half as of an FFT.
  void write_measured(const std::string& name, const Measured& c, bool whole) const {
    const int columns = whole ? cube : cube / 2 + 1;
    std::vector<float> values;
    for (int z = 0; z < cube; ++z)
      for (int y = 0; y < cube; ++y)
        for (int x = 0; x < columns; ++x)
          values.push_back(static_cast<float>(whole ? c(cube / 2 - x, cube / 2 - y, cube / 2 - z)
                                                    : c(x, frequency_of(y), frequency_of(z))));
    write_volume(folder / name, values, {columns, cube, cube},
                 {.pixel_size = pixel_size, .may_be_constant = true});
  }
  std::string star(const std::string& ctf, const Columns& optics = {}) const {
    std::string text = star_text(particles, cube);
    const auto with = [&](const std::string& name, const auto& value) {
      text = particles_with(text, name, value);
    };
    with("rlnImageName", [](std::size_t i) { return "v" + std::to_string(i) + ".mrc"; });
    with("rlnOriginZAngst", [&](std::size_t i) { return std::to_string(pixel_size * depth(i)); });
    if (!ctf.empty())
      with("rlnCtfImage", [&](std::size_t) { return ctf; });
    Columns all{{"rlnImageSize", std::to_string(cube)}, {"rlnImageDimensionality", "3"}};
    all.insert(all.end(), optics.begin(), optics.end());
    return optics_with(text, all);
  }
  Judgement judge(const std::string& star_file, const std::string& options = "") const {
    write_text(folder / "p.star", star_file);
    run_well(folder, reconstruct + " --overwrite --star p.star --out r.mrc --reference map.mrc " + options);
    const auto correlation = read_correlations(folder / "r_fsc.txt", 1);
    return {*std::min_element(correlation.begin() + 2, correlation.begin() + 3 * cube / 8 + 1),
            error_in_sphere(MrcReader(folder / "r.mrc").read_volume(), map, cube)};
  }
};

} // namespace

TEST_CASE("subtomograms are averaged by what of them was measured") {
  const TomogramScene scene;
  const auto well = [](const Judgement& found) {
    INFO("correlation " << found.correlation << ", error " << found.error);
    CHECK(found.correlation > 0.99);
    CHECK(found.error < 0.07);
  };
  // Mild, lest it spreads particles beyond the box. No mirror plane: a wrong axis or sign of the file counts what was not measured.
  const Measured contrast = [](int x, int y, int z) {
    return std::cos(0.05 * (x * x + 0.5 * y * y + 0.7 * z * z + x * y - 0.6 * y * z));
  };
  const Measured tilted = wedge(-35, 65), c = wedge(-35, 65, contrast);
  scene.make(c);
  scene.write_measured("whole.mrc", c, true);
  scene.write_measured("half.mrc", c, false);
  well(scene.judge(scene.star("whole.mrc")));
  well(scene.judge(scene.star("half.mrc")));
  scene.write_measured(
      "mirrored.mrc", [&](int x, int y, int z) { return c(x, y, -z); }, true);
  CHECK(scene.judge(scene.star("mirrored.mrc")).error > 0.2);

  const Columns multiplied{{"rlnCtfDataAreCtfPremultiplied", "1"}};
  const Measured squared = [&](int x, int y, int z) { return c(x, y, z) * c(x, y, z); };
  scene.make(squared);
  scene.write_measured("squared.mrc", squared, false);
  well(scene.judge(scene.star("squared.mrc", multiplied)));

  scene.make(tilted);
  well(scene.judge(scene.star(""), "--tilt-range -35 65"));
  well(scene.judge(scene.star(""), "--tilt-range -35 65 --normalise --kernel bspline3"));
  const double other = scene.judge(scene.star(""), "--tilt-range -65 35").error;
  const double all = scene.judge(scene.star(""), "--tilt-range -90 90").error;
  INFO(other << ", " << all);
  CHECK(other > 0.1);
  CHECK(all > 0.1);
}

TEST_CASE("what is wrong with subtomograms is told", "[hosts]") {
  const TomogramScene scene;
  scene.make(wedge(-60, 60));
  scene.write_measured("c.mrc", wedge(-60, 60), false);
  write_volume(scene.folder / "twice.mrc", std::vector<float>(9 * 16 * 32, 1.0f), {9, 16, 32},
               {.may_be_constant = true});
  write_volume(scene.folder / "small.mrc", std::vector<float>(8 * 8 * 8, 1.0f), {8, 8, 8},
               {.may_be_constant = true});
  write_volume(scene.folder / "below.mrc", std::vector<float>(9 * 16 * 16, -0.5f), {9, 16, 16},
               {.may_be_constant = true});
  const auto bad = [&](const std::string& star, const std::string& options,
                       const std::vector<std::string>& words, const std::string& program = reconstruct) {
    write_text(scene.folder / "b.star", star);
    expect_bad_input(scene.folder, program + " --star b.star " + options, words);
  };
  const std::string star = scene.star("c.mrc"), bare = scene.star("");
  const std::string out = "--out n.mrc ";
  bad(bare, out, {"b.star", "rlnCtfImage", "--tilt-range LEAST MOST"});
  bad(star, out + "--tilt-range -60 60", {"has rlnCtfImage", "--tilt-range does not go with it"});
  bad(bare, out + "--tilt-range 60 -60", {"--tilt-range: expected two rising angles", "60 and -60"});
  bad(star, out + "--ewald", {"subtomograms", "--ewald"});
  bad(star, out + "--no-ctf", {"subtomograms", "--no-ctf"});
  bad(scene.star("none.mrc"), out, {"row 1", "rlnCtfImage", "none.mrc"});
  bad(scene.star("twice.mrc"), out, {"row 1", "twice.mrc", "multiplicities", "--stack2d"});
  bad(scene.star("small.mrc"), out, {"small.mrc", "expected 16 x 16 x 16 or 9 x 16 x 16", "8 x 8 x 8"});
  bad(scene.star("below.mrc", {{"rlnCtfDataAreCtfPremultiplied", "1"}}), out, {"below.mrc", "CTF^2", "-0.5"});
  const auto named = [&](const std::string& name) {
    return particles_with(star, "rlnImageName",
                          [&](std::size_t i) { return i == 3 ? name : "v" + std::to_string(i) + ".mrc"; });
  };
  bad(named("small.mrc"), out, {"row 4", "small.mrc", "16 x 16 x 16 voxels", "8 x 8 x 8"});
  bad(named("1@v3.mrc"), out, {"row 4", "the file of a subtomogram", "1@v3.mrc"});
  bad(star, "--out n.star", {"subtomograms", "bracewell-reconstruct averages"}, refine);
  write_text(scene.folder / "images.star", star_text(scene.particles, cube, "v0.mrc"));
  expect_bad_input(scene.folder, reconstruct + " --star images.star --out n.mrc --tilt-range -60 60",
                   {"images.star"});
}
