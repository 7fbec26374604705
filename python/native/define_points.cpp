// SPDX-License-Identifier: MIT
#include "module.hpp"

namespace Bracewell::Python {

void define_points(nb::module_& module) {
  const auto settings = [](bool complex, const std::string& interpolation, const std::string& mates) {
    return PointSettings{complex, interpolation, mates};
  };
  const auto kind = [](bool complex) { return complex ? Values::Complex : Values::Real; };

  module.def("sample", [=](const Object& grid, std::int64_t width, const Object& points, const Object& values,
                           bool complex, const std::string& interpolation, const std::string& mates,
                           std::uintptr_t stream) {
    Arrays arrays("sample");
    const Tensor in = arrays.read("grid", grid, kind(complex), width),
                 at = arrays.read("points", points, Values::Real),
                 out = arrays.write("values", values, kind(complex));
    arrays.run([&]<Backend backend, class T>() {
      Points<backend, T>::sample(arrays.queue(stream), in, at, out, settings(complex, interpolation, mates));
    });
  });
  module.def("insert", [=](const Object& values, const Object& points, const Object& grid, std::int64_t width,
                           bool complex, const std::string& interpolation, const std::string& mates,
                           std::uintptr_t stream) {
    Arrays arrays("insert");
    const Tensor in = arrays.read("values", values, kind(complex)),
                 at = arrays.read("points", points, Values::Real),
                 sum = arrays.write("grid", grid, kind(complex), width);
    arrays.run([&]<Backend backend, class T>() {
      Points<backend, T>::insert(arrays.queue(stream), in, at, sum, settings(complex, interpolation, mates));
    });
  });
  module.def("sample_gradients",
             [=](const Object& grid, std::int64_t width, const Object& points, const Object& cotangent,
                 const Object& of_grid, const Object& of_points, bool complex,
                 const std::string& interpolation, const std::string& mates, std::uintptr_t stream) {
               Arrays arrays("sample_gradients");
               const Tensor in = arrays.read("grid", grid, kind(complex), width),
                            at = arrays.read("points", points, Values::Real),
                            slopes = arrays.read("cotangent", cotangent, kind(complex)),
                            sums = arrays.write("gradient of the grid", of_grid, kind(complex), width),
                            moves = arrays.write("gradient of points", of_points, Values::Real);
               arrays.run([&]<Backend backend, class T>() {
                 Points<backend, T>::sample_gradients(arrays.queue(stream), in, at, slopes, sums, moves,
                                                      settings(complex, interpolation, mates));
               });
             });
  module.def("insert_gradients",
             [=](const Object& values, const Object& points, const Object& cotangent, std::int64_t width,
                 const Object& of_values, const Object& of_points, bool complex,
                 const std::string& interpolation, const std::string& mates, std::uintptr_t stream) {
               Arrays arrays("insert_gradients");
               const Tensor in = arrays.read("values", values, kind(complex)),
                            at = arrays.read("points", points, Values::Real),
                            slopes = arrays.read("cotangent", cotangent, kind(complex), width),
                            sums = arrays.write("gradient of values", of_values, kind(complex)),
                            moves = arrays.write("gradient of points", of_points, Values::Real);
               arrays.run([&]<Backend backend, class T>() {
                 Points<backend, T>::insert_gradients(arrays.queue(stream), in, at, slopes, sums, moves,
                                                      settings(complex, interpolation, mates));
               });
             });

  const auto poses = [](Arrays& arrays, const Object& matrices, const Object& shifts) {
    return PoseTensors{
        arrays.read("matrices", matrices, Values::Real), arrays.read("shifts", shifts, Values::Real), {}};
  };
  module.def("project_lines", [=](const Object& volume, const Object& matrices, const Object& shifts,
                                  const Object& images, std::uintptr_t stream) {
    Arrays arrays("project_lines");
    const Tensor in = arrays.read("volume", volume, Values::Real);
    const PoseTensors at = poses(arrays, matrices, shifts);
    const Tensor out = arrays.write("images", images, Values::Real);
    arrays.run(
        [&]<Backend backend, class T>() { Lines<backend, T>::project(arrays.queue(stream), in, at, out); });
  });
  module.def("backproject_lines", [=](const Object& images, const Object& matrices, const Object& shifts,
                                      const Object& volume, std::uintptr_t stream) {
    Arrays arrays("backproject_lines");
    const Tensor in = arrays.read("images", images, Values::Real);
    const PoseTensors at = poses(arrays, matrices, shifts);
    const Tensor sum = arrays.write("volume", volume, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Lines<backend, T>::backproject(arrays.queue(stream), in, at, sum);
    });
  });
  module.def("project_lines_gradients",
             [=](const Object& volume, const Object& matrices, const Object& shifts, const Object& cotangent,
                 const Object& of_volume, const Object& of_matrices, const Object& of_shifts,
                 std::uintptr_t stream) {
               Arrays arrays("project_lines_gradients");
               const Tensor in = arrays.read("volume", volume, Values::Real);
               const PoseTensors at = poses(arrays, matrices, shifts);
               const Tensor slopes = arrays.read("cotangent", cotangent, Values::Real),
                            sum = arrays.write("gradient of the volume", of_volume, Values::Real),
                            turns = arrays.write("gradient of matrices", of_matrices, Values::Real),
                            moves = arrays.write("gradient of shifts", of_shifts, Values::Real);
               arrays.run([&]<Backend backend, class T>() {
                 Lines<backend, T>::gradients(arrays.queue(stream), in, at, slopes, sum, turns, moves);
               });
             });
}

} // namespace Bracewell::Python
