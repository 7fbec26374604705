// SPDX-License-Identifier: MIT
// The programs as several processes of mpirun: results of one, and faults of one that are all of them.
#include "support.hpp"

#include "common/hdf5.hpp"
#include "common/star.hpp"

#include <catch2/generators/catch_generators.hpp>

using namespace DriverTest;

namespace {

const std::string reconstruct = BRACEWELL_RECONSTRUCT, refine = BRACEWELL_REFINE, project = BRACEWELL_PROJECT,
                  tomography = BRACEWELL_TOMOGRAPHY, ptychography = BRACEWELL_PTYCHOGRAPHY;

std::string as(int processes, const std::string& command) {
  return BRACEWELL_MPIEXEC " -n " + std::to_string(processes) + " " + command;
}

void skip_without_mpi() {
  if (std::string(BRACEWELL_MPIEXEC).empty())
    SKIP("MPI is not installed");
}

/// particles.star with images.mrcs in a folder.
struct Scene {
  static constexpr int box = 20;
  TemporaryFolder folder;

  explicit Scene(int count) {
    const auto gaussians = random_gaussians(8, box / 6.0, 2);
    const auto particles = random_particles(count, 1);
    write_stack(folder / "images.mrcs", gaussian_projections(gaussians, particles, box), box, box);
    write_text(folder / "particles.star", star_text(particles, box, "images.mrcs"));
  }

  std::vector<float> map(const std::string& name) const { return MrcReader(folder / name).read_volume(); }
};

/// Angles and origins.
std::vector<double> poses_of(const fs::path& star) {
  const auto particles = read_particles(star, {.images = false});
  std::vector<double> values;
  for (const auto* column :
       {&particles.rot, &particles.tilt, &particles.psi, &particles.origin_x, &particles.origin_y})
    values.insert(values.end(), column->values.begin(), column->values.end());
  return values;
}

/// Two processes, of which the second one's disk takes so many milliseconds longer at every turn.
std::string with_slow_one(const std::string& command, int milliseconds) {
  return as(1, command) + " : -n 1 env " + with_fault("slow:" + std::to_string(milliseconds)) + command;
}

/// What --timings says of work that was handed out: how many the first process took, and how many the second.
std::array<int, 2> shares(const std::string& text) {
  std::array<int, 2> counts{}, ranks{};
  const auto at = text.find("; most ");
  REQUIRE(at != std::string::npos);
  REQUIRE(std::sscanf(text.c_str() + text.find(',', at), ", %d, in process %d, fewest, %d, in %d", &counts[0],
                      &ranks[0], &counts[1], &ranks[1]) == 4);
  return ranks[0] == 0 ? counts : std::array{counts[1], counts[0]};
}

int count_of(const std::string& words, const std::string& text) {
  int count = 0;
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    ++count;
  return count;
}

} // namespace

TEST_CASE("particles shared out among processes make the maps of one, also fewer particles than processes") {
  skip_without_mpi();
  const auto [count, processes] = GENERATE(table<int, int>({{41, 2}, {41, 3}, {41, 4}, {3, 4}}));
  const Scene particles(count);
  const std::string command = reconstruct + " --star particles.star --out ";
  const std::string alone = run_well(particles.folder, command + "one.mrc");
  const std::string together = run_well(particles.folder, as(processes, command + "all.mrc"));
  for (const std::string name : {".mrc", "_half1.mrc", "_half2.mrc"})
    CHECK(relative_error(particles.map("all" + name), particles.map("one" + name)) < 2e-6);
  // Said once, by the first of them: all up to the time.
  CHECK(count_of("particles of", together) == 1);
  CHECK(together.substr(together.find(':'), together.rfind(',') - together.find(':')) ==
        alone.substr(alone.find(':'), alone.rfind(',') - alone.find(':')));
}

TEST_CASE("particles shared out among processes are refined as by one") {
  skip_without_mpi();
  const Scene scene(9);
  write_map(scene.folder / "map.mrc", gaussian_map(random_gaussians(8, Scene::box / 6.0, 2), Scene::box),
            Scene::box);
  const std::string command = refine + " --star particles.star --radius 4 --out ";
  const auto poses = [&](const std::string& name) { return poses_of(scene.folder / name); };
  run_well(scene.folder, command + "one.star --map map.mrc");
  run_well(scene.folder, command + "one_of_two.star --rounds 2");
  run_well(scene.folder, command + "one_found.star --map map.mrc --global");
  for (const int processes : {2, 4}) {
    // A search knows nothing of other particles: the same poses to the last digit.
    run_well(scene.folder, as(processes, command + "all.star --map map.mrc"));
    CHECK(poses("all.star") == poses("one.star"));
    CHECK(relative_error(scene.map("all_half1.mrc"), scene.map("one_half1.mrc")) < 2e-6);
    run_well(scene.folder, as(processes, command + "all_found.star --map map.mrc --global"));
    CHECK(poses("all_found.star") == poses("one_found.star"));
    // References of half maps are the same to rounding, which searches that end by a tolerance make more of.
    run_well(scene.folder, as(processes, command + "all_of_two.star --rounds 2"));
    CHECK(relative_error(scene.map("all_of_two_half1.mrc"), scene.map("one_of_two_half1.mrc")) < 1e-2);
  }
}

TEST_CASE("images that processes project together are one file, the same to the last bit") {
  skip_without_mpi();
  const Scene scene(11);
  write_map(scene.folder / "map.mrc", gaussian_map(random_gaussians(5, Scene::box / 6.0, 2), Scene::box),
            Scene::box);
  const std::string command =
      project + " --map map.mrc --star particles.star --ctf --noise 0.5 --seed 3 --batch 2 --out ";
  run_well(scene.folder, command + "images_of_all.mrcs");
  const std::string one = read_text(scene.folder / "images_of_all.mrcs"),
                    star = read_text(scene.folder / "images_of_all.star");
  for (const int processes : {2, 3}) {
    fs::remove(scene.folder / "images_of_all.mrcs");
    run_well(scene.folder, as(processes, command + "images_of_all.mrcs"));
    CHECK(read_text(scene.folder / "images_of_all.mrcs") == one);
    CHECK(read_text(scene.folder / "images_of_all.star") == star);
  }
  // Where files cannot be without a name, and where the last images cannot be written.
  run_well(scene.folder, with_fault("nameless") + as(2, command + "images_of_all.mrcs"));
  CHECK(read_text(scene.folder / "images_of_all.mrcs") == one);
}

TEST_CASE("tiles of processes are the object of one, each smaller than it") {
  skip_without_mpi();
  const TemporaryFolder folder;
  run_well(folder, ptychography + " --demo . --passes 1");
  const std::string command =
      ptychography + " --data scan.cxi --probe-size 40 --modes 2 --start random --passes 4 --algorithm adam ";
  const auto values = [&](const std::string& name, const std::string& dataset) {
    return Hdf5Reader(folder / name).read<double>(dataset);
  };
  run_well(folder, command + "--out one.h5");
  const auto compare = [&](const std::string& dataset, double tolerance) {
    const auto one = values("one.h5", dataset), all = values("all.h5", dataset);
    REQUIRE(one.size() == all.size());
    double error = 0, largest = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      error = std::max(error, std::abs(one[i] - all[i]));
      largest = std::max(largest, std::abs(one[i]));
    }
    INFO(dataset);
    CHECK(error < tolerance * largest);
  };
  for (const int processes : {2, 3, 4}) {
    const std::string said = run_well(folder, as(processes, command + "--out all.h5"));
    CAPTURE(processes, said);
    compare("/loss", 1e-6);
    compare("/object/amplitude", 2e-4); // Adam divides small gradients by themselves
    compare("/object/phase", 2e-4);
    CHECK(values("one.h5", "/positions") == values("all.h5", "/positions"));
    int rows = 0, columns = 0, tile_rows = 0, tile_columns = 0;
    const auto at = said.find(", object ");
    REQUIRE(at != std::string::npos);
    REQUIRE(std::sscanf(said.c_str() + at, ", object %d x %d in tiles of at most %d x %d pixels", &rows,
                        &columns, &tile_rows, &tile_columns) == 4);
    CHECK(tile_rows * tile_columns < 0.8 * rows * columns);
  }
  CHECK(read_text(folder / "all_phase.png").size() > 0);
  // Batches are made within a process: other ones, as good.
  run_well(folder, as(2, command + "--batches 3 --out batches.h5"));
  run_well(folder, command + "--batches 3 --out batches_of_one.h5");
  CHECK(std::abs(values("batches.h5", "/loss").back() / values("batches_of_one.h5", "/loss").back() - 1) <
        0.05);
  // More processes than patterns.
  const std::string few =
      ptychography + " --data scan.cxi --probe-size 40 --every 48 --passes 3 --algorithm adam --out ";
  run_well(folder, few + "one.h5");
  run_well(folder, as(4, few + "all.h5"));
  compare("/loss", 1e-6);
  compare("/object/amplitude", 2e-4);
}

TEST_CASE("slices shared out among processes are those of one, in one file") {
  skip_without_mpi();
  const TemporaryFolder folder;
  run_well(folder, tomography + " --demo .");
  const auto slices = [&](const std::string& name) {
    return Hdf5Reader(folder / name).read<float>("/exchange/data");
  };
  // So near the precision the grid is the same for any number of threads, and of slices at a time.
  const std::string command = tomography + " --scan scan.h5 --tolerance 1e-6 --out ";
  run_well(folder, command + "one.h5");
  const auto one = slices("one.h5");
  for (const int processes : {2, 3}) {
    run_well(folder, as(processes, command + "all.h5"));
    CHECK(relative_error(slices("all.h5"), one) < 1e-6);
    CHECK(fs::exists(folder / "all_middle.png"));
  }
  // Steps on whole frames, in shares that are fixed.
  const std::string turned = " --centre 131 --rows 2:12 --roll 0.3";
  run_well(folder, command + "one.h5" + turned);
  run_well(folder, as(2, command + "all.h5" + turned));
  CHECK(relative_error(slices("all.h5"), slices("one.h5")) < 1e-6);
  // More processes than pairs of slices.
  const std::string few = " --centre 131 --rows 3:6";
  run_well(folder, command + "one.h5" + few);
  Outcome outcome = run(folder, as(4, command + "all.h5 --timings" + few));
  CHECK(relative_error(slices("all.h5"), slices("one.h5")) < 1e-6);
  CHECK(outcome.err.find("; stages of 4 processes ") != std::string::npos);
  CHECK(count_of("timings: ", outcome.err) == 1);
  // A slow process takes less, where there are more parts than processes read ahead: beside a GPU five of 64 slices.
  constexpr int slices_of_many = 2048;
  Hdf5Writer many(folder / "many.h5");
  std::vector<float> values(std::size_t(8) * slices_of_many * 64, 1);
  for (std::size_t i = 32; i < values.size(); i += 64)
    values[i] = 2; // scans of one value are refused
  many.write<float>("/exchange/data", {8, slices_of_many, 64}, values);
  many.commit();
  outcome = run(
      folder, with_slow_one(tomography + " --scan many.h5 --no-log --centre 32 --timings --out slow.h5", 5));
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  const auto [first, second] = shares(outcome.err);
  CHECK(first + second == Hdf5Reader(folder / "slow.h5").shape("/exchange/data")[0]);
  CHECK(first > second);
  outcome = run(folder, as(2, tomography + " --scan scan.h5 --out all.tif"));
  CHECK(outcome.code == 2);
  CHECK(outcome.err.find("all.tif: expected a name that ends with .h5, which several processes write") !=
        std::string::npos);
}

TEST_CASE("a process that is slow takes less of the particles") {
  skip_without_mpi();
  const Scene scene(40);
  write_map(scene.folder / "map.mrc", gaussian_map(random_gaussians(8, Scene::box / 6.0, 2), Scene::box),
            Scene::box);
  const std::string command =
      refine + " --star particles.star --map map.mrc --radius 4 --batch 4 --timings --out ";
  run_well(scene.folder, command + "one.star");
  const Outcome outcome = run(scene.folder, with_slow_one(command + "all.star", 50));
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(poses_of(scene.folder / "all.star") == poses_of(scene.folder / "one.star"));
  const auto [first, second] = shares(outcome.err);
  CHECK(first + second == 40);
  CHECK(first > second);
}

TEST_CASE("processes that are interrupted within a round go on from their checkpoint", "[.turn-4]") {
  skip_without_mpi();
  // More than are handed out until the second checkpoint, also where five threads read ahead.
  constexpr int count = 100;
  const Scene scene(count);
  write_map(scene.folder / "map.mrc", gaussian_map(random_gaussians(8, Scene::box / 6.0, 2), Scene::box),
            Scene::box);
  const std::string command =
      refine + " --star particles.star --map map.mrc --radius 4 --batch 2 --checkpoint-every 0 --out ";
  run_well(scene.folder, command + "one.star");
  // The second process is slowed, or it may have taken all of them before the first one writes again.
  const std::string part = command + "part.star";
  const Outcome cut = run(scene.folder, as(1, "env " + ended_after("part_checkpoint.h5", 2) + part) +
                                            " : -n 1 env " + with_fault("slow:200") + part);
  INFO(cut.err);
  CHECK(cut.code != 0);
  const auto done = Hdf5Reader(scene.folder / "part_checkpoint.h5").read_scalar<std::int64_t>("/done");
  CHECK(done >= 4);
  CHECK(done < count);
  run_well(scene.folder, as(3, command + "part.star --resume")); // as many as there are this time
  CHECK(poses_of(scene.folder / "part.star") == poses_of(scene.folder / "one.star"));
  CHECK_FALSE(fs::exists(scene.folder / "part_checkpoint.h5"));
}

TEST_CASE("positions that processes refine together are those of one, also after an interruption") {
  skip_without_mpi();
  const TemporaryFolder folder;
  run_well(folder, ptychography + " --demo . --passes 1 --position-errors 2");
  const std::string command = ptychography + " --data scan.cxi --probe-size 40 --passes 6 --algorithm adam "
                                             "--refine-positions --checkpoint-every 0 --out ";
  const auto positions = [&](const std::string& name) {
    return Hdf5Reader(folder / name).read<double>("/positions");
  };
  run_well(folder, command + "one.h5");
  CHECK(run(folder, ended_after("part_checkpoint.h5", 2) + as(3, command + "part.h5")).code != 0);
  run_well(folder, as(2, command + "part.h5 --resume"));
  const auto one = positions("one.h5"), part = positions("part.h5");
  REQUIRE(one.size() == part.size());
  double moved = 0, error = 0;
  CHECK(Hdf5Reader(folder / "part.h5").shape("/object/phase") ==
        Hdf5Reader(folder / "one.h5").shape("/object/phase"));
  run_well(folder, command + "still.h5 --position-rate 1e-6");
  const auto still = positions("still.h5");
  for (std::size_t i = 0; i < one.size(); ++i) {
    error = std::max(error, std::abs(one[i] - part[i]));
    moved = std::max(moved, std::abs(one[i] - still[i]));
  }
  CHECK(moved > 0.1);
  CHECK(error < 0.01);
}

TEST_CASE("sums in order are the same in every run of as many processes") {
  skip_without_mpi();
  const Scene scene(41);
  const auto run_of = [&](const std::string& name) {
    run_well(scene.folder,
             as(3, reconstruct + " --star particles.star --reproducible --out " + name + ".mrc"));
    return scene.map(name + ".mrc");
  };
  CHECK(run_of("one") == run_of("other"));
}

TEST_CASE("what one of the processes finds wrong is one message, one code and no output") {
  skip_without_mpi();
  const Scene particles(8);
  const TemporaryFolder& folder = particles.folder;
  const auto before = files_in(folder);
  const std::string command = reconstruct + " --star particles.star --out map.mrc ";
  Outcome outcome = run(folder, as(3, command + "--kernel cubic"));
  INFO(outcome.err);
  CHECK(outcome.code == 2);
  CHECK(count_of("bracewell-reconstruct: ", outcome.err) == 1);
  // The last image, which only the last process reads, is not there.
  fs::resize_file(folder / "images.mrcs", fs::file_size(folder / "images.mrcs") - 4);
  outcome = run(folder, as(3, command));
  INFO(outcome.err);
  CHECK(outcome.code == 2);
  CHECK(count_of("images.mrcs: ", outcome.err) - count_of("note: images.mrcs: ", outcome.err) == 1);
  CHECK(files_in(folder) == before);
}

TEST_CASE("a fault is one message where one process finds it late, and ending the others takes a while") {
  skip_without_mpi();
  const Scene particles(8);
  const TemporaryFolder& folder = particles.folder;
  fs::resize_file(folder / "images.mrcs", fs::file_size(folder / "images.mrcs") - 4);
  const std::string command = reconstruct + " --star particles.star --out map.mrc";
  const Outcome outcome = run(folder, as(1, "env " + with_fault("slow:400") + command) + " : -n 1 env " +
                                          with_fault("lasting:2000") + command);
  INFO(outcome.err);
  CHECK(outcome.code == 2);
  CHECK(count_of("is truncated", outcome.err) == 1);
}

TEST_CASE("--help and --version of several processes are said once; of one of them they end all",
          "[.turn-4]") {
  skip_without_mpi();
  const TemporaryFolder folder;
  const std::vector<std::string> rests{"", " --no-such-option", " --strict"};
  std::size_t turn = 0;
  for (const std::string& program :
       {reconstruct, refine, project, tomography, ptychography, std::string(BRACEWELL_CLASSIFY),
        std::string(BRACEWELL_MATCH), std::string(BRACEWELL_STAR)}) {
    const std::string name = fs::path(program).filename().string(), patient = "timeout 60 ";
    INFO(name);
    const std::string help = run_well(folder, program + " --help");
    CHECK(run_well(folder, patient + as(3, program + " --help")) == help);
    CHECK(count_of(name, run_well(folder, patient + as(3, program + " --version"))) == 1);
    // The others have work to do, or a command line that is wrong; one of three for each program, as what ends them is common.
    const std::string& rest = rests[turn++ % rests.size()];
    const Outcome outcome = run(folder, patient + as(1, program + " --help") + " : -n 2 " + program + rest);
    INFO(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(count_of(name + ": ", outcome.err) == 1);
    const Outcome last =
        run(folder, patient + as(2, program + " --strict") + " : -n 1 " + program + " --help");
    INFO(last.err);
    CHECK(last.code == 2);
  }
  CHECK(files_in(folder).empty());
}

TEST_CASE("a process that is killed ends the others, without output") {
  skip_without_mpi();
  const Scene particles(8);
  const auto before = files_in(particles.folder);
  const Outcome outcome = run(particles.folder, as(2, reconstruct + " --star particles.star --out map.mrc") +
                                                    " : -n 1 sh -c 'kill -9 $$'");
  INFO(outcome.err);
  CHECK(outcome.code != 0);
  CHECK(files_in(particles.folder) == before);
}
