// One golden case of the projection operators: every output, every strategy, one kernel and precision.
#pragma once

#include "case.hpp"

#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

#include <algorithm>

namespace Golden {

inline std::vector<Bracewell::Strategy> strategies() {
  using Bracewell::Strategy;
  std::vector<Strategy> all{Strategy::Automatic, Strategy::Atomic, Strategy::Owned};
  if (Bracewell::Impl::is_host<Space>)
    all.push_back(Strategy::Duplicated);
  return all;
}

template <class Kernel, class T, int M, int D>
Errors run_projectors(const Case& golden) {
  using namespace Bracewell;
  using Complex = Kokkos::complex<T>;
  using Volume = std::conditional_t<D == 2, Complex***, Complex****>;
  using RealVolume = std::conditional_t<D == 2, T***, T****>;
  using Images = std::conditional_t<M == 2, Complex****, Complex*****>;
  using RealImages = std::conditional_t<M == 2, T****, T*****>;
  const Space space;
  const Json& json = golden.json;
  const int width = json.at("reconstruction_box").back(), image_width = json.at("box").back();
  const auto volume = [&](auto view) { return HalfSpectrum{view, width}; };
  const auto image = [&](auto view) { return HalfSpectrum{view, image_width}; };

  const auto matrices = load<T****>(golden.input("matrices"));
  const auto shifts = load<T***>(golden.input("shifts"));
  const auto reconstruction = load<Volume>(golden.input("reconstruction"));
  const auto projections = load<Images>(golden.input("projections"));
  const auto weights = load<RealImages>(golden.input("weights"));
  const auto cotangent = load<Images>(golden.input("cot_projections"));
  const auto data_cotangent = load<Volume>(golden.input("cot_data"));
  const auto weight_cotangent = load<RealVolume>(golden.input("cot_weight"));
  const auto& volume_shape = golden.input("reconstruction").shape;
  const auto& image_shape = golden.input("projections").shape;
  const Kokkos::View<T*, Kokkos::LayoutRight, Space> scratch(
      "scratch",
      scratch_size(space, Strategy::Duplicated, static_cast<std::int64_t>(reconstruction.size()), true));

  ProjectionOptions options{.oversampling = json.at("oversampling")};
  if (!json.at("cutoff").is_null())
    options.radius = json.at("cutoff").get<double>();

  Errors errors;
  const auto check = [&](double& worst, const auto& result, const std::string& key) {
    space.fence();
    worst = std::max(worst, relative_error(result, golden.output(key)));
  };

  const auto projected = view<Images>(image_shape);
  Kokkos::deep_copy(flat(projected),
                    Complex(Kokkos::Experimental::quiet_NaN_v<T>)); // every element must be written
  project<Kernel>(space, volume(reconstruction), {.matrices = matrices, .shifts = shifts}, image(projected),
                  options);
  check(errors.values, projected, "project");
  const auto prepared = prepare<Kernel>(space, volume(reconstruction));
  Kokkos::deep_copy(flat(projected), Complex(Kokkos::Experimental::quiet_NaN_v<T>));
  project(space, prepared, {.matrices = matrices, .shifts = shifts}, image(projected), options);
  check(errors.values, projected, "project");

  for (const bool skip : {false, true}) {
    options.skip_redundant = skip;
    const std::string suffix = skip ? "_skip_redundant" : "";
    for (const Strategy strategy : strategies()) {
      options.strategy = strategy;
      const auto gradient = view<Volume>(volume_shape);
      const auto values = view<Images>(image_shape);
      const auto matrix_gradient = view<T****>(golden.input("matrices").shape);
      const auto shift_gradient = view<T***>(golden.input("shifts").shape);
      project_gradients<Kernel>(space, volume(reconstruction), {.matrices = matrices, .shifts = shifts},
                                image(cotangent),
                                {.projections = image(values),
                                 .reconstruction = volume(gradient),
                                 .matrices = matrix_gradient,
                                 .shifts = shift_gradient,
                                 .scratch = scratch},
                                options);
      check(errors.values, values, "project");
      check(errors.values, gradient, "grad_reconstruction" + suffix);
      check(errors.poses, matrix_gradient, "grad_matrices" + suffix);
      check(errors.poses, shift_gradient, "grad_shifts" + suffix);
    }
    const auto values = view<Images>(image_shape);
    const auto matrix_gradient = view<T****>(golden.input("matrices").shape);
    const auto shift_gradient = view<T***>(golden.input("shifts").shape);
    project_gradients(space, prepared, {.matrices = matrices, .shifts = shifts}, image(cotangent),
                      {.projections = image(values), .matrices = matrix_gradient, .shifts = shift_gradient},
                      options);
    check(errors.values, values, "project");
    check(errors.poses, matrix_gradient, "grad_matrices" + suffix);
    check(errors.poses, shift_gradient, "grad_shifts" + suffix);
  }
  options.skip_redundant = false;

  for (const bool absolute : {false, true}) {
    options.kernel_weights = absolute ? KernelWeights::Absolute : KernelWeights::Signed;
    const std::string suffix = absolute ? "_absolute" : "_signed";
    for (const Strategy strategy : strategies()) {
      options.strategy = strategy;
      const auto data = view<Volume>(volume_shape);
      const auto weight = view<RealVolume>(volume_shape);
      backproject<Kernel>(
          space, image(projections), {.matrices = matrices, .shifts = shifts},
          {.data = volume(data), .weight = volume(weight), .weights = image(weights), .scratch = scratch},
          options);
      check(errors.values, data, "data");
      check(errors.values, weight, "weight" + suffix);
    }
    const auto gradient = view<Images>(image_shape);
    const auto weights_gradient = view<RealImages>(image_shape);
    const auto gradient_alone = view<Images>(image_shape);
    const auto weights_gradient_alone = view<RealImages>(image_shape);
    const auto matrix_gradient = view<T****>(golden.input("matrices").shape);
    const auto shift_gradient = view<T***>(golden.input("shifts").shape);
    backproject_gradients<Kernel>(space, image(projections), {.matrices = matrices, .shifts = shifts},
                                  {.data = volume(data_cotangent),
                                   .weight = volume(weight_cotangent),
                                   .weights = image(weights),
                                   .projections = image(gradient),
                                   .projection_weights = image(weights_gradient),
                                   .matrices = matrix_gradient,
                                   .shifts = shift_gradient},
                                  options);
    backproject_gradients<Kernel>(space, image(projections), {.matrices = matrices, .shifts = shifts},
                                  {.data = volume(data_cotangent),
                                   .weight = volume(weight_cotangent),
                                   .weights = image(weights),
                                   .projections = image(gradient_alone),
                                   .projection_weights = image(weights_gradient_alone)},
                                  options);
    const auto gradient_prepared = view<Images>(image_shape);
    backproject_gradients(space, image(projections), {.matrices = matrices, .shifts = shifts},
                          prepare<Kernel>(space, volume(data_cotangent), ReadBy::BackprojectGradients),
                          {.projections = image(gradient_prepared)}, options);
    check(errors.values, gradient_prepared, "bp_grad_projections");
    check(errors.values, gradient, "bp_grad_projections");
    check(errors.values, gradient_alone, "bp_grad_projections");
    check(errors.values, weights_gradient, "bp_grad_weights" + suffix);
    check(errors.values, weights_gradient_alone, "bp_grad_weights" + suffix);
    check(errors.poses, matrix_gradient, "bp_grad_matrices" + suffix);
    check(errors.poses, shift_gradient, "bp_grad_shifts");
  }
  return errors;
}

template <class Kernel, class T>
Errors run_projectors(const Case& golden) {
  const std::size_t m = golden.json.at("box").size(), d = golden.json.at("reconstruction_box").size();
  if (m == 2 && d == 2)
    return run_projectors<Kernel, T, 2, 2>(golden);
  if (m == 2 && d == 3)
    return run_projectors<Kernel, T, 2, 3>(golden);
  return run_projectors<Kernel, T, 3, 3>(golden);
}

template <class Kernel>
Errors run_projectors(const Case& golden, bool single_precision) {
  return single_precision ? run_projectors<Kernel, float>(golden) : run_projectors<Kernel, double>(golden);
}

} // namespace Golden
