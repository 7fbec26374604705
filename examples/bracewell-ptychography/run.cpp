// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/run.hpp"

#include "bracewell-ptychography/alignment.hpp"
#include "bracewell-ptychography/host_copies.hpp"
#include "bracewell-ptychography/pictures.hpp"
#include "common/input_error.hpp"
#include "common/output_family.hpp"
#include "common/progress.hpp"
#include "cryoem/warnings.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>

#include <unistd.h>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Probe = std::vector<std::complex<float>>; // [modes, m, m]

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// Sums over the patterns, for starting values and for the record.
struct Totals {
  double counts = 0;                ///< of all good pixels
  std::vector<double> pattern = {}; ///< [n, n], summed over the scan
};

template <class Storage>
Totals load(const Space& space, const Measurement& measurement,
            PtychographyLoss<Space, float, Storage>& loss) {
  const int n = measurement.detector();
  const std::size_t pixels = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  Totals totals;
  totals.pattern.assign(pixels, 0);
  Owned<float**> weights;
  if (!measurement.weights().empty()) {
    weights = allocate<Owned<float**>>("weights", n, n);
    upload(space, weights, measurement.weights());
  }
  const auto group = std::clamp<std::int64_t>(
      (std::int64_t(64) << 20) / static_cast<std::int64_t>(sizeof(float) * pixels), 1, measurement.count());
  std::vector<float> patterns(static_cast<std::size_t>(group) * pixels);
  Progress progress("reading", "patterns", measurement.count());
  for (std::int64_t first = 0; first < measurement.count(); first += group) {
    const std::int64_t count = std::min(group, measurement.count() - first);
    measurement.read(first, count, patterns);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count) * pixels; ++i)
      totals.pattern[i % pixels] += patterns[i];
    const Kokkos::View<const float***, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> part(
        patterns.data(), static_cast<std::size_t>(count), static_cast<std::size_t>(n),
        static_cast<std::size_t>(n));
    if (weights.data())
      loss.set_patterns(space, first, part, weights);
    else
      loss.set_patterns(space, first, part);
    progress.add(count);
  }
  totals.counts = std::accumulate(totals.pattern.begin(), totals.pattern.end(), 0.0);
  return totals;
}

/// The wave of the square root of the mean pattern, brought back to the sample.
Probe probe_of_mean_pattern(const Space& space, const Measurement& measurement, const Totals& totals, int m) {
  const int n = measurement.detector();
  std::vector<std::complex<float>> values;
  for (const double sum : totals.pattern)
    values.emplace_back(static_cast<float>(std::sqrt(sum / double(measurement.count()))));
  const auto wave = allocate<Owned<Kokkos::complex<float>**>>("wave", n, n);
  upload(space, wave, values);
  Propagator<Space, float>(space, n, 1, measurement.fresnel_number()).adjoint(space, wave);
  values = download(space, wave);
  if (measurement.near_field())
    return values;
  Probe probe; // the origin in the middle
  for (int y = 0; y < m; ++y)
    for (int x = 0; x < m; ++x)
      probe.push_back(values[static_cast<std::size_t>((y - m / 2 + n) % n * n + (x - m / 2 + n) % n)]);
  return probe;
}

/// The probe [1, m, m] of a smaller or larger window with the same middle.
Probe resized(const Probe& probe, int from, int to) {
  Probe result;
  for (std::size_t mode = 0; mode < probe.size() / static_cast<std::size_t>(from * from); ++mode)
    for (int y = 0; y < to; ++y)
      for (int x = 0; x < to; ++x) {
        const int row = y - to / 2 + from / 2, column = x - to / 2 + from / 2;
        const bool inside = row >= 0 && row < from && column >= 0 && column < from;
        result.push_back(inside ? probe[mode * static_cast<std::size_t>(from * from) +
                                        static_cast<std::size_t>(row * from + column)]
                                : 0);
      }
  return result;
}

/// More modes than there are: the first one weakened and multiplied by low polynomials.
void add_modes(Probe& probe, int m, int modes) {
  const auto pixels = static_cast<std::size_t>(m) * static_cast<std::size_t>(m);
  for (auto mode = static_cast<int>(probe.size() / pixels); mode < modes; ++mode)
    for (std::size_t i = 0; i < pixels; ++i) {
      const double row = 2 * double(i) / double(pixels) - 1,
                   column = 2 * double(i % static_cast<std::size_t>(m)) / m - 1;
      const double factor =
          0.5 * std::pow(row, mode % 2 ? (mode + 1) / 2 : 0) * std::pow(column, mode % 2 ? 0 : mode / 2);
      probe.push_back(probe[i] * static_cast<float>(factor));
    }
  probe.resize(pixels * static_cast<std::size_t>(modes));
}

double energy(const Probe& probe) {
  double sum = 0;
  for (const auto& value : probe)
    sum += std::norm(std::complex<double>(value));
  return sum;
}

/// One line on stderr where that is a terminal, drawn anew twice a second at most: reading the loss waits for
/// the space.
class LossProgress {
public:
  explicit LossProgress(int passes) : passes_(passes), visible_(::isatty(STDERR_FILENO) == 1) {}
  ~LossProgress() {
    if (visible_)
      std::fputs("\r\033[K", stderr);
  }
  template <class ReadLoss>
  void draw(int pass, const ReadLoss& read_loss) {
    if (!visible_ || Clock::now() < next_)
      return;
    std::fprintf(stderr, "\rpass %d of %d, loss %.6g\033[K", pass, passes_, read_loss());
    next_ = Clock::now() + std::chrono::milliseconds(500);
  }

private:
  int passes_;
  bool visible_;
  Clock::time_point next_ = Clock::now();
};

/// Everything that is decided before patterns are read.
class Job {
public:
  Job(const Space& space, const RunOptions& options)
      : space_(space), options_(options), measurement_(options.data, options.measurement) {
    choose_optics();
    choose_shape();
    for (const auto& position : measurement_.positions())
      positions_.push_back(options.subpixel
                               ? position
                               : std::array{std::floor(position[0] + 0.5), std::floor(position[1] + 0.5)});
    if (options.reference)
      reference_ = read_reconstruction(*options.reference);
  }

  template <class Storage>
  std::string run() {
    const auto start = Clock::now();
    const Kokkos::View<const double**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>
        positions(positions_.front().data(), positions_.size(), 2);
    PtychographyLoss<Space, float, Storage> loss(space_, shape_, positions, loss_options());
    const Totals totals = load(space_, measurement_, loss);
    if (!(totals.counts > 0))
      throw InputError(options_.data.string() + ": all patterns are empty");
    if (loss.empty_patterns() > 0)
      print_warning(program, options_.data.string() + ": " + std::to_string(loss.empty_patterns()) +
                                 " patterns without counts are left out");
    const Probe probe = first_probe(totals);
    PtychographySolver<Space, float, Storage> solver(space_, shape_, std::move(loss), solver_options(probe));
    set_start(solver, probe);
    std::vector<double> losses = iterate(solver);
    const std::chrono::duration<double> elapsed = Clock::now() - start;

    Reconstruction result = collect(solver, std::move(losses));
    write_pictures(options_.out, result);
    write_reconstruction(options_.out, result);
    return summary(result, totals, solver.memory_bytes(), elapsed.count());
  }

private:
  void choose_optics() {
    if (!options_.convergence_angle) {
      if (options_.train == Train::Aberrations)
        throw InputError("--train aberrations needs --convergence-angle");
      return;
    }
    if (measurement_.near_field())
      throw InputError("--convergence-angle does not go with --focus-distance: the near field has no lens");
    if (!(measurement_.wavelength() > 0 && measurement_.object_pixel() > 0))
      throw InputError(options_.data.string() +
                       ": wavelength and pixel of the object are needed for a lens, and are not "
                       "known; use --wavelength and --object-pixel");
    constexpr double nanometre = 1e-9;
    optics_ = ProbeOptics{.wavelength = measurement_.wavelength() / nanometre,
                          .pixel_size = measurement_.object_pixel() / nanometre,
                          .convergence_angle = *options_.convergence_angle};
  }

  void choose_shape() {
    const int n = measurement_.detector();
    const bool from_file = !measurement_.probe().empty() && !optics_;
    shape_.detector = n;
    shape_.probe = options_.probe_size.value_or(from_file ? measurement_.probe_size() : n);
    if (shape_.probe > n)
      throw InputError("--probe-size " + std::to_string(shape_.probe) + ": expected at most the " +
                       std::to_string(n) + " pixels of the detector");
    if (measurement_.near_field() && shape_.probe != n)
      throw InputError("--probe-size " + std::to_string(shape_.probe) +
                       ": in the near field the probe has the " + std::to_string(n) +
                       " pixels of the detector");
    shape_.modes = options_.modes;
    if (options_.train == Train::Aberrations && shape_.modes > 1)
      throw InputError("--train aberrations goes with one mode");
    if (options_.train == Train::Aberrations && !options_.scale_patterns.value_or(true))
      throw InputError("--train aberrations needs patterns that are scaled one by one");
    if (options_.batches > measurement_.count())
      throw InputError("--batches " + std::to_string(options_.batches) + ": expected at most the " +
                       std::to_string(measurement_.count()) + " patterns");
    shape_.object = measurement_.object_shape(shape_.probe);
  }

  PtychographyOptions loss_options() const {
    PtychographyOptions options{.loss = options_.loss};
    // A lens gives a probe of unit energy.
    const bool scaled = options_.scale_patterns.value_or(options_.loss == PatternLoss::LeastSquares ||
                                                         options_.train == Train::Aberrations);
    options.scale = scaled ? PatternScale::PerPattern : PatternScale::None;
    options.weights = measurement_.weights().empty() ? PixelWeights::None : PixelWeights::Mask;
    options.reduced_grid = options_.reduced_grid;
    options.fresnel_number = measurement_.fresnel_number();
    return options;
  }

  Probe first_probe(const Totals& totals) const {
    const int m = shape_.probe;
    Probe probe;
    if (optics_) {
      const auto view = allocate<Owned<Kokkos::complex<float>**>>("probe", m, m);
      const auto parameters = allocate<Owned<float*>>("aberrations", int(probe_parameter_count));
      upload(space_, parameters, aberrations());
      AberratedProbe<Space, float>(space_, m, shape_.detector, *optics_).evaluate(space_, parameters, view);
      probe = download(space_, view);
    } else if (!measurement_.probe().empty()) {
      probe = resized(measurement_.probe(), measurement_.probe_size(), m);
    } else {
      probe = probe_of_mean_pattern(space_, measurement_, totals, m);
    }
    add_modes(probe, m, shape_.modes);
    // In both fields the energy of an exit wave is the mean of its pattern (far) or its sum (near).
    double wanted = totals.counts / double(measurement_.count());
    if (!measurement_.near_field())
      wanted /= std::pow(shape_.detector, 2);
    const double scale = std::sqrt(wanted / energy(probe));
    if (options_.train != Train::Aberrations)
      for (auto& value : probe)
        value *= static_cast<float>(scale);
    return probe;
  }

  std::vector<float> aberrations() const {
    return {options_.aberrations.begin(), options_.aberrations.end()};
  }

  PtychographySolverOptions solver_options(const Probe& probe) const {
    PtychographySolverOptions options{.object_rate = options_.object_rate, .probe_rate = 0};
    options.history = std::int64_t(options_.passes) * options_.batches;
    if (options_.train == Train::Pixels)
      options.probe_rate = options_.probe_rate * std::sqrt(energy(probe) / double(probe.size()));
    if (options_.train == Train::Aberrations) {
      options.optics = optics_;
      options.aberration_rates = options_.aberration_rates;
    }
    return options;
  }

  template <class Solver>
  void set_start(const Solver& solver, const Probe& probe) const {
    std::vector<float> amplitude(solver.amplitude().size(), 1), phase(amplitude.size(), 0);
    if (options_.start == Start::Random) {
      std::mt19937_64 generator(options_.seed);
      std::normal_distribution<float> normal;
      for (auto& value : amplitude)
        value = 0.9f + 0.1f * normal(generator);
      for (auto& value : phase)
        value = 0.1f * normal(generator);
    }
    upload(space_, solver.amplitude(), amplitude);
    upload(space_, solver.phase(), phase);
    upload(space_, solver.probe(), probe);
    upload(space_, solver.aberrations(), aberrations());
  }

  /// Mean loss of every pass, and that at the end.
  template <class Solver>
  std::vector<double> iterate(Solver& solver) const {
    const int batches = options_.batches;
    std::optional<PatternBatches<Space>> lists;
    if (batches > 1)
      lists.emplace(space_, measurement_.count(), batches, options_.seed);
    std::vector<int> order(static_cast<std::size_t>(batches));
    std::iota(order.begin(), order.end(), 0);
    std::mt19937_64 generator(options_.seed);
    const Owned<double> last("Bracewell::examples::loss");
    const auto present = [&] {
      solver.evaluate(space_, last);
      return download(space_, last)[0];
    };
    {
      LossProgress progress(options_.passes);
      for (int pass = 0; pass < options_.passes; ++pass) {
        std::shuffle(order.begin(), order.end(), generator);
        for (const int batch : order)
          lists ? solver.step(space_, (*lists)[batch]) : solver.step(space_);
        progress.draw(pass + 1, [&] { return solver.losses(space_).back(); });
      }
    }
    const auto steps = solver.losses(space_);
    std::vector<double> losses;
    for (auto step = steps.begin(); step != steps.end(); step += batches)
      losses.push_back(std::accumulate(step, step + batches, 0.0) / batches);
    losses.push_back(present());
    for (const double loss : losses)
      if (!std::isfinite(loss))
        throw std::runtime_error("the loss is not a finite number: lower the learning rates");
    return losses;
  }

  template <class Solver>
  Reconstruction collect(const Solver& solver, std::vector<double> losses) const {
    Reconstruction result;
    result.rows = shape_.object[0], result.columns = shape_.object[1];
    result.amplitude = download(space_, solver.amplitude());
    result.phase = download(space_, solver.phase());
    result.modes = shape_.modes, result.probe_size = shape_.probe;
    result.probe = download(space_, solver.probe());
    result.positions = positions_;
    result.losses = std::move(losses);
    if (options_.train == Train::Aberrations) {
      const auto found = download(space_, solver.aberrations());
      result.aberrations.emplace();
      std::copy(found.begin(), found.end(), result.aberrations->begin());
    }
    result.pixel_size = measurement_.object_pixel();
    result.settings = {{"patterns", double(measurement_.count())},
                       {"detector", double(shape_.detector)},
                       {"passes", double(options_.passes)},
                       {"batches", double(options_.batches)},
                       {"object_rate", options_.object_rate},
                       {"probe_rate", options_.probe_rate},
                       {"loss", double(static_cast<int>(options_.loss))},
                       {"wavelength", measurement_.wavelength()},
                       {"seed", double(options_.seed)}};
    return result;
  }

  std::string summary(const Reconstruction& result, const Totals& totals, std::size_t bytes,
                      double seconds) const {
    std::string text = options_.out.string() + ": " + std::to_string(measurement_.count()) + " patterns of " +
                       std::to_string(shape_.detector) + " x " + std::to_string(shape_.detector) +
                       ", object " + std::to_string(result.rows) + " x " + std::to_string(result.columns) +
                       ", loss " + number(result.losses.front()) + " to " + number(result.losses.back());
    const double pixels = double(measurement_.count()) * std::pow(shape_.detector, 2);
    if (options_.loss == PatternLoss::Amplitude && loss_options().scale == PatternScale::None)
      text += ", amplitude residual " + number(result.losses.back() * pixels / totals.counts);
    if (result.aberrations)
      text += ", defocus " + number((*result.aberrations)[Defocus]) + " nm";
    if (reference_)
      text += ", error against the reference " +
              number(align(result, *reference_, options_.train == Train::Pixels).error);
    return text + ", " + number(double(bytes) / 1e6) + " MB, " + number(seconds) + " s";
  }

  const Space& space_;
  const RunOptions& options_;
  Measurement measurement_;
  PtychographyShape shape_{};
  std::optional<ProbeOptics> optics_;
  std::vector<std::array<double, 2>> positions_;
  std::optional<Reconstruction> reference_;
};

} // namespace

std::string reconstruct(const Space& space, const RunOptions& options) {
  OutputFamily outputs({options.out, beside(options.out, "_amplitude.png"), beside(options.out, "_phase.png"),
                        beside(options.out, "_probe.png"), beside(options.out, "_loss.png")});
  Job job(space, options);
  const std::string summary =
      options.storage == StorageType::Half ? job.run<Bracewell::Half>() : job.run<float>();
  outputs.commit();
  return summary;
}

} // namespace Bracewell::Examples
