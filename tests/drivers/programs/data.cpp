// SPDX-License-Identifier: MIT
// The public data that lie beside the checkout, by the commands of docs/programs/cryo-em.md.
#include "support.hpp"

using namespace DriverTest;

namespace {

const std::string project = BRACEWELL_PROJECT, reconstruct = BRACEWELL_RECONSTRUCT, refine = BRACEWELL_REFINE;
const std::string as_relion = " --kernel linear --oversampling 2 --correction radial ";

/// "22.7" of "half maps agree to 22.7 A".
double number_after(const std::string& text, const std::string& words) {
  const std::size_t at = text.find(words);
  INFO(text);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + words.size()));
}

std::string data(const std::string& name) { return shared_data("cryoem/" + name).string(); }

} // namespace

TEST_CASE("simulated 70S ribosomes reconstruct the map that they come from") {
  const TemporaryFolder folder;
  run_well(folder, reconstruct + " --star " + data("sim70S_particles.star") + " --reference " +
                       data("ribosome70S_64.mrc") + " --out map.mrc");
  const auto correlation = read_correlations(folder / "map_fsc.txt", 1);
  for (std::size_t shell = 0; shell <= 11; ++shell)
    CHECK(correlation[shell] >= 0.97);
  CHECK(correlation[13] >= 0.8);
}

TEST_CASE("projections agree with images that RELION made") {
  data("ribosome70S_64.mrc");
  const TemporaryFolder folder;
  const auto error = [&](const std::string& map, const std::string& images, int offset) {
    run_well(folder, project + " --map " + data(map) + " --star " + data(images + ".star") +
                         " --out ours.mrcs" + as_relion);
    return relative_error(read_stack(folder / "ours.mrcs").values,
                          rolled(read_stack(data(images + ".mrcs")), -offset, -offset));
  };
  CHECK(error("ribosome70S_64.mrc", "rln_proj_64_centered", 0) < 1e-3);
  CHECK(error("ribosome70S_64.mrc", "rln_proj_64_shifted", 0) < 1e-3);
  // RELION moves the origin of an odd box to pixel ceil(n / 2) instead of floor(n / 2).
  CHECK(error("clean70SRibosome_vol_65p.mrc", "rln_proj_65", 1) < 1e-3);
}

TEST_CASE("toy projections reconstruct their model") {
  const TemporaryFolder folder;
  run_well(folder, reconstruct + " --star " + data("toy_projections_poses.star") + " --reference " +
                       data("toymodel_small_nocenter.mrc") + " --out map.mrc");
  for (const double correlation : read_correlations(folder / "map_fsc.txt", 1))
    CHECK(correlation > 0.98);
}

TEST_CASE("particles without poses are refused by name of the column") {
  const TemporaryFolder folder;
  expect_bad_input(folder, reconstruct + " --star " + data("toy_projections.star") + " --out map.mrc",
                   {"toy_projections.star", "rlnAngleRot"});
}

TEST_CASE("real particles are processed, with warnings about what their headers lack") {
  const TemporaryFolder folder;
  for (const char* name : {"sta_testing_bin8.star", "relion31.star", "relion31.v2.star"}) {
    // One step of the weights' iteration in place of twenty, and no padding: grids of 512 pixels take minutes of a core.
    const Outcome outcome = run(folder, reconstruct + " --star " + data(name) +
                                            " --gridding-steps 1 --oversampling 1 --out map.mrc");
    INFO(name << '\n' << outcome.err);
    CHECK(outcome.code == 0);
    CHECK(outcome.err.find("warning: ") != std::string::npos);
    CHECK(outcome.err.find("no 'MAP ' tag") != std::string::npos);
    CHECK(outcome.err.find("states pixels of") != std::string::npos);
    CHECK(fs::exists(folder / "map_slices.png"));
  }
}

TEST_CASE("a map with permuted axes, an extended header and a long and a short side is projected") {
  const TemporaryFolder folder;
  write_text(folder / "poses.star", star_text({{}}, 73)); // all angles zero: the sum along z
  const Outcome outcome =
      run(folder, project + " --map " + data("EMD-3001.map") + " --star poses.star --out out.mrcs");
  CHECK(outcome.code == 0);
  CHECK(outcome.err.find("not cubic") != std::string::npos);
  const Stack image = read_stack(folder / "out.mrcs");
  REQUIRE(image.width == 73);
  const MrcReader reader(data("EMD-3001.map"));
  const auto map = reader.read_volume();
  const auto [nx, ny, nz] = reader.header().size;
  std::vector<float> sum(73 * 73);
  for (std::int64_t z = 0; z < nz; ++z)
    for (std::int64_t y = 0; y < ny; ++y)
      for (std::int64_t x = 0; x < nx; ++x)
        sum[static_cast<std::size_t>((y + 36 - ny / 2) * 73 + x + 36 - nx / 2)] +=
            map[static_cast<std::size_t>((z * ny + y) * nx + x)];
  CHECK(relative_error(image.values, sum) < 0.05); // but for the frequencies beyond Nyquist's circle
}

TEST_CASE("the commands of docs/refine.md lead from coarse poses to a better map", "[.turn-3]") {
  const TemporaryFolder folder;
  const std::string environment = "export PROGRAMS=" + fs::path(refine).parent_path().string() + "\n";
  const std::string commands = commands_of(fs::path(BRACEWELL_SOURCE_DIR) / "docs/refine.md");
  REQUIRE(commands.find("--rounds 3") != std::string::npos);
  const std::string summaries = run_well(folder, "set -e\n" + environment + commands);
  INFO(summaries);
  // As the page has them: coarse, refined (by refine, and by reconstruct), and again in one round.
  const auto from = [&](const char* file) {
    const std::size_t at = summaries.find(file);
    REQUIRE(at != std::string::npos);
    return summaries.substr(at);
  };
  CHECK(number_after(from("coarse.mrc: "), "resolution ") > 9.4);
  CHECK(number_after(from("coarse.mrc: "), "against the reference ") > 9.6);
  CHECK(number_after(from("refined.star: "), "half maps agree to ") < 6.6);
  CHECK(number_after(from("refined.mrc: "), "resolution ") < 6.6);
  CHECK(number_after(from("refined.mrc: "), "against the reference ") < 6.65);
  CHECK(number_after(from("again.star: "), "half maps agree to ") < 6.7);
  CHECK(number_after(from("own.mrc: "), "against the reference ") < 6.7);

  // Poses within 3 degrees and 1 pixel of the true ones, and from nothing of what the true ones refine to.
  const auto share = [&](const char* found, const char* wanted) {
    const auto poses_of = [&](const char* name) { return read_particles(folder / name, {.images = false}); };
    const Particles expected = poses_of(wanted);
    return share_of_close_poses(
        poses_of(found), [&](std::size_t i) { return pose_in(expected, i); }, 3, 1);
  };
  CHECK(share("coarse.star", "true.star") < 0.05);
  CHECK(share("refined.star", "true.star") > 0.9);
  CHECK(share("nothing.star", "true.star") < 0.01);
  CHECK(share("found.star", "true.star") > 0.93);
  CHECK(share("found.star", "from_file.star") > 0.98);
}
