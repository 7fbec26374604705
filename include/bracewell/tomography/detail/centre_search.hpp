// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/tomography/detail/tuning.hpp>
#include <bracewell/tomography/detail/turn_sinogram.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

namespace Bracewell::Impl {

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

/// Makes whole turns of half a turn, about some trial centres at once, and looks into their spectra.
template <class ExecutionSpace, class T>
class TurnTrials {
public:
  TurnTrials(const ExecutionSpace& space, int angles, int width, int trials, double object_radius)
      : angles_(angles), width_(width), trials_(trials), object_radius_(object_radius),
        at_once_(static_cast<int>(std::clamp<std::int64_t>(TomographyTuning<ExecutionSpace>::centre_values /
                                                               (2 * std::int64_t(angles) * width),
                                                           1, trials))),
        whole_(allocation(space, "Bracewell::find_centre::whole"), size(at_once_), size(2 * angles),
               size(width)),
        spectra_(allocation(space, "Bracewell::find_centre::spectra"), size(at_once_), size(2 * angles),
                 size(width / 2 + 1)),
        amplitudes_(device_vector<double>(space, "Bracewell::find_centre::amplitudes", at_once_)),
        transform_(space, {2 * angles, width}, at_once_) {}

  /// Amplitudes in the wedge about the centres first / 2, (first + 1) / 2, ...; waits for them. `report` gets the
  /// share that is done.
  template <class Report>
  std::vector<double> amplitudes(const ExecutionSpace& space, const T* half, int first,
                                 const Report& report) const {
    std::vector<double> result;
    for (int done = 0; done < trials_; done += at_once_) {
      for_each_row(space, "Bracewell::find_centre::turn", std::int64_t(at_once_) * 2 * angles_,
                   TurnSinogram<T>{half, whole_.data(), angles_, width_, first + done});
      transform_.execute(space, whole_, spectra_);
      Kokkos::parallel_for("Bracewell::find_centre::amplitude",
                           Kokkos::TeamPolicy<ExecutionSpace>(
                               space, at_once_, +TomographyTuning<ExecutionSpace>::centre_threads),
                           wedge());
      const auto host = Kokkos::create_mirror_view(Kokkos::HostSpace(), amplitudes_);
      Kokkos::deep_copy(space, host, amplitudes_);
      space.fence("Bracewell::find_centre::amplitudes");
      result.insert(result.end(), host.data(), host.data() + std::min(at_once_, trials_ - done));
      report(double(result.size()) / trials_);
    }
    return result;
  }

private:
  using MemorySpace = typename ExecutionSpace::memory_space;

  static auto allocation(const ExecutionSpace& space, const char* label) {
    return Kokkos::view_alloc(space, Kokkos::WithoutInitializing, std::string(label));
  }
  static std::size_t size(int value) { return static_cast<std::size_t>(value); }

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
  Kokkos::View<T***, Kokkos::LayoutRight, MemorySpace> whole_; ///< [trials at once, 2 angles, width]
  Kokkos::View<Kokkos::complex<T>***, Kokkos::LayoutRight, MemorySpace> spectra_;
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

  /// The best centre in pixels `from` to `to`, where means over `bin` columns and `skip` rows are one value.
  template <class Report>
  double search(const ExecutionSpace& space, int bin, int skip, double from, double to, bool centre_columns,
                const Report& report) const {
    const int columns = width / bin, angles = count / skip;
    const auto half = device_vector<T>(space, "Bracewell::find_centre::half", std::int64_t(angles) * columns);
    for_each_row(space, "Bracewell::find_centre::reduce", angles,
                 ReduceSinogram<T>{sinogram, rows, half.data(), width, columns, bin, skip});
    if (centre_columns)
      Kokkos::parallel_for("Bracewell::find_centre::columns",
                           Kokkos::RangePolicy<ExecutionSpace>(space, 0, columns),
                           CentreColumns<T>{half.data(), angles, columns});
    // Bin i is centred on pixel bin i + (bin - 1) / 2.
    const auto twice = [&](double pixel) {
      return static_cast<int>(std::lround(2 * (pixel - 0.5 * (bin - 1)) / bin));
    };
    const int first = twice(from), trials = twice(to) - first + 1;
    const TurnTrials<ExecutionSpace, T> trial_turns(space, angles, columns, trials, object_radius);
    const double best = position_of_least(trial_turns.amplitudes(space, half.data(), first, report), first);
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
      const double best = search(space, b, s, from, to, centre_columns, [&](double of_it) {
        if (progress)
          progress(done + share * of_it);
      });
      done += share;
      return best;
    };
    const double coarse = part(bin, skip, first, last, false);
    const auto around = [&](double pixel, double distance, bool centre_columns) {
      return part(1, fine_skip, std::max(first, pixel - distance), std::min(last, pixel + distance),
                  centre_columns);
    };
    // Rings mislead by several pixels, the means of the columns tell fractions of one.
    const double fine = around(around(coarse, reach, true), 1, false);
    return std::clamp(fine, first, last);
  }
};

} // namespace Bracewell::Impl
