// SPDX-License-Identifier: MIT
#include "jobs.hpp"

#include "common/mrc.hpp"
#include "common/pipeline.hpp"
#include "common/star.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <thread>

namespace ProgramBench {
namespace {

using namespace Bracewell::Examples;

constexpr double pixel_size = 1.5; // Angstrom

double uniform(std::mt19937& generator, double low, double high) {
  return low + (high - low) * static_cast<double>(generator()) / 4294967296.0;
}

/// Gaussian blobs in the middle half of the box.
std::vector<float> make_map(int box) {
  std::mt19937 generator(1956);
  const auto edge = static_cast<std::size_t>(box);
  std::vector<float> map(edge * edge * edge);
  for (int blob = 0; blob < 60; ++blob) {
    const double deviation = box / 40.0;
    std::array<std::vector<float>, 3> profiles; // along z, y and x
    for (auto& profile : profiles) {
      const double centre = box / 2 + uniform(generator, -box / 5.0, box / 5.0);
      for (int i = 0; i < box; ++i)
        profile.push_back(
            static_cast<float>(std::exp(-(i - centre) * (i - centre) / (2 * deviation * deviation))));
    }
    for (std::size_t z = 0; z < edge; ++z)
      for (std::size_t y = 0; y < edge; ++y) {
        const float factor = profiles[0][z] * profiles[1][y];
        if (factor > 1e-6f)
          for (std::size_t x = 0; x < edge; ++x)
            map[(z * edge + y) * edge + x] += factor * profiles[2][x];
      }
  }
  return map;
}

/// Replaces a column of the particles by make(its value).
template <class Make>
void replace(StarTable& table, const char* name, const Make& make) {
  const std::size_t column = *table.find(name);
  std::vector<std::string> values;
  for (std::size_t row = 0; row < table.rows(); ++row)
    values.push_back(make(table.value(row, column)));
  table.set_column(name, std::move(values));
}

/// images.star with poses that are up to a degree off.
void make_turned(const std::filesystem::path& folder) {
  StarDocument document = read_star(folder / "images.star");
  std::mt19937 generator(1956);
  for (const char* const angle : {"rlnAngleRot", "rlnAngleTilt", "rlnAnglePsi"})
    replace(*document.find("particles"), angle,
            [&](const std::string& value) { return fixed(std::stod(value) + uniform(generator, -1, 1)); });
  write_star(folder / "turned.star", document);
}

/// The images in float16.
void make_halves(const std::filesystem::path& folder) {
  const MrcReader reader(folder / "images.mrcs");
  MrcWriter writer(folder / "halves.mrcs", MrcWriter::Kind::Stack, reader.width(), reader.height(),
                   {.mode = MrcMode::Float16, .pixel_size = pixel_size});
  Stage convert{.name = "convert", .threads = int(std::thread::hardware_concurrency())};
  convert.work = [&](std::int64_t i) {
    std::vector<float> image(static_cast<std::size_t>(reader.width() * reader.height()));
    reader.read_images(i, 1, image);
    writer.write_at(i, image);
  };
  run_stages(reader.images(), {convert});
  writer.close();
  StarDocument document = read_star(folder / "images.star");
  replace(*document.find("particles"), "rlnImageName",
          [](const std::string& value) { return value.substr(0, value.find('@')) + "@halves.mrcs"; });
  write_star(folder / "halves.star", document);
}

StarDocument make_poses(const Sizes& sizes) {
  StarTable optics, table;
  optics.name = "optics";
  optics.version = table.version = 30001;
  optics.columns = {"rlnOpticsGroup",       "rlnOpticsGroupName", "rlnVoltage",   "rlnSphericalAberration",
                    "rlnAmplitudeContrast", "rlnImagePixelSize",  "rlnImageSize", "rlnImageDimensionality"};
  optics.values = {"1", "opticsGroup1", "300.0", "2.7", "0.1", fixed(pixel_size), std::to_string(sizes.box),
                   "2"};
  table.name = "particles";
  table.columns = {"rlnOpticsGroup",  "rlnAngleRot", "rlnAngleTilt", "rlnAnglePsi",     "rlnOriginXAngst",
                   "rlnOriginYAngst", "rlnDefocusU", "rlnDefocusV",  "rlnDefocusAngle", "rlnRandomSubset"};
  std::mt19937 generator(1956);
  const auto random = [&](double low, double high) { return uniform(generator, low, high); };
  for (std::int64_t i = 0; i < sizes.particles; ++i) {
    const double tilt = std::acos(random(-1, 1)) * 180 / std::numbers::pi, defocus = random(8000, 20000);
    for (const double value : {random(-180, 180), tilt, random(-180, 180), random(-3, 3), random(-3, 3),
                               defocus + 150, defocus - 150, random(0, 180)}) {
      if (table.values.size() % table.columns.size() == 0)
        table.values.push_back("1");
      table.values.push_back(fixed(value));
    }
    table.values.push_back(std::to_string(1 + generator() % 2));
  }
  return {{optics, table}};
}

} // namespace

std::vector<Job> cryoem_jobs(const std::filesystem::path& folder, const Sizes& sizes, bool relion) {
  write_volume(folder / "map.mrc", make_map(sizes.box), {sizes.box, sizes.box, sizes.box},
               {.pixel_size = pixel_size});
  write_star(folder / "poses.star", make_poses(sizes));
  const double items = double(sizes.particles), pixels = items * sizes.box * sizes.box;
  const std::vector<std::string> project{BRACEWELL_PROJECT, "--map",      "map.mrc",
                                         "--star",          "poses.star", "--timings"};
  const auto job = [&](const std::string& name, std::vector<std::string> command,
                       const std::vector<std::string>& more, double bytes_per_pixel = 4) {
    command.insert(command.end(), more.begin(), more.end());
    return Job{name, command, items, bytes_per_pixel * pixels, "images"};
  };
  run(folder, job("images", project, {"--ctf", "--noise", "0.1", "--out", "images.mrcs"}));
  make_halves(folder);
  make_turned(folder);
  std::vector<Job> jobs{
      job("project, CTF and noise", project, {"--ctf", "--noise", "0.1", "--out", "projections.mrcs"}),
      job("project as RELION, CTF", project,
          {"--ctf", "--kernel", "linear", "--correction", "radial", "--out", "projections.mrcs"}),
      job("reconstruct, CTF", {BRACEWELL_RECONSTRUCT, "--timings"},
          {"--star", "images.star", "--out", "reconstructed.mrc"}),
      job("reconstruct, CTF, float16", {BRACEWELL_RECONSTRUCT, "--timings"},
          {"--star", "halves.star", "--out", "reconstructed.mrc"}, 2),
      job("refine, CTF, one round", {BRACEWELL_REFINE, "--timings"},
          {"--star", "turned.star", "--map", "map.mrc", "--out", "refined.star"})};
  jobs[0].outputs = jobs[1].outputs = {"projections.mrcs"};
  jobs[3].bytes /= 2;
  if (relion) {
    jobs.push_back(job("relion_project, CTF", {"relion_project", "--i", "map.mrc", "--ang", "poses.star"},
                       {"--o", "relion", "--angpix", fixed(pixel_size), "--ctf"}));
    jobs.push_back(job("relion_reconstruct, CTF", {"relion_reconstruct", "--i", "images.star", "--o"},
                       {"relion.mrc", "--pad", "2", "--ctf"}));
  }
  return jobs;
}

} // namespace ProgramBench
