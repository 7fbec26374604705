// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/job.hpp"

#include "bracewell-ptychography/detector_faults.hpp"
#include "common/hdf5.hpp"
#include "common/input_error.hpp"
#include "common/processes.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <numbers>
#include <numeric>

namespace Bracewell::Examples {

std::string four_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

Job::Job(const Space& space, const RunOptions& options, Provenance& provenance)
    : space_(space), options_(options), provenance_(provenance),
      measurement_(options.data[0], options.measurement, provenance), aberrations_(options.aberrations),
      device_memory_(options.device_memory) {
  append_scans();
  choose_loss(mask_detector_faults(space, measurement_, provenance));
  read_continued();
  choose_algorithm();
  choose_optics();
  choose_shape();
  choose_model();
  choose_schedule();
  check_positions();
  for (const auto& [row, column] : measurement_.positions()) {
    const bool exact = options.subpixel || options.refine_positions;
    positions_.push_back({margin() + (exact ? row : std::floor(row + 0.5)),
                          margin() + (exact ? column : std::floor(column + 0.5))});
  }
  continue_positions();
  share_out();
  check_memory();
  if (options.reference)
    read_reference(*options.reference);
}

void Job::read_reference(const std::filesystem::path& file) {
  reference_ = read_reconstruction(file);
  if (reference_->rows != object_[0] || reference_->columns != object_[1])
    throw InputError(file.string() + ": --reference: expected an object of " + std::to_string(object_[0]) +
                     " x " + std::to_string(object_[1]) + " pixels as this scan's, found " +
                     std::to_string(reference_->rows) + " x " + std::to_string(reference_->columns) +
                     "; --probe-size sets the window that the object has beyond the positions, here " +
                     std::to_string(shape_.probe) + " pixels");
}

void Job::read_continued() {
  if (!options_.continued)
    return;
  continued_ = read_reconstruction(*options_.continued);
  const auto& old = continued_->positions;
  const auto& own = measurement_.positions();
  const std::string file = options_.continued->string();
  if (old.size() != own.size())
    throw InputError(file + ": --continue: expected positions of the " + std::to_string(own.size()) +
                     " patterns, found " + std::to_string(old.size()));
  if (options_.start == Start::Random)
    throw InputError("--start random does not go with --continue, which has the first object");
  double most = 0;
  for (const std::size_t axis : {0, 1}) {
    std::vector<double> moves;
    for (std::size_t j = 0; j < old.size(); ++j)
      moves.push_back(old[j][axis] - own[j][axis]);
    const auto middle = moves.begin() + std::ssize(moves) / 2;
    std::ranges::nth_element(moves, middle);
    continued_from_[axis] = std::lround(*middle);
    for (const double move : moves)
      most = std::max(most, std::abs(move - double(continued_from_[axis])));
  }
  if (most > options_.position_limit + 1)
    throw InputError(file + ": --continue: expected positions within --position-limit " +
                     four_digits(options_.position_limit) + " pixels of the measured ones, found one " +
                     four_digits(most) + " away: it is of another scan, or of other --axes");
  continued_margin_ = most > 0.5 + 1e-6 ? static_cast<int>(std::ceil(most)) : 0; // else they were rounded
  provenance_.took(*options_.continued, "an object of " + std::to_string(continued_->rows) + " x " +
                                            std::to_string(continued_->columns) + " pixels to go on from");
}

void Job::continue_positions() {
  if (!continued_)
    return;
  for (const std::size_t axis : {0, 1})
    continued_from_[axis] -= margin();
  for (std::size_t j = 0; j < positions_.size(); ++j)
    for (const std::size_t axis : {0, 1})
      positions_[j][axis] = continued_->positions[j][axis] - double(continued_from_[axis]);
}

void Job::append_scans() {
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

void Job::choose_loss(const std::optional<double>& bright) {
  if (options_.loss)
    loss_ = *options_.loss;
  const bool any = by_adam() && !options_.scale_patterns.value_or(options_.train == Train::Aberrations);
  if (options_.loss || !any || !bright || !measurement_.gain().empty() || !measurement_.dark().empty())
    return;
  loss_ = PtychographySchedule::loss(*bright);
  provenance_.took(measurement_.path(),
                   four_digits(*bright) + " counts in a bright pixel, for which --loss " +
                       (loss_ == PatternLoss::Poisson ? "poisson" : "amplitude") + " is taken");
}

void Job::choose_algorithm() const {
  if (options_.regularisation && (by_adam() || options_.algorithm == Algorithm::EPIE))
    throw InputError("--regularisation goes with --algorithm rpie and lsq-ml");
  if (by_adam())
    return;
  const std::string only = "--algorithm: all but adam ";
  if (loss_ != PatternLoss::Amplitude || options_.scale_patterns.value_or(false))
    throw InputError(only + "compare amplitudes of patterns as they were counted, without another --loss, "
                            "--scale-patterns or --scale-models");
  if (options_.train == Train::Aberrations)
    throw InputError(only + "find the probe's pixels, not its aberrations: --train pixels or nothing");
  if (process_count() > 1)
    throw InputError(only + "run in one process, found " + std::to_string(process_count()));
}

void Job::choose_optics() {
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
    provenance_.assume("--convergence-angle " + four_digits(*angle) +
                       ": is in radians, and lenses have less than 0.1; " + four_digits(1e-3 * *angle) +
                       " if these are milliradians");
  const bool own_defocus =
      std::ranges::find(options_.lens_options, "--defocus") != options_.lens_options.end();
  if (!options_.convergence_angle)
    provenance_.took(file, "a lens with a convergence angle of " + four_digits(*angle) + " rad");
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

void Job::choose_shape() {
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
                       " probe modes, and the first is taken; use --modes " + std::to_string(modes));
  if (options_.train == Train::Aberrations && shape_.modes > 1)
    throw InputError("--train aberrations goes with one mode");
  if (options_.train == Train::Aberrations && !options_.scale_patterns.value_or(true))
    throw InputError("--train aberrations needs patterns that are scaled one by one");
  object_ = measurement_.object_shape(shape_.probe);
  for (auto& side : object_)
    side += 2 * margin();
}

void Job::choose_model() {
  if (const auto& limits = options_.amplitude_limits;
      !limits.empty() && !(limits[0] >= 0 && limits[0] < limits[1]))
    throw InputError("--amplitude-limits " + four_digits(limits[0]) + " " + four_digits(limits[1]) +
                     ": expected 0 <= LOW < HIGH");
  if (options_.probe_support && options_.train == Train::Aberrations)
    throw InputError("--probe-support does not go with --train aberrations");
  if (options_.total_variation > 0 && process_count() > 1)
    throw InputError("--smooth runs in one process, found " + std::to_string(process_count()));
  if (options_.position_moves != PositionMoves::Single && !options_.refine_positions)
    throw InputError("--positions affine and both go with --refine-positions");
  if (options_.position_moves != PositionMoves::Single && options_.train != Train::Nothing)
    provenance_.assume(
        "--positions affine and both: a probe that is found, too, follows a scale of the scan with its "
        "curvature; use --train nothing where the probe is known");
  if (options_.correlate_halves && process_count() > 1)
    throw InputError("--frc runs in one process, found " + std::to_string(process_count()));
  if (options_.correlate_halves && measurement_.count() < 2)
    throw InputError("--frc needs 2 patterns or more, found " + std::to_string(measurement_.count()));
  shape_.slices = options_.slices;
  shape_.relaxation = options_.relaxation;
  if (shape_.slices == 1 && !has_more()) {
    if (!options_.slice_distance.empty())
      throw InputError("--slice-distance goes with --slices of 2 or more");
    return;
  }
  const std::string some = "--slices, --relaxation-modes, --find-factors and --find-background ";
  if (process_count() > 1)
    throw InputError(some + "run in one process, found " + std::to_string(process_count()));
  if (options_.train == Train::Aberrations)
    throw InputError(some + "do not go with --train aberrations");
  if (options_.find_factors && loss_options().scale == PatternScale::PerPattern)
    throw InputError("--find-factors does not go with patterns that are scaled one by one");
  if (continued_ && continued_->slices != 1 && continued_->slices != shape_.slices)
    throw InputError(options_.continued->string() + ": --continue: expected an object of 1 or " +
                     std::to_string(shape_.slices) + " slices, found " + std::to_string(continued_->slices));
  if (shape_.slices > 1)
    choose_slices();
}

void Job::choose_slices() {
  if (!by_adam())
    throw InputError("--slices are found by --algorithm adam");
  const std::size_t ways = std::size_t(shape_.slices) - 1, given = options_.slice_distance.size();
  if (given != 1 && given != ways)
    throw InputError("--slice-distance: expected 1 or " + std::to_string(ways) + " numbers for " +
                     std::to_string(shape_.slices) + " slices, found " + std::to_string(given));
  if (!(measurement_.wavelength() > 0 && measurement_.object_pixel() > 0))
    throw InputError(measurement_.path().string() +
                     ": wavelength and pixel of the object are needed for slices, and are not known; use "
                     "--wavelength and --object-pixel");
  const double window = shape_.probe * measurement_.object_pixel();
  for (std::size_t way = 0; way < ways; ++way) {
    const double distance = options_.slice_distance[given == 1 ? 0 : way];
    slice_fresnel_numbers_.push_back(window * window / (measurement_.wavelength() * distance));
    const auto move = [&](std::size_t axis) { // pixels
      return distance * std::tan(1e-3 * options_.specimen_tilt[axis]) / measurement_.object_pixel();
    };
    if (!options_.specimen_tilt.empty())
      slice_shifts_.push_back({move(0), move(1)});
  }
}

void Job::choose_schedule() {
  const bool counted = options_.keep_counts || loss_options().scale == PatternScale::None;
  if (options_.algorithm == Algorithm::Automatic && options_.train != Train::Aberrations &&
      loss_options().loss == PatternLoss::Amplitude && counted && process_count() == 1)
    schedule_ = PtychographySchedule::of(measurement_.count(), options_.passes.value_or(0),
                                         options_.batches.value_or(0), options_.refine_positions);
  else if (options_.algorithm == Algorithm::Automatic && loss_ == PatternLoss::Poisson &&
           !options_.object_rate && process_count() == 1)
    // Few passes make as many steps, of fewer patterns; who gives a rate knows how far steps go.
    schedule_.batches = static_cast<int>(
        std::clamp<std::int64_t>(schedule_.passes / options_.passes.value_or(schedule_.passes), 1,
                                 std::max<std::int64_t>(1, measurement_.count() / 16)));
  if (shape_.slices > 1 || options_.keep_counts) // projections are of one slice, and of no scales
    schedule_.projection_passes = 0;
  schedule_.passes = options_.passes.value_or(schedule_.passes);
  schedule_.batches = options_.batches.value_or(schedule_.batches);
  if (continued_) { // whole and long steps are for far starts
    schedule_.projection_passes = 0;
    schedule_.object_rate /= 4;
    schedule_.probe_rate /= 4;
  }
  if (batches() > measurement_.count())
    throw InputError("--batches " + std::to_string(batches()) + ": expected at most the " +
                     std::to_string(measurement_.count()) + " patterns");
}

std::vector<float> Job::object_support() const {
  const Hdf5Reader file(*options_.object_support);
  const Hdf5Shape shape = file.shape("/support"), expected{object_[0], object_[1]};
  if (shape != expected)
    throw InputError(file.path().string() + ": --object-support: /support: expected " + hdf5_text(expected) +
                     " as the object, found " + hdf5_text(shape));
  const std::vector<float> whole = file.read<float>("/support");
  std::vector<float> own;
  const Rectangle& part = tile().object;
  for (std::int64_t row = part.begin[0]; row < part.end[0]; ++row)
    own.insert(own.end(), whole.begin() + row * object_[1] + part.begin[1],
               whole.begin() + row * object_[1] + part.end[1]);
  if (std::ranges::none_of(whole, [](float value) { return value > 0; }))
    throw InputError(file.path().string() +
                     ": --object-support: /support: expected positive values where the "
                     "object is to be found, found none");
  return own;
}

int Job::margin() const {
  return options_.margin.value_or(
             options_.refine_positions ? static_cast<int>(std::ceil(options_.position_limit)) : 0) +
         continued_margin_;
}

void Job::share_out() {
  if (batches() > 1 && batches() > measurement_.count() / process_count())
    throw InputError("--batches " + std::to_string(batches()) + ": expected at most the " +
                     std::to_string(measurement_.count() / process_count()) + " patterns of a process");
  tiles_ = cut_into_tiles(positions_, object_, shape_.probe, margin(), process_count());
  shape_.object = {tile().object.rows(), tile().object.columns()};
  for (const std::int64_t pattern : tile().patterns)
    for (const std::size_t axis : {0, 1})
      own_positions_.push_back(positions_[static_cast<std::size_t>(pattern)][axis] -
                               double(tile().object.begin[axis]));
}

std::vector<Rectangle> Job::rectangles() const {
  std::vector<Rectangle> all;
  for (const Tile& one : tiles_)
    all.push_back(one.object);
  return all;
}

void Job::check_positions() const {
  const double step = measurement_.step();
  const std::string between = measurement_.path().string() + ": neighbouring positions are " +
                              four_digits(step) + " object pixels apart",
                    use = "; use --positions-in-metres or --object-pixel";
  if (measurement_.count() > 1 && step < 0.1)
    provenance_.assume(between + ": they collapse" + use);
  if (step > shape_.probe)
    provenance_.assume(between + ", more than the probe's window of " + std::to_string(shape_.probe) +
                       ": they leave one another's object" + use);
}

void Job::check_centre(const std::vector<double>& pattern) const {
  const int n = shape_.detector;
  if (measurement_.near_field())
    return;
  // The centre of mass on a circle of n pixels.
  std::array<std::complex<double>, 2> sums{};
  for (int i = 0; i < n * n; ++i)
    for (const std::size_t axis : {0, 1})
      sums[axis] +=
          pattern[std::size_t(i)] * std::polar(1.0, 2 * std::numbers::pi * (axis == 0 ? i / n : i % n) / n);
  std::array<double, 2> centre{};
  for (const std::size_t axis : {0, 1})
    centre[axis] = std::arg(sums[axis]) * n / (2 * std::numbers::pi);
  const double clear =
      std::min(std::abs(sums[0]), std::abs(sums[1])) / std::accumulate(pattern.begin(), pattern.end(), 0.0);
  if (std::hypot(centre[0], centre[1]) <= n / 8.0 || clear < 0.1)
    return;
  const auto index = [n](double value) { return (std::lround(value) + n) % n; };
  const auto [row, column] = measurement_.in_frame(index(centre[0]), index(centre[1]));
  provenance_.assume(measurement_.path().string() + ": the patterns are brightest around row " +
                     std::to_string(row) + ", column " + std::to_string(column) +
                     ", not where the zero frequency is expected; use --centre " + std::to_string(row) + " " +
                     std::to_string(column));
}

std::int64_t Job::pixel_of_pictures() const {
  constexpr std::int64_t most = 8192;
  return options_.reference ? 1 : (std::max(object_[0], object_[1]) + most - 1) / most;
}

PtychographyOptions Job::loss_options() const {
  PtychographyOptions options{.loss = loss_};
  // A lens gives a probe of unit energy.
  const bool scaled = options_.scale_patterns.value_or(loss_ == PatternLoss::LeastSquares ||
                                                       options_.train == Train::Aberrations);
  options.scale = scaled ? PatternScale::PerPattern : PatternScale::None;
  if (options_.keep_counts)
    options.counts = 0;
  options.weights = measurement_.weights().empty() ? PixelWeights::None : PixelWeights::Mask;
  options.reduced_grid = options_.reduced_grid;
  options.fresnel_number = measurement_.fresnel_number();
  options.slice_fresnel_numbers = slice_fresnel_numbers_;
  options.slice_shifts = slice_shifts_;
  options.pattern_factors = options_.find_factors;
  options.detector_background = options_.find_background;
  options.refine_positions = options_.refine_positions;
  options.target_bytes = target_bytes_;
  options.patterns_at_once = measurement_.count() / batches();
  if (device_memory_) // leaves room for patterns
    options.workspace_bytes = static_cast<std::size_t>(std::min(1.3e9, 1e6 * *device_memory_ / 6));
  return options;
}

PtychographySolverOptions Job::solver_options(double probe_value, double root_value) const {
  PtychographySolverOptions options{
      .object_rate = object_rate(), .probe_rate = 0, .regularisation = regularisation()};
  if (!by_adam())
    options.steps = options_.algorithm == Algorithm::LSQML ? PtychographySteps::LeastSquares
                                                           : PtychographySteps::Projections;
  else if (options_.algorithm == Algorithm::Automatic)
    options.projections_first = std::int64_t(schedule_.projection_passes) * batches();
  options.history = std::int64_t(passes()) * batches();
  if (options_.train == Train::Pixels)
    options.probe_rate = probe_rate() * (by_adam() ? probe_value : 1);
  options.relaxation_rate = 0.1 * probe_value;
  options.background_rate = 0.005 * root_value;
  if (options_.refine_positions) {
    options.position_rate = options_.position_rate;
    options.position_limit = options_.position_limit;
    options.position_moves = options_.position_moves;
  }
  if (!options_.amplitude_limits.empty())
    options.amplitude_limits = {options_.amplitude_limits[0], options_.amplitude_limits[1]};
  options.probe_support = options_.probe_support;
  options.total_variation = options_.total_variation;
  if (options_.train == Train::Aberrations) {
    options.optics = optics_;
    options.aberration_rates = options_.aberration_rates;
  }
  return options;
}

} // namespace Bracewell::Examples
