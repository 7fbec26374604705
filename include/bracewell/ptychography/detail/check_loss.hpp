// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/ptychography/detail/scan_store.hpp>
#include <bracewell/ptychography/inputs.hpp>
#include <bracewell/ptychography/options.hpp>

#include <cmath>
#include <type_traits>
#include <vector>

namespace Bracewell::Impl {

inline void check_loss_plan(const Arguments& check, const PtychographyShape& shape,
                            const PtychographyOptions& options) {
  check.within("shape.detector", shape.detector, 2, 8192);
  check.within("shape.probe", shape.probe, 1, shape.detector);
  check.within("shape.modes", shape.modes, 1, 64);
  check.within("shape.slices", shape.slices, 1, 1024);
  check.within("shape.relaxation", shape.relaxation, 0, 1024);
  check.require(
      static_cast<int>(options.slice_fresnel_numbers.size()) == shape.slices - 1,
      "options.slice_fresnel_numbers",
      [&] { return number(shape.slices - 1) + " numbers, from each slice to the next"; },
      [&] { return number(options.slice_fresnel_numbers.size()); });
  for (const double value : options.slice_fresnel_numbers)
    check.require(is_finite(double(value)) && value != 0, "options.slice_fresnel_numbers",
                  "finite numbers other than zero", [&] { return number(value); });
  check.require(
      options.slice_shifts.empty() || options.slice_shifts.size() == options.slice_fresnel_numbers.size(),
      "options.slice_shifts",
      [&] { return "none or " + number(shape.slices - 1) + " pairs, from each slice to the next"; },
      [&] { return number(options.slice_shifts.size()); });
  for (const auto& pair : options.slice_shifts)
    for (const double value : pair)
      check.within("options.slice_shifts", value, -1e6, 1e6, " pixels");
  check.require(
      !options.fresnel_number || shape.probe == shape.detector, "shape.probe",
      [&] { return "as many pixels as the detector in the near field (" + number(shape.detector) + ")"; },
      [&] { return number(shape.probe); });
  if (options.fresnel_number)
    check.require(is_finite(double(*options.fresnel_number)) && *options.fresnel_number != 0,
                  "options.fresnel_number", "a finite number other than zero",
                  [&] { return number(*options.fresnel_number); });
  check.require(!options.refine_slice_shifts || shape.slices > 1, "options.refine_slice_shifts",
                "false where the object has one slice", "true");
  check.within("options.counts", options.counts, 0.0, 1e30);
  check.positive("options.background", options.background);
  check.require(
      !options.reduced_grid ||
          (options.loss == PatternLoss::LeastSquares && options.scale == PatternScale::PerPattern &&
           options.weights == PixelWeights::None && !options.fresnel_number && !options.detector_background),
      "options.reduced_grid",
      "least squares on patterns scaled one by one, far field, no weights, no background", "other options");
}

/// Patterns [given, rows, columns] for pattern `first` and those that follow it, of `count`.
template <class T, class Memory>
void check_patterns(const Arguments& check, const PtychographyShape& shape, PixelWeights kind,
                    std::int64_t count, std::int64_t first, const ArrayShape& patterns,
                    const Array<const T, Memory>& weights) {
  const std::int64_t n = shape.detector, given = patterns.extents[0];
  const auto list = [](std::initializer_list<std::int64_t> axes) {
    std::string text;
    for (const std::int64_t size : axes)
      text += (text.empty() ? "[" : ", ") + number(size);
    return text + "]";
  };
  check.require(
      patterns.extents[1] == n && patterns.extents[2] == n, "patterns",
      [&] {
        return list({given, n, n});
      },
      [&] { return patterns.shape(); });
  check.require(
      first >= 0 && given <= count - first, "first",
      [&] { return "patterns within the " + number(count) + " of the plan"; },
      [&] { return number(first) + " to " + number(first + given - 1); });
  check.require(bool(weights) == (kind != PixelWeights::None), "weights",
                kind == PixelWeights::None ? "none, as options.weights says"
                                           : "a View, as options.weights says",
                [&] { return weights ? weights.shape() : "none"; });
  const bool one_for_all = weights.rank == 2 && weights.extents[0] == n && weights.extents[1] == n;
  const bool each =
      weights.rank == 3 && weights.extents[0] == given && weights.extents[1] == n && weights.extents[2] == n;
  check.require(
      !weights || one_for_all || each, "weights",
      [&] {
        return list({n, n}) + " or " + list({given, n, n});
      },
      [&] { return weights.shape(); });
}

/// A list of patterns, of which there are `count`, each at most once; all where it is not given. Values are checked
/// in host memory: those of a device would have to be waited for.
template <class Memory>
void check_subset(const Arguments& check, const Array<const int, Memory>& subset, std::int64_t count) {
  check.require(
      !subset || (subset.rank == 1 && subset.size() <= count), "subset",
      [&] { return "at most " + number(count) + " patterns"; }, [&] { return subset.shape(); });
  if constexpr (std::is_same_v<Memory, Kokkos::HostSpace>) {
    const int* const begin = subset.data;
    const int* const end = begin + (subset ? subset.size() : 0);
    bool ascending = true; // as most are: none can be there twice
    for (const int* i = begin; i != end; ++i) {
      check.require(
          *i >= 0 && *i < count, "subset", [&] { return "indices from 0 to " + number(count - 1); },
          [&] { return number(*i); });
      ascending = ascending && (i == begin || *(i - 1) < *i);
    }
    if (ascending)
      return;
    std::vector<bool> seen(static_cast<std::size_t>(count));
    for (const int* i = begin; i != end; ++i) {
      check.require(!seen[static_cast<std::size_t>(*i)], "subset", "each index at most once",
                    [&] { return number(*i) + " again"; });
      seen[static_cast<std::size_t>(*i)] = true;
    }
  }
}

template <class Value, class Memory>
void check_one_number(const Arguments& check, const char* argument, const Array<Value, Memory>& array) {
  check.require(!array || array.size() == 1, argument, "one number", [&] { return array.shape(); });
}

/// [m, m] where there is one mode, or [modes, m, m].
template <class Value, class Memory>
void check_probe(const Arguments& check, const char* argument, const Array<Value, Memory>& array,
                 const PtychographyShape& shape) {
  if (shape.modes == 1 && array.rank == 2)
    check.shape(argument, array, {shape.probe, shape.probe});
  else
    check.shape(argument, array, {shape.modes, shape.probe, shape.probe});
}

/// [rows, columns] where there is one slice, or [slices, rows, columns].
template <class Value, class Memory>
void check_object(const Arguments& check, const char* argument, const Array<Value, Memory>& array,
                  const PtychographyShape& shape) {
  if (shape.slices == 1 && array.rank == 2)
    check.shape(argument, array, {shape.object[0], shape.object[1]});
  else
    check.shape(argument, array, {shape.slices, shape.object[0], shape.object[1]});
}

/// An input that the plan was told of, and its gradient.
struct ModelPart {
  bool announced;
  const char* by;        ///< what announces it
  bool optional = false; ///< the plan has it, too
};

inline void check_part(const Arguments& check, const ModelPart& part, const char* name,
                       const ArrayShape& input, const char* gradient_name, const ArrayShape& gradient,
                       std::initializer_list<std::int64_t> extents) {
  const auto none = [&] { return std::string("none, as the plan was made without ") + part.by; };
  check.require(part.announced || !input, name, none, [&] { return input.shape(); });
  check.require(part.announced || !gradient, gradient_name, none, [&] { return gradient.shape(); });
  if (part.announced && (input || !part.optional))
    check.shape(name, input, extents);
  if (gradient)
    check.shape(gradient_name, gradient, extents);
}

template <class T, class Memory>
void check_evaluate(const Arguments& check, const PtychographyShape& shape,
                    const PtychographyOptions& options, std::int64_t count, std::int64_t patterns_set,
                    const PtychographyInputs<T, Memory>& inputs,
                    const PtychographyOutputs<T, Memory>& outputs, const Array<const int, Memory>& subset) {
  check_object(check, "object", inputs.object, shape);
  check_probe(check, "probe", inputs.probe, shape);
  check_subset(check, subset, count);
  check.at_least<std::int64_t>("inputs.mean_of", inputs.mean_of, 0);
  check_one_number(check, "outputs.loss", outputs.loss);
  if (outputs.pattern_losses)
    check.shape("outputs.pattern_losses", outputs.pattern_losses, {subset ? subset.size() : count});
  if (outputs.object_gradient)
    check_object(check, "outputs.object_gradient", outputs.object_gradient, shape);
  if (outputs.probe_gradient)
    check_probe(check, "outputs.probe_gradient", outputs.probe_gradient, shape);
  check_part(check, {options.refine_positions, "options.refine_positions", true}, "positions",
             inputs.positions, "outputs.position_gradient", outputs.position_gradient, {count, 2});
  check_part(check, {options.pattern_factors, "options.pattern_factors"}, "factors", inputs.factors,
             "outputs.factor_gradient", outputs.factor_gradient, {count});
  check_part(check, {options.detector_background, "options.detector_background"}, "detector_background",
             inputs.detector_background, "outputs.background_gradient", outputs.background_gradient,
             {shape.detector, shape.detector});
  check_part(check, {shape.relaxation > 0, "shape.relaxation"}, "coefficients", inputs.coefficients,
             "outputs.coefficient_gradient", outputs.coefficient_gradient, {count, shape.relaxation});
  check_part(check, {shape.relaxation > 0, "shape.relaxation"}, "relaxation", inputs.relaxation,
             "outputs.relaxation_gradient", outputs.relaxation_gradient,
             {shape.relaxation, shape.probe, shape.probe});
  check_part(check, {options.refine_slice_shifts, "options.refine_slice_shifts", true}, "slice_shifts",
             inputs.slice_shifts, "outputs.slice_shift_gradient", outputs.slice_shift_gradient,
             {shape.slices - 1, 2});
  check.disjoint({{"outputs.loss", outputs.loss},
                  {"outputs.pattern_losses", outputs.pattern_losses},
                  {"outputs.object_gradient", outputs.object_gradient},
                  {"outputs.probe_gradient", outputs.probe_gradient},
                  {"outputs.position_gradient", outputs.position_gradient},
                  {"outputs.factor_gradient", outputs.factor_gradient},
                  {"outputs.background_gradient", outputs.background_gradient},
                  {"outputs.coefficient_gradient", outputs.coefficient_gradient},
                  {"outputs.relaxation_gradient", outputs.relaxation_gradient},
                  {"outputs.slice_shift_gradient", outputs.slice_shift_gradient}},
                 {{"object", inputs.object},
                  {"probe", inputs.probe},
                  {"positions", inputs.positions},
                  {"factors", inputs.factors},
                  {"detector_background", inputs.detector_background},
                  {"coefficients", inputs.coefficients},
                  {"relaxation", inputs.relaxation},
                  {"slice_shifts", inputs.slice_shifts},
                  {"subset", subset}});
  const std::int64_t used = subset ? subset.size() : count;
  check.require(
      patterns_set >= used, "patterns", [&] { return number(used) + " that were set by set_patterns"; },
      [&] { return number(patterns_set); });
}

/// Arguments that exit_waves and exit_wave_gradients have. `waves`: outputs of the one, inputs of the other.
template <class Space, class Complex, class WaveComplex, class Memory>
void check_exit_waves(const Arguments& check, const ScanStore<Space>& scan,
                      const Array<const Complex, Memory>& object, const Array<const Complex, Memory>& probe,
                      const Array<WaveComplex, Memory>& waves) {
  const Scan& s = scan.device();
  check.shape("object", object, {s.rows, s.columns});
  check.require(
      probe.rank == 3 && probe.extents[0] >= 1 && probe.extents[0] <= 1 << 20 &&
          probe.extents[1] == s.probe && probe.extents[2] == s.probe,
      "probe", [&] { return "[modes, " + number(s.probe) + ", " + number(s.probe) + "]"; },
      [&] { return probe.shape(); });
  check.require(
      waves.rank == 4 && waves.extents[0] == s.count && waves.extents[1] == probe.extents[0] &&
          waves.extents[2] == waves.extents[3] && waves.extents[2] >= s.probe && waves.extents[2] <= 1 << 20,
      "waves",
      [&] {
        return "[" + number(s.count) + ", " + number(probe.extents[0]) + ", n, n], n >= " + number(s.probe);
      },
      [&] { return waves.shape(); });
  check.require(!scan.subpixel(), "scan", "whole positions (PtychographyLoss shifts the probe)", "others");
}

} // namespace Bracewell::Impl
