// The projection operators on host arrays, with kernel and dimensions chosen at run time: compiled once for
// all tests of this folder.
#pragma once

#include "tensor.hpp"

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/options.hpp>

#include <stdexcept>
#include <string>
#include <type_traits>

namespace Test {

using Bracewell::ProjectionOptions;
using Bracewell::Strategy;

template <class T>
struct HostPoses {
  Tensor<T> matrices, shifts, filters = {};
};

/// Arguments of the same names as the library's. What is empty is not given; what is added to starts from its
/// value here.
template <class T>
struct Operators {
  using Spectra = Tensor<complex<T>>;
  using Reals = Tensor<T>;
  struct ProjectGradients {
    Spectra projections, reconstruction;
    Reals matrices, shifts;
  };
  struct BackprojectGradients {
    Spectra data;
    Reals weight, weights; // inputs, as data is
    Spectra projections;
    Reals projection_weights, matrices, shifts;
  };

  virtual ~Operators() = default;
  virtual void project(const Spectra& reconstruction, const HostPoses<T>& poses, Spectra& projections,
                       const ProjectionOptions& options) const = 0;
  virtual void project_gradients(const Spectra& reconstruction, const HostPoses<T>& poses,
                                 const Spectra& cotangent, ProjectGradients& gradients,
                                 const ProjectionOptions& options) const = 0;
  virtual void backproject(const Spectra& projections, const HostPoses<T>& poses, Spectra& data,
                           Reals& weight, const Reals& weights, const ProjectionOptions& options) const = 0;
  virtual void backproject_gradients(const Spectra& projections, const HostPoses<T>& poses,
                                     BackprojectGradients& gradients,
                                     const ProjectionOptions& options) const = 0;
};

/// Defined in one translation unit per kernel, precision and projection dimension M, for reconstructions of
/// dimension d.
template <class Kernel, class T, int M>
const Operators<T>& operators_of(int d);

/// Kernels by name; float has Catmull-Rom with two-dimensional projections only.
template <class T>
const Operators<T>& operators(const std::string& kernel, int m, int d) {
  using namespace Bracewell;
  if (kernel == CatmullRom::name && m == 2)
    return operators_of<CatmullRom, T, 2>(d);
  if constexpr (std::is_same_v<T, double>) {
    if (kernel == CatmullRom::name)
      return operators_of<CatmullRom, T, 3>(d);
    if (kernel == Linear::name)
      return m == 2 ? operators_of<Linear, T, 2>(d) : operators_of<Linear, T, 3>(d);
    if (kernel == CubicBSpline::name)
      return m == 2 ? operators_of<CubicBSpline, T, 2>(d) : operators_of<CubicBSpline, T, 3>(d);
  }
  throw std::runtime_error("the tests have no kernel " + kernel + " in this precision");
}

inline const std::vector<std::string>& kernels() {
  static const std::vector<std::string> names{Bracewell::Linear::name, Bracewell::CatmullRom::name,
                                              Bracewell::CubicBSpline::name};
  return names;
}

/// Strategies of the default execution space.
const std::vector<Strategy>& strategies();

} // namespace Test
