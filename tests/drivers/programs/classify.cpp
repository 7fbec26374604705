// SPDX-License-Identifier: MIT
// bracewell-classify: shapes that are told apart, its columns, and runs that go on after an interruption. Against RELION:
// bench/quality/classification.py.
#include "support.hpp"

#include "common/hdf5.hpp"

using namespace DriverTest;

namespace {

/// One thread: sums over particles are the same in every run.
const std::string classify = std::string("env OMP_NUM_THREADS=1 ") + BRACEWELL_CLASSIFY +
                             " --star particles.star --no-ctf --classes 2 --reference mean.mrc";

/// Projections of two shapes in closed form with noise as strong as they are: a bar, and the corners of a
/// tetrahedron or a ring, which looks like the bar from its edge.
struct Scene {
  TemporaryFolder folder;
  int box = 24;
  std::vector<Particle> truth;
  std::vector<int> shape; ///< of particles

  explicit Scene(int count, bool with_ring = false, unsigned seed = 8) : truth(random_particles(count, 1)) {
    std::array<std::vector<Gaussian>, 2> shapes;
    for (int i = 0; i < 10; ++i) {
      const double along = i - 4.5;
      shapes[0].push_back({0.3 * along, 0.5, 1.4 * along, 1.3, 1.0});
    }
    shapes[1] = {{5, 0, -2, 1.3, 3}, {-3, 4.5, -2, 1.3, 2.5}, {-3, -4.5, -2, 1.3, 2}, {0.5, 0, 5, 1.3, 2.5}};
    if (with_ring) {
      shapes[1].clear();
      for (int i = 0; i < 12; ++i) {
        const double turn = std::numbers::pi * i / 6;
        shapes[1].push_back({5 * std::cos(turn), 5 * std::sin(turn), 0, 1.3, 1.0});
      }
    }
    const std::array maps{gaussian_map(shapes[0], box), gaussian_map(shapes[1], box)};
    auto mean = maps[0];
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] = 20 * (mean[i] + maps[1][i]); // on another scale than the images
    write_map(folder / "mean.mrc", mean, box);
    write_map(folder / "bar.mrc", maps[0], box);
    write_map(folder / "corners.mrc", maps[1], box);
    std::vector<float> images;
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      shape.push_back(i % 5 < 2 ? 0 : 1);
      for (float value : gaussian_projections(shapes[std::size_t(shape[i])], {truth[i]}, box))
        images.push_back(value + 1.5f * normal(generator));
    }
    write_stack(folder / "images.mrcs", images, box, box);
    auto particles = truth; // whose poses nobody knows
    for (auto& p : particles)
      p = {0, 0, 0, 0, 0, p.defocus_u, p.defocus_v, p.angle};
    write_text(folder / "particles.star", star_text(particles, box, "images.mrcs"));
  }

  Particles found(const std::string& star) const { return read_particles(folder / star, {.images = false}); }

  /// Share of particles in the class of their shape, whichever number it has.
  double right(const std::string& star) const {
    const Particles particles = found(star);
    REQUIRE(particles.count == shape.size());
    std::size_t same = 0;
    for (std::size_t i = 0; i < shape.size(); ++i)
      same += particles.class_number[i] == shape[i] + 1;
    return std::max(double(same), double(shape.size() - same)) / double(shape.size());
  }

  std::vector<float> volume(const std::string& name) const { return MrcReader(folder / name).read_volume(); }
};

double number(const StarTable& table, std::size_t row, const std::string& column) {
  const auto at = table.find(column);
  REQUIRE(at);
  return std::stod(table.value(row, *at));
}

/// Correlation of the values of two maps within the sphere that the shapes lie in: maps are written without a mask.
double correlation(const std::vector<float>& a, const std::vector<float>& b, int box) {
  double product = 0, first = 0, second = 0;
  std::size_t i = 0;
  for (int z = 0; z < box; ++z)
    for (int y = 0; y < box; ++y)
      for (int x = 0; x < box; ++x, ++i) {
        if (std::hypot(x - box / 2, y - box / 2, z - box / 2) >= box / 3.0)
          continue;
        product += double(a[i]) * b[i];
        first += double(a[i]) * a[i];
        second += double(b[i]) * b[i];
      }
  return product / std::sqrt(first * second);
}

} // namespace

TEST_CASE("particles of two shapes come into two classes, from their mean on") {
  const Scene scene(80);
  const std::string said =
      run_well(scene.folder,
               classify + " --starts 1 --iterations 2 --healpix-order 1 --offset-range 1.5 --out found.star");
  CHECK(said.find("80 particles in 2 classes:") != std::string::npos);
  CHECK(scene.right("found.star") >= 0.95);

  // The maps look like the shapes, as far as they have the reference's place and direction; and unlike the other one.
  const int bar_class = [&] {
    const Particles particles = scene.found("found.star");
    int of_first = 0;
    for (std::size_t i = 0; i < scene.shape.size(); ++i)
      of_first += scene.shape[i] == 0 && particles.class_number[i] == 1;
    return 5 * of_first > static_cast<int>(particles.count) ? 1 : 2;
  }();
  const auto bar = scene.volume("found_class" + std::to_string(bar_class) + ".mrc"),
             corners = scene.volume("found_class" + std::to_string(3 - bar_class) + ".mrc");
  const auto alike = [&](const std::vector<float>& map, const char* shape) {
    return correlation(map, scene.volume(shape), scene.box);
  };
  CHECK(alike(bar, "bar.mrc") > 0.8);
  CHECK(alike(bar, "corners.mrc") < 0.6);
  CHECK(alike(corners, "corners.mrc") > 0.8);
  CHECK(alike(corners, "bar.mrc") < 0.6);

  // Columns of RELION, beside those that were there.
  StarDocument document = read_star(scene.folder / "found.star");
  const StarTable& table = *document.find("particles");
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const double largest = number(table, row, "rlnMaxValueProbDistribution");
    CHECK((largest > 0 && largest <= 1));
    CHECK(number(table, row, "rlnNrOfSignificantSamples") >= 1);
    CHECK(number(table, row, "rlnLogLikeliContribution") < 0);
  }
  CHECK(table.find("rlnDefocusU"));
  StarDocument model = read_star(scene.folder / "found_model.star");
  const StarTable& classes = *model.find("model_classes");
  REQUIRE(classes.rows() == 2);
  double sizes = 0;
  for (std::size_t k = 0; k < 2; ++k) {
    sizes += number(classes, k, "rlnClassDistribution");
    const double resolution = number(classes, k, "rlnEstimatedResolution");
    CHECK((resolution >= 2 * pixel_size && resolution <= scene.box * pixel_size));
  }
  CHECK(std::abs(sizes - 1) < 1e-4);
  CHECK(std::abs(number(classes, std::size_t(bar_class - 1), "rlnClassDistribution") - 0.4) < 0.06);
  CHECK(fs::exists(scene.folder / "found_iteration1.png"));
  CHECK_FALSE(fs::exists(scene.folder / "found_class1_half1.mrc"));
}

TEST_CASE("a start goes on until its classes have converged", "[.turn-3]") {
  // Noise for which four iterations stop at 95 %. A single start on so coarse a grid leaves 68 to 98 % with six of eight.
  const Scene scene(60, true, 2);
  run_well(scene.folder,
           classify + " --starts 1 --iterations 1 --healpix-order 0 --offset-range 1.5 --out found.star");
  CHECK(scene.right("found.star") >= 0.97);
}

TEST_CASE("one class is refined from half sets apart, which have maps of their own") {
  const Scene scene(40);
  const std::string command = std::string("env OMP_NUM_THREADS=1 ") + BRACEWELL_CLASSIFY +
                              " --no-ctf --classes 1 --reference mean.mrc --iterations 2 --healpix-order 1 "
                              "--offset-range 1.5 --initial-low-pass 36 --particle-diameter 57";
  run_well(scene.folder, command + " --star particles.star --out found.star");
  StarDocument document = read_star(scene.folder / "found.star");
  const StarTable& table = *document.find("particles");
  for (std::size_t row = 0; row < table.rows(); ++row)
    CHECK(number(table, row, "rlnRandomSubset") == double(1 + row % 2));
  const auto first = scene.volume("found_class1_half1.mrc"), second = scene.volume("found_class1_half2.mrc"),
             whole = scene.volume("found_class1.mrc");
  CHECK(first != second);
  CHECK(correlation(first, whole, scene.box) > 0.8);
  CHECK(correlation(second, whole, scene.box) > 0.8);
}

TEST_CASE("classes begin with maps of their own, and a classification goes on after an interruption",
          "[.turn-4]") {
  const Scene scene(40);
  const std::string command =
      std::string("env OMP_NUM_THREADS=1 ") + BRACEWELL_CLASSIFY +
      " --star particles.star --no-ctf --classes 2 --reference corners.mrc bar.mrc --iterations 3 "
      "--healpix-order 1 --offset-range 1.5 --reproducible --checkpoint-every 0";
  run_well(scene.folder, command + " --out whole.star");
  const Particles particles = scene.found("whole.star");
  std::size_t right = 0;
  for (std::size_t i = 0; i < scene.shape.size(); ++i)
    right += particles.class_number[i] == 2 - scene.shape[i];
  CHECK(right >= 36);

  const Outcome cut = run(scene.folder, ended_after("part_checkpoint.h5", 2) + command + " --out part.star");
  INFO(cut.err);
  REQUIRE(cut.code == 128 + SIGTERM);
  CHECK(Hdf5Reader(scene.folder / "part_checkpoint.h5").read_scalar<std::int64_t>("/iteration") == 2);
  CHECK_FALSE(fs::exists(scene.folder / "part_class1.mrc"));
  expect_bad_input(scene.folder, command + " --out part.star", {"part_checkpoint.h5", "use --resume"});
  expect_bad_input(scene.folder, command + " --out part.star --resume --tau 2",
                   {"part_checkpoint.h5: --resume: was made without --tau 2"});
  run_well(scene.folder, command + " --out part.star --resume");
  CHECK_FALSE(fs::exists(scene.folder / "part_checkpoint.h5"));
  CHECK(read_star(scene.folder / "part.star").find("particles")->values ==
        read_star(scene.folder / "whole.star").find("particles")->values);
  for (const char* name : {"_class1.mrc", "_class2.mrc"})
    CHECK(scene.volume(std::string("part") + name) == scene.volume(std::string("whole") + name));
}

TEST_CASE("views of a molecule come into classes in the plane", "[.turn-3]") {
  // From three directions, turned and moved in the plane by chance, with more noise than signal and no reference.
  const TemporaryFolder folder;
  const int box = 32, count = 240;
  const std::vector<Gaussian> molecule = {{-7, 0, 0, 1.6, 2},   {-3, 4, 1, 1.6, 1.5}, {0, -5, 4, 1.6, 1},
                                          {3, 1, -6, 1.6, 1.5}, {6, -2, 2, 1.6, 1},   {1, 6, 5, 1.6, 1.2}};
  const std::array<std::array<double, 2>, 3> directions{{{0, 0}, {20, 80}, {110, 90}}};
  auto truth = random_particles(count, 2);
  std::vector<int> view;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    view.push_back(i % 6 < 3 ? 0 : (i % 6 < 5 ? 1 : 2)); // a half, a third and a sixth
    truth[i].rot = directions[std::size_t(view[i])][0];
    truth[i].tilt = directions[std::size_t(view[i])][1];
  }
  auto images = gaussian_projections(molecule, truth, box);
  double power = 0;
  for (const float value : images)
    power += double(value) * value / double(images.size());
  std::mt19937 generator(4);
  std::normal_distribution<float> normal(0, static_cast<float>(std::sqrt(power / 0.3)));
  for (float& value : images)
    value += normal(generator);
  write_stack(folder / "images.mrcs", images, box, box);
  auto particles = truth; // whose poses nobody knows
  for (auto& p : particles)
    p = {0, 0, 0, 0, 0, p.defocus_u, p.defocus_v, p.angle};
  write_text(folder / "particles.star", star_text(particles, box, "images.mrcs"));
  const std::string command =
      std::string("env OMP_NUM_THREADS=1 ") + BRACEWELL_CLASSIFY +
      " --star particles.star --no-ctf --dimensions 2 --classes 3 --iterations 4 --reproducible";
  run_well(folder, command + " --out found.star");

  const Particles found = read_particles(folder / "found.star", {.images = false});
  std::array<std::array<int, 3>, 3> table{}; // of classes and views
  for (std::size_t i = 0; i < truth.size(); ++i)
    ++table[std::size_t(found.class_number[i]) - 1][std::size_t(view[i])];
  const auto averages = MrcReader(folder / "found_classes.mrcs").read_volume();
  REQUIRE(averages.size() == std::size_t(3 * box * box));
  int right = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    const auto of = static_cast<std::size_t>(std::ranges::max_element(table[k]) - table[k].begin());
    right += table[k][of];
    // The angles of a class differ from the true ones by one angle, by which its average is turned.
    const auto turn_of = [&](std::size_t i) {
      return (found.psi[i] - truth[i].psi) * std::numbers::pi / 180;
    };
    double c = 0, s = 0, near = 0, all = 0;
    const auto mine = [&](std::size_t i) {
      return found.class_number[i] == int(k) + 1 && view[i] == int(of);
    };
    for (std::size_t i = 0; i < truth.size(); ++i)
      if (mine(i)) {
        c += std::cos(turn_of(i));
        s += std::sin(turn_of(i));
      }
    const double turn = std::atan2(s, c);
    for (std::size_t i = 0; i < truth.size(); ++i)
      if (mine(i)) {
        all += 1;
        near += std::cos(turn_of(i) - turn) > std::cos(15 * std::numbers::pi / 180);
        CHECK(found.rot[i] == 0);
        CHECK(found.tilt[i] == 0);
      }
    CHECK(near >= 0.9 * all);
    // The average is the view that the molecule has at the angle 0, wherever it lies.
    Particle pose{directions[of][0], directions[of][1], -turn * 180 / std::numbers::pi, 0, 0, 0, 0, 0};
    double best = 0;
    for (pose.x = -4; pose.x <= 4; pose.x += 0.5)
      for (pose.y = -4; pose.y <= 4; pose.y += 0.5) {
        const auto expected = gaussian_projections(molecule, {pose}, box);
        double product = 0, first = 0, second = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const double value = averages[k * expected.size() + i];
          product += expected[i] * value;
          first += double(expected[i]) * expected[i];
          second += value * value;
        }
        best = std::max(best, product / std::sqrt(first * second));
      }
    CHECK(best > 0.8);
  }
  CHECK(right >= 0.97 * count);
  StarDocument model = read_star(folder / "found_model.star");
  const StarTable& classes = *model.find("model_classes");
  REQUIRE(classes.rows() == 3);
  CHECK(classes.value(1, *classes.find("rlnReferenceImage")) == "000002@found_classes.mrcs");
  CHECK(fs::exists(folder / "found_iteration4.png"));

  const Outcome cut =
      run(folder, ended_after("part_checkpoint.h5", 2) + command + " --checkpoint-every 0 --out part.star");
  INFO(cut.err);
  REQUIRE(cut.code == 128 + SIGTERM);
  run_well(folder, command + " --checkpoint-every 0 --out part.star --resume");
  CHECK(MrcReader(folder / "part_classes.mrcs").read_volume() == averages);

  // Averages of another run are a beginning, too.
  run_well(folder, command + " --reference found_classes.mrcs --out again.star");
  const Particles again = read_particles(folder / "again.star", {.images = false});
  int same = 0;
  for (std::size_t i = 0; i < truth.size(); ++i)
    same += again.class_number[i] == found.class_number[i];
  CHECK(same >= 0.97 * count);
  write_stack(folder / "two.mrcs", {averages.begin(), averages.begin() + 2 * box * box}, box, box);
  expect_bad_input(folder, command + " --reference two.mrcs --out bad.star",
                   {"--reference: expected a stack of 3 images, one for each class, found 2"});
  expect_bad_input(folder, command + " --healpix-order 1 --out bad.star", {"--healpix-order"});
}

TEST_CASE("a classification says what it cannot use", "[hosts]") {
  const Scene scene(12);
  const std::string bare =
      std::string(BRACEWELL_CLASSIFY) + " --star particles.star --no-ctf --classes 2 --out out.star";
  expect_bad_input(scene.folder, std::string(BRACEWELL_CLASSIFY) + " --star particles.star --out out.star",
                   {"--classes is required"});
  expect_bad_input(scene.folder, bare + " --reference missing.mrc", {"missing.mrc"});
  expect_bad_input(scene.folder, bare + " --reference mean.mrc bar.mrc corners.mrc",
                   {"--reference: expected one map or 2, one for each class, found 3"});
  expect_bad_input(scene.folder, bare + " --reference mean.mrc --particle-diameter 100",
                   {"--particle-diameter: expected 12 to 72 Angstrom, found 100"});
  expect_bad_input(scene.folder, bare + " --reference mean.mrc --initial-low-pass 3",
                   {"--initial-low-pass: expected", "found 3"});
  expect_bad_input(scene.folder, bare + " --reference mean.mrc --symmetry X2", {"--symmetry", "found X2"});
  write_map(scene.folder / "large.mrc", std::vector<float>(26 * 26 * 26, 1.0f), 26);
  expect_bad_input(scene.folder, bare + " --reference large.mrc", {"expected images of 26 x 26 pixels"});
  expect_bad_input(scene.folder,
                   std::string(BRACEWELL_CLASSIFY) +
                       " --star particles.star --no-ctf --classes 7 --reference mean.mrc --out out.star",
                   {"expected 14 particles or more for so many classes, found 12"});
  StarDocument document = read_star(scene.folder / "particles.star");
  document.find("particles")->remove_columns(std::array<std::string_view, 1>{"rlnAngleTilt"});
  write_star(scene.folder / "particles.star", document);
  expect_bad_input(scene.folder, bare,
                   {"has no angles (rlnAngleRot): expected a map to begin with, --reference"});
}
