// SPDX-License-Identifier: MIT
#include "bracewell-match/run.hpp"

#include "bracewell-match/orientations.hpp"
#include "bracewell-match/peaks.hpp"
#include "common/angle_text.hpp"
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
#include <limits>
#include <memory>
#include <numbers>
#include <set>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;
/// Layers, rows and columns, or the same of something else.
using Size = std::array<int, 3>;
using Place = std::array<double, 3>;

/// With fewer orientations the deviation over them is mostly that of the peak.
constexpr std::int64_t enough_for_scores = 1000;

std::string text(const char* format, auto... values) {
  char buffer[160];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

std::size_t product(const Size& size) {
  return std::size_t(size[0]) * std::size_t(size[1]) * std::size_t(size[2]);
}

/// visit(index, place) of all places of a box, columns first.
template <class Visit>
void for_places(const Size& size, const Visit& visit) {
  std::size_t index = 0;
  Size place;
  for (place[0] = 0; place[0] < size[0]; ++place[0])
    for (place[1] = 0; place[1] < size[1]; ++place[1])
      for (place[2] = 0; place[2] < size[2]; ++place[2], ++index)
        visit(index, place);
}

/// Divides maxima of correlations by the deviation of noise near each pixel. It is the root of the median, over blocks of half a
/// box within two boxes, of the mean square of correlations in a block. A molecule reaches few of these blocks, so it does not
/// count in its own noise.
void divide_by_local_noise(std::vector<float>& maxima, const std::vector<float>& squares, const Size& size,
                           const Place& box) {
  constexpr int reach = 4;
  Size blocks;
  for (std::size_t d = 0; d < 3; ++d)
    blocks[d] = std::max(1, static_cast<int>(size[d] / std::max(8.0, box[d] / 2)));
  const auto block_at = [&](const Size& at) {
    return (std::size_t(at[0]) * std::size_t(blocks[1]) + std::size_t(at[1])) * std::size_t(blocks[2]) +
           std::size_t(at[2]);
  };
  const auto block_of = [&](const Size& pixel) {
    Size at;
    for (std::size_t d = 0; d < 3; ++d)
      at[d] = static_cast<int>(std::int64_t(pixel[d]) * blocks[d] / size[d]);
    return block_at(at);
  };
  std::vector<double> sums(product(blocks)), counts(sums.size()), noise(sums.size()), near;
  for_places(size, [&](std::size_t pixel, const Size& place) {
    const std::size_t block = block_of(place);
    sums[block] += double(squares[pixel]);
    counts[block] += 1;
  });
  for_places(blocks, [&](std::size_t block, const Size& place) {
    Size first, extent;
    for (std::size_t d = 0; d < 3; ++d) {
      first[d] = std::max(0, place[d] - reach);
      extent[d] = std::min(blocks[d] - 1, place[d] + reach) - first[d] + 1;
    }
    near.clear();
    for_places(extent, [&](std::size_t, const Size& step) {
      const std::size_t other = block_at({first[0] + step[0], first[1] + step[1], first[2] + step[2]});
      near.push_back(sums[other] / counts[other]);
    });
    std::ranges::sort(near);
    noise[block] = std::sqrt((near[(near.size() - 1) / 2] + near[near.size() / 2]) / 2);
  });
  for_places(size, [&](std::size_t pixel, const Size& place) {
    const double own = noise[block_of(place)];
    maxima[pixel] = own > 0 ? static_cast<float>(maxima[pixel] / own) : 0;
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
                       ": two inputs have this file name, which outputs are named after");
    paths.push_back({beside(options.out, stem + "_scores.mrc"), beside(options.out, stem + "_angles.mrcs"),
                     beside(options.out, stem + "_peaks" + options.picture_ending)});
  }
  return paths;
}

/// A peak in a micrograph.
struct Particle {
  Place place; ///< z, y and x in pixels of the micrograph
  double score;
  EulerAngles<double> angles;
  CTFParameters ctf;
};

/// What was found in a micrograph.
struct Result {
  Size size{};     ///< of the maps of scores
  Place spacing{}; ///< of their pixels, in pixels of the micrograph
  double threshold = 0;
  std::vector<float> scores;
  std::vector<int> best;
  std::vector<Particle> particles;
};

/// Blocks of an axis, which overlap by the margin or more. They begin half a margin before the axis and end as far behind it.
/// Sizes in pixels of the scores, but `pixels`.
struct AxisBlocks {
  int pixels; ///< of the micrograph in a block
  int size;   ///< of a block
  int step;   ///< from one to the next
  int count;
  int total;    ///< of the micrograph
  int lead = 0; ///< from the beginning of the first block to that of the micrograph

  /// What the scores of block i count for: from the middle of the overlap with the block before to that with the next.
  int first(int i) const { return i == 0 ? 0 : std::clamp(i * step + (size - step) / 2 - lead, 0, total); }
  int end(int i) const { return i == count - 1 ? total : first(i + 1); }
  /// Where block i begins in the micrograph, in its pixels.
  int begin(int i) const { return static_cast<int>((std::int64_t(i) * step - lead) * pixels / size); }
};

/// A pixel of scores has down / up pixels of the micrograph. A block begins at a multiple of `down` pixels and has a size that
/// transforms are fast at.
AxisBlocks blocks_of(int pixels, int margin, int largest, int up, int down, bool even) {
  const auto over = [](int a, int b) { return (a + b - 1) / b; };
  const auto fast = [&](int least) {
    int size = over(least, up) * up;
    while (next_fast_size(size, even) != size)
      size += up;
    return size;
  };
  const int total = over(pixels * up, down), shared = over(margin * up, down),
            most = std::max(over(largest * up, down), 2 * shared), lead = over(over(shared, 2), up) * up,
            whole = total + 2 * lead;
  AxisBlocks blocks{0, fast(whole), whole, 1, total, lead};
  if (whole > most) {
    blocks.step = over(over(whole - shared, over(whole - shared, most - shared)), up) * up;
    blocks.count = over(whole - shared, blocks.step);
    blocks.size = fast(blocks.step + shared);
  }
  blocks.pixels = blocks.size / up * down;
  return blocks;
}

/// The blocks of a micrograph or tomogram: layers, rows, columns.
struct Blocks {
  std::array<AxisBlocks, 3> axes;
  double nyquist = 0; ///< TemplateMatchingOptions::nyquist

  int count() const { return axes[0].count * axes[1].count * axes[2].count; }
  Size pixels() const { return {axes[0].pixels, axes[1].pixels, axes[2].pixels}; }
};

/// Changes of the defocus that are tried.
std::vector<double> defocus_changes(const std::vector<double>& search) {
  std::vector<double> changes;
  const int steps = search.empty() ? 0 : static_cast<int>(std::floor(search[0] / search[1] + 1e-9));
  for (int i = -steps; i <= steps; ++i)
    changes.push_back(i == 0 ? 0 : i * search[1]);
  return changes;
}

/// What the tilt series of tomograms measured.
TiltWedge wedge_of(const MatchOptions& options, Provenance& provenance) {
  TiltWedge wedge{.lowest = options.tilt_min.value_or(-60), .highest = options.tilt_max.value_or(60)};
  if (options.tilt_angles) {
    wedge.angles = read_angle_text(*options.tilt_angles);
    if (wedge.angles.empty())
      throw InputError(options.tilt_angles->string() + ": has no angles");
    for (const double angle : wedge.angles)
      if (!(std::abs(angle) <= 90))
        throw InputError(options.tilt_angles->string() + ": expected angles from -90 to 90 degrees, found " +
                         shortest(angle));
    const auto [least, most] = std::ranges::minmax(wedge.angles);
    provenance.took(*options.tilt_angles, std::to_string(wedge.angles.size()) + " views from " +
                                              shortest(least) + " to " + shortest(most) + " degrees");
  } else if (!options.tilt_min && !options.tilt_max) {
    provenance.assume("--tilt-min, --tilt-max: views from -60 to 60 degrees are taken");
  }
  return wedge;
}

/// The map, and the orientations that it is looked for in, in micrographs (Dim = 2) or tomograms (3).
template <int Dim>
class Search {
  using Matching = TemplateMatching<Space, float, Dim>;
  template <class Value>
  using Grid = DeviceView<std::conditional_t<Dim == 3, Value***, Value**>>;

public:
  Search(const Space& space, const MatchOptions& options, const CubicMap& map, double voxel_size,
         const TiltWedge& wedge)
      : space_(space), options_(options), box_(map.box), voxel_size_(voxel_size), wedge_(wedge),
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
    copy_values(space, matrices_, on_host);
    space.fence("Bracewell::examples::match");
  }

  std::int64_t orientations() const { return static_cast<std::int64_t>(grid_.size()); }
  std::int64_t templates() const { return orientations() * static_cast<std::int64_t>(changes_.size()); }

  /// Pixels of a micrograph that the map's box has.
  double box(const Micrograph& sizes) const { return voxel_size_ * box_ / sizes.pixel_size; }

  Blocks blocks(const Micrograph& sizes) const {
    if (Dim == 2)
      return {{{{1, 1, 1, 1, 1}, {sizes.height, 0, 0, 1, 0}, {sizes.width, 0, 0, 1, 0}}}};
    int up = 1, down = 1;
    const double limit = std::min(this->limit(sizes), sizes.pixel_size / (2 * voxel_size_));
    for (const auto& [a, b] :
         {std::pair(1, 4), std::pair(1, 3), std::pair(1, 2), std::pair(2, 3), std::pair(3, 4)})
      if (a >= 2 * limit * b) {
        up = a;
        down = b;
        break;
      }
    const auto axis = [&](int pixels, bool even) {
      return blocks_of(pixels, static_cast<int>(std::ceil(box(sizes))), options_.block_size, up, down, even);
    };
    return {{axis(sizes.depth, false), axis(sizes.height, false), axis(sizes.width, true)}, 0.5 * up / down};
  }

  /// `advance(count)` after some templates in a block.
  template <class Advance>
  Result run(const Micrograph& micrograph, const CTFParameters& ctf, const Advance& advance) {
    Blocks blocks = this->blocks(micrograph);
    plan_for(micrograph, blocks);
    Result result;
    const double pixels[3] = {double(micrograph.depth), double(micrograph.height), double(micrograph.width)};
    for (std::size_t d = 0; d < 3; ++d) {
      AxisBlocks& axis = blocks.axes[d];
      if (Dim == 2)
        axis.size = axis.step = axis.total = block_[d];
      result.size[d] = axis.total;
      result.spacing[d] = Dim == 2 ? pixels[d] / axis.total : double(axis.pixels) / axis.size;
    }
    result.scores.resize(product(result.size));
    result.best.resize(result.scores.size(), -1);
    std::vector<float> squares(options_.score == ScoreKind::OfLocalNoise ? result.scores.size() : 0);
    for_places({blocks.axes[0].count, blocks.axes[1].count, blocks.axes[2].count},
               [&](std::size_t, const Size& block) {
                 if (const double noise = compare(micrograph, ctf, blocks, block, advance); noise > 0)
                   take(blocks, block, options_.score == ScoreKind::OfTemplates ? 1 : noise, result, squares);
               });
    finish(micrograph, ctf, result, squares);
    return result;
  }

  const EulerAngles<double>& angles(int index) const {
    return grid_[static_cast<std::size_t>(index % orientations())];
  }

private:
  double limit(const Micrograph& sizes) const {
    return options_.resolution ? std::min(0.5, sizes.pixel_size / *options_.resolution) : 0.5;
  }

  template <class Value>
  static Grid<Value> grid(const char* name, const Size& size) {
    if constexpr (Dim == 3)
      return allocate<Grid<Value>>(name, size[0], size[1], size[2]);
    else
      return allocate<Grid<Value>>(name, size[1], size[2]);
  }
  template <class Data>
  std::vector<typename Data::value_type> copied(const Data& view) const {
    const auto on_host = Kokkos::create_mirror_view(view);
    copy_values(space_, on_host, view);
    space_.fence("Bracewell::examples::match");
    return {on_host.data(), on_host.data() + on_host.size()};
  }

  /// Blocks of one size share a plan.
  void plan_for(const Micrograph& micrograph, const Blocks& blocks) {
    const Size size = blocks.pixels();
    const TemplateMatchingSizes sizes{.height = size[1],
                                      .width = size[2],
                                      .pixel_size = micrograph.pixel_size,
                                      .voxel_size = voxel_size_,
                                      .depth = size[0]};
    if (matching_ && sizes.height == sizes_.height && sizes.width == sizes_.width &&
        sizes.depth == sizes_.depth && sizes.pixel_size == sizes_.pixel_size)
      return;
    const double limit = this->limit(micrograph);
    matching_.reset();
    // Correlations, their spectra, and what is kept of all: at least one orientation. Of tomograms scores, orientations, squares.
    const double pixels = double(product(size)),
                 kept = pixels * (Dim == 2 ? std::min(1.0, 4 * limit * limit) : 1),
                 whole = Dim == 2 ? 0 : 12 * double(micrograph.pixels.size());
    require_memory((Dim == 2 ? "searching a micrograph of " : "searching blocks of ") +
                       std::to_string(sizes.width) + " x " + std::to_string(sizes.height) +
                       (Dim == 2 ? std::string(" pixels")
                                 : " x " + std::to_string(sizes.depth) + " voxels (--block-size)"),
                   resident_bytes() + whole + (kernels_run_on_host ? 50 * kept + (1 << 26) : 16 * kept),
                   memory_limit(options_.memory_limit));
    TiltWedge wedge = wedge_;
    wedge.thickness = 1 / box(micrograph);
    matching_ = std::make_unique<Matching>(
        space_, sizes, TemplateMatchingOptions{.limit = limit, .nyquist = blocks.nyquist, .wedge = wedge});
    sizes_ = sizes;
    block_ = {matching_->layers(), matching_->rows(), matching_->columns()};
  }

  /// Compares a block with all templates. Beyond the sides of a tomogram there are zeros, the mean, so that no score sees the
  /// opposite side. Returns the deviation that noise has for them, the root of the share of voxels in the tomogram: the block's
  /// spectrum is lower by it. 0 for a block of one value.
  template <class Advance>
  double compare(const Micrograph& micrograph, const CTFParameters& ctf, const Blocks& blocks,
                 const Size& block, const Advance& advance) {
    const Size size = blocks.pixels(), whole{micrograph.depth, micrograph.height, micrograph.width};
    std::vector<float> values(product(size));
    float least = std::numeric_limits<float>::infinity(), most = -least;
    double inside = 0;
    for_places(size, [&](std::size_t i, const Size& at) {
      std::size_t from = 0;
      for (std::size_t d = 0; d < 3; ++d) {
        const int place = blocks.axes[d].begin(block[d]) + at[d];
        if (place < 0 || place >= whole[d])
          return;
        from = from * std::size_t(whole[d]) + std::size_t(place);
      }
      values[i] = micrograph.pixels[from];
      least = std::min(least, values[i]);
      most = std::max(most, values[i]);
      inside += 1;
    });
    if (!(least < most)) {
      advance(templates());
      return 0;
    }
    Matching& matching = *matching_;
    const auto pixels = grid<float>("micrograph", size);
    copy_values(space_, Part<float*>(pixels.data(), pixels.size()), host_view(values));
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
    return std::sqrt(inside / double(values.size()));
  }

  CTFParameters shifted(CTFParameters ctf, double change) const {
    ctf.defocus_u += change;
    ctf.defocus_v += change;
    ctf.scale *= options_.contrast == ParticleContrast::Dark ? -1 : 1;
    return ctf;
  }

  /// The part of a block's results that counts, with the factor `noise`.
  void take(const Blocks& blocks, const Size& block, double noise, Result& result,
            std::vector<float>& squares) const {
    const auto device_scores = grid<float>("scores", block_);
    const auto device_best = grid<int>("best", block_);
    if (options_.score == ScoreKind::OfTemplates)
      matching_->results(space_, {.scores = device_scores, .best = device_best});
    else
      matching_->results(space_, {.maxima = device_scores, .best = device_best});
    const auto scale = static_cast<float>(noise);
    const auto scores = copied(device_scores);
    const auto best = copied(device_best);
    std::vector<float> means, deviations;
    if (!squares.empty()) {
      const auto device_means = grid<float>("means", block_),
                 device_deviations = grid<float>("deviations", block_);
      matching_->results(space_, {.means = device_means, .deviations = device_deviations});
      means = copied(device_means);
      deviations = copied(device_deviations);
    }
    Size first, extent;
    for (std::size_t d = 0; d < 3; ++d) {
      first[d] = blocks.axes[d].first(block[d]);
      extent[d] = blocks.axes[d].end(block[d]) - first[d];
    }
    const auto at = [](const Size& place, const Size& size) {
      return (std::size_t(place[0]) * std::size_t(size[1]) + std::size_t(place[1])) * std::size_t(size[2]) +
             std::size_t(place[2]);
    };
    for_places(extent, [&](std::size_t, const Size& step) {
      Size whole, own;
      for (std::size_t d = 0; d < 3; ++d) {
        whole[d] = first[d] + step[d];
        own[d] = whole[d] + blocks.axes[d].lead - block[d] * blocks.axes[d].step;
      }
      const std::size_t to = at(whole, result.size), from = at(own, block_);
      result.scores[to] = scale * scores[from];
      result.best[to] = best[from];
      if (!squares.empty())
        squares[to] = scale * scale * (means[from] * means[from] + deviations[from] * deviations[from]);
    });
  }

  void finish(const Micrograph& micrograph, const CTFParameters& ctf, Result& result,
              const std::vector<float>& squares) const {
    const double trials = double(product(result.size)) * double(templates()), own = box(micrograph),
                 apart = options_.distance ? *options_.distance / micrograph.pixel_size : own / 4;
    result.threshold = false_positive_threshold(trials, std::min(options_.false_positives, 0.4 * trials));
    Place boxes, distance;
    for (std::size_t d = 0; d < 3; ++d) {
      boxes[d] = own / result.spacing[d];
      distance[d] = apart / result.spacing[d];
    }
    if (!squares.empty())
      divide_by_local_noise(result.scores, squares, result.size, boxes);
    for (const Peak& peak : find_peaks(result.scores, result.size, result.threshold, distance)) {
      const int index = result.best[peak.pixel];
      CTFParameters found = ctf;
      const double change = changes_[static_cast<std::size_t>(index / orientations())];
      found.defocus_u += change;
      found.defocus_v += change;
      Particle particle{{}, peak.score, angles(index), found};
      for (std::size_t d = 0; d < 3; ++d)
        particle.place[d] = peak.place[d] * result.spacing[d];
      result.particles.push_back(particle);
    }
  }

  Space space_;
  const MatchOptions& options_;
  int box_;
  double voxel_size_;
  TiltWedge wedge_;
  std::vector<EulerAngles<double>> grid_;
  std::vector<double> changes_;
  DeviceView<float***> matrices_;
  typename Matching::Reference reference_;
  TemplateMatchingSizes sizes_{};
  Size block_{}; ///< of the plan's results
  std::unique_ptr<Matching> matching_;
};

/// The micrograph in grey, means of squares of pixels (of tomograms of all layers), with circles around the peaks.
Picture picture_of(const Micrograph& micrograph, const Result& result, double diameter,
                   const std::string& name) {
  const int n = (std::max(micrograph.width, micrograph.height) + 1023) / 1024;
  const int width = micrograph.width / n, height = micrograph.height / n;
  std::vector<float> small(std::size_t(width) * std::size_t(height));
  for_places({micrograph.depth, micrograph.height, micrograph.width},
             [&](std::size_t pixel, const Size& place) {
               if (place[1] < height * n && place[2] < width * n)
                 small[std::size_t(place[1] / n) * std::size_t(width) + std::size_t(place[2] / n)] +=
                     micrograph.pixels[pixel];
             });
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
              cairo_arc(context, (particle.place[2] + 0.5) * scale, (particle.place[1] + 0.5) * scale, radius,
                        0, 2 * std::numbers::pi);
              cairo_stroke(context);
            }
            cairo_restore(context);
          }};
}

/// Scores, the angles of the maxima (rot, tilt, psi), and the picture.
template <int Dim>
void write_maps(const MicrographPaths& paths, const Search<Dim>& search, const MicrographSource& source,
                const Micrograph& micrograph, const Result& result, double diameter,
                const Provenance& provenance) {
  MrcWriteOptions mrc{.pixel_size = micrograph.pixel_size * result.spacing[2],
                      .labels = provenance.lines(),
                      .may_be_constant = true};
  MrcWriter scores(paths.scores, Dim == 3 ? MrcWriter::Kind::Volume : MrcWriter::Kind::Stack, result.size[2],
                   result.size[1], mrc);
  scores.write(result.scores);
  scores.close();
  MrcWriter angles(paths.angles, MrcWriter::Kind::Stack, result.size[2], result.size[1], mrc);
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

StarTable table_of(bool tomograms) {
  StarTable table;
  table.name = "particles";
  table.columns = {tomograms ? "rlnTomoName" : "rlnMicrographName", "rlnCoordinateX", "rlnCoordinateY"};
  if (tomograms)
    table.columns.push_back("rlnCoordinateZ");
  for (const char* column : {"rlnAngleRot", "rlnAngleTilt", "rlnAnglePsi", "rlnAutopickFigureOfMerit"})
    table.columns.push_back(column);
  if (!tomograms)
    for (const char* column : {"rlnDefocusU", "rlnDefocusV", "rlnDefocusAngle"})
      table.columns.push_back(column);
  return table;
}

void add_rows(StarTable& table, const MicrographSource& source, const Result& result) {
  const auto add = [&](const std::string& value) { table.values.push_back(value); };
  for (const Particle& particle : result.particles) {
    add(source.name);
    add(fixed(particle.place[2], 2));
    add(fixed(particle.place[1], 2));
    if (source.tomogram)
      add(fixed(particle.place[0], 2));
    for (const double value :
         {particle.angles.rot, particle.angles.tilt, particle.angles.psi, particle.score})
      add(fixed(value, 3));
    if (!source.tomogram) {
      add(fixed(particle.ctf.defocus_u, 1));
      add(fixed(particle.ctf.defocus_v, 1));
      add(fixed(particle.ctf.defocus_angle, 2));
    }
  }
}

void check(const MatchOptions& options) {
  if (options.star && !options.micrographs.empty())
    throw InputError("--star: expected a STAR file or --micrograph, found both");
  const bool images = options.star || !options.micrographs.empty(), tomograms = !options.tomograms.empty();
  if (images && tomograms)
    throw InputError("--tomogram: expected tomograms or micrographs, found both");
  if (!images && !tomograms)
    throw InputError("--micrograph or --star is required, or --tomogram (see --help)");
  if (tomograms && options.optics.defocus.size() > 1)
    throw InputError("--defocus: expected one defocus of tomograms, found " +
                     std::to_string(options.optics.defocus.size()) + " numbers");
  if (tomograms && options.optics.defocus.empty() && !options.defocus_search.empty())
    throw InputError("--defocus-search: expected --defocus beside it, found none");
  const double lowest = options.tilt_min.value_or(-60), highest = options.tilt_max.value_or(60);
  if (!(lowest < highest))
    throw InputError("--tilt-max: expected more than --tilt-min, " + shortest(lowest) + " degrees, found " +
                     shortest(highest));
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

template <int Dim>
std::string match_all(const Space& space, const MatchOptions& options, Provenance& provenance,
                      Timings& timings) {
  const auto start = std::chrono::steady_clock::now();
  constexpr bool tomograms = Dim == 3;
  timings.phase("read");
  const auto sources = tomograms
                           ? list_tomograms(options.tomograms, options.optics)
                           : list_micrographs(options.micrographs, options.star, options.optics, provenance);
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
  Search<Dim> search(space, options, map, *voxel_size,
                     tomograms ? wedge_of(options, provenance) : TiltWedge{});
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
  StarTable table = table_of(tomograms);
  std::int64_t blocks = 0;
  for (const auto& source : sources) {
    const Micrograph sizes = sizes_of(source);
    if (search.box(sizes) > std::min({tomograms ? sizes.depth : sizes.width, sizes.height, sizes.width}))
      throw InputError(options.map.string() + ": expected a map smaller than the " +
                       (tomograms ? "tomogram " : "micrograph ") + source.path.string() +
                       ", found a box of " + text("%.0f", search.box(sizes)) + " pixels");
    blocks += search.blocks(sizes).count();
  }
  Progress progress("searching", "templates", search.templates() * blocks);
  double threshold = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    timings.phase("search");
    const MrcReader reader(sources[i].path);
    require_memory("reading " + sources[i].path.string(),
                   resident_bytes() + 4.0 * double(reader.width() * reader.height() * reader.images()),
                   limit);
    const Micrograph micrograph = read_micrograph(sources[i], provenance);
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
         " in " + std::to_string(sources.size()) + (tomograms ? " tomogram" : " micrograph") +
         (sources.size() == 1 ? "" : "s") +
         (tomograms ? " (" + std::to_string(blocks) + (blocks == 1 ? " block)" : " blocks)") : "") + ", " +
         std::to_string(search.templates()) + " templates each, in " + text("%.3g", elapsed.count()) + " s";
}

} // namespace

std::string match(const Space& space, const MatchOptions& options, Provenance& provenance, Timings& timings) {
  require_one_process();
  check(options);
  return options.tomograms.empty() ? match_all<2>(space, options, provenance, timings)
                                   : match_all<3>(space, options, provenance, timings);
}

} // namespace Bracewell::Examples
