// The examples of README.md and docs/tutorial.md on a molecule that is known in closed form: what stands between
// "// [name" and "// name]" is shown there, word for word.

#include "../page_examples.hpp"

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/fft/plan.hpp>
#include <bracewell/geometry/ctf_gradients.hpp>
#include <bracewell/geometry/pose_gradients.hpp>
#include <bracewell/geometry/rotations.hpp>
#include <bracewell/optimize/adam.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/filter_gradients.hpp>
#include <bracewell/project/prepare_map.hpp>
#include <bracewell/project/project.hpp>
#include <bracewell/project/score_poses.hpp>
#include <bracewell/reconstruct/normalise.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>
#include <bracewell/reconstruct/rolloff.hpp>
#include <bracewell/reconstruct/spectrum_gradients.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>

using namespace Bracewell;

namespace {

using Space = Kokkos::DefaultHostExecutionSpace;
using Complex = Kokkos::complex<float>;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Kokkos::HostSpace>;

constexpr double pi = Kokkos::numbers::pi;
constexpr double pixel_size = 2; // Angstrom

/// Gaussians within a ball; positions (x, y, z) and widths in pixels.
struct Molecule {
  struct Blob {
    double position[3], width;
  };
  std::vector<Blob> blobs;

  explicit Molecule(double radius) {
    std::mt19937 engine(7);
    std::uniform_real_distribution<double> uniform(-1, 1);
    while (blobs.size() < 20) {
      const double x = uniform(engine), y = uniform(engine), z = uniform(engine);
      if (x * x + y * y + z * z < 1)
        blobs.push_back({{radius * x, radius * y, radius * z}, 1.6 + 0.4 * uniform(engine)});
    }
  }

  View<float****> density(int n) const {
    const View<float****> map("density", 1, n, n, n);
    for (int z = 0; z < n; ++z)
      for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x)
          for (const auto& [p, s] : blobs)
            map(0, z, y, x) +=
                float(std::exp(-(std::pow(x - n / 2 - p[0], 2) + std::pow(y - n / 2 - p[1], 2) +
                                 std::pow(z - n / 2 - p[2], 2)) /
                               (2 * s * s)));
    return map;
  }

  /// The Fourier transform at q, in cycles per pixel.
  std::complex<double> spectrum(const Vector3<double>& q) const {
    std::complex<double> sum = 0;
    for (const auto& [p, s] : blobs)
      sum += std::polar(std::pow(std::sqrt(2 * pi) * s, 3) *
                            std::exp(-2 * pi * pi * s * s * (q[0] * q[0] + q[1] * q[1] + q[2] * q[2])),
                        -2 * pi * (q[0] * p[0] + q[1] * p[1] + q[2] * p[2]));
    return sum;
  }
};

/// Poses at random, and what the molecule looks like in them, in closed form.
struct Particles {
  static constexpr int n = 40;
  int count;
  Molecule molecule{10};
  View<float****> matrices;
  View<float***> shifts;
  View<Complex****> images;

  explicit Particles(int particles)
      : count(particles), matrices("matrices", 1, count, 3, 3), shifts("shifts", 1, count, 2),
        images("images", 1, count, n, n / 2 + 1) {
    std::mt19937 engine(3);
    std::uniform_real_distribution<float> uniform(-2, 2);
    for (int p = 0; p < count; ++p) {
      const auto M = rotation_matrix(random_rotation<double>(engine));
      for (int i = 0; i < 9; ++i)
        matrices(0, p, i / 3, i % 3) = float(M(i / 3, i % 3));
      shifts(0, p, 0) = uniform(engine);
      shifts(0, p, 1) = uniform(engine);
      for (int i = 0; i < layout().elements(); ++i)
        image(p)[i] = Complex(projection(p, i));
    }
  }

  /// Any; what each particle is compared with is another one.
  View<Complex****> cotangent() const {
    const View<Complex****> g("cotangent", 1, count, n, n / 2 + 1);
    for (int p = 0; p < count; ++p)
      std::copy_n(image((p + 1) % count), layout().elements(), &g(0, p, 0, 0));
    return g;
  }

  /// With the first particle's matrix times R.
  Particles turned(const Matrix3<double>& R) const {
    Particles result = *this;
    result.matrices = View<float****>("matrices", 1, 1, 3, 3);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        for (int k = 0; k < 3; ++k)
          result.matrices(0, 0, i, j) += matrices(0, 0, i, k) * float(R(k, j));
    return result;
  }

  static HalfSpectrumLayout<2> layout() { return {n, n}; }
  Complex* image(int p) const { return &images(0, p, 0, 0); }

  /// Element i of the image of particle p, with an element of its matrix and of its shift moved.
  Kokkos::complex<double> projection(int p, int i, int row = 0, int column = 0, double turn = 0, int axis = 0,
                                     double move = 0) const {
    int k[2];
    layout().frequency(i, k);
    if (k[0] * k[0] + k[1] * k[1] > n * n / 4)
      return 0;
    Matrix3<double> M;
    for (int e = 0; e < 9; ++e)
      M(e / 3, e % 3) = matrices(0, p, e / 3, e % 3);
    M(row, column) += turn;
    double shift[2] = {shifts(0, p, 0), shifts(0, p, 1)};
    shift[axis] += move;
    const auto value = molecule.spectrum(M * Vector3<double>{double(k[0]) / n, double(k[1]) / n, 0}) *
                       std::polar(1.0, -2 * pi * (k[1] * shift[0] + k[0] * shift[1]) / n);
    return {value.real(), value.imag()};
  }
};

template <class A, class B>
double relative_error(const A& a, const B& b, std::size_t size) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < size; ++i) {
    error += std::pow(Kokkos::abs(a[i] - b[i]), 2);
    norm += std::pow(Kokkos::abs(b[i]), 2);
  }
  return std::sqrt(error / norm);
}

/// Of a map, within the ball that images determine.
double error_of_map(const View<float****>& map, const Molecule& molecule) {
  const int n = int(map.extent(1));
  const auto truth = molecule.density(n);
  for (std::size_t i = 0; i < map.size(); ++i)
    if (std::hypot(int(i) % n - n / 2, int(i) / n % n - n / 2, int(i) / n / n - n / 2) > n / 2 - 2)
      map.data()[i] = truth.data()[i];
  return relative_error(map.data(), truth.data(), map.size());
}

/// A slope of the loss whose cotangent is g, along a change of particle 0's projection by change(i, h) at h = 0,
/// is the sum of Re(conj g dP/dh). Interpolation errs by some parts in a thousand of |g| |dP/dh|, of which that
/// sum may be a small part.
template <class Change>
void check_slope(double found, const View<Complex****>& g, double h, const Change& change) {
  double sum = 0, squares = 0, slopes = 0;
  for (int i = 0; i < Particles::layout().elements(); ++i) {
    const auto slope = (change(i, h) - change(i, -h)) / (2 * h);
    const Kokkos::complex<double> cotangent(g.data()[i]);
    sum += cotangent.real() * slope.real() + cotangent.imag() * slope.imag();
    squares += std::norm(std::complex<double>(cotangent.real(), cotangent.imag()));
    slopes += std::norm(std::complex<double>(slope.real(), slope.imag()));
  }
  CHECK(std::abs(found - sum) < 0.01 * std::sqrt(squares * slopes));
}

void check_pose_gradients(const Particles& particles, const View<Complex****>& g,
                          const View<float****>& matrices, const View<float***>& shifts) {
  for (int axis = 0; axis < 2; ++axis)
    check_slope(shifts(0, 0, axis), g, 1e-4,
                [&](int i, double h) { return particles.projection(0, i, 0, 0, 0, axis, h); });
  for (int e = 0; e < 6; ++e)
    check_slope(matrices(0, 0, e / 2, e % 2), g, 1e-4,
                [&](int i, double h) { return particles.projection(0, i, e / 2, e % 2, h); });
}

/// A map's spectrum for `project`, as the tutorial makes it.
View<Complex****> padded_spectrum(const View<float****>& map, int N) {
  const Space space;
  const View<float****> padded("padded", 1, N, N, N);
  const View<Complex****> spectrum("spectrum", 1, N, N, N / 2 + 1);
  correct_rolloff(space, map, {N, N, N});
  pad_centre(space, map, padded);
  FFT<Space, 3, float, Complex>(space, {N, N, N}).execute(space, padded, spectrum);
  return spectrum;
}

View<float****> cropped_map(const View<Complex****>& spectrum, int n) {
  const Space space;
  const int N = int(spectrum.extent(1));
  const View<float****> padded("padded", 1, N, N, N), map("map", 1, n, n, n);
  FFT<Space, 3, Complex, float>(space, {N, N, N}).execute(space, spectrum, padded);
  crop_centre(space, padded, map, 1 / std::pow(N, 3));
  correct_rolloff(space, map, {N, N, N});
  return map;
}

/// The lines of the README, for a number of images.
void readme(int P, double largest_error) {
  const Space space;
  const Particles particles(P);
  const auto matrices = particles.matrices;
  const auto shifts = particles.shifts;
  const auto cotangent = particles.cotangent();
  constexpr int n = Particles::n, N = 64;
  const auto map = padded_spectrum(particles.molecule.density(n), N);
  const View<Complex****> projections("projections", 1, P, n, n / 2 + 1), data("data", 1, N, N, N / 2 + 1),
      reconstruction("reconstruction", 1, N, N, N / 2 + 1);
  const View<float****> weight("weight", 1, N, N, N / 2 + 1), ones("ones", 1, 1, n, n / 2 + 1),
      matrix_gradients("matrix gradients", 1, P, 3, 3);
  Kokkos::deep_copy(ones, 1.0f);
  const View<float***> shift_gradients("shift gradients", 1, P, 2);
  const View<double**> averages("averages", 1, N / 2 + 1);
  // [readme
  // Spectra of images of n pixels a side and of a map padded to N = 1.6 n: Views that you own.
  const Bracewell::ProjectionOptions options{.oversampling = double(N) / n};
  Bracewell::project(space, map, {.matrices = matrices, .shifts = shifts}, projections, options);

  // Back again: back-project the images and their weights, then divide.
  Bracewell::backproject(space, projections, {.matrices = matrices, .shifts = shifts},
                         {.data = data, .weight = weight, .weights = ones}, options);
  Bracewell::normalise(space, data, weight, reconstruction, averages);

  // Only the gradients that you name are computed: this launches no volume-sized work.
  Bracewell::project_gradients(space, map, {.matrices = matrices, .shifts = shifts}, cotangent,
                               {.matrices = matrix_gradients, .shifts = shift_gradients}, options);
  // readme]
  space.fence();
  CHECK(relative_error(projections.data(), particles.images.data(), projections.size()) < 0.01);
  check_pose_gradients(particles, cotangent, matrix_gradients, shift_gradients);
  const double error = error_of_map(cropped_map(reconstruction, n), particles.molecule);
  CAPTURE(P, error);
  CHECK(error < largest_error);
}

} // namespace

TEST_CASE("the README, with few images and with many") {
  readme(30, 0.25);
  readme(200, 0.03);
  readme(1000, 0.02);
}

TEST_CASE("the tutorial") {
  const Particles particles(300);
  constexpr int P = 300, n = Particles::n;
  const auto matrices = particles.matrices;
  const auto shifts = particles.shifts;
  const auto map = particles.molecule.density(n), original = particles.molecule.density(n);
  // [spectrum
  const Kokkos::DefaultHostExecutionSpace space;
  const int N = static_cast<int>(next_fast_size(8 * n / 5, true)); // the padded box, about 1.6 n
  const ProjectionOptions options{.oversampling = double(N) / n};
  const View<float****> padded("padded", 1, N, N, N);
  const View<Complex****> reconstruction("reconstruction", 1, N, N, N / 2 + 1);
  correct_rolloff(space, map, {N, N, N}); // map is [1, n, n, n], its centre at n/2
  pad_centre(space, map, padded);
  FFT<Space, 3, float, Complex>(space, {N, N, N}).execute(space, padded, reconstruction);
  // spectrum]
  // [project
  const View<Complex****> projections("projections", 1, P, n, n / 2 + 1);
  project(space, reconstruction, {.matrices = matrices, .shifts = shifts}, projections, options);
  // project]
  CHECK(relative_error(projections.data(), particles.images.data(), projections.size()) < 0.01);
  Kokkos::deep_copy(projections, Complex(0));
  // [prepared
  const auto reference = prepare<CatmullRom, HalfComplex>(space, reconstruction);
  project(space, reference, {.matrices = matrices, .shifts = shifts}, projections, options);
  // prepared]
  CHECK(relative_error(projections.data(), particles.images.data(), projections.size()) < 0.01);
  Kokkos::deep_copy(projections, Complex(0));
  // [prepare_map
  const auto prepared_map = prepare_map(space, original, N); // the map before correct_rolloff
  project(space, prepared_map, {.matrices = matrices, .shifts = shifts}, projections);
  // prepare_map]
  CHECK(relative_error(projections.data(), particles.images.data(), projections.size()) < 0.01);

  const View<CTF*> ctfs("ctfs", P);
  for (int p = 0; p < P; ++p)
    ctfs(p) = CTF({.defocus_u = 8000. + 50 * p, .defocus_v = 7500. + 50 * p, .amplitude_contrast = 0.1});
  // [ctf
  const View<float****> ctf("ctf", 1, P, n, n / 2 + 1); // of View<CTF*> ctfs, one for each image
  evaluate_ctf(space, ctfs, pixel_size, ctf);
  project(space, reconstruction, {.matrices = matrices, .shifts = shifts, .filters = ctf}, projections,
          options);
  // ctf]
  const auto images = particles.images;
  apply_ctf(space, ctfs, pixel_size, images);
  CHECK(relative_error(projections.data(), images.data(), images.size()) < 0.01);
  // [backproject
  const View<Complex****> data("data", 1, N, N, N / 2 + 1);
  const View<float****> weight("weight", 1, N, N, N / 2 + 1), ctf_squared("ctf squared", 1, P, n, n / 2 + 1);
  apply_ctf(space, ctfs, pixel_size, images, ctf_squared); // multiplies images by their CTF
  backproject(space, images, {.matrices = matrices, .shifts = shifts},
              {.data = data, .weight = weight, .weights = ctf_squared}, options);
  // backproject]
  // [normalise
  const View<double**> averages("averages", 1, N / 2 + 1);
  normalise(space, data, weight, data, averages);
  FFT<Space, 3, Complex, float>(space, {N, N, N}).execute(space, data, padded);
  crop_centre(space, padded, map, 1 / std::pow(N, 3));
  correct_rolloff(space, map, {N, N, N});
  // normalise]
  CHECK(error_of_map(map, particles.molecule) < 0.05);
}

TEST_CASE("the tutorial's search for poses") {
  const Particles particles(20);
  constexpr int P = 20, n = Particles::n, N = 64;
  const Space space;
  auto reference = prepare<CatmullRom>(space, padded_spectrum(particles.molecule.density(n), N));
  reference.set_oversampling(double(N) / n);
  const View<CTF*> ctfs("ctfs", P);
  for (int p = 0; p < P; ++p)
    ctfs(p) = CTF({.defocus_u = 8000. + 50 * p, .defocus_v = 7500. + 50 * p, .amplitude_contrast = 0.1});
  const View<float****> ctf("ctf", 1, P, n, n / 2 + 1);
  evaluate_ctf(space, ctfs, pixel_size, ctf);
  apply_ctf(space, ctfs, pixel_size, particles.images);
  const auto images = particles.images;
  for (std::size_t i = 0; i < images.size(); ++i) { // nothing beyond the radius
    int k[2];
    Particles::layout().frequency(std::int64_t(i) % Particles::layout().elements(), k);
    if (k[0] * k[0] + k[1] * k[1] > 6 * 6)
      images.data()[i] = 0;
  }
  const int S = 49;
  const View<float**> candidate_shifts("shifts", S, 2);
  for (int s = 0; s < S; ++s) {
    candidate_shifts(s, 0) = float(s / 7 - 3);
    candidate_shifts(s, 1) = float(s % 7 - 3);
  }
  // [score
  const int Q = int(rotation_grid_size(20)); // no pose is further than 20 degrees from one of these
  const View<float***> candidates("candidates", Q, 3, 3);
  for (int q = 0; q < Q; ++q) {
    const auto M = rotation_matrix(rotation_of_grid<float>(q, Q));
    for (int i = 0; i < 9; ++i)
      candidates(q, i / 3, i % 3) = M(i / 3, i % 3);
  }
  PoseScoring<Space> scoring(space, {.images = P, .shifts = S, .height = n, .width = n, .best = 3},
                             {.radius = 6});                     // what is finer does not matter yet
  const View<Complex***> scored(images.data(), P, n, n / 2 + 1); // of images [1, P, n, n/2+1], as of ctf
  scoring.set_images(space, {.spectra = scored, .filters = View<float***>(ctf.data(), P, n, n / 2 + 1)});
  scoring.set_shifts(space, candidate_shifts); // [S, 2], pixels
  const View<float**> scores("scores", P, 3);
  const View<int**> poses("poses", P, 3), shifts("shifts", P, 3);
  scoring.score(space, reference, candidates, {.best = scores, .poses = poses, .shifts = shifts});
  // score]
  // [score-gradients
  const View<float****> best_matrices("matrices", 1, P, 3, 3), matrix_gradients("gradients", 1, P, 3, 3);
  const View<float***> best_shifts("shifts", 1, P, 2), shift_gradients("gradients", 1, P, 2);
  for (int p = 0; p < P; ++p) {
    for (int i = 0; i < 9; ++i)
      best_matrices(0, p, i / 3, i % 3) = candidates(poses(p, 0), i / 3, i % 3);
    for (const int axis : {0, 1})
      best_shifts(0, p, axis) = candidate_shifts(shifts(p, 0), axis);
  }
  const Poses<float, Space::memory_space> best{
      .matrices = best_matrices, .shifts = best_shifts, .filters = ctf};
  const View<Complex****> projections("projections", 1, P, n, n / 2 + 1), g("cotangent", 1, P, n, n / 2 + 1);
  const View<double**> losses("losses", 1, P);
  project(space, reference, best, projections, {.radius = 6});
  squared_error(space, projections, images, {.losses = losses, .cotangent = g});
  project_gradients(space, reference, best, g, {.matrices = matrix_gradients, .shifts = shift_gradients},
                    {.radius = 6});
  // score-gradients]
  // One of the three best is as close as the grid allows, but for one image. The loss of the winner is its score; a small step down the gradient is a better pose.
  std::vector<double> angles;
  for (int p = 0; p < P; ++p) {
    CHECK(std::abs(losses(0, p) - scores(p, 0)) < 1e-4 * Kokkos::max(losses(0, p), double(scores(p, 2))));
    double largest_trace = 0, square = 0;
    for (int rank = 0; rank < 3; ++rank) {
      double trace = 0;
      for (int e = 0; e < 9; ++e)
        trace += candidates(poses(p, rank), e / 3, e % 3) * particles.matrices(0, p, e / 3, e % 3);
      largest_trace = Kokkos::max(largest_trace, trace);
    }
    for (int e = 0; e < 9; ++e)
      square += std::pow(matrix_gradients(0, p, e / 3, e % 3), 2);
    for (const int axis : {0, 1})
      square += std::pow(shift_gradients(0, p, axis), 2);
    angles.push_back(std::acos(std::clamp((largest_trace - 1) / 2, -1., 1.)) * 180 / pi);
    const double step = 0.01 * losses(0, p) / square;
    for (int e = 0; e < 9; ++e)
      best_matrices(0, p, e / 3, e % 3) -= float(step * matrix_gradients(0, p, e / 3, e % 3));
    for (const int axis : {0, 1})
      best_shifts(0, p, axis) -= float(step * shift_gradients(0, p, axis));
  }
  std::sort(angles.begin(), angles.end());
  CAPTURE(angles);
  CHECK(angles[P / 2] < 12);
  CHECK(angles[P - 2] < 20);
  const View<double**> losses_after("losses", 1, P);
  project(space, reference, best, projections, {.radius = 6});
  squared_error(space, projections, images, {.losses = losses_after});
  for (int p = 0; p < P; ++p)
    CHECK(losses_after(0, p) < 0.995 * losses(0, p));
}

TEST_CASE("the tutorial's chain rules") {
  const Space space;
  constexpr int P = 60, n = Particles::n, N = 64;
  const Particles particles(P);
  const auto base = particles.matrices;
  const auto shifts = particles.shifts;
  const auto images = particles.cotangent();
  const ProjectionOptions options{.oversampling = double(N) / n};
  const auto reconstruction = padded_spectrum(particles.molecule.density(n), N);
  std::vector<CTFParameters> parameters;
  const View<CTF*> ctfs("ctfs", P), ctf_slopes("ctf gradients", P);
  for (int p = 0; p < P; ++p) {
    parameters.push_back({.defocus_u = 8000. + 50 * p,
                          .defocus_v = 7000. + 50 * p,
                          .defocus_angle = 20,
                          .amplitude_contrast = 0.1});
    ctfs(p) = CTF(parameters.back());
  }
  const View<float****> ctf("ctf", 1, P, n, n / 2 + 1), matrices("matrices", 1, P, 3, 3),
      padded("padded", 1, N, N, N), map_gradient("map gradient", 1, n, n, n);
  const View<float***> vectors("rotation vectors", 1, P, 3);
  evaluate_ctf(space, ctfs, pixel_size, ctf);
  // [loss
  const View<Complex****> projections("projections", 1, P, n, n / 2 + 1), g("cotangent", 1, P, n, n / 2 + 1);
  const View<double**> losses("losses", 1, P);
  matrices_from_rotation_vectors(space, vectors, base, matrices); // M = base exp([w]x), w [1, P, 3]
  project(space, reconstruction, {.matrices = matrices, .shifts = shifts, .filters = ctf}, projections,
          options);
  squared_error(space, projections, images, {.losses = losses, .cotangent = g});
  // loss]
  // [gradients
  const View<Complex****> reconstruction_gradient("gradient", 1, N, N, N / 2 + 1);
  const View<float****> matrix_gradients("gradients", 1, P, 3, 3);
  const View<float***> shift_gradients("gradients", 1, P, 2);
  project_gradients(
      space, reconstruction, {.matrices = matrices, .shifts = shifts, .filters = ctf}, g,
      {.reconstruction = reconstruction_gradient, .matrices = matrix_gradients, .shifts = shift_gradients},
      options);
  // gradients]
  // [rotations
  const View<float***> vector_gradients("gradients", 1, P, 3); // dL/dw
  rotation_vector_gradients(space, vectors, base, matrix_gradients, vector_gradients);
  // rotations]
  // [ctf-gradients
  const View<float****> value_gradients("gradients", 1, P, n, n / 2 + 1); // dL/dctf, of every sample
  project(space, reconstruction, {.matrices = matrices, .shifts = shifts}, projections,
          options); // no filters
  filter_gradients(space, projections, g, value_gradients);
  ctf_gradients(space, ctfs, pixel_size, value_gradients, ctf_slopes); // View<CTF*>: dL/d its members
  const CTFParameters of_first = ctf_parameter_gradients(parameters[0], ctf_slopes(0)); // dL/d defocus_u, ...
  // ctf-gradients]
  // [map-gradient
  divide_by_multiplicity(space, reconstruction_gradient);
  FFT<Space, 3, Complex, float>(space, {N, N, N}).execute(space, reconstruction_gradient, padded);
  crop_centre(space, padded, map_gradient);
  correct_rolloff(space, map_gradient, {N, N, N}); // dL/dmap, [1, n, n, n]
  // map-gradient]

  // Everything again from the closed form, for the first particle.
  const auto filtered = [&](const CTFParameters& at, int i) {
    int k[2];
    Particles::layout().frequency(i, k);
    return CTF(at).value<double>(k[0] / (n * pixel_size), k[1] / (n * pixel_size)) *
           particles.projection(0, i);
  };
  double loss = 0;
  for (int i = 0; i < Particles::layout().elements(); ++i)
    loss += Particles::layout().multiplicity(i % (n / 2 + 1)) *
            std::pow(Kokkos::abs(filtered(parameters[0], i) - Kokkos::complex<double>(images.data()[i])), 2);
  CHECK(std::abs(losses(0, 0) / loss - 1) < 0.01);
  const auto check_parameter = [&](double CTFParameters::*member, double step) {
    check_slope(of_first.*member, g, step, [&](int i, double h) {
      CTFParameters moved = parameters[0];
      moved.*member += h;
      return filtered(moved, i);
    });
  };
  check_parameter(&CTFParameters::defocus_u, 1);
  check_parameter(&CTFParameters::defocus_v, 1);
  check_parameter(&CTFParameters::defocus_angle, 0.01);
  check_parameter(&CTFParameters::phase_shift, 0.01);

  double along_map = 0, expected = 0; // the loss changes as projections of the molecule itself are added
  const auto density = particles.molecule.density(n);
  for (std::size_t i = 0; i < density.size(); ++i)
    along_map += double(map_gradient.data()[i]) * density.data()[i];
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto image = ctf.data()[i] * particles.images.data()[i];
    expected += double(g.data()[i].real()) * image.real() + double(g.data()[i].imag()) * image.imag();
    g.data()[i] *= ctf.data()[i];
  }
  CHECK(std::abs(along_map / expected - 1) < 0.01);

  check_pose_gradients(particles, g, matrix_gradients, shift_gradients);
  for (int axis = 0; axis < 3; ++axis)
    check_slope(vector_gradients(0, 0, axis), g, 1e-2, [&](int i, double h) { // M exp(h [e]x)
      const RotationVector<double> v{h * (axis == 0), h * (axis == 1), h * (axis == 2)};
      return particles.turned(rotation_matrix(v)).projection(0, i);
    });
}

TEST_CASE("the tutorial's reconstruction by stochastic gradients") {
  const Space space;
  constexpr int n = Particles::n, N = 64, batch = 50;
  const Particles particles(500);
  const ProjectionOptions options{.oversampling = double(N) / n};
  const View<Complex****> images(particles.images.data(), 10, batch, n, n / 2 + 1);
  const View<float****> matrices(particles.matrices.data(), 10, batch, 3, 3);
  const View<float***> shifts(particles.shifts.data(), 10, batch, 2);
  // [stochastic
  // images, matrices and shifts are [10, 50, ...]: ten batches of 50 particles.
  const View<float****> map("map", 1, n, n, n), work("work", 1, n, n, n), padded("padded", 1, N, N, N);
  const View<Complex****> spectrum("spectrum", 1, N, N, N / 2 + 1), gradient("gradient", 1, N, N, N / 2 + 1),
      projections("projections", 1, batch, n, n / 2 + 1), g("cotangent", 1, batch, n, n / 2 + 1);
  const FFT<Space, 3, float, Complex> forward(space, {N, N, N});
  const FFT<Space, 3, Complex, float> backward(space, {N, N, N});
  Adam<Space, float> adam(space, {map.size()});
  for (int step = 0; step < 60; ++step) {
    const std::pair b(step % 10, step % 10 + 1);
    const auto data = Kokkos::subview(images, b, Kokkos::ALL, Kokkos::ALL, Kokkos::ALL);
    const auto m = Kokkos::subview(matrices, b, Kokkos::ALL, Kokkos::ALL, Kokkos::ALL);
    const auto s = Kokkos::subview(shifts, b, Kokkos::ALL, Kokkos::ALL);
    Kokkos::deep_copy(space, work, map);
    correct_rolloff(space, work, {N, N, N});
    pad_centre(space, work, padded);
    forward.execute(space, padded, spectrum);
    project(space, spectrum, {.matrices = m, .shifts = s}, projections, options);
    squared_error(space, projections, data, {.cotangent = g});
    project_gradients(space, spectrum, {.matrices = m, .shifts = s}, g, {.reconstruction = gradient},
                      options);
    divide_by_multiplicity(space, gradient);
    backward.execute(space, gradient, padded);
    crop_centre(space, padded, work);
    correct_rolloff(space, work, {N, N, N});
    adam.step(space, {{map, work, 0.1 / (1 + 0.05 * step)}});
  }
  // stochastic]
  const double error = error_of_map(map, particles.molecule);
  CAPTURE(error);
  CHECK(error < 0.1);
}

TEST_CASE("the tutorial's poses with an optimiser of one's own") {
  const Space space;
  constexpr int P = 40, n = Particles::n, N = 64;
  const Particles particles(P);
  const auto images = particles.images;
  const ProjectionOptions options{.oversampling = double(N) / n};
  const auto reconstruction = padded_spectrum(particles.molecule.density(n), N);
  const View<float****> base("base", 1, P, 3, 3), matrices("matrices", 1, P, 3, 3);
  const View<float***> shifts("shifts", 1, P, 2), off("off", 1, P, 3);
  std::mt19937 engine(4);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int p = 0; p < P; ++p) { // within 5 degrees and 1 pixel
    for (int axis = 0; axis < 3; ++axis)
      off(0, p, axis) = 0.05f * uniform(engine);
    for (int axis = 0; axis < 2; ++axis)
      shifts(0, p, axis) = particles.shifts(0, p, axis) + uniform(engine);
  }
  matrices_from_rotation_vectors(space, off, particles.matrices, base);
  // [poses
  // Steepest descent of every particle on its own, with steps after Barzilai and Borwein: five parameters, a rotation
  // vector w about base, times 10 pixels, and a shift.
  const View<float***> w("w", 1, P, 3), w_gradients("gradients", 1, P, 3),
      shift_gradients("gradients", 1, P, 2);
  const View<float****> matrix_gradients("gradients", 1, P, 3, 3);
  const View<Complex****> projections("projections", 1, P, n, n / 2 + 1), g("cotangent", 1, P, n, n / 2 + 1);
  std::vector<std::array<double, 5>> before(P), moves(P);
  for (int step = 0; step < 60; ++step) {
    matrices_from_rotation_vectors(space, w, base, matrices);
    project(space, reconstruction, {.matrices = matrices, .shifts = shifts}, projections, options);
    squared_error(space, projections, images, {.cotangent = g});
    project_gradients(space, reconstruction, {.matrices = matrices, .shifts = shifts}, g,
                      {.matrices = matrix_gradients, .shifts = shift_gradients}, options);
    rotation_vector_gradients(space, w, base, matrix_gradients, w_gradients);
    space.fence(); // Views in the memory of a GPU are copied to the host here
    for (int p = 0; p < P; ++p) {
      std::array<double, 5> slope;
      double squares = 0, along = 0, curvature = 0;
      for (int i = 0; i < 5; ++i) {
        slope[i] = i < 3 ? w_gradients(0, p, i) / 10. : shift_gradients(0, p, i - 3);
        squares += slope[i] * slope[i];
        along += moves[p][i] * moves[p][i];
        curvature += moves[p][i] * (slope[i] - before[p][i]);
      }
      const double pixels = 0.2 / (1 + 0.1 * step),
                   largest = pixels / (std::sqrt(squares) + 1e-30); // of a step
      const double rate = step > 0 && curvature > 0 ? std::min(along / curvature, largest) : largest;
      for (int i = 0; i < 5; ++i) {
        moves[p][i] = -rate * slope[i];
        (i < 3 ? w(0, p, i) : shifts(0, p, i - 3)) += float(i < 3 ? moves[p][i] / 10 : moves[p][i]);
      }
      before[p] = slope;
    }
  }
  // poses]
  matrices_from_rotation_vectors(space, w, base, matrices);
  double shift_error = 0, matrix_error = 0;
  for (std::size_t i = 0; i < shifts.size(); ++i)
    shift_error = std::max(shift_error, std::abs(double(shifts.data()[i]) - particles.shifts.data()[i]));
  for (std::size_t i = 0; i < matrices.size(); ++i)
    matrix_error =
        std::max(matrix_error, std::abs(double(matrices.data()[i]) - particles.matrices.data()[i]));
  CAPTURE(shift_error, matrix_error);
  CHECK(shift_error < 0.05);   // it was 1
  CHECK(matrix_error < 0.006); // it was 0.09
}

TEST_CASE("the pages show this code") {
  const std::filesystem::path root(BRACEWELL_SOURCE_DIR);
  Test::check_page_examples(root / "tests/docs/cryoem.cpp", {root / "README.md", root / "docs/tutorial.md"});
}
