// SPDX-License-Identifier: MIT
#include "module.hpp"

namespace Bracewell::Python {

void define_nonuniform(nb::module_& module) {
  using Self = Handle<NonuniformPlan>;
  plan_class<NonuniformPlan>(module, "NonuniformPlan")
      .def_static(
          "make",
          [](const Object& like, const Object& points, const std::vector<int>& shape, std::int64_t slices,
             double tolerance, std::optional<double> oversampling, std::uintptr_t stream) {
            Arrays arrays("NonuniformFFT");
            arrays.read("like", like, Values::Real);
            const Tensor at = arrays.read("points", points, Values::Double);
            return make_plan<
                NonuniformPlan>("NonuniformFFT", like, stream, [&]<Backend backend, class T>(Queue queue) {
              return Tomography<backend, T>::nonuniform(queue, at, {shape, slices, tolerance, oversampling});
            });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg())
      .def("set_points",
           [](Self& self, const Object& points, std::uintptr_t stream) {
             Arrays arrays("NonuniformFFT.set_points", self);
             const Tensor at = arrays.read("points", points, Values::Double);
             use_plan(self, arrays, [&](NonuniformPlan& plan) { plan.set_points(arrays.queue(stream), at); });
           })
      .def("adjoint",
           [](Self& self, const Object& samples, const Object& images, std::uintptr_t stream) {
             Arrays arrays("NonuniformFFT.adjoint", self);
             const Tensor in = arrays.read("samples", samples, Values::Complex),
                          out = arrays.write("images", images, Values::Complex);
             use_plan(self, arrays,
                      [&](NonuniformPlan& plan) { plan.adjoint(arrays.queue(stream), in, out); });
           })
      .def("forward",
           [](Self& self, const Object& images, const Object& samples, std::uintptr_t stream) {
             Arrays arrays("NonuniformFFT.forward", self);
             const Tensor in = arrays.read("images", images, Values::Complex),
                          out = arrays.write("samples", samples, Values::Complex);
             use_plan(self, arrays,
                      [&](NonuniformPlan& plan) { plan.forward(arrays.queue(stream), in, out); });
           })
      .def("point_gradients", [](Self& self, const Object& images, const Object& samples,
                                 const Object& gradients, const Object& scratch, std::uintptr_t stream) {
        Arrays arrays("NonuniformFFT.point_gradients", self);
        const Tensor in = arrays.read("images", images, Values::Complex),
                     values = arrays.read("samples", samples, Values::Complex),
                     out = arrays.write("gradients", gradients, Values::Real),
                     slopes = arrays.write("scratch", scratch, Values::Complex);
        use_plan(self, arrays, [&](NonuniformPlan& plan) {
          plan.point_gradients(arrays.queue(stream), in, values, out, slopes);
        });
      });
}

void define_toeplitz(nb::module_& module) {
  using Self = Handle<ToeplitzPlan>;
  plan_class<ToeplitzPlan>(module, "ToeplitzPlan")
      .def_static(
          "make",
          [](const Object& like, const Object& points, const Object& weights, bool is_complex,
             const std::vector<int>& shape, std::int64_t slices, double tolerance,
             std::optional<double> oversampling, std::uintptr_t stream) {
            Arrays arrays("ToeplitzNormal");
            arrays.read("like", like, Values::Real);
            const Tensor at = arrays.read("points", points, Values::Double),
                         worth = arrays.read("weights", weights, Values::Real);
            return make_plan<ToeplitzPlan>(
                "ToeplitzNormal", like, stream, [&]<Backend backend, class T>(Queue queue) {
                  return Tomography<backend, T>::toeplitz(
                      queue, at, worth, {shape, slices, tolerance, oversampling}, is_complex);
                });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
          nb::arg())
      .def("execute", [](Self& self, const Object& images, const Object& results, bool is_complex,
                         std::uintptr_t stream) {
        Arrays arrays("ToeplitzNormal.execute", self);
        const Values values = is_complex ? Values::Complex : Values::Real;
        const Tensor in = arrays.read("images", images, values),
                     out = arrays.write("results", results, values);
        use_plan(self, arrays, [&](ToeplitzPlan& plan) { plan.execute(arrays.queue(stream), in, out); });
      });
}

void define_sums(nb::module_& module) {
  using Self = Handle<SumsPlan>;
  plan_class<SumsPlan>(module, "SumsPlan")
      .def_static(
          "make",
          [](const Object& like, const Object& points, const Object& targets, std::int64_t slices,
             double tolerance, std::optional<double> oversampling, std::uintptr_t stream) {
            Arrays arrays("NonuniformSums");
            arrays.read("like", like, Values::Real);
            const Tensor from = arrays.read("points", points, Values::Double),
                         to = arrays.read("targets", targets, Values::Double);
            return make_plan<SumsPlan>(
                "NonuniformSums", like, stream, [&]<Backend backend, class T>(Queue queue) {
                  return Tomography<backend, T>::sums(queue, from, to, {{}, slices, tolerance, oversampling});
                });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg())
      .def("set_points",
           [](Self& self, const Object& points, const Object& targets, std::uintptr_t stream) {
             Arrays arrays("NonuniformSums.set_points", self);
             const Tensor from = arrays.read("points", points, Values::Double),
                          to = arrays.read("targets", targets, Values::Double);
             use_plan(self, arrays, [&](SumsPlan& plan) { plan.set_points(arrays.queue(stream), from, to); });
           })
      .def("forward",
           [](Self& self, const Object& values, const Object& sums, std::uintptr_t stream) {
             Arrays arrays("NonuniformSums.forward", self);
             const Tensor in = arrays.read("values", values, Values::Complex),
                          out = arrays.write("sums", sums, Values::Complex);
             use_plan(self, arrays, [&](SumsPlan& plan) { plan.forward(arrays.queue(stream), in, out); });
           })
      .def("adjoint", [](Self& self, const Object& sums, const Object& values, std::uintptr_t stream) {
        Arrays arrays("NonuniformSums.adjoint", self);
        const Tensor in = arrays.read("sums", sums, Values::Complex),
                     out = arrays.write("values", values, Values::Complex);
        use_plan(self, arrays, [&](SumsPlan& plan) { plan.adjoint(arrays.queue(stream), in, out); });
      });
}

} // namespace Bracewell::Python
