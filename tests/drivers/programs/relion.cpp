// SPDX-License-Identifier: MIT
// Agreement with RELION's own programs, where they are installed (Debian: apt-get install relion).
#include "support.hpp"

#include <catch2/generators/catch_generators.hpp>

using namespace DriverTest;

namespace {

const std::string project = BRACEWELL_PROJECT, reconstruct = BRACEWELL_RECONSTRUCT;
const std::string as_relion = " --kernel linear --oversampling 2 --correction radial ";

void require_relion() {
  if (std::system("command -v relion_project >/dev/null && command -v relion_reconstruct >/dev/null") != 0)
    SKIP("RELION is not installed");
}

void write_scene(const TemporaryFolder& folder, const std::vector<float>& map, int box, int count,
                 double voxel) {
  write_map(folder / "map.mrc", map, box, voxel);
  write_text(folder / "poses.star", star_text(random_particles(count, 3), box, "", voxel));
}

/// Projections of both programs, and the error of ours, after theirs are moved by minus `offset` pixels in x
/// and y.
double projection_error(const TemporaryFolder& folder, const std::string& option, double voxel, int offset) {
  const std::string pixel = std::to_string(voxel);
  run_well(folder, "relion_project --i map.mrc --ang poses.star --o theirs --angpix " + pixel + " " + option);
  run_well(folder, project + " --map map.mrc --star poses.star --out ours.mrcs" + as_relion + option);
  return relative_error(read_stack(folder / "ours.mrcs").values,
                        rolled(read_stack(folder / "theirs.mrcs"), -offset, -offset));
}

} // namespace

TEST_CASE("projections agree with relion_project: angles, origins, contrast transfer") {
  require_relion();
  const TemporaryFolder folder;
  write_scene(folder, gaussian_map(random_gaussians(30, 13, 2), 64), 64, 100, pixel_size);
  CHECK(projection_error(folder, "", pixel_size, 0) < 1e-5);
  CHECK(projection_error(folder, "--ctf", pixel_size, 0) < 1e-5);
}

TEST_CASE("projections agree with relion_project in odd boxes, whose images RELION puts one pixel off") {
  require_relion();
  const TemporaryFolder folder;
  write_scene(folder, gaussian_map(random_gaussians(30, 13, 2), 65), 65, 20, pixel_size);
  CHECK(projection_error(folder, "", pixel_size, 1) < 1e-5);
}

TEST_CASE("reconstruction from relion_project's images is as close to the truth as relion_reconstruct's") {
  require_relion();
  const bool ribosome = GENERATE(false, true);
  const TemporaryFolder folder;
  constexpr int box = 64;
  const std::vector<float> truth = ribosome
                                       ? MrcReader(shared_data("cryoem/ribosome70S_64.mrc")).read_volume()
                                       : gaussian_map(random_gaussians(30, 13, 2), box);
  const double voxel = ribosome ? 5.078125 : pixel_size;
  write_scene(folder, truth, box, 1000, voxel);
  for (const std::string option : {"", "--ctf"}) {
    run_well(folder, "relion_project --i map.mrc --ang poses.star --o images --angpix " +
                         std::to_string(voxel) + " " + option);
    run_well(folder, "relion_reconstruct --i images.star --o theirs.mrc --pad 2 " + option);
    run_well(folder,
             reconstruct + " --star images.star --out ours.mrc " + (option.empty() ? "--no-ctf" : option));
    const double theirs = error_in_sphere(MrcReader(folder / "theirs.mrc").read_volume(), truth, box);
    const double ours = error_in_sphere(MrcReader(folder / "ours.mrc").read_volume(), truth, box);
    WARN((ribosome ? "ribosome " : "Gaussians ")
         << option << ": in-sphere error " << ours << ", RELION's " << theirs);
    CHECK(ours <= theirs);
  }
}
