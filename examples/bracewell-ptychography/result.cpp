// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/result.hpp"

#include "bracewell-ptychography/alignment.hpp"
#include "bracewell-ptychography/pictures.hpp"
#include "bracewell-ptychography/tiled_arrays.hpp"
#include "common/processes.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <iterator>
#include <limits>
#include <numbers>
#include <numeric>

namespace Bracewell::Examples {
namespace {

using Complex = std::complex<double>;

/// Turns modes [modes, pixels] into orthogonal ones that make the same patterns, the strongest first, and returns their powers,
/// whose sum is 1. Rotates pairs of them until they are orthogonal (Jacobi's method from one side).
std::vector<double> make_orthogonal(std::vector<std::complex<float>>& probe, int modes) {
  std::vector<std::vector<Complex>> rows;
  const auto pixels = std::ssize(probe) / modes;
  for (int mode = 0; mode < modes; ++mode)
    rows.emplace_back(probe.begin() + mode * pixels, probe.begin() + (mode + 1) * pixels);
  const auto product = [](const std::vector<Complex>& x, const std::vector<Complex>& y) {
    Complex sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      sum += std::conj(x[i]) * y[i];
    return sum;
  };
  bool rotated = true;
  for (int sweep = 0; rotated && sweep < 50; ++sweep) {
    rotated = false;
    for (std::size_t p = 0; p < rows.size(); ++p)
      for (std::size_t q = p + 1; q < rows.size(); ++q) {
        const double a = product(rows[p], rows[p]).real(), b = product(rows[q], rows[q]).real();
        const Complex both = product(rows[p], rows[q]);
        if (std::abs(both) <= 1e-10 * std::sqrt(a * b))
          continue;
        rotated = true;
        const double zeta = (b - a) / (2 * std::abs(both)),
                     tangent = std::copysign(1 / (std::abs(zeta) + std::hypot(1, zeta)), zeta),
                     cosine = 1 / std::hypot(1, tangent), sine = cosine * tangent;
        const Complex turn = std::conj(both) / std::abs(both);
        for (std::size_t i = 0; i < rows[p].size(); ++i) {
          const Complex x = rows[p][i], y = turn * rows[q][i];
          rows[p][i] = cosine * x - sine * y;
          rows[q][i] = sine * x + cosine * y;
        }
      }
  }
  std::ranges::sort(rows, std::greater(), [&](const auto& row) { return product(row, row).real(); });
  std::vector<double> powers;
  double sum = 0;
  auto next = probe.begin();
  for (const auto& row : rows) {
    next = std::transform(row.begin(), row.end(), next,
                          [](Complex value) { return std::complex<float>(value); });
    sum += powers.emplace_back(product(row, row).real());
  }
  for (double& power : powers)
    power /= sum;
  return powers;
}

/// Makes the coefficients' means zero, by the probe, and the modes of relaxation orthogonal and as strong as the probe's first
/// one, the one of largest coefficients first, with the same probes of patterns.
void make_orthogonal_relaxation(Reconstruction& result) {
  using Matrix = Eigen::MatrixXcd;
  const auto pixels = std::ptrdiff_t(result.probe_size) * result.probe_size,
             modes = std::ssize(result.relaxation) / pixels, count = std::ssize(result.coefficients) / modes;
  Matrix v(modes, pixels), a(count, modes);
  for (std::ptrdiff_t i = 0; i < modes * pixels; ++i)
    v(i / pixels, i % pixels) = std::complex<double>(result.relaxation[std::size_t(i)]);
  for (std::ptrdiff_t i = 0; i < count * modes; ++i)
    a(i / modes, i % modes) = std::complex<double>(result.coefficients[std::size_t(i)]);
  const Eigen::RowVectorXcd mean = a.colwise().mean();
  a.rowwise() -= mean;
  double power = 0;
  for (std::ptrdiff_t i = 0; i < pixels; ++i) {
    auto& value = result.probe[std::size_t(i)];
    value += std::complex<float>((mean * v.col(i))(0));
    power += std::norm(std::complex<double>(value));
  }
  // a v = u R x with v = L x, x having orthonormal rows, and a L = u R.
  const Eigen::HouseholderQR<Matrix> of_modes(v.adjoint());
  const Matrix x = Matrix(of_modes.householderQ() * Matrix::Identity(pixels, modes)).adjoint();
  const Matrix b = a * (v * x.adjoint());
  const Eigen::SelfAdjointEigenSolver<Matrix> by_power(b.adjoint() * b); // in rising order
  const Matrix turn = by_power.eigenvectors().rowwise().reverse();
  const double size = std::sqrt(power);
  const Matrix own = size * (turn.adjoint() * x), coefficients = (b * turn) / size;
  for (std::ptrdiff_t i = 0; i < modes * pixels; ++i)
    result.relaxation[std::size_t(i)] = std::complex<float>(own(i / pixels, i % pixels));
  for (std::ptrdiff_t i = 0; i < count * modes; ++i)
    result.coefficients[std::size_t(i)] = std::complex<float>(coefficients(i / modes, i % modes));
}

/// Mean of (sqrt n - sqrt mean)^2 over Poisson's n.
double noise_of_root(double mean) {
  if (mean > 30)
    return 0.25 + 7 / (64 * mean);
  double root = 0, part = std::exp(-mean);
  for (int n = 1; n < 100; ++n)
    root += std::sqrt(n) * (part *= mean / n);
  return 2 * mean - 2 * std::sqrt(mean) * root;
}

/// Mean of mean - n + n log(n / mean) over Poisson's n.
double noise_of_deviance(double mean) {
  if (mean > 30)
    return 0.5 + 1 / (12 * mean);
  if (mean <= 0)
    return 0;
  double sum = -mean * std::log(mean), part = std::exp(-mean);
  for (int n = 1; n < 100; ++n)
    sum += n * std::log(n) * (part *= mean / n);
  return sum;
}

/// What the loss sums, squares of differences of amplitudes or halves of Poisson's deviances, as parts of all counts.
struct Residuals {
  double reached, noise,
      without; ///< noise: of counting alone, 0 where values are no counts; without: of one pattern for all
};

/// Of the loss of patterns as counted.
Residuals residuals(const Job& job, const Totals& totals, double loss) {
  const auto count = double(job.measurement().count());
  Residuals all{loss * count * std::pow(job.shape().detector, 2), 0, 0};
  const StoredType type = job.measurement().format().type;
  const bool counts = type != StoredType::Float16 && type != StoredType::Float32 &&
                      type != StoredType::Float64 && job.measurement().gain().empty() &&
                      job.measurement().dark().empty();
  for (std::size_t pixel = 0; pixel < totals.pattern.size(); ++pixel) {
    const double sum = totals.pattern[pixel], mean = sum / count;
    const bool poisson = job.loss() == PatternLoss::Poisson;
    all.without += poisson ? totals.logs[pixel] - (sum > 0 ? sum * std::log(mean) : 0)
                           : sum - totals.roots[pixel] * totals.roots[pixel] / count;
    if (counts)
      all.noise += count * (poisson ? noise_of_deviance(mean) : noise_of_root(mean));
  }
  for (double* const sum : {&all.reached, &all.noise, &all.without})
    *sum /= totals.counts;
  return all;
}

bool has_residuals(const Job& job) {
  const PtychographyOptions options = job.loss_options();
  return options.loss != PatternLoss::LeastSquares &&
         (options.scale == PatternScale::None || options.counts == 0);
}

std::string residual_name(const Job& job) {
  return job.loss() == PatternLoss::Poisson ? "Poisson residual " : "amplitude residual ";
}

/// The object of all processes, one pixel of every few where that is enough for pictures, in the first one.
void take_object(const Space& space, const Job& job, const TiledArrays& arrays, const SolverViews& found,
                 Reconstruction& result) {
  const PtychographyShape& shape = job.shape();
  result.every = job.pixel_of_pictures();
  result.slices = shape.slices;
  const auto whole = [&](std::int64_t pixels) { return (pixels + result.every - 1) / result.every; };
  result.rows = whole(job.object()[0]), result.columns = whole(job.object()[1]);
  const auto take = [&](std::vector<float>& values, const auto& view) {
    if (shape.slices > 1) { // in one process
      const std::vector<float> all = download(space, view);
      for (std::int64_t row = 0; row < shape.slices * job.object()[0]; ++row)
        for (std::int64_t column = 0; column < job.object()[1]; column += result.every)
          if (row % job.object()[0] % result.every == 0)
            values.push_back(all[static_cast<std::size_t>(row * job.object()[1] + column)]);
      return;
    }
    if (is_first_process())
      values.resize(static_cast<std::size_t>(result.rows * result.columns));
    arrays.gather(download(space, view), [&](const Hdf5Slab& box, std::span<const float> of_box) {
      for (std::int64_t i = 0; i < std::ssize(of_box); ++i) {
        const std::int64_t row = box.offset[0] + i / box.count[1], column = box.offset[1] + i % box.count[1];
        if (row % result.every == 0 && column % result.every == 0)
          values[static_cast<std::size_t>(row / result.every * result.columns + column / result.every)] =
              of_box[static_cast<std::size_t>(i)];
      }
    });
  };
  take(result.amplitude, found.amplitude);
  take(result.phase, found.phase);
  const auto is_flat = [](const std::vector<float>& values) {
    return std::ranges::adjacent_find(values, std::ranges::not_equal_to()) == values.end();
  };
  if (!result.amplitude.empty() && is_flat(result.amplitude) && is_flat(result.phase))
    job.provenance().assume(
        job.measurement().path().string() +
        ": the object is the same everywhere: nothing of it was found; are its patterns alike, or "
        "--passes few?");
}

/// Modes are orthogonal from here on, and the mean of factors is the probe's.
void take_probe(const Space& space, const Job& job, const SolverViews& found, Reconstruction& result) {
  const PtychographyShape& shape = job.shape();
  result.modes = shape.modes, result.probe_size = shape.probe;
  result.probe = download(space, found.probe);
  result.relaxation = download(space, found.relaxation);
  result.coefficients = download(space, found.coefficients);
  result.factors = download(space, found.factors);
  if (!result.factors.empty() && job.options().train == Train::Pixels) { // the probe has their mean
    const float mean =
        std::accumulate(result.factors.begin(), result.factors.end(), 0.0f) / float(result.factors.size());
    for (float& factor : result.factors)
      factor /= mean;
    for (auto* const values : {&result.probe, &result.relaxation})
      for (auto& value : *values)
        value *= std::sqrt(mean);
  }
  if (shape.modes > 1 && shape.relaxation == 0)
    result.powers = make_orthogonal(result.probe, shape.modes);
  if (shape.relaxation > 0)
    make_orthogonal_relaxation(result);
  const auto& weights = job.measurement().weights();
  for (const float root : download(space, found.background_roots)) {
    const bool counts = weights.empty() || weights[result.background.size()] > 0;
    result.background.push_back(counts ? root * root : std::numeric_limits<float>::quiet_NaN());
  }
}

/// Says how many patterns are explained much worse than others.
void say_worst_patterns(const Job& job, const Reconstruction& result) {
  constexpr std::size_t few = 10; // passes: nobody expects a result
  std::vector<double> sorted = result.pattern_errors;
  std::ranges::sort(sorted);
  const double much = 5 * sorted[sorted.size() / 2];
  if (const auto bad = sorted.end() - std::ranges::upper_bound(sorted, much);
      bad > 0 && result.losses.size() > few && much > 0) {
    const auto worst = std::ranges::max_element(result.pattern_errors) - result.pattern_errors.begin();
    job.provenance().assume(job.measurement().path().string() + ": " + std::to_string(bad) + " of " +
                            std::to_string(sorted.size()) +
                            " patterns are explained over 5 times worse than the median one, worst of all "
                            "number " +
                            std::to_string(worst) + " (/pattern_errors)");
  }
}

std::vector<Setting> settings_of(const Job& job) {
  const RunOptions& options = job.options();
  const PtychographyShape& shape = job.shape();
  std::vector<Setting> settings{{"patterns", double(job.measurement().count())},
                                {"detector", double(shape.detector)},
                                {"probe_size", double(shape.probe)},
                                {"modes", double(shape.modes)},
                                {"slices", double(shape.slices)},
                                {"relaxation_modes", double(shape.relaxation)},
                                {"passes", double(job.passes())},
                                {"batches", double(job.batches())},
                                {"decay", double(job.decays())},
                                {"algorithm", double(static_cast<int>(options.algorithm))},
                                {"object_rate", job.object_rate()},
                                {"probe_rate", job.probe_rate()},
                                {"loss", double(static_cast<int>(job.loss()))},
                                {"train", double(static_cast<int>(options.train))},
                                {"start", double(static_cast<int>(options.start))},
                                {"storage", double(static_cast<int>(options.storage))},
                                {"subpixel", double(options.subpixel)},
                                {"wavelength", job.measurement().wavelength()},
                                {"object_pixel", job.measurement().object_pixel()},
                                {"seed", double(options.seed)}};
  if (options.refine_positions) {
    settings.push_back({"position_rate", options.position_rate});
    settings.push_back({"position_limit", options.position_limit});
  }
  if (job.optics()) {
    const std::array names{"defocus", "cs", "astigmatism", "astigmatism_angle", "smoothness"};
    settings.push_back({"convergence_angle", job.optics()->convergence_angle});
    for (std::size_t c = 0; c < names.size(); ++c)
      settings.push_back({names[c], job.aberrations()[c]});
  }
  for (const auto& [name, count] : job.provenance().counts())
    settings.push_back({name, double(count)});
  return settings;
}

} // namespace

void judge(const Job& job, const Totals& totals, const std::vector<double>& losses) {
  constexpr std::size_t few = 10; // passes: nobody expects a result
  if (!has_residuals(job) || losses.size() <= few)
    return;
  double squares = 0; // so bright is a pixel, weighted with its counts
  for (const double value : totals.pattern)
    squares += value * value;
  const double bright = squares / totals.counts / double(job.measurement().count());
  if (job.options().loss && PtychographySchedule::loss(bright) == PatternLoss::Poisson)
    job.provenance().assume(
        job.measurement().path().string() + ": has " + four_digits(bright) +
        " counts in a bright pixel: --loss poisson explains so few better than the amplitude loss");
  const Residuals all = residuals(job, totals, losses.back());
  const double gained = all.without - all.reached, to_gain = all.without - all.noise;
  if (to_gain < 0.02 * all.without || gained > 0.5 * to_gain)
    return;
  const std::string reached = ": the " + residual_name(job) + "of " + four_digits(all.reached),
                    between = reached + " lies between " + four_digits(all.noise) +
                              " of counting noise and " + four_digits(all.without) +
                              " of one and the same pattern everywhere",
                    orientation =
                        job.options().try_axes ? ""
                        : job.options().continued || job.options().data.size() > 1 || process_count() > 1
                            ? "another --axes, "
                            : "--try-axes (the eight --axes, and both signs of the probe's "
                              "curvature, on a few patterns), ",
                    attempts =
                        "; try " + orientation +
                        (job.measurement().near_field() ? "another --focus-distance or --probe-path"
                                                        : "another --centre, --modes or --refine-positions");
  job.provenance().assume(job.measurement().path().string() +
                          (gained > 0 ? between + ": this is hardly a result"
                                      : reached + " is above the residual of one pattern for all, " +
                                            four_digits(all.without) + ": this is no result") +
                          attempts);
}

Reconstruction collect(const Space& space, const Job& job, const SolverViews& found,
                       std::vector<double> losses, std::span<const float> of_patterns) {
  const TiledArrays arrays(space, job);
  Reconstruction result;
  take_object(space, job, arrays, found, result);
  take_probe(space, job, found, result);
  result.positions = job.positions();
  const std::vector<float> own_moves = download(space, found.displacements),
                           moves = arrays.of_all_patterns(std::span(own_moves));
  for (std::size_t i = 0; i < moves.size(); ++i)
    result.positions[i / 2][i % 2] += moves[i];
  result.losses = std::move(losses);
  result.pattern_errors.resize(result.positions.size());
  for (std::size_t i = 0; i < of_patterns.size(); ++i)
    result.pattern_errors[static_cast<std::size_t>(job.tile().patterns[i])] = of_patterns[i];
  processes().sum(space, host_view(result.pattern_errors));
  say_worst_patterns(job, result);
  if (job.options().train == Train::Aberrations) {
    const auto values = download(space, found.aberrations);
    result.aberrations.emplace();
    std::copy(values.begin(), values.end(), result.aberrations->begin());
  }
  result.pixel_size = job.measurement().object_pixel();
  if (result.pixel_size > 0)
    for (const double pixels : job.measurement().origin())
      result.origin.push_back((pixels - job.margin()) * result.pixel_size);
  result.settings = settings_of(job);
  result.provenance = job.provenance().text();
  return result;
}

void write_result(const Space& space, const Job& job, const SolverViews& found,
                  const Reconstruction& result) {
  const RunOptions& options = job.options();
  std::optional<Hdf5Writer> file;
  if (is_first_process())
    file.emplace(options.out);
  for (const auto& [name, view] :
       {std::pair("/object/amplitude", found.amplitude), {"/object/phase", found.phase}}) {
    const auto values = download(space, view);
    TiledArrays(space, job).write(file ? &*file : nullptr, name, std::span(values), Of::Object);
  }
  if (!file)
    return;
  write_all_but_object(*file, result);
  file->commit();
  write_pictures(picture_paths(options.out, options.picture_ending), result);
}

namespace {

std::string in_tiles(const Job& job) {
  if (process_count() == 1)
    return "";
  std::int64_t rows = 0, columns = 0;
  for (const Rectangle& one : job.rectangles())
    rows = std::max(rows, one.rows()), columns = std::max(columns, one.columns());
  return " in tiles of at most " + std::to_string(rows) + " x " + std::to_string(columns) + " pixels";
}

/// The affine map from the positions of the file to those found, by least squares, for people.
std::string scan_map(const std::vector<std::array<double, 2>>& given,
                     const std::vector<std::array<double, 2>>& found) {
  std::array<double, 2> from{}, to{};
  for (std::size_t j = 0; j < given.size(); ++j)
    for (const std::size_t axis : {0, 1})
      from[axis] += given[j][axis] / double(given.size()), to[axis] += found[j][axis] / double(given.size());
  double square[2][2] = {}, product[2][2] = {};
  for (std::size_t j = 0; j < given.size(); ++j)
    for (const std::size_t a : {0, 1})
      for (const std::size_t b : {0, 1}) {
        square[a][b] += (given[j][a] - from[a]) * (given[j][b] - from[b]);
        product[a][b] += (found[j][a] - to[a]) * (given[j][b] - from[b]);
      }
  const double determinant = square[0][0] * square[1][1] - square[0][1] * square[1][0];
  if (!(determinant > 1e-9 * square[0][0] * square[1][1]))
    return ""; // positions on a line
  double map[2][2];
  for (const std::size_t a : {0, 1}) {
    map[a][0] = (product[a][0] * square[1][1] - product[a][1] * square[1][0]) / determinant;
    map[a][1] = (product[a][1] * square[0][0] - product[a][0] * square[0][1]) / determinant;
  }
  const double rows = std::hypot(map[0][0], map[1][0]),
               columns = (map[0][0] * map[1][1] - map[0][1] * map[1][0]) / rows;
  return ", scan scaled by " + four_digits(rows) + " along rows and " + four_digits(columns) +
         " along columns, turned by " +
         four_digits(std::atan2(map[1][0], map[0][0]) * 180 / std::numbers::pi) + " degrees, sheared by " +
         four_digits((map[0][0] * map[0][1] + map[1][0] * map[1][1]) / (rows * rows));
}

} // namespace

std::string summary(const Job& job, const Reconstruction& result, const Totals& totals, std::size_t bytes,
                    double seconds) {
  const RunOptions& options = job.options();
  const PtychographyShape& shape = job.shape();
  std::string text = options.out.string() + ": " + std::to_string(job.measurement().count()) +
                     " patterns of " + std::to_string(shape.detector) + " x " +
                     std::to_string(shape.detector) + ", object " + std::to_string(job.object()[0]) + " x " +
                     std::to_string(job.object()[1]) + in_tiles(job) + ", loss " +
                     four_digits(result.losses.front()) + " to " + four_digits(result.losses.back());
  if (has_residuals(job)) {
    const Residuals all = residuals(job, totals, result.losses.back());
    text += ", " + residual_name(job) + four_digits(all.reached);
    if (all.noise > 0)
      text += " (counting noise " + four_digits(all.noise) + ")";
  }
  for (std::size_t mode = 0; mode < result.powers.size(); ++mode)
    text += (mode == 0 ? ", modes " : " + ") + four_digits(result.powers[mode]);
  if (options.position_moves != PositionMoves::Single)
    text += scan_map(job.measurement().positions(), result.positions);
  if (result.aberrations)
    text += ", defocus " + four_digits((*result.aberrations)[Defocus]) + " nm";
  const std::size_t modes = std::size_t(shape.relaxation);
  for (std::size_t mode = 0; mode < modes; ++mode) {
    double power = 0;
    for (std::size_t i = mode; i < result.coefficients.size(); i += modes)
      power += std::norm(result.coefficients[i]) / double(result.positions.size());
    text += (mode == 0 ? ", relaxation of the probe's power " : " + ") + four_digits(power);
  }
  if (!result.factors.empty()) {
    const auto [least, greatest] = std::ranges::minmax(result.factors);
    text += ", factors " + four_digits(least) + " to " + four_digits(greatest);
  }
  if (!result.background.empty()) {
    std::vector<float> counted;
    std::ranges::copy_if(result.background, std::back_inserter(counted),
                         [](float value) { return std::isfinite(value); });
    text += ", background " +
            four_digits(std::accumulate(counted.begin(), counted.end(), 0.0) / double(counted.size())) +
            " counts a pixel";
  }
  if (job.reference()) {
    const bool free_probe = options.train == Train::Pixels;
    const Reconstruction& reference = *job.reference();
    text += ", error against the reference " +
            four_digits(align(result.projection(), reference.projection(), free_probe).error);
    for (int slice = 0; result.slices > 1 && result.slices == reference.slices && slice < result.slices;
         ++slice)
      text += (slice == 0 ? ", slices " : " + ") +
              four_digits(align(result.slice(slice), reference.slice(slice), free_probe).error);
    if (result.positions.size() == job.reference()->positions.size())
      if (const double error = position_error(result, *job.reference()); error > 0)
        text += ", positions off by " + four_digits(error) + " pixels (median)";
  }
  return text + ", " + four_digits(double(bytes) / 1e6) + " MB, " + four_digits(seconds) + " s";
}

} // namespace Bracewell::Examples
