// SPDX-License-Identifier: MIT
#include "bracewell-tomography/align.hpp"

#include "bracewell-tomography/wave_fit.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/optimize/least_squares.hpp>
#include <bracewell/tomography/view_slopes.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace Bracewell::Examples {
namespace {

constexpr int largest_width = 512, first_iterations = 15;

/// Steps at a size of pixels.
struct Level {
  int bin, steps, iterations; ///< pixels that are one; iterations of a step
};

/// From coarse to fine. Angles and slices make up for each other over many iterations, shifts and slices do not.
std::vector<Level> levels(int width, bool angles) {
  int finest = 1;
  while (width / finest > largest_width)
    finest *= 2;
  std::vector<Level> result;
  for (int bin = (angles ? 4 : 2) * finest; bin >= finest; bin /= 2)
    if (width / bin >= 16 || bin == finest)
      result.push_back({bin, angles ? 4 : 2, angles ? 150 : 30});
  return result;
}

/// Means over pixels of rows, in units of these pixels: line integrals of attenuation per wide pixel.
struct BinRows {
  const float* rows;
  float* binned;
  int width, binned_width, bin;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = i / binned_width;
    const int first = static_cast<int>(i % binned_width) * bin;
    float sum = 0;
    for (int k = 0; k < bin; ++k)
      sum += rows[row * width + first + k];
    binned[i] = sum / float(bin);
  }
};

/// Half spectra of images [n, n] times the root of their frequencies: with it projections keep the norm, nearly.
struct Sharpen {
  Kokkos::complex<float>* spectra;
  int n;
  float scale;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int columns = n / 2 + 1, x = int(i % columns), row = int(i / columns % n);
    const int y = row <= n / 2 ? row : row - n;
    spectra[i] *= scale * Kokkos::sqrt(Kokkos::fmax(0.5f, Kokkos::sqrt(float(x * x + y * y))));
  }
};

/// Data less projections, in place of these.
struct TakeFrom {
  const float* data;
  float* rows;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { rows[i] = data[i] - rows[i]; }
};

struct SquareOfDifference {
  const float *data, *rows;
  KOKKOS_FUNCTION void operator()(std::int64_t i, double& sum) const {
    const double rest = double(data[i]) - rows[i];
    sum += rest * rest;
  }
};

struct Add {
  const float* change;
  float* values;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { values[i] += change[i]; }
};

/// rows += what small changes of angles and shifts do.
struct AddSlopes {
  float* rows;
  const float *of_angles, *of_shifts, *changes; ///< changes: [2, views], in units of `scale`
  const float* scale;                           ///< [2, views]
  std::int64_t views;
  int width;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t view = i / width % views;
    rows[i] += changes[view] * scale[view] * of_angles[i] +
               changes[views + view] * scale[views + view] * of_shifts[i];
  }
};

/// Sums of products with slopes to the transpose of AddSlopes, times a factor.
struct ScaleSums {
  const double* sums; ///< [2, views]
  const float* scale;
  float* result;
  float factor;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { result[i] = factor * scale[i] * float(sums[i]); }
};

template <class Body>
void for_each(const Space& space, std::int64_t count, const Body& body) {
  Kokkos::parallel_for("Bracewell::examples::align",
                       Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, count), body);
}

/// Slices and changes of views, [slices, n, n] and [2, views] one behind the other, to the change of sinograms. Slices
/// are unknown but for a filter, without which conjugate gradients would take several times as many iterations.
class JointPair {
public:
  JointPair(const Space& space, const ViewSlopes<Space, float>& plan, std::int64_t slices, std::int64_t views,
            int width)
      : plan_(plan), slices_(slices), views_(views), width_(width),
        of_angles_(allocate<Sinograms>("of_angles", slices, views, width)),
        of_shifts_(allocate<Sinograms>("of_shifts", slices, views, width)),
        scale_(allocate<DeviceView<float*>>("scale", 2 * views)),
        sums_(allocate<DeviceView<double*>>("sums", 2 * views)),
        images_(allocate<Slices>("images", slices, width, width)),
        spectra_(allocate<DeviceView<Kokkos::complex<float>***>>("spectra", slices, width, width / 2 + 1)),
        forward_(space, {width, width}, slices),
        backward_(space, {width, width}, slices, {.direction = FFTDirection::Backward}) {
    for (const auto& slopes : {of_angles_, of_shifts_}) // until they are taken, changes of views do nothing
      Kokkos::deep_copy(space, slopes, 0);
    Kokkos::deep_copy(space, scale_, 0);
  }

  /// Takes the slopes at some slices. Changes are scaled so that they count as much as a pixel does.
  void linearise(const Space& space, const Slices& slices, bool angles) {
    plan_.slopes(space, slices, of_angles_, of_shifts_);
    sum(space, of_angles_, of_shifts_, of_angles_, of_shifts_);
    const auto squares = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sums_);
    const auto scale = Kokkos::create_mirror_view(scale_);
    for (std::int64_t i = 0; i < 2 * views_; ++i)
      scale(i) = squares(i) > 0 && (angles || i >= views_) ? float(1 / std::sqrt(squares(i))) : 0;
    Kokkos::deep_copy(scale_, scale);
  }

  template <class In, class Out>
  void project(const Space& space, const In& unknowns, const Out& rows) const {
    sharpen(space, unknowns, images_);
    plan_.project(space, images_, rows);
    for_each(space, std::int64_t(rows.size()),
             AddSlopes{rows.data(), of_angles_.data(), of_shifts_.data(), unknowns.data() + pixels(),
                       scale_.data(), views_, width_});
  }
  template <class In, class Out>
  void backproject(const Space& space, const In& rows, const Out& unknowns) const {
    plan_.backproject(space, rows, images_);
    sharpen(space, images_, unknowns);
    const Part<const float***> values(rows.data(), slices_, views_, width_);
    sum(space, of_angles_, of_shifts_, values, values);
    for_each(space, 2 * views_,
             ScaleSums{sums_.data(), scale_.data(), unknowns.data() + pixels(),
                       float(std::numbers::pi / double(views_))});
  }

  /// The filter of slices, which is its own transpose; both are the first part of unknowns.
  template <class In, class Out>
  void sharpen(const Space& space, const In& in, const Out& out) const {
    forward_.execute(space, Part<const float***>(in.data(), slices_, width_, width_), spectra_);
    const double scale = 1 / (std::sqrt(double(width_) * double(views_)) * width_ * width_);
    for_each(space, std::int64_t(spectra_.size()), Sharpen{spectra_.data(), width_, float(scale)});
    backward_.execute(space, spectra_, Part<float***>(out.data(), slices_, width_, width_));
  }

  /// Changes of angles and of shifts.
  std::vector<double> changes(const float* unknowns) const {
    const auto values = Kokkos::create_mirror_view_and_copy(
        Kokkos::HostSpace(), Part<const float*>(unknowns + pixels(), 2 * views_));
    const auto scale = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), scale_);
    std::vector<double> result;
    for (std::int64_t i = 0; i < 2 * views_; ++i)
      result.push_back(double(values(i)) * scale(i));
    return result;
  }

private:
  std::int64_t pixels() const { return slices_ * width_ * width_; }
  template <class A, class B>
  void sum(const Space& space, const Sinograms& of_angles, const Sinograms& of_shifts, const A& with_angles,
           const B& with_shifts) const {
    sum_views(space, of_angles, with_angles, Part<double*>(sums_.data(), views_));
    sum_views(space, of_shifts, with_shifts, Part<double*>(sums_.data() + views_, views_));
  }

  const ViewSlopes<Space, float>& plan_;
  std::int64_t slices_, views_;
  int width_;
  Sinograms of_angles_, of_shifts_;
  DeviceView<float*> scale_;
  DeviceView<double*> sums_;
  Slices images_;
  DeviceView<Kokkos::complex<float>***> spectra_;
  FFT<Space, 2, float, Kokkos::complex<float>> forward_;
  FFT<Space, 2, Kokkos::complex<float>, float> backward_;
};

ParallelBeamGeometry coarse_geometry(const Views& views, int width, double centre, int bin) {
  ParallelBeamGeometry geometry{.angles = views.angles,
                                .width = width / bin,
                                .centre = (centre + 0.5) / bin - 0.5,
                                .shifts = views.shifts};
  for (double& shift : geometry.shifts)
    shift /= bin;
  return geometry;
}

FourierTomographyOptions plan_options(std::int64_t slices) {
  return {.slices = slices, .units = ProjectionUnits::LineIntegrals, .tolerance = 1e-5};
}

LeastSquaresShape joint_shape(std::int64_t slices, std::int64_t views, int width) {
  return {.data = {slices, views, width},
          .images = {1, 1, slices * width * width + 2 * views},
          .independent = false};
}

/// Leaves out what no data say: a turn of everything, and the shifts of an object that is elsewhere.
void fix_gauge(const std::vector<double>& before, Views& views) {
  const std::size_t count = views.angles.size();
  double turn = 0;
  for (std::size_t p = 0; p < count; ++p)
    turn += (views.angles[p] - before[p]) / double(count);
  for (double& angle : views.angles)
    angle -= turn;
  const WaveFit fit(views.angles, views.shifts);
  for (std::size_t p = 0; p < count; ++p)
    views.shifts[p] -= fit.at(views.angles[p]) - fit.constant();
}

/// Shifts by the centres of mass of the rows, which go along with a constant, a cosine and a sine of the angle where
/// nothing drifts; empty where views do not have the same mass, so that the detector did not see all of the object.
std::vector<double> mass_shifts(const Sinograms& sinograms, const std::vector<double>& angles) {
  const auto values = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sinograms);
  const std::size_t rows = values.extent(0), count = values.extent(1), width = values.extent(2);
  std::vector<double> shifts(count);
  double all = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<double> masses(count), centres(count);
    double mass = 0, spread = 0;
    for (std::size_t p = 0; p < count; ++p) {
      for (std::size_t x = 0; x < width; ++x)
        masses[p] += values(row, p, x), centres[p] += values(row, p, x) * double(x);
      centres[p] /= masses[p];
      mass += masses[p] / double(count);
    }
    for (const double of_view : masses)
      spread += std::pow(of_view / mass - 1, 2) / double(count);
    if (!(mass > 0) || !(spread < 0.05 * 0.05))
      continue;
    const WaveFit fit(angles, centres);
    for (std::size_t p = 0; p < count; ++p)
      shifts[p] += mass * (centres[p] - fit.at(angles[p]));
    all += mass;
  }
  for (double& shift : shifts)
    shift /= all;
  return all > 0 ? shifts : std::vector<double>();
}

/// Iterations that are counted one by one, as each may take seconds.
LeastSquaresOptions counted(int iterations, Progress& progress) {
  return {.iterations = iterations, .progress = [&progress](int) { progress.add(1); }};
}

/// The root mean square of what slices leave of sinograms after some iterations.
double residual_of(const Space& space, const Sinograms& data, const Views& views, int width, double centre,
                   int bin, Progress& progress) {
  const auto slices = std::int64_t(data.extent(0)), count = std::int64_t(data.extent(1));
  const int n = int(data.extent(2));
  const ViewSlopes<Space, float> plan(space, coarse_geometry(views, width, centre, bin),
                                      plan_options(slices));
  const JointPair pair(space, plan, slices, count, n);
  const LeastSquaresSolver<Space, float> solver(space, joint_shape(slices, count, n));
  const auto change = allocate<DeviceView<float***>>("change", 1, 1, slices * n * n + 2 * count);
  const auto rest = allocate<Sinograms>("rest", slices, count, n);
  Kokkos::deep_copy(space, change, 0);
  solver.solve(space, pair, data, change, counted(first_iterations, progress));
  pair.project(space, change, rest);
  double squares = 0;
  Kokkos::parallel_reduce(
      "Bracewell::examples::residual",
      Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, std::int64_t(rest.size())),
      SquareOfDifference{data.data(), rest.data()}, squares);
  return std::sqrt(squares / double(rest.size()));
}

} // namespace

int alignment_steps(int width, bool angles) {
  int iterations = 3 * first_iterations; // the residuals of three geometries
  for (const Level& level : levels(width, angles))
    iterations += first_iterations + level.steps * level.iterations;
  return iterations;
}

std::int64_t aligned_rows(int width, std::int64_t views, bool angles) {
  constexpr std::int64_t most = 8, least = 2;
  if (!kernels_run_on_host || angles) // which few rows tell less well
    return most;
  // About ten seconds of two processors: an iteration takes 0.14 microseconds for a sample or a pixel.
  constexpr double much = 1.5e8;
  const double n = width / levels(width, angles).back().bin,
               of_row = n * (n + double(views)) * alignment_steps(width, angles);
  return std::clamp(std::int64_t(much / of_row), least, most);
}

double alignment_bytes(const Space& space, const Views& views, int width, std::int64_t rows) {
  const int bin = levels(width, true).back().bin, coarse = width / bin;
  const auto count = std::int64_t(views.angles.size());
  return double(ViewSlopes<Space, float>::bytes_needed(space, coarse_geometry(views, width, width / 2.0, bin),
                                                       plan_options(rows))) +
         double(LeastSquaresSolver<Space, float>::bytes_needed(space, joint_shape(rows, count, coarse))) +
         4.0 * double(rows) * double(count) * (width + 4 * coarse) +
         20.0 * double(rows) * coarse * double(coarse);
}

Alignment align_views(const Space& space, const Sinograms& sinograms, const Views& before, double centre,
                      bool angles, Progress& progress) {
  const auto slices = std::int64_t(sinograms.extent(0)), count = std::int64_t(sinograms.extent(1));
  const int width = int(sinograms.extent(2)), finest = levels(width, angles).back().bin;
  const auto binned = [&](int bin) {
    const auto data = allocate<Sinograms>("binned", slices, count, width / bin);
    for_each(space, std::int64_t(data.size()),
             BinRows{sinograms.data(), data.data(), width, width / bin, bin});
    return data;
  };
  Views views = before;
  views.shifts = mass_shifts(sinograms, before.angles);
  std::vector<Views> candidates{before};
  if (views.shifts.empty())
    views.shifts.resize(views.angles.size());
  else
    candidates.push_back(views);
  for (const Level& level : levels(width, angles)) {
    const int bin = level.bin, n = width / bin;
    const Sinograms data = binned(bin), rest = allocate<Sinograms>("rest", slices, count, n);
    const LeastSquaresSolver<Space, float> solver(space, joint_shape(slices, count, n));
    const auto images = allocate<DeviceView<float***>>("images", 1, 1, slices * n * n + 2 * count),
               change = allocate<DeviceView<float***>>("change", 1, 1, slices * n * n + 2 * count);
    const Slices now(images.data(), std::size_t(slices), std::size_t(n), std::size_t(n));
    Kokkos::deep_copy(space, change, 0);
    for (int step = 0; step < level.steps; ++step) {
      const ViewSlopes<Space, float> plan(space, coarse_geometry(views, width, centre, bin),
                                          plan_options(slices));
      JointPair pair(space, plan, slices, count, n);
      if (step == 0) // slices alone
      {
        solver.solve(space, pair, data, change, counted(first_iterations, progress));
        pair.sharpen(space, change, images);
      }
      pair.linearise(space, now, angles);
      plan.project(space, now, rest);
      for_each(space, std::int64_t(rest.size()), TakeFrom{data.data(), rest.data()});
      Kokkos::deep_copy(space, change, 0);
      solver.solve(space, pair, rest, change, counted(level.iterations, progress));
      const std::vector<double> changes = pair.changes(change.data());
      pair.sharpen(space, change, change);
      for_each(space, std::int64_t(now.size()), Add{change.data(), images.data()});
      for (std::size_t p = 0; p < views.angles.size(); ++p) {
        views.angles[p] += changes[p];
        views.shifts[p] += bin * changes[p + views.angles.size()];
      }
    }
  }
  fix_gauge(before.angles, views);
  candidates.push_back(views);
  // What fits the data best is taken, and what the scan said unless that is better.
  const Sinograms data = binned(finest);
  Alignment result;
  for (const Views& candidate : candidates) {
    const double residual = residual_of(space, data, candidate, width, centre, finest, progress);
    const bool is_first = &candidate == &candidates.front();
    if (is_first)
      result = {before, residual, residual};
    else if (residual < std::min(0.98 * result.before, result.after))
      result.views = candidate, result.after = residual;
  }
  return result;
}

} // namespace Bracewell::Examples
