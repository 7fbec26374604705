// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/ptychography/detail/scan_store.hpp>
#include <bracewell/ptychography/inputs.hpp>
#include <bracewell/ptychography/options.hpp>

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
  const std::size_t ways = options.slice_fresnel_numbers.size(), shifts = options.slice_shifts.size();
  if (static_cast<int>(ways) != shape.slices - 1)
    check.refuse("options.slice_fresnel_numbers", "%d numbers, from each slice to the next, found %zu",
                 shape.slices - 1, ways);
  for (const double value : options.slice_fresnel_numbers)
    if (!is_finite(value) || value == 0)
      check.refuse("options.slice_fresnel_numbers", "finite numbers other than zero, found %.6g", value);
  if (shifts != 0 && shifts != ways)
    check.refuse("options.slice_shifts", "none or %zu pairs, from each slice to the next, found %zu", ways,
                 shifts);
  for (const auto& pair : options.slice_shifts)
    for (const double value : pair)
      check.within("options.slice_shifts", value, -1e6, 1e6, " pixels");
  if (const auto& fresnel = options.fresnel_number) {
    if (shape.probe != shape.detector)
      check.refuse("shape.probe", "as many pixels as the detector in the near field (%d), found %d",
                   shape.detector, shape.probe);
    if (!is_finite(double(*fresnel)) || *fresnel == 0)
      check.refuse("options.fresnel_number", "a finite number other than zero, found %.6g", double(*fresnel));
  }
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
inline void check_patterns(const Arguments& check, const PtychographyShape& shape, PixelWeights kind,
                           std::int64_t count, std::int64_t first, const ArrayShape& patterns,
                           const ArrayShape& weights) {
  const long long n = shape.detector, given = patterns.extents[0], from = first;
  check.shape("patterns", patterns, {given, n, n});
  if (first < 0 || given > count - first)
    check.refuse("first", "patterns within the %lld of the plan, found %lld to %lld",
                 static_cast<long long>(count), from, from + given - 1);
  check.require(bool(weights) == (kind != PixelWeights::None), "weights",
                kind == PixelWeights::None ? "none, as options.weights says"
                                           : "a View, as options.weights says",
                [&] { return weights ? weights.shape() : "none"; });
  const bool one_for_all = weights.rank == 2 && weights.extents[0] == n && weights.extents[1] == n;
  const bool each =
      weights.rank == 3 && weights.extents[0] == given && weights.extents[1] == n && weights.extents[2] == n;
  if (weights && !one_for_all && !each)
    check.refuse("weights", "[%lld, %lld] or [%lld, %lld, %lld], found %s", n, n, given, n, n,
                 weights.shape_text().characters);
}

/// A list of patterns, of which there are `count`, each at most once; all where it is not given. Values are checked
/// in host memory: those of a device would have to be waited for.
template <class Memory>
void check_subset(const Arguments& check, const Array<const int, Memory>& subset, std::int64_t count) {
  if (subset && (subset.rank != 1 || subset.size() > count))
    check.refuse("subset", "at most %lld patterns, found %s", static_cast<long long>(count),
                 subset.shape_text().characters);
  if constexpr (std::is_same_v<Memory, Kokkos::HostSpace>) {
    const int* const begin = subset.data;
    const int* const end = begin + (subset ? subset.size() : 0);
    bool ascending = true; // as most are: none can be there twice
    for (const int* i = begin; i != end; ++i) {
      if (*i < 0 || *i >= count)
        check.refuse("subset", "indices from 0 to %lld, found %d", static_cast<long long>(count - 1), *i);
      ascending = ascending && (i == begin || *(i - 1) < *i);
    }
    if (ascending)
      return;
    std::vector<bool> seen(static_cast<std::size_t>(count));
    for (const int* i = begin; i != end; ++i) {
      if (seen[static_cast<std::size_t>(*i)])
        check.refuse("subset", "each index at most once, found %d again", *i);
      seen[static_cast<std::size_t>(*i)] = true;
    }
  }
}

inline void check_one_number(const Arguments& check, const char* argument, const ArrayShape& array) {
  if (array && array.size() != 1)
    check.refuse(argument, "one number, found %s", array.shape_text().characters);
}

/// [m, m] where there is one mode, or [modes, m, m].
inline void check_probe(const Arguments& check, const char* argument, const ArrayShape& array,
                        const PtychographyShape& shape) {
  if (shape.modes == 1 && array.rank == 2)
    check.shape(argument, array, {shape.probe, shape.probe});
  else
    check.shape(argument, array, {shape.modes, shape.probe, shape.probe});
}

/// [rows, columns] where there is one slice, or [slices, rows, columns].
inline void check_object(const Arguments& check, const char* argument, const ArrayShape& array,
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
  if (!part.announced && (input || gradient))
    check.refuse(input ? name : gradient_name, "none, as the plan was made without %s, found %s", part.by,
                 (input ? input : gradient).shape_text().characters);
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
  if (patterns_set < used)
    check.refuse("patterns", "%lld that were set by set_patterns, found %lld", static_cast<long long>(used),
                 static_cast<long long>(patterns_set));
}

/// Arguments that exit_waves and exit_wave_gradients have. `waves`: outputs of the one, inputs of the other.
template <class Space>
void check_exit_waves(const Arguments& check, const ScanStore<Space>& scan, const ArrayShape& object,
                      const ArrayShape& probe, const ArrayShape& waves) {
  const Scan& s = scan.device();
  check.shape("object", object, {s.rows, s.columns});
  if (probe.rank != 3 || probe.extents[0] < 1 || probe.extents[0] > 1 << 20 || probe.extents[1] != s.probe ||
      probe.extents[2] != s.probe)
    check.refuse("probe", "[modes, %d, %d], found %s", s.probe, s.probe, probe.shape_text().characters);
  const std::int64_t n = waves.extents[2];
  if (waves.rank != 4 || waves.extents[0] != s.count || waves.extents[1] != probe.extents[0] ||
      waves.extents[3] != n || n < s.probe || n > 1 << 20)
    check.refuse("waves", "[%lld, %lld, n, n], n >= %d, found %s", static_cast<long long>(s.count),
                 static_cast<long long>(probe.extents[0]), s.probe, waves.shape_text().characters);
  check.require(!scan.subpixel(), "scan", "whole positions (PtychographyLoss shifts the probe)", "others");
}

} // namespace Bracewell::Impl
