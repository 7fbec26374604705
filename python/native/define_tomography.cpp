// SPDX-License-Identifier: MIT
#include "module.hpp"

namespace Bracewell::Python {

void define_tomography(nb::module_& module) {
  using Self = Handle<TomographyPlan>;
  plan_class<TomographyPlan>(module, "TomographyPlan")
      .def_static(
          "make",
          [](const Object& like, const std::string& method, const std::vector<double>& angles, int width,
             std::optional<double> centre, const std::vector<double>& weights,
             const std::vector<double>& shifts, int image, std::int64_t slices, bool line_integrals,
             double tolerance, std::uintptr_t stream) {
            const TomographySettings settings{method, angles, weights, shifts,         width,
                                              image,  centre, slices,  line_integrals, tolerance};
            return make_plan<TomographyPlan>("Tomography", like, stream,
                                             [&]<Backend backend, class T>(Queue queue) {
                                               return Tomography<backend, T>::plan(queue, settings);
                                             });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg())
      .def_static(
          "laminography",
          [](const Object& like, const std::string& method, const std::vector<double>& angles, int width,
             int rows, double tilt, std::optional<double> centre, std::optional<double> row_centre,
             const std::vector<double>& weights, int image, int depth, bool line_integrals, double tolerance,
             std::uintptr_t stream) {
            const LaminographySettings settings{method, angles,     weights,        width,
                                                rows,   image,      depth,          tilt,
                                                centre, row_centre, line_integrals, tolerance};
            return make_plan<TomographyPlan>("Laminography", like, stream,
                                             [&]<Backend backend, class T>(Queue queue) {
                                               return Tomography<backend, T>::laminography(queue, settings);
                                             });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
          nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg())
      .def("backproject",
           [](Self& self, const Object& projections, const Object& images, std::uintptr_t stream) {
             Arrays arrays("Tomography.backproject", self);
             const Tensor in = arrays.read("sinograms", projections, Values::Real),
                          out = arrays.write("images", images, Values::Real);
             use_plan(self, arrays,
                      [&](TomographyPlan& plan) { plan.backproject(arrays.queue(stream), in, out); });
           })
      .def("project",
           [](Self& self, const Object& images, const Object& projections, std::uintptr_t stream) {
             Arrays arrays("Tomography.project", self);
             const Tensor in = arrays.read("images", images, Values::Real),
                          out = arrays.write("sinograms", projections, Values::Real);
             use_plan(self, arrays,
                      [&](TomographyPlan& plan) { plan.project(arrays.queue(stream), in, out); });
           })
      .def("normal",
           [](Self& self, const Object& images, const Object& results, std::uintptr_t stream) {
             Arrays arrays("FourierNormal.normal", self);
             const Tensor in = arrays.read("images", images, Values::Real),
                          out = arrays.write("results", results, Values::Real);
             use_plan(self, arrays,
                      [&](TomographyPlan& plan) { plan.normal(arrays.queue(stream), in, out); });
           })
      .def("slopes", [](Self& self, const Object& images, const Object& of_angles, const Object& of_shifts,
                        std::uintptr_t stream) {
        Arrays arrays("ViewSlopes.slopes", self);
        const Tensor in = arrays.read("images", images, Values::Real),
                     turns = arrays.write("slopes of angles", of_angles, Values::Real),
                     moves = arrays.write("slopes of shifts", of_shifts, Values::Real);
        use_plan(self, arrays,
                 [&](TomographyPlan& plan) { plan.slopes(arrays.queue(stream), in, turns, moves); });
      });
  module.def("sum_views",
             [](const Object& slopes, const Object& cotangents, const Object& sums, std::uintptr_t stream) {
               Arrays arrays("sum_views");
               const Tensor a = arrays.read("slopes", slopes, Values::Real),
                            b = arrays.read("cotangents", cotangents, Values::Real),
                            out = arrays.write("sums", sums, Values::Double);
               arrays.run([&]<Backend backend, class T>() {
                 Tomography<backend, T>::sum_views(arrays.queue(stream), a, b, out);
               });
             });

  using Rows = Handle<RowPlan>;
  plan_class<RowPlan>(module, "RowPlan")
      .def_static("filter",
                  [](const Object& like, const std::string& filter, bool edge, std::int64_t rows, int width,
                     double shift, std::uintptr_t stream) {
                    return make_plan<RowPlan>(
                        "ProjectionFilter", like, stream, [&]<Backend backend, class T>(Queue queue) {
                          return Tomography<backend, T>::filter(queue, {filter, edge, rows, width, shift});
                        });
                  })
      .def_static("stripes",
                  [](const Object& like, int angles, int width, const std::string& method, double strength,
                     int window, int levels, double damping, double dead, std::uintptr_t stream) {
                    const StripeSettings settings{angles, width,  method,  strength,
                                                  window, levels, damping, dead};
                    return make_plan<RowPlan>("StripeRemoval", like, stream,
                                              [&]<Backend backend, class T>(Queue queue) {
                                                return Tomography<backend, T>::stripes(queue, settings);
                                              });
                  })
      .def_static(
          "phase",
          [](const Object& like, const std::string& method, std::int64_t angles, int rows, int width,
             double wavelength, double distance, double pixel_size, double delta_beta, double regularisation,
             std::optional<int> padding, bool attenuation, std::uintptr_t stream) {
            const PhaseSettings settings{method,         angles,   rows,       width,
                                         wavelength,     distance, pixel_size, delta_beta,
                                         regularisation, padding,  attenuation};
            return make_plan<RowPlan>("PhaseRetrieval", like, stream,
                                      [&]<Backend backend, class T>(Queue queue) {
                                        return Beamline<backend, T>::phase(queue, settings);
                                      });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg().none(), nb::arg(), nb::arg())
      .def("execute", [](Rows& self, const Object& in, const Object& out, const Object& valid,
                         std::uintptr_t stream) {
        Arrays arrays("RowPlan.execute", self);
        const Tensor from = arrays.read("sinograms", in, Values::Real),
                     marks = arrays.read("valid", valid, Values::Real),
                     to = arrays.write("result", out, Values::Real);
        use_plan(self, arrays, [&](RowPlan& plan) { plan.execute(arrays.queue(stream), from, to, marks); });
      });

  module.def(
      "find_centre",
      [](const Object& sinogram, const std::vector<double>& angles, std::optional<double> first,
         std::optional<double> last, const Object& valid, std::uintptr_t stream) {
        Arrays arrays("find_centre");
        const Tensor in = arrays.read("sinogram", sinogram, Values::Real),
                     marks = arrays.read("valid", valid, Values::Real);
        double centre = 0;
        arrays.run([&]<Backend backend, class T>() {
          centre = Tomography<backend, T>::find_centre(arrays.queue(stream), in, angles, first, last, marks);
        });
        return centre;
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg());
  module.def("normalise_projections", [](const Object& raw, const Object& dark, const Object& flat,
                                         const Object& sinograms, const Object& valid, bool logarithm,
                                         int air_begin, int air_end, std::uintptr_t stream) {
    Arrays arrays("normalise_projections");
    const Tensor in = arrays.read("raw", raw, Values::Real), shade = arrays.read("dark", dark, Values::Real),
                 light = arrays.read("flat", flat, Values::Real),
                 out = arrays.write("sinograms", sinograms, Values::Real),
                 marks = arrays.write("valid", valid, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Tomography<backend, T>::normalise(arrays.queue(stream), in, shade, light, out, marks, logarithm,
                                        air_begin, air_end);
    });
  });
  module.def("angular_density_weights", &angular_density_weights);
}

void define_beamline(nb::module_& module) {
  module.def("remove_outliers", [](const Object& sinograms, const Object& cleaned, int window,
                                   double threshold, std::uintptr_t stream) {
    Arrays arrays("remove_outliers");
    const Tensor in = arrays.read("sinograms", sinograms, Values::Real),
                 out = arrays.write("cleaned", cleaned, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Beamline<backend, T>::remove_outliers(arrays.queue(stream), in, out, window, threshold);
    });
  });
  module.def("find_overlap", [](const Object& sinogram, const std::vector<double>& angles, int least,
                                const Object& valid, std::uintptr_t stream) {
    Arrays arrays("find_overlap");
    const Tensor in = arrays.read("sinogram", sinogram, Values::Real),
                 marks = arrays.read("valid", valid, Values::Real);
    double centre = 0;
    arrays.run([&]<Backend backend, class T>() {
      centre = Beamline<backend, T>::find_overlap(arrays.queue(stream), in, angles, least, marks);
    });
    return centre;
  });
  module.def("half_acquisition", &half_acquisition);
  module.def("weigh_half_acquisition",
             [](const Object& sinograms, const Object& wider, double centre, std::uintptr_t stream) {
               Arrays arrays("weigh_half_acquisition");
               const Tensor in = arrays.read("sinograms", sinograms, Values::Real),
                            out = arrays.write("wider", wider, Values::Real);
               arrays.run([&]<Backend backend, class T>() {
                 Beamline<backend, T>::weigh_half_acquisition(arrays.queue(stream), in, out, centre);
               });
             });
  module.def("bin_frames", [](const Object& frames, const Object& binned, int bin, std::uintptr_t stream) {
    Arrays arrays("bin_frames");
    const Tensor in = arrays.read("frames", frames, Values::Real),
                 out = arrays.write("binned", binned, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Beamline<backend, T>::bin_frames(arrays.queue(stream), in, out, bin);
    });
  });
  module.def("turn_detector", [](const Object& sinograms, const Object& turned, double angle, double row,
                                 double column, std::uintptr_t stream) {
    Arrays arrays("turn_detector");
    const Tensor in = arrays.read("sinograms", sinograms, Values::Real),
                 out = arrays.write("turned", turned, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Beamline<backend, T>::turn_detector(arrays.queue(stream), in, out, angle, row, column);
    });
  });

  using Self = Handle<LeastSquaresPlan>;
  plan_class<LeastSquaresPlan>(module, "LeastSquaresPlan")
      .def_static(
          "make",
          [](const Object& like, const std::string& method, const std::vector<std::int64_t>& data,
             const std::vector<std::int64_t>& images, bool independent, bool normal, std::uintptr_t stream) {
            return make_plan<LeastSquaresPlan>("LeastSquaresSolver", like, stream,
                                               [&]<Backend backend, class T>(Queue queue) {
                                                 return Beamline<backend, T>::least_squares(
                                                     queue, {method, data, images, independent, normal});
                                               });
          })
      .def("solve",
           [](Self& self, Handle<TomographyPlan>& pair, const Object& data, const Object& images,
              const Object& weights, const Object& mask, int iterations, double discrepancy,
              double relaxation, bool nonnegative, double total_variation, int inner_iterations,
              std::uintptr_t stream) {
             Arrays arrays("LeastSquaresSolver.solve", self);
             arrays.expect_same("pair", self, pair);
             const Tensor in = arrays.read("data", data, Values::Real),
                          out = arrays.write("images", images, Values::Real),
                          worth = arrays.read("weights", weights, Values::Real),
                          where = arrays.read("mask", mask, Values::Real);
             const LeastSquaresRun run{iterations,  discrepancy,     relaxation,
                                       nonnegative, total_variation, inner_iterations};
             TomographyPlan& projector = pair.get();
             int made = 0;
             use_plan(self, arrays, [&](LeastSquaresPlan& plan) {
               const std::lock_guard lock(pair.mutex);
               made = plan.solve(arrays.queue(stream), projector, in, out, worth, where, run);
             });
             return made;
           })
      .def("residuals", [](Self& self, std::uintptr_t stream) {
        const Arrays arrays("LeastSquaresSolver.residuals", self);
        std::vector<double> values;
        use_plan(self, arrays,
                 [&](LeastSquaresPlan& plan) { values = plan.residuals(arrays.queue(stream)); });
        return values;
      });
}

} // namespace Bracewell::Python
