// Random problems of every dimension pair, easy and hostile, shared by the tests of the operators.
#pragma once

#include "molecule.hpp"
#include "reference.hpp"

#include <optional>

namespace Test {

enum class Matrices { General, Rotation, Identity, Singular, Zero };

struct Shape {
  const char* name;
  Sizes volume, image;
  double oversampling = 1;
  std::optional<double> radius = std::nullopt;
  Matrices kind = Matrices::General;
  double scale = 1;
  std::optional<double> ewald_radius = std::nullopt;
};

/// Even, odd and non-cubic boxes, several bricks of Strategy::Owned, and what is hard: the smallest boxes,
/// radii beyond Nyquist, matrices that wrap positions around the box many times, matrices without inverse.
inline std::vector<Shape> shapes() {
  std::vector<Shape> all{
      {"2D even", {8, 8}, {8, 8}},
      {"2D odd", {9, 7}, {7, 5}, 1.25},
      {"2D mixed, padded", {14, 11}, {6, 5}, 2},
      {"2D several bricks", {70, 81}, {33, 40}, 2},
      {"2D corners", {10, 12}, {9, 8}, 1, 20.},
      {"2D smallest", {4, 4}, {5, 6}, 1, 9.},
      {"2D one pixel", {5, 4}, {1, 1}},
      {"2D rotations", {31, 34}, {33, 30}, 1, 17., Matrices::Rotation},
      {"3D to 2D even", {8, 8, 8}, {8, 8}},
      {"3D to 2D rotations", {28, 31, 30}, {31, 34}, 1, 16., Matrices::Rotation},
      {"3D to 2D odd", {7, 9, 5}, {5, 7}, 1.25},
      {"3D to 2D mixed, padded", {12, 10, 14}, {7, 6}, 1.5},
      {"3D to 2D several bricks", {36, 20, 40}, {19, 20}, 2},
      {"3D to 2D corners", {10, 12, 8}, {9, 8}, 1, 20.},
      {"3D to 2D smallest", {4, 5, 4}, {5, 6}, 1, 9.},
      {"3D to 2D one row", {5, 4, 6}, {1, 7}, 1, 4.},
      {"Ewald sphere", {8, 9, 8}, {7, 8}, 1.25, {}, Matrices::General, 1, 5.},
      {"Ewald sphere, several bricks", {36, 20, 40}, {19, 20}, 2, {}, Matrices::General, 1, -15.},
      {"Ewald sphere, corners", {10, 12, 8}, {9, 8}, 1, 20., Matrices::General, 1, 3.},
      {"Ewald sphere, smallest", {4, 5, 4}, {5, 6}, 1, 9., Matrices::General, 1, -1.},
      {"Ewald sphere, singular", {8, 9, 8}, {7, 8}, 1, {}, Matrices::Singular, 1, 5.},
      {"3D even", {6, 6, 6}, {6, 6, 6}},
      {"3D odd", {7, 5, 9}, {5, 7, 7}, 1.25},
      {"3D mixed, padded", {12, 9, 10}, {6, 5, 4}, 2},
      {"3D several bricks", {21, 36, 40}, {9, 10, 11}, 2},
      {"3D corners", {8, 9, 6}, {7, 6, 8}, 1, 20.},
      {"3D smallest", {4, 4, 5}, {4, 5, 3}, 1, 9.},
  };
  for (const Sizes& volume : {Sizes{10, 9}, Sizes{8, 10, 9}})
    for (const Sizes& image : {Sizes{8, 7}, Sizes{5, 6, 7}}) {
      if (image.size() > volume.size())
        continue;
      all.push_back({"scale 10", volume, image, 1, {}, Matrices::General, 10});
      all.push_back({"scale 1e4", volume, image, 1, {}, Matrices::General, 1e4});
      all.push_back({"scale 1/100", volume, image, 1, 4., Matrices::General, 0.01});
      all.push_back({"singular", volume, image, 1, 4., Matrices::Singular});
      all.push_back({"zero", volume, image, 1, 4., Matrices::Zero});
      all.push_back({"identity", volume, image, 1, 9., Matrices::Identity});
    }
  return all;
}

/// Everything the operators read, at random.
template <class T>
struct Problem {
  Shape shape;
  const Operators<T>& operators;
  Reference reference;
  ProjectionOptions options;
  Tensor<complex<T>> reconstruction, projections;
  Tensor<T> weights;
  HostPoses<T> poses;

  Problem(const Shape& asked, const std::string& kernel, std::size_t batches = 2, std::size_t pose_count = 3)
      : shape(asked), operators(Test::operators<T>(kernel, static_cast<int>(asked.image.size()),
                                                   static_cast<int>(asked.volume.size()))),
        options{
            .oversampling = asked.oversampling, .radius = asked.radius, .ewald_radius = asked.ewald_radius} {
    const std::size_t m = shape.image.size(), d = shape.volume.size();
    const double n = *std::min_element(shape.image.begin(), shape.image.end());
    const double N = *std::min_element(shape.volume.begin(), shape.volume.end());
    reference = {kernel,
                 shape.volume,
                 shape.image,
                 shape.oversampling,
                 shape.radius.value_or(std::min(n / 2, N / (2 * shape.oversampling))),
                 shape.ewald_radius};
    Random random(17 * shape.volume[0] + 5 * shape.image[0] + d * m);
    reconstruction = hermitian(spectra<complex<T>>({batches}, shape.volume), shape.volume, random);
    projections = random_like(spectra<complex<T>>({batches, pose_count}, shape.image), random);
    weights = random_like(spectra<T>({batches, pose_count}, shape.image), random);
    poses.matrices = random_like(Tensor<T>({batches, pose_count, d, d}), random);
    for (std::size_t i = 0; i < poses.matrices.size(); ++i) {
      const std::size_t row = i / d % d, column = i % d;
      T& element = poses.matrices[i];
      if (shape.kind == Matrices::Identity)
        element = row == column;
      if (shape.kind == Matrices::Zero)
        element = 0;
      if (shape.kind == Matrices::Singular && column > 0)
        element = static_cast<T>(-0.5) * poses.matrices[i - 1];
      element *= static_cast<T>(shape.scale);
    }
    if (shape.kind == Matrices::Rotation)
      for (std::size_t pose = 0; pose < batches * pose_count; ++pose) {
        const Matrix3 rotation = random_rotation(static_cast<int>(d), random);
        for (std::size_t i = 0; i < d * d; ++i)
          poses.matrices[pose * d * d + i] = static_cast<T>(rotation[i / d][i % d]);
      }
    poses.shifts = random_like(Tensor<T>({batches, pose_count, m}), random);
    for (T& shift : poses.shifts.values)
      shift *= 5;
  }

  /// Random spectra of real volumes: on self-mated columns the two stored mates are conjugates.
  static Tensor<complex<T>> hermitian(Tensor<complex<T>> volume, const Sizes& sizes, Random& random) {
    fill(volume, random);
    const std::size_t columns = sizes.back() / 2 + 1;
    std::size_t rows = 1;
    for (std::size_t axis = 0; axis + 1 < sizes.size(); ++axis)
      rows *= sizes[axis];
    for (std::size_t i = 0; i < volume.size(); ++i) {
      const std::size_t x = i % columns, row = i / columns % rows, batch = i / columns / rows;
      if (x != 0 && 2 * x != std::size_t(sizes.back()))
        continue;
      const std::size_t height = sizes[sizes.size() - 2], y = row % height, z = row / height;
      const std::size_t depth = rows / height, mate = (depth - z) % depth * height + (height - y) % height;
      auto& value = volume[(batch * rows + mate) * columns + x];
      value = mate == row ? complex<T>(volume[i].real(), 0) : Kokkos::conj(volume[i]);
    }
    return volume;
  }

  /// Projections and back-projections by definition.
  Tensor<complex<double>> reference_projections() const {
    auto result = zero_like(projections);
    for_each_pose([&](std::size_t batch, std::size_t pose) {
      reference.project(&reconstruction.values[batch * volume_elements()], matrix(pose), shift(pose),
                        &result.values[pose * image_elements()]);
    });
    return result;
  }
  void reference_backprojections(bool absolute, Tensor<complex<double>>& data, Tensor<double>& weight) const {
    for_each_pose([&](std::size_t batch, std::size_t pose) {
      reference.backproject(&projections.values[pose * image_elements()],
                            &weights.values[pose * image_elements()], matrix(pose), shift(pose), absolute,
                            &data.values[batch * volume_elements()],
                            &weight.values[batch * volume_elements()]);
    });
  }

  template <class Visit>
  void for_each_pose(const Visit& visit) const {
    const std::size_t count = projections.extents[1];
    for (std::size_t pose = 0; pose < projections.extents[0] * count; ++pose)
      visit(pose / count, pose);
  }
  std::size_t volume_elements() const { return reference.elements(shape.volume); }
  std::size_t image_elements() const { return reference.elements(shape.image); }
  const T* matrix(std::size_t pose) const {
    return &poses.matrices.values[pose * shape.volume.size() * shape.volume.size()];
  }
  const T* shift(std::size_t pose) const { return &poses.shifts.values[pose * shape.image.size()]; }
};

inline std::string describe(const Shape& shape) {
  std::string text = shape.name;
  for (const Sizes& sizes : {shape.volume, shape.image}) {
    text += ",";
    for (const int size : sizes)
      text += " " + std::to_string(size);
  }
  return text;
}

} // namespace Test
