// SPDX-License-Identifier: MIT
#include "bracewell-match/run.hpp"

#include "bracewell-match/orientations.hpp"
#include "bracewell-match/peaks.hpp"
#include "common/input_error.hpp"
#include "common/memory_limit.hpp"
#include "common/mrc.hpp"
#include "common/output_family.hpp"
#include "common/picture.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"
#include "common/star.hpp"
#include "cryoem/map.hpp"

#include <bracewell/project/prepare_map.hpp>
#include <bracewell/project/template_matching.hpp>

#include <cairo.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numbers>
#include <set>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;
using Matching = TemplateMatching<Space>;

/// With fewer orientations the deviation over them is mostly that of the peak.
constexpr std::int64_t enough_for_scores = 1000;

std::string text(const char* format, auto... values) {
  char buffer[160];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

/// Divides maxima of correlations [rows, columns] by the deviation of noise near each pixel. It is the root of the median, over
/// blocks of half a box within two boxes, of the mean square of correlations in a block. A molecule reaches few of these
/// blocks, so it does not count in its own noise.
void divide_by_local_noise(std::vector<float>& maxima, const std::vector<float>& means,
                           const std::vector<float>& deviations, int rows, int columns,
                           const double (&box)[2]) {
  constexpr int reach = 4;
  const int blocks[2] = {std::max(1, static_cast<int>(rows / std::max(8.0, box[0] / 2))),
                         std::max(1, static_cast<int>(columns / std::max(8.0, box[1] / 2)))};
  const auto block_of = [&](int row, int column) {
    return std::array{row * blocks[0] / rows, column * blocks[1] / columns};
  };
  const auto width = static_cast<std::size_t>(blocks[1]);
  std::vector<double> sums(static_cast<std::size_t>(blocks[0]) * width), counts(sums.size());
  const auto for_pixels = [&](const auto& visit) {
    std::size_t pixel = 0;
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column, ++pixel) {
        const auto [y, x] = block_of(row, column);
        visit(pixel, static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x));
      }
  };
  for_pixels([&](std::size_t pixel, std::size_t block) {
    sums[block] += double(means[pixel]) * means[pixel] + double(deviations[pixel]) * deviations[pixel];
    counts[block] += 1;
  });
  std::vector<double> noise, near;
  for (int y = 0; y < blocks[0]; ++y)
    for (int x = 0; x < blocks[1]; ++x) {
      near.clear();
      for (int v = std::max(0, y - reach); v <= std::min(blocks[0] - 1, y + reach); ++v)
        for (int u = std::max(0, x - reach); u <= std::min(blocks[1] - 1, x + reach); ++u) {
          const std::size_t block = static_cast<std::size_t>(v) * width + static_cast<std::size_t>(u);
          near.push_back(sums[block] / counts[block]);
        }
      std::ranges::sort(near);
      noise.push_back(std::sqrt((near[(near.size() - 1) / 2] + near[near.size() / 2]) / 2));
    }
  for_pixels([&](std::size_t pixel, std::size_t block) {
    maxima[pixel] = noise[block] > 0 ? static_cast<float>(maxima[pixel] / noise[block]) : 0;
  });
}

/// Names of what is written of a micrograph.
struct MicrographPaths {
  fs::path scores, angles, picture;
};

std::vector<MicrographPaths> paths_of(const MatchOptions& options,
                                      const std::vector<MicrographSource>& sources) {
  std::vector<MicrographPaths> paths;
  std::set<std::string> stems;
  for (const auto& source : sources) {
    const std::string stem = sources.size() == 1 ? "" : "_" + source.path.stem().string();
    if (!stems.insert(stem).second)
      throw InputError(source.path.string() +
                       ": two micrographs have this file name, which outputs are named after");
    paths.push_back({beside(options.out, stem + "_scores.mrc"), beside(options.out, stem + "_angles.mrcs"),
                     beside(options.out, stem + "_peaks" + options.picture_ending)});
  }
  return paths;
}

/// A peak in a micrograph.
struct Particle {
  double x, y; ///< pixels of the micrograph
  double score;
  EulerAngles<double> angles;
  CTFParameters ctf;
};

/// What was found in a micrograph.
struct Result {
  int rows = 0, columns = 0;
  double threshold = 0;
  std::vector<float> scores; ///< [rows, columns]
  std::vector<int> best;     ///< [rows, columns]
  std::vector<Particle> particles;
};

/// Changes of the defocus that are tried.
std::vector<double> defocus_changes(const std::vector<double>& search) {
  std::vector<double> changes;
  const int steps = search.empty() ? 0 : static_cast<int>(std::floor(search[0] / search[1] + 1e-9));
  for (int i = -steps; i <= steps; ++i)
    changes.push_back(i == 0 ? 0 : i * search[1]);
  return changes;
}

template <class Data>
auto copied(const Space& space, const DeviceView<Data**>& view) {
  const auto on_host = Kokkos::create_mirror_view(view);
  Kokkos::deep_copy(space, on_host, view);
  space.fence("Bracewell::examples::match");
  return std::vector<Data>(on_host.data(), on_host.data() + on_host.size());
}

/// The map, and the orientations that it is looked for in.
class Search {
public:
  Search(const Space& space, const MatchOptions& options, const CubicMap& map, double voxel_size)
      : space_(space), options_(options), box_(map.box), voxel_size_(voxel_size),
        grid_(orientation_grid(options.angular_step, options.in_plane_step, options.symmetry)),
        changes_(defocus_changes(options.defocus_search)),
        matrices_(allocate<DeviceView<float***>>("matrices", grid_.size(), 3, 3)),
        reference_(prepare_map<Linear>(space, to_device(space, map), 2 * map.box)) {
    const auto on_host = Kokkos::create_mirror_view(matrices_);
    for (std::size_t i = 0; i < grid_.size(); ++i) {
      const auto matrix = projection_matrix(grid_[i]);
      for (int row = 0; row < 3; ++row)
        for (int column = 0; column < 3; ++column)
          on_host(i, std::size_t(row), std::size_t(column)) = static_cast<float>(matrix(row, column));
    }
    Kokkos::deep_copy(space, matrices_, on_host);
    space.fence("Bracewell::examples::match");
  }

  std::int64_t orientations() const { return static_cast<std::int64_t>(grid_.size()); }
  std::int64_t templates() const { return orientations() * static_cast<std::int64_t>(changes_.size()); }

  /// `advance(count)` after some templates.
  template <class Advance>
  Result run(const Micrograph& micrograph, const CTFParameters& ctf, const Advance& advance) {
    plan_for(micrograph);
    Matching& matching = *matching_;
    const DeviceView<float**> pixels =
        allocate<DeviceView<float**>>("micrograph", micrograph.height, micrograph.width);
    Kokkos::deep_copy(space_, Part<float*>(pixels.data(), pixels.size()), host_view(micrograph.pixels));
    matching.set_micrograph(space_, pixels);
    // Some tenths of a second at a time.
    const std::int64_t together = std::int64_t(matching.batch()) * (kernels_run_on_host ? 1 : 32);
    for (const double change : changes_) {
      matching.set_ctf(space_, CTF(shifted(ctf, change)));
      for (std::int64_t first = 0; first < orientations(); first += together) {
        const std::int64_t last = std::min(first + together, orientations());
        matching.search(space_, reference_,
                        Kokkos::subview(matrices_, std::pair(first, last), Kokkos::ALL, Kokkos::ALL));
        space_.fence("Bracewell::examples::match");
        advance(last - first);
      }
    }
    return collect(micrograph, ctf);
  }

  const EulerAngles<double>& angles(int index) const {
    return grid_[static_cast<std::size_t>(index % orientations())];
  }

private:
  /// Micrographs of one size share a plan.
  void plan_for(const Micrograph& micrograph) {
    const TemplateMatchingSizes sizes{.height = micrograph.height,
                                      .width = micrograph.width,
                                      .pixel_size = micrograph.pixel_size,
                                      .voxel_size = voxel_size_};
    if (matching_ && sizes.height == sizes_.height && sizes.width == sizes_.width &&
        sizes.pixel_size == sizes_.pixel_size)
      return;
    const double limit = options_.resolution ? micrograph.pixel_size / *options_.resolution : 0.5;
    matching_.reset();
    // Correlations, their spectra, and what is kept of all: at least one orientation.
    const double pixels = double(micrograph.height) * micrograph.width * std::min(1.0, 4 * limit * limit);
    require_memory("searching a micrograph of " + std::to_string(micrograph.width) + " x " +
                       std::to_string(micrograph.height) + " pixels",
                   resident_bytes() + (kernels_run_on_host ? 50 * pixels + (1 << 26) : 16 * pixels),
                   memory_limit(options_.memory_limit));
    matching_ =
        std::make_unique<Matching>(space_, sizes, TemplateMatchingOptions{.limit = std::min(0.5, limit)});
    sizes_ = sizes;
  }

  CTFParameters shifted(CTFParameters ctf, double change) const {
    ctf.defocus_u += change;
    ctf.defocus_v += change;
    ctf.scale *= options_.contrast == ParticleContrast::Dark ? -1 : 1;
    return ctf;
  }

  Result collect(const Micrograph& micrograph, const CTFParameters& ctf) {
    const Matching& matching = *matching_;
    Result result{.rows = matching.rows(),
                  .columns = matching.columns(),
                  .threshold = false_positive_threshold(
                      double(matching.rows()) * matching.columns() * double(templates()),
                      std::min(options_.false_positives,
                               0.4 * double(matching.rows()) * matching.columns() * double(templates()))),
                  .scores = {},
                  .best = {},
                  .particles = {}};
    const auto scores = allocate<DeviceView<float**>>("scores", result.rows, result.columns);
    const auto best = allocate<DeviceView<int**>>("best", result.rows, result.columns);
    const double box = voxel_size_ * box_ / micrograph.pixel_size,
                 apart = options_.distance ? *options_.distance / micrograph.pixel_size : box / 4,
                 down = double(micrograph.height) / result.rows,
                 across = double(micrograph.width) / result.columns;
    if (options_.score == ScoreKind::OfTemplates)
      matching.results(space_, {.scores = scores, .best = best});
    else
      matching.results(space_, {.maxima = scores, .best = best});
    result.scores = copied(space_, scores);
    result.best = copied(space_, best);
    if (options_.score == ScoreKind::OfLocalNoise) {
      const auto means = allocate<DeviceView<float**>>("means", result.rows, result.columns),
                 deviations = allocate<DeviceView<float**>>("deviations", result.rows, result.columns);
      matching.results(space_, {.means = means, .deviations = deviations});
      divide_by_local_noise(result.scores, copied(space_, means), copied(space_, deviations), result.rows,
                            result.columns, {box / down, box / across});
    }
    for (const Peak& peak : find_peaks(result.scores, result.rows, result.columns, result.threshold,
                                       {apart / down, apart / across})) {
      const int index = result.best[peak.pixel];
      CTFParameters own = ctf;
      const double change = changes_[static_cast<std::size_t>(index / orientations())];
      own.defocus_u += change;
      own.defocus_v += change;
      result.particles.push_back({peak.column * across, peak.row * down, peak.score, angles(index), own});
    }
    return result;
  }

  Space space_;
  const MatchOptions& options_;
  int box_;
  double voxel_size_;
  std::vector<EulerAngles<double>> grid_;
  std::vector<double> changes_;
  DeviceView<float***> matrices_;
  Matching::Reference reference_;
  TemplateMatchingSizes sizes_{};
  std::unique_ptr<Matching> matching_;
};

/// The micrograph in grey, means of squares of pixels, with circles around the peaks.
Picture picture_of(const Micrograph& micrograph, const Result& result, double diameter,
                   const std::string& name) {
  const int n = (std::max(micrograph.width, micrograph.height) + 1023) / 1024;
  const int width = micrograph.width / n, height = micrograph.height / n;
  std::vector<float> small(std::size_t(width) * std::size_t(height));
  for (int row = 0; row < height * n; ++row)
    for (int column = 0; column < width * n; ++column)
      small[std::size_t(row / n) * std::size_t(width) + std::size_t(column / n)] +=
          micrograph.pixels[std::size_t(row) * std::size_t(micrograph.width) + std::size_t(column)];
  const Picture image = image_picture(greys(small, percentile_range(small)), width, height);
  constexpr double line = 20;
  const std::string caption = name + ": " + std::to_string(result.particles.size()) + " peaks above " +
                              text("%.2f", result.threshold);
  const double radius = std::max(4.0, diameter / micrograph.pixel_size / n / 2);
  return {image.width, image.height + line,
          [image, caption, radius, scale = 1.0 / n, particles = result.particles](cairo_t* context) {
            set_colour(context, {});
            draw_text(context, caption, {0, 15, image.width});
            cairo_save(context);
            cairo_translate(context, 0, line);
            image.draw(context);
            cairo_rectangle(context, 0, 0, image.width, image.height);
            cairo_clip(context);
            set_colour(context, {230, 60, 40});
            cairo_set_line_width(context, 1.5);
            for (const Particle& particle : particles) {
              cairo_new_sub_path(context);
              cairo_arc(context, (particle.x + 0.5) * scale, (particle.y + 0.5) * scale, radius, 0,
                        2 * std::numbers::pi);
              cairo_stroke(context);
            }
            cairo_restore(context);
          }};
}

/// Scores, the angles of the maxima (rot, tilt, psi), and the picture.
void write_maps(const MicrographPaths& paths, const Search& search, const MicrographSource& source,
                const Micrograph& micrograph, const Result& result, double diameter,
                const Provenance& provenance) {
  MrcWriteOptions mrc{.pixel_size = micrograph.pixel_size * micrograph.width / result.columns,
                      .labels = provenance.lines(),
                      .may_be_constant = true};
  MrcWriter scores(paths.scores, MrcWriter::Kind::Stack, result.columns, result.rows, mrc);
  scores.write(result.scores);
  scores.close();
  MrcWriter angles(paths.angles, MrcWriter::Kind::Stack, result.columns, result.rows, mrc);
  std::vector<float> section(result.best.size());
  for (const auto member :
       {&EulerAngles<double>::rot, &EulerAngles<double>::tilt, &EulerAngles<double>::psi}) {
    std::ranges::transform(result.best, section.begin(), [&](int index) {
      return static_cast<float>(index < 0 ? 0 : search.angles(index).*member);
    });
    angles.write(section);
  }
  angles.close();
  write_picture(paths.picture, picture_of(micrograph, result, diameter, source.path.filename().string()));
}

void add_rows(StarTable& table, const MicrographSource& source, const Result& result) {
  for (const Particle& particle : result.particles)
    for (const std::string& value :
         {source.name, fixed(particle.x, 2), fixed(particle.y, 2), fixed(particle.angles.rot, 3),
          fixed(particle.angles.tilt, 3), fixed(particle.angles.psi, 3), fixed(particle.score, 3),
          fixed(particle.ctf.defocus_u, 1), fixed(particle.ctf.defocus_v, 1),
          fixed(particle.ctf.defocus_angle, 2)})
      table.values.push_back(value);
}

void check(const MatchOptions& options) {
  if (options.star && !options.micrographs.empty())
    throw InputError("--star: expected a STAR file or --micrograph, found both");
  if (!options.star && options.micrographs.empty())
    throw InputError("--micrograph or --star is required (see --help)");
  if (!options.defocus_search.empty() && !(options.defocus_search[0] >= 0 && options.defocus_search[1] > 0))
    throw InputError("--defocus-search: expected a range of at least 0 and a step above 0");
  const double defoci = options.defocus_search.empty()
                            ? 1
                            : 1 + 2 * std::floor(options.defocus_search[0] / options.defocus_search[1]);
  const double templates = orientations_about(options.angular_step, options.in_plane_step) /
                           double(symmetry_operators(options.symmetry).size()) * defoci;
  if (!(templates < 1e9))
    throw InputError("--angular-step: expected fewer than 1e9 orientations times defoci, found about " +
                     text("%.3g", templates));
}

} // namespace

std::string match(const Space& space, const MatchOptions& options, Provenance& provenance, Timings& timings) {
  const auto start = std::chrono::steady_clock::now();
  require_one_process();
  check(options);
  timings.phase("read");
  const auto sources = list_micrographs(options.micrographs, options.star, options.optics, provenance);
  const auto paths = paths_of(options, sources);
  std::vector<fs::path> written{options.out};
  for (const auto& one : paths)
    written.insert(written.end(), {one.scores, one.angles, one.picture});
  OutputFamily outputs(written);

  const double limit = memory_limit(options.memory_limit);
  const CubicMap map = read_map(provenance, options.map, limit);
  const auto voxel_size = options.voxel_size ? options.voxel_size : map.voxel_size;
  if (!voxel_size)
    throw InputError(options.map.string() + ": states no voxel size; use --voxel-size");
  require_memory("a map of " + std::to_string(map.box) + " voxels, padded twice,",
                 resident_bytes() + 3 * 4.0 * std::pow(2.0 * map.box, 3), limit);
  require_memory("a list of orientations",
                 resident_bytes() + 120 * orientations_about(options.angular_step, options.in_plane_step) /
                                        double(symmetry_operators(options.symmetry).size()),
                 limit);
  timings.phase("prepare");
  Search search(space, options, map, *voxel_size);
  provenance.took(
      "--angular-step",
      std::to_string(search.orientations()) + " orientations" +
          (options.defocus_search.empty()
               ? std::string()
               : ", each at " + std::to_string(search.templates() / search.orientations()) + " defoci"));
  if (search.templates() < enough_for_scores && options.score == ScoreKind::OfTemplates)
    provenance.assume("--score-over-templates: " + std::to_string(search.templates()) +
                      " templates are too few for their mean and deviation at a pixel");
  provenance.say();
  StarTable table;
  table.name = "particles";
  table.columns = {"rlnMicrographName", "rlnCoordinateX", "rlnCoordinateY",           "rlnAngleRot",
                   "rlnAngleTilt",      "rlnAnglePsi",    "rlnAutopickFigureOfMerit", "rlnDefocusU",
                   "rlnDefocusV",       "rlnDefocusAngle"};
  Progress progress("searching", "templates", search.templates() * static_cast<std::int64_t>(sources.size()));
  double threshold = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    timings.phase("search");
    const Micrograph micrograph = read_micrograph(sources[i], provenance);
    if (std::max(map.box * *voxel_size / micrograph.pixel_size, 0.0) >
        std::min(micrograph.height, micrograph.width))
      throw InputError(options.map.string() + ": expected a map smaller than the micrograph " +
                       sources[i].path.string() + ", found a box of " +
                       text("%.0f", map.box * *voxel_size / micrograph.pixel_size) + " pixels");
    const Result result =
        search.run(micrograph, sources[i].ctf, [&](std::int64_t count) { progress.add(count); });
    threshold = result.threshold;
    timings.phase("write");
    write_maps(paths[i], search, sources[i], micrograph, result, map.box * *voxel_size / 2, provenance);
    add_rows(table, sources[i], result);
  }
  const std::size_t peaks = table.rows();
  write_star(options.out, {{table}}, provenance.lines());
  outputs.commit();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return options.out.string() + ": " + std::to_string(peaks) + " peaks above " + text("%.2f", threshold) +
         " in " + std::to_string(sources.size()) + " micrograph" + (sources.size() == 1 ? "" : "s") + ", " +
         std::to_string(search.templates()) + " templates each, in " + text("%.3g", elapsed.count()) + " s";
}

} // namespace Bracewell::Examples
