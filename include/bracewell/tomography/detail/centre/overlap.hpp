// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/tomography/detail/centre/search.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

namespace Bracewell::Impl {

/// Weight of a detector pixel: 2 where it alone sees a ray, 0 to 2 where the opposite view does, too.
struct OverlapWeight {
  double centre, reach; ///< pixels from the axis to the nearer end
  double side;          ///< 1 where that is the last pixel, -1 where it is the first

  OverlapWeight(int width, double axis)
      : centre(axis), reach(std::min(axis, width - 1 - axis)), side(2 * axis >= width - 1 ? 1 : -1) {}

  KOKKOS_FUNCTION double operator()(int i) const {
    const double distance = side * (i - centre); // towards the nearer end
    if (!(Kokkos::abs(distance) < reach))
      return distance < 0 ? 2 : (distance > 0 ? 0 : 1);
    const double cosine = Kokkos::cos(0.25 * Kokkos::numbers::pi * (1 + distance / reach));
    return 2 * cosine * cosine;
  }
};

/// Checks rows [slices, angles, pixels] of half acquisition, and where the axis is in them.
inline void check_half_acquisition(const Arguments& arguments, const ArrayShape& rows, double centre) {
  if (rows.rank != 3 || rows.extents[2] < 1 || rows.extents[2] >= 1 << 29)
    arguments.refuse("sinograms", "[slices, angles, width], found %s", rows.shape_text().characters);
  arguments.within("centre", centre, 0., double(rows.extents[2] - 1), " pixels");
}

template <class T>
struct WeighOverlap {
  const T* rows;
  T* wider;
  int width, wider_width, offset;
  OverlapWeight weight;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t number, const Member& member) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, wider_width), [&](int j) {
      const int i = j - offset;
      wider[number * wider_width + j] = i >= 0 && i < width ? T(weight(i)) * rows[number * width + i] : T(0);
    });
  }
};

template <class T>
struct WeighOverlapTranspose {
  const T* wider;
  T* rows;
  int width, wider_width, offset;
  OverlapWeight weight;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t number, const Member& member) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      rows[number * width + i] = T(weight(i)) * wider[number * wider_width + i + offset];
    });
  }
};

/// Pairs of rows half a turn apart, at most 256 of them: those of the first half turn, and their opposite ones.
inline std::pair<std::vector<int>, std::vector<int>> opposite_rows(const Arguments& arguments,
                                                                   const std::vector<double>& angles) {
  constexpr double pi = std::numbers::pi;
  for (const double angle : angles)
    arguments.finite("angles", angle);
  std::vector<int> order(angles.size());
  std::iota(order.begin(), order.end(), 0);
  const auto angle = [&](int row) { return angles[static_cast<std::size_t>(row)]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return angle(a) < angle(b); });
  const double start = angle(order.front()), span = angle(order.back()) - start;
  if (!(span > 350 * pi / 180 && order.size() >= 16))
    arguments.refuse("angles", "at least 16 over 350 degrees, found %zu over %.6g degrees", angles.size(),
                     span * 180 / pi);
  std::vector<int> first;
  for (const int row : order)
    if (angle(row) - start < pi * (1 - 0.25 / double(order.size())))
      first.push_back(row);
  const std::size_t step = (first.size() + 255) / 256;
  std::pair<std::vector<int>, std::vector<int>> pairs;
  for (std::size_t k = 0; k < first.size(); k += step) {
    const double opposite = angle(first[k]) + pi;
    auto next = std::lower_bound(order.begin(), order.end(), opposite,
                                 [&](int row, double value) { return angle(row) < value; });
    if (next == order.end() ||
        (next != order.begin() && opposite - angle(*(next - 1)) < angle(*next) - opposite))
      --next;
    pairs.first.push_back(first[k]);
    pairs.second.push_back(*next);
  }
  return pairs;
}

/// Mean over some rows of every column, and the sum of the squares of what is left.
template <class T>
struct RowStatistics {
  const T* sinogram;
  const int* rows;
  double *mean, *power;
  int count, width;

  KOKKOS_FUNCTION void operator()(int i) const {
    double sum = 0, squares = 0;
    for (int k = 0; k < count; ++k)
      sum += sinogram[std::int64_t(rows[k]) * width + i];
    mean[i] = sum / count;
    for (int k = 0; k < count; ++k) {
      const double value = sinogram[std::int64_t(rows[k]) * width + i] - mean[i];
      squares += value * value;
    }
    power[i] = squares;
  }
};

/// Sum of products of rows and the mirror images of the opposite ones, about twice the centre first + league rank.
template <class ExecutionSpace, class T>
struct OverlapProducts {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  const T* sinogram;
  const int *rows, *opposite;
  const double *mean, *opposite_mean;
  double* products;
  int count, width, first;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int twice = first + static_cast<int>(team.league_rank());
    const int begin = Kokkos::max(0, twice - width + 1), end = Kokkos::min(width, twice + 1);
    double total = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, count),
        [&](int k, double& sum) {
          const T *const a = sinogram + std::int64_t(rows[k]) * width, *const b =
                                                                           sinogram +
                                                                           std::int64_t(opposite[k]) * width;
          double row = 0;
          Kokkos::parallel_reduce(
              Kokkos::ThreadVectorRange(team, begin, end),
              [&](int i, double& part) {
                part += (a[i] - mean[i]) * (b[twice - i] - opposite_mean[twice - i]);
              },
              row);
          sum += row;
        },
        total);
    Kokkos::single(Kokkos::PerTeam(team), [&] { products[team.league_rank()] = total; });
  }
};

/// See find_overlap.
template <class ExecutionSpace, class T>
double search_overlap(const ExecutionSpace& space, const T* sinogram, int width,
                      const std::pair<std::vector<int>, std::vector<int>>& pairs, int least) {
  const auto count = static_cast<int>(pairs.first.size());
  const int first = least - 1, trials = 2 * (width - 1) - 2 * first + 1; // twice the centre
  const auto rows = device_copy(space, "Bracewell::find_overlap::rows", pairs.first),
             opposite = device_copy(space, "Bracewell::find_overlap::opposite", pairs.second);
  const auto columns =
                 device_vector<double>(space, "Bracewell::find_overlap::columns", 4 * std::int64_t(width)),
             products = device_vector<double>(space, "Bracewell::find_overlap::products", trials);
  double* const mean = columns.data();
  const Kokkos::RangePolicy<ExecutionSpace> all(space, 0, width);
  launch_kernel("Bracewell::find_overlap::statistics", all,
                RowStatistics<T>{sinogram, rows.data(), mean, mean + 2 * width, count, width});
  launch_kernel("Bracewell::find_overlap::statistics", all,
                RowStatistics<T>{sinogram, opposite.data(), mean + width, mean + 3 * width, count, width});
  using Tuning = TomographyTuning<ExecutionSpace>;
  launch_kernel(
      "Bracewell::find_overlap::products",
      Kokkos::TeamPolicy<ExecutionSpace>(space, trials, +Tuning::overlap_rows, +Tuning::overlap_lanes),
      OverlapProducts<ExecutionSpace, T>{sinogram, rows.data(), opposite.data(), mean, mean + width,
                                         products.data(), count, width, first});
  const auto powers = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), columns),
             sums = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), products);
  const double *const a = powers.data() + 2 * width, *const b = a + width;
  std::vector<double> unlike; // minus the coefficient of correlation
  for (int trial = 0; trial < trials; ++trial) {
    const int twice = first + trial, begin = std::max(0, twice - width + 1), end = std::min(width, twice + 1);
    double of_rows = 0, of_opposite = 0;
    for (int i = begin; i < end; ++i) {
      of_rows += a[i];
      of_opposite += b[twice - i];
    }
    const double scale = std::sqrt(of_rows * of_opposite);
    unlike.push_back(scale > 0 ? -sums(static_cast<std::size_t>(trial)) / scale : 0);
  }
  return 0.5 * position_of_least(unlike, first);
}

} // namespace Bracewell::Impl
