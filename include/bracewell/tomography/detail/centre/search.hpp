// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/half.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/tomography/detail/preprocess_impl.hpp>
#include <bracewell/tomography/detail/tuning.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <optional>
#include <vector>

namespace Bracewell::Impl {

/// Checks the sinogram [P, n] that an axis is searched in.
/// @return n
inline int check_searched_sinogram(const Arguments& arguments, const ArrayShape& sinogram,
                                   const std::vector<double>& angles) {
  const std::int64_t rows = sinogram.extents[0], width = sinogram.extents[1];
  if (sinogram.rank != 2 || rows != std::int64_t(angles.size()) || rows < 1 || rows > 1 << 24 || width < 16 ||
      width > 1 << 24)
    arguments.refuse("sinogram", "[%zu, width from 16 to 2^24], found %s", angles.size(),
                     sinogram.shape_text().characters);
  return static_cast<int>(width);
}

/// Values that are not finite.
template <class T>
struct CountNotFinite {
  const T* values;
  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& count) const {
    count += is_finite(values[i]) ? 0 : 1;
  }
};

/// The least and the largest value.
template <class T>
struct LimitsOfValues {
  const T* values;
  KOKKOS_FUNCTION void operator()(std::int64_t i, Kokkos::MinMaxScalar<T>& limits) const {
    limits.min_val = Kokkos::min(limits.min_val, values[i]);
    limits.max_val = Kokkos::max(limits.max_val, values[i]);
  }
};

/// Refuses a sinogram in which no axis can be found: with values that are not finite, or the same everywhere.
template <class ExecutionSpace, class T>
void check_searched_values(const Arguments& arguments, const ExecutionSpace& space, const T* values,
                           std::int64_t count) {
  const Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>> all(space, 0, count);
  std::int64_t not_finite = 0;
  Kokkos::parallel_reduce("Bracewell::find_centre::finite", all, CountNotFinite<T>{values}, not_finite);
  if (not_finite != 0)
    arguments.refuse("sinogram", "finite values, found %s of %s that are not", Digits(not_finite).characters,
                     Digits(count).characters);
  Kokkos::MinMaxScalar<T> limits;
  Kokkos::parallel_reduce("Bracewell::find_centre::limits", all, LimitsOfValues<T>{values},
                          Kokkos::MinMax<T>(limits));
  if (!(limits.max_val > limits.min_val))
    arguments.refuse("sinogram", "values that differ, those of an object, found %.6g everywhere",
                     double(limits.min_val));
}

/// Whether a row has data: counts of values that are.
template <class T>
struct CountValid {
  const T* valid;
  int* counts;
  int width;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    int count = 0;
    for (int i = 0; i < width; ++i)
      count += valid[row * width + i] > T(0) ? 1 : 0;
    counts[row] = count;
  }
};

/// The sinogram that an axis is searched in, checked. With a mask it is a copy, whose values that are no data lie on straight
/// lines between their neighbours in the row; a row without data is taken to be the row of the nearest angle.
template <class ExecutionSpace, class T>
class SearchedSinogram {
public:
  using Input = Array<const T, typename ExecutionSpace::memory_space>;

  SearchedSinogram(const Arguments& arguments, const ExecutionSpace& space, const Input& sinogram,
                   const Input& valid, const std::vector<double>& angles)
      : values_(sinogram.data) {
    if (valid)
      bridge(arguments, space, sinogram, valid, angles);
    check_searched_values(arguments, space, values_, sinogram.size());
  }

  const T* data() const { return values_; }

private:
  void bridge(const Arguments& arguments, const ExecutionSpace& space, const Input& sinogram,
              const Input& valid, const std::vector<double>& angles) {
    arguments.same_shape("valid", valid, sinogram);
    const std::int64_t rows = sinogram.extents[0], width = sinogram.extents[1];
    const auto counts = device_vector<int>(space, "Bracewell::find_centre::counts", rows);
    launch_kernel("Bracewell::find_centre::count",
                  Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, rows),
                  CountValid<T>{valid.data, counts.data(), int(width)});
    bridged_ = device_vector<T>(space, "Bracewell::find_centre::bridged", sinogram.size());
    const auto copy = [&](const T* from, T* to, std::int64_t count) {
      copy_padded(space, "Bracewell::find_centre::copy", from, count, to, count);
    };
    copy(sinogram.data, bridged_.data(), sinogram.size());
    for_each_row(space, "Bracewell::find_centre::bridge", rows,
                 BridgeInvalid<T>{bridged_.data(), valid.data, int(width)});
    space.fence("Bracewell::find_centre::counts");
    const auto with_data = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), counts);
    for (std::int64_t row = 0; row < rows; ++row) {
      if (with_data(row) > 0)
        continue;
      std::int64_t nearest = -1;
      const auto distance = [&](std::int64_t other) {
        return std::abs(angles[std::size_t(other)] - angles[std::size_t(row)]);
      };
      for (std::int64_t other = 0; other < rows; ++other)
        if (with_data(other) > 0 && (nearest < 0 || distance(other) < distance(nearest)))
          nearest = other;
      arguments.require(nearest >= 0, "valid", "some values above 0", "none");
      copy(bridged_.data() + nearest * width, bridged_.data() + row * width, width);
    }
    values_ = bridged_.data();
  }

  const T* values_;
  Kokkos::View<T*, ExecutionSpace> bridged_;
};

/// The angles of the first half turn, in order.
inline std::vector<int> first_half_turn(const Arguments& arguments, const std::vector<double>& angles) {
  constexpr double pi = std::numbers::pi;
  for (const double angle : angles)
    arguments.finite("angles", angle);
  const auto angle = [&](int row) { return angles[static_cast<std::size_t>(row)]; };
  std::vector<int> rows(angles.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::stable_sort(rows.begin(), rows.end(), [&](int a, int b) { return angle(a) < angle(b); });
  const double start = angle(rows.front()), span = angle(rows.back()) - start;
  const auto beyond = std::find_if(rows.begin(), rows.end(), [&](int row) {
    return angle(row) - start > pi * (1 - 0.25 / double(angles.size()));
  });
  rows.erase(beyond, rows.end());
  if (!(span > 170 * pi / 180 && rows.size() >= 8))
    arguments.refuse("angles", "at least 8 over 170 degrees, found %zu over %.6g degrees", rows.size(),
                     span * 180 / pi);
  return rows;
}

/// Whole turns: the rows of half a turn, then the same seen from behind, mirrored about a trial centre. Where
/// the mirrored row has nothing, the row that continues the sequence of angles stands in.
template <class T>
struct CompleteSinogram {
  const T* half;            ///< [angles, width]
  T* whole;                 ///< [trials, 2 angles, width]
  int angles, width, first; ///< twice the centre of the first trial, one more in each of the next

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const int trial = static_cast<int>(row / (2 * angles)), p = static_cast<int>(row % (2 * angles));
    const T* same = half + std::int64_t(p % angles) * width;
    const T* flipped = half + std::int64_t(angles - 1 - p % angles) * width;
    const int twice = first + trial;
    T* out = whole + row * width;
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
/// no part of the object. What is left of columns that do not change is rounding, and zero.
template <class T>
struct CentreColumns {
  T* half; ///< [angles, width]
  int angles, width;

  KOKKOS_FUNCTION void operator()(int i) const {
    double sum = 0;
    for (int p = 0; p < angles; ++p)
      sum += half[std::int64_t(p) * width + i];
    const T mean = T(sum / angles);
    const T rounding =
        (16 * Kokkos::Experimental::epsilon_v<T> + T(angles * Kokkos::Experimental::epsilon_v<double>)) *
        Kokkos::abs(mean); // of values and of their sum
    for (int p = 0; p < angles; ++p) {
      T& value = half[std::int64_t(p) * width + i];
      value = Kokkos::abs(value - mean) <= rounding ? T(0) : value - mean;
    }
  }
};

/// Where values are least, counted from `first`; between them by a parabola.
inline double position_of_least(const std::vector<double>& values, int first) {
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

/// How far the least of amplitudes lies below the one in the middle of their order, relative to it.
inline double depth_of_least(std::vector<double> amplitudes) {
  const auto middle = amplitudes.begin() + std::ssize(amplitudes) / 2;
  std::nth_element(amplitudes.begin(), middle, amplitudes.end());
  return *middle > 0 ? 1 - *std::min_element(amplitudes.begin(), amplitudes.end()) / *middle : 0;
}

/// Makes whole turns of half a turn, about some trial centres at once, and looks into their spectra.
template <class ExecutionSpace, class T>
class CentreTrials {
public:
  CentreTrials(const ExecutionSpace& space, int angles, int width, int trials, double object_radius)
      : angles_(angles), width_(width), trials_(trials), object_radius_(object_radius),
        at_once_(static_cast<int>(std::clamp<std::int64_t>(TomographyTuning<ExecutionSpace>::centre_values /
                                                               (2 * std::int64_t(angles) * width),
                                                           1, trials))),
        whole_(device_vector<T>(space, "Bracewell::find_centre::whole",
                                std::int64_t(at_once_) * 2 * angles * width)),
        spectra_(device_vector<Kokkos::complex<T>>(space, "Bracewell::find_centre::spectra",
                                                   std::int64_t(at_once_) * 2 * angles * (width / 2 + 1))),
        amplitudes_(device_vector<double>(space, "Bracewell::find_centre::amplitudes", at_once_)),
        transform_(space, {2 * angles, width}, at_once_) {}

  /// Amplitudes in the wedge about the centres first / 2, (first + 1) / 2, ...; waits for them. `report` gets the
  /// share that is done.
  template <class Report>
  std::vector<double> amplitudes(const ExecutionSpace& space, const T* half, int first,
                                 const Report& report) const {
    std::vector<double> result;
    for (int done = 0; done < trials_; done += at_once_) {
      for_each_row(space, "Bracewell::find_centre::complete", std::int64_t(at_once_) * 2 * angles_,
                   CompleteSinogram<T>{half, whole_.data(), angles_, width_, first + done});
      transform_.execute(space, array_of<MemorySpace>(whole_.data(), at_once_, 2 * angles_, width_),
                         array_of<MemorySpace>(spectra_.data(), at_once_, 2 * angles_, width_ / 2 + 1));
      launch_kernel("Bracewell::find_centre::amplitude",
                    Kokkos::TeamPolicy<ExecutionSpace>(space, at_once_,
                                                       +TomographyTuning<ExecutionSpace>::centre_threads),
                    wedge());
      result.resize(static_cast<std::size_t>(std::min(done + at_once_, trials_)));
      copy_to_host(space, amplitudes_.data(), result.size() - std::size_t(done),
                   result.data() + std::size_t(done));
      space.fence("Bracewell::find_centre::amplitudes");
      report(double(result.size()) / trials_);
    }
    return result;
  }

  /// The relative deviation of an amplitude where there is noise alone: a sum of numbers that have Rayleigh's distribution,
  /// whose deviation is sqrt(4 / pi - 1) of the mean.
  double noise() const {
    const auto terms = wedge();
    std::vector<double> of_column(static_cast<std::size_t>(terms.columns));
    for (int k = 0; k < terms.columns; ++k)
      of_column[static_cast<std::size_t>(k)] = std::exp(-terms.column_damping * k * k);
    double sum = 0, squares = 0;
    for (int row = 0; row < terms.rows; ++row) {
      const int m = std::min(row, terms.rows - row);
      const double of_row = std::exp(-terms.row_damping * m * m);
      for (int k = 2; m >= terms.drop && k < terms.columns && k * terms.slope < m; ++k) {
        const double weight = of_row * of_column[static_cast<std::size_t>(k)];
        sum += weight;
        squares += weight * weight;
      }
    }
    return sum > 0 ? std::sqrt((4 / std::numbers::pi - 1) * squares) / sum : 0;
  }

private:
  using MemorySpace = typename ExecutionSpace::memory_space;

  WedgeAmplitude<ExecutionSpace, T> wedge() const {
    const double slope = std::numbers::pi * object_radius_; // 2 pi R / n per column
    const int drop = std::clamp(angles_ / 8, 1, 20);        // slow changes of the beam are there
    // Gaussians of one degree and one pixel: exp(-2 pi^2 sigma^2 frequency^2).
    const double row_damping = 2 * std::pow(std::numbers::pi / 360, 2);
    const double column_damping = 2 * std::pow(std::numbers::pi / width_, 2);
    return {spectra_.data(), amplitudes_.data(), 2 * angles_,   width_ / 2 + 1, drop,
            slope,           row_damping,        column_damping};
  }

  int angles_, width_, trials_;
  double object_radius_;
  int at_once_;
  Kokkos::View<T*, ExecutionSpace> whole_; ///< [trials at once, 2 angles, width]
  Kokkos::View<Kokkos::complex<T>*, ExecutionSpace> spectra_;
  Kokkos::View<double*, ExecutionSpace> amplitudes_;
  FFT<ExecutionSpace, 2, T, Kokkos::complex<T>> transform_;
};

/// Searches for the axis in one sinogram, at any resolution.
template <class ExecutionSpace, class T>
struct CentreSearch {
  const T* sinogram;
  const int* rows; ///< of half a turn, in order
  int width, count;
  double object_radius;
  std::function<void(double)> progress;

  /// The best centre in pixels `from` to `to`, where means over `bin` columns and `skip` rows are one value. Without a value where
  /// column means were all of the sinogram but noise, an object that is round about the axis.
  template <class Report>
  std::optional<double> search(const ExecutionSpace& space, int bin, int skip, double from, double to,
                               bool centre_columns, const Report& report) const {
    const int columns = width / bin, angles = count / skip;
    const auto half = device_vector<T>(space, "Bracewell::find_centre::half", std::int64_t(angles) * columns);
    for_each_row(space, "Bracewell::find_centre::reduce", angles,
                 ReduceSinogram<T>{sinogram, rows, half.data(), width, columns, bin, skip});
    if (centre_columns)
      launch_kernel("Bracewell::find_centre::columns", Kokkos::RangePolicy<ExecutionSpace>(space, 0, columns),
                    CentreColumns<T>{half.data(), angles, columns});
    // Bin i is centred on pixel bin i + (bin - 1) / 2.
    const auto twice = [&](double pixel) {
      return static_cast<int>(std::lround(2 * (pixel - 0.5 * (bin - 1)) / bin));
    };
    const int first = twice(from), trials = twice(to) - first + 1;
    const CentreTrials<ExecutionSpace, T> trial_centres(space, angles, columns, trials, object_radius);
    const auto amplitudes = trial_centres.amplitudes(space, half.data(), first, report);
    constexpr double above_noise = 1.2; // noise alone reaches 0.3 to 1.1, a real scan of dendrites 1.5
    if (centre_columns && depth_of_least(amplitudes) <= above_noise * trial_centres.noise())
      return std::nullopt;
    const double best = position_of_least(amplitudes, first);
    return best / 2 * bin + 0.5 * (bin - 1);
  }

  /// First coarsely over the whole range, then around what was found.
  double search(const ExecutionSpace& space, double first, double last) const {
    const int bin = std::max(1, (width + 160) / 320), skip = std::max(1, count / 360);
    const int fine_skip = std::max(1, count / 1000);
    const double reach = std::max(2. * bin, width / 100.);
    const auto work = [&](int b, int s, double span) {
      return (2 * span / b + 1) * double(count / s) * double(width / b);
    };
    const double total =
        work(bin, skip, last - first) + work(1, fine_skip, 2 * reach) + work(1, fine_skip, 2);
    double done = 0;
    const auto part = [&](int b, int s, double from, double to, bool centre_columns) {
      const double share = work(b, s, to - from) / total;
      const auto best = search(space, b, s, from, to, centre_columns, [&](double of_it) {
        if (progress)
          progress(std::min(1.0, done + share * of_it));
      });
      done += share;
      return best;
    };
    const double coarse = *part(bin, skip, first, last, false);
    const auto around = [&](double pixel, double distance, bool centre_columns) {
      return part(1, fine_skip, std::max(first, pixel - distance), std::min(last, pixel + distance),
                  centre_columns);
    };
    // Rings mislead by several pixels, the means of the columns tell fractions of one.
    auto near = around(coarse, reach, true);
    if (!near)
      near = around(coarse, reach, false);
    return std::clamp(*around(*near, 1, false), first, last);
  }
};

} // namespace Bracewell::Impl
