// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/run.hpp"

#include "bracewell-ptychography/alignment.hpp"
#include "bracewell-ptychography/host_copies.hpp"
#include "bracewell-ptychography/pattern_groups.hpp"
#include "bracewell-ptychography/pictures.hpp"
#include "bracewell-ptychography/tiles.hpp"
#include "common/input_error.hpp"
#include "common/memory_limit.hpp"
#include "common/output_family.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>
#include <sstream>

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
Totals load(const Space& space, const Measurement& measurement, std::span<const std::int64_t> which,
            bool in_order, PtychographyLoss<Space, float, Storage>& loss, Timings& timings) {
  const int n = measurement.detector();
  Totals totals;
  Owned<float**> weights;
  if (!measurement.weights().empty()) {
    weights = allocate<Owned<float**>>("weights", n, n);
    upload(space, weights, measurement.weights());
  }
  const auto store = [&](std::int64_t first, const PatternGroup& patterns) {
    if (weights.data())
      loss.set_patterns(space, first, patterns, weights);
    else
      loss.set_patterns(space, first, patterns);
  };
  timings.stages(for_each_group(space, measurement, which, store, totals.pattern));
  sum_over_processes(space, in_order, host_view(totals.pattern));
  totals.counts = std::accumulate(totals.pattern.begin(), totals.pattern.end(), 0.0);
  return totals;
}

/// The wave of the square root of the mean pattern, brought back to the sample. In the far field it gets the
/// curvature of a defocus that spreads it over a step of the scan: a focused one sees dots of the object.
Probe probe_of_mean_pattern(const Space& space, const Measurement& measurement, const Totals& totals, int m) {
  const int n = measurement.detector();
  std::vector<std::complex<float>> values;
  for (const double sum : totals.pattern)
    values.emplace_back(static_cast<float>(std::sqrt(sum / double(measurement.count()))));
  if (!measurement.near_field()) {
    const auto square = [n](std::size_t i) { // of the frequency, in pixels of the detector
      const auto signed_index = [n](int k) { return 2 * k < n ? k : k - n; };
      return std::pow(signed_index(int(i) / n), 2) + std::pow(signed_index(int(i) % n), 2);
    };
    double moment = 0, sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      moment += totals.pattern[i] * square(i), sum += totals.pattern[i];
    // The frequency q goes to the pixel c q where the phase is pi c q^2 / n.
    const double c = std::min(measurement.step(), m / 6.0) / std::sqrt(std::max(1.0, moment / sum));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] *= std::complex<float>(std::polar(1.0, std::numbers::pi * c * square(i) / n));
  }
  const auto wave = allocate<Owned<Kokkos::complex<float>**>>("wave", n, n);
  upload(space, wave, values);
  Propagator<Space, float>(space, n, 1, measurement.fresnel_number()).adjoint(space, wave);
  values = download(space, wave);
  if (measurement.near_field())
    return values;
  Probe probe; // the origin in the middle
  for (int y = 0; y < m; ++y)
    for (int x = 0; x < m; ++x) {
      const int from = (y - m / 2 + n) % n * n + (x - m / 2 + n) % n;
      probe.push_back(values[static_cast<std::size_t>(from)]);
    }
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

/// Everything that is decided before patterns are read.
class Job {
public:
  Job(const Space& space, const RunOptions& options, Provenance& provenance)
      : space_(space), options_(options), provenance_(provenance),
        measurement_(options.data[0], options.measurement, provenance), aberrations_(options.aberrations) {
    append_scans();
    choose_algorithm();
    choose_optics();
    choose_shape();
    check_positions();
    for (const auto& [row, column] : measurement_.positions()) {
      const bool exact = options.subpixel || options.refine_positions;
      positions_.push_back({margin() + (exact ? row : std::floor(row + 0.5)),
                            margin() + (exact ? column : std::floor(column + 0.5))});
    }
    share_out();
    check_memory();
    if (options.reference)
      reference_ = read_reconstruction(*options.reference);
  }

  template <class Storage>
  std::string run(Checkpoint& checkpoint, Timings& timings) {
    const auto start = Clock::now();
    timings.phase("plan");
    PtychographyLoss<Space, float, Storage> loss(space_, shape_, positions_view(), loss_options());
    timings.phase("load");
    const Totals totals = load(space_, measurement_, tile().patterns, options_.reproducible, loss, timings);
    timings.phase("start");
    if (!(totals.counts > 0))
      throw InputError(measurement_.path().string() + ": all patterns are empty");
    if (const auto empty = sum_over_processes(double(loss.empty_patterns())); empty > 0)
      provenance_.assume(measurement_.path().string() + ": " + shortest(empty) +
                         " patterns without counts are left out");
    check_centre(totals);
    provenance_.say();
    const Probe probe = first_probe(totals);
    PtychographySolver<Space, float, Storage> solver(
        space_, shape_, std::move(loss), solver_options(std::sqrt(energy(probe) / double(probe.size()))));
    set_start(solver, probe);
    const Overlaps<Space, Kokkos::complex<float>> overlaps(space_, processes(), rectangles());
    if (process_count() > 1)
      solver.set_reduction(space_, {.patterns = measurement_.count(),
                                    .sum =
                                        [&](const Space& space, const auto& numbers,
                                            const auto& object_gradient, const auto& probe_gradient) {
                                          if (object_gradient.size() > 0)
                                            overlaps.sum(space, object_gradient);
                                          sum_over_processes(space, options_.reproducible, numbers,
                                                             probe_gradient);
                                        },
                                    .origin = tile().object.begin});
    timings.phase("iterate");
    std::vector<double> losses = iterate(solver, checkpoint);
    timings.phase("write");
    const std::chrono::duration<double> elapsed = Clock::now() - start;

    const Reconstruction result = collect(solver, std::move(losses));
    std::optional<Hdf5Writer> file;
    if (is_first_process())
      file.emplace(options_.out);
    for (const auto& [name, view] :
         {std::pair("/object/amplitude", solver.amplitude()), {"/object/phase", solver.phase()}}) {
      const auto values = download(space_, view);
      write(file ? &*file : nullptr, name, std::span(values), Of::Object);
    }
    if (!is_first_process())
      return "";
    write_all_but_object(*file, result);
    file->commit();
    write_pictures(picture_paths(options_.out, options_.picture_ending), result);
    return summary(result, totals, solver.memory_bytes() + overlaps.memory_bytes(), elapsed.count());
  }

private:
  bool by_adam() const { return options_.algorithm == Algorithm::Adam; }
  double object_rate() const { return options_.object_rate.value_or(by_adam() ? 0.04 : 1); }
  double probe_rate() const { return options_.probe_rate.value_or(by_adam() ? 0.01 : 1); }
  double regularisation() const { // ePIE's is 1
    return options_.algorithm == Algorithm::EPIE ? 1 : options_.regularisation.value_or(0.1);
  }

  void append_scans() {
    if (options_.one_object && options_.data.size() == 1)
      throw InputError("--one-object goes with several scans (--data)");
    for (std::size_t i = 1; i < options_.data.size(); ++i) {
      for (std::size_t other = 0; other < i; ++other)
        if (std::filesystem::equivalent(options_.data[i], options_.data[other]))
          provenance_.assume(options_.data[i].string() + ": is the file of two scans, and counts twice");
      measurement_.append(std::make_unique<Measurement>(options_.data[i], options_.measurement, provenance_),
                          options_.one_object ? std::nullopt : std::optional(2 * margin()), provenance_);
    }
  }

  void choose_algorithm() const {
    if (options_.regularisation && (by_adam() || options_.algorithm == Algorithm::EPIE))
      throw InputError("--regularisation goes with --algorithm rpie and lsq-ml");
    if (by_adam())
      return;
    const std::string only = "--algorithm: all but adam ";
    if (options_.loss != PatternLoss::Amplitude || options_.scale_patterns.value_or(false))
      throw InputError(only +
                       "compare amplitudes of patterns as they were counted, without another --loss or "
                       "--scale-patterns");
    if (options_.train == Train::Aberrations)
      throw InputError(only + "find the probe's pixels, not its aberrations: --train pixels or nothing");
    if (process_count() > 1)
      throw InputError(only + "run in one process, found " + std::to_string(process_count()));
  }

  void choose_optics() {
    const std::string file = measurement_.path().string();
    const bool known = measurement_.wavelength() > 0 && measurement_.object_pixel() > 0;
    std::optional<double> angle = options_.convergence_angle;
    if (!angle && known && !measurement_.near_field() &&
        (measurement_.probe().empty() || options_.train == Train::Aberrations ||
         !options_.lens_options.empty()))
      angle = measurement_.convergence_angle();
    if (!angle) {
      if (!options_.lens_options.empty())
        throw InputError(options_.lens_options[0] +
                         " is of a lens, whose aperture is not known: it needs --convergence-angle");
      if (options_.train == Train::Aberrations)
        throw InputError("--train aberrations needs --convergence-angle");
      if (measurement_.probe().empty())
        provenance_.assume(file +
                           ": has no probe and no lens: the first probe is estimated from the mean pattern; "
                           "use --probe-path" +
                           (measurement_.near_field() ? "" : ", or --convergence-angle and --defocus"));
      return;
    }
    if (measurement_.near_field())
      throw InputError("--convergence-angle does not go with --focus-distance: the near field has no lens");
    if (!known)
      throw InputError(file + ": wavelength and pixel of the object are needed for a lens, and are not "
                              "known; use --wavelength and --object-pixel");
    if (*angle > 0.1)
      provenance_.assume("--convergence-angle " + number(*angle) +
                         ": is in radians, and lenses have less than 0.1; " + number(1e-3 * *angle) +
                         " if these are milliradians");
    const bool own_defocus =
        std::ranges::find(options_.lens_options, "--defocus") != options_.lens_options.end();
    if (!options_.convergence_angle)
      provenance_.took(file, "a lens with a convergence angle of " + number(*angle) + " rad");
    if (const auto defocus = measurement_.defocus(); defocus && !own_defocus) {
      aberrations_[Defocus] = *defocus;
      provenance_.assume(file + ": its defocus of " + shortest(*defocus) +
                         " nm is taken with our sign (phase +pi wavelength defocus k^2); --defocus " +
                         shortest(-*defocus) + " is the other one");
    }
    constexpr double nanometre = 1e-9;
    optics_ = ProbeOptics{.wavelength = measurement_.wavelength() / nanometre,
                          .pixel_size = measurement_.object_pixel() / nanometre,
                          .convergence_angle = *angle};
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
    shape_.modes = options_.modes.value_or(1);
    if (const int modes = measurement_.probe_modes(); modes > 1 && !options_.modes && !optics_)
      provenance_.assume(measurement_.path().string() + ": has " + std::to_string(modes) +
                         " probe modes, the first of which is taken; use --modes " + std::to_string(modes));
    if (options_.train == Train::Aberrations && shape_.modes > 1)
      throw InputError("--train aberrations goes with one mode");
    if (options_.train == Train::Aberrations && !options_.scale_patterns.value_or(true))
      throw InputError("--train aberrations needs patterns that are scaled one by one");
    if (options_.batches > measurement_.count())
      throw InputError("--batches " + std::to_string(options_.batches) + ": expected at most the " +
                       std::to_string(measurement_.count()) + " patterns");
    object_ = measurement_.object_shape(shape_.probe);
    for (auto& side : object_)
      side += 2 * margin();
  }

  /// Pixels of the object around the windows, into which they may move.
  int margin() const {
    return options_.margin.value_or(
        options_.refine_positions ? static_cast<int>(std::ceil(options_.position_limit)) : 0);
  }

  /// The patterns of every process, and its part of the object.
  void share_out() {
    if (options_.batches > 1 && options_.batches > measurement_.count() / process_count())
      throw InputError("--batches " + std::to_string(options_.batches) + ": expected at most the " +
                       std::to_string(measurement_.count() / process_count()) + " patterns of a process");
    tiles_ = cut_into_tiles(positions_, object_, shape_.probe, margin(), process_count());
    shape_.object = {tile().object.rows(), tile().object.columns()};
    for (const std::int64_t pattern : tile().patterns)
      for (const std::size_t axis : {0, 1})
        own_positions_.push_back(positions_[static_cast<std::size_t>(pattern)][axis] -
                                 double(tile().object.begin[axis]));
  }

  /// That of this process.
  const Tile& tile() const { return tiles_[static_cast<std::size_t>(processes().rank())]; }
  /// How many patterns it has.
  std::int64_t own_count() const { return std::ssize(tile().patterns); }

  std::vector<Rectangle> rectangles() const {
    std::vector<Rectangle> all;
    for (const Tile& one : tiles_)
      all.push_back(one.object);
    return all;
  }

  /// Says where positions are hardly in object pixels.
  void check_positions() const {
    const double step = measurement_.step();
    const std::string between = measurement_.path().string() + ": neighbouring positions are " +
                                number(step) + " object pixels apart",
                      use = "; use --positions-in-metres or --object-pixel";
    if (measurement_.count() > 1 && step < 0.1)
      provenance_.assume(between + ": they collapse" + use);
    if (step > shape_.probe)
      provenance_.assume(between + ", more than the probe's window of " + std::to_string(shape_.probe) +
                         ": they leave one another's object" + use);
  }

  /// Says where the light is not around the zero frequency.
  void check_centre(const Totals& totals) const {
    const int n = shape_.detector;
    if (measurement_.near_field())
      return;
    // The centre of mass on a circle of n pixels.
    std::array<std::complex<double>, 2> sums{};
    for (int i = 0; i < n * n; ++i)
      for (const std::size_t axis : {0, 1})
        sums[axis] += totals.pattern[std::size_t(i)] *
                      std::polar(1.0, 2 * std::numbers::pi * (axis == 0 ? i / n : i % n) / n);
    std::array<double, 2> centre{};
    for (const std::size_t axis : {0, 1})
      centre[axis] = std::arg(sums[axis]) * n / (2 * std::numbers::pi);
    const double clear = std::min(std::abs(sums[0]), std::abs(sums[1])) / totals.counts;
    if (std::hypot(centre[0], centre[1]) <= n / 8.0 || clear < 0.1)
      return;
    const auto index = [n](double value) { return (std::lround(value) + n) % n; };
    const auto [row, column] = measurement_.in_frame(index(centre[0]), index(centre[1]));
    provenance_.assume(measurement_.path().string() + ": the patterns are brightest around row " +
                       std::to_string(row) + ", column " + std::to_string(column) +
                       ", not where the zero frequency is expected; use --centre " + std::to_string(row) +
                       " " + std::to_string(column));
  }

  /// Bytes of a solver with so many for patterns on the device.
  double solver_bytes(const std::optional<std::size_t>& target_bytes) const {
    PtychographyOptions of_loss = loss_options();
    of_loss.target_bytes = target_bytes;
    const auto bytes = [&]<class Storage>(Storage) {
      return double(PtychographySolver<Space, float, Storage>::bytes_needed(space_, shape_, positions_view(),
                                                                            of_loss, solver_options(1)));
    };
    return options_.storage == StorageType::Half ? bytes(Bracewell::Half()) : bytes(float());
  }

  /// What --device-memory leaves for patterns.
  void choose_target_bytes() {
    if (!options_.device_memory)
      return;
    const double values =
        double(shape_.object[0]) * double(shape_.object[1]) + shape_.modes * std::pow(shape_.probe, 2);
    // Patterns that are read; the states before a pass and of the best.
    const double others = solver_bytes(0) + overlap_bytes() + bytes_for_groups(measurement_, own_count()) +
                          2 * 8 * values,
                 left = 1e6 * *options_.device_memory - others;
    if (left < 0)
      throw InputError("--device-memory " + number(*options_.device_memory) + ": expected at least " +
                       number(std::ceil(others / 1e6)) + " megabytes, which all but the patterns take");
    target_bytes_ = static_cast<std::size_t>(left);
  }

  void check_memory() {
    choose_target_bytes();
    const double values =
        double(shape_.object[0]) * double(shape_.object[1]) + shape_.modes * std::pow(shape_.probe, 2);
    const double solver = solver_bytes(std::nullopt); // patterns are in one memory or the other
    // Patterns on their way; the states before a pass and of the best; a checkpoint, which has moments, too, or at the end
    // pictures.
    const double pictured =
        is_first_process() ? double(object_[0]) * double(object_[1]) / std::pow(pixel_of_pictures(), 2) : 0;
    require_memory("reconstructing " + std::to_string(own_count()) + " patterns and an object of " +
                       std::to_string(shape_.object[0]) + " x " + std::to_string(shape_.object[1]) +
                       " pixels",
                   resident_bytes() + solver + overlap_bytes() + bytes_for_groups(measurement_, own_count()) +
                       2 * 8 * values + std::max(24 * values, 40 * pictured) + 12e6,
                   memory_limit(options_.memory_limit));
  }

  /// Bytes through which overlaps with other tiles go.
  double overlap_bytes() const {
    double elements = 0;
    for (const Tile& other : tiles_)
      if (&other != &tile())
        elements += double(tile().object.common(other.object).size());
    return 2 * 8 * elements;
  }

  /// Which pixels of an axis the first process has at the end, for pictures and to compare with a reference: each so
  /// many-th.
  std::int64_t pixel_of_pictures() const {
    constexpr std::int64_t most = 8192;
    return options_.reference ? 1 : (std::max(object_[0], object_[1]) + most - 1) / most;
  }

  using Positions =
      Kokkos::View<const double**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  Positions positions_view() const { return Positions(own_positions_.data(), own_positions_.size() / 2, 2); }

  PtychographyOptions loss_options() const {
    PtychographyOptions options{.loss = options_.loss};
    // A lens gives a probe of unit energy.
    const bool scaled = options_.scale_patterns.value_or(options_.loss == PatternLoss::LeastSquares ||
                                                         options_.train == Train::Aberrations);
    options.scale = scaled ? PatternScale::PerPattern : PatternScale::None;
    options.weights = measurement_.weights().empty() ? PixelWeights::None : PixelWeights::Mask;
    options.reduced_grid = options_.reduced_grid;
    options.fresnel_number = measurement_.fresnel_number();
    options.refine_positions = options_.refine_positions;
    options.target_bytes = target_bytes_;
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

  std::vector<float> aberrations() const { return {aberrations_.begin(), aberrations_.end()}; }

  /// @param probe_value  about the absolute value of the probe's pixels
  PtychographySolverOptions solver_options(double probe_value) const {
    PtychographySolverOptions options{
        .object_rate = object_rate(), .probe_rate = 0, .regularisation = regularisation()};
    if (!by_adam())
      options.steps = options_.algorithm == Algorithm::LSQML ? PtychographySteps::LeastSquares
                                                             : PtychographySteps::Projections;
    options.history = std::int64_t(options_.passes) * options_.batches;
    if (options_.train == Train::Pixels)
      options.probe_rate = probe_rate() * (by_adam() ? probe_value : 1);
    if (options_.refine_positions) {
      options.position_rate = options_.position_rate;
      options.position_limit = options_.position_limit;
    }
    if (options_.train == Train::Aberrations) {
      options.optics = optics_;
      options.aberration_rates = options_.aberration_rates;
    }
    return options;
  }

  template <class Solver>
  void set_start(const Solver& solver, const Probe& probe) const {
    const bool random = options_.start == Start::Random;
    std::mt19937_64 generator(options_.seed);
    std::normal_distribution<float> normal;
    const auto start = [&](const auto& view, float mean) {
      std::vector<float> values(view.size(), mean);
      if (random) { // of the whole object, of which a tile takes its own
        const Rectangle& own = tile().object;
        auto next = values.begin();
        for (std::int64_t row = 0; row < object_[0]; ++row)
          for (std::int64_t column = 0; column < object_[1]; ++column) {
            const float value = mean + 0.1f * normal(generator);
            if (own.has(row, column))
              *next++ = value;
          }
      }
      upload(space_, view, values);
    };
    start(solver.amplitude(), random ? 0.9f : 1.0f);
    start(solver.phase(), 0);
    upload(space_, solver.probe(), probe);
    upload(space_, solver.aberrations(), aberrations());
  }

  /// What a solver has found so far.
  struct State {
    Owned<float**> amplitude, phase;
    Owned<Kokkos::complex<float>***> probe;
    Owned<float*> aberrations;
    Owned<float**> displacements;

    template <class Solver>
    explicit State(const Solver& solver)
        : amplitude(allocate<Owned<float**>>("amplitude", solver.amplitude().extent(0),
                                             solver.amplitude().extent(1))),
          phase(allocate<Owned<float**>>("phase", amplitude.extent(0), amplitude.extent(1))),
          probe(allocate<decltype(probe)>("probe", solver.probe().extent(0), solver.probe().extent(1),
                                          solver.probe().extent(2))),
          aberrations(allocate<Owned<float*>>("aberrations", solver.aberrations().extent(0))),
          displacements(allocate<Owned<float**>>("displacements", solver.displacements().extent(0), 2)) {}

    /// Copies from the solver, or to it.
    template <class Solver>
    void exchange(const Space& space, const Solver& solver, bool restore) const {
      const auto copy = [&](const auto& kept, const auto& own) {
        restore ? Kokkos::deep_copy(space, own, kept) : Kokkos::deep_copy(space, kept, own);
      };
      copy(amplitude, solver.amplitude());
      copy(phase, solver.phase());
      copy(probe, solver.probe());
      copy(aberrations, solver.aberrations());
      if (displacements.size() > 0)
        copy(displacements, solver.displacements());
    }
  };

  /// The passes so far, besides what the solver knows.
  struct Passes {
    std::vector<double> losses; ///< mean of each
    double least = std::numeric_limits<double>::infinity();
    std::vector<int> order; ///< of the batches in the latest
    std::mt19937_64 generator;
  };

  /// What an array has values of, and with it who has them: a process has those of its tile and of its patterns.
  enum class Of { All, Object, Patterns };

  /// visit(name, values, of) for all that further passes depend on, but for counts and losses.
  template <class SolverState, class Visit>
  void for_each_array(SolverState& state, const Visit& visit) const {
    visit("/solver/amplitude", std::span(state.amplitude), Of::Object);
    visit("/solver/phase", std::span(state.phase), Of::Object);
    visit("/solver/probe", std::span(state.probe), Of::All);
    visit("/solver/aberrations", std::span(state.aberrations), Of::All);
    visit("/solver/displacements", std::span(state.displacements), Of::Patterns);
    visit("/solver/windows", std::span(state.windows), Of::Patterns);
    // In the order of Adam's arrays.
    const auto averages = [&](const std::string& name, auto& values) {
      std::span rest(values);
      const auto next = [&](const char* part, std::size_t count, Of of) {
        visit(name + part, rest.first(count), of);
        rest = rest.subspan(count);
      };
      if (by_adam()) {
        next("/amplitude", state.amplitude.size(), Of::Object);
        next("/phase", state.phase.size(), Of::Object);
      }
      next("/probe", rest.size() - state.displacements.size(), Of::All);
      next("/displacements", rest.size(), Of::Patterns);
    };
    averages("/solver/means", state.adam.means);
    averages("/solver/squares", state.adam.squares);
    visit("/solver/losses", std::span(state.losses), Of::All);
  }
  /// The same for one of the best state.
  template <class Visit>
  static void for_each_view(const State& best, const Visit& visit) {
    visit("/best/amplitude", best.amplitude, Of::Object);
    visit("/best/phase", best.phase, Of::Object);
    visit("/best/probe", best.probe, Of::All);
    visit("/best/aberrations", best.aberrations, Of::All);
    visit("/best/displacements", best.displacements, Of::Patterns);
  }

  /// Two values for each of this process' patterns, or none, as those of all. Collective.
  template <class Value>
  std::vector<Value> of_all_patterns(std::span<const Value> values) const {
    if (!options_.refine_positions)
      return {};
    std::vector<double> all(2 * positions_.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      all[2 * static_cast<std::size_t>(tile().patterns[i / 2]) + i % 2] = values[i];
    processes().sum(space_, host_view(all));
    return {all.begin(), all.end()};
  }

  /// Calls take(box, values) in the first process for all parts of an array of the object, of which every process has
  /// its tile. Collective.
  template <class Take>
  void gather(std::span<const float> values, const Take& take) const {
    constexpr std::int64_t pixels_at_once = 1 << 20;
    std::vector<float> band;
    for (std::size_t rank = 0; rank < tiles_.size(); ++rank) {
      const auto& [patterns, cell, object] = tiles_[rank];
      const std::int64_t rows =
          std::max<std::int64_t>(1, pixels_at_once / std::max<std::int64_t>(1, cell.columns()));
      for (std::int64_t row = cell.begin[0]; cell.size() > 0 && row < cell.end[0]; row += rows) {
        const Hdf5Slab box{{row, cell.begin[1]}, {std::min(rows, cell.end[0] - row), cell.columns()}};
        band.resize(static_cast<std::size_t>(box.count[0] * box.count[1]));
        if (static_cast<int>(rank) == processes().rank())
          for (std::int64_t i = 0; i < box.count[0]; ++i)
            std::copy_n(values.begin() + (row + i - object.begin[0]) * object.columns() + cell.begin[1] -
                            object.begin[1],
                        box.count[1], band.begin() + i * box.count[1]);
        processes().broadcast(space_, host_view(band), static_cast<int>(rank));
        if (is_first_process())
          take(box, std::span<const float>(band));
      }
    }
  }

  /// Writes what all processes have of an array, in the first. Collective.
  template <class Value>
  void write(Hdf5Writer* file, const std::string& name, std::span<const Value> values, Of of) const {
    const auto whole = [&](std::span<const Value> all) {
      using Stored = typename HostValue<Value>::type;
      if (file)
        file->write<Stored>(name, {std::ssize(all)},
                            {reinterpret_cast<const Stored*>(all.data()), all.size()});
    };
    if constexpr (std::is_same_v<Value, float>)
      if (of == Of::Object) {
        if (file)
          file->create_dataset<float>(name, {object_[0], object_[1]});
        return gather(values, [&](const Hdf5Slab& box, std::span<const float> of_box) {
          file->write<float>(name, box, of_box);
        });
      }
    if constexpr (std::is_arithmetic_v<Value>)
      if (of == Of::Patterns)
        return whole(of_all_patterns(values));
    whole(values);
  }

  /// Reads this process' part of what write() wrote in any number of processes.
  template <class Value>
  void read(const Hdf5Reader& file, const std::string& name, std::span<Value> values, Of of) const {
    using Stored = typename HostValue<Value>::type;
    const std::span<Stored> to(reinterpret_cast<Stored*>(values.data()), values.size());
    if (of == Of::Object) {
      const Hdf5Shape shape = file.shape(name), expected{object_[0], object_[1]};
      if (shape != expected)
        file.fail(name, "expected shape " + hdf5_text(expected) + ", found " + hdf5_text(shape));
      const Rectangle& own = tile().object;
      file.read<Stored>(name, {{own.begin[0], own.begin[1]}, {own.rows(), own.columns()}}, to);
    } else if (of == Of::Patterns && options_.refine_positions) {
      const auto all = read_exactly<Stored>(file, name, 2 * positions_.size());
      for (std::size_t i = 0; i < to.size(); ++i)
        to[i] = all[2 * static_cast<std::size_t>(tile().patterns[i / 2]) + i % 2];
    } else {
      std::ranges::copy(read_exactly<Stored>(file, name, to.size()), to.begin());
    }
  }

  /// Windows of the tile as windows of the whole object, or back.
  void move_windows(std::vector<int>& windows, int sign) const {
    for (std::size_t i = 0; i < windows.size(); ++i)
      windows[i] += sign * static_cast<int>(tile().object.begin[i % 2]);
  }

  /// A checkpoint: all that the passes to come depend on, in the first process' file. Collective.
  template <class Solver>
  void save(Hdf5Writer* file, const Solver& solver, const Passes& passes, const State& best) const {
    auto state = solver.state(space_);
    move_windows(state.windows, 1);
    for_each_array(state, [&]<class Value>(const std::string& name, std::span<Value> values, Of of) {
      write<Value>(file, name, values, of);
    });
    for_each_view(best, [&](const char* name, const auto& view, Of of) {
      const auto values = download(space_, view);
      write(file, name, std::span(values), of);
    });
    if (!file)
      return;
    file->write_scalar<std::int64_t>("/solver/steps", state.adam.steps);
    write(file, "/losses", std::span(passes.losses), Of::All);
    file->write_scalar<double>("/least", passes.least);
    write(file, "/order", std::span(passes.order), Of::All);
    std::ostringstream generator;
    generator << passes.generator;
    const std::string text = generator.str();
    const std::vector<std::uint8_t> letters(text.begin(), text.end());
    write(file, "/generator", std::span(letters), Of::All);
  }

  template <class Solver>
  void save_if_due(Checkpoint& checkpoint, const Solver& solver, const Passes& passes,
                   const State& best) const {
    if (sum_over_processes(is_first_process() && checkpoint.due() ? 1 : 0) == 0)
      return;
    if (is_first_process())
      checkpoint.save([&](Hdf5Writer& file) { save(&file, solver, passes, best); });
    else
      save(nullptr, solver, passes, best);
  }

  template <class Solver>
  void resume(const Hdf5Reader& file, Solver& solver, Passes& passes, const State& best) const {
    auto state = solver.state(space_); // for its sizes
    passes.losses = file.read<double>("/losses");
    const std::size_t done = passes.losses.size(), batches = passes.order.size();
    state.losses.resize(done * batches);
    for_each_array(state, [&]<class Value>(const std::string& name, std::span<Value> values, Of of) {
      read(file, name, values, of);
    });
    move_windows(state.windows, -1);
    state.adam.steps = file.read_scalar<std::int64_t>("/solver/steps");
    for_each_view(best, [&](const char* name, const auto& view, Of of) {
      std::vector<typename std::decay_t<decltype(view)>::non_const_value_type> values(view.size());
      read(file, name, std::span(values), of);
      upload(space_, view, values);
    });
    passes.least = file.read_scalar<double>("/least");
    passes.order = read_exactly<int>(file, "/order", batches);
    const auto text = file.read<std::uint8_t>("/generator");
    std::istringstream generator(std::string(text.begin(), text.end()));
    generator >> passes.generator;
    auto sorted = passes.order;
    std::ranges::sort(sorted);
    bool sound = generator && done <= static_cast<std::size_t>(options_.passes) &&
                 state.adam.steps == static_cast<std::int64_t>(done * batches);
    for (std::size_t b = 0; b < batches; ++b)
      sound = sound && sorted[b] == static_cast<int>(b);
    if (!sound)
      throw InputError(file.path().string() + ": is damaged: its passes make no sense");
    solver.restore(space_, state);
    provenance_.took(file.path(), std::to_string(done) + " passes");
  }

  bool decays() const { return options_.decay.value_or(options_.batches > 1 || options_.refine_positions); }

  /// The patterns of every step of a pass.
  struct Batches {
    std::optional<PatternBatches<Space>> lists; ///< of this process; absent: all patterns are one batch
    std::vector<std::int64_t> sizes;            ///< in all processes

    Array<const int, Memory> patterns(int batch) const {
      return lists ? (*lists)[batch] : Array<const int, Memory>();
    }
  };

  Batches make_batches() const {
    Batches batches;
    if (options_.batches > 1)
      batches.lists.emplace(space_, own_count(), options_.batches, options_.seed);
    for (int batch = 0; batch < options_.batches; ++batch)
      batches.sizes.push_back(std::int64_t(
          sum_over_processes(double(batches.lists ? batches.patterns(batch).size() : own_count()))));
    return batches;
  }

  /// A step with every batch, in the order of `passes`, which gets the mean of their losses.
  template <class Solver>
  void make_pass(Solver& solver, const Batches& batches, Passes& passes) const {
    const double pass = double(passes.losses.size());
    if (decays()) // over the last quarter of them
      solver.set_rate_factor(std::min(1.0, 4 - 4.0 * pass / options_.passes));
    solver.move_windows(space_);
    auto& order = passes.order;
    std::shuffle(order.begin(), order.end(), passes.generator);
    for (std::size_t b = 0; b < order.size(); ++b) {
      solver.step(space_, batches.patterns(order[b]), batches.sizes[std::size_t(order[b])]);
      if (b + 1 < order.size())
        solver.prefetch(batches.patterns(order[b + 1]));
    }
    const auto steps = solver.losses(space_);
    passes.losses.push_back(std::accumulate(steps.end() - options_.batches, steps.end(), 0.0) /
                            options_.batches);
  }

  /// Mean loss of every pass, and that at the end, where the solver has the best state that a pass began with.
  template <class Solver>
  std::vector<double> iterate(Solver& solver, Checkpoint& checkpoint) const {
    const Batches batches = make_batches();
    Passes passes{.losses = {},
                  .order = std::vector<int>(static_cast<std::size_t>(options_.batches)),
                  .generator = std::mt19937_64(options_.seed)};
    std::iota(passes.order.begin(), passes.order.end(), 0);
    const Owned<double> last("Bracewell::examples::loss");
    const auto present = [&] {
      solver.evaluate(space_, last);
      return download(space_, last)[0];
    };
    State before(solver), best(solver);
    if (checkpoint.resumed())
      resume(*checkpoint.resumed(), solver, passes, best);
    std::vector<double>& losses = passes.losses;
    {
      Progress progress("reconstructing", "passes", options_.passes);
      progress.add(static_cast<std::int64_t>(losses.size()));
      while (std::ssize(losses) < options_.passes) {
        before.exchange(space_, solver, false);
        make_pass(solver, batches, passes);
        if (losses.back() < passes.least) {
          passes.least = losses.back();
          std::swap(before, best);
        }
        save_if_due(checkpoint, solver, passes, best);
        progress.add(1, "loss " + number(losses.back()));
      }
    }
    losses.push_back(present());
    for (const double loss : losses)
      if (!std::isfinite(loss))
        throw std::runtime_error("the loss is not a finite number: lower the learning rates");
    if (losses.back() > losses.front())
      provenance_.assume("the loss grew from " + number(losses.front()) + " to " + number(losses.back()) +
                         ": lower --object-rate and --probe-rate");
    if (passes.least < losses.back()) {
      const double end = losses.back();
      before.exchange(space_, solver, false);
      best.exchange(space_, solver, true);
      losses.back() = present();
      if (losses.back() > end) {
        before.exchange(space_, solver, true);
        losses.back() = present();
      }
    }
    return losses;
  }

  template <class Solver>
  Reconstruction collect(const Solver& solver, std::vector<double> losses) const {
    Reconstruction result;
    result.every = pixel_of_pictures();
    const auto whole = [&](std::int64_t pixels) { return (pixels + result.every - 1) / result.every; };
    result.rows = whole(object_[0]), result.columns = whole(object_[1]);
    const auto take = [&](std::vector<float>& values, const auto& view) {
      if (is_first_process())
        values.resize(static_cast<std::size_t>(result.rows * result.columns));
      gather(download(space_, view), [&](const Hdf5Slab& box, std::span<const float> of_box) {
        for (std::int64_t i = 0; i < std::ssize(of_box); ++i) {
          const std::int64_t row = box.offset[0] + i / box.count[1],
                             column = box.offset[1] + i % box.count[1];
          if (row % result.every == 0 && column % result.every == 0)
            values[static_cast<std::size_t>(row / result.every * result.columns + column / result.every)] =
                of_box[static_cast<std::size_t>(i)];
        }
      });
    };
    take(result.amplitude, solver.amplitude());
    take(result.phase, solver.phase());
    result.modes = shape_.modes, result.probe_size = shape_.probe;
    result.probe = download(space_, solver.probe());
    result.positions = positions_;
    const std::vector<float> own_moves = download(space_, solver.displacements()),
                             moves = of_all_patterns(std::span(own_moves));
    for (std::size_t i = 0; i < moves.size(); ++i)
      result.positions[i / 2][i % 2] += moves[i];
    result.losses = std::move(losses);
    if (options_.train == Train::Aberrations) {
      const auto found = download(space_, solver.aberrations());
      result.aberrations.emplace();
      std::copy(found.begin(), found.end(), result.aberrations->begin());
    }
    result.pixel_size = measurement_.object_pixel();
    result.settings = {{"patterns", double(measurement_.count())},
                       {"detector", double(shape_.detector)},
                       {"probe_size", double(shape_.probe)},
                       {"modes", double(shape_.modes)},
                       {"passes", double(options_.passes)},
                       {"batches", double(options_.batches)},
                       {"decay", double(decays())},
                       {"algorithm", double(static_cast<int>(options_.algorithm))},
                       {"object_rate", object_rate()},
                       {"probe_rate", probe_rate()},
                       {"loss", double(static_cast<int>(options_.loss))},
                       {"train", double(static_cast<int>(options_.train))},
                       {"start", double(static_cast<int>(options_.start))},
                       {"storage", double(static_cast<int>(options_.storage))},
                       {"subpixel", double(options_.subpixel)},
                       {"wavelength", measurement_.wavelength()},
                       {"object_pixel", measurement_.object_pixel()},
                       {"seed", double(options_.seed)}};
    if (options_.refine_positions) {
      result.settings.push_back({"position_rate", options_.position_rate});
      result.settings.push_back({"position_limit", options_.position_limit});
    }
    if (optics_) {
      const std::array names{"defocus", "cs", "astigmatism", "astigmatism_angle", "smoothness"};
      result.settings.push_back({"convergence_angle", optics_->convergence_angle});
      for (std::size_t c = 0; c < names.size(); ++c)
        result.settings.push_back({names[c], aberrations_[c]});
    }
    result.provenance = provenance_.text();
    return result;
  }

  std::string in_tiles() const {
    if (process_count() == 1)
      return "";
    std::int64_t rows = 0, columns = 0;
    for (const Rectangle& one : rectangles())
      rows = std::max(rows, one.rows()), columns = std::max(columns, one.columns());
    return " in tiles of at most " + std::to_string(rows) + " x " + std::to_string(columns) + " pixels";
  }

  std::string summary(const Reconstruction& result, const Totals& totals, std::size_t bytes,
                      double seconds) const {
    std::string text = options_.out.string() + ": " + std::to_string(measurement_.count()) + " patterns of " +
                       std::to_string(shape_.detector) + " x " + std::to_string(shape_.detector) +
                       ", object " + std::to_string(object_[0]) + " x " + std::to_string(object_[1]) +
                       in_tiles() + ", loss " + number(result.losses.front()) + " to " +
                       number(result.losses.back());
    const double pixels = double(measurement_.count()) * std::pow(shape_.detector, 2);
    if (options_.loss == PatternLoss::Amplitude && loss_options().scale == PatternScale::None)
      text += ", amplitude residual " + number(result.losses.back() * pixels / totals.counts);
    if (result.aberrations)
      text += ", defocus " + number((*result.aberrations)[Defocus]) + " nm";
    if (reference_) {
      text += ", error against the reference " +
              number(align(result, *reference_, options_.train == Train::Pixels).error);
      if (result.positions.size() == reference_->positions.size())
        if (const double error = position_error(result, *reference_); error > 0)
          text += ", positions off by " + number(error) + " pixels (median)";
    }
    return text + ", " + number(double(bytes) / 1e6) + " MB, " + number(seconds) + " s";
  }

  const Space& space_;
  const RunOptions& options_;
  Provenance& provenance_;
  Measurement measurement_;
  std::array<double, probe_parameter_count> aberrations_; ///< at first
  PtychographyShape shape_{};                             ///< the object is that of the tile
  std::array<std::int64_t, 2> object_{};                  ///< the whole
  std::optional<ProbeOptics> optics_;
  std::vector<std::array<double, 2>> positions_;
  std::vector<Tile> tiles_;           ///< of all processes
  std::vector<double> own_positions_; ///< [N, 2], in the tile
  std::optional<std::size_t> target_bytes_;
  std::optional<Reconstruction> reference_;
};

} // namespace

std::string reconstruct(const Space& space, const RunOptions& options, Provenance& provenance,
                        Timings& timings) {
  std::vector<fs::path> paths{options.out};
  std::ranges::copy(picture_paths(options.out, options.picture_ending), std::back_inserter(paths));
  OutputFamily outputs(paths, Checkpoint::path_of(options.out));
  Job job(space, options, provenance);
  Checkpoint checkpoint(options.out, options.checkpoint);
  const std::string summary = options.storage == StorageType::Half
                                  ? job.run<Bracewell::Half>(checkpoint, timings)
                                  : job.run<float>(checkpoint, timings);
  if (is_first_process()) {
    outputs.commit();
    checkpoint.remove();
  }
  return summary;
}

} // namespace Bracewell::Examples
