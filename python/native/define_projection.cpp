// SPDX-License-Identifier: MIT
#include "module.hpp"

namespace Bracewell::Python {

void define_projection(nb::module_& module) {
  module.def("rotation_grid", &rotation_grid);
  nb::class_<ProjectionSettings>(module, "ProjectionSettings")
      .def(
          "__init__",
          [](ProjectionSettings* self, std::string interpolation, std::optional<double> oversampling,
             std::optional<double> radius, std::optional<double> ewald_radius, bool absolute_weights,
             bool skip_redundant) {
            new (self) ProjectionSettings{std::move(interpolation), oversampling,  radius, ewald_radius,
                                          absolute_weights,         skip_redundant};
          },
          nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg());

  const auto poses = [](Arrays& arrays, const Object& matrices, const Object& shifts, const Object& filters,
                        std::int64_t width) {
    return PoseTensors{arrays.read("matrices", matrices, Values::Real),
                       arrays.read("shifts", shifts, Values::Real),
                       arrays.read("filters", filters, Values::Real, width)};
  };

  module.def("project", [poses](const Object& reconstruction, std::int64_t width, const Object& matrices,
                                const Object& shifts, const Object& filters, const Object& projections,
                                std::int64_t projections_width, const ProjectionSettings& settings,
                                std::uintptr_t stream) {
    Arrays arrays("project");
    const Tensor in = arrays.read("reconstruction", reconstruction, Values::Complex, width);
    const PoseTensors at = poses(arrays, matrices, shifts, filters, projections_width);
    const Tensor out = arrays.write("projections", projections, Values::Complex, projections_width);
    arrays.run([&]<Backend backend, class T>() {
      Projection<backend, T>::project(arrays.queue(stream), in, at, out, settings);
    });
  });
  module.def("project_gradients", [poses](const Object& reconstruction, std::int64_t width,
                                          const Object& matrices, const Object& shifts, const Object& filters,
                                          const Object& cotangent, std::int64_t projections_width,
                                          const Object& reconstruction_gradient,
                                          const Object& matrix_gradients, const Object& shift_gradients,
                                          const ProjectionSettings& settings, std::uintptr_t stream) {
    Arrays arrays("project_gradients");
    const Tensor in = arrays.read("reconstruction", reconstruction, Values::Complex, width);
    const PoseTensors at = poses(arrays, matrices, shifts, filters, projections_width);
    const Tensor slopes = arrays.read("cotangent", cotangent, Values::Complex, projections_width);
    const Tensor volume =
                     arrays.write("reconstruction gradient", reconstruction_gradient, Values::Complex, width),
                 turns = arrays.write("gradient of matrices", matrix_gradients, Values::Real),
                 moves = arrays.write("gradient of shifts", shift_gradients, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Projection<backend, T>::project_gradients(arrays.queue(stream), in, at, slopes, volume, turns, moves,
                                                settings);
    });
  });
  module.def("backproject", [poses](const Object& projections, std::int64_t projections_width,
                                    const Object& matrices, const Object& shifts, const Object& filters,
                                    const Object& weights, const Object& data, const Object& weight,
                                    std::int64_t width, const ProjectionSettings& settings,
                                    std::uintptr_t stream) {
    Arrays arrays("backproject");
    const Tensor in = arrays.read("projections", projections, Values::Complex, projections_width);
    const PoseTensors at = poses(arrays, matrices, shifts, filters, projections_width);
    const Tensor worth = arrays.read("weights", weights, Values::Real, projections_width),
                 sum = arrays.write("data", data, Values::Complex, width),
                 sum_of_weights = arrays.write("weight", weight, Values::Real, width);
    arrays.run([&]<Backend backend, class T>() {
      Projection<backend, T>::backproject(arrays.queue(stream), in, at, worth, sum, sum_of_weights, settings);
    });
  });
  module.def("backproject_gradients",
             [poses](const Object& projections, std::int64_t projections_width, const Object& matrices,
                     const Object& shifts, const Object& filters, const Object& weights, const Object& data,
                     const Object& weight, std::int64_t width, const Object& projection_gradients,
                     const Object& weight_gradients, const Object& matrix_gradients,
                     const Object& shift_gradients, const ProjectionSettings& settings,
                     std::uintptr_t stream) {
               Arrays arrays("backproject_gradients");
               const Tensor in = arrays.read("projections", projections, Values::Complex, projections_width);
               const PoseTensors at = poses(arrays, matrices, shifts, filters, projections_width);
               const Tensor worth = arrays.read("weights", weights, Values::Real, projections_width),
                            slopes = arrays.read("cotangent of data", data, Values::Complex, width),
                            weight_slopes = arrays.read("cotangent of weight", weight, Values::Real, width);
               const Tensor images = arrays.write("gradient of projections", projection_gradients,
                                                  Values::Complex, projections_width),
                            worths = arrays.write("gradient of weights", weight_gradients, Values::Real,
                                                  projections_width),
                            turns = arrays.write("gradient of matrices", matrix_gradients, Values::Real),
                            moves = arrays.write("gradient of shifts", shift_gradients, Values::Real);
               arrays.run([&]<Backend backend, class T>() {
                 Projection<backend, T>::backproject_gradients(arrays.queue(stream), in, at, worth, slopes,
                                                               weight_slopes, images, worths, turns, moves,
                                                               settings);
               });
             });
}

void define_contrast(nb::module_& module) {
  module.def("evaluate_ctf", [](const ContrastParameters& parameters, double pixel_size, const Object& values,
                                std::int64_t width, std::uintptr_t stream) {
    Arrays arrays("evaluate_ctf");
    const Tensor out = arrays.write("values", values, Values::Real, width);
    arrays.run([&]<Backend backend, class T>() {
      Contrast<backend, T>::evaluate(arrays.queue(stream), parameters, pixel_size, out);
    });
  });
  module.def("ctf_gradients", [](const ContrastParameters& parameters, double pixel_size,
                                 const Object& value_gradients, std::int64_t width, std::uintptr_t stream) {
    Arrays arrays("ctf_gradients");
    const Tensor in = arrays.read("value_gradients", value_gradients, Values::Real, width);
    ContrastParameters gradients;
    arrays.run([&]<Backend backend, class T>() {
      gradients = Contrast<backend, T>::gradients(arrays.queue(stream), parameters, pixel_size, in);
    });
    return gradients;
  });
  module.def("filter_gradients", [](const Object& projections, const Object& cotangent,
                                    const Object& gradients, std::uintptr_t stream) {
    Arrays arrays("filter_gradients");
    const Tensor values = arrays.read("projections", projections, Values::Complex),
                 slopes = arrays.read("cotangent", cotangent, Values::Complex),
                 out = arrays.write("gradients", gradients, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Contrast<backend, T>::filter_gradients(arrays.queue(stream), values, slopes, out);
    });
  });
}

void define_reconstruct(nb::module_& module) {
  module.def("pad_centre", [](const Object& centred, const Object& padded, std::uintptr_t stream) {
    Arrays arrays("pad_centre");
    const Tensor in = arrays.read("centred", centred, Values::Real),
                 out = arrays.write("padded", padded, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Reconstruct<backend, T>::pad_centre(arrays.queue(stream), in, out);
    });
  });
  module.def("crop_centre",
             [](const Object& padded, const Object& centred, double scale, std::uintptr_t stream) {
               Arrays arrays("crop_centre");
               const Tensor in = arrays.read("padded", padded, Values::Real),
                            out = arrays.write("centred", centred, Values::Real);
               arrays.run([&]<Backend backend, class T>() {
                 Reconstruct<backend, T>::crop_centre(arrays.queue(stream), in, out, scale);
               });
             });
  module.def("correct_rolloff", [](const Object& volume, const std::vector<int>& padded,
                                   const std::string& interpolation, std::uintptr_t stream) {
    Arrays arrays("correct_rolloff");
    const Tensor values = arrays.write("volume", volume, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Reconstruct<backend, T>::correct_rolloff(arrays.queue(stream), values, padded, interpolation);
    });
  });
  module.def(
      "normalise",
      [](const Object& data, const Object& weight, std::int64_t width, const Object& volume,
         const Object& averages, const Object& prior, double wiener, double edge, std::optional<double> floor,
         std::optional<double> radius, const std::string& interpolation, std::uintptr_t stream) {
        Arrays arrays("normalise");
        const Tensor in = arrays.read("data", data, Values::Complex, width),
                     weights = arrays.read("weight", weight, Values::Real, width),
                     out = arrays.write("volume", volume, Values::Complex, width),
                     means = arrays.write("averages", averages, Values::Double),
                     added = arrays.read("prior", prior, Values::Double);
        const NormaliseSettings settings{wiener, edge, floor, radius, interpolation};
        arrays.run([&]<Backend backend, class T>() {
          Reconstruct<backend, T>::normalise(arrays.queue(stream), in, weights, out, means, added, settings);
        });
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
      nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg());
  module.def(
      "symmetrise",
      [](const Object& spectrum, std::int64_t width, const Object& scratch, bool complex,
         const std::vector<double>& operators, const std::string& interpolation, std::optional<double> radius,
         std::uintptr_t stream) {
        Arrays arrays("symmetrise");
        const Values values = complex ? Values::Complex : Values::Real;
        const Tensor out = arrays.write("spectrum", spectrum, values, width),
                     other = arrays.write("scratch", scratch, values, width);
        arrays.run([&]<Backend backend, class T>() {
          Reconstruct<backend, T>::symmetrise(arrays.queue(stream), out, other, complex, operators,
                                              interpolation, radius);
        });
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  module.def("half_set_moments",
             [](const Object& first_data, const Object& first_weight, const Object& second_data,
                const Object& second_weight, std::int64_t width, const Object& moments, const Object& prior,
                std::uintptr_t stream) {
               Arrays arrays("half_set_moments");
               const Tensor one = arrays.read("first_data", first_data, Values::Complex, width),
                            one_weight = arrays.read("first_weight", first_weight, Values::Real, width),
                            other = arrays.read("second_data", second_data, Values::Complex, width),
                            other_weight = arrays.read("second_weight", second_weight, Values::Real, width),
                            out = arrays.write("moments", moments, Values::Double),
                            added = arrays.read("prior", prior, Values::Double);
               arrays.run([&]<Backend backend, class T>() {
                 Reconstruct<backend, T>::half_set_moments(arrays.queue(stream), one, one_weight, other,
                                                           other_weight, out, added);
               });
             });
  module.def(
      "equalise",
      [](const Object& weight, std::int64_t width, const Object& divisor, const Object& averages,
         const Object& spectrum, const Object& volume, const Object& error, const Object& prior,
         const std::vector<int>& box, int steps, double even, bool keep_power, std::optional<double> radius,
         std::uintptr_t stream) {
        Arrays arrays("equalise");
        const Tensor in = arrays.read("weight", weight, Values::Real, width),
                     out = arrays.write("divisor", divisor, Values::Real, width),
                     means = arrays.write("averages", averages, Values::Double),
                     spectra = arrays.write("spectrum", spectrum, Values::Complex, width),
                     real = arrays.write("volume", volume, Values::Real),
                     sums = arrays.write("error", error, Values::Double),
                     added = arrays.read("prior", prior, Values::Double);
        const EqualiseSettings settings{box, steps, even, keep_power, radius};
        double off = 0;
        arrays.run([&]<Backend backend, class T>() {
          off = Reconstruct<backend, T>::equalise(arrays.queue(stream), in, out, means, spectra, real, sums,
                                                  added, settings);
        });
        return off;
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  using OnHost = Reconstruct<Backend::Host, double>;
  module.def(
      "signal_and_noise",
      [](const std::vector<double>& moments, const std::string& interpolation,
         std::optional<std::size_t> whole) {
        return OnHost::signal_and_noise(moments, interpolation, whole);
      },
      nb::arg(), nb::arg(), nb::arg().none());
  module.def("wiener_prior", [](const std::vector<double>& signal, const std::vector<double>& noise,
                                const std::vector<double>& weight, double oversampling, double part) {
    return OnHost::wiener_prior({signal, noise, weight}, oversampling, part);
  });
  module.def("symmetry_operators", [](const std::string& name) { return OnHost::symmetry_operators(name); });
  module.def("helical_operators", [](double rise, double twist, int count, const std::string& group) {
    return OnHost::helical_operators(rise, twist, count, group);
  });
  module.def("fourier_shell_correlation", [](const Object& first, const Object& second, std::int64_t width,
                                             const Object& correlation, std::uintptr_t stream) {
    Arrays arrays("fourier_shell_correlation");
    const Tensor one = arrays.read("first", first, Values::Complex, width),
                 other = arrays.read("second", second, Values::Complex, width),
                 out = arrays.write("correlation", correlation, Values::Double);
    arrays.run([&]<Backend backend, class T>() {
      Reconstruct<backend, T>::fourier_shell_correlation(arrays.queue(stream), one, other, out);
    });
  });
}

void define_reference(nb::module_& module) {
  using Self = Handle<ReferencePlan>;
  const auto poses = [](Arrays& arrays, const Object& matrices, const Object& shifts, const Object& filters,
                        std::int64_t width) {
    return PoseTensors{arrays.read("matrices", matrices, Values::Real),
                       arrays.read("shifts", shifts, Values::Real),
                       arrays.read("filters", filters, Values::Real, width)};
  };
  plan_class<ReferencePlan>(module, "ReferencePlan")
      .def_static("make",
                  [](const Object& like, const Object& reconstruction, std::int64_t width,
                     const std::string& interpolation, bool half, std::uintptr_t stream) {
                    Arrays arrays("PreparedReference");
                    arrays.read("like", like, Values::Real);
                    const Tensor in = arrays.read("reconstruction", reconstruction, Values::Complex, width);
                    return make_plan<ReferencePlan>(
                        "PreparedReference", like, stream, [&]<Backend backend, class T>(Queue queue) {
                          return Projection<backend, T>::prepare(queue, in, interpolation, half);
                        });
                  })
      .def("project",
           [poses](Self& self, const Object& matrices, const Object& shifts, const Object& filters,
                   const Object& projections, std::int64_t width, const ProjectionSettings& settings,
                   std::uintptr_t stream) {
             Arrays arrays("PreparedReference.project", self);
             const PoseTensors at = poses(arrays, matrices, shifts, filters, width);
             const Tensor out = arrays.write("projections", projections, Values::Complex, width);
             use_plan(self, arrays,
                      [&](ReferencePlan& plan) { plan.project(arrays.queue(stream), at, out, settings); });
           })
      .def("project_gradients",
           [poses](Self& self, const Object& matrices, const Object& shifts, const Object& filters,
                   const Object& cotangent, std::int64_t width, const Object& matrix_gradients,
                   const Object& shift_gradients, const ProjectionSettings& settings, std::uintptr_t stream) {
             Arrays arrays("PreparedReference.project_gradients", self);
             const PoseTensors at = poses(arrays, matrices, shifts, filters, width);
             const Tensor slopes = arrays.read("cotangent", cotangent, Values::Complex, width);
             const Tensor turns = arrays.write("gradient of matrices", matrix_gradients, Values::Real),
                          moves = arrays.write("gradient of shifts", shift_gradients, Values::Real);
             use_plan(self, arrays, [&](ReferencePlan& plan) {
               plan.project_gradients(arrays.queue(stream), at, slopes, turns, moves, settings);
             });
           });
}

void define_scoring(nb::module_& module) {
  using Self = Handle<ScoringPlan>;
  plan_class<ScoringPlan>(module, "ScoringPlan")
      .def_static("make",
                  [](const Object& like, std::int64_t images, int shifts, int height, int width, int best,
                     const std::string& score, const ProjectionSettings& options, std::uintptr_t stream) {
                    const ScoringSettings settings{images, shifts, height, width, best, score};
                    return make_plan<ScoringPlan>(
                        "PoseScoring", like, stream, [&]<Backend backend, class T>(Queue queue) {
                          return Projection<backend, T>::scoring(queue, settings, options);
                        });
                  })
      .def("set_images",
           [](Self& self, const Object& images, const Object& filters, const Object& weights,
              std::int64_t width, std::uintptr_t stream) {
             Arrays arrays("PoseScoring.set_images", self);
             const Tensor in = arrays.read("images", images, Values::Complex, width),
                          factors = arrays.read("filters", filters, Values::Real, width),
                          worth = arrays.read("weights", weights, Values::Real, width);
             use_plan(self, arrays,
                      [&](ScoringPlan& plan) { plan.set_images(arrays.queue(stream), in, factors, worth); });
           })
      .def("set_shifts",
           [](Self& self, const Object& shifts, std::uintptr_t stream) {
             Arrays arrays("PoseScoring.set_shifts", self);
             const Tensor in = arrays.read("shifts", shifts, Values::Real);
             use_plan(self, arrays, [&](ScoringPlan& plan) { plan.set_shifts(arrays.queue(stream), in); });
           })
      .def("score", [](Self& self, const Handle<ReferencePlan>& reference, const Object& matrices,
                       const Object& all, const Object& best, const Object& poses, const Object& shifts,
                       std::uintptr_t stream) {
        Arrays arrays("PoseScoring.score", self);
        arrays.expect_same("reference", self, reference);
        const Tensor at = arrays.read("matrices", matrices, Values::Real);
        const ScoreTensors scores{
            arrays.write("all", all, Values::Real), arrays.write("best", best, Values::Real),
            arrays.write("poses", poses, Values::Integer), arrays.write("shifts", shifts, Values::Integer)};
        const ReferencePlan& source = reference.get();
        use_plan(self, arrays,
                 [&](ScoringPlan& plan) { source.score(arrays.queue(stream), plan, at, scores); });
      });
}

void define_expectation(nb::module_& module) {
  using Self = Handle<ExpectationStep>;
  plan_class<ExpectationStep>(module, "ExpectationStep")
      .def_static("make",
                  [](const Object& like, std::int64_t images, int shifts, int height, int width, int best,
                     std::int64_t bytes, bool reproducible, const ProjectionSettings& options,
                     std::uintptr_t stream) {
                    const ExpectationSettings settings{images, bytes, shifts,      height,
                                                       width,  best,  reproducible};
                    return make_plan<ExpectationStep>(
                        "Expectation", like, stream, [&]<Backend backend, class T>(Queue queue) {
                          return Projection<backend, T>::expectation(queue, settings, options);
                        });
                  })
      .def_prop_ro("shell_sizes", [](const Self& self) { return self.get().shell_sizes(); })
      .def("set_images",
           [](Self& self, const Object& images, const Object& noise, const Object& filters,
              const Object& origins, std::int64_t width, std::uintptr_t stream) {
             Arrays arrays("Expectation.set_images", self);
             const Tensor in = arrays.read("images", images, Values::Complex, width),
                          variances = arrays.read("noise", noise, Values::Real),
                          factors = arrays.read("filters", filters, Values::Real, width),
                          from = arrays.read("origins", origins, Values::Real);
             use_plan(self, arrays, [&](ExpectationStep& step) {
               step.set_images(arrays.queue(stream), in, variances, factors, from);
             });
           })
      .def("set_shifts",
           [](Self& self, const Object& shifts, const Object& priors, std::uintptr_t stream) {
             Arrays arrays("Expectation.set_shifts", self);
             const Tensor in = arrays.read("shifts", shifts, Values::Real),
                          weights = arrays.read("priors", priors, Values::Real);
             use_plan(self, arrays,
                      [&](ExpectationStep& step) { step.set_shifts(arrays.queue(stream), in, weights); });
           })
      .def("run",
           [](Self& self, const Handle<ReferencePlan>& reference, const Object& matrices,
              const std::vector<std::int64_t>& first, const Object& priors, const Object& class_priors,
              const std::vector<Object>& outputs, std::int64_t width, double share, std::uintptr_t stream) {
             Arrays arrays("Expectation.run", self);
             arrays.expect_same("reference", self, reference);
             const Tensor at = arrays.read("matrices", matrices, Values::Real),
                          of_poses = arrays.read("priors", priors, Values::Real),
                          of_classes = arrays.read("class_priors", class_priors, Values::Real);
             const ExpectationTensors out{arrays.write("log_evidence", outputs.at(0), Values::Double),
                                          arrays.write("class_shares", outputs.at(1), Values::Real),
                                          arrays.write("posteriors", outputs.at(2), Values::Real),
                                          arrays.write("classes", outputs.at(3), Values::Integer),
                                          arrays.write("poses", outputs.at(4), Values::Integer),
                                          arrays.write("shifts", outputs.at(5), Values::Integer),
                                          arrays.write("data", outputs.at(6), Values::Complex, width),
                                          arrays.write("weight", outputs.at(7), Values::Real, width),
                                          arrays.write("shares", outputs.at(8), Values::Real),
                                          arrays.write("candidates", outputs.at(9), Values::Integer),
                                          arrays.write("shift_sums", outputs.at(10), Values::Double),
                                          arrays.write("shell_sums", outputs.at(11), Values::Double)};
             const ReferencePlan& source = reference.get();
             use_plan(self, arrays, [&](ExpectationStep& step) {
               source.expect(arrays.queue(stream), step, at, first, of_poses, of_classes, out, share);
             });
           })
      .def("support", [](Self& self, const Handle<ReferencePlan>& reference, const Object& matrices,
                         const std::vector<std::int64_t>& first, const Object& priors,
                         const Object& class_priors, const Object& means, double share, std::int64_t most,
                         std::uintptr_t stream) {
        Arrays arrays("Expectation.support", self);
        arrays.expect_same("reference", self, reference);
        const Tensor at = arrays.read("matrices", matrices, Values::Real),
                     of_poses = arrays.read("priors", priors, Values::Real),
                     of_classes = arrays.read("class_priors", class_priors, Values::Real),
                     to = arrays.write("means", means, Values::Real);
        const ReferencePlan& source = reference.get();
        std::pair<std::vector<std::int32_t>, std::vector<std::int64_t>> found;
        use_plan(self, arrays, [&](ExpectationStep& step) {
          found =
              source.support(arrays.queue(stream), step, at, first, of_poses, of_classes, to, share, most);
        });
        return found;
      });
}

} // namespace Bracewell::Python
