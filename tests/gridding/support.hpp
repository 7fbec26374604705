// SPDX-License-Identifier: MIT
// Sums over samples at non-uniform frequencies, written out as they are defined, and random problems for
// them.
#pragma once

#include "../deep_copy.hpp"

#include <bracewell/gridding/nonuniform_fft.hpp>

#include <array>
#include <complex>
#include <numbers>
#include <random>
#include <vector>

namespace GriddingTest {

using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;
using Values = std::vector<std::complex<double>>;
using Bracewell::GriddingStrategy;
using Bracewell::SampleOrder;

/// What a space has in 2D: Tiles on GPUs.
inline constexpr GriddingStrategy tiles_or_bins =
    Bracewell::Impl::is_host<Space> ? GriddingStrategy::Bins : GriddingStrategy::Tiles;

/// Those that take any points, and those of polar points.
inline std::vector<GriddingStrategy> strategies(bool polar = false) {
  std::vector<GriddingStrategy> result{GriddingStrategy::Atomic, GriddingStrategy::Bins};
  if (!Bracewell::Impl::is_host<Space>)
    result.push_back(GriddingStrategy::Tiles);
  if (polar)
    result.push_back(GriddingStrategy::PrunedGather);
  return result;
}

/// Those that sort samples into bins: boxes on NVIDIA's GPUs in 3D.
template <int Dim>
std::vector<GriddingStrategy> sorted_strategies() {
  std::vector<GriddingStrategy> result{GriddingStrategy::Bins};
  using Bracewell::Impl::BoxLimits;
  if constexpr (Dim == 3 && !Bracewell::Impl::is_host<Space>) {
    if (BoxLimits::team_scratch <= Bracewell::Impl::most_scratch(Space())) {
      result.push_back(GriddingStrategy::OwnedBoxes);
      if (Bracewell::Impl::matrix_units)
        result.push_back(GriddingStrategy::MatrixBoxes);
    }
  }
  return result;
}

inline Values random_values(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Values values(count);
  for (auto& value : values) {
    const double real = uniform(generator); // in this order
    value = {real, uniform(generator)};
  }
  return values;
}

template <class T>
View<Kokkos::complex<T>**> to_device(const Values& values, std::int64_t rows) {
  const auto count = static_cast<std::size_t>(rows);
  const View<Kokkos::complex<T>**> view("values", count, values.size() / count);
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < values.size(); ++i)
    host.data()[i] = Kokkos::complex<T>(T(values[i].real()), T(values[i].imag()));
  Test::deep_copy(view, host);
  return view;
}

template <class V>
Values to_host(const V& view) {
  const auto host = Test::on_host(view);
  Values values(host.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = {host.data()[i].real(), host.data()[i].imag()};
  return values;
}

inline double relative_error(const Values& a, const Values& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::norm(a[i] - b[i]);
    norm += std::norm(b[i]);
  }
  return a.size() == b.size() ? std::sqrt(difference / norm) : INFINITY;
}

inline std::complex<double> dot(const Values& a, const Values& b) {
  std::complex<double> sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += std::conj(a[i]) * b[i];
  return sum;
}

/// Rays over a half-turn.
inline Bracewell::PolarPoints rays(int angles, int samples) {
  Bracewell::PolarPoints points{.samples = samples};
  for (int p = 0; p < angles; ++p)
    points.angles.push_back(std::numbers::pi * p / angles);
  return points;
}

/// Points in any periods.
template <int Dim>
struct Points {
  std::vector<std::array<double, Dim>> list;

  static Points random(std::size_t count, double reach = 2.5, unsigned seed = 7) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> uniform(-reach, reach);
    Points points;
    for (std::size_t i = 0; i < count; ++i)
      for (double& x : points.list.emplace_back())
        x = uniform(generator);
    return points;
  }

  static Points polar(const Bracewell::PolarPoints& rays) {
    Points points;
    const double step = rays.step == 0 ? 1. / rays.samples : rays.step;
    for (const double angle : rays.angles)
      for (int j = 0; j < rays.samples; ++j)
        points.list.push_back({(j - rays.samples / 2) * step * std::cos(angle),
                               (j - rays.samples / 2) * step * std::sin(angle)});
    return points;
  }

  View<double**> device() const {
    const View<double**> view("points", list.size(), Dim);
    const auto host = Kokkos::create_mirror_view(view);
    for (std::size_t i = 0; i < list.size(); ++i)
      for (int d = 0; d < Dim; ++d)
        host(i, d) = list[i][static_cast<std::size_t>(d)];
    Test::deep_copy(view, host);
    return view;
  }
};

/// Calls visit(pixel, j, exp(2 pi i x_j . X)) for every pixel and point.
template <int Dim, class Visit>
void for_each_phase(const Points<Dim>& points, const std::array<int, Dim>& shape, const Visit& visit) {
  std::size_t pixels = 1;
  for (const int size : shape)
    pixels *= static_cast<std::size_t>(size);
  for (std::size_t pixel = 0; pixel < pixels; ++pixel)
    for (std::size_t j = 0; j < points.list.size(); ++j) {
      double turns = 0;
      std::size_t rest = pixel;
      for (std::size_t d = 0; d < Dim; ++d) {
        const auto size = static_cast<std::size_t>(shape[Dim - 1 - d]);
        turns += points.list[j][d] * (double(rest % size) - double(size / 2));
        rest /= size;
      }
      visit(pixel, j, std::polar(1., 2 * std::numbers::pi * turns));
    }
}

/// image(X) = sum_j sample_j exp(2 pi i x_j . X) for every slice.
template <int Dim>
Values direct(const Points<Dim>& points, const Values& samples, const std::array<int, Dim>& shape) {
  std::size_t pixels = 1;
  for (const int size : shape)
    pixels *= static_cast<std::size_t>(size);
  const std::size_t count = points.list.size(), slices = samples.size() / count;
  Values image(slices * pixels);
  for_each_phase<Dim>(points, shape, [&](std::size_t pixel, std::size_t j, const auto& phase) {
    for (std::size_t slice = 0; slice < slices; ++slice)
      image[slice * pixels + pixel] += samples[slice * count + j] * phase;
  });
  return image;
}

/// sample_j = sum_X image(X) exp(-2 pi i x_j . X) for every slice.
template <int Dim>
Values direct_forward(const Points<Dim>& points, const Values& image, const std::array<int, Dim>& shape) {
  std::size_t pixels = 1;
  for (const int size : shape)
    pixels *= static_cast<std::size_t>(size);
  const std::size_t count = points.list.size(), slices = image.size() / pixels;
  Values samples(slices * count);
  for_each_phase<Dim>(points, shape, [&](std::size_t pixel, std::size_t j, const auto& phase) {
    for (std::size_t slice = 0; slice < slices; ++slice)
      samples[slice * count + j] += image[slice * pixels + pixel] * std::conj(phase);
  });
  return samples;
}

template <class T, int Dim>
auto images(std::int64_t slices, const std::array<int, Dim>& shape) {
  if constexpr (Dim == 1)
    return View<Kokkos::complex<T>**>("images", slices, shape[0]);
  else if constexpr (Dim == 2)
    return View<Kokkos::complex<T>***>("images", slices, shape[0], shape[1]);
  else
    return View<Kokkos::complex<T>****>("images", slices, shape[0], shape[1], shape[2]);
}

/// The same values with the slices last.
inline Values transposed(const Values& values, std::size_t rows) {
  const std::size_t columns = values.size() / rows;
  Values result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    result[i % columns * rows + i / columns] = values[i];
  return result;
}

} // namespace GriddingTest
