// Prints the constants of gridding/cost.hpp again: times of spreading polar samples, fitted to the terms of the cost
// model, beside the constants in use, which are read from the model itself. Nanoseconds of a GPU, or of one core of a
// host. Then the strategies that the model chooses, and those that were the fastest.

#include "tuning.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/gridding/cost.hpp>
#include <bracewell/gridding/gridding.hpp>

#include <numbers>

namespace {

using namespace Tuning;
using Bracewell::GriddingStrategy;
using Bracewell::GriddingWork;

double cores() { return host ? Space().concurrency() : 1; }

constexpr const char* name_of(GriddingStrategy strategy) {
  return strategy == GriddingStrategy::Atomic         ? "Atomic"
         : strategy == GriddingStrategy::PrunedGather ? "PrunedGather"
         : strategy == GriddingStrategy::Tiles        ? "Tiles"
                                                      : "Bins";
}

/// What spreading took, and the work that it was.
struct Measurement {
  GriddingStrategy strategy;
  GriddingWork work;
  double nanoseconds; ///< of all cores together
};

Measurement measure(GriddingStrategy strategy, int n, int angles, std::int64_t slices, double tolerance) {
  const Space space;
  Bracewell::PolarPoints points{.angles = std::vector<double>(angles), .samples = n};
  for (int p = 0; p < angles; ++p)
    points.angles[p] = std::numbers::pi * p / angles;
  const bool last = strategy == GriddingStrategy::Tiles; // the order that each reads the faster
  const Bracewell::Gridding<Space, 2, float> plan(
      space, points, {n, n},
      {.slices = slices,
       .tolerance = tolerance,
       .oversampling = 1.5,
       .strategy = strategy,
       .order = last ? Bracewell::SampleOrder::SlicesLast : Bracewell::SampleOrder::SlicesFirst});
  const auto values = random_values<Complex>("samples", plan.points() * slices);
  const auto shape = plan.grid_shape();
  const View<Complex**> samples(values.data(), last ? plan.points() : slices, last ? slices : plan.points());
  const View<Complex***> grids("grids", slices, shape[0], shape[1]);
  const double seconds = median_seconds(space, [&] { plan.spread(space, samples, grids); });
  return {strategy,
          {.points = double(plan.points()),
           .slices = double(slices),
           .cells = double(shape[0]) * shape[1],
           .width = plan.width(),
           .dimensions = 2,
           .host = host},
          1e9 * seconds * cores()};
}

/// A term of the model that is alone when other quantities are zero.
double in_use(GriddingStrategy strategy, double points, double cells, int width = 1, double slices = 1) {
  return gridding_cost(
      strategy,
      {.points = points, .slices = slices, .cells = cells, .width = width, .dimensions = 2, .host = host});
}

/// Fits what the model says of a strategy: the terms of a measurement times constants.
template <class Terms>
std::vector<double> fit(const std::vector<Measurement>& all, GriddingStrategy strategy, std::size_t constants,
                        const Terms& terms) {
  Fit result(constants);
  for (const Measurement& m : all)
    if (m.strategy == strategy)
      result.add(terms(m.work), m.nanoseconds);
  const auto found = result.constants();
  std::printf("%s: largest relative error of the fit %.2f\n", name_of(strategy), result.error());
  return found;
}

void fit_all(const std::vector<Measurement>& all) {
  using enum GriddingStrategy;
  const auto written = [](const GriddingWork& w) { return w.cells * w.slices; };
  const auto taps = [](const GriddingWork& w) { return w.points * w.slices * w.width * w.width; };
  std::printf("\n");
  auto found = fit(all, Atomic, 2, [&](const GriddingWork& w) { return std::vector{written(w), taps(w)}; });
  print_constant("a cell written", found[0], in_use(Atomic, 0, 1));
  print_constant("a tap added by an atomic", found[1], in_use(Atomic, 1, 0));
  found = fit(all, PrunedGather, 2, [&](const GriddingWork& w) { return std::vector{written(w), taps(w)}; });
  print_constant("a tap gathered", found[1], in_use(PrunedGather, 1, 0));
  if (host)
    return;
  constexpr const auto& gpu = Bracewell::Impl::gpu_gridding_tuning;
  const double writing = in_use(Atomic, 0, 1), tile = gpu.tile_cell_2d;
  const auto chunks = [&](const GriddingWork& w) { return std::ceil(w.slices / gpu.tile_slices); };
  const auto visits = [&](const GriddingWork& w) { // tiles that a sample reaches on average
    return (1 + (w.width - 1.) / gpu.tile_2d.x) * (1 + (w.width - 1.) / gpu.tile_2d.y);
  };
  found = fit(all, Tiles, 2, [&](const GriddingWork& w) {
    return std::vector{Bracewell::Impl::reached_cells(w, gpu.tile_2d, visits(w)) * chunks(w) +
                           written(w) * writing / tile,
                       w.points * chunks(w) * visits(w)};
  });
  print_constant("a cell of a tile and chunk of slices", found[0], tile);
  print_constant("a visit of a sample", found[1], in_use(Tiles, 1, 0));
}

/// What is the fastest, and what the model would choose of the strategies that it knows.
void compare_choices(const std::vector<Measurement>& all, std::size_t strategies) {
  std::printf("\n%10s%8s%7s%14s%14s%10s\n", "points", "slices", "width", "fastest", "chosen", "loses");
  for (std::size_t i = 0; i < all.size(); i += strategies) {
    const auto chosen = choose_gridding_strategy(all[i].work);
    std::size_t fastest = i, picked = i;
    for (std::size_t j = i; j < i + strategies; ++j) {
      fastest = all[j].nanoseconds < all[fastest].nanoseconds ? j : fastest;
      picked = all[j].strategy == chosen ? j : picked;
    }
    std::printf("%10.0f%8.0f%7d%14s%14s%9.0f%%\n", all[i].work.points, all[i].work.slices, all[i].work.width,
                name_of(all[fastest].strategy), name_of(chosen),
                100 * (all[picked].nanoseconds / all[fastest].nanoseconds - 1));
  }
}

void transforms() {
  const Space space;
  double seconds = 0, elements = 0;
  for (const int n : host ? std::vector{192, 384} : std::vector{768, 1536, 3072}) {
    const std::int64_t slices = host ? 4 : 16;
    const auto grids = random_values<Complex>("grids", slices * n * n);
    const View<Complex***> view(grids.data(), slices, n, n);
    const Bracewell::FFT<Space, 2, Complex, Complex> transform(space, {n, n}, slices);
    const double found = median_seconds(space, [&] { transform.execute(space, view, view); });
    seconds += found, elements += double(view.size());
    std::printf("  FFT of %4d^2: %.3g ns per cell\n", n, 1e9 * found * cores() / double(view.size()));
  }
  const GriddingWork one{.points = 0, .slices = 1, .cells = 1, .width = 1, .dimensions = 2, .host = host};
  print_constant("a cell transformed", 1e9 * seconds * cores() / elements,
                 gridding_and_fft_cost(one) - gridding_cost(choose_gridding_strategy(one), one));
}

} // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  print_device("tune_gridding", false);
  std::vector<GriddingStrategy> strategies{GriddingStrategy::Bins, GriddingStrategy::Atomic,
                                           GriddingStrategy::PrunedGather};
  if (!host)
    strategies.push_back(GriddingStrategy::Tiles);
  std::vector<Measurement> all;
  for (const int n : host ? std::vector{64, 128} : std::vector{256, 1024})
    for (const std::int64_t slices : host ? std::vector{1, 4, 16} : std::vector{1, 8, 32, 64})
      for (const double tolerance : {1e-2, 1e-4})
        for (const GriddingStrategy strategy : strategies)
          all.push_back(measure(strategy, n, 2 * n, slices, tolerance));
  fit_all(all);
  transforms();
  compare_choices(all, strategies.size());
}
