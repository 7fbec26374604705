// SPDX-License-Identifier: MIT
#include "kokkos_arrays.hpp"

#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/expectation.hpp>
#include <bracewell/project/project.hpp>
#include <bracewell/project/score_poses.hpp>

namespace Bracewell::Python {
namespace {

using Real = BRACEWELL_PYTHON_REAL;
constexpr Backend backend = Backend::BRACEWELL_PYTHON_BACKEND;
using Space = SpaceOf<backend>;
using Complex = Kokkos::complex<Real>;

ProjectionOptions options_of(const ProjectionSettings& settings) {
  return {.oversampling = settings.oversampling,
          .radius = settings.radius,
          .ewald_radius = settings.ewald_radius,
          .kernel_weights = settings.absolute_weights ? KernelWeights::Absolute : KernelWeights::Signed,
          .skip_redundant = settings.skip_redundant};
}

Poses<Real, Space::memory_space> poses_of(const PoseTensors& poses) {
  return {array_of<const Real, Space>(poses.matrices), array_of<const Real, Space>(poses.shifts),
          array_of<const Real, Space>(poses.filters)};
}

/// action.operator()<Kernel, M, D>() for projections of rank M + 2 and volumes of rank D + 1.
template <class Action>
void with_types(const char* function, const ProjectionSettings& settings, int projections, int volumes,
                const Action& action) {
  const auto with_dimensions = [&]<class Kernel>() {
    const int m = projections - 2, d = volumes - 1;
    if (m == 2 && d == 2)
      action.template operator()<Kernel, 2, 2>();
    else if (m == 2 && d == 3)
      action.template operator()<Kernel, 2, 3>();
    else if (m == 3 && d == 3)
      action.template operator()<Kernel, 3, 3>();
    else
      Impl::fail(function, "arrays",
                 "volumes [B, H, W/2+1] with projections [B, P, h, w/2+1], or [B, D, H, W/2+1] with [B, P, "
                 "h, w/2+1] "
                 "or [B, P, d, h, w/2+1]",
                 "volumes of " + std::to_string(volumes) + " axes with projections of " +
                     std::to_string(projections));
  };
  if (settings.interpolation == "linear")
    with_dimensions.template operator()<Linear>();
  else if (settings.interpolation == "catmull_rom")
    with_dimensions.template operator()<CatmullRom>();
  else if (settings.interpolation == "cubic_bspline")
    with_dimensions.template operator()<CubicBSpline>();
  else
    Impl::fail(function, "interpolation", "linear, catmull_rom or cubic_bspline", settings.interpolation);
}

template <int D>
SpectraArray<Complex, Space::memory_space, D> spectra(const Tensor& tensor) {
  SpectraArray<Complex, Space::memory_space, D> array;
  static_cast<Array<Complex, Space::memory_space>&>(array) = array_of<Complex, Space>(tensor);
  return array;
}
template <int D>
SpectraArray<const Complex, Space::memory_space, D> const_spectra(const Tensor& tensor) {
  SpectraArray<const Complex, Space::memory_space, D> array;
  static_cast<Array<const Complex, Space::memory_space>&>(array) = array_of<const Complex, Space>(tensor);
  return array;
}

} // namespace

template <>
void Projection<backend, Real>::project(Queue queue, const Tensor& reconstruction, const PoseTensors& poses,
                                        const Tensor& projections, const ProjectionSettings& settings) {
  with_types("project", settings, projections.rank, reconstruction.rank, [&]<class Kernel, int M, int D>() {
    Bracewell::project<Kernel>(space_of<backend>(queue),
                               spectrum_of<const Complex, D + 1, Space>(reconstruction), poses_of(poses),
                               spectrum_of<Complex, M + 2, Space>(projections), options_of(settings));
  });
}

namespace {

struct Scoring : ScoringPlan {
  PoseScoring<Space, Real> scoring;

  Scoring(Queue queue, const ScoringSettings& settings, const ProjectionOptions& options, PoseScore score)
      : scoring(space_of<backend>(queue),
                {.images = settings.images,
                 .shifts = settings.shifts,
                 .height = settings.height,
                 .width = settings.width,
                 .best = settings.best},
                options, score) {}

  std::size_t memory_bytes() const override { return scoring.memory_bytes(); }

  void set_images(Queue queue, const Tensor& images, const Tensor& filters, const Tensor& weights) override {
    scoring.set_images(space_of<backend>(queue), {.spectra = array_of<const Complex, Space>(images),
                                                  .filters = array_of<const Real, Space>(filters),
                                                  .weights = array_of<const Real, Space>(weights)});
  }
  void set_shifts(Queue queue, const Tensor& shifts) override {
    scoring.set_shifts(space_of<backend>(queue), array_of<const Real, Space>(shifts));
  }
};

struct Expecting : ExpectationStep {
  Expectation<Space, Real> step;

  Expecting(Queue queue, const ExpectationSettings& settings, const ProjectionOptions& options)
      : step(space_of<backend>(queue),
             {.images = settings.images,
              .shifts = settings.shifts,
              .height = settings.height,
              .width = settings.width,
              .best = settings.best,
              .bytes = settings.bytes},
             options) {}

  std::size_t memory_bytes() const override { return step.memory_bytes(); }
  std::vector<std::int64_t> shell_sizes() const override { return step.shell_sizes(); }

  void set_images(Queue queue, const Tensor& images, const Tensor& noise, const Tensor& filters,
                  const Tensor& origins) override {
    step.set_images(space_of<backend>(queue), {.spectra = array_of<const Complex, Space>(images),
                                               .noise = array_of<const Real, Space>(noise),
                                               .filters = array_of<const Real, Space>(filters),
                                               .origins = array_of<const Real, Space>(origins)});
  }
  void set_shifts(Queue queue, const Tensor& shifts, const Tensor& priors) override {
    step.set_shifts(space_of<backend>(queue), array_of<const Real, Space>(shifts),
                    array_of<const Real, Space>(priors));
  }
};

template <class Kernel, int D, class Stored>
struct Reference : ReferencePlan {
  PreparedReference<Kernel, Space, D, Stored> prepared;

  Reference(Queue queue, const Tensor& reconstruction)
      : prepared(space_of<backend>(queue), spectrum_of<const Complex, D + 1, Space>(reconstruction)) {}

  std::size_t memory_bytes() const override { return static_cast<std::size_t>(prepared.memory_bytes()); }

  void score(Queue queue, const ScoringPlan& plan, const Tensor& matrices,
             const ScoreTensors& scores) const override {
    static_cast<const Scoring&>(plan).scoring.score(space_of<backend>(queue), prepared,
                                                    array_of<const Real, Space>(matrices),
                                                    {.all = array_of<Real, Space>(scores.all),
                                                     .best = array_of<Real, Space>(scores.best),
                                                     .poses = array_of<int, Space>(scores.poses),
                                                     .shifts = array_of<int, Space>(scores.shifts)});
  }

  void expect(Queue queue, ExpectationStep& step, const Tensor& matrices,
              const std::vector<std::int64_t>& first, const Tensor& priors, const Tensor& class_priors,
              const ExpectationTensors& out, double share) const override {
    ExpectationResults<Real, Space::memory_space, D> results;
    results.log_evidence = array_of<double, Space>(out.log_evidence);
    results.class_shares = array_of<Real, Space>(out.class_shares);
    results.posteriors = array_of<Real, Space>(out.posteriors);
    results.classes = array_of<int, Space>(out.classes);
    results.poses = array_of<int, Space>(out.poses);
    results.shifts = array_of<int, Space>(out.shifts);
    static_cast<Array<Complex, Space::memory_space>&>(results.data) = array_of<Complex, Space>(out.data);
    results.weight = array_of<Real, Space>(out.weight);
    results.shares = array_of<Real, Space>(out.shares);
    results.candidates = array_of<int, Space>(out.candidates);
    results.shift_sums = array_of<double, Space>(out.shift_sums);
    results.shell_sums = array_of<double, Space>(out.shell_sums);
    static_cast<Expecting&>(step).step.run(space_of<backend>(queue), prepared,
                                           {.matrices = array_of<const Real, Space>(matrices),
                                            .first = first,
                                            .priors = array_of<const Real, Space>(priors),
                                            .class_priors = array_of<const Real, Space>(class_priors)},
                                           results, share);
  }

  std::pair<std::vector<std::int32_t>, std::vector<std::int64_t>>
  support(Queue queue, ExpectationStep& step, const Tensor& matrices, const std::vector<std::int64_t>& first,
          const Tensor& priors, const Tensor& class_priors, const Tensor& means, double share,
          std::int64_t most) const override {
    auto found = static_cast<Expecting&>(step).step.support(
        space_of<backend>(queue), prepared,
        {.matrices = array_of<const Real, Space>(matrices),
         .first = first,
         .priors = array_of<const Real, Space>(priors),
         .class_priors = array_of<const Real, Space>(class_priors)},
        array_of<Real, Space>(means), share, most);
    return {std::move(found.poses), std::move(found.first)};
  }

  void project(Queue queue, const PoseTensors& poses, const Tensor& projections,
               const ProjectionSettings& settings) override {
    with_rank("project", projections, [&]<int M>() {
      Bracewell::project(space_of<backend>(queue), prepared, poses_of(poses),
                         spectrum_of<Complex, M + 2, Space>(projections), options_of(settings));
    });
  }

  void project_gradients(Queue queue, const PoseTensors& poses, const Tensor& cotangent,
                         const Tensor& matrices, const Tensor& shifts,
                         const ProjectionSettings& settings) override {
    with_rank("project_gradients", cotangent, [&]<int M>() {
      ProjectGradients<Real, Space::memory_space> gradients;
      gradients.matrices = array_of<Real, Space>(matrices);
      gradients.shifts = array_of<Real, Space>(shifts);
      Bracewell::project_gradients(space_of<backend>(queue), prepared, poses_of(poses),
                                   spectrum_of<const Complex, M + 2, Space>(cotangent), gradients,
                                   options_of(settings));
    });
  }

private:
  template <class Action>
  static void with_rank(const char* function, const Tensor& projections, const Action& action) {
    if (projections.rank == 4)
      return action.template operator()<2>();
    if constexpr (D == 3)
      if (projections.rank == 5)
        return action.template operator()<3>();
    Impl::fail(function, "projections", D == 3 ? "4 or 5 axes" : "4 axes", std::to_string(projections.rank));
  }
};

} // namespace

template <>
std::unique_ptr<ReferencePlan> Projection<backend, Real>::prepare(Queue queue, const Tensor& reconstruction,
                                                                  const std::string& interpolation,
                                                                  bool half) {
  ProjectionSettings settings;
  settings.interpolation = interpolation;
  std::unique_ptr<ReferencePlan> plan;
  with_types("PreparedReference", settings, 4, reconstruction.rank, [&]<class Kernel, int M, int D>() {
    if constexpr (M == 2) {
      if constexpr (std::is_same_v<Real, float>)
        if (half) {
          plan = std::make_unique<Reference<Kernel, D, HalfComplex>>(queue, reconstruction);
          return;
        }
      if (half)
        Impl::fail("PreparedReference", "half", "a reconstruction in float", "one in double");
      plan = std::make_unique<Reference<Kernel, D, Complex>>(queue, reconstruction);
    }
  });
  return plan;
}

template <>
std::unique_ptr<ScoringPlan> Projection<backend, Real>::scoring(Queue queue, const ScoringSettings& settings,
                                                                const ProjectionSettings& options) {
  if (settings.score != "squared_difference" && settings.score != "correlation")
    Impl::fail("PoseScoring", "score", "squared_difference or correlation", settings.score);
  return std::make_unique<Scoring>(queue, settings, options_of(options),
                                   settings.score == "correlation" ? PoseScore::Correlation
                                                                   : PoseScore::SquaredDifference);
}

template <>
std::unique_ptr<ExpectationStep> Projection<backend, Real>::expectation(Queue queue,
                                                                        const ExpectationSettings& settings,
                                                                        const ProjectionSettings& options) {
  ProjectionOptions all = options_of(options);
  if (settings.reproducible)
    all.strategy = Strategy::Owned;
  return std::make_unique<Expecting>(queue, settings, all);
}

template <>
void Projection<backend, Real>::project_gradients(Queue queue, const Tensor& reconstruction,
                                                  const PoseTensors& poses, const Tensor& cotangent,
                                                  const Tensor& reconstruction_gradient,
                                                  const Tensor& matrices, const Tensor& shifts,
                                                  const ProjectionSettings& settings) {
  with_types("project_gradients", settings, cotangent.rank, reconstruction.rank,
             [&]<class Kernel, int M, int D>() {
               ProjectGradients<Real, Space::memory_space> gradients;
               gradients.reconstruction = array_of<Complex, Space>(reconstruction_gradient);
               gradients.matrices = array_of<Real, Space>(matrices);
               gradients.shifts = array_of<Real, Space>(shifts);
               Bracewell::project_gradients<Kernel>(
                   space_of<backend>(queue), spectrum_of<const Complex, D + 1, Space>(reconstruction),
                   poses_of(poses), spectrum_of<const Complex, M + 2, Space>(cotangent), gradients,
                   options_of(settings));
             });
}

template <>
void Projection<backend, Real>::backproject(Queue queue, const Tensor& projections, const PoseTensors& poses,
                                            const Tensor& weights, const Tensor& data, const Tensor& weight,
                                            const ProjectionSettings& settings) {
  with_types("backproject", settings, projections.rank, data.rank, [&]<class Kernel, int M, int D>() {
    Backprojection<Real, Space::memory_space, D> target;
    target.data = spectra<D>(data);
    target.weight = array_of<Real, Space>(weight);
    target.weights = array_of<const Real, Space>(weights);
    Impl::backproject<Kernel, M, D>(space_of<backend>(queue), array_of<const Complex, Space>(projections),
                                    poses_of(poses), target, options_of(settings));
  });
}

template <>
void Projection<backend, Real>::backproject_gradients(Queue queue, const Tensor& projections,
                                                      const PoseTensors& poses, const Tensor& weights,
                                                      const Tensor& data, const Tensor& weight,
                                                      const Tensor& projections_gradient,
                                                      const Tensor& weights_gradient, const Tensor& matrices,
                                                      const Tensor& shifts,
                                                      const ProjectionSettings& settings) {
  with_types("backproject_gradients", settings, projections.rank, data.rank,
             [&]<class Kernel, int M, int D>() {
               BackprojectGradients<Real, Space::memory_space, D> gradients;
               gradients.data = const_spectra<D>(data);
               gradients.weight = array_of<const Real, Space>(weight);
               gradients.weights = array_of<const Real, Space>(weights);
               gradients.projections = array_of<Complex, Space>(projections_gradient);
               gradients.projection_weights = array_of<Real, Space>(weights_gradient);
               gradients.matrices = array_of<Real, Space>(matrices);
               gradients.shifts = array_of<Real, Space>(shifts);
               Impl::backproject_gradients<Kernel, M, D>(space_of<backend>(queue),
                                                         Impl::reference_to("data", gradients.data),
                                                         array_of<const Complex, Space>(projections),
                                                         poses_of(poses), gradients, options_of(settings));
             });
}

} // namespace Bracewell::Python
