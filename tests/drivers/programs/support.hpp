// SPDX-License-Identifier: MIT
#pragma once

#include "../../common/support.hpp"

#include "common/mrc.hpp"
#include "common/star.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <sys/wait.h>

/// What the tests of the drivers share.
namespace DriverTest {

using namespace Bracewell::Examples;
using namespace IoTest;

struct Outcome {
  int code;
  std::string out, err;
};

/// Runs a shell command in a folder.
inline Outcome run(const TemporaryFolder& folder, const std::string& command) {
  const std::string in_folder =
      "cd '" + folder.path().string() + "' && ( " + command + " ) >stdout.text 2>stderr.text";
  const int status = std::system(in_folder.c_str());
  INFO(command);
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), read_text(folder / "stdout.text"), read_text(folder / "stderr.text")};
}

/// Runs a command that has to succeed; returns its standard output.
inline std::string run_well(const TemporaryFolder& folder, const std::string& command) {
  const Outcome outcome = run(folder, command);
  INFO(command << '\n' << outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.out;
}

/// The commands of a page, what is in its blocks of sh.
inline std::string commands_of(const fs::path& page) {
  std::istringstream text(read_text(page));
  std::string commands;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```"))
      inside = line == "```sh";
    else if (inside)
      commands += line + '\n';
  }
  return commands;
}

/// What stands before a command for a fault of tests/drivers/faults.
inline std::string with_fault(const std::string& fault) {
  return "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 FAULT=" + fault +
         " LD_PRELOAD=" BRACEWELL_FAULTS " ";
}

/// The same for a command that ends by SIGTERM once it has written a file so many times.
inline std::string ended_after(const std::string& file, int times) {
  return with_fault("ended:" + file + ":" + std::to_string(times));
}

/// Names of the files in a folder but for those of `run`, in order.
inline std::vector<std::string> files_in(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (!entry.path().filename().string().ends_with(".text"))
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

/// The command has to end with code 2, one line on stderr that has every one of `words`, nothing on stdout
/// and no new file.
inline void expect_bad_input(const TemporaryFolder& folder, const std::string& command,
                             const std::vector<std::string>& words) {
  const auto before = files_in(folder);
  const Outcome outcome = run(folder, command);
  INFO(command << '\n' << outcome.err);
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  // Notes and warnings are lines of their own.
  std::string message;
  int lines = 0;
  for (std::size_t begin = 0, end; begin < outcome.err.size(); begin = end + 1) {
    end = outcome.err.find('\n', begin);
    REQUIRE(end != std::string::npos);
    const std::string line = outcome.err.substr(begin, end - begin);
    if (line.find(": warning: ") == std::string::npos && line.find(": note: ") == std::string::npos) {
      message = line;
      ++lines;
    }
  }
  CHECK(lines == 1);
  for (const auto& word : words) {
    INFO(word);
    CHECK(message.find(word) != std::string::npos);
  }
  CHECK(files_in(folder) == before);
}

struct Stack {
  int width, height, count;
  std::vector<float> values; ///< [count, height, width]
};

inline Stack read_stack(const fs::path& path) {
  const MrcReader reader(path);
  Stack stack{static_cast<int>(reader.width()),
              static_cast<int>(reader.height()),
              static_cast<int>(reader.images()),
              {}};
  stack.values.resize(static_cast<std::size_t>(reader.width() * reader.height() * reader.images()));
  reader.read_images(0, reader.images(), stack.values);
  return stack;
}

/// |a - b| / |b|.
inline double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    norm += double(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

/// The same within the sphere that fits the box of volumes [box, box, box].
inline double error_in_sphere(const std::vector<float>& a, const std::vector<float>& b, int box) {
  std::vector<float> inside_a, inside_b;
  std::size_t i = 0;
  for (int z = 0; z < box; ++z)
    for (int y = 0; y < box; ++y)
      for (int x = 0; x < box; ++x, ++i) {
        const int dx = x - box / 2, dy = y - box / 2, dz = z - box / 2;
        if (4 * (dx * dx + dy * dy + dz * dz) < box * box) {
          inside_a.push_back(a[i]);
          inside_b.push_back(b[i]);
        }
      }
  return relative_error(inside_a, inside_b);
}

/// Images moved cyclically by (dx, dy) pixels.
inline std::vector<float> rolled(const Stack& stack, int dx, int dy) {
  std::vector<float> values(stack.values.size());
  for (int p = 0; p < stack.count; ++p)
    for (int y = 0; y < stack.height; ++y)
      for (int x = 0; x < stack.width; ++x) {
        const int to_x = (x + dx + stack.width) % stack.width, to_y = (y + dy + stack.height) % stack.height;
        values[static_cast<std::size_t>((p * stack.height + to_y) * stack.width + to_x)] =
            stack.values[static_cast<std::size_t>((p * stack.height + y) * stack.width + x)];
      }
  return values;
}

/// A Gaussian, lengths in pixels from the centre floor(box / 2): a map and its projections in closed form.
struct Gaussian {
  double x, y, z, deviation, amplitude;
};

inline std::vector<Gaussian> random_gaussians(int count, double spread, double deviation, unsigned seed = 3) {
  std::mt19937 generator(seed);
  const auto uniform = [&] { return generator() / 4294967296.0 - 0.5; };
  std::vector<Gaussian> gaussians;
  for (int i = 0; i < count; ++i)
    gaussians.push_back({2 * spread * uniform(), 2 * spread * uniform(), 2 * spread * uniform(),
                         deviation * (1 + 0.5 * uniform()), 1 + uniform()});
  return gaussians;
}

/// exp(-(x - centre)^2 / (2 deviation^2)) at 0 to count - 1: a factor of a Gaussian, which is one along each axis.
inline std::vector<double> gaussian_row(double centre, double deviation, int count) {
  std::vector<double> row;
  for (int x = 0; x < count; ++x)
    row.push_back(std::exp(-(x - centre) * (x - centre) / (2 * deviation * deviation)));
  return row;
}

inline std::vector<float> gaussian_map(const std::vector<Gaussian>& gaussians, int box) {
  std::vector<double> map(static_cast<std::size_t>(box * box * box));
  for (const auto& g : gaussians) {
    const auto along_x = gaussian_row(box / 2 + g.x, g.deviation, box);
    const auto along_y = gaussian_row(box / 2 + g.y, g.deviation, box);
    const auto along_z = gaussian_row(box / 2 + g.z, g.deviation, box);
    auto voxel = map.begin();
    for (const double z : along_z)
      for (const double y : along_y)
        for (const double x : along_x)
          *voxel++ += g.amplitude * z * y * x;
  }
  return {map.begin(), map.end()};
}

struct Particle {
  double rot, tilt, psi; ///< degrees
  double x, y;           ///< rlnOrigin, pixels
  double defocus_u, defocus_v, angle;
};

inline std::vector<Particle> random_particles(int count, double shift, unsigned seed = 5) {
  std::mt19937 generator(seed);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * generator() / 4294967296.0;
  };
  std::vector<Particle> particles;
  for (int i = 0; i < count; ++i) {
    Particle p{uniform(-180, 180),
               std::acos(uniform(-1, 1)) * 180 / std::numbers::pi,
               uniform(-180, 180),
               0,
               0,
               0,
               0,
               0};
    p.x = uniform(-shift, shift);
    p.y = uniform(-shift, shift);
    p.defocus_u = uniform(12000, 20000);
    p.defocus_v = p.defocus_u - uniform(0, 500);
    p.angle = uniform(0, 180);
    particles.push_back(p);
  }
  return particles;
}

/// RELION's matrix: rows are the image's axes in the frame of the volume.
inline std::array<std::array<double, 3>, 3> relion_matrix(const Particle& p) {
  const auto turn = [](double degrees) { return degrees * std::numbers::pi / 180; };
  const double ca = std::cos(turn(p.rot)), sa = std::sin(turn(p.rot)), cb = std::cos(turn(p.tilt));
  const double sb = std::sin(turn(p.tilt)), cg = std::cos(turn(p.psi)), sg = std::sin(turn(p.psi));
  return {{{cg * cb * ca - sg * sa, cg * cb * sa + sg * ca, -cg * sb},
           {-sg * cb * ca - cg * sa, -sg * cb * sa + cg * ca, sg * sb},
           {sb * ca, sb * sa, cb}}};
}

/// Line integrals, along the third axis of the pose, of the Gaussians.
inline std::vector<float> gaussian_projections(const std::vector<Gaussian>& gaussians,
                                               const std::vector<Particle>& particles, int box) {
  std::vector<float> images;
  for (const auto& p : particles) {
    const auto A = relion_matrix(p);
    std::vector<double> image(static_cast<std::size_t>(box * box));
    for (const auto& g : gaussians) {
      const double x0 = A[0][0] * g.x + A[0][1] * g.y + A[0][2] * g.z - p.x;
      const double y0 = A[1][0] * g.x + A[1][1] * g.y + A[1][2] * g.z - p.y;
      const auto along_x = gaussian_row(box / 2 + x0, g.deviation, box);
      const auto along_y = gaussian_row(box / 2 + y0, g.deviation, box);
      auto pixel = image.begin();
      for (const double y : along_y)
        for (const double x : along_x)
          *pixel++ += g.amplitude * g.deviation * std::sqrt(2 * std::numbers::pi) * y * x;
    }
    images.insert(images.end(), image.begin(), image.end());
  }
  return images;
}

constexpr double pixel_size = 3;

/// A STAR 3.1 file; with `stack` it names images in it.
inline std::string star_text(const std::vector<Particle>& particles, int box, const std::string& stack = "",
                             double pixel = pixel_size) {
  std::string text =
      "\n# version 30001\n\ndata_optics\n\nloop_\n_rlnOpticsGroup #1\n_rlnOpticsGroupName #2\n_rlnVoltage "
      "#3\n"
      "_rlnSphericalAberration #4\n_rlnAmplitudeContrast #5\n_rlnImagePixelSize #6\n_rlnImageSize #7\n"
      "_rlnImageDimensionality #8\n1 opticsGroup1 300.0 2.7 0.1 " +
      std::to_string(pixel) + " " + std::to_string(box) +
      " 2\n\n\n# version 30001\n\ndata_particles\n\nloop_\n_rlnOpticsGroup #1\n_rlnAngleRot #2\n"
      "_rlnAngleTilt #3\n_rlnAnglePsi #4\n_rlnOriginXAngst #5\n_rlnOriginYAngst #6\n_rlnDefocusU #7\n"
      "_rlnDefocusV #8\n_rlnDefocusAngle #9\n_rlnRandomSubset #10\n";
  if (!stack.empty())
    text += "_rlnImageName #11\n";
  for (std::size_t i = 0; i < particles.size(); ++i) {
    const auto& p = particles[i];
    char line[320];
    std::snprintf(line, sizeof line, "1 %.6f %.6f %.6f %.6f %.6f %.3f %.3f %.3f %zu", p.rot, p.tilt, p.psi,
                  pixel * p.x, pixel * p.y, p.defocus_u, p.defocus_v, p.angle, 1 + i % 2);
    text += line;
    if (!stack.empty())
      text += " " + std::to_string(i + 1) + "@" + stack;
    text += "\n";
  }
  return text;
}

/// Angle between two poses, degrees.
inline double angle_between(const Particle& one, const Particle& other) {
  const auto a = relion_matrix(one), b = relion_matrix(other);
  double trace = 0;
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 3; ++c)
      trace += a[r][c] * b[r][c];
  return std::acos(std::clamp((trace - 1) / 2, -1.0, 1.0)) * 180 / std::numbers::pi;
}

/// The pose of a particle of a file.
inline Particle pose_in(const Particles& particles, std::size_t i) {
  return {.rot = particles.rot[i],
          .tilt = particles.tilt[i],
          .psi = particles.psi[i],
          .x = particles.origin_x.present() ? particles.origin_x[i] : 0,
          .y = particles.origin_y.present() ? particles.origin_y[i] : 0,
          .defocus_u = 0,
          .defocus_v = 0,
          .angle = 0};
}

/// Share of particles that are no further than that from what expected(i) gives.
template <class Expected>
double share_of_close_poses(const Particles& found, const Expected& expected, double degrees, double pixels) {
  std::size_t close = 0;
  for (std::size_t i = 0; i < found.count; ++i) {
    const Particle one = pose_in(found, i), other = expected(i);
    close += angle_between(one, other) <= degrees && std::hypot(one.x - other.x, one.y - other.y) <= pixels;
  }
  return double(close) / double(found.count);
}

inline void write_map(const fs::path& path, const std::vector<float>& map, int box,
                      double voxel = pixel_size) {
  write_volume(path, map, {box, box, box}, {.pixel_size = voxel});
}

inline void write_stack(const fs::path& path, const std::vector<float>& images, int width, int height) {
  MrcWriter writer(path, MrcWriter::Kind::Stack, width, height, {.pixel_size = pixel_size});
  writer.write(images);
  writer.close();
}

/// Correlations by shell from a table of bracewell-reconstruct; column 0 is that of the half maps where there
/// are any.
inline std::vector<double> read_correlations(const fs::path& path, std::size_t column) {
  std::vector<double> values;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with('#'))
      continue;
    std::istringstream words(line);
    std::vector<std::string> row(std::istream_iterator<std::string>(words), {});
    REQUIRE(row.size() > 3 + column);
    values.push_back(std::stod(row[3 + column]));
  }
  return values;
}

/// Of star_text's electrons, Angstrom.
inline const double wavelength = 12.2643247 / std::sqrt(300e3 * (1 + 0.978466e-6 * 300e3));

/// RELION's CTF for star_text's microscope, at a frequency in 1/Angstrom.
inline double relion_ctf(const Particle& p, double u, double v, double further_phase = 0) {
  constexpr double pi = std::numbers::pi;
  const double lambda = wavelength, cs = 2.7e7;
  const double k2 = u * u + v * v;
  const double defocus =
      (p.defocus_u + p.defocus_v) / 2 +
      (p.defocus_u - p.defocus_v) / 2 * std::cos(2 * (std::atan2(v, u) - p.angle * pi / 180));
  return std::sin(pi * lambda * defocus * k2 - pi / 2 * cs * std::pow(lambda, 3) * k2 * k2 + std::asin(0.1) -
                  further_phase);
}

/// The image [n, n] whose spectrum is that of `image` times factor(u, v), frequencies in 1/Angstrom, by sums.
template <class Factor>
std::vector<float> filtered(const std::vector<float>& image, int n, const Factor& factor) {
  using Complex = std::complex<double>;
  std::vector<Complex> waves;
  for (int i = 0; i < n; ++i)
    waves.push_back(std::polar(1.0, -2 * std::numbers::pi * i / n));
  const auto wave = [&](int i) { return waves[static_cast<std::size_t>(i)]; };
  const auto frequency = [n](int i) { return i <= n / 2 ? i : i - n; };
  const auto at = [n](int y, int x) { return static_cast<std::size_t>(y * n + x); };
  std::vector<Complex> rows(image.size()), spectrum(image.size()), half(image.size());
  for (int y = 0; y < n; ++y)
    for (int kx = 0; kx < n; ++kx)
      for (int x = 0; x < n; ++x)
        rows[at(y, kx)] += double(image[at(y, x)]) * wave(kx * x % n);
  for (int ky = 0; ky < n; ++ky)
    for (int kx = 0; kx < n; ++kx) {
      Complex sum = 0;
      for (int y = 0; y < n; ++y)
        sum += rows[at(y, kx)] * wave(ky * y % n);
      spectrum[at(ky, kx)] = sum * factor(frequency(kx) / (n * pixel_size), frequency(ky) / (n * pixel_size));
    }
  for (int ky = 0; ky < n; ++ky)
    for (int x = 0; x < n; ++x)
      for (int kx = 0; kx < n; ++kx)
        half[at(ky, x)] += spectrum[at(ky, kx)] * std::conj(wave(kx * x % n));
  std::vector<float> result;
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x) {
      Complex sum = 0;
      for (int ky = 0; ky < n; ++ky)
        sum += half[at(ky, x)] * std::conj(wave(ky * y % n));
      result.push_back(static_cast<float>(sum.real() / (n * n)));
    }
  return result;
}

} // namespace DriverTest
