// SPDX-License-Identifier: MIT
#include "module.hpp"

namespace Bracewell::Python {

namespace {

/// Of SolverPlan::Part.
constexpr const char* names_of_parts[] = {"amplitude",    "phase",      "probe",   "displacements",
                                          "coefficients", "relaxation", "factors", "background"};
Values type_of_part(int part) {
  return part == SolverPlan::Probe || part == SolverPlan::Coefficients || part == SolverPlan::Relaxation
             ? Values::Complex
             : Values::Real;
}

} // namespace

void define_ptychography(nb::module_& module) {
  using Self = Handle<PtychographyPlan>;
  plan_class<PtychographyPlan>(module, "PtychographyPlan")
      .def_static(
          "make",
          [](const Object& like, const Object& positions, std::int64_t rows, std::int64_t columns, int probe,
             int detector, int modes, const std::string& loss, const std::string& weights,
             bool scale_per_pattern, double counts, double background, std::optional<double> fresnel_number,
             bool refine_positions, const std::vector<double>& slice_fresnel_numbers, int relaxation,
             bool pattern_factors, bool detector_background,
             const std::vector<std::vector<double>>& slice_shifts, bool refine_slice_shifts,
             bool reduced_grid, std::uintptr_t stream) {
            Arrays arrays("PtychographyLoss"); // positions are read on the host
            const Tensor at = arrays.read("positions", positions, Values::Double);
            const PtychographySettings settings{rows,
                                                columns,
                                                probe,
                                                detector,
                                                modes,
                                                loss,
                                                weights,
                                                scale_per_pattern,
                                                counts,
                                                background,
                                                fresnel_number,
                                                refine_positions,
                                                slice_fresnel_numbers,
                                                relaxation,
                                                pattern_factors,
                                                detector_background,
                                                slice_shifts,
                                                refine_slice_shifts,
                                                reduced_grid};
            return make_plan<PtychographyPlan>("PtychographyLoss", like, stream,
                                               [&]<Backend backend, class T>(Queue queue) {
                                                 return Ptychography<backend, T>::loss(queue, at, settings);
                                               });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg())
      .def("set_patterns",
           [](Self& self, std::int64_t first, const Object& patterns, const Object& weights,
              std::uintptr_t stream) {
             Arrays arrays("PtychographyLoss.set_patterns", self);
             const Tensor in = arrays.read("patterns", patterns, Values::Real),
                          worth = arrays.read("weights", weights, Values::Real);
             use_plan(self, arrays, [&](PtychographyPlan& plan) {
               plan.set_patterns(arrays.queue(stream), first, in, worth);
             });
           })
      .def("evaluate", [](Self& self, const std::vector<nb::object>& inputs,
                          const std::vector<nb::object>& outputs, std::uintptr_t stream) {
        Arrays arrays("PtychographyLoss.evaluate", self);
        const auto given = [](const nb::object& one) { return one.is_none() ? Object() : Object(one); };
        const auto read = [&](const char* name, std::size_t place, Values type) {
          return arrays.read(name, given(inputs.at(place)), type);
        };
        const auto write = [&](const char* name, std::size_t place, Values type) {
          return arrays.write(name, given(outputs.at(place)), type);
        };
        const PtychographyTensors tensors{
            read("object", 0, Values::Complex),
            read("probe", 1, Values::Complex),
            read("positions", 2, Values::Double),
            read("factors", 3, Values::Real),
            read("background", 4, Values::Real),
            read("coefficients", 5, Values::Complex),
            read("relaxation", 6, Values::Complex),
            read("slice_shifts", 7, Values::Double),
            write("loss", 0, Values::Double),
            write("pattern_losses", 1, Values::Double),
            write("gradient of object", 2, Values::Complex),
            write("gradient of probe", 3, Values::Complex),
            write("gradient of positions", 4, Values::Real),
            write("gradient of factors", 5, Values::Real),
            write("gradient of background", 6, Values::Real),
            write("gradient of coefficients", 7, Values::Complex),
            write("gradient of relaxation", 8, Values::Complex),
            write("gradient of slice_shifts", 9, Values::Real),
            read("subset", 8, Values::Integer),
        };
        use_plan(self, arrays, [&](PtychographyPlan& plan) { plan.evaluate(arrays.queue(stream), tensors); });
      });

  module.def("ptychography_schedule", &ptychography_schedule);
  module.def("few_counts", [](const Object& patterns, const Object& weights, std::uintptr_t stream) {
    Arrays arrays("PtychographyLoss");
    const Tensor in = arrays.read("patterns", patterns, Values::Real),
                 worth = arrays.read("weights", weights, Values::Real);
    bool few = false;
    arrays.run([&]<Backend backend, class T>() {
      few = Ptychography<backend, T>::few_counts(arrays.queue(stream), in, worth);
    });
    return few;
  });
  using Solver = Handle<SolverPlan>;
  plan_class<SolverPlan>(module, "SolverPlan")
      .def_static(
          "make",
          [](const Object& like, Self& loss, const std::string& steps, double object_rate, double probe_rate,
             double position_rate, double position_limit, double regularisation,
             std::int64_t projections_first, double coefficient_rate, double relaxation_rate,
             double factor_rate, double background_rate, const std::string& position_moves,
             const std::vector<double>& amplitude_limits, std::optional<double> probe_support,
             double total_variation, std::uintptr_t stream) {
            const SolverSettings settings{
                steps,           object_rate,       probe_rate,       position_rate,   position_limit,
                regularisation,  projections_first, coefficient_rate, relaxation_rate, factor_rate,
                background_rate, position_moves,    amplitude_limits, probe_support,   total_variation};
            PtychographyPlan& taken = loss.get();
            Arrays("PtychographySolver", loss).read("probe", like, Values::Real);
            const struct Leave {
              Self& loss;
              ~Leave() { loss.clear(); } // what was taken is of no use, be the solver made or refused
            } leave{loss};
            return make_plan<SolverPlan>("PtychographySolver", like, stream,
                                         [&]<Backend backend, class T>(Queue queue) {
                                           const std::lock_guard lock(loss.mutex);
                                           return Ptychography<backend, T>::solver(queue, taken, settings);
                                         });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
          nb::arg())
      .def("set",
           [](Solver& self, int part, const Object& value, std::uintptr_t stream) {
             Arrays arrays("PtychographySolver", self);
             const Tensor tensor = arrays.read(names_of_parts[part], value, type_of_part(part));
             use_plan(self, arrays, [&](SolverPlan& plan) {
               plan.set(arrays.queue(stream), SolverPlan::Part(part), tensor);
             });
           })
      .def("get",
           [](Solver& self, int part, const Object& value, std::uintptr_t stream) {
             Arrays arrays("PtychographySolver", self);
             const Tensor tensor = arrays.write(names_of_parts[part], value, type_of_part(part));
             use_plan(self, arrays, [&](SolverPlan& plan) {
               plan.get(arrays.queue(stream), SolverPlan::Part(part), tensor);
             });
           })
      .def("step",
           [](Solver& self, const Object& subset, std::uintptr_t stream) {
             Arrays arrays("PtychographySolver.step", self);
             const Tensor some = arrays.read("subset", subset, Values::Integer);
             use_plan(self, arrays, [&](SolverPlan& plan) { plan.step(arrays.queue(stream), some); });
           })
      .def("move_windows",
           [](Solver& self, std::uintptr_t stream) {
             const Arrays arrays("PtychographySolver", self);
             use_plan(self, arrays, [&](SolverPlan& plan) { plan.move_windows(arrays.queue(stream)); });
           })
      .def("set_rate_factor",
           [](Solver& self, double factor) {
             const Arrays arrays("PtychographySolver", self);
             use_plan(self, arrays, [&](SolverPlan& plan) { plan.set_rate_factor(factor); });
           })
      .def("set_object_support",
           [](Solver& self, const Object& support, double beyond, std::uintptr_t stream) {
             Arrays arrays("PtychographySolver", self);
             const Tensor pixels = arrays.read("object_support", support, Values::Real);
             use_plan(self, arrays, [&](SolverPlan& plan) {
               plan.set_object_support(arrays.queue(stream), pixels, beyond);
             });
           })
      .def("losses", [](Solver& self, std::uintptr_t stream) {
        const Arrays arrays("PtychographySolver.losses", self);
        std::vector<double> values;
        use_plan(self, arrays, [&](SolverPlan& plan) { values = plan.losses(arrays.queue(stream)); });
        return values;
      });

  using Lens = Handle<AberratedProbePlan>;
  plan_class<AberratedProbePlan>(module, "AberratedProbePlan")
      .def_static("make",
                  [](const Object& like, int probe, int detector, double wavelength, double pixel_size,
                     double convergence_angle, double cs_to_length, std::uintptr_t stream) {
                    const LensSettings settings{probe,      detector,          wavelength,
                                                pixel_size, convergence_angle, cs_to_length};
                    return make_plan<AberratedProbePlan>(
                        "AberratedProbe", like, stream, [&]<Backend backend, class T>(Queue queue) {
                          return Ptychography<backend, T>::lens(queue, settings);
                        });
                  })
      .def("evaluate",
           [](Lens& self, const Object& parameters, const Object& probe, std::uintptr_t stream) {
             Arrays arrays("AberratedProbe.evaluate", self);
             const Tensor in = arrays.read("parameters", parameters, Values::Real),
                          out = arrays.write("probe", probe, Values::Complex);
             use_plan(self, arrays,
                      [&](AberratedProbePlan& plan) { plan.evaluate(arrays.queue(stream), in, out); });
           })
      .def("gradients", [](Lens& self, const Object& parameters, const Object& probe_gradient,
                           const Object& parameter_gradient, std::uintptr_t stream) {
        Arrays arrays("AberratedProbe.gradients", self);
        const Tensor at = arrays.read("parameters", parameters, Values::Real),
                     in = arrays.read("probe_gradient", probe_gradient, Values::Complex),
                     out = arrays.write("gradient of parameters", parameter_gradient, Values::Real);
        use_plan(self, arrays,
                 [&](AberratedProbePlan& plan) { plan.gradients(arrays.queue(stream), at, in, out); });
      });

  using Optimiser = Handle<AdamPlan>;
  plan_class<AdamPlan>(module, "AdamPlan")
      .def_static("make",
                  [](const Object& like, const std::vector<std::size_t>& sizes, double beta1, double beta2,
                     double epsilon, std::uintptr_t stream) {
                    return make_plan<AdamPlan>(
                        "Adam", like, stream, [&]<Backend backend, class T>(Queue queue) {
                          return Ptychography<backend, T>::adam(queue, sizes, beta1, beta2, epsilon);
                        });
                  })
      .def("step", [](Optimiser& self, const std::vector<nb::object>& values,
                      const std::vector<nb::object>& gradients, const std::vector<bool>& is_complex,
                      const std::vector<double>& rates, std::uintptr_t stream) {
        Arrays arrays("Adam.step", self);
        std::vector<AdamPlan::Group> groups;
        for (std::size_t i = 0; i < values.size(); ++i) {
          const Values type = is_complex[i] ? Values::Complex : Values::Real;
          AdamPlan::Group group{arrays.write("parameters", values[i], type),
                                arrays.read("gradients", gradients[i], type), rates[i]};
          for (Tensor* tensor : {&group.values, &group.gradients}) { // complex numbers are pairs of real ones
            if (tensor->rank == 0)
              tensor->extents[0] = 1;
            tensor->rank = std::max(tensor->rank, 1);
            tensor->extents[0] *= is_complex[i] ? 2 : 1;
          }
          groups.push_back(group);
        }
        use_plan(self, arrays, [&](AdamPlan& plan) { plan.step(arrays.queue(stream), groups); });
      });
}

} // namespace Bracewell::Python
