// SPDX-License-Identifier: MIT
#include "support.hpp"

using namespace DriverTest;

namespace {

const std::string project = BRACEWELL_PROJECT;

/// A smooth map and particles in a folder.
struct Scene {
  TemporaryFolder folder;
  int box;
  std::vector<Gaussian> gaussians;
  std::vector<Particle> particles;

  explicit Scene(int size, int count = 5)
      : box(size), gaussians(random_gaussians(12, size / 5.0, 2)), particles(random_particles(count, 2.5)) {
    write_map(folder / "map.mrc", gaussian_map(gaussians, box), box);
    write_text(folder / "poses.star", star_text(particles, box));
  }

  Stack images(const std::string& options, const std::string& out = "out.mrcs") const {
    run_well(folder, project + " --map map.mrc --star poses.star --out " + out + " " + options);
    return read_stack(folder / out);
  }
};

/// The image times RELION's CTF, by sums.
std::vector<float> with_ctf(const std::vector<float>& image, int n, const Particle& p) {
  return filtered(image, n, [&p](double u, double v) { return relion_ctf(p, u, v); });
}

} // namespace

TEST_CASE("projections of Gaussians are their line integrals, for even and odd boxes") {
  for (const int box : {40, 41}) {
    const Scene scene(box);
    const auto truth = gaussian_projections(scene.gaussians, scene.particles, box);
    CAPTURE(box);
    CHECK(relative_error(scene.images("").values, truth) < 3e-3);
    CHECK(relative_error(scene.images("--kernel bspline3").values, truth) < 1e-3);
    CHECK(relative_error(scene.images("--kernel linear").values, truth) < 2e-2);
    CHECK(relative_error(scene.images("--kernel linear --correction radial").values, truth) < 2e-2);
    CHECK(relative_error(scene.images("--oversampling 1.5").values, truth) < 1e-2);
    CHECK(relative_error(scene.images("--kernel bspline3 --correction none").values, truth) > 5e-2);
  }
}

TEST_CASE("--ctf multiplies by the contrast transfer function") {
  const Scene scene(24, 2);
  const Stack plain = scene.images(""), modulated = scene.images("--ctf");
  const std::size_t pixels = 24 * 24;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto part = [&](const Stack& stack) {
      const auto begin = stack.values.begin() + static_cast<std::ptrdiff_t>(i * pixels);
      return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(pixels));
    };
    CHECK(relative_error(part(modulated), with_ctf(part(plain), 24, scene.particles[i])) < 2e-5);
  }
}

TEST_CASE("--noise has the ratio asked for and depends on the seed alone") {
  const Scene scene(32, 60);
  const Stack clean = scene.images("--ctf");
  const Stack noisy = scene.images("--ctf --noise 0.2 --seed 3", "a.mrcs");
  CHECK(scene.images("--ctf --noise 0.2 --seed 3 --batch 7", "b.mrcs").values == noisy.values);
  CHECK(scene.images("--ctf --noise 0.2 --seed 4", "c.mrcs").values != noisy.values);
  double signal = 0, noise = 0;
  for (int p = 0; p < clean.count; ++p) {
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < 32 * 32; ++i) {
      const std::size_t at = static_cast<std::size_t>(p) * 32 * 32 + i;
      mean += clean.values[at] / (32.0 * 32);
      square += double(clean.values[at]) * clean.values[at] / (32.0 * 32);
      noise += std::pow(double(noisy.values[at]) - clean.values[at], 2);
    }
    signal += (square - mean * mean) * 32 * 32;
  }
  CHECK(std::abs(signal / noise / 0.2 - 1) < 0.03);
}

TEST_CASE("images are the same for every batch size and number of threads") {
  const Scene scene(32, 11);
  const Stack images = scene.images("");
  CHECK(images.count == 11);
  CHECK(scene.images("--batch 4", "b.mrcs").values == images.values);
  run_well(scene.folder, "OMP_NUM_THREADS=1 " + project + " --map map.mrc --star poses.star --out c.mrcs");
  CHECK(read_stack(scene.folder / "c.mrcs").values == images.values);
}

TEST_CASE("the STAR file beside the stack names its images and is read again", "[hosts]") {
  const Scene scene(24, 3);
  scene.images("");
  CHECK(read_text(scene.folder / "out.star").find("000003@out.mrcs") != std::string::npos);
  run_well(scene.folder, project + " --map map.mrc --star out.star --out again.mrcs");
  CHECK(read_stack(scene.folder / "again.mrcs").values == read_stack(scene.folder / "out.mrcs").values);
}

TEST_CASE("--help names every option", "[hosts]") {
  const TemporaryFolder folder;
  const std::string help = run_well(folder, project + " --help");
  for (const char* option : {"--map", "--star", "--out", "--ctf", "--noise", "--seed", "--kernel",
                             "--oversampling", "--correction", "--pixel-size", "--batch", "--version"})
    CHECK(help.find(option) != std::string::npos);
}

TEST_CASE("bad usage and bad input end with one message, code 2 and no output", "[hosts]") {
  const Scene scene(24, 3);
  const auto& folder = scene.folder;
  const std::string good = project + " --map map.mrc --star poses.star --out out.mrcs ";
  expect_bad_input(folder, project + " --map map.mrc --star poses.star", {"--out"});
  expect_bad_input(folder, good + "--kernel cubic", {"--kernel", "cubic"});
  expect_bad_input(folder, good + "--oversampling 0.5", {"--oversampling"});
  expect_bad_input(folder, good + "--correction radial", {"--correction", "linear"});
  expect_bad_input(folder, good + "--noise -1", {"--noise"});
  expect_bad_input(folder, good + "--batch -1", {"--batch"});
  expect_bad_input(folder, project + " --map map.mrc --star poses.star --out poses.mrcs",
                   {"poses.star", "overwrite"});
  expect_bad_input(folder, project + " --map map.mrc --star poses.star --out nowhere/out.mrcs", {"nowhere"});
  expect_bad_input(folder, project + " --map none.mrc --star poses.star --out out.mrcs", {"none.mrc"});

  const auto with_map = [&](const Bytes& bytes, const std::vector<std::string>& words) {
    write_bytes(folder / "bad.mrc", bytes);
    expect_bad_input(folder, project + " --map bad.mrc --star poses.star --out out.mrcs", words);
  };
  const Bytes map = read_bytes(folder / "map.mrc");
  Bytes bad(map.begin(), map.end() - 100);
  with_map(bad, {"bad.mrc", "truncated"});
  bad = map;
  bad[12] = 4; // complex
  with_map(bad, {"bad.mrc", "mode 4"});
  bad = map;
  for (int i = 0; i < 4; ++i)
    bad[1024 + 40 + static_cast<std::size_t>(i)] = 0xff; // NaN
  with_map(bad, {"bad.mrc", "not finite"});
  bad = map;
  bad[2] = bad[6] = bad[10] = 0x7f; // sizes of millions
  with_map(bad, {"bad.mrc"});

  const auto with_star = [&](const std::string& text, const std::string& options,
                             const std::vector<std::string>& words) {
    write_text(folder / "bad.star", text);
    expect_bad_input(folder, project + " --map map.mrc --star bad.star --out out.mrcs " + options, words);
  };
  const std::string star = star_text(scene.particles, 24);
  const auto without = [](std::string text, const std::string& name) {
    return text.replace(text.find(name), name.size(), "rlnSomethingElse");
  };
  with_star(without(star, "rlnAngleTilt"), "", {"bad.star", "rlnAngleTilt"});
  with_star(without(star, "rlnDefocusU"), "--ctf", {"bad.star", "rlnDefocusU"});
  with_star(without(star, "rlnVoltage"), "--ctf", {"bad.star", "rlnVoltage"});
  with_star(star_text({}, 24), "", {"bad.star", "no particles"});
  with_star(star + "1 2 3\n", "", {"bad.star", "row 4"});
  with_star("not a STAR file", "", {"bad.star"});
}
