// One golden case of ptychography in one precision: the operators one by one, every path and strategy of the
// plan, and the curve of twenty steps of Adam.
#pragma once

#include "../../deep_copy.hpp"
#include "../../ptychography/plans.hpp"
#include "case.hpp"

#include <bracewell/optimize/adam.hpp>
#include <bracewell/ptychography/compare.hpp>
#include <bracewell/ptychography/exit_wave.hpp>
#include <bracewell/ptychography/object.hpp>
#include <bracewell/ptychography/probe.hpp>
#include <bracewell/ptychography/propagator.hpp>

#include <algorithm>

namespace Golden::Ptychography {

using namespace Bracewell;

template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Space>;

template <class T>
struct Model {
  using Complex = Kokkos::complex<T>;

  const File& file;
  const Json& meta = file.index.at("meta");
  const int m = meta.at("probe"), n = meta.at("detector"), count = meta.at("n_positions");
  const double counts = meta.at("counts");
  const std::array<std::int64_t, 2> shape{meta.at("object_shape")[0], meta.at("object_shape")[1]};
  const Space space = {};
  const AberratedProbe<Space, T> lens{space,
                                      m,
                                      n,
                                      {.wavelength = meta.at("wavelength"),
                                       .pixel_size = meta.at("pixel_size"),
                                       .convergence_angle = meta.at("convergence_angle"),
                                       .cs_to_length = meta.at("cs_to_length")}};
  const View<int**> positions = load<int**>(file["positions"]);
  const View<T***> patterns = load<T***>(file["I_meas"]);

  struct State {
    View<T**> amplitude, phase;
    View<T*> parameters;
    View<Complex**> object, probe;
  };

  State start() const {
    State state{load<T**>(file["init_amp"]), load<T**>(file["init_phase"]),
                load<T*>(file["init_probe_params"]), View<Complex**>("object", shape[0], shape[1]),
                View<Complex**>("probe", m, m)};
    form(state);
    return state;
  }

  void form(const State& state) const {
    complex_object(space, state.amplitude, state.phase, state.object);
    lens.evaluate(space, state.parameters, state.probe);
  }

  struct Gradients {
    View<double> loss{"loss"};
    View<Complex**> object, probe;
    View<T**> amplitude, phase;
    View<T*> parameters{"parameters", probe_parameter_count};

    explicit Gradients(const Model& model)
        : object("object gradient", model.shape[0], model.shape[1]),
          probe("probe gradient", model.m, model.m),
          amplitude("amplitude gradient", model.shape[0], model.shape[1]),
          phase("phase gradient", model.shape[0], model.shape[1]) {}
  };

  /// From the gradients with respect to object and probe to those of all parameters.
  void chain(const State& state, const Gradients& gradients) const {
    complex_object_gradients(space, state.amplitude, state.phase, gradients.object,
                             {.amplitude = gradients.amplitude, .phase = gradients.phase});
    lens.gradients(space, state.parameters, gradients.probe, gradients.parameters);
    space.fence();
  }

  /// The first patterns of an array.
  template <class Source>
  static auto leading(const Source& view, std::size_t patterns) {
    View<typename Source::data_type> part("part", patterns, view.extent(1), view.extent(2), view.extent(3));
    Test::deep_copy(part, Kokkos::subview(view, std::pair<std::size_t, std::size_t>(0, patterns), Kokkos::ALL,
                                          Kokkos::ALL, Kokkos::ALL));
    return part;
  }

  void check_gradients(Errors& errors, const Gradients& gradients) const {
    const auto host = Test::on_host(gradients.loss);
    errors.loss = std::max(errors.loss, std::abs(host() / file["loss_f64"].values[0] - 1));
    errors.gradients = std::max(errors.gradients, relative_error(gradients.amplitude, file["grad_amp_f64"]));
    errors.gradients = std::max(errors.gradients, relative_error(gradients.phase, file["grad_phase_f64"]));
    errors.gradients = std::max(errors.gradients, relative_error(gradients.probe, file["grad_probe_f64"]));
    const auto parameters = Test::on_host(gradients.parameters);
    for (int p = 0; p < probe_parameter_count; ++p)
      errors.parameters =
          std::max(errors.parameters, std::abs(parameters(p) / file["grad_probe_params_f64"].values[p] - 1));
  }

  /// Every operator by itself.
  Errors operators() const {
    Errors errors;
    const State state = start();
    const auto check = [&](double& worst, const auto& result, const char* name) {
      worst = std::max(worst, relative_error(result, file[name]));
    };
    check(errors.waves, state.probe, "probe_f64");
    const ScanPositions<Space> scan(space, positions, shape, m);
    const View<Complex***> probe(state.probe.data(), 1, m, m);
    const View<Complex****> waves("waves", count, 1, m, m), padded("padded", count, 1, n, n);
    exit_waves(space, scan, state.object, probe, waves);
    check(errors.waves, waves, "psi_f64");
    exit_waves(space, scan, state.object, probe, padded);
    const Propagator<Space, T> propagator(space, n, count);
    propagator.propagate(space, padded);

    // Targets scaled on the host, the definition once more.
    const View<T***> targets("targets", count, n, n);
    const View<T****> intensity("intensity", file["I_pred_f64"].shape[0], 1, n, n);
    const auto measured = Test::on_host(patterns);
    const auto scaled = Kokkos::create_mirror_view(targets);
    const auto field = Test::on_host(padded);
    const auto squared = Kokkos::create_mirror_view(intensity);
    for (std::size_t i = 0; i < squared.size(); ++i)
      squared.data()[i] =
          field.data()[i].real() * field.data()[i].real() + field.data()[i].imag() * field.data()[i].imag();
    Test::deep_copy(intensity, squared);
    check(errors.waves, intensity, "I_pred_f64");
    for (int j = 0; j < count; ++j) {
      double sum = 0;
      for (int k = 0; k < n * n; ++k)
        sum += measured(j, k / n, k % n);
      for (int k = 0; k < n * n; ++k)
        scaled(j, k / n, k % n) = static_cast<T>(measured(j, k / n, k % n) * counts * n * n / sum);
    }
    Test::deep_copy(targets, scaled);
    const View<double*> losses("losses", count);
    compare_patterns(space, padded, targets, losses, {.counts = counts});
    propagator.adjoint(space, padded);
    exit_waves_corner(padded, waves);
    check(errors.gradients, leading(waves, file["grad_psi_f64"].shape[0]), "grad_psi_f64");
    const Gradients gradients(*this);
    const View<Complex***> probe_gradient(gradients.probe.data(), 1, m, m);
    exit_wave_gradients(space, scan, state.object, probe, padded,
                        {.object = gradients.object, .probe = probe_gradient});
    double total = 0;
    const auto each = Test::on_host(losses);
    for (int j = 0; j < count; ++j)
      total += each(j);
    Test::deep_copy(gradients.loss, total);
    chain(state, gradients);
    check_gradients(errors, gradients);
    return errors;
  }

  /// The corner of m x m of every wave.
  void exit_waves_corner(const View<Complex****>& padded, const View<Complex****>& waves) const {
    const auto corner = std::pair(0, m);
    Test::deep_copy(waves, Kokkos::subview(padded, Kokkos::ALL, Kokkos::ALL, corner, corner));
  }

  template <class Storage>
  Errors plan(PatternPath path) const {
    Errors errors;
    PtychographyLoss<Space, T, Test::TestStorage<Storage>> model(space, {shape, m, n}, positions,
                                                                 {.counts = counts, .path = path});
    model.set_patterns(space, 0, patterns);
    const State state = start();
    const Gradients gradients(*this);
    Adam<Space, T> adam(space, {state.amplitude.size(), state.phase.size(), state.parameters.size()});
    const auto& curve = file["loss_curve_f64"].values;
    const double object_rate = meta.at("adam").at("lr_object"), probe_rate = meta.at("adam").at("lr_probe");
    for (std::size_t step = 0; step < curve.size(); ++step) {
      model.evaluate(
          space, state.object, state.probe,
          {.loss = gradients.loss, .object_gradient = gradients.object, .probe_gradient = gradients.probe});
      chain(state, gradients);
      if (step == 0)
        check_gradients(errors, gradients);
      const auto host = Test::on_host(gradients.loss);
      errors.curve = std::max(errors.curve, std::abs(host() / curve[step] - 1));
      if (step + 1 == curve.size())
        break;
      adam.step(space, {{state.amplitude, gradients.amplitude, object_rate},
                        {state.phase, gradients.phase, object_rate},
                        {state.parameters, gradients.parameters, probe_rate}});
      form(state);
    }
    errors.final_state = std::max(errors.final_state, relative_error(state.amplitude, file["final_amp_f64"]));
    errors.final_state = std::max(errors.final_state, relative_error(state.phase, file["final_phase_f64"]));
    errors.final_state =
        std::max(errors.final_state, relative_error(state.parameters, file["final_probe_params_f64"]));
    return errors;
  }
};

template <class T>
std::vector<Result> run(const File& file) {
  const Model<T> model{file};
  std::vector<Result> results;
  const auto add = [&](const std::string& name, const Errors& errors, bool in_half) {
    results.push_back(Result{name, errors, in_half});
  };
  add("operators", model.operators(), false);
  const PatternPath paths[] = {PatternPath::General, PatternPath::Fused};
  for (const PatternPath path : paths) {
    const std::string name = path == PatternPath::Fused ? "fused" : "general";
    add(name, model.template plan<T>(path), false);
    if constexpr (std::is_same_v<T, float>)
      add(name + ", half storage", model.template plan<Half>(path), true);
  }
  return results;
}

} // namespace Golden::Ptychography
