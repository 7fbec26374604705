// Projections of Gaussian molecules against their closed form: the error is that of the kernel, and no more.

#include "molecule.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>

using namespace Test;

namespace {

double rolloff(const std::string& kernel, double v) {
  if (kernel == Bracewell::Linear::name)
    return Bracewell::Linear::transform(v);
  return kernel == Bracewell::CatmullRom::name ? Bracewell::CatmullRom::transform(v)
                                               : Bracewell::CubicBSpline::transform(v);
}

/// Power of the aliases of a Gaussian on a padded axis of n elements over its own: a point at x is seen at
/// all x + m n too, in the ratio K(v + m) / K(v) with v = x / n.
double alias_power(const std::string& kernel, double position, double width, int n) {
  double aliased = 0, power = 0;
  for (double x = position - 3 * width; x <= position + 3 * width; x += width / 8) {
    const double density = std::exp(-std::pow((x - position) / width, 2)); // squared
    for (int alias = -20; alias <= 20; ++alias)
      if (alias != 0)
        aliased += density * std::pow(rolloff(kernel, x / n + alias) / rolloff(kernel, x / n), 2);
    power += density;
  }
  return aliased / power;
}

struct Box {
  Sizes image;
  double oversampling;
  int dimensions; ///< of the reconstruction
};

/// Full sizes of the padded reconstruction; depth as the width of the image.
Sizes padded(const Box& box) {
  Sizes sizes = box.image;
  if (int(sizes.size()) < box.dimensions)
    sizes.insert(sizes.begin(), sizes.back());
  for (int& size : sizes)
    size = int(std::lround(size * box.oversampling));
  return sizes;
}

struct Errors {
  double measured, predicted;
};

/// Relative L2 errors of projections at random rotations and shifts of a molecule that fills `extent` of the
/// half box, to a standard deviation of its blobs, and what the kernel's aliases make expect.
template <class T>
Errors project_molecule(const std::string& kernel, const Box& box, double extent) {
  const Sizes sizes = padded(box);
  const std::size_t d = sizes.size(), m = box.image.size(), pose_count = 6;
  std::array<double, 3> semi_axes{};
  for (std::size_t c = 0; c < d; ++c)
    semi_axes[c] = extent * sizes[d - 1 - c] / box.oversampling / 2 - 2;
  const Molecule molecule(int(d), semi_axes, 25, 11);

  const auto volume = molecule.corrected_volume<T>(sizes, [&](double v) { return rolloff(kernel, v); });
  HostPoses<T> poses{Tensor<T>({1, pose_count, d, d}), Tensor<T>({1, pose_count, m})};
  auto projections = spectra<complex<T>>({1, pose_count}, box.image), expected = projections;
  Random random(12);
  const std::size_t elements = projections.size() / pose_count, columns = box.image.back() / 2 + 1;
  const double radius = *std::min_element(box.image.begin(), box.image.end()) / 2.;
  for (std::size_t pose = 0; pose < pose_count; ++pose) {
    const Matrix3 rotation = random_rotation(int(d), random);
    double shift[3];
    for (std::size_t axis = 0; axis < m; ++axis)
      poses.shifts[pose * m + axis] = static_cast<T>(shift[axis] = 3 * random());
    for (std::size_t row = 0; row < d; ++row)
      for (std::size_t column = 0; column < d; ++column) {
        // Cycles per pixel rotate; indices are those times the sizes of the boxes.
        const double n = column < m ? box.image[m - 1 - column] : 1;
        poses.matrices[(pose * d + row) * d + column] =
            static_cast<T>(rotation[row][column] * sizes[d - 1 - row] / (n * box.oversampling));
      }
    for (std::size_t element = 0; element < elements; ++element) {
      int k[3] = {int(element % columns), 0, 0};
      std::size_t rest = element / columns;
      for (std::size_t c = 1; c < m; ++c) {
        const int n = box.image[m - 1 - c], index = int(rest % n);
        k[c] = 2 * index <= n ? index : index - n;
        rest /= n;
      }
      if (k[0] * k[0] + k[1] * k[1] + k[2] * k[2] > radius * radius)
        continue;
      std::array<double, 3> frequency{};
      double turns = 0;
      for (std::size_t c = 0; c < m; ++c) {
        const double cycles = double(k[c]) / box.image[m - 1 - c];
        turns += cycles * shift[m - 1 - c];
        for (std::size_t row = 0; row < d; ++row)
          frequency[row] += rotation[row][c] * cycles;
      }
      const auto value = molecule.spectrum(frequency) * std::polar(1., -2 * M_PI * turns);
      expected[pose * elements + element] =
          complex<T>(static_cast<T>(value.real()), static_cast<T>(value.imag()));
    }
  }
  operators<T>(kernel, int(m), int(d))
      .project(volume, poses, projections, {.oversampling = box.oversampling, .radius = radius});

  double aliased = 0, power = 0;
  for (const auto& blob : molecule.blobs) {
    double product = 1;
    for (std::size_t c = 0; c < d; ++c)
      product *= 1 + alias_power(kernel, blob.position[c], blob.width[c], sizes[d - 1 - c]);
    aliased += blob.amplitude * blob.amplitude * (product - 1);
    power += blob.amplitude * blob.amplitude;
  }
  const auto difference = moved(projections, -1, expected);
  return {std::sqrt(full_dot(difference, difference) / full_dot(expected, expected)),
          std::sqrt(aliased / power)};
}

const std::vector<Box> boxes{
    {{32, 32}, 1, 3},     {{32, 32}, 1.5, 3},   {{32, 32}, 2, 3},       {{33, 33}, 1, 3}, {{33, 33}, 2, 3},
    {{28, 35}, 1.2, 3},   {{35, 28}, 2, 3},     {{32, 32}, 1, 2},       {{33, 33}, 2, 2}, {{28, 35}, 1.4, 2},
    {{24, 24, 24}, 1, 3}, {{25, 25, 25}, 2, 3}, {{20, 25, 30}, 1.2, 3},
};

} // namespace

TEST_CASE("the error of projections is that of the kernel") {
  const auto kernel = GENERATE(from_range(kernels()));
  for (const Box& box : boxes) {
    const Errors errors = project_molecule<double>(kernel, box, 0.6);
    std::string size;
    for (const int n : box.image)
      size += std::to_string(n) + " ";
    CAPTURE(kernel, size, box.oversampling, box.dimensions, errors.measured, errors.predicted);
    // The prediction takes frequencies as spread evenly between grid points, and the blobs' aliases as
    // incoherent.
    CHECK(errors.measured < 1.5 * errors.predicted);
    CHECK(errors.measured > errors.predicted / 1.5);
  }
}

TEST_CASE("float is as accurate as the kernel") {
  for (const Box& box : boxes) {
    if (box.image.size() == 3)
      continue;
    const double single = project_molecule<float>("catmull_rom", box, 0.6).measured;
    const double both = project_molecule<double>("catmull_rom", box, 0.6).measured;
    CHECK(std::abs(single - both) < 1e-3 * both);
  }
}

TEST_CASE("documented accuracy for a molecule that fills 0.8 of the half box") {
  const auto error = [](const char* kernel, double oversampling) {
    return project_molecule<double>(kernel, {{64, 64}, oversampling, 3}, 0.8).measured;
  };
  CHECK(error("linear", 2) < 4.5e-2);
  CHECK(error("catmull_rom", 2) < 8.9e-3);
  CHECK(error("bspline3", 1.25) < 7.4e-3);
  CHECK(error("bspline3", 2) < 8.1e-4);
}
