// SPDX-License-Identifier: MIT
#include "bracewell-tomography/align.hpp"

#include "bracewell-tomography/wave_fit.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/optimize/least_squares.hpp>
#include <bracewell/tomography/view_slopes.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace Bracewell::Examples {
namespace {

constexpr int largest_width = 512, first_iterations = 15;

/// A search has to fit the data by so much better than the scan's own views, and than centres of mass. Noise alone lets
/// one shift a view take 0.1 % of the residual.
constexpr double better_than_scan = 0.98, better_than_masses = 0.995;

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
      result.push_back({bin, angles ? 4 : 3, angles ? 150 : 20});
  return result;
}

/// Means over pixels of rows, in units of these pixels: line integrals of attenuation per wide pixel. 0 in the margins.
struct BinRows {
  const float* rows;
  float* binned;
  int width, binned_width, margin, bin;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = i / binned_width;
    const int at = static_cast<int>(i % binned_width) - margin, first = at * bin;
    const bool seen = at >= 0 && at < binned_width - 2 * margin;
    float sum = 0;
    for (int k = 0; seen && k < bin; ++k)
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

/// Leaves out what the detector does not see.
struct KeepSeen {
  float* rows;
  int width, margin;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int x = int(i % width);
    if (x < margin || x >= width - margin)
      rows[i] = 0;
  }
};

/// 1 for pixels that project into the rows of all views. Others, such as the corners of slices, are seen by some views
/// only, and make up for shifts that go along with their number: four periods a turn.
struct InAllRows {
  const float* views; ///< [views, 3]: cosine, sine, pixel of the axis
  float* support;     ///< [n, n]
  std::int64_t count;
  int n;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const float x = float(i % n - n / 2), y = float(i / n - n / 2);
    float least = 0, most = 0;
    for (std::int64_t p = 0; p < count; ++p) {
      const float at = views[3 * p] * x + views[3 * p + 1] * y + views[3 * p + 2];
      least = Kokkos::fmin(least, at), most = Kokkos::fmax(most, at);
    }
    support[i] = least > -0.5f && most < float(n) - 0.5f ? 1 : 0;
  }
};

/// Images times a support of as many pixels as an image has.
struct KeepSupport {
  const float* support;
  float* images;
  std::int64_t pixels;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { images[i] *= support[i % pixels]; }
};

/// Data less projections, in place of these.
struct TakeFrom {
  const float* data;
  float* rows;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { rows[i] = data[i] - rows[i]; }
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

/// What the search works on: rows of wide pixels, with a margin on either side where slices may reach but no data are.
struct Rows {
  std::int64_t slices, views;
  int width, margin; ///< columns with the margins; of a margin
  double centre;     ///< column of the axis
  int bin;           ///< pixels that are one

  std::int64_t size() const { return slices * views * width; }
  std::int64_t pixels() const { return slices * width * width; }

  ParallelBeamGeometry geometry(const Views& places) const {
    ParallelBeamGeometry result{
        .angles = places.angles, .width = width, .centre = centre, .shifts = places.shifts};
    for (double& shift : result.shifts)
      shift /= bin;
    return result;
  }
  FourierTomographyOptions plan() const {
    return {.slices = slices, .units = ProjectionUnits::LineIntegrals, .tolerance = 1e-5};
  }
  LeastSquaresShape problem() const {
    return {.data = {slices, views, width}, .images = {1, 1, pixels() + 2 * views}, .independent = false};
  }
};

/// @param whole  the detector sees all of the object; otherwise slices are half as wide again
Rows coarse_rows(std::int64_t slices, std::int64_t views, int width, double centre, int bin, bool whole) {
  const int seen = width / bin, margin = whole ? 0 : seen / 4;
  return {slices, views, seen + 2 * margin, margin, (centre + 0.5) / bin - 0.5 + margin, bin};
}

/// Slices and changes of views, [slices, n, n] and [2, views] one behind the other, to the change of sinograms. Slices
/// are unknown but for a filter, without which conjugate gradients would take several times as many iterations. They are
/// 0 where not all rows see them (InAllRows).
class JointPair {
public:
  JointPair(const Space& space, const ViewSlopes<Space, float>& plan, const Rows& shape, const Views& places)
      : plan_(plan), shape_(shape), slices_(shape.slices), views_(shape.views), width_(shape.width),
        support_(allocate<DeviceView<float**>>("support", width_, width_)),
        of_angles_(allocate<Sinograms>("of_angles", slices_, views_, width_)),
        of_shifts_(allocate<Sinograms>("of_shifts", slices_, views_, width_)),
        scale_(allocate<DeviceView<float*>>("scale", 2 * views_)),
        sums_(allocate<DeviceView<double*>>("sums", 2 * views_)),
        images_(allocate<Slices>("images", slices_, width_, width_)),
        spectra_(allocate<DeviceView<Kokkos::complex<float>***>>("spectra", slices_, width_, width_ / 2 + 1)),
        forward_(space, {width_, width_}, slices_),
        backward_(space, {width_, width_}, slices_, {.direction = FFTDirection::Backward}) {
    for (const auto& slopes : {of_angles_, of_shifts_}) // until they are taken, changes of views do nothing
      fill_values(space, slopes, 0);
    fill_values(space, scale_, 0);
    const auto axes = allocate<DeviceView<float**>>("axes", views_, 3);
    const auto on_host = Kokkos::create_mirror_view(axes);
    const ParallelBeamGeometry geometry = shape.geometry(places);
    for (std::size_t p = 0; p < std::size_t(views_); ++p) {
      on_host(p, 0) = float(std::cos(geometry.angles[p])),
                 on_host(p, 1) = float(std::sin(geometry.angles[p]));
      on_host(p, 2) = float(*geometry.centre + (geometry.shifts.empty() ? 0 : geometry.shifts[p]));
    }
    copy_values(axes, on_host);
    for_each(space, std::int64_t(support_.size()), InAllRows{axes.data(), support_.data(), views_, width_});
  }

  /// Takes the slopes at some slices. Changes are scaled so that they count as much as a pixel does.
  void linearise(const Space& space, const Slices& slices, bool angles) {
    plan_.slopes(space, slices, of_angles_, of_shifts_);
    keep_seen(space, of_angles_), keep_seen(space, of_shifts_);
    sum(space, of_angles_, of_shifts_, of_angles_, of_shifts_);
    const auto squares = values_on_host(sums_);
    const auto scale = Kokkos::create_mirror_view(scale_);
    for (std::int64_t i = 0; i < 2 * views_; ++i)
      scale(i) = squares(i) > 0 && (angles || i >= views_) ? float(1 / std::sqrt(squares(i))) : 0;
    copy_values(scale_, scale);
  }

  template <class In, class Out>
  void project(const Space& space, const In& unknowns, const Out& rows) const {
    slices_of(space, unknowns, images_);
    project_slices(space, images_, rows);
    for_each(space, shape_.size(),
             AddSlopes{rows.data(), of_angles_.data(), of_shifts_.data(), unknowns.data() + shape_.pixels(),
                       scale_.data(), views_, width_});
  }
  template <class In, class Out>
  void backproject(const Space& space, const In& rows, const Out& unknowns) const {
    plan_.backproject(space, rows, images_);
    keep_support(space, images_);
    sharpen(space, images_, unknowns);
    const Part<const float***> values(rows.data(), slices_, views_, width_);
    sum(space, of_angles_, of_shifts_, values, values);
    for_each(space, 2 * views_,
             ScaleSums{sums_.data(), scale_.data(), unknowns.data() + shape_.pixels(),
                       float(std::numbers::pi / double(views_))});
  }

  /// Rows of slices, as the detector sees them.
  template <class Out>
  void project_slices(const Space& space, const Slices& slices, const Out& rows) const {
    plan_.project(space, slices, rows);
    keep_seen(space, rows);
  }

  /// The slices that unknowns say.
  template <class In, class Out>
  void slices_of(const Space& space, const In& unknowns, const Out& slices) const {
    sharpen(space, unknowns, slices);
    keep_support(space, slices);
  }

  /// Changes of angles and of shifts.
  std::vector<double> changes(const float* unknowns) const {
    const auto values = values_on_host(Part<const float*>(unknowns + shape_.pixels(), 2 * views_));
    const auto scale = values_on_host(scale_);
    std::vector<double> result;
    for (std::int64_t i = 0; i < 2 * views_; ++i)
      result.push_back(double(values(i)) * scale(i));
    return result;
  }

private:
  /// The filter of slices, which is its own transpose.
  template <class In, class Out>
  void sharpen(const Space& space, const In& in, const Out& out) const {
    forward_.execute(space, Part<const float***>(in.data(), slices_, width_, width_), spectra_);
    const double scale = 1 / (std::sqrt(double(width_) * double(views_)) * width_ * width_);
    for_each(space, std::int64_t(spectra_.size()), Sharpen{spectra_.data(), width_, float(scale)});
    backward_.execute(space, spectra_, Part<float***>(out.data(), slices_, width_, width_));
  }

  template <class Out>
  void keep_seen(const Space& space, const Out& rows) const {
    if (shape_.margin > 0)
      for_each(space, shape_.size(), KeepSeen{rows.data(), width_, shape_.margin});
  }
  template <class Images>
  void keep_support(const Space& space, const Images& slices) const {
    for_each(space, shape_.pixels(),
             KeepSupport{support_.data(), slices.data(), std::int64_t(support_.size())});
  }
  template <class A, class B>
  void sum(const Space& space, const Sinograms& of_angles, const Sinograms& of_shifts, const A& with_angles,
           const B& with_shifts) const {
    sum_views(space, of_angles, with_angles, Part<double*>(sums_.data(), views_));
    sum_views(space, of_shifts, with_shifts, Part<double*>(sums_.data() + views_, views_));
  }

  const ViewSlopes<Space, float>& plan_;
  Rows shape_;
  std::int64_t slices_, views_;
  int width_;
  DeviceView<float**> support_;
  Sinograms of_angles_, of_shifts_;
  DeviceView<float*> scale_;
  DeviceView<double*> sums_;
  Slices images_;
  DeviceView<Kokkos::complex<float>***> spectra_;
  FFT<Space, 2, float, Kokkos::complex<float>> forward_;
  FFT<Space, 2, Kokkos::complex<float>, float> backward_;
};

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

/// What rows say at once.
struct FirstLook {
  bool whole = true;          ///< the detector sees all of the object
  std::vector<double> shifts; ///< by centres of mass; empty where no row tells
};

/// Sums over columns of a row in a view.
struct RowSums {
  double mass = 0, moment = 0;
  std::array<double, 2> edges{}, rough{}; ///< of some columns on either side: values, squares of their steps
};

/// Whether rows end in air on either side, beyond noise: means over neighbouring views, and their errors.
bool ends_in_air(const std::vector<RowSums>& views, double mean, int columns) {
  constexpr std::size_t groups = 12;
  for (std::size_t side = 0; side < 2; ++side)
    for (std::size_t group = 0; group < groups; ++group) {
      const std::size_t first = group * views.size() / groups, end = (group + 1) * views.size() / groups;
      const double values = double(end - first) * columns;
      double sum = 0, rough = 0;
      for (std::size_t p = first; p < end; ++p)
        sum += views[p].edges[side], rough += views[p].rough[side];
      const double error = std::sqrt(rough / (2 * values)) / std::sqrt(values);
      if (sum / values > 0.02 * mean + 3 * error)
        return false;
    }
  return true;
}

/// Centres of mass go along with a constant, a cosine and a sine of the angle where nothing drifts. They say nothing
/// where views do not have the same mass or do not end in air: 1 % of the mass beyond the detector is a pixel or more.
FirstLook first_look(const Sinograms& sinograms, const std::vector<double>& angles, double centre) {
  const auto values = values_on_host(sinograms);
  const std::size_t rows = values.extent(0), count = values.extent(1), width = values.extent(2);
  const std::size_t columns = std::max<std::size_t>(2, width / 50);
  FirstLook look;
  std::vector<double> shifts(count);
  double all = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<RowSums> views(count);
    std::vector<double> centres(count);
    double mass = 0, spread = 0;
    for (std::size_t p = 0; p < count; ++p) {
      RowSums& sums = views[p];
      for (std::size_t x = 0; x < width; ++x)
        sums.mass += values(row, p, x), sums.moment += values(row, p, x) * double(x);
      for (std::size_t i = 0; i < columns; ++i)
        for (std::size_t side = 0; side < 2; ++side) {
          const double value = values(row, p, side ? width - 1 - i : i);
          sums.edges[side] += value;
          sums.rough[side] += std::pow(value - values(row, p, side ? width - 2 - i : i + 1), 2);
        }
      centres[p] = sums.moment / sums.mass;
      mass += sums.mass / double(count);
    }
    for (const RowSums& sums : views)
      spread += std::pow(sums.mass / mass - 1, 2) / double(count);
    if (!ends_in_air(views, std::abs(mass) / double(width), int(columns)))
      look.whole = false;
    else if (mass > 0 && spread < 0.05 * 0.05) {
      const WaveFit fit(angles, centres);
      for (std::size_t p = 0; p < count; ++p)
        shifts[p] += mass * (centres[p] - fit.at(angles[p]) + fit.constant() - centre);
      all += mass;
    }
  }
  if (all > 0)
    for (double& shift : shifts)
      look.shifts.push_back(shift / all);
  return look;
}

/// Iterations that are counted one by one, as each may take seconds.
LeastSquaresOptions counted(int iterations, Progress& progress) {
  return {.iterations = iterations, .progress = [&progress](int) { progress.add(1); }};
}

/// Slices and changes of views, which are 0.
DeviceView<float***> unknowns_of(const Space& space, const Rows& rows) {
  const auto values = allocate<DeviceView<float***>>("unknowns", 1, 1, rows.problem().images[2]);
  fill_values(space, values, 0);
  return values;
}

Sinograms binned(const Space& space, const Sinograms& sinograms, const Rows& rows) {
  if (rows.bin == 1 && rows.margin == 0)
    return sinograms;
  const auto data = allocate<Sinograms>("binned", rows.slices, rows.views, rows.width);
  for_each(
      space, rows.size(),
      BinRows{sinograms.data(), data.data(), int(sinograms.extent(2)), rows.width, rows.margin, rows.bin});
  return data;
}

/// The root mean square of what a solver left of the data.
double residual_of(const Space& space, const LeastSquaresSolver<Space, float>& solver, const Rows& rows) {
  return std::sqrt(solver.residuals(space).front() /
                   double(rows.slices * rows.views * (rows.width - 2 * rows.margin)));
}

/// The root mean square of what slices leave of the data after some iterations.
double residual_of(const Space& space, const Sinograms& data, const Views& views, const Rows& rows,
                   Progress& progress) {
  const ViewSlopes<Space, float> plan(space, rows.geometry(views), rows.plan());
  const JointPair pair(space, plan, rows, views);
  const LeastSquaresSolver<Space, float> solver(space, rows.problem());
  solver.solve(space, pair, data, unknowns_of(space, rows), counted(first_iterations, progress));
  return residual_of(space, solver, rows);
}

/// Some rows of all, evenly.
Sinograms some_rows(const Space& space, const Sinograms& all, std::int64_t count) {
  const auto some = allocate<Sinograms>("some", count, all.extent(1), all.extent(2));
  for (std::int64_t i = 0; i < count; ++i)
    copy_values(space, Kokkos::subview(some, i, Kokkos::ALL, Kokkos::ALL),
                Kokkos::subview(all, (2 * i + 1) * std::int64_t(all.extent(0)) / (2 * count), Kokkos::ALL,
                                Kokkos::ALL));
  return some;
}

} // namespace

int alignment_steps(int width, bool angles) {
  int iterations = 3 * first_iterations; // the residuals of three geometries
  for (const Level& level : levels(width, angles))
    iterations += first_iterations + level.steps * level.iterations;
  return iterations;
}

std::int64_t aligned_rows(int width, std::int64_t views, bool angles, bool whole) {
  constexpr std::int64_t most = 8, least = 2;
  if (!kernels_run_on_host || angles) // which few rows tell less well
    return most;
  // About ten seconds of two processors: an iteration takes 0.14 microseconds for a sample or a pixel.
  constexpr double much = 1.5e8;
  const double n = coarse_rows(1, views, width, 0, levels(width, angles).back().bin, whole).width,
               of_row = n * (n + double(views)) * alignment_steps(width, angles);
  return std::clamp(std::int64_t(much / of_row), least, most);
}

double alignment_bytes(const Space& space, const Views& views, int width, std::int64_t rows) {
  const int bin = levels(width, true).back().bin;
  const auto count = std::int64_t(views.angles.size());
  const Rows shape = coarse_rows(rows, count, width, width / 2.0, bin, false);
  return double(ViewSlopes<Space, float>::bytes_needed(space, shape.geometry(views), shape.plan())) +
         double(LeastSquaresSolver<Space, float>::bytes_needed(space, shape.problem())) +
         4.0 * double(rows) * double(count) * (width + 4 * shape.width) + 24.0 * double(shape.pixels());
}

Alignment align_views(const Space& space, const Sinograms& given, const Views& before, double centre,
                      bool angles, Progress& progress) {
  const auto count = std::int64_t(given.extent(1));
  const int width = int(given.extent(2)), finest = levels(width, angles).back().bin;
  Views views = before;
  const auto [whole, by_mass] = first_look(given, before.angles, centre);
  const auto slices =
      std::min(aligned_rows(width, count, angles, whole), std::int64_t(given.extent(0))); // fewer if wider
  const Sinograms sinograms =
      slices < std::int64_t(given.extent(0)) ? some_rows(space, given, slices) : given;
  const Rows fine = coarse_rows(slices, count, width, centre, finest, whole);
  const Sinograms of_fine = binned(space, sinograms, fine);
  views.shifts = by_mass;
  if (by_mass.empty())
    views.shifts.resize(views.angles.size());
  Alignment result{before, slices};
  result.before = result.after = residual_of(space, of_fine, before, fine, progress);
  // What fits the data better is taken; noise and what pixels cannot say let any search fit a little better.
  const auto try_views = [&](const Views& tried, double residual) {
    const double least = std::min(better_than_scan * result.before, result.after);
    if (residual < least * (result.after < result.before ? better_than_masses : 1))
      result.views = tried, result.after = residual;
  };
  if (angles && !by_mass.empty())
    try_views(views, residual_of(space, of_fine, views, fine, progress));
  for (const Level& level : levels(width, angles)) {
    if (!angles && !by_mass.empty() && level.bin > finest)
      continue; // centres of mass are nearer than wide pixels tell
    const Rows rows = coarse_rows(slices, count, width, centre, level.bin, whole);
    const int n = rows.width;
    const Sinograms data = level.bin == finest ? of_fine : binned(space, sinograms, rows),
                    rest = allocate<Sinograms>("rest", slices, count, n);
    const LeastSquaresSolver<Space, float> solver(space, rows.problem());
    const auto change = unknowns_of(space, rows);
    const auto now = allocate<Slices>("now", slices, n, n),
               changed = allocate<Slices>("changed", slices, n, n);
    for (int step = 0; step < level.steps; ++step) {
      const ViewSlopes<Space, float> plan(space, rows.geometry(views), rows.plan());
      JointPair pair(space, plan, rows, views);
      if (step == 0) { // slices alone
        solver.solve(space, pair, data, change, counted(first_iterations, progress));
        pair.slices_of(space, change, now);
        if (!angles && !by_mass.empty()) // the views are those of the centres of mass
          try_views(views, residual_of(space, solver, rows));
      }
      pair.linearise(space, now, angles);
      pair.project_slices(space, now, rest);
      for_each(space, rows.size(), TakeFrom{data.data(), rest.data()});
      fill_values(space, change, 0);
      solver.solve(space, pair, rest, change, counted(level.iterations, progress));
      const std::vector<double> changes = pair.changes(change.data());
      pair.slices_of(space, change, changed);
      for_each(space, rows.pixels(), Add{changed.data(), now.data()});
      for (std::size_t p = 0; p < views.angles.size(); ++p) {
        views.angles[p] += changes[p];
        views.shifts[p] += level.bin * changes[p + views.angles.size()];
      }
    }
  }
  fix_gauge(before.angles, views);
  try_views(views, residual_of(space, of_fine, views, fine, progress));
  return result;
}

} // namespace Bracewell::Examples
