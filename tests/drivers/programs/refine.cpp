// SPDX-License-Identifier: MIT
// bracewell-refine: half sets that are kept apart, the radius by their correlation, runs that go on after an
// interruption. Poses against a known map are in examples/bracewell-refine/tests.
#include "support.hpp"

#include "common/hdf5.hpp"
#include "common/star.hpp"

using namespace DriverTest;

namespace {

/// One thread: sums over particles are the same in every run.
const std::string one_thread = "env OMP_NUM_THREADS=1 ",
                  refine = one_thread + BRACEWELL_REFINE + " --star particles.star --no-ctf",
                  reconstruct = one_thread + BRACEWELL_RECONSTRUCT + " --no-ctf";

/// Projections of Gaussians in closed form, with poses that are off by 4 degrees about each axis and a pixel.
struct Scene {
  TemporaryFolder folder;
  int box;
  std::vector<float> map;
  std::vector<Particle> truth;

  explicit Scene(int size = 24, int count = 144) : box(size), truth(random_particles(count, 1)) {
    const auto gaussians = random_gaussians(10, box / 5.0, 1.5);
    map = gaussian_map(gaussians, box);
    write_map(folder / "truth.mrc", map, box);
    write_stack(folder / "images.mrcs", gaussian_projections(gaussians, truth, box), box, box);
    auto particles = truth;
    for (std::size_t i = 0; i < particles.size(); ++i) {
      const auto sign = [i](std::size_t every) {
        return i / every % 2 ? 1 : -1;
      }; // as often in both half sets
      particles[i].rot += 4 * sign(2);
      particles[i].tilt += 4 * sign(4);
      particles[i].x += sign(8);
    }
    write_text(folder / "particles.star", star_text(particles, box, "images.mrcs"));
  }

  std::vector<float> volume(const std::string& name) const { return MrcReader(folder / name).read_volume(); }

  /// Median angle between the poses of a file and the true ones, degrees.
  double error(const std::string& star) const {
    const Particles found = read_particles(folder / star, {.images = false});
    std::vector<double> angles;
    for (std::size_t i = 0; i < truth.size(); ++i)
      angles.push_back(angle_between(pose_in(found, i), truth[i]));
    std::ranges::sort(angles);
    return angles[angles.size() / 2];
  }

  /// Share of the poses of a file that are so close to the true ones.
  double share_within(double degrees, double pixels, const std::string& star) const {
    return share_of_close_poses(
        read_particles(folder / star, {.images = false}), [&](std::size_t i) { return truth[i]; }, degrees,
        pixels);
  }
};

/// Lines of a text that are no comments.
std::vector<std::string> lines(const fs::path& path) {
  std::vector<std::string> all;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);)
    if (!line.starts_with('#'))
      all.push_back(line);
  return all;
}

void remove_column_of_halves(const Scene& scene) {
  StarDocument document = read_star(scene.folder / "particles.star");
  document.find("particles")->remove_columns(std::array<std::string_view, 1>{"rlnRandomSubset"});
  write_star(scene.folder / "particles.star", document);
}

void remove_poses(const Scene& scene) {
  StarDocument document = read_star(scene.folder / "particles.star");
  document.find("particles")
      ->remove_columns(std::array<std::string_view, 5>{"rlnAngleRot", "rlnAngleTilt", "rlnAnglePsi",
                                                       "rlnOriginXAngst", "rlnOriginYAngst"});
  write_star(scene.folder / "particles.star", document);
}

} // namespace

TEST_CASE("refine goes from particles with perturbed poses to better poses and better half maps") {
  const Scene scene;
  run_well(scene.folder, refine + " --rounds 3 --out refined.star");
  run_well(scene.folder, reconstruct + " --star particles.star --out start.mrc");
  const double before = scene.error("particles.star"), after = scene.error("refined.star");
  CAPTURE(before, after);
  CHECK(before > 4);
  CHECK(after < 0.5 * before);
  for (const std::string half : {"_half1.mrc", "_half2.mrc"}) {
    const double error_before = error_in_sphere(scene.volume("start" + half), scene.map, scene.box),
                 error_after = error_in_sphere(scene.volume("refined" + half), scene.map, scene.box);
    CAPTURE(half, error_before, error_after);
    CHECK(error_after < 0.85 * error_before);
  }
}

TEST_CASE("the poses of a half set do not depend on the images of the other one") {
  const Scene scene;
  // References of a round of their own; those that are reconstructed share the signal's power per shell.
  run_well(scene.folder, reconstruct + " --star particles.star --out start.mrc");
  const std::string command =
      refine + " --map start_half1.mrc start_half2.mrc --radius 9 --reproducible --out ";
  run_well(scene.folder, command + "a.star");
  Stack stack = read_stack(scene.folder / "images.mrcs");
  std::mt19937 generator(7);
  for (std::size_t image = 1; image < 144; image += 2) // the second half set
    for (std::size_t i = 0; i < 24 * 24; ++i)
      stack.values[image * 24 * 24 + i] += static_cast<float>(0.1 * generator() / 4294967296.0);
  write_stack(scene.folder / "images.mrcs", stack.values, 24, 24);
  run_well(scene.folder, command + "b.star");
  CHECK(scene.volume("a_half2.mrc") != scene.volume("b_half2.mrc"));
  const Particles a = read_particles(scene.folder / "a.star"), b = read_particles(scene.folder / "b.star");
  for (std::size_t i = 0; i < a.count; i += 2) {
    CHECK(a.rot[i] == b.rot[i]);
    CHECK(a.origin_x[i] == b.origin_x[i]);
  }
}

TEST_CASE("each half set is compared with its own map of two") {
  const Scene scene;
  // The second map is turned about z, and so are the poses that fit it.
  constexpr double degrees = 2;
  auto gaussians = random_gaussians(10, scene.box / 5.0, 1.5);
  const double c = std::cos(degrees * std::numbers::pi / 180), s = std::sin(degrees * std::numbers::pi / 180);
  for (auto& one : gaussians) {
    const double x = one.x;
    one.x = c * x - s * one.y;
    one.y = s * x + c * one.y;
  }
  write_map(scene.folder / "turned.mrc", gaussian_map(gaussians, scene.box), scene.box);
  run_well(scene.folder, refine + " --radius 12 --map truth.mrc turned.mrc --out refined.star");
  const Particles found = read_particles(scene.folder / "refined.star");
  for (std::size_t i = 0; i < found.count; ++i) {
    auto expected = scene.truth[i];
    expected.rot += i % 2 == 0 ? 0 : degrees;
    CHECK(angle_between(pose_in(found, i), expected) < 0.6);
  }
}

TEST_CASE("half sets that the file lacks alternate, are written out, and that is said") {
  const Scene scene;
  remove_column_of_halves(scene);
  const Outcome outcome = run(scene.folder, refine + " --out refined.star");
  CHECK(outcome.code == 0);
  CHECK(outcome.err.find("warning: particles.star: has no half sets (rlnRandomSubset): odd and even rows") !=
        std::string::npos);
  const Particles refined = read_particles(scene.folder / "refined.star");
  REQUIRE(refined.random_subset.present());
  for (std::size_t i = 0; i < refined.count; ++i)
    CHECK(refined.random_subset[i] == 1 + static_cast<std::int64_t>(i % 2));
}

TEST_CASE("refine writes half maps and their correlation as a reconstruction of its particles has them") {
  const Scene scene;
  // Pixels of the scene's STAR file, and the sphere that fits the box.
  const std::string mask = " --mask-diameter " + std::to_string(24 * pixel_size);
  run_well(scene.folder, refine + mask + " --rounds 1 --out refined.star --pictures svg");
  run_well(scene.folder, reconstruct + mask + " --star refined.star --out again.mrc --pictures pdf");
  for (const std::string half : {"_half1.mrc", "_half2.mrc"})
    CHECK(relative_error(scene.volume("refined" + half), scene.volume("again" + half)) < 1e-4);
  const auto correlation = read_correlations(scene.folder / "refined_fsc.txt", 0),
             expected = read_correlations(scene.folder / "again_fsc.txt", 0);
  REQUIRE(correlation.size() == 12);
  // Beyond there is little signal, and the constant around the molecule counts, which refine alone subtracts.
  for (std::size_t shell = 0; shell < 8; ++shell)
    CHECK(std::abs(correlation[shell] - expected[shell]) < 1e-3);
  CHECK(files_in(scene.folder) ==
        std::vector<std::string>{
            "again.mrc", "again_directions.pdf", "again_directions.txt", "again_fsc.pdf", "again_fsc.txt",
            "again_half1.mrc", "again_half2.mrc", "again_local_resolution.mrc", "again_sharpened.mrc",
            "again_slices.pdf", "again_summary.pdf", "images.mrcs", "particles.star", "refined.star",
            "refined_fsc.svg", "refined_fsc.txt", "refined_half1.mrc", "refined_half2.mrc", "truth.mrc"});
}

TEST_CASE("the radius follows the correlation of the half maps, given or reconstructed") {
  const Scene scene;
  // Maps that agree up to shell 5: noise replaces what lies beyond.
  const auto filtered = [&](unsigned seed) {
    std::mt19937 generator(seed);
    std::vector<float> noise;
    for (int i = 0; i < 24 * 24 * 24; ++i)
      noise.push_back(static_cast<float>(generator() / 4294967296.0 - 0.5));
    return noise;
  };
  auto one = filtered(1), other = filtered(2);
  // exp(-|x|^2 / (2 s^2)) has exp(-(k / 12)^2 (pi s)^2 / 2): common below, lost in the noise above.
  const auto common = gaussian_map({{0, 0, 0, 1.6, 60}}, 24);
  for (std::size_t i = 0; i < common.size(); ++i)
    one[i] += common[i], other[i] += common[i];
  write_map(scene.folder / "one.mrc", one, 24);
  write_map(scene.folder / "other.mrc", other, 24);
  const Outcome outcome =
      run(scene.folder, refine + " --map one.mrc other.mrc --iterations 1 --out refined.star");
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  // Where the common part has 1 / 6 of the noise's power, of which the shells of both maps have the same.
  const double noise_power = 24 * 24 * 24 / 12.0;
  int expected = 0;
  while (std::pow(60 * std::pow(2 * std::numbers::pi, 1.5) * std::pow(1.6, 3), 2) *
             std::exp(-std::pow(2 * std::numbers::pi * (expected + 1) * 1.6 / 24, 2)) >
         noise_power / 6)
    ++expected;
  CHECK(expected > 3);
  CHECK(expected < 11);
  const double found = std::stod(outcome.out.substr(outcome.out.find("up to ") + 6));
  CHECK(std::abs(found - expected) <= 1);
}

TEST_CASE("one map for both half sets is used, with a warning, and an error where nothing may be assumed",
          "[hosts]") {
  const Scene scene;
  const std::string command = refine + " --map truth.mrc --radius 12 --out refined.star";
  const Outcome outcome = run(scene.folder, command);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.find("warning: truth.mrc: is the reference of both half sets") != std::string::npos);
  CHECK(read_text(scene.folder / "refined.star").find("assumed: truth.mrc: is the reference") !=
        std::string::npos);
  CHECK(scene.error("refined.star") < 0.1);
  expect_bad_input(scene.folder, command + " --strict", {"truth.mrc", "both half sets", "--strict"});
  // Nor under two names.
  fs::create_symlink("truth.mrc", scene.folder / "link.mrc");
  expect_bad_input(scene.folder, refine + " --map truth.mrc link.mrc --radius 12 --out refined.star --strict",
                   {"truth.mrc", "both half sets", "--strict"});
}

TEST_CASE("particles of one half set are refined against a map that is given, and else refused", "[hosts]") {
  const Scene scene;
  StarDocument document = read_star(scene.folder / "particles.star");
  document.find("particles")->set_column("rlnRandomSubset", std::vector<std::string>(144, "1"));
  write_star(scene.folder / "particles.star", document);
  expect_bad_input(scene.folder, refine + " --out refined.star",
                   {"particles.star", "expected particles in both half sets", "--map and --radius"});
  run_well(scene.folder, refine + " --map truth.mrc --radius 12 --out refined.star");
  CHECK(scene.error("refined.star") < 0.1);
  CHECK_FALSE(fs::exists(scene.folder / "refined_half1.mrc"));
}

TEST_CASE("a constant around the molecule, or another scale, is the same map") {
  const Scene scene;
  const float peak = std::ranges::max(scene.map);
  const std::string command = refine + " --radius 12 --map ";
  run_well(scene.folder, command + "truth.mrc --out refined.star");
  for (const std::string mask : {"", " --mask-diameter 60"})
    for (const float constant : {0.12f, -0.3f}) {
      auto map = scene.map;
      for (float& value : map)
        value = 7 * (value + constant * peak);
      write_map(scene.folder / "constant.mrc", map, scene.box);
      run_well(scene.folder, command + "constant.mrc --out constant.star" + mask);
      CAPTURE(mask, constant);
      CHECK(scene.error("constant.star") < scene.error("refined.star") + 0.02);
    }
}

TEST_CASE("a loss that is no number ends a refinement at once", "[.turn-4]") {
  const TemporaryFolder folder;
  constexpr int box = 64;
  const auto particles = random_particles(2, 1);
  write_stack(folder / "images.mrcs", gaussian_projections(random_gaussians(4, box / 5.0, 2), particles, box),
              box, box);
  write_text(folder / "particles.star", star_text(particles, box, "images.mrcs"));
  // A ball of values that are allowed, whose sums have squares beyond single precision.
  std::vector<float> map(std::size_t(box) * box * box);
  for (int i = 0; i < box * box * box; ++i)
    if (std::hypot(i / box / box - box / 2, i / box % box - box / 2, i % box - box / 2) < 24)
      map[std::size_t(i)] = 1e15f;
  write_map(folder / "huge.mrc", map, box);
  expect_bad_input(folder, refine + " --map huge.mrc --oversampling 1 --out refined.star",
                   {"particles.star: row 1: the loss is not a finite number"});
}

TEST_CASE("a mask may be given, of values from 0 to 1") {
  const Scene scene;
  std::vector<float> mask(scene.map.size());
  const float peak = std::ranges::max(scene.map);
  for (std::size_t i = 0; i < mask.size(); ++i)
    mask[i] = std::min(1.0f, 1000 * scene.map[i] / peak);
  write_map(scene.folder / "mask.mrc", mask, scene.box);
  const std::string command = refine + " --radius 12 --map truth.mrc --out refined.star --mask ";
  run_well(scene.folder, command + "mask.mrc");
  CHECK(scene.error("refined.star") < 0.1);
  mask[5] = 1.5f;
  write_map(scene.folder / "mask.mrc", mask, scene.box);
  expect_bad_input(scene.folder, command + "mask.mrc", {"mask.mrc: --mask: expected values from 0 to 1"});
  write_map(scene.folder / "mask.mrc", std::vector<float>(20 * 20 * 20, 1.0f), 20);
  expect_bad_input(scene.folder, command + "mask.mrc", {"mask.mrc: --mask: expected a box of 24"});
}

TEST_CASE("poses whose half maps agree better than those of refined ones are kept, and that is said") {
  const Scene scene;
  write_text(scene.folder / "particles.star", star_text(scene.truth, scene.box, "images.mrcs"));
  // Another molecule for each half set.
  write_map(scene.folder / "one.mrc", gaussian_map(random_gaussians(10, 5, 1.5, 7), 24), 24);
  write_map(scene.folder / "other.mrc", gaussian_map(random_gaussians(10, 5, 1.5, 8), 24), 24);
  const std::string command = refine + " --radius 12 --map one.mrc other.mrc --out refined.star";
  const Outcome outcome = run(scene.folder, command);
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.find("warning: particles.star: the half maps of refined poses agree less") !=
        std::string::npos);
  CHECK(scene.error("refined.star") < 1e-4);
  expect_bad_input(scene.folder, command + " --strict", {"agree less"});
}

TEST_CASE("every particle has a figure of merit, and dark ones are named", "[.turn-4]") {
  const Scene scene, few(24, 24); // of few, poses are found from nothing
  const auto negative = [](const Scene& of, std::size_t first, std::size_t step) {
    Stack stack = read_stack(of.folder / "images.mrcs");
    for (std::size_t image = first; image < of.truth.size(); image += step)
      for (std::size_t i = 0; i < 24 * 24; ++i)
        stack.values[image * 24 * 24 + i] *= -1;
    write_stack(of.folder / "images.mrcs", stack.values, 24, 24);
  };
  const auto merits = [&](const char* star) {
    const StarDocument document = read_star(scene.folder / star);
    const StarTable& table = *document.find("particles");
    std::vector<double> values;
    for (std::size_t row = 0; row < table.rows(); ++row)
      values.push_back(std::stod(table.value(row, table.find("rlnParticleFigureOfMerit").value())));
    return values;
  };
  negative(scene, 4, 40); // rows 5, 45, 85, 125
  const std::string command = refine + " --radius 12 --map truth.mrc --out ";
  const Outcome some = run(scene.folder, command + "some.star");
  INFO(some.err);
  CHECK(some.err.find("4 particles that fit with inverted contrast, rows 5, 45, 85 and 1 more") !=
        std::string::npos);
  const auto values = merits("some.star");
  for (std::size_t i = 0; i < 144; ++i) {
    const double expected = i % 40 == 4 ? -1 : 1; // images without noise
    CHECK(std::abs(values[i] - expected) < 0.1);
  }
  negative(few, 0, 1); // all
  for (const std::string global : {"", " --global"}) {
    const Outcome all = run(few.folder, command + "all.star" + global);
    INFO(all.err);
    CHECK(all.code == 0);
    CHECK(all.err.find("dark particles?") != std::string::npos);
  }
  negative(few, 0, 1);
  const Outcome bright = run(few.folder, command + "bright.star --global");
  CHECK(bright.code == 0);
  CHECK(bright.err.find("dark") == std::string::npos);
}

TEST_CASE("half maps have the symmetry that is asked for, and poses are searched within it", "[.turn-4]") {
  const Scene scene;
  run_well(scene.folder, refine + " --symmetry C2 --rounds 1 --out refined.star");
  const auto map = scene.volume("refined_half1.mrc");
  auto turned = map; // by 180 degrees about z through voxel 12; what has no partner in the box stays
  for (std::size_t z = 0; z < 24; ++z)
    for (std::size_t y = 1; y < 24; ++y)
      for (std::size_t x = 1; x < 24; ++x)
        turned[(z * 24 + y) * 24 + x] = map[(z * 24 + 24 - y) * 24 + 24 - x];
  CHECK(error_in_sphere(turned, map, 24) < 1e-3);
  expect_bad_input(scene.folder, refine + " --symmetry Q4 --out refined.star", {"--symmetry", "found Q4"});

  // Two copies of the molecule: any of two poses is right.
  auto gaussians = random_gaussians(10, 24 / 5.0, 1.5);
  for (std::size_t i = 0; i < 10; ++i) {
    auto copy = gaussians[i];
    copy.x = -copy.x, copy.y = -copy.y;
    gaussians.push_back(copy);
  }
  write_map(scene.folder / "twice.mrc", gaussian_map(gaussians, 24), 24);
  write_stack(scene.folder / "images.mrcs", gaussian_projections(gaussians, scene.truth, 24), 24, 24);
  const Outcome outcome =
      run(scene.folder, refine + " --global --symmetry C2 --radius 12 --map twice.mrc --out found.star");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const Particles found = read_particles(scene.folder / "found.star", {.images = false});
  std::size_t close = 0;
  for (std::size_t i = 0; i < found.count; ++i) {
    auto other = scene.truth[i];
    other.rot += 180;
    const auto pose = pose_in(found, i);
    close += std::min(angle_between(pose, scene.truth[i]), angle_between(pose, other)) < 1;
  }
  CHECK(close >= 0.95 * static_cast<double>(found.count));
}

TEST_CASE("segments of a helix are refined against half maps with its rise and twist") {
  // Gaussians on a right-handed helix beyond the box: 2.2 pixels and 50 degrees from one to the next.
  std::vector<Gaussian> helix;
  for (int h = -14; h <= 14; ++h) {
    const double angle = 50 * h * std::numbers::pi / 180;
    helix.push_back({6 * std::cos(angle), 6 * std::sin(angle), 2.2 * h, 1.5, 1});
    helix.push_back({3 * std::cos(angle + 1), 3 * std::sin(angle + 1), 2.2 * h + 0.7, 1.5, 0.5});
  }
  Scene scene(32, 24);
  for (auto& segment : scene.truth)
    segment.tilt = 90;
  write_stack(scene.folder / "images.mrcs", gaussian_projections(helix, scene.truth, 32), 32, 32);
  auto start = scene.truth;
  for (std::size_t i = 0; i < start.size(); ++i)
    start[i].rot += i / 2 % 2 ? 4 : -4, start[i].psi += i / 4 % 2 ? 3 : -3;
  write_text(scene.folder / "particles.star", star_text(start, 32, "images.mrcs"));

  run_well(scene.folder, refine + " --helical-rise 6.6 --helical-twist 50 --rounds 2 --out refined.star");
  const double before = scene.error("particles.star"), after = scene.error("refined.star");
  CAPTURE(before, after);
  CHECK(before > 4);
  CHECK(after < 0.5 * before);
  expect_bad_input(scene.folder, refine + " --helical-rise 6.6 --out refined.star", {"--helical-twist"});
}

TEST_CASE("poses are found from nothing, whatever the file says of them", "[.turn-4]") {
  const Scene scene(24, 72); // what the search costs goes by their number
  remove_poses(scene);
  const std::string command = refine + " --global --radius 12 --map truth.mrc ";
  run_well(scene.folder, command + "--out found.star");
  CHECK(scene.share_within(3, 1, "found.star") >= 0.95);
  CHECK(scene.error("found.star") < 0.1);
  run_well(scene.folder, command + "--rounds 2 --shift-range 3 --out again.star");
  CHECK(scene.share_within(3, 1, "again.star") >= 0.95);

  const Outcome cut = run(scene.folder, ended_after("part_checkpoint.h5", 3) + command +
                                            "--batch 10 --checkpoint-every 0 --out part.star");
  INFO(cut.err);
  REQUIRE(cut.code == 128 + SIGTERM);
  run_well(scene.folder, command + "--batch 10 --checkpoint-every 0 --resume --out part.star");
  CHECK(lines(scene.folder / "part.star") == lines(scene.folder / "found.star"));
}

TEST_CASE("a search from nothing needs a map, and memory", "[.turn-4]") {
  const Scene scene;
  expect_bad_input(scene.folder, refine + " --global --out found.star",
                   {"--global: expected a reference, --map, found none"});
  expect_bad_input(scene.folder, refine + " --map truth.mrc --shift-range 3 --out found.star",
                   {"--shift-range", "--global"});
  remove_poses(scene);
  expect_bad_input(scene.folder, refine + " --map truth.mrc --radius 12 --out found.star",
                   {"column rlnAngleRot is missing"});
  const std::string command = refine + " --global --map truth.mrc --radius 12 --out found.star";
  expect_bad_input(scene.folder, command + " --shift-range 13",
                   {"--shift-range: expected 0 to 12 pixels, found 13"});
  // What a program has in memory differs from machine to machine; the search takes more than 10 MB beside it.
  std::string last;
  for (int limit = 10;; limit += 5) {
    REQUIRE(limit < 1000);
    const Outcome outcome = run(scene.folder, command + " --memory-limit " + std::to_string(limit));
    if (outcome.code == 0)
      break;
    CHECK(outcome.code == 2);
    last = outcome.err;
  }
  CHECK(last.find(" orientations needs ") != std::string::npos);
}

TEST_CASE("a refinement that was interrupted goes on to the same result", "[.turn-4]") {
  const Scene scene;
  const std::string magnified = refine + " --refine-magnification",
                    command = magnified + " --rounds 3 --batch=10 --reproducible --checkpoint-every 0 --out ";
  run_well(scene.folder, command + "whole.star");
  for (const int round : {0, 1}) { // of 16 batches
    const Outcome cut =
        run(scene.folder, ended_after("part_checkpoint.h5", 16 * round + 3) + command + "part.star");
    INFO(cut.err);
    REQUIRE(cut.code == 128 + SIGTERM);
    REQUIRE(Hdf5Reader(scene.folder / "part_checkpoint.h5").read_scalar<std::int64_t>("/round") == round);
    CHECK_FALSE(fs::exists(scene.folder / "part_half1.mrc"));
    // The checkpoint is not lost by beginning anew, and not taken for another run.
    expect_bad_input(scene.folder, command + "part.star", {"part_checkpoint.h5", "use --resume"});
    expect_bad_input(scene.folder, command + "part.star --resume --radius 5",
                     {"part_checkpoint.h5: --resume: was made without --radius 5"});
    expect_bad_input(scene.folder,
                     magnified + " --rounds 4 --batch 11 --reproducible --resume --out part.star",
                     {"part_checkpoint.h5: --resume: was made with --batch 10, not --batch 11"});
    run_well(scene.folder, command + "part.star --resume");
    CHECK_FALSE(fs::exists(scene.folder / "part_checkpoint.h5"));
    CHECK(lines(scene.folder / "part.star") == lines(scene.folder / "whole.star"));
    CHECK(lines(scene.folder / "part_fsc.txt") == lines(scene.folder / "whole_fsc.txt"));
    for (const std::string half : {"_half1.mrc", "_half2.mrc"})
      CHECK(scene.volume("part" + half) == scene.volume("whole" + half));
    for (const char* ending : {".star", "_fsc.txt", "_fsc.png", "_half1.mrc", "_half2.mrc"})
      fs::remove(scene.folder / ("part" + std::string(ending)));
  }
}

TEST_CASE("refine resumes from nothing but a sound checkpoint of the same particles", "[hosts]") {
  const Scene scene;
  const std::string command = refine + " --rounds 3 --batch 10 --checkpoint-every 0 --out part.star";
  expect_bad_input(scene.folder, command + " --resume", {"part_checkpoint.h5: is not there"});
  write_text(scene.folder / "part_checkpoint.h5", "no HDF5");
  expect_bad_input(scene.folder, command + " --resume", {"part_checkpoint.h5"});
  expect_bad_input(scene.folder, command, {"part_checkpoint.h5: is there"});
  fs::remove(scene.folder / "part_checkpoint.h5");
  REQUIRE(run(scene.folder, ended_after("part_checkpoint.h5", 1) + command).code == 128 + SIGTERM);
  write_text(scene.folder / "particles.star", read_text(scene.folder / "particles.star") + "\n");
  expect_bad_input(scene.folder, command + " --resume",
                   {"part_checkpoint.h5: --resume: was made with particles.star of"});
}

TEST_CASE("every phase has a progress line, where there is a terminal") {
  const Scene scene;
  const auto on_terminal = [&](const std::string& command, const std::vector<std::string>& phases) {
    const Outcome outcome = run(scene.folder, "script -qec '" + command + "' log.text");
    if (outcome.code == 127)
      SKIP("script is not installed");
    INFO(outcome.out);
    CHECK(outcome.code == 0);
    for (const auto& phase : phases) {
      CAPTURE(phase);
      CHECK(outcome.out.find("\r" + phase) != std::string::npos);
    }
  };
  on_terminal(reconstruct + " --star particles.star --out map.mrc",
              {"inserting 0 % of 144 particles", "making 0 % of 4 maps"});
  on_terminal(refine + " --rounds 2 --radius 6 --out refined.star",
              {"inserting 0 % of 144 particles", "making 0 % of 2 half maps", "transforming 0 % of 1 maps",
               "round 1 of 2: refining 0 % of 288 stages of particles", "round 2 of 2: refining "});
  on_terminal(std::string(BRACEWELL_TOMOGRAPHY) + " --demo scan --demo-angles 60",
              {"searching the axis 0 % of 100 parts", "reconstructing 0 % of 16 slices"});
  on_terminal(std::string(BRACEWELL_PTYCHOGRAPHY) + " --demo patterns --passes 2",
              {"reconstructing 0 % of 2 passes"});
}

TEST_CASE("defoci of particles are found beside their poses") {
  const int box = 32;
  const auto gaussians = random_gaussians(20, 6, 1.0);
  auto truth = random_particles(24, 1);
  const auto plain = gaussian_projections(gaussians, truth, box);
  std::vector<float> images;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const auto begin = plain.begin() + static_cast<std::ptrdiff_t>(i * box * box);
    const auto image = filtered(std::vector<float>(begin, begin + box * box), box,
                                [&](double u, double v) { return relion_ctf(truth[i], u, v); });
    images.insert(images.end(), image.begin(), image.end());
  }
  const TemporaryFolder folder;
  write_map(folder / "truth.mrc", gaussian_map(gaussians, box), box);
  write_stack(folder / "images.mrcs", images, box, box);
  auto particles = truth;
  for (std::size_t i = 0; i < particles.size(); ++i) {
    const double change = 100.0 * (double(i % 13) - 6); // -600 to 600 Angstrom
    particles[i].defocus_u += change;
    particles[i].defocus_v += change;
    particles[i].rot += i % 2 ? 1 : -1;
    particles[i].x += i % 4 < 2 ? 0.3 : -0.3;
  }
  write_text(folder / "particles.star", star_text(particles, box, "images.mrcs"));
  const std::string command =
      one_thread + BRACEWELL_REFINE + " --star particles.star --map truth.mrc --radius 14 ";
  const auto errors = [&](const std::string& options) {
    const Outcome outcome = run(folder, command + "--out refined.star " + options);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const Particles found = read_particles(folder / "refined.star", {.images = false});
    std::vector<double> differences, angles;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      differences.push_back(std::abs(found.defocus_u[i] - truth[i].defocus_u));
      CHECK(std::abs(found.defocus_u[i] - found.defocus_v[i] - truth[i].defocus_u + truth[i].defocus_v) <
            0.1);
      angles.push_back(angle_between(pose_in(found, i), truth[i]));
    }
    std::ranges::sort(differences);
    std::ranges::sort(angles);
    return std::array{differences[differences.size() / 2], differences.back(), angles[angles.size() / 2]};
  };
  const auto before = errors(""), after = errors("--rounds 2 --refine-defocus");
  CAPTURE(before, after);
  CHECK(before[0] > 250);
  CHECK(after[0] < 10);
  CHECK(after[1] < 50);
  CHECK(after[2] < 0.2);
  expect_bad_input(folder, command + "--out r.star --no-ctf --refine-defocus", {"--refine-defocus"});
  expect_bad_input(folder, command + "--out r.star --defocus-range 100", {"--refine-defocus"});
}

TEST_CASE("magnifications of optics groups are found beside poses") {
  // Frequency k of an image is M k of the projection: the image is the projection at M^-T x, over det M.
  const int box = 32, count = 60;
  const double magnification[2][3] = {{1.012, 0.006, 0.985}, {0.99, -0.004, 1.006}}; // xx, xy, yy
  const auto gaussians = random_gaussians(20, 6, 1.2);
  const auto truth = random_particles(count, 1);
  std::vector<float> images;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const auto& [xx, xy, yy] = magnification[i % 4 / 2];
    const double determinant = xx * yy - xy * xy;
    const auto a = relion_matrix(truth[i]);
    for (int y = 0; y < box; ++y)
      for (int x = 0; x < box; ++x) {
        const double u = x - box / 2 + truth[i].x, v = y - box / 2 + truth[i].y;
        const double at_x = (yy * u - xy * v) / determinant, at_y = (xx * v - xy * u) / determinant;
        double sum = 0;
        for (const auto& g : gaussians) {
          const double dx = at_x - (a[0][0] * g.x + a[0][1] * g.y + a[0][2] * g.z),
                       dy = at_y - (a[1][0] * g.x + a[1][1] * g.y + a[1][2] * g.z);
          sum += g.amplitude * g.deviation * std::sqrt(2 * std::numbers::pi) *
                 std::exp(-(dx * dx + dy * dy) / (2 * g.deviation * g.deviation));
        }
        images.push_back(static_cast<float>(sum / determinant));
      }
  }
  const TemporaryFolder folder;
  write_map(folder / "truth.mrc", gaussian_map(gaussians, box), box);
  write_stack(folder / "images.mrcs", images, box, box);
  auto particles = truth;
  for (std::size_t i = 0; i < particles.size(); ++i)
    particles[i].tilt += i % 2 ? 1 : -1;
  // A second optics group.
  std::string star = star_text(particles, box, "images.mrcs");
  const std::string group = "1 opticsGroup1 300.0 2.7 0.1 3.000000 32 2\n";
  const std::size_t at = star.find(group);
  REQUIRE(at != std::string::npos);
  star.insert(at + group.size(), "2 opticsGroup2 300.0 2.7 0.1 3.000000 32 2\n");
  std::istringstream text(star);
  std::string mixed;
  std::size_t row = 0;
  for (std::string line; std::getline(text, line); mixed += line + "\n")
    if (line.find("@images.mrcs") != std::string::npos && row++ % 4 / 2 == 1)
      line[0] = '2';
  write_text(folder / "particles.star", mixed);
  const std::string command =
      one_thread + BRACEWELL_REFINE + " --star particles.star --no-ctf --radius 12 --refine-magnification ";
  const auto found_by = [&](const std::string& options) {
    const Outcome outcome = run(folder, command + options);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.err.find("magnification of optics group 2: ") != std::string::npos);
    const Particles found = read_particles(folder / "refined.star", {.images = false});
    std::array<std::array<double, 4>, 2> result{};
    for (std::size_t i : {0, 2})
      for (std::size_t m = 0; m < 4; ++m)
        result[i / 2][m] = found.magnification[m][i];
    CHECK(found.document.find("optics")->find("rlnMagMat00"));
    return result;
  };
  const auto found = found_by("--map truth.mrc --rounds 3 --out refined.star");
  // The size is the map's after the first round, and later ones, whose half maps have any size, keep it.
  for (std::size_t g : {0, 1}) {
    CAPTURE(g, found[g]);
    const auto& [xx, xy, yy] = magnification[g];
    CHECK(std::abs(found[g][0] - xx) < 0.001);
    CHECK(std::abs(found[g][1] - xy) < 0.001);
    CHECK(std::abs(found[g][2] - xy) < 0.001);
    CHECK(std::abs(found[g][3] - yy) < 0.001);
  }
  // Without a map how large all are together stays.
  const auto own = found_by("--rounds 3 --out refined.star");
  double together = 0;
  for (std::size_t g : {0, 1}) {
    CAPTURE(g, own[g]);
    const auto& [xx, xy, yy] = magnification[g];
    together += (own[g][0] + own[g][3]) / 4;
    CHECK(std::abs(own[g][0] - own[g][3] - (xx - yy)) < 0.004);
    CHECK(std::abs(own[g][1] - xy) < 0.002);
  }
  CHECK(std::abs(together - 1) < 1e-5);
}
