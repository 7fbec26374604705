// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/modelled_patterns.hpp"

#include "bracewell-ptychography/host_copies.hpp"
#include "bracewell-ptychography/pattern_groups.hpp"
#include "common/picture.hpp"

#include <bracewell/ptychography/propagator.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace Bracewell::Examples {
namespace {

using Waves = std::vector<std::complex<float>>; ///< [modes, side, side]

/// Waves of a side that go through an operator of the device.
class Transform {
public:
  Transform(const Space& space, int side, int count, std::optional<double> fresnel_number = {})
      : space_(space), side_(side), waves_(allocate<decltype(waves_)>("waves", count, side, side)),
        propagator_(space, side, count, fresnel_number) {}

  void propagate(Waves& waves) const {
    upload(space_, waves_, waves);
    propagator_.propagate(space_, waves_);
    waves = download(space_, waves_);
  }
  /// The inverse of propagate() in the far field.
  void inverse(Waves& waves) const {
    upload(space_, waves_, waves);
    propagator_.adjoint(space_, waves_);
    waves = download(space_, waves_);
    for (auto& value : waves)
      value /= static_cast<float>(side_ * side_);
  }
  /// Moves far-field waves that were propagated by (row, column) towards higher indices once they come back.
  void turn(Waves& waves, const std::array<double, 2>& by) const {
    const auto frequency = [this](std::size_t k) {
      return double(2 * k < std::size_t(side_) ? std::int64_t(k) : std::int64_t(k) - side_);
    };
    const auto n = static_cast<std::size_t>(side_);
    for (std::size_t i = 0; i < waves.size(); ++i)
      waves[i] *= std::complex<float>(
          std::polar(1.0, -2 * std::numbers::pi * (frequency(i / n % n) * by[0] + frequency(i % n) * by[1]) /
                              double(n)));
  }

private:
  const Space& space_;
  int side_;
  DeviceView<Kokkos::complex<float>***> waves_;
  Propagator<Space, float> propagator_;
};

} // namespace

std::vector<ComparedPattern> compare_with_model(const Space& space, const Job& job, const SolverViews& found,
                                                std::span<const std::int64_t> which) {
  const PtychographyShape& shape = job.shape();
  const PtychographyOptions options = job.loss_options();
  const auto m = static_cast<std::size_t>(shape.probe), n = static_cast<std::size_t>(shape.detector),
             rows = static_cast<std::size_t>(shape.object[0]),
             columns = static_cast<std::size_t>(shape.object[1]);
  const auto amplitude = download(space, found.amplitude), phase = download(space, found.phase),
             moves = download(space, found.displacements), factors = download(space, found.factors),
             roots = download(space, found.background_roots);
  const auto probe = download(space, found.probe), relaxation = download(space, found.relaxation),
             coefficients = download(space, found.coefficients);
  const auto modes = static_cast<std::size_t>(shape.modes), more = static_cast<std::size_t>(shape.relaxation);
  const Transform window(space, shape.probe, shape.modes), detector(space, shape.detector, shape.modes);
  std::vector<ComparedPattern> result;
  for (const std::int64_t pattern : which) {
    const auto j = static_cast<std::size_t>(pattern);
    std::array<std::size_t, 2> corner{};
    std::array<double, 2> fraction{};
    for (const std::size_t axis : {0, 1}) {
      const double place =
          job.positions_view()(j, axis) + (moves.empty() ? 0.0 : double(moves[2 * j + axis]));
      const double most = double((axis == 0 ? rows : columns) - m);
      corner[axis] = static_cast<std::size_t>(std::clamp(std::floor(place + 0.5), 0.0, most));
      fraction[axis] = place - double(corner[axis]);
    }
    Waves waves(probe.begin(), probe.end());
    for (std::size_t c = 0; c < more; ++c)
      for (std::size_t i = 0; i < m * m; ++i)
        waves[i] += coefficients[j * more + c] * relaxation[c * m * m + i];
    if (fraction != std::array<double, 2>{}) {
      window.propagate(waves);
      window.turn(waves, fraction);
      window.inverse(waves);
    }
    for (std::size_t slice = 0; slice < std::size_t(shape.slices); ++slice) {
      for (std::size_t i = 0; i < waves.size(); ++i) {
        const std::size_t at = (slice * rows + corner[0] + i / m % m) * columns + corner[1] + i % m;
        waves[i] *= std::polar(amplitude[at], phase[at]);
      }
      if (slice < options.slice_fresnel_numbers.size())
        Transform(space, shape.probe, shape.modes, options.slice_fresnel_numbers[slice]).propagate(waves);
    }
    Waves far(modes * n * n);
    for (std::size_t i = 0; i < waves.size(); ++i)
      far[(i / (m * m) * n + i / m % m) * n + i % m] = waves[i];
    if (options.fresnel_number) {
      if (fraction != std::array<double, 2>{}) { // beam and detector stand still
        detector.propagate(far);
        detector.turn(far, {-fraction[0], -fraction[1]});
        detector.inverse(far);
      }
      Transform(space, shape.detector, shape.modes, options.fresnel_number).propagate(far);
    } else {
      detector.propagate(far);
    }
    ComparedPattern& compared = result.emplace_back(
        ComparedPattern{.number = job.tile().patterns[j], .measured = {}, .modelled = {}});
    compared.modelled.resize(n * n);
    for (std::size_t i = 0; i < far.size(); ++i)
      compared.modelled[i % (n * n)] += (factors.empty() ? 1 : factors[j]) * std::norm(far[i]);
    for (std::size_t i = 0; i < roots.size(); ++i)
      compared.modelled[i] += roots[i] * roots[i];
    std::vector<double> sums;
    const std::vector<std::int64_t> one{job.tile().patterns[j]};
    for_each_group(
        space, job.measurement(), one,
        [&](std::int64_t, const PatternGroup& group) { compared.measured = download(space, group); }, sums);
    const auto& weights = job.measurement().weights();
    double measured = 0, modelled = 0;
    for (std::size_t i = 0; i < n * n; ++i)
      if (weights.empty() || weights[i] > 0)
        measured += compared.measured[i], modelled += compared.modelled[i];
    for (std::size_t i = 0; i < n * n; ++i) {
      if (options.scale == PatternScale::PerPattern && modelled > 0)
        compared.modelled[i] *= static_cast<float>(measured / modelled);
      if (!weights.empty() && weights[i] == 0)
        compared.measured[i] = std::numeric_limits<float>::quiet_NaN();
    }
    if (!options.fresnel_number)
      for (auto* const values : {&compared.measured, &compared.modelled}) {
        const std::vector<float> given = *values;
        for (std::size_t i = 0; i < n * n; ++i)
          (*values)[(i / n + n / 2) % n * n + (i + n / 2) % n] = given[i];
      }
  }
  return result;
}

void write_compared_patterns(const std::filesystem::path& path,
                             const std::vector<ComparedPattern>& patterns) {
  std::vector<Picture> lines;
  for (const ComparedPattern& pattern : patterns) {
    const int n = static_cast<int>(std::lround(std::sqrt(double(pattern.measured.size()))));
    const auto logarithms = [](std::vector<float> values) {
      for (float& value : values)
        value = std::log10(1 + std::max(value, 0.0f));
      return values;
    };
    // One range for both: what is brighter is brighter.
    const std::vector<float> measured = logarithms(pattern.measured), modelled = logarithms(pattern.modelled);
    const GreyRange range = percentile_range(measured, 0.0, 0.9999);
    std::vector<Picture> both;
    for (const auto& [values, what] : {std::pair(&measured, " measured"), std::pair(&modelled, " modelled")})
      both.push_back(
          grey_panel({.caption = "pattern " + std::to_string(pattern.number) + what + ", log10(1 + counts)",
                      .values = *values,
                      .width = n,
                      .height = n,
                      .range = range}));
    lines.push_back(side_by_side(both));
  }
  write_picture(path, stacked(lines));
}

} // namespace Bracewell::Examples
