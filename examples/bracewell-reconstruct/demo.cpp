// SPDX-License-Identifier: MIT
#include "bracewell-reconstruct/demo.hpp"

#include "common/atomic_file.hpp"
#include "common/picture.hpp"
#include "cryoem/image_output.hpp"
#include "cryoem/map.hpp"
#include "cryoem/molecule.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/geometry/euler.hpp>
#include <bracewell/geometry/rotations.hpp>

#include <cstdio>
#include <random>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

Molecule make_molecule(const Space& space, int box) {
  const std::vector<Blob> blobs = helix_and_domain(box);
  Molecule molecule{DeviceView<Blob*>("Bracewell::examples::blobs", blobs.size()), box};
  copy_values(space, molecule.blobs, host_view(blobs));
  space.fence("Bracewell::examples::molecule");
  return molecule;
}

/// The molecule itself, limited to the frequencies that the images have.
std::vector<float> density(const Space& space, const Molecule& molecule) {
  const int box = molecule.box;
  const auto spectrum = allocate<MapSpectrum>("spectrum", 1, box, box, box / 2 + 1);
  const auto map = allocate<Map>("map", 1, box, box, box);
  FillMoleculeSpectra<3>{molecule, spectrum.data(), 1 / static_cast<float>(box * box * box)}.run(space, 1);
  FFT<Space, 3, Kokkos::complex<float>, float>(space, {box, box, box}).execute(space, spectrum, map);
  return to_host(space, map);
}

/// Random poses, shifts of a few pixels, defoci between 0.8 and 2 micrometres; two half sets.
StarDocument particle_table(const Demo& demo) {
  std::mt19937_64 generator(1956);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * std::generate_canonical<double, 53>(generator);
  };
  StarTable optics;
  optics.name = "optics";
  optics.version = 30001;
  optics.columns = {"rlnOpticsGroup",       "rlnOpticsGroupName", "rlnVoltage",   "rlnSphericalAberration",
                    "rlnAmplitudeContrast", "rlnImagePixelSize",  "rlnImageSize", "rlnImageDimensionality"};
  optics.values = {
      "1", "opticsGroup1", "300.0", "2.7", "0.1", fixed(demo.pixel_size), std::to_string(demo.box), "2"};
  StarTable table;
  table.name = "particles";
  table.version = 30001;
  table.columns = {"rlnImageName", "rlnOpticsGroup",  "rlnAngleRot",     "rlnAngleTilt",
                   "rlnAnglePsi",  "rlnOriginXAngst", "rlnOriginYAngst", "rlnDefocusU",
                   "rlnDefocusV",  "rlnDefocusAngle", "rlnRandomSubset"};
  for (std::size_t i = 0; i < demo.particles; ++i) {
    const auto angles = euler_angles(rotation_matrix(random_rotation<double>(generator)));
    const double shift = 2 * demo.pixel_size, defocus = uniform(8000, 20000), astigmatism = uniform(0, 300);
    char name[64];
    std::snprintf(name, sizeof name, "%06zu@particles.mrcs", i + 1);
    for (const std::string& value :
         {std::string(name), std::string("1"), fixed(angles.rot), fixed(angles.tilt), fixed(angles.psi),
          fixed(uniform(-shift, shift)), fixed(uniform(-shift, shift)), fixed(defocus + astigmatism, 2),
          fixed(defocus - astigmatism, 2), fixed(uniform(0, 180), 2), std::to_string(1 + i % 2)})
      table.values.push_back(value);
  }
  return {{optics, table}};
}

/// Some of the images, to see what is reconstructed from.
void write_gallery(const fs::path& path, const fs::path& stack, const Demo& demo) {
  constexpr std::int64_t rows = 2, columns = 5;
  const MrcReader reader(stack);
  const auto width = static_cast<int>(reader.width()), height = static_cast<int>(reader.height());
  std::vector<float> image(static_cast<std::size_t>(width * height));
  std::vector<Picture> lines;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<Picture> line;
    for (std::int64_t column = 0; column < columns; ++column) {
      reader.read_images(row * columns + column, 1, image);
      line.push_back(grey_panel({.values = image,
                                 .width = width,
                                 .height = height,
                                 .range = percentile_range(image),
                                 .pixel_size = demo.pixel_size,
                                 .unit = "\u00c5",
                                 .points = 3 * width}));
    }
    lines.push_back(side_by_side(line));
  }
  write_picture(path, stacked(lines));
}

} // namespace

void simulate(const Space& space, const Demo& demo, const fs::path& folder) {
  fs::create_directories(folder);
  for (const char* const name : {"truth.mrc", "particles.star", "particles.mrcs", "map.mrc"})
    const AtomicFile writable(folder / name); // before anything is
  const Molecule molecule = make_molecule(space, demo.box);
  write_volume(folder / "truth.mrc", density(space, molecule), {demo.box, demo.box, demo.box},
               {.pixel_size = demo.pixel_size});
  const fs::path star = folder / "particles.star", stack = folder / "particles.mrcs";
  write_star(star, particle_table(demo));
  Particles particles = read_particles(star, {.images = false});
  ImageOutput output(space, particles, demo.box,
                     {.ctf = true, .signal_to_noise = demo.signal_to_noise, .pixel_size = demo.pixel_size});
  output.open(stack, {"Bracewell, a simulation"});
  output.write([&](const Poses<float, Memory>& poses, const auto& spectra) {
    FillMoleculeSpectra<2>{molecule, spectra.data(), 1 / static_cast<float>(demo.box * demo.box), poses}.run(
        space, static_cast<std::int64_t>(spectra.extent(1)));
  });
  write_gallery(folder / ("particles" + demo.picture_ending), stack, demo);
}

} // namespace Bracewell::Examples
