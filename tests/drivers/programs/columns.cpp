// SPDX-License-Identifier: MIT
// Columns of STAR files that change the physics are used, or named in a warning.
#include "support.hpp"

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

TEST_CASE("--pixel-size reaches the STAR file") {
  const Scene scene(16, 4);
  run_well(scene.folder, project + " --map map.mrc --star particles.star --pixel-size 4.25 --out out.mrcs");
  CHECK(read_text(scene.folder / "out.star").find(" 4.250000 ") != std::string::npos);
  CHECK(MrcReader(scene.folder / "out.mrcs").header().voxel_size[0] == 4.25);
  run_well(scene.folder, refine +
                             " --map map.mrc --star particles.star --no-ctf --iterations 1 --pixel-size 4.25 "
                             "--out refined.star");
  CHECK(read_text(scene.folder / "refined.star").find(" 4.250000 ") != std::string::npos);
}

TEST_CASE("the output of refine can be reconstructed from another folder") {
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

TEST_CASE("a name without its image in a stack of many is an error") {
  const Scene scene(16, 4);
  std::string star = scene.star();
  star.replace(star.find(" 3@"), 3, " ");
  write_text(scene.folder / "bad.star", star);
  expect_bad_input(scene.folder, reconstruct + " --star bad.star --out map2.mrc",
                   {"bad.star", "row 3", "INDEX@STACK", "4 images"});
}

TEST_CASE("optics groups of different pixel sizes are refused with the way out, but for a reconstruction") {
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

TEST_CASE("--class selects particles, without it a mixture is a warning") {
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

TEST_CASE("another rlnImageSize is a warning, and images of three dimensions are an error") {
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
  expect_bad_input(scene.folder, command + "volumes.star", {"rlnImageDimensionality", "expected 2"});
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
  const Outcome refined =
      run(scene.folder, refine + " --map map.mrc --star images2.star --iterations 1 --out refined.star");
  CHECK(refined.err.find("rlnMagMat00") != std::string::npos);
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

TEST_CASE("aberrations that no contrast transfer goes with are named in warnings") {
  const Scene scene(16, 60);
  write_text(scene.folder / "bare.star", without(scene.with_optics(aberrations), "rlnDefocusU"));
  const Outcome outcome = run(scene.folder, reconstruct + " --star bare.star --out out.mrc");
  CHECK(outcome.code == 0);
  for (const auto& [name, value] : aberrations)
    CHECK(outcome.err.find("has " + name + " but no contrast transfer") != std::string::npos);
  expect_bad_input(scene.folder, reconstruct + " --star bare.star --strict --out out2.mrc",
                   {"rlnBeamTiltX", "--strict"});
}
