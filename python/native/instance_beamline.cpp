// SPDX-License-Identifier: MIT
#include "kokkos_arrays.hpp"

#include <bracewell/optimize/least_squares.hpp>
#include <bracewell/tomography/detector.hpp>
#include <bracewell/tomography/half_acquisition.hpp>
#include <bracewell/tomography/outliers.hpp>
#include <bracewell/tomography/phase.hpp>

#include <array>

namespace Bracewell::Python {
namespace {

using Real = BRACEWELL_PYTHON_REAL;
constexpr Backend backend = Backend::BRACEWELL_PYTHON_BACKEND;
using Space = SpaceOf<backend>;

constexpr const char* sinogram_axes = "[slices, angles, width]";

class Phase : public RowPlan {
public:
  Phase(Queue queue, const PhaseSettings& settings)
      : plan_(space_of<backend>(queue), settings.angles, settings.rows, settings.width,
              {.method = one_of<PhaseMethod>("retrieve_phase", "method", settings.method,
                                             {"paganin", "generalised_paganin", "weak_object"}),
               .wavelength = settings.wavelength,
               .distance = settings.distance,
               .pixel_size = settings.pixel_size,
               .delta_beta = settings.delta_beta,
               .regularisation = settings.regularisation,
               .padding = settings.padding,
               .attenuation = settings.attenuation}) {}
  std::size_t memory_bytes() const override { return plan_.memory_bytes(); }
  void execute(Queue queue, const Tensor& in, const Tensor& out, const Tensor&) override {
    expect_rank("retrieve_phase", "sinograms", in, 3, sinogram_axes);
    plan_.execute(space_of<backend>(queue), view_of<const Real, 3, Space>(in), view_of<Real, 3, Space>(out));
  }

private:
  PhaseRetrieval<Space, Real> plan_;
};

/// A plan as LeastSquaresSolver calls a pair.
struct Pair {
  TomographyPlan& plan;
  Queue queue;

  template <class Images, class Projections>
  void project(const Space&, const Images& images, const Projections& projections) const {
    plan.project(queue, tensor(images), tensor(projections));
  }
  template <class Projections, class Images>
  void backproject(const Space&, const Projections& projections, const Images& images) const {
    plan.backproject(queue, tensor(projections), tensor(images));
  }
  template <class Images, class Results>
  void normal(const Space&, const Images& images, const Results& results) const {
    plan.normal(queue, tensor(images), tensor(results));
  }

private:
  template <class View>
  static Tensor tensor(const View& view) {
    Tensor tensor;
    tensor.data = const_cast<Real*>(view.data());
    tensor.rank = static_cast<int>(View::rank());
    for (std::size_t axis = 0; axis < View::rank(); ++axis)
      tensor.extents[axis] = static_cast<std::int64_t>(view.extent(axis));
    tensor.given = true;
    return tensor;
  }
};

class LeastSquares : public LeastSquaresPlan {
public:
  LeastSquares(Queue queue, const LeastSquaresSettings& settings)
      : plan_(space_of<backend>(queue),
              {.data = extents(settings.data),
               .images = extents(settings.images),
               .method = one_of<LeastSquaresMethod>("LeastSquaresSolver", "method", settings.method,
                                                    {"conjugate_gradients", "sirt", "total_variation"}),
               .independent = settings.independent,
               .normal = settings.normal}) {}
  std::size_t memory_bytes() const override { return plan_.memory_bytes(); }

  int solve(Queue queue, TomographyPlan& pair, const Tensor& data, const Tensor& images,
            const Tensor& weights, const Tensor& mask, const LeastSquaresRun& run) override {
    return plan_.solve(space_of<backend>(queue), Pair{pair, queue}, array_of<const Real, Space>(data),
                       array_of<Real, Space>(images),
                       {.iterations = run.iterations,
                        .discrepancy = run.discrepancy,
                        .relaxation = run.relaxation,
                        .nonnegative = run.nonnegative,
                        .total_variation = run.total_variation,
                        .inner_iterations = run.inner_iterations},
                       array_of<const Real, Space>(weights), array_of<const Real, Space>(mask));
  }
  std::vector<double> residuals(Queue queue) override { return plan_.residuals(space_of<backend>(queue)); }

private:
  static std::array<std::int64_t, 3> extents(const std::vector<std::int64_t>& values) {
    return {values.at(0), values.at(1), values.at(2)};
  }
  LeastSquaresSolver<Space, Real> plan_;
};

} // namespace

template <>
std::unique_ptr<RowPlan> Beamline<backend, Real>::phase(Queue queue, const PhaseSettings& settings) {
  return std::make_unique<Phase>(queue, settings);
}

template <>
void Beamline<backend, Real>::remove_outliers(Queue queue, const Tensor& sinograms, const Tensor& cleaned,
                                              int window, double threshold) {
  expect_rank("remove_outliers", "sinograms", sinograms, 3, sinogram_axes);
  Bracewell::remove_outliers(space_of<backend>(queue), view_of<const Real, 3, Space>(sinograms),
                             view_of<Real, 3, Space>(cleaned), {.window = window, .threshold = threshold});
}

template <>
double Beamline<backend, Real>::find_overlap(Queue queue, const Tensor& sinogram,
                                             const std::vector<double>& angles, int least,
                                             const Tensor& valid) {
  expect_rank("find_overlap", "sinogram", sinogram, 2, "[angles, width]");
  return Bracewell::find_overlap(space_of<backend>(queue), view_of<const Real, 2, Space>(sinogram), angles,
                                 {.least = least}, array_of<const Real, Space>(valid));
}

template <>
void Beamline<backend, Real>::weigh_half_acquisition(Queue queue, const Tensor& sinograms,
                                                     const Tensor& wider, double centre) {
  Bracewell::weigh_half_acquisition(space_of<backend>(queue), view_of<const Real, 3, Space>(sinograms),
                                    view_of<Real, 3, Space>(wider), centre);
}

template <>
void Beamline<backend, Real>::bin_frames(Queue queue, const Tensor& frames, const Tensor& binned, int bin) {
  Bracewell::bin_frames(space_of<backend>(queue), view_of<const Real, 3, Space>(frames),
                        view_of<Real, 3, Space>(binned), bin);
}

template <>
void Beamline<backend, Real>::turn_detector(Queue queue, const Tensor& sinograms, const Tensor& turned,
                                            double angle, double row, double column) {
  expect_rank("turn_detector", "sinograms", sinograms, 3, sinogram_axes);
  Bracewell::turn_detector(space_of<backend>(queue), view_of<const Real, 3, Space>(sinograms),
                           view_of<Real, 3, Space>(turned), {.angle = angle, .row = row, .column = column});
}

template <>
std::unique_ptr<LeastSquaresPlan>
Beamline<backend, Real>::least_squares(Queue queue, const LeastSquaresSettings& settings) {
  return std::make_unique<LeastSquares>(queue, settings);
}

} // namespace Bracewell::Python
