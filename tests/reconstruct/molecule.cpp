// The pieces together: a molecule of Gaussian blobs from CTF-modulated images given in closed form, against
// its density in closed form.

#include "../deep_copy.hpp"
#include "support.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/geometry/ctf.hpp>
#include <bracewell/geometry/euler.hpp>
#include <bracewell/geometry/rotations.hpp>
#include <bracewell/geometry/symmetry.hpp>
#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/reconstruct/fourier_shell_correlation.hpp>
#include <bracewell/reconstruct/normalise.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>
#include <bracewell/reconstruct/rolloff.hpp>

#include <catch2/catch_test_macros.hpp>

#include <random>

using namespace Bracewell;
using namespace ReconstructTest;

namespace {

constexpr double pi = Kokkos::numbers::pi, sigma = 1.6;

using Blobs = std::vector<Vector3<double>>; // positions (x, y, z) in pixels from the centre

/// Half spectra [1, P, n, n/2+1] of the molecule's projections: the transform of a Gaussian, phases of its
/// position.
template <class T>
Kokkos::View<Kokkos::complex<T>****, Kokkos::LayoutRight, Space>
images(const Blobs& blobs, const std::vector<Matrix3<double>>& matrices, int n) {
  Kokkos::View<Kokkos::complex<T>****, Kokkos::LayoutRight, Space> result("images", 1, matrices.size(), n,
                                                                          n / 2 + 1);
  std::vector<Kokkos::complex<T>> values;
  for (const auto& M : matrices)
    for (int row = 0; row < n; ++row)
      for (int x = 0; x <= n / 2; ++x) {
        const Vector3<double> k = M * Vector3<double>{double(x) / n, double(frequency(row, n)) / n, 0};
        const double envelope =
            std::exp(-2 * pi * pi * sigma * sigma * (k[0] * k[0] + k[1] * k[1] + k[2] * k[2]));
        std::complex<double> sum = 0;
        for (const auto& r : blobs)
          sum += std::polar(envelope, -2 * pi * (k[0] * r[0] + k[1] * r[1] + k[2] * r[2]));
        values.emplace_back(T(sum.real()), T(sum.imag()));
      }
  from_host(result, values);
  return result;
}

std::vector<double> density(const Blobs& blobs, int n) {
  std::vector<double> values;
  for (int z = 0; z < n; ++z)
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n; ++x) {
        double sum = 0;
        for (const auto& r : blobs)
          sum += std::exp(-(std::pow(x - n / 2 - r[0], 2) + std::pow(y - n / 2 - r[1], 2) +
                            std::pow(z - n / 2 - r[2], 2)) /
                          (2 * sigma * sigma));
        values.push_back(sum / std::pow(2 * pi * sigma * sigma, 1.5));
      }
  return values;
}

/// Relative L2 error, in the sphere of radius n/2 - 2, of the volume of n^3 voxels reconstructed from images
/// padded to N^2 pixels, each inserted with every operator. (Images that are not padded sample the volume too
/// sparsely near zero frequency for kernels with negative weights.)
template <class Kernel, class T>
double reconstruction_error(const Blobs& blobs, const std::vector<Matrix3<double>>& matrices,
                            const std::vector<Matrix3<double>>& operators, int n, int N) {
  const Space space;
  const int P = int(matrices.size());
  const auto spectra = images<T>(blobs, matrices, N);
  const Kokkos::View<T****, Kokkos::LayoutRight, Space> weights("weights", 1, P, N, N / 2 + 1);
  const Kokkos::View<CTF*, Space> ctfs("ctfs", P);
  const auto ctf = Kokkos::create_mirror_view(ctfs);
  for (int p = 0; p < P; ++p) // pixels of 4 Angstrom: every particle lacks other frequencies
    ctf(p) = CTF({.defocus_u = 12000.0 + 97 * p,
                  .defocus_v = 11000.0 + 97 * p,
                  .defocus_angle = 7.0 * p,
                  .spherical_aberration = 2.7,
                  .amplitude_contrast = 0.1});
  Test::deep_copy(ctfs, ctf);
  apply_ctf(space, ctfs, 4.0, HalfSpectrum{spectra, N});                           // the microscope
  apply_ctf(space, ctfs, 4.0, HalfSpectrum{spectra, N}, HalfSpectrum{weights, N}); // CTF, CTF^2 to insert

  const Shape padded{N, N, N};
  const auto data = make<Kokkos::complex<T>, 3>(1, stored(padded));
  const auto weight = make<T, 3>(1, stored(padded));
  for (const auto& S : operators) {
    const Kokkos::View<T****, Kokkos::LayoutRight, Space> poses("poses", 1, P, 3, 3);
    std::vector<double> elements;
    for (const auto& M : matrices)
      for (const auto& row : (S * M).elements)
        elements.insert(elements.end(), row, row + 3);
    from_host(poses, elements);
    backproject<Kernel>(space, HalfSpectrum{spectra, N}, {.matrices = poses},
                        {.data = HalfSpectrum{data, N},
                         .weight = HalfSpectrum{weight, N},
                         .weights = HalfSpectrum{weights, N}});
  }
  const Kokkos::View<double**, Kokkos::LayoutRight, Space> averages("averages", 1, N);
  normalise(space, HalfSpectrum{data, N}, HalfSpectrum{weight, N}, HalfSpectrum{data, N}, averages);
  const auto volume = make<T, 3>(1, padded), cropped = make<T, 3>(1, {n, n, n});
  const FFT<Space, 3, Kokkos::complex<T>, T> backward(space, {N, N, N});
  backward.execute(space, HalfSpectrum{data, N}, volume);
  crop_centre(space, volume, cropped, 1 / std::pow(N, 3));
  correct_rolloff<Kernel>(space, cropped, {N, N, N});

  const auto found = to_host(cropped);
  const auto truth = density(blobs, n);
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const Shape index = indices(std::int64_t(i), {n, n, n});
    if (std::hypot(index[0] - n / 2, index[1] - n / 2, index[2] - n / 2) > n / 2 - 2)
      continue;
    error += std::pow(found[i] - truth[i], 2);
    norm += truth[i] * truth[i];
  }
  return std::sqrt(error / norm);
}

std::vector<Matrix3<double>> random_matrices(int count, int seed) {
  std::mt19937 engine(seed);
  std::vector<Matrix3<double>> matrices;
  for (int i = 0; i < count; ++i)
    matrices.push_back(rotation_matrix(random_rotation<double>(engine)));
  return matrices;
}

} // namespace

TEST_CASE("a molecule is reconstructed from CTF-modulated projections", "[reconstruct]") {
  const Blobs blobs{{3, -1, 2}, {-4, 2.5, 0.5}, {0.3, 4.1, -3.3}, {-1, -2, -4}};
  const std::vector<Matrix3<double>> identity{Matrix3<double>::identity()};
  const auto matrices = random_matrices(900, 11);
  const double linear = reconstruction_error<Linear, float>(blobs, matrices, identity, 24, 48);
  const double cubic = reconstruction_error<CatmullRom, double>(blobs, matrices, identity, 24, 48);
  const double odd = reconstruction_error<CatmullRom, float>(blobs, matrices, identity, 25, 45);
  CAPTURE(linear, cubic, odd);
  CHECK(linear < 0.04);
  CHECK(cubic < 0.004);
  CHECK(odd < 0.004);
}

TEST_CASE("insertion with every operator reconstructs a symmetric molecule from few particles",
          "[reconstruct]") {
  const auto operators = symmetry_operators("O");
  Blobs blobs;
  for (const auto& S : operators) {
    blobs.push_back(S * Vector3<double>{4.5, 1, 2});
    blobs.push_back(S * Vector3<double>{2.5, 2.4, -6});
  }
  const auto matrices = random_matrices(40, 2);
  const double with = reconstruction_error<CatmullRom, float>(blobs, matrices, operators, 24, 48);
  const double without =
      reconstruction_error<CatmullRom, float>(blobs, matrices, {Matrix3<double>::identity()}, 24, 48);
  CAPTURE(with, without);
  CHECK(with < 0.02);
  CHECK(without > 3 * with);
}
