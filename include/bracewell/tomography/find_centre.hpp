// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/row_loop.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <vector>

namespace Bracewell {

struct CentreOptions {
  std::optional<double> first = {}; ///< pixel to search from; absent: a quarter of the width from the middle
  std::optional<double> last = {};
  double object_radius =
      0.7; ///< of the half width: frequencies that an object of this radius lacks are looked at
};

namespace Impl {

/// Whole turns: the rows of half a turn, then the same seen from behind, mirrored about a trial centre. Where
/// the mirrored row has nothing, the row that continues the sequence of angles stands in.
template <class T>
struct TurnSinogram {
  const T* half;            ///< [angles, width]
  T* turns;                 ///< [trials, 2 angles, width]
  int angles, width, first; ///< twice the centre of the first trial, one more in each of the next

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const int trial = static_cast<int>(row / (2 * angles)), p = static_cast<int>(row % (2 * angles));
    const T* same = half + std::int64_t(p % angles) * width;
    const T* flipped = half + std::int64_t(angles - 1 - p % angles) * width;
    const int twice = first + trial;
    T* out = turns + row * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      const int mirrored = twice - i;
      out[i] = p < angles ? same[i] : (mirrored >= 0 && mirrored < width ? same[mirrored] : flipped[i]);
    });
  }
};

/// Mean amplitude, per trial, where the spectrum of a turn has nothing: below the double wedge
/// |m| <= 2 pi R q of an object of radius R (m cycles per turn, q per pixel).
template <class ExecutionSpace, class T>
struct WedgeAmplitude {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  const Kokkos::complex<T>* spectra; ///< [trials, rows, columns]
  double* amplitudes;
  int rows, columns, drop;
  double slope;                       ///< m per column at the wedge's edge
  double row_damping, column_damping; ///< noise, which is everywhere, counts less at high frequencies

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const std::int64_t count = std::int64_t(rows) * columns;
    const Kokkos::complex<T>* spectrum = spectra + member.league_rank() * count;
    double sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, rows),
        [&](int row, double& partial) {
          const int m = row <= rows / 2 ? row : rows - row;
          if (m < drop)
            return;
          for (int k = 2; k < columns && k * slope < m; ++k)
            partial += Kokkos::abs(spectrum[std::int64_t(row) * columns + k]) *
                       Kokkos::exp(-row_damping * m * m - column_damping * k * k);
        },
        sum);
    Kokkos::single(Kokkos::PerTeam(member), [&] { amplitudes[member.league_rank()] = sum; });
  }
};

/// Half a turn, reduced by means over `bin` columns and `skip` rows.
template <class T>
struct ReduceSinogram {
  const T* sinogram;
  const int* rows; ///< of the half turn, in order
  T* reduced;
  int width, reduced_width, bin, skip;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    T* out = reduced + row * reduced_width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, reduced_width), [&](int i) {
      T sum = 0;
      for (int p = 0; p < skip; ++p) {
        const T* in = sinogram + std::int64_t(rows[row * skip + p]) * width;
        for (int k = 0; k < bin; ++k)
          sum += in[i * bin + k];
      }
      out[i] = sum / T(bin * skip);
    });
  }
};

/// Takes the mean over the angles from every column: detector pixels of wrong response, which make rings, are
/// no part of the object.
template <class T>
struct CentreColumns {
  T* half; ///< [angles, width]
  int angles, width;

  KOKKOS_FUNCTION void operator()(int i) const {
    double sum = 0;
    for (int p = 0; p < angles; ++p)
      sum += half[std::int64_t(p) * width + i];
    const T mean = T(sum / angles);
    for (int p = 0; p < angles; ++p)
      half[std::int64_t(p) * width + i] -= mean;
  }
};

/// The trial with the least amplitude in the wedge, twice the centre; between trials by a parabola.
template <class ExecutionSpace, class T>
double best_turn(const ExecutionSpace& space, const T* half, int angles, int width, int first, int last,
                 double object_radius) {
  using MemorySpace = typename ExecutionSpace::memory_space;
  const int trials = last - first + 1;
  const int at_once = static_cast<int>(
      std::clamp<std::int64_t>((std::int64_t(1) << 22) / (2 * std::int64_t(angles) * width), 1, trials));
  const int columns = width / 2 + 1;
  using Label = std::string;
  const auto allocation = [&](const char* label) {
    return Kokkos::view_alloc(space, Kokkos::WithoutInitializing, Label(label));
  };
  const auto size = [](int value) { return static_cast<std::size_t>(value); };
  const Kokkos::View<T***, Kokkos::LayoutRight, MemorySpace> turns(
      allocation("Bracewell::find_centre::turns"), size(at_once), size(2 * angles), size(width));
  const Kokkos::View<Kokkos::complex<T>***, Kokkos::LayoutRight, MemorySpace> spectra(
      allocation("Bracewell::find_centre::spectra"), size(at_once), size(2 * angles), size(columns));
  const Kokkos::View<double*, MemorySpace> amplitudes(allocation("Bracewell::find_centre::amplitudes"),
                                                      size(at_once));
  const FFT<ExecutionSpace, 2, T, Kokkos::complex<T>> transform(space, {2 * angles, width}, at_once);
  const double slope = std::numbers::pi * object_radius; // 2 pi R / n per column
  const int drop = std::clamp(angles / 8, 1, 20);        // slow changes of the beam are there
  // Gaussians of one degree and one pixel: exp(-2 pi^2 sigma^2 frequency^2).
  const double row_damping = 2 * std::pow(std::numbers::pi / 360, 2);
  const double column_damping = 2 * std::pow(std::numbers::pi / width, 2);

  std::vector<double> values;
  for (int done = 0; done < trials; done += at_once) {
    for_each_row(space, "Bracewell::find_centre::turn", std::int64_t(at_once) * 2 * angles,
                 TurnSinogram<T>{half, turns.data(), angles, width, first + done});
    transform.execute(space, turns, spectra);
    Kokkos::parallel_for(
        "Bracewell::find_centre::amplitude",
        Kokkos::TeamPolicy<ExecutionSpace>(space, at_once, is_host<ExecutionSpace> ? 1 : 256),
        WedgeAmplitude<ExecutionSpace, T>{spectra.data(), amplitudes.data(), 2 * angles, columns, drop, slope,
                                          row_damping, column_damping});
    const auto host = Kokkos::create_mirror_view(Kokkos::HostSpace(), amplitudes);
    Kokkos::deep_copy(space, host, amplitudes);
    space.fence("Bracewell::find_centre::amplitudes");
    values.insert(values.end(), host.data(), host.data() + std::min(at_once, trials - done));
  }
  const auto least =
      static_cast<std::size_t>(std::min_element(values.begin(), values.end()) - values.begin());
  double between = 0;
  if (least > 0 && least + 1 < values.size()) {
    const double left = values[least - 1], here = values[least], right = values[least + 1];
    const double curvature = left - 2 * here + right;
    between = curvature > 0 ? 0.5 * (left - right) / curvature : 0;
  }
  return first + double(least) + between;
}

} // namespace Impl

/// The detector pixel of the rotation axis, from one sinogram: half a turn and its mirror image make a whole
/// turn, whose spectrum is empty outside of a double wedge when they fit together (Vo, Drakopoulos, Atwood
/// and Reinhard, Opt. Express 22, 2014). First on a reduced sinogram over the whole range, then around
/// that without the means of the columns, at last within a pixel with them; in steps of half a pixel, between
/// these by a parabola. Allocates what it needs, and waits for the result.
/// @param sinogram  [P, n] attenuation, not filtered
/// @param angles    P angles in radians, any order, at least half a turn; the first half turn is used
/// @throws Error on shapes that do not fit, a span of less than 170 degrees, and an empty range
template <class ExecutionSpace, class Sinogram>
double find_centre(const ExecutionSpace& space, const Sinogram& sinogram, const std::vector<double>& angles,
                   const CentreOptions& options = {}) {
  using T = typename Sinogram::non_const_value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  constexpr const char* function = "find_centre";
  constexpr double pi = std::numbers::pi;
  const Array<const T, MemorySpace> in(sinogram);
  if (!in || in.rank != 2 || in.extents[0] != std::int64_t(angles.size()) || in.extents[1] < 16 ||
      in.extents[1] > (1 << 24) || angles.size() > (1u << 24))
    Impl::fail(function, "sinogram", "[" + std::to_string(angles.size()) + ", width >= 16]", in.shape());
  const int n = static_cast<int>(in.extents[1]);
  const double first = options.first.value_or(n / 2 - n / 4), last = options.last.value_or(n / 2 + n / 4);
  if (!(first >= 0 && last >= first && last <= n - 1))
    Impl::fail(function, "options.first, options.last",
               "pixels in order within the row of " + std::to_string(n),
               std::to_string(first) + " and " + std::to_string(last));
  if (!(options.object_radius > 0 && options.object_radius <= 1))
    Impl::fail(function, "options.object_radius", "above 0, at most 1",
               std::to_string(options.object_radius));

  std::vector<int> rows(angles.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::stable_sort(rows.begin(), rows.end(), [&](int a, int b) {
    return angles[static_cast<std::size_t>(a)] < angles[static_cast<std::size_t>(b)];
  });
  const double start = angles[static_cast<std::size_t>(rows.front())];
  const double span = angles[static_cast<std::size_t>(rows.back())] - start;
  const auto beyond = std::find_if(rows.begin(), rows.end(), [&](int row) {
    return angles[static_cast<std::size_t>(row)] - start > pi * (1 - 0.25 / double(angles.size()));
  });
  rows.erase(beyond, rows.end());
  if (!(span > 170 * pi / 180) || rows.size() < 8)
    Impl::fail(function, "angles", "at least 8 over 170 degrees",
               std::to_string(span * 180 / pi) + " degrees");

  const Kokkos::View<int*, MemorySpace> order(
      Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::find_centre::rows"), rows.size());
  const Kokkos::View<const int*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>> host(
      rows.data(), rows.size());
  Kokkos::deep_copy(space, order, host);

  const auto search = [&](int bin, int skip, double from, double to, bool centre_columns) {
    const int width = n / bin, count = static_cast<int>(rows.size()) / skip;
    const Kokkos::View<T**, Kokkos::LayoutRight, MemorySpace> half(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::find_centre::half"),
        static_cast<std::size_t>(count), static_cast<std::size_t>(width));
    Impl::for_each_row(space, "Bracewell::find_centre::reduce", count,
                       Impl::ReduceSinogram<T>{in.data, order.data(), half.data(), n, width, bin, skip});
    if (centre_columns)
      Kokkos::parallel_for("Bracewell::find_centre::columns",
                           Kokkos::RangePolicy<ExecutionSpace>(space, 0, width),
                           Impl::CentreColumns<T>{half.data(), count, width});
    // Bin i is centred on pixel bin i + (bin - 1) / 2.
    const auto twice = [&](double pixel) {
      return static_cast<int>(std::lround(2 * (pixel - 0.5 * (bin - 1)) / bin));
    };
    const double best =
        Impl::best_turn(space, half.data(), count, width, twice(from), twice(to), options.object_radius);
    return best / 2 * bin + 0.5 * (bin - 1);
  };
  const int bin = std::max(1, n / 320), skip = std::max(1, static_cast<int>(rows.size()) / 360);
  const double coarse = search(bin, skip, first, last, false);
  const double reach = std::max(2. * bin, n / 100.);
  const auto around = [&](double pixel, double distance, bool centre_columns) {
    return search(1, std::max(1, static_cast<int>(rows.size()) / 1000), std::max(first, pixel - distance),
                  std::min(last, pixel + distance), centre_columns);
  };
  // Rings mislead by several pixels, the means of the columns tell fractions of one.
  const double fine = around(around(coarse, reach, true), 1, false);
  return std::clamp(fine, first, last);
}

} // namespace Bracewell
