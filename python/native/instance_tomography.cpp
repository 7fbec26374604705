// SPDX-License-Identifier: MIT
#include "kokkos_arrays.hpp"

#include <bracewell/gridding/nonuniform_fft.hpp>
#include <bracewell/gridding/nonuniform_sums.hpp>
#include <bracewell/gridding/toeplitz_normal.hpp>
#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/find_centre.hpp>
#include <bracewell/tomography/fourier.hpp>
#include <bracewell/tomography/fourier_laminography.hpp>
#include <bracewell/tomography/fourier_normal.hpp>
#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/line_laminography.hpp>
#include <bracewell/tomography/log_polar.hpp>
#include <bracewell/tomography/preprocess.hpp>
#include <bracewell/tomography/stripes.hpp>
#include <bracewell/tomography/view_slopes.hpp>

#include <algorithm>

namespace Bracewell::Python {
namespace {

using Real = BRACEWELL_PYTHON_REAL;
constexpr Backend backend = Backend::BRACEWELL_PYTHON_BACKEND;
using Space = SpaceOf<backend>;
using Complex = Kokkos::complex<Real>;

GriddingOptions options_of(const NonuniformSettings& settings) {
  return {.slices = settings.slices, .tolerance = settings.tolerance, .oversampling = settings.oversampling};
}

template <int D>
std::array<int, D> shape_of(const NonuniformSettings& settings) {
  std::array<int, D> shape;
  std::copy(settings.shape.begin(), settings.shape.end(), shape.begin());
  return shape;
}

template <int D>
class Nonuniform : public NonuniformPlan {
public:
  Nonuniform(Queue queue, const Tensor& points, const NonuniformSettings& settings)
      : plan_(space_of<backend>(queue), view_of<const double, 2, Space>(points), shape_of<D>(settings),
              options_of(settings)) {}

  std::size_t memory_bytes() const override { return plan_.memory_bytes(); }

  void set_points(Queue queue, const Tensor& points) override {
    expect_rank("NonuniformFFT.set_points", "points", points, 2, "[points, axes]");
    plan_.set_points(space_of<backend>(queue), view_of<const double, 2, Space>(points));
  }
  void adjoint(Queue queue, const Tensor& samples, const Tensor& images) override {
    plan_.adjoint(space_of<backend>(queue), array_of<const Complex, Space>(samples),
                  array_of<Complex, Space>(images));
  }
  void forward(Queue queue, const Tensor& images, const Tensor& samples) override {
    plan_.forward(space_of<backend>(queue), array_of<const Complex, Space>(images),
                  array_of<Complex, Space>(samples));
  }
  void point_gradients(Queue queue, const Tensor& images, const Tensor& samples, const Tensor& gradients,
                       const Tensor& scratch) override {
    plan_.point_gradients(space_of<backend>(queue), array_of<const Complex, Space>(images),
                          array_of<const Complex, Space>(samples), array_of<Real, Space>(gradients),
                          array_of<Complex, Space>(scratch));
  }

private:
  NonuniformFFT<Space, D, Real> plan_;
};

template <int D>
class Sums : public SumsPlan {
public:
  Sums(Queue queue, const Tensor& points, const Tensor& targets, const NonuniformSettings& settings)
      : plan_(space_of<backend>(queue), view_of<const double, 2, Space>(points),
              view_of<const double, 2, Space>(targets), options_of(settings)) {}

  std::size_t memory_bytes() const override { return plan_.memory_bytes(); }

  void set_points(Queue queue, const Tensor& points, const Tensor& targets) override {
    expect_rank("NonuniformSums.set_points", "points", points, 2, "[points, axes]");
    expect_rank("NonuniformSums.set_points", "targets", targets, 2, "[targets, axes]");
    plan_.set_points(space_of<backend>(queue), view_of<const double, 2, Space>(points),
                     view_of<const double, 2, Space>(targets));
  }
  void forward(Queue queue, const Tensor& values, const Tensor& sums) override {
    plan_.forward(space_of<backend>(queue), array_of<const Complex, Space>(values),
                  array_of<Complex, Space>(sums));
  }
  void adjoint(Queue queue, const Tensor& sums, const Tensor& values) override {
    plan_.adjoint(space_of<backend>(queue), array_of<const Complex, Space>(sums),
                  array_of<Complex, Space>(values));
  }

private:
  NonuniformSums<Space, D, Real> plan_;
};

template <int D, class Value>
class Toeplitz : public ToeplitzPlan {
public:
  Toeplitz(Queue queue, const Tensor& points, const Tensor& weights, const NonuniformSettings& settings)
      : plan_(space_of<backend>(queue), view_of<const double, 2, Space>(points),
              array_of<const Real, Space>(weights), shape_of<D>(settings), options_of(settings)) {}

  std::size_t memory_bytes() const override { return plan_.memory_bytes(); }

  void execute(Queue queue, const Tensor& images, const Tensor& results) override {
    plan_.execute(space_of<backend>(queue), array_of<const Value, Space>(images),
                  array_of<Value, Space>(results));
  }

private:
  ToeplitzNormal<Space, D, Value> plan_;
};

/// One of the methods, about an upright or a tilted axis: they are called alike, but for what only one has.
template <class Method>
class Beam : public TomographyPlan {
public:
  template <class Geometry, class Options>
  Beam(Queue queue, const Geometry& geometry, const Options& options)
      : plan_(space_of<backend>(queue), geometry, options) {}

  std::size_t memory_bytes() const override { return plan_.memory_bytes(); }

  void backproject(Queue queue, const Tensor& projections, const Tensor& images) override {
    plan_.backproject(space_of<backend>(queue), array_of<const Real, Space>(projections),
                      array_of<Real, Space>(images));
  }
  void project(Queue queue, const Tensor& images, const Tensor& projections) override {
    plan_.project(space_of<backend>(queue), array_of<const Real, Space>(images),
                  array_of<Real, Space>(projections));
  }
  void normal([[maybe_unused]] Queue queue, const Tensor& images,
              [[maybe_unused]] const Tensor& results) override {
    if constexpr (std::is_same_v<Method, FourierNormal<Space, Real>>)
      plan_.normal(space_of<backend>(queue), array_of<const Real, Space>(images),
                   array_of<Real, Space>(results));
    else
      Impl::fail("normal", "plan", "FourierNormal", "another");
  }
  void slopes([[maybe_unused]] Queue queue, const Tensor& images, [[maybe_unused]] const Tensor& of_angles,
              [[maybe_unused]] const Tensor& of_shifts) override {
    if constexpr (std::is_same_v<Method, ViewSlopes<Space, Real>>)
      plan_.slopes(space_of<backend>(queue), array_of<const Real, Space>(images),
                   array_of<Real, Space>(of_angles), array_of<Real, Space>(of_shifts));
    else
      Impl::fail("slopes", "plan", "ViewSlopes", "another");
  }

private:
  Method plan_;
};

class Filter : public RowPlan {
public:
  Filter(Queue queue, const FilterSettings& settings, const FilterOptions& options)
      : plan_(space_of<backend>(queue), settings.rows, settings.width, options) {}
  std::size_t memory_bytes() const override { return plan_.memory_bytes(); }
  void execute(Queue queue, const Tensor& in, const Tensor& out, const Tensor&) override {
    plan_.execute(space_of<backend>(queue), array_of<const Real, Space>(in), array_of<Real, Space>(out));
  }

private:
  ProjectionFilter<Space, Real> plan_;
};

class Stripes : public RowPlan {
public:
  Stripes(Queue queue, const StripeSettings& settings)
      : plan_(space_of<backend>(queue), settings.angles, settings.width,
              {.method = one_of<StripeMethod>("remove_stripes", "method", settings.method,
                                              {"offset", "sorting", "all", "wavelet"}),
               .strength = settings.strength,
               .window = settings.window,
               .levels = settings.levels,
               .damping = settings.damping,
               .dead = settings.dead}) {}
  std::size_t memory_bytes() const override { return plan_.memory_bytes(); }
  void execute(Queue queue, const Tensor&, const Tensor& out, const Tensor& valid) override {
    plan_.execute(space_of<backend>(queue), array_of<Real, Space>(out), array_of<const Real, Space>(valid));
  }

private:
  StripeRemoval<Space, Real> plan_;
};

} // namespace

template <>
std::unique_ptr<NonuniformPlan> Tomography<backend, Real>::nonuniform(Queue queue, const Tensor& points,
                                                                      const NonuniformSettings& settings) {
  expect_rank("NonuniformFFT", "points", points, 2, "[points, axes]");
  if (settings.shape.size() == 1)
    return std::make_unique<Nonuniform<1>>(queue, points, settings);
  if (settings.shape.size() == 2)
    return std::make_unique<Nonuniform<2>>(queue, points, settings);
  if (settings.shape.size() == 3)
    return std::make_unique<Nonuniform<3>>(queue, points, settings);
  Impl::fail("NonuniformFFT", "shape", "one to three sizes", std::to_string(settings.shape.size()));
}

template <>
std::unique_ptr<SumsPlan> Tomography<backend, Real>::sums(Queue queue, const Tensor& points,
                                                          const Tensor& targets,
                                                          const NonuniformSettings& settings) {
  expect_rank("NonuniformSums", "points", points, 2, "[points, axes]");
  expect_rank("NonuniformSums", "targets", targets, 2, "[targets, axes]");
  if (points.extents[1] == 1)
    return std::make_unique<Sums<1>>(queue, points, targets, settings);
  if (points.extents[1] == 2)
    return std::make_unique<Sums<2>>(queue, points, targets, settings);
  if (points.extents[1] == 3)
    return std::make_unique<Sums<3>>(queue, points, targets, settings);
  Impl::fail("NonuniformSums", "points", "one to three columns", std::to_string(points.extents[1]));
}

template <>
std::unique_ptr<ToeplitzPlan>
Tomography<backend, Real>::toeplitz(Queue queue, const Tensor& points, const Tensor& weights,
                                    const NonuniformSettings& settings, bool is_complex) {
  expect_rank("ToeplitzNormal", "points", points, 2, "[points, axes]");
  const auto plan = [&]<class Value>() -> std::unique_ptr<ToeplitzPlan> {
    if (settings.shape.size() == 2)
      return std::make_unique<Toeplitz<2, Value>>(queue, points, weights, settings);
    if (settings.shape.size() == 3)
      return std::make_unique<Toeplitz<3, Value>>(queue, points, weights, settings);
    Impl::fail("ToeplitzNormal", "shape", "two or three sizes", std::to_string(settings.shape.size()));
  };
  return is_complex ? plan.template operator()<Complex>() : plan.template operator()<Real>();
}

template <>
void Tomography<backend, Real>::sum_views(Queue queue, const Tensor& slopes, const Tensor& cotangents,
                                          const Tensor& sums) {
  expect_rank("sum_views", "cotangents", cotangents, 3, "[slices, angles, width]");
  Bracewell::sum_views(space_of<backend>(queue), view_of<const Real, 3, Space>(slopes),
                       view_of<const Real, 3, Space>(cotangents), view_of<double, 1, Space>(sums));
}

template <>
std::unique_ptr<TomographyPlan> Tomography<backend, Real>::plan(Queue queue,
                                                                const TomographySettings& settings) {
  const ParallelBeamGeometry geometry{.angles = Angles(settings.angles),
                                      .width = settings.width,
                                      .centre = settings.centre,
                                      .weights = settings.weights,
                                      .shifts = settings.shifts};
  const ProjectionUnits units =
      settings.line_integrals ? ProjectionUnits::LineIntegrals : ProjectionUnits::Transpose;
  const FourierTomographyOptions fourier{
      .image = settings.image, .slices = settings.slices, .units = units, .tolerance = settings.tolerance};
  if (settings.method == "fourier")
    return std::make_unique<Beam<FourierTomography<Space, Real>>>(queue, geometry, fourier);
  if (settings.method == "fourier_normal")
    return std::make_unique<Beam<FourierNormal<Space, Real>>>(queue, geometry, fourier);
  if (settings.method == "view_slopes")
    return std::make_unique<Beam<ViewSlopes<Space, Real>>>(queue, geometry, fourier);
  if (settings.method == "line")
    return std::make_unique<Beam<LineTomography<Space, Real>>>(
        queue, geometry, LineTomographyOptions{.image = settings.image, .units = units});
  if (settings.method == "log_polar")
    return std::make_unique<Beam<LogPolarTomography<Space, Real>>>(
        queue, geometry,
        LogPolarTomographyOptions{.image = settings.image, .slices = settings.slices, .units = units});
  Impl::fail("Tomography", "method", "fourier, line or log_polar", settings.method);
}

template <>
std::unique_ptr<TomographyPlan>
Tomography<backend, Real>::laminography(Queue queue, const LaminographySettings& settings) {
  const TiltedBeamGeometry geometry{.beam = {.angles = Angles(settings.angles),
                                             .width = settings.width,
                                             .centre = settings.centre,
                                             .weights = settings.weights},
                                    .rows = settings.rows,
                                    .tilt = settings.tilt,
                                    .row_centre = settings.row_centre};
  const ProjectionUnits units =
      settings.line_integrals ? ProjectionUnits::LineIntegrals : ProjectionUnits::Transpose;
  if (settings.method == "fourier")
    return std::make_unique<Beam<FourierLaminography<Space, Real>>>(
        queue, geometry,
        FourierLaminographyOptions{.image = settings.image,
                                   .depth = settings.depth,
                                   .units = units,
                                   .tolerance = settings.tolerance});
  if (settings.method == "line")
    return std::make_unique<Beam<LineLaminography<Space, Real>>>(
        queue, geometry,
        LineLaminographyOptions{.image = settings.image, .depth = settings.depth, .units = units});
  Impl::fail("Laminography", "method", "fourier or line", settings.method);
}

template <>
std::unique_ptr<RowPlan> Tomography<backend, Real>::filter(Queue queue, const FilterSettings& settings) {
  const auto filter =
      one_of<TomographyFilter>("filter_projections", "filter", settings.filter,
                               {"none", "ramp", "shepp", "cosine", "cosine2", "hamming", "hann", "parzen"});
  return std::make_unique<Filter>(
      queue, settings,
      FilterOptions{.filter = filter,
                    .padding = settings.edge ? ProjectionPadding::Edge : ProjectionPadding::Zero,
                    .shift = settings.shift});
}

template <>
std::unique_ptr<RowPlan> Tomography<backend, Real>::stripes(Queue queue, const StripeSettings& settings) {
  return std::make_unique<Stripes>(queue, settings);
}

template <>
double Tomography<backend, Real>::find_centre(Queue queue, const Tensor& sinogram,
                                              const std::vector<double>& angles, std::optional<double> first,
                                              std::optional<double> last, const Tensor& valid) {
  expect_rank("find_centre", "sinogram", sinogram, 2, "[angles, width]");
  return Bracewell::find_centre(space_of<backend>(queue), view_of<const Real, 2, Space>(sinogram), angles,
                                {.first = first, .last = last}, array_of<const Real, Space>(valid));
}

template <>
void Tomography<backend, Real>::normalise(Queue queue, const Tensor& raw, const Tensor& dark,
                                          const Tensor& flat, const Tensor& sinograms, const Tensor& valid,
                                          bool logarithm, int air_begin, int air_end) {
  expect_rank("normalise_projections", "raw", raw, 3, "[angles, slices, width]");
  for (const Tensor* field : {&dark, &flat})
    if (field->given)
      expect_rank("normalise_projections", field == &dark ? "dark" : "flat", *field, 2, "[slices, width]");
  Bracewell::normalise_projections(
      space_of<backend>(queue), view_of<const Real, 3, Space>(raw), view_of<const Real, 2, Space>(dark),
      view_of<const Real, 2, Space>(flat), view_of<Real, 3, Space>(sinograms),
      {.logarithm = logarithm, .air_begin = air_begin, .air_end = air_end}, array_of<Real, Space>(valid));
}

} // namespace Bracewell::Python
